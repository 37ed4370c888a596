/* SPDX-License-Identifier: Apache-2.0 */
/* The processor model, for both makers, and the arithmetic of the guest's clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/msr_private.h"

static struct cpuid_leaf leaves[CPU_MODEL_LEAVES];
static size_t leaf_count;

static const struct cpuid_leaf *find(uint32_t function, uint32_t index)
{
    size_t i = 0;

    while (i < leaf_count && (leaves[i].function != function || leaves[i].index != index))
        i++;
    if (i == leaf_count)
        fail_msg("there is no leaf 0x%x", function);
    return &leaves[i];
}

static void build(bool amd, uint32_t index, uint32_t count)
{
    memset(leaves, 0xff, sizeof(leaves));
    leaf_count = cpu_model_build(leaves, amd, index, count);
}

static void offers_what_a_kernel_needs_to_skip_calibration(void **state)
{
    (void)state;
    build(true, 0, 1);
    assert_true((find(1, 0)->ecx & 1u << 31) != 0); /* hypervisor */
    assert_true((find(1, 0)->ecx & 1u << 24) != 0); /* TSC deadline */
    assert_true((find(1, 0)->ecx & 1u << 21) != 0); /* x2APIC */
    assert_memory_equal(&find(0x40000000, 0)->ebx, "KVMKVMKVM\0\0\0", 12);
    assert_int_equal(find(0x40000001, 0)->eax, 1u << 24 | 1u << 11 | 1u << 3 | 1u << 1);
    assert_true((find(0x80000007, 0)->edx & 1u << 8) != 0); /* invariant TSC */
    assert_true((find(7, 0)->edx & 1u << 14) != 0);         /* SERIALIZE */
}

static void offers_no_more_than_is_built(void **state)
{
    (void)state;
    for (unsigned amd = 0; amd < 2; amd++) {
        build(amd != 0, 0, 1);
        assert_int_equal(find(1, 0)->ecx & 1u << 26, 0); /* XSAVE */
        assert_int_equal(find(1, 0)->ecx & 1u << 28, 0); /* AVX */
        assert_int_equal(find(1, 0)->ecx & 1u << 3, 0);  /* MONITOR */
        assert_int_equal(find(1, 0)->edx & 1u << 1, 0);  /* VME */
        assert_int_equal(find(7, 0)->ebx & 1u << 5, 0);  /* AVX2 */
    }
}

static void needs_no_mitigations(void **state)
{
    (void)state;
    build(true, 0, 1);
    assert_int_equal(find(1, 0)->eax >> 20 & 0xff, 0xb); /* family 1Ah */
    assert_true((find(0x80000021, 0)->eax & 1u << 8) != 0);
    assert_true((find(0x80000008, 0)->ebx & 1u << 26) != 0);
    build(false, 0, 1);
    assert_true((find(7, 0)->edx & 1u << 29) != 0); /* ARCH_CAPABILITIES */
    assert_int_equal(find(0x80000008, 0)->ebx, 0);
}

static void names_its_maker_and_itself(void **state)
{
    char brand[49] = {0};

    (void)state;
    build(true, 0, 1);
    assert_int_equal(find(0, 0)->ebx, 0x68747541);
    for (uint32_t i = 0; i < 3; i++)
        memcpy(brand + 16 * (size_t)i, &find(0x80000002 + i, 0)->eax, 16);
    assert_string_equal(brand, "husk software CPU");
    build(false, 0, 1);
    assert_int_equal(find(0, 0)->ebx, 0x756e6547);
}

static void every_cpu_is_a_core_of_one_package(void **state)
{
    (void)state;
    build(true, 2, 3);
    assert_int_equal(find(1, 0)->ebx >> 24, 2);
    assert_int_equal(find(1, 0)->ebx >> 16 & 0xff, 3);
    assert_int_equal(find(0xb, 1)->eax, 2);
    assert_int_equal(find(0xb, 1)->ebx, 3);
    assert_int_equal(find(0xb, 0)->edx, 2);
    assert_int_equal(find(0x80000008, 0)->ecx, 2 << 12 | 2);
}

/* (ticks << shift) * multiplier >> 32, as guests do it. */
static uint64_t nanoseconds(struct clock_scale scale, uint64_t ticks)
{
    uint64_t shifted = scale.shift < 0 ? ticks >> -scale.shift : ticks << scale.shift;

    return (uint64_t)((unsigned __int128)shifted * scale.multiplier >> 32);
}

static void scale_turns_a_second_of_ticks_into_a_second(void **state)
{
    static const uint64_t rates[] = {25000000,   999999999,  1000000000, 1000000001,
                                     2000000000, 2445000000, 5200000000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
        struct clock_scale scale = clock_scale_of(rates[i]);

        assert_true(scale.multiplier >= 0x80000000u);
        assert_in_range(nanoseconds(scale, rates[i]), 999999990, 1000000000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offers_what_a_kernel_needs_to_skip_calibration),
        cmocka_unit_test(offers_no_more_than_is_built),
        cmocka_unit_test(needs_no_mitigations),
        cmocka_unit_test(names_its_maker_and_itself),
        cmocka_unit_test(every_cpu_is_a_core_of_one_package),
        cmocka_unit_test(scale_turns_a_second_of_ticks_into_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
