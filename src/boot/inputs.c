/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and describes the files of a boot; a compressed kernel is unpacked here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "boot/boot.h"

static void log_input(const char *role, const struct input_file *file)
{
    if (file->reason[0] != '\0')
        log_info("%s %s: %s: %s", role, file->path,
                 file->mode == INPUT_MAP ? "mapped" : "not mapped", file->reason);
}

static int open_firmware(struct boot_inputs *inputs, const struct boot_options *options,
                         struct error *err)
{
    struct source source;

    if (options->protocol != BOOT_AUTO && options->protocol != BOOT_FIRMWARE)
        return error_set(err, -EINVAL, "--protocol %s does not go with --firmware",
                         boot_protocol_name(options->protocol));
    if (input_file_open(&inputs->kernel, options->firmware_path, options->images, err) <
        0)
        return error_prefix(err, "firmware %s", options->firmware_path);
    source = input_file_source(&inputs->kernel);
    if (image_describe_firmware(&source, &inputs->image, err) < 0)
        return error_prefix(err, "firmware %s", options->firmware_path);
    log_input("firmware", &inputs->kernel);
    return 0;
}

/* Only PVH enters the kernel inside a bzImage; the Linux protocols use its own
 * decompressor. */
static bool must_unpack(const struct boot_inputs *inputs, enum boot_protocol protocol)
{
    return inputs->image.format == IMAGE_BZIMAGE &&
           inputs->image.bzimage.payload_bytes != 0 &&
           inputs->image.bzimage.codec != IMAGE_CODEC_NONE &&
           (protocol == BOOT_AUTO || protocol == BOOT_PVH);
}

static int unpack_kernel(struct boot_inputs *inputs, const struct boot_options *options,
                         struct error *err)
{
    struct source source = input_file_source(&inputs->kernel);
    struct image_cache_result result;
    char name[sizeof(result.path)];

    if (image_cache_open(&source, &inputs->image.bzimage, &options->cache, &result, err) <
        0)
        return err->code;
    inputs->cache_outcome = result.outcome;
    (void)snprintf(inputs->cache_reason, sizeof(inputs->cache_reason), "%s",
                   result.reason);
    if (result.path[0] != '\0')
        (void)snprintf(name, sizeof(name), "%s", result.path);
    else
        (void)snprintf(name, sizeof(name), "%s (unpacked)", options->kernel_path);
    if (input_file_adopt(&inputs->unpacked, result.fd, name, options->images, err) < 0)
        return error_prefix(err, "unpacked kernel %s", name);
    inputs->has_unpacked = true;
    source = input_file_source(&inputs->unpacked);
    if (image_describe(&source, &inputs->unpacked_image, err) < 0)
        return error_prefix(err, "what its payload contains");
    if (result.reason[0] != '\0')
        log_info("kernel %s: unpacked, image cache: %s", options->kernel_path,
                 result.reason);
    return 0;
}

static int describe_kernel(struct boot_inputs *inputs, const struct boot_options *options,
                           struct error *err)
{
    struct source source;

    if (input_file_open(&inputs->kernel, options->kernel_path, options->images, err) < 0)
        return err->code;
    source = input_file_source(&inputs->kernel);
    if (image_describe(&source, &inputs->image, err) < 0)
        return err->code;
    log_input("kernel", &inputs->kernel);
    if (!must_unpack(inputs, options->protocol))
        return 0;
    return unpack_kernel(inputs, options, err);
}

static int open_kernel(struct boot_inputs *inputs, const struct boot_options *options,
                       struct error *err)
{
    CHECK(options->kernel_path != NULL);
    if (describe_kernel(inputs, options, err) < 0)
        return error_prefix(err, "kernel %s", options->kernel_path);
    return 0;
}

/* Stock kernels cannot use a ramdisk with a file system on it, and would stop with a
 * panic about a missing root device, far from its cause. */
static int check_initrd_content(const struct input_file *file, struct error *err)
{
    struct source source = input_file_source(file);
    const char *guess = image_guess(&source);

    if (guess == NULL || strstr(guess, "file system") == NULL)
        return 0;
    return error_set(err, -EINVAL,
                     "is %s; an initrd is a cpio archive, compressed or not", guess);
}

static int open_initrds(struct boot_inputs *inputs, const struct boot_options *options,
                        struct error *err)
{
    for (size_t i = 0; i < options->initrd_count; i++) {
        const char *path = options->initrd_paths[i];

        if (input_file_open(&inputs->initrds[i], path, options->images, err) < 0)
            return error_prefix(err, "initrd %s", path);
        inputs->initrd_count = i + 1;
        if (check_initrd_content(&inputs->initrds[i], err) < 0)
            return error_prefix(err, "initrd %s", path);
        log_input("initrd", &inputs->initrds[i]);
    }
    return 0;
}

int boot_inputs_open(struct boot_inputs *inputs, const struct boot_options *options,
                     struct error *err)
{
    int status;

    memset(inputs, 0, sizeof(*inputs));
    status = options->firmware_path != NULL ? open_firmware(inputs, options, err)
                                            : open_kernel(inputs, options, err);
    if (status == 0)
        status = open_initrds(inputs, options, err);
    if (status < 0)
        boot_inputs_close(inputs);
    return status;
}

void boot_inputs_close(struct boot_inputs *inputs)
{
    input_file_close(&inputs->kernel);
    input_file_close(&inputs->unpacked);
    for (size_t i = 0; i < inputs->initrd_count; i++)
        input_file_close(&inputs->initrds[i]);
    inputs->has_unpacked = false;
    inputs->initrd_count = 0;
}
