/* SPDX-License-Identifier: Apache-2.0 */
/* See integer_guest.h. */
#include "integer_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "accel/soft/access_private.h"
#include "accel/soft/blocks_private.h"
#include "accel/soft/flow_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/translator/translator_private.h"
#include "accel/soft/translator/vectors_private.h"

#define PML4 UINT64_C(0x1000)
#define PDPT UINT64_C(0x2000)
#define PD UINT64_C(0x3000)
#define CODE_LIMIT 128
#define PTE (X86_PTE_PRESENT | X86_PTE_WRITABLE | X86_PTE_USER)

static void put_entry(struct soft_fixture *fixture, uint64_t table, uint64_t index,
                      uint64_t entry)
{
    soft_fixture_write(fixture, table + index * 8, &entry, 8);
}

static void set_segments(struct soft_cpu *cpu, bool db, bool long_mode, uint32_t limit)
{
    for (unsigned i = 0; i <= X86_GS; i++)
        cpu->segments[i] = (struct x86_segment){
            .limit = limit,
            .selector = 8,
            .type = i == X86_CS ? X86_TYPE_CODE_READ_EXECUTE_ACCESSED
                                : X86_TYPE_DATA_READ_WRITE_ACCESSED,
            .present = true,
            .code_or_data = true,
            .db = db,
            .long_mode = i == X86_CS && long_mode,
        };
    soft_cpu_update_mode(cpu);
    soft_tlb_flush_all(cpu);
}

void guest_enter_code64(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;

    put_entry(fixture, PML4, 0, PDPT | PTE);
    put_entry(fixture, PDPT, 0, PD | PTE);
    put_entry(fixture, PD, 0, 0 | PTE | X86_PTE_LARGE);
    put_entry(fixture, PD, GUEST_DATA / X86_LARGE_PAGE_BYTES,
              GUEST_DATA_GPA | PTE | X86_PTE_LARGE);
    cpu->cr0 = X86_CR0_PE | X86_CR0_PG | X86_CR0_WP | X86_CR0_ET;
    cpu->cr3 = PML4;
    cpu->cr4 = X86_CR4_PAE;
    cpu->efer = X86_EFER_LME | X86_EFER_LMA;
    set_segments(cpu, false, true, UINT32_MAX);
}

void guest_enter_code32(struct soft_fixture *fixture)
{
    fixture->cpu.cr0 = X86_CR0_PE | X86_CR0_ET;
    set_segments(&fixture->cpu, true, false, UINT32_MAX);
}

void guest_enter_code16(struct soft_fixture *fixture)
{
    fixture->cpu.cr0 = X86_CR0_PE | X86_CR0_ET;
    set_segments(&fixture->cpu, false, false, UINT16_MAX);
}

unsigned guest_continue(struct soft_fixture *fixture)
{
    struct soft_cpu *cpu = &fixture->cpu;

    if (setjmp(cpu->unwind) != 0) {
        vectors_save(cpu);
        return cpu->fault.vector;
    }
    for (;;) {
        struct block *block;

        if (atomic_load(&cpu->attention) == 0 && translator_serves(cpu) &&
            translator_run(cpu))
            continue;
        cpu->budget = FLOW_BUDGET;
        block = block_find(cpu, cpu->mode);
        block->uops[0].run(cpu, block->uops);
    }
}

unsigned guest_run(struct soft_fixture *fixture, const uint8_t *code, size_t size)
{
    static const uint8_t end[] = {0x0f, 0x0b};
    struct soft_cpu *cpu = &fixture->cpu;
    uint64_t gpa = cpu->segments[X86_CS].limit == UINT16_MAX ? 0x1000 : GUEST_CODE;

    assert_true(size + sizeof(end) <= CODE_LIMIT);
    soft_fixture_write(fixture, gpa, code, size);
    soft_fixture_write(fixture, gpa + size, end, sizeof(end));
    block_cache_written(cpu, gpa, CODE_LIMIT); /* whatever ran there before */
    cpu->rip = gpa;
    return guest_continue(fixture);
}
