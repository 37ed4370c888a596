/* SPDX-License-Identifier: Apache-2.0 */
/* The host's processor as the oracle; see native.h. */
#include "native.h"

#include <asm/prctl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "window.h"

/* native_enter.S */
extern struct isa_state native_state;
extern uint64_t native_host_rsp;
void native_enter(void);
void native_enter32(void);
void native_exit_behind(void);
void native_exit_target(void);
void native_leave(void);

_Static_assert(offsetof(struct isa_state, r) == 512, "native_enter.S");
_Static_assert(offsetof(struct isa_state, exit) == 512 + 18 * 8, "native_enter.S");

struct isa_state native_state;
uint64_t native_host_rsp;

static volatile sig_atomic_t running;
static void (*crash_report)(void);

#define SIGNAL_STACK_BYTES 65536
static const int exception_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};

/* The C library's order of registers in a signal frame, by encoding. */
static const int frame_registers[X86_REGISTER_COUNT] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

static void crash(int signal_number)
{
    running = 0;
    if (crash_report != NULL)
        crash_report();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

static void on_exception(int signal_number, siginfo_t *info, void *context)
{
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;

    (void)info;
    /* The kernel leaves AC as it was. */
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~X86_FLAGS_AC);
    if (!running) {
        crash(signal_number);
        return;
    }
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        native_state.r[i] = (uint64_t)machine->gregs[frame_registers[i]];
    native_state.rip = (uint64_t)machine->gregs[REG_RIP];
    native_state.rflags = (uint64_t)machine->gregs[REG_EFL];
    memcpy(&native_state.fx, machine->fpregs, sizeof(native_state.fx));
    native_state.end = END_FAULT;
    native_state.vector = (uint8_t)machine->gregs[REG_TRAPNO];
    native_state.error_code = (uint32_t)machine->gregs[REG_ERR];
    native_state.cr2 = (uint64_t)machine->gregs[REG_CR2];
    machine->gregs[REG_RIP] = (greg_t)(uintptr_t)native_leave;
    machine->gregs[REG_RSP] = (greg_t)native_host_rsp;
    machine->gregs[REG_EFL] = (greg_t)X86_FLAGS_FIXED;
    machine->gregs[REG_CSGSFS] =
        (machine->gregs[REG_CSGSFS] & ~(greg_t)0xffff) | WINDOW_CODE64_SELECTOR;
}

/* Exits of 32-bit code: a far jump to 64-bit code, and from there to the exit.
 *   jmp 0x33:next (EA), next: jmp [address] (FF 25) */
#define STUB_BYTES 32u
#define STUB_SECOND 7u
#define STUB_ADDRESS 16u /* aligned: POPF may have set AC */

static void map(uint64_t address, size_t size, int protection)
{
    void *at = (void *)(uintptr_t)address;

    CHECK(mmap(at, size, protection,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1,
               0) == at);
}

static void write_stubs(void)
{
    for (unsigned exit = 0; exit < EXIT_COUNT; exit++) {
        uint64_t at = native_exit_address((enum state_exit)exit, true);
        uint8_t *stub = (uint8_t *)(uintptr_t)at;

        stub[0] = 0xea;
        store_le32(stub + 1, (uint32_t)at + STUB_SECOND);
        store_le16(stub + 5, WINDOW_CODE64_SELECTOR);
        stub[STUB_SECOND] = 0xff;
        stub[STUB_SECOND + 1] = 0x25;
        store_le32(stub + STUB_SECOND + 2, STUB_ADDRESS - (STUB_SECOND + 6));
        store_le64(stub + STUB_ADDRESS,
                   native_exit_address((enum state_exit)exit, false));
    }
}

void native_create(void)
{
    static uint8_t stack[SIGNAL_STACK_BYTES];
    const stack_t signal_stack = {.ss_sp = stack, .ss_size = sizeof(stack)};
    struct sigaction action = {.sa_sigaction = on_exception,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};

    map(WINDOW_STUBS, WINDOW_STUBS_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    write_stubs();
    map(WINDOW_CODE, WINDOW_CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    map(WINDOW_DATA, WINDOW_DATA_BYTES + WINDOW_READ_ONLY_BYTES, PROT_READ | PROT_WRITE);
    CHECK(sigaltstack(&signal_stack, NULL) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(exception_signals); i++)
        CHECK(sigaction(exception_signals[i], &action, NULL) == 0);
    __asm__ volatile("mov %0, %%ds\n\tmov %0, %%es" : : "r"(WINDOW_DATA_SELECTOR));
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, WINDOW_GS_BASE) == 0);
}

void native_write_read_only(const void *bytes)
{
    void *at = (void *)(uintptr_t)WINDOW_READ_ONLY;

    CHECK(mprotect(at, WINDOW_READ_ONLY_BYTES, PROT_READ | PROT_WRITE) == 0);
    memcpy(at, bytes, WINDOW_READ_ONLY_BYTES);
    CHECK(mprotect(at, WINDOW_READ_ONLY_BYTES, PROT_READ) == 0);
}

uint64_t native_exit_address(enum state_exit exit, bool code32)
{
    if (code32)
        return WINDOW_STUBS + (uint64_t)exit * STUB_BYTES;
    return exit == EXIT_BEHIND ? (uintptr_t)native_exit_behind
                               : (uintptr_t)native_exit_target;
}

void native_floating_point(struct fx_state *fx)
{
    memset(fx, 0, sizeof(*fx));
    __asm__ volatile("fninit\n\tfxsave64 %0" : "+m"(*fx));
    memset(fx->st, 0, sizeof(fx->st));
    memset(fx->xmm, 0, sizeof(fx->xmm));
}

/* Instructions under test find the same base in GS as in the guest; the software CPU
 * keeps its own there between runs. */
static uint64_t exchange_gs_base(uint64_t base)
{
    uint64_t before = 0;

    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &before) == 0);
    if (before != base)
        CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, base) == 0);
    return before;
}

void native_run(const struct isa_state *in, struct isa_state *out)
{
    const uint64_t gs_base = exchange_gs_base(WINDOW_GS_BASE);

    native_state = *in;
    native_state.end = END_EXIT;
    running = 1;
    if (in->code32)
        native_enter32();
    else
        native_enter();
    running = 0;
    (void)exchange_gs_base(gs_base);
    *out = native_state;
    if (out->end == END_EXIT)
        out->rip = native_exit_address((enum state_exit)out->exit, in->code32);
}

void native_on_crash(void (*report)(void))
{
    crash_report = report;
}

/* Only by way of the exit. */
bool native_has_code32(void)
{
    struct isa_state in = {.code32 = true,
                           .rip = native_exit_address(EXIT_BEHIND, true),
                           .rflags = X86_FLAGS_FIXED};
    struct isa_state out;

    native_floating_point(&in.fx);
    native_run(&in, &out);
    return out.end == END_EXIT;
}
