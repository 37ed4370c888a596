/* SPDX-License-Identifier: Apache-2.0 */
/* A local APIC that never interrupts and has no registers, for tests of a processor by
 * itself. */
#ifndef HUSK_TESTS_SILENT_APIC_H
#define HUSK_TESTS_SILENT_APIC_H

#include "x86/irq_source.h"

/* All functions set; a test replaces those it cares for. They do not look at `context`.
 */
struct irq_source silent_apic(void *context);

#endif
