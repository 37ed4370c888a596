/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that writes for ever: blocks with numbers, then a FLUSH, then "flushed N": all
 * writes before number N have been made to last. While a FLUSH is in flight the next
 * writes are, too.
 *
 * The command line is a decimal number, the tag of this run. Write number N goes to block
 * N * 37 modulo the size of the disk. Its words are consecutive numbers from
 * tag << 40 | N << 16 on.
 */
#include "block.h"
#include "console.h"

#define STRIDE 37
#define WRITES 8 /* before each FLUSH; the last slot is for that */
#define FLUSH_SLOT WRITES
_Static_assert(WRITES + 1 == BLOCK_SLOTS, "each request has a slot");

void guest_main(const char *command_line);

static uint64_t parse_number(const char *text)
{
    uint64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
}

static void begin_write(unsigned slot, uint64_t tag, uint64_t number)
{
    uint64_t word = tag << 40 | number << 16;

    for (unsigned i = 0; i < BLOCK_BYTES / sizeof(word); i++)
        block_buffers[slot][i] = word + i;
    block_begin(slot, BLOCK_WRITE, number * STRIDE % block_count());
}

void guest_main(const char *command_line)
{
    uint64_t tag = parse_number(command_line);
    uint64_t number = 0;

    if (!block_open()) {
        console_print("no disk\n");
        return;
    }
    for (;;) {
        uint64_t flushed = number;

        if (number > 0)
            block_begin(FLUSH_SLOT, BLOCK_FLUSH, 0);
        for (unsigned slot = 0; slot < WRITES; slot++)
            begin_write(slot, tag, number++);
        if (!block_wait()) {
            console_print("failed\n");
            return;
        }
        console_print("flushed ");
        console_print_number(flushed);
        console_print("\n");
    }
}
