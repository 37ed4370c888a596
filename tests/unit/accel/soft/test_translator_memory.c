/* SPDX-License-Identifier: Apache-2.0 */
/* Translated code: accesses to memory that share a check, or look into a copy of the
 * TLB's entry. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "accel/soft/access_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/translator_private.h"
#include "base/bytes.h"
#include "base/clock.h"

#define CODE_BYTES (1u << 20)

static int set_up(void **state)
{
    int result = soft_fixture_setup(state);

    soft_fixture_translate(*state, CODE_BYTES);
    guest_long(*state);
    return result;
}

static const struct translated_counters *counters(const struct soft_fixture *fixture)
{
    return &fixture->cpu.translated.counters;
}

#define MEMORY_TEST(name)                                                                \
    cmocka_unit_test_setup_teardown(name, set_up, soft_fixture_teardown)

/* ---- groups of accesses, and the stack's page ---- */

/* Accesses by one register share a check, up to the end of the page. */
GUEST(grouped, 64,
      "mov $0xaff0, %ebx\n"
      "movq $1, (%rbx)\n"
      "movq $2, 8(%rbx)\n"
      "movq $3, 16(%rbx)\n" /* the next page */
      "mov 8(%rbx), %rax\n"
      "add 16(%rbx), %rax\n"
      "mov %rbx, %rsp\n"
      "push %rax\n"
      "pop %rcx\n"
      "add $8, %rbx\n" /* another base now */
      "mov (%rbx), %rdx\n" GUEST_STOP);

static void accesses_by_one_register_may_reach_into_the_next_page(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, grouped);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 5);
    assert_int_equal(fixture->cpu.r[X86_RCX], 5);
    assert_int_equal(fixture->cpu.r[X86_RDX], 2);
    assert_int_equal(guest_read32(fixture, 0xb000), 3);
    assert_int_equal(counters(fixture)->steps, 1);
}

/* FNSTSW AX names no operand. */
GUEST(accumulator, 64,
      "fninit\n"
      "fnclex\n"
      "mov $0x60a123, %eax\n"
      "movl $1, (%rax)\n"
      "orl $4, 4(%rax)\n"
      "fnstsw %ax\n" /* 0 */
      "mov 0x10(%rax), %edx\n"
      "mov $0x60a120, %eax\n"
      "mov 3(%rax), %ecx\n"
      "cltq\n"
      "add $4, %al\n"
      "mov 3(%rax), %ebx\n" GUEST_STOP);

static void group_ends_where_the_accumulator_changes(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.cr4 |= X86_CR4_OSFXSR;
    soft_cpu_update_mode(&fixture->cpu);
    guest_write64(fixture, 0x600010, 7);
    GUEST_LOAD(fixture, accumulator);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RDX], 7);
    assert_int_equal(fixture->cpu.r[X86_RCX], 1);
    assert_int_equal(fixture->cpu.r[X86_RBX], 4);
}

/* AH has the number of RSP, DH that of RSI. */
GUEST(high_bytes, 64,
      "mov $0x600010, %eax\n"
      "mov $0x600020, %edx\n"
      "mov $0x600030, %ebx\n"
      "movl $1, (%rax)\n"
      "mov $0xa1, %ah\n"
      "mov (%rax), %r8d\n" /* 0x60a110 */
      "movl $2, (%rdx)\n"
      "add $0xa1, %dh\n"
      "mov (%rdx), %r9d\n" /* 0x60a120 */
      "movl $3, (%rbx)\n"
      "mov $0xa1, %cl\n"
      "xchg %cl, %bh\n"
      "mov (%rbx), %r12d\n" /* 0x60a130 */ GUEST_STOP);

static void group_ends_where_a_high_byte_changes(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, 0x60a110, 0x11);
    guest_write64(fixture, 0x60a120, 0x12);
    guest_write64(fixture, 0x60a130, 0x13);
    GUEST_LOAD(fixture, high_bytes);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[8], 0x11);
    assert_int_equal(fixture->cpu.r[9], 0x12);
    assert_int_equal(fixture->cpu.r[12], 0x13);
}

/* The last one is not where its group is. */
GUEST(aligned_group, 64,
      "fninit\n" /* else vectors are the interpreter's */
      "mov $0xaf00, %ebx\n"
      "movaps (%rbx), %xmm0\n"
      "movaps %xmm0, 16(%rbx)\n"
      "mov 20(%rbx), %ecx\n"
      "movaps %xmm0, 0xf0(%rbx)\n"
      "movaps %xmm0, 0x100(%rbx)\n" /* the next page */
      "mov -4(%rbx), %edx\n"
      "movaps %xmm0, (%rbx)\n"
      "movaps %xmm0, 12(%rbx)\n");

static void each_access_of_a_group_is_aligned(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.cr4 |= X86_CR4_OSFXSR;
    soft_cpu_update_mode(&fixture->cpu);
    guest_write64(fixture, 0xaf00, UINT64_C(0x5566) << 32);
    GUEST_LOAD(fixture, aligned_group);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(fixture->cpu.r[X86_RCX], 0x5566);
    assert_int_equal(guest_read32(fixture, 0xaff4), 0x5566);
    assert_int_equal(guest_read32(fixture, 0xb004), 0x5566);
    assert_int_equal(guest_read32(fixture, 0xaf10), 0);
}

#define PAGE_DIRECTORY (GUEST_PAGES + 0x2000)
#define EIGHT_MIB UINT64_C(0x800000)
#define TEN_MIB UINT64_C(0xa00000)

/* Around the end of a page, three times, so that the TLB has all of them. */
GUEST(neighbours, 64,
      "mov $3, %ecx\n"
      "1: mov $0x800ffc, %ebx\n"
      "mov $2, %edx\n"
      "movl $1, (%rbx)\n"
      "movl $2, 4(%rbx)\n"
      "movl $3, 0x40(%rbx)\n"
      "movl $4, -4(%rbx)\n"
      "movl $5, 0x20(%rbx,%rdx,4)\n"
      "movl $6, -0x10(%rbx,%rdx,4)\n"
      "mov -4(%rbx), %r10d\n"
      "add 4(%rbx), %r10d\n"
      "xor %r11d, %r11d\n"
      "add (%rbx), %r11\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP);

static void neighbours_may_be_in_another_page(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, neighbours);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xffc), 1);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x1000), 2);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x103c), 3);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff8), 4);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x1024), 5);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff4), 6);
    assert_int_equal(fixture->cpu.r[X86_R10], 4 + 2);
    assert_true(fixture->cpu.r[X86_R11] == (UINT64_C(2) << 32 | 1));
}

GUEST(moved_stack, 64,
      "mov $0x801000, %esp\n"
      "push $0x11\n"
      "push $0x22\n"
      "mov %r8, 0x22020\n" /* entry 4 of the page directory */
      "invlpg 0x800000\n"
      "push $0x33\n"
      "pop %rax\n" GUEST_STOP);

static void stack_follows_its_translation(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.r[X86_R8] = TEN_MIB | 0x83;
    GUEST_LOAD(fixture, moved_stack);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x33);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff8), 0x11);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff0), 0x22);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xfe8), 0);
    assert_int_equal(guest_read32(fixture, TEN_MIB + 0xfe8), 0x33);
}

/* The large page around `place` may only be read. */
static void make_read_only(struct soft_fixture *fixture, uint64_t place)
{
    guest_write64(fixture, PAGE_DIRECTORY + place / X86_LARGE_PAGE_BYTES * 8,
                  align_down(place, X86_LARGE_PAGE_BYTES) | 0x81);
    guest_write64(fixture, place, 0x55);
    guest_set_gate(fixture, X86_VECTOR_PF, GUEST_CS64, 0x8e, 1);
    fixture->cpu.cr0 |= X86_CR0_WP;
}

static void assert_faults_on_its_write(struct soft_fixture *fixture)
{
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, EIGHT_MIB + 0x800);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x56);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x800), 0x55);
}

GUEST(read_only_stack, 64,
      "mov $0x800800, %esp\n"
      "mov (%rsp), %rcx\n"
      "pop %rax\n"
      "inc %rax\n"
      "push %rax\n");

static void stack_that_may_be_read_is_not_written(void **state)
{
    struct soft_fixture *fixture = *state;

    make_read_only(fixture, EIGHT_MIB + 0x800);
    GUEST_LOAD(fixture, read_only_stack);
    assert_faults_on_its_write(fixture);
    assert_int_equal(fixture->cpu.r[X86_RCX], 0x55);
}

GUEST(read_only_place, 64,
      "mov $0x800800, %ebx\n"
      "mov (%rbx), %rax\n"
      "inc %rax\n"
      "mov %rax, (%rbx)\n");

static void place_that_may_be_read_is_not_written(void **state)
{
    struct soft_fixture *fixture = *state;

    make_read_only(fixture, EIGHT_MIB + 0x800);
    GUEST_LOAD(fixture, read_only_place);
    assert_faults_on_its_write(fixture);
}

/* The first one may be written to, the second one only read. */
GUEST(two_pages, 64,
      "mov $0x9ffff8, %ebx\n"
      "mov %eax, (%rbx)\n"
      "mov 8(%rbx), %rcx\n"
      "mov %rax, 8(%rbx)\n");

static void group_does_not_take_its_rights_into_another_page(void **state)
{
    struct soft_fixture *fixture = *state;

    make_read_only(fixture, TEN_MIB);
    GUEST_LOAD(fixture, two_pages);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, TEN_MIB);
    assert_int_equal(fixture->cpu.r[X86_RCX], 0x55);
    assert_int_equal(guest_read32(fixture, TEN_MIB), 0x55);
}

/* ---- loops that go through memory ---- */

#define LOOP_TURNS 256

/* From 8 MiB, which lies elsewhere the second time, to 6 MiB, where one crosses pages. */
GUEST(near_loop, 64,
      "mov $2, %esi\n"
      "1: mov $0x800100, %ebx\n"
      "mov $0x604ff4, %edi\n"
      "mov $256, %ecx\n"
      "2: mov (%rbx), %rax\n"
      "mov %rax, (%rdi)\n"
      "add %rax, %rdx\n"
      "incq (%rdi)\n"
      "add $8, %rbx\n"
      "lea 8(%rdi), %rdi\n"
      "dec %ecx\n"
      "jnz 2b\n"
      "mov %r8, 0x22020\n" /* entry 4 of the page directory */
      "invlpg 0x800000\n"
      "dec %esi\n"
      "jnz 1b\n" GUEST_STOP);

static void loops_follow_their_translations(void **state)
{
    struct soft_fixture *fixture = *state;
    uint64_t expected = 0;

    fixture->cpu.r[X86_RDX] = 0;
    fixture->cpu.r[X86_R8] = TEN_MIB | 0x83;
    for (uint64_t i = 0; i < LOOP_TURNS; i++) {
        guest_write64(fixture, EIGHT_MIB + 0x100 + 8 * i, i);
        guest_write64(fixture, TEN_MIB + 0x100 + 8 * i, 10000 + i);
        expected += 10000 + 2 * i;
    }
    GUEST_LOAD(fixture, near_loop);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RDX], expected);
    for (uint64_t i = 0; i < LOOP_TURNS; i++)
        assert_int_equal(guest_read32(fixture, 0x604ff4 + 8 * i), 10000 + i + 1);
    assert_true(counters(fixture)->steps < LOOP_TURNS / 16);
    assert_true(counters(fixture)->fills < LOOP_TURNS / 16);
}

GUEST(read_only_loop, 64,
      "mov $0x800800, %ebx\n"
      "mov $2, %ecx\n"
      "mov $-0x54, %rax\n"
      "1: add (%rbx), %rax\n" /* 0x56 then */
      "dec %ecx\n"
      "jnz 1b\n"
      "mov $2, %ecx\n"
      "2: mov %rax, (%rbx)\n"
      "dec %ecx\n"
      "jnz 2b\n");

static void loop_that_may_read_does_not_write(void **state)
{
    struct soft_fixture *fixture = *state;

    make_read_only(fixture, EIGHT_MIB + 0x800);
    GUEST_LOAD(fixture, read_only_loop);
    assert_faults_on_its_write(fixture);
}

/* Up to 10 MiB it may write. */
GUEST(loop_of_two_pages, 64,
      "mov $0x9fffe0, %ebx\n"
      "1: mov (%rbx), %rax\n"
      "inc %rax\n"
      "mov %rax, (%rbx)\n"
      "add $8, %rbx\n"
      "jmp 1b\n");

static void loop_does_not_take_its_rights_into_another_page(void **state)
{
    struct soft_fixture *fixture = *state;

    make_read_only(fixture, TEN_MIB);
    GUEST_LOAD(fixture, loop_of_two_pages);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, TEN_MIB);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x56);
    assert_int_equal(guest_read32(fixture, TEN_MIB), 0x55);
    assert_int_equal(guest_read32(fixture, TEN_MIB - 8), 1);
}

/* Sixteen bytes at a time, which must be aligned; in the end they are not. */
GUEST(aligned_loop, 64,
      "fninit\n"
      "mov $0x800fe0, %ebx\n"
      "mov $8, %ecx\n"
      "1: movaps (%rbx), %xmm0\n"
      "movaps %xmm0, 0x1000(%rbx)\n"
      "add $16, %rbx\n"
      "dec %ecx\n"
      "jnz 1b\n"
      "2: movaps (%rbx), %xmm0\n"
      "inc %ecx\n"
      "add $24, %rbx\n"
      "jmp 2b\n");

static void aligned_accesses_of_loops_must_be(void **state)
{
    struct soft_fixture *fixture = *state;

    for (uint64_t i = 0; i < 8; i++)
        guest_write64(fixture, EIGHT_MIB + 0xfe0 + 16 * i, i);
    guest_set_gate(fixture, X86_VECTOR_GP, GUEST_CS64, 0x8e, 1);
    fixture->cpu.cr4 |= X86_CR4_OSFXSR;
    soft_cpu_update_mode(&fixture->cpu);
    GUEST_LOAD(fixture, aligned_loop);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(fixture->cpu.r[X86_RCX], 1);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x1fe0 + 16 * i), i);
}

/* The stack is in the page of the code: the push changes the next instruction's constant.
 */
GUEST(stack_on_code, 64,
      "mov %rsp, %rbp\n"
      "lea 1f + 8(%rip), %rsp\n"
      "push %r8\n"
      "jmp 1f\n"
      ".balign 8\n"
      "1: .fill 8, 1, 0xf4\n"
      "mov %rbp, %rsp\n" GUEST_STOP);

static void push_onto_code_changes_it(void **state)
{
    struct soft_fixture *fixture = *state;

    /* mov $0x12345678, %eax; three nops */
    fixture->cpu.r[X86_R8] = UINT64_C(0x90909012345678b8);
    GUEST_LOAD(fixture, stack_on_code);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x12345678);
}

/* ---- LOCK, and devices ---- */

/* Each writes its word and then reads the other's, which a device's thread does to decide
 * whether it must be woken up. One of the two sees the other: LOCK is a barrier, also
 * where there is one processor. */
#define BARRIER_NS (NS_PER_SECOND / 4)
enum barrier_words { /* by lines of the host's cache */
                     GUEST_WORD = 0xa000,
                     DEVICE_WORD = 0xa040,
                     GUEST_ROUND = 0xa080,
                     DEVICE_ROUND = 0xa0c0,
                     GUEST_SAW = 0xa100,
};

GUEST(barrier, 64,
      "mov $0xa000, %ebx\n"
      "xor %eax, %eax\n"
      "1: inc %eax\n"
      "mov %eax, 0x80(%rbx)\n"
      "2: mov 0xc0(%rbx), %ecx\n"
      "test %ecx, %ecx\n"
      "js 3f\n" /* the last round is over */
      "cmp %eax, %ecx\n"
      "jne 2b\n"
      "mov %eax, (%rbx)\n"
      "lock addl $0, -64(%rsp)\n"
      "mov 0x40(%rbx), %edx\n"
      "mov %edx, 0x100(%rbx)\n"
      "jmp 1b\n"
      "3: " GUEST_STOP);

struct barrier_device {
    uint8_t *page;
    unsigned unseen; /* rounds in which neither saw the other */
};

static _Atomic uint32_t *barrier_word(const struct barrier_device *device,
                                      enum barrier_words word)
{
    return (_Atomic uint32_t *)(void *)(device->page + word % X86_PAGE_BYTES);
}

static void wait_for_round(const struct barrier_device *device, uint32_t round)
{
    while (atomic_load(barrier_word(device, GUEST_ROUND)) != round)
        (void)sched_yield();
}

static void *run_barrier_device(void *context)
{
    struct barrier_device *device = context;
    const uint64_t end = clock_monotonic_ns() + BARRIER_NS;

    wait_for_round(device, 1);
    for (uint32_t round = 1; clock_monotonic_ns() < end; round++) {
        bool saw;

        atomic_store_explicit(barrier_word(device, DEVICE_ROUND), round,
                              memory_order_release);
        for (volatile uint32_t i = 0; i < round % 64; i++)
            continue;
        atomic_store(barrier_word(device, DEVICE_WORD), round);
        atomic_thread_fence(memory_order_seq_cst);
        saw = atomic_load(barrier_word(device, GUEST_WORD)) == round;
        wait_for_round(device, round + 1);
        if (!saw && atomic_load(barrier_word(device, GUEST_SAW)) != round)
            device->unseen++;
    }
    atomic_store(barrier_word(device, DEVICE_ROUND), UINT32_MAX);
    return NULL;
}

static void lock_is_a_barrier_against_devices(void **state)
{
    struct soft_fixture *fixture = *state;
    struct barrier_device device = {.page = soft_vm_page(&fixture->vm, GUEST_WORD)};
    pthread_t thread;

    GUEST_LOAD(fixture, barrier);
    assert_int_equal(pthread_create(&thread, NULL, run_barrier_device, &device), 0);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(device.unseen, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(accesses_by_one_register_may_reach_into_the_next_page),
        MEMORY_TEST(group_ends_where_the_accumulator_changes),
        MEMORY_TEST(group_ends_where_a_high_byte_changes),
        MEMORY_TEST(each_access_of_a_group_is_aligned),
        MEMORY_TEST(neighbours_may_be_in_another_page),
        MEMORY_TEST(stack_follows_its_translation),
        MEMORY_TEST(stack_that_may_be_read_is_not_written),
        MEMORY_TEST(place_that_may_be_read_is_not_written),
        MEMORY_TEST(group_does_not_take_its_rights_into_another_page),
        MEMORY_TEST(loops_follow_their_translations),
        MEMORY_TEST(loop_that_may_read_does_not_write),
        MEMORY_TEST(loop_does_not_take_its_rights_into_another_page),
        MEMORY_TEST(aligned_accesses_of_loops_must_be),
        MEMORY_TEST(push_onto_code_changes_it),
        MEMORY_TEST(lock_is_a_barrier_against_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
