/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and modules made on the spot; see guest_image_private.h. */
#include "bench/guest_image_private.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/fd.h"
#include "bench/multiboot_guest_private.h"

extern const uint8_t bench_multiboot_guest[];
extern const uint32_t bench_multiboot_guest_bytes;

/* The guest begins with the second page of its file, so that its pages can be mapped. */
#define SEGMENT_OFFSET 4096

/* Bytes from 1 to this one, a prime, so that no two pages are the same. */
#define LARGEST_FILLER 251

static void fill(uint8_t *bytes, size_t size_bytes)
{
    for (size_t i = 0; i < size_bytes; i++)
        bytes[i] = (uint8_t)(i % LARGEST_FILLER + 1);
}

/* As the guest adds: both ends, as words. */
static uint32_t sum_of(const uint8_t *bytes, size_t size_bytes)
{
    const uint8_t *end = bytes + size_bytes - GUEST_SUM_BYTES;
    uint32_t sum = 0;

    for (size_t i = 0; i < GUEST_SUM_BYTES; i += sizeof(sum))
        sum += load_le32(bytes + i) + load_le32(end + i);
    return sum;
}

/* One segment, and no section. (System V ABI, chapters 4 and 5.) */
static void write_headers(uint8_t *file, size_t segment_bytes)
{
    const Elf32_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_386,
        .e_version = EV_CURRENT,
        .e_entry = GUEST_ADDRESS + GUEST_ENTRY_OFFSET,
        .e_phoff = sizeof(Elf32_Ehdr),
        .e_ehsize = sizeof(Elf32_Ehdr),
        .e_phentsize = sizeof(Elf32_Phdr),
        .e_phnum = 1,
    };
    const Elf32_Phdr segment = {
        .p_type = PT_LOAD,
        .p_offset = SEGMENT_OFFSET,
        .p_vaddr = GUEST_ADDRESS,
        .p_paddr = GUEST_ADDRESS,
        .p_filesz = (Elf32_Word)segment_bytes,
        .p_memsz = (Elf32_Word)segment_bytes + GUEST_STACK_BYTES,
        .p_flags = PF_R | PF_W | PF_X,
        .p_align = SEGMENT_OFFSET,
    };

    memcpy(file, &header, sizeof(header));
    memcpy(file + sizeof(header), &segment, sizeof(segment));
}

static int write_file(const char *path, const uint8_t *bytes, size_t size_bytes,
                      struct error *err)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int status = fd < 0 ? -errno : fd_write_all(fd, bytes, size_bytes);

    if (status < 0)
        return error_set_errno(err, status, "%s: cannot write it", path);
    return 0;
}

/* Takes `bytes` over. */
static int make(struct guest_image *image, const char *directory, const char *name,
                uint8_t *bytes, size_t size_bytes, struct error *err)
{
    if (bytes == NULL || asprintf(&image->path, "%s/%s", directory, name) < 0) {
        image->path = NULL;
        error_set(err, ENOMEM, "%s/%s: out of memory", directory, name);
    } else {
        (void)write_file(image->path, bytes, size_bytes, err);
    }
    free(bytes);
    return err->code;
}

int guest_image_make_kernel(struct guest_image *image, const char *directory,
                            const char *name, size_t size_bytes, struct error *err)
{
    const size_t segment_bytes = size_bytes - SEGMENT_OFFSET;
    uint8_t *file = malloc(size_bytes);

    CHECK(size_bytes >= GUEST_IMAGE_LEAST_BYTES && size_bytes % KIB == 0);
    if (file != NULL) {
        uint8_t *segment = file + SEGMENT_OFFSET;

        fill(file, size_bytes);
        write_headers(file, segment_bytes);
        memcpy(segment, bench_multiboot_guest, bench_multiboot_guest_bytes);
        store_le32(segment + GUEST_END_OFFSET, GUEST_ADDRESS + (uint32_t)segment_bytes);
        image->sum = sum_of(segment, segment_bytes);
    }
    return make(image, directory, name, file, size_bytes, err);
}

int guest_image_make_module(struct guest_image *image, const char *directory,
                            const char *name, size_t size_bytes, struct error *err)
{
    uint8_t *file = malloc(size_bytes);

    CHECK(size_bytes >= GUEST_IMAGE_LEAST_BYTES && size_bytes % KIB == 0);
    if (file != NULL) {
        fill(file, size_bytes);
        image->sum = sum_of(file, size_bytes);
    }
    return make(image, directory, name, file, size_bytes, err);
}

void guest_image_remove(struct guest_image *image)
{
    if (image->path != NULL)
        (void)unlink(image->path);
    free(image->path);
    *image = (struct guest_image){.path = NULL};
}

void guest_image_line(const struct guest_image *kernel, const struct guest_image *module,
                      char line[GUEST_IMAGE_LINE_BYTES])
{
    uint32_t sum = kernel->sum + (module == NULL ? 0 : module->sum);

    (void)snprintf(line, GUEST_IMAGE_LINE_BYTES, GUEST_GREETING "%0*x\n",
                   GUEST_SUM_DIGITS, sum);
}
