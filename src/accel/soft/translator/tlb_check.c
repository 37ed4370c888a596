/* SPDX-License-Identifier: Apache-2.0 */
/* The checks in front of accesses, inline and as thunks; see tlb_check_private.h. */
#include "accel/soft/translator/tlb_check_private.h"

static void put_alignment(struct code_writer *writer, uint32_t cold)
{
    static const uint8_t test[] = {0x41, 0xf6, 0xc3, 15}; /* test r11b, 15 */

    encode_bytes(writer, test, sizeof(test));
    encode_jump_if(writer, CONDITION_NE, cold);
}

void tlb_check_comparison_emit(struct code_writer *writer,
                               const struct access_check *check, uint32_t ahead,
                               uint32_t cold)
{
    static const uint8_t compare[] = {0x49, 0x81, 0xfb}; /* cmp r11, */

    encode_bytes(writer, compare, sizeof(compare));
    encode_u32(writer, (uint32_t)X86_PAGE_BYTES - check->size - ahead);
    encode_jump_if(writer, CONDITION_A, cold);
    if (check->aligned)
        put_alignment(writer, cold);
}

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

/*
 *   mov  r10d, r11d
 *   shr  r10d, 7              the index, times the size of an entry
 *   and  r10d, ...
 *   sub  r11, [tag + r10]
 *   cmp  r11, 4096 - size
 *   ja   cold
 *   mov  r10, [page + r10]
 */
void tlb_check_emit(struct code_writer *writer, enum tlb_kind kind,
                    const struct access_check *check, uint32_t cold)
{
    put_index(writer);
    encode_alu_memory(writer, 0x2b, ADDRESS, entry_tag(kind, check->write));
    tlb_check_comparison_emit(writer, check, 0, cold);
    encode_load(writer, SCRATCH, entry_field(kind, offsetof(struct tlb_entry, page)));
}

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
 *   jae  cold
 *   mov  r10, [page]
 */
void tlb_check_copy_emit(struct code_writer *writer, struct host_memory copy,
                         bool aligned, uint32_t cold)
{
    encode_alu_memory(writer, 0x2b, ADDRESS,
                      copy_field(copy, offsetof(struct page_copy, tag)));
    encode_alu_memory(writer, 0x3b, ADDRESS,
                      copy_field(copy, offsetof(struct page_copy, limit)));
    encode_jump_if(writer, CONDITION_AE, cold);
    if (aligned)
        put_alignment(writer, cold);
    encode_load(writer, SCRATCH, copy_field(copy, offsetof(struct page_copy, page)));
}

/* ---- thunks ---- */

static const uint8_t push_rax[] = {0x50};
static const uint8_t pop_rax[] = {0x58};

size_t tlb_check_shape(const struct access_check *check)
{
    if (check->aligned)
        return check->size == CHECK_MAX_BYTES ? CHECK_ALIGNED : CHECK_SHAPES;
    if (check->size > CHECK_MAX_BYTES || (check->size & (check->size - 1)) != 0)
        return CHECK_SHAPES;
    return (size_t)__builtin_ctz(check->size);
}

static void put_return(struct code_writer *writer)
{
    static const uint8_t back[] = {0xc3}; /* ret */

    encode_bytes(writer, back, sizeof(back));
}

static uint32_t put_failure(struct code_writer *writer, uint32_t slow)
{
    static const uint8_t pass_opcode[] = {0x48, 0xff, 0x04, 0x24}; /* inc qword [rsp] */
    const uint32_t start = writer_offset(writer);

    encode_bytes(writer, pass_opcode, sizeof(pass_opcode));
    encode_jump(writer, slow);
    return start;
}

/* RAX and the page of the entry whose offset is in SCRATCH become the copy, for `size`
 * bytes. RAX is that entry's tag, and lost. */
static void put_copy(struct code_writer *writer, enum tlb_kind kind,
                     struct host_memory copy, unsigned size)
{
    encode_store(writer, copy_field(copy, offsetof(struct page_copy, tag)), X86_RAX);
    encode_load(writer, SCRATCH, entry_field(kind, offsetof(struct tlb_entry, page)));
    encode_store(writer, copy_field(copy, offsetof(struct page_copy, page)), SCRATCH);
    encode_constant(writer, X86_RAX, X86_PAGE_BYTES - size + 1);
    encode_store(writer, copy_field(copy, offsetof(struct page_copy, limit)), X86_RAX);
}

/* The entry whose offset is in SCRATCH becomes the stack's page. */
static void put_stack_page(struct code_writer *writer, enum tlb_kind kind)
{
    encode_bytes(writer, push_rax, sizeof(push_rax));
    encode_load(writer, X86_RAX, entry_tag(kind, true));
    put_copy(writer, kind, tlb_stack_page(kind), STACK_TOP_BYTES);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
}

/* Moves page and offset apart, so that their sum stays, but whatever follows this access
 * is not in its page. */
static void put_end_of_group(struct code_writer *writer)
{
    encode_bytes(writer, push_rax, sizeof(push_rax));
    encode_constant(writer, X86_RAX, UINT64_C(1) << 62);
    encode_alu(writer, 0x03, ADDRESS, X86_RAX);
    encode_alu(writer, 0x2b, SCRATCH, X86_RAX);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
}

static uint32_t put_check_thunk(struct code_writer *writer, enum tlb_kind kind,
                                const struct access_check *check, uint32_t slow)
{
    const uint32_t failed = put_failure(writer, slow);
    const uint32_t start = writer_offset(writer);

    tlb_check_emit(writer, kind, check, failed);
    put_return(writer);
    return start;
}

/* A read where a page was hoped to be writable: what follows must not write. */
static void put_read_only_check(struct code_writer *writer, enum tlb_kind kind,
                                const struct access_check *check, uint32_t failed)
{
    tlb_check_emit(writer, kind, check, failed);
    put_end_of_group(writer);
    put_return(writer);
}

static uint32_t put_read_only_thunk(struct code_writer *writer, enum tlb_kind kind,
                                    const struct access_check *check, uint32_t slow)
{
    const uint32_t failed = put_failure(writer, slow);
    const uint32_t start = writer_offset(writer);

    put_read_only_check(writer, kind, check, failed);
    return start;
}

/* A page that may not be written to serves reads. */
static uint32_t put_stack_check_thunk(struct code_writer *writer, enum tlb_kind kind,
                                      const struct access_check *check, uint32_t slow)
{
    uint32_t failed = put_failure(writer, slow);
    uint32_t start;

    if (!check->write) {
        uint32_t again = writer_offset(writer);

        encode_alu_memory(writer, 0x03, ADDRESS, entry_tag(kind, true));
        put_read_only_check(writer, kind, check, failed);
        failed = again;
    }
    start = writer_offset(writer);
    put_index(writer);
    encode_alu_memory(writer, 0x2b, ADDRESS, entry_tag(kind, true));
    tlb_check_comparison_emit(writer, check, 0, failed);
    put_stack_page(writer, kind);
    put_return(writer);
    return start;
}

/*
 * If the TLB has ADDRESS, which stays, its entry becomes a loop's copy.
 *
 *   push rax
 *   mov  rax, [tag + r10]
 *   sub  r11, rax
 *   cmp  r11, 4095
 *   ja   out
 *   push rax
 *   ...
 *   pop  rax
 * out:
 *   add  r11, rax
 *   pop  rax
 *   ret
 */
static uint32_t put_loop_thunk(struct code_writer *writer, enum tlb_kind kind, bool write,
                               unsigned slot)
{
    static const struct access_check any = {.size = 1};
    const uint32_t start = writer_offset(writer);
    struct code_writer jump;

    put_index(writer);
    encode_bytes(writer, push_rax, sizeof(push_rax));
    encode_load(writer, X86_RAX, entry_tag(kind, write));
    encode_alu(writer, 0x2b, ADDRESS, X86_RAX);
    jump = *writer;
    tlb_check_comparison_emit(writer, &any, 0, start);
    encode_bytes(writer, push_rax, sizeof(push_rax));
    put_copy(writer, kind, tlb_loop_page(kind, write, slot), LOOP_BYTES);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
    tlb_check_comparison_emit(&jump, &any, 0, writer_offset(writer));
    encode_alu(writer, 0x03, ADDRESS, X86_RAX);
    encode_bytes(writer, pop_rax, sizeof(pop_rax));
    put_return(writer);
    return start;
}

void tlb_check_thunks_emit(struct translator *translator, struct code_writer *writer)
{
    for (size_t kind = 0; kind < ARRAY_SIZE(translator->loop_pages); kind++)
        for (unsigned slot = 0; slot < LOOP_PAGES; slot++) {
            translator->loop_pages[kind][false][slot] =
                put_loop_thunk(writer, (enum tlb_kind)kind, false, slot);
            translator->loop_pages[kind][true][slot] =
                put_loop_thunk(writer, (enum tlb_kind)kind, true, slot);
        }
    for (size_t kind = 0; kind < ARRAY_SIZE(translator->checks); kind++)
        for (size_t write = 0; write < 2; write++)
            for (size_t shape = 0; shape < CHECK_SHAPES; shape++) {
                const bool aligned = shape == CHECK_ALIGNED;
                const struct access_check check = {
                    .size = aligned ? CHECK_MAX_BYTES : 1u << shape,
                    .write = write != 0,
                    .aligned = aligned,
                };

                translator->checks[kind][write][shape] = put_check_thunk(
                    writer, (enum tlb_kind)kind, &check, translator->slow);
                if (write == 0)
                    translator->read_only_checks[kind][shape] = put_read_only_thunk(
                        writer, (enum tlb_kind)kind, &check, translator->slow);
                if (check.size == STACK_TOP_BYTES)
                    translator->stack_checks[kind][write] = put_stack_check_thunk(
                        writer, (enum tlb_kind)kind, &check, translator->slow);
            }
}
