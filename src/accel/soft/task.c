/* SPDX-License-Identifier: Apache-2.0 */
/* Task state segments and task switches; see task_private.h. */
#include "accel/soft/task_private.h"

#include "accel/soft/debug_private.h"
#include "accel/soft/frame_private.h"
#include "accel/soft/soft_private.h"

/* ---- layout (SDM figures 7-2, 7-10 and 7-11)
 * ------------------------------------------------------ */

#define TSS_STACKS32 4   /* ESP0, SS0, ESP1... eight bytes each */
#define TSS_STACKS16 2   /* SP0, SS0... four bytes each */
#define TSS_STACKS64 4   /* RSP0 to RSP2 */
#define TSS_TABLE64 0x24 /* IST1 to IST7 */
#define TSS_BITMAP 0x66  /* where in the TSS the I/O permission bitmap starts */
#define TSS_TRAP 0x64
#define TSS_TRAP_BIT 1u

/* Where a task's registers lie. */
struct task_layout {
    unsigned slot;      /* bytes of a register */
    unsigned rip;       /* then flags, eight registers in encoding order */
    unsigned selectors; /* ES, CS, SS, DS and, with 32 bits, FS, GS, a slot each */
    unsigned selector_count;
    unsigned ldt;
    unsigned minimum_limit;
};
static const struct task_layout layout16 = {2, 0x0e, 0x22, 4, 0x2a, 0x2b};
static const struct task_layout layout32 = {4, 0x20, 0x48, 6, 0x60, 0x67};
#define TSS_CR3 0x1c

static bool is_wide(unsigned type)
{
    return type == TYPE_TSS32 || type == TYPE_TSS32_BUSY;
}

static uint64_t tss_linear(const struct soft_cpu *cpu, uint64_t base, unsigned offset)
{
    return soft_in_long_mode(cpu) ? base + offset : (uint32_t)(base + offset);
}

/* ---- inner stacks
 * ------------------------------------------------------------------------------ */

static uint64_t load_from_task(struct soft_cpu *cpu, const struct uop *uop,
                               unsigned offset, unsigned size)
{
    const struct x86_segment *task = &cpu->segments[X86_TR];

    return soft_system_load(cpu, uop, tss_linear(cpu, task->base, offset), size);
}

static void check_in_task(struct soft_cpu *cpu, const struct uop *uop, unsigned offset,
                          unsigned size)
{
    const struct x86_segment *task = &cpu->segments[X86_TR];

    if (offset + size - 1 > task->limit)
        segment_raise(cpu, uop, X86_VECTOR_TS, task->selector);
}

struct task_stack task_inner_stack(struct soft_cpu *cpu, const struct uop *uop,
                                   unsigned cpl)
{
    bool wide = is_wide(cpu->segments[X86_TR].type);
    unsigned size = wide ? 4 : 2;
    unsigned offset = wide ? TSS_STACKS32 + 8 * cpl : TSS_STACKS16 + 4 * cpl;

    check_in_task(cpu, uop, offset, size + 2);
    return (struct task_stack){
        .pointer = load_from_task(cpu, uop, offset, size),
        .selector = (uint16_t)load_from_task(cpu, uop, offset + size, 2),
    };
}

static uint64_t long_stack(struct soft_cpu *cpu, const struct uop *uop, unsigned offset)
{
    uint64_t pointer;

    check_in_task(cpu, uop, offset, 8);
    pointer = load_from_task(cpu, uop, offset, 8);
    if (!linear_is_canonical(pointer))
        segment_raise(cpu, uop, X86_VECTOR_SS, 0);
    return pointer;
}

uint64_t task_long_stack(struct soft_cpu *cpu, const struct uop *uop, unsigned cpl)
{
    return long_stack(cpu, uop, TSS_STACKS64 + 8 * cpl);
}

uint64_t task_interrupt_stack(struct soft_cpu *cpu, const struct uop *uop, unsigned entry)
{
    return long_stack(cpu, uop, TSS_TABLE64 + 8 * (entry - 1));
}

/* ---- I/O permission (SDM vol. 1, 19.5.2)
 * -------------------------------------------------------- */

bool task_allows_port(struct soft_cpu *cpu, const struct uop *uop, uint16_t port,
                      unsigned size)
{
    const struct x86_segment *task = &cpu->segments[X86_TR];
    unsigned first;
    unsigned denied;

    if (!task->present || !is_wide(task->type) || task->limit < TSS_BITMAP + 1)
        return false;
    first = (unsigned)load_from_task(cpu, uop, TSS_BITMAP, 2) + port / 8;
    if (first + 1 > task->limit) /* two bytes are read, so that ports may span them */
        return false;
    denied = (unsigned)load_from_task(cpu, uop, first, 2) >> port % 8;
    return (denied & ((1u << size) - 1)) == 0;
}

/* ---- switch (SDM 7.3)
 * --------------------------------------------------------------------------- */

static const struct task_layout *layout_of(unsigned type)
{
    return is_wide(type) ? &layout32 : &layout16;
}

/* What a task's TSS says. */
struct task_image {
    uint64_t rip;
    uint64_t flags;
    uint64_t registers[8];
    uint16_t selectors[6]; /* ES CS SS DS FS GS */
    uint16_t ldt;
    uint32_t cr3;
    bool trap;
};

static struct task_image load_image(struct soft_cpu *cpu, const struct uop *uop,
                                    uint64_t base, const struct task_layout *layout)
{
    struct task_image image = {0};
    uint64_t slot = layout->slot;
    uint64_t at = layout->rip;

    image.rip = soft_system_load(cpu, uop, base + at, layout->slot);
    image.flags = soft_system_load(cpu, uop, base + at + slot, layout->slot);
    for (unsigned i = 0; i < 8; i++)
        image.registers[i] =
            soft_system_load(cpu, uop, base + at + (2 + i) * slot, layout->slot);
    for (unsigned i = 0; i < layout->selector_count; i++)
        image.selectors[i] =
            (uint16_t)soft_system_load(cpu, uop, base + layout->selectors + i * slot, 2);
    image.ldt = (uint16_t)soft_system_load(cpu, uop, base + layout->ldt, 2);
    if (layout == &layout32) {
        image.cr3 = (uint32_t)soft_system_load(cpu, uop, base + TSS_CR3, 4);
        image.trap = (soft_system_load(cpu, uop, base + TSS_TRAP, 2) & TSS_TRAP_BIT) != 0;
    }
    return image;
}

/* Saves the task that is left. Its TSS has been checked for writing. */
static void store_image(struct soft_cpu *cpu, const struct uop *uop,
                        const struct task_layout *layout, uint64_t rip, uint64_t flags)
{
    uint64_t base = cpu->segments[X86_TR].base;
    uint64_t slot = layout->slot;
    uint64_t at = layout->rip;

    soft_system_store(cpu, uop, base + at, layout->slot, rip);
    soft_system_store(cpu, uop, base + at + slot, layout->slot, flags);
    for (unsigned i = 0; i < 8; i++)
        soft_system_store(cpu, uop, base + at + (2 + i) * slot, layout->slot, cpu->r[i]);
    for (unsigned i = 0; i < layout->selector_count; i++)
        soft_system_store(cpu, uop, base + layout->selectors + i * slot, 2,
                          cpu->segments[i].selector);
}

/* A TSS of at most 104 bytes lies in at most two pages. */
static void check_writable(struct soft_cpu *cpu, const struct uop *uop, uint64_t base,
                           const struct task_layout *layout)
{
    (void)soft_translate(cpu, uop, base, ACCESS_WRITE, false);
    (void)soft_translate(cpu, uop, base + layout->minimum_limit, ACCESS_WRITE, false);
}

static struct descriptor find_task(struct soft_cpu *cpu, const struct uop *uop,
                                   const struct task_switch *to)
{
    uint8_t vector = to->kind == TASK_RETURN ? X86_VECTOR_TS : X86_VECTOR_GP;
    struct descriptor task;
    unsigned type;
    bool busy;

    if (selector_is_null(to->selector) || (to->selector & SELECTOR_LOCAL) != 0)
        segment_raise(cpu, uop, vector, to->selector);
    task = descriptor_get(cpu, uop, to->selector, vector);
    type = descriptor_type(&task);
    busy = (type & TYPE_BUSY) != 0;
    if (descriptor_is_segment(&task) || (type & ~(TYPE_BUSY | 8u)) != TYPE_TSS16 ||
        busy != (to->kind == TASK_RETURN))
        segment_raise(cpu, uop, vector, to->selector);
    if (!descriptor_is_present(&task))
        segment_raise(cpu, uop, X86_VECTOR_NP, to->selector);
    if (descriptor_limit(&task) < layout_of(type)->minimum_limit)
        segment_raise(cpu, uop, X86_VECTOR_TS, to->selector);
    return task;
}

/* Loads of segment registers in the new task raise #TS where MOV raises #GP. */
static void load_task_data(struct soft_cpu *cpu, enum x86_segment_register which,
                           uint16_t selector)
{
    struct descriptor descriptor;
    unsigned type;
    unsigned dpl;

    if (selector_is_null(selector)) {
        cpu->segments[which] = segment_null(selector, 0);
        return;
    }
    descriptor = descriptor_get(cpu, NULL, selector, X86_VECTOR_TS);
    type = descriptor_type(&descriptor);
    dpl = descriptor_dpl(&descriptor);
    if (!descriptor_is_segment(&descriptor) ||
        ((type & TYPE_CODE) != 0 && (type & TYPE_WRITABLE) == 0))
        segment_raise(cpu, NULL, X86_VECTOR_TS, selector);
    if ((type & (TYPE_CODE | TYPE_CONFORMING)) != (TYPE_CODE | TYPE_CONFORMING) &&
        (dpl < cpu->cpl || dpl < (selector & SELECTOR_RPL)))
        segment_raise(cpu, NULL, X86_VECTOR_TS, selector);
    if (!descriptor_is_present(&descriptor))
        segment_raise(cpu, NULL, X86_VECTOR_NP, selector);
    descriptor_mark(cpu, NULL, &descriptor, TYPE_ACCESSED);
    cpu->segments[which] = segment_of(selector, &descriptor);
}

static void load_task_code(struct soft_cpu *cpu, uint16_t selector)
{
    struct descriptor code;
    unsigned dpl;

    if (selector_is_null(selector))
        segment_raise(cpu, NULL, X86_VECTOR_TS, 0);
    code = descriptor_get(cpu, NULL, selector, X86_VECTOR_TS);
    dpl = descriptor_dpl(&code);
    if (!descriptor_is_code(&code) ||
        (descriptor_is_conforming(&code) ? dpl > cpu->cpl : dpl != cpu->cpl))
        segment_raise(cpu, NULL, X86_VECTOR_TS, selector);
    if (!descriptor_is_present(&code))
        segment_raise(cpu, NULL, X86_VECTOR_NP, selector);
    descriptor_mark(cpu, NULL, &code, TYPE_ACCESSED);
    cpu->segments[X86_CS] = segment_of(selector, &code);
}

/* Selectors are there before descriptors are read, so that a handler of a fault sees
 * them. */
static void load_task_segments(struct soft_cpu *cpu, const struct task_image *image)
{
    static const enum x86_segment_register data[] = {X86_ES, X86_DS, X86_FS, X86_GS};

    for (unsigned i = 0; i < ARRAY_SIZE(image->selectors); i++) {
        if ((cpu->flags_system & X86_FLAGS_VM) != 0)
            segment_load_virtual86(cpu, (enum x86_segment_register)i,
                                   image->selectors[i]);
        else
            cpu->segments[i] = segment_null(image->selectors[i], cpu->cpl);
    }
    soft_cpu_update_mode(cpu);
    segment_load_ldt(cpu, NULL, image->ldt, X86_VECTOR_TS);
    if ((cpu->flags_system & X86_FLAGS_VM) != 0)
        return;
    load_task_code(cpu, image->selectors[X86_CS]);
    cpu->segments[X86_SS] =
        segment_stack(cpu, NULL, image->selectors[X86_SS], cpu->cpl, X86_VECTOR_TS);
    for (size_t i = 0; i < ARRAY_SIZE(data); i++)
        load_task_data(cpu, data[i], image->selectors[data[i]]);
    soft_cpu_update_mode(cpu);
}

/* The registers of the new task; from here on faults are the new task's. */
static void load_task(struct soft_cpu *cpu, const struct task_image *image, bool wide,
                      bool nested)
{
    if (wide && (cpu->cr0 & X86_CR0_PG) != 0 && cpu->cr3 != image->cr3) {
        cpu->cr3 = image->cr3;
        soft_tlb_flush_non_global(cpu);
    }
    cpu->cr0 |= X86_CR0_TS;
    for (unsigned i = 0; i < ARRAY_SIZE(image->registers); i++)
        cpu->r[i] = image->registers[i];
    cpu->rip = image->rip;
    cpu->dr[7] &= ~UINT64_C(0x155); /* local enables (SDM 17.2.4) */
    soft_flags_set(cpu, image->flags | (nested ? X86_FLAGS_NT : 0));
    soft_cpu_update_trap(cpu);
    cpu->cpl = (cpu->flags_system & X86_FLAGS_VM) != 0
                   ? 3
                   : image->selectors[X86_CS] & SELECTOR_RPL;
    load_task_segments(cpu, image);
}

static void push_error_code(struct soft_cpu *cpu, bool wide, uint32_t error_code)
{
    struct frame frame = frame_current(cpu, wide ? 4 : 2);

    frame_reserve(cpu, NULL, &frame, 1);
    frame_push(cpu, NULL, &frame, error_code);
    frame_commit(cpu, &frame);
}

/* The old task is saved, busy bits and back-link are as the kind of switch wants them
 * (SDM table 7-2). */
static void leave_task(struct soft_cpu *cpu, const struct uop *uop,
                       const struct task_switch *to, struct descriptor *task)
{
    const struct x86_segment *old = &cpu->segments[X86_TR];
    uint64_t flags = soft_flags_get(cpu);
    struct descriptor left = {0};

    if (to->kind == TASK_RETURN)
        flags &= ~X86_FLAGS_NT;
    store_image(cpu, uop, layout_of(old->type), to->return_rip, flags);
    if (to->kind == TASK_CALL || to->kind == TASK_EVENT)
        soft_system_store(cpu, uop, descriptor_base(task), 2, old->selector);
    else if (descriptor_find(cpu, uop, old->selector, &left))
        descriptor_clear_busy(cpu, uop, &left);
    if (to->kind != TASK_RETURN)
        descriptor_mark(cpu, uop, task, TYPE_BUSY);
}

void task_switch(struct soft_cpu *cpu, const struct uop *uop,
                 const struct task_switch *to)
{
    struct descriptor task = find_task(cpu, uop, to);
    const struct task_layout *layout = layout_of(descriptor_type(&task));
    const struct x86_segment *old = &cpu->segments[X86_TR];
    uint64_t base = descriptor_base(&task);
    bool wide = layout == &layout32;
    bool nested = to->kind == TASK_CALL || to->kind == TASK_EVENT;
    struct task_image image;

    check_writable(cpu, uop, old->base, layout_of(old->type));
    check_writable(cpu, uop, base, layout);
    image = load_image(cpu, uop, base, layout);
    leave_task(cpu, uop, to, &task);
    cpu->segments[X86_TR] = segment_of(to->selector, &task);
    load_task(cpu, &image, wide, nested);
    if (to->has_error_code)
        push_error_code(cpu, wide, to->error_code);
    if (cpu->rip > cpu->segments[X86_CS].limit)
        segment_raise(cpu, NULL, X86_VECTOR_GP, 0);
    if (image.trap) {
        cpu->delivering = false;
        debug_note(cpu, X86_DR6_BT);
        soft_raise(cpu, NULL, X86_VECTOR_DB);
    }
}

void task_return(struct soft_cpu *cpu, const struct uop *uop)
{
    const struct task_switch to = {
        .kind = TASK_RETURN,
        .selector = (uint16_t)load_from_task(cpu, uop, 0, 2),
        .return_rip = uop_next_rip(uop),
    };

    task_switch(cpu, uop, &to);
}

uint16_t task_gate_target(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                          const struct descriptor *gate)
{
    if (!descriptor_is_present(gate))
        segment_raise(cpu, uop, X86_VECTOR_NP, selector);
    return gate_selector(gate);
}
