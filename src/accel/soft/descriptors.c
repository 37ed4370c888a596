/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors and the loading of segment registers; see segments_private.h. */
#include "accel/soft/segments_private.h"

_Noreturn void segment_raise(struct soft_cpu *cpu, const struct uop *uop, uint8_t vector,
                             uint16_t selector)
{
    uint32_t external = cpu->delivering && cpu->delivered_external;

    soft_raise_code(cpu, uop, vector, (selector & ~SELECTOR_RPL) | external);
}

/* ---- tables
 * ------------------------------------------------------------------------------- */

/* Outside long mode linear addresses have 32 bits. */
static uint64_t wrap(const struct soft_cpu *cpu, uint64_t linear)
{
    return soft_in_long_mode(cpu) ? linear : (uint32_t)linear;
}

/* Types with 16 bytes in long mode: LDT, TSS, call gate. */
static bool has_high_half(const struct descriptor *descriptor)
{
    switch (descriptor_type(descriptor)) {
    case TYPE_LDT:
    case TYPE_TSS32:
    case TYPE_TSS32_BUSY:
    case TYPE_CALL_GATE32:
        return !descriptor_is_segment(descriptor);
    default:
        return false;
    }
}

bool descriptor_find(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                     struct descriptor *found)
{
    const struct x86_segment *ldt = &cpu->segments[X86_LDTR];
    bool local = (selector & SELECTOR_LOCAL) != 0;
    uint64_t base = local ? ldt->base : cpu->gdt.base;
    uint32_t limit = local ? ldt->limit : cpu->gdt.limit;

    if ((local && !ldt->present) || (selector | 7u) > limit)
        return false;
    found->linear = wrap(cpu, base + (selector & ~7u));
    found->low = soft_system_load(cpu, uop, found->linear, 8);
    found->high = 0;
    if (!soft_in_long_mode(cpu) || !has_high_half(found))
        return true;
    if ((selector | 7u) + 8 > limit)
        return false;
    found->high = soft_system_load(cpu, uop, found->linear + 8, 8);
    return true;
}

struct descriptor descriptor_get(struct soft_cpu *cpu, const struct uop *uop,
                                 uint16_t selector, uint8_t vector)
{
    struct descriptor found;

    if (!descriptor_find(cpu, uop, selector, &found))
        segment_raise(cpu, uop, vector, selector);
    return found;
}

static void store_type(struct soft_cpu *cpu, const struct uop *uop,
                       const struct descriptor *descriptor)
{
    soft_system_store(cpu, uop, wrap(cpu, descriptor->linear + 5), 1,
                      descriptor->low >> 40 & 0xff);
}

void descriptor_mark(struct soft_cpu *cpu, const struct uop *uop,
                     struct descriptor *descriptor, unsigned type_bits)
{
    if ((descriptor_type(descriptor) & type_bits) == type_bits)
        return;
    descriptor->low |= (uint64_t)type_bits << 40;
    store_type(cpu, uop, descriptor);
}

void descriptor_clear_busy(struct soft_cpu *cpu, const struct uop *uop,
                           const struct descriptor *descriptor)
{
    struct descriptor available = *descriptor;

    available.low &= ~((uint64_t)TYPE_BUSY << 40);
    store_type(cpu, uop, &available);
}

/* ---- segment registers
 * -------------------------------------------------------------------- */

struct x86_segment segment_of(uint16_t selector, const struct descriptor *descriptor)
{
    return (struct x86_segment){
        .base = descriptor_base(descriptor),
        .limit = descriptor_limit(descriptor),
        .selector = selector,
        .type = (uint8_t)descriptor_type(descriptor),
        .dpl = (uint8_t)descriptor_dpl(descriptor),
        .present = descriptor_is_present(descriptor),
        .code_or_data = descriptor_is_segment(descriptor),
        .db = descriptor_is_big(descriptor),
        .long_mode = descriptor_is_long(descriptor),
        .granularity = (descriptor->low >> 55 & 1) != 0,
    };
}

/* The base becomes 0 as on Intel's processors, and on AMD's that say so (CPUID
 * 0x80000021 EAX[6], which the model sets). */
struct x86_segment segment_null(uint16_t selector, uint8_t dpl)
{
    return (struct x86_segment){.selector = selector, .dpl = dpl};
}

void segment_load_real(struct soft_cpu *cpu, enum x86_segment_register which,
                       uint16_t selector)
{
    struct x86_segment *segment = &cpu->segments[which];

    if (!segment->present)
        *segment = (struct x86_segment){.limit = 0xffff};
    segment->selector = selector;
    segment->base = (uint32_t)selector << 4;
    segment->type = X86_TYPE_DATA_READ_WRITE_ACCESSED;
    segment->dpl = 0;
    segment->present = true;
    segment->code_or_data = true;
}

void segment_load_virtual86(struct soft_cpu *cpu, enum x86_segment_register which,
                            uint16_t selector)
{
    cpu->segments[which] = (struct x86_segment){
        .selector = selector,
        .base = (uint32_t)selector << 4,
        .limit = 0xffff,
        .type = X86_TYPE_DATA_READ_WRITE_ACCESSED,
        .dpl = 3,
        .present = true,
        .code_or_data = true,
    };
}

/* SDM vol. 2, MOV: a null SS is legal only in 64-bit mode below CPL 3. */
static void load_null(struct soft_cpu *cpu, const struct uop *uop,
                      enum x86_segment_register which, uint16_t selector)
{
    if (which == X86_SS && (!soft_in_64bit_code(cpu) || cpu->cpl == 3 ||
                            (selector & SELECTOR_RPL) != cpu->cpl))
        segment_raise(cpu, uop, X86_VECTOR_GP, 0);
    cpu->segments[which] = segment_null(selector, which == X86_SS ? cpu->cpl : 0);
}

static bool may_load_data(const struct descriptor *descriptor, unsigned rpl, unsigned cpl)
{
    unsigned type = descriptor_type(descriptor);
    unsigned dpl = descriptor_dpl(descriptor);

    if (!descriptor_is_segment(descriptor))
        return false;
    if ((type & TYPE_CODE) != 0 && (type & TYPE_WRITABLE) == 0)
        return false; /* not readable */
    if ((type & TYPE_CODE) != 0 && (type & TYPE_CONFORMING) != 0)
        return true;
    return rpl <= dpl && cpl <= dpl;
}

static void load_data(struct soft_cpu *cpu, const struct uop *uop,
                      enum x86_segment_register which, uint16_t selector)
{
    struct descriptor descriptor = descriptor_get(cpu, uop, selector, X86_VECTOR_GP);

    if (!may_load_data(&descriptor, selector & SELECTOR_RPL, cpu->cpl))
        segment_raise(cpu, uop, X86_VECTOR_GP, selector);
    if (!descriptor_is_present(&descriptor))
        segment_raise(cpu, uop, X86_VECTOR_NP, selector);
    descriptor_mark(cpu, uop, &descriptor, TYPE_ACCESSED);
    cpu->segments[which] = segment_of(selector, &descriptor);
}

struct x86_segment segment_stack(struct soft_cpu *cpu, const struct uop *uop,
                                 uint16_t selector, unsigned cpl, uint8_t vector)
{
    struct descriptor descriptor;
    unsigned type;

    if (selector_is_null(selector))
        segment_raise(cpu, uop, vector, 0);
    descriptor = descriptor_get(cpu, uop, selector, vector);
    type = descriptor_type(&descriptor);
    if ((selector & SELECTOR_RPL) != cpl || descriptor_dpl(&descriptor) != cpl ||
        !descriptor_is_segment(&descriptor) || (type & TYPE_CODE) != 0 ||
        (type & TYPE_WRITABLE) == 0)
        segment_raise(cpu, uop, vector, selector);
    if (!descriptor_is_present(&descriptor))
        segment_raise(cpu, uop, X86_VECTOR_SS, selector);
    descriptor_mark(cpu, uop, &descriptor, TYPE_ACCESSED);
    return segment_of(selector, &descriptor);
}

void segment_load(struct soft_cpu *cpu, const struct uop *uop,
                  enum x86_segment_register which, uint16_t selector)
{
    if ((cpu->mode & MODE_VIRTUAL86) != 0)
        segment_load_virtual86(cpu, which, selector);
    else if ((cpu->mode & MODE_PROTECTED) == 0)
        segment_load_real(cpu, which, selector);
    else if (selector_is_null(selector))
        load_null(cpu, uop, which, selector);
    else if (which == X86_SS)
        cpu->segments[X86_SS] =
            segment_stack(cpu, uop, selector, cpu->cpl, X86_VECTOR_GP);
    else
        load_data(cpu, uop, which, selector);
}

/* ---- flat segments
 * ------------------------------------------------------------------------ */

/* Base 0 and 4 GiB (SDM 3.2.1). */
static bool covers_all(const struct x86_segment *segment)
{
    return segment->present && segment->code_or_data && segment->base == 0 &&
           segment->limit == UINT32_MAX;
}

/* Writable, and its limit is the upper one. */
static bool is_flat_data(const struct x86_segment *segment)
{
    return covers_all(segment) && (segment->type & (TYPE_CODE | TYPE_CONFORMING |
                                                    TYPE_WRITABLE)) == TYPE_WRITABLE;
}

bool segment_all_flat(const struct soft_cpu *cpu)
{
    const struct x86_segment *segments = cpu->segments;

    return covers_all(&segments[X86_CS]) && is_flat_data(&segments[X86_SS]) &&
           segments[X86_SS].db && is_flat_data(&segments[X86_DS]) &&
           is_flat_data(&segments[X86_ES]);
}

/* ---- code segments
 * ------------------------------------------------------------------------ */

void segment_check_target(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                          struct descriptor *code, uint64_t offset)
{
    bool code64 = soft_in_long_mode(cpu) && descriptor_is_long(code);

    if (code64 && descriptor_is_big(code))
        segment_raise(cpu, uop, X86_VECTOR_GP, selector);
    if (!descriptor_is_present(code))
        segment_raise(cpu, uop, X86_VECTOR_NP, selector);
    if (code64 ? !linear_is_canonical(offset) : offset > descriptor_limit(code))
        segment_raise(cpu, uop, X86_VECTOR_GP, 0);
    descriptor_mark(cpu, uop, code, TYPE_ACCESSED);
}

void segment_enter_code(struct soft_cpu *cpu, uint16_t selector,
                        const struct descriptor *code, unsigned cpl, uint64_t offset)
{
    cpu->segments[X86_CS] =
        segment_of((uint16_t)((selector & ~SELECTOR_RPL) | cpl), code);
    cpu->cpl = (uint8_t)cpl;
    cpu->rip = offset;
    soft_cpu_update_mode(cpu);
}

void segment_drop_inner(struct soft_cpu *cpu)
{
    static const enum x86_segment_register data[] = {X86_ES, X86_DS, X86_FS, X86_GS};
    bool dropped = false;

    for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
        struct x86_segment *segment = &cpu->segments[data[i]];
        bool conforming = (segment->type & (TYPE_CODE | TYPE_CONFORMING)) ==
                          (TYPE_CODE | TYPE_CONFORMING);

        if (!segment->present || segment->dpl >= cpu->cpl || conforming)
            continue;
        segment->selector = 0;
        segment->present = false; /* the base stays: kernels rely on that of GS */
        dropped = true;
    }
    if (dropped)
        soft_cpu_update_mode(cpu);
}

/* ---- LDTR and TR
 * ---------------------------------------------------------------------------- */

/* Bits 12 to 8 of the last half of a 16-byte descriptor are the type of a null one. */
static bool high_half_is_valid(const struct descriptor *descriptor)
{
    return (descriptor->high >> 40 & 0x1f) == 0 &&
           linear_is_canonical(descriptor_base(descriptor));
}

void segment_load_ldt(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                      uint8_t vector)
{
    struct descriptor descriptor;

    if (selector_is_null(selector)) {
        cpu->segments[X86_LDTR] = segment_null(selector, 0);
        return;
    }
    if ((selector & SELECTOR_LOCAL) != 0)
        segment_raise(cpu, uop, vector, selector);
    descriptor = descriptor_get(cpu, uop, selector, vector);
    if (descriptor_is_segment(&descriptor) || descriptor_type(&descriptor) != TYPE_LDT ||
        !high_half_is_valid(&descriptor))
        segment_raise(cpu, uop, vector, selector);
    if (!descriptor_is_present(&descriptor))
        segment_raise(cpu, uop, vector == X86_VECTOR_TS ? X86_VECTOR_TS : X86_VECTOR_NP,
                      selector);
    cpu->segments[X86_LDTR] = segment_of(selector, &descriptor);
}

static bool is_available_tss(const struct soft_cpu *cpu,
                             const struct descriptor *descriptor)
{
    unsigned type = descriptor_type(descriptor);

    return !descriptor_is_segment(descriptor) &&
           (type == TYPE_TSS32 || (type == TYPE_TSS16 && !soft_in_long_mode(cpu)));
}

void segment_load_task(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector)
{
    struct descriptor descriptor;

    if (selector_is_null(selector))
        segment_raise(cpu, uop, X86_VECTOR_GP, 0);
    if ((selector & SELECTOR_LOCAL) != 0)
        segment_raise(cpu, uop, X86_VECTOR_GP, selector);
    descriptor = descriptor_get(cpu, uop, selector, X86_VECTOR_GP);
    if (!is_available_tss(cpu, &descriptor) || !high_half_is_valid(&descriptor))
        segment_raise(cpu, uop, X86_VECTOR_GP, selector);
    if (!descriptor_is_present(&descriptor))
        segment_raise(cpu, uop, X86_VECTOR_NP, selector);
    descriptor_mark(cpu, uop, &descriptor, TYPE_BUSY);
    cpu->segments[X86_TR] = segment_of(selector, &descriptor);
}
