/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What real-mode code finds of a BIOS. Multiboot kernels may call it ("as initialized by
 * the BIOS", Multiboot Specification 0.6.96, 3.2), and Xen does. There is none, so every
 * call returns with the carry flag set, which is "function not supported" to whoever
 * looks; and the numbers that a BIOS keeps at 0x400 are there as far as they mean
 * something: Xen finds low memory by them.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/builder_private.h"
#include "x86/layout.h"

#define VECTORS 256

/* F000:FF53 is where PC BIOSes have their IRET for interrupts without a service. */
#define RETURN_SEGMENT 0xf000
#define RETURN_OFFSET 0xff53

static const uint8_t return_code[] = {
    0x55,                   /* push bp */
    0x89, 0xe5,             /* mov bp, sp */
    0x83, 0x4e, 0x06, 0x01, /* or word [bp + 6], 1: carry, in the flags that return */
    0x5d,                   /* pop bp */
    0xcf,                   /* iret */
};

/* From address 0 on: interrupt vectors (Intel SDM volume 3, 21.1.4), then the BIOS data
 * area (IBM PS/2 and PC BIOS Interface Technical Reference, section 3). */
struct __attribute__((packed)) low_page {
    struct {
        uint16_t offset;
        uint16_t segment;
    } vectors[VECTORS];
    uint16_t serial_ports[4];
    uint16_t parallel_ports[3];
    uint16_t ebda_segment;
    uint16_t equipment;
    uint8_t initialization;
    uint16_t memory_kib; /* below the EBDA */
};
_Static_assert(offsetof(struct low_page, ebda_segment) == 0x40e, "40:0e");
_Static_assert(offsetof(struct low_page, memory_kib) == 0x413, "40:13");

#define EQUIPMENT_ONE_SERIAL_PORT (1 << 9)

static struct low_page *make_low_page(void)
{
    struct low_page *page = calloc(1, sizeof(*page));

    if (page == NULL)
        return NULL;
    for (size_t i = 0; i < VECTORS; i++) {
        page->vectors[i].offset = RETURN_OFFSET;
        page->vectors[i].segment = RETURN_SEGMENT;
    }
    page->serial_ports[0] = LAYOUT_PORT_COM1;
    page->ebda_segment = LAYOUT_EBDA_START >> 4;
    page->equipment = EQUIPMENT_ONE_SERIAL_PORT;
    page->memory_kib = LAYOUT_EBDA_START / KIB;
    return page;
}

int boot_bios_area_add(struct boot_builder *builder, struct error *err)
{
    uint8_t *code;

    /* A kernel that is loaded over it will not call what it has displaced. */
    if (!boot_builder_is_free(builder, 0, sizeof(struct low_page)))
        return 0;
    if (boot_builder_add_generated(builder, 0, (uint8_t *)make_low_page(),
                                   sizeof(struct low_page),
                                   "interrupt vectors and BIOS data area", err) < 0)
        return err->code;
    code = malloc(sizeof(return_code));
    if (code != NULL)
        memcpy(code, return_code, sizeof(return_code));
    return boot_builder_add_generated(builder, (RETURN_SEGMENT << 4) + RETURN_OFFSET,
                                      code, sizeof(return_code), "BIOS without services",
                                      err);
}
