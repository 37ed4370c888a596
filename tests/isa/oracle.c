/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The software CPU against this machine's: every form of the tables, every instruction
 * form of some programs' text, and random blocks, each from random states.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "bench.h"
#include "blocks.h"
#include "corpus.h"
#include "native.h"
#include "shape.h"
#include "window.h"

/* States from the same bytes; then others are made. */
#define STATES_PER_ENCODING 20

/* Instructions begin here, or so that they cross into the second page. */
#define CODE_PLACE (WINDOW_CODE + 0x100)

struct options {
    unsigned states; /* of each form */
    unsigned blocks;
    const char *form; /* only these; NULL: all */
    uint64_t seed;
    bool undefined;
    bool list_skipped;
    bool kernels;
    const char *const *corpus; /* files */
    int corpus_count;
};

static uint64_t random_place(struct random *random)
{
    if (random_chance(random, 8))
        return WINDOW_CODE + WINDOW_PAGE - 1 - random_below(random, INSTRUCTION_LIMIT);
    return CODE_PLACE;
}

static void run_form(struct bench *bench, const struct form *form, uint32_t mode,
                     unsigned states)
{
    unsigned mismatches = 0;
    unsigned shown = 0;

    for (unsigned done = 0; done < states; done += STATES_PER_ENCODING) {
        uint8_t bytes[INSTRUCTION_LIMIT];
        struct instruction instruction;

        if (!code_generate(form, mode, random_place(&bench->random), &bench->random,
                           bytes, &instruction)) {
            printf("%s (%d-bit code, %02x /%d): no encoding found\n", form->mnemonic,
                   mode == CODE_MODE ? 64 : 32, form->opcode, form->extension);
            bench->failed_forms++;
            return;
        }
        mismatches +=
            bench_states(bench, bytes, &instruction, STATES_PER_ENCODING, &shown);
    }
    bench->forms++;
    if (mismatches == 0)
        return;
    bench->failed_forms++;
    printf("%s (%d-bit code, map %u, %02x /%d): %u of %u states differ\n\n",
           form->mnemonic, mode == CODE_MODE ? 64 : 32, form->map, form->opcode,
           form->extension, mismatches, states);
}

static void run_forms(struct bench *bench, const struct options *options, uint32_t mode)
{
    for (size_t i = 0; i < soft_form_count(); i++) {
        const struct form *form = soft_form(i);
        const char *reason = shape_skip_reason(form, mode);

        if (options->form != NULL && strcmp(options->form, form->mnemonic) != 0)
            continue;
        /* Each form has its own numbers, so that one can be run by itself. */
        bench->random.state = options->seed + (i << 32);
        if (reason == NULL) {
            unsigned long undefined = bench->undefined;

            bench->flags_changed = 0;
            run_form(bench, form, mode, options->states);
            bench->unlike[i] |= bench->undefined != undefined ||
                                (form->flags.undefined & ~bench->flags_changed) != 0;
            continue;
        }
        bench->skipped++;
        if (options->list_skipped)
            printf("%d-bit code: skipped %s (%02x /%d): %s\n",
                   mode == CODE_MODE ? 64 : 32, form->mnemonic, form->opcode,
                   form->extension, reason);
    }
}

static void usage(void)
{
    (void)fprintf(
        stderr,
        "usage: oracle [--states N] [--blocks N] [--form MNEMONIC] [--seed S]\n"
        "              [--undefined] [--skipped] [--kernels] [FILE...]\n"
        "FILE: ELF programs whose instructions are tried, too; --kernels: those in\n"
        "the folder HUSK_KERNELS\n");
}

static bool parse(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"states", required_argument, NULL, 'n'},
        {"blocks", required_argument, NULL, 'b'},
        {"form", required_argument, NULL, 'f'},
        {"seed", required_argument, NULL, 's'},
        {"undefined", no_argument, NULL, 'u'},
        {"skipped", no_argument, NULL, 'k'},
        {"kernels", no_argument, NULL, 'l'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'n':
            options->states = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'b':
            options->blocks = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'f':
            options->form = optarg;
            break;
        case 's':
            options->seed = strtoull(optarg, NULL, 0);
            break;
        case 'u':
            options->undefined = true;
            break;
        case 'l':
            options->kernels = true;
            break;
        case 'k':
            options->list_skipped = true;
            break;
        default:
            usage();
            return false;
        }
    }
    options->corpus = (const char *const *)argv + optind;
    options->corpus_count = argc - optind;
    return true;
}

int main(int argc, char **argv)
{
    struct options options = {.states = 1000, .blocks = 10000, .seed = 1};
    struct bench bench;

    if (!parse(argc, argv, &options))
        return 2;
    printf("seed %llu\n", (unsigned long long)options.seed);
    bench_create(&bench, options.seed);
    bench.show_undefined = options.undefined;
    run_forms(&bench, &options, CODE_MODE);
    if (native_has_code32())
        run_forms(&bench, &options, CODE_MODE32);
    else
        printf("32-bit code is not tried: this host does not run it\n");
    for (int i = 0; i < options.corpus_count; i++)
        corpus_run(&bench, options.corpus[i], options.states, options.form);
    if (options.kernels)
        corpus_run_kernels(&bench, options.states, options.form);
    if (options.form == NULL)
        blocks_run(&bench, options.seed, options.blocks);
    printf("%lu forms (%lu skipped), %lu states (%lu with faults; differences: %lu in "
           "undefined flags only, %lu tolerated), %lu mismatches in %lu forms\n",
           bench.forms, bench.skipped, bench.states, bench.faults, bench.undefined,
           bench.tolerated, bench.mismatches, bench.failed_forms);
    bench_destroy(&bench);
    return bench.mismatches == 0 && bench.failed_forms == 0 ? 0 : 1;
}
