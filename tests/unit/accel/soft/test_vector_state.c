/* SPDX-License-Identifier: Apache-2.0 */
/* x87, MMX and SSE in the system around them: units switched off, state in memory,
 * faults, and what the host's own code finds afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/instruction_private.h"
#include "integer_guest.h"

/* Behind the only page of data that is mapped. */
#define UNMAPPED (GUEST_DATA + X86_LARGE_PAGE_BYTES)

static struct soft_fixture *enter(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->cr0 |= X86_CR0_NE | X86_CR0_MP;
    cpu->cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
    soft_cpu_update_mode(cpu);
    cpu->fx.fcw = 0x37f;
    cpu->fx.ftw = 0;
    cpu->r[X86_RBX] = GUEST_DATA;
    return fixture;
}

static void set_controls(struct soft_fixture *fixture, uint64_t cr0_on, uint64_t cr4_off)
{
    fixture->cpu.cr0 |= cr0_on;
    fixture->cpu.cr4 &= ~cr4_off;
    soft_cpu_update_mode(&fixture->cpu);
}

#define ADDPS 0x0f, 0x58, 0xc1       /* addps %xmm1, %xmm0 */
#define PADDB_MMX 0x0f, 0xfc, 0xc1   /* paddb %mm1, %mm0 */
#define FLD1 0xd9, 0xe8              /* fld1 */
#define FWAIT 0x9b                   /* fwait */
#define MOVNTI 0x0f, 0xc3, 0x03      /* movnti %eax, (%rbx) */
#define FXSAVE 0x0f, 0xae, 0x03      /* fxsave (%rbx) */
#define FXRSTOR 0x0f, 0xae, 0x0b     /* fxrstor (%rbx) */
#define LDMXCSR 0x0f, 0xae, 0x13     /* ldmxcsr (%rbx) */
#define DIVPS 0x0f, 0x5e, 0xc1       /* divps %xmm1, %xmm0 */
#define MOVAPS_LOAD 0x0f, 0x28, 0x03 /* movaps (%rbx), %xmm0 */
#define FSTP_DOUBLE 0xdd, 0x1b       /* fstpl (%rbx) */

static void task_switched_raises_nm(void **state)
{
    struct soft_fixture *fixture = enter(state);

    set_controls(fixture, X86_CR0_TS, 0);
    assert_int_equal(GUEST_RUN(fixture, ADDPS), X86_VECTOR_NM);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE);
    assert_int_equal(GUEST_RUN(fixture, PADDB_MMX), X86_VECTOR_NM);
    assert_int_equal(GUEST_RUN(fixture, FLD1), X86_VECTOR_NM);
    assert_int_equal(GUEST_RUN(fixture, FWAIT), X86_VECTOR_NM);
    assert_int_equal(GUEST_RUN(fixture, FXSAVE), X86_VECTOR_NM);
    assert_int_equal(GUEST_RUN(fixture, LDMXCSR), X86_VECTOR_NM);
}

static void emulation_makes_all_but_x87_undefined(void **state)
{
    struct soft_fixture *fixture = enter(state);

    set_controls(fixture, X86_CR0_EM, 0);
    assert_int_equal(GUEST_RUN(fixture, ADDPS), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE);
    assert_int_equal(GUEST_RUN(fixture, PADDB_MMX), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE);
    assert_int_equal(GUEST_RUN(fixture, FLD1), X86_VECTOR_NM);
    assert_int_equal(GUEST_RUN(fixture, FXSAVE), X86_VECTOR_NM);
}

static void sse_needs_osfxsr_but_mmx_and_movnti_do_not(void **state)
{
    struct soft_fixture *fixture = enter(state);

    set_controls(fixture, 0, X86_CR4_OSFXSR);
    assert_int_equal(GUEST_RUN(fixture, ADDPS), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE);
    assert_int_equal(GUEST_RUN(fixture, PADDB_MMX), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE + 3);
    assert_int_equal(GUEST_RUN(fixture, FXSAVE), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE + 3);
    set_controls(fixture, X86_CR0_TS, 0);
    assert_int_equal(GUEST_RUN(fixture, MOVNTI), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE + 3);
}

static void fwait_looks_at_ts_only_when_monitoring(void **state)
{
    struct soft_fixture *fixture = enter(state);

    fixture->cpu.cr0 &= ~X86_CR0_MP;
    set_controls(fixture, X86_CR0_TS, 0);
    assert_int_equal(GUEST_RUN(fixture, FWAIT), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE + 1);
}

static void vex_forms_are_undefined(void **state)
{
    struct soft_fixture *fixture = enter(state);

    assert_int_equal(GUEST_RUN(fixture, 0xc5, 0xf0, 0x58, 0xc1), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE);
}

static void reserved_mxcsr_bits_raise_gp(void **state)
{
    struct soft_fixture *fixture = enter(state);
    uint32_t mxcsr = 0x11f80;

    soft_fixture_write(fixture, GUEST_DATA_GPA, &mxcsr, sizeof(mxcsr));
    assert_int_equal(GUEST_RUN(fixture, LDMXCSR), X86_VECTOR_GP);
    assert_int_equal(fixture->cpu.fx.mxcsr, 0x1f80);
    mxcsr = 0xffff;
    soft_fixture_write(fixture, GUEST_DATA_GPA, &mxcsr, sizeof(mxcsr));
    assert_int_equal(GUEST_RUN(fixture, LDMXCSR), X86_VECTOR_UD);
    assert_int_equal(fixture->cpu.fx.mxcsr, 0xffff);
}

static void unmasked_sse_exception_without_osxmmexcpt_is_undefined(void **state)
{
    struct soft_fixture *fixture = enter(state);
    struct soft_cpu *cpu = &fixture->cpu;

    cpu->fx.mxcsr = 0x1f80 & ~0x80u; /* IM: 0/0 is invalid */
    memset(cpu->fx.xmm, 0, sizeof(cpu->fx.xmm));
    assert_int_equal(GUEST_RUN(fixture, DIVPS), X86_VECTOR_XM);
    assert_int_equal(cpu->fx.mxcsr, 0x1f01);
    set_controls(fixture, 0, X86_CR4_OSXMMEXCPT);
    assert_int_equal(GUEST_RUN(fixture, DIVPS), X86_VECTOR_UD);
    assert_int_equal(cpu->rip, GUEST_CODE);
    assert_int_equal(cpu->fx.xmm[0][3], 0); /* not the masked result, which is a NaN */
}

static void fxrstor_takes_what_fxsave_gave(void **state)
{
    struct soft_fixture *fixture = enter(state);
    struct soft_cpu *cpu = &fixture->cpu;
    struct fx_state before;

    cpu->fx.fcw = 0x27f;
    cpu->fx.fsw = 0x3800;
    cpu->fx.ftw = 0x80;
    for (unsigned i = 0; i < sizeof(cpu->fx.xmm); i++)
        cpu->fx.xmm[i / 16][i % 16] = (uint8_t)i;
    memset(cpu->fx.st[0], 0x5a, 10);
    before = cpu->fx;
    assert_int_equal(GUEST_RUN(fixture, FXSAVE), X86_VECTOR_UD);
    memset(&cpu->fx, 0, sizeof(cpu->fx));
    cpu->fx.fcw = 0x37f;
    cpu->fx.mxcsr = 0x1f80;
    assert_int_equal(GUEST_RUN(fixture, FXRSTOR), X86_VECTOR_UD);
    assert_int_equal(cpu->rip, GUEST_CODE + 3);
    assert_memory_equal(&cpu->fx, &before, sizeof(before));
}

static void fxrstor_refuses_reserved_mxcsr_bits(void **state)
{
    struct soft_fixture *fixture = enter(state);
    struct soft_cpu *cpu = &fixture->cpu;
    struct fx_state area = {.fcw = 0x27f, .mxcsr = 0x80001f80};

    soft_fixture_write(fixture, GUEST_DATA_GPA, &area, sizeof(area));
    assert_int_equal(GUEST_RUN(fixture, FXRSTOR), X86_VECTOR_GP);
    assert_int_equal(cpu->fx.fcw, 0x37f);
    assert_int_equal(cpu->fx.mxcsr, 0x1f80);
    cpu->r[X86_RBX] = GUEST_DATA + 8;
    assert_int_equal(GUEST_RUN(fixture, FXSAVE), X86_VECTOR_GP); /* alignment */
}

static void fxrstor_of_a_pending_exception_raises_mf_at_the_next_instruction(void **state)
{
    struct soft_fixture *fixture = enter(state);
    struct fx_state area = {.fcw = 0x37e, .fsw = 0x1, .mxcsr = 0x1f80};

    soft_fixture_write(fixture, GUEST_DATA_GPA, &area, sizeof(area));
    assert_int_equal(GUEST_RUN(fixture, FXRSTOR, FLD1), X86_VECTOR_MF);
    assert_int_equal(fixture->cpu.rip, GUEST_CODE + 3);
    assert_int_equal(fixture->cpu.fx.fsw, 0x8081);
    assert_int_equal(GUEST_RUN(fixture, FWAIT), X86_VECTOR_MF);
    assert_int_equal(GUEST_RUN(fixture, PADDB_MMX), X86_VECTOR_MF);
}

static void fxsave_in_32_bit_code_leaves_the_upper_registers_area(void **state)
{
    struct soft_fixture *fixture = enter(state);
    uint8_t area[512];

    memset(area, 0xcc, sizeof(area));
    soft_fixture_write(fixture, 0x200000, area, sizeof(area));
    guest_enter_code32(fixture);
    fixture->cpu.efer = 0;
    fixture->cpu.cr4 = X86_CR4_OSFXSR;
    soft_cpu_update_mode(&fixture->cpu);
    memset(fixture->cpu.fx.xmm, 0x11, sizeof(fixture->cpu.fx.xmm));
    fixture->cpu.r[X86_RBX] = 0x200000;
    assert_int_equal(GUEST_RUN(fixture, FXSAVE), X86_VECTOR_UD);
    soft_fixture_read(fixture, 0x200000, area, sizeof(area));
    assert_int_equal(area[287], 0x11);
    assert_int_equal(area[288], 0xcc);
    assert_int_equal(area[28], 0xff); /* MXCSR_MASK */
    assert_int_equal(area[30], 0);
}

static void faulting_accesses_change_nothing(void **state)
{
    struct soft_fixture *fixture = enter(state);
    struct soft_cpu *cpu = &fixture->cpu;
    struct fx_state before;

    assert_int_equal(GUEST_RUN(fixture, FLD1), X86_VECTOR_UD);
    before = cpu->fx;
    cpu->r[X86_RBX] = UNMAPPED - 4;
    assert_int_equal(GUEST_RUN(fixture, FSTP_DOUBLE), X86_VECTOR_PF);
    assert_int_equal(cpu->fault.cr2, UNMAPPED);
    assert_memory_equal(&cpu->fx, &before, sizeof(before));
    cpu->r[X86_RBX] = UNMAPPED;
    assert_int_equal(GUEST_RUN(fixture, MOVAPS_LOAD), X86_VECTOR_PF);
    assert_int_equal(GUEST_RUN(fixture, FXRSTOR), X86_VECTOR_PF);
    assert_int_equal(GUEST_RUN(fixture, 0x0f, 0xfc, 0x03), X86_VECTOR_PF); /* MMX */
    assert_memory_equal(&cpu->fx, &before, sizeof(before));
}

static void the_host_keeps_its_own_rounding(void **state)
{
    struct soft_fixture *fixture = enter(state);
    uint32_t mxcsr;
    uint16_t control;

    fixture->cpu.fx.mxcsr = 0xff80; /* toward zero, flushing */
    fixture->cpu.fx.fcw = 0xc7f;
    assert_int_equal(GUEST_RUN(fixture, DIVPS, FLD1), X86_VECTOR_UD);
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(control));
    assert_int_equal(mxcsr & ~0x3fu, 0x1f80);
    assert_int_equal(control, 0x37f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(task_switched_raises_nm),
        SOFT_TEST(emulation_makes_all_but_x87_undefined),
        SOFT_TEST(sse_needs_osfxsr_but_mmx_and_movnti_do_not),
        SOFT_TEST(fwait_looks_at_ts_only_when_monitoring),
        SOFT_TEST(vex_forms_are_undefined),
        SOFT_TEST(reserved_mxcsr_bits_raise_gp),
        SOFT_TEST(unmasked_sse_exception_without_osxmmexcpt_is_undefined),
        SOFT_TEST(fxrstor_takes_what_fxsave_gave),
        SOFT_TEST(fxrstor_refuses_reserved_mxcsr_bits),
        SOFT_TEST(fxrstor_of_a_pending_exception_raises_mf_at_the_next_instruction),
        SOFT_TEST(fxsave_in_32_bit_code_leaves_the_upper_registers_area),
        SOFT_TEST(faulting_accesses_change_nothing),
        SOFT_TEST(the_host_keeps_its_own_rounding),
    };

    return cmocka_run_group_tests_name("soft vector state", tests, NULL, NULL);
}
