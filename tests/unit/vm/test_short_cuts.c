/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and doorbells where the accelerator has short cuts for them, and where it
 * refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "vm/vm_private.h"

#define ADDRESS UINT64_C(0xfee00000)
#define DOORBELL_FD 77

/* What the accelerator was asked for last. */
static struct accel {
    bool refuses;
    unsigned routes;
    uint32_t route;
    int fd;
    uint64_t address;
    uint32_t data;
    unsigned messages;
    unsigned doorbells;
    struct accel_doorbell doorbell;
    bool attach;
} accel;

static int refuse_if_told(struct error *err)
{
    return accel.refuses ? error_set(err, ENOSPC, "full") : 0;
}

static int note_route(struct accel_vm *vm, uint32_t route, int fd, uint64_t address,
                      uint32_t data, struct error *err)
{
    (void)vm;
    accel.routes++;
    accel.route = route;
    accel.fd = fd;
    accel.address = address;
    accel.data = data;
    return refuse_if_told(err);
}

static int note_message(struct accel_vm *vm, uint64_t address, uint32_t data,
                        struct error *err)
{
    (void)vm;
    (void)err;
    assert_int_equal(address, ADDRESS);
    assert_int_equal(data, 0x41);
    accel.messages++;
    return 0;
}

static int note_doorbell(struct accel_vm *vm, const struct accel_doorbell *doorbell,
                         bool attach, struct error *err)
{
    (void)vm;
    accel.doorbells++;
    accel.doorbell = *doorbell;
    accel.attach = attach;
    return refuse_if_told(err);
}

static const struct accel_ops with_short_cuts = {
    .name = "with",
    .signal_msi = note_message,
    .ioeventfd = note_doorbell,
    .route_message = note_route,
};
static const struct accel_ops without_short_cuts = {.name = "without",
                                                    .signal_msi = note_message};

static struct vm the_vm;

static int set_up(void **state)
{
    memset(&accel, 0, sizeof(accel));
    memset(&the_vm, 0, sizeof(the_vm));
    the_vm.accel = &with_short_cuts;
    *state = &the_vm;
    return 0;
}

static int tear_down(void **state)
{
    vm_close_routes(*state);
    return 0;
}

/* How many times the eventfd was signalled since the last call. */
static eventfd_t signals(void)
{
    eventfd_t count = 0;

    return eventfd_read(accel.fd, &count) == 0 ? count : 0;
}

static void a_message_signals_the_eventfd_of_its_sender(void **state)
{
    struct vm *vm = *state;
    int first_fd;

    vm_send_message(vm, 5, ADDRESS, 0x41);
    vm_send_message(vm, 5, ADDRESS, 0x41);
    assert_int_equal(accel.routes, 1);
    assert_int_equal(accel.route, 5);
    assert_int_equal(accel.address, ADDRESS);
    assert_int_equal(accel.data, 0x41);
    assert_int_equal(signals(), 2);
    first_fd = accel.fd;
    vm_send_message(vm, 6, ADDRESS, 0x41);
    assert_int_equal(accel.routes, 2);
    assert_int_equal(accel.route, 6);
    assert_int_not_equal(accel.fd, first_fd);
    assert_int_equal(signals(), 1);
    assert_int_equal(accel.messages, 0);
    assert_int_equal(atomic_load(&vm->irqfd_interrupts), 3);
}

static void another_message_of_the_same_sender_is_routed_anew(void **state)
{
    struct vm *vm = *state;
    int fd;

    vm_send_message(vm, 5, ADDRESS, 0x41);
    fd = accel.fd;
    vm_send_message(vm, 5, ADDRESS, 0x42);
    assert_int_equal(accel.routes, 2);
    assert_int_equal(accel.data, 0x42);
    vm_send_message(vm, 5, ADDRESS + 0x1000, 0x42);
    assert_int_equal(accel.routes, 3);
    assert_int_equal(accel.address, ADDRESS + 0x1000);
    assert_int_equal(accel.fd, fd);
    assert_int_equal(signals(), 3);
}

/* After a reset of the machine the accelerator's VM is another. */
static void forgotten_routes_are_made_again(void **state)
{
    struct vm *vm = *state;

    vm_send_message(vm, 5, ADDRESS, 0x41);
    vm_forget_routes(vm);
    vm_send_message(vm, 5, ADDRESS, 0x41);
    assert_int_equal(accel.routes, 2);
    assert_int_equal(signals(), 2);
}

static void a_message_whose_route_is_refused_goes_by_a_call(void **state)
{
    struct vm *vm = *state;

    accel.refuses = true;
    vm_send_message(vm, 5, ADDRESS, 0x41);
    assert_int_equal(accel.messages, 1);
    assert_int_equal(signals(), 0);
    accel.refuses = false;
    vm_send_message(vm, 5, ADDRESS, 0x41);
    assert_int_equal(accel.messages, 1);
    assert_int_equal(signals(), 1);
}

static void a_route_that_cannot_be_changed_is_used_no_more(void **state)
{
    struct vm *vm = *state;

    vm_send_message(vm, 5, ADDRESS, 0x42);
    accel.refuses = true;
    vm_send_message(vm, 5, ADDRESS, 0x41);
    vm_send_message(vm, 5, ADDRESS, 0x41);
    assert_int_equal(accel.messages, 2);
    assert_int_equal(signals(), 1);
}

static void a_sender_beyond_the_last_route_uses_calls(void **state)
{
    struct vm *vm = *state;

    vm_send_message(vm, ACCEL_MESSAGE_ROUTES, ADDRESS, 0x41);
    assert_int_equal(accel.routes, 0);
    assert_int_equal(accel.messages, 1);
}

static void an_accelerator_without_routes_gets_calls(void **state)
{
    struct vm *vm = *state;

    vm->accel = &without_short_cuts;
    vm_send_message(vm, 5, ADDRESS, 0x41);
    assert_int_equal(accel.messages, 1);
    assert_int_equal(atomic_load(&vm->irqfd_interrupts), 0);
}

static void a_doorbell_rings_for_any_write_to_its_address(void **state)
{
    struct vm *vm = *state;

    assert_true(vm_attach_doorbell(vm, 0xc0003000, DOORBELL_FD));
    assert_true(accel.attach);
    assert_int_equal(accel.doorbell.address, 0xc0003000);
    assert_int_equal(accel.doorbell.fd, DOORBELL_FD);
    assert_false(accel.doorbell.is_port);
    assert_int_equal(accel.doorbell.size_bytes, 0);
    assert_false(accel.doorbell.has_match);
    vm_detach_doorbell(vm, 0xc0003000, DOORBELL_FD);
    assert_false(accel.attach);
    assert_int_equal(accel.doorbells, 2);
}

static void a_refused_doorbell_is_said_so(void **state)
{
    struct vm *vm = *state;

    accel.refuses = true;
    assert_false(vm_attach_doorbell(vm, 0xc0003000, DOORBELL_FD));
}

#define VM_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        VM_TEST(a_message_signals_the_eventfd_of_its_sender),
        VM_TEST(another_message_of_the_same_sender_is_routed_anew),
        VM_TEST(forgotten_routes_are_made_again),
        VM_TEST(a_message_whose_route_is_refused_goes_by_a_call),
        VM_TEST(a_route_that_cannot_be_changed_is_used_no_more),
        VM_TEST(a_sender_beyond_the_last_route_uses_calls),
        VM_TEST(an_accelerator_without_routes_gets_calls),
        VM_TEST(a_doorbell_rings_for_any_write_to_its_address),
        VM_TEST(a_refused_doorbell_is_said_so),
    };

    return cmocka_run_group_tests_name("short cuts", tests, NULL, NULL);
}
