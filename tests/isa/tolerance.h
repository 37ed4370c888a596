/* SPDX-License-Identifier: Apache-2.0 */
/* What processors do as they like. */
#ifndef HUSK_ISA_TOLERANCE_H
#define HUSK_ISA_TOLERANCE_H

#include "compare.h"

/* `instruction` is the one at work, or that has faulted. Gives the soft side's outcome
 * the host's values where both are right. True: so different that nothing can be
 * compared, but both are right. */
bool tolerate(const struct comparison *comparison);

#endif
