/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches out of a block to addresses that are known. Each goes to a stub first, which
 * has C find the target and aim the branch there.
 */
#include "accel/soft/cpu_private.h"
#include "accel/soft/translator/emit_private.h"

bool emit_is_same_page(const struct emitter *e, uint64_t target)
{
    return (target ^ e->block->rip) >> 12 == 0;
}

/* A link, and its stub; `flags` says where they are when it is taken. */
struct exit {
    uint32_t link;
    uint32_t stub;
};

static uint32_t make_link(struct emitter *e, uint64_t target, enum flags_place flags,
                          bool backward)
{
    struct translator *translator = e->translator;

    translator->links[translator->link_count] = (struct link){.target = target,
                                                              .from = e->block,
                                                              .flags = (uint8_t)flags,
                                                              .backward = backward};
    return translator->link_count++;
}

static struct exit make_exit(struct emitter *e, uint64_t target, enum flags_place flags)
{
    struct translator *translator = e->translator;
    struct exit exit = {.link =
                            make_link(e, target, flags, target <= e->instruction->rip)};

    exit.stub = emit_link_stub(
        e, flags == FLAGS_HOST ? translator->follow_host_flags : translator->follow,
        exit.link);
    translator->links[exit.link].stub = exit.stub;
    return exit;
}

/* Four bytes that C changes lie in one aligned quadword (code_memory_private.h). These
 * are in the instruction that follows, behind `opcode_bytes`; prefixes that say nothing
 * there (SDM vol. 2, 2.1.1) move it on. */
static unsigned misalignment(const struct emitter *e, unsigned opcode_bytes)
{
    const unsigned at = (writer_offset(&e->hot) + opcode_bytes) % 8;

    return at > 4 ? 8 - at : 0;
}

static void align_field(struct emitter *e, unsigned opcode_bytes)
{
    static const uint8_t prefix_cs = 0x2e;

    for (unsigned i = misalignment(e, opcode_bytes); i > 0; i--)
        encode_u8(&e->hot, prefix_cs);
}

static void put_jump(struct emitter *e, const struct exit *exit)
{
    align_field(e, 1);
    encode_jump(&e->hot, exit->stub);
    e->translator->links[exit->link].branch_end = writer_offset(&e->hot);
}

static void put_jump_if(struct emitter *e, const struct exit *exit, unsigned condition)
{
    align_field(e, 2);
    encode_jump_if(&e->hot, condition, exit->stub);
    e->translator->links[exit->link].branch_end = writer_offset(&e->hot);
}

/* Where the TLB says what is fetched from the target's page. */
static struct host_memory place_of(const struct emitter *e, uint64_t target)
{
    const enum tlb_kind kind =
        (e->block->mode & MODE_USER) != 0 ? TLB_FETCH_USER : TLB_FETCH_SUPERVISOR;
    const size_t index = (target >> 12) & (TLB_ENTRIES - 1);

    return emit_state(offsetof(struct soft_cpu, mmu) +
                      offsetof(struct soft_mmu, entries) +
                      ((size_t)kind * TLB_ENTRIES + index) * sizeof(struct tlb_entry) +
                      offsetof(struct tlb_entry, place));
}

/* The lower half of no place: neither of a page's, which have bit 31, nor of an empty
 * entry's (TLB_NO_TAG). */
#define NO_PLACE 1

/* With a sign-extended constant, whose offset is returned. */
static uint32_t compare_near(struct emitter *e, struct host_memory place)
{
    static const unsigned opcode_bytes = 9; /* gs cmp qword [], */
    /* That has a segment already. */
    static const uint8_t nops[][3] = {{0}, {0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}};
    const unsigned pad = misalignment(e, opcode_bytes);

    encode_bytes(&e->hot, nops[pad], pad);
    encode(&e->hot, &(struct host_instruction){.wide = true,
                                               .opcode = {0x81},
                                               .opcode_bytes = 1,
                                               .reg = 7,
                                               .is_memory = true,
                                               .memory = place,
                                               .immediate_bytes = 4,
                                               .immediate = NO_PLACE});
    return writer_offset(&e->hot) - 4;
}

static uint32_t compare_far(struct emitter *e, struct host_memory place, uint32_t upper)
{
    static const uint8_t load_place[] = {0x49, 0xba}; /* mov r10, */
    uint32_t at;

    align_field(e, sizeof(load_place));
    encode_bytes(&e->hot, load_place, sizeof(load_place));
    at = writer_offset(&e->hot);
    encode_u32(&e->hot, NO_PLACE);
    encode_u32(&e->hot, upper);
    encode_alu_memory(&e->hot, 0x3b, SCRATCH, place);
    return at;
}

/* To another page: while the TLB has it where the target was found. C puts the lower half
 * of that place. */
static void branch_elsewhere(struct emitter *e, const struct exit *exit, uint64_t target)
{
    const uint32_t upper = (uint32_t)(tlb_place(target, 0) >> 32);
    const struct host_memory place = place_of(e, target);

    emit_flags_to_state(e);
    e->translator->links[exit->link].place_at =
        upper == UINT32_MAX ? compare_near(e, place) : compare_far(e, place, upper);
    encode_jump_if(&e->hot, CONDITION_NE, exit->stub);
    put_jump(e, exit);
}

static enum flags_place flags_on_the_way(const struct emitter *e, unsigned live)
{
    return live == 0 ? FLAGS_NOWHERE : e->flags;
}

void emit_exit(struct emitter *e, uint64_t target, unsigned live)
{
    struct exit exit;

    e->flags = flags_on_the_way(e, live);
    if (emit_is_same_page(e, target)) {
        exit = make_exit(e, target, e->flags);
        put_jump(e, &exit);
        return;
    }
    emit_flags_to_state(e);
    exit = make_exit(e, target, e->flags);
    branch_elsewhere(e, &exit, target);
}

void emit_exit_if(struct emitter *e, unsigned condition, uint64_t target, unsigned live)
{
    enum flags_place before = e->flags;
    enum flags_place flags = flags_on_the_way(e, live);
    struct code_writer hot = e->hot;
    struct exit exit;

    if (emit_is_same_page(e, target)) {
        exit = make_exit(e, target, flags);
        put_jump_if(e, &exit, condition);
        return;
    }
    /* The way to another page is long: out of line, behind its stub. */
    exit = make_exit(e, target, flags == FLAGS_HOST ? FLAGS_STATE : flags);
    encode_jump_if(&hot, condition, writer_offset(&e->cold));
    e->hot = e->cold;
    e->flags = flags;
    branch_elsewhere(e, &exit, target);
    e->cold = e->hot;
    e->hot = hot;
    e->flags = before;
}

/* The block goes on there as it would have here, so no loop is closed. */
uint32_t emit_careful_exit_if(struct emitter *e, unsigned condition, uint32_t stub)
{
    const struct exit exit = {.link = make_link(e, e->instruction->rip, e->flags, false),
                              .stub = stub};

    e->translator->links[exit.link].stub = stub;
    put_jump_if(e, &exit, condition);
    return exit.link;
}
