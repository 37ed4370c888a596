/* SPDX-License-Identifier: Apache-2.0 */
/* Which way into a kernel: what the user named, or the best that the file offers. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/builder_private.h"

/* Linux boot protocol, since 2.12: there is a 64-bit entry at 0x200. */
#define XLOADFLAGS_KERNEL_64 0x01u

#define MACHINE_X86_64 62 /* EM_X86_64 (System V ABI, AMD64 supplement, 4.1) */

/* How far the two Multiboot specifications let a header be from the file's start. */
#define MULTIBOOT1_SEARCH_BYTES 8192
#define MULTIBOOT2_SEARCH_BYTES 32768

static const char *const protocol_names[] = {
    [BOOT_AUTO] = "auto",
    [BOOT_PVH] = "pvh",
    [BOOT_LINUX64] = "linux64",
    [BOOT_LINUX32] = "linux32",
    [BOOT_MULTIBOOT1] = "multiboot1",
    [BOOT_MULTIBOOT2] = "multiboot2",
    [BOOT_FIRMWARE] = "firmware",
};

const char *boot_protocol_name(enum boot_protocol protocol)
{
    CHECK((size_t)protocol < ARRAY_SIZE(protocol_names));
    return protocol_names[protocol];
}

static bool is_elf(const struct image *image)
{
    return image->format == IMAGE_ELF32 || image->format == IMAGE_ELF64;
}

bool boot_uses_unpacked(const struct boot_inputs *inputs, enum boot_protocol protocol)
{
    return protocol == BOOT_PVH && inputs->has_unpacked;
}

static int choose(struct boot_builder *builder, enum boot_protocol protocol,
                  const char *format, ...) PRINTF_LIKE(3, 4);

static int choose(struct boot_builder *builder, enum boot_protocol protocol,
                  const char *format, ...)
{
    struct boot_plan *plan = builder->plan;
    va_list args;

    plan->protocol = protocol;
    va_start(args, format);
    (void)vsnprintf(plan->protocol_reason, sizeof(plan->protocol_reason), format, args);
    va_end(args);
    return 0;
}

/* ---- Multiboot: recognised, so that the refusal says what the file is ---- */

static const struct image_multiboot *multiboot_of(const struct image *image,
                                                  enum boot_protocol protocol)
{
    if (protocol == BOOT_MULTIBOOT2 || !image->multiboot1.present)
        return &image->multiboot2;
    return &image->multiboot1;
}

static int refuse_multiboot(const struct image *image, enum boot_protocol protocol,
                            struct error *err)
{
    const struct image_multiboot *header =
        protocol == BOOT_MULTIBOOT1 ? &image->multiboot1 : &image->multiboot2;
    int major = protocol == BOOT_MULTIBOOT1 ? 1 : 2;

    if (!header->present)
        return error_set(err, -ENOEXEC,
                         "has no Multiboot %d header in its first %d bytes", major,
                         major == 1 ? MULTIBOOT1_SEARCH_BYTES : MULTIBOOT2_SEARCH_BYTES);
    return error_set(err, -ENOTSUP,
                     "has a Multiboot %d header at offset 0x%" PRIx64
                     "; Multiboot kernels are not loaded yet",
                     major, header->header_offset);
}

static int refuse_elf_without_note(const struct image *image, struct error *err)
{
    const struct image_multiboot *multiboot = multiboot_of(image, BOOT_AUTO);
    const char *format = image_format_name(image->format);

    if (multiboot->present)
        return error_set(err, -ENOTSUP,
                         "is an %s without PVH entry note (owner \"Xen\", type 18), but "
                         "with a Multiboot %d header at offset 0x%" PRIx64
                         "; Multiboot kernels are not loaded yet",
                         format, multiboot->major, multiboot->header_offset);
    if (image->format == IMAGE_ELF64 && image->elf.machine == MACHINE_X86_64)
        return error_set(err, -ENOEXEC,
                         "is an ELF64 without PVH entry note (owner \"Xen\", type 18), "
                         "and no Multiboot header is in its first %d (version 1) or %d "
                         "(version 2) bytes; if its entry point follows the Linux 64-bit "
                         "boot protocol, say --protocol linux64",
                         MULTIBOOT1_SEARCH_BYTES, MULTIBOOT2_SEARCH_BYTES);
    return error_set(err, -ENOEXEC,
                     "is an %s without PVH entry note (owner \"Xen\", type 18), and no "
                     "Multiboot header is in its first %d (version 1) or %d (version 2) "
                     "bytes; there is no known way in",
                     format, MULTIBOOT1_SEARCH_BYTES, MULTIBOOT2_SEARCH_BYTES);
}

/* ---- what a file offers ---- */

/* By the kernel's own decompressor; `why` says why not by PVH. */
static int choose_own_decompressor(struct boot_builder *builder, const char *why)
{
    if (builder->inputs->image.bzimage.xloadflags & XLOADFLAGS_KERNEL_64)
        return choose(builder, BOOT_LINUX64, "%s; the bzImage has a 64-bit entry", why);
    return choose(builder, BOOT_LINUX32, "%s; the bzImage has no 64-bit entry", why);
}

static int choose_auto(struct boot_builder *builder, struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    const struct image *image = &inputs->image;

    if (image->format == IMAGE_FIRMWARE)
        return choose(builder, BOOT_FIRMWARE, "firmware was given");
    if (is_elf(image)) {
        if (!image->elf.has_pvh)
            return refuse_elf_without_note(image, err);
        return choose(builder, BOOT_PVH, "the %s has a PVH entry note",
                      image_format_name(image->format));
    }
    if (!inputs->has_unpacked)
        return choose_own_decompressor(
            builder, "the bzImage has no payload in a known compression");
    if (is_elf(&inputs->unpacked_image) && inputs->unpacked_image.elf.has_pvh)
        return choose(builder, BOOT_PVH, "the %s inside the bzImage has a PVH entry note",
                      image_format_name(inputs->unpacked_image.format));
    return choose_own_decompressor(builder,
                                   "the kernel inside the bzImage has no PVH entry note");
}

/* ---- what the user named ---- */

static int check_pvh(const struct boot_inputs *inputs, struct error *err)
{
    const struct image *image = &inputs->image;

    if (image->format == IMAGE_BZIMAGE && !inputs->has_unpacked)
        return error_set(err, -ENOEXEC,
                         "is a bzImage without a payload in a known compression, so it "
                         "cannot be entered by PVH");
    if (inputs->has_unpacked)
        image = &inputs->unpacked_image;
    if (is_elf(image) && image->elf.has_pvh)
        return 0;
    if (inputs->has_unpacked)
        return error_set(
            err, -ENOEXEC,
            "is a bzImage whose kernel has no PVH entry note (owner \"Xen\", "
            "type 18); leave --protocol out to use its own decompressor");
    return refuse_elf_without_note(image, err);
}

static int check_linux64(const struct image *image, struct error *err)
{
    if (image->format == IMAGE_ELF64 && image->elf.machine == MACHINE_X86_64)
        return 0;
    if (is_elf(image))
        return error_set(err, -ENOEXEC,
                         "is an %s for machine %u; --protocol linux64 needs an ELF64 for "
                         "x86-64 (machine %d) or a bzImage",
                         image_format_name(image->format), image->elf.machine,
                         MACHINE_X86_64);
    if (image->bzimage.xloadflags & XLOADFLAGS_KERNEL_64)
        return 0;
    return error_set(err, -ENOEXEC,
                     "has no 64-bit entry (xloadflags 0x%04x, bit 0 clear); use "
                     "--protocol linux32",
                     image->bzimage.xloadflags);
}

static int check_linux32(const struct image *image, struct error *err)
{
    if (image->format == IMAGE_BZIMAGE)
        return 0;
    return error_set(err, -ENOEXEC, "is an %s; --protocol linux32 needs a bzImage",
                     image_format_name(image->format));
}

static int check_named(const struct boot_inputs *inputs, enum boot_protocol protocol,
                       struct error *err)
{
    switch (protocol) {
    case BOOT_PVH:
        return check_pvh(inputs, err);
    case BOOT_LINUX64:
        return check_linux64(&inputs->image, err);
    case BOOT_LINUX32:
        return check_linux32(&inputs->image, err);
    case BOOT_MULTIBOOT1:
    case BOOT_MULTIBOOT2:
        return refuse_multiboot(&inputs->image, protocol, err);
    case BOOT_FIRMWARE:
        if (inputs->image.format != IMAGE_FIRMWARE)
            return error_set(err, -EINVAL,
                             "is a kernel; --protocol firmware needs --firmware");
        return 0;
    case BOOT_AUTO:
        break;
    }
    return 0;
}

int boot_protocol_choose(struct boot_builder *builder, struct error *err)
{
    enum boot_protocol named = builder->options->protocol;
    const struct image *image = &builder->inputs->image;

    /* A flat image has no other way in, whatever was named. */
    if (image->format == IMAGE_MULTIBOOT && named != BOOT_MULTIBOOT2)
        return refuse_multiboot(image, BOOT_MULTIBOOT1, err);
    if (named == BOOT_AUTO)
        return choose_auto(builder, err);
    if (check_named(builder->inputs, named, err) < 0)
        return err->code;
    return choose(builder, named, "--protocol %s", boot_protocol_name(named));
}
