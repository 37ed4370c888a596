/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest draws on the screen that it does not have, so that somebody can tell. */
#include "vm/vm_private.h"
#include "x86/layout.h"

bool vm_only_drew(const struct vm *vm)
{
    uint8_t cells[LAYOUT_TEXT_ROWS * LAYOUT_TEXT_COLUMNS * LAYOUT_TEXT_CELL_BYTES];
    struct vm_counters counters;
    unsigned int used = 0;

    vm_counters(vm, &counters);
    if (counters.console_bytes_out != 0 ||
        memory_read(vm->memory, LAYOUT_TEXT_SCREEN, cells, sizeof(cells)) < 0)
        return false;
    for (size_t i = 0; i < sizeof(cells); i++)
        used |= cells[i];
    return used != 0;
}
