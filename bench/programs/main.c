/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs' server. It says "husk-bench ready", then takes lines from its standard
 * input: the name of a program, which it runs, or "end". It answers with
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

/* ---- a program ---- */

static void run(const struct program *program)
{
    uint64_t start_processor_ns;
    uint64_t start_ns;
    uint64_t elapsed_ns;
    uint64_t sum;

    if (program->prepare != NULL)
        program->prepare();
    printf("husk-bench %s starts\n", program->name);
    (void)fflush(stdout);
    start_processor_ns = processor_ns();
    start_ns = now_ns();
    sum = program->run();
    elapsed_ns = now_ns() - start_ns;
    printf("husk-bench %s %llu %016llx %llu\n", program->name,
           (unsigned long long)elapsed_ns, (unsigned long long)sum,
           (unsigned long long)(processor_ns() - start_processor_ns));
    (void)fflush(stdout);
}

/* In a process of its own: each finds memory as the first one did. */
static void run_in_child(const struct program *program)
{
    int status = 0;
    pid_t pid = fork();

    current = program->name;
    if (pid == 0) {
        run(program);
        _exit(EXIT_SUCCESS);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        printf("husk-bench %s failed: fork\n", current);
    else if (WIFSIGNALED(status))
        printf("husk-bench %s failed: signal %d\n", current, WTERMSIG(status));
    (void)fflush(stdout);
}

static const struct program *find(const char *name)
{
    for (size_t i = 0; i < PROGRAM_COUNT; i++)
        if (strcmp(programs[i].name, name) == 0)
            return &programs[i];
    return NULL;
}

static void serve(void)
{
    char line[128];

    printf("husk-bench ready\n");
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const struct program *program;

        line[strcspn(line, "\r\n")] = '\0';
        if (strcmp(line, "end") == 0)
            return;
        program = find(line);
        if (program == NULL)
            printf("husk-bench %s failed: there is no such program\n", line);
        else
            run_in_child(program);
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
