/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and describes the files of a boot; a compressed kernel is unpacked here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "boot/builder_private.h"

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

    if (input_file_open(&inputs->firmware, options->firmware_path, options->images, err) <
        0)
        return error_prefix(err, "firmware %s", options->firmware_path);
    inputs->has_firmware = true;
    source = input_file_source(&inputs->firmware);
    if (image_describe_firmware(&source, &inputs->firmware_image, err) < 0)
        return error_prefix(err, "firmware %s", options->firmware_path);
    log_input("firmware", &inputs->firmware);
    return 0;
}

/* Only PVH enters the kernel inside a bzImage; the Linux protocols use its own
 * decompressor, and so does firmware. */
static bool must_unpack(const struct boot_inputs *inputs, enum boot_protocol protocol)
{
    return inputs->image.format == IMAGE_BZIMAGE && !inputs->has_firmware &&
           inputs->image.payload.size_bytes != 0 &&
           inputs->image.payload.codec != IMAGE_CODEC_NONE &&
           (protocol == BOOT_AUTO || protocol == BOOT_PVH);
}

static int unpack_kernel(struct boot_inputs *inputs, const struct boot_options *options,
                         struct error *err)
{
    struct source source = input_file_source(&inputs->kernel);
    struct image_cache_result result;
    char name[sizeof(result.path)];

    if (image_cache_open(&source, &inputs->image.payload, &options->cache, &result, err) <
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

/* A file that is compressed as a whole: the kernel is what it holds, from here on. */
static int replace_compressed(struct boot_inputs *inputs,
                              const struct boot_options *options, struct error *err)
{
    struct source source = input_file_source(&inputs->kernel);
    struct image_cache_result result;
    struct input_file unpacked;

    inputs->compressed = inputs->image.payload;
    if (image_cache_open(&source, &inputs->compressed, &options->cache, &result, err) < 0)
        return err->code;
    if (input_file_adopt(&unpacked, result.fd, options->kernel_path, options->images,
                         err) < 0)
        return error_prefix(err, "unpacked");
    input_file_close(&inputs->kernel);
    inputs->kernel = unpacked;
    if (unpacked.mode == INPUT_MAP)
        (void)snprintf(inputs->kernel.reason, sizeof(inputs->kernel.reason),
                       "%s-compressed, %s%s%s",
                       image_codec_name(inputs->compressed.codec),
                       image_cache_outcome_text(result.outcome),
                       result.reason[0] == '\0' ? "" : ": ", result.reason);
    source = input_file_source(&inputs->kernel);
    if (image_describe(&source, &inputs->image, err) < 0)
        return error_prefix(err, "unpacked");
    if (inputs->image.format == IMAGE_COMPRESSED)
        return error_set(err, -ENOEXEC, "is compressed more than once; unpack it first");
    return 0;
}

static int describe_kernel(struct boot_inputs *inputs, const struct boot_options *options,
                           struct error *err)
{
    struct source source;

    if (input_file_open(&inputs->kernel, options->kernel_path, options->images, err) < 0)
        return err->code;
    inputs->has_kernel = true;
    source = input_file_source(&inputs->kernel);
    if (image_describe(&source, &inputs->image, err) < 0)
        return err->code;
    if (inputs->image.format == IMAGE_COMPRESSED &&
        replace_compressed(inputs, options, err) < 0)
        return err->code;
    log_input("kernel", &inputs->kernel);
    if (!must_unpack(inputs, options->protocol))
        return 0;
    return unpack_kernel(inputs, options, err);
}

static int open_kernel(struct boot_inputs *inputs, const struct boot_options *options,
                       struct error *err)
{
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

/* ---- modules: what -i means to a Multiboot kernel ---- */

/* Cuts the next module off `*rest`: up to a comma, a doubled one standing for itself, as
 * QEMU's -initrd has it. malloc'd, without blanks in front; NULL if out of memory. */
static char *cut_module(const char **rest)
{
    const char *from = *rest + strspn(*rest, " ");
    char *string = malloc(strlen(from) + 1);
    size_t size = 0;

    if (string == NULL)
        return NULL;
    for (; *from != '\0'; from++) {
        if (*from == ',' && *++from != ',')
            break;
        string[size++] = *from;
    }
    string[size] = '\0';
    *rest = from;
    return string;
}

/* The module's file is what comes before the first blank of `string`. */
static int open_module(struct boot_inputs *inputs, const char *string,
                       enum input_policy policy, struct error *err)
{
    char *path = strndup(string, strcspn(string, " "));
    struct input_file *file = &inputs->initrds[inputs->initrd_count - 1];

    if (path == NULL)
        return error_set(err, -ENOMEM, "out of memory for the path of a module");
    if (path[0] == '\0')
        (void)error_set(
            err, -EINVAL,
            "module %zu has no file name; -i names files separated by commas, "
            "and two commas stand for one",
            inputs->initrd_count - 1);
    else if (input_file_open(file, path, policy, err) < 0)
        (void)error_prefix(err, "module %s", path);
    else
        log_input("module", file);
    free(path);
    return err->code;
}

static int open_modules_of(struct boot_inputs *inputs, const char *list,
                           enum input_policy policy, struct error *err)
{
    const char *rest = list;

    do {
        char *string;

        if (inputs->initrd_count == BOOT_MAX_INITRDS)
            return error_set(err, -E2BIG, "more than %d modules; husk passes no more",
                             BOOT_MAX_INITRDS);
        string = cut_module(&rest);
        if (string == NULL)
            return error_set(err, -ENOMEM, "out of memory for the string of a module");
        inputs->module_strings[inputs->initrd_count++] = string;
        if (open_module(inputs, string, policy, err) < 0)
            return err->code;
    } while (*rest != '\0');
    return 0;
}

static int open_modules(struct boot_inputs *inputs, const struct boot_options *options,
                        struct error *err)
{
    for (size_t i = 0; i < options->initrd_count; i++)
        if (open_modules_of(inputs, options->initrd_paths[i], options->images, err) < 0)
            return err->code;
    return 0;
}

/* ---- all files ---- */

int boot_inputs_describe(struct boot_inputs *inputs, const struct boot_options *options,
                         struct error *err)
{
    int status = 0;

    CHECK(options->kernel_path != NULL || options->firmware_path != NULL);
    memset(inputs, 0, sizeof(*inputs));
    if (options->firmware_path != NULL)
        status = open_firmware(inputs, options, err);
    if (status == 0 && options->kernel_path != NULL)
        status = open_kernel(inputs, options, err);
    if (status < 0)
        boot_inputs_close(inputs);
    return status;
}

int boot_inputs_choose(struct boot_inputs *inputs, const struct boot_options *options,
                       struct error *err)
{
    struct boot_choice choice = {.protocol = BOOT_FIRMWARE};
    enum boot_protocol named = options->protocol;

    if (inputs->has_firmware && named == BOOT_FIRMWARE)
        named = BOOT_AUTO;
    if (!inputs->has_kernel && named != BOOT_AUTO)
        return error_set(err, -EINVAL, "--protocol %s does not go with --firmware",
                         boot_protocol_name(named));
    if (inputs->has_kernel && boot_protocol_choose(inputs, named, &choice, err) < 0)
        return error_prefix(err, "kernel %s", inputs->kernel.path);
    inputs->kernel_protocol = choice.protocol;
    inputs->protocol = inputs->has_firmware ? BOOT_FIRMWARE : choice.protocol;
    (void)snprintf(inputs->protocol_reason, sizeof(inputs->protocol_reason), "%s",
                   inputs->has_firmware ? "firmware was given" : choice.reason);
    return 0;
}

static int open_archives(struct boot_inputs *inputs, const struct boot_options *options,
                         struct error *err)
{
    return boot_takes_modules(inputs) ? open_modules(inputs, options, err)
                                      : open_initrds(inputs, options, err);
}

int boot_inputs_open(struct boot_inputs *inputs, const struct boot_options *options,
                     struct error *err)
{
    if (boot_inputs_describe(inputs, options, err) < 0)
        return err->code;
    if (boot_inputs_choose(inputs, options, err) < 0 ||
        open_archives(inputs, options, err) < 0 ||
        boot_pmem_open(inputs, options, err) < 0)
        boot_inputs_close(inputs);
    return err->code;
}

void boot_inputs_close(struct boot_inputs *inputs)
{
    input_file_close(&inputs->firmware);
    input_file_close(&inputs->kernel);
    input_file_close(&inputs->unpacked);
    for (size_t i = 0; i < inputs->initrd_count; i++) {
        input_file_close(&inputs->initrds[i]);
        free(inputs->module_strings[i]);
        inputs->module_strings[i] = NULL;
    }
    boot_pmem_close(inputs);
    inputs->has_firmware = false;
    inputs->has_kernel = false;
    inputs->has_unpacked = false;
    inputs->initrd_count = 0;
}
