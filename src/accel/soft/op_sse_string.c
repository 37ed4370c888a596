/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCMPESTRI PCMPESTRM PCMPISTRI PCMPISTRM: like op_sse_immediate.c a stub for each
 * immediate, of functions that take lengths too and give flags beside the result.
 */
#include "accel/soft/vector_private.h"

#define STUB_COUNT 128 /* bit 7 of the immediate means nothing */
#define STUB_BYTES 32

/* The result, or the index in its low 32 bits. */
typedef vector string_stub(vector destination, vector source, uint32_t destination_length,
                           uint32_t source_length, uint16_t *flags_packed);

/* Arguments come in EDI, ESI and RDX; the instruction has lengths in EAX and EDX, and
 * gives an index in ECX. `result`: moves that where the mask would be. */
#define DEFINE_STUBS(name, result)                                                       \
    extern const uint8_t name##_stubs[] __attribute__((visibility("hidden")));           \
    asm(".pushsection .text." #name "_stubs, \"ax\", @progbits\n"                        \
        ".balign 32\n" #name "_stubs:\n"                                                 \
        ".set stub_immediate, 0\n"                                                       \
        ".rept 128\n"                                                                    \
        "mov %edi, %eax\n"                                                               \
        "mov %rdx, %rdi\n"                                                               \
        "mov %esi, %edx\n" #name " $stub_immediate, %xmm1, %xmm0\n"                      \
        "lahf\n"                                                                         \
        "seto %al\n"                                                                     \
        "mov %ax, (%rdi)\n" result "ret\n"                                               \
        ".balign 32\n"                                                                   \
        ".set stub_immediate, stub_immediate + 1\n"                                      \
        ".endr\n"                                                                        \
        ".popsection\n");
DEFINE_STUBS(pcmpestri, "movd %ecx, %xmm0\n")
DEFINE_STUBS(pcmpistri, "movd %ecx, %xmm0\n")
DEFINE_STUBS(pcmpestrm, "")
DEFINE_STUBS(pcmpistrm, "")
#undef DEFINE_STUBS

static const uint8_t *const stubs[] = {
    [STRING_PCMPESTRI] = pcmpestri_stubs,
    [STRING_PCMPISTRI] = pcmpistri_stubs,
    [STRING_PCMPESTRM] = pcmpestrm_stubs,
    [STRING_PCMPISTRM] = pcmpistrm_stubs,
};

/* Lengths count by absolute value, up to the 16 bytes there are; with REX.W they have 64
 * bits (SDM vol. 2, 4.1.4). */
static uint32_t length_of(const struct soft_cpu *cpu, const struct uop *uop,
                          enum x86_register number)
{
    int64_t length =
        uop->size == 8 ? (int64_t)cpu->r[number] : (int64_t)(int32_t)cpu->r[number];

    if (length < -16 || length > 16)
        return 16;
    return (uint32_t)(length < 0 ? -length : length);
}

static void compare(struct soft_cpu *cpu, const struct uop *uop, vector source)
{
    enum vector_string variant = (enum vector_string)uop->form->variant;
    const uint8_t *stub =
        stubs[variant] + (uop->immediate & (STUB_COUNT - 1)) * STUB_BYTES;
    vector result = ((string_stub *)(uintptr_t)stub)(
        *vector_xmm(cpu, uop->reg), source, length_of(cpu, uop, X86_RAX),
        length_of(cpu, uop, X86_RDX), &cpu->flags_packed);

    if (variant == STRING_PCMPESTRI || variant == STRING_PCMPISTRI)
        cpu->r[X86_RCX] = (uint32_t)result[0];
    else
        *vector_xmm(cpu, 0) = result;
}

static void compare_register(struct soft_cpu *cpu, const struct uop *uop)
{
    compare(cpu, uop, *vector_xmm(cpu, uop->rm));
    NEXT(cpu, uop);
}

static void compare_load(struct soft_cpu *cpu, const struct uop *uop)
{
    compare(cpu, uop, vector_load(cpu, uop, vector_address(cpu, uop), 16));
    NEXT(cpu, uop);
}

soft_handler *select_vector_string(const struct instruction *instruction, bool flags_dead)
{
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE42);

    (void)flags_dead;
    if (unavailable != NULL)
        return unavailable;
    return instruction->memory ? compare_load : compare_register;
}
