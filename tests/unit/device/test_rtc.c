/* SPDX-License-Identifier: Apache-2.0 */
/* The clock on a host time that the test sets, and the CMOS bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "device/rtc_private.h"

#define ANY 0xff /* an alarm field that always matches */
#define DAY_SECONDS INT64_C(86400)

/* 2026-02-28 23:59:58.25 UTC, a Saturday, 2 seconds before a month's end. */
#define NOW_SECONDS 1772323198
static struct timespec host_time;

static struct timespec fake_time_of_day(const struct machine_clock *clock)
{
    (void)clock;
    return host_time;
}

/* Starts at 0 with NOW_SECONDS. */
static uint64_t fake_now_ns(const struct machine_clock *clock)
{
    (void)clock;
    return (uint64_t)(host_time.tv_sec - NOW_SECONDS) * 1000000000 +
           (uint64_t)host_time.tv_nsec;
}

static int accept_timer(struct machine_timer *timer, struct error *err)
{
    (void)timer;
    (void)err;
    return 0;
}

static void note_deadline(struct machine_timer *timer, uint64_t deadline_ns)
{
    timer->deadline_ns = deadline_ns;
}

static const struct machine_clock_ops fake_clock_ops = {
    .now_ns = fake_now_ns,
    .time_of_day = fake_time_of_day,
    .timer_init = accept_timer,
    .timer_set = note_deadline,
};
static struct machine_clock fake_clock = {.ops = &fake_clock_ops};

struct fixture {
    struct bus ports;
    struct rtc rtc;
    bool line;
    unsigned rises;
};

static void note_line(void *context, uint32_t line, bool level)
{
    struct fixture *fixture = context;

    assert_int_equal(line, 8);
    assert_int_not_equal(level, fixture->line);
    fixture->line = level;
    fixture->rises += level;
}

static void create(struct fixture *fixture, uint64_t memory_bytes)
{
    const struct irq_line line = {.set = note_line, .context = fixture, .line = 8};
    struct error err = ERROR_NONE;

    bus_init(&fixture->ports, "port");
    assert_int_equal(rtc_init(&fixture->rtc, memory_bytes, &fake_clock, line, &err), 0);
    assert_int_equal(rtc_attach(&fixture->rtc, &fixture->ports, &err), 0);
}

static int setup(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.line = false};
    host_time = (struct timespec){.tv_sec = NOW_SECONDS, .tv_nsec = 250000000};
    create(&fixture, 64 * MIB);
    *state = &fixture;
    return 0;
}

static uint8_t cmos_read(struct fixture *fixture, uint8_t index)
{
    bus_write(&fixture->ports, 0x70, 1, index);
    return (uint8_t)bus_read(&fixture->ports, 0x71, 1);
}

static void cmos_write(struct fixture *fixture, uint8_t index, uint8_t value)
{
    bus_write(&fixture->ports, 0x70, 1, index);
    bus_write(&fixture->ports, 0x71, 1, value);
}

/* Century, year, month, day, hours, minutes, seconds, weekday. */
static void assert_time(struct fixture *fixture, const uint8_t expected[8])
{
    static const uint8_t registers[8] = {0x32, 9, 8, 7, 4, 2, 0, 6};

    for (int i = 0; i < 8; i++)
        assert_int_equal(cmos_read(fixture, registers[i]), expected[i]);
}

static void set_time(struct fixture *fixture, const uint8_t time[7])
{
    static const uint8_t registers[7] = {0x32, 9, 8, 7, 4, 2, 0};

    for (int i = 0; i < 7; i++)
        cmos_write(fixture, registers[i], time[i]);
}

static void has_these_control_values_at_power_on(void **state)
{
    assert_int_equal(cmos_read(*state, 0x0a), 0x26);
    assert_int_equal(cmos_read(*state, 0x0b), 0x02);
    assert_int_equal(cmos_read(*state, 0x0c), 0x00);
    assert_int_equal(cmos_read(*state, 0x0d), 0x80);
    assert_int_equal(cmos_read(*state, 0x0f), 0x00);
}

static void tells_the_hosts_utc_in_bcd(void **state)
{
    assert_time(*state, (uint8_t[]){0x20, 0x26, 0x02, 0x28, 0x23, 0x59, 0x58, 0x07});
    host_time.tv_sec += 2;
    assert_time(*state, (uint8_t[]){0x20, 0x26, 0x03, 0x01, 0x00, 0x00, 0x00, 0x01});
}

static void tells_binary_if_asked(void **state)
{
    cmos_write(*state, 0x0b, 0x06);
    assert_time(*state, (uint8_t[]){20, 26, 2, 28, 23, 59, 58, 7});
}

static void tells_twelve_hours_if_asked(void **state)
{
    static const uint8_t bcd_hours[24] = {
        0x12, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x10, 0x11,
        0x92, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x90, 0x91,
    };

    cmos_write(*state, 0x0b, 0x00);
    for (int hour = 0; hour < 24; hour++) {
        host_time.tv_sec = NOW_SECONDS + 2 + hour * 3600;
        assert_int_equal(cmos_read(*state, 4), bcd_hours[hour]);
        cmos_write(*state, 4, bcd_hours[hour]); /* and understands it */
        assert_int_equal(((struct fixture *)*state)->rtc.offset_seconds, 0);
    }
}

static void update_in_progress_precedes_each_second(void **state)
{
    host_time.tv_nsec = 997771999;
    assert_int_equal(cmos_read(*state, 0x0a), 0x26);
    host_time.tv_nsec = 997772000; /* 2228 us before */
    assert_int_equal(cmos_read(*state, 0x0a), 0xa6);
    host_time.tv_nsec = 999999999;
    assert_int_equal(cmos_read(*state, 0x0a), 0xa6);
    host_time.tv_nsec = 0;
    assert_int_equal(cmos_read(*state, 0x0a), 0x26);
}

/* Linux mc146818_set_time(): SET, divider reset, the fields, then run again. */
static void goes_on_from_the_time_that_is_set(void **state)
{
    cmos_write(*state, 0x0b, 0x82);
    cmos_write(*state, 0x0a, 0x76);
    set_time(*state, (uint8_t[]){0x19, 0x99, 0x12, 0x31, 0x23, 0x59, 0x59});
    cmos_write(*state, 0x0b, 0x02);
    cmos_write(*state, 0x0a, 0x26);
    assert_time(*state, (uint8_t[]){0x19, 0x99, 0x12, 0x31, 0x23, 0x59, 0x59, 0x06});
    host_time.tv_sec += 1;
    assert_time(*state, (uint8_t[]){0x20, 0x00, 0x01, 0x01, 0x00, 0x00, 0x00, 0x07});
}

static void stands_still_while_it_is_set(void **state)
{
    cmos_write(*state, 0x0b, 0x92);
    assert_int_equal(cmos_read(*state, 0x0b), 0x82); /* SET clears the update enable */
    host_time.tv_sec += 100;
    host_time.tv_nsec = 999999999;
    assert_time(*state, (uint8_t[]){0x20, 0x26, 0x02, 0x28, 0x23, 0x59, 0x58, 0x07});
    assert_int_equal(cmos_read(*state, 0x0a), 0x26); /* no update in progress */
    assert_int_equal(cmos_read(*state, 0x0c), 0x00);
    cmos_write(*state, 0x0b, 0x02);
    assert_time(*state, (uint8_t[]){0x20, 0x26, 0x02, 0x28, 0x23, 0x59, 0x58, 0x07});
}

static void one_field_can_be_set_while_it_runs(void **state)
{
    cmos_write(*state, 2, 0x30);
    assert_time(*state, (uint8_t[]){0x20, 0x26, 0x02, 0x28, 0x23, 0x30, 0x58, 0x07});
}

static void nonsense_carries_over(void **state)
{
    cmos_write(*state, 0x0b, 0x82);
    set_time(*state, (uint8_t[]){0x20, 0x26, 0x13, 0x32, 0x24, 0x60, 0x60});
    cmos_write(*state, 0x0b, 0x02);
    /* month 13 day 32 24:60:60 of 2026 = 2027-02-02 01:01:00 */
    assert_time(*state, (uint8_t[]){0x20, 0x27, 0x02, 0x02, 0x01, 0x01, 0x00, 0x03});
}

/* The farthest dates the registers can spell must not overflow anything. */
static void extreme_dates_do_no_harm(void **state)
{
    static const uint8_t extremes[] = {0x00, 0xff};

    for (int i = 0; i < 2; i++) {
        uint8_t byte = extremes[i];

        cmos_write(*state, 0x0b, 0x86); /* binary */
        set_time(*state, (uint8_t[]){byte, byte, byte, byte, byte, byte, byte});
        cmos_write(*state, 0x0b, 0x06);
        host_time.tv_sec += 3 * DAY_SECONDS;
        cmos_write(*state, 1, ANY);
        assert_int_equal(cmos_read(*state, 0x0c) & 0x10, 0x10);
        (void)cmos_read(*state, 9);
    }
}

static void update_flag_comes_with_each_second(void **state)
{
    assert_int_equal(cmos_read(*state, 0x0c) & 0x10, 0);
    host_time.tv_nsec = 999999999;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x10, 0);
    host_time.tv_sec += 1;
    host_time.tv_nsec = 0;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x10, 0x10);
    assert_int_equal(cmos_read(*state, 0x0c), 0); /* reading clears */
}

static void flags_raise_the_summary_only_if_enabled(void **state)
{
    cmos_write(*state, 0x0a, 0x20); /* no periodic flag */
    cmos_write(*state, 5, 0x12);    /* no alarm */
    host_time.tv_sec += 1;
    assert_int_equal(cmos_read(*state, 0x0c), 0x10);
    cmos_write(*state, 0x0b, 0x12);
    host_time.tv_sec += 1;
    assert_int_equal(cmos_read(*state, 0x0c), 0x90);
}

static void set_alarm(struct fixture *fixture, uint8_t hours, uint8_t minutes,
                      uint8_t seconds)
{
    cmos_write(fixture, 5, hours);
    cmos_write(fixture, 3, minutes);
    cmos_write(fixture, 1, seconds);
    (void)cmos_read(fixture, 0x0c);
}

static void alarm_flag_comes_at_its_time(void **state)
{
    set_alarm(*state, 0x00, 0x00, 0x01);
    host_time.tv_sec += 2; /* 00:00:00 */
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0);
    host_time.tv_sec += 1;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0x20);
    host_time.tv_sec += 1;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0);
    host_time.tv_sec += 10 * DAY_SECONDS; /* also when nobody looked for days */
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0x20);
}

static void alarm_fields_can_match_always(void **state)
{
    set_alarm(*state, ANY, ANY, 0x05);
    host_time.tv_sec += 6; /* 00:00:04 */
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0);
    host_time.tv_sec += 1;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0x20);
    set_alarm(*state, 0xc0, 0xc0, 0xc0);
    host_time.tv_sec += 1;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0x20);
}

static void alarm_that_cannot_be_never_comes(void **state)
{
    set_alarm(*state, 0x24, 0x00, 0x00);
    host_time.tv_sec += 3 * DAY_SECONDS;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x20, 0);
}

static void periodic_flag_follows_the_rate(void **state)
{
    cmos_write(*state, 0x0a, 0x2f); /* 2 Hz */
    assert_int_equal(cmos_read(*state, 0x0c) & 0x40, 0);
    host_time.tv_nsec = 499999999;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x40, 0);
    host_time.tv_nsec = 500000000;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x40, 0x40);
    cmos_write(*state, 0x0a, 0x21); /* 256 Hz: 3.90625 ms */
    host_time.tv_nsec = 503906249;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x40, 0);
    host_time.tv_nsec = 503906250;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x40, 0x40);
    cmos_write(*state, 0x0a, 0x20); /* off */
    host_time.tv_sec += 10;
    assert_int_equal(cmos_read(*state, 0x0c) & 0x40, 0);
}

static void a_host_clock_set_back_sets_no_flag(void **state)
{
    host_time.tv_sec -= 1000;
    assert_int_equal(cmos_read(*state, 0x0c), 0);
}

/* ---- interrupts ---- */

/* Lets time pass, and the timer go off if it is due. */
static void at_ns(struct fixture *fixture, uint64_t now_ns)
{
    host_time.tv_sec = NOW_SECONDS + (time_t)(now_ns / 1000000000);
    host_time.tv_nsec = (long)(now_ns % 1000000000);
    if (fixture->rtc.timer.deadline_ns <= now_ns)
        rtc_expired(&fixture->rtc);
}

static void periodic_interrupts_wait_for_register_c(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 0x0b, 0x42); /* 1024 Hz; it is 0.25 s */
    assert_int_equal(fixture->rtc.timer.deadline_ns, 250976563); /* 257/1024 s */
    at_ns(fixture, 250976562);
    assert_false(fixture->line);
    at_ns(fixture, 250976563);
    assert_true(fixture->line);
    assert_int_equal(fixture->rtc.timer.deadline_ns, MACHINE_TIMER_OFF);
    assert_int_equal(cmos_read(fixture, 0x0c), 0xc0);
    assert_false(fixture->line);
    assert_int_equal(fixture->rtc.timer.deadline_ns, 251953125);
    at_ns(fixture, 260000000); /* late: the missed ones are one */
    assert_int_equal(fixture->rises, 2);
    cmos_write(fixture, 0x0b, 0x02);
    assert_false(fixture->line);
    assert_int_equal(fixture->rtc.timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void update_interrupts_come_with_the_second(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 0x0b, 0x12);
    assert_int_equal(fixture->rtc.timer.deadline_ns, 1000000000);
    at_ns(fixture, 1000000000);
    assert_true(fixture->line);
    assert_int_equal(cmos_read(fixture, 0x0c), 0xd0); /* a period is over, too */
    assert_int_equal(fixture->rtc.timer.deadline_ns, 2000000000);
}

static void an_alarm_interrupts_at_its_second(void **state)
{
    struct fixture *fixture = *state;

    set_alarm(fixture, 0x00, 0x01, 0x05); /* 67 s away */
    cmos_write(fixture, 0x0b, 0x22);
    assert_int_equal(fixture->rtc.timer.deadline_ns, UINT64_C(67000000000));
    at_ns(fixture, UINT64_C(66999999999));
    assert_false(fixture->line);
    at_ns(fixture, UINT64_C(67000000000));
    assert_true(fixture->line);
    assert_int_equal(cmos_read(fixture, 0x0c), 0xf0);
    assert_false(fixture->line);
    assert_int_equal(fixture->rtc.timer.deadline_ns, UINT64_C(86467000000000));
}

static void an_alarm_that_cannot_be_sets_no_timer(void **state)
{
    struct fixture *fixture = *state;

    set_alarm(fixture, 0x24, 0x00, 0x00);
    cmos_write(fixture, 0x0b, 0x22);
    assert_int_equal(fixture->rtc.timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void a_flag_interrupts_when_it_is_enabled_later(void **state)
{
    struct fixture *fixture = *state;

    at_ns(fixture, 3000000000);
    assert_false(fixture->line);
    cmos_write(fixture, 0x0b, 0x12);
    assert_true(fixture->line);
}

static void a_call_that_comes_too_early_does_nothing(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 0x0b, 0x12);
    host_time.tv_nsec = 999999999;
    rtc_expired(&fixture->rtc);
    assert_false(fixture->line);
    assert_int_equal(fixture->rtc.timer.deadline_ns, 1000000000);
}

static void time_that_stands_interrupts_nobody(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 0x0b, 0x62);
    assert_int_not_equal(fixture->rtc.timer.deadline_ns, MACHINE_TIMER_OFF);
    cmos_write(fixture, 0x0b, 0xe2);
    assert_int_equal(fixture->rtc.timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void reset_lowers_the_line(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 0x0b, 0x12);
    at_ns(fixture, 1000000000);
    rtc_reset(&fixture->rtc);
    assert_false(fixture->line);
    assert_int_equal(fixture->rtc.timer.deadline_ns, MACHINE_TIMER_OFF);
}

static void read_only_registers_stay(void **state)
{
    cmos_write(*state, 0x0c, 0xff);
    cmos_write(*state, 0x0d, 0x00);
    assert_int_equal(cmos_read(*state, 0x0c), 0x00);
    assert_int_equal(cmos_read(*state, 0x0d), 0x80);
    cmos_write(*state, 0x0a, 0xa6);
    assert_int_equal(cmos_read(*state, 0x0a), 0x26);
}

static void index_ignores_the_nmi_bit_and_reads_ones(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 0x40, 0x5a);
    assert_int_equal(cmos_read(fixture, 0xc0), 0x5a);
    assert_int_equal(bus_read(&fixture->ports, 0x70, 1), 0xff);
    assert_int_equal(bus_read(&fixture->ports, 0x70, 2), 0x5aff);
    bus_write(&fixture->ports, 0x70, 2, 0xa541); /* index and data in one */
    assert_int_equal(cmos_read(fixture, 0x41), 0xa5);
}

static void bytes_survive_a_reset(void **state)
{
    struct fixture *fixture = *state;

    for (uint8_t index = 0x0e; index < 0x80; index++) {
        if (index != 0x32)
            cmos_write(fixture, index, (uint8_t)~index);
    }
    cmos_write(fixture, 0x0b, 0x7a);
    host_time.tv_sec += 1;
    rtc_reset(&fixture->rtc);
    for (uint8_t index = 0x0e; index < 0x80; index++) {
        if (index != 0x32)
            assert_int_equal(cmos_read(fixture, index), (uint8_t)~index);
    }
    assert_int_equal(cmos_read(fixture, 0x0b), 0x02); /* interrupts off */
    assert_int_equal(cmos_read(fixture, 0x0c), 0x00); /* flags gone */
}

static void set_time_survives_a_reset(void **state)
{
    struct fixture *fixture = *state;

    cmos_write(fixture, 9, 0x30);
    rtc_reset(&fixture->rtc);
    assert_int_equal(cmos_read(fixture, 9), 0x30);
}

static unsigned cmos_word(struct fixture *fixture, uint8_t index)
{
    return cmos_read(fixture, index) | (unsigned)cmos_read(fixture, (uint8_t)(index + 1))
                                           << 8;
}

static void says_how_much_memory_there_is(void **state)
{
    static const struct {
        uint64_t memory_bytes;
        unsigned extended_kib;
        unsigned above_16_mib;
        unsigned above_4_gib;
    } cases[] = {
        {512 * KIB, 0, 0, 0},
        {2 * MIB, 1024, 0, 0},
        {16 * MIB, 15360, 0, 0},
        {64 * MIB, 64512, 768, 0},
        {65 * MIB, 65535, 784, 0},
        {3 * GIB, 65535, 48896, 0},
        {4 * GIB, 65535, 48896, 16384},
        {4099 * GIB, 65535, 48896, 0x4000000 & 0xffffff},
        {2051 * GIB, 65535, 48896, 0x2000000 & 0xffffff},
        {259 * GIB, 65535, 48896, 0x400000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture fixture = {.line = false};

        create(&fixture, cases[i].memory_bytes);
        assert_int_equal(cmos_word(&fixture, 0x15), 640);
        assert_int_equal(cmos_word(&fixture, 0x17), cases[i].extended_kib);
        assert_int_equal(cmos_word(&fixture, 0x30), cases[i].extended_kib);
        assert_int_equal(cmos_word(&fixture, 0x34), cases[i].above_16_mib);
        assert_int_equal(cmos_word(&fixture, 0x5b), cases[i].above_4_gib & 0xffff);
        assert_int_equal(cmos_read(&fixture, 0x5d), cases[i].above_4_gib >> 16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(has_these_control_values_at_power_on, setup),
        cmocka_unit_test_setup(tells_the_hosts_utc_in_bcd, setup),
        cmocka_unit_test_setup(tells_binary_if_asked, setup),
        cmocka_unit_test_setup(tells_twelve_hours_if_asked, setup),
        cmocka_unit_test_setup(update_in_progress_precedes_each_second, setup),
        cmocka_unit_test_setup(goes_on_from_the_time_that_is_set, setup),
        cmocka_unit_test_setup(stands_still_while_it_is_set, setup),
        cmocka_unit_test_setup(one_field_can_be_set_while_it_runs, setup),
        cmocka_unit_test_setup(nonsense_carries_over, setup),
        cmocka_unit_test_setup(extreme_dates_do_no_harm, setup),
        cmocka_unit_test_setup(update_flag_comes_with_each_second, setup),
        cmocka_unit_test_setup(flags_raise_the_summary_only_if_enabled, setup),
        cmocka_unit_test_setup(alarm_flag_comes_at_its_time, setup),
        cmocka_unit_test_setup(alarm_fields_can_match_always, setup),
        cmocka_unit_test_setup(alarm_that_cannot_be_never_comes, setup),
        cmocka_unit_test_setup(periodic_flag_follows_the_rate, setup),
        cmocka_unit_test_setup(a_host_clock_set_back_sets_no_flag, setup),
        cmocka_unit_test_setup(periodic_interrupts_wait_for_register_c, setup),
        cmocka_unit_test_setup(update_interrupts_come_with_the_second, setup),
        cmocka_unit_test_setup(an_alarm_interrupts_at_its_second, setup),
        cmocka_unit_test_setup(an_alarm_that_cannot_be_sets_no_timer, setup),
        cmocka_unit_test_setup(a_flag_interrupts_when_it_is_enabled_later, setup),
        cmocka_unit_test_setup(a_call_that_comes_too_early_does_nothing, setup),
        cmocka_unit_test_setup(time_that_stands_interrupts_nobody, setup),
        cmocka_unit_test_setup(reset_lowers_the_line, setup),
        cmocka_unit_test_setup(read_only_registers_stay, setup),
        cmocka_unit_test_setup(index_ignores_the_nmi_bit_and_reads_ones, setup),
        cmocka_unit_test_setup(bytes_survive_a_reset, setup),
        cmocka_unit_test_setup(set_time_survives_a_reset, setup),
        cmocka_unit_test(says_how_much_memory_there_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
