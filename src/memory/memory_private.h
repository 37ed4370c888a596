/* SPDX-License-Identifier: Apache-2.0 */
/* What memory.c and loss.c share: the memory itself and its table of file maps. */
#ifndef HUSK_MEMORY_MEMORY_PRIVATE_H
#define HUSK_MEMORY_MEMORY_PRIVATE_H

#include "memory/memory.h"

#include <stdatomic.h>

#include "base/map_guard.h"
#include "memory/commons.h"

/* The host's small page; x86-64 has no other size for it. */
#define PAGE_BYTES UINT64_C(4096)

/* Segments of one kernel (64), initrds (16) and persistent memory (8), with room to
 * spare.
 */
#define MEMORY_MAX_MAPS 128

/* How often files may be covered by anonymous memory, and runs of pages be mapped from
 * the library. Each time costs a process two mappings at most, of the 65530 that it may
 * have (vm.max_map_count; Linux, Documentation/admin-guide/sysctl/vm.rst): half of them
 * are left. Neighbours do not save any: once both have been touched, Linux does not merge
 * them. So nothing is ever taken off these numbers, but by a reset. */
#define MEMORY_MAX_COVERS 8192
#define MEMORY_MAX_COMMON_RUNS 8192

/* Longer names are cut: they only serve messages. */
#define MEMORY_NAME_BYTES 256

/* One file range in guest memory. The descriptor is our own duplicate: whether the file
 * has become shorter must be answerable after the caller closed its own. */
struct memory_map {
    uint64_t gpa;
    uint64_t size_bytes;
    uint64_t file_offset;
    uint64_t file_end; /* offset behind the last mapped byte the file had; 0: no file with
                        * a size of its own (block device), which is not watched */
    int fd;
    char name[MEMORY_NAME_BYTES];
};

enum loss_state { LOSS_NONE, LOSS_BEING_NOTED, LOSS_NOTED };

struct memory {
    uint8_t *base;         /* of guest-physical 0; 1 GiB-aligned */
    uint64_t reserved_end; /* guest-physical end of the reservation, guard included */
    struct memory_options options;
    struct map_guard guard;
    bool ksm_checked; /* warned at most once, not at each reset */
    size_t region_count;
    struct memory_region regions[MEMORY_MAX_SPANS];
    size_t ram_count; /* the first ones; the others are files */

    /* Who hears of what devices write. */
    void (*on_write)(void *context, uint64_t gpa, uint64_t size_bytes);
    void *on_write_context;

    /* Written by the owner's thread while no vCPU runs. The signal handler reads it on
     * any thread: an entry is complete before the count (release/acquire) covers it. */
    struct memory_map maps[MEMORY_MAX_MAPS];
    _Atomic size_t map_count;
    size_t lasting_maps; /* the first ones, of spans that are files */

    /* Pages that lie over all of these, from the library of common pages: a bit each.
     * NULL: none. Read by the signal handler, too; allocated and freed as `maps` change.
     */
    _Atomic uint64_t *common_pages;
    struct memory_map common; /* the library, from guest-physical 0 on */
    size_t common_runs;       /* mapped from it, since the last reset */

    /* Pages that were a file's or the library's and are anonymous memory now: a bit each,
     * and how often some have become so since the last reset. The owner's thread. */
    uint64_t *plain_pages;
    size_t covers;

    /* The first loss. `loss_state` orders it: whoever moves NONE to BEING_NOTED writes
     * the three fields below and then publishes NOTED. */
    _Atomic int loss_state;
    uint64_t loss_gpa;
    bool loss_is_truncated;
    char loss_name[MEMORY_NAME_BYTES];

    /* `notify_context` is written before `notify` (release/acquire). */
    void (*_Atomic notify)(void *context);
    void *notify_context;
    atomic_bool notified;
};

/* The host address of the range, NULL if it is not inside a span: the one range check for
 * guest addresses. */
uint8_t *memory_translate(const struct memory *memory, uint64_t gpa, uint64_t size_bytes);

/* Zeroed memory over [start, start + size_bytes), or a negative errno. */
int memory_map_anonymous(void *start, uint64_t size_bytes, int flags) MUST_CHECK;

/* All but the first `kept` maps are no maps any more. */
void memory_forget_maps(struct memory *memory, size_t kept);

/* Makes the handler of SIGBUS know `memory`. */
int memory_loss_register(struct memory *memory, struct error *err) MUST_CHECK;
void memory_loss_unregister(struct memory *memory);

/* common.c: `commons` is the library that pages are mapped from now on. Another one than
 * last time it may be only after a reset; else -ESTALE. */
int memory_common_begin(struct memory *memory, const struct commons *commons,
                        struct error *err) MUST_CHECK;
/* These pages are (not) mapped from it. */
void memory_common_note(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                        bool common);
void memory_common_forget(struct memory *memory);

/* How many words have a bit for each page. */
size_t memory_page_words(const struct memory *memory);

/* discard.c: these pages are (no longer) plain anonymous memory, whatever was there. */
int memory_plain_begin(struct memory *memory, struct error *err) MUST_CHECK;
void memory_plain_note(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                       bool plain);
void memory_plain_forget(struct memory *memory);
/* Whether a file's bytes would come back where the page at `gpa` is given back. */
bool memory_is_over_file(const struct memory *memory, uint64_t gpa);
/* Give pages back; they are zeros then. 0 or a negative errno, and they are as before;
 * -ENOSPC: that would be too many mappings. */
int memory_drop_anonymous(struct memory *memory, uint64_t gpa,
                          uint64_t size_bytes) MUST_CHECK;
int memory_cover_file(struct memory *memory, uint64_t gpa,
                      uint64_t size_bytes) MUST_CHECK;

/* The map that holds the page at `gpa`; NULL if the page is no file's. */
const struct memory_map *memory_map_find(const struct memory *memory, uint64_t gpa);

#endif
