/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of the fw_cfg device; see fw_cfg.h. */
#include "device/fw_cfg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "device/fw_cfg_private.h"
#include "x86/layout.h"

/* Ports, from LAYOUT_PORT_FW_CFG on. */
#define SELECTOR_OFFSET 0
#define SELECTOR_BYTES 2
#define DATA_OFFSET 1
#define DATA_BYTES 1
#define SELECTOR_AND_DATA_PORTS 2

#define DMA_PORTS 8
#define DMA_LOW_OFFSET 4
#define DMA_REGISTER_BYTES 4

/* What the DMA address reads as. */
static const uint8_t dma_signature[DMA_PORTS] = "QEMU CFG";

/* Once chose writing through the data port, which no longer exists. */
#define KEY_WRITE_CHANNEL 0x4000u

/* ---- selector and data ---- */

void fw_cfg_select(struct fw_cfg *fw_cfg, uint16_t key)
{
    fw_cfg->selected = fw_cfg_find(fw_cfg, key & (uint16_t)~KEY_WRITE_CHANNEL);
    fw_cfg->offset = 0;
    fw_cfg->window_bytes = 0;
}

static uint32_t bytes_left(const struct fw_cfg *fw_cfg)
{
    return fw_cfg->selected == NULL ? 0 : fw_cfg->selected->size_bytes - fw_cfg->offset;
}

/* Makes the window hold the next byte, which exists. */
static void move_window(struct fw_cfg *fw_cfg)
{
    if (fw_cfg->offset - fw_cfg->window_start < fw_cfg->window_bytes)
        return;
    fw_cfg->window_start = fw_cfg->offset;
    fw_cfg->window_bytes = (uint32_t)min_u64(bytes_left(fw_cfg), FW_CFG_WINDOW_BYTES);
    (void)fw_cfg_item_read(fw_cfg->selected, fw_cfg->window_start, fw_cfg->window,
                           fw_cfg->window_bytes);
}

static void read_data(struct fw_cfg *fw_cfg, uint8_t *to, uint32_t size)
{
    uint32_t done = 0;

    while (done < size && bytes_left(fw_cfg) > 0) {
        uint32_t at;
        uint32_t take;

        move_window(fw_cfg);
        at = fw_cfg->offset - fw_cfg->window_start;
        take = (uint32_t)min_u64(size - done, fw_cfg->window_bytes - at);
        memcpy(to + done, fw_cfg->window + at, take);
        fw_cfg->offset += take;
        done += take;
    }
    memset(to + done, 0, size - done);
    atomic_fetch_add_explicit(&fw_cfg->port_bytes, size, memory_order_relaxed);
}

static void ports_read_string(void *device, uint64_t offset, unsigned size,
                              uint32_t count, uint8_t *data)
{
    struct fw_cfg *fw_cfg = device;

    if (offset != DATA_OFFSET || size != DATA_BYTES) {
        memset(data, UINT8_MAX, (size_t)size * count); /* the selector is write-only */
        return;
    }
    CHECK(pthread_mutex_lock(&fw_cfg->lock) == 0);
    read_data(fw_cfg, data, count);
    CHECK(pthread_mutex_unlock(&fw_cfg->lock) == 0);
}

static uint64_t ports_read(void *device, uint64_t offset, unsigned size)
{
    uint64_t value = 0;

    ports_read_string(device, offset, size, 1, (uint8_t *)&value);
    return value;
}

static void ports_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct fw_cfg *fw_cfg = device;

    if (offset != SELECTOR_OFFSET || size != SELECTOR_BYTES)
        return; /* data cannot be written by port */
    CHECK(pthread_mutex_lock(&fw_cfg->lock) == 0);
    fw_cfg_select(fw_cfg, (uint16_t)value);
    CHECK(pthread_mutex_unlock(&fw_cfg->lock) == 0);
}

static const struct bus_ops ports_ops = {
    .name = "fw_cfg",
    .width_bytes = SELECTOR_BYTES,
    .read = ports_read,
    .write = ports_write,
    .read_string = ports_read_string,
};

/* ---- the DMA address: big-endian, and its low half starts ---- */

static uint64_t dma_read(void *device, uint64_t offset, unsigned size)
{
    uint64_t value = 0;

    (void)device;
    memcpy(&value, dma_signature + offset, size);
    return value;
}

static void dma_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct fw_cfg *fw_cfg = device;
    uint32_t half = __builtin_bswap32((uint32_t)value);
    uint64_t gpa;

    if (size != DMA_REGISTER_BYTES)
        return;
    CHECK(pthread_mutex_lock(&fw_cfg->lock) == 0);
    if (offset == DMA_LOW_OFFSET) {
        gpa = (uint64_t)fw_cfg->dma_address_high << 32 | half;
        fw_cfg->dma_address_high = 0;
        fw_cfg_dma_run(fw_cfg, gpa);
    } else {
        fw_cfg->dma_address_high = half;
    }
    CHECK(pthread_mutex_unlock(&fw_cfg->lock) == 0);
}

static const struct bus_ops dma_ops = {
    .name = "fw_cfg DMA",
    .width_bytes = DMA_REGISTER_BYTES,
    .read = dma_read,
    .write = dma_write,
};

/* ---- life ---- */

static int add_identity(struct fw_cfg *fw_cfg, struct error *err)
{
    static const uint8_t signature[] = {'Q', 'E', 'M', 'U'};
    static const uint8_t by_port[] = {FW_CFG_FEATURE_PORTS, 0, 0, 0};
    static const uint8_t by_dma[] = {FW_CFG_FEATURE_PORTS | FW_CFG_FEATURE_DMA, 0, 0, 0};
    const struct fw_cfg_part signature_part = {
        .size_bytes = sizeof(signature),
        .source = source_from_memory(signature, sizeof(signature)),
    };
    const struct fw_cfg_part features_part = {
        .size_bytes = sizeof(by_dma),
        .source = source_from_memory(fw_cfg->dma ? by_dma : by_port, sizeof(by_dma)),
    };

    if (fw_cfg_add_item(fw_cfg, FW_CFG_SIGNATURE, sizeof(signature), &signature_part, 1,
                        err) < 0)
        return err->code;
    return fw_cfg_add_item(fw_cfg, FW_CFG_FEATURES, sizeof(by_dma), &features_part, 1,
                           err);
}

int fw_cfg_create(struct memory *memory, bool dma, struct fw_cfg **fw_cfg,
                  struct error *err)
{
    struct fw_cfg *created = calloc(1, sizeof(*created));

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for fw_cfg");
    created->memory = memory;
    created->dma = dma;
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    if (add_identity(created, err) < 0) {
        fw_cfg_destroy(created);
        return err->code;
    }
    *fw_cfg = created;
    return 0;
}

void fw_cfg_destroy(struct fw_cfg *fw_cfg)
{
    if (fw_cfg == NULL)
        return;
    for (size_t i = 0; i < fw_cfg->item_count; i++)
        free(fw_cfg->items[i].parts);
    free(fw_cfg->directory);
    CHECK(pthread_mutex_destroy(&fw_cfg->lock) == 0);
    free(fw_cfg);
}

int fw_cfg_attach(struct fw_cfg *fw_cfg, struct bus *ports, struct error *err)
{
    if (fw_cfg_make_directory(fw_cfg, err) < 0 ||
        bus_attach(ports, LAYOUT_PORT_FW_CFG, SELECTOR_AND_DATA_PORTS, &ports_ops, fw_cfg,
                   err) < 0)
        return err->code;
    fw_cfg_reset(fw_cfg);
    if (!fw_cfg->dma)
        return 0;
    return bus_attach(ports, LAYOUT_PORT_FW_CFG_DMA, DMA_PORTS, &dma_ops, fw_cfg, err);
}

void fw_cfg_reset(struct fw_cfg *fw_cfg)
{
    fw_cfg_select(fw_cfg, FW_CFG_SIGNATURE);
    fw_cfg->dma_address_high = 0;
}

void fw_cfg_counters(const struct fw_cfg *fw_cfg, struct fw_cfg_counters *counters)
{
    *counters = (struct fw_cfg_counters){
        .port_bytes = atomic_load_explicit(&fw_cfg->port_bytes, memory_order_relaxed),
        .dma_bytes = atomic_load_explicit(&fw_cfg->dma_bytes, memory_order_relaxed),
        .dma_operations =
            atomic_load_explicit(&fw_cfg->dma_operations, memory_order_relaxed),
    };
}
