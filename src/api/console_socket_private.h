/* SPDX-License-Identifier: Apache-2.0 */
/* console.sock: console bytes both ways, for several clients. On the loop's thread. */
#ifndef HUSK_API_CONSOLE_SOCKET_PRIVATE_H
#define HUSK_API_CONSOLE_SOCKET_PRIVATE_H

#include "api/api.h"

struct console_socket;

int console_socket_create(struct loop *loop, struct console *console,
                          const struct instance *instance, struct console_socket **socket,
                          struct error *err) MUST_CHECK;
void console_socket_destroy(struct console_socket *socket); /* accepts NULL */

#endif
