/* SPDX-License-Identifier: Apache-2.0 */
/* Whose processor is modelled: the host's maker, so that guests pick what is tested
 * there. */
#ifndef HUSK_SOFT_VENDOR_PRIVATE_H
#define HUSK_SOFT_VENDOR_PRIVATE_H

#include <stdbool.h>

/* AMD's (and Hygon's) ways; all others are like Intel's. */
bool vendor_is_amd(void);

#endif
