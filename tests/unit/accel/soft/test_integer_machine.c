/* SPDX-License-Identifier: Apache-2.0 */
/* Stack, branches, strings, decimal arithmetic: what cannot be compared with this
 * processor in ring 3, or not in 64-bit code. Expected values are from the SDM, vol. 2.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/instruction_private.h"
#include "integer_guest.h"

/* ---- stack
 * ---------------------------------------------------------------- */

static uint64_t data64(struct soft_fixture *fixture, uint64_t offset)
{
    uint64_t value;

    soft_fixture_read(fixture, GUEST_DATA_GPA + offset, &value, sizeof(value));
    return value;
}

static void pushes_and_pops_in_64bit_code(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RSP] = GUEST_DATA + 0x1000;
    cpu->r[X86_RBX] = 0x1122334455667788;
    /* push rbx; push -2; push word 0x1234 (66); pop ax (66); pop rcx; pop rdx */
    assert_int_equal(GUEST_RUN(fixture, 0x53, 0x6a, 0xfe, 0x66, 0x68, 0x34, 0x12, 0x66,
                               0x58, 0x59, 0x5a),
                     X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x1000);
    assert_int_equal(cpu->r[X86_RAX] & 0xffff, 0x1234);
    assert_int_equal(cpu->r[X86_RCX], UINT64_MAX - 1);
    assert_int_equal(cpu->r[X86_RDX], 0x1122334455667788);
    assert_int_equal(data64(fixture, 0xff8), 0x1122334455667788);
}

static void push_and_pop_of_the_stack_pointer(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RSP] = GUEST_DATA + 0x1000;
    assert_int_equal(GUEST_RUN(fixture, 0x54), X86_VECTOR_UD); /* push rsp */
    assert_int_equal(data64(fixture, 0xff8), GUEST_DATA + 0x1000);
    assert_int_equal(GUEST_RUN(fixture, 0x5c), X86_VECTOR_UD); /* pop rsp */
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x1000);
}

static void pop_to_memory_counts_from_behind_the_pop(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t value = 0xabcdef;

    guest_enter_code64(fixture);
    soft_fixture_write(fixture, GUEST_DATA_GPA + 0x100, &value, 8);
    cpu->r[X86_RSP] = GUEST_DATA + 0x100;
    assert_int_equal(GUEST_RUN(fixture, 0x8f, 0x44, 0x24, 0x08), X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x108);
    assert_int_equal(data64(fixture, 0x110), 0xabcdef); /* pop [rsp + 8] */
}

static void a_push_that_faults_leaves_the_pointer(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RSP] = 0x20000004; /* nothing is mapped below */
    assert_int_equal(GUEST_RUN(fixture, 0x90, 0x50), X86_VECTOR_PF);
    assert_int_equal(cpu->r[X86_RSP], 0x20000004);
    assert_int_equal(cpu->rip, GUEST_CODE + 1);
}

static void frames_nest(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t outer = 0x5555;

    guest_enter_code64(fixture);
    cpu->r[X86_RSP] = GUEST_DATA + 0x1000;
    cpu->r[X86_RBP] = GUEST_DATA + 0x1100;
    soft_fixture_write(fixture, GUEST_DATA_GPA + 0x10f8, &outer, 8);
    /* enter 0x20, 2: old RBP, the outer frame's pointer, this frame's pointer */
    assert_int_equal(GUEST_RUN(fixture, 0xc8, 0x20, 0x00, 0x02), X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RBP], GUEST_DATA + 0xff8);
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x1000 - 24 - 0x20);
    assert_int_equal(data64(fixture, 0xff8), GUEST_DATA + 0x1100);
    assert_int_equal(data64(fixture, 0xff0), 0x5555);
    assert_int_equal(data64(fixture, 0xfe8), GUEST_DATA + 0xff8);
    assert_int_equal(GUEST_RUN(fixture, 0xc9), X86_VECTOR_UD); /* leave */
    assert_int_equal(cpu->r[X86_RBP], GUEST_DATA + 0x1100);
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x1000);
}

static void all_registers_go_over_a_16bit_stack_that_wraps(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint16_t pushed[8];

    guest_enter_code16(fixture);
    for (unsigned i = 0; i < 8; i++)
        cpu->r[i] = 0xabcd0000 + 0x101 * (i + 1);
    cpu->r[X86_RSP] = 0xabcd0008; /* SP wraps below 0 */
    assert_int_equal(GUEST_RUN(fixture, 0x60), X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RSP], 0xabcdfff8);
    soft_fixture_read(fixture, 0xfff8, pushed, 8);
    soft_fixture_read(fixture, 0, pushed + 4, 8);
    assert_int_equal(pushed[0], 0x808); /* DI */
    assert_int_equal(pushed[3], 8);     /* SP as it was */
    assert_int_equal(pushed[7], 0x101); /* AX */
    memset(cpu->r, 0, 32);
    cpu->r[X86_RSP] = 0xabcdfff8;
    assert_int_equal(GUEST_RUN(fixture, 0x61), X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RSP], 0xabcd0008);
    assert_int_equal(cpu->r[X86_RAX], 0x101);
    assert_int_equal(cpu->r[X86_RBX], 0x404);
}

static void popf_changes_what_the_privilege_level_may(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t image = X86_FLAGS_IF | X86_FLAGS_IOPL | X86_FLAGS_CF | X86_FLAGS_VM |
                     X86_FLAGS_RF | X86_FLAGS_AC | X86_FLAGS_FIXED;

    guest_enter_code64(fixture);
    soft_fixture_write(fixture, GUEST_DATA_GPA, &image, 8);
    cpu->r[X86_RSP] = GUEST_DATA;
    cpu->cpl = 3;
    soft_cpu_update_mode(cpu);
    assert_int_equal(GUEST_RUN(fixture, 0x9d), X86_VECTOR_UD);
    assert_int_equal(soft_flags_get(cpu), X86_FLAGS_CF | X86_FLAGS_AC | X86_FLAGS_FIXED);
    cpu->cpl = 0;
    soft_cpu_update_mode(cpu);
    cpu->r[X86_RSP] = GUEST_DATA;
    assert_int_equal(GUEST_RUN(fixture, 0x9d), X86_VECTOR_UD);
    assert_int_equal(soft_flags_get(cpu), X86_FLAGS_IF | X86_FLAGS_IOPL | X86_FLAGS_CF |
                                              X86_FLAGS_AC | X86_FLAGS_FIXED);
}

/* ---- branches
 * ---------------------------------------------------------------- */

static void calls_and_returns(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RSP] = GUEST_DATA + 0x1000;
    cpu->r[X86_RAX] = 1;
    cpu->r[X86_RBX] = 0;
    /* call +3; inc rbx; (ud2 behind the code) ... at 8: add eax, eax; ret 8 */
    assert_int_equal(GUEST_RUN(fixture, 0xe8, 0x05, 0, 0, 0, 0x48, 0xff, 0xc3, 0xeb, 0x05,
                               0x01, 0xc0, 0xc2, 0x08, 0x00),
                     X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RAX], 2);
    assert_int_equal(cpu->r[X86_RBX], 1);
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x1008);
}

static void a_loop_counts_and_retires(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t before;

    guest_enter_code64(fixture);
    cpu->r[X86_RCX] = 1000;
    cpu->r[X86_RAX] = 0;
    before = cpu->retired;
    /* add rax, rcx; dec rcx; jne -9 */
    assert_int_equal(GUEST_RUN(fixture, 0x48, 0x01, 0xc8, 0x48, 0xff, 0xc9, 0x75, 0xf8),
                     X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RAX], 500500);
    if (cpu->translator == NULL)
        assert_int_equal(cpu->retired - before, 3000);
    cpu->r[X86_RCX] = 7;
    assert_int_equal(GUEST_RUN(fixture, 0x48, 0xff, 0xc0, 0xe2, 0xfb), X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RAX], 500507); /* inc rax; loop */
    assert_int_equal(cpu->r[X86_RCX], 0);
}

static void every_condition_branches_as_it_says(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    for (uint8_t condition = 0; condition < 16; condition++) {
        for (unsigned bits = 0; bits < 32; bits++) {
            uint64_t flags = (bits & 1 ? FLAG_CF : 0) | (bits & 2 ? FLAG_PF : 0) |
                             (bits & 4 ? FLAG_ZF : 0) | (bits & 8 ? FLAG_SF : 0) |
                             (bits & 16 ? FLAG_OF : 0);

            /* setcc al; jcc +2; mov bl, 0 */
            cpu->r[X86_RAX] = 0;
            cpu->r[X86_RBX] = 1;
            soft_flags_set(cpu, flags);
            assert_int_equal(GUEST_RUN(fixture, 0x0f, 0x90 + condition, 0xc0,
                                       0x70 + condition, 0x02, 0xb3, 0x00),
                             X86_VECTOR_UD);
            assert_int_equal(cpu->r[X86_RAX], cpu->r[X86_RBX]);
        }
    }
}

static void targets_outside_code_raise_at_the_branch(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RAX] = UINT64_C(0x800000000000);
    cpu->r[X86_RSP] = GUEST_DATA + 0x1000;
    assert_int_equal(GUEST_RUN(fixture, 0xff, 0xd0), X86_VECTOR_GP); /* call rax */
    assert_int_equal(cpu->rip, GUEST_CODE);
    assert_int_equal(cpu->r[X86_RSP], GUEST_DATA + 0x1000);
    guest_enter_code32(fixture);
    cpu->segments[X86_CS].limit = 0x1fffff;
    cpu->r[X86_RAX] = 0x200000;
    assert_int_equal(GUEST_RUN(fixture, 0xff, 0xe0), X86_VECTOR_GP); /* jmp eax */
    assert_int_equal(cpu->rip, GUEST_CODE);
}

static void short_branches_of_16bit_code_wrap(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    static const uint8_t target[] = {0x40, 0x0f, 0x0b}; /* inc ax; ud2 */

    guest_enter_code16(fixture);
    soft_fixture_write(fixture, 0xf003, target, sizeof(target));
    cpu->r[X86_RAX] = 0;
    assert_int_equal(GUEST_RUN(fixture, 0xe9, 0x00, 0xe0), X86_VECTOR_UD);
    assert_int_equal(cpu->rip, 0xf004);
    assert_int_equal(cpu->r[X86_RAX], 1);
}

static void a_loop_that_changes_itself_runs_what_it_wrote(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RAX] = 0;
    /* mov ecx, 5; 5: inc eax; mov byte [6], c8 (now dec eax); dec ecx; jne 5 */
    assert_int_equal(GUEST_RUN(fixture, 0xb9, 5, 0, 0, 0, 0xff, 0xc0, 0xc6, 0x05, 0xf8,
                               0xff, 0xff, 0xff, 0xc8, 0xff, 0xc9, 0x75, 0xf3),
                     X86_VECTOR_UD);
    assert_int_equal(cpu->r[X86_RAX], 0xfffffffd);
}

/* ---- strings
 * ---------------------------------------------------------------- */

static void rep_movs_crosses_pages(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    static uint8_t source[0x3000], target[0x3000];

    guest_enter_code64(fixture);
    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(i * 7 + i / 256);
    soft_fixture_write(fixture, GUEST_DATA_GPA + 0x123, source, sizeof(source));
    cpu->r[X86_RSI] = GUEST_DATA + 0x123;
    cpu->r[X86_RDI] = GUEST_DATA + 0x10ffd;
    cpu->r[X86_RCX] = sizeof(source) / 8;
    assert_int_equal(GUEST_RUN(fixture, 0xf3, 0x48, 0xa5), X86_VECTOR_UD);
    soft_fixture_read(fixture, GUEST_DATA_GPA + 0x10ffd, target, sizeof(target));
    assert_memory_equal(source, target, sizeof(target));
    assert_int_equal(cpu->r[X86_RCX], 0);
    assert_int_equal(cpu->r[X86_RSI], GUEST_DATA + 0x123 + sizeof(source));
    assert_int_equal(cpu->r[X86_RDI], GUEST_DATA + 0x10ffd + sizeof(source));
}

static void rep_stos_that_faults_has_done_what_came_before(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    const uint64_t end = GUEST_DATA + X86_LARGE_PAGE_BYTES;
    uint8_t last;

    guest_enter_code64(fixture);
    cpu->r[X86_RAX] = 0x5a;
    cpu->r[X86_RDI] = end - 0x1800;
    cpu->r[X86_RCX] = 0x2000;
    assert_int_equal(GUEST_RUN(fixture, 0xf3, 0xaa), X86_VECTOR_PF);
    assert_int_equal(cpu->fault.cr2, end);
    assert_int_equal(cpu->r[X86_RDI], end);
    assert_int_equal(cpu->r[X86_RCX], 0x800);
    assert_int_equal(cpu->rip, GUEST_CODE);
    soft_fixture_read(fixture, GUEST_DATA_GPA + X86_LARGE_PAGE_BYTES - 1, &last, 1);
    assert_int_equal(last, 0x5a);
}

static void a_compare_that_faults_leaves_the_flags(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RAX] = 0;
    cpu->r[X86_RDI] = GUEST_DATA + X86_LARGE_PAGE_BYTES - 4;
    cpu->r[X86_RCX] = 100;
    soft_flags_set(cpu, FLAG_CF | FLAG_OF | 2);
    assert_int_equal(GUEST_RUN(fixture, 0xf3, 0xae), X86_VECTOR_PF);
    assert_int_equal(soft_flags_get(cpu), FLAG_CF | FLAG_OF | 2);
    assert_int_equal(cpu->r[X86_RCX], 96);
}

/* In 16-bit code with 16-bit addresses SI and DI wrap, and ES is not DS. */
static void strings_use_segments(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    static const char text[] = "segment";
    char copy[sizeof(text)];

    guest_enter_code16(fixture);
    cpu->segments[X86_ES].base = 0x20000;
    cpu->segments[X86_FS].base = 0x30000;
    soft_fixture_write(fixture, 0x3fffe, text, 2);
    soft_fixture_write(fixture, 0x30000, text + 2, sizeof(text) - 2);
    cpu->r[X86_RSI] = 0xaaaafffe;
    cpu->r[X86_RDI] = 0xbbbb0010;
    cpu->r[X86_RCX] = 0xcccc0000 + sizeof(text);
    assert_int_equal(GUEST_RUN(fixture, 0xf3, 0x64, 0xa4), X86_VECTOR_UD);
    soft_fixture_read(fixture, 0x20010, copy, sizeof(copy));
    assert_string_equal(copy, text);
    assert_int_equal(cpu->r[X86_RSI], 0xaaaa0006);
    assert_int_equal(cpu->r[X86_RCX], 0xcccc0000);
}

/* ---- the rest
 * ---------------------------------------------------------------- */

static void lock_exchanges_of_eight_and_sixteen_bytes(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    const uint64_t pair[2] = {0x1111111122222222, 0x3333333344444444};

    guest_enter_code64(fixture);
    soft_fixture_write(fixture, GUEST_DATA_GPA, pair, sizeof(pair));
    cpu->r[X86_RSI] = GUEST_DATA;
    cpu->r[X86_RAX] = pair[0];
    cpu->r[X86_RDX] = pair[1];
    cpu->r[X86_RBX] = 5;
    cpu->r[X86_RCX] = 6;
    assert_int_equal(GUEST_RUN(fixture, 0xf0, 0x48, 0x0f, 0xc7, 0x0e), X86_VECTOR_UD);
    assert_int_not_equal(soft_flags_get(cpu) & FLAG_ZF, 0);
    assert_int_equal(data64(fixture, 0), 5);
    assert_int_equal(data64(fixture, 8), 6);
    assert_int_equal(GUEST_RUN(fixture, 0xf0, 0x0f, 0xc7, 0x0e), X86_VECTOR_UD);
    assert_int_equal(soft_flags_get(cpu) & FLAG_ZF, 0); /* 8 bytes: not equal */
    assert_int_equal(cpu->r[X86_RAX], 5);
    assert_int_equal(cpu->r[X86_RDX], 0);
    cpu->r[X86_RSI] = GUEST_DATA + 8;
    assert_int_equal(GUEST_RUN(fixture, 0x48, 0x0f, 0xc7, 0x0e), X86_VECTOR_GP);
}

static void decimal_arithmetic(void **state)
{
    static const struct {
        uint8_t code[2];
        uint16_t ax;
        uint64_t flags;
        uint16_t expected;
        uint64_t expected_flags;
    } cases[] = {
        {{0x27, 0x90}, 0x00ae, 0, 0x0014, FLAG_CF | FLAG_AF | FLAG_PF},
        {{0x27, 0x90}, 0x0009, FLAG_CF | FLAG_AF, 0x006f, FLAG_CF | FLAG_AF | FLAG_PF},
        {{0x2f, 0x90},
         0x0047,
         FLAG_CF | FLAG_AF,
         0x00e1,
         FLAG_CF | FLAG_AF | FLAG_SF | FLAG_PF},
        {{0x2f, 0x90}, 0x0003, FLAG_AF, 0x00fd, FLAG_CF | FLAG_AF | FLAG_SF},
        {{0x37, 0x90}, 0x000a, 0, 0x0100, FLAG_CF | FLAG_AF | FLAG_ZF | FLAG_PF},
        {{0x3f, 0x90}, 0x020b, 0, 0x0105, FLAG_CF | FLAG_AF | FLAG_PF},
        {{0xd4, 0x0a}, 0x0063, 0, 0x0909, FLAG_PF},
        {{0xd5, 0x0a}, 0x0203, 0, 0x0017, FLAG_PF},
    };
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code32(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        cpu->r[X86_RAX] = cases[i].ax;
        soft_flags_set(cpu, cases[i].flags);
        assert_int_equal(guest_run(fixture, cases[i].code, 2), X86_VECTOR_UD);
        assert_int_equal(cpu->r[X86_RAX], cases[i].expected);
        assert_int_equal(soft_flags_get(cpu) & FLAGS_ARITHMETIC, cases[i].expected_flags);
    }
    assert_int_equal(GUEST_RUN(fixture, 0xd4, 0x00), X86_VECTOR_DE);
}

static void bounds_are_signed_and_inclusive(void **state)
{
    const int32_t bounds[2] = {-5, 5};
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code32(fixture);
    soft_fixture_write(fixture, 0x5000, bounds, sizeof(bounds));
    cpu->r[X86_RBX] = 0x5000;
    cpu->r[X86_RAX] = (uint32_t)-5;
    assert_int_equal(GUEST_RUN(fixture, 0x62, 0x03), X86_VECTOR_UD);
    cpu->r[X86_RAX] = 6;
    assert_int_equal(GUEST_RUN(fixture, 0x62, 0x03), X86_VECTOR_BR);
}

static void a_locked_operand_may_cross_pages(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t value = 0x00000000ffffffff;

    guest_enter_code64(fixture);
    soft_fixture_write(fixture, GUEST_DATA_GPA + 0xffc, &value, 8);
    cpu->r[X86_RBX] = GUEST_DATA + 0xffc;
    cpu->r[X86_RAX] = 1;
    assert_int_equal(GUEST_RUN(fixture, 0xf0, 0x48, 0x0f, 0xc1, 0x03), X86_VECTOR_UD);
    assert_int_equal(data64(fixture, 0xffc), 0x100000000);
    assert_int_equal(cpu->r[X86_RAX], 0xffffffff);
}

static void absolute_addresses_and_tables(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;
    const uint8_t table[4] = {9, 8, 7, 6};

    guest_enter_code64(fixture);
    soft_fixture_write(fixture, GUEST_DATA_GPA, table, sizeof(table));
    cpu->r[X86_RBX] = GUEST_DATA;
    cpu->r[X86_RAX] = 0x1102;
    assert_int_equal(GUEST_RUN(fixture, 0xd7), X86_VECTOR_UD); /* xlat */
    assert_int_equal(cpu->r[X86_RAX], 0x1107);
    /* mov [0x10000008], rax; mov eax, [0x10000000] */
    assert_int_equal(GUEST_RUN(fixture, 0x48, 0xa3, 0x08, 0, 0, 0x10, 0, 0, 0, 0, 0xa1, 0,
                               0, 0, 0x10, 0, 0, 0, 0),
                     X86_VECTOR_UD);
    assert_int_equal(data64(fixture, 8), 0x1107);
    assert_int_equal(cpu->r[X86_RAX], 0x06070809);
}

/* So that an interrupt which the access raises comes right behind it. */
static void reads_of_ports_and_msrs_end_their_block(void **state)
{
    static const struct {
        uint8_t code[3];
        uint8_t length;
    } cases[] = {{{0xe4, 0x60, 0x90}, 2},  /* in al, 0x60; nop */
                 {{0xed, 0x90, 0x90}, 1},  /* in eax, dx */
                 {{0x0f, 0x32, 0x90}, 2}}; /* rdmsr */
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    cpu->r[X86_RCX] = 0x10; /* the time-stamp counter */
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t before = cpu->retired;
        struct block *block;

        soft_fixture_write(fixture, GUEST_CODE, cases[i].code, sizeof(cases[i].code));
        block_cache_written(cpu, GUEST_CODE, sizeof(cases[i].code));
        cpu->rip = GUEST_CODE;
        cpu->budget = 1;
        block = block_find(cpu, cpu->mode);
        block->uops[0].run(cpu, block->uops);
        assert_int_equal(cpu->rip, GUEST_CODE + cases[i].length);
        assert_int_equal(cpu->retired - before, 1);
    }
}

/* Maps the large page behind that of the data. */
static void map_behind_data(struct soft_fixture *fixture, uint64_t gpa)
{
    const uint64_t directory = 0x3000; /* as guest_enter_code64 has it */
    uint64_t index = GUEST_DATA / X86_LARGE_PAGE_BYTES + 1;
    uint64_t entry =
        gpa | X86_PTE_PRESENT | X86_PTE_WRITABLE | X86_PTE_USER | X86_PTE_LARGE;

    soft_fixture_write(fixture, directory + index * 8, &entry, sizeof(entry));
    soft_tlb_flush_all(&fixture->cpu);
}

/* Its second page has no RAM at first: what was decoded then does not stay. */
static void an_instruction_follows_its_second_page(void **state)
{
    const uint8_t move = 0xb8; /* mov eax, imm32 */
    const uint8_t rest[] = {1, 2, 3, 4, 0x0f, 0x0b};
    const uint64_t second = GUEST_DATA + X86_LARGE_PAGE_BYTES;
    struct soft_fixture *fixture = *state;
    struct soft_cpu *cpu = &fixture->cpu;

    guest_enter_code64(fixture);
    soft_fixture_write(fixture, GUEST_DATA_GPA + X86_LARGE_PAGE_BYTES - 1, &move, 1);
    map_behind_data(fixture, UINT64_C(1) << 30);
    cpu->rip = second - 1;
    assert_int_equal(guest_continue(fixture), X86_VECTOR_UD);
    assert_int_equal(cpu->rip, second + 4);
    assert_int_equal(cpu->r[X86_RAX], UINT32_MAX); /* what no RAM reads as */

    soft_fixture_write(fixture, GUEST_DATA_GPA + X86_LARGE_PAGE_BYTES, rest,
                       sizeof(rest));
    map_behind_data(fixture, GUEST_DATA_GPA + X86_LARGE_PAGE_BYTES);
    cpu->rip = second - 1;
    assert_int_equal(guest_continue(fixture), X86_VECTOR_UD);
    assert_int_equal(cpu->rip, second + 4);
    assert_int_equal(cpu->r[X86_RAX], 0x04030201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(pushes_and_pops_in_64bit_code),
        SOFT_TEST(push_and_pop_of_the_stack_pointer),
        SOFT_TEST(pop_to_memory_counts_from_behind_the_pop),
        SOFT_TEST(a_push_that_faults_leaves_the_pointer),
        SOFT_TEST(frames_nest),
        SOFT_TEST(all_registers_go_over_a_16bit_stack_that_wraps),
        SOFT_TEST(popf_changes_what_the_privilege_level_may),
        SOFT_TEST(calls_and_returns),
        SOFT_TEST(a_loop_counts_and_retires),
        SOFT_TEST(every_condition_branches_as_it_says),
        SOFT_TEST(targets_outside_code_raise_at_the_branch),
        SOFT_TEST(short_branches_of_16bit_code_wrap),
        SOFT_TEST(a_loop_that_changes_itself_runs_what_it_wrote),
        SOFT_TEST(rep_movs_crosses_pages),
        SOFT_TEST(rep_stos_that_faults_has_done_what_came_before),
        SOFT_TEST(a_compare_that_faults_leaves_the_flags),
        SOFT_TEST(strings_use_segments),
        SOFT_TEST(lock_exchanges_of_eight_and_sixteen_bytes),
        SOFT_TEST(decimal_arithmetic),
        SOFT_TEST(bounds_are_signed_and_inclusive),
        SOFT_TEST(a_locked_operand_may_cross_pages),
        SOFT_TEST(absolute_addresses_and_tables),
        SOFT_TEST(an_instruction_follows_its_second_page),
        SOFT_TEST(reads_of_ports_and_msrs_end_their_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
