/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule translates which family of instructions. What has none is interpreted. */
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"

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
};

translate_rule *rule_find(const struct form *form)
{
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        if (rules[i].family == form->select)
            return rules[i].rule;
    return NULL;
}
