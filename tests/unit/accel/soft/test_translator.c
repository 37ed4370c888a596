/* SPDX-License-Identifier: Apache-2.0 */
/* Translated code: what it does by itself, and that it is exact where it asks C. */
#include "system_guest.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/time.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/shared_private.h"
#include "accel/soft/translator/translator_private.h"

#define CODE_BYTES (1u << 20)
#define TINY_CODE_BYTES (64u << 10)

static int set_up(void **state)
{
    int result = soft_fixture_setup(state);

    soft_fixture_translate(*state, CODE_BYTES);
    guest_long(*state);
    return result;
}

#define TRANSLATOR_TEST(name)                                                            \
    cmocka_unit_test_setup_teardown(name, set_up, soft_fixture_teardown)

static const struct translated_counters *counters(const struct soft_fixture *fixture)
{
    return &fixture->cpu.translated.counters;
}

/* ---- what needs no C ---- */

GUEST(sum, 64,
      "xor %eax, %eax\n"
      "mov $1000, %ecx\n"
      "1: add %rcx, %rax\n"
      "push %rax\n"
      "pop %rbx\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP);

static void a_loop_asks_c_only_to_start(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, sum);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RBX], 500500);
    assert_int_equal(counters(fixture)->steps, 1); /* OUT */
    assert_true(counters(fixture)->fills <= 2);
    assert_true(counters(fixture)->lookups <= 4);
}

static void what_was_done_is_told(void **state)
{
    struct soft_fixture *fixture = *state;
    struct accel_translations translations = {.blocks = 0};

    GUEST_LOAD(fixture, sum);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    translator_read_counters(&fixture->vm, &translations);
    assert_in_range(translations.blocks, 1, 4);
    assert_in_range(translations.instructions, 2, 64);
    assert_in_range(translations.code_bytes, translations.instructions, 4096);
    assert_int_equal(translations.interpreted, 1);
}

GUEST(homeless, 64,
      "mov $1, %r10d\n"
      "mov $2, %r11d\n"
      "mov $0x100000003, %r15\n"
      "lea (%r10, %r11, 4), %rax\n" /* 9 */
      "add %r15, %r10\n"            /* 0x100000004 */
      "xor %r11d, %r15d\n"          /* 1: the upper half goes */
      "mov %r10, -8(%rsp)\n"
      "mov -8(%rsp), %r11\n"
      "xchg %r11, %r15\n"
      "push %r15\n"
      "pop %rcx\n"
      "cmp %r11, %r10\n"
      "seta %r15b\n"
      "bswap %r10\n"
      "mov %rsp, %rbx\n"
      "lea 8(%rsp), %rsp\n"
      "push %rsp\n"
      "pop %rdx\n" GUEST_STOP);

static void registers_without_a_host_register(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t *r = fixture->cpu.r;

    GUEST_LOAD(fixture, homeless);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(r[X86_RAX], 9);
    assert_int_equal(r[X86_RCX], 0x100000004);
    assert_int_equal(r[X86_R10], 0x0400000001000000);
    assert_int_equal(r[X86_R11], 1);
    assert_int_equal(r[X86_R15], 0x100000001);
    assert_int_equal(r[X86_RBX], GUEST_STACK);
    assert_int_equal(r[X86_RDX], GUEST_STACK + 8);
    assert_int_equal(counters(fixture)->steps, 1);
}

/* Blocks of nothing but the interpreter's instructions: a serializing one ends each. They
 * have more sites than two bytes can tell, and nothing out of line; what follows has. */
#define STEPS_CODE 0x100000
#define STEPS_BLOCKS 600
#define STEPS_IN_BLOCK 64

static void load_steps(struct soft_fixture *fixture)
{
    static const uint8_t rdtsc[] = {0x0f, 0x31};
    static const uint8_t serialize[] = {0x0f, 0x01, 0xe8};
    static const uint8_t end[] = {0x50, 0x58, 0xe6, GUEST_STOP_PORT}; /* push, pop, out */
    uint64_t at = STEPS_CODE;

    for (unsigned block = 0; block < STEPS_BLOCKS; block++) {
        for (unsigned i = 1; i < STEPS_IN_BLOCK; i++, at += sizeof(rdtsc))
            soft_fixture_write(fixture, at, rdtsc, sizeof(rdtsc));
        soft_fixture_write(fixture, at, serialize, sizeof(serialize));
        at += sizeof(serialize);
    }
    soft_fixture_write(fixture, at, end, sizeof(end));
}

GUEST(to_steps, 64, "mov $0x100000, %eax\njmp *%rax\n");

static void blocks_of_steps_do_not_use_up_what_names_sites(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, to_steps);
    load_steps(fixture);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_true(counters(fixture)->steps >= (uint64_t)STEPS_BLOCKS * STEPS_IN_BLOCK);
}

/* ---- flags ---- */

GUEST(flags_across_memory, 64,
      "mov $0xa000, %ebx\n"
      "mov $5, %eax\n"
      "cmp $7, %eax\n"     /* below */
      "mov (%rbx), %rcx\n" /* a check lies between */
      "setb %dl\n"
      "stc\n"
      "mov %rcx, 8(%rbx)\n"
      "adc $0, %eax\n" /* 6 */
      "cmp %eax, %eax\n"
      "push %rbx\n"
      "call 1f\n" /* flags cross a call */
      "1: sete %dh\n" GUEST_STOP);

static void flags_that_are_read_later_survive_checks_and_calls(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, flags_across_memory);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RDX] & 0xffff, 0x0101);
    assert_int_equal(fixture->cpu.r[X86_RAX], 6);
}

GUEST(carry_kept, 64,
      "stc\n"
      "mov $2, %ecx\n"
      "1: dec %ecx\n" /* leaves CF */
      "jnz 1b\n"
      "pushf\n"
      "pop %rax\n" GUEST_STOP);

static void partly_written_flags_keep_the_rest(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, carry_kept);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX],
                     X86_FLAGS_FIXED | FLAG_CF | FLAG_ZF | FLAG_PF);
}

/* ---- faults ---- */

#define FAR_AWAY 0x2000000 /* beyond the 16 MiB that are mapped */

GUEST(faulting_push, 64,
      "mov $0x11, %r12\n"
      "mov $0x2000000, %rsp\n"
      "push %r12\n");

static void a_fault_leaves_the_instruction_undone(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, faulting_push);
    guest_set_gate(fixture, X86_VECTOR_PF, GUEST_CS64, 0x8e, 1);
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, FAR_AWAY - 8);
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE + 14);
    assert_int_equal(guest_stack(fixture, 4), FAR_AWAY);
    assert_int_equal(fixture->cpu.r[X86_R12], 0x11);
}

GUEST(divisions, 64,
      "mov $-8, %rax\n"
      "cqo\n"
      "mov $3, %ecx\n"
      "idiv %rcx\n" /* -2, rest -2 */
      "mov %rax, %rbx\n"
      "mov $1, %edx\n"
      "mov $0, %eax\n"
      "mov $2, %r10d\n"
      "div %r10\n" /* 2^63 */
      "mov $-1, %rcx\n"
      "cqo\n"
      "idiv %rcx\n"); /* -2^63 / -1 does not fit */

static void a_division_that_does_not_fit_raises_here(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, divisions);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DE);
    assert_true(fixture->cpu.r[X86_RBX] == (uint64_t)-2);
    assert_true(fixture->cpu.r[X86_RAX] == UINT64_C(1) << 63);
}

GUEST(misaligned, 64, "movaps 0x2000001, %xmm0\n");

static void misalignment_comes_before_the_page_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.cr4 |= X86_CR4_OSFXSR;
    soft_cpu_update_mode(&fixture->cpu);
    GUEST_LOAD(fixture, misaligned);
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
}

/* ---- devices, changing code and changing pages ---- */

GUEST(device, 64,
      "mov $0xc00000, %ebx\n" /* made a device's below */
      "mov $0x1234, %eax\n"
      "mov %eax, (%rbx)\n"
      "add (%rbx), %eax\n"
      "setc %cl\n" GUEST_STOP);

static void devices_are_reached_in_the_middle_of_a_block(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, GUEST_PAGES + 0x2000 + 6 * 8, UINT64_C(0x40000083));
    fixture->mmio_answer = 0xfffffff0;
    GUEST_LOAD(fixture, device);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->mmio_gpa, 0x40000000);
    assert_int_equal(fixture->mmio_value, 0x1234);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x1224);
    assert_int_equal(fixture->cpu.r[X86_RCX] & 1, 1);
}

GUEST(self_changing, 64,
      "xor %eax, %eax\n"
      "mov $3, %ecx\n"
      "1: call 2f\n"
      "incb 2f+1(%rip)\n"        /* the immediate, already run */
      "movb $0x42, 3f+1(%rip)\n" /* the instruction after next, in this block */
      "nop\n"
      "3: mov $0, %dl\n"
      "dec %ecx\n"
      "jnz 1b\n" GUEST_STOP "2: add $1, %al\n"
      "ret\n");

static void code_that_changes_is_run_as_it_is(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, self_changing);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 1 + 2 + 3);
    assert_int_equal(fixture->cpu.r[X86_RDX] & 0xff, 0x42);
}

/* Calls a page at 8 MiB, which is another one after the first calls. */
GUEST(remapping, 64,
      "call *%rdi\n"
      "mov %eax, %ebx\n"
      "call remapping + 0x7f0000\n"
      "mov %r8, 0x22020\n" /* entry 4 of the page directory */
      "invlpg 0x800000\n"
      "call remapping + 0x7f0000\n"
      "mov %eax, %ecx\n"
      "call *%rdi\n" GUEST_STOP);

static void pages_of_code_may_be_mapped_anew(void **state)
{
    struct soft_fixture *fixture = *state;
    static const uint8_t first[] = {0xb8, 1, 0, 0, 0, 0xc3}; /* mov eax, 1; ret */
    static const uint8_t second[] = {0xb8, 2, 0, 0, 0, 0xc3};

    soft_fixture_write(fixture, 0x800000, first, sizeof(first));
    soft_fixture_write(fixture, 0xa00000, second, sizeof(second));
    fixture->cpu.r[X86_RDI] = 0x800000;
    fixture->cpu.r[X86_R8] = 0xa00087;
    GUEST_LOAD(fixture, remapping);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RBX], 1);
    assert_int_equal(fixture->cpu.r[X86_RCX], 2);
    assert_int_equal(fixture->cpu.r[X86_RAX], 2);
}

GUEST(stepped, 64,
      "pushf\n"
      "orl $0x100, (%rsp)\n"
      "popf\n"
      "mov $1, %eax\n"
      "mov $2, %eax\n");

static void a_single_step_is_one_instruction(void **state)
{
    struct soft_fixture *fixture = *state;

    GUEST_LOAD(fixture, stepped);
    assert_int_equal(guest_run(fixture), X86_VECTOR_DB);
    assert_int_equal(fixture->cpu.r[X86_RAX], 1);
}

/* ---- full memory ---- */

/* Of a block of two pages one may know it already when there is no room for the other. */
static void a_block_that_found_no_room_is_no_matter_for_writers(void **state)
{
    static const uint8_t crossing[] = {0xb8, 0, 0, 0, 0}; /* mov $0, %eax */
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    const uint64_t at = GUEST_CODE + X86_PAGE_BYTES - 2;
    const struct block *block = NULL;

    soft_fixture_write(fixture, at, crossing, sizeof(crossing));
    for (uint64_t left = 0; block == NULL; left += 8) {
        assert_true(left < X86_PAGE_BYTES);
        translator_release(&fixture->vm, fixture->vm.translator);
        fixture->vm.translator->blocks->used = BLOCK_ARENA_BYTES - left;
        cpu->rip = at;
        block = translation_find(cpu);
        translation_written(&fixture->vm, at, 1);
        translation_written(&fixture->vm, at + 2, 1);
    }
    assert_true(block->stale);
}

#define CHAIN_PAGES 700

static void full_code_memory_is_emptied_and_filled_again(void **state)
{
    struct soft_fixture *fixture = *state;

    soft_fixture_translate(fixture, TINY_CODE_BYTES);
    guest_load_chain(fixture, CHAIN_PAGES);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 3 * CHAIN_PAGES);
    assert_true(fixture->vm.translator->counters.evictions > 2);
    assert_true(fixture->vm.translator->counters.blocks > CHAIN_PAGES);
    assert_true(fixture->vm.translator->counters.nanoseconds > CHAIN_PAGES);
}

/* ---- the TLB ---- */

#define RIVAL_OFFSET (TLB_ENTRIES * X86_PAGE_BYTES) /* 16 MiB, as far as is mapped */

/* ---- what a kernel does when it is entered ---- */

GUEST(swaps, 64,
      "swapgs\n"
      "movq %gs:8, %rax\n"
      "swapgs\n"
      "movq %gs:8, %rbx\n"
      "swapgs\n" GUEST_STOP);

static void swapgs_needs_no_c(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    GUEST_LOAD(fixture, swaps);
    cpu->segments[X86_GS].base = GUEST_DATA + 0x100;
    cpu->kernel_gs_base = GUEST_DATA;
    guest_write64(fixture, GUEST_DATA + 8, 0x1234);
    guest_write64(fixture, GUEST_DATA + 0x108, 0x5678);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RAX], 0x1234);
    assert_int_equal(cpu->r[X86_RBX], 0x5678);
    assert_int_equal(cpu->segments[X86_GS].base, GUEST_DATA);
    assert_int_equal(cpu->kernel_gs_base, GUEST_DATA + 0x100);
    assert_int_equal(counters(fixture)->steps, 1); /* OUT */
}

/* The same page as code of CPL 0 and of CPL 3. */
static void a_program_must_not_swap(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    GUEST_LOAD(fixture, swaps);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    cpu->rip = GUEST_CODE;
    guest_to_user(fixture);
    cpu->segments[X86_GS].base = 1;
    cpu->kernel_gs_base = 2;
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    assert_int_equal(guest_stack(fixture, 0), 0); /* the error code */
    assert_int_equal(guest_stack(fixture, 1), GUEST_CODE);
    assert_int_equal(cpu->segments[X86_GS].base, 1);
    assert_int_equal(cpu->kernel_gs_base, 2);
}

GUEST(rights, 64,
      "xor %ecx, %ecx\nmov $-1, %rdx\nrdpkru\n" GUEST_STOP "inc %ecx\nrdpkru\n");

static void key_rights_are_read_without_c_and_refused_as_ever(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    GUEST_LOAD(fixture, rights);
    cpu->cr4 |= X86_CR4_PKE;
    cpu->key_rights[true] = 0x80000004;
    cpu->r[X86_RAX] = UINT64_MAX;
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(cpu->r[X86_RAX], 0x80000004);
    assert_int_equal(cpu->r[X86_RDX], 0);
    assert_int_equal(counters(fixture)->steps, 1); /* OUT */
    assert_int_equal(guest_run(fixture), X86_VECTOR_GP);
    cpu->cr4 &= ~(uint64_t)X86_CR4_PKE;
    cpu->rip = GUEST_CODE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_UD);
}

GUEST(push_rival, 64,
      "mov $0x1005008, %ebx\n"
      "push (%rbx)\n"
      "pop %rax\n" GUEST_STOP);

static void an_instruction_may_use_two_pages_with_one_entry(void **state)
{
    struct soft_fixture *fixture = *state;

    guest_write64(fixture, GUEST_PAGES + 0x2000 + RIVAL_OFFSET / X86_LARGE_PAGE_BYTES * 8,
                  0x87); /* the first 2 MiB once more */
    guest_write64(fixture, 0x5008, 0x123456789abcdef0);
    GUEST_LOAD(fixture, push_rival);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(fixture->cpu.r[X86_RAX], 0x123456789abcdef0);
}

/* ---- interrupts ---- */

/* As in the handler of an NMI while another one waits. */
GUEST(nmi_waits, 64,
      "mov $1000, %ecx\n"
      "1: dec %ecx\n"
      "jnz 1b\n"
      "mov %rsp, %rax\n"
      "push $0x18\n" /* GUEST_DS */
      "push %rax\n"
      "pushf\n"
      "push $0x10\n" /* GUEST_CS64 */
      "lea 2f(%rip), %rax\n"
      "push %rax\n"
      "iretq\n"
      "2: nop\n" GUEST_STOP);

static void an_nmi_that_waits_holds_up_nothing_and_comes_behind_iret(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    GUEST_LOAD(fixture, nmi_waits);
    cpu->nmi_blocked = true;
    atomic_store(&cpu->nmis_waiting, 2); /* of which one is lost */
    soft_cpu_attend(cpu, ATTENTION_NMI);
    assert_int_equal(guest_run(fixture), X86_VECTOR_NMI);
    assert_int_equal(cpu->r[X86_RCX], 0);
    assert_int_equal(guest_stack(fixture, 0), cpu->r[X86_RAX]);
    assert_int_equal(atomic_load(&cpu->nmis_waiting), 0);
    assert_true(cpu->nmi_blocked);
}

/* ---- vector registers ---- */

GUEST(vectors, 64,
      "mov $0xa000, %ebx\n"
      "movl $3, (%rbx)\n"
      "cvtsi2sdl (%rbx), %xmm1\n"
      "movapd %xmm1, %xmm0\n"
      "mulsd %xmm1, %xmm0\n"
      "out %al, $0x80\n" /* C runs in between */
      "addsd %xmm1, %xmm0\n"
      "cvttsd2si %xmm0, %rax\n" /* 12 */
      "movl $0x1d80, (%rbx)\n"  /* unmasks division by 0 */
      "ldmxcsr (%rbx)\n"
      "xorps %xmm2, %xmm2\n"
      "divsd %xmm2, %xmm0\n");

static void vector_registers_stay_and_exceptions_are_raised(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->cpu.cr4 |= X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
    soft_cpu_update_mode(&fixture->cpu);
    GUEST_LOAD(fixture, vectors);
    assert_int_equal(guest_run(fixture), X86_VECTOR_XM);
    assert_int_equal(fixture->cpu.r[X86_RAX], 12);
    assert_false(fixture->cpu.translated.vectors_resident);
    assert_int_equal(fixture->cpu.fx.mxcsr & 0x4, 0x4);
}

/* ---- signals ---- */

static volatile sig_atomic_t signals_seen;

/* Uses a good part of what is there for it. */
static void on_signal(int number)
{
    volatile uint8_t used[4096];

    (void)number;
    for (size_t i = 0; i < sizeof(used); i++)
        used[i] = 0xff;
    signals_seen += used[sizeof(used) - 1] != 0;
}

/* Runs until R15 says that there were enough. */
GUEST(counts, 64,
      "1: add %rcx, %rax\n"
      "push %rax\n"
      "cmp %rax, %rbx\n"
      "push %r15\n"
      "adc %r14, %rdx\n"
      "pop %r15\n"
      "pop %rax\n"
      "add %r8, %r10\n"
      "dec %r15\n"
      "jnz 1b\n" GUEST_STOP);

static void signals_do_no_harm_to_what_is_near_the_stack_pointer(void **state)
{
    static const uint64_t turns = 30000000;
    struct soft_fixture *fixture = *state;
    const struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {.it_interval = {.tv_usec = 500},
                                    .it_value = {.tv_usec = 500}};
    const struct itimerval never = {.it_value = {.tv_usec = 0}};

    memset(fixture->cpu.r, 0, sizeof(fixture->cpu.r));
    fixture->cpu.r[X86_RSP] = GUEST_STACK;
    fixture->cpu.r[X86_RCX] = 3;
    fixture->cpu.r[8] = 5;
    fixture->cpu.r[14] = 7;
    fixture->cpu.r[15] = turns;
    signals_seen = 0;
    GUEST_LOAD(fixture, counts);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    assert_int_equal(guest_run(fixture), GUEST_STOPPED);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_true(signals_seen > 0);
    assert_true(fixture->cpu.r[X86_RAX] == 3 * turns);
    assert_true(fixture->cpu.r[X86_RDX] == 8 * turns); /* RBX is below RAX */
    assert_true(fixture->cpu.r[10] == 5 * turns);
    assert_int_equal(fixture->cpu.r[X86_RSP], GUEST_STACK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRANSLATOR_TEST(signals_do_no_harm_to_what_is_near_the_stack_pointer),
        TRANSLATOR_TEST(what_was_done_is_told),
        TRANSLATOR_TEST(a_loop_asks_c_only_to_start),
        TRANSLATOR_TEST(registers_without_a_host_register),
        TRANSLATOR_TEST(blocks_of_steps_do_not_use_up_what_names_sites),
        TRANSLATOR_TEST(flags_that_are_read_later_survive_checks_and_calls),
        TRANSLATOR_TEST(partly_written_flags_keep_the_rest),
        TRANSLATOR_TEST(a_fault_leaves_the_instruction_undone),
        TRANSLATOR_TEST(a_division_that_does_not_fit_raises_here),
        TRANSLATOR_TEST(misalignment_comes_before_the_page_fault),
        TRANSLATOR_TEST(devices_are_reached_in_the_middle_of_a_block),
        TRANSLATOR_TEST(code_that_changes_is_run_as_it_is),
        TRANSLATOR_TEST(pages_of_code_may_be_mapped_anew),
        TRANSLATOR_TEST(a_single_step_is_one_instruction),
        TRANSLATOR_TEST(a_block_that_found_no_room_is_no_matter_for_writers),
        TRANSLATOR_TEST(full_code_memory_is_emptied_and_filled_again),
        TRANSLATOR_TEST(swapgs_needs_no_c),
        TRANSLATOR_TEST(a_program_must_not_swap),
        TRANSLATOR_TEST(key_rights_are_read_without_c_and_refused_as_ever),
        TRANSLATOR_TEST(an_instruction_may_use_two_pages_with_one_entry),
        TRANSLATOR_TEST(an_nmi_that_waits_holds_up_nothing_and_comes_behind_iret),
        TRANSLATOR_TEST(vector_registers_stay_and_exceptions_are_raised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
