/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the cache in which guests of one kind find the pages they have in common; see
 * image.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/cache_private.h"

static struct cache_key key_of(const void *identity, size_t size)
{
    struct cache_key key;
    struct sha256_ctx context;

    sha256_init(&context);
    sha256_update(&context, size, identity);
    sha256_digest(&context, sizeof(key.digest), key.digest);
    cache_key_spell(&key);
    return key;
}

static int open_file(const struct cache_directory *directory, struct cache_name name,
                     int *fd, struct error *err)
{
    *fd =
        openat(directory->fd, name.text, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (*fd < 0)
        return error_set_errno(err, errno, "cannot open %s/%s", directory->path,
                               name.text);
    return 0;
}

int image_cache_library_open(const struct image_cache_options *options,
                             const void *identity, size_t identity_bytes,
                             struct image_cache_library *library, struct error *err)
{
    struct cache_key key = key_of(identity, identity_bytes);
    struct cache_name pages = cache_name_of(&key, CACHE_PAGES);
    struct cache_directory directory;

    *library = (struct image_cache_library){.pages_fd = -1, .marks_fd = -1};
    if (options->disabled)
        return error_set(err, -ENOENT, "the cache is switched off");
    if (cache_directory_open(&directory, options, true, err) < 0)
        return err->code;
    (void)snprintf(library->path, sizeof(library->path), "%s/%s", directory.path,
                   pages.text);
    if (open_file(&directory, pages, &library->pages_fd, err) == 0 &&
        open_file(&directory, cache_name_of(&key, CACHE_MARKS), &library->marks_fd,
                  err) == 0) {
        (void)futimens(library->marks_fd, NULL); /* its last use */
        cache_trim(&directory,
                   options->limit_bytes != 0 ? options->limit_bytes : IMAGE_CACHE_LIMIT,
                   pages.text);
    }
    cache_directory_close(&directory);
    if (err->code < 0)
        image_cache_library_close(library);
    return err->code;
}

void image_cache_library_close(struct image_cache_library *library)
{
    fd_close(&library->pages_fd);
    fd_close(&library->marks_fd);
}
