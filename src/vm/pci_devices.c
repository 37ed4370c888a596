/* SPDX-License-Identifier: Apache-2.0 */
/* What sits on the PCI bus besides the chipset's own functions. */
#include "vm/vm_private.h"

/* Below these are the bridges that firmware looks for. */
#define PLACE_RNG 2

/* A deterministic guest must not learn what nobody can repeat. */
static bool wants_rng(const struct vm_config *config)
{
    return !config->no_rng && !config->deterministic;
}

static int make_rng(struct vm *vm, struct error *err)
{
    if (!wants_rng(vm->config))
        return 0;
    if (virtio_rng_create(vm->loop, vm->memory, &vm->rng, err) < 0)
        return err->code;
    virtio_pci_attach(&vm->rng_pci, virtio_rng_device(vm->rng), VIRTIO_RNG_CLASS_CODE,
                      chipset_pci_bus(vm->chipset), PLACE_RNG);
    return 0;
}

static void drop_rng(struct vm *vm)
{
    if (vm->rng == NULL)
        return;
    virtio_pci_finish(&vm->rng_pci);
    virtio_rng_destroy(vm->rng);
}

int vm_make_pci_devices(struct vm *vm, struct error *err)
{
    if (make_rng(vm, err) < 0 || vm_make_balloon(vm, err) < 0 ||
        vm_make_disks(vm, err) < 0 || vm_make_pmems(vm, err) < 0)
        return err->code;
    return 0;
}

static void thaw(struct vm *vm, size_t disk_count, size_t pmem_count)
{
    for (size_t i = 0; i < disk_count; i++)
        virtio_blk_thaw(vm->disks[i].blk);
    for (size_t i = 0; i < pmem_count; i++)
        virtio_pmem_thaw(vm->pmems[i]);
}

bool vm_freeze_pci_devices(struct vm *vm)
{
    size_t disks = 0;
    size_t pmems = 0;

    while (disks < vm->disk_count && virtio_blk_freeze(vm->disks[disks].blk))
        disks++;
    while (pmems < vm->pmem_count && virtio_pmem_freeze(vm->pmems[pmems]))
        pmems++;
    if (disks == vm->disk_count && pmems == vm->pmem_count)
        return true;
    thaw(vm, disks, pmems);
    return false;
}

void vm_thaw_pci_devices(struct vm *vm)
{
    thaw(vm, vm->disk_count, vm->pmem_count);
}

void vm_drop_pci_devices(struct vm *vm)
{
    vm_drop_pmems(vm);
    vm_drop_disks(vm);
    vm_drop_balloon(vm);
    drop_rng(vm);
}

uint64_t vm_ioeventfd_notifications(const struct vm *vm)
{
    uint64_t sum = 0;

    if (vm->rng != NULL)
        sum += virtio_device_foreign_notifications(virtio_rng_device(vm->rng));
    if (vm->balloon != NULL)
        sum += virtio_device_foreign_notifications(virtio_balloon_device(vm->balloon));
    for (size_t i = 0; i < vm->disk_count; i++)
        sum += virtio_device_foreign_notifications(virtio_blk_device(vm->disks[i].blk));
    for (size_t i = 0; i < vm->pmem_count; i++)
        sum += virtio_device_foreign_notifications(virtio_pmem_device(vm->pmems[i]));
    return sum;
}
