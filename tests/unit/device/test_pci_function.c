/* SPDX-License-Identifier: Apache-2.0 */
/* An ordinary PCI function: what a guest can change, where its memory answers, and how
 * its interrupts get out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/check.h"
#include "device/pci_function.h"

#define WINDOW 0xc0000000
#define COMMAND 0x04
#define STATUS 0x06
#define MEMORY 0x2
#define MASTER 0x4
#define NO_LINE 0x400
#define BAR0 0x10
#define BAR1 0x14
#define VECTORS 3

/* Two functions with equal numbers modulo 8, so that they share a line. */
struct machine {
    struct pci_bus bus;
    struct bus mmio;
    struct pci_function first;
    struct pci_function second;

    unsigned line_changes;
    uint32_t line;
    bool level;
    unsigned messages;
    unsigned message_sender;
    uint64_t message_address;
    uint32_t message_data;
    uint64_t last_write; /* offset in the upper half, value in the lower */
};

static void note_line(void *context, uint32_t line, bool level)
{
    struct machine *machine = context;

    machine->line_changes++;
    machine->line = line;
    machine->level = level;
}

static void note_message(void *context, unsigned sender, uint64_t address, uint32_t data)
{
    struct machine *machine = context;

    machine->message_sender = sender;
    machine->messages++;
    machine->message_address = address;
    machine->message_data = data;
}

static uint64_t register_read(void *device, uint64_t offset, unsigned size)
{
    (void)device;
    return UINT64_C(0x10000) * size + offset;
}

static void register_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct machine *machine = device;

    (void)size;
    machine->last_write = offset << 32 | value;
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

static const struct pci_identity identity = {
    .vendor = 0x1af4,
    .device = 0x1044,
    .class_code = 0x010203,
    .revision = 7,
    .subsystem_vendor = 0x1111,
    .subsystem = 0x2222,
};

static void add_function(struct machine *machine, struct pci_function *function,
                         unsigned device)
{
    static const uint8_t capability[] = {0x09, 0, 6, 0xaa, 0xbb, 0xcc};
    unsigned at;

    pci_function_init(function, &identity);
    pci_function_add_bar(function, 0, PCI_BAR_32_BIT, 0x4000, &register_ops, machine);
    at = pci_function_add_capability(function, capability, sizeof(capability));
    assert_int_equal(at, 0x40);
    pci_function_let_write(function, at + 4, 1);
    pci_function_add_msix(function, 1, VECTORS);
    pci_function_attach(function, &machine->bus, device, 0, &function_ops, function);
}

static void make_machine(struct machine *machine, bool has_homes)
{
    const struct pci_wires wires = {
        .set_line = note_line, .send_message = note_message, .context = machine};
    struct error err = ERROR_NONE;

    *machine = (struct machine){.line = 0};
    pci_bus_init(&machine->bus, &wires, 2 * MIB, has_homes);
    bus_init(&machine->mmio, "MMIO");
    CHECK(pci_bus_attach_windows(&machine->bus, &machine->mmio, &err) == 0);
    add_function(machine, &machine->first, 2);
    add_function(machine, &machine->second, 10);
    machine->line_changes = 0;
}

static int setup(void **state)
{
    static struct machine machine;

    make_machine(&machine, true);
    *state = &machine;
    return 0;
}

static uint32_t get(struct machine *machine, unsigned device, uint32_t offset,
                    unsigned size)
{
    return pci_bus_read(&machine->bus, device * 8, offset, size);
}

static void set(struct machine *machine, unsigned device, uint32_t offset, unsigned size,
                uint32_t value)
{
    pci_bus_write(&machine->bus, device * 8, offset, size, value);
}

static uint32_t load(struct machine *machine, uint64_t address)
{
    return (uint32_t)bus_read(&machine->mmio, address, 4);
}

static void store(struct machine *machine, uint64_t address, uint32_t value)
{
    bus_write(&machine->mmio, address, 4, value);
}

/* ---- configuration space ---- */

static void header_says_who_it_is(void **state)
{
    struct machine *machine = *state;

    assert_int_equal(get(machine, 2, 0x00, 4), 0x10441af4);
    assert_int_equal(get(machine, 2, 0x08, 4), 0x01020307);
    assert_int_equal(get(machine, 2, 0x0e, 1), 0x00);
    assert_int_equal(get(machine, 2, 0x2c, 4), 0x22221111);
    assert_int_equal(get(machine, 2, 0x3c, 2), 0x01ff);
    assert_int_equal(get(machine, 2, STATUS, 2), 0x0010);
    assert_int_equal(get(machine, 2, 0xfc, 4), 0);
    assert_int_equal(get(machine, 2, 0x100, 4), 0); /* no extended capability */
}

static void capabilities_form_a_list(void **state)
{
    struct machine *machine = *state;

    assert_int_equal(get(machine, 2, 0x34, 1), 0x40);
    assert_int_equal(get(machine, 2, 0x40, 4), 0xaa064809);
    assert_int_equal(get(machine, 2, 0x48, 4), 0x00020011); /* three vectors, the end */
    assert_int_equal(get(machine, 2, 0x4c, 4), 0x00000001);
    assert_int_equal(get(machine, 2, 0x50, 4), 0x00000801);
}

static void only_what_may_be_written_changes(void **state)
{
    struct machine *machine = *state;

    for (uint32_t offset = 0; offset < 0x1000; offset += 4)
        set(machine, 2, offset, 4, 0xffffffff);
    assert_int_equal(get(machine, 2, 0x00, 4), 0x10441af4);
    assert_int_equal(get(machine, 2, COMMAND, 4), 0x00100406);
    assert_int_equal(get(machine, 2, 0x08, 4), 0x01020307);
    assert_int_equal(get(machine, 2, 0x18, 4), 0);
    assert_int_equal(get(machine, 2, 0x30, 4), 0); /* no ROM */
    assert_int_equal(get(machine, 2, 0x3c, 4), 0x000001ff);
    assert_int_equal(get(machine, 2, 0x40, 4), 0xaa064809);
    assert_int_equal(get(machine, 2, 0x44, 4), 0x0000ccff);
    assert_int_equal(get(machine, 2, 0x48, 4), 0xc0020011);
    assert_int_equal(get(machine, 2, 0x100, 4), 0);
}

static void bar_tells_its_size(void **state)
{
    struct machine *machine = *state;

    set(machine, 2, BAR0, 4, 0xffffffff);
    set(machine, 2, BAR1, 4, 0xffffffff);
    assert_int_equal(get(machine, 2, BAR0, 4), 0xffffc000);
    assert_int_equal(get(machine, 2, BAR1, 4), 0xfffff000);
}

/* ---- memory ---- */

static void bars_have_a_home_that_a_reset_restores(void **state)
{
    struct machine *machine = *state;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(get(machine, 2, BAR0, 4), WINDOW);
        assert_int_equal(get(machine, 2, BAR1, 4), WINDOW + 0x4000);
        assert_int_equal(get(machine, 10, BAR0, 4), WINDOW + 0x8000); /* aligned */
        assert_int_equal(get(machine, 10, BAR1, 4), WINDOW + 0xc000);
        assert_int_equal(get(machine, 2, COMMAND, 2), MEMORY);
        assert_int_equal(load(machine, WINDOW + 0x123c), 0x4123c);
        set(machine, 2, BAR0, 4, 0xd0000000);
        set(machine, 2, COMMAND, 2, 0);
        pci_bus_reset(&machine->bus);
    }
}

static void firmware_finds_bars_that_are_nowhere(void **state)
{
    static struct machine machine;

    (void)state;
    make_machine(&machine, false);
    assert_int_equal(get(&machine, 2, BAR0, 4), 0);
    assert_int_equal(get(&machine, 2, COMMAND, 2), 0);
    assert_int_equal(load(&machine, WINDOW), 0xffffffff);
    set(&machine, 2, BAR0, 4, WINDOW);
    assert_int_equal(load(&machine, WINDOW), 0xffffffff); /* not switched on */
    set(&machine, 2, COMMAND, 2, MEMORY);
    assert_int_equal(load(&machine, WINDOW), 0x40000);
}

static void bar_answers_where_the_guest_has_moved_it(void **state)
{
    struct machine *machine = *state;

    set(machine, 2, BAR0, 4, 0xdfffc123); /* the low bits are no address */
    assert_int_equal(get(machine, 2, BAR0, 4), 0xdfffc000);
    assert_int_equal(load(machine, WINDOW), 0xffffffff);
    assert_int_equal(load(machine, 0xdffffffc), 0x43ffc);
    store(machine, 0xdfffc010, 0x1234);
    assert_true(machine->last_write == UINT64_C(0x0000001000001234));
    assert_int_equal(load(machine, 0xdfffbffc), 0xffffffff);
    set(machine, 2, COMMAND, 2, 0);
    assert_int_equal(load(machine, 0xdfffc000), 0xffffffff);
}

static void bar_outside_the_window_answers_nowhere(void **state)
{
    static const uint32_t places[] = {0, 0x00100000, 0xbfffc000, 0xe0000000, 0xffffc000};
    struct machine *machine = *state;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        set(machine, 2, BAR0, 4, places[i]);
        assert_int_equal(load(machine, places[i]), 0xffffffff);
        assert_int_equal(load(machine, WINDOW), 0xffffffff);
    }
}

static void access_that_leaves_a_bar_goes_nowhere(void **state)
{
    struct machine *machine = *state;

    assert_int_equal(bus_read(&machine->mmio, WINDOW + 0x3ffe, 2), 0x3ffe);
    assert_int_equal(bus_read(&machine->mmio, WINDOW + 0x3ffe, 4), 0xffffffff);
    assert_int_equal(bus_read(&machine->mmio, 0xdffffffe, 4), 0xffffffff);
}

/* ---- the interrupt pin ---- */

static void line_is_up_as_long_as_one_of_those_that_share_it_is(void **state)
{
    struct machine *machine = *state;

    pci_function_set_line(&machine->first, true);
    assert_int_equal(machine->line, 18);
    assert_true(machine->level);
    pci_function_set_line(&machine->second, true);
    pci_function_set_line(&machine->first, true);
    pci_function_set_line(&machine->first, false);
    assert_int_equal(machine->line_changes, 1);
    assert_int_equal(get(machine, 2, STATUS, 2), 0x0010);
    assert_int_equal(get(machine, 10, STATUS, 2), 0x0018);
    pci_function_set_line(&machine->second, false);
    assert_int_equal(machine->line_changes, 2);
    assert_false(machine->level);
}

static void command_register_holds_the_pin_down(void **state)
{
    struct machine *machine = *state;

    set(machine, 2, COMMAND, 2, NO_LINE);
    pci_function_set_line(&machine->first, true);
    assert_int_equal(machine->line_changes, 0);
    assert_int_equal(get(machine, 2, STATUS, 2), 0x0018); /* but one can see it */
    set(machine, 2, COMMAND, 2, 0);
    assert_true(machine->level);
    pci_bus_reset(&machine->bus);
    assert_false(machine->level);
    assert_int_equal(get(machine, 2, STATUS, 2), 0x0010);
}

/* ---- MSI-X ---- */

#define TABLE (WINDOW + 0x4000)
#define PENDING (TABLE + 0x800)
#define ENABLE 0x8000
#define MASK_ALL 0x4000

static void open_vector(struct machine *machine, unsigned vector)
{
    store(machine, TABLE + 16 * vector, 0xfee01000);
    store(machine, TABLE + 16 * vector + 4, 0x1);
    store(machine, TABLE + 16 * vector + 8, 0x40 + vector);
    store(machine, TABLE + 16 * vector + 12, 0);
}

static void message_goes_where_its_entry_says(void **state)
{
    struct machine *machine = *state;

    set(machine, 2, COMMAND, 2, MEMORY | MASTER);
    set(machine, 2, 0x4a, 2, ENABLE);
    open_vector(machine, 2);
    assert_true(pci_function_uses_msix(&machine->first));
    pci_function_send(&machine->first, 2);
    assert_int_equal(machine->messages, 1);
    assert_true(machine->message_address == UINT64_C(0x1fee01000));
    assert_int_equal(machine->message_data, 0x42);
    assert_int_equal(machine->message_sender, 2);
    pci_function_send(&machine->first, 3);
    pci_function_send(&machine->first, 0xffff);
    pci_function_send(&machine->second, 2); /* its MSI-X is off */
    assert_int_equal(machine->messages, 1);
}

static void each_vector_on_the_bus_has_a_number(void **state)
{
    struct machine *machine = *state;

    set(machine, 10, COMMAND, 2, MEMORY | MASTER);
    set(machine, 10, 0x4a, 2, ENABLE);
    store(machine, WINDOW + 0xc000 + 12, 0); /* its first entry */
    pci_function_send(&machine->second, 0);
    assert_int_equal(machine->messages, 1);
    assert_int_equal(machine->message_sender, VECTORS);
}

static void masked_message_waits(void **state)
{
    struct machine *machine = *state;

    set(machine, 2, COMMAND, 2, MEMORY | MASTER);
    set(machine, 2, 0x4a, 2, ENABLE);
    assert_int_equal(load(machine, TABLE + 12), 1); /* masked from the start */
    pci_function_send(&machine->first, 0);
    pci_function_send(&machine->first, 0);
    assert_int_equal(load(machine, PENDING), 1);
    assert_int_equal(load(machine, PENDING + 4), 0);
    open_vector(machine, 0);
    assert_int_equal(machine->messages, 1);
    assert_int_equal(load(machine, PENDING), 0);

    set(machine, 2, 0x4a, 2, ENABLE | MASK_ALL);
    pci_function_send(&machine->first, 0);
    assert_int_equal(machine->messages, 1);
    set(machine, 2, 0x4a, 2, ENABLE);
    assert_int_equal(machine->messages, 2);

    set(machine, 2, COMMAND, 2, MEMORY); /* a message is an access to memory */
    pci_function_send(&machine->first, 0);
    assert_int_equal(machine->messages, 2);
    set(machine, 2, COMMAND, 2, MEMORY | MASTER);
    assert_int_equal(machine->messages, 3);
}

static void pending_messages_end_with_msix(void **state)
{
    struct machine *machine = *state;

    set(machine, 2, COMMAND, 2, MEMORY | MASTER);
    set(machine, 2, 0x4a, 2, ENABLE);
    pci_function_send(&machine->first, 1);
    assert_int_equal(load(machine, PENDING), 2);
    set(machine, 2, 0x4a, 2, 0);
    assert_int_equal(load(machine, PENDING), 0);
    open_vector(machine, 1);
    set(machine, 2, 0x4a, 2, ENABLE);
    assert_int_equal(machine->messages, 0);
}

static void msix_holds_the_pin_down(void **state)
{
    struct machine *machine = *state;

    pci_function_set_line(&machine->first, true);
    set(machine, 2, 0x4a, 2, ENABLE);
    assert_false(machine->level);
    set(machine, 2, 0x4a, 2, 0);
    assert_true(machine->level);
}

static void table_takes_whole_words_only(void **state)
{
    struct machine *machine = *state;

    open_vector(machine, 0);
    bus_write(&machine->mmio, TABLE, 1, 0x55);
    bus_write(&machine->mmio, TABLE + 2, 2, 0x5555);
    bus_write(&machine->mmio, TABLE + 2, 4, 0x55555555);
    assert_int_equal(load(machine, TABLE), 0xfee01000);
    bus_write(&machine->mmio, TABLE, 8, UINT64_C(0x22222222fee02000));
    assert_int_equal(load(machine, TABLE), 0xfee02000);
    assert_int_equal(load(machine, TABLE + 4), 0x22222222);
    store(machine, TABLE + 16 * VECTORS, 0xffffffff); /* behind the last */
    assert_int_equal(load(machine, TABLE + 16 * VECTORS), 0);
    store(machine, PENDING, 0xffffffff);
    assert_int_equal(load(machine, PENDING), 0);
    pci_bus_reset(&machine->bus);
    assert_int_equal(load(machine, TABLE), 0);
    assert_int_equal(load(machine, TABLE + 12), 1);
}

#define MACHINE_TEST(function) cmocka_unit_test_setup(function, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(header_says_who_it_is),
        MACHINE_TEST(capabilities_form_a_list),
        MACHINE_TEST(only_what_may_be_written_changes),
        MACHINE_TEST(bar_tells_its_size),
        MACHINE_TEST(bars_have_a_home_that_a_reset_restores),
        MACHINE_TEST(firmware_finds_bars_that_are_nowhere),
        MACHINE_TEST(bar_answers_where_the_guest_has_moved_it),
        MACHINE_TEST(bar_outside_the_window_answers_nowhere),
        MACHINE_TEST(access_that_leaves_a_bar_goes_nowhere),
        MACHINE_TEST(line_is_up_as_long_as_one_of_those_that_share_it_is),
        MACHINE_TEST(command_register_holds_the_pin_down),
        MACHINE_TEST(message_goes_where_its_entry_says),
        MACHINE_TEST(each_vector_on_the_bus_has_a_number),
        MACHINE_TEST(masked_message_waits),
        MACHINE_TEST(pending_messages_end_with_msix),
        MACHINE_TEST(msix_holds_the_pin_down),
        MACHINE_TEST(table_takes_whole_words_only),
    };

    return cmocka_run_group_tests_name("PCI function", tests, NULL, NULL);
}
