/* SPDX-License-Identifier: Apache-2.0 */
/* Emits AML; see aml_private.h. Section numbers are those of ACPI 6.4. */
#include "boot/aml_private.h"

#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

/* Opcodes (20.3). */
#define ZERO_OP 0x00
#define ONE_OP 0x01
#define NAME_OP 0x08
#define BYTE_PREFIX 0x0a
#define WORD_PREFIX 0x0b
#define DWORD_PREFIX 0x0c
#define STRING_PREFIX 0x0d
#define SCOPE_OP 0x10
#define BUFFER_OP 0x11
#define PACKAGE_OP 0x12
#define EXTENDED_PREFIX 0x5b
#define DEVICE_OP 0x82 /* behind the prefix */
#define ROOT_CHARACTER '\\'

#define NAME_CHARACTERS 4

static void put(struct aml *aml, const void *bytes, size_t size)
{
    CHECK(size <= aml->capacity - aml->used);
    memcpy(aml->bytes + aml->used, bytes, size);
    aml->used += size;
}

static void put_byte(struct aml *aml, uint8_t byte)
{
    put(aml, &byte, 1);
}

static void put_word(struct aml *aml, uint16_t word)
{
    put(aml, &word, sizeof(word));
}

static void put_dword(struct aml *aml, uint32_t dword)
{
    put(aml, &dword, sizeof(dword));
}

static void put_qword(struct aml *aml, uint64_t qword)
{
    put(aml, &qword, sizeof(qword));
}

static void put_name(struct aml *aml, const char *name)
{
    if (name[0] == ROOT_CHARACTER)
        put_byte(aml, (uint8_t)*name++);
    CHECK(strlen(name) == NAME_CHARACTERS);
    put(aml, name, NAME_CHARACTERS);
}

/* ---- terms that contain others ---- */

/* PkgLength (20.2.4) counts itself, so its own width depends on what follows: it is put
 * in when the term is closed. */
void aml_close(struct aml *aml, size_t opened)
{
    size_t content = aml->used - opened;
    uint8_t length[4];
    size_t width;

    if (content + 1 < 1u << 6) {
        width = 1;
        length[0] = (uint8_t)(content + width);
    } else {
        size_t total;

        width = content + 2 < 1u << 12 ? 2 : 3;
        total = content + width;
        CHECK(total < 1u << 20);
        length[0] = (uint8_t)((width - 1) << 6 | (total & 0xf));
        for (size_t i = 1; i < width; i++)
            length[i] = (uint8_t)(total >> (8 * i - 4));
    }
    CHECK(width <= aml->capacity - aml->used);
    memmove(aml->bytes + opened + width, aml->bytes + opened, content);
    memcpy(aml->bytes + opened, length, width);
    aml->used += width;
}

size_t aml_scope_open(struct aml *aml, const char *name)
{
    size_t opened;

    put_byte(aml, SCOPE_OP);
    opened = aml->used;
    put_name(aml, name);
    return opened;
}

size_t aml_device_open(struct aml *aml, const char *name)
{
    size_t opened;

    put_byte(aml, EXTENDED_PREFIX);
    put_byte(aml, DEVICE_OP);
    opened = aml->used;
    put_name(aml, name);
    return opened;
}

size_t aml_package_open(struct aml *aml, uint8_t element_count)
{
    size_t opened;

    put_byte(aml, PACKAGE_OP);
    opened = aml->used;
    put_byte(aml, element_count);
    return opened;
}

/* ---- values ---- */

void aml_name(struct aml *aml, const char *name)
{
    put_byte(aml, NAME_OP);
    put_name(aml, name);
}

void aml_integer(struct aml *aml, uint32_t value)
{
    if (value <= 1) {
        put_byte(aml, value == 0 ? ZERO_OP : ONE_OP);
    } else if (value <= UINT8_MAX) {
        put_byte(aml, BYTE_PREFIX);
        put_byte(aml, (uint8_t)value);
    } else if (value <= UINT16_MAX) {
        put_byte(aml, WORD_PREFIX);
        put_word(aml, (uint16_t)value);
    } else {
        put_byte(aml, DWORD_PREFIX);
        put_dword(aml, value);
    }
}

void aml_string(struct aml *aml, const char *text)
{
    put_byte(aml, STRING_PREFIX);
    put(aml, text, strlen(text) + 1);
}

static uint32_t hex_digit(char digit)
{
    return (uint32_t)(digit <= '9' ? digit - '0' : digit - 'A' + 10);
}

/* Three letters of five bits and four hexadecimal digits, big-endian (19.3.4, EISAID). */
void aml_eisa_id(struct aml *aml, const char *id)
{
    uint32_t packed = 0;

    for (int i = 0; i < 3; i++)
        packed = packed << 5 | (uint32_t)(id[i] - 'A' + 1);
    for (int i = 3; i < 7; i++)
        packed = packed << 4 | hex_digit(id[i]);
    put_byte(aml, DWORD_PREFIX);
    put_dword(aml, __builtin_bswap32(packed));
}

void aml_name_integer(struct aml *aml, const char *name, uint32_t value)
{
    aml_name(aml, name);
    aml_integer(aml, value);
}

void aml_name_eisa_id(struct aml *aml, const char *name, const char *id)
{
    aml_name(aml, name);
    aml_eisa_id(aml, id);
}

/* ---- resource templates (6.4) ---- */

#define IO_PORT_DESCRIPTOR 0x47 /* 6.4.2.5, seven bytes behind the tag */
#define IO_PORT_DECODES_16_BITS 0x01
#define IRQ_DESCRIPTOR 0x22 /* 6.4.2.1, two bytes: edge, active high */
#define END_TAG 0x79        /* 6.4.2.9 */
#define MEMORY32_FIXED 0x86 /* 6.4.3.4 */
#define MEMORY_WRITABLE 0x01
#define DWORD_ADDRESS_SPACE 0x87 /* 6.4.3.5.2 */
#define WORD_ADDRESS_SPACE 0x88  /* 6.4.3.5.3 */
#define QWORD_ADDRESS_SPACE 0x8a /* 6.4.3.5.1 */
#define SPACE_MEMORY 0
#define SPACE_IO 1
#define SPACE_BUS 2
#define WINDOW_FLAGS 0x0c   /* minimum and maximum fixed, positive decode */
#define IO_WHOLE_RANGE 0x03 /* 6.4.3.5.5, table 6.59 */
#define BUFFER_SIZE_BYTES 3 /* a word integer, whose width never changes */

struct aml_resources aml_resources_open(struct aml *aml)
{
    struct aml_resources resources;

    aml_name(aml, "_CRS");
    put_byte(aml, BUFFER_OP);
    resources.buffer = aml->used;
    put_byte(aml, WORD_PREFIX);
    resources.size_at = aml->used;
    put_word(aml, 0);
    return resources;
}

void aml_resources_close(struct aml *aml, struct aml_resources resources)
{
    put_byte(aml, END_TAG);
    put_byte(aml, 0); /* a checksum of 0 is right for any content */
    store_le16(aml->bytes + resources.size_at,
               (uint16_t)(aml->used - resources.buffer - BUFFER_SIZE_BYTES));
    aml_close(aml, resources.buffer);
}

void aml_io_ports(struct aml *aml, uint16_t start, uint8_t count)
{
    put_byte(aml, IO_PORT_DESCRIPTOR);
    put_byte(aml, IO_PORT_DECODES_16_BITS);
    put_word(aml, start); /* minimum */
    put_word(aml, start); /* maximum */
    put_byte(aml, 1);     /* alignment */
    put_byte(aml, count);
}

void aml_irq(struct aml *aml, uint8_t line)
{
    CHECK(line < 16);
    put_byte(aml, IRQ_DESCRIPTOR);
    put_word(aml, (uint16_t)(1u << line));
}

void aml_memory32_fixed(struct aml *aml, uint32_t start, uint32_t size_bytes)
{
    put_byte(aml, MEMORY32_FIXED);
    put_word(aml, 9); /* bytes behind this field */
    put_byte(aml, MEMORY_WRITABLE);
    put_dword(aml, start);
    put_dword(aml, size_bytes);
}

static void word_window(struct aml *aml, uint8_t space, uint8_t space_flags,
                        uint16_t first, uint16_t last)
{
    put_byte(aml, WORD_ADDRESS_SPACE);
    put_word(aml, 13); /* bytes behind this field */
    put_byte(aml, space);
    put_byte(aml, WINDOW_FLAGS);
    put_byte(aml, space_flags);
    put_word(aml, 0); /* granularity */
    put_word(aml, first);
    put_word(aml, last);
    put_word(aml, 0); /* translation */
    put_word(aml, (uint16_t)(last - first + 1));
}

void aml_bus_window(struct aml *aml, uint16_t first, uint16_t last)
{
    word_window(aml, SPACE_BUS, 0, first, last);
}

void aml_io_window(struct aml *aml, uint16_t first, uint16_t last)
{
    word_window(aml, SPACE_IO, IO_WHOLE_RANGE, first, last);
}

static void memory_window_open(struct aml *aml, uint8_t descriptor, uint16_t size_bytes)
{
    put_byte(aml, descriptor);
    put_word(aml, size_bytes); /* behind this field */
    put_byte(aml, SPACE_MEMORY);
    put_byte(aml, WINDOW_FLAGS);
    put_byte(aml, MEMORY_WRITABLE);
}

void aml_memory32_window(struct aml *aml, uint32_t first, uint32_t last)
{
    memory_window_open(aml, DWORD_ADDRESS_SPACE, 23);
    put_dword(aml, 0); /* granularity */
    put_dword(aml, first);
    put_dword(aml, last);
    put_dword(aml, 0); /* translation */
    put_dword(aml, last - first + 1);
}

void aml_memory64_window(struct aml *aml, uint64_t first, uint64_t last)
{
    memory_window_open(aml, QWORD_ADDRESS_SPACE, 43);
    put_qword(aml, 0); /* granularity */
    put_qword(aml, first);
    put_qword(aml, last);
    put_qword(aml, 0); /* translation */
    put_qword(aml, last - first + 1);
}
