/* SPDX-License-Identifier: Apache-2.0 */
/* System calls (SYSCALL, SYSRET, SYSENTER, SYSEXIT), and the bases of FS and GS. */
#include "accel/soft/msr_private.h"
#include "accel/soft/system_private.h"
#include "accel/soft/vendor_private.h"

/* On to the block at the new rip. */
#define ENTER(cpu) FLOW_ENTER(cpu, block_lookup(cpu, (cpu)->rip))

/* SYSCALL and SYSRET trap by the TF that they have loaded, not by the one before. */
static void retire_by_new_trap_flag(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->step_pending = (cpu->flags_system & X86_FLAGS_TF) != 0;
    flow_retire(cpu, uop);
}

/* Flat segments that these instructions make out of nothing. */
static struct x86_segment flat_code(uint16_t selector, unsigned cpl, bool code64)
{
    return (struct x86_segment){
        .limit = UINT32_MAX,
        .selector = (uint16_t)((selector & ~SELECTOR_RPL) | cpl),
        .type = X86_TYPE_CODE_READ_EXECUTE_ACCESSED,
        .dpl = (uint8_t)cpl,
        .present = true,
        .code_or_data = true,
        .db = !code64,
        .long_mode = code64,
        .granularity = true,
    };
}

static struct x86_segment flat_stack(uint16_t selector, unsigned cpl)
{
    return (struct x86_segment){
        .limit = UINT32_MAX,
        .selector = (uint16_t)((selector & ~SELECTOR_RPL) | cpl),
        .type = X86_TYPE_DATA_READ_WRITE_ACCESSED,
        .dpl = (uint8_t)cpl,
        .present = true,
        .code_or_data = true,
        .db = true,
        .granularity = true,
    };
}

static void enter_flat(struct soft_cpu *cpu, uint16_t code, uint16_t stack, unsigned cpl,
                       bool code64)
{
    cpu->segments[X86_CS] = flat_code(code, cpl, code64);
    cpu->segments[X86_SS] = flat_stack(stack, cpl);
    cpu->cpl = (uint8_t)cpl;
    soft_cpu_update_mode(cpu);
}

/* ---- SYSCALL and SYSRET
 * -------------------------------------------------------------------------- */

/* Both makers' have them in 64-bit code, AMD's in all of protected mode. */
static void check_syscall(struct soft_cpu *cpu, const struct uop *uop)
{
    bool available =
        (cpu->mode & MODE_CODE64) != 0 || (vendor_is_amd() && soft_has_descriptors(cpu));

    if (!available || (cpu->efer & X86_EFER_SCE) == 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
}

/* Selectors in STAR: of SYSCALL in bits 47 to 32, of SYSRET in 63 to 48. SS is the next
 * one. */
static void syscall_long(struct soft_cpu *cpu, const struct uop *uop)
{
    const struct soft_msrs *msrs = cpu->msrs;
    uint16_t selector = (uint16_t)(msrs->star >> 32);
    uint64_t flags = soft_flags_get(cpu) & ~X86_FLAGS_RF;

    cpu->r[X86_RCX] = uop_next_rip(uop);
    cpu->r[X86_R11] = flags;
    cpu->rip = soft_in_64bit_code(cpu) ? msrs->lstar : msrs->cstar;
    soft_flags_set(cpu, flags & ~msrs->fmask);
    enter_flat(cpu, selector, (uint16_t)(selector + 8), 0, true);
}

/* AMD APM vol. 3: EIP from STAR, only IF (and VM, which is not set here) cleared. */
static void syscall_legacy(struct soft_cpu *cpu, const struct uop *uop)
{
    uint16_t selector = (uint16_t)(cpu->msrs->star >> 32);

    cpu->r[X86_RCX] = (uint32_t)uop_next_rip(uop);
    cpu->rip = (uint32_t)cpu->msrs->star;
    soft_flags_set(cpu, soft_flags_get(cpu) & ~(X86_FLAGS_IF | X86_FLAGS_RF));
    enter_flat(cpu, selector, (uint16_t)(selector + 8), 0, false);
}

static void enter_by_syscall(struct soft_cpu *cpu, const struct uop *uop)
{
    check_syscall(cpu, uop);
    if (soft_in_long_mode(cpu))
        syscall_long(cpu, uop);
    else
        syscall_legacy(cpu, uop);
    retire_by_new_trap_flag(cpu, uop);
    ENTER(cpu);
}

/* R11 as flags: RF and VM cannot be set (SDM vol. 2, SYSRET). */
#define SYSRET_FLAGS UINT64_C(0x3c7fd7)

static void sysret_long(struct soft_cpu *cpu, bool code64)
{
    uint16_t selector = (uint16_t)(cpu->msrs->star >> 48);
    uint64_t flags = cpu->r[X86_R11] & SYSRET_FLAGS;

    cpu->rip = code64 ? cpu->r[X86_RCX] : (uint32_t)cpu->r[X86_RCX];
    enter_flat(cpu, (uint16_t)(selector + (code64 ? 16 : 0)), (uint16_t)(selector + 8), 3,
               code64);
    soft_flags_set(cpu, flags);
}

static void sysret_legacy(struct soft_cpu *cpu)
{
    uint16_t selector = (uint16_t)(cpu->msrs->star >> 48);

    cpu->rip = (uint32_t)cpu->r[X86_RCX];
    enter_flat(cpu, selector, (uint16_t)(selector + 8), 3, false);
    soft_flags_set(cpu, soft_flags_get(cpu) | X86_FLAGS_IF);
}

/* A non-canonical RCX: Intel's fault here, still at CPL 0; AMD's when they fetch there.
 */
static void return_by_sysret(struct soft_cpu *cpu, const struct uop *uop)
{
    bool code64 = uop->size == 8;

    check_syscall(cpu, uop);
    soft_check_supervisor(cpu, uop);
    if (code64 && !linear_is_canonical(cpu->r[X86_RCX]) && !vendor_is_amd())
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    if (soft_in_long_mode(cpu))
        sysret_long(cpu, code64);
    else
        sysret_legacy(cpu);
    retire_by_new_trap_flag(cpu, uop);
    ENTER(cpu);
}

/* ---- SYSENTER and SYSEXIT
 * ------------------------------------------------------------------------ */

/* AMD's do not have them in long mode. */
static void check_sysenter(struct soft_cpu *cpu, const struct uop *uop)
{
    if (vendor_is_amd() && soft_in_long_mode(cpu))
        soft_raise(cpu, uop, X86_VECTOR_UD);
    if ((cpu->mode & MODE_PROTECTED) == 0 ||
        selector_is_null((uint16_t)cpu->msrs->sysenter_cs))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

static void enter_by_sysenter(struct soft_cpu *cpu, const struct uop *uop)
{
    const struct soft_msrs *msrs = cpu->msrs;
    bool long_mode = soft_in_long_mode(cpu);
    uint16_t selector = (uint16_t)msrs->sysenter_cs;

    check_sysenter(cpu, uop);
    soft_flags_set(cpu,
                   soft_flags_get(cpu) & ~(X86_FLAGS_VM | X86_FLAGS_IF | X86_FLAGS_RF));
    enter_flat(cpu, selector, (uint16_t)((selector & ~SELECTOR_RPL) + 8), 0, long_mode);
    cpu->rip = long_mode ? msrs->sysenter_eip : (uint32_t)msrs->sysenter_eip;
    cpu->r[X86_RSP] = long_mode ? msrs->sysenter_esp : (uint32_t)msrs->sysenter_esp;
    flow_retire(cpu, uop);
}

static void return_by_sysexit(struct soft_cpu *cpu, const struct uop *uop)
{
    bool code64 = uop->size == 8;
    uint16_t selector = (uint16_t)(cpu->msrs->sysenter_cs & ~SELECTOR_RPL);
    uint64_t rip = code64 ? cpu->r[X86_RDX] : (uint32_t)cpu->r[X86_RDX];
    uint64_t rsp = code64 ? cpu->r[X86_RCX] : (uint32_t)cpu->r[X86_RCX];

    check_sysenter(cpu, uop);
    soft_check_supervisor(cpu, uop);
    if (code64 && (!linear_is_canonical(rip) || !linear_is_canonical(rsp)))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    enter_flat(cpu, (uint16_t)(selector + (code64 ? 32 : 16)),
               (uint16_t)(selector + (code64 ? 40 : 24)), 3, code64);
    cpu->rip = rip;
    cpu->r[X86_RSP] = rsp;
    flow_retire(cpu, uop);
}

/* ---- FS and GS
 * ----------------------------------------------------------------------------------- */

static void swapgs(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t base = cpu->segments[X86_GS].base;

    soft_check_supervisor(cpu, uop);
    cpu->segments[X86_GS].base = cpu->kernel_gs_base;
    cpu->kernel_gs_base = base;
    NEXT(cpu, uop);
}

static void check_base_access(struct soft_cpu *cpu, const struct uop *uop)
{
    if ((cpu->cr4 & X86_CR4_FSGSBASE) == 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
}

static void read_base(struct soft_cpu *cpu, const struct uop *uop,
                      enum x86_segment_register which)
{
    check_base_access(cpu, uop);
    soft_register_set(cpu, uop->rm, uop->size, cpu->segments[which].base);
}

static void write_base(struct soft_cpu *cpu, const struct uop *uop,
                       enum x86_segment_register which)
{
    uint64_t base = soft_register_get(cpu, uop->rm, uop->size);

    check_base_access(cpu, uop);
    if (!linear_is_canonical(base))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    cpu->segments[which].base = base;
}

static void rdfsbase(struct soft_cpu *cpu, const struct uop *uop)
{
    read_base(cpu, uop, X86_FS);
    NEXT(cpu, uop);
}

static void rdgsbase(struct soft_cpu *cpu, const struct uop *uop)
{
    read_base(cpu, uop, X86_GS);
    NEXT(cpu, uop);
}

static void wrfsbase(struct soft_cpu *cpu, const struct uop *uop)
{
    write_base(cpu, uop, X86_FS);
    NEXT(cpu, uop);
}

static void wrgsbase(struct soft_cpu *cpu, const struct uop *uop)
{
    write_base(cpu, uop, X86_GS);
    NEXT(cpu, uop);
}

soft_handler *select_syscall(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [SYSCALL_SYSCALL] = enter_by_syscall,
        [SYSCALL_SYSRET] = return_by_sysret,
        [SYSCALL_SYSENTER] = enter_by_sysenter,
        [SYSCALL_SYSEXIT] = return_by_sysexit,
        [SYSCALL_SWAPGS] = swapgs,
        [SYSCALL_RDFSBASE] = rdfsbase,
        [SYSCALL_RDGSBASE] = rdgsbase,
        [SYSCALL_WRFSBASE] = wrfsbase,
        [SYSCALL_WRGSBASE] = wrgsbase,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}
