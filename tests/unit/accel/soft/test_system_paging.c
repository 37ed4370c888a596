/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions about paging: process-context identifiers, protection keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "system_guest.h"

#define BIT63 (UINT64_C(1) << 63)

GUEST(write_cr0, 64, "movq %rax, %cr0\n" GUEST_STOP);
GUEST(write_cr3, 64, "movq %rax, %cr3\nmovq %cr3, %rbx\n" GUEST_STOP);
GUEST(write_cr4, 64, "movq %rax, %cr4\n" GUEST_STOP);
GUEST(write_cr4_32, 32, "movl %eax, %cr4\n" GUEST_STOP);
GUEST(invpcid, 64, "invpcid 0xa000, %rax\n" GUEST_STOP);
GUEST(rdpkru, 64, "rdpkru\n" GUEST_STOP);
GUEST(wrpkru, 64, "wrpkru\n" GUEST_STOP);

/* A guest in long mode whose RAX is `value` and whose CR4 has `bits`, too. */
#define RUN_WITH(fixture, guest, bits, value)                                            \
    (guest_long(fixture), GUEST_LOAD(fixture, guest), (fixture)->cpu.cr4 |= (bits),      \
     (fixture)->cpu.r[X86_RAX] = (value), guest_run(fixture))

/* ---- process-context identifiers ---- */

static void pcids_need_long_mode_and_context_0(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    assert_int_equal(RUN_WITH(fixture, write_cr4, 0, X86_CR4_PAE | X86_CR4_PCIDE),
                     GUEST_STOPPED);
    guest_long(fixture);
    GUEST_LOAD(fixture, write_cr4);
    cpu->cr3 |= 1;
    cpu->r[X86_RAX] = X86_CR4_PAE | X86_CR4_PCIDE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    guest_protected(fixture);
    GUEST_LOAD(fixture, write_cr4_32);
    cpu->r[X86_RAX] = X86_CR4_PCIDE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
}

static void paging_stays_on_as_long_as_there_are_pcids(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t cr0 = X86_CR0_PE | X86_CR0_ET;

    assert_int_equal(RUN_WITH(fixture, write_cr0, X86_CR4_PCIDE, cr0), X86_VECTOR_GP);
}

static void cr3_bit_63_is_taken_with_pcids_and_not_kept(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    assert_int_equal(RUN_WITH(fixture, write_cr3, 0, BIT63 | GUEST_PAGES), X86_VECTOR_GP);
    assert_int_equal(
        RUN_WITH(fixture, write_cr3, X86_CR4_PCIDE, BIT63 | GUEST_PAGES | 0x123),
        GUEST_STOPPED);
    assert_true(cpu->r[X86_RBX] == (GUEST_PAGES | 0x123));
}

/* INVPCID with this descriptor: GUEST_STOPPED or the fault. */
static unsigned run_invpcid(struct soft_fixture *fixture, uint64_t bits, uint64_t type,
                            uint64_t context, uint64_t linear)
{
    guest_write64(fixture, GUEST_DATA, context);
    guest_write64(fixture, GUEST_DATA + 8, linear);
    return RUN_WITH(fixture, invpcid, bits, type);
}

static void invpcid_refuses_what_does_not_exist(void **state)
{
    struct soft_fixture *fixture = *state;

    for (uint64_t type = 0; type < 4; type++)
        assert_int_equal(run_invpcid(fixture, 0, type, 0, 0), GUEST_STOPPED);
    assert_int_equal(run_invpcid(fixture, 0, 4, 0, 0), X86_VECTOR_GP);
    assert_int_equal(run_invpcid(fixture, 0, 0, 1, 0), X86_VECTOR_GP);
    assert_int_equal(run_invpcid(fixture, 0, 1, 1, 0), X86_VECTOR_GP);
    assert_int_equal(run_invpcid(fixture, 0, 2, 1, 0), GUEST_STOPPED);
    assert_int_equal(run_invpcid(fixture, X86_CR4_PCIDE, 1, 0xfff, 0), GUEST_STOPPED);
    assert_int_equal(run_invpcid(fixture, X86_CR4_PCIDE, 2, 0x1000, 0), X86_VECTOR_GP);
    assert_int_equal(run_invpcid(fixture, 0, 0, 0, UINT64_C(1) << 47), X86_VECTOR_GP);
    assert_int_equal(run_invpcid(fixture, 0, 1, 0, UINT64_C(1) << 47), GUEST_STOPPED);
}

static void invpcid_is_for_cpl_0(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_long(fixture);
    GUEST_LOAD(fixture, invpcid);
    guest_to_user(fixture);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
}

GUEST(remap, 64,
      "movq 0x200000, %rbx\n" /* now in the TLB */
      "movq $0x400083, 0x22008\n"
      "invpcid 0xa000, %rax\n"
      "movq 0x200000, %rcx\n" GUEST_STOP);

/* What each type drops: an address, all of a context, all, all but global. */
static void invpcid_drops_translations(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    for (uint64_t type = 0; type < 4; type++) {
        guest_write64(fixture, GUEST_DATA, 0);
        guest_write64(fixture, GUEST_DATA + 8, 0x200000);
        guest_long(fixture);
        guest_write64(fixture, 0x200000, 1);
        guest_write64(fixture, 0x400000, 2);
        GUEST_LOAD(fixture, remap);
        cpu->r[X86_RAX] = type;
        assert_int_equal(guest_run(fixture), GUEST_STOPPED);
        assert_int_equal(cpu->r[X86_RBX], 1);
        assert_int_equal(cpu->r[X86_RCX], 2);
    }
}

/* ---- protection keys ---- */

static void pkru_is_undefined_unless_enabled(void **state)
{
    struct soft_fixture *fixture = *state;

    assert_int_equal(RUN_WITH(fixture, rdpkru, 0, 0), X86_VECTOR_UD);
    assert_int_equal(RUN_WITH(fixture, wrpkru, 0, 0), X86_VECTOR_UD);
}

static void pkru_is_read_and_written_by_anybody(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    cpu->cr4 |= X86_CR4_PKE;
    GUEST_LOAD(fixture, wrpkru);
    guest_to_user(fixture);
    cpu->r[X86_RAX] = 0xfffffff0;
    cpu->r[X86_RCX] = 0;
    cpu->r[X86_RDX] = 0;
    (void)guest_run(fixture); /* the port is not for users, and ends it by #GP */
    assert_int_equal(cpu->key_rights[true], 0xfffffff0);
    cpu->r[X86_RCX] = 0;
    cpu->r[X86_RDX] = 7;
    assert_int_equal(RUN_WITH(fixture, rdpkru, X86_CR4_PKE, UINT64_MAX), GUEST_STOPPED);
    assert_true(cpu->r[X86_RAX] == 0xfffffff0);
    assert_int_equal(cpu->r[X86_RDX], 0);
}

static void pkru_wants_its_other_registers_zero(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_long(fixture);
    cpu->r[X86_RCX] = 1;
    cpu->r[X86_RDX] = 0;
    assert_int_equal(RUN_WITH(fixture, rdpkru, X86_CR4_PKE, 0), X86_VECTOR_GP);
    cpu->r[X86_RCX] = 1;
    assert_int_equal(RUN_WITH(fixture, wrpkru, X86_CR4_PKE, 0), X86_VECTOR_GP);
    cpu->r[X86_RCX] = 0;
    cpu->r[X86_RDX] = 1;
    assert_int_equal(RUN_WITH(fixture, wrpkru, X86_CR4_PKE, 0), X86_VECTOR_GP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(pcids_need_long_mode_and_context_0),
        SOFT_TEST(paging_stays_on_as_long_as_there_are_pcids),
        SOFT_TEST(cr3_bit_63_is_taken_with_pcids_and_not_kept),
        SOFT_TEST(invpcid_refuses_what_does_not_exist),
        SOFT_TEST(invpcid_is_for_cpl_0),
        SOFT_TEST(invpcid_drops_translations),
        SOFT_TEST(pkru_is_undefined_unless_enabled),
        SOFT_TEST(pkru_is_read_and_written_by_anybody),
        SOFT_TEST(pkru_wants_its_other_registers_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
