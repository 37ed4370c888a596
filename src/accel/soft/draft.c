/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes what is to become a block; see draft_private.h. */
#include "accel/soft/draft_private.h"

#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/soft_private.h"
#include "base/check.h"

void draft_open(struct draft *draft, struct soft_cpu *cpu, uint64_t gpa, uint32_t mode)
{
    draft->cpu = cpu;
    draft->mode = mode;
    draft->gpa = gpa;
    draft->next_gpa = BLOCK_ONE_PAGE;
    draft->placed = false;
    draft->has_moved = false;
    draft->page_bytes = soft_vm_page(cpu->vm, gpa);
    draft->page_left = X86_PAGE_BYTES - gpa % X86_PAGE_BYTES;
    draft->used = 0;
    draft->looked_at = 0;
    draft->count = 0;
    /* No RAM there: reads give ff, and ff ff is undefined. */
    draft->end = draft->page_bytes == NULL ? END_UNDEFINED : END_FALLTHROUGH;
    draft->byte_count = 0;
    draft->byte_limit = 0;
    if (draft->page_bytes == NULL)
        return;
    draft->page_bytes += gpa % X86_PAGE_BYTES;
    draft->byte_limit =
        (mode & MODE_SINGLE) != 0 ? INSTRUCTION_LIMIT : sizeof(draft->bytes);
    draft->byte_limit = (size_t)min_u64(draft->byte_limit, draft->page_left);
}

uint16_t draft_bytes(const struct draft *draft)
{
    return (uint16_t)max_u64(max_u64(draft->used, draft->looked_at), 1);
}

/* Copies more bytes, up to the next that are marked by themselves. False: there are none.
 */
static bool read_more(struct draft *draft)
{
    const uint64_t gpa = draft->gpa + draft->byte_count;
    const size_t more = (size_t)min_u64(CODE_MARK_BYTES - gpa % CODE_MARK_BYTES,
                                        draft->byte_limit - draft->byte_count);

    if (more == 0)
        return false;
    code_pages_mark(&draft->cpu->vm->code_pages, gpa, (unsigned)more);
    memcpy(draft->bytes + draft->byte_count, draft->page_bytes + draft->byte_count, more);
    draft->byte_count += more;
    return true;
}

/* ---- fetch and decode
 * --------------------------------------------------------------------------- */

static uint64_t next_page(const struct draft *draft)
{
    struct soft_cpu *cpu = draft->cpu;

    if (draft->placed)
        return draft->next_gpa;
    return soft_translate(cpu, NULL, soft_code_linear(cpu, cpu->rip + draft->page_left),
                          ACCESS_EXECUTE, cpu->cpl == 3);
}

/* The first instruction runs into the next page: its bytes there are copied, too. */
static enum decode_result decode_across(struct draft *draft,
                                        struct instruction *instruction)
{
    struct soft_cpu *cpu = draft->cpu;
    uint8_t *behind = draft->bytes + draft->byte_count;
    const uint8_t *next;
    uint64_t next_gpa = next_page(draft);

    CHECK(draft->used == 0 && draft->byte_count <= INSTRUCTION_LIMIT);
    if (!draft->placed) /* a full arena is noticed soon enough */
        (void)block_cache_claim(cpu, cpu->blocks, next_gpa);
    next = soft_vm_page(cpu->vm, next_gpa);
    if (next == NULL) {
        memset(behind, 0xff, INSTRUCTION_LIMIT); /* as outside RAM is read */
    } else {
        code_pages_mark(&cpu->vm->code_pages, next_gpa, INSTRUCTION_LIMIT);
        memcpy(behind, next + next_gpa % X86_PAGE_BYTES, INSTRUCTION_LIMIT);
    }
    draft->next_gpa = next_gpa;
    return soft_decode(draft->bytes, draft->byte_count + INSTRUCTION_LIMIT,
                       draft_rip(draft), draft->mode, instruction);
}

bool draft_add(struct draft *draft)
{
    struct instruction *instruction = &draft->instructions[draft->count];
    enum decode_result result;

    if (draft->byte_count == draft->used)
        (void)read_more(draft);
    do
        result = soft_decode(draft->bytes + draft->used, draft->byte_count - draft->used,
                             draft_rip(draft), draft->mode, instruction);
    while (result == DECODE_MORE && read_more(draft));
    if (draft->count == 0 && draft->placed) {
        draft->has_moved = (result == DECODE_MORE) != (draft->next_gpa != BLOCK_ONE_PAGE);
        if (draft->has_moved)
            return false;
    }
    if (result == DECODE_MORE && draft->count == 0)
        result = decode_across(draft, instruction);
    if (result != DECODE_OK && draft->count > 0)
        return false; /* it gets a block of its own, and faults there */
    if (result == DECODE_OK) {
        draft->used += instruction->length;
        draft->count++;
        return true;
    }
    draft->end = result == DECODE_TOO_LONG ? END_TOO_LONG : END_UNDEFINED;
    draft->looked_at =
        result == DECODE_TOO_LONG ? INSTRUCTION_LIMIT : instruction->length;
    return false;
}

void draft_decode(struct draft *draft)
{
    size_t limit = (draft->mode & MODE_SINGLE) != 0 ? 1 : BLOCK_LIMIT;

    if (draft->page_bytes == NULL)
        return;
    while (draft->count < limit && draft->used < draft->page_left && draft_add(draft)) {
        const struct instruction *last = &draft->instructions[draft->count - 1];

        if ((last->form->attributes & FORM_ENDS) != 0) {
            if ((last->form->attributes & FORM_CONDITIONAL) == 0)
                draft->end = END_BRANCH;
            break;
        }
    }
    if (draft->end == END_FALLTHROUGH && draft->used >= draft->page_left)
        draft->end = END_FALLTHROUGH_SEARCHED;
}

void draft_shorten(struct draft *draft, size_t count)
{
    const struct instruction *last = &draft->instructions[count - 1];

    CHECK(count > 0 && count <= draft->count);
    draft->used = (size_t)(last->rip + last->length - draft->cpu->rip);
    draft->count = count;
    draft->end = END_FALLTHROUGH;
}

/* ---- flags
 * ----------------------------------------------------------------------------------------
 */

static bool may_fault(const struct instruction *instruction)
{
    bool accesses =
        instruction->memory && (instruction->form->attributes & FORM_OFFSET_ONLY) == 0;

    return (instruction->form->attributes & FORM_PURE) == 0 || accesses;
}

/* Backwards from the end, where all flags are live: a flag is dead where it is written
 * again before anything reads it. Whatever may fault reads all, since the handler sees
 * them. */
void draft_find_dead_flags(struct draft *draft)
{
    unsigned live = FLAGS_ARITHMETIC;

    for (size_t i = draft->count; i-- > 0;) {
        const struct instruction *instruction = &draft->instructions[i];
        unsigned written = draft_written_flags(instruction);

        draft->flags_dead[i] = (written & live) == 0;
        live = (live & ~written) | instruction->form->flags.read;
        if (may_fault(instruction))
            live = FLAGS_ARITHMETIC;
    }
}
