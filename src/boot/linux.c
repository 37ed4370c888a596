/* SPDX-License-Identifier: Apache-2.0 */
/* The Linux boot protocol: bzImages by their 64-bit and 32-bit entries, and ELF64 files
 * entered like the former. Documentation/arch/x86/{boot,zero-page}.rst. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/builder_private.h"
#include "boot/handover_private.h"
#include "x86/layout.h"

/* The zero page, struct boot_params. */
#define BOOT_PARAMS_BYTES 4096
#define OFFSET_ACPI_RSDP 0x070
#define OFFSET_E820_COUNT 0x1e8
#define OFFSET_SETUP_HEADER 0x1f1
#define OFFSET_BOOT_FLAG 0x1fe
#define OFFSET_HEADER_MAGIC 0x202
#define OFFSET_VERSION 0x206
#define OFFSET_TYPE_OF_LOADER 0x210
#define OFFSET_LOADFLAGS 0x211
#define OFFSET_CODE32_START 0x214
#define OFFSET_RAMDISK_IMAGE 0x218
#define OFFSET_RAMDISK_SIZE 0x21c
#define OFFSET_CMD_LINE_PTR 0x228
#define OFFSET_KERNEL_ALIGNMENT 0x230
#define OFFSET_CMDLINE_SIZE 0x238
#define OFFSET_EDD_SIGNATURES 0x290 /* what follows the setup header */
#define OFFSET_E820_TABLE 0x2d0
#define E820_ENTRY_BYTES 20
_Static_assert(BOOT_MAX_E820 <= 128, "E820_MAX_ENTRIES_ZEROPAGE");

#define BOOT_FLAG 0xaa55
#define HEADER_MAGIC 0x53726448u /* "HdrS" */
#define VERSION_2_15 0x020f
#define VERSION_2_08 0x0208 /* since then a header says where the kernel is */
#define LOADFLAGS_LOADED_HIGH 0x01
#define LOADER_WITHOUT_ID 0xff
#define ENTRY64_OFFSET 0x200 /* from the load address */

/* Identity map of the first 4 GiB in 2 MiB pages (SDM 4.5): PML4, one page-directory
 * pointer table, four page directories. 1 GiB pages would be one table less per GiB, but
 * not every processor has them. */
#define TABLE_ENTRIES UINT64_C(512)
#define MAPPED_GIB UINT64_C(4)
#define TABLE_COUNT (2 + MAPPED_GIB)

/* ---- boot_params ---- */

/* The header's fields that a loader copies from the file. A header that claims to reach
 * further than any known version is cut: what follows in boot_params is the loader's. */
static int copy_setup_header(const struct boot_builder *builder, uint8_t *params,
                             struct error *err)
{
    struct source source = input_file_source(&builder->inputs->kernel);
    uint64_t end =
        min_u64(builder->inputs->image.bzimage.header_end, OFFSET_EDD_SIGNATURES);

    if (end <= OFFSET_SETUP_HEADER)
        return 0;
    return source_read(&source, OFFSET_SETUP_HEADER, params + OFFSET_SETUP_HEADER,
                       end - OFFSET_SETUP_HEADER, err);
}

/* An ELF has no setup header; these are the fields Linux looks at. */
static void write_elf_header(uint8_t *params)
{
    store_le16(params + OFFSET_BOOT_FLAG, BOOT_FLAG);
    store_le32(params + OFFSET_HEADER_MAGIC, HEADER_MAGIC);
    store_le16(params + OFFSET_VERSION, VERSION_2_15);
    params[OFFSET_LOADFLAGS] = LOADFLAGS_LOADED_HIGH;
}

static void write_e820(const struct boot_plan *plan, uint8_t *params)
{
    params[OFFSET_E820_COUNT] = (uint8_t)plan->e820_count;
    for (size_t i = 0; i < plan->e820_count; i++) {
        uint8_t *entry = params + OFFSET_E820_TABLE + i * E820_ENTRY_BYTES;

        store_le64(entry, plan->e820[i].gpa);
        store_le64(entry + 8, plan->e820[i].size_bytes);
        store_le32(entry + 16, plan->e820[i].type);
    }
}

static void write_handover(const struct boot_builder *builder, uint64_t load_gpa,
                           uint64_t cmdline, uint8_t *params)
{
    params[OFFSET_TYPE_OF_LOADER] = LOADER_WITHOUT_ID;
    store_le32(params + OFFSET_CODE32_START, (uint32_t)load_gpa);
    store_le32(params + OFFSET_RAMDISK_IMAGE, (uint32_t)builder->initrd_gpa);
    store_le32(params + OFFSET_RAMDISK_SIZE, (uint32_t)builder->initrd_bytes);
    store_le32(params + OFFSET_CMD_LINE_PTR, (uint32_t)cmdline);
    store_le64(params + OFFSET_ACPI_RSDP, LAYOUT_ACPI_START);
    write_e820(builder->plan, params);
}

static int add_boot_params(struct boot_builder *builder, uint64_t load_gpa,
                           uint64_t cmdline, uint64_t *gpa, struct error *err)
{
    uint8_t *params;

    if (boot_builder_place_low(builder, HANDOVER_BOOT_PARAMS, BOOT_PARAMS_BYTES,
                               X86_PAGE_BYTES, "boot_params", gpa, err) < 0)
        return err->code;
    params = calloc(1, BOOT_PARAMS_BYTES);
    if (params != NULL) {
        if (builder->inputs->image.format != IMAGE_BZIMAGE)
            write_elf_header(params);
        else if (copy_setup_header(builder, params, err) < 0) {
            free(params);
            return error_prefix(err, "kernel %s", builder->inputs->kernel.path);
        }
        write_handover(builder, load_gpa, cmdline, params);
    }
    return boot_builder_add_generated(builder, *gpa, params, BOOT_PARAMS_BYTES,
                                      "boot_params", err);
}

/* ---- long mode ---- */

static void fill_page_tables(uint64_t *tables, uint64_t gpa)
{
    const uint64_t flags = X86_PTE_PRESENT | X86_PTE_WRITABLE;
    uint64_t *pointers = tables + TABLE_ENTRIES;
    uint64_t *directories = tables + 2 * TABLE_ENTRIES;

    tables[0] = (gpa + X86_PAGE_BYTES) | flags;
    for (uint64_t i = 0; i < MAPPED_GIB; i++)
        pointers[i] = (gpa + (2 + i) * X86_PAGE_BYTES) | flags;
    for (uint64_t i = 0; i < MAPPED_GIB * TABLE_ENTRIES; i++)
        directories[i] = i * X86_LARGE_PAGE_BYTES | flags | X86_PTE_LARGE;
}

static int add_page_tables(struct boot_builder *builder, uint64_t *gpa, struct error *err)
{
    const size_t size_bytes = TABLE_COUNT * X86_PAGE_BYTES;
    uint64_t *tables;

    if (boot_builder_place_low(builder, HANDOVER_PAGE_TABLES, size_bytes, X86_PAGE_BYTES,
                               "page tables", gpa, err) < 0)
        return err->code;
    tables = calloc(1, size_bytes);
    if (tables != NULL)
        fill_page_tables(tables, *gpa);
    return boot_builder_add_generated(builder, *gpa, (uint8_t *)tables, size_bytes,
                                      "page tables", err);
}

/* Linux sets up its own stack; smaller kernels are glad to find one. */
static int add_stack(struct boot_builder *builder, uint64_t *gpa, struct error *err)
{
    if (boot_builder_place_low(builder, HANDOVER_STACK, X86_PAGE_BYTES, X86_PAGE_BYTES,
                               "boot stack", gpa, err) < 0)
        return err->code;
    return boot_builder_add_zero(builder, *gpa, X86_PAGE_BYTES, "boot stack", err);
}

static int enter_long_mode(struct boot_builder *builder, uint64_t entry,
                           uint64_t boot_params, struct error *err)
{
    struct cpu_state *state = &builder->plan->entry;
    uint64_t page_tables, stack;
    uint32_t gdt;

    if (boot_handover_add_gdt(builder, true, &gdt, err) < 0 ||
        add_page_tables(builder, &page_tables, err) < 0 ||
        add_stack(builder, &stack, err) < 0)
        return err->code;
    cpu_state_long64(state, entry, page_tables, gdt);
    state->registers[X86_RSI] = boot_params;
    state->registers[X86_RSP] =
        stack + X86_PAGE_BYTES - 16; /* aligned, as the ABI wants */
    return 0;
}

/* ---- the three ways in ---- */

/* Everything of a bzImage but the way in: kernel, initrds, command line, boot_params. */
static int place_bzimage(struct boot_builder *builder, uint64_t *load_gpa,
                         uint64_t *boot_params, struct error *err)
{
    const struct image_bzimage *bzimage = &builder->inputs->image.bzimage;
    uint64_t initrd_limit = (uint64_t)bzimage->initrd_last_byte + 1;
    uint64_t cmdline;

    if (boot_kernel_add_bzimage(builder, load_gpa, err) < 0 ||
        boot_handover_add_initrds(builder, initrd_limit, err) < 0 ||
        boot_handover_add_cmdline(builder, bzimage->cmdline_limit, &cmdline, err) < 0)
        return err->code;
    return add_boot_params(builder, *load_gpa, cmdline, boot_params, err);
}

static int build_elf64(struct boot_builder *builder, struct error *err)
{
    const struct image_elf *elf = &builder->inputs->image.elf;
    uint64_t entry = elf->entry_physical;
    uint64_t cmdline, boot_params;

    if (boot_kernel_add_elf(builder, elf, entry, err) < 0 ||
        boot_handover_add_initrds(builder, LAYOUT_LOW_RAM_LIMIT, err) < 0 ||
        boot_handover_add_cmdline(builder, 0, &cmdline, err) < 0 ||
        add_boot_params(builder, entry, cmdline, &boot_params, err) < 0)
        return err->code;
    return enter_long_mode(builder, entry, boot_params, err);
}

int boot_linux64_build(struct boot_builder *builder, struct error *err)
{
    uint64_t load_gpa = 0;
    uint64_t boot_params = 0;

    if (builder->inputs->image.format != IMAGE_BZIMAGE)
        return build_elf64(builder, err);
    if (place_bzimage(builder, &load_gpa, &boot_params, err) < 0)
        return err->code;
    return enter_long_mode(builder, load_gpa + ENTRY64_OFFSET, boot_params, err);
}

/* iPXE's ipxe.lkrn and GRUB's lnxboot.img have a setup header so that Linux loaders start
 * them, but only their real-mode part is code, and nothing in the header says so. */
static void note_old_protocol(struct boot_builder *builder)
{
    unsigned int version = builder->inputs->image.bzimage.version;

    if (version < VERSION_2_08)
        boot_builder_note(builder,
                          "the bzImage has boot protocol %u.%02u: if it is a boot loader "
                          "and not Linux, it needs a BIOS below it (--firmware)",
                          version >> 8, version & 0xff);
}

int boot_linux32_build(struct boot_builder *builder, struct error *err)
{
    struct cpu_state *state = &builder->plan->entry;
    uint64_t load_gpa = 0;
    uint64_t boot_params = 0;
    uint32_t gdt;

    if (place_bzimage(builder, &load_gpa, &boot_params, err) < 0 ||
        boot_handover_add_gdt(builder, false, &gdt, err) < 0)
        return err->code;
    note_old_protocol(builder);
    cpu_state_flat32(state, (uint32_t)load_gpa, gdt);
    state->registers[X86_RSI] = boot_params;
    return 0;
}
