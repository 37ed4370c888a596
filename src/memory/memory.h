/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest-physical memory: the only door to guest bytes.
 *
 * One reservation of host addresses covers everything from guest-physical 0 to the end of
 * RAM, so hva = base + gpa for every guest address and the base is 1 GiB-aligned (equal
 * low bits permit large pages). Only the spans asked for are accessible; holes and a
 * guard behind the end stay PROT_NONE. Spans of RAM are anonymous private memory (zero);
 * parts of files can be mapped over them copy-on-write. Other spans are a whole file
 * each: persistent memory.
 *
 * Threads: create, destroy, map, reset, reclaim, on_write on the thread that owns the VM,
 * with no vCPU running; discard there, too, while they run. read, write, slice, written:
 * any thread.
 */
#ifndef HUSK_MEMORY_MEMORY_H
#define HUSK_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "memory/commons.h"

struct memory;

struct memory_span {
    uint64_t gpa;        /* page-aligned */
    uint64_t size_bytes; /* page-aligned, not 0 */
};

/* RAM below and above the hole at 4 GiB, firmware, and eight files. */
#define MEMORY_MAX_SPANS 11

struct memory_options {
    size_t file_span_count; /* the last ones are no RAM: for memory_map_span */
    /* Of RAM: */
    bool huge_pages; /* 2 MiB, reserved at once: early error if there are too few. What
                      * of a span is no whole huge page gets small pages. */
    bool mergeable;  /* MADV_MERGEABLE: let KSM share equal anonymous pages */
    bool prefault;   /* touch all of it before the guest starts */
};

/* Spans are sorted by address, and do not overlap. */
int memory_create(const struct memory_span *spans, size_t count,
                  const struct memory_options *options, struct memory **memory,
                  struct error *err) MUST_CHECK;
void memory_destroy(struct memory *memory); /* accepts NULL */

/* The spans with their host addresses, for accelerators to make slots of. */
struct memory_region {
    uint64_t gpa;
    uint64_t size_bytes;
    void *hva;
};
size_t memory_region_count(const struct memory *memory);
const struct memory_region *memory_regions(const struct memory *memory);

/* Maps `size_bytes` of `fd` from `offset` at `gpa`, MAP_PRIVATE, in place. All three are
 * page-aligned, and the range lies in one span. `name` (copied) is what a message about
 * this file says. With huge pages: -EINVAL. Pages wholly behind the file's end: -ERANGE.
 * More than 128 maps before the next reset: -ENOSPC. The caller may close `fd`. */
int memory_map_file(struct memory *memory, uint64_t gpa, int fd, uint64_t offset,
                    uint64_t size_bytes, const char *name, struct error *err) MUST_CHECK;

/* Maps `fd` from its start over the span at `gpa`, which is no RAM. Shared: what the
 * guest writes is in the file. Otherwise it stays in private pages, and descriptors for
 * reading will do. What of the span the file does not reach is zero, and private. Lasts
 * as long as the memory; to be called before any memory_map_file. `name` as there. */
int memory_map_span(struct memory *memory, uint64_t gpa, int fd, bool shared,
                    const char *name, struct error *err) MUST_CHECK;

/* All spans of RAM back to zeroed memory; what memory_map_file has mapped is gone. A loss
 * that was noted stays. */
int memory_reset(struct memory *memory, struct error *err) MUST_CHECK;

/*
 * Gives memory back that the guest does not need for itself: private pages of RAM that
 * are zero (they are zero still when they are touched again), and those that are in
 * `commons` (NULL: none) with the same content, which are mapped from there,
 * copy-on-write. The guest sees no difference. No vCPU runs and no device writes to guest
 * memory meanwhile. An error leaves memory right, too, with less given back.
 */
struct memory_reclaimed {
    uint64_t zero_bytes;
    uint64_t common_bytes;
    uint64_t later_bytes; /* that `commons` has not yet: the next look may share them */
    uint64_t kept_bytes;  /* private still, those of `later_bytes` included */
};
int memory_reclaim(struct memory *memory, struct commons *commons,
                   struct memory_reclaimed *reclaimed, struct error *err) MUST_CHECK;
/* Not with huge pages, KSM or prefaulting: these ask for something else. */
bool memory_may_reclaim(const struct memory *memory);
/* Whether the page at `gpa` has been given back for one of a library, and RAM has not
 * been reset since. */
bool memory_is_common(const struct memory *memory, uint64_t gpa);

/*
 * The guest needs the content of these pages of RAM no more: they are zeros from now on,
 * and what they cost goes back to the host. What is mapped there stays where it is, so
 * vCPUs and devices may go on, and touch the pages meanwhile; accelerators hear of it as
 * of a device's write. Pages of files become memory of the guest's own, which takes
 * mappings, and a process may have so many only: where there would be too many they stay
 * as they are, and count in `kept_bytes`. -EINVAL, and nothing is done: not whole pages
 * of one span of RAM. The owner's thread.
 */
int memory_discard(struct memory *memory, uint64_t gpa, uint64_t size_bytes,
                   uint64_t *kept_bytes) MUST_CHECK;
/* Not with huge pages or prefaulting: these ask that memory be taken and kept. */
bool memory_may_discard(const struct memory *memory);

/* The guest-physical space that a library of common pages is for. */
uint64_t memory_reserved_bytes(const struct memory *memory);

/* Prefault and KSM advice, after the last map. */
int memory_apply_advice(struct memory *memory, struct error *err) MUST_CHECK;

/* Checked access; ranges that leave a span, or wrap, are -EFAULT and nothing is copied.
 */
int memory_read(const struct memory *memory, uint64_t gpa, void *to,
                size_t size) MUST_CHECK;
int memory_write(struct memory *memory, uint64_t gpa, const void *from,
                 size_t size) MUST_CHECK;

/* The host address of a range, or NULL. Guest bytes behind it can change at any time. */
void *memory_slice(struct memory *memory, uint64_t gpa, size_t size);
/* The guest address of a slice, or of a byte in it. */
uint64_t memory_slice_gpa(const struct memory *memory, const void *slice);

/*
 * What devices write. An accelerator may keep what it has decoded of guest memory, and
 * must hear of writes that its vCPUs do not make: who writes while they run calls
 * memory_written afterwards, and before the guest is told that it is done. The range is
 * one that memory_write or memory_slice has accepted. `notify` is called on the writing
 * thread; NULL: nobody listens any more.
 */
void memory_on_write(struct memory *memory,
                     void (*notify)(void *context, uint64_t gpa, uint64_t size_bytes),
                     void *context);
void memory_written(const struct memory *memory, uint64_t gpa, uint64_t size_bytes);
/* The same for a slice, or a part of one. */
void memory_slice_written(const struct memory *memory, const void *slice,
                          uint64_t size_bytes);

/*
 * Truncated files. A file that becomes shorter while it is mapped gives SIGBUS on the
 * pages that lost their bytes. The handler (installed process-wide by the first
 * memory_create) puts zero pages there, notes the loss and lets the access go on; the
 * owner is told and ends the VM. A SIGBUS outside guest memory has the effect it had
 * before. A thread that touches guest memory must not block SIGBUS: the kernel would kill
 * the process. Pages that cannot be read (a disk error) count as lost, too, and those of
 * a shared span that the host has no room for.
 */
struct memory_loss {
    uint64_t gpa;
    bool is_truncated; /* the file ends before it */
    const char *file;  /* the `name` of memory_map_file; valid as long as the memory */
};

/* `notify` is called on the faulting thread, in signal context, once: it may only write
 * to an eventfd or set atomics. */
void memory_on_loss(struct memory *memory, void (*notify)(void *context), void *context);

/* True and fills *loss if a loss has happened. Any thread. */
bool memory_lost(const struct memory *memory, struct memory_loss *loss);

/* For accelerators whose guest accesses fault without a signal (KVM_RUN gives EFAULT):
 * looks for a mapped file that is now shorter than its map, notes it as a loss like the
 * handler does. True if there is one. */
bool memory_find_loss(struct memory *memory);

#endif
