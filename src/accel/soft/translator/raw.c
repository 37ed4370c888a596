/* SPDX-License-Identifier: Apache-2.0 */
/* Takes guest instructions apart; see raw_private.h. */
#include "accel/soft/translator/raw_private.h"

#include <string.h>

/* What opcodes of a map begin with, and how many bytes they have (SDM vol. 2, 2.1.2). */
static const struct {
    uint8_t opcode[3];
    uint8_t opcode_bytes;
} maps[] = {
    [MAP_ONE] = {{0}, 1},
    [MAP_0F] = {{0x0f}, 2},
    [MAP_0F38] = {{0x0f, 0x38}, 3},
    [MAP_0F3A] = {{0x0f, 0x3a}, 3},
};

struct host_instruction raw_parse(const struct instruction *instruction)
{
    static const uint8_t repeats[PREFIX_NFX + 1] = {
        [PREFIX_F2] = 0xf2, [PREFIX_F3] = 0xf3};
    const struct form *form = instruction->form;
    struct host_instruction raw = {
        .prefix_66 = instruction->operand_prefix ? 0x66 : 0,
        .prefix_repeat = repeats[form->prefix],
        .lock = instruction->lock,
        .wide = instruction->rex_w,
        .reg = form->extension >= 0 ? (uint8_t)form->extension : instruction->reg,
        .rm = instruction->rm,
        .immediate_bytes = instruction->immediate_bytes,
        .immediate = instruction->immediate,
    };

    raw.opcode_bytes = maps[form->map].opcode_bytes;
    memcpy(raw.opcode, maps[form->map].opcode, sizeof(raw.opcode));
    raw.opcode[raw.opcode_bytes - 1] = instruction->opcode;
    return raw;
}
