/* SPDX-License-Identifier: Apache-2.0 */
/* What several protocols hand over to a kernel: initrds, the command line, a GDT. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/builder_private.h"
#include "boot/handover_private.h"
#include "x86/layout.h"

/* What husk passes to a kernel whose limit is not known (an ELF names none). */
#define CMDLINE_LIMIT_UNKNOWN 4096

/* ---- initrds ---- */

/*
 * Several -i are one concatenation. Linux takes a sequence of archives with any number of
 * zero bytes before each (driver-api/early-userspace/buffer-format.rst), so each archive
 * starts on a page of its own and stays mappable.
 */
static uint64_t concatenation_bytes(const struct boot_builder *builder)
{
    const struct boot_inputs *inputs = builder->inputs;
    uint64_t bytes = 0;

    for (size_t i = 0; i < inputs->initrd_count; i++)
        bytes = align_up(bytes, builder->page_bytes) + inputs->initrds[i].size_bytes;
    return bytes;
}

/* Behind the kernel all RAM is free, so what decides is the end of a place there. */
static int refuse_initrds(const struct boot_builder *builder, uint64_t limit,
                          struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    uint64_t end =
        align_up(builder->kernel_end, builder->page_bytes) + builder->initrd_bytes;

    if (boot_builder_need(builder, end, err) == 0)
        (void)error_set(err, -ENOSPC,
                        "%" PRIu64 " bytes do not fit below address 0x%" PRIx64
                        ", where this kernel takes an initrd",
                        builder->initrd_bytes, limit);
    if (inputs->initrd_count == 1)
        return error_prefix(err, "initrd %s beside the kernel", inputs->initrds[0].path);
    return error_prefix(err, "%zu initrds beside the kernel", inputs->initrd_count);
}

static int add_initrd(struct boot_builder *builder, size_t index, uint64_t gpa,
                      struct error *err)
{
    const struct input_file *input = &builder->inputs->initrds[index];
    size_t file = builder->first_initrd_file + index;
    uint64_t end = gpa + input->size_bytes;
    bool last = index + 1 == builder->inputs->initrd_count;

    if (boot_builder_add_bytes(builder, gpa, file, 0, input->size_bytes,
                               boot_builder_text(builder, "initrd %zu", index), err) < 0)
        return err->code;
    if (last)
        return 0;
    return boot_builder_add_zero(builder, end, align_up(end, builder->page_bytes) - end,
                                 "padding between initrds", err);
}

int boot_handover_add_initrds(struct boot_builder *builder, uint64_t limit,
                              struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    uint64_t gpa;

    if (inputs->initrd_count == 0)
        return 0;
    builder->initrd_bytes = concatenation_bytes(builder);
    if (!boot_builder_place_high(builder, limit, builder->initrd_bytes,
                                 &builder->initrd_gpa))
        return refuse_initrds(builder, limit, err);
    gpa = builder->initrd_gpa;
    for (size_t i = 0; i < inputs->initrd_count; i++) {
        if (add_initrd(builder, i, gpa, err) < 0)
            return error_prefix(err, "initrd %s", inputs->initrds[i].path);
        gpa = align_up(gpa + inputs->initrds[i].size_bytes, builder->page_bytes);
    }
    return 0;
}

/* ---- the command line ---- */

int boot_handover_add_cmdline(struct boot_builder *builder, uint32_t limit_bytes,
                              uint64_t *gpa, struct error *err)
{
    const char *cmdline = builder->options->cmdline;
    size_t length = strlen(cmdline);

    if (limit_bytes != 0 && length > limit_bytes)
        return error_set(err, -E2BIG,
                         "the kernel command line has %zu bytes, but this kernel takes "
                         "at most %" PRIu32,
                         length, limit_bytes);
    if (limit_bytes == 0 && length > CMDLINE_LIMIT_UNKNOWN)
        return error_set(err, -E2BIG,
                         "the kernel command line has %zu bytes, but husk passes at most "
                         "%d to a kernel that states no limit",
                         length, CMDLINE_LIMIT_UNKNOWN);
    if (boot_builder_place_low(builder, HANDOVER_CMDLINE, length + 1, 16, "command line",
                               gpa, err) < 0)
        return err->code;
    return boot_builder_add_generated(builder, *gpa, (uint8_t *)strdup(cmdline),
                                      length + 1, "command line", err);
}

/* ---- GDT ---- */

int boot_handover_add_gdt(struct boot_builder *builder, bool code64, uint32_t *gpa,
                          struct error *err)
{
    const size_t size_bytes = X86_BOOT_GDT_ENTRIES * sizeof(uint64_t);
    uint64_t *entries;
    uint64_t place;

    if (boot_builder_place_low(builder, HANDOVER_GDT, size_bytes, 16, "GDT", &place,
                               err) < 0)
        return err->code;
    *gpa = (uint32_t)place;
    entries = calloc(X86_BOOT_GDT_ENTRIES, sizeof(*entries));
    if (entries != NULL)
        x86_boot_gdt(entries, code64);
    return boot_builder_add_generated(builder, place, (uint8_t *)entries, size_bytes,
                                      "GDT", err);
}
