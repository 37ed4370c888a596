/* SPDX-License-Identifier: Apache-2.0 */
/* What programs ask of the kernel: system calls, pages, processes, switches. */
#include <spawn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs.h"

#define CALLS 300000
#define MAP_ROUNDS 60
#define MAP_PAGES 256
#define PAGE_BYTES UINT64_C(4096)
#define PROCESSES 60
#define SWITCHES 6000

/* Not the C library's getpid: that one might remember. */
uint64_t run_syscall(void)
{
    const long own = getpid();
    uint64_t right = 0;

    for (int i = 0; i < CALLS; i++)
        right += syscall(SYS_getpid) == own ? 1 : 0;
    return right;
}

uint64_t run_fault(void)
{
    uint64_t sum = 0;

    for (uint64_t round = 0; round < MAP_ROUNDS; round++) {
        uint8_t *pages = mmap(NULL, MAP_PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (pages == MAP_FAILED)
            give_up("mmap");
        (void)madvise(pages, MAP_PAGES * PAGE_BYTES, MADV_NOHUGEPAGE);
        for (uint64_t page = 0; page < MAP_PAGES; page++) {
            sum += pages[page * PAGE_BYTES] + page;
            pages[page * PAGE_BYTES] = (uint8_t)(round + page);
        }
        for (uint64_t page = 0; page < MAP_PAGES; page++)
            sum += pages[page * PAGE_BYTES];
        (void)munmap(pages, MAP_PAGES * PAGE_BYTES);
    }
    return sum;
}

/* fork, exec of this executable, which does nothing, and wait. */
uint64_t run_spawn(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < PROCESSES; i++) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
            (void)execl("/proc/self/exe", "programs", "--nothing", NULL);
            _exit(1);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            give_up("fork, exec and wait");
        sum += 1;
    }
    return sum;
}

static void ping(int from, int to, uint64_t count)
{
    for (uint64_t value = 0; read(from, &value, sizeof(value)) == sizeof(value);) {
        value++;
        if (write(to, &value, sizeof(value)) != sizeof(value) || value >= count)
            return;
    }
}

/* Two processes hand a number to and fro. */
uint64_t run_switch(void)
{
    uint64_t value = 0;
    int there[2];
    int back[2];
    pid_t pid;

    if (pipe(there) < 0 || pipe(back) < 0)
        give_up("pipe");
    pid = fork();
    if (pid < 0)
        give_up("fork");
    if (pid == 0) {
        ping(there[0], back[1], SWITCHES);
        _exit(0);
    }
    while (value < SWITCHES) {
        if (write(there[1], &value, sizeof(value)) != sizeof(value) ||
            read(back[0], &value, sizeof(value)) != sizeof(value))
            give_up("pipe");
    }
    (void)waitpid(pid, NULL, 0);
    return value;
}
