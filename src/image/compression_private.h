/* SPDX-License-Identifier: Apache-2.0 */
/* Between image_unpack (compression.c) and the codecs it calls (codec_*.c). */
#ifndef HUSK_IMAGE_COMPRESSION_PRIVATE_H
#define HUSK_IMAGE_COMPRESSION_PRIVATE_H

#include "image/image.h"

/* One call of image_unpack: where its input is and where its output goes. */
struct unpacking {
    const char *codec; /* name, for messages */
    const struct source *source;
    uint64_t position; /* next input byte, from the source's start */
    uint64_t end;      /* input ends before this byte */
    uint64_t output_bytes;
    uint64_t expected_bytes; /* 0: not known */
    uint64_t limit_bytes;
    image_sink *sink;
    void *context;
};

/* A codec takes input from `position` on and moves it behind the stream's last byte. */
typedef int unpack_function(struct unpacking *unpacking, struct error *err);

unpack_function unpack_gzip, unpack_bzip2, unpack_lzma, unpack_xz, unpack_zstd,
    unpack_lz4_frame;                   /* streams */
unpack_function unpack_lzo, unpack_lz4; /* blocks */

/* Input bytes not yet taken. */
uint64_t unpacking_left(const struct unpacking *unpacking);

/* Takes exactly `size` input bytes; fewer are a truncated stream. */
int unpacking_take(struct unpacking *unpacking, void *buffer, size_t size,
                   struct error *err) MUST_CHECK;

/* Passes unpacked bytes on, within the limits. */
int unpacking_emit(struct unpacking *unpacking, const void *bytes, size_t size,
                   struct error *err) MUST_CHECK;

/* For the two ways a stream can be bad; both return err->code. */
int unpacking_truncated(const struct unpacking *unpacking, struct error *err);
int unpacking_damaged(const struct unpacking *unpacking, uint64_t position,
                      const char *problem, struct error *err);

#endif
