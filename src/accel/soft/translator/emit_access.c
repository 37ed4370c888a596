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

void emit_offset(struct emitter *e, unsigned to, bool wide)
{
    const struct instruction *instruction = e->instruction;
    struct host_memory address = {.scale = instruction->scale,
                                  .displacement = (int32_t)instruction->displacement};

    if (instruction->base == SOFT_ZERO && instruction->index == SOFT_ZERO) {
        encode_constant(&e->hot, to,
                        wide ? (uint64_t)instruction->displacement
                             : (uint32_t)instruction->displacement);
        return;
    }
    address.base = address_part(e, instruction->base, ADDRESS);
    address.index = address_part(e, instruction->index, SCRATCH);
    if (wide && address.base != HOST_NO_REGISTER && address.index == HOST_NO_REGISTER &&
        address.displacement == 0)
        encode_move(&e->hot, to, address.base);
    else
        encode_lea(&e->hot, to, address, wide);
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

/* The TLB of a block's mode, relative to soft_cpu. */
static size_t tlb_offset(const struct emitter *e)
{
    enum tlb_kind kind = TLB_SUPERVISOR;

    if ((e->block->mode & MODE_USER) != 0)
        kind = TLB_USER;
    else if ((e->block->mode & MODE_USER_DATA) != 0)
        kind = TLB_SUPERVISOR_AC;
    return offsetof(struct soft_cpu, mmu) + offsetof(struct soft_mmu, entries) +
           kind * sizeof(((struct soft_mmu *)NULL)->entries[0]);
}

static void put_comparison(struct emitter *e, const struct access_check *check,
                           uint32_t cold)
{
    static const uint8_t compare[] = {0x49, 0x81, 0xfb};       /* cmp r11, */
    static const uint8_t alignment[] = {0x41, 0xf6, 0xc3, 15}; /* test r11b, 15 */

    encode_bytes(&e->hot, compare, sizeof(compare));
    encode_u32(&e->hot, X86_PAGE_BYTES - check->size);
    encode_jump_if(&e->hot, CONDITION_A, cold);
    if (check->aligned) {
        encode_bytes(&e->hot, alignment, sizeof(alignment));
        encode_jump_if(&e->hot, CONDITION_NE, cold);
    }
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
static void put_check(struct emitter *e, const struct access_check *check, uint32_t cold)
{
    static const uint8_t index[] = {
        0x45, 0x89, 0xda, 0x41, 0xc1, 0xea, 12 - TLB_ENTRY_SHIFT, 0x41, 0x81, 0xe2};
    const size_t tag = check->write ? offsetof(struct tlb_entry, write_tag)
                                    : offsetof(struct tlb_entry, read_tag);
    const size_t tlb = tlb_offset(e);
    struct host_memory entry = {
        .base = SCRATCH, .index = HOST_NO_REGISTER, .state = true};

    encode_bytes(&e->hot, index, sizeof(index));
    encode_u32(&e->hot, (TLB_ENTRIES - 1) << TLB_ENTRY_SHIFT);
    entry.displacement = (int32_t)(tlb + tag);
    encode_alu_memory(&e->hot, 0x2b, ADDRESS, entry);
    put_comparison(e, check, cold);
    entry.displacement = (int32_t)(tlb + offsetof(struct tlb_entry, page));
    encode_load(&e->hot, SCRATCH, entry);
}

/* A site for the check, and the stub that its failure goes to. */
static uint32_t make_stub(struct emitter *e, const struct access_check *check,
                          uint32_t *site)
{
    *site = emit_site(e);
    emit_site_at(e, *site)->size = (uint8_t)check->size;
    emit_site_at(e, *site)->write = check->write;
    emit_site_at(e, *site)->aligned = check->aligned;
    emit_site_at(e, *site)->segment = check->segment;
    return emit_cold_call(e, e->translator->slow, *site);
}

void emit_check(struct emitter *e, struct access_check check)
{
    uint32_t site;
    uint32_t cold = make_stub(e, &check, &site);

    put_check(e, &check, cold);
    e->group.valid = false;
}

/* ---- groups ---- */

/* ADDRESS = base + displacement. */
static void put_address(struct emitter *e, unsigned base, int32_t displacement)
{
    if (displacement == 0)
        encode_move(&e->hot, ADDRESS, register_host(base));
    else
        encode_lea(&e->hot, ADDRESS, host_at(register_host(base), displacement), true);
}

/* In the page of the access before; else, out of line, as if there had been none. */
static void emit_follower(struct emitter *e, unsigned base, int32_t displacement,
                          const struct access_check *check)
{
    int32_t distance = displacement - e->group.displacement;
    uint32_t site;
    uint32_t stub = make_stub(e, check, &site);
    uint32_t out_of_line = writer_offset(&e->cold);
    struct code_writer hot;

    if (distance != 0)
        encode_lea(&e->hot, ADDRESS, host_at(ADDRESS, distance), true);
    put_comparison(e, check, out_of_line);
    hot = e->hot;
    e->hot = e->cold;
    emit_site_at(e, site)->retry = out_of_line;
    put_address(e, base, displacement);
    put_check(e, check, stub);
    encode_jump(&e->hot, writer_offset(&hot));
    e->cold = e->hot;
    e->hot = hot;
}

void emit_access_at(struct emitter *e, unsigned base, int32_t displacement,
                    struct access_check check)
{
    const struct access_group *group = &e->group;
    bool write = check.write;

    if (group->valid && group->base == base && (group->write || !check.write)) {
        write = group->write;
        emit_follower(e, base, displacement, &check);
    } else {
        put_address(e, base, displacement);
        emit_check(e, check);
    }
    e->group = (struct access_group){.valid = true,
                                     .write = write,
                                     .base = (uint8_t)base,
                                     .displacement = displacement};
}

static bool is_plain_address(const struct instruction *instruction)
{
    return instruction->base != SOFT_ZERO && !register_is_homeless(instruction->base) &&
           instruction->index == SOFT_ZERO && instruction->address_size == 8 &&
           instruction->segment < X86_FS;
}

void emit_access(struct emitter *e, struct access_check check)
{
    const struct instruction *instruction = e->instruction;

    if (is_plain_address(instruction)) {
        emit_access_at(e, instruction->base, (int32_t)instruction->displacement, check);
        return;
    }
    emit_address(e);
    emit_check(e, check);
}

void emit_keep_group(struct emitter *e)
{
    e->group_kept = true;
}

void emit_written(struct emitter *e, unsigned number)
{
    if (e->group.base == number)
        e->group.valid = false;
}

void emit_stack_moved(struct emitter *e, int32_t bytes)
{
    if (e->group.base == X86_RSP)
        e->group.displacement -= bytes;
}
