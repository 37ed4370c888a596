/* SPDX-License-Identifier: Apache-2.0 */
/* What pci_function.c and pci_msix.c know of each other. All with the lock held. */
#ifndef HUSK_DEVICE_PCI_FUNCTION_PRIVATE_H
#define HUSK_DEVICE_PCI_FUNCTION_PRIVATE_H

#include "device/pci_function.h"

bool pci_function_may_access(const struct pci_function *function);
bool pci_msix_is_enabled(const struct pci_function *function);

/* Something that held messages back has changed: sends what may go now. */
void pci_msix_send_pending(struct pci_function *function);

void pci_msix_reset(struct pci_function *function);

#endif
