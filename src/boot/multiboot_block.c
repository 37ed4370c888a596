/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot information under construction: bytes that grow. */
#include "boot/multiboot_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define FIRST_CAPACITY 4096

static bool grow(struct multiboot_block *block, size_t needed)
{
    size_t capacity = block->capacity == 0 ? FIRST_CAPACITY : block->capacity;
    uint8_t *bytes;

    while (capacity < needed)
        capacity *= 2;
    bytes = realloc(block->bytes, capacity);
    if (bytes == NULL)
        return false;
    block->bytes = bytes;
    block->capacity = capacity;
    return true;
}

size_t multiboot_block_append(struct multiboot_block *block, const void *bytes,
                              size_t size_bytes, size_t alignment)
{
    size_t at = align_up(block->used, alignment);

    if (block->failed)
        return 0;
    if (at + size_bytes > block->capacity && !grow(block, at + size_bytes)) {
        block->failed = true;
        return 0;
    }
    memset(block->bytes + block->used, 0, at + size_bytes - block->used);
    if (bytes != NULL)
        memcpy(block->bytes + at, bytes, size_bytes);
    block->used = at + size_bytes;
    return at;
}
