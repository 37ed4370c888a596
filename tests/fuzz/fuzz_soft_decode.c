/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the instruction decoder on any bytes in each mode. It never looks beyond
 * the bytes it says it needs, an instruction has at most 15 of them, and the same bytes
 * give the same result.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "accel/soft/cpu_private.h"
#include "accel/soft/instruction_private.h"
#include "base/bytes.h"
#include "base/check.h"

#define RIP UINT64_C(0xfffffffffffffff8) /* so that the next instruction wraps */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct instruction *a, const struct instruction *b)
{
    return a->form == b->form && a->length == b->length && a->immediate == b->immediate &&
           a->immediate2 == b->immediate2 && a->displacement == b->displacement &&
           a->base == b->base && a->index == b->index && a->reg == b->reg &&
           a->rm == b->rm && a->segment == b->segment &&
           a->operand_size == b->operand_size && a->memory == b->memory;
}

/* Registers and sizes index arrays later. */
static void check_ranges(const struct instruction *instruction)
{
    CHECK(instruction->length > 0 && instruction->length <= INSTRUCTION_LIMIT);
    CHECK(instruction->form != NULL);
    CHECK(instruction->reg < X86_REGISTER_COUNT && instruction->rm < X86_REGISTER_COUNT);
    CHECK(instruction->base <= SOFT_ZERO && instruction->index <= SOFT_ZERO);
    CHECK(instruction->scale <= 3 && instruction->segment <= X86_GS);
    CHECK(instruction->operand_size <= 8 && instruction->address_size <= 8);
}

/* Decodes from a copy of exactly `size` bytes, so that the sanitizer sees any read
 * beyond. */
static enum decode_result decode_copy(const uint8_t *data, size_t size, uint32_t mode,
                                      struct instruction *instruction)
{
    uint8_t *copy = malloc(size + 1);
    enum decode_result result;

    CHECK(copy != NULL);
    memcpy(copy + 1, data, size);
    result = soft_decode(copy + 1, size, RIP, mode, instruction);
    free(copy);
    return result;
}

static void check_mode(const uint8_t *data, size_t size, uint32_t mode)
{
    struct instruction whole, part;
    enum decode_result result = decode_copy(data, size, mode, &whole);
    size_t needed = INSTRUCTION_LIMIT;

    if (result == DECODE_MORE) {
        CHECK(size < INSTRUCTION_LIMIT);
        return;
    }
    if (result == DECODE_OK)
        check_ranges(&whole);
    if (result == DECODE_OK || result == DECODE_UNDEFINED)
        needed = whole.length;
    CHECK(needed <= INSTRUCTION_LIMIT && needed <= size);
    for (size_t i = 0; i < needed; i++)
        CHECK(decode_copy(data, i, mode, &part) == DECODE_MORE);
    CHECK(decode_copy(data, needed, mode, &part) == result);
    CHECK(result != DECODE_OK || same(&whole, &part));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t modes[] = {
        MODE_CODE64 | MODE_LONG | MODE_PROTECTED,
        MODE_CODE32 | MODE_STACK32 | MODE_PROTECTED | MODE_LONG,
        MODE_PROTECTED,
        MODE_PROTECTED | MODE_VIRTUAL86,
        0,
    };

    for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
        check_mode(data, size, modes[i]);
    return 0;
}
