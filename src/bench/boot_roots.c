/* SPDX-License-Identifier: Apache-2.0 */
/* Root file systems of `husk bench boot`; see boot_roots_private.h. */
#include "bench/boot_roots_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/files_private.h"

/* Room for the image above the memory that the guest boots with, for QEMU. */
#define PEER_MEMORY_MIB "512,maxmem=2G"

/* NULL after a failure, which *err has. */
__attribute__((format(printf, 2, 3))) static char *format(struct error *err,
                                                          const char *text, ...)
{
    va_list values;
    char *formatted;

    va_start(values, text);
    if (vasprintf(&formatted, text, values) < 0) {
        formatted = NULL;
        (void)error_set(err, ENOMEM, "out of memory for file names");
    }
    va_end(values);
    return formatted;
}

static int name_files(struct boot_roots *roots, const char *directory, struct error *err)
{
    char *image = format(err, "%s/root.ext4", directory);
    struct stat status;

    if (image == NULL)
        return err->code;
    if (stat(image, &status) < 0) {
        (void)error_set_errno(err, errno, "%s", image);
    } else {
        roots->kernel = format(err, "%s/vmlinuz", directory);
        roots->initramfs = format(err, "%s/root.cpio", directory);
        roots->small_initramfs = format(err, "%s/small.cpio", directory);
        roots->husk_pmem = format(err, "%s,ro", image);
        /* Copy on write: as with husk's, nothing of the guest reaches the file. */
        roots->peer_object =
            format(err, "memory-backend-file,id=root,share=off,mem-path=%s,size=%jd",
                   image, (intmax_t)status.st_size);
    }
    free(image);
    return err->code;
}

int boot_roots_find(struct boot_roots *roots, struct error *err)
{
    char *directory = bench_find_boot_guest(err);

    if (directory == NULL)
        return err->code;
    (void)!name_files(roots, directory, err);
    free(directory);
    return err->code;
}

void boot_roots_free(struct boot_roots *roots)
{
    free(roots->kernel);
    free(roots->initramfs);
    free(roots->small_initramfs);
    free(roots->husk_pmem);
    free(roots->peer_object);
}

/* QEMU has persistent memory on PCI alone, which its microvm lacks without ACPI. */
static bool has_pmem(const struct bench_machine *machine)
{
    return machine->type == NULL || strncmp(machine->type, "microvm", 7) != 0;
}

int boot_roots_choose(const struct boot_roots *roots, bool on_pmem,
                      struct bench_machine *machine, struct bench_arguments *options,
                      struct error *err)
{
    machine->kernel = roots->kernel;
    machine->initramfs = on_pmem ? roots->small_initramfs : roots->initramfs;
    if (!on_pmem)
        return 0;
    if (!has_pmem(machine))
        return error_set(err, ENOTSUP, "this machine has no persistent memory");
    if (machine->options != NULL)
        bench_arguments_append(options, machine->options);
    if (machine->type == NULL) {
        bench_arguments_append(options,
                               (const char *[]){"--pmem", roots->husk_pmem, NULL});
    } else {
        machine->memory_mib = PEER_MEMORY_MIB;
        bench_arguments_append(options,
                               (const char *[]){"-object", roots->peer_object, "-device",
                                                "virtio-pmem-pci,memdev=root", NULL});
    }
    machine->options = options->words;
    return 0;
}
