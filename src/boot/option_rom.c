/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of husk's option ROM, ready to be handed to firmware. */
#include <stdlib.h>
#include <string.h>

#include "boot/builder_private.h"

/* The header of a ROM (PnP BIOS 1.0A, 3.1) and what it points at (3.2). */
#define ROM_SIZE 2
#define ROM_SIZE_UNIT 512
#define ROM_CHECKSUM 6
#define ROM_PNP_HEADER 0x1a
#define PNP_CHECKSUM 9
#define PNP_HEADER_BYTES 0x20

/* What option_rom.S is assembled to. */
extern const uint8_t boot_option_rom_image[];

/* Makes the sum of all bytes 0. */
static void set_checksum(uint8_t *bytes, size_t size_bytes, size_t at)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < size_bytes; i++)
        sum = (uint8_t)(sum + bytes[i]);
    bytes[at] = (uint8_t)(bytes[at] - sum);
}

uint8_t *boot_option_rom(size_t *size_bytes)
{
    size_t size = (size_t)boot_option_rom_image[ROM_SIZE] * ROM_SIZE_UNIT;
    uint8_t *bytes = malloc(size);

    if (bytes == NULL)
        return NULL;
    memcpy(bytes, boot_option_rom_image, size);
    set_checksum(bytes + bytes[ROM_PNP_HEADER], PNP_HEADER_BYTES, PNP_CHECKSUM);
    set_checksum(bytes, size, ROM_CHECKSUM);
    *size_bytes = size;
    return bytes;
}
