/* SPDX-License-Identifier: Apache-2.0 */
/* The PVH protocol: Xen docs/misc/pvh.pandoc;
 * xen/include/public/arch-x86/hvm/start_info.h defines the structures. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/builder_private.h"
#include "boot/handover_private.h"
#include "x86/layout.h"

#define START_INFO_MAGIC 0x336ec578u
#define START_INFO_VERSION 1 /* with memory map; Linux outside Xen needs it */

struct start_info {
    uint32_t magic;
    uint32_t version;
    uint32_t flags;
    uint32_t module_count;
    uint64_t modules; /* addresses; 0: absent */
    uint64_t cmdline;
    uint64_t rsdp;
    uint64_t memory_map;
    uint32_t memory_map_entries;
    uint32_t reserved;
};
_Static_assert(sizeof(struct start_info) == 56, "version 1");

struct module {
    uint64_t gpa;
    uint64_t size_bytes;
    uint64_t cmdline;
    uint64_t reserved;
};
_Static_assert(sizeof(struct module) == 32, "as Xen lays it out");

struct memory_map_entry {
    uint64_t gpa;
    uint64_t size_bytes;
    uint32_t type; /* e820 numbers */
    uint32_t reserved;
};
_Static_assert(sizeof(struct memory_map_entry) == 24, "as Xen lays it out");

/* start_info and the one module behind it; 64 bytes on, as other monitors do. */
struct start_page {
    struct start_info info;
    uint64_t gap;
    struct module initrd;
};
_Static_assert(offsetof(struct start_page, initrd) == 0x40, "aligned module list");

#define MACHINE_I386 3 /* EM_386 */

/* 32-bit Linux reaches only 896 MiB of memory directly; boot.rst gives this byte as the
 * highest for an initrd where a kernel names none. */
#define I386_INITRD_LIMIT UINT64_C(0x38000000)

static uint64_t initrd_limit(const struct boot_builder *builder,
                             const struct image_elf *elf)
{
    const struct boot_inputs *inputs = builder->inputs;

    if (inputs->has_unpacked)
        return (uint64_t)inputs->image.bzimage.initrd_last_byte + 1;
    return elf->machine == MACHINE_I386 ? I386_INITRD_LIMIT : LAYOUT_LOW_RAM_LIMIT;
}

static int add_memory_map(struct boot_builder *builder, uint64_t *gpa, struct error *err)
{
    const struct boot_plan *plan = builder->plan;
    size_t size_bytes = plan->e820_count * sizeof(struct memory_map_entry);
    struct memory_map_entry *entries;

    if (boot_builder_place_low(builder, HANDOVER_PVH_MEMORY_MAP, size_bytes, 16,
                               "PVH memory map", gpa, err) < 0)
        return err->code;
    entries = calloc(plan->e820_count, sizeof(*entries));
    for (size_t i = 0; entries != NULL && i < plan->e820_count; i++)
        entries[i] = (struct memory_map_entry){
            .gpa = plan->e820[i].gpa,
            .size_bytes = plan->e820[i].size_bytes,
            .type = plan->e820[i].type,
        };
    return boot_builder_add_generated(builder, *gpa, (uint8_t *)entries, size_bytes,
                                      "PVH memory map", err);
}

static int add_start_info(struct boot_builder *builder, uint64_t cmdline,
                          uint64_t memory_map, uint64_t *gpa, struct error *err)
{
    struct start_page *page;
    bool has_initrd = builder->initrd_bytes != 0;

    if (boot_builder_place_low(builder, HANDOVER_PVH_START_INFO, sizeof(*page), 64,
                               "PVH start_info", gpa, err) < 0)
        return err->code;
    page = malloc(sizeof(*page));
    if (page != NULL)
        *page = (struct start_page){
            .info =
                {
                    .magic = START_INFO_MAGIC,
                    .version = START_INFO_VERSION,
                    .module_count = has_initrd ? 1 : 0,
                    .modules =
                        has_initrd ? *gpa + offsetof(struct start_page, initrd) : 0,
                    .cmdline = cmdline,
                    /* Where firmware puts it, kernels find it. */
                    .rsdp = builder->by_firmware ? 0 : LAYOUT_ACPI_START,
                    .memory_map = memory_map,
                    .memory_map_entries = (uint32_t)builder->plan->e820_count,
                },
            .initrd = {.gpa = builder->initrd_gpa, .size_bytes = builder->initrd_bytes},
        };
    return boot_builder_add_generated(builder, *gpa, (uint8_t *)page, sizeof(*page),
                                      "PVH start_info", err);
}

int boot_pvh_build(struct boot_builder *builder, struct error *err)
{
    const struct boot_inputs *inputs = builder->inputs;
    const struct image_elf *elf =
        inputs->has_unpacked ? &inputs->unpacked_image.elf : &inputs->image.elf;
    uint32_t cmdline_limit =
        inputs->has_unpacked ? inputs->image.bzimage.cmdline_limit : 0;
    uint64_t cmdline, memory_map, start_info;
    uint32_t gdt;

    if (boot_kernel_add_elf(builder, elf, elf->pvh_entry, err) < 0 ||
        boot_handover_add_initrds(builder, initrd_limit(builder, elf), err) < 0 ||
        boot_handover_add_cmdline(builder, cmdline_limit, &cmdline, err) < 0 ||
        boot_handover_add_gdt(builder, false, &gdt, err) < 0 ||
        add_memory_map(builder, &memory_map, err) < 0 ||
        add_start_info(builder, cmdline, memory_map, &start_info, err) < 0)
        return err->code;
    cpu_state_flat32(&builder->plan->entry, elf->pvh_entry, gdt);
    builder->plan->entry.registers[X86_RBX] = start_info;
    return 0;
}
