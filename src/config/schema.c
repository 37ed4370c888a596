/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings: one row for each thing a user can say. */
#include "config/schema_private.h"

#include <stddef.h>
#include <string.h>

#include "base/bytes.h"

/* Smallest RAM that holds the first MiB of a PC and something to run above it. */
#define MEMORY_MINIMUM_BYTES (2 * MIB)
#define MEMORY_MAXIMUM_BYTES (1024 * GIB)

/* The size of a page, in which RAM is given to the guest (Intel SDM volume 3, 4.3). */
#define PAGE_BYTES (4 * KIB)

/* Ids below the broadcast id 0xff (Intel SDM volume 3, 11.6.1). The x86 layer has the
 * same number as LAYOUT_MAX_CPUS; settings must not depend on that layer. */
#define CPU_MAXIMUM 255

/* A year: far beyond every use, and as nanoseconds still far from 2^64. */
#define TIMEOUT_MAXIMUM_SECONDS (UINT64_C(365) * 24 * 3600)

const char *const config_group_names[CONFIG_GROUP_COUNT] = {
    [CONFIG_GROUP_BOOT] = "Boot",
    [CONFIG_GROUP_MACHINE] = "Machine",
    [CONFIG_GROUP_CONSOLE] = "Console",
    [CONFIG_GROUP_CONTROL] = "Control",
};

static const char *const protocols[] = {
    "auto", "pvh", "linux64", "linux32", "multiboot1", "multiboot2", "firmware", NULL,
};
static const char *const accelerators[] = {"auto", "kvm", "soft", NULL};
static const char *const image_policies[] = {"auto", "map", "copy", NULL};
static const char *const transfers[] = {"dma", "port", NULL};
static const char *const consoles[] = {"serial", "none", NULL};
static const char *const boot_timers[] = {
    [BOOT_TIMER_OFF] = "off",
    [BOOT_TIMER_TABLE] = "table",
    [BOOT_TIMER_JSON] = "json",
    [BOOT_TIMER_JSON + 1] = NULL,
};

/* Firecracker's words (its API specification: HugePages, LogLevel). */
static const struct config_word huge_page_words[] = {{"None", "no"}, {"2M", "yes"}, {0}};
static const struct config_word log_level_words[] = {
    {"Off", "0"},  {"Error", "0"}, {"Warning", "0"}, {"Warn", "0"},
    {"Info", "1"}, {"Debug", "2"}, {"Trace", "2"},   {0},
};

#define FIELD(name) .offset = offsetof(struct vm_config, name)

const struct config_setting config_settings[] = {
    {.flag = "kernel",
     .letter = 'k',
     .kind = CONFIG_STRING,
     .group = CONFIG_GROUP_BOOT,
     FIELD(kernel),
     .placeholder = "FILE",
     .check = config_check_path,
     .file_key = "boot-source.kernel_image_path",
     .help =
         "kernel to boot, as the argument IMAGE does; its format is found by content"},
    {.flag = "firmware",
     .kind = CONFIG_STRING,
     .group = CONFIG_GROUP_BOOT,
     FIELD(firmware),
     .placeholder = "FILE",
     .check = config_check_path,
     .help = "PC firmware that ends at 4 GiB; it starts the kernel, if one is given"},
    {.flag = "protocol",
     .kind = CONFIG_CHOICE,
     .group = CONFIG_GROUP_BOOT,
     FIELD(protocol),
     .placeholder = "NAME",
     .choices = protocols,
     .default_text = "auto",
     .help = "way into the kernel"},
    {.flag = "initrd",
     .letter = 'i',
     .kind = CONFIG_LIST,
     .group = CONFIG_GROUP_BOOT,
     FIELD(initrds),
     .count_offset = offsetof(struct vm_config, initrd_count),
     .placeholder = "FILE",
     .check = config_check_path,
     .file_key = "boot-source.initrd_path",
     .help =
         "initial RAM disk; for Multiboot, modules: 'FILE ARGS,FILE'; may be repeated"},
    {.flag = "append",
     .letter = 'a',
     .kind = CONFIG_WORDS,
     .group = CONFIG_GROUP_BOOT,
     FIELD(append),
     .placeholder = "TEXT",
     .file_key = "boot-source.boot_args",
     .help = "text to add to the kernel command line"},
    {.flag = "cmdline",
     .kind = CONFIG_STRING,
     .group = CONFIG_GROUP_BOOT,
     FIELD(cmdline),
     .placeholder = "TEXT",
     .help =
         "start of the kernel command line, in place of '" CONFIG_DEFAULT_CMDLINE "'"},
    {.flag = "images",
     .kind = CONFIG_CHOICE,
     .group = CONFIG_GROUP_BOOT,
     FIELD(images),
     .placeholder = "HOW",
     .choices = image_policies,
     .default_text = "auto",
     .help = "whether pages of files are mapped into the guest or copied"},
    {.flag = "transfer",
     .kind = CONFIG_CHOICE,
     .group = CONFIG_GROUP_BOOT,
     FIELD(transfer),
     .placeholder = "HOW",
     .choices = transfers,
     .default_text = "dma",
     .help = "how firmware gets the kernel from fw_cfg"},
    {.flag = "no-cache",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_BOOT,
     FIELD(no_cache),
     .bare = "yes",
     .help = "keep no unpacked kernel for later starts"},

    {.flag = "memory",
     .letter = 'm',
     .kind = CONFIG_SIZE,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(memory_bytes),
     .placeholder = "SIZE",
     .minimum = MEMORY_MINIMUM_BYTES,
     .maximum = MEMORY_MAXIMUM_BYTES,
     .multiple_of = PAGE_BYTES,
     .default_text = "256",
     .file_key = "machine-config.mem_size_mib",
     .help = "RAM in MiB, or with K, M, G or T behind the number"},
    {.flag = "cpus",
     .letter = 'c',
     .kind = CONFIG_NUMBER,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(cpu_count),
     .placeholder = "NUMBER",
     .minimum = 1,
     .maximum = CPU_MAXIMUM,
     .default_text = "1",
     .file_key = "machine-config.vcpu_count",
     .help = "virtual processors"},
    {.flag = "accel",
     .kind = CONFIG_CHOICE,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(accel),
     .placeholder = "NAME",
     .choices = accelerators,
     .default_text = "auto",
     .help = "who executes the guest's instructions"},
    {.flag = "deterministic",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(deterministic),
     .bare = "yes",
     .help = "count guest time in instructions, so that a run repeats exactly"},
    {.flag = "hpet",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(hpet),
     .bare = "yes",
     .help = "a High Precision Event Timer, for guests that ask for one"},
    {.flag = "huge-pages",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(huge_pages),
     .bare = "yes",
     .file_key = "machine-config.huge_pages",
     .file_words = huge_page_words,
     .help = "RAM in huge pages of 2 MiB that the host has reserved; files are copied"},
    {.flag = "ksm",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(ksm),
     .bare = "yes",
     .help = "let the host merge equal pages (kernel samepage merging)"},
    {.flag = "prefault",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(prefault),
     .bare = "yes",
     .help = "take all RAM from the host before the guest starts"},
    {.flag = "no-rng",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_MACHINE,
     FIELD(no_rng),
     .bare = "yes",
     .help = "no virtio-rng, which gives the guest entropy of the host"},

    {.flag = "console",
     .kind = CONFIG_CHOICE,
     .group = CONFIG_GROUP_CONSOLE,
     FIELD(console),
     .placeholder = "NAME",
     .choices = consoles,
     .default_text = "serial",
     .help = "device behind the guest's console"},
    {.flag = "log",
     .kind = CONFIG_STRING,
     .group = CONFIG_GROUP_CONSOLE,
     FIELD(log_path),
     .placeholder = "FILE",
     .check = config_check_path,
     .file_key = "serial.serial_out_path",
     .help = "file to which console output is appended as well"},
    {.flag = "debug-console",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_CONSOLE,
     FIELD(debug_console),
     .bare = "yes",
     .help = "show the bytes that the guest writes to ports 0xe9 and 0x402"},
    {.flag = "debug-exit",
     .kind = CONFIG_NUMBER,
     .group = CONFIG_GROUP_CONSOLE,
     FIELD(debug_exit_port),
     .placeholder = "PORT",
     .maximum = UINT16_MAX,
     .help = "port at which a write ends the guest with exit code (value << 1) | 1; 0 is "
             "none"},
    {.flag = "test-device",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_CONSOLE,
     FIELD(test_device),
     .bare = "yes",
     .help = "ports and memory that kvm-unit-tests expect, with --debug-exit 0xf4"},

    {.flag = "name",
     .kind = CONFIG_STRING,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(name),
     .placeholder = "NAME",
     .check = config_check_name,
     .help = "name under which the other commands find this instance"},
    {.flag = "config",
     .kind = CONFIG_FILE,
     .group = CONFIG_GROUP_CONTROL,
     .placeholder = "FILE",
     .check = config_check_path,
     .help = "read settings from a JSON file, see husk.json(5)"},
    {.flag = "timeout",
     .kind = CONFIG_DURATION,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(timeout_seconds),
     .placeholder = "TIME",
     .maximum = TIMEOUT_MAXIMUM_SECONDS,
     .help =
         "end the guest after so many seconds, or with s, m or h behind the number; 0 "
         "is never"},
    {.flag = "no-reboot",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(no_reboot),
     .bare = "yes",
     .help = "end when the guest reboots"},
    {.flag = "boot-timer",
     .kind = CONFIG_ORDINAL,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(boot_timer),
     .placeholder = "FORM",
     .choices = boot_timers,
     .bare = "table",
     .default_text = "off",
     .help = "tell on standard error when each stage of the start was reached"},
    {.flag = "boot-mark",
     .kind = CONFIG_STRING,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(boot_mark),
     .placeholder = "REGEX",
     .check = config_check_regex,
     .help = "console line that counts as the start of user space"},
    {.flag = "dry-run",
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(dry_run),
     .bare = "yes",
     .help = "start nothing, show the plan as 'husk plan' does"},
    {.flag = "verbose",
     .letter = 'v',
     .kind = CONFIG_COUNT,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(verbosity),
     .bare = "1",
     .maximum = 2,
     .file_key = "logger.level",
     .file_words = log_level_words,
     .help = "say more on standard error; -vv says still more"},
    {.flag = "quiet",
     .letter = 'q',
     .kind = CONFIG_FLAG,
     .group = CONFIG_GROUP_CONTROL,
     FIELD(quiet),
     .bare = "yes",
     .help = "no warnings"},
    {.flag = NULL},
};

const struct config_alias config_aliases[] = {
    /* QEMU */
    {.spelling = "-kernel", .flag = "kernel"},
    {.spelling = "-bios", .flag = "firmware"},
    {.spelling = "-initrd", .flag = "initrd"},
    {.spelling = "-append", .flag = "append"},
    {.spelling = "-smp", .flag = "cpus"},
    {.spelling = "-accel", .flag = "accel"},
    {.spelling = "-enable-kvm", .flag = "accel", .value = "kvm"},
    {.spelling = "-no-reboot", .flag = "no-reboot"},
    {.spelling = "-serial", .flag = "console", .argument = "stdio", .value = "serial"},
    {.spelling = "-nographic"},
    /* kvmtool */
    {.spelling = "-p", .flag = "append"},
    {.spelling = "--params", .flag = "append"},
    {.spelling = "--mem", .flag = "memory"},
    /* Firecracker */
    {.spelling = "--config-file", .flag = "config"},
    {.spelling = NULL},
};

const struct config_setting *config_setting_find(const char *flag, size_t length)
{
    for (const struct config_setting *row = config_settings; row->flag != NULL; row++)
        if (strlen(row->flag) == length && memcmp(row->flag, flag, length) == 0)
            return row;
    return NULL;
}
