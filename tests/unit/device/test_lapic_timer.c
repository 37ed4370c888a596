/* SPDX-License-Identifier: Apache-2.0 */
/* The local APIC's timer: counting, dividing, its three modes, and when it goes off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apic_fixture.h"
#include "base/bytes.h"

#define VECTOR 0x31
#define PERIODIC 0x20000
#define DEADLINE 0x40000
#define MASKED 0x10000
#define BY_1 0xb

/* Mode and vector, divided by 1. */
static void program(struct apic_fixture *fixture, uint32_t entry)
{
    apic_write(fixture, 0, APIC_REG_TIMER_DIVIDE, BY_1);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, entry);
}

static uint32_t current(struct apic_fixture *fixture)
{
    return apic_read(fixture, 0, APIC_REG_TIMER_CURRENT);
}

/* Interrupts so far, taken and ended. */
static unsigned interrupts(struct apic_fixture *fixture)
{
    unsigned count = 0;

    while (apic_acknowledge(fixture, 0) == VECTOR) {
        apic_write(fixture, 0, APIC_REG_EOI, 0);
        count++;
    }
    return count;
}

static void one_shot_counts_down_once(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, fixture->clock.now_ns + 1000);
    assert_int_equal(current(fixture), 1000);
    apic_pass_ns(fixture, 1);
    assert_int_equal(current(fixture), 999);
    apic_pass_ns(fixture, 998);
    assert_int_equal(current(fixture), 1);
    assert_int_equal(interrupts(fixture), 0);
    apic_pass_ns(fixture, 1);
    assert_int_equal(current(fixture), 0);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    apic_pass_ns(fixture, 100000);
    assert_int_equal(current(fixture), 0);
    assert_int_equal(interrupts(fixture), 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TIMER_INITIAL), 1000);
}

static void divides_by_what_the_register_says(void **state)
{
    static const struct {
        uint32_t configuration;
        uint64_t divisor;
    } cases[] = {{0x0, 2},  {0x1, 4},  {0x2, 8},   {0x3, 16},
                 {0x8, 32}, {0x9, 64}, {0xa, 128}, {0xb, 1}};
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        apic_write(fixture, 0, APIC_REG_TIMER_DIVIDE, cases[i].configuration);
        apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 10);
        assert_int_equal(fixture->lapics[0].timer.deadline_ns,
                         fixture->clock.now_ns + 10 * cases[i].divisor);
        apic_pass_ns(fixture, 3 * cases[i].divisor);
        assert_int_equal(current(fixture), 7);
    }
}

static void a_new_divisor_goes_on_with_the_count(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    apic_pass_ns(fixture, 400);
    apic_write(fixture, 0, APIC_REG_TIMER_DIVIDE, 0x3); /* by 16 */
    assert_int_equal(current(fixture), 600);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns,
                     fixture->clock.now_ns + UINT64_C(600) * 16);
}

static void periodic_keeps_its_phase(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t start_ns = fixture->clock.now_ns;

    program(fixture, PERIODIC | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000000);
    apic_pass_ns(fixture, 1000000);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, start_ns + 2000000);
    assert_int_equal(current(fixture), 1000000);
    /* The host was late: three and a half periods are one interrupt. */
    apic_pass_ns(fixture, 3500000);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, start_ns + 5000000);
    assert_int_equal(current(fixture), 500000);
}

static void tiny_periods_do_not_keep_the_host_busy(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PERIODIC | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1);
    apic_pass_ns(fixture, 1);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns,
                     fixture->clock.now_ns + 100000);
}

static void zero_stops(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PERIODIC | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 0);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_int_equal(current(fixture), 0);
    apic_pass_ns(fixture, 5000);
    assert_int_equal(interrupts(fixture), 0);
}

static void masked_counts_silently(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, MASKED | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    apic_pass_ns(fixture, 500);
    assert_int_equal(current(fixture), 500);
    apic_pass_ns(fixture, 500);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR); /* what was masked is lost */
    assert_int_equal(interrupts(fixture), 0);
}

/* As kvm-unit-tests' apic test goes through them. */
static void count_goes_on_between_one_shot_and_periodic(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000000);
    apic_pass_ns(fixture, 700000);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, PERIODIC | VECTOR);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TIMER_INITIAL), 1000000);
    assert_int_equal(current(fixture), 300000);
    apic_pass_ns(fixture, 300000);
    assert_int_equal(current(fixture), 1000000);
    apic_pass_ns(fixture, 800000);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR);
    assert_int_equal(current(fixture), 200000);
    apic_pass_ns(fixture, 200000);
    assert_int_equal(current(fixture), 0);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, PERIODIC | VECTOR);
    assert_int_equal(current(fixture), 0); /* until a count is written */
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void one_shot_after_missed_periods_ends_with_the_current(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PERIODIC | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    fixture->clock.now_ns += 2300; /* the timer has not gone off yet */
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR);
    assert_int_equal(current(fixture), 700);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, fixture->clock.now_ns + 700);
}

/* The guest is faster than the loop's thread. */
static void what_is_due_comes_before_a_change(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    fixture->clock.now_ns += 1000;
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, PERIODIC | VECTOR);
    assert_int_equal(current(fixture), 0); /* the shot is over */
    assert_int_equal(interrupts(fixture), 1);

    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    fixture->clock.now_ns += 1000;
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 5000);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(current(fixture), 5000);

    fixture->clock.now_ns += 5000;
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, MASKED | VECTOR);
    assert_int_equal(interrupts(fixture), 1);

    apic_write(fixture, 0, APIC_REG_LVT_TIMER, DEADLINE | VECTOR);
    fixture->ns_until_tsc = 1000;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 7));
    fixture->clock.now_ns += 1000;
    fixture->ns_until_tsc = 0;
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR);
    assert_int_equal(interrupts(fixture), 1);
}

static void a_call_that_comes_too_early_does_nothing(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    fixture->clock.now_ns += 999;
    lapic_timer_expired(&fixture->lapics[0]);
    assert_int_equal(interrupts(fixture), 0);
    assert_int_equal(current(fixture), 1);
}

/* ---- TSC deadlines ---- */

static void deadline_fires_when_the_counter_has_arrived(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t value;

    program(fixture, DEADLINE | VECTOR);
    fixture->ns_until_tsc = 5000;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 0x123456789));
    assert_int_equal(fixture->asked_tsc, 0x123456789);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, fixture->clock.now_ns + 5000);
    assert_true(apic_read_msr(fixture, 0, MSR_TSC_DEADLINE, &value));
    assert_int_equal(value, 0x123456789);
    assert_int_equal(current(fixture), 0);

    fixture->ns_until_tsc = 3; /* the counter lags behind the clock */
    apic_pass_ns(fixture, 5000);
    assert_int_equal(interrupts(fixture), 0);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, fixture->clock.now_ns + 3);
    fixture->ns_until_tsc = 0;
    apic_pass_ns(fixture, 3);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_true(apic_read_msr(fixture, 0, MSR_TSC_DEADLINE, &value));
    assert_int_equal(value, 0);
}

static void past_deadline_fires_at_once(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, DEADLINE | VECTOR);
    fixture->ns_until_tsc = 0;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 1));
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void deadline_of_zero_disarms(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, DEADLINE | VECTOR);
    fixture->ns_until_tsc = 5000;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 9));
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 0));
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    fixture->ns_until_tsc = 0;
    apic_pass_ns(fixture, 5000);
    assert_int_equal(interrupts(fixture), 0);
}

static void far_deadlines_do_not_wrap(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, DEADLINE | VECTOR);
    fixture->ns_until_tsc = UINT64_MAX;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, UINT64_MAX));
    assert_int_equal(fixture->lapics[0].timer.deadline_ns,
                     fixture->clock.now_ns + (UINT64_C(1) << 62));
}

static void other_modes_have_no_deadline(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t value;

    program(fixture, VECTOR);
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 77));
    assert_true(apic_read_msr(fixture, 0, MSR_TSC_DEADLINE, &value));
    assert_int_equal(value, 0);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_int_equal(interrupts(fixture), 0);
}

static void deadline_mode_has_no_count(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, DEADLINE | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TIMER_INITIAL), 0);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void switching_from_and_to_deadlines_disarms(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t value;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, DEADLINE | VECTOR);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    fixture->ns_until_tsc = 5000;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 9));
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, VECTOR);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, DEADLINE | VECTOR);
    assert_true(apic_read_msr(fixture, 0, MSR_TSC_DEADLINE, &value));
    assert_int_equal(value, 0);
}

static void init_stops_the_timer(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, PERIODIC | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    apic_write(fixture, 1, APIC_REG_ICR_HIGH, 0);
    apic_write(fixture, 1, APIC_REG_ICR, 0x4500);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
}

/* ---- while the processor halts ---- */

static uint64_t fall_asleep(struct apic_fixture *fixture)
{
    const struct irq_source *source = &fixture->lapics[0].source;

    return source->fall_asleep(source->context);
}

static void wake_up(struct apic_fixture *fixture)
{
    const struct irq_source *source = &fixture->lapics[0].source;

    source->wake_up(source->context);
}

static void halted_processor_waits_in_the_place_of_the_timer(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    assert_int_equal(fall_asleep(fixture), fixture->clock.now_ns + 1000);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    apic_pass_ns(fixture, 1000);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 0);
    wake_up(fixture);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fall_asleep(fixture), IRQ_NOT_DUE);
}

static void timer_comes_again_for_a_processor_that_wakes_early(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t end_ns = fixture->clock.now_ns + 1000;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    assert_int_equal(fall_asleep(fixture), end_ns);
    apic_pass_ns(fixture, 400);
    wake_up(fixture);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, end_ns);
    apic_pass_ns(fixture, 600);
    assert_int_equal(interrupts(fixture), 1);
}

static void periods_go_on_while_the_processor_halts(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t start_ns = fixture->clock.now_ns;

    program(fixture, PERIODIC | VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000000);
    assert_int_equal(fall_asleep(fixture), start_ns + 1000000);
    apic_pass_ns(fixture, 1200000);
    wake_up(fixture);
    assert_int_equal(interrupts(fixture), 1);
    assert_int_equal(fall_asleep(fixture), start_ns + 2000000);
}

static void halted_processor_waits_on_until_the_counter_has_arrived(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, DEADLINE | VECTOR);
    fixture->ns_until_tsc = 5000;
    assert_true(apic_write_msr(fixture, 0, MSR_TSC_DEADLINE, 123456));
    assert_int_equal(fall_asleep(fixture), fixture->clock.now_ns + 5000);
    apic_pass_ns(fixture, 5000);
    fixture->ns_until_tsc = 7;
    wake_up(fixture);
    assert_int_equal(interrupts(fixture), 0);
    assert_int_equal(fall_asleep(fixture), fixture->clock.now_ns + 7);
}

static void init_of_a_halted_processor_stops_its_timer(void **state)
{
    struct apic_fixture *fixture = *state;

    program(fixture, VECTOR);
    apic_write(fixture, 0, APIC_REG_TIMER_INITIAL, 1000);
    assert_int_equal(fall_asleep(fixture), fixture->clock.now_ns + 1000);
    apic_write(fixture, 1, APIC_REG_ICR_HIGH, 0);
    apic_write(fixture, 1, APIC_REG_ICR, 0x4500);
    wake_up(fixture);
    assert_int_equal(fixture->lapics[0].timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        APIC_TEST(one_shot_counts_down_once),
        APIC_TEST(divides_by_what_the_register_says),
        APIC_TEST(a_new_divisor_goes_on_with_the_count),
        APIC_TEST(periodic_keeps_its_phase),
        APIC_TEST(tiny_periods_do_not_keep_the_host_busy),
        APIC_TEST(zero_stops),
        APIC_TEST(masked_counts_silently),
        APIC_TEST(count_goes_on_between_one_shot_and_periodic),
        APIC_TEST(one_shot_after_missed_periods_ends_with_the_current),
        APIC_TEST(what_is_due_comes_before_a_change),
        APIC_TEST(a_call_that_comes_too_early_does_nothing),
        APIC_TEST(deadline_fires_when_the_counter_has_arrived),
        APIC_TEST(past_deadline_fires_at_once),
        APIC_TEST(deadline_of_zero_disarms),
        APIC_TEST(far_deadlines_do_not_wrap),
        APIC_TEST(other_modes_have_no_deadline),
        APIC_TEST(deadline_mode_has_no_count),
        APIC_TEST(switching_from_and_to_deadlines_disarms),
        APIC_TEST(init_stops_the_timer),
        APIC_TEST(halted_processor_waits_in_the_place_of_the_timer),
        APIC_TEST(timer_comes_again_for_a_processor_that_wakes_early),
        APIC_TEST(periods_go_on_while_the_processor_halts),
        APIC_TEST(halted_processor_waits_on_until_the_counter_has_arrived),
        APIC_TEST(init_of_a_halted_processor_stops_its_timer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
