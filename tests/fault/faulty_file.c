/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that misbehaves on command: serves FILE as MOUNTPOINT (a file, too) by FUSE.
 * With STABLE it is a storage with a volatile cache: STABLE gets what FILE has at each
 * fsync, and so holds what is left after a loss of power.
 *
 * Commands come by standard input, one a line; each is answered by one line. OP is read,
 * write, fsync or allocate.
 *   hold OP       requests of this kind wait from now on
 *   release       those that wait are carried out, and none waits any more
 *   wait COUNT    answered when so many wait
 *   fail OP ERRNO requests of this kind get this error
 *   short OP      reads or writes move half of what they could
 *   heal          ends fail and short
 * The end of input is the end of the program. Whoever waits for a request and is killed
 * gets an answer, as from a network file system: else nothing could end it.
 */
#define FUSE_USE_VERSION 35

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum operation { OP_READ, OP_WRITE, OP_FSYNC, OP_ALLOCATE, OPERATIONS };

static const char *const operation_names[OPERATIONS] = {
    [OP_READ] = "read",
    [OP_WRITE] = "write",
    [OP_FSYNC] = "fsync",
    [OP_ALLOCATE] = "allocate",
};

struct behaviour {
    bool holds;
    bool halves;
    int failure; /* an errno, or 0 */
};

/* A request that waits. */
struct held {
    struct held *next;
    fuse_req_t request;
    enum operation operation;
    int mode; /* of fallocate */
    off_t offset;
    size_t size;
    char bytes[]; /* of a write */
};

/* More than any file here has. */
#define COPY_BYTES ((size_t)1 << 30)

static struct behaviour behaviours[OPERATIONS];
static struct held *waiting; /* in the order in which they came */
static unsigned waiting_count;
static unsigned awaited_count; /* what "wait" waits for; 0: nobody asks */
static int file_fd = -1;
static int stable_fd = -1;

static void answer(const char *line)
{
    (void)printf("%s\n", line);
    (void)fflush(stdout);
}

/* ---- requests carried out ---- */

/* Something is moved each time, so that who goes on comes to an end. */
static size_t half_if_short(enum operation operation, size_t size)
{
    return behaviours[operation].halves ? (size + 1) / 2 : size;
}

static void do_read(const struct held *held)
{
    size_t size = half_if_short(OP_READ, held->size);
    char *bytes = malloc(size + 1);
    ssize_t got = bytes == NULL ? -1 : pread(file_fd, bytes, size, held->offset);

    if (got < 0)
        (void)fuse_reply_err(held->request, errno);
    else
        (void)fuse_reply_buf(held->request, bytes, (size_t)got);
    free(bytes);
}

static void do_write(const struct held *held)
{
    ssize_t written =
        pwrite(file_fd, held->bytes, half_if_short(OP_WRITE, held->size), held->offset);

    if (written < 0)
        (void)fuse_reply_err(held->request, errno);
    else
        (void)fuse_reply_write(held->request, (size_t)written);
}

static int make_stable(void)
{
    off_t from = 0;
    off_t to = 0;
    ssize_t copied = 1;

    if (stable_fd < 0)
        return 0;
    while (copied > 0)
        copied = copy_file_range(file_fd, &from, stable_fd, &to, COPY_BYTES, 0);
    return copied < 0 ? errno : 0;
}

static void carry_out(const struct held *held)
{
    int failure = behaviours[held->operation].failure;

    if (failure != 0) {
        (void)fuse_reply_err(held->request, failure);
        return;
    }
    switch (held->operation) {
    case OP_READ:
        do_read(held);
        return;
    case OP_WRITE:
        do_write(held);
        return;
    case OP_FSYNC:
        (void)fuse_reply_err(held->request, make_stable());
        return;
    case OP_ALLOCATE:
        (void)fuse_reply_err(held->request, fallocate(file_fd, held->mode, held->offset,
                                                      (off_t)held->size) < 0
                                                ? errno
                                                : 0);
        return;
    case OPERATIONS:
        abort();
    }
}

/* ---- requests that wait ---- */

static struct held **find(const struct held *wanted)
{
    struct held **place = &waiting;

    while (*place != wanted)
        place = &(*place)->next;
    return place;
}

/* Takes the request out of the list. */
static void remove_held(struct held *held)
{
    *find(held) = held->next;
    waiting_count--;
}

static void on_interrupt(fuse_req_t request, void *context)
{
    struct held *held = context;

    remove_held(held);
    (void)fuse_reply_err(request, EINTR);
    free(held);
}

static void release_all(void)
{
    for (int i = 0; i < OPERATIONS; i++)
        behaviours[i].holds = false;
    while (waiting != NULL) {
        struct held *held = waiting;

        remove_held(held);
        fuse_req_interrupt_func(held->request, NULL, NULL);
        carry_out(held);
        free(held);
    }
}

static void answer_waiter(void)
{
    if (awaited_count == 0 || waiting_count < awaited_count)
        return;
    awaited_count = 0;
    answer("ok");
}

static void hold(struct held *held)
{
    held->next = NULL;
    *find(NULL) = held;
    waiting_count++;
    fuse_req_interrupt_func(held->request, on_interrupt, held);
    answer_waiter();
}

/* What all operations come to. */
static void handle(const struct held *request, const char *bytes)
{
    size_t byte_count = bytes == NULL ? 0 : request->size;
    struct held *held = malloc(sizeof(*held) + byte_count);

    if (held == NULL || fuse_req_interrupted(request->request)) {
        (void)fuse_reply_err(request->request, held == NULL ? ENOMEM : EINTR);
        free(held);
        return;
    }
    *held = *request;
    if (bytes != NULL)
        memcpy(held->bytes, bytes, byte_count);
    if (behaviours[held->operation].holds) {
        hold(held);
        return;
    }
    carry_out(held);
    free(held);
}

/* ---- what FUSE asks for; the only inode is the root, which is a file ---- */

static void on_getattr(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
    struct stat status;

    (void)file;
    if (fstat(file_fd, &status) < 0) {
        (void)fuse_reply_err(request, errno);
        return;
    }
    status.st_ino = inode;
    (void)fuse_reply_attr(request, &status, 0);
}

static void on_setattr(fuse_req_t request, fuse_ino_t inode, struct stat *wanted,
                       int changes, struct fuse_file_info *file)
{
    if ((changes & FUSE_SET_ATTR_SIZE) != 0 && ftruncate(file_fd, wanted->st_size) < 0)
        (void)fuse_reply_err(request, errno);
    else
        on_getattr(request, inode, file);
}

static void on_open(fuse_req_t request, fuse_ino_t inode, struct fuse_file_info *file)
{
    (void)inode;
    (void)fuse_reply_open(request, file);
}

static void on_read(fuse_req_t request, fuse_ino_t inode, size_t size, off_t offset,
                    struct fuse_file_info *file)
{
    const struct held held = {
        .request = request, .operation = OP_READ, .offset = offset, .size = size};

    (void)inode;
    (void)file;
    handle(&held, NULL);
}

static void on_write(fuse_req_t request, fuse_ino_t inode, const char *bytes, size_t size,
                     off_t offset, struct fuse_file_info *file)
{
    const struct held held = {
        .request = request, .operation = OP_WRITE, .offset = offset, .size = size};

    (void)inode;
    (void)file;
    handle(&held, bytes);
}

static void on_fsync(fuse_req_t request, fuse_ino_t inode, int data_only,
                     struct fuse_file_info *file)
{
    const struct held held = {.request = request, .operation = OP_FSYNC};

    (void)inode;
    (void)data_only;
    (void)file;
    handle(&held, NULL);
}

static void on_fallocate(fuse_req_t request, fuse_ino_t inode, int mode, off_t offset,
                         off_t size, struct fuse_file_info *file)
{
    const struct held held = {.request = request,
                              .operation = OP_ALLOCATE,
                              .mode = mode,
                              .offset = offset,
                              .size = (size_t)size};

    (void)inode;
    (void)file;
    handle(&held, NULL);
}

static const struct fuse_lowlevel_ops file_ops = {
    .getattr = on_getattr,
    .setattr = on_setattr,
    .open = on_open,
    .read = on_read,
    .write = on_write,
    .fsync = on_fsync,
    .fallocate = on_fallocate,
};

/* ---- commands ---- */

/* OPERATIONS: there is none of this name. */
static enum operation find_operation(const char *name)
{
    enum operation operation = 0;

    while (operation < OPERATIONS && strcmp(name, operation_names[operation]) != 0)
        operation++;
    return operation;
}

/* The three commands that name an operation. */
static bool change_behaviour(const char *command, const char *name, int failure)
{
    enum operation operation = find_operation(name);

    if (operation == OPERATIONS)
        return false;
    if (strcmp(command, "hold") == 0)
        behaviours[operation].holds = true;
    else if (strcmp(command, "short") == 0)
        behaviours[operation].halves = true;
    else if (strcmp(command, "fail") == 0 && failure > 0)
        behaviours[operation].failure = failure;
    else
        return false;
    return true;
}

static void heal(void)
{
    for (int i = 0; i < OPERATIONS; i++) {
        behaviours[i].failure = 0;
        behaviours[i].halves = false;
    }
}

static void obey(const char *line)
{
    char command[16] = "";
    char first[16] = "";
    char second[16] = "";

    (void)sscanf(line, "%15s %15s %15s", command, first, second);
    if (strcmp(command, "wait") == 0) {
        awaited_count = (unsigned)strtoul(first, NULL, 10);
        answer_waiter();
        return;
    }
    if (strcmp(command, "release") == 0) {
        release_all();
    } else if (strcmp(command, "heal") == 0) {
        heal();
    } else if (!change_behaviour(command, first, (int)strtol(second, NULL, 10))) {
        answer("what?");
        return;
    }
    answer("ok");
}

/* ---- the loop ---- */

/* One line comes at a time: the next one is sent when this one is answered. */
static bool take_command(void)
{
    char line[64];

    if (fgets(line, sizeof(line), stdin) == NULL)
        return false;
    obey(line);
    return true;
}

static bool take_request(struct fuse_session *session, struct fuse_buf *buffer)
{
    int size = fuse_session_receive_buf(session, buffer);

    if (size == -EINTR || size == -EAGAIN)
        return true;
    if (size <= 0)
        return false;
    fuse_session_process_buf(session, buffer);
    return true;
}

static void serve(struct fuse_session *session)
{
    struct fuse_buf buffer = {.mem = NULL};
    bool goes_on = true;

    while (goes_on && !fuse_session_exited(session)) {
        struct pollfd sources[] = {
            {.fd = STDIN_FILENO, .events = POLLIN},
            {.fd = fuse_session_fd(session), .events = POLLIN},
        };

        if (poll(sources, 2, -1) < 0)
            continue;
        if (sources[0].revents != 0)
            goes_on = take_command();
        if (goes_on && sources[1].revents != 0)
            goes_on = take_request(session, &buffer);
    }
    free(buffer.mem);
}

int main(int argc, char **argv)
{
    char *options[] = {argv[0], "-ofsname=faulty_file"};
    struct fuse_args arguments = FUSE_ARGS_INIT(2, options);
    struct fuse_session *session;

    if (argc < 3 || argc > 4) {
        (void)fprintf(stderr, "usage: faulty_file MOUNTPOINT FILE [STABLE]\n");
        return 2;
    }
    file_fd = open(argv[2], O_RDWR | O_CLOEXEC);
    if (argc == 4)
        stable_fd = open(argv[3], O_RDWR | O_CLOEXEC);
    if (file_fd < 0 || (argc == 4 && stable_fd < 0)) {
        perror("faulty_file: cannot open");
        return 1;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    session = fuse_session_new(&arguments, &file_ops, sizeof(file_ops), NULL);
    fuse_opt_free_args(&arguments);
    if (session == NULL || fuse_session_mount(session, argv[1]) < 0)
        return 1;
    answer("ok");
    serve(session);
    fuse_session_unmount(session);
    fuse_session_destroy(session);
    return 0;
}
