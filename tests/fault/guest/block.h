/* SPDX-License-Identifier: Apache-2.0 */
/* A driver for the first virtio-blk on the PCI bus, as small as it can be: one queue, no
 * interrupts, a fixed number of requests. */
#ifndef HUSK_TESTS_FAULT_BLOCK_H
#define HUSK_TESTS_FAULT_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_BYTES 4096
#define BLOCK_SLOTS 9 /* requests in flight */

/* Request types (virtio 1.2, 5.2.6). */
#define BLOCK_WRITE 1
#define BLOCK_FLUSH 4

/* Each slot has a buffer of its own. */
extern uint64_t block_buffers[BLOCK_SLOTS][BLOCK_BYTES / sizeof(uint64_t)];

/* False if there is no such device, or it does not take our features. */
bool block_open(void);
uint64_t block_count(void);
/* Lets the device know of a request: the buffer of `slot` is block `number`. */
void block_begin(unsigned slot, uint32_t type, uint64_t number);
/* Waits until all that have begun are done. False if one of them failed. */
bool block_wait(void);

/* Requests that have begun are forgotten; block_open is next, when the reset is done. */
void block_begin_reset(void);
bool block_is_reset(void);

#endif
