/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which flags somebody will read: backwards through a block, and ahead into the code that
 * its branches go to, as far as that lies in the same page. A block depends on all bytes
 * that were looked at.
 *
 * Other than in the interpreter's blocks, an instruction that may fault does not make
 * flags live: the frame of a fault shows flags that are up to date only where the code
 * behind the fault needs them.
 */
#include "accel/soft/handlers_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/emit_private.h"

/* Instructions, and conditional branches of which both ways are followed. */
#define LOOK_INSTRUCTIONS 16
#define LOOK_BRANCHES 2

struct look {
    struct emitter *e;
    const uint8_t *page;
    uint64_t page_gpa;
    unsigned instructions_left;
};

static bool look_decode(struct look *look, uint64_t rip, struct instruction *instruction)
{
    const size_t at = rip % X86_PAGE_BYTES;
    size_t end = at;
    enum decode_result result;

    if (look->instructions_left == 0)
        return false;
    look->instructions_left--;
    do {
        end = (size_t)align_up(end + 1, CODE_MARK_BYTES);
        code_pages_mark(&look->e->cpu->vm->code_pages, look->page_gpa + at,
                        (unsigned)(end - at));
        result = soft_decode(look->page + at, end - at, rip, look->e->draft->mode,
                             instruction);
    } while (result == DECODE_MORE && end < X86_PAGE_BYTES);
    if (result != DECODE_OK)
        return false;
    look->e->granules |= block_granules(at, instruction->length);
    return true;
}

static bool is_jump(const struct instruction *instruction)
{
    return instruction->form->select == select_flow &&
           instruction->form->variant == FLOW_JUMP;
}

static unsigned look_from(struct look *look, uint64_t rip, unsigned branches)
{
    unsigned pending = FLAGS_ARITHMETIC; /* not written so far */
    unsigned read = 0;
    struct instruction instruction;

    while (pending != 0 && emit_is_same_page(look->e, rip) &&
           look_decode(look, rip, &instruction)) {
        read |= flags_read(&instruction, pending) & pending;
        pending &= ~draft_written_flags(&instruction);
        rip += instruction.length;
        if ((instruction.form->attributes & FORM_ENDS) == 0)
            continue;
        if (is_jump(&instruction))
            rip = instruction.immediate;
        else if (instruction.form->select == select_jump_condition && branches > 0)
            read |= pending & look_from(look, instruction.immediate, --branches);
        else
            return read | pending;
    }
    return read | pending;
}

unsigned look_ahead(struct emitter *e, uint64_t target)
{
    struct look look = {.e = e,
                        .page = e->draft->page_bytes - e->draft->gpa % X86_PAGE_BYTES,
                        .page_gpa = align_down(e->draft->gpa, X86_PAGE_BYTES),
                        .instructions_left = LOOK_INSTRUCTIONS};

    if (e->cpu->lockstep != NULL)
        return FLAGS_ARITHMETIC; /* all are compared */
    return look_from(&look, target, LOOK_BRANCHES);
}

/* ---- through the block ---- */

/* Flags live behind the last instruction, if it ends the block by itself. */
static unsigned live_at_end(struct emitter *e, size_t last)
{
    const struct instruction *instruction = &e->draft->instructions[last];

    if (instruction->form->select != select_flow)
        return FLAGS_ARITHMETIC;
    e->live_there[last] = (uint16_t)look_ahead(e, instruction->immediate);
    return e->live_there[last];
}

void find_live_flags(struct emitter *e)
{
    const struct draft *draft = e->draft;
    unsigned live;

    if (draft->end == END_BRANCH) {
        live = live_at_end(e, draft->count - 1);
    } else {
        live = look_ahead(e, draft_rip(draft));
        e->live_behind = (uint16_t)live;
    }
    for (size_t i = draft->count; i-- > 0;) {
        const struct instruction *instruction = &draft->instructions[i];

        if (instruction->form->select == select_jump_condition) {
            e->live_there[i] = (uint16_t)look_ahead(e, instruction->immediate);
            live |= e->live_there[i];
        }
        e->live_out[i] = (uint16_t)live;
        live = (live & ~draft_written_flags(instruction)) | flags_read(instruction, live);
        e->live_in[i] = (uint16_t)(live & FLAGS_ARITHMETIC);
    }
}
