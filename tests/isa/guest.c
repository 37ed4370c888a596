/* SPDX-License-Identifier: Apache-2.0 */
/* A software processor by itself; see guest.h. */
#include "guest.h"

#include <stdlib.h>
#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/translator_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "bare.h"
#include "base/check.h"
#include "window.h"

/* Guest-physical places. */
#define GUEST_TABLES UINT64_C(0x1000) /* PML4, PDPT, PD, PT, one page each */
#define GUEST_GDT UINT64_C(0x5000)
#define GUEST_WINDOW UINT64_C(0x200000) /* of the 2 MiB that WINDOW_CODE is in */
#define GUEST_MEMORY_BYTES UINT64_C(0x400000)

#define WINDOW_REGION align_down(WINDOW_CODE, X86_LARGE_PAGE_BYTES)
#define PTE_SEEN (X86_PTE_ACCESSED | X86_PTE_DIRTY) /* so that walks write nothing */

/* The TSS, at a linear address only the processor may use; all ports are forbidden. */
#define TSS_LINEAR (WINDOW_REGION + X86_PAGE_BYTES)
#define TSS_LIMIT 0x67
#define TSS_IO_MAP_BASE 0x66

/* What Linux gives user programs: the same selectors as on the native side, since some
 * instructions show them. */
#define GDT_USER_CODE64 UINT64_C(0x00affb000000ffff)
#define GDT_USER_CODE32 UINT64_C(0x00cffb000000ffff)
#define GDT_USER_DATA UINT64_C(0x00cff3000000ffff)
#define GDT_BYTES 128

/* Blocks that code under test may take. */
#define BLOCK_COUNT_LIMIT 10000

struct guest {
    struct bare bare;
    bool code32; /* what CS is now */
};

/* ---- memory ---- */

static uint64_t window_gpa(uint64_t linear)
{
    return linear - WINDOW_REGION + GUEST_WINDOW;
}

static void write64(struct guest *guest, uint64_t gpa, uint64_t value)
{
    bare_write64(&guest->bare, gpa, value);
}

static void map_page(struct guest *guest, uint64_t linear, uint64_t rights)
{
    uint64_t entry = GUEST_TABLES + 3 * X86_PAGE_BYTES + (linear >> 12) % 512 * 8;

    write64(guest, entry, window_gpa(linear) | X86_PTE_PRESENT | PTE_SEEN | rights);
}

static void write_page_tables(struct guest *guest)
{
    const unsigned shifts[] = {39, 30, 21};

    for (unsigned level = 0; level < ARRAY_SIZE(shifts); level++)
        write64(guest,
                GUEST_TABLES + level * X86_PAGE_BYTES +
                    (WINDOW_REGION >> shifts[level]) % 512 * 8,
                (GUEST_TABLES + (level + 1) * X86_PAGE_BYTES) | X86_PTE_PRESENT |
                    X86_PTE_WRITABLE | X86_PTE_USER | PTE_SEEN);
    for (uint64_t at = WINDOW_CODE; at < WINDOW_CODE + WINDOW_CODE_BYTES;
         at += WINDOW_PAGE)
        map_page(guest, at, X86_PTE_USER | X86_PTE_WRITABLE);
    for (uint64_t at = WINDOW_DATA; at < WINDOW_READ_ONLY; at += WINDOW_PAGE)
        map_page(guest, at, X86_PTE_USER | X86_PTE_WRITABLE | X86_PTE_NO_EXECUTE);
    map_page(guest, WINDOW_READ_ONLY, X86_PTE_USER | X86_PTE_NO_EXECUTE);
    map_page(guest, TSS_LINEAR, X86_PTE_NO_EXECUTE);
}

/* ---- processor ---- */

static const struct x86_segment no_segment = {.type = 0};
static const struct x86_segment user_code64 = {
    .limit = UINT32_MAX,
    .selector = WINDOW_CODE64_SELECTOR,
    .type = X86_TYPE_CODE_READ_EXECUTE_ACCESSED,
    .dpl = 3,
    .present = true,
    .code_or_data = true,
    .long_mode = true,
    .granularity = true,
};
static const struct x86_segment user_code32 = {
    .limit = UINT32_MAX,
    .selector = WINDOW_CODE32_SELECTOR,
    .type = X86_TYPE_CODE_READ_EXECUTE_ACCESSED,
    .dpl = 3,
    .present = true,
    .code_or_data = true,
    .db = true,
    .granularity = true,
};
static const struct x86_segment user_data = {
    .limit = UINT32_MAX,
    .selector = WINDOW_DATA_SELECTOR,
    .type = X86_TYPE_DATA_READ_WRITE_ACCESSED,
    .dpl = 3,
    .present = true,
    .code_or_data = true,
    .db = true,
    .granularity = true,
};

static void set_processor(struct guest *guest, bool code32)
{
    struct cpu_state state = {
        .rflags = X86_FLAGS_FIXED | X86_FLAGS_IF,
        .segments = {[X86_ES] = user_data,
                     [X86_CS] = code32 ? user_code32 : user_code64,
                     [X86_SS] = user_data,
                     [X86_DS] = user_data,
                     [X86_GS] = {.base = WINDOW_GS_BASE},
                     [X86_LDTR] = no_segment,
                     [X86_TR] = {.base = TSS_LINEAR,
                                 .limit = TSS_LIMIT,
                                 .selector = 0x40,
                                 .type = X86_TYPE_TSS_BUSY,
                                 .present = true}},
        .gdt = {.base = GUEST_GDT, .limit = GDT_BYTES - 1},
        .cr0 = X86_CR0_PE | X86_CR0_MP | X86_CR0_ET | X86_CR0_NE | X86_CR0_WP |
               X86_CR0_AM | X86_CR0_PG,
        .cr3 = GUEST_TABLES,
        .cr4 =
            X86_CR4_PAE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT | X86_CR4_UMIP | X86_CR4_DE,
        .efer = X86_EFER_SCE | X86_EFER_LME | X86_EFER_LMA | X86_EFER_NXE,
    };
    struct error err = {0};

    CHECK(accel_soft.set_state(guest->bare.vcpu, &state, &err) == 0);
    guest->code32 = code32;
}

void guest_create(struct guest **guest)
{
    static const uint16_t no_io_map = 0xffff;
    struct guest *created = calloc(1, sizeof(*created));

    CHECK(created != NULL);
    bare_create(&created->bare, GUEST_MEMORY_BYTES);
    write_page_tables(created);
    write64(created, GUEST_GDT + (WINDOW_CODE64_SELECTOR & ~7u), GDT_USER_CODE64);
    write64(created, GUEST_GDT + (WINDOW_CODE32_SELECTOR & ~7u), GDT_USER_CODE32);
    write64(created, GUEST_GDT + (WINDOW_DATA_SELECTOR & ~7u), GDT_USER_DATA);
    CHECK(memory_write(created->bare.memory, window_gpa(TSS_LINEAR) + TSS_IO_MAP_BASE,
                       &no_io_map, sizeof(no_io_map)) == 0);
    set_processor(created, false);
    *guest = created;
}

void guest_destroy(struct guest *guest)
{
    bare_destroy(&guest->bare);
    free(guest);
}

uint8_t *guest_bytes(struct guest *guest, uint64_t linear)
{
    uint8_t *bytes = memory_slice(guest->bare.memory, window_gpa(linear), 1);

    CHECK(bytes != NULL);
    return bytes;
}

void guest_code_written(struct guest *guest, uint64_t linear, unsigned size)
{
    while (size > 0) {
        uint64_t gpa = window_gpa(linear);
        unsigned part = (unsigned)min_u64(size, WINDOW_PAGE - gpa % WINDOW_PAGE);

        code_pages_written(guest->bare.cpu, gpa, part);
        linear += part;
        size -= part;
    }
}

/* ---- running ---- */

static void load(struct soft_cpu *cpu, const struct isa_state *in)
{
    memcpy(cpu->r, in->r, sizeof(in->r));
    cpu->rip = in->rip;
    cpu->fx = in->fx;
    soft_flags_set(cpu, in->rflags);
    cpu->activity = ACTIVITY_RUN;
    cpu->attention = 0;
}

static void save(const struct soft_cpu *cpu, struct isa_state *out)
{
    memcpy(out->r, cpu->r, sizeof(out->r));
    out->rip = cpu->rip;
    out->rflags = soft_flags_get(cpu);
    out->fx = cpu->fx;
}

static bool is_exit(const uint64_t *exits, uint64_t rip)
{
    for (unsigned i = 0; i < EXIT_COUNT; i++)
        if (rip == exits[i])
            return true;
    return false;
}

/* Single instructions take the handlers that know nothing of the segments, so that those
 * are compared, too. */
static uint32_t block_mode(const struct soft_cpu *cpu, enum guest_mode mode)
{
    return mode == GUEST_SINGLE ? (cpu->mode & ~(uint32_t)MODE_FLAT) | MODE_SINGLE
                                : cpu->mode;
}

/* What soft_cpu_run does, but that it stops at exits and faults. */
static enum state_end run_blocks(struct soft_cpu *cpu, const uint64_t *exits,
                                 enum guest_mode mode)
{
    volatile unsigned blocks = 0;

    if (setjmp(cpu->unwind) == UNWIND_FAULT)
        return END_FAULT;
    while (!is_exit(exits, cpu->rip)) {
        struct block *block;

        if (blocks++ == BLOCK_COUNT_LIMIT)
            return END_ENDLESS;
        cpu->budget = 1;
        block = block_find(cpu, block_mode(cpu, mode));
        block->uops[0].run(cpu, block->uops);
    }
    return END_EXIT;
}

/* An exit is no code of the guest's: its fetch faults. */
static enum state_end run_translated(struct soft_cpu *cpu, const uint64_t *exits)
{
    volatile enum state_end end = END_ENDLESS;

    if (setjmp(cpu->unwind) == UNWIND_FAULT) {
        end = is_exit(exits, cpu->rip) ? END_EXIT : END_FAULT;
    } else {
        for (unsigned blocks = 0; blocks < BLOCK_COUNT_LIMIT; blocks++) {
            struct block *block;

            if (translator_serves(cpu) && translator_run(cpu))
                continue;
            cpu->budget = 1;
            block = block_find(cpu, cpu->mode);
            block->uops[0].run(cpu, block->uops);
        }
    }
    vectors_save(cpu);
    return end;
}

void guest_run(struct guest *guest, const struct isa_state *in, const uint64_t *exits,
               enum guest_mode mode, struct isa_state *out)
{
    struct soft_cpu *cpu = guest->bare.cpu;

    if (in->code32 != guest->code32)
        set_processor(guest, in->code32);
    load(cpu, in);
    out->end = mode == GUEST_TRANSLATED ? run_translated(cpu, exits)
                                        : run_blocks(cpu, exits, mode);
    save(cpu, out);
    if (out->end != END_FAULT)
        return;
    out->vector = cpu->fault.vector;
    out->error_code = cpu->fault.has_error_code ? cpu->fault.error_code : 0;
    out->cr2 = cpu->fault.cr2;
}
