/* SPDX-License-Identifier: Apache-2.0 */
/* The MC146818 clock and CMOS memory; see rtc_private.h. */
#include "device/rtc_private.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "x86/layout.h"

/* The chip's registers (data sheet, "Address Map"). */
enum rtc_register {
    RTC_SECONDS = 0x00,
    RTC_ALARM_SECONDS = 0x01,
    RTC_MINUTES = 0x02,
    RTC_ALARM_MINUTES = 0x03,
    RTC_HOURS = 0x04,
    RTC_ALARM_HOURS = 0x05,
    RTC_DAY_OF_WEEK = 0x06, /* 1 is Sunday; follows from the date here */
    RTC_DAY_OF_MONTH = 0x07,
    RTC_MONTH = 0x08,
    RTC_YEAR = 0x09,
    RTC_A = 0x0a,
    RTC_B = 0x0b,
    RTC_C = 0x0c,
    RTC_D = 0x0d,
    RTC_CENTURY = 0x32, /* not the chip's: where PCs keep it, and the FADT says so */
};

/* CMOS bytes that describe the machine. Sizes are little-endian. */
#define CMOS_EQUIPMENT 0x14
#define CMOS_EQUIPMENT_FPU 0x02
#define CMOS_BASE_KIB 0x15
#define CMOS_EXTENDED_KIB 0x17       /* from 1 MiB, as set up */
#define CMOS_EXTENDED_FOUND_KIB 0x30 /* from 1 MiB, as found by the power-on test */
#define CMOS_ABOVE_16_MIB 0x34       /* in 64 KiB, up to 4 GiB */
#define CMOS_ABOVE_4_GIB 0x5b        /* in 64 KiB, 3 bytes */
#define CMOS_SIZE_UNIT (64 * KIB)
#define BASE_MEMORY_KIB 640

/* Register A. */
#define A_UPDATE_IN_PROGRESS 0x80
#define A_DIVIDER_MASK 0x70
#define A_DIVIDER_32768_HZ 0x20 /* the only setting with which a PC's chip runs */
#define A_RATE_MASK 0x0f
#define A_AT_POWER_ON 0x26 /* 32768 Hz, periodic rate 1024 Hz */

/* Register B. */
#define B_SET 0x80 /* the time stands still, to be set */
#define B_PERIODIC_ENABLE 0x40
#define B_ALARM_ENABLE 0x20
#define B_UPDATE_ENABLE 0x10
#define B_SQUARE_WAVE 0x08
#define B_BINARY 0x04
#define B_24_HOURS 0x02
#define B_ENABLES (B_PERIODIC_ENABLE | B_ALARM_ENABLE | B_UPDATE_ENABLE)
#define B_CLEARED_BY_RESET                                                               \
    (B_PERIODIC_ENABLE | B_ALARM_ENABLE | B_UPDATE_ENABLE | B_SQUARE_WAVE)

/* Register C: the bits of the three causes match their enable bits in register B. */
#define C_ANY 0x80
#define C_PERIODIC 0x40
#define C_ALARM 0x20
#define C_UPDATE 0x10

#define D_VALID 0x80 /* the battery is good */

#define HOURS_PM 0x80
#define ALARM_ANY 0xc0 /* both top bits set: matches always */

/* Update in progress rises 244 us before an update, which takes 1984 us. */
#define UPDATE_NS 2228000

#define SECOND_NS ((int64_t)NS_PER_SECOND)
#define SECONDS_PER_DAY 86400
#define CRYSTAL_HZ 32768
#define INDEX_MASK 0x7f /* bit 7 of port 0x70 is the NMI gate, not the chip's */

static uint8_t rtc_encode(const struct rtc *rtc, int value)
{
    if (rtc->bytes[RTC_B] & B_BINARY)
        return (uint8_t)value;
    return (uint8_t)(value / 10 * 16 + value % 10);
}

static int rtc_decode(const struct rtc *rtc, uint8_t value)
{
    if (rtc->bytes[RTC_B] & B_BINARY)
        return value;
    return (value >> 4) * 10 + (value & 0x0f);
}

static uint8_t rtc_encode_hours(const struct rtc *rtc, int hours)
{
    if (rtc->bytes[RTC_B] & B_24_HOURS)
        return rtc_encode(rtc, hours);
    return (uint8_t)(rtc_encode(rtc, hours % 12 == 0 ? 12 : hours % 12) |
                     (hours >= 12 ? HOURS_PM : 0));
}

static int rtc_decode_hours(const struct rtc *rtc, uint8_t value)
{
    if (rtc->bytes[RTC_B] & B_24_HOURS)
        return rtc_decode(rtc, value);
    return rtc_decode(rtc, value & (uint8_t)~HOURS_PM) % 12 + (value & HOURS_PM ? 12 : 0);
}

static bool rtc_time_runs(const struct rtc *rtc)
{
    return !(rtc->bytes[RTC_B] & B_SET) &&
           (rtc->bytes[RTC_A] & A_DIVIDER_MASK) == A_DIVIDER_32768_HZ;
}

static struct timespec rtc_guest_time(const struct rtc *rtc)
{
    struct timespec now = machine_clock_time_of_day(rtc->clock);

    now.tv_sec += rtc->offset_seconds;
    return now;
}

/* Brings the time registers up to date, if time runs. */
static void rtc_load_time(struct rtc *rtc)
{
    struct timespec time = rtc_guest_time(rtc);
    struct tm now;
    int year;

    if (!rtc_time_runs(rtc) || !gmtime_r(&time.tv_sec, &now))
        return;
    year = now.tm_year + 1900;
    rtc->bytes[RTC_SECONDS] = rtc_encode(rtc, now.tm_sec);
    rtc->bytes[RTC_MINUTES] = rtc_encode(rtc, now.tm_min);
    rtc->bytes[RTC_HOURS] = rtc_encode_hours(rtc, now.tm_hour);
    rtc->bytes[RTC_DAY_OF_WEEK] = rtc_encode(rtc, now.tm_wday + 1);
    rtc->bytes[RTC_DAY_OF_MONTH] = rtc_encode(rtc, now.tm_mday);
    rtc->bytes[RTC_MONTH] = rtc_encode(rtc, now.tm_mon + 1);
    rtc->bytes[RTC_YEAR] = rtc_encode(rtc, year % 100);
    rtc->bytes[RTC_CENTURY] = rtc_encode(rtc, year / 100);
}

/* Time goes on from what the time registers say. Fields out of range carry over into the
 * next larger one. */
static void rtc_store_time(struct rtc *rtc)
{
    struct tm set = {
        .tm_sec = rtc_decode(rtc, rtc->bytes[RTC_SECONDS]),
        .tm_min = rtc_decode(rtc, rtc->bytes[RTC_MINUTES]),
        .tm_hour = rtc_decode_hours(rtc, rtc->bytes[RTC_HOURS]),
        .tm_mday = rtc_decode(rtc, rtc->bytes[RTC_DAY_OF_MONTH]),
        .tm_mon = rtc_decode(rtc, rtc->bytes[RTC_MONTH]) - 1,
        .tm_year = rtc_decode(rtc, rtc->bytes[RTC_CENTURY]) * 100 +
                   rtc_decode(rtc, rtc->bytes[RTC_YEAR]) - 1900,
    };

    rtc->offset_seconds = timegm(&set) - machine_clock_time_of_day(rtc->clock).tv_sec;
    rtc->checked = rtc_guest_time(rtc);
}

static bool rtc_alarm_field_matches(uint8_t alarm, uint8_t now)
{
    return (alarm & ALARM_ANY) == ALARM_ANY || alarm == now;
}

static bool rtc_alarm_matches(const struct rtc *rtc, time_t time)
{
    /* A guest can set years before 1970. */
    int of_day = (int)((time % SECONDS_PER_DAY + SECONDS_PER_DAY) % SECONDS_PER_DAY);
    int seconds = of_day % 60;
    int minutes = of_day / 60 % 60;
    int hours = of_day / 3600;

    return rtc_alarm_field_matches(rtc->bytes[RTC_ALARM_SECONDS],
                                   rtc_encode(rtc, seconds)) &&
           rtc_alarm_field_matches(rtc->bytes[RTC_ALARM_MINUTES],
                                   rtc_encode(rtc, minutes)) &&
           rtc_alarm_field_matches(rtc->bytes[RTC_ALARM_HOURS],
                                   rtc_encode_hours(rtc, hours));
}

/* Did the alarm go off in a second after `from` and up to `to`? Within a day it has, if
 * it can at all. */
static bool rtc_alarm_went_off(const struct rtc *rtc, time_t from, time_t to)
{
    if (to - from > SECONDS_PER_DAY)
        from = to - SECONDS_PER_DAY;
    for (time_t second = from + 1; second <= to; second++) {
        if (rtc_alarm_matches(rtc, second))
            return true;
    }
    return false;
}

/* Register A's rate: crystal ticks in a period, as a shift; -1: off. A second has a whole
 * number of periods. */
static int rtc_period_shift(const struct rtc *rtc)
{
    int rate = rtc->bytes[RTC_A] & A_RATE_MASK;

    /* With this crystal the two fastest repeat 256 and 128 Hz. */
    return rate == 1 || rate == 2 ? rate + 6 : rate - 1;
}

/* How often the periodic cause has come since 1970. */
static int64_t rtc_periods(const struct rtc *rtc, struct timespec time)
{
    int64_t crystal_ticks =
        time.tv_sec * CRYSTAL_HZ + time.tv_nsec * CRYSTAL_HZ / SECOND_NS;
    int shift = rtc_period_shift(rtc);

    return shift < 0 ? 0 : crystal_ticks >> shift;
}

/* Sets the flags whose cause has come since the last look. */
static void rtc_catch_up(struct rtc *rtc)
{
    struct timespec from = rtc->checked;
    struct timespec to = rtc_guest_time(rtc);

    rtc->checked = to;
    if (!rtc_time_runs(rtc))
        return;
    /* The clock may have been set back: then nothing has come. */
    if (to.tv_sec > from.tv_sec)
        rtc->flags |= C_UPDATE;
    if (rtc_alarm_went_off(rtc, from.tv_sec, to.tv_sec))
        rtc->flags |= C_ALARM;
    if (rtc_periods(rtc, to) > rtc_periods(rtc, from))
        rtc->flags |= C_PERIODIC;
}

/* ---- interrupts
 * ------------------------------------------------------------------------- */

/* How long until each cause comes. */
#define RTC_NEVER UINT64_MAX

static uint64_t rtc_ns_until_period(const struct rtc *rtc, struct timespec now)
{
    int64_t ticks = now.tv_nsec * CRYSTAL_HZ / SECOND_NS;
    int shift = rtc_period_shift(rtc);
    int64_t next;

    if (shift < 0)
        return RTC_NEVER;
    next = ((ticks >> shift) + 1) << shift;
    return (uint64_t)((next * SECOND_NS + CRYSTAL_HZ - 1) / CRYSTAL_HZ - now.tv_nsec);
}

static uint64_t rtc_ns_until_update(struct timespec now)
{
    return (uint64_t)(SECOND_NS - now.tv_nsec);
}

/* Within a day it comes, if it can at all. */
static uint64_t rtc_ns_until_alarm(const struct rtc *rtc, struct timespec now)
{
    for (int64_t seconds = 1; seconds <= SECONDS_PER_DAY; seconds++)
        if (rtc_alarm_matches(rtc, now.tv_sec + seconds))
            return (uint64_t)(seconds * SECOND_NS - now.tv_nsec);
    return RTC_NEVER;
}

static uint64_t rtc_ns_until_interrupt(const struct rtc *rtc)
{
    struct timespec now = rtc_guest_time(rtc);
    uint8_t enabled = rtc->bytes[RTC_B];
    uint64_t ns = RTC_NEVER;

    if (!rtc_time_runs(rtc))
        return RTC_NEVER;
    if ((enabled & B_PERIODIC_ENABLE) != 0)
        ns = rtc_ns_until_period(rtc, now);
    if ((enabled & B_UPDATE_ENABLE) != 0)
        ns = min_u64(ns, rtc_ns_until_update(now));
    else if ((enabled & B_ALARM_ENABLE) != 0) /* with an update, but not before it */
        ns = min_u64(ns, rtc_ns_until_alarm(rtc, now));
    return ns;
}

/* Flags or enable bits have changed, or the time. */
static void rtc_update_interrupt(struct rtc *rtc)
{
    bool level = (rtc->flags & rtc->bytes[RTC_B] & B_ENABLES) != 0;
    uint64_t ns = level ? RTC_NEVER : rtc_ns_until_interrupt(rtc);

    if (level != rtc->level) {
        rtc->level = level;
        irq_line_set(&rtc->line, level);
    }
    machine_timer_set(&rtc->timer, ns == RTC_NEVER
                                       ? MACHINE_TIMER_OFF
                                       : machine_clock_now_ns(rtc->clock) + ns);
}

void rtc_expired(void *context)
{
    struct rtc *rtc = context;

    pthread_mutex_lock(&rtc->lock);
    rtc_catch_up(rtc);
    rtc_update_interrupt(rtc);
    pthread_mutex_unlock(&rtc->lock);
}

/* ---- registers
 * -------------------------------------------------------------------------- */

static uint8_t rtc_read_a(const struct rtc *rtc)
{
    bool updating =
        rtc_time_runs(rtc) && rtc_guest_time(rtc).tv_nsec >= SECOND_NS - UPDATE_NS;

    return (uint8_t)(rtc->bytes[RTC_A] | (updating ? A_UPDATE_IN_PROGRESS : 0));
}

static uint8_t rtc_read_c(struct rtc *rtc)
{
    uint8_t value;

    rtc_catch_up(rtc);
    value = rtc->flags;
    if (value & rtc->bytes[RTC_B])
        value |= C_ANY;
    rtc->flags = 0;
    rtc_update_interrupt(rtc);
    return value;
}

static uint8_t rtc_read_register(struct rtc *rtc, uint8_t index)
{
    switch (index) {
    case RTC_A:
        return rtc_read_a(rtc);
    case RTC_C:
        return rtc_read_c(rtc);
    case RTC_D:
        return D_VALID;
    default:
        rtc_load_time(rtc);
        return rtc->bytes[index];
    }
}

/* Registers A and B decide whether time runs and how it is written. */
static void rtc_write_control(struct rtc *rtc, enum rtc_register index, uint8_t value)
{
    bool ran = rtc_time_runs(rtc);

    rtc_load_time(rtc);
    if (index == RTC_A)
        value &= (uint8_t)~A_UPDATE_IN_PROGRESS;
    else if (value & B_SET)
        value &= (uint8_t)~B_UPDATE_ENABLE; /* as the data sheet says of both bits */
    rtc->bytes[index] = value;
    if (!ran && rtc_time_runs(rtc))
        rtc_store_time(rtc);
}

static void rtc_write_register(struct rtc *rtc, uint8_t index, uint8_t value)
{
    rtc_catch_up(rtc); /* with the alarm and the rate as they were */
    switch (index) {
    case RTC_A:
    case RTC_B:
        rtc_write_control(rtc, (enum rtc_register)index, value);
        break;
    case RTC_C:
    case RTC_D:
        break;
    case RTC_SECONDS:
    case RTC_MINUTES:
    case RTC_HOURS:
    case RTC_DAY_OF_MONTH:
    case RTC_MONTH:
    case RTC_YEAR:
    case RTC_CENTURY:
        rtc_load_time(rtc);
        rtc->bytes[index] = value;
        if (rtc_time_runs(rtc))
            rtc_store_time(rtc);
        break;
    default:
        rtc->bytes[index] = value;
    }
    rtc_update_interrupt(rtc);
}

static uint64_t rtc_read(void *device, uint64_t offset, unsigned size)
{
    struct rtc *rtc = device;
    uint8_t value;

    (void)size;
    if (offset == 0)
        return 0xff; /* the index port is write-only */
    pthread_mutex_lock(&rtc->lock);
    value = rtc_read_register(rtc, rtc->index);
    pthread_mutex_unlock(&rtc->lock);
    return value;
}

static void rtc_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct rtc *rtc = device;

    (void)size;
    pthread_mutex_lock(&rtc->lock);
    if (offset == 0)
        rtc->index = (uint8_t)(value & INDEX_MASK);
    else
        rtc_write_register(rtc, rtc->index, (uint8_t)value);
    pthread_mutex_unlock(&rtc->lock);
}

static const struct bus_ops rtc_ops = {
    .name = "real-time clock",
    .width_bytes = 1,
    .read = rtc_read,
    .write = rtc_write,
};

static void rtc_describe_memory(struct rtc *rtc, uint64_t memory_bytes)
{
    uint64_t low = min_u64(memory_bytes, LAYOUT_LOW_RAM_LIMIT);
    uint64_t high_units = (memory_bytes - low) / CMOS_SIZE_UNIT;
    uint64_t extended_kib = low > MIB ? min_u64((low - MIB) / KIB, UINT16_MAX) : 0;
    uint64_t above_16_mib = low > 16 * MIB ? (low - 16 * MIB) / CMOS_SIZE_UNIT : 0;

    store_le16(&rtc->bytes[CMOS_BASE_KIB], BASE_MEMORY_KIB);
    store_le16(&rtc->bytes[CMOS_EXTENDED_KIB], (uint16_t)extended_kib);
    store_le16(&rtc->bytes[CMOS_EXTENDED_FOUND_KIB], (uint16_t)extended_kib);
    store_le16(&rtc->bytes[CMOS_ABOVE_16_MIB], (uint16_t)above_16_mib);
    store_le16(&rtc->bytes[CMOS_ABOVE_4_GIB], (uint16_t)high_units);
    rtc->bytes[CMOS_ABOVE_4_GIB + 2] = (uint8_t)(high_units >> 16);
}

int rtc_init(struct rtc *rtc, uint64_t memory_bytes, struct machine_clock *clock,
             struct irq_line line, struct error *err)
{
    *rtc = (struct rtc){
        .clock = clock,
        .line = line,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .checked = machine_clock_time_of_day(clock),
    };
    rtc->bytes[RTC_A] = A_AT_POWER_ON;
    rtc->bytes[RTC_B] = B_24_HOURS;
    rtc->bytes[CMOS_EQUIPMENT] = CMOS_EQUIPMENT_FPU;
    rtc_describe_memory(rtc, memory_bytes);
    return machine_timer_init(&rtc->timer, clock, rtc_expired, rtc, err);
}

void rtc_finish(struct rtc *rtc)
{
    machine_timer_finish(&rtc->timer);
}

int rtc_attach(struct rtc *rtc, struct bus *ports, struct error *err)
{
    return bus_attach(ports, LAYOUT_PORT_RTC, 2, &rtc_ops, rtc, err);
}

void rtc_reset(struct rtc *rtc)
{
    pthread_mutex_lock(&rtc->lock);
    rtc_catch_up(rtc); /* what came before the reset is dropped with the flags */
    rtc->index = 0;
    rtc->bytes[RTC_B] &= (uint8_t)~B_CLEARED_BY_RESET;
    rtc->flags = 0;
    rtc_update_interrupt(rtc);
    pthread_mutex_unlock(&rtc->lock);
}
