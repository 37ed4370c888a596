/* SPDX-License-Identifier: Apache-2.0 */
/* Debug registers (SDM vol. 3, 17.2). */
#ifndef HUSK_SOFT_DEBUG_PRIVATE_H
#define HUSK_SOFT_DEBUG_PRIVATE_H

#include "accel/soft/cpu_private.h"

/* The register that MOV names: 4 and 5 are 6 and 7, or undefined with CR4.DE. Raises what
 * MOV does before it moves: #UD, #GP outside CPL 0, #DB if DR7.GD guards the registers.
 */
unsigned debug_register(struct soft_cpu *cpu, const struct uop *uop, unsigned number);

/* Notes in DR6 why #DB comes: bits 0 to 3 are of this time only, the others stay until a
 * program clears them. */
void debug_note(struct soft_cpu *cpu, uint64_t reasons);

/* Writes DR0 to DR3, DR6 or DR7. */
void debug_write(struct soft_cpu *cpu, const struct uop *uop, unsigned number,
                 uint64_t value);

#endif
