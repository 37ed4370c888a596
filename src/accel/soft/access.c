/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest memory the slow way: TLB misses, page crossings, MMIO, pages with code. See
 * access_private.h.
 */
#include <string.h>

#include "accel/soft/debug_private.h"
#include "accel/soft/mmu_private.h"
#include "accel/soft/soft_private.h"
#include "base/check.h"

/* An access in at most two pieces, one a page, both translated before anything moves. */
struct piece {
    uint8_t *host; /* NULL: not RAM */
    uint64_t gpa;
    unsigned size;
};

struct span {
    size_t count;
    struct piece pieces[2];
};

static struct piece find_piece(struct soft_cpu *cpu, const struct uop *uop,
                               uint64_t linear, unsigned size, enum soft_access access,
                               enum tlb_kind kind)
{
    struct piece piece = {.size = size};

    piece.host = mmu_fill(cpu, uop, linear, access, kind, &piece.gpa);
    return piece;
}

/* In a deterministic VM the time of an access to a device, and when its effects are seen,
 * must not depend on the block around it. */
static void keep_device_time(struct soft_cpu *cpu, const struct uop *uop,
                             const struct span *span)
{
    if (cpu->clock == NULL || (span->pieces[0].host != NULL &&
                               (span->count == 1 || span->pieces[1].host != NULL)))
        return;
    if (uop != NULL && !cpu->single)
        soft_run_alone(cpu, uop);
    soft_clock_device(cpu, uop);
}

/* `size` is at most a page. Outside 64-bit code linear addresses wrap at 4 GiB. */
static struct span find_span(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                             unsigned size, enum soft_access access, enum tlb_kind kind)
{
    unsigned first = (unsigned)min_u64(size, X86_PAGE_BYTES - linear % X86_PAGE_BYTES);
    struct span span = {.count = 1};
    uint64_t second = linear + first;

    if ((cpu->efer & X86_EFER_LMA) == 0)
        second = (uint32_t)second;
    span.pieces[0] = find_piece(cpu, uop, linear, first, access, kind);
    if (first < size) {
        span.pieces[1] = find_piece(cpu, uop, second, size - first, access, kind);
        span.count = 2;
    }
    keep_device_time(cpu, uop, &span);
    debug_note_access(cpu, linear, size, access == ACCESS_WRITE);
    return span;
}

/* ---- MMIO
 * -------------------------------------------------------------------------------------------
 */

/* The local APIC's page is the processor's own; all else is the machine's. */
static void device_read(struct soft_cpu *cpu, uint64_t gpa, unsigned size, uint8_t *to)
{
    const struct accel_machine *machine = cpu->vm->machine;
    uint64_t value;

    if (cpu->irq->read(cpu->irq->context, gpa, size, &value))
        memcpy(to, &value, size);
    else
        machine->mmio(machine->context, cpu->index, gpa, size, false, to);
}

static void device_write(struct soft_cpu *cpu, uint64_t gpa, unsigned size,
                         const uint8_t *from)
{
    const struct accel_machine *machine = cpu->vm->machine;
    uint64_t value = 0;

    memcpy(&value, from, size);
    if (!cpu->irq->write(cpu->irq->context, gpa, size, value))
        machine->mmio(machine->context, cpu->index, gpa, size, true, &value);
}

/* Devices see accesses of at most 8 bytes. */
static void device_access(struct soft_cpu *cpu, const struct piece *piece, uint8_t *data,
                          bool write)
{
    for (unsigned done = 0; done < piece->size; done += 8) {
        unsigned size = (unsigned)min_u64(8, piece->size - done);

        if (write)
            device_write(cpu, piece->gpa + done, size, data + done);
        else
            device_read(cpu, piece->gpa + done, size, data + done);
    }
}

/* ---- pieces
 * --------------------------------------------------------------------------------------------
 */

/* Copies of 1, 2, 4 and 8 bytes are one access each, as on hardware: another vCPU never
 * sees half. */
static void copy_whole(void *to, const void *from, unsigned size)
{
    switch (size) {
    case 1:
        *(guest_u8 *)to = *(const guest_u8 *)from;
        return;
    case 2:
        *(guest_u16 *)to = *(const guest_u16 *)from;
        return;
    case 4:
        *(guest_u32 *)to = *(const guest_u32 *)from;
        return;
    case 8:
        *(guest_u64 *)to = *(const guest_u64 *)from;
        return;
    default:
        memcpy(to, from, size);
        return;
    }
}

static void span_read(struct soft_cpu *cpu, const struct span *span, uint8_t *to)
{
    for (size_t i = 0; i < span->count; i++) {
        const struct piece *piece = &span->pieces[i];

        if (piece->host != NULL)
            copy_whole(to, piece->host, piece->size);
        else
            device_access(cpu, piece, to, false);
        to += piece->size;
    }
}

static void span_write(struct soft_cpu *cpu, const struct span *span, const uint8_t *from)
{
    uint8_t copy[X86_PAGE_BYTES];

    for (size_t i = 0; i < span->count; i++) {
        const struct piece *piece = &span->pieces[i];

        if (piece->host == NULL) {
            memcpy(copy, from, piece->size);
            device_access(cpu, piece, copy, true);
        } else {
            copy_whole(piece->host, from, piece->size);
            if (!cpu->is_shadow)
                code_pages_written(cpu, piece->gpa, piece->size);
        }
        from += piece->size;
    }
}

/* ---- what instructions call
 * ------------------------------------------------------------------------------ */

uint64_t soft_load_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                        unsigned size)
{
    struct span span = find_span(cpu, uop, linear, size, ACCESS_READ, mmu_kind(cpu));
    uint64_t value = 0;

    span_read(cpu, &span, (uint8_t *)&value);
    return value;
}

void soft_store_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                     unsigned size, uint64_t value)
{
    struct span span = find_span(cpu, uop, linear, size, ACCESS_WRITE, mmu_kind(cpu));

    span_write(cpu, &span, (const uint8_t *)&value);
}

uint64_t soft_load_for_store_slow(struct soft_cpu *cpu, const struct uop *uop,
                                  uint64_t linear, unsigned size)
{
    struct span span = find_span(cpu, uop, linear, size, ACCESS_WRITE, mmu_kind(cpu));
    uint64_t value = 0;

    span_read(cpu, &span, (uint8_t *)&value);
    return value;
}

void *soft_lockable_slow(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                         unsigned size)
{
    struct span span = find_span(cpu, uop, linear, size, ACCESS_WRITE, mmu_kind(cpu));
    const struct piece *piece = &span.pieces[0];

    if (span.count > 1 || piece->host == NULL)
        return NULL;
    /* What the TLB lets through is looked for by who makes a page code. All else is
     * looked at when it is done, whatever the page is now. */
    if (!cpu->is_shadow && soft_writable(cpu, linear, size) == NULL)
        cpu->locked = (struct code_event){.gpa = piece->gpa, .size = size};
    return piece->host;
}

void soft_lock_done_slow(struct soft_cpu *cpu)
{
    const struct code_event write = cpu->locked;

    cpu->locked.size = 0;
    code_pages_written(cpu, write.gpa, write.size);
}

void soft_load_bytes(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                     void *to, unsigned size)
{
    struct span span;

    CHECK(size <= X86_PAGE_BYTES);
    span = find_span(cpu, uop, linear, size, ACCESS_READ, mmu_kind(cpu));
    span_read(cpu, &span, to);
}

void soft_store_bytes(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                      const void *from, unsigned size)
{
    struct span span;

    CHECK(size <= X86_PAGE_BYTES);
    span = find_span(cpu, uop, linear, size, ACCESS_WRITE, mmu_kind(cpu));
    span_write(cpu, &span, from);
}

void soft_check_store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                      unsigned size)
{
    (void)find_span(cpu, uop, linear, size, ACCESS_WRITE, mmu_kind(cpu));
}

uint64_t soft_system_load(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                          unsigned size)
{
    struct span span = find_span(cpu, uop, linear, size, ACCESS_READ, TLB_SUPERVISOR);
    uint64_t value = 0;

    span_read(cpu, &span, (uint8_t *)&value);
    return value;
}

void soft_system_store(struct soft_cpu *cpu, const struct uop *uop, uint64_t linear,
                       unsigned size, uint64_t value)
{
    struct span span = find_span(cpu, uop, linear, size, ACCESS_WRITE, TLB_SUPERVISOR);

    span_write(cpu, &span, (const uint8_t *)&value);
}
