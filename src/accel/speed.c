/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured speeds, remembered until the host boots anew or husk is another one: a file in
 * the runtime directory, a line each. Without that directory they are measured each time.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accel/accels_private.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/runtime_directory.h"

/* No instance's name begins with a dot. */
#define FILE_NAME ".speed"
#define TEMPORARY_NAME ".speed.tmp"
#define FILE_BYTES 512
#define HEADER_BYTES 160

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36

/* What a file must begin with to be about this host and this program. */
static bool make_header(char header[HEADER_BYTES])
{
    CLEANUP_FD int fd = open(BOOT_ID_PATH, O_RDONLY | O_CLOEXEC);
    char boot_id[BOOT_ID_BYTES + 1] = "";
    struct stat program;

    if (fd < 0 || read(fd, boot_id, BOOT_ID_BYTES) != BOOT_ID_BYTES ||
        stat("/proc/self/exe", &program) < 0)
        return false;
    (void)snprintf(header, HEADER_BYTES, "boot %s program %jd %jd.%09ld\n", boot_id,
                   (intmax_t)program.st_size, (intmax_t)program.st_mtim.tv_sec,
                   program.st_mtim.tv_nsec);
    return true;
}

/* Opens the directory; -1: there is none to use. */
static int open_directory(void)
{
    struct error ignored = ERROR_NONE;
    char path[256];
    int fd = -1;

    if (runtime_directory_path(path, sizeof(path), &ignored) < 0 ||
        runtime_directory_open(path, true, &fd, &ignored) < 0) {
        log_debug("measured speeds are not remembered: %s", ignored.text);
        return -1;
    }
    return fd;
}

/* The file as text; "" if there is none. */
static void read_file(int directory_fd, char text[FILE_BYTES])
{
    CLEANUP_FD int fd =
        openat(directory_fd, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, FILE_BYTES - 1);

    text[got < 0 ? 0 : got] = '\0';
}

/* A line "NAME MIPS" behind the header. */
static bool find_line(const char *text, const char *header, const char *name,
                      uint32_t *mips)
{
    char start[64];
    const char *line;
    unsigned long value;

    if (strncmp(text, header, strlen(header)) != 0)
        return false;
    (void)snprintf(start, sizeof(start), "\n%s ", name);
    line = strstr(text + strlen(header) - 1, start);
    if (line == NULL)
        return false;
    value = strtoul(line + strlen(start), NULL, 10);
    if (value == 0 || value > UINT32_MAX)
        return false;
    *mips = (uint32_t)value;
    return true;
}

/* Replaced in one step, so that nobody reads half of it. If two write at once, one line
 * is lost and measured again. */
static void add_line(int directory_fd, const char *text, const char *header,
                     const char *name, uint32_t mips)
{
    CLEANUP_FD int fd =
        openat(directory_fd, TEMPORARY_NAME,
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    const char *kept = strncmp(text, header, strlen(header)) == 0 ? text : header;
    char whole[FILE_BYTES + 64];
    int size = snprintf(whole, sizeof(whole), "%s%s %u\n", kept, name, mips);

    if (fd < 0 || fd_write_all(fd, whole, (size_t)size) < 0 ||
        renameat(directory_fd, TEMPORARY_NAME, directory_fd, FILE_NAME) < 0)
        log_debug("measured speeds are not remembered: %s", strerror(errno));
}

int accel_speed(const struct accel_ops *accel, uint32_t *mips, struct error *err)
{
    CLEANUP_FD int directory_fd = open_directory();
    char header[HEADER_BYTES];
    char text[FILE_BYTES] = "";
    bool remembers = directory_fd >= 0 && make_header(header);

    if (remembers) {
        read_file(directory_fd, text);
        if (find_line(text, header, accel->name, mips))
            return 0;
    }
    if (accel_measure(accel, mips, err) < 0)
        return err->code;
    if (remembers)
        add_line(directory_fd, text, header, accel->name, *mips);
    return 0;
}
