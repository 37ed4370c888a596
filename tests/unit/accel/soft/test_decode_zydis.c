/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder and the tables of forms, against Zydis: every instruction of real programs
 * (this host's libc and bash, and the kernels in HUSK_KERNELS), and
 * random bytes in each mode. Compared are length, operands, prefixes and flags. What
 * Zydis knows and no form covers is listed; it must belong to an extension that the
 * processor model does not offer.
 */
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <Zydis/Zydis.h>

#include "accel/soft/cpu_private.h"
#include "accel/soft/instruction_private.h"
#include "base/bytes.h"
#include "effort.h"
#include "image/image.h"

#define MODE64 (MODE_CODE64 | MODE_LONG | MODE_PROTECTED)
#define MODE32 (MODE_CODE32 | MODE_STACK32 | MODE_PROTECTED)
#define MODE16 MODE_PROTECTED
#define MISMATCHES_SHOWN 3 /* of each mnemonic */
#define RANDOM_INSTRUCTIONS EFFORT(2000000)

/* ---- results ---- */

struct results {
    const char *name;
    uint32_t mode;
    ZydisDecoder decoder;
    uint64_t compared;
    uint64_t mismatches;
    uint8_t shown[ZYDIS_MNEMONIC_MAX_VALUE + 1];
    uint64_t uncovered[ZYDIS_MNEMONIC_MAX_VALUE + 1];
    const char *uncovered_extension[ZYDIS_MNEMONIC_MAX_VALUE + 1];
};

/* One instruction, decoded twice. */
struct pair {
    struct results *results;
    const uint8_t *bytes;
    struct instruction ours;
    enum decode_result result;
    ZydisDecodedInstruction theirs;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

/* Extensions whose encodings are other instructions without them: mostly NOP. */
static const ZydisDecoderMode not_offered[] = {
    ZYDIS_DECODER_MODE_MPX,   ZYDIS_DECODER_MODE_CET,      ZYDIS_DECODER_MODE_LZCNT,
    ZYDIS_DECODER_MODE_TZCNT, ZYDIS_DECODER_MODE_WBNOINVD, ZYDIS_DECODER_MODE_CLDEMOTE,
};

static void results_init(struct results *results, const char *name, uint32_t mode)
{
    ZydisMachineMode machine = ZYDIS_MACHINE_MODE_LEGACY_16;
    ZydisStackWidth stack = ZYDIS_STACK_WIDTH_16;

    if ((mode & MODE_CODE64) != 0) {
        machine = ZYDIS_MACHINE_MODE_LONG_64;
        stack = ZYDIS_STACK_WIDTH_64;
    } else if ((mode & MODE_CODE32) != 0) {
        machine = ZYDIS_MACHINE_MODE_LEGACY_32;
        stack = ZYDIS_STACK_WIDTH_32;
    }
    *results = (struct results){.name = name, .mode = mode};
    assert_true(ZYAN_SUCCESS(ZydisDecoderInit(&results->decoder, machine, stack)));
    for (size_t i = 0; i < ARRAY_SIZE(not_offered); i++)
        assert_true(ZYAN_SUCCESS(
            ZydisDecoderEnableMode(&results->decoder, not_offered[i], ZYAN_FALSE)));
}

static void mismatch(const struct pair *pair, const char *what, uint64_t ours,
                     uint64_t theirs)
{
    struct results *results = pair->results;

    results->mismatches++;
    if (results->shown[pair->theirs.mnemonic] >= MISMATCHES_SHOWN)
        return;
    results->shown[pair->theirs.mnemonic]++;
    print_message("%s: %s (%s): %s is %" PRIx64 ", Zydis says %" PRIx64 ":",
                  results->name, ZydisMnemonicGetString(pair->theirs.mnemonic),
                  pair->result == DECODE_OK ? pair->ours.form->mnemonic : "-", what, ours,
                  theirs);
    for (unsigned i = 0; i < pair->theirs.length; i++)
        print_message(" %02x", pair->bytes[i]);
    print_message("\n");
}

static void expect(const struct pair *pair, const char *what, uint64_t ours,
                   uint64_t theirs)
{
    if (ours != theirs)
        mismatch(pair, what, ours, theirs);
}

/* ---- operands ---- */

/* Our number of a register, and for none that of the register that is zero. */
static uint64_t register_number(ZydisRegister reg)
{
    if (reg == ZYDIS_REGISTER_NONE)
        return SOFT_ZERO;
    /* Zydis has AH to BH before SPL to DIL; both are encoded as 4 to 7. */
    if (reg >= ZYDIS_REGISTER_SPL && reg <= ZYDIS_REGISTER_R15B)
        return reg - ZYDIS_REGISTER_SPL + 4;
    return (uint64_t)ZydisRegisterGetId(reg);
}

static uint8_t segment_number(ZydisRegister reg)
{
    return (uint8_t)(reg - ZYDIS_REGISTER_ES);
}

/* Base 101b with mod 0 is no base whatever REX.B says (SDM vol. 2, table 2-5); under 67h
 * Zydis 4.0 says r13d. */
static bool has_false_base(const struct pair *pair, const ZydisDecodedOperandMem *memory)
{
    return memory->base == ZYDIS_REGISTER_R13D && pair->theirs.raw.modrm.mod == 0 &&
           pair->ours.base == SOFT_ZERO;
}

static void compare_memory(const struct pair *pair, const ZydisDecodedOperand *operand)
{
    const ZydisDecodedOperandMem *memory = &operand->mem;
    const struct instruction *ours = &pair->ours;
    uint64_t displacement = (uint64_t)memory->disp.value;
    uint64_t mask = ours->address_size == 8 ? UINT64_MAX
                                            : (UINT64_C(1) << 8 * ours->address_size) - 1;

    expect(pair, "memory", ours->memory, true);
    if (has_false_base(pair, memory))
        return;
    if (memory->base == ZYDIS_REGISTER_RIP || memory->base == ZYDIS_REGISTER_EIP) {
        expect(pair, "rip-relative", ours->rip_relative, true);
        displacement += ours->rip + ours->length;
    } else {
        expect(pair, "base", ours->base, register_number(memory->base));
    }
    expect(pair, "index", ours->index, register_number(memory->index));
    if (memory->index != ZYDIS_REGISTER_NONE)
        expect(pair, "scale", UINT64_C(1) << ours->scale, memory->scale);
    expect(pair, "displacement", (uint64_t)ours->displacement & mask,
           displacement & mask);
    if (memory->type == ZYDIS_MEMOP_TYPE_MEM)
        expect(pair, "memory write", form_writes_memory(ours->form),
               (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0);
    if (memory->type == ZYDIS_MEMOP_TYPE_MEM)
        expect(pair, "segment", ours->segment, segment_number(memory->segment));
}

/* The kinds of registers an operand kind may name, and its size where it is fixed. */
struct operand_kind {
    enum { IN_NONE, IN_REG, IN_RM, IN_OPCODE, IN_VEX } place;
    ZydisRegisterClass class; /* GPR8 stands for any general register */
    uint8_t size;             /* bytes; 0: the operand size */
};
static const struct operand_kind operand_kinds[] = {
    [OPERAND_E] = {IN_RM, ZYDIS_REGCLASS_GPR8, 0},
    [OPERAND_E8] = {IN_RM, ZYDIS_REGCLASS_GPR8, 1},
    [OPERAND_E16] = {IN_RM, ZYDIS_REGCLASS_GPR8, 2},
    [OPERAND_E32] = {IN_RM, ZYDIS_REGCLASS_GPR8, 4},
    [OPERAND_E64] = {IN_RM, ZYDIS_REGCLASS_GPR8, 8},
    [OPERAND_G] = {IN_REG, ZYDIS_REGCLASS_GPR8, 0},
    [OPERAND_G8] = {IN_REG, ZYDIS_REGCLASS_GPR8, 1},
    [OPERAND_G16] = {IN_REG, ZYDIS_REGCLASS_GPR8, 2},
    [OPERAND_G32] = {IN_REG, ZYDIS_REGCLASS_GPR8, 4},
    [OPERAND_G64] = {IN_REG, ZYDIS_REGCLASS_GPR8, 8},
    [OPERAND_O] = {IN_OPCODE, ZYDIS_REGCLASS_GPR8, 0},
    [OPERAND_S] = {IN_REG, ZYDIS_REGCLASS_SEGMENT, 0},
    [OPERAND_C] = {IN_REG, ZYDIS_REGCLASS_CONTROL, 0},
    [OPERAND_D] = {IN_REG, ZYDIS_REGCLASS_DEBUG, 0},
    [OPERAND_V] = {IN_REG, ZYDIS_REGCLASS_XMM, 0},
    [OPERAND_W... OPERAND_W64] = {IN_RM, ZYDIS_REGCLASS_XMM, 0},
    [OPERAND_H] = {IN_VEX, ZYDIS_REGCLASS_XMM, 0},
    [OPERAND_P] = {IN_REG, ZYDIS_REGCLASS_MMX, 0},
    [OPERAND_Q... OPERAND_Q32] = {IN_RM, ZYDIS_REGCLASS_MMX, 0},
    [OPERAND_STRING_TARGET] = {IN_NONE, ZYDIS_REGCLASS_INVALID, 0},
};

static bool is_general(ZydisRegisterClass class)
{
    return class >= ZYDIS_REGCLASS_GPR8 && class <= ZYDIS_REGCLASS_GPR64;
}

/* Where the kind of ModRM.reg is of no account: it is unused; or it is MOVSXD to 16 bits,
 * whose source has 16 bits or 32, depending on the maker; or the result has 64 bits of
 * which at most 32 are not 0; or it is a source (LAR, LSL) of which 16 bits are read. */
static bool has_other_register(const struct pair *pair)
{
    static const ZydisMnemonic mnemonics[] = {
        ZYDIS_MNEMONIC_NOP,    ZYDIS_MNEMONIC_UD0,      ZYDIS_MNEMONIC_UD1,
        ZYDIS_MNEMONIC_CRC32,  ZYDIS_MNEMONIC_LAR,      ZYDIS_MNEMONIC_LSL,
        ZYDIS_MNEMONIC_PEXTRW, ZYDIS_MNEMONIC_PMOVMSKB,
    };

    for (size_t i = 0; i < ARRAY_SIZE(mnemonics); i++)
        if (pair->theirs.mnemonic == mnemonics[i])
            return true;
    return pair->theirs.mnemonic == ZYDIS_MNEMONIC_MOVSXD && pair->ours.operand_size == 2;
}

/* The form must have an operand of that register's place, kind and size. */
static void compare_register_kind(const struct pair *pair,
                                  const ZydisDecodedOperand *operand, unsigned place)
{
    ZydisRegisterClass class = ZydisRegisterGetClass(operand->reg.value);
    const struct form *form = pair->ours.form;

    if (has_other_register(pair))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++) {
        const struct operand_kind *kind = &operand_kinds[form->operands[i]];
        unsigned size = kind->size != 0 ? kind->size : pair->ours.operand_size;

        if ((unsigned)kind->place != place)
            continue;
        if (kind->class != ZYDIS_REGCLASS_GPR8 && kind->class == class)
            return;
        if (kind->class == ZYDIS_REGCLASS_GPR8 && is_general(class) &&
            operand->size == size * 8)
            return;
    }
    mismatch(pair, "register kind (class, bits)", class, operand->size);
}

static void compare_register(const struct pair *pair, const ZydisDecodedOperand *operand)
{
    uint64_t number = register_number(operand->reg.value);
    const struct instruction *ours = &pair->ours;

    switch ((unsigned)operand->encoding) {
    case ZYDIS_OPERAND_ENCODING_MODRM_REG:
        expect(pair, "reg", ours->reg, number);
        compare_register_kind(pair, operand, IN_REG);
        return;
    case ZYDIS_OPERAND_ENCODING_MODRM_RM:
        expect(pair, "rm", ours->rm, number);
        expect(pair, "memory", ours->memory, false);
        if (ZydisRegisterGetClass(operand->reg.value) != ZYDIS_REGCLASS_X87)
            compare_register_kind(pair, operand, IN_RM);
        return;
    case ZYDIS_OPERAND_ENCODING_OPCODE:
        expect(pair, "opcode register", ours->reg, number);
        compare_register_kind(pair, operand, IN_OPCODE);
        return;
    case ZYDIS_OPERAND_ENCODING_NDSNDD:
        expect(pair, "vex register", ours->vex_register, number);
        return;
    default:
        return;
    }
}

/* Immediates of IZ and IS8 must be extended as far as the operand; ENTER has a second
 * one. */
static void compare_immediate(const struct pair *pair, const ZydisDecodedOperand *operand,
                              unsigned which)
{
    const struct instruction *ours = &pair->ours;
    uint64_t mask = UINT64_MAX;
    uint64_t value = operand->imm.value.u;
    uint64_t target;

    if (which == 1) {
        expect(pair, "second immediate", ours->immediate2, value);
        return;
    }
    if (operand->imm.is_relative) { /* Zydis does not cut EIP to 32 bits */
        if (ours->operand_size == 4)
            mask = UINT32_MAX;
        value = ours->rip + ours->length + value;
        if (ZYAN_SUCCESS(
                ZydisCalcAbsoluteAddress(&pair->theirs, operand, ours->rip, &target)))
            value = target;
    } else if (ours->operand_size != 0 && ours->operand_size < 8) {
        mask = (UINT64_C(1) << 8 * ours->operand_size) - 1;
    }
    expect(pair, "immediate", ours->immediate & mask, value & mask);
}

/* Memory sizes but for M, whose handler knows, LEA and NOP, and cache lines. */
static void compare_memory_size(const struct pair *pair,
                                const ZydisDecodedOperand *operand)
{
    const struct form *form = pair->ours.form;

    if ((form->attributes & FORM_OFFSET_ONLY) != 0 || operand->size == 512)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (operand_kinds[form->operands[i]].place == IN_RM)
            expect(pair, "memory size", UINT64_C(8) * pair->ours.memory_size,
                   operand->size);
}

static bool uses_string_source(const struct form *form)
{
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (form->operands[i] == OPERAND_STRING_SOURCE)
            return true;
    return false;
}

static void compare_hidden_memory(const struct pair *pair,
                                  const ZydisDecodedOperand *operand)
{
    if (uses_string_source(pair->ours.form) &&
        register_number(operand->mem.base) == X86_RSI)
        expect(pair, "string segment", pair->ours.segment,
               segment_number(operand->mem.segment));
}

static bool is_encoded_memory(const ZydisDecodedOperand *operand)
{
    return operand->encoding == ZYDIS_OPERAND_ENCODING_MODRM_RM ||
           (operand->encoding >= ZYDIS_OPERAND_ENCODING_DISP8 &&
            operand->encoding <= ZYDIS_OPERAND_ENCODING_DISP16_32_32);
}

static void compare_operands(const struct pair *pair)
{
    unsigned immediates = 0;
    bool memory = false;

    for (unsigned i = 0; i < pair->theirs.operand_count; i++) {
        const ZydisDecodedOperand *operand = &pair->operands[i];

        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            compare_register(pair, operand);
        } else if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT)
                compare_immediate(pair, operand, immediates++);
        } else if (operand->type == ZYDIS_OPERAND_TYPE_POINTER) {
            expect(pair, "far offset", pair->ours.immediate, operand->ptr.offset);
            expect(pair, "far selector", pair->ours.immediate2, operand->ptr.segment);
        } else if (is_encoded_memory(operand)) {
            memory = true;
            compare_memory(pair, operand);
            compare_memory_size(pair, operand);
        } else {
            compare_hidden_memory(pair, operand);
        }
    }
    expect(pair, "memory", pair->ours.memory, memory);
}

/* ---- the rest of an instruction ---- */

static void compare_prefixes(const struct pair *pair)
{
    const uint64_t repeats =
        ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
    ZydisInstructionAttributes attributes = pair->theirs.attributes;

    expect(pair, "lock", pair->ours.lock, (attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0);
    expect(pair, "repeat", pair->ours.repeat != 0, (attributes & repeats) != 0);
    expect(pair, "address size", UINT64_C(8) * pair->ours.address_size,
           pair->theirs.address_width);
}

/* What loads all of RFLAGS, and what calls the hypervisor, need not say what it writes:
 * it pays no attention to whether anybody will look. */
static bool writes_flags_anyhow(const struct pair *pair)
{
    return pair->theirs.mnemonic == ZYDIS_MNEMONIC_SYSCALL ||
           pair->theirs.mnemonic == ZYDIS_MNEMONIC_VMCALL;
}

/* A flag that a form writes without reading is taken for dead before it: it must be
 * written by all means. What is read must be said. */
static void compare_flags(const struct pair *pair)
{
    const ZydisAccessedFlags *theirs = pair->theirs.cpu_flags;
    const struct form_flags *ours = &pair->ours.form->flags;
    unsigned written = 0;
    unsigned read = 0;

    if (theirs != NULL) {
        written = (theirs->modified | theirs->set_0 | theirs->set_1 | theirs->undefined) &
                  FLAGS_ARITHMETIC;
        read = theirs->tested & FLAGS_ARITHMETIC;
    }
    if (!writes_flags_anyhow(pair))
        expect(pair, "flags written", ours->written & FLAGS_ARITHMETIC, written);
    expect(pair, "flags read", (ours->read & FLAGS_ARITHMETIC) & read, read);
}

/* Both must refuse it. Which control and debug registers exist is left to the handlers.
 */
static void compare_refusal(const struct pair *pair, ZyanStatus theirs)
{
    if (pair->result == DECODE_OK && theirs != ZYDIS_STATUS_BAD_REGISTER)
        mismatch(pair, "result", pair->result, theirs);
}

/* False: Zydis knows no instruction there. */
static bool decode_both(struct pair *pair, const uint8_t *bytes, size_t size,
                        uint64_t rip)
{
    ZyanStatus status = ZydisDecoderDecodeFull(&pair->results->decoder, bytes, size,
                                               &pair->theirs, pair->operands);

    pair->bytes = bytes;
    pair->result = soft_decode(bytes, size, rip, pair->results->mode, &pair->ours);
    if (ZYAN_SUCCESS(status))
        return true;
    pair->theirs.mnemonic = ZYDIS_MNEMONIC_INVALID;
    pair->theirs.length = (uint8_t)min_u64(size, INSTRUCTION_LIMIT);
    compare_refusal(pair, status);
    return false;
}

/* 0F 0D: PREFETCH; with a register NOP on Intel's processors, and undefined on AMD's. */
static bool is_prefetch_of_register(const struct pair *pair)
{
    return pair->theirs.opcode_map == ZYDIS_OPCODE_MAP_0F &&
           pair->theirs.opcode == 0x0d && pair->theirs.raw.modrm.mod == 3;
}

static void compare(struct pair *pair)
{
    struct results *results = pair->results;

    results->compared++;
    if (pair->result == DECODE_UNDEFINED && is_prefetch_of_register(pair))
        return;
    if (pair->result == DECODE_UNDEFINED) {
        results->uncovered[pair->theirs.mnemonic]++;
        results->uncovered_extension[pair->theirs.mnemonic] =
            ZydisISAExtGetString(pair->theirs.meta.isa_ext);
        return;
    }
    expect(pair, "result", pair->result, DECODE_OK);
    if (pair->result != DECODE_OK)
        return;
    expect(pair, "length", pair->ours.length, pair->theirs.length);
    if (pair->ours.length != pair->theirs.length)
        return;
    compare_operands(pair);
    compare_prefixes(pair);
    compare_flags(pair);
}

/* ---- what no form covers ---- */

/* The extensions the processor model offers, whose instructions all need a form; NULL
 * ends the list. */
static const ZydisISAExt offered[] = {
    ZYDIS_ISA_EXT_AES,    ZYDIS_ISA_EXT_BASE,      ZYDIS_ISA_EXT_CLFLUSHOPT,
    ZYDIS_ISA_EXT_CLFSH,  ZYDIS_ISA_EXT_LONGMODE,  ZYDIS_ISA_EXT_MMX,
    ZYDIS_ISA_EXT_PAUSE,  ZYDIS_ISA_EXT_PCLMULQDQ, ZYDIS_ISA_EXT_RDRAND,
    ZYDIS_ISA_EXT_RDTSCP, ZYDIS_ISA_EXT_RDWRFSGS,  ZYDIS_ISA_EXT_SERIALIZE,
    ZYDIS_ISA_EXT_SSE,    ZYDIS_ISA_EXT_SSE2,      ZYDIS_ISA_EXT_SSE3,
    ZYDIS_ISA_EXT_SSE4,   ZYDIS_ISA_EXT_SSSE3,     ZYDIS_ISA_EXT_X87,
};

/* Undefined on purpose, and RSM, which is undefined outside system management mode. */
static const ZydisMnemonic undefined[] = {
    ZYDIS_MNEMONIC_UD0,
    ZYDIS_MNEMONIC_UD1,
    ZYDIS_MNEMONIC_UD2,
    ZYDIS_MNEMONIC_RSM,
};

static bool needs_form(ZydisMnemonic mnemonic, const char *extension)
{
    for (size_t i = 0; i < ARRAY_SIZE(undefined); i++)
        if (undefined[i] == mnemonic)
            return false;
    for (size_t i = 0; i < ARRAY_SIZE(offered); i++)
        if (strcmp(ZydisISAExtGetString(offered[i]), extension) == 0)
            return true;
    return false;
}

/* Lists mnemonics without form; returns how many should have one. */
static unsigned list_uncovered(const struct results *results)
{
    unsigned missing = 0;

    for (int mnemonic = 0; mnemonic <= ZYDIS_MNEMONIC_MAX_VALUE; mnemonic++) {
        const char *extension = results->uncovered_extension[mnemonic];

        if (results->uncovered[mnemonic] == 0)
            continue;
        if (needs_form((ZydisMnemonic)mnemonic, extension)) {
            missing++;
            print_message("%s: no form for %s (%s), %" PRIu64 " times\n", results->name,
                          ZydisMnemonicGetString((ZydisMnemonic)mnemonic), extension,
                          results->uncovered[mnemonic]);
        }
    }
    return missing;
}

static void check_results(const struct results *results)
{
    unsigned missing = list_uncovered(results);

    print_message("%s: %" PRIu64 " instructions, %" PRIu64
                  " mismatches, %u mnemonics without "
                  "form\n",
                  results->name, results->compared, results->mismatches, missing);
    assert_true(results->mismatches == 0);
    assert_int_equal(missing, 0);
}

/* ---- programs ---- */

/* Linear sweep, as the whole of a section is code; single bytes that are none are left
 * out. */
static void sweep(struct results *results, const uint8_t *bytes, size_t size,
                  uint64_t address)
{
    struct pair pair = {.results = results};
    size_t at = 0;

    while (at < size) {
        size_t left = size - at;

        if (!decode_both(&pair, bytes + at, left < 15 ? left : 15, address + at)) {
            at++;
            continue;
        }
        compare(&pair);
        at += pair.theirs.length;
    }
}

static void sweep_sections(struct results *results, const uint8_t *file, size_t size)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
    const Elf64_Shdr *sections;

    assert_true(size >= sizeof(*header) && memcmp(file, ELFMAG, SELFMAG) == 0);
    assert_true(range_within(header->e_shoff, header->e_shnum * sizeof(*sections), size));
    sections = (const Elf64_Shdr *)(const void *)(file + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];

        if (section->sh_type != SHT_PROGBITS || (section->sh_flags & SHF_EXECINSTR) == 0)
            continue;
        assert_true(range_within(section->sh_offset, section->sh_size, size));
        sweep(results, file + section->sh_offset, section->sh_size, section->sh_addr);
    }
}

static void compare_file(const char *name, int fd, size_t size)
{
    struct results results;
    const uint8_t *file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    assert_true(file != MAP_FAILED);
    results_init(&results, name, MODE64);
    sweep_sections(&results, file, size);
    assert_true(results.compared > 10000);
    check_results(&results);
}

static int open_file(const char *path, size_t *size)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        print_message("%s is not there\n", path);
        skip();
    }
    assert_int_equal(fstat(fd, &status), 0);
    *size = (size_t)status.st_size;
    return fd;
}

static void compare_program(const char *path)
{
    size_t size;
    int fd = open_file(path, &size);

    compare_file(path, fd, size);
    assert_int_equal(close(fd), 0);
}

static void agrees_on_libc(void **state)
{
    (void)state;
    compare_program("/lib/x86_64-linux-gnu/libc.so.6");
}

static void agrees_on_bash(void **state)
{
    (void)state;
    compare_program("/bin/bash");
}

static void compare_kernel(const char *path)
{
    const struct image_cache_options options = {.directory = NULL};
    struct image_cache_result unpacked = {.fd = -1};
    struct error err = ERROR_NONE;
    struct source source;
    struct image image;
    size_t size;
    int fd = open_file(path, &size);

    source = source_from_fd(fd, size);
    if (image_describe(&source, &image, &err) != 0 ||
        image_cache_open(&source, &image.payload, &options, &unpacked, &err) != 0)
        fail_msg("%s: %s", path, err.text);
    compare_file(path, unpacked.fd, unpacked.size_bytes);
    assert_int_equal(close(unpacked.fd), 0);
    assert_int_equal(close(fd), 0);
}

/* HUSK_KERNELS is a folder with one folder a kernel, as tools/get-kernel makes it. */
static void agrees_on_kernels(void **state)
{
    const char *folder = getenv("HUSK_KERNELS");
    char pattern[4096];
    glob_t found;

    (void)state;
    if (folder == NULL) {
        print_message("HUSK_KERNELS names no folder with kernels\n");
        skip();
    }
    assert_in_range(snprintf(pattern, sizeof(pattern), "%s/*/vmlinuz", folder), 1,
                    sizeof(pattern) - 1);
    if (glob(pattern, 0, NULL, &found) != 0) {
        print_message("%s matches no kernel\n", pattern);
        skip();
    }
    for (size_t i = 0; i < found.gl_pathc; i++)
        compare_kernel(found.gl_pathv[i]);
    globfree(&found);
}

/* ---- random bytes ---- */

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13; /* xorshift64: G. Marsaglia, Xorshift RNGs, 2003 */
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Prefixes and escapes come more often than by chance: they lead to the rarer forms. */
static void random_bytes(uint64_t *seed, uint8_t bytes[INSTRUCTION_LIMIT])
{
    static const uint8_t starts[] = {0x0f, 0x66, 0x67, 0xf2, 0xf3, 0x48,
                                     0x41, 0x0f, 0xf0, 0x64, 0x2e, 0x0f};
    unsigned choices = (unsigned)(next_random(seed) & 3);
    unsigned at = 0;

    for (; at < choices; at++)
        bytes[at] = starts[next_random(seed) % ARRAY_SIZE(starts)];
    for (; at < INSTRUCTION_LIMIT; at++)
        bytes[at] = (uint8_t)(next_random(seed) >> 32);
}

static void compare_random(const char *name, uint32_t mode)
{
    struct results results;
    struct pair pair = {.results = &results};
    uint8_t bytes[INSTRUCTION_LIMIT];
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

    results_init(&results, name, mode);
    for (unsigned i = 0; i < RANDOM_INSTRUCTIONS; i++) {
        random_bytes(&seed, bytes);
        if (decode_both(&pair, bytes, sizeof(bytes), next_random(&seed) & 0xfff))
            compare(&pair);
    }
    check_results(&results);
}

static void agrees_on_random_64_bit_code(void **state)
{
    (void)state;
    compare_random("random, 64 bits", MODE64);
}

static void agrees_on_random_32_bit_code(void **state)
{
    (void)state;
    compare_random("random, 32 bits", MODE32);
}

static void agrees_on_random_16_bit_code(void **state)
{
    (void)state;
    compare_random("random, 16 bits", MODE16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_on_libc),
        cmocka_unit_test(agrees_on_bash),
        cmocka_unit_test(agrees_on_kernels),
        cmocka_unit_test(agrees_on_random_64_bit_code),
        cmocka_unit_test(agrees_on_random_32_bit_code),
        cmocka_unit_test(agrees_on_random_16_bit_code),
    };

    return cmocka_run_group_tests_name("soft decode against Zydis", tests, NULL, NULL);
}
