/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a driver can do to a virtqueue by what it has in memory. Whatever it
 * is, a chain that the queue gives out lies in memory and its sums are right.
 *
 * The input is a list of steps of 8 bytes: what to do, an index, flags, two numbers.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "virtio/queue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEP_BYTES 8
#define DESCRIPTORS 0x0000
#define AVAILABLE 0x2000
#define USED 0x3000
#define TABLE 0x4000 /* likely indirect descriptors */
#define PLACES (2 * MIB)

enum step_kind {
    STEP_DESCRIPTOR, /* index, flags, size, next: a buffer somewhere */
    STEP_TABLE,      /* the same in the indirect table */
    STEP_POINT,      /* a descriptor that points at the table */
    STEP_STORE,      /* any word to any place */
    STEP_OFFER,      /* a head, and the index goes on */
    STEP_TAKE,
    STEP_GIVE,
    STEP_LISTEN,
    STEP_ENABLE,
    STEP_KINDS,
};

struct step {
    uint8_t kind;
    uint8_t index;
    uint16_t flags;
    uint16_t size;
    uint16_t next;
};

struct state {
    struct memory *memory;
    struct virtio_queue queue;
    struct virtio_chain chain;
    uint16_t taken[VIRTIO_QUEUE_MAX_SIZE];
    unsigned taken_count;
};

static void store(struct state *state, uint64_t gpa, const void *from, size_t size)
{
    if (memory_write(state->memory, gpa, from, size) < 0)
        return; /* not in memory: the guest has written to nobody */
}

static void put_descriptor(struct state *state, uint64_t table, const struct step *step,
                           uint64_t address, uint32_t size)
{
    uint8_t bytes[16];

    store_le64(bytes, address);
    store_le32(bytes + 8, size);
    store_le16(bytes + 12, step->flags % 8);
    store_le16(bytes + 14, step->next % 512);
    store(state, table + step->index * sizeof(bytes), bytes, sizeof(bytes));
}

static void offer(struct state *state, const struct step *step)
{
    uint8_t index[2];

    if (memory_read(state->memory, AVAILABLE + 2, index, sizeof(index)) < 0)
        CHECK(false);
    store(state, AVAILABLE + 4 + 2 * (load_le16(index) % VIRTIO_QUEUE_MAX_SIZE),
          &step->next, 2);
    store_le16(index, (uint16_t)(load_le16(index) + 1));
    store(state, AVAILABLE + 2, index, sizeof(index));
}

static void check_chain(const struct state *state)
{
    const struct memory_region *regions = memory_regions(state->memory);
    const struct virtio_chain *chain = &state->chain;
    unsigned count = chain->readable_count + chain->writable_count;
    uint64_t sums[2] = {0, 0};

    CHECK(count <= VIRTIO_CHAIN_MAX_BUFFERS);
    for (unsigned i = 0; i < count; i++) {
        const struct iovec *buffer = &chain->buffers[i];
        bool is_inside = false;

        for (size_t j = 0; j < memory_region_count(state->memory); j++)
            is_inside |= range_within(
                (uint64_t)((uintptr_t)buffer->iov_base - (uintptr_t)regions[j].hva),
                buffer->iov_len, regions[j].size_bytes);
        CHECK(is_inside && buffer->iov_len > 0);
        sums[i >= chain->readable_count] += buffer->iov_len;
    }
    CHECK(sums[0] == chain->readable_bytes && sums[1] == chain->writable_bytes);
}

static void take(struct state *state)
{
    if (!virtio_queue_take(&state->queue, &state->chain))
        return;
    CHECK(state->queue.fault == NULL && state->taken_count < state->queue.setup.size);
    check_chain(state);
    state->taken[state->taken_count++] = state->chain.head;
}

static void give(struct state *state, const struct step *step)
{
    unsigned which;

    if (state->taken_count == 0)
        return;
    which = step->index % state->taken_count;
    virtio_queue_give(&state->queue, &(struct virtio_chain){.head = state->taken[which]},
                      step->size);
    state->taken[which] = state->taken[--state->taken_count];
    (void)virtio_queue_wants_interrupt(&state->queue);
}

static void enable(struct state *state, const struct step *step)
{
    const struct virtio_queue_setup setup = {
        .size = (uint16_t)(step->index % 10 == 9 ? step->next : 1u << step->index % 10),
        .descriptors = DESCRIPTORS + (uint64_t)step->size % 64 * 8,
        .available = AVAILABLE,
        .used = USED,
        .indirect = step->flags & 1,
        .event_index = step->flags & 2,
    };

    state->taken_count = 0;
    if (!virtio_queue_enable(&state->queue, &setup))
        CHECK(!state->queue.enabled && state->queue.fault != NULL);
}

static void do_step(struct state *state, const struct step *step)
{
    uint64_t place = (uint64_t)step->size * 40; /* some of them outside memory */

    switch ((enum step_kind)(step->kind % STEP_KINDS)) {
    case STEP_DESCRIPTOR:
        put_descriptor(state, DESCRIPTORS, step, place, step->size);
        break;
    case STEP_TABLE:
        put_descriptor(state, TABLE, step, place, step->size);
        break;
    case STEP_POINT:
        put_descriptor(state, DESCRIPTORS, step, TABLE, step->size);
        break;
    case STEP_STORE:
        store(state, place % PLACES, &step->flags, 4);
        break;
    case STEP_OFFER:
        offer(state, step);
        break;
    case STEP_TAKE:
        take(state);
        break;
    case STEP_GIVE:
        give(state, step);
        break;
    case STEP_LISTEN:
        virtio_queue_mute(&state->queue);
        (void)virtio_queue_listen(&state->queue);
        break;
    case STEP_ENABLE:
        enable(state, step);
        break;
    case STEP_KINDS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct memory_span spans[] = {{0, MIB}, {MIB, MIB / 2}};
    const struct memory_options options = {.huge_pages = false};
    static struct state state;
    struct error err = ERROR_NONE;

    state = (struct state){.taken_count = 0};
    CHECK(memory_create(spans, ARRAY_SIZE(spans), &options, &state.memory, &err) == 0);
    virtio_queue_init(&state.queue, state.memory);
    for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES) {
        struct step step;

        memcpy(&step, data, sizeof(step));
        do_step(&state, &step);
    }
    memory_destroy(state.memory);
    return 0;
}
