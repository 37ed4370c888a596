/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files in memory; see builders.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "builders.h"

#define LINK_OFFSET UINT64_C(0xffffffff80000000)

size_t note_write(uint8_t *to, const char *owner, uint32_t type, const void *descriptor,
                  uint32_t descriptor_bytes)
{
    uint32_t owner_bytes = (uint32_t)strlen(owner) + 1;
    size_t descriptor_at = 12 + align_up(owner_bytes, 4);

    store_le32(to, owner_bytes);
    store_le32(to + 4, descriptor_bytes);
    store_le32(to + 8, type);
    memcpy(to + 12, owner, owner_bytes);
    memcpy(to + descriptor_at, descriptor, descriptor_bytes);
    return descriptor_at + align_up(descriptor_bytes, 4);
}

/* As in Linux: the PVH note is neither the first nor the only one of its owner. */
static size_t write_notes(uint8_t *notes, uint32_t pvh_bytes)
{
    uint8_t entry[8] = {0};
    size_t size = note_write(notes, "GNU", 3, "abcde", 5);

    store_le32(entry, ELF_FILE_PVH_ENTRY);
    size += note_write(notes + size, "Xen", 6, "linux", 6);
    size += note_write(notes + size, "Xen", 18, entry, pvh_bytes);
    return size + note_write(notes + size, "Linux", 18, "xyz", 3);
}

void elf64_file_init(struct elf64_file *file)
{
    size_t notes_bytes;

    memset(file, 0, sizeof(*file));
    notes_bytes = write_notes(file->notes, 8);
    file->header = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_entry = LINK_OFFSET + ELF_FILE_TEXT_GPA + 0x20,
        .e_phoff = offsetof(struct elf64_file, rows),
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = ELF_ROWS,
    };
    file->rows[ELF_ROW_TEXT] = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_offset = offsetof(struct elf64_file, text),
        .p_vaddr = LINK_OFFSET + ELF_FILE_TEXT_GPA,
        .p_paddr = ELF_FILE_TEXT_GPA,
        .p_filesz = sizeof(file->text),
        .p_memsz = 0x1000,
    };
    file->rows[ELF_ROW_BSS] = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_vaddr = LINK_OFFSET + ELF_FILE_BSS_GPA,
        .p_paddr = ELF_FILE_BSS_GPA,
        .p_memsz = 0x3000,
    };
    file->rows[ELF_ROW_NOTES] = (Elf64_Phdr){
        .p_type = PT_NOTE,
        .p_offset = offsetof(struct elf64_file, notes),
        .p_filesz = notes_bytes,
        .p_memsz = notes_bytes,
        .p_align = 4,
    };
}

void elf32_file_init(struct elf32_file *file)
{
    uint32_t notes_bytes;

    memset(file, 0, sizeof(*file));
    notes_bytes = (uint32_t)write_notes(file->notes, 4);
    file->header = (Elf32_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
                    EV_CURRENT},
        .e_type = ET_EXEC,
        .e_machine = EM_386,
        .e_version = EV_CURRENT,
        .e_entry = ELF_FILE_TEXT_GPA + 0x20,
        .e_phoff = offsetof(struct elf32_file, rows),
        .e_ehsize = sizeof(Elf32_Ehdr),
        .e_phentsize = sizeof(Elf32_Phdr),
        .e_phnum = ELF_ROWS,
    };
    file->rows[ELF_ROW_TEXT] = (Elf32_Phdr){
        .p_type = PT_LOAD,
        .p_offset = offsetof(struct elf32_file, text),
        .p_vaddr = ELF_FILE_TEXT_GPA,
        .p_paddr = ELF_FILE_TEXT_GPA,
        .p_filesz = sizeof(file->text),
        .p_memsz = 0x1000,
    };
    file->rows[ELF_ROW_BSS] = (Elf32_Phdr){
        .p_type = PT_LOAD,
        .p_vaddr = ELF_FILE_BSS_GPA,
        .p_paddr = ELF_FILE_BSS_GPA,
        .p_memsz = 0x3000,
    };
    file->rows[ELF_ROW_NOTES] = (Elf32_Phdr){
        .p_type = PT_NOTE,
        .p_offset = offsetof(struct elf32_file, notes),
        .p_filesz = notes_bytes,
        .p_memsz = notes_bytes,
        .p_align = 4,
    };
}

void bzimage_file_init(struct bzimage_file *file)
{
    static const uint8_t xz_magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    uint8_t *bytes = (uint8_t *)file;
    uint8_t *payload = bytes + BZIMAGE_SETUP_BYTES + BZIMAGE_PAYLOAD_OFFSET;

    memset(file, 0, sizeof(*file));
    bytes[0x1f1] = 2;                                     /* setup_sects */
    store_le32(bytes + 0x1f4, BZIMAGE_KERNEL_BYTES / 16); /* syssize */
    store_le16(bytes + 0x1fe, 0xaa55);                    /* boot_flag */
    bytes[0x200] = 0xeb;                                  /* jump */
    bytes[0x201] = 0x6a;
    store_le32(bytes + 0x202, 0x53726448); /* header: "HdrS" */
    store_le16(bytes + 0x206, 0x020f);     /* version */
    store_le16(bytes + 0x20e, 0x100);      /* kernel_version: at 0x300 */
    bytes[0x211] = 1;                      /* loadflags */
    store_le32(bytes + 0x22c, 0x7fffffff); /* initrd_addr_max */
    store_le32(bytes + 0x230, 0x200000);   /* kernel_alignment */
    bytes[0x234] = 1;                      /* relocatable_kernel */
    store_le16(bytes + 0x236, 0x7f);       /* xloadflags */
    store_le32(bytes + 0x238, 2047);       /* cmdline_size */
    store_le32(bytes + 0x248, BZIMAGE_PAYLOAD_OFFSET);
    store_le32(bytes + 0x24c, BZIMAGE_PAYLOAD_BYTES);
    store_le64(bytes + 0x258, 0x1000000); /* pref_address */
    store_le32(bytes + 0x260, 0x20000);   /* init_size */
    memcpy(bytes + 0x300, "6.1.0-test (a@b)", 17);
    memcpy(payload, xz_magic, sizeof(xz_magic));
    store_le32(payload + BZIMAGE_PAYLOAD_BYTES - 4, 123456); /* unpacked size */
}

void assert_described(const void *bytes, size_t size, struct image *image)
{
    struct source source = source_from_memory(bytes, size);
    struct error err = ERROR_NONE;

    if (image_describe(&source, image, &err) < 0)
        fail_msg("refused: %s", err.text);
}

void assert_refused(const void *bytes, size_t size, const char *sentence)
{
    struct source source = source_from_memory(bytes, size);
    struct error err = ERROR_NONE;
    struct image image;

    assert_true(image_describe(&source, &image, &err) < 0);
    assert_string_equal(err.text, sentence);
}
