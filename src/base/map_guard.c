/* SPDX-License-Identifier: Apache-2.0 */
/* The SIGBUS handler and whom it asks; see map_guard.h. */
#include "base/map_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/bytes.h"

/* The host's small page; x86-64 has no other size for it. */
#define PAGE_BYTES UINT64_C(4096)

/*
 * Where the handler looks an address up. It runs at any instant on any thread, so there
 * are no locks, and a guard is dereferenced only when the address that faulted lies
 * inside of it (its owner unregisters it only when nobody accesses it any more). Other
 * guards may come and go meanwhile: `guard` is set last and cleared first.
 */
struct live_slot {
    _Atomic(struct map_guard *) guard; /* NULL: start and end mean nothing */
    _Atomic uintptr_t start;
    _Atomic uintptr_t end;
    atomic_bool taken;
};
static struct live_slot live_slots[MAP_GUARD_MAX];

static struct sigaction previous_action; /* written once, before our handler can run */

/* Of two threads that fault on one page the second must not replace what the first has
 * got and perhaps already written to. Held for two system calls; a thread cannot meet its
 * own lock, for the signal is blocked while it is handled. */
static atomic_flag repairing = ATOMIC_FLAG_INIT;

bool map_guard_put_zero_page(uintptr_t address)
{
    /* An address out of a signal is a number; here it becomes a pointer. */
    void *page =
        (void *)align_down(address, PAGE_BYTES); // NOLINT(performance-no-int-to-ptr)
    bool done = true;

    while (atomic_flag_test_and_set(&repairing)) {
    }
    /* Succeeds where the page has been put already; kernels before 5.14 say EINVAL. That
     * a page can be read is not enough: one that is full of nothing can be, even if the
     * host has no room for what is to be written there. */
    if (madvise(page, PAGE_BYTES, MADV_POPULATE_WRITE) < 0)
        done = mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                    0) != MAP_FAILED;
    atomic_flag_clear(&repairing);
    return done;
}

static bool repair(uintptr_t address)
{
    for (size_t i = 0; i < MAP_GUARD_MAX; i++) {
        struct map_guard *guard = atomic_load(&live_slots[i].guard);

        if (guard != NULL && address >= atomic_load(&live_slots[i].start) &&
            address < atomic_load(&live_slots[i].end))
            return guard->repair(guard->context, address);
    }
    return false;
}

/* Does what would have happened without our handler. */
static void pass_on(int signal_number, siginfo_t *info, void *context)
{
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
        previous_action.sa_sigaction(signal_number, info, context);
        return;
    }
    if (previous_action.sa_handler == SIG_IGN && info->si_code <= 0)
        return;
    if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(signal_number);
        return;
    }
    /* Back to the default: a fault happens again on return and ends the process with the
     * right place in its core dump; a signal somebody sent must be sent again. */
    (void)sigaction(signal_number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    if (info->si_code <= 0)
        (void)raise(signal_number);
}

static void handle_sigbus(int signal_number, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    /* Positive codes come from the kernel. BUS_ADRERR is the one for pages without a
     * file behind them (sigaction(2)); memory errors of the hardware are not repairable.
     */
    if (info->si_code != BUS_ADRERR || !repair((uintptr_t)info->si_addr))
        pass_on(signal_number, info, context);
    errno = saved_errno;
}

static int install_status; /* 0 or negative errno; written once under pthread_once */

static void install_handler(void)
{
    struct sigaction action = {
        .sa_sigaction = handle_sigbus,
        .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK,
    };

    (void)sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, NULL, &previous_action) < 0 ||
        sigaction(SIGBUS, &action, NULL) < 0)
        install_status = -errno;
}

int map_guard_register(struct map_guard *guard, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, install_handler);
    if (install_status < 0)
        return error_set_errno(err, install_status,
                               "cannot install a handler for SIGBUS");
    for (size_t i = 0; i < MAP_GUARD_MAX; i++) {
        struct live_slot *slot = &live_slots[i];

        if (atomic_exchange(&slot->taken, true))
            continue;
        atomic_store(&slot->start, guard->start);
        atomic_store(&slot->end, guard->end);
        atomic_store(&slot->guard, guard);
        return 0;
    }
    return error_set(err, -ENOSPC, "more than %d maps to guard in one process",
                     MAP_GUARD_MAX);
}

void map_guard_unregister(struct map_guard *guard)
{
    for (size_t i = 0; i < MAP_GUARD_MAX; i++) {
        struct live_slot *slot = &live_slots[i];

        if (atomic_load(&slot->guard) == guard) {
            atomic_store(&slot->guard, NULL);
            atomic_store(&slot->taken, false);
        }
    }
}
