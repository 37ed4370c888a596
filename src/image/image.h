/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel file says about itself. Pure: bytes in, facts out; nothing is loaded, no
 * guest is known. Formats are told by content, never by name.
 *
 *   image_describe   facts of an ELF, bzImage or firmware file (table: formats.c)
 *   image_unpack     a compressed payload -> the bytes inside (compression.c)
 *   image_cache_*    the same, but kept in a content-addressed file that guests can map
 * (cache.c)
 *
 * Any thread.
 */
#ifndef HUSK_IMAGE_IMAGE_H
#define HUSK_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/source.h"

enum image_format {
    IMAGE_ELF32,
    IMAGE_ELF64,
    IMAGE_BZIMAGE,
    IMAGE_MULTIBOOT, /* flat: no ELF, loaded by its Multiboot 1 header's address fields */
    IMAGE_FIRMWARE,  /* raw code that ends at 4 GiB; only if asked for */
};

enum image_codec {
    IMAGE_CODEC_NONE, /* the payload is no known compressed stream */
    IMAGE_CODEC_GZIP,
    IMAGE_CODEC_BZIP2,
    IMAGE_CODEC_LZMA,
    IMAGE_CODEC_XZ,
    IMAGE_CODEC_LZO,
    IMAGE_CODEC_LZ4, /* legacy frame */
    IMAGE_CODEC_ZSTD,
};

/* One PT_LOAD with bytes or bss. Addresses are physical (p_paddr). */
struct image_segment {
    uint64_t gpa;
    uint64_t file_offset;
    uint64_t file_bytes;   /* <= memory_bytes */
    uint64_t memory_bytes; /* not 0; gpa + memory_bytes is at most 2^52 */
};
#define IMAGE_MAX_SEGMENTS 64

struct image_elf {
    uint16_t machine;        /* 3: i386, 62: x86-64 */
    uint64_t entry;          /* e_entry as it stands in the file: a virtual address */
    uint64_t entry_physical; /* e_entry translated by the segment that holds it; == entry
                              * where no segment does */
    size_t segment_count;
    struct image_segment segments[IMAGE_MAX_SEGMENTS]; /* in file order, no overlap */
    bool has_pvh; /* Xen note of type 18 (XEN_ELFNOTE_PHYS32_ENTRY) */
    uint32_t pvh_entry;
    uint8_t pvh_note_bytes; /* 4 or 8 */
};

/* Linux's setup header (Documentation/arch/x86/boot.rst). */
struct image_bzimage {
    uint16_t version; /* 0x020f = 2.15 */
    uint8_t loadflags;
    uint16_t xloadflags; /* 0 before 2.12 */
    uint32_t
        setup_bytes; /* (setup_sects + 1) * 512: where the protected-mode part starts */
    uint32_t kernel_bytes;     /* the protected-mode part: the rest of the file */
    uint64_t header_end;       /* 0x202 + byte[0x201]: end of the setup header */
    uint32_t cmdline_limit;    /* in bytes without the NUL */
    uint32_t initrd_last_byte; /* highest address an initrd may touch */
    bool relocatable;
    uint32_t alignment;
    uint64_t preferred_gpa;
    uint32_t init_bytes;     /* memory needed from the load address on */
    uint64_t payload_offset; /* from the file's start */
    uint32_t payload_bytes;  /* 0: none (before 2.08) */
    enum image_codec codec;
    uint32_t unpacked_bytes;  /* what the payload's trailer says; 0: not known */
    char kernel_version[128]; /* "" if the header names none */
};

/* Multiboot headers found in a file (facts; boot/multiboot.c uses them). */
struct image_multiboot {
    bool present;
    uint8_t major; /* 1 or 2 */
    uint64_t header_offset;
    uint32_t flags;        /* Multiboot 1 */
    uint32_t header_bytes; /* Multiboot 2: header_length */
    bool has_addresses;    /* Multiboot 1 flag bit 16: the five below */
    uint32_t header_addr;
    uint32_t load_addr;
    uint32_t load_end_addr;
    uint32_t bss_end_addr;
    uint32_t entry_addr;
};

struct image {
    enum image_format format;
    uint64_t file_bytes;
    struct image_elf elf;         /* IMAGE_ELF32, IMAGE_ELF64 */
    struct image_bzimage bzimage; /* IMAGE_BZIMAGE */
    struct image_multiboot multiboot1;
    struct image_multiboot multiboot2;
};

const char *image_format_name(enum image_format format); /* "ELF64", "bzImage", ... */
const char *image_codec_name(enum image_codec codec);    /* "xz", ... */

/* Describes `source`. Fails with one sentence if the file is none of the known formats
 * ("is gzip-compressed data, not a kernel; unpack it first"), is damaged, or has a
 * field out of range (the sentence names the field and its value). */
int image_describe(const struct source *source, struct image *image,
                   struct error *err) MUST_CHECK;

/* Checks a file to be used as raw firmware: multiple of 4 KiB, at most
 * IMAGE_FIRMWARE_LIMIT, which is LAYOUT_FIRMWARE_LIMIT (image/ lies below x86/). */
#define IMAGE_FIRMWARE_LIMIT UINT64_C(0x40000)
int image_describe_firmware(const struct source *source, struct image *image,
                            struct error *err) MUST_CHECK;

/* What the first bytes look like, for messages: "an XFS file system", "a cpio archive",
 * "gzip-compressed data", ...; NULL if unknown. */
const char *image_guess(const struct source *source);

/* The codec of a compressed stream by its first bytes. */
enum image_codec image_codec_detect(const uint8_t *head, size_t size);

/* Unpacked bytes go out in order through this. 0 or negative errno with text. */
typedef int image_sink(void *context, const void *bytes, size_t size, struct error *err);

/* Unpacks `size_bytes` at `offset`. Output beyond `limit_bytes` is -EFBIG. Trailing bytes
 * that Linux puts behind the stream (the size) are allowed; where unpacked_bytes is known
 * the output must have exactly that size (0: unknown). */
int image_unpack(const struct source *source, uint64_t offset, uint64_t size_bytes,
                 enum image_codec codec, uint64_t unpacked_bytes, uint64_t limit_bytes,
                 image_sink *sink, void *context, struct error *err) MUST_CHECK;

/* ---- cache.c: unpacked kernels in files that any number of guests map
 * ------------------- */

struct image_cache_options {
    bool disabled;         /* --no-cache: unpack into an unnamed memory file */
    const char *directory; /* NULL: $HUSK_CACHE_DIR, $XDG_CACHE_HOME/husk, ~/.cache/husk;
                            * for root /var/cache/husk */
    uint64_t limit_bytes;  /* oldest entries go beyond this; 0: IMAGE_CACHE_LIMIT */
};
#define IMAGE_CACHE_LIMIT (UINT64_C(2) << 30)

enum image_cache_outcome {
    IMAGE_CACHE_HIT,
    IMAGE_CACHE_FILLED,   /* unpacked now, and kept for the next start */
    IMAGE_CACHE_REBUILT,  /* an entry was there but damaged */
    IMAGE_CACHE_BYPASSED, /* unpacked into a memory file; `reason` says why */
};

struct image_cache_result {
    int fd; /* read-only, caller closes */
    uint64_t size_bytes;
    enum image_cache_outcome outcome;
    char path[4096];  /* of the entry; "" when bypassed */
    char reason[256]; /* BYPASSED, REBUILT: why; else "" */
};

/* Opens the unpacked payload of a bzImage. A cache that cannot be used is no error
 * (BYPASSED); a payload that cannot be unpacked is. */
int image_cache_open(const struct source *source, const struct image_bzimage *bzimage,
                     const struct image_cache_options *options,
                     struct image_cache_result *result, struct error *err) MUST_CHECK;

/* `husk cache list|clear`. */
struct image_cache_entry {
    char name[96];
    uint64_t size_bytes;
    int64_t used_seconds; /* last use, seconds since the epoch */
};
int image_cache_directory(const struct image_cache_options *options, char *path,
                          size_t path_size, struct error *err) MUST_CHECK;
/* Calls `visit` for each entry, newest first. A missing directory is an empty cache. */
int image_cache_list(const struct image_cache_options *options,
                     void (*visit)(void *context, const struct image_cache_entry *entry),
                     void *context, struct error *err) MUST_CHECK;
int image_cache_clear(const struct image_cache_options *options, size_t *removed,
                      struct error *err) MUST_CHECK;

#endif
