/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From files to a guest's first instruction, in three steps:
 *
 * - boot_inputs_open opens and describes the files; a compressed kernel is unpacked.
 * - boot_plan_build turns facts into a plan: every byte that will be in guest memory, and
 *   from where. Pure: no guest, no accelerator. `husk plan` prints it, tests compare it.
 * - boot_load carries the plan out on a guest memory; a reset carries it out again.
 *
 * All on the thread that owns the VM.
 */
#ifndef HUSK_BOOT_BOOT_H
#define HUSK_BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/input_file.h"
#include "image/image.h"
#include "memory/memory.h"
#include "x86/x86.h"

enum boot_protocol {
    BOOT_AUTO,
    BOOT_PVH,
    BOOT_LINUX64, /* ELF64 or bzImage, entered in long mode */
    BOOT_LINUX32, /* bzImage, entered in 32-bit protected mode */
    BOOT_MULTIBOOT1,
    BOOT_MULTIBOOT2,
    BOOT_FIRMWARE, /* raw code, entered at the reset vector */
};
const char *boot_protocol_name(enum boot_protocol protocol); /* as --protocol spells it */

#define BOOT_MAX_INITRDS 16
#define BOOT_MAX_PMEMS 8

/* What becomes of writes to persistent memory. */
enum boot_pmem_mode {
    BOOT_PMEM_SHARED,    /* they are in the file */
    BOOT_PMEM_READ_ONLY, /* not meant to be: they stay private, and cannot be flushed */
    BOOT_PMEM_EPHEMERAL, /* they stay private, and are gone at the end */
};
const char *boot_pmem_mode_name(enum boot_pmem_mode mode); /* "shared", ... */

struct boot_pmem_option {
    const char *path;
    enum boot_pmem_mode mode;
};

/* What the user asked for; strings are borrowed. */
struct boot_options {
    const char *kernel_path;   /* NULL if there is none, then without initrds */
    const char *firmware_path; /* NULL if there is none; with a kernel, it starts that */
    const char *initrd_paths[BOOT_MAX_INITRDS];
    size_t initrd_count;
    const char *cmdline;          /* complete; not NULL */
    size_t cmdline_default_bytes; /* of them husk's own in front, for Linux only */
    enum boot_protocol protocol;  /* with firmware and a kernel: the kernel's */
    enum input_policy images;
    bool huge_pages;       /* guest RAM cannot take file maps: everything is copied */
    uint64_t memory_bytes; /* RAM, multiple of 4 KiB */
    uint32_t cpu_count;
    bool hpet; /* there is a High Precision Event Timer */
    struct boot_pmem_option pmems[BOOT_MAX_PMEMS];
    size_t pmem_count;
    struct image_cache_options cache;
};

/* Which way in, and why. */
struct boot_choice {
    enum boot_protocol protocol; /* never BOOT_AUTO */
    char reason[256];
};

/* A file that is to be persistent memory, open. */
struct boot_pmem_input {
    const char *path; /* borrowed from the options */
    enum boot_pmem_mode mode;
    int fd; /* owned */
    uint64_t size_bytes;
};

/* The files of a boot, open. `unpacked` is what a compressed kernel contains. */
struct boot_inputs {
    enum boot_protocol protocol; /* BOOT_FIRMWARE whenever there is firmware */
    char protocol_reason[256];
    enum boot_protocol kernel_protocol; /* what it would be without firmware */
    bool has_firmware;
    struct input_file firmware;
    struct image firmware_image;
    bool has_kernel;
    struct input_file kernel;
    struct image image; /* of `kernel` */
    /* How the file was compressed as a whole that `kernel` was unpacked from; size 0: it
     * was not. */
    struct image_payload compressed;
    bool has_unpacked;
    struct input_file unpacked;
    struct image unpacked_image;
    enum image_cache_outcome cache_outcome;
    char cache_reason[256];
    struct input_file initrds[BOOT_MAX_INITRDS]; /* or modules */
    char *module_strings[BOOT_MAX_INITRDS]; /* Multiboot: path and arguments; owned */
    size_t initrd_count;
    struct boot_pmem_input pmems[BOOT_MAX_PMEMS];
    size_t pmem_count;
};

/* Errors name the file. On failure nothing stays open. */
int boot_inputs_open(struct boot_inputs *inputs, const struct boot_options *options,
                     struct error *err) MUST_CHECK;

/* The first two thirds of boot_inputs_open, for who asks about a file rather than boots
 * it: opens and describes firmware and kernel (nothing stays open on failure), then
 * chooses the protocol, which may be tried again with other options. */
int boot_inputs_describe(struct boot_inputs *inputs, const struct boot_options *options,
                         struct error *err) MUST_CHECK;
int boot_inputs_choose(struct boot_inputs *inputs, const struct boot_options *options,
                       struct error *err) MUST_CHECK;

void boot_inputs_close(struct boot_inputs *inputs);

enum boot_range_kind {
    BOOT_MAP,       /* pages of a file, copy-on-write */
    BOOT_COPY,      /* bytes of a file, read into RAM; `reason` says why not mapped */
    BOOT_ZERO,      /* must be zero (bss, padding); fresh RAM already is */
    BOOT_GENERATED, /* bytes husk made: tables, command line, page tables */
};

struct boot_range {
    uint64_t gpa;
    uint64_t size_bytes;
    enum boot_range_kind kind;
    size_t file;          /* MAP, COPY: index into the plan's files */
    uint64_t file_offset; /* MAP, COPY */
    uint8_t *bytes;       /* GENERATED: owned by the plan */
    const char *what;     /* "kernel segment 2", "start_info"; static or plan's */
    const char *reason;   /* COPY: why; static, plan's or inputs'; NULL otherwise */
};

enum boot_file_role {
    BOOT_FILE_KERNEL,
    BOOT_FILE_UNPACKED,
    BOOT_FILE_INITRD,
    BOOT_FILE_MODULE,
    BOOT_FILE_FIRMWARE
};

const char *boot_file_role_name(enum boot_file_role role); /* "kernel", ... */

struct boot_file {
    enum boot_file_role role;
    const struct input_file *input; /* borrowed from the boot_inputs */
    const char *name;               /* "kernel PATH", for messages; plan's */
    const char *string;             /* of a Multiboot module, else NULL; inputs' */
};

/* e820 types (ACPI 6.4, table 15-374). */
#define BOOT_E820_RAM 1
#define BOOT_E820_RESERVED 2
#define BOOT_E820_ACPI 3

struct boot_e820 {
    uint64_t gpa;
    uint64_t size_bytes;
    uint32_t type; /* the gaps between entries belong to nothing */
};

/* Bytes of an item of fw_cfg; what no part covers is zero. */
struct boot_fw_part {
    uint64_t at; /* in the item */
    uint64_t size_bytes;
    uint8_t *bytes;       /* owned by the plan; NULL: they are a file's */
    size_t file;          /* index into the plan's files */
    uint64_t file_offset; /* in that file */
};

/* Something a guest can ask for by QEMU's firmware configuration interface. */
struct boot_fw_item {
    uint16_t key;     /* of x86/fw_cfg_keys.h; without meaning if it has a name */
    const char *name; /* of a file in the directory, or NULL; static */
    const char *what; /* "kernel", "number of CPUs"; static */
    uint64_t size_bytes;
    size_t first_part; /* index into the plan's parts, sorted by `at` */
    size_t part_count;
};

#define BOOT_MAX_FW_ITEMS 48
#define BOOT_MAX_FW_PARTS 128
#define BOOT_MAX_RANGES 512
#define BOOT_MAX_FILES (BOOT_MAX_INITRDS + 3)
#define BOOT_MAX_E820 16
#define BOOT_MAX_NOTES 4

/* A file that is memory of the guest and stays it, but not RAM: a virtio-pmem device
 * tells the guest where it is. */
struct boot_pmem {
    uint64_t gpa;
    uint64_t size_bytes;                 /* the file's, rounded up */
    const struct boot_pmem_input *input; /* borrowed from the boot_inputs */
    const char *name;                    /* "pmem PATH", for messages; plan's */
};

struct boot_bytes {
    uint64_t mapped;
    uint64_t copied;
    uint64_t zeroed;
    uint64_t generated;
};

struct boot_text;

struct boot_plan {
    enum boot_protocol protocol; /* never BOOT_AUTO */
    char protocol_reason[256];   /* why auto took it */
    const char *cmdline;         /* as the kernel gets it; NULL without one */
    struct cpu_state entry;      /* of the first vCPU; the others wait for INIT/SIPI */
    size_t span_count;
    struct memory_span spans[MEMORY_MAX_SPANS]; /* RAM, firmware below 4 GiB, and last
                                                   the pmems */
    size_t pmem_count;
    struct boot_pmem pmems[BOOT_MAX_PMEMS]; /* sorted by gpa, as the options have them */
    size_t file_count;
    struct boot_file files[BOOT_MAX_FILES];
    size_t e820_count;
    struct boot_e820 e820[BOOT_MAX_E820];
    size_t range_count;
    struct boot_range ranges[BOOT_MAX_RANGES]; /* sorted by gpa, no overlap */
    size_t fw_item_count;
    struct boot_fw_item fw_items[BOOT_MAX_FW_ITEMS];
    size_t fw_part_count;
    struct boot_fw_part fw_parts[BOOT_MAX_FW_PARTS];
    struct boot_bytes bytes;
    size_t note_count;
    const char *notes[BOOT_MAX_NOTES]; /* sentences on what the kernel does not get */
    struct boot_text *texts;           /* made up for `what` and `reason`; owned */
};

/* Builds the plan. Every range is checked against RAM and against the other ranges; the
 * sentence names what does not fit and how much memory would do. The inputs must outlive
 * the plan. */
int boot_plan_build(const struct boot_inputs *inputs, const struct boot_options *options,
                    struct boot_plan **plan, struct error *err) MUST_CHECK;
void boot_plan_destroy(struct boot_plan *plan); /* accepts NULL */

/* Locks the pmems and maps them into fresh memory that has the plan's spans, where they
 * stay; before boot_load, and not again. */
int boot_map_pmems(const struct boot_plan *plan, struct memory *memory,
                   struct error *err) MUST_CHECK;

/* Carries the rest of the plan out on memory whose spans are the plan's and which is zero
 * (fresh or reset). A map that the kernel refuses now is an error naming the file. */
int boot_load(const struct boot_plan *plan, struct memory *memory,
              struct error *err) MUST_CHECK;

#endif
