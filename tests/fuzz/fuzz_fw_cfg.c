/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: what a guest can do to fw_cfg by its ports, by DMA and by what it has in
 * memory. Beside the device runs a model of a few lines, which must agree with it about
 * every byte that the guest reads and about all of memory.
 *
 * The input is a list of steps of 8 bytes: what to do, how, a place, a value.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/log.h"
#include "device/fw_cfg.h"
#include "x86/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEP_BYTES 8
#define BLOCK_BYTES 16
#define STRING_LIMIT 1024u

#define DMA_ERROR 0x01u
#define DMA_READ 0x02u
#define DMA_SKIP 0x04u
#define DMA_SELECT 0x08u
#define DMA_WRITE 0x10u

enum step_kind {
    STEP_SELECT,
    STEP_READ,
    STEP_STRING,
    STEP_PORT,  /* any access to any of the ports */
    STEP_STORE, /* a word to memory */
    STEP_BLOCK, /* a likely control block to memory */
    STEP_START,
    STEP_RESET,
    STEP_KINDS,
};

/* ---- items ---- */

#define FILE_BYTES 5000u
#define KEY_PARTS 0x30
#define KEY_EMPTY 0x31

/* What the items of a key have in them; the rest of KEY_PARTS is zero. */
static uint8_t parts_bytes[9000];
static uint8_t memory_bytes[300];
static int file = -1;

static void make_contents(void)
{
    uint8_t bytes[FILE_BYTES];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 13 + 1);
    for (size_t i = 0; i < sizeof(memory_bytes); i++)
        memory_bytes[i] = (uint8_t)(i * 29 + 3);
    file = memfd_create("item", MFD_CLOEXEC);
    CHECK(file >= 0 && write(file, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
    memcpy(parts_bytes + 10, bytes + 7, 4200);
    memcpy(parts_bytes + 4210, memory_bytes + 100, 200);
    memcpy(parts_bytes + 8999, bytes, 1);
}

static struct fw_cfg *make_device(struct memory *memory, struct bus *ports)
{
    const struct source from_file = source_from_fd(file, FILE_BYTES);
    const struct source from_memory =
        source_from_memory(memory_bytes, sizeof(memory_bytes));
    const struct fw_cfg_part parts[] = {
        {10, 4200, from_file, 7},
        {4210, 200, from_memory, 100},
        {8999, 1, from_file, 0},
    };
    const struct fw_cfg_part part = {0, sizeof(memory_bytes), from_memory, 0};
    struct error err = ERROR_NONE;
    struct fw_cfg *fw_cfg = NULL;

    CHECK(fw_cfg_create(memory, true, &fw_cfg, &err) == 0);
    CHECK(fw_cfg_add_item(fw_cfg, KEY_PARTS, sizeof(parts_bytes), parts,
                          ARRAY_SIZE(parts), &err) == 0);
    CHECK(fw_cfg_add_item(fw_cfg, KEY_EMPTY, 0, NULL, 0, &err) == 0);
    CHECK(fw_cfg_add_file(fw_cfg, "name", sizeof(memory_bytes), &part, 1, &err) == 0);
    CHECK(fw_cfg_attach(fw_cfg, ports, &err) == 0);
    return fw_cfg;
}

/* ---- the model ---- */

struct span_model {
    uint64_t gpa;
    uint32_t size_bytes;
    uint8_t *bytes; /* as they should be */
};

static const uint8_t directory[] = {
    [3] = 1, [6] = 0x01, [7] = 0x2c, [9] = 0x20, [12] = 'n', 'a', 'm', 'e', [67] = 0};

struct model {
    const uint8_t *item;
    uint32_t size;
    uint32_t offset;
    uint32_t high;
    struct span_model spans[2];
};

static void model_select(struct model *model, uint16_t key)
{
    static const struct {
        uint16_t key;
        const void *bytes;
        uint32_t size;
    } items[] = {
        {FW_CFG_SIGNATURE, "QEMU", 4},
        {FW_CFG_FEATURES, "\3\0\0\0", 4},
        {FW_CFG_FILE_DIRECTORY, directory, sizeof(directory)},
        {FW_CFG_FILE_FIRST, memory_bytes, sizeof(memory_bytes)},
        {KEY_PARTS, parts_bytes, sizeof(parts_bytes)},
    };

    model->item = NULL;
    model->size = 0;
    model->offset = 0;
    for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
        if (items[i].key != (key & 0xbfff))
            continue;
        model->item = items[i].bytes;
        model->size = items[i].size;
    }
}

static uint8_t model_byte(struct model *model)
{
    return model->offset < model->size ? model->item[model->offset++] : 0;
}

static uint8_t *model_slice(struct model *model, uint64_t gpa, uint64_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(model->spans); i++) {
        const struct span_model *span = &model->spans[i];

        if (gpa >= span->gpa && range_within(gpa - span->gpa, size, span->size_bytes))
            return span->bytes + (gpa - span->gpa);
    }
    return NULL;
}

static bool model_obey(struct model *model, const uint8_t *block)
{
    uint32_t control = load_be32(block);
    uint32_t length = load_be32(block + 4);
    uint8_t *to = model_slice(model, load_be64(block + 8), length);

    if (control & DMA_SELECT)
        model_select(model, (uint16_t)(control >> 16));
    if (control & DMA_READ) {
        for (uint32_t i = 0; to != NULL && i < length; i++)
            to[i] = model_byte(model);
        return to != NULL || length == 0;
    }
    if (control & DMA_WRITE)
        return length == 0;
    if (control & DMA_SKIP)
        model->offset += (uint32_t)min_u64(length, model->size - model->offset);
    return true;
}

static void model_start(struct model *model, uint64_t gpa)
{
    const uint8_t *at = model_slice(model, gpa, BLOCK_BYTES);
    uint8_t block[BLOCK_BYTES];
    uint8_t *answer;
    bool succeeded = false;

    if (at != NULL) {
        memcpy(block, at, sizeof(block));
        succeeded = model_obey(model, block);
    }
    answer = model_slice(model, gpa, 4);
    if (answer != NULL)
        store_be32(answer, succeeded ? 0 : DMA_ERROR);
}

/* ---- steps ---- */

struct machine {
    struct memory *memory;
    struct bus ports;
    struct fw_cfg *fw_cfg;
    struct model model;
};

static void compare_memory(struct machine *machine)
{
    for (size_t i = 0; i < ARRAY_SIZE(machine->model.spans); i++) {
        const struct span_model *span = &machine->model.spans[i];
        const void *bytes = memory_slice(machine->memory, span->gpa, span->size_bytes);

        CHECK(memcmp(bytes, span->bytes, span->size_bytes) == 0);
    }
}

static void store(struct machine *machine, uint64_t gpa, const void *bytes, size_t size)
{
    uint8_t *to = model_slice(&machine->model, gpa, size);
    int status = memory_write(machine->memory, gpa, bytes, size);

    CHECK((to != NULL) == (status == 0));
    if (to != NULL)
        memcpy(to, bytes, size);
}

/* Somewhere in the RAM, or a little beside it. */
static uint64_t place(const struct machine *machine, uint16_t at)
{
    const struct span_model *span = &machine->model.spans[at & 1];

    return span->gpa + at % (span->size_bytes + 8) - (at & 2 ? 4 : 0);
}

static void read_string(struct machine *machine, uint32_t count)
{
    uint8_t bytes[STRING_LIMIT];

    bus_read_string(&machine->ports, LAYOUT_PORT_FW_CFG + 1, 1, count, bytes);
    for (uint32_t i = 0; i < count; i++)
        CHECK(bytes[i] == model_byte(&machine->model));
}

/* Whatever this does, the model cannot know: what is selected is made sure of again. */
static void access_port(struct machine *machine, const uint8_t *step)
{
    unsigned size = 1u << step[1] % 3;
    uint64_t port = LAYOUT_PORT_FW_CFG + step[2] % 4;

    if (step[3] % 2 != 0)
        bus_write(&machine->ports, port, size, load_le32(step + 4));
    else
        (void)bus_read(&machine->ports, port + step[2] % 12, size);
    fw_cfg_reset(machine->fw_cfg);
    model_select(&machine->model, FW_CFG_SIGNATURE);
    machine->model.high = 0;
}

static void put_block(struct machine *machine, const uint8_t *step)
{
    static const uint16_t keys[] = {FW_CFG_SIGNATURE,  FW_CFG_FEATURES,
                                    FW_CFG_FILE_FIRST, FW_CFG_FILE_DIRECTORY,
                                    KEY_PARTS,         KEY_EMPTY};
    uint8_t block[BLOCK_BYTES];
    uint32_t key = keys[step[1] / 32 % ARRAY_SIZE(keys)];

    store_be32(block, key << 16 | step[1] % 32);
    store_be32(block + 4, step[7] == 0xff ? UINT32_MAX - step[6] : load_le16(step + 6));
    store_be64(block + 8, place(machine, load_le16(step + 4)));
    store(machine, place(machine, load_le16(step + 2)), block, sizeof(block));
}

static void start(struct machine *machine, uint64_t gpa)
{
    bus_write(&machine->ports, LAYOUT_PORT_FW_CFG_DMA, 4,
              __builtin_bswap32((uint32_t)(gpa >> 32)));
    bus_write(&machine->ports, LAYOUT_PORT_FW_CFG_DMA + 4, 4,
              __builtin_bswap32((uint32_t)gpa));
    model_start(&machine->model, gpa);
    compare_memory(machine);
}

static void do_step(struct machine *machine, const uint8_t *step)
{
    switch ((enum step_kind)(step[0] % STEP_KINDS)) {
    case STEP_SELECT:
        bus_write(&machine->ports, LAYOUT_PORT_FW_CFG, 2, load_le16(step + 2));
        model_select(&machine->model, load_le16(step + 2));
        break;
    case STEP_READ:
        CHECK(bus_read(&machine->ports, LAYOUT_PORT_FW_CFG + 1, 1) ==
              model_byte(&machine->model));
        break;
    case STEP_STRING:
        read_string(machine, load_le16(step + 2) % STRING_LIMIT);
        break;
    case STEP_PORT:
        access_port(machine, step);
        break;
    case STEP_STORE:
        store(machine, place(machine, load_le16(step + 2)), step + 4, 4);
        break;
    case STEP_BLOCK:
        put_block(machine, step);
        break;
    case STEP_START:
        start(machine, step[1] == 0xff ? UINT64_MAX - step[2]
                                       : place(machine, load_le16(step + 2)));
        break;
    case STEP_RESET:
        fw_cfg_reset(machine->fw_cfg);
        model_select(&machine->model, FW_CFG_SIGNATURE);
        break;
    case STEP_KINDS:
        break;
    }
}

/* ---- life ---- */

/* The memory is made once: what is expensive is its reservation of addresses. */
static struct memory *make_memory(void)
{
    static const struct memory_span spans[] = {{0, 0x3000},
                                               {LAYOUT_HIGH_RAM_START, 0x2000}};
    const struct memory_options options = {.huge_pages = false};
    struct error err = ERROR_NONE;
    struct memory *memory = NULL;

    CHECK(memory_create(spans, ARRAY_SIZE(spans), &options, &memory, &err) == 0);
    return memory;
}

static void init_spans(struct machine *machine, uint8_t *low, uint8_t *high)
{
    machine->model.spans[0] = (struct span_model){0, 0x3000, low};
    machine->model.spans[1] = (struct span_model){LAYOUT_HIGH_RAM_START, 0x2000, high};
    for (size_t i = 0; i < ARRAY_SIZE(machine->model.spans); i++) {
        const struct span_model *span = &machine->model.spans[i];

        memset(span->bytes, 0, span->size_bytes);
        memset(memory_slice(machine->memory, span->gpa, span->size_bytes), 0,
               span->size_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct memory *memory;
    static uint8_t low[0x3000], high[0x2000];
    struct machine machine;

    if (memory == NULL) {
        log_set_level(LOG_ERROR);
        make_contents();
        memory = make_memory();
    }
    machine = (struct machine){.memory = memory};
    init_spans(&machine, low, high);
    bus_init(&machine.ports, "port");
    machine.fw_cfg = make_device(memory, &machine.ports);
    model_select(&machine.model, FW_CFG_SIGNATURE);
    for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
        do_step(&machine, data);
    fw_cfg_destroy(machine.fw_cfg);
    return 0;
}
