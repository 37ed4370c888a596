/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that looks for a linear address in a TLB. Before it the address is in ADDRESS;
 * behind it ADDRESS is the offset in the page and SCRATCH the host's address of the page.
 * What is not there, or not for this access, goes on at `cold`.
 */
#ifndef HUSK_SOFT_TLB_CHECK_PRIVATE_H
#define HUSK_SOFT_TLB_CHECK_PRIVATE_H

#include "accel/soft/translator/emit_private.h"

void tlb_check_emit(struct code_writer *writer, enum tlb_kind kind,
                    const struct access_check *check, uint32_t cold);
/* The same in a copy of an entry. */
void tlb_check_copy_emit(struct code_writer *writer, struct host_memory copy,
                         bool aligned, uint32_t cold);
/* Which is a struct page_copy: the stack's, or one of a loop's. */
struct host_memory tlb_stack_page(enum tlb_kind kind);
struct host_memory tlb_loop_page(enum tlb_kind kind, bool write, unsigned slot);
/* Only whether the bytes `ahead` of ADDRESS, an offset already, are in its page. */
void tlb_check_comparison_emit(struct code_writer *writer,
                               const struct access_check *check, uint32_t ahead,
                               uint32_t cold);

/* Thunks for code out of line return if all is well. Else what is behind their call, TEST
 * EAX with an immediate, tells the slow way the site. This is which of translator.checks
 * has it; CHECK_SHAPES: none. */
size_t tlb_check_shape(const struct access_check *check);

#endif
