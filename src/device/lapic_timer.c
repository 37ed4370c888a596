/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local APIC's timer (SDM 10.5.4): one-shot and periodic count at
 * LAYOUT_APIC_TIMER_HZ, and TSC deadlines.
 *
 * What counts is not a counter but the time at which it is 0 next; the machine's timer
 * is set for it. A periodic timer that the host wakes late goes on in its phase: periods
 * that have passed meanwhile are one interrupt, as their vector could be requested only
 * once.
 */
#include "base/bytes.h"
#include "base/clock.h"
#include "device/lapic_private.h"
#include "x86/layout.h"

/* So that a guest with a tiny period cannot keep the host busy. */
#define SHORTEST_TIMER_NS UINT64_C(100000)

/* Centuries; a sum with the time of day does not wrap. */
#define LONGEST_TIMER_NS (UINT64_C(1) << 62)

_Static_assert(LAYOUT_APIC_TIMER_HZ == NS_PER_SECOND, "a count is a nanosecond");

static uint32_t mode_of(const struct lapic *lapic)
{
    return lapic->lvt[LVT_TIMER] & LVT_TIMER_MODE;
}

/* Divide configuration register (figure 10-10): bits 3, 1, 0; 7 is "by 1". */
static unsigned divide_shift(const struct lapic *lapic)
{
    return ((lapic->divide & 3) + (lapic->divide >> 1 & 4) + 1) & 7;
}

static uint64_t period_ns(const struct lapic *lapic)
{
    return (uint64_t)lapic->initial_count << divide_shift(lapic);
}

/* Which is a system call, so only if it changes anything. */
static void set_timer(struct lapic *lapic, uint64_t at_ns)
{
    if (at_ns == lapic->timer_ns)
        return;
    lapic->timer_ns = at_ns;
    machine_timer_set(&lapic->timer, at_ns);
}

void lapic_timer_stop(struct lapic *lapic)
{
    lapic->deadline_ns = MACHINE_TIMER_OFF;
    set_timer(lapic, MACHINE_TIMER_OFF);
}

static void run_until(struct lapic *lapic, uint64_t deadline_ns)
{
    lapic->deadline_ns = deadline_ns;
    set_timer(lapic, deadline_ns);
}

/* The deadline moved on to the first end of a period behind `now_ns`. */
static uint64_t next_period(const struct lapic *lapic, uint64_t now_ns)
{
    uint64_t period = period_ns(lapic);

    if (now_ns < lapic->deadline_ns)
        return lapic->deadline_ns;
    return lapic->deadline_ns + ((now_ns - lapic->deadline_ns) / period + 1) * period;
}

/* ---- counting
 * -------------------------------------------------------------------------- */

void lapic_timer_set_initial(struct lapic *lapic, uint32_t count)
{
    if (mode_of(lapic) == LVT_TIMER_DEADLINE)
        return;
    lapic_timer_settle(lapic);
    lapic->initial_count = count;
    if (count == 0)
        lapic_timer_stop(lapic);
    else
        run_until(lapic, machine_clock_now_ns(lapic->clock) + period_ns(lapic));
}

uint32_t lapic_timer_current(const struct lapic *lapic)
{
    uint64_t now_ns = machine_clock_now_ns(lapic->clock);
    uint64_t deadline_ns = lapic->deadline_ns;

    if (deadline_ns == MACHINE_TIMER_OFF || mode_of(lapic) == LVT_TIMER_DEADLINE)
        return 0;
    if (mode_of(lapic) == LVT_TIMER_PERIODIC)
        deadline_ns = next_period(lapic, now_ns);
    if (now_ns >= deadline_ns)
        return 0;
    /* Rounded up: 0 is read only when the time is over. */
    return (uint32_t)((deadline_ns - now_ns - 1) >> divide_shift(lapic)) + 1;
}

void lapic_timer_set_divide(struct lapic *lapic, uint32_t divide)
{
    uint32_t current;

    lapic_timer_settle(lapic);
    current = lapic_timer_current(lapic);
    lapic->divide = divide & 0xb;
    if (current != 0)
        run_until(lapic, machine_clock_now_ns(lapic->clock) +
                             ((uint64_t)current << divide_shift(lapic)));
}

/* ---- TSC deadlines
 * --------------------------------------------------------------------- */

/* Sets the timer for what is still missing: the clock may run a little faster than the
 * counter. */
static bool tsc_has_arrived(struct lapic *lapic)
{
    const struct irqchip_processors *processors = &lapic->bus->processors;
    uint64_t missing_ns = 0;

    if (processors->ns_until_tsc != NULL)
        missing_ns = processors->ns_until_tsc(processors->context, lapic->index,
                                              lapic->tsc_deadline);
    if (missing_ns == 0)
        return true;
    run_until(lapic,
              machine_clock_now_ns(lapic->clock) + min_u64(missing_ns, LONGEST_TIMER_NS));
    return false;
}

void lapic_timer_set_deadline(struct lapic *lapic, uint64_t tsc)
{
    if (mode_of(lapic) != LVT_TIMER_DEADLINE)
        return;
    lapic_timer_settle(lapic);
    lapic->tsc_deadline = tsc;
    if (tsc == 0) {
        lapic_timer_stop(lapic);
    } else if (tsc_has_arrived(lapic)) {
        lapic->tsc_deadline = 0;
        lapic_timer_stop(lapic);
        lapic_raise_local(lapic, LVT_TIMER);
    }
}

/* ---- modes and ends
 * -------------------------------------------------------------------- */

/* Between one-shot and periodic the count goes on; a switch from or to deadlines disarms
 * (10.5.4.1). */
void lapic_timer_mode_changed(struct lapic *lapic, uint32_t before)
{
    uint32_t mode = mode_of(lapic);

    if (mode == before)
        return;
    if (mode != LVT_TIMER_DEADLINE && before != LVT_TIMER_DEADLINE) {
        run_until(lapic, lapic->deadline_ns);
        return;
    }
    lapic->tsc_deadline = 0;
    lapic->initial_count = 0;
    lapic_timer_stop(lapic);
}

void lapic_timer_settle(struct lapic *lapic)
{
    uint64_t now_ns = machine_clock_now_ns(lapic->clock);

    if (now_ns < lapic->deadline_ns)
        return;
    if (mode_of(lapic) == LVT_TIMER_PERIODIC) {
        lapic->deadline_ns = next_period(lapic, now_ns);
        set_timer(lapic, max_u64(lapic->deadline_ns, now_ns + SHORTEST_TIMER_NS));
    } else if (mode_of(lapic) != LVT_TIMER_DEADLINE || tsc_has_arrived(lapic)) {
        lapic->tsc_deadline = 0;
        lapic_timer_stop(lapic);
    } else {
        return;
    }
    lapic_raise_local(lapic, LVT_TIMER);
}

/* ---- while the processor halts
 * ---------------------------------------------------------------------- */

uint64_t lapic_timer_suspend(struct lapic *lapic)
{
    uint64_t due_ns = lapic->timer_ns;

    set_timer(lapic, MACHINE_TIMER_OFF);
    return due_ns;
}

void lapic_timer_resume(struct lapic *lapic)
{
    lapic_timer_settle(lapic);
    if (lapic->timer_ns == MACHINE_TIMER_OFF)
        set_timer(lapic, lapic->deadline_ns);
}

void lapic_timer_expired(void *context)
{
    struct lapic *lapic = context;

    pthread_mutex_lock(&lapic->bus->lock);
    lapic_timer_settle(lapic); /* nothing if it was armed anew since the timer went off */
    pthread_mutex_unlock(&lapic->bus->lock);
}
