/* SPDX-License-Identifier: Apache-2.0 */
/* Address space for large tables, of which the host gives what is touched. */
#ifndef HUSK_SOFT_RESERVE_PRIVATE_H
#define HUSK_SOFT_RESERVE_PRIVATE_H

#include <stddef.h>
#include <sys/mman.h>

/* Zeros, or NULL and errno. */
static inline void *soft_reserve(size_t size_bytes)
{
    void *reserved = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return reserved == MAP_FAILED ? NULL : reserved;
}

static inline void soft_release(void *reserved, size_t size_bytes) /* accepts NULL */
{
    if (reserved != NULL)
        (void)munmap(reserved, size_bytes);
}

#endif
