/* SPDX-License-Identifier: Apache-2.0 */
#include "fw_cfg_fixture.h"

#include <stdlib.h>

#include "base/bytes.h"

#define PORT_SELECTOR 0x510
#define PORT_DATA 0x511
#define PORT_DMA_HIGH 0x514
#define PORT_DMA_LOW 0x518

int fixture_create(void **state)
{
    static const struct memory_span spans[] = {
        {0, LOW_RAM_BYTES},
        {HIGH_RAM, HIGH_RAM_BYTES},
    };
    const struct memory_options options = {.huge_pages = false};
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    bus_init(&fixture->ports, "port");
    assert_int_equal(
        memory_create(spans, ARRAY_SIZE(spans), &options, &fixture->memory, &err), 0);
    assert_int_equal(fw_cfg_create(fixture->memory, true, &fixture->fw_cfg, &err), 0);
    *state = fixture;
    return 0;
}

int fixture_destroy(void **state)
{
    struct fixture *fixture = *state;

    fw_cfg_destroy(fixture->fw_cfg);
    memory_destroy(fixture->memory);
    free(fixture);
    return 0;
}

void fixture_attach(struct fixture *fixture)
{
    struct error err = ERROR_NONE;

    assert_int_equal(fw_cfg_attach(fixture->fw_cfg, &fixture->ports, &err), 0);
}

static struct fw_cfg_part whole(const void *bytes, size_t size)
{
    return (struct fw_cfg_part){.size_bytes = size,
                                .source = source_from_memory(bytes, size)};
}

void fixture_add_bytes(struct fixture *fixture, uint16_t key, const void *bytes,
                       size_t size)
{
    const struct fw_cfg_part part = whole(bytes, size);
    struct error err = ERROR_NONE;

    assert_int_equal(fw_cfg_add_item(fixture->fw_cfg, key, size, &part, 1, &err), 0);
}

void fixture_add_file(struct fixture *fixture, const char *name, const void *bytes,
                      size_t size)
{
    const struct fw_cfg_part part = whole(bytes, size);
    struct error err = ERROR_NONE;

    assert_int_equal(fw_cfg_add_file(fixture->fw_cfg, name, size, &part, 1, &err), 0);
}

void fixture_select(struct fixture *fixture, uint16_t key)
{
    bus_write(&fixture->ports, PORT_SELECTOR, 2, key);
}

uint8_t fixture_read(struct fixture *fixture)
{
    return (uint8_t)bus_read(&fixture->ports, PORT_DATA, 1);
}

uint8_t *fixture_memory(struct fixture *fixture, uint64_t gpa, size_t size)
{
    uint8_t *bytes = memory_slice(fixture->memory, gpa, size);

    assert_non_null(bytes);
    return bytes;
}

void fixture_put_block(struct fixture *fixture, uint64_t gpa, uint32_t control,
                       uint32_t length, uint64_t address)
{
    uint8_t *block = fixture_memory(fixture, gpa, 16);

    store_be32(block, control);
    store_be32(block + 4, length);
    store_be64(block + 8, address);
}

void fixture_start(struct fixture *fixture, uint64_t block_gpa)
{
    bus_write(&fixture->ports, PORT_DMA_HIGH, 4,
              __builtin_bswap32((uint32_t)(block_gpa >> 32)));
    bus_write(&fixture->ports, PORT_DMA_LOW, 4, __builtin_bswap32((uint32_t)block_gpa));
}

uint32_t fixture_dma(struct fixture *fixture, uint32_t control, uint32_t length,
                     uint64_t address)
{
    fixture_put_block(fixture, BLOCK_GPA, control, length, address);
    fixture_start(fixture, BLOCK_GPA);
    return load_be32(fixture_memory(fixture, BLOCK_GPA, 4));
}
