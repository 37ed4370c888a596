/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control of a running VM by HTTP and JSON on a Unix socket, and the directory in which
 * running instances are found:
 *
 * - $XDG_RUNTIME_DIR/husk/NAME/; without it /run/husk/NAME/ for root, else
 *   /tmp/husk-UID/NAME/
 * - lock: held by the running process; held means alive. Contains the pid
 * - api.sock: the routes below
 * - console.sock: console bytes both ways; the last 1 MiB of output comes first
 * - info.json: pid, started, kernel, memory_bytes, vcpus
 *
 * Routes:
 *
 * - GET /: {"schema":1,"name":..,"state":..,"pid":..,...}
 * - GET /stat: the same, with counters, disks, balloon, stages, plan bytes and the
 *   process's memory; why the VM has paused itself, or null
 * - PATCH /vm: {"state":"Paused"|"Resumed"} (as Firecracker)
 * - PUT /actions: {"action_type":"SendCtrlAltDel"} is the power button (as Firecracker);
 *   "Stop" ends the VM, "Dump" logs its registers, "UpdateDisks" looks at the sizes of
 *   its disks again
 * - PATCH /balloon: {"amount_mib":NUMBER} (as Firecracker): so much memory the guest
 *   shall do without
 *
 * Success without content is 204; errors are {"fault_message":"..."} with 400 (bad
 * request), 404 (no such path), 405 (not with this method) or 409 (not in this state).
 *
 * Server side: on the loop's thread. Client side: any thread, blocking.
 */
#ifndef HUSK_API_API_H
#define HUSK_API_API_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/loop.h"
#include "config/config.h"
#include "vm/console.h"
#include "vm/vm.h"

/* ---- instances ---- */

struct instance; /* this process's own directory, locked */

/* Creates the directory and takes the lock. `name` NULL: one is made from the pid. A name
 * in use: -EADDRINUSE, naming the pid. Names are 1 to 64 of [A-Za-z0-9._-], not starting
 * with '.'. A directory left by a dead process is reused. */
int instance_create(const char *name, struct instance **instance,
                    struct error *err) MUST_CHECK;
void instance_destroy(struct instance *instance); /* removes it; accepts NULL */
const char *instance_name(const struct instance *instance);
const char *instance_directory(const struct instance *instance);

struct instance_info {
    char name[65];
    pid_t pid;
    char directory[256];
};

/* Calls `visit` for each living instance, by name. Directories of dead ones are removed.
 */
int instance_list(void (*visit)(void *context, const struct instance_info *info),
                  void *context, struct error *err) MUST_CHECK;

/* Finds a living one: -ENOENT with the nearest names. */
int instance_find(const char *name, struct instance_info *info,
                  struct error *err) MUST_CHECK;

/* ---- server ---- */

struct api_server;

/* Writes info.json and listens on both sockets. All parameters are borrowed for the
 * server's life. */
int api_server_create(struct loop *loop, struct vm *vm, struct console *console,
                      const struct vm_config *config, const struct instance *instance,
                      struct api_server **server, struct error *err) MUST_CHECK;
void api_server_destroy(struct api_server *server); /* accepts NULL */

/* ---- client ---- */

/* One request to an instance; `body` may be NULL. The answer's body (NUL-terminated,
 * caller frees, "" if none) is put into *answer for 2xx; others are errors with the fault
 * message. */
int api_request(const struct instance_info *instance, const char *method,
                const char *path, const char *body, char **answer,
                struct error *err) MUST_CHECK;

/* Connects to console.sock; returns the descriptor. */
int api_connect_console(const struct instance_info *instance,
                        struct error *err) MUST_CHECK;

#endif
