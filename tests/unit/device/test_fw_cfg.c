/* SPDX-License-Identifier: Apache-2.0 */
/* fw_cfg by its ports: items, parts, the directory, and string input. */
#include "fw_cfg_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"

static void assert_reads(struct fixture *fixture, const void *expected, size_t size)
{
    const uint8_t *bytes = expected;

    for (size_t i = 0; i < size; i++)
        assert_int_equal(fixture_read(fixture), bytes[i]);
}

static void signature_is_selected_first_and_followed_by_zeros(void **state)
{
    fixture_attach(*state);
    assert_reads(*state, "QEMU\0\0\0", 7);
}

static void features_are_ports_and_dma(void **state)
{
    fixture_attach(*state);
    fixture_select(*state, FW_CFG_FEATURES);
    assert_reads(*state, "\x03\0\0\0\0", 5);
}

static void without_dma_there_is_no_address_register(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;

    fw_cfg_destroy(fixture->fw_cfg);
    assert_int_equal(fw_cfg_create(fixture->memory, false, &fixture->fw_cfg, &err), 0);
    fixture_attach(fixture);
    assert_int_equal(bus_read(&fixture->ports, 0x514, 4), 0xffffffff);
    fixture_select(fixture, FW_CFG_FEATURES);
    assert_reads(fixture, "\x01\0\0\0\0", 5);
}

static void selecting_starts_from_the_first_byte(void **state)
{
    fixture_add_bytes(*state, FW_CFG_NB_CPUS, "\x12\x34", 2);
    fixture_attach(*state);
    fixture_select(*state, FW_CFG_NB_CPUS);
    assert_reads(*state, "\x12", 1);
    fixture_select(*state, FW_CFG_NB_CPUS);
    assert_reads(*state, "\x12\x34\0", 3);
}

static void what_does_not_exist_reads_as_zero(void **state)
{
    static const uint16_t keys[] = {FW_CFG_KERNEL_DATA,  FW_CFG_KERNEL_SIZE,
                                    FW_CFG_FILE_FIRST,   0x3fff,
                                    FW_CFG_ARCHITECTURE, 0xffff};

    fixture_attach(*state);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        fixture_select(*state, keys[i]);
        assert_reads(*state, "\0\0\0\0\0\0\0\0", 8);
    }
}

static void bit_14_of_a_key_has_no_meaning(void **state)
{
    fixture_add_bytes(*state, 0x8003, "arch", 4);
    fixture_attach(*state);
    fixture_select(*state, 0x4000 | FW_CFG_SIGNATURE);
    assert_reads(*state, "QEMU", 4);
    fixture_select(*state, 0xc003);
    assert_reads(*state, "arch", 4);
    fixture_select(*state, 0x0003);
    assert_reads(*state, "\0", 1);
}

static void only_words_select_and_nothing_is_written(void **state)
{
    struct fixture *fixture = *state;

    fixture_add_bytes(fixture, 0x0055, "five", 4);
    fixture_attach(fixture);
    bus_write(&fixture->ports, 0x510, 1, 0x55);
    bus_write(&fixture->ports, 0x511, 1, 0x55);
    assert_reads(fixture, "QE", 2);
    bus_write(&fixture->ports, 0x511, 1, 0x55);
    assert_reads(fixture, "MU", 2);
    fixture_select(fixture, 0x0055);
    assert_reads(fixture, "five", 4);
}

static void selector_reads_as_ones_and_takes_no_byte(void **state)
{
    struct fixture *fixture = *state;

    fixture_attach(fixture);
    assert_int_equal(bus_read(&fixture->ports, 0x510, 1), 0xff);
    assert_int_equal(bus_read(&fixture->ports, 0x510, 2), 0xffff);
    assert_reads(fixture, "QEMU", 4);
}

static void ports_between_data_and_dma_belong_to_nobody(void **state)
{
    struct fixture *fixture = *state;

    fixture_attach(fixture);
    assert_int_equal(bus_read(&fixture->ports, 0x512, 2), 0xffff);
    /* A word from the data port is one byte of data and one from nobody. */
    assert_int_equal(bus_read(&fixture->ports, 0x511, 2), 0xff00 | 'Q');
}

/* ---- the directory ---- */

static void directory_names_files_in_order_with_sizes_and_keys(void **state)
{
    uint8_t expected[4 + 3 * 64] = {[3] = 3};
    static const char *const names[] = {"bootorder", "etc/e820", "etc/e820.more"};
    static const uint8_t sizes[] = {5, 3, 1};

    fixture_add_file(*state, "etc/e820.more", "x", 1);
    fixture_add_bytes(*state, FW_CFG_NB_CPUS, "\x01", 2); /* in no directory */
    fixture_add_file(*state, "bootorder", "/rom\0", 5);
    fixture_add_file(*state, "etc/e820", "map", 3);
    fixture_attach(*state);
    for (size_t i = 0; i < 3; i++) {
        uint8_t *entry = expected + 4 + 64 * i;

        entry[3] = sizes[i];
        entry[5] = (uint8_t)(0x20 + i);
        memcpy(entry + 8, names[i], strlen(names[i]));
    }
    fixture_select(*state, FW_CFG_FILE_DIRECTORY);
    assert_reads(*state, expected, sizeof(expected));
    assert_reads(*state, "\0\0", 2);
    fixture_select(*state, 0x21);
    assert_reads(*state, "map\0", 4);
}

static void directory_without_files_has_a_count_of_0(void **state)
{
    fixture_attach(*state);
    fixture_select(*state, FW_CFG_FILE_DIRECTORY);
    assert_reads(*state, "\0\0\0\0\0", 5);
}

static void a_name_of_55_bytes_fits_and_one_of_56_does_not(void **state)
{
    struct fixture *fixture = *state;
    char name[57];
    struct error err = ERROR_NONE;

    memset(name, 'n', 56);
    name[56] = '\0';
    assert_int_equal(fw_cfg_add_file(fixture->fw_cfg, name, 0, NULL, 0, &err), -EINVAL);
    assert_string_equal(err.text, "the name "
                                  "'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
                                  "nnn' is too long for fw_cfg: it has at most 55 bytes");
    name[55] = '\0';
    fixture_add_file(fixture, name, "", 0);
    fixture_attach(fixture);
    fixture_select(fixture, FW_CFG_FILE_DIRECTORY);
    assert_reads(fixture, "\0\0\0\1\0\0\0\0\0\x20\0\0", 12);
    assert_reads(fixture, name, 56);
}

static void a_name_is_given_once(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;

    fixture_add_file(fixture, "etc/e820", "", 0);
    assert_int_equal(fw_cfg_add_file(fixture->fw_cfg, "etc/e820", 0, NULL, 0, &err),
                     -EINVAL);
    assert_string_equal(err.text, "fw_cfg has a file 'etc/e820' already");
}

static void there_is_room_for_61_items_besides_its_own(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;
    char name[16];

    for (int i = 0; i < 61; i++) {
        (void)snprintf(name, sizeof(name), "file %02d", i);
        fixture_add_file(fixture, name, "", 0);
    }
    fixture_attach(fixture);
    fixture_select(fixture, FW_CFG_FILE_DIRECTORY);
    assert_reads(fixture, "\0\0\0\x3d", 4);
    assert_int_equal(fixture_destroy(state), 0);

    assert_int_equal(fixture_create(state), 0);
    fixture = *state;
    for (int i = 0; i < 62; i++) {
        (void)snprintf(name, sizeof(name), "file %02d", i);
        fixture_add_file(fixture, name, "", 0);
    }
    assert_int_equal(fw_cfg_attach(fixture->fw_cfg, &fixture->ports, &err), -ENOSPC);
    assert_string_equal(err.text, "fw_cfg has no more than 64 items");
}

static void an_item_has_less_than_4_gib(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;

    assert_int_equal(
        fw_cfg_add_item(fixture->fw_cfg, 0x30, UINT64_C(0x100000000), NULL, 0, &err),
        -EFBIG);
    assert_string_equal(
        err.text, "has 4294967296 bytes; what fw_cfg hands over has less than 4 GiB");
    err = ERROR_NONE;
    assert_int_equal(
        fw_cfg_add_item(fixture->fw_cfg, 0x30, UINT64_C(0xffffffff), NULL, 0, &err), 0);
}

/* ---- parts ---- */

/* "0123456789" in a memory file. */
static int make_file(void)
{
    int fd = memfd_create("item", MFD_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "0123456789", 10), 10);
    return fd;
}

static void item_is_made_of_files_and_memory_with_zeros_between(void **state)
{
    struct fixture *fixture = *state;
    int fd = make_file();
    const struct fw_cfg_part parts[] = {
        {2, 3, source_from_fd(fd, 10), 4},
        {5, 2, source_from_memory("abc", 3), 1},
        {9, 1, source_from_fd(fd, 10), 9},
    };
    struct error err = ERROR_NONE;

    assert_int_equal(fw_cfg_add_item(fixture->fw_cfg, FW_CFG_KERNEL_DATA, 12, parts,
                                     ARRAY_SIZE(parts), &err),
                     0);
    fixture_attach(fixture);
    fixture_select(fixture, FW_CFG_KERNEL_DATA);
    assert_reads(fixture,
                 "\0\0"
                 "456bc"
                 "\0\0"
                 "9"
                 "\0\0\0\0",
                 14);
    assert_int_equal(close(fd), 0);
}

static void a_file_that_was_cut_reads_as_zeros(void **state)
{
    struct fixture *fixture = *state;
    int fd = make_file();
    const struct fw_cfg_part part = {0, 10, source_from_fd(fd, 10), 0};
    struct error err = ERROR_NONE;

    assert_int_equal(fw_cfg_add_item(fixture->fw_cfg, 0x30, 10, &part, 1, &err), 0);
    fixture_attach(fixture);
    assert_int_equal(ftruncate(fd, 4), 0);
    fixture_select(fixture, 0x30);
    assert_reads(fixture, "\0\0\0\0\0\0\0\0\0\0", 10);
    assert_int_equal(close(fd), 0);
}

/* ---- string input ---- */

#define LONG_BYTES 10000

static uint8_t *long_bytes(void)
{
    uint8_t *bytes = malloc(LONG_BYTES);

    assert_non_null(bytes);
    for (size_t i = 0; i < LONG_BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 256);
    return bytes;
}

static void string_input_gives_what_single_bytes_give(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *bytes = long_bytes();
    uint8_t *read = malloc(LONG_BYTES + 100);
    size_t done = 0;

    assert_non_null(read);
    fixture_add_bytes(fixture, 0x30, bytes, LONG_BYTES);
    fixture_attach(fixture);
    fixture_select(fixture, 0x30);
    /* Pieces of 1, 2, 3, ... bytes, and single ones between them. */
    for (uint32_t count = 1; done + count < LONG_BYTES; count++) {
        bus_read_string(&fixture->ports, 0x511, 1, count, read + done);
        done += count;
        read[done++] = fixture_read(fixture);
    }
    bus_read_string(&fixture->ports, 0x511, 1, (uint32_t)(LONG_BYTES + 100 - done),
                    read + done);
    assert_memory_equal(read, bytes, LONG_BYTES);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(read[LONG_BYTES + i], 0);
    free(read);
    free(bytes);
}

static void string_input_of_the_selector_gives_ones(void **state)
{
    struct fixture *fixture = *state;
    uint8_t read[6] = {0};

    fixture_attach(fixture);
    bus_read_string(&fixture->ports, 0x510, 2, 3, read);
    assert_memory_equal(read, "\xff\xff\xff\xff\xff\xff", 6);
    bus_read_string(&fixture->ports, 0x511, 2, 2, read);
    assert_memory_equal(read,
                        "Q\xff"
                        "E\xff",
                        4);
}

static void counters_count_what_went_to_the_guest(void **state)
{
    struct fixture *fixture = *state;
    struct fw_cfg_counters counters;
    uint8_t read[20];

    fixture_attach(fixture);
    (void)fixture_read(fixture);
    bus_read_string(&fixture->ports, 0x511, 1, sizeof(read), read);
    fw_cfg_counters(fixture->fw_cfg, &counters);
    assert_int_equal(counters.port_bytes, 21);
    assert_int_equal(counters.dma_bytes, 0);
    assert_int_equal(counters.dma_operations, 0);
}

static void reset_selects_the_signature(void **state)
{
    struct fixture *fixture = *state;

    fixture_attach(fixture);
    fixture_select(fixture, FW_CFG_FEATURES);
    (void)fixture_read(fixture);
    fw_cfg_reset(fixture->fw_cfg);
    assert_reads(fixture, "QEMU", 4);
}

#define WITH_DEVICE(test)                                                                \
    cmocka_unit_test_setup_teardown(test, fixture_create, fixture_destroy)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DEVICE(signature_is_selected_first_and_followed_by_zeros),
        WITH_DEVICE(features_are_ports_and_dma),
        WITH_DEVICE(without_dma_there_is_no_address_register),
        WITH_DEVICE(selecting_starts_from_the_first_byte),
        WITH_DEVICE(what_does_not_exist_reads_as_zero),
        WITH_DEVICE(bit_14_of_a_key_has_no_meaning),
        WITH_DEVICE(only_words_select_and_nothing_is_written),
        WITH_DEVICE(selector_reads_as_ones_and_takes_no_byte),
        WITH_DEVICE(ports_between_data_and_dma_belong_to_nobody),
        WITH_DEVICE(directory_names_files_in_order_with_sizes_and_keys),
        WITH_DEVICE(directory_without_files_has_a_count_of_0),
        WITH_DEVICE(a_name_of_55_bytes_fits_and_one_of_56_does_not),
        WITH_DEVICE(a_name_is_given_once),
        WITH_DEVICE(there_is_room_for_61_items_besides_its_own),
        WITH_DEVICE(an_item_has_less_than_4_gib),
        WITH_DEVICE(item_is_made_of_files_and_memory_with_zeros_between),
        WITH_DEVICE(a_file_that_was_cut_reads_as_zeros),
        WITH_DEVICE(string_input_gives_what_single_bytes_give),
        WITH_DEVICE(string_input_of_the_selector_gives_ones),
        WITH_DEVICE(counters_count_what_went_to_the_guest),
        WITH_DEVICE(reset_selects_the_signature),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
