/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: any kernel file with any options -> a plan that keeps its promises, or one
 * sentence.
 *
 * The input begins with 32 bytes of options (struct choices); then come the kernel file
 * and what a bzImage is said to contain.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/boot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FUZZED_INITRDS 4
#define MAX_CMDLINE_BYTES 5000

struct choices {
    uint32_t memory_pages;
    uint32_t initrd_bytes[MAX_FUZZED_INITRDS]; /* the plan reads no initrd */
    uint16_t cmdline_bytes;
    uint16_t kernel_bytes; /* the rest is what it contains */
    uint8_t cpu_count;
    uint8_t protocol;
    uint8_t initrd_count;
    uint8_t is_firmware;
    uint8_t is_unpacked;
    uint8_t is_read;
    uint8_t huge_pages;
    uint8_t unused;
};
_Static_assert(sizeof(struct choices) == 32, "as the comment says");

static char kernel_path[] = "kernel";
static char initrd_path[] = "initrd";

/* ---- what must hold of a plan ---- */

static bool is_in_span(const struct boot_plan *plan, const struct boot_range *range)
{
    for (size_t i = 0; i < plan->span_count; i++) {
        const struct memory_span *span = &plan->spans[i];

        if (range->gpa >= span->gpa &&
            range_within(range->gpa - span->gpa, range->size_bytes, span->size_bytes))
            return true;
    }
    return false;
}

static void check_file_range(const struct boot_plan *plan, const struct boot_range *range,
                             bool huge_pages)
{
    const struct input_file *input;

    CHECK(range->file < plan->file_count);
    input = plan->files[range->file].input;
    CHECK(range_within(range->file_offset, range->size_bytes, input->size_bytes));
    if (range->kind == BOOT_COPY) {
        CHECK(range->reason != NULL && range->reason[0] != '\0');
        return;
    }
    CHECK(input->mode == INPUT_MAP && !huge_pages && range->reason == NULL);
    CHECK(is_aligned(range->gpa | range->file_offset | range->size_bytes, 4096));
}

static void check_ranges(const struct boot_plan *plan, bool huge_pages)
{
    uint64_t sums[BOOT_GENERATED + 1] = {0};
    uint64_t end = 0;

    CHECK(plan->range_count <= BOOT_MAX_RANGES);
    for (size_t i = 0; i < plan->range_count; i++) {
        const struct boot_range *range = &plan->ranges[i];

        CHECK(range->size_bytes != 0 && range->gpa >= end && range->what != NULL);
        CHECK(is_in_span(plan, range));
        end = range->gpa + range->size_bytes;
        sums[range->kind] += range->size_bytes;
        if (range->kind == BOOT_MAP || range->kind == BOOT_COPY)
            check_file_range(plan, range, huge_pages);
        CHECK((range->kind == BOOT_GENERATED) == (range->bytes != NULL));
    }
    CHECK(plan->bytes.mapped == sums[BOOT_MAP] && plan->bytes.copied == sums[BOOT_COPY]);
    CHECK(plan->bytes.zeroed == sums[BOOT_ZERO]);
    CHECK(plan->bytes.generated == sums[BOOT_GENERATED]);
}

static void check_machine(const struct boot_plan *plan, uint64_t memory_bytes)
{
    uint64_t ram_bytes = 0;
    uint64_t end = 0;

    for (size_t i = 0; i < plan->span_count; i++) {
        CHECK(plan->spans[i].size_bytes != 0 && plan->spans[i].gpa >= end);
        end = plan->spans[i].gpa + plan->spans[i].size_bytes;
        ram_bytes += plan->spans[i].size_bytes;
    }
    if (plan->protocol != BOOT_FIRMWARE)
        CHECK(ram_bytes == memory_bytes);
    end = 0;
    for (size_t i = 0; i < plan->e820_count; i++) {
        CHECK(plan->e820[i].size_bytes != 0 && plan->e820[i].gpa >= end);
        end = plan->e820[i].gpa + plan->e820[i].size_bytes;
    }
    CHECK(plan->protocol != BOOT_AUTO && plan->protocol_reason[0] != '\0');
}

/* ---- one input ---- */

static struct input_file make_file(char *path, const uint8_t *bytes, size_t size,
                                   const struct choices *choices)
{
    struct input_file file = {.path = path, .size_bytes = size, .mode = INPUT_MAP};

    if (choices->is_read & 1) {
        file.mode = INPUT_READ;
        strcpy(file.reason, "told to");
    }
    file.fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(file.fd >= 0 && write(file.fd, bytes, size) == (ssize_t)size);
    return file;
}

static int describe(struct boot_inputs *inputs, const struct choices *choices,
                    const uint8_t *data, size_t size)
{
    size_t kernel_bytes = min_u64(choices->kernel_bytes, size);
    struct source source = source_from_memory(data, kernel_bytes);
    struct error err = ERROR_NONE;
    int status = choices->is_firmware & 1
                     ? image_describe_firmware(&source, &inputs->image, &err)
                     : image_describe(&source, &inputs->image, &err);

    if (status < 0 || kernel_bytes == 0)
        return -1;
    inputs->kernel = make_file(kernel_path, data, kernel_bytes, choices);
    source = source_from_memory(data + kernel_bytes, size - kernel_bytes);
    if (inputs->image.format == IMAGE_BZIMAGE && (choices->is_unpacked & 1) &&
        image_describe(&source, &inputs->unpacked_image, &err) == 0) {
        inputs->has_unpacked = true;
        inputs->unpacked =
            make_file(kernel_path, data + kernel_bytes, size - kernel_bytes, choices);
    }
    return 0;
}

static void add_initrds(struct boot_inputs *inputs, const struct choices *choices)
{
    if (choices->is_firmware & 1)
        return;
    inputs->initrd_count = choices->initrd_count % (MAX_FUZZED_INITRDS + 1);
    for (size_t i = 0; i < inputs->initrd_count; i++)
        inputs->initrds[i] = (struct input_file){
            .path = initrd_path,
            .fd = -1,
            .size_bytes = max_u64(choices->initrd_bytes[i], 1),
        };
}

static void build(const struct boot_inputs *inputs, const struct choices *choices)
{
    static char cmdline[MAX_CMDLINE_BYTES + 1];
    struct boot_options options = {
        .cmdline = cmdline,
        .protocol = choices->protocol % (BOOT_FIRMWARE + 1),
        .huge_pages = choices->huge_pages & 1,
        .memory_bytes = choices->memory_pages * UINT64_C(4096),
        .cpu_count = choices->cpu_count,
    };
    struct boot_plan *plan = NULL;
    struct error err = ERROR_NONE;
    size_t cmdline_bytes = min_u64(choices->cmdline_bytes, MAX_CMDLINE_BYTES);

    memset(cmdline, 'a', cmdline_bytes);
    cmdline[cmdline_bytes] = '\0';
    if (boot_plan_build(inputs, &options, &plan, &err) < 0) {
        CHECK(plan == NULL && err.text[0] != '\0');
        return;
    }
    check_machine(plan, options.memory_bytes);
    check_ranges(plan, options.huge_pages);
    boot_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct boot_inputs inputs = {.has_unpacked = false};
    struct choices choices;

    if (size <= sizeof(choices))
        return 0;
    memcpy(&choices, data, sizeof(choices));
    if (describe(&inputs, &choices, data + sizeof(choices), size - sizeof(choices)) < 0)
        return 0;
    add_initrds(&inputs, &choices);
    build(&inputs, &choices);
    (void)close(inputs.kernel.fd);
    if (inputs.has_unpacked)
        (void)close(inputs.unpacked.fd);
    return 0;
}
