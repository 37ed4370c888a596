/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring an accelerator, and remembering what came out, with one made by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "accel/accels_private.h"
#include "base/clock.h"
#include "base/fd.h"

/* ---- an accelerator whose guest takes 3 ms however often it goes round
 * ------------------------------------------------------------------ */

struct accel_vm {
    const struct accel_machine *machine;
    struct memory *memory;
};

struct accel_vcpu {
    struct accel_vm *vm;
    bool kicked;
};

static struct accel_vm the_vm;
static struct accel_vcpu the_vcpu;
static enum vcpu_exit_kind exit_kind;
static bool calls_machine;
static unsigned runs;
static uint64_t rounds;
static uint8_t first_byte;

static int vm_create(const struct accel_vm_options *options, struct memory *memory,
                     struct accel_vm **vm, struct error *err)
{
    (void)err;
    assert_int_equal(options->cpu_count, 1);
    the_vm = (struct accel_vm){.machine = options->machine, .memory = memory};
    *vm = &the_vm;
    return 0;
}

static void vm_destroy(struct accel_vm *vm)
{
    (void)vm;
}

static int vcpu_create(struct accel_vm *vm, uint32_t index, struct accel_vcpu **vcpu,
                       struct error *err)
{
    (void)err;
    assert_int_equal(index, 0);
    the_vcpu = (struct accel_vcpu){.vm = vm};
    *vcpu = &the_vcpu;
    return 0;
}

static void vcpu_destroy(struct accel_vcpu *vcpu)
{
    (void)vcpu;
}

static int set_state(struct accel_vcpu *vcpu, const struct cpu_state *state,
                     struct error *err)
{
    (void)err;
    return memory_read(vcpu->vm->memory, state->rip, &first_byte, 1);
}

static uint64_t cpu_time_ns(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void vcpu_run(struct accel_vcpu *vcpu, struct vcpu_exit *exit)
{
    uint64_t end_ns = cpu_time_ns() + 3 * NS_PER_MS;
    const struct accel_machine *machine = vcpu->vm->machine;
    uint8_t value = 0;

    runs++;
    while (cpu_time_ns() < end_ns)
        continue;
    assert_int_equal(memory_read(vcpu->vm->memory, 0x2008, &rounds, sizeof(rounds)), 0);
    if (calls_machine)
        machine->port(machine->context, 0, 0x80, 1, true, &value);
    exit->kind = vcpu->kicked ? VCPU_EXIT_KICKED : exit_kind;
    exit->failure = ERROR_NONE;
    if (exit->kind == VCPU_EXIT_FAILED)
        (void)error_set(&exit->failure, EIO, "hand: broke down");
}

static void vcpu_kick(struct accel_vcpu *vcpu)
{
    vcpu->kicked = true;
}

static const struct accel_ops hand = {
    .name = "hand",
    .vm_create = vm_create,
    .vm_destroy = vm_destroy,
    .vcpu_create = vcpu_create,
    .vcpu_destroy = vcpu_destroy,
    .set_state = set_state,
    .vcpu_run = vcpu_run,
    .vcpu_kick = vcpu_kick,
};

/* ---- measuring ---- */

static int set_up(void **state)
{
    static char directory[64];

    (void)snprintf(directory, sizeof(directory), "/tmp/husk-measure-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", directory, 1), 0);
    exit_kind = VCPU_EXIT_PORT;
    calls_machine = false;
    runs = 0;
    *state = directory;
    return 0;
}

static int tear_down(void **state)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/husk/.speed", (char *)*state);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/husk", (char *)*state);
    (void)rmdir(path);
    return rmdir(*state);
}

/* 1000 rounds of 5 instructions in a little over 3 ms. */
static void speed_is_instructions_by_time(void **state)
{
    struct error err = ERROR_NONE;
    uint32_t mips;

    (void)state;
    assert_int_equal(accel_measure(&hand, &mips, &err), 0);
    assert_int_equal(mips, 1);
    assert_int_equal(runs, 1);
    assert_int_equal(rounds, 1000);
    assert_int_equal(first_byte, 0x48);
}

static void machine_that_is_called_kicks(void **state)
{
    struct error err = ERROR_NONE;
    uint32_t mips;

    (void)state;
    calls_machine = true;
    exit_kind = VCPU_EXIT_SHUTDOWN; /* were it not kicked */
    assert_int_equal(accel_measure(&hand, &mips, &err), 0);
    assert_int_equal(mips, 1);
}

static void failures_are_told(void **state)
{
    struct error err = ERROR_NONE;
    uint32_t mips;

    (void)state;
    exit_kind = VCPU_EXIT_FAILED;
    assert_int_equal(accel_measure(&hand, &mips, &err), -EIO);
    assert_string_equal(err.text, "hand: broke down");
    err = ERROR_NONE;
    exit_kind = VCPU_EXIT_SHUTDOWN;
    assert_int_equal(accel_measure(&hand, &mips, &err), -EIO);
    assert_string_equal(err.text, "hand: cannot run a simple loop");
}

static void what_is_built_in_can_be_measured(void **state)
{
    (void)state;
    for (const struct accel_ops *const *row = accels; *row != NULL; row++) {
        struct error err = ERROR_NONE;
        uint32_t mips = 0;

        if ((*row)->probe(&err) < 0)
            continue;
        if (accel_measure(*row, &mips, &err) < 0)
            fail_msg("%s", err.text);
        assert_in_range(mips, 1, 100000);
    }
}

/* ---- remembering ---- */

static void speed_is_measured_once(void **state)
{
    struct error err = ERROR_NONE;
    uint32_t mips = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(accel_speed(&hand, &mips, &err), 0);
        assert_int_equal(mips, 1);
    }
    assert_int_equal(runs, 1);
}

/* Puts `text` in place of what is remembered; returns what was. */
static void replace_file(const char *directory, const char *text, char old[512])
{
    char path[128];
    CLEANUP_FD int fd = -1;
    ssize_t size;

    (void)snprintf(path, sizeof(path), "%s/husk/.speed", directory);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    size = read(fd, old, 511);
    assert_true(size > 0);
    old[size] = '\0';
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void another_boot_or_program_is_measured_anew(void **state)
{
    struct error err = ERROR_NONE;
    char old[512];
    char changed[600];
    uint32_t mips = 0;

    assert_int_equal(accel_speed(&hand, &mips, &err), 0);
    replace_file(*state, "boot 0 program 0 0.0\nhand 77\n", old);
    assert_int_equal(accel_speed(&hand, &mips, &err), 0);
    assert_int_equal(mips, 1);
    assert_int_equal(runs, 2);
    /* The same with the right header is believed. */
    *strchr(old, '\n') = '\0';
    (void)snprintf(changed, sizeof(changed), "%s\nother 5\nhand 77\n", old);
    replace_file(*state, changed, old);
    assert_int_equal(accel_speed(&hand, &mips, &err), 0);
    assert_int_equal(mips, 77);
    assert_int_equal(runs, 2);
}

static void without_a_directory_it_is_measured_each_time(void **state)
{
    struct error err = ERROR_NONE;
    char path[128];
    uint32_t mips = 0;

    (void)snprintf(path, sizeof(path), "%s/husk", (char *)*state);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chmod(path, 0777), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(accel_speed(&hand, &mips, &err), 0);
    assert_int_equal(runs, 2);
}

#define MEASURE_TEST(function)                                                           \
    cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEASURE_TEST(speed_is_instructions_by_time),
        MEASURE_TEST(machine_that_is_called_kicks),
        MEASURE_TEST(failures_are_told),
        MEASURE_TEST(what_is_built_in_can_be_measured),
        MEASURE_TEST(speed_is_measured_once),
        MEASURE_TEST(another_boot_or_program_is_measured_anew),
        MEASURE_TEST(without_a_directory_it_is_measured_each_time),
    };

    return cmocka_run_group_tests_name("accel/measure", tests, NULL, NULL);
}
