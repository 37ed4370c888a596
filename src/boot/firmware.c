/* SPDX-License-Identifier: Apache-2.0 */
/* Raw firmware: its last byte is the last below 4 GiB, and what fits of its end also
 * ends at 1 MiB, where real-mode code looks for it. */
#include "base/bytes.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

/* The BIOS area 0xe0000-0xfffff. */
#define SHADOW_LIMIT_BYTES (128 * KIB)

int boot_firmware_build(struct boot_builder *builder, struct error *err)
{
    uint64_t size_bytes = builder->inputs->kernel.size_bytes;
    uint64_t shadow_bytes = min_u64(size_bytes, SHADOW_LIMIT_BYTES);
    size_t file = builder->kernel_file;

    if (boot_builder_add_bytes(builder, LAYOUT_HIGH_RAM_START - size_bytes, file, 0,
                               size_bytes, "firmware", err) < 0 ||
        boot_builder_add_bytes(builder, LAYOUT_KERNEL_START - shadow_bytes, file,
                               size_bytes - shadow_bytes, shadow_bytes,
                               "firmware below 1 MiB", err) < 0)
        return error_prefix(err, "firmware %s", builder->inputs->kernel.path);
    cpu_state_reset(&builder->plan->entry);
    return 0;
}
