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

/* ---- flat stacks: 64 bits in 64-bit code, 32 bits under MODE_FLAT
 * ---------------------------------------------------------------- */

#define DEFINE_FLAT(bits)                                                                \
    static void push##bits##_slow(struct soft_cpu *cpu, const struct uop *uop,           \
                                  uint##bits##_t value)                                  \
    {                                                                                    \
        stack_push(cpu, uop, (bits) / 8, value);                                         \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static ALWAYS_INLINE void push##bits(struct soft_cpu *cpu, const struct uop *uop,    \
                                         uint##bits##_t value)                           \
    {                                                                                    \
        if (LIKELY(stack_push_fast##bits(cpu, value)))                                   \
            NEXT(cpu, uop);                                                              \
        push##bits##_slow(cpu, uop, value);                                              \
    }                                                                                    \
    static void push##bits##_register(struct soft_cpu *cpu, const struct uop *uop)       \
    {                                                                                    \
        push##bits(cpu, uop, REGISTER(bits));                                            \
    }                                                                                    \
    static void push##bits##_rm_register(struct soft_cpu *cpu, const struct uop *uop)    \
    {                                                                                    \
        push##bits(cpu, uop, RM_REGISTER(bits));                                         \
    }                                                                                    \
    static void push##bits##_immediate(struct soft_cpu *cpu, const struct uop *uop)      \
    {                                                                                    \
        push##bits(cpu, uop, IMMEDIATE(bits));                                           \
    }                                                                                    \
    static void push##bits##_memory(struct soft_cpu *cpu, const struct uop *uop)         \
    {                                                                                    \
        finish_read##bits(cpu, uop, push##bits);                                         \
    }                                                                                    \
    static void pop##bits##_slow(struct soft_cpu *cpu, const struct uop *uop)            \
    {                                                                                    \
        uint64_t value = stack_read(cpu, uop, cpu->r[X86_RSP], (bits) / 8);              \
                                                                                         \
        stack_set_pointer(cpu, cpu->r[X86_RSP] + (bits) / 8);                            \
        register_set##bits(cpu, uop->reg, (uint##bits##_t)value);                        \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    /* POP RSP: the value popped stays. */                                               \
    static void pop##bits##_register(struct soft_cpu *cpu, const struct uop *uop)        \
    {                                                                                    \
        const guest_u##bits *from = stack_top##bits(cpu);                                \
                                                                                         \
        if (!LIKELY(from)) {                                                             \
            pop##bits##_slow(cpu, uop);                                                  \
            return;                                                                      \
        }                                                                                \
        cpu->r[X86_RSP] = (uint##bits##_t)(cpu->r[X86_RSP] + (bits) / 8);                \
        register_set##bits(cpu, uop->reg, *from);                                        \
        NEXT(cpu, uop);                                                                  \
    }
DEFINE_FLAT(32)
DEFINE_FLAT(64)
#undef DEFINE_FLAT

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

/* Handlers of PUSH and POP by the stack: as SS says, flat of 32 bits, flat of 64. */
soft_handler *select_stack(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const push_registers[] = {push_register, push32_register,
                                                   push64_register};
    static soft_handler *const push_immediates[] = {push_immediate, push32_immediate,
                                                    push64_immediate};
    static soft_handler *const pushes[][2] = {{push_rm_register, push_memory},
                                              {push32_rm_register, push32_memory},
                                              {push64_rm_register, push64_memory}};
    static soft_handler *const pop_registers[] = {pop_register, pop32_register,
                                                  pop64_register};
    enum stack_kind kind = stack_kind(instruction);

    (void)flags_dead;
    switch (instruction->form->variant) {
    case STACK_PUSH_REGISTER:
        return push_registers[kind];
    case STACK_PUSH_IMMEDIATE:
        return push_immediates[kind];
    case STACK_PUSH_RM:
        return pushes[kind][instruction->memory];
    case STACK_POP_REGISTER:
        return pop_registers[kind];
    case STACK_POP_RM:
        return instruction->memory ? pop_memory : pop_rm_register;
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
