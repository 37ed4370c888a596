/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of forms_vector.c with random operands, against the same instruction on the
 * host: registers, flags, MXCSR, x87 state, memory, and exceptions, masked or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/blocks_private.h"
#include "accel/soft/flags_private.h"
#include "accel/soft/handlers_private.h"
#include "effort.h"
#include "fixture.h"
#include "native.h"

#define ROUNDS EFFORT(300) /* states a form */

#define CODE_GPA 0x100000
#define DATA_GPA 0x200000 /* operands lie around the end of its first page */
#define DATA_BYTES 8192

/* ---- random numbers that are often special ---- */

static uint64_t random_seed = 0x243f6a8885a308d3;

static uint64_t random_u64(void)
{
    random_seed ^= random_seed << 13;
    random_seed ^= random_seed >> 7;
    random_seed ^= random_seed << 17;
    return random_seed * UINT64_C(0x2545f4914f6cdd1d);
}

static unsigned random_below(unsigned limit)
{
    return (unsigned)((random_u64() >> 33) % limit);
}

/* Lanes that floating point and saturation care about. */
static uint64_t random_lane(void)
{
    static const uint64_t special[] = {
        0,
        UINT64_MAX,
        UINT64_C(0x8000000000000000),
        UINT64_C(0x3ff0000000000000), /* 1.0 */
        UINT64_C(0x7ff0000000000000), /* infinity */
        UINT64_C(0x7ff8000000000000), /* quiet NaN */
        UINT64_C(0x7ff4000000000001), /* signalling NaN */
        UINT64_C(0x000fffffffffffff), /* denormal */
        UINT64_C(0x0010000000000000), /* smallest normal */
        UINT64_C(0x7fefffffffffffff), /* greatest */
        UINT64_C(0x4330000000000001),
        UINT64_C(0x3f8000003f800000), /* two singles of 1.0 */
        UINT64_C(0x7f8000007f800001),
        UINT64_C(0x0040000080400001),
        UINT64_C(0x7f7fffff00800000),
        UINT64_C(0x4b0000014f000000),
        UINT64_C(0x7fff8000ffff0001),
        UINT64_C(0x8080807f7f7f0001),
    };

    return random_below(2) == 0 ? random_u64()
                                : special[random_below(ARRAY_SIZE(special))];
}

static void fill_lanes(void *to, size_t size)
{
    for (size_t i = 0; i < size; i += 8) {
        uint64_t lane = random_lane();

        memcpy((uint8_t *)to + i, &lane, 8);
    }
}

/* ---- a case: one instruction on one state ---- */

struct case_state {
    uint8_t data[DATA_BYTES]; /* first: pages, as the guest's are */
    uint8_t guest_data[DATA_BYTES];
    struct native_state native;
    struct soft_fixture *fixture;
    const struct form *form;
    size_t size;
    uint8_t bytes[INSTRUCTION_LIMIT];
    unsigned offset; /* of the memory operand in the data pages */
    int native_vector;
    int vector;
};

static bool has_operand(const struct form *form, enum operand first, enum operand last)
{
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        if (form->operands[i] >= (unsigned)first && form->operands[i] <= (unsigned)last)
            return true;
    return false;
}

/* General registers that are no address in a case: not RBX, RSP, RBP, RDI. */
static uint8_t random_general(void)
{
    static const uint8_t numbers[] = {X86_RAX, X86_RCX, X86_RDX, X86_RSI, X86_R8,
                                      X86_R9,  X86_R10, X86_R11, X86_R14, X86_R15};

    return numbers[random_below(ARRAY_SIZE(numbers))];
}

/* ModRM and what follows. The memory operand is [rbx] or [rbx + 16]. */
static void put_modrm(struct case_state *c, uint8_t reg, uint8_t rm, bool memory)
{
    bool displacement = random_below(2) == 0;

    if (!memory) {
        c->bytes[c->size++] = (uint8_t)(0xc0 | (reg & 7) << 3 | (rm & 7));
        return;
    }
    c->bytes[c->size++] = (uint8_t)((displacement ? 0x40 : 0) | (reg & 7) << 3 | X86_RBX);
    if (displacement)
        c->bytes[c->size++] = 16;
    if (displacement)
        c->offset -= 16;
}

static void put_opcode(struct case_state *c, uint8_t rex)
{
    static const uint8_t mandatory[] = {
        [PREFIX_66] = 0x66, [PREFIX_F3] = 0xf3, [PREFIX_F2] = 0xf2};
    const struct form *form = c->form;

    if (form->prefix == PREFIX_ANY && form->size == SIZE_V && random_below(2) == 0)
        c->bytes[c->size++] = 0x66;
    if (form->prefix >= PREFIX_66)
        c->bytes[c->size++] = mandatory[form->prefix];
    if (rex != 0)
        c->bytes[c->size++] = (uint8_t)(0x40 | rex);
    if (form->map != MAP_ONE)
        c->bytes[c->size++] = 0x0f;
    if (form->map == MAP_0F38)
        c->bytes[c->size++] = 0x38;
    if (form->map == MAP_0F3A)
        c->bytes[c->size++] = 0x3a;
    c->bytes[c->size++] = form->opcode;
}

static void encode(struct case_state *c)
{
    const struct form *form = c->form;
    bool memory =
        form->modrm == MODRM_MEMORY || (form->modrm == MODRM_ANY && random_below(2) == 0);
    bool general_reg = has_operand(form, OPERAND_G, OPERAND_G64);
    bool general_rm = has_operand(form, OPERAND_E, OPERAND_E64);
    uint8_t reg = general_reg ? random_general() : (uint8_t)random_below(16);
    uint8_t rm = general_rm ? random_general() : (uint8_t)random_below(16);
    uint8_t rex = 0;

    if (form->extension >= 0)
        reg = (uint8_t)form->extension;
    if (form->rm >= 0)
        rm = (uint8_t)form->rm;
    if (form->map != MAP_ONE) {
        rex = (uint8_t)((reg >> 3) << 2 | (memory ? 0 : rm >> 3));
        if (form->size == SIZE_Y && random_below(2) == 0)
            rex |= 8;
    }
    c->size = 0;
    put_opcode(c, rex);
    if (form->modrm != MODRM_ABSENT)
        put_modrm(c, reg, rm, memory);
    if (has_operand(form, OPERAND_I8, OPERAND_I8))
        c->bytes[c->size++] =
            random_below(4) == 0 ? (uint8_t)random_below(20) : (uint8_t)random_u64();
}

/* ---- states ---- */

/* Numbers of 80 bits: valid ones of any size, small integers, and the odd ones. */
static void fill_extended(uint8_t to[16])
{
    static const uint16_t exponents[] = {0,      1,      0x3fff, 0x4000, 0x403e, 0x7ffe,
                                         0x7fff, 0xffff, 0x8000, 0xbfff, 0x3c00, 0x43ff};
    uint64_t significand = random_lane();
    uint16_t exponent = exponents[random_below(ARRAY_SIZE(exponents))];

    if (random_below(8) != 0)
        significand |= UINT64_C(1) << 63;
    if (random_below(2) == 0)
        exponent = (uint16_t)(0x3fff - 70 + random_below(140));
    if (random_below(16) == 0)
        exponent = (uint16_t)random_u64();
    if (random_below(8) == 0)
        significand = 0;
    memset(to, 0, 16);
    memcpy(to, &significand, 8);
    memcpy(to + 8, &exponent, 2);
}

static void fill_x87(struct fx_state *fx, bool unmasked)
{
    unsigned pending;

    fx->fcw = (uint16_t)(random_below(4) == 0 ? 0x37f : 0x7f | (random_u64() & 0xf00));
    fx->fsw = (uint16_t)(random_u64() & 0x7f00);
    fx->ftw = random_below(2) == 0 ? 0xff : (uint8_t)random_u64();
    if (unmasked)
        fx->fcw = (uint16_t)((fx->fcw & ~0x3fu) | (random_u64() & 0x3f));
    if (unmasked && random_below(4) == 0)
        fx->fsw |= (uint16_t)(random_u64() & 0x3f);
    pending = fx->fsw & ~(unsigned)fx->fcw & 0x3f;
    if (pending != 0)
        fx->fsw |= 0x8080;
    for (unsigned i = 0; i < 8; i++)
        fill_extended(fx->st[i]);
}

static void fill_state(struct case_state *c, bool unmasked)
{
    struct native_state *native = &c->native;

    memset(native, 0, sizeof(*native));
    fill_x87(&native->fx, unmasked);
    fill_lanes(native->fx.xmm, sizeof(native->fx.xmm));
    native->fx.mxcsr = (uint32_t)(random_u64() & 0xe040) | 0x1f80;
    if (random_below(3) == 0)
        native->fx.mxcsr |= (uint32_t)(random_u64() & 0x3f);
    if (unmasked)
        native->fx.mxcsr &= (uint32_t)random_u64() | ~UINT32_C(0x1f80);
    fill_lanes(native->r, sizeof(native->r));
    if (random_below(2) == 0) {
        native->r[X86_RAX] = random_below(40) - 20u;
        native->r[X86_RDX] = random_below(40) - 20u;
    }
    native->flags = 2 | (random_u64() & FLAGS_ARITHMETIC);
    fill_lanes(c->data, sizeof(c->data));
    for (unsigned i = 0; i < 16; i++) /* numbers where an operand of 80 bits may be */
        fill_extended(c->data + 4096 - 128 + (size_t)i * 16);
    memcpy(c->guest_data, c->data, sizeof(c->data));
}

/* ---- running ---- */

static void set_up_cpu(struct soft_cpu *cpu)
{
    cpu->cr0 = X86_CR0_PE | X86_CR0_NE | X86_CR0_ET;
    cpu->cr4 = X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT;
    cpu->efer = X86_EFER_LME | X86_EFER_LMA;
    cpu->segments[X86_CS].base = 0;
    cpu->segments[X86_CS].long_mode = true;
    cpu->segments[X86_CS].db = false;
    soft_cpu_update_mode(cpu);
}

/* One instruction at CODE_GPA; the vector it raised, or -1. */
static int run_instruction(struct soft_fixture *fixture, const uint8_t *bytes,
                           size_t size)
{
    static const uint8_t stop[2] = {0x0f, 0x0b};
    struct soft_cpu *cpu = &fixture->cpu;

    soft_fixture_write(fixture, CODE_GPA, bytes, size);
    soft_fixture_write(fixture, CODE_GPA + size, stop, sizeof(stop));
    block_cache_written(cpu, CODE_GPA, INSTRUCTION_LIMIT + 2);
    cpu->rip = CODE_GPA;
    cpu->budget = 1;
    if (setjmp(cpu->unwind) == 0) {
        struct block *block = block_find(cpu, cpu->mode | MODE_SINGLE);

        block->uops[0].run(cpu, block->uops);
        assert_int_equal(cpu->rip, CODE_GPA + size);
        return -1;
    }
    assert_int_equal(cpu->rip, CODE_GPA);
    return cpu->fault.vector;
}

static void run_soft(struct case_state *c)
{
    struct soft_cpu *cpu = &c->fixture->cpu;

    cpu->fx = c->native.fx;
    memcpy(cpu->r, c->native.r, sizeof(c->native.r));
    cpu->r[X86_RBX] = DATA_GPA + c->offset;
    cpu->r[X86_RDI] = DATA_GPA + c->offset;
    soft_flags_set(cpu, c->native.flags);
    soft_fixture_write(c->fixture, DATA_GPA, c->guest_data, DATA_BYTES);
    c->vector = run_instruction(c->fixture, c->bytes, c->size);
    soft_fixture_read(c->fixture, DATA_GPA, c->guest_data, DATA_BYTES);
}

static void run_native(struct case_state *c)
{
    c->native.r[X86_RBX] = (uint64_t)(uintptr_t)c->data + c->offset;
    c->native.r[X86_RDI] = c->native.r[X86_RBX];
    c->native_vector = native_run(&c->native, c->bytes, c->size);
}

/* ---- comparing ---- */

static void describe(const struct case_state *c, const char *what)
{
    print_message("%s: %s differs; bytes", c->form->mnemonic, what);
    for (size_t i = 0; i < c->size; i++)
        print_message(" %02x", c->bytes[i]);
    print_message(", offset %u, vector %d (host %d)\n", c->offset, c->vector,
                  c->native_vector);
}

static void same(const struct case_state *c, const char *what, const void *ours,
                 const void *theirs, size_t size)
{
    if (memcmp(ours, theirs, size) == 0)
        return;
    describe(c, what);
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)ours)[i] != ((const uint8_t *)theirs)[i])
            print_message("  byte %zu: %02x, host %02x\n", i, ((const uint8_t *)ours)[i],
                          ((const uint8_t *)theirs)[i]);
    fail();
}

static void same_number(const struct case_state *c, const char *what, uint64_t ours,
                        uint64_t theirs)
{
    if (ours == theirs)
        return;
    describe(c, what);
    fail_msg("%#lx, host %#lx", (unsigned long)ours, (unsigned long)theirs);
}

/* Pointers of the last instruction are not kept, and the mask is our own. */
static void forget_pointers(uint8_t *area)
{
    memset(area + offsetof(struct fx_state, fop), 0, 18);
    memset(area + offsetof(struct fx_state, mxcsr_mask), 0, 4);
}

static void forget_environment_pointers(const struct case_state *c, uint8_t *area)
{
    if (c->bytes[0] == 0x66)
        memset(area + 6, 0, 8);
    else
        memset(area + 12, 0, 14);
}

static void forget_saved_pointers(struct case_state *c)
{
    bool displacement = (c->bytes[c->size - 1] == 16);
    unsigned at = c->offset + (displacement ? 16 : 0);

    if (strcmp(c->form->mnemonic, "fxsave") == 0) {
        forget_pointers(c->data + at);
        forget_pointers(c->guest_data + at);
    } else if (strcmp(c->form->mnemonic, "fnsave") == 0 ||
               strcmp(c->form->mnemonic, "fnstenv") == 0) {
        forget_environment_pointers(c, c->data + at);
        forget_environment_pointers(c, c->guest_data + at);
    }
}

/* Without what is not exact beside an unmasked exception (run_unmasked in op_sse.c). */
static uint32_t exact_mxcsr(const struct case_state *c, uint32_t mxcsr)
{
    const uint32_t scaled = 0x18; /* OE UE */

    if (c->vector != X86_VECTOR_XM)
        return mxcsr;
    if (strncmp(c->form->mnemonic, "dpp", 3) == 0)
        return mxcsr | 0x3f;
    return (mxcsr & scaled & ~(mxcsr >> 7)) != 0 ? mxcsr | 0x20 : mxcsr;
}

static void compare(struct case_state *c)
{
    struct soft_cpu *cpu = &c->fixture->cpu;
    struct native_state *native = &c->native;

    same_number(c, "exception", (uint64_t)c->vector, (uint64_t)c->native_vector);
    same_number(c, "mxcsr", exact_mxcsr(c, cpu->fx.mxcsr),
                exact_mxcsr(c, native->fx.mxcsr));
    same_number(c, "fcw", cpu->fx.fcw, native->fx.fcw);
    same_number(c, "fsw", cpu->fx.fsw, native->fx.fsw);
    same_number(c, "ftw", cpu->fx.ftw, native->fx.ftw);
    for (unsigned i = 0; i < 8; i++)
        same(c, "st", cpu->fx.st[i], native->fx.st[i], 10);
    for (unsigned i = 0; i < 16; i++)
        same(c, "xmm", cpu->fx.xmm[i], native->fx.xmm[i], 16);
    native->r[X86_RBX] = cpu->r[X86_RBX];
    native->r[X86_RDI] = cpu->r[X86_RDI];
    native->r[X86_RSP] = cpu->r[X86_RSP];
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        same_number(c, "register", cpu->r[i], native->r[i]);
    same_number(c, "flags", soft_flags_get(cpu) & FLAGS_ARITHMETIC,
                native->flags & FLAGS_ARITHMETIC);
    forget_saved_pointers(c);
    same(c, "memory", c->guest_data, c->data, DATA_BYTES);
}

/* ---- the tests ---- */

/* Around the end of the first page. 16-byte operands are misaligned now and then, so that
 * they raise #GP. */
static unsigned random_offset(const struct form *form)
{
    unsigned offset = 4096 - 64 + random_below(80);
    bool state = form->select == select_fxsave && form->size == SIZE_NONE;

    if (state || has_operand(form, OPERAND_W, OPERAND_W))
        return random_below(8) == 0 ? offset : offset & ~15u;
    return offset;
}

static struct case_state *new_case(struct soft_fixture *fixture)
{
    struct case_state *c = aligned_alloc(4096, align_up(sizeof(*c), 4096));

    assert_non_null(c);
    c->fixture = fixture;
    set_up_cpu(&fixture->cpu);
    native_start();
    return c;
}

static void run_form(struct case_state *c, const struct form *form, bool unmasked)
{
    c->form = form;
    for (unsigned round = 0; round < ROUNDS; round++) {
        c->offset = random_offset(form);
        fill_state(c, unmasked);
        encode(c);
        run_soft(c);
        run_native(c);
        compare(c);
    }
}

/* Random bytes are no state that the host would load. test_vector_state.c has these. */
static bool takes_state_from_memory(const struct form *form)
{
    return form->select == select_fxsave &&
           (form->variant == FXSAVE_RESTORE || form->variant == FXSAVE_LDMXCSR);
}

static void every_form_does_what_the_host_does(void **state)
{
    struct case_state *c = new_case(*state);

    for (size_t i = 0; i < soft_vector_form_count; i++)
        if (!takes_state_from_memory(&soft_vector_forms[i]))
            run_form(c, &soft_vector_forms[i], false);
    free(c);
}

static void unmasked_exceptions_are_raised_as_the_host_does(void **state)
{
    struct case_state *c = new_case(*state);

    for (size_t i = 0; i < soft_vector_form_count; i++)
        if (!takes_state_from_memory(&soft_vector_forms[i]))
            run_form(c, &soft_vector_forms[i], true);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(every_form_does_what_the_host_does),
        SOFT_TEST(unmasked_exceptions_are_raised_as_the_host_does),
    };

    return cmocka_run_group_tests_name("soft vector", tests, NULL, NULL);
}
