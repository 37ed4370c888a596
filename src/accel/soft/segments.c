/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that load, store and look at segment registers and their descriptors. */
#include "accel/soft/frame_private.h"
#include "accel/soft/system_private.h"

/* ---- MOV
 * ---------------------------------------------------------------------------------------
 */

static void store_register(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_register_set(cpu, uop->rm, uop->size, cpu->segments[uop->reg].selector);
    NEXT(cpu, uop);
}

static void store_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_store16(cpu, uop, soft_address(cpu, uop), cpu->segments[uop->reg].selector);
    NEXT(cpu, uop);
}

/* Behind a load of a data segment. What follows in the block is for the old mode. */
static void finish_data_load(struct soft_cpu *cpu, const struct uop *uop)
{
    bool flat = (cpu->mode & MODE_FLAT) != 0;

    if (LIKELY(soft_in_64bit_code(cpu) || segment_all_flat(cpu) == flat))
        NEXT(cpu, uop);
    soft_cpu_update_mode(cpu);
    system_end(cpu, uop);
}

static void load_from_register(struct soft_cpu *cpu, const struct uop *uop)
{
    segment_load(cpu, uop, (enum x86_segment_register)uop->reg,
                 system_operand16(cpu, uop, false));
    finish_data_load(cpu, uop);
}

static void load_from_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    segment_load(cpu, uop, (enum x86_segment_register)uop->reg,
                 system_operand16(cpu, uop, true));
    finish_data_load(cpu, uop);
}

/* SDM 6.8.3: after a load of SS neither interrupts nor debug traps come before the next
 * instruction is done, so that the stack pointer can be set with it. */
static void finish_stack_load(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_cpu_update_mode(cpu);
    soft_cpu_attend(cpu, ATTENTION_SHADOW);
    cpu->step_pending = false;
    cpu->watch_hits = (uint8_t)(cpu->watch_hits << WATCH_LATER_SHIFT);
    system_end(cpu, uop);
}

static void load_stack_from_register(struct soft_cpu *cpu, const struct uop *uop)
{
    segment_load(cpu, uop, X86_SS, system_operand16(cpu, uop, false));
    finish_stack_load(cpu, uop);
}

static void load_stack_from_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    segment_load(cpu, uop, X86_SS, system_operand16(cpu, uop, true));
    finish_stack_load(cpu, uop);
}

/* ---- PUSH and POP
 * ------------------------------------------------------------------------------- */

static void push_selector(struct soft_cpu *cpu, const struct uop *uop,
                          enum x86_segment_register which)
{
    struct frame frame = frame_current(cpu, uop->size);

    frame_push(cpu, uop, &frame, cpu->segments[which].selector);
    frame_commit(cpu, &frame);
}

static void pop_selector(struct soft_cpu *cpu, const struct uop *uop,
                         enum x86_segment_register which)
{
    struct frame frame = frame_current(cpu, uop->size);

    segment_load(cpu, uop, which, frame_pop_selector(cpu, uop, &frame));
    frame_commit(cpu, &frame);
}

#define PUSH_AND_POP(name, which)                                                        \
    static void push_##name(struct soft_cpu *cpu, const struct uop *uop)                 \
    {                                                                                    \
        push_selector(cpu, uop, which);                                                  \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static void pop_##name(struct soft_cpu *cpu, const struct uop *uop)                  \
    {                                                                                    \
        pop_selector(cpu, uop, which);                                                   \
        finish_data_load(cpu, uop);                                                      \
    }
PUSH_AND_POP(es, X86_ES)
PUSH_AND_POP(ds, X86_DS)
PUSH_AND_POP(fs, X86_FS)
PUSH_AND_POP(gs, X86_GS)
#undef PUSH_AND_POP

static void push_cs(struct soft_cpu *cpu, const struct uop *uop)
{
    push_selector(cpu, uop, X86_CS);
    NEXT(cpu, uop);
}

static void push_ss(struct soft_cpu *cpu, const struct uop *uop)
{
    push_selector(cpu, uop, X86_SS);
    NEXT(cpu, uop);
}

static void pop_ss(struct soft_cpu *cpu, const struct uop *uop)
{
    pop_selector(cpu, uop, X86_SS);
    finish_stack_load(cpu, uop);
}

soft_handler *select_segment_push(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [X86_ES] = push_es, [X86_CS] = push_cs, [X86_SS] = push_ss,
        [X86_DS] = push_ds, [X86_FS] = push_fs, [X86_GS] = push_gs,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}

soft_handler *select_segment_pop(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [X86_ES] = pop_es, [X86_SS] = pop_ss, [X86_DS] = pop_ds,
        [X86_FS] = pop_fs, [X86_GS] = pop_gs,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}

/* ---- LDS, LES, LSS, LFS, LGS
 * -------------------------------------------------------------------- */

static void load_far_pointer(struct soft_cpu *cpu, const struct uop *uop,
                             enum x86_segment_register which)
{
    uint64_t linear = soft_address(cpu, uop);
    uint16_t selector = soft_load16(cpu, uop, system_linear(cpu, linear, uop->size));
    uint64_t offset = soft_load_slow(cpu, uop, linear, uop->size);

    segment_load(cpu, uop, which, selector);
    soft_register_set(cpu, uop->reg, uop->size, offset);
}

#define LOAD_FAR_POINTER(name, which)                                                    \
    static void load_##name(struct soft_cpu *cpu, const struct uop *uop)                 \
    {                                                                                    \
        load_far_pointer(cpu, uop, which);                                               \
        finish_data_load(cpu, uop);                                                      \
    }
LOAD_FAR_POINTER(es, X86_ES)
LOAD_FAR_POINTER(ds, X86_DS)
LOAD_FAR_POINTER(fs, X86_FS)
LOAD_FAR_POINTER(gs, X86_GS)
#undef LOAD_FAR_POINTER

static void load_ss(struct soft_cpu *cpu, const struct uop *uop)
{
    load_far_pointer(cpu, uop, X86_SS);
    soft_cpu_update_mode(cpu);
    system_end(cpu, uop);
}

soft_handler *select_segment_pointer(const struct instruction *instruction,
                                     bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [X86_ES] = load_es, [X86_SS] = load_ss, [X86_DS] = load_ds,
        [X86_FS] = load_fs, [X86_GS] = load_gs,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}

/* ---- LAR, LSL, VERR, VERW, ARPL
 * -------------------------------------------------------------- */

#define TYPES(first) (1u << (first))

/* System descriptors that LAR (and LSL, which wants a limit) accepts (SDM vol. 2). */
static bool is_inspectable(const struct soft_cpu *cpu, unsigned type, bool limit)
{
    unsigned accepted = TYPES(TYPE_LDT) | TYPES(TYPE_TSS32) | TYPES(TYPE_TSS32_BUSY);

    if (!limit)
        accepted |= TYPES(TYPE_CALL_GATE32);
    if (!soft_in_long_mode(cpu))
        accepted |= TYPES(TYPE_TSS16) | TYPES(TYPE_TSS16_BUSY);
    if (!soft_in_long_mode(cpu) && !limit)
        accepted |= TYPES(TYPE_CALL_GATE16) | TYPES(TYPE_TASK_GATE);
    return (accepted >> type & 1) != 0;
}
#undef TYPES

static bool is_visible(const struct soft_cpu *cpu, uint16_t selector,
                       const struct descriptor *descriptor)
{
    unsigned dpl = descriptor_dpl(descriptor);

    if (descriptor_is_code(descriptor) && descriptor_is_conforming(descriptor))
        return true;
    return cpu->cpl <= dpl && (selector & SELECTOR_RPL) <= dpl;
}

/* Finds a descriptor that the program may ask about; never raises but for page faults. */
static bool inspect(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                    struct descriptor *found)
{
    return !selector_is_null(selector) && descriptor_find(cpu, uop, selector, found) &&
           is_visible(cpu, selector, found);
}

static void load_access_rights(struct soft_cpu *cpu, const struct uop *uop,
                               uint16_t selector)
{
    struct descriptor found = {0};
    bool valid = inspect(cpu, uop, selector, &found) &&
                 (descriptor_is_segment(&found) ||
                  is_inspectable(cpu, descriptor_type(&found), false));

    if (valid)
        soft_register_set(cpu, uop->reg, uop->size, found.low >> 32 & 0x00ffff00);
    system_set_zero_flag(cpu, valid);
}

static void load_segment_limit(struct soft_cpu *cpu, const struct uop *uop,
                               uint16_t selector)
{
    struct descriptor found = {0};
    bool valid = inspect(cpu, uop, selector, &found) &&
                 (descriptor_is_segment(&found) ||
                  is_inspectable(cpu, descriptor_type(&found), true));

    if (valid)
        soft_register_set(cpu, uop->reg, uop->size, descriptor_limit(&found));
    system_set_zero_flag(cpu, valid);
}

static void verify(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                   bool write)
{
    struct descriptor found = {0};
    bool valid = inspect(cpu, uop, selector, &found) && descriptor_is_segment(&found);

    if (valid) {
        unsigned type = descriptor_type(&found);
        bool code = (type & TYPE_CODE) != 0;
        bool bit = (type & TYPE_WRITABLE) != 0; /* code: readable */

        valid = write ? !code && bit : !code || bit;
    }
    system_set_zero_flag(cpu, valid);
}

static void verify_read(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector)
{
    verify(cpu, uop, selector, false);
}

static void verify_write(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector)
{
    verify(cpu, uop, selector, true);
}

/* ---- LLDT, LTR
 * ---------------------------------------------------------------------------------- */

static void load_local_table(struct soft_cpu *cpu, const struct uop *uop,
                             uint16_t selector)
{
    segment_load_ldt(cpu, uop, selector, X86_VECTOR_GP);
}

static void load_task_register(struct soft_cpu *cpu, const struct uop *uop,
                               uint16_t selector)
{
    segment_load_task(cpu, uop, selector);
}

/* Privilege counts before what reading the operand may raise. */
static uint16_t supervisor_operand16(struct soft_cpu *cpu, const struct uop *uop,
                                     bool memory)
{
    soft_check_supervisor(cpu, uop);
    return system_operand16(cpu, uop, memory);
}

/* All of these take one selector, from a register or from memory. */
#define TAKES_SELECTOR(name, operand, action)                                            \
    static void name##_register(struct soft_cpu *cpu, const struct uop *uop)             \
    {                                                                                    \
        action(cpu, uop, operand(cpu, uop, false));                                      \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static void name##_memory(struct soft_cpu *cpu, const struct uop *uop)               \
    {                                                                                    \
        action(cpu, uop, operand(cpu, uop, true));                                       \
        NEXT(cpu, uop);                                                                  \
    }
TAKES_SELECTOR(lar, system_operand16, load_access_rights)
TAKES_SELECTOR(lsl, system_operand16, load_segment_limit)
TAKES_SELECTOR(verr, system_operand16, verify_read)
TAKES_SELECTOR(verw, system_operand16, verify_write)
TAKES_SELECTOR(lldt, supervisor_operand16, load_local_table)
TAKES_SELECTOR(ltr, supervisor_operand16, load_task_register)
#undef TAKES_SELECTOR

/* ---- SLDT, STR
 * ---------------------------------------------------------------------------------- */

#define STORES_SELECTOR(name, which)                                                     \
    static void name##_register(struct soft_cpu *cpu, const struct uop *uop)             \
    {                                                                                    \
        system_check_umip(cpu, uop);                                                     \
        soft_register_set(cpu, uop->rm, uop->size, cpu->segments[which].selector);       \
        NEXT(cpu, uop);                                                                  \
    }                                                                                    \
    static void name##_memory(struct soft_cpu *cpu, const struct uop *uop)               \
    {                                                                                    \
        system_check_umip(cpu, uop);                                                     \
        soft_store16(cpu, uop, soft_address(cpu, uop), cpu->segments[which].selector);   \
        NEXT(cpu, uop);                                                                  \
    }
STORES_SELECTOR(sldt, X86_LDTR)
STORES_SELECTOR(str, X86_TR)
#undef STORES_SELECTOR

/* ---- ARPL
 * ---------------------------------------------------------------------------------------
 */

/* Raises the requested privilege of `selector` to that of `least`; true if it was lower.
 */
static bool adjust(uint16_t *selector, uint16_t least)
{
    if ((*selector & SELECTOR_RPL) >= (least & SELECTOR_RPL))
        return false;
    *selector =
        (uint16_t)((*selector & ~SELECTOR_RPL) | (unsigned)(least & SELECTOR_RPL));
    return true;
}

static void arpl_register(struct soft_cpu *cpu, const struct uop *uop)
{
    system_set_zero_flag(
        cpu, adjust(soft_register16(cpu, uop->rm), *soft_register16(cpu, uop->reg)));
    NEXT(cpu, uop);
}

/* Nothing is written where nothing changes. */
static void adjust_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t linear = soft_address(cpu, uop);
    uint16_t selector = soft_load16(cpu, uop, linear);
    bool changed = adjust(&selector, *soft_register16(cpu, uop->reg));

    if (changed)
        soft_store16(cpu, uop, linear, selector);
    system_set_zero_flag(cpu, changed);
}

static void arpl_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    adjust_memory(cpu, uop);
    NEXT(cpu, uop);
}

soft_handler *select_segment(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[][2] = {
        [SEGMENT_STORE] = {store_register, store_memory},
        [SEGMENT_LOAD] = {load_from_register, load_from_memory},
        [SEGMENT_LOAD_STACK] = {load_stack_from_register, load_stack_from_memory},
        [SEGMENT_LAR] = {lar_register, lar_memory},
        [SEGMENT_LSL] = {lsl_register, lsl_memory},
        [SEGMENT_VERR] = {verr_register, verr_memory},
        [SEGMENT_VERW] = {verw_register, verw_memory},
        [SEGMENT_LLDT] = {lldt_register, lldt_memory},
        [SEGMENT_LTR] = {ltr_register, ltr_memory},
        [SEGMENT_SLDT] = {sldt_register, sldt_memory},
        [SEGMENT_STR] = {str_register, str_memory},
        [SEGMENT_ARPL] = {arpl_register, arpl_memory},
    };

    (void)flags_dead;
    return handlers[instruction->form->variant][instruction->memory];
}
