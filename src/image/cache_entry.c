/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of the cache, its seal, and the memory of sources; see cache_private.h.
 *
 * A seal has two lines: the identity of the entry's file (device, inode, size, both
 * times) under this boot of the host, and the SHA-256 of its content. Usually the
 * identity is unchanged, which one fstat tells. If it is not, the content is hashed: when
 * it is still what the seal says (another boot, a copied or touched cache) the seal is
 * renewed, else the entry is damaged. The boot is part of the identity because a crash of
 * the host can leave a file with the right size and times whose bytes never reached the
 * disk; so nothing here needs fsync.
 *
 * Not noticed: a change within the clock tick (some ms) in which the entry was sealed,
 * bytes that rot below the file system during this boot, and whoever may write entry and
 * seal both, which is only the cache's owner.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nettle/base16.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "image/cache_private.h"

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_CHARS 36

#define IDENTITY_BYTES 320
#define SEAL_BYTES (IDENTITY_BYTES + CACHE_DIGEST_HEX_BYTES + 1)

void cache_key_spell(struct cache_key *key)
{
    base16_encode_update(key->hex, sizeof(key->digest), key->digest);
    key->hex[CACHE_DIGEST_HEX_BYTES - 1] = '\0';
}

struct cache_name cache_name_of(const struct cache_key *key, const char *suffix)
{
    struct cache_name name;

    (void)snprintf(name.text, sizeof(name.text), "%s%s", key->hex, suffix);
    return name;
}

/* What changes when a file is replaced or written: not even root can set ctime. */
static int print_identity(const struct stat *status, char *text, size_t size)
{
    return snprintf(
        text, size, "device %ju inode %ju size %jd modified %jd.%09ld changed %jd.%09ld",
        (uintmax_t)status->st_dev, (uintmax_t)status->st_ino, (intmax_t)status->st_size,
        (intmax_t)status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
        (intmax_t)status->st_ctim.tv_sec, status->st_ctim.tv_nsec);
}

/* ---- seals */

struct seal {
    char identity[IDENTITY_BYTES]; /* "" if it cannot be told: then nothing equals it */
    char digest[CACHE_DIGEST_HEX_BYTES];
};

static void seal_identity(const struct stat *status, char identity[IDENTITY_BYTES])
{
    CLEANUP_FD int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    char boot[BOOT_ID_CHARS + 1] = "";
    int used;

    identity[0] = '\0';
    if (fd < 0 || fd_read_at(fd, 0, boot, BOOT_ID_CHARS) < 0)
        return;
    used = snprintf(identity, IDENTITY_BYTES, "husk cache seal 1: boot %s ", boot);
    (void)print_identity(status, identity + used, IDENTITY_BYTES - (size_t)used);
}

static bool seal_read(const struct cache_directory *directory,
                      const struct cache_key *key, struct seal *seal)
{
    struct cache_name name = cache_name_of(key, CACHE_SEAL);
    CLEANUP_FD int fd =
        openat(directory->fd, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[SEAL_BYTES + 1] = "";
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    char *line_end = got <= 0 ? NULL : strchr(text, '\n');

    if (line_end == NULL || line_end - text >= IDENTITY_BYTES ||
        strlen(line_end + 1) != CACHE_DIGEST_HEX_BYTES || text[got - 1] != '\n')
        return false;
    *line_end = '\0';
    memcpy(seal->identity, text, (size_t)(line_end - text) + 1);
    memcpy(seal->digest, line_end + 1, CACHE_DIGEST_HEX_BYTES - 1);
    seal->digest[CACHE_DIGEST_HEX_BYTES - 1] = '\0';
    return true;
}

/* Writes the seal of the entry `fd`, under the key's lock. A torn seal after a crash has
 * no second line or another boot's first. */
static int seal_write(const struct cache_directory *directory,
                      const struct cache_key *key, int fd, const char *digest_hex,
                      struct error *err)
{
    struct cache_name temporary = cache_name_of(key, CACHE_TEMPORARY);
    struct cache_name name = cache_name_of(key, CACHE_SEAL);
    CLEANUP_FD int seal_fd = -1;
    char identity[IDENTITY_BYTES];
    char text[SEAL_BYTES + 1];
    struct stat status;
    int length;

    if (fstat(fd, &status) < 0)
        return error_set_errno(err, errno, "cannot stat %s.elf", key->hex);
    seal_identity(&status, identity);
    length = snprintf(text, sizeof(text), "%s\n%s\n", identity, digest_hex);
    (void)unlinkat(directory->fd, temporary.text, 0);
    seal_fd = openat(directory->fd, temporary.text,
                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (seal_fd < 0 || fd_write_all(seal_fd, text, (size_t)length) < 0 ||
        renameat(directory->fd, temporary.text, directory->fd, name.text) < 0) {
        error_set_errno(err, errno, "cannot write %s/%s", directory->path, name.text);
        (void)unlinkat(directory->fd, temporary.text, 0);
        return err->code;
    }
    return 0;
}

static void note_use(const struct cache_directory *directory, const struct cache_key *key)
{
    struct cache_name name = cache_name_of(key, CACHE_SEAL);

    /* On the seal and not on the entry, whose ctime it would change. A cache that cannot
     * be written still serves. */
    (void)utimensat(directory->fd, name.text, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- entries */

static int hash_content(int fd, uint64_t size_bytes, char hex[CACHE_DIGEST_HEX_BYTES])
{
    struct sha256_ctx hash;
    struct cache_key digest;
    uint8_t chunk[64 * KIB];

    sha256_init(&hash);
    for (uint64_t offset = 0; offset < size_bytes;) {
        size_t part = (size_t)min_u64(sizeof(chunk), size_bytes - offset);
        int status = fd_read_at(fd, offset, chunk, part);

        if (status < 0)
            return status;
        sha256_update(&hash, part, chunk);
        offset += part;
    }
    sha256_digest(&hash, sizeof(digest.digest), digest.digest);
    cache_key_spell(&digest);
    memcpy(hex, digest.hex, sizeof(digest.hex));
    return 0;
}

/* Seals again what proved good, unless somebody else is busy with it or the cache cannot
 * be written; the next start then hashes again. */
static void renew_seal(const struct cache_directory *directory,
                       const struct cache_key *key, int fd, const char *digest_hex)
{
    CLEANUP_FD int lock_fd = -1;
    struct error err = ERROR_NONE;

    if (cache_lock(directory, key, 0, &lock_fd, &err) < 0 ||
        seal_write(directory, key, fd, digest_hex, &err) < 0)
        log_debug("seal not renewed: %s", err.text);
}

/* NULL if the file behind `fd` is what was sealed, else what is wrong with it. */
static const char *verify(const struct cache_directory *directory,
                          const struct cache_key *key, int fd, const struct stat *status)
{
    char identity[IDENTITY_BYTES];
    char digest[CACHE_DIGEST_HEX_BYTES];
    uint64_t start_ns;
    struct seal seal;

    if (!S_ISREG(status->st_mode))
        return "it is no regular file";
    if (!seal_read(directory, key, &seal))
        return "it has no seal";
    seal_identity(status, identity);
    if (identity[0] != '\0' && strcmp(identity, seal.identity) == 0)
        return NULL;
    start_ns = clock_monotonic_ns();
    if (hash_content(fd, (uint64_t)status->st_size, digest) < 0)
        return "it cannot be read";
    if (strcmp(digest, seal.digest) != 0)
        return "its content has changed";
    log_info("cache: %s.elf verified in %" PRIu64 " ms", key->hex,
             (clock_monotonic_ns() - start_ns) / NS_PER_MS);
    renew_seal(directory, key, fd, digest);
    return NULL;
}

enum cache_state cache_entry_open(const struct cache_directory *directory,
                                  const struct cache_key *key, int *fd,
                                  uint64_t *size_bytes, const char **why)
{
    struct cache_name name = cache_name_of(key, CACHE_ELF);
    /* A FIFO must not block us; a link may lead out of what is checked. */
    CLEANUP_FD int opened =
        openat(directory->fd, name.text, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (opened < 0 && errno == ENOENT)
        return CACHE_ABSENT;
    if (opened < 0 || fstat(opened, &status) < 0) {
        *why = "it cannot be opened";
        return CACHE_DAMAGED;
    }
    *why = verify(directory, key, opened, &status);
    if (*why != NULL)
        return CACHE_DAMAGED;
    note_use(directory, key);
    *size_bytes = (uint64_t)status.st_size;
    *fd = fd_take(&opened);
    return CACHE_GOOD;
}

int cache_entry_publish(const struct cache_directory *directory,
                        const struct cache_key *key,
                        const uint8_t digest[SHA256_DIGEST_SIZE], struct error *err)
{
    struct cache_name temporary = cache_name_of(key, CACHE_TEMPORARY);
    struct cache_name name = cache_name_of(key, CACHE_ELF);
    CLEANUP_FD int fd =
        openat(directory->fd, temporary.text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct cache_key content;

    memcpy(content.digest, digest, sizeof(content.digest));
    cache_key_spell(&content);
    if (fd < 0 || renameat(directory->fd, temporary.text, directory->fd, name.text) < 0)
        return error_set_errno(err, errno, "cannot put %s/%s in place", directory->path,
                               name.text);
    /* Only now: rename has changed the file's ctime. */
    return seal_write(directory, key, fd, content.hex, err);
}

/* ---- the memory of sources: fixed records, found by the first byte of the identity, so
 * that it never grows. A record that was overwritten costs a hash, no more. */

struct source_record {
    uint8_t source[SHA256_DIGEST_SIZE];
    uint8_t key[SHA256_DIGEST_SIZE];
};

/* A file that is written again within one tick of the clock keeps its times. So nothing
 * is remembered about a file until its last change is this long ago. */
#define SETTLED_SECONDS 2

static bool is_settled(const struct stat *status)
{
    time_t changed = status->st_ctim.tv_sec > status->st_mtim.tv_sec
                         ? status->st_ctim.tv_sec
                         : status->st_mtim.tv_sec;

    return time(NULL) - changed > SETTLED_SECONDS;
}

bool cache_source_identify(const struct source *source,
                           const struct image_payload *payload,
                           struct cache_source *identity)
{
    struct sha256_ctx hash;
    struct stat status;
    char text[IDENTITY_BYTES];
    int length;

    /* Unnamed memory files come and go: not worth a record. */
    if (source->fd < 0 || fstat(source->fd, &status) < 0 || !S_ISREG(status.st_mode) ||
        status.st_nlink == 0)
        return false;
    length = print_identity(&status, text, sizeof(text));
    length += snprintf(text + length, sizeof(text) - (size_t)length,
                       " payload %" PRIu64 "+%" PRIu64 " %s", payload->offset,
                       payload->size_bytes, image_codec_name(payload->codec));
    sha256_init(&hash);
    sha256_update(&hash, (size_t)length, (const uint8_t *)text);
    sha256_digest(&hash, sizeof(identity->digest), identity->digest);
    identity->settled = is_settled(&status);
    return true;
}

static uint64_t record_offset(const struct cache_source *identity)
{
    return identity->digest[0] * sizeof(struct source_record);
}

bool cache_source_recall(const struct cache_directory *directory,
                         const struct cache_source *identity, struct cache_key *key)
{
    CLEANUP_FD int fd =
        openat(directory->fd, "sources", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct source_record record;

    if (fd < 0 || fd_read_at(fd, record_offset(identity), &record, sizeof(record)) < 0 ||
        memcmp(record.source, identity->digest, sizeof(record.source)) != 0)
        return false;
    memcpy(key->digest, record.key, sizeof(key->digest));
    cache_key_spell(key);
    return true;
}

void cache_source_remember(const struct cache_directory *directory,
                           const struct cache_source *identity,
                           const struct cache_key *key)
{
    CLEANUP_FD int fd = -1;
    struct source_record record;

    if (!identity->settled)
        return;
    fd = openat(directory->fd, "sources",
                O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    memcpy(record.source, identity->digest, sizeof(record.source));
    memcpy(record.key, key->digest, sizeof(record.key));
    /* One aligned record is one write: no reader sees half of it. */
    if (fd < 0 || pwrite(fd, &record, sizeof(record), (off_t)record_offset(identity)) !=
                      (ssize_t)sizeof(record))
        log_debug("cache: source not remembered: %s", strerror(errno));
}
