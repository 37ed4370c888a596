/* SPDX-License-Identifier: Apache-2.0 */
/* Which known word somebody may have meant who typed another. */
#include "config/config.h"

#include <string.h>

#include "base/bytes.h"

/* No name is longer; a longer word is near to none. */
#define WORD_MAXIMUM 48

/* A word of this length and more that begins another counts as one slip away from it. */
#define PREFIX_MINIMUM 3

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many slips (a letter too much, too few, wrong, or two swapped) lead from one word
 * to the other: optimal string alignment, one row of the matrix a letter of `from`. */
static size_t count_slips(const char *from, const char *to)
{
    size_t rows[3][WORD_MAXIMUM + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    size_t from_length = strlen(from);
    size_t to_length = strlen(to);

    memset(rows, 0, sizeof(rows));
    for (size_t column = 0; column <= to_length; column++)
        row[column] = column;
    for (size_t i = 1; i <= from_length; i++) {
        size_t *oldest = before;

        before = above;
        above = row;
        row = oldest;
        row[0] = i;
        for (size_t j = 1; j <= to_length; j++) {
            size_t wrong = from[i - 1] != to[j - 1] ? 1 : 0;

            row[j] = smaller(above[j - 1] + wrong, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
                row[j] = smaller(row[j], before[j - 2] + 1);
        }
    }
    return row[to_length];
}

const char *config_nearest(const char *word, const char *const *candidates)
{
    size_t length = strlen(word);
    size_t least = length / 3 + 1; /* up to a third of the letters may be wrong */
    const char *nearest = NULL;

    if (length > WORD_MAXIMUM)
        return NULL;
    for (; *candidates != NULL; candidates++) {
        size_t slips;

        if (strlen(*candidates) > WORD_MAXIMUM)
            continue;
        slips = count_slips(word, *candidates);
        if (length >= PREFIX_MINIMUM && strncmp(word, *candidates, length) == 0)
            slips = smaller(slips, 1);
        if (slips < least) {
            least = slips;
            nearest = *candidates;
        }
    }
    return nearest;
}
