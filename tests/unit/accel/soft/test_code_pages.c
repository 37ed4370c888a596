/* SPDX-License-Identifier: Apache-2.0 */
/* Code that another vCPU changes, at the moments between this one's reading it and the
 * other's hearing of that. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/draft_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/mmu_private.h"

/* Of the guest's code; its immediate is what writers change. */
GUEST(constant, 64, "movl $1, %eax\n" GUEST_STOP);
#define OPERAND (GUEST_CODE + 1)

/* The guest, and a second vCPU in the same state, which executes nothing. */
struct pair {
    struct soft_fixture *fixture;
    struct soft_cpu *writer;
    struct soft_cpu *cpus[2];
};

static void make_pair(struct pair *pair, struct soft_fixture *fixture)
{
    struct soft_cpu *writer = aligned_alloc(64, (size_t)align_up(sizeof(*writer), 64));
    struct error err = ERROR_NONE;

    guest_long(fixture);
    GUEST_LOAD(fixture, constant);
    assert_non_null(writer);
    memcpy((void *)writer, (const void *)&fixture->cpu, sizeof(*writer));
    writer->translator = NULL;
    memset(&writer->mmu, 0, sizeof(writer->mmu));
    soft_mmu_init(writer);
    writer->tlb = soft_mmu_tlb(writer);
    assert_int_equal(block_cache_create(&writer->blocks, &err), 0);
    *pair = (struct pair){
        .fixture = fixture, .writer = writer, .cpus = {&fixture->cpu, writer}};
    fixture->vm.cpus = pair->cpus;
    fixture->vm.cpu_count = 2;
}

static void part(struct pair *pair)
{
    pair->fixture->vm.cpus = pair->fixture->cpus;
    pair->fixture->vm.cpu_count = 1;
    block_cache_destroy(pair->writer->blocks);
    free(pair->writer);
}

/* What the guest's constant is. */
static uint64_t run_guest(struct pair *pair)
{
    pair->fixture->cpu.rip = GUEST_CODE;
    assert_int_equal(guest_run(pair->fixture), GUEST_STOPPED);
    return pair->fixture->cpu.r[X86_RAX];
}

/* The writer may write to the operand, as it has found out already. */
static uint8_t *check_write(struct pair *pair)
{
    soft_store8(pair->writer, NULL, OPERAND, 1); /* fills the TLB */
    return soft_writable(pair->writer, OPERAND, 1);
}

static void put(uint8_t *operand, uint8_t value)
{
    assert_non_null(operand);
    if (operand != NULL)
        *operand = value;
}

static void a_write_that_was_checked_before_the_page_was_code_counts(void **state)
{
    struct pair pair;
    uint8_t *operand;

    make_pair(&pair, *state);
    operand = check_write(&pair);
    assert_int_equal(run_guest(&pair), 1);
    put(operand, 2);
    code_pages_catch_up(pair.writer);
    assert_null(soft_writable(pair.writer, OPERAND, 1));
    assert_int_equal(run_guest(&pair), 2);
    part(&pair);
}

static void it_counts_also_when_the_writer_has_dropped_its_translation(void **state)
{
    struct pair pair;
    uint8_t *operand;

    make_pair(&pair, *state);
    operand = check_write(&pair);
    assert_int_equal(run_guest(&pair), 1);
    put(operand, 2);
    soft_tlb_flush_page(pair.writer, OPERAND);
    code_pages_catch_up(pair.writer);
    assert_int_equal(run_guest(&pair), 2);
    part(&pair);
}

/* Who is so far behind cannot know which page it was. */
static void it_counts_also_when_announcements_were_lost(void **state)
{
    struct pair pair;
    uint8_t *operand;

    make_pair(&pair, *state);
    operand = check_write(&pair);
    assert_int_equal(run_guest(&pair), 1);
    code_pages_add(&pair.fixture->cpu, GUEST_DATA, CODE_INTERPRETED);
    for (unsigned i = 0; i <= CODE_LOG_ENTRIES; i++)
        code_pages_written(&pair.fixture->cpu, GUEST_DATA, 1);
    put(operand, 2);
    code_pages_catch_up(pair.writer);
    assert_null(soft_writable(pair.writer, OPERAND, 1));
    assert_int_equal(run_guest(&pair), 2);
    part(&pair);
}

static void a_locked_write_counts_when_it_is_done(void **state)
{
    struct pair pair;
    uint8_t *operand;

    make_pair(&pair, *state);
    assert_int_equal(run_guest(&pair), 1);
    code_pages_catch_up(pair.writer);
    operand = soft_lockable(pair.writer, NULL, OPERAND, 1);
    assert_int_equal(run_guest(&pair), 1);
    put(operand, 2);
    soft_lock_done(pair.writer);
    assert_int_equal(run_guest(&pair), 2);
    part(&pair);
}

/* Its page is not code when the write is checked, and no TLB has it: here because of a
 * data breakpoint beside it. */
static void a_locked_write_counts_if_the_page_has_become_code_meanwhile(void **state)
{
    struct pair pair;
    uint8_t *operand;

    make_pair(&pair, *state);
    pair.writer->dr[0] = GUEST_CODE + 0x800;
    pair.writer->dr[7] = X86_DR7_FIXED | 0x1 | 0x1 << 16; /* writes, a byte */
    operand = soft_lockable(pair.writer, NULL, OPERAND, 1);
    assert_int_equal(run_guest(&pair), 1);
    code_pages_catch_up(pair.writer);
    put(operand, 2);
    soft_lock_done(pair.writer);
    assert_int_equal(run_guest(&pair), 2);
    part(&pair);
}

static void a_write_beside_code_is_nobodys_concern(void **state)
{
    static const unsigned distances[] = {64, 256, 1024, 2048, 4095};
    struct pair pair;
    struct code_pages *pages;
    uint64_t announced;

    make_pair(&pair, *state);
    pages = &pair.fixture->vm.code_pages;
    assert_int_equal(run_guest(&pair), 1);
    code_pages_catch_up(pair.writer);
    announced = pages->announced;
    for (size_t i = 0; i < ARRAY_SIZE(distances); i++) {
        put(soft_lockable(pair.writer, NULL, GUEST_CODE + distances[i], 1), 2);
        soft_lock_done(pair.writer);
        soft_store8(pair.writer, NULL, GUEST_CODE + distances[i], 3);
    }
    assert_int_equal(pages->announced, announced);
    assert_true(code_pages_has(pages, GUEST_CODE));
    soft_store8(pair.writer, NULL, OPERAND, 4);
    assert_int_equal(run_guest(&pair), 4);
    part(&pair);
}

/* Each place and size of a write against each of a mark. */
static void marks_are_found_by_every_write_that_meets_them(void **state)
{
    static const unsigned sizes[] = {1, 2, 16, 17, 64, 1024, 1040, 4096};
    struct soft_fixture *fixture = *state;
    struct code_pages *pages = &fixture->vm.code_pages;

    for (unsigned at = 0; at < X86_PAGE_BYTES; at += CODE_MARK_BYTES) {
        code_pages_add(&fixture->cpu, GUEST_DATA, CODE_INTERPRETED);
        code_pages_mark(pages, GUEST_DATA + at, CODE_MARK_BYTES);
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
            for (unsigned from = 0; from + sizes[i] <= X86_PAGE_BYTES; from += 8)
                assert_int_equal(
                    code_pages_are_marked(pages, GUEST_DATA + from, sizes[i]),
                    from < at + CODE_MARK_BYTES && at < from + sizes[i]);
        code_pages_remove(&fixture->vm, GUEST_DATA, CODE_INTERPRETED);
        assert_false(code_pages_are_marked(pages, GUEST_DATA, X86_PAGE_BYTES));
    }
}

#define LAST_BYTE (GUEST_CODE + X86_PAGE_BYTES - 1)

/* The first byte of an instruction whose second page is not there. The translator looks
 * where it is before it counts the first. */
static void a_page_counts_before_it_is_read(void **state)
{
    static const uint8_t first_byte = 0xb8;
    struct soft_fixture *fixture = *state;
    const struct code_pages *pages = &fixture->vm.code_pages;

    if (fixture->cpu.translator != NULL) {
        print_message("skipped: the translator finds the next page before this one\n");
        skip();
    }
    guest_long(fixture);
    soft_fixture_write(fixture, LAST_BYTE, &first_byte, 1);
    guest_write64(fixture, GUEST_PAGES + 0x2000, (GUEST_PAGES + 0x3000) | 0x7);
    for (uint64_t page = 0; page < 512; page++)
        if (page != (LAST_BYTE + 1) >> 12)
            guest_write64(fixture, GUEST_PAGES + 0x3000 + page * 8, page << 12 | 0x7);
    fixture->cpu.rip = LAST_BYTE;
    assert_int_equal(guest_run(fixture), X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.cr2, LAST_BYTE + 1);
    assert_true(code_pages_has(pages, LAST_BYTE));
    code_pages_written(&fixture->cpu, LAST_BYTE, 1);
    assert_false(code_pages_has(pages, LAST_BYTE)); /* it has no block */
}

/* Another vCPU, or a disk, may write at any moment: what was judged is what is used. */
static void a_draft_is_made_of_bytes_that_were_read_once(void **state)
{
    static const uint8_t undefined[] = {0x0f, 0x0b}; /* UD2 */
    struct soft_fixture *fixture = *state;
    struct draft draft;

    guest_long(fixture);
    GUEST_LOAD(fixture, constant);
    fixture->cpu.rip = GUEST_CODE;
    draft_open(&draft, &fixture->cpu, GUEST_CODE, fixture->cpu.mode);
    assert_true(draft_add(&draft));
    soft_fixture_write(fixture, draft_rip(&draft), undefined, sizeof(undefined));
    draft_decode(&draft);
    assert_int_equal(draft.instructions[1].opcode,
                     constant[draft.instructions[0].length]);
    assert_memory_equal(draft.bytes, constant, draft.used);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(a_write_that_was_checked_before_the_page_was_code_counts),
        SOFT_TEST(it_counts_also_when_the_writer_has_dropped_its_translation),
        SOFT_TEST(it_counts_also_when_announcements_were_lost),
        SOFT_TEST(a_locked_write_counts_when_it_is_done),
        SOFT_TEST(a_locked_write_counts_if_the_page_has_become_code_meanwhile),
        SOFT_TEST(a_write_beside_code_is_nobodys_concern),
        SOFT_TEST(marks_are_found_by_every_write_that_meets_them),
        SOFT_TEST(a_page_counts_before_it_is_read),
        SOFT_TEST(a_draft_is_made_of_bytes_that_were_read_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
