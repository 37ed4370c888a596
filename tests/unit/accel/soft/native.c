/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one instruction on the host's processor; see native.h. */
#include "native.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cmocka.h>

#define CODE_BYTES 4096

/* What the assembly below and the signal handler use. */
uint64_t native_code;
uint64_t native_pointer;
uint64_t native_rdi;

static uint64_t native_skip; /* where to go on after an exception */
static int native_vector;

/* Loads everything from *native_pointer, calls native_code, and stores everything. */
void native_enter(void);
asm(".text\n"
    ".globl native_enter\n"
    ".hidden native_enter\n"
    "native_enter:\n"
    "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    "mov native_pointer(%rip), %rdi\n"
    "fxrstor64 (%rdi)\n"
    "push 640(%rdi)\n"
    "popfq\n"
    "mov 512(%rdi), %rax\n mov 520(%rdi), %rcx\n"
    "mov 528(%rdi), %rdx\n mov 536(%rdi), %rbx\n"
    "mov 552(%rdi), %rbp\n mov 560(%rdi), %rsi\n"
    "mov 576(%rdi), %r8\n mov 584(%rdi), %r9\n"
    "mov 592(%rdi), %r10\n mov 600(%rdi), %r11\n"
    "mov 608(%rdi), %r12\n mov 616(%rdi), %r13\n"
    "mov 624(%rdi), %r14\n mov 632(%rdi), %r15\n"
    "mov 568(%rdi), %rdi\n"
    "call *native_code(%rip)\n"
    "mov %rdi, native_rdi(%rip)\n"
    "mov native_pointer(%rip), %rdi\n"
    "mov %rax, 512(%rdi)\n mov %rcx, 520(%rdi)\n"
    "mov %rdx, 528(%rdi)\n mov %rbx, 536(%rdi)\n"
    "mov %rbp, 552(%rdi)\n mov %rsi, 560(%rdi)\n"
    "mov %r8, 576(%rdi)\n mov %r9, 584(%rdi)\n"
    "mov %r10, 592(%rdi)\n mov %r11, 600(%rdi)\n"
    "mov %r12, 608(%rdi)\n mov %r13, 616(%rdi)\n"
    "mov %r14, 624(%rdi)\n mov %r15, 632(%rdi)\n"
    "pushfq\n"
    "pop 640(%rdi)\n"
    "mov native_rdi(%rip), %rax\n"
    "mov %rax, 568(%rdi)\n"
    "fxsave64 (%rdi)\n"
    "fninit\n"
    "movl $0x1f80, -8(%rsp)\n"
    "ldmxcsr -8(%rsp)\n"
    "cld\n"
    "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
    "ret\n");
_Static_assert(offsetof(struct native_state, r) == 512, "as the assembly has it");
_Static_assert(offsetof(struct native_state, flags) == 640, "as the assembly has it");

static void on_exception(int signal, siginfo_t *info, void *context)
{
    ucontext_t *user = context;

    (void)signal;
    (void)info;
    native_vector = (int)user->uc_mcontext.gregs[REG_TRAPNO];
    user->uc_mcontext.gregs[REG_RIP] = (greg_t)native_skip;
}

void native_start(void)
{
    static const int signals[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS};
    struct sigaction action = {.sa_sigaction = on_exception, .sa_flags = SA_SIGINFO};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        assert_int_equal(sigaction(signals[i], &action, NULL), 0);
}

static uint8_t *code_page(void)
{
    static uint8_t *page;

    if (page == NULL) {
        page = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(page, MAP_FAILED);
    }
    return page;
}

int native_run(struct native_state *state, const uint8_t *bytes, size_t size)
{
    uint8_t *code = code_page();

    memcpy(code, bytes, size);
    code[size] = 0xc3; /* RET */
    native_code = (uint64_t)(uintptr_t)code;
    native_skip = native_code + size;
    native_pointer = (uint64_t)(uintptr_t)state;
    native_vector = -1;
    native_enter();
    return native_vector;
}
