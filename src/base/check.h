/* SPDX-License-Identifier: Apache-2.0 */
/* CHECK(cond): a promise husk makes to itself. On in all builds; a broken one is a bug.
 */
#ifndef HUSK_BASE_CHECK_H
#define HUSK_BASE_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            (void)fprintf(stderr, "husk: bug: %s:%d: '%s' does not hold\n", __FILE__,    \
                          __LINE__, #condition);                                         \
            abort();                                                                     \
        }                                                                                \
    } while (0)

#endif
