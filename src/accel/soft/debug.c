/* SPDX-License-Identifier: Apache-2.0 */
/* Debug registers and breakpoints (SDM vol. 3, 17.2 and 17.3). */
#include "accel/soft/debug_private.h"

#include "accel/soft/flow_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"

#define BREAKPOINTS 4

#define DR6_BREAKPOINTS UINT64_C(0xf)
/* Bits that can be written. */
#define DR6_WRITABLE UINT64_C(0xe00f)
#define DR7_WRITABLE UINT64_C(0xffff23ff)

void debug_note(struct soft_cpu *cpu, uint64_t reasons)
{
    cpu->dr[6] = (cpu->dr[6] & ~DR6_BREAKPOINTS) | reasons;
}

unsigned debug_register(struct soft_cpu *cpu, const struct uop *uop, unsigned number)
{
    if (number > 7)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    soft_check_supervisor(cpu, uop);
    if ((number == 4 || number == 5) && (cpu->cr4 & X86_CR4_DE) != 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    if ((cpu->dr[7] & X86_DR7_GD) != 0) {
        debug_note(cpu, X86_DR6_BD);
        soft_raise(cpu, uop, X86_VECTOR_DB);
    }
    return number == 4 || number == 5 ? number + 2 : number;
}

void debug_write(struct soft_cpu *cpu, const struct uop *uop, unsigned number,
                 uint64_t value)
{
    if (number >= 6 && value > UINT32_MAX)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    if (number == 6)
        value = X86_DR6_FIXED | (value & DR6_WRITABLE);
    if (number == 7)
        value = X86_DR7_FIXED | (value & DR7_WRITABLE);
    cpu->dr[number] = value;
    soft_cpu_update_trap(cpu);
    if (debug_is_armed(cpu))
        soft_tlb_flush_all(cpu); /* of pages that have become watched */
}

/* ---- breakpoints ---- */

enum breakpoint_kind {
    BREAKPOINT_EXECUTE,
    BREAKPOINT_WRITE,
    BREAKPOINT_PORT, /* with CR4.DE */
    BREAKPOINT_ACCESS,
    BREAKPOINT_OFF,
};

/* DR7: two enable bits a breakpoint, and from bit 16 on two bits of kind, two of length.
 */
static enum breakpoint_kind kind_of(const struct soft_cpu *cpu, unsigned number)
{
    if ((cpu->dr[7] >> 2 * number & 3) == 0)
        return BREAKPOINT_OFF;
    return (enum breakpoint_kind)(cpu->dr[7] >> (16 + 4 * number) & 3);
}

/* Ranges are aligned to their length. */
static bool covers(const struct soft_cpu *cpu, unsigned number, uint64_t address,
                   uint64_t size)
{
    static const uint8_t lengths[] = {1, 2, 8, 4};
    uint64_t length = lengths[cpu->dr[7] >> (18 + 4 * number) & 3];
    uint64_t start = align_down(cpu->dr[number], length);

    return address - start < length || start - address < size;
}

bool debug_finds_watch(const struct soft_cpu *cpu, uint64_t linear)
{
    for (unsigned i = 0; i < BREAKPOINTS; i++) {
        enum breakpoint_kind kind = kind_of(cpu, i);

        if ((kind == BREAKPOINT_WRITE || kind == BREAKPOINT_ACCESS) &&
            cpu->dr[i] / X86_PAGE_BYTES == linear / X86_PAGE_BYTES)
            return true;
    }
    return false;
}

void debug_find_access(struct soft_cpu *cpu, uint64_t linear, unsigned size, bool write)
{
    for (unsigned i = 0; i < BREAKPOINTS; i++) {
        enum breakpoint_kind kind = kind_of(cpu, i);

        if ((kind == BREAKPOINT_ACCESS || (kind == BREAKPOINT_WRITE && write)) &&
            covers(cpu, i, linear, size))
            cpu->watch_hits |= (uint8_t)(1u << i);
    }
}

void debug_find_port(struct soft_cpu *cpu, uint16_t port, unsigned size)
{
    for (unsigned i = 0; i < BREAKPOINTS; i++)
        if (kind_of(cpu, i) == BREAKPOINT_PORT && (cpu->cr4 & X86_CR4_DE) != 0 &&
            covers(cpu, i, port, size))
            cpu->watch_hits |= (uint8_t)(1u << i);
}

void soft_debug_check_execute(struct soft_cpu *cpu)
{
    uint64_t linear = soft_code_linear(cpu, cpu->rip);
    uint64_t hit = 0;

    /* RF counts for this one instruction; if it faults, the image has RF again. */
    if ((cpu->flags_system & X86_FLAGS_RF) != 0) {
        cpu->flags_system &= ~(uint32_t)X86_FLAGS_RF;
        return;
    }
    for (unsigned i = 0; i < BREAKPOINTS; i++)
        if (kind_of(cpu, i) == BREAKPOINT_EXECUTE && cpu->dr[i] == linear)
            hit |= UINT64_C(1) << i;
    if (hit == 0)
        return;
    debug_note(cpu, hit);
    soft_raise(cpu, NULL, X86_VECTOR_DB);
}
