/* SPDX-License-Identifier: Apache-2.0 */
/* Places a kernel's own bytes: the segments of an ELF, or a bzImage's protected part. */
#include <errno.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

/* ---- segments: of an ELF, or what a Multiboot header places ---- */

static bool segment_holds(const struct image_segment *segment, uint64_t gpa)
{
    return gpa >= segment->gpa && gpa - segment->gpa < segment->memory_bytes;
}

static int check_entry(const struct image_segment *segments, size_t count, uint64_t entry,
                       struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (segment_holds(&segments[i], entry))
            return 0;
    return error_set(err, -ENOEXEC, "its entry point 0x%" PRIx64 " lies in no segment",
                     entry);
}

/* The whole kernel's need comes first, so that one try tells enough. */
static int check_fits(struct boot_builder *builder, const struct image_segment *segments,
                      size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        builder->kernel_end =
            max_u64(builder->kernel_end, segments[i].gpa + segments[i].memory_bytes);
    if (boot_builder_need(builder, builder->kernel_end, err) < 0)
        return err->code;
    for (size_t i = 0; i < count; i++) {
        const struct image_segment *segment = &segments[i];

        if (!boot_e820_is_ram(builder->plan, segment->gpa, segment->memory_bytes))
            return error_set(err, -ENOEXEC,
                             "segment %zu (0x%" PRIx64 " to 0x%" PRIx64
                             ") touches 0x%" PRIx64 " to 0x%" PRIx64
                             ", which is reserved on a PC",
                             i, segment->gpa, segment->gpa + segment->memory_bytes - 1,
                             LAYOUT_EBDA_START, LAYOUT_KERNEL_START - 1);
    }
    return 0;
}

static int add_segment(struct boot_builder *builder, size_t index,
                       const struct image_segment *segment, struct error *err)
{
    const char *what = boot_builder_text(builder, "kernel segment %zu", index);
    const char *bss = boot_builder_text(builder, "kernel segment %zu, bss", index);

    if (boot_builder_add_bytes(builder, segment->gpa, builder->kernel_file,
                               segment->file_offset, segment->file_bytes, what, err) < 0)
        return err->code;
    return boot_builder_add_zero(builder, segment->gpa + segment->file_bytes,
                                 segment->memory_bytes - segment->file_bytes, bss, err);
}

static int add_segments(struct boot_builder *builder,
                        const struct image_segment *segments, size_t count,
                        uint64_t entry, struct error *err)
{
    if (check_entry(segments, count, entry, err) < 0 ||
        check_fits(builder, segments, count, err) < 0)
        return err->code;
    for (size_t i = 0; i < count; i++)
        if (add_segment(builder, i, &segments[i], err) < 0)
            return err->code;
    return 0;
}

int boot_kernel_add_segments(struct boot_builder *builder,
                             const struct image_segment *segments, size_t count,
                             uint64_t entry, struct error *err)
{
    if (add_segments(builder, segments, count, entry, err) < 0)
        return error_prefix(err, "kernel %s", builder->inputs->kernel.path);
    return 0;
}

int boot_kernel_add_elf(struct boot_builder *builder, const struct image_elf *elf,
                        uint64_t entry, struct error *err)
{
    return boot_kernel_add_segments(builder, elf->segments, elf->segment_count, entry,
                                    err);
}

/* ---- bzImage ---- */

struct bzimage_place {
    uint64_t load_gpa;
    uint64_t runtime_gpa; /* init_bytes from here on are the kernel's to use */
};

/* By the rule in boot.rst at init_size: a relocatable kernel runs at its load address,
 * any other moves itself to pref_address. */
static struct bzimage_place choose_place(const struct image_bzimage *bzimage)
{
    uint64_t preferred = max_u64(bzimage->preferred_gpa, LAYOUT_KERNEL_START);

    if (!bzimage->relocatable)
        return (struct bzimage_place){LAYOUT_KERNEL_START, preferred};
    preferred = min_u64(preferred, LAYOUT_HIGH_RAM_START); /* too high, but sums work */
    preferred = align_up(preferred, bzimage->alignment);
    return (struct bzimage_place){preferred, preferred};
}

static int add_bzimage(struct boot_builder *builder, const struct bzimage_place *place,
                       struct error *err)
{
    const struct image_bzimage *bzimage = &builder->inputs->image.bzimage;
    uint64_t work_bytes = max_u64(bzimage->init_bytes, bzimage->kernel_bytes);

    if (place->runtime_gpa > LAYOUT_LOW_RAM_LIMIT)
        return error_set(err, -ENOEXEC,
                         "pref_address 0x%" PRIx64 " leads above 0x%" PRIx64
                         ", where RAM below 4 GiB ends at the latest",
                         bzimage->preferred_gpa, LAYOUT_LOW_RAM_LIMIT);
    builder->kernel_end =
        max_u64(place->load_gpa + bzimage->kernel_bytes, place->runtime_gpa + work_bytes);
    if (boot_builder_need(builder, builder->kernel_end, err) < 0 ||
        boot_builder_add_bytes(builder, place->load_gpa, builder->kernel_file,
                               bzimage->setup_bytes, bzimage->kernel_bytes,
                               "bzImage, protected-mode part", err) < 0)
        return err->code;
    builder->kernel_work = (struct boot_reservation){
        .gpa = place->runtime_gpa,
        .size_bytes = work_bytes,
        .what = "the kernel's working memory (init_size)",
    };
    return 0;
}

int boot_kernel_add_bzimage(struct boot_builder *builder, uint64_t *load_gpa,
                            struct error *err)
{
    const struct bzimage_place place = choose_place(&builder->inputs->image.bzimage);

    *load_gpa = place.load_gpa;
    if (add_bzimage(builder, &place, err) < 0)
        return error_prefix(err, "kernel %s", builder->inputs->kernel.path);
    return 0;
}
