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

bool boot_takes_modules(const struct boot_inputs *inputs)
{
    return inputs->kernel_protocol == BOOT_MULTIBOOT1 ||
           inputs->kernel_protocol == BOOT_MULTIBOOT2;
}

bool boot_uses_unpacked(const struct boot_inputs *inputs)
{
    return inputs->has_unpacked && inputs->kernel_protocol == BOOT_PVH;
}

static int choose(struct boot_choice *choice, enum boot_protocol protocol,
                  const char *format, ...) PRINTF_LIKE(3, 4);

static int choose(struct boot_choice *choice, enum boot_protocol protocol,
                  const char *format, ...)
{
    va_list args;

    choice->protocol = protocol;
    va_start(args, format);
    (void)vsnprintf(choice->reason, sizeof(choice->reason), format, args);
    va_end(args);
    return 0;
}

static int refuse_elf_without_note(const struct image *image, struct error *err)
{
    const char *format = image_format_name(image->format);

    if (image->multiboot1.present || image->multiboot2.present)
        return error_set(
            err, -ENOEXEC,
            "is an %s without PVH entry note (owner \"Xen\", type 18); leave "
            "--protocol out to enter it by Multiboot",
            format);
    if (image->format == IMAGE_ELF64 && image->elf.machine == MACHINE_X86_64)
        return error_set(err, -ENOEXEC,
                         "is an ELF64 without PVH entry note (owner \"Xen\", type 18), "
                         "and no Multiboot header is in its first %d (version 1) or %d "
                         "(version 2) bytes; if its entry point follows the Linux 64-bit "
                         "boot protocol, say --protocol linux64",
                         IMAGE_MULTIBOOT1_SEARCH_BYTES, IMAGE_MULTIBOOT2_SEARCH_BYTES);
    return error_set(err, -ENOEXEC,
                     "is an %s without PVH entry note (owner \"Xen\", type 18), and no "
                     "Multiboot header is in its first %d (version 1) or %d (version 2) "
                     "bytes; there is no known way in",
                     format, IMAGE_MULTIBOOT1_SEARCH_BYTES,
                     IMAGE_MULTIBOOT2_SEARCH_BYTES);
}

/* ---- what a file offers ---- */

/* By the kernel's own decompressor; `why` says why not by PVH. */
static int choose_own_decompressor(const struct boot_inputs *inputs,
                                   struct boot_choice *choice, const char *why)
{
    if (inputs->image.bzimage.xloadflags & XLOADFLAGS_KERNEL_64)
        return choose(choice, BOOT_LINUX64, "%s; the bzImage has a 64-bit entry", why);
    return choose(choice, BOOT_LINUX32, "%s; the bzImage has no 64-bit entry", why);
}

static int choose_bzimage(const struct boot_inputs *inputs, struct boot_choice *choice)
{
    const struct image *unpacked = &inputs->unpacked_image;

    if (inputs->has_firmware)
        return choose_own_decompressor(inputs, choice, "firmware starts bzImages whole");
    if (!inputs->has_unpacked)
        return choose_own_decompressor(
            inputs, choice, "the bzImage has no payload in a known compression");
    if (is_elf(unpacked) && unpacked->elf.has_pvh)
        return choose(choice, BOOT_PVH, "the %s inside the bzImage has a PVH entry note",
                      image_format_name(unpacked->format));
    return choose_own_decompressor(inputs, choice,
                                   "the kernel inside the bzImage has no PVH entry note");
}

/* A header that cannot be obeyed is passed over for the next way in; `problem` (the first
 * one) says why. */
static bool choose_multiboot(const struct image *image, struct boot_choice *choice,
                             struct error *problem)
{
    const struct {
        enum boot_protocol protocol;
        const char *name;
        bool present;
        int (*check)(const struct image *image, struct error *err);
    } ways[] = {
        {BOOT_MULTIBOOT2, "Multiboot 2", image->multiboot2.present,
         boot_multiboot2_check},
        {BOOT_MULTIBOOT1, "Multiboot 1", image->multiboot1.present,
         boot_multiboot1_check},
    };
    const char *format =
        image->format == IMAGE_MULTIBOOT ? "flat file" : image_format_name(image->format);

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct error refusal = ERROR_NONE;

        if (!ways[i].present)
            continue;
        if (ways[i].check(image, &refusal) == 0) {
            (void)choose(choice, ways[i].protocol, "the %s has a %s header%s%s", format,
                         ways[i].name, problem->code == 0 ? "" : "; ", problem->text);
            return true;
        }
        if (problem->code == 0)
            *problem = refusal;
    }
    return false;
}

static int choose_auto(const struct boot_inputs *inputs, struct boot_choice *choice,
                       struct error *err)
{
    const struct image *image = &inputs->image;
    struct error problem = ERROR_NONE;

    if (image->format == IMAGE_BZIMAGE)
        return choose_bzimage(inputs, choice);
    if (choose_multiboot(image, choice, &problem))
        return 0;
    if (is_elf(image) && image->elf.has_pvh)
        return choose(choice, BOOT_PVH, "the %s has a PVH entry note%s%s",
                      image_format_name(image->format), problem.code == 0 ? "" : "; ",
                      problem.text);
    if (problem.code != 0)
        return error_set(err, problem.code, "%s", problem.text);
    return refuse_elf_without_note(image, err);
}

/* ---- what the user named ---- */

static int refuse_flat(const char *protocol, const char *needed, struct error *err)
{
    return error_set(err, -ENOEXEC,
                     "is a flat file that only its Multiboot header says how to load; "
                     "--protocol %s needs %s",
                     protocol, needed);
}

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
    if (image->format == IMAGE_MULTIBOOT)
        return refuse_flat("pvh", "an ELF file", err);
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
    if (image->format == IMAGE_MULTIBOOT)
        return refuse_flat("linux64", "an ELF64 for x86-64 or a bzImage", err);
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
    if (image->format == IMAGE_MULTIBOOT)
        return refuse_flat("linux32", "a bzImage", err);
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
        return boot_multiboot1_check(&inputs->image, err);
    case BOOT_MULTIBOOT2:
        return boot_multiboot2_check(&inputs->image, err);
    case BOOT_FIRMWARE:
        return error_set(err, -EINVAL,
                         "is a kernel; --protocol firmware needs --firmware");
    case BOOT_AUTO:
        break;
    }
    return 0;
}

int boot_protocol_choose(const struct boot_inputs *inputs, enum boot_protocol named,
                         struct boot_choice *choice, struct error *err)
{
    if (named == BOOT_AUTO)
        return choose_auto(inputs, choice, err);
    if (check_named(inputs, named, err) < 0)
        return err->code;
    return choose(choice, named, "--protocol %s", boot_protocol_name(named));
}
