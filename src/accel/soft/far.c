/* SPDX-License-Identifier: Apache-2.0 */
/* Far JMP and CALL: direct, through call gates, to other tasks (SDM vol. 2, CALL and JMP;
 * vol. 3, 5.8). */
#include "accel/soft/frame_private.h"
#include "accel/soft/system_private.h"
#include "accel/soft/task_private.h"

/* A far transfer in progress. */
struct far {
    struct soft_cpu *cpu;
    const struct uop *uop;
    uint16_t selector;
    uint64_t offset;
    bool call;
};

static uint64_t offset_of_size(uint64_t offset, unsigned size)
{
    if (size == 2)
        return (uint16_t)offset;
    return size == 4 ? (uint32_t)offset : offset;
}

static void push_return(const struct far *far, struct frame *frame)
{
    frame_push(far->cpu, far->uop, frame, far->cpu->segments[X86_CS].selector);
    frame_push(far->cpu, far->uop, frame, uop_next_rip(far->uop));
}

/* ---- real and virtual-8086 mode
 * ---------------------------------------------------------------- */

static void transfer_real(const struct far *far)
{
    struct soft_cpu *cpu = far->cpu;

    if (far->offset > cpu->segments[X86_CS].limit)
        soft_raise_code(cpu, far->uop, X86_VECTOR_GP, 0);
    if (far->call) {
        struct frame frame = frame_current(cpu, far->uop->size);

        frame_reserve(cpu, far->uop, &frame, 2);
        push_return(far, &frame);
        frame_commit(cpu, &frame);
    }
    if ((cpu->mode & MODE_VIRTUAL86) != 0)
        segment_load_virtual86(cpu, X86_CS, far->selector);
    else
        segment_load_real(cpu, X86_CS, far->selector);
    cpu->rip = far->offset;
    soft_cpu_update_mode(cpu);
}

/* ---- to a code segment
 * ------------------------------------------------------------------------- */

/* The way to it was a selector in the instruction or an operand: same privilege. */
static void transfer_direct(const struct far *far, struct descriptor *code)
{
    struct soft_cpu *cpu = far->cpu;
    unsigned dpl = descriptor_dpl(code);
    bool allowed = descriptor_is_conforming(code)
                       ? dpl <= cpu->cpl
                       : dpl == cpu->cpl && (far->selector & SELECTOR_RPL) <= cpu->cpl;

    if (!allowed)
        segment_raise(cpu, far->uop, X86_VECTOR_GP, far->selector);
    segment_check_target(cpu, far->uop, far->selector, code, far->offset);
    if (far->call) {
        struct frame frame = frame_current(cpu, far->uop->size);

        frame_reserve(cpu, far->uop, &frame, 2);
        push_return(far, &frame);
        frame_commit(cpu, &frame);
    }
    segment_enter_code(cpu, far->selector, code, cpu->cpl, far->offset);
}

/* ---- through a call gate
 * ----------------------------------------------------------------------- */

#define GATE_PARAMETERS 31 /* at most: five bits */

/* A gate, and the code that it leads to. */
struct gate {
    struct descriptor code;
    uint16_t selector;
    uint64_t offset;
    unsigned size; /* of what it pushes */
    unsigned parameters;
};

static void call_same_level(const struct far *far, struct gate *gate)
{
    struct soft_cpu *cpu = far->cpu;
    struct frame frame = frame_current(cpu, gate->size);

    if (far->call) {
        frame_reserve(cpu, far->uop, &frame, 2);
        push_return(far, &frame);
        frame_commit(cpu, &frame);
    }
    segment_enter_code(cpu, gate->selector, &gate->code, cpu->cpl, gate->offset);
}

static void call_inner_long(const struct far *far, struct gate *gate, unsigned cpl)
{
    struct soft_cpu *cpu = far->cpu;
    uint64_t pointer = task_long_stack(cpu, far->uop, cpl);
    struct frame frame = frame_on(NULL, 0, pointer, 8, cpl);

    frame_reserve(cpu, far->uop, &frame, 4);
    frame_push(cpu, far->uop, &frame, cpu->segments[X86_SS].selector);
    frame_push(cpu, far->uop, &frame, cpu->r[X86_RSP]);
    push_return(far, &frame);
    cpu->segments[X86_SS] = segment_null((uint16_t)cpl, (uint8_t)cpl);
    frame_commit(cpu, &frame);
    segment_enter_code(cpu, gate->selector, &gate->code, cpl, gate->offset);
}

static void call_inner(const struct far *far, struct gate *gate, unsigned cpl)
{
    struct soft_cpu *cpu = far->cpu;
    struct task_stack stack = task_inner_stack(cpu, far->uop, cpl);
    struct x86_segment segment =
        segment_stack(cpu, far->uop, stack.selector, cpl, X86_VECTOR_TS);
    struct frame inner =
        frame_on(&segment, stack.selector, stack.pointer, gate->size, cpl);
    struct frame outer = frame_current(cpu, gate->size);
    uint64_t parameters[GATE_PARAMETERS];

    frame_reserve(cpu, far->uop, &inner, 4 + gate->parameters);
    for (unsigned i = 0; i < gate->parameters; i++)
        parameters[i] = frame_pop(cpu, far->uop, &outer);
    frame_push(cpu, far->uop, &inner, cpu->segments[X86_SS].selector);
    frame_push(cpu, far->uop, &inner, cpu->r[X86_RSP]);
    for (unsigned i = gate->parameters; i > 0; i--)
        frame_push(cpu, far->uop, &inner, parameters[i - 1]);
    push_return(far, &inner);
    cpu->segments[X86_SS] = segment;
    frame_commit(cpu, &inner);
    segment_enter_code(cpu, gate->selector, &gate->code, cpl, gate->offset);
}

static struct gate read_gate(const struct far *far, const struct descriptor *descriptor)
{
    struct soft_cpu *cpu = far->cpu;
    bool wide = descriptor_type(descriptor) == TYPE_CALL_GATE32;
    struct gate gate = {
        .selector = gate_selector(descriptor),
        .offset = gate_offset(descriptor),
        .size = wide ? 4 : 2,
        .parameters = descriptor->low >> 32 & 0x1f,
    };

    if (soft_in_long_mode(cpu)) {
        gate.size = 8;
        gate.parameters = 0;
    }
    if (selector_is_null(gate.selector))
        segment_raise(cpu, far->uop, X86_VECTOR_GP, 0);
    gate.code = descriptor_get(cpu, far->uop, gate.selector, X86_VECTOR_GP);
    return gate;
}

/* Long mode has gates to 64-bit code only, and its type field's continuation must be 0.
 */
static bool leads_to_code(const struct far *far, const struct descriptor *descriptor,
                          const struct gate *gate)
{
    if (!descriptor_is_code(&gate->code) || descriptor_dpl(&gate->code) > far->cpu->cpl)
        return false;
    if (!soft_in_long_mode(far->cpu))
        return true;
    return (descriptor->high >> 40 & 0x1f) == 0 && descriptor_is_long(&gate->code) &&
           !descriptor_is_big(&gate->code);
}

static void transfer_gate(const struct far *far, const struct descriptor *descriptor)
{
    struct soft_cpu *cpu = far->cpu;
    struct gate gate = read_gate(far, descriptor);
    unsigned dpl = descriptor_dpl(&gate.code);
    bool conforming = descriptor_is_conforming(&gate.code);

    if (!leads_to_code(far, descriptor, &gate) ||
        (!far->call && !conforming && dpl != cpu->cpl))
        segment_raise(cpu, far->uop, X86_VECTOR_GP, gate.selector);
    segment_check_target(cpu, far->uop, gate.selector, &gate.code, gate.offset);
    if (conforming || dpl == cpu->cpl)
        call_same_level(far, &gate);
    else if (soft_in_long_mode(cpu))
        call_inner_long(far, &gate, dpl);
    else
        call_inner(far, &gate, dpl);
}

/* ---- to another task
 * --------------------------------------------------------------------------- */

static void transfer_task(const struct far *far, uint16_t selector)
{
    const struct task_switch to = {
        .kind = far->call ? TASK_CALL : TASK_JUMP,
        .selector = selector,
        .return_rip = uop_next_rip(far->uop),
    };

    task_switch(far->cpu, far->uop, &to);
}

/* ---- by what the selector names
 * ----------------------------------------------------------------- */

static void transfer_system(const struct far *far, const struct descriptor *descriptor)
{
    struct soft_cpu *cpu = far->cpu;
    bool long_mode = soft_in_long_mode(cpu);
    unsigned dpl = descriptor_dpl(descriptor);
    unsigned type = descriptor_type(descriptor);

    if (dpl < cpu->cpl || (far->selector & SELECTOR_RPL) > dpl)
        segment_raise(cpu, far->uop, X86_VECTOR_GP, far->selector);
    if (type == TYPE_CALL_GATE32 || (type == TYPE_CALL_GATE16 && !long_mode)) {
        if (!descriptor_is_present(descriptor))
            segment_raise(cpu, far->uop, X86_VECTOR_NP, far->selector);
        transfer_gate(far, descriptor);
    } else if (!long_mode && type == TYPE_TASK_GATE) {
        transfer_task(far, task_gate_target(cpu, far->uop, far->selector, descriptor));
    } else if (!long_mode && (type == TYPE_TSS16 || type == TYPE_TSS32)) {
        transfer_task(far, far->selector);
    } else {
        segment_raise(cpu, far->uop, X86_VECTOR_GP, far->selector);
    }
}

static void transfer(const struct far *far)
{
    struct soft_cpu *cpu = far->cpu;
    struct descriptor descriptor;

    if (!soft_has_descriptors(cpu)) {
        transfer_real(far);
        return;
    }
    if (selector_is_null(far->selector))
        segment_raise(cpu, far->uop, X86_VECTOR_GP, 0);
    descriptor = descriptor_get(cpu, far->uop, far->selector, X86_VECTOR_GP);
    if (descriptor_is_code(&descriptor))
        transfer_direct(far, &descriptor);
    else if (descriptor_is_segment(&descriptor))
        segment_raise(cpu, far->uop, X86_VECTOR_GP, far->selector);
    else
        transfer_system(far, &descriptor);
}

/* ---- handlers
 * ----------------------------------------------------------------------------------- */

static void far_direct(struct soft_cpu *cpu, const struct uop *uop, bool call)
{
    const struct far far = {.cpu = cpu,
                            .uop = uop,
                            .selector = uop->extra,
                            .offset = offset_of_size(uop->immediate, uop->size),
                            .call = call};

    transfer(&far);
    flow_retire(cpu, uop);
}

static void far_indirect(struct soft_cpu *cpu, const struct uop *uop, bool call)
{
    uint64_t linear = soft_address(cpu, uop);
    const struct far far = {
        .cpu = cpu,
        .uop = uop,
        .offset = soft_load_slow(cpu, uop, linear, uop->size),
        .selector = soft_load16(cpu, uop, system_linear(cpu, linear, uop->size)),
        .call = call};

    transfer(&far);
    flow_retire(cpu, uop);
}

static void jump_direct(struct soft_cpu *cpu, const struct uop *uop)
{
    far_direct(cpu, uop, false);
}

static void call_direct(struct soft_cpu *cpu, const struct uop *uop)
{
    far_direct(cpu, uop, true);
}

static void jump_indirect(struct soft_cpu *cpu, const struct uop *uop)
{
    far_indirect(cpu, uop, false);
}

static void call_indirect(struct soft_cpu *cpu, const struct uop *uop)
{
    far_indirect(cpu, uop, true);
}

soft_handler *select_far(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[][2] = {
        [FAR_JUMP] = {jump_direct, jump_indirect},
        [FAR_CALL] = {call_direct, call_indirect},
    };

    (void)flags_dead;
    return handlers[instruction->form->variant][instruction->memory];
}
