/* SPDX-License-Identifier: Apache-2.0 */
/* Files truncated under a guest: no death by SIGBUS, but a loss that is told once. */
#include "memory_test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/map_guard.h"

static atomic_int notices;

static void count_notice(void *context)
{
    (void)context;
    atomic_fetch_add(&notices, 1);
}

/* cmocka puts a SIGBUS handler of its own in place for each test. */
static void put_handler_back(void)
{
    static struct sigaction ours;

    if (ours.sa_sigaction == NULL) {
        memory_destroy(small_memory());
        (void)sigaction(SIGBUS, NULL, &ours);
    }
    (void)sigaction(SIGBUS, &ours, NULL);
}

static struct memory *memory_with_file(int fd, uint64_t size_bytes)
{
    struct memory *memory = small_memory();

    put_handler_back();
    map_or_fail(memory, 0x10000, fd, 0, size_bytes, "kernel vmlinux");
    atomic_store(&notices, 0);
    memory_on_loss(memory, count_notice, NULL);
    return memory;
}

static void assert_lost(const struct memory *memory, uint64_t gpa, const char *file)
{
    struct memory_loss loss = {0};

    assert_true(memory_lost(memory, &loss));
    assert_true(loss.gpa == gpa);
    assert_string_equal(loss.file, file);
}

/* Runs `act` in a child with the default SIGBUS action below ours; returns its wait
 * status. */
static int status_of_child(void (*act)(struct memory *memory))
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGBUS, SIG_DFL);
        act(small_memory());
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void read_lost_page_outside(struct memory *memory)
{
    int fd = file_of(PAGE);
    volatile char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);

    (void)memory;
    if (ftruncate(fd, 0) == 0)
        (void)page[0];
}

static void send_signal(struct memory *memory)
{
    (void)memory;
    (void)raise(SIGBUS);
}

static void read_lost_page_inside(struct memory *memory)
{
    int fd = file_of(PAGE);
    struct error err = ERROR_NONE;

    if (memory_map_file(memory, 0, fd, 0, PAGE, "kernel", &err) < 0 ||
        ftruncate(fd, 0) < 0 || *(volatile char *)memory_slice(memory, 0, 1) != 0)
        _exit(1);
}

/* These come first: the handler is installed once in a process, by the first memory. */
static void fault_outside_guest_memory_still_kills(void **state)
{
    int status = status_of_child(read_lost_page_outside);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void signal_sent_by_somebody_still_kills(void **state)
{
    int status = status_of_child(send_signal);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void fault_inside_guest_memory_does_not_kill(void **state)
{
    int status = status_of_child(read_lost_page_inside);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void exit_with_seven(int signal_number)
{
    (void)signal_number;
    _exit(7);
}

/* The child sets its own handler before its first memory installs ours. */
static void fault_outside_reaches_the_handler_that_was_there_before(void **state)
{
    pid_t child = fork();
    int status = 0;

    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGBUS, exit_with_seven);
        read_lost_page_outside(small_memory());
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void reads_zeros_and_tells_once(void **state)
{
    CLEANUP_FD int fd = file_of(4 * PAGE);
    struct memory *memory = memory_with_file(fd, 4 * PAGE);
    struct memory_loss loss;
    char page[PAGE];

    (void)state;
    assert_false(memory_lost(memory, &loss));
    assert_int_equal(ftruncate(fd, PAGE), 0);
    assert_int_equal(byte_at(memory, 0x10000), 'a'); /* what is left stays */
    assert_int_equal(atomic_load(&notices), 0);

    memset(page, 'x', sizeof(page));
    assert_int_equal(memory_read(memory, 0x10000 + 2 * PAGE, page, PAGE), 0);
    for (size_t i = 0; i < PAGE; i++)
        assert_int_equal(page[i], 0);
    assert_lost(memory, 0x10000 + 2 * PAGE, "kernel vmlinux");
    assert_int_equal(atomic_load(&notices), 1);

    assert_int_equal(byte_at(memory, 0x10000 + 3 * PAGE), 0);
    assert_lost(memory, 0x10000 + 2 * PAGE, "kernel vmlinux"); /* the first stays */
    assert_int_equal(atomic_load(&notices), 1);
    memory_destroy(memory);
}

static void write_to_a_lost_page_is_kept(void **state)
{
    CLEANUP_FD int fd = file_of(2 * PAGE);
    struct memory *memory = memory_with_file(fd, 2 * PAGE);
    char text[6] = "";

    (void)state;
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(memory_write(memory, 0x10000 + 5, "hello", 6), 0);
    assert_lost(memory, 0x10000, "kernel vmlinux");
    assert_int_equal(memory_write(memory, 0x10000 + PAGE - 2, "world", 6), 0);
    assert_int_equal(memory_read(memory, 0x10000 + 5, text, 6), 0);
    assert_string_equal(text, "hello");
    assert_int_equal(memory_read(memory, 0x10000 + PAGE - 2, text, 6), 0);
    assert_string_equal(text, "world");
    memory_destroy(memory);
}

static void page_the_guest_had_written_is_lost_too(void **state)
{
    CLEANUP_FD int fd = file_of(PAGE);
    struct memory *memory = memory_with_file(fd, PAGE);

    (void)state;
    assert_int_equal(memory_write(memory, 0x10000, "X", 1), 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(byte_at(memory, 0x10000), 0); /* truncation takes private copies */
    assert_lost(memory, 0x10000, "kernel vmlinux");
    memory_destroy(memory);
}

static void loss_before_anybody_listens_is_told_at_once(void **state)
{
    CLEANUP_FD int fd = file_of(PAGE);
    struct memory *memory = small_memory();

    (void)state;
    put_handler_back();
    map_or_fail(memory, 0, fd, 0, PAGE, "initrd");
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(byte_at(memory, 0), 0);
    atomic_store(&notices, 0);
    memory_on_loss(memory, count_notice, NULL);
    assert_int_equal(atomic_load(&notices), 1);
    memory_on_loss(memory, count_notice, NULL);
    assert_int_equal(atomic_load(&notices), 1);
    memory_destroy(memory);
}

static void names_the_map_on_top(void **state)
{
    CLEANUP_FD int kernel = file_of(4 * PAGE);
    CLEANUP_FD int initrd = file_of(PAGE);
    struct memory *memory = memory_with_file(kernel, 4 * PAGE);

    (void)state;
    map_or_fail(memory, 0x10000 + PAGE, initrd, 0, PAGE, "initrd");
    assert_int_equal(ftruncate(initrd, 0), 0);
    assert_int_equal(byte_at(memory, 0x10000 + PAGE), 0);
    assert_lost(memory, 0x10000 + PAGE, "initrd");
    memory_destroy(memory);
}

static void several_memories_lose_apart(void **state)
{
    CLEANUP_FD int first_fd = file_of(PAGE);
    CLEANUP_FD int second_fd = file_of(PAGE);
    struct memory *first = memory_with_file(first_fd, PAGE);
    struct memory *second = memory_with_file(second_fd, PAGE);
    struct memory_loss loss;

    (void)state;
    assert_int_equal(ftruncate(second_fd, 0), 0);
    assert_int_equal(byte_at(first, 0x10000), 'a');
    assert_int_equal(byte_at(second, 0x10000), 0);
    assert_false(memory_lost(first, &loss));
    assert_lost(second, 0x10000, "kernel vmlinux");
    memory_destroy(first);
    assert_int_equal(byte_at(second, 0x10000), 0);
    memory_destroy(second);
}

static void memory_that_cannot_be_guarded_is_refused(void **state)
{
    const struct memory_span span = {0, PAGE};
    const struct memory_options options = {0};
    struct memory *memories[MAP_GUARD_MAX];
    struct memory *one_more = NULL;
    struct error err = ERROR_NONE;

    (void)state;
    for (size_t i = 0; i < MAP_GUARD_MAX; i++)
        memories[i] = memory_of(&span, 1);
    assert_true(memory_create(&span, 1, &options, &one_more, &err) < 0);
    assert_string_equal(err.text, "more than 64 maps to guard in one process");
    memory_destroy(memories[3]);
    memories[3] = memory_of(&span, 1);
    for (size_t i = 0; i < MAP_GUARD_MAX; i++)
        memory_destroy(memories[i]);
}

static void find_loss_sees_a_shorter_file_without_a_fault(void **state)
{
    CLEANUP_FD int fd = file_of(4 * PAGE);
    struct memory *memory = memory_with_file(fd, 4 * PAGE);

    (void)state;
    assert_false(memory_find_loss(memory));
    assert_int_equal(ftruncate(fd, 2 * PAGE + 8), 0);
    assert_true(memory_find_loss(memory));
    assert_lost(memory, 0x10000 + 2 * PAGE + 8, "kernel vmlinux");
    assert_int_equal(atomic_load(&notices), 1);
    assert_true(memory_find_loss(memory));
    assert_int_equal(atomic_load(&notices), 1);
    memory_destroy(memory);
}

static void find_loss_ignores_what_is_not_mapped(void **state)
{
    CLEANUP_FD int fd = file_of(4 * PAGE);
    struct memory *memory = memory_with_file(fd, 2 * PAGE);

    (void)state;
    assert_int_equal(ftruncate(fd, 2 * PAGE), 0);
    assert_false(memory_find_loss(memory));
    assert_int_equal(ftruncate(fd, 2 * PAGE - 1), 0);
    assert_true(memory_find_loss(memory));
    memory_destroy(memory);
}

static void find_loss_works_after_the_caller_closed_its_descriptor(void **state)
{
    int fd = file_of(2 * PAGE);
    CLEANUP_FD int other = dup(fd);
    struct memory *memory = memory_with_file(fd, 2 * PAGE);

    (void)state;
    fd_close(&fd);
    assert_int_equal(ftruncate(other, 0), 0);
    assert_true(memory_find_loss(memory));
    assert_lost(memory, 0x10000, "kernel vmlinux");
    memory_destroy(memory);
}

struct writer {
    struct memory *memory;
    pthread_t thread;
    char letter;
};

#define SHARED_PAGES 256

/* Each writer has its own byte in every page. */
static void *write_all_pages(void *context)
{
    struct writer *writer = context;

    for (uint64_t i = 0; i < SHARED_PAGES; i++)
        if (memory_write(writer->memory, i * PAGE + (uint64_t)writer->letter,
                         &writer->letter, 1) < 0)
            return context;
    return NULL;
}

static void threads_that_lose_the_same_pages_keep_their_writes_and_tell_once(void **state)
{
    CLEANUP_FD int fd = file_of(SHARED_PAGES * PAGE);
    struct memory *memory = small_memory();
    struct writer writers[4];

    (void)state;
    put_handler_back();
    map_or_fail(memory, 0, fd, 0, SHARED_PAGES * PAGE, "kernel");
    atomic_store(&notices, 0);
    memory_on_loss(memory, count_notice, NULL);
    assert_int_equal(ftruncate(fd, 0), 0);
    for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
        writers[i] = (struct writer){.memory = memory, .letter = (char)('a' + i)};
        assert_int_equal(
            pthread_create(&writers[i].thread, NULL, write_all_pages, &writers[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
        void *failed;

        assert_int_equal(pthread_join(writers[i].thread, &failed), 0);
        assert_null(failed);
    }
    for (uint64_t page = 0; page < SHARED_PAGES; page++)
        for (size_t i = 0; i < ARRAY_SIZE(writers); i++)
            assert_int_equal(byte_at(memory, page * PAGE + (uint64_t)writers[i].letter),
                             writers[i].letter);
    assert_int_equal(atomic_load(&notices), 1);
    memory_destroy(memory);
}

static void map_of_a_truncated_file_is_refused_after_reset(void **state)
{
    CLEANUP_FD int fd = file_of(2 * PAGE);
    struct memory *memory = memory_with_file(fd, 2 * PAGE);
    struct error err = ERROR_NONE;

    (void)state;
    assert_int_equal(ftruncate(fd, PAGE), 0);
    assert_int_equal(memory_reset(memory, &err), 0);
    assert_false(memory_find_loss(memory));
    assert_true(memory_map_file(memory, 0, fd, 0, 2 * PAGE, "kernel", &err) < 0);
    assert_string_equal(err.text, "kernel: ends at byte 4096, but 0x2000 bytes from "
                                  "offset 0x0 are to be mapped");
    memory_destroy(memory);
}

static void span_that_is_a_file_can_be_lost_also_after_a_reset(void **state)
{
    const struct memory_span spans[] = {{0, MIB}, {GIB, 2 * MIB}};
    const struct memory_options options = {.file_span_count = 1};
    CLEANUP_FD int fd = file_of(2 * MIB);
    struct memory *memory = NULL;
    struct memory_loss loss;
    struct error err = ERROR_NONE;

    (void)state;
    put_handler_back();
    assert_int_equal(memory_create(spans, ARRAY_SIZE(spans), &options, &memory, &err), 0);
    assert_int_equal(memory_map_span(memory, GIB, fd, true, "pmem a", &err), 0);
    assert_int_equal(memory_reset(memory, &err), 0);
    assert_int_equal(ftruncate(fd, MIB), 0);
    assert_int_equal(byte_at(memory, GIB + MIB - 1), 'a' + (int)((MIB / PAGE - 1) % 26));
    assert_false(memory_lost(memory, &loss));
    assert_int_equal(byte_at(memory, GIB + MIB + 1), 0);
    assert_lost(memory, GIB + MIB, "pmem a");
    assert_true(memory_lost(memory, &loss) && loss.is_truncated);
    memory_destroy(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_outside_guest_memory_still_kills),
        cmocka_unit_test(signal_sent_by_somebody_still_kills),
        cmocka_unit_test(fault_inside_guest_memory_does_not_kill),
        cmocka_unit_test(fault_outside_reaches_the_handler_that_was_there_before),
        cmocka_unit_test(reads_zeros_and_tells_once),
        cmocka_unit_test(write_to_a_lost_page_is_kept),
        cmocka_unit_test(page_the_guest_had_written_is_lost_too),
        cmocka_unit_test(loss_before_anybody_listens_is_told_at_once),
        cmocka_unit_test(names_the_map_on_top),
        cmocka_unit_test(several_memories_lose_apart),
        cmocka_unit_test(memory_that_cannot_be_guarded_is_refused),
        cmocka_unit_test(find_loss_sees_a_shorter_file_without_a_fault),
        cmocka_unit_test(find_loss_ignores_what_is_not_mapped),
        cmocka_unit_test(find_loss_works_after_the_caller_closed_its_descriptor),
        cmocka_unit_test(
            threads_that_lose_the_same_pages_keep_their_writes_and_tell_once),
        cmocka_unit_test(map_of_a_truncated_file_is_refused_after_reset),
        cmocka_unit_test(span_that_is_a_file_can_be_lost_also_after_a_reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
