/* SPDX-License-Identifier: Apache-2.0 */
/* 16 and 32-bit code whose segments are flat, or were so when it was decoded. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Descriptors that take the place of GUEST_ABSENT_DS (SDM figure 3-8). */
#define DATA_AT_100 UINT64_C(0x00cf93000100ffff)      /* base 0x100 */
#define DATA_TO_AFFF UINT64_C(0x004093000000afff)     /* limit 0xafff */
#define DATA_READ_ONLY UINT64_C(0x00cf91000000ffff)   /* base 0, 4 GiB */
#define DATA_EXPAND_DOWN UINT64_C(0x00cf97000000ffff) /* base 0, all of it forbidden */
#define STACK_OF_16_BITS UINT64_C(0x008f93000000ffff) /* base 0, 4 GiB */

static void set_other(struct soft_fixture *fixture, uint64_t descriptor)
{
    guest_write64(fixture, GUEST_GDT + GUEST_ABSENT_DS, descriptor);
}

static void write32(struct soft_fixture *fixture, uint64_t gpa, uint32_t value)
{
    soft_fixture_write(fixture, gpa, &value, sizeof(value));
}

/* ---- loads between instructions of a block ---- */

/* ESI times: AX and DX in turn become DS; what EBX points to is pushed. */
GUEST(alternate_ds, 32,
      "1: movl %eax, %ds\n"
      "movl (%ebx), %ecx\n"
      "pushl %ecx\n"
      "xchgl %eax, %edx\n"
      "decl %esi\n"
      "jnz 1b\n" GUEST_STOP);
#define ALTERNATE_DS_READ (GUEST_CODE + 2)

static void alternate(struct soft_fixture *fixture, uint64_t descriptor, uint32_t address)
{
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    set_other(fixture, descriptor);
    write32(fixture, GUEST_DATA, 0x11111111);
    write32(fixture, GUEST_DATA + 0x100, 0x22222222);
    GUEST_LOAD(fixture, alternate_ds);
    cpu->r[X86_RAX] = GUEST_DS;
    cpu->r[X86_RDX] = GUEST_ABSENT_DS;
    cpu->r[X86_RBX] = address;
    cpu->r[X86_RSI] = 4;
}

static void a_load_of_ds_counts_for_code_that_is_decoded(void **state)
{
    struct soft_fixture *fixture = *state;

    alternate(fixture, DATA_AT_100, GUEST_DATA);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RSP], GUEST_STACK - 16);
    assert_int_equal(guest_stack(fixture, 3), 0x11111111);
    assert_int_equal(guest_stack(fixture, 2), 0x22222222);
    assert_int_equal(guest_stack(fixture, 1), 0x11111111);
    assert_int_equal(guest_stack(fixture, 0), 0x22222222);
    assert_int_equal(fixture->cpu.retired, 4 * 6 + 1);
}

static void check_second_read_faults(struct soft_fixture *fixture)
{
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(fixture->cpu.r[X86_RSI], 3);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 1), ALTERNATE_DS_READ);
}

static void a_limit_faults_where_a_flat_segment_did_not(void **state)
{
    alternate(*state, DATA_TO_AFFF, 0xaffd);
    check_second_read_faults(*state);
}

static void all_offsets_of_an_expand_down_segment_may_be_forbidden(void **state)
{
    alternate(*state, DATA_EXPAND_DOWN, GUEST_DATA);
    check_second_read_faults(*state);
}

/* The same for ES, by POP, and a string instruction. */
GUEST(alternate_es, 32,
      "1: pushl %edx\n"
      "popl %es\n"
      "movl %ebx, %edi\n"
      "stosl\n"
      "xchgl %edx, %ebp\n"
      "incl %eax\n"
      "decl %esi\n"
      "jnz 1b\n" GUEST_STOP);

static void a_pop_of_es_counts_for_string_instructions(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    set_other(fixture, DATA_AT_100);
    GUEST_LOAD(fixture, alternate_es);
    cpu->r[X86_RAX] = 5;
    cpu->r[X86_RBX] = GUEST_DATA;
    cpu->r[X86_RDX] = GUEST_DS;
    cpu->r[X86_RBP] = GUEST_ABSENT_DS;
    cpu->r[X86_RSI] = 4;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(guest_read32(fixture, GUEST_DATA), 7);
    assert_int_equal(guest_read32(fixture, GUEST_DATA + 0x100), 8);
}

/* ---- rights ---- */

GUEST(write_ds, 32, "movl %eax, %ds\nmovl %eax, (%ebx)\n" GUEST_STOP);
GUEST(write_cs, 32, "nop\nnop\nmovl %eax, %cs:(%ebx)\n" GUEST_STOP);
GUEST(read_cs, 32, "movl %cs:(%ebx), %ecx\n" GUEST_STOP);

static void four_gib_that_are_only_for_reading_are_not_written(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    set_other(fixture, DATA_READ_ONLY);
    GUEST_LOAD(fixture, write_ds);
    fixture->cpu.r[X86_RAX] = GUEST_ABSENT_DS;
    fixture->cpu.r[X86_RBX] = GUEST_DATA;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 2);
}

static void a_flat_code_segment_is_read_but_not_written(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    write32(fixture, GUEST_DATA, 0x33333333);
    GUEST_LOAD(fixture, read_cs);
    fixture->cpu.r[X86_RBX] = GUEST_DATA;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RCX], 0x33333333);

    GUEST_LOAD(fixture, write_cs);
    fixture->cpu.rip = GUEST_CODE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 2);
}

/* ---- the end of 4 GiB ---- */

GUEST(read_behind, 32, "movl 0x10(%eax), %ecx\n" GUEST_STOP);
GUEST(read_behind_frame, 32, "movl 0x10(%ebp), %ecx\n" GUEST_STOP);

/* MOV has handlers of its own for flat operands, ADD has not. */
GUEST(add_behind, 32, "addl 0x10(%eax), %ecx\n" GUEST_STOP);

static void offsets_wrap_at_4_gib(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, read_behind);
    fixture->cpu.r[X86_RAX] = 0xfffffff0;
    write32(fixture, 0, 0x55555555);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RCX], 0x55555555);
    GUEST_LOAD(fixture, add_behind);
    fixture->cpu.rip = GUEST_CODE;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RCX], 0xaaaaaaaa);
}

static void operands_do_not_wrap_at_4_gib(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, read_behind);
    fixture->cpu.r[X86_RAX] = 0xfffffffd - 0x10;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE);

    GUEST_LOAD(fixture, add_behind);
    fixture->cpu.rip = GUEST_CODE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE);

    GUEST_LOAD(fixture, read_behind_frame);
    fixture->cpu.rip = GUEST_CODE;
    fixture->cpu.r[X86_RBP] = 0xfffffffd - 0x10;
    assert_int_equal(guest_run(fixture), X86_VECTOR_SS);
    assert_int_equal(guest_stack(fixture, 0), 0);
}

GUEST(push_register, 32, "pushl %eax\n" GUEST_STOP);
GUEST(call_forward, 32, "call 1f\n1: nop\n" GUEST_STOP);
GUEST(pop_register, 32, "popl %eax\n" GUEST_STOP);
GUEST(return_near, 32, "ret\n" GUEST_STOP);

/* At CPL 3, so that the fault has another stack. */
static void check_stack_fault(struct soft_fixture *fixture, uint32_t pointer)
{
    fixture->cpu.r[X86_RSP] = pointer;
    assert_int_equal(guest_run(fixture), X86_VECTOR_SS);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE);
    assert_int_equal(guest_stack(fixture, 4), pointer);
}

#define CHECK_STACK_FAULT(fixture, name, pointer)                                        \
    do {                                                                                 \
        guest_protected(fixture);                                                        \
        GUEST_LOAD((fixture), name);                                                     \
        guest_to_user(fixture);                                                          \
        check_stack_fault((fixture), (pointer));                                         \
    } while (0)

static void the_stack_does_not_wrap_within_a_slot(void **state)
{
    struct soft_fixture *fixture = *state;

    CHECK_STACK_FAULT(fixture, push_register, 2);
    CHECK_STACK_FAULT(fixture, call_forward, 1);
    CHECK_STACK_FAULT(fixture, pop_register, 0xfffffffd);
    CHECK_STACK_FAULT(fixture, return_near, 0xffffffff);
}

/* ---- other modes ---- */

/* The first two bring the page of the wide stack into the TLB. */
GUEST(narrow_stack, 32,
      "pushl %edi\n"
      "popl %edi\n"
      "movl %eax, %ss\n"
      "pushl %ecx\n"
      "movl %edx, %ss\n"
      "popl %ecx\n" GUEST_STOP);

static void a_stack_of_16_bits_keeps_the_upper_half(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    set_other(fixture, STACK_OF_16_BITS);
    GUEST_LOAD(fixture, narrow_stack);
    cpu->r[X86_RSP] = 0x20000 + GUEST_STACK;
    cpu->r[X86_RAX] = GUEST_ABSENT_DS;
    cpu->r[X86_RCX] = 0x66666666;
    cpu->r[X86_RDX] = GUEST_DS;
    cpu->r[X86_RDI] = 0x77777777;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(guest_read32(fixture, GUEST_STACK - 4), 0x66666666);
    assert_int_equal(cpu->r[X86_RCX], 0x77777777);
    assert_int_equal(cpu->r[X86_RSP], 0x20000 + GUEST_STACK);
}

GUEST(to_user, 32, "iretl\n");
GUEST(read_data, 32, "movl (%ebx), %ecx\n" GUEST_STOP);
#define USER_CODE (GUEST_CODE + 0x100)

static void a_segment_that_iret_drops_faults_at_the_next_read(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint32_t frame[] = {USER_CODE, GUEST_USER_CS32, X86_FLAGS_FIXED,
                              GUEST_USER_STACK, GUEST_USER_DS};

    guest_protected(fixture);
    GUEST_LOAD(fixture, to_user);
    soft_fixture_write(fixture, USER_CODE, read_data,
                       (size_t)((uintptr_t)read_data_end - (uintptr_t)read_data));
    soft_fixture_write(fixture, GUEST_STACK - sizeof(frame), frame, sizeof(frame));
    fixture->cpu.r[X86_RSP] = GUEST_STACK - sizeof(frame);
    fixture->cpu.r[X86_RBX] = GUEST_DATA;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 1), USER_CODE);
    assert_int_equal(guest_stack(fixture, 2), GUEST_USER_CS32);
}

/* Out of protected mode with flat segments: real mode leaves them as they are, until one
 * is loaded, which changes its base alone. */
GUEST(leave_protected, 32,
      "movl %cr0, %eax\n"
      "decl %eax\n"
      "movl %eax, %cr0\n"
      "movl (%ebx), %ecx\n"
      "movl %edx, %ds\n"
      "movl (%ebx), %esi\n" GUEST_STOP);

static void real_mode_keeps_flat_segments_until_they_are_loaded(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, leave_protected);
    write32(fixture, 0x200000, 0x88888888);
    write32(fixture, 0x212340, 0x99999999);
    cpu->r[X86_RBX] = 0x200000;
    cpu->r[X86_RDX] = 0x1234;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RCX], 0x88888888);
    assert_int_equal(cpu->r[X86_RSI], 0x99999999);
    assert_int_equal(cpu->segments[X86_DS].limit, UINT32_MAX);
}

GUEST(read_far, 16, "nop\nmovl (%ebx), %ecx\n" GUEST_STOP);

static void real_mode_has_limits_but_for_big_segments(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, read_far);
    write32(fixture, 0x200000, 0x88888888);
    cpu->r[X86_RBX] = 0x200000;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);

    guest_real(fixture);
    cpu->segments[X86_DS].limit = UINT32_MAX;
    soft_cpu_update_mode(cpu);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RCX], 0x88888888);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(a_load_of_ds_counts_for_code_that_is_decoded),
        SOFT_TEST(a_limit_faults_where_a_flat_segment_did_not),
        SOFT_TEST(all_offsets_of_an_expand_down_segment_may_be_forbidden),
        SOFT_TEST(a_pop_of_es_counts_for_string_instructions),
        SOFT_TEST(four_gib_that_are_only_for_reading_are_not_written),
        SOFT_TEST(a_flat_code_segment_is_read_but_not_written),
        SOFT_TEST(offsets_wrap_at_4_gib),
        SOFT_TEST(operands_do_not_wrap_at_4_gib),
        SOFT_TEST(the_stack_does_not_wrap_within_a_slot),
        SOFT_TEST(a_stack_of_16_bits_keeps_the_upper_half),
        SOFT_TEST(a_segment_that_iret_drops_faults_at_the_next_read),
        SOFT_TEST(real_mode_keeps_flat_segments_until_they_are_loaded),
        SOFT_TEST(real_mode_has_limits_but_for_big_segments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
