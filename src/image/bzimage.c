/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux bzImage: the setup header and where the compressed kernel lies.
 *
 * Source: Linux Documentation/arch/x86/boot.rst ("The Real-Mode Kernel Header", "Details
 * of Header Fields"). Fields younger than the file's protocol version are not read; they
 * get the value that boot.rst prescribes for older kernels.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "image/image_private.h"

#define SECTOR_BYTES 512
#define SYSSIZE_UNIT_BYTES UINT64_C(16)

/* Offsets of the header's fields. */
#define SETUP_SECTS 0x1f1
#define SYSSIZE 0x1f4
#define BOOT_FLAG 0x1fe
#define JUMP_DISTANCE 0x201
#define JUMP_END 0x202
#define HEADER_MAGIC 0x202
#define VERSION 0x206
#define KERNEL_VERSION 0x20e
#define LOADFLAGS 0x211
#define INITRD_ADDR_MAX 0x22c
#define KERNEL_ALIGNMENT 0x230
#define RELOCATABLE_KERNEL 0x234
#define XLOADFLAGS 0x236
#define CMDLINE_SIZE 0x238
#define PAYLOAD_OFFSET 0x248
#define PAYLOAD_LENGTH 0x24c
#define PREF_ADDRESS 0x258
#define INIT_SIZE 0x260

/* All fields read here lie before this byte. */
#define HEADER_BYTES 0x264

#define BOOT_FLAG_VALUE 0xaa55
#define LOADFLAGS_LOADED_HIGH 0x01

#define DEFAULT_SETUP_SECTS 4
#define DEFAULT_CMDLINE_LIMIT 255
#define DEFAULT_INITRD_LAST_BYTE UINT32_C(0x37ffffff)
#define DEFAULT_PREFERRED_GPA UINT64_C(0x100000)

/* Before 2.10 no field says how much memory a kernel needs to unpack itself. Kernels of
 * that time unpack to about twice their size, in place; twice that is safe. */
#define INIT_BYTES_PER_KERNEL_BYTE 4

/* A kernel that is not relocatable needs no alignment but that of pages. */
#define DEFAULT_ALIGNMENT 4096

static const char header_magic[] = {'H', 'd', 'r', 'S'};

static bool matches(const struct image_head *head, const struct image *image)
{
    (void)image;
    return image_head_has(head, HEADER_MAGIC, header_magic, sizeof(header_magic));
}

static int check_kind(const uint8_t *header, struct error *err)
{
    uint16_t version = load_le16(header + VERSION);
    uint16_t boot_flag = load_le16(header + BOOT_FLAG);

    if (boot_flag != BOOT_FLAG_VALUE)
        return error_set(err, -ENOEXEC, "bzImage: boot_flag is 0x%04x, not 0x%04x",
                         boot_flag, BOOT_FLAG_VALUE);
    if (version < 0x0200)
        return error_set(err, -ENOEXEC,
                         "bzImage: boot protocol %u.%02u is older than 2.00",
                         version >> 8, version & 0xff);
    if ((header[LOADFLAGS] & LOADFLAGS_LOADED_HIGH) == 0)
        return error_set(err, -ENOEXEC,
                         "is a zImage (loadflags 0x%02x has LOADED_HIGH clear); husk "
                         "boots bzImages only",
                         header[LOADFLAGS]);
    return 0;
}

/* Where the two parts of the file are. */
static int read_sizes(const struct source *source, const uint8_t *header,
                      struct image_bzimage *bzimage, struct error *err)
{
    uint32_t setup_sects =
        header[SETUP_SECTS] == 0 ? DEFAULT_SETUP_SECTS : header[SETUP_SECTS];
    uint32_t setup_bytes = (setup_sects + 1) * SECTOR_BYTES;
    /* 16 bits wide before 2.04. The file need not fill the last unit: Memtest86+'s
     * does not. */
    uint64_t promised_bytes = bzimage->version < 0x0204
                                  ? load_le16(header + SYSSIZE) * SYSSIZE_UNIT_BYTES
                                  : load_le32(header + SYSSIZE) * SYSSIZE_UNIT_BYTES;

    if (source->size_bytes <= setup_bytes ||
        source->size_bytes - setup_bytes + (SYSSIZE_UNIT_BYTES - 1) < promised_bytes)
        return error_set(err, -ENOEXEC,
                         "bzImage is truncated: %" PRIu32 " bytes of setup and %" PRIu64
                         " bytes of kernel are promised, but the file ends at byte "
                         "%" PRIu64,
                         setup_bytes, promised_bytes, source->size_bytes);
    if (source->size_bytes - setup_bytes > UINT32_MAX)
        return error_set(err, -ENOEXEC,
                         "bzImage has %" PRIu64 " bytes; its header cannot describe that",
                         source->size_bytes);
    bzimage->setup_bytes = setup_bytes;
    bzimage->kernel_bytes = (uint32_t)(source->size_bytes - setup_bytes);
    bzimage->header_end = (uint64_t)JUMP_END + header[JUMP_DISTANCE];
    return 0;
}

static void read_limits(const uint8_t *header, struct image_bzimage *bzimage)
{
    uint16_t version = bzimage->version;

    bzimage->loadflags = header[LOADFLAGS];
    bzimage->xloadflags = version < 0x020c ? 0 : load_le16(header + XLOADFLAGS);
    bzimage->cmdline_limit =
        version < 0x0206 ? DEFAULT_CMDLINE_LIMIT : load_le32(header + CMDLINE_SIZE);
    bzimage->initrd_last_byte =
        version < 0x0203 ? DEFAULT_INITRD_LAST_BYTE : load_le32(header + INITRD_ADDR_MAX);
}

/* Where the protected-mode part may lie, and how much memory it needs there. */
static int read_placement(const uint8_t *header, struct image_bzimage *bzimage,
                          struct error *err)
{
    uint16_t version = bzimage->version;
    uint64_t init_bytes = (uint64_t)bzimage->kernel_bytes * INIT_BYTES_PER_KERNEL_BYTE;

    bzimage->relocatable = version >= 0x0205 && header[RELOCATABLE_KERNEL] != 0;
    bzimage->alignment =
        bzimage->relocatable ? load_le32(header + KERNEL_ALIGNMENT) : DEFAULT_ALIGNMENT;
    if (bzimage->alignment == 0 || (bzimage->alignment & (bzimage->alignment - 1)) != 0)
        return error_set(err, -ENOEXEC,
                         "bzImage: kernel_alignment 0x%" PRIx32 " is no power of two",
                         bzimage->alignment);

    bzimage->preferred_gpa = DEFAULT_PREFERRED_GPA;
    if (version >= 0x020a) {
        bzimage->preferred_gpa = load_le64(header + PREF_ADDRESS);
        init_bytes = load_le32(header + INIT_SIZE);
    }
    bzimage->init_bytes =
        (uint32_t)min_u64(max_u64(init_bytes, bzimage->kernel_bytes), UINT32_MAX);
    if (!range_within(bzimage->preferred_gpa, bzimage->init_bytes, IMAGE_PHYSICAL_LIMIT))
        return error_set(err, -ENOEXEC,
                         "bzImage: pref_address 0x%" PRIx64 " with init_size 0x%" PRIx32
                         " goes beyond the 52 bits of a physical address",
                         bzimage->preferred_gpa, bzimage->init_bytes);
    return 0;
}

/* The compressed kernel. Its place is stated since 2.08; it is never searched for. */
static int read_payload(const struct source *source, const uint8_t *header,
                        const struct image_bzimage *bzimage,
                        struct image_payload *payload, struct error *err)
{
    uint8_t start[16];
    uint8_t size[4];
    uint32_t offset;
    uint32_t length;
    int status;

    if (bzimage->version < 0x0208)
        return 0;
    offset = load_le32(header + PAYLOAD_OFFSET);
    length = load_le32(header + PAYLOAD_LENGTH);
    if (!range_within(offset, length, bzimage->kernel_bytes))
        return error_set(err, -ENOEXEC,
                         "bzImage: payload_offset %" PRIu32
                         " with payload_length %" PRIu32 " goes beyond the %" PRIu32
                         " bytes of kernel",
                         offset, length, bzimage->kernel_bytes);
    if (length == 0)
        return 0;
    payload->offset = (uint64_t)bzimage->setup_bytes + offset;
    payload->size_bytes = length;
    status =
        source_read(source, payload->offset, start, min_u64(length, sizeof(start)), err);
    if (status < 0)
        return error_prefix(err, "bzImage payload");
    payload->codec = image_codec_detect(start, min_u64(length, sizeof(start)));
    if (payload->codec == IMAGE_CODEC_NONE || length < sizeof(size))
        return 0;
    /* gzip streams end with the unpacked size; Linux's build puts it behind all others.
     */
    status = source_read(source, payload->offset + length - sizeof(size), size,
                         sizeof(size), err);
    if (status < 0)
        return error_prefix(err, "bzImage payload");
    payload->unpacked_bytes = load_le32(size);
    return 0;
}

/* "6.1.0-57-amd64 (build@host) #1 SMP ...". For people only, so a pointer that leads
 * nowhere is no reason to refuse the kernel. */
static int read_kernel_version(const struct source *source, const uint8_t *header,
                               struct image_bzimage *bzimage, struct error *err)
{
    char *text = bzimage->kernel_version;
    uint64_t offset = load_le16(header + KERNEL_VERSION);
    size_t size;
    int status;

    if (offset == 0 || offset + SECTOR_BYTES >= bzimage->setup_bytes)
        return 0;
    offset += SECTOR_BYTES; /* counts from behind the boot sector */
    size = min_u64(sizeof(bzimage->kernel_version) - 1, bzimage->setup_bytes - offset);
    status = source_read(source, offset, text, size, err);
    if (status < 0)
        return error_prefix(err, "bzImage version text");
    text[size] = '\0';
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~')
            *text = '?';
    }
    return 0;
}

static int describe(const struct source *source, const struct image_head *head,
                    struct image *image, struct error *err)
{
    struct image_bzimage *bzimage = &image->bzimage;
    const uint8_t *header = head->bytes;
    int status;

    if (head->size < HEADER_BYTES)
        return error_set(err, -ENOEXEC,
                         "bzImage is truncated: its header needs %d bytes, but the file "
                         "ends at byte %zu",
                         HEADER_BYTES, head->size);
    status = check_kind(header, err);
    if (status < 0)
        return status;
    bzimage->version = load_le16(header + VERSION);
    status = read_sizes(source, header, bzimage, err);
    if (status < 0)
        return status;
    read_limits(header, bzimage);
    status = read_placement(header, bzimage, err);
    if (status == 0)
        status = read_payload(source, header, bzimage, &image->payload, err);
    if (status == 0)
        status = read_kernel_version(source, header, bzimage, err);
    return status;
}

const struct image_format_ops image_bzimage_ops = {
    .name = "bzImage",
    .matches = matches,
    .describe = describe,
};
