/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of existing programs; see corpus.h. */
#include "corpus.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "shape.h"
#include "text.h"
#include "window.h"

#define CODE_PLACE (WINDOW_CODE + 0x100)

/* Kinds seen are kept in a hash set without deletion. */
#define KIND_SLOTS 65536

struct corpus {
    struct bench *bench;
    unsigned states;
    const char *form;
    uint64_t kinds[KIND_SLOTS]; /* 0: empty */
    unsigned kind_count;
    unsigned long undecoded;
};

/* What makes two instructions the same for us: form, opcode, sizes, prefixes, and which
 * parts the memory operand has. Never 0. */
static uint64_t kind_of(const struct instruction *instruction)
{
    uint64_t kind = (uintptr_t)instruction->form;

    kind = kind * 257 + instruction->opcode;
    kind = kind * 257 + instruction->operand_size;
    kind = kind * 257 + instruction->address_size;
    kind = kind * 257 + (uint64_t)(instruction->lock | instruction->has_rex << 1 |
                                   instruction->memory << 2 |
                                   (instruction->segment >= X86_FS) << 3 |
                                   instruction->rip_relative << 4 |
                                   (instruction->index != SOFT_ZERO) << 5 |
                                   (instruction->base == SOFT_ZERO) << 6);
    return kind * 257 + instruction->repeat + 1;
}

static bool is_new(struct corpus *corpus, uint64_t kind)
{
    size_t slot = (kind * UINT64_C(0x9e3779b97f4a7c15) >> 40) % KIND_SLOTS;

    while (corpus->kinds[slot] != 0 && corpus->kinds[slot] != kind)
        slot = (slot + 1) % KIND_SLOTS;
    if (corpus->kinds[slot] == kind)
        return false;
    CHECK(corpus->kind_count++ < KIND_SLOTS / 2);
    corpus->kinds[slot] = kind;
    return true;
}

/* ---- bringing an instruction into the window ---- */

/* Where the displacement of 32 bits is: it ends before the immediates. */
static size_t displacement_at(const struct instruction *instruction)
{
    return instruction->length - code_immediate_bytes(instruction) - 4u;
}

/* Branches go to CODE_TARGET; addresses that registers do not decide, into the window.
 * False: what it is can not be tried so. */
static bool adapt(struct corpus *corpus, uint8_t *bytes, struct instruction *instruction)
{
    const struct form *form = instruction->form;
    uint64_t target = code_random_target(&corpus->bench->random, 16);
    uint8_t branch = form->operands[0];

    if (instruction->segment == X86_FS ||
        (instruction->has_modrm && instruction->memory &&
         instruction->base == SOFT_ZERO && instruction->segment == X86_GS))
        return false;
    if (branch == OPERAND_J8)
        bytes[instruction->length - 1] = (uint8_t)(CODE_TARGET - instruction->length);
    else if (branch == OPERAND_JZ && instruction->operand_size != 2)
        store_le32(bytes + instruction->length - 4, CODE_TARGET - instruction->length);
    else if (branch == OPERAND_JZ)
        return false;
    if (instruction->rip_relative)
        store_le32(bytes + displacement_at(instruction),
                   (uint32_t)(target - (CODE_PLACE + instruction->length)));
    else if (instruction->has_modrm && instruction->memory &&
             instruction->base == SOFT_ZERO)
        store_le32(bytes + displacement_at(instruction), (uint32_t)target);
    else if (instruction->memory && !instruction->has_modrm)
        return false; /* MOV's own absolute addresses: the tables' forms have them */
    return soft_decode(bytes, INSTRUCTION_LIMIT, CODE_PLACE, CODE_MODE, instruction) ==
           DECODE_OK;
}

static void try(struct corpus *corpus, const uint8_t *text,
                const struct instruction *found)
{
    struct instruction instruction = *found;
    uint8_t bytes[INSTRUCTION_LIMIT] = {0};
    unsigned shown = 0;
    unsigned mismatches;

    if (shape_skip_reason(found->form, CODE_MODE) != NULL ||
        (corpus->form != NULL && strcmp(corpus->form, found->form->mnemonic) != 0) ||
        !is_new(corpus, kind_of(found)))
        return;
    memcpy(bytes, text, found->length);
    if (!adapt(corpus, bytes, &instruction))
        return;
    corpus->bench->forms++;
    mismatches = bench_states(corpus->bench, bytes, &instruction, corpus->states, &shown);
    corpus->bench->failed_forms += mismatches != 0;
}

/* ---- text ---- */

static void sweep(void *context, const uint8_t *text, size_t size)
{
    struct corpus *corpus = context;
    size_t at = 0;

    while (at < size) {
        struct instruction instruction;
        enum decode_result result =
            soft_decode(text + at, size - at, CODE_PLACE, CODE_MODE, &instruction);

        if (result != DECODE_OK) {
            corpus->undecoded++;
            at++;
            continue;
        }
        try(corpus, text + at, &instruction);
        at += instruction.length;
    }
}

void corpus_run(struct bench *bench, const char *path, unsigned states, const char *form)
{
    static struct corpus corpus;

    corpus = (struct corpus){.bench = bench, .states = states, .form = form};
    text_visit(path, sweep, &corpus);
    printf("corpus: %s: %u kinds of instructions, %lu bytes that are none\n", path,
           corpus.kind_count, corpus.undecoded);
}

void corpus_run_kernels(struct bench *bench, unsigned states, const char *form)
{
    const char *folder = getenv("HUSK_KERNELS");
    char pattern[4096];
    glob_t found;

    (void)snprintf(pattern, sizeof(pattern), "%s/*/vmlinuz",
                   folder == NULL ? "" : folder);
    if (folder == NULL || glob(pattern, 0, NULL, &found) != 0) {
        printf("corpus: kernels skipped, HUSK_KERNELS names no folder with any\n");
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        corpus_run(bench, found.gl_pathv[i], states, form);
    globfree(&found);
}
