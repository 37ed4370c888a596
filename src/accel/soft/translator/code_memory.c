/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for translated code; see code_memory_private.h. */
#include "accel/soft/translator/code_memory_private.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "x86/x86.h"

/* Of all bytes, in sixteenths: what the cold area gets. Stubs and hot code measured in a
 * boot are about 1 to 2. */
#define COLD_SIXTEENTHS 6

static void *map(int fd, uint32_t size_bytes, int protection)
{
    void *mapped = mmap(NULL, size_bytes, protection, MAP_SHARED, fd, 0);

    return mapped == MAP_FAILED ? NULL : mapped;
}

static int map_twice(struct code_memory *memory, int fd, struct error *err)
{
    if (ftruncate(fd, memory->size_bytes) < 0)
        return error_set_errno(err, errno, "cannot size the memory for translated code");
    memory->writable = map(fd, memory->size_bytes, PROT_READ | PROT_WRITE);
    if (memory->writable == NULL)
        return error_set_errno(err, errno, "cannot map memory for translated code");
    memory->executable = map(fd, memory->size_bytes, PROT_READ | PROT_EXEC);
    if (memory->executable == NULL)
        return error_set_errno(err, errno,
                               "this host forbids executable mappings of memory files");
    return 0;
}

int code_memory_create(struct code_memory *memory, uint32_t size_bytes, struct error *err)
{
    uint32_t cold = size_bytes / 16 * COLD_SIXTEENTHS;
    int fd = memfd_create("husk-code", MFD_CLOEXEC);
    int result;

    if (fd < 0)
        return error_set_errno(err, errno, "cannot create memory for translated code");
    *memory = (struct code_memory){
        .size_bytes = size_bytes,
        .hot = {.at = 0, .end = size_bytes - cold},
        .cold = {.at = size_bytes - cold, .end = size_bytes},
    };
    result = map_twice(memory, fd, err);
    (void)close(fd);
    if (result < 0)
        code_memory_destroy(memory);
    return result;
}

void code_memory_destroy(struct code_memory *memory)
{
    if (memory->writable != NULL)
        (void)munmap(memory->writable, memory->size_bytes);
    if (memory->executable != NULL)
        (void)munmap((void *)(uintptr_t)memory->executable, memory->size_bytes);
    *memory = (struct code_memory){.size_bytes = 0};
}

void code_memory_keep(struct code_memory *memory)
{
    memory->hot_start = memory->hot.at;
}

uint64_t code_memory_bytes(const struct code_memory *memory)
{
    return memory->hot.at + (memory->size_bytes - memory->hot.end) -
           code_area_left(&memory->cold);
}

/* Pages of a memory file go only through a map that may write to it. */
void code_memory_release(struct code_memory *memory)
{
    uint32_t kept = (uint32_t)align_up(memory->hot_start, X86_PAGE_BYTES);

    code_memory_empty(memory);
    (void)madvise(memory->writable + kept, memory->size_bytes - kept, MADV_REMOVE);
}

void code_memory_empty(struct code_memory *memory)
{
    memory->hot.at = memory->hot_start;
    memory->cold.at = memory->hot.end;
}
