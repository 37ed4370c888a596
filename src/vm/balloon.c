/* SPDX-License-Identifier: Apache-2.0 */
/* The balloon, by which the guest gives memory back. The loop's thread. */
#include <errno.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "vm/vm_private.h"
#include "x86/layout.h"

#define PLACE_BALLOON 22 /* on the PCI bus */

/* Why there is none; NULL: there is one. When it gives pages back is not to be repeated.
 */
static const char *why_none(const struct vm *vm)
{
    if (vm->config->no_balloon)
        return "--no-balloon has left it out";
    if (vm->config->deterministic)
        return "--deterministic leaves it out";
    if (!memory_may_discard(vm->memory))
        return "--huge-pages and --prefault leave it out";
    return NULL;
}

/* RAM as the guest knows it. What is below 1 MiB, tables and ROMs among it, is not worth
 * the risk; firmware below 4 GiB and persistent memory are no RAM. */
static void find_ram(const struct vm *vm, struct virtio_balloon_options *options)
{
    const struct boot_plan *plan = vm->plan;

    for (size_t i = 0; i < plan->span_count - plan->pmem_count; i++) {
        uint64_t start = max_u64(plan->spans[i].gpa, MIB);
        uint64_t end = plan->spans[i].gpa + plan->spans[i].size_bytes;

        if (i == 0 || start >= LAYOUT_HIGH_RAM_START)
            options->spans[options->span_count++] =
                (struct memory_span){.gpa = start, .size_bytes = end - start};
    }
}

int vm_make_balloon(struct vm *vm, struct error *err)
{
    struct virtio_balloon_options options = {.span_count = 0};

    if (why_none(vm) != NULL)
        return 0;
    find_ram(vm, &options);
    if (virtio_balloon_create(&options, vm->loop, vm->memory, &vm->balloon, err) < 0)
        return err->code;
    virtio_pci_attach(&vm->balloon_pci, virtio_balloon_device(vm->balloon),
                      VIRTIO_BALLOON_CLASS_CODE, chipset_pci_bus(vm->chipset),
                      PLACE_BALLOON);
    return 0;
}

void vm_drop_balloon(struct vm *vm)
{
    if (vm->balloon == NULL)
        return;
    virtio_pci_finish(&vm->balloon_pci);
    virtio_balloon_destroy(vm->balloon);
}

int vm_set_balloon(struct vm *vm, uint64_t target_bytes, struct error *err)
{
    if (vm->balloon == NULL)
        return error_set(err, -ENODEV, "the guest has no balloon: %s", why_none(vm));
    if (target_bytes >= vm->config->memory_bytes)
        return error_set(err, -ERANGE,
                         "the guest cannot do without %" PRIu64 " MiB: it has %" PRIu64,
                         target_bytes / MIB, vm->config->memory_bytes / MIB);
    virtio_balloon_set_target(vm->balloon, target_bytes);
    return 0;
}

bool vm_balloon_status(struct vm *vm, struct virtio_balloon_status *status)
{
    if (vm->balloon == NULL)
        return false;
    virtio_balloon_status(vm->balloon, status);
    return true;
}
