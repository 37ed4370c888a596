/* SPDX-License-Identifier: Apache-2.0 */
/* Guests in each mode; see system_guest.h. */
#include "system_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/translator_private.h"

#define HANDLER_BYTES 16
#define VECTORS 256

/* outb %al, $0xf4 */
static const uint8_t stop_code[] = {0xe6, GUEST_STOP_PORT};

static void stop_port(void *context, uint32_t cpu_index, uint16_t number, unsigned size,
                      bool write, void *data)
{
    struct soft_fixture *fixture = context;

    if (number == GUEST_STOP_PORT) {
        soft_cpu_attend(fixture->vm.cpus[cpu_index], ATTENTION_KICK);
        return;
    }
    fixture->port = number;
    if (write)
        memcpy(&fixture->port_value, data, size);
    else
        memcpy(data, &fixture->port_value, size);
}

void guest_write64(struct soft_fixture *fixture, uint64_t gpa, uint64_t value)
{
    soft_fixture_write(fixture, gpa, &value, sizeof(value));
}

uint32_t guest_read32(struct soft_fixture *fixture, uint64_t gpa)
{
    uint32_t value;

    soft_fixture_read(fixture, gpa, &value, sizeof(value));
    return value;
}

static void write_handlers(struct soft_fixture *fixture)
{
    fixture->machine.port = stop_port;
    for (unsigned vector = 0; vector < VECTORS; vector++)
        soft_fixture_write(fixture, GUEST_HANDLERS + vector * HANDLER_BYTES, stop_code,
                           sizeof(stop_code));
}

void guest_load(struct soft_fixture *fixture, const void *code, size_t size)
{
    soft_fixture_write(fixture, GUEST_CODE, code, size);
    /* It is not the guest that writes. */
    block_cache_empty(&fixture->vm, fixture->cpu.blocks);
    translator_release(&fixture->vm, fixture->vm.translator);
}

/* ---- real mode ---- */

void guest_real(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;

    write_handlers(fixture);
    for (unsigned vector = 0; vector < VECTORS; vector++) {
        const uint16_t entry[] = {(uint16_t)(GUEST_HANDLERS + vector * HANDLER_BYTES), 0};

        soft_fixture_write(fixture, GUEST_IDT + vector * sizeof(entry), entry,
                           sizeof(entry));
    }
    cpu->idt = (struct x86_table){.base = GUEST_IDT, .limit = VECTORS * 4 - 1};
    cpu->segments[X86_CS].selector = GUEST_CODE >> 4;
    cpu->segments[X86_CS].base = GUEST_CODE;
    cpu->r[X86_RSP] = GUEST_STACK;
    cpu->rip = 0;
    soft_cpu_update_mode(cpu);
}

/* ---- descriptors ---- */

#define FLAT_CODE32 UINT64_C(0x00cf9b000000ffff)
#define FLAT_CODE64 UINT64_C(0x00af9b000000ffff)
#define FLAT_DATA UINT64_C(0x00cf93000000ffff)
#define LEVEL3 (UINT64_C(3) << 45)
#define LEVEL1 (UINT64_C(1) << 45)
#define PRESENT (UINT64_C(1) << 47)
#define CONFORMING (UINT64_C(4) << 40)
#define READABLE (UINT64_C(2) << 40)
#define BIG (UINT64_C(1) << 54)
#define TASK(base) (UINT64_C(0x0000890000000067) | (uint64_t)(base) << 16)
#define TASK_GATE(selector) (UINT64_C(0x0000850000000000) | (uint64_t)(selector) << 16)
#define CALL_GATE(selector, offset)                                                      \
    (UINT64_C(0x0000ec0000000000) | (uint64_t)(selector) << 16 | (offset))

/* The call gate goes to the handler of this vector. */
#define CALL_GATE_HANDLER (GUEST_HANDLERS + 0xff * HANDLER_BYTES)

static void set_descriptor(struct soft_fixture *fixture, unsigned selector,
                           uint64_t value)
{
    guest_write64(fixture, GUEST_GDT + (selector & ~7u), value);
}

static void write_gdt(struct soft_fixture *fixture)
{
    set_descriptor(fixture, GUEST_CS32, FLAT_CODE32);
    set_descriptor(fixture, GUEST_CS64, FLAT_CODE64);
    set_descriptor(fixture, GUEST_DS, FLAT_DATA);
    set_descriptor(fixture, GUEST_USER_CS32, FLAT_CODE32 | LEVEL3);
    set_descriptor(fixture, GUEST_USER_DS, FLAT_DATA | LEVEL3);
    set_descriptor(fixture, GUEST_USER_CS64, FLAT_CODE64 | LEVEL3);
    set_descriptor(fixture, GUEST_TR, TASK(GUEST_TSS));
    set_descriptor(fixture, GUEST_OTHER_TR, TASK(GUEST_OTHER_TSS));
    set_descriptor(fixture, GUEST_CALL_GATE, CALL_GATE(GUEST_CS32, CALL_GATE_HANDLER));
    set_descriptor(fixture, GUEST_USER_SS16, (FLAT_DATA | LEVEL3) & ~BIG);
    set_descriptor(fixture, GUEST_CONFORMING, FLAT_CODE32 | CONFORMING);
    set_descriptor(fixture, GUEST_TASK_GATE, TASK_GATE(GUEST_OTHER_TR));
    set_descriptor(fixture, GUEST_ABSENT_DS, FLAT_DATA & ~PRESENT);
    set_descriptor(fixture, GUEST_DS1, FLAT_DATA | LEVEL1);
    set_descriptor(fixture, GUEST_EXECUTE_ONLY, FLAT_CODE32 & ~READABLE);
    fixture->cpu.gdt = (struct x86_table){.base = GUEST_GDT, .limit = GUEST_GDT_LIMIT};
}

void guest_set_gate(struct soft_fixture *fixture, uint8_t vector, uint16_t selector,
                    uint8_t access, uint8_t stack_entry)
{
    bool long_mode = (fixture->cpu.efer & X86_EFER_LMA) != 0;
    uint64_t offset = GUEST_HANDLERS + vector * (uint64_t)HANDLER_BYTES;
    uint64_t gate = offset | (uint64_t)selector << 16 | (uint64_t)stack_entry << 32 |
                    (uint64_t)access << 40;

    guest_write64(fixture, GUEST_IDT + vector * (long_mode ? 16u : 8u), gate);
}

#define INTERRUPT_GATE 0x8e

static void write_idt(struct soft_fixture *fixture, uint16_t selector)
{
    unsigned bytes = (fixture->cpu.efer & X86_EFER_LMA) != 0 ? 16 : 8;

    for (unsigned vector = 0; vector < VECTORS; vector++)
        guest_set_gate(fixture, (uint8_t)vector, selector, INTERRUPT_GATE, 0);
    fixture->cpu.idt =
        (struct x86_table){.base = GUEST_IDT, .limit = (uint16_t)(VECTORS * bytes - 1)};
}

/* ---- protected and long mode ---- */

static void set_state(struct soft_fixture *fixture, const struct cpu_state *state)
{
    struct soft_cpu *cpu = &fixture->cpu;

    memcpy(cpu->segments, state->segments, sizeof(cpu->segments));
    for (unsigned i = X86_ES; i <= X86_GS; i++)
        cpu->segments[i].selector = GUEST_DS;
    cpu->segments[X86_CS].selector = state->efer != 0 ? GUEST_CS64 : GUEST_CS32;
    cpu->segments[X86_TR].selector = GUEST_TR;
    cpu->segments[X86_TR].base = GUEST_TSS;
    cpu->cr0 = state->cr0;
    cpu->cr3 = state->cr3;
    cpu->cr4 = state->cr4;
    cpu->efer = state->efer;
    cpu->r[X86_RSP] = GUEST_STACK;
    cpu->rip = GUEST_CODE;
    write_handlers(fixture);
    write_gdt(fixture);
    soft_cpu_update_mode(cpu);
    soft_tlb_flush_all(cpu);
}

void guest_protected(struct soft_fixture *fixture)
{
    const uint32_t stack[] = {GUEST_STACK0, GUEST_DS};
    struct cpu_state state;

    cpu_state_flat32(&state, GUEST_CODE, GUEST_GDT);
    set_state(fixture, &state);
    write_idt(fixture, GUEST_CS32);
    soft_fixture_write(fixture, GUEST_TSS + 4, stack, sizeof(stack));
}

/* Sixteen MiB of pages of 2 MiB, for everybody. */
static void write_page_tables(struct soft_fixture *fixture)
{
    guest_write64(fixture, GUEST_PAGES, (GUEST_PAGES + 0x1000) | 0x7);
    guest_write64(fixture, GUEST_PAGES + 0x1000, (GUEST_PAGES + 0x2000) | 0x7);
    for (uint64_t i = 0; i < 8; i++)
        guest_write64(fixture, GUEST_PAGES + 0x2000 + i * 8,
                      i * X86_LARGE_PAGE_BYTES | 0x87);
}

void guest_long(struct soft_fixture *fixture)
{
    struct cpu_state state;

    write_page_tables(fixture);
    cpu_state_long64(&state, GUEST_CODE, GUEST_PAGES, GUEST_GDT);
    state.cr0 |= X86_CR0_WP;
    set_state(fixture, &state);
    write_idt(fixture, GUEST_CS64);
    guest_write64(fixture, GUEST_TSS + 4, GUEST_STACK0);
    guest_write64(fixture, GUEST_TSS + 0x24, GUEST_STACK_TABLE);
}

void guest_to_user(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;
    bool long_mode = (cpu->efer & X86_EFER_LMA) != 0;

    for (unsigned i = X86_ES; i <= X86_GS; i++) {
        cpu->segments[i].selector = GUEST_USER_DS;
        cpu->segments[i].dpl = 3;
    }
    cpu->segments[X86_CS].selector = long_mode ? GUEST_USER_CS64 : GUEST_USER_CS32;
    cpu->cpl = 3;
    cpu->r[X86_RSP] = GUEST_USER_STACK;
    soft_cpu_update_mode(cpu);
}

/* ---- running ---- */

unsigned guest_run(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;
    struct vcpu_exit exit = {.kind = VCPU_EXIT_FAILED};
    uint64_t linear;

    soft_cpu_run(cpu, &exit);
    if (exit.kind == VCPU_EXIT_SHUTDOWN)
        return GUEST_SHUT_DOWN;
    assert_int_equal(exit.kind, VCPU_EXIT_KICKED);
    linear = soft_code_linear(cpu, cpu->rip) - sizeof(stop_code);
    if (linear >= GUEST_HANDLERS && linear < GUEST_HANDLERS + VECTORS * HANDLER_BYTES)
        return (unsigned)(linear - GUEST_HANDLERS) / HANDLER_BYTES;
    return GUEST_STOPPED;
}

uint64_t guest_stack(struct soft_fixture *fixture, unsigned number)
{
    const struct soft_cpu *cpu = &fixture->cpu;
    unsigned size = (cpu->mode & MODE_PROTECTED) == 0 ? 2 : 4;
    uint64_t value = 0;

    if ((cpu->mode & MODE_CODE64) != 0)
        size = 8;
    soft_fixture_read(
        fixture, cpu->segments[X86_SS].base + cpu->r[X86_RSP] + (uint64_t)number * size,
        &value, size);
    return value;
}

/* ---- a chain of pages ---- */

/* From GUEST_CODE to GUEST_CHAIN it is 0xf0000; the last page goes back to RBX. */
GUEST(run_chain, 64,
      "mov $3, %ecx\n"
      "xor %eax, %eax\n"
      "lea 1f(%rip), %rbx\n"
      "2: jmp run_chain + 0xf0000\n"
      "1: dec %ecx\n"
      "jnz 2b\n" GUEST_STOP);

void guest_load_chain(struct soft_fixture *fixture, uint64_t pages)
{
    static const uint8_t link[] = {0x83, 0xc0, 0x01, 0xe9, 0xf8, 0x0f, 0, 0};
    static const uint8_t last[] = {0x83, 0xc0, 0x01, 0xff, 0xe3};

    for (uint64_t i = 0; i + 1 < pages; i++)
        soft_fixture_write(fixture, GUEST_CHAIN + i * X86_PAGE_BYTES, link, sizeof(link));
    soft_fixture_write(fixture, GUEST_CHAIN + (pages - 1) * X86_PAGE_BYTES, last,
                       sizeof(last));
    GUEST_LOAD(fixture, run_chain);
}
