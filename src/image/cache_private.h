/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the image cache share.
 *
 *   cache.c            the policy: hit, fill, rebuild, or bypass into a memory file
 *   cache_entry.c      one unpacked kernel and its seal; the memory of sources
 *   cache_library.c    common pages of guests of one kind
 *   cache_directory.c  the directory: whose it is, what is in it, what must go
 *
 * The directory holds, where KEY is 64 hexadecimal digits:
 *
 *   KEY.elf   an unpacked kernel, mode 0444. KEY is the SHA-256 of the codec and the
 *             compressed payload, so equal payloads of different files share one entry.
 *   KEY.seal  what the entry looked like when it was known to be good, see cache_entry.c.
 *             Its modification time is the entry's last use.
 *   KEY.tmp   being written by whoever holds KEY's lock; else left by a crash.
 *   KEY.pages common pages of guests, a sparse file, mode 0600. KEY is the SHA-256 of
 * what tells kinds of guests apart. memory/commons.h has the format. KEY.marks belongs to
 * KEY.pages. Its modification time is the library's last use. sources   which file had
 * which payload, so that a usual start hashes nothing. lock      empty; each key has a
 * byte in it to lock (fcntl, open file description).
 *
 * Other names are not ours and are never touched.
 */
#ifndef HUSK_IMAGE_CACHE_PRIVATE_H
#define HUSK_IMAGE_CACHE_PRIVATE_H

#include "image/image.h"

#include <nettle/sha2.h>
#include <sys/stat.h>

#define CACHE_DIGEST_HEX_BYTES (2 * SHA256_DIGEST_SIZE + 1)

struct cache_key {
    uint8_t digest[SHA256_DIGEST_SIZE];
    char hex[CACHE_DIGEST_HEX_BYTES];
};

/* Fills in `hex` from the digest. */
void cache_key_spell(struct cache_key *key);

#define CACHE_NAME_BYTES (CACHE_DIGEST_HEX_BYTES + 8)
struct cache_name {
    char text[CACHE_NAME_BYTES];
};
/* What stands behind KEY. */
#define CACHE_ELF ".elf"
#define CACHE_SEAL ".seal"
#define CACHE_TEMPORARY ".tmp"
#define CACHE_PAGES ".pages"
#define CACHE_MARKS ".marks"

/* KEY with one of these behind it. */
struct cache_name cache_name_of(const struct cache_key *key, const char *suffix);

/* ---- cache_directory.c */

struct cache_directory {
    int fd;
    char path[4096 - CACHE_NAME_BYTES]; /* the path of an entry fits the result's */
};

/* Opens the directory, and creates it (mode 0700) if told to. It must be our own, and
 * nobody else's to write. -ENOENT: it does not exist. */
int cache_directory_open(struct cache_directory *directory,
                         const struct image_cache_options *options, bool create,
                         struct error *err) MUST_CHECK;
void cache_directory_close(struct cache_directory *directory);

/* Locks `key` for filling; the lock ends with fd_close(lock_fd), or the process. Waits up
 * to `timeout_ms`; -ETIMEDOUT if somebody else holds it until then. */
int cache_lock(const struct cache_directory *directory, const struct cache_key *key,
               uint32_t timeout_ms, int *lock_fd, struct error *err) MUST_CHECK;

/* Removes the entries that were not used for longest until the rest has at most
 * `limit_bytes`, but never the one named `keep`; and what crashed fills left behind. */
void cache_trim(const struct cache_directory *directory, uint64_t limit_bytes,
                const char *keep);

/* ---- cache_entry.c */

enum cache_state {
    CACHE_ABSENT,
    CACHE_GOOD,    /* looks as it did when it was sealed, or has the same content */
    CACHE_DAMAGED, /* exists, and must be built again */
};

/* Looks `key` up. GOOD: *fd is open for reading. DAMAGED: *why is a clause like "its
 * content has changed". */
enum cache_state cache_entry_open(const struct cache_directory *directory,
                                  const struct cache_key *key, int *fd,
                                  uint64_t *size_bytes, const char **why);

/* Makes KEY.tmp, whose content has this digest, the entry. Under the key's lock. */
int cache_entry_publish(const struct cache_directory *directory,
                        const struct cache_key *key,
                        const uint8_t digest[SHA256_DIGEST_SIZE],
                        struct error *err) MUST_CHECK;

/* A file on disk as it is now; false for what is none (memory, memory files). */
struct cache_source {
    uint8_t digest[SHA256_DIGEST_SIZE]; /* of its identity and the payload's place */
    bool settled; /* its last change is long enough ago that the next one will show */
};
bool cache_source_identify(const struct source *source,
                           const struct image_payload *payload,
                           struct cache_source *identity);
bool cache_source_recall(const struct cache_directory *directory,
                         const struct cache_source *identity, struct cache_key *key);
void cache_source_remember(const struct cache_directory *directory,
                           const struct cache_source *identity,
                           const struct cache_key *key);

#endif
