/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of a disk's requests, and what is said about those that failed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "disk/disk_private.h"

static const char *const operation_names[DISK_OPERATIONS] = {
    [DISK_READ] = "read",
    [DISK_WRITE] = "write",
    [DISK_FLUSH] = "flush",
    [DISK_DISCARD] = "discard",
    [DISK_WRITE_ZEROES] = "write of zeros",
};

static const char *reason(const struct disk_request *request)
{
    if (!request->refused)
        return strerror(-request->result);
    switch (request->result) {
    case -EROFS:
        return "the disk is read-only";
    case -ERANGE:
        return "outside of the disk";
    default:
        return "no whole sectors, or buffers of another size";
    }
}

void disk_describe_failure(const struct disk *disk, const struct disk_request *request,
                           char *text, size_t size)
{
    if (request->operation == DISK_FLUSH)
        (void)snprintf(text, size, "disk %s: flush failed: %s", disk->file.path,
                       reason(request));
    else
        (void)snprintf(text, size, "disk %s: %s of %ju bytes at byte %ju failed: %s",
                       disk->file.path, operation_names[request->operation],
                       (uintmax_t)request->size_bytes, (uintmax_t)request->offset_bytes,
                       reason(request));
}

static enum disk_trouble trouble_of(const struct disk_request *request)
{
    if (request->refused)
        return DISK_TROUBLE_GUEST;
    return request->result == -ENOSPC || request->result == -EDQUOT ? DISK_TROUBLE_FULL
                                                                    : DISK_TROUBLE_HOST;
}

void disk_report_failure(struct disk *disk, const struct disk_request *request)
{
    enum disk_trouble trouble = trouble_of(request);
    bool *told = &disk->told[request->operation][trouble];
    char text[ERROR_TEXT_BYTES];

    if (*told || !log_gate_open(&disk->gates[trouble]))
        return;
    *told = true;
    disk_describe_failure(disk, request, text, sizeof(text));
    log_warn("%s", text);
}

void disk_account(struct disk *disk, const struct disk_request *request)
{
    struct disk_account *account = &disk->accounts[request->operation];

    atomic_fetch_add(&account->requests, 1);
    if (request->result < 0) {
        atomic_fetch_add(&account->errors, 1);
        if (request->refused || !request->quiet)
            disk_report_failure(disk, request);
        return;
    }
    memset(disk->told[request->operation], 0, sizeof(disk->told[0]));
    if (request->operation != DISK_FLUSH)
        atomic_fetch_add(&account->bytes, request->size_bytes);
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
