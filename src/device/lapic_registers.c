/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest reads and writes of a local APIC: the register page, the x2APIC MSRs,
 * and the two MSRs beside them. These are the doors that take the lock.
 *
 * Both modes have the same registers: number N is at offset 16 * N of the page and at MSR
 * 0x800 + N. x2APIC refuses reserved bits and numbers (10.12.1.2), xAPIC notes an error
 * for the latter (10.5.3).
 */
#include "base/bytes.h"
#include "device/lapic_private.h"
#include "x86/x86.h"

/* MSRs (SDM vol. 4, table 2-2). */
#define MSR_APIC_BASE 0x1b
#define MSR_TSC_DEADLINE 0x6e0
#define MSR_X2APIC_START 0x800
#define MSR_X2APIC_LIMIT 0x900

/* Bits that IA32_APIC_BASE lacks whatever the width of physical addresses, which the
 * processor knows. */
#define APIC_BASE_RESERVED UINT64_C(0xfff00000000002ff)

/* Registers (table 10-6). */
enum {
    REGISTER_ID = 0x02,
    REGISTER_VERSION = 0x03,
    REGISTER_TASK_PRIORITY = 0x08,
    REGISTER_ARBITRATION_PRIORITY = 0x09, /* xAPIC only */
    REGISTER_PROCESSOR_PRIORITY = 0x0a,
    REGISTER_END_OF_INTERRUPT = 0x0b,
    REGISTER_LOGICAL_DESTINATION = 0x0d,
    REGISTER_DESTINATION_FORMAT = 0x0e, /* xAPIC only */
    REGISTER_SPURIOUS = 0x0f,
    REGISTER_IN_SERVICE = 0x10, /* eight each */
    REGISTER_LEVEL_TRIGGERED = 0x18,
    REGISTER_REQUESTED = 0x20,
    REGISTER_ERROR = 0x28,
    REGISTER_COMMAND = 0x30,
    REGISTER_COMMAND_HIGH = 0x31, /* xAPIC only */
    REGISTER_LVT = 0x32,          /* to 0x37 */
    REGISTER_TIMER_INITIAL = 0x38,
    REGISTER_TIMER_CURRENT = 0x39,
    REGISTER_TIMER_DIVIDE = 0x3e,
    REGISTER_SELF_COMMAND = 0x3f, /* x2APIC only */
};
#define REGISTER_STRIDE_SHIFT 4

/* An APIC inside the processor with six LVT entries (figure 10-7). */
#define VERSION (0x14u | (LVT_COUNT - 1) << 16)

#define XAPIC_ID_SHIFT 24
#define XAPIC_BROADCAST 0xffu
#define X2APIC_BROADCAST UINT32_MAX

/* Interrupt command register (figures 10-12 and 10-28). */
#define COMMAND_DELIVERY_SHIFT 8
#define COMMAND_LOGICAL 0x800u
#define COMMAND_STATUS 0x1000u /* always idle */
#define COMMAND_ASSERT 0x4000u
#define COMMAND_LEVEL 0x8000u
#define COMMAND_WRITABLE 0xccfffu
#define COMMAND_DESTINATION_SHIFT 32
enum { TO_DESTINATION, TO_SELF, TO_ALL, TO_ALL_BUT_SELF };
#define COMMAND_SHORTHAND_SHIFT 18

#define SPURIOUS_WRITABLE 0x3ffu
#define TASK_PRIORITY_WRITABLE 0xffu
#define TIMER_DIVIDE_WRITABLE 0xbu
#define LOGICAL_DESTINATION_WRITABLE 0xff000000u
#define DESTINATION_FORMAT_FIXED 0x0fffffffu

static const uint32_t lvt_writable[LVT_COUNT] = {
    [LVT_TIMER] = LVT_VECTOR | LVT_MASKED | LVT_TIMER_MODE,
    [LVT_THERMAL] = LVT_VECTOR | LVT_DELIVERY | LVT_MASKED,
    [LVT_PERFORMANCE] = LVT_VECTOR | LVT_DELIVERY | LVT_MASKED,
    [LVT_LINT0] = LVT_VECTOR | LVT_DELIVERY | LVT_POLARITY | LVT_LEVEL | LVT_MASKED,
    [LVT_LINT1] = LVT_VECTOR | LVT_DELIVERY | LVT_POLARITY | LVT_LEVEL | LVT_MASKED,
    [LVT_ERROR] = LVT_VECTOR | LVT_MASKED,
};

/* ---- reading
 * --------------------------------------------------------------------------- */

static uint32_t read_id(const struct lapic *lapic)
{
    return lapic_is_x2apic(lapic) ? lapic->index : lapic->index << XAPIC_ID_SHIFT;
}

/* False: no such register, or not one to read. */
static bool read_register(const struct lapic *lapic, uint32_t number, uint32_t *value)
{
    bool x2apic = lapic_is_x2apic(lapic);

    switch (number) {
    case REGISTER_ID:
        *value = read_id(lapic);
        return true;
    case REGISTER_VERSION:
        *value = VERSION;
        return true;
    case REGISTER_TASK_PRIORITY:
        *value = lapic->task_priority;
        return true;
    case REGISTER_ARBITRATION_PRIORITY:
    case REGISTER_PROCESSOR_PRIORITY:
        *value = lapic_processor_priority(lapic);
        return !(x2apic && number == REGISTER_ARBITRATION_PRIORITY);
    case REGISTER_LOGICAL_DESTINATION:
        *value = lapic_logical_destination(lapic);
        return true;
    case REGISTER_DESTINATION_FORMAT:
        *value = lapic->destination_format;
        return !x2apic;
    case REGISTER_SPURIOUS:
        *value = lapic->spurious;
        return true;
    case REGISTER_IN_SERVICE ... REGISTER_IN_SERVICE + 7:
        *value = lapic->in_service.words[number - REGISTER_IN_SERVICE];
        return true;
    case REGISTER_LEVEL_TRIGGERED ... REGISTER_LEVEL_TRIGGERED + 7:
        *value = lapic->level_triggered.words[number - REGISTER_LEVEL_TRIGGERED];
        return true;
    case REGISTER_REQUESTED ... REGISTER_REQUESTED + 7:
        *value = lapic->requested.words[number - REGISTER_REQUESTED];
        return true;
    case REGISTER_ERROR:
        *value = lapic->errors;
        return true;
    case REGISTER_COMMAND:
        *value = (uint32_t)lapic->command;
        return true;
    case REGISTER_COMMAND_HIGH:
        *value = (uint32_t)(lapic->command >> 32);
        return !x2apic;
    case REGISTER_LVT ... REGISTER_LVT + LVT_COUNT - 1:
        *value = lapic->lvt[number - REGISTER_LVT];
        return true;
    case REGISTER_TIMER_INITIAL:
        *value = lapic->initial_count;
        return true;
    case REGISTER_TIMER_CURRENT:
        *value = lapic_timer_current(lapic);
        return true;
    case REGISTER_TIMER_DIVIDE:
        *value = lapic->divide;
        return true;
    default:
        return false;
    }
}

/* ---- commands
 * -------------------------------------------------------------------------- */

static void send_command(struct lapic *lapic)
{
    uint32_t command = (uint32_t)lapic->command;
    uint32_t destination = (uint32_t)(lapic->command >> COMMAND_DESTINATION_SHIFT);
    bool x2apic = lapic_is_x2apic(lapic);
    struct apic_message message = {
        .destination = x2apic ? destination : destination >> XAPIC_ID_SHIFT,
        .logical = (command & COMMAND_LOGICAL) != 0,
        .delivery = command >> COMMAND_DELIVERY_SHIFT & 7,
        .vector = (uint8_t)command,
    };

    if (message.delivery <= APIC_LOWEST_PRIORITY && message.vector < 16)
        lapic_report_error(lapic, ERROR_SEND_ILLEGAL_VECTOR);
    /* The end of INIT, which only the first APICs knew (10.6.1). */
    if (message.delivery == APIC_INIT &&
        (command & (COMMAND_LEVEL | COMMAND_ASSERT)) == COMMAND_LEVEL)
        return;
    message.broadcast =
        message.destination == (x2apic ? X2APIC_BROADCAST : XAPIC_BROADCAST);
    switch (command >> COMMAND_SHORTHAND_SHIFT & 3) {
    case TO_SELF:
        (void)lapic_deliver(lapic, &message);
        return;
    case TO_ALL_BUT_SELF:
        message.except = lapic;
        message.broadcast = true;
        break;
    case TO_ALL:
        message.broadcast = true;
        break;
    default: /* TO_DESTINATION */
        break;
    }
    (void)apic_bus_send(lapic->bus, &message);
}

static void send_to_self(struct lapic *lapic, uint8_t vector)
{
    const struct apic_message message = {.delivery = APIC_FIXED, .vector = vector};

    if (vector < 16)
        lapic_report_error(lapic, ERROR_SEND_ILLEGAL_VECTOR);
    (void)lapic_deliver(lapic, &message);
}

/* ---- writing
 * --------------------------------------------------------------------------- */

static void write_lvt(struct lapic *lapic, enum lapic_lvt entry, uint32_t value)
{
    uint32_t before = lapic->lvt[entry];

    if (entry == LVT_TIMER)
        lapic_timer_settle(lapic);
    value &= lvt_writable[entry];
    if ((lapic->spurious & SPURIOUS_ENABLED) == 0)
        value |= LVT_MASKED; /* 10.4.7.2 */
    if ((value & LVT_LEVEL) != 0)
        value |= before & LVT_REMOTE_IRR;
    lapic->lvt[entry] = value;
    if (entry == LVT_TIMER)
        lapic_timer_mode_changed(lapic, before & LVT_TIMER_MODE);
    else if (entry == LVT_LINT0 || entry == LVT_LINT1)
        lapic_update_pin(lapic, entry - LVT_LINT0);
    lapic_update(lapic);
}

static void write_spurious(struct lapic *lapic, uint32_t value)
{
    lapic->spurious = value & SPURIOUS_WRITABLE;
    if ((value & SPURIOUS_ENABLED) == 0)
        for (int i = 0; i < LVT_COUNT; i++)
            lapic->lvt[i] |= LVT_MASKED;
    lapic_update(lapic);
}

static void write_task_priority(struct lapic *lapic, uint32_t value)
{
    lapic->task_priority = value & TASK_PRIORITY_WRITABLE;
    lapic_update(lapic);
}

/* False: no such register, or not one to write. */
static bool write_register(struct lapic *lapic, uint32_t number, uint32_t value)
{
    switch (number) {
    case REGISTER_TASK_PRIORITY:
        write_task_priority(lapic, value);
        return true;
    case REGISTER_END_OF_INTERRUPT:
        lapic_end_of_interrupt(lapic);
        return true;
    case REGISTER_SPURIOUS:
        write_spurious(lapic, value);
        return true;
    case REGISTER_ERROR:
        lapic->errors = lapic->new_errors;
        lapic->new_errors = 0;
        return true;
    case REGISTER_LVT ... REGISTER_LVT + LVT_COUNT - 1:
        write_lvt(lapic, number - REGISTER_LVT, value);
        return true;
    case REGISTER_TIMER_INITIAL:
        lapic_timer_set_initial(lapic, value);
        return true;
    case REGISTER_TIMER_DIVIDE:
        lapic_timer_set_divide(lapic, value & TIMER_DIVIDE_WRITABLE);
        return true;
    default:
        return false;
    }
}

/* Registers that xAPIC mode alone has or writes in its own way. */
static bool write_xapic_register(struct lapic *lapic, uint32_t number, uint32_t value)
{
    switch (number) {
    case REGISTER_LOGICAL_DESTINATION:
        lapic->logical_destination = value & LOGICAL_DESTINATION_WRITABLE;
        return true;
    case REGISTER_DESTINATION_FORMAT:
        lapic->destination_format = value | DESTINATION_FORMAT_FIXED;
        return true;
    case REGISTER_COMMAND:
        lapic->command =
            (lapic->command & ~(uint64_t)UINT32_MAX) | (value & COMMAND_WRITABLE);
        send_command(lapic);
        return true;
    case REGISTER_COMMAND_HIGH:
        lapic->command = (uint32_t)lapic->command |
                         (uint64_t)(value & XAPIC_BROADCAST << XAPIC_ID_SHIFT) << 32;
        return true;
    default:
        return write_register(lapic, number, value);
    }
}

/* The bits of a register that x2APIC mode takes. */
static uint64_t x2apic_writable(uint32_t number)
{
    switch (number) {
    case REGISTER_TASK_PRIORITY:
        return TASK_PRIORITY_WRITABLE;
    case REGISTER_SPURIOUS:
        return SPURIOUS_WRITABLE;
    case REGISTER_COMMAND:
        return (uint64_t)UINT32_MAX << 32 | COMMAND_WRITABLE | COMMAND_STATUS;
    case REGISTER_LVT ... REGISTER_LVT + LVT_COUNT - 1:
        return lvt_writable[number - REGISTER_LVT] | LVT_STATUS | LVT_REMOTE_IRR;
    case REGISTER_TIMER_INITIAL:
        return UINT32_MAX;
    case REGISTER_TIMER_DIVIDE:
        return TIMER_DIVIDE_WRITABLE;
    case REGISTER_SELF_COMMAND:
        return 0xff;
    default: /* EOI and ESR take a 0 */
        return 0;
    }
}

static bool write_x2apic_register(struct lapic *lapic, uint32_t number, uint64_t value)
{
    if ((value & ~x2apic_writable(number)) != 0)
        return false;
    switch (number) {
    case REGISTER_COMMAND:
        lapic->command = value & ~(uint64_t)COMMAND_STATUS;
        send_command(lapic);
        return true;
    case REGISTER_SELF_COMMAND:
        send_to_self(lapic, (uint8_t)value);
        return true;
    default:
        return write_register(lapic, number, (uint32_t)value);
    }
}

/* ---- the mode
 * -------------------------------------------------------------------------- */

/* Which of the three modes may follow which (figure 10-27). */
static bool write_base(struct lapic *lapic, uint64_t value)
{
    const uint32_t modes = APIC_BASE_ENABLED | APIC_BASE_X2APIC;
    uint32_t before = (uint32_t)lapic->base & modes;
    uint32_t after = (uint32_t)value & modes;

    if ((value & APIC_BASE_RESERVED) != 0 || after == APIC_BASE_X2APIC)
        return false;
    if ((before == modes && after == APIC_BASE_ENABLED) ||
        (before == 0 && after == modes))
        return false;
    if (before != 0 && after == 0)
        lapic_clear(lapic);
    if (before != modes && after == modes)
        lapic->command &= UINT32_MAX;
    lapic->base = value;
    lapic_update(lapic);
    return true;
}

/* ---- doors
 * ----------------------------------------------------------------------------- */

static bool read_any_msr(const struct lapic *lapic, uint32_t index, uint64_t *value)
{
    uint32_t low;

    if (index == MSR_APIC_BASE) {
        *value = lapic->base;
        return true;
    }
    if (index == MSR_TSC_DEADLINE) {
        *value = lapic->tsc_deadline;
        return true;
    }
    if (index < MSR_X2APIC_START || index >= MSR_X2APIC_LIMIT || !lapic_is_x2apic(lapic))
        return false;
    if (index == MSR_X2APIC_START + REGISTER_COMMAND) {
        *value = lapic->command;
        return true;
    }
    if (!read_register(lapic, index - MSR_X2APIC_START, &low))
        return false;
    *value = low;
    return true;
}

static bool write_any_msr(struct lapic *lapic, uint32_t index, uint64_t value)
{
    if (index == MSR_APIC_BASE)
        return write_base(lapic, value);
    if (index == MSR_TSC_DEADLINE) {
        lapic_timer_set_deadline(lapic, value);
        return true;
    }
    if (index < MSR_X2APIC_START || index >= MSR_X2APIC_LIMIT || !lapic_is_x2apic(lapic))
        return false;
    return write_x2apic_register(lapic, index - MSR_X2APIC_START, value);
}

static bool read_msr(void *context, uint32_t index, uint64_t *value)
{
    struct lapic *lapic = context;
    bool answered;

    pthread_mutex_lock(&lapic->bus->lock);
    answered = read_any_msr(lapic, index, value);
    pthread_mutex_unlock(&lapic->bus->lock);
    return answered;
}

static bool write_msr(void *context, uint32_t index, uint64_t value)
{
    struct lapic *lapic = context;
    bool answered;

    pthread_mutex_lock(&lapic->bus->lock);
    answered = write_any_msr(lapic, index, value);
    pthread_mutex_unlock(&lapic->bus->lock);
    return answered;
}

/* Only xAPIC mode has the page. */
static bool is_in_page(const struct lapic *lapic, uint64_t gpa)
{
    return lapic_is_on(lapic) && !lapic_is_x2apic(lapic) &&
           align_down(gpa, X86_PAGE_BYTES) == align_down(lapic->base, X86_PAGE_BYTES);
}

static bool read_page(void *context, uint64_t gpa, unsigned size, uint64_t *value)
{
    struct lapic *lapic = context;
    uint32_t offset = (uint32_t)(gpa % X86_PAGE_BYTES);
    uint32_t whole = 0;
    bool answered;

    (void)size; /* the processor takes as many bytes as it asked for */
    pthread_mutex_lock(&lapic->bus->lock);
    answered = is_in_page(lapic, gpa);
    if (answered && !read_register(lapic, offset >> REGISTER_STRIDE_SHIFT, &whole) &&
        offset >> REGISTER_STRIDE_SHIFT != REGISTER_END_OF_INTERRUPT)
        lapic_report_error(lapic, ERROR_ILLEGAL_REGISTER);
    pthread_mutex_unlock(&lapic->bus->lock);
    /* A register has 4 bytes, the other 12 up to the next are empty. */
    *value = (offset & 0xc) == 0 ? whole >> (8 * (offset & 3)) : 0;
    return answered;
}

static bool write_page(void *context, uint64_t gpa, unsigned size, uint64_t value)
{
    struct lapic *lapic = context;
    uint32_t offset = (uint32_t)(gpa % X86_PAGE_BYTES);
    uint32_t ignored;
    bool answered;

    pthread_mutex_lock(&lapic->bus->lock);
    answered = is_in_page(lapic, gpa);
    /* Registers are written whole (10.4.1). One that can only be read is no error. */
    if (answered && size == 4 && (offset & 0xf) == 0 &&
        !write_xapic_register(lapic, offset >> REGISTER_STRIDE_SHIFT, (uint32_t)value) &&
        !read_register(lapic, offset >> REGISTER_STRIDE_SHIFT, &ignored))
        lapic_report_error(lapic, ERROR_ILLEGAL_REGISTER);
    pthread_mutex_unlock(&lapic->bus->lock);
    return answered;
}

static bool send(void *context, uint32_t apic_id, uint32_t command)
{
    struct lapic *lapic = context;
    const struct apic_message message = {
        .destination = apic_id,
        .delivery = command >> COMMAND_DELIVERY_SHIFT & 7,
        .vector = (uint8_t)command,
    };
    bool taken;

    pthread_mutex_lock(&lapic->bus->lock);
    taken = apic_bus_send(lapic->bus, &message) != 0;
    pthread_mutex_unlock(&lapic->bus->lock);
    return taken;
}

static int acknowledge(void *context)
{
    struct lapic *lapic = context;
    int vector;

    pthread_mutex_lock(&lapic->bus->lock);
    vector = lapic_take(lapic);
    pthread_mutex_unlock(&lapic->bus->lock);
    return vector;
}

static uint8_t get_priority(void *context)
{
    struct lapic *lapic = context;
    uint8_t priority;

    pthread_mutex_lock(&lapic->bus->lock);
    priority = (uint8_t)(lapic->task_priority >> 4);
    pthread_mutex_unlock(&lapic->bus->lock);
    return priority;
}

static void set_priority(void *context, uint8_t priority)
{
    struct lapic *lapic = context;

    pthread_mutex_lock(&lapic->bus->lock);
    write_task_priority(lapic, (uint32_t)priority << 4);
    pthread_mutex_unlock(&lapic->bus->lock);
}

static uint64_t fall_asleep(void *context)
{
    struct lapic *lapic = context;
    uint64_t due_ns;

    pthread_mutex_lock(&lapic->bus->lock);
    due_ns = lapic_timer_suspend(lapic);
    pthread_mutex_unlock(&lapic->bus->lock);
    return due_ns;
}

static void wake_up(void *context)
{
    struct lapic *lapic = context;

    pthread_mutex_lock(&lapic->bus->lock);
    lapic_timer_resume(lapic);
    pthread_mutex_unlock(&lapic->bus->lock);
}

_Static_assert(IRQ_NOT_DUE == MACHINE_TIMER_OFF, "one value for \"not at all\"");

const struct irq_source lapic_source = {
    .acknowledge = acknowledge,
    .read_msr = read_msr,
    .write_msr = write_msr,
    .read = read_page,
    .write = write_page,
    .send = send,
    .get_priority = get_priority,
    .set_priority = set_priority,
    .fall_asleep = fall_asleep,
    .wake_up = wake_up,
};
