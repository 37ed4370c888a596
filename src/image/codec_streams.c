/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs whose library unpacks a stream piece by piece. The libraries agree on the idea
 * (take input, give output, say when it ends); one pump drives them all.
 */
#include <bzlib.h>
#include <errno.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "image/compression_private.h"

#define INPUT_CHUNK_BYTES ((size_t)256 << 10)
#define OUTPUT_CHUNK_BYTES ((size_t)1 << 20)

/* The largest dictionary Linux's build asks for is 128 MiB (scripts/xz_wrap.sh). */
#define LZMA_MEMORY_LIMIT (256 * MIB)

/* What one step may take and fill. */
struct stream_window {
    uint8_t *input; /* not const: zlib and bzip2 declare theirs so */
    size_t input_bytes;
    uint8_t *output;
    size_t output_bytes;
};

/* Moves the window behind what a step took and filled. */
static void window_advance(struct stream_window *window, size_t input_left,
                           size_t output_left)
{
    window->input += window->input_bytes - input_left;
    window->input_bytes = input_left;
    window->output += window->output_bytes - output_left;
    window->output_bytes = output_left;
}

union stream_state {
    z_stream zlib;
    bz_stream bzip2;
    lzma_stream lzma;
    ZSTD_DStream *zstd;
    LZ4F_dctx *lz4;
};

/* Each returns NULL, or what is wrong in words. */
struct stream_codec {
    const char *(*start)(union stream_state *state);
    const char *(*step)(union stream_state *state, struct stream_window *window,
                        bool *ended);
    void (*finish)(union stream_state *state);
};

static const char no_memory[] = "out of memory";
static const char corrupt[] = "corrupt data";

/* ---- gzip (zlib) */

static const char *gzip_start(union stream_state *state)
{
    state->zlib = (z_stream){.next_in = NULL};
    return inflateInit2(&state->zlib, MAX_WBITS + 16) == Z_OK /* + 16: gzip header */
               ? NULL
               : no_memory;
}

static const char *gzip_step(union stream_state *state, struct stream_window *window,
                             bool *ended)
{
    z_stream *zlib = &state->zlib;
    int result;

    zlib->next_in = window->input;
    zlib->avail_in = (uInt)window->input_bytes;
    zlib->next_out = window->output;
    zlib->avail_out = (uInt)window->output_bytes;
    result = inflate(zlib, Z_NO_FLUSH);
    window_advance(window, zlib->avail_in, zlib->avail_out);
    *ended = result == Z_STREAM_END;
    switch (result) {
    case Z_OK:
    case Z_STREAM_END:
    case Z_BUF_ERROR: /* could neither take nor give; the pump notices */
        return NULL;
    case Z_MEM_ERROR:
        return no_memory;
    default:
        return zlib->msg == NULL ? corrupt : zlib->msg;
    }
}

static void gzip_finish(union stream_state *state)
{
    (void)inflateEnd(&state->zlib);
}

/* ---- bzip2 */

static const char *bzip2_start(union stream_state *state)
{
    state->bzip2 = (bz_stream){.next_in = NULL};
    return BZ2_bzDecompressInit(&state->bzip2, 0, 0) == BZ_OK ? NULL : no_memory;
}

static const char *bzip2_step(union stream_state *state, struct stream_window *window,
                              bool *ended)
{
    bz_stream *bzip2 = &state->bzip2;
    int result;

    bzip2->next_in = (char *)window->input;
    bzip2->avail_in = (unsigned int)window->input_bytes;
    bzip2->next_out = (char *)window->output;
    bzip2->avail_out = (unsigned int)window->output_bytes;
    result = BZ2_bzDecompress(bzip2);
    window_advance(window, bzip2->avail_in, bzip2->avail_out);
    *ended = result == BZ_STREAM_END;
    switch (result) {
    case BZ_OK:
    case BZ_STREAM_END:
        return NULL;
    case BZ_MEM_ERROR:
        return no_memory;
    default:
        return corrupt;
    }
}

static void bzip2_finish(union stream_state *state)
{
    (void)BZ2_bzDecompressEnd(&state->bzip2);
}

/* ---- lzma and xz (liblzma) */

static const char *lzma_problem(lzma_ret result)
{
    switch ((int)result) {
    case LZMA_OK:
    case LZMA_STREAM_END:
    case LZMA_BUF_ERROR: /* could neither take nor give; the pump notices */
        return NULL;
    case LZMA_MEM_ERROR:
        return no_memory;
    case LZMA_MEMLIMIT_ERROR:
        return "needs more than 256 MiB of memory";
    case LZMA_FORMAT_ERROR:
        return "unknown header";
    case LZMA_OPTIONS_ERROR:
        return "uses options that liblzma does not know";
    default:
        return corrupt;
    }
}

static const char *lzma_start(union stream_state *state)
{
    state->lzma = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_problem(lzma_alone_decoder(&state->lzma, LZMA_MEMORY_LIMIT));
}

/* Filters such as the x86 one that Linux's build adds are named in the stream. */
static const char *xz_start(union stream_state *state)
{
    state->lzma = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_problem(lzma_stream_decoder(&state->lzma, LZMA_MEMORY_LIMIT, 0));
}

static const char *lzma_step(union stream_state *state, struct stream_window *window,
                             bool *ended)
{
    lzma_stream *lzma = &state->lzma;
    lzma_ret result;

    lzma->next_in = window->input;
    lzma->avail_in = window->input_bytes;
    lzma->next_out = window->output;
    lzma->avail_out = window->output_bytes;
    result = lzma_code(lzma, LZMA_RUN);
    window_advance(window, lzma->avail_in, lzma->avail_out);
    *ended = result == LZMA_STREAM_END;
    return lzma_problem(result);
}

static void lzma_finish(union stream_state *state)
{
    lzma_end(&state->lzma);
}

/* ---- zstd; refuses windows above 128 MiB by itself (ZSTD_d_windowLogMax) */

static const char *zstd_start(union stream_state *state)
{
    state->zstd = ZSTD_createDStream();
    return state->zstd == NULL ? no_memory : NULL;
}

static const char *zstd_step(union stream_state *state, struct stream_window *window,
                             bool *ended)
{
    ZSTD_inBuffer input = {window->input, window->input_bytes, 0};
    ZSTD_outBuffer output = {window->output, window->output_bytes, 0};
    size_t result = ZSTD_decompressStream(state->zstd, &output, &input);

    window_advance(window, input.size - input.pos, output.size - output.pos);
    *ended = result == 0;
    return ZSTD_isError(result) ? ZSTD_getErrorName(result) : NULL;
}

static void zstd_finish(union stream_state *state)
{
    (void)ZSTD_freeDStream(state->zstd);
}

/* ---- lz4 frames; a block has at most 4 MiB */

static const char *lz4_start(union stream_state *state)
{
    return LZ4F_isError(LZ4F_createDecompressionContext(&state->lz4, LZ4F_VERSION))
               ? no_memory
               : NULL;
}

static const char *lz4_step(union stream_state *state, struct stream_window *window,
                            bool *ended)
{
    size_t taken_bytes = window->input_bytes;
    size_t given_bytes = window->output_bytes;
    size_t result = LZ4F_decompress(state->lz4, window->output, &given_bytes,
                                    window->input, &taken_bytes, NULL);

    window_advance(window, window->input_bytes - taken_bytes,
                   window->output_bytes - given_bytes);
    *ended = result == 0;
    return LZ4F_isError(result) ? LZ4F_getErrorName(result) : NULL;
}

static void lz4_finish(union stream_state *state)
{
    (void)LZ4F_freeDecompressionContext(state->lz4);
}

/* ---- the pump */

/* Where input and output chunks are held. */
struct stream_buffers {
    uint8_t *input;
    uint8_t *output;
};

static int refill(struct unpacking *unpacking, const struct stream_buffers *buffers,
                  struct stream_window *window, struct error *err)
{
    size_t size = min_u64(unpacking_left(unpacking), INPUT_CHUNK_BYTES);

    window->input = buffers->input;
    window->input_bytes = size;
    return unpacking_take(unpacking, buffers->input, size, err);
}

/* Steps until the stream ends. Input taken too early is given back, so that the position
 * is exactly behind the stream. */
static int pump(const struct stream_codec *codec, union stream_state *state,
                const struct stream_buffers *buffers, struct unpacking *unpacking,
                struct error *err)
{
    struct stream_window window = {.input = buffers->input};
    bool ended = false;

    while (!ended) {
        const char *problem;
        size_t output_bytes;
        bool stuck;
        int status = 0;

        if (window.input_bytes == 0)
            status = refill(unpacking, buffers, &window, err);
        if (status < 0)
            return status;
        stuck = window.input_bytes == 0;
        window.output = buffers->output;
        window.output_bytes = OUTPUT_CHUNK_BYTES;
        problem = codec->step(state, &window, &ended);
        if (problem != NULL)
            return unpacking_damaged(unpacking, unpacking->position - window.input_bytes,
                                     problem, err);
        output_bytes = OUTPUT_CHUNK_BYTES - window.output_bytes;
        if (stuck && output_bytes == 0 && !ended)
            return unpacking_truncated(unpacking, err);
        status = unpacking_emit(unpacking, buffers->output, output_bytes, err);
        if (status < 0)
            return status;
    }
    unpacking->position -= window.input_bytes;
    return 0;
}

static int run_codec(const struct stream_codec *codec,
                     const struct stream_buffers *buffers, struct unpacking *unpacking,
                     struct error *err)
{
    union stream_state state;
    const char *problem = codec->start(&state);
    int status;

    if (problem != NULL)
        return error_set(err, -ENOMEM, "cannot start unpacking %s: %s", unpacking->codec,
                         problem);
    status = pump(codec, &state, buffers, unpacking, err);
    codec->finish(&state);
    return status;
}

static int unpack_stream(const struct stream_codec *codec, struct unpacking *unpacking,
                         struct error *err)
{
    struct stream_buffers buffers = {
        .input = malloc(INPUT_CHUNK_BYTES),
        .output = malloc(OUTPUT_CHUNK_BYTES),
    };
    int status;

    if (buffers.input == NULL || buffers.output == NULL)
        status = error_set(err, -ENOMEM, "out of memory for unpacking");
    else
        status = run_codec(codec, &buffers, unpacking, err);
    free(buffers.input);
    free(buffers.output);
    return status;
}

int unpack_gzip(struct unpacking *unpacking, struct error *err)
{
    static const struct stream_codec gzip = {
        .start = gzip_start, .step = gzip_step, .finish = gzip_finish};

    return unpack_stream(&gzip, unpacking, err);
}

int unpack_bzip2(struct unpacking *unpacking, struct error *err)
{
    static const struct stream_codec bzip2 = {
        .start = bzip2_start, .step = bzip2_step, .finish = bzip2_finish};

    return unpack_stream(&bzip2, unpacking, err);
}

int unpack_lzma(struct unpacking *unpacking, struct error *err)
{
    static const struct stream_codec lzma = {
        .start = lzma_start, .step = lzma_step, .finish = lzma_finish};

    return unpack_stream(&lzma, unpacking, err);
}

int unpack_xz(struct unpacking *unpacking, struct error *err)
{
    static const struct stream_codec xz = {
        .start = xz_start, .step = lzma_step, .finish = lzma_finish};

    return unpack_stream(&xz, unpacking, err);
}

int unpack_zstd(struct unpacking *unpacking, struct error *err)
{
    static const struct stream_codec zstd = {
        .start = zstd_start, .step = zstd_step, .finish = zstd_finish};

    return unpack_stream(&zstd, unpacking, err);
}

int unpack_lz4_frame(struct unpacking *unpacking, struct error *err)
{
    static const struct stream_codec lz4 = {
        .start = lz4_start, .step = lz4_step, .finish = lz4_finish};

    return unpack_stream(&lz4, unpacking, err);
}
