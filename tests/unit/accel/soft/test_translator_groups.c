/* SPDX-License-Identifier: Apache-2.0 */
/* Translated code: several accesses by one check, and what becomes of them where that
 * fails. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "accel/soft/translator/translator_private.h"
#include "base/bytes.h"

#define CODE_BYTES (1u << 20)
#define PAGE_DIRECTORY (GUEST_PAGES + 0x2000)
#define EIGHT_MIB UINT64_C(0x800000)
#define TEN_MIB UINT64_C(0xa00000)
#define TEN_MIB_ENTRY (PAGE_DIRECTORY + TEN_MIB / X86_LARGE_PAGE_BYTES * 8)

static int set_up(void **state)
{
    struct soft_fixture *fixture;
    int result = soft_fixture_setup(state);

    fixture = *state;
    soft_fixture_translate(fixture, CODE_BYTES);
    guest_long(fixture);
    guest_set_gate(fixture, X86_VECTOR_PF, GUEST_CS64, 0x8e, 1);
    fixture->cpu.cr4 |= X86_CR4_OSFXSR;
    soft_cpu_update_mode(&fixture->cpu);
    return result;
}

static uint64_t steps(const struct soft_fixture *fixture)
{
    return fixture->cpu.translated.counters.steps;
}

/* ---- where the page ends ---- */

#define TURNS 64
#define DISTANCES 128

/* From R9 on, a little further each turn; the sum of what is read goes to RAX. The place
 * is made by a call, so that this is no loop of one block. */
GUEST(crossing, 64,
      "mov %r9, %rbx\n"
      "xor %eax, %eax\n"
      "mov $64, %ecx\n"
      "1: call 2f\n"
      "inc %rbx\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP "2: add 8(%rbx), %rax\n"
      "cmpb $0, 3(%rbx)\n"
      "incl 16(%rbx)\n" /* leaves CF */
      "jb 3f\n"
      "add (%rbx), %rax\n"
      "mov %r8, 24(%rbx)\n"
      "3: ret\n");

static uint64_t expected_sum(uint8_t *bytes)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < TURNS; i++) {
        uint64_t value;
        uint32_t counter;

        memcpy(&value, bytes + i + 8, sizeof(value));
        sum += value;
        memcpy(&counter, bytes + i + 16, sizeof(counter));
        counter++;
        memcpy(bytes + i + 16, &counter, sizeof(counter));
        memcpy(&value, bytes + i, sizeof(value));
        sum += value;
        value = UINT64_C(0x0102030405060708);
        memcpy(bytes + i + 24, &value, sizeof(value));
    }
    return sum;
}

static void groups_are_right_where_they_reach_into_the_next_page(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t start = EIGHT_MIB + X86_PAGE_BYTES - TURNS / 2;
    uint8_t bytes[DISTANCES];
    uint64_t sum;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7 + 1);
    soft_fixture_write(fixture, start, bytes, sizeof(bytes));
    sum = expected_sum(bytes);
    fixture->cpu.r[8] = UINT64_C(0x0102030405060708);
    fixture->cpu.r[9] = start;
    GUEST_LOAD(fixture, crossing);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_true(fixture->cpu.r[X86_RAX] == sum);
    for (size_t i = 0; i < sizeof(bytes); i += 4)
        assert_int_equal(guest_read32(fixture, start + i), load_le32(bytes + i));
}

/* Where each turn is in two pages, only accesses that are so by themselves are the
 * interpreter's. */
GUEST(straddling, 64,
      "mov $0x800fe8, %ebx\n"
      "mov $100, %ecx\n"
      "1: call 2f\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP "2: mov (%rbx), %rax\n"
      "add 0x20(%rbx), %rax\n"
      "mov %rax, 0x28(%rbx)\n"
      "incl 8(%rbx)\n"
      "ret\n");

static void careful_blocks_are_translated(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, straddling);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff0), 100);
    assert_true(steps(fixture) < 10);
}

/* ---- what is done when one of them faults ---- */

GUEST(pushes, 64,
      "mov $0xa00010, %esp\n"
      "push $1\n"
      "push %r15\n"
      "push $3\n"
      "push $4\n");

static void pushes_before_the_one_that_faults_are_done(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t entry = PAGE_DIRECTORY + EIGHT_MIB / X86_LARGE_PAGE_BYTES * 8;

    fixture->cpu.r[15] = 0x77;
    guest_write64(fixture, entry, 0);
    guest_set_gate(fixture, X86_VECTOR_DF, GUEST_CS64, 0x8e, 1);
    guest_set_gate(fixture, X86_VECTOR_PF, GUEST_CS64, 0x8e, 1);
    GUEST_LOAD(fixture, pushes);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, TEN_MIB - 8);
    assert_int_equal(guest_read32(fixture, GUEST_STACK_TABLE - 16), TEN_MIB); /* RSP */
    assert_int_equal(guest_read32(fixture, TEN_MIB + 8), 1);
    assert_int_equal(guest_read32(fixture, TEN_MIB), 0x77);
}

/* The third one is in a page that is not there. */
GUEST(last_faults, 64,
      "mov $0x9ffff0, %ebx\n"
      "incl (%rbx)\n"
      "mov 8(%rbx), %eax\n"
      "incl 16(%rbx)\n"
      "incl 4(%rbx)\n");

static void accesses_before_the_one_that_faults_are_done(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, TEN_MIB_ENTRY, 0);
    guest_write64(fixture, TEN_MIB - 8, 0x99);
    GUEST_LOAD(fixture, last_faults);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, TEN_MIB);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x99);
    assert_int_equal(guest_read32(fixture, TEN_MIB - 16), 1);
    assert_int_equal(guest_read32(fixture, TEN_MIB - 12), 0);
}

/* Reads what may only be read, and branches around the write. */
GUEST(no_write, 64,
      "mov $0xa00100, %ebx\n"
      "mov $100, %ecx\n"
      "1: call 2f\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP "2: mov (%rbx), %eax\n"
      "cmpl $5, 8(%rbx)\n"
      "jne 3f\n"
      "movl $1, 16(%rbx)\n"
      "3: ret\n");

static void group_of_a_read_only_page_may_be_read(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, TEN_MIB_ENTRY, TEN_MIB | 0x81);
    guest_write64(fixture, TEN_MIB + 0x100, 0x1234);
    fixture->cpu.cr0 |= X86_CR0_WP;
    GUEST_LOAD(fixture, no_write);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x1234);
    assert_true(steps(fixture) < 10);
}

/* ---- what is between them ---- */

/* Registers that have no host register; the stack, moved by constants; flags that are
 * read behind accesses; the first vector instruction. */
GUEST(between, 64,
      "fninit\n"
      "mov $0x800100, %r10d\n"
      "movq $5, (%r10)\n"
      "mov $0x22, %r11d\n"
      "mov %r11, 8(%r10)\n"
      "add 8(%r10), %r11\n"
      "lea 1(%r11,%r10), %r15\n"
      "movups (%r10), %xmm1\n"
      "movups %xmm1, 0x20(%r10)\n"
      "mov 0x20(%r10), %rax\n"
      "mov $0x808000, %esp\n"
      "push %r15\n"
      "push %r10\n"
      "sub $0x20, %rsp\n"
      "cmp %rax, %r11\n"
      "mov %rax, 8(%rsp)\n"
      "mov 8(%rsp), %r12\n"
      "seta %dl\n"
      "movabs $0x1122334455667788, %rsi\n"
      "mov %rsi, 0x10(%rsp)\n"
      "lea 0x20(%rsp), %rsp\n"
      "pop %r11\n"
      "mov -0x18(%rsp), %r13\n"
      "pop %rbx\n" GUEST_STOP);

static void groups_are_right_whatever_is_between(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, between);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 5);
    assert_int_equal(fixture->cpu.r[12], 5);
    assert_int_equal(fixture->cpu.r[X86_RDX] & 0xff, 1);
    assert_int_equal(fixture->cpu.r[11], EIGHT_MIB + 0x100);
    assert_int_equal(fixture->cpu.r[X86_RBX], EIGHT_MIB + 0x100 + 0x44 + 1);
    assert_true(fixture->cpu.r[13] == UINT64_C(0x1122334455667788));
    assert_int_equal(fixture->cpu.r[X86_RSP], 0x808000);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x128), 0x22);
}

/* What changes the address, or wants the registers that have it. */
GUEST(ended, 64,
      "mov $0x800100, %ebx\n"
      "mov $2, %ecx\n"
      "mov (%rbx,%rcx,8), %rax\n"
      "mov 8(%rbx,%rcx,8), %rdx\n"
      "inc %rcx\n"
      "mov 8(%rbx,%rcx,8), %rsi\n"
      "mov $3, %r10d\n"
      "mov $5, %r11d\n"
      "mov (%rbx), %rdi\n"
      "add %r10d, %r11d\n"
      "mov 8(%rbx), %r8\n"
      "lea (%r10,%r11,2), %r15\n"
      "mov (%rbx), %r9\n"
      "mov %r15, %r12\n"
      "xadd %rcx, %rbx\n" /* 3 more */
      "mov 5(%rbx), %r13b\n" GUEST_STOP);

static void groups_end_where_the_address_changes(void **state)
{
    struct soft_fixture *fixture = *state;

    for (uint64_t i = 0; i < 5; i++)
        guest_write64(fixture, EIGHT_MIB + 0x100 + 8 * i, 0x10 + i);
    GUEST_LOAD(fixture, ended);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x12);
    assert_int_equal(fixture->cpu.r[X86_RDX], 0x13);
    assert_int_equal(fixture->cpu.r[X86_RSI], 0x14);
    assert_int_equal(fixture->cpu.r[X86_RDI], 0x10);
    assert_int_equal(fixture->cpu.r[8], 0x11);
    assert_int_equal(fixture->cpu.r[9], 0x10);
    assert_int_equal(fixture->cpu.r[12], 19);
    assert_int_equal(fixture->cpu.r[13] & 0xff, 0x11);
}

/* Nobody looks so far ahead. */
#define FAR_AHEAD ".rept 40; mov %r9d, %r12d; .endr\n"
GUEST(far_write, 64,
      "mov $0xa00100, %ebx\n"
      "mov (%rbx), %rax\n"
      "mov 8(%rbx), %rcx\n" FAR_AHEAD "inc %rax\n"
      "mov %rax, (%rbx)\n");

static void group_for_reads_does_not_write(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, TEN_MIB_ENTRY, TEN_MIB | 0x81);
    guest_write64(fixture, TEN_MIB + 0x100, 0x55);
    fixture->cpu.cr0 |= X86_CR0_WP;
    GUEST_LOAD(fixture, far_write);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, TEN_MIB + 0x100);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x56);
    assert_int_equal(guest_read32(fixture, TEN_MIB + 0x100), 0x55);
}

/* In the next page is 8 MiB again. */
GUEST(far_reach, 64,
      "mov $0x9ffff0, %ebx\n"
      "mov (%rbx), %rax\n"
      "mov 8(%rbx), %rcx\n" FAR_AHEAD "mov 12(%rbx), %rdx\n"
      "mov -4(%rbx), %rsi\n" GUEST_STOP);

static void group_reaches_no_further_than_it_was_checked(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, TEN_MIB_ENTRY, EIGHT_MIB | 0x83);
    guest_write64(fixture, TEN_MIB - 8, UINT64_C(0x22) << 32);
    guest_write64(fixture, TEN_MIB, 0x66);
    guest_write64(fixture, EIGHT_MIB, 0x33);
    GUEST_LOAD(fixture, far_reach);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_true(fixture->cpu.r[X86_RDX] == (UINT64_C(0x33) << 32 | 0x22));
}

/* The second write of the group changes the instruction behind it. */
GUEST(into_code, 64,
      "lea 1f(%rip), %rbx\n"
      "movb $1, -1(%rbx)\n"
      "movl $0x12345678, 1(%rbx)\n"
      "jmp 1f\n"
      ".byte 0\n"
      "1: mov $1, %eax\n"
      "mov -1(%rbx), %cl\n" GUEST_STOP);

static void group_that_writes_code_changes_it(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, into_code);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x12345678);
    assert_int_equal(fixture->cpu.r[X86_RCX] & 0xff, 1);
}

/* ---- afterwards ---- */

/* A group that has failed once, where its stack lies elsewhere later. */
GUEST(stack_moves, 64,
      "mov $3, %ecx\n"
      "mov $0x801010, %esp\n" /* in two pages */
      "1: call 2f\n"
      "mov $0x808800, %esp\n"
      "call 2f\n"
      "mov $0x801010, %esp\n"
      "mov %r8, 0x22020\n" /* entry 4 of the page directory */
      "invlpg 0x800000\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP "2: push %rcx\n"
      "push $0x33\n"
      "push %rcx\n"
      "sub $0x28, %rsp\n"
      "incl 0x18(%rsp)\n"
      "add $0x28, %rsp\n"
      "pop %rax\n"
      "pop %rdx\n"
      "pop %rsi\n"
      "ret\n");

static void groups_follow_their_translations(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.r[8] = TEN_MIB | 0x83;
    GUEST_LOAD(fixture, stack_moves);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 1);
    assert_int_equal(fixture->cpu.r[X86_RDX], 0x33);
    assert_int_equal(fixture->cpu.r[X86_RSI], 1);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0x1000), 3);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff8), 0x33);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xff0), 3);
    assert_int_equal(guest_read32(fixture, TEN_MIB + 0x1000), 1);
    assert_int_equal(guest_read32(fixture, TEN_MIB + 0xff0), 1);
    assert_int_equal(guest_read32(fixture, TEN_MIB + 0xfe0), 2);
    assert_int_equal(guest_read32(fixture, EIGHT_MIB + 0xfe0), 1);
}

#define GROUP_TEST(name)                                                                 \
    cmocka_unit_test_setup_teardown(name, set_up, soft_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GROUP_TEST(groups_are_right_where_they_reach_into_the_next_page),
        GROUP_TEST(careful_blocks_are_translated),
        GROUP_TEST(pushes_before_the_one_that_faults_are_done),
        GROUP_TEST(accesses_before_the_one_that_faults_are_done),
        GROUP_TEST(group_of_a_read_only_page_may_be_read),
        GROUP_TEST(groups_are_right_whatever_is_between),
        GROUP_TEST(groups_end_where_the_address_changes),
        GROUP_TEST(group_for_reads_does_not_write),
        GROUP_TEST(group_reaches_no_further_than_it_was_checked),
        GROUP_TEST(group_that_writes_code_changes_it),
        GROUP_TEST(groups_follow_their_translations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
