/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of PCI functions beyond a plain BAR: 64-bit registers and the window above RAM,
 * and doorbells that take a short cut past the bus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/check.h"
#include "device/pci_function.h"

#define WINDOW UINT64_C(0xc0000000)
#define HIGH_WINDOW UINT64_C(0x1000000000) /* 64 GiB: memory ends within the 32 below */
#define HIGH_WINDOW_LIMIT UINT64_C(0x1800000000)
#define MEMORY_END (33 * GIB)
#define LARGE_BYTES (8 * GIB)
#define SLOT (2 * 8)
#define COMMAND 0x04
#define MEMORY 0x2
#define BAR(index) (0x10 + 4u * (index))
#define DOORBELL_OFFSET 0x300
#define FD 77

struct machine {
    struct pci_bus bus;
    struct bus mmio;
    struct pci_function function;
    struct pci_function other;

    bool refuses; /* to attach */
    unsigned attached;
    unsigned detached;
    uint64_t attached_at;
    uint64_t detached_at;
};

static uint64_t register_read(void *device, uint64_t offset, unsigned size)
{
    (void)device;
    (void)size;
    return offset >> 8;
}

static void register_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    (void)device;
    (void)offset;
    (void)size;
    (void)value;
}

static const struct bus_ops register_ops = {.name = "registers",
                                            .width_bytes = 4,
                                            .read = register_read,
                                            .write = register_write};

static uint32_t config_read(void *function, uint32_t offset, unsigned size)
{
    return pci_function_read(function, offset, size);
}

static void config_write(void *function, uint32_t offset, unsigned size, uint32_t value)
{
    pci_function_write(function, offset, size, value);
}

static void config_reset(void *function)
{
    pci_function_reset(function);
}

static const struct pci_function_ops function_ops = {
    .config_read = config_read, .config_write = config_write, .reset = config_reset};

static bool attach_doorbell(void *context, uint64_t address, int fd)
{
    struct machine *machine = context;

    assert_int_equal(fd, FD);
    machine->attached++;
    machine->attached_at = address;
    return !machine->refuses;
}

static void detach_doorbell(void *context, uint64_t address, int fd)
{
    struct machine *machine = context;

    assert_int_equal(fd, FD);
    machine->detached++;
    machine->detached_at = address;
}

static void add_function(struct machine *machine, struct pci_function *function,
                         unsigned device)
{
    const struct pci_identity identity = {.vendor = 0x1af4};

    pci_function_init(function, &identity);
    pci_function_add_bar(function, 0, PCI_BAR_32_BIT, 0x4000, &register_ops, machine);
    pci_function_add_bar(function, 1, PCI_BAR_64_BIT_PREFETCHABLE, LARGE_BYTES,
                         &register_ops, machine);
    pci_function_add_bar(function, 4, PCI_BAR_64_BIT, MIB, &register_ops, machine);
    pci_function_attach(function, &machine->bus, device, 0, &function_ops, function);
}

static void make_machine(struct machine *machine, bool has_short_cuts)
{
    const struct pci_wires wires = {
        .attach_doorbell = has_short_cuts ? attach_doorbell : NULL,
        .detach_doorbell = has_short_cuts ? detach_doorbell : NULL,
        .context = machine};
    struct error err = ERROR_NONE;

    *machine = (struct machine){.attached = 0};
    pci_bus_init(&machine->bus, &wires, MEMORY_END, true);
    bus_init(&machine->mmio, "MMIO");
    CHECK(pci_bus_attach_windows(&machine->bus, &machine->mmio, &err) == 0);
    add_function(machine, &machine->function, 2);
    add_function(machine, &machine->other, 3);
}

static int setup(void **state)
{
    static struct machine machine;

    make_machine(&machine, true);
    *state = &machine;
    return 0;
}

static uint32_t get(struct machine *machine, uint32_t offset)
{
    return pci_bus_read(&machine->bus, SLOT, offset, 4);
}

static void set(struct machine *machine, uint32_t offset, uint32_t value)
{
    pci_bus_write(&machine->bus, SLOT, offset, 4, value);
}

static uint32_t load(struct machine *machine, uint64_t address)
{
    return (uint32_t)bus_read(&machine->mmio, address, 4);
}

static void take_short_cut(struct machine *machine, unsigned bar)
{
    pci_function_take_short_cut(&machine->function, 3, bar, DOORBELL_OFFSET, FD);
}

/* ---- 64 bits ---- */

static void registers_tell_kind_and_size(void **state)
{
    struct machine *machine = *state;

    for (unsigned i = 0; i < 6; i++)
        set(machine, BAR(i), 0xffffffff);
    assert_int_equal(get(machine, BAR(0)), 0xffffc000);
    assert_int_equal(get(machine, BAR(1)), 0x0000000c); /* 8 GiB, prefetchable */
    assert_int_equal(get(machine, BAR(2)), 0xfffffffe);
    assert_int_equal(get(machine, BAR(3)), 0);
    assert_int_equal(get(machine, BAR(4)), 0xfff00004);
    assert_int_equal(get(machine, BAR(5)), 0xffffffff);
}

static void large_memory_has_its_home_above_ram(void **state)
{
    struct machine *machine = *state;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(get(machine, BAR(1)), 0x0000000c);
        assert_int_equal(get(machine, BAR(2)), HIGH_WINDOW >> 32);
        assert_int_equal(get(machine, BAR(4)), WINDOW + MIB + 4);
        assert_int_equal(get(machine, BAR(5)), 0);
        assert_int_equal(pci_bus_read(&machine->bus, SLOT + 8, BAR(2), 4),
                         (HIGH_WINDOW + LARGE_BYTES) >> 32);
        assert_int_equal(load(machine, HIGH_WINDOW + 4 * GIB + 0x100), 0x1000001);
        set(machine, BAR(1), 0);
        set(machine, BAR(2), (uint32_t)((HIGH_WINDOW + 2 * LARGE_BYTES) >> 32));
        assert_int_equal(load(machine, HIGH_WINDOW), 0xffffffff);
        pci_bus_reset(&machine->bus);
    }
}

static void memory_answers_in_all_windows_and_nowhere_else(void **state)
{
    static const struct {
        uint64_t start;
        uint32_t answer;
    } places[] = {
        {HIGH_WINDOW_LIMIT - MIB, 1},
        {0xd0000000, 1},
        {HIGH_WINDOW_LIMIT, 0xffffffff},
        {HIGH_WINDOW - MIB, 0xffffffff},
        {0xfeb00000, 1},
        {0xfec00000, 0xffffffff},
        {0xf0000000, 1},
        {0xf0000000 - MIB, 0xffffffff},
        {0x40000000, 0xffffffff},
        {UINT64_MAX - MIB + 1, 0xffffffff},
    };
    struct machine *machine = *state;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        set(machine, BAR(4), (uint32_t)places[i].start);
        set(machine, BAR(5), (uint32_t)(places[i].start >> 32));
        assert_int_equal(load(machine, places[i].start + 0x100), places[i].answer);
    }
}

static void the_window_follows_the_end_of_memory(void **state)
{
    static const struct {
        uint64_t memory_end;
        uint64_t start;
    } machines[] = {
        {256 * MIB, 32 * GIB},
        {32 * GIB, 32 * GIB},
        {32 * GIB + 1, 64 * GIB},
        {1000 * GIB, 1024 * GIB},
    };
    const struct pci_wires wires = {.context = NULL};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
        struct pci_bus bus;

        pci_bus_init(&bus, &wires, machines[i].memory_end, true);
        assert_int_equal(bus.windows[PCI_WINDOW_HIGH].start, machines[i].start);
        assert_int_equal(bus.windows[PCI_WINDOW_HIGH].limit,
                         machines[i].start + 32 * GIB);
    }
}

/* ---- doorbells ---- */

static void a_doorbell_is_attached_once_where_its_bar_is(void **state)
{
    struct machine *machine = *state;

    take_short_cut(machine, 0);
    take_short_cut(machine, 0);
    assert_int_equal(machine->attached, 1);
    assert_int_equal(machine->attached_at, WINDOW + DOORBELL_OFFSET);
    pci_function_take_short_cut(&machine->function, 4, 1, DOORBELL_OFFSET, FD);
    assert_int_equal(machine->attached, 2);
    assert_int_equal(machine->attached_at, HIGH_WINDOW + DOORBELL_OFFSET);
    assert_int_equal(machine->detached, 0);
}

static void a_doorbell_leaves_its_place_when_its_bar_does(void **state)
{
    struct machine *machine = *state;

    take_short_cut(machine, 0);
    set(machine, BAR(1), 0);          /* another BAR */
    set(machine, BAR(0), WINDOW + 1); /* the same place */
    set(machine, COMMAND, MEMORY);
    assert_int_equal(machine->detached, 0);
    set(machine, BAR(0), 0xd0000000);
    assert_int_equal(machine->detached, 1);
    assert_int_equal(machine->detached_at, WINDOW + DOORBELL_OFFSET);
    take_short_cut(machine, 0);
    assert_int_equal(machine->attached, 2);
    assert_int_equal(machine->attached_at, 0xd0000000 + DOORBELL_OFFSET);
    set(machine, COMMAND, 0);
    assert_int_equal(machine->detached, 2);
    set(machine, COMMAND, MEMORY);
    assert_int_equal(machine->attached, 2); /* not before somebody rings */
}

/* A machine that is reset gets another accelerator, which knows of nothing. */
static void a_reset_forgets_doorbells_even_if_their_bars_stay(void **state)
{
    struct machine *machine = *state;

    take_short_cut(machine, 0);
    pci_bus_reset(&machine->bus);
    assert_int_equal(machine->detached, 1);
    take_short_cut(machine, 0);
    assert_int_equal(machine->attached, 2);
    assert_int_equal(machine->attached_at, WINDOW + DOORBELL_OFFSET);
}

/* By a window in configuration space, a guest reaches a BAR that is elsewhere. */
static void a_doorbell_that_the_bus_does_not_reach_is_not_attached(void **state)
{
    static const uint32_t places[] = {
        0,          /* RAM */
        0xe0000000, /* behind the window */
        0xfffff000, /* the last page */
    };
    struct machine *machine = *state;

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        set(machine, BAR(0), places[i]);
        take_short_cut(machine, 0);
    }
    set(machine, COMMAND, 0);
    take_short_cut(machine, 0);
    assert_int_equal(machine->attached, 0);
}

/* The other function comes later on the bus, so it is not the one that answers. */
static void a_doorbell_below_another_bar_is_not_attached(void **state)
{
    struct machine *machine = *state;

    pci_bus_write(&machine->bus, SLOT + 8, BAR(0), 4, WINDOW);
    pci_function_take_short_cut(&machine->other, 3, 0, DOORBELL_OFFSET, FD);
    assert_int_equal(machine->attached, 0);
    take_short_cut(machine, 0);
    assert_int_equal(machine->attached, 1);
}

static void a_doorbell_that_is_refused_is_tried_again_and_never_detached(void **state)
{
    struct machine *machine = *state;

    machine->refuses = true;
    take_short_cut(machine, 0);
    set(machine, BAR(0), 0xd0000000);
    assert_int_equal(machine->detached, 0);
    machine->refuses = false;
    take_short_cut(machine, 0);
    assert_int_equal(machine->attached, 2);
}

static void without_short_cuts_nothing_happens(void **state)
{
    static struct machine machine;

    (void)state;
    make_machine(&machine, false);
    take_short_cut(&machine, 0);
    set(&machine, BAR(0), 0xd0000000);
    pci_bus_reset(&machine.bus);
    assert_int_equal(machine.attached, 0);
}

#define MACHINE_TEST(function) cmocka_unit_test_setup(function, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(registers_tell_kind_and_size),
        MACHINE_TEST(large_memory_has_its_home_above_ram),
        MACHINE_TEST(memory_answers_in_all_windows_and_nowhere_else),
        cmocka_unit_test(the_window_follows_the_end_of_memory),
        MACHINE_TEST(a_doorbell_is_attached_once_where_its_bar_is),
        MACHINE_TEST(a_doorbell_leaves_its_place_when_its_bar_does),
        MACHINE_TEST(a_reset_forgets_doorbells_even_if_their_bars_stay),
        MACHINE_TEST(a_doorbell_that_the_bus_does_not_reach_is_not_attached),
        MACHINE_TEST(a_doorbell_below_another_bar_is_not_attached),
        MACHINE_TEST(a_doorbell_that_is_refused_is_tried_again_and_never_detached),
        cmocka_unit_test(without_short_cuts_nothing_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
