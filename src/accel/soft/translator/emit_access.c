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
#include "accel/soft/translator/emit_private.h"

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

/* Whether `size` bytes at ADDRESS + `ahead` are in the page that ADDRESS is an offset
 * into. */
static void put_comparison(struct code_writer *writer, const struct access_check *check,
                           uint32_t ahead, uint32_t cold)
{
    static const uint8_t compare[] = {0x49, 0x81, 0xfb};       /* cmp r11, */
    static const uint8_t alignment[] = {0x41, 0xf6, 0xc3, 15}; /* test r11b, 15 */

    encode_bytes(writer, compare, sizeof(compare));
    encode_u32(writer, (uint32_t)X86_PAGE_BYTES - check->size - ahead);
    encode_jump_if(writer, CONDITION_A, cold);
    if (check->aligned) {
        encode_bytes(writer, alignment, sizeof(alignment));
        encode_jump_if(writer, CONDITION_NE, cold);
    }
}

/* A field of the TLB's entry whose offset is in SCRATCH. */
static struct host_memory entry_field(enum tlb_kind kind, size_t field)
{
    struct host_memory entry = STATE(mmu.entries[kind]);

    entry.base = SCRATCH;
    entry.displacement += (int32_t)field;
    return entry;
}

static struct host_memory entry_tag(enum tlb_kind kind, bool write)
{
    return entry_field(kind, write ? offsetof(struct tlb_entry, write_tag)
                                   : offsetof(struct tlb_entry, read_tag));
}

/*
 *   mov  r10d, r11d
 *   shr  r10d, 7              the index, times the size of an entry
 *   and  r10d, ...
 *   sub  r11, [tag + r10]
 *   cmp  r11, 4096 - size
 *   ja   cold
 *   mov  r10, [page + r10]
 */
static void put_index(struct code_writer *writer)
{
    static const uint8_t index[] = {
        0x45, 0x89, 0xda, 0x41, 0xc1, 0xea, 12 - TLB_ENTRY_SHIFT, 0x41, 0x81, 0xe2};

    encode_bytes(writer, index, sizeof(index));
    encode_u32(writer, (TLB_ENTRIES - 1) << TLB_ENTRY_SHIFT);
}

static void put_check(struct code_writer *writer, enum tlb_kind kind,
                      const struct access_check *check, uint32_t cold)
{
    put_index(writer);
    encode_alu_memory(writer, 0x2b, ADDRESS, entry_tag(kind, check->write));
    put_comparison(writer, check, 0, cold);
    encode_load(writer, SCRATCH, entry_field(kind, offsetof(struct tlb_entry, page)));
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

    put_check(&e->hot, kind_of(e), &check, cold);
    e->group.valid = false;
    e->ahead = 0;
}

/* ---- checks by thunks ---- */

/* Which of translator.checks it is; CHECK_SHAPES: none. */
static size_t shape_of(const struct access_check *check)
{
    if (check->aligned)
        return check->size == CHECK_MAX_BYTES ? CHECK_ALIGNED : CHECK_SHAPES;
    if (check->size > CHECK_MAX_BYTES || (check->size & (check->size - 1)) != 0)
        return CHECK_SHAPES;
    return (size_t)__builtin_ctz(check->size);
}

static uint32_t put_failure(struct code_writer *writer, uint32_t slow)
{
    static const uint8_t pass_opcode[] = {0x48, 0xff, 0x04, 0x24}; /* inc qword [rsp] */
    const uint32_t start = writer_offset(writer);

    encode_bytes(writer, pass_opcode, sizeof(pass_opcode));
    encode_jump(writer, slow);
    return start;
}

/* Returns if all is well. Else what is behind its call, TEST EAX with an immediate, tells
 * the slow way the site. */
static uint32_t put_check_thunk(struct code_writer *writer, enum tlb_kind kind,
                                const struct access_check *check, uint32_t slow)
{
    static const uint8_t back[] = {0xc3}; /* ret */
    const uint32_t failed = put_failure(writer, slow);
    const uint32_t start = writer_offset(writer);

    put_check(writer, kind, check, failed);
    encode_bytes(writer, back, sizeof(back));
    return start;
}

static struct host_memory stack_field(enum tlb_kind kind, size_t field)
{
    struct host_memory page = STATE(mmu.stack_pages[kind]);

    page.displacement += (int32_t)field;
    return page;
}

/* The entry whose offset is in SCRATCH becomes the stack's page. */
static void put_stack_page(struct code_writer *writer, enum tlb_kind kind)
{
    static const uint8_t push_rax[] = {0x50};
    static const uint8_t pop_rax[] = {0x58};

    encode_bytes(writer, push_rax, sizeof(push_rax));
    encode_load(writer, X86_RAX, entry_tag(kind, true));
    encode_store(writer, stack_field(kind, offsetof(struct stack_page, tag)), X86_RAX);
    encode_load(writer, SCRATCH, entry_field(kind, offsetof(struct tlb_entry, page)));
    encode_store(writer, stack_field(kind, offsetof(struct stack_page, page)), SCRATCH);
    encode_constant(writer, X86_RAX, X86_PAGE_BYTES - STACK_PAGE_ACCESS_BYTES + 1);
    encode_store(writer, stack_field(kind, offsetof(struct stack_page, limit)), X86_RAX);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
}

/* Moves page and offset apart, so that their sum stays, but whatever follows this access
 * is not in its page. */
static void put_end_of_group(struct code_writer *writer)
{
    static const uint8_t push_rax[] = {0x50};
    static const uint8_t pop_rax[] = {0x58};

    encode_bytes(writer, push_rax, sizeof(push_rax));
    encode_constant(writer, X86_RAX, UINT64_C(1) << 62);
    encode_alu(writer, 0x03, ADDRESS, X86_RAX);
    encode_alu(writer, 0x2b, SCRATCH, X86_RAX);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
}

/* A page that may not be written to serves reads, but what follows must not write. */
static uint32_t put_stack_check_thunk(struct code_writer *writer, enum tlb_kind kind,
                                      const struct access_check *check, uint32_t slow)
{
    static const uint8_t back[] = {0xc3}; /* ret */
    uint32_t failed = put_failure(writer, slow);
    uint32_t start;

    if (!check->write) {
        uint32_t again = writer_offset(writer);

        encode_alu_memory(writer, 0x03, ADDRESS, entry_tag(kind, true));
        put_check(writer, kind, check, failed);
        put_end_of_group(writer);
        encode_bytes(writer, back, sizeof(back));
        failed = again;
    }
    start = writer_offset(writer);
    put_index(writer);
    encode_alu_memory(writer, 0x2b, ADDRESS, entry_tag(kind, true));
    put_comparison(writer, check, 0, failed);
    put_stack_page(writer, kind);
    encode_bytes(writer, back, sizeof(back));
    return start;
}

/* Where a page was hoped to be writable. */
static uint32_t put_read_only_thunk(struct code_writer *writer, enum tlb_kind kind,
                                    const struct access_check *check, uint32_t slow)
{
    static const uint8_t back[] = {0xc3}; /* ret */
    const uint32_t failed = put_failure(writer, slow);
    const uint32_t start = writer_offset(writer);

    put_check(writer, kind, check, failed);
    put_end_of_group(writer);
    encode_bytes(writer, back, sizeof(back));
    return start;
}

void check_thunks_emit(struct translator *translator, struct code_writer *writer)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(translator->checks); kind++)
        for (size_t write = 0; write < 2; write++)
            for (size_t shape = 0; shape < CHECK_SHAPES; shape++) {
                const bool aligned = shape == CHECK_ALIGNED;
                const struct access_check check = {
                    .size = aligned ? CHECK_MAX_BYTES : 1u << shape,
                    .write = write != 0,
                    .aligned = aligned,
                };

                translator->checks[kind][write][shape] = put_check_thunk(
                    writer, (enum tlb_kind)kind, &check, translator->slow);
                if (write == 0)
                    translator->read_only_checks[kind][shape] = put_read_only_thunk(
                        writer, (enum tlb_kind)kind, &check, translator->slow);
                if (shape < CHECK_STACK_SHAPES)
                    translator->stack_checks[kind][write][shape] = put_stack_check_thunk(
                        writer, (enum tlb_kind)kind, &check, translator->slow);
            }
}

/* In the cold area, where hot code goes whose comparison fails: the check in full. Back
 * there ADDRESS is again e->ahead before the place. */
static void put_out_of_line(struct emitter *e, const struct access_place *place,
                            const struct access_check *check, uint32_t thunk)
{
    static const uint8_t site_follows[] = {0xa9}; /* test eax, */
    const uint32_t site = make_site(e, check);
    const struct code_writer hot = e->hot;

    e->hot = e->cold;
    emit_site_at(e, site)->retry = writer_offset(&e->hot);
    put_place(e, ADDRESS, place, true);
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
           shape_of(check) != CHECK_SHAPES;
}

static bool is_stack(const struct access_place *place, const struct access_check *check)
{
    return place->base == X86_RSP && place->index == SOFT_ZERO &&
           shape_of(check) < CHECK_STACK_SHAPES;
}

/* A read in a group that may be written to leaves it so, or ends it. */
static uint32_t follower_thunk(const struct emitter *e, const struct access_place *place,
                               const struct access_check *check)
{
    const struct translator *translator = e->translator;
    const enum tlb_kind kind = kind_of(e);
    const size_t shape = shape_of(check);

    if (is_stack(place, check))
        return translator->stack_checks[kind][check->write][shape];
    if (e->group.write && !check->write)
        return translator->read_only_checks[kind][shape];
    return translator->checks[kind][check->write][shape];
}

/* In the page of the access before; else, out of line, as if there had been none. A place
 * that is a little ahead of ADDRESS needs no other one. */
static void follow(struct emitter *e, const struct access_place *place,
                   const struct access_check *check)
{
    const int32_t distance = (int32_t)(place->displacement - e->group.place.displacement);
    const uint32_t cold = writer_offset(&e->cold);

    e->ahead = 0;
    if (distance > 0 && distance <= AHEAD_LIMIT && !check->aligned)
        e->ahead = (uint8_t)distance;
    else if (distance != 0)
        encode_lea(&e->hot, ADDRESS, host_at(ADDRESS, distance), true);
    put_comparison(&e->hot, check, e->ahead, cold);
    put_out_of_line(e, place, check, follower_thunk(e, place, check));
}

/*
 *   sub  r11, [stack's tag]
 *   cmp  r11, [stack's limit]
 *   jae  cold
 *   mov  r10, [stack's page]
 */
static void access_stack(struct emitter *e, const struct access_place *place,
                         const struct access_check *check)
{
    const enum tlb_kind kind = kind_of(e);
    const uint32_t cold = writer_offset(&e->cold);

    e->ahead = 0;
    put_place(e, ADDRESS, place, true);
    encode_alu_memory(&e->hot, 0x2b, ADDRESS,
                      stack_field(kind, offsetof(struct stack_page, tag)));
    encode_alu_memory(&e->hot, 0x3b, ADDRESS,
                      stack_field(kind, offsetof(struct stack_page, limit)));
    encode_jump_if(&e->hot, CONDITION_AE, cold);
    encode_load(&e->hot, SCRATCH, stack_field(kind, offsetof(struct stack_page, page)));
    put_out_of_line(e, place, check,
                    e->translator->stack_checks[kind][check->write][shape_of(check)]);
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
    put_check(&e->hot, kind, &write, cold);
    put_out_of_line(e, place, &check,
                    e->translator->read_only_checks[kind][shape_of(&check)]);
}

static void access_place(struct emitter *e, const struct access_place *place,
                         struct access_check check)
{
    bool write = check.write;

    if (follows(e, place, &check)) {
        write = e->group.write;
        follow(e, place, &check);
    } else if (is_stack(place, &check)) {
        access_stack(e, place, &check);
        write = true;
    } else if (!check.write && shape_of(&check) != CHECK_SHAPES &&
               is_written_later(e, place)) {
        access_both(e, place, check);
        write = true;
    } else {
        put_place(e, ADDRESS, place, true);
        emit_check(e, check);
    }
    e->group = (struct access_group){.valid = true, .write = write, .place = *place};
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
