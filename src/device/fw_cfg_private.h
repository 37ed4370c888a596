/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the fw_cfg device share: its items, what is selected, and DMA. */
#ifndef HUSK_DEVICE_FW_CFG_PRIVATE_H
#define HUSK_DEVICE_FW_CFG_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/fw_cfg.h"

#define FW_CFG_MAX_ITEMS 64
#define FW_CFG_WINDOW_BYTES 4096

struct fw_cfg_item {
    uint16_t key;                 /* of a file: known when it is attached */
    char name[FW_CFG_NAME_BYTES]; /* "": no file */
    uint32_t size_bytes;
    struct fw_cfg_part *parts; /* owned */
    size_t part_count;
};

struct fw_cfg {
    /* Fixed once attached. */
    struct memory *memory; /* borrowed */
    bool dma;
    struct fw_cfg_item items[FW_CFG_MAX_ITEMS];
    size_t item_count;
    uint8_t *directory; /* owned; the bytes of one of the items */

    pthread_mutex_t lock;               /* guards what follows, up to the counters */
    const struct fw_cfg_item *selected; /* NULL: an item that does not exist */
    uint32_t offset;                    /* of the next byte; at most the item's size */
    uint32_t dma_address_high;

    /* Bytes of the selected item, read ahead for the data port. */
    uint8_t window[FW_CFG_WINDOW_BYTES];
    uint32_t window_start;
    uint32_t window_bytes; /* 0: nothing */

    _Atomic uint64_t port_bytes; /* statistics, relaxed */
    _Atomic uint64_t dma_bytes;
    _Atomic uint64_t dma_operations;
};

/* ---- fw_cfg_items.c ---- */

/* Makes the directory, and with it the keys of files. */
int fw_cfg_make_directory(struct fw_cfg *fw_cfg, struct error *err) MUST_CHECK;

/* NULL if there is none. */
const struct fw_cfg_item *fw_cfg_find(const struct fw_cfg *fw_cfg, uint16_t key);

/* Fills `to` with bytes of an item; the range lies in the item. A negative errno if a
 * file cannot be read: those bytes are zero, then. */
int fw_cfg_item_read(const struct fw_cfg_item *item, uint32_t offset, uint8_t *to,
                     uint32_t size);

/* ---- fw_cfg.c: under the lock ---- */

void fw_cfg_select(struct fw_cfg *fw_cfg, uint16_t key);

/* ---- fw_cfg_dma.c: under the lock ---- */

/* Does what the control block at `gpa` says. */
void fw_cfg_dma_run(struct fw_cfg *fw_cfg, uint64_t gpa);

#endif
