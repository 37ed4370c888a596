/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While the guest is idle, what its memory costs and need not goes back to the host:
 * pages of zeros, pages that other guests of its kind have as well, code of the software
 * CPU. The loop's thread.
 *
 * A look stops the vCPUs for some tens of milliseconds, so it waits for a guest that does
 * next to nothing, and looks again only when the guest has done something since, or when
 * the library may have got what this guest alone had at the last look; ever more rarely.
 */
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "vm/vm_private.h"

/* A guest that has just started is left alone so long, and is idle if it uses less than
 * this share of one processor. */
#define FIRST_INTERVAL_SECONDS 2
#define LAST_INTERVAL_SECONDS 64
#define IDLE_SHARE 20

#define USEC_PER_SECOND 1000000L

/* A guest that has worked so long since the last look may have changed its memory. */
#define WORTH_A_LOOK_NS (50 * NS_PER_MS)

/* ---- the library ---- */

/* What decides which bytes a kernel's memory holds: the kernel, where things lie, and
 * what executes it. Nothing depends on this list being complete: content is compared. */
static char *describe_guest(const struct vm *vm, size_t *size)
{
    const struct boot_plan *plan = vm->plan;
    char *text = NULL;
    FILE *stream = open_memstream(&text, size);

    if (stream == NULL)
        return NULL;
    (void)fprintf(stream, "accelerator %s\nprocessors %" PRIu32 "\n", vm->accel->name,
                  vm->vcpu_count);
    for (size_t i = 0; i < plan->span_count; i++)
        (void)fprintf(stream, "span %" PRIx64 " %" PRIx64 "\n", plan->spans[i].gpa,
                      plan->spans[i].size_bytes);
    for (size_t i = 0; i < plan->file_count; i++) {
        const struct boot_file *file = &plan->files[i];
        struct stat status = {.st_size = 0};

        (void)fprintf(stream, "%s %" PRIu64, boot_file_role_name(file->role),
                      file->input->size_bytes);
        if (file->role != BOOT_FILE_INITRD && fstat(file->input->fd, &status) == 0)
            (void)fprintf(stream, " %jx %jx %jd.%09ld", (uintmax_t)status.st_dev,
                          (uintmax_t)status.st_ino, (intmax_t)status.st_mtim.tv_sec,
                          status.st_mtim.tv_nsec);
        (void)fprintf(stream, "\n");
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int open_library(const struct vm *vm, struct image_cache_library *library,
                        struct error *err)
{
    size_t size = 0;
    char *identity = describe_guest(vm, &size);
    int status;

    if (identity == NULL)
        return error_set(err, -ENOMEM, "out of memory for the guest's description");
    status =
        image_cache_library_open(&vm->boot_options.cache, identity, size, library, err);
    free(identity);
    return status;
}

static void give_up_library(struct vm *vm, struct error *err)
{
    log_info("pages are not shared with other guests: %s", err->text);
    vm->reclaim.without_library = true;
    *err = (struct error)ERROR_NONE;
}

/* NULL: there is none, or it is not wanted. The caller closes both. */
static struct commons *open_commons(struct vm *vm, struct image_cache_library *library)
{
    struct commons *commons = NULL;
    struct error err = ERROR_NONE;

    if (vm->config->reclaim != CONFIG_RECLAIM_SHARE || vm->reclaim.without_library)
        return NULL;
    if (open_library(vm, library, &err) < 0 ||
        commons_open(library->pages_fd, library->marks_fd,
                     memory_reserved_bytes(vm->memory), vm->reclaim.guest, library->path,
                     &commons, &err) < 0)
        give_up_library(vm, &err);
    return commons;
}

/* ---- a look ---- */

/* Nobody writes to guest memory meanwhile. Without a library it is still worth it. */
static void reclaim(struct vm *vm, struct commons *commons,
                    struct memory_reclaimed *reclaimed)
{
    struct error err = ERROR_NONE;

    if (commons != NULL) {
        if (memory_reclaim(vm->memory, commons, reclaimed, &err) == 0)
            return;
        give_up_library(vm, &err);
    }
    if (memory_reclaim(vm->memory, NULL, reclaimed, &err) < 0)
        log_info("memory of the idle guest: %s", err.text);
}

static void forget_code(struct vm *vm)
{
    if (vm->accel->forget_code != NULL)
        vm->accel->forget_code(vm->accel_vm);
}

/* The cache is looked through before the vCPUs are stopped, who need not wait for it. */
static void look(struct vm *vm)
{
    struct image_cache_library library = {.pages_fd = -1, .marks_fd = -1};
    struct commons *commons = open_commons(vm, &library);
    struct memory_reclaimed reclaimed = {.zero_bytes = 0};
    uint64_t start_ns = clock_monotonic_ns();

    vm_order_park(vm);
    if (vm_freeze_pci_devices(vm)) {
        reclaim(vm, commons, &reclaimed);
        vm_thaw_pci_devices(vm);
        forget_code(vm);
        vm->reclaim.looks++;
        vm->reclaim.zero_bytes += reclaimed.zero_bytes;
        vm->reclaim.common_bytes += reclaimed.common_bytes;
        vm->reclaim.pending = reclaimed.later_bytes > 0;
        log_info("memory of the idle guest: %" PRIu64 " KiB were zero, %" PRIu64
                 " KiB are in the library, %" PRIu64 " KiB stay (%" PRIu64 " us)",
                 reclaimed.zero_bytes / KIB, reclaimed.common_bytes / KIB,
                 reclaimed.kept_bytes / KIB, (clock_monotonic_ns() - start_ns) / 1000);
    } else {
        vm->reclaim.pending = true;
    }
    /* As in vm_dump: a request that came meanwhile keeps the vCPUs parked. */
    if (atomic_load(&vm->requests) == 0)
        vm_order_run(vm);
    commons_close(commons);
    image_cache_library_close(&library);
}

/* ---- when ---- */

/* What the vCPUs' threads have used of the host's processors. */
static uint64_t vcpu_time_ns(const struct vm *vm)
{
    uint64_t sum_ns = 0;

    for (uint32_t i = 0; i < vm->vcpu_count; i++) {
        struct timespec time;
        clockid_t clock;

        if (pthread_getcpuclockid(vm->vcpus[i].thread, &clock) == 0 &&
            clock_gettime(clock, &time) == 0)
            sum_ns += (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
    }
    return sum_ns;
}

/* Guests that were started together do not look together for ever: only one of them may
 * write to the library. */
static void arm(struct vm *vm)
{
    const struct timeval interval = {
        .tv_sec = vm->reclaim.interval_seconds,
        .tv_usec = vm->reclaim.guest * USEC_PER_SECOND / (UINT16_MAX + 1),
    };

    if (event_add(vm->reclaim.timer, &interval) < 0)
        log_warn("out of memory for the main loop: idle memory is not given back");
}

static void consider(int fd, short what, void *context)
{
    struct vm *vm = context;
    struct vm_reclaim *state = &vm->reclaim;
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t used_ns;
    bool idle;

    (void)fd;
    (void)what;
    if (vm->state != VM_RUNNING) {
        arm(vm);
        return;
    }
    used_ns = vcpu_time_ns(vm);
    /* After a reset the threads are new ones, and so are their clocks. */
    if (used_ns < state->used_ns)
        state->used_ns = state->used_at_look_ns = 0;
    idle = used_ns - state->used_ns <= (now_ns - state->considered_ns) / IDLE_SHARE;
    state->used_ns = used_ns;
    state->considered_ns = now_ns;
    if (!idle) {
        state->interval_seconds = FIRST_INTERVAL_SECONDS;
    } else {
        if (state->pending || used_ns - state->used_at_look_ns > WORTH_A_LOOK_NS) {
            look(vm);
            state->used_at_look_ns = vcpu_time_ns(vm);
        }
        state->interval_seconds = (unsigned)min_u64(UINT64_C(2) * state->interval_seconds,
                                                    LAST_INTERVAL_SECONDS);
    }
    arm(vm);
}

int vm_make_reclaim(struct vm *vm, struct error *err)
{
    if (vm->config->reclaim == CONFIG_RECLAIM_OFF || !memory_may_reclaim(vm->memory))
        return 0;
    vm->reclaim.timer = evtimer_new(loop_event_base(vm->loop), consider, vm);
    if (vm->reclaim.timer == NULL)
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    /* Any number will do: two guests with one do not find what they have in common. */
    (void)!getrandom(&vm->reclaim.guest, sizeof(vm->reclaim.guest), 0);
    return 0;
}

void vm_start_reclaim(struct vm *vm)
{
    if (vm->reclaim.timer == NULL)
        return;
    vm->reclaim.interval_seconds = FIRST_INTERVAL_SECONDS;
    vm->reclaim.considered_ns = clock_monotonic_ns();
    arm(vm);
}

void vm_drop_reclaim(struct vm *vm)
{
    if (vm->reclaim.timer != NULL)
        event_free(vm->reclaim.timer);
}
