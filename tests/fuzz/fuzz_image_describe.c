/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a kernel file. What is described keeps the promises of image.h. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "image/image.h"

#define PHYSICAL_LIMIT (UINT64_C(1) << 52)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_elf(const struct image_elf *elf, size_t size)
{
    CHECK(elf->segment_count > 0 && elf->segment_count <= IMAGE_MAX_SEGMENTS);
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct image_segment *segment = &elf->segments[i];

        CHECK(segment->memory_bytes != 0);
        CHECK(range_within(segment->gpa, segment->memory_bytes, PHYSICAL_LIMIT));
        CHECK(segment->file_bytes <= segment->memory_bytes);
        CHECK(range_within(segment->file_offset, segment->file_bytes, size));
        for (size_t j = 0; j < i; j++)
            CHECK(!ranges_overlap(segment->gpa, segment->memory_bytes,
                                  elf->segments[j].gpa, elf->segments[j].memory_bytes));
    }
}

static void check_bzimage(const struct image_bzimage *bzimage, size_t size)
{
    CHECK((uint64_t)bzimage->setup_bytes + bzimage->kernel_bytes == size);
    CHECK(bzimage->alignment != 0 &&
          (bzimage->alignment & (bzimage->alignment - 1)) == 0);
    CHECK(bzimage->init_bytes >= bzimage->kernel_bytes);
    CHECK(range_within(bzimage->preferred_gpa, bzimage->init_bytes, PHYSICAL_LIMIT));
    CHECK(memchr(bzimage->kernel_version, '\0', sizeof(bzimage->kernel_version)) != NULL);
}

static void check_placed(const struct image_segment *segment, uint64_t entry, size_t size)
{
    CHECK(range_within(segment->file_offset, segment->file_bytes, size));
    CHECK(segment->file_bytes <= segment->memory_bytes);
    CHECK(range_within(segment->gpa, segment->memory_bytes, UINT64_C(1) << 32));
    CHECK(entry >= segment->gpa && entry - segment->gpa < segment->memory_bytes);
}

static void check_multiboot(const struct image *image, size_t size)
{
    const struct image_multiboot1 *first = &image->multiboot1;
    const struct image_multiboot2 *second = &image->multiboot2;

    CHECK(!first->present || first->header_offset < IMAGE_MULTIBOOT1_SEARCH_BYTES);
    if (first->has_addresses && first->problem[0] == '\0')
        check_placed(&first->segment, first->entry_addr, size);
    CHECK(!second->present || range_within(second->header_offset, second->header_bytes,
                                           IMAGE_MULTIBOOT2_SEARCH_BYTES));
    CHECK(second->tag_count <= IMAGE_MULTIBOOT2_MAX_TAGS);
    CHECK(second->request_count <= IMAGE_MULTIBOOT2_MAX_REQUESTS);
    if (second->problem[0] != '\0')
        return;
    if (second->has_addresses)
        check_placed(&second->segment, second->entry_addr, size);
    if (second->relocatable)
        CHECK(second->relocation.min_addr <= second->relocation.max_addr &&
              second->relocation.alignment != 0 &&
              is_aligned(second->relocation.alignment, second->relocation.alignment));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = source_from_memory(data, size);
    struct error err = ERROR_NONE;
    struct image image;

    if (image_describe(&source, &image, &err) < 0) {
        CHECK(err.text[0] != '\0');
        return 0;
    }
    CHECK(err.text[0] == '\0' && image.file_bytes == size);
    if (image.format == IMAGE_ELF32 || image.format == IMAGE_ELF64)
        check_elf(&image.elf, size);
    else if (image.format == IMAGE_BZIMAGE)
        check_bzimage(&image.bzimage, size);
    else if (image.format == IMAGE_COMPRESSED)
        CHECK(image.payload.size_bytes == size);
    else
        CHECK(image.multiboot1.has_addresses || image.multiboot2.has_addresses);
    check_multiboot(&image, size);
    CHECK(range_within(image.payload.offset, image.payload.size_bytes, size));
    return 0;
}
