/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operands without a host address; see operand_private.h. */
#include "accel/soft/operand_private.h"

#define DEFINE_SLOW(bits)                                                                \
    void operand_read_slow##bits(struct soft_cpu *cpu, const struct uop *uop,            \
                                 with_value##bits *then)                                 \
    {                                                                                    \
        uint64_t value = soft_load_slow(cpu, uop, soft_address(cpu, uop), bits / 8);     \
                                                                                         \
        then(cpu, uop, (uint##bits##_t)value);                                           \
    }                                                                                    \
    void operand_write_slow##bits(struct soft_cpu *cpu, const struct uop *uop,           \
                                  uint##bits##_t value)                                  \
    {                                                                                    \
        soft_store_slow(cpu, uop, soft_address(cpu, uop), bits / 8, value);              \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    void operand_update_slow##bits(struct soft_cpu *cpu, const struct uop *uop,          \
                                   operation##bits *operation, uint##bits##_t source)    \
    {                                                                                    \
        uint64_t linear = soft_address(cpu, uop);                                        \
        uint64_t old = soft_load_for_store_slow(cpu, uop, linear, bits / 8);             \
                                                                                         \
        soft_store_slow(cpu, uop, linear, bits / 8,                                      \
                        operation(cpu, (uint##bits##_t)old, source));                    \
        NEXT(cpu, uop);                                                                  \
    }
DEFINE_SLOW(8)
DEFINE_SLOW(16)
DEFINE_SLOW(32)
DEFINE_SLOW(64)
