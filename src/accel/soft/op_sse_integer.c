/* SPDX-License-Identifier: Apache-2.0 */
/* SSE operations on whole registers, that do not look at MXCSR: integers, logic,
 * shuffles without immediate, AES. */
#include "accel/soft/vector_private.h"

#define DEFINE(opcode, name) DEFINE_VECTOR_OPERATION(name)
VECTOR_PAIRED(DEFINE)
VECTOR_PAIRED_LOW(DEFINE)
VECTOR_PAIRED_38(DEFINE)
#undef DEFINE

#define DEFINE(map, prefix, opcode, name, source, need) DEFINE_VECTOR_OPERATION(name)
VECTOR_INTEGER(DEFINE)
#undef DEFINE

#define ROW(opcode, name) [INTEGER_##name] = {name, 0, NEED_SSE2},
#define ROW_38(opcode, name) [INTEGER_##name] = {name, 0, NEED_SSSE3},
#define ROW_WIDE(map, prefix, opcode, name, source, need)                                \
    [INTEGER_##name] = {name, 0, need},
/* clang-format off */
const struct vector_row vector_integer_rows[] = {
    VECTOR_PAIRED(ROW)
    VECTOR_PAIRED_LOW(ROW)
    VECTOR_PAIRED_38(ROW_38)
    VECTOR_INTEGER(ROW_WIDE)
};
/* clang-format on */
