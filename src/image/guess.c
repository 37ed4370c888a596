/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file that is no kernel seems to be, for messages only: nothing is decided by it.
 *
 * Sources: the formats' own specifications; most marks are also in file(1)'s database.
 */
#include <string.h>

#include "base/bytes.h"
#include "image/image_private.h"

#define UNPACK "unpack it first"
#define AS_INITRD "a file like this is given with --initrd"
#define DISK "copy the kernel out of it first"

#define MAX_MARK_BYTES 16

/* Bytes looked at to tell text. */
#define TEXT_SAMPLE_BYTES 512

struct mark {
    uint32_t offset;
    uint8_t size;
    char bytes[MAX_MARK_BYTES];
    struct image_guess_row row;
};

#define MARK(at, text, ...)                                                              \
    {                                                                                    \
        .offset = (at), .size = sizeof(text) - 1, .bytes = text, .row = { __VA_ARGS__ }  \
    }

/* In the order they are tried: what is told by more bytes, or holds other things inside,
 * comes before what is told by few. */
static const struct mark marks[] = {
    MARK(0,
         "\x7f"
         "ELF",
         "an ELF file", NULL),
    MARK(0x202, "HdrS", "a Linux bzImage", NULL),
    /* Compressed data */
    MARK(0, "\x1f\x8b", "gzip-compressed data", UNPACK),
    MARK(0, "\x1f\x9d", "compress-compressed data", UNPACK),
    MARK(0, "BZh", "bzip2-compressed data", UNPACK),
    MARK(0,
         "\xfd"
         "7zXZ\0",
         "xz-compressed data", UNPACK),
    MARK(0, "\x5d\0\0", "lzma-compressed data", UNPACK),
    MARK(0, "\x89LZO\0\r\n\x1a\n", "lzop-compressed data", UNPACK),
    MARK(0, "\x04\x22\x4d\x18", "lz4-compressed data", UNPACK),
    MARK(0, "\x02\x21\x4c\x18", "lz4-compressed data (legacy frame)", UNPACK),
    MARK(0, "\x28\xb5\x2f\xfd", "zstd-compressed data", UNPACK),
    /* Archives */
    MARK(0, "070701", "a cpio archive", AS_INITRD),
    MARK(0, "070702", "a cpio archive", AS_INITRD),
    MARK(0, "070707", "a cpio archive of the old format", NULL),
    MARK(257, "ustar", "a tar archive", UNPACK),
    MARK(0, "PK\x03\x04", "a zip archive", UNPACK),
    MARK(0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", UNPACK),
    MARK(0, "!<arch>\ndebian", "a Debian package", UNPACK),
    MARK(0, "!<arch>\n", "an ar archive", NULL),
    MARK(0, "\xed\xab\xee\xdb", "an RPM package", UNPACK),
    /* Disk images, file systems */
    MARK(0, "QFI\xfb", "a qcow2 disk image", DISK),
    MARK(0, "KDMV", "a VMDK disk image", DISK),
    MARK(0, "vhdxfile", "a VHDX disk image", DISK),
    MARK(64, "\x7f\x10\xda\xbe", "a VDI disk image", DISK),
    MARK(0, "LUKS\xba\xbe", "a LUKS-encrypted volume", DISK),
    MARK(0x8001, "CD001", "an ISO 9660 image (CD or DVD)", DISK),
    MARK(0x438, "\x53\xef", "an ext2, ext3 or ext4 file system", DISK),
    MARK(0, "XFSB", "an XFS file system", DISK),
    MARK(0x10040, "_BHRfS_M", "a Btrfs file system", DISK),
    MARK(0, "hsqs", "a squashfs file system", DISK),
    MARK(0x400, "\xe2\xe1\xf5\xe0", "an EROFS file system", DISK),
    MARK(0x400, "\x10\x20\xf5\xf2", "an F2FS file system", DISK),
    MARK(54, "FAT1", "a FAT file system", DISK),
    MARK(82, "FAT32", "a FAT file system", DISK),
    MARK(3, "NTFS    ", "an NTFS file system", DISK),
    MARK(4086, "SWAPSPACE2", "a swap area", DISK),
    MARK(512, "EFI PART", "a disk image with a GPT", DISK),
    /* Programs and kernels of other kinds */
    MARK(56, "ARM\x64", "an arm64 boot image", "husk runs x86 kernels"),
    MARK(56, "RSC\x05", "a RISC-V boot image", "husk runs x86 kernels"),
    MARK(0, "MZ", "a DOS, Windows or EFI program", NULL),
    MARK(0, "\xcf\xfa\xed\xfe", "a Mach-O program", NULL),
    MARK(0, "\xce\xfa\xed\xfe", "a Mach-O program", NULL),
    MARK(0, "\xca\xfe\xba\xbe", "a Mach-O or Java program", NULL),
    MARK(0, "\0asm", "a WebAssembly program", NULL),
    MARK(0, "\x27\x05\x19\x56", "a U-Boot image", NULL),
    MARK(0, "\xd0\x0d\xfe\xed", "a device tree", NULL),
    MARK(0, "ANDROID!", "an Android boot image", UNPACK),
    MARK(0, "#!", "a script", NULL),
    MARK(0x1fe, "\x55\xaa", "a boot sector or a disk image with an MBR", DISK),
};

static const struct image_guess_row text_row = {.what = "a text file"};
static const struct image_guess_row zeros_row = {.what = "a file that starts with zeros"};

static bool has_mark(const struct source *source, const struct mark *mark)
{
    uint8_t bytes[MAX_MARK_BYTES];
    struct error ignored = ERROR_NONE;

    return source_read(source, mark->offset, bytes, mark->size, &ignored) == 0 &&
           memcmp(bytes, mark->bytes, mark->size) == 0;
}

static bool is_text_byte(uint8_t byte)
{
    return (byte >= ' ' && byte <= '~') || byte == '\n' || byte == '\r' || byte == '\t';
}

/* Files without any mark: told by the kind of all their first bytes. */
static const struct image_guess_row *guess_by_sample(const struct source *source)
{
    uint8_t bytes[TEXT_SAMPLE_BYTES];
    size_t size = min_u64(source->size_bytes, sizeof(bytes));
    struct error ignored = ERROR_NONE;
    size_t text_bytes = 0;
    size_t zero_bytes = 0;

    if (size == 0 || source_read(source, 0, bytes, size, &ignored) < 0)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        text_bytes += is_text_byte(bytes[i]);
        zero_bytes += bytes[i] == 0;
    }
    if (text_bytes == size)
        return &text_row;
    return zero_bytes == size ? &zeros_row : NULL;
}

const struct image_guess_row *image_guess_find(const struct source *source)
{
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        if (has_mark(source, &marks[i]))
            return &marks[i].row;
    }
    return guess_by_sample(source);
}

const char *image_guess(const struct source *source)
{
    const struct image_guess_row *row = image_guess_find(source);

    return row == NULL ? NULL : row->what;
}
