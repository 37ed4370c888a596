/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel as firmware and its option ROM find it in fw_cfg; see fw_cfg_private.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "boot/fw_cfg_private.h"
#include "x86/layout.h"
#include "x86/x86.h"

struct numbered_key {
    uint16_t key;
    const char *what;
    uint64_t value;
};

static int add_numbers(struct boot_builder *builder, const struct numbered_key *numbers,
                       size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (boot_fw_add_number(builder, numbers[i].key, numbers[i].what, numbers[i].value,
                               sizeof(uint32_t), err) < 0)
            return err->code;
    return 0;
}

/* ---- a bzImage (Documentation/arch/x86/boot.rst) ---- */

/* Where a loader puts the parts of one; the file has been checked for LOADED_HIGH. */
#define SETUP_GPA UINT64_C(0x10000)
#define CMDLINE_GPA UINT64_C(0x20000)

/* Every setup part has two sectors, in which the header lies. */
#define HEADER_SECTORS_BYTES 1024
#define OFFSET_TYPE_OF_LOADER 0x210
#define OFFSET_LOADFLAGS 0x211
#define OFFSET_RAMDISK_IMAGE 0x218
#define OFFSET_RAMDISK_SIZE 0x21c
#define OFFSET_HEAP_END_PTR 0x224
#define OFFSET_CMD_LINE_PTR 0x228
#define LOADER_WITHOUT_ID 0xff
#define LOADFLAGS_CAN_USE_HEAP 0x80
/* From the end of the boot sector on, up to where the command line starts. */
#define HEAP_END (CMDLINE_GPA - SETUP_GPA - 0x200)

static uint8_t *patched_header(const struct boot_builder *builder,
                               const struct boot_builder *kernel, struct error *err)
{
    struct source source = input_file_source(&builder->inputs->kernel);
    uint8_t *bytes = malloc(HEADER_SECTORS_BYTES);

    if (bytes == NULL) {
        (void)error_set(err, -ENOMEM, "out of memory for the setup header");
        return NULL;
    }
    if (source_read(&source, 0, bytes, HEADER_SECTORS_BYTES, err) < 0) {
        free(bytes);
        return NULL;
    }
    bytes[OFFSET_TYPE_OF_LOADER] = LOADER_WITHOUT_ID;
    bytes[OFFSET_LOADFLAGS] |= LOADFLAGS_CAN_USE_HEAP;
    store_le16(bytes + OFFSET_HEAP_END_PTR, HEAP_END);
    store_le32(bytes + OFFSET_CMD_LINE_PTR, CMDLINE_GPA);
    store_le32(bytes + OFFSET_RAMDISK_IMAGE, (uint32_t)kernel->initrd_gpa);
    store_le32(bytes + OFFSET_RAMDISK_SIZE, (uint32_t)kernel->initrd_bytes);
    return bytes;
}

static int add_setup(struct boot_builder *builder, const struct boot_builder *kernel,
                     struct error *err)
{
    uint32_t setup_bytes = builder->inputs->image.bzimage.setup_bytes;
    const struct boot_fw_item item = {.key = FW_CFG_SETUP_DATA,
                                      .what = "bzImage, real-mode part",
                                      .size_bytes = setup_bytes};
    uint8_t *header = patched_header(builder, kernel, err);

    if (header == NULL)
        return err->code;
    if (boot_fw_add_item(builder, &item, err) < 0) {
        free(header);
        return err->code;
    }
    if (boot_fw_add_bytes(builder, 0, header, HEADER_SECTORS_BYTES, err) < 0)
        return err->code;
    return boot_fw_add_file_bytes(builder, HEADER_SECTORS_BYTES, builder->kernel_file,
                                  HEADER_SECTORS_BYTES,
                                  setup_bytes - HEADER_SECTORS_BYTES, err);
}

static int add_protected_part(struct boot_builder *builder, struct error *err)
{
    const struct image_bzimage *bzimage = &builder->inputs->image.bzimage;
    const struct boot_fw_item item = {.key = FW_CFG_KERNEL_DATA,
                                      .what = "bzImage, protected-mode part",
                                      .size_bytes = bzimage->kernel_bytes};

    if (boot_fw_add_item(builder, &item, err) < 0)
        return err->code;
    return boot_fw_add_file_bytes(builder, 0, builder->kernel_file, bzimage->setup_bytes,
                                  bzimage->kernel_bytes, err);
}

static int add_cmdline(struct boot_builder *builder, struct error *err)
{
    const char *cmdline = builder->options->cmdline;
    const struct boot_fw_item item = {.key = FW_CFG_CMDLINE_DATA,
                                      .what = "command line",
                                      .size_bytes = strlen(cmdline) + 1};

    return boot_fw_add_generated(builder, &item, (uint8_t *)strdup(cmdline), err);
}

/* One item from ranges of the other plan: what lies in [start, start + size). What was
 * generated for that plan now belongs to this one. */
static int add_ranges(struct boot_builder *builder, struct boot_builder *kernel,
                      const struct boot_fw_item *item, uint64_t start, struct error *err)
{
    if (boot_fw_add_item(builder, item, err) < 0)
        return err->code;
    for (size_t i = 0; i < kernel->plan->range_count; i++) {
        struct boot_range *range = &kernel->plan->ranges[i];
        uint64_t at = range->gpa - start;
        int status = 0;

        if (range->gpa < start || at >= item->size_bytes || range->kind == BOOT_ZERO)
            continue;
        if (range->kind == BOOT_GENERATED) {
            status = boot_fw_add_bytes(builder, at, range->bytes, range->size_bytes, err);
            range->bytes = NULL;
        } else {
            status = boot_fw_add_file_bytes(builder, at, range->file, range->file_offset,
                                            range->size_bytes, err);
        }
        if (status < 0)
            return status;
    }
    return 0;
}

static int add_initrd(struct boot_builder *builder, struct boot_builder *kernel,
                      struct error *err)
{
    const struct boot_fw_item item = {
        .key = FW_CFG_INITRD_DATA, .what = "initrd", .size_bytes = kernel->initrd_bytes};

    if (kernel->initrd_bytes == 0)
        return 0;
    return add_ranges(builder, kernel, &item, kernel->initrd_gpa, err);
}

/* Where the kernel will run, and that there is room for it and its initrd. */
static int place_bzimage(struct boot_builder *kernel, struct error *err)
{
    const struct image_bzimage *bzimage = &kernel->inputs->image.bzimage;
    uint64_t initrd_limit = (uint64_t)bzimage->initrd_last_byte + 1;
    uint64_t load_gpa, cmdline_gpa;

    if (boot_kernel_add_bzimage(kernel, &load_gpa, err) < 0 ||
        boot_handover_add_initrds(kernel, initrd_limit, err) < 0)
        return err->code;
    return boot_handover_add_cmdline(kernel, bzimage->cmdline_limit, &cmdline_gpa, err);
}

static int add_placed_bzimage(struct boot_builder *builder, struct boot_builder *kernel,
                              struct error *err)
{
    const struct image_bzimage *bzimage = &builder->inputs->image.bzimage;
    const struct numbered_key numbers[] = {
        {FW_CFG_SETUP_ADDR, "address of the real-mode part", SETUP_GPA},
        {FW_CFG_SETUP_SIZE, "size of the real-mode part", bzimage->setup_bytes},
        {FW_CFG_KERNEL_ADDR, "address of the kernel", LAYOUT_KERNEL_START},
        {FW_CFG_KERNEL_SIZE, "size of the kernel", bzimage->kernel_bytes},
        {FW_CFG_CMDLINE_ADDR, "address of the command line", CMDLINE_GPA},
        {FW_CFG_CMDLINE_SIZE, "size of the command line",
         strlen(builder->options->cmdline) + 1},
        {FW_CFG_INITRD_ADDR, "address of the initrd", kernel->initrd_gpa},
        {FW_CFG_INITRD_SIZE, "size of the initrd", kernel->initrd_bytes},
    };

    if (add_numbers(builder, numbers, ARRAY_SIZE(numbers), err) < 0 ||
        add_setup(builder, kernel, err) < 0 || add_protected_part(builder, err) < 0 ||
        add_cmdline(builder, err) < 0)
        return err->code;
    return add_initrd(builder, kernel, err);
}

static int add_bzimage(struct boot_builder *builder, struct boot_builder *kernel,
                       struct error *err)
{
    if (place_bzimage(kernel, err) < 0)
        return err->code;
    return add_placed_bzimage(builder, kernel, err);
}

/* ---- every other kernel: one piece, and the registers it is entered with ---- */

struct entry_registers {
    uint32_t eax;
    uint32_t ebx;
};

/* What EBX points at: made by husk, and to the end of its range. */
struct information {
    uint64_t gpa;
    uint64_t size_bytes;
    const uint8_t *bytes;
    const char *what;
};

static struct information find_information(const struct boot_plan *plan)
{
    uint64_t gpa = plan->entry.registers[X86_RBX];
    const struct boot_range *range = plan->ranges;

    while (gpa - range->gpa >= range->size_bytes) {
        range++;
        CHECK(range < plan->ranges + plan->range_count);
    }
    CHECK(range->kind == BOOT_GENERATED);
    return (struct information){
        .gpa = gpa,
        .size_bytes = range->size_bytes - (gpa - range->gpa),
        .bytes = range->bytes + (gpa - range->gpa),
        .what = range->what,
    };
}

static int add_information(struct boot_builder *builder,
                           const struct information *information, struct error *err)
{
    const struct boot_fw_item item = {.key = FW_CFG_INITRD_DATA,
                                      .what = information->what,
                                      .size_bytes = information->size_bytes};
    uint8_t *bytes = malloc(information->size_bytes);

    if (bytes != NULL)
        memcpy(bytes, information->bytes, information->size_bytes);
    return boot_fw_add_generated(builder, &item, bytes, err);
}

static int add_entry(struct boot_builder *builder, const struct cpu_state *entry,
                     struct error *err)
{
    const struct boot_fw_item item = {.name = "etc/husk/entry",
                                      .what = "EAX and EBX of the kernel's start",
                                      .size_bytes = sizeof(struct entry_registers)};
    struct entry_registers *registers = malloc(sizeof(*registers));

    if (registers != NULL)
        *registers = (struct entry_registers){
            .eax = (uint32_t)entry->registers[X86_RAX],
            .ebx = (uint32_t)entry->registers[X86_RBX],
        };
    return boot_fw_add_generated(builder, &item, (uint8_t *)registers, err);
}

static int add_piece(struct boot_builder *builder, struct boot_builder *kernel,
                     struct error *err)
{
    const struct boot_plan *plan = kernel->plan;
    const struct boot_range *last = &plan->ranges[plan->range_count - 1];
    const struct information information = find_information(plan);
    uint64_t start = plan->ranges[0].gpa;
    uint64_t size_bytes = last->gpa + last->size_bytes - start;
    const struct numbered_key numbers[] = {
        {FW_CFG_KERNEL_ADDR, "address of the kernel", start},
        {FW_CFG_KERNEL_SIZE, "size of the kernel", size_bytes},
        {FW_CFG_KERNEL_ENTRY, "entry point of the kernel", plan->entry.rip},
        {FW_CFG_INITRD_ADDR, "address of what is handed over", information.gpa},
        {FW_CFG_INITRD_SIZE, "size of what is handed over", information.size_bytes},
    };
    const struct boot_fw_item item = {.key = FW_CFG_KERNEL_DATA,
                                      .what = "kernel, and what is handed over",
                                      .size_bytes = size_bytes};

    if (add_numbers(builder, numbers, ARRAY_SIZE(numbers), err) < 0 ||
        add_entry(builder, &plan->entry, err) < 0 ||
        add_information(builder, &information, err) < 0)
        return err->code;
    return add_ranges(builder, kernel, &item, start, err);
}

/* ---- either ---- */

static bool is_whole_bzimage(const struct boot_inputs *inputs)
{
    return inputs->image.format == IMAGE_BZIMAGE && !boot_uses_unpacked(inputs);
}

static bool enters_32_bit(const struct boot_plan *plan)
{
    const struct cpu_state *entry = &plan->entry;

    return (entry->cr0 & (X86_CR0_PE | X86_CR0_PG)) == X86_CR0_PE;
}

static int add_kernel(struct boot_builder *builder, struct boot_builder *kernel,
                      struct error *err)
{
    if (is_whole_bzimage(builder->inputs))
        return add_bzimage(builder, kernel, err);
    if (boot_builder_build_kernel(kernel, err) < 0)
        return err->code;
    if (!enters_32_bit(kernel->plan))
        return error_set(err, -EINVAL,
                         "kernel %s: firmware cannot start it by --protocol %s, only "
                         "husk itself can; leave out --firmware",
                         builder->inputs->kernel.path,
                         boot_protocol_name(kernel->plan->protocol));
    return add_piece(builder, kernel, err);
}

int boot_fw_add_kernel(struct boot_builder *builder, struct error *err)
{
    struct boot_builder kernel;
    int status;

    if (boot_builder_begin_kernel(builder, &kernel, err) < 0)
        return err->code;
    status = add_kernel(builder, &kernel, err);
    boot_plan_destroy(kernel.plan);
    return status;
}
