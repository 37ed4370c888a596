/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where instructions under test and their operands lie: the same linear addresses in this
 * process and in the guest, so that the same bytes and registers mean the same on both
 * sides. Below 4 GiB, so that absolute and 32-bit addressing reach them.
 *
 *   WINDOW_STUBS   (host only) what 32-bit code leaves through
 *   WINDOW_CODE    two pages of code; the first bytes are the exits' addresses
 *   WINDOW_DATA    two pages of operands, then one that may only be read
 *
 * What lies around each is not mapped.
 */
#ifndef HUSK_ISA_WINDOW_H
#define HUSK_ISA_WINDOW_H

#include <stdint.h>

#define WINDOW_PAGE UINT64_C(4096)

#define WINDOW_STUBS UINT64_C(0x10008000)
#define WINDOW_STUBS_BYTES WINDOW_PAGE

#define WINDOW_CODE UINT64_C(0x10010000)
#define WINDOW_CODE_BYTES (2 * WINDOW_PAGE)
/* Slots that the code's exit jumps go through: of 64-bit code, then of 32-bit code. */
#define WINDOW_EXIT_SLOT(exit, code32) (UINT64_C(8) * ((exit) + ((code32) ? 4u : 0u)))

#define WINDOW_DATA UINT64_C(0x10020000)
#define WINDOW_DATA_BYTES (2 * WINDOW_PAGE) /* that can be written */
#define WINDOW_READ_ONLY (WINDOW_DATA + WINDOW_DATA_BYTES)
#define WINDOW_READ_ONLY_BYTES WINDOW_PAGE
#define WINDOW_DATA_END (WINDOW_READ_ONLY + WINDOW_READ_ONLY_BYTES)

/* Selectors as Linux has them, for DS, ES and SS; for CS in 64-bit and 32-bit code. */
#define WINDOW_DATA_SELECTOR 0x2b
#define WINDOW_CODE64_SELECTOR 0x33
#define WINDOW_CODE32_SELECTOR 0x23

/* The base of GS on both sides, in 64-bit code; FS is the C library's. In 32-bit code
 * both are null selectors. */
#define WINDOW_GS_BASE UINT64_C(0x0ff00000)

#endif
