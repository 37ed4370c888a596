/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts under KVM: controllers in the host's kernel, lines, messages and eventfds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "accel/kvm/kvm_private.h"
#include "base/check.h"
#include "x86/layout.h"

#define PIC_PINS 8     /* of each of the two 8259 */
#define ISA_LINES 16   /* lines that reach the 8259 as well as the IOAPIC */
#define TIMER_LINE 0   /* the 8254 */
#define TIMER_PIN 2    /* of the IOAPIC: the MADT's override, as on every PC */
#define CASCADE_LINE 2 /* where the second 8259 hangs: no device can raise it */

/* KVM numbers a route to a message as if it were one more line. */
#define MESSAGE_GSI(route) (LAYOUT_IOAPIC_PINS + (route))
#define ROUTES_CAPACITY (ISA_LINES + LAYOUT_IOAPIC_PINS + ACCEL_MESSAGE_ROUTES)

int kvm_init_routes(struct accel_vm *vm, struct error *err)
{
    struct kvm_irq_routing *table =
        calloc(1, sizeof(*table) + ROUTES_CAPACITY * sizeof(table->entries[0]));

    vm->routes = table;
    CHECK(pthread_mutex_init(&vm->routes_lock, NULL) == 0);
    if (table == NULL)
        return error_set_errno(err, ENOMEM, "kvm: cannot route interrupts");
    return 0;
}

void kvm_finish_routes(struct accel_vm *vm)
{
    CHECK(pthread_mutex_destroy(&vm->routes_lock) == 0);
    free(vm->routes);
}

static void add_route(struct kvm_irq_routing *table, uint32_t line, uint32_t chip,
                      uint32_t pin)
{
    table->entries[table->nr++] = (struct kvm_irq_routing_entry){
        .gsi = line,
        .type = KVM_IRQ_ROUTING_IRQCHIP,
        .u.irqchip = {.irqchip = chip, .pin = pin},
    };
}

static int set_routes(struct accel_vm *vm, struct error *err)
{
    if (ioctl(vm->fd, KVM_SET_GSI_ROUTING, vm->routes) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_GSI_ROUTING");
    return 0;
}

/* KVM's own table sends the timer to IOAPIC pin 0, where no kernel expects it. */
static int route_lines(struct accel_vm *vm, struct error *err)
{
    for (uint32_t line = 0; line < LAYOUT_IOAPIC_PINS; line++) {
        if (line == CASCADE_LINE)
            continue;
        if (line < ISA_LINES)
            add_route(vm->routes, line,
                      line < PIC_PINS ? KVM_IRQCHIP_PIC_MASTER : KVM_IRQCHIP_PIC_SLAVE,
                      line % PIC_PINS);
        add_route(vm->routes, line, KVM_IRQCHIP_IOAPIC,
                  line == TIMER_LINE ? TIMER_PIN : line);
    }
    return set_routes(vm, err);
}

int kvm_create_interrupt_controllers(struct accel_vm *vm, struct error *err)
{
    /* The speaker's port 0x61 comes with the 8254, whose channel 2 it gates. */
    struct kvm_pit_config timer = {.flags = KVM_PIT_SPEAKER_DUMMY};
    int result;

    if (ioctl(vm->fd, KVM_CREATE_IRQCHIP, 0) < 0)
        return kvm_ioctl_error(err, errno, "KVM_CREATE_IRQCHIP");
    result = route_lines(vm, err);
    if (result != 0)
        return result;
    if (ioctl(vm->fd, KVM_CREATE_PIT2, &timer) < 0)
        return kvm_ioctl_error(err, errno, "KVM_CREATE_PIT2");
    return 0;
}

int kvm_set_line(struct accel_vm *vm, uint32_t gsi, bool level, struct error *err)
{
    struct kvm_irq_level line = {.irq = gsi, .level = level};

    if (gsi >= LAYOUT_IOAPIC_PINS)
        return error_set(err, EINVAL, "kvm: interrupt line %u: the highest is %u", gsi,
                         LAYOUT_IOAPIC_PINS - 1);
    if (ioctl(vm->fd, KVM_IRQ_LINE, &line) < 0)
        return kvm_ioctl_error(err, errno, "KVM_IRQ_LINE");
    return 0;
}

int kvm_signal_msi(struct accel_vm *vm, uint64_t address, uint32_t data,
                   struct error *err)
{
    struct kvm_msi message = {
        .address_lo = (uint32_t)address,
        .address_hi = (uint32_t)(address >> 32),
        .data = data,
    };

    /* 0: the guest blocked it, which is the guest's affair. */
    if (ioctl(vm->fd, KVM_SIGNAL_MSI, &message) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SIGNAL_MSI");
    return 0;
}

int kvm_ioeventfd(struct accel_vm *vm, const struct accel_doorbell *doorbell, bool attach,
                  struct error *err)
{
    struct kvm_ioeventfd request = {
        .datamatch = doorbell->match,
        .addr = doorbell->address,
        .len = doorbell->size_bytes,
        .fd = doorbell->fd,
        .flags = (doorbell->is_port ? KVM_IOEVENTFD_FLAG_PIO : 0u) |
                 (doorbell->has_match ? KVM_IOEVENTFD_FLAG_DATAMATCH : 0u) |
                 (attach ? 0u : KVM_IOEVENTFD_FLAG_DEASSIGN),
    };

    if (doorbell->size_bytes == 0 && !vm->any_length_doorbell)
        return error_set(err, ENOTSUP,
                         "kvm: this host's KVM lacks KVM_CAP_IOEVENTFD_ANY_LENGTH: a "
                         "doorbell needs its size");
    if (ioctl(vm->fd, KVM_IOEVENTFD, &request) < 0)
        return error_set_errno(err, errno, "kvm: KVM_IOEVENTFD failed for %s 0x%" PRIx64,
                               doorbell->is_port ? "port" : "guest address",
                               doorbell->address);
    return 0;
}

static int attach_irqfd(struct accel_vm *vm, int fd, uint32_t gsi, struct error *err)
{
    struct kvm_irqfd request = {.fd = (uint32_t)fd, .gsi = gsi};

    if (ioctl(vm->fd, KVM_IRQFD, &request) < 0)
        return error_set_errno(err, errno, "kvm: KVM_IRQFD failed for line %u", gsi);
    return 0;
}

/* The table's entry for `gsi`, or the one behind the last: rarely done, so it may search.
 */
static struct kvm_irq_routing_entry *find_route(struct kvm_irq_routing *table,
                                                uint32_t gsi)
{
    uint32_t i = 0;

    while (i < table->nr && table->entries[i].gsi != gsi)
        i++;
    return &table->entries[i];
}

/* With the lock held. A table that KVM has refused is as if it had never been. */
static int set_route(struct accel_vm *vm, const struct kvm_irq_routing_entry *wanted,
                     int fd, struct error *err)
{
    struct kvm_irq_routing_entry *entry = find_route(vm->routes, wanted->gsi);
    struct kvm_irq_routing_entry before = *entry;
    bool is_new = before.gsi != wanted->gsi;
    int result;

    *entry = *wanted;
    vm->routes->nr += is_new;
    result = set_routes(vm, err);
    if (result == 0 && is_new)
        result = attach_irqfd(vm, fd, wanted->gsi, err);
    if (result != 0) {
        *entry = before;
        vm->routes->nr -= is_new;
    }
    return result;
}

int kvm_route_message(struct accel_vm *vm, uint32_t route, int fd, uint64_t address,
                      uint32_t data, struct error *err)
{
    const struct kvm_irq_routing_entry entry = {
        .gsi = MESSAGE_GSI(route),
        .type = KVM_IRQ_ROUTING_MSI,
        .u.msi = {.address_lo = (uint32_t)address,
                  .address_hi = (uint32_t)(address >> 32),
                  .data = data},
    };
    int result;

    CHECK(route < ACCEL_MESSAGE_ROUTES);
    CHECK(pthread_mutex_lock(&vm->routes_lock) == 0);
    result = set_route(vm, &entry, fd, err);
    CHECK(pthread_mutex_unlock(&vm->routes_lock) == 0);
    return result;
}
