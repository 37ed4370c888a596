/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing and showing; see compare.h. */
#include "compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "code.h"
#include "tolerance.h"
#include "window.h"

/* Flags that both sides have: an exception's frame has RF set, too. */
#define FLAGS_COMPARED                                                                   \
    (FLAGS_ARITHMETIC | X86_FLAGS_TF | X86_FLAGS_IF | X86_FLAGS_DF | X86_FLAGS_IOPL |    \
     X86_FLAGS_NT | X86_FLAGS_AC | X86_FLAGS_ID)

/* Of a page fault's error code, what can be told from user mode; for addresses of the
 * host not even whether the page is present. */
#define ERROR_COMPARED                                                                   \
    (X86_PF_PRESENT | X86_PF_WRITE | X86_PF_USER | X86_PF_RESERVED | X86_PF_FETCH)

/* ---- the parts ---- */

/* Outside the window what is mapped is the host's own business: its kernel, this program,
 * the address sanitizer's shadow. */
static bool is_of_the_host(const struct isa_state *native)
{
    const bool in_code = native->cr2 - WINDOW_CODE < WINDOW_CODE_BYTES;
    const bool in_data = native->cr2 - WINDOW_DATA < WINDOW_DATA_END - WINDOW_DATA;

    return !in_code && (!in_data || (native->error_code & X86_PF_FETCH) != 0);
}

static bool same_end(const struct isa_state *native, const struct isa_state *guest)
{
    uint32_t mask = native->vector == X86_VECTOR_PF ? ERROR_COMPARED : UINT32_MAX;

    if (native->end != guest->end || native->rip != guest->rip)
        return false;
    if (native->end != END_FAULT)
        return true;
    if (native->vector != guest->vector)
        return false;
    if (native->vector == X86_VECTOR_PF && native->cr2 != guest->cr2)
        return false;
    if (native->vector == X86_VECTOR_PF && is_of_the_host(native))
        mask &= ~X86_PF_PRESENT;
    return ((native->error_code ^ guest->error_code) & mask) == 0;
}

/* All but FOP, FIP and FDP, which processors keep or not as they like, and which the
 * host's own instructions change. The upper 6 bytes of an x87 register mean nothing. */
static bool same_floating_point(const struct fx_state *a, const struct fx_state *b)
{
    if (a->fcw != b->fcw || a->fsw != b->fsw || a->ftw != b->ftw ||
        a->mxcsr != b->mxcsr || memcmp(a->xmm, b->xmm, sizeof(a->xmm)) != 0)
        return false;
    for (unsigned i = 0; i < 8; i++)
        if (memcmp(a->st[i], b->st[i], 10) != 0)
            return false;
    return true;
}

static uint64_t flags_difference(const struct comparison *comparison)
{
    return (comparison->native->rflags ^ comparison->guest->rflags) & FLAGS_COMPARED;
}

/* In a block it is the instruction that has faulted on the host. */
static bool tolerable(const struct comparison *comparison)
{
    uint64_t at = comparison->native->rip - comparison->in->rip;
    struct comparison faulted = *comparison;
    struct instruction instruction;

    if (comparison->instruction != NULL)
        return tolerate(comparison);
    if (at >= comparison->code_bytes ||
        soft_decode(comparison->code + at, comparison->code_bytes - at,
                    comparison->native->rip, CODE_MODE, &instruction) != DECODE_OK)
        return false;
    faulted.instruction = &instruction;
    return tolerate(&faulted);
}

/* What 32-bit code cannot see: the upper halves of registers are undefined after a change
 * of mode. */
static void forget_upper_halves(struct isa_state *state)
{
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        state->r[i] = i < X86_R8 ? (uint32_t)state->r[i] : 0;
}

static enum comparison_result compare_exactly(const struct comparison *comparison)
{
    const struct isa_state *native = comparison->native;
    const struct isa_state *guest = comparison->guest;
    uint64_t flags = flags_difference(comparison);

    if (!same_end(native, guest) || memcmp(native->r, guest->r, sizeof(native->r)) != 0 ||
        (flags & ~comparison->undefined_flags) != 0 ||
        !same_floating_point(&native->fx, &guest->fx) ||
        memcmp(comparison->native_data, comparison->guest_data, WINDOW_DATA_BYTES) != 0)
        return COMPARISON_DIFFERENT;
    return flags != 0 ? COMPARISON_UNDEFINED : COMPARISON_EQUAL;
}

enum comparison_result compare(const struct comparison *comparison)
{
    enum comparison_result result;

    if (comparison->in->code32) {
        forget_upper_halves(comparison->native);
        forget_upper_halves(comparison->guest);
    }
    result = compare_exactly(comparison);
    if (result != COMPARISON_DIFFERENT)
        return result;
    if (tolerable(comparison) || compare_exactly(comparison) != COMPARISON_DIFFERENT)
        return COMPARISON_TOLERATED;
    return COMPARISON_DIFFERENT;
}

/* ---- reports ---- */

static const char *const names64[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                      "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                      "r12", "r13", "r14", "r15", "0"};

static void append(char *text, size_t size, const char *more)
{
    size_t length = strlen(text);

    (void)snprintf(text + length, size - length, "%s", more);
}

static void append_memory(const struct instruction *instruction, char *text, size_t size)
{
    char part[64];

    (void)snprintf(
        part, sizeof(part), "%s%d[%s%s+%s*%d%+" PRId64 "]",
        instruction->segment == X86_GS ? "gs:m" : "m", instruction->memory_size * 8,
        instruction->address_size == 4 ? "a32 " : "", names64[instruction->base],
        names64[instruction->index], 1 << instruction->scale, instruction->displacement);
    append(text, size, part);
}

static void append_register(const struct instruction *instruction, uint8_t operand,
                            unsigned number, char *text, size_t size)
{
    char part[32];
    const char *kind = "r";

    switch (operand) {
    case OPERAND_V:
    case OPERAND_W:
    case OPERAND_H:
        kind = "xmm";
        break;
    case OPERAND_P:
    case OPERAND_Q:
        kind = "mm";
        break;
    default:
        break;
    }
    (void)snprintf(part, sizeof(part), "%s%u", kind, number);
    if (kind[0] == 'r')
        (void)snprintf(part, sizeof(part), "%s/%u", names64[number & 15],
                       instruction->operand_size * 8u);
    append(text, size, part);
}

static void append_operand(const struct instruction *instruction, uint8_t operand,
                           char *text, size_t size)
{
    char part[32];

    switch (operand) {
    case OPERAND_E:
    case OPERAND_E8:
    case OPERAND_E16:
    case OPERAND_E32:
    case OPERAND_E64:
    case OPERAND_M:
    case OPERAND_W:
    case OPERAND_Q:
    case OPERAND_OFFSET:
        if (instruction->memory)
            append_memory(instruction, text, size);
        else
            append_register(instruction, operand, instruction->rm, text, size);
        return;
    case OPERAND_G:
    case OPERAND_G8:
    case OPERAND_G16:
    case OPERAND_G32:
    case OPERAND_G64:
    case OPERAND_O:
    case OPERAND_V:
    case OPERAND_P:
        append_register(instruction, operand, instruction->reg, text, size);
        return;
    case OPERAND_H:
        append_register(instruction, operand, instruction->vex_register, text, size);
        return;
    case OPERAND_A:
        append(text, size, "a");
        return;
    case OPERAND_CL:
        append(text, size, "cl");
        return;
    default:
        (void)snprintf(part, sizeof(part), "%#" PRIx64, instruction->immediate);
        append(text, size, part);
        return;
    }
}

void compare_disassemble(const struct instruction *instruction, char *text, size_t size)
{
    const struct form *form = instruction->form;
    const char *separator = " ";

    (void)snprintf(text, size, "%s%s%s", instruction->lock ? "lock " : "",
                   instruction->repeat == 0xf3   ? "rep "
                   : instruction->repeat == 0xf2 ? "repne "
                                                 : "",
                   form->mnemonic);
    for (size_t i = 0; i < ARRAY_SIZE(form->operands); i++) {
        if (form->operands[i] == OPERAND_NONE)
            continue;
        append(text, size, separator);
        append_operand(instruction, form->operands[i], text, size);
        separator = ", ";
    }
}

static void show_line(const char *name, uint64_t in, uint64_t native, uint64_t guest)
{
    if (native != guest)
        printf("    %-6s in %016" PRIx64 "  native %016" PRIx64 "  soft %016" PRIx64 "\n",
               name, in, native, guest);
}

static void show_bytes(const char *name, unsigned number, const uint8_t *in,
                       const uint8_t *native, const uint8_t *guest, size_t size)
{
    const struct {
        const char *side;
        const uint8_t *bytes;
    } sides[] = {{"in", in}, {"native", native}, {"soft", guest}};

    if (memcmp(native, guest, size) == 0)
        return;
    printf("    %s%-4x", name, number);
    for (size_t side = 0; side < ARRAY_SIZE(sides); side++) {
        printf(" %s ", sides[side].side);
        for (size_t i = size; i-- > 0;)
            printf("%02x", sides[side].bytes[i]);
    }
    printf("\n");
}

static void show_end(const char *side, const struct isa_state *state)
{
    printf("    %-6s ", side);
    if (state->end == END_ENDLESS)
        printf("never ends");
    else if (state->end == END_EXIT)
        printf("completes");
    else
        printf("faults: vector %u code %#x cr2 %#" PRIx64, state->vector,
               state->error_code, state->vector == X86_VECTOR_PF ? state->cr2 : 0);
    printf(" rip %#" PRIx64 "\n", state->rip);
}

static void show_floating_point(const struct comparison *comparison)
{
    const struct fx_state *in = &comparison->in->fx;
    const struct fx_state *native = &comparison->native->fx;
    const struct fx_state *guest = &comparison->guest->fx;

    if (same_floating_point(native, guest))
        return;
    printf("    fcw %#x fsw %#x ftw %#x mxcsr %#x at the start\n", in->fcw, in->fsw,
           in->ftw, in->mxcsr);
    show_line("fcw", in->fcw, native->fcw, guest->fcw);
    show_line("fsw", in->fsw, native->fsw, guest->fsw);
    show_line("ftw", in->ftw, native->ftw, guest->ftw);
    show_line("mxcsr", in->mxcsr, native->mxcsr, guest->mxcsr);
    for (unsigned i = 0; i < 8; i++)
        show_bytes("st", i, in->st[i], native->st[i], guest->st[i], 10);
    for (unsigned i = 0; i < 16; i++)
        show_bytes("xmm", i, in->xmm[i], native->xmm[i], guest->xmm[i], 16);
}

/* The registers the instruction names, at the start. */
static void show_inputs(const struct comparison *comparison)
{
    const uint64_t *r = comparison->in->r;

    printf("    flags %04" PRIx64, comparison->in->rflags);
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        printf("%s%s=%" PRIx64, i % 8 == 0 ? "\n      " : " ", names64[i], r[i]);
    printf("\n");
}

#define MEMORY_LINES 4

static void show_memory(const struct comparison *comparison)
{
    unsigned lines = 0;

    for (unsigned at = 0; at < WINDOW_DATA_BYTES && lines < MEMORY_LINES; at += 16) {
        if (memcmp(comparison->native_data + at, comparison->guest_data + at, 16) == 0)
            continue;
        show_bytes("data+", at, comparison->data + at, comparison->native_data + at,
                   comparison->guest_data + at, 16);
        lines++;
    }
}

static void show_code(const struct comparison *comparison)
{
    size_t at = 0;

    while (at < comparison->code_bytes) {
        struct instruction instruction;
        char text[160] = "?";

        if (soft_decode(comparison->code + at, comparison->code_bytes - at,
                        comparison->in->rip + at,
                        comparison->in->code32 ? CODE_MODE32 : CODE_MODE,
                        &instruction) != DECODE_OK)
            instruction.length = (uint8_t)(comparison->code_bytes - at);
        else
            compare_disassemble(&instruction, text, sizeof(text));
        if (comparison->instruction == NULL)
            printf("    +%02zx  ", at);
        for (size_t i = 0; i < instruction.length; i++)
            printf("%02x ", comparison->code[at + i]);
        printf(" %s\n", text);
        at += instruction.length;
    }
}

void compare_show(const struct comparison *comparison)
{
    const struct isa_state *native = comparison->native;
    const struct isa_state *guest = comparison->guest;

    show_code(comparison);
    show_inputs(comparison);
    if (!same_end(native, guest) || native->end == END_FAULT) {
        show_end("native", native);
        show_end("soft", guest);
    }
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        show_line(names64[i], comparison->in->r[i], native->r[i], guest->r[i]);
    show_line("flags", comparison->in->rflags,
              native->rflags & FLAGS_COMPARED & ~comparison->undefined_flags,
              guest->rflags & FLAGS_COMPARED & ~comparison->undefined_flags);
    show_floating_point(comparison);
    show_memory(comparison);
}
