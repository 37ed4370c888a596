/* SPDX-License-Identifier: Apache-2.0 */
/* Debug registers (SDM vol. 3, 17.2). */
#ifndef HUSK_SOFT_DEBUG_PRIVATE_H
#define HUSK_SOFT_DEBUG_PRIVATE_H

#include "accel/soft/access_private.h"

/* The register that MOV names: 4 and 5 are 6 and 7, or undefined with CR4.DE. Raises what
 * MOV does before it moves: #UD, #GP outside CPL 0, #DB if DR7.GD guards the registers.
 */
unsigned debug_register(struct soft_cpu *cpu, const struct uop *uop, unsigned number);

/* Notes in DR6 why #DB comes: bits 0 to 3 are of this time only, the others stay until a
 * program clears them. */
void debug_note(struct soft_cpu *cpu, uint64_t reasons);

/* ---- breakpoints on data and ports: noted when an instruction meets one, and trapped
 * behind it by the run loop ---- */

/* The slow ways of both, for programs that have breakpoints. */
bool debug_finds_watch(const struct soft_cpu *cpu, uint64_t linear);
void debug_find_access(struct soft_cpu *cpu, uint64_t linear, unsigned size, bool write);
void debug_find_port(struct soft_cpu *cpu, uint16_t port, unsigned size);

static inline bool debug_is_armed(const struct soft_cpu *cpu)
{
    return (cpu->dr[7] & X86_DR7_ENABLES) != 0;
}

/* Pages with a breakpoint never enter a TLB, so that accesses to them come the slow way.
 */
static inline bool debug_watches_page(const struct soft_cpu *cpu, uint64_t linear)
{
    return debug_is_armed(cpu) && debug_finds_watch(cpu, linear);
}
static inline void debug_note_access(struct soft_cpu *cpu, uint64_t linear, unsigned size,
                                     bool write)
{
    if (debug_is_armed(cpu))
        debug_find_access(cpu, linear, size, write);
}
static inline void debug_note_port(struct soft_cpu *cpu, uint16_t port, unsigned size)
{
    if (debug_is_armed(cpu))
        debug_find_port(cpu, port, size);
}

/* Writes DR0 to DR3, DR6 or DR7. */
void debug_write(struct soft_cpu *cpu, const struct uop *uop, unsigned number,
                 uint64_t value);

#endif
