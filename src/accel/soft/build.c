/* SPDX-License-Identifier: Apache-2.0 */
/* Makes blocks: turns each instruction of a draft into uops. */
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/address_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/draft_private.h"
#include "accel/soft/flow_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"
#include "base/check.h"

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

size_t block_uops(struct uop *uops, const struct instruction *instruction, size_t ordinal,
                  bool flags_dead)
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

static void stop(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->retired++;
    cpu->rip = uop->rip;
}

struct uop block_stop(uint64_t rip)
{
    return (struct uop){.run = stop, .rip = rip};
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
    struct draft draft;
    struct uop uops[2 * BLOCK_LIMIT + 1];
    struct block *block;
    size_t count = 0;

    draft_open(&draft, cpu, gpa, mode);
    draft_decode(&draft);
    draft_find_dead_flags(&draft);
    for (size_t i = 0; i < draft.count; i++)
        count += block_uops(&uops[count], &draft.instructions[i], i, draft.flags_dead[i]);
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
        .byte_count = draft_bytes(&draft),
        .uop_count = (uint16_t)count,
    };
    memcpy(block->uops, uops, count * sizeof(uops[0]));
    return block;
}
