/* SPDX-License-Identifier: Apache-2.0 */
/* Takes guest instructions apart; see raw_private.h. 64-bit code without VEX only. */
#include "accel/soft/translator/raw_private.h"

#include <string.h>

#include "base/check.h"

#define PREFIX_OPERAND 0x66

static bool is_legacy_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case PREFIX_OPERAND:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
        return true;
    default:
        return false;
    }
}

/* Legacy prefixes and REX; returns how many bytes. */
static unsigned take_prefixes(struct host_instruction *raw,
                              const struct instruction *instruction, const uint8_t *bytes)
{
    bool repeats =
        instruction->form->prefix == PREFIX_F2 || instruction->form->prefix == PREFIX_F3;
    unsigned at = 0;

    for (;; at++) {
        bool rex = (bytes[at] & 0xf0) == 0x40;

        if (!rex && !is_legacy_prefix(bytes[at]))
            return at;
        raw->wide = rex && (bytes[at] & 8) != 0;
        if (bytes[at] == PREFIX_OPERAND)
            raw->prefix_66 = PREFIX_OPERAND;
        if (repeats && (bytes[at] == 0xf2 || bytes[at] == 0xf3))
            raw->prefix_repeat = bytes[at];
    }
}

/* Bytes of ModRM, SIB and displacement (SDM table 2-2, 64-bit code). */
static unsigned modrm_bytes(const uint8_t *bytes)
{
    unsigned mod = bytes[0] >> 6;
    unsigned rm = bytes[0] & 7;
    unsigned count = 1;

    if (mod == 3)
        return count;
    if (rm == 4) {
        count++;
        if (mod == 0 && (bytes[1] & 7) == 5)
            count += 4;
    }
    if (mod == 0)
        return rm == 5 ? count + 4 : count;
    return count + (mod == 1 ? 1 : 4);
}

struct host_instruction raw_parse(const struct instruction *instruction,
                                  const uint8_t *bytes)
{
    static const uint8_t opcode_bytes[] = {
        [MAP_ONE] = 1, [MAP_0F] = 2, [MAP_0F38] = 3, [MAP_0F3A] = 3};
    const struct form *form = instruction->form;
    struct host_instruction raw = {
        .lock = instruction->lock,
        .reg = form->extension >= 0 ? (uint8_t)form->extension : instruction->reg,
        .rm = instruction->rm,
    };
    unsigned at = take_prefixes(&raw, instruction, bytes);

    raw.opcode_bytes = opcode_bytes[instruction->form->map];
    memcpy(raw.opcode, bytes + at, raw.opcode_bytes);
    at += raw.opcode_bytes;
    if (instruction->has_modrm) {
        at += modrm_bytes(bytes + at);
    }
    CHECK(instruction->length - at <= sizeof(raw.immediate));
    raw.immediate_bytes = (uint8_t)(instruction->length - at);
    memcpy(&raw.immediate, bytes + at, raw.immediate_bytes);
    return raw;
}
