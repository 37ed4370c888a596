/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processors do as they like: each rule says which instructions, and in what the two
 * sides may differ. Nothing else in these instructions' outcomes is let off.
 */
#include "tolerance.h"

#include <string.h>

#include "base/bytes.h"
#include "shape.h"

typedef bool rule(const struct comparison *comparison);

#define FXSAVE_BYTES 512
#define FXSAVE_UNUSED 96 /* at its end */

static bool is_page_fault(const struct isa_state *state)
{
    return state->end == END_FAULT && state->vector == X86_VECTOR_PF;
}

static bool both_page_fault(const struct comparison *comparison)
{
    return is_page_fault(comparison->native) && is_page_fault(comparison->guest);
}

/* Addresses wrap with the address size, as far as the window tells. */
static uint64_t offset_mask(const struct comparison *comparison)
{
    return comparison->instruction->address_size == 2 ? UINT16_MAX : UINT32_MAX;
}

/* Of an operand of many bytes in two pages, which page is named, and which byte of it:
 * AMD gives the last one of FXSAVE and x87 images, and looks at the second page first.
 * AMD also finds an address not canonical before it finds it misaligned. */
static bool fault_of_image(const struct comparison *comparison)
{
    const struct isa_state *native = comparison->native;
    struct isa_state *guest = comparison->guest;

    if (native->end == END_FAULT && native->vector == X86_VECTOR_SS)
        return guest->end == END_FAULT && guest->vector == X86_VECTOR_GP &&
               shape_address(comparison->instruction, comparison->in) % 16 != 0;
    if (!both_page_fault(comparison) ||
        ((native->cr2 - guest->cr2) & offset_mask(comparison)) >= FXSAVE_BYTES)
        return false;
    guest->cr2 = native->cr2;
    guest->error_code = native->error_code;
    return false;
}

/* AMD also checks the end of the image, which is not written. */
static bool fault_of_fxsave(const struct comparison *comparison)
{
    uint64_t into =
        comparison->native->cr2 - shape_address(comparison->instruction, comparison->in);

    if (is_page_fault(comparison->native) && comparison->guest->end == END_EXIT)
        return into < FXSAVE_BYTES && into >= FXSAVE_BYTES - FXSAVE_UNUSED;
    return fault_of_image(comparison);
}

/* Which of two operands that both fault is named: AMD looks at the second first. And the
 * flags, when a repeat is broken off: Intel restores them (SDM vol. 2, REP), AMD leaves
 * those of the last comparison. Whoever goes on makes them anew. */
static bool fault_of_compare(const struct comparison *comparison)
{
    const struct isa_state *native = comparison->native;
    struct isa_state *guest = comparison->guest;
    unsigned size = comparison->instruction->operand_size;
    uint64_t source = guest->r[X86_RSI];

    if (!both_page_fault(comparison))
        return false;
    if (((guest->cr2 - source) & offset_mask(comparison)) < size ||
        comparison->instruction->segment == X86_GS)
        guest->cr2 = native->cr2;
    if (comparison->instruction->repeat != 0)
        guest->rflags = native->rflags;
    return false;
}

/* Bytes that the mask leaves out may fault or not (SDM vol. 2, MASKMOVQ); AMD takes the
 * operand whole, and has gone over to MMX before it faults. */
static bool fault_of_masked_store(const struct comparison *comparison)
{
    return is_page_fault(comparison->native) &&
           (comparison->guest->end == END_EXIT || is_page_fault(comparison->guest));
}

/* A target that is not canonical and a stack that faults: AMD looks at the stack first.
 */
static bool fault_of_call(const struct comparison *comparison)
{
    return is_page_fault(comparison->native) && comparison->guest->end == END_FAULT &&
           comparison->guest->vector == X86_VECTOR_GP &&
           comparison->in->r[X86_RSP] - 1 - comparison->native->cr2 < 8;
}

/* Several steps, of which one that is not masked hides what the later ones would raise.
 */
static bool trap_of_dot_product(const struct comparison *comparison)
{
    const struct isa_state *native = comparison->native;

    if (native->end == END_FAULT && native->vector == X86_VECTOR_XM)
        comparison->guest->fx.mxcsr = native->fx.mxcsr;
    return false;
}

/* 0F 0D with a register: a NOP that is reserved on Intel, undefined on AMD. */
static bool reserved_nop(const struct comparison *comparison)
{
    return !comparison->instruction->memory && comparison->native->end == END_FAULT &&
           comparison->native->vector == X86_VECTOR_UD;
}

/* AMD has loaded some registers by the time a later one faults. */
static bool fault_of_popa(const struct comparison *comparison)
{
    if (both_page_fault(comparison))
        memcpy(comparison->guest->r, comparison->native->r,
               sizeof(comparison->native->r));
    return false;
}

/* Writes only if it changes something; here a code segment is refused before. */
static bool fault_of_arpl(const struct comparison *comparison)
{
    return comparison->instruction->segment == X86_CS &&
           comparison->guest->end == END_FAULT &&
           comparison->guest->vector == X86_VECTOR_GP;
}

/* Whoever interrupts the host just then may not give NT back: seen under a hypervisor
 * that does without hardware's help, in one of some hundred thousand states. */
static bool lost_nested_task(const struct comparison *comparison)
{
    if ((comparison->native->rflags & X86_FLAGS_NT) == 0)
        comparison->guest->rflags &= ~(uint64_t)X86_FLAGS_NT;
    return false;
}

static const struct {
    const char *mnemonic; /* how it begins */
    rule *apply;
} rules[] = {
    {"cmps", fault_of_compare},
    {"scas", fault_of_compare},
    {"maskmov", fault_of_masked_store},
    {"fxsave", fault_of_fxsave},
    {"fxrstor", fault_of_image},
    {"fnsave", fault_of_image},
    {"frstor", fault_of_image},
    {"fnstenv", fault_of_image},
    {"fldenv", fault_of_image},
    {"call", fault_of_call},
    {"popa", fault_of_popa},
    {"popf", lost_nested_task},
    {"arpl", fault_of_arpl},
    {"dpp", trap_of_dot_product},
    {"prefetch", reserved_nop},
};

/* Overflow and underflow that are not masked: the result would have an exponent out of
 * range, and whether *that* is inexact cannot be had from the host's unit without a trap.
 * The soft side reports what rounding into range gives. */
static void precision_of_trap(const struct comparison *comparison)
{
    const uint32_t range = 0x18; /* OE, UE */
    const uint32_t precision = 0x20;
    const struct isa_state *native = comparison->native;
    struct isa_state *guest = comparison->guest;

    if (native->end != END_FAULT || native->vector != X86_VECTOR_XM ||
        (native->fx.mxcsr & range & ~(native->fx.mxcsr >> 7)) == 0)
        return;
    guest->fx.mxcsr = (guest->fx.mxcsr & ~precision) | (native->fx.mxcsr & precision);
}

/* Two faults at once, of which one is a segment that does not allow the access: that is
 * the first one here, and later on AMD. */
static bool forbidden_segment(const struct comparison *comparison)
{
    return comparison->in->code32 && comparison->native->end == END_FAULT &&
           comparison->guest->end == END_FAULT &&
           comparison->guest->vector == X86_VECTOR_GP &&
           (comparison->instruction->segment >= X86_FS ||
            comparison->instruction->segment == X86_CS);
}

bool tolerate(const struct comparison *comparison)
{
    const struct form *form = comparison->instruction->form;

    if (forbidden_segment(comparison))
        return true;
    if ((form->attributes & FORM_SSE) != 0)
        precision_of_trap(comparison);
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (strncmp(form->mnemonic, rules[i].mnemonic, strlen(rules[i].mnemonic)) == 0)
            return rules[i].apply(comparison);
    return false;
}
