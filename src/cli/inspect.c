/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk inspect: what a kernel file says about itself, and by which protocols it can be
 * entered or why not. The answers to the latter are boot's own: each protocol is planned
 * as `husk plan` would, with plenty of memory.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "boot/boot.h"
#include "cli/cli.h"
#include "cli/inspect_private.h"
#include "cli/json_text.h"

#define JSON_SCHEMA 1

/* No kernel is refused for want of memory here. */
#define PLAN_MEMORY_BYTES (16 * GIB)

/* What is tried, the choice of `husk run` first. */
static const enum boot_protocol protocols[] = {
    BOOT_AUTO, BOOT_PVH, BOOT_LINUX64, BOOT_LINUX32, BOOT_MULTIBOOT1, BOOT_MULTIBOOT2,
};
#define PROTOCOLS ARRAY_SIZE(protocols)

struct way {
    bool possible;
    enum boot_protocol protocol;   /* what auto has chosen; else what was asked for */
    char reason[ERROR_TEXT_BYTES]; /* auto: why this one; else why not, "" if possible */
};

struct inspection {
    const char *path;
    struct image image;
    struct image_payload compressed; /* as in boot_inputs */
    bool has_unpacked;               /* `unpacked` is what the payload holds */
    struct image unpacked;
    struct way ways[PROTOCOLS]; /* as `protocols` */
};

/* ---- gathering */

/* boot's sentences begin with the file, which the user has just named. */
static const char *without_path(const char *sentence, const char *path)
{
    char prefix[4200];
    size_t size;

    (void)snprintf(prefix, sizeof(prefix), "kernel %s: ", path);
    size = strlen(prefix);
    return strncmp(sentence, prefix, size) == 0 ? sentence + size : sentence;
}

static void way_explain(struct way *way, const char *reason)
{
    (void)snprintf(way->reason, sizeof(way->reason), "%s", reason);
}

static void try_protocol(struct boot_inputs *inputs, struct boot_options *options,
                         enum boot_protocol protocol, struct way *way)
{
    struct boot_plan *plan = NULL;
    struct error err = ERROR_NONE;

    options->protocol = protocol;
    way->protocol = protocol;
    way->possible = boot_inputs_choose(inputs, options, &err) == 0 &&
                    boot_plan_build(inputs, options, &plan, &err) == 0;
    if (!way->possible) {
        way_explain(way, without_path(err.text, options->kernel_path));
        return;
    }
    way->protocol = plan->protocol;
    if (protocol == BOOT_AUTO)
        way_explain(way, plan->protocol_reason);
    boot_plan_destroy(plan);
}

/* A payload that cannot be unpacked bars the protocols that need it, and no other. */
static bool needs_payload(enum boot_protocol protocol)
{
    return protocol == BOOT_AUTO || protocol == BOOT_PVH;
}

static int inspect(struct inspection *inspection, struct error *err)
{
    struct boot_options options = {
        .kernel_path = inspection->path,
        .cmdline = "",
        .protocol = BOOT_AUTO,
        .memory_bytes = PLAN_MEMORY_BYTES,
        .cpu_count = 1,
    };
    struct error ignored = ERROR_NONE;
    struct boot_inputs inputs;
    int status = boot_inputs_describe(&inputs, &options, err);

    if (status < 0) {
        options.protocol = BOOT_LINUX64; /* leaves the payload alone */
        if (boot_inputs_describe(&inputs, &options, &ignored) < 0)
            return status;
    }
    inspection->image = inputs.image;
    inspection->compressed = inputs.compressed;
    inspection->has_unpacked = inputs.has_unpacked;
    inspection->unpacked = inputs.unpacked_image;
    for (size_t i = 0; i < PROTOCOLS; i++) {
        if (status < 0 && needs_payload(protocols[i]))
            way_explain(&inspection->ways[i], without_path(err->text, inspection->path));
        else
            try_protocol(&inputs, &options, protocols[i], &inspection->ways[i]);
    }
    boot_inputs_close(&inputs);
    *err = ERROR_NONE; /* the damage is told with the facts */
    return 0;
}

static bool is_elf(const struct image *image)
{
    return image->format == IMAGE_ELF32 || image->format == IMAGE_ELF64;
}

static const char *machine_name(const struct image_elf *elf)
{
    return elf->machine == EM_386 ? "i386" : "x86-64";
}

/* ---- for people */

#define FIELD INSPECT_FIELD

static void print_elf(const struct image_elf *elf)
{
    (void)printf(FIELD "%s\n", "machine", machine_name(elf));
    if (elf->entry_physical == elf->entry)
        (void)printf(FIELD "0x%" PRIx64 "\n", "entry", elf->entry);
    else
        (void)printf(FIELD "0x%" PRIx64 ", physical 0x%" PRIx64 "\n", "entry", elf->entry,
                     elf->entry_physical);
    if (elf->has_pvh)
        (void)printf(FIELD "0x%" PRIx32 " (note of %u bytes)\n", "PVH entry",
                     elf->pvh_entry, elf->pvh_note_bytes);
    else
        (void)printf(FIELD "none\n", "PVH entry");
    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct image_segment *segment = &elf->segments[i];

        (void)printf(FIELD "0x%09" PRIx64 " %10" PRIu64 " bytes, %" PRIu64
                           " of them from file offset 0x%" PRIx64 "\n",
                     i == 0 ? "segments" : "", segment->gpa, segment->memory_bytes,
                     segment->file_bytes, segment->file_offset);
    }
}

static void print_payload(const struct inspection *inspection)
{
    const struct image_payload *payload = &inspection->image.payload;

    if (payload->size_bytes == 0) {
        (void)printf(FIELD "none\n", "payload");
        return;
    }
    if (payload->codec == IMAGE_CODEC_NONE)
        (void)printf(FIELD "%" PRIu64 " bytes at 0x%" PRIx64
                           ", not compressed in any known way\n",
                     "payload", payload->size_bytes, payload->offset);
    else
        (void)printf(FIELD "%s, %" PRIu64 " bytes at 0x%" PRIx64 ", %" PRIu64
                           " bytes unpacked\n",
                     "payload", image_codec_name(payload->codec), payload->size_bytes,
                     payload->offset, payload->unpacked_bytes);
    if (!inspection->has_unpacked)
        return;
    (void)printf(FIELD "%s\n", "contains",
                 image_format_name(inspection->unpacked.format));
    if (is_elf(&inspection->unpacked))
        print_elf(&inspection->unpacked.elf);
}

static void print_bzimage(const struct inspection *inspection)
{
    const struct image_bzimage *bzimage = &inspection->image.bzimage;
    unsigned int version = bzimage->version;

    if (bzimage->kernel_version[0] != '\0')
        (void)printf(FIELD "%s\n", "kernel version", bzimage->kernel_version);
    (void)printf(FIELD "%u.%02u, loadflags 0x%02x, xloadflags 0x%04x\n", "boot protocol",
                 version >> 8, version & 0xff, bzimage->loadflags, bzimage->xloadflags);
    (void)printf(FIELD "0x%" PRIx64 ", %s, %" PRIu32 " bytes of memory\n", "load address",
                 bzimage->preferred_gpa,
                 bzimage->relocatable ? "relocatable" : "not relocatable",
                 bzimage->init_bytes);
    (void)printf(FIELD "at most %" PRIu32 " bytes\n", "command line",
                 bzimage->cmdline_limit);
    (void)printf(FIELD "anywhere up to 0x%" PRIx32 "\n", "initrd",
                 bzimage->initrd_last_byte);
    print_payload(inspection);
}

static void print_ways(const struct way *ways)
{
    for (size_t i = 1; i < PROTOCOLS; i++)
        (void)printf(FIELD "%s%s\n", boot_protocol_name(protocols[i]),
                     ways[i].possible ? "possible" : "no: ", ways[i].reason);
    if (ways[0].possible)
        (void)printf(FIELD "takes %s: %s\n", "husk run",
                     boot_protocol_name(ways[0].protocol), ways[0].reason);
    else
        (void)printf(FIELD "does not boot it: %s\n", "husk run", ways[0].reason);
}

static void print_text(const struct inspection *inspection)
{
    const struct image *image = &inspection->image;

    if (inspection->compressed.size_bytes != 0)
        (void)printf("%s: %s-compressed %s, %" PRIu64 " bytes, %" PRIu64 " unpacked\n",
                     inspection->path, image_codec_name(inspection->compressed.codec),
                     image_format_name(image->format), inspection->compressed.size_bytes,
                     image->file_bytes);
    else
        (void)printf("%s: %s, %" PRIu64 " bytes\n", inspection->path,
                     image_format_name(image->format), image->file_bytes);
    if (is_elf(image))
        print_elf(&image->elf);
    else if (image->format == IMAGE_BZIMAGE)
        print_bzimage(inspection);
    inspect_print_multiboot(image);
    print_ways(inspection->ways);
}

/* ---- for programs */

/* Physical addresses have at most 52 bits, sizes lie in a file: they fit. */
static json_t *json_number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

/* Virtual addresses do not fit in a JSON number. */
static json_t *json_address(uint64_t address)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "0x%" PRIx64, address);
    return json_string(text);
}

static json_t *json_segments(const struct image_elf *elf)
{
    json_t *array = json_array();

    for (size_t i = 0; i < elf->segment_count; i++) {
        const struct image_segment *segment = &elf->segments[i];

        (void)json_array_append_new(
            array, json_pack("{s:o, s:o, s:o, s:o}", "gpa", json_number(segment->gpa),
                             "file_offset", json_number(segment->file_offset),
                             "file_bytes", json_number(segment->file_bytes),
                             "memory_bytes", json_number(segment->memory_bytes)));
    }
    return array;
}

/* null for what is no ELF */
static json_t *json_elf(const struct image *image)
{
    const struct image_elf *elf = &image->elf;
    json_t *pvh = json_null();

    if (!is_elf(image))
        return json_null();
    if (elf->has_pvh)
        pvh = json_pack("{s:I, s:i}", "entry", (json_int_t)elf->pvh_entry, "note_bytes",
                        (int)elf->pvh_note_bytes);
    return json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o}", "format", image_format_name(image->format),
        "machine", machine_name(elf), "entry", json_address(elf->entry), "entry_physical",
        json_address(elf->entry_physical), "pvh", pvh, "segments", json_segments(elf));
}

static json_t *json_payload(const struct inspection *inspection)
{
    const struct image_payload *payload = &inspection->image.payload;

    if (payload->size_bytes == 0)
        return json_null();
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o}", "codec", image_codec_name(payload->codec), "offset",
        json_number(payload->offset), "size_bytes", json_number(payload->size_bytes),
        "unpacked_bytes", json_number(payload->unpacked_bytes), "elf",
        inspection->has_unpacked ? json_elf(&inspection->unpacked) : json_null());
}

static json_t *json_bzimage(const struct inspection *inspection)
{
    const struct image_bzimage *bzimage = &inspection->image.bzimage;
    unsigned int version = bzimage->version;
    char version_text[8];

    if (inspection->image.format != IMAGE_BZIMAGE)
        return json_null();
    (void)snprintf(version_text, sizeof(version_text), "%u.%02u", version >> 8,
                   version & 0xff);
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "kernel_version",
        bzimage->kernel_version, "protocol_version", version_text, "loadflags",
        (int)bzimage->loadflags, "xloadflags", (int)bzimage->xloadflags, "preferred_gpa",
        json_number(bzimage->preferred_gpa), "relocatable", (int)bzimage->relocatable,
        "alignment", json_number(bzimage->alignment), "init_bytes",
        json_number(bzimage->init_bytes), "cmdline_limit",
        json_number(bzimage->cmdline_limit), "initrd_last_byte",
        json_number(bzimage->initrd_last_byte), "payload", json_payload(inspection));
}

static json_t *json_ways(const struct way *ways)
{
    json_t *array = json_array();

    for (size_t i = 1; i < PROTOCOLS; i++)
        (void)json_array_append_new(array,
                                    json_pack("{s:s, s:b, s:o}", "protocol",
                                              boot_protocol_name(protocols[i]),
                                              "possible", (int)ways[i].possible, "reason",
                                              cli_json_text(ways[i].reason)));
    return array;
}

static json_t *json_inspection(const struct inspection *inspection)
{
    const struct image *image = &inspection->image;
    const struct way *chosen = &inspection->ways[0];
    const char *protocol = chosen->possible ? boot_protocol_name(chosen->protocol) : NULL;
    const char *compression = inspection->compressed.size_bytes == 0
                                  ? NULL
                                  : image_codec_name(inspection->compressed.codec);

    return json_pack("{s:i, s:o, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o}",
                     "schema", JSON_SCHEMA, "path", cli_json_text(inspection->path),
                     "format", image_format_name(image->format), "compression",
                     compression, "size_bytes", json_number(image->file_bytes), "elf",
                     json_elf(image), "bzimage", json_bzimage(inspection), "multiboot1",
                     inspect_json_multiboot1(image), "multiboot2",
                     inspect_json_multiboot2(image), "protocols",
                     json_ways(inspection->ways), "protocol", protocol, "reason",
                     cli_json_text(chosen->reason));
}

/* Takes `document` over; NULL if it could not be built. */
static int print_json(json_t *document, struct error *err)
{
    int status = 0;

    if (document == NULL)
        return error_set(err, -ENOMEM, "out of memory for the JSON document");
    if (json_dumpf(document, stdout, JSON_INDENT(2)) < 0 || putchar('\n') == EOF)
        status = error_set(err, -EIO, "cannot write to standard output");
    json_decref(document);
    return status;
}

/* ---- the command */

static int parse(int argc, char **argv, const char **path, bool *as_json,
                 struct error *err)
{
    bool options_ended = false;

    *path = NULL;
    *as_json = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (!options_ended && strcmp(word, "--") == 0)
            options_ended = true;
        else if (!options_ended && strcmp(word, "--json") == 0)
            *as_json = true;
        else if (!options_ended && word[0] == '-')
            return error_set(err, -EINVAL, "unknown option '%s'; inspect has --json",
                             word);
        else if (*path != NULL)
            return error_set(err, -EINVAL, "one image at a time: '%s' is one too many",
                             word);
        else
            *path = word;
    }
    if (*path == NULL)
        return error_set(err, -EINVAL, "inspect needs an image: husk inspect IMAGE");
    return 0;
}

/* A file of no known format is an answer too, for programs; the reason goes to stderr as
 * well, as for every failure. */
static int print_refusal(const struct inspection *inspection, struct error *reason)
{
    struct error ignored = ERROR_NONE;
    const char *text = without_path(reason->text, inspection->path);

    return print_json(json_pack("{s:i, s:o, s:n, s:n, s:o}", "schema", JSON_SCHEMA,
                                "path", cli_json_text(inspection->path), "format",
                                "protocol", "reason", cli_json_text(text)),
                      &ignored);
}

int cli_inspect(int argc, char **argv, struct error *err)
{
    struct inspection inspection = {0};
    bool as_json;
    int status;

    if (parse(argc, argv, &inspection.path, &as_json, err) < 0)
        return EXIT_USAGE;
    status = inspect(&inspection, err);
    if (status < 0) {
        if (as_json)
            (void)print_refusal(&inspection, err);
        return EXIT_HOST_FAILURE;
    }
    if (as_json)
        status = print_json(json_inspection(&inspection), err);
    else
        print_text(&inspection);
    if (status == 0 && fflush(stdout) != 0)
        status = error_set_errno(err, errno, "cannot write to standard output");
    return status < 0 ? EXIT_HOST_FAILURE : EXIT_SUCCESS;
}
