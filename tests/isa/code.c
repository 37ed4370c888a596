/* SPDX-License-Identifier: Apache-2.0 */
/* Random instructions by form; see code.h. */
#include "code.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "window.h"

/* Opcodes (SDM vol. 2, appendix A). */
#define OPCODE_INT3 0xcc
#define OPCODE_TEST 0x85
#define MODRM_EAX_EAX 0xc0
#define OPCODE_GROUP5 0xff
#define MODRM_JMP_RIP 0x25

/* Attempts at bytes that decode to the wanted form. */
#define ATTEMPTS 200

/* ---- around the instruction ---- */

void code_exit(uint8_t *to, uint64_t at, unsigned exit, uint32_t mode)
{
    bool code64 = (mode & MODE_CODE64) != 0;
    uint64_t slot = WINDOW_CODE + WINDOW_EXIT_SLOT(exit, !code64);

    to[0] = OPCODE_GROUP5;
    to[1] = MODRM_JMP_RIP; /* in 32-bit code: absolute */
    store_le32(to + 2, (uint32_t)(code64 ? slot - (at + CODE_EXIT_BYTES) : slot));
}

void code_wrap(uint8_t *code, const struct instruction *instruction, const uint8_t *bytes,
               enum code_tail tail)
{
    uint64_t start = instruction->rip;
    size_t at = instruction->length;

    memset(code, OPCODE_INT3, CODE_BYTES);
    memcpy(code, bytes, at);
    if (tail == TAIL_FLAGS_DEAD) {
        code[at++] = OPCODE_TEST;
        code[at++] = MODRM_EAX_EAX;
    }
    code_exit(code + at, start + at, 0, instruction->mode);
    code_exit(code + CODE_TARGET, start + CODE_TARGET, 1, instruction->mode);
}

uint64_t code_random_target(struct random *random, unsigned align)
{
    static const uint64_t edges[] = {WINDOW_DATA, WINDOW_DATA + WINDOW_PAGE,
                                     WINDOW_DATA + WINDOW_PAGE, WINDOW_READ_ONLY,
                                     WINDOW_DATA_END};
    uint64_t target;

    if (random_chance(random, 2))
        target = edges[random_below(random, ARRAY_SIZE(edges))] - 32 +
                 random_below(random, 64);
    else
        target = WINDOW_DATA + 64 + random_below(random, WINDOW_DATA_BYTES - 128);
    if (align > 1 && !random_chance(random, 4))
        target = align_down(target, align);
    return target;
}

/* ---- the instruction ---- */

struct encoder {
    const struct form *form;
    struct random *random;
    uint32_t mode;
    uint64_t start;
    uint8_t bytes[2 * INSTRUCTION_LIMIT + 16]; /* as many as any form has, and then 0 */
    size_t length;
    uint8_t rex;
    bool anchored;
    bool registers; /* no memory operand */
    bool address_prefix;
    bool gs;
    size_t displacement_at; /* of an absolute or rip-relative displacement; 0: none */
    size_t displacement_bytes;
    bool rip_relative;
};

static void put(struct encoder *encoder, uint8_t byte)
{
    encoder->bytes[encoder->length++] = byte;
}

static bool has_operand(const struct form *form, enum operand operand)
{
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (form->operands[i] == operand)
            return true;
    return false;
}

static bool may_have_memory(const struct form *form)
{
    return form->modrm == MODRM_ANY || form->modrm == MODRM_MEMORY ||
           has_operand(form, OPERAND_OFFSET) ||
           has_operand(form, OPERAND_STRING_SOURCE) ||
           has_operand(form, OPERAND_STRING_TARGET);
}

static void put_repeat(struct encoder *encoder)
{
    uint32_t attributes = encoder->form->attributes;

    if ((attributes & (FORM_REP | FORM_REPZ)) != 0) {
        if (!random_chance(encoder->random, 3))
            put(encoder, random_chance(encoder->random, 3) ? 0xf2 : 0xf3);
    } else if ((attributes & FORM_ENDS) == 0 && random_chance(encoder->random, 64)) {
        /* Without a meaning; but on branches they have got some (AMD's LOOPNE). */
        put(encoder, random_chance(encoder->random, 2) ? 0xf2 : 0xf3);
    }
}

static void put_legacy_prefixes(struct encoder *encoder)
{
    static const uint8_t ignored[] = {0x26, 0x2e, 0x36, 0x3e};
    const struct form *form = encoder->form;
    struct random *random = encoder->random;
    bool memory = may_have_memory(form);

    encoder->address_prefix =
        !encoder->anchored && random_chance(random, memory ? 12 : 48);
    encoder->gs = !encoder->anchored && random_chance(random, memory ? 16 : 64);
    if (encoder->address_prefix)
        put(encoder, 0x67);
    if (encoder->gs)
        put(encoder, 0x65);
    else if (random_chance(random, 32))
        put(encoder, ignored[random_below(random, sizeof(ignored))]);
    if ((form->attributes & FORM_LOCK) != 0 && random_chance(random, 3))
        put(encoder, 0xf0);
    if (form->prefix == PREFIX_ANY && form->size != SIZE_BRANCH &&
        random_chance(random, form->size == SIZE_V || form->size == SIZE_STACK ? 4 : 24))
        put(encoder, 0x66);
}

static void put_mandatory_prefix(struct encoder *encoder)
{
    static const uint8_t bytes[] = {
        [PREFIX_66] = 0x66, [PREFIX_F3] = 0xf3, [PREFIX_F2] = 0xf2};
    const struct form *form = encoder->form;

    if (form->prefix == PREFIX_ANY) {
        put_repeat(encoder);
    } else if (form->prefix == PREFIX_NFX) {
        if (random_chance(encoder->random, 4))
            put(encoder, 0x66);
    } else if (form->prefix != PREFIX_NONE) {
        if (form->prefix != PREFIX_66 && random_chance(encoder->random, 8))
            put(encoder, 0x66); /* operand size, where there is one */
        put(encoder, bytes[form->prefix]);
    }
}

/* The memory operand is [CODE_ANCHOR + displacement]. */
static bool is_anchored(const struct encoder *encoder)
{
    return encoder->anchored && !encoder->registers &&
           encoder->form->modrm != MODRM_ABSENT;
}

static bool is_code64(const struct encoder *encoder)
{
    return (encoder->mode & MODE_CODE64) != 0;
}

static void put_rex(struct encoder *encoder)
{
    struct random *random = encoder->random;
    uint8_t size = encoder->form->size;
    bool sized = size == SIZE_V || size == SIZE_Y || size == SIZE_64;

    if (!is_code64(encoder))
        return;
    encoder->rex = (uint8_t)(random_chance(random, 2) ? random_below(random, 8) : 0);
    if (random_chance(random, sized ? 2 : 8))
        encoder->rex |= 8;
    if (is_anchored(encoder))
        encoder->rex |= 1;
    if (encoder->rex != 0 || random_chance(random, 4))
        put(encoder, encoder->rex | 0x40);
}

/* The three-byte VEX prefix holds REX (inverted but for W), the map and the prefix. */
static void put_vex(struct encoder *encoder)
{
    static const uint8_t prefixes[] = {[PREFIX_ANY] = 0,
                                       [PREFIX_NONE] = 0,
                                       [PREFIX_66] = 1,
                                       [PREFIX_F3] = 2,
                                       [PREFIX_F2] = 3};
    struct random *random = encoder->random;
    uint8_t rex = (uint8_t)random_below(random, 16);
    uint8_t vvvv = (uint8_t)random_below(random, 16);
    uint8_t wide = (uint8_t)random_below(random, 2);

    if (is_anchored(encoder))
        rex |= 1;
    encoder->rex = rex;
    put(encoder, 0xc4);
    put(encoder, (uint8_t)((~rex & 7) << 5 | encoder->form->map));
    put(encoder, (uint8_t)((rex & 8) << 4 | vvvv << 3 | wide << 2 |
                           prefixes[encoder->form->prefix]));
}

static void put_opcode(struct encoder *encoder)
{
    const struct form *form = encoder->form;

    if ((form->attributes & FORM_VEX) == 0) {
        if (form->map != MAP_ONE)
            put(encoder, 0x0f);
        if (form->map == MAP_0F38)
            put(encoder, 0x38);
        if (form->map == MAP_0F3A)
            put(encoder, 0x3a);
    }
    put(encoder,
        (uint8_t)(form->opcode + random_below(encoder->random, form->opcode_count)));
}

/* So that even a register the address is taken off is not far from the window. */
static void put_random_displacement(struct encoder *encoder, size_t size)
{
    int32_t value = (int32_t)random_integer(encoder->random) / 16;

    for (size_t i = 0; i < size; i++)
        put(encoder, (uint8_t)((uint32_t)value >> 8 * i));
}

/* A displacement that alone, or nearly, is the address: filled in at the end. */
static void put_address(struct encoder *encoder, size_t size, bool rip_relative)
{
    encoder->displacement_at = encoder->length;
    encoder->displacement_bytes = size;
    encoder->rip_relative = rip_relative;
    for (size_t i = 0; i < size; i++)
        put(encoder, 0);
}

/* Around the anchor, so that some operands leave the window. */
static void put_anchored_address(struct encoder *encoder, uint8_t reg)
{
    uint32_t displacement = random_below(encoder->random, WINDOW_DATA_BYTES + 64) -
                            (uint32_t)(WINDOW_PAGE + 32);

    if (random_chance(encoder->random, 2))
        displacement &= ~UINT32_C(15);
    put(encoder, (uint8_t)(0x80 | reg << 3 | (CODE_ANCHOR & 7)));
    for (unsigned i = 0; i < 4; i++)
        put(encoder, (uint8_t)(displacement >> 8 * i));
}

static void put_modrm(struct encoder *encoder)
{
    const struct form *form = encoder->form;
    struct random *random = encoder->random;
    uint8_t mod = encoder->registers ? 3 : (uint8_t)random_below(random, 3);
    uint8_t reg = form->extension >= 0 ? (uint8_t)form->extension
                                       : (uint8_t)random_below(random, 8);
    uint8_t rm = form->rm >= 0 ? (uint8_t)form->rm : (uint8_t)random_below(random, 8);
    uint8_t base = rm;

    if (form->modrm == MODRM_ABSENT)
        return;
    if (is_anchored(encoder)) {
        put_anchored_address(encoder, reg);
        return;
    }
    put(encoder, (uint8_t)(mod << 6 | reg << 3 | rm));
    if (mod == 3)
        return;
    if (rm == X86_RSP) {
        uint8_t sib = (uint8_t)random_u64(random);

        put(encoder, sib);
        base = sib & 7;
    }
    if (mod == 0 && base == X86_RBP)
        put_address(encoder, 4, rm != X86_RSP && is_code64(encoder));
    else
        put_random_displacement(encoder, mod == 2 ? 4 : mod);
}

/* Fixes an address that registers do not decide. */
static void place_address(struct encoder *encoder, const struct instruction *instruction)
{
    uint64_t target = code_random_target(encoder->random, 16);
    uint8_t *at = encoder->bytes + encoder->displacement_at;

    if (encoder->displacement_at == 0)
        return;
    if (encoder->gs && is_code64(encoder) &&
        (instruction->form->attributes & FORM_OFFSET_ONLY) == 0)
        target -= WINDOW_GS_BASE;
    if (encoder->rip_relative)
        target -= encoder->start + instruction->length;
    if (encoder->displacement_bytes == 8)
        store_le64(at, target);
    else if (encoder->displacement_bytes == 2)
        store_le16(at, (uint16_t)target);
    else
        store_le32(at, (uint32_t)target);
}

static size_t immediate_bytes(uint8_t operand, unsigned size)
{
    switch (operand) {
    case OPERAND_I8:
    case OPERAND_IS8:
    case OPERAND_J8:
        return 1;
    case OPERAND_I16:
        return 2;
    case OPERAND_IZ:
    case OPERAND_JZ:
        return size == 2 ? 2 : 4;
    case OPERAND_IV:
        return size;
    default:
        return 0;
    }
}

size_t code_immediate_bytes(const struct instruction *instruction)
{
    size_t bytes = 0;

    for (size_t i = 0; i < ARRAY_SIZE(instruction->form->operands); i++)
        bytes +=
            immediate_bytes(instruction->form->operands[i], instruction->operand_size);
    return bytes;
}

/* The immediates end the instruction. Branches go to CODE_TARGET. */
static void place_immediates(struct encoder *encoder,
                             const struct instruction *instruction)
{
    size_t end = instruction->length;

    for (size_t i = ARRAY_SIZE(encoder->form->operands); i-- > 0;) {
        uint8_t operand = encoder->form->operands[i];
        size_t size = immediate_bytes(operand, instruction->operand_size);
        uint64_t value = random_integer(encoder->random);

        if (operand == OPERAND_J8 || operand == OPERAND_JZ)
            value = CODE_TARGET - instruction->length;
        for (size_t j = size; j-- > 0;)
            encoder->bytes[--end] = (uint8_t)(value >> 8 * j);
    }
}

static bool attempt(struct encoder *encoder, struct instruction *instruction)
{
    const struct form *form = encoder->form;
    bool good;

    encoder->registers = form->modrm == MODRM_REGISTER ||
                         (form->modrm == MODRM_ANY && random_chance(encoder->random, 2));
    if ((form->attributes & FORM_VEX) == 0) {
        put_legacy_prefixes(encoder);
        put_mandatory_prefix(encoder);
        put_rex(encoder);
    } else {
        put_vex(encoder);
    }
    put_opcode(encoder);
    put_modrm(encoder);
    if (has_operand(form, OPERAND_OFFSET))
        put_address(encoder, (is_code64(encoder) ? 8u : 4u) >> encoder->address_prefix,
                    false);
    good = soft_decode(encoder->bytes, sizeof(encoder->bytes), encoder->start,
                       encoder->mode, instruction) == DECODE_OK &&
           instruction->form == form;
    if (good) {
        place_address(encoder, instruction);
        place_immediates(encoder, instruction);
        CHECK(soft_decode(encoder->bytes, sizeof(encoder->bytes), encoder->start,
                          encoder->mode, instruction) == DECODE_OK);
    }
    return good;
}

static bool generate(const struct encoder *template, uint8_t bytes[INSTRUCTION_LIMIT],
                     struct instruction *instruction)
{
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        struct encoder encoder = *template;

        if (attempt(&encoder, instruction)) {
            memcpy(bytes, encoder.bytes, instruction->length);
            return true;
        }
    }
    return false;
}

bool code_generate(const struct form *form, uint32_t mode, uint64_t start,
                   struct random *random, uint8_t bytes[INSTRUCTION_LIMIT],
                   struct instruction *instruction)
{
    const struct encoder template = {
        .form = form, .random = random, .mode = mode, .start = start};

    return generate(&template, bytes, instruction);
}

static bool is_general(uint8_t operand)
{
    return operand >= OPERAND_E && operand <= OPERAND_O;
}

static bool is_rm(uint8_t operand)
{
    return operand >= OPERAND_E && operand <= OPERAND_E64;
}

static bool names_kept_register(const struct instruction *instruction)
{
    for (size_t i = 0; i < ARRAY_SIZE(instruction->form->operands); i++) {
        uint8_t operand = instruction->form->operands[i];
        unsigned number = is_rm(operand) ? instruction->rm : instruction->reg;

        if (is_general(operand) && !(is_rm(operand) && instruction->memory) &&
            (number == X86_RSP || number == CODE_ANCHOR))
            return true;
    }
    return instruction->vex && (instruction->vex_register == X86_RSP ||
                                instruction->vex_register == CODE_ANCHOR);
}

bool code_generate_anchored(const struct form *form, uint64_t start,
                            struct random *random, uint8_t bytes[INSTRUCTION_LIMIT],
                            struct instruction *instruction)
{
    const struct encoder template = {.form = form,
                                     .random = random,
                                     .mode = CODE_MODE,
                                     .start = start,
                                     .anchored = true};

    return generate(&template, bytes, instruction) && !names_kept_register(instruction);
}
