/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vCPU threads: run the guest, serve its exits, follow orders.
 *
 * A thread is inside (may execute guest code) or parked. To stop them all, the order
 * changes first and each is kicked after: a kick that comes before vcpu_run makes that
 * call return at once (accel.h), so none is missed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "vm/vm_private.h"

/* Waits for leave to run. False: the thread is to end. */
static bool may_enter(struct vm *vm)
{
    bool enter;

    CHECK(pthread_mutex_lock(&vm->lock) == 0);
    if (vm->order != ORDER_RUN) {
        vm->inside--;
        CHECK(pthread_cond_broadcast(&vm->changed) == 0);
        while (vm->order == ORDER_PARK)
            CHECK(pthread_cond_wait(&vm->changed, &vm->lock) == 0);
        vm->inside++;
    }
    enter = vm->order == ORDER_RUN;
    if (!enter) {
        vm->inside--;
        CHECK(pthread_cond_broadcast(&vm->changed) == 0);
    }
    CHECK(pthread_mutex_unlock(&vm->lock) == 0);
    return enter;
}

void vm_serve(const struct bus *bus, uint64_t address, unsigned size, bool write,
              void *data)
{
    uint64_t value = 0;

    if (write) {
        memcpy(&value, data, size);
        bus_write(bus, address, size, value);
        return;
    }
    value = bus_read(bus, address, size);
    memcpy(data, &value, size);
}

static void serve_port(struct vcpu *vcpu, const struct vcpu_exit *exit)
{
    uint8_t *data = exit->port.data;

    atomic_fetch_add_explicit(&vcpu->port_exits, 1, memory_order_relaxed);
    if (!exit->port.write) {
        bus_read_string(&vcpu->vm->ports, exit->port.port, exit->port.size,
                        exit->port.count, data);
        return;
    }
    for (uint32_t i = 0; i < exit->port.count; i++)
        vm_serve(&vcpu->vm->ports, exit->port.port, exit->port.size, true,
                 data + (size_t)i * exit->port.size);
}

/* A page of a truncated file cannot be had: KVM says EFAULT for data and "cannot emulate"
 * for code. The loss is then the better message. */
static void fail(struct vcpu *vcpu, const struct error *failure)
{
    struct vm *vm = vcpu->vm;

    if (!memory_find_loss(vm->memory)) {
        CHECK(pthread_mutex_lock(&vm->lock) == 0);
        error_set(&vm->failure, failure->code, "vCPU %u: %s", vcpu->index, failure->text);
        CHECK(pthread_mutex_unlock(&vm->lock) == 0);
    }
    vm_ask(vm, VM_REQUEST_FAILED);
}

static void handle_exit(struct vcpu *vcpu, struct vcpu_exit *exit)
{
    switch (exit->kind) {
    case VCPU_EXIT_PORT:
        serve_port(vcpu, exit);
        return;
    case VCPU_EXIT_MMIO:
        atomic_fetch_add_explicit(&vcpu->mmio_exits, 1, memory_order_relaxed);
        vm_serve(&vcpu->vm->mmio, exit->mmio.gpa, exit->mmio.size, exit->mmio.write,
                 exit->mmio.data);
        return;
    case VCPU_EXIT_KICKED:
        atomic_fetch_add_explicit(&vcpu->kicks, 1, memory_order_relaxed);
        return;
    case VCPU_EXIT_SHUTDOWN:
        vm_ask(vcpu->vm, VM_REQUEST_CRASHED);
        return;
    case VCPU_EXIT_FAILED:
        fail(vcpu, &exit->failure);
        return;
    }
}

static void *run_vcpu(void *context)
{
    struct vcpu *vcpu = context;
    struct vm *vm = vcpu->vm;
    struct vcpu_exit exit;

    while (may_enter(vm)) {
        stages_mark(&vm->stages, STAGE_INIT_END);
        vm->accel->vcpu_run(vcpu->accel_vcpu, &exit);
        handle_exit(vcpu, &exit);
    }
    return NULL;
}

int vm_start_threads(struct vm *vm, struct error *err)
{
    vm->order = ORDER_PARK;
    vm->inside = vm->vcpu_count; /* each leaves by itself when it sees the order */
    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        struct vcpu *vcpu = &vm->vcpus[i];
        int status = pthread_create(&vcpu->thread, NULL, run_vcpu, vcpu);

        if (status != 0) {
            CHECK(pthread_mutex_lock(&vm->lock) == 0);
            vm->inside -= vm->vcpu_count - i;
            CHECK(pthread_mutex_unlock(&vm->lock) == 0);
            vm_end_threads(vm);
            return error_set_errno(err, status, "cannot start the thread of vCPU %u", i);
        }
        vcpu->has_thread = true;
        (void)pthread_setname_np(vcpu->thread, "vcpu");
    }
    return 0;
}

static void give_order(struct vm *vm, enum vcpu_order order)
{
    CHECK(pthread_mutex_lock(&vm->lock) == 0);
    vm->order = order;
    CHECK(pthread_cond_broadcast(&vm->changed) == 0);
    CHECK(pthread_mutex_unlock(&vm->lock) == 0);
}

static void kick_all(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->vcpu_count; i++)
        if (vm->vcpus[i].has_thread)
            vm->accel->vcpu_kick(vm->vcpus[i].accel_vcpu);
}

void vm_order_run(struct vm *vm)
{
    give_order(vm, ORDER_RUN);
}

void vm_order_park(struct vm *vm)
{
    give_order(vm, ORDER_PARK);
    kick_all(vm);
    CHECK(pthread_mutex_lock(&vm->lock) == 0);
    while (vm->inside > 0)
        CHECK(pthread_cond_wait(&vm->changed, &vm->lock) == 0);
    CHECK(pthread_mutex_unlock(&vm->lock) == 0);
}

void vm_end_threads(struct vm *vm)
{
    give_order(vm, ORDER_QUIT);
    kick_all(vm);
    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        if (vm->vcpus[i].has_thread)
            CHECK(pthread_join(vm->vcpus[i].thread, NULL) == 0);
        vm->vcpus[i].has_thread = false;
    }
}

void vm_ask(struct vm *vm, enum vm_request request)
{
    /* The order first: when the asking vCPU returns from its exit it must not go on. */
    CHECK(pthread_mutex_lock(&vm->lock) == 0);
    if (vm->order == ORDER_RUN)
        vm->order = ORDER_PARK;
    CHECK(pthread_mutex_unlock(&vm->lock) == 0);
    (void)atomic_fetch_or(&vm->requests, (unsigned)request);
    loop_post(&vm->post);
}
