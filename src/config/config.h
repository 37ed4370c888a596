/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user can say about a virtual machine, as plain data.
 *
 * One table (schema.c) has a row for each setting: flag, other spellings, JSON name,
 * kind, range, choices, default, help. Parsing of arguments, of the configuration file
 * and of the environment, --help, the shell completion and the man page's option list all
 * come from it. Later sources win: defaults < file < environment < flags.
 */
#ifndef HUSK_CONFIG_CONFIG_H
#define HUSK_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define CONFIG_MAX_INITRDS 16
#define CONFIG_MAX_DISKS 16
#define CONFIG_MAX_PMEMS 8

/* A word in front of what the user appends; shown by `husk plan`. By console. */
#define CONFIG_DEFAULT_CMDLINE "console=ttyS0"
#define CONFIG_DEFAULT_CMDLINE_VIRTIO "console=hvc0"

/* A file and what was said of it: "FILE[,WORD]...". */
struct config_file {
    char *path;     /* owned */
    unsigned words; /* a bit each */
};

/* Words of --pmem: their places in the table's choices. */
enum config_pmem_word {
    CONFIG_PMEM_READ_ONLY = 1 << 0, /* ro */
    CONFIG_PMEM_EPHEMERAL = 1 << 1,
};

/* What happens to memory that an idle guest does not need for itself. */
enum config_reclaim {
    CONFIG_RECLAIM_SHARE,   /* given back, and shared with other guests */
    CONFIG_RECLAIM_PRIVATE, /* given back */
    CONFIG_RECLAIM_OFF,
};

enum config_boot_timer { BOOT_TIMER_OFF, BOOT_TIMER_TABLE, BOOT_TIMER_JSON };

/* Strings are owned. Choices ("auto", "pvh", ...) stay strings that are known to be
 * valid: the layers that give them meaning translate them. NULL where nothing was said.
 */
struct vm_config {
    char *kernel;
    char *firmware;
    char *protocol; /* auto pvh linux64 linux32 multiboot1 multiboot2 firmware */
    char *initrds[CONFIG_MAX_INITRDS];
    size_t initrd_count;
    char *append;  /* behind the default command line; guest arguments after "--" too */
    char *cmdline; /* instead of the default, in front of `append` */
    uint64_t memory_bytes;
    uint64_t cpu_count;
    char *accel;          /* auto kvm soft; soft,tier=auto|interpreter|translator */
    uint64_t check_every; /* translated blocks; 0: none */
    bool deterministic;   /* guest time is what the one vCPU has retired */
    bool hpet;            /* there is a High Precision Event Timer */
    char *images;         /* auto map copy */
    char *transfer;       /* dma port */
    char *console;        /* serial virtio none */
    char *log_path;       /* console output goes there too */
    char *name;
    uint64_t timeout_seconds; /* 0: none */
    bool no_reboot;
    enum config_boot_timer boot_timer;
    char *boot_mark; /* POSIX extended regular expression */
    bool no_cache;
    bool huge_pages;
    bool ksm;
    bool prefault;
    enum config_reclaim reclaim;
    uint64_t debug_exit_port;      /* 0: none */
    bool debug_console;            /* ports 0xe9, 0x402 write to the console */
    bool test_device;              /* with a debug exit at 0xf4 unless another is given */
    bool no_rng;                   /* no virtio-rng */
    bool no_balloon;               /* no virtio-balloon */
    char *disks[CONFIG_MAX_DISKS]; /* as config_disk_parse takes them */
    size_t disk_count;
    struct config_file pmems[CONFIG_MAX_PMEMS];
    size_t pmem_count;
    uint64_t verbosity; /* -v: 1, -vv: 2 */
    bool quiet;
    bool dry_run;
};

void config_init(struct vm_config *config); /* the defaults */
void config_finish(struct vm_config *config);

/* Parses `--config FILE`, HUSK_* variables and argv[0..argc) (without program and command
 * name) into *config, in the right order, then validates. *config holds the defaults
 * (config_init) and is to be finished also after a failure. Usage errors are -EINVAL with
 * one line that names the nearest known option. `extra` (NULL-terminated, or NULL) names
 * flags that the command knows besides (such as "json"); *extra_seen gets a bit for each.
 */
int config_parse(struct vm_config *config, int argc, char **argv,
                 const char *const *extra, uint32_t *extra_seen,
                 struct error *err) MUST_CHECK;

/* Checks that settings agree with each other (kernel or firmware given, ranges, ...). */
int config_validate(const struct vm_config *config, struct error *err) MUST_CHECK;

/* What happens to a request that the host has failed. */
enum config_disk_policy {
    CONFIG_DISK_REPORT,       /* the guest gets the error */
    CONFIG_DISK_STOP,         /* the guest is paused until it is resumed */
    CONFIG_DISK_STOP_IF_FULL, /* paused if the host is full, else it gets the error */
};

const char *config_disk_policy_name(enum config_disk_policy policy); /* "stop", ... */

struct config_disk {
    char path[4096];    /* PATH_MAX */
    const char *engine; /* auto sync threads mmap uring */
    bool read_only;
    bool ephemeral;
    bool direct;
    char serial[21];      /* "": none */
    unsigned queue_count; /* 0: to be chosen */
    enum config_disk_policy on_read_error;
    enum config_disk_policy on_write_error;
};

/* Takes FILE[,OPTION]... apart; docs/disk.md lists the options. */
int config_disk_parse(const char *text, struct config_disk *disk,
                      struct error *err) MUST_CHECK;

/* The whole kernel command line; the caller frees. NULL if out of memory. */
char *config_cmdline(const struct vm_config *config);

/* How many bytes of it, in front, are husk's own default and not the user's words. */
size_t config_cmdline_default_bytes(const struct vm_config *config);

/* The option list of --help, from the schema. */
void config_print_help(FILE *stream);

/* One line for each option, "--flag<TAB>help", for shell completion. */
void config_print_completions(FILE *stream);

/* "512", "2G", "64M", "131072K" -> bytes; a plain number is MiB. For other commands too.
 */
int config_parse_size(const char *text, uint64_t *size_bytes,
                      struct error *err) MUST_CHECK;

/* The word of `candidates` (NULL-terminated) nearest to `word`, or NULL if none is near.
 */
const char *config_nearest(const char *word, const char *const *candidates);

#endif
