/* SPDX-License-Identifier: Apache-2.0 */
/* Both sides on the same start; see bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "native.h"
#include "shape.h"
#include "window.h"

static struct bench *current;

static void *window(uint64_t linear)
{
    return (void *)(uintptr_t)linear;
}

void bench_show_crash(void)
{
    if (current == NULL)
        return;
    printf("crash of the software CPU; code:");
    for (size_t i = 0; i < INSTRUCTION_LIMIT; i++)
        printf(" %02x", current->code[i]);
    printf("\n");
    (void)fflush(stdout);
}

static void write_exits(struct bench *bench)
{
    for (unsigned i = 0; i < 2 * EXIT_COUNT; i++) {
        bool code32 = i >= EXIT_COUNT;
        unsigned exit = i % EXIT_COUNT;
        uint64_t address = native_exit_address((enum state_exit)exit, code32);
        uint8_t slot[8];

        bench->exits[code32][exit] = address;
        store_le64(slot, address);
        bench_write_code(bench, WINDOW_CODE + WINDOW_EXIT_SLOT(exit, code32), slot,
                         sizeof(slot));
    }
}

void bench_create(struct bench *bench, uint64_t seed)
{
    uint8_t read_only[WINDOW_READ_ONLY_BYTES];

    *bench = (struct bench){.random = {seed}, .data = malloc(WINDOW_DATA_BYTES)};
    bench->unlike = calloc(soft_form_count(), sizeof(bench->unlike[0]));
    CHECK(bench->data != NULL && bench->unlike != NULL);
    guest_create(&bench->guest);
    native_create();
    native_on_crash(bench_show_crash);
    current = bench;
    random_bytes(&bench->random, bench->data, WINDOW_DATA_BYTES);
    random_bytes(&bench->random, read_only, sizeof(read_only));
    native_write_read_only(read_only);
    memcpy(guest_bytes(bench->guest, WINDOW_READ_ONLY), read_only, sizeof(read_only));
    write_exits(bench);
    native_floating_point(&bench->in.fx);
}

void bench_clear_code(struct bench *bench)
{
    static const uint8_t nothing[WINDOW_CODE_BYTES];

    bench_write_code(bench, WINDOW_CODE, nothing, sizeof(nothing));
    write_exits(bench);
}

void bench_destroy(struct bench *bench)
{
    current = NULL;
    guest_destroy(bench->guest);
    free(bench->data);
    free(bench->unlike);
}

void bench_write_code(struct bench *bench, uint64_t linear, const uint8_t *code,
                      size_t size)
{
    memcpy(window(linear), code, size);
    memcpy(guest_bytes(bench->guest, linear), code, size);
    guest_code_written(bench->guest, linear, (unsigned)size);
}

/* FXSAVE images have places that processors fill as they like: FOP, FIP, FDP, the mask
 * of MXCSR (which is the processor's model's), and what is unused. The same for x87
 * environments. */
static void forget_unspecified(const struct bench *bench,
                               const struct instruction *instruction, uint8_t *data)
{
    static const struct {
        const char *mnemonic;
        struct {
            uint16_t at, size;
        } holes[4];
    } images[] = {
        {"fxsave", {{6, 18}, {28, 4}, {0, 0}, {416, 96}}},
        {"fnsave", {{12, 16}}},
        {"fnstenv", {{12, 16}}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(images); i++) {
        if (strncmp(instruction->form->mnemonic, images[i].mnemonic,
                    strlen(images[i].mnemonic)) != 0)
            continue;
        for (size_t j = 0; j < ARRAY_SIZE(images[i].holes); j++) {
            uint64_t at = shape_address(instruction, &bench->in) + images[i].holes[j].at -
                          WINDOW_DATA;

            if (range_within(at, images[i].holes[j].size, WINDOW_DATA_BYTES))
                memset(data + at, 0, images[i].holes[j].size);
        }
    }
}

/* One start on both sides. */
static enum comparison_result run(struct bench *bench,
                                  const struct instruction *instruction,
                                  enum guest_mode mode, struct comparison *comparison)
{
    uint8_t *guest_data = guest_bytes(bench->guest, WINDOW_DATA);
    uint8_t *native_data = window(WINDOW_DATA);

    memcpy(native_data, bench->data, WINDOW_DATA_BYTES);
    memcpy(guest_data, bench->data, WINDOW_DATA_BYTES);
    native_run(&bench->in, &bench->native);
    guest_run(bench->guest, &bench->in, bench->exits[bench->in.code32], mode,
              &bench->result);
    forget_unspecified(bench, instruction, native_data);
    forget_unspecified(bench, instruction, guest_data);
    *comparison = (struct comparison){
        .code = bench->code,
        .code_bytes = instruction->length,
        .instruction = instruction,
        .undefined_flags = instruction->form->flags.undefined,
        .data = bench->data,
        .native_data = native_data,
        .guest_data = guest_data,
        .in = &bench->in,
        .native = &bench->native,
        .guest = &bench->result,
    };
    return compare(comparison);
}

static const char *const mode_names[] = {[GUEST_BLOCKS] = "",
                                         [GUEST_SINGLE] = "(single)",
                                         [GUEST_TRANSLATED] = "(translated)"};

static enum guest_mode some_mode(struct random *random)
{
    if (random_chance(random, 8))
        return GUEST_SINGLE;
    return random_chance(random, 2) ? GUEST_TRANSLATED : GUEST_BLOCKS;
}

unsigned bench_states(struct bench *bench, const uint8_t *bytes,
                      const struct instruction *instruction, unsigned count,
                      unsigned *shown)
{
    enum code_tail tail = (enum code_tail)random_below(&bench->random, 2);
    enum guest_mode mode = some_mode(&bench->random);
    unsigned mismatches = 0;

    code_wrap(bench->code, instruction, bytes, tail);
    bench_write_code(bench, instruction->rip, bench->code, CODE_BYTES);
    for (unsigned i = 0; i < count; i++) {
        struct comparison comparison;
        enum comparison_result result;

        shape_state(instruction, &bench->random, &bench->in, bench->data);
        result = run(bench, instruction, mode, &comparison);
        bench->states++;
        bench->faults += bench->native.end == END_FAULT;
        if (tail == TAIL_NONE && bench->native.end == END_EXIT)
            bench->flags_changed |= bench->native.rflags ^ bench->in.rflags;
        bench->undefined += result == COMPARISON_UNDEFINED;
        bench->tolerated += result == COMPARISON_TOLERATED;
        if (result == COMPARISON_EQUAL || result == COMPARISON_TOLERATED ||
            (result == COMPARISON_UNDEFINED && !bench->show_undefined))
            continue;
        mismatches++;
        if ((*shown)++ < BENCH_SHOWN) {
            printf("%s%s ", tail == TAIL_NONE ? "" : "(flags dead) ", mode_names[mode]);
            compare_show(&comparison);
        }
    }
    bench->mismatches += mismatches;
    return mismatches;
}
