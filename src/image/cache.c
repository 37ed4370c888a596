/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacked kernels in files that any number of guests map: hit, fill, rebuild or bypass.
 *
 * A distribution's kernel is compressed, so nothing of it could be mapped. It is unpacked
 * once and kept under the hash of what was unpacked. A cache that cannot be used for
 * whatever reason never fails a start: the kernel is then unpacked into a memory file.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "image/cache_private.h"

/* No kernel is near that; a decompression bomb should not fill the host. */
#define UNPACKED_LIMIT_BYTES GIB

/* Unpacking takes a second or two on a slow host. */
#define LOCK_TIMEOUT_MS 30000

/* What the key is a hash of begins with this; a change of the entries' format changes it.
 */
static const char key_domain[] = "husk unpacked kernel 1";

static const char *const outcome_texts[] = {
    [IMAGE_CACHE_HIT] = "found in the image cache",
    [IMAGE_CACHE_FILLED] = "put into the image cache",
    [IMAGE_CACHE_REBUILT] = "image cache entry rebuilt",
    [IMAGE_CACHE_BYPASSED] = "image cache not used",
};

const char *image_cache_outcome_text(enum image_cache_outcome outcome)
{
    return outcome_texts[outcome];
}

struct request {
    const struct source *source;
    const struct image_payload *payload;
    struct image_cache_result *result;
    struct cache_directory directory;
    uint64_t limit_bytes;
    struct cache_source identity;
    bool has_identity;
};

/* ---- unpacking */

struct output {
    int fd;
    bool failed;  /* the output's fault, not the payload's */
    bool hashing; /* keep `hash` */
    struct sha256_ctx hash;
    uint64_t size_bytes;
};

static int write_output(void *context, const void *bytes, size_t size, struct error *err)
{
    struct output *output = context;
    int status = fd_write_all(output->fd, bytes, size);

    if (status < 0) {
        output->failed = true;
        return error_set_errno(err, status, "cannot write the unpacked kernel");
    }
    if (output->hashing)
        sha256_update(&output->hash, size, bytes);
    output->size_bytes += size;
    return 0;
}

/* Takes the disk space in advance where the size is known: a full disk should show before
 * the work and not in the middle of it. */
static int reserve_space(struct output *output, uint64_t size_bytes, struct error *err)
{
    if (size_bytes == 0 || size_bytes > UNPACKED_LIMIT_BYTES ||
        fallocate(output->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size_bytes) == 0 ||
        errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR)
        return 0;
    output->failed = true;
    return error_set_errno(err, errno, "no room for %" PRIu64 " bytes", size_bytes);
}

static int unpack(const struct request *request, struct output *output, struct error *err)
{
    const struct image_payload *payload = request->payload;
    uint64_t start_ns = clock_monotonic_ns();
    int status;

    status = reserve_space(output, payload->unpacked_bytes, err);
    if (status < 0)
        return status;
    status = image_unpack(request->source, payload->offset, payload->size_bytes,
                          payload->codec, payload->unpacked_bytes, UNPACKED_LIMIT_BYTES,
                          write_output, output, err);
    if (status < 0)
        return status;
    log_info("kernel unpacked (%s, %" PRIu64 " bytes) in %" PRIu64 " ms",
             image_codec_name(payload->codec), output->size_bytes,
             (clock_monotonic_ns() - start_ns) / NS_PER_MS);
    return 0;
}

static int unpack_to_memory_file(const struct request *request, struct error *err)
{
    static const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    CLEANUP_FD int fd = memfd_create("husk-kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct output output = {.fd = fd};

    if (fd < 0)
        return error_set_errno(err, errno,
                               "cannot create a memory file for the unpacked kernel");
    if (unpack(request, &output, err) < 0)
        return err->code;
    if (fcntl(fd, F_ADD_SEALS, seals) < 0)
        return error_set_errno(err, errno, "cannot seal the unpacked kernel");
    request->result->outcome = IMAGE_CACHE_BYPASSED;
    request->result->size_bytes = output.size_bytes;
    request->result->fd = fd_take(&fd);
    return 0;
}

/* ---- the way through the cache. Two kinds of failure: `err` is about the payload and
 * ends the start, `bypass` is about the cache and says why it is not used. */

static int hash_payload(const struct request *request, struct cache_key *key,
                        struct error *err)
{
    const struct image_payload *payload = request->payload;
    uint8_t chunk[64 * KIB];
    uint8_t codec[4];
    struct sha256_ctx hash;

    sha256_init(&hash);
    sha256_update(&hash, sizeof(key_domain), (const uint8_t *)key_domain);
    store_le32(codec, (uint32_t)payload->codec);
    sha256_update(&hash, sizeof(codec), codec);
    for (uint64_t done = 0; done < payload->size_bytes;) {
        size_t part = (size_t)min_u64(sizeof(chunk), payload->size_bytes - done);
        int status =
            source_read(request->source, payload->offset + done, chunk, part, err);

        if (status < 0)
            return status;
        sha256_update(&hash, part, chunk);
        done += part;
    }
    sha256_digest(&hash, sizeof(key->digest), key->digest);
    cache_key_spell(key);
    return 0;
}

/* Takes an entry that is good into the result. */
static enum cache_state try_entry(const struct request *request,
                                  const struct cache_key *key, const char **why)
{
    struct image_cache_result *result = request->result;
    enum cache_state state =
        cache_entry_open(&request->directory, key, &result->fd, &result->size_bytes, why);
    int length;

    if (state != CACHE_GOOD)
        return state;
    result->outcome = IMAGE_CACHE_HIT;
    length = snprintf(result->path, sizeof(result->path), "%s/%s.elf",
                      request->directory.path, key->hex);
    CHECK(length > 0 && (size_t)length < sizeof(result->path));
    return state;
}

/* The file must not change between the hashing of its payload and the end of unpacking:
 * the entry would have another payload's name. */
static int check_unchanged(const struct request *request, struct error *err)
{
    struct cache_source now;

    if (!request->has_identity)
        return 0;
    if (!cache_source_identify(request->source, request->payload, &now) ||
        memcmp(now.digest, request->identity.digest, sizeof(now.digest)) != 0)
        return error_set(err, -EAGAIN, "changed while it was unpacked; start again");
    return 0;
}

/* Unpacks into KEY.tmp and makes it the entry. Under the key's lock. */
static int fill(const struct request *request, const struct cache_key *key,
                struct error *bypass, struct error *err)
{
    const struct cache_directory *directory = &request->directory;
    struct cache_name temporary = cache_name_of(key, CACHE_TEMPORARY);
    struct output output = {.hashing = true};
    uint8_t digest[SHA256_DIGEST_SIZE];
    CLEANUP_FD int fd = -1;

    (void)unlinkat(directory->fd, temporary.text, 0); /* of a crash */
    fd = openat(directory->fd, temporary.text,
                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (fd < 0)
        return error_set_errno(bypass, errno, "cannot write to %s", directory->path);
    output.fd = fd;
    sha256_init(&output.hash);
    if (unpack(request, &output, err) < 0 || check_unchanged(request, err) < 0)
        goto fail;
    sha256_digest(&output.hash, sizeof(digest), digest);
    if (fchmod(fd, 0444) < 0) { /* whatever the umask took away */
        error_set_errno(bypass, errno, "cannot write to %s", directory->path);
        goto fail;
    }
    if (cache_entry_publish(directory, key, digest, bypass) == 0)
        return 0;

fail:
    (void)unlinkat(directory->fd, temporary.text, 0);
    if (output.failed) {
        error_set(bypass, err->code, "cannot write to %s: %s", directory->path,
                  strerror(-err->code));
        *err = ERROR_NONE;
    }
    return err->code != 0 ? err->code : bypass->code;
}

static int fill_under_lock(const struct request *request, const struct cache_key *key,
                           struct error *bypass, struct error *err)
{
    struct image_cache_result *result = request->result;
    CLEANUP_FD int lock_fd = -1;
    enum cache_state before;
    const char *damage = NULL;
    const char *why;

    if (request->payload->unpacked_bytes > request->limit_bytes)
        return error_set(bypass, -EFBIG,
                         "the unpacked kernel of %" PRIu64 " bytes is larger than the "
                         "whole cache may be (%" PRIu64 ")",
                         request->payload->unpacked_bytes, request->limit_bytes);
    if (cache_lock(&request->directory, key, LOCK_TIMEOUT_MS, &lock_fd, bypass) < 0)
        return bypass->code;
    /* Whoever had the lock before us may have done the work. */
    before = try_entry(request, key, &damage);
    if (before == CACHE_GOOD)
        return 0;
    if (fill(request, key, bypass, err) < 0)
        return err->code != 0 ? err->code : bypass->code;
    if (try_entry(request, key, &why) != CACHE_GOOD)
        return error_set(bypass, -EIO, "the entry just written is not good: %s", why);
    result->outcome = IMAGE_CACHE_FILLED;
    if (before == CACHE_DAMAGED) {
        result->outcome = IMAGE_CACHE_REBUILT;
        (void)snprintf(result->reason, sizeof(result->reason),
                       "the cached kernel was damaged: %s", damage);
    }
    cache_trim(&request->directory, request->limit_bytes,
               cache_name_of(key, CACHE_ELF).text);
    return 0;
}

static int open_through_cache(struct request *request, struct error *bypass,
                              struct error *err)
{
    struct cache_key key;
    const char *why;
    int status;

    request->has_identity =
        cache_source_identify(request->source, request->payload, &request->identity);
    if (request->has_identity &&
        cache_source_recall(&request->directory, &request->identity, &key) &&
        try_entry(request, &key, &why) == CACHE_GOOD)
        return 0;
    status = hash_payload(request, &key, err);
    if (status < 0)
        return status;
    if (try_entry(request, &key, &why) != CACHE_GOOD) {
        status = fill_under_lock(request, &key, bypass, err);
        if (status < 0)
            return status;
    }
    if (request->has_identity)
        cache_source_remember(&request->directory, &request->identity, &key);
    return 0;
}

int image_cache_open(const struct source *source, const struct image_payload *payload,
                     const struct image_cache_options *options,
                     struct image_cache_result *result, struct error *err)
{
    struct request request = {
        .source = source,
        .payload = payload,
        .result = result,
        .directory = {.fd = -1},
        .limit_bytes =
            options->limit_bytes != 0 ? options->limit_bytes : IMAGE_CACHE_LIMIT,
    };
    struct error bypass = ERROR_NONE;

    *result = (struct image_cache_result){.fd = -1};
    if (options->disabled)
        error_set(&bypass, -ECANCELED, "--no-cache");
    else if (cache_directory_open(&request.directory, options, true, &bypass) == 0)
        (void)open_through_cache(&request, &bypass, err);
    cache_directory_close(&request.directory);
    if (err->code != 0 || bypass.code == 0)
        return err->code;
    (void)snprintf(result->reason, sizeof(result->reason), "%.*s",
                   (int)sizeof(result->reason) - 1, bypass.text);
    return unpack_to_memory_file(&request, err);
}
