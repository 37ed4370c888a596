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
#include "plan_checks.h"

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
    uint8_t is_firmware; /* bit 0: instead of a kernel; bit 1: beside it */
    uint8_t is_unpacked;
    uint8_t is_read;
    uint8_t huge_pages;
    uint8_t unused;
};
_Static_assert(sizeof(struct choices) == 32, "as the comment says");

static const uint8_t firmware[4096];
static char kernel_path[] = "kernel";
static char initrd_path[] = "initrd";

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

static int describe_firmware(struct boot_inputs *inputs, const struct choices *choices,
                             const uint8_t *data, size_t size)
{
    struct source source = source_from_memory(data, size);
    struct error err = ERROR_NONE;

    if (image_describe_firmware(&source, &inputs->firmware_image, &err) < 0)
        return -1;
    inputs->has_firmware = true;
    inputs->firmware = make_file(kernel_path, data, size, choices);
    return 0;
}

static int describe(struct boot_inputs *inputs, const struct choices *choices,
                    const uint8_t *data, size_t size)
{
    size_t kernel_bytes = min_u64(choices->kernel_bytes, size);
    struct source source = source_from_memory(data, kernel_bytes);
    struct error err = ERROR_NONE;

    if (choices->is_firmware & 1)
        return describe_firmware(inputs, choices, data, kernel_bytes);
    if (image_describe(&source, &inputs->image, &err) < 0)
        return -1;
    inputs->has_kernel = true;
    inputs->kernel = make_file(kernel_path, data, kernel_bytes, choices);
    if (choices->is_firmware & 2) {
        inputs->has_firmware = true;
        inputs->firmware = make_file(kernel_path, firmware, sizeof(firmware), choices);
    }
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

static void build(struct boot_inputs *inputs, const struct choices *choices)
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
    if (boot_inputs_choose(inputs, &options, &err) < 0 ||
        boot_plan_build(inputs, &options, &plan, &err) < 0) {
        CHECK(plan == NULL && err.text[0] != '\0');
        return;
    }
    plan_checks_machine(plan, options.memory_bytes);
    plan_checks_ranges(plan, options.huge_pages);
    plan_checks_fw_cfg(plan);
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
    if (inputs.has_firmware)
        (void)close(inputs.firmware.fd);
    if (inputs.has_kernel)
        (void)close(inputs.kernel.fd);
    if (inputs.has_unpacked)
        (void)close(inputs.unpacked.fd);
    return 0;
}
