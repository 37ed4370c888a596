/* SPDX-License-Identifier: Apache-2.0 */
/* Raw firmware: its last byte is the last below 4 GiB, and what fits of its end also
 * ends at 1 MiB, where real-mode code looks for it. */
#include <string.h>

#include "base/bytes.h"
#include "boot/fw_cfg_private.h"
#include "x86/layout.h"

/* The BIOS area 0xe0000-0xfffff. */
#define SHADOW_LIMIT_BYTES (128 * KIB)

/* SeaBIOS runs what is in this folder, and boots from what "bootorder" names first; HALT
 * says that there is nothing else, so it looks for no disks (SeaBIOS,
 * docs/Runtime_config.md).
 */
#define OPTION_ROM_NAME "genroms/husk.rom"
static const char boot_order[] = "/rom@" OPTION_ROM_NAME "\nHALT";

static int add_option_rom(struct boot_builder *builder, struct error *err)
{
    struct boot_fw_item rom = {.name = OPTION_ROM_NAME, .what = "husk's option ROM"};
    const struct boot_fw_item order = {
        .name = "bootorder", .what = "boot order", .size_bytes = sizeof(boot_order)};
    size_t rom_bytes = 0;
    uint8_t *bytes = boot_option_rom(&rom_bytes);

    rom.size_bytes = rom_bytes;
    if (boot_fw_add_generated(builder, &rom, bytes, err) < 0)
        return err->code;
    return boot_fw_add_generated(builder, &order, (uint8_t *)strdup(boot_order), err);
}

int boot_firmware_build(struct boot_builder *builder, struct error *err)
{
    uint64_t size_bytes = builder->inputs->firmware.size_bytes;
    uint64_t shadow_bytes = min_u64(size_bytes, SHADOW_LIMIT_BYTES);
    size_t file = builder->firmware_file;

    if (boot_builder_add_bytes(builder, LAYOUT_HIGH_RAM_START - size_bytes, file, 0,
                               size_bytes, "firmware", err) < 0 ||
        boot_builder_add_bytes(builder, LAYOUT_KERNEL_START - shadow_bytes, file,
                               size_bytes - shadow_bytes, shadow_bytes,
                               "firmware below 1 MiB", err) < 0)
        return error_prefix(err, "firmware %s", builder->inputs->firmware.path);
    cpu_state_reset(&builder->plan->entry);
    return builder->inputs->has_kernel ? add_option_rom(builder, err) : 0;
}
