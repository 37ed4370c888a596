/* SPDX-License-Identifier: Apache-2.0 */
/* The PCI functions that PC firmware looks for; see i440fx_private.h. */
#include "device/i440fx_private.h"

#include <string.h>

#include "base/bytes.h"
#include "x86/layout.h"

/* Header registers (PCI Local Bus 3.0, 6.1). */
#define PCI_IDS 0x00
#define PCI_COMMAND 0x04
#define PCI_COMMAND_BITS 0x07 /* of its first byte: I/O, memory, master */
#define PCI_CLASS 0x08        /* and revision */
#define PCI_HEADER_TYPE 0x0e
#define PCI_MANY_FUNCTIONS 0x80
#define PCI_SUBSYSTEM 0x2c
#define PCI_INTERRUPT_LINE 0x3c
#define PCI_HEADER_BYTES 0x40

/* By this firmware tells QEMU's machine from the chips it is named after. */
#define SUBSYSTEM_QEMU 0x11001af4

/* PIIX3: where PCI's interrupts go; bit 7 of each byte: nowhere. */
#define PIRQ_ROUTES 0x60
#define PIRQ_ROUTES_OFF 0x80808080

/* PIIX4, function 3. */
#define POWER_BASE 0x40
#define POWER_BASE_IS_PORT 0x01
#define POWER_ACTIVITY_B 0x58
#define POWER_ACTIVITY_B_SMI 0x02000000 /* system management mode is set up already */
#define POWER_ENABLE 0x80
#define POWER_ENABLE_PORTS 0x01

#define MAX_REGISTERS 6

struct i440fx_model {
    unsigned device;
    unsigned number;
    unsigned writable_from; /* below, only what every function lets be written */
    struct {
        uint8_t offset;
        uint32_t value;
    } at_reset[MAX_REGISTERS]; /* ORed into zeros, so their order is no matter */
};

static const struct i440fx_model models[I440FX_FUNCTIONS] = {
    [I440FX_HOST] = {.device = 0,
                     .number = 0,
                     .writable_from = PCI_HEADER_BYTES,
                     .at_reset = {{PCI_IDS, 0x12378086},
                                  {PCI_CLASS, 0x06000002}, /* host bridge */
                                  {PCI_SUBSYSTEM, SUBSYSTEM_QEMU}}},
    [I440FX_ISA] = {.device = 1,
                    .number = 0,
                    .writable_from = PCI_HEADER_BYTES,
                    .at_reset = {{PCI_IDS, 0x70008086},
                                 {PCI_CLASS, 0x06010000}, /* ISA bridge */
                                 {PCI_HEADER_TYPE, PCI_MANY_FUNCTIONS},
                                 {PCI_SUBSYSTEM, SUBSYSTEM_QEMU},
                                 {PIRQ_ROUTES, PIRQ_ROUTES_OFF}}},
    /* Revision 3: its timer can be read in one go (PIIX4 specification update). */
    [I440FX_POWER] = {.device = 1,
                      .number = 3,
                      .writable_from = I440FX_REGISTER_BYTES,
                      .at_reset = {{PCI_IDS, 0x71138086},
                                   {PCI_CLASS, 0x06800003}, /* other bridge */
                                   {PCI_SUBSYSTEM, SUBSYSTEM_QEMU},
                                   {POWER_BASE,
                                    LAYOUT_PORT_ACPI_EVENT | POWER_BASE_IS_PORT},
                                   {POWER_ACTIVITY_B, POWER_ACTIVITY_B_SMI},
                                   {POWER_ENABLE, POWER_ENABLE_PORTS}}},
};
_Static_assert(LAYOUT_PORT_ACPI_EVENT % 0x40 == 0, "the chip's block has 64 ports");

static uint32_t read_registers(void *context, uint32_t offset, unsigned size)
{
    struct i440fx_function *function = context;
    uint8_t bytes[sizeof(uint32_t)] = {0};

    if (!range_within(offset, size, I440FX_REGISTER_BYTES))
        return 0; /* by ECAM: what PCI Express has there, a PCI function has not */
    pthread_mutex_lock(&function->lock);
    memcpy(bytes, &function->registers[offset], size);
    pthread_mutex_unlock(&function->lock);
    return load_le32(bytes);
}

/* The bits of a register that can be written. What the command register allows makes no
 * difference, but OVMF uses no bridge that does not let itself be switched on. The
 * interrupt line is firmware's note to the kernel. */
static uint8_t writable_bits(const struct i440fx_model *model, uint32_t offset)
{
    if (offset >= model->writable_from || offset == PCI_INTERRUPT_LINE)
        return UINT8_MAX;
    return offset == PCI_COMMAND ? PCI_COMMAND_BITS : 0;
}

static void write_registers(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    struct i440fx_function *function = context;

    if (!range_within(offset, size, I440FX_REGISTER_BYTES))
        return;
    pthread_mutex_lock(&function->lock);
    for (unsigned i = 0; i < size; i++, value >>= 8) {
        uint8_t *at = &function->registers[offset + i];
        uint8_t writable = writable_bits(function->model, offset + i);

        *at = (uint8_t)((*at & ~writable) | (value & writable));
    }
    pthread_mutex_unlock(&function->lock);
}

static const struct pci_function_ops i440fx_ops = {
    .config_read = read_registers,
    .config_write = write_registers,
};

void i440fx_init(struct i440fx *i440fx, struct pci_bus *bus)
{
    for (size_t i = 0; i < I440FX_FUNCTIONS; i++) {
        struct i440fx_function *function = &i440fx->functions[i];

        function->model = &models[i];
        pthread_mutex_init(&function->lock, NULL);
        pci_bus_attach(bus, models[i].device, models[i].number, &i440fx_ops, function);
    }
    i440fx_reset(i440fx);
}

static void reset_function(struct i440fx_function *function)
{
    const struct i440fx_model *model = function->model;

    memset(function->registers, 0, sizeof(function->registers));
    for (size_t i = 0; i < MAX_REGISTERS; i++) {
        uint8_t *at = &function->registers[model->at_reset[i].offset];

        store_le32(at, load_le32(at) | model->at_reset[i].value);
    }
}

void i440fx_reset(struct i440fx *i440fx)
{
    for (size_t i = 0; i < I440FX_FUNCTIONS; i++)
        reset_function(&i440fx->functions[i]);
}
