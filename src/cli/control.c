/* SPDX-License-Identifier: Apache-2.0 */
/* husk stop, kill, pause, resume, resize, balloon: orders to a running instance. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/control_private.h"

/* How long an instance that was told to end may take for it. */
#define END_SECONDS 5

static int order(const struct instance_info *instance, const char *method,
                 const char *path, const char *body, struct error *err)
{
    char *answer = NULL;
    int status = api_request(instance, method, path, body, &answer, err);

    free(answer);
    return status;
}

static int order_action(const struct instance_info *instance, const char *body,
                        struct error *err)
{
    return order(instance, "PUT", "/actions", body, err);
}

/* A descriptor of the instance's process, or -ESRCH without text if it has ended. The
 * number in the lock file alone could by now be another process's; but if the lock is
 * still held after the descriptor was made, the descriptor is the holder's. */
static int open_process(const struct instance_info *instance, int *pidfd,
                        struct error *err)
{
    struct instance_info again;
    struct error ignored = ERROR_NONE;
    CLEANUP_FD int opened = pidfd_open(instance->pid, 0);

    if (opened < 0 && errno == ESRCH)
        return -ESRCH;
    if (opened < 0)
        return error_set_errno(err, errno, "instance %s: cannot watch process %ld",
                               instance->name, (long)instance->pid);
    if (instance_find(instance->name, &again, &ignored) < 0 || again.pid != instance->pid)
        return -ESRCH;
    *pidfd = fd_take(&opened);
    return 0;
}

/* True when the process has ended within the time. */
static bool wait_end(int pidfd, uint64_t seconds)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};

    return poll(&ended, 1, (int)(seconds * 1000)) > 0;
}

/* Tells the instance to end. True if it has: it may end before its answer is read, so the
 * end counts and not the answer. */
static bool order_end(const struct instance_info *instance, int pidfd,
                      struct error *refusal)
{
    (void)order_action(instance, "{\"action_type\":\"Stop\"}", refusal);
    return wait_end(pidfd, refusal->code == -ETIMEDOUT ? 0 : END_SECONDS);
}

/* ---- stop ---- */

static int cannot_stop(const struct instance_info *instance, const struct error *refusal,
                       struct error *err)
{
    return error_set(err, refusal->code, "%s; to end it by force: husk kill %s",
                     refusal->text, instance->name);
}

/* 1: it has ended within the time. 0: it has not, or its guest does not listen. */
static int press_and_wait(const struct instance_info *instance, int pidfd,
                          uint64_t seconds, struct error *err)
{
    static const char body[] = "{\"action_type\":\"SendCtrlAltDel\"}";
    struct error refusal = ERROR_NONE;

    if (seconds == 0)
        return 0;
    if (order_action(instance, body, &refusal) == -ETIMEDOUT)
        return cannot_stop(instance, &refusal, err);
    return refusal.code == 0 && wait_end(pidfd, seconds) ? 1 : 0;
}

static int stop(const struct instance_info *instance, uint64_t seconds, struct error *err)
{
    struct error refusal = ERROR_NONE;
    CLEANUP_FD int pidfd = -1;
    int status = open_process(instance, &pidfd, err);

    if (status == -ESRCH)
        return 0;
    if (status == 0)
        status = press_and_wait(instance, pidfd, seconds, err);
    if (status != 0)
        return status < 0 ? status : 0;
    if (order_end(instance, pidfd, &refusal))
        return 0;
    if (refusal.code == 0)
        error_set(&refusal, ETIMEDOUT, "instance %s: has not ended within %d s",
                  instance->name, END_SECONDS);
    return cannot_stop(instance, &refusal, err);
}

int cli_stop(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME | CONTROL_TIMEOUT, argc, argv, &request, err);

    if (code != 0)
        return code;
    return stop(&request.instance, request.timeout_seconds, err) < 0 ? EXIT_HOST_FAILURE
                                                                     : EXIT_SUCCESS;
}

/* ---- kill ---- */

static int kill_instance(const struct instance_info *instance, struct error *err)
{
    struct error ignored = ERROR_NONE; /* if it does not obey, a signal does it */
    CLEANUP_FD int pidfd = -1;
    int status = open_process(instance, &pidfd, err);

    if (status == -ESRCH)
        return 0;
    if (status < 0)
        return status;
    if (order_end(instance, pidfd, &ignored))
        return 0;
    if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
        return error_set_errno(err, errno, "instance %s: cannot kill process %ld",
                               instance->name, (long)instance->pid);
    if (!wait_end(pidfd, END_SECONDS))
        return error_set(err, ETIMEDOUT,
                         "instance %s: process %ld has not ended %d s after SIGKILL",
                         instance->name, (long)instance->pid, END_SECONDS);
    return 0;
}

int cli_kill(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME, argc, argv, &request, err);

    if (code != 0)
        return code;
    return kill_instance(&request.instance, err) < 0 ? EXIT_HOST_FAILURE : EXIT_SUCCESS;
}

/* ---- pause, resume ---- */

static int change_state(const char *body, int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME, argc, argv, &request, err);

    if (code != 0)
        return code;
    return order(&request.instance, "PATCH", "/vm", body, err) < 0 ? EXIT_HOST_FAILURE
                                                                   : EXIT_SUCCESS;
}

int cli_pause(int argc, char **argv, struct error *err)
{
    return change_state("{\"state\":\"Paused\"}", argc, argv, err);
}

int cli_resume(int argc, char **argv, struct error *err)
{
    return change_state("{\"state\":\"Resumed\"}", argc, argv, err);
}

/* ---- resize ---- */

int cli_resize(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME, argc, argv, &request, err);

    if (code != 0)
        return code;
    return order_action(&request.instance, "{\"action_type\":\"UpdateDisks\"}", err) < 0
               ? EXIT_HOST_FAILURE
               : EXIT_SUCCESS;
}

/* ---- balloon ---- */

int cli_balloon(int argc, char **argv, struct error *err)
{
    struct control_request request;
    int code = control_begin(CONTROL_NAME | CONTROL_SIZE, argc, argv, &request, err);
    char body[64];

    if (code != 0)
        return code;
    (void)snprintf(body, sizeof(body), "{\"amount_mib\":%" PRIu64 "}",
                   request.size_bytes / MIB);
    return order(&request.instance, "PATCH", "/balloon", body, err) < 0
               ? EXIT_HOST_FAILURE
               : EXIT_SUCCESS;
}
