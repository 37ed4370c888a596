/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's disks: opened and put on the PCI bus, paused for and gone on with, and
 * left at the end. The loop's thread, but for the disks' call for attention. */
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "vm/vm_private.h"

/* A queue for each vCPU pays off up to here: one I/O thread serves them all. */
#define MAX_QUEUES_BY_DEFAULT 4

/* How long the end waits for a host that does not answer. `husk kill` waits longer, so it
 * sees the end and needs no signal. */
#define PATIENCE_MS 3000

_Static_assert((int)CONFIG_DISK_REPORT == (int)VIRTIO_BLK_REPORT &&
                   (int)CONFIG_DISK_STOP == (int)VIRTIO_BLK_STOP &&
                   (int)CONFIG_DISK_STOP_IF_FULL == (int)VIRTIO_BLK_STOP_IF_FULL,
               "the configuration's words are the device's");

/* ---- set-up ---- */

/* An I/O thread. */
static void call_attention(void *context)
{
    struct vm *vm = context;

    loop_post(&vm->disk_post);
}

static int make_device(struct vm *vm, struct vm_disk *place,
                       const struct config_disk *config, struct disk *disk,
                       struct error *err)
{
    const struct virtio_blk_options options = {
        .queue_count = config->queue_count != 0
                           ? config->queue_count
                           : (unsigned)min_u64(vm->vcpu_count, MAX_QUEUES_BY_DEFAULT),
        .serial = config->serial,
        .on_read_error = (enum virtio_blk_policy)config->on_read_error,
        .on_write_error = (enum virtio_blk_policy)config->on_write_error,
        .attention = call_attention,
        .context = vm,
    };

    return virtio_blk_create(&options, disk, vm->memory, &place->blk, err);
}

static int make_disk(struct vm *vm, const char *text, struct error *err)
{
    struct vm_disk *place = &vm->disks[vm->disk_count];
    struct config_disk config;
    struct disk *disk = NULL;

    if (config_disk_parse(text, &config, err) < 0)
        return err->code;
    const struct disk_options options = {
        .path = config.path,
        .engine = config.engine,
        .read_only = config.read_only,
        .ephemeral = config.ephemeral,
        .direct = config.direct,
    };
    if (disk_open(&options, &disk, err) < 0 ||
        make_device(vm, place, &config, disk, err) < 0) {
        disk_close(disk);
        return error_prefix(err, "disk %s", config.path);
    }
    log_info("disk %s: engine %s: %s", config.path, disk_engine_name(disk),
             disk_engine_reason(disk));
    virtio_pci_attach(&place->pci, virtio_blk_device(place->blk), VIRTIO_BLK_CLASS_CODE,
                      chipset_pci_bus(vm->chipset),
                      VM_PLACE_DISKS + (unsigned)vm->disk_count);
    vm->disk_count++;
    return 0;
}

int vm_make_disks(struct vm *vm, struct error *err)
{
    const struct vm_config *config = vm->config;

    if (config->disk_count == 0)
        return 0;
    if (loop_post_init(&vm->disk_post, vm->loop, vm_handle_disks, vm, err) < 0)
        return err->code;
    vm->disks = calloc(config->disk_count, sizeof(*vm->disks));
    if (vm->disks == NULL)
        return error_set(err, -ENOMEM, "out of memory for the disks");
    for (size_t i = 0; i < config->disk_count; i++)
        if (make_disk(vm, config->disks[i], err) < 0)
            return err->code;
    return 0;
}

/* ---- the end ---- */

/* What is left behind keeps the post, too: a late answer may call for attention. */
void vm_drop_disks(struct vm *vm)
{
    uint64_t deadline_ns = clock_monotonic_ns() + PATIENCE_MS * NS_PER_MS;

    for (size_t i = 0; i < vm->disk_count; i++)
        virtio_blk_end(vm->disks[i].blk);
    for (size_t i = 0; i < vm->disk_count; i++) {
        struct vm_disk *place = &vm->disks[i];
        uint64_t now_ns = clock_monotonic_ns();
        uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

        if (virtio_blk_has_ended(place->blk, (int)(left_ns / NS_PER_MS))) {
            virtio_pci_finish(&place->pci);
            virtio_blk_destroy(place->blk);
        } else {
            log_warn("disk %s: the host has not answered for %d s; husk ends without it",
                     disk_path(virtio_blk_disk(place->blk)), PATIENCE_MS / 1000);
            vm->has_left_disks = true;
        }
    }
    if (vm->has_left_disks)
        return;
    free(vm->disks);
    if (vm->disk_post.event != NULL)
        loop_post_finish(&vm->disk_post);
}

/* ---- pause and reset ---- */

bool vm_stop_disks(struct vm *vm)
{
    bool idle = true;

    for (size_t i = 0; i < vm->disk_count; i++)
        idle &= virtio_blk_stop(vm->disks[i].blk);
    return idle;
}

void vm_retry_disks(struct vm *vm)
{
    vm->pause_reason[0] = '\0';
    for (size_t i = 0; i < vm->disk_count; i++)
        virtio_blk_retry(vm->disks[i].blk);
}

/* Told once for each pause, however many requests are held. */
static void pause_for(struct vm *vm, const struct virtio_blk_status *status)
{
    if (vm->pause_reason[0] != '\0')
        return;
    (void)snprintf(vm->pause_reason, sizeof(vm->pause_reason), "%s", status->trouble);
    vm_pause(vm);
    if (vm->paused != NULL)
        vm->paused(vm->paused_context, vm->pause_reason);
}

void vm_handle_disks(void *context)
{
    struct vm *vm = context;

    if (vm->state != VM_RUNNING && vm->state != VM_PAUSED)
        return;
    for (size_t i = 0; i < vm->disk_count; i++) {
        struct virtio_blk_status status;

        virtio_blk_status(vm->disks[i].blk, &status);
        if (status.held > 0)
            pause_for(vm, &status);
    }
    vm_handle_requests(vm); /* a reset that has waited for the disks */
}

void vm_on_pause(struct vm *vm, void (*paused)(void *context, const char *reason),
                 void *context)
{
    vm->paused = paused;
    vm->paused_context = context;
}

const char *vm_pause_reason(const struct vm *vm)
{
    return vm->state == VM_PAUSED ? vm->pause_reason : "";
}

void vm_update_disks(struct vm *vm)
{
    for (size_t i = 0; i < vm->disk_count; i++)
        virtio_blk_update_size(vm->disks[i].blk);
}

/* ---- what others look at ---- */

size_t vm_disk_count(const struct vm *vm)
{
    return vm->disk_count;
}

void vm_disk_status(const struct vm *vm, size_t index, struct vm_disk_status *status)
{
    struct virtio_blk *blk = vm->disks[index].blk;
    const struct disk *disk = virtio_blk_disk(blk);
    struct virtio_blk_status device;

    virtio_blk_status(blk, &device);
    *status = (struct vm_disk_status){
        .path = disk_path(disk),
        .size_bytes = disk_size_bytes(disk),
        .read_only = disk_is_read_only(disk),
        .engine = disk_engine_name(disk),
        .engine_reason = disk_engine_reason(disk),
        .queues = device.queues,
        .in_flight = device.in_flight,
        .held = device.held,
        .counters = device.counters,
    };
}
