/* SPDX-License-Identifier: Apache-2.0 */
/* One writer or many readers of a disk's file: locks that other programs see. */
#ifndef HUSK_BASE_FILE_LOCK_H
#define HUSK_BASE_FILE_LOCK_H

#include <stdbool.h>

#include "base/error.h"

/* Holds as long as `fd` or a duplicate of it is open, which must be so for writing if
 * `to_write`. -EBUSY: somebody else has the file, and has not given it up within half a
 * second; the sentence says what to do, and names no file. Where the file system has no
 * locks that is a warning about `name`. */
int file_lock(int fd, bool to_write, const char *name, struct error *err) MUST_CHECK;

#endif
