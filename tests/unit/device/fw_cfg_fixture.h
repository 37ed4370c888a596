/* SPDX-License-Identifier: Apache-2.0 */
/* A fw_cfg device on a port bus, with guest memory for its DMA. */
#ifndef HUSK_TESTS_DEVICE_FW_CFG_FIXTURE_H
#define HUSK_TESTS_DEVICE_FW_CFG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/fw_cfg.h"

/* RAM: 64 KiB at 0, and 16 KiB at 4 GiB. */
#define LOW_RAM_BYTES 0x10000u
#define HIGH_RAM UINT64_C(0x100000000)
#define HIGH_RAM_BYTES 0x4000u

/* Bits of a control block, and where the fixture puts one. */
#define DMA_ERROR 0x01u
#define DMA_READ 0x02u
#define DMA_SKIP 0x04u
#define DMA_SELECT 0x08u
#define DMA_WRITE 0x10u
#define DMA_KEY(key) ((uint32_t)(key) << 16)
#define BLOCK_GPA UINT64_C(0x200)

struct fixture {
    struct bus ports;
    struct memory *memory;
    struct fw_cfg *fw_cfg;
};

/* Without items; they are added, then fixture_attach. */
int fixture_create(void **state);
int fixture_destroy(void **state);
void fixture_attach(struct fixture *fixture);

/* An item of bytes that live as long as the test. */
void fixture_add_bytes(struct fixture *fixture, uint16_t key, const void *bytes,
                       size_t size);
void fixture_add_file(struct fixture *fixture, const char *name, const void *bytes,
                      size_t size);

void fixture_select(struct fixture *fixture, uint16_t key);
uint8_t fixture_read(struct fixture *fixture); /* one byte of the data port */

/* Writes a control block and its address, and returns its control field afterwards. */
uint32_t fixture_dma(struct fixture *fixture, uint32_t control, uint32_t length,
                     uint64_t address);
void fixture_put_block(struct fixture *fixture, uint64_t gpa, uint32_t control,
                       uint32_t length, uint64_t address);
void fixture_start(struct fixture *fixture, uint64_t block_gpa);

/* Guest memory. */
uint8_t *fixture_memory(struct fixture *fixture, uint64_t gpa, size_t size);

#endif
