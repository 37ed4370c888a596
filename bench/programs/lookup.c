/* SPDX-License-Identifier: Apache-2.0 */
/* A table of words: hashing byte by byte, chains, strcmp. */
#include <stdio.h>
#include <string.h>

#include "programs.h"

#define WORDS 20000
#define WORD_BYTES 16
#define BUCKETS 8192
#define ROUNDS 25

struct word {
    char text[WORD_BYTES];
    struct word *next;
    uint64_t count;
};

static struct word words[WORDS];
static struct word *buckets[BUCKETS];
static char asked[WORDS][WORD_BYTES];

static struct word **bucket_of(const char *text)
{
    return &buckets[checksum(text, strlen(text)) % BUCKETS];
}

void prepare_lookup(void)
{
    uint64_t state = RANDOM_SEED;

    for (size_t i = 0; i < WORDS; i++) {
        struct word **bucket;

        (void)snprintf(words[i].text, WORD_BYTES, "%.12llx",
                       (unsigned long long)random_next(&state) >> 16);
        bucket = bucket_of(words[i].text);
        words[i].next = *bucket;
        *bucket = &words[i];
        memcpy(asked[i], words[i].text, WORD_BYTES);
    }
    /* Every tenth is asked for in vain. */
    for (size_t i = 0; i < WORDS; i += 10)
        asked[i][0] = 'z';
}

static struct word *find(const char *text)
{
    for (struct word *word = *bucket_of(text); word != NULL; word = word->next)
        if (strcmp(word->text, text) == 0)
            return word;
    return NULL;
}

uint64_t run_lookup(void)
{
    uint64_t found = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < WORDS; i++) {
            struct word *word = find(asked[i]);

            if (word != NULL)
                found += ++word->count;
        }
    }
    return found;
}
