/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a boot plan: one function a protocol, everything else is common. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/builder_private.h"
#include "x86/layout.h"
#include "x86/x86.h"

/* Below this there is no RAM at 1 MiB for a kernel to be in. */
#define MEMORY_MIN_BYTES (2 * MIB)
/* Far above what hosts have, far below what the sums here could overflow at. */
#define MEMORY_MAX_BYTES (1024 * GIB)

typedef int protocol_build(struct boot_builder *builder, struct error *err);

static protocol_build *const protocols[] = {
    [BOOT_PVH] = boot_pvh_build,
    [BOOT_LINUX64] = boot_linux64_build,
    [BOOT_LINUX32] = boot_linux32_build,
    [BOOT_FIRMWARE] = boot_firmware_build,
};

static int check_machine(const struct boot_options *options, struct error *err)
{
    if (options->memory_bytes < MEMORY_MIN_BYTES)
        return error_set(err, -EINVAL,
                         "-m gives %" PRIu64
                         " KiB of memory; a guest needs at least %" PRIu64 " MiB",
                         options->memory_bytes / KIB, MEMORY_MIN_BYTES / MIB);
    if (options->memory_bytes > MEMORY_MAX_BYTES)
        return error_set(err, -EINVAL,
                         "-m gives %" PRIu64 " GiB of memory; husk's limit is %" PRIu64
                         " GiB",
                         options->memory_bytes / GIB, MEMORY_MAX_BYTES / GIB);
    if (!is_aligned(options->memory_bytes, X86_PAGE_BYTES))
        return error_set(err, -EINVAL,
                         "-m gives %" PRIu64
                         " bytes of memory; it must be a multiple of %" PRIu64,
                         options->memory_bytes, X86_PAGE_BYTES);
    if (options->cpu_count == 0 || options->cpu_count > LAYOUT_MAX_CPUS)
        return error_set(err, -EINVAL, "%" PRIu32 " CPUs; a guest has 1 to %d",
                         options->cpu_count, LAYOUT_MAX_CPUS);
    return 0;
}

static void add_kernel_files(struct boot_builder *builder)
{
    const struct boot_inputs *inputs = builder->inputs;
    enum boot_protocol protocol = builder->plan->protocol;

    builder->kernel_file = boot_builder_add_file(
        builder, protocol == BOOT_FIRMWARE ? BOOT_FILE_FIRMWARE : BOOT_FILE_KERNEL,
        &inputs->kernel);
    if (boot_uses_unpacked(inputs, protocol))
        builder->kernel_file =
            boot_builder_add_file(builder, BOOT_FILE_UNPACKED, &inputs->unpacked);
}

static int build(struct boot_builder *builder, struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    enum boot_protocol protocol;

    if (boot_protocol_choose(builder, err) < 0)
        return error_prefix(err, "kernel %s", inputs->kernel.path);
    protocol = builder->plan->protocol;
    CHECK((size_t)protocol < ARRAY_SIZE(protocols) && protocols[protocol] != NULL);
    add_kernel_files(builder);
    boot_e820_build(builder, protocol == BOOT_FIRMWARE ? inputs->kernel.size_bytes : 0);
    /* Firmware makes its own tables, in the place where ours would be. */
    if (protocol != BOOT_FIRMWARE && boot_acpi_add(builder, err) < 0)
        return err->code;
    return protocols[protocol](builder, err);
}

int boot_plan_build(const struct boot_inputs *inputs, const struct boot_options *options,
                    struct boot_plan **plan, struct error *err)
{
    struct boot_builder builder = {
        .inputs = inputs,
        .options = options,
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
    };

    if (check_machine(options, err) < 0)
        return err->code;
    builder.plan = calloc(1, sizeof(*builder.plan));
    if (builder.plan == NULL)
        return error_set(err, -ENOMEM, "out of memory for the boot plan");
    if (build(&builder, err) < 0) {
        boot_plan_destroy(builder.plan);
        return err->code;
    }
    *plan = builder.plan;
    return 0;
}

void boot_plan_destroy(struct boot_plan *plan)
{
    if (plan == NULL)
        return;
    for (size_t i = 0; i < plan->range_count; i++)
        free(plan->ranges[i].bytes);
    while (plan->texts != NULL) {
        struct boot_text *text = plan->texts;

        plan->texts = text->next;
        free(text);
    }
    free(plan);
}
