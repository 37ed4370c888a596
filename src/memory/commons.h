/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that guests of one kind have in common.
 *
 * Two guests that have started the same kernel the same way hold mostly the same bytes at
 * the same addresses, also where the kernel has patched its text and made its tables. The
 * library is two files that all of them use: one with page contents, each at its
 * guest-physical address, and one with a mark for each page. A page gets into the library
 * when a second guest is found to have what a first one had, so what only one guest has
 * ever known (keys, say) is in no file. Content is compared before it is shared; the
 * library's name only says where it is worth looking.
 *
 * A page in the library never changes, because guests have it mapped.
 *
 * A library is open for the time of one look at a guest's memory, on one thread.
 */
#ifndef HUSK_MEMORY_COMMONS_H
#define HUSK_MEMORY_COMMONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct commons;

/* Both files are open for reading and writing, and empty or those of an earlier library
 * for `size_bytes` of guest-physical space (whole pages). They are borrowed. `guest`
 * tells the one that is looked at from others: the same each time, and most likely none
 * of theirs. `name` (borrowed) is what a message about the library says. */
int commons_open(int pages_fd, int marks_fd, uint64_t size_bytes, uint16_t guest,
                 const char *name, struct commons **commons,
                 struct error *err) MUST_CHECK;
void commons_close(struct commons *commons); /* accepts NULL */

int commons_pages_fd(const struct commons *commons);
uint64_t commons_size_bytes(const struct commons *commons);
const char *commons_name(const struct commons *commons);

enum commons_answer {
    COMMONS_HELD,  /* the library's page at `gpa` is this one */
    COMMONS_LATER, /* it has none there: this one has been noted, for another guest to
                      find, or could not be now */
    COMMONS_OTHER, /* it has another one there, which will stay */
};

/* Looks for the page (4096 bytes that nobody changes meanwhile) at `gpa`. */
enum commons_answer commons_ask(struct commons *commons, uint64_t gpa, const void *page);

#endif
