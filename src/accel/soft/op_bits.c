/* SPDX-License-Identifier: Apache-2.0 */
/* BT BTS BTR BTC, BSF BSR TZCNT LZCNT POPCNT, CRC32, BSWAP, MOVBE. */
#include "accel/soft/address_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

/* ---- BT BTS BTR BTC
 * ---------------------------------------------------------------------------------- */

/* `bit` is masked by the host. Flags but CF are kept or undefined: see FLAGS_LOAD. */
#define DEFINE_OPERATION(name, bits, suffix)                                             \
    static ALWAYS_INLINE uint##bits##_t name##bits(                                      \
        struct soft_cpu *cpu, uint##bits##_t target, uint##bits##_t bit)                 \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        asm(FLAGS_LOAD #name suffix " %[bit], %[target]\n\t" FLAGS_SAVE                  \
            : [target] "+r"(target), "+a"(packed)                                        \
            : [bit] "r"(bit)                                                             \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        return target;                                                                   \
    }
#define DEFINE_LOCK_OPERATION(name, bits, suffix)                                        \
    static ALWAYS_INLINE void lock_##name##bits(                                         \
        struct soft_cpu *cpu, guest_u##bits *target, uint##bits##_t bit)                 \
    {                                                                                    \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        bit &= bits - 1; /* else it would reach beyond the operand */                    \
        asm volatile(FLAGS_LOAD "lock " #name suffix " %[bit], %[target]\n\t" FLAGS_SAVE \
                     : [target] "+m"(*target), "+a"(packed)                              \
                     : [bit] "r"(bit)                                                    \
                     : "cc", "memory");                                                  \
        flags_store(cpu, packed);                                                        \
    }

/* A bit offset in a register reaches beyond the memory operand: it is signed, and selects
 * the operand-sized piece of the bit string (SDM vol. 2, BT). The uop has the offset in
 * the segment, for the segment's limit counts at the piece. */
#define DEFINE_PIECE(bits)                                                               \
    static uint64_t piece_address##bits(struct soft_cpu *cpu, const struct uop *uop,     \
                                        bool write)                                      \
    {                                                                                    \
        int64_t bit = (int##bits##_t)REGISTER(bits);                                     \
        uint64_t offset = soft_address(cpu, uop) +                                       \
                          (uint64_t)((bit >> __builtin_ctz(bits)) * (bits / 8));         \
                                                                                         \
        if (uop->address_size == 2)                                                      \
            offset = (uint16_t)offset;                                                   \
        else if (uop->address_size == 4)                                                 \
            offset = (uint32_t)offset;                                                   \
        return address_linear(cpu, uop, uop->segment, offset, bits / 8, write);          \
    }
DEFINE_PIECE(16)
DEFINE_PIECE(32)
DEFINE_PIECE(64)

#define DEFINE_TEST(name, bits, suffix)                                                  \
    DEFINE_OPERATION(name, bits, suffix)                                                 \
    DEFINE_HANDLER(name, bits, rg,                                                       \
                   (void)name##bits(cpu, RM_REGISTER(bits), REGISTER(bits)))             \
    DEFINE_HANDLER(name, bits, ri,                                                       \
                   (void)name##bits(cpu, RM_REGISTER(bits), IMMEDIATE(bits)))            \
    DEFINE_HANDLER(                                                                      \
        name, bits, mg, uint64_t linear = piece_address##bits(cpu, uop, false);          \
        (void)name##bits(cpu, soft_load##bits(cpu, uop, linear), REGISTER(bits)))        \
    DEFINE_WITH_MEMORY(name, bits, mi, (void)name##bits(cpu, memory, IMMEDIATE(bits)))

#define DEFINE_CHANGE(name, bits, suffix)                                                \
    DEFINE_OPERATION(name, bits, suffix)                                                 \
    DEFINE_LOCK_OPERATION(name, bits, suffix)                                            \
    DEFINE_RM_FORMS(name, bits)                                                          \
    DEFINE_FINISHED(name, bits, mi,                                                      \
                    finish_update##bits(cpu, uop, name##bits, IMMEDIATE(bits)))          \
    DEFINE_FINISHED(locked_##name, bits, mi,                                             \
                    finish_update_locked##bits(cpu, uop, name##bits, lock_##name##bits,  \
                                               IMMEDIATE(bits)))                         \
    DEFINE_CHANGE_PIECE(name, bits, *place = name##bits(cpu, *place, REGISTER(bits)))    \
    DEFINE_CHANGE_PIECE(locked_##name, bits,                                             \
                        lock_##name##bits(cpu, place, REGISTER(bits)))
#define DEFINE_CHANGE_PIECE(name, bits, change)                                          \
    static void name##bits##_mg(struct soft_cpu *cpu, const struct uop *uop)             \
    {                                                                                    \
        uint64_t linear = piece_address##bits(cpu, uop, true);                           \
        guest_u##bits *place = place_open##bits(cpu, uop, linear);                       \
                                                                                         \
        change;                                                                          \
        place_close##bits(cpu, uop, linear, place);                                      \
        NEXT(cpu, uop);                                                                  \
    }

DEFINE_TEST(bt, 16, "w")
DEFINE_TEST(bt, 32, "l")
DEFINE_TEST(bt, 64, "q")
DEFINE_CHANGE(bts, 16, "w")
DEFINE_CHANGE(bts, 32, "l")
DEFINE_CHANGE(bts, 64, "q")
DEFINE_CHANGE(btr, 16, "w")
DEFINE_CHANGE(btr, 32, "l")
DEFINE_CHANGE(btr, 64, "q")
DEFINE_CHANGE(btc, 16, "w")
DEFINE_CHANGE(btc, 32, "l")
DEFINE_CHANGE(btc, 64, "q")

/* Register and register, register and immediate, memory likewise, memory under LOCK. */
#define FORMS(name, bits)                                                                \
    {                                                                                    \
        name##bits##_rg, name##bits##_ri, name##bits##_mg, name##bits##_mi,              \
            locked_##name##bits##_mg, locked_##name##bits##_mi                           \
    }
#define SIZES(name)                                                                      \
    {                                                                                    \
        FORMS(name, 16), FORMS(name, 32), FORMS(name, 64)                                \
    }
#define TEST_FORMS(bits)                                                                 \
    {                                                                                    \
        bt##bits##_rg, bt##bits##_ri, bt##bits##_mg, bt##bits##_mi                       \
    }

soft_handler *select_bit_test(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[][3][6] = {
        [BITS_BT] = {TEST_FORMS(16), TEST_FORMS(32), TEST_FORMS(64)},
        [BITS_BTS] = SIZES(bts),
        [BITS_BTR] = SIZES(btr),
        [BITS_BTC] = SIZES(btc),
    };
    unsigned form = instruction->form->operands[1] == OPERAND_I8 ? 1 : 0;

    (void)flags_dead;
    if (instruction->memory)
        form += instruction->lock ? 4 : 2;
    return handlers[instruction->form->variant][size_index(instruction->operand_size) - 1]
                   [form];
}

/* ---- BSF BSR TZCNT LZCNT POPCNT
 * ---------------------------------------------------------------------------------- */

/* BSF and BSR leave the target as it is when the source is 0, all 64 bits of it where the
 * host does. */
#define DEFINE_SCAN(name, bits, register_name)                                           \
    static ALWAYS_INLINE void name##bits##_step(                                         \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t source)              \
    {                                                                                    \
        uint64_t target = register_get64(cpu, uop->reg);                                 \
        uint16_t packed = cpu->flags_packed;                                             \
                                                                                         \
        asm(FLAGS_LOAD #name " %[source], %" register_name "[target]\n\t" FLAGS_SAVE     \
            : [target] "+r"(target), "+a"(packed)                                        \
            : [source] "r"(source)                                                       \
            : "cc");                                                                     \
        flags_store(cpu, packed);                                                        \
        register_set64(cpu, uop->reg, target);                                           \
    }                                                                                    \
    DEFINE_HANDLER(name, bits, r, name##bits##_step(cpu, uop, RM_REGISTER(bits)))        \
    DEFINE_WITH_MEMORY(name, bits, m, name##bits##_step(cpu, uop, memory))
#define DEFINE_SCANS(name)                                                               \
    DEFINE_SCAN(name, 16, "w")                                                           \
    DEFINE_SCAN(name, 32, "k")                                                           \
    DEFINE_SCAN(name, 64, "q")
DEFINE_SCANS(bsf)
DEFINE_SCANS(bsr)
DEFINE_SCANS(popcnt)
DEFINE_SCANS(tzcnt)
DEFINE_SCANS(lzcnt)

#define SCANS(name)                                                                      \
    {                                                                                    \
        {name##16_r, name##16_m}, {name##32_r, name##32_m},                              \
        {                                                                                \
            name##64_r, name##64_m                                                       \
        }                                                                                \
    }

soft_handler *select_bit_scan(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[][3][2] = {
        [BITS_BSF] = SCANS(bsf),       [BITS_BSR] = SCANS(bsr),
        [BITS_TZCNT] = SCANS(tzcnt),   [BITS_LZCNT] = SCANS(lzcnt),
        [BITS_POPCNT] = SCANS(popcnt),
    };

    (void)flags_dead;
    return handlers[instruction->form->variant][size_index(instruction->operand_size) - 1]
                   [instruction->memory];
}

/* ---- CRC32
 * ---------------------------------------------------------------------------------- */

#define DEFINE_CRC32(name, bits, suffix)                                                 \
    static ALWAYS_INLINE void name##bits##_step(                                         \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t source)              \
    {                                                                                    \
        uint64_t target = register_get32(cpu, uop->reg);                                 \
                                                                                         \
        asm("crc32" suffix " %[source], %q[target]"                                      \
            : [target] "+r"(target)                                                      \
            : [source] "r"(source));                                                     \
        register_set64(cpu, uop->reg, target);                                           \
    }                                                                                    \
    DEFINE_HANDLER(name, bits, r, name##bits##_step(cpu, uop, RM_REGISTER(bits)))        \
    DEFINE_WITH_MEMORY(name, bits, m, name##bits##_step(cpu, uop, memory))
#define DEFINE_CRC32_NARROW(name, bits, suffix)                                          \
    static ALWAYS_INLINE void name##bits##_step(                                         \
        struct soft_cpu *cpu, const struct uop *uop, uint##bits##_t source)              \
    {                                                                                    \
        uint32_t target = register_get32(cpu, uop->reg);                                 \
                                                                                         \
        asm("crc32" suffix " %[source], %[target]"                                       \
            : [target] "+r"(target)                                                      \
            : [source] "r"(source));                                                     \
        register_set32(cpu, uop->reg, target);                                           \
    }                                                                                    \
    DEFINE_HANDLER(name, bits, r, name##bits##_step(cpu, uop, RM_REGISTER(bits)))        \
    DEFINE_WITH_MEMORY(name, bits, m, name##bits##_step(cpu, uop, memory))
DEFINE_CRC32_NARROW(crc, 8, "b")
DEFINE_CRC32_NARROW(crc, 16, "w")
DEFINE_CRC32_NARROW(crc, 32, "l")
DEFINE_CRC32(crc, 64, "q")

soft_handler *select_crc32(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[SIZE_INDEXES][2] = {
        {crc8_r, crc8_m}, {crc16_r, crc16_m}, {crc32_r, crc32_m}, {crc64_r, crc64_m}};

    (void)flags_dead;
    return handlers[size_index(instruction->operand_size)][instruction->memory];
}

/* ---- BSWAP, MOVBE
 * ---------------------------------------------------------------------------------- */

static void bswap16(struct soft_cpu *cpu, const struct uop *uop)
{
    register_set16(cpu, uop->reg, 0); /* undefined; processors give 0 */
    NEXT(cpu, uop);
}

static void bswap32(struct soft_cpu *cpu, const struct uop *uop)
{
    register_set32(cpu, uop->reg, __builtin_bswap32(register_get32(cpu, uop->reg)));
    NEXT(cpu, uop);
}

static void bswap64(struct soft_cpu *cpu, const struct uop *uop)
{
    register_set64(cpu, uop->reg, __builtin_bswap64(register_get64(cpu, uop->reg)));
    NEXT(cpu, uop);
}

soft_handler *select_bswap(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {bswap16, bswap32, bswap64};

    (void)flags_dead;
    return handlers[size_index(instruction->operand_size) - 1];
}

#define DEFINE_MOVBE(bits)                                                               \
    DEFINE_WITH_MEMORY(movbe, bits, gm,                                                  \
                       register_set##bits(cpu, uop->reg, __builtin_bswap##bits(memory))) \
    DEFINE_FINISHED(movbe, bits, mg,                                                     \
                    finish_write##bits(cpu, uop, __builtin_bswap##bits(REGISTER(bits))))
DEFINE_MOVBE(16)
DEFINE_MOVBE(32)
DEFINE_MOVBE(64)

soft_handler *select_movbe(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const loads[] = {movbe16_gm, movbe32_gm, movbe64_gm};
    static soft_handler *const stores[] = {movbe16_mg, movbe32_mg, movbe64_mg};
    unsigned size = size_index(instruction->operand_size) - 1;
    uint8_t target = instruction->form->operands[0];

    (void)flags_dead;
    return target >= OPERAND_G && target <= OPERAND_G64 ? loads[size] : stores[size];
}
