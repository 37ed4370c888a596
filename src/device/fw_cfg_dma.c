/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DMA of the fw_cfg device (QEMU, docs/specs/fw_cfg.rst, "Guest-side DMA Interface"): a
 * control block in guest memory says what to do, and is told how it went.
 *
 * The block and what it says are a guest's: the block is read once, its range is checked
 * whole before a byte moves, and what it overlaps is no matter. The answer is written
 * last, so it stands even where the data covered the block.
 */
#include <string.h>

#include "base/bytes.h"
#include "device/fw_cfg_private.h"

/* The control block, all big-endian. */
#define BLOCK_BYTES 16
enum { BLOCK_CONTROL = 0, BLOCK_LENGTH = 4, BLOCK_ADDRESS = 8 };

/* Bits of its control field; the upper half is the key to select. */
#define CONTROL_ERROR 0x01u
#define CONTROL_READ 0x02u
#define CONTROL_SKIP 0x04u
#define CONTROL_SELECT 0x08u
#define CONTROL_WRITE 0x10u
#define CONTROL_KEY_SHIFT 16

/* Bytes that an operation of `length` takes from the selected item; the rest of it lies
 * behind the item's end. */
static uint32_t take_of(const struct fw_cfg *fw_cfg, uint32_t length)
{
    if (fw_cfg->selected == NULL)
        return 0;
    return (uint32_t)min_u64(length, fw_cfg->selected->size_bytes - fw_cfg->offset);
}

/* To the guest: as much as there is, then zeros. */
static bool read_to_guest(struct fw_cfg *fw_cfg, uint64_t gpa, uint32_t length)
{
    uint32_t take = take_of(fw_cfg, length);
    uint8_t *to = memory_slice(fw_cfg->memory, gpa, length);
    uint32_t offset = fw_cfg->offset;
    bool succeeded;

    if (length == 0)
        return true;
    if (to == NULL)
        return false;
    fw_cfg->offset += take;
    memset(to + take, 0, length - take);
    atomic_fetch_add_explicit(&fw_cfg->dma_bytes, length, memory_order_relaxed);
    succeeded = take == 0 || fw_cfg_item_read(fw_cfg->selected, offset, to, take) == 0;
    memory_written(fw_cfg->memory, gpa, length);
    return succeeded;
}

/* Several bits may be set: reading counts before writing, and writing before skipping. */
static bool obey(struct fw_cfg *fw_cfg, const uint8_t *block)
{
    uint32_t control = load_be32(block + BLOCK_CONTROL);
    uint32_t length = load_be32(block + BLOCK_LENGTH);

    if ((control & CONTROL_SELECT) != 0)
        fw_cfg_select(fw_cfg, (uint16_t)(control >> CONTROL_KEY_SHIFT));
    if ((control & CONTROL_READ) != 0)
        return read_to_guest(fw_cfg, load_be64(block + BLOCK_ADDRESS), length);
    if ((control & CONTROL_WRITE) != 0)
        return length == 0; /* no item can be written */
    if ((control & CONTROL_SKIP) != 0)
        fw_cfg->offset += take_of(fw_cfg, length);
    return true;
}

void fw_cfg_dma_run(struct fw_cfg *fw_cfg, uint64_t gpa)
{
    uint8_t block[BLOCK_BYTES];
    uint8_t answer[4];
    bool succeeded = memory_read(fw_cfg->memory, gpa, block, sizeof(block)) == 0 &&
                     obey(fw_cfg, block);

    atomic_fetch_add_explicit(&fw_cfg->dma_operations, 1, memory_order_relaxed);
    store_be32(answer, succeeded ? 0 : CONTROL_ERROR);
    /* A block outside of memory has no place for an answer, either. */
    if (memory_write(fw_cfg->memory, gpa + BLOCK_CONTROL, answer, sizeof(answer)) == 0)
        memory_written(fw_cfg->memory, gpa + BLOCK_CONTROL, sizeof(answer));
}
