/* SPDX-License-Identifier: Apache-2.0 */
/* The virtio-pmem devices, which tell the guest of files in its memory. */
#include "base/log.h"
#include "vm/vm_private.h"

#define PLACE_FIRST 24 /* on the PCI bus */

/* How long the end waits for a flush that the host does not finish. */
#define PATIENCE_MS 3000

static enum virtio_pmem_flush pmem_flush(enum boot_pmem_mode mode)
{
    static const enum virtio_pmem_flush flushes[] = {
        [BOOT_PMEM_SHARED] = VIRTIO_PMEM_FLUSH_FILE,
        [BOOT_PMEM_READ_ONLY] = VIRTIO_PMEM_FLUSH_REFUSE,
        [BOOT_PMEM_EPHEMERAL] = VIRTIO_PMEM_FLUSH_NONE,
    };

    return flushes[mode];
}

int vm_make_pmems(struct vm *vm, struct error *err)
{
    for (size_t i = 0; i < vm->plan->pmem_count; i++) {
        const struct boot_pmem *pmem = &vm->plan->pmems[i];
        const struct virtio_pmem_options options = {
            .name = pmem->name,
            .gpa = pmem->gpa,
            .size_bytes = pmem->size_bytes,
            .fd = pmem->input->fd,
            .flush = pmem_flush(pmem->input->mode),
        };

        if (virtio_pmem_create(&options, vm->memory, &vm->pmems[i], err) < 0)
            return err->code;
        virtio_pci_attach(&vm->pmem_pcis[i], virtio_pmem_device(vm->pmems[i]),
                          VIRTIO_PMEM_CLASS_CODE, chipset_pci_bus(vm->chipset),
                          PLACE_FIRST + (unsigned)i);
        vm->pmem_count++;
    }
    return 0;
}

void vm_drop_pmems(struct vm *vm)
{
    for (size_t i = 0; i < vm->pmem_count; i++) {
        if (!virtio_pmem_end(vm->pmems[i], PATIENCE_MS)) {
            log_warn("%s: the host has not finished a flush for %d s; husk ends without "
                     "it",
                     vm->plan->pmems[i].name, PATIENCE_MS / 1000);
            vm->has_left_disks = true;
            continue;
        }
        virtio_pci_finish(&vm->pmem_pcis[i]);
        virtio_pmem_destroy(vm->pmems[i]);
    }
}
