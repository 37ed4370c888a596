/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model-specific registers (SDM vol. 4; AMD APM vol. 2, appendix A). What is not here is
 * #GP, as on a processor that lacks it: kernels ask with that in mind.
 */
#include "accel/soft/msr_private.h"

#include <errno.h>
#include <stdlib.h>

#include "accel/soft/control_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/segments_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/vendor_private.h"
#include "base/log.h"

enum msr_number {
    MSR_TSC = 0x10,
    MSR_APIC_BASE = 0x1b, /* of the local APIC */
    MSR_PLATFORM_ID = 0x17,
    MSR_TSC_ADJUST = 0x3b,
    MSR_SPEC_CONTROL = 0x48,
    MSR_PREDICTION_COMMAND = 0x49,
    MSR_MICROCODE = 0x8b,
    MSR_MTRR_CAPABILITY = 0xfe,
    MSR_ARCH_CAPABILITIES = 0x10a,
    MSR_FLUSH_COMMAND = 0x10b,
    MSR_SYSENTER_CS = 0x174,
    MSR_SYSENTER_ESP = 0x175,
    MSR_SYSENTER_EIP = 0x176,
    MSR_MCG_CAPABILITY = 0x179,
    MSR_MCG_STATUS = 0x17a,
    MSR_MISC_ENABLE = 0x1a0,
    MSR_DEBUG_CONTROL = 0x1d9,
    MSR_MTRR_VARIABLE = 0x200,
    MSR_PAT = 0x277,
    MSR_KEY_RIGHTS = 0x6e1, /* IA32_PKRS */
    MSR_MTRR_DEFAULT = 0x2ff,
    MSR_KVM_WALL_CLOCK = 0x4b564d00,
    MSR_KVM_SYSTEM_TIME = 0x4b564d01,
    MSR_EFER = 0xc0000080,
    MSR_STAR = 0xc0000081,
    MSR_LSTAR = 0xc0000082,
    MSR_CSTAR = 0xc0000083,
    MSR_FMASK = 0xc0000084,
    MSR_FS_BASE = 0xc0000100,
    MSR_GS_BASE = 0xc0000101,
    MSR_KERNEL_GS_BASE = 0xc0000102,
    MSR_TSC_AUX = 0xc0000103,
    MSR_AMD_COUNTERS = 0xc0010000, /* four selectors, four counters */
    MSR_AMD_COUNTERS_LAST = 0xc0010007,
    MSR_AMD_SYSTEM_CONFIG = 0xc0010010,
    MSR_AMD_HARDWARE_CONFIG = 0xc0010015,
    MSR_AMD_BRIDGE_CONFIG = 0xc001001f,
    MSR_AMD_DECODE_CONFIG = 0xc0011029,
};

/* In the order of struct soft_msrs.mtrr_fixed (SDM table 12-9). */
static const uint32_t mtrr_fixed_numbers[MTRR_FIXED_COUNT] = {
    0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f,
};

/* Eight variable ranges, fixed ranges, write-combining (SDM figure 12-5). */
#define MTRR_CAPABILITY (MTRR_VARIABLE_COUNT | 1u << 8 | 1u << 10)
/* As firmware leaves it: MTRRs on, default type write-back. */
#define MTRR_DEFAULT_RESET 0x806u
#define MTRR_DEFAULT_KNOWN 0xcffu
#define MTRR_MASK_VALID 0x800u

/* Write-back, write-through, uncached-minus, uncached, twice (SDM table 12-12). */
#define PAT_RESET UINT64_C(0x0007040600070406)

/* Fast strings on; no precise-event sampling, no branch trace. */
#define MISC_ENABLE_RESET (1u | 1u << 11 | 1u << 12)

/* RDCL_NO IBRS_ALL SKIP_L1DFL SSB_NO MDS_NO IF_PSCHANGE_MC_NO TAA_NO, SBDR_SSDP_NO
 * FBSDP_NO PSDP_NO, BHI_NO, PBRSB_NO, GDS_NO, RFDS_NO, ITS_NO: nothing is speculated. */
#define ARCH_CAPABILITIES                                                                \
    (UINT64_C(0x17b) | UINT64_C(0xe000) | UINT64_C(1) << 20 | UINT64_C(1) << 24 |        \
     UINT64_C(1) << 26 | UINT64_C(1) << 27 | UINT64_C(1) << 62)

/* IBRS, STIBP, SSBD */
#define SPEC_CONTROL_KNOWN 0x7u

/* LFENCE waits for what is before it, as the kernel sets it where it is not. */
#define DECODE_CONFIG_LFENCE 0x2u
/* The time-stamp counter counts at the P0 frequency. */
#define HARDWARE_CONFIG_RESET 0x01000000u

int soft_msrs_create(struct soft_cpu *cpu, struct error *err)
{
    struct soft_msrs *msrs = calloc(1, sizeof(*msrs));

    if (msrs == NULL)
        return error_set(err, -ENOMEM, "out of memory for vCPU %u", cpu->index);
    *msrs = (struct soft_msrs){
        .pat = PAT_RESET,
        .mtrr_default = MTRR_DEFAULT_RESET,
        .misc_enable = MISC_ENABLE_RESET,
        .hardware_config = HARDWARE_CONFIG_RESET,
        .decode_config = DECODE_CONFIG_LFENCE,
    };
    cpu->msrs = msrs;
    clock_start(cpu);
    msrs->leaf_count =
        cpu_model_build(msrs->leaves, vendor_is_amd(), cpu->index, cpu->vm->cpu_count);
    return 0;
}

void soft_msrs_destroy(struct soft_cpu *cpu)
{
    free(cpu->msrs);
}

/* ---- registers that are no more than a place
 * ------------------------------------------------------ */

/* Whose processors have a register. */
enum msr_maker { MAKER_ANY, MAKER_AMD, MAKER_INTEL };

/* What a write must keep to. */
enum msr_rule {
    RULE_NONE,
    RULE_CANONICAL,
    RULE_LOW_HALF, /* bits 63 to 32 are 0 */
    RULE_KNOWN,    /* bits outside `known` are 0 */
    RULE_PAT,      /* eight memory types */
};

static const struct place {
    uint32_t number;
    uint8_t maker; /* enum msr_maker */
    uint8_t rule;  /* enum msr_rule */
    uint16_t offset;
    uint64_t known;
} places[] = {
#define AT(field) offsetof(struct soft_msrs, field)
    {MSR_SPEC_CONTROL, MAKER_INTEL, RULE_KNOWN, AT(spec_control), SPEC_CONTROL_KNOWN},
    {MSR_SYSENTER_CS, MAKER_ANY, RULE_NONE, AT(sysenter_cs), 0},
    {MSR_SYSENTER_ESP, MAKER_ANY, RULE_CANONICAL, AT(sysenter_esp), 0},
    {MSR_SYSENTER_EIP, MAKER_ANY, RULE_CANONICAL, AT(sysenter_eip), 0},
    {MSR_MCG_STATUS, MAKER_ANY, RULE_KNOWN, AT(mcg_status), 0x7},
    {MSR_MISC_ENABLE, MAKER_ANY, RULE_NONE, AT(misc_enable), 0},
    {MSR_DEBUG_CONTROL, MAKER_ANY, RULE_KNOWN, AT(debug_control), 0x3},
    {MSR_PAT, MAKER_ANY, RULE_PAT, AT(pat), 0},
    {MSR_MTRR_DEFAULT, MAKER_ANY, RULE_KNOWN, AT(mtrr_default), MTRR_DEFAULT_KNOWN},
    {MSR_STAR, MAKER_ANY, RULE_NONE, AT(star), 0},
    {MSR_LSTAR, MAKER_ANY, RULE_CANONICAL, AT(lstar), 0},
    {MSR_CSTAR, MAKER_ANY, RULE_CANONICAL, AT(cstar), 0},
    {MSR_FMASK, MAKER_ANY, RULE_LOW_HALF, AT(fmask), 0},
    {MSR_TSC_AUX, MAKER_ANY, RULE_LOW_HALF, AT(tsc_aux), 0},
    {MSR_AMD_SYSTEM_CONFIG, MAKER_AMD, RULE_NONE, AT(system_config), 0},
    {MSR_AMD_HARDWARE_CONFIG, MAKER_AMD, RULE_NONE, AT(hardware_config), 0},
    {MSR_AMD_BRIDGE_CONFIG, MAKER_AMD, RULE_NONE, AT(bridge_config), 0},
    {MSR_AMD_DECODE_CONFIG, MAKER_AMD, RULE_NONE, AT(decode_config), 0},
#undef AT
};

static bool is_made_here(uint8_t maker)
{
    return maker == MAKER_ANY || (maker == MAKER_AMD) == vendor_is_amd();
}

static const struct place *find_place(uint32_t number)
{
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        if (places[i].number == number && is_made_here(places[i].maker))
            return &places[i];
    return NULL;
}

static uint64_t *place_value(struct soft_msrs *msrs, const struct place *place)
{
    return (uint64_t *)(void *)((uint8_t *)msrs + place->offset);
}

/* Types 2, 3 and those above 7 do not exist (SDM table 12-10). */
static bool is_page_attribute_table(uint64_t value)
{
    for (unsigned i = 0; i < 8; i++) {
        unsigned type = value >> 8 * i & 0xff;

        if (type > 7 || type == 2 || type == 3)
            return false;
    }
    return true;
}

static bool keeps_rule(const struct place *place, uint64_t value)
{
    switch ((enum msr_rule)place->rule) {
    case RULE_CANONICAL:
        return linear_is_canonical(value);
    case RULE_LOW_HALF:
        return value <= UINT32_MAX;
    case RULE_KNOWN:
        return (value & ~place->known) == 0;
    case RULE_PAT:
        return is_page_attribute_table(value);
    case RULE_NONE:
        break;
    }
    return true;
}

/* A fixed- or variable-range MTRR's place, or NULL. */
static uint64_t *mtrr_value(struct soft_msrs *msrs, uint32_t number)
{
    if (number - MSR_MTRR_VARIABLE < ARRAY_SIZE(msrs->mtrr_variable))
        return &msrs->mtrr_variable[number - MSR_MTRR_VARIABLE];
    for (size_t i = 0; i < MTRR_FIXED_COUNT; i++)
        if (mtrr_fixed_numbers[i] == number)
            return &msrs->mtrr_fixed[i];
    return NULL;
}

static bool is_mtrr_value(uint32_t number, uint64_t value)
{
    const uint64_t above = ~((UINT64_C(1) << SOFT_PHYSICAL_BITS) - 1);

    if (number >= mtrr_fixed_numbers[0])
        return true;
    if ((number & 1) != 0) /* mask */
        return (value & (above | 0x7ff)) == 0;
    return (value & (above | 0xf00)) == 0;
}

/* ---- reading
 * ------------------------------------------------------------------------------------ */

/* Where several are answered alike. False: there is no such register. */
static bool read_special(struct soft_cpu *cpu, uint32_t number, uint64_t *value)
{
    const struct soft_msrs *msrs = cpu->msrs;

    switch (number) {
    case MSR_TSC:
        *value = soft_tsc(cpu);
        return true;
    case MSR_TSC_ADJUST:
        *value = msrs->tsc_adjust;
        return true;
    case MSR_EFER:
        *value = cpu->efer;
        return true;
    case MSR_FS_BASE:
        *value = cpu->segments[X86_FS].base;
        return true;
    case MSR_GS_BASE:
        *value = cpu->segments[X86_GS].base;
        return true;
    case MSR_KERNEL_GS_BASE:
        *value = cpu->kernel_gs_base;
        return true;
    case MSR_KEY_RIGHTS:
        *value = cpu->key_rights[false];
        return true;
    case MSR_MTRR_CAPABILITY:
        *value = MTRR_CAPABILITY;
        return true;
    case MSR_PLATFORM_ID:
    case MSR_MICROCODE:      /* no update was ever loaded */
    case MSR_MCG_CAPABILITY: /* no banks */
        *value = 0;
        return true;
    case MSR_AMD_COUNTERS ... MSR_AMD_COUNTERS_LAST: /* every AMD has them; none counts */
        *value = 0;
        return vendor_is_amd();
    case MSR_ARCH_CAPABILITIES:
        *value = ARCH_CAPABILITIES;
        return !vendor_is_amd();
    case MSR_KVM_WALL_CLOCK:
        *value = msrs->wall_clock;
        return true;
    case MSR_KVM_SYSTEM_TIME:
        *value = msrs->system_time;
        return true;
    default:
        return false;
    }
}

static bool read_apic(struct soft_cpu *cpu, uint32_t number, uint64_t *value)
{
    return cpu->irq->read_msr(cpu->irq->context, number, value);
}

static bool write_apic(struct soft_cpu *cpu, uint32_t number, uint64_t value)
{
    /* The local APIC does not know how wide physical addresses are. */
    if (number == MSR_APIC_BASE && value >> SOFT_PHYSICAL_BITS != 0)
        return false;
    return cpu->irq->write_msr(cpu->irq->context, number, value);
}

static _Noreturn void refuse(struct soft_cpu *cpu, const struct uop *uop,
                             const char *access, uint32_t number)
{
    static struct log_gate gate;

    if (log_enabled(LOG_DEBUG) && log_gate_open(&gate))
        log_debug("soft: vCPU %u: %s of MSR 0x%x refused", cpu->index, access, number);
    soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

uint64_t soft_msr_read(struct soft_cpu *cpu, const struct uop *uop, uint32_t index)
{
    const struct place *place = find_place(index);
    const uint64_t *mtrr = mtrr_value(cpu->msrs, index);
    uint64_t value = 0;

    if (place != NULL)
        return *place_value(cpu->msrs, place);
    if (mtrr != NULL)
        return *mtrr;
    if (!read_special(cpu, index, &value) && !read_apic(cpu, index, &value))
        refuse(cpu, uop, "read", index);
    return value;
}

/* ---- writing
 * ------------------------------------------------------------------------------------ */

static bool write_base(uint64_t *base, uint64_t value)
{
    if (!linear_is_canonical(value))
        return false;
    *base = value;
    return true;
}

static bool write_special(struct soft_cpu *cpu, const struct uop *uop, uint32_t number,
                          uint64_t value)
{
    switch (number) {
    case MSR_TSC:
        clock_write_tsc(cpu, value);
        return true;
    case MSR_TSC_ADJUST:
        clock_write_adjust(cpu, value);
        return true;
    case MSR_EFER:
        control_write_efer(cpu, uop, value);
        return true;
    case MSR_FS_BASE:
        return write_base(&cpu->segments[X86_FS].base, value);
    case MSR_GS_BASE:
        return write_base(&cpu->segments[X86_GS].base, value);
    case MSR_KERNEL_GS_BASE:
        return write_base(&cpu->kernel_gs_base, value);
    case MSR_KEY_RIGHTS:
        if (value > UINT32_MAX)
            return false;
        soft_set_key_rights(cpu, false, (uint32_t)value);
        return true;
    case MSR_MICROCODE: /* the way to ask for its version */
        return true;
    case MSR_AMD_COUNTERS ... MSR_AMD_COUNTERS_LAST:
        return vendor_is_amd();
    case MSR_PREDICTION_COMMAND:
    case MSR_FLUSH_COMMAND:
        return !vendor_is_amd() && value <= 1;
    case MSR_KVM_WALL_CLOCK:
        clock_write_wall_clock(cpu, value);
        return true;
    case MSR_KVM_SYSTEM_TIME:
        clock_write_system_time(cpu, value);
        return true;
    default:
        return false;
    }
}

void soft_msr_write(struct soft_cpu *cpu, const struct uop *uop, uint32_t index,
                    uint64_t value)
{
    const struct place *place = find_place(index);
    uint64_t *mtrr = mtrr_value(cpu->msrs, index);
    bool done;

    if (place != NULL) {
        done = keeps_rule(place, value);
        if (done)
            *place_value(cpu->msrs, place) = value;
    } else if (mtrr != NULL) {
        done = is_mtrr_value(index, value);
        if (done)
            *mtrr = value;
    } else {
        done = write_special(cpu, uop, index, value) || write_apic(cpu, index, value);
    }
    if (!done)
        refuse(cpu, uop, "write", index);
}
