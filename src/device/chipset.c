/* SPDX-License-Identifier: Apache-2.0 */
/* All devices of the PC in one struct; see chipset.h. */
#include "device/chipset.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "device/acpi_power_private.h"
#include "device/debug_ports_private.h"
#include "device/i8042_private.h"
#include "device/pci_host_private.h"
#include "device/rtc_private.h"
#include "device/uart_private.h"
#include "x86/layout.h"

struct chipset {
    struct uart com1;
    struct i8042 i8042;
    struct rtc rtc;
    struct acpi_power power;
    struct pci_host pci;
    struct debug_ports debug;
};

static struct timespec chipset_host_time(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return now;
}

static struct irq_line chipset_irq_line(const struct chipset_options *options,
                                        uint32_t line)
{
    return (struct irq_line){
        .set = options->set_irq, .context = options->irq_context, .line = line};
}

static void chipset_init(struct chipset *chipset, const struct chipset_options *options)
{
    uart_init(&chipset->com1, chipset_irq_line(options, LAYOUT_IRQ_COM1),
              options->serial ? &options->console : NULL);
    i8042_init(&chipset->i8042, chipset_irq_line(options, LAYOUT_IRQ_KEYBOARD),
               &options->requests);
    rtc_init(&chipset->rtc, options->memory_bytes, chipset_host_time);
    acpi_power_init(&chipset->power, chipset_irq_line(options, LAYOUT_IRQ_ACPI),
                    &options->requests, clock_monotonic_ns);
    pci_host_init(&chipset->pci, &options->requests);
    debug_ports_init(&chipset->debug, &options->debug_console, &options->requests);
}

static int chipset_attach(struct chipset *chipset, const struct chipset_options *options,
                          struct bus *ports, struct bus *mmio, struct error *err)
{
    int code = uart_attach(&chipset->com1, ports, LAYOUT_PORT_COM1, err);

    if (code == 0)
        code = i8042_attach(&chipset->i8042, ports, err);
    if (code == 0)
        code = rtc_attach(&chipset->rtc, ports, err);
    if (code == 0)
        code = acpi_power_attach(&chipset->power, ports, err);
    if (code == 0)
        code = pci_host_attach(&chipset->pci, ports, mmio, err);
    if (code == 0)
        code = debug_ports_attach(&chipset->debug, ports, options->debug_exit_port, err);
    return code;
}

int chipset_create(const struct chipset_options *options, struct bus *ports,
                   struct bus *mmio, struct chipset **chipset, struct error *err)
{
    struct chipset *created = calloc(1, sizeof(*created));
    int code;

    if (!created)
        return error_set_errno(err, ENOMEM, "cannot allocate the chipset");
    chipset_init(created, options);
    code = chipset_attach(created, options, ports, mmio, err);
    if (code < 0) {
        free(created);
        return code;
    }
    *chipset = created;
    return 0;
}

void chipset_destroy(struct chipset *chipset)
{
    free(chipset);
}

void chipset_reset(struct chipset *chipset)
{
    uart_reset(&chipset->com1);
    i8042_reset(&chipset->i8042);
    rtc_reset(&chipset->rtc);
    acpi_power_reset(&chipset->power);
    pci_host_reset(&chipset->pci);
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

void chipset_counters(const struct chipset *chipset, struct chipset_counters *counters)
{
    counters->console_bytes_out =
        atomic_load_explicit(&chipset->com1.bytes_out, memory_order_relaxed);
    counters->console_bytes_in =
        atomic_load_explicit(&chipset->com1.bytes_in, memory_order_relaxed);
}
