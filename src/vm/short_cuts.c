/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short cuts through the host's kernel: what a guest writes to a doorbell signals an
 * eventfd, and an eventfd that a device signals interrupts the guest, without a vCPU that
 * leaves the guest or, for the interrupt, is even told.
 *
 * Each is made when its way is first used. So nothing is set up for queues and vectors
 * that nobody uses, and after a reset, or when the guest changes its mind, there is
 * nothing to be made anew: it is enough to forget.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "vm/vm_private.h"

/* ---- doorbells: vCPU threads ---- */

static bool change_doorbell(struct vm *vm, uint64_t address, int fd, bool attach)
{
    static struct log_gate gate;
    const struct accel_doorbell doorbell = {.address = address, .fd = fd};
    struct error err = ERROR_NONE;

    if (vm->accel->ioeventfd(vm->accel_vm, &doorbell, attach, &err) == 0)
        return true;
    if (log_gate_open(&gate))
        log_info("notifications exit, which is slower: %s", err.text);
    return false;
}

bool vm_attach_doorbell(void *context, uint64_t address, int fd)
{
    return change_doorbell(context, address, fd, true);
}

void vm_detach_doorbell(void *context, uint64_t address, int fd)
{
    (void)change_doorbell(context, address, fd, false);
}

/* ---- messages: any thread ---- */

static bool open_route(struct vm *vm, struct message_route *route, uint32_t number,
                       uint64_t address, uint32_t data, struct error *err)
{
    if (route->fd == 0)
        route->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (route->fd < 0) {
        (void)error_set_errno(err, errno, "cannot create an eventfd");
        route->fd = 0;
        return false;
    }
    route->address = address;
    route->data = data;
    return vm->accel->route_message(vm->accel_vm, number, route->fd, address, data,
                                    err) == 0;
}

bool vm_send_by_eventfd(struct vm *vm, unsigned sender, uint64_t address, uint32_t data)
{
    static struct log_gate gate;
    const uint64_t one = 1;
    struct error err = ERROR_NONE;
    struct message_route *route;

    if (vm->accel->route_message == NULL || sender >= ACCEL_MESSAGE_ROUTES)
        return false;
    route = &vm->routes[sender];
    if (!route->is_open || route->address != address || route->data != data)
        route->is_open = open_route(vm, route, sender, address, data, &err);
    if (!route->is_open) {
        if (log_gate_open(&gate))
            log_info("interrupts go by calls of the accelerator: %s", err.text);
        return false;
    }
    atomic_fetch_add_explicit(&vm->irqfd_interrupts, 1, memory_order_relaxed);
    /* The accelerator empties it at once, so it never is too full. */
    return write(route->fd, &one, sizeof(one)) == (ssize_t)sizeof(one);
}

void vm_forget_routes(struct vm *vm)
{
    for (size_t i = 0; i < ACCEL_MESSAGE_ROUTES; i++)
        if (vm->routes[i].is_open) /* not to touch memory that nobody uses */
            vm->routes[i].is_open = false;
}

void vm_close_routes(struct vm *vm)
{
    for (size_t i = 0; i < ACCEL_MESSAGE_ROUTES; i++)
        if (vm->routes[i].fd > 0)
            fd_close(&vm->routes[i].fd);
}
