/* SPDX-License-Identifier: Apache-2.0 */
/* Two processors of one VM that run the same translations. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/translator/translator_private.h"

#define CODE_BYTES (1u << 20)
#define TINY_CODE_BYTES (64u << 10)

/* The fixture with a second processor beside its own. */
struct pair {
    struct soft_fixture *fixture;
    struct soft_cpu *first;
    struct soft_cpu *second;
    struct soft_cpu *cpus[2];
};

/* The second one is where the first one is, with a stack of its own. */
static void copy_guest(struct pair *pair)
{
    struct soft_cpu *to = pair->second;
    const struct soft_cpu *from = pair->first;

    memcpy(to->r, from->r, sizeof(to->r));
    memcpy(to->segments, from->segments, sizeof(to->segments));
    to->gdt = from->gdt;
    to->idt = from->idt;
    to->cr0 = from->cr0;
    to->cr3 = from->cr3;
    to->cr4 = from->cr4;
    to->efer = from->efer;
    to->rip = from->rip;
    to->r[X86_RSP] = GUEST_STACK0;
    to->activity = ACTIVITY_RUN;
    soft_cpu_update_mode(to);
}

static void add_second(struct pair *pair)
{
    struct soft_fixture *fixture = pair->fixture;
    struct soft_cpu *cpu = aligned_alloc(64, align_up(sizeof(*cpu), 64));
    struct error err = ERROR_NONE;

    assert_non_null(cpu);
    memset(cpu, 0, sizeof(*cpu));
    cpu->index = 1;
    cpu->vm = &fixture->vm;
    cpu->irq = &fixture->irq;
    cpu->translator = fixture->vm.translator;
    assert_int_equal(block_cache_create(&cpu->blocks, &err), 0);
    soft_mmu_init(cpu);
    assert_int_equal(soft_msrs_create(cpu, &err), 0);
    soft_cpu_power_on(cpu);
    pair->second = cpu;
    pair->cpus[0] = pair->first;
    pair->cpus[1] = cpu;
    fixture->vm.cpus = pair->cpus;
    fixture->vm.cpu_count = 2;
}

static int set_up(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    void *fixture;

    assert_non_null(pair);
    assert_int_equal(soft_fixture_setup(&fixture), 0);
    pair->fixture = fixture;
    pair->first = &pair->fixture->cpu;
    soft_fixture_translate(pair->fixture, CODE_BYTES);
    guest_long(pair->fixture);
    add_second(pair);
    *state = pair;
    return 0;
}

static int tear_down(void **state)
{
    struct pair *pair = *state;
    void *fixture = pair->fixture;

    block_cache_destroy(pair->second->blocks);
    soft_msrs_destroy(pair->second);
    free(pair->second);
    free(pair);
    return soft_fixture_teardown(&fixture);
}

#define PAIR_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#define PAIR_LOAD(pair, name)                                                            \
    do {                                                                                 \
        GUEST_LOAD((pair)->fixture, name);                                               \
        copy_guest(pair);                                                                \
    } while (0)

/* Runs until the guest stops. */
static void run(struct soft_cpu *cpu)
{
    struct vcpu_exit exit = {.kind = VCPU_EXIT_FAILED};

    soft_cpu_run(cpu, &exit);
    assert_int_equal(exit.kind, VCPU_EXIT_KICKED);
}

static void *run_in_thread(void *context)
{
    run(context);
    return NULL;
}

static void run_both(struct pair *pair)
{
    pthread_t second;

    assert_int_equal(pthread_create(&second, NULL, run_in_thread, pair->second), 0);
    run(pair->first);
    assert_int_equal(pthread_join(second, NULL), 0);
}

static uint64_t blocks_translated(const struct pair *pair)
{
    return pair->fixture->vm.translator->counters.blocks;
}

/* ---- the same code ---- */

GUEST(sum, 64,
      "xor %eax, %eax\n"
      "mov $1000, %ecx\n"
      "1: add %rcx, %rax\n"
      "push %rax\n"
      "pop %rbx\n"
      "dec %ecx\n"
      "jnz 1b\n"
      "jmp sum + 0x1000\n");
static const uint8_t sum_end_code[] = {0xe6, GUEST_STOP_PORT};

static void what_one_has_translated_the_other_runs(void **state)
{
    struct pair *pair = *state;
    uint64_t blocks;

    soft_fixture_write(pair->fixture, GUEST_CODE + 0x1000, sum_end_code,
                       sizeof(sum_end_code));
    PAIR_LOAD(pair, sum);
    run(pair->first);
    blocks = blocks_translated(pair);
    assert_true(blocks >= 3);
    run(pair->second);
    assert_int_equal(blocks_translated(pair), blocks);
    assert_int_equal(pair->first->r[X86_RAX], 500500);
    assert_int_equal(pair->second->r[X86_RAX], 500500);
    assert_true(pair->second->translated.counters.lookups <= 3);
}

/* The branch to the next page was set when that was elsewhere for the first one. */
static void branches_go_where_each_has_mapped_their_target(void **state)
{
    static const uint8_t other_code[] = {0xb0, 0x07, 0xe6, GUEST_STOP_PORT};
    struct pair *pair = *state;
    struct soft_fixture *fixture = pair->fixture;
    const uint64_t pages = 0x40000;  /* other page tables, for the second one */
    const uint64_t target = 0x50000; /* the second page of `sum` there */

    soft_fixture_write(fixture, GUEST_CODE + 0x1000, sum_end_code, sizeof(sum_end_code));
    soft_fixture_write(fixture, target, other_code, sizeof(other_code));
    guest_write64(fixture, pages, (pages + 0x1000) | 7);
    guest_write64(fixture, pages + 0x1000, (pages + 0x2000) | 7);
    guest_write64(fixture, pages + 0x2000, (pages + 0x3000) | 7);
    for (uint64_t page = 0; page < 0x200; page++)
        guest_write64(fixture, pages + 0x3000 + page * 8, page << 12 | 7);
    guest_write64(fixture, pages + 0x3000 + ((GUEST_CODE + UINT64_C(0x1000)) >> 12) * 8,
                  target | 7);
    PAIR_LOAD(pair, sum);
    pair->second->cr3 = pages;
    soft_tlb_flush_all(pair->second);
    run(pair->first);
    run(pair->second);
    assert_int_equal(pair->first->r[X86_RAX], 500500);
    assert_int_equal(pair->second->r[X86_RAX] & 0xff, 7);
    pair->first->rip = GUEST_CODE;
    PAIR_LOAD(pair, sum);
    pair->second->cr3 = pages;
    soft_tlb_flush_all(pair->second);
    run_both(pair);
    assert_int_equal(pair->first->r[X86_RAX], 500500);
    assert_int_equal(pair->second->r[X86_RAX] & 0xff, 7);
}

/* ---- code that changes ---- */

/* Calls the code at 0x11000, which is MOV of a byte into AL and RET. */
GUEST(call_value, 64,
      "mov $0x11000, %ebx\n"
      "call *%rbx\n" GUEST_STOP);
#define VALUE_GPA 0x11000
#define VALUE_AT (VALUE_GPA + 1)

GUEST(set_value, 64, "movb %cl, 0x11001\n" GUEST_STOP);
#define SET_VALUE_GPA 0x12000

static void load_value(struct pair *pair, uint8_t value)
{
    const uint8_t code[] = {0xb0, value, 0xc3};

    soft_fixture_write(pair->fixture, VALUE_GPA, code, sizeof(code));
    soft_fixture_write(pair->fixture, SET_VALUE_GPA, set_value, GUEST_BYTES(set_value));
    PAIR_LOAD(pair, call_value);
}

static uint64_t value_for(struct soft_cpu *cpu)
{
    cpu->rip = GUEST_CODE;
    run(cpu);
    return cpu->r[X86_RAX] & 0xff;
}

static void set_value_by(struct soft_cpu *cpu, uint8_t value)
{
    cpu->r[X86_RCX] = value;
    cpu->rip = SET_VALUE_GPA;
    run(cpu);
}

static void code_that_one_changes_the_other_runs_anew(void **state)
{
    struct pair *pair = *state;

    load_value(pair, 1);
    for (uint8_t value = 2; value < 20; value++) {
        assert_int_equal(value_for(pair->first), value - 1);
        assert_int_equal(value_for(pair->second), value - 1);
        set_value_by(value % 2 == 0 ? pair->first : pair->second, value);
    }
    assert_int_equal(value_for(pair->first), 19);
    assert_int_equal(value_for(pair->second), 19);
}

/* The first one may write to the page from before it had code. It does so once more, and
 * drops the translation, before it looks around. */
static void a_write_counts_if_the_tlb_is_flushed_behind_it(void **state)
{
    struct pair *pair = *state;
    struct soft_cpu *cpu = pair->first;

    load_value(pair, 1);
    set_value_by(cpu, 1);
    assert_int_equal(value_for(pair->second), 1);
    assert_non_null(soft_writable(cpu, VALUE_AT, 1));
    soft_store8(cpu, NULL, VALUE_AT, 2);
    soft_tlb_flush_page(cpu, VALUE_AT);
    assert_int_equal(value_for(cpu), 2);
    assert_int_equal(value_for(pair->second), 2);
}

/* ---- full memory ---- */

#define CHAIN_PAGES 2000

static void full_memory_is_emptied_while_both_run(void **state)
{
    struct pair *pair = *state;

    soft_fixture_translate(pair->fixture, TINY_CODE_BYTES);
    pair->second->translator = pair->fixture->vm.translator;
    guest_load_chain(pair->fixture, CHAIN_PAGES);
    copy_guest(pair);
    run_both(pair);
    assert_int_equal(pair->first->r[X86_RAX], 3 * CHAIN_PAGES);
    assert_int_equal(pair->second->r[X86_RAX], 3 * CHAIN_PAGES);
    assert_true(pair->fixture->vm.translator->counters.evictions > 2);
}

/* One that is inside, say at work in a device, must not lose the code that it is in. */
static void full_memory_is_not_emptied_under_one_who_is_inside(void **state)
{
    struct pair *pair = *state;
    struct translator *translator;
    uint64_t evictions;

    soft_fixture_translate(pair->fixture, TINY_CODE_BYTES);
    translator = pair->fixture->vm.translator;
    pair->second->translator = translator;
    guest_load_chain(pair->fixture, CHAIN_PAGES);
    copy_guest(pair);
    evictions = translator->counters.evictions;
    atomic_store(&pair->second->translated.inside, true);
    run(pair->first);
    assert_int_equal(pair->first->r[X86_RAX], 3 * CHAIN_PAGES);
    assert_int_equal(translator->counters.evictions, evictions);
    atomic_store(&pair->second->translated.inside, false);
    run(pair->second);
    assert_int_equal(pair->second->r[X86_RAX], 3 * CHAIN_PAGES);
    assert_true(translator->counters.evictions > evictions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PAIR_TEST(what_one_has_translated_the_other_runs),
        PAIR_TEST(branches_go_where_each_has_mapped_their_target),
        PAIR_TEST(code_that_one_changes_the_other_runs_anew),
        PAIR_TEST(a_write_counts_if_the_tlb_is_flushed_behind_it),
        PAIR_TEST(full_memory_is_emptied_while_both_run),
        PAIR_TEST(full_memory_is_not_emptied_under_one_who_is_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
