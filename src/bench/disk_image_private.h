/* SPDX-License-Identifier: Apache-2.0 */
/* The disk of `husk bench disk`: a raw image on which guest and host measure, and the
 * text of what they are to do. */
#ifndef HUSK_BENCH_DISK_IMAGE_PRIVATE_H
#define HUSK_BENCH_DISK_IMAGE_PRIVATE_H

#include <stdint.h>

#include "base/error.h"

/* disk_measure.sh. */
extern const char disk_measure_script[];

/* Make a file of `size_bytes`, every block of it written and none of zeros. */
int disk_image_make(const char *path, uint64_t size_bytes, struct error *err) MUST_CHECK;

/* Writes what a guest is to do to the start of its disk, where its init looks: to call
 * the script with `arguments`. Then waits until the host has nothing of the image left to
 * write, so that no run has to do what the one before it has left. */
int disk_image_prepare(const char *path, const char *arguments,
                       struct error *err) MUST_CHECK;

#endif
