/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts under KVM: controllers in the host's kernel, lines, messages and eventfds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "accel/kvm/kvm_private.h"
#include "x86/layout.h"

#define PIC_PINS 8     /* of each of the two 8259 */
#define ISA_LINES 16   /* lines that reach the 8259 as well as the IOAPIC */
#define TIMER_LINE 0   /* the 8254 */
#define TIMER_PIN 2    /* of the IOAPIC: the MADT's override, as on every PC */
#define CASCADE_LINE 2 /* where the second 8259 hangs: no device can raise it */

static void add_route(struct kvm_irq_routing *table, uint32_t line, uint32_t chip,
                      uint32_t pin)
{
    table->entries[table->nr++] = (struct kvm_irq_routing_entry){
        .gsi = line,
        .type = KVM_IRQ_ROUTING_IRQCHIP,
        .u.irqchip = {.irqchip = chip, .pin = pin},
    };
}

/* KVM's own table sends the timer to IOAPIC pin 0, where no kernel expects it. */
static int route_lines(struct accel_vm *vm, struct error *err)
{
    struct kvm_irq_routing *table = calloc(
        1, sizeof(*table) + (ISA_LINES + LAYOUT_IOAPIC_PINS) * sizeof(table->entries[0]));
    int result = 0;

    if (table == NULL)
        return error_set_errno(err, ENOMEM, "kvm: cannot route interrupts");
    for (uint32_t line = 0; line < LAYOUT_IOAPIC_PINS; line++) {
        if (line == CASCADE_LINE)
            continue;
        if (line < ISA_LINES)
            add_route(table, line,
                      line < PIC_PINS ? KVM_IRQCHIP_PIC_MASTER : KVM_IRQCHIP_PIC_SLAVE,
                      line % PIC_PINS);
        add_route(table, line, KVM_IRQCHIP_IOAPIC, line == TIMER_LINE ? TIMER_PIN : line);
    }
    if (ioctl(vm->fd, KVM_SET_GSI_ROUTING, table) < 0)
        result = kvm_ioctl_error(err, errno, "KVM_SET_GSI_ROUTING");
    free(table);
    return result;
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

int kvm_irqfd(struct accel_vm *vm, int fd, uint32_t gsi, bool attach, struct error *err)
{
    struct kvm_irqfd request = {
        .fd = (uint32_t)fd,
        .gsi = gsi,
        .flags = attach ? 0 : KVM_IRQFD_FLAG_DEASSIGN,
    };

    if (ioctl(vm->fd, KVM_IRQFD, &request) < 0)
        return error_set_errno(err, errno, "kvm: KVM_IRQFD failed for line %u", gsi);
    return 0;
}
