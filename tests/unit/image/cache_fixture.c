/* SPDX-License-Identifier: Apache-2.0 */
/* See cache_fixture.h. */
#include "cache_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fd.h"

/* Noise, so that the packed kernel is not much smaller; the seed makes another one. */
void pack_kernel(struct fixture *fixture, uint32_t seed)
{
    z_stream stream = {.next_in = fixture->kernel,
                       .avail_in = KERNEL_BYTES,
                       .next_out = fixture->packed,
                       .avail_out = sizeof(fixture->packed)};
    uint32_t value = seed;

    for (size_t i = 0; i < KERNEL_BYTES; i++) {
        value = value * 1664525 + 1013904223; /* Numerical Recipes' generator */
        fixture->kernel[i] = (uint8_t)(value >> 24);
    }
    assert_int_equal(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    fixture->source = source_from_memory(fixture->packed, stream.total_out);
    fixture->payload = (struct image_payload){.size_bytes = stream.total_out,
                                              .codec = IMAGE_CODEC_GZIP,
                                              .unpacked_bytes = KERNEL_BYTES};
    assert_int_equal(deflateEnd(&stream), Z_OK);
}

int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_non_null(fixture);
    (void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/husk-cache-XXXXXX");
    assert_non_null(mkdtemp(fixture->root));
    (void)snprintf(fixture->directory, sizeof(fixture->directory), "%s/a/b",
                   fixture->root);
    fixture->options.directory = fixture->directory;
    fixture->result.fd = -1;
    pack_kernel(fixture, 1);
    *state = fixture;
    return 0;
}

static int remove_path(const char *path, const struct stat *status, int type,
                       struct FTW *position)
{
    (void)status;
    (void)type;
    (void)position;
    return remove(path);
}

int tear_down(void **state)
{
    struct fixture *fixture = *state;

    fd_close(&fixture->result.fd);
    (void)nftw(fixture->root, remove_path, 8, FTW_DEPTH | FTW_PHYS);
    free(fixture);
    return 0;
}

bool content_is_right(const struct fixture *fixture)
{
    static uint8_t content[KERNEL_BYTES];

    return fixture->result.size_bytes == KERNEL_BYTES &&
           fd_read_at(fixture->result.fd, 0, content, KERNEL_BYTES) == 0 &&
           memcmp(content, fixture->kernel, KERNEL_BYTES) == 0;
}

void open_expecting(struct fixture *fixture, enum image_cache_outcome outcome)
{
    struct error err = ERROR_NONE;

    fd_close(&fixture->result.fd);
    if (image_cache_open(&fixture->source, &fixture->payload, &fixture->options,
                         &fixture->result, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(fixture->result.outcome, outcome);
    assert_true(content_is_right(fixture));
    assert_int_equal(fixture->result.path[0] == '\0', outcome == IMAGE_CACHE_BYPASSED);
}

void open_expecting_reason(struct fixture *fixture, enum image_cache_outcome outcome,
                           const char *reason)
{
    open_expecting(fixture, outcome);
    assert_string_equal(fixture->result.reason, reason);
}

size_t count_names(const struct fixture *fixture, const char *ending)
{
    DIR *stream = opendir(fixture->directory);
    const struct dirent *found;
    size_t count = 0;

    assert_non_null(stream);
    while ((found = readdir(stream)) != NULL) {
        size_t length = strlen(found->d_name);

        if (length >= strlen(ending) &&
            strcmp(found->d_name + length - strlen(ending), ending) == 0)
            count++;
    }
    (void)closedir(stream);
    return count;
}

const char *sibling(const struct fixture *fixture, const char *suffix)
{
    static char path[4200];

    (void)snprintf(path, sizeof(path), "%.*s%s",
                   (int)strlen(fixture->result.path) - (int)strlen(".elf"),
                   fixture->result.path, suffix);
    return path;
}

void write_file(const char *path, const char *text)
{
    CLEANUP_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}
