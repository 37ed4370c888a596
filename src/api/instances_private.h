/* SPDX-License-Identifier: Apache-2.0 */
/* What the server needs of its own instance, and the names of the files in it. */
#ifndef HUSK_API_INSTANCES_PRIVATE_H
#define HUSK_API_INSTANCES_PRIVATE_H

#include <sys/un.h>

#include "api/api.h"

#define INSTANCE_LOCK "lock"
#define INSTANCE_API_SOCKET "api.sock"
#define INSTANCE_CONSOLE_SOCKET "console.sock"
#define INSTANCE_INFO "info.json"

/* Writes info.json, replacing it in one step. */
int instance_write_info(const struct instance *instance, const char *text,
                        struct error *err) MUST_CHECK;

/* The address of socket `name` in `directory`. sun_path is short (unix(7)): a directory
 * that is too long for it is -ENAMETOOLONG. */
int instance_socket_address(const char *directory, const char *name,
                            struct sockaddr_un *address, struct error *err) MUST_CHECK;

#endif
