/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUID filter on tables made by hand: what a guest must see, row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "x86/cpuid.h"

#define CAPACITY 16

struct table {
    size_t count;
    struct cpuid_leaf leaves[CAPACITY];
};

static void add(struct table *table, struct cpuid_leaf leaf)
{
    assert_true(table->count + CPUID_FILTER_EXTRA_LEAVES < CAPACITY);
    table->leaves[table->count++] = leaf;
}

static void filter(struct table *table, uint32_t cpu_index, uint32_t cpu_count)
{
    const struct cpuid_policy policy = {.cpu_index = cpu_index, .cpu_count = cpu_count};

    table->count = cpuid_filter(table->leaves, table->count, &policy);
}

static bool has(const struct table *table, uint32_t function)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->leaves[i].function == function)
            return true;
    }
    return false;
}

static struct cpuid_leaf find(const struct table *table, uint32_t function,
                              uint32_t index)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->leaves[i].function == function && table->leaves[i].index == index)
            return table->leaves[i];
    }
    fail_msg("leaf %x.%x is missing", function, index);
    return (struct cpuid_leaf){0};
}

static void assert_leaf(const struct table *table, uint32_t function, uint32_t index,
                        struct cpuid_leaf expected)
{
    struct cpuid_leaf leaf = find(table, function, index);

    assert_int_equal(leaf.eax, expected.eax);
    assert_int_equal(leaf.ebx, expected.ebx);
    assert_int_equal(leaf.ecx, expected.ecx);
    assert_int_equal(leaf.edx, expected.edx);
}

static struct cpuid_leaf vendor(const char text[static 4])
{
    return (struct cpuid_leaf){.function = 0, .eax = 0x20, .ebx = load_le32(text)};
}

static void features_carry_apic_id_and_processor_count(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){.function = 1, .ebx = 0x63200800});
    filter(&table, 2, 3);
    assert_leaf(&table, 1, 0,
                (struct cpuid_leaf){.ebx = 0x02030800, .ecx = 1u << 31, .edx = 1u << 28});
}

static void single_processor_has_no_threads_bit(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){.function = 1, .edx = 1u << 28});
    add(&table, (struct cpuid_leaf){.function = 0x80000001, .ecx = 0x23});
    filter(&table, 0, 1);
    assert_leaf(&table, 1, 0, (struct cpuid_leaf){.ebx = 0x00010000, .ecx = 1u << 31});
    assert_leaf(&table, 0x80000001, 0, (struct cpuid_leaf){.ecx = 0x21});
}

static void virtualization_monitor_and_counters_are_hidden(void **state)
{
    static const uint32_t empty_leaves[] = {
        0x5,        0xa,        0x12,       0x14,       0x1c,      0x23,
        0x8000000a, 0x8000001b, 0x8000001c, 0x8000001f, 0x80000022};
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){.function = 1, .ecx = ~0u, .edx = ~0u});
    add(&table, (struct cpuid_leaf){6, 0, false, ~0u, ~0u, ~0u, ~0u});
    add(&table, (struct cpuid_leaf){7, 0, true, ~0u, ~0u, ~0u, ~0u});
    add(&table, (struct cpuid_leaf){7, 1, true, ~0u, ~0u, ~0u, ~0u});
    add(&table, (struct cpuid_leaf){0x80000001, 0, false, ~0u, ~0u, ~0u, ~0u});
    filter(&table, 0, 2);
    assert_leaf(&table, 1, 0,
                (struct cpuid_leaf){0, 0, 0, 0, 0x00020000, 0xfeff7e03, 0x5f9fffff});
    assert_leaf(&table, 6, 0, (struct cpuid_leaf){.eax = 1u << 2});
    assert_leaf(&table, 7, 0,
                (struct cpuid_leaf){0, 0, 0, ~0u, 0xfdfffffb, 0xbfffffdf, 0xfff3ffff});
    assert_leaf(&table, 7, 1, (struct cpuid_leaf){0, 0, 0, ~0u, ~0u, ~0u, ~0u});
    assert_leaf(&table, 0x80000001, 0,
                (struct cpuid_leaf){0, 0, 0, ~0u, ~0u, 0xc67f4bf3, ~0u});

    for (size_t i = 0; i < ARRAY_SIZE(empty_leaves); i++) {
        struct table one = {0};

        add(&one, (struct cpuid_leaf){empty_leaves[i], 0, false, ~0u, ~0u, ~0u, ~0u});
        filter(&one, 0, 1);
        assert_leaf(&one, empty_leaves[i], 0, (struct cpuid_leaf){0});
    }
}

static void deadline_and_cmpxchg16b_follow_the_policy(void **state)
{
    const uint32_t cmpxchg16b = 1u << 13, deadline = 1u << 24, hypervisor = 1u << 31;
    const struct {
        struct cpuid_policy policy;
        uint32_t offered, seen;
    } cases[] = {
        {{0, 1, true, false}, cmpxchg16b, cmpxchg16b | deadline | hypervisor},
        {{0, 1, false, true}, cmpxchg16b | deadline, hypervisor},
        {{0, 1, true, true}, 0, deadline | hypervisor},
        {{0, 1, false, false}, 0, hypervisor},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct table table = {0};

        add(&table, (struct cpuid_leaf){.function = 1, .ecx = cases[i].offered});
        table.count = cpuid_filter(table.leaves, table.count, &cases[i].policy);
        assert_int_equal(find(&table, 1, 0).ecx, cases[i].seen);
    }
}

static void last_level_cache_is_shared_by_all(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){.function = 4,
                                    .index = 0,
                                    .has_index = true,
                                    .eax = 0xfc00c121}); /* level 1 of a 64-core host */
    add(&table, (struct cpuid_leaf){.function = 4,
                                    .index = 3,
                                    .has_index = true,
                                    .eax = 0xfc1fc163}); /* level 3 */
    add(&table, (struct cpuid_leaf){.function = 4, .index = 4, .has_index = true});
    add(&table,
        (struct cpuid_leaf){
            .function = 0x8000001d, .index = 3, .has_index = true, .eax = 0x00004163});
    filter(&table, 1, 3);
    assert_int_equal(find(&table, 4, 0).eax, 0x0c000121);
    assert_int_equal(find(&table, 4, 3).eax, 0x0c00c163);
    assert_int_equal(find(&table, 4, 4).eax, 0);
    assert_int_equal(find(&table, 0x8000001d, 3).eax, 0x0000c163);
}

static void extended_topology_replaces_the_hosts(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){0xb, 0, true, 1, 2, 0x100, 0x11});
    add(&table, (struct cpuid_leaf){0xb, 1, true, 7, 64, 0x201, 0x11});
    add(&table, (struct cpuid_leaf){0x1f, 0, true, 1, 2, 0x100, 0x11});
    add(&table, (struct cpuid_leaf){.function = 0x15, .eax = 2});
    filter(&table, 4, 5);
    assert_int_equal(table.count, 3);
    assert_leaf(&table, 0xb, 0, (struct cpuid_leaf){0, 0, 0, 0, 1, 0x100, 4});
    assert_leaf(&table, 0xb, 1, (struct cpuid_leaf){0, 0, 0, 3, 5, 0x201, 4});
    assert_true(find(&table, 0xb, 1).has_index);
    assert_leaf(&table, 0x15, 0, (struct cpuid_leaf){.eax = 2});
}

static void extended_topology_is_not_invented(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){.function = 0xd, .index = 0, .has_index = true});
    filter(&table, 0, 4);
    assert_int_equal(table.count, 1);
    assert_false(has(&table, 0xb));
}

static void amd_core_count_is_the_guests(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, vendor("Auth"));
    add(&table, (struct cpuid_leaf){.function = 0x80000008, .ecx = 0x00037f3f});
    add(&table, (struct cpuid_leaf){0x8000001e, 0, false, 77, 0x0126, 0x703, 9});
    filter(&table, 3, 6);
    assert_int_equal(find(&table, 0x80000008, 0).ecx, 0x00033f05);
    assert_leaf(&table, 0x8000001e, 0, (struct cpuid_leaf){.eax = 3, .ebx = 3});
}

static void intel_keeps_reserved_address_size_bits(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, vendor("Genu"));
    add(&table, (struct cpuid_leaf){.function = 0x80000008, .eax = 0x302e});
    filter(&table, 3, 6);
    assert_leaf(&table, 0x80000008, 0, (struct cpuid_leaf){.eax = 0x302e});
}

static void paravirtual_leaves_pass_unchanged(void **state)
{
    struct table table = {0};

    (void)state;
    add(&table, (struct cpuid_leaf){0x40000000, 0, false, 0x40000001, load_le32("KVMK"),
                                    load_le32("VMKV"), load_le32("M\0\0\0")});
    add(&table, (struct cpuid_leaf){.function = 0x40000001, .eax = 0x01007efb});
    filter(&table, 0, 2);
    assert_leaf(&table, 0x40000000, 0,
                (struct cpuid_leaf){0, 0, 0, 0x40000001, load_le32("KVMK"),
                                    load_le32("VMKV"), load_le32("M\0\0\0")});
    assert_leaf(&table, 0x40000001, 0, (struct cpuid_leaf){.eax = 0x01007efb});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_carry_apic_id_and_processor_count),
        cmocka_unit_test(single_processor_has_no_threads_bit),
        cmocka_unit_test(virtualization_monitor_and_counters_are_hidden),
        cmocka_unit_test(deadline_and_cmpxchg16b_follow_the_policy),
        cmocka_unit_test(last_level_cache_is_shared_by_all),
        cmocka_unit_test(extended_topology_replaces_the_hosts),
        cmocka_unit_test(extended_topology_is_not_invented),
        cmocka_unit_test(amd_core_count_is_the_guests),
        cmocka_unit_test(intel_keeps_reserved_address_size_bits),
        cmocka_unit_test(paravirtual_leaves_pass_unchanged),
    };

    return cmocka_run_group_tests_name("x86/cpuid", tests, NULL, NULL);
}
