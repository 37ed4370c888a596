/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel file says about itself. Pure: bytes in, facts out; nothing is loaded, no
 * guest is known. Formats are told by content, never by name.
 *
 *   image_describe   facts of an ELF, bzImage, compressed or firmware file (formats.c)
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
    IMAGE_MULTIBOOT,  /* flat: no ELF, loaded by the addresses in its Multiboot header */
    IMAGE_FIRMWARE,   /* raw code that ends at 4 GiB; only if asked for */
    IMAGE_COMPRESSED, /* as a whole, and holds an ELF or a flat Multiboot kernel */
};

enum image_codec {
    IMAGE_CODEC_NONE, /* the payload is no known compressed stream */
    IMAGE_CODEC_GZIP,
    IMAGE_CODEC_BZIP2,
    IMAGE_CODEC_LZMA,
    IMAGE_CODEC_XZ,
    IMAGE_CODEC_LZO,
    IMAGE_CODEC_LZ4, /* legacy frame: Linux's */
    IMAGE_CODEC_ZSTD,
    IMAGE_CODEC_LZ4_FRAME, /* lz4(1)'s */
};

/* A compressed kernel in a file. */
struct image_payload {
    uint64_t offset;         /* from the file's start */
    uint64_t size_bytes;     /* 0: there is none */
    uint64_t unpacked_bytes; /* as promised; 0: not known before it is unpacked */
    enum image_codec codec;
};

/* One PT_LOAD with bytes or bss. Addresses are physical (p_paddr). */
struct image_segment {
    uint64_t gpa;
    uint64_t file_offset;
    uint64_t file_bytes;   /* <= memory_bytes */
    uint64_t memory_bytes; /* not 0; gpa + memory_bytes is at most 2^52 */
};
#define IMAGE_MAX_SEGMENTS 64

/* The section headers, for kernels that want to know their symbols. */
struct image_elf_sections {
    uint64_t file_offset;
    uint16_t row_bytes;
    uint16_t count;       /* 0: there are none, or their table is not in the file */
    uint16_t names_index; /* e_shstrndx */
};

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
    struct image_elf_sections sections;
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
    uint32_t init_bytes;      /* memory needed from the load address on */
    char kernel_version[128]; /* "" if the header names none */
};

/* How far into a file a Multiboot header may reach (section 3.1 of either specification).
 */
#define IMAGE_MULTIBOOT1_SEARCH_BYTES 8192
#define IMAGE_MULTIBOOT2_SEARCH_BYTES 32768

/* What is wrong with a Multiboot header that was found; "" if it is in order. Such a file
 * can still have another way in. */
#define IMAGE_PROBLEM_BYTES 192

/* Where a Multiboot header places its file, in place of an ELF's program headers. */
struct image_multiboot_addresses {
    uint32_t header_addr;
    uint32_t load_addr;     /* Multiboot 2: 0xffffffff is the file's beginning */
    uint32_t load_end_addr; /* 0: the end of the file */
    uint32_t bss_end_addr;  /* 0: no bss */
};

/* What a Multiboot header wishes to see; 0: it does not care. */
struct image_multiboot_video {
    uint32_t width; /* pixels, or characters in a text mode */
    uint32_t height;
    uint32_t depth; /* bits a pixel; 0 in a text mode */
};

/* Multiboot 1 (specification 0.6.96). */
struct image_multiboot1 {
    bool present;
    uint64_t header_offset;
    uint32_t flags;
    bool has_addresses; /* flag 16 */
    struct image_multiboot_addresses addresses;
    uint32_t entry_addr;
    struct image_segment
        segment;              /* what the addresses place, unless there is a problem */
    bool has_video;           /* flag 2 */
    uint32_t video_mode_type; /* 0: graphics, 1: text */
    struct image_multiboot_video video;
    char problem[IMAGE_PROBLEM_BYTES];
};

struct image_multiboot2_tag {
    uint16_t type;
    bool optional;
    uint32_t size_bytes;
};

struct image_multiboot2_request {
    uint32_t type; /* of an information tag */
    bool optional;
};

enum image_multiboot2_preference {
    IMAGE_MULTIBOOT2_ANYWHERE,
    IMAGE_MULTIBOOT2_LOWEST,
    IMAGE_MULTIBOOT2_HIGHEST,
};

struct image_multiboot2_relocation {
    uint32_t min_addr;
    uint32_t max_addr;  /* the highest address of the image, inclusive; not < min_addr */
    uint32_t alignment; /* a power of two */
    enum image_multiboot2_preference preference;
};

#define IMAGE_MULTIBOOT2_MAX_TAGS 32
#define IMAGE_MULTIBOOT2_MAX_REQUESTS 64

/* Multiboot 2 (specification 2.0). */
struct image_multiboot2 {
    bool present;
    uint64_t header_offset;
    uint32_t header_bytes; /* header_length */
    size_t tag_count;
    struct image_multiboot2_tag tags[IMAGE_MULTIBOOT2_MAX_TAGS]; /* but for the end tag */
    size_t request_count;
    struct image_multiboot2_request requests[IMAGE_MULTIBOOT2_MAX_REQUESTS];
    bool has_addresses;
    struct image_multiboot_addresses addresses;
    struct image_segment
        segment; /* what the addresses place, unless there is a problem */
    bool has_entry;
    uint32_t entry_addr;
    uint32_t console_flags; /* bit 0: cannot do without a console */
    bool console_optional;
    bool has_video;
    struct image_multiboot_video video;
    bool relocatable;
    struct image_multiboot2_relocation relocation;
    char problem[IMAGE_PROBLEM_BYTES];
};

/* "relocatable"; NULL for a type that the specification does not know. */
const char *image_multiboot2_tag_name(uint16_t type);
/* The same for tags of the information, which a header can ask for: "memory map". */
const char *image_multiboot2_info_name(uint32_t type);

struct image {
    enum image_format format;
    uint64_t file_bytes;
    struct image_elf elf;         /* IMAGE_ELF32, IMAGE_ELF64 */
    struct image_bzimage bzimage; /* IMAGE_BZIMAGE */
    struct image_payload payload; /* IMAGE_BZIMAGE (none before 2.08), IMAGE_COMPRESSED */
    struct image_multiboot1 multiboot1; /* in whatever format */
    struct image_multiboot2 multiboot2;
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
#define IMAGE_FIRMWARE_LIMIT UINT64_C(0x1000000)
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

/* ---- cache.c, cache_library.c: unpacked kernels and common pages in files that any
 * number of guests map ---- */

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

/* "found in the image cache", ... */
const char *image_cache_outcome_text(enum image_cache_outcome outcome);

struct image_cache_result {
    int fd; /* read-only, caller closes */
    uint64_t size_bytes;
    enum image_cache_outcome outcome;
    char path[4096];  /* of the entry; "" when bypassed */
    char reason[256]; /* BYPASSED, REBUILT: why; else "" */
};

/* Opens what the payload unpacks to. A cache that cannot be used is no error (BYPASSED);
 * a payload that cannot be unpacked is. */
int image_cache_open(const struct source *source, const struct image_payload *payload,
                     const struct image_cache_options *options,
                     struct image_cache_result *result, struct error *err) MUST_CHECK;

/* Two files, open for reading and writing and perhaps new, for what guests of one kind
 * have in common (memory/commons.h). `identity` is whatever bytes tell the kinds apart.
 * Nothing but us may use the cache, so an entry holds what we have put there. */
struct image_cache_library {
    int pages_fd; /* owned, as is the other one */
    int marks_fd;
    char path[4096]; /* of the pages, for messages */
};
int image_cache_library_open(const struct image_cache_options *options,
                             const void *identity, size_t identity_bytes,
                             struct image_cache_library *library,
                             struct error *err) MUST_CHECK;
void image_cache_library_close(struct image_cache_library *library);

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
