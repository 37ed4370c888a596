/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest time: the time-stamp counter is the host's from a start of its own, never scaled;
 * KVM's paravirtual clock tells guests its frequency, so that they calibrate nothing.
 *
 * Guests see one time on all vCPUs: all count from the same start.
 *
 * A deterministic VM has another time: a virtual clock, which each retired instruction
 * lets pass by 1 ns, and the time-stamp counter counts the same. What a guest sees then
 * depends on its instructions alone, wherever blocks begin and end: deadlines are met to
 * the instruction (run.c runs up to them one by one), and whoever reads the clock has it
 * set to the instruction in progress before.
 */
#include <cpuid.h>
#include <stdatomic.h>
#include <time.h>

#include "accel/soft/msr_private.h"
#include "accel/soft/soft_private.h"

#define NANOSECONDS UINT64_C(1000000000)

#define MSR_TSC_DEADLINE 0x6e0 /* of the local APIC */

/* ---- frequency
 * ---------------------------------------------------------------------------------- */

/* Time-stamp counter and monotonic clock at one moment. */
struct reading {
    uint64_t tsc;
    uint64_t ns;
};

/* How far apart two readings must be for an error below 100 ppm. */
#define MEASURE_NS UINT64_C(2000000)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS + (uint64_t)now.tv_nsec;
}

/* The best of some tries: the one with the least time between two looks at the counter.
 */
static struct reading read_both(void)
{
    struct reading best = {0, 0};
    uint64_t best_width = UINT64_MAX;

    for (int i = 0; i < 5; i++) {
        uint64_t before = __builtin_ia32_rdtsc();
        uint64_t ns = clock_ns(CLOCK_MONOTONIC_RAW);
        uint64_t width = __builtin_ia32_rdtsc() - before;

        if (width >= best_width)
            continue;
        best_width = width;
        best = (struct reading){.tsc = before + width / 2, .ns = ns};
    }
    return best;
}

/* CPUID 0x15 (SDM vol. 2): crystal frequency and ratio; 0 where the processor does not
 * say. */
static uint64_t enumerated_khz(void)
{
    uint32_t denominator;
    uint32_t numerator;
    uint32_t crystal_hz;
    uint32_t unused;

    if (__get_cpuid_count(0x15, 0, &denominator, &numerator, &crystal_hz, &unused) == 0 ||
        denominator == 0 || numerator == 0 || crystal_hz == 0)
        return 0;
    return (uint64_t)crystal_hz * numerator / denominator / 1000;
}

/* The two ends of the measurement; written once each. */
static struct reading first_reading;
static atomic_flag first_taken = ATOMIC_FLAG_INIT;
static _Atomic uint32_t known_khz;

static uint32_t measure_khz(void)
{
    struct reading last = read_both();

    while (last.ns - first_reading.ns < MEASURE_NS)
        last = read_both();
    return (uint32_t)((unsigned __int128)(last.tsc - first_reading.tsc) * 1000000 /
                      (last.ns - first_reading.ns));
}

uint32_t clock_tsc_khz(void)
{
    uint32_t khz = atomic_load(&known_khz);

    if (khz == 0) {
        uint32_t none = 0;

        khz = (uint32_t)enumerated_khz();
        if (khz == 0)
            khz = measure_khz();
        /* All vCPUs must give the same answer: the first one counts. */
        if (!atomic_compare_exchange_strong(&known_khz, &none, khz))
            khz = none;
    }
    return khz;
}

struct clock_scale clock_scale_of(uint64_t ticks_per_second)
{
    struct clock_scale scale = {.shift = 0};
    uint64_t rate = ticks_per_second;

    /* The multiplier, 2^32 * 10^9 / rate, is to use all its 32 bits. */
    for (; rate > 2 * NANOSECONDS; rate >>= 1)
        scale.shift--;
    for (; rate <= NANOSECONDS; rate <<= 1)
        scale.shift++;
    if (scale.shift < 0)
        scale.multiplier = (uint32_t)(((unsigned __int128)NANOSECONDS << 32) /
                                      (ticks_per_second >> -scale.shift));
    else
        scale.multiplier = (uint32_t)(((unsigned __int128)NANOSECONDS << 32) /
                                      (ticks_per_second << scale.shift));
    return scale;
}

/* ---- time of instructions
 * ----------------------------------------------------------------------- */

/* 1 tick a nanosecond. */
#define VIRTUAL_KHZ 1000000u

void soft_clock_start(struct soft_cpu *cpu)
{
    cpu->clock = cpu->vm->machine->clock;
    if (cpu->clock != NULL) /* after a reset, time has gone on */
        cpu->clock_ahead_ns = cpu->clock->now_ns;
}

void soft_clock_advance(struct soft_cpu *cpu)
{
    if (cpu->clock != NULL)
        virtual_clock_advance(cpu->clock, cpu->clock_ahead_ns + cpu->retired);
}

uint64_t soft_clock_left(const struct soft_cpu *cpu)
{
    uint64_t now_ns = cpu->clock_ahead_ns + cpu->retired;
    uint64_t deadline_ns;

    if (cpu->clock == NULL)
        return UINT64_MAX;
    deadline_ns = virtual_clock_deadline_ns(cpu->clock);
    return deadline_ns - min_u64(deadline_ns, now_ns);
}

bool soft_clock_skip(struct soft_cpu *cpu)
{
    if (cpu->clock == NULL || virtual_clock_deadline_ns(cpu->clock) == MACHINE_TIMER_OFF)
        return false;
    cpu->clock_ahead_ns += soft_clock_left(cpu);
    return true;
}

/* SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators"),
 * from 0. */
uint64_t soft_clock_random(struct soft_cpu *cpu)
{
    uint64_t value = cpu->random += UINT64_C(0x9e3779b97f4a7c15);

    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

uint32_t clock_guest_khz(const struct soft_cpu *cpu)
{
    return cpu->clock != NULL ? VIRTUAL_KHZ : clock_tsc_khz();
}

/* What the time-stamp counter follows. */
static uint64_t ticks_now(const struct soft_cpu *cpu)
{
    return cpu->clock != NULL ? cpu->clock->now_ns : __builtin_ia32_rdtsc();
}

static struct timespec time_of_day(const struct soft_cpu *cpu)
{
    struct timespec now;

    if (cpu->clock != NULL)
        return machine_clock_time_of_day(&cpu->clock->clock);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

/* ---- the guest's counter
 * ------------------------------------------------------------------------ */

void clock_start(struct soft_cpu *cpu)
{
    const struct soft_cpu *first = cpu->vm->cpus[0];

    if (!atomic_flag_test_and_set(&first_taken))
        first_reading = read_both();
    cpu->msrs->tsc_start =
        first != NULL && first != cpu ? first->msrs->tsc_start : ticks_now(cpu);
}

static uint64_t guest_tsc(const struct soft_cpu *cpu, uint64_t ticks)
{
    return ticks - cpu->msrs->tsc_start + cpu->msrs->tsc_adjust;
}

/* Any thread. */
uint64_t soft_tsc(const struct soft_cpu *cpu)
{
    struct soft_msrs *msrs = cpu->msrs;
    uint64_t tsc = guest_tsc(cpu, ticks_now(cpu));
    uint64_t last = atomic_load_explicit(&msrs->tsc_last, memory_order_relaxed);

    if (tsc < last)
        return last;
    atomic_store_explicit(&msrs->tsc_last, tsc, memory_order_relaxed);
    return tsc;
}

uint64_t soft_ns_until_tsc(const struct soft_cpu *cpu, uint64_t tsc)
{
    uint64_t now = soft_tsc(cpu);
    uint32_t khz = clock_guest_khz(cpu);
    unsigned __int128 missing_ns;

    if (now >= tsc)
        return 0;
    missing_ns = ((unsigned __int128)(tsc - now) * 1000000 + khz - 1) / khz;
    return missing_ns > UINT64_MAX ? UINT64_MAX : (uint64_t)missing_ns;
}

/* SDM 10.5.4.1: the APIC timer waits for a value of the counter, not for a time. */
static void rearm_deadline(const struct soft_cpu *cpu)
{
    uint64_t deadline = 0;

    if (cpu->irq->read_msr(cpu->irq->context, MSR_TSC_DEADLINE, &deadline) &&
        deadline != 0)
        (void)cpu->irq->write_msr(cpu->irq->context, MSR_TSC_DEADLINE, deadline);
}

/* SDM 17.17.3: both registers move together. */
void clock_write_adjust(struct soft_cpu *cpu, uint64_t value)
{
    cpu->msrs->tsc_adjust = value;
    cpu->msrs->tsc_last = 0;
    rearm_deadline(cpu);
}

void clock_write_tsc(struct soft_cpu *cpu, uint64_t value)
{
    uint64_t now = guest_tsc(cpu, ticks_now(cpu));

    clock_write_adjust(cpu, cpu->msrs->tsc_adjust + value - now);
}

/* ---- KVM's clock (Linux: Documentation/virt/kvm/x86/msr.rst)
 * ------------------------------------------ */

#define SYSTEM_TIME_ON 0x1u
#define SYSTEM_TIME_STABLE 0x1u

struct system_time {
    uint32_t version; /* odd while it is being written */
    uint32_t unused;
    uint64_t tsc; /* at `ns` */
    uint64_t ns;
    uint32_t multiplier;
    int8_t shift;
    uint8_t flags;
    uint8_t padding[2];
};
_Static_assert(sizeof(struct system_time) == 32, "KVM's layout");

struct wall_clock {
    uint32_t version;
    uint32_t seconds;
    uint32_t nanoseconds;
};

/* Into guest memory as the processor itself writes it; pages that are not RAM, or hold
 * code, are the guest's own fault. */
static void write_guest(struct soft_cpu *cpu, uint64_t gpa, const void *from, size_t size)
{
    if (memory_write(cpu->vm->memory, gpa, from, size) < 0)
        return;
    for (size_t i = 0; i < size; i += sizeof(uint32_t))
        code_pages_written(cpu, gpa + i, sizeof(uint32_t));
}

/* The pair (tsc, ns) is that of the VM's start, on all vCPUs: their times agree to the
 * nanosecond, and the page never has to be written again. */
void clock_write_system_time(struct soft_cpu *cpu, uint64_t value)
{
    struct clock_scale scale = clock_scale_of((uint64_t)clock_guest_khz(cpu) * 1000);
    struct system_time time = {
        .version = 2,
        .tsc = guest_tsc(cpu, cpu->msrs->tsc_start),
        .multiplier = scale.multiplier,
        .shift = scale.shift,
        .flags = SYSTEM_TIME_STABLE,
    };

    cpu->msrs->system_time = value;
    if ((value & SYSTEM_TIME_ON) != 0)
        write_guest(cpu, value & ~UINT64_C(3), &time, sizeof(time));
}

/* What the time of day was when the system time was 0. */
void clock_write_wall_clock(struct soft_cpu *cpu, uint64_t value)
{
    uint64_t ticks = ticks_now(cpu) - cpu->msrs->tsc_start;
    uint64_t running_ns =
        (uint64_t)((unsigned __int128)ticks * 1000000 / clock_guest_khz(cpu));
    struct timespec now = time_of_day(cpu);
    uint64_t start_ns =
        (uint64_t)now.tv_sec * NANOSECONDS + (uint64_t)now.tv_nsec - running_ns;
    struct wall_clock wall = {
        .version = 2,
        .seconds = (uint32_t)(start_ns / NANOSECONDS),
        .nanoseconds = (uint32_t)(start_ns % NANOSECONDS),
    };

    cpu->msrs->wall_clock = value;
    write_guest(cpu, value, &wall, sizeof(wall));
}
