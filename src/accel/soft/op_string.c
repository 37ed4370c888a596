/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOVS CMPS STOS LODS SCAS, single and repeated.
 *
 * A repeated instruction commits each element. It may be left between two, with rip at
 * the instruction itself, for an interrupt or a single step, and goes on from there. MOVS
 * and STOS upwards through flat memory work in chunks to the ends of pages.
 */
#include <string.h>

#include "accel/soft/address_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/operand_private.h"

/* ---- registers as wide as addresses
 * ---------------------------------------------------------------- */

static uint64_t pointer_get(const struct soft_cpu *cpu, const struct uop *uop,
                            enum x86_register number)
{
    uint64_t value = cpu->r[number];

    if (uop->address_size == 8)
        return value;
    return uop->address_size == 4 ? (uint32_t)value : (uint16_t)value;
}

static void pointer_add(struct soft_cpu *cpu, const struct uop *uop,
                        enum x86_register number, uint64_t addend)
{
    soft_register_set(cpu, (uint8_t)(number * 8), uop->address_size,
                      cpu->r[number] + addend);
}

/* From one element to the next. */
static uint64_t stride(const struct soft_cpu *cpu, const struct uop *uop)
{
    return cpu->direction ? 0 - (uint64_t)uop->size : uop->size;
}

/* ---- one element
 * ---------------------------------------------------------------- */

static uint64_t source_linear(struct soft_cpu *cpu, const struct uop *uop)
{
    return address_linear(cpu, uop, uop->segment, pointer_get(cpu, uop, X86_RSI),
                          uop->size, false);
}

static uint64_t target_linear(struct soft_cpu *cpu, const struct uop *uop, bool write)
{
    return address_linear(cpu, uop, X86_ES, pointer_get(cpu, uop, X86_RDI), uop->size,
                          write);
}

static uint64_t load(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear)
{
    switch (uop->size) {
    case 1:
        return soft_load8(cpu, uop, linear);
    case 2:
        return soft_load16(cpu, uop, linear);
    case 4:
        return soft_load32(cpu, uop, linear);
    default:
        return soft_load64(cpu, uop, linear);
    }
}

static void store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                  uint64_t value)
{
    switch (uop->size) {
    case 1:
        soft_store8(cpu, uop, linear, (uint8_t)value);
        return;
    case 2:
        soft_store16(cpu, uop, linear, (uint16_t)value);
        return;
    case 4:
        soft_store32(cpu, uop, linear, (uint32_t)value);
        return;
    default:
        soft_store64(cpu, uop, linear, value);
        return;
    }
}

static void step_movs(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = load(cpu, uop, source_linear(cpu, uop));

    store(cpu, uop, target_linear(cpu, uop, true), value);
    pointer_add(cpu, uop, X86_RSI, stride(cpu, uop));
    pointer_add(cpu, uop, X86_RDI, stride(cpu, uop));
}

static void step_stos(struct soft_cpu *cpu, const struct uop *uop)
{
    store(cpu, uop, target_linear(cpu, uop, true), cpu->r[X86_RAX]);
    pointer_add(cpu, uop, X86_RDI, stride(cpu, uop));
}

static void step_lods(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = load(cpu, uop, source_linear(cpu, uop));

    soft_register_set(cpu, X86_RAX * 8, uop->size, value);
    pointer_add(cpu, uop, X86_RSI, stride(cpu, uop));
}

/* The flags of left - right, packed. */
static uint16_t compare(const struct uop *uop, uint64_t left, uint64_t right)
{
    uint16_t packed;

    switch (uop->size) {
    case 1:
        asm("cmpb %b[right], %b[left]\n\t" FLAGS_SAVE
            : "=a"(packed)
            : [left] "r"(left), [right] "r"(right)
            : "cc");
        break;
    case 2:
        asm("cmpw %w[right], %w[left]\n\t" FLAGS_SAVE
            : "=a"(packed)
            : [left] "r"(left), [right] "r"(right)
            : "cc");
        break;
    case 4:
        asm("cmpl %k[right], %k[left]\n\t" FLAGS_SAVE
            : "=a"(packed)
            : [left] "r"(left), [right] "r"(right)
            : "cc");
        break;
    default:
        asm("cmpq %[right], %[left]\n\t" FLAGS_SAVE
            : "=a"(packed)
            : [left] "r"(left), [right] "r"(right)
            : "cc");
        break;
    }
    return packed;
}

static uint16_t step_cmps(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t left = load(cpu, uop, source_linear(cpu, uop));
    uint64_t right = load(cpu, uop, target_linear(cpu, uop, false));

    pointer_add(cpu, uop, X86_RSI, stride(cpu, uop));
    pointer_add(cpu, uop, X86_RDI, stride(cpu, uop));
    return compare(uop, left, right);
}

static uint16_t step_scas(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t right = load(cpu, uop, target_linear(cpu, uop, false));

    pointer_add(cpu, uop, X86_RDI, stride(cpu, uop));
    return compare(uop, cpu->r[X86_RAX], right);
}

/* ---- chunks
 * ---------------------------------------------------------------- */

/* True if offsets in the segment, as wide as this instruction's addresses, are linear
 * addresses, all of them allowed. */
static bool is_flat(const struct soft_cpu *cpu, unsigned segment, bool write)
{
    const struct x86_segment *in = &cpu->segments[segment];

    if ((cpu->mode & MODE_CODE64) != 0)
        return segment < X86_FS || in->base == 0;
    return in->base == 0 && in->limit == UINT32_MAX && in->present && in->code_or_data &&
           (in->type & 0xc) == 0 && (!write || (in->type & 2) != 0);
}

/* Whole elements from `linear` to its page's end, at most `count`. */
static uint64_t elements_in_page(const struct uop *uop, uint64_t linear, uint64_t count)
{
    return min_u64(count, (X86_PAGE_BYTES - linear % X86_PAGE_BYTES) / uop->size);
}

/* Upwards, element by element, so that a target just ahead of its source repeats it. */
static void copy_overlapping(uint8_t *to, const uint8_t *from, uint64_t bytes,
                             unsigned size)
{
    for (uint64_t at = 0; at < bytes; at += size) {
        switch (size) {
        case 1:
            to[at] = from[at];
            break;
        case 2:
            *(guest_u16 *)(to + at) = *(const guest_u16 *)(from + at);
            break;
        case 4:
            *(guest_u32 *)(to + at) = *(const guest_u32 *)(from + at);
            break;
        default:
            *(guest_u64 *)(to + at) = *(const guest_u64 *)(from + at);
            break;
        }
    }
}

/* Moves what lies in the current pages, at most `count` elements. Returns how many: 0 if
 * this is not the fast way's. */
static uint64_t chunk_movs(struct soft_cpu *cpu, const struct uop *uop, uint64_t count)
{
    uint64_t source = pointer_get(cpu, uop, X86_RSI);
    uint64_t target = pointer_get(cpu, uop, X86_RDI);
    uint64_t elements =
        elements_in_page(uop, source, elements_in_page(uop, target, count));
    uint64_t bytes = elements * uop->size;
    const uint8_t *from;
    uint8_t *to;

    if (elements == 0)
        return 0;
    from = soft_readable(cpu, source, (unsigned)bytes);
    to = soft_writable(cpu, target, (unsigned)bytes);
    if (from == NULL || to == NULL)
        return 0;
    if ((uintptr_t)to - (uintptr_t)from < bytes)
        copy_overlapping(to, from, bytes, uop->size);
    else
        memmove(to, from, bytes);
    pointer_add(cpu, uop, X86_RSI, bytes);
    pointer_add(cpu, uop, X86_RDI, bytes);
    return elements;
}

static void fill(uint8_t *to, uint64_t bytes, uint64_t value, unsigned size)
{
    uint64_t pattern = value;

    if (size < 8)
        pattern &= (UINT64_C(1) << 8 * size) - 1;
    for (unsigned width = size; width < 8; width *= 2)
        pattern |= pattern << 8 * width;
    if (pattern == (pattern & 0xff) * UINT64_C(0x0101010101010101)) {
        memset(to, (int)(pattern & 0xff), bytes);
        return;
    }
    for (; bytes >= 8; bytes -= 8, to += 8)
        *(guest_u64 *)to = pattern;
    memcpy(to, &pattern, bytes);
}

static uint64_t chunk_stos(struct soft_cpu *cpu, const struct uop *uop, uint64_t count)
{
    uint64_t target = pointer_get(cpu, uop, X86_RDI);
    uint64_t elements = elements_in_page(uop, target, count);
    uint64_t bytes = elements * uop->size;
    uint8_t *to;

    if (elements == 0)
        return 0;
    to = soft_writable(cpu, target, (unsigned)bytes);
    if (to == NULL)
        return 0;
    fill(to, bytes, cpu->r[X86_RAX], uop->size);
    pointer_add(cpu, uop, X86_RDI, bytes);
    return elements;
}

/* ---- repetition
 * ---------------------------------------------------------------- */

static bool must_leave(const struct soft_cpu *cpu)
{
    return atomic_load_explicit(&cpu->attention, memory_order_relaxed) != 0 ||
           cpu->step_pending;
}

/* Back to the run loop, and then to this instruction again. */
static void leave_unfinished(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->retired += uop->ordinal;
    cpu->rip = uop->rip;
}

typedef void string_step(struct soft_cpu *cpu, const struct uop *uop);
typedef uint64_t string_chunk(struct soft_cpu *cpu, const struct uop *uop,
                              uint64_t count);
typedef uint16_t string_compare(struct soft_cpu *cpu, const struct uop *uop);

/* `chunk` may be NULL. A single step is one element. */
static ALWAYS_INLINE void repeat(struct soft_cpu *cpu, const struct uop *uop,
                                 string_step *step, string_chunk *chunk)
{
    uint64_t count;

    while ((count = pointer_get(cpu, uop, X86_RCX)) != 0) {
        uint64_t done = 0;

        if (chunk != NULL && !cpu->step_pending)
            done = chunk(cpu, uop, count);
        if (done == 0) {
            step(cpu, uop);
            done = 1;
        }
        pointer_add(cpu, uop, X86_RCX, 0 - done);
        if (count != done && must_leave(cpu)) {
            leave_unfinished(cpu, uop);
            return;
        }
    }
    NEXT(cpu, uop);
}

/* The flags change when the instruction ends or is left, but not if it faults (SDM vol.
 * 2, REP). */
static ALWAYS_INLINE void repeat_compare(struct soft_cpu *cpu, const struct uop *uop,
                                         string_compare *step)
{
    bool while_equal = uop->extra == 0xf3;
    uint16_t packed = cpu->flags_packed;
    uint64_t count;

    while ((count = pointer_get(cpu, uop, X86_RCX)) != 0) {
        bool equal;

        packed = step(cpu, uop);
        equal = (packed >> 8 & STATUS_ZF) != 0;
        pointer_add(cpu, uop, X86_RCX, UINT64_MAX);
        if (equal != while_equal)
            break;
        if (count != 1 && must_leave(cpu)) {
            flags_store(cpu, packed);
            leave_unfinished(cpu, uop);
            return;
        }
    }
    flags_store(cpu, packed);
    NEXT(cpu, uop);
}

/* ---- handlers
 * ---------------------------------------------------------------- */

static void movs(struct soft_cpu *cpu, const struct uop *uop)
{
    step_movs(cpu, uop);
    NEXT(cpu, uop);
}

static void stos(struct soft_cpu *cpu, const struct uop *uop)
{
    step_stos(cpu, uop);
    NEXT(cpu, uop);
}

static void lods(struct soft_cpu *cpu, const struct uop *uop)
{
    step_lods(cpu, uop);
    NEXT(cpu, uop);
}

static void cmps(struct soft_cpu *cpu, const struct uop *uop)
{
    flags_store(cpu, step_cmps(cpu, uop));
    NEXT(cpu, uop);
}

static void scas(struct soft_cpu *cpu, const struct uop *uop)
{
    flags_store(cpu, step_scas(cpu, uop));
    NEXT(cpu, uop);
}

static void rep_movs_elements(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat(cpu, uop, step_movs, NULL);
}

static void rep_movs(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->direction || !is_flat(cpu, uop->segment, false) ||
        !is_flat(cpu, X86_ES, true)) {
        rep_movs_elements(cpu, uop);
        return;
    }
    repeat(cpu, uop, step_movs, chunk_movs);
}

static void rep_stos_elements(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat(cpu, uop, step_stos, NULL);
}

static void rep_stos(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->direction || !is_flat(cpu, X86_ES, true)) {
        rep_stos_elements(cpu, uop);
        return;
    }
    repeat(cpu, uop, step_stos, chunk_stos);
}

static void rep_lods(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat(cpu, uop, step_lods, NULL);
}

static void rep_cmps(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat_compare(cpu, uop, step_cmps);
}

static void rep_scas(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat_compare(cpu, uop, step_scas);
}

soft_handler *select_string(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[][2] = {
        [STRING_MOVS] = {movs, rep_movs}, [STRING_CMPS] = {cmps, rep_cmps},
        [STRING_STOS] = {stos, rep_stos}, [STRING_LODS] = {lods, rep_lods},
        [STRING_SCAS] = {scas, rep_scas},
    };

    (void)flags_dead;
    return handlers[instruction->form->variant][instruction->repeat != 0];
}
