/* SPDX-License-Identifier: Apache-2.0 */
/* Starting, watching and ending a child; see process_private.h. */
#include "bench/process_private.h"

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
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

enum stream { STREAM_OUTPUT, STREAM_ERRORS, STREAM_COUNT };

struct watch {
    pid_t pid;
    int pidfd;
    int streams[STREAM_COUNT]; /* read ends; -1: at their end */
    uint64_t start_ns;
    uint64_t deadline_ns;
    bool line_came;
};

/* What the child tells before it becomes the program: when, or why it did not. The pipe
 * closes itself when it does. */
struct start_report {
    uint64_t start_ns;
    int failure; /* errno; only sent if there is one */
};

/* ---- the child's side ---- */

/* The settings of whoever measures must not reach what is measured. */
static char **make_environment(void)
{
    size_t count = 0;
    char **kept;

    while (environ[count] != NULL)
        count++;
    kept = calloc(count + 1, sizeof(*kept));
    if (kept == NULL)
        return NULL;
    count = 0;
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

/* Does not return. `streams` are write ends. */
static void become(const struct bench_command *command, char **environment,
                   const int *streams, int report_fd)
{
    CLEANUP_FD int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* execve takes no constant strings, and changes none. */
    char *const *arguments = (char *const *)(uintptr_t)command->arguments;
    struct start_report report = {.start_ns = 0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    reset_signals();
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(streams[STREAM_OUTPUT], STDOUT_FILENO);
    (void)dup2(streams[STREAM_ERRORS], STDERR_FILENO);
    report.start_ns = clock_monotonic_ns();
    report_start(report_fd, &report.start_ns, sizeof(report.start_ns));
    (void)execvpe(arguments[0], arguments, environment);
    report.failure = errno;
    report_start(report_fd, &report.failure, sizeof(report.failure));
    _exit(EXIT_FAILURE);
}

/* ---- starting it ---- */

struct pipes {
    int read_ends[STREAM_COUNT + 1]; /* the last one is for struct start_report */
    int write_ends[STREAM_COUNT + 1];
};

static void close_ends(int *ends)
{
    for (size_t i = 0; i < STREAM_COUNT + 1; i++)
        fd_close(&ends[i]);
}

static int make_pipes(struct pipes *pipes, struct error *err)
{
    for (size_t i = 0; i < STREAM_COUNT + 1; i++)
        pipes->read_ends[i] = pipes->write_ends[i] = -1;
    for (size_t i = 0; i < STREAM_COUNT + 1; i++) {
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0)
            return error_set_errno(err, errno, "cannot make a pipe");
        pipes->read_ends[i] = ends[0];
        pipes->write_ends[i] = ends[1];
    }
    return 0;
}

static int fork_child(const struct bench_command *command, struct pipes *pipes,
                      pid_t *pid, struct error *err)
{
    char **environment = make_environment();

    if (environment == NULL)
        return error_set(err, ENOMEM, "out of memory for a child's environment");
    *pid = fork();
    if (*pid == 0)
        become(command, environment, pipes->write_ends, pipes->write_ends[STREAM_COUNT]);
    free(environment);
    if (*pid < 0)
        return error_set_errno(err, errno, "cannot start a process");
    close_ends(pipes->write_ends);
    return 0;
}

static int await_start(struct watch *watch, int report_fd, const char *program,
                       struct error *err)
{
    int failure = 0;

    if (read(report_fd, &watch->start_ns, sizeof(watch->start_ns)) !=
        sizeof(watch->start_ns))
        return error_set(err, EIO, "%s: the new process ended at once", program);
    if (read(report_fd, &failure, sizeof(failure)) == sizeof(failure))
        return error_set_errno(err, failure, "cannot start %s", program);
    watch->pidfd = pidfd_open(watch->pid, 0);
    if (watch->pidfd < 0)
        return error_set_errno(err, errno, "cannot watch process %ld", (long)watch->pid);
    return 0;
}

static int start(const struct bench_command *command, struct watch *watch,
                 struct error *err)
{
    struct pipes pipes;

    if (make_pipes(&pipes, err) == 0 &&
        fork_child(command, &pipes, &watch->pid, err) == 0 &&
        await_start(watch, pipes.read_ends[STREAM_COUNT], command->arguments[0], err) ==
            0)
        for (size_t i = 0; i < STREAM_COUNT; i++)
            watch->streams[i] = fd_take(&pipes.read_ends[i]);
    close_ends(pipes.read_ends);
    close_ends(pipes.write_ends);
    watch->deadline_ns = watch->start_ns + command->timeout_ms * NS_PER_MS;
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

static void look_for_line(const struct bench_command *command, struct watch *watch,
                          struct bench_process *process, uint64_t now_ns)
{
    if (watch->line_came || memmem(process->output.bytes, process->output.size_bytes,
                                   command->line, strlen(command->line)) == NULL)
        return;
    watch->line_came = true;
    process->line_ns = now_ns - watch->start_ns;
    watch->deadline_ns = now_ns + command->end_timeout_ms * NS_PER_MS;
}

enum {
    WATCHED_OUTPUT = STREAM_OUTPUT,
    WATCHED_ERRORS = STREAM_ERRORS,
    WATCHED_PROCESS,
    WATCHED_INTERRUPT,
    WATCHED_COUNT,
};

/* Waits until something happens and sees to it. 1: the process has ended; 0: it goes on;
 * -ETIME, -EINTR without text. */
static int watch_once(const struct bench_command *command, struct watch *watch,
                      struct bench_process *process)
{
    struct pollfd watched[WATCHED_COUNT] = {
        [WATCHED_OUTPUT] = {.fd = watch->streams[STREAM_OUTPUT], .events = POLLIN},
        [WATCHED_ERRORS] = {.fd = watch->streams[STREAM_ERRORS], .events = POLLIN},
        [WATCHED_PROCESS] = {.fd = watch->pidfd, .events = POLLIN},
        [WATCHED_INTERRUPT] = {.fd = command->interrupt_fd, .events = POLLIN},
    };
    uint64_t now_ns = clock_monotonic_ns();

    if (now_ns >= watch->deadline_ns)
        return -ETIME;
    if (poll(watched, WATCHED_COUNT,
             (int)((watch->deadline_ns - now_ns) / NS_PER_MS + 1)) <= 0)
        return 0; /* the deadline, or a signal */
    now_ns = clock_monotonic_ns();
    if (watched[WATCHED_INTERRUPT].revents != 0)
        return -EINTR;
    if (watched[WATCHED_OUTPUT].revents != 0)
        take(&watch->streams[STREAM_OUTPUT], &process->output);
    if (watched[WATCHED_ERRORS].revents != 0)
        take(&watch->streams[STREAM_ERRORS], &process->errors);
    look_for_line(command, watch, process, now_ns);
    return watched[WATCHED_PROCESS].revents != 0 ? 1 : 0;
}

/* What is in the pipes when the process is no more. */
static void take_rest(int *fd, struct bench_output *output)
{
    struct pollfd rest = {.fd = *fd, .events = POLLIN};

    while (*fd >= 0 && poll(&rest, 1, 0) > 0)
        take(fd, output);
}

/* ---- its end ---- */

static void end(struct watch *watch, bool by_force, struct bench_process *process)
{
    if (watch->pid <= 0)
        return;
    process->was_killed = by_force;
    if (by_force)
        (void)kill(-watch->pid, SIGKILL);
    while (wait4(watch->pid, &process->wait_status, 0, &process->usage) < 0 &&
           errno == EINTR)
        continue;
    if (watch->start_ns != 0)
        process->end_ns = clock_monotonic_ns() - watch->start_ns;
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
static void quote(const struct bench_process *process, char *text, size_t size)
{
    struct bench_output output = process->output;
    struct bench_output errors = process->errors;
    const char *said = last_line(output.bytes);
    const char *complained = last_line(errors.bytes);

    (void)snprintf(text, size, "%s%.200s%s%s%s", said[0] == '\0' ? "" : ", having said '",
                   said, said[0] == '\0' ? "" : "'", complained[0] == '\0' ? "" : ": ",
                   complained);
}

static int fail(const struct bench_command *command, int status,
                const struct bench_process *process, struct error *err)
{
    char quotes[ERROR_TEXT_BYTES];

    quote(process, quotes, sizeof(quotes));
    if (status == -ETIME)
        return error_set(err, ETIME, "no line within %.1f s%s",
                         (double)command->timeout_ms / 1000, quotes);
    if (WIFSIGNALED(process->wait_status))
        return error_set(err, EIO, "signal %d ended it before its line%s",
                         WTERMSIG(process->wait_status), quotes);
    return error_set(err, EIO, "ended with %d before its line%s",
                     WEXITSTATUS(process->wait_status), quotes);
}

int bench_process_run(const struct bench_command *command, struct bench_process *process,
                      struct error *err)
{
    struct watch watch = {.pidfd = -1, .streams = {-1, -1}};
    int status;

    *process = (struct bench_process){.line_ns = 0};
    status = start(command, &watch, err);
    while (status == 0)
        status = watch_once(command, &watch, process);
    end(&watch, status < 0, process);
    for (size_t i = 0; i < STREAM_COUNT; i++)
        take_rest(&watch.streams[i],
                  i == STREAM_OUTPUT ? &process->output : &process->errors);
    look_for_line(command, &watch, process, watch.start_ns + process->end_ns);
    for (size_t i = 0; i < STREAM_COUNT; i++)
        fd_close(&watch.streams[i]);
    fd_close(&watch.pidfd);
    if (status == -EINTR)
        return error_set(err, EINTR, "interrupted");
    if (err->code == 0 && !watch.line_came)
        (void)fail(command, status, process, err);
    return err->code;
}
