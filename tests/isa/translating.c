/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long translating takes: code of a program is translated, block behind block, and
 * never run. What the code became is shown as a hash, so that two versions of the
 * translator can be compared.
 *
 *   translating [--rounds N] FILE
 *
 * FILE is an ELF program or a kernel. `fresh` rounds begin with memory that the host has
 * to give first, as after a start; `warm` ones with memory that was used before. Both are
 * shown by their fastest round. For counts of instructions:
 *
 *   valgrind --tool=callgrind translating --rounds 1 FILE
 */
#include <getopt.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accel/soft/access_private.h"
#include "accel/soft/translator/shared_private.h"
#include "bare.h"
#include "base/bytes.h"
#include "base/check.h"
#include "text.h"

/* Pieces of the text, evenly spread: together they fit into the translator's memory. */
#define PIECE_COUNT UINT64_C(32)
#define PIECE_BYTES (UINT64_C(32) * 1024)

/* Guest-physical places. Memory is mapped one to one. */
#define PLACE_TABLES UINT64_C(0x1000) /* PML4, PDPT, PD */
#define PLACE_TEXT X86_LARGE_PAGE_BYTES
#define MEMORY_BYTES (PLACE_TEXT + PIECE_COUNT * PIECE_BYTES)

#define PTE_RIGHTS (X86_PTE_PRESENT | X86_PTE_WRITABLE | X86_PTE_ACCESSED | X86_PTE_DIRTY)

struct bench {
    struct bare bare;
    size_t text_bytes;
};

/* ---- the processor ---- */

static void write_page_tables(struct bench *bench)
{
    bare_write64(&bench->bare, PLACE_TABLES,
                 (PLACE_TABLES + X86_PAGE_BYTES) | PTE_RIGHTS);
    bare_write64(&bench->bare, PLACE_TABLES + X86_PAGE_BYTES,
                 (PLACE_TABLES + UINT64_C(2) * X86_PAGE_BYTES) | PTE_RIGHTS);
    for (uint64_t gpa = 0; gpa < MEMORY_BYTES; gpa += X86_LARGE_PAGE_BYTES)
        bare_write64(&bench->bare,
                     PLACE_TABLES + UINT64_C(2) * X86_PAGE_BYTES +
                         gpa / X86_LARGE_PAGE_BYTES * 8,
                     gpa | PTE_RIGHTS | X86_PTE_LARGE);
}

static void set_processor(struct bench *bench)
{
    const struct x86_segment code = {
        .limit = UINT32_MAX,
        .type = X86_TYPE_CODE_READ_EXECUTE_ACCESSED,
        .present = true,
        .code_or_data = true,
        .long_mode = true,
        .granularity = true,
    };
    const struct cpu_state state = {
        .rflags = X86_FLAGS_FIXED,
        .segments = {[X86_CS] = code},
        .cr0 = X86_CR0_PE | X86_CR0_PG | X86_CR0_ET | X86_CR0_NE | X86_CR0_WP,
        .cr3 = PLACE_TABLES,
        .cr4 = X86_CR4_PAE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT,
        .efer = X86_EFER_LME | X86_EFER_LMA | X86_EFER_NXE,
    };
    struct error err = ERROR_NONE;

    CHECK(accel_soft.set_state(bench->bare.vcpu, &state, &err) == 0);
}

static void bench_create(struct bench *bench)
{
    *bench = (struct bench){.text_bytes = 0};
    bare_create(&bench->bare, MEMORY_BYTES);
    write_page_tables(bench);
    set_processor(bench);
}

/* For text_visit: keeps pieces of the first section, which is the largest one. */
static void take_pieces(void *context, const uint8_t *text, size_t size)
{
    struct bench *bench = context;
    const size_t distance = align_down(size / PIECE_COUNT, 16);

    if (bench->text_bytes != 0 || distance < PIECE_BYTES)
        return;
    for (size_t i = 0; i < PIECE_COUNT; i++)
        CHECK(memory_write(bench->bare.memory, PLACE_TEXT + i * PIECE_BYTES,
                           text + i * distance, PIECE_BYTES) == 0);
    bench->text_bytes = PIECE_COUNT * PIECE_BYTES;
}

/* ---- translating ---- */

/* What compilers put between functions: INT3. */
#define PADDING 0xcc

static void translate_text(struct bench *bench)
{
    struct soft_cpu *cpu = bench->bare.cpu;
    const uint8_t *text = memory_slice(bench->bare.memory, PLACE_TEXT, bench->text_bytes);
    volatile size_t at = 0;

    CHECK(setjmp(cpu->unwind) == 0 || at + INSTRUCTION_LIMIT > bench->text_bytes);
    while (at < bench->text_bytes) {
        const struct block *block;

        if (text[at] == PADDING) {
            at++;
            continue;
        }
        cpu->rip = PLACE_TEXT + at;
        block = translation_find(cpu);
        CHECK(block != NULL);
        at += block->byte_count;
    }
}

/* FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_code(const struct translator *translator)
{
    const struct code_memory *memory = &translator->memory;
    const uint64_t hash =
        hash_bytes(UINT64_C(0xcbf29ce484222325), memory->executable + memory->hot_start,
                   memory->hot.at - memory->hot_start);

    return hash_bytes(hash, memory->executable + memory->hot.end,
                      memory->cold.at - memory->hot.end);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Processor time of the fastest round. */
static uint64_t measure(struct bench *bench, unsigned rounds, bool fresh)
{
    struct soft_vm *vm = bench->bare.cpu->vm;
    uint64_t best = UINT64_MAX;

    for (unsigned round = 0; round < rounds; round++) {
        uint64_t start;

        if (fresh)
            translator_release(vm, vm->translator);
        else
            translator_empty(vm, vm->translator);
        start = now_ns();
        translate_text(bench);
        best = min_u64(best, now_ns() - start);
    }
    return best;
}

static void run(struct bench *bench, unsigned rounds)
{
    const struct translator *translator = bench->bare.cpu->translator;
    const struct translator_counters *counters = &translator->counters;
    uint64_t instructions, fresh, warm;

    translate_text(bench); /* which makes the index over the forms, too */
    instructions = counters->instructions;
    printf("%" PRIu64 " blocks, %" PRIu64 " instructions, %" PRIu64
           " bytes of code, hash %016" PRIx64 "\n",
           (uint64_t)counters->blocks, instructions, (uint64_t)counters->code_bytes,
           hash_code(translator));
    fresh = measure(bench, rounds, true);
    warm = measure(bench, rounds, false);
    printf("ns an instruction: fresh %.1f, warm %.1f\n",
           (double)fresh / (double)instructions, (double)warm / (double)instructions);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    static struct bench bench;
    unsigned rounds = 10;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) == 'r')
        rounds = (unsigned)strtoul(optarg, NULL, 10);
    if (option != -1 || optind + 1 != argc) {
        (void)fprintf(stderr, "usage: translating [--rounds N] FILE\n");
        return 2;
    }
    bench_create(&bench);
    text_visit(argv[optind], take_pieces, &bench);
    if (bench.text_bytes == 0) {
        (void)fprintf(stderr, "translating: %s has too little code\n", argv[optind]);
        return 1;
    }
    run(&bench, rounds);
    bare_destroy(&bench.bare);
    return 0;
}
