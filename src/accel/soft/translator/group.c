/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which accesses one check can serve: those by the same registers in the instructions
 * that follow, while these registers stay, or are the stack pointer and move by
 * constants. A guess, made from the draft: who emits an instruction looks whether its
 * access has been checked (emit_access.c).
 */
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"
#include "base/check.h"

/* Instructions that are looked at. */
#define GROUP_INSTRUCTIONS 16

/* ---- one instruction ---- */

static bool has_stack_immediate(const struct instruction *instruction)
{
    const struct form *form = instruction->form;

    return form->select == select_alu && !instruction->memory &&
           instruction->rm == X86_RSP && instruction->operand_size == 8 &&
           form->operands[0] == OPERAND_E && form->operands[1] >= OPERAND_I8 &&
           form->operands[1] <= OPERAND_IV;
}

bool stack_step(const struct instruction *instruction, int64_t *bytes)
{
    const struct form *form = instruction->form;

    if (has_stack_immediate(instruction) &&
        (form->variant == ALU_ADD || form->variant == ALU_SUB)) {
        *bytes = form->variant == ALU_ADD ? (int64_t)instruction->immediate
                                          : -(int64_t)instruction->immediate;
        return true;
    }
    if (form->select == select_lea && instruction->reg == X86_RSP &&
        instruction->base == X86_RSP && instruction->index == SOFT_ZERO &&
        instruction->operand_size == 8 && instruction->address_size == 8) {
        *bytes = instruction->displacement;
        return true;
    }
    return false;
}

static bool uses_stack(const struct form *form)
{
    return form->select == select_stack || form->select == select_flow ||
           form->select == select_flow_indirect;
}

/* What an instruction accesses by emit_access or emit_access_at. */
struct member {
    struct access_place place;
    struct access_check check;
    int64_t step; /* of RSP, by a push or pop */
};

static bool stack_member(const struct instruction *instruction, struct member *member)
{
    const struct form *form = instruction->form;
    const bool pop =
        form->select == select_flow_indirect || form->variant == STACK_POP_REGISTER;

    *member = (struct member){
        .place = {.base = X86_RSP, .index = SOFT_ZERO, .displacement = pop ? 0 : -8},
        .check = {.size = 8, .write = !pop},
        .step = pop ? 8 : -8,
    };
    if (form->select == select_flow)
        return form->variant == FLOW_CALL;
    if (form->select == select_flow_indirect)
        return form->variant == FLOW_RETURN;
    return instruction->operand_size == 8 &&
           (pop || form->variant == STACK_PUSH_REGISTER ||
            form->variant == STACK_PUSH_IMMEDIATE || form->variant == STACK_PUSH_RM);
}

/* False: it accesses nothing by the same registers as `place`. */
static bool find_member(const struct instruction *instruction,
                        const struct access_place *place, struct member *member)
{
    const struct form *form = instruction->form;

    if (!instruction->memory)
        return place->base == X86_RSP && place->index == SOFT_ZERO && uses_stack(form) &&
               stack_member(instruction, member);
    if (instruction->base != place->base || instruction->index != place->index ||
        instruction->scale != place->scale ||
        (form->attributes & FORM_OFFSET_ONLY) != 0 || !access_is_plain(instruction))
        return false;
    *member = (struct member){.place = access_place_of(instruction),
                              .check = access_check_of(instruction)};
    return true;
}

/* ---- a group ---- */

/* The group's start where that keeps the first access's alignment. */
static int64_t aligned_start(int64_t first, int64_t start)
{
    return first - (int64_t)align_up((uint64_t)(first - start), CHECK_MAX_BYTES);
}

/* `first`: of the access that the check is made for. */
static void add_member(struct access_group *group, int64_t first, int64_t limit,
                       const struct member *member, int64_t moved)
{
    const int64_t start = member->place.displacement + moved;
    const int64_t end = start + member->check.size;
    const int64_t group_end = group->place.displacement + group->bytes;
    int64_t low = start < group->place.displacement ? start : group->place.displacement;
    int64_t high = end > group_end ? end : group_end;

    if (member->check.aligned &&
        (!group->aligned || (start - first) % CHECK_MAX_BYTES != 0))
        return;
    if (high - low > limit || low < INT32_MIN + GROUP_BYTES)
        return;
    if (group->aligned)
        low = aligned_start(first, low);
    if (high - low > limit)
        return;
    group->place.displacement = low;
    group->bytes = (uint8_t)(high - low);
    group->write |= member->check.write;
    group->shared = true;
}

/* RSP as it was at the first access is so far from where it is behind the instruction.
 * False: nobody knows. */
static bool follow_stack(const struct instruction *instruction,
                         const struct member *member, int64_t *moved)
{
    int64_t step = 0;

    if (member != NULL && member->step != 0) {
        step = member->step;
    } else if (!stack_step(instruction, &step)) {
        return (registers_written(instruction) >> X86_RSP & 1) == 0;
    }
    *moved += step;
    return *moved >= INT32_MIN && *moved <= INT32_MAX;
}

void find_last_uses(struct emitter *e)
{
    memset(e->last_uses, 0, sizeof(e->last_uses));
    for (size_t i = 0; i < e->draft->count; i++) {
        const struct instruction *instruction = &e->draft->instructions[i];

        if (instruction->memory)
            e->last_uses[instruction->base] = (uint8_t)i;
        if (uses_stack(instruction->form))
            e->last_uses[X86_RSP] = (uint8_t)i;
    }
}

/* An instruction that interrupts must not come before. */
static bool is_in_shadow(const struct emitter *e)
{
    const struct form *before =
        e->ordinal > 0 ? e->draft->instructions[e->ordinal - 1].form : NULL;

    return before != NULL && before->select == select_system &&
           before->variant == SYSTEM_STI;
}

struct access_group find_group(const struct emitter *e, const struct access_place *place,
                               const struct access_check *check)
{
    struct access_group group = {.place = *place,
                                 .bytes = (uint8_t)check->size,
                                 .write = check->write,
                                 .aligned = check->aligned};
    const uint32_t registers = 1u << place->base | 1u << place->index;
    const bool stack = place->base == X86_RSP;
    const size_t last = e->last_uses[place->base];
    const int64_t limit = check->top ? COPY_BYTES : GROUP_BYTES;
    int64_t moved = 0;
    size_t i = e->ordinal;

    CHECK(check->size <= GROUP_BYTES);
    if (e->careful)
        return group;
    group.write |= check->top; /* the stack's page is kept as one to write to */
    if (last <= i || is_in_shadow(e))
        return group;
    while (i <= last && i < e->ordinal + GROUP_INSTRUCTIONS) {
        const struct instruction *instruction = &e->draft->instructions[i];
        struct member member;
        const bool found = find_member(instruction, place, &member);

        if (found && i != e->ordinal)
            add_member(&group, place->displacement, limit, &member, moved);
        if (!keeps_address(instruction, e->vectors))
            break;
        if (stack ? !follow_stack(instruction, found ? &member : NULL, &moved)
                  : (registers_written(instruction) & registers) != 0)
            break;
        i++;
    }
    return group;
}
