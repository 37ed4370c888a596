/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory operands: addresses, and the checks in front of accesses.
 *
 * A check finds out that all bytes are in a page, and leaves the page's host address in
 * SCRATCH and their offset in ADDRESS. Where other instructions access what is near by
 * the same registers, one check serves all of them (group.c): it is made for the bytes
 * from the first to the last, to write if one of them writes, and leaves their host
 * address in ADDRESS. They have no code of their own for it, so nothing can be mended
 * there: such a check fails for the first of them, before any is done. C fills the TLB
 * for that access. If this does not help, because the bytes are in two pages, are a
 * device's, or may only be read, the block's rest runs as a careful block, which is made
 * for that: there each access has a check of its own.
 *
 * C leaves an address of code in ADDRESS. So a group ends where C may return into the
 * block behind an instruction of it.
 */
#include "accel/soft/access_private.h"
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/tlb_check_private.h"

/* ---- addresses ---- */

static bool is_homeless(unsigned number)
{
    return number != SOFT_ZERO && register_is_homeless(number);
}

/* The register as part of an address, `scratch` if it is homeless. */
static uint8_t address_part(struct emitter *e, unsigned number, unsigned scratch)
{
    if (number == SOFT_ZERO)
        return HOST_NO_REGISTER;
    if (!is_homeless(number))
        return (uint8_t)register_host(number);
    encode_load(&e->hot, scratch, emit_register_slot(number));
    return (uint8_t)scratch;
}

/* `to` = the place, cut to 32 bits if not `wide`. ADDRESS is overwritten if it is `to`,
 * or both registers are homeless. */
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
    address.base = address_part(e, place->base, SCRATCH);
    address.index =
        address_part(e, place->index, is_homeless(place->base) ? ADDRESS : SCRATCH);
    if (wide && address.base != HOST_NO_REGISTER && address.index == HOST_NO_REGISTER &&
        address.displacement == 0)
        encode_move(&e->hot, to, address.base);
    else
        encode_lea(&e->hot, to, address, wide);
}

struct access_place access_place_of(const struct instruction *instruction)
{
    return (struct access_place){.base = instruction->base,
                                 .index = instruction->index,
                                 .scale = instruction->scale,
                                 .displacement = instruction->displacement};
}

void emit_offset(struct emitter *e, unsigned to, bool wide)
{
    const struct access_place place = access_place_of(e->instruction);

    put_place(e, to, &place, wide);
    if (to == ADDRESS || (is_homeless(place.base) && is_homeless(place.index)))
        e->group.shared = false;
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

/* CMPXCHG16B and most of SSE want 16 bytes aligned. Of x87, no size means 80 bits. */
struct access_check access_check_of(const struct instruction *instruction)
{
    const struct form *form = instruction->form;
    bool pair = form->select == select_exchange_double;
    bool aligned = pair && instruction->rex_w;
    unsigned size = instruction->memory_size;

    if (pair)
        size = aligned ? 16 : 8;
    if (form->select == select_x87 && form->size == SIZE_NONE)
        size = 10;
    if (size == 16 && (form->attributes & (FORM_SSE | FORM_UNALIGNED)) == FORM_SSE)
        aligned = true;
    return (struct access_check){.size = size,
                                 .write = form_writes_memory(instruction->form),
                                 .aligned = aligned,
                                 .segment = instruction->segment};
}

/* ---- checks ---- */

/* The TLB of a block's mode. */
static enum tlb_kind kind_of(const struct emitter *e)
{
    if ((e->block->mode & MODE_USER) != 0)
        return TLB_USER;
    return (e->block->mode & MODE_USER_DATA) != 0 ? TLB_SUPERVISOR_AC : TLB_SUPERVISOR;
}

static uint32_t make_site(struct emitter *e, const struct access_check *check,
                          const struct access_group *group)
{
    const uint32_t index = emit_site(e);
    struct site *site = emit_site_at(e, index);

    site->size = (uint8_t)check->size;
    site->segment = check->segment;
    site->distance = e->ahead;
    site->flags |=
        (uint8_t)((check->write ? SITE_WRITE : 0) | (group->write ? SITE_WRITABLE : 0) |
                  (check->aligned ? SITE_ALIGNED : 0) |
                  (group->shared ? SITE_SHARED : 0));
    return index;
}

/* Where code goes that finds the bytes not to be there. */
struct failure {
    uint32_t stub;
    uint32_t site;
};

static struct failure make_failure(struct emitter *e, const struct access_check *check,
                                   const struct access_group *group)
{
    const struct translator *translator = e->translator;
    const uint32_t site = make_site(e, check, group);

    return (struct failure){
        .stub = emit_cold_call(e, group->shared ? translator->shared : translator->slow,
                               site),
        .site = site};
}

static void fail_if(struct emitter *e, const struct failure *failure, unsigned condition)
{
    if (e->group.shared)
        emit_site_at(e, failure->site)->next =
            emit_careful_exit_if(e, condition, failure->stub);
    else
        encode_jump_if(&e->hot, condition, failure->stub);
}

static void check_alignment(struct emitter *e, const struct access_group *group,
                            uint32_t cold)
{
    if (!group->aligned)
        return;
    tlb_alignment_emit(&e->hot);
    encode_jump_if(&e->hot, CONDITION_NE, cold);
}

/* In the TLB. */
static void check_in_full(struct emitter *e, const struct access_group *group,
                          const struct failure *failure)
{
    const enum tlb_kind kind = kind_of(e);

    tlb_compare_emit(&e->hot, kind, group->write, group->bytes);
    fail_if(e, failure, CONDITION_A);
    check_alignment(e, group, failure->stub);
    tlb_page_emit(&e->hot, kind, !e->split);
}

/* In a copy of an entry; else, out of line, in the TLB, by a thunk that makes such a copy
 * and leaves for C what it wants. The thunk compares for fewer bytes if not `exact`. */
static void check_by_copy(struct emitter *e, const struct access_group *group,
                          const struct failure *failure, struct host_memory copy,
                          uint32_t thunk, bool exact)
{
    const uint32_t cold = writer_offset(&e->cold);
    struct code_writer hot;

    tlb_copy_compare_emit(&e->hot, copy);
    encode_jump_if(&e->hot, CONDITION_AE, cold);
    check_alignment(e, group, cold);
    hot = e->hot;
    e->hot = e->cold;
    encode_call(&e->hot, thunk);
    if (!exact)
        tlb_comparison_emit(&e->hot, group->bytes);
    fail_if(e, failure, CONDITION_A);
    check_alignment(e, group, failure->stub);
    encode_jump(&e->hot, writer_offset(&hot));
    e->cold = e->hot;
    e->hot = hot;
    tlb_copy_page_emit(&e->hot, copy, !e->split);
}

void emit_check(struct emitter *e, struct access_check check)
{
    struct failure failure;

    e->ahead = 0;
    e->split = true;
    e->group = (struct access_group){
        .bytes = (uint8_t)check.size, .write = check.write, .aligned = check.aligned};
    failure = make_failure(e, &check, &e->group);
    check_in_full(e, &e->group, &failure);
}

/* ---- groups ---- */

static bool is_same_base(const struct access_place *a, const struct access_place *b)
{
    return a->base == b->base && a->index == b->index && a->scale == b->scale;
}

static bool is_done(const struct emitter *e, const struct access_place *place,
                    const struct access_check *check)
{
    const struct access_group *group = &e->group;
    const int64_t distance = place->displacement - group->place.displacement;

    return group->shared && is_same_base(place, &group->place) && distance >= 0 &&
           distance + check->size <= group->bytes && (group->write || !check->write) &&
           (!check->aligned || (group->aligned && distance % CHECK_MAX_BYTES == 0));
}

/* A push or pop by itself. */
static void check_top(struct emitter *e, const struct access_check *check)
{
    const enum tlb_kind kind = kind_of(e);
    const uint32_t site = make_site(e, check, &e->group);
    const uint32_t cold =
        emit_cold_call(e, e->translator->stack_tops[kind][check->write], site);

    put_place(e, ADDRESS, &e->group.place, true);
    tlb_copy_compare_emit(&e->hot, tlb_stack_page(kind));
    encode_jump_if(&e->hot, CONDITION_AE, cold);
    encode_jump(&e->cold, writer_offset(&e->hot));
    tlb_copy_page_emit(&e->hot, tlb_stack_page(kind), !e->split);
}

static void check_group(struct emitter *e, const struct access_check *check)
{
    const struct access_group *group = &e->group;
    const struct translator *translator = e->translator;
    const enum tlb_kind kind = kind_of(e);
    const struct failure failure = make_failure(e, check, group);
    const unsigned slot = group->bytes > COPY_BYTES
                              ? LOOP_PAGES
                              : loop_page(e, &group->place, group->write);

    put_place(e, ADDRESS, &group->place, true);
    if (check->top && !e->careful)
        check_by_copy(e, group, &failure, tlb_stack_page(kind),
                      translator->stack_groups[kind], true);
    else if (slot < LOOP_PAGES)
        check_by_copy(e, group, &failure, tlb_loop_page(kind, group->write, slot),
                      translator->loop_pages[kind][group->write][slot], false);
    else
        check_in_full(e, group, &failure);
}

static void access_place(struct emitter *e, const struct access_place *place,
                         const struct access_check *check)
{
    const bool done = is_done(e, place, check);

    if (!done)
        e->group = find_group(e, place, check);
    e->split = !e->group.shared;
    e->ahead = (uint8_t)(place->displacement - e->group.place.displacement);
    if (done)
        return;
    if (check->top && !e->careful && !e->group.shared)
        check_top(e, check);
    else
        check_group(e, check);
}

static struct access_place place_at(unsigned base, int32_t displacement)
{
    return (struct access_place){
        .base = (uint8_t)base, .index = SOFT_ZERO, .displacement = displacement};
}

void emit_access_at(struct emitter *e, unsigned base, int32_t displacement,
                    struct access_check check)
{
    const struct access_place place = place_at(base, displacement);

    access_place(e, &place, &check);
}

bool emit_is_done_at(const struct emitter *e, unsigned base, int32_t displacement,
                     struct access_check check)
{
    const struct access_place place = place_at(base, displacement);

    return is_done(e, &place, &check);
}

void emit_access(struct emitter *e, struct access_check check)
{
    const struct access_place place = access_place_of(e->instruction);

    if (access_is_plain(e->instruction)) {
        access_place(e, &place, &check);
        return;
    }
    emit_address(e);
    emit_check(e, check);
}

bool emit_is_done(const struct emitter *e, struct access_check check)
{
    const struct access_place place = access_place_of(e->instruction);

    return access_is_plain(e->instruction) && is_done(e, &place, &check);
}

struct host_memory emit_checked(const struct emitter *e)
{
    struct host_memory checked = host_at(ADDRESS, e->ahead);

    if (e->split)
        checked.index = SCRATCH;
    return checked;
}

void emit_join(struct emitter *e)
{
    if (e->split)
        encode_lea(&e->hot, ADDRESS, emit_checked(e), true);
    e->split = false;
}

void emit_keep_group(struct emitter *e)
{
    e->group_kept = true;
}

void emit_written(struct emitter *e, unsigned number)
{
    if (e->group.place.base == number || e->group.place.index == number)
        e->group.shared = false;
}

void emit_stack(struct emitter *e)
{
    if (e->stack_behind != 0)
        encode_lea(&e->hot, STACK, host_at(STACK, e->stack_behind), true);
    e->stack_behind = 0;
}

void emit_stack_moved(struct emitter *e, int64_t bytes)
{
    if (e->group.place.base == X86_RSP)
        e->group.place.displacement -= bytes;
}
