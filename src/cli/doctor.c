/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk doctor: what this host offers. Each thing is looked at once and put into a JSON
 * object; --json prints them all, the text is made from the same objects.
 */
#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accel/accel.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "cli/cli.h"

#define JSON_SCHEMA 1

#define HUGE_PAGES_DIRECTORY "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define KSM_FILE "/sys/kernel/mm/ksm/run"
#define TUN_DEVICE "/dev/net/tun"

/* ---- helpers
 * ---------------------------------------------------------------------------- */

/* A file that holds one number; false if there is none. */
static bool read_number(const char *path, json_int_t *number)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    char *end;

    if (got < 0)
        return false;
    text[got] = '\0';
    *number = strtoll(text, &end, 10);
    return end != text;
}

static json_t *works(void)
{
    return json_pack("{s:b}", "works", true);
}

static json_t *fails(const char *reason)
{
    return json_pack("{s:b, s:s}", "works", false, "reason", reason);
}

static json_t *fails_with(const char *what, int code)
{
    struct error err = ERROR_NONE;

    (void)error_set_errno(&err, code, "%s", what);
    return fails(err.text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text == NULL ? "" : text;
}

static void print_title(const char *title)
{
    (void)printf("%-11s ", title);
}

static void print_works(const char *title, const json_t *object)
{
    print_title(title);
    (void)printf("%s\n", json_is_true(json_object_get(object, "works"))
                             ? "works"
                             : text_of(object, "reason"));
}

/* ---- accelerators
 * ------------------------------------------------------------------------ */

static json_t *look_at_accelerator(const struct accel_ops *accel)
{
    struct error err = ERROR_NONE;
    json_t *object;
    uint32_t mips = 0;

    if (accel->probe(&err) < 0 || accel_speed(accel, &mips, &err) < 0)
        object = fails(err.text);
    else
        object = json_pack("{s:b, s:i}", "works", true, "mips", (int)mips);
    if (object != NULL)
        (void)json_object_set_new(object, "name", json_string(accel->name));
    return object;
}

static json_t *look_at_accelerators(void)
{
    json_t *array = json_array();

    for (const struct accel_ops *const *row = accels; *row != NULL; row++)
        (void)json_array_append_new(array, look_at_accelerator(*row));
    return array;
}

static void print_accelerators(const char *title, const json_t *array)
{
    const json_t *object;
    size_t i;

    (void)title; /* each has its own name */
    json_array_foreach(array, i, object)
    {
        print_title(text_of(object, "name"));
        if (json_is_true(json_object_get(object, "works")))
            (void)printf("%" JSON_INTEGER_FORMAT " MIPS\n",
                         json_integer_value(json_object_get(object, "mips")));
        else
            (void)printf("%s\n", text_of(object, "reason"));
    }
}

static json_t *look_at_choice(void)
{
    const struct accel_ops *accel;
    struct error err = ERROR_NONE;
    char reason[512];

    if (accel_choose("auto", &accel, reason, sizeof(reason), &err) < 0)
        return fails(err.text);
    return json_pack("{s:b, s:s, s:s}", "works", true, "name", accel->name, "reason",
                     reason);
}

static void print_choice(const char *title, const json_t *object)
{
    print_title(title);
    (void)printf("%s\n", text_of(object, "reason"));
}

/* ---- processor
 * --------------------------------------------------------------------------- */

/* Those that KVM or the software CPU make use of (SDM vol. 2 and APM vol. 3, CPUID). */
static const struct {
    const char *name; /* as in /proc/cpuinfo */
    uint32_t leaf;
    enum { EBX, ECX, EDX } in;
    unsigned bit;
} flags[] = {
    {"vmx", 1, ECX, 5},
    {"svm", 0x80000001, ECX, 2},
    {"sse4_2", 1, ECX, 20},
    {"aes", 1, ECX, 25},
    {"pclmulqdq", 1, ECX, 1},
    {"avx2", 7, EBX, 5},
    {"bmi2", 7, EBX, 8},
    {"fsgsbase", 7, EBX, 0},
    {"erms", 7, EBX, 9},
    {"rdrand", 1, ECX, 30},
    {"rdtscp", 0x80000001, EDX, 27},
    {"constant_tsc", 0x80000007, EDX, 8},
    {"hypervisor", 1, ECX, 31},
};

static bool has_flag(size_t i)
{
    unsigned registers[4];

    if (__get_cpuid_count(flags[i].leaf, 0, &registers[3], &registers[EBX],
                          &registers[ECX], &registers[EDX]) == 0)
        return false;
    return (registers[flags[i].in] >> flags[i].bit & 1) != 0;
}

/* The vendor's 12 letters, in the order of leaf 0. */
static void read_vendor(char vendor[13])
{
    unsigned eax = 0;
    unsigned words[3] = {0, 0, 0};

    (void)__get_cpuid(0, &eax, &words[0], &words[2], &words[1]);
    memcpy(vendor, words, 12);
    vendor[12] = '\0';
}

/* The brand string, 48 letters in three leaves, often with blanks in front. */
static const char *read_brand(char brand[49])
{
    unsigned words[12] = {0};

    for (size_t i = 0; i < 3; i++)
        if (__get_cpuid(0x80000002 + (unsigned)i, &words[4 * i], &words[4 * i + 1],
                        &words[4 * i + 2], &words[4 * i + 3]) == 0)
            return "";
    memcpy(brand, words, 48);
    brand[48] = '\0';
    return brand + strspn(brand, " ");
}

static json_t *look_at_processor(void)
{
    json_t *present = json_object();
    char vendor[13];
    char brand[49];

    read_vendor(vendor);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
        (void)json_object_set_new(present, flags[i].name, json_boolean(has_flag(i)));
    return json_pack("{s:s, s:s, s:i, s:o}", "vendor", vendor, "model", read_brand(brand),
                     "cpus", (int)sysconf(_SC_NPROCESSORS_ONLN), "flags", present);
}

static void print_flags(const json_t *present, bool wanted)
{
    bool any = false;

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (json_is_true(json_object_get(present, flags[i].name)) != wanted)
            continue;
        (void)printf(" %s", flags[i].name);
        any = true;
    }
    (void)printf("%s", any ? "" : " none");
}

static void print_processor(const char *title, const json_t *object)
{
    json_int_t cpus = json_integer_value(json_object_get(object, "cpus"));

    print_title(title);
    (void)printf("%s, %s, %" JSON_INTEGER_FORMAT " online\n", text_of(object, "vendor"),
                 text_of(object, "model"), cpus);
    print_title("  has");
    print_flags(json_object_get(object, "flags"), true);
    (void)printf("\n");
    print_title("  lacks");
    print_flags(json_object_get(object, "flags"), false);
    (void)printf("\n");
}

/* ---- memory
 * ------------------------------------------------------------------------------ */

static json_t *look_at_huge_pages(void)
{
    json_int_t total = 0;
    json_int_t unused = 0;

    if (!read_number(HUGE_PAGES_DIRECTORY "nr_hugepages", &total) ||
        !read_number(HUGE_PAGES_DIRECTORY "free_hugepages", &unused))
        return fails("this kernel has none of 2 MiB");
    return json_pack("{s:b, s:I, s:I}", "works", unused > 0, "total", total, "free",
                     unused);
}

static void print_huge_pages(const char *title, const json_t *object)
{
    if (json_object_get(object, "total") == NULL) {
        print_works(title, object);
        return;
    }
    print_title(title);
    (void)printf("%" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                 " pages of 2 MiB are free%s\n",
                 json_integer_value(json_object_get(object, "free")),
                 json_integer_value(json_object_get(object, "total")),
                 json_is_true(json_object_get(object, "works"))
                     ? ""
                     : " (reserve some: sysctl vm.nr_hugepages=N)");
}

static json_t *look_at_ksm(void)
{
    json_int_t run = 0;

    if (!read_number(KSM_FILE, &run))
        return fails("this kernel has no kernel samepage merging");
    if (run != 1)
        return fails("off (switch it on: echo 1 > " KSM_FILE ")");
    return works();
}

/* ---- devices and limits
 * ---------------------------------------------------------------------- */

static json_t *look_at_tun(void)
{
    CLEANUP_FD int fd = open(TUN_DEVICE, O_RDWR | O_CLOEXEC);

    return fd < 0 ? fails_with("cannot open " TUN_DEVICE, errno) : works();
}

static json_t *look_at_io_uring(void)
{
    struct io_uring_params parameters = {.flags = 0};
    CLEANUP_FD int fd = (int)syscall(SYS_io_uring_setup, 1, &parameters);

    return fd < 0 ? fails_with("io_uring_setup is refused", errno) : works();
}

/* Null: unlimited. */
static json_t *limit(__rlimit_resource_t resource)
{
    struct rlimit value;

    if (getrlimit(resource, &value) < 0 || value.rlim_cur == RLIM_INFINITY)
        return json_null();
    return json_integer((json_int_t)value.rlim_cur);
}

static json_t *look_at_limits(void)
{
    return json_pack("{s:o, s:o}", "locked_memory_bytes", limit(RLIMIT_MEMLOCK),
                     "open_files", limit(RLIMIT_NOFILE));
}

static void print_limit(const json_t *value)
{
    if (json_is_null(value))
        (void)printf("unlimited");
    else
        (void)printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

static void print_limits(const char *title, const json_t *object)
{
    print_title(title);
    (void)printf("locked memory ");
    print_limit(json_object_get(object, "locked_memory_bytes"));
    (void)printf(" bytes, open files ");
    print_limit(json_object_get(object, "open_files"));
    (void)printf("\n");
}

/* ---- all of it
 * ---------------------------------------------------------------------------- */

static const struct {
    const char *key;
    const char *title;
    json_t *(*look)(void);
    void (*print)(const char *title, const json_t *value);
} sections[] = {
    {"accelerators", "", look_at_accelerators, print_accelerators},
    {"auto", "auto", look_at_choice, print_choice},
    {"processor", "processor", look_at_processor, print_processor},
    {"huge_pages", "huge pages", look_at_huge_pages, print_huge_pages},
    {"ksm", "KSM", look_at_ksm, print_works},
    {"tun", "tun", look_at_tun, print_works},
    {"io_uring", "io_uring", look_at_io_uring, print_works},
    {"limits", "limits", look_at_limits, print_limits},
};

static int report_json(json_t *document, struct error *err)
{
    if (json_dumpf(document, stdout, 0) < 0) {
        (void)error_set(err, EIO, "cannot print JSON (out of memory?)");
        return EXIT_HOST_FAILURE;
    }
    (void)printf("\n");
    return EXIT_SUCCESS;
}

static json_t *look_at_all(void)
{
    json_t *document = json_pack("{s:i}", "schema", JSON_SCHEMA);

    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        (void)json_object_set_new(document, sections[i].key, sections[i].look());
    return document;
}

int cli_doctor(int argc, char **argv, struct error *err)
{
    json_t *document;
    int code = EXIT_SUCCESS;

    if (argc > 1 || (argc == 1 && strcmp(argv[0], "--json") != 0)) {
        (void)error_set(err, EINVAL, "doctor takes only --json; '%s' is too much",
                        argv[argc - 1]);
        return EXIT_USAGE;
    }
    document = look_at_all();
    if (argc == 1)
        code = report_json(document, err);
    else
        for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
            sections[i].print(sections[i].title,
                              json_object_get(document, sections[i].key));
    /* Without an accelerator husk cannot do its work: scripts may ask. */
    if (json_is_false(json_object_get(json_object_get(document, "auto"), "works")))
        code = EXIT_HOST_FAILURE;
    json_decref(document);
    return code;
}
