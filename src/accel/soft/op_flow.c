/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near JMP, CALL, RET, Jcc, LOOPcc, JCXZ. A target outside CS, or not canonical, raises
 * #GP at the branch. What is not taken goes on with the next uop, which build.c makes for
 * FORM_CONDITIONAL.
 */
#include "accel/soft/flags_private.h"
#include "accel/soft/flow_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/stack_private.h"

/* ---- ways to branch
 * ---------------------------------------------------------------- */

static void check_target(struct soft_cpu *cpu, const struct uop *uop, uint64_t target)
{
    bool inside = (cpu->mode & MODE_CODE64) != 0 ? linear_is_canonical(target)
                                                 : target <= cpu->segments[X86_CS].limit;

    if (!inside)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

/* To the uop's own target, which has been checked. */
static ALWAYS_INLINE void branch(struct soft_cpu *cpu, const struct uop *uop)
{
    struct block *block = uop->chain;

    flow_retire(cpu, uop);
    cpu->rip = uop->immediate;
    if (!LIKELY(block != NULL)) {
        flow_follow(cpu, uop);
        return;
    }
    FLOW_ENTER(cpu, block);
}

/* To a target that has been computed, and checked. */
static ALWAYS_INLINE void branch_indirect(struct soft_cpu *cpu, const struct uop *uop,
                                          uint64_t target)
{
    flow_retire(cpu, uop);
    cpu->rip = target;
    FLOW_ENTER(cpu, block_lookup(cpu, target));
}

/* ---- JMP and CALL with the target in the instruction
 * ---------------------------------------------------------------- */

static void jump(struct soft_cpu *cpu, const struct uop *uop)
{
    branch(cpu, uop);
}

static void jump_checked(struct soft_cpu *cpu, const struct uop *uop)
{
    check_target(cpu, uop, uop->immediate);
    branch(cpu, uop);
}

static void call_checked(struct soft_cpu *cpu, const struct uop *uop)
{
    check_target(cpu, uop, uop->immediate);
    stack_push(cpu, uop, uop->size, uop_next_rip(uop));
    branch(cpu, uop);
}

#define DEFINE_FLAT_CALL(bits)                                                           \
    static void call##bits(struct soft_cpu *cpu, const struct uop *uop)                  \
    {                                                                                    \
        if (!LIKELY(stack_push_fast##bits(cpu, (uint##bits##_t)uop_next_rip(uop)))) {    \
            call_checked(cpu, uop);                                                      \
            return;                                                                      \
        }                                                                                \
        branch(cpu, uop);                                                                \
    }
DEFINE_FLAT_CALL(32)
DEFINE_FLAT_CALL(64)
#undef DEFINE_FLAT_CALL

/* ---- Jcc: one handler a condition
 * ---------------------------------------------------------------- */

#define FOR_EACH_CONDITION(apply)                                                        \
    apply(0) apply(1) apply(2) apply(3) apply(4) apply(5) apply(6) apply(7) apply(8)     \
        apply(9) apply(10) apply(11) apply(12) apply(13) apply(14) apply(15)

#define DEFINE_JUMP(condition)                                                           \
    static void jump_if##condition(struct soft_cpu *cpu, const struct uop *uop)          \
    {                                                                                    \
        if (!soft_condition(cpu, condition))                                             \
            NEXT(cpu, uop);                                                              \
        branch(cpu, uop);                                                                \
    }                                                                                    \
    static void jump_if##condition##_checked(struct soft_cpu *cpu,                       \
                                             const struct uop *uop)                      \
    {                                                                                    \
        if (!soft_condition(cpu, condition))                                             \
            NEXT(cpu, uop);                                                              \
        jump_checked(cpu, uop);                                                          \
    }
FOR_EACH_CONDITION(DEFINE_JUMP)
#undef DEFINE_JUMP

/* Targets that lie inside the address space, or inside a flat CS, need no check at run
 * time. */
static bool needs_check(const struct instruction *instruction)
{
    if ((instruction->mode & MODE_FLAT) != 0)
        return instruction->immediate > UINT32_MAX;
    return (instruction->mode & MODE_CODE64) == 0 ||
           !linear_is_canonical(instruction->immediate);
}

soft_handler *select_jump_condition(const struct instruction *instruction,
                                    bool flags_dead)
{
#define HANDLERS(condition) {jump_if##condition, jump_if##condition##_checked},
    static soft_handler *const handlers[][2] = {FOR_EACH_CONDITION(HANDLERS)};
#undef HANDLERS

    (void)flags_dead;
    return handlers[instruction->opcode & 15][needs_check(instruction)];
}

/* ---- LOOPcc, JCXZ: counters as wide as addresses
 * ---------------------------------------------------------------- */

static uint64_t counter(struct soft_cpu *cpu, const struct uop *uop)
{
    return soft_register_get(cpu, X86_RCX * 8, uop->address_size);
}

static void jump_if_zero_counter(struct soft_cpu *cpu, const struct uop *uop)
{
    if (counter(cpu, uop) != 0)
        NEXT(cpu, uop);
    jump_checked(cpu, uop);
}

/* The counter is written only when the branch can not fault any more. */
static void loop_while(struct soft_cpu *cpu, const struct uop *uop, bool condition)
{
    uint64_t count = counter(cpu, uop) - 1;
    bool last = uop->address_size == 2   ? (uint16_t)count == 0
                : uop->address_size == 4 ? (uint32_t)count == 0
                                         : count == 0;
    bool taken = condition && !last;

    if (taken)
        check_target(cpu, uop, uop->immediate);
    soft_register_set(cpu, X86_RCX * 8, uop->address_size, count);
    if (!taken)
        NEXT(cpu, uop);
    branch(cpu, uop);
}

static void loop(struct soft_cpu *cpu, const struct uop *uop)
{
    loop_while(cpu, uop, true);
}

static void loop_equal(struct soft_cpu *cpu, const struct uop *uop)
{
    loop_while(cpu, uop, (cpu->flags_status & STATUS_ZF) != 0);
}

static void loop_not_equal(struct soft_cpu *cpu, const struct uop *uop)
{
    loop_while(cpu, uop, (cpu->flags_status & STATUS_ZF) == 0);
}

soft_handler *select_flow(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const calls[] = {call_checked, call32, call64};
    bool check = needs_check(instruction);

    (void)flags_dead;
    switch (instruction->form->variant) {
    case FLOW_JUMP:
        return check ? jump_checked : jump;
    case FLOW_CALL:
        return check ? call_checked : calls[stack_kind(instruction)];
    case FLOW_LOOPNE:
        return loop_not_equal;
    case FLOW_LOOPE:
        return loop_equal;
    case FLOW_LOOP:
        return loop;
    default:
        return jump_if_zero_counter;
    }
}

/* ---- targets in registers and memory
 * ---------------------------------------------------------------- */

static void jump_to(struct soft_cpu *cpu, const struct uop *uop, uint64_t target)
{
    check_target(cpu, uop, target);
    branch_indirect(cpu, uop, target);
}

static void call_to(struct soft_cpu *cpu, const struct uop *uop, uint64_t target)
{
    check_target(cpu, uop, target);
    stack_push(cpu, uop, uop->size, uop_next_rip(uop));
    branch_indirect(cpu, uop, target);
}

static uint64_t narrow_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    return uop->size == 4 ? memory_get32(cpu, uop) : memory_get16(cpu, uop);
}

#define DEFINE_INDIRECT(name)                                                            \
    static void name##_register(struct soft_cpu *cpu, const struct uop *uop)             \
    {                                                                                    \
        name##_to(cpu, uop, soft_register_get(cpu, uop->rm, uop->size));                 \
    }                                                                                    \
    static void name##_memory(struct soft_cpu *cpu, const struct uop *uop)               \
    {                                                                                    \
        name##_to(cpu, uop, narrow_memory(cpu, uop));                                    \
    }                                                                                    \
    static void name##64_register(struct soft_cpu * cpu, const struct uop *uop)          \
    {                                                                                    \
        name##_to(cpu, uop, RM_REGISTER(64));                                            \
    }                                                                                    \
    static void name##64_memory(struct soft_cpu * cpu, const struct uop *uop)            \
    {                                                                                    \
        finish_read64(cpu, uop, name##_to);                                              \
    }
DEFINE_INDIRECT(jump)
DEFINE_INDIRECT(call)

/* ---- RET, with as many bytes behind the return address as the immediate says
 * ---------------------------------------------------------------- */

static void ret(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t target = stack_read(cpu, uop, cpu->r[X86_RSP], uop->size);

    check_target(cpu, uop, target);
    stack_set_pointer(cpu, cpu->r[X86_RSP] + uop->size + uop->immediate);
    branch_indirect(cpu, uop, target);
}

static ALWAYS_INLINE bool is_inside64(uint64_t target)
{
    return linear_is_canonical(target);
}

static ALWAYS_INLINE bool is_inside32(uint32_t target)
{
    (void)target;
    return true; /* a flat CS has all of them */
}

#define DEFINE_FLAT_RETURN(bits)                                                         \
    static void ret##bits(struct soft_cpu *cpu, const struct uop *uop)                   \
    {                                                                                    \
        const guest_u##bits *from = stack_top##bits(cpu);                                \
        uint##bits##_t target;                                                           \
                                                                                         \
        if (!LIKELY(from)) {                                                             \
            ret(cpu, uop);                                                               \
            return;                                                                      \
        }                                                                                \
        target = *from;                                                                  \
        if (!LIKELY(is_inside##bits(target))) {                                          \
            ret(cpu, uop);                                                               \
            return;                                                                      \
        }                                                                                \
        cpu->r[X86_RSP] =                                                                \
            (uint##bits##_t)(cpu->r[X86_RSP] + (bits) / 8 + uop->immediate);             \
        branch_indirect(cpu, uop, target);                                               \
    }
DEFINE_FLAT_RETURN(32)
DEFINE_FLAT_RETURN(64)
#undef DEFINE_FLAT_RETURN

soft_handler *select_flow_indirect(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const jumps[2][2] = {{jump_register, jump_memory},
                                              {jump64_register, jump64_memory}};
    static soft_handler *const calls[2][2] = {{call_register, call_memory},
                                              {call64_register, call64_memory}};
    static soft_handler *const returns[] = {ret, ret32, ret64};
    bool flat = instruction->operand_size == 8;

    (void)flags_dead;
    switch (instruction->form->variant) {
    case FLOW_JUMP:
        return jumps[flat][instruction->memory];
    case FLOW_CALL:
        return calls[flat][instruction->memory];
    default:
        return returns[stack_kind(instruction)];
    }
}
