/* SPDX-License-Identifier: Apache-2.0 */
/* Control registers and EFER; see control_private.h (SDM vol. 3, 2.5, 4.1 and 9.8.5). */
#include "accel/soft/control_private.h"

#include "accel/soft/mmu_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/vendor_private.h"

#define CR0_KNOWN                                                                        \
    (X86_CR0_PE | X86_CR0_MP | X86_CR0_EM | X86_CR0_TS | X86_CR0_NE | X86_CR0_WP |       \
     X86_CR0_AM | X86_CR0_NW | X86_CR0_CD | X86_CR0_PG)
#define CR0_TRANSLATION (X86_CR0_PE | X86_CR0_PG | X86_CR0_WP)

/* What the model in cpu_model.c offers; the rest is reserved. */
#define CR4_KNOWN                                                                        \
    (X86_CR4_TSD | X86_CR4_DE | X86_CR4_PSE | X86_CR4_PAE | X86_CR4_MCE | X86_CR4_PGE |  \
     X86_CR4_PCE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT | X86_CR4_UMIP |                  \
     X86_CR4_FSGSBASE | X86_CR4_PCIDE | X86_CR4_SMEP | X86_CR4_SMAP | X86_CR4_PKE |      \
     X86_CR4_PKS)
#define CR4_TRANSLATION                                                                  \
    (X86_CR4_PSE | X86_CR4_PAE | X86_CR4_PGE | X86_CR4_PCIDE | X86_CR4_SMEP |            \
     X86_CR4_SMAP | X86_CR4_PKE | X86_CR4_PKS)

/* AMD APM vol. 2, 3.1.7: automatic IBRS; nothing is speculated here. */
#define EFER_AUTOMATIC_IBRS UINT64_C(0x200000)
#define EFER_KNOWN (X86_EFER_SCE | X86_EFER_LME | X86_EFER_LMA | X86_EFER_NXE)

/* Reserved bits of a PAE page-directory-pointer entry (SDM table 4-8), but for those
 * above the physical address width. */
#define PDPTE_RESERVED UINT64_C(0x1e6)
#define PDPTE_COUNT 4

#define CR3_KEEP (UINT64_C(1) << 63)
#define CR3_CONTEXT UINT64_C(0xfff)
#define PHYSICAL_LIMIT (UINT64_C(1) << SOFT_PHYSICAL_BITS)

static _Noreturn void refuse(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

/* PAE paging reads its four top entries when CR3 is loaded; bad ones fail there (SDM
 * 4.4.1). The walk reads them again each time, which a correct program cannot tell. */
static void check_directory_pointers(struct soft_cpu *cpu, const struct uop *uop,
                                     uint64_t cr3)
{
    uint64_t gpa = cr3 & UINT64_C(0xffffffe0);
    const uint8_t *page = soft_vm_page(cpu->vm, gpa);

    if (page == NULL)
        return;
    for (unsigned i = 0; i < PDPTE_COUNT; i++) {
        uint64_t entry = load_le64(page + gpa % X86_PAGE_BYTES + i * sizeof(entry));

        if ((entry & X86_PTE_PRESENT) != 0 &&
            ((entry & PDPTE_RESERVED) != 0 || entry >= PHYSICAL_LIMIT))
            refuse(cpu, uop);
    }
}

static bool is_pae(uint64_t cr0, uint64_t cr4, uint64_t efer)
{
    return (cr0 & X86_CR0_PG) != 0 && (cr4 & X86_CR4_PAE) != 0 &&
           (efer & X86_EFER_LME) == 0;
}

/* ---- CR0
 * ---------------------------------------------------------------------------------------
 */

/* SDM 9.8.5.1: long mode becomes active with paging. */
static void check_long_mode_entry(struct soft_cpu *cpu, const struct uop *uop)
{
    unsigned type = cpu->segments[X86_TR].type;

    if ((cpu->cr4 & X86_CR4_PAE) == 0 || cpu->segments[X86_CS].long_mode ||
        type == TYPE_TSS16 || type == TYPE_TSS16_BUSY)
        refuse(cpu, uop);
}

void control_write_cr0(struct soft_cpu *cpu, const struct uop *uop, uint64_t value)
{
    uint64_t changed;
    bool paging = (value & X86_CR0_PG) != 0;
    bool starts_paging = paging && (cpu->cr0 & X86_CR0_PG) == 0;

    if (value > UINT32_MAX || (paging && (value & X86_CR0_PE) == 0) ||
        ((value & X86_CR0_NW) != 0 && (value & X86_CR0_CD) == 0) ||
        (!paging && (soft_in_64bit_code(cpu) || (cpu->cr4 & X86_CR4_PCIDE) != 0)))
        refuse(cpu, uop);
    if (starts_paging && (cpu->efer & X86_EFER_LME) != 0)
        check_long_mode_entry(cpu, uop);
    if (starts_paging && is_pae(value, cpu->cr4, cpu->efer))
        check_directory_pointers(cpu, uop, cpu->cr3);
    value = (value & CR0_KNOWN) | X86_CR0_ET;
    changed = cpu->cr0 ^ value;
    cpu->cr0 = value;
    cpu->efer &= ~X86_EFER_LMA;
    if (paging && (cpu->efer & X86_EFER_LME) != 0)
        cpu->efer |= X86_EFER_LMA;
    if ((changed & CR0_TRANSLATION) != 0)
        soft_tlb_flush_all(cpu);
    soft_cpu_update_mode(cpu);
}

/* ---- CR3, CR4, EFER
 * ----------------------------------------------------------------------------- */

/* With process-context identifiers bit 63 asks to keep what belongs to the new one (SDM
 * 4.10.4.1). The TLBs know nothing of them and are emptied all the same, which is always
 * allowed. */
void control_write_cr3(struct soft_cpu *cpu, const struct uop *uop, uint64_t value)
{
    if ((cpu->cr4 & X86_CR4_PCIDE) != 0)
        value &= ~CR3_KEEP;
    if (soft_in_long_mode(cpu) && value >= PHYSICAL_LIMIT)
        refuse(cpu, uop);
    if (is_pae(cpu->cr0, cpu->cr4, cpu->efer))
        check_directory_pointers(cpu, uop, value);
    cpu->cr3 = value;
    soft_tlb_flush_non_global(cpu);
}

void control_write_cr4(struct soft_cpu *cpu, const struct uop *uop, uint64_t value)
{
    uint64_t changed = cpu->cr4 ^ value;

    if ((value & ~CR4_KNOWN) != 0 ||
        (soft_in_long_mode(cpu) && (value & X86_CR4_PAE) == 0))
        refuse(cpu, uop);
    if ((changed & value & X86_CR4_PCIDE) != 0 &&
        (!soft_in_long_mode(cpu) || (cpu->cr3 & CR3_CONTEXT) != 0))
        refuse(cpu, uop);
    if ((changed & CR4_TRANSLATION) != 0 && is_pae(cpu->cr0, value, cpu->efer))
        check_directory_pointers(cpu, uop, cpu->cr3);
    cpu->cr4 = value;
    if ((changed & CR4_TRANSLATION) != 0)
        soft_tlb_flush_all(cpu);
    soft_cpu_update_mode(cpu);
}

void control_write_efer(struct soft_cpu *cpu, const struct uop *uop, uint64_t value)
{
    uint64_t known = EFER_KNOWN | (vendor_is_amd() ? EFER_AUTOMATIC_IBRS : 0);
    uint64_t changed = cpu->efer ^ value;

    if ((value & ~known) != 0 ||
        ((changed & X86_EFER_LME) != 0 && (cpu->cr0 & X86_CR0_PG) != 0))
        refuse(cpu, uop);
    cpu->efer = (value & ~X86_EFER_LMA) | (cpu->efer & X86_EFER_LMA);
    if ((changed & X86_EFER_NXE) != 0)
        soft_tlb_flush_all(cpu);
    soft_cpu_update_mode(cpu);
}
