/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a boot plan: one function a protocol, everything else is common. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/builder_private.h"
#include "boot/fw_cfg_private.h"
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
    [BOOT_MULTIBOOT1] = boot_multiboot1_build,
    [BOOT_MULTIBOOT2] = boot_multiboot2_build,
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

/* What firmware hands on is not in memory at the start, but is part of the plan. */
static void add_files(struct boot_builder *builder)
{
    const struct boot_inputs *inputs = builder->inputs;

    if (inputs->has_firmware)
        builder->firmware_file =
            boot_builder_add_file(builder, BOOT_FILE_FIRMWARE, &inputs->firmware);
    if (inputs->has_kernel)
        builder->kernel_file =
            boot_builder_add_file(builder, BOOT_FILE_KERNEL, &inputs->kernel);
    if (boot_uses_unpacked(inputs))
        builder->kernel_file =
            boot_builder_add_file(builder, BOOT_FILE_UNPACKED, &inputs->unpacked);
    builder->first_initrd_file = builder->plan->file_count;
    for (size_t i = 0; i < inputs->initrd_count; i++) {
        bool is_module = boot_takes_modules(inputs);
        size_t file = boot_builder_add_file(
            builder, is_module ? BOOT_FILE_MODULE : BOOT_FILE_INITRD,
            &inputs->initrds[i]);

        builder->plan->files[file].string = inputs->module_strings[i];
    }
}

/* Multiboot kernels find their own path in front, and none of the words that are there
 * for Linux. */
static int set_cmdline(struct boot_builder *builder, struct error *err)
{
    const struct boot_options *options = builder->options;
    const char *words = options->cmdline;

    if (!builder->inputs->has_kernel)
        return 0;
    if (boot_takes_modules(builder->inputs)) {
        words += options->cmdline_default_bytes;
        builder->plan->cmdline =
            boot_builder_text(builder, "%s%s%s", builder->inputs->kernel.path,
                              words[0] == '\0' ? "" : " ", words);
    } else {
        builder->plan->cmdline = boot_builder_text(builder, "%s", words);
    }
    if (builder->plan->cmdline == NULL)
        return error_set(err, -ENOMEM, "out of memory for the command line");
    return 0;
}

/* What a plan has whatever its protocol. */
static int begin(struct boot_builder *builder, enum boot_protocol protocol,
                 struct error *err)
{
    builder->plan->protocol = protocol;
    CHECK((size_t)protocol < ARRAY_SIZE(protocols) && protocols[protocol] != NULL);
    add_files(builder);
    boot_e820_build(builder, builder->inputs->firmware.size_bytes);
    return set_cmdline(builder, err);
}

static int build(struct boot_builder *builder, struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    struct boot_plan *plan = builder->plan;
    enum boot_protocol protocol = inputs->protocol;

    memcpy(plan->protocol_reason, inputs->protocol_reason, sizeof(plan->protocol_reason));
    if (begin(builder, protocol, err) < 0 || boot_pmem_place(builder, err) < 0)
        return err->code;
    /* Firmware makes its own tables, in the place where ours would be. */
    if (protocol != BOOT_FIRMWARE &&
        (boot_acpi_add(builder, err) < 0 || boot_mp_table_add(builder, err) < 0))
        return err->code;
    if (boot_fw_cfg_build(builder, err) < 0)
        return err->code;
    return protocols[protocol](builder, err);
}

int boot_builder_begin_kernel(const struct boot_builder *builder,
                              struct boot_builder *kernel, struct error *err)
{
    *kernel = (struct boot_builder){
        .plan = calloc(1, sizeof(*kernel->plan)),
        .inputs = builder->inputs,
        .options = builder->options,
        .page_bytes = builder->page_bytes,
        .by_firmware = true,
    };
    if (kernel->plan == NULL)
        return error_set(err, -ENOMEM, "out of memory for the boot plan");
    if (begin(kernel, builder->inputs->kernel_protocol, err) < 0) {
        boot_plan_destroy(kernel->plan);
        return err->code;
    }
    return 0;
}

int boot_builder_build_kernel(struct boot_builder *kernel, struct error *err)
{
    return protocols[kernel->plan->protocol](kernel, err);
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
    for (size_t i = 0; i < plan->fw_part_count; i++)
        free(plan->fw_parts[i].bytes);
    while (plan->texts != NULL) {
        struct boot_text *text = plan->texts;

        plan->texts = text->next;
        free(text);
    }
    free(plan);
}
