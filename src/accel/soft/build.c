/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes blocks: fetches and decodes instructions, finds out which flags anybody will
 * read, and turns each instruction into uops.
 */
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/address_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/flow_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"
#include "base/check.h"

/* What ends a block beside a branch: the next instruction is elsewhere. */
enum block_end {
    END_BRANCH,
    END_FALLTHROUGH,
    END_FALLTHROUGH_SEARCHED, /* in the next page, perhaps */
    END_UNDEFINED,
    END_TOO_LONG
};

struct draft {
    struct soft_cpu *cpu;
    uint32_t mode;
    uint64_t gpa;              /* of the first byte */
    uint64_t next_gpa;         /* of the next page, if an instruction crosses into it */
    const uint8_t *page_bytes; /* from the first byte to the page's end */
    size_t page_left;
    size_t used;      /* bytes decoded */
    size_t looked_at; /* bytes that make the first instruction an undefined one */
    enum block_end end;
    size_t count;
    struct instruction instructions[BLOCK_LIMIT];
    bool flags_dead[BLOCK_LIMIT];
};

/* ---- fetch and decode
 * --------------------------------------------------------------------------- */

static uint64_t draft_rip(const struct draft *draft)
{
    return draft->cpu->rip + draft->used;
}

/* The instruction runs into the next page: decodes it from a copy of both parts. */
static enum decode_result decode_across(struct draft *draft,
                                        struct instruction *instruction)
{
    struct soft_cpu *cpu = draft->cpu;
    uint8_t bytes[2 * INSTRUCTION_LIMIT];
    size_t first = draft->page_left - draft->used;
    const uint8_t *next;
    uint64_t next_gpa =
        soft_translate(cpu, NULL, soft_code_linear(cpu, cpu->rip + draft->page_left),
                       ACCESS_EXECUTE, cpu->cpl == 3);

    CHECK(first <= INSTRUCTION_LIMIT);
    memcpy(bytes, draft->page_bytes + draft->used, first);
    next = soft_vm_page(cpu->vm, next_gpa);
    if (next == NULL)
        memset(bytes + first, 0xff, INSTRUCTION_LIMIT); /* as outside RAM is read */
    else
        memcpy(bytes + first, next + next_gpa % X86_PAGE_BYTES, INSTRUCTION_LIMIT);
    draft->next_gpa = next_gpa;
    return soft_decode(bytes, first + INSTRUCTION_LIMIT, draft_rip(draft), draft->mode,
                       instruction);
}

/* Decodes the next instruction into the draft. False: the block ends before it. */
static bool add_instruction(struct draft *draft)
{
    struct instruction *instruction = &draft->instructions[draft->count];
    enum decode_result result =
        soft_decode(draft->page_bytes + draft->used, draft->page_left - draft->used,
                    draft_rip(draft), draft->mode, instruction);

    if (result == DECODE_MORE && draft->count == 0)
        result = decode_across(draft, instruction);
    if (result != DECODE_OK && draft->count > 0)
        return false; /* it gets a block of its own, and faults there */
    if (result == DECODE_OK) {
        draft->used += instruction->length;
        draft->count++;
        return true;
    }
    draft->end = result == DECODE_TOO_LONG ? END_TOO_LONG : END_UNDEFINED;
    draft->looked_at =
        result == DECODE_TOO_LONG ? INSTRUCTION_LIMIT : instruction->length;
    return false;
}

static void decode_block(struct draft *draft)
{
    size_t limit = (draft->mode & MODE_SINGLE) != 0 ? 1 : BLOCK_LIMIT;

    draft->end = END_FALLTHROUGH;
    while (draft->count < limit && draft->used < draft->page_left &&
           add_instruction(draft)) {
        const struct instruction *last = &draft->instructions[draft->count - 1];

        if ((last->form->attributes & FORM_ENDS) != 0) {
            if ((last->form->attributes & FORM_CONDITIONAL) == 0)
                draft->end = END_BRANCH;
            break;
        }
    }
    if (draft->end == END_FALLTHROUGH && draft->used >= draft->page_left)
        draft->end = END_FALLTHROUGH_SEARCHED;
}

/* ---- flags
 * ----------------------------------------------------------------------------------------
 */

static bool may_fault(const struct instruction *instruction)
{
    bool accesses =
        instruction->memory && (instruction->form->attributes & FORM_OFFSET_ONLY) == 0;

    return (instruction->form->attributes & FORM_PURE) == 0 || accesses;
}

/* Shifts by 0, after the count is masked, leave the flags alone (SDM vol. 2, SAL). */
static unsigned written_flags(const struct instruction *instruction)
{
    unsigned mask = instruction->operand_size == 8 ? 63 : 31;

    if ((instruction->form->attributes & FORM_COUNT) != 0 &&
        (instruction->immediate & mask) == 0)
        return 0;
    return instruction->form->flags.written;
}

/* Backwards from the end, where all flags are live: a flag is dead where it is written
 * again before anything reads it. Whatever may fault reads all, since the handler sees
 * them. */
static void find_dead_flags(struct draft *draft)
{
    unsigned live = FLAGS_ARITHMETIC;

    for (size_t i = draft->count; i-- > 0;) {
        const struct instruction *instruction = &draft->instructions[i];
        unsigned written = written_flags(instruction);

        draft->flags_dead[i] = (written & live) == 0;
        live = (live & ~written) | instruction->form->flags.read;
        if (may_fault(instruction))
            live = FLAGS_ARITHMETIC;
    }
}

/* ---- uops
 * -------------------------------------------------------------------------------------------
 */

/* Where a register operand lives in cpu->r: byte registers 4 to 7 without REX are AH to
 * BH. */
static uint8_t register_offset(const struct instruction *instruction, uint8_t number,
                               unsigned size)
{
    if (size == 1 && !instruction->has_rex && !instruction->vex && number >= 4 &&
        number < 8)
        return (uint8_t)((number - 4) * 8 + 1);
    return (uint8_t)(number * 8);
}

/* Bytes of the operand if it is a general register, 0 for other kinds. */
static unsigned general_size(const struct instruction *instruction, uint8_t operand)
{
    switch (operand) {
    case OPERAND_E8:
    case OPERAND_G8:
        return 1;
    case OPERAND_E16:
    case OPERAND_G16:
        return 2;
    case OPERAND_E32:
    case OPERAND_G32:
        return 4;
    case OPERAND_E64:
    case OPERAND_G64:
        return 8;
    case OPERAND_E:
    case OPERAND_G:
    case OPERAND_O:
        return instruction->operand_size;
    default:
        return 0;
    }
}

static bool is_rm_operand(uint8_t operand)
{
    return operand == OPERAND_E || (operand >= OPERAND_E8 && operand <= OPERAND_E64);
}

static void fill_registers(struct uop *uop, const struct instruction *instruction)
{
    uop->reg = instruction->reg;
    uop->rm = instruction->rm;
    for (size_t i = 0; i < ARRAY_SIZE(instruction->form->operands); i++) {
        uint8_t operand = instruction->form->operands[i];
        unsigned size = general_size(instruction, operand);

        if (size == 0)
            continue;
        if (is_rm_operand(operand))
            uop->rm = register_offset(instruction, instruction->rm, size);
        else
            uop->reg = register_offset(instruction, instruction->reg, size);
    }
}

static uint16_t extra_of(const struct instruction *instruction)
{
    if (instruction->vex)
        return instruction->vex_register;
    return instruction->repeat != 0 ? instruction->repeat : instruction->immediate2;
}

static void fill(struct uop *uop, const struct instruction *instruction, size_t ordinal)
{
    *uop = (struct uop){
        .immediate = instruction->immediate,
        .rip = instruction->rip,
        .displacement = (int32_t)instruction->displacement,
        .length = instruction->length,
        .ordinal = (uint8_t)ordinal,
        .base = instruction->base,
        .index = instruction->index,
        .scale = instruction->scale,
        .size = instruction->operand_size,
        .segment = instruction->segment,
        .address_size = instruction->address_size,
        .extra = extra_of(instruction),
    };
    fill_registers(uop, instruction);
    if ((instruction->form->attributes & FORM_AFTER_POP) != 0 && uop->base == X86_RSP)
        uop->displacement += uop->size;
    if ((instruction->form->attributes & FORM_ENDS) == 0)
        uop->form = instruction->form;
}

/* One or two uops for an instruction; returns how many. */
static size_t emit(struct uop *uops, const struct instruction *instruction,
                   size_t ordinal, bool flags_dead)
{
    size_t count = 0;

    if (instruction->memory) {
        soft_handler *address = address_select(instruction);

        if (address != NULL) {
            fill(&uops[count], instruction, ordinal);
            address_fill(&uops[count], instruction);
            uops[count++].run = address;
        }
    }
    fill(&uops[count], instruction, ordinal);
    if (count > 0) {
        uops[count].base = SOFT_ADDRESS;
        uops[count].index = SOFT_ZERO;
        uops[count].displacement = 0;
    }
    uops[count].run = instruction->form->select(instruction, flags_dead);
    CHECK(uops[count].run != NULL);
    return count + 1;
}

static void raise_undefined(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise(cpu, uop, X86_VECTOR_UD);
}

static void raise_too_long(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void fall_through(struct soft_cpu *cpu, const struct uop *uop)
{
    struct block *block = uop->chain;

    cpu->retired += uop->ordinal;
    cpu->rip = uop->rip;
    if (!LIKELY(block != NULL)) {
        flow_follow(cpu, uop);
        return;
    }
    FLOW_ENTER(cpu, block);
}

static void fall_through_searched(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->retired += uop->ordinal;
    cpu->rip = uop->rip;
    FLOW_ENTER(cpu, block_lookup(cpu, uop->rip));
}

static struct uop ending(const struct draft *draft)
{
    static soft_handler *const handlers[] = {
        [END_BRANCH] = NULL, /* the last instruction ends by itself */
        [END_FALLTHROUGH] = fall_through,
        [END_FALLTHROUGH_SEARCHED] = fall_through_searched,
        [END_UNDEFINED] = raise_undefined,
        [END_TOO_LONG] = raise_too_long,
    };

    return (struct uop){
        .run = handlers[draft->end],
        .rip = draft_rip(draft),
        .ordinal = (uint8_t)draft->count,
    };
}

struct block *block_build(struct soft_cpu *cpu, uint64_t gpa, uint32_t mode)
{
    struct draft draft = {
        .cpu = cpu,
        .mode = mode,
        .gpa = gpa,
        .page_bytes = soft_vm_page(cpu->vm, gpa),
        .page_left = X86_PAGE_BYTES - gpa % X86_PAGE_BYTES,
    };
    struct uop uops[2 * BLOCK_LIMIT + 1];
    struct block *block;
    size_t count = 0;

    if (draft.page_bytes == NULL)
        draft.end =
            END_UNDEFINED; /* no RAM there: reads give ff, and ff ff is undefined */
    else {
        draft.page_bytes += gpa % X86_PAGE_BYTES;
        decode_block(&draft);
    }
    find_dead_flags(&draft);
    for (size_t i = 0; i < draft.count; i++)
        count += emit(&uops[count], &draft.instructions[i], i, draft.flags_dead[i]);
    if (draft.end != END_BRANCH)
        uops[count++] = ending(&draft);
    block = block_cache_allocate(cpu->blocks, count);
    if (block == NULL)
        return NULL;
    *block = (struct block){
        .rip = cpu->rip,
        .gpa = gpa,
        .next_gpa = draft.next_gpa,
        .mode = mode,
        .byte_count = (uint16_t)max_u64(max_u64(draft.used, draft.looked_at), 1),
        .uop_count = (uint16_t)count,
    };
    memcpy(block->uops, uops, count * sizeof(uops[0]));
    return block;
}
