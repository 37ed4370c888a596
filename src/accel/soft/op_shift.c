/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROL ROR RCL RCR SHL SHR SAR, SHLD SHRD.
 *
 * Each on the host's instruction with the guest's flags before it, so that a count of 0
 * leaves them; SHL, SHR and SAR by a known other count without ("fresh"); and in C for
 * when nobody will look at the flags ("quiet"). The host masks counts as the guest does.
 */
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

/* ---- operations
 * ---------------------------------------------------------------------------------- */

#define DEFINE_OPERATION(name, bits, suffix)                                             \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t count)               \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        asm(FLAGS_LOAD #name suffix " %%cl, %[target]\n\t" FLAGS_SAVE                    \
            : [target] "+r"(target), "+a"(packed)                                        \
            : "c"(count)                                                                 \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }
#define DEFINE_FRESH(name, bits, suffix)                                                 \
    static ALWAYS_INLINE uint##bits##_t fresh_##name##bits(                              \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t count)               \
    {                                                                                    \
        uint16_t packed;                                                                 \
                                                                                         \
        asm(#name suffix " %%cl, %[target]\n\t" FLAGS_SAVE                               \
            : [target] "+r"(target), "=a"(packed)                                        \
            : "c"(count)                                                                 \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }
#define DEFINE_QUIET(name, bits, expression)                                             \
    static ALWAYS_INLINE uint##bits##_t quiet_##name##bits(                              \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t count)               \
    {                                                                                    \
        unsigned by = count & (bits == 64 ? 63 : 31);                                    \
                                                                                         \
        (void)cpu;                                                                       \
        return (uint##bits##_t)(expression);                                             \
    }
/* Narrow targets are shifted in 64 bits, which the greatest count does not exceed. */
#define DEFINE_QUIET_SHIFTS(unused, bits, suffix)                                        \
    DEFINE_QUIET(shl, bits, (uint64_t)target << by)                                      \
    DEFINE_QUIET(shr, bits, (uint64_t)target >> by)                                      \
    DEFINE_QUIET(sar, bits, (int64_t)(int##bits##_t)target >> by)                        \
    DEFINE_QUIET(rol, bits,                                                              \
                 target << (by % bits) | target >> ((bits - by % bits) % bits))          \
    DEFINE_QUIET(ror, bits, target >> (by % bits) | target << ((bits - by % bits) % bits))

FOR_EACH_SIZE(DEFINE_OPERATION, rol)
FOR_EACH_SIZE(DEFINE_OPERATION, ror)
FOR_EACH_SIZE(DEFINE_OPERATION, rcl)
FOR_EACH_SIZE(DEFINE_OPERATION, rcr)
FOR_EACH_SIZE(DEFINE_OPERATION, shl)
FOR_EACH_SIZE(DEFINE_OPERATION, shr)
FOR_EACH_SIZE(DEFINE_OPERATION, sar)
FOR_EACH_SIZE(DEFINE_FRESH, shl)
FOR_EACH_SIZE(DEFINE_FRESH, shr)
FOR_EACH_SIZE(DEFINE_FRESH, sar)
FOR_EACH_SIZE(DEFINE_QUIET_SHIFTS, )

/* ---- handlers
 * ---------------------------------------------------------------------------------- */

/* Register or memory, count immediate or in CL. */
enum shift_form { SHIFT_RI, SHIFT_MI, SHIFT_RC, SHIFT_MC, SHIFT_FORMS };

#define COUNT_CL register_get8(cpu, X86_RCX * 8)
#define COUNT_IMMEDIATE ((uint8_t)uop->immediate)

#define DEFINE_SHIFT(name, bits, suffix)                                                 \
    DEFINE_HANDLER(                                                                      \
        name, bits, ri,                                                                  \
        register_set##bits(cpu, uop->rm,                                                 \
                           name##bits(cpu, RM_REGISTER(bits), COUNT_IMMEDIATE)))         \
    DEFINE_HANDLER(                                                                      \
        name, bits, rc,                                                                  \
        register_set##bits(cpu, uop->rm, name##bits(cpu, RM_REGISTER(bits), COUNT_CL)))  \
    DEFINE_FINISHED(name, bits, mi,                                                      \
                    finish_update##bits(cpu, uop, name##bits, COUNT_IMMEDIATE))          \
    DEFINE_FINISHED(name, bits, mc, finish_update##bits(cpu, uop, name##bits, COUNT_CL))
FOR_EACH_SIZE(DEFINE_SHIFT, rol)
FOR_EACH_SIZE(DEFINE_SHIFT, ror)
FOR_EACH_SIZE(DEFINE_SHIFT, rcl)
FOR_EACH_SIZE(DEFINE_SHIFT, rcr)
FOR_EACH_SIZE(DEFINE_SHIFT, shl)
FOR_EACH_SIZE(DEFINE_SHIFT, shr)
FOR_EACH_SIZE(DEFINE_SHIFT, sar)
FOR_EACH_SIZE(DEFINE_SHIFT, fresh_shl)
FOR_EACH_SIZE(DEFINE_SHIFT, fresh_shr)
FOR_EACH_SIZE(DEFINE_SHIFT, fresh_sar)
FOR_EACH_SIZE(DEFINE_SHIFT, quiet_rol)
FOR_EACH_SIZE(DEFINE_SHIFT, quiet_ror)
FOR_EACH_SIZE(DEFINE_SHIFT, quiet_shl)
FOR_EACH_SIZE(DEFINE_SHIFT, quiet_shr)
FOR_EACH_SIZE(DEFINE_SHIFT, quiet_sar)

#define FORMS(name, bits)                                                                \
    {                                                                                    \
        [SHIFT_RI] = name##bits##_ri, [SHIFT_MI] = name##bits##_mi,                      \
        [SHIFT_RC] = name##bits##_rc, [SHIFT_MC] = name##bits##_mc,                      \
    }
#define SIZES(name)                                                                      \
    {                                                                                    \
        FORMS(name, 8), FORMS(name, 16), FORMS(name, 32), FORMS(name, 64)                \
    }

/* How much a handler has to do with flags. */
enum shift_care { CARE_LOAD, CARE_FRESH, CARE_QUIET, SHIFT_CARES };

static soft_handler *const handlers[][SHIFT_CARES][SIZE_INDEXES][SHIFT_FORMS] = {
    [SHIFT_ROL] = {SIZES(rol), SIZES(rol), SIZES(quiet_rol)},
    [SHIFT_ROR] = {SIZES(ror), SIZES(ror), SIZES(quiet_ror)},
    [SHIFT_RCL] = {SIZES(rcl), SIZES(rcl), SIZES(rcl)},
    [SHIFT_RCR] = {SIZES(rcr), SIZES(rcr), SIZES(rcr)},
    [SHIFT_SHL] = {SIZES(shl), SIZES(fresh_shl), SIZES(quiet_shl)},
    [SHIFT_SHR] = {SIZES(shr), SIZES(fresh_shr), SIZES(quiet_shr)},
    [SHIFT_SAL] = {SIZES(shl), SIZES(fresh_shl), SIZES(quiet_shl)},
    [SHIFT_SAR] = {SIZES(sar), SIZES(fresh_sar), SIZES(quiet_sar)},
};

static bool count_in_cl(const struct instruction *instruction)
{
    const uint8_t *operands = instruction->form->operands;

    return operands[1] == OPERAND_CL || operands[2] == OPERAND_CL;
}

soft_handler *select_shift(const struct instruction *instruction, bool flags_dead)
{
    bool in_cl = count_in_cl(instruction);
    unsigned mask = instruction->operand_size == 8 ? 63 : 31;
    enum shift_form form =
        (in_cl ? SHIFT_RC : SHIFT_RI) + (instruction->memory ? SHIFT_MI - SHIFT_RI : 0);
    enum shift_care care = CARE_LOAD;

    if (flags_dead)
        care = CARE_QUIET;
    else if (!in_cl && (instruction->immediate & mask) != 0)
        care = CARE_FRESH;
    return handlers[instruction->form->variant][care]
                   [size_index(instruction->operand_size)][form];
}

/* ---- SHLD, SHRD
 * ---------------------------------------------------------------------------------- */

/* They take three inputs; operations have two, so the count is read from the uop or CL
 * and put into the scratch area before. */
#define DEFINE_DOUBLE(name, bits, suffix)                                                \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t source)              \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        asm(FLAGS_LOAD #name suffix " %%cl, %[source], %[target]\n\t" FLAGS_SAVE         \
            : [target] "+r"(target), "+a"(packed)                                        \
            : [source] "r"(source), "c"((uint8_t)cpu->scratch[0])                        \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }                                                                                    \
    DEFINE_HANDLER(                                                                      \
        name, bits, ri, cpu->scratch[0] = COUNT_IMMEDIATE; register_set##bits(           \
            cpu, uop->rm, name##bits(cpu, RM_REGISTER(bits), REGISTER(bits))))           \
    DEFINE_HANDLER(                                                                      \
        name, bits, rc, cpu->scratch[0] = COUNT_CL; register_set##bits(                  \
            cpu, uop->rm, name##bits(cpu, RM_REGISTER(bits), REGISTER(bits))))           \
    DEFINE_FINISHED(name, bits, mi, cpu->scratch[0] = COUNT_IMMEDIATE;                   \
                    finish_update##bits(cpu, uop, name##bits, REGISTER(bits)))           \
    DEFINE_FINISHED(name, bits, mc, cpu->scratch[0] = COUNT_CL;                          \
                    finish_update##bits(cpu, uop, name##bits, REGISTER(bits)))
DEFINE_DOUBLE(shld, 16, "w")
DEFINE_DOUBLE(shld, 32, "l")
DEFINE_DOUBLE(shld, 64, "q")
DEFINE_DOUBLE(shrd, 16, "w")
DEFINE_DOUBLE(shrd, 32, "l")
DEFINE_DOUBLE(shrd, 64, "q")

soft_handler *select_shift_double(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const left[][SHIFT_FORMS] = {FORMS(shld, 16), FORMS(shld, 32),
                                                      FORMS(shld, 64)};
    static soft_handler *const right[][SHIFT_FORMS] = {FORMS(shrd, 16), FORMS(shrd, 32),
                                                       FORMS(shrd, 64)};
    unsigned size = size_index(instruction->operand_size) - 1;
    enum shift_form form = (count_in_cl(instruction) ? SHIFT_RC : SHIFT_RI) +
                           (instruction->memory ? SHIFT_MI - SHIFT_RI : 0);

    (void)flags_dead;
    return instruction->form->variant == SHIFT_SHLD ? left[size][form]
                                                    : right[size][form];
}
