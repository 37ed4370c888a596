/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server and client over real sockets, with a VM and a console that remember: good
 * clients are served, bad ones harm nobody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/instances_private.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "fake_vm.h"

struct fixture {
    char runtime[32];
    struct vm vm;
    struct console console;
    struct vm_config config;
    struct instance *instance;
    struct instance_info info;
    struct loop *loop;
    struct api_server *server;
    pthread_t thread;
};

static void *run_loop(void *context)
{
    struct fixture *fixture = context;
    struct error err = ERROR_NONE;

    assert_int_equal(loop_run(fixture->loop, &err), 0);
    api_server_destroy(
        fixture->server); /* as husk run does: the last answers go out here */
    return NULL;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    *state = fixture;
    memcpy(fixture->runtime, "/tmp/husk-test-XXXXXX", sizeof("/tmp/husk-test-XXXXXX"));
    assert_non_null(mkdtemp(fixture->runtime));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", fixture->runtime, 1), 0);
    assert_int_equal(instance_create("web", &fixture->instance, &err), 0);
    assert_int_equal(instance_find("web", &fixture->info, &err), 0);
    fixture->vm.state = VM_RUNNING;
    fixture->vm.plan.protocol = BOOT_PVH;
    fixture->vm.counters.accel = "kvm";
    fixture->console.backlog = "login: ";
    fixture->config.memory_bytes = 64 * MIB;
    fixture->config.cpu_count = 1;
    assert_int_equal(loop_create(&fixture->loop, &err), 0);
    assert_int_equal(api_server_create(fixture->loop, &fixture->vm, &fixture->console,
                                       &fixture->config, fixture->instance,
                                       &fixture->server, &err),
                     0);
    assert_int_equal(pthread_create(&fixture->thread, NULL, run_loop, fixture), 0);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char path[64];

    loop_stop(fixture->loop);
    assert_int_equal(pthread_join(fixture->thread, NULL), 0);
    loop_destroy(fixture->loop);
    instance_destroy(fixture->instance);
    (void)snprintf(path, sizeof(path), "%s/husk", fixture->runtime);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(fixture->runtime), 0);
    free(fixture);
    return 0;
}

/* ---- helpers ---- */

static void assert_answer(const struct fixture *fixture, const char *method,
                          const char *path, const char *body, const char *expected)
{
    struct error err = ERROR_NONE;
    char *answer = NULL;
    int status = api_request(&fixture->info, method, path, body, &answer, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(status, 0);
    assert_string_equal(answer, expected);
    free(answer);
}

static void assert_refused(const struct fixture *fixture, const char *method,
                           const char *path, const char *body, int code, const char *text)
{
    struct error err = ERROR_NONE;
    char *answer = NULL;

    assert_int_equal(api_request(&fixture->info, method, path, body, &answer, &err),
                     code);
    assert_string_equal(err.text, text);
    assert_null(answer);
}

static void assert_still_serves(const struct fixture *fixture)
{
    unsigned dumps = fixture->vm.dumps;

    assert_answer(fixture, "PUT", "/actions", "{\"action_type\":\"Dump\"}", "");
    assert_int_equal(fixture->vm.dumps, dumps + 1);
}

static int make_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    return fd;
}

static void connect_to(const struct fixture *fixture, int fd, const char *name)
{
    struct sockaddr_un address;
    struct error err = ERROR_NONE;

    assert_int_equal(
        instance_socket_address(fixture->info.directory, name, &address, &err), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static int connect_raw(const struct fixture *fixture)
{
    int fd = make_socket();

    connect_to(fixture, fd, INSTANCE_API_SOCKET);
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Reads to the end of the connection. */
static void read_all(int fd, char *to, size_t size)
{
    size_t used = 0;
    ssize_t got;

    while ((got = recv(fd, to + used, size - 1 - used, 0)) > 0)
        used += (size_t)got;
    to[used] = '\0';
}

static void read_exactly(int fd, char *to, size_t size)
{
    assert_int_equal(recv(fd, to, size, MSG_WAITALL), size);
}

/* Waits until the console has taken that much; the test's own timeout ends a wait in
 * vain. */
static void wait_for_input(struct fixture *fixture, size_t size)
{
    while (atomic_load(&fixture->console.input_used) < size)
        (void)usleep(1000);
}

/* ---- HTTP ---- */

static void serves_documents(void **state)
{
    struct fixture *fixture = *state;
    struct error err = ERROR_NONE;
    char *answer;
    json_t *document;

    assert_int_equal(api_request(&fixture->info, "GET", "/stat", NULL, &answer, &err), 0);
    document = json_loads(answer, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(document, "name")), "web");
    assert_true(json_is_object(json_object_get(document, "counters")));
    json_decref(document);
    free(answer);
}

static void carries_out_orders(void **state)
{
    struct fixture *fixture = *state;

    assert_answer(fixture, "PATCH", "/vm", "{\"state\":\"Paused\"}", "");
    assert_int_equal(fixture->vm.state, VM_PAUSED);
    assert_answer(fixture, "PATCH", "/vm", "{\"state\":\"Resumed\"}", "");
    assert_int_equal(fixture->vm.state, VM_RUNNING);
}

static void answers_before_it_stops_the_vm_and_with_it_the_loop(void **state)
{
    struct fixture *fixture = *state;

    fixture->vm.ends_loop = fixture->loop;
    assert_answer(fixture, "PUT", "/actions", "{\"action_type\":\"Stop\"}", "");
    while (atomic_load(&fixture->vm.stops) == 0)
        (void)usleep(1000);
    assert_int_equal(fixture->vm.end, VM_END_STOPPED);
}

static void stops_for_a_client_that_does_not_wait_too(void **state)
{
    struct fixture *fixture = *state;
    int fd = connect_raw(fixture);

    send_text(fd, "PUT /actions HTTP/1.1\r\nContent-Length: 22\r\n\r\n"
                  "{\"action_type\":\"Stop\"}");
    assert_int_equal(close(fd), 0);
    while (atomic_load(&fixture->vm.stops) == 0)
        (void)usleep(1000);
    assert_still_serves(fixture);
}

static void gives_faults_to_the_client_as_they_are(void **state)
{
    struct fixture *fixture = *state;

    fixture->vm.ignores_power_button = true;
    assert_refused(fixture, "PUT", "/actions", "{\"action_type\":\"SendCtrlAltDel\"}",
                   -EBUSY, "instance web: the guest does not listen to the power button");
    assert_refused(fixture, "PUT", "/actions", "{}", -EINVAL,
                   "instance web: field \"action_type\" is missing");
    assert_refused(fixture, "GET", "/x", NULL, -ENOENT,
                   "instance web: no such path: there are /, /stat, /vm, /console, "
                   "/actions and /balloon");
    assert_refused(fixture, "POST", "/", NULL, -EPROTO, "instance web: / has GET only");
}

static void states_type_and_allowed_method(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = connect_raw(fixture);
    char answer[1024];

    send_text(fd, "OPTIONS /vm?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_all(fd, answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 405 "));
    assert_non_null(strstr(answer, "\r\nAllow: PATCH\r\n"));
    assert_non_null(strstr(answer, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(answer, "{\"fault_message\":\"/vm has PATCH only\"}\n"));
}

static void serves_several_requests_on_one_connection(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = connect_raw(fixture);
    char answer[2048];

    send_text(fd, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
                  "GET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    read_all(fd, answer, sizeof(answer));
    assert_non_null(strstr(strstr(answer, "HTTP/1.1 404 ") + 1, "HTTP/1.1 404 "));
}

static void refuses_bodies_beyond_64_kib(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = connect_raw(fixture);
    char answer[1024];

    send_text(fd, "PUT /actions HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n");
    read_all(fd, answer, sizeof(answer));
    assert_non_null(strstr(answer, "HTTP/1.1 413 "));
    assert_still_serves(fixture);
}

static void survives_garbage(void **state)
{
    static const char *const garbage[] = {
        "\x16\x03\x01\x02 this is TLS\r\n\r\n",
        "GET\r\n\r\n",
        "BREW / HTTP/1.1\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET http://[::1 HTTP/1.1\r\n\r\n",
        "PUT /actions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        "PUT /actions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "PUT /actions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
        CLEANUP_FD int fd = connect_raw(fixture);

        send_text(fd, garbage[i]);
    }
    assert_still_serves(fixture);
}

static void a_head_without_end_is_cut_off(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = connect_raw(fixture);
    char line[1024];

    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    send_text(fd, "GET / HTTP/1.1\r\nX: ");
    while (send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL) > 0)
        continue;
    assert_still_serves(fixture);
}

/* Half a request each, never finished: nobody else waits for them. */
static void slow_clients_hold_up_nobody(void **state)
{
    struct fixture *fixture = *state;
    int slow[40];

    for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
        slow[i] = connect_raw(fixture);
        send_text(slow[i], "PUT /actions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
    }
    assert_still_serves(fixture);
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
        assert_int_equal(close(slow[i]), 0);
    assert_still_serves(fixture);
}

/* accept() then fails again and again; the server waits and goes on afterwards. */
static void recovers_from_running_out_of_descriptors(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = make_socket();
    struct rlimit before;
    struct rlimit none;
    char answer[1024];

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)fd + 1; /* it got the lowest number that was free */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    log_set_level(LOG_ERROR);
    connect_to(fixture, fd, INSTANCE_API_SOCKET);
    send_text(fd, "GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    (void)usleep(50 * 1000); /* so that the server has tried */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    read_all(fd, answer, sizeof(answer));
    log_set_level(LOG_WARN);
    assert_non_null(strstr(answer, "HTTP/1.1 404 "));
}

static void sockets_are_for_their_owner_only(void **state)
{
    static const char *const names[] = {INSTANCE_API_SOCKET, INSTANCE_CONSOLE_SOCKET};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char path[300];
        struct stat status;

        (void)snprintf(path, sizeof(path), "%s/%s", fixture->info.directory, names[i]);
        assert_int_equal(stat(path, &status), 0);
        assert_true(S_ISSOCK(status.st_mode));
        assert_int_equal(status.st_mode & 07777, 0600);
    }
}

static void writes_down_what_runs(void **state)
{
    struct fixture *fixture = *state;
    char path[300];
    json_t *info;

    (void)snprintf(path, sizeof(path), "%s/" INSTANCE_INFO, fixture->info.directory);
    info = json_load_file(path, 0, NULL);
    assert_int_equal(json_object_size(info), 6);
    assert_int_equal(json_integer_value(json_object_get(info, "schema")), 1);
    assert_int_equal(json_integer_value(json_object_get(info, "pid")), getpid());
    assert_true(json_integer_value(json_object_get(info, "started")) > 1700000000);
    assert_true(json_is_null(json_object_get(info, "kernel")));
    assert_int_equal(json_integer_value(json_object_get(info, "memory_bytes")), 64 * MIB);
    assert_int_equal(json_integer_value(json_object_get(info, "vcpus")), 1);
    json_decref(info);
}

/* ---- the client without a server ---- */

/* The same instance, looked for where its sockets are not. */
static struct fixture in_runtime_directory(const struct fixture *fixture)
{
    struct fixture elsewhere = {.info = fixture->info};

    (void)snprintf(elsewhere.info.directory, sizeof(elsewhere.info.directory), "%s",
                   fixture->runtime);
    return elsewhere;
}

static void an_instance_without_sockets_is_starting_or_ending(void **state)
{
    struct fixture *fixture = *state;
    struct fixture gone = in_runtime_directory(fixture);
    struct error err = ERROR_NONE;

    assert_refused(&gone, "GET", "/", NULL, -ENOENT,
                   "instance web: has no api.sock: it is just starting or ending");
    assert_int_equal(api_connect_console(&gone.info, &err), -ENOENT);
    assert_string_equal(err.text,
                        "instance web: has no console.sock: it is just starting or "
                        "ending");
}

/* Listens in place of an instance, in the runtime directory. */
struct mute {
    struct fixture fixture;
    int fd;
    char path[300];
};

static void mute_start(struct mute *mute, const struct fixture *fixture)
{
    struct sockaddr_un address;
    struct error err = ERROR_NONE;

    mute->fixture = in_runtime_directory(fixture);
    mute->fd = make_socket();
    assert_int_equal(
        instance_socket_address(fixture->runtime, INSTANCE_API_SOCKET, &address, &err),
        0);
    (void)snprintf(mute->path, sizeof(mute->path), "%s", address.sun_path);
    assert_int_equal(bind(mute->fd, (const struct sockaddr *)&address, sizeof(address)),
                     0);
    assert_int_equal(listen(mute->fd, 1), 0);
}

static void mute_stop(struct mute *mute)
{
    assert_int_equal(close(mute->fd), 0);
    assert_int_equal(unlink(mute->path), 0);
}

static void a_server_that_says_nothing_is_given_up(void **state)
{
    struct mute mute;

    mute_start(&mute, *state);
    assert_refused(&mute.fixture, "GET", "/", NULL, -ETIMEDOUT,
                   "instance web: does not answer (timed out after 5 s)");
    mute_stop(&mute);
}

static void *answer_in_pieces(void *context)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    int listener = *(const int *)context;
    char request[512];
    int fd = accept(listener, NULL, NULL);

    assert_true(fd >= 0);
    assert_true(recv(fd, request, sizeof(request), 0) > 0);
    for (size_t i = 0; i < sizeof(answer) - 1; i++) {
        assert_int_equal(send(fd, answer + i, 1, MSG_NOSIGNAL), 1);
        (void)usleep(500);
    }
    (void)recv(fd, request, sizeof(request), 0); /* until the client has had enough */
    assert_int_equal(close(fd), 0);
    return NULL;
}

static void takes_an_answer_that_comes_in_pieces(void **state)
{
    struct mute mute;
    pthread_t thread;

    mute_start(&mute, *state);
    assert_int_equal(pthread_create(&thread, NULL, answer_in_pieces, &mute.fd), 0);
    assert_answer(&mute.fixture, "GET", "/", NULL, "hello");
    assert_int_equal(pthread_join(thread, NULL), 0);
    mute_stop(&mute);
}

static void *hang_up(void *context)
{
    int fd = accept(*(const int *)context, NULL, NULL);

    assert_int_equal(close(fd), 0);
    return NULL;
}

static void a_connection_that_breaks_is_said_so(void **state)
{
    struct mute mute;
    pthread_t thread;

    mute_start(&mute, *state);
    assert_int_equal(pthread_create(&thread, NULL, hang_up, &mute.fd), 0);
    assert_refused(&mute.fixture, "GET", "/", NULL, -EPROTO,
                   "instance web: closed the connection before its answer ended");
    assert_int_equal(pthread_join(thread, NULL), 0);
    mute_stop(&mute);
}

/* ---- the console ---- */

static int attach(const struct fixture *fixture)
{
    struct error err = ERROR_NONE;
    int fd = api_connect_console(&fixture->info, &err);

    assert_true(fd >= 0);
    return fd;
}

static void a_console_client_gets_the_backlog_and_gives_input(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = attach(fixture);
    char output[7];

    atomic_store(&fixture->console.room, 100);
    read_exactly(fd, output, sizeof(output));
    assert_memory_equal(output, "login: ", sizeof(output));
    send_text(fd, "root\n");
    wait_for_input(fixture, 5);
    assert_memory_equal(fixture->console.input, "root\n", 5);
}

static void several_console_clients_are_served_at_once(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int first = attach(fixture);
    CLEANUP_FD int second = attach(fixture);
    char output[7];

    atomic_store(&fixture->console.room, 100);
    read_exactly(second, output, sizeof(output));
    read_exactly(first, output, sizeof(output));
    send_text(second, "2");
    wait_for_input(fixture, 1);
    send_text(first, "1");
    wait_for_input(fixture, 2);
    assert_memory_equal(fixture->console.input, "21", 2);
}

/* All of it arrives, in order, although the guest takes it in small portions; meanwhile
 * the API answers, and the client feels the pressure instead of husk's memory. */
static void console_input_waits_for_room(void **state)
{
    enum { SIZE = 20000 };
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = attach(fixture);
    uint8_t *input = malloc(SIZE);

    assert_non_null(input);
    for (size_t i = 0; i < SIZE; i++)
        input[i] = (uint8_t)(i * 7);
    assert_int_equal(send(fd, input, SIZE, MSG_NOSIGNAL), SIZE);
    while (atomic_load(&fixture->console.refusals) == 0)
        (void)usleep(1000);
    assert_int_equal(atomic_load(&fixture->console.input_used), 0);
    assert_still_serves(fixture);
    atomic_fetch_add(&fixture->console.room, 1000);
    wait_for_input(fixture, 1000);
    assert_still_serves(fixture);
    atomic_fetch_add(&fixture->console.room, SIZE);
    wait_for_input(fixture, SIZE);
    assert_memory_equal(fixture->console.input, input, SIZE);
    free(input);
}

/* A file as input: all of it counts, then the writing half is shut down. */
static void input_before_the_end_of_file_counts(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FD int fd = attach(fixture);

    send_text(fd, "last words");
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    atomic_store(&fixture->console.room, 100);
    wait_for_input(fixture, 10);
    assert_memory_equal(fixture->console.input, "last words", 10);
}

static void a_client_the_console_cannot_take_is_closed(void **state)
{
    struct fixture *fixture = *state;
    char byte;

    fixture->console.refuses_readers = true;
    log_set_level(LOG_ERROR);
    for (int i = 0; i < 3; i++) {
        CLEANUP_FD int fd = attach(fixture);

        assert_int_equal(recv(fd, &byte, 1, 0), 0);
    }
    log_set_level(LOG_WARN);
    assert_still_serves(fixture);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(serves_documents),
        TEST(carries_out_orders),
        TEST(answers_before_it_stops_the_vm_and_with_it_the_loop),
        TEST(stops_for_a_client_that_does_not_wait_too),
        TEST(gives_faults_to_the_client_as_they_are),
        TEST(states_type_and_allowed_method),
        TEST(serves_several_requests_on_one_connection),
        TEST(refuses_bodies_beyond_64_kib),
        TEST(survives_garbage),
        TEST(a_head_without_end_is_cut_off),
        TEST(slow_clients_hold_up_nobody),
        TEST(recovers_from_running_out_of_descriptors),
        TEST(sockets_are_for_their_owner_only),
        TEST(writes_down_what_runs),
        TEST(an_instance_without_sockets_is_starting_or_ending),
        TEST(a_server_that_says_nothing_is_given_up),
        TEST(takes_an_answer_that_comes_in_pieces),
        TEST(a_connection_that_breaks_is_said_so),
        TEST(a_console_client_gets_the_backlog_and_gives_input),
        TEST(several_console_clients_are_served_at_once),
        TEST(console_input_waits_for_room),
        TEST(input_before_the_end_of_file_counts),
        TEST(a_client_the_console_cannot_take_is_closed),
    };

    clock_mark_start();
    (void)signal(SIGPIPE, SIG_IGN); /* as husk run does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
