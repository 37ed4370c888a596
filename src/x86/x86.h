/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the x86-64 architecture: registers, flags, descriptors, page-table bits, MSRs.
 * Sources: Intel SDM (vol. 3 unless said), AMD APM vol. 2.
 */
#ifndef HUSK_X86_X86_H
#define HUSK_X86_X86_H

#include <stdbool.h>
#include <stdint.h>

/* General registers in encoding order (SDM vol. 2, table 3-1). */
enum x86_register {
    X86_RAX,
    X86_RCX,
    X86_RDX,
    X86_RBX,
    X86_RSP,
    X86_RBP,
    X86_RSI,
    X86_RDI,
    X86_R8,
    X86_R9,
    X86_R10,
    X86_R11,
    X86_R12,
    X86_R13,
    X86_R14,
    X86_R15,
    X86_REGISTER_COUNT,
};

/* Segment registers: ES to GS in encoding order, then the two system segments. */
enum x86_segment_register {
    X86_ES,
    X86_CS,
    X86_SS,
    X86_DS,
    X86_FS,
    X86_GS,
    X86_LDTR,
    X86_TR,
    X86_SEGMENT_COUNT,
};

/* RFLAGS (SDM 2.3). */
#define X86_FLAGS_CF UINT64_C(0x1)
#define X86_FLAGS_FIXED UINT64_C(0x2) /* bit 1 reads as 1 */
#define X86_FLAGS_PF UINT64_C(0x4)
#define X86_FLAGS_AF UINT64_C(0x10)
#define X86_FLAGS_ZF UINT64_C(0x40)
#define X86_FLAGS_SF UINT64_C(0x80)
#define X86_FLAGS_TF UINT64_C(0x100)
#define X86_FLAGS_IF UINT64_C(0x200)
#define X86_FLAGS_DF UINT64_C(0x400)
#define X86_FLAGS_OF UINT64_C(0x800)
#define X86_FLAGS_IOPL UINT64_C(0x3000)
#define X86_FLAGS_NT UINT64_C(0x4000)
#define X86_FLAGS_RF UINT64_C(0x10000)
#define X86_FLAGS_VM UINT64_C(0x20000)
#define X86_FLAGS_AC UINT64_C(0x40000)
#define X86_FLAGS_VIF UINT64_C(0x80000)
#define X86_FLAGS_VIP UINT64_C(0x100000)
#define X86_FLAGS_ID UINT64_C(0x200000)

/* CR0 (SDM 2.5). */
#define X86_CR0_PE UINT64_C(0x1)
#define X86_CR0_MP UINT64_C(0x2)
#define X86_CR0_EM UINT64_C(0x4)
#define X86_CR0_TS UINT64_C(0x8)
#define X86_CR0_ET UINT64_C(0x10)
#define X86_CR0_NE UINT64_C(0x20)
#define X86_CR0_WP UINT64_C(0x10000)
#define X86_CR0_AM UINT64_C(0x40000)
#define X86_CR0_NW UINT64_C(0x20000000)
#define X86_CR0_CD UINT64_C(0x40000000)
#define X86_CR0_PG UINT64_C(0x80000000)

/* CR4 (SDM 2.5). */
#define X86_CR4_VME UINT64_C(0x1)
#define X86_CR4_PVI UINT64_C(0x2)
#define X86_CR4_TSD UINT64_C(0x4)
#define X86_CR4_DE UINT64_C(0x8)
#define X86_CR4_PSE UINT64_C(0x10)
#define X86_CR4_PAE UINT64_C(0x20)
#define X86_CR4_MCE UINT64_C(0x40)
#define X86_CR4_PGE UINT64_C(0x80)
#define X86_CR4_PCE UINT64_C(0x100)
#define X86_CR4_OSFXSR UINT64_C(0x200)
#define X86_CR4_OSXMMEXCPT UINT64_C(0x400)
#define X86_CR4_UMIP UINT64_C(0x800)
#define X86_CR4_FSGSBASE UINT64_C(0x10000)
#define X86_CR4_PCIDE UINT64_C(0x20000)
#define X86_CR4_OSXSAVE UINT64_C(0x40000)
#define X86_CR4_SMEP UINT64_C(0x100000)
#define X86_CR4_SMAP UINT64_C(0x200000)
#define X86_CR4_PKE UINT64_C(0x400000)
#define X86_CR4_PKS UINT64_C(0x1000000)

/* EFER (SDM 2.2.1; AMD APM vol. 2, 3.1.7). */
#define X86_EFER_SCE UINT64_C(0x1)
#define X86_EFER_LME UINT64_C(0x100)
#define X86_EFER_LMA UINT64_C(0x400)
#define X86_EFER_NXE UINT64_C(0x800)

/* DR6 and DR7 (SDM 17.2). */
#define X86_DR6_FIXED UINT64_C(0xffff0ff0)
#define X86_DR6_BD UINT64_C(0x2000)
#define X86_DR6_BS UINT64_C(0x4000)
#define X86_DR6_BT UINT64_C(0x8000)
#define X86_DR7_FIXED UINT64_C(0x400)
#define X86_DR7_ENABLES UINT64_C(0xff)
#define X86_DR7_GD UINT64_C(0x2000)

/* Exception vectors (SDM table 6-1). */
enum x86_vector {
    X86_VECTOR_DE = 0,
    X86_VECTOR_DB = 1,
    X86_VECTOR_NMI = 2,
    X86_VECTOR_BP = 3,
    X86_VECTOR_OF = 4,
    X86_VECTOR_BR = 5,
    X86_VECTOR_UD = 6,
    X86_VECTOR_NM = 7,
    X86_VECTOR_DF = 8,
    X86_VECTOR_TS = 10,
    X86_VECTOR_NP = 11,
    X86_VECTOR_SS = 12,
    X86_VECTOR_GP = 13,
    X86_VECTOR_PF = 14,
    X86_VECTOR_MF = 16,
    X86_VECTOR_AC = 17,
    X86_VECTOR_MC = 18,
    X86_VECTOR_XM = 19,
};

/* Page-fault error code (SDM figure 4-12). */
#define X86_PF_PRESENT 0x1u
#define X86_PF_WRITE 0x2u
#define X86_PF_USER 0x4u
#define X86_PF_RESERVED 0x8u
#define X86_PF_FETCH 0x10u
#define X86_PF_KEY 0x20u

/* Page-table entry bits (SDM 4.5). */
#define X86_PTE_PRESENT UINT64_C(0x1)
#define X86_PTE_WRITABLE UINT64_C(0x2)
#define X86_PTE_USER UINT64_C(0x4)
#define X86_PTE_ACCESSED UINT64_C(0x20)
#define X86_PTE_DIRTY UINT64_C(0x40)
#define X86_PTE_LARGE UINT64_C(0x80)
#define X86_PTE_GLOBAL UINT64_C(0x100)
#define X86_PTE_ADDRESS UINT64_C(0x000ffffffffff000)
#define X86_PTE_NO_EXECUTE (UINT64_C(1) << 63)

#define X86_PAGE_BYTES UINT64_C(4096)
#define X86_LARGE_PAGE_BYTES (UINT64_C(2) << 20)

/* Descriptor types (SDM 3.4.5.1 and 3.5). */
#define X86_TYPE_DATA_READ_WRITE_ACCESSED 3
#define X86_TYPE_CODE_READ_EXECUTE_ACCESSED 11
#define X86_TYPE_LDT 2
#define X86_TYPE_TSS_BUSY 11 /* 32-bit, and 64-bit in long mode */
#define X86_TYPE_TSS16_BUSY 3

/* A segment register with its hidden part. */
struct x86_segment {
    uint64_t base;
    uint32_t limit; /* in bytes, granularity already applied */
    uint16_t selector;
    uint8_t type; /* 4 bits of the descriptor */
    uint8_t dpl;
    bool present;
    bool code_or_data; /* descriptor bit S; false: system segment */
    bool db;           /* default operation size 32 */
    bool long_mode;    /* bit L */
    bool granularity;  /* bit G: limit was in 4 KiB units */
};

/* GDTR, IDTR. */
struct x86_table {
    uint64_t base;
    uint16_t limit;
};

/* What a guest program sees of a processor before it runs: the state in which a boot
 * protocol enters. FPU, MSRs and the rest have their reset values (SDM table 9-1). */
struct cpu_state {
    uint64_t registers[X86_REGISTER_COUNT];
    uint64_t rip;
    uint64_t rflags;
    struct x86_segment segments[X86_SEGMENT_COUNT];
    struct x86_table gdt;
    struct x86_table idt;
    uint64_t cr0;
    uint64_t cr2;
    uint64_t cr3;
    uint64_t cr4;
    uint64_t efer;
};

/* Power-on: real mode at F000:FFF0 with CS base 0xffff0000 (SDM table 9-1). */
void cpu_state_reset(struct cpu_state *state);

/* Flat 32-bit protected mode, paging off, interrupts off, CS 0x10 (code), the data
 * segments 0x18, busy 32-bit TSS at 0 with limit 0x67; all registers 0 but EIP. The GDT
 * that backs the selectors is X86_BOOT_GDT. */
void cpu_state_flat32(struct cpu_state *state, uint32_t eip, uint32_t gdt_gpa);

/* 64-bit long mode with page tables at `cr3`, interrupts off, selectors as above. */
void cpu_state_long64(struct cpu_state *state, uint64_t rip, uint64_t cr3,
                      uint32_t gdt_gpa);

/* The GDT those states assume, as bytes to put into guest memory: null, null, code 0x10,
 * data 0x18, TSS 0x20 (two slots). */
#define X86_BOOT_GDT_ENTRIES 6
#define X86_BOOT_CS 0x10
#define X86_BOOT_DS 0x18
#define X86_BOOT_TR 0x20
void x86_boot_gdt(uint64_t gdt[X86_BOOT_GDT_ENTRIES], bool code64);

#endif
