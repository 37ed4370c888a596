/* SPDX-License-Identifier: Apache-2.0 */
/* Opening the files of a boot: what is accepted, and one distinct message for each fault.
 */
#include "fixture.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

static char directory[] = "/tmp/husk-inputs-XXXXXX";

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

static void write_file(const char *name, const void *bytes, size_t size_bytes)
{
    CLEANUP_FD int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, bytes, size_bytes), 0);
}

/* An ELF64 with a PVH note and one loadable page. */
static void write_elf(const char *name)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr load;
        Elf64_Phdr note_segment;
        Elf64_Nhdr note;
        char owner[4];
        uint64_t entry;
    } file = {
        .header =
            {
                .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                .e_type = ET_EXEC,
                .e_machine = EM_X86_64,
                .e_version = EV_CURRENT,
                .e_entry = 0x100000,
                .e_phoff = sizeof(Elf64_Ehdr),
                .e_ehsize = sizeof(Elf64_Ehdr),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 2,
            },
        .load =
            {
                .p_type = PT_LOAD,
                .p_vaddr = 0x100000,
                .p_paddr = 0x100000,
                .p_filesz = sizeof(file),
                .p_memsz = 0x1000,
            },
        .note_segment =
            {
                .p_type = PT_NOTE,
                .p_offset = offsetof(typeof(file), note),
                .p_filesz = sizeof(Elf64_Nhdr) + 4 + 8,
            },
        .note = {.n_namesz = 4, .n_descsz = 8, .n_type = 18},
        .owner = "Xen",
        .entry = 0x100000,
    };

    write_file(name, &file, sizeof(file));
}

static const struct boot_options plain_options = {
    .kernel_path = "vmlinux",
    .cmdline = "",
    .memory_bytes = 64 * MIB,
    .cpu_count = 1,
};

static void refuses(const struct boot_options *options, const char *sentence)
{
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;

    assert_true(boot_inputs_open(&inputs, options, &err) < 0);
    assert_string_equal(err.text, sentence);
    assert_null(inputs.kernel.path);
    assert_int_equal(inputs.initrd_count, 0);
}

static void refuses_initrd(const char *path, const char *sentence)
{
    struct boot_options options = plain_options;

    options.initrd_paths[0] = path;
    options.initrd_count = 1;
    refuses(&options, sentence);
}

static void opens_a_kernel_and_its_initrds(void **state)
{
    struct boot_options options = plain_options;
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;
    (void)state;

    write_elf("vmlinux");
    write_file("initrd", "070701", 6);
    options.initrd_paths[0] = "initrd";
    options.initrd_count = 1;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(inputs.image.format, IMAGE_ELF64);
    assert_true(inputs.image.elf.has_pvh);
    assert_false(inputs.has_unpacked);
    assert_int_equal(inputs.initrd_count, 1);
    assert_int_equal(inputs.initrds[0].size_bytes, 6);
    boot_inputs_close(&inputs);
}

static void a_pipe_is_read_into_a_memory_file(void **state)
{
    struct boot_options options = plain_options;
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;
    char path[32];
    int ends[2];
    (void)state;

    write_elf("vmlinux");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fd_write_all(ends[1], "070701", 6), 0);
    fd_close(&ends[1]);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    options.initrd_paths[0] = path;
    options.initrd_count = 1;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(inputs.initrds[0].size_bytes, 6);
    assert_int_equal(inputs.initrds[0].mode, INPUT_MAP);
    assert_string_equal(inputs.initrds[0].reason, "pipe, read into a memory file");
    boot_inputs_close(&inputs);
    fd_close(&ends[0]);
}

static void a_compressed_kernel_is_opened_unpacked(void **state)
{
    struct boot_options options = {
        .kernel_path = "kernel.gz", .cmdline = "", .cache = {.disabled = true}};
    struct error err = ERROR_NONE;
    struct boot_inputs inputs;

    (void)state;
    write_elf("kernel");
    assert_int_equal(system("gzip -k kernel"), 0);
    assert_int_equal(boot_inputs_open(&inputs, &options, &err), 0);
    assert_string_equal(inputs.kernel.path, "kernel.gz");
    assert_int_equal(inputs.kernel.mode, INPUT_MAP);
    assert_string_equal(inputs.kernel.reason,
                        "gzip-compressed, image cache not used: --no-cache");
    assert_int_equal(inputs.image.format, IMAGE_ELF64);
    assert_int_equal(inputs.compressed.codec, IMAGE_CODEC_GZIP);
    assert_false(inputs.has_unpacked);
    boot_inputs_close(&inputs);
}

static void each_fault_of_a_kernel_file_has_its_message(void **state)
{
    struct boot_options options = plain_options;
    (void)state;

    options.kernel_path = "missing";
    refuses(&options, "kernel missing: cannot open: No such file or directory");

    assert_int_equal(mkdir("folder", 0700), 0);
    options.kernel_path = "folder";
    refuses(&options, "kernel folder: is a directory, not a file");

    write_file("empty", "", 0);
    options.kernel_path = "empty";
    refuses(&options, "kernel empty: is empty");
}

static void each_fault_of_an_initrd_has_its_message(void **state)
{
    uint8_t ext4[2048] = {0};
    (void)state;

    write_elf("vmlinux");
    refuses_initrd("missing", "initrd missing: cannot open: No such file or directory");
    (void)mkdir("folder", 0700);
    refuses_initrd("folder", "initrd folder: is a directory, not a file");
    write_file("empty", "", 0);
    refuses_initrd("empty", "initrd empty: is empty");

    ext4[0x438] = 0x53; /* the superblock's magic, at 1024 + 0x38 */
    ext4[0x439] = 0xef;
    write_file("root.img", ext4, sizeof(ext4));
    refuses_initrd(
        "root.img",
        "initrd root.img: is an ext2, ext3 or ext4 file system; an initrd is a "
        "cpio archive, compressed or not");
}

static void a_fault_in_the_second_initrd_closes_the_first(void **state)
{
    struct boot_options options = plain_options;
    (void)state;

    write_elf("vmlinux");
    write_file("initrd", "070701", 6);
    options.initrd_paths[0] = "initrd";
    options.initrd_paths[1] = "missing";
    options.initrd_count = 2;
    refuses(&options, "initrd missing: cannot open: No such file or directory");
}

static void firmware_has_its_own_way_in(void **state)
{
    struct boot_options options = plain_options;
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;
    uint8_t rom[4096] = {0};
    (void)state;

    options.kernel_path = NULL;
    options.firmware_path = "bios.bin";
    refuses(&options, "firmware bios.bin: cannot open: No such file or directory");
    write_file("bios.bin", rom, sizeof(rom));
    options.protocol = BOOT_PVH;
    refuses(&options, "--protocol pvh does not go with --firmware");
    options.protocol = BOOT_AUTO;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(inputs.has_firmware);
    assert_false(inputs.has_kernel);
    assert_int_equal(inputs.firmware_image.format, IMAGE_FIRMWARE);
    assert_int_equal(inputs.protocol, BOOT_FIRMWARE);
    boot_inputs_close(&inputs);
}

static void firmware_may_have_a_kernel_to_start(void **state)
{
    struct boot_options options = plain_options;
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;
    uint8_t rom[4096] = {0};
    (void)state;

    write_file("bios.bin", rom, sizeof(rom));
    write_elf("vmlinux");
    write_file("initrd", "070701", 6);
    options.firmware_path = "bios.bin";
    options.initrd_paths[0] = "initrd";
    options.initrd_count = 1;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(inputs.has_firmware);
    assert_true(inputs.has_kernel);
    assert_int_equal(inputs.firmware.size_bytes, sizeof(rom));
    assert_int_equal(inputs.image.format, IMAGE_ELF64);
    assert_int_equal(inputs.initrd_count, 1);
    assert_int_equal(inputs.protocol, BOOT_FIRMWARE);
    assert_string_equal(inputs.protocol_reason, "firmware was given");
    assert_int_equal(inputs.kernel_protocol, BOOT_PVH);
    boot_inputs_close(&inputs);

    options.protocol = BOOT_LINUX64;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(inputs.protocol, BOOT_FIRMWARE);
    assert_int_equal(inputs.kernel_protocol, BOOT_LINUX64);
    boot_inputs_close(&inputs);
}

/* ---- modules ---- */

/* The ELF of write_elf with a Multiboot 1 header behind it. */
static void write_multiboot(const char *name)
{
    const uint32_t header[] = {0x1badb002, 0, 0 - UINT32_C(0x1badb002)};
    CLEANUP_FD int fd = -1;

    write_elf(name);
    fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_all(fd, header, sizeof(header)), 0);
}

static void modules_are_separated_by_commas_and_have_words(void **state)
{
    struct boot_options options = plain_options;
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;
    (void)state;

    write_multiboot("kernel");
    write_file("a.mod", "one", 3);
    write_file("b,c", "three", 5);
    options.kernel_path = "kernel";
    options.initrd_paths[0] = "a.mod first args, b,,c x,,y,a.mod,";
    options.initrd_paths[1] = "b,,c";
    options.initrd_count = 2;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(inputs.protocol, BOOT_MULTIBOOT1);
    assert_int_equal(inputs.initrd_count, 4);
    assert_string_equal(inputs.module_strings[0], "a.mod first args");
    assert_int_equal(inputs.initrds[0].size_bytes, 3);
    assert_string_equal(inputs.module_strings[1], "b,c x,y");
    assert_int_equal(inputs.initrds[1].size_bytes, 5);
    assert_string_equal(inputs.initrds[1].path, "b,c");
    assert_string_equal(inputs.module_strings[2], "a.mod");
    assert_string_equal(inputs.module_strings[3], "b,c");
    boot_inputs_close(&inputs);
}

static void an_initrd_is_no_list(void **state)
{
    struct boot_options options = plain_options;
    struct boot_inputs inputs;
    struct error err = ERROR_NONE;
    (void)state;

    write_multiboot("kernel");
    write_file("a,b c", "070701", 6);
    options.kernel_path = "kernel";
    options.protocol = BOOT_PVH;
    options.initrd_paths[0] = "a,b c";
    options.initrd_count = 1;
    if (boot_inputs_open(&inputs, &options, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(inputs.initrd_count, 1);
    assert_null(inputs.module_strings[0]);
    boot_inputs_close(&inputs);
}

static void each_fault_of_a_module_has_its_message(void **state)
{
    struct boot_options options = plain_options;
    (void)state;

    write_multiboot("kernel");
    write_file("a.mod", "one", 3);
    options.kernel_path = "kernel";
    options.initrd_count = 1;
    options.initrd_paths[0] = "a.mod,missing words";
    refuses(&options, "module missing: cannot open: No such file or directory");
    options.initrd_paths[0] = "a.mod, ,a.mod";
    refuses(&options,
            "module 1 has no file name; -i names files separated by commas, and "
            "two commas stand for one");
    write_file("m", "m", 1);
    options.initrd_paths[0] = "m,m,m,m,m,m,m,m,m,m,m,m,m,m,m,m,m";
    refuses(&options, "more than 16 modules; husk passes no more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_a_kernel_and_its_initrds),
        cmocka_unit_test(a_pipe_is_read_into_a_memory_file),
        cmocka_unit_test(a_compressed_kernel_is_opened_unpacked),
        cmocka_unit_test(each_fault_of_a_kernel_file_has_its_message),
        cmocka_unit_test(each_fault_of_an_initrd_has_its_message),
        cmocka_unit_test(a_fault_in_the_second_initrd_closes_the_first),
        cmocka_unit_test(firmware_has_its_own_way_in),
        cmocka_unit_test(firmware_may_have_a_kernel_to_start),
        cmocka_unit_test(modules_are_separated_by_commas_and_have_words),
        cmocka_unit_test(an_initrd_is_no_list),
        cmocka_unit_test(each_fault_of_a_module_has_its_message),
    };

    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
