/* SPDX-License-Identifier: Apache-2.0 */
/* CLI, STI, PUSHF: what a kernel does around each lock; SWAPGS and RDPKRU, as it does
 * whenever it is entered or left; STAC and CLAC, around each access to a program's data.
 */
#include "accel/soft/handlers_private.h"
#include "accel/soft/translator/rules_private.h"

/* An instruction with a memory operand in soft_cpu and an immediate: AND OR CMP TEST. */
static void with_state(struct emitter *e, uint8_t opcode, unsigned extension,
                       struct host_memory place, unsigned bytes, uint32_t immediate)
{
    encode(&e->hot, &(struct host_instruction){.opcode = {opcode},
                                               .opcode_bytes = 1,
                                               .reg = (uint8_t)extension,
                                               .is_memory = true,
                                               .memory = place,
                                               .immediate_bytes = (uint8_t)bytes,
                                               .immediate = immediate});
}

/* What else than CPL 0 does with these the interpreter knows. */
static uint32_t require_supervisor(struct emitter *e)
{
    uint32_t cold = emit_cold_call(e, e->translator->step, emit_site(e));

    with_state(e, 0x80, 7, STATE(cpl), 1, 0); /* cmp byte, 0 */
    encode_jump_if(&e->hot, CONDITION_NE, cold);
    return cold;
}

static void clear_interrupts(struct emitter *e)
{
    with_state(e, 0x81, 4, STATE(flags_system), 4, ~(uint32_t)X86_FLAGS_IF);
}

/* No interrupt comes before the next instruction is done: it is in this block, and none
 * comes within blocks. One that waits is the interpreter's. Nor may that instruction
 * leave the block before it is done, as its first vector instruction could (see
 * is_native) or the first access of a group (group.c). */
static void set_interrupts(struct emitter *e, uint32_t cold)
{
    with_state(e, 0x80, 7, STATE(interrupt_waits), 1, 0);
    encode_jump_if(&e->hot, CONDITION_NE, cold);
    with_state(e, 0x81, 1, STATE(flags_system), 4, (uint32_t)X86_FLAGS_IF);
}

/* CR4.PKE and ECX = 0, or the interpreter raises. */
static void read_key_rights(struct emitter *e)
{
    static const uint8_t test_ecx[] = {0x85, 0xc9};
    static const uint8_t clear_edx[] = {0x31, 0xd2};
    const uint32_t cold = emit_cold_call(e, e->translator->step, emit_site(e));

    with_state(e, 0xf7, 0, STATE(cr4), 4, X86_CR4_PKE); /* test */
    encode_jump_if(&e->hot, CONDITION_E, cold);
    encode_bytes(&e->hot, test_ecx, sizeof(test_ecx));
    encode_jump_if(&e->hot, CONDITION_NE, cold);
    encode(&e->hot, &(struct host_instruction){.opcode = {0x8b}, /* mov eax, */
                                               .opcode_bytes = 1,
                                               .reg = X86_RAX,
                                               .is_memory = true,
                                               .memory = STATE(key_rights[true])});
    encode_bytes(&e->hot, clear_edx, sizeof(clear_edx));
}

static void swap_gs(struct emitter *e)
{
    (void)require_supervisor(e);
    encode_load(&e->hot, SCRATCH, STATE(segments[X86_GS].base));
    encode_load(&e->hot, ADDRESS, STATE(kernel_gs_base));
    encode_store(&e->hot, STATE(segments[X86_GS].base), ADDRESS);
    encode_store(&e->hot, STATE(kernel_gs_base), SCRATCH);
}

/* ---- SMAP's switch ---- */

/* The processor's mode is the block's, but for MODE_USER_DATA. */
static void change_mode(struct emitter *e)
{
    const uint32_t mode = block_cpu_mode(e->block) ^ MODE_USER_DATA;
    const enum tlb_kind kind =
        (mode & MODE_USER_DATA) != 0 ? TLB_SUPERVISOR_AC : TLB_SUPERVISOR;
    const size_t tlb = offsetof(struct soft_cpu, mmu.entries) +
                       kind * sizeof(((struct soft_mmu *)0)->entries[0]);

    encode(&e->hot, &(struct host_instruction){.opcode = {0xc7}, /* mov */
                                               .opcode_bytes = 1,
                                               .is_memory = true,
                                               .memory = STATE(mode),
                                               .immediate_bytes = 4,
                                               .immediate = mode});
    encode_constant(&e->hot, SCRATCH, jump_salt(mode));
    encode_store(&e->hot, STATE(mode_salt), SCRATCH);
    encode_load(&e->hot, SCRATCH, STATE(translated.self));
    encode_lea(&e->hot, SCRATCH, host_at(SCRATCH, (int32_t)tlb), true);
    encode_store(&e->hot, STATE(tlb), SCRATCH);
}

/* Both end their block (translate.c), which goes on in the mode that there is then. It
 * changes with AC under SMAP: CLAC therefore changes a block's mode that has
 * MODE_USER_DATA, and no other; STAC one without, if there is SMAP. */
static void switch_access(struct emitter *e, bool on)
{
    const bool was_on = (e->block->mode & MODE_USER_DATA) != 0;

    (void)require_supervisor(e);
    if (on)
        with_state(e, 0x81, 1, STATE(flags_system), 4, (uint32_t)X86_FLAGS_AC);
    else
        with_state(e, 0x81, 4, STATE(flags_system), 4, ~(uint32_t)X86_FLAGS_AC);
    if (on == was_on)
        return;
    if (on) {
        with_state(e, 0xf7, 0, STATE(cr4), 4, X86_CR4_SMAP); /* test */
        emit_exit_if(e, CONDITION_E, draft_rip(e->draft), e->live_behind);
    }
    change_mode(e);
}

/* ---- rules ---- */

/* Of select_syscall the others leave the block. */
bool rule_syscall(struct emitter *e)
{
    const uint32_t first_site = e->translator->site_count;

    if ((e->block->mode & MODE_USER) != 0 ||
        e->instruction->form->variant != SYSCALL_SWAPGS)
        return false;
    emit_spill_flags(e);
    swap_gs(e);
    emit_next(e, first_site);
    return true;
}

static bool is_native(const struct emitter *e)
{
    const bool user = (e->block->mode & MODE_USER) != 0;
    const bool last = e->ordinal + 1 == e->draft->count;
    const struct instruction *next = e->instruction + 1; /* if it is not the last */

    switch (e->instruction->form->variant) {
    case SYSTEM_CLI:
    case SYSTEM_STAC:
    case SYSTEM_CLAC:
        return !user;
    case SYSTEM_STI:
        return !user && !last && rule_find(next) != rule_vector;
    case SYSTEM_RDPKRU:
        return true;
    default:
        return false;
    }
}

bool rule_system(struct emitter *e)
{
    const uint32_t first_site = e->translator->site_count;

    if (!is_native(e))
        return false;
    emit_spill_flags(e);
    switch (e->instruction->form->variant) {
    case SYSTEM_CLI:
        (void)require_supervisor(e);
        clear_interrupts(e);
        break;
    case SYSTEM_STI:
        set_interrupts(e, require_supervisor(e));
        break;
    case SYSTEM_STAC:
    case SYSTEM_CLAC:
        switch_access(e, e->instruction->form->variant == SYSTEM_STAC);
        break;
    default:
        read_key_rights(e);
        break;
    }
    emit_next(e, first_site);
    return true;
}

/* ADDRESS = a byte of soft_cpu, shifted; then OR into SCRATCH. */
static void add_flag(struct emitter *e, struct host_memory byte, uint8_t shift)
{
    const uint8_t shift_left[] = {0x41, 0xc1, 0xe3, shift}; /* shl r11d, */
    static const uint8_t or [] = {0x45, 0x09, 0xda};        /* or r10d, r11d */

    encode(&e->hot, &(struct host_instruction){.opcode = {0x0f, 0xb6},
                                               .opcode_bytes = 2,
                                               .reg = ADDRESS,
                                               .is_memory = true,
                                               .memory = byte});
    encode_bytes(&e->hot, shift_left, sizeof(shift_left));
    encode_bytes(&e->hot, or, sizeof(or));
}

/* The image is put together first, since the check wants both scratch registers. */
void push_flags(struct emitter *e)
{
    const uint32_t hidden = X86_FLAGS_VM | X86_FLAGS_RF;

    e->group.shared = false; /* ADDRESS is wanted */
    encode(&e->hot, &(struct host_instruction){.opcode = {0x8b},
                                               .opcode_bytes = 1,
                                               .reg = SCRATCH,
                                               .is_memory = true,
                                               .memory = STATE(flags_system)});
    encode(&e->hot, &(struct host_instruction){.opcode = {0x81}, /* and r10d, */
                                               .opcode_bytes = 1,
                                               .reg = 4,
                                               .rm = SCRATCH,
                                               .immediate_bytes = 4,
                                               .immediate = ~hidden});
    add_flag(e, STATE(flags_status), 0);
    add_flag(e, STATE(flags_overflow), 11);
    add_flag(e, STATE(direction), 10);
    stack_push_scratch(e);
}
