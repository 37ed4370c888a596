/* SPDX-License-Identifier: Apache-2.0 */
/* A split virtqueue; see queue.h. Section numbers are those of virtio 1.2. */
#include "virtio/queue.h"

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/check.h"

struct descriptor { /* 2.7.5 */
    uint64_t address;
    uint32_t size;
    uint16_t flags;
    uint16_t next;
};
_Static_assert(sizeof(struct descriptor) == 16, "2.7.5");
#define DESCRIPTOR_NEXT 1
#define DESCRIPTOR_WRITE 2
#define DESCRIPTOR_INDIRECT 4

/* Both rings: flags, index, entries, and behind them the other side's event index (2.7.6,
 * 2.7.8). */
#define RING_FLAGS 0
#define RING_INDEX 2
#define RING_ENTRIES 4
#define AVAILABLE_ENTRY_BYTES 2
#define USED_ENTRY_BYTES 8 /* id and length, 4 bytes each */
#define EVENT_BYTES 2
#define AVAILABLE_NO_INTERRUPT 1
#define USED_NO_NOTIFY 1

#define DESCRIPTORS_ALIGNMENT 16 /* 2.7 */
#define AVAILABLE_ALIGNMENT 2
#define USED_ALIGNMENT 4

/* ---- words that driver and device share ---- */

static uint16_t load_shared(const uint8_t *at, memory_order order)
{
    return atomic_load_explicit((const _Atomic uint16_t *)(const void *)at, order);
}

static void store_shared(uint8_t *at, uint16_t value, memory_order order)
{
    atomic_store_explicit((_Atomic uint16_t *)(void *)at, value, order);
}

/* The driver asks to be interrupted at this index of the used ring. */
static const uint8_t *used_event(const struct virtio_queue *queue)
{
    return queue->available + RING_ENTRIES +
           (size_t)queue->setup.size * AVAILABLE_ENTRY_BYTES;
}

/* The device asks to be notified at this index of the available ring. */
static uint8_t *available_event(const struct virtio_queue *queue)
{
    return queue->used + RING_ENTRIES + (size_t)queue->setup.size * USED_ENTRY_BYTES;
}

/* ---- set-up ---- */

void virtio_queue_init(struct virtio_queue *queue, struct memory *memory)
{
    *queue = (struct virtio_queue){.memory = memory};
}

static bool break_queue(struct virtio_queue *queue, const char *fault)
{
    queue->fault = fault;
    return false;
}

void virtio_queue_break(struct virtio_queue *queue, const char *fault)
{
    (void)break_queue(queue, fault);
}

bool virtio_queue_enable(struct virtio_queue *queue,
                         const struct virtio_queue_setup *setup)
{
    size_t size = setup->size;

    *queue = (struct virtio_queue){.memory = queue->memory};
    if (size == 0 || size > VIRTIO_QUEUE_MAX_SIZE || (size & (size - 1)) != 0)
        return break_queue(queue, "its size is no power of two, or too large");
    if (!is_aligned(setup->descriptors, DESCRIPTORS_ALIGNMENT) ||
        !is_aligned(setup->available, AVAILABLE_ALIGNMENT) ||
        !is_aligned(setup->used, USED_ALIGNMENT))
        return break_queue(queue, "a ring is not aligned");
    queue->available =
        memory_slice(queue->memory, setup->available,
                     RING_ENTRIES + size * AVAILABLE_ENTRY_BYTES + EVENT_BYTES);
    queue->used = memory_slice(queue->memory, setup->used,
                               RING_ENTRIES + size * USED_ENTRY_BYTES + EVENT_BYTES);
    if (queue->available == NULL || queue->used == NULL ||
        memory_slice(queue->memory, setup->descriptors,
                     size * sizeof(struct descriptor)) == NULL)
        return break_queue(queue, "a ring is not in memory");
    queue->setup = *setup;
    queue->enabled = true;
    return true;
}

void virtio_queue_disable(struct virtio_queue *queue)
{
    *queue = (struct virtio_queue){.memory = queue->memory};
}

/* ---- a chain ---- */

/* Where a walk along a chain is: a table of descriptors, and how many there were. */
struct walk {
    uint64_t table;
    uint32_t table_size;
    bool is_indirect;
    unsigned seen;
    unsigned limit;
};

static const char *add_buffers(struct virtio_queue *queue, struct virtio_chain *chain,
                               const struct descriptor *piece)
{
    const struct memory_region *regions = memory_regions(queue->memory);
    size_t region_count = memory_region_count(queue->memory);
    uint64_t address = piece->address;
    uint64_t left = piece->size;
    unsigned *count =
        piece->flags & DESCRIPTOR_WRITE ? &chain->writable_count : &chain->readable_count;

    for (size_t i = 0; i < region_count && left > 0; i++) {
        const struct memory_region *region = &regions[i];
        uint64_t part;

        if (address < region->gpa || address - region->gpa >= region->size_bytes)
            continue; /* regions are sorted: the next may be where it goes on */
        part = min_u64(left, region->size_bytes - (address - region->gpa));
        if (chain->readable_count + chain->writable_count == VIRTIO_CHAIN_MAX_BUFFERS)
            return "a chain has too many pieces";
        chain->buffers[chain->readable_count + chain->writable_count] =
            (struct iovec){.iov_base = (uint8_t *)region->hva + (address - region->gpa),
                           .iov_len = part};
        ++*count;
        address += part;
        left -= part;
    }
    return left == 0 ? NULL : "a buffer is not in memory";
}

static const char *add_piece(struct virtio_queue *queue, struct virtio_chain *chain,
                             const struct descriptor *piece)
{
    bool is_writable = (piece->flags & DESCRIPTOR_WRITE) != 0;
    uint32_t *sum = is_writable ? &chain->writable_bytes : &chain->readable_bytes;

    if (!is_writable && chain->writable_count > 0)
        return "a readable buffer follows a writable one"; /* 2.7.4.2 */
    if (__builtin_add_overflow(*sum, piece->size, sum))
        return "a chain has 4 GiB or more"; /* 2.7.5.2 */
    return add_buffers(queue, chain, piece);
}

/* A table of descriptors elsewhere in memory, of which the chain goes on with the first
 * (2.7.5.3). Its own WRITE flag means nothing (2.7.5.3.2). */
static const char *enter_table(struct virtio_queue *queue, struct walk *walk,
                               const struct descriptor *piece)
{
    if (!queue->setup.indirect)
        return "an indirect descriptor was not negotiated";
    if (walk->is_indirect)
        return "an indirect table leads to another";
    if (piece->flags & DESCRIPTOR_NEXT)
        return "a descriptor is indirect and has a next one";
    if (piece->size == 0 || piece->size % sizeof(struct descriptor) != 0)
        return "an indirect table has no whole descriptors";
    walk->table = piece->address;
    walk->table_size = piece->size / sizeof(struct descriptor);
    walk->is_indirect = true;
    walk->seen--; /* it leads to pieces, and is none */
    /* 2.7.5.3.1 forbids more than the queue's size here, too. Linux keeps to what the
     * type of device allows, even if it has made the queue smaller. */
    walk->limit = VIRTIO_QUEUE_MAX_SIZE;
    return NULL;
}

/* Reads descriptor `index` of the walk's table: the one time that these bytes are read.
 */
static const char *read_descriptor(struct virtio_queue *queue, struct walk *walk,
                                   uint32_t index, struct descriptor *piece)
{
    uint64_t at;

    if (index >= walk->table_size)
        return "a descriptor's number is too large";
    if (walk->seen++ == walk->limit)
        return "a chain is too long, or a loop";
    if (__builtin_add_overflow(walk->table, index * sizeof(*piece), &at) ||
        memory_read(queue->memory, at, piece, sizeof(*piece)) < 0)
        return "an indirect table is not in memory";
    return NULL;
}

static const char *walk_chain(struct virtio_queue *queue, struct virtio_chain *chain)
{
    struct walk walk = {.table = queue->setup.descriptors,
                        .table_size = queue->setup.size,
                        .limit = queue->setup.size};
    uint32_t index = chain->head;

    for (;;) {
        struct descriptor piece;
        const char *fault = read_descriptor(queue, &walk, index, &piece);

        if (fault == NULL && (piece.flags & DESCRIPTOR_INDIRECT)) {
            fault = enter_table(queue, &walk, &piece);
            index = 0;
        } else if (fault == NULL) {
            fault = add_piece(queue, chain, &piece);
            if (!(piece.flags & DESCRIPTOR_NEXT))
                return fault;
            index = piece.next;
        }
        if (fault != NULL)
            return fault;
    }
}

bool virtio_queue_take(struct virtio_queue *queue, struct virtio_chain *chain)
{
    uint16_t slot, waiting;
    const char *fault;

    if (!queue->enabled || queue->fault != NULL)
        return false;
    /* Pairs with the driver's release of the index after it has written the entry and the
     * descriptors (2.7.13.2, 2.7.13.3). */
    waiting =
        (uint16_t)(load_shared(queue->available + RING_INDEX, memory_order_acquire) -
                   queue->next_available);
    if (waiting == 0)
        return false;
    if (waiting > queue->setup.size - queue->in_flight)
        return break_queue(queue, "more chains are available than the ring has room for");
    slot = queue->next_available % queue->setup.size;
    chain->head = load_shared(queue->available + RING_ENTRIES +
                                  (size_t)slot * AVAILABLE_ENTRY_BYTES,
                              memory_order_relaxed);
    chain->readable_count = chain->writable_count = 0;
    chain->readable_bytes = chain->writable_bytes = 0;
    fault = walk_chain(queue, chain);
    if (fault != NULL)
        return break_queue(queue, fault);
    queue->next_available++;
    queue->in_flight++;
    return true;
}

/* ---- giving back ---- */

/* Before the driver can see that the chain is used. */
static void tell_written(const struct virtio_queue *queue,
                         const struct virtio_chain *chain, uint32_t written_bytes)
{
    const struct iovec *buffer = &chain->buffers[chain->readable_count];

    for (unsigned i = 0; i < chain->writable_count && written_bytes > 0; i++) {
        uint32_t size_bytes = (uint32_t)min_u64(buffer[i].iov_len, written_bytes);

        memory_slice_written(queue->memory, buffer[i].iov_base, size_bytes);
        written_bytes -= size_bytes;
    }
}

void virtio_queue_give(struct virtio_queue *queue, const struct virtio_chain *chain,
                       uint32_t written_bytes)
{
    size_t slot = queue->next_used % queue->setup.size;
    uint8_t *entry = queue->used + RING_ENTRIES + slot * USED_ENTRY_BYTES;

    CHECK(queue->in_flight > 0);
    queue->in_flight--;
    tell_written(queue, chain, written_bytes);
    store_le32(entry, chain->head);
    store_le32(entry + 4, written_bytes);
    memory_slice_written(queue->memory, entry, USED_ENTRY_BYTES);
    queue->next_used++;
    /* Pairs with the driver's acquire of the index before it reads the entry and the
     * buffers (2.7.14). */
    store_shared(queue->used + RING_INDEX, queue->next_used, memory_order_release);
}

void virtio_queue_drop(struct virtio_queue *queue, const struct virtio_chain *chain)
{
    CHECK(queue->in_flight > 0);
    queue->in_flight--;
    tell_written(queue, chain, chain->writable_bytes);
}

bool virtio_queue_wants_interrupt(struct virtio_queue *queue)
{
    uint16_t news = (uint16_t)(queue->next_used - queue->told_used);

    if (news == 0)
        return false;
    /* Pairs with the driver's barrier between asking for interrupts and a last look at
     * the used index (2.7.14): one of the two sees the other. */
    atomic_thread_fence(memory_order_seq_cst);
    queue->told_used = queue->next_used;
    if (queue->setup.event_index) {
        uint16_t event = load_shared(used_event(queue), memory_order_relaxed);

        /* True if the index has passed `event` since last time (2.7.10). */
        return (uint16_t)(queue->next_used - event - 1) < news;
    }
    return !(load_shared(queue->available + RING_FLAGS, memory_order_relaxed) &
             AVAILABLE_NO_INTERRUPT);
}

/* With an event index nothing is to be done: that of the last _listen has passed. */
void virtio_queue_mute(struct virtio_queue *queue)
{
    if (queue->enabled && !queue->setup.event_index)
        store_shared(queue->used + RING_FLAGS, USED_NO_NOTIFY, memory_order_relaxed);
}

bool virtio_queue_listen(struct virtio_queue *queue)
{
    if (!queue->enabled || queue->fault != NULL)
        return false;
    if (queue->setup.event_index)
        store_shared(available_event(queue), queue->next_available, memory_order_relaxed);
    else
        store_shared(queue->used + RING_FLAGS, 0, memory_order_relaxed);
    /* Pairs with the driver's barrier between making a chain available and looking
     * whether it must notify (2.7.13.4.1). */
    atomic_thread_fence(memory_order_seq_cst);
    return load_shared(queue->available + RING_INDEX, memory_order_relaxed) !=
           queue->next_available;
}
