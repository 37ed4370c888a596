/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of a boot plan: the one door they enter by, and the search for free RAM. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/builder_private.h"
#include "x86/layout.h"
#include "x86/x86.h"

static const char *add_text(struct boot_builder *builder, const char *format,
                            va_list args) PRINTF_LIKE(2, 0);

static const char *add_text(struct boot_builder *builder, const char *format,
                            va_list args)
{
    struct boot_text *text;
    size_t size;
    va_list again;

    va_copy(again, args);
    size = (size_t)vsnprintf(NULL, 0, format, args) + 1;
    text = malloc(sizeof(*text) + size);
    if (text != NULL) {
        (void)vsnprintf(text->characters, size, format, again);
        text->next = builder->plan->texts;
        builder->plan->texts = text;
    }
    va_end(again);
    return text == NULL ? NULL : text->characters;
}

const char *boot_builder_text(struct boot_builder *builder, const char *format, ...)
{
    const char *text;
    va_list args;

    va_start(args, format);
    text = add_text(builder, format, args);
    va_end(args);
    return text;
}

void boot_builder_note(struct boot_builder *builder, const char *format, ...)
{
    struct boot_plan *plan = builder->plan;
    const char *text;
    va_list args;

    va_start(args, format);
    text = add_text(builder, format, args);
    va_end(args);
    CHECK(plan->note_count < BOOT_MAX_NOTES);
    if (text != NULL)
        plan->notes[plan->note_count++] = text;
}

const char *boot_file_role_name(enum boot_file_role role)
{
    static const char *const names[] = {
        [BOOT_FILE_KERNEL] = "kernel",     [BOOT_FILE_UNPACKED] = "unpacked kernel",
        [BOOT_FILE_INITRD] = "initrd",     [BOOT_FILE_MODULE] = "module",
        [BOOT_FILE_FIRMWARE] = "firmware",
    };

    CHECK((size_t)role < ARRAY_SIZE(names));
    return names[role];
}

size_t boot_builder_add_file(struct boot_builder *builder, enum boot_file_role role,
                             const struct input_file *input)
{
    struct boot_plan *plan = builder->plan;
    const char *name =
        boot_builder_text(builder, "%s %s", boot_file_role_name(role), input->path);

    CHECK(plan->file_count < BOOT_MAX_FILES);
    plan->files[plan->file_count] = (struct boot_file){
        .role = role,
        .input = input,
        .name = name == NULL ? input->path : name,
    };
    return plan->file_count++;
}

/* ---- what is where ---- */

struct obstacle {
    uint64_t gpa;
    uint64_t size_bytes;
    const char *what;
};

/* Something of the plan that shares a byte with [gpa, gpa + size_bytes). */
static bool find_obstacle(const struct boot_builder *builder, uint64_t gpa,
                          uint64_t size_bytes, struct obstacle *obstacle)
{
    const struct boot_plan *plan = builder->plan;
    const struct boot_reservation *work = &builder->kernel_work;

    for (size_t i = 0; i < plan->range_count; i++) {
        const struct boot_range *range = &plan->ranges[i];

        if (ranges_overlap(gpa, size_bytes, range->gpa, range->size_bytes)) {
            *obstacle = (struct obstacle){range->gpa, range->size_bytes, range->what};
            return true;
        }
    }
    if (ranges_overlap(gpa, size_bytes, work->gpa, work->size_bytes)) {
        *obstacle = (struct obstacle){work->gpa, work->size_bytes, work->what};
        return true;
    }
    return false;
}

static bool is_in_span(const struct boot_plan *plan, uint64_t gpa, uint64_t size_bytes)
{
    for (size_t i = 0; i < plan->span_count - plan->pmem_count; i++) {
        const struct memory_span *span = &plan->spans[i];

        if (gpa >= span->gpa &&
            range_within(gpa - span->gpa, size_bytes, span->size_bytes))
            return true;
    }
    return false;
}

/* ---- the door ---- */

static void insert_sorted(struct boot_plan *plan, const struct boot_range *range)
{
    size_t at = plan->range_count;

    while (at > 0 && plan->ranges[at - 1].gpa > range->gpa)
        at--;
    memmove(&plan->ranges[at + 1], &plan->ranges[at],
            (plan->range_count - at) * sizeof(*range));
    plan->ranges[at] = *range;
    plan->range_count++;
}

static void count_bytes(struct boot_bytes *bytes, const struct boot_range *range)
{
    switch (range->kind) {
    case BOOT_MAP:
        bytes->mapped += range->size_bytes;
        break;
    case BOOT_COPY:
        bytes->copied += range->size_bytes;
        break;
    case BOOT_ZERO:
        bytes->zeroed += range->size_bytes;
        break;
    case BOOT_GENERATED:
        bytes->generated += range->size_bytes;
        break;
    }
}

static int add_range(struct boot_builder *builder, const struct boot_range *range,
                     struct error *err)
{
    struct boot_plan *plan = builder->plan;
    uint64_t end = range->gpa + range->size_bytes;
    struct obstacle obstacle;

    if (range->size_bytes == 0)
        return 0;
    if (range->what == NULL || (range->kind == BOOT_COPY && range->reason == NULL))
        return error_set(err, -ENOMEM, "out of memory for the boot plan");
    if (plan->range_count == BOOT_MAX_RANGES)
        return error_set(err, -E2BIG, "the boot plan has more than %d ranges",
                         BOOT_MAX_RANGES);
    if (!is_in_span(plan, range->gpa, range->size_bytes))
        return error_set(err, -ERANGE,
                         "%s (%" PRIu64 " bytes at 0x%" PRIx64 ") lies outside RAM",
                         range->what, range->size_bytes, range->gpa);
    if (find_obstacle(builder, range->gpa, range->size_bytes, &obstacle))
        return error_set(err, -EEXIST,
                         "%s (0x%" PRIx64 " to 0x%" PRIx64 ") overlaps %s (0x%" PRIx64
                         " to 0x%" PRIx64 ")",
                         range->what, range->gpa, end - 1, obstacle.what, obstacle.gpa,
                         obstacle.gpa + obstacle.size_bytes - 1);
    insert_sorted(plan, range);
    count_bytes(&plan->bytes, range);
    return 0;
}

int boot_builder_add_zero(struct boot_builder *builder, uint64_t gpa, uint64_t size_bytes,
                          const char *what, struct error *err)
{
    return add_range(
        builder,
        &(struct boot_range){
            .gpa = gpa, .size_bytes = size_bytes, .kind = BOOT_ZERO, .what = what},
        err);
}

int boot_builder_add_generated(struct boot_builder *builder, uint64_t gpa, uint8_t *bytes,
                               size_t size_bytes, const char *what, struct error *err)
{
    int status;

    if (bytes == NULL)
        return error_set(err, -ENOMEM, "out of memory for the %s", what);
    status = add_range(builder,
                       &(struct boot_range){.gpa = gpa,
                                            .size_bytes = size_bytes,
                                            .kind = BOOT_GENERATED,
                                            .bytes = bytes,
                                            .what = what},
                       err);
    if (status < 0)
        free(bytes);
    return status;
}

/* ---- bytes of files: mapped, or copied for a stated reason ---- */

struct piece {
    uint64_t gpa;
    size_t file;
    uint64_t file_offset;
    const char *what;
};

static int add_copy(struct boot_builder *builder, const struct piece *piece,
                    uint64_t skip, uint64_t size_bytes, const char *reason,
                    struct error *err)
{
    return add_range(builder,
                     &(struct boot_range){.gpa = piece->gpa + skip,
                                          .size_bytes = size_bytes,
                                          .kind = BOOT_COPY,
                                          .file = piece->file,
                                          .file_offset = piece->file_offset + skip,
                                          .what = piece->what,
                                          .reason = reason},
                     err);
}

static int add_map(struct boot_builder *builder, const struct piece *piece, uint64_t skip,
                   uint64_t size_bytes, struct error *err)
{
    return add_range(builder,
                     &(struct boot_range){.gpa = piece->gpa + skip,
                                          .size_bytes = size_bytes,
                                          .kind = BOOT_MAP,
                                          .file = piece->file,
                                          .file_offset = piece->file_offset + skip,
                                          .what = piece->what},
                     err);
}

/* Whole pages in the middle are mapped, what is left of the first and last is copied. */
static int add_congruent(struct boot_builder *builder, const struct piece *piece,
                         uint64_t size_bytes, struct error *err)
{
    uint64_t first_page = align_up(piece->gpa, builder->page_bytes);
    uint64_t last_page = align_down(piece->gpa + size_bytes, builder->page_bytes);
    uint64_t head_bytes = first_page - piece->gpa;
    uint64_t map_bytes;

    if (first_page >= last_page)
        return add_copy(builder, piece, 0, size_bytes,
                        "fills no whole page, and only whole pages can be mapped", err);
    map_bytes = last_page - first_page;
    if (add_copy(builder, piece, 0, head_bytes,
                 "starts inside a page, and only whole pages can be mapped", err) < 0 ||
        add_map(builder, piece, head_bytes, map_bytes, err) < 0)
        return err->code;
    return add_copy(builder, piece, head_bytes + map_bytes,
                    size_bytes - head_bytes - map_bytes,
                    "ends inside a page, and only whole pages can be mapped", err);
}

int boot_builder_add_bytes(struct boot_builder *builder, uint64_t gpa, size_t file,
                           uint64_t file_offset, uint64_t size_bytes, const char *what,
                           struct error *err)
{
    const struct piece piece = {gpa, file, file_offset, what};
    const struct input_file *input = builder->plan->files[file].input;

    if (!range_within(file_offset, size_bytes, input->size_bytes))
        return error_set(err, -ERANGE,
                         "%s: the file ends at byte %" PRIu64 ", but %" PRIu64
                         " bytes at offset %" PRIu64 " are needed",
                         what, input->size_bytes, size_bytes, file_offset);
    if (builder->options->huge_pages)
        return add_copy(builder, &piece, 0, size_bytes,
                        "RAM of --huge-pages cannot hold pages of files", err);
    if (input->mode == INPUT_READ)
        return add_copy(builder, &piece, 0, size_bytes, input->reason, err);
    if (is_aligned(gpa - file_offset, builder->page_bytes))
        return add_congruent(builder, &piece, size_bytes, err);
    return add_copy(builder, &piece, 0, size_bytes,
                    boot_builder_text(builder,
                                      "file offset 0x%" PRIx64 " and address 0x%" PRIx64
                                      " differ modulo the page size of %" PRIu64,
                                      file_offset, gpa, builder->page_bytes),
                    err);
}

/* ---- the search for free RAM ---- */

bool boot_builder_is_free(const struct boot_builder *builder, uint64_t gpa,
                          uint64_t size_bytes)
{
    struct obstacle obstacle;

    return !find_obstacle(builder, gpa, size_bytes, &obstacle);
}

/* The lowest free place in [start, limit). */
static bool find_lowest(const struct boot_builder *builder, uint64_t start,
                        uint64_t limit, uint64_t size_bytes, uint64_t alignment,
                        uint64_t *gpa)
{
    struct obstacle obstacle;

    *gpa = align_up(start, alignment);
    while (range_within(*gpa, size_bytes, limit)) {
        if (!find_obstacle(builder, *gpa, size_bytes, &obstacle))
            return true;
        *gpa = align_up(obstacle.gpa + obstacle.size_bytes, alignment);
    }
    return false;
}

/* The highest free place in [start, limit). */
static bool find_highest(const struct boot_builder *builder, uint64_t start,
                         uint64_t limit, uint64_t size_bytes, uint64_t alignment,
                         uint64_t *gpa)
{
    struct obstacle obstacle;
    uint64_t end = limit;

    while (end >= size_bytes) {
        *gpa = align_down(end - size_bytes, alignment);
        if (*gpa < start)
            return false;
        if (!find_obstacle(builder, *gpa, size_bytes, &obstacle))
            return true;
        end = obstacle.gpa;
    }
    return false;
}

uint64_t boot_builder_usable_low_bytes(const struct boot_builder *builder)
{
    return builder->low_ram_bytes - (builder->by_firmware ? BOOT_FIRMWARE_RAM_BYTES : 0);
}

/* Firmware loads everything as one piece, which had better be short. */
static uint64_t behind_kernel(const struct boot_builder *builder)
{
    return max_u64(builder->kernel_end, LAYOUT_KERNEL_START);
}

/* The part of a RAM entry of the memory map that may be used and lies in [start, limit).
 */
struct window {
    uint64_t start;
    uint64_t limit; /* <= start: nothing */
};

static struct window window_of(const struct boot_builder *builder,
                               const struct boot_e820 *entry, uint64_t start,
                               uint64_t limit)
{
    uint64_t lowest = builder->by_firmware ? behind_kernel(builder) : X86_PAGE_BYTES;

    if (entry->type != BOOT_E820_RAM)
        return (struct window){0, 0};
    return (struct window){
        .start = max_u64(max_u64(entry->gpa, lowest), start),
        .limit = min_u64(min_u64(entry->gpa + entry->size_bytes, limit),
                         boot_builder_usable_low_bytes(builder)),
    };
}

bool boot_builder_find_lowest(const struct boot_builder *builder, uint64_t start,
                              uint64_t limit, uint64_t size_bytes, uint64_t alignment,
                              uint64_t *gpa)
{
    const struct boot_plan *plan = builder->plan;

    for (size_t i = 0; i < plan->e820_count; i++) {
        struct window window = window_of(builder, &plan->e820[i], start, limit);

        if (window.start < window.limit &&
            find_lowest(builder, window.start, window.limit, size_bytes, alignment, gpa))
            return true;
    }
    return false;
}

bool boot_builder_find_highest(const struct boot_builder *builder, uint64_t start,
                               uint64_t limit, uint64_t size_bytes, uint64_t alignment,
                               uint64_t *gpa)
{
    const struct boot_plan *plan = builder->plan;

    for (size_t i = plan->e820_count; i-- > 0;) {
        struct window window = window_of(builder, &plan->e820[i], start, limit);

        if (window.start < window.limit &&
            find_highest(builder, window.start, window.limit, size_bytes, alignment, gpa))
            return true;
    }
    return false;
}

int boot_builder_place_low(const struct boot_builder *builder, uint64_t wanted,
                           uint64_t size_bytes, uint64_t alignment, const char *what,
                           uint64_t *gpa, struct error *err)
{
    struct obstacle obstacle;

    *gpa = builder->by_firmware ? align_up(behind_kernel(builder), alignment) : wanted;
    if (boot_e820_is_ram(builder->plan, *gpa, size_bytes) &&
        !find_obstacle(builder, *gpa, size_bytes, &obstacle))
        return 0;
    if (boot_builder_find_lowest(builder, 0, LAYOUT_LOW_RAM_LIMIT, size_bytes, alignment,
                                 gpa))
        return 0;
    return error_set(err, -ENOMEM,
                     "no free RAM below 4 GiB is left for the %s (%" PRIu64
                     " bytes); give the guest more memory (-m)",
                     what, size_bytes);
}

bool boot_builder_place_high(const struct boot_builder *builder, uint64_t limit,
                             uint64_t size_bytes, uint64_t *gpa)
{
    limit = min_u64(limit, boot_builder_usable_low_bytes(builder));
    if (builder->by_firmware)
        return find_lowest(builder, behind_kernel(builder), limit, size_bytes,
                           builder->page_bytes, gpa);
    return find_highest(builder, LAYOUT_KERNEL_START, limit, size_bytes,
                        builder->page_bytes, gpa);
}

int boot_builder_need(const struct boot_builder *builder, uint64_t end_gpa,
                      struct error *err)
{
    uint64_t usable = boot_builder_usable_low_bytes(builder);

    if (end_gpa <= usable)
        return 0;
    end_gpa += builder->low_ram_bytes - usable;
    if (end_gpa > LAYOUT_LOW_RAM_LIMIT)
        return error_set(err, -ENOMEM,
                         "needs RAM up to address 0x%" PRIx64
                         ", but below 4 GiB a guest has at most %" PRIu64 " MiB",
                         end_gpa, LAYOUT_LOW_RAM_LIMIT / MIB);
    return error_set(err, -ENOMEM,
                     "needs at least %" PRIu64 " MiB of memory, -m gives %" PRIu64 " MiB",
                     align_up(end_gpa, MIB) / MIB, builder->options->memory_bytes / MIB);
}
