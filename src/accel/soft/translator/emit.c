/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences that translated instructions are made of; see emit_private.h. */
#include "accel/soft/translator/emit_private.h"

#include "accel/soft/access_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "base/check.h"

/* ---- registers ---- */

struct host_memory emit_state_by_gs(size_t offset)
{
    return (struct host_memory){
        .base = HOST_NO_REGISTER,
        .index = HOST_NO_REGISTER,
        .state = true,
        .displacement = (int32_t)offset - (int32_t)offsetof(struct soft_cpu, mmu.entries),
    };
}

struct host_memory emit_state(size_t offset)
{
    const size_t distance = offset - SOFT_FRAME; /* of what is before: large */

    return distance <= INT8_MAX ? host_at(X86_RSP, (int32_t)distance)
                                : emit_state_by_gs(offset);
}

struct host_memory emit_register_slot(unsigned number)
{
    return emit_state(offsetof(struct soft_cpu, r) + number * sizeof(uint64_t));
}

unsigned emit_register(struct emitter *e, unsigned number, unsigned scratch)
{
    if (!register_is_homeless(number))
        return register_host(number);
    encode_load(&e->hot, scratch, emit_register_slot(number));
    if (scratch == ADDRESS)
        e->group.shared = false;
    return scratch;
}

/* ---- flags ---- */

unsigned emit_live_in(const struct emitter *e)
{
    return e->live_in[e->ordinal];
}

unsigned emit_live_out(const struct emitter *e)
{
    return e->live_out[e->ordinal];
}

/* By condition code / 2 (SDM vol. 1, table B-1). */
static unsigned condition_flags(unsigned condition)
{
    static const uint16_t read[] = {
        FLAG_OF, FLAG_CF, FLAG_ZF,           FLAG_CF | FLAG_ZF,
        FLAG_SF, FLAG_PF, FLAG_SF | FLAG_OF, FLAG_ZF | FLAG_SF | FLAG_OF,
    };

    return read[(condition & 15) >> 1];
}

/* The table says that shifts by CL read all flags, because by 0 they leave them. */
unsigned flags_read(const struct instruction *instruction, unsigned live_out)
{
    const struct form *form = instruction->form;
    bool rotates = form->variant == SHIFT_RCL || form->variant == SHIFT_RCR;

    if ((form->flags.read & FLAGS_ARITHMETIC) == 0)
        return 0; /* most */
    if (form->select == select_shift && form->flags.read == FLAGS_ARITHMETIC)
        return live_out | (rotates ? FLAG_CF : 0);
    if (form->select == select_shift_double && form->flags.read == FLAGS_ARITHMETIC)
        return live_out;
    if (form->select == select_jump_condition || form->select == select_set_condition ||
        form->select == select_move_condition)
        return condition_flags(instruction->opcode);
    return form->flags.read & FLAGS_ARITHMETIC;
}

unsigned flags_needed(const struct instruction *instruction, unsigned live_out)
{
    unsigned written = draft_written_flags(instruction) & FLAGS_ARITHMETIC;
    unsigned kept = written == 0 ? 0 : live_out & ~written;

    return flags_read(instruction, live_out) | kept;
}

void emit_flags_to_state(struct emitter *e)
{
    /* mov r10, rax; lahf; seto al */
    static const uint8_t take[] = {0x49, 0x89, 0xc2, 0x9f, 0x0f, 0x90, 0xc0};

    if (e->flags != FLAGS_HOST)
        return;
    encode_bytes(&e->hot, take, sizeof(take));
    encode(&e->hot, &(struct host_instruction){.prefix_66 = 0x66,
                                               .opcode = {0x89},
                                               .opcode_bytes = 1,
                                               .reg = X86_RAX,
                                               .is_memory = true,
                                               .memory = STATE(flags_packed)});
    encode_move(&e->hot, X86_RAX, SCRATCH);
    e->flags = FLAGS_STATE;
}

void emit_flags_to_host(struct emitter *e)
{
    static const uint8_t set[] = {0x04, 127, 0x9e}; /* add al, 127; sahf */

    if (e->flags != FLAGS_STATE)
        return;
    encode_move(&e->hot, SCRATCH, X86_RAX);
    encode(&e->hot, &(struct host_instruction){.opcode = {0x0f, 0xb7},
                                               .opcode_bytes = 2,
                                               .reg = X86_RAX,
                                               .is_memory = true,
                                               .memory = STATE(flags_packed)});
    encode_bytes(&e->hot, set, sizeof(set));
    encode_move(&e->hot, X86_RAX, SCRATCH);
    e->flags = FLAGS_HOST;
}

void emit_spill_flags(struct emitter *e)
{
    if (e->flags == FLAGS_HOST && emit_live_in(e) == 0)
        e->flags = FLAGS_NOWHERE;
    emit_flags_to_state(e);
    e->start = writer_offset(&e->hot);
}

void emit_flags_written(struct emitter *e)
{
    if ((draft_written_flags(e->instruction) & FLAGS_ARITHMETIC) != 0)
        e->flags = FLAGS_HOST;
}

/* ---- sites ---- */

uint32_t emit_site(struct emitter *e)
{
    struct translator *translator = e->translator;

    CHECK(e->flags != FLAGS_HOST);
    translator->sites[translator->site_count] = (struct site){
        .block = e->block,
        .retry = e->start,
        .delta = (uint16_t)(e->instruction->rip - e->block->rip),
        .length = e->instruction->length,
        .segment = X86_DS,
        .flags = e->vectors ? SITE_VECTORS : 0,
    };
    return translator->site_count++;
}

struct site *emit_site_at(struct emitter *e, uint32_t index)
{
    return &e->translator->sites[index];
}

void emit_next(struct emitter *e, uint32_t first_site)
{
    for (uint32_t i = first_site; i < e->translator->site_count; i++)
        if ((e->translator->sites[i].flags & SITE_SHARED) == 0)
            e->translator->sites[i].next = writer_offset(&e->hot);
}

static struct call_page *page_of(const struct emitter *e,
                                 const struct code_writer *writer)
{
    return &e->translator->pages[writer_offset(writer) >> CODE_PAGE_SHIFT];
}

static void put_index(struct code_writer *writer, uint32_t *first, uint32_t index)
{
    int64_t distance;
    code_index bytes;

    if (*first == 0)
        *first = index;
    distance = (int64_t)index - *first;
    bytes = (code_index)distance;
    CHECK(bytes == distance);
    encode_bytes(writer, &bytes, sizeof(bytes));
}

uint32_t emit_site_call(struct emitter *e, struct code_writer *writer, uint32_t thunk,
                        uint32_t site)
{
    const uint32_t offset = writer_offset(writer);

    encode_call(writer, thunk);
    put_index(writer, &page_of(e, writer)->first_site, site);
    return offset;
}

uint32_t emit_cold_call(struct emitter *e, uint32_t thunk, uint32_t site)
{
    return emit_site_call(e, &e->cold, thunk, site);
}

uint32_t emit_link_stub(struct emitter *e, uint32_t thunk, uint32_t link)
{
    const uint32_t offset = writer_offset(&e->cold);

    encode_call(&e->cold, thunk);
    put_index(&e->cold, &page_of(e, &e->cold)->first_link, link);
    return offset;
}

/* ---- C ---- */

void emit_vectors(struct emitter *e)
{
    uint32_t cold;

    if (e->vectors)
        return;
    emit_spill_flags(e);
    cold = emit_cold_call(e, e->translator->vectors, emit_site(e));
    encode(&e->hot,
           &(struct host_instruction){.opcode = {0x80}, /* cmp byte, 0 */
                                      .opcode_bytes = 1,
                                      .reg = 7,
                                      .is_memory = true,
                                      .memory = STATE(translated.vectors_resident),
                                      .immediate_bytes = 1});
    encode_jump_if(&e->hot, CONDITION_E, cold);
    e->vectors = true;
    e->group.shared = false; /* C does not keep ADDRESS */
}

void emit_step(struct emitter *e, bool ends)
{
    uint32_t site;

    emit_flags_to_state(e);
    e->start = writer_offset(&e->hot);
    site = emit_site(e);
    (void)emit_site_call(e, &e->hot, e->translator->step, site);
    if (!ends)
        emit_next(e, site);
    e->flags = FLAGS_STATE;
}
