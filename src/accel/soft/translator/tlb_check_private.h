/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that looks for a linear address in a TLB, or in a copy of one of its entries.
 * Before it the address is in ADDRESS. A comparison leaves there the offset in the page.
 * Behind it, if it is a good one, a second piece finds the page's host address: it goes
 * to SCRATCH, or, if `joined`, is added to ADDRESS. Host flags are overwritten.
 */
#ifndef HUSK_SOFT_TLB_CHECK_PRIVATE_H
#define HUSK_SOFT_TLB_CHECK_PRIVATE_H

#include "accel/soft/translator/emit_private.h"

/* Compares: CONDITION_A if `bytes` from there on are not in the page of the TLB's entry,
 * or not to be written to. SCRATCH is the entry's offset then. */
void tlb_compare_emit(struct code_writer *writer, enum tlb_kind kind, bool write,
                      unsigned bytes);
void tlb_page_emit(struct code_writer *writer, enum tlb_kind kind, bool joined);

/* CONDITION_A if `bytes` from ADDRESS on, an offset already, reach beyond the page. */
void tlb_comparison_emit(struct code_writer *writer, unsigned bytes);

/* The same by a copy, for as many bytes as that serves: CONDITION_AE if not. SCRATCH
 * stays. */
void tlb_copy_compare_emit(struct code_writer *writer, struct host_memory copy);
void tlb_copy_page_emit(struct code_writer *writer, struct host_memory copy, bool joined);
/* Which is a struct page_copy: the stack's, or one of a loop's. */
struct host_memory tlb_stack_page(enum tlb_kind kind);
struct host_memory tlb_loop_page(enum tlb_kind kind, bool write, unsigned slot);

/* Between the two pieces: CONDITION_NE if ADDRESS is not aligned to CHECK_MAX_BYTES. */
void tlb_alignment_emit(struct code_writer *writer);

#endif
