/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QEMU's firmware configuration interface (docs/specs/fw_cfg.rst): items of bytes that
 * firmware, option ROMs and kernels read through a pair of ports, or have written into
 * guest memory by DMA. Nothing here can be written by a guest.
 *
 * An item consists of parts of files or of memory; what no part covers is zero. Files are
 * read when the guest asks, straight into guest memory.
 *
 * Threads: items are added and the device is attached before the first vCPU runs; reset
 * while none runs; guest accesses come on any vCPU thread.
 */
#ifndef HUSK_DEVICE_FW_CFG_H
#define HUSK_DEVICE_FW_CFG_H

#include <stddef.h>
#include <stdint.h>

#include "base/source.h"
#include "device/bus.h"
#include "memory/memory.h"
#include "x86/fw_cfg_keys.h"

struct fw_cfg;

struct fw_cfg_part {
    uint64_t at; /* in the item */
    uint64_t size_bytes;
    struct source source; /* borrowed for the life of the device */
    uint64_t source_offset;
};

/* `memory` is borrowed for the device's life: where DMA reads and writes. Without `dma`
 * there is the data port alone, as QEMU's machines before 2.4 had it. */
int fw_cfg_create(struct memory *memory, bool dma, struct fw_cfg **fw_cfg,
                  struct error *err) MUST_CHECK;
void fw_cfg_destroy(struct fw_cfg *fw_cfg); /* accepts NULL */

/* An item of its own key, which no other item has. `parts` are sorted by `at`, do not
 * overlap and lie in the item and in their sources; they are copied. An item has less
 * than 4 GiB: -EFBIG. */
int fw_cfg_add_item(struct fw_cfg *fw_cfg, uint16_t key, uint64_t size_bytes,
                    const struct fw_cfg_part *parts, size_t part_count,
                    struct error *err) MUST_CHECK;

/* The same with a name in the directory, from which its key follows: files are sorted by
 * name. A name that is too long or taken: -EINVAL. */
int fw_cfg_add_file(struct fw_cfg *fw_cfg, const char *name, uint64_t size_bytes,
                    const struct fw_cfg_part *parts, size_t part_count,
                    struct error *err) MUST_CHECK;

/* After the last item: makes the directory and answers at LAYOUT_PORT_FW_CFG. */
int fw_cfg_attach(struct fw_cfg *fw_cfg, struct bus *ports, struct error *err) MUST_CHECK;

/* Nothing is selected any more; the items stay. */
void fw_cfg_reset(struct fw_cfg *fw_cfg);

/* What went to the guest. Any thread. */
struct fw_cfg_counters {
    uint64_t port_bytes;
    uint64_t dma_bytes;
    uint64_t dma_operations; /* failed ones, too */
};
void fw_cfg_counters(const struct fw_cfg *fw_cfg, struct fw_cfg_counters *counters);

#endif
