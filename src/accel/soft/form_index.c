/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the index over the tables of forms; see form_index_private.h. */
#include "accel/soft/form_index_private.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"

/* ---- what a row says ---- */

static bool has_operand(const struct form *form, enum operand operand)
{
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (form->operands[i] == operand)
            return true;
    return false;
}

static bool is_immediate(uint8_t operand)
{
    return operand >= OPERAND_I8 && operand <= OPERAND_FAR;
}

/* Immediate number `which` in the order of the operands, which is that of the bytes. */
static uint8_t immediate_operand(const struct form *form, unsigned which)
{
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (is_immediate(form->operands[i]) && which-- == 0)
            return form->operands[i];
    return OPERAND_NONE;
}

/* Bytes of the memory operand, 0 where it has the operand size. */
static uint8_t memory_size(const struct form *form)
{
    static const uint8_t sizes[] = {
        [OPERAND_E8] = 1, [OPERAND_E16] = 2, [OPERAND_E32] = 4, [OPERAND_E64] = 8,
        [OPERAND_W] = 16, [OPERAND_W16] = 2, [OPERAND_W32] = 4, [OPERAND_W64] = 8,
        [OPERAND_Q] = 8,  [OPERAND_Q32] = 4,
    };

    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (form->operands[i] < ARRAY_SIZE(sizes) && sizes[form->operands[i]] != 0)
            return sizes[form->operands[i]];
    return form->size == SIZE_NONE ? 8 : 0;
}

static bool is_rm_operand(uint8_t operand)
{
    return (operand >= OPERAND_E && operand <= OPERAND_E64) || operand == OPERAND_M;
}

static uint32_t situations_of(const struct form *form)
{
    static const uint8_t mandatory[] = {
        [PREFIX_ANY] = 1 << MANDATORY_NONE | 1 << MANDATORY_66 | 1 << MANDATORY_F3 |
                       1 << MANDATORY_F2,
        [PREFIX_NONE] = 1 << MANDATORY_NONE,
        [PREFIX_66] = 1 << MANDATORY_66,
        [PREFIX_F3] = 1 << MANDATORY_F3,
        [PREFIX_F2] = 1 << MANDATORY_F2,
        [PREFIX_NFX] = 1 << MANDATORY_NONE | 1 << MANDATORY_66,
    };
    const uint32_t not_in[CLASS_COUNT] = {
        [CLASS_64] = FORM_NOT_64,
        [CLASS_PROTECTED] = FORM_ONLY_64,
        [CLASS_REAL] = FORM_ONLY_64 | FORM_PROTECTED,
    };
    bool vex = (form->attributes & FORM_VEX) != 0;
    uint32_t situations = 0;

    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        for (unsigned prefix = 0; prefix < MANDATORY_COUNT; prefix++)
            if ((form->attributes & not_in[class]) == 0 &&
                (mandatory[form->prefix] >> prefix & 1) != 0)
                situations |= form_situation((enum code_class) class, vex, prefix);
    return situations;
}

static struct form_entry make_entry(const struct form *form)
{
    return (struct form_entry){
        .form = form,
        .situations = situations_of(form),
        .rm = form->rm,
        .size = form->size,
        .immediate = immediate_operand(form, 0),
        .immediate2 = immediate_operand(form, 1),
        .constant = has_operand(form, OPERAND_ONE),
        .memory_size = memory_size(form),
        .mandatory_66 = form->prefix == PREFIX_66,
        .ignores_mod = has_operand(form, OPERAND_C) || has_operand(form, OPERAND_D),
        .opcode_register = has_operand(form, OPERAND_O),
        .segment_register = has_operand(form, OPERAND_S),
        .narrow_reg = has_operand(form, OPERAND_S) || has_operand(form, OPERAND_P),
        .narrow_rm = has_operand(form, OPERAND_Q) || has_operand(form, OPERAND_Q32) ||
                     (form->attributes & FORM_X87) != 0,
        .lock = (form->attributes & FORM_LOCK) != 0 && is_rm_operand(form->operands[0]),
        .moffs = has_operand(form, OPERAND_OFFSET),
        .repeats = (form->attributes & (FORM_REP | FORM_REPZ)) != 0,
    };
}

/* A row that says two things at once would be found only by the guest that runs it. */
static void check_row(const struct form *form)
{
    CHECK(form->map < OPCODE_MAP_COUNT);
    CHECK(form->opcode_count > 0 && form->opcode + form->opcode_count <= 256);
    CHECK(form->mnemonic != NULL && form->select != NULL);
    CHECK(form->extension >= -1 && form->extension < 8 && form->rm >= -1 && form->rm < 8);
    CHECK(form->modrm != MODRM_ABSENT || (form->extension < 0 && form->rm < 0));
    CHECK(form->rm < 0 || form->modrm == MODRM_REGISTER);
    CHECK(immediate_operand(form, 2) == OPERAND_NONE);
    for (size_t i = 1; i < ARRAY_SIZE(form->operands); i++)
        CHECK(form->operands[i] == OPERAND_NONE || form->operands[i - 1] != OPERAND_NONE);
}

/* ---- slots ---- */

static bool depends_on_modrm(const struct form_entry *entry)
{
    return !entry->ignores_mod &&
           (entry->form->extension >= 0 || entry->form->modrm == MODRM_MEMORY ||
            entry->form->modrm == MODRM_REGISTER);
}

static bool fits_slot(const struct form_entry *entry, unsigned slot)
{
    const struct form *form = entry->form;

    if (form->extension >= 0 && (unsigned)form->extension != slot % 8)
        return false;
    if (form->modrm == MODRM_ANY || entry->ignores_mod)
        return true;
    return (slot >= 8) == (form->modrm == MODRM_REGISTER);
}

/* About as many as there are of each; the first guest instruction waits for the index. */
#define FIRST_ITEMS 4096

/* Grows an array by one item of `size` bytes; doubles at powers of two. */
static void *grow(void *array, size_t count, size_t size)
{
    if (count != 0 && (count < FIRST_ITEMS || (count & (count - 1)) != 0))
        return array;
    array = realloc(array, (count == 0 ? FIRST_ITEMS : count * 2) * size);
    CHECK(array != NULL);
    return array;
}

/* The forms of each opcode: indices into `entries`, sorted by opcode, then in table
 * order. Opcodes are numbered through all maps. */
#define OPCODE_COUNT ((size_t)OPCODE_MAP_COUNT * 256)
struct members {
    uint16_t *entries;
    size_t first[OPCODE_COUNT + 1];
};

static size_t opcode_number(const struct form *form, unsigned nth)
{
    return form->map * 256u + form->opcode + nth;
}

static void members_init(struct members *members, const struct form_index *index)
{
    size_t next[OPCODE_COUNT];

    *members = (struct members){.entries = NULL};
    for (size_t i = 0; i < index->entry_count; i++)
        for (unsigned nth = 0; nth < index->entries[i].form->opcode_count; nth++)
            members->first[opcode_number(index->entries[i].form, nth) + 1]++;
    for (size_t i = 0; i < OPCODE_COUNT; i++) {
        members->first[i + 1] += members->first[i];
        next[i] = members->first[i];
    }
    members->entries = malloc((members->first[OPCODE_COUNT] + 1) * sizeof(uint16_t));
    CHECK(members->entries != NULL);
    for (size_t i = 0; i < index->entry_count; i++)
        for (unsigned nth = 0; nth < index->entries[i].form->opcode_count; nth++)
            members->entries[next[opcode_number(index->entries[i].form, nth)]++] =
                (uint16_t)i;
}

struct counts {
    size_t slots;
    size_t candidates;
};

static void add_candidate(struct form_index *index, struct counts *counts, uint16_t entry)
{
    index->candidates = grow(index->candidates, counts->candidates, sizeof(uint16_t));
    index->candidates[counts->candidates++] = entry;
    CHECK(counts->candidates <= UINT16_MAX);
}

/* Slot `place` of an opcode: those of its `count` forms that fit there. */
static void add_slot(struct form_index *index, struct counts *counts,
                     const uint16_t *forms, size_t count,
                     const struct form_opcode *opcode, unsigned place)
{
    size_t first = counts->candidates;

    for (size_t i = 0; i < count; i++)
        if (!opcode->by_modrm || fits_slot(&index->entries[forms[i]], place))
            add_candidate(index, counts, forms[i]);
    CHECK(counts->slots < UINT16_MAX);
    index->slots = grow(index->slots, counts->slots, sizeof(struct form_slot));
    index->slots[counts->slots++] = (struct form_slot){
        .first = (uint16_t)first, .count = (uint16_t)(counts->candidates - first)};
}

static void add_opcode(struct form_index *index, struct counts *counts,
                       struct form_opcode *opcode, const uint16_t *forms, size_t count)
{
    *opcode = (struct form_opcode){.slot = (uint32_t)counts->slots, .known = count > 0};
    for (size_t i = 0; i < count; i++) {
        const struct form_entry *entry = &index->entries[forms[i]];

        opcode->has_modrm |= entry->form->modrm != MODRM_ABSENT;
        opcode->by_modrm |= depends_on_modrm(entry);
    }
    if (!opcode->known)
        return;
    for (unsigned place = 0; place < (opcode->by_modrm ? FORM_SLOTS_BY_MODRM : 1u);
         place++)
        add_slot(index, counts, forms, count, opcode, place);
}

static void add_entries(struct form_index *index, const struct form_table *tables,
                        size_t table_count)
{
    for (size_t table = 0; table < table_count; table++) {
        for (size_t i = 0; i < tables[table].count; i++) {
            check_row(&tables[table].forms[i]);
            index->entries =
                grow(index->entries, index->entry_count, sizeof(struct form_entry));
            index->entries[index->entry_count++] = make_entry(&tables[table].forms[i]);
        }
    }
    CHECK(index->entry_count <= UINT16_MAX);
}

void form_index_init(struct form_index *index, const struct form_table *tables,
                     size_t table_count)
{
    struct counts counts = {0, 0};
    struct members members;

    *index = (struct form_index){.entry_count = 0};
    add_entries(index, tables, table_count);
    members_init(&members, index);
    for (size_t number = 0; number < OPCODE_COUNT; number++)
        add_opcode(index, &counts, &index->opcodes[number / 256][number % 256],
                   &members.entries[members.first[number]],
                   members.first[number + 1] - members.first[number]);
    free(members.entries);
}

void form_index_finish(struct form_index *index)
{
    free(index->slots);
    free(index->candidates);
    free(index->entries);
    *index = (struct form_index){.entry_count = 0};
}
