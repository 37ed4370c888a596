/* SPDX-License-Identifier: Apache-2.0 */
/* A software processor's derived state: flags put together, mode, power-on and INIT. */
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"

#define STATUS_BITS (FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF)

/* RFLAGS bits kept in flags_system. */
#define SYSTEM_BITS                                                                      \
    ((uint32_t)(X86_FLAGS_TF | X86_FLAGS_IF | X86_FLAGS_IOPL | X86_FLAGS_NT |            \
                X86_FLAGS_RF | X86_FLAGS_VM | X86_FLAGS_AC | X86_FLAGS_VIF |             \
                X86_FLAGS_VIP | X86_FLAGS_ID))

uint64_t soft_flags_get(const struct soft_cpu *cpu)
{
    uint64_t rflags = X86_FLAGS_FIXED | cpu->flags_system;

    rflags |= cpu->flags_status & STATUS_BITS;
    if (cpu->flags_overflow != 0)
        rflags |= FLAG_OF;
    if (cpu->direction)
        rflags |= X86_FLAGS_DF;
    return rflags;
}

void soft_cpu_update_trap(struct soft_cpu *cpu)
{
    bool armed =
        (cpu->flags_system & X86_FLAGS_TF) != 0 || (cpu->dr[7] & X86_DR7_ENABLES) != 0;

    if (armed)
        (void)atomic_fetch_or(&cpu->attention, ATTENTION_TRAP);
    else
        (void)atomic_fetch_and(&cpu->attention, ~(uint32_t)ATTENTION_TRAP);
}

void soft_flags_set(struct soft_cpu *cpu, uint64_t rflags)
{
    uint32_t before = cpu->flags_system;

    cpu->flags_status = (uint8_t)((rflags & STATUS_BITS) | STATUS_FIXED);
    cpu->flags_overflow = (rflags & FLAG_OF) != 0;
    cpu->direction = (rflags & X86_FLAGS_DF) != 0;
    cpu->flags_system = (uint32_t)rflags & SYSTEM_BITS;
    if (((before ^ cpu->flags_system) & X86_FLAGS_TF) != 0)
        soft_cpu_update_trap(cpu);
    if (((before ^ cpu->flags_system) & (X86_FLAGS_VM | X86_FLAGS_AC)) != 0)
        soft_cpu_update_mode(cpu);
    if ((cpu->flags_system & X86_FLAGS_IF) != 0)
        soft_cpu_interrupts_enabled(cpu);
}

static uint32_t code_mode(const struct soft_cpu *cpu)
{
    uint32_t mode = 0;

    if (soft_in_64bit_code(cpu))
        return MODE_CODE64 | MODE_LONG;
    if ((cpu->efer & X86_EFER_LMA) != 0)
        mode |= MODE_LONG;
    if (cpu->segments[X86_CS].db)
        mode |= MODE_CODE32;
    if (cpu->segments[X86_SS].db)
        mode |= MODE_STACK32;
    if (segment_all_flat(cpu))
        mode |= MODE_FLAT;
    return mode;
}

static void note_user_mode(struct soft_cpu *cpu)
{
    const struct accel_machine *machine = cpu->vm->machine;

    cpu->user_seen = true;
    if (machine->user_mode != NULL)
        machine->user_mode(machine->context);
}

_Static_assert(2 * MODE_CAREFUL <= JUMP_CACHE_ENTRIES, "see jump_key");

void soft_cpu_update_mode(struct soft_cpu *cpu)
{
    uint32_t mode = code_mode(cpu);

    if ((cpu->cr0 & X86_CR0_PE) != 0)
        mode |= MODE_PROTECTED;
    if ((cpu->flags_system & X86_FLAGS_VM) != 0)
        mode |= MODE_VIRTUAL86;
    if (cpu->cpl == 3)
        mode |= MODE_USER;
    else if ((cpu->cr4 & X86_CR4_SMAP) != 0 && (cpu->flags_system & X86_FLAGS_AC) != 0)
        mode |= MODE_USER_DATA;
    if ((cpu->cr0 & (X86_CR0_EM | X86_CR0_TS)) != 0)
        mode |= MODE_NO_FPU;
    if ((cpu->cr0 & X86_CR0_EM) != 0 || (cpu->cr4 & X86_CR4_OSFXSR) == 0)
        mode |= MODE_NO_SSE;
    cpu->mode = mode;
    cpu->mode_salt = jump_salt(mode);
    if (cpu->cpl == 3 && !cpu->user_seen)
        note_user_mode(cpu);
    cpu->tlb = soft_mmu_tlb(cpu);
    /* What block_lookup knows is by rip, and CS may have a base. */
    if ((mode & (MODE_CODE64 | MODE_FLAT)) == 0)
        block_cache_forget_addresses(cpu);
}

static void set_reset_registers(struct soft_cpu *cpu)
{
    struct cpu_state state;

    cpu_state_reset(&state);
    memset(cpu->r, 0, sizeof(cpu->r));
    memcpy(cpu->segments, state.segments, sizeof(cpu->segments));
    cpu->r[X86_RDX] =
        soft_cpuid(cpu, 1, 0).eax; /* SDM 9.1.2: the processor's signature */
    cpu->rip = state.rip;
    cpu->gdt = state.gdt;
    cpu->idt = state.idt;
    cpu->cr2 = 0;
    cpu->cr3 = 0;
    cpu->cr4 = 0;
    cpu->efer = 0;
    cpu->cpl = 0;
    cpu->xcr0 = 1;
    memset(cpu->dr, 0, sizeof(cpu->dr));
    cpu->dr[6] = X86_DR6_FIXED;
    cpu->dr[7] = X86_DR7_FIXED;
    soft_cpu_let_nmis_in(cpu);
    cpu->delivering = false;
    cpu->interrupt_waits = false;
    soft_flags_set(cpu, state.rflags);
    soft_cpu_update_trap(cpu);
}

void soft_cpu_init_signal(struct soft_cpu *cpu)
{
    uint64_t kept = cpu->cr0 & (X86_CR0_CD | X86_CR0_NW);

    set_reset_registers(cpu);
    cpu->cr0 = X86_CR0_ET | kept;
    soft_cpu_update_mode(cpu);
    soft_tlb_flush_all(cpu);
}

void soft_cpu_power_on(struct soft_cpu *cpu)
{
    set_reset_registers(cpu);
    cpu->cr0 = X86_CR0_ET | X86_CR0_NW | X86_CR0_CD;
    /* SDM table 9-1: x87 as after RESET, MXCSR with all exceptions masked. */
    memset(&cpu->fx, 0, sizeof(cpu->fx));
    memset(cpu->key_rights, 0, sizeof(cpu->key_rights));
    cpu->fx.fcw = 0x40;
    cpu->fx.ftw = 0xff;
    cpu->fx.mxcsr = 0x1f80;
    cpu->fx.mxcsr_mask = 0xffff;
    cpu->activity = cpu->index == 0 ? ACTIVITY_RUN : ACTIVITY_WAIT_STARTUP;
    soft_cpu_update_mode(cpu);
    soft_tlb_flush_all(cpu);
}
