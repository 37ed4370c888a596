/* SPDX-License-Identifier: Apache-2.0 */
/*
 * General instructions on the software CPU against the same bytes on this processor: all
 * forms that ring 3 may run and that neither branch nor move the stack pointer, with
 * random operands, registers, flags and memory; with their flags alive, and dead.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "accel/soft/handlers_private.h"
#include "accel/soft/instruction_private.h"
#include "effort.h"
#include "integer_guest.h"

#define ROUNDS EFFORT(400) /* of each form */
#define CODE_LIMIT 64

/* ---- this processor
 * ---------------------------------------------------------------- */

struct native_state {
    uint64_t r[X86_REGISTER_COUNT];
    uint64_t flags;
};
struct native_state native_state;
uint64_t native_stack;
void *native_code;
void native_run(void);
void native_back(void);

/* Loads native_state, runs native_code, which jumps to native_back, and stores it again;
 * all but RSP. */
asm(".text\n"
    "native_run:\n"
    "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, native_stack(%rip)\n"
    "pushq native_state+128(%rip)\n"
    "mov native_state+0(%rip), %rax; mov native_state+8(%rip), %rcx\n"
    "mov native_state+16(%rip), %rdx; mov native_state+24(%rip), %rbx\n"
    "mov native_state+40(%rip), %rbp; mov native_state+48(%rip), %rsi\n"
    "mov native_state+56(%rip), %rdi; mov native_state+64(%rip), %r8\n"
    "mov native_state+72(%rip), %r9; mov native_state+80(%rip), %r10\n"
    "mov native_state+88(%rip), %r11; mov native_state+96(%rip), %r12\n"
    "mov native_state+104(%rip), %r13; mov native_state+112(%rip), %r14\n"
    "mov native_state+120(%rip), %r15\n"
    "popfq\n"
    "jmp *native_code(%rip)\n"
    "native_back:\n"
    "mov %rax, native_state+0(%rip); mov %rcx, native_state+8(%rip)\n"
    "mov %rdx, native_state+16(%rip); mov %rbx, native_state+24(%rip)\n"
    "mov %rbp, native_state+40(%rip); mov %rsi, native_state+48(%rip)\n"
    "mov %rdi, native_state+56(%rip); mov %r8, native_state+64(%rip)\n"
    "mov %r9, native_state+72(%rip); mov %r10, native_state+80(%rip)\n"
    "mov %r11, native_state+88(%rip); mov %r12, native_state+96(%rip)\n"
    "mov %r13, native_state+104(%rip); mov %r14, native_state+112(%rip)\n"
    "mov %r15, native_state+120(%rip)\n"
    "pushfq; popq native_state+128(%rip)\n"
    "cld\n"
    "mov native_stack(%rip), %rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "ret\n");

static volatile sig_atomic_t native_faulted;

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;

    (void)number;
    (void)info;
    native_faulted = 1;
    at->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)native_back;
}

static void put_native_code(const uint8_t *code, size_t size)
{
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};
    uint64_t back = (uint64_t)(uintptr_t)native_back;

    memcpy(native_code, code, size);
    memcpy((uint8_t *)native_code + size, jump, sizeof(jump));
    memcpy((uint8_t *)native_code + size + sizeof(jump), &back, sizeof(back));
}

static uint8_t *native_data(void)
{
    return (uint8_t *)(uintptr_t)GUEST_DATA;
}

static int set_up_native(void **state)
{
    (void)state;
    native_code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(native_code, MAP_FAILED);
    assert_ptr_equal(mmap(native_data(), GUEST_DATA_BYTES, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                     native_data());
    return 0;
}

/* ---- random instructions
 * ---------------------------------------------------------------- */

static uint64_t random_state = 88172645463325252u;

static uint64_t random64(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Values near the edges of every size are as frequent as any others. */
static uint64_t random_operand(void)
{
    static const uint64_t edges[] = {
        0,          1,      2,          0x7f,       0x80,       0xff,      0x7fff,
        0x8000,     0xffff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, 1ull << 63,
        UINT64_MAX, 0x100,  0x9999999a, 31,         32,         63};
    uint64_t value = random64();

    if (value % 3 == 0)
        return edges[(value >> 8) % ARRAY_SIZE(edges)];
    return value % 3 == 1 ? value >> (value >> 8) % 64 : value;
}

struct trial {
    const struct form *form;
    uint8_t code[CODE_LIMIT];
    size_t size;
    struct native_state before;
    uint8_t data[GUEST_DATA_BYTES];
};

static void put(struct trial *trial, uint64_t value, size_t bytes)
{
    memcpy(trial->code + trial->size, &value, bytes);
    trial->size += bytes;
}

static bool is_string(const struct form *form)
{
    return (form->attributes & (FORM_REP | FORM_REPZ)) != 0;
}

static size_t immediate_bytes(uint8_t operand, bool operand_prefix, bool wide)
{
    switch (operand) {
    case OPERAND_I8:
    case OPERAND_IS8:
        return 1;
    case OPERAND_IZ:
        return operand_prefix && !wide ? 2 : 4;
    case OPERAND_IV:
        return wide ? 8 : operand_prefix ? 2 : 4;
    default:
        return 0;
    }
}

/* Prefixes, opcode, ModRM [and SIB, displacement], immediates. Memory is [rbx + disp8] or
 * [rbx + rsi * 2 + disp32]. */
static void make_code(struct trial *trial)
{
    const struct form *form = trial->form;
    uint64_t random = random64();
    bool operand_prefix = (random & 3) == 0 && form->prefix == PREFIX_ANY;
    uint8_t rex = (random & 0xc) != 0 ? 0x40 | (random >> 4 & 0xd) : 0; /* no REX.X */
    bool memory = form->modrm == MODRM_MEMORY ||
                  (form->modrm == MODRM_ANY && (random & 0x100) != 0);
    unsigned reg = (unsigned)(random >> 12 & 7);
    unsigned rm = random >> 16 & 7;

    trial->size = 0;
    if (form->extension >= 0)
        reg = (unsigned)form->extension;
    if (operand_prefix)
        put(trial, 0x66, 1);
    if (is_string(form) && (random & 0x200) != 0)
        put(trial, (random & 0x400) != 0 ? 0xf3 : 0xf2, 1);
    if (form->prefix == PREFIX_F3)
        put(trial, 0xf3, 1);
    if (form->prefix == PREFIX_F2)
        put(trial, 0xf2, 1);
    if (memory && (form->attributes & FORM_LOCK) != 0 && (random & 0x800) != 0)
        put(trial, 0xf0, 1);
    if (memory)
        rex &= 0x4c; /* the base is RBX */
    if (rex != 0)
        put(trial, rex, 1);
    if (form->map != MAP_ONE)
        put(trial, 0x0f, 1);
    if (form->map == MAP_0F38)
        put(trial, 0x38, 1);
    put(trial, form->opcode + (random >> 20) % form->opcode_count, 1);
    if (form->modrm != MODRM_ABSENT && memory && (random & 0x1000000) != 0) {
        put(trial, 0x80 | reg << 3 | 4, 1);
        put(trial, 0x40 | 6 << 3 | 3, 1);
        put(trial, 0x40, 4);
    } else if (form->modrm != MODRM_ABSENT && memory) {
        put(trial, 0x40 | reg << 3 | 3, 1);
        put(trial, 0x10, 1);
    } else if (form->modrm != MODRM_ABSENT) {
        put(trial, 0xc0 | reg << 3 | rm, 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++)
        put(trial, random_operand(),
            immediate_bytes(form->operands[i], operand_prefix, (rex & 8) != 0));
}

/* RSP stays out of it: as an operand the two sides have different ones. */
static bool touches_stack_pointer(const struct instruction *instruction)
{
    for (size_t i = 0; i < ARRAY_SIZE(instruction->form->operands); i++) {
        uint8_t operand = instruction->form->operands[i];
        bool narrow = operand == OPERAND_E8 || operand == OPERAND_G8 ||
                      (operand == OPERAND_O && instruction->operand_size == 1);
        bool is_rm = operand >= OPERAND_E && operand <= OPERAND_E64;
        bool is_reg = operand >= OPERAND_G && operand <= OPERAND_O;

        if (narrow && !instruction->has_rex)
            continue;
        if (is_rm && !instruction->memory && instruction->rm == X86_RSP)
            return true;
        if (is_reg && instruction->reg == X86_RSP)
            return true;
    }
    return false;
}

/* The base would be a bit offset as well, and reach far out of the data. */
static bool tests_bit_of_base(const struct instruction *instruction)
{
    return instruction->form->select == select_bit_test && instruction->memory &&
           instruction->reg == X86_RBX;
}

/* A word in the middle of the data, which bit strings reach around. */
static void make_state(struct trial *trial, const struct instruction *instruction)
{
    const uint64_t middle = GUEST_DATA + GUEST_DATA_BYTES / 2;
    uint64_t random = random64();

    for (size_t i = 0; i < X86_REGISTER_COUNT; i++)
        trial->before.r[i] = random_operand();
    trial->before.flags = (random & FLAGS_ARITHMETIC) | 0x202;
    for (size_t i = 0; i < GUEST_DATA_BYTES; i += 8) {
        uint64_t value = random_operand();

        memcpy(trial->data + i, &value, 8);
    }
    if (instruction->memory && instruction->form->select == select_bit_test)
        trial->before.r[instruction->reg] = (uint64_t)((int64_t)random64() >> 50);
    if (instruction->memory) {
        trial->before.r[X86_RSI] = random >> 32 & 0x1f;
        trial->before.r[X86_RBX] = middle + (random >> 40 & 0x3f);
    }
    if (is_string(instruction->form)) {
        uint64_t distance = (random >> 48 & 1) != 0 ? random >> 50 & 0x1f : random >> 53;

        trial->before.r[X86_RSI] = middle + (random >> 32 & 0x3f);
        trial->before.r[X86_RDI] = trial->before.r[X86_RSI] + distance;
        trial->before.r[X86_RCX] = random & 0x3f;
        if ((random & 0x10000) != 0)
            trial->before.flags |= X86_FLAGS_DF;
        if ((random & 0x20000) != 0) /* much that is equal */
            memset(trial->data, (int)random_operand(), sizeof(trial->data));
    }
}

/* ---- comparison
 * ---------------------------------------------------------------- */

static void describe(const struct trial *trial, const struct soft_cpu *cpu,
                     const char *what)
{
    print_error("%s: %s differ:", trial->form->mnemonic, what);
    for (size_t i = 0; i < trial->size; i++)
        print_error(" %02x", trial->code[i]);
    print_error("\n");
    for (size_t i = 0; i < X86_REGISTER_COUNT; i++)
        print_error("  r%-2zu before %016llx native %016llx soft %016llx\n", i,
                    (unsigned long long)trial->before.r[i],
                    (unsigned long long)native_state.r[i], (unsigned long long)cpu->r[i]);
    print_error("  flags before %llx native %llx soft %llx\n",
                (unsigned long long)trial->before.flags,
                (unsigned long long)native_state.flags,
                (unsigned long long)soft_flags_get(cpu));
}

static void run_native(const struct trial *trial)
{
    native_state = trial->before;
    native_faulted = 0;
    memcpy(native_data(), trial->data, GUEST_DATA_BYTES);
    put_native_code(trial->code, trial->size);
    native_run();
}

static void compare(struct soft_fixture *fixture, const struct trial *trial,
                    uint64_t undefined)
{
    static uint8_t data[GUEST_DATA_BYTES];
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t mask = (FLAGS_ARITHMETIC | X86_FLAGS_DF) & ~undefined;
    unsigned vector;

    run_native(trial);
    memcpy(cpu->r, trial->before.r, sizeof(trial->before.r));
    soft_flags_set(cpu, trial->before.flags);
    soft_fixture_write(fixture, GUEST_DATA_GPA, trial->data, GUEST_DATA_BYTES);
    vector = guest_run(fixture, trial->code, trial->size);
    assert_int_equal(vector, native_faulted ? X86_VECTOR_DE : X86_VECTOR_UD);
    if (!native_faulted && cpu->rip != GUEST_CODE + trial->size) {
        describe(trial, cpu, "lengths");
        fail();
    }
    native_state.r[X86_RSP] = cpu->r[X86_RSP];
    if (memcmp(native_state.r, cpu->r, sizeof(native_state.r)) != 0) {
        describe(trial, cpu, "registers");
        fail();
    }
    if (!native_faulted && ((native_state.flags ^ soft_flags_get(cpu)) & mask) != 0) {
        describe(trial, cpu, "flags");
        fail();
    }
    soft_fixture_read(fixture, GUEST_DATA_GPA, data, sizeof(data));
    if (memcmp(data, native_data(), sizeof(data)) != 0) {
        describe(trial, cpu, "memory");
        fail();
    }
}

/* ---- tests
 * ---------------------------------------------------------------- */

/* What can be run here: no branches, stack, other modes, #UD; nothing with an address in
 * the instruction. */
static bool can_run_native(const struct form *form)
{
    const uint32_t not_here = FORM_NOT_64 | FORM_ENDS;
    bool integer =
        form >= soft_integer_forms && form < soft_integer_forms + soft_integer_form_count;

    if (!integer || (form->attributes & not_here) != 0 ||
        form->operands[0] == OPERAND_OFFSET || form->operands[1] == OPERAND_OFFSET)
        return false;
    return form->select != select_stack && form->select != select_exchange_double &&
           !(form->select == select_misc && form->variant == MISC_XLAT);
}

/* cmp %r15, %r14: nobody sees the flags from before. */
static const uint8_t flag_killer[] = {0x4d, 0x39, 0xfe};

static void run_trial(struct soft_fixture *fixture, struct trial *trial)
{
    struct instruction instruction;
    uint64_t undefined = trial->form->flags.undefined;

    make_code(trial);
    assert_int_equal(soft_decode(trial->code, trial->size + 15, GUEST_CODE,
                                 MODE_CODE64 | MODE_LONG, &instruction),
                     DECODE_OK);
    assert_int_equal(instruction.length, trial->size);
    if (instruction.form != trial->form || touches_stack_pointer(&instruction) ||
        tests_bit_of_base(&instruction))
        return;
    make_state(trial, &instruction);
    compare(fixture, trial, undefined);
    memcpy(trial->code + trial->size, flag_killer, sizeof(flag_killer));
    trial->size += sizeof(flag_killer);
    compare(fixture, trial, 0);
}

static void agrees_with_this_processor(void **state)
{
    static struct trial trial;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct soft_fixture *fixture = *state;
    size_t forms = 0;

    /* Here, for cmocka has its own around each test. */
    assert_int_equal(sigaction(SIGFPE, &action, NULL), 0);
    guest_enter_code64(fixture);
    for (size_t i = 0; i < soft_integer_form_count; i++) {
        if (!can_run_native(&soft_integer_forms[i]))
            continue;
        forms++;
        trial.form = &soft_integer_forms[i];
        for (unsigned round = 0; round < ROUNDS; round++)
            run_trial(fixture, &trial);
    }
    assert_true(forms > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SOFT_TEST(agrees_with_this_processor),
    };

    return cmocka_run_group_tests(tests, set_up_native, NULL);
}
