/* SPDX-License-Identifier: Apache-2.0 */
/* The checks in front of accesses, inline and as thunks; see tlb_check_private.h. */
#include "accel/soft/translator/tlb_check_private.h"

/* ---- the TLB ---- */

/* A field of the TLB's entry whose offset is in SCRATCH. */
static struct host_memory entry_field(enum tlb_kind kind, size_t field)
{
    struct host_memory entry = STATE(mmu.entries[kind]);

    entry.base = SCRATCH;
    entry.displacement += (int32_t)field;
    return entry;
}

static struct host_memory entry_tag(enum tlb_kind kind, bool write)
{
    return entry_field(kind, write ? offsetof(struct tlb_entry, write_tag)
                                   : offsetof(struct tlb_entry, read_tag));
}

/* SCRATCH = the offset of ADDRESS's entry. */
static void put_index(struct code_writer *writer)
{
    static const uint8_t index[] = {
        0x45, 0x89, 0xda, 0x41, 0xc1, 0xea, 12 - TLB_ENTRY_SHIFT, 0x41, 0x81, 0xe2};

    encode_bytes(writer, index, sizeof(index));
    encode_u32(writer, (TLB_ENTRIES - 1) << TLB_ENTRY_SHIFT);
}

void tlb_comparison_emit(struct code_writer *writer, unsigned bytes)
{
    static const uint8_t compare[] = {0x49, 0x81, 0xfb}; /* cmp r11, */

    encode_bytes(writer, compare, sizeof(compare));
    encode_u32(writer, (uint32_t)X86_PAGE_BYTES - bytes);
}

/*
 *   mov  r10d, r11d
 *   shr  r10d, 7              the index, times the size of an entry
 *   and  r10d, ...
 *   sub  r11, [tag + r10]
 *   cmp  r11, 4096 - bytes
 */
void tlb_compare_emit(struct code_writer *writer, enum tlb_kind kind, bool write,
                      unsigned bytes)
{
    put_index(writer);
    encode_alu_memory(writer, 0x2b, ADDRESS, entry_tag(kind, write));
    tlb_comparison_emit(writer, bytes);
}

static void put_page(struct code_writer *writer, struct host_memory page, bool joined)
{
    if (joined)
        encode_alu_memory(writer, 0x03, ADDRESS, page);
    else
        encode_load(writer, SCRATCH, page);
}

void tlb_page_emit(struct code_writer *writer, enum tlb_kind kind, bool joined)
{
    put_page(writer, entry_field(kind, offsetof(struct tlb_entry, page)), joined);
}

void tlb_alignment_emit(struct code_writer *writer)
{
    static const uint8_t test[] = {0x41, 0xf6, 0xc3, CHECK_MAX_BYTES - 1};

    encode_bytes(writer, test, sizeof(test)); /* test r11b, */
}

/* ---- copies of its entries ---- */

struct host_memory tlb_stack_page(enum tlb_kind kind)
{
    return STATE(mmu.stack_pages[kind]);
}

struct host_memory tlb_loop_page(enum tlb_kind kind, bool write, unsigned slot)
{
    return STATE(mmu.loop_pages[kind][write][slot]);
}

static struct host_memory copy_field(struct host_memory copy, size_t field)
{
    copy.displacement += (int32_t)field;
    return copy;
}

/*
 *   sub  r11, [tag]
 *   cmp  r11, [limit]
 */
void tlb_copy_compare_emit(struct code_writer *writer, struct host_memory copy)
{
    encode_alu_memory(writer, 0x2b, ADDRESS,
                      copy_field(copy, offsetof(struct page_copy, tag)));
    encode_alu_memory(writer, 0x3b, ADDRESS,
                      copy_field(copy, offsetof(struct page_copy, limit)));
}

void tlb_copy_page_emit(struct code_writer *writer, struct host_memory copy, bool joined)
{
    put_page(writer, copy_field(copy, offsetof(struct page_copy, page)), joined);
}

/* ---- thunks that make copies ---- */

static const uint8_t push_rax[] = {0x50};
static const uint8_t pop_rax[] = {0x58};

static void put_return(struct code_writer *writer)
{
    static const uint8_t back[] = {0xc3}; /* ret */

    encode_bytes(writer, back, sizeof(back));
}

/* The entry whose offset is in SCRATCH becomes the copy. Flags stay. */
static void put_copy(struct code_writer *writer, enum tlb_kind kind, bool write,
                     struct host_memory copy)
{
    encode_bytes(writer, push_rax, sizeof(push_rax));
    encode_load(writer, X86_RAX, entry_tag(kind, write));
    encode_store(writer, copy_field(copy, offsetof(struct page_copy, tag)), X86_RAX);
    encode_load(writer, X86_RAX, entry_field(kind, offsetof(struct tlb_entry, page)));
    encode_store(writer, copy_field(copy, offsetof(struct page_copy, page)), X86_RAX);
    encode_constant(writer, X86_RAX, X86_PAGE_BYTES - COPY_BYTES + 1);
    encode_store(writer, copy_field(copy, offsetof(struct page_copy, limit)), X86_RAX);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
}

/* ADDRESS is what a comparison with the copy has left. Compares it as inline code does; a
 * good entry becomes the copy. */
static uint32_t put_thunk(struct code_writer *writer, enum tlb_kind kind, bool write,
                          unsigned bytes, struct host_memory copy)
{
    uint32_t failed = writer_offset(writer);
    uint32_t start;

    put_return(writer);
    start = writer_offset(writer);
    encode_alu_memory(writer, 0x03, ADDRESS,
                      copy_field(copy, offsetof(struct page_copy, tag)));
    tlb_compare_emit(writer, kind, write, bytes);
    encode_jump_if(writer, CONDITION_A, failed);
    put_copy(writer, kind, write, copy);
    put_return(writer);
    return start;
}

/* The address, too. */
static uint32_t put_top_thunk(struct code_writer *writer, enum tlb_kind kind, bool push,
                              uint32_t slow)
{
    /* add qword [rsp], 2 */
    static const uint8_t pass_name[] = {0x48, 0x83, 0x04, 0x24, sizeof(code_index)};
    const uint32_t start = writer_offset(writer);

    encode_lea(writer, ADDRESS, host_at(STACK, push ? -STACK_TOP_BYTES : 0), true);
    tlb_compare_emit(writer, kind, true, STACK_TOP_BYTES);
    encode_jump_if(writer, CONDITION_A, slow);
    put_copy(writer, kind, true, STATE_BY_GS(mmu.stack_pages[kind]));
    encode_bytes(writer, pass_name, sizeof(pass_name));
    put_return(writer);
    return start;
}

static void put_thunks(struct translator *translator, struct code_writer *writer,
                       enum tlb_kind kind)
{
    const struct host_memory stack = STATE_BY_GS(mmu.stack_pages[kind]);

    for (unsigned push = 0; push < 2; push++)
        translator->stack_tops[kind][push] =
            put_top_thunk(writer, kind, push != 0, translator->slow);
    translator->stack_groups[kind] = put_thunk(writer, kind, true, COPY_BYTES, stack);
    for (unsigned slot = 0; slot < LOOP_PAGES; slot++)
        for (unsigned write = 0; write < 2; write++)
            translator->loop_pages[kind][write][slot] =
                put_thunk(writer, kind, write != 0, 1,
                          STATE_BY_GS(mmu.loop_pages[kind][write][slot]));
}

void tlb_check_thunks_emit(struct translator *translator, struct code_writer *writer)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(translator->stack_groups); kind++)
        put_thunks(translator, writer, (enum tlb_kind)kind);
}
