/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule translates which family of instructions. What has none is interpreted. */
#include <pthread.h>

#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/emit_private.h"
#include "base/check.h"

static const struct {
    handler_select *family;
    translate_rule *rule;
    uint8_t address; /* enum address_fate */
} rules[] = {
    {select_move, rule_constant, ADDRESS_KEPT},
    {select_alu, rule_operate, ADDRESS_KEPT},
    {select_alu_unary, rule_operate, ADDRESS_KEPT},
    {select_shift, rule_operate, ADDRESS_KEPT},
    {select_shift_double, rule_operate, ADDRESS_KEPT},
    {select_move_extend, rule_operate, ADDRESS_KEPT},
    {select_move_accumulator, rule_operate, ADDRESS_KEPT},
    {select_move_condition, rule_operate, ADDRESS_KEPT},
    {select_set_condition, rule_operate, ADDRESS_KEPT},
    {select_lea, rule_lea, ADDRESS_KEPT},
    {select_exchange, rule_operate, ADDRESS_KEPT},
    {select_exchange_accumulator, rule_operate, ADDRESS_KEPT},
    {select_exchange_operate, rule_operate, ADDRESS_KEPT},
    {select_exchange_double, rule_operate, ADDRESS_KEPT},
    {select_imul, rule_operate, ADDRESS_KEPT},
    {select_multiply_wide, rule_divide, ADDRESS_LOST},
    {select_bit_test, rule_bit_test, ADDRESS_KEPT},
    {select_bit_scan, rule_bit_scan, ADDRESS_KEPT},
    {select_bswap, rule_operate, ADDRESS_KEPT},
    {select_stack, rule_stack, ADDRESS_KEPT},
    {select_jump_condition, rule_jump_condition, ADDRESS_KEPT},
    {select_flow, rule_flow, ADDRESS_LOST},
    {select_flow_indirect, rule_flow_indirect, ADDRESS_LOST},
    {select_misc, rule_misc, ADDRESS_KEPT},
    {select_vector, rule_vector, ADDRESS_KEPT_WITH_VECTORS},
    {select_vector_masked, rule_vector, ADDRESS_KEPT_WITH_VECTORS},
    {select_vector_string, rule_vector, ADDRESS_KEPT_WITH_VECTORS},
    {select_emms, rule_vector, ADDRESS_KEPT_WITH_VECTORS},
    {select_x87, rule_vector, ADDRESS_KEPT_WITH_VECTORS},
    {select_x87_control, rule_vector, ADDRESS_KEPT_WITH_VECTORS},
    {select_system, rule_system, ADDRESS_LOST},
    {select_syscall, rule_syscall, ADDRESS_LOST},
};

struct form_facts form_facts[FORMS_LIMIT];
_Static_assert(ARRAY_SIZE(rules) <= UINT8_MAX, "an index is a byte");

static uint8_t rule_of(const struct form *form)
{
    uint8_t i = 0;

    while (i < ARRAY_SIZE(rules) && rules[i].family != form->select)
        i++;
    return i;
}

static void find_written(const struct form *form, struct form_facts *facts)
{
    const uint8_t operand = form->operands[0];

    if (form->select == select_stack && form->variant != STACK_POP_REGISTER) {
        if (form->variant == STACK_LEAVE)
            facts->written = 1u << X86_RSP | 1u << X86_RBP;
        return;
    }
    if (form->select == select_multiply_wide)
        facts->written = 1u << X86_RAX | 1u << X86_RDX;
    if (form->select == select_multiply_wide || (form->attributes & FORM_READS) != 0 ||
        (form->select == select_alu &&
         (form->variant == ALU_CMP || form->variant == ALU_TEST)))
        return;
    facts->writes_rm = operand >= OPERAND_E && operand <= OPERAND_E64;
    facts->writes_reg =
        (operand >= OPERAND_G && operand <= OPERAND_G64) || operand == OPERAND_O;
    if (operand == OPERAND_A)
        facts->written = 1u << X86_RAX;
}

static void fill(void)
{
    const size_t count = soft_form_count();

    CHECK(count <= FORMS_LIMIT);
    for (size_t i = 0; i < count; i++) {
        struct form_facts *facts = &form_facts[i];

        facts->rule = rule_of(soft_form(i));
        if (facts->rule < ARRAY_SIZE(rules))
            facts->address = rules[facts->rule].address;
        find_written(soft_form(i), facts);
    }
}

void rules_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    CHECK(pthread_once(&once, fill) == 0);
}

translate_rule *rule_find(const struct instruction *instruction)
{
    const uint8_t i = form_facts[instruction->form_number].rule;

    return i < ARRAY_SIZE(rules) ? rules[i].rule : NULL;
}
