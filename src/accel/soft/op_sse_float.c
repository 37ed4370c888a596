/* SPDX-License-Identifier: Apache-2.0 */
/* SSE floating point, XMM to XMM. They run under the guest's MXCSR (op_sse.c). */
#include "accel/soft/vector_private.h"

#define DEFINE(prefix, opcode, name, source, need) DEFINE_VECTOR_OPERATION(name)
VECTOR_FLOATING(DEFINE)
#undef DEFINE

#define ROW(prefix, opcode, name, source, need)                                          \
    [FLOAT_##name] = {name, VECTOR_FLOAT, need},
const struct vector_row vector_float_rows[] = {VECTOR_FLOATING(ROW)};
