/* SPDX-License-Identifier: Apache-2.0 */
/* Persistent memory: what files are accepted, where they are put, what becomes of writes.
 */
#include "fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "boot/builder_private.h"

static char directory[] = "/tmp/husk-pmem-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) == NULL || chdir(directory) < 0 ? -1 : 0;
}

static int remove_directory(void **state)
{
    char command[64];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r %s", directory);
    return chdir("/") < 0 || system(command) != 0 ? -1 : 0;
}

static void make_file(const char *name, off_t size_bytes)
{
    CLEANUP_FD int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size_bytes), 0);
}

static void add_pmem(struct fixture *fixture, const char *path, enum boot_pmem_mode mode)
{
    fixture->options.pmems[fixture->options.pmem_count++] =
        (struct boot_pmem_option){.path = path, .mode = mode};
}

static void open_pmems(struct fixture *fixture)
{
    if (boot_pmem_open(&fixture->inputs, &fixture->options, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
}

static void refuses(const char *path, enum boot_pmem_mode mode, const char *sentence)
{
    struct fixture fixture;

    fixture_elf(&fixture);
    add_pmem(&fixture, path, mode);
    assert_true(boot_pmem_open(&fixture.inputs, &fixture.options, &fixture.err) < 0);
    assert_string_equal(fixture.err.text, sentence);
    boot_pmem_close(&fixture.inputs);
    fixture_close(&fixture);
}

/* ---- files ---- */

static void each_bad_file_has_its_sentence(void **state)
{
    (void)state;
    make_file("empty", 0);
    make_file("odd", 5000001);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    refuses("absent", BOOT_PMEM_READ_ONLY,
            "pmem absent: cannot open: No such file or directory");
    refuses("empty", BOOT_PMEM_SHARED, "pmem empty: is empty");
    refuses("folder", BOOT_PMEM_EPHEMERAL, "pmem folder: is a directory, not an image");
    refuses("fifo", BOOT_PMEM_READ_ONLY,
            "pmem fifo: is neither a regular file nor a block device");
    refuses("odd", BOOT_PMEM_SHARED,
            "pmem odd: has 5000001 bytes, which is no multiple of 2 MiB: 'truncate -s "
            "6291456' adds what is missing, or use it read-only or ephemeral");
}

/* ---- places ---- */

static void assert_pmem(const struct boot_pmem *pmem, uint64_t gpa, uint64_t size_bytes,
                        const char *name)
{
    assert_int_equal(pmem->gpa, gpa);
    assert_int_equal(pmem->size_bytes, size_bytes);
    assert_string_equal(pmem->name, name);
}

static void each_has_a_place_above_ram_and_no_entry_in_the_memory_map(void **state)
{
    struct fixture fixture;
    size_t e820_count;

    (void)state;
    make_file("a", 2 * MIB);
    make_file("b", 5000001);
    fixture_elf(&fixture);
    fixture_build(&fixture);
    e820_count = fixture.plan->e820_count;
    boot_plan_destroy(fixture.plan);
    add_pmem(&fixture, "a", BOOT_PMEM_SHARED);
    add_pmem(&fixture, "b", BOOT_PMEM_READ_ONLY);
    open_pmems(&fixture);
    fixture_build(&fixture);
    assert_int_equal(fixture.plan->e820_count, e820_count);
    assert_int_equal(fixture.plan->pmem_count, 2);
    assert_pmem(&fixture.plan->pmems[0], 4 * GIB, 2 * MIB, "pmem a");
    assert_pmem(&fixture.plan->pmems[1], 5 * GIB, 6 * MIB, "pmem b");
    assert_int_equal(fixture.plan->span_count, 3);
    assert_int_equal(fixture.plan->spans[1].gpa, 4 * GIB);
    assert_int_equal(fixture.plan->spans[1].size_bytes, 2 * MIB);
    assert_int_equal(fixture.plan->spans[2].gpa, 5 * GIB);
    assert_int_equal(fixture.plan->spans[2].size_bytes, 6 * MIB);
    fixture_close(&fixture);
}

static void ram_above_4_gib_comes_first(void **state)
{
    struct fixture fixture;

    (void)state;
    make_file("a", 2 * MIB);
    fixture_elf(&fixture);
    fixture.options.memory_bytes = 3 * GIB + 4096;
    add_pmem(&fixture, "a", BOOT_PMEM_SHARED);
    open_pmems(&fixture);
    fixture_build(&fixture);
    assert_pmem(&fixture.plan->pmems[0], 5 * GIB, 2 * MIB, "pmem a");
    fixture_close(&fixture);
}

static void what_a_guest_cannot_address_is_refused(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_elf(&fixture);
    fixture.inputs.pmems[0] = (struct boot_pmem_input){
        .path = "large", .fd = -1, .size_bytes = 64 * (1024 * GIB) - 4 * GIB + 1};
    fixture.inputs.pmem_count = 1;
    fixture_refuses(&fixture, "pmem large: would end beyond the 64 TiB that a guest can "
                              "address");
    fixture_close(&fixture);
}

/* ---- the map ---- */

static struct memory *make_memory(struct fixture *fixture)
{
    const struct memory_options options = {.file_span_count = fixture->plan->pmem_count};
    struct memory *memory = NULL;

    if (memory_create(fixture->plan->spans, fixture->plan->span_count, &options, &memory,
                      &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
    return memory;
}

static struct memory *map_pmems(struct fixture *fixture)
{
    struct memory *memory = make_memory(fixture);

    if (boot_map_pmems(fixture->plan, memory, &fixture->err) < 0)
        fail_msg("%s", fixture->err.text);
    return memory;
}

/* One guest that has "image". */
struct user {
    struct fixture fixture;
    struct memory *memory;
};

static void begin_use(struct user *user, enum boot_pmem_mode mode)
{
    fixture_elf(&user->fixture);
    add_pmem(&user->fixture, "image", mode);
    open_pmems(&user->fixture);
    fixture_build(&user->fixture);
    user->memory = map_pmems(&user->fixture);
}

static void end_use(struct user *user)
{
    memory_destroy(user->memory);
    fixture_close(&user->fixture);
}

static void refuses_use(enum boot_pmem_mode mode, const char *sentence)
{
    struct fixture fixture;
    struct memory *memory;

    fixture_elf(&fixture);
    add_pmem(&fixture, "image", mode);
    open_pmems(&fixture); /* a plan locks nothing */
    fixture_build(&fixture);
    memory = make_memory(&fixture);
    assert_int_equal(boot_map_pmems(fixture.plan, memory, &fixture.err), -EBUSY);
    assert_string_equal(fixture.err.text, sentence);
    memory_destroy(memory);
    fixture_close(&fixture);
}

static void a_second_writer_is_refused_and_readers_share(void **state)
{
    struct user users[2];

    (void)state;
    make_file("image", 2 * MIB);
    begin_use(&users[0], BOOT_PMEM_SHARED);
    refuses_use(
        BOOT_PMEM_SHARED,
        "pmem image: is in use by another writer: give each guest a copy, or open "
        "it read-only or ephemeral in all");
    refuses_use(
        BOOT_PMEM_READ_ONLY,
        "pmem image: is in use by another writer: give each guest a copy, or open "
        "it read-only or ephemeral in all");
    end_use(&users[0]);
    begin_use(&users[0], BOOT_PMEM_READ_ONLY);
    begin_use(&users[1], BOOT_PMEM_EPHEMERAL);
    refuses_use(BOOT_PMEM_SHARED,
                "pmem image: is in use by a reader, so it cannot be opened for writing: "
                "open it read-only or ephemeral, or give each guest a copy");
    end_use(&users[1]);
    end_use(&users[0]);
}

static char first_byte(const char *path)
{
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    char byte = '?';

    assert_int_equal(read(fd, &byte, 1), 1);
    return byte;
}

static void only_a_shared_one_is_written(void **state)
{
    static const char *const names[] = {"shared", "read-only", "ephemeral"};
    struct fixture fixture;
    struct memory *memory;

    (void)state;
    fixture_elf(&fixture);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        assert_string_equal(boot_pmem_mode_name(i), names[i]);
        make_file(names[i], 2 * MIB);
        add_pmem(&fixture, names[i], i);
    }
    open_pmems(&fixture);
    fixture_build(&fixture);
    memory = map_pmems(&fixture);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        char byte;

        assert_int_equal(memory_write(memory, fixture.plan->pmems[i].gpa, "X", 1), 0);
        assert_int_equal(memory_read(memory, fixture.plan->pmems[i].gpa, &byte, 1), 0);
        assert_int_equal(byte, 'X');
        assert_int_equal(first_byte(names[i]), i == BOOT_PMEM_SHARED ? 'X' : '\0');
    }
    memory_destroy(memory);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_bad_file_has_its_sentence),
        cmocka_unit_test(each_has_a_place_above_ram_and_no_entry_in_the_memory_map),
        cmocka_unit_test(ram_above_4_gib_comes_first),
        cmocka_unit_test(what_a_guest_cannot_address_is_refused),
        cmocka_unit_test(a_second_writer_is_refused_and_readers_share),
        cmocka_unit_test(only_a_shared_one_is_written),
    };

    return cmocka_run_group_tests_name("boot pmem", tests, make_directory,
                                       remove_directory);
}
