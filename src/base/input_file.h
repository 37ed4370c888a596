/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that guest memory starts from (kernel, initrd, firmware), opened once and kept
 * open, so that a reset finds the same bytes.
 *
 * husk maps such files into the guest. Whether that is possible is found out here, once,
 * and told with its reason:
 *
 * - A regular file or block device that mmap takes: INPUT_MAP, no reason.
 * - A pipe, FIFO, socket or character device: its bytes are read into an unnamed memory
 *   file, which then maps like any other: INPUT_MAP, with the reason.
 * - mmap refused, or told to copy: INPUT_READ, with the reason; ranges are read by pread.
 */
#ifndef HUSK_BASE_INPUT_FILE_H
#define HUSK_BASE_INPUT_FILE_H

#include <stdint.h>

#include "base/error.h"
#include "base/source.h"

/* What is read from something that is no regular file ends here: 4 GiB. */
#define INPUT_FILE_STREAM_LIMIT (UINT64_C(4) << 30)

enum input_policy {
    INPUT_POLICY_AUTO, /* map, fall back to reading */
    INPUT_POLICY_MAP,  /* map or fail */
    INPUT_POLICY_COPY, /* always read */
};

enum input_mode { INPUT_MAP, INPUT_READ };

struct input_file {
    char *path; /* as the user gave it; owned */
    int fd;     /* read-only; owned */
    uint64_t size_bytes;
    enum input_mode mode;
    char reason[320]; /* why not simply mapped; "" if it is */
};

/* Opens `path`. Errors name no path (the caller prefixes "kernel PATH"): missing, a
 * directory, empty, unreadable, or refused mmap under INPUT_POLICY_MAP. */
int input_file_open(struct input_file *file, const char *path, enum input_policy policy,
                    struct error *err) MUST_CHECK;

/* The same for a descriptor that is already open (taken over, also on failure). */
int input_file_adopt(struct input_file *file, int fd, const char *path,
                     enum input_policy policy, struct error *err) MUST_CHECK;

void input_file_close(struct input_file *file); /* accepts an all-zero struct */

struct source input_file_source(const struct input_file *file);

#endif
