/* SPDX-License-Identifier: Apache-2.0 */
/* What firmware is given to start a kernel with: husk's option ROM, and that it is to
 * boot from it. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/builder_private.h"

static uint16_t word_at(const uint8_t *bytes, size_t at)
{
    return load_le16(bytes + at);
}

static uint8_t sum_of(const uint8_t *bytes, size_t size_bytes)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < size_bytes; i++)
        sum = (uint8_t)(sum + bytes[i]);
    return sum;
}

/* PnP BIOS 1.0A, 3.1; firmware looks for ROMs in steps of 2 KiB. */
static void rom_has_the_header_of_one(void **state)
{
    size_t size_bytes = 0;
    uint8_t *rom = boot_option_rom(&size_bytes);

    (void)state;
    assert_non_null(rom);
    assert_int_equal(word_at(rom, 0), 0xaa55);
    assert_int_equal(rom[2] * 512, size_bytes);
    assert_true(size_bytes <= 2048);
    assert_int_equal(rom[3], 0xeb); /* a short jump to its initialisation */
    assert_int_equal(sum_of(rom, size_bytes), 0);
    free(rom);
}

/* PnP BIOS 1.0A, 3.2: a bootstrap entry vector, and nothing that is hooked. */
static void rom_can_be_booted_from(void **state)
{
    size_t size_bytes = 0;
    uint8_t *rom = boot_option_rom(&size_bytes);
    const uint8_t *header;

    (void)state;
    assert_non_null(rom);
    header = rom + word_at(rom, 0x1a);
    assert_true(word_at(rom, 0x1a) % 16 == 0);
    assert_memory_equal(header, "$PnP\x01\x02", 6);
    assert_int_equal(sum_of(header, 32), 0);
    assert_string_equal((const char *)rom + word_at(header, 0x0e), "husk");
    assert_string_equal((const char *)rom + word_at(header, 0x10),
                        "husk: kernel by fw_cfg");
    assert_int_equal(word_at(header, 0x16), 0);
    assert_int_equal(word_at(header, 0x18), 0);
    assert_in_range(word_at(header, 0x1a), 0x40, size_bytes - 1);
    free(rom);
}

static const struct boot_fw_item *find_file(const struct boot_plan *plan,
                                            const char *name)
{
    for (size_t i = 0; i < plan->fw_item_count; i++)
        if (plan->fw_items[i].name != NULL && strcmp(plan->fw_items[i].name, name) == 0)
            return &plan->fw_items[i];
    return NULL;
}

static void assert_file(const struct boot_plan *plan, const char *name,
                        const void *expected, size_t size_bytes)
{
    const struct boot_fw_item *item = find_file(plan, name);

    if (item == NULL) {
        fail_msg("no file %s", name);
        abort();
    }
    assert_int_equal(item->size_bytes, size_bytes);
    assert_int_equal(item->part_count, 1);
    assert_memory_equal(plan->fw_parts[item->first_part].bytes, expected, size_bytes);
}

static void kernel_comes_with_the_rom_that_starts_it(void **state)
{
    static const char order[] = "/rom@genroms/husk.rom\nHALT";
    struct fixture fixture;
    size_t size_bytes = 0;
    uint8_t *rom = boot_option_rom(&size_bytes);

    (void)state;
    fixture_bzimage(&fixture);
    fixture_add_firmware(&fixture, 0x20000);
    fixture_build(&fixture);
    assert_file(fixture.plan, "genroms/husk.rom", rom, size_bytes);
    assert_file(fixture.plan, "bootorder", order, sizeof(order));
    fixture_close(&fixture);
    free(rom);
}

static void firmware_alone_has_no_rom_and_its_own_boot_order(void **state)
{
    struct fixture fixture;
    (void)state;

    fixture_firmware(&fixture, 0x20000);
    fixture_build(&fixture);
    assert_null(find_file(fixture.plan, "genroms/husk.rom"));
    assert_null(find_file(fixture.plan, "bootorder"));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rom_has_the_header_of_one),
        cmocka_unit_test(rom_can_be_booted_from),
        cmocka_unit_test(kernel_comes_with_the_rom_that_starts_it),
        cmocka_unit_test(firmware_alone_has_no_rom_and_its_own_boot_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
