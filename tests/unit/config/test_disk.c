/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a disk: by --disk, in QEMU's words, and in Firecracker's files. */
#include "parse.h"

#include "config/schema_private.h"

static struct config_disk parsed(const char *text)
{
    struct error err = ERROR_NONE;
    struct config_disk disk;
    int result = config_disk_parse(text, &disk, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
    return disk;
}

static void expect_disk_refused(const char *text, const char *sentence)
{
    struct error err = ERROR_NONE;
    struct config_disk disk;

    assert_int_equal(config_disk_parse(text, &disk, &err), -EINVAL);
    assert_string_equal(err.text, sentence);
}

static void file_alone_is_a_disk_with_the_defaults(void **state)
{
    struct config_disk disk = parsed("a.img");

    (void)state;
    assert_string_equal(disk.path, "a.img");
    assert_string_equal(disk.engine, "auto");
    assert_false(disk.read_only);
    assert_false(disk.ephemeral);
    assert_false(disk.direct);
    assert_string_equal(disk.serial, "");
    assert_int_equal(disk.queue_count, 0);
    assert_int_equal(disk.on_read_error, CONFIG_DISK_REPORT);
    assert_int_equal(disk.on_write_error, CONFIG_DISK_STOP_IF_FULL);
}

static void options_stand_behind_commas(void **state)
{
    struct config_disk disk = parsed("/dev/sdb,ro,direct,engine=threads,serial=Root-1,"
                                     "queues=16,werror=stop,rerror=stop,format=raw");

    (void)state;
    assert_string_equal(disk.path, "/dev/sdb");
    assert_string_equal(disk.engine, "threads");
    assert_true(disk.read_only);
    assert_true(disk.direct);
    assert_string_equal(disk.serial, "Root-1");
    assert_int_equal(disk.queue_count, 16);
    assert_int_equal(disk.on_read_error, CONFIG_DISK_STOP);
    assert_int_equal(disk.on_write_error, CONFIG_DISK_STOP);
    assert_true(parsed("a,ephemeral").ephemeral);
    assert_false(parsed("a,ro,ro=off").read_only);
    assert_int_equal(parsed("a,werror=report").on_write_error, CONFIG_DISK_REPORT);
    assert_int_equal(parsed("a,werror=enospc-stop").on_write_error,
                     CONFIG_DISK_STOP_IF_FULL);
}

static void any_file_name_can_be_said(void **state)
{
    (void)state;
    assert_string_equal(parsed("a,,b,,,,c,ro").path, "a,b,,c");
    assert_string_equal(parsed("a=b").path, "a=b");
    assert_string_equal(parsed("ro").path, "ro");
    assert_string_equal(parsed("file=engine=x").path, "engine=x");
    assert_string_equal(parsed("ro=on,file=a,,b").path, "a,b");
    assert_string_equal(parsed("a b\tc").path, "a b\tc");
}

static void qemus_words_are_understood(void **state)
{
    struct config_disk disk = parsed("file=a.img,if=virtio,format=raw,media=disk,id=d0,"
                                     "index=0,readonly=on,cache=none,aio=io_uring,"
                                     "werror=enospc");

    (void)state;
    assert_string_equal(disk.path, "a.img");
    assert_true(disk.read_only);
    assert_true(disk.direct);
    assert_string_equal(disk.engine, "uring");
    assert_int_equal(disk.on_write_error, CONFIG_DISK_STOP_IF_FULL);
    assert_true(parsed("format=raw,file=a,snapshot=on").ephemeral);
    assert_false(parsed("file=a,cache=writeback").direct);
    assert_string_equal(parsed("if=none,file=a,aio=threads").engine, "threads");
}

static void each_mistake_has_its_sentence(void **state)
{
    (void)state;
    expect_disk_refused("", "the file name is empty");
    expect_disk_refused(",ro", "the file name is empty");
    expect_disk_refused("engine=mmap", "names no file");
    expect_disk_refused("a,file=b", "has two files, 'a' and 'b'");
    expect_disk_refused("a,enginee=mmap",
                        "'enginee' is no option of a disk; did you mean 'engine'?");
    expect_disk_refused("a,bbbbbbbb", "'bbbbbbbb' is no option of a disk; a comma in a "
                                      "name is written twice");
    expect_disk_refused("a,engine", "engine needs a value: engine=...");
    expect_disk_refused("a,engine=aio", "engine 'aio' is unknown; choose auto, sync, "
                                        "threads, mmap or uring");
    expect_disk_refused(
        "a,format=qcow2",
        "format 'qcow2' is not supported, only raw is; make a raw disk of "
        "it first, as with 'qemu-img convert -O raw'");
    expect_disk_refused("a,werror=ignore",
                        "werror 'ignore' is unknown; choose report, stop or enospc-stop");
    expect_disk_refused("a,rerror=enospc-stop",
                        "rerror 'enospc-stop' is unknown; choose report or stop");
    expect_disk_refused("a,serial=123456789012345678901",
                        "serial '123456789012345678901' is longer than 20 characters");
    expect_disk_refused("a,serial=a b",
                        "serial 'a b' has blanks or characters outside of ASCII");
    expect_disk_refused("a,queues=0", "queues '0' is no number from 1 to 16");
    expect_disk_refused("a,queues=17", "queues '17' is no number from 1 to 16");
    expect_disk_refused("a,queues=-1", "queues '-1' is no number from 1 to 16");
    expect_disk_refused("a,ro=yes", "ro 'yes' is unknown; choose on or off");
    expect_disk_refused("a,cache=unsafe",
                        "cache 'unsafe' is unknown; choose writeback or none");
    expect_disk_refused("a,if=ide", "if 'ide' is unknown; choose virtio or none");
    expect_disk_refused("a,media=cdrom", "media 'cdrom' is unknown; choose disk");
    expect_disk_refused("a,aio=native",
                        "aio 'native' is unknown; choose threads or io_uring");
    expect_disk_refused(
        "a,ephemeral,engine=uring",
        "an ephemeral disk needs the engine mmap; leave out engine=uring");
    expect_disk_refused(
        "a,direct,ephemeral",
        "direct and ephemeral exclude each other: a map is the page cache");
    expect_disk_refused(
        "a,direct,engine=mmap",
        "direct and the engine mmap exclude each other: a map is the page cache");
}

static void names_are_as_long_as_the_host_takes_them(void **state)
{
    char name[5000];

    (void)state;
    memset(name, 'n', sizeof(name));
    name[4096] = '\0';
    expect_disk_refused(name, "the file name is too long");
    name[4095] = '\0';
    assert_int_equal(strlen(parsed(name).path), 4095);
}

static void flags_are_repeated_up_to_16_times(void **state)
{
    struct vm_config config;
    const char *words[40] = {"k"};

    (void)state;
    expect_parsed(&config, WORDS("k", "-d", "a", "--disk=b,ro", "-drive", "file=c"));
    assert_int_equal(config.disk_count, 3);
    assert_string_equal(config.disks[1], "b,ro");
    config_finish(&config);
    for (size_t i = 0; i < 17; i++) {
        words[1 + 2 * i] = "-d";
        words[2 + 2 * i] = "a";
    }
    expect_refused(words, "-d: more than 16 are given");
    expect_refused(WORDS("k", "-d", "a,b"),
                   "-d: 'b' is no option of a disk; a comma in a name is written twice");
    expect_refused(WORDS("k", "-d", "a", "--deterministic"),
                   "--deterministic cannot repeat when a disk answers; leave out --disk");
}

/* ---- Firecracker's files ---- */

static void expect_drives(struct vm_config *config, const char *text)
{
    struct error err = ERROR_NONE;
    int result;

    config_init(config);
    result = config_file_parse(config, text, strlen(text), &err);
    assert_string_equal(err.text, "");
    assert_int_equal(result, 0);
}

static void expect_drives_refused(const char *text, const char *sentence)
{
    struct error err = ERROR_NONE;
    struct vm_config config;

    config_init(&config);
    assert_int_equal(config_file_parse(&config, text, strlen(text), &err), -EINVAL);
    config_finish(&config);
    assert_string_equal(err.text, sentence);
}

static void drives_are_disks_and_the_root_device_comes_first(void **state)
{
    struct config_disk disk;
    struct vm_config config;

    (void)state;
    expect_drives(
        &config,
        "{\"drives\": ["
        "  {\"drive_id\": \"data_disk_with_a_long_name\", \"path_on_host\": \"d,1.img\","
        "   \"is_root_device\": false, \"io_engine\": \"Async\", \"partuuid\": null},"
        "  {\"drive_id\": \"rootfs\", \"path_on_host\": \"root.ext4\","
        "   \"is_root_device\": true, \"is_read_only\": true, \"rate_limiter\": {},"
        "   \"cache_type\": \"Unsafe\", \"io_engine\": \"Sync\"}],"
        " \"boot-source\": {\"boot_args\": \"panic=1\"}}");
    assert_int_equal(config.disk_count, 2);
    disk = parsed(config.disks[0]);
    assert_string_equal(disk.path, "root.ext4");
    assert_string_equal(disk.serial, "rootfs");
    assert_string_equal(disk.engine, "sync");
    assert_true(disk.read_only);
    disk = parsed(config.disks[1]);
    assert_string_equal(disk.path, "d,1.img");
    assert_string_equal(disk.serial, "data_disk_with_a_lon");
    assert_string_equal(disk.engine, "uring");
    assert_false(disk.read_only);
    assert_string_equal(config.append, "panic=1 root=/dev/vda ro");
    config_finish(&config);
}

static void root_may_be_named_by_its_partition(void **state)
{
    struct vm_config config;

    (void)state;
    expect_drives(&config, "{\"drives\": [{\"path_on_host\": \"a\", \"is_root_device\": "
                           "true, \"partuuid\": \"0eaa91a0-01\"}]}");
    assert_string_equal(config.append, "root=PARTUUID=0eaa91a0-01 rw");
    config_finish(&config);
    expect_drives(&config, "{\"drives\": null}");
    assert_int_equal(config.disk_count, 0);
    config_finish(&config);
}

/* A drive_id is text, and no way to say something else of the disk. */
static void words_in_a_drive_are_no_options(void **state)
{
    struct vm_config config;

    (void)state;
    expect_drives(&config,
                  "{\"drives\": [{\"path_on_host\": \"a,ro\", \"drive_id\": \"b,ro\"}]}");
    assert_string_equal(parsed(config.disks[0]).path, "a,ro");
    assert_string_equal(parsed(config.disks[0]).serial, "b,ro");
    assert_false(parsed(config.disks[0]).read_only);
    config_finish(&config);
}

static void each_mistake_in_a_drive_has_its_sentence(void **state)
{
    (void)state;
    expect_drives_refused("{\"drives\": {}}", "drives: must be an array, not an object");
    expect_drives_refused("{\"drives\": [1]}",
                          "drives[0]: must be an object, not a whole number");
    expect_drives_refused("{\"drives\": [{\"drive_id\": \"a\"}]}",
                          "drives[0]: path_on_host is missing or empty");
    expect_drives_refused("{\"drives\": [{\"path_on_host\": \"\"}]}",
                          "drives[0]: path_on_host is missing or empty");
    expect_drives_refused(
        "{\"drives\": [{\"path_on_host\": 1}]}",
        "drives[0]: path_on_host: must be a string, not a whole number");
    expect_drives_refused("{\"drives\": [{\"is_read_only\": \"yes\"}]}",
                          "drives[0]: is_read_only: must be true or false, not a string");
    expect_drives_refused("{\"drives\": [{\"path_on_hots\": \"a\"}]}",
                          "drives[0]: path_on_hots: unknown key; did you mean "
                          "'path_on_host'?");
    expect_drives_refused("{\"drives\": [{\"qqqqqqqqqq\": \"a\"}]}",
                          "drives[0]: qqqqqqqqqq: unknown key; husk.json(5) lists the "
                          "keys");
    expect_drives_refused(
        "{\"drives\": [{\"io_engine\": \"Fast\"}]}",
        "drives[0]: io_engine: 'Fast' is unknown; choose Sync or Async");
    expect_drives_refused("{\"drives\": [{\"rate_limiter\": {\"bandwidth\": {}}}]}",
                          "drives[0]: rate_limiter: husk does not support this; leave it "
                          "out");
    expect_drives_refused("{\"drives\": [{\"path_on_host\": \"a\", \"is_root_device\": "
                          "true}, {\"path_on_host\": \"b\", \"is_root_device\": true}]}",
                          "drives[1]: is a second root device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_alone_is_a_disk_with_the_defaults),
        cmocka_unit_test(options_stand_behind_commas),
        cmocka_unit_test(any_file_name_can_be_said),
        cmocka_unit_test(qemus_words_are_understood),
        cmocka_unit_test(each_mistake_has_its_sentence),
        cmocka_unit_test(names_are_as_long_as_the_host_takes_them),
        cmocka_unit_test(flags_are_repeated_up_to_16_times),
        cmocka_unit_test(drives_are_disks_and_the_root_device_comes_first),
        cmocka_unit_test(root_may_be_named_by_its_partition),
        cmocka_unit_test(words_in_a_drive_are_no_options),
        cmocka_unit_test(each_mistake_in_a_drive_has_its_sentence),
    };

    return cmocka_run_group_tests_name("config disk", tests, NULL, NULL);
}
