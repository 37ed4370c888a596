/* SPDX-License-Identifier: Apache-2.0 */
/* One software processor with 16 MiB of RAM and nothing around it, for the tests here. */
#ifndef HUSK_TESTS_SOFT_FIXTURE_H
#define HUSK_TESTS_SOFT_FIXTURE_H

#include "accel/soft/soft_private.h"

struct soft_fixture {
    struct soft_cpu cpu; /* first: its FXSAVE area wants alignment */
    struct soft_cpu *cpus[1];
    struct soft_vm vm;
    struct memory *memory;
    struct accel_machine machine;
    struct irq_source irq;

    /* The last access outside RAM, and what reads of it give. */
    uint64_t mmio_gpa;
    unsigned mmio_size;
    uint64_t mmio_answer;
    uint64_t mmio_value; /* written */
    uint16_t port;
    uint64_t port_value;
    int pending_vector; /* -1: none */
};

/* For cmocka_unit_test_setup_teardown: *state is a struct soft_fixture. */
int soft_fixture_setup(void **state);
int soft_fixture_teardown(void **state);
#define SOFT_TEST(name)                                                                  \
    cmocka_unit_test_setup_teardown(name, soft_fixture_setup, soft_fixture_teardown)

/* A translator with so much code memory, instead of any before. */
void soft_fixture_translate(struct soft_fixture *fixture, uint32_t code_bytes);

/* Guest-physical memory; fails the test outside RAM. */
void soft_fixture_write(struct soft_fixture *fixture, uint64_t gpa, const void *bytes,
                        size_t size);
void soft_fixture_read(struct soft_fixture *fixture, uint64_t gpa, void *bytes,
                       size_t size);

#endif
