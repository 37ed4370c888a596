/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of boot/ start from: described kernels without a real one, and small
 * questions to a plan. Byte i of every file is i * 7 + i / 256, so that a byte that comes
 * from the wrong place is seen.
 */
#ifndef HUSK_TESTS_BOOT_FIXTURE_H
#define HUSK_TESTS_BOOT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "boot/boot.h"

struct fixture {
    struct boot_inputs inputs;
    struct boot_options options;
    struct boot_plan *plan;
    struct error err;
};

/* An ELF64 "vmlinux" of 0x3000 bytes with a PVH note: one segment at 1 MiB of 0x1800
 * bytes from offset 0x1000, 0x2800 in memory; entry at 0x100040. 64 MiB, one CPU. */
void fixture_elf(struct fixture *fixture);

/* A bzImage "vmlinuz" of 0x5000 bytes: setup of 0x1000, relocatable to 16 MiB, 1 MiB of
 * init_size, 64-bit entry, command line of 2047, no payload. */
void fixture_bzimage(struct fixture *fixture);

/* Raw firmware "bios.bin". */
void fixture_firmware(struct fixture *fixture, size_t size_bytes);

/* The same beside a kernel, which it is to start. */
void fixture_add_firmware(struct fixture *fixture, size_t size_bytes);

/* What a kernel of fixture_bzimage contains: the ELF of fixture_elf. */
void fixture_add_unpacked(struct fixture *fixture);

void fixture_add_initrd(struct fixture *fixture, const char *path, size_t size_bytes);

void fixture_close(struct fixture *fixture);

uint8_t fixture_byte(uint64_t offset);

/* Builds the plan; fails the test if that fails. */
void fixture_build(struct fixture *fixture);

/* Fails the test unless building fails with exactly this sentence. */
void fixture_refuses(struct fixture *fixture, const char *sentence);

/* The range that starts at `gpa`; fails the test if there is none. */
const struct boot_range *fixture_range(const struct fixture *fixture, uint64_t gpa);

/* The range of this name; fails the test if there is none. */
const struct boot_range *fixture_find(const struct fixture *fixture, const char *what);

/* What husk has generated at `gpa`; fails the test unless `size_bytes` of it are there.
 */
const uint8_t *fixture_bytes(const struct fixture *fixture, uint64_t gpa,
                             size_t size_bytes);

void assert_range(const struct boot_range *range, uint64_t gpa, uint64_t size_bytes,
                  enum boot_range_kind kind, const char *reason);

#endif
