/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and threads that share memory in every way that a lock can be made of, and
 * check what it promises. All run as the guest's program of test_locks.py.
 *
 * locks ROUNDS: each worker does each contest so many times. Prints each contest's name
 * when it has come out right, or what was wrong, and then fails.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 2
#define THREADS 2 /* of a process: a pair */
#define WORKERS (PROCESSES * THREADS)
#define PAGE_BYTES 4096

/* With more workers than processors, whom a loop waits for may have to be let run. */
#define LOOKS_BEFORE_YIELD 64

struct worker {
    unsigned number; /* 0 to WORKERS - 1 */
    unsigned side;   /* of its pair: 0 or 1 */
    struct pair *pair;
    uint64_t rounds;
};

/* What a lock protects: two counts that only who holds it may see differ. */
struct account {
    volatile uint64_t first;
    volatile uint64_t second;
};

/* Of all processes. */
static struct shared {
    pthread_barrier_t barrier;
    pthread_mutex_t mutex;
    struct account mutex_account;
    uint32_t spin;
    struct account spin_account;
    uint16_t ticket_next;
    volatile uint16_t ticket_now;
    struct account ticket_account;
    uint64_t sum;
    uint32_t bits;
    volatile uint8_t bytes[WORKERS];
    unsigned __int128 wide __attribute__((aligned(16)));
} * shared;

/* Of one process. */
struct pair {
    pthread_barrier_t barrier;
    sem_t semaphores[2];
    struct account semaphore_account;
    volatile bool wants[2];
    volatile uint32_t turn;
    struct account peterson_account;
    volatile uint64_t message[8];
    volatile uint64_t message_number;
    uint8_t *page;
    volatile bool page_done;
    uint8_t *code;
    volatile uint32_t code_number;
};

static void expect(const char *what, uint64_t is, uint64_t expected)
{
    if (is == expected)
        return;
    printf("%s: %" PRIu64 ", expected %" PRIu64 "\n", what, is, expected);
    (void)fflush(stdout);
    exit(1);
}

static void wait_a_little(unsigned *looks)
{
    __builtin_ia32_pause();
    if (++*looks % LOOKS_BEFORE_YIELD == 0)
        (void)sched_yield();
}

static void enter_account(struct account *account, const char *what)
{
    expect(what, account->second, account->first);
    account->first++;
    account->second++;
}

/* ---- contests of all workers ---- */

static void contest_mutex(const struct worker *worker)
{
    for (uint64_t i = 0; i < worker->rounds; i++) {
        (void)pthread_mutex_lock(&shared->mutex);
        enter_account(&shared->mutex_account, "mutex");
        (void)pthread_mutex_unlock(&shared->mutex);
    }
}

static void contest_spin(const struct worker *worker)
{
    for (uint64_t i = 0; i < worker->rounds; i++) {
        unsigned looks = 0;
        bool taken = true;

        while (taken) {
            __asm__ volatile("lock btsl $3, %1"
                             : "=@ccc"(taken), "+m"(shared->spin)
                             :
                             : "memory");
            if (taken)
                wait_a_little(&looks);
        }
        enter_account(&shared->spin_account, "spin lock");
        __asm__ volatile("movl $0, %0" : "=m"(shared->spin) : : "memory");
    }
}

static void contest_ticket(const struct worker *worker)
{
    for (uint64_t i = 0; i < worker->rounds; i++) {
        unsigned looks = 0;
        uint16_t mine = 1;

        __asm__ volatile("lock xaddw %0, %1"
                         : "+r"(mine), "+m"(shared->ticket_next)
                         :
                         : "memory");
        while (shared->ticket_now != mine)
            wait_a_little(&looks);
        enter_account(&shared->ticket_account, "ticket lock");
        __asm__ volatile("incw %0" : "+m"(shared->ticket_now) : : "memory");
    }
}

/* One of each way to add, all of one word. */
static void contest_sum(const struct worker *worker)
{
    for (uint64_t i = 0; i < worker->rounds; i++) {
        uint64_t before = 1;
        uint64_t seen;
        bool swapped;

        __asm__ volatile("lock incq %1\n"
                         "lock addq $2, %1\n"
                         "lock subq $-3, %1\n"
                         "lock xaddq %0, %1\n"
                         : "+r"(before), "+m"(shared->sum)
                         :
                         : "memory");
        do {
            seen = *(volatile uint64_t *)&shared->sum;
            before = seen;
            __asm__ volatile("lock cmpxchgq %3, %1"
                             : "=@ccz"(swapped), "+m"(shared->sum), "+a"(seen)
                             : "r"(before + 1)
                             : "memory");
        } while (!swapped);
    }
}

/* Each worker has a bit of one word, and finds it as it has left it. */
static void contest_bits(const struct worker *worker)
{
    uint32_t number = worker->number;
    bool was;

    for (uint64_t i = 0; i < worker->rounds; i++) {
        __asm__ volatile("lock btsl %2, %1"
                         : "=@ccc"(was), "+m"(shared->bits)
                         : "r"(number)
                         : "memory");
        expect("bit to be set", was, 0);
        __asm__ volatile("lock btcl %2, %1"
                         : "=@ccc"(was), "+m"(shared->bits)
                         : "r"(number)
                         : "memory");
        expect("bit to be cleared", was, 1);
    }
}

/* Each worker has a byte of one word, and needs no lock for it. */
static void contest_bytes(const struct worker *worker)
{
    volatile uint8_t *byte = &shared->bytes[worker->number];

    for (uint64_t i = 0; i < worker->rounds; i++) {
        expect("byte", *byte, (uint8_t)i);
        __asm__ volatile("incb %0" : "+m"(*byte));
    }
}

/* Both halves count. */
static void contest_wide(const struct worker *worker)
{
    for (uint64_t i = 0; i < worker->rounds; i++) {
        uint64_t low = 0;
        uint64_t high = 0;
        bool swapped = false;

        while (!swapped) {
            expect("halves of 128 bits", high, low);
            __asm__ volatile("lock cmpxchg16b %1"
                             : "=@ccz"(swapped), "+m"(shared->wide), "+a"(low), "+d"(high)
                             : "b"(low + 1), "c"(high + 1)
                             : "memory");
        }
    }
}

/* ---- contests of a pair ---- */

/* By turns; who sleeps is woken by a futex. */
static void contest_semaphores(const struct worker *worker)
{
    struct pair *pair = worker->pair;

    for (uint64_t i = 0; i < worker->rounds; i++) {
        while (sem_wait(&pair->semaphores[worker->side]) != 0)
            continue;
        expect("turns by semaphores", pair->semaphore_account.first,
               2 * i + worker->side);
        enter_account(&pair->semaphore_account, "semaphores");
        (void)sem_post(&pair->semaphores[1 - worker->side]);
    }
}

/* Peterson's lock: nothing but stores, loads and a fence between them. */
static void contest_peterson(const struct worker *worker)
{
    struct pair *pair = worker->pair;

    for (uint64_t i = 0; i < worker->rounds; i++) {
        unsigned looks = 0;

        pair->wants[worker->side] = true;
        pair->turn = 1 - worker->side;
        __asm__ volatile("mfence" : : : "memory");
        while (pair->wants[1 - worker->side] && pair->turn != worker->side)
            wait_a_little(&looks);
        enter_account(&pair->peterson_account, "Peterson's lock");
        pair->wants[worker->side] = false;
    }
}

/* Stores are seen in their order, and loads done in theirs, without any fence. */
static void contest_message(const struct worker *worker)
{
    struct pair *pair = worker->pair;
    uint64_t last = 0;

    if (worker->side == 0) {
        for (uint64_t i = 1; i <= worker->rounds; i++) {
            pair->message[i % 8] = i;
            pair->message_number = i;
        }
        return;
    }
    for (unsigned looks = 0; last != worker->rounds; wait_a_little(&looks)) {
        uint64_t number = pair->message_number;

        expect("message goes forward", number >= last, true);
        last = number;
        expect("message is there", pair->message[number % 8] >= number, true);
    }
}

static _Thread_local sigjmp_buf refused;

static void on_refusal(int signal)
{
    siglongjmp(refused, signal);
}

/* While one counts in a page the other takes away the right to: then the count stands
 * still, on whatever processor that is. */
static void contest_protection(const struct worker *worker)
{
    struct pair *pair = worker->pair;
    volatile uint64_t *count = (volatile uint64_t *)pair->page;

    if (worker->side == 0) {
        (void)sigsetjmp(refused, true);
        (void)signal(SIGSEGV, on_refusal);
        while (!pair->page_done)
            (*count)++;
        (void)signal(SIGSEGV, SIG_DFL);
        return;
    }
    for (uint64_t i = 0; i < worker->rounds / 16; i++) {
        uint64_t before;

        (void)mprotect(pair->page, PAGE_BYTES, PROT_READ);
        before = *count;
        for (unsigned looks = 0; looks < 64;)
            wait_a_little(&looks);
        expect("count in a page that is read-only", *count, before);
        (void)mprotect(pair->page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    }
    pair->page_done = true;
}

/* One changes the number that a function returns, the other calls it: it may see the new
 * number late, but no other, and at once when it has been told and has serialized. */
static void contest_code(const struct worker *worker)
{
    static const uint8_t function[] = {0x90, 0x90, 0x90, 0xb8, 0, 0, 0, 0, 0xc3};
    struct pair *pair = worker->pair;
    volatile uint32_t *operand = (volatile uint32_t *)(pair->code + 4);
    uint32_t (*call)(void) = (uint32_t(*)(void))(uintptr_t)pair->code;
    uint32_t rounds = (uint32_t)worker->rounds / 16;
    uint32_t last = 0;

    if (worker->side == 0)
        memcpy(pair->code, function, sizeof(function));
    (void)pthread_barrier_wait(&pair->barrier);
    if (worker->side == 0) {
        for (uint32_t i = 1; i <= rounds; i++) {
            *operand = i;
            pair->code_number = i;
            for (unsigned looks = 0; looks < 8;)
                wait_a_little(&looks);
        }
        return;
    }
    for (unsigned looks = 0; last != rounds; wait_a_little(&looks)) {
        uint32_t told = pair->code_number;
        uint32_t leaf = 0;
        uint32_t returned;

        __asm__ volatile("cpuid" : "+a"(leaf) : : "ebx", "ecx", "edx", "memory");
        returned = call();
        expect("changed code goes forward", returned >= last, true);
        expect("changed code is what was told", returned >= told, true);
        expect("changed code was written", returned <= rounds, true);
        last = returned;
    }
}

/* ---- all of them ---- */

static const struct contest {
    const char *name;
    void (*run)(const struct worker *worker);
} contests[] = {
    {"mutex", contest_mutex},
    {"spin", contest_spin},
    {"ticket", contest_ticket},
    {"sum", contest_sum},
    {"bits", contest_bits},
    {"bytes", contest_bytes},
    {"wide", contest_wide},
    {"semaphores", contest_semaphores},
    {"peterson", contest_peterson},
    {"message", contest_message},
    {"protection", contest_protection},
    {"code", contest_code},
};

#define CONTEST_COUNT (sizeof(contests) / sizeof(contests[0]))

static void *work(void *argument)
{
    const struct worker *worker = argument;

    for (size_t i = 0; i < CONTEST_COUNT; i++) {
        (void)pthread_barrier_wait(&shared->barrier);
        contests[i].run(worker);
        (void)pthread_barrier_wait(&shared->barrier);
        if (worker->number == 0) {
            (void)puts(contests[i].name);
            (void)fflush(stdout);
        }
    }
    return NULL;
}

static void *map(size_t size, int protection, int kind)
{
    void *mapped = mmap(NULL, size, protection, kind | MAP_ANONYMOUS, -1, 0);

    if (mapped == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return mapped;
}

static int run_process(unsigned number, uint64_t rounds)
{
    static struct pair pair;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];

    pair.page = map(PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    pair.code = map(PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
    (void)pthread_barrier_init(&pair.barrier, NULL, THREADS);
    for (unsigned side = 0; side < THREADS; side++) {
        (void)sem_init(&pair.semaphores[side], 0, side == 0);
        workers[side] = (struct worker){.number = number * THREADS + side,
                                        .side = side,
                                        .pair = &pair,
                                        .rounds = rounds};
    }
    for (unsigned side = 0; side < THREADS; side++)
        if (pthread_create(&threads[side], NULL, work, &workers[side]) != 0)
            return 1;
    for (unsigned side = 0; side < THREADS; side++)
        (void)pthread_join(threads[side], NULL);
    return 0;
}

static void prepare(void)
{
    pthread_barrierattr_t barrier;
    pthread_mutexattr_t mutex;

    shared = map(sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED);
    (void)pthread_barrierattr_init(&barrier);
    (void)pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    (void)pthread_barrier_init(&shared->barrier, &barrier, WORKERS);
    (void)pthread_mutexattr_init(&mutex);
    (void)pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&shared->mutex, &mutex);
    shared->ticket_now = 1;
    shared->ticket_next = 1;
}

/* What each contest has counted in all. */
static void check_totals(uint64_t rounds)
{
    uint64_t all = WORKERS * rounds;

    expect("mutex, in all", shared->mutex_account.first, all);
    expect("spin lock, in all", shared->spin_account.first, all);
    expect("ticket lock, in all", shared->ticket_account.first, all);
    expect("sum", shared->sum, 8 * all);
    expect("bits", shared->bits, 0);
    expect("low half of 128 bits", (uint64_t)shared->wide, all);
    expect("high half of 128 bits", (uint64_t)(shared->wide >> 64), all);
}

int main(int argc, char **argv)
{
    uint64_t rounds = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;

    prepare();
    for (unsigned i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            _exit(run_process(i, rounds));
        }
    for (int status = 0; wait(&status) > 0;)
        if (status != 0)
            return 1;
    check_totals(rounds);
    (void)puts("all");
    return 0;
}
