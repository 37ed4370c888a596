/* SPDX-License-Identifier: Apache-2.0 */
/* Stack frames of far transfers and events; see frame_private.h. */
#include "accel/soft/frame_private.h"

#include "accel/soft/mmu_private.h"

static uint64_t mask_of(const struct x86_segment *segment)
{
    if (segment == NULL)
        return UINT64_MAX;
    return segment->db ? UINT32_MAX : UINT16_MAX;
}

struct frame frame_current(const struct soft_cpu *cpu, unsigned size)
{
    const struct x86_segment *segment =
        soft_in_64bit_code(cpu) ? NULL : &cpu->segments[X86_SS];

    return (struct frame){
        .segment = segment,
        .pointer = cpu->r[X86_RSP],
        .mask = mask_of(segment),
        .size = (uint8_t)size,
        .user = cpu->cpl == 3,
    };
}

struct frame frame_on(const struct x86_segment *segment, uint16_t selector,
                      uint64_t pointer, unsigned size, unsigned cpl)
{
    return (struct frame){
        .segment = segment,
        .pointer = pointer,
        .mask = mask_of(segment),
        .selector = selector,
        .size = (uint8_t)size,
        .user = cpl == 3,
    };
}

/* SDM 5.3: the slot lies within the limit, or beyond it in an expand-down segment. */
static bool holds(const struct frame *frame, uint64_t offset)
{
    const struct x86_segment *segment = frame->segment;
    uint64_t last = offset + frame->size - 1;

    if (segment == NULL)
        return linear_is_canonical(offset) && linear_is_canonical(last);
    if (!segment->present)
        return false;
    if ((segment->type & (TYPE_CODE | TYPE_CONFORMING)) == TYPE_CONFORMING)
        return offset > segment->limit && last <= (segment->db ? UINT32_MAX : UINT16_MAX);
    return last <= segment->limit;
}

static uint64_t slot_linear(struct soft_cpu *cpu, const struct uop *uop,
                            const struct frame *frame, uint64_t pointer)
{
    uint64_t offset = pointer & frame->mask;

    if (!holds(frame, offset))
        segment_raise(cpu, uop, X86_VECTOR_SS, frame->selector);
    return frame->segment == NULL ? offset : (uint32_t)(frame->segment->base + offset);
}

/* Where the TLB of the frame's rights says that a slot lies, or NULL: take the slow way.
 */
static void *slot_host(const struct soft_cpu *cpu, const struct frame *frame,
                       uint64_t linear, unsigned size)
{
    const struct tlb_entry *entries =
        cpu->mmu.entries[frame->user ? TLB_USER : TLB_SUPERVISOR];
    const struct tlb_entry *entry = &entries[(linear >> 12) & (TLB_ENTRIES - 1)];

    return linear - entry->write_tag <= X86_PAGE_BYTES - size
               ? (void *)(uintptr_t)(entry->page + (linear - entry->write_tag))
               : NULL;
}

static void check_page(struct soft_cpu *cpu, const struct uop *uop,
                       const struct frame *frame, uint64_t linear)
{
    if (slot_host(cpu, frame, linear, 1) == NULL)
        (void)soft_translate(cpu, uop, linear, ACCESS_WRITE, frame->user);
}

void frame_reserve(struct soft_cpu *cpu, const struct uop *uop, const struct frame *frame,
                   unsigned slots)
{
    uint64_t checked_page = 1; /* no page starts there */

    for (unsigned i = 1; i <= slots; i++) {
        uint64_t first =
            slot_linear(cpu, uop, frame, frame->pointer - (uint64_t)i * frame->size);
        uint64_t last = first + frame->size - 1;

        if (align_down(last, X86_PAGE_BYTES) != checked_page)
            check_page(cpu, uop, frame, last);
        checked_page = align_down(last, X86_PAGE_BYTES);
        if (align_down(first, X86_PAGE_BYTES) == checked_page)
            continue;
        check_page(cpu, uop, frame, first);
        checked_page = align_down(first, X86_PAGE_BYTES);
    }
}

void frame_push(struct soft_cpu *cpu, const struct uop *uop, struct frame *frame,
                uint64_t value)
{
    uint64_t linear;
    void *host;

    frame->pointer -= frame->size;
    linear = slot_linear(cpu, uop, frame, frame->pointer);
    host = slot_host(cpu, frame, linear, frame->size);
    if (host != NULL)
        memcpy(host, &value, frame->size);
    else if (frame->user == (cpu->cpl == 3))
        soft_store_slow(cpu, uop, linear, frame->size, value);
    else
        soft_system_store(cpu, uop, linear, frame->size, value);
}

static uint64_t load(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                     unsigned size)
{
    switch (size) {
    case 2:
        return soft_load16(cpu, uop, linear);
    case 4:
        return soft_load32(cpu, uop, linear);
    default:
        return soft_load64(cpu, uop, linear);
    }
}

uint64_t frame_pop(struct soft_cpu *cpu, const struct uop *uop, struct frame *frame)
{
    uint64_t linear = slot_linear(cpu, uop, frame, frame->pointer);

    frame->pointer += frame->size;
    return load(cpu, uop, linear, frame->size);
}

uint16_t frame_pop_selector(struct soft_cpu *cpu, const struct uop *uop,
                            struct frame *frame)
{
    return (uint16_t)frame_pop(cpu, uop, frame);
}

void frame_set_pointer(struct soft_cpu *cpu, uint64_t pointer, uint64_t mask)
{
    if (mask == UINT16_MAX)
        cpu->r[X86_RSP] =
            (uint32_t)((cpu->r[X86_RSP] & ~UINT64_C(0xffff)) | (pointer & 0xffff));
    else
        cpu->r[X86_RSP] = pointer & mask;
}

void frame_commit(struct soft_cpu *cpu, const struct frame *frame)
{
    frame_set_pointer(cpu, frame->pointer, frame->mask);
}
