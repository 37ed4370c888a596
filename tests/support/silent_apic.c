/* SPDX-License-Identifier: Apache-2.0 */
/* A local APIC that is not there; see silent_apic.h. */
#include "silent_apic.h"

static int acknowledge(void *context)
{
    (void)context;
    return -1;
}

static bool read_msr(void *context, uint32_t index, uint64_t *value)
{
    (void)context;
    (void)index;
    (void)value;
    return false;
}

static bool write_msr(void *context, uint32_t index, uint64_t value)
{
    (void)context;
    (void)index;
    (void)value;
    return false;
}

static bool read_register(void *context, uint64_t gpa, unsigned size, uint64_t *value)
{
    (void)context;
    (void)gpa;
    (void)size;
    (void)value;
    return false;
}

static bool write_register(void *context, uint64_t gpa, unsigned size, uint64_t value)
{
    (void)context;
    (void)gpa;
    (void)size;
    (void)value;
    return false;
}

static bool send_command(void *context, uint32_t apic_id, uint32_t command)
{
    (void)context;
    (void)apic_id;
    (void)command;
    return false;
}

static uint8_t get_priority(void *context)
{
    (void)context;
    return 0;
}

static void set_priority(void *context, uint8_t priority)
{
    (void)context;
    (void)priority;
}

static uint64_t fall_asleep(void *context)
{
    (void)context;
    return IRQ_NOT_DUE;
}

static void wake_up(void *context)
{
    (void)context;
}

struct irq_source silent_apic(void *context)
{
    return (struct irq_source){
        .context = context,
        .acknowledge = acknowledge,
        .read_msr = read_msr,
        .write_msr = write_msr,
        .read = read_register,
        .write = write_register,
        .send = send_command,
        .get_priority = get_priority,
        .set_priority = set_priority,
        .fall_asleep = fall_asleep,
        .wake_up = wake_up,
    };
}
