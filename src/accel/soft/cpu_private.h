/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One software processor: its state, and the small operations every instruction is made
 * of.
 *
 * Owned by its vCPU's thread; other threads only set bits in `attention`
 * (soft_cpu_attend).
 *
 * Rule for handlers: whatever can fault comes before the first change of guest state, so
 * that a fault leaves the instruction undone. Repeated string instructions commit each
 * step.
 */
#ifndef HUSK_SOFT_CPU_PRIVATE_H
#define HUSK_SOFT_CPU_PRIVATE_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accel/accel.h"
#include "accel/soft/code_pages_private.h"
#include "accel/soft/tlb_private.h"
#include "accel/soft/translator/state_private.h"
#include "accel/soft/uop_private.h"
#include "base/bytes.h"
#include "memory/memory.h"
#include "x86/x86.h"

struct block_cache;
struct lockstep;
struct soft_vm;
struct translator;

/* Two slots behind the general registers let every address be base + (index << scale) +
 * displacement: one register that is zero, and one that an address uop has computed. */
#define SOFT_ZERO X86_REGISTER_COUNT
#define SOFT_ADDRESS (X86_REGISTER_COUNT + 1)
#define SOFT_REGISTERS (X86_REGISTER_COUNT + 2)

/* Why the run loop must look up from guest code; bits of soft_cpu.attention. */
enum soft_attention {
    ATTENTION_KICK = 0x1,      /* leave vcpu_run */
    ATTENTION_INTERRUPT = 0x2, /* the local APIC may have a vector */
    ATTENTION_NMI = 0x4,
    ATTENTION_INIT = 0x8,
    ATTENTION_STARTUP = 0x10, /* vector in startup_vector */
    ATTENTION_CODE = 0x20,    /* another vCPU wrote into code this one may have cached */
    ATTENTION_SHADOW =
        0x40, /* STI, MOV SS: no interrupt before the next instruction is done */
    ATTENTION_TRAP = 0x80, /* TF or armed breakpoints: instructions run one by one */
};

/* What the processor is doing instead of running instructions. */
enum soft_activity {
    ACTIVITY_RUN,
    ACTIVITY_HALTED,       /* HLT or MWAIT: until an interrupt */
    ACTIVITY_WAIT_STARTUP, /* after INIT: until SIPI */
    ACTIVITY_SHUTDOWN,     /* triple fault */
};

/* x87, MMX and SSE state as FXSAVE64 lays it out (SDM vol. 1, table 10-2). */
struct fx_state {
    uint16_t fcw;
    uint16_t fsw;
    uint8_t ftw; /* abridged: bit set = register in use */
    uint8_t reserved;
    uint16_t fop;
    uint64_t fip;
    uint64_t fdp;
    uint32_t mxcsr;
    uint32_t mxcsr_mask;
    uint8_t st[8][16];
    uint8_t xmm[16][16];
    uint8_t unused[96];
} __attribute__((aligned(16)));
_Static_assert(sizeof(struct fx_state) == 512, "FXSAVE area");

/* soft_cpu.watch_hits, as bits 3..0 of DR6 count them: those that trap behind the
 * instruction in progress, and above them those that wait for the one behind it (loads of
 * SS). */
#define WATCH_NOW 0xfu
#define WATCH_LATER_SHIFT 4

/* An exception on its way to the guest. */
struct soft_fault {
    uint8_t vector;
    bool has_error_code;
    bool software;  /* INT n, INT3, INTO: DPL check, rip of the next instruction */
    uint8_t length; /* of that instruction: an error on the way names it */
    uint32_t error_code;
    uint64_t cr2; /* #PF */
    uint64_t dr6; /* #DB: bits to set */
};

/* While translated code runs, the host's stack pointer is at r[10] (SOFT_FRAME), so that
 * what is behind that, as far as a displacement of one byte reaches, takes the shortest
 * operands. Calls of thunks put their return addresses over r[9] and what is before it,
 * which are nobody's then: these registers are the host's. A signal's frame goes 128
 * bytes further down (the ABI's red zone), into `stack_room`; C that code calls runs on
 * the thread's own stack. */
#define SOFT_STACK_ROOM 16384

struct soft_cpu {
    uint8_t stack_room[SOFT_STACK_ROOM];
    uint64_t r[SOFT_REGISTERS];

    /* ---- near the frame ---- */
    _Atomic uint32_t attention;
    union {
        uint16_t flags_packed; /* as `lahf; seto %al` leaves AX */
        struct {
            uint8_t flags_overflow; /* 0 or 1 */
            uint8_t flags_status;   /* SF ZF - AF - PF 1 CF */
        };
    };
    uint8_t cpl;
    bool direction;      /* DF */
    uint64_t mode_salt;  /* jump_salt(mode) */
    struct soft_mmu mmu; /* large, and touched as needed; begins with stack_pages */

    /* ---- every block touches these ---- */
    uint32_t budget; /* blocks until the run loop is entered again: bounds the host stack
                      * where the compiler did not make tail calls */
    uint32_t flags_system; /* TF IF IOPL NT RF VM AC VIF VIP ID, at their RFLAGS places */
    uint32_t mode;         /* enum soft_mode: what blocks are keyed by */
    bool single;           /* the block in progress is one instruction */
    struct tlb_entry *tlb; /* the current one of tlbs */
    uint64_t rip;     /* in the run loop and when a block has ended: next instruction */
    uint64_t retired; /* instructions, in whole blocks; one with REP is one */
    uint64_t scratch[8]; /* for handlers: operands without a host address of their own */

    /* ---- architecture ---- */
    struct x86_segment segments[X86_SEGMENT_COUNT];
    uint64_t kernel_gs_base; /* that SWAPGS gives GS */
    struct x86_table gdt;
    struct x86_table idt;
    uint64_t cr0;
    uint64_t cr2;
    uint64_t cr3;
    uint64_t cr4;
    uint64_t efer;
    uint64_t dr[8];
    uint64_t xcr0;
    uint32_t key_rights[2]; /* PKRS, PKRU: two bits a key: no access, no writes */
    struct fx_state fx;
    struct soft_msrs *msrs; /* msr.c */
    enum soft_activity activity;
    bool nmi_blocked;     /* until IRET */
    bool user_seen;       /* has run at CPL 3 */
    uint32_t pauses;      /* PAUSE instructions */
    bool step_pending;    /* TF was set before the instruction in progress */
    uint8_t watch_hits;   /* data breakpoints met: see WATCH_NOW */
    bool interrupt_waits; /* one came while IF was 0; see soft_cpu_interrupts_enabled */
    bool
        delivering; /* interrupts.c: an event is being delivered, of `delivered_vector` */
    uint8_t delivered_vector;
    bool
        delivered_external; /* ... and it is not INT n: error codes on the way have EXT */
    _Atomic bool sleeping;  /* in HLT: whoever sets attention must wake the thread */

    /* ---- time of a deterministic VM: see clock.c ---- */
    struct virtual_clock *clock; /* NULL: the host's time is used */
    uint64_t clock_ahead_ns;     /* its time minus `retired` */
    bool next_alone;             /* the next instruction is to be a block of its own */
    uint64_t random;             /* the state of RDRAND's generator */

    /* ---- out of an instruction ---- */
    jmp_buf unwind;
    struct soft_fault fault;

    /* ---- parts ---- */
    struct soft_vm *vm;
    uint32_t index;
    struct block_cache *blocks;    /* blocks.c */
    struct translator *translator; /* the VM's */
    struct lockstep *lockstep;     /* the checker of translated code; NULL: none */
    bool is_shadow;                /* of that checker: its stores go to copies */
    const struct irq_source *irq;  /* the local APIC */
    _Atomic uint32_t startup_vector;
    _Atomic uint32_t nmis_waiting; /* how many have come and were not taken */
    uint64_t code_events_seen;     /* code_pages.c */
    struct code_event locked;      /* written in a step, to be told yet; size 0: none */
    _Atomic uint64_t retired_seen; /* `retired`, as of lately, for other threads */

    /* ---- large, and touched as needed ---- */
    struct translated_state translated;
};
#define SOFT_FRAME (offsetof(struct soft_cpu, r) + 10 * sizeof(uint64_t))

/* ---- leaving an instruction
 * ---------------------------------------------------------------- */

/* How soft_cpu.unwind is left. */
enum soft_unwind {
    UNWIND_FAULT = 1, /* `fault` is to be delivered; rip is the instruction's own */
    UNWIND_AGAIN = 2, /* the instruction is undone and is to run again */
};

/* An exception of the instruction `uop` belongs to: rip is its own, nothing has changed.
 * Vectors with an error code: soft_raise_code. */
_Noreturn void soft_raise(struct soft_cpu *cpu, const struct uop *uop, uint8_t vector);
_Noreturn void soft_raise_code(struct soft_cpu *cpu, const struct uop *uop,
                               uint8_t vector, uint32_t error_code);
/* INT n and the like: rip is the next instruction's. */
_Noreturn void soft_raise_software(struct soft_cpu *cpu, const struct uop *uop,
                                   uint8_t vector);
_Noreturn void soft_raise_page_fault(struct soft_cpu *cpu, const struct uop *uop,
                                     uint64_t linear, uint32_t error_code);

/* Leaves the instruction undone, to be run again as a block of its own. */
_Noreturn void soft_run_alone(struct soft_cpu *cpu, const struct uop *uop);

/* Sets attention bits and wakes a halted processor. Any thread. */
void soft_cpu_attend(struct soft_cpu *cpu, enum soft_attention bits);

/* IF has become 1 (or the task priority lower): an interrupt that had to wait is looked
 * at again. The instruction must be the last of its block. */
void soft_cpu_interrupts_enabled(struct soft_cpu *cpu);

/* NMIs are not blocked any more: one that had to wait is taken at the end of the block.
 */
void soft_cpu_let_nmis_in(struct soft_cpu *cpu);

/* ---- derived state
 * ------------------------------------------------------------------------- */

/* Recomputes `mode` and `tlb` after a change of CR0, CR4, EFER, CS, SS or RFLAGS.VM. */
void soft_cpu_update_mode(struct soft_cpu *cpu);

/* Sets or clears ATTENTION_TRAP after a change of TF or DR7. */
void soft_cpu_update_trap(struct soft_cpu *cpu);

/* RFLAGS put together, and taken apart (all bits; the caller has masked what may not
 * change). */
uint64_t soft_flags_get(const struct soft_cpu *cpu);
void soft_flags_set(struct soft_cpu *cpu, uint64_t rflags);

/* The linear address that `rip` in CS means. */
static inline uint64_t soft_code_linear(const struct soft_cpu *cpu, uint64_t rip)
{
    if ((cpu->efer & X86_EFER_LMA) != 0 && cpu->segments[X86_CS].long_mode)
        return rip;
    return (uint32_t)(cpu->segments[X86_CS].base + rip);
}

static inline bool soft_in_64bit_code(const struct soft_cpu *cpu)
{
    return (cpu->efer & X86_EFER_LMA) != 0 && cpu->segments[X86_CS].long_mode;
}

/* ---- registers by size
 * ---------------------------------------------------------------------- */

/* `offset` is uop->reg or uop->rm. Writes of 32 bits clear the upper half, smaller ones
 * keep it. */
static inline uint8_t *soft_register8(struct soft_cpu *cpu, uint8_t offset)
{
    return (uint8_t *)cpu->r + offset;
}
typedef uint16_t register_u16
    __attribute__((may_alias)); /* a part of a 64-bit register */
static inline register_u16 *soft_register16(struct soft_cpu *cpu, uint8_t offset)
{
    return (register_u16 *)(void *)((uint8_t *)cpu->r + offset);
}
static inline uint32_t soft_register32(const struct soft_cpu *cpu, uint8_t offset)
{
    return (uint32_t)cpu->r[offset / 8];
}
static inline uint64_t *soft_register64(struct soft_cpu *cpu, uint8_t offset)
{
    return (uint64_t *)(void *)((uint8_t *)cpu->r + offset);
}

/* By a size known only at run time, for handlers that are not worth specialising. */
static inline uint64_t soft_register_get(struct soft_cpu *cpu, uint8_t offset,
                                         unsigned size)
{
    switch (size) {
    case 1:
        return *soft_register8(cpu, offset);
    case 2:
        return *soft_register16(cpu, offset);
    case 4:
        return soft_register32(cpu, offset);
    default:
        return *soft_register64(cpu, offset);
    }
}
static inline void soft_register_set(struct soft_cpu *cpu, uint8_t offset, unsigned size,
                                     uint64_t value)
{
    switch (size) {
    case 1:
        *soft_register8(cpu, offset) = (uint8_t)value;
        return;
    case 2:
        *soft_register16(cpu, offset) = (uint16_t)value;
        return;
    case 4:
        *soft_register64(cpu, offset) = (uint32_t)value;
        return;
    default:
        *soft_register64(cpu, offset) = value;
        return;
    }
}

/* ---- memory operands
 * ------------------------------------------------------------------------ */

/* The linear address of the memory operand. */
static inline uint64_t soft_address(const struct soft_cpu *cpu, const struct uop *uop)
{
    return cpu->r[uop->base] + (cpu->r[uop->index] << uop->scale) +
           (uint64_t)(int64_t)uop->displacement;
}

#endif
