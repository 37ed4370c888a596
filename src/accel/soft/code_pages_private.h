/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pages have decoded code, over all vCPUs, and how vCPUs tell each other.
 *
 * A page counts the caches that have blocks in it: the interpreters' and the
 * translations'. While the count is not 0 no TLB may have a write translation for it, so
 * that every write comes through mmu.c's slow store, which tells it here. Translations
 * and the writer's own blocks go at once; the interpreters of other vCPUs do what is
 * announced when they next look around, which is at the end of their block at the latest.
 * Code that one processor changes for another has to serialise before it runs anyway
 * (SDM 8.1.3). What a device writes is announced to all vCPUs.
 *
 * A page counts before its bytes are read. Another vCPU may have a write translation
 * until it next looks around, and may have written meanwhile: whoever finds one then
 * takes the page for written.
 *
 * Within such a page, who decodes marks the bytes before reading them, and who writes
 * looks for marks behind the write and a fence. So either the mark is seen, or the new
 * bytes are, and a write without marks needs no lock and tells nobody: locks and
 * variables beside code are no code. Marks are in pieces of 16 bytes, as compilers align
 * functions; they stay until no cache has a block in the page.
 */
#ifndef HUSK_SOFT_CODE_PAGES_PRIVATE_H
#define HUSK_SOFT_CODE_PAGES_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "x86/x86.h"

struct soft_cpu;
struct soft_vm;

/* Announcements that a vCPU may be behind before it forgets all its blocks instead. */
#define CODE_LOG_ENTRIES 256

/* What a cache adds to a page's count. */
enum code_page_unit {
    CODE_INTERPRETED = 1,
    CODE_TRANSLATED = 0x8000,
};

struct code_event {
    uint64_t gpa;
    uint32_t size; /* bytes written; 0: the page has got code */
};

#define CODE_MARK_SHIFT 4 /* bytes of a mark, as a power of two */
#define CODE_MARK_BYTES (1u << CODE_MARK_SHIFT)
#define CODE_MARK_WORDS (X86_PAGE_BYTES >> CODE_MARK_SHIFT >> 6)

struct code_marks {
    _Atomic uint64_t words[CODE_MARK_WORDS];
};

struct code_pages {
    _Atomic uint16_t *counts; /* by page of guest RAM */
    struct code_marks *marks; /* by page, too */
    size_t page_count;
    pthread_mutex_t lock;
    uint64_t announced; /* number ever; under the lock */
    struct code_event events[CODE_LOG_ENTRIES];
};

int code_pages_init(struct code_pages *pages, uint64_t memory_limit,
                    struct error *err) MUST_CHECK;
void code_pages_finish(struct code_pages *pages); /* accepts an all-zero struct */

/* True if the page has code. Any thread. Who has written looks behind a fence, so that
 * either the count is seen here, or the new bytes by who counts. */
static inline bool code_pages_has(const struct code_pages *pages, uint64_t gpa)
{
    return gpa >> 12 < pages->page_count &&
           atomic_load_explicit(&pages->counts[gpa >> 12], memory_order_relaxed) != 0;
}

/* A cache is about to have its first block in a page, and has none any more. */
void code_pages_add(struct soft_cpu *cpu, uint64_t gpa, enum code_page_unit unit);
void code_pages_remove(struct soft_vm *vm, uint64_t gpa, enum code_page_unit unit);

/* [gpa, gpa + size) inside one page of RAM, which counts, is about to be read as code. */
void code_pages_mark(struct code_pages *pages, uint64_t gpa, unsigned size);

/* True if some of it is marked, in a page that counts. Behind the write and a fence. */
bool code_pages_are_marked(const struct code_pages *pages, uint64_t gpa, unsigned size);

/* [gpa, gpa + size) inside one page of RAM was written by this vCPU: if that was code,
 * blocks are stale, and others are told. */
void code_pages_written(struct soft_cpu *cpu, uint64_t gpa, unsigned size);

/* The same for RAM that a device has written, across pages. Any thread. */
void code_pages_written_by_device(struct soft_vm *vm, uint64_t gpa, uint64_t size_bytes);

/* Write translations of this vCPU are about to go, perhaps before it has heard that their
 * pages have code. */
void code_pages_settle(struct soft_cpu *cpu);

/* Does what the others have announced since the last time. Only from the run loop. */
void code_pages_catch_up(struct soft_cpu *cpu);

#endif
