/* SPDX-License-Identifier: Apache-2.0 */
/* PUSH POP PUSHA POPA PUSHF POPF ENTER LEAVE. */
#include "accel/soft/flow_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"
#include "accel/soft/stack_private.h"

uint64_t stack_read(struct soft_cpu *cpu, const struct uop *uop, uint64_t pointer,
                    unsigned size)
{
    uint64_t linear = stack_linear(cpu, uop, pointer, size, false);

    if (size == 8)
        return soft_load64(cpu, uop, linear);
    return size == 4 ? soft_load32(cpu, uop, linear) : soft_load16(cpu, uop, linear);
}

void stack_write(struct soft_cpu *cpu, const struct uop *uop, uint64_t pointer,
                 unsigned size, uint64_t value)
{
    uint64_t linear = stack_linear(cpu, uop, pointer, size, true);

    if (size == 8)
        soft_store64(cpu, uop, linear, value);
    else if (size == 4)
        soft_store32(cpu, uop, linear, (uint32_t)value);
    else
        soft_store16(cpu, uop, linear, (uint16_t)value);
}

/* ---- 64 bits in 64-bit code
 * ---------------------------------------------------------------- */

static void push64_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t value)
{
    soft_store_slow(cpu, uop, cpu->r[X86_RSP] - 8, 8, value);
    cpu->r[X86_RSP] -= 8;
    NEXT(cpu, uop);
}

static ALWAYS_INLINE void push64(struct soft_cpu *cpu, const struct uop *uop,
                                 uint64_t value)
{
    uint64_t linear = cpu->r[X86_RSP] - 8;
    guest_u64 *to = soft_writable(cpu, linear, 8);

    if (!LIKELY(to)) {
        push64_slow(cpu, uop, value);
        return;
    }
    *to = value;
    cpu->r[X86_RSP] = linear;
    NEXT(cpu, uop);
}

static void push64_register(struct soft_cpu *cpu, const struct uop *uop)
{
    push64(cpu, uop, REGISTER(64));
}

static void push64_rm_register(struct soft_cpu *cpu, const struct uop *uop)
{
    push64(cpu, uop, RM_REGISTER(64));
}

static void push64_immediate(struct soft_cpu *cpu, const struct uop *uop)
{
    push64(cpu, uop, uop->immediate);
}

static void push64_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    finish_read64(cpu, uop, push64);
}

static void pop64_slow(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = soft_load_slow(cpu, uop, cpu->r[X86_RSP], 8);

    cpu->r[X86_RSP] += 8;
    register_set64(cpu, uop->reg, value);
    NEXT(cpu, uop);
}

/* POP RSP: the value popped stays. */
static void pop64_register(struct soft_cpu *cpu, const struct uop *uop)
{
    const guest_u64 *from = soft_readable(cpu, cpu->r[X86_RSP], 8);

    if (!LIKELY(from)) {
        pop64_slow(cpu, uop);
        return;
    }
    cpu->r[X86_RSP] += 8;
    register_set64(cpu, uop->reg, *from);
    NEXT(cpu, uop);
}

/* ---- other sizes and modes
 * ---------------------------------------------------------------- */

static void push_register(struct soft_cpu *cpu, const struct uop *uop)
{
    stack_push(cpu, uop, uop->size, soft_register_get(cpu, uop->reg, uop->size));
    NEXT(cpu, uop);
}

static void push_rm_register(struct soft_cpu *cpu, const struct uop *uop)
{
    stack_push(cpu, uop, uop->size, soft_register_get(cpu, uop->rm, uop->size));
    NEXT(cpu, uop);
}

static void push_immediate(struct soft_cpu *cpu, const struct uop *uop)
{
    stack_push(cpu, uop, uop->size, uop->immediate);
    NEXT(cpu, uop);
}

static void push_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = uop->size == 4 ? memory_get32(cpu, uop) : memory_get16(cpu, uop);

    stack_push(cpu, uop, uop->size, value);
    NEXT(cpu, uop);
}

static void pop_into(struct soft_cpu *cpu, const struct uop *uop, uint8_t offset)
{
    uint64_t value = stack_read(cpu, uop, cpu->r[X86_RSP], uop->size);

    stack_set_pointer(cpu, cpu->r[X86_RSP] + uop->size);
    soft_register_set(cpu, offset, uop->size, value);
}

static void pop_register(struct soft_cpu *cpu, const struct uop *uop)
{
    pop_into(cpu, uop, uop->reg);
    NEXT(cpu, uop);
}

static void pop_rm_register(struct soft_cpu *cpu, const struct uop *uop)
{
    pop_into(cpu, uop, uop->rm);
    NEXT(cpu, uop);
}

/* An address through RSP already counts from behind the pop: FORM_AFTER_POP. */
static void pop_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = stack_read(cpu, uop, cpu->r[X86_RSP], uop->size);

    if (uop->size == 8)
        memory_set64(cpu, uop, value);
    else if (uop->size == 4)
        memory_set32(cpu, uop, (uint32_t)value);
    else
        memory_set16(cpu, uop, (uint16_t)value);
    stack_set_pointer(cpu, cpu->r[X86_RSP] + uop->size);
    NEXT(cpu, uop);
}

/* ---- all registers
 * ---------------------------------------------------------------- */

/* SP is pushed as it was before. */
static void pusha(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t pointer = cpu->r[X86_RSP];

    for (uint8_t i = 0; i < 8; i++) {
        pointer -= uop->size;
        stack_write(cpu, uop, pointer, uop->size, cpu->r[i]);
    }
    stack_set_pointer(cpu, pointer);
    NEXT(cpu, uop);
}

/* The slot for SP is passed over. */
static void popa(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t pointer = cpu->r[X86_RSP];

    for (unsigned i = 8; i-- > 0; pointer += uop->size)
        cpu->scratch[i] = stack_read(cpu, uop, pointer, uop->size);
    for (uint8_t i = 0; i < 8; i++)
        if (i != X86_RSP)
            soft_register_set(cpu, (uint8_t)(i * 8), uop->size, cpu->scratch[i]);
    stack_set_pointer(cpu, pointer);
    NEXT(cpu, uop);
}

/* ---- flags
 * ---------------------------------------------------------------- */

/* Virtual-8086 mode needs IOPL 3; without it the monitor does it (SDM 20.2.7). */
static void check_virtual86(struct soft_cpu *cpu, const struct uop *uop)
{
    if ((cpu->flags_system & X86_FLAGS_VM) != 0 &&
        (cpu->flags_system & X86_FLAGS_IOPL) != X86_FLAGS_IOPL)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void pushf(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t image = soft_flags_get(cpu) & ~(X86_FLAGS_VM | X86_FLAGS_RF);

    check_virtual86(cpu, uop);
    stack_push(cpu, uop, uop->size, image);
    NEXT(cpu, uop);
}

/* What POPF may change: SDM vol. 2, table 4-21. VIP, VIF and RF are cleared, VM stays. */
static uint64_t popf_mask(const struct soft_cpu *cpu, unsigned size)
{
    unsigned iopl = (unsigned)((cpu->flags_system & X86_FLAGS_IOPL) >> 12);
    uint64_t mask = FLAGS_ARITHMETIC | X86_FLAGS_TF | X86_FLAGS_DF | X86_FLAGS_NT;

    if (size != 2)
        mask |=
            X86_FLAGS_AC | X86_FLAGS_ID | X86_FLAGS_RF | X86_FLAGS_VIF | X86_FLAGS_VIP;
    if (cpu->cpl <= iopl)
        mask |= X86_FLAGS_IF;
    if (cpu->cpl == 0)
        mask |= X86_FLAGS_IOPL;
    return mask;
}

static void popf(struct soft_cpu *cpu, const struct uop *uop)
{
    const uint64_t cleared = X86_FLAGS_RF | X86_FLAGS_VIF | X86_FLAGS_VIP;
    uint64_t mask = popf_mask(cpu, uop->size);
    uint64_t image;

    check_virtual86(cpu, uop);
    image = stack_read(cpu, uop, cpu->r[X86_RSP], uop->size) & ~cleared;
    stack_set_pointer(cpu, cpu->r[X86_RSP] + uop->size);
    soft_flags_set(cpu, (soft_flags_get(cpu) & ~mask) | (image & mask));
    flow_retire(cpu, uop);
    cpu->rip = uop_next_rip(uop);
    FLOW_ENTER(cpu, block_lookup(cpu, cpu->rip));
}

/* ---- frames of procedures
 * ---------------------------------------------------------------- */

static uint64_t copy_frame_pointers(struct soft_cpu *cpu, const struct uop *uop,
                                    uint64_t pointer, unsigned level)
{
    uint64_t from = cpu->r[X86_RBP];

    for (unsigned i = 1; i < level; i++) {
        from -= uop->size;
        pointer -= uop->size;
        stack_write(cpu, uop, pointer, uop->size, stack_read(cpu, uop, from, uop->size));
    }
    return pointer;
}

/* SDM vol. 2, ENTER. The last word of the new frame must be writable too. */
static void enter(struct soft_cpu *cpu, const struct uop *uop)
{
    unsigned level = uop->extra & 31;
    uint64_t pointer = cpu->r[X86_RSP] - uop->size;
    uint64_t frame = pointer;

    stack_write(cpu, uop, pointer, uop->size, cpu->r[X86_RBP]);
    if (level > 0) {
        pointer = copy_frame_pointers(cpu, uop, pointer, level) - uop->size;
        stack_write(cpu, uop, pointer, uop->size, frame);
    }
    pointer -= uop->immediate;
    soft_check_store(cpu, uop, stack_linear(cpu, uop, pointer, uop->size, true),
                     uop->size);
    /* The pointer wraps with the stack's width, and what is above it is RSP's. */
    if (stack_mask(cpu) == UINT16_MAX)
        frame = (cpu->r[X86_RSP] & ~UINT64_C(0xffff)) | (frame & 0xffff);
    soft_register_set(cpu, X86_RBP * 8, uop->size, frame);
    stack_set_pointer(cpu, pointer);
    NEXT(cpu, uop);
}

static void leave(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t pointer = cpu->r[X86_RBP];
    uint64_t value = stack_read(cpu, uop, pointer, uop->size);

    stack_set_pointer(cpu, pointer + uop->size);
    soft_register_set(cpu, X86_RBP * 8, uop->size, value);
    NEXT(cpu, uop);
}

/* ---- choice
 * ---------------------------------------------------------------- */

soft_handler *select_stack(const struct instruction *instruction, bool flags_dead)
{
    bool flat = instruction->operand_size == 8;
    bool memory = instruction->memory;

    (void)flags_dead;
    switch (instruction->form->variant) {
    case STACK_PUSH_REGISTER:
        return flat ? push64_register : push_register;
    case STACK_PUSH_IMMEDIATE:
        return flat ? push64_immediate : push_immediate;
    case STACK_PUSH_RM:
        if (memory)
            return flat ? push64_memory : push_memory;
        return flat ? push64_rm_register : push_rm_register;
    case STACK_POP_REGISTER:
        return flat ? pop64_register : pop_register;
    case STACK_POP_RM:
        return memory ? pop_memory : pop_rm_register;
    case STACK_PUSHA:
        return pusha;
    case STACK_POPA:
        return popa;
    case STACK_PUSHF:
        return pushf;
    case STACK_POPF:
        return popf;
    case STACK_ENTER:
        return enter;
    default:
        return leave;
    }
}
