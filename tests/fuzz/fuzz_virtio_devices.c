/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the guest as the enemy of each virtio device, through its PCI function:
 * configuration space, BARs that move, MSI-X, rings, notifications, resets, in any order.
 * A device that has been reset writes to memory no more, and an accelerator that rings
 * doorbells by itself is always told where they are.
 *
 * The first byte chooses the device, the second its variant. Then come steps of 8 bytes:
 * what to do, a small number, a middle one, a large one.
 */
#include <event2/event.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "virtio/pci.h"
#include "virtio_devices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEP_BYTES 8
#define RAM_BYTES (96 * KIB) /* in two spans */
#define FIRST_SPAN_BYTES (64 * KIB)
#define PATTERN 0x5a

/* The driver's places: a ring for each queue, and buffers behind them. */
#define QUEUES 4
#define RING_BYTES UINT64_C(0x2000)
#define RING_AVAILABLE 0x1000
#define RING_USED 0x1800
#define RING_MAX_SIZE 64
#define DESCRIPTOR_BYTES 16
#define BUFFERS UINT64_C(0xf000) /* near the end of a span */

#define PLACE 3
#define SLOT (PLACE * 8)
#define CONFIG_COMMAND 0x04
#define CONFIG_BAR 0x10
#define WINDOW UINT64_C(0xc0000000)
#define BAR_BYTES 0x4000
#define PART_BYTES 0x1000
#define NOTIFY 0x3000
#define STATUS 0x14

enum step_kind {
    STEP_CONFIG_READ,
    STEP_CONFIG_WRITE,
    STEP_BAR_READ,
    STEP_BAR_WRITE,
    STEP_COMMON, /* a register of the common configuration, in its width */
    STEP_MSIX,   /* a word of the table */
    STEP_MOVE,
    STEP_START, /* as a driver does it */
    STEP_STORE, /* into memory */
    STEP_DESCRIPTOR,
    STEP_REQUEST, /* a chain that means something, to a disk at least */
    STEP_OFFER,
    STEP_NOTIFY,
    STEP_SETTLE, /* the device may work */
    STEP_RESET,
    STEP_BUS_RESET,
    STEP_RESIZE,
    STEP_KINDS,
};

struct step {
    uint8_t kind;
    uint8_t small;
    uint16_t middle;
    uint32_t large;
};
_Static_assert(sizeof(struct step) == STEP_BYTES, "as the input has it");

/* What an accelerator rings without the bus. */
struct doorbell {
    uint64_t address;
    int fd;
    bool is_attached;
};

struct machine {
    struct memory *memory;
    struct loop *loop;
    struct pci_bus bus;
    struct bus mmio;
    struct virtio_pci pci;
    const struct fuzz_device_kind *kind;
    struct fuzz_device device;
    struct doorbell doorbells[PCI_FUNCTION_DOORBELLS];
    unsigned doorbells_refused;
    bool level; /* under the lock of the bus's lines */
    uint64_t bar;
};

/* ---- the rest of the machine ---- */

static void note_line(void *context, uint32_t line, bool level)
{
    struct machine *machine = context;

    CHECK(line == 16 + PLACE && machine->level != level);
    machine->level = level;
}

static void note_message(void *context, unsigned sender, uint64_t address, uint32_t data)
{
    const struct machine *machine = context;

    (void)address;
    (void)data;
    CHECK(sender < machine->bus.next_sender);
}

static bool is_in_window(const struct machine *machine, uint64_t address)
{
    for (unsigned i = 0; i < PCI_WINDOWS; i++) {
        const struct pci_window *window = &machine->bus.windows[i];

        if (address >= window->start && address < window->limit)
            return true;
    }
    return false;
}

static bool attach_doorbell(void *context, uint64_t address, int fd)
{
    struct machine *machine = context;
    struct doorbell *found = NULL;

    for (unsigned i = 0; i < ARRAY_SIZE(machine->doorbells); i++) {
        struct doorbell *doorbell = &machine->doorbells[i];

        CHECK(!doorbell->is_attached || doorbell->address != address);
        if (!doorbell->is_attached)
            found = doorbell;
    }
    if (++machine->doorbells_refused % 4 == 0)
        return false;
    CHECK(found != NULL && is_in_window(machine, address));
    *found = (struct doorbell){.address = address, .fd = fd, .is_attached = true};
    return true;
}

static struct doorbell *find_doorbell(struct machine *machine, uint64_t address)
{
    for (unsigned i = 0; i < ARRAY_SIZE(machine->doorbells); i++)
        if (machine->doorbells[i].is_attached && machine->doorbells[i].address == address)
            return &machine->doorbells[i];
    return NULL;
}

static void detach_doorbell(void *context, uint64_t address, int fd)
{
    struct doorbell *doorbell = find_doorbell(context, address);

    CHECK(doorbell != NULL && doorbell->fd == fd);
    doorbell->is_attached = false;
}

static void make_machine(struct machine *machine, uint8_t kind, uint8_t variant)
{
    const struct memory_span spans[] = {{0, FIRST_SPAN_BYTES},
                                        {FIRST_SPAN_BYTES, RAM_BYTES - FIRST_SPAN_BYTES}};
    const struct memory_options options = {.huge_pages = false};
    const struct pci_wires wires = {.set_line = note_line,
                                    .send_message = note_message,
                                    .attach_doorbell = attach_doorbell,
                                    .detach_doorbell = detach_doorbell,
                                    .context = machine};
    struct error err = ERROR_NONE;

    *machine = (struct machine){
        .bar = WINDOW, .kind = &fuzz_device_kinds[kind % fuzz_device_kind_count]};
    CHECK(memory_create(spans, ARRAY_SIZE(spans), &options, &machine->memory, &err) == 0);
    CHECK(loop_create(&machine->loop, &err) == 0);
    pci_bus_init(&machine->bus, &wires, RAM_BYTES, true);
    bus_init(&machine->mmio, "MMIO");
    CHECK(pci_bus_attach_windows(&machine->bus, &machine->mmio, &err) == 0);
    machine->device =
        (struct fuzz_device){.memory = machine->memory, .loop = machine->loop, .fd = -1};
    machine->kind->create(&machine->device, variant);
    virtio_pci_attach(&machine->pci, machine->device.device, machine->kind->class_code,
                      &machine->bus, PLACE);
}

static void drop_machine(struct machine *machine)
{
    if (machine->kind->end != NULL)
        machine->kind->end(&machine->device);
    virtio_pci_finish(&machine->pci);
    machine->kind->destroy(&machine->device);
    loop_destroy(machine->loop);
    memory_destroy(machine->memory);
}

/* ---- what a driver does ---- */

static uint32_t config_read(struct machine *machine, uint32_t offset, unsigned size)
{
    return pci_bus_read(&machine->bus, SLOT, offset, size);
}

static void config_write(struct machine *machine, uint32_t offset, unsigned size,
                         uint32_t value)
{
    pci_bus_write(&machine->bus, SLOT, offset, size, value);
}

static void store(struct machine *machine, uint64_t gpa, const void *from, size_t size)
{
    if (memory_write(machine->memory, gpa, from, size) < 0)
        return; /* not in memory: the guest has written to nobody */
}

static void store16(struct machine *machine, uint64_t gpa, uint16_t value)
{
    store(machine, gpa, &value, sizeof(value));
}

static uint16_t load16(struct machine *machine, uint64_t gpa)
{
    uint16_t value = 0;

    CHECK(memory_read(machine->memory, gpa, &value, sizeof(value)) == 0);
    return value;
}

static void common_write(struct machine *machine, unsigned offset, unsigned size,
                         uint32_t value)
{
    bus_write(&machine->mmio, machine->bar + offset, size, value);
}

/* As the processor does it: past the bus, where somebody listens there. */
static void notify(struct machine *machine, unsigned queue)
{
    uint64_t address = machine->bar + NOTIFY + UINT64_C(4) * queue;
    const struct doorbell *doorbell = find_doorbell(machine, address);

    if (doorbell != NULL)
        CHECK(eventfd_write(doorbell->fd, 1) == 0);
    else
        bus_write(&machine->mmio, address, 2, queue);
}

static void settle(struct machine *machine)
{
    CHECK(event_base_loop(loop_event_base(machine->loop), EVLOOP_NONBLOCK) >= 0);
    for (unsigned i = 0; i < 10; i++)
        CHECK(sched_yield() == 0);
}

/* Puts the function where the driver finds it, whatever was done to it before. */
static void place_function(struct machine *machine, uint64_t bar)
{
    machine->bar = bar;
    config_write(machine, CONFIG_BAR, 4, (uint32_t)bar);
    config_write(machine, CONFIG_COMMAND, 2, 0x0006); /* memory, bus master */
}

static void reset_device(struct machine *machine)
{
    uint8_t pattern[RAM_BYTES];

    place_function(machine, WINDOW);
    common_write(machine, STATUS, 1, 0);
    while (bus_read(&machine->mmio, machine->bar + STATUS, 1) != 0)
        settle(machine);
    memset(pattern, PATTERN, sizeof(pattern));
    store(machine, 0, pattern, FIRST_SPAN_BYTES);
    settle(machine);
    CHECK(memcmp(pattern, memory_slice(machine->memory, 0, FIRST_SPAN_BYTES),
                 FIRST_SPAN_BYTES) == 0);
    for (unsigned queue = 0; queue < QUEUES; queue++) {
        store16(machine, queue * RING_BYTES + RING_AVAILABLE, 0);
        store16(machine, queue * RING_BYTES + RING_AVAILABLE + 2, 0);
    }
}

/* The machine's, which comes when nothing is in flight any more. */
static void reset_bus(struct machine *machine)
{
    reset_device(machine);
    pci_bus_reset(&machine->bus);
    for (unsigned i = 0; i < ARRAY_SIZE(machine->doorbells); i++)
        CHECK(!machine->doorbells[i].is_attached);
    CHECK(!machine->level);
    machine->bar = WINDOW;
}

static void start_queue(struct machine *machine, uint16_t queue, uint16_t size)
{
    uint64_t ring = queue * RING_BYTES;

    common_write(machine, 0x16, 2, queue);
    common_write(machine, 0x18, 2, size);
    common_write(machine, 0x1a, 2, queue);
    common_write(machine, 0x20, 4, (uint32_t)ring);
    common_write(machine, 0x28, 4, (uint32_t)ring + RING_AVAILABLE);
    common_write(machine, 0x30, 4, (uint32_t)ring + RING_USED);
    common_write(machine, 0x1c, 2, 1);
}

static void start(struct machine *machine, const struct step *step)
{
    unsigned msix = machine->pci.function.msix.capability;

    reset_device(machine);
    config_write(machine, msix + 2, 2, step->small & 0x2 ? 0x8000 : 0);
    common_write(machine, STATUS, 1, 0x03);
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t offered;

        common_write(machine, 0x00, 4, half);
        offered = (uint32_t)bus_read(&machine->mmio, machine->bar + 0x04, 4);
        common_write(machine, 0x08, 4, half);
        common_write(machine, 0x0c, 4, half == 0 ? offered & step->large : offered);
    }
    common_write(machine, STATUS, 1, 0x0b);
    for (uint16_t queue = 0; queue < QUEUES; queue++)
        start_queue(machine, queue, (uint16_t)(1u << step->middle % 7));
    common_write(machine, STATUS, 1, 0x0f);
}

static void put_descriptor(struct machine *machine, unsigned queue, unsigned index,
                           uint64_t address, uint32_t size, uint16_t flags, uint16_t next)
{
    uint8_t bytes[DESCRIPTOR_BYTES];

    store_le64(bytes, address);
    store_le32(bytes + 8, size);
    store_le16(bytes + 12, flags);
    store_le16(bytes + 14, next);
    store(machine, queue * RING_BYTES + index * sizeof(bytes), bytes, sizeof(bytes));
}

static void offer(struct machine *machine, unsigned queue, uint16_t head, uint16_t count)
{
    uint64_t ring = queue * RING_BYTES + RING_AVAILABLE;
    uint16_t index = load16(machine, ring + 2);
    uint16_t size = machine->device.device->queues[queue].setup.size;

    if (size > 0)
        store16(machine, ring + 4 + UINT64_C(2) * (index % size), head);
    store16(machine, ring + 2, (uint16_t)(index + count));
}

/* A head of two words and a sector, data to read or to write, and a byte for the answer:
 * a disk's request, and to others one with some surplus. */
static void request(struct machine *machine, const struct step *step)
{
    unsigned queue = step->small % 2;
    uint8_t head[16] = {step->small >> 2 & 0xf};
    uint16_t data_flags = step->small & 0x40 ? 1 : 3;

    store_le64(head + 8, step->middle % 256);
    store(machine, BUFFERS, head, sizeof(head));
    put_descriptor(machine, queue, 0, BUFFERS, sizeof(head), 1, 1);
    put_descriptor(machine, queue, 1, BUFFERS + 0x200, step->large % 0x3000, data_flags,
                   2);
    put_descriptor(machine, queue, 2, BUFFERS + 0x100, 1, 2, 0);
    offer(machine, queue, step->small & 0x80 ? 1 : 0, 1);
    notify(machine, queue);
}

/* ---- any step ---- */

static void access_config(struct machine *machine, const struct step *step)
{
    unsigned size = 1u << step->small % 3;
    uint32_t offset = step->middle % (step->small & 0x80 ? PCI_CONFIG_BYTES : 256);

    if (step->kind % STEP_KINDS == STEP_CONFIG_WRITE)
        config_write(machine, offset, size, step->large);
    else
        (void)config_read(machine, offset, size);
}

static void access_bar(struct machine *machine, const struct step *step)
{
    static const uint8_t sizes[] = {1, 2, 4, 8, 3, 7};
    unsigned size = sizes[step->small % ARRAY_SIZE(sizes)];
    uint64_t address = machine->bar + step->middle % (BAR_BYTES + PART_BYTES);

    if (step->kind % STEP_KINDS == STEP_BAR_WRITE)
        bus_write(&machine->mmio, address, size, step->large);
    else
        CHECK(size == 8 || bus_read(&machine->mmio, address, size) >> (8 * size) == 0);
}

static void write_common(struct machine *machine, const struct step *step)
{
    static const struct {
        uint8_t offset;
        uint8_t size;
    } registers[] = {
        {0x00, 4}, {0x08, 4}, {0x0c, 4}, {0x10, 2}, {0x14, 1}, {0x16, 2},
        {0x18, 2}, {0x1a, 2}, {0x1c, 2}, {0x20, 4}, {0x24, 4}, {0x28, 4},
        {0x2c, 4}, {0x30, 4}, {0x34, 4}, {0x38, 2}, {0x3a, 2},
    };
    unsigned which = step->small % ARRAY_SIZE(registers);

    common_write(machine, registers[which].offset, registers[which].size,
                 step->middle % 2 ? step->middle / 2 : step->large);
}

static void move_function(struct machine *machine, const struct step *step)
{
    static const uint32_t places[] = {0xc0000000, 0xc0004000, 0xd0000000, 0xdfffc000,
                                      0xe0000000, 0,          0xffffc000, 0xfebfc000};

    place_function(machine, places[step->small % ARRAY_SIZE(places)]);
}

static void do_step(struct machine *machine, const struct step *step)
{
    unsigned queue = step->small % QUEUES;
    uint8_t small = step->small;

    switch ((enum step_kind)(step->kind % STEP_KINDS)) {
    case STEP_CONFIG_READ:
    case STEP_CONFIG_WRITE:
        access_config(machine, step);
        break;
    case STEP_BAR_READ:
    case STEP_BAR_WRITE:
        access_bar(machine, step);
        break;
    case STEP_COMMON:
        write_common(machine, step);
        break;
    case STEP_MSIX:
        bus_write(&machine->mmio, WINDOW + BAR_BYTES + UINT64_C(4) * small, 4,
                  step->large);
        break;
    case STEP_MOVE:
        move_function(machine, step);
        break;
    case STEP_START:
        start(machine, step);
        break;
    case STEP_STORE:
        store(machine, step->middle, &step->large, sizeof(step->large));
        break;
    case STEP_DESCRIPTOR:
        put_descriptor(machine, queue, small >> 2, step->large >> 12 & 0x1ffff,
                       step->large & 0xfff, step->middle & 7, step->middle >> 8);
        break;
    case STEP_REQUEST:
        request(machine, step);
        break;
    case STEP_OFFER:
        offer(machine, queue, step->middle, (uint16_t)step->large);
        break;
    case STEP_NOTIFY:
        notify(machine, small % 8);
        break;
    case STEP_SETTLE:
        settle(machine);
        break;
    case STEP_RESET:
        reset_device(machine);
        break;
    case STEP_BUS_RESET:
        reset_bus(machine);
        break;
    case STEP_RESIZE:
        if (machine->kind->resize != NULL)
            machine->kind->resize(&machine->device,
                                  (1 + step->middle % 256) * UINT64_C(512));
        break;
    case STEP_KINDS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct machine machine;

    if (size < 2)
        return 0;
    make_machine(&machine, data[0], data[1]);
    for (data += 2, size -= 2; size >= STEP_BYTES;
         data += STEP_BYTES, size -= STEP_BYTES) {
        struct step step;

        memcpy(&step, data, sizeof(step));
        do_step(&machine, &step);
    }
    reset_bus(&machine);
    drop_machine(&machine);
    return 0;
}
