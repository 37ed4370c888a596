/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of running instances; see api.h.
 *
 * An instance lives as long as its process holds the lock on its lock file: the kernel
 * lets go of it however the process ends. Three parties meet at a directory: the owner,
 * others who look whether it lives, and whoever removes what a dead process left. Looking
 * takes no lock. Removing happens only with the lock held, and only if the lock file is
 * still the one at that path; so does creating. Whoever finds that it locked a file that
 * somebody removed meanwhile starts again.
 */
#include "api/instances_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/runtime_directory.h"

#define NAME_LIMIT 64
#define INFO_TEMPORARY INSTANCE_INFO ".tmp"

/* Somebody who removes a dead instance holds its lock for a moment. */
#define CLAIM_ATTEMPTS 40
#define CLAIM_PAUSE_NS 5000000

/* Auto names: husk-PID, then husk-PID-2 and so on. */
#define AUTO_NAME_ATTEMPTS 100

struct instance {
    char name[NAME_LIMIT + 1];
    char directory[sizeof(((struct instance_info *)0)->directory)];
    int base_fd;
    int directory_fd;
    int lock_fd;
};

/* ---- names ---- */

static bool is_name_character(char character)
{
    return (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '.' ||
           character == '_' || character == '-';
}

static int name_check(const char *name, struct error *err)
{
    size_t length = strlen(name);

    if (length == 0)
        return error_set(err, -EINVAL, "an instance name must not be empty");
    if (length > NAME_LIMIT)
        return error_set(err, -EINVAL,
                         "an instance name has at most %d characters, this one %zu",
                         NAME_LIMIT, length);
    for (size_t i = 0; i < length; i++)
        if (!is_name_character(name[i]))
            return error_set(err, -EINVAL,
                             "an instance name consists of A-Z a-z 0-9 . _ -, "
                             "character %zu of this one is another",
                             i + 1);
    if (name[0] == '.')
        return error_set(err, -EINVAL, "instance name \"%s\" starts with a dot", name);
    return 0;
}

/* ---- locks ---- */

/* Open file description locks (fcntl(2)) belong to the descriptor and not to the process,
 * so closing another descriptor of the same file does not lose them. */
static struct flock whole_file_lock(void)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static bool lock_take(int fd)
{
    struct flock lock = whole_file_lock();

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool lock_is_held(int fd)
{
    struct flock lock = whole_file_lock();

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* True if the open lock file still is the one at its path. */
static bool lock_is_current(int base_fd, const char *name, int lock_fd)
{
    char path[NAME_LIMIT + sizeof("/" INSTANCE_LOCK)];
    struct stat opened;
    struct stat found;
    int length = snprintf(path, sizeof(path), "%s/" INSTANCE_LOCK, name);

    return length < (int)sizeof(path) && fstat(lock_fd, &opened) == 0 &&
           fstatat(base_fd, path, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_dev == found.st_dev && opened.st_ino == found.st_ino;
}

/* The pid in a lock file; 0 while there is none. */
static pid_t lock_read_pid(int lock_fd)
{
    char text[24];
    ssize_t got = pread(lock_fd, text, sizeof(text) - 1, 0);
    char *end;
    long pid;

    if (got <= 0)
        return 0;
    text[got] = '\0';
    pid = strtol(text, &end, 10);
    return *end == '\n' && pid > 0 && pid <= INT32_MAX ? (pid_t)pid : 0;
}

static int lock_write_pid(int lock_fd, struct error *err)
{
    char text[24];
    int size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

    if (ftruncate(lock_fd, 0) < 0 || pwrite(lock_fd, text, (size_t)size, 0) != size)
        return error_set_errno(err, errno, "cannot write the lock file");
    return 0;
}

/* ---- one instance's directory ---- */

static void remove_files(int directory_fd)
{
    static const char *const files[] = {INSTANCE_API_SOCKET, INSTANCE_CONSOLE_SOCKET,
                                        INSTANCE_INFO, INFO_TEMPORARY};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        (void)unlinkat(directory_fd, files[i], 0);
}

/* With the lock held. The lock file goes last: once it is gone, the next owner may start
 * to fill the directory. */
static void remove_directory(int base_fd, const char *name, int directory_fd, int lock_fd)
{
    /* Without a pid in it, nobody who looks takes this lock for a living instance's. */
    if (!lock_is_current(base_fd, name, lock_fd) || ftruncate(lock_fd, 0) < 0)
        return;
    remove_files(directory_fd);
    (void)unlinkat(directory_fd, INSTANCE_LOCK, 0);
    (void)unlinkat(base_fd, name, AT_REMOVEDIR);
}

static int directory_open(int base_fd, const char *name)
{
    return openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int lock_open(int directory_fd, int flags)
{
    return openat(directory_fd, INSTANCE_LOCK, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags,
                  0600);
}

/* One attempt to make the directory ours. -EAGAIN: it was removed under our hands;
 * -EADDRINUSE without text: locked by somebody, *holder says who. */
static int claim_once(struct instance *instance, pid_t *holder, struct error *err)
{
    CLEANUP_FD int directory_fd = -1;
    CLEANUP_FD int lock_fd = -1;

    if (mkdirat(instance->base_fd, instance->name, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot create directory %s",
                               instance->directory);
    directory_fd = directory_open(instance->base_fd, instance->name);
    if (directory_fd < 0 && errno == ENOENT)
        return -EAGAIN;
    if (directory_fd < 0)
        return error_set_errno(err, errno, "cannot open directory %s",
                               instance->directory);
    lock_fd = lock_open(directory_fd, O_CREAT);
    if (lock_fd < 0 && errno == ENOENT)
        return -EAGAIN;
    if (lock_fd < 0)
        return error_set_errno(err, errno, "cannot open %s/" INSTANCE_LOCK,
                               instance->directory);
    if (!lock_take(lock_fd)) {
        *holder = lock_read_pid(lock_fd);
        return -EADDRINUSE;
    }
    if (!lock_is_current(instance->base_fd, instance->name, lock_fd))
        return -EAGAIN;
    if (lock_write_pid(lock_fd, err) < 0)
        return err->code;
    remove_files(directory_fd);
    instance->directory_fd = fd_take(&directory_fd);
    instance->lock_fd = fd_take(&lock_fd);
    return 0;
}

static int claim(struct instance *instance, struct error *err)
{
    static const struct timespec moment = {.tv_nsec = CLAIM_PAUSE_NS};
    pid_t holder = 0;
    int status;

    for (int attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
        status = claim_once(instance, &holder, err);
        if (status != -EAGAIN && status != -EADDRINUSE)
            return status;
        (void)nanosleep(&moment, NULL);
    }
    if (holder == 0)
        return error_set(err, -EADDRINUSE, "instance name \"%s\" is in use",
                         instance->name);
    return error_set(err, -EADDRINUSE,
                     "instance name \"%s\" is in use by process %ld: "
                     "choose another --name, or end that one with: husk stop %s",
                     instance->name, (long)holder, instance->name);
}

static int create_named(struct instance *instance, const char *base, const char *name,
                        struct error *err)
{
    struct sockaddr_un address;

    (void)snprintf(instance->name, sizeof(instance->name), "%s", name);
    if (snprintf(instance->directory, sizeof(instance->directory), "%s/%s", base, name) >=
        (int)sizeof(instance->directory))
        return error_set(err, -ENAMETOOLONG, "directory %s/%s: path is too long", base,
                         name);
    /* Said before anything is made: the longest of the paths below. */
    if (instance_socket_address(instance->directory, INSTANCE_CONSOLE_SOCKET, &address,
                                err) < 0)
        return err->code;
    return claim(instance, err);
}

static int create_auto_named(struct instance *instance, const char *base,
                             struct error *err)
{
    char name[NAME_LIMIT + 1];
    struct error last = ERROR_NONE;

    for (int i = 1; i <= AUTO_NAME_ATTEMPTS; i++) {
        int size = snprintf(name, sizeof(name), "husk-%ld", (long)getpid());

        if (i > 1)
            (void)snprintf(name + size, sizeof(name) - (size_t)size, "-%d", i);
        last = ERROR_NONE;
        if (create_named(instance, base, name, &last) != -EADDRINUSE)
            break;
    }
    return last.code == 0 ? 0 : error_set(err, last.code, "%s", last.text);
}

int instance_create(const char *name, struct instance **instance, struct error *err)
{
    char base[sizeof(((struct instance_info *)0)->directory)];
    struct instance *created;
    int status;

    if (name != NULL && name_check(name, err) < 0)
        return err->code;
    if (runtime_directory_path(base, sizeof(base), err) < 0)
        return err->code;
    created = malloc(sizeof(*created));
    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the instance");
    *created = (struct instance){.base_fd = -1, .directory_fd = -1, .lock_fd = -1};
    status = runtime_directory_open(base, true, &created->base_fd, err);
    if (status == 0 && name != NULL)
        status = create_named(created, base, name, err);
    else if (status == 0)
        status = create_auto_named(created, base, err);
    if (status < 0) {
        instance_destroy(created);
        return status;
    }
    *instance = created;
    return 0;
}

void instance_destroy(struct instance *instance)
{
    if (instance == NULL)
        return;
    if (instance->lock_fd >= 0)
        remove_directory(instance->base_fd, instance->name, instance->directory_fd,
                         instance->lock_fd);
    fd_close(&instance->lock_fd);
    fd_close(&instance->directory_fd);
    fd_close(&instance->base_fd);
    free(instance);
}

const char *instance_name(const struct instance *instance)
{
    return instance->name;
}

const char *instance_directory(const struct instance *instance)
{
    return instance->directory;
}

/* ---- looking at others ---- */

/* The pid of the living instance `name`; 0 if there is none. What a dead one left is
 * removed. */
static pid_t look_at(int base_fd, const char *name)
{
    CLEANUP_FD int directory_fd = directory_open(base_fd, name);
    CLEANUP_FD int lock_fd = directory_fd < 0 ? -1 : lock_open(directory_fd, 0);

    if (lock_fd < 0) {
        /* Only goes if it is an empty directory; its creator, if one is just between its
         * two steps, starts again. */
        (void)unlinkat(base_fd, name, AT_REMOVEDIR);
        return 0;
    }
    if (lock_is_held(lock_fd))
        return lock_read_pid(lock_fd);
    if (lock_take(lock_fd))
        remove_directory(base_fd, name, directory_fd, lock_fd);
    return 0;
}

static int is_instance_entry(const struct dirent *entry)
{
    struct error ignored = ERROR_NONE;

    return name_check(entry->d_name, &ignored) == 0;
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

int instance_list(void (*visit)(void *context, const struct instance_info *info),
                  void *context, struct error *err)
{
    char base[sizeof(((struct instance_info *)0)->directory)];
    CLEANUP_FD int base_fd = -1;
    struct dirent **entries;
    int count;
    int status = runtime_directory_path(base, sizeof(base), err);

    if (status == 0)
        status = runtime_directory_open(base, false, &base_fd, err);
    if (status == -ENOENT && err->code == 0)
        return 0; /* nothing was ever started */
    if (status < 0)
        return status;
    count = scandirat(base_fd, ".", &entries, is_instance_entry, compare_entries);
    if (count < 0)
        return error_set_errno(err, errno, "cannot read directory %s", base);
    for (int i = 0; i < count; i++) {
        struct instance_info info = {.pid = look_at(base_fd, entries[i]->d_name)};

        /* is_instance_entry has checked the length. */
        memcpy(info.name, entries[i]->d_name, strlen(entries[i]->d_name));
        if (info.pid != 0 && snprintf(info.directory, sizeof(info.directory), "%s/%s",
                                      base, info.name) < (int)sizeof(info.directory))
            visit(context, &info);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

/* ---- finding one ---- */

/* More running instances than this are not named in a message. */
#define SUGGESTIONS 64

struct search {
    const char *name;
    struct instance_info *info;
    bool found;
    size_t count;
    char names[SUGGESTIONS][NAME_LIMIT + 1];
};

static void compare_name(void *context, const struct instance_info *info)
{
    struct search *search = context;

    if (strcmp(info->name, search->name) == 0) {
        search->found = true;
        *search->info = *info;
    }
    if (search->count < SUGGESTIONS)
        memcpy(search->names[search->count++], info->name, sizeof(info->name));
}

int instance_find(const char *name, struct instance_info *info, struct error *err)
{
    struct search search = {.name = name, .info = info};
    const char *candidates[SUGGESTIONS + 1] = {NULL};
    const char *nearest;

    if (name_check(name, err) < 0 || instance_list(compare_name, &search, err) < 0)
        return err->code;
    if (search.found)
        return 0;
    for (size_t i = 0; i < search.count; i++)
        candidates[i] = search.names[i];
    nearest = config_nearest(name, candidates);
    if (nearest != NULL)
        return error_set(err, -ENOENT,
                         "no running instance is named \"%s\"; did you mean "
                         "\"%s\"?",
                         name, nearest);
    return error_set(err, -ENOENT, "no running instance is named \"%s\"; see: husk list",
                     name);
}

/* ---- files in the directory ---- */

int instance_write_info(const struct instance *instance, const char *text,
                        struct error *err)
{
    CLEANUP_FD int fd =
        openat(instance->directory_fd, INFO_TEMPORARY,
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int status;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot create %s/" INFO_TEMPORARY,
                               instance->directory);
    status = fd_write_all(fd, text, strlen(text));
    if (status < 0)
        return error_set_errno(err, status, "cannot write %s/" INFO_TEMPORARY,
                               instance->directory);
    if (renameat(instance->directory_fd, INFO_TEMPORARY, instance->directory_fd,
                 INSTANCE_INFO) < 0)
        return error_set_errno(err, errno, "cannot write %s/" INSTANCE_INFO,
                               instance->directory);
    return 0;
}

int instance_socket_address(const char *directory, const char *name,
                            struct sockaddr_un *address, struct error *err)
{
    size_t wanted = strlen(directory) + 1 + strlen(name);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (wanted >= sizeof(address->sun_path))
        return error_set(err, -ENAMETOOLONG,
                         "%s/%s is too long for a socket's path (%zu bytes, at most "
                         "%zu): set XDG_RUNTIME_DIR to a shorter path, or choose a "
                         "shorter --name",
                         directory, name, wanted, sizeof(address->sun_path) - 1);
    (void)snprintf(address->sun_path, sizeof(address->sun_path), "%s/%s", directory,
                   name);
    return 0;
}
