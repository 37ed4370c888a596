/* SPDX-License-Identifier: Apache-2.0 */
/* System instructions without operands in segments or control registers: interrupts on
 * and off, HLT, INT n, CPUID, time, MSRs, caches, random numbers, hypercalls. */
#include <errno.h>
#include <sys/random.h>

#include "accel/soft/msr_private.h"
#include "accel/soft/system_private.h"

/* ---- interrupts on and off
 * ---------------------------------------------------------------------- */

static void check_io_privilege(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->cpl > soft_io_privilege(cpu))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void cli(struct soft_cpu *cpu, const struct uop *uop)
{
    check_io_privilege(cpu, uop);
    cpu->flags_system &= ~(uint32_t)X86_FLAGS_IF;
    NEXT(cpu, uop);
}

/* SDM vol. 2, STI: interrupts come only after the next instruction. If nothing waits, the
 * next block is entered without another look, which is as good: it is an instruction at
 * least, and interrupts are not taken within blocks. */
static void sti(struct soft_cpu *cpu, const struct uop *uop)
{
    bool was_off = (cpu->flags_system & X86_FLAGS_IF) == 0;
    struct block *next;

    check_io_privilege(cpu, uop);
    cpu->flags_system |= (uint32_t)X86_FLAGS_IF;
    system_end(cpu, uop);
    next = flow_chain(cpu, uop, cpu->rip);
    if (next != NULL && !cpu->interrupt_waits && cpu->budget > 1 &&
        atomic_load_explicit(&cpu->attention, memory_order_relaxed) == 0) {
        cpu->budget--;
        return next->uops[0].run(cpu, next->uops);
    }
    if (was_off) {
        soft_cpu_attend(cpu, ATTENTION_SHADOW);
        soft_cpu_interrupts_enabled(cpu);
    }
}

static void hlt(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_check_supervisor(cpu, uop);
    cpu->activity = ACTIVITY_HALTED;
    system_end(cpu, uop);
}

/* ---- software interrupts
 * --------------------------------------------------------------------------- */

static void int_n(struct soft_cpu *cpu, const struct uop *uop)
{
    if ((cpu->mode & MODE_VIRTUAL86) != 0)
        check_io_privilege(cpu, uop);
    soft_raise_software(cpu, uop, (uint8_t)uop->immediate);
}

static void int3(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise_software(cpu, uop, X86_VECTOR_BP);
}

static void into(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->flags_overflow != 0)
        soft_raise_software(cpu, uop, X86_VECTOR_OF);
    system_end(cpu, uop);
}

/* INT1 is a trap like those of the debug registers: no gate privilege is checked. */
static void int1(struct soft_cpu *cpu, const struct uop *uop)
{
    system_end(cpu, uop);
    cpu->step_pending = false;
    cpu->fault = (struct soft_fault){.vector = X86_VECTOR_DB, .dr6 = cpu->watch_hits};
    cpu->watch_hits = 0;
    soft_deliver_fault(cpu);
}

/* ---- identification and time
 * ------------------------------------------------------------------ */

static void identify(struct soft_cpu *cpu)
{
    struct cpuid_leaf leaf =
        soft_cpuid(cpu, (uint32_t)cpu->r[X86_RAX], (uint32_t)cpu->r[X86_RCX]);

    cpu->r[X86_RAX] = leaf.eax;
    cpu->r[X86_RBX] = leaf.ebx;
    cpu->r[X86_RCX] = leaf.ecx;
    cpu->r[X86_RDX] = leaf.edx;
}

static void cpuid(struct soft_cpu *cpu, const struct uop *uop)
{
    identify(cpu);
    NEXT(cpu, uop);
}

static void check_time_stamp(struct soft_cpu *cpu, const struct uop *uop)
{
    if ((cpu->cr4 & X86_CR4_TSD) != 0 && cpu->cpl != 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void set_edx_eax(struct soft_cpu *cpu, uint64_t value)
{
    cpu->r[X86_RAX] = (uint32_t)value;
    cpu->r[X86_RDX] = value >> 32;
}

static void rdtsc(struct soft_cpu *cpu, const struct uop *uop)
{
    check_time_stamp(cpu, uop);
    soft_clock_set(cpu, uop);
    set_edx_eax(cpu, soft_tsc(cpu));
    NEXT(cpu, uop);
}

static void rdtscp(struct soft_cpu *cpu, const struct uop *uop)
{
    check_time_stamp(cpu, uop);
    soft_clock_set(cpu, uop);
    set_edx_eax(cpu, soft_tsc(cpu));
    cpu->r[X86_RCX] = (uint32_t)cpu->msrs->tsc_aux;
    NEXT(cpu, uop);
}

/* There are no performance counters. */
static void rdpmc(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

/* ---- model-specific registers
 * ------------------------------------------------------------------- */

static void rdmsr(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_check_supervisor(cpu, uop);
    soft_clock_device(cpu, uop);
    set_edx_eax(cpu, soft_msr_read(cpu, uop, (uint32_t)cpu->r[X86_RCX]));
    NEXT(cpu, uop);
}

static void wrmsr(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = cpu->r[X86_RDX] << 32 | (uint32_t)cpu->r[X86_RAX];

    soft_check_supervisor(cpu, uop);
    soft_clock_device(cpu, uop);
    soft_msr_write(cpu, uop, (uint32_t)cpu->r[X86_RCX], value);
    system_end(cpu, uop);
}

/* ---- caches: there are none
 * ------------------------------------------------------------------------ */

static void flush_caches(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_check_supervisor(cpu, uop);
    NEXT(cpu, uop);
}

/* CLFLUSH and the like fault as a load does. */
static void flush_line(struct soft_cpu *cpu, const struct uop *uop)
{
    (void)soft_load8(cpu, uop, soft_address(cpu, uop));
    NEXT(cpu, uop);
}

static void serialize(struct soft_cpu *cpu, const struct uop *uop)
{
    system_end(cpu, uop);
}

/* ---- random numbers
 * ----------------------------------------------------------------------------- */

/* From the host's kernel, which has better ones than a processor, but not the same twice.
 * It can only have none before the host has booted. */
static bool get_random(struct soft_cpu *cpu, uint64_t *value)
{
    if (cpu->clock == NULL)
        return getrandom(value, sizeof(*value), GRND_NONBLOCK) == sizeof(*value);
    *value = soft_clock_random(cpu);
    return true;
}

/* CF says that there was one. */
static void take_random(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = 0;
    bool got = get_random(cpu, &value);

    soft_register_set(cpu, uop->rm, uop->size, got ? value : 0);
    cpu->flags_overflow = 0;
    cpu->flags_status = STATUS_FIXED | (got ? STATUS_CF : 0);
}

static void rdrand(struct soft_cpu *cpu, const struct uop *uop)
{
    take_random(cpu, uop);
    NEXT(cpu, uop);
}

/* ---- SMAP's switch
 * ------------------------------------------------------------------------------ */

static void stac(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->cpl != 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    cpu->flags_system |= (uint32_t)X86_FLAGS_AC;
    soft_cpu_update_mode(cpu);
    NEXT(cpu, uop);
}

static void clac(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->cpl != 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    cpu->flags_system &= ~(uint32_t)X86_FLAGS_AC;
    soft_cpu_update_mode(cpu);
    NEXT(cpu, uop);
}

/* ---- protection keys (SDM 4.6.2)
 * ---------------------------------------------------------------- */

static void check_key_access(struct soft_cpu *cpu, const struct uop *uop, bool write)
{
    if ((cpu->cr4 & X86_CR4_PKE) == 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    if ((uint32_t)cpu->r[X86_RCX] != 0 || (write && (uint32_t)cpu->r[X86_RDX] != 0))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void rdpkru(struct soft_cpu *cpu, const struct uop *uop)
{
    check_key_access(cpu, uop, false);
    set_edx_eax(cpu, cpu->key_rights[true]);
    NEXT(cpu, uop);
}

static void wrpkru(struct soft_cpu *cpu, const struct uop *uop)
{
    check_key_access(cpu, uop, true);
    soft_set_key_rights(cpu, true, (uint32_t)cpu->r[X86_RAX]);
    system_end(cpu, uop);
}

static void hypercall(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_clock_device(cpu, uop); /* it may send interrupts */
    soft_hypercall(cpu);
    system_end(cpu, uop);
}

soft_handler *select_system(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [SYSTEM_CLI] = cli,
        [SYSTEM_STI] = sti,
        [SYSTEM_HLT] = hlt,
        [SYSTEM_INT] = int_n,
        [SYSTEM_INT3] = int3,
        [SYSTEM_INTO] = into,
        [SYSTEM_INT1] = int1,
        [SYSTEM_CPUID] = cpuid,
        [SYSTEM_RDTSC] = rdtsc,
        [SYSTEM_RDTSCP] = rdtscp,
        [SYSTEM_RDPMC] = rdpmc,
        [SYSTEM_RDMSR] = rdmsr,
        [SYSTEM_WRMSR] = wrmsr,
        [SYSTEM_FLUSH_CACHES] = flush_caches,
        [SYSTEM_FLUSH_LINE] = flush_line,
        [SYSTEM_SERIALIZE] = serialize,
        [SYSTEM_RDRAND] = rdrand,
        [SYSTEM_STAC] = stac,
        [SYSTEM_CLAC] = clac,
        [SYSTEM_RDPKRU] = rdpkru,
        [SYSTEM_WRPKRU] = wrpkru,
        [SYSTEM_HYPERCALL] = hypercall,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}
