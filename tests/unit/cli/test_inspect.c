/* SPDX-License-Identifier: Apache-2.0 */
/* husk inspect: what it tells people and programs, and how it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../image/builders.h"
#include "../image/packers.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "cli/cli.h"

struct fixture {
    char path[64]; /* of a memory file with the image */
    int fd;
    char output[8192];
    struct error err;
};

static int set_up(void **state)
{
    static struct fixture fixture;

    fixture = (struct fixture){.fd = memfd_create("kernel", MFD_CLOEXEC)};
    (void)snprintf(fixture.path, sizeof(fixture.path), "/proc/self/fd/%d", fixture.fd);
    /* Nothing can be made below a file, so nothing is kept. */
    assert_int_equal(setenv("HUSK_CACHE_DIR", "/dev/null/husk", 1), 0);
    *state = &fixture;
    return fixture.fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    fd_close(&fixture->fd);
    return 0;
}

static void put_image(const struct fixture *fixture, const void *bytes, size_t size)
{
    assert_int_equal(pwrite(fixture->fd, bytes, size, 0), size);
}

/* Runs `husk inspect` with these words (NULL: fewer); keeps what it prints. */
static int run(struct fixture *fixture, const char *first, const char *second)
{
    char words[2][64] = {"", ""};
    char *argv[] = {words[0], words[1], NULL};
    CLEANUP_FD int capture = memfd_create("stdout", MFD_CLOEXEC);
    CLEANUP_FD int saved = dup(STDOUT_FILENO);
    int argc = (first != NULL) + (second != NULL);
    ssize_t size;
    int code;

    (void)snprintf(words[0], sizeof(words[0]), "%s", first == NULL ? "" : first);
    (void)snprintf(words[1], sizeof(words[1]), "%s", second == NULL ? "" : second);
    fixture->err = ERROR_NONE;
    assert_int_equal(fflush(stdout), 0);
    assert_true(dup2(capture, STDOUT_FILENO) >= 0);
    code = cli_inspect(argc, argv, &fixture->err);
    assert_int_equal(fflush(stdout), 0);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    size = pread(capture, fixture->output, sizeof(fixture->output) - 1, 0);
    assert_true(size >= 0);
    fixture->output[size] = '\0';
    return code;
}

static json_t *run_json(struct fixture *fixture, int code)
{
    json_t *document;

    assert_int_equal(run(fixture, "--json", fixture->path), code);
    document = json_loads(fixture->output, 0, NULL);
    assert_non_null(document);
    assert_int_equal(json_integer_value(json_object_get(document, "schema")), 1);
    return document;
}

static void assert_line(const struct fixture *fixture, const char *line)
{
    char whole[256];

    (void)snprintf(whole, sizeof(whole), "%s\n", line);
    if (strstr(fixture->output, whole) == NULL)
        fail_msg("no line '%s' in:\n%s", line, fixture->output);
}

/* A bzImage whose lz4 payload is an ELF kernel. */
static void put_bzimage(const struct fixture *fixture, bool damaged)
{
    struct bzimage_file file;
    struct elf64_file kernel;
    uint8_t *payload = file.bytes + BZIMAGE_SETUP_BYTES + BZIMAGE_PAYLOAD_OFFSET;
    uint8_t *packed = malloc(PACKED_BYTES_MAX);
    size_t size;

    assert_non_null(packed);
    bzimage_file_init(&file);
    elf64_file_init(&kernel);
    size = pack(IMAGE_CODEC_LZ4, (const uint8_t *)&kernel, sizeof(kernel), packed);
    store_le32(packed + size, sizeof(kernel));
    assert_true(size + 4 <= BZIMAGE_PAYLOAD_BYTES);
    memcpy(payload, packed, size + 4);
    store_le32(file.bytes + 0x24c, (uint32_t)size + 4);
    if (damaged)
        payload[7] = 0x7f; /* the first block's size */
    put_image(fixture, &file, sizeof(file));
    free(packed);
}

static void tells_people_about_an_elf_kernel(void **state)
{
    struct fixture *fixture = *state;
    struct elf64_file kernel;
    char line[128];

    elf64_file_init(&kernel);
    put_image(fixture, &kernel, sizeof(kernel));
    assert_int_equal(run(fixture, fixture->path, NULL), EXIT_SUCCESS);
    (void)snprintf(line, sizeof(line), "%s: ELF64, 616 bytes", fixture->path);
    assert_line(fixture, line);
    assert_line(fixture, "  entry          0xffffffff80100020, physical 0x100020");
    assert_line(fixture, "  PVH entry      0x100010 (note of 8 bytes)");
    assert_line(fixture,
                "  segments       0x000100000       4096 bytes, 256 of them from "
                "file offset 0x168");
    assert_line(fixture, "  pvh            possible");
    assert_line(fixture, "  linux32        no: is an ELF64; --protocol linux32 needs a "
                         "bzImage");
    assert_line(fixture, "  husk run       takes pvh: the ELF64 has a PVH entry note");
}

static void tells_people_what_a_bzimage_contains(void **state)
{
    struct fixture *fixture = *state;

    put_bzimage(fixture, false);
    assert_int_equal(run(fixture, fixture->path, NULL), EXIT_SUCCESS);
    assert_line(fixture, "  kernel version 6.1.0-test (a@b)");
    assert_line(fixture, "  contains       ELF64");
    assert_line(fixture, "  PVH entry      0x100010 (note of 8 bytes)");
}

static void tells_programs_about_an_elf_kernel(void **state)
{
    struct fixture *fixture = *state;
    struct elf64_file kernel;
    const char *format;
    const char *entry;
    const char *protocol;
    int pvh_entry;
    int gpa;
    json_t *document;

    elf64_file_init(&kernel);
    put_image(fixture, &kernel, sizeof(kernel));
    document = run_json(fixture, EXIT_SUCCESS);
    assert_int_equal(json_unpack(document, "{s:s, s:{s:s, s:{s:i}, s:[{s:i}, {}]}, s:s}",
                                 "format", &format, "elf", "entry", &entry, "pvh",
                                 "entry", &pvh_entry, "segments", "gpa", &gpa, "protocol",
                                 &protocol),
                     0);
    assert_string_equal(format, "ELF64");
    assert_string_equal(entry, "0xffffffff80100020");
    assert_int_equal(pvh_entry, ELF_FILE_PVH_ENTRY);
    assert_int_equal(gpa, ELF_FILE_TEXT_GPA);
    assert_string_equal(protocol, "pvh");
    assert_true(json_is_null(json_object_get(document, "compression")));
    assert_true(json_is_null(json_object_get(document, "bzimage")));
    assert_true(json_is_null(json_object_get(document, "multiboot1")));
    json_decref(document);
}

static void tells_programs_what_a_bzimage_contains(void **state)
{
    struct fixture *fixture = *state;
    const char *codec;
    int unpacked_bytes;
    int pvh_entry;
    json_t *document;

    put_bzimage(fixture, false);
    document = run_json(fixture, EXIT_SUCCESS);
    assert_int_equal(json_unpack(document, "{s:{s:{s:s, s:i, s:{s:{s:i}}}}}", "bzimage",
                                 "payload", "codec", &codec, "unpacked_bytes",
                                 &unpacked_bytes, "elf", "pvh", "entry", &pvh_entry),
                     0);
    assert_string_equal(codec, "lz4");
    assert_int_equal(unpacked_bytes, sizeof(struct elf64_file));
    assert_int_equal(pvh_entry, ELF_FILE_PVH_ENTRY);
    json_decref(document);
}

/* An ELF kernel with both headers: the first with all fields, of the second the most. */
static void put_multiboot(const struct fixture *fixture)
{
    static const uint32_t first[] = {
        0x1badb002, 0x10004,  0 - UINT32_C(0x1badb002) - 0x10004,
        0x100168,   0x100000, 0,
        0,          0x100180, 0,
        1024,       768,      32};
    static const uint32_t second[] = {
        0xe85250d6,  0,  80,       0 - UINT32_C(0xe85250d6) - 80,
        1,           12, 6,        0, /* request: memory map */
        3 | 1 << 16, 12, 0x100180, 0, /* entry, optional */
        10,          24, 0x100000, 0xfffffff,
        0x1000,      1,  77,       8}; /* relocatable, a tag that is not known */
    struct elf64_file kernel;

    elf64_file_init(&kernel);
    memcpy(kernel.text, first, sizeof(first));
    memcpy(kernel.text + sizeof(first), second, sizeof(second));
    put_image(fixture, &kernel, sizeof(kernel));
}

static void tells_people_all_of_multiboot_headers(void **state)
{
    struct fixture *fixture = *state;
    char line[128];

    put_multiboot(fixture);
    assert_int_equal(run(fixture, fixture->path, NULL), EXIT_SUCCESS);
    (void)snprintf(line, sizeof(line),
                   "  Multiboot 1    header at 0x%zx, flags 0x00010004",
                   offsetof(struct elf64_file, text));
    assert_line(fixture, line);
    assert_line(fixture, "    addresses    header 0x100168, load 0x100000, load end 0x0, "
                         "bss end 0x0");
    assert_line(fixture, "    entry        0x100180");
    assert_line(fixture, "    video        1024x768, depth 32");
    (void)snprintf(line, sizeof(line), "  Multiboot 2    header of 80 bytes at 0x%zx",
                   offsetof(struct elf64_file, text) + 48);
    assert_line(fixture, line);
    assert_line(fixture, "    tag          1 (information request), 12 bytes");
    assert_line(fixture, "    tag          3 (entry address), 12 bytes, optional");
    assert_line(fixture, "    tag          77 (unknown), 8 bytes");
    assert_line(fixture, "    asks for     6 (memory map)");
    assert_line(fixture,
                "    relocatable  0x100000 to 0xfffffff, alignment 0x1000, lowest");
}

static void tells_programs_all_of_multiboot_headers(void **state)
{
    struct fixture *fixture = *state;
    const char *preference;
    const char *name;
    const char *problem;
    int flags, width, entry, type;
    json_t *document;

    put_multiboot(fixture);
    document = run_json(fixture, EXIT_SUCCESS);
    assert_int_equal(json_unpack(document, "{s:{s:i, s:{s:i}, s:i, s:s}}", "multiboot1",
                                 "flags", &flags, "video", "width", &width, "entry_addr",
                                 &entry, "problem", &problem),
                     0);
    assert_int_equal(flags, 0x10004);
    assert_int_equal(width, 1024);
    assert_int_equal(entry, 0x100180);
    assert_string_equal(problem, "");
    assert_int_equal(json_unpack(document, "{s:{s:[{s:i, s:s}], s:{s:s}, s:n}}",
                                 "multiboot2", "tags", "type", &type, "name", &name,
                                 "relocation", "preference", &preference, "addresses"),
                     0);
    assert_int_equal(type, 1);
    assert_string_equal(name, "information request");
    assert_string_equal(preference, "lowest");
    json_decref(document);
}

static void tells_how_a_kernel_is_compressed_as_a_whole(void **state)
{
    struct fixture *fixture = *state;
    struct elf64_file kernel;
    uint8_t *packed = malloc(PACKED_BYTES_MAX);
    char sentence[128];
    size_t packed_bytes;
    json_t *document;

    assert_non_null(packed);
    elf64_file_init(&kernel);
    packed_bytes = pack(IMAGE_CODEC_XZ, (const uint8_t *)&kernel, sizeof(kernel), packed);
    put_image(fixture, packed, packed_bytes);
    free(packed);
    assert_int_equal(run(fixture, fixture->path, NULL), EXIT_SUCCESS);
    (void)snprintf(sentence, sizeof(sentence),
                   "%s: xz-compressed ELF64, %zu bytes, %zu unpacked", fixture->path,
                   packed_bytes, sizeof(kernel));
    assert_line(fixture, sentence);
    assert_line(fixture, "  PVH entry      0x100010 (note of 8 bytes)");

    document = run_json(fixture, EXIT_SUCCESS);
    assert_string_equal(json_string_value(json_object_get(document, "format")), "ELF64");
    assert_string_equal(json_string_value(json_object_get(document, "compression")),
                        "xz");
    json_decref(document);
}

static void a_damaged_payload_bars_only_what_needs_it(void **state)
{
    struct fixture *fixture = *state;

    put_bzimage(fixture, true);
    assert_int_equal(run(fixture, fixture->path, NULL), EXIT_SUCCESS);
    assert_line(fixture, "  pvh            no: lz4 stream is damaged at byte 1604: "
                         "impossible block size");
    assert_line(fixture, "  linux64        possible");
    assert_line(fixture, "  husk run       does not boot it: lz4 stream is damaged at "
                         "byte 1604: impossible block size");
    assert_string_equal(fixture->err.text, "");
}

static void refuses_what_is_no_kernel_in_words(void **state)
{
    struct fixture *fixture = *state;
    char sentence[128];
    json_t *document;

    put_image(fixture, "#!/bin/sh\n", 10);
    (void)snprintf(sentence, sizeof(sentence), "kernel %s: is a script, not a kernel",
                   fixture->path);
    assert_int_equal(run(fixture, fixture->path, NULL), EXIT_HOST_FAILURE);
    assert_string_equal(fixture->output, "");
    assert_string_equal(fixture->err.text, sentence);

    document = run_json(fixture, EXIT_HOST_FAILURE);
    assert_string_equal(fixture->err.text, sentence);
    assert_true(json_is_null(json_object_get(document, "format")));
    assert_string_equal(json_string_value(json_object_get(document, "reason")),
                        "is a script, not a kernel");
    json_decref(document);
}

static void refuses_wrong_usage(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(run(fixture, NULL, NULL), EXIT_USAGE);
    assert_string_equal(fixture->err.text, "inspect needs an image: husk inspect IMAGE");
    assert_int_equal(run(fixture, "--jsn", "vmlinux"), EXIT_USAGE);
    assert_string_equal(fixture->err.text, "unknown option '--jsn'; inspect has --json");
    assert_int_equal(run(fixture, "vmlinux", "bzImage"), EXIT_USAGE);
    assert_string_equal(fixture->err.text,
                        "one image at a time: 'bzImage' is one too many");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tells_people_about_an_elf_kernel, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_people_what_a_bzimage_contains, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_programs_about_an_elf_kernel, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_programs_what_a_bzimage_contains, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_people_all_of_multiboot_headers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_programs_all_of_multiboot_headers, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tells_how_a_kernel_is_compressed_as_a_whole,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_payload_bars_only_what_needs_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_is_no_kernel_in_words, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refuses_wrong_usage, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
