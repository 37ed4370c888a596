/* SPDX-License-Identifier: Apache-2.0 */
/* The lockstep checker finds what is translated wrongly, and nothing else. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "accel/soft/translator/check_shadow_private.h"
#include "accel/soft/translator/translator_private.h"

#define CODE_BYTES (1u << 20)

static int set_up(void **state)
{
    int result = soft_fixture_setup(state);
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    struct error err = ERROR_NONE;

    if (cpu->translator == NULL)
        soft_fixture_translate(fixture, CODE_BYTES);
    assert_int_equal(lockstep_create(cpu, 1, &cpu->lockstep, &err), 0);
    guest_long(fixture);
    cpu->cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
    soft_cpu_update_mode(cpu);
    return result;
}

static int tear_down(void **state)
{
    struct soft_fixture *fixture = *state;

    lockstep_destroy(fixture->cpu.lockstep);
    return soft_fixture_teardown(state);
}

#define CHECK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static uint64_t checked(const struct soft_fixture *fixture)
{
    return fixture->cpu.lockstep->compared;
}

/* Makes the only place of translated code that has `from` have `to`. */
static void spoil(struct soft_fixture *fixture, uint32_t from, uint32_t to)
{
    const struct code_memory *memory = &fixture->cpu.translator->memory;
    uint8_t *found = memmem(memory->writable, memory->size_bytes, &from, sizeof(from));

    assert_non_null(found);
    memcpy(found, &to, sizeof(to));
    assert_null(memmem(memory->writable, memory->size_bytes, &from, sizeof(from)));
}

/* The guest runs from its start once more, and this is what is said about it. */
static void expect_failure(struct soft_fixture *fixture, const char *text)
{
    struct vcpu_exit exit = {.kind = VCPU_EXIT_KICKED};

    fixture->cpu.rip = GUEST_CODE;
    soft_cpu_run(&fixture->cpu, &exit);
    assert_int_equal(exit.kind, VCPU_EXIT_FAILED);
    assert_string_equal(exit.failure.text, text);
}

/* ---- what is right ---- */

GUEST(much, 64,
      "mov $0xa000, %ebx\n"
      "mov $100, %ecx\n"
      "fninit\n"
      "1: mov %rcx, (%rbx, %rcx, 8)\n"
      "lock xadd %rcx, 8(%rbx)\n"
      "push %rcx\n"
      "pop %rcx\n"
      "movd %ecx, %xmm3\n"
      "paddd %xmm3, %xmm2\n"
      "movups %xmm2, 0x1ff8(%rbx)\n" /* crosses into another page */
      "fld1\n"
      "fstpl 16(%rbx)\n"
      "call 2f\n"
      "xchg %rdx, 8(%rbx)\n"
      "cmpxchg16b 32(%rbx)\n"
      "mov $100, %ecx\n"
      "dec %r11d\n"
      "jnz 1b\n" GUEST_STOP "2: lea 3f(%rip), %rax\n"
      "adc $7, %r15\n"
      "jmp *%rax\n"
      "3: ret\n");

static void what_is_translated_rightly_passes(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.r[X86_R11] = 20;
    GUEST_LOAD(fixture, much);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_true(checked(fixture) >= 60);
}

GUEST(faulting, 64,
      "mov $0x2000000, %rsp\n"
      "add $5, %rax\n"
      "push %rax\n");

static void faults_are_compared(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, faulting);
    guest_set_gate(fixture, X86_VECTOR_PF, GUEST_CS64, 0x8e, 1);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(checked(fixture), 1);
}

GUEST(device, 64,
      "mov $0xc00000, %ebx\n" /* made a device's below */
      "mov $0x1234, %eax\n"
      "mov %eax, (%rbx)\n" GUEST_STOP);

static void a_block_that_accesses_a_device_does_so_once(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, GUEST_PAGES + 0x2000 + 6 * 8, UINT64_C(0x40000083));
    GUEST_LOAD(fixture, device);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->mmio_value, 0x1234);
    assert_int_equal(checked(fixture), 0);
}

/* The walk sets accessed and dirty bits in the very page that is written. */
GUEST(page_tables, 64,
      "mov $0x22000, %ebx\n" /* the page directory */
      "andq $~0x60, 24(%rbx)\n"
      "invlpg 0x600000\n"
      "movq $1, 0x600000\n"
      "mov 24(%rbx), %rax\n" GUEST_STOP);

static void accessed_and_dirty_bits_are_the_same_on_both(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, page_tables);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX] & 0x60, 0x60);
    assert_int_equal(checked(fixture), 2);
}

/* ---- what is wrong ---- */

GUEST(constant, 64, "mov $0x1357ace8, %eax\n" GUEST_STOP);

static void a_wrong_register_is_named(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, constant);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    spoil(fixture, 0x1357ace8, 0x1357ace9);
    expect_failure(fixture,
                   "soft: translated code differs from the interpreter: behind the block "
                   "at 0x10000, 5 bytes, rax is 0x1357ace9, interpreted 0x1357ace8; the "
                   "log has its code");
}

GUEST(store, 64, "movl $0x1357ace8, 0xa010\n" GUEST_STOP);

static void a_wrong_store_is_named(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, store);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    spoil(fixture, 0x1357ace8, 0x1357ace9);
    expect_failure(fixture,
                   "soft: translated code differs from the interpreter: behind the block "
                   "at 0x10000, 11 bytes, memory at guest-physical 0xa010 is 0x1357ace9, "
                   "interpreted 0x1357ace8; the log has its code");
}

GUEST(compare, 64,
      "mov $0x1357ace8, %eax\n"
      "cmp $0x1357ace7, %eax\n" GUEST_STOP);

static void wrong_flags_are_named(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, compare);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    spoil(fixture, 0x1357ace7, 0x1357ace8);
    expect_failure(fixture,
                   "soft: translated code differs from the interpreter: behind the block "
                   "at 0x10000, 10 bytes, rflags is 0x46, interpreted 0x2; the log has "
                   "its code");
}

GUEST(indirect, 64,
      "mov $0x10000 + 1f - indirect, %eax\n"
      "add $0x1357ace8, %rax\n"
      "sub $0x1357ace8, %rax\n"
      "jmp *%rax\n"
      "1: " GUEST_STOP);

static void a_wrong_target_is_named(void **state)
{
    struct soft_fixture *fixture = *state;
    const struct code_memory *memory = &fixture->cpu.translator->memory;
    const uint32_t mask = JUMP_CACHE_MASK;
    uint8_t *found;

    GUEST_LOAD(fixture, indirect);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    found = memmem(memory->writable, memory->size_bytes, &mask, sizeof(mask));
    assert_non_null(found);
    found[0] ^= 0xff; /* it looks elsewhere */
    expect_failure(fixture,
                   "soft: translated code differs from the interpreter: behind the block "
                   "at 0x10000, 19 bytes, whether the indirect branch finds its target "
                   "is 0, interpreted 0x1; the log has its code");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK_TEST(what_is_translated_rightly_passes),
        CHECK_TEST(faults_are_compared),
        CHECK_TEST(a_block_that_accesses_a_device_does_so_once),
        CHECK_TEST(accessed_and_dirty_bits_are_the_same_on_both),
        CHECK_TEST(a_wrong_register_is_named),
        CHECK_TEST(a_wrong_store_is_named),
        CHECK_TEST(wrong_flags_are_named),
        CHECK_TEST(a_wrong_target_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
