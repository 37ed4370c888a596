/* SPDX-License-Identifier: Apache-2.0 */
/* Events and far transfers of the software processor in real mode. */
#include "base/clock.h"
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

GUEST(software_interrupt, 16,
      "sti\n"
      "int $0x42\n"
      "movw $0x1234, %ax\n" GUEST_STOP);

static void int_n_pushes_flags_cs_and_next_ip(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, software_interrupt);
    assert_int_equal(guest_run(fixture), 0x42);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK - 6);
    assert_int_equal(guest_stack(fixture, 0), 3);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE >> 4);
    assert_int_equal(guest_stack(fixture, 2), X86_FLAGS_FIXED | X86_FLAGS_IF);
    assert_int_equal(cpu->flags_system & X86_FLAGS_IF, 0);
    assert_int_equal(cpu->segments[X86_CS].selector, 0);
}

GUEST(interrupt_return, 16,
      "pushw $0x0242\n" /* IF and bits that are always there */
      "pushw $0x1000\n"
      "pushw $(1f - interrupt_return)\n"
      "iretw\n"
      "hlt\n"
      "1: movw $0x1234, %ax\n" GUEST_STOP);

static void iret_pops_ip_cs_and_flags(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, interrupt_return);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RAX], 0x1234);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK);
    assert_true((cpu->flags_system & X86_FLAGS_IF) != 0);
    assert_true((soft_flags_get(cpu) & X86_FLAGS_ZF) != 0);
}

GUEST(beyond_limit, 16, "nop\nmovw 0xffff, %ax\n" GUEST_STOP);

static void fault_names_its_own_instruction_and_has_no_error_code(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_real(fixture);
    GUEST_LOAD(fixture, beyond_limit);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(fixture->cpu.r[X86_RSP], GUEST_STACK - 6);
    assert_int_equal(guest_stack(fixture, 0), 1);
}

GUEST(far_calls, 16,
      "lcallw $0x0ff0, $(1f - far_calls + 0x100)\n"
      "movw $0x77, %bx\n" GUEST_STOP "1: movw %sp, %ax\n"
      "lretw\n");

static void far_call_and_return_restore_cs(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, far_calls);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RAX], GUEST_STACK - 4);
    assert_int_equal(cpu->r[X86_RBX], 0x77);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK);
    assert_int_equal(cpu->segments[X86_CS].selector, GUEST_CODE >> 4);
}

GUEST(stack_switch, 16,
      "movw $0x100, %ax\n"
      "sti\n"
      "movw %ax, %ss\n"
      "movw $0x80, %sp\n"
      "nop\n" GUEST_STOP);

static void interrupt_waits_behind_mov_ss(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, stack_switch);
    fixture->pending_vector = 0x30;
    soft_cpu_attend(cpu, ATTENTION_INTERRUPT);
    assert_int_equal(guest_run(fixture), 0x30);
    assert_int_equal(cpu->segments[X86_SS].selector, 0x100);
    assert_int_equal(cpu->r[X86_RSP], 0x80 - 6);
    assert_int_equal(guest_stack(fixture, 0), 9); /* behind the load of SP */
}

GUEST(sti_hlt, 16, "sti\nhlt\nnop\n" GUEST_STOP);

static void interrupt_ends_hlt_behind_sti(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_real(fixture);
    GUEST_LOAD(fixture, sti_hlt);
    fixture->pending_vector = 0x31;
    soft_cpu_attend(&fixture->cpu, ATTENTION_INTERRUPT);
    assert_int_equal(guest_run(fixture), 0x31);
    assert_int_equal(guest_stack(fixture, 0), 2);
}

GUEST(single_step, 16,
      "pushw $0x0102\n" /* TF */
      "popfw\n"
      "nop\n"
      "incw %ax\n" GUEST_STOP);

static void trap_flag_stops_behind_the_next_instruction(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, single_step);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    assert_int_equal(guest_stack(fixture, 0), 5);
    assert_true((guest_stack(fixture, 2) & X86_FLAGS_TF) != 0);
    assert_int_equal(cpu->flags_system & X86_FLAGS_TF, 0);
    assert_int_equal(cpu->dr[6], X86_DR6_FIXED | X86_DR6_BS);
}

GUEST(breakpoint, 16, "nop\nnop\nmovw $1, %bx\n" GUEST_STOP);

static void instruction_breakpoint_comes_before_it_and_resume_flag_passes(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, breakpoint);
    cpu->dr[0] = GUEST_CODE + 2;
    cpu->dr[7] = X86_DR7_FIXED | 1;
    soft_cpu_update_trap(cpu);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    assert_int_equal(guest_stack(fixture, 0), 2);
    assert_int_equal(cpu->r[X86_RBX], 0);
    assert_int_equal(cpu->dr[6], X86_DR6_FIXED | 1);
    cpu->rip = 2;
    cpu->segments[X86_CS].selector = GUEST_CODE >> 4;
    cpu->segments[X86_CS].base = GUEST_CODE;
    soft_flags_set(cpu, X86_FLAGS_RF);
    soft_cpu_update_mode(cpu);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RBX], 1);
}

static void vector_beyond_idt_limit_ends_in_shutdown(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_real(fixture);
    GUEST_LOAD(fixture, software_interrupt);
    fixture->cpu.idt.limit = 3;
    assert_int_equal(guest_run(fixture), GUEST_SHUT_DOWN);
}

GUEST(to_protected, 16,
      "movw $(GUEST_TABLE - to_protected), %bx\n"
      "lgdtl %cs:(%bx)\n"
      "movl %cr0, %eax\n"
      "orb $1, %al\n"
      "movl %eax, %cr0\n"
      "ljmpl $8, $(0x10000 + 1f - to_protected)\n"
      "GUEST_TABLE: .word 0x97\n.long 0x4000\n"
      ".code32\n"
      "1: movl $0x18, %eax\n"
      "movl %eax, %ds\n"
      "movl %eax, %ss\n"
      "movl $0x12345678, %ecx\n" GUEST_STOP);

static void cr0_and_far_jump_enter_protected_mode(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture); /* for its GDT */
    soft_cpu_power_on(cpu);
    guest_real(fixture);
    GUEST_LOAD(fixture, to_protected);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RCX], 0x12345678);
    assert_int_equal(cpu->segments[X86_CS].selector, GUEST_CS32);
    assert_int_equal(cpu->segments[X86_DS].limit, UINT32_MAX);
    assert_true(cpu->segments[X86_SS].db);
}

GUEST(string_output, 16,
      "movw $3, %cx\n"
      "movw $0x55, %dx\n"
      "movw $0xa000, %si\n"
      "rep outsb\n" GUEST_STOP);

static void outs_repeats_and_steps(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_real(fixture);
    GUEST_LOAD(fixture, string_output);
    soft_fixture_write(fixture, GUEST_DATA, "xyz", 3);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RCX], 0);
    assert_int_equal(cpu->r[X86_RSI], GUEST_DATA + 3);
    assert_int_equal(fixture->port, 0x55);
    assert_int_equal(fixture->port_value & 0xff, 'z');
}

/* ---- HLT ---- */

static uint64_t due_in_a_millisecond(void *context)
{
    (void)context;
    return clock_monotonic_ns() + NS_PER_MS;
}

static void raise_timer(void *context)
{
    struct soft_fixture *fixture = context;

    fixture->pending_vector = 0x42;
    soft_cpu_attend(&fixture->cpu, ATTENTION_INTERRUPT);
}

static void halted_processor_wakes_itself_when_its_timer_is_due(void **state)
{
    struct soft_fixture *fixture = *state;
    uint64_t start_ns = clock_monotonic_ns();

    guest_real(fixture);
    fixture->irq.fall_asleep = due_in_a_millisecond;
    fixture->irq.wake_up = raise_timer;
    GUEST_LOAD(fixture, sti_hlt);
    assert_int_equal(guest_run(fixture), 0x42);
    assert_int_equal(guest_stack(fixture, 0), 2); /* behind HLT */
    assert_true(clock_monotonic_ns() - start_ns >= NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(int_n_pushes_flags_cs_and_next_ip),
        SOFT_TEST(iret_pops_ip_cs_and_flags),
        SOFT_TEST(fault_names_its_own_instruction_and_has_no_error_code),
        SOFT_TEST(far_call_and_return_restore_cs),
        SOFT_TEST(interrupt_waits_behind_mov_ss),
        SOFT_TEST(interrupt_ends_hlt_behind_sti),
        SOFT_TEST(trap_flag_stops_behind_the_next_instruction),
        SOFT_TEST(instruction_breakpoint_comes_before_it_and_resume_flag_passes),
        SOFT_TEST(vector_beyond_idt_limit_ends_in_shutdown),
        SOFT_TEST(cr0_and_far_jump_enter_protected_mode),
        SOFT_TEST(outs_repeats_and_steps),
        SOFT_TEST(halted_processor_wakes_itself_when_its_timer_is_due),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
