/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs' server. It says "husk-bench ready", then takes lines from its standard
 * input: the name of a program, which it runs, or "end". A number behind the name says
 * how many processes run it at once; the time is then from the first one's start to the
 * last one's end. It answers with
 *
 *     husk-bench NAME starts
 *     husk-bench NAME NANOSECONDS CHECKSUM PROCESSOR_NANOSECONDS        or
 *     husk-bench NAME failed: REASON
 *
 * As the first process of a guest it does the same on the serial port, and powers off at
 * the end.
 *
 * usage: programs [--list]
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "programs.h"

#define FIRST_PROCESS 1
#define NS_PER_SECOND 1000000000u

static const struct program programs[] = {
    {"multiply", "integer", NULL, run_multiply},
    {"digest", "integer", NULL, run_digest},
    {"sort", "integer", prepare_sort, run_sort},
    {"lookup", "integer", prepare_lookup, run_lookup},
    {"compress", "integer", prepare_compress, run_compress},
    {"calls", "integer", NULL, run_calls},
    {"bytecode", "integer", NULL, run_bytecode},
    {"indirect", "integer", prepare_indirect, run_indirect},
    {"matrix", "floating point", prepare_matrix, run_matrix},
    {"bodies", "floating point", NULL, run_bodies},
    {"rep-movs", "strings", prepare_strings, run_rep_movs},
    {"rep-stos", "strings", prepare_strings, run_rep_stos},
    {"memcpy", "strings", prepare_strings, run_memcpy},
    {"strlen", "strings", prepare_strings, run_strlen},
    {"chase-4m", "memory", prepare_chase_4m, run_chase_4m},
    {"chase-32m", "memory", prepare_chase_32m, run_chase_32m},
    {"atomics", "memory", NULL, run_atomics},
    {"syscall", "system", NULL, run_syscall},
    {"fault", "system", NULL, run_fault},
    {"spawn", "system", NULL, run_spawn},
    {"switch", "system", NULL, run_switch},
#ifdef HAVE_LIBTCC
    {"compile", "system", prepare_compile, run_compile},
#endif
};

#define PROGRAM_COUNT (sizeof(programs) / sizeof(programs[0]))

static const char *current = "";

uint64_t checksum(const void *bytes, size_t size_bytes)
{
    /* Fowler, Noll and Vo: draft-eastlake-fnv, 64 bits. */
    const uint8_t *at = bytes;
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < size_bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

void give_up(const char *what)
{
    printf("husk-bench %s failed: %s\n", current, what);
    (void)fflush(stdout);
    _exit(EXIT_FAILURE);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* Of this process and of its children that have ended. */
static uint64_t processor_ns(void)
{
    struct timespec own;
    struct rusage children;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    return (uint64_t)own.tv_sec * NS_PER_SECOND + (uint64_t)own.tv_nsec +
           (uint64_t)(children.ru_utime.tv_sec + children.ru_stime.tv_sec) *
               NS_PER_SECOND +
           (uint64_t)(children.ru_utime.tv_usec + children.ru_stime.tv_usec) * 1000;
}

/* ---- a program, once or several times at once ---- */

#define MAX_TOGETHER 16

/* What a process that runs a program tells the server. */
struct run_result {
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t sum;
    uint64_t processor_ns;
};

/* One of those this process may use: that a scheduler spreads short programs in time is
 * not what is measured. */
static void choose_processor(int number)
{
    cpu_set_t allowed;
    cpu_set_t one;
    int left;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return;
    left = number % CPU_COUNT(&allowed);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &allowed) && left-- == 0)
            CPU_SET(cpu, &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
}

/* Begins when all are prepared: the server reads a byte of each, and writes one to each.
 */
static _Noreturn void run_in_child(const struct program *program, int go, int results)
{
    struct run_result result;
    uint64_t start_processor_ns;
    char byte = 0;

    if (program->prepare != NULL)
        program->prepare();
    if (write(results, &byte, 1) != 1 || read(go, &byte, 1) != 1)
        _exit(EXIT_FAILURE);
    start_processor_ns = processor_ns();
    result.start_ns = now_ns();
    result.sum = program->run();
    result.end_ns = now_ns();
    result.processor_ns = processor_ns() - start_processor_ns;
    _exit(write(results, &result, sizeof(result)) == sizeof(result) ? EXIT_SUCCESS
                                                                    : EXIT_FAILURE);
}

/* Adds what one process has told. False: what it computed is not what the others did. */
static bool add_result(struct run_result *all, const struct run_result *one, bool first)
{
    if (first) {
        *all = *one;
        return true;
    }
    all->start_ns = one->start_ns < all->start_ns ? one->start_ns : all->start_ns;
    all->end_ns = one->end_ns > all->end_ns ? one->end_ns : all->end_ns;
    all->processor_ns += one->processor_ns;
    return all->sum == one->sum;
}

/* Writes of so few bytes come whole (pipe(7)). A process that has failed has said so. */
static void talk(int go, int results, int count)
{
    struct run_result all = {.sum = 0};
    struct run_result one;
    char bytes[MAX_TOGETHER] = {0};
    bool same = true;

    for (int i = 0; i < count; i++)
        if (read(results, bytes, 1) != 1)
            return;
    printf("husk-bench %s starts\n", current);
    (void)fflush(stdout);
    if (write(go, bytes, (size_t)count) != count)
        return;
    for (int i = 0; i < count; i++) {
        if (read(results, &one, sizeof(one)) != sizeof(one))
            return;
        same &= add_result(&all, &one, i == 0);
    }
    if (same)
        printf("husk-bench %s %llu %016llx %llu\n", current,
               (unsigned long long)(all.end_ns - all.start_ns),
               (unsigned long long)all.sum, (unsigned long long)all.processor_ns);
    else
        printf("husk-bench %s failed: results differ\n", current);
    (void)fflush(stdout);
}

static void wait_for_children(void)
{
    int status = 0;

    while (wait(&status) > 0)
        if (WIFSIGNALED(status))
            printf("husk-bench %s failed: signal %d\n", current, WTERMSIG(status));
}

/* In processes of their own: each finds memory as the first one did. */
static void run_together(const struct program *program, int count)
{
    int go[2];
    int results[2];
    int started = 0;

    current = program->name;
    if (pipe(go) < 0 || pipe(results) < 0)
        give_up("pipe");
    while (started < count) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)close(go[1]);
            (void)close(results[0]);
            if (count > 1)
                choose_processor(started);
            run_in_child(program, go[0], results[1]);
        }
        if (pid < 0)
            break;
        started++;
    }
    (void)close(go[0]);
    (void)close(results[1]);
    if (started == count)
        talk(go[1], results[0], count);
    else
        printf("husk-bench %s failed: fork\n", current);
    (void)close(go[1]);
    (void)close(results[0]);
    wait_for_children();
}

static const struct program *find(const char *name)
{
    for (size_t i = 0; i < PROGRAM_COUNT; i++)
        if (strcmp(programs[i].name, name) == 0)
            return &programs[i];
    return NULL;
}

/* 1 to MAX_TOGETHER. */
static int read_count(const char *text)
{
    long count = strtol(text, NULL, 10);

    return count < 1 ? 1 : count > MAX_TOGETHER ? MAX_TOGETHER : (int)count;
}

static void serve(void)
{
    char line[128];

    (void)signal(SIGPIPE, SIG_IGN);
    printf("husk-bench ready\n");
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const struct program *program;
        char *count;

        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "end") == 0)
            return;
        count = strchr(line, ' ');
        if (count != NULL)
            *count++ = '\0';
        program = find(line);
        if (program == NULL)
            printf("husk-bench %s failed: there is no such program\n", line);
        else
            run_together(program, count == NULL ? 1 : read_count(count));
        (void)fflush(stdout);
    }
}

/* ---- the first process of a guest ---- */

/* Bytes as they are: no echo, no signals, a newline is a newline. */
static void make_raw(int fd)
{
    struct termios settings;

    if (tcgetattr(fd, &settings) < 0)
        return;
    cfmakeraw(&settings);
    (void)tcsetattr(fd, TCSANOW, &settings);
}

static void set_up_guest(void)
{
    int port;

    (void)mkdir("/dev", 0755);
    (void)mkdir("/proc", 0755);
    (void)mkdir("/tmp", 0755);
    (void)mount("dev", "/dev", "devtmpfs", 0, NULL);
    (void)mount("proc", "/proc", "proc", 0, NULL);
    port = open("/dev/ttyS0", O_RDWR | O_NOCTTY);
    if (port < 0)
        return;
    make_raw(port);
    (void)dup2(port, STDIN_FILENO);
    (void)dup2(port, STDOUT_FILENO);
    (void)dup2(port, STDERR_FILENO);
}

static void list(void)
{
    for (size_t i = 0; i < PROGRAM_COUNT; i++)
        printf("%s %s\n", programs[i].name, programs[i].set);
    printf("husk-bench end\n");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--nothing") == 0)
        return EXIT_SUCCESS;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list();
        return EXIT_SUCCESS;
    }
#ifdef HAVE_LIBTCC
    if (argc == 4 && strcmp(argv[1], "--compile") == 0)
        return compile_file(argv[2], argv[3]);
#endif
    if (getpid() == FIRST_PROCESS)
        set_up_guest();
    serve();
    if (getpid() == FIRST_PROCESS)
        (void)reboot(RB_POWER_OFF);
    return EXIT_SUCCESS;
}
