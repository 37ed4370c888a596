/* SPDX-License-Identifier: Apache-2.0 */
/* The High Precision Event Timer; see hpet_private.h. */
#include "device/hpet_private.h"

#include "base/bytes.h"
#include "x86/layout.h"

/* Registers (2.3.1), 8 bytes each. */
enum hpet_register {
    REGISTER_CAPABILITIES = 0x000,
    REGISTER_CONFIG = 0x010,
    REGISTER_STATUS = 0x020,
    REGISTER_COUNTER = 0x0f0,
    REGISTER_TIMERS = 0x100, /* the first of each comparator's */
};
#define TIMER_STRIDE 0x20
#define TIMER_CONFIG 0x00 /* offset in a comparator's registers */
#define TIMER_COMPARATOR 0x08
#define TIMERS_LIMIT (REGISTER_TIMERS + HPET_TIMERS * TIMER_STRIDE)
#define REGISTER_BYTES 8

/* General capabilities and identification (2.3.4); LAYOUT_HPET_ID is the low half. */
#define CAPABILITY_LEGACY UINT64_C(0x8000)
#define CAPABILITY_PERIOD_SHIFT 32
#define PERIOD_NS UINT64_C(10) /* the limit is 100 */
#define FEMTOSECONDS_PER_NS UINT64_C(1000000)

/* General configuration (2.3.5). */
#define CONFIG_ENABLE UINT64_C(0x1)
#define CONFIG_LEGACY UINT64_C(0x2)

/* A comparator's configuration and capabilities (2.3.8). */
#define TIMER_LEVEL UINT64_C(0x2)
#define TIMER_INTERRUPT UINT64_C(0x4)
#define TIMER_PERIODIC UINT64_C(0x8)
#define TIMER_SET_VALUE UINT64_C(0x40)
#define TIMER_32_BITS UINT64_C(0x100)
#define TIMER_ROUTE UINT64_C(0x3e00)
#define TIMER_ROUTE_SHIFT 9
#define TIMER_WRITABLE                                                                   \
    (TIMER_LEVEL | TIMER_INTERRUPT | TIMER_PERIODIC | TIMER_SET_VALUE | TIMER_32_BITS |  \
     TIMER_ROUTE)
#define TIMER_CAN_BE_PERIODIC UINT64_C(0x10)
#define TIMER_HAS_64_BITS UINT64_C(0x20)
#define TIMER_LINES_SHIFT 32 /* the lines that TIMER_ROUTE may name, a bit each */
#define TIMER_CAPABILITIES                                                               \
    (TIMER_CAN_BE_PERIODIC | TIMER_HAS_64_BITS |                                         \
     (uint64_t)LAYOUT_HPET_LINES << TIMER_LINES_SHIFT)

/* So that a guest with a tiny period cannot keep the host busy. */
#define SHORTEST_PERIOD (UINT64_C(100000) / PERIOD_NS)

/* ---- time
 * ------------------------------------------------------------------------------ */

static bool is_enabled(const struct hpet *hpet)
{
    return (hpet->config & CONFIG_ENABLE) != 0;
}

static uint64_t counter_at(const struct hpet *hpet, uint64_t now_ns)
{
    return is_enabled(hpet) ? hpet->base + (now_ns - hpet->start_ns) / PERIOD_NS
                            : hpet->base;
}

/* The counter goes on, or stands, from `value`. */
static void set_counter(struct hpet *hpet, uint64_t value, uint64_t now_ns)
{
    hpet->base = value;
    hpet->start_ns = now_ns;
    hpet->checked = value;
}

static uint64_t width_mask(const struct hpet_timer *timer)
{
    return (timer->config & TIMER_32_BITS) != 0 ? UINT32_MAX : UINT64_MAX;
}

/* Ticks, less one, until the counter arrives at the comparator again. */
static uint64_t ticks_before_match(const struct hpet_timer *timer, uint64_t counter)
{
    return (timer->comparator - counter - 1) & width_mask(timer);
}

/* ---- interrupt lines
 * ------------------------------------------------------------------- */

/* Bit of the line that a comparator drives; 0: none (2.3.5, 2.3.8). */
static uint32_t line_bit(const struct hpet *hpet, unsigned number)
{
    uint64_t route = (hpet->timers[number].config & TIMER_ROUTE) >> TIMER_ROUTE_SHIFT;

    if (hpet->is_replacement && number == 0)
        return UINT32_C(1) << LAYOUT_IRQ_TIMER;
    if (hpet->is_replacement && number == 1)
        return UINT32_C(1) << LAYOUT_IRQ_RTC;
    return UINT32_C(1) << route & LAYOUT_HPET_LINES;
}

static bool may_interrupt(const struct hpet *hpet, unsigned number)
{
    return is_enabled(hpet) && (hpet->timers[number].config & TIMER_INTERRUPT) != 0;
}

static void set_line(const struct hpet *hpet, uint32_t bit, bool level)
{
    hpet->options.set_irq(hpet->options.irq_context, (uint32_t)__builtin_ctz(bit), level);
}

/* Several comparators may share a line. */
static void update_lines(struct hpet *hpet)
{
    uint32_t levels = 0;
    uint32_t changed;

    for (unsigned i = 0; i < HPET_TIMERS; i++)
        if (may_interrupt(hpet, i) && (hpet->status >> i & 1) != 0)
            levels |= line_bit(hpet, i);
    if (hpet->rtc_level && !hpet->is_replacement)
        levels |= UINT32_C(1) << LAYOUT_IRQ_RTC;
    changed = levels ^ hpet->levels;
    hpet->levels = levels;
    for (; changed != 0; changed &= changed - 1) {
        uint32_t bit = changed & -changed;

        set_line(hpet, bit, (levels & bit) != 0);
    }
}

static void pulse_line(const struct hpet *hpet, uint32_t bit)
{
    if (bit == 0 || (hpet->levels & bit) != 0)
        return;
    set_line(hpet, bit, true);
    set_line(hpet, bit, false);
}

/* Two never drive a line at once: it falls before it is handed over. */
static void update_replacement(struct hpet *hpet)
{
    bool is_replacement = is_enabled(hpet) && (hpet->config & CONFIG_LEGACY) != 0;

    if (hpet->options.replace_timer == NULL || is_replacement == hpet->is_replacement)
        return;
    if (is_replacement)
        hpet->options.replace_timer(hpet->options.irq_context, true);
    hpet->is_replacement = is_replacement;
    update_lines(hpet);
    if (!is_replacement)
        hpet->options.replace_timer(hpet->options.irq_context, false);
}

void hpet_set_rtc_line(void *context, uint32_t line, bool level)
{
    struct hpet *hpet = context;

    (void)line;
    pthread_mutex_lock(&hpet->lock);
    hpet->rtc_level = level;
    update_lines(hpet);
    pthread_mutex_unlock(&hpet->lock);
}

/* ---- comparators
 * ----------------------------------------------------------------------- */

static void interrupt(struct hpet *hpet, unsigned number)
{
    if ((hpet->timers[number].config & TIMER_LEVEL) != 0) {
        hpet->status |= UINT64_C(1) << number;
        update_lines(hpet);
    } else if (may_interrupt(hpet, number)) {
        pulse_line(hpet, line_bit(hpet, number));
    }
}

/* A comparator that is periodic then waits for a later value (2.3.9.2.2). */
static void catch_up_timer(struct hpet *hpet, unsigned number, uint64_t elapsed)
{
    struct hpet_timer *timer = &hpet->timers[number];
    uint64_t before = ticks_before_match(timer, hpet->checked);
    uint64_t passed = elapsed - before - 1; /* since the match */

    if (elapsed <= before)
        return;
    if ((timer->config & TIMER_PERIODIC) != 0 && timer->period != 0)
        timer->comparator =
            (timer->comparator + (passed / timer->period + 1) * timer->period) &
            width_mask(timer);
    interrupt(hpet, number);
}

static void catch_up(struct hpet *hpet, uint64_t now_ns)
{
    uint64_t counter = counter_at(hpet, now_ns);

    for (unsigned i = 0; i < HPET_TIMERS; i++)
        catch_up_timer(hpet, i, counter - hpet->checked);
    hpet->checked = counter;
}

/* Ticks until the timer has to run out for a comparator, less one; UINT64_MAX: never. */
static uint64_t ticks_to_wait(const struct hpet *hpet, unsigned number)
{
    const struct hpet_timer *timer = &hpet->timers[number];
    uint64_t before = ticks_before_match(timer, hpet->checked);

    if (!may_interrupt(hpet, number) || (hpet->status >> number & 1) != 0)
        return UINT64_MAX;
    if ((timer->config & TIMER_PERIODIC) != 0 && timer->period < SHORTEST_PERIOD)
        return max_u64(before, SHORTEST_PERIOD);
    return before;
}

/* Sets the timer; all has been caught up with. */
static void update_timer(struct hpet *hpet)
{
    uint64_t elapsed = hpet->checked - hpet->base;
    uint64_t before = UINT64_MAX;
    uint64_t limit;

    for (unsigned i = 0; i < HPET_TIMERS; i++)
        before = min_u64(before, ticks_to_wait(hpet, i));
    limit = (MACHINE_TIMER_OFF - 1 - hpet->start_ns) / PERIOD_NS - elapsed;
    machine_timer_set(&hpet->timer,
                      before >= limit
                          ? MACHINE_TIMER_OFF
                          : hpet->start_ns + (elapsed + before + 1) * PERIOD_NS);
}

void hpet_expired(void *context)
{
    struct hpet *hpet = context;

    pthread_mutex_lock(&hpet->lock);
    catch_up(hpet, machine_clock_now_ns(hpet->options.clock));
    update_timer(hpet);
    pthread_mutex_unlock(&hpet->lock);
}

/* ---- registers
 * ------------------------------------------------------------------------- */

static uint64_t capabilities(const struct hpet *hpet)
{
    return LAYOUT_HPET_ID |
           (hpet->options.replace_timer != NULL ? CAPABILITY_LEGACY : 0) |
           PERIOD_NS * FEMTOSECONDS_PER_NS << CAPABILITY_PERIOD_SHIFT;
}

static uint64_t read_timer(const struct hpet *hpet, uint64_t offset)
{
    const struct hpet_timer *timer = &hpet->timers[offset / TIMER_STRIDE];

    switch (offset % TIMER_STRIDE) {
    case TIMER_CONFIG:
        return timer->config | TIMER_CAPABILITIES;
    case TIMER_COMPARATOR:
        return timer->comparator;
    default:
        return 0; /* no delivery by messages */
    }
}

static uint64_t read_register(struct hpet *hpet, uint64_t reg, uint64_t now_ns)
{
    switch (reg) {
    case REGISTER_CAPABILITIES:
        return capabilities(hpet);
    case REGISTER_CONFIG:
        return hpet->config;
    case REGISTER_STATUS:
        catch_up(hpet, now_ns);
        return hpet->status;
    case REGISTER_COUNTER:
        return counter_at(hpet, now_ns);
    default:
        if (reg < REGISTER_TIMERS || reg >= TIMERS_LIMIT)
            return 0;
        catch_up(hpet, now_ns);
        return read_timer(hpet, reg - REGISTER_TIMERS);
    }
}

/* What is in a register after a write of the bits in `mask`. */
static uint64_t merge(uint64_t old, uint64_t value, uint64_t mask)
{
    return (old & ~mask) | (value & mask);
}

static void write_config(struct hpet *hpet, uint64_t value, uint64_t now_ns)
{
    uint64_t writable =
        CONFIG_ENABLE | (hpet->options.replace_timer != NULL ? CONFIG_LEGACY : 0);
    uint64_t counter = counter_at(hpet, now_ns);

    value &= writable;
    if (((value ^ hpet->config) & CONFIG_ENABLE) != 0)
        set_counter(hpet, counter, now_ns);
    hpet->config = value;
    update_replacement(hpet);
}

/* A line that a comparator cannot have leaves it the one it has: the guest reads that
 * back (2.3.8). */
static void write_timer_config(struct hpet *hpet, unsigned number, uint64_t value)
{
    struct hpet_timer *timer = &hpet->timers[number];
    uint64_t route = (value & TIMER_ROUTE) >> TIMER_ROUTE_SHIFT;

    if ((UINT32_C(1) << route & LAYOUT_HPET_LINES) == 0)
        value = merge(value, timer->config, TIMER_ROUTE);
    if ((value & TIMER_PERIODIC) == 0)
        value &= ~TIMER_SET_VALUE;
    timer->config = value & TIMER_WRITABLE;
    timer->comparator &= width_mask(timer);
    timer->period &= width_mask(timer);
    if ((timer->config & TIMER_LEVEL) == 0)
        hpet->status &= ~(UINT64_C(1) << number);
}

/* One-shot: the value to wait for. Periodic: the period, and after "set value" in the
 * comparator's configuration that value as well, once (2.3.9.2.2). */
static void write_comparator(struct hpet_timer *timer, uint64_t value, uint64_t mask)
{
    bool is_periodic = (timer->config & TIMER_PERIODIC) != 0;

    if (!is_periodic || (timer->config & TIMER_SET_VALUE) != 0)
        timer->comparator = merge(timer->comparator, value, mask) & width_mask(timer);
    if (is_periodic)
        timer->period = merge(timer->period, value, mask) & width_mask(timer);
    timer->config &= ~TIMER_SET_VALUE;
}

static void write_timer(struct hpet *hpet, uint64_t offset, uint64_t value, uint64_t mask)
{
    unsigned number = (unsigned)(offset / TIMER_STRIDE);
    struct hpet_timer *timer = &hpet->timers[number];

    switch (offset % TIMER_STRIDE) {
    case TIMER_CONFIG:
        write_timer_config(hpet, number, merge(timer->config, value, mask));
        break;
    case TIMER_COMPARATOR:
        write_comparator(timer, value, mask);
        break;
    default:
        break;
    }
}

static void write_register(struct hpet *hpet, uint64_t reg, uint64_t value, uint64_t mask)
{
    uint64_t now_ns = machine_clock_now_ns(hpet->options.clock);

    catch_up(hpet, now_ns); /* with all as it was */
    switch (reg) {
    case REGISTER_CONFIG:
        write_config(hpet, merge(hpet->config, value, mask), now_ns);
        break;
    case REGISTER_STATUS:
        hpet->status &= ~(value & mask); /* a one clears (2.3.6) */
        break;
    case REGISTER_COUNTER:
        set_counter(hpet, merge(hpet->checked, value, mask), now_ns);
        break;
    default:
        if (reg >= REGISTER_TIMERS && reg < TIMERS_LIMIT)
            write_timer(hpet, reg - REGISTER_TIMERS, value, mask);
    }
    update_lines(hpet);
    update_timer(hpet);
}

/* Registers are accessed as a whole or by halves (2.3.2). */
static bool is_proper(uint64_t offset, unsigned size)
{
    return (size == 4 || size == REGISTER_BYTES) && offset % size == 0;
}

static uint64_t hpet_read(void *device, uint64_t offset, unsigned size)
{
    struct hpet *hpet = device;
    uint64_t value;

    if (!is_proper(offset, size))
        return 0;
    pthread_mutex_lock(&hpet->lock);
    value = read_register(hpet, offset / REGISTER_BYTES * REGISTER_BYTES,
                          machine_clock_now_ns(hpet->options.clock));
    pthread_mutex_unlock(&hpet->lock);
    return value >> offset % REGISTER_BYTES * 8;
}

static void hpet_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct hpet *hpet = device;
    unsigned shift = (unsigned)(offset % REGISTER_BYTES * 8);
    uint64_t mask = (size == 4 ? UINT64_C(0xffffffff) : UINT64_MAX) << shift;

    if (!is_proper(offset, size))
        return;
    pthread_mutex_lock(&hpet->lock);
    write_register(hpet, offset / REGISTER_BYTES * REGISTER_BYTES, value << shift, mask);
    pthread_mutex_unlock(&hpet->lock);
}

static const struct bus_ops hpet_ops = {
    .name = "HPET",
    .width_bytes = REGISTER_BYTES,
    .read = hpet_read,
    .write = hpet_write,
};

int hpet_attach(struct hpet *hpet, struct bus *mmio, struct error *err)
{
    return bus_attach(mmio, LAYOUT_HPET, LAYOUT_HPET_BYTES, &hpet_ops, hpet, err);
}

/* ---- states
 * ---------------------------------------------------------------------------- */

/* Comparators are all ones (2.3.9), so that none matches soon. */
static void clear(struct hpet *hpet)
{
    hpet->config = 0;
    hpet->status = 0;
    set_counter(hpet, 0, machine_clock_now_ns(hpet->options.clock));
    for (unsigned i = 0; i < HPET_TIMERS; i++)
        hpet->timers[i] = (struct hpet_timer){.comparator = UINT64_MAX};
    update_replacement(hpet);
    update_lines(hpet);
    update_timer(hpet);
}

int hpet_init(struct hpet *hpet, const struct hpet_options *options, struct error *err)
{
    *hpet = (struct hpet){
        .options = *options,
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    if (machine_timer_init(&hpet->timer, options->clock, hpet_expired, hpet, err) < 0)
        return err->code;
    clear(hpet);
    return 0;
}

void hpet_finish(struct hpet *hpet)
{
    machine_timer_finish(&hpet->timer);
}

void hpet_reset(struct hpet *hpet)
{
    pthread_mutex_lock(&hpet->lock);
    clear(hpet);
    pthread_mutex_unlock(&hpet->lock);
}
