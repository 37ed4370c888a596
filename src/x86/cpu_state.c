/* SPDX-License-Identifier: Apache-2.0 */
/* The processor states in which boot protocols enter; see x86.h. */
#include "x86/x86.h"

#include <string.h>

#define FLAT_LIMIT 0xffffffffu
#define TSS_LIMIT 0x67u /* SDM 7.2.1: the smallest 32-bit TSS */

static struct x86_segment real_mode_segment(uint16_t selector, uint64_t base,
                                            uint8_t type)
{
    return (struct x86_segment){
        .base = base,
        .limit = 0xffff,
        .selector = selector,
        .type = type,
        .present = true,
        .code_or_data = true,
    };
}

static struct x86_segment system_segment(uint16_t selector, uint32_t limit, uint8_t type)
{
    return (struct x86_segment){
        .limit = limit, .selector = selector, .type = type, .present = true};
}

void cpu_state_reset(struct cpu_state *state)
{
    memset(state, 0, sizeof(*state));
    for (int i = X86_ES; i <= X86_GS; i++)
        state->segments[i] = real_mode_segment(0, 0, X86_TYPE_DATA_READ_WRITE_ACCESSED);
    state->segments[X86_CS] =
        real_mode_segment(0xf000, 0xffff0000, X86_TYPE_CODE_READ_EXECUTE_ACCESSED);
    state->segments[X86_LDTR] = system_segment(0, 0xffff, X86_TYPE_LDT);
    state->segments[X86_TR] = system_segment(0, 0xffff, X86_TYPE_TSS_BUSY);
    state->gdt.limit = 0xffff;
    state->idt.limit = 0xffff;
    state->rip = 0xfff0;
    state->rflags = X86_FLAGS_FIXED;
    state->cr0 = X86_CR0_ET | X86_CR0_NW | X86_CR0_CD;
}

static struct x86_segment flat_segment(uint16_t selector, uint8_t type)
{
    return (struct x86_segment){
        .limit = FLAT_LIMIT,
        .selector = selector,
        .type = type,
        .present = true,
        .code_or_data = true,
        .db = true,
        .granularity = true,
    };
}

void cpu_state_flat32(struct cpu_state *state, uint32_t eip, uint32_t gdt_gpa)
{
    memset(state, 0, sizeof(*state));
    for (int i = X86_ES; i <= X86_GS; i++)
        state->segments[i] = flat_segment(X86_BOOT_DS, X86_TYPE_DATA_READ_WRITE_ACCESSED);
    state->segments[X86_CS] =
        flat_segment(X86_BOOT_CS, X86_TYPE_CODE_READ_EXECUTE_ACCESSED);
    state->segments[X86_LDTR] = system_segment(0, 0, X86_TYPE_LDT);
    state->segments[X86_TR] = system_segment(X86_BOOT_TR, TSS_LIMIT, X86_TYPE_TSS_BUSY);
    state->gdt = (struct x86_table){gdt_gpa, X86_BOOT_GDT_ENTRIES * 8 - 1};
    state->rip = eip;
    state->rflags = X86_FLAGS_FIXED;
    state->cr0 = X86_CR0_PE | X86_CR0_ET;
}

void cpu_state_long64(struct cpu_state *state, uint64_t rip, uint64_t cr3,
                      uint32_t gdt_gpa)
{
    cpu_state_flat32(state, 0, gdt_gpa);
    state->segments[X86_CS].db = false;
    state->segments[X86_CS].long_mode = true;
    state->rip = rip;
    state->cr0 |= X86_CR0_PG;
    state->cr3 = cr3;
    state->cr4 = X86_CR4_PAE;
    state->efer = X86_EFER_LME | X86_EFER_LMA;
}

void x86_boot_gdt(uint64_t gdt[X86_BOOT_GDT_ENTRIES], bool code64)
{
    /* SDM figure 3-8: base 0, limit 4 GiB, present, accessed, DPL 0. */
    const uint64_t code32 = UINT64_C(0x00cf9b000000ffff);
    const uint64_t long_code = UINT64_C(0x00af9b000000ffff);
    const uint64_t data = UINT64_C(0x00cf93000000ffff);
    const uint64_t busy_tss = UINT64_C(0x00008b0000000067);

    memset(gdt, 0, X86_BOOT_GDT_ENTRIES * sizeof(gdt[0]));
    gdt[X86_BOOT_CS / 8] = code64 ? long_code : code32;
    gdt[X86_BOOT_DS / 8] = data;
    gdt[X86_BOOT_TR / 8] = busy_tss;
}
