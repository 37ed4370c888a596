/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files made in memory for the tests of image/: right from the start, so that a
 * test breaks the one thing it is about. */
#ifndef HUSK_TESTS_IMAGE_BUILDERS_H
#define HUSK_TESTS_IMAGE_BUILDERS_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "image/image.h"

/* A kernel with one segment of code and data, one of bss, and Xen notes. */
#define ELF_FILE_TEXT_GPA 0x100000
#define ELF_FILE_BSS_GPA 0x200000
#define ELF_FILE_PVH_ENTRY 0x100010
enum { ELF_ROW_TEXT, ELF_ROW_BSS, ELF_ROW_NOTES, ELF_ROWS };

struct elf64_file {
    Elf64_Ehdr header;
    Elf64_Phdr rows[ELF_ROWS];
    uint8_t notes[128];
    uint8_t text[256];
};
/* Linked at 0xffffffff80000000 above its physical address, as Linux is. */
void elf64_file_init(struct elf64_file *file);

struct elf32_file {
    Elf32_Ehdr header;
    Elf32_Phdr rows[ELF_ROWS];
    uint8_t notes[128];
    uint8_t text[256];
};
void elf32_file_init(struct elf32_file *file);

/* Writes a note, returns the bytes it takes. */
size_t note_write(uint8_t *to, const char *owner, uint32_t type, const void *descriptor,
                  uint32_t descriptor_bytes);

/* A bzImage of protocol 2.15 with 2 setup sectors and 1024 bytes of kernel. Fields are
 * changed by their offset in boot.rst. */
#define BZIMAGE_SETUP_BYTES 1536
#define BZIMAGE_KERNEL_BYTES 1024
#define BZIMAGE_PAYLOAD_OFFSET 64
#define BZIMAGE_PAYLOAD_BYTES 512
struct bzimage_file {
    uint8_t bytes[BZIMAGE_SETUP_BYTES + BZIMAGE_KERNEL_BYTES];
};
void bzimage_file_init(struct bzimage_file *file);

/* Describes `size` bytes; the test fails if husk does. */
void assert_described(const void *bytes, size_t size, struct image *image);

/* Describing must fail with exactly this sentence. */
void assert_refused(const void *bytes, size_t size, const char *sentence);

#endif
