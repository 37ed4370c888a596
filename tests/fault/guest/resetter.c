/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that resets its disk while writes are in flight, and goes on meanwhile: prints
 * "begun" behind the writes and waits for a key; then "resetting" while the device has
 * not finished its reset, and "reset" when it has. Then it starts the device again,
 * writes once more and prints "written". Its blocks are those of the first numbers, each
 * filled with its number; the last one with the byte 0xff.
 */
#include "block.h"
#include "console.h"

void guest_main(const char *command_line);

static void begin_write(unsigned slot, uint64_t word)
{
    for (unsigned i = 0; i < BLOCK_BYTES / sizeof(word); i++)
        block_buffers[slot][i] = word;
    block_begin(slot, BLOCK_WRITE, slot);
}

void guest_main(const char *command_line)
{
    bool seen = false;

    (void)command_line;
    if (!block_open()) {
        console_print("no disk\n");
        return;
    }
    for (unsigned slot = 0; slot < BLOCK_SLOTS; slot++)
        begin_write(slot, slot);
    console_print("begun\n");
    console_wait();
    block_begin_reset();
    while (!block_is_reset()) {
        if (!seen)
            console_print("resetting\n");
        seen = true;
    }
    console_print("reset\n");
    if (!block_open())
        console_print("no disk\n");
    begin_write(0, UINT64_MAX);
    console_print(block_wait() ? "written\n" : "failed\n");
}
