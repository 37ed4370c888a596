/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLBs of one software processor, as they lie in it (tlb.c fills and empties them).
 *
 * Three for data, so that whether an access is allowed follows from an entry being
 * there: supervisor accesses, user accesses, and supervisor accesses that may touch user
 * pages although SMAP is on (RFLAGS.AC). All hold 4 KiB translations; large pages are
 * entered in pieces. Two more hold where instructions were fetched from; block_lookup
 * knows only pages that are in these.
 */
#ifndef HUSK_SOFT_TLB_PRIVATE_H
#define HUSK_SOFT_TLB_PRIVATE_H

#include <stdint.h>

/* A translation. It serves an access of `size` bytes at `linear` if
 * linear - tag <= 4096 - size (unsigned), which covers page and page crossing in one
 * compare; the access is then at page + (linear - tag). */
struct tlb_entry {
    uint64_t page; /* its host address; where code was fetched: its guest-physical one */
    uint64_t read_tag;
    union {
        uint64_t write_tag;
        uint64_t place; /* where code was fetched: see tlb_place */
    };
    uint64_t info; /* tlb.c's own; also pads to 32 bytes, so that an index is a shift */
};
#define TLB_ENTRIES 4096
#define TLB_ENTRY_SHIFT 5
_Static_assert(sizeof(struct tlb_entry) == 1u << TLB_ENTRY_SHIFT, "an index is a shift");
/* The tag of an empty entry `index`: a page that is never looked up there. It is 0 where
 * that can be, so that most of a fresh TLB need not be written. */
#define TLB_NO_TAG(index) ((index) == 0 ? UINT64_C(0x1000) : 0)

/* A page and where it is, in one number, for code that asks whether both are still so.
 * Its upper half is the page's (whose lower half is the entry's index); its lower half is
 * bit 31, which no empty entry has, and the number of the guest-physical page. In the
 * upper 2 GiB, where a kernel's code is, seven bits of the page are in bits 30 to 24, and
 * the upper half is all ones: then code has the number as a sign-extended constant. 0: it
 * is too large for that. */
static inline uint64_t tlb_place(uint64_t linear, uint64_t gpa)
{
    const uint64_t number = gpa >> 12;
    const uint64_t upper = linear >> 24 & UINT32_MAX;
    const uint64_t seen = UINT64_C(1) << 31;

    if (linear >> 31 == UINT64_MAX >> 31 && number >> 24 == 0)
        return UINT64_C(0xffffffff) << 32 | seen | (upper & 0x7f) << 24 | number;
    if (number >> 31 != 0 || upper == UINT32_MAX)
        return 0;
    return upper << 32 | seen | number;
}
_Static_assert(TLB_ENTRIES == 1 << 12, "a page's number has 12 + 24 bits below its sign");

enum tlb_kind {
    TLB_SUPERVISOR,
    TLB_USER,
    TLB_SUPERVISOR_AC,
    TLB_FETCH_SUPERVISOR,
    TLB_FETCH_USER,
    TLB_KINDS
};

/* Entries made since the last flush, so that one need not look at all. */
#define TLB_FILL_LIST 1024
struct tlb_fills {
    uint32_t count; /* > TLB_FILL_LIST: the list is incomplete */
    uint16_t index[TLB_FILL_LIST];
};

/* A Bloom filter over the large pages that entries were made from; INVLPG drops the whole
 * page. */
#define TLB_LARGE_BITS 8192

/* An entry once more, where code finds it without an index. It serves an access, not
 * longer than what is said beside it, at `linear` if linear - tag < limit; that is 0 if
 * there is none. */
struct page_copy {
    uint64_t tag;
    uint64_t limit;
    uint64_t page;
};
#define STACK_TOP_BYTES 8

/* Copies for what loops go through. */
#define LOOP_PAGES 4

/* Accesses that share one check are not further apart, so that they are all within a
 * displacement of one byte. */
#define GROUP_BYTES 128
/* ... in a copy, which serves that many: the last bytes of a page are looked up. */
#define COPY_BYTES 64

struct soft_mmu {
    /* The page of the stack's top, to write. Variables on the stack are looked up as all
     * else: a frame that lies in two pages would have this one change all the time. */
    struct page_copy stack_pages[TLB_FETCH_SUPERVISOR];
    struct page_copy loop_pages[TLB_FETCH_SUPERVISOR][2][LOOP_PAGES]; /* [1]: to write */
    struct tlb_entry entries[TLB_KINDS][TLB_ENTRIES];
    struct tlb_fills fills[TLB_KINDS][2]; /* not global, global */
    uint64_t large_pages[TLB_LARGE_BITS / 64];
    uint32_t keys; /* of pages that entries were made from: bits as `key` counts */
};

#endif
