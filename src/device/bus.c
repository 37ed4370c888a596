/* SPDX-License-Identifier: Apache-2.0 */
/* Finding who answers at an address; see bus.h. */
#include "device/bus.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define BUS_MAX_ACCESS_BYTES 8

void bus_init(struct bus *bus, const char *name)
{
    *bus = (struct bus){.name = name};
}

/* Index of the first range that starts above `address`: where one that starts there would
 * be inserted, and one past the only range that can contain it. */
static size_t bus_index_above(const struct bus *bus, uint64_t address)
{
    size_t low = 0;
    size_t high = bus->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (bus->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int bus_overlap_error(const struct bus *bus, const struct bus_range *wanted,
                             const struct bus_range *other, struct error *err)
{
    return error_set(
        err, EADDRNOTAVAIL,
        "%s needs %s addresses 0x%" PRIx64 " to 0x%" PRIx64 ", but %s has 0x%" PRIx64
        " to 0x%" PRIx64 "; choose another address",
        wanted->ops->name, bus->name, wanted->start, wanted->start + (wanted->size - 1),
        other->ops->name, other->start, other->start + (other->size - 1));
}

int bus_attach(struct bus *bus, uint64_t start, uint64_t size, const struct bus_ops *ops,
               void *device, struct error *err)
{
    struct bus_range wanted = {
        .start = start, .size = size, .ops = ops, .device = device};
    size_t index = bus_index_above(bus, start);

    CHECK(ops->width_bytes != 0 && ops->width_bytes <= BUS_MAX_ACCESS_BYTES);
    if (size == 0 || !range_within(start, size, UINT64_MAX)) {
        return error_set(err, EINVAL,
                         "%s cannot have %" PRIu64 " bytes at %s address 0x%" PRIx64,
                         ops->name, size, bus->name, start);
    }
    if (index > 0 && ranges_overlap(start, size, bus->ranges[index - 1].start,
                                    bus->ranges[index - 1].size))
        return bus_overlap_error(bus, &wanted, &bus->ranges[index - 1], err);
    if (index < bus->count &&
        ranges_overlap(start, size, bus->ranges[index].start, bus->ranges[index].size))
        return bus_overlap_error(bus, &wanted, &bus->ranges[index], err);
    if (bus->count == BUS_MAX_RANGES) {
        return error_set(err, ENOSPC,
                         "no room for %s on the %s bus: it has all its %d ranges",
                         ops->name, bus->name, BUS_MAX_RANGES);
    }
    memmove(&bus->ranges[index + 1], &bus->ranges[index],
            (bus->count - index) * sizeof(bus->ranges[0]));
    bus->ranges[index] = wanted;
    bus->count++;
    return 0;
}

static const struct bus_range *bus_find(const struct bus *bus, uint64_t address)
{
    size_t index = bus_index_above(bus, address);
    const struct bus_range *range = index > 0 ? &bus->ranges[index - 1] : NULL;

    return range && address - range->start < range->size ? range : NULL;
}

/* In pieces of how many bytes an access is done. */
static unsigned bus_piece_bytes(const struct bus *bus, uint64_t address, unsigned size)
{
    const struct bus_range *range = bus_find(bus, address);

    if (!range || !range_within(address - range->start, size, range->size))
        return 1;
    if ((size & (size - 1)) != 0)
        return 1;
    return (unsigned)min_u64(size, range->ops->width_bytes);
}

static uint64_t bus_piece_mask(unsigned bytes)
{
    return UINT64_MAX >> (64 - 8 * bytes);
}

uint64_t bus_read(const struct bus *bus, uint64_t address, unsigned size)
{
    unsigned piece_bytes;
    uint64_t value = 0;

    CHECK(size >= 1 && size <= BUS_MAX_ACCESS_BYTES);
    piece_bytes = bus_piece_bytes(bus, address, size);
    for (unsigned done = 0; done < size; done += piece_bytes) {
        const struct bus_range *range = bus_find(bus, address + done);
        uint64_t piece = UINT64_MAX;

        if (range)
            piece = range->ops->read(range->device, address + done - range->start,
                                     piece_bytes);
        value |= (piece & bus_piece_mask(piece_bytes)) << (8 * done);
    }
    return value;
}

void bus_write(const struct bus *bus, uint64_t address, unsigned size, uint64_t value)
{
    unsigned piece_bytes;

    CHECK(size >= 1 && size <= BUS_MAX_ACCESS_BYTES);
    piece_bytes = bus_piece_bytes(bus, address, size);
    for (unsigned done = 0; done < size; done += piece_bytes) {
        const struct bus_range *range = bus_find(bus, address + done);

        if (range)
            range->ops->write(range->device, address + done - range->start, piece_bytes,
                              (value >> (8 * done)) & bus_piece_mask(piece_bytes));
    }
}

void bus_read_string(const struct bus *bus, uint64_t address, unsigned size,
                     uint32_t count, uint8_t *data)
{
    const struct bus_range *range = bus_find(bus, address);

    CHECK(size >= 1 && size <= BUS_MAX_ACCESS_BYTES);
    if (range && range->ops->read_string && bus_piece_bytes(bus, address, size) == size) {
        range->ops->read_string(range->device, address - range->start, size, count, data);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t value = bus_read(bus, address, size);

        memcpy(data + (size_t)i * size, &value, size);
    }
}
