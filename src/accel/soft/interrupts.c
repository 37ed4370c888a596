/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on their way through the IDT (SDM vol. 3, chapter 6): faults, traps, software
 * interrupts, external interrupts, NMIs; and what becomes of faults that come while
 * another event is being delivered.
 *
 * While `delivering` is set, cpu->rip is that of the instruction an error would be
 * reported for: of INT n itself, not of the one behind it.
 */
#include "accel/soft/debug_private.h"
#include "accel/soft/frame_private.h"
#include "accel/soft/system_private.h"
#include "accel/soft/task_private.h"

/* Error codes about an IDT entry (SDM figure 6-7). */
#define ERROR_IDT 0x2u

struct event {
    uint8_t vector;
    bool has_error_code;
    bool software; /* INT n and the like: the gate's DPL counts */
    uint32_t error_code;
    uint64_t rip;   /* that the handler returns to */
    uint64_t flags; /* the image pushed */
};

/* ---- classes of events (SDM table 6-4)
 * ------------------------------------------------------------ */

enum event_class { CLASS_BENIGN, CLASS_CONTRIBUTORY, CLASS_PAGE_FAULT, CLASS_DOUBLE };

/* Interrupts are benign whatever their number: they are noted with this vector. */
#define BENIGN_VECTOR X86_VECTOR_NMI

static enum event_class class_of(uint8_t vector)
{
    switch (vector) {
    case X86_VECTOR_DE:
    case X86_VECTOR_TS:
    case X86_VECTOR_NP:
    case X86_VECTOR_SS:
    case X86_VECTOR_GP:
        return CLASS_CONTRIBUTORY;
    case X86_VECTOR_PF:
        return CLASS_PAGE_FAULT;
    case X86_VECTOR_DF:
        return CLASS_DOUBLE;
    default:
        return CLASS_BENIGN;
    }
}

/* SDM table 6-5: whether a fault during the delivery of another makes a double fault. */
static bool makes_double_fault(enum event_class first, enum event_class second)
{
    if (first == CLASS_CONTRIBUTORY)
        return second == CLASS_CONTRIBUTORY;
    return first == CLASS_PAGE_FAULT && second != CLASS_BENIGN;
}

/* Faults whose image has RF set, so that the instruction's breakpoint does not hit again
 * (SDM 17.3.1.1): all but traps, aborts and #DB. */
static bool sets_resume_flag(uint8_t vector)
{
    return vector != X86_VECTOR_DB && vector != X86_VECTOR_NMI &&
           vector != X86_VECTOR_BP && vector != X86_VECTOR_OF &&
           vector != X86_VECTOR_DF && vector != X86_VECTOR_MC;
}

/* ---- gates
 * ---------------------------------------------------------------------------------- */

static _Noreturn void raise_entry(struct soft_cpu *cpu, const struct event *event,
                                  uint8_t vector)
{
    uint32_t external = cpu->delivered_external;

    soft_raise_code(cpu, NULL, vector, (event->vector * 8u) | ERROR_IDT | external);
}

static bool is_event_gate(const struct soft_cpu *cpu, const struct descriptor *gate)
{
    switch (descriptor_is_segment(gate) ? 0 : descriptor_type(gate)) {
    case TYPE_INTERRUPT_GATE32:
    case TYPE_TRAP_GATE32:
        return true;
    case TYPE_INTERRUPT_GATE16:
    case TYPE_TRAP_GATE16:
    case TYPE_TASK_GATE:
        return !soft_in_long_mode(cpu);
    default:
        return false;
    }
}

static struct descriptor read_entry(struct soft_cpu *cpu, const struct event *event)
{
    bool long_mode = soft_in_long_mode(cpu);
    unsigned size = long_mode ? 16 : 8;
    struct descriptor gate = {0};

    if (event->vector * size + size - 1 > cpu->idt.limit)
        raise_entry(cpu, event, X86_VECTOR_GP);
    gate.linear = cpu->idt.base + (uint64_t)event->vector * size;
    if (!long_mode)
        gate.linear = (uint32_t)gate.linear;
    gate.low = soft_system_load(cpu, NULL, gate.linear, 8);
    if (long_mode)
        gate.high = (uint32_t)soft_system_load(cpu, NULL, gate.linear + 8, 8);
    if (!is_event_gate(cpu, &gate) ||
        (event->software && descriptor_dpl(&gate) < cpu->cpl))
        raise_entry(cpu, event, X86_VECTOR_GP);
    if (!descriptor_is_present(&gate))
        raise_entry(cpu, event, X86_VECTOR_NP);
    return gate;
}

static bool is_interrupt_gate(const struct descriptor *gate)
{
    return (descriptor_type(gate) & 1) == 0;
}

/* The handler's code segment; its privilege is not lower than the program's. */
static struct descriptor read_handler(struct soft_cpu *cpu, const struct descriptor *gate)
{
    uint16_t selector = gate_selector(gate);
    struct descriptor code;

    if (selector_is_null(selector))
        segment_raise(cpu, NULL, X86_VECTOR_GP, 0);
    code = descriptor_get(cpu, NULL, selector, X86_VECTOR_GP);
    if (!descriptor_is_code(&code) || descriptor_dpl(&code) > cpu->cpl)
        segment_raise(cpu, NULL, X86_VECTOR_GP, selector);
    if (soft_in_long_mode(cpu) &&
        (!descriptor_is_long(&code) || descriptor_is_big(&code)))
        segment_raise(cpu, NULL, X86_VECTOR_GP, selector);
    if ((cpu->mode & MODE_VIRTUAL86) != 0 &&
        (descriptor_is_conforming(&code) || descriptor_dpl(&code) != 0))
        segment_raise(cpu, NULL, X86_VECTOR_GP, selector);
    segment_check_target(cpu, NULL, selector, &code, gate_offset(gate));
    return code;
}

static unsigned handler_privilege(const struct soft_cpu *cpu,
                                  const struct descriptor *code)
{
    return descriptor_is_conforming(code) ? cpu->cpl : descriptor_dpl(code);
}

static void push_common(struct soft_cpu *cpu, struct frame *frame,
                        const struct event *event)
{
    frame_push(cpu, NULL, frame, event->flags);
    frame_push(cpu, NULL, frame, cpu->segments[X86_CS].selector);
    frame_push(cpu, NULL, frame, event->rip);
    if (event->has_error_code)
        frame_push(cpu, NULL, frame, event->error_code);
}

/* SDM 6.12.1: the handler runs without TF, NT, RF, VM, and behind an interrupt gate
 * without IF. */
static void enter_handler(struct soft_cpu *cpu, const struct descriptor *gate,
                          const struct descriptor *code, unsigned cpl)
{
    uint64_t cleared = X86_FLAGS_TF | X86_FLAGS_NT | X86_FLAGS_RF | X86_FLAGS_VM;

    if (is_interrupt_gate(gate))
        cleared |= X86_FLAGS_IF;
    soft_flags_set(cpu, soft_flags_get(cpu) & ~cleared);
    segment_enter_code(cpu, gate_selector(gate), code, cpl, gate_offset(gate));
}

/* ---- long mode (SDM 6.14)
 * ----------------------------------------------------------------------- */

static void deliver_long(struct soft_cpu *cpu, const struct event *event)
{
    struct descriptor gate = read_entry(cpu, event);
    struct descriptor code = read_handler(cpu, &gate);
    unsigned cpl = handler_privilege(cpu, &code);
    unsigned stack_entry = gate.low >> 32 & 7;
    uint64_t pointer = cpu->r[X86_RSP];
    struct frame frame;

    if (stack_entry != 0)
        pointer = task_interrupt_stack(cpu, NULL, stack_entry);
    else if (cpl < cpu->cpl)
        pointer = task_long_stack(cpu, NULL, cpl);
    frame = frame_on(NULL, 0, align_down(pointer, 16), 8, cpl);
    frame_reserve(cpu, NULL, &frame, event->has_error_code ? 6 : 5);
    frame_push(cpu, NULL, &frame, cpu->segments[X86_SS].selector);
    frame_push(cpu, NULL, &frame, cpu->r[X86_RSP]);
    push_common(cpu, &frame, event);
    if (cpl < cpu->cpl)
        cpu->segments[X86_SS] = segment_null((uint16_t)cpl, (uint8_t)cpl);
    frame_commit(cpu, &frame);
    enter_handler(cpu, &gate, &code, cpl);
}

/* ---- protected mode (SDM 6.12)
 * ------------------------------------------------------------------ */

static void deliver_to_task(struct soft_cpu *cpu, const struct event *event,
                            const struct descriptor *gate)
{
    uint16_t entry = (uint16_t)((event->vector * 8u) | ERROR_IDT);
    const struct task_switch to = {
        .kind = TASK_EVENT,
        .selector = task_gate_target(cpu, NULL, entry, gate),
        .return_rip = event->rip,
        .has_error_code = event->has_error_code,
        .error_code = event->error_code,
    };

    task_switch(cpu, NULL, &to);
}

static unsigned gate_slot_size(const struct descriptor *gate)
{
    return (descriptor_type(gate) & 8) != 0 ? 4 : 2;
}

static void deliver_same_level(struct soft_cpu *cpu, const struct event *event,
                               const struct descriptor *gate,
                               const struct descriptor *code)
{
    struct frame frame = frame_current(cpu, gate_slot_size(gate));

    frame_reserve(cpu, NULL, &frame, event->has_error_code ? 4 : 3);
    push_common(cpu, &frame, event);
    frame_commit(cpu, &frame);
    enter_handler(cpu, gate, code, cpu->cpl);
}

/* From virtual-8086 mode the data segments are saved, too, and then are null. */
static void push_virtual86_segments(struct soft_cpu *cpu, struct frame *frame)
{
    frame_push(cpu, NULL, frame, cpu->segments[X86_GS].selector);
    frame_push(cpu, NULL, frame, cpu->segments[X86_FS].selector);
    frame_push(cpu, NULL, frame, cpu->segments[X86_DS].selector);
    frame_push(cpu, NULL, frame, cpu->segments[X86_ES].selector);
}

static void drop_virtual86_segments(struct soft_cpu *cpu)
{
    static const enum x86_segment_register data[] = {X86_ES, X86_DS, X86_FS, X86_GS};

    for (size_t i = 0; i < ARRAY_SIZE(data); i++)
        cpu->segments[data[i]] = segment_null(0, 0);
}

static void deliver_inner(struct soft_cpu *cpu, const struct event *event,
                          const struct descriptor *gate, const struct descriptor *code)
{
    bool virtual86 = (cpu->mode & MODE_VIRTUAL86) != 0;
    unsigned cpl = descriptor_dpl(code);
    struct task_stack stack = task_inner_stack(cpu, NULL, cpl);
    struct x86_segment segment =
        segment_stack(cpu, NULL, stack.selector, cpl, X86_VECTOR_TS);
    struct frame frame =
        frame_on(&segment, stack.selector, stack.pointer, gate_slot_size(gate), cpl);

    frame_reserve(cpu, NULL, &frame, 5u + event->has_error_code + (virtual86 ? 4 : 0));
    if (virtual86)
        push_virtual86_segments(cpu, &frame);
    frame_push(cpu, NULL, &frame, cpu->segments[X86_SS].selector);
    frame_push(cpu, NULL, &frame, cpu->r[X86_RSP]);
    push_common(cpu, &frame, event);
    if (virtual86)
        drop_virtual86_segments(cpu);
    cpu->segments[X86_SS] = segment;
    frame_commit(cpu, &frame);
    enter_handler(cpu, gate, code, cpl);
}

static void deliver_protected(struct soft_cpu *cpu, const struct event *event)
{
    struct descriptor gate = read_entry(cpu, event);
    struct descriptor code;

    if (descriptor_type(&gate) == TYPE_TASK_GATE) {
        deliver_to_task(cpu, event, &gate);
        return;
    }
    code = read_handler(cpu, &gate);
    if (handler_privilege(cpu, &code) < cpu->cpl)
        deliver_inner(cpu, event, &gate, &code);
    else
        deliver_same_level(cpu, event, &gate, &code);
}

/* ---- real mode (SDM 20.1.4)
 * --------------------------------------------------------------------- */

static void deliver_real(struct soft_cpu *cpu, const struct event *event)
{
    uint64_t entry = (uint32_t)cpu->idt.base + event->vector * 4u;
    struct frame frame = frame_current(cpu, 2);
    uint32_t target;

    if (event->vector * 4u + 3 > cpu->idt.limit)
        raise_entry(cpu, event, X86_VECTOR_GP);
    target = (uint32_t)soft_system_load(cpu, NULL, entry, 4);
    frame_reserve(cpu, NULL, &frame, 3);
    frame_push(cpu, NULL, &frame, event->flags);
    frame_push(cpu, NULL, &frame, cpu->segments[X86_CS].selector);
    frame_push(cpu, NULL, &frame, event->rip);
    frame_commit(cpu, &frame);
    soft_flags_set(cpu, soft_flags_get(cpu) &
                            ~(X86_FLAGS_IF | X86_FLAGS_TF | X86_FLAGS_AC | X86_FLAGS_RF));
    segment_load_real(cpu, X86_CS, (uint16_t)(target >> 16));
    cpu->rip = target & 0xffff;
    soft_cpu_update_mode(cpu);
}

/* ---- all modes
 * ---------------------------------------------------------------------------------- */

static void deliver(struct soft_cpu *cpu, const struct event *event)
{
    if ((cpu->mode & MODE_PROTECTED) == 0)
        deliver_real(cpu, event);
    else if (soft_in_long_mode(cpu))
        deliver_long(cpu, event);
    else
        deliver_protected(cpu, event);
    cpu->delivering = false;
    cpu->activity = ACTIVITY_RUN; /* a trap behind HLT ends it */
}

/* RF that IRET has loaded counts for one instruction. The run loop sees to that only
 * while breakpoints are armed; else nobody sees RF but in the image, where it is left
 * out.
 */
static uint64_t flags_image(const struct soft_cpu *cpu)
{
    uint64_t flags = soft_flags_get(cpu);
    bool armed = (cpu->dr[7] & X86_DR7_ENABLES) != 0;

    return armed ? flags : flags & ~X86_FLAGS_RF;
}

static void shut_down(struct soft_cpu *cpu)
{
    cpu->delivering = false;
    cpu->activity = ACTIVITY_SHUTDOWN;
}

static void note_side_effects(struct soft_cpu *cpu, const struct soft_fault *fault)
{
    if (fault->vector == X86_VECTOR_PF)
        cpu->cr2 = fault->cr2;
    if (fault->vector == X86_VECTOR_DB) {
        if (fault->dr6 != 0)
            debug_note(cpu, fault->dr6);
        cpu->dr[7] &= ~X86_DR7_GD;
        soft_cpu_update_trap(cpu);
    }
}

void soft_deliver_fault(struct soft_cpu *cpu)
{
    const struct soft_fault fault = cpu->fault;
    struct event event = {
        .vector = fault.vector,
        .has_error_code = fault.has_error_code,
        .software = fault.software,
        .error_code = fault.error_code,
        .rip = cpu->rip,
        .flags = flags_image(cpu),
    };

    note_side_effects(cpu, &fault);
    if (cpu->delivering) {
        enum event_class first = class_of(cpu->delivered_vector);

        if (first == CLASS_DOUBLE) {
            shut_down(cpu);
            return;
        }
        if (makes_double_fault(first, class_of(fault.vector)))
            event = (struct event){.vector = X86_VECTOR_DF,
                                   .has_error_code = true,
                                   .rip = cpu->rip,
                                   .flags = event.flags};
    }
    if (fault.software)
        cpu->rip -= fault.length;
    else if (sets_resume_flag(event.vector))
        event.flags |= X86_FLAGS_RF;
    cpu->delivering = true;
    cpu->delivered_vector = fault.software ? BENIGN_VECTOR : event.vector;
    cpu->delivered_external = !fault.software;
    deliver(cpu, &event);
}

static void deliver_external(struct soft_cpu *cpu, uint8_t vector)
{
    const struct event event = {
        .vector = vector, .rip = cpu->rip, .flags = flags_image(cpu)};

    cpu->delivering = true;
    cpu->delivered_vector = BENIGN_VECTOR;
    cpu->delivered_external = true;
    deliver(cpu, &event);
}

void soft_deliver_interrupt(struct soft_cpu *cpu, uint8_t vector)
{
    deliver_external(cpu, vector);
}

void soft_deliver_nmi(struct soft_cpu *cpu)
{
    cpu->nmi_blocked = true;
    deliver_external(cpu, X86_VECTOR_NMI);
}
