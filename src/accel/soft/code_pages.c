/* SPDX-License-Identifier: Apache-2.0 */
/* Code shared between vCPUs; see code_pages_private.h. */
#include "accel/soft/code_pages_private.h"

#include <errno.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/reserve_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/translator_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/bytes.h"
#include "base/check.h"

static void unmap(struct code_pages *pages)
{
    soft_release((void *)(uintptr_t)pages->counts,
                 pages->page_count * sizeof(*pages->counts));
    soft_release(pages->marks, pages->page_count * sizeof(*pages->marks));
    pages->counts = NULL;
    pages->marks = NULL;
}

int code_pages_init(struct code_pages *pages, uint64_t memory_limit, struct error *err)
{
    pages->page_count = (size_t)(memory_limit >> 12);
    pages->counts = soft_reserve(pages->page_count * sizeof(*pages->counts));
    pages->marks = soft_reserve(pages->page_count * sizeof(*pages->marks));
    if (pages->counts == NULL || pages->marks == NULL) {
        unmap(pages);
        return error_set_errno(err, errno, "cannot reserve the map of code pages");
    }
    CHECK(pthread_mutex_init(&pages->lock, NULL) == 0);
    return 0;
}

void code_pages_finish(struct code_pages *pages)
{
    if (pages->counts == NULL)
        return;
    unmap(pages);
    CHECK(pthread_mutex_destroy(&pages->lock) == 0);
}

/* With the lock held: to all vCPUs but `author`, which may be NULL. */
static void put_event(struct soft_vm *vm, const struct soft_cpu *author, uint64_t gpa,
                      uint32_t size)
{
    struct code_pages *pages = &vm->code_pages;

    pages->events[pages->announced % CODE_LOG_ENTRIES] =
        (struct code_event){.gpa = gpa, .size = size};
    pages->announced++;
    for (uint32_t i = 0; i < vm->cpu_count; i++)
        if (vm->cpus[i] != NULL && vm->cpus[i] != author)
            soft_cpu_attend(vm->cpus[i], ATTENTION_CODE);
}

static void announce(struct soft_vm *vm, const struct soft_cpu *author, uint64_t gpa,
                     uint32_t size)
{
    CHECK(pthread_mutex_lock(&vm->code_pages.lock) == 0);
    put_event(vm, author, gpa, size);
    CHECK(pthread_mutex_unlock(&vm->code_pages.lock) == 0);
}

/* Counts a cache; true if it is the page's first, which all other vCPUs are told then. */
static bool count(struct soft_cpu *cpu, uint64_t gpa, enum code_page_unit unit)
{
    struct code_pages *pages = &cpu->vm->code_pages;
    bool first;

    CHECK(gpa >> 12 < pages->page_count);
    CHECK(pthread_mutex_lock(&pages->lock) == 0);
    first = atomic_fetch_add(&pages->counts[gpa >> 12], (uint16_t)unit) == 0;
    if (first && cpu->vm->cpu_count > 1)
        put_event(cpu->vm, cpu, gpa, 0);
    CHECK(pthread_mutex_unlock(&pages->lock) == 0);
    return first;
}

/* Where this vCPU is not the first, it may not have heard yet of who was. */
void code_pages_add(struct soft_cpu *cpu, uint64_t gpa, enum code_page_unit unit)
{
    bool first = count(cpu, gpa, unit);

    if (soft_tlb_protect_code(cpu, gpa) && !first)
        announce(cpu->vm, NULL, gpa, X86_PAGE_BYTES);
}

/* Marks go with the last cache; one that comes meanwhile waits for the lock, and marks
 * later. */
void code_pages_remove(struct soft_vm *vm, uint64_t gpa, enum code_page_unit unit)
{
    struct code_pages *pages = &vm->code_pages;

    CHECK(pthread_mutex_lock(&pages->lock) == 0);
    if (atomic_fetch_sub(&pages->counts[gpa >> 12], (uint16_t)unit) == (uint16_t)unit)
        for (size_t i = 0; i < CODE_MARK_WORDS; i++)
            atomic_store(&pages->marks[gpa >> 12].words[i], 0);
    CHECK(pthread_mutex_unlock(&pages->lock) == 0);
}

/* ---- marks ---- */

/* The marks of [gpa, gpa + size) within a page: bits `first` to `last`. */
struct mark_range {
    unsigned first;
    unsigned last;
};

static struct mark_range range_of(uint64_t gpa, unsigned size)
{
    const unsigned start = (unsigned)(gpa % X86_PAGE_BYTES);

    return (struct mark_range){.first = start >> CODE_MARK_SHIFT,
                               .last = (start + size - 1) >> CODE_MARK_SHIFT};
}

/* Those in one of the words that the range touches. */
static uint64_t marks_in_word(struct mark_range range, unsigned word)
{
    const unsigned first = range.first / 64 == word ? range.first % 64 : 0;
    const unsigned last = range.last / 64 == word ? range.last % 64 : 63;

    return (~UINT64_C(0) >> (63 - last)) & (~UINT64_C(0) << first);
}

/* One that is there already was seen, so what was written before it was made is, too. */
void code_pages_mark(struct code_pages *pages, uint64_t gpa, unsigned size)
{
    struct code_marks *marks = &pages->marks[gpa >> 12];
    const struct mark_range range = range_of(gpa, size);

    for (unsigned word = range.first / 64; word <= range.last / 64; word++) {
        const uint64_t wanted = marks_in_word(range, word);

        if ((atomic_load(&marks->words[word]) & wanted) == wanted)
            continue;
        (void)atomic_fetch_or(&marks->words[word], wanted);
        atomic_thread_fence(memory_order_seq_cst); /* before the bytes are read */
    }
}

bool code_pages_are_marked(const struct code_pages *pages, uint64_t gpa, unsigned size)
{
    const struct mark_range range = range_of(gpa, size);
    bool marked = false;

    if (!code_pages_has(pages, gpa))
        return false;
    for (unsigned word = range.first / 64; word <= range.last / 64; word++)
        marked |= (atomic_load(&pages->marks[gpa >> 12].words[word]) &
                   marks_in_word(range, word)) != 0;
    return marked;
}

/* ---- writes ---- */

static bool is_interpreted(const struct code_pages *pages, uint64_t gpa)
{
    return (atomic_load(&pages->counts[gpa >> 12]) & (CODE_TRANSLATED - 1)) != 0;
}

void code_pages_written(struct soft_cpu *cpu, uint64_t gpa, unsigned size)
{
    atomic_thread_fence(memory_order_seq_cst); /* see code_pages_has */
    if (!code_pages_are_marked(&cpu->vm->code_pages, gpa, size))
        return;
    block_cache_written(cpu, gpa, size);
    if (cpu->vm->cpu_count > 1 && is_interpreted(&cpu->vm->code_pages, gpa))
        announce(cpu->vm, cpu, gpa, size);
}

/* From here on this vCPU does not write to a page with code unseen. Where it could, it
 * may have done so when others had read the page already. */
static void stop_writing(struct soft_cpu *cpu, uint64_t gpa)
{
    if (soft_tlb_protect_code(cpu, gpa))
        code_pages_written(cpu, gpa, X86_PAGE_BYTES);
}

void code_pages_settle(struct soft_cpu *cpu)
{
    atomic_thread_fence(memory_order_seq_cst); /* what this vCPU has written is there */
    if ((atomic_load(&cpu->attention) & ATTENTION_CODE) == 0)
        return;
    vectors_save(cpu);
    soft_tlb_visit_writable_code(cpu, stop_writing);
}

void code_pages_written_by_device(struct soft_vm *vm, uint64_t gpa, uint64_t size_bytes)
{
    const uint64_t end = gpa + size_bytes;

    atomic_thread_fence(memory_order_seq_cst); /* see code_pages_has */
    while (gpa < end) {
        uint64_t piece_end =
            min_u64(align_down(gpa, X86_PAGE_BYTES) + X86_PAGE_BYTES, end);

        if (code_pages_are_marked(&vm->code_pages, gpa, (unsigned)(piece_end - gpa))) {
            translation_written(vm, gpa, (unsigned)(piece_end - gpa));
            announce(vm, NULL, gpa, (uint32_t)(piece_end - gpa));
        }
        gpa = piece_end;
    }
}

/* Takes the next announcement this vCPU has not seen. False: none. *lost: too many were
 * missed. */
static bool next_event(struct soft_cpu *cpu, struct code_event *event, bool *lost)
{
    struct code_pages *pages = &cpu->vm->code_pages;
    bool more;

    CHECK(pthread_mutex_lock(&pages->lock) == 0);
    more = cpu->code_events_seen != pages->announced;
    *lost = pages->announced - cpu->code_events_seen > CODE_LOG_ENTRIES;
    if (*lost)
        cpu->code_events_seen = pages->announced;
    else if (more)
        *event = pages->events[cpu->code_events_seen++ % CODE_LOG_ENTRIES];
    CHECK(pthread_mutex_unlock(&pages->lock) == 0);
    return more;
}

void code_pages_catch_up(struct soft_cpu *cpu)
{
    struct code_event event;
    bool lost;

    while (next_event(cpu, &event, &lost)) {
        if (lost) {
            block_cache_empty(cpu->vm, cpu->blocks);
            soft_tlb_visit_writable_code(cpu, stop_writing);
        } else if (event.size == 0) {
            stop_writing(cpu, event.gpa);
        } else {
            block_cache_written(cpu, event.gpa, event.size);
        }
    }
}
