/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF kernels: loadable segments, entry point and Xen's PVH note.
 *
 * Sources: System V ABI chapters 4 and 5 (gABI), Xen docs/misc/pvh.pandoc and
 * xen/include/public/elfnote.h.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "image/image_private.h"

/* Kernels have about ten; a table of 65534 rows is an attack on our patience. */
#define ELF_MAX_PROGRAM_HEADERS 512

/* All notes of one segment are read at once. Linux has under 1 KiB of them. */
#define ELF_MAX_NOTE_BYTES 65536

/* XEN_ELFNOTE_PHYS32_ENTRY */
#define XEN_NOTE_PVH_ENTRY 18
static const char xen_note_owner[] = "Xen";

/* Where the two classes of ELF keep the fields that matter. */
struct elf_layout {
    size_t word_bytes; /* of addresses, offsets and sizes */
    size_t header_bytes;
    size_t entry, table_offset, row_bytes, row_count;
    size_t sections_offset, section_row_bytes, section_count, section_names;
    size_t section_header_bytes;
    size_t program_header_bytes;
    size_t file_offset, virtual_address, physical_address, file_size, memory_size;
};

static const struct elf_layout layout32 = {
    .word_bytes = sizeof(Elf32_Addr),
    .header_bytes = sizeof(Elf32_Ehdr),
    .entry = offsetof(Elf32_Ehdr, e_entry),
    .table_offset = offsetof(Elf32_Ehdr, e_phoff),
    .row_bytes = offsetof(Elf32_Ehdr, e_phentsize),
    .row_count = offsetof(Elf32_Ehdr, e_phnum),
    .sections_offset = offsetof(Elf32_Ehdr, e_shoff),
    .section_row_bytes = offsetof(Elf32_Ehdr, e_shentsize),
    .section_count = offsetof(Elf32_Ehdr, e_shnum),
    .section_names = offsetof(Elf32_Ehdr, e_shstrndx),
    .section_header_bytes = sizeof(Elf32_Shdr),
    .program_header_bytes = sizeof(Elf32_Phdr),
    .file_offset = offsetof(Elf32_Phdr, p_offset),
    .virtual_address = offsetof(Elf32_Phdr, p_vaddr),
    .physical_address = offsetof(Elf32_Phdr, p_paddr),
    .file_size = offsetof(Elf32_Phdr, p_filesz),
    .memory_size = offsetof(Elf32_Phdr, p_memsz),
};

static const struct elf_layout layout64 = {
    .word_bytes = sizeof(Elf64_Addr),
    .header_bytes = sizeof(Elf64_Ehdr),
    .entry = offsetof(Elf64_Ehdr, e_entry),
    .table_offset = offsetof(Elf64_Ehdr, e_phoff),
    .row_bytes = offsetof(Elf64_Ehdr, e_phentsize),
    .row_count = offsetof(Elf64_Ehdr, e_phnum),
    .sections_offset = offsetof(Elf64_Ehdr, e_shoff),
    .section_row_bytes = offsetof(Elf64_Ehdr, e_shentsize),
    .section_count = offsetof(Elf64_Ehdr, e_shnum),
    .section_names = offsetof(Elf64_Ehdr, e_shstrndx),
    .section_header_bytes = sizeof(Elf64_Shdr),
    .program_header_bytes = sizeof(Elf64_Phdr),
    .file_offset = offsetof(Elf64_Phdr, p_offset),
    .virtual_address = offsetof(Elf64_Phdr, p_vaddr),
    .physical_address = offsetof(Elf64_Phdr, p_paddr),
    .file_size = offsetof(Elf64_Phdr, p_filesz),
    .memory_size = offsetof(Elf64_Phdr, p_memsz),
};

struct elf_header {
    uint16_t type;
    uint16_t machine;
    uint64_t entry;
    uint64_t table_offset; /* e_phoff */
    uint16_t row_bytes;    /* e_phentsize */
    uint16_t row_count;    /* e_phnum */
    struct image_elf_sections sections;
};

struct program_header {
    size_t index; /* in the table, for messages */
    uint32_t type;
    uint64_t file_offset;
    uint64_t virtual_address;
    uint64_t physical_address;
    uint64_t file_bytes;
    uint64_t memory_bytes;
};

/* A file being described. */
struct elf_reader {
    const struct source *source;
    const struct elf_layout *layout;
    struct image_elf *elf;
    bool entry_translated;
};

static const struct {
    uint16_t machine;
    const char *name;
} machine_names[] = {
    {EM_SPARC, "SPARC"},         {EM_68K, "Motorola 68000"},   {EM_MIPS, "MIPS"},
    {EM_PPC, "PowerPC"},         {EM_PPC64, "64-bit PowerPC"}, {EM_S390, "s390"},
    {EM_ARM, "32-bit ARM"},      {EM_SPARCV9, "64-bit SPARC"}, {EM_IA_64, "Itanium"},
    {EM_AARCH64, "aarch64"},     {EM_RISCV, "RISC-V"},         {EM_BPF, "BPF"},
    {EM_LOONGARCH, "LoongArch"},
};

static const char *machine_name(uint16_t machine)
{
    for (size_t i = 0; i < ARRAY_SIZE(machine_names); i++) {
        if (machine_names[i].machine == machine)
            return machine_names[i].name;
    }
    return "unknown";
}

static uint64_t load_word(const struct elf_layout *layout, const uint8_t *bytes)
{
    return layout->word_bytes == sizeof(uint64_t) ? load_le64(bytes) : load_le32(bytes);
}

static int read_header(const struct elf_reader *reader, struct elf_header *header,
                       struct error *err)
{
    const struct elf_layout *layout = reader->layout;
    uint8_t bytes[sizeof(Elf64_Ehdr)];
    int status = source_read(reader->source, 0, bytes, layout->header_bytes, err);

    if (status < 0)
        return error_prefix(err, "ELF header");
    *header = (struct elf_header){
        .type = load_le16(bytes + offsetof(Elf64_Ehdr, e_type)), /* as in ELF32 */
        .machine = load_le16(bytes + offsetof(Elf64_Ehdr, e_machine)),
        .entry = load_word(layout, bytes + layout->entry),
        .table_offset = load_word(layout, bytes + layout->table_offset),
        .row_bytes = load_le16(bytes + layout->row_bytes),
        .row_count = load_le16(bytes + layout->row_count),
        .sections =
            {
                .file_offset = load_word(layout, bytes + layout->sections_offset),
                .row_bytes = load_le16(bytes + layout->section_row_bytes),
                .count = load_le16(bytes + layout->section_count),
                .names_index = load_le16(bytes + layout->section_names),
            },
    };
    return 0;
}

static int read_program_header(const struct elf_reader *reader,
                               const struct elf_header *header, size_t index,
                               struct program_header *row, struct error *err)
{
    const struct elf_layout *layout = reader->layout;
    uint8_t bytes[sizeof(Elf64_Phdr)];
    uint64_t offset = header->table_offset + index * header->row_bytes;
    int status =
        source_read(reader->source, offset, bytes, layout->program_header_bytes, err);

    if (status < 0)
        return error_prefix(err, "ELF program header %zu", index);
    *row = (struct program_header){
        .index = index,
        .type = load_le32(bytes), /* p_type comes first in both */
        .file_offset = load_word(layout, bytes + layout->file_offset),
        .virtual_address = load_word(layout, bytes + layout->virtual_address),
        .physical_address = load_word(layout, bytes + layout->physical_address),
        .file_bytes = load_word(layout, bytes + layout->file_size),
        .memory_bytes = load_word(layout, bytes + layout->memory_size),
    };
    return 0;
}

static int check_type(const struct elf_header *header, struct error *err)
{
    switch (header->type) {
    case ET_EXEC:
        return 0;
    case ET_DYN: /* position-independent kernels exist; libraries have no entry */
        if (header->entry != 0)
            return 0;
        return error_set(err, -ENOEXEC,
                         "is a shared library (no entry point), not a kernel");
    case ET_REL:
        return error_set(err, -ENOEXEC,
                         "is a relocatable object file, not a linked kernel");
    case ET_CORE:
        return error_set(err, -ENOEXEC, "is a core dump, not a kernel");
    default:
        return error_set(err, -ENOEXEC,
                         "ELF type %" PRIu16 " is neither 2 (executable) nor 3 "
                         "(position-independent)",
                         header->type);
    }
}

static int check_machine(const struct elf_header *header, struct error *err)
{
    if (header->machine == EM_386 || header->machine == EM_X86_64)
        return 0;
    return error_set(err, -ENOEXEC,
                     "is an ELF for machine %" PRIu16 " (%s); husk runs machines 3 "
                     "(i386) and 62 (x86-64)",
                     header->machine, machine_name(header->machine));
}

static int check_identification(const uint8_t *identification, struct error *err)
{
    if (identification[EI_CLASS] != ELFCLASS32 && identification[EI_CLASS] != ELFCLASS64)
        return error_set(err, -ENOEXEC,
                         "ELF class %u is neither 1 (32-bit) nor 2 (64-bit)",
                         identification[EI_CLASS]);
    if (identification[EI_DATA] == ELFDATA2MSB)
        return error_set(err, -ENOEXEC,
                         "is a big-endian ELF%s file; husk runs little-endian x86 "
                         "kernels",
                         identification[EI_CLASS] == ELFCLASS64 ? "64" : "32");
    if (identification[EI_DATA] != ELFDATA2LSB)
        return error_set(err, -ENOEXEC,
                         "ELF byte order %u is neither 1 (little) nor 2 (big)",
                         identification[EI_DATA]);
    if (identification[EI_VERSION] != EV_CURRENT)
        return error_set(err, -ENOEXEC, "ELF version %u is not 1",
                         identification[EI_VERSION]);
    return 0;
}

static int check_table(const struct elf_reader *reader, const struct elf_header *header,
                       struct error *err)
{
    uint64_t file_bytes = reader->source->size_bytes;
    size_t row_bytes = reader->layout->program_header_bytes;

    if (header->row_count == 0)
        return error_set(err, -ENOEXEC, "ELF file has no program headers");
    if (header->row_count > ELF_MAX_PROGRAM_HEADERS)
        return error_set(err, -ENOEXEC,
                         "ELF file has %" PRIu16 " program headers; at most %d are "
                         "accepted",
                         header->row_count, ELF_MAX_PROGRAM_HEADERS);
    if (header->row_bytes != row_bytes)
        return error_set(err, -ENOEXEC,
                         "ELF program headers have %" PRIu16 " bytes each, not %zu",
                         header->row_bytes, row_bytes);
    if (!range_within(header->table_offset, header->row_count * row_bytes, file_bytes))
        return error_set(err, -ENOEXEC,
                         "%" PRIu16 " ELF program headers at offset %" PRIu64
                         " do not lie in the file, which ends at byte %" PRIu64,
                         header->row_count, header->table_offset, file_bytes);
    return 0;
}

static int check_header(const struct elf_reader *reader, const struct elf_header *header,
                        struct error *err)
{
    int status = check_machine(header, err);

    if (status == 0)
        status = check_type(header, err);
    if (status == 0)
        status = check_table(reader, header, err);
    return status;
}

static int check_segment(const struct source *source, const struct program_header *row,
                         struct error *err)
{
    if (row->file_bytes > row->memory_bytes)
        return error_set(err, -ENOEXEC,
                         "segment %zu: p_filesz %" PRIu64
                         " is more than p_memsz %" PRIu64,
                         row->index, row->file_bytes, row->memory_bytes);
    if (!range_within(row->file_offset, row->file_bytes, source->size_bytes))
        return error_set(err, -ENOEXEC,
                         "segment %zu: %" PRIu64 " bytes at file offset %" PRIu64
                         " do not lie in the file, which ends at byte %" PRIu64,
                         row->index, row->file_bytes, row->file_offset,
                         source->size_bytes);
    if (!range_within(row->physical_address, row->memory_bytes, IMAGE_PHYSICAL_LIMIT))
        return error_set(err, -ENOEXEC,
                         "segment %zu: p_paddr 0x%" PRIx64 " with p_memsz 0x%" PRIx64
                         " goes beyond the 52 bits of a physical address",
                         row->index, row->physical_address, row->memory_bytes);
    return 0;
}

/* Segments are few; comparing each new one with all before it is fine. */
static int check_overlap(const struct image_elf *elf, const struct program_header *row,
                         struct error *err)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct image_segment *other = &elf->segments[i];

        if (ranges_overlap(other->gpa, other->memory_bytes, row->physical_address,
                           row->memory_bytes))
            return error_set(err, -ENOEXEC,
                             "segment %zu at physical 0x%" PRIx64 " overlaps the one at "
                             "0x%" PRIx64,
                             row->index, row->physical_address, other->gpa);
    }
    return 0;
}

static void translate_entry(struct elf_reader *reader, const struct program_header *row)
{
    struct image_elf *elf = reader->elf;
    uint64_t distance = elf->entry - row->virtual_address; /* huge if below */

    if (reader->entry_translated || distance >= row->memory_bytes)
        return;
    elf->entry_physical = row->physical_address + distance;
    reader->entry_translated = true;
}

static int add_segment(struct elf_reader *reader, const struct program_header *row,
                       struct error *err)
{
    struct image_elf *elf = reader->elf;
    int status = check_segment(reader->source, row, err);

    if (status < 0 || row->memory_bytes == 0)
        return status;
    status = check_overlap(elf, row, err);
    if (status < 0)
        return status;
    if (elf->segment_count == IMAGE_MAX_SEGMENTS)
        return error_set(err, -ENOEXEC,
                         "ELF file has more than %d segments to load; husk loads no more",
                         IMAGE_MAX_SEGMENTS);
    elf->segments[elf->segment_count++] = (struct image_segment){
        .gpa = row->physical_address,
        .file_offset = row->file_offset,
        .file_bytes = row->file_bytes,
        .memory_bytes = row->memory_bytes,
    };
    translate_entry(reader, row);
    return 0;
}

static int read_pvh_note(const uint8_t *descriptor, uint32_t size, struct image_elf *elf,
                         struct error *err)
{
    uint64_t entry;

    /* pvh.pandoc shows 4 bytes; Linux emits 8 on x86-64. */
    if (size != 4 && size != 8)
        return error_set(err, -ENOEXEC,
                         "PVH note (Xen, type %d) has a descriptor of %" PRIu32
                         " bytes, not 4 or 8",
                         XEN_NOTE_PVH_ENTRY, size);
    entry = size == 8 ? load_le64(descriptor) : load_le32(descriptor);
    if (entry > UINT32_MAX)
        return error_set(err, -ENOEXEC,
                         "PVH note (Xen, type %d): entry 0x%" PRIx64 " is above 4 GiB",
                         XEN_NOTE_PVH_ENTRY, entry);
    elf->has_pvh = true;
    elf->pvh_entry = (uint32_t)entry;
    elf->pvh_note_bytes = (uint8_t)size;
    return 0;
}

/* Walks the notes of one segment, names and descriptors padded to 4 bytes. A segment
 * holds notes of several owners in any order. */
static int walk_notes(const uint8_t *notes, uint64_t size, size_t index,
                      struct image_elf *elf, struct error *err)
{
    uint64_t offset = 0;

    while (!elf->has_pvh && range_within(offset, sizeof(Elf32_Nhdr), size)) {
        uint32_t name_bytes = load_le32(notes + offset);
        uint32_t descriptor_bytes = load_le32(notes + offset + 4);
        uint32_t type = load_le32(notes + offset + 8);
        uint64_t name = offset + sizeof(Elf32_Nhdr);
        uint64_t descriptor = name + align_up(name_bytes, 4);

        if (!range_within(descriptor, descriptor_bytes, size))
            return error_set(err, -ENOEXEC,
                             "segment %zu: the note at byte %" PRIu64 " of it runs past "
                             "its end at byte %" PRIu64,
                             index, offset, size);
        if (type == XEN_NOTE_PVH_ENTRY && name_bytes == sizeof(xen_note_owner) &&
            memcmp(notes + name, xen_note_owner, sizeof(xen_note_owner)) == 0) {
            int status = read_pvh_note(notes + descriptor, descriptor_bytes, elf, err);

            if (status < 0)
                return status;
        }
        offset = descriptor + align_up(descriptor_bytes, 4);
    }
    return 0;
}

static int read_notes(const struct elf_reader *reader, const struct program_header *row,
                      struct error *err)
{
    uint8_t notes[ELF_MAX_NOTE_BYTES];
    int status;

    if (row->file_bytes > sizeof(notes))
        return error_set(err, -ENOEXEC,
                         "segment %zu: %" PRIu64 " bytes of notes; at most %d are "
                         "accepted",
                         row->index, row->file_bytes, ELF_MAX_NOTE_BYTES);
    status = source_read(reader->source, row->file_offset, notes, (size_t)row->file_bytes,
                         err);
    if (status < 0)
        return error_prefix(err, "segment %zu: notes", row->index);
    return walk_notes(notes, row->file_bytes, row->index, reader->elf, err);
}

static int take_program_header(struct elf_reader *reader,
                               const struct program_header *row, struct error *err)
{
    switch (row->type) {
    case PT_LOAD:
        return add_segment(reader, row, err);
    case PT_NOTE:
        return read_notes(reader, row, err);
    case PT_INTERP:
        return error_set(err, -ENOEXEC, "is a dynamically linked program, not a kernel");
    default:
        return 0;
    }
}

/* Nothing is loaded by its section headers, so bad ones are as good as none. */
static void take_sections(struct elf_reader *reader, const struct elf_header *header)
{
    const struct image_elf_sections *sections = &header->sections;
    uint64_t size_bytes = (uint64_t)sections->count * sections->row_bytes;

    if (sections->row_bytes == reader->layout->section_header_bytes &&
        range_within(sections->file_offset, size_bytes, reader->source->size_bytes))
        reader->elf->sections = *sections;
}

static bool segment_holds(const struct image_elf *elf, uint64_t gpa)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct image_segment *segment = &elf->segments[i];

        if (gpa >= segment->gpa && gpa - segment->gpa < segment->memory_bytes)
            return true;
    }
    return false;
}

static int check_result(const struct image_elf *elf, struct error *err)
{
    if (elf->segment_count == 0)
        return error_set(err, -ENOEXEC, "ELF file has no segment to load (PT_LOAD)");
    if (elf->has_pvh && !segment_holds(elf, elf->pvh_entry))
        return error_set(err, -ENOEXEC,
                         "PVH note (Xen, type %d): entry 0x%" PRIx32
                         " lies in no segment",
                         XEN_NOTE_PVH_ENTRY, elf->pvh_entry);
    return 0;
}

static int describe(const struct elf_layout *layout, const struct source *source,
                    const struct image_head *head, struct image *image, struct error *err)
{
    struct elf_reader reader = {.source = source, .layout = layout, .elf = &image->elf};
    struct elf_header header = {.type = 0};
    int status = read_header(&reader, &header, err);

    if (status == 0)
        status = check_identification(head->bytes, err);
    if (status == 0)
        status = check_header(&reader, &header, err);
    if (status < 0)
        return status;

    image->elf.machine = header.machine;
    image->elf.entry = header.entry;
    image->elf.entry_physical = header.entry;
    take_sections(&reader, &header);
    for (size_t i = 0; i < header.row_count; i++) {
        struct program_header row = {.index = i};

        status = read_program_header(&reader, &header, i, &row, err);
        if (status == 0)
            status = take_program_header(&reader, &row, err);
        if (status < 0)
            return status;
    }
    return check_result(&image->elf, err);
}

static int describe32(const struct source *source, const struct image_head *head,
                      struct image *image, struct error *err)
{
    return describe(&layout32, source, head, image, err);
}

static int describe64(const struct source *source, const struct image_head *head,
                      struct image *image, struct error *err)
{
    return describe(&layout64, source, head, image, err);
}

static bool matches64(const struct image_head *head, const struct image *image)
{
    (void)image;
    return image_head_has(head, 0, ELFMAG, SELFMAG) && head->size > EI_CLASS &&
           head->bytes[EI_CLASS] == ELFCLASS64;
}

/* Takes ELF files of unknown class too, and then says so. */
static bool matches32(const struct image_head *head, const struct image *image)
{
    return image_head_has(head, 0, ELFMAG, SELFMAG) && !matches64(head, image);
}

const struct image_format_ops image_elf32_ops = {
    .name = "ELF32",
    .matches = matches32,
    .describe = describe32,
};

const struct image_format_ops image_elf64_ops = {
    .name = "ELF64",
    .matches = matches64,
    .describe = describe64,
};
