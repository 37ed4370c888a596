/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings operands to vector operations and their results back; see vector_private.h.
 *
 * One way serves all kinds of operands, which it finds in the form's row. The forms that
 * matter for speed, XMM with XMM or 16 bytes of memory, have a short one.
 */
#include <string.h>

#include "accel/soft/vector_private.h"
#include "accel/soft/x87_private.h"
#include "base/bytes.h"

/* ---- what there is to run on ---- */

bool vector_host_has(enum vector_need need)
{
    switch (need) {
    case NEED_SSE3:
        return __builtin_cpu_supports("sse3") != 0;
    case NEED_SSSE3:
        return __builtin_cpu_supports("ssse3") != 0;
    case NEED_SSE41:
        return __builtin_cpu_supports("sse4.1") != 0;
    case NEED_SSE42:
        return __builtin_cpu_supports("sse4.2") != 0;
    case NEED_AES:
        return __builtin_cpu_supports("aes") != 0;
    case NEED_PCLMUL:
        return __builtin_cpu_supports("pclmul") != 0;
    case NEED_SSE2:
    default:
        return true;
    }
}

static void raise_undefined(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise(cpu, uop, X86_VECTOR_UD);
}

static void raise_not_available(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise(cpu, uop, X86_VECTOR_NM);
}

/* MMX while CR0.EM or CR0.TS is set. */
static void raise_mmx(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise(cpu, uop, (cpu->cr0 & X86_CR0_EM) != 0 ? X86_VECTOR_UD : X86_VECTOR_NM);
}

/* SDM vol. 3, tables 2-2 (x87, #NM), 12-1 and 13-1. */
soft_handler *vector_unavailable(const struct instruction *instruction,
                                 enum vector_need need)
{
    uint32_t attributes = instruction->form->attributes;

    if (!vector_host_has(need))
        return raise_undefined;
    if ((attributes & FORM_SSE) != 0 && (instruction->mode & MODE_NO_SSE) != 0)
        return raise_undefined;
    if ((instruction->mode & MODE_NO_FPU) == 0)
        return NULL;
    if ((attributes & (FORM_SSE | FORM_X87)) != 0)
        return raise_not_available;
    return (attributes & FORM_MMX) != 0 ? raise_mmx : NULL;
}

/* ---- memory ---- */

/* Misaligned 16-byte operands raise #GP, in the stack segment too (SDM vol. 2, 2.4.2). */
uint64_t vector_address(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);

    if (!LIKELY(linear % 16 == 0) && (uop->form->attributes & FORM_UNALIGNED) == 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    return linear;
}

vector vector_load(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                   unsigned size)
{
    switch (size) {
    case 1:
        return vector_from_u64(soft_load8(cpu, uop, linear));
    case 2:
        return vector_from_u64(soft_load16(cpu, uop, linear));
    case 4:
        return vector_from_u64(soft_load32(cpu, uop, linear));
    case 8:
        return vector_from_u64(soft_load64(cpu, uop, linear));
    default:
        break;
    }
    if (LIKELY(soft_readable(cpu, linear, 16) != NULL)) {
        vector value;

        memcpy(&value, soft_readable(cpu, linear, 16), sizeof(value));
        return value;
    }
    soft_load_bytes(cpu, uop, linear, cpu->scratch, 16);
    return (vector){cpu->scratch[0], cpu->scratch[1]};
}

void vector_store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                  unsigned size, vector value)
{
    switch (size) {
    case 1:
        soft_store8(cpu, uop, linear, (uint8_t)value[0]);
        return;
    case 2:
        soft_store16(cpu, uop, linear, (uint16_t)value[0]);
        return;
    case 4:
        soft_store32(cpu, uop, linear, (uint32_t)value[0]);
        return;
    case 8:
        soft_store64(cpu, uop, linear, value[0]);
        return;
    default:
        break;
    }
    if (LIKELY(soft_writable(cpu, linear, 16) != NULL)) {
        memcpy(soft_writable(cpu, linear, 16), &value, sizeof(value));
        return;
    }
    memcpy(cpu->scratch, &value, sizeof(value));
    soft_store_bytes(cpu, uop, linear, cpu->scratch, 16);
}

/* ---- operands of any kind ---- */

static unsigned memory_bytes(const struct uop *uop, uint8_t operand)
{
    switch (operand) {
    case OPERAND_W:
        return 16;
    case OPERAND_W64:
    case OPERAND_Q:
        return 8;
    case OPERAND_W32:
    case OPERAND_Q32:
        return 4;
    case OPERAND_W16:
        return 2;
    default:
        return uop->size;
    }
}

static uint64_t memory_address(struct soft_cpu *cpu, const struct uop *uop, unsigned size)
{
    return size == 16 ? vector_address(cpu, uop) : soft_address(cpu, uop);
}

static vector get_register(struct soft_cpu *cpu, const struct uop *uop, uint8_t operand)
{
    switch (operand) {
    case OPERAND_V:
        return *vector_xmm(cpu, uop->reg);
    case OPERAND_W:
    case OPERAND_W64:
    case OPERAND_W32:
    case OPERAND_W16:
        return *vector_xmm(cpu, uop->rm);
    case OPERAND_P:
        return vector_from_u64(load_le64(mmx_register(cpu, uop->reg)));
    case OPERAND_Q:
    case OPERAND_Q32:
        return vector_from_u64(load_le64(mmx_register(cpu, uop->rm)));
    case OPERAND_G:
        return vector_from_u64(soft_register_get(cpu, uop->reg, uop->size));
    case OPERAND_G32:
        return vector_from_u64(soft_register32(cpu, uop->reg));
    case OPERAND_E:
        return vector_from_u64(soft_register_get(cpu, uop->rm, uop->size));
    case OPERAND_E32:
        return vector_from_u64(soft_register32(cpu, uop->rm));
    default: /* the immediate */
        return vector_from_u64(uop->immediate);
    }
}

static void set_register(struct soft_cpu *cpu, const struct uop *uop, uint8_t operand,
                         vector value)
{
    switch (operand) {
    case OPERAND_V:
        *vector_xmm(cpu, uop->reg) = value;
        return;
    case OPERAND_P:
        store_le64(mmx_register(cpu, uop->reg), value[0]);
        store_le16(mmx_register(cpu, uop->reg) + 8, 0xffff);
        return;
    case OPERAND_Q:
        store_le64(mmx_register(cpu, uop->rm), value[0]);
        store_le16(mmx_register(cpu, uop->rm) + 8, 0xffff);
        return;
    case OPERAND_G:
        soft_register_set(cpu, uop->reg, uop->size, value[0]);
        return;
    case OPERAND_G32:
        soft_register_set(cpu, uop->reg, 4, value[0]);
        return;
    case OPERAND_E:
        soft_register_set(cpu, uop->rm, uop->size, value[0]);
        return;
    case OPERAND_E32:
        soft_register_set(cpu, uop->rm, 4, value[0]);
        return;
    default: /* W of any width */
        *vector_xmm(cpu, uop->rm) = value;
        return;
    }
}

/* ---- MXCSR ---- */

#define MXCSR_HOST 0x1f80u /* what C code is entitled to: nearest, all masked */
#define MXCSR_EXCEPTIONS 0x3fu
#define MXCSR_BEFORE 0x7u /* IE DE ZE are found before anything is computed */
#define MXCSR_MASK_SHIFT 7
#define MXCSR_MASKS (MXCSR_EXCEPTIONS << MXCSR_MASK_SHIFT)
#define MXCSR_UNDERFLOW 0x10u
#define MXCSR_FLUSH 0x8000u

static uint32_t host_mxcsr(void)
{
    uint32_t value;

    asm volatile("stmxcsr %0" : "=m"(value));
    return value;
}

static void set_host_mxcsr(uint32_t value)
{
    asm volatile("ldmxcsr %0" : : "m"(value));
}

/* What the operation raises under `control`, with all exceptions masked. */
static uint32_t raised_under(uint32_t control, vector_operation *operation,
                             vector destination, vector source, const struct uop *uop,
                             vector *result)
{
    uint32_t raised;

    set_host_mxcsr((control | MXCSR_MASKS) & ~MXCSR_EXCEPTIONS);
    *result = operation(destination, source, uop);
    raised = host_mxcsr() & MXCSR_EXCEPTIONS;
    set_host_mxcsr(MXCSR_HOST);
    return raised;
}

/* Some exceptions are unmasked: what the operation raises with all of them masked tells
 * whether the guest gets #XM (SDM vol. 1, 11.5.2 and 11.5.3). Underflow is another matter
 * when it is unmasked: a tiny result counts even if it is exact, which only shows when
 * results are flushed to zero, and they are not flushed (10.2.3.3). PE beside an unmasked
 * overflow or underflow is the masked result's, which hardware does not look at; and for
 * DPPS and DPPD, which stop at the first unmasked exception, flags of all their steps
 * are set. */
static vector run_unmasked(struct soft_cpu *cpu, const struct uop *uop,
                           vector_operation *operation, vector destination, vector source)
{
    uint32_t guest = cpu->fx.mxcsr;
    uint32_t unmasked = ~guest >> MXCSR_MASK_SHIFT & MXCSR_EXCEPTIONS;
    uint32_t raised = 0;
    uint32_t control = guest;
    vector result;

    if ((unmasked & MXCSR_UNDERFLOW) != 0) {
        raised = MXCSR_UNDERFLOW & raised_under(guest | MXCSR_FLUSH, operation,
                                                destination, source, uop, &result);
        control &= ~MXCSR_FLUSH;
    }
    raised |= raised_under(control, operation, destination, source, uop, &result);
    if ((raised & unmasked & MXCSR_BEFORE) != 0)
        raised &= MXCSR_BEFORE;
    cpu->fx.mxcsr = guest | raised;
    if ((raised & unmasked) != 0)
        soft_raise(cpu, uop,
                   (cpu->cr4 & X86_CR4_OSXMMEXCPT) != 0 ? X86_VECTOR_XM : X86_VECTOR_UD);
    return result;
}

/* Nothing else in the process looks at the sticky flags, so the host keeps the guest's
 * MXCSR where its control bits are the usual ones. */
static vector run_float(struct soft_cpu *cpu, const struct uop *uop,
                        vector_operation *operation, vector destination, vector source)
{
    uint32_t guest = cpu->fx.mxcsr;
    vector result;

    if ((guest & MXCSR_MASKS) != MXCSR_MASKS)
        return run_unmasked(cpu, uop, operation, destination, source);
    if (host_mxcsr() != guest)
        set_host_mxcsr(guest);
    result = operation(destination, source, uop);
    cpu->fx.mxcsr = host_mxcsr();
    if ((guest & ~MXCSR_EXCEPTIONS) != MXCSR_HOST)
        set_host_mxcsr(MXCSR_HOST);
    return result;
}

/* ---- handlers ---- */

static const struct vector_row *const families[FAMILY_COUNT] = {
    [FAMILY_INTEGER] = vector_integer_rows, [FAMILY_MMX] = vector_mmx_rows,
    [FAMILY_FLOAT] = vector_float_rows,     [FAMILY_CONVERT] = vector_convert_rows,
    [FAMILY_MOVE] = vector_move_rows,       [FAMILY_IMMEDIATE] = vector_immediate_rows,
};

static inline const struct vector_row *row_of(const struct form *form)
{
    return &families[form->variant >> 8][form->variant & 0xff];
}

static vector run(struct soft_cpu *cpu, const struct uop *uop,
                  const struct vector_row *row, vector destination, vector source)
{
    if ((row->attributes & VECTOR_FLOAT) != 0)
        return run_float(cpu, uop, row->run, destination, source);
    return row->run(destination, source, uop);
}

static void put_result(struct soft_cpu *cpu, const struct uop *uop,
                       const struct vector_row *row, vector result)
{
    if ((row->attributes & VECTOR_FLAGS) != 0)
        cpu->flags_packed = (uint16_t)result[0];
    else
        set_register(cpu, uop, uop->form->operands[0], result);
}

static void any_register(struct soft_cpu *cpu, const struct uop *uop)
{
    const struct form *form = uop->form;
    const struct vector_row *row = row_of(form);

    if ((form->attributes & FORM_MMX) != 0) {
        x87_check_pending(cpu, uop);
        mmx_enter(cpu);
    }
    put_result(cpu, uop, row,
               run(cpu, uop, row, get_register(cpu, uop, form->operands[0]),
                   get_register(cpu, uop, form->operands[1])));
    NEXT(cpu, uop);
}

static void any_load(struct soft_cpu *cpu, const struct uop *uop)
{
    const struct form *form = uop->form;
    const struct vector_row *row = row_of(form);
    unsigned size = memory_bytes(uop, form->operands[1]);
    vector source;

    if ((form->attributes & FORM_MMX) != 0)
        x87_check_pending(cpu, uop);
    source = vector_load(cpu, uop, memory_address(cpu, uop, size), size);
    if ((form->attributes & FORM_MMX) != 0)
        mmx_enter(cpu);
    put_result(cpu, uop, row,
               run(cpu, uop, row, get_register(cpu, uop, form->operands[0]), source));
    NEXT(cpu, uop);
}

/* No operation with a memory destination reads it, or raises #XM. */
static void any_store(struct soft_cpu *cpu, const struct uop *uop)
{
    const struct form *form = uop->form;
    unsigned size = memory_bytes(uop, form->operands[0]);
    vector source;

    if ((form->attributes & FORM_MMX) != 0)
        x87_check_pending(cpu, uop);
    source = get_register(cpu, uop, form->operands[1]);
    vector_store(cpu, uop, memory_address(cpu, uop, size), size,
                 row_of(form)->run(source, source, uop));
    if ((form->attributes & FORM_MMX) != 0)
        mmx_enter(cpu);
    NEXT(cpu, uop);
}

/* V and W. */
static void xmm_register(struct soft_cpu *cpu, const struct uop *uop)
{
    vector *destination = vector_xmm(cpu, uop->reg);

    *destination = row_of(uop->form)->run(*destination, *vector_xmm(cpu, uop->rm), uop);
    NEXT(cpu, uop);
}

static void xmm_load(struct soft_cpu *cpu, const struct uop *uop)
{
    vector *destination = vector_xmm(cpu, uop->reg);
    vector source = vector_load(cpu, uop, vector_address(cpu, uop), 16);

    *destination = row_of(uop->form)->run(*destination, source, uop);
    NEXT(cpu, uop);
}

/* MOVAPS and its many synonyms. */
static void move_register(struct soft_cpu *cpu, const struct uop *uop)
{
    *vector_xmm(cpu, uop->reg) = *vector_xmm(cpu, uop->rm);
    NEXT(cpu, uop);
}

static void move_load(struct soft_cpu *cpu, const struct uop *uop)
{
    *vector_xmm(cpu, uop->reg) = vector_load(cpu, uop, vector_address(cpu, uop), 16);
    NEXT(cpu, uop);
}

static void move_store(struct soft_cpu *cpu, const struct uop *uop)
{
    vector_store(cpu, uop, vector_address(cpu, uop), 16, *vector_xmm(cpu, uop->reg));
    NEXT(cpu, uop);
}

static bool is_register_operand(uint8_t operand)
{
    return operand == OPERAND_V || operand == OPERAND_P || operand == OPERAND_G ||
           operand == OPERAND_G32;
}

soft_handler *select_vector(const struct instruction *instruction, bool flags_dead)
{
    const struct form *form = instruction->form;
    const struct vector_row *row = row_of(form);
    bool whole = form->variant == VECTOR_VARIANT(FAMILY_MOVE, MOVE_ALL);
    soft_handler *unavailable =
        vector_unavailable(instruction, (enum vector_need)row->need);

    (void)flags_dead;
    if (unavailable != NULL)
        return unavailable;
    if (form->operands[0] == OPERAND_V && form->operands[1] == OPERAND_W &&
        row->attributes == 0) {
        if (whole)
            return instruction->memory ? move_load : move_register;
        return instruction->memory ? xmm_load : xmm_register;
    }
    if (!instruction->memory)
        return any_register;
    if (is_register_operand(form->operands[0]))
        return any_load;
    if (whole && form->operands[0] == OPERAND_W)
        return move_store;
    return any_store;
}

/* ---- the mask in XMM0: PBLENDVB, BLENDVPS, BLENDVPD ---- */

typedef vector masked_operation(vector destination, vector source, vector mask);

#define DEFINE_MASKED(name)                                                              \
    static vector name(vector destination, vector source, vector mask)                   \
    {                                                                                    \
        asm(#name " %%xmm0, %1, %0" : "+x"(destination) : "x"(source), "Yz"(mask));      \
        return destination;                                                              \
    }
DEFINE_MASKED(pblendvb)
DEFINE_MASKED(blendvps)
DEFINE_MASKED(blendvpd)
#undef DEFINE_MASKED

static masked_operation *const masked[] = {
    [MASKED_PBLENDVB] = pblendvb,
    [MASKED_BLENDVPS] = blendvps,
    [MASKED_BLENDVPD] = blendvpd,
};

static void masked_register(struct soft_cpu *cpu, const struct uop *uop)
{
    vector *destination = vector_xmm(cpu, uop->reg);

    *destination = masked[uop->form->variant](*destination, *vector_xmm(cpu, uop->rm),
                                              *vector_xmm(cpu, 0));
    NEXT(cpu, uop);
}

static void masked_load(struct soft_cpu *cpu, const struct uop *uop)
{
    vector *destination = vector_xmm(cpu, uop->reg);
    vector source = vector_load(cpu, uop, vector_address(cpu, uop), 16);

    *destination = masked[uop->form->variant](*destination, source, *vector_xmm(cpu, 0));
    NEXT(cpu, uop);
}

soft_handler *select_vector_masked(const struct instruction *instruction, bool flags_dead)
{
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE41);

    (void)flags_dead;
    if (unavailable != NULL)
        return unavailable;
    return instruction->memory ? masked_load : masked_register;
}
