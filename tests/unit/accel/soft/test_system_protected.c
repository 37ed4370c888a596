/* SPDX-License-Identifier: Apache-2.0 */
/* Segments, events, far transfers and tasks of the software processor in 32-bit
 * protected mode. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* ---- segment loads ---- */

GUEST(load_ds, 32, "nop\nmovl %eax, %ds\n" GUEST_STOP);

static void check_load_fails(struct soft_fixture *fixture, uint16_t selector,
                             unsigned vector, uint32_t error_code)
{
    guest_protected(fixture);
    GUEST_LOAD(fixture, load_ds);
    fixture->cpu.r[X86_RAX] = selector;
    assert_int_equal(guest_run(fixture), vector);
    assert_int_equal(guest_stack(fixture, 0), error_code);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 1);
    assert_int_equal(guest_stack(fixture, 2), GUEST_CS32);
    assert_true((guest_stack(fixture, 3) & X86_FLAGS_RF) != 0);
    assert_int_equal(fixture->cpu.segments[X86_DS].selector, GUEST_DS);
}

static void absent_data_segment_is_not_present(void **state)
{
    check_load_fails(*state, GUEST_ABSENT_DS, X86_VECTOR_NP, GUEST_ABSENT_DS);
}

static void selector_beyond_the_table_is_a_protection_fault(void **state)
{
    check_load_fails(*state, 0x98 | 3, X86_VECTOR_GP, 0x98);
}

static void code_that_cannot_be_read_is_no_data_segment(void **state)
{
    check_load_fails(*state, GUEST_EXECUTE_ONLY, X86_VECTOR_GP, GUEST_EXECUTE_ONLY);
}

static void local_selector_without_ldt_is_a_protection_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    fixture->cpu.segments[X86_LDTR].present = false;
    GUEST_LOAD(fixture, load_ds);
    fixture->cpu.r[X86_RAX] = 0x0c;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0x0c);
}

GUEST(use_null, 32, "xorl %eax, %eax\nmovl %eax, %ds\nmovl (%eax), %ecx\n" GUEST_STOP);

static void null_segment_faults_when_used(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, use_null);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 4);
    assert_int_equal(fixture->cpu.segments[X86_DS].selector, 0);
}

GUEST(load_null_ss, 32, "xorl %eax, %eax\nmovl %eax, %ss\n" GUEST_STOP);

static void null_stack_segment_is_a_protection_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, load_null_ss);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0);
}

static void load_marks_descriptor_accessed(void **state)
{
    struct soft_fixture *fixture = *state;
    uint64_t at = GUEST_GDT + (GUEST_DS1 & ~7u) + 4;

    guest_protected(fixture);
    GUEST_LOAD(fixture, load_ds);
    guest_write64(fixture, at - 4, UINT64_C(0x00cfb2000000ffff));
    fixture->cpu.r[X86_RAX] = GUEST_DS1;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(guest_read32(fixture, at), 0x00cfb300);
    assert_int_equal(fixture->cpu.segments[X86_DS].dpl, 1);
}

/* ---- LAR, LSL, VERR, VERW, ARPL ---- */

GUEST(inspect, 32,
      "movl $0x18, %eax\n"
      "larl %eax, %ebx\n"
      "setz %dl\n"
      "lsll %eax, %ecx\n"
      "movl $0x90, %eax\n"
      "verr %ax\n"
      "setz %dh\n"
      "movl $0x98, %eax\n"
      "larl %eax, %ebx\n"
      "movl $0x1b, %esi\n"
      "movl $0x08, %eax\n"
      "arpl %si, %ax\n" GUEST_STOP);

static void descriptors_can_be_asked_about(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, inspect);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RBX], 0x00cf9300);
    assert_int_equal(cpu->r[X86_RCX], 0xffffffff);
    assert_int_equal(cpu->r[X86_RDX] & 0xffff, 0x0001);
    assert_int_equal(cpu->r[X86_RAX], 0x0b);
    assert_true((soft_flags_get(cpu) & X86_FLAGS_ZF) != 0);
}

/* ---- between privileges ---- */

GUEST(user_interrupt, 32, "nop\nint $0x80\nmovl $1, %ecx\n" GUEST_STOP);

#define USER_TRAP_GATE 0xef

static void int_n_from_cpl_3_switches_to_the_stack_of_the_tss(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, user_interrupt);
    guest_set_gate(fixture, 0x80, GUEST_CS32, USER_TRAP_GATE, 0);
    guest_to_user(fixture);
    soft_flags_set(cpu, X86_FLAGS_IF);
    assert_int_equal(guest_run(fixture), 0x80);
    assert_int_equal(cpu->cpl, 0);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK0 - 20);
    assert_int_equal(cpu->segments[X86_SS].selector, GUEST_DS);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 3);
    assert_int_equal(guest_stack(fixture, 1), GUEST_USER_CS32);
    assert_int_equal(guest_stack(fixture, 2), X86_FLAGS_FIXED | X86_FLAGS_IF);
    assert_int_equal(guest_stack(fixture, 3), GUEST_USER_STACK);
    assert_int_equal(guest_stack(fixture, 4), GUEST_USER_DS);
    assert_true((cpu->flags_system & X86_FLAGS_IF) != 0); /* a trap gate */
}

static void int_n_without_the_gates_privilege_names_the_gate(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, user_interrupt);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0x80 * 8 + 2);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 1);
}

static void external_interrupt_does_not_check_the_gates_privilege(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, user_interrupt);
    guest_to_user(fixture);
    soft_flags_set(&fixture->cpu, X86_FLAGS_IF);
    fixture->pending_vector = 0x80;
    soft_cpu_attend(&fixture->cpu, ATTENTION_INTERRUPT);
    assert_int_equal(guest_run(fixture), 0x80);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE);
    assert_int_equal(fixture->cpu.flags_system & X86_FLAGS_IF, 0);
}

GUEST(to_user, 32,
      "movl $0x10000 + 1f - to_user, %eax\n"
      "pushl $0x2b\n"
      "pushl $0x9000\n"
      "pushl $0x202\n"
      "pushl $0x23\n"
      "pushl %eax\n"
      "iretl\n"
      "hlt\n"
      "1: cli\n");

static void iret_to_cpl_3_drops_inner_data_segments(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, to_user);
    cpu->segments[X86_ES].dpl = 3;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP); /* CLI */
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 2), GUEST_USER_CS32);
    assert_int_equal(guest_stack(fixture, 4), GUEST_USER_STACK);
    assert_int_equal(cpu->segments[X86_DS].selector, 0);
    assert_false(cpu->segments[X86_DS].present);
    assert_int_equal(cpu->segments[X86_ES].selector, GUEST_DS);
}

GUEST(bad_return, 32,
      "pushl $0x202\n"
      "pushl $0x80\n"
      "pushl $0\n"
      "iretl\n");

static void iret_to_no_code_segment_leaves_the_frame(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, bad_return);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0x80);
    assert_int_equal(guest_stack(fixture, 4), 0); /* the popped EIP is still there */
    assert_int_equal(fixture->cpu.r[X86_RSP], GUEST_STACK - 12 - 16);
}

GUEST(call_gate, 32,
      "pushl $0x11\npushl $0x22\nlcall $0x5b, $0\nmovl $7, %ecx\n" GUEST_STOP);

static void call_gate_copies_parameters_to_the_inner_stack(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t at = GUEST_GDT + (GUEST_CALL_GATE & ~7u);
    uint64_t handler;

    guest_protected(fixture);
    handler = guest_read32(fixture, at) & 0xffff;
    guest_write64(fixture, at, UINT64_C(0x0000ec0200080000) | handler);
    GUEST_LOAD(fixture, call_gate);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), 0xff);
    assert_int_equal(cpu->cpl, 0);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK0 - 24);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 11);
    assert_int_equal(guest_stack(fixture, 1), GUEST_USER_CS32);
    assert_int_equal(guest_stack(fixture, 2), 0x22);
    assert_int_equal(guest_stack(fixture, 3), 0x11);
    assert_int_equal(guest_stack(fixture, 4), GUEST_USER_STACK - 8);
    assert_int_equal(guest_stack(fixture, 5), GUEST_USER_DS);
}

GUEST(far_return, 32, "pushl $0x23\npushl $0x10009\nlretl\n.byte 0x90, 0x90\n1: cli\n");

static void far_return_needs_a_stack_for_outer_levels(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, far_return);
    guest_write64(fixture, GUEST_STACK, UINT64_C(0x2b) << 32 | 0x9100);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP); /* CLI at CPL 3 */
    assert_int_equal(guest_stack(fixture, 2), GUEST_USER_CS32);
    assert_int_equal(guest_stack(fixture, 4), 0x9100);
}

GUEST(conforming, 32, "lcall $0x70, $0x10008\nhlt\n1: popl %eax\npopl %ebx\n" GUEST_STOP);

static void conforming_code_runs_at_the_callers_privilege(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, conforming);
    guest_to_user(fixture);
    cpu->flags_system |= X86_FLAGS_IOPL;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->cpl, 3);
    assert_int_equal(cpu->segments[X86_CS].selector, GUEST_CONFORMING | 3);
    assert_int_equal(cpu->r[X86_RAX], GUEST_CODE + 7);
    assert_int_equal(cpu->r[X86_RBX], GUEST_USER_CS32);
}

/* ---- ports ---- */

GUEST(user_port, 32, "inb $0x21, %al\ninb $0x20, %al\n");

static void permission_bitmap_opens_single_ports(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint8_t bitmap[] = {0xff, 0xff, 0xff, 0xff, 0xfd, 0xff};
    const uint16_t start = 0x68;

    guest_protected(fixture);
    GUEST_LOAD(fixture, user_port);
    fixture->cpu.segments[X86_TR].limit = 0x68 + 6;
    soft_fixture_write(fixture, GUEST_TSS + 0x66, &start, sizeof(start));
    soft_fixture_write(fixture, GUEST_TSS + 0x68, bitmap, sizeof(bitmap));
    guest_to_user(fixture);
    fixture->port_value = 0x99;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 2);
    assert_int_equal(fixture->port, 0x21);
    assert_int_equal(fixture->cpu.r[X86_RAX] & 0xff, 0x99);
}

/* ---- faults during delivery ---- */

static void fault_without_a_present_gate_is_a_double_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, load_ds);
    guest_set_gate(fixture, X86_VECTOR_GP, GUEST_CS32, 0x0e, 0);
    fixture->cpu.r[X86_RAX] = 0x98;
    assert_int_equal(guest_run(fixture), X86_VECTOR_DF);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 1);
}

static void interrupt_without_a_present_gate_is_not(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, load_ds);
    guest_set_gate(fixture, 0x30, GUEST_CS32, 0x0e, 0);
    soft_flags_set(&fixture->cpu, X86_FLAGS_IF);
    fixture->pending_vector = 0x30;
    soft_cpu_attend(&fixture->cpu, ATTENTION_INTERRUPT);
    assert_int_equal(guest_run(fixture), X86_VECTOR_NP);
    assert_int_equal(guest_stack(fixture, 0), 0x30 * 8 + 2 + 1); /* EXT */
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE);
}

static void third_fault_shuts_down(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_protected(fixture);
    GUEST_LOAD(fixture, load_ds);
    guest_set_gate(fixture, X86_VECTOR_GP, GUEST_CS32, 0x0e, 0);
    guest_set_gate(fixture, X86_VECTOR_DF, GUEST_CS32, 0x0e, 0);
    fixture->cpu.r[X86_RAX] = 0x98;
    assert_int_equal(guest_run(fixture), GUEST_SHUT_DOWN);
}

static void bad_inner_stack_is_a_task_fault(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint32_t stack[] = {GUEST_STACK0, GUEST_USER_DS};

    guest_protected(fixture);
    GUEST_LOAD(fixture, user_interrupt);
    soft_fixture_write(fixture, GUEST_TSS + 4, stack, sizeof(stack));
    guest_set_gate(fixture, 0x80, GUEST_CS32, USER_TRAP_GATE, 0);
    guest_set_gate(fixture, X86_VECTOR_TS, GUEST_CONFORMING, 0x8e, 0);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), X86_VECTOR_TS); /* on the stack of CPL 3 */
    assert_int_equal(fixture->cpu.cpl, 3);
    assert_int_equal(guest_stack(fixture, 0), GUEST_USER_DS & ~3);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 1);
}

/* ---- virtual-8086 mode ---- */

GUEST(to_virtual86, 32,
      "pushl $0x400\n" /* GS FS DS ES SS ESP EFLAGS CS EIP */
      "pushl $0x300\n"
      "pushl $0x200\n"
      "pushl $0x100\n"
      "pushl $0x900\n"
      "pushl $0x80\n"
      "pushl $0x20202\n"
      "pushl $0x1000\n"
      "pushl $(1f - to_virtual86)\n"
      "iretl\n"
      ".code16\n"
      "1: movw $0x1234, %ax\n"
      "movw %ax, %ds\n"
      "int $0x21\n");

static void virtual86_software_interrupt_needs_io_privilege(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, to_virtual86);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 2), 0x1000);
    assert_true((guest_stack(fixture, 3) & X86_FLAGS_VM) != 0);
    assert_int_equal(guest_stack(fixture, 4), 0x80);
    assert_int_equal(guest_stack(fixture, 5), 0x900);
    assert_int_equal(guest_stack(fixture, 6), 0x100); /* ES DS FS GS */
    assert_int_equal(guest_stack(fixture, 7), 0x1234);
    assert_int_equal(guest_stack(fixture, 8), 0x300);
    assert_int_equal(guest_stack(fixture, 9), 0x400);
    assert_int_equal(cpu->cpl, 0);
    assert_int_equal(cpu->flags_system & X86_FLAGS_VM, 0);
    assert_int_equal(cpu->segments[X86_DS].selector, 0);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK0 - 40);
}

/* ---- tasks ---- */

GUEST(task_call, 32, "movl $5, %ebx\nlcall $0x48, $0\nmovl $7, %ecx\n" GUEST_STOP);
GUEST(other_task, 32, "movl $9, %ebx\niretl\nmovl $8, %ebx\n" GUEST_STOP);

#define OTHER_CODE 0x11000

static void write_other_task(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;
    const uint32_t registers[] = {
        OTHER_CODE, X86_FLAGS_FIXED, 0,          0,        0,        0, 0x8800, 0, 0,
        0,          GUEST_DS,        GUEST_CS32, GUEST_DS, GUEST_DS, 0, 0,      0};

    soft_fixture_write(fixture, OTHER_CODE, other_task,
                       (size_t)((uintptr_t)other_task_end - (uintptr_t)other_task));
    soft_fixture_write(fixture, GUEST_OTHER_TSS + 0x20, registers, sizeof(registers));
    /* TR as if loaded by LTR: its descriptor is busy, too. */
    guest_write64(fixture, GUEST_GDT + GUEST_TR, UINT64_C(0x00008b0048000067));
    assert_int_equal(cpu->segments[X86_TR].type, X86_TYPE_TSS_BUSY);
}

static void call_to_a_task_and_iret_come_back(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, task_call);
    write_other_task(fixture);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RBX], 5);
    assert_int_equal(cpu->r[X86_RCX], 7);
    assert_int_equal(cpu->segments[X86_TR].selector, GUEST_TR);
    assert_int_equal(cpu->flags_system & X86_FLAGS_NT, 0);
    assert_true((cpu->cr0 & X86_CR0_TS) != 0);
    /* The other one is available again, and has saved where it was. */
    assert_int_equal(guest_read32(fixture, GUEST_GDT + GUEST_OTHER_TR + 4) >> 8 & 0xf, 9);
    assert_int_equal(guest_read32(fixture, GUEST_OTHER_TSS + 0x20), OTHER_CODE + 6);
    assert_int_equal(guest_read32(fixture, GUEST_OTHER_TSS + 0x34), 9);
    assert_int_equal(guest_read32(fixture, GUEST_OTHER_TSS) & 0xffff, GUEST_TR);
}

static void task_gate_takes_a_double_fault(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_protected(fixture);
    GUEST_LOAD(fixture, load_ds);
    write_other_task(fixture);
    soft_fixture_write(fixture, OTHER_CODE, "\xe6\xf4", 2);
    guest_set_gate(fixture, X86_VECTOR_GP, GUEST_CS32, 0x0e, 0);
    guest_set_gate(fixture, X86_VECTOR_DF, GUEST_OTHER_TR, 0x85, 0);
    cpu->r[X86_RAX] = 0x98;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->rip, OTHER_CODE + 2);
    assert_int_equal(cpu->segments[X86_TR].selector, GUEST_OTHER_TR);
    assert_int_equal(cpu->r[X86_RSP], 0x8800 - 4);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_true((cpu->flags_system & X86_FLAGS_NT) != 0);
    assert_int_equal(guest_read32(fixture, GUEST_TSS + 0x20), GUEST_CODE + 1);
    assert_int_equal(guest_read32(fixture, GUEST_TSS + 0x28), 0x98);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(absent_data_segment_is_not_present),
        SOFT_TEST(selector_beyond_the_table_is_a_protection_fault),
        SOFT_TEST(code_that_cannot_be_read_is_no_data_segment),
        SOFT_TEST(local_selector_without_ldt_is_a_protection_fault),
        SOFT_TEST(null_segment_faults_when_used),
        SOFT_TEST(null_stack_segment_is_a_protection_fault),
        SOFT_TEST(load_marks_descriptor_accessed),
        SOFT_TEST(descriptors_can_be_asked_about),
        SOFT_TEST(int_n_from_cpl_3_switches_to_the_stack_of_the_tss),
        SOFT_TEST(int_n_without_the_gates_privilege_names_the_gate),
        SOFT_TEST(external_interrupt_does_not_check_the_gates_privilege),
        SOFT_TEST(iret_to_cpl_3_drops_inner_data_segments),
        SOFT_TEST(iret_to_no_code_segment_leaves_the_frame),
        SOFT_TEST(call_gate_copies_parameters_to_the_inner_stack),
        SOFT_TEST(far_return_needs_a_stack_for_outer_levels),
        SOFT_TEST(conforming_code_runs_at_the_callers_privilege),
        SOFT_TEST(permission_bitmap_opens_single_ports),
        SOFT_TEST(fault_without_a_present_gate_is_a_double_fault),
        SOFT_TEST(interrupt_without_a_present_gate_is_not),
        SOFT_TEST(third_fault_shuts_down),
        SOFT_TEST(bad_inner_stack_is_a_task_fault),
        SOFT_TEST(virtual86_software_interrupt_needs_io_privilege),
        SOFT_TEST(call_to_a_task_and_iret_come_back),
        SOFT_TEST(task_gate_takes_a_double_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
