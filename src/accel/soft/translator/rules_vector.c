/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x87, MMX and SSE: the guest's own instructions, on the host's registers. The first one
 * of a block looks whether they are there.
 */
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/rules_private.h"
#include "accel/soft/translator/vectors_private.h"

static bool is_family(const struct form *form)
{
    if (form->select == select_vector || form->select == select_vector_masked ||
        form->select == select_vector_string || form->select == select_emms ||
        form->select == select_x87)
        return true;
    /* Those that change masks, or show all of the state, are the interpreter's. */
    return form->select == select_x87_control &&
           (form->variant == X87_FNSTCW || form->variant == X87_FNSTSW ||
            form->variant == X87_FNSTSW_AX || form->variant == X87_NOTHING ||
            form->variant == X87_FNCLEX);
}

static bool is_native(const struct instruction *instruction)
{
    const uint32_t off = MODE_NO_FPU | MODE_NO_SSE;

    return is_family(instruction->form) && (instruction->mode & off) == 0 &&
           vectors_supported();
}

bool rule_vector(struct emitter *e)
{
    if (!is_native(e->instruction))
        return false;
    emit_vectors(e);
    return rule_operate(e);
}
