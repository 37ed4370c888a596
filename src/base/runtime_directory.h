/* SPDX-License-Identifier: Apache-2.0 */
/* Where the husks of one user find each other, and what they have found out about the
 * host: a directory that is theirs alone and gone when the host boots anew. */
#ifndef HUSK_BASE_RUNTIME_DIRECTORY_H
#define HUSK_BASE_RUNTIME_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* $XDG_RUNTIME_DIR/husk, else /run/husk for root, else /tmp/husk-UID. */
int runtime_directory_path(char *path, size_t size, struct error *err) MUST_CHECK;

/* Opens it. -ENOENT without text if it does not exist and `create` is false. One that is
 * another user's, or open to others: an error. */
int runtime_directory_open(const char *path, bool create, int *fd,
                           struct error *err) MUST_CHECK;

#endif
