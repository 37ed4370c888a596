/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUID table of a guest processor; see cpuid.h.
 * Sources: SDM vol. 2, CPUID (leaves below 0x40000000); AMD APM vol. 3, appendix E
 * (leaves from 0x80000000 on). */
#include "x86/cpuid.h"

#include "base/bytes.h"

#define BIT(number) (UINT32_C(1) << (number))

/* Leaf 1. */
#define ECX1_CMPXCHG16B BIT(13)
#define ECX1_TSC_DEADLINE BIT(24)
#define ECX1_HYPERVISOR BIT(31)
#define EDX1_HTT BIT(28) /* the package holds several logical processors */

/* Leaf 0x80000001: HTT means cores, not threads. */
#define ECX80000001_CMP_LEGACY BIT(1)

/* Leaf 0xb: level types in ECX[15:8]. */
#define LEVEL_THREAD (UINT32_C(1) << 8)
#define LEVEL_CORE (UINT32_C(2) << 8)

/* Caches from this level on are shared by the whole package. */
#define FIRST_SHARED_CACHE_LEVEL 3

/* Leaves about what husk's machine has not: MONITOR, performance counters, SGX, processor
 * trace, last-branch records, counters again; SVM, IBS, LWP, memory encryption, counters
 * again. They are answered with zeros. */
static const uint32_t hidden_leaves[] = {
    0x5,        0xa,        0x12,       0x14,       0x1c,       0x23,
    0x8000000a, 0x8000001b, 0x8000001c, 0x8000001f, 0x80000022,
};

/* Feature bits of the same kind; set here, cleared in the guest. */
static const struct cpuid_leaf hidden_bits[] = {
    /* DTES64 MONITOR DS-CPL VMX SMX EIST TM2 PDCM; DS ACPI TM PBE */
    {.function = 1,
     .ecx = BIT(2) | BIT(3) | BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(8) | BIT(15),
     .edx = BIT(21) | BIT(22) | BIT(29) | BIT(31)},
    /* All thermal and power management but ARAT, which says the timer never stops */
    {.function = 6, .eax = ~BIT(2), .ebx = ~0u, .ecx = ~0u, .edx = ~0u},
    /* SGX, processor trace; WAITPKG, SGX launch control; PCONFIG, LBR */
    {.function = 7,
     .ebx = BIT(2) | BIT(25),
     .ecx = BIT(5) | BIT(30),
     .edx = BIT(18) | BIT(19)},
    /* SVM ExtApicSpace IBS SKINIT WDT LWP PerfCtrExtCore PerfCtrExtNB PerfTsc
     * PerfCtrExtLLC MONITORX */
    {.function = 0x80000001,
     .ecx = BIT(2) | BIT(3) | BIT(10) | BIT(12) | BIT(13) | BIT(15) | BIT(23) | BIT(24) |
            BIT(27) | BIT(28) | BIT(29)},
};

static void set_bits(uint32_t *word, uint32_t bits, bool on)
{
    *word = on ? *word | bits : *word & ~bits;
}

/* Replaces the `width` bits from `shift` on. */
static void set_field(uint32_t *word, unsigned shift, unsigned width, uint32_t value)
{
    uint32_t mask = (BIT(width) - 1) << shift;

    *word = (*word & ~mask) | (value << shift & mask);
}

static void hide(struct cpuid_leaf *leaf)
{
    for (size_t i = 0; i < ARRAY_SIZE(hidden_leaves); i++) {
        if (leaf->function == hidden_leaves[i])
            leaf->eax = leaf->ebx = leaf->ecx = leaf->edx = 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(hidden_bits); i++) {
        if (leaf->function != hidden_bits[i].function ||
            leaf->index != hidden_bits[i].index)
            continue;
        leaf->eax &= ~hidden_bits[i].eax;
        leaf->ebx &= ~hidden_bits[i].ebx;
        leaf->ecx &= ~hidden_bits[i].ecx;
        leaf->edx &= ~hidden_bits[i].edx;
    }
}

/* Bits of an APIC id that tell the package's cores apart. */
static unsigned core_id_bits(const struct cpuid_policy *policy)
{
    unsigned bits = 0;

    while ((UINT32_C(1) << bits) < policy->cpu_count)
        bits++;
    return bits;
}

static void set_features(struct cpuid_leaf *leaf, const struct cpuid_policy *policy)
{
    set_field(&leaf->ebx, 24, 8, policy->cpu_index);
    set_field(&leaf->ebx, 16, 8, policy->cpu_count);
    set_bits(&leaf->ecx, ECX1_HYPERVISOR, true);
    set_bits(&leaf->ecx, ECX1_TSC_DEADLINE, policy->tsc_deadline);
    if (policy->hide_cmpxchg16b)
        set_bits(&leaf->ecx, ECX1_CMPXCHG16B, false);
    set_bits(&leaf->edx, EDX1_HTT, policy->cpu_count > 1);
}

/* Leaves 4 and 0x8000001d: one row a cache; EAX[4:0] 0 ends the list. */
static void set_cache_sharing(struct cpuid_leaf *leaf, const struct cpuid_policy *policy)
{
    uint32_t level = leaf->eax >> 5 & 7;
    uint32_t last_core = BIT(core_id_bits(policy)) - 1;

    if ((leaf->eax & 0x1f) == 0)
        return;
    set_field(&leaf->eax, 14, 12, level >= FIRST_SHARED_CACHE_LEVEL ? last_core : 0);
    if (leaf->function == 4)
        set_field(&leaf->eax, 26, 6, (uint32_t)min_u64(last_core, 0x3f));
}

static void set_topology(struct cpuid_leaf *leaf, const struct cpuid_policy *policy,
                         bool is_amd)
{
    switch (leaf->function) {
    case 0x1:
        set_features(leaf, policy);
        break;
    case 0x4:
    case 0x8000001d:
        set_cache_sharing(leaf, policy);
        break;
    case 0x80000001:
        if (policy->cpu_count == 1)
            set_bits(&leaf->ecx, ECX80000001_CMP_LEGACY, false);
        break;
    case 0x80000008:
        if (is_amd) { /* reserved on Intel's */
            set_field(&leaf->ecx, 0, 8, policy->cpu_count - 1);
            set_field(&leaf->ecx, 12, 4, core_id_bits(policy));
        }
        break;
    case 0x8000001e: /* APIC id; one thread a core, core id; one node, number 0 */
        leaf->eax = policy->cpu_index;
        leaf->ebx = policy->cpu_index & 0xff;
        leaf->ecx = leaf->edx = 0;
        break;
    default:
        break;
    }
}

/* Leaf 0xb anew, as hosts offer it with their own topology or as one empty row. Leaf 0x1f
 * says no more than 0xb for a machine without dies: its rows are left out. */
static size_t rebuild_extended_topology(struct cpuid_leaf *leaves, size_t count,
                                        const struct cpuid_policy *policy)
{
    const struct cpuid_leaf levels[CPUID_FILTER_EXTRA_LEAVES] = {
        {.function = 0xb,
         .index = 0,
         .has_index = true,
         .eax = 0,
         .ebx = 1,
         .ecx = LEVEL_THREAD | 0,
         .edx = policy->cpu_index},
        {.function = 0xb,
         .index = 1,
         .has_index = true,
         .eax = core_id_bits(policy),
         .ebx = policy->cpu_count,
         .ecx = LEVEL_CORE | 1,
         .edx = policy->cpu_index},
    };
    bool offered = false;
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        offered |= leaves[i].function == 0xb;
        if (leaves[i].function != 0xb && leaves[i].function != 0x1f)
            leaves[kept++] = leaves[i];
    }
    for (size_t i = 0; offered && i < ARRAY_SIZE(levels); i++)
        leaves[kept++] = levels[i];
    return kept;
}

/* Leaf 0 spells the vendor: "Auth"enticAMD, "Hygo"nGenuine. */
static bool vendor_is_amd(const struct cpuid_leaf *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (leaves[i].function == 0)
            return leaves[i].ebx == load_le32("Auth") ||
                   leaves[i].ebx == load_le32("Hygo");
    }
    return false;
}

size_t cpuid_filter(struct cpuid_leaf *leaves, size_t count,
                    const struct cpuid_policy *policy)
{
    bool is_amd = vendor_is_amd(leaves, count);

    for (size_t i = 0; i < count; i++) {
        hide(&leaves[i]);
        set_topology(&leaves[i], policy, is_amd);
    }
    return rebuild_extended_topology(leaves, count, policy);
}
