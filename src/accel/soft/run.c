/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run loop: looks around (kicks, interrupts, startup), runs blocks, delivers faults.
 *
 * Blocks follow each other without coming back here while `attention` is 0
 * (flow_private.h). Anything inside an instruction that cannot go on leaves by longjmp to
 * soft_cpu_run.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "accel/soft/blocks_private.h"
#include "accel/soft/flow_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/shared_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/check.h"
#include "base/clock.h"

/* ---- leaving an instruction
 * ---------------------------------------------------------------- */

static _Noreturn void raise_fault(struct soft_cpu *cpu, const struct uop *uop,
                                  struct soft_fault fault)
{
    vectors_save(cpu); /* a sanitizer's longjmp uses some */
    cpu->fault = fault;
    if (uop != NULL) {
        cpu->rip = fault.software ? uop_next_rip(uop) : uop->rip;
        cpu->retired += uop->ordinal + (fault.software ? 1u : 0u);
    }
    longjmp(cpu->unwind, UNWIND_FAULT);
}

void soft_raise(struct soft_cpu *cpu, const struct uop *uop, uint8_t vector)
{
    raise_fault(cpu, uop, (struct soft_fault){.vector = vector});
}

void soft_raise_code(struct soft_cpu *cpu, const struct uop *uop, uint8_t vector,
                     uint32_t error_code)
{
    raise_fault(cpu, uop,
                (struct soft_fault){
                    .vector = vector, .has_error_code = true, .error_code = error_code});
}

void soft_raise_software(struct soft_cpu *cpu, const struct uop *uop, uint8_t vector)
{
    raise_fault(
        cpu, uop,
        (struct soft_fault){.vector = vector, .software = true, .length = uop->length});
}

void soft_raise_page_fault(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                           uint32_t error_code)
{
    raise_fault(cpu, uop,
                (struct soft_fault){.vector = X86_VECTOR_PF,
                                    .has_error_code = true,
                                    .error_code = error_code,
                                    .cr2 = linear});
}

void soft_run_alone(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->rip = uop->rip;
    cpu->retired += uop->ordinal;
    cpu->next_alone = true;
    longjmp(cpu->unwind, UNWIND_AGAIN);
}

/* ---- attention
 * ------------------------------------------------------------------------------- */

static void wake_thread(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* While *word is `value`, but not beyond `end_ns` by the monotonic clock. False: that has
 * come. */
static bool wait_for_change(_Atomic uint32_t *word, uint32_t value, uint64_t end_ns)
{
    const struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_SECOND),
                                 .tv_nsec = (long)(end_ns % NS_PER_SECOND)};
    /* FUTEX_WAIT would count from now; FUTEX_WAIT_BITSET takes a time (futex(2)). */
    long status =
        syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
                end_ns == IRQ_NOT_DUE ? NULL : &end, NULL, FUTEX_BITSET_MATCH_ANY);

    return status == 0 || errno != ETIMEDOUT;
}

void soft_cpu_attend(struct soft_cpu *cpu, enum soft_attention bits)
{
    (void)atomic_fetch_or(&cpu->attention, (uint32_t)bits);
    /* Pairs with sleep_until_attention: it says that it sleeps before it looks at
     * `attention`. */
    if (atomic_load(&cpu->sleeping))
        wake_thread(&cpu->attention);
}

/* What ends a HLT. The other bits may stay set meanwhile. */
static uint32_t wake_bits(const struct soft_cpu *cpu)
{
    uint32_t bits = ATTENTION_KICK | ATTENTION_INIT | ATTENTION_STARTUP | ATTENTION_CODE;

    if (cpu->activity == ACTIVITY_HALTED && !cpu->nmi_blocked)
        bits |= ATTENTION_NMI;
    if (cpu->activity == ACTIVITY_HALTED)
        bits |= ATTENTION_INTERRUPT;
    return bits;
}

/* Or until `end_ns`. */
static void sleep_until_attention(struct soft_cpu *cpu, uint64_t end_ns)
{
    uint32_t bits = wake_bits(cpu);
    uint32_t attention;

    atomic_store(&cpu->sleeping, true);
    while (((attention = atomic_load(&cpu->attention)) & bits) == 0)
        if (!wait_for_change(&cpu->attention, attention, end_ns))
            break;
    atomic_store(&cpu->sleeping, false);
}

static bool take(struct soft_cpu *cpu, enum soft_attention bit)
{
    return (atomic_fetch_and(&cpu->attention, ~(uint32_t)bit) & (uint32_t)bit) != 0;
}

static void wake(struct soft_cpu *cpu)
{
    if (cpu->activity == ACTIVITY_HALTED)
        cpu->activity = ACTIVITY_RUN;
}

/* SDM 8.4.2: SIPI vector V starts at V00:0000. */
static void start_up(struct soft_cpu *cpu)
{
    uint32_t vector = atomic_load(&cpu->startup_vector) & 0xff;

    if (cpu->activity != ACTIVITY_WAIT_STARTUP)
        return;
    cpu->segments[X86_CS].selector = (uint16_t)(vector << 8);
    cpu->segments[X86_CS].base = vector << 12;
    cpu->rip = 0;
    cpu->activity = ACTIVITY_RUN;
    soft_cpu_update_mode(cpu);
}

/* Takes an interrupt if the processor accepts one now. One that must wait is remembered,
 * so that blocks do not come back for it in vain: see soft_cpu_interrupts_enabled. */
static void take_interrupt(struct soft_cpu *cpu)
{
    int vector;

    if (!take(cpu, ATTENTION_INTERRUPT))
        return;
    if ((cpu->flags_system & X86_FLAGS_IF) == 0) {
        cpu->interrupt_waits = true;
        return;
    }
    cpu->interrupt_waits = false;
    vector = cpu->irq->acknowledge(cpu->irq->context);
    if (vector < 0)
        return;
    wake(cpu);
    soft_cpu_attend(cpu, ATTENTION_INTERRUPT); /* there may be another behind it */
    soft_deliver_interrupt(cpu, (uint8_t)vector);
}

void soft_cpu_interrupts_enabled(struct soft_cpu *cpu)
{
    if (cpu->interrupt_waits)
        (void)atomic_fetch_or(&cpu->attention, ATTENTION_INTERRUPT);
}

/* One is served, one waits; what else comes meanwhile is lost (SDM 6.7.1). The one that
 * waits does not ask for attention, so that blocks do not come back for it in vain: see
 * soft_cpu_let_nmis_in. */
static void take_nmi(struct soft_cpu *cpu)
{
    uint32_t waiting;

    (void)take(cpu, ATTENTION_NMI);
    if (cpu->nmi_blocked) {
        if (atomic_load(&cpu->nmis_waiting) > 1)
            atomic_store(&cpu->nmis_waiting, 1);
        return;
    }
    waiting = atomic_exchange(&cpu->nmis_waiting, 0);
    if (waiting == 0)
        return;
    if (waiting > 1) {
        (void)atomic_fetch_add(&cpu->nmis_waiting, 1);
        soft_cpu_attend(cpu, ATTENTION_NMI);
    }
    wake(cpu);
    soft_deliver_nmi(cpu);
}

void soft_cpu_let_nmis_in(struct soft_cpu *cpu)
{
    cpu->nmi_blocked = false;
    if (atomic_load(&cpu->nmis_waiting) != 0)
        (void)atomic_fetch_or(&cpu->attention, ATTENTION_NMI);
}

/* Answers what asks for attention. False: vcpu_run is to return, *exit says why. */
static bool look_around(struct soft_cpu *cpu, struct vcpu_exit *exit)
{
    uint32_t attention = atomic_load(&cpu->attention);

    if (cpu->lockstep != NULL && lockstep_failed(cpu->lockstep, &exit->failure)) {
        exit->kind = VCPU_EXIT_FAILED;
        return false;
    }
    if ((attention & ATTENTION_KICK) != 0) {
        (void)take(cpu, ATTENTION_KICK);
        exit->kind = VCPU_EXIT_KICKED;
        return false;
    }
    if (cpu->activity == ACTIVITY_SHUTDOWN) {
        exit->kind = VCPU_EXIT_SHUTDOWN;
        return false;
    }
    if (take(cpu, ATTENTION_CODE))
        code_pages_catch_up(cpu);
    if (take(cpu, ATTENTION_INIT)) {
        soft_cpu_init_signal(cpu);
        cpu->activity = ACTIVITY_WAIT_STARTUP;
    }
    if (take(cpu, ATTENTION_STARTUP))
        start_up(cpu);
    if (cpu->activity == ACTIVITY_WAIT_STARTUP) {
        (void)take(cpu, ATTENTION_INTERRUPT);
        return true;
    }
    if ((attention & ATTENTION_SHADOW) != 0)
        return true;
    if ((attention & ATTENTION_NMI) != 0)
        take_nmi(cpu);
    take_interrupt(cpu);
    return true;
}

/* ---- instructions
 * ---------------------------------------------------------------------------- */

/* At most `budget` blocks, which is not 0. */
static void run_blocks(struct soft_cpu *cpu, uint32_t mode, uint32_t budget)
{
    struct block *block;

    cpu->budget = budget;
    cpu->single = (mode & MODE_SINGLE) != 0;
    block = block_find(cpu, mode);
    block->uops[0].run(cpu, block->uops);
}

/* One instruction by itself: a shadow, TF or breakpoints make what comes before and after
 * it matter (SDM 17.3.1). With TF set before it, #DB follows when it has completed. */
static void run_single(struct soft_cpu *cpu)
{
    cpu->next_alone = false;
    (void)take(cpu, ATTENTION_SHADOW);
    soft_debug_check_execute(cpu);
    cpu->step_pending = (cpu->flags_system & X86_FLAGS_TF) != 0;
    run_blocks(cpu, cpu->mode | MODE_SINGLE, 1);
}

/* How many blocks may follow each other. None overruns the next deadline of a
 * deterministic VM: there it is 0 where one could. */
static uint32_t block_budget(const struct soft_cpu *cpu)
{
    return (uint32_t)min_u64(FLOW_BUDGET, soft_clock_left(cpu) / BLOCK_LIMIT);
}

/* What has no translation is one block for the interpreter. */
static void run_translated(struct soft_cpu *cpu)
{
    if (!translator_run(cpu))
        run_blocks(cpu, cpu->mode, 1);
}

static void run_on(struct soft_cpu *cpu)
{
    uint32_t attention = atomic_load(&cpu->attention);
    uint32_t budget = block_budget(cpu);

    if (budget == 0 || cpu->next_alone ||
        (attention & (ATTENTION_SHADOW | ATTENTION_TRAP)) != 0)
        run_single(cpu);
    else if (translator_serves(cpu))
        run_translated(cpu);
    else
        run_blocks(cpu, cpu->mode, budget);
}

/* HLT: until the next deadline if the VM is deterministic, where none sleeps. Otherwise
 * the thread waits for its own local APIC's timer: no other has to wake up for it. */
static void idle(struct soft_cpu *cpu)
{
    bool waits =
        cpu->activity == ACTIVITY_HALTED && (cpu->flags_system & X86_FLAGS_IF) != 0;

    if ((atomic_load(&cpu->attention) & wake_bits(cpu)) != 0 ||
        (waits && soft_clock_skip(cpu)))
        return;
    if (cpu->clock != NULL) {
        sleep_until_attention(cpu, IRQ_NOT_DUE);
        return;
    }
    sleep_until_attention(cpu, cpu->irq->fall_asleep(cpu->irq->context));
    cpu->irq->wake_up(cpu->irq->context);
}

/* Traps of the instruction that is done. */
static void finish_step(struct soft_cpu *cpu)
{
    uint64_t reasons = cpu->watch_hits & WATCH_NOW;

    if (cpu->step_pending)
        reasons |= X86_DR6_BS;
    cpu->step_pending = false;
    cpu->watch_hits >>= WATCH_LATER_SHIFT;
    if (reasons == 0)
        return;
    cpu->fault = (struct soft_fault){.vector = X86_VECTOR_DB, .dr6 = reasons};
    soft_deliver_fault(cpu);
}

void soft_cpu_run(struct soft_cpu *cpu, struct vcpu_exit *exit)
{
    if (setjmp(cpu->unwind) == UNWIND_FAULT) {
        vectors_save(cpu);
        if (cpu->lockstep != NULL)
            lockstep_after(cpu, true);
        cpu->step_pending = false;
        if (!cpu->fault.software)
            cpu->watch_hits = 0;
        soft_deliver_fault(cpu);
    }
    for (;;) {
        vectors_save(cpu); /* an instruction may have been left undone */
        translator_leave(cpu);
        finish_step(cpu);
        atomic_store_explicit(&cpu->retired_seen, cpu->retired, memory_order_relaxed);
        soft_clock_advance(cpu);
        if (!look_around(cpu, exit))
            return;
        if (cpu->activity == ACTIVITY_RUN)
            run_on(cpu);
        else
            idle(cpu);
    }
}
