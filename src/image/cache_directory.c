/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's directory: whose it is, what is in it, what must go; see cache_private.h.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "image/cache_private.h"

/* The unit of st_blocks (inode(7)). */
#define STAT_BLOCK_BYTES 512

#define LOCK_POLL_NS (10 * NS_PER_MS)

#define HEX_DIGITS "0123456789abcdef"

int image_cache_directory(const struct image_cache_options *options, char *path,
                          size_t path_size, struct error *err)
{
    const char *base = options->directory;
    const char *below = "";
    int length;

    if (base == NULL || *base == '\0')
        base = getenv("HUSK_CACHE_DIR");
    if (base == NULL || *base == '\0') {
        below = "/husk";
        /* root's environment is often another user's (sudo -E), and so would be XDG's
         * directory. */
        base = geteuid() == 0 ? "/var/cache" : getenv("XDG_CACHE_HOME");
        if (base == NULL || *base != '/') { /* relative: the XDG text says to ignore it */
            base = getenv("HOME");
            below = "/.cache/husk";
        }
    }
    if (base == NULL || *base == '\0')
        return error_set(
            err, -ENOENT,
            "no cache directory: set HUSK_CACHE_DIR, XDG_CACHE_HOME or HOME");
    length = snprintf(path, path_size, "%s%s", base, below);
    if (length < 0 || (size_t)length >= path_size)
        return error_set(err, -ENAMETOOLONG, "the cache directory's path is too long");
    return 0;
}

/* mkdir -p. Components that exist are left as they are. */
static int create_path(const char *path, struct error *err)
{
    char prefix[4096];
    size_t length = strlen(path);

    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(prefix, path, end);
        prefix[end] = '\0';
        if (mkdir(prefix, 0700) < 0 && errno != EEXIST)
            return error_set_errno(err, errno, "cannot create %s", prefix);
    }
    return 0;
}

/* Entries are mapped into guests as they are: nobody but us may have written them. */
static int check_owner(const struct cache_directory *directory, struct error *err)
{
    struct stat status;

    if (fstat(directory->fd, &status) < 0)
        return error_set_errno(err, errno, "cannot stat %s", directory->path);
    if (status.st_uid != geteuid())
        return error_set(err, -EPERM, "%s belongs to user %ju, not to user %ju",
                         directory->path, (uintmax_t)status.st_uid, (uintmax_t)geteuid());
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(err, -EPERM,
                         "%s can be written by others (mode %04o); use chmod go-w",
                         directory->path, (unsigned int)status.st_mode & 07777U);
    return 0;
}

int cache_directory_open(struct cache_directory *directory,
                         const struct image_cache_options *options, bool create,
                         struct error *err)
{
    static const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

    directory->fd = -1;
    if (image_cache_directory(options, directory->path, sizeof(directory->path), err) < 0)
        return err->code;
    directory->fd = open(directory->path, flags);
    if (directory->fd < 0 && errno == ENOENT && create) {
        if (create_path(directory->path, err) < 0)
            return err->code;
        directory->fd = open(directory->path, flags);
    }
    if (directory->fd < 0)
        return error_set_errno(err, errno, "cannot open %s", directory->path);
    if (check_owner(directory, err) < 0)
        cache_directory_close(directory);
    return err->code;
}

void cache_directory_close(struct cache_directory *directory)
{
    fd_close(&directory->fd);
}

int cache_lock(const struct cache_directory *directory, const struct cache_key *key,
               uint32_t timeout_ms, int *lock_fd, struct error *err)
{
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ms * NS_PER_MS;
    const struct timespec pause = {.tv_nsec = (long)LOCK_POLL_NS};
    struct flock lock = {
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start = (off_t)(load_le64(key->digest) >> 2), /* + l_len fits off_t */
        .l_len = 1,
    };
    CLEANUP_FD int fd =
        openat(directory->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_set_errno(err, errno, "cannot open %s/lock", directory->path);
    while (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return error_set_errno(err, errno, "cannot lock %s/lock", directory->path);
        if (clock_monotonic_ns() >= deadline_ns)
            return error_set(err, -ETIMEDOUT,
                             "another process still unpacks the same kernel after "
                             "%" PRIu32 " ms",
                             timeout_ms);
        (void)nanosleep(&pause, NULL);
    }
    *lock_fd = fd_take(&fd);
    return 0;
}

/* ---- what is in it */

/* Kinds of entries. The companion lives and dies with the entry, and its modification
 * time is the entry's last use; without it the entry was used last when it was written.
 */
static const struct entry_kind {
    const char *suffix;
    const char *companion;
    bool has_holes; /* its size is what it takes on the disk */
} entry_kinds[] = {
    {CACHE_ELF, CACHE_SEAL, false},
    {CACHE_PAGES, CACHE_MARKS, true},
};

/* True if `name` is a key with `suffix` behind it. */
static bool is_key_name(const char *name, const char *suffix)
{
    size_t digits = strspn(name, HEX_DIGITS);

    return digits == CACHE_DIGEST_HEX_BYTES - 1 && strcmp(name + digits, suffix) == 0;
}

/* The kind of entry with this name, or NULL: it is none. */
static const struct entry_kind *kind_of_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(entry_kinds); i++)
        if (is_key_name(name, entry_kinds[i].suffix))
            return &entry_kinds[i];
    return NULL;
}

static bool is_companion_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(entry_kinds); i++)
        if (is_key_name(name, entry_kinds[i].companion))
            return true;
    return false;
}

static unsigned int digit_value(char digit)
{
    return (unsigned int)(strchr(HEX_DIGITS, digit) - HEX_DIGITS);
}

static struct cache_key key_of_name(const char *name)
{
    struct cache_key key;

    for (size_t i = 0; i < sizeof(key.digest); i++)
        key.digest[i] =
            (uint8_t)(digit_value(name[2 * i]) << 4 | digit_value(name[2 * i + 1]));
    cache_key_spell(&key);
    return key;
}

/* Calls `visit` for each name in the directory. The position of `directory->fd` is left
 * alone, so that this can be done twice. */
static int for_each_name(const struct cache_directory *directory,
                         int (*visit)(void *context, const char *name), void *context,
                         struct error *err)
{
    int fd = openat(directory->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *found;
    int status = 0;

    if (stream == NULL) {
        error_set_errno(err, errno, "cannot read %s", directory->path);
        fd_close(&fd);
        return err->code;
    }
    while (status == 0 && (found = readdir(stream)) != NULL)
        status = visit(context, found->d_name);
    (void)closedir(stream); /* with fd */
    if (status < 0)
        return error_set_errno(err, status, "cannot list %s", directory->path);
    return 0;
}

struct item {
    struct image_cache_entry entry;
    const struct entry_kind *kind;
    struct timespec used;
};

struct inventory {
    const struct cache_directory *directory;
    struct item *items;
    size_t count;
    size_t capacity;
};

static struct item *add_item(struct inventory *inventory)
{
    if (inventory->count == inventory->capacity) {
        size_t capacity = inventory->capacity * 2 + 16;
        struct item *grown = reallocarray(inventory->items, capacity, sizeof(*grown));

        if (grown == NULL)
            return NULL;
        inventory->items = grown;
        inventory->capacity = capacity;
    }
    return &inventory->items[inventory->count++];
}

static struct timespec last_use(const struct cache_directory *directory, const char *name,
                                const struct entry_kind *kind, const struct stat *entry)
{
    struct cache_key key = key_of_name(name);
    struct cache_name companion = cache_name_of(&key, kind->companion);
    struct stat status;

    if (fstatat(directory->fd, companion.text, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return status.st_mtim;
    return entry->st_mtim;
}

static int take_stock(void *context, const char *name)
{
    struct inventory *inventory = context;
    const struct entry_kind *kind = kind_of_name(name);
    struct stat status;
    struct item *item;

    if (kind == NULL ||
        fstatat(inventory->directory->fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    item = add_item(inventory);
    if (item == NULL)
        return -ENOMEM;
    *item = (struct item){.kind = kind,
                          .used = last_use(inventory->directory, name, kind, &status)};
    (void)snprintf(item->entry.name, sizeof(item->entry.name), "%s", name);
    item->entry.size_bytes =
        (uint64_t)(kind->has_holes ? status.st_blocks * STAT_BLOCK_BYTES
                                   : status.st_size);
    item->entry.used_seconds = item->used.tv_sec;
    return 0;
}

static int newest_first(const void *left, const void *right)
{
    const struct item *a = left;
    const struct item *b = right;

    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? 1 : -1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? 1 : -1;
    return strcmp(a->entry.name, b->entry.name);
}

/* Fills `inventory`, newest first; its items are freed by the caller, also on failure. */
static int list_items(const struct cache_directory *directory,
                      struct inventory *inventory, struct error *err)
{
    *inventory = (struct inventory){.directory = directory};
    if (for_each_name(directory, take_stock, inventory, err) < 0)
        return err->code;
    if (inventory->count > 0)
        qsort(inventory->items, inventory->count, sizeof(*inventory->items),
              newest_first);
    return 0;
}

int image_cache_list(const struct image_cache_options *options,
                     void (*visit)(void *context, const struct image_cache_entry *entry),
                     void *context, struct error *err)
{
    struct cache_directory directory;
    struct inventory inventory;
    struct error missing = ERROR_NONE;

    if (cache_directory_open(&directory, options, false, &missing) < 0)
        return missing.code == -ENOENT ? 0
                                       : error_set(err, missing.code, "%s", missing.text);
    if (list_items(&directory, &inventory, err) == 0)
        for (size_t i = 0; i < inventory.count; i++)
            visit(context, &inventory.items[i].entry);
    free(inventory.items);
    cache_directory_close(&directory);
    return err->code;
}

/* ---- what must go */

static bool remove_name(const struct cache_directory *directory, const char *name)
{
    if (unlinkat(directory->fd, name, 0) == 0)
        return true;
    if (errno != ENOENT) /* somebody else was faster */
        log_warn("cannot remove %s/%s: %s", directory->path, name, strerror(errno));
    return false;
}

static bool remove_entry(const struct cache_directory *directory, const char *name,
                         const struct entry_kind *kind)
{
    struct cache_key key = key_of_name(name);
    struct cache_name companion = cache_name_of(&key, kind->companion);

    (void)unlinkat(directory->fd, companion.text, 0); /* there may be none */
    return remove_name(directory, name);
}

/* What a walk that removes carries along. */
struct sweep {
    const struct cache_directory *directory;
    size_t removed_entries;
};

/* A temporary file whose key nobody has locked was left by a crash. */
static int sweep_stale(void *context, const char *name)
{
    const struct sweep *sweep = context;
    CLEANUP_FD int lock_fd = -1;
    struct error busy = ERROR_NONE;
    struct cache_key key;

    if (!is_key_name(name, CACHE_TEMPORARY))
        return 0;
    key = key_of_name(name);
    if (cache_lock(sweep->directory, &key, 0, &lock_fd, &busy) == 0)
        (void)remove_name(sweep->directory, name);
    return 0;
}

static int sweep_all(void *context, const char *name)
{
    struct sweep *sweep = context;
    const struct entry_kind *kind = kind_of_name(name);

    if (kind != NULL)
        sweep->removed_entries += remove_entry(sweep->directory, name, kind) ? 1 : 0;
    else if (is_companion_name(name))
        (void)remove_name(sweep->directory, name);
    return sweep_stale(context, name);
}

void cache_trim(const struct cache_directory *directory, uint64_t limit_bytes,
                const char *keep)
{
    struct sweep sweep = {.directory = directory};
    struct inventory inventory;
    struct error err = ERROR_NONE;
    uint64_t total_bytes = 0;

    if (list_items(directory, &inventory, &err) < 0 ||
        for_each_name(directory, sweep_stale, &sweep, &err) < 0)
        log_warn("cache not trimmed: %s", err.text);
    for (size_t i = 0; i < inventory.count; i++) {
        const struct image_cache_entry *entry = &inventory.items[i].entry;

        total_bytes += entry->size_bytes;
        if (total_bytes <= limit_bytes || strcmp(entry->name, keep) == 0)
            continue;
        log_info("cache is over its limit: %s/%s removed", directory->path, entry->name);
        if (remove_entry(directory, entry->name, inventory.items[i].kind))
            total_bytes -= entry->size_bytes;
    }
    free(inventory.items);
}

int image_cache_clear(const struct image_cache_options *options, size_t *removed,
                      struct error *err)
{
    struct cache_directory directory;
    struct sweep sweep = {.directory = &directory};
    struct error missing = ERROR_NONE;

    *removed = 0;
    if (cache_directory_open(&directory, options, false, &missing) < 0)
        return missing.code == -ENOENT ? 0
                                       : error_set(err, missing.code, "%s", missing.text);
    (void)for_each_name(&directory, sweep_all, &sweep, err);
    (void)remove_name(&directory, "sources");
    *removed = sweep.removed_entries;
    cache_directory_close(&directory);
    return err->code;
}
