/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of a disk's requests, and what is said about those that failed. */
#include <errno.h>
#include <string.h>

#include "disk/disk_private.h"

static const char *const operation_names[DISK_OPERATIONS] = {
    [DISK_READ] = "read",
    [DISK_WRITE] = "write",
    [DISK_FLUSH] = "flush",
    [DISK_DISCARD] = "discard",
    [DISK_WRITE_ZEROES] = "write of zeros",
};

static void report(struct disk *disk, const struct disk_request *request,
                   enum disk_trouble trouble, const char *reason)
{
    if (!log_gate_open(&disk->gates[trouble]))
        return;
    if (request->operation == DISK_FLUSH)
        log_warn("disk %s: flush failed: %s", disk->file.path, reason);
    else
        log_warn("disk %s: %s of %ju bytes at byte %ju failed: %s", disk->file.path,
                 operation_names[request->operation], (uintmax_t)request->size_bytes,
                 (uintmax_t)request->offset_bytes, reason);
}

static const char *refusal(int result)
{
    switch (result) {
    case -EROFS:
        return "the disk is read-only";
    case -ERANGE:
        return "outside of the disk";
    default:
        return "no whole sectors, or buffers of another size";
    }
}

void disk_account(struct disk *disk, const struct disk_request *request, bool refused)
{
    struct disk_account *account = &disk->accounts[request->operation];
    int result = request->result;

    atomic_fetch_add(&account->requests, 1);
    if (result >= 0) {
        if (request->operation != DISK_FLUSH)
            atomic_fetch_add(&account->bytes, request->size_bytes);
        return;
    }
    atomic_fetch_add(&account->errors, 1);
    if (refused)
        report(disk, request, DISK_TROUBLE_GUEST, refusal(result));
    else
        report(disk, request,
               result == -ENOSPC || result == -EDQUOT ? DISK_TROUBLE_FULL
                                                      : DISK_TROUBLE_HOST,
               strerror(-result));
}

struct disk_counters disk_counters(const struct disk *disk)
{
    struct disk_counters counters;

    for (int i = 0; i < DISK_OPERATIONS; i++) {
        counters.requests[i] = atomic_load(&disk->accounts[i].requests);
        counters.bytes[i] = atomic_load(&disk->accounts[i].bytes);
        counters.errors[i] = atomic_load(&disk->accounts[i].errors);
    }
    return counters;
}
