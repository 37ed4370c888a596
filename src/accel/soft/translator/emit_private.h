/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block while it is translated, and the sequences that instructions are made of
 * (emit.c). Rules (rules_*.c) use them; translate.c calls the rules.
 */
#ifndef HUSK_SOFT_EMIT_PRIVATE_H
#define HUSK_SOFT_EMIT_PRIVATE_H

#include "accel/soft/draft_private.h"
#include "accel/soft/translator/encode_private.h"
#include "accel/soft/translator/translator_private.h"

/* Free to use in translated code. */
#define SCRATCH X86_R10
#define ADDRESS X86_R11 /* what address computations end in */
/* The host's register that has the guest's stack pointer. */
#define STACK X86_R15

/* A linear address: guest registers, or SOFT_ZERO. */
struct access_place {
    uint8_t base;
    uint8_t index;
    uint8_t scale; /* shift */
    int64_t displacement;
};

/* Bytes in one page, from `place` on; and where the code is within the instructions that
 * access them, the host's address of the first one, in ADDRESS: see emit_access.c. */
struct access_group {
    struct access_place place;
    uint8_t bytes;
    bool write;   /* the page may be written to */
    bool aligned; /* `place` is, to CHECK_MAX_BYTES */
    bool shared;  /* by several accesses */
};

/* A block that branches to its own start, and what it accesses where the next turn is
 * near: see loop.c. */
struct access_loop {
    size_t count;      /* instructions up to that branch; 0: there is none */
    uint32_t unsteady; /* registers that change by more than small steps */
    uint8_t place_counts[2];
    struct access_place places[2][LOOP_PAGES]; /* [1]: to write */
};

struct emitter {
    struct soft_cpu *cpu;
    struct translator *translator;
    const struct draft *draft;
    struct block *block;
    struct code_writer hot;
    struct code_writer cold;
    enum flags_place flags;
    bool vectors;      /* the host's vector registers are the guest's from here on */
    bool one_cpu;      /* LOCK is not needed, but as a barrier */
    bool careful;      /* each access has a check of its own */
    uint64_t granules; /* of the page: bytes beyond the block that it depends on */
    struct access_loop loop;
    /* The last instructions that access something by a base register; 0: or none. */
    uint8_t last_uses[SOFT_ZERO + 1];

    /* ---- the instruction in progress ---- */
    const struct instruction *instruction;
    const uint8_t *bytes; /* its own */
    size_t ordinal;
    struct access_group group; /* shared: what ADDRESS is good for */
    uint8_t ahead;             /* how far behind ADDRESS what was checked last is */
    bool split;                /* ... which is an offset: SCRATCH has the page */
    int32_t stack_behind;      /* STACK is to be moved by so many bytes, in a group */
    bool group_kept;           /* its rule says that the group is good behind it, too */
    uint32_t start;            /* offset of its code, behind the saving of flags */

    /* Arithmetic flags that somebody will read, before and behind each instruction. */
    uint16_t live_in[BLOCK_LIMIT];
    uint16_t live_out[BLOCK_LIMIT];
    uint16_t live_there[BLOCK_LIMIT]; /* where it may branch to */
    uint16_t live_behind;             /* where the block falls through to */
};

/* Emits one instruction, e->instruction. False, before anything is written: not this one.
 */
typedef bool translate_rule(struct emitter *e);

/* rules.c: the rule for an instruction, or NULL. To be initialized before, any number of
 * times. */
void rules_init(void);
translate_rule *rule_find(const struct instruction *instruction);
/* What is known of a form by its number, beside its row. */
#define FORMS_LIMIT 2048
extern struct form_facts {
    uint32_t written; /* general registers, by number, whatever its operands are */
    uint8_t rule;
    bool writes_reg; /* ModRM.reg is a general register that it writes */
    bool writes_rm;
    enum address_fate {
        ADDRESS_LOST,
        ADDRESS_KEPT,
        ADDRESS_KEPT_WITH_VECTORS,
    } address : 8;
} form_facts[FORMS_LIMIT];

/* As a guess: ADDRESS is the same behind the instruction. `vectors`: the host's vector
 * registers are the guest's. */
static inline bool keeps_address(const struct instruction *instruction, bool vectors)
{
    const unsigned fate = form_facts[instruction->form_number].address;

    return fate == ADDRESS_KEPT || (fate == ADDRESS_KEPT_WITH_VECTORS && vectors);
}

/* Registers that an instruction writes, by their numbers, as far as that matters for a
 * guess. */
static inline uint32_t registers_written(const struct instruction *instruction)
{
    const struct form_facts *facts = &form_facts[instruction->form_number];

    return facts->written | (uint32_t)facts->writes_reg << instruction->reg |
           (uint32_t)(facts->writes_rm && !instruction->memory) << instruction->rm;
}

translate_rule rule_operate;  /* rules_operate.c: any operands in general registers */
translate_rule rule_constant; /* MOV of an immediate into a register */
translate_rule rule_lea;
translate_rule rule_bit_scan;
translate_rule rule_misc;
translate_rule rule_stack;          /* rules_stack.c */
translate_rule rule_divide;         /* rules_divide.c: MUL and IMUL, too */
translate_rule rule_jump_condition; /* rules_flow.c */
translate_rule rule_flow;
translate_rule rule_flow_indirect;
translate_rule rule_bit_test; /* rules_bits.c */
translate_rule rule_vector;   /* rules_vector.c */
translate_rule rule_system;   /* rules_system.c */
translate_rule rule_syscall;

/* ---- registers ---- */

/* R10, R11 and R15 have no host register. */
static inline bool register_is_homeless(unsigned number)
{
    return number == X86_R10 || number == X86_R11 || number == X86_R15;
}

/* The host register of any other. */
static inline unsigned register_host(unsigned number)
{
    return number == X86_RSP ? STACK : number;
}

/* A field of soft_cpu as an operand, in code of blocks: from the frame on, where it is
 * near. In thunks, where the stack pointer is elsewhere: always by GS. */
struct host_memory emit_state(size_t offset);
struct host_memory emit_state_by_gs(size_t offset);
struct host_memory emit_register_slot(unsigned number);
#define STATE(field) emit_state(offsetof(struct soft_cpu, field))
#define STATE_BY_GS(field) emit_state_by_gs(offsetof(struct soft_cpu, field))

/* The host register that has a guest register's value: its own, or `scratch`, into which
 * it is loaded. */
unsigned emit_register(struct emitter *e, unsigned number, unsigned scratch);

static inline struct host_memory host_at(unsigned base, int32_t displacement)
{
    return (struct host_memory){
        .base = (uint8_t)base, .index = HOST_NO_REGISTER, .displacement = displacement};
}

/* ---- flags ---- */

unsigned emit_live_in(const struct emitter *e);
unsigned emit_live_out(const struct emitter *e);

/* Host flags are about to be overwritten by the instruction in progress, before it reads
 * or writes the guest's. To be called before the first byte that may be run again. */
void emit_spill_flags(struct emitter *e);
/* Flags to the state, or the host's; what is there stays. Both use SCRATCH. */
void emit_flags_to_state(struct emitter *e);
void emit_flags_to_host(struct emitter *e);
/* The instruction has written flags. */
void emit_flags_written(struct emitter *e);

/* Flags that the instruction needs in the host's: what it reads, and what it leaves and
 * somebody reads later. */
unsigned flags_needed(const struct instruction *instruction, unsigned live_out);
/* Flags that it reads, or may leave. */
unsigned flags_read(const struct instruction *instruction, unsigned live_out);

/* ---- sites and checks ---- */

/* A site of the instruction in progress. Flags are in the state or nowhere. */
uint32_t emit_site(struct emitter *e);
struct site *emit_site_at(struct emitter *e, uint32_t index);
/* All its sites go on here when C has done the instruction. */
void emit_next(struct emitter *e, uint32_t first_site);

/* A call of a thunk with what names a site behind it; returns its offset. */
#define EMIT_CALL_BYTES 7u
uint32_t emit_site_call(struct emitter *e, struct code_writer *writer, uint32_t thunk,
                        uint32_t site);
/* The same in the cold area; and for a link. */
uint32_t emit_cold_call(struct emitter *e, uint32_t thunk, uint32_t site);
uint32_t emit_link_stub(struct emitter *e, uint32_t thunk, uint32_t link);

/* `to` = the offset of the memory operand, cut to 32 bits if not `wide`. */
void emit_offset(struct emitter *e, unsigned to, bool wide);
/* ADDRESS = the linear address of the memory operand. */
void emit_address(struct emitter *e);
/* Checks `size` bytes at the linear address in ADDRESS; behind it emit_checked() is where
 * they are. Overwrites host flags and SCRATCH. */
struct access_check {
    unsigned size;
    bool write;
    bool aligned; /* to 16 bytes, else C raises #GP */
    bool top;     /* of the stack: a push, if it writes, or a pop */
    uint8_t segment;
};
void emit_check(struct emitter *e, struct access_check check);
/* The memory operand behind a check. */
struct host_memory emit_checked(const struct emitter *e);
/* SCRATCH is wanted: from here on that names ADDRESS only. Flags stay. */
void emit_join(struct emitter *e);

/* What an instruction does with its memory operand, if it has one. */
struct access_check access_check_of(const struct instruction *instruction);
struct access_place access_place_of(const struct instruction *instruction);
/* It can be in a group: addresses of 64 bits, no segment's base. */
static inline bool access_is_plain(const struct instruction *instruction)
{
    return instruction->address_size == 8 && instruction->segment < X86_FS;
}

/* The address and check of the memory operand, or of what lies at a register (which is
 * not homeless) plus displacement; nothing if a check before has done it. */
void emit_access(struct emitter *e, struct access_check check);
void emit_access_at(struct emitter *e, unsigned base, int32_t displacement,
                    struct access_check check);
/* Whether it has: then no flags are overwritten, and the instruction has no site. */
bool emit_is_done(const struct emitter *e, struct access_check check);
bool emit_is_done_at(const struct emitter *e, unsigned base, int32_t displacement,
                     struct access_check check);

/* group.c: fills e->last_uses. */
void find_last_uses(struct emitter *e);
/* What one check can serve, beginning with an access of the instruction in
 * progress, and with those of others as far as they can be told now. */
struct access_group find_group(const struct emitter *e, const struct access_place *place,
                               const struct access_check *check);
/* How far RSP moves, if that is a constant. */
bool stack_step(const struct instruction *instruction, int64_t *bytes);

/* loop.c: fills e->loop. */
void find_loop(struct emitter *e);
/* The copy of a TLB's entry for an access in a loop, or LOOP_PAGES: none. */
unsigned loop_page(struct emitter *e, const struct access_place *place, bool write);

/* tlb_check.c: emits translator.checks and their like. */
void tlb_check_thunks_emit(struct translator *translator, struct code_writer *writer);

/* For rules, at their end: they have left ADDRESS as functions of this header do, have no
 * site but that of a group's check, and have told which general registers they have
 * written. */
void emit_keep_group(struct emitter *e);
void emit_written(struct emitter *e, unsigned number);
void emit_stack_moved(struct emitter *e, int64_t bytes);
/* Moves STACK to where it should be. Flags stay. */
void emit_stack(struct emitter *e);

/* The instruction wants the guest's vector registers in the host's. */
void emit_vectors(struct emitter *e);

/* The instruction in progress is the interpreter's. `ends`: what follows is where RIP
 * says. */
void emit_step(struct emitter *e, bool ends);

/* ---- leaving the block: emit_exit.c ---- */

bool emit_is_same_page(const struct emitter *e, uint64_t target);
/* A jump to `target`, where `live` flags may be read; on a condition of the host's flags,
 * or always. */
void emit_exit(struct emitter *e, uint64_t target, unsigned live);
void emit_exit_if(struct emitter *e, unsigned condition, uint64_t target, unsigned live);
/* A jump on a condition to `stub`, until C aims it at a careful block for the instruction
 * in progress; returns the link. */
uint32_t emit_careful_exit_if(struct emitter *e, unsigned condition, uint32_t stub);

/* ---- look_ahead.c ---- */

/* Flags that code at `target` may read; notes what it looked at in e->granules. */
unsigned look_ahead(struct emitter *e, uint64_t target);
/* Fills live_in, live_out, live_there and live_behind. */
void find_live_flags(struct emitter *e);

#endif
