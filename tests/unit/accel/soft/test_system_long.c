/* SPDX-License-Identifier: Apache-2.0 */
/* Events, system calls, control and model-specific registers in long mode. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/msr_private.h"
#include "accel/soft/vendor_private.h"

#define KERNEL_ADDRESS UINT64_C(0xffff800000000000)
#define NOT_CANONICAL UINT64_C(0x0000800000000000)

/* ---- events ---- */

GUEST(undefined, 64, "nop\nud2\n");

static void event_from_cpl_3_takes_rsp0_and_a_null_ss(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, undefined);
    guest_to_user(fixture);
    soft_flags_set(cpu, X86_FLAGS_IF);
    assert_int_equal(guest_run(fixture), X86_VECTOR_UD);
    assert_int_equal(cpu->cpl, 0);
    assert_int_equal(cpu->segments[X86_SS].selector, 0);
    assert_int_equal(cpu->segments[X86_CS].selector, GUEST_CS64);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK0 - 40);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 1);
    assert_int_equal(guest_stack(fixture, 1), GUEST_USER_CS64);
    assert_int_equal(guest_stack(fixture, 2),
                     X86_FLAGS_FIXED | X86_FLAGS_IF | X86_FLAGS_RF);
    assert_int_equal(guest_stack(fixture, 3), GUEST_USER_STACK);
    assert_int_equal(guest_stack(fixture, 4), GUEST_USER_DS);
}

static void event_at_the_same_level_aligns_the_stack(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, undefined);
    cpu->r[X86_RSP] = GUEST_STACK - 3;
    assert_int_equal(guest_run(fixture), X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK - 16 - 40);
    assert_int_equal(guest_stack(fixture, 3), GUEST_STACK - 3);
    assert_int_equal(guest_stack(fixture, 4), GUEST_DS);
    assert_int_equal(cpu->segments[X86_SS].selector, GUEST_DS);
}

static void gate_with_stack_entry_switches_always(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, undefined);
    guest_set_gate(fixture, X86_VECTOR_UD, GUEST_CS64, 0x8e, 1);
    assert_int_equal(guest_run(fixture), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.r[X86_RSP], GUEST_STACK_TABLE - 40);
}

GUEST(store_far, 64, "movq $0x1234567, %rax\nmovl %eax, 0x7f000000\n");

static void page_fault_has_address_and_code(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, store_far);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(guest_stack(fixture, 0), X86_PF_WRITE | X86_PF_USER);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 7);
    assert_int_equal(fixture->cpu.cr2, 0x7f000000);
}

/* The stack of CPL 0 is not there: a page fault while a page fault is delivered. */
static void page_fault_on_the_way_is_a_double_fault(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, store_far);
    guest_write64(fixture, GUEST_TSS + 4, 0x7e000000);
    guest_set_gate(fixture, X86_VECTOR_DF, GUEST_CS64, 0x8e, 1);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DF);
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK_TABLE - 48);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 7);
    assert_int_equal(guest_stack(fixture, 2), GUEST_USER_CS64);
    assert_int_equal(cpu->cr2, 0x7e000000 - 1);
}

GUEST(bad_jump, 64, "movq $0x800000000000, %rax\njmp *%rax\n");

static void non_canonical_target_is_a_protection_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, bad_jump);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0);
}

/* ---- IRET ---- */

GUEST(return_inside, 64,
      "pushq $0\n" /* SS */
      "pushq $0x5000\n"
      "pushq $0x2\n"
      "pushq $0x10\n"
      "pushq $0x10000 + 1f - return_inside\n"
      "iretq\n"
      "hlt\n"
      "1: movl $3, %ebx\n" GUEST_STOP);

static void iret_pops_the_stack_at_the_same_level_too(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, return_inside);
    cpu->nmi_blocked = true;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RBX], 3);
    assert_int_equal(cpu->r[X86_RSP], 0x5000);
    assert_int_equal(cpu->segments[X86_SS].selector, 0);
    assert_false(cpu->nmi_blocked);
}

GUEST(return_outside, 64,
      "pushq $0x2b\npushq $0x9000\npushq $0x202\npushq $0x33\n"
      "pushq $0x10000 + 1f - return_outside\n"
      "iretq\n"
      "1: int $0x80\n");

static void iret_outside_makes_gs_null_but_keeps_its_base(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, return_outside);
    guest_set_gate(fixture, 0x80, GUEST_CS64, 0xee, 0);
    cpu->segments[X86_GS].base = KERNEL_ADDRESS;
    assert_int_equal(guest_run(fixture), 0x80);
    assert_int_equal(cpu->segments[X86_GS].selector, 0);
    assert_int_equal(cpu->segments[X86_GS].base, KERNEL_ADDRESS);
}

GUEST(return_to_compatibility, 64,
      "pushq $0x6b\n" /* a stack of 16 bits */
      "pushq $0x12345000\n"
      "pushq $0x202\n"
      "pushq $0x23\n"
      "pushq $0x10000 + 1f - return_to_compatibility\n"
      "iretq\n"
      ".code32\n"
      "1: movl %esp, %eax\n"
      "int $0x80\n");

/* espfix: a 16-bit stack takes only SP; what is above shows the kernel's. */
static void iret_to_a_16_bit_stack_loads_only_sp(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, return_to_compatibility);
    guest_set_gate(fixture, 0x80, GUEST_CS64, 0xee, 0);
    cpu->r[X86_RSP] = 0x00200000 + GUEST_STACK;
    assert_int_equal(guest_run(fixture), 0x80);
    assert_int_equal(cpu->r[X86_RAX], 0x00205000);
    assert_int_equal(guest_stack(fixture, 1), GUEST_USER_CS32);
    assert_int_equal(guest_stack(fixture, 4), GUEST_USER_SS16);
}

GUEST(return_non_canonical, 64,
      "movq $0x800000000000, %rax\n"
      "pushq $0x2b\npushq $0x9000\npushq $0x202\npushq $0x33\n"
      "pushq %rax\n"
      "iretq\n");

static void iret_faults_before_it_leaves(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, return_non_canonical);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0);
    assert_int_equal(guest_stack(fixture, 2), GUEST_CS64); /* faulted at CPL 0 */
    assert_int_equal(cpu->r[X86_RSP], GUEST_STACK - 40 - 8 - 48);
}

/* ---- system calls ---- */

GUEST(system_call, 64,
      "1: stc\n"
      "syscall\n"
      "movl $2, %ebx\n" /* back in the program */
      "int $0x80\n");

#define SYSCALL_ENTRY 0x12000
GUEST(system_call_handler, 64, "movq %r11, %rdx\nsysretq\n");

static void prepare_syscall(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, system_call);
    soft_fixture_write(
        fixture, SYSCALL_ENTRY, system_call_handler,
        (size_t)((uintptr_t)system_call_handler_end - (uintptr_t)system_call_handler));
    guest_set_gate(fixture, 0x80, GUEST_CS64, 0xee, 0);
    guest_to_user(fixture);
    cpu->msrs->star = UINT64_C(0x20) << 48 | UINT64_C(0x10) << 32;
    cpu->msrs->lstar = SYSCALL_ENTRY;
    cpu->msrs->fmask = X86_FLAGS_IF | X86_FLAGS_CF;
    cpu->efer |= X86_EFER_SCE;
    soft_flags_set(cpu, X86_FLAGS_IF);
}

static void syscall_and_sysret_go_there_and_back(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    prepare_syscall(fixture);
    assert_int_equal(guest_run(fixture), 0x80);
    assert_int_equal(cpu->r[X86_RBX], 2);
    assert_int_equal(cpu->r[X86_RCX], GUEST_CODE + 3);
    assert_int_equal(cpu->r[X86_RDX], X86_FLAGS_FIXED | X86_FLAGS_IF | X86_FLAGS_CF);
    assert_int_equal(guest_stack(fixture, 1), GUEST_USER_CS64);
    assert_int_equal(guest_stack(fixture, 2),
                     X86_FLAGS_FIXED | X86_FLAGS_IF | X86_FLAGS_CF);
    assert_int_equal(guest_stack(fixture, 4), GUEST_USER_DS);
}

static void syscall_masks_flags_and_loads_flat_segments(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    prepare_syscall(fixture);
    soft_fixture_write(fixture, SYSCALL_ENTRY, "\xe6\xf4", 2);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->cpl, 0);
    assert_int_equal(cpu->segments[X86_CS].selector, GUEST_CS64);
    assert_int_equal(cpu->segments[X86_SS].selector, GUEST_DS);
    assert_int_equal(soft_flags_get(cpu), X86_FLAGS_FIXED);
    assert_int_equal(cpu->r[X86_RSP], GUEST_USER_STACK);
}

static void syscall_traps_by_the_flags_it_has_masked(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    prepare_syscall(fixture);
    soft_fixture_write(fixture, SYSCALL_ENTRY, "\xe6\xf4", 2);
    cpu->msrs->fmask |= X86_FLAGS_TF;
    cpu->rip += 1; /* SYSCALL */
    soft_flags_set(cpu, X86_FLAGS_TF);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_true((cpu->r[X86_R11] & X86_FLAGS_TF) != 0);
}

static void syscall_without_efer_bit_is_undefined(void **state)
{
    struct soft_fixture *fixture = *state;

    prepare_syscall(fixture);
    fixture->cpu.efer &= ~X86_EFER_SCE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_UD);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 1);
}

/* ---- FS and GS ---- */

GUEST(bases, 64,
      "swapgs\n"
      "movq %gs:8, %rax\n"
      "rdgsbase %rbx\n"
      "wrfsbase %rcx\n"
      "rdfsbase %edx\n"
      "movq $0x800000000000, %rcx\n"
      "wrgsbase %rcx\n");

static void bases_are_swapped_read_and_written(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, bases);
    cpu->cr4 |= X86_CR4_FSGSBASE;
    cpu->segments[X86_GS].base = 0x1111;
    cpu->kernel_gs_base = GUEST_DATA;
    cpu->r[X86_RCX] = KERNEL_ADDRESS | 0x77;
    guest_write64(fixture, GUEST_DATA + 8, 0xabcdef);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(cpu->r[X86_RAX], 0xabcdef);
    assert_int_equal(cpu->r[X86_RBX], GUEST_DATA);
    assert_int_equal(cpu->r[X86_RDX], 0x77);
    assert_int_equal(cpu->segments[X86_FS].base, KERNEL_ADDRESS | 0x77);
    assert_int_equal(cpu->segments[X86_GS].base, GUEST_DATA);
    assert_int_equal(cpu->kernel_gs_base, 0x1111);
}

GUEST(null_fs, 64, "xorl %eax, %eax\nmovl %eax, %fs\n" GUEST_STOP);

static void null_selector_clears_the_base(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, null_fs);
    fixture->cpu.segments[X86_FS].base = 0x1234;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.segments[X86_FS].base, 0);
}

/* ---- control registers ---- */

GUEST(write_cr0, 64, "movq %rax, %cr0\n" GUEST_STOP);
GUEST(write_cr3, 64, "movq %rax, %cr3\n" GUEST_STOP);
GUEST(write_cr4, 64, "movq %rax, %cr4\n" GUEST_STOP);
GUEST(write_cr8, 64, "movq %rax, %cr8\n" GUEST_STOP);
GUEST(read_cr5, 64, ".byte 0x0f, 0x20, 0xe8\n" GUEST_STOP);

#define RUN_WITH(fixture, guest, value)                                                  \
    (guest_long(fixture), GUEST_LOAD(fixture, guest),                                    \
     (fixture)->cpu.r[X86_RAX] = (value), guest_run(fixture))

static void control_registers_refuse_what_they_cannot_be(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t cr0 = X86_CR0_PE | X86_CR0_PG | X86_CR0_ET | X86_CR0_WP | X86_CR0_NE;

    assert_int_equal(RUN_WITH(fixture, write_cr0, cr0), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.cr0, cr0);
    assert_int_equal(RUN_WITH(fixture, write_cr0, cr0 & ~X86_CR0_PG), X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr0, cr0 & ~X86_CR0_PE), X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr0, cr0 | X86_CR0_NW), X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr0, cr0 | UINT64_C(1) << 32),
                     X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr3, UINT64_C(1) << 63), X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr4, 0), X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr4, X86_CR4_PAE | X86_CR4_VME),
                     X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, write_cr4, X86_CR4_PAE | X86_CR4_PGE),
                     GUEST_STOPPED);
    assert_int_equal(RUN_WITH(fixture, write_cr8, 16), X86_VECTOR_GP);
    assert_int_equal(RUN_WITH(fixture, read_cr5, 0), X86_VECTOR_UD);
}

static void control_registers_are_for_cpl_0(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, write_cr3);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
}

GUEST(write_dr, 64, "movq %rax, %dr7\nmovq %dr6, %rbx\n" GUEST_STOP);

static void guarded_debug_registers_trap(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    assert_int_equal(RUN_WITH(fixture, write_dr, X86_DR7_GD), X86_VECTOR_DB);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 3);
    assert_int_equal(cpu->dr[6], X86_DR6_FIXED | X86_DR6_BD);
    assert_int_equal(cpu->dr[7], X86_DR7_FIXED);
    assert_int_equal(RUN_WITH(fixture, write_dr, UINT64_C(1) << 32), X86_VECTOR_GP);
}

GUEST(watched, 64,
      "movl %ebx, 0xa008\n"
      "movl 0xa000, %ebx\n"
      "movl $7, 0xa006\n" /* overlaps eight bytes from 0xa000 on */
      "nop\n" GUEST_STOP);

static void data_breakpoint_traps_behind_the_write(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, watched);
    cpu->dr[1] = GUEST_DATA;
    cpu->dr[6] |= X86_DR6_BS;                     /* stays until it is cleared */
    cpu->dr[7] = X86_DR7_FIXED | 0x9 << 20 | 0x8; /* writes of eight bytes, global */
    soft_cpu_update_trap(cpu);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 7 + 7 + 11);
    assert_int_equal(cpu->dr[6], X86_DR6_FIXED | X86_DR6_BS | 0x2);
    assert_int_equal(guest_read32(fixture, GUEST_DATA + 6), 7);
}

GUEST(watched_stack, 64, "movw 0xa000, %ss\nint $0x80\n");

static void data_breakpoint_of_mov_ss_waits_for_the_next_instruction(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, watched_stack);
    guest_write64(fixture, GUEST_DATA, GUEST_DS);
    cpu->dr[0] = GUEST_DATA;
    cpu->dr[7] = X86_DR7_FIXED | 0x3 << 16 | 0x2; /* accesses to one byte */
    soft_cpu_update_trap(cpu);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    /* INT has been delivered: the trap comes before its handler's first instruction. */
    assert_int_equal(guest_stack(fixture, 0), GUEST_HANDLERS + 0x80 * 16);
    assert_int_equal(cpu->dr[6], X86_DR6_FIXED | 0x1);
}

GUEST(stepped_hlt, 64, "pushfq\norl $0x100, (%rsp)\npopfq\nhlt\nnop\n" GUEST_STOP);

static void single_step_ends_hlt(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, stepped_hlt);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    assert_int_equal(guest_stack(fixture, 0), GUEST_CODE + 10);
}

/* ---- model-specific registers ---- */

GUEST(write_msr, 64, "wrmsr\n" GUEST_STOP);
GUEST(read_msr, 64, "rdmsr\n" GUEST_STOP);

static unsigned run_wrmsr(struct soft_fixture *fixture, uint32_t number, uint64_t value)
{
    guest_long(fixture);
    GUEST_LOAD(fixture, write_msr);
    fixture->cpu.r[X86_RCX] = number;
    fixture->cpu.r[X86_RAX] = (uint32_t)value;
    fixture->cpu.r[X86_RDX] = value >> 32;
    return guest_run(fixture);
}

static unsigned run_rdmsr(struct soft_fixture *fixture, uint32_t number)
{
    guest_long(fixture);
    GUEST_LOAD(fixture, read_msr);
    fixture->cpu.r[X86_RCX] = number;
    return guest_run(fixture);
}

static void msrs_refuse_what_they_cannot_be(void **state)
{
    struct soft_fixture *fixture = *state;

    assert_int_equal(run_wrmsr(fixture, 0xc0000100, KERNEL_ADDRESS), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.segments[X86_FS].base, KERNEL_ADDRESS);
    assert_int_equal(run_wrmsr(fixture, 0xc0000100, NOT_CANONICAL), X86_VECTOR_GP);
    assert_int_equal(run_wrmsr(fixture, 0xc0000082, NOT_CANONICAL), X86_VECTOR_GP);
    assert_int_equal(run_wrmsr(fixture, 0x277, 0x0007040600070402), X86_VECTOR_GP);
    assert_int_equal(run_wrmsr(fixture, 0x277, 0x0007010600070106), GUEST_STOPPED);
    assert_int_equal(run_wrmsr(fixture, 0xc0000080, 0x500), GUEST_STOPPED);
    assert_int_equal(run_wrmsr(fixture, 0xc0000080, 0x0), X86_VECTOR_GP); /* LME */
    assert_int_equal(run_wrmsr(fixture, 0xc0000080, 0x1000500), X86_VECTOR_GP);
    assert_int_equal(run_wrmsr(fixture, 0xfe, 0), X86_VECTOR_GP);
    assert_int_equal(run_rdmsr(fixture, 0x12345), X86_VECTOR_GP);
    assert_int_equal(run_rdmsr(fixture, 0xfe), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x508);
    assert_int_equal(run_rdmsr(fixture, 0xc0011029),
                     vendor_is_amd() ? GUEST_STOPPED : X86_VECTOR_GP);
}

static void time_stamp_counter_follows_its_writes(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t before = soft_tsc(cpu);
    uint64_t adjust;

    assert_true(soft_tsc(cpu) >= before);
    assert_int_equal(run_wrmsr(fixture, 0x10, UINT64_C(1) << 60), GUEST_STOPPED);
    assert_true(soft_tsc(cpu) >= UINT64_C(1) << 60);
    adjust = cpu->msrs->tsc_adjust;
    assert_true(adjust > UINT64_C(1) << 59);
    assert_int_equal(run_wrmsr(fixture, 0x3b, adjust + (UINT64_C(1) << 61)),
                     GUEST_STOPPED);
    assert_true(soft_tsc(cpu) >= UINT64_C(3) << 60);
}

static uint64_t armed_deadline;
static unsigned times_armed;

static bool read_deadline(void *context, uint32_t index, uint64_t *value)
{
    (void)context;
    *value = armed_deadline;
    return index == 0x6e0;
}

static bool write_deadline(void *context, uint32_t index, uint64_t value)
{
    (void)context;
    if (index != 0x6e0)
        return false;
    assert_int_equal(value, armed_deadline);
    times_armed++;
    return true;
}

static void a_new_time_stamp_counter_arms_its_deadline_anew(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->irq.read_msr = read_deadline;
    fixture->irq.write_msr = write_deadline;
    armed_deadline = 12345;
    times_armed = 0;
    assert_int_equal(run_wrmsr(fixture, 0x10, 7), GUEST_STOPPED);
    assert_int_equal(times_armed, 1);
    assert_int_equal(run_wrmsr(fixture, 0x3b, 7), GUEST_STOPPED);
    assert_int_equal(times_armed, 2);
    armed_deadline = 0;
    assert_int_equal(run_wrmsr(fixture, 0x10, 7), GUEST_STOPPED);
    assert_int_equal(times_armed, 2);
}

static void system_time_page_turns_ticks_into_nanoseconds(void **state)
{
    struct soft_fixture *fixture = *state;
    uint64_t start_tsc = UINT64_MAX;
    uint64_t ns = UINT64_MAX;
    uint32_t scale[2];
    uint64_t second = (uint64_t)clock_tsc_khz() * 1000;

    assert_int_equal(run_wrmsr(fixture, 0x4b564d01, GUEST_DATA | 1), GUEST_STOPPED);
    assert_int_equal(guest_read32(fixture, GUEST_DATA) & 1, 0);
    soft_fixture_read(fixture, GUEST_DATA + 8, &start_tsc, 8);
    soft_fixture_read(fixture, GUEST_DATA + 16, &ns, 8);
    soft_fixture_read(fixture, GUEST_DATA + 24, scale, 8);
    assert_int_equal(start_tsc, 0);
    assert_int_equal(ns, 0);
    assert_int_equal(scale[1] >> 8 & 0xff, 1); /* stable over vCPUs */
    if ((int8_t)scale[1] < 0)
        second >>= -(int8_t)scale[1];
    else
        second <<= (int8_t)scale[1];
    second = (uint64_t)((unsigned __int128)second * scale[0] >> 32);
    assert_in_range(second, 999999990, 1000000010);
}

/* ---- hypercalls, random numbers ---- */

GUEST(various, 64,
      "vmmcall\nmovq %rax, %rbx\nrdrand %rcx\nsetc %dl\nstac\npushfq\npopq "
      "%rsi\nclac\n" GUEST_STOP);

static void unknown_hypercall_says_so_and_stac_sets_ac(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    assert_int_equal(RUN_WITH(fixture, various, 5), GUEST_STOPPED);
    assert_int_equal((int64_t)cpu->r[X86_RBX], -1000);
    assert_int_equal(cpu->r[X86_RDX] & 0xff, 1);
    assert_int_not_equal(cpu->r[X86_RCX], 0);
    assert_true((cpu->r[X86_RSI] & X86_FLAGS_AC) != 0);
    assert_int_equal(cpu->flags_system & X86_FLAGS_AC, 0);
}

/* Sends noted as bits: `id` + 32 for NMIs. */
static uint64_t sent;

static bool note_send(void *context, uint32_t apic_id, uint32_t command)
{
    (void)context;
    sent |= UINT64_C(1) << (apic_id + ((command & 0x700) == 0x400 ? 32 : 0));
    return apic_id != 5; /* whose local APIC is off */
}

GUEST(call_host, 64, "vmcall\n" GUEST_STOP);

/* KVM's hypercall 10: `set` and the one behind it count from `first` on. */
static int64_t send_to(struct soft_fixture *fixture, uint64_t set, uint64_t next_set,
                       uint64_t first, uint64_t command)
{
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    GUEST_LOAD(fixture, call_host);
    cpu->r[X86_RAX] = 10;
    cpu->r[X86_RBX] = set;
    cpu->r[X86_RCX] = next_set;
    cpu->r[X86_RDX] = first;
    cpu->r[X86_RSI] = command;
    sent = 0;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    return (int64_t)cpu->r[X86_RAX];
}

static void one_hypercall_sends_to_many(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_vm *vm = &fixture->vm;
    struct soft_cpu *cpus[8] = {&fixture->cpu};
    struct soft_cpu **const alone = vm->cpus;

    fixture->irq.send = note_send;
    vm->cpus = cpus;
    vm->cpu_count = 8;
    assert_int_equal(send_to(fixture, 0x7, 0, 2, 0x40), 3);
    assert_int_equal(sent, 0x1c);
    assert_int_equal(send_to(fixture, 0x30, 0, 0, 0x400), 1);
    assert_true(sent == UINT64_C(0x30) << 32);
    assert_int_equal(send_to(fixture, UINT64_MAX, UINT64_MAX, 0, 0x40), 7);
    assert_int_equal(sent, 0xff); /* none beyond the last */
    assert_int_equal(send_to(fixture, 1, 0, UINT32_MAX, 0x40), 0);
    assert_int_equal(send_to(fixture, 1, 1, UINT64_MAX - 63, 0x40), 0);
    assert_int_equal(send_to(fixture, 1, 0, 0, 0x840), -22); /* logical */
    assert_int_equal(send_to(fixture, 1, 0, 0, 0xc0040), -22);
    assert_int_equal(sent, 0);
    vm->cpus = alone;
    vm->cpu_count = 1;
}

static void hypercalls_are_for_cpl_0(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, call_host);
    guest_to_user(fixture);
    fixture->cpu.r[X86_RAX] = 10;
    (void)guest_run(fixture);
    assert_int_equal((int64_t)fixture->cpu.r[X86_RAX], -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(event_from_cpl_3_takes_rsp0_and_a_null_ss),
        SOFT_TEST(event_at_the_same_level_aligns_the_stack),
        SOFT_TEST(gate_with_stack_entry_switches_always),
        SOFT_TEST(page_fault_has_address_and_code),
        SOFT_TEST(page_fault_on_the_way_is_a_double_fault),
        SOFT_TEST(non_canonical_target_is_a_protection_fault),
        SOFT_TEST(iret_pops_the_stack_at_the_same_level_too),
        SOFT_TEST(iret_outside_makes_gs_null_but_keeps_its_base),
        SOFT_TEST(iret_to_a_16_bit_stack_loads_only_sp),
        SOFT_TEST(iret_faults_before_it_leaves),
        SOFT_TEST(syscall_and_sysret_go_there_and_back),
        SOFT_TEST(syscall_masks_flags_and_loads_flat_segments),
        SOFT_TEST(syscall_traps_by_the_flags_it_has_masked),
        SOFT_TEST(syscall_without_efer_bit_is_undefined),
        SOFT_TEST(bases_are_swapped_read_and_written),
        SOFT_TEST(null_selector_clears_the_base),
        SOFT_TEST(control_registers_refuse_what_they_cannot_be),
        SOFT_TEST(control_registers_are_for_cpl_0),
        SOFT_TEST(guarded_debug_registers_trap),
        SOFT_TEST(data_breakpoint_traps_behind_the_write),
        SOFT_TEST(data_breakpoint_of_mov_ss_waits_for_the_next_instruction),
        SOFT_TEST(single_step_ends_hlt),
        SOFT_TEST(msrs_refuse_what_they_cannot_be),
        SOFT_TEST(time_stamp_counter_follows_its_writes),
        SOFT_TEST(a_new_time_stamp_counter_arms_its_deadline_anew),
        SOFT_TEST(system_time_page_turns_ticks_into_nanoseconds),
        SOFT_TEST(unknown_hypercall_says_so_and_stac_sets_ac),
        SOFT_TEST(one_hypercall_sends_to_many),
        SOFT_TEST(hypercalls_are_for_cpl_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
