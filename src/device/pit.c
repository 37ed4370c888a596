/* SPDX-License-Identifier: Apache-2.0 */
/* The 8254 and port 0x61; see pit_private.h. */
#include "device/pit_private.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "x86/layout.h"

#define PIT_HZ UINT64_C(1193182)
#define PIT_PORTS 4
#define PIT_CONTROL 3 /* offset */

/* Modes. */
enum {
    TERMINAL_COUNT = 0, /* the output rises at the end */
    ONE_SHOT = 1,       /* the same, started by the gate */
    RATE = 2,           /* periodic, low for one tick */
    SQUARE = 3,         /* periodic, low for half of the time */
    STROBE = 4,         /* low for one tick at the end */
    GATED_STROBE = 5,   /* the same, started by the gate */
};

enum { ACCESS_LATCH, ACCESS_LOW, ACCESS_HIGH, ACCESS_BOTH };

/* Control word; counter 3 is the read-back command. */
#define CONTROL_COUNTER_SHIFT 6
#define CONTROL_ACCESS_SHIFT 4
#define CONTROL_MODE_SHIFT 1
#define CONTROL_DECIMAL 0x01
#define READ_BACK_NO_COUNT 0x20
#define READ_BACK_NO_STATUS 0x10
#define STATUS_OUTPUT 0x80
#define STATUS_NULL_COUNT 0x40

/* Port 0x61. */
#define SYSTEM_GATE2 0x01
#define SYSTEM_SPEAKER 0x02
#define SYSTEM_REFRESH 0x10
#define SYSTEM_OUTPUT2 0x20
#define REFRESH_NS UINT64_C(15085) /* counter 1 at its usual count of 18 */

/* So that a guest with a tiny period cannot keep the host busy. */
#define SHORTEST_TIMER_NS UINT64_C(100000)

/* ---- time
 * ------------------------------------------------------------------------------ */

static uint64_t ticks_from_ns(uint64_t ns)
{
    return ns / NS_PER_SECOND * PIT_HZ + ns % NS_PER_SECOND * PIT_HZ / NS_PER_SECOND;
}

/* Rounded up: when so many ticks are over. */
static uint64_t ns_from_ticks(uint64_t ticks)
{
    return ticks / PIT_HZ * NS_PER_SECOND +
           (ticks % PIT_HZ * NS_PER_SECOND + PIT_HZ - 1) / PIT_HZ;
}

/* Ticks since the count was loaded, or triggered. */
static uint64_t elapsed(const struct pit_counter *counter, uint64_t now_ns)
{
    return counter->running ? ticks_from_ns(now_ns - counter->start_ns)
                            : counter->stood_at;
}

static bool is_periodic(const struct pit_counter *counter)
{
    return counter->mode == RATE || counter->mode == SQUARE;
}

static bool is_started_by_gate(const struct pit_counter *counter)
{
    return counter->mode == ONE_SHOT || counter->mode == GATED_STROBE;
}

static bool output(const struct pit_counter *counter, uint64_t now_ns)
{
    uint64_t ticks = elapsed(counter, now_ns);

    if (counter->null_count)
        return counter->mode != TERMINAL_COUNT;
    switch (counter->mode) {
    case TERMINAL_COUNT:
    case ONE_SHOT:
        return ticks >= counter->count;
    case RATE:
        return !counter->running || ticks % counter->count != counter->count - 1;
    case SQUARE:
        return !counter->running || ticks % counter->count < (counter->count + 1) / 2;
    default:
        return ticks != counter->count;
    }
}

static uint16_t to_decimal(uint32_t value)
{
    return (uint16_t)(value % 10 | value / 10 % 10 << 4 | value / 100 % 10 << 8 |
                      value / 1000 % 10 << 12);
}

static uint32_t from_decimal(uint32_t digits)
{
    return (digits & 0xf) + 10 * (digits >> 4 & 0xf) + 100 * (digits >> 8 & 0xf) +
           1000 * (digits >> 12 & 0xf);
}

/* What the counting element holds. */
static uint16_t current(const struct pit_counter *counter, uint64_t now_ns)
{
    uint64_t ticks = elapsed(counter, now_ns);
    uint32_t modulus = counter->decimal ? 10000 : 0x10000;
    uint32_t left;

    if (counter->mode == SQUARE) /* counts in twos, twice each period */
        left = counter->count - (uint32_t)(2 * ticks % counter->count);
    else if (counter->mode == RATE)
        left = counter->count - (uint32_t)(ticks % counter->count);
    else /* goes on behind the end */
        left = (uint32_t)((counter->count + modulus - ticks % modulus) % modulus);
    left %= modulus;
    return counter->decimal ? to_decimal(left) : (uint16_t)left;
}

/* ---- interrupts of counter 0
 * ----------------------------------------------------------- */

static void set_deadline(struct pit *pit, uint64_t deadline_ns)
{
    pit->deadline_ns = deadline_ns;
    machine_timer_set(&pit->timer, deadline_ns);
}

/* Counter 0 has been programmed or loaded. */
static void restart_interrupts(struct pit *pit)
{
    const struct pit_counter *counter = &pit->counters[0];
    uint64_t now_ns = machine_clock_now_ns(pit->clock);

    irq_line_set(&pit->line, output(counter, now_ns));
    if (counter->running)
        set_deadline(pit, counter->start_ns + ns_from_ticks(counter->count));
    else
        set_deadline(pit, MACHINE_TIMER_OFF);
}

void pit_expired(void *context)
{
    struct pit *pit = context;
    const struct pit_counter *counter = &pit->counters[0];
    uint64_t now_ns;

    pthread_mutex_lock(&pit->lock);
    now_ns = machine_clock_now_ns(pit->clock);
    if (now_ns < pit->deadline_ns) { /* set anew since the timer went off */
        pthread_mutex_unlock(&pit->lock);
        return;
    }
    if (counter->mode != TERMINAL_COUNT)
        irq_line_set(&pit->line, false);
    irq_line_set(&pit->line, true);
    if (is_periodic(counter)) {
        uint64_t periods = elapsed(counter, now_ns) / counter->count + 1;

        pit->deadline_ns = counter->start_ns + ns_from_ticks(periods * counter->count);
        machine_timer_set(&pit->timer,
                          max_u64(pit->deadline_ns, now_ns + SHORTEST_TIMER_NS));
    } else {
        set_deadline(pit, MACHINE_TIMER_OFF);
    }
    pthread_mutex_unlock(&pit->lock);
}

/* ---- counters
 * -------------------------------------------------------------------------- */

static void start(struct pit_counter *counter, uint64_t now_ns)
{
    counter->running = true;
    counter->start_ns = now_ns;
    counter->stood_at = 0;
}

static void stop(struct pit_counter *counter, uint64_t now_ns)
{
    counter->stood_at = elapsed(counter, now_ns);
    counter->running = false;
}

static void load(struct pit *pit, unsigned number, uint16_t value)
{
    struct pit_counter *counter = &pit->counters[number];
    uint32_t modulus = counter->decimal ? 10000 : 0x10000;
    uint32_t count = counter->decimal ? from_decimal(value) : value;

    counter->count = count == 0 ? modulus : count;
    counter->null_count = false;
    counter->running = false;
    counter->stood_at = 0;
    if (is_started_by_gate(counter))
        counter->stood_at = counter->count; /* at rest until the gate rises */
    else if (counter->gate)
        start(counter, machine_clock_now_ns(pit->clock));
    if (number == 0)
        restart_interrupts(pit);
}

static void set_gate(struct pit_counter *counter, bool gate, uint64_t now_ns)
{
    bool rises = gate && !counter->gate;
    bool falls = !gate && counter->gate;

    counter->gate = gate;
    if (counter->null_count)
        return;
    if (rises && (is_started_by_gate(counter) || is_periodic(counter))) {
        start(counter, now_ns);
    } else if (rises) { /* goes on where it stood */
        counter->start_ns = now_ns - ns_from_ticks(counter->stood_at);
        counter->running = true;
    } else if (falls && !is_started_by_gate(counter)) {
        stop(counter, now_ns);
    }
}

static void latch_count(struct pit_counter *counter, uint64_t now_ns)
{
    if (counter->latched_bytes != 0) /* the first latch stays until it is read */
        return;
    counter->latched = current(counter, now_ns);
    counter->latched_bytes = counter->access == ACCESS_BOTH ? 2 : 1;
}

static void latch_status(struct pit_counter *counter, uint64_t now_ns)
{
    if (counter->status_is_latched)
        return;
    counter->status_is_latched = true;
    counter->status = (uint8_t)((output(counter, now_ns) ? STATUS_OUTPUT : 0) |
                                (counter->null_count ? STATUS_NULL_COUNT : 0) |
                                counter->access << CONTROL_ACCESS_SHIFT |
                                counter->mode << CONTROL_MODE_SHIFT |
                                (counter->decimal ? CONTROL_DECIMAL : 0));
}

static void program(struct pit *pit, unsigned number, uint8_t control)
{
    struct pit_counter *counter = &pit->counters[number];
    uint8_t mode = control >> CONTROL_MODE_SHIFT & 7;

    *counter = (struct pit_counter){
        .mode = mode > GATED_STROBE ? mode & 3 : mode, /* 6 and 7 are 2 and 3 */
        .access = control >> CONTROL_ACCESS_SHIFT & 3,
        .decimal = (control & CONTROL_DECIMAL) != 0,
        .gate = counter->gate,
        .null_count = true,
        .count = 0x10000,
    };
    if (number == 0)
        restart_interrupts(pit);
}

static void write_control(struct pit *pit, uint8_t control)
{
    unsigned number = control >> CONTROL_COUNTER_SHIFT;
    uint64_t now_ns = machine_clock_now_ns(pit->clock);

    if (number < PIT_COUNTERS) {
        if ((control >> CONTROL_ACCESS_SHIFT & 3) == ACCESS_LATCH)
            latch_count(&pit->counters[number], now_ns);
        else
            program(pit, number, control);
        return;
    }
    for (unsigned i = 0; i < PIT_COUNTERS; i++) {
        if ((control >> (i + 1) & 1) == 0)
            continue;
        if ((control & READ_BACK_NO_COUNT) == 0)
            latch_count(&pit->counters[i], now_ns);
        if ((control & READ_BACK_NO_STATUS) == 0)
            latch_status(&pit->counters[i], now_ns);
    }
}

static void write_count(struct pit *pit, unsigned number, uint8_t value)
{
    struct pit_counter *counter = &pit->counters[number];

    if (counter->access == ACCESS_LOW) {
        load(pit, number, value);
    } else if (counter->access == ACCESS_HIGH) {
        load(pit, number, (uint16_t)(value << 8));
    } else if (counter->low_is_written) {
        counter->low_is_written = false;
        load(pit, number, (uint16_t)(value << 8 | counter->low_written));
    } else {
        counter->low_is_written = true;
        counter->low_written = value;
        if (counter->mode == TERMINAL_COUNT) { /* half a count stops it */
            stop(counter, machine_clock_now_ns(pit->clock));
            counter->null_count = true;
            if (number == 0)
                restart_interrupts(pit);
        }
    }
}

static uint8_t read_count(struct pit_counter *counter, uint64_t now_ns)
{
    uint16_t value = counter->latched;
    bool high;

    if (counter->status_is_latched) {
        counter->status_is_latched = false;
        return counter->status;
    }
    if (counter->latched_bytes > 0) {
        high = counter->access == ACCESS_HIGH ||
               (counter->access == ACCESS_BOTH && counter->latched_bytes == 1);
        counter->latched_bytes--;
    } else {
        value = current(counter, now_ns);
        high = counter->access == ACCESS_HIGH ||
               (counter->access == ACCESS_BOTH && counter->low_is_read);
        counter->low_is_read = counter->access == ACCESS_BOTH && !counter->low_is_read;
    }
    return (uint8_t)(high ? value >> 8 : value);
}

/* ---- ports
 * ----------------------------------------------------------------------------- */

static uint64_t pit_read(void *device, uint64_t offset, unsigned size)
{
    struct pit *pit = device;
    uint8_t value = 0; /* the control port cannot be read */

    (void)size;
    pthread_mutex_lock(&pit->lock);
    if (offset < PIT_COUNTERS)
        value = read_count(&pit->counters[offset], machine_clock_now_ns(pit->clock));
    pthread_mutex_unlock(&pit->lock);
    return value;
}

static void pit_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct pit *pit = device;

    (void)size;
    pthread_mutex_lock(&pit->lock);
    if (offset == PIT_CONTROL)
        write_control(pit, (uint8_t)value);
    else
        write_count(pit, (unsigned)offset, (uint8_t)value);
    pthread_mutex_unlock(&pit->lock);
}

static uint64_t system_read(void *device, uint64_t offset, unsigned size)
{
    struct pit *pit = device;
    const struct pit_counter *counter = &pit->counters[2];
    uint64_t now_ns;
    unsigned value = 0;

    (void)offset;
    (void)size;
    pthread_mutex_lock(&pit->lock);
    now_ns = machine_clock_now_ns(pit->clock);
    if (counter->gate)
        value |= SYSTEM_GATE2;
    if (pit->speaker)
        value |= SYSTEM_SPEAKER;
    if (now_ns / REFRESH_NS % 2 != 0)
        value |= SYSTEM_REFRESH;
    if (output(counter, now_ns))
        value |= SYSTEM_OUTPUT2;
    pthread_mutex_unlock(&pit->lock);
    return value;
}

static void system_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct pit *pit = device;

    (void)offset;
    (void)size;
    pthread_mutex_lock(&pit->lock);
    set_gate(&pit->counters[2], (value & SYSTEM_GATE2) != 0,
             machine_clock_now_ns(pit->clock));
    pit->speaker = (value & SYSTEM_SPEAKER) != 0;
    pthread_mutex_unlock(&pit->lock);
}

static const struct bus_ops pit_ops = {
    .name = "8254",
    .width_bytes = 1,
    .read = pit_read,
    .write = pit_write,
};

static const struct bus_ops system_ops = {
    .name = "system control port",
    .width_bytes = 1,
    .read = system_read,
    .write = system_write,
};

int pit_attach(struct pit *pit, struct bus *ports, struct error *err)
{
    int code = bus_attach(ports, LAYOUT_PORT_PIT, PIT_PORTS, &pit_ops, pit, err);

    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_SYSTEM_CONTROL, 1, &system_ops, pit, err);
    return code;
}

/* ---- states
 * ---------------------------------------------------------------------------- */

/* The chip's own power-on state is undefined; nothing counts until it is programmed. */
static void clear(struct pit *pit)
{
    for (unsigned i = 0; i < PIT_COUNTERS; i++)
        pit->counters[i] = (struct pit_counter){
            .mode = SQUARE,
            .access = ACCESS_BOTH,
            .gate = i != 2,
            .null_count = true,
            .count = 0x10000,
        };
    pit->speaker = false;
    set_deadline(pit, MACHINE_TIMER_OFF);
}

int pit_init(struct pit *pit, struct irq_line line, struct machine_clock *clock,
             struct error *err)
{
    *pit = (struct pit){
        .line = line,
        .clock = clock,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    if (machine_timer_init(&pit->timer, clock, pit_expired, pit, err) < 0)
        return err->code;
    clear(pit);
    return 0;
}

void pit_finish(struct pit *pit)
{
    machine_timer_finish(&pit->timer);
}

void pit_reset(struct pit *pit)
{
    pthread_mutex_lock(&pit->lock);
    clear(pit);
    pthread_mutex_unlock(&pit->lock);
}
