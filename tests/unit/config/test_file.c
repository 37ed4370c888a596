/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file: Firecracker's keys, husk's own, and one sentence a mistake. */
#include "parse.h"

#include <sys/stat.h>

#include "config/schema_private.h"

static void expect_document(struct vm_config *config, const char *text)
{
    struct error err = ERROR_NONE;
    int result;

    config_init(config);
    result = config_file_parse(config, text, strlen(text), &err);
    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
}

static void expect_document_refused(const char *text, const char *sentence)
{
    struct error err = ERROR_NONE;
    struct vm_config config;

    config_init(&config);
    assert_int_not_equal(config_file_parse(&config, text, strlen(text), &err), 0);
    config_finish(&config);
    assert_string_equal(err.text, sentence);
}

static void reads_firecracker_keys(void **state)
{
    struct vm_config config;

    (void)state;
    expect_document(&config,
                    "{\"boot-source\": {\"kernel_image_path\": \"vmlinux\","
                    "  \"initrd_path\": \"initrd.img\", \"boot_args\": \"panic=1\"},"
                    " \"machine-config\": {\"vcpu_count\": 3, \"mem_size_mib\": 1024,"
                    "  \"huge_pages\": \"2M\", \"smt\": false},"
                    " \"serial\": {\"serial_out_path\": \"out\"},"
                    " \"logger\": {\"level\": \"Debug\"},"
                    " \"drives\": [], \"vsock\": null}");
    assert_string_equal(config.kernel, "vmlinux");
    assert_int_equal(config.initrd_count, 1);
    assert_string_equal(config.initrds[0], "initrd.img");
    assert_string_equal(config.append, "panic=1");
    assert_int_equal(config.cpu_count, 3);
    assert_int_equal(config.memory_bytes, GIB);
    assert_true(config.huge_pages);
    assert_string_equal(config.log_path, "out");
    assert_int_equal(config.verbosity, 2);
    config_finish(&config);
}

static void reads_own_keys(void **state)
{
    struct vm_config config;

    (void)state;
    expect_document(&config,
                    "{\"husk\": {\"kernel\": \"k\", \"memory\": \"2G\", \"cpus\": 2,"
                    "  \"initrd\": [\"a\", \"b\"], \"no-reboot\": true, \"ksm\": false,"
                    "  \"timeout\": \"2m\", \"boot-timer\": \"json\", \"verbose\": 1,"
                    "  \"debug-exit\": 244, \"accel\": \"kvm\"}}");
    assert_string_equal(config.kernel, "k");
    assert_int_equal(config.memory_bytes, 2 * GIB);
    assert_int_equal(config.cpu_count, 2);
    assert_int_equal(config.initrd_count, 2);
    assert_string_equal(config.initrds[0], "a");
    assert_string_equal(config.initrds[1], "b");
    assert_true(config.no_reboot);
    assert_false(config.ksm);
    assert_int_equal(config.timeout_seconds, 120);
    assert_int_equal(config.boot_timer, BOOT_TIMER_JSON);
    assert_int_equal(config.verbosity, 1);
    assert_int_equal(config.debug_exit_port, 0xf4);
    assert_string_equal(config.accel, "kvm");
    config_finish(&config);
}

static void own_section_counts_more_wherever_it_stands(void **state)
{
    struct vm_config config;

    (void)state;
    expect_document(&config, "{\"husk\": {\"memory\": 64, \"initrd\": \"mine\"},"
                             " \"boot-source\": {\"initrd_path\": \"theirs\"},"
                             " \"machine-config\": {\"mem_size_mib\": 128}}");
    assert_int_equal(config.memory_bytes, 64 * MIB);
    assert_int_equal(config.initrd_count, 1);
    assert_string_equal(config.initrds[0], "mine");
    config_finish(&config);
}

static void null_counts_as_absent(void **state)
{
    struct vm_config config;

    (void)state;
    expect_document(&config,
                    "{\"boot-source\": {\"initrd_path\": null}, \"logger\": null,"
                    " \"husk\": {\"memory\": null}}");
    assert_int_equal(config.initrd_count, 0);
    assert_int_equal(config.memory_bytes, 256 * MIB);
    config_finish(&config);
}

static void names_the_nearest_key(void **state)
{
    (void)state;
    expect_document_refused("{\"husk\": {\"memroy\": 1}}",
                            "husk.memroy: unknown key; did you mean 'memory'?");
    expect_document_refused("{\"husk\": {\"config\": \"other.json\"}}",
                            "husk.config: unknown key; husk.json(5) lists the keys");
    expect_document_refused(
        "{\"boot-source\": {\"kernel_path\": \"k\"}}",
        "boot-source.kernel_path: unknown key; husk.json(5) lists the "
        "keys");
    expect_document_refused("{\"machine-config\": {\"vcpus_count\": 1}}",
                            "machine-config.vcpus_count: unknown key; did you mean "
                            "'vcpu_count'?");
    expect_document_refused("{\"boot_source\": {}}",
                            "boot_source: unknown key; did you mean 'boot-source'?");
    expect_document_refused("{\"memory\": 1}",
                            "memory: unknown key; husk.json(5) lists the keys");
}

static void refuses_what_it_cannot_do(void **state)
{
    (void)state;
    expect_document_refused("{\"balloon\": {\"amount_mib\": 1}}",
                            "balloon: husk does not support this; leave it out");
    expect_document_refused(
        "{\"machine-config\": {\"smt\": true}}",
        "machine-config.smt: husk does not support this; leave it out");
}

static void checks_types(void **state)
{
    (void)state;
    expect_document_refused("[]", "must be an object, not an array");
    expect_document_refused("{\"husk\": 5}",
                            "husk: must be an object, not a whole number");
    expect_document_refused("{\"machine-config\": {\"vcpu_count\": \"2\"}}",
                            "machine-config.vcpu_count: must be a whole number, not a "
                            "string");
    expect_document_refused("{\"machine-config\": {\"vcpu_count\": 1.5}}",
                            "machine-config.vcpu_count: must be a whole number, not a "
                            "fraction");
    expect_document_refused(
        "{\"husk\": {\"memory\": true}}",
        "husk.memory: must be a whole number of MiB, or a string such "
        "as \"2G\", not true");
    expect_document_refused(
        "{\"husk\": {\"timeout\": []}}",
        "husk.timeout: must be a whole number of seconds, or a string "
        "such as \"2m\", not an array");
    expect_document_refused("{\"husk\": {\"ksm\": \"yes\"}}",
                            "husk.ksm: must be true or false, not a string");
    expect_document_refused("{\"husk\": {\"kernel\": {}}}",
                            "husk.kernel: must be a string, not an object");
    expect_document_refused("{\"husk\": {\"initrd\": false}}",
                            "husk.initrd: must be a string, or an array of strings, not "
                            "false");
    expect_document_refused("{\"husk\": {\"initrd\": [\"a\", 7]}}",
                            "husk.initrd[1]: must be a string, not a whole number");
    expect_document_refused("{\"logger\": {\"level\": 1}}",
                            "logger.level: must be a string, not a whole number");
}

static void checks_values(void **state)
{
    (void)state;
    expect_document_refused("{\"machine-config\": {\"mem_size_mib\": 1}}",
                            "machine-config.mem_size_mib: 1 MiB is out of range; allowed "
                            "is 2 MiB to 1 TiB");
    expect_document_refused(
        "{\"machine-config\": {\"vcpu_count\": -1}}",
        "machine-config.vcpu_count: '-1' is not a whole number; allowed "
        "is 1 to 255");
    expect_document_refused(
        "{\"machine-config\": {\"huge_pages\": \"1G\"}}",
        "machine-config.huge_pages: '1G' is unknown; choose None or 2M");
    expect_document_refused(
        "{\"husk\": {\"accel\": \"tcg\"}}",
        "husk.accel: 'tcg' is unknown; choose auto, kvm, soft, "
        "soft,tier=auto, soft,tier=interpreter or soft,tier=translator");
    expect_document_refused("{\"husk\": {\"initrd\": [\"a\", \"\"]}}",
                            "husk.initrd[1]: the file name is empty");
}

static void points_at_broken_json(void **state)
{
    (void)state;
    expect_document_refused("{\n  \"husk\": {\"memory\": 1,}\n}",
                            "line 2, column 24: string or '}' expected near '}'");
    expect_document_refused("{\"husk\": {}, \"husk\": {}}",
                            "line 1, column 19: duplicate object key near '\"husk\"'");
    expect_document_refused("{\"husk\": {\"kernel\": \"a\\u0000b\"}}",
                            "line 1, column 30: \\u0000 is not allowed without "
                            "JSON_ALLOW_NUL near '\"a\\u0000b\"'");
}

static void shows_hostile_keys_harmlessly(void **state)
{
    (void)state;
    expect_document_refused("{\"a\\nb\\u001b\": 1}",
                            "a?b?: unknown key; husk.json(5) lists the keys");
}

/* Every prefix and every changed byte of a good document is refused or read, and nothing
 * is lost or touched that should not be (the sanitizers watch). */
static void survives_damage(void **state)
{
    static const char good[] =
        "{\"boot-source\": {\"kernel_image_path\": \"k\", \"initrd_path\": [\"a\", "
        "\"b\"]},"
        " \"husk\": {\"memory\": \"2G\", \"ksm\": true, \"append\": \"x\"}}";
    char text[sizeof(good)];

    (void)state;
    for (size_t i = 0; i < sizeof(good) - 1; i++) {
        for (int change = 0; change < 3; change++) {
            struct error err = ERROR_NONE;
            struct vm_config config;
            size_t size_bytes = change == 0 ? i : sizeof(good) - 1;

            memcpy(text, good, sizeof(good));
            text[i] = (char)(text[i] ^ (change == 1 ? 0x01 : 0x80));
            config_init(&config);
            if (config_file_parse(&config, text, size_bytes, &err) != 0)
                assert_string_not_equal(err.text, "");
            config_finish(&config);
        }
    }
}

/* ---- files ---- */

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void expect_file_refused(const char *path, int code, const char *format)
{
    struct error err = ERROR_NONE;
    struct vm_config config;
    char sentence[512];

    (void)snprintf(sentence, sizeof(sentence), "%s: %s", path, format);
    assert_int_equal(parse_words(&config, WORDS("k", "--config", path), &err), code);
    config_finish(&config);
    assert_string_equal(err.text, sentence);
}

static void refuses_files_it_cannot_read(void **state)
{
    char empty[] = "/tmp/husk-config-XXXXXX";

    (void)state;
    write_file(empty, "");
    expect_file_refused(empty, -EINVAL, "is empty; write {} for no settings");
    assert_int_equal(unlink(empty), 0);
    expect_file_refused(empty, -ENOENT, "cannot open: No such file or directory");
    expect_file_refused("/tmp", -EISDIR, "is a directory, not a configuration file");
    expect_file_refused("/dev/zero", -EFBIG,
                        "larger than 1 MiB, so hardly a configuration file");
    expect_refused(WORDS("k", "--config="), "--config: the file name is empty");
}

static void later_sources_win(void **state)
{
    char path[] = "/tmp/husk-config-XXXXXX";
    struct vm_config config;

    (void)state;
    write_file(path, "{\"husk\": {\"kernel\": \"file\", \"memory\": 64, \"cpus\": 2,"
                     " \"console\": \"none\", \"append\": \"file\", \"initrd\": \"file\","
                     " \"ksm\": true}}");
    assert_int_equal(setenv("HUSK_CPUS", "3", 1), 0);
    assert_int_equal(setenv("HUSK_MEMORY", "65", 1), 0);
    expect_parsed(&config, WORDS("--memory", "66", "-i", "flag", "-i", "other",
                                 "--ksm=no", "--config", path, "--", "guest"));
    assert_int_equal(unsetenv("HUSK_CPUS"), 0);
    assert_int_equal(unsetenv("HUSK_MEMORY"), 0);
    assert_int_equal(unlink(path), 0);
    assert_string_equal(config.kernel, "file");
    assert_string_equal(config.console, "none");
    assert_int_equal(config.cpu_count, 3);
    assert_int_equal(config.memory_bytes, 66 * MIB);
    assert_int_equal(config.initrd_count, 2);
    assert_string_equal(config.initrds[0], "flag");
    assert_string_equal(config.append, "file guest");
    assert_false(config.ksm);
    config_finish(&config);
}

static void names_the_file_in_front_of_the_key(void **state)
{
    char path[] = "/tmp/husk-config-XXXXXX";

    (void)state;
    write_file(path, "{\"machine-config\": {\"mem_size_mib\": \"lots\"}}");
    expect_file_refused(
        path, -EINVAL,
        "machine-config.mem_size_mib: 'lots' is not a size; write MiB, or "
        "a number with K, M, G or T behind it, such as 512 or 2G");
    assert_int_equal(unlink(path), 0);
}

static void reads_a_pipe(void **state)
{
    static const char text[] = "{\"husk\": {\"kernel\": \"piped\"}}";
    char path[32];
    int ends[2];
    struct vm_config config;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    assert_int_equal(close(ends[1]), 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    expect_parsed(&config, WORDS("--config-file", path));
    assert_string_equal(config.kernel, "piped");
    assert_int_equal(close(ends[0]), 0);
    config_finish(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_firecracker_keys),
        cmocka_unit_test(reads_own_keys),
        cmocka_unit_test(own_section_counts_more_wherever_it_stands),
        cmocka_unit_test(null_counts_as_absent),
        cmocka_unit_test(names_the_nearest_key),
        cmocka_unit_test(refuses_what_it_cannot_do),
        cmocka_unit_test(checks_types),
        cmocka_unit_test(checks_values),
        cmocka_unit_test(points_at_broken_json),
        cmocka_unit_test(shows_hostile_keys_harmlessly),
        cmocka_unit_test(survives_damage),
        cmocka_unit_test(refuses_files_it_cannot_read),
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(names_the_file_in_front_of_the_key),
        cmocka_unit_test(reads_a_pipe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
