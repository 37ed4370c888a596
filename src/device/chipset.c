/* SPDX-License-Identifier: Apache-2.0 */
/* All devices of the PC in one struct; see chipset.h. */
#include "device/chipset.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "device/acpi_power_private.h"
#include "device/debug_ports_private.h"
#include "device/hpet_private.h"
#include "device/i440fx_private.h"
#include "device/i8042_private.h"
#include "device/pci_host_private.h"
#include "device/rtc_private.h"
#include "device/test_device_private.h"
#include "device/uart_private.h"
#include "x86/layout.h"

struct chipset {
    struct uart com1;
    struct i8042 i8042;
    struct rtc rtc;
    bool has_hpet;
    struct hpet hpet;
    struct acpi_power power;
    struct pci_host pci;
    bool has_i440fx;
    struct i440fx i440fx;
    struct debug_ports debug;
    struct test_device test;
};

static struct irq_line chipset_irq_line(const struct chipset_options *options,
                                        uint32_t line)
{
    return (struct irq_line){
        .set = options->set_irq, .context = options->irq_context, .line = line};
}

/* The HPET stands between the clock and its line. */
static int chipset_init_timers(struct chipset *chipset,
                               const struct chipset_options *options, struct error *err)
{
    const struct hpet_options hpet = {
        .clock = options->clock,
        .set_irq = options->set_irq,
        .replace_timer = options->replace_timer,
        .irq_context = options->irq_context,
    };
    struct irq_line rtc_line = chipset_irq_line(options, LAYOUT_IRQ_RTC);

    chipset->has_hpet = options->hpet;
    if (options->hpet) {
        if (hpet_init(&chipset->hpet, &hpet, err) < 0)
            return err->code;
        rtc_line.set = hpet_set_rtc_line;
        rtc_line.context = &chipset->hpet;
    }
    return rtc_init(&chipset->rtc, options->memory_bytes, options->clock, rtc_line, err);
}

static int chipset_init(struct chipset *chipset, const struct chipset_options *options,
                        struct error *err)
{
    const struct pci_wires wires = {.set_line = options->set_irq,
                                    .send_message = options->send_message,
                                    .attach_doorbell = options->attach_doorbell,
                                    .detach_doorbell = options->detach_doorbell,
                                    .context = options->irq_context};

    uart_init(&chipset->com1, chipset_irq_line(options, LAYOUT_IRQ_COM1),
              options->serial ? &options->console : NULL);
    i8042_init(&chipset->i8042, chipset_irq_line(options, LAYOUT_IRQ_KEYBOARD),
               &options->requests);
    acpi_power_init(&chipset->power, chipset_irq_line(options, LAYOUT_IRQ_ACPI),
                    &options->requests, options->clock);
    pci_host_init(&chipset->pci, &options->requests, &wires, options->memory_end,
                  !options->firmware);
    chipset->has_i440fx = options->firmware;
    if (options->firmware)
        i440fx_init(&chipset->i440fx, &chipset->pci.bus);
    else
        pci_host_add_bridge(&chipset->pci);
    debug_ports_init(&chipset->debug, &options->debug_console, &options->requests);
    test_device_init(&chipset->test, options->set_irq, options->irq_context);
    return chipset_init_timers(chipset, options, err);
}

static int chipset_attach(struct chipset *chipset, const struct chipset_options *options,
                          struct bus *ports, struct bus *mmio, struct error *err)
{
    int code = uart_attach(&chipset->com1, ports, LAYOUT_PORT_COM1, err);

    if (code == 0)
        code = i8042_attach(&chipset->i8042, ports, err);
    if (code == 0)
        code = rtc_attach(&chipset->rtc, ports, err);
    if (code == 0 && options->hpet)
        code = hpet_attach(&chipset->hpet, mmio, err);
    if (code == 0)
        code = acpi_power_attach(&chipset->power, ports, err);
    if (code == 0)
        code = pci_host_attach(&chipset->pci, ports, mmio, err);
    if (code == 0)
        code = debug_ports_attach(&chipset->debug, ports, options->debug_exit_port, err);
    if (code == 0 && options->test_device)
        code = test_device_attach(&chipset->test, ports, mmio, err);
    return code;
}

int chipset_create(const struct chipset_options *options, struct bus *ports,
                   struct bus *mmio, struct chipset **chipset, struct error *err)
{
    struct chipset *created = calloc(1, sizeof(*created));
    int code;

    if (!created)
        return error_set_errno(err, ENOMEM, "cannot allocate the chipset");
    code = chipset_init(created, options, err);
    if (code == 0)
        code = chipset_attach(created, options, ports, mmio, err);
    if (code < 0) {
        chipset_destroy(created);
        return code;
    }
    *chipset = created;
    return 0;
}

void chipset_destroy(struct chipset *chipset)
{
    if (chipset == NULL)
        return;
    rtc_finish(&chipset->rtc);
    hpet_finish(&chipset->hpet);
    free(chipset);
}

void chipset_reset(struct chipset *chipset)
{
    uart_reset(&chipset->com1);
    i8042_reset(&chipset->i8042);
    rtc_reset(&chipset->rtc);
    if (chipset->has_hpet)
        hpet_reset(&chipset->hpet);
    acpi_power_reset(&chipset->power);
    pci_host_reset(&chipset->pci);
    if (chipset->has_i440fx)
        i440fx_reset(&chipset->i440fx);
    test_device_reset(&chipset->test);
}

size_t chipset_console_input(struct chipset *chipset, const uint8_t *bytes, size_t size)
{
    return uart_input(&chipset->com1, bytes, size);
}

void chipset_on_console_room(struct chipset *chipset, void (*drained)(void *context),
                             void *context)
{
    chipset->com1.drained = drained;
    chipset->com1.drained_context = context;
}

void chipset_console_break(struct chipset *chipset)
{
    uart_input_break(&chipset->com1);
}

bool chipset_power_button(struct chipset *chipset)
{
    return acpi_power_press_button(&chipset->power);
}

struct pci_bus *chipset_pci_bus(struct chipset *chipset)
{
    return &chipset->pci.bus;
}

void chipset_counters(const struct chipset *chipset, struct chipset_counters *counters)
{
    counters->console_bytes_out =
        atomic_load_explicit(&chipset->com1.bytes_out, memory_order_relaxed);
    counters->console_bytes_in =
        atomic_load_explicit(&chipset->com1.bytes_in, memory_order_relaxed);
}
