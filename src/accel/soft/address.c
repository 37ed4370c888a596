/* SPDX-License-Identifier: Apache-2.0 */
/* Address uops and segment checks; see address_private.h. */
#include "accel/soft/address_private.h"

#include "accel/soft/access_private.h"

/* ---- segments
 * ------------------------------------------------------------------------------- */

static _Noreturn void raise_segment(struct soft_cpu *cpu, const struct uop *uop,
                                    unsigned segment)
{
    soft_raise_code(cpu, uop, segment == X86_SS ? X86_VECTOR_SS : X86_VECTOR_GP, 0);
}

/* SDM 5.3 and 5.4: null selectors, types and limits. Descriptor types: bit 3 code, bit 1
 * writable (data) or readable (code), bit 2 expand-down (data). */
static bool segment_allows(const struct x86_segment *segment, uint64_t offset,
                           unsigned size, bool write)
{
    bool code = (segment->type & 8) != 0;
    uint64_t last = offset + size - 1;

    if (!segment->present || !segment->code_or_data)
        return false;
    if (write && (code || (segment->type & 2) == 0))
        return false;
    if (!write && code && (segment->type & 2) == 0)
        return false;
    if (code || (segment->type & 4) == 0)
        return last <= segment->limit;
    return offset > segment->limit && last <= (segment->db ? UINT32_MAX : UINT16_MAX);
}

/* Where an access of `size` bytes may start at most in a flat segment: none wraps. */
static uint64_t last_offset(unsigned size)
{
    return UINT32_MAX - size + UINT64_C(1);
}

uint64_t address_linear(struct soft_cpu *cpu, const struct uop *uop, unsigned segment,
                        uint64_t offset, unsigned size, bool write)
{
    const struct x86_segment *in = &cpu->segments[segment];

    if ((cpu->mode & MODE_CODE64) != 0)
        return offset + (segment >= X86_FS ? in->base : 0);
    if (mode_is_flat(cpu->mode, segment) && offset <= last_offset(size))
        return offset;
    /* Real and virtual-8086 mode segments have the right types in their hidden parts. */
    if (!segment_allows(in, offset, size, write))
        raise_segment(cpu, uop, segment);
    return (uint32_t)(in->base + offset);
}

uint64_t address_room(const struct soft_cpu *cpu, const struct uop *uop, unsigned segment,
                      uint64_t offset, bool write, uint64_t *linear)
{
    const struct x86_segment *in = &cpu->segments[segment];
    bool code64 = (cpu->mode & MODE_CODE64) != 0;
    bool expands_down = (in->type & 0xc) == 4;
    uint64_t room;

    *linear = offset + (code64 && segment < X86_FS ? 0 : in->base);
    if (!code64)
        *linear = (uint32_t)*linear;
    room = X86_PAGE_BYTES - *linear % X86_PAGE_BYTES;
    if (uop->address_size == 2)
        room = min_u64(room, UINT64_C(0x10000) - offset);
    if (code64)
        return room;
    if (expands_down || !segment_allows(in, offset, 1, write))
        return 0;
    return min_u64(room, in->limit - offset + 1);
}

/* ---- handlers
 * ---------------------------------------------------------------------------------- */

#define SET_ADDRESS(cpu, value) ((cpu)->r[SOFT_ADDRESS] = (value))

static uint64_t offset_of(const struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t offset = soft_address(cpu, uop);

    if (uop->address_size == 2)
        return (uint16_t)offset;
    return uop->address_size == 4 ? (uint32_t)offset : offset;
}

/* RIP-relative and absolute addresses: known when the block is made. */
static void address_constant(struct soft_cpu *cpu, const struct uop *uop)
{
    SET_ADDRESS(cpu, uop->immediate);
    NEXT(cpu, uop);
}

static void address_constant_segment(struct soft_cpu *cpu, const struct uop *uop)
{
    SET_ADDRESS(cpu, cpu->segments[uop->segment].base + uop->immediate);
    NEXT(cpu, uop);
}

static void address_segment64(struct soft_cpu *cpu, const struct uop *uop)
{
    SET_ADDRESS(cpu, cpu->segments[uop->segment].base + offset_of(cpu, uop));
    NEXT(cpu, uop);
}

/* No segment, but a truncated offset: 32-bit addressing in 64-bit code, and LEA anywhere.
 */
static void address_offset(struct soft_cpu *cpu, const struct uop *uop)
{
    SET_ADDRESS(cpu, offset_of(cpu, uop));
    NEXT(cpu, uop);
}

static void address_legacy(struct soft_cpu *cpu, const struct uop *uop)
{
    SET_ADDRESS(cpu, address_linear(cpu, uop, uop->segment, offset_of(cpu, uop),
                                    uop->size, uop->extra != 0));
    NEXT(cpu, uop);
}

/* MODE_FLAT and 32-bit addressing: `immediate` is the last offset that is allowed. */
static void address_flat(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t offset = (uint32_t)soft_address(cpu, uop);

    if (!LIKELY(offset <= uop->immediate)) {
        address_legacy(cpu, uop);
        return;
    }
    SET_ADDRESS(cpu, offset);
    NEXT(cpu, uop);
}

/* ---- choice
 * -----------------------------------------------------------------------------------------
 */

static bool is_constant(const struct instruction *instruction)
{
    return instruction->rip_relative ||
           (instruction->base == SOFT_ZERO && instruction->index == SOFT_ZERO &&
            instruction->displacement != (int32_t)instruction->displacement);
}

bool address_is_flat(const struct instruction *instruction)
{
    return mode_is_flat(instruction->mode, instruction->segment) &&
           instruction->address_size == 4;
}

soft_handler *address_select(const struct instruction *instruction)
{
    bool code64 = (instruction->mode & MODE_CODE64) != 0;
    bool only_offset = (instruction->form->attributes & FORM_OFFSET_ONLY) != 0;
    bool based = instruction->segment >= X86_FS && !only_offset;

    if (!code64 && only_offset)
        return address_offset;
    if (!code64 && !address_is_flat(instruction))
        return address_legacy;
    if (!code64)
        return (instruction->form->attributes & FORM_FLAT) != 0 ? NULL : address_flat;
    if (is_constant(instruction) && instruction->address_size == 8)
        return based ? address_constant_segment : address_constant;
    if (based)
        return address_segment64;
    return instruction->address_size == 8 ? NULL : address_offset;
}

void address_fill(struct uop *uop, const struct instruction *instruction)
{
    bool code64 = (instruction->mode & MODE_CODE64) != 0;

    if (code64 && is_constant(instruction) && instruction->address_size == 8)
        uop->immediate = (uint64_t)instruction->displacement;
    if (address_is_flat(instruction))
        uop->immediate = last_offset(instruction->memory_size);
    uop->size = instruction->memory_size;
    uop->extra = form_writes_memory(instruction->form);
}
