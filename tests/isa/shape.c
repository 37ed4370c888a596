/* SPDX-License-Identifier: Apache-2.0 */
/* States for instructions; see shape.h. */
#include "shape.h"

#include <string.h>

#include "base/bytes.h"
#include "code.h"
#include "window.h"

#define COUNTER_LIMIT 40 /* of repeats, most times */

struct shaper {
    const struct instruction *instruction;
    struct random *random;
    struct isa_state *state;
    uint8_t *data;
    uint64_t target; /* of the memory operand */
};

/* ---- memory ---- */

static bool in_data(uint64_t linear, size_t size)
{
    return linear >= WINDOW_DATA &&
           range_within(linear - WINDOW_DATA, size, WINDOW_DATA_BYTES);
}

static void data_set(struct shaper *shaper, uint64_t linear, const void *bytes,
                     size_t size)
{
    if (in_data(linear, size))
        memcpy(shaper->data + (linear - WINDOW_DATA), bytes, size);
}

static void data_set64(struct shaper *shaper, uint64_t linear, uint64_t value)
{
    data_set(shaper, linear, &value, sizeof(value));
}

static uint64_t data_get64(const struct shaper *shaper, uint64_t linear)
{
    return in_data(linear, 8) ? load_le64(shaper->data + (linear - WINDOW_DATA)) : 0;
}

static void fill_operand(struct shaper *shaper, uint64_t linear)
{
    uint8_t bytes[16];
    uint64_t value;

    switch (random_below(shaper->random, 3)) {
    case 0:
        random_vector(shaper->random, bytes);
        break;
    case 1:
        random_extended(shaper->random, bytes);
        break;
    default:
        for (size_t i = 0; i < 16; i += 8) {
            value = random_integer(shaper->random);
            memcpy(bytes + i, &value, 8);
        }
        break;
    }
    data_set(shaper, linear, bytes, sizeof(bytes));
}

/* ---- addresses ---- */

static uint64_t segment_base(const struct instruction *instruction)
{
    if ((instruction->form->attributes & FORM_OFFSET_ONLY) != 0 ||
        (instruction->mode & MODE_CODE64) == 0)
        return 0;
    return instruction->segment == X86_GS ? WINDOW_GS_BASE : 0;
}

/* 1 / (1 + 2^scale) modulo 2^64, for scale 1, 2, 3. */
static uint64_t inverse(unsigned scale)
{
    uint64_t odd = (UINT64_C(1) << scale) + 1;
    uint64_t guess = odd; /* right in 3 bits; each step doubles that */

    for (unsigned i = 0; i < 5; i++)
        guess *= 2 - odd * guess;
    return guess;
}

/* With 32-bit addressing the upper halves are ignored; but RSP must stay where a push
 * hurts nobody. */
static void set_address_register(struct shaper *shaper, unsigned number, uint64_t value)
{
    if (shaper->instruction->address_size == 4 && number != X86_RSP)
        value = (uint32_t)value | random_u64(shaper->random) << 32;
    shaper->state->r[number] = value;
}

static void solve_base_and_index(struct shaper *shaper, uint64_t sum)
{
    const struct instruction *instruction = shaper->instruction;
    unsigned scale = instruction->scale;

    if (instruction->base == instruction->index && scale == 0) {
        set_address_register(shaper, instruction->base, sum / 2);
    } else if (instruction->base == instruction->index) {
        set_address_register(shaper, instruction->base, sum * inverse(scale));
    } else {
        if (instruction->base == X86_RSP)
            shaper->state->r[instruction->index] = random_below(shaper->random, 16);
        set_address_register(shaper, instruction->base,
                             sum - (shaper->state->r[instruction->index] << scale));
    }
}

/* Sets the registers of the memory operand so that it is at shaper->target, or the
 * nearest it can be. */
static void solve_address(struct shaper *shaper)
{
    const struct instruction *instruction = shaper->instruction;
    uint64_t sum = shaper->target - (uint64_t)instruction->displacement -
                   segment_base(shaper->instruction);

    if (instruction->base != SOFT_ZERO && instruction->index != SOFT_ZERO)
        solve_base_and_index(shaper, sum);
    else if (instruction->base != SOFT_ZERO)
        set_address_register(shaper, instruction->base, sum);
    else if (instruction->index != SOFT_ZERO)
        set_address_register(shaper, instruction->index, sum >> instruction->scale);
    if (random_chance(shaper->random, 64) && instruction->base != SOFT_ZERO)
        shaper->state->r[instruction->base] ^= UINT64_C(1) << 60; /* not canonical */
}

static uint64_t address_register(const struct isa_state *in, unsigned number)
{
    return number == SOFT_ZERO ? 0 : in->r[number];
}

uint64_t shape_address(const struct instruction *instruction, const struct isa_state *in)
{
    uint64_t offset = address_register(in, instruction->base) +
                      (address_register(in, instruction->index) << instruction->scale) +
                      (uint64_t)instruction->displacement;

    if (instruction->address_size == 4)
        offset = (uint32_t)offset;
    else if (instruction->address_size == 2)
        offset = (uint16_t)offset;
    return offset + segment_base(instruction);
}

/* ---- registers ---- */

static void set_x87(struct random *random, struct fx_state *fx)
{
    static const uint8_t precisions[] = {0, 2, 3, 3};
    uint16_t masks =
        (uint16_t)(random_chance(random, 10) ? random_below(random, 64) : 63);
    uint16_t raised =
        (uint16_t)(random_chance(random, 4) ? random_below(random, 128) : 0);

    fx->fcw =
        (uint16_t)(0x40u | masks | (unsigned)precisions[random_below(random, 4)] << 8 |
                   random_below(random, 4) << 10);
    if (random_chance(random, 2))
        fx->fcw = 0x37f;
    fx->fsw = (uint16_t)(raised | random_below(random, 8) << 11);
    if (random_chance(random, 4))
        fx->fsw |= (uint16_t)(random_u64(random) & 0x4700);
    if ((raised & ~fx->fcw & 0x3f) != 0)
        fx->fsw |= 0x8080; /* an exception is pending: ES, B */
    fx->ftw = random_chance(random, 2) ? 0xff : (uint8_t)random_u64(random);
    for (unsigned i = 0; i < 8; i++)
        random_extended(random, fx->st[i]);
}

static void set_sse(struct random *random, struct fx_state *fx)
{
    for (unsigned i = 0; i < 16; i++)
        random_vector(random, fx->xmm[i]);
    fx->mxcsr = 0x1f80;
    if (random_chance(random, 2))
        fx->mxcsr |= random_below(random, 4) << 13;
    if (random_chance(random, 4))
        fx->mxcsr ^= (uint32_t)random_u64(random) & 0x8040u; /* FTZ, DAZ */
    if (random_chance(random, 4))
        fx->mxcsr |= random_below(random, 64);
    if (random_chance(random, 10))
        fx->mxcsr &= ~(random_below(random, 64) << 7);
}

static void set_general(struct random *random, struct isa_state *in)
{
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        in->r[i] = random_integer(random);
    in->r[X86_RSP] = code_random_target(random, 8);
    in->rflags = X86_FLAGS_FIXED | X86_FLAGS_IF | (random_u64(random) & FLAGS_ARITHMETIC);
    if (random_chance(random, 4))
        in->rflags |= X86_FLAGS_DF;
}

void shape_registers(struct random *random, struct isa_state *in)
{
    set_general(random, in);
    set_x87(random, &in->fx);
    set_sse(random, &in->fx);
}

/* ---- what some instructions need ---- */

static bool has_operand(const struct instruction *instruction, enum operand operand)
{
    for (size_t i = 0; i < ARRAY_SIZE(instruction->form->operands); i++)
        if (instruction->form->operands[i] == operand)
            return true;
    return false;
}

static bool is(const struct shaper *shaper, const char *mnemonic)
{
    return strcmp(shaper->instruction->form->mnemonic, mnemonic) == 0;
}

static bool begins(const struct shaper *shaper, const char *mnemonic)
{
    return strncmp(shaper->instruction->form->mnemonic, mnemonic, strlen(mnemonic)) == 0;
}

static void set_strings(struct shaper *shaper)
{
    struct random *random = shaper->random;
    const struct instruction *instruction = shaper->instruction;

    if (has_operand(instruction, OPERAND_STRING_SOURCE))
        set_address_register(shaper, X86_RSI,
                             code_random_target(random, 4) -
                                 segment_base(shaper->instruction));
    if (has_operand(instruction, OPERAND_STRING_TARGET))
        set_address_register(shaper, X86_RDI, code_random_target(random, 4));
    if (has_operand(instruction, OPERAND_STRING_SOURCE) && random_chance(random, 4))
        set_address_register(shaper, X86_RDI, /* overlap */
                             shaper->state->r[X86_RSI] +
                                 segment_base(shaper->instruction) +
                                 random_below(random, 17) - 8);
    if (instruction->repeat == 0)
        return;
    set_address_register(
        shaper, X86_RCX,
        random_below(random, random_chance(random, 8) ? WINDOW_PAGE : COUNTER_LIMIT));
    /* Runs of equal elements, so that comparing repeats go on. */
    if ((instruction->form->attributes & FORM_REPZ) != 0 && random_chance(random, 2)) {
        memset(shaper->data + WINDOW_PAGE - 256, (int)random_below(random, 2), 512);
        if (random_chance(random, 2))
            shaper->state->r[X86_RAX] = 0;
    }
}

/* The value of operand E, of up to 8 bytes. */
static uint64_t operand_value(const struct shaper *shaper)
{
    const struct instruction *instruction = shaper->instruction;

    return instruction->memory ? data_get64(shaper, shaper->target)
                               : shaper->state->r[instruction->rm];
}

static void set_operand_value(struct shaper *shaper, uint64_t value)
{
    const struct instruction *instruction = shaper->instruction;

    if (instruction->memory)
        data_set64(shaper, shaper->target, value);
    else
        shaper->state->r[instruction->rm] = value;
}

/* Changing such a register would move the operand to anywhere in this process. */
static bool is_address_register(const struct shaper *shaper, unsigned number)
{
    const struct instruction *instruction = shaper->instruction;

    return instruction->memory &&
           (instruction->base == number || instruction->index == number);
}

static void set_compare_exchange(struct shaper *shaper)
{
    if (random_chance(shaper->random, 2) || is_address_register(shaper, X86_RAX) ||
        is_address_register(shaper, X86_RDX))
        return;
    if (is(shaper, "cmpxchg")) {
        shaper->state->r[X86_RAX] = operand_value(shaper);
        return;
    }
    shaper->state->r[X86_RAX] = data_get64(shaper, shaper->target);
    if (shaper->instruction->memory_size == 16 || is(shaper, "cmpxchg16b"))
        shaper->state->r[X86_RDX] = data_get64(shaper, shaper->target + 8);
    else
        shaper->state->r[X86_RDX] = shaper->state->r[X86_RAX] >> 32;
}

/* Quotients that fit: the upper half extends the lower, or is below the divisor. */
static void set_division(struct shaper *shaper)
{
    uint64_t *rax = &shaper->state->r[X86_RAX];
    uint64_t *rdx = &shaper->state->r[X86_RDX];
    unsigned size = shaper->instruction->operand_size;
    uint64_t upper = random_below(shaper->random, 4);

    if (random_chance(shaper->random, 3) || is_address_register(shaper, X86_RAX) ||
        is_address_register(shaper, X86_RDX))
        return;
    if (is(shaper, "idiv") && size < 8)
        upper = (*rax >> (8 * size - 1) & 1) != 0 ? ~UINT64_C(0) : 0;
    else if (is(shaper, "idiv"))
        upper = *rax >> 63 != 0 ? ~UINT64_C(0) : 0;
    if (size == 1)
        *rax = (*rax & ~UINT64_C(0xff00)) | (upper & 0xff) << 8;
    else
        *rdx = upper;
}

/* A bit offset moves the operand, by up to 256 bytes here. */
static void set_bit_offset(struct shaper *shaper)
{
    const struct instruction *instruction = shaper->instruction;

    if (instruction->memory && has_operand(instruction, OPERAND_G) &&
        !is_address_register(shaper, instruction->reg))
        shaper->state->r[instruction->reg] =
            (uint64_t)random_below(shaper->random, 4096) - 2048;
}

static void set_branch(struct shaper *shaper)
{
    uint64_t target = shaper->state->rip + CODE_TARGET;

    if (begins(shaper, "ret"))
        data_set64(shaper, shaper->state->r[X86_RSP], target);
    else if (has_operand(shaper->instruction, OPERAND_E) ||
             has_operand(shaper->instruction, OPERAND_E64))
        set_operand_value(shaper, target);
}

/* TF would trap on the host's side of the exit. */
static void set_popped_flags(struct shaper *shaper)
{
    uint64_t linear = shaper->state->r[X86_RSP];

    data_set64(shaper, linear, random_u64(shaper->random) & ~X86_FLAGS_TF);
    if (!in_data(linear, 8))
        shaper->state->r[X86_RSP] = WINDOW_DATA + 8;
    data_set64(shaper, WINDOW_DATA + 8,
               data_get64(shaper, WINDOW_DATA + 8) & ~X86_FLAGS_TF);
}

/* Most control words are legal ones. Bit 17 is, but only on AMD, and not in the guest. */
static void set_control_image(struct shaper *shaper)
{
    uint64_t at = shaper->target + (begins(shaper, "fxrstor") ? 24 : 0);
    uint32_t mxcsr = (uint32_t)random_u64(shaper->random) & ~UINT32_C(0x20000);

    if (!random_chance(shaper->random, 8))
        mxcsr &= 0xffff;
    data_set(shaper, at, &mxcsr, sizeof(mxcsr));
}

static void set_counts(struct shaper *shaper)
{
    const struct instruction *instruction = shaper->instruction;
    uint64_t *rcx = &shaper->state->r[X86_RCX];

    if (has_operand(instruction, OPERAND_CL) && !is_address_register(shaper, X86_RCX))
        *rcx = (*rcx & ~UINT64_C(0xff)) | random_below(shaper->random, 72);
    if (begins(shaper, "loop") || begins(shaper, "j"))
        if (random_chance(shaper->random, 2))
            *rcx = random_below(shaper->random, 3);
}

struct speciality {
    const char *mnemonic; /* how it begins */
    void (*set)(struct shaper *shaper);
};

static void set_frame(struct shaper *shaper)
{
    shaper->state->r[X86_RBP] = code_random_target(shaper->random, 8);
}

static void set_table(struct shaper *shaper)
{
    uint64_t table = code_random_target(shaper->random, 1) -
                     segment_base(shaper->instruction) -
                     (uint8_t)shaper->state->r[X86_RAX];

    set_address_register(shaper, X86_RBX, table);
}

static void set_masked_move(struct shaper *shaper)
{
    set_address_register(shaper, X86_RDI,
                         code_random_target(shaper->random, 1) -
                             segment_base(shaper->instruction));
}

static const struct speciality specialities[] = {
    {"cmpxchg", set_compare_exchange},
    {"div", set_division},
    {"idiv", set_division},
    {"bt", set_bit_offset},
    {"call", set_branch},
    {"jmp", set_branch},
    {"ret", set_branch},
    {"popf", set_popped_flags},
    {"ldmxcsr", set_control_image},
    {"fxrstor", set_control_image},
    {"enter", set_frame},
    {"leave", set_frame},
    {"xlat", set_table},
    {"maskmov", set_masked_move},
};

/* ---- all of it ---- */

static unsigned alignment(const struct instruction *instruction)
{
    unsigned size = instruction->memory_size;

    if (strncmp(instruction->form->mnemonic, "fx", 2) == 0 ||
        strcmp(instruction->form->mnemonic, "cmpxchg16b") == 0 ||
        (instruction->form->attributes & FORM_SSE) != 0)
        size = 16;
    return size < 2 ? 2 : size > 16 ? 16 : size;
}

void shape_state(const struct instruction *instruction, struct random *random,
                 struct isa_state *in, uint8_t *data)
{
    struct shaper shaper = {
        .instruction = instruction, .random = random, .state = in, .data = data};

    in->rip = instruction->rip;
    in->code32 = (instruction->mode & MODE_CODE64) == 0;
    if ((instruction->form->attributes & (FORM_X87 | FORM_SSE | FORM_MMX)) != 0)
        shape_registers(random, in);
    else
        set_general(random, in);
    set_counts(&shaper);
    if (instruction->memory) {
        shaper.target = code_random_target(random, alignment(instruction));
        solve_address(&shaper);
        shaper.target = shape_address(instruction, in);
        fill_operand(&shaper, shaper.target);
    }
    fill_operand(&shaper, in->r[X86_RSP]);
    set_strings(&shaper);
    for (size_t i = 0; i < ARRAY_SIZE(specialities); i++)
        if (begins(&shaper, specialities[i].mnemonic))
            specialities[i].set(&shaper);
    for (size_t i = 0; i < X86_REGISTER_COUNT && in->code32; i++)
        in->r[i] = (uint32_t)in->r[i];
}
