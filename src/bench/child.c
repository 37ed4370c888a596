/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, collecting from and ending a child; see child_private.h. */
#include "bench/child_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

/* What the child tells before it becomes the program: when, or why it did not. The pipe
 * closes itself when it does. */
struct start_report {
    uint64_t start_ns;
    int failure; /* errno; only sent if there is one */
};

/* The pipes between the two: one for each stream, for struct start_report, for input. */
enum {
    PIPE_OUTPUT = BENCH_STREAM_OUTPUT,
    PIPE_ERRORS = BENCH_STREAM_ERRORS,
    PIPE_REPORT,
    PIPE_INPUT,
    PIPE_COUNT,
};

struct pipes {
    int read_ends[PIPE_COUNT];
    int write_ends[PIPE_COUNT];
};

/* ---- the child's side ---- */

/* How many of the words in front are NAME=VALUE. */
static size_t count_variables(const char *const *arguments)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    size_t count = 0;

    while (arguments[count] != NULL && arguments[count][0] != '=' &&
           arguments[count][strspn(arguments[count], letters)] == '=')
        count++;
    return count;
}

/* The settings of whoever measures must not reach what is measured. */
static const char **make_environment(const char *const *variables, size_t variable_count)
{
    size_t count = 0;
    const char **kept;

    while (environ[count] != NULL)
        count++;
    kept = calloc(variable_count + count + 1, sizeof(*kept));
    if (kept == NULL)
        return NULL;
    for (count = 0; count < variable_count; count++)
        kept[count] = variables[count];
    for (char **variable = environ; *variable != NULL; variable++)
        if (strncmp(*variable, "HUSK_", strlen("HUSK_")) != 0)
            kept[count++] = *variable;
    return kept;
}

/* Signals as a shell would hand them over. */
static void reset_signals(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
}

static void report_start(int fd, const void *value, size_t size_bytes)
{
    /* If the parent has gone away, so does this process. */
    (void)!write(fd, value, size_bytes);
}

/* Does not return. */
static void become(const char *const *words, const char *const *variables,
                   const struct pipes *pipes)
{
    CLEANUP_FD int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int input = pipes->read_ends[PIPE_INPUT];
    const int report_fd = pipes->write_ends[PIPE_REPORT];
    /* execve takes no constant strings, and changes none. */
    char *const *arguments = (char *const *)(uintptr_t)words;
    char *const *environment = (char *const *)(uintptr_t)variables;
    struct start_report report = {.start_ns = 0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    reset_signals();
    (void)dup2(input < 0 ? nothing : input, STDIN_FILENO);
    (void)dup2(pipes->write_ends[PIPE_OUTPUT], STDOUT_FILENO);
    (void)dup2(pipes->write_ends[PIPE_ERRORS], STDERR_FILENO);
    report.start_ns = clock_monotonic_ns();
    report_start(report_fd, &report.start_ns, sizeof(report.start_ns));
    (void)execvpe(arguments[0], arguments, environment);
    report.failure = errno;
    report_start(report_fd, &report.failure, sizeof(report.failure));
    _exit(EXIT_FAILURE);
}

/* ---- starting it ---- */

static void close_pipes(struct pipes *pipes)
{
    for (size_t i = 0; i < PIPE_COUNT; i++) {
        fd_close(&pipes->read_ends[i]);
        fd_close(&pipes->write_ends[i]);
    }
}

static int make_pipes(struct pipes *pipes, bool has_input, struct error *err)
{
    for (size_t i = 0; i < PIPE_COUNT; i++)
        pipes->read_ends[i] = pipes->write_ends[i] = -1;
    for (size_t i = 0; i < PIPE_COUNT; i++) {
        int ends[2];

        if (i == PIPE_INPUT && !has_input)
            continue;
        if (pipe2(ends, O_CLOEXEC) < 0)
            return error_set_errno(err, errno, "cannot make a pipe");
        pipes->read_ends[i] = ends[0];
        pipes->write_ends[i] = ends[1];
    }
    return 0;
}

static int fork_child(struct bench_child *child, const char *const *arguments,
                      struct pipes *pipes, struct error *err)
{
    const size_t variable_count = count_variables(arguments);
    const char **environment = make_environment(arguments, variable_count);

    if (environment == NULL)
        return error_set(err, ENOMEM, "out of memory for a child's environment");
    child->pid = fork();
    if (child->pid == 0)
        become(arguments + variable_count, environment, pipes);
    free((void *)environment);
    if (child->pid < 0)
        return error_set_errno(err, errno, "cannot start a process");
    for (size_t i = 0; i < BENCH_STREAM_COUNT; i++)
        child->streams[i] = fd_take(&pipes->read_ends[i]);
    child->input = fd_take(&pipes->write_ends[PIPE_INPUT]);
    fd_close(&pipes->write_ends[PIPE_REPORT]);
    return 0;
}

static int await_start(struct bench_child *child, int report_fd, const char *program,
                       struct error *err)
{
    int failure = 0;

    if (read(report_fd, &child->start_ns, sizeof(child->start_ns)) !=
        sizeof(child->start_ns))
        return error_set(err, EIO, "%s: the new process ended at once", program);
    if (read(report_fd, &failure, sizeof(failure)) == sizeof(failure))
        return error_set_errno(err, failure, "cannot start %s", program);
    child->pidfd = pidfd_open(child->pid, 0);
    if (child->pidfd < 0)
        return error_set_errno(err, errno, "cannot watch process %ld", (long)child->pid);
    return 0;
}

int bench_child_start(struct bench_child *child, const char *const *arguments,
                      bool has_input, struct error *err)
{
    struct pipes pipes;

    *child = (struct bench_child){.pidfd = -1, .input = -1, .streams = {-1, -1}};
    if (make_pipes(&pipes, has_input, err) == 0 &&
        fork_child(child, arguments, &pipes, err) == 0)
        (void)await_start(child, pipes.read_ends[PIPE_REPORT],
                          arguments[count_variables(arguments)], err);
    close_pipes(&pipes);
    return err->code;
}

/* ---- watching it ---- */

/* The oldest bytes make room. */
static void keep(struct bench_output *output, const char *bytes, size_t size_bytes)
{
    size_t excess = 0;

    if (output->size_bytes + size_bytes > BENCH_OUTPUT_BYTES)
        excess = output->size_bytes + size_bytes - BENCH_OUTPUT_BYTES;
    memmove(output->bytes, output->bytes + excess, output->size_bytes - excess);
    output->size_bytes -= excess;
    memcpy(output->bytes + output->size_bytes, bytes, size_bytes);
    output->size_bytes += size_bytes;
    output->bytes[output->size_bytes] = '\0';
}

/* Takes what a readable stream has to give. */
static void take(int *fd, struct bench_output *output)
{
    char bytes[BENCH_OUTPUT_BYTES / 2];
    ssize_t got = read(*fd, bytes, sizeof(bytes));

    if (got > 0)
        keep(output, bytes, (size_t)got);
    else if (got == 0 || errno != EINTR)
        fd_close(fd);
}

enum { WATCHED_PROCESS = BENCH_STREAM_COUNT, WATCHED_INTERRUPT, WATCHED_COUNT };

int bench_child_wait(struct bench_child *child, uint64_t deadline_ns, int interrupt_fd)
{
    struct pollfd watched[WATCHED_COUNT] = {
        [BENCH_STREAM_OUTPUT] = {.fd = child->streams[BENCH_STREAM_OUTPUT],
                                 .events = POLLIN},
        [BENCH_STREAM_ERRORS] = {.fd = child->streams[BENCH_STREAM_ERRORS],
                                 .events = POLLIN},
        [WATCHED_PROCESS] = {.fd = child->pidfd, .events = POLLIN},
        [WATCHED_INTERRUPT] = {.fd = interrupt_fd, .events = POLLIN},
    };
    uint64_t now_ns = clock_monotonic_ns();

    if (now_ns >= deadline_ns)
        return -ETIME;
    if (poll(watched, WATCHED_COUNT, (int)((deadline_ns - now_ns) / NS_PER_MS + 1)) <= 0)
        return 0; /* the deadline, or a signal */
    child->woken_ns = clock_monotonic_ns();
    if (watched[WATCHED_INTERRUPT].revents != 0)
        return -EINTR;
    for (size_t i = 0; i < BENCH_STREAM_COUNT; i++)
        if (watched[i].revents != 0)
            take(&child->streams[i], &child->outputs[i]);
    return watched[WATCHED_PROCESS].revents != 0 ? 1 : 0;
}

double bench_child_processor_seconds(const struct bench_child *child)
{
    struct timespec time;
    clockid_t clock;

    if (child->pid <= 0 || clock_getcpuclockid(child->pid, &clock) != 0 ||
        clock_gettime(clock, &time) < 0)
        return -1;
    return (double)time.tv_sec + (double)time.tv_nsec / (double)NS_PER_SECOND;
}

/* ---- its end ---- */

/* What is in the pipes when the process is no more. */
static void take_rest(int *fd, struct bench_output *output)
{
    struct pollfd rest = {.fd = *fd, .events = POLLIN};

    while (*fd >= 0 && poll(&rest, 1, 0) > 0)
        take(fd, output);
}

void bench_child_end(struct bench_child *child, bool by_force)
{
    if (child->pid > 0) {
        child->was_killed = by_force;
        if (by_force)
            (void)kill(-child->pid, SIGKILL);
        while (wait4(child->pid, &child->wait_status, 0, &child->usage) < 0 &&
               errno == EINTR)
            continue;
        child->end_ns = clock_monotonic_ns();
    }
    for (size_t i = 0; i < BENCH_STREAM_COUNT; i++) {
        take_rest(&child->streams[i], &child->outputs[i]);
        fd_close(&child->streams[i]);
    }
    fd_close(&child->input);
    fd_close(&child->pidfd);
    child->pid = 0;
}

/* The last line that says something, cut off behind, without what a terminal obeys. */
static const char *last_line(char *text)
{
    size_t size = strlen(text);
    const char *newline;

    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        text[--size] = '\0';
    newline = strrchr(text, '\n');
    for (char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    return newline == NULL ? text : newline + 1;
}

/* "..., having said 'X': Y" from the last lines of both outputs. */
static void quote(const struct bench_child *child, char *text, size_t size)
{
    struct bench_output output = child->outputs[BENCH_STREAM_OUTPUT];
    struct bench_output errors = child->outputs[BENCH_STREAM_ERRORS];
    const char *said = last_line(output.bytes);
    const char *complained = last_line(errors.bytes);

    (void)snprintf(text, size, "%s%.200s%s%s%s", said[0] == '\0' ? "" : ", having said '",
                   said, said[0] == '\0' ? "" : "'", complained[0] == '\0' ? "" : ": ",
                   complained);
}

int bench_child_fail(struct bench_child *child, int status, const char *what,
                     uint64_t timeout_ms, struct error *err)
{
    char quotes[ERROR_TEXT_BYTES];

    if (status == -EINTR)
        return error_set(err, EINTR, "interrupted");
    quote(child, quotes, sizeof(quotes));
    if (status == -ETIME)
        return error_set(err, ETIME, "no %s within %.1f s%s", what,
                         (double)timeout_ms / 1000, quotes);
    if (WIFSIGNALED(child->wait_status))
        return error_set(err, EIO, "signal %d ended it before its %s%s",
                         WTERMSIG(child->wait_status), what, quotes);
    return error_set(err, EIO, "ended with %d before its %s%s",
                     WEXITSTATUS(child->wait_status), what, quotes);
}
