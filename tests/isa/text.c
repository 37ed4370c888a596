/* SPDX-License-Identifier: Apache-2.0 */
/* The code in files; see text.h. */
#include "text.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "image/image.h"

static void visit_sections(const uint8_t *file, size_t size, text_visitor *visit,
                           void *context)
{
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections;

    if (size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
        !range_within(header->e_shoff, header->e_shnum * sizeof(*sections), size))
        return;
    sections = (const void *)(file + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_PROGBITS &&
            (sections[i].sh_flags & SHF_EXECINSTR) != 0 &&
            range_within(sections[i].sh_offset, sections[i].sh_size, size))
            visit(context, file + sections[i].sh_offset, sections[i].sh_size);
}

static void visit_program(int fd, size_t size, text_visitor *visit, void *context)
{
    void *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    CHECK(file != MAP_FAILED);
    visit_sections(file, size, visit, context);
    CHECK(munmap(file, size) == 0);
}

static bool is_elf(int fd)
{
    char magic[SELFMAG];

    return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
           memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static void visit_kernel(const char *path, int fd, size_t size, text_visitor *visit,
                         void *context)
{
    static const struct image_cache_options options = {.directory = NULL};
    struct source source = source_from_fd(fd, size);
    struct image_cache_result inside = {.fd = -1};
    struct error err = ERROR_NONE;
    struct image image;

    if (image_describe(&source, &image, &err) != 0 ||
        image_cache_open(&source, &image.payload, &options, &inside, &err) != 0) {
        printf("%s: skipped, %s\n", path, err.text);
        return;
    }
    visit_program(inside.fd, inside.size_bytes, visit, context);
    (void)close(inside.fd);
}

void text_visit(const char *path, text_visitor *visit, void *context)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &status) < 0) {
        printf("%s: skipped, cannot be read\n", path);
        return;
    }
    if (is_elf(fd))
        visit_program(fd, (size_t)status.st_size, visit, context);
    else
        visit_kernel(path, fd, (size_t)status.st_size, visit, context);
    (void)close(fd);
}
