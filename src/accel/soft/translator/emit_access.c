/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory operands: addresses, and the checks in front of accesses.
 *
 * A check leaves the host's address of the page in SCRATCH and the offset in ADDRESS.
 * While both stay, and the register that the address was made of, another access by the
 * same register needs no TLB: its offset follows from the first one's, and is in the same
 * page unless it reaches beyond 4096. C leaves an address of code in ADDRESS, which is
 * far beyond, so after C has done anything the next access is checked in full.
 */
#include "accel/soft/access_private.h"
#include "accel/soft/translator/tlb_check_private.h"

/* ---- addresses ---- */

/* The register as part of an address, `scratch` if it is homeless. */
static uint8_t address_part(struct emitter *e, unsigned number, unsigned scratch)
{
    if (number == SOFT_ZERO)
        return HOST_NO_REGISTER;
    return (uint8_t)emit_register(e, number, scratch);
}

/* `to` = the place, cut to 32 bits if not `wide`. */
static void put_place(struct emitter *e, unsigned to, const struct access_place *place,
                      bool wide)
{
    struct host_memory address = {.scale = place->scale,
                                  .displacement = (int32_t)place->displacement};

    if (place->base == SOFT_ZERO && place->index == SOFT_ZERO) {
        encode_constant(&e->hot, to,
                        wide ? (uint64_t)place->displacement
                             : (uint32_t)place->displacement);
        return;
    }
    address.base = address_part(e, place->base, ADDRESS);
    address.index = address_part(e, place->index, SCRATCH);
    if (wide && address.base != HOST_NO_REGISTER && address.index == HOST_NO_REGISTER &&
        address.displacement == 0)
        encode_move(&e->hot, to, address.base);
    else
        encode_lea(&e->hot, to, address, wide);
}

static struct access_place place_of(const struct instruction *instruction)
{
    return (struct access_place){.base = instruction->base,
                                 .index = instruction->index,
                                 .scale = instruction->scale,
                                 .displacement = instruction->displacement};
}

void emit_offset(struct emitter *e, unsigned to, bool wide)
{
    const struct access_place place = place_of(e->instruction);

    put_place(e, to, &place, wide);
}

void emit_address(struct emitter *e)
{
    const struct instruction *instruction = e->instruction;

    emit_offset(e, ADDRESS, instruction->address_size == 8);
    if (instruction->segment >= X86_FS)
        encode_alu_memory(&e->hot, 0x03, ADDRESS,
                          emit_state(offsetof(struct soft_cpu, segments) +
                                     instruction->segment * sizeof(struct x86_segment) +
                                     offsetof(struct x86_segment, base)));
}

/* ---- checks ---- */

/* The TLB of a block's mode. */
static enum tlb_kind kind_of(const struct emitter *e)
{
    if ((e->block->mode & MODE_USER) != 0)
        return TLB_USER;
    return (e->block->mode & MODE_USER_DATA) != 0 ? TLB_SUPERVISOR_AC : TLB_SUPERVISOR;
}

static uint32_t make_site(struct emitter *e, const struct access_check *check)
{
    uint32_t site = emit_site(e);

    emit_site_at(e, site)->size = (uint8_t)check->size;
    emit_site_at(e, site)->write = check->write;
    emit_site_at(e, site)->aligned = check->aligned;
    emit_site_at(e, site)->segment = check->segment;
    return site;
}

void emit_check(struct emitter *e, struct access_check check)
{
    uint32_t cold = emit_cold_call(e, e->translator->slow, make_site(e, &check));

    tlb_check_emit(&e->hot, kind_of(e), &check, cold);
    e->group.valid = false;
    e->ahead = 0;
}

/* In the cold area, where hot code goes whose comparison fails: the check in full. Back
 * there ADDRESS is again e->ahead before the place. */
static void put_out_of_line(struct emitter *e, const struct access_place *place,
                            const struct access_check *check, uint32_t copies,
                            uint32_t thunk)
{
    static const uint8_t site_follows[] = {0xa9}; /* test eax, */
    const uint32_t site = make_site(e, check);
    const struct code_writer hot = e->hot;

    e->hot = e->cold;
    emit_site_at(e, site)->retry = writer_offset(&e->hot);
    put_place(e, ADDRESS, place, true);
    if (copies != 0)
        encode_call(&e->hot, copies);
    encode_call(&e->hot, thunk);
    encode_bytes(&e->hot, site_follows, sizeof(site_follows));
    encode_u32(&e->hot, site);
    if (e->ahead != 0)
        encode_lea(&e->hot, ADDRESS, host_at(ADDRESS, -(int32_t)e->ahead), true);
    encode_jump(&e->hot, writer_offset(&hot));
    e->cold = e->hot;
    e->hot = hot;
}

/* ---- groups ---- */

/* The bytes of a short displacement. */
#define AHEAD_LIMIT INT8_MAX

static bool is_same_base(const struct access_place *a, const struct access_place *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale;
}

/* In the group of the access before, or could be, were it in its page. */
static bool follows(const struct emitter *e, const struct access_place *place,
                    const struct access_check *check)
{
    const struct access_group *group = &e->group;
    const struct access_place *first = &group->place;

    return group->valid && (group->write || !check->write) &&
           is_same_base(place, first) &&
           place->displacement - first->displacement > -(int64_t)X86_PAGE_BYTES &&
           place->displacement - first->displacement < (int64_t)X86_PAGE_BYTES &&
           tlb_check_shape(check) != CHECK_SHAPES;
}

/* The check in full where the code hoped for less. `write`: the page may be written to; a
 * read, then, leaves it so for what follows, or ends the group. */
static uint32_t full_check(const struct emitter *e, const struct access_check *check,
                           bool write)
{
    const struct translator *translator = e->translator;
    const enum tlb_kind kind = kind_of(e);
    const size_t shape = tlb_check_shape(check);

    if (check->top)
        return translator->stack_checks[kind][check->write];
    if (write && !check->write)
        return translator->read_only_checks[kind][shape];
    return translator->checks[kind][check->write][shape];
}

/* The place is so far from ADDRESS, in whichever page. */
static bool is_aligned_place(const struct access_group *group, int32_t distance)
{
    return group->aligned && distance % CHECK_MAX_BYTES == 0;
}

/* In the page of the access before; else, out of line, as if there had been none. A place
 * that is a little ahead of ADDRESS needs no other one. */
static void follow(struct emitter *e, const struct access_place *place,
                   const struct access_check *check)
{
    const int32_t distance = (int32_t)(place->displacement - e->group.place.displacement);
    const uint32_t cold = writer_offset(&e->cold);
    const bool known_aligned = is_aligned_place(&e->group, distance);
    struct access_check here = *check;

    here.aligned = check->aligned && !known_aligned;
    e->ahead = 0;
    if (distance > 0 && distance <= AHEAD_LIMIT && !here.aligned) {
        e->ahead = (uint8_t)distance;
    } else {
        if (distance != 0)
            encode_lea(&e->hot, ADDRESS, host_at(ADDRESS, distance), true);
        e->group.aligned = check->aligned || known_aligned;
    }
    tlb_check_comparison_emit(&e->hot, &here, e->ahead, cold);
    put_out_of_line(e, place, check, 0, full_check(e, check, e->group.write));
}

static void access_stack(struct emitter *e, const struct access_place *place,
                         const struct access_check *check)
{
    const uint32_t cold = writer_offset(&e->cold);

    e->ahead = 0;
    put_place(e, ADDRESS, place, true);
    tlb_check_copy_emit(&e->hot, tlb_stack_page(kind_of(e)), false, cold);
    put_out_of_line(e, place, check, 0, full_check(e, check, true));
}

/* An instruction behind this one seems to write there. */
static bool is_written_later(const struct emitter *e, const struct access_place *place)
{
    for (size_t i = e->ordinal + 1; i < e->draft->count; i++) {
        const struct instruction *instruction = &e->draft->instructions[i];
        const struct access_place other = place_of(instruction);

        if (instruction->memory && form_writes_memory(instruction->form) &&
            is_same_base(place, &other))
            return true;
    }
    return false;
}

/* A read, as if it were a write, for the sake of a write that follows. A page that may
 * only be read is a case for the cold area. */
static void access_both(struct emitter *e, const struct access_place *place,
                        struct access_check check)
{
    const enum tlb_kind kind = kind_of(e);
    const uint32_t cold = writer_offset(&e->cold);
    struct access_check write = check;

    e->ahead = 0;
    write.write = true;
    put_place(e, ADDRESS, place, true);
    tlb_check_emit(&e->hot, kind, &write, cold);
    put_out_of_line(e, place, &check, 0, full_check(e, &check, true));
}

/* Near what the loop's turn before has accessed. `write`: the page may be written to. */
static void access_near(struct emitter *e, const struct access_place *place,
                        const struct access_check *check, bool write, unsigned slot)
{
    const enum tlb_kind kind = kind_of(e);
    const uint32_t cold = writer_offset(&e->cold);

    e->ahead = 0;
    put_place(e, ADDRESS, place, true);
    tlb_check_copy_emit(&e->hot, tlb_loop_page(kind, write, slot), check->aligned, cold);
    put_out_of_line(e, place, check, e->translator->loop_pages[kind][write][slot],
                    full_check(e, check, write));
}

/* A read that a write seems to follow is checked like one. */
static bool is_written_then(const struct emitter *e, const struct access_place *place,
                            const struct access_check *check)
{
    return !check->write && tlb_check_shape(check) != CHECK_SHAPES &&
           is_written_later(e, place);
}

static void access_first(struct emitter *e, const struct access_place *place,
                         struct access_check check, bool write)
{
    const unsigned slot =
        tlb_check_shape(&check) == CHECK_SHAPES ? LOOP_PAGES : loop_page(e, place, write);

    if (slot < LOOP_PAGES) {
        access_near(e, place, &check, write, slot);
    } else if (write != check.write) {
        access_both(e, place, check);
    } else {
        put_place(e, ADDRESS, place, true);
        emit_check(e, check);
    }
}

static void access_place(struct emitter *e, const struct access_place *place,
                         struct access_check check)
{
    bool write = check.write;
    bool aligned = check.aligned;

    if (follows(e, place, &check)) {
        write = e->group.write;
        follow(e, place, &check);
        aligned = e->group.aligned;
    } else if (check.top) {
        access_stack(e, place, &check);
        write = true;
    } else {
        write = write || is_written_then(e, place, &check);
        access_first(e, place, check, write);
    }
    e->group = (struct access_group){
        .valid = true, .write = write, .aligned = aligned, .place = *place};
    e->group.place.displacement -= e->ahead;
}

void emit_access_at(struct emitter *e, unsigned base, int32_t displacement,
                    struct access_check check)
{
    access_place(e,
                 &(struct access_place){.base = (uint8_t)base,
                                        .index = SOFT_ZERO,
                                        .displacement = displacement},
                 check);
}

void emit_access(struct emitter *e, struct access_check check)
{
    const struct instruction *instruction = e->instruction;
    const struct access_place place = place_of(instruction);

    if (instruction->address_size == 8 && instruction->segment < X86_FS) {
        access_place(e, &place, check);
        return;
    }
    emit_address(e);
    emit_check(e, check);
}

struct host_memory emit_checked(const struct emitter *e)
{
    return (struct host_memory){
        .base = SCRATCH, .index = ADDRESS, .displacement = e->ahead};
}

void emit_keep_group(struct emitter *e)
{
    e->group_kept = true;
}

void emit_written(struct emitter *e, unsigned number)
{
    if (e->group.place.base == number || e->group.place.index == number)
        e->group.valid = false;
}

void emit_stack_moved(struct emitter *e, int32_t bytes)
{
    if (e->group.place.base == X86_RSP)
        e->group.place.displacement -= bytes;
}
