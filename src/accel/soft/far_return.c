/* SPDX-License-Identifier: Apache-2.0 */
/* Far RET and IRET in all modes (SDM vol. 2, RET and IRET). */
#include "accel/soft/frame_private.h"
#include "accel/soft/system_private.h"
#include "accel/soft/task_private.h"

/* RFLAGS that any program may set by IRET, the upper ones only from a 32-bit image. */
#define FLAGS_ANY (FLAGS_ARITHMETIC | X86_FLAGS_TF | X86_FLAGS_DF | X86_FLAGS_NT)
#define FLAGS_ANY_WIDE (X86_FLAGS_RF | X86_FLAGS_AC | X86_FLAGS_ID)

/* What a return goes to. */
struct destination {
    uint64_t rip;
    uint64_t rsp;
    uint16_t cs;
    unsigned cpl;
    bool has_stack; /* SS:RSP are part of it */
    struct descriptor code;
    struct x86_segment stack;
};

/* ---- real and virtual-8086 mode
 * ---------------------------------------------------------------- */

static void enter_real(struct soft_cpu *cpu, uint16_t selector, uint64_t rip)
{
    if ((cpu->mode & MODE_VIRTUAL86) != 0)
        segment_load_virtual86(cpu, X86_CS, selector);
    else
        segment_load_real(cpu, X86_CS, selector);
    cpu->rip = rip;
    soft_cpu_update_mode(cpu);
}

static void check_real_rip(struct soft_cpu *cpu, const struct uop *uop, uint64_t rip)
{
    if (rip > cpu->segments[X86_CS].limit)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void return_real(struct soft_cpu *cpu, const struct uop *uop, struct frame *frame)
{
    uint64_t rip = frame_pop(cpu, uop, frame);
    uint16_t selector = frame_pop_selector(cpu, uop, frame);

    check_real_rip(cpu, uop, rip);
    frame->pointer += uop->immediate;
    frame_commit(cpu, frame);
    enter_real(cpu, selector, rip);
}

/* ---- protected mode
 * ----------------------------------------------------------------------------- */

static void check_code(struct soft_cpu *cpu, const struct uop *uop,
                       struct destination *to)
{
    unsigned dpl;

    if (selector_is_null(to->cs))
        segment_raise(cpu, uop, X86_VECTOR_GP, 0);
    to->code = descriptor_get(cpu, uop, to->cs, X86_VECTOR_GP);
    to->cpl = to->cs & SELECTOR_RPL;
    dpl = descriptor_dpl(&to->code);
    if (to->cpl < cpu->cpl || !descriptor_is_code(&to->code) ||
        (descriptor_is_conforming(&to->code) ? dpl > to->cpl : dpl != to->cpl))
        segment_raise(cpu, uop, X86_VECTOR_GP, to->cs);
    segment_check_target(cpu, uop, to->cs, &to->code, to->rip);
}

static bool goes_to_64bit_code(const struct soft_cpu *cpu, const struct destination *to)
{
    return soft_in_long_mode(cpu) && descriptor_is_long(&to->code);
}

/* Pops RSP and SS and checks them for the destination's privilege. */
static void take_stack(struct soft_cpu *cpu, const struct uop *uop, struct frame *frame,
                       struct destination *to)
{
    uint16_t selector;

    to->has_stack = true;
    to->rsp = frame_pop(cpu, uop, frame);
    selector = frame_pop_selector(cpu, uop, frame);
    if (selector_is_null(selector) && goes_to_64bit_code(cpu, to) && to->cpl != 3)
        to->stack = segment_null(selector, (uint8_t)to->cpl);
    else
        to->stack = segment_stack(cpu, uop, selector, to->cpl, X86_VECTOR_GP);
}

/* Everything has been checked. With a stack of 16 bits only SP is loaded: what is above
 * stays, as on hardware (kernels with espfix know it). */
static void leave_to(struct soft_cpu *cpu, const struct destination *to)
{
    bool outward = to->cpl > cpu->cpl;

    if (to->has_stack) {
        uint64_t mask = to->stack.db ? UINT32_MAX : UINT16_MAX;

        frame_set_pointer(cpu, to->rsp, goes_to_64bit_code(cpu, to) ? UINT64_MAX : mask);
        cpu->segments[X86_SS] = to->stack;
    }
    segment_enter_code(cpu, to->cs, &to->code, to->cpl, to->rip);
    if (outward)
        segment_drop_inner(cpu);
}

static void return_protected(struct soft_cpu *cpu, const struct uop *uop,
                             struct frame *frame)
{
    struct destination to = {.rip = frame_pop(cpu, uop, frame),
                             .cs = frame_pop_selector(cpu, uop, frame)};

    check_code(cpu, uop, &to);
    frame->pointer += uop->immediate; /* parameters, on the inner stack */
    if (to.cpl > cpu->cpl) {
        take_stack(cpu, uop, frame, &to);
        to.rsp += uop->immediate; /* ... and on the outer one */
    } else {
        frame_commit(cpu, frame);
    }
    leave_to(cpu, &to);
}

static void far_return(struct soft_cpu *cpu, const struct uop *uop)
{
    struct frame frame = frame_current(cpu, uop->size);

    if (soft_has_descriptors(cpu))
        return_protected(cpu, uop, &frame);
    else
        return_real(cpu, uop, &frame);
    flow_retire(cpu, uop);
}

/* ---- IRET
 * ---------------------------------------------------------------------------------------
 */

/* The flags after IRET at the current privilege. */
static uint64_t merge_flags(const struct soft_cpu *cpu, uint64_t image, unsigned size)
{
    uint64_t mask = FLAGS_ANY;
    bool privileged = cpu->cpl == 0;

    if (size > 2)
        mask |= FLAGS_ANY_WIDE;
    if (privileged)
        mask |= X86_FLAGS_IOPL;
    if (privileged && size > 2)
        mask |= X86_FLAGS_VIF | X86_FLAGS_VIP;
    if (cpu->cpl <= soft_io_privilege(cpu))
        mask |= X86_FLAGS_IF;
    return (soft_flags_get(cpu) & ~mask) | (image & mask);
}

static void interrupt_return_real(struct soft_cpu *cpu, const struct uop *uop,
                                  struct frame *frame)
{
    uint64_t rip;
    uint64_t image;
    uint16_t selector;

    if ((cpu->mode & MODE_VIRTUAL86) != 0 && soft_io_privilege(cpu) < 3)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    rip = frame_pop(cpu, uop, frame);
    selector = frame_pop_selector(cpu, uop, frame);
    image = frame_pop(cpu, uop, frame);
    check_real_rip(cpu, uop, rip);
    frame_commit(cpu, frame);
    enter_real(cpu, selector, rip);
    soft_flags_set(cpu, merge_flags(cpu, image, uop->size));
}

/* From CPL 0 to a virtual-8086 task: all its segments are on the stack. */
static void return_to_virtual86(struct soft_cpu *cpu, const struct uop *uop,
                                struct frame *frame, uint64_t rip, uint16_t cs,
                                uint64_t image)
{
    static const enum x86_segment_register order[] = {X86_SS, X86_ES, X86_DS, X86_FS,
                                                      X86_GS};
    uint16_t selectors[ARRAY_SIZE(order)];
    uint64_t rsp = frame_pop(cpu, uop, frame);

    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        selectors[i] = frame_pop_selector(cpu, uop, frame);
    if (rip > UINT16_MAX)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    for (size_t i = 0; i < ARRAY_SIZE(order); i++)
        segment_load_virtual86(cpu, order[i], selectors[i]);
    segment_load_virtual86(cpu, X86_CS, cs);
    cpu->r[X86_RSP] = rsp;
    cpu->rip = rip;
    cpu->cpl = 3;
    soft_flags_set(cpu, image);
    soft_cpu_update_mode(cpu);
}

static void interrupt_return_protected(struct soft_cpu *cpu, const struct uop *uop,
                                       struct frame *frame)
{
    struct destination to = {.rip = frame_pop(cpu, uop, frame),
                             .cs = frame_pop_selector(cpu, uop, frame)};
    uint64_t image = frame_pop(cpu, uop, frame);
    uint64_t flags = merge_flags(cpu, image, uop->size);

    if ((image & X86_FLAGS_VM) != 0 && uop->size == 4 && cpu->cpl == 0 &&
        !soft_in_long_mode(cpu)) {
        return_to_virtual86(cpu, uop, frame, to.rip, to.cs, image);
        return;
    }
    check_code(cpu, uop, &to);
    if (to.cpl > cpu->cpl || soft_in_64bit_code(cpu))
        take_stack(cpu, uop, frame, &to);
    else
        frame_commit(cpu, frame);
    leave_to(cpu, &to);
    soft_flags_set(cpu, flags);
}

/* NMIs are let in again even if IRET faults (SDM 6.7.1). */
static void interrupt_return(struct soft_cpu *cpu, const struct uop *uop)
{
    struct frame frame = frame_current(cpu, uop->size);

    soft_cpu_let_nmis_in(cpu);
    if (!soft_has_descriptors(cpu)) {
        interrupt_return_real(cpu, uop, &frame);
    } else if ((cpu->flags_system & X86_FLAGS_NT) == 0) {
        interrupt_return_protected(cpu, uop, &frame);
    } else {
        if (soft_in_long_mode(cpu))
            soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
        task_return(cpu, uop);
    }
    flow_retire(cpu, uop);
}

soft_handler *select_far_return(const struct instruction *instruction, bool flags_dead)
{
    (void)flags_dead;
    return instruction->form->variant == FAR_RETURN ? far_return : interrupt_return;
}
