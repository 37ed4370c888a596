/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's end of the console: its serial port, or a virtio-console. */
#include <string.h>

#include "vm/vm_private.h"

#define PLACE_HVC 23 /* on the PCI bus */

static void write_output(void *context, const uint8_t *bytes, size_t size)
{
    struct vm *vm = context;

    stages_mark(&vm->stages, STAGE_START_KERNEL);
    console_output(vm->console, bytes, size);
}

static void has_room(void *context)
{
    struct vm *vm = context;

    console_room(vm->console);
}

static size_t feed_serial(void *context, const uint8_t *bytes, size_t size)
{
    struct vm *vm = context;

    return chipset_console_input(vm->chipset, bytes, size);
}

static size_t feed_hvc(void *context, const uint8_t *bytes, size_t size)
{
    struct vm *vm = context;

    return virtio_console_input(vm->hvc, bytes, size);
}

struct byte_sink vm_console_sink(struct vm *vm)
{
    return (struct byte_sink){.write = write_output, .context = vm};
}

static int make_hvc(struct vm *vm, struct error *err)
{
    const struct virtio_console_options options = {
        .output = write_output, .room = has_room, .context = vm};

    if (virtio_console_create(&options, vm->loop, vm->memory, &vm->hvc, err) < 0)
        return err->code;
    virtio_pci_attach(&vm->hvc_pci, virtio_console_device(vm->hvc),
                      VIRTIO_CONSOLE_CLASS_CODE, chipset_pci_bus(vm->chipset), PLACE_HVC);
    console_connect(vm->console, feed_hvc, vm);
    return 0;
}

/* Without a serial port it takes what is typed, and drops it. */
int vm_make_console(struct vm *vm, struct error *err)
{
    if (strcmp(vm->config->console, "virtio") == 0)
        return make_hvc(vm, err);
    chipset_on_console_room(vm->chipset, has_room, vm);
    console_connect(vm->console, feed_serial, vm);
    return 0;
}

void vm_drop_console(struct vm *vm)
{
    console_connect(vm->console, NULL, NULL);
    if (vm->hvc == NULL)
        return;
    virtio_pci_finish(&vm->hvc_pci);
    virtio_console_destroy(vm->hvc);
}

void vm_console_break(struct vm *vm)
{
    chipset_console_break(vm->chipset);
}

void vm_console_resize(struct vm *vm, uint16_t columns, uint16_t rows)
{
    if (vm->hvc != NULL)
        virtio_console_resize(vm->hvc, columns, rows);
}

void vm_console_counters(const struct vm *vm, struct vm_counters *counters)
{
    struct chipset_counters chipset;

    chipset_counters(vm->chipset, &chipset);
    counters->console_bytes_out = chipset.console_bytes_out;
    counters->console_bytes_in = chipset.console_bytes_in;
    if (vm->hvc != NULL) {
        struct virtio_console_counters hvc = virtio_console_counters(vm->hvc);

        counters->console_bytes_out += hvc.bytes_out;
        counters->console_bytes_in += hvc.bytes_in;
    }
}
