/* SPDX-License-Identifier: Apache-2.0 */
/* The virtio transport over PCI; see pci.h. Section numbers are those of virtio 1.2. */
#include "virtio/pci.h"

#include <stddef.h>

#include "base/bytes.h"
#include "base/check.h"

#define VENDOR 0x1af4           /* 4.1.2 */
#define DEVICE_ID_BASE 0x1040   /* and the type of device */
#define REVISION_MODERN 1       /* 4.1.2.1 */
#define SUBSYSTEM_MODERN 0x1100 /* 4.1.2.1: 0x40 or more */

enum { BAR_VIRTIO, BAR_MSIX };

/* BAR 0: one page for each part. */
enum part { PART_COMMON, PART_ISR, PART_CONFIG, PART_NOTIFY, PARTS };
#define PART_BYTES 4096
/* The interrupt status (4.1.4.5). */
enum { ISR_QUEUE = 0x1, ISR_CONFIG = 0x2 };

_Static_assert(VIRTIO_MAX_QUEUES <= PCI_FUNCTION_DOORBELLS, "one for each queue");
#define NOTIFY_BYTES_EACH 4 /* the multiplier: each queue has an address of its own */

struct __attribute__((packed)) virtio_capability { /* 4.1.4 */
    uint8_t id;
    uint8_t next;
    uint8_t size;
    uint8_t type;
    uint8_t bar;
    uint8_t capability_id;
    uint8_t padding[2];
    uint32_t offset;
    uint32_t length;
};
_Static_assert(sizeof(struct virtio_capability) == 16, "4.1.4");
#define VENDOR_SPECIFIC 0x09

enum capability_type {
    CAPABILITY_COMMON = 1,
    CAPABILITY_NOTIFY = 2,
    CAPABILITY_ISR = 3,
    CAPABILITY_DEVICE = 4,
    CAPABILITY_WINDOW = 5, /* access to a BAR through configuration space */
};

/* Common configuration (4.1.4.3). */
enum common_register {
    COMMON_DEVICE_FEATURE_SELECT = 0x00,
    COMMON_DEVICE_FEATURE = 0x04,
    COMMON_DRIVER_FEATURE_SELECT = 0x08,
    COMMON_DRIVER_FEATURE = 0x0c,
    COMMON_CONFIG_VECTOR = 0x10,
    COMMON_QUEUE_COUNT = 0x12,
    COMMON_STATUS = 0x14,
    COMMON_GENERATION = 0x15,
    COMMON_QUEUE_SELECT = 0x16,
    COMMON_QUEUE_SIZE = 0x18,
    COMMON_QUEUE_VECTOR = 0x1a,
    COMMON_QUEUE_ENABLE = 0x1c,
    COMMON_QUEUE_NOTIFY = 0x1e,
    COMMON_QUEUE_DESCRIPTORS = 0x20, /* 64 bits, in halves */
    COMMON_QUEUE_DRIVER = 0x28,
    COMMON_QUEUE_DEVICE = 0x30,
    COMMON_QUEUE_NOTIFY_DATA = 0x38,
    COMMON_QUEUE_RESET = 0x3a,
    COMMON_BYTES = 0x3c,
};

/* A driver accesses a register in its own width, and 64 bits as two times 32 (4.1.3.1).
 * 0: no register begins here. */
static const uint8_t common_widths[COMMON_BYTES] = {
    [COMMON_DEVICE_FEATURE_SELECT] = 4,
    [COMMON_DEVICE_FEATURE] = 4,
    [COMMON_DRIVER_FEATURE_SELECT] = 4,
    [COMMON_DRIVER_FEATURE] = 4,
    [COMMON_CONFIG_VECTOR] = 2,
    [COMMON_QUEUE_COUNT] = 2,
    [COMMON_STATUS] = 1,
    [COMMON_GENERATION] = 1,
    [COMMON_QUEUE_SELECT] = 2,
    [COMMON_QUEUE_SIZE] = 2,
    [COMMON_QUEUE_VECTOR] = 2,
    [COMMON_QUEUE_ENABLE] = 2,
    [COMMON_QUEUE_NOTIFY] = 2,
    [COMMON_QUEUE_DESCRIPTORS] = 4,
    [COMMON_QUEUE_DESCRIPTORS + 4] = 4,
    [COMMON_QUEUE_DRIVER] = 4,
    [COMMON_QUEUE_DRIVER + 4] = 4,
    [COMMON_QUEUE_DEVICE] = 4,
    [COMMON_QUEUE_DEVICE + 4] = 4,
    [COMMON_QUEUE_NOTIFY_DATA] = 2,
    [COMMON_QUEUE_RESET] = 2,
};

static bool is_common_access(uint32_t offset, unsigned size)
{
    return offset < COMMON_BYTES && common_widths[offset] == size;
}

/* ---- common configuration: the queue that is selected ---- */

/* NULL: the driver has selected one that is not there. */
static struct virtio_device_queue *selected_queue(struct virtio_pci *pci)
{
    return pci->queue_select < pci->device->ops->queue_count
               ? &pci->device->queues[pci->queue_select]
               : NULL;
}

/* The address that the register is a half of, or NULL. */
static uint64_t *queue_address(struct virtio_device_queue *queue, uint32_t offset)
{
    switch (align_down(offset, 8)) {
    case COMMON_QUEUE_DESCRIPTORS:
        return &queue->setup.descriptors;
    case COMMON_QUEUE_DRIVER:
        return &queue->setup.available;
    case COMMON_QUEUE_DEVICE:
        return &queue->setup.used;
    default:
        return NULL;
    }
}

static uint32_t read_selected(struct virtio_pci *pci, uint32_t offset)
{
    struct virtio_device_queue *queue = selected_queue(pci);
    const uint64_t *address;

    if (queue == NULL) /* its size, 0, says so */
        return offset == COMMON_QUEUE_VECTOR ? VIRTIO_NO_VECTOR : 0;
    address = queue_address(queue, offset);
    if (address != NULL)
        return (uint32_t)(*address >> (8 * (offset % 8)));
    switch (offset) {
    case COMMON_QUEUE_SIZE:
        return queue->setup.size;
    case COMMON_QUEUE_VECTOR:
        return atomic_load(&pci->queue_vectors[pci->queue_select]);
    case COMMON_QUEUE_ENABLE:
        return queue->ring.enabled;
    case COMMON_QUEUE_NOTIFY:
        return pci->queue_select; /* times the multiplier */
    case COMMON_QUEUE_RESET:
        return queue->is_resetting;
    default:
        return 0;
    }
}

/* One that is not there reads back as none (4.1.5.1.2.1). */
static uint16_t valid_vector(const struct virtio_pci *pci, uint32_t value)
{
    return value < pci->function.msix.vector_count ? (uint16_t)value : VIRTIO_NO_VECTOR;
}

/* Rings stay where they are while they are in use. */
static void write_setup(struct virtio_device_queue *queue, uint32_t offset,
                        uint32_t value)
{
    uint64_t *address = queue_address(queue, offset);
    unsigned shift = 8 * (offset % 8);

    if (queue->ring.enabled)
        return;
    if (offset == COMMON_QUEUE_SIZE)
        queue->setup.size = (uint16_t)value;
    else if (address != NULL)
        *address = (*address & ~(UINT64_C(0xffffffff) << shift)) | (uint64_t)value
                                                                       << shift;
}

static void write_selected(struct virtio_pci *pci, uint32_t offset, uint32_t value)
{
    struct virtio_device_queue *queue = selected_queue(pci);

    if (queue == NULL)
        return;
    switch (offset) {
    case COMMON_QUEUE_VECTOR:
        atomic_store(&pci->queue_vectors[pci->queue_select], valid_vector(pci, value));
        break;
    case COMMON_QUEUE_ENABLE:
        if (value == 1)
            virtio_device_enable_queue(pci->device, pci->queue_select);
        break;
    case COMMON_QUEUE_RESET:
        if (value == 1)
            virtio_device_reset_queue(pci->device, pci->queue_select);
        break;
    default:
        write_setup(queue, offset, value);
        break;
    }
}

/* ---- common configuration: the device ---- */

static uint32_t read_half(uint64_t features, uint32_t half)
{
    return half < 2 ? (uint32_t)(features >> (32 * half)) : 0;
}

static uint32_t read_common(struct virtio_pci *pci, uint32_t offset)
{
    struct virtio_device *device = pci->device;

    switch (offset) {
    case COMMON_DEVICE_FEATURE_SELECT:
        return pci->device_feature_half;
    case COMMON_DEVICE_FEATURE:
        return read_half(virtio_device_features(device), pci->device_feature_half);
    case COMMON_DRIVER_FEATURE_SELECT:
        return pci->driver_feature_half;
    case COMMON_DRIVER_FEATURE:
        return read_half(device->driver_features, pci->driver_feature_half);
    case COMMON_CONFIG_VECTOR:
        return atomic_load(&pci->config_vector);
    case COMMON_QUEUE_COUNT:
        return device->ops->queue_count;
    case COMMON_STATUS:
        return atomic_load(&device->status);
    case COMMON_GENERATION:
        return atomic_load(&device->config_generation);
    case COMMON_QUEUE_SELECT:
        return pci->queue_select;
    default:
        return read_selected(pci, offset);
    }
}

/* What the driver has said to the transport is forgotten, too. */
static void reset_transport(struct virtio_pci *pci)
{
    pci->device_feature_half = 0;
    pci->driver_feature_half = 0;
    pci->queue_select = 0;
    atomic_store(&pci->config_vector, VIRTIO_NO_VECTOR);
    for (unsigned i = 0; i < VIRTIO_MAX_QUEUES; i++)
        atomic_store(&pci->queue_vectors[i], VIRTIO_NO_VECTOR);
    pthread_mutex_lock(&pci->isr_lock);
    pci->isr = 0;
    pci_function_set_line(&pci->function, false);
    pthread_mutex_unlock(&pci->isr_lock);
}

static void write_status(struct virtio_pci *pci, uint8_t status)
{
    virtio_device_set_status(pci->device, status);
    if (status == 0)
        reset_transport(pci);
}

static void write_common(struct virtio_pci *pci, uint32_t offset, uint32_t value)
{
    switch (offset) {
    case COMMON_DEVICE_FEATURE_SELECT:
        pci->device_feature_half = value;
        break;
    case COMMON_DRIVER_FEATURE_SELECT:
        pci->driver_feature_half = value;
        break;
    case COMMON_DRIVER_FEATURE:
        if (pci->driver_feature_half < 2)
            virtio_device_set_driver_features(pci->device, pci->driver_feature_half,
                                              value);
        break;
    case COMMON_CONFIG_VECTOR:
        atomic_store(&pci->config_vector, valid_vector(pci, value));
        break;
    case COMMON_STATUS:
        write_status(pci, (uint8_t)value);
        break;
    case COMMON_QUEUE_SELECT:
        pci->queue_select = (uint16_t)value;
        break;
    default:
        write_selected(pci, offset, value);
        break;
    }
}

/* ---- BAR 0 ---- */

static uint8_t take_isr(struct virtio_pci *pci)
{
    uint8_t isr;

    pthread_mutex_lock(&pci->isr_lock);
    isr = pci->isr;
    pci->isr = 0;
    pci_function_set_line(&pci->function, false);
    pthread_mutex_unlock(&pci->isr_lock);
    return isr;
}

static uint64_t bar_read(void *context, uint64_t bar_offset, unsigned size)
{
    struct virtio_pci *pci = context;
    uint32_t offset = (uint32_t)bar_offset % PART_BYTES;
    uint64_t value = UINT64_MAX;

    switch (bar_offset / PART_BYTES) {
    case PART_COMMON:
        pthread_mutex_lock(&pci->device->lock);
        if (is_common_access(offset, size))
            value = read_common(pci, offset);
        pthread_mutex_unlock(&pci->device->lock);
        return value;
    case PART_ISR:
        return offset == 0 ? take_isr(pci) : 0;
    case PART_CONFIG:
        pthread_mutex_lock(&pci->device->lock);
        value = virtio_device_config_read(pci->device, offset, size);
        pthread_mutex_unlock(&pci->device->lock);
        return value;
    default: /* notifications are for writing */
        return 0;
    }
}

/* The place says which queue, and the value nothing: so others can do this, too. */
static void take_notification(struct virtio_pci *pci, unsigned queue)
{
    if (queue >= pci->device->ops->queue_count)
        return;
    virtio_device_notify(pci->device, queue);
    pci_function_take_short_cut(&pci->function, queue, BAR_VIRTIO,
                                PART_NOTIFY * PART_BYTES + queue * NOTIFY_BYTES_EACH,
                                pci->device->queues[queue].notify_fd);
}

static void bar_write(void *context, uint64_t bar_offset, unsigned size, uint64_t value)
{
    struct virtio_pci *pci = context;
    uint32_t offset = (uint32_t)bar_offset % PART_BYTES;

    switch (bar_offset / PART_BYTES) {
    case PART_COMMON:
        pthread_mutex_lock(&pci->device->lock);
        if (is_common_access(offset, size))
            write_common(pci, offset, (uint32_t)value);
        pthread_mutex_unlock(&pci->device->lock);
        break;
    case PART_CONFIG:
        pthread_mutex_lock(&pci->device->lock);
        virtio_device_config_write(pci->device, offset, size, (uint32_t)value);
        pthread_mutex_unlock(&pci->device->lock);
        break;
    case PART_NOTIFY:
        take_notification(pci, offset / NOTIFY_BYTES_EACH);
        break;
    default:
        break;
    }
}

static const struct bus_ops bar_ops = {
    .name = "virtio registers",
    .width_bytes = 4,
    .read = bar_read,
    .write = bar_write,
};

/* ---- configuration space: a window to the BARs (4.1.4.9) ---- */

struct __attribute__((packed)) window_capability {
    struct virtio_capability capability; /* bar, offset and length are the driver's */
    uint8_t data[4];                     /* an access here is one to the BAR */
};

/* The BAR that the window shows, and where; NULL: the driver has set it badly. */
static struct pci_bar *window_target(struct virtio_pci *pci, uint32_t *offset,
                                     unsigned *size)
{
    struct pci_function *function = &pci->function;
    uint32_t at = pci->window;
    uint32_t bar =
        pci_function_read(function, at + offsetof(struct virtio_capability, bar), 1);

    *offset =
        pci_function_read(function, at + offsetof(struct virtio_capability, offset), 4);
    *size =
        pci_function_read(function, at + offsetof(struct virtio_capability, length), 4);
    if (bar > BAR_MSIX || (*size != 1 && *size != 2 && *size != 4) ||
        !is_aligned(*offset, *size) ||
        !range_within(*offset, *size, function->bars[bar].size_bytes))
        return NULL;
    return &function->bars[bar];
}

static bool is_window_data(const struct virtio_pci *pci, uint32_t offset)
{
    return offset == pci->window + offsetof(struct window_capability, data);
}

static uint32_t config_read(void *context, uint32_t offset, unsigned size)
{
    struct virtio_pci *pci = context;
    uint32_t bar_offset;
    unsigned bar_size;
    const struct pci_bar *bar;

    if (!is_window_data(pci, offset))
        return pci_function_read(&pci->function, offset, size);
    bar = window_target(pci, &bar_offset, &bar_size);
    return bar ? (uint32_t)bar->ops->read(bar->device, bar_offset, bar_size) : UINT32_MAX;
}

/* Requests that the driver told of while the device could not look at them are taken when
 * it can. */
static void write_registers(struct virtio_pci *pci, uint32_t offset, unsigned size,
                            uint32_t value)
{
    bool was_master = pci_function_is_master(&pci->function);

    pci_function_write(&pci->function, offset, size, value);
    if (!was_master && virtio_device_is_live(pci->device))
        virtio_device_notify_all(pci->device);
}

static void config_write(void *context, uint32_t offset, unsigned size, uint32_t value)
{
    struct virtio_pci *pci = context;
    uint32_t bar_offset;
    unsigned bar_size;
    const struct pci_bar *bar;

    if (!is_window_data(pci, offset)) {
        write_registers(pci, offset, size, value);
        return;
    }
    bar = window_target(pci, &bar_offset, &bar_size);
    if (bar)
        bar->ops->write(bar->device, bar_offset, bar_size, value);
}

static void reset(void *context)
{
    struct virtio_pci *pci = context;

    pthread_mutex_lock(&pci->device->lock);
    write_status(pci, 0);
    pthread_mutex_unlock(&pci->device->lock);
    pci_function_reset(&pci->function);
}

static const struct pci_function_ops config_ops = {
    .config_read = config_read,
    .config_write = config_write,
    .reset = reset,
};

/* ---- what the device calls ---- */

static void interrupt(struct virtio_pci *pci, _Atomic uint16_t *vector, uint8_t isr)
{
    if (pci_function_uses_msix(&pci->function)) {
        pci_function_send(&pci->function, atomic_load(vector)); /* no vector: none */
        return;
    }
    pthread_mutex_lock(&pci->isr_lock);
    pci->isr |= isr;
    pci_function_set_line(&pci->function, true);
    pthread_mutex_unlock(&pci->isr_lock);
}

static void interrupt_queue(void *context, unsigned queue)
{
    struct virtio_pci *pci = context;

    interrupt(pci, &pci->queue_vectors[queue], ISR_QUEUE);
}

static void interrupt_config(void *context)
{
    struct virtio_pci *pci = context;

    interrupt(pci, &pci->config_vector, ISR_CONFIG);
}

static bool may_access_memory(void *context)
{
    struct virtio_pci *pci = context;

    return pci_function_is_master(&pci->function);
}

/* ---- set-up ---- */

static struct virtio_capability part_capability(enum capability_type type, enum part part,
                                                uint32_t length)
{
    return (struct virtio_capability){
        .id = VENDOR_SPECIFIC,
        .size = sizeof(struct virtio_capability),
        .type = (uint8_t)type,
        .bar = BAR_VIRTIO,
        .offset = part * PART_BYTES,
        .length = length,
    };
}

static void add_parts(struct virtio_pci *pci)
{
    const struct virtio_ops *ops = pci->device->ops;
    struct virtio_capability common =
        part_capability(CAPABILITY_COMMON, PART_COMMON, COMMON_BYTES);
    struct virtio_capability isr = part_capability(CAPABILITY_ISR, PART_ISR, 1);
    struct virtio_capability config =
        part_capability(CAPABILITY_DEVICE, PART_CONFIG, ops->config_bytes);
    struct __attribute__((packed)) {
        struct virtio_capability capability;
        uint32_t multiplier;
    } notify = {part_capability(CAPABILITY_NOTIFY, PART_NOTIFY,
                                ops->queue_count * NOTIFY_BYTES_EACH),
                NOTIFY_BYTES_EACH};

    notify.capability.size = sizeof(notify);
    pci_function_add_capability(&pci->function, &common, sizeof(common));
    pci_function_add_capability(&pci->function, &isr, sizeof(isr));
    pci_function_add_capability(&pci->function, &notify, sizeof(notify));
    if (ops->config_bytes > 0)
        pci_function_add_capability(&pci->function, &config, sizeof(config));
}

static void add_window(struct virtio_pci *pci)
{
    const struct window_capability window = {.capability = {.id = VENDOR_SPECIFIC,
                                                            .size = sizeof(window),
                                                            .type = CAPABILITY_WINDOW}};

    pci->window = pci_function_add_capability(&pci->function, &window, sizeof(window));
    pci_function_let_write(&pci->function,
                           pci->window + offsetof(struct virtio_capability, bar), 1);
    pci_function_let_write(&pci->function,
                           pci->window + offsetof(struct virtio_capability, offset), 8);
}

void virtio_pci_attach(struct virtio_pci *pci, struct virtio_device *device,
                       uint32_t class_code, struct pci_bus *bus, unsigned place)
{
    const struct pci_identity identity = {
        .vendor = VENDOR,
        .device = DEVICE_ID_BASE + device->ops->device_id,
        .class_code = class_code,
        .revision = REVISION_MODERN,
        .subsystem_vendor = VENDOR,
        .subsystem = SUBSYSTEM_MODERN,
    };

    *pci = (struct virtio_pci){.device = device};
    CHECK(pthread_mutex_init(&pci->isr_lock, NULL) == 0);
    device->transport = (struct virtio_transport){
        .interrupt_queue = interrupt_queue,
        .interrupt_config = interrupt_config,
        .may_access_memory = may_access_memory,
        .context = pci,
    };
    pci_function_init(&pci->function, &identity);
    pci_function_add_bar(&pci->function, BAR_VIRTIO, PCI_BAR_32_BIT,
                         (uint64_t)PARTS * PART_BYTES, &bar_ops, pci);
    pci_function_add_msix(&pci->function, BAR_MSIX, device->ops->queue_count + 1);
    add_parts(pci);
    add_window(pci);
    pci_function_attach(&pci->function, bus, place, 0, &config_ops, pci);
    reset_transport(pci);
}

void virtio_pci_finish(struct virtio_pci *pci)
{
    pci_function_finish(&pci->function);
    CHECK(pthread_mutex_destroy(&pci->isr_lock) == 0);
}
