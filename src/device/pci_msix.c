/* SPDX-License-Identifier: Apache-2.0 */
/* MSI-X of a PCI function (PCI Local Bus 3.0, 6.8.2): messages instead of a wire. */
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "device/pci_function_private.h"
#include "device/pci_registers_private.h"

#define MSIX_BAR_BYTES 4096
#define MSIX_PENDING_OFFSET 2048 /* the table comes first */
#define DWORD_BYTES 4

_Static_assert(PCI_MSIX_VECTORS * sizeof(struct pci_msix_entry) <= MSIX_PENDING_OFFSET,
               "table and pending bits do not overlap");
_Static_assert(PCI_MSIX_VECTORS <= 64, "pending bits are one word");

struct __attribute__((packed)) msix_capability { /* 6.8.2 */
    uint8_t id;
    uint8_t next;
    uint16_t control; /* bits 10..0: vectors less one */
    uint32_t table;   /* offset, and in bits 2..0 the BAR */
    uint32_t pending;
};

static uint16_t control(const struct pci_function *function)
{
    const struct pci_msix *msix = &function->msix;

    return msix->capability == 0
               ? 0
               : load_le16(function->config + msix->capability + PCI_MSIX_CONTROL);
}

bool pci_msix_is_enabled(const struct pci_function *function)
{
    return (control(function) & PCI_MSIX_CONTROL_ENABLE) != 0;
}

static bool may_send(const struct pci_function *function, unsigned vector)
{
    return pci_msix_is_enabled(function) && pci_function_may_access(function) &&
           !(control(function) & PCI_MSIX_CONTROL_MASK) &&
           !(function->msix.table[vector].control & PCI_MSIX_ENTRY_MASKED);
}

static void send(struct pci_function *function, unsigned vector)
{
    const struct pci_msix_entry *entry = &function->msix.table[vector];
    const struct pci_wires *wires = &function->bus->wires;

    wires->send_message(wires->context, function->msix.first_sender + vector,
                        (uint64_t)entry->address_high << 32 | entry->address_low,
                        entry->data);
}

void pci_msix_send_pending(struct pci_function *function)
{
    struct pci_msix *msix = &function->msix;

    if (!pci_msix_is_enabled(function))
        msix->pending = 0; /* the device starts anew when it is switched on again */
    for (unsigned vector = 0; vector < msix->vector_count; vector++) {
        uint64_t bit = UINT64_C(1) << vector;

        if ((msix->pending & bit) && may_send(function, vector)) {
            msix->pending &= ~bit;
            send(function, vector);
        }
    }
}

void pci_msix_reset(struct pci_function *function)
{
    struct pci_msix *msix = &function->msix;

    memset(msix->table, 0, sizeof(msix->table));
    for (unsigned vector = 0; vector < msix->vector_count; vector++)
        msix->table[vector].control = PCI_MSIX_ENTRY_MASKED;
    msix->pending = 0;
}

/* ---- table and pending bits, as the guest sees them ---- */

/* The table's word at `offset`, or NULL. Only whole double words can be accessed
 * (6.8.2). */
static uint32_t *table_word(struct pci_msix *msix, uint64_t offset, unsigned size)
{
    if (size != DWORD_BYTES || offset % DWORD_BYTES != 0 ||
        offset >= msix->vector_count * sizeof(struct pci_msix_entry))
        return NULL;
    return (uint32_t *)msix->table + offset / DWORD_BYTES;
}

static uint64_t msix_read(void *device, uint64_t offset, unsigned size)
{
    struct pci_function *function = device;
    struct pci_msix *msix = &function->msix;
    const uint32_t *word = table_word(msix, offset, size);
    uint64_t value = 0;

    pthread_mutex_lock(&function->lock);
    if (word != NULL)
        value = *word;
    else if (offset == MSIX_PENDING_OFFSET)
        value = (uint32_t)msix->pending;
    else if (offset == MSIX_PENDING_OFFSET + DWORD_BYTES)
        value = msix->pending >> 32;
    pthread_mutex_unlock(&function->lock);
    return value;
}

static void msix_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct pci_function *function = device;
    uint32_t *word = table_word(&function->msix, offset, size);

    if (word == NULL)
        return;
    pthread_mutex_lock(&function->lock);
    *word = (uint32_t)value;
    pci_msix_send_pending(function);
    pthread_mutex_unlock(&function->lock);
}

static const struct bus_ops msix_ops = {
    .name = "MSI-X table",
    .width_bytes = DWORD_BYTES,
    .read = msix_read,
    .write = msix_write,
};

/* ---- for devices ---- */

void pci_function_add_msix(struct pci_function *function, unsigned bar,
                           unsigned vector_count)
{
    const struct msix_capability capability = {
        .id = PCI_CAPABILITY_MSIX,
        .control = (uint16_t)(vector_count - 1),
        .table = bar,
        .pending = MSIX_PENDING_OFFSET | bar,
    };

    CHECK(vector_count >= 1 && vector_count <= PCI_MSIX_VECTORS);
    pci_function_add_bar(function, bar, PCI_BAR_32_BIT, MSIX_BAR_BYTES, &msix_ops,
                         function);
    function->msix.vector_count = vector_count;
    function->msix.capability =
        pci_function_add_capability(function, &capability, sizeof(capability));
    store_le16(function->writable + function->msix.capability + PCI_MSIX_CONTROL,
               PCI_MSIX_CONTROL_ENABLE | PCI_MSIX_CONTROL_MASK);
}

bool pci_function_uses_msix(struct pci_function *function)
{
    bool uses;

    pthread_mutex_lock(&function->lock);
    uses = pci_msix_is_enabled(function);
    pthread_mutex_unlock(&function->lock);
    return uses;
}

void pci_function_send(struct pci_function *function, unsigned vector)
{
    struct pci_msix *msix = &function->msix;

    pthread_mutex_lock(&function->lock);
    if (pci_msix_is_enabled(function) && vector < msix->vector_count) {
        if (may_send(function, vector))
            send(function, vector);
        else
            msix->pending |= UINT64_C(1) << vector;
    }
    pthread_mutex_unlock(&function->lock);
}
