/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x87 instructions that compute: each runs on the host's unit, which is loaded with the
 * guest's state before and left empty after.
 *
 * The unit does what the guest's control word says, unmasked exceptions included: the
 * host never sees those, because the state is saved (FXSAVE, which does not wait) before
 * anything that would report them, and never loaded with one pending.
 */
#include <string.h>

#include "accel/soft/vector_private.h"
#include "accel/soft/x87_private.h"

/* ---- stubs: for each instruction a function that is it ---- */

/* Memory operands are at RDI. Flags go in as flags_packed in ESI and come out in AX. */
typedef uint16_t x87_stub(void *memory, uint32_t flags_packed);

#define STUB_BYTES 16
#define STUBS_MEMORY 8    /* for each opcode, by ModRM.reg */
#define STUBS_REGISTER 64 /* for each opcode, by ModRM.reg and ModRM.rm */

/* Opcodes D8h to DFh; for each, `count` ModRM bytes from `first` on, `step` apart. */
#define DEFINE_STUBS(name, first, count, step)                                           \
    extern const uint8_t name[] __attribute__((visibility("hidden")));                   \
    asm(".pushsection .text." #name ", \"ax\", @progbits\n"                              \
        ".balign 16\n" #name ":\n"                                                       \
        ".set stub_opcode, 0xd8\n"                                                       \
        ".rept 8\n"                                                                      \
        ".set stub_modrm, " #first "\n"                                                  \
        ".rept " #count "\n"                                                             \
        "mov %esi, %eax\n"                                                               \
        "addb $127, %al\n"                                                               \
        "sahf\n"                                                                         \
        ".byte stub_opcode, stub_modrm\n"                                                \
        "lahf\n"                                                                         \
        "seto %al\n"                                                                     \
        "ret\n"                                                                          \
        ".balign 16\n"                                                                   \
        ".set stub_modrm, stub_modrm + " #step "\n"                                      \
        ".endr\n"                                                                        \
        ".set stub_opcode, stub_opcode + 1\n"                                            \
        ".endr\n"                                                                        \
        ".popsection\n");
DEFINE_STUBS(x87_memory_stubs, 0x07, 8, 8) /* mod 0, rm 7: [rdi] */
DEFINE_STUBS(x87_register_stubs, 0xc0, 64, 1)
#undef DEFINE_STUBS

/* FXRSTOR brings MXCSR and the XMM registers too. */
#define XMM_CLOBBERS                                                                     \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",      \
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define MXCSR_HOST 0x1f80u

static __attribute__((noinline)) uint16_t execute(struct soft_cpu *cpu,
                                                  const uint8_t *stub, void *memory)
{
    const uint32_t host_mxcsr = MXCSR_HOST;
    const uint32_t mask = cpu->fx.mxcsr_mask;
    uint16_t flags;

    asm volatile("fxrstor64 %0" : : "m"(cpu->fx) : XMM_CLOBBERS, "memory");
    flags = ((x87_stub *)(uintptr_t)stub)(memory, cpu->flags_packed);
    asm volatile("fxsave64 %0\n\tfninit\n\tldmxcsr %1"
                 : "=m"(cpu->fx)
                 : "m"(host_mxcsr)
                 : XMM_CLOBBERS, "memory");
    cpu->fx.mxcsr_mask = mask;
    cpu->fx.fop = 0;
    cpu->fx.fip = 0;
    cpu->fx.fdp = 0;
    return flags;
}

static const uint8_t *register_stub(const struct uop *uop)
{
    unsigned number = (unsigned)(uop->form->opcode - 0xd8) * STUBS_REGISTER +
                      (unsigned)(uop->reg & 7) * 8 + (uop->rm & 7);

    return x87_register_stubs + (size_t)number * STUB_BYTES;
}

static const uint8_t *memory_stub(const struct uop *uop)
{
    unsigned number =
        (unsigned)(uop->form->opcode - 0xd8) * STUBS_MEMORY + (uop->reg & 7);

    return x87_memory_stubs + (size_t)number * STUB_BYTES;
}

/* ---- handlers ---- */

/* 80-bit numbers (extended precision, packed decimal) have no operand size. */
#define EXTENDED_BYTES 10

static unsigned operand_bytes(const struct uop *uop)
{
    return uop->size != 0 ? uop->size : EXTENDED_BYTES;
}

static void on_stack(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    (void)execute(cpu, register_stub(uop), NULL);
    NEXT(cpu, uop);
}

/* FCOMI and its like. */
static void compare_flags(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    cpu->flags_packed = execute(cpu, register_stub(uop), NULL);
    NEXT(cpu, uop);
}

static void load(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    soft_load_bytes(cpu, uop, soft_address(cpu, uop), cpu->scratch, operand_bytes(uop));
    (void)execute(cpu, memory_stub(uop), cpu->scratch);
    NEXT(cpu, uop);
}

/* An unmasked exception other than "inexact" keeps the result from memory (SDM vol. 1,
 * 8.5). */
static void store(struct soft_cpu *cpu, const struct uop *uop)
{
    const unsigned keep = X87_STATUS_IE | X87_STATUS_DE | X87_STATUS_OE | X87_STATUS_UE;
    uint64_t linear = soft_address(cpu, uop);
    unsigned size = operand_bytes(uop);
    unsigned raised;

    x87_check_pending(cpu, uop);
    soft_check_store(cpu, uop, linear, size);
    (void)execute(cpu, memory_stub(uop), cpu->scratch);
    raised = cpu->fx.fsw & ~(unsigned)cpu->fx.fcw;
    if ((raised & keep) == 0)
        soft_store_bytes(cpu, uop, linear, cpu->scratch, size);
    NEXT(cpu, uop);
}

soft_handler *select_x87(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [X87_STACK] = on_stack,
        [X87_COMPARE_FLAGS] = compare_flags,
        [X87_LOAD] = load,
        [X87_STORE] = store,
    };
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE2);

    (void)flags_dead;
    return unavailable != NULL ? unavailable : handlers[instruction->form->variant];
}
