/* SPDX-License-Identifier: Apache-2.0 */
/* Lost pages of mapped files: who is asked, and what is there afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map_guard.h"

#define PAGE UINT64_C(4096)

/* Two pages of a file that has none any more. */
struct lost_map {
    struct map_guard guard;
    volatile char *pages;
    int fd;
    uintptr_t asked_for; /* the last address */
    int asked;
};

static bool put_zeros(void *context, uintptr_t address)
{
    struct lost_map *map = context;

    map->asked_for = address;
    map->asked++;
    return map_guard_put_zero_page(address);
}

static bool give_up(void *context, uintptr_t address)
{
    (void)context;
    (void)address;
    return false;
}

static void map_init(struct lost_map *map, int flags)
{
    void *pages;

    *map = (struct lost_map){.fd = memfd_create("lost", MFD_CLOEXEC)};
    assert_true(map->fd >= 0);
    assert_int_equal(ftruncate(map->fd, 2 * PAGE), 0);
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, map->fd, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(ftruncate(map->fd, 0), 0);
    map->pages = pages;
    map->guard = (struct map_guard){
        .start = (uintptr_t)pages,
        .end = (uintptr_t)pages + 2 * PAGE,
        .repair = put_zeros,
        .context = map,
    };
}

static void map_finish(struct lost_map *map)
{
    map_guard_unregister(&map->guard);
    (void)munmap((void *)map->guard.start, 2 * PAGE);
    fd_close(&map->fd);
}

/* cmocka puts a SIGBUS handler of its own in place for each test. */
static void put_handler_back(void)
{
    static struct sigaction ours;

    if (ours.sa_sigaction == NULL) {
        struct map_guard nothing = {.repair = give_up};
        struct error err = ERROR_NONE;

        assert_int_equal(map_guard_register(&nothing, &err), 0);
        map_guard_unregister(&nothing);
        (void)sigaction(SIGBUS, NULL, &ours);
    }
    (void)sigaction(SIGBUS, &ours, NULL);
}

static void register_or_fail(struct lost_map *map)
{
    struct error err = ERROR_NONE;

    put_handler_back();
    assert_int_equal(map_guard_register(&map->guard, &err), 0);
}

static void lost_page_reads_as_zeros_and_keeps_what_is_written(void **state)
{
    static const int kinds[] = {MAP_SHARED, MAP_PRIVATE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct lost_map map;

        map_init(&map, kinds[i]);
        register_or_fail(&map);
        assert_int_equal(map.pages[PAGE + 5], 0);
        assert_int_equal(map.asked, 1);
        assert_true(map.asked_for - map.guard.start == PAGE + 5);
        map.pages[PAGE + 5] = 'x';
        assert_int_equal(map.pages[PAGE + 5], 'x');
        assert_int_equal(map.asked, 1);
        map.pages[0] = 'y';
        assert_int_equal(map.asked, 2);
        assert_int_equal(map.pages[0], 'y');
        map_finish(&map);
    }
}

static void owner_of_the_address_is_asked_and_no_other(void **state)
{
    struct lost_map first;
    struct lost_map second;

    (void)state;
    map_init(&first, MAP_SHARED);
    map_init(&second, MAP_SHARED);
    register_or_fail(&first);
    register_or_fail(&second);
    assert_int_equal(second.pages[0], 0);
    assert_int_equal(first.asked, 0);
    assert_int_equal(second.asked, 1);
    map_finish(&first);
    assert_int_equal(second.pages[PAGE], 0);
    assert_int_equal(second.asked, 2);
    map_finish(&second);
}

/* Touches a lost page in a child with the default action below our handler; returns its
 * wait status. */
static int status_of_touch(bool (*repair)(void *context, uintptr_t address))
{
    pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        struct lost_map map;
        struct error err = ERROR_NONE;

        map_init(&map, MAP_SHARED);
        map.guard.repair = repair;
        (void)signal(SIGBUS, SIG_DFL);
        if (map_guard_register(&map.guard, &err) < 0)
            _exit(1);
        map.pages[0] = 'z';
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Comes first: the handler is installed once in a process. */
static void page_that_its_owner_gives_up_ends_the_process(void **state)
{
    int status = status_of_touch(give_up);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    assert_int_equal(status_of_touch(put_zeros), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_that_its_owner_gives_up_ends_the_process),
        cmocka_unit_test(lost_page_reads_as_zeros_and_keeps_what_is_written),
        cmocka_unit_test(owner_of_the_address_is_asked_and_no_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
