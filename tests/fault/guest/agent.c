/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first program of a Linux guest: does to disks what is asked of it on the serial
 * console, and tells what came of it.
 *
 * Each line is a tag and a command. Every command has a thread of its own, so that one
 * that waits for a disk keeps no other from being heard. Its outcome is a line, too: the
 * tag, and "ok" with what it has found, or the name of the error.
 *   TAG read DISK SECTOR COUNT         and says which byte all of it is, or "mixed"
 *   TAG write DISK SECTOR COUNT BYTE
 *   TAG discard DISK SECTOR COUNT      TAG zero DISK SECTOR COUNT
 *   TAG flush DISK                     TAG size DISK (sectors)
 *   TAG spin CPU                       a computation on that processor
 *   TAG bind DEVICE                    TAG unbind DEVICE (virtio1)
 *   TAG reboot                         TAG poweroff
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#define SECTOR_BYTES UINT64_C(512)
#define BUFFER_ALIGNMENT 4096
#define SPINS 3000000

/* Loaded at the start, in the order in which they need each other. */
static const char *const modules[] = {
    "virtio_ring",           "virtio",     "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev", "virtio_pci", "virtio_blk",
};

struct command {
    char tag[16];
    char name[16];
    char target[16];
    uintmax_t sector;
    uintmax_t count;
    unsigned byte;
};

/* What a command has found; "" if it has nothing to tell. */
#define FOUND_BYTES 32

/* ---- disks ---- */

static int open_disk(const struct command *command, int flags)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/dev/%s", command->target);
    return open(path, flags | O_CLOEXEC);
}

static void describe(const uint8_t *bytes, uint64_t size, char *found)
{
    uint64_t i = 1;

    while (i < size && bytes[i] == bytes[0])
        i++;
    if (i == size)
        (void)snprintf(found, FOUND_BYTES, "%u", bytes[0]);
    else
        (void)snprintf(found, FOUND_BYTES, "mixed");
}

/* Past the guest's cache, so that the device is asked. */
static int transfer(const struct command *command, char *found)
{
    bool writes = strcmp(command->name, "write") == 0;
    uint64_t size = command->count * SECTOR_BYTES;
    off_t offset = (off_t)(command->sector * SECTOR_BYTES);
    uint8_t *bytes = aligned_alloc(BUFFER_ALIGNMENT, size);
    int disk = open_disk(command, O_DIRECT | (writes ? O_WRONLY : O_RDONLY));
    ssize_t moved = -1;
    int failure = 0;

    if (disk >= 0 && bytes != NULL) {
        memset(bytes, (int)command->byte, size);
        moved =
            writes ? pwrite(disk, bytes, size, offset) : pread(disk, bytes, size, offset);
    }
    if (moved < 0)
        failure = errno;
    else if (moved != (ssize_t)size)
        (void)snprintf(found, FOUND_BYTES, "only %zd bytes", moved);
    else if (!writes)
        describe(bytes, size, found);
    (void)close(disk);
    free(bytes);
    return failure;
}

static int change_range(const struct command *command, unsigned long request)
{
    uint64_t range[2] = {command->sector * SECTOR_BYTES, command->count * SECTOR_BYTES};
    int disk = open_disk(command, O_WRONLY);
    int failure = disk < 0 || ioctl(disk, request, range) < 0 ? errno : 0;

    (void)close(disk);
    return failure;
}

static int discard(const struct command *command, char *found)
{
    (void)found;
    return change_range(command, BLKDISCARD);
}

static int zero(const struct command *command, char *found)
{
    (void)found;
    return change_range(command, BLKZEROOUT);
}

static int flush(const struct command *command, char *found)
{
    int disk = open_disk(command, O_WRONLY);
    int failure = disk < 0 || fsync(disk) < 0 ? errno : 0;

    (void)found;
    (void)close(disk);
    return failure;
}

static int size(const struct command *command, char *found)
{
    uint64_t bytes = 0;
    int disk = open_disk(command, O_RDONLY);
    int failure = disk < 0 || ioctl(disk, BLKGETSIZE64, &bytes) < 0 ? errno : 0;

    (void)snprintf(found, FOUND_BYTES, "%ju", (uintmax_t)(bytes / SECTOR_BYTES));
    (void)close(disk);
    return failure;
}

/* ---- all but disks ---- */

static int spin(const struct command *command, char *found)
{
    cpu_set_t cpus;
    uint32_t sum = 1;

    CPU_ZERO(&cpus);
    CPU_SET(strtoul(command->target, NULL, 10), &cpus);
    if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
        return errno;
    for (unsigned i = 0; i < SPINS; i++)
        sum = sum * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
    (void)snprintf(found, FOUND_BYTES, "%u", sum);
    return 0;
}

static int tell_driver(const struct command *command, char *found)
{
    char path[64];
    size_t length = strlen(command->target);
    int file;
    int failure;

    (void)found;
    (void)snprintf(path, sizeof(path), "/sys/bus/virtio/drivers/virtio_blk/%s",
                   command->name);
    file = open(path, O_WRONLY | O_CLOEXEC);
    failure =
        file < 0 || write(file, command->target, length) != (ssize_t)length ? errno : 0;
    (void)close(file);
    return failure;
}

static int end(const struct command *command, char *found)
{
    (void)found;
    (void)reboot(strcmp(command->name, "reboot") == 0 ? RB_AUTOBOOT : RB_POWER_OFF);
    return errno;
}

/* ---- commands ---- */

static const struct {
    const char *name;
    int (*carry_out)(const struct command *command, char *found);
} actions[] = {
    {"read", transfer}, {"write", transfer},   {"discard", discard},
    {"zero", zero},     {"flush", flush},      {"size", size},
    {"spin", spin},     {"bind", tell_driver}, {"unbind", tell_driver},
    {"reboot", end},    {"poweroff", end},
};

static void *work(void *context)
{
    struct command *command = context;
    char found[FOUND_BYTES] = "";
    int failure = ENOSYS;

    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(command->name, actions[i].name) == 0)
            failure = actions[i].carry_out(command, found);
    if (failure != 0)
        (void)printf("%s %s\n", command->tag, strerrorname_np(failure));
    else
        (void)printf("%s ok %s\n", command->tag, found);
    free(command);
    return NULL;
}

static void obey(const char *line)
{
    struct command *command = calloc(1, sizeof(*command));
    pthread_t thread;

    if (command == NULL)
        abort();
    /* NOLINTNEXTLINE(cert-err34-c): the test writes what fits. */
    if (sscanf(line, "%15s %15s %15s %ju %ju %u", command->tag, command->name,
               command->target, &command->sector, &command->count, &command->byte) < 2 ||
        pthread_create(&thread, NULL, work, command) != 0) {
        free(command);
        return;
    }
    (void)pthread_detach(thread);
}

/* ---- the start ---- */

static void load(const char *module)
{
    char path[64];
    int file;

    (void)snprintf(path, sizeof(path), "/%s.ko", module);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || syscall(SYS_finit_module, file, "", 0) < 0)
        (void)printf("%s: %s\n", path, strerrorname_np(errno));
    (void)close(file);
}

static void make_raw(int terminal)
{
    struct termios modes;

    if (tcgetattr(terminal, &modes) < 0)
        return;
    cfmakeraw(&modes);
    (void)tcsetattr(terminal, TCSANOW, &modes);
}

int main(void)
{
    char line[128];

    (void)mkdir("/dev", S_IRWXU);
    (void)mkdir("/sys", S_IRWXU);
    (void)mount("dev", "/dev", "devtmpfs", 0, "");
    (void)mount("sys", "/sys", "sysfs", 0, "");
    make_raw(STDIN_FILENO);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
        load(modules[i]);
    (void)printf("\nready\n");
    while (fgets(line, sizeof(line), stdin) != NULL)
        obey(line);
    return 1;
}
