/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: a compressed stream, its codec told by its first bytes as in a bzImage. */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/check.h"
#include "image/image.h"

#define LIMIT_BYTES (4 * MIB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count(void *context, const void *bytes, size_t size, struct error *err)
{
    uint64_t *total = context;

    (void)bytes;
    (void)err;
    *total += size;
    CHECK(*total <= LIMIT_BYTES);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = source_from_memory(data, size);
    enum image_codec codec = image_codec_detect(data, size);
    struct error err = ERROR_NONE;
    uint64_t total = 0;
    int result =
        image_unpack(&source, 0, size, codec, 0, LIMIT_BYTES, count, &total, &err);

    CHECK((result == 0) == (err.text[0] == '\0'));
    return 0;
}
