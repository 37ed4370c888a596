/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O thread of a virtio-blk: from the queues to the disk, and back.
 *
 * The lock is held while queues are looked at, never while the disk is called: whoever
 * stops a queue waits for no request, and finds those that are in flight counted.
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "base/check.h"
#include "base/log.h"
#include "virtio/blk_private.h"

/* Requests handed to the disk, or taken from it, at a time. */
#define BATCH 64

static void lock(struct virtio_blk *blk)
{
    CHECK(pthread_mutex_lock(&blk->lock) == 0);
}

static void unlock(struct virtio_blk *blk)
{
    CHECK(pthread_mutex_unlock(&blk->lock) == 0);
}

unsigned blk_in_flight(const struct virtio_blk *blk, unsigned queue)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        if (queue == VIRTIO_ALL_QUEUES || queue == i)
            sum += VIRTIO_QUEUE_MAX_SIZE - blk->queues[i].free_count;
    return sum;
}

/* The lock is what keeps the I/O thread from guest memory. */
bool virtio_blk_freeze(struct virtio_blk *blk)
{
    lock(blk);
    if (blk_in_flight(blk, VIRTIO_ALL_QUEUES) == 0)
        return true;
    unlock(blk);
    return false;
}

void virtio_blk_thaw(struct virtio_blk *blk)
{
    unlock(blk);
}

void blk_drop_held(struct virtio_blk *blk, unsigned queue)
{
    struct blk_request **link = &blk->held;
    struct blk_request *request;

    while ((request = *link) != NULL) {
        if (queue != VIRTIO_ALL_QUEUES && request->queue != queue) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        blk_request_drop(blk, request);
    }
}

/* ---- from the queues ---- */

/* Begins what is taken; what is over at once is given back. Returns how many there are in
 * `begun` for the disk. */
static unsigned take_batch(struct virtio_blk *blk, unsigned queue,
                           struct disk_request *begun[BATCH], unsigned *taken)
{
    struct virtio_queue *ring = &blk->device.queues[queue].ring;
    struct blk_request *request;
    unsigned count = 0;

    for (*taken = 0; *taken < BATCH; ++*taken) {
        request = blk_request_take(blk, queue);
        if (request == NULL)
            break;
        if (blk_request_begin(blk, request))
            begun[count++] = &request->disk;
        else if (ring->fault == NULL)
            blk_request_answer(blk, request);
        else
            blk_request_drop(blk, request);
    }
    return count;
}

/* True if there may be more. */
static bool serve(struct virtio_blk *blk, unsigned queue)
{
    struct virtio_queue *ring = &blk->device.queues[queue].ring;
    struct disk_request *begun[BATCH];
    unsigned count = 0;
    bool more = false;

    lock(blk);
    if (blk->queues[queue].is_running && blk->held == NULL &&
        virtio_device_is_live(&blk->device)) {
        unsigned taken;

        virtio_queue_mute(ring);
        count = take_batch(blk, queue, begun, &taken);
        more = taken == BATCH || virtio_queue_listen(ring);
        virtio_device_interrupt(&blk->device, queue);
        virtio_device_check_queue(&blk->device, queue);
    }
    unlock(blk);
    if (count > 0)
        disk_submit(blk->disk, begun, count);
    return more;
}

/* ---- back from the disk ---- */

/* What has come of a batch, to be done without the lock. */
struct news {
    struct disk_request *begun[BATCH]; /* next steps */
    unsigned begun_count;
    bool has_held;    /* the first one */
    bool has_dropped; /* of a queue that somebody waits for, maybe */
    uint32_t queues;  /* a bit for each that has got something back */
};
_Static_assert(VIRTIO_BLK_MAX_QUEUES <= 32, "the bits of `queues`");

static bool is_to_be_held(const struct virtio_blk *blk,
                          const struct disk_request *request)
{
    enum virtio_blk_policy policy = request->operation == DISK_READ
                                        ? blk->options.on_read_error
                                        : blk->options.on_write_error;
    bool is_full = request->result == -ENOSPC || request->result == -EDQUOT;

    if (request->result >= 0 || request->refused)
        return false;
    return policy == VIRTIO_BLK_STOP || (policy == VIRTIO_BLK_STOP_IF_FULL && is_full);
}

static void hold(struct virtio_blk *blk, struct blk_request *request, struct news *news)
{
    if (blk->held == NULL) {
        disk_describe_failure(blk->disk, &request->disk, blk->trouble,
                              sizeof(blk->trouble));
        news->has_held = true;
    }
    request->next = blk->held;
    blk->held = request;
}

static void take_back(struct virtio_blk *blk, struct blk_request *request, bool is_live,
                      struct news *news)
{
    if (!is_live || !blk->queues[request->queue].is_running) {
        blk_request_drop(blk, request);
        news->has_dropped = true;
    } else if (is_to_be_held(blk, &request->disk)) {
        hold(blk, request, news);
    } else if (blk_request_go_on(blk, request)) {
        news->begun[news->begun_count++] = &request->disk;
    } else {
        blk_request_answer(blk, request);
        news->queues |= UINT32_C(1) << request->queue;
    }
}

/* Failures that the guest is told of, and the disk has not told. Writing a line may take
 * its time, so the lock is not held. */
static void report_failures(struct virtio_blk *blk, struct disk_request *const done[],
                            unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (done[i]->result < 0 && !done[i]->refused && done[i]->quiet &&
            !is_to_be_held(blk, done[i]))
            disk_report_failure(blk->disk, done[i]);
}

static void take_back_batch(struct virtio_blk *blk, struct disk_request *const done[],
                            unsigned count, struct news *news)
{
    bool is_live;

    lock(blk);
    is_live = virtio_device_is_live(&blk->device);
    for (unsigned i = 0; i < count; i++)
        take_back(blk, done[i]->owner, is_live, news);
    for (unsigned queue = 0; queue < blk->ops.queue_count; queue++)
        if (news->queues & (UINT32_C(1) << queue))
            virtio_device_interrupt(&blk->device, queue);
    unlock(blk);
}

static void call_attention(struct virtio_blk *blk)
{
    if (blk->options.attention != NULL)
        blk->options.attention(blk->options.context);
}

/* True if there may be more. */
static bool collect(struct virtio_blk *blk, bool is_ending)
{
    struct disk_request *done[BATCH];
    unsigned count = disk_reap(blk->disk, done, BATCH);
    struct news news = {.begun_count = 0};

    if (count == 0)
        return false;
    report_failures(blk, done, count);
    take_back_batch(blk, done, count, &news);
    if (news.begun_count > 0)
        disk_submit(blk->disk, news.begun, news.begun_count);
    is_ending |= (atomic_load(&blk->orders) & BLK_ORDER_END) != 0;
    if (news.has_dropped && !is_ending)
        virtio_device_stopped(&blk->device);
    if ((news.has_dropped || news.has_held) && !is_ending)
        call_attention(blk);
    return count == BATCH;
}

/* ---- orders ---- */

void blk_give_order(struct virtio_blk *blk, enum blk_order order)
{
    (void)atomic_fetch_or(&blk->orders, (unsigned)order);
    (void)eventfd_write(blk->control_fd, 1);
}

/* Takes up to a batch of held requests, in no order, to be begun again. A flush that has
 * failed cannot become true by another try (disk.h): the guest is told. */
static unsigned take_held(struct virtio_blk *blk, struct disk_request *begun[BATCH])
{
    bool is_live = virtio_device_is_live(&blk->device);
    struct blk_request *request;
    unsigned count = 0;

    while (count < BATCH && (request = blk->held) != NULL) {
        blk->held = request->next;
        if (request->disk.operation != DISK_FLUSH) {
            begun[count++] = &request->disk;
        } else if (is_live) {
            request->answer = BLK_IOERR;
            blk_request_answer(blk, request);
            virtio_device_interrupt(&blk->device, request->queue);
        } else {
            blk_request_drop(blk, request);
        }
    }
    return count;
}

static void retry(struct virtio_blk *blk)
{
    struct disk_request *begun[BATCH];
    unsigned count;
    bool more;

    do {
        lock(blk);
        count = take_held(blk, begun);
        more = blk->held != NULL;
        unlock(blk);
        if (count > 0)
            disk_submit(blk->disk, begun, count);
    } while (more);
    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        virtio_device_notify(&blk->device, i);
}

static void update_size(struct virtio_blk *blk)
{
    if (!disk_update_size(blk->disk))
        return;
    log_info("disk %s: has %ju bytes now", disk_path(blk->disk),
             (uintmax_t)disk_size_bytes(blk->disk));
    virtio_device_config_changed(&blk->device);
}

/* Nothing more is taken, and nobody waits for what comes back. */
static void begin_end(struct virtio_blk *blk)
{
    lock(blk);
    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        blk->queues[i].is_running = false;
    blk_drop_held(blk, VIRTIO_ALL_QUEUES);
    unlock(blk);
}

/* True if the thread is to end when nothing is in flight. */
static bool obey(struct virtio_blk *blk)
{
    unsigned orders = atomic_exchange(&blk->orders, 0);

    if (orders & BLK_ORDER_UPDATE)
        update_size(blk);
    if (orders & BLK_ORDER_RETRY)
        retry(blk);
    if (orders & BLK_ORDER_END)
        begin_end(blk);
    return (orders & BLK_ORDER_END) != 0;
}

static bool is_over(struct virtio_blk *blk)
{
    bool over;

    lock(blk);
    over = blk_in_flight(blk, VIRTIO_ALL_QUEUES) == 0;
    unlock(blk);
    return over;
}

/* ---- the thread ---- */

enum { POLL_CONTROL, POLL_COMPLETIONS, POLL_QUEUES };

static void prepare_poll(struct virtio_blk *blk, struct pollfd *watched)
{
    watched[POLL_CONTROL] = (struct pollfd){.fd = blk->control_fd, .events = POLLIN};
    watched[POLL_COMPLETIONS] =
        (struct pollfd){.fd = disk_completion_fd(blk->disk), .events = POLLIN};
    for (unsigned i = 0; i < blk->ops.queue_count; i++)
        watched[POLL_QUEUES + i] =
            (struct pollfd){.fd = blk->device.queues[i].notify_fd, .events = POLLIN};
}

/* Queues that have been notified, or had more than a batch. */
static void serve_queues(struct virtio_blk *blk, const struct pollfd *notified,
                         uint32_t *busy)
{
    for (unsigned i = 0; i < blk->ops.queue_count; i++) {
        uint32_t bit = UINT32_C(1) << i;

        if (notified[i].revents != 0)
            virtio_device_accept_notification(&blk->device, i);
        else if ((*busy & bit) == 0)
            continue;
        *busy = serve(blk, i) ? *busy | bit : *busy & ~bit;
    }
}

void *blk_work(void *context)
{
    struct virtio_blk *blk = context;
    struct pollfd watched[POLL_QUEUES + VIRTIO_BLK_MAX_QUEUES];
    uint32_t busy = 0; /* a bit a queue */
    bool is_ending = false;

    prepare_poll(blk, watched);
    while (!is_ending || !is_over(blk)) {
        eventfd_t ignored;

        if (poll(watched, POLL_QUEUES + blk->ops.queue_count, busy != 0 ? 0 : -1) < 0)
            continue; /* interrupted, by a signal that was no business of ours */
        if (watched[POLL_CONTROL].revents != 0) {
            (void)eventfd_read(blk->control_fd, &ignored);
            is_ending |= obey(blk);
        }
        if (watched[POLL_COMPLETIONS].revents != 0)
            while (collect(blk, is_ending))
                continue;
        serve_queues(blk, watched + POLL_QUEUES, &busy);
    }
    lock(blk);
    blk->has_ended = true;
    CHECK(pthread_cond_broadcast(&blk->ended) == 0);
    unlock(blk);
    return NULL;
}
