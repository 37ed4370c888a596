/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule translates which family of instructions. What has none is interpreted. */
#include <pthread.h>

#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"
#include "base/check.h"

static const struct {
    handler_select *family;
    translate_rule *rule;
} rules[] = {
    {select_move, rule_constant},
    {select_alu, rule_operate},
    {select_alu_unary, rule_operate},
    {select_shift, rule_operate},
    {select_shift_double, rule_operate},
    {select_move_extend, rule_operate},
    {select_move_accumulator, rule_operate},
    {select_move_condition, rule_operate},
    {select_set_condition, rule_operate},
    {select_lea, rule_lea},
    {select_exchange, rule_operate},
    {select_exchange_accumulator, rule_operate},
    {select_exchange_operate, rule_operate},
    {select_exchange_double, rule_operate},
    {select_imul, rule_operate},
    {select_multiply_wide, rule_divide},
    {select_bit_test, rule_bit_test},
    {select_bit_scan, rule_bit_scan},
    {select_bswap, rule_operate},
    {select_stack, rule_stack},
    {select_jump_condition, rule_jump_condition},
    {select_flow, rule_flow},
    {select_flow_indirect, rule_flow_indirect},
    {select_misc, rule_misc},
    {select_vector, rule_vector},
    {select_vector_masked, rule_vector},
    {select_vector_string, rule_vector},
    {select_emms, rule_vector},
    {select_x87, rule_vector},
    {select_x87_control, rule_vector},
    {select_system, rule_system},
    {select_syscall, rule_syscall},
};

/* The same by the number of a form: indices into `rules`, behind the last one where there
 * is none. */
#define FORMS_LIMIT 2048
static uint8_t rule_of_form[FORMS_LIMIT];
_Static_assert(ARRAY_SIZE(rules) <= UINT8_MAX, "an index is a byte");

static uint8_t rule_of(const struct form *form)
{
    uint8_t i = 0;

    while (i < ARRAY_SIZE(rules) && rules[i].family != form->select)
        i++;
    return i;
}

static void fill(void)
{
    const size_t count = soft_form_count();

    CHECK(count <= FORMS_LIMIT);
    for (size_t i = 0; i < count; i++)
        rule_of_form[i] = rule_of(soft_form(i));
}

void rules_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    CHECK(pthread_once(&once, fill) == 0);
}

translate_rule *rule_find(const struct instruction *instruction)
{
    const uint8_t i = rule_of_form[instruction->form_number];

    return i < ARRAY_SIZE(rules) ? rules[i].rule : NULL;
}
