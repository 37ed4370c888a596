/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random blocks; see blocks.h. The host runs them in a child process: what goes wrong
 * there does not end the test.
 */
#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "native.h"
#include "shape.h"
#include "window.h"

#define BATCH 100 /* blocks a child */
#define LENGTH_MIN 5
#define LENGTH_MAX 30
#define JUMP_REACH 6 /* instructions a jump of one byte may skip */
#define BLOCK_BYTES (LENGTH_MAX * 4 * INSTRUCTION_LIMIT + CODE_EXIT_BYTES)
#define SHOWN 3

/* What the parent and the child have in common. */
struct trial {
    uint64_t start;
    size_t size; /* with the exit */
    uint8_t code[BLOCK_BYTES];
    struct isa_state in;
    struct isa_state native;
    uint8_t native_data[WINDOW_DATA_BYTES];
    bool done;
};

struct builder {
    struct bench *bench;
    struct trial *trial;
    size_t forms[1024]; /* indexes of those that may be in blocks */
    size_t form_count;
    size_t starts[LENGTH_MAX];
    unsigned count;
    struct {
        size_t end;      /* of the jump */
        size_t size;     /* of its displacement */
        unsigned target; /* instruction it goes to */
    } jumps[LENGTH_MAX];
    unsigned jump_count;
};

/* ---- which forms ---- */

static bool in_list(const char *mnemonic)
{
    /* They need more care with registers or memory than blocks take, switch exceptions on
     * for all that follows, or store what differs between runs. */
    static const char *const excluded[] = {
        "xlat",    "leave",   "enter",  "popf",   "maskmov", "ldmxcsr",
        "fxrstor", "frstor",  "fldenv", "fldcw",  "fxsave",  "fnsave",
        "fnstenv", "cmpxchg", "fsave",  "fstenv", "in",      "out",
    };

    for (size_t i = 0; i < ARRAY_SIZE(excluded); i++)
        if (strncmp(mnemonic, excluded[i], strlen(excluded[i])) == 0 &&
            strncmp(mnemonic, "inc", 3) != 0 && strncmp(mnemonic, "insert", 6) != 0)
            return true;
    return false;
}

static bool may_be_in_block(const struct bench *bench, size_t index)
{
    const struct form *form = soft_form(index);

    if (shape_skip_reason(form, CODE_MODE) != NULL ||
        (form->attributes & FORM_ENDS) != 0 || bench->unlike[index] ||
        in_list(form->mnemonic))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (form->operands[i] == OPERAND_OFFSET)
            return false;
    /* A bit offset in a register moves the operand out of the window. */
    return !(form->mnemonic[0] == 'b' && form->mnemonic[1] == 't' &&
             form->operands[1] == OPERAND_G);
}

static void collect_forms(struct builder *builder)
{
    for (size_t i = 0; i < soft_form_count(); i++)
        if (may_be_in_block(builder->bench, i)) {
            CHECK(builder->form_count < ARRAY_SIZE(builder->forms));
            builder->forms[builder->form_count++] = i;
        }
}

/* ---- making a block ---- */

/* The next bytes are a place that jumps may go to. */
static void begin(struct builder *builder)
{
    builder->starts[builder->count++] = builder->trial->size;
}

static void add(struct builder *builder, const uint8_t *bytes, size_t length)
{
    struct trial *trial = builder->trial;

    CHECK(trial->size + length + CODE_EXIT_BYTES <= sizeof(trial->code));
    memcpy(trial->code + trial->size, bytes, length);
    trial->size += length;
}

/* mov r32, imm32 (B8+r). */
static void add_constant(struct builder *builder, unsigned number, uint32_t value)
{
    uint8_t bytes[5] = {(uint8_t)(0xb8 + number)};

    store_le32(bytes + 1, value);
    add(builder, bytes, sizeof(bytes));
}

static void add_jump(struct builder *builder)
{
    struct random *random = &builder->bench->random;
    unsigned condition = random_below(random, 17);
    uint8_t near[6] = {0x0f, (uint8_t)(0x80 + condition)};
    uint8_t byte[2] = {(uint8_t)(0x70 + condition)};
    size_t size = random_chance(random, 3) ? 4 : 1;

    if (condition == 16) { /* jmp */
        byte[0] = 0xeb;
        size = 1;
    }
    begin(builder);
    add(builder, size == 1 ? byte : near, size + (size == 1 ? 1 : 2));
    builder->jumps[builder->jump_count].end = builder->trial->size;
    builder->jumps[builder->jump_count].size = size;
    builder->jumps[builder->jump_count++].target =
        builder->count + random_below(random, JUMP_REACH);
}

static bool is_string(const struct instruction *instruction)
{
    for (size_t i = 0; i < ARRAY_SIZE(instruction->form->operands); i++)
        if (instruction->form->operands[i] == OPERAND_STRING_SOURCE ||
            instruction->form->operands[i] == OPERAND_STRING_TARGET)
            return true;
    return false;
}

/* String instructions get pointers and a count before them. */
static void add_string_registers(struct builder *builder)
{
    struct random *random = &builder->bench->random;

    add_constant(builder, X86_RSI, (uint32_t)code_random_target(random, 1));
    add_constant(builder, X86_RDI, (uint32_t)code_random_target(random, 1));
    add_constant(builder, X86_RCX, random_below(random, 40));
}

static bool add_instruction(struct builder *builder)
{
    struct random *random = &builder->bench->random;
    size_t index = builder->forms[random_below(random, (unsigned)builder->form_count)];
    uint8_t bytes[INSTRUCTION_LIMIT];
    struct instruction instruction;

    if (!code_generate_anchored(soft_form(index),
                                builder->trial->start + builder->trial->size, random,
                                bytes, &instruction))
        return false;
    begin(builder);
    if (is_string(&instruction))
        add_string_registers(builder);
    add(builder, bytes, instruction.length);
    return true;
}

/* add dword [register + displacement], value (83 /0). */
static void add_access(struct builder *builder, unsigned number)
{
    struct random *random = &builder->bench->random;
    const uint8_t bytes[] = {0x83, (uint8_t)(0x40 | number),
                             (uint8_t)random_below(random, 64),
                             (uint8_t)random_below(random, 256)};

    add(builder, bytes, sizeof(bytes));
}

/* The address sanitizer has its shadow where a register with any value may well point to:
 * terabytes that can be written, on the host's side alone. */
#ifdef __SANITIZE_ADDRESS__
#define CHANCE_OF_ACCESSES 0
#else
#define CHANCE_OF_ACCESSES 4
#endif

/* Two accesses by one register, which the instruction between them may change: what was
 * found out about the first one may not be good for the second. */
static void add_accesses(struct builder *builder)
{
    static const uint8_t bases[] = {X86_RAX, X86_RCX, X86_RDX, X86_RBX,
                                    X86_RBP, X86_RSI, X86_RDI};
    struct random *random = &builder->bench->random;
    const uint8_t base = bases[random_below(random, ARRAY_SIZE(bases))];

    add_constant(builder, base, (uint32_t)code_random_target(random, 8));
    add_access(builder, base);
    if (add_instruction(builder))
        add_access(builder, base);
}

/* Opcodes with a memory operand, and a register that may be anything; #GP of MOVAPS is
 * among what is wanted. */
static const struct {
    uint8_t opcode[3];
    uint8_t count;
} accesses[] = {
    {{0x8a}, 1},             /* mov r8, */
    {{0x66, 0x8b}, 2},       /* mov r16, */
    {{0x8b}, 1},             /* mov r32, */
    {{0x48, 0x8b}, 2},       /* mov r64, */
    {{0x88}, 1},             /* mov m8, */
    {{0x89}, 1},             /* mov m32, */
    {{0x48, 0x89}, 2},       /* mov m64, */
    {{0x48, 0x01}, 2},       /* add m64, */
    {{0x0f, 0x10}, 2},       /* movups xmm, */
    {{0x0f, 0x11}, 2},       /* movups m128, */
    {{0x0f, 0x28}, 2},       /* movaps xmm, */
    {{0x0f, 0x29}, 2},       /* movaps m128, */
    {{0x66, 0x0f, 0xfe}, 3}, /* paddd xmm, */
};

/* Of [base + displacement], with EDX, DL or XMM2. */
static void add_any_access(struct builder *builder, unsigned base)
{
    struct random *random = &builder->bench->random;
    const unsigned i = random_below(random, ARRAY_SIZE(accesses));
    const uint8_t modrm[] = {(uint8_t)(0x40 | X86_RDX << 3 | base),
                             (uint8_t)(random_below(random, 4) * 8)};

    add(builder, accesses[i].opcode, accesses[i].count);
    add(builder, modrm, sizeof(modrm));
}

/* A little before the end of a page, most often aligned. */
static uint32_t near_end(struct random *random)
{
    const uint64_t end = WINDOW_DATA + WINDOW_PAGE * (1 + random_below(random, 3));
    const unsigned before = random_below(random, 16) * 16;

    return (uint32_t)end - before +
           (random_chance(random, 4) ? random_below(random, 16) : 0);
}

/* A loop that goes through memory, perhaps into another page, by one of two registers. */
static void add_loop(struct builder *builder)
{
    struct random *random = &builder->bench->random;
    const uint8_t bases[] = {X86_RBX, X86_RSI};
    const uint8_t step[] = {0x48, 0x83, (uint8_t)(0xc0 | bases[random_below(random, 2)]),
                            (uint8_t)(random_below(random, 9) * 8 - 32)};
    uint8_t end[] = {0xff, 0xc8 | X86_RCX, 0x75, 0}; /* dec ecx; jnz */
    size_t start;

    for (size_t i = 0; i < ARRAY_SIZE(bases); i++)
        add_constant(builder, bases[i], near_end(random));
    add_constant(builder, X86_RCX, 1 + random_below(random, 12));
    start = builder->trial->size;
    for (unsigned i = 1 + random_below(random, 4); i > 0; i--)
        add_any_access(builder, bases[random_below(random, 2)]);
    add(builder, step, sizeof(step)); /* add r64, */
    end[3] = (uint8_t)(start - builder->trial->size - sizeof(end));
    add(builder, end, sizeof(end));
}

static void resolve_jumps(struct builder *builder)
{
    struct trial *trial = builder->trial;

    for (unsigned i = 0; i < builder->jump_count; i++) {
        unsigned target = builder->jumps[i].target;
        size_t end = builder->jumps[i].end;
        size_t to = target < builder->count ? builder->starts[target] : trial->size;

        if (builder->jumps[i].size == 1 && to - end > INT8_MAX)
            to = end;
        if (builder->jumps[i].size == 1)
            trial->code[end - 1] = (uint8_t)(to - end);
        else
            store_le32(trial->code + end - 4, (uint32_t)(to - end));
    }
}

static void make_block(struct builder *builder)
{
    struct bench *bench = builder->bench;
    struct random *random = &bench->random;
    struct trial *trial = builder->trial;
    unsigned length = LENGTH_MIN + random_below(random, LENGTH_MAX - LENGTH_MIN);

    trial->start =
        WINDOW_CODE +
        (random_chance(random, 4) ? WINDOW_PAGE - random_below(random, 200) : 0x100);
    trial->size = 0;
    trial->done = false;
    builder->count = 0;
    builder->jump_count = 0;
    while (builder->count < length) {
        if (random_chance(random, 8))
            add_jump(builder);
        else if (CHANCE_OF_ACCESSES != 0 && random_chance(random, CHANCE_OF_ACCESSES))
            add_accesses(builder);
        else if (random_chance(random, 8))
            add_loop(builder);
        else
            (void)add_instruction(builder);
    }
    resolve_jumps(builder);
    code_exit(trial->code + trial->size, trial->start + trial->size, EXIT_BEHIND,
              CODE_MODE);
    trial->size += CODE_EXIT_BYTES;
    trial->in = bench->in;
    trial->in.code32 = false;
    trial->in.rip = trial->start;
    shape_registers(random, &trial->in);
    trial->in.r[CODE_ANCHOR] = CODE_ANCHOR_VALUE;
    trial->in.r[X86_RSP] = WINDOW_DATA + WINDOW_PAGE + 1024 - random_below(random, 8);
}

/* ---- running ---- */

static void run_native(struct bench *bench, struct trial *trials)
{
    void *data = (void *)(uintptr_t)WINDOW_DATA;

    for (unsigned i = 0; i < BATCH; i++) {
        bench_clear_code(bench);
        memcpy((void *)(uintptr_t)trials[i].start, trials[i].code, trials[i].size);
        memcpy(data, bench->data, WINDOW_DATA_BYTES);
        native_run(&trials[i].in, &trials[i].native);
        memcpy(trials[i].native_data, data, WINDOW_DATA_BYTES);
        trials[i].done = true;
    }
}

static void run_native_in_child(struct bench *bench, struct trial *trials)
{
    int status = 0;
    pid_t child;

    (void)fflush(stdout);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run_native(bench, trials);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (status != 0)
        printf("blocks: the child ended with status %#x\n", (unsigned)status);
}

/* Translated code keeps flags only for those who read them, which a fault's frame is not.
 */
static void run_guest(struct bench *bench, struct trial *trial, enum guest_mode mode)
{
    uint8_t *data = guest_bytes(bench->guest, WINDOW_DATA);
    struct comparison comparison = {
        .code = trial->code,
        .code_bytes = trial->size,
        .data = bench->data,
        .native_data = trial->native_data,
        .guest_data = data,
        .in = &trial->in,
        .native = &trial->native,
        .guest = &bench->result,
    };
    enum comparison_result result;

    if (mode == GUEST_TRANSLATED && trial->native.end == END_FAULT)
        comparison.undefined_flags = FLAGS_ARITHMETIC;

    memcpy(data, bench->data, WINDOW_DATA_BYTES);
    bench_clear_code(bench);
    bench_write_code(bench, trial->start, trial->code, trial->size);
    guest_run(bench->guest, &trial->in, bench->exits[0], mode, &bench->result);
    bench->states++;
    bench->faults += trial->native.end == END_FAULT;
    result = compare(&comparison);
    bench->tolerated += result == COMPARISON_TOLERATED;
    if (result == COMPARISON_EQUAL || result == COMPARISON_TOLERATED ||
        result == COMPARISON_UNDEFINED)
        return;
    if (bench->block_mismatches++ < SHOWN) {
        printf("block%s:\n", mode == GUEST_TRANSLATED ? " (translated)" : "");
        compare_show(&comparison);
    }
}

static void run_both(struct bench *bench, struct trial *trial)
{
    run_guest(bench, trial, GUEST_BLOCKS);
    run_guest(bench, trial, GUEST_TRANSLATED);
}

void blocks_run(struct bench *bench, uint64_t seed, unsigned count)
{
    size_t size = BATCH * sizeof(struct trial);
    struct trial *trials =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    static struct builder builder;

    CHECK(trials != MAP_FAILED);
    builder = (struct builder){.bench = bench};
    collect_forms(&builder);
    for (unsigned batch = 0; batch * BATCH < count && builder.form_count > 0; batch++) {
        bench->random.state = seed + ((UINT64_C(1) << 31 | batch) << 32);
        random_bytes(&bench->random, bench->data, WINDOW_DATA_BYTES);
        for (unsigned i = 0; i < BATCH; i++) {
            builder.trial = &trials[i];
            make_block(&builder);
        }
        run_native_in_child(bench, trials);
        for (unsigned i = 0; i < BATCH && trials[i].done; i++)
            run_both(bench, &trials[i]);
        bench->blocks += BATCH;
    }
    bench->mismatches += bench->block_mismatches;
    printf("%lu blocks of random instructions from %zu forms, %lu mismatches\n",
           bench->blocks, builder.form_count, bench->block_mismatches);
    (void)munmap(trials, size);
}
