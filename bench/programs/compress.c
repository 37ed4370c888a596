/* SPDX-License-Identifier: Apache-2.0 */
/* Packing text byte by byte: each place is looked up by its next four bytes, and what was
 * there before becomes a distance and a length. (The idea is Lempel and Ziv's of 1977.)
 */
#include <string.h>

#include "programs.h"

#define TEXT_BYTES (1 << 20)
#define TABLE_BITS 14
#define LEAST_MATCH 4
#define GREATEST_MATCH 255
#define GREATEST_DISTANCE 65535
#define ROUNDS 12

static uint8_t text[TEXT_BYTES + GREATEST_MATCH];
static uint8_t packed[2 * TEXT_BYTES];
static uint32_t last_seen[1 << TABLE_BITS]; /* a place in the text, plus one; 0: none */

/* Words of a small language, so that there is something to find. */
void prepare_compress(void)
{
    static const char *const words[] = {
        "the ", "guest ",  "kernel ", "maps ",  "a ",        "page ",
        "of ",  "memory ", "and ",    "never ", "copies ",   "what ",
        "it ",  "can ",    "share ",  "with ",  "others.\n",
    };
    uint64_t state = RANDOM_SEED;
    size_t used = 0;

    while (used < TEXT_BYTES) {
        const char *word = words[random_next(&state) % (sizeof(words) / sizeof(*words))];

        memcpy(text + used, word, strlen(word));
        used += strlen(word);
    }
}

static uint32_t slot_of(const uint8_t *at)
{
    uint32_t next_four;

    memcpy(&next_four, at, sizeof(next_four));
    /* Knuth, "The Art of Computer Programming", 6.4: 2^32 divided by the golden ratio. */
    return next_four * 2654435769u >> (32 - TABLE_BITS);
}

static size_t match_length(const uint8_t *left, const uint8_t *right)
{
    size_t length = 0;

    while (length < GREATEST_MATCH && left[length] == right[length])
        length++;
    return length;
}

static size_t pack(void)
{
    size_t out = 0;

    memset(last_seen, 0, sizeof(last_seen));
    for (uint32_t at = 0; at < TEXT_BYTES;) {
        uint32_t *slot = &last_seen[slot_of(text + at)];
        uint32_t before = *slot;
        size_t length = 0;

        *slot = at + 1;
        if (before != 0 && at + 1 - before <= GREATEST_DISTANCE)
            length = match_length(text + before - 1, text + at);
        if (length < LEAST_MATCH) {
            packed[out++] = 0;
            packed[out++] = text[at++];
            continue;
        }
        packed[out++] = (uint8_t)length;
        packed[out++] = (uint8_t)(at + 1 - before);
        packed[out++] = (uint8_t)((at + 1 - before) >> 8);
        at += (uint32_t)length;
    }
    return out;
}

uint64_t run_compress(void)
{
    uint64_t sum = 0;

    for (int round = 0; round < ROUNDS; round++)
        sum += checksum(packed, pack());
    return sum;
}
