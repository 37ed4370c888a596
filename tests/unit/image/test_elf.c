/* SPDX-License-Identifier: Apache-2.0 */
/* ELF kernels: what is read from them, and each way they can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "builders.h"

static void reads_elf64_segments_and_entry(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.format, IMAGE_ELF64);
    assert_int_equal(image.file_bytes, sizeof(file));
    assert_int_equal(image.elf.machine, EM_X86_64);
    assert_int_equal(image.elf.entry, UINT64_C(0xffffffff80100020));
    assert_int_equal(image.elf.entry_physical, 0x100020);
    assert_int_equal(image.elf.segment_count, 2);
    assert_int_equal(image.elf.segments[0].gpa, 0x100000);
    assert_int_equal(image.elf.segments[0].file_offset,
                     offsetof(struct elf64_file, text));
    assert_int_equal(image.elf.segments[0].file_bytes, 256);
    assert_int_equal(image.elf.segments[0].memory_bytes, 0x1000);
    assert_int_equal(image.elf.segments[1].gpa, 0x200000);
    assert_int_equal(image.elf.segments[1].file_bytes, 0);
    assert_int_equal(image.elf.segments[1].memory_bytes, 0x3000);
}

static void reads_elf32_segments_and_entry(void **state)
{
    struct elf32_file file;
    struct image image;

    (void)state;
    elf32_file_init(&file);
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.format, IMAGE_ELF32);
    assert_int_equal(image.elf.machine, EM_386);
    assert_int_equal(image.elf.entry, 0x100020);
    assert_int_equal(image.elf.entry_physical, 0x100020);
    assert_int_equal(image.elf.segment_count, 2);
    assert_int_equal(image.elf.segments[0].file_offset,
                     offsetof(struct elf32_file, text));
    assert_int_equal(image.elf.segments[0].file_bytes, 256);
    assert_int_equal(image.elf.segments[1].memory_bytes, 0x3000);
}

static void reads_pvh_note_of_8_bytes(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    assert_described(&file, sizeof(file), &image);
    assert_true(image.elf.has_pvh);
    assert_int_equal(image.elf.pvh_entry, ELF_FILE_PVH_ENTRY);
    assert_int_equal(image.elf.pvh_note_bytes, 8);
}

static void reads_pvh_note_of_4_bytes(void **state)
{
    struct elf32_file file;
    struct image image;

    (void)state;
    elf32_file_init(&file);
    assert_described(&file, sizeof(file), &image);
    assert_true(image.elf.has_pvh);
    assert_int_equal(image.elf.pvh_entry, ELF_FILE_PVH_ENTRY);
    assert_int_equal(image.elf.pvh_note_bytes, 4);
}

static void finds_pvh_note_in_a_second_note_segment(void **state)
{
    struct elf64_file file;
    struct image image;
    uint8_t entry[4];
    size_t first;

    (void)state;
    elf64_file_init(&file);
    store_le32(entry, ELF_FILE_PVH_ENTRY);
    memset(file.notes, 0, sizeof(file.notes));
    first = note_write(file.notes, "GNU", 1, "abcd", 4);
    file.rows[ELF_ROW_NOTES].p_filesz = first;
    file.rows[ELF_ROW_BSS] = file.rows[ELF_ROW_NOTES];
    file.rows[ELF_ROW_BSS].p_offset += first;
    file.rows[ELF_ROW_BSS].p_filesz = note_write(file.notes + first, "Xen", 18, entry, 4);
    assert_described(&file, sizeof(file), &image);
    assert_true(image.elf.has_pvh);
    assert_int_equal(image.elf.pvh_note_bytes, 4);
}

static void ignores_type_18_of_other_owners(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    memset(file.notes, 0, sizeof(file.notes));
    file.rows[ELF_ROW_NOTES].p_filesz = note_write(file.notes, "Xem", 18, "abcd", 4);
    assert_described(&file, sizeof(file), &image);
    assert_false(image.elf.has_pvh);
}

static void leaves_entry_outside_all_segments_alone(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    file.header.e_entry = 0x100020; /* physical already, as in vmlinux */
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.elf.entry_physical, 0x100020);
}

static void translates_entry_by_the_first_segment_that_holds_it(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    file.header.e_entry = 0x100020;
    file.rows[ELF_ROW_TEXT].p_vaddr = 0x100000; /* identical to p_paddr */
    file.rows[ELF_ROW_BSS].p_vaddr = 0x100000;
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.elf.entry_physical, 0x100020);
}

static void skips_segments_without_memory(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    file.rows[ELF_ROW_BSS].p_memsz = 0;
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.elf.segment_count, 1);
}

static void accepts_position_independent_kernels(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    file.header.e_type = ET_DYN;
    assert_described(&file, sizeof(file), &image);
}

/* ---- one wrong thing, one sentence */

static void break_data(struct elf64_file *file)
{
    file->header.e_ident[EI_DATA] = ELFDATA2MSB;
}

static void break_data_unknown(struct elf64_file *file)
{
    file->header.e_ident[EI_DATA] = 3;
}

static void break_class(struct elf64_file *file)
{
    file->header.e_ident[EI_CLASS] = 3;
}

static void break_version(struct elf64_file *file)
{
    file->header.e_ident[EI_VERSION] = 2;
}

static void break_machine(struct elf64_file *file)
{
    file->header.e_machine = EM_AARCH64;
}

static void break_machine_unknown(struct elf64_file *file)
{
    file->header.e_machine = 9999;
}

static void break_type_relocatable(struct elf64_file *file)
{
    file->header.e_type = ET_REL;
}

static void break_type_core(struct elf64_file *file)
{
    file->header.e_type = ET_CORE;
}

static void break_type_unknown(struct elf64_file *file)
{
    file->header.e_type = 7;
}

static void break_type_library(struct elf64_file *file)
{
    file->header.e_type = ET_DYN;
    file->header.e_entry = 0;
}

static void break_interpreter(struct elf64_file *file)
{
    file->rows[ELF_ROW_BSS].p_type = PT_INTERP;
}

static void break_row_count_zero(struct elf64_file *file)
{
    file->header.e_phnum = 0;
}

static void break_row_count_huge(struct elf64_file *file)
{
    file->header.e_phnum = PN_XNUM;
}

static void break_row_count_beyond_file(struct elf64_file *file)
{
    file->header.e_phnum = 64;
}

static void break_row_size(struct elf64_file *file)
{
    file->header.e_phentsize = 55;
}

static void break_table_offset(struct elf64_file *file)
{
    file->header.e_phoff = UINT64_MAX - 10;
}

static void break_file_size(struct elf64_file *file)
{
    file->rows[ELF_ROW_TEXT].p_memsz = 255;
}

static void break_file_range(struct elf64_file *file)
{
    file->rows[ELF_ROW_TEXT].p_offset++;
}

static void break_file_offset(struct elf64_file *file)
{
    file->rows[ELF_ROW_TEXT].p_offset = UINT64_MAX;
}

static void break_address_limit(struct elf64_file *file)
{
    file->rows[ELF_ROW_BSS].p_paddr = (UINT64_C(1) << 52) - 0x2fff;
}

static void break_address_wrap(struct elf64_file *file)
{
    file->rows[ELF_ROW_BSS].p_paddr = UINT64_MAX;
}

static void break_overlap(struct elf64_file *file)
{
    file->rows[ELF_ROW_BSS].p_paddr = 0x100fff;
}

static void break_no_segments(struct elf64_file *file)
{
    file->rows[ELF_ROW_TEXT].p_type = PT_NULL;
    file->rows[ELF_ROW_BSS].p_type = PT_NULL;
}

static void break_notes_range(struct elf64_file *file)
{
    file->rows[ELF_ROW_NOTES].p_offset = sizeof(*file) - 8;
    file->rows[ELF_ROW_NOTES].p_filesz = 16;
}

static void break_notes_size(struct elf64_file *file)
{
    file->rows[ELF_ROW_NOTES].p_filesz = 65537;
}

static void break_note_name(struct elf64_file *file)
{
    store_le32(file->notes, UINT32_MAX);
}

static void break_note_descriptor(struct elf64_file *file)
{
    store_le32(file->notes + 4, UINT32_MAX);
}

static void break_pvh_size(struct elf64_file *file)
{
    file->rows[ELF_ROW_NOTES].p_filesz = note_write(file->notes, "Xen", 18, "abcdef", 6);
}

static void break_pvh_entry_high(struct elf64_file *file)
{
    uint64_t entry = UINT64_C(0x100000000);

    file->rows[ELF_ROW_NOTES].p_filesz = note_write(file->notes, "Xen", 18, &entry, 8);
}

static void break_pvh_entry_outside(struct elf64_file *file)
{
    uint32_t entry = 0x101000;

    file->rows[ELF_ROW_NOTES].p_filesz = note_write(file->notes, "Xen", 18, &entry, 4);
}

static const struct {
    void (*break_file)(struct elf64_file *file);
    const char *sentence;
} refusals[] = {
    {break_data, "is a big-endian ELF64 file; husk runs little-endian x86 kernels"},
    {break_data_unknown, "ELF byte order 3 is neither 1 (little) nor 2 (big)"},
    {break_class, "ELF class 3 is neither 1 (32-bit) nor 2 (64-bit)"},
    {break_version, "ELF version 2 is not 1"},
    {break_machine,
     "is an ELF for machine 183 (aarch64); husk runs machines 3 (i386) and "
     "62 (x86-64)"},
    {break_machine_unknown, "is an ELF for machine 9999 (unknown); husk runs machines 3 "
                            "(i386) and 62 (x86-64)"},
    {break_type_relocatable, "is a relocatable object file, not a linked kernel"},
    {break_type_core, "is a core dump, not a kernel"},
    {break_type_unknown, "ELF type 7 is neither 2 (executable) nor 3 "
                         "(position-independent)"},
    {break_type_library, "is a shared library (no entry point), not a kernel"},
    {break_interpreter, "is a dynamically linked program, not a kernel"},
    {break_row_count_zero, "ELF file has no program headers"},
    {break_row_count_huge,
     "ELF file has 65535 program headers; at most 512 are accepted"},
    {break_row_count_beyond_file, "64 ELF program headers at offset 64 do not lie in the "
                                  "file, which ends at byte 616"},
    {break_row_size, "ELF program headers have 55 bytes each, not 56"},
    {break_table_offset,
     "3 ELF program headers at offset 18446744073709551605 do not lie "
     "in the file, which ends at byte 616"},
    {break_file_size, "segment 0: p_filesz 256 is more than p_memsz 255"},
    {break_file_range, "segment 0: 256 bytes at file offset 361 do not lie in the file, "
                       "which ends at byte 616"},
    {break_file_offset, "segment 0: 256 bytes at file offset 18446744073709551615 do not "
                        "lie in the file, which ends at byte 616"},
    {break_address_limit, "segment 1: p_paddr 0xfffffffffd001 with p_memsz 0x3000 goes "
                          "beyond the 52 bits of a physical address"},
    {break_address_wrap, "segment 1: p_paddr 0xffffffffffffffff with p_memsz 0x3000 goes "
                         "beyond the 52 bits of a physical address"},
    {break_overlap, "segment 1 at physical 0x100fff overlaps the one at 0x100000"},
    {break_no_segments, "ELF file has no segment to load (PT_LOAD)"},
    {break_notes_range, "segment 2: notes: ends at byte 616, but 16 bytes at offset 608 "
                        "are needed"},
    {break_notes_size, "segment 2: 65537 bytes of notes; at most 65536 are accepted"},
    {break_note_name, "segment 2: the note at byte 0 of it runs past its end at byte 96"},
    {break_note_descriptor,
     "segment 2: the note at byte 0 of it runs past its end at byte 96"},
    {break_pvh_size, "PVH note (Xen, type 18) has a descriptor of 6 bytes, not 4 or 8"},
    {break_pvh_entry_high, "PVH note (Xen, type 18): entry 0x100000000 is above 4 GiB"},
    {break_pvh_entry_outside,
     "PVH note (Xen, type 18): entry 0x101000 lies in no segment"},
};

static void refuses_each_wrong_field_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        struct elf64_file file;

        elf64_file_init(&file);
        refusals[i].break_file(&file);
        assert_refused(&file, sizeof(file), refusals[i].sentence);
    }
}

static void accepts_segment_that_ends_at_the_last_physical_address(void **state)
{
    struct elf64_file file;
    struct image image;

    (void)state;
    elf64_file_init(&file);
    file.rows[ELF_ROW_BSS].p_paddr = (UINT64_C(1) << 52) - 0x3000;
    assert_described(&file, sizeof(file), &image);
}

static void refuses_65_segments(void **state)
{
    enum { COUNT = IMAGE_MAX_SEGMENTS + 1 };
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr rows[COUNT];
    } file;
    struct elf64_file model;
    struct image image;

    (void)state;
    elf64_file_init(&model);
    memset(&file, 0, sizeof(file));
    file.header = model.header;
    for (size_t i = 0; i < COUNT; i++)
        file.rows[i] =
            (Elf64_Phdr){.p_type = PT_LOAD, .p_paddr = i * 0x1000, .p_memsz = 0x1000};
    file.header.e_phnum = IMAGE_MAX_SEGMENTS;
    assert_described(&file, sizeof(file), &image);
    assert_int_equal(image.elf.segment_count, IMAGE_MAX_SEGMENTS);
    file.header.e_phnum = COUNT;
    assert_refused(&file, sizeof(file),
                   "ELF file has more than 64 segments to load; husk loads no more");
}

static void refuses_truncated_headers(void **state)
{
    struct elf64_file file64;
    struct elf32_file file32;

    (void)state;
    elf64_file_init(&file64);
    elf32_file_init(&file32);
    assert_refused(&file64, 63,
                   "ELF header: ends at byte 63, but 64 bytes at offset 0 are needed");
    assert_refused(&file32, 51,
                   "ELF header: ends at byte 51, but 52 bytes at offset 0 are needed");
    assert_refused(&file64, 64 + 3 * 56 - 1,
                   "3 ELF program headers at offset 64 do not "
                   "lie in the file, which ends at byte 231");
    assert_refused(&file32, 52 + 3 * 32 - 1,
                   "3 ELF program headers at offset 52 do not "
                   "lie in the file, which ends at byte 147");
}

/* No length may be read beyond; the sanitizer build checks that against the heap. */
static void refuses_every_truncation(void **state)
{
    struct elf64_file file;

    (void)state;
    elf64_file_init(&file);
    for (size_t size = 0; size < sizeof(file); size++) {
        uint8_t *copy = malloc(size + 1);
        struct source source = source_from_memory(copy, size);
        struct error err = ERROR_NONE;
        struct image image;

        assert_non_null(copy);
        memcpy(copy, &file, size);
        assert_true(image_describe(&source, &image, &err) < 0);
        assert_true(err.text[0] != '\0');
        free(copy);
    }
}

/* Whatever a flipped byte makes of the file: facts that hold, or a sentence. */
static void keeps_promises_with_any_byte_flipped(void **state)
{
    struct elf64_file file;

    (void)state;
    for (size_t i = 0; i < offsetof(struct elf64_file, text); i++) {
        struct source source = source_from_memory(&file, sizeof(file));
        struct error err = ERROR_NONE;
        struct image image;

        elf64_file_init(&file);
        ((uint8_t *)&file)[i] ^= 0xff;
        if (image_describe(&source, &image, &err) < 0) {
            assert_true(err.text[0] != '\0');
            continue;
        }
        for (size_t j = 0; j < image.elf.segment_count; j++) {
            const struct image_segment *segment = &image.elf.segments[j];

            assert_true(
                range_within(segment->file_offset, segment->file_bytes, sizeof(file)));
            assert_true(segment->file_bytes <= segment->memory_bytes);
            assert_true(segment->memory_bytes != 0);
            assert_true(
                range_within(segment->gpa, segment->memory_bytes, UINT64_C(1) << 52));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_elf64_segments_and_entry),
        cmocka_unit_test(reads_elf32_segments_and_entry),
        cmocka_unit_test(reads_pvh_note_of_8_bytes),
        cmocka_unit_test(reads_pvh_note_of_4_bytes),
        cmocka_unit_test(finds_pvh_note_in_a_second_note_segment),
        cmocka_unit_test(ignores_type_18_of_other_owners),
        cmocka_unit_test(leaves_entry_outside_all_segments_alone),
        cmocka_unit_test(translates_entry_by_the_first_segment_that_holds_it),
        cmocka_unit_test(skips_segments_without_memory),
        cmocka_unit_test(accepts_position_independent_kernels),
        cmocka_unit_test(refuses_each_wrong_field_by_name),
        cmocka_unit_test(accepts_segment_that_ends_at_the_last_physical_address),
        cmocka_unit_test(refuses_65_segments),
        cmocka_unit_test(refuses_truncated_headers),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(keeps_promises_with_any_byte_flipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
