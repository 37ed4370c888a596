/* SPDX-License-Identifier: Apache-2.0 */
/* VMCALL and VMMCALL: what of KVM's interface is here (Linux:
 * Documentation/virt/kvm/x86/hypercalls.rst). */
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"

#define SEND_IPI 10

/* KVM's error numbers, negated in RAX. */
#define NOT_PERMITTED (-1)
#define INVALID (-22)
#define UNKNOWN (-1000)

/* What SEND_IPI takes of a command register: neither a destination of its own nor a
 * shorthand. */
#define COMMAND_DESTINATION 0x800u
#define COMMAND_SHORTHAND 0xc0000u

/* One register's worth of destinations: bit n means the local APIC `first` + n. */
static uint64_t send_to_each(struct soft_cpu *cpu, uint64_t first, uint64_t set,
                             uint32_t command)
{
    uint64_t taken = 0;

    for (; set != 0; set &= set - 1) {
        uint64_t id = first + (unsigned)__builtin_ctzll(set);

        if (id < cpu->vm->cpu_count &&
            cpu->irq->send(cpu->irq->context, (uint32_t)id, command))
            taken++;
    }
    return taken;
}

/* To how many the interrupt has gone. */
static int64_t send_interrupts(struct soft_cpu *cpu, uint64_t mask)
{
    unsigned set_bits = mask == UINT64_MAX ? 64 : 32;
    uint64_t first = cpu->r[X86_RDX] & mask;
    uint64_t command = cpu->r[X86_RSI] & mask;

    if ((command & (COMMAND_DESTINATION | COMMAND_SHORTHAND)) != 0)
        return INVALID;
    if (first >= cpu->vm->cpu_count)
        return 0;
    return (int64_t)(send_to_each(cpu, first, cpu->r[X86_RBX] & mask, (uint32_t)command) +
                     send_to_each(cpu, first + set_bits, cpu->r[X86_RCX] & mask,
                                  (uint32_t)command));
}

void soft_hypercall(struct soft_cpu *cpu)
{
    uint64_t mask = soft_in_64bit_code(cpu) ? UINT64_MAX : UINT32_MAX;
    int64_t answer = UNKNOWN;

    if (cpu->cpl != 0)
        answer = NOT_PERMITTED;
    else if ((cpu->r[X86_RAX] & mask) == SEND_IPI)
        answer = send_interrupts(cpu, mask);
    cpu->r[X86_RAX] = (uint64_t)answer & mask;
}
