/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUID: the processor that guests see. What it offers is what the tables of forms and
 * mmu.c can do; family and model are of a recent core of the host's maker, and it says
 * that it has none of the leaks that kernels work around, since nothing is speculated
 * here.
 *
 * Sources: SDM vol. 2, CPUID; AMD APM vol. 3, appendix E; Linux'
 * Documentation/virt/kvm/x86/cpuid.rst.
 */
#include <cpuid.h>
#include <string.h>

#include "accel/soft/handlers_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/msr_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/vendor_private.h"
#include "base/check.h"

#define BIT(number) (UINT32_C(1) << (number))

bool vendor_is_amd(void)
{
    static _Atomic int known; /* 1: AMD's, 2: not */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);

    if (answer == 0) {
        uint32_t eax = 0;
        uint32_t ebx = 0;
        uint32_t ecx = 0;
        uint32_t edx = 0;

        (void)__get_cpuid(0, &eax, &ebx, &ecx, &edx);
        answer = ebx == load_le32("Auth") || ebx == load_le32("Hygo") ? 1 : 2;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 1;
}

/* ---- leaves
 * -------------------------------------------------------------------------------------
 */

/* Family 1Ah model 2 stepping 1; family 6 model 8Fh stepping 8. */
#define AMD_SIGNATURE 0x00b00f21
#define INTEL_SIGNATURE 0x000806f8

/* FPU DE PSE TSC MSR PAE MCE CX8 APIC SEP MTRR PGE MCA CMOV PAT PSE36 CLFSH MMX FXSR SSE
 * SSE2 */
#define EDX1                                                                             \
    (BIT(0) | BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(9) |    \
     BIT(11) | BIT(12) | BIT(13) | BIT(14) | BIT(15) | BIT(16) | BIT(17) | BIT(19) |     \
     BIT(23) | BIT(24) | BIT(25) | BIT(26))

/* SSE3 PCLMULQDQ SSSE3 CMPXCHG16B PCID SSE4.1 SSE4.2 x2APIC MOVBE POPCNT AES RDRAND; the
 * hypervisor and TSC-deadline bits are cpuid_filter's. */
#define ECX1                                                                             \
    (BIT(0) | BIT(1) | BIT(9) | BIT(13) | BIT(17) | BIT(19) | BIT(20) | BIT(21) |        \
     BIT(22) | BIT(23) | BIT(25) | BIT(30))

/* FSGSBASE TSC_ADJUST SMEP ERMS INVPCID RDSEED SMAP CLFLUSHOPT CLWB */
#define EBX7                                                                             \
    (BIT(0) | BIT(1) | BIT(7) | BIT(9) | BIT(10) | BIT(18) | BIT(20) | BIT(23) | BIT(24))
#define ECX7 (BIT(2) | BIT(3) | BIT(31)) /* UMIP PKU PKS */
#define ECX7_OSPKE BIT(4)                /* as CR4.PKE is */
#define EDX7 (BIT(4) | BIT(14))          /* FSRM SERIALIZE */
#define EDX7_INTEL (BIT(26) | BIT(29))   /* IBRS, ARCH_CAPABILITIES */

/* LAHF PREFETCHW; CMP_LEGACY, which cpuid_filter clears for one vCPU */
#define ECX80000001 (BIT(0) | BIT(8))
#define ECX80000001_AMD BIT(1)
/* SYSCALL NX PDPE1GB RDTSCP LM; AMD repeats leaf 1, and MMX extensions */
#define EDX80000001 (BIT(11) | BIT(20) | BIT(26) | BIT(27) | BIT(29))
#define EDX80000001_AMD ((EDX1 & 0x0183f3ff) | BIT(22))

#define LINEAR_BITS 48

/* Speculative store bypass does not happen. */
#define EBX80000008_AMD BIT(26)
/* Data breakpoints do not nest; LFENCE serialises; null selectors clear the base;
 * automatic IBRS; no speculative return stack overflow. */
#define EAX80000021 (BIT(0) | BIT(2) | BIT(6) | BIT(8) | BIT(29))
#define ECX80000021 (BIT(1) | BIT(2)) /* no transient scheduler attacks */

/* No I/O delays, clock by MSRs 0x4b564d00 and 01, which is stable over vCPUs, interrupts
 * to many by one hypercall. */
#define KVM_FEATURES (BIT(1) | BIT(3) | BIT(11) | BIT(24))
#define KVM_TIMING_LEAF 0x40000010
/* The local APIC's timer counts nanoseconds, as KVM's. */
#define EDX1_APIC BIT(9)
#define MSR_APIC_BASE 0x1b
#define APIC_BASE_ENABLED 0x800u
#define APIC_BUS_KHZ 1000000

static const struct cpuid_leaf common[] = {
    {.function = 0x1, .ebx = 8 << 8 /* CLFLUSH: 64 bytes */, .ecx = ECX1, .edx = EDX1},
    {.function = 0x6, .eax = BIT(2) /* the APIC timer never stops */},
    {.function = 0x7, .has_index = true, .ebx = EBX7, .ecx = ECX7, .edx = EDX7},
    {.function = 0xb, .has_index = true},
    {.function = 0x40000000,
     .eax = KVM_TIMING_LEAF,
     .ebx = 0x4b4d564b, /* KVMKVMKVM */
     .ecx = 0x564b4d56,
     .edx = 0x4d},
    {.function = 0x40000001, .eax = KVM_FEATURES},
    {.function = KVM_TIMING_LEAF, .ebx = APIC_BUS_KHZ}, /* EAX: see soft_cpuid */
    {.function = 0x80000001, .ecx = ECX80000001, .edx = EDX80000001},
    {.function = 0x80000007, .edx = BIT(8) /* invariant TSC */},
    {.function = 0x80000008, .eax = LINEAR_BITS << 8 | SOFT_PHYSICAL_BITS},
};

/* Caches: 32 KiB 8-way L1, 1 MiB 8-way L2 and 32 MiB 16-way L3, lines of 64 bytes. TLBs
 * of 64 entries, 512 to 1536 on the second level. */
static const struct cpuid_leaf amd_only[] = {
    {.function = 0x80000005,
     .eax = 0xff40ff40,
     .ebx = 0xff40ff40,
     .ecx = 0x20080140,
     .edx = 0x20080140},
    {.function = 0x80000006,
     .eax = 0x46004200,
     .ebx = 0x66004200,
     .ecx = 0x04006140,
     .edx = 0x01008140},
    {.function = 0x80000021, .eax = EAX80000021, .ecx = ECX80000021},
};
static const struct cpuid_leaf intel_only[] = {
    {.function = 0x2, .eax = 0x00feff01}, /* see leaf 4 */
    {.function = 0x4,
     .index = 0,
     .has_index = true,
     .eax = 0x121,
     .ebx = 0x01c0003f,
     .ecx = 63},
    {.function = 0x4,
     .index = 1,
     .has_index = true,
     .eax = 0x122,
     .ebx = 0x01c0003f,
     .ecx = 63},
    {.function = 0x4,
     .index = 2,
     .has_index = true,
     .eax = 0x143,
     .ebx = 0x01c0003f,
     .ecx = 2047},
    {.function = 0x4,
     .index = 3,
     .has_index = true,
     .eax = 0x163,
     .ebx = 0x03c0003f,
     .ecx = 32767},
    {.function = 0x80000006, .ecx = 0x04006040},
};

struct model {
    struct cpuid_leaf *leaves;
    size_t count;
};

static void add(struct model *model, const struct cpuid_leaf *leaves, size_t count)
{
    CHECK(model->count + count + CPUID_FILTER_EXTRA_LEAVES <= CPU_MODEL_LEAVES);
    memcpy(model->leaves + model->count, leaves, count * sizeof(leaves[0]));
    model->count += count;
}

/* Leaves 0 and 0x80000000: the highest of their range, and the maker. */
static void add_maker(struct model *model, bool amd)
{
    const char *maker = amd ? "AuthenticAMD" : "GenuineIntel";
    struct cpuid_leaf leaf = {
        .eax = 0xb,
        .ebx = load_le32(maker),
        .edx = load_le32(maker + 4),
        .ecx = load_le32(maker + 8),
    };

    add(model, &leaf, 1);
    leaf.function = 0x80000000;
    leaf.eax = amd ? 0x80000021 : 0x80000008;
    if (!amd)
        leaf.ebx = leaf.ecx = leaf.edx = 0;
    add(model, &leaf, 1);
}

static void add_brand(struct model *model)
{
    static const char brand[48] = "husk software CPU";

    for (uint32_t i = 0; i < 3; i++) {
        const char *part = brand + 16 * (size_t)i;
        struct cpuid_leaf leaf = {
            .function = 0x80000002 + i,
            .eax = load_le32(part),
            .ebx = load_le32(part + 4),
            .ecx = load_le32(part + 8),
            .edx = load_le32(part + 12),
        };

        add(model, &leaf, 1);
    }
}

/* Vector instructions run on the host's unit. */
static void drop_what_the_host_lacks(struct cpuid_leaf *leaf)
{
    static const struct {
        enum vector_need need;
        uint32_t bit;
    } features[] = {
        {NEED_SSE3, BIT(0)},   {NEED_PCLMUL, BIT(1)}, {NEED_SSSE3, BIT(9)},
        {NEED_SSE41, BIT(19)}, {NEED_SSE42, BIT(20)}, {NEED_AES, BIT(25)},
    };

    for (size_t i = 0; i < ARRAY_SIZE(features); i++)
        if (!vector_host_has(features[i].need))
            leaf->ecx &= ~features[i].bit;
}

static void set_maker_features(struct cpuid_leaf *leaf, bool amd)
{
    switch (leaf->function) {
    case 0x1:
        leaf->eax = amd ? AMD_SIGNATURE : INTEL_SIGNATURE;
        drop_what_the_host_lacks(leaf);
        break;
    case 0x7:
        leaf->edx |= amd ? 0 : EDX7_INTEL;
        break;
    case 0x80000001:
        leaf->ecx |= amd ? ECX80000001_AMD : 0;
        leaf->edx |= amd ? EDX80000001_AMD : 0;
        break;
    case 0x80000008:
        leaf->ebx |= amd ? EBX80000008_AMD : 0;
        break;
    default:
        break;
    }
}

size_t cpu_model_build(struct cpuid_leaf leaves[CPU_MODEL_LEAVES], bool amd,
                       uint32_t cpu_index, uint32_t cpu_count)
{
    const struct cpuid_policy policy = {
        .cpu_index = cpu_index, .cpu_count = cpu_count, .tsc_deadline = true};
    struct model model = {.leaves = leaves};

    add_maker(&model, amd);
    add(&model, common, ARRAY_SIZE(common));
    if (amd)
        add(&model, amd_only, ARRAY_SIZE(amd_only));
    else
        add(&model, intel_only, ARRAY_SIZE(intel_only));
    add_brand(&model);
    for (size_t i = 0; i < model.count; i++)
        set_maker_features(&leaves[i], amd);
    return cpuid_filter(leaves, model.count, &policy);
}

/* SDM 10.4.3: with IA32_APIC_BASE bit 11 clear there is no local APIC. */
static bool apic_is_on(const struct soft_cpu *cpu)
{
    uint64_t base;

    return !cpu->irq->read_msr(cpu->irq->context, MSR_APIC_BASE, &base) ||
           (base & APIC_BASE_ENABLED) != 0;
}

/* Leaves that are not there are all 0. */
struct cpuid_leaf soft_cpuid(const struct soft_cpu *cpu, uint32_t function,
                             uint32_t index)
{
    const struct soft_msrs *msrs = cpu->msrs;

    for (size_t i = 0; i < msrs->leaf_count; i++) {
        struct cpuid_leaf leaf = msrs->leaves[i];

        if (leaf.function != function || (leaf.has_index && leaf.index != index))
            continue;
        if (function == 1 && !apic_is_on(cpu))
            leaf.edx &= ~EDX1_APIC;
        if (function == 7 && (cpu->cr4 & X86_CR4_PKE) != 0)
            leaf.ecx |= ECX7_OSPKE;
        if (function == KVM_TIMING_LEAF)
            leaf.eax = clock_guest_khz(cpu);
        return leaf;
    }
    return (struct cpuid_leaf){.function = function, .index = index};
}
