/* SPDX-License-Identifier: Apache-2.0 */
/* An interpreter's loop: one switch, whose jump goes another way each time. */
#include "programs.h"

#define LIMIT 900000

enum operation {
    PUSH,
    ADD,
    SUBTRACT,
    MULTIPLY,
    AND,
    LESS,
    DUPLICATE,
    LOAD,
    STORE,
    JUMP_IF
};

/* Adds up the numbers below LIMIT, those with an odd quarter multiplied by three:
 * variable 0 counts, variable 1 is the sum. */
static const uint32_t code[] = {
    PUSH,      0,     STORE, 0,        PUSH,  0,    STORE, 1, /* 0 */
    LOAD,      0,     LOAD,  0,        PUSH,  4,    AND,      /* 8 */
    PUSH,      1,     ADD,   MULTIPLY, LOAD,  1,    ADD,      /* 15 */
    STORE,     1,     LOAD,  0,        PUSH,  1,    ADD,      /* 22 */
    DUPLICATE, STORE, 0,     PUSH,     LIMIT, LESS,           /* 29 */
    JUMP_IF,   8,
};

#define CODE_WORDS (sizeof(code) / sizeof(*code))

static uint64_t variables[2];

static void execute(void)
{
    uint64_t stack[8];
    size_t depth = 0;

    for (size_t at = 0; at < CODE_WORDS;) {
        switch ((enum operation)code[at++]) {
        case PUSH:
            stack[depth++] = code[at++];
            break;
        case ADD:
            depth--;
            stack[depth - 1] += stack[depth];
            break;
        case SUBTRACT:
            depth--;
            stack[depth - 1] -= stack[depth];
            break;
        case MULTIPLY:
            depth--;
            stack[depth - 1] *= stack[depth];
            break;
        case AND:
            depth--;
            stack[depth - 1] &= stack[depth];
            break;
        case LESS:
            depth--;
            stack[depth - 1] = stack[depth - 1] < stack[depth];
            break;
        case DUPLICATE:
            stack[depth] = stack[depth - 1];
            depth++;
            break;
        case LOAD:
            stack[depth++] = variables[code[at++]];
            break;
        case STORE:
            variables[code[at++]] = stack[--depth];
            break;
        case JUMP_IF:
            at = stack[--depth] != 0 ? code[at] : at + 1;
            break;
        }
    }
}

uint64_t run_bytecode(void)
{
    execute();
    return variables[1];
}
