/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files that lose their bytes: the SIGBUS handler and what it notes; see memory.h.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "memory/memory_private.h"

/* A process has one guest; tests and benchmarks have a few. */
#define MAX_LIVE_MEMORIES 16

/*
 * Where the handler looks an address up. It runs at any instant on any thread, so there
 * are no locks, and a `struct memory` is dereferenced only when the address that faulted
 * lies inside it (its owner destroys it only when nobody accesses it any more). Other
 * memories may come and go meanwhile: `memory` is set last and cleared first.
 */
struct live_slot {
    _Atomic(struct memory *) memory; /* NULL: start and end mean nothing */
    _Atomic uintptr_t start;
    _Atomic uintptr_t end;
    atomic_bool taken;
};
static struct live_slot live_slots[MAX_LIVE_MEMORIES];

static struct sigaction previous_action; /* written once, before our handler can run */

const struct memory_map *memory_map_find(const struct memory *memory, uint64_t gpa)
{
    size_t count = atomic_load(&memory->map_count);

    /* A later map lies over an earlier one. */
    for (size_t i = count; i-- > 0;) {
        const struct memory_map *map = &memory->maps[i];

        if (gpa >= map->gpa && gpa - map->gpa < map->size_bytes)
            return map;
    }
    return NULL;
}

/* Tells the owner, once, as soon as there is both a loss and somebody to tell. Everything
 * down from here also runs in signal context: atomics and memcpy only. */
static void notify_owner(struct memory *memory)
{
    void (*notify)(void *context) = atomic_load(&memory->notify);

    if (notify != NULL && atomic_load(&memory->loss_state) == LOSS_NOTED &&
        !atomic_exchange(&memory->notified, true))
        notify(memory->notify_context);
}

static void note_loss(struct memory *memory, uint64_t gpa, const struct memory_map *map)
{
    int expected = LOSS_NONE;

    if (!atomic_compare_exchange_strong(&memory->loss_state, &expected, LOSS_BEING_NOTED))
        return;
    memory->loss_gpa = gpa;
    memcpy(memory->loss_name, map->name, sizeof(memory->loss_name));
    atomic_store(&memory->loss_state, LOSS_NOTED);
    notify_owner(memory);
}

static struct memory *find_memory(uintptr_t address)
{
    for (size_t i = 0; i < MAX_LIVE_MEMORIES; i++) {
        struct memory *memory = atomic_load(&live_slots[i].memory);

        if (memory != NULL && address >= atomic_load(&live_slots[i].start) &&
            address < atomic_load(&live_slots[i].end))
            return memory;
    }
    return NULL;
}

/* Of two threads that fault on one page the second must not replace what the first has
 * got and perhaps already written to. Held for two system calls; a thread cannot meet its
 * own lock, for the signal is blocked while it is handled. */
static atomic_flag repairing = ATOMIC_FLAG_INIT;

static bool put_zero_page(void *page)
{
    bool done = true;

    while (atomic_flag_test_and_set(&repairing)) {
    }
    /* Succeeds where the page has been put already; kernels before 5.14 say EINVAL. */
    if (madvise(page, PAGE_BYTES, MADV_POPULATE_READ) < 0)
        done = mmap(page, PAGE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                    0) != MAP_FAILED;
    atomic_flag_clear(&repairing);
    return done;
}

/* Puts a zero page where a file lost one. False if `address` is no page of a mapped file.
 */
static bool repair_page(uintptr_t address)
{
    struct memory *memory = find_memory(address);
    const struct memory_map *map;
    uint64_t gpa;

    if (memory == NULL)
        return false;
    gpa = align_down(address - (uintptr_t)memory->base, PAGE_BYTES);
    map = memory_map_find(memory, gpa);
    if (map == NULL)
        return false;
    if (!put_zero_page(memory->base + gpa))
        return false;
    note_loss(memory, gpa, map);
    return true;
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
    if (info->si_code != BUS_ADRERR || !repair_page((uintptr_t)info->si_addr))
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

int memory_loss_register(struct memory *memory, struct error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, install_handler);
    if (install_status < 0)
        return error_set_errno(err, install_status,
                               "cannot install a handler for SIGBUS");
    for (size_t i = 0; i < MAX_LIVE_MEMORIES; i++) {
        struct live_slot *slot = &live_slots[i];

        if (atomic_exchange(&slot->taken, true))
            continue;
        atomic_store(&slot->start, (uintptr_t)memory->base);
        atomic_store(&slot->end, (uintptr_t)memory->base + memory->reserved_end);
        atomic_store(&slot->memory, memory);
        return 0;
    }
    return error_set(err, -ENOSPC, "more than %d guest memories in one process",
                     MAX_LIVE_MEMORIES);
}

void memory_loss_unregister(struct memory *memory)
{
    for (size_t i = 0; i < MAX_LIVE_MEMORIES; i++) {
        struct live_slot *slot = &live_slots[i];

        if (atomic_load(&slot->memory) == memory) {
            atomic_store(&slot->memory, NULL);
            atomic_store(&slot->taken, false);
        }
    }
}

void memory_on_loss(struct memory *memory, void (*notify)(void *context), void *context)
{
    memory->notify_context = context;
    atomic_store(&memory->notify, notify);
    notify_owner(memory); /* a file may be lost already, while the guest was loaded */
}

bool memory_lost(const struct memory *memory, struct memory_loss *loss)
{
    if (atomic_load(&memory->loss_state) != LOSS_NOTED)
        return false;
    *loss = (struct memory_loss){.gpa = memory->loss_gpa, .file = memory->loss_name};
    return true;
}

bool memory_find_loss(struct memory *memory)
{
    size_t count = atomic_load(&memory->map_count);

    for (size_t i = 0; i < count; i++) {
        const struct memory_map *map = &memory->maps[i];
        struct stat status;
        uint64_t kept_end;

        if (map->file_end == 0 || fstat(map->fd, &status) < 0 ||
            (uint64_t)status.st_size >= map->file_end)
            continue;
        kept_end = max_u64((uint64_t)status.st_size, map->file_offset);
        note_loss(memory, map->gpa + (kept_end - map->file_offset), map);
        return true;
    }
    return false;
}
