/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder, over a small table of forms made for it here: the rules that hold whatever
 * the real tables say. test_decode_zydis.c checks the real ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/cpu_private.h"
#include "accel/soft/handlers_private.h"
#include "base/bytes.h"

#define MODE64 (MODE_CODE64 | MODE_LONG | MODE_PROTECTED)
#define MODE32 (MODE_CODE32 | MODE_STACK32 | MODE_PROTECTED)
#define MODE16 0u
#define RIP UINT64_C(0x401000)

/* ---- the table ---- */

static soft_handler *select_nothing(const struct instruction *instruction,
                                    bool flags_dead)
{
    (void)instruction;
    (void)flags_dead;
    return NULL;
}

/* clang-format off */
#define FORM(map_, opcode_, count_, prefix_, modrm_, extension_, rm_, mnemonic_, size_, attributes_, ...) \
    {.map = (map_), .opcode = (opcode_), .opcode_count = (count_), .prefix = (prefix_), .modrm = (modrm_), \
     .extension = (extension_), .rm = (rm_), .mnemonic = (mnemonic_), .size = (size_), \
     .attributes = (attributes_), .operands = {__VA_ARGS__}, .select = select_nothing}

const struct form soft_integer_forms[] = {
    FORM(MAP_ONE, 0x00, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "add", SIZE_8, FORM_LOCK, OPERAND_E, OPERAND_G),
    FORM(MAP_ONE, 0x01, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "add", SIZE_V, FORM_LOCK, OPERAND_E, OPERAND_G),
    FORM(MAP_ONE, 0x03, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "add", SIZE_V, FORM_LOCK, OPERAND_G, OPERAND_E),
    FORM(MAP_ONE, 0x05, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "add", SIZE_V, 0, OPERAND_A, OPERAND_IZ),
    FORM(MAP_ONE, 0x40, 8, PREFIX_ANY, MODRM_ABSENT, -1, -1, "inc", SIZE_V, FORM_NOT_64, OPERAND_O),
    FORM(MAP_ONE, 0x50, 8, PREFIX_ANY, MODRM_ABSENT, -1, -1, "push", SIZE_STACK, 0, OPERAND_O),
    FORM(MAP_ONE, 0x62, 1, PREFIX_ANY, MODRM_MEMORY, -1, -1, "bound", SIZE_V, FORM_NOT_64, OPERAND_G, OPERAND_M),
    FORM(MAP_ONE, 0x63, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "arpl", SIZE_16, FORM_NOT_64 | FORM_PROTECTED, OPERAND_E, OPERAND_G),
    FORM(MAP_ONE, 0x63, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "movsxd", SIZE_V, FORM_ONLY_64, OPERAND_G, OPERAND_E32),
    FORM(MAP_ONE, 0x68, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "push", SIZE_STACK, 0, OPERAND_IZ),
    FORM(MAP_ONE, 0x70, 16, PREFIX_ANY, MODRM_ABSENT, -1, -1, "jcc", SIZE_BRANCH, FORM_ENDS, OPERAND_J8),
    FORM(MAP_ONE, 0x80, 1, PREFIX_ANY, MODRM_ANY, 0, -1, "add", SIZE_8, FORM_LOCK, OPERAND_E, OPERAND_I8),
    FORM(MAP_ONE, 0x80, 1, PREFIX_ANY, MODRM_ANY, 7, -1, "cmp", SIZE_8, 0, OPERAND_E, OPERAND_I8),
    FORM(MAP_ONE, 0x81, 1, PREFIX_ANY, MODRM_ANY, 0, -1, "add", SIZE_V, FORM_LOCK, OPERAND_E, OPERAND_IZ),
    FORM(MAP_ONE, 0x83, 1, PREFIX_ANY, MODRM_ANY, 0, -1, "add", SIZE_V, FORM_LOCK, OPERAND_E, OPERAND_IS8),
    FORM(MAP_ONE, 0x8c, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "mov", SIZE_V, 0, OPERAND_E, OPERAND_S),
    FORM(MAP_ONE, 0x8d, 1, PREFIX_ANY, MODRM_MEMORY, -1, -1, "lea", SIZE_V, FORM_OFFSET_ONLY, OPERAND_G, OPERAND_M),
    FORM(MAP_ONE, 0x8e, 1, PREFIX_ANY, MODRM_ANY, -1, -1, "mov", SIZE_16, 0, OPERAND_S, OPERAND_E),
    FORM(MAP_ONE, 0x90, 1, PREFIX_F3, MODRM_ABSENT, -1, -1, "pause", SIZE_NONE, 0, OPERAND_NONE),
    FORM(MAP_ONE, 0x90, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "nop", SIZE_NONE, 0, OPERAND_NONE),
    FORM(MAP_ONE, 0x90, 8, PREFIX_ANY, MODRM_ABSENT, -1, -1, "xchg", SIZE_V, 0, OPERAND_O, OPERAND_A),
    FORM(MAP_ONE, 0x9a, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "call", SIZE_V, FORM_NOT_64, OPERAND_FAR),
    FORM(MAP_ONE, 0xa1, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "mov", SIZE_V, 0, OPERAND_A, OPERAND_OFFSET),
    FORM(MAP_ONE, 0xa5, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "movs", SIZE_V, FORM_REP, OPERAND_STRING_TARGET, OPERAND_STRING_SOURCE),
    FORM(MAP_ONE, 0xb8, 8, PREFIX_ANY, MODRM_ABSENT, -1, -1, "mov", SIZE_V, 0, OPERAND_O, OPERAND_IV),
    FORM(MAP_ONE, 0xc2, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "ret", SIZE_STACK, FORM_ENDS, OPERAND_I16),
    FORM(MAP_ONE, 0xc4, 1, PREFIX_ANY, MODRM_MEMORY, -1, -1, "les", SIZE_V, FORM_NOT_64, OPERAND_G, OPERAND_M),
    FORM(MAP_ONE, 0xc5, 1, PREFIX_ANY, MODRM_MEMORY, -1, -1, "lds", SIZE_V, FORM_NOT_64, OPERAND_G, OPERAND_M),
    FORM(MAP_ONE, 0xc8, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "enter", SIZE_STACK, 0, OPERAND_I16, OPERAND_I8),
    FORM(MAP_ONE, 0xd1, 1, PREFIX_ANY, MODRM_ANY, 4, -1, "shl", SIZE_V, 0, OPERAND_E, OPERAND_ONE),
    FORM(MAP_ONE, 0xd8, 1, PREFIX_ANY, MODRM_MEMORY, 0, -1, "fadd", SIZE_NONE, FORM_X87, OPERAND_E32),
    FORM(MAP_ONE, 0xd8, 1, PREFIX_ANY, MODRM_REGISTER, 0, -1, "fadd", SIZE_NONE, FORM_X87, OPERAND_NONE),
    FORM(MAP_ONE, 0xe8, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "call", SIZE_BRANCH, FORM_ENDS, OPERAND_JZ),
    FORM(MAP_0F, 0x01, 1, PREFIX_ANY, MODRM_REGISTER, 7, 0, "swapgs", SIZE_NONE, FORM_ONLY_64, OPERAND_NONE),
    FORM(MAP_0F, 0x01, 1, PREFIX_ANY, MODRM_REGISTER, 7, 1, "rdtscp", SIZE_NONE, 0, OPERAND_NONE),
    FORM(MAP_0F, 0x01, 1, PREFIX_ANY, MODRM_MEMORY, 7, -1, "invlpg", SIZE_NONE, 0, OPERAND_M),
    FORM(MAP_0F, 0x10, 1, PREFIX_NONE, MODRM_ANY, -1, -1, "movups", SIZE_NONE, FORM_SSE, OPERAND_V, OPERAND_W),
    FORM(MAP_0F, 0x10, 1, PREFIX_66, MODRM_ANY, -1, -1, "movupd", SIZE_NONE, FORM_SSE, OPERAND_V, OPERAND_W),
    FORM(MAP_0F, 0x10, 1, PREFIX_F3, MODRM_ANY, -1, -1, "movss", SIZE_NONE, FORM_SSE, OPERAND_V, OPERAND_W),
    FORM(MAP_0F, 0x20, 1, PREFIX_ANY, MODRM_REGISTER, -1, -1, "mov", SIZE_NATIVE, 0, OPERAND_E, OPERAND_C),
    FORM(MAP_0F, 0x6e, 1, PREFIX_66, MODRM_ANY, -1, -1, "movd", SIZE_Y, FORM_SSE, OPERAND_V, OPERAND_E),
    FORM(MAP_0F, 0x6f, 1, PREFIX_NONE, MODRM_ANY, -1, -1, "movq", SIZE_NONE, FORM_MMX, OPERAND_P, OPERAND_Q),
    FORM(MAP_0F, 0xc7, 1, PREFIX_NFX, MODRM_REGISTER, 6, -1, "rdrand", SIZE_V, 0, OPERAND_E),
    FORM(MAP_0F, 0xc8, 8, PREFIX_ANY, MODRM_ABSENT, -1, -1, "bswap", SIZE_V, 0, OPERAND_O),
    FORM(MAP_0F38, 0xf1, 1, PREFIX_F2, MODRM_ANY, -1, -1, "crc32", SIZE_V, 0, OPERAND_G, OPERAND_E),
    FORM(MAP_0F38, 0xf1, 1, PREFIX_ANY, MODRM_MEMORY, -1, -1, "movbe", SIZE_V, 0, OPERAND_E, OPERAND_G),
    FORM(MAP_0F38, 0xf2, 1, PREFIX_NONE, MODRM_ANY, -1, -1, "andn", SIZE_Y, FORM_VEX, OPERAND_G, OPERAND_E),
    FORM(MAP_0F3A, 0x0f, 1, PREFIX_66, MODRM_ANY, -1, -1, "palignr", SIZE_NONE, FORM_SSE, OPERAND_V, OPERAND_W, OPERAND_I8),
};
/* clang-format on */
const size_t soft_integer_form_count = ARRAY_SIZE(soft_integer_forms);
const struct form soft_system_forms[] = {
    FORM(MAP_ONE, 0xf4, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "hlt", SIZE_NONE, FORM_ENDS,
         OPERAND_NONE),
};
const size_t soft_system_form_count = ARRAY_SIZE(soft_system_forms);
const struct form soft_vector_forms[] = {
    FORM(MAP_ONE, 0x9b, 1, PREFIX_ANY, MODRM_ABSENT, -1, -1, "fwait", SIZE_NONE, FORM_X87,
         OPERAND_NONE),
};
const size_t soft_vector_form_count = ARRAY_SIZE(soft_vector_forms);

/* ---- tools ---- */

#define BYTES(...)                                                                       \
    ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static struct instruction decode(uint32_t mode, const uint8_t *bytes, size_t size)
{
    struct instruction instruction;

    assert_int_equal(soft_decode(bytes, size, RIP, mode, &instruction), DECODE_OK);
    assert_int_equal(instruction.length, size);
    return instruction;
}

static void check_result(enum decode_result expected, uint32_t mode, const uint8_t *bytes,
                         size_t size)
{
    struct instruction instruction;

    assert_int_equal(soft_decode(bytes, size, RIP, mode, &instruction), expected);
}

static void check_undefined(uint32_t mode, const uint8_t *bytes, size_t size)
{
    check_result(DECODE_UNDEFINED, mode, bytes, size);
}

static void check_address(const struct instruction *instruction, uint8_t base,
                          uint8_t index, uint8_t scale, int64_t displacement,
                          uint8_t segment)
{
    assert_true(instruction->memory);
    assert_int_equal(instruction->base, base);
    assert_int_equal(instruction->index, index);
    assert_int_equal(instruction->scale, scale);
    assert_true(instruction->displacement == displacement);
    assert_int_equal(instruction->segment, segment);
}

/* ---- prefixes ---- */

static void rex_counts_only_before_the_opcode(void **state)
{
    struct instruction instruction = decode(MODE64, BYTES(0x48, 0x01, 0xd8));

    (void)state;
    assert_int_equal(instruction.operand_size, 8);
    assert_true(instruction.has_rex && instruction.rex_w);
    instruction = decode(MODE64, BYTES(0x48, 0x66, 0x01, 0xd8));
    assert_int_equal(instruction.operand_size, 2);
    assert_false(instruction.has_rex);
    instruction = decode(MODE64, BYTES(0x48, 0x44, 0x01, 0xd8));
    assert_int_equal(instruction.operand_size, 4);
    assert_int_equal(instruction.reg, 11);
}

static void rex_extends_registers(void **state)
{
    struct instruction instruction = decode(MODE64, BYTES(0x45, 0x01, 0xd8));

    (void)state;
    assert_int_equal(instruction.reg, X86_R11);
    assert_int_equal(instruction.rm, X86_R8);
    instruction = decode(MODE64, BYTES(0x41, 0x57));
    assert_int_equal(instruction.reg, X86_R15);
    instruction = decode(MODE64, BYTES(0x45, 0x0f, 0x6f, 0xd8));
    assert_int_equal(instruction.reg, 3); /* there are eight MMX registers */
    assert_int_equal(instruction.rm, 0);
    instruction = decode(MODE64, BYTES(0x45, 0x8c, 0xe8));
    assert_int_equal(instruction.reg, X86_GS);
    assert_int_equal(instruction.rm, X86_R8);
    instruction = decode(MODE64, BYTES(0x41, 0xd8, 0xc2));
    assert_int_equal(instruction.rm, 2);
    instruction = decode(MODE64, BYTES(0x44, 0x0f, 0x20, 0xc0));
    assert_int_equal(instruction.reg, 8);
}

static void rex_is_inc_outside_64_bit_code(void **state)
{
    struct instruction instruction = decode(MODE32, BYTES(0x41));

    (void)state;
    assert_string_equal(instruction.form->mnemonic, "inc");
    assert_int_equal(instruction.reg, X86_RCX);
    assert_false(instruction.has_rex);
}

static void last_segment_override_wins(void **state)
{
    struct instruction instruction = decode(MODE32, BYTES(0x26, 0x64, 0x2e, 0x01, 0x00));

    (void)state;
    assert_int_equal(instruction.segment, X86_CS);
    instruction = decode(MODE64, BYTES(0x64, 0x65, 0x2e, 0x01, 0x00));
    assert_int_equal(instruction.segment, X86_GS);
    instruction = decode(MODE64, BYTES(0x2e, 0x01, 0x00));
    assert_int_equal(instruction.segment, X86_DS);
    instruction = decode(MODE64, BYTES(0x65, 0x48, 0xa5));
    assert_int_equal(instruction.segment, X86_GS);
}

static void mandatory_prefix_chooses_the_form(void **state)
{
    (void)state;
    assert_string_equal(decode(MODE64, BYTES(0x0f, 0x10, 0xc1)).form->mnemonic, "movups");
    assert_string_equal(decode(MODE64, BYTES(0x66, 0x0f, 0x10, 0xc1)).form->mnemonic,
                        "movupd");
    assert_string_equal(
        decode(MODE64, BYTES(0xf3, 0x66, 0x0f, 0x10, 0xc1)).form->mnemonic, "movss");
    check_undefined(MODE64, BYTES(0xf2, 0x0f, 0x10, 0xc1));
    assert_int_equal(decode(MODE64, BYTES(0xf3, 0x0f, 0x10, 0xc1)).repeat, 0);
}

static void mandatory_66_is_no_operand_size(void **state)
{
    (void)state;
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x0f, 0x6e, 0xc0)).operand_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x48, 0x0f, 0x6e, 0xc0)).operand_size, 8);
    assert_int_equal(
        decode(MODE64, BYTES(0x66, 0xf2, 0x0f, 0x38, 0xf1, 0xc0)).operand_size, 2);
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x0f, 0x38, 0xf1, 0x00)).operand_size, 2);
}

static void nfx_is_66_or_nothing(void **state)
{
    (void)state;
    assert_int_equal(decode(MODE64, BYTES(0x0f, 0xc7, 0xf0)).operand_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x0f, 0xc7, 0xf0)).operand_size, 2);
    check_undefined(MODE64, BYTES(0xf3, 0x0f, 0xc7, 0xf0));
    check_undefined(MODE64, BYTES(0xf2, 0x66, 0x0f, 0xc7, 0xf0));
}

static void repeat_is_kept_for_string_instructions(void **state)
{
    (void)state;
    assert_int_equal(decode(MODE64, BYTES(0xf3, 0xa5)).repeat, 0xf3);
    assert_int_equal(decode(MODE64, BYTES(0xf3, 0xf2, 0xa5)).repeat, 0xf2);
    assert_int_equal(decode(MODE64, BYTES(0xf3, 0x01, 0xc0)).repeat, 0);
}

static void nop_with_rex_b_is_xchg(void **state)
{
    struct instruction instruction = decode(MODE64, BYTES(0x49, 0x90));

    (void)state;
    assert_string_equal(instruction.form->mnemonic, "xchg");
    assert_int_equal(instruction.reg, X86_R8);
    assert_int_equal(instruction.operand_size, 8);
    assert_string_equal(decode(MODE64, BYTES(0x48, 0x90)).form->mnemonic, "nop");
    assert_string_equal(decode(MODE64, BYTES(0xf3, 0x90)).form->mnemonic, "pause");
    assert_string_equal(decode(MODE64, BYTES(0x91)).form->mnemonic, "xchg");
}

static void lock_needs_a_memory_destination(void **state)
{
    (void)state;
    assert_true(decode(MODE64, BYTES(0xf0, 0x01, 0x00)).lock);
    check_undefined(MODE64, BYTES(0xf0, 0x01, 0xc0));       /* register */
    check_undefined(MODE64, BYTES(0xf0, 0x03, 0x00));       /* memory is the source */
    check_undefined(MODE64, BYTES(0xf0, 0x80, 0x38, 0x01)); /* CMP */
    check_undefined(MODE64, BYTES(0xf0, 0x90));
}

/* ---- sizes ---- */

static void operand_size_follows_mode_and_prefixes(void **state)
{
    (void)state;
    assert_int_equal(decode(MODE64, BYTES(0x01, 0xc0)).operand_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x01, 0xc0)).operand_size, 2);
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x48, 0x01, 0xc0)).operand_size, 8);
    assert_int_equal(decode(MODE32, BYTES(0x01, 0xc0)).operand_size, 4);
    assert_int_equal(decode(MODE32, BYTES(0x66, 0x01, 0xc0)).operand_size, 2);
    assert_int_equal(decode(MODE16, BYTES(0x01, 0xc0)).operand_size, 2);
    assert_int_equal(decode(MODE16, BYTES(0x66, 0x01, 0xc0)).operand_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x50)).operand_size, 8);
    assert_int_equal(decode(MODE64, BYTES(0x66, 0x50)).operand_size, 2);
    assert_int_equal(decode(MODE32, BYTES(0x50)).operand_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x0f, 0x20, 0xc0)).operand_size, 8);
    assert_int_equal(decode(MODE16, BYTES(0x0f, 0x20, 0xc0)).operand_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x00, 0xc0)).operand_size, 1);
}

static void memory_size_follows_the_operand(void **state)
{
    (void)state;
    assert_int_equal(decode(MODE64, BYTES(0x01, 0x00)).memory_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x48, 0x63, 0x00)).memory_size, 4);
    assert_int_equal(decode(MODE64, BYTES(0x0f, 0x10, 0x00)).memory_size, 16);
    assert_int_equal(decode(MODE64, BYTES(0x0f, 0x6f, 0x00)).memory_size, 8);
    assert_int_equal(decode(MODE64, BYTES(0x0f, 0x01, 0x38)).memory_size, 8);
    assert_int_equal(decode(MODE64, BYTES(0xd8, 0x00)).memory_size, 4);
}

/* ---- memory operands ---- */

static void addresses_of_64_bit_code(void **state)
{
    struct instruction instruction = decode(MODE64, BYTES(0x01, 0x03));

    (void)state;
    check_address(&instruction, X86_RBX, SOFT_ZERO, 0, 0, X86_DS);
    instruction = decode(MODE64, BYTES(0x01, 0x45, 0xf8)); /* [rbp-8] */
    check_address(&instruction, X86_RBP, SOFT_ZERO, 0, -8, X86_SS);
    instruction = decode(MODE64, BYTES(0x41, 0x01, 0x45, 0xf8)); /* [r13-8] */
    check_address(&instruction, X86_R13, SOFT_ZERO, 0, -8, X86_DS);
    instruction = decode(MODE64, BYTES(0x01, 0x04, 0x24)); /* [rsp] */
    check_address(&instruction, X86_RSP, SOFT_ZERO, 0, 0, X86_SS);
    instruction =
        decode(MODE64, BYTES(0x42, 0x01, 0x44, 0xa3, 0x10)); /* [rbx+r12*4+16] */
    check_address(&instruction, X86_RBX, X86_R12, 2, 16, X86_DS);
    instruction = decode(MODE64, BYTES(0x01, 0x04, 0xcd, 0xff, 0xff, 0xff, 0xff));
    check_address(&instruction, SOFT_ZERO, X86_RCX, 3, -1, X86_DS); /* [rcx*8-1] */
    instruction = decode(MODE64, BYTES(0x01, 0x04, 0x25, 0x00, 0x00, 0x00, 0x80));
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0, INT32_MIN, X86_DS);
    assert_false(instruction.rip_relative);
    instruction = decode(MODE64, BYTES(0x67, 0x01, 0x03));
    assert_int_equal(instruction.address_size, 4);
}

static void rip_relative_address_is_absolute(void **state)
{
    static const uint8_t with_immediate[] = {0x81, 0x05, 0x10, 0, 0, 0, 1, 2, 3, 4};
    static const uint8_t narrow[] = {0x67, 0x01, 0x05, 0x00, 0x00, 0x00, 0xf0};
    struct instruction instruction =
        decode(MODE64, with_immediate, sizeof(with_immediate));

    (void)state;
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0, RIP + 10 + 0x10, X86_DS);
    assert_true(instruction.rip_relative);
    assert_int_equal(instruction.immediate, 0x04030201);
    instruction = decode(MODE64, narrow, sizeof(narrow));
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0,
                  (uint32_t)(RIP + 7 + 0xfffffffff0000000), X86_DS);
    instruction = decode(MODE32, BYTES(0x01, 0x05, 0x10, 0, 0, 0));
    assert_false(instruction.rip_relative);
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0, 0x10, X86_DS);
}

static void addresses_of_16_bit_code(void **state)
{
    static const struct {
        uint8_t base, index, segment;
    } expected[8] = {
        {X86_RBX, X86_RSI, X86_DS},   {X86_RBX, X86_RDI, X86_DS},
        {X86_RBP, X86_RSI, X86_SS},   {X86_RBP, X86_RDI, X86_SS},
        {X86_RSI, SOFT_ZERO, X86_DS}, {X86_RDI, SOFT_ZERO, X86_DS},
        {X86_RBP, SOFT_ZERO, X86_SS}, {X86_RBX, SOFT_ZERO, X86_DS},
    };
    struct instruction instruction;

    (void)state;
    for (uint8_t rm = 0; rm < 8; rm++) {
        instruction = decode(MODE16, BYTES(0x01, (uint8_t)(0x40 | rm), 0x80));
        check_address(&instruction, expected[rm].base, expected[rm].index, 0, -128,
                      expected[rm].segment);
        assert_int_equal(instruction.address_size, 2);
    }
    instruction = decode(MODE16, BYTES(0x01, 0x06, 0x34, 0x12));
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0, 0x1234, X86_DS);
    instruction = decode(MODE16, BYTES(0x01, 0x87, 0x34, 0x12));
    check_address(&instruction, X86_RBX, SOFT_ZERO, 0, 0x1234, X86_DS);
    instruction = decode(MODE16, BYTES(0x67, 0x01, 0x44, 0x24, 0x04));
    check_address(&instruction, X86_RSP, SOFT_ZERO, 0, 4, X86_SS);
    instruction = decode(MODE32, BYTES(0x67, 0x01, 0x07));
    check_address(&instruction, X86_RBX, SOFT_ZERO, 0, 0, X86_DS);
    instruction = decode(MODE16, BYTES(0x26, 0x01, 0x46, 0x00)); /* es:[bp] */
    check_address(&instruction, X86_RBP, SOFT_ZERO, 0, 0, X86_ES);
}

static void absolute_offset_is_as_wide_as_the_address(void **state)
{
    static const uint8_t wide[] = {0x48, 0xa1, 8, 7, 6, 5, 4, 3, 2, 0x81};
    struct instruction instruction = decode(MODE64, wide, sizeof(wide));

    (void)state;
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0,
                  (int64_t)UINT64_C(0x8102030405060708), X86_DS);
    assert_int_equal(instruction.memory_size, 8);
    instruction = decode(MODE64, BYTES(0x67, 0xa1, 0, 0, 0, 0xf0));
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0, 0xf0000000, X86_DS);
    instruction = decode(MODE16, BYTES(0x64, 0xa1, 0x34, 0xf2));
    check_address(&instruction, SOFT_ZERO, SOFT_ZERO, 0, 0xf234, X86_FS);
}

static void control_registers_ignore_mod(void **state)
{
    struct instruction instruction = decode(MODE64, BYTES(0x0f, 0x20, 0x1d));

    (void)state;
    assert_false(instruction.memory);
    assert_int_equal(instruction.mod, 3);
    assert_int_equal(instruction.reg, 3);
    assert_int_equal(instruction.rm, 5);
}

/* ---- immediates ---- */

static void immediates_are_extended_by_kind(void **state)
{
    static const uint8_t wide[] = {0x48, 0xb8, 8, 7, 6, 5, 4, 3, 2, 0x81};

    (void)state;
    assert_true(decode(MODE64, BYTES(0x80, 0xc0, 0xff)).immediate == 0xff);
    assert_true(decode(MODE64, BYTES(0x83, 0xc0, 0xff)).immediate == UINT64_MAX);
    assert_true(decode(MODE64, BYTES(0x05, 0, 0, 0, 0x80)).immediate ==
                UINT64_C(0xffffffff80000000));
    assert_true(decode(MODE64, BYTES(0x66, 0x05, 0, 0x80)).immediate ==
                UINT64_C(0xffffffffffff8000));
    assert_true(decode(MODE64, BYTES(0x48, 0x05, 0xff, 0, 0, 0)).immediate == 0xff);
    assert_true(decode(MODE64, BYTES(0xb8, 0, 0, 0, 0x80)).immediate == 0x80000000);
    assert_true(decode(MODE64, wide, sizeof(wide)).immediate ==
                UINT64_C(0x8102030405060708));
    assert_true(decode(MODE64, BYTES(0xc2, 0x00, 0xff)).immediate == 0xff00);
    assert_true(decode(MODE64, BYTES(0xd1, 0xe0)).immediate == 1);
    assert_true(decode(MODE64, BYTES(0x66, 0x68, 1, 0x80)).immediate ==
                UINT64_C(0xffffffffffff8001));
}

static void second_immediates(void **state)
{
    struct instruction instruction = decode(MODE64, BYTES(0xc8, 0x20, 0x80, 0x1f));

    (void)state;
    assert_int_equal(instruction.immediate, 0x8020);
    assert_int_equal(instruction.immediate2, 0x1f);
    instruction = decode(MODE32, BYTES(0x9a, 4, 3, 2, 0x81, 0x10, 0x00));
    assert_true(instruction.immediate == 0x81020304);
    assert_int_equal(instruction.immediate2, 0x10);
    instruction = decode(MODE16, BYTES(0x9a, 2, 0x81, 0x10, 0x20));
    assert_int_equal(instruction.immediate, 0x8102);
    assert_int_equal(instruction.immediate2, 0x2010);
}

static void branch_targets_wrap_with_the_operand_size(void **state)
{
    struct instruction instruction;

    (void)state;
    assert_true(decode(MODE64, BYTES(0x74, 0xfe)).immediate == RIP);
    assert_true(decode(MODE64, BYTES(0xe8, 0, 0, 0, 0x80)).immediate ==
                RIP + 5 + UINT64_C(0xffffffff80000000));
    assert_true(decode(MODE32, BYTES(0xe8, 0, 0, 0, 0x80)).immediate ==
                (uint32_t)(RIP + 5 + 0x80000000));
    assert_true(decode(MODE32, BYTES(0x66, 0x74, 0x10)).immediate ==
                (uint16_t)(RIP + 3 + 0x10));
    /* Intel: 66h does nothing to near branches of 64-bit code. */
    assert_true(decode(MODE64, BYTES(0x66, 0xe8, 1, 0, 0, 0)).immediate == RIP + 7);
    assert_int_equal(soft_decode(BYTES(0xe8, 0x00, 0x80), 0xfff0, MODE16, &instruction),
                     DECODE_OK);
    assert_true(instruction.immediate == 0x7ff3);
}

/* ---- legality ---- */

static void forms_exist_only_in_their_modes(void **state)
{
    (void)state;
    assert_string_equal(decode(MODE64, BYTES(0x63, 0xc0)).form->mnemonic, "movsxd");
    assert_string_equal(decode(MODE32, BYTES(0x63, 0xc0)).form->mnemonic, "arpl");
    check_undefined(MODE16, BYTES(0x63, 0xc0));
    check_undefined(MODE16 | MODE_PROTECTED | MODE_VIRTUAL86, BYTES(0x63, 0xc0));
    check_undefined(MODE64, BYTES(0x9a, 1, 2, 3, 4, 5, 6));
    check_undefined(MODE32, BYTES(0x0f, 0x01, 0xf8));
    assert_string_equal(decode(MODE64, BYTES(0x0f, 0x01, 0xf8)).form->mnemonic, "swapgs");
    assert_string_equal(decode(MODE64, BYTES(0x0f, 0x01, 0xf9)).form->mnemonic, "rdtscp");
    assert_string_equal(decode(MODE64, BYTES(0x0f, 0x01, 0x38)).form->mnemonic, "invlpg");
    check_undefined(MODE64, BYTES(0x0f, 0x01, 0xfa));
}

static void segment_registers_must_exist(void **state)
{
    (void)state;
    check_undefined(MODE64, BYTES(0x8c, 0xf0));
    check_undefined(MODE64, BYTES(0x8e, 0xc8)); /* MOV CS, AX */
    assert_int_equal(decode(MODE64, BYTES(0x8c, 0xc8)).reg, X86_CS);
    assert_int_equal(decode(MODE64, BYTES(0x8e, 0xe8)).reg, X86_GS);
}

static void vex_needs_its_own_forms(void **state)
{
    static const uint8_t andn[] = {0xc4, 0xc2, 0xb0, 0xf2, 0xc2}; /* rax, r9, r10 */
    struct instruction instruction = decode(MODE64, andn, sizeof(andn));

    (void)state;
    assert_true(instruction.vex && instruction.rex_w && !instruction.vex_256);
    assert_int_equal(instruction.operand_size, 8);
    assert_int_equal(instruction.vex_register, 9);
    assert_int_equal(instruction.rm, 10);
    check_undefined(MODE64, BYTES(0x0f, 0x38, 0xf2, 0xc2));
    check_undefined(MODE64, BYTES(0xc5, 0xf8, 0x10, 0xc1)); /* VMOVUPS has no row */
    check_undefined(MODE64, BYTES(0x66, 0xc4, 0xc2, 0xb0, 0xf2, 0xc2));
    check_undefined(MODE64, BYTES(0x48, 0xc4, 0xc2, 0xb0, 0xf2, 0xc2));
    check_undefined(MODE64, BYTES(0xc4, 0xc0, 0xb0, 0xf2)); /* no map 0 */
    instruction = decode(MODE32, andn, sizeof(andn));
    assert_int_equal(instruction.vex_register, 1);
    assert_int_equal(instruction.rm, 2);
    assert_int_equal(instruction.operand_size, 4);
}

static void vex_is_lds_where_it_can_be(void **state)
{
    (void)state;
    assert_string_equal(decode(MODE32, BYTES(0xc5, 0x00)).form->mnemonic, "lds");
    assert_string_equal(decode(MODE16, BYTES(0xc5, 0x00)).form->mnemonic, "lds");
    check_undefined(MODE16, BYTES(0xc5, 0xf8, 0x10, 0xc1));
    check_undefined(MODE64, BYTES(0x62, 0xf1, 0x7c, 0x48, 0x10, 0xc1)); /* EVEX */
    check_undefined(MODE32, BYTES(0x62, 0xf1, 0x7c, 0x48, 0x10, 0xc1));
    assert_string_equal(decode(MODE32, BYTES(0x62, 0x00)).form->mnemonic, "bound");
}

static void rows_of_all_tables_are_found(void **state)
{
    (void)state;
    assert_string_equal(decode(MODE64, BYTES(0xf4)).form->mnemonic, "hlt");
    assert_string_equal(decode(MODE64, BYTES(0x9b)).form->mnemonic, "fwait");
    assert_int_equal(soft_form_count(), soft_integer_form_count + 2);
    assert_ptr_equal(soft_form(0), &soft_integer_forms[0]);
    assert_ptr_equal(soft_form(soft_integer_form_count), &soft_system_forms[0]);
    check_undefined(MODE64, BYTES(0x06));
}

/* ---- the number of bytes ---- */

/* Longer than fits: every shorter piece asks for more. */
static void missing_bytes_are_asked_for(void **state)
{
    static const uint8_t bytes[] = {0xf0, 0x66, 0x42, 0x81, 0x84, 0xa3, 1, 2, 3, 4, 5, 6};
    struct instruction instruction;

    (void)state;
    for (size_t size = 0; size < sizeof(bytes); size++)
        check_result(DECODE_MORE, MODE64, bytes, size);
    instruction = decode(MODE64, bytes, sizeof(bytes));
    check_address(&instruction, X86_RBX, X86_R12, 2, 0x04030201, X86_DS);
    check_result(DECODE_MORE, MODE64, BYTES(0x0f));
    check_result(DECODE_MORE, MODE64, BYTES(0x0f, 0x38));
    check_result(DECODE_MORE, MODE64, BYTES(0x0f, 0x10));
    check_result(DECODE_MORE, MODE64, BYTES(0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7));
    check_result(DECODE_MORE, MODE64, BYTES(0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7));
    check_result(DECODE_MORE, MODE64, BYTES(0xc4, 0xc2, 0xb0));
    check_result(DECODE_MORE, MODE16, BYTES(0xc8, 0x20, 0x80));
    check_result(DECODE_MORE, MODE32, BYTES(0xc5));
}

static void fifteen_bytes_are_the_limit(void **state)
{
    uint8_t bytes[32];
    struct instruction instruction;

    (void)state;
    memset(bytes, 0x66, sizeof(bytes));
    check_result(DECODE_TOO_LONG, MODE64, bytes, sizeof(bytes));
    check_result(DECODE_TOO_LONG, MODE64, bytes, 15);
    check_result(DECODE_MORE, MODE64, bytes, 14);
    bytes[14] = 0x50;
    instruction = decode(MODE64, bytes, 15);
    assert_int_equal(instruction.length, 15);
    bytes[14] = 0x01;
    bytes[15] = 0xc0;
    check_result(DECODE_TOO_LONG, MODE64, bytes, sizeof(bytes));
    bytes[11] = 0x81; /* with an immediate of two bytes: 15 fit, 16 do not */
    bytes[12] = 0xc0;
    check_result(DECODE_OK, MODE64, bytes, 15);
    bytes[11] = 0x66;
    bytes[12] = 0x81;
    bytes[13] = 0xc0;
    check_result(DECODE_TOO_LONG, MODE64, bytes, sizeof(bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rex_counts_only_before_the_opcode),
        cmocka_unit_test(rex_extends_registers),
        cmocka_unit_test(rex_is_inc_outside_64_bit_code),
        cmocka_unit_test(last_segment_override_wins),
        cmocka_unit_test(mandatory_prefix_chooses_the_form),
        cmocka_unit_test(mandatory_66_is_no_operand_size),
        cmocka_unit_test(nfx_is_66_or_nothing),
        cmocka_unit_test(repeat_is_kept_for_string_instructions),
        cmocka_unit_test(nop_with_rex_b_is_xchg),
        cmocka_unit_test(lock_needs_a_memory_destination),
        cmocka_unit_test(operand_size_follows_mode_and_prefixes),
        cmocka_unit_test(memory_size_follows_the_operand),
        cmocka_unit_test(addresses_of_64_bit_code),
        cmocka_unit_test(rip_relative_address_is_absolute),
        cmocka_unit_test(addresses_of_16_bit_code),
        cmocka_unit_test(absolute_offset_is_as_wide_as_the_address),
        cmocka_unit_test(control_registers_ignore_mod),
        cmocka_unit_test(immediates_are_extended_by_kind),
        cmocka_unit_test(second_immediates),
        cmocka_unit_test(branch_targets_wrap_with_the_operand_size),
        cmocka_unit_test(forms_exist_only_in_their_modes),
        cmocka_unit_test(segment_registers_must_exist),
        cmocka_unit_test(vex_needs_its_own_forms),
        cmocka_unit_test(vex_is_lds_where_it_can_be),
        cmocka_unit_test(rows_of_all_tables_are_found),
        cmocka_unit_test(missing_bytes_are_asked_for),
        cmocka_unit_test(fifteen_bytes_are_the_limit),
    };

    return cmocka_run_group_tests_name("soft decode", tests, NULL, NULL);
}
