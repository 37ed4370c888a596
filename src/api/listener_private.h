/* SPDX-License-Identifier: Apache-2.0 */
/* A listening socket in an instance's directory. On the loop's thread. */
#ifndef HUSK_API_LISTENER_PRIVATE_H
#define HUSK_API_LISTENER_PRIVATE_H

#include <event2/listener.h>

#include "api/instances_private.h"

/* Listens on socket `name`, which only this user can connect to. `accepted` may be NULL
 * if evhttp sets it. NULL on failure. To be freed (evconnlistener_free, or by evhttp)
 * when the loop does not run any more. */
struct evconnlistener *listener_open(struct loop *loop, const struct instance *instance,
                                     const char *name, evconnlistener_cb accepted,
                                     void *context, struct error *err);

#endif
