/* SPDX-License-Identifier: Apache-2.0 */
/* What an instruction starts from and what it makes of it, but for memory. */
#ifndef HUSK_ISA_STATE_H
#define HUSK_ISA_STATE_H

#include <stdint.h>

#include "accel/soft/cpu_private.h"
#include "x86/x86.h"

/* How a run ended. */
enum state_end {
    END_EXIT,   /* at an exit of the code: `exit` says which */
    END_FAULT,  /* vector, error_code, cr2 */
    END_ENDLESS /* too many blocks (soft side only) */
};

enum state_exit { EXIT_BEHIND, EXIT_TARGET, EXIT_COUNT };

/* native_enter.S knows this layout. */
struct isa_state {
    struct fx_state fx;
    uint64_t r[X86_REGISTER_COUNT];
    uint64_t rip;
    uint64_t rflags;
    uint64_t exit; /* enum state_exit */
    bool code32;   /* runs as 32-bit code, else 64-bit */

    enum state_end end;
    uint32_t error_code;
    uint64_t cr2;
    uint8_t vector;
};

#endif
