/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot, what both versions share: see multiboot_private.h. */
#include "boot/multiboot_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/handover_private.h"
#include "x86/layout.h"

static bool is_elf(const struct image *image)
{
    return image->format == IMAGE_ELF32 || image->format == IMAGE_ELF64;
}

int boot_multiboot_check_file(const struct image *image, struct error *err)
{
    if (is_elf(image))
        return 0;
    return error_set(err, -ENOEXEC,
                     "goes with a %s, and places it nowhere: only an ELF file can do "
                     "without addresses",
                     image_format_name(image->format));
}

int boot_multiboot_check_entry(const struct image *image, struct error *err)
{
    if (image->elf.entry_physical <= UINT32_MAX)
        return 0;
    return error_set(err, -ENOEXEC,
                     "the ELF's entry point 0x%" PRIx64
                     " is above 4 GiB, where 32-bit mode does not reach",
                     image->elf.entry_physical);
}

/* ---- the kernel ---- */

void boot_multiboot_kernel_init(struct multiboot_kernel *kernel,
                                const struct image *image,
                                const struct image_segment *flat)
{
    *kernel = (struct multiboot_kernel){.load_base = UINT64_MAX};
    if (flat != NULL) {
        kernel->segments[0] = *flat;
        kernel->segment_count = 1;
    } else {
        kernel->is_elf = true;
        kernel->entry = image->elf.entry_physical;
        kernel->segment_count = image->elf.segment_count;
        memcpy(kernel->segments, image->elf.segments, sizeof(kernel->segments));
    }
    for (size_t i = 0; i < kernel->segment_count; i++)
        kernel->load_base = min_u64(kernel->load_base, kernel->segments[i].gpa);
}

static uint64_t kernel_end(const struct multiboot_kernel *kernel)
{
    uint64_t end = 0;

    for (size_t i = 0; i < kernel->segment_count; i++)
        end = max_u64(end, kernel->segments[i].gpa + kernel->segments[i].memory_bytes);
    return end;
}

/* Where [load_base, end) is to lie. A kernel without a preference stays where it was
 * linked if it may: there its file can be mapped as its linker meant it. */
static bool find_place(const struct multiboot_kernel *kernel,
                       const struct boot_builder *builder,
                       const struct image_multiboot2_relocation *wish, uint64_t *gpa)
{
    uint64_t size_bytes = kernel_end(kernel) - kernel->load_base;
    uint64_t limit = (uint64_t)wish->max_addr + 1;

    if (wish->preference == IMAGE_MULTIBOOT2_HIGHEST)
        return boot_builder_find_highest(builder, wish->min_addr, limit, size_bytes,
                                         wish->alignment, gpa);
    if (wish->preference == IMAGE_MULTIBOOT2_ANYWHERE &&
        kernel->load_base >= wish->min_addr &&
        is_aligned(kernel->load_base, wish->alignment) &&
        boot_builder_find_lowest(builder, kernel->load_base, limit, size_bytes, 1, gpa) &&
        *gpa == kernel->load_base)
        return true;
    return boot_builder_find_lowest(builder, wish->min_addr, limit, size_bytes,
                                    wish->alignment, gpa);
}

int boot_multiboot_kernel_move(struct multiboot_kernel *kernel,
                               const struct boot_builder *builder,
                               const struct image_multiboot2_relocation *wish,
                               struct error *err)
{
    uint64_t gpa;

    if (!find_place(kernel, builder, wish, &gpa))
        return error_set(
            err, -ENOSPC,
            "kernel %s: its %" PRIu64 " bytes do not fit into free RAM between 0x%" PRIx32
            " and 0x%" PRIx32 " (relocatable tag, alignment 0x%" PRIx32
            "); -m gives %" PRIu64 " MiB",
            builder->inputs->kernel.path, kernel_end(kernel) - kernel->load_base,
            wish->min_addr, wish->max_addr, wish->alignment,
            builder->options->memory_bytes / MIB);
    kernel->moved_by = gpa - kernel->load_base;
    kernel->load_base = gpa;
    kernel->entry += kernel->moved_by;
    for (size_t i = 0; i < kernel->segment_count; i++)
        kernel->segments[i].gpa += kernel->moved_by;
    return 0;
}

int boot_multiboot_kernel_add(const struct multiboot_kernel *kernel,
                              struct boot_builder *builder, struct error *err)
{
    return boot_kernel_add_segments(builder, kernel->segments, kernel->segment_count,
                                    kernel->entry, err);
}

/* ---- modules ---- */

/* One try tells how much memory would do for all of them. */
static int refuse_modules(const struct boot_builder *builder, struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    uint64_t end = builder->kernel_end;

    for (size_t i = 0; i < inputs->initrd_count; i++)
        end = align_up(end, builder->page_bytes) + inputs->initrds[i].size_bytes;
    if (boot_builder_need(builder, end, err) == 0)
        (void)error_set(err, -ENOSPC,
                        "there is no free RAM below 4 GiB that is large enough");
    return error_prefix(err, "%zu module%s beside the kernel", inputs->initrd_count,
                        inputs->initrd_count == 1 ? "" : "s");
}

/* Behind the kernel, or else anywhere above 1 MiB. */
static bool find_behind(const struct boot_builder *builder, uint64_t start,
                        uint64_t size_bytes, uint64_t *gpa)
{
    return boot_builder_find_lowest(builder, max_u64(start, LAYOUT_KERNEL_START),
                                    LAYOUT_LOW_RAM_LIMIT, size_bytes, builder->page_bytes,
                                    gpa) ||
           boot_builder_find_lowest(builder, LAYOUT_KERNEL_START, LAYOUT_LOW_RAM_LIMIT,
                                    size_bytes, builder->page_bytes, gpa);
}

int boot_multiboot_add_modules(struct boot_builder *builder,
                               struct multiboot_module modules[BOOT_MAX_INITRDS],
                               struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    uint64_t end = builder->kernel_end;

    for (size_t i = 0; i < inputs->initrd_count; i++) {
        const struct input_file *input = &inputs->initrds[i];
        const char *string = inputs->module_strings[i];
        struct multiboot_module *module = &modules[i];

        module->size_bytes = input->size_bytes;
        module->string = string == NULL ? input->path : string;
        if (!find_behind(builder, end, module->size_bytes, &module->gpa))
            return refuse_modules(builder, err);
        if (boot_builder_add_bytes(builder, module->gpa, builder->first_initrd_file + i,
                                   0, module->size_bytes,
                                   boot_builder_text(builder, "module %zu", i), err) < 0)
            return error_prefix(err, "module %s", input->path);
        end = module->gpa + module->size_bytes;
    }
    return 0;
}

/* ---- numbers ---- */

uint32_t boot_multiboot_lower_kib(const struct boot_builder *builder)
{
    return (uint32_t)(min_u64(builder->low_ram_bytes, LAYOUT_EBDA_START) / KIB);
}

uint32_t boot_multiboot_upper_kib(const struct boot_builder *builder)
{
    return (uint32_t)((boot_builder_usable_low_bytes(builder) - LAYOUT_KERNEL_START) /
                      KIB);
}

void boot_multiboot_note_video(struct boot_builder *builder,
                               const struct image_multiboot_video *video, bool is_text)
{
    char size[64] = "";

    if (video->width != 0 && video->height != 0)
        (void)snprintf(size, sizeof(size), " of %" PRIu32 "x%" PRIu32 " %s", video->width,
                       video->height, is_text ? "characters" : "pixels");
    boot_builder_note(builder,
                      "the kernel asks for a %s mode%s and is told of %dx%d text at "
                      "0x%" PRIx64 ", which nobody sees: husk's machine has no display",
                      is_text ? "text" : "graphics", size, LAYOUT_TEXT_COLUMNS,
                      LAYOUT_TEXT_ROWS, LAYOUT_TEXT_SCREEN);
}

/* ---- the way in ---- */

int boot_multiboot_place(const struct boot_builder *builder,
                         const struct multiboot_block *block, uint64_t *gpa,
                         struct error *err)
{
    if (block->failed)
        return error_set(err, -ENOMEM, "out of memory for the Multiboot information");
    return boot_builder_place_low(builder, HANDOVER_MULTIBOOT, block->used, 16,
                                  "Multiboot information", gpa, err);
}

int boot_multiboot_add_information(struct boot_builder *builder,
                                   struct multiboot_block *block, uint64_t gpa,
                                   struct error *err)
{
    uint8_t *bytes = block->bytes;

    block->bytes = NULL;
    return boot_builder_add_generated(builder, gpa, bytes, block->used,
                                      "Multiboot information", err);
}

int boot_multiboot_enter(struct boot_builder *builder, uint64_t entry, uint32_t magic,
                         uint64_t information, struct error *err)
{
    struct cpu_state *state = &builder->plan->entry;
    uint32_t gdt;

    if ((!builder->by_firmware && boot_bios_area_add(builder, err) < 0) ||
        boot_handover_add_gdt(builder, false, &gdt, err) < 0)
        return err->code;
    cpu_state_flat32(state, (uint32_t)entry, gdt);
    state->registers[X86_RAX] = magic;
    state->registers[X86_RBX] = information;
    return 0;
}
