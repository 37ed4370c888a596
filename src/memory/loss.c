/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files that lose their bytes: what is put there and who is told; see memory.h. */
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "memory/memory_private.h"

const struct memory_map *memory_map_find(const struct memory *memory, uint64_t gpa)
{
    size_t count = atomic_load(&memory->map_count);

    if (memory_is_common(memory, gpa))
        return &memory->common;
    /* A later map lies over an earlier one. */
    for (size_t i = count; i-- > 0;) {
        const struct memory_map *map = &memory->maps[i];

        if (gpa >= map->gpa && gpa - map->gpa < map->size_bytes)
            return map;
    }
    return NULL;
}

/* Tells the owner, once, as soon as there is both a loss and somebody to tell. Everything
 * down from here also runs in signal context: atomics, memcpy and fstat only. */
static void notify_owner(struct memory *memory)
{
    void (*notify)(void *context) = atomic_load(&memory->notify);

    if (notify != NULL && atomic_load(&memory->loss_state) == LOSS_NOTED &&
        !atomic_exchange(&memory->notified, true))
        notify(memory->notify_context);
}

static bool is_truncated(const struct memory_map *map, uint64_t gpa)
{
    struct stat status;

    return map->file_end != 0 && fstat(map->fd, &status) == 0 &&
           (uint64_t)status.st_size <= map->file_offset + (gpa - map->gpa);
}

static void note_loss(struct memory *memory, uint64_t gpa, const struct memory_map *map)
{
    int expected = LOSS_NONE;

    if (!atomic_compare_exchange_strong(&memory->loss_state, &expected, LOSS_BEING_NOTED))
        return;
    memory->loss_gpa = gpa;
    memory->loss_is_truncated = is_truncated(map, gpa);
    memcpy(memory->loss_name, map->name, sizeof(memory->loss_name));
    atomic_store(&memory->loss_state, LOSS_NOTED);
    notify_owner(memory);
}

/* Puts a zero page where a file lost one. False if `address` is no page of a mapped file.
 */
static bool repair_page(void *context, uintptr_t address)
{
    struct memory *memory = context;
    uint64_t gpa = align_down(address - (uintptr_t)memory->base, PAGE_BYTES);
    const struct memory_map *map = memory_map_find(memory, gpa);

    if (map == NULL || !map_guard_put_zero_page(address))
        return false;
    note_loss(memory, gpa, map);
    return true;
}

int memory_loss_register(struct memory *memory, struct error *err)
{
    memory->guard = (struct map_guard){
        .start = (uintptr_t)memory->base,
        .end = (uintptr_t)memory->base + memory->reserved_end,
        .repair = repair_page,
        .context = memory,
    };
    return map_guard_register(&memory->guard, err);
}

void memory_loss_unregister(struct memory *memory)
{
    map_guard_unregister(&memory->guard);
}

void memory_on_loss(struct memory *memory, void (*notify)(void *context), void *context)
{
    memory->notify_context = context;
    atomic_store(&memory->notify, notify);
    notify_owner(memory); /* a file may be lost already, while the guest was loaded */
}

bool memory_lost(const struct memory *memory, struct memory_loss *loss)
{
    if (atomic_load(&memory->loss_state) != LOSS_NOTED)
        return false;
    *loss = (struct memory_loss){.gpa = memory->loss_gpa,
                                 .is_truncated = memory->loss_is_truncated,
                                 .file = memory->loss_name};
    return true;
}

/* True, and notes it, if the file of `map` is now shorter than its map. */
static bool find_loss_in(struct memory *memory, const struct memory_map *map)
{
    struct stat status;
    uint64_t kept_end;

    if (map->file_end == 0 || fstat(map->fd, &status) < 0 ||
        (uint64_t)status.st_size >= map->file_end)
        return false;
    kept_end = max_u64((uint64_t)status.st_size, map->file_offset);
    note_loss(memory, map->gpa + (kept_end - map->file_offset), map);
    return true;
}

bool memory_find_loss(struct memory *memory)
{
    size_t count = atomic_load(&memory->map_count);

    for (size_t i = 0; i < count; i++)
        if (find_loss_in(memory, &memory->maps[i]))
            return true;
    return memory->common_pages != NULL && find_loss_in(memory, &memory->common);
}
