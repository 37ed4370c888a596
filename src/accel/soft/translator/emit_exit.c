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

static struct exit make_exit(struct emitter *e, uint64_t target, enum flags_place flags)
{
    struct translator *translator = e->translator;
    struct exit exit = {.link = translator->link_count++};

    translator->links[exit.link] =
        (struct link){.target = target,
                      .from = e->block,
                      .flags = (uint8_t)flags,
                      .backward = target <= e->instruction->rip};
    exit.stub = emit_cold_call(
        e, flags == FLAGS_HOST ? translator->follow_host_flags : translator->follow,
        exit.link);
    return exit;
}

static void set_branch_end(struct emitter *e, const struct exit *exit)
{
    e->translator->links[exit->link].branch_end = writer_offset(&e->hot);
}

/* To another page: while nothing has changed what is where. The comparison is of a
 * constant that C sets; no generation is 0. */
static void branch_elsewhere(struct emitter *e, const struct exit *exit, uint64_t target)
{
    struct host_memory generation = STATE(translated.generations);

    generation.displacement += (int32_t)((target >> 63) * sizeof(uint32_t));
    emit_flags_to_state(e);
    encode(&e->hot, &(struct host_instruction){.opcode = {0x81},
                                               .opcode_bytes = 1,
                                               .reg = 7,
                                               .is_memory = true,
                                               .memory = generation,
                                               .immediate_bytes = 4});
    e->translator->links[exit->link].generation_at = writer_offset(&e->hot) - 4;
    encode_jump_if(&e->hot, CONDITION_NE, exit->stub);
    encode_jump(&e->hot, exit->stub);
    set_branch_end(e, exit);
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
        encode_jump(&e->hot, exit.stub);
        set_branch_end(e, &exit);
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
        encode_jump_if(&e->hot, condition, exit.stub);
        set_branch_end(e, &exit);
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
