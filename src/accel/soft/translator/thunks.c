/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways between C and translated code. They are emitted into code memory, so that code
 * reaches them by a short call.
 *
 * A thunk puts all registers into soft_cpu, takes the place behind the call, calls its
 * service on the thread's stack and jumps to where that says, all registers taken back.
 */
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/emit_private.h"

static const uint8_t bytes_enter[] = {
    0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, /* push rbx rbp r12-r15 */
    0x48, 0x83, 0xec, 0x08,                                     /* sub rsp, 8 */
    0x48, 0x89, 0xf0,                                           /* mov rax, rsi */
};
static const uint8_t bytes_exit[] = {
    0x48, 0x83, 0xc4, 0x08,                                     /* add rsp, 8 */
    0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, /* pop */
    0xc3,                                                       /* ret */
};
static const uint8_t bytes_take_flags[] = {
    0x49, 0x89, 0xc2, 0x9f, 0x0f, 0x90, 0xc0, /* mov r10, rax; lahf; seto al */
};
static const uint8_t bytes_set_flags[] = {0x04, 127, 0x9e}; /* add al, 127; sahf */
static const uint8_t bytes_test_result[] = {0x48, 0x85, 0xc0};
static const uint8_t bytes_call_result[] = {0xff, 0xd0};        /* call rax */
static const uint8_t bytes_pop_place[] = {0x41, 0x5a};          /* pop r10 */
static const uint8_t bytes_jump_address[] = {0x41, 0xff, 0xe3}; /* jmp r11 */

#define PUT(writer, bytes) encode_bytes(writer, bytes, sizeof(bytes))

static void put_flags_access(struct code_writer *writer, bool store)
{
    struct host_instruction access = {.opcode = {0x0f, 0xb7}, /* movzx eax, */
                                      .opcode_bytes = 2,
                                      .reg = X86_RAX,
                                      .is_memory = true,
                                      .memory = STATE_BY_GS(flags_packed)};

    if (store) {
        access.prefix_66 = 0x66;
        access.opcode[0] = 0x89;
        access.opcode_bytes = 1;
    }
    encode(writer, &access);
}

static void move_registers(struct code_writer *writer, bool store)
{
    for (unsigned number = 0; number < X86_REGISTER_COUNT; number++) {
        const struct host_memory slot =
            emit_state_by_gs(offsetof(struct soft_cpu, r) + number * sizeof(uint64_t));

        if (register_is_homeless(number))
            continue;
        if (store)
            encode_store(writer, slot, register_host(number));
        else
            encode_load(writer, register_host(number), slot);
    }
}

/* RAX says where to go on; 0: back to the caller of `enter`. Returns where this starts.
 */
static uint32_t emit_resume(struct code_writer *writer)
{
    uint32_t leave = writer_offset(writer);
    uint32_t resume;

    PUT(writer, bytes_exit);
    resume = writer_offset(writer);
    PUT(writer, bytes_test_result);
    encode_jump_if(writer, CONDITION_E, leave);
    encode_move(writer, ADDRESS, X86_RAX);
    encode_load(writer, X86_RSP, STATE_BY_GS(translated.self));
    encode_lea(writer, X86_RSP, host_at(X86_RSP, (int32_t)SOFT_FRAME), true);
    put_flags_access(writer, false);
    PUT(writer, bytes_set_flags);
    move_registers(writer, false);
    PUT(writer, bytes_jump_address);
    return resume;
}

static uint32_t emit_enter(struct code_writer *writer, uint32_t resume)
{
    uint32_t start = writer_offset(writer);

    PUT(writer, bytes_enter);
    encode_store(writer, STATE_BY_GS(translated.thread_stack), X86_RSP);
    encode_jump(writer, resume);
    return start;
}

static uint32_t emit_thunk(struct code_writer *writer, translator_service *service,
                           bool host_flags, uint32_t resume)
{
    uint32_t start = writer_offset(writer);

    if (host_flags) {
        PUT(writer, bytes_take_flags);
        put_flags_access(writer, true);
        encode_move(writer, X86_RAX, SCRATCH);
    }
    encode_store(writer, STATE_BY_GS(translated.operands[0]), SCRATCH);
    encode_store(writer, STATE_BY_GS(translated.operands[1]), ADDRESS);
    PUT(writer, bytes_pop_place);
    move_registers(writer, true);
    encode_move(writer, X86_RSI, SCRATCH);
    encode_load(writer, X86_RSP, STATE_BY_GS(translated.thread_stack));
    encode_load(writer, X86_RDI, STATE_BY_GS(translated.self));
    encode_constant(writer, X86_RAX, (uint64_t)(uintptr_t)service);
    PUT(writer, bytes_call_result);
    encode_jump(writer, resume);
    return start;
}

/* Code that calls its thunk by itself: what the jump cache leads to. */
static uint32_t emit_landing(struct code_writer *writer, uint32_t resume)
{
    uint32_t thunk = emit_thunk(writer, serve_landing, false, resume);
    uint32_t start = writer_offset(writer);

    encode_call(writer, thunk);
    return start;
}

void thunks_emit(struct translator *translator)
{
    struct code_memory *memory = &translator->memory;
    struct code_writer writer = {.at = memory->writable, .start = memory->writable};
    uint32_t resume = emit_resume(&writer);

    translator->enter = emit_enter(&writer, resume);
    translator->slow = emit_thunk(&writer, serve_slow, false, resume);
    translator->shared = emit_thunk(&writer, serve_shared, false, resume);
    translator->step = emit_thunk(&writer, serve_step, false, resume);
    translator->follow = emit_thunk(&writer, serve_follow, false, resume);
    translator->follow_host_flags = emit_thunk(&writer, serve_follow, true, resume);
    translator->leave = emit_thunk(&writer, serve_leave, false, resume);
    translator->vectors = emit_thunk(&writer, serve_vectors, false, resume);
    translator->landing = emit_landing(&writer, resume);
    tlb_check_thunks_emit(translator, &writer);
    memory->hot.at = writer_offset(&writer);
    code_memory_keep(memory);
}
