/* SPDX-License-Identifier: Apache-2.0 */
/* The items of the fw_cfg device, and the directory of those that have names. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "device/fw_cfg_private.h"

/* ---- adding ---- */

static void check_parts(uint64_t size_bytes, const struct fw_cfg_part *parts,
                        size_t part_count)
{
    uint64_t end = 0;

    for (size_t i = 0; i < part_count; i++) {
        const struct fw_cfg_part *part = &parts[i];

        CHECK(part->at >= end && range_within(part->at, part->size_bytes, size_bytes));
        CHECK(
            range_within(part->source_offset, part->size_bytes, part->source.size_bytes));
        end = part->at + part->size_bytes;
    }
}

/* Files come behind the other items, sorted by name. */
static size_t place_of(const struct fw_cfg *fw_cfg, const char *name)
{
    size_t at = fw_cfg->item_count;

    while (at > 0 && strcmp(fw_cfg->items[at - 1].name, name) > 0)
        at--;
    return at;
}

static int add(struct fw_cfg *fw_cfg, const struct fw_cfg_item *item, uint64_t size_bytes,
               const struct fw_cfg_part *parts, struct error *err)
{
    size_t at = place_of(fw_cfg, item->name);
    struct fw_cfg_part *copies;

    check_parts(size_bytes, parts, item->part_count);
    if (size_bytes > UINT32_MAX)
        return error_set(err, -EFBIG,
                         "has %" PRIu64
                         " bytes; what fw_cfg hands over has less than 4 GiB",
                         size_bytes);
    if (fw_cfg->item_count == FW_CFG_MAX_ITEMS)
        return error_set(err, -ENOSPC, "fw_cfg has no more than %d items",
                         FW_CFG_MAX_ITEMS);
    copies = calloc(item->part_count + 1, sizeof(*copies));
    if (copies == NULL)
        return error_set(err, -ENOMEM, "out of memory for an item of fw_cfg");
    if (item->part_count > 0)
        memcpy(copies, parts, item->part_count * sizeof(*copies));
    memmove(&fw_cfg->items[at + 1], &fw_cfg->items[at],
            (fw_cfg->item_count - at) * sizeof(*item));
    fw_cfg->items[at] = *item;
    fw_cfg->items[at].size_bytes = (uint32_t)size_bytes;
    fw_cfg->items[at].parts = copies;
    fw_cfg->item_count++;
    return 0;
}

int fw_cfg_add_item(struct fw_cfg *fw_cfg, uint16_t key, uint64_t size_bytes,
                    const struct fw_cfg_part *parts, size_t part_count, struct error *err)
{
    const struct fw_cfg_item item = {.key = key, .part_count = part_count};

    CHECK(fw_cfg->directory == NULL && fw_cfg_find(fw_cfg, key) == NULL);
    return add(fw_cfg, &item, size_bytes, parts, err);
}

int fw_cfg_add_file(struct fw_cfg *fw_cfg, const char *name, uint64_t size_bytes,
                    const struct fw_cfg_part *parts, size_t part_count, struct error *err)
{
    struct fw_cfg_item item = {.part_count = part_count};
    size_t length = strlen(name);

    CHECK(fw_cfg->directory == NULL && length > 0);
    if (length >= sizeof(item.name))
        return error_set(err, -EINVAL,
                         "the name '%s' is too long for fw_cfg: it has at most %zu bytes",
                         name, sizeof(item.name) - 1);
    for (size_t i = 0; i < fw_cfg->item_count; i++)
        if (strcmp(fw_cfg->items[i].name, name) == 0)
            return error_set(err, -EINVAL, "fw_cfg has a file '%s' already", name);
    memcpy(item.name, name, length);
    return add(fw_cfg, &item, size_bytes, parts, err);
}

/* ---- the directory ---- */

/* A big-endian count, then entries of a size, a key, two reserved bytes and a name. */
#define DIRECTORY_COUNT_BYTES 4
#define ENTRY_BYTES 64
enum { ENTRY_SIZE = 0, ENTRY_KEY = 4, ENTRY_NAME = 8 };
_Static_assert(ENTRY_NAME + FW_CFG_NAME_BYTES == ENTRY_BYTES, "struct FWCfgFile");

static void write_entry(uint8_t *entry, const struct fw_cfg_item *item)
{
    store_be32(entry + ENTRY_SIZE, item->size_bytes);
    store_be16(entry + ENTRY_KEY, item->key);
    memcpy(entry + ENTRY_NAME, item->name, sizeof(item->name));
}

int fw_cfg_make_directory(struct fw_cfg *fw_cfg, struct error *err)
{
    size_t size_bytes = DIRECTORY_COUNT_BYTES + fw_cfg->item_count * (size_t)ENTRY_BYTES;
    uint8_t *bytes = calloc(1, size_bytes);
    uint16_t file_count = 0;
    struct fw_cfg_part part;

    if (bytes == NULL)
        return error_set(err, -ENOMEM, "out of memory for the directory of fw_cfg");
    for (size_t i = 0; i < fw_cfg->item_count; i++) {
        struct fw_cfg_item *item = &fw_cfg->items[i];

        if (item->name[0] == '\0')
            continue;
        item->key = (uint16_t)(FW_CFG_FILE_FIRST + file_count);
        write_entry(bytes + DIRECTORY_COUNT_BYTES + file_count * (size_t)ENTRY_BYTES,
                    item);
        file_count++;
    }
    store_be32(bytes, file_count);
    part = (struct fw_cfg_part){
        .size_bytes = DIRECTORY_COUNT_BYTES + file_count * (uint64_t)ENTRY_BYTES,
        .source = source_from_memory(bytes, size_bytes),
    };
    if (fw_cfg_add_item(fw_cfg, FW_CFG_FILE_DIRECTORY, part.size_bytes, &part, 1, err) <
        0) {
        free(bytes);
        return err->code;
    }
    fw_cfg->directory = bytes;
    return 0;
}

/* ---- reading ---- */

const struct fw_cfg_item *fw_cfg_find(const struct fw_cfg *fw_cfg, uint16_t key)
{
    for (size_t i = 0; i < fw_cfg->item_count; i++)
        if (fw_cfg->items[i].key == key)
            return &fw_cfg->items[i];
    return NULL;
}

static int read_part(const struct fw_cfg_part *part, uint64_t skip, uint8_t *to,
                     uint64_t size)
{
    static struct log_gate gate;
    struct error err = ERROR_NONE;

    if (source_read(&part->source, part->source_offset + skip, to, size, &err) == 0)
        return 0;
    memset(to, 0, size);
    if (log_gate_open(&gate))
        log_warn("fw_cfg: a file that the guest reads %s", err.text);
    return err.code;
}

int fw_cfg_item_read(const struct fw_cfg_item *item, uint32_t offset, uint8_t *to,
                     uint32_t size)
{
    uint64_t end = (uint64_t)offset + size;
    uint64_t done = offset; /* in the item */
    int status = 0;

    CHECK(end <= item->size_bytes);
    for (size_t i = 0; i < item->part_count; i++) {
        const struct fw_cfg_part *part = &item->parts[i];
        uint64_t from = max_u64(part->at, done);
        uint64_t until = min_u64(part->at + part->size_bytes, end);

        if (from >= until)
            continue;
        memset(to + (done - offset), 0, from - done);
        if (read_part(part, from - part->at, to + (from - offset), until - from) < 0)
            status = -EIO;
        done = until;
    }
    memset(to + (done - offset), 0, end - done);
    return status;
}
