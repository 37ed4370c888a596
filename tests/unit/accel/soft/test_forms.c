/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of forms as a whole: every opcode with every ModRM byte, under the prefixes
 * and modes that matter, must find a handler or be undefined; and every row must be found
 * by some bytes, else an earlier one hides it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/instruction_private.h"
#include "base/bytes.h"

static const uint32_t modes[] = {
    MODE_CODE64 | MODE_LONG | MODE_PROTECTED,
    MODE_CODE32 | MODE_STACK32 | MODE_PROTECTED,
    MODE_PROTECTED,
    0,
};

/* Bytes before the opcode, the escapes of its map among them. */
struct start {
    size_t size;
    uint8_t bytes[3];
};
static const struct start prefixes[] = {
    {0, {0}}, {1, {0x66}}, {1, {0xf3}}, {1, {0xf2}}, {1, {0xf0}}, {1, {0x67}},
};
static const struct start rexes[] = {{0, {0}}, {1, {0x48}}, {1, {0x45}}};
static const struct start escapes[] = {
    [MAP_ONE] = {0, {0}},
    [MAP_0F] = {1, {0x0f}},
    [MAP_0F38] = {2, {0x0f, 0x38}},
    [MAP_0F3A] = {2, {0x0f, 0x3a}},
};

struct survey {
    uint64_t *found; /* by form: how often */
    uint64_t without_handler;
};

/* Neighbouring bytes tend to be of one form, so the search starts where it last ended. */
static size_t form_number(const struct form *form)
{
    static size_t last;

    for (size_t i = 0; i < soft_form_count(); i++) {
        if (soft_form(last) == form)
            return last;
        last = (last + 1) % soft_form_count();
    }
    fail_msg("a form that is in no table");
    return 0;
}

static void report(const struct instruction *instruction, const uint8_t *bytes)
{
    print_message("%s has no handler:", instruction->form->mnemonic);
    for (unsigned i = 0; i < instruction->length; i++)
        print_message(" %02x", bytes[i]);
    print_message(" (mode %x)\n", instruction->mode);
}

static void look(struct survey *survey, const uint8_t *bytes, uint32_t mode)
{
    struct instruction instruction;
    const struct form *form;

    if (soft_decode(bytes, INSTRUCTION_LIMIT, 0x1000, mode, &instruction) != DECODE_OK)
        return;
    form = instruction.form;
    survey->found[form_number(form)]++;
    if (form->select(&instruction, false) == NULL ||
        form->select(&instruction, true) == NULL) {
        if (survey->without_handler++ < 20)
            report(&instruction, bytes);
    }
}

static uint8_t *append(uint8_t *to, const struct start *start)
{
    memcpy(to, start->bytes, start->size);
    return to + start->size;
}

/* All opcodes and ModRM bytes of a map behind one prefix and REX. */
static void look_at_map(struct survey *survey, const struct start *prefix,
                        const struct start *rex, const struct start *escape,
                        uint32_t mode)
{
    uint8_t bytes[32] = {0};
    uint8_t *opcode = append(append(append(bytes, prefix), rex), escape);

    for (unsigned number = 0; number < 256; number++) {
        opcode[0] = (uint8_t)number;
        for (unsigned modrm = 0; modrm < 256; modrm++) {
            opcode[1] = (uint8_t)modrm;
            look(survey, bytes, mode);
        }
    }
}

static void look_at_all(struct survey *survey, uint32_t mode)
{
    bool code64 = (mode & MODE_CODE64) != 0;

    for (size_t prefix = 0; prefix < ARRAY_SIZE(prefixes); prefix++)
        for (size_t rex = 0; rex < (code64 ? ARRAY_SIZE(rexes) : 1); rex++)
            for (size_t map = 0; map < ARRAY_SIZE(escapes); map++)
                look_at_map(survey, &prefixes[prefix], &rexes[rex], &escapes[map], mode);
}

static void every_form_is_found_and_has_a_handler(void **state)
{
    struct survey survey = {.found = calloc(soft_form_count(), sizeof(uint64_t))};
    unsigned hidden = 0;

    (void)state;
    assert_non_null(survey.found);
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        look_at_all(&survey, modes[i]);
    for (size_t i = 0; i < soft_form_count(); i++) {
        const struct form *form = soft_form(i);

        if (survey.found[i] != 0)
            continue;
        hidden++;
        print_message("no bytes lead to the row %s (map %u, opcode %02x, extension %d)\n",
                      form->mnemonic, form->map, form->opcode, form->extension);
    }
    free(survey.found);
    assert_int_equal(survey.without_handler, 0);
    assert_int_equal(hidden, 0);
}

/* What a row says about flags: undefined ones are written ones. */
static void undefined_flags_are_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < soft_form_count(); i++) {
        const struct form *form = soft_form(i);

        if ((form->flags.undefined & ~form->flags.written) != 0)
            fail_msg("%s (opcode %02x): an undefined flag is not among the written",
                     form->mnemonic, form->opcode);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_found_and_has_a_handler),
        cmocka_unit_test(undefined_flags_are_written),
    };

    return cmocka_run_group_tests_name("soft forms", tests, NULL, NULL);
}
