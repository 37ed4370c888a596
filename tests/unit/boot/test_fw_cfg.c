/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan offers by fw_cfg: the machine, and the kernel that firmware is to start. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/boot.h"
#include "x86/fw_cfg_keys.h"

/* ---- looking at items ---- */

static const struct boot_fw_item *search(const struct boot_plan *plan, uint16_t key,
                                         const char *name)
{
    for (size_t i = 0; i < plan->fw_item_count; i++) {
        const struct boot_fw_item *item = &plan->fw_items[i];

        if (name == NULL ? item->name == NULL && item->key == key
                         : item->name != NULL && strcmp(item->name, name) == 0)
            return item;
    }
    return NULL;
}

static bool has_key(const struct boot_plan *plan, uint16_t key)
{
    return search(plan, key, NULL) != NULL;
}

static const struct boot_fw_item *find_key(const struct boot_plan *plan, uint16_t key)
{
    const struct boot_fw_item *item = search(plan, key, NULL);

    if (item == NULL) {
        fail_msg("no item 0x%x", key);
        abort();
    }
    return item;
}

static const struct boot_fw_item *find_file(const struct boot_plan *plan,
                                            const char *name)
{
    const struct boot_fw_item *item = search(plan, 0, name);

    if (item == NULL) {
        fail_msg("no file %s", name);
        abort();
    }
    return item;
}

/* All bytes of an item, as a guest reads them; freed by the caller. */
static uint8_t *bytes_of(const struct boot_plan *plan, const struct boot_fw_item *item)
{
    uint8_t *bytes = calloc(1, item->size_bytes + 1);

    assert_non_null(bytes);
    for (size_t i = 0; i < item->part_count; i++) {
        const struct boot_fw_part *part = &plan->fw_parts[item->first_part + i];

        assert_true(range_within(part->at, part->size_bytes, item->size_bytes));
        if (part->bytes != NULL)
            memcpy(bytes + part->at, part->bytes, part->size_bytes);
        else
            assert_int_equal(pread(plan->files[part->file].input->fd, bytes + part->at,
                                   part->size_bytes, (off_t)part->file_offset),
                             part->size_bytes);
    }
    return bytes;
}

static void assert_item(const struct boot_plan *plan, const struct boot_fw_item *item,
                        const void *expected, size_t size_bytes)
{
    uint8_t *bytes = bytes_of(plan, item);

    assert_memory_equal(bytes, expected, size_bytes);
    assert_int_equal(item->size_bytes, size_bytes);
    free(bytes);
}

static void assert_number(const struct boot_plan *plan, uint16_t key, size_t size_bytes,
                          uint64_t value)
{
    uint8_t expected[8];

    store_le64(expected, value);
    assert_item(plan, find_key(plan, key), expected, size_bytes);
}

struct e820 {
    uint64_t gpa;
    uint64_t size_bytes;
    uint32_t type;
} __attribute__((packed));

/* ---- the machine ---- */

static void every_guest_is_told_its_machine(void **state)
{
    static const struct e820 map[] = {
        {0, 64 * MIB, 1},
        {0xe0000000, MIB, 2},
        {0xfeffc000, 0x4000, 2},
    };
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture.options.cpu_count = 3;
    fixture_build(&fixture);
    assert_number(fixture.plan, FW_CFG_RAM_SIZE, 8, 64 * MIB);
    assert_number(fixture.plan, FW_CFG_NOGRAPHIC, 2, 1);
    assert_number(fixture.plan, FW_CFG_NB_CPUS, 2, 3);
    assert_number(fixture.plan, FW_CFG_MAX_CPUS, 2, 3);
    assert_item(fixture.plan, find_file(fixture.plan, "etc/e820"), map, sizeof(map));
    assert_int_equal(fixture.plan->fw_item_count, 5); /* and of nothing else */
    fixture_close(&fixture);
}

static void ram_above_4_gib_is_an_entry_of_its_own(void **state)
{
    static const struct e820 map[] = {
        {0, 3 * GIB, 1},
        {0xe0000000, MIB, 2},
        {0xfeffc000, 0x4000, 2},
        {4 * GIB, 5 * GIB, 1},
    };
    struct fixture fixture;
    (void)state;

    fixture_firmware(&fixture, 0x10000);
    fixture.options.memory_bytes = 8 * GIB;
    fixture_build(&fixture);
    assert_number(fixture.plan, FW_CFG_RAM_SIZE, 8, 8 * GIB);
    assert_item(fixture.plan, find_file(fixture.plan, "etc/e820"), map, sizeof(map));
    fixture_close(&fixture);
}

static void firmware_alone_gets_no_kernel(void **state)
{
    static const uint16_t keys[] = {FW_CFG_KERNEL_DATA,  FW_CFG_KERNEL_SIZE,
                                    FW_CFG_INITRD_DATA,  FW_CFG_INITRD_SIZE,
                                    FW_CFG_CMDLINE_DATA, FW_CFG_SETUP_DATA};
    struct fixture fixture;
    (void)state;

    fixture_firmware(&fixture, 0x10000);
    fixture_build(&fixture);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        assert_false(has_key(fixture.plan, keys[i]));
    fixture_close(&fixture);
}

/* ---- a bzImage ---- */

static void a_bzimage_is_offered_in_its_parts(void **state)
{
    struct fixture fixture;
    const struct boot_plan *plan;
    uint8_t *kernel;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_add_firmware(&fixture, 0x10000);
    fixture_build(&fixture);
    plan = fixture.plan;
    assert_int_equal(plan->protocol, BOOT_FIRMWARE);
    assert_number(plan, FW_CFG_SETUP_ADDR, 4, 0x10000);
    assert_number(plan, FW_CFG_SETUP_SIZE, 4, 0x1000);
    assert_number(plan, FW_CFG_KERNEL_ADDR, 4, 0x100000);
    assert_number(plan, FW_CFG_KERNEL_SIZE, 4, 0x4000);
    assert_number(plan, FW_CFG_CMDLINE_ADDR, 4, 0x20000);
    assert_number(plan, FW_CFG_CMDLINE_SIZE, 4, 14);
    assert_number(plan, FW_CFG_INITRD_ADDR, 4, 0);
    assert_number(plan, FW_CFG_INITRD_SIZE, 4, 0);
    assert_false(has_key(plan, FW_CFG_KERNEL_ENTRY)); /* it is entered in real mode */
    assert_false(has_key(plan, FW_CFG_INITRD_DATA));
    assert_item(plan, find_key(plan, FW_CFG_CMDLINE_DATA), "console=ttyS0", 14);
    kernel = bytes_of(plan, find_key(plan, FW_CFG_KERNEL_DATA));
    for (size_t i = 0; i < 0x4000; i++)
        assert_int_equal(kernel[i], fixture_byte(0x1000 + i));
    free(kernel);
    fixture_close(&fixture);
}

static void setup_header_says_what_a_loader_has_to_say(void **state)
{
    static const uint8_t changed[][2] = {
        {0x10, 1}, {0x11, 1}, {0x18, 8}, {0x24, 2}, {0x28, 4},
    };
    struct fixture fixture;
    const struct boot_fw_item *item;
    uint8_t *setup;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_add_firmware(&fixture, 0x10000);
    fixture_add_initrd(&fixture, "initrd", 0x1234);
    fixture_build(&fixture);
    item = find_key(fixture.plan, FW_CFG_SETUP_DATA);
    assert_int_equal(item->size_bytes, 0x1000);
    setup = bytes_of(fixture.plan, item);
    assert_int_equal(setup[0x210], 0xff);                       /* type_of_loader */
    assert_int_equal(setup[0x211], fixture_byte(0x211) | 0x80); /* CAN_USE_HEAP */
    assert_int_equal(load_le32(setup + 0x218), 0x1100000);      /* behind init_size */
    assert_int_equal(load_le32(setup + 0x21c), 0x1234);
    assert_int_equal(load_le16(setup + 0x224), 0xfe00);  /* heap_end_ptr */
    assert_int_equal(load_le32(setup + 0x228), 0x20000); /* cmd_line_ptr */
    for (size_t i = 0; i < ARRAY_SIZE(changed); i++)
        for (size_t j = 0; j < changed[i][1]; j++)
            setup[0x200 + changed[i][0] + j] = fixture_byte(0x200u + changed[i][0] + j);
    for (size_t i = 0; i < 0x1000; i++)
        assert_int_equal(setup[i], fixture_byte(i)); /* and nothing else is changed */
    free(setup);
    fixture_close(&fixture);
}

static void initrds_are_one_with_zeros_between(void **state)
{
    struct fixture fixture;
    const struct boot_fw_item *item;
    uint8_t *initrd;
    (void)state;

    fixture_bzimage(&fixture);
    fixture_add_firmware(&fixture, 0x10000);
    fixture_add_initrd(&fixture, "microcode", 0x1001);
    fixture_add_initrd(&fixture, "initrd", 0x2fff);
    fixture_build(&fixture);
    assert_number(fixture.plan, FW_CFG_INITRD_ADDR, 4, 0x1100000);
    assert_number(fixture.plan, FW_CFG_INITRD_SIZE, 4, 0x4fff);
    item = find_key(fixture.plan, FW_CFG_INITRD_DATA);
    assert_int_equal(item->size_bytes, 0x4fff);
    assert_int_equal(item->part_count, 2); /* whole files, whatever could be mapped */
    initrd = bytes_of(fixture.plan, item);
    for (size_t i = 0; i < 0x1001; i++)
        assert_int_equal(initrd[i], fixture_byte(i));
    for (size_t i = 0x1001; i < 0x2000; i++)
        assert_int_equal(initrd[i], 0);
    for (size_t i = 0; i < 0x2fff; i++)
        assert_int_equal(initrd[0x2000 + i], fixture_byte(i));
    free(initrd);
    fixture_close(&fixture);
}

/* ---- every other kernel ---- */

static void a_pvh_kernel_is_one_piece_with_what_it_is_handed(void **state)
{
    static const uint8_t registers[8] = {0, 0, 0, 0, 0x00, 0x60, 0x10, 0};
    struct fixture fixture;
    const struct boot_plan *plan;
    const struct boot_fw_item *item;
    uint8_t *kernel, *information;
    uint32_t place;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_firmware(&fixture, 0x10000);
    fixture_add_initrd(&fixture, "initrd", 0x1800);
    fixture_build(&fixture);
    plan = fixture.plan;
    assert_number(plan, FW_CFG_KERNEL_ADDR, 4, 0x100000);
    assert_number(plan, FW_CFG_KERNEL_ENTRY, 4, 0x100040);
    assert_false(has_key(plan, FW_CFG_SETUP_SIZE));
    assert_false(has_key(plan, FW_CFG_CMDLINE_SIZE));
    item = find_key(plan, FW_CFG_KERNEL_DATA);
    assert_number(plan, FW_CFG_KERNEL_SIZE, 4, item->size_bytes);
    kernel = bytes_of(plan, item);
    for (size_t i = 0; i < 0x1800; i++)
        assert_int_equal(kernel[i], fixture_byte(0x1000 + i));
    for (size_t i = 0x1800; i < 0x2800; i++)
        assert_int_equal(kernel[i], 0); /* bss */
    for (size_t i = 0; i < 0x1800; i++)
        assert_int_equal(kernel[0x3000 + i], fixture_byte(i)); /* the initrd */

    item = find_file(plan, "etc/husk/entry");
    assert_int_equal(item->size_bytes, sizeof(registers));
    information = bytes_of(plan, item);
    place = load_le32(information + 4);
    assert_int_equal(load_le32(information), 0);
    free(information);
    assert_number(plan, FW_CFG_INITRD_ADDR, 4, place);
    item = find_key(plan, FW_CFG_INITRD_DATA);
    assert_number(plan, FW_CFG_INITRD_SIZE, 4, item->size_bytes);
    assert_item(plan, item, kernel + (place - 0x100000), item->size_bytes);
    information = kernel + (place - 0x100000);
    assert_int_equal(load_le32(information), 0x336ec578); /* start_info */
    assert_int_equal(load_le32(information + 12), 1);     /* one module */
    assert_int_equal(load_le64(information + 32), 0);     /* RSDP: firmware's */
    assert_string_equal((char *)kernel + (load_le64(information + 24) - 0x100000),
                        "console=ttyS0");
    free(kernel);
    fixture_close(&fixture);
}

static void what_firmware_cannot_enter_is_refused(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_elf(&fixture);
    fixture_add_firmware(&fixture, 0x10000);
    fixture.options.protocol = BOOT_LINUX64;
    fixture_refuses(
        &fixture, "kernel vmlinux: firmware cannot start it by --protocol linux64, only "
                  "husk itself can; leave out --firmware");
    fixture_close(&fixture);
}

static void the_end_of_ram_is_left_to_firmware(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_bzimage(&fixture);
    fixture.options.memory_bytes = 17 * MIB; /* where the kernel's memory ends */
    fixture_add_firmware(&fixture, 0x10000);
    fixture_refuses(&fixture,
                    "kernel vmlinuz: needs at least 18 MiB of memory, -m gives 17 MiB");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_guest_is_told_its_machine),
        cmocka_unit_test(ram_above_4_gib_is_an_entry_of_its_own),
        cmocka_unit_test(firmware_alone_gets_no_kernel),
        cmocka_unit_test(a_bzimage_is_offered_in_its_parts),
        cmocka_unit_test(setup_header_says_what_a_loader_has_to_say),
        cmocka_unit_test(initrds_are_one_with_zeros_between),
        cmocka_unit_test(a_pvh_kernel_is_one_piece_with_what_it_is_handed),
        cmocka_unit_test(what_firmware_cannot_enter_is_refused),
        cmocka_unit_test(the_end_of_ram_is_left_to_firmware),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
