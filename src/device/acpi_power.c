/* SPDX-License-Identifier: Apache-2.0 */
/* ACPI power-off, power button and PM timer; see acpi_power_private.h. */
#include "device/acpi_power_private.h"

#include "base/clock.h"
#include "x86/layout.h"

/* PM1 event block: a status and an enable register of 2 bytes each (4.8.3.1). */
#define EVENT_BLOCK_BYTES 4
#define EVENT_ENABLE_OFFSET 2

/* PM1 control register (4.8.3.2.1). */
#define CONTROL_BLOCK_BYTES 2
#define CONTROL_SCI_ENABLED 0x0001
#define CONTROL_BUS_MASTER_RELOAD 0x0002
#define CONTROL_SLEEP_TYPE 0x1c00
#define CONTROL_SLEEP_TYPE_SHIFT 10
#define CONTROL_SLEEP_ENABLE 0x2000 /* write-only */

/* Kernels that do not read the DSDT know the sleep type 0 of QEMU's PIIX4. */
#define PIIX4_S5_TYPE 0

/* PM timer (4.8.3.3). */
#define TIMER_BYTES 4
#define TIMER_HZ UINT64_C(3579545)

static void acpi_power_update_sci(struct acpi_power *power)
{
    bool level = (power->status & power->enable & LAYOUT_ACPI_POWER_BUTTON) != 0;

    if (level == power->sci_level)
        return;
    power->sci_level = level;
    irq_line_set(&power->sci, level);
}

/* Byte `offset` (0 or 1) of a 16-bit register. */
static uint8_t register_byte(uint16_t value, uint64_t offset)
{
    return (uint8_t)(value >> (8 * offset));
}

static uint16_t register_with_byte(uint16_t value, uint64_t offset, uint64_t byte)
{
    unsigned shift = (unsigned)(8 * offset);

    return (uint16_t)((value & ~(0xffU << shift)) | (unsigned)(byte << shift));
}

static uint64_t acpi_power_read_event(void *device, uint64_t offset, unsigned size)
{
    struct acpi_power *power = device;
    uint8_t value;

    (void)size;
    pthread_mutex_lock(&power->lock);
    if (offset < EVENT_ENABLE_OFFSET)
        value = register_byte(power->status, offset);
    else
        value = register_byte(power->enable, offset - EVENT_ENABLE_OFFSET);
    pthread_mutex_unlock(&power->lock);
    return value;
}

static void acpi_power_write_event(void *device, uint64_t offset, unsigned size,
                                   uint64_t value)
{
    struct acpi_power *power = device;

    (void)size;
    pthread_mutex_lock(&power->lock);
    if (offset < EVENT_ENABLE_OFFSET) /* writing 1 clears */
        power->status &= (uint16_t)~register_with_byte(0, offset, value);
    else
        power->enable =
            register_with_byte(power->enable, offset - EVENT_ENABLE_OFFSET, value);
    acpi_power_update_sci(power);
    pthread_mutex_unlock(&power->lock);
}

static uint64_t acpi_power_read_control(void *device, uint64_t offset, unsigned size)
{
    struct acpi_power *power = device;
    uint8_t value;

    (void)size;
    pthread_mutex_lock(&power->lock);
    value = register_byte(power->control, offset);
    pthread_mutex_unlock(&power->lock);
    return value;
}

/* Sleep type and sleep enable share the register's upper byte, so writing the register
 * byte by byte loses nothing. */
static void acpi_power_write_control(void *device, uint64_t offset, unsigned size,
                                     uint64_t value)
{
    struct acpi_power *power = device;
    uint16_t written;
    unsigned type;

    (void)size;
    pthread_mutex_lock(&power->lock);
    written = register_with_byte(power->control, offset, value);
    power->control =
        (uint16_t)((written & (CONTROL_BUS_MASTER_RELOAD | CONTROL_SLEEP_TYPE)) |
                   CONTROL_SCI_ENABLED);
    pthread_mutex_unlock(&power->lock);
    type = (unsigned)(written & CONTROL_SLEEP_TYPE) >> CONTROL_SLEEP_TYPE_SHIFT;
    if ((written & CONTROL_SLEEP_ENABLE) &&
        (type == LAYOUT_ACPI_S5_TYPE || type == PIIX4_S5_TYPE))
        power->requests.request(power->requests.context, MACHINE_POWER_OFF);
}

static uint64_t acpi_power_read_timer(void *device, uint64_t offset, unsigned size)
{
    const struct acpi_power *power = device;
    uint64_t now_ns = machine_clock_now_ns(power->clock);
    uint64_t ticks = now_ns / NS_PER_SECOND * TIMER_HZ +
                     now_ns % NS_PER_SECOND * TIMER_HZ / NS_PER_SECOND;

    (void)size; /* the bus cuts the value to it */
    return (uint32_t)ticks >> (8 * offset);
}

static void acpi_power_write_timer(void *device, uint64_t offset, unsigned size,
                                   uint64_t value)
{
    (void)device;
    (void)offset;
    (void)size;
    (void)value; /* read-only */
}

static const struct bus_ops acpi_event_ops = {
    .name = "ACPI event block",
    .width_bytes = 1,
    .read = acpi_power_read_event,
    .write = acpi_power_write_event,
};

static const struct bus_ops acpi_control_ops = {
    .name = "ACPI control block",
    .width_bytes = 1,
    .read = acpi_power_read_control,
    .write = acpi_power_write_control,
};

/* As wide as the timer: byte-wise reads of a running counter would not fit together. */
static const struct bus_ops acpi_timer_ops = {
    .name = "ACPI timer",
    .width_bytes = TIMER_BYTES,
    .read = acpi_power_read_timer,
    .write = acpi_power_write_timer,
};

void acpi_power_init(struct acpi_power *power, struct irq_line sci,
                     const struct machine_requests *requests,
                     const struct machine_clock *clock)
{
    *power = (struct acpi_power){
        .sci = sci,
        .requests = *requests,
        .clock = clock,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .control = CONTROL_SCI_ENABLED,
    };
}

int acpi_power_attach(struct acpi_power *power, struct bus *ports, struct error *err)
{
    int code = bus_attach(ports, LAYOUT_PORT_ACPI_EVENT, EVENT_BLOCK_BYTES,
                          &acpi_event_ops, power, err);

    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_ACPI_CONTROL, CONTROL_BLOCK_BYTES,
                          &acpi_control_ops, power, err);
    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_ACPI_TIMER, TIMER_BYTES, &acpi_timer_ops,
                          power, err);
    return code;
}

void acpi_power_reset(struct acpi_power *power)
{
    pthread_mutex_lock(&power->lock);
    power->status = 0;
    power->enable = 0;
    power->control = CONTROL_SCI_ENABLED;
    acpi_power_update_sci(power);
    pthread_mutex_unlock(&power->lock);
}

bool acpi_power_press_button(struct acpi_power *power)
{
    bool enabled;

    pthread_mutex_lock(&power->lock);
    power->status |= LAYOUT_ACPI_POWER_BUTTON;
    enabled = (power->enable & LAYOUT_ACPI_POWER_BUTTON) != 0;
    acpi_power_update_sci(power);
    pthread_mutex_unlock(&power->lock);
    return enabled;
}
