/* SPDX-License-Identifier: Apache-2.0 */
/* MOV to and from control and debug registers, CLTS, LMSW, SMSW, descriptor-table
 * registers, INVLPG. */
#include "accel/soft/control_private.h"
#include "accel/soft/debug_private.h"
#include "accel/soft/system_private.h"

/* ---- control registers
 * ---------------------------------------------------------------------- */

#define TASK_PRIORITY_LIMIT 15

/* Processors have 0, 2, 3, 4 and, in 64-bit mode, 8. */
static void check_control_register(struct soft_cpu *cpu, const struct uop *uop)
{
    static const uint16_t known = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8;

    if ((known >> uop->reg & 1) == 0)
        soft_raise(cpu, uop, X86_VECTOR_UD);
    soft_check_supervisor(cpu, uop);
}

static uint64_t read_control_register(const struct soft_cpu *cpu, unsigned number)
{
    switch (number) {
    case 0:
        return cpu->cr0;
    case 2:
        return cpu->cr2;
    case 3:
        return cpu->cr3;
    case 4:
        return cpu->cr4;
    default:
        return cpu->irq->get_priority(cpu->irq->context);
    }
}

static void move_from_control(struct soft_cpu *cpu, const struct uop *uop)
{
    check_control_register(cpu, uop);
    soft_register_set(cpu, uop->rm, uop->size, read_control_register(cpu, uop->reg));
    NEXT(cpu, uop);
}

static void write_task_priority(struct soft_cpu *cpu, const struct uop *uop,
                                uint64_t value)
{
    if (value > TASK_PRIORITY_LIMIT)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    cpu->irq->set_priority(cpu->irq->context, (uint8_t)value);
    soft_cpu_attend(cpu, ATTENTION_INTERRUPT);
}

static void move_to_control(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t value = soft_register_get(cpu, uop->rm, uop->size);

    check_control_register(cpu, uop);
    switch (uop->reg) {
    case 0:
        control_write_cr0(cpu, uop, value);
        break;
    case 2:
        cpu->cr2 = value;
        break;
    case 3:
        control_write_cr3(cpu, uop, value);
        break;
    case 4:
        control_write_cr4(cpu, uop, value);
        break;
    default:
        write_task_priority(cpu, uop, value);
        break;
    }
    system_end(cpu, uop);
}

static void clear_task_switched(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_check_supervisor(cpu, uop);
    cpu->cr0 &= ~X86_CR0_TS;
    soft_cpu_update_mode(cpu);
    system_end(cpu, uop);
}

/* ---- machine status word: CR0's low half
 * -------------------------------------------------------- */

#define STATUS_WORD (X86_CR0_PE | X86_CR0_MP | X86_CR0_EM | X86_CR0_TS)

/* LMSW sets PE but does not clear it. */
static void load_status_word(struct soft_cpu *cpu, const struct uop *uop, bool memory)
{
    uint64_t value;

    soft_check_supervisor(cpu, uop);
    value = system_operand16(cpu, uop, memory) | (cpu->cr0 & X86_CR0_PE);
    control_write_cr0(cpu, uop, (cpu->cr0 & ~STATUS_WORD) | (value & STATUS_WORD));
    system_end(cpu, uop);
}

static void lmsw_register(struct soft_cpu *cpu, const struct uop *uop)
{
    load_status_word(cpu, uop, false);
}

static void lmsw_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    load_status_word(cpu, uop, true);
}

static void smsw_register(struct soft_cpu *cpu, const struct uop *uop)
{
    system_check_umip(cpu, uop);
    soft_register_set(cpu, uop->rm, uop->size, cpu->cr0);
    NEXT(cpu, uop);
}

static void smsw_memory(struct soft_cpu *cpu, const struct uop *uop)
{
    system_check_umip(cpu, uop);
    soft_store16(cpu, uop, soft_address(cpu, uop), (uint16_t)cpu->cr0);
    NEXT(cpu, uop);
}

/* ---- debug registers
 * ---------------------------------------------------------------------------- */

static void move_from_debug(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_register_set(cpu, uop->rm, uop->size,
                      cpu->dr[debug_register(cpu, uop, uop->reg)]);
    NEXT(cpu, uop);
}

static void move_to_debug(struct soft_cpu *cpu, const struct uop *uop)
{
    debug_write(cpu, uop, debug_register(cpu, uop, uop->reg),
                soft_register_get(cpu, uop->rm, uop->size));
    system_end(cpu, uop);
}

/* ---- GDTR and IDTR
 * ------------------------------------------------------------------------------ */

/* The operand is a limit of 16 bits and a base of 64 or 32, of which a 16-bit operand
 * size counts 24 (SDM vol. 2, LGDT). */
static void store_table(struct soft_cpu *cpu, const struct uop *uop,
                        const struct x86_table *table)
{
    unsigned base_bytes = soft_in_64bit_code(cpu) ? 8 : 4;
    uint8_t image[10];

    system_check_umip(cpu, uop);
    store_le16(image, table->limit);
    store_le64(image + 2, table->base);
    soft_store_bytes(cpu, uop, soft_address(cpu, uop), image, 2 + base_bytes);
}

static void load_table(struct soft_cpu *cpu, const struct uop *uop,
                       struct x86_table *table)
{
    bool code64 = soft_in_64bit_code(cpu);
    uint8_t image[10] = {0};
    uint64_t base;

    soft_check_supervisor(cpu, uop);
    soft_load_bytes(cpu, uop, soft_address(cpu, uop), image, code64 ? 10 : 6);
    base = load_le64(image + 2);
    if (!code64 && uop->size == 2)
        base &= 0xffffff;
    if (!linear_is_canonical(base))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    *table = (struct x86_table){.base = base, .limit = load_le16(image)};
}

static void sgdt(struct soft_cpu *cpu, const struct uop *uop)
{
    store_table(cpu, uop, &cpu->gdt);
    NEXT(cpu, uop);
}

static void sidt(struct soft_cpu *cpu, const struct uop *uop)
{
    store_table(cpu, uop, &cpu->idt);
    NEXT(cpu, uop);
}

static void lgdt(struct soft_cpu *cpu, const struct uop *uop)
{
    load_table(cpu, uop, &cpu->gdt);
    NEXT(cpu, uop);
}

static void lidt(struct soft_cpu *cpu, const struct uop *uop)
{
    load_table(cpu, uop, &cpu->idt);
    NEXT(cpu, uop);
}

/* ---- INVLPG
 * -------------------------------------------------------------------------------------
 */

static void invlpg(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_check_supervisor(cpu, uop);
    soft_tlb_flush_page(cpu, soft_address(cpu, uop));
    system_end(cpu, uop);
}

/* ---- INVPCID (SDM vol. 2)
 * ------------------------------------------------------------------------ */

enum invpcid_type {
    INVPCID_ADDRESS,
    INVPCID_CONTEXT,
    INVPCID_ALL,
    INVPCID_ALL_BUT_GLOBAL,
    INVPCID_TYPES
};
#define INVPCID_CONTEXT_LIMIT 0xfff

/* The TLBs do not tell contexts apart: each kind drops at least what it should. */
static void invpcid(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t type = soft_register_get(cpu, uop->reg, uop->size);
    uint8_t descriptor[16];
    uint64_t context;
    uint64_t linear;

    soft_check_supervisor(cpu, uop);
    soft_load_bytes(cpu, uop, soft_address(cpu, uop), descriptor, sizeof(descriptor));
    context = load_le64(descriptor);
    linear = load_le64(descriptor + 8);
    if (type >= INVPCID_TYPES || context > INVPCID_CONTEXT_LIMIT ||
        (type == INVPCID_ADDRESS && !linear_is_canonical(linear)) ||
        (type <= INVPCID_CONTEXT && context != 0 && (cpu->cr4 & X86_CR4_PCIDE) == 0))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    if (type == INVPCID_ADDRESS)
        soft_tlb_flush_page(cpu, linear);
    else if (type == INVPCID_ALL)
        soft_tlb_flush_all(cpu);
    else
        soft_tlb_flush_non_global(cpu);
    system_end(cpu, uop);
}

soft_handler *select_control(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [CONTROL_FROM_CR] = move_from_control,
        [CONTROL_TO_CR] = move_to_control,
        [CONTROL_FROM_DR] = move_from_debug,
        [CONTROL_TO_DR] = move_to_debug,
        [CONTROL_CLTS] = clear_task_switched,
        [CONTROL_LMSW_REGISTER] = lmsw_register,
        [CONTROL_LMSW_MEMORY] = lmsw_memory,
        [CONTROL_SMSW_REGISTER] = smsw_register,
        [CONTROL_SMSW_MEMORY] = smsw_memory,
        [CONTROL_SGDT] = sgdt,
        [CONTROL_SIDT] = sidt,
        [CONTROL_LGDT] = lgdt,
        [CONTROL_LIDT] = lidt,
        [CONTROL_INVLPG] = invlpg,
        [CONTROL_INVPCID] = invpcid,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}
