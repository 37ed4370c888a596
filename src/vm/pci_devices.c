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

int vm_make_pci_devices(struct vm *vm, struct error *err)
{
    if (!wants_rng(vm->config))
        return 0;
    if (virtio_rng_create(vm->loop, vm->memory, &vm->rng, err) < 0)
        return err->code;
    virtio_pci_attach(&vm->rng_pci, virtio_rng_device(vm->rng), VIRTIO_RNG_CLASS_CODE,
                      chipset_pci_bus(vm->chipset), PLACE_RNG);
    return 0;
}

void vm_drop_pci_devices(struct vm *vm)
{
    if (vm->rng == NULL)
        return;
    virtio_pci_finish(&vm->rng_pci);
    virtio_rng_destroy(vm->rng);
}
