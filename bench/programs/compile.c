/* SPDX-License-Identifier: Apache-2.0 */
/* A compiler at work: TCC (the library of Debian's package libtcc-dev) makes an object of
 * a small C file, in a process of its own each time, as make(1) would. */
#include <libtcc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "programs.h"

#define COMPILATIONS 12
#define OBJECT_BYTES (1 << 20)

/* compiled.c, by the assembler. */
extern const char compiled_source[];
extern const uint32_t compiled_source_bytes;

/* Names without a directory: they become part of the object, and so of its checksum. */
static const char source[] = "compiled.c";
static const char object[] = "compiled.o";
static char directory[] = "/tmp/husk-bench-compile-XXXXXX";

void prepare_compile(void)
{
    FILE *stream;

    if (mkdtemp(directory) == NULL || chdir(directory) < 0)
        give_up("making a directory in /tmp");
    stream = fopen(source, "w");
    if (stream == NULL ||
        fwrite(compiled_source, compiled_source_bytes, 1, stream) != 1 ||
        fclose(stream) != 0)
        give_up("writing a file in /tmp");
}

int compile_file(const char *from, const char *to)
{
    TCCState *compiler = tcc_new();
    int status;

    if (compiler == NULL)
        return 1;
    tcc_set_options(compiler, "-nostdinc -nostdlib");
    status = tcc_set_output_type(compiler, TCC_OUTPUT_OBJ) < 0 ||
             tcc_add_file(compiler, from) < 0 || tcc_output_file(compiler, to) < 0;
    tcc_delete(compiler);
    return status;
}

static void compile_once(void)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/proc/self/exe", "programs", "--compile", source, object, NULL);
        _exit(1);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        give_up("compiling");
}

static uint64_t checksum_of_object(void)
{
    static uint8_t bytes[OBJECT_BYTES];
    FILE *stream = fopen(object, "r");
    size_t size_bytes = stream == NULL ? 0 : fread(bytes, 1, sizeof(bytes), stream);

    if (size_bytes == 0 || fclose(stream) != 0)
        give_up("reading the object");
    return checksum(bytes, size_bytes);
}

uint64_t run_compile(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < COMPILATIONS; i++) {
        compile_once();
        sum += checksum_of_object();
    }
    (void)unlink(object);
    (void)unlink(source);
    (void)rmdir(directory);
    return sum;
}
