/* SPDX-License-Identifier: Apache-2.0 */
/* Paging: what a walk allows, what it marks, what it says when it refuses, and what the
 * TLBs keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "accel/soft/instruction_private.h"
#include "accel/soft/mmu_private.h"
#include "fixture.h"

#define PTE (X86_PTE_PRESENT | X86_PTE_WRITABLE | X86_PTE_USER)

/* Where the tables lie in guest memory, and the page they map. */
#define PML4 UINT64_C(0x1000)
#define PDPT UINT64_C(0x2000)
#define PD UINT64_C(0x3000)
#define PT UINT64_C(0x4000)
#define PAGE UINT64_C(0x10000)
#define NEXT_PAGE UINT64_C(0x11000)
#define LINEAR UINT64_C(0x123456000) /* indexes 0, 4, 0x11a, 0x56 */

static void put_entry(struct soft_fixture *fixture, uint64_t table, unsigned index,
                      uint64_t entry)
{
    soft_fixture_write(fixture, table + UINT64_C(8) * index, &entry, 8);
}

static uint64_t get_entry(struct soft_fixture *fixture, uint64_t table, unsigned index)
{
    uint64_t entry = 0;

    soft_fixture_read(fixture, table + UINT64_C(8) * index, &entry, 8);
    return entry;
}

/* Long mode with LINEAR -> PAGE and the page behind it -> NEXT_PAGE, supervisor. */
static void map_4level(struct soft_fixture *fixture, uint64_t bits)
{
    put_entry(fixture, PML4, 0, PDPT | PTE);
    put_entry(fixture, PDPT, 4, PD | PTE);
    put_entry(fixture, PD, 0x11a, PT | PTE);
    put_entry(fixture, PT, 0x56, PAGE | bits);
    put_entry(fixture, PT, 0x57, NEXT_PAGE | bits);
    fixture->cpu.cr0 = X86_CR0_PE | X86_CR0_PG | X86_CR0_WP;
    fixture->cpu.cr3 = PML4;
    fixture->cpu.cr4 = X86_CR4_PAE | X86_CR4_PGE;
    fixture->cpu.efer = X86_EFER_LME | X86_EFER_LMA | X86_EFER_NXE;
    soft_tlb_flush_all(&fixture->cpu);
    soft_cpu_update_mode(&fixture->cpu);
}

/* The value read, or the fault that came instead. */
static uint64_t read64(struct soft_fixture *fixture, uint64_t linear)
{
    if (setjmp(fixture->cpu.unwind) != 0)
        return 0;
    fixture->cpu.fault = (struct soft_fault){.vector = 0xff};
    return soft_load64(&fixture->cpu, NULL, linear);
}

static void write64(struct soft_fixture *fixture, uint64_t linear, uint64_t value)
{
    if (setjmp(fixture->cpu.unwind) != 0)
        return;
    fixture->cpu.fault = (struct soft_fault){.vector = 0xff};
    soft_store64(&fixture->cpu, NULL, linear, value);
}

static void fetch(struct soft_fixture *fixture, uint64_t linear)
{
    if (setjmp(fixture->cpu.unwind) != 0)
        return;
    fixture->cpu.fault = (struct soft_fault){.vector = 0xff};
    (void)soft_translate(&fixture->cpu, NULL, linear, ACCESS_EXECUTE,
                         fixture->cpu.cpl == 3);
}

static void assert_no_fault(const struct soft_fixture *fixture)
{
    assert_int_equal(fixture->cpu.fault.vector, 0xff);
}

static void assert_page_fault(const struct soft_fixture *fixture, uint64_t linear,
                              uint32_t code)
{
    assert_int_equal(fixture->cpu.fault.vector, X86_VECTOR_PF);
    assert_int_equal(fixture->cpu.fault.error_code, code);
    assert_true(fixture->cpu.fault.cr2 == linear);
}

static void reads_and_marks_accessed(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t value = UINT64_C(0x1122334455667788);

    map_4level(fixture, X86_PTE_PRESENT);
    soft_fixture_write(fixture, PAGE + 8, &value, 8);
    assert_true(read64(fixture, LINEAR + 8) == value);
    assert_no_fault(fixture);
    assert_true(get_entry(fixture, PT, 0x56) ==
                (PAGE | X86_PTE_PRESENT | X86_PTE_ACCESSED));
    assert_true(get_entry(fixture, PML4, 0) == (PDPT | PTE | X86_PTE_ACCESSED));
}

static void first_write_marks_dirty_even_after_a_read(void **state)
{
    struct soft_fixture *fixture = *state;
    uint64_t stored = 0;

    map_4level(fixture, X86_PTE_PRESENT | X86_PTE_WRITABLE);
    (void)read64(fixture, LINEAR);
    assert_true((get_entry(fixture, PT, 0x56) & X86_PTE_DIRTY) == 0);
    write64(fixture, LINEAR, 42);
    assert_no_fault(fixture);
    assert_true((get_entry(fixture, PT, 0x56) & X86_PTE_DIRTY) != 0);
    soft_fixture_read(fixture, PAGE, &stored, 8);
    assert_true(stored == 42);
}

static void missing_page_faults_with_the_access(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, 0);
    (void)read64(fixture, LINEAR + 5);
    assert_page_fault(fixture, LINEAR + 5, 0);
    write64(fixture, LINEAR, 1);
    assert_page_fault(fixture, LINEAR, X86_PF_WRITE);
    fetch(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_FETCH);
}

static void read_only_page_and_wp(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, X86_PTE_PRESENT);
    write64(fixture, LINEAR, 1);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_WRITE);
    fixture->cpu.cr0 &= ~X86_CR0_WP;
    soft_tlb_flush_all(&fixture->cpu);
    write64(fixture, LINEAR, 1);
    assert_no_fault(fixture);
}

static void user_needs_the_user_bit_at_every_level(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, PTE);
    fixture->cpu.cpl = 3;
    soft_cpu_update_mode(&fixture->cpu);
    write64(fixture, LINEAR, 1);
    assert_no_fault(fixture);
    put_entry(fixture, PDPT, 4, PD | X86_PTE_PRESENT | X86_PTE_WRITABLE);
    soft_tlb_flush_page(&fixture->cpu, LINEAR);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_USER);
}

static void supervisor_entries_do_not_serve_users(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, X86_PTE_PRESENT | X86_PTE_WRITABLE);
    (void)read64(fixture, LINEAR);
    assert_no_fault(fixture);
    fixture->cpu.cpl = 3;
    soft_cpu_update_mode(&fixture->cpu);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_USER);
}

static void no_execute_and_smep(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, X86_PTE_PRESENT | X86_PTE_NO_EXECUTE);
    fetch(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_FETCH);
    map_4level(fixture, PTE);
    fetch(fixture, LINEAR);
    assert_no_fault(fixture);
    fixture->cpu.cr4 |= X86_CR4_SMEP;
    fetch(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_FETCH);
}

static void smap_follows_the_ac_flag(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, PTE);
    fixture->cpu.cr4 |= X86_CR4_SMAP;
    soft_cpu_update_mode(&fixture->cpu);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT);
    soft_flags_set(&fixture->cpu, X86_FLAGS_AC);
    (void)read64(fixture, LINEAR);
    assert_no_fault(fixture);
    soft_flags_set(&fixture->cpu, 0);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT);
}

static void reserved_bits_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, PTE | UINT64_C(1) << SOFT_PHYSICAL_BITS);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_RESERVED);
    map_4level(fixture, PTE | X86_PTE_NO_EXECUTE);
    fixture->cpu.efer &= ~X86_EFER_NXE;
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_RESERVED);
}

static void address_that_is_not_canonical_is_a_general_protection_fault(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, PTE);
    (void)read64(fixture, UINT64_C(0x0000800000000000));
    assert_int_equal(fixture->cpu.fault.vector, X86_VECTOR_GP);
    assert_int_equal(fixture->cpu.fault.error_code, 0);
}

static void large_pages_translate_and_invlpg_drops_all_of_one(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t linear = UINT64_C(0x40000000); /* indexes 0, 1, 0 */
    uint64_t value = 7;

    map_4level(fixture, PTE);
    put_entry(fixture, PDPT, 1, PD | PTE);
    put_entry(fixture, PD, 0, PTE | X86_PTE_LARGE);
    soft_fixture_write(fixture, 0x12348, &value, 8);
    assert_true(read64(fixture, linear + 0x12348) == 7);
    put_entry(fixture, PD, 0, 0);
    soft_tlb_flush_page(&fixture->cpu, linear); /* another address in the same page */
    (void)read64(fixture, linear + 0x12348);
    assert_page_fault(fixture, linear + 0x12348, 0);
}

static void global_entries_outlive_a_cr3_load(void **state)
{
    struct soft_fixture *fixture = *state;

    map_4level(fixture, PTE | X86_PTE_GLOBAL);
    put_entry(fixture, PT, 0x57, NEXT_PAGE | PTE);
    (void)read64(fixture, LINEAR);
    (void)read64(fixture, LINEAR + 0x1000);
    put_entry(fixture, PT, 0x56, 0);
    put_entry(fixture, PT, 0x57, 0);
    soft_tlb_flush_non_global(&fixture->cpu);
    (void)read64(fixture, LINEAR);
    assert_no_fault(fixture);
    (void)read64(fixture, LINEAR + 0x1000);
    assert_page_fault(fixture, LINEAR + 0x1000, 0);
    soft_tlb_flush_all(&fixture->cpu);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, 0);
}

static void an_index_changes_hands_between_global_and_not(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t rival = LINEAR + UINT64_C(4096) * TLB_ENTRIES; /* in the same place */

    map_4level(fixture, PTE | X86_PTE_GLOBAL);
    put_entry(fixture, PD, 0x122, PT | PTE);
    (void)read64(fixture, LINEAR);
    put_entry(fixture, PT, 0x56, PAGE | PTE);
    (void)read64(fixture, rival); /* not global, where the global entry was */
    put_entry(fixture, PT, 0x56, 0);
    soft_tlb_flush_non_global(&fixture->cpu);
    (void)read64(fixture, rival);
    assert_page_fault(fixture, rival, 0);
    put_entry(fixture, PT, 0x56, PAGE | PTE | X86_PTE_GLOBAL);
    (void)read64(fixture, rival);
    put_entry(fixture, PT, 0x56, 0);
    soft_tlb_flush_non_global(&fixture->cpu);
    (void)read64(fixture, rival);
    assert_no_fault(fixture);
    soft_tlb_flush_all(&fixture->cpu);
    (void)read64(fixture, rival);
    assert_page_fault(fixture, rival, 0);
}

/* A copy that outlived its entry could be written to when nobody finds it any more. */
static void copies_of_an_entry_go_with_it(void **state)
{
    struct soft_fixture *fixture = *state;
    struct soft_mmu *mmu = &fixture->cpu.mmu;
    struct page_copy *copies[] = {
        &mmu->stack_pages[TLB_SUPERVISOR],
        &mmu->loop_pages[TLB_SUPERVISOR][false][0],
        &mmu->loop_pages[TLB_SUPERVISOR][true][LOOP_PAGES - 1],
    };
    const struct page_copy copy = {.tag = align_down(LINEAR, X86_PAGE_BYTES), .limit = 1};
    const uint64_t rival = LINEAR + UINT64_C(4096) * TLB_ENTRIES; /* in the same place */

    map_4level(fixture, PTE);
    put_entry(fixture, PD, 0x122, PT | PTE);
    write64(fixture, LINEAR, 1);
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
        *copies[i] = copy;
    (void)read64(fixture, LINEAR + X86_PAGE_BYTES);
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
        assert_int_equal(copies[i]->limit, 1);
    (void)read64(fixture, rival);
    assert_no_fault(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
        assert_int_equal(copies[i]->limit, 0);
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
        *copies[i] = copy;
    soft_tlb_flush_page(&fixture->cpu, LINEAR);
    for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
        assert_int_equal(copies[i]->limit, 0);
}

/* More pages than a list of fills has room for, by a large page. */
static void flushes_find_every_entry_of_many(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t start = UINT64_C(0x40000000);
    const uint64_t pages = UINT64_C(2) * TLB_FILL_LIST;

    map_4level(fixture, PTE);
    put_entry(fixture, PDPT, 1, PD | PTE);
    for (unsigned global = 0; global < 2; global++) {
        for (unsigned i = 0; i < 4; i++)
            put_entry(fixture, PD, i,
                      PTE | X86_PTE_LARGE | (global != 0 ? X86_PTE_GLOBAL : 0));
        for (uint64_t i = 0; i < pages; i++)
            (void)read64(fixture, start + i * X86_PAGE_BYTES);
        assert_no_fault(fixture);
        for (unsigned i = 0; i < 4; i++)
            put_entry(fixture, PD, i, 0);
        soft_tlb_flush_non_global(&fixture->cpu);
        if (global != 0) {
            (void)read64(fixture, start + (pages - 1) * X86_PAGE_BYTES);
            assert_no_fault(fixture);
            soft_tlb_flush_all(&fixture->cpu);
        }
        for (uint64_t i = 0; i < pages; i++) {
            (void)read64(fixture, start + i * X86_PAGE_BYTES);
            assert_page_fault(fixture, start + i * X86_PAGE_BYTES, 0);
        }
    }
}

/* ---- protection keys ---- */

#define KEY(number) ((uint64_t)(number) << 59)
#define NO_ACCESS(key) (UINT32_C(1) << 2 * (key))
#define NO_WRITE(key) (UINT32_C(2) << 2 * (key))

static void map_with_keys(struct soft_fixture *fixture, uint64_t bits)
{
    map_4level(fixture, bits);
    fixture->cpu.cr4 |= X86_CR4_PKE | X86_CR4_PKS;
}

static void key_of_a_user_page_binds_the_supervisor_too(void **state)
{
    struct soft_fixture *fixture = *state;

    map_with_keys(fixture, PTE | KEY(3));
    (void)read64(fixture, LINEAR);
    assert_no_fault(fixture);
    soft_set_key_rights(&fixture->cpu, true, NO_ACCESS(3));
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_KEY);
    fetch(fixture, LINEAR); /* instructions have no key */
    assert_no_fault(fixture);
    fixture->cpu.cpl = 3;
    soft_cpu_update_mode(&fixture->cpu);
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_KEY | X86_PF_USER);
    soft_set_key_rights(&fixture->cpu, true, ~(NO_ACCESS(3) | NO_WRITE(3)));
    write64(fixture, LINEAR, 1);
    assert_no_fault(fixture);
}

static void key_without_writes_counts_for_the_supervisor_only_under_wp(void **state)
{
    struct soft_fixture *fixture = *state;

    map_with_keys(fixture, PTE | KEY(15));
    write64(fixture, LINEAR, 1); /* a write translation is there */
    soft_set_key_rights(&fixture->cpu, true, NO_WRITE(15));
    (void)read64(fixture, LINEAR);
    assert_no_fault(fixture);
    write64(fixture, LINEAR, 2);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_WRITE | X86_PF_KEY);
    fixture->cpu.cr0 &= ~X86_CR0_WP;
    soft_tlb_flush_all(&fixture->cpu);
    write64(fixture, LINEAR, 3);
    assert_no_fault(fixture);
}

static void supervisor_pages_have_keys_of_their_own(void **state)
{
    struct soft_fixture *fixture = *state;

    map_with_keys(fixture, X86_PTE_PRESENT | X86_PTE_WRITABLE | KEY(2));
    soft_set_key_rights(&fixture->cpu, true, UINT32_MAX);
    write64(fixture, LINEAR, 1);
    assert_no_fault(fixture);
    soft_set_key_rights(&fixture->cpu, false, NO_ACCESS(2));
    (void)read64(fixture, LINEAR);
    assert_page_fault(fixture, LINEAR, X86_PF_PRESENT | X86_PF_KEY);
    fixture->cpu.cr4 &= ~X86_CR4_PKS;
    soft_tlb_flush_all(&fixture->cpu);
    (void)read64(fixture, LINEAR);
    assert_no_fault(fixture);
}

static void store_across_pages_is_all_or_nothing(void **state)
{
    struct soft_fixture *fixture = *state;
    uint64_t stored = 0;

    map_4level(fixture, PTE);
    put_entry(fixture, PT, 0x57, 0);
    write64(fixture, LINEAR + 0xffc, UINT64_C(0xffffffffffffffff));
    assert_page_fault(fixture, LINEAR + 0x1000, X86_PF_WRITE);
    soft_fixture_read(fixture, PAGE + 0xff8, &stored, 8);
    assert_true(stored == 0);
    put_entry(fixture, PT, 0x57, NEXT_PAGE | PTE);
    write64(fixture, LINEAR + 0xffc, UINT64_C(0x1122334455667788));
    assert_no_fault(fixture);
    assert_true(read64(fixture, LINEAR + 0xffc) == UINT64_C(0x1122334455667788));
    soft_fixture_read(fixture, NEXT_PAGE, &stored, 4);
    assert_true((uint32_t)stored == 0x11223344);
}

static void pae_and_32bit_tables(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint32_t directory = PD | (uint32_t)PTE;
    const uint32_t table = PAGE | (uint32_t)PTE;
    const uint64_t value = 99;

    soft_fixture_write(fixture, PAGE + 16, &value, 8);
    put_entry(fixture, PDPT, 1, PD | X86_PTE_PRESENT);
    put_entry(fixture, PD, 2, PT | PTE);
    put_entry(fixture, PT, 3, PAGE | PTE);
    fixture->cpu.cr0 = X86_CR0_PE | X86_CR0_PG;
    fixture->cpu.cr4 = X86_CR4_PAE;
    fixture->cpu.efer = 0;
    fixture->cpu.cr3 = PDPT;
    soft_tlb_flush_all(&fixture->cpu);
    assert_true(read64(fixture, 0x40403010) == 99);
    assert_no_fault(fixture);

    fixture->cpu.cr4 = 0;
    fixture->cpu.cr3 = PML4;
    soft_fixture_write(fixture, PML4 + UINT64_C(4) * 5, &directory, 4);
    soft_fixture_write(fixture, PD + UINT64_C(4) * 6, &table, 4);
    soft_tlb_flush_all(&fixture->cpu);
    assert_true(read64(fixture, 5u << 22 | 6u << 12 | 16) == 99);
    assert_no_fault(fixture);
}

/* Two steps would lose what another vCPU does in between: a guest that reused the memory
 * of code it had freed hung in its locks. */
static void a_lock_beside_code_is_one_step_on_its_memory(void **state)
{
    struct soft_fixture *fixture = *state;
    uint8_t *page = memory_slice(fixture->memory, PAGE, X86_PAGE_BYTES);

    map_4level(fixture, PTE);
    code_pages_add(&fixture->cpu, PAGE, CODE_INTERPRETED);
    assert_null(soft_writable(&fixture->cpu, LINEAR + 16, 8));
    assert_ptr_equal(soft_lockable(&fixture->cpu, NULL, LINEAR + 16, 8), page + 16);
    assert_null(soft_lockable(&fixture->cpu, NULL, LINEAR + 0xffc, 8)); /* two pages */
    code_pages_remove(&fixture->vm, PAGE, CODE_INTERPRETED);
}

static void without_paging_linear_is_physical(void **state)
{
    struct soft_fixture *fixture = *state;
    const uint64_t value = 5;

    soft_fixture_write(fixture, 0x8000, &value, 8);
    assert_true(read64(fixture, 0x8000) == 5);
    assert_no_fault(fixture);
}

static void access_outside_ram_goes_to_the_machine(void **state)
{
    struct soft_fixture *fixture = *state;

    fixture->mmio_answer = 0xabcd;
    assert_true(read64(fixture, UINT64_C(0xf0000000)) == 0xabcd);
    assert_true(fixture->mmio_gpa == UINT64_C(0xf0000000));
    assert_int_equal(fixture->mmio_size, 8);
}

/* Pages that share an entry, in places that differ in all that counts. */
static void places_are_different_numbers(void **state)
{
    static const uint64_t pages[] = {
        0x0000000000234000, 0x0000007f80234000, 0x00007fffff234000, 0xffff800000234000,
        0xfffffffeff234000, 0xffffffff7f234000, 0xffffffff80234000, 0xffffffff81234000,
        0xffffffffc0234000, 0xffffffffff234000,
    };
    static const uint64_t places[] = {
        0,
        0x1000,
        0xffffff000,
        0x1000000000,
        0x1000001000,
        0x7f000000000,
        0x7ffffffffff & ~0xfffull,
    };
    uint64_t seen[ARRAY_SIZE(pages) * ARRAY_SIZE(places)] = {0};
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
        for (size_t j = 0; j < ARRAY_SIZE(places); j++) {
            const uint64_t place = tlb_place(pages[i], places[j]);

            if (place == 0)
                continue; /* none */
            assert_true((place >> 31 & 1) != 0);
            for (size_t k = 0; k < count; k++)
                assert_true(seen[k] != place);
            seen[count++] = place;
        }
    assert_true(count > ARRAY_SIZE(pages) * 4);
    assert_true(tlb_place(0xffffffff81234000, 0x1000) >> 32 == UINT32_MAX);
    assert_true(tlb_place(0xffffffffff234000, 0x1000000000) == 0);
    assert_true(tlb_place(0x234000, UINT64_C(1) << 43) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(reads_and_marks_accessed),
        SOFT_TEST(first_write_marks_dirty_even_after_a_read),
        SOFT_TEST(missing_page_faults_with_the_access),
        SOFT_TEST(read_only_page_and_wp),
        SOFT_TEST(user_needs_the_user_bit_at_every_level),
        SOFT_TEST(places_are_different_numbers),
        SOFT_TEST(supervisor_entries_do_not_serve_users),
        SOFT_TEST(no_execute_and_smep),
        SOFT_TEST(smap_follows_the_ac_flag),
        SOFT_TEST(reserved_bits_fault),
        SOFT_TEST(address_that_is_not_canonical_is_a_general_protection_fault),
        SOFT_TEST(large_pages_translate_and_invlpg_drops_all_of_one),
        SOFT_TEST(global_entries_outlive_a_cr3_load),
        SOFT_TEST(an_index_changes_hands_between_global_and_not),
        SOFT_TEST(copies_of_an_entry_go_with_it),
        SOFT_TEST(flushes_find_every_entry_of_many),
        SOFT_TEST(key_of_a_user_page_binds_the_supervisor_too),
        SOFT_TEST(key_without_writes_counts_for_the_supervisor_only_under_wp),
        SOFT_TEST(supervisor_pages_have_keys_of_their_own),
        SOFT_TEST(store_across_pages_is_all_or_nothing),
        SOFT_TEST(pae_and_32bit_tables),
        SOFT_TEST(a_lock_beside_code_is_one_step_on_its_memory),
        SOFT_TEST(without_paging_linear_is_physical),
        SOFT_TEST(access_outside_ram_goes_to_the_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
