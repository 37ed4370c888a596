/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: any kernel file and any modules -> a Multiboot plan whose information a
 * kernel can walk without leaving it, or one sentence.
 *
 * The input begins with 20 bytes of options (struct choices); the rest is the kernel
 * file.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "plan_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_FUZZED_MODULES 3
#define MAGIC_1 UINT32_C(0x1badb002)
#define MAGIC_2 UINT32_C(0xe85250d6)

struct choices {
    uint32_t memory_pages;
    uint32_t module_bytes[MAX_FUZZED_MODULES]; /* the plan reads no module */
    uint8_t protocol;                          /* index of `protocols` */
    uint8_t module_count;
    uint8_t is_read;
    uint8_t huge_pages; /* bit 1: firmware is to start the kernel */
};
_Static_assert(sizeof(struct choices) == 20, "as the comment says");

static const enum boot_protocol protocols[] = {BOOT_AUTO, BOOT_MULTIBOOT1,
                                               BOOT_MULTIBOOT2};
static char kernel_path[] = "kernel";
static char module_path[] = "module";
static char module_string[] = "module with words";

/* ---- the information, as a kernel walks it ---- */

struct information {
    const struct boot_plan *plan;
    uint32_t gpa;
    const uint8_t *bytes;
    size_t size_bytes;
    size_t modules_seen;
};

/* The range that begins at EBX. */
static struct information find_information(const struct boot_plan *plan)
{
    uint64_t gpa = plan->entry.registers[X86_RBX];
    size_t i = 0;

    while (i < plan->range_count && plan->ranges[i].gpa != gpa)
        i++;
    CHECK(i < plan->range_count && plan->ranges[i].kind == BOOT_GENERATED);
    return (struct information){
        .plan = plan,
        .gpa = (uint32_t)gpa,
        .bytes = plan->ranges[i].bytes,
        .size_bytes = plan->ranges[i].size_bytes,
    };
}

static const uint8_t *at(const struct information *information, uint32_t gpa,
                         size_t size_bytes)
{
    CHECK(gpa >= information->gpa &&
          range_within(gpa - information->gpa, size_bytes, information->size_bytes));
    return information->bytes + (gpa - information->gpa);
}

static void check_string(const struct information *information, uint32_t gpa)
{
    const uint8_t *string = at(information, gpa, 1);
    size_t left = information->size_bytes - (size_t)(string - information->bytes);

    CHECK(memchr(string, '\0', left) != NULL);
}

/* A module's bytes are ranges of the plan that follow each other. */
static void check_module(struct information *information, uint64_t start, uint64_t end)
{
    const struct boot_plan *plan = information->plan;

    CHECK(start < end && is_aligned(start, 4096));
    information->modules_seen++;
    for (size_t i = 0; i < plan->range_count && start < end; i++) {
        const struct boot_range *range = &plan->ranges[i];

        if (range->gpa == start && plan->files[range->file].role == BOOT_FILE_MODULE)
            start += range->size_bytes;
    }
    CHECK(start == end);
}

/* Offsets of Multiboot 0.6.96, 3.3. */
static void check_information1(struct information *information)
{
    const uint8_t *info = at(information, information->gpa, 116);
    uint32_t flags = load_le32(info);
    uint32_t module_count = load_le32(info + 20);
    uint32_t modules = load_le32(info + 24);

    CHECK((flags & 0x24d) == 0x24d); /* memory, command line, modules, map, loader */
    check_string(information, load_le32(info + 16));
    check_string(information, load_le32(info + 64));
    (void)at(information, load_le32(info + 48), load_le32(info + 44));
    for (uint32_t i = 0; i < module_count; i++) {
        const uint8_t *module = at(information, modules + i * 16, 16);

        check_module(information, load_le32(module), load_le32(module + 4));
        check_string(information, load_le32(module + 8));
    }
    if (flags & 1u << 5)
        (void)at(information, load_le32(info + 36),
                 (size_t)load_le32(info + 28) * load_le32(info + 32));
}

/* Tags of Multiboot2 2.0, 3.6. */
static void check_information2(struct information *information)
{
    uint32_t total_bytes = load_le32(at(information, information->gpa, 8));
    uint32_t offset = 8;
    uint32_t type;

    CHECK(is_aligned(information->gpa, 8) && total_bytes <= information->size_bytes);
    do {
        const uint8_t *tag = at(information, information->gpa + offset, 8);
        uint32_t tag_bytes = load_le32(tag + 4);

        type = load_le32(tag);
        CHECK(tag_bytes >= 8 && range_within(offset, tag_bytes, total_bytes));
        if (type == 1 || type == 2) /* command line, loader */
            CHECK(tag[tag_bytes - 1] == '\0');
        if (type == 3) {
            check_module(information, load_le32(tag + 8), load_le32(tag + 12));
            CHECK(tag_bytes > 16 && tag[tag_bytes - 1] == '\0');
        }
        offset += (uint32_t)align_up(tag_bytes, 8);
    } while (type != 0);
    CHECK(offset == total_bytes);
}

/* The entry is in something that is loaded. */
static void check_entry(const struct boot_plan *plan)
{
    size_t i = 0;

    while (i < plan->range_count &&
           (plan->entry.rip < plan->ranges[i].gpa ||
            plan->entry.rip - plan->ranges[i].gpa >= plan->ranges[i].size_bytes))
        i++;
    CHECK(i < plan->range_count && plan->ranges[i].kind != BOOT_GENERATED);
}

static void check_plan(const struct boot_plan *plan, const struct boot_inputs *inputs,
                       const struct boot_options *options)
{
    struct information information;

    plan_checks_machine(plan, options->memory_bytes);
    plan_checks_ranges(plan, options->huge_pages);
    plan_checks_fw_cfg(plan);
    if (plan->protocol != BOOT_MULTIBOOT1 && plan->protocol != BOOT_MULTIBOOT2)
        return;
    check_entry(plan);
    information = find_information(plan);
    if (plan->protocol == BOOT_MULTIBOOT1)
        check_information1(&information);
    else
        check_information2(&information);
    CHECK(information.modules_seen == inputs->initrd_count);
}

/* ---- one input ---- */

/* Mutations would hardly ever get past a checksum. */
static void repair_checksums(uint8_t *file, size_t size)
{
    for (size_t at = 0; at + 16 <= size; at += 4) {
        uint32_t magic = load_le32(file + at);
        uint32_t sum = magic + load_le32(file + at + 4);

        if (magic == MAGIC_1)
            store_le32(file + at + 8, 0 - sum);
        if (magic == MAGIC_2)
            store_le32(file + at + 12, 0 - sum - load_le32(file + at + 8));
    }
}

static int describe(struct boot_inputs *inputs, const struct choices *choices,
                    const uint8_t *data, size_t size)
{
    struct source source = source_from_memory(data, size);
    struct error err = ERROR_NONE;

    if (image_describe(&source, &inputs->image, &err) < 0)
        return -1;
    if (choices->huge_pages & 2) {
        inputs->has_firmware = true;
        inputs->firmware = (struct input_file){
            .path = kernel_path, .fd = -1, .size_bytes = 4096, .mode = INPUT_MAP};
    }
    inputs->has_kernel = true;
    inputs->kernel = (struct input_file){
        .path = kernel_path,
        .fd = memfd_create("fuzz", MFD_CLOEXEC),
        .size_bytes = size,
        .mode = choices->is_read & 1 ? INPUT_READ : INPUT_MAP,
        .reason = "told to",
    };
    CHECK(inputs->kernel.fd >= 0);
    CHECK(write(inputs->kernel.fd, data, size) == (ssize_t)size);
    return 0;
}

static void add_modules(struct boot_inputs *inputs, const struct choices *choices)
{
    inputs->initrd_count = choices->module_count % (MAX_FUZZED_MODULES + 1);
    for (size_t i = 0; i < inputs->initrd_count; i++) {
        inputs->initrds[i] = (struct input_file){
            .path = module_path,
            .fd = -1,
            .size_bytes = max_u64(choices->module_bytes[i], 1),
        };
        inputs->module_strings[i] = module_string;
    }
}

static void try_plan(struct boot_inputs *inputs, const struct choices *choices)
{
    const struct boot_options options = {
        .cmdline = "words",
        .protocol = protocols[choices->protocol % ARRAY_SIZE(protocols)],
        .huge_pages = choices->huge_pages & 1,
        .memory_bytes = choices->memory_pages * UINT64_C(4096),
        .cpu_count = 1,
    };
    struct boot_plan *plan = NULL;
    struct error err = ERROR_NONE;

    if (boot_inputs_choose(inputs, &options, &err) < 0 ||
        boot_plan_build(inputs, &options, &plan, &err) < 0)
        CHECK(plan == NULL && err.text[0] != '\0');
    else
        check_plan(plan, inputs, &options);
    boot_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct boot_inputs inputs = {.has_kernel = false};
    struct choices choices;
    size_t file_bytes = size - sizeof(choices);
    uint8_t *file;

    if (size <= sizeof(choices))
        return 0;
    memcpy(&choices, data, sizeof(choices));
    file = malloc(file_bytes);
    CHECK(file != NULL);
    memcpy(file, data + sizeof(choices), file_bytes);
    repair_checksums(file, file_bytes);
    if (describe(&inputs, &choices, file, file_bytes) == 0) {
        add_modules(&inputs, &choices);
        try_plan(&inputs, &choices);
        (void)close(inputs.kernel.fd);
    }
    free(file);
    return 0;
}
