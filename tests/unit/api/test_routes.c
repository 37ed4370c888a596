/* SPDX-License-Identifier: Apache-2.0 */
/* The routes with a VM that remembers: every answer, every refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/routes_private.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "fake_vm.h"

struct fixture {
    struct vm vm;
    struct vm_config config;
    struct instance *instance;
    struct api_machine machine;
    char runtime[32];
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct error err = ERROR_NONE;

    assert_non_null(fixture);
    memcpy(fixture->runtime, "/tmp/husk-test-XXXXXX", sizeof("/tmp/husk-test-XXXXXX"));
    assert_non_null(mkdtemp(fixture->runtime));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", fixture->runtime, 1), 0);
    assert_int_equal(instance_create("web", &fixture->instance, &err), 0);
    fixture->vm.state = VM_RUNNING;
    fixture->vm.plan.protocol = BOOT_PVH;
    fixture->vm.counters.accel = "kvm";
    fixture->config.memory_bytes = 64 * MIB;
    fixture->config.cpu_count = 2;
    fixture->machine = (struct api_machine){
        .vm = &fixture->vm, .config = &fixture->config, .instance = fixture->instance};
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char path[64];

    instance_destroy(fixture->instance);
    (void)snprintf(path, sizeof(path), "%s/husk", fixture->runtime);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(fixture->runtime), 0);
    free(fixture);
    return 0;
}

static struct api_answer ask(const struct fixture *fixture, const char *method,
                             const char *path, const char *body)
{
    struct api_question question = {
        .method = method, .path = path, .body = body, .body_bytes = strlen(body)};

    return api_answer(&fixture->machine, &question);
}

static void assert_done(const struct fixture *fixture, const char *method,
                        const char *path, const char *body)
{
    struct api_answer answer = ask(fixture, method, path, body);

    assert_int_equal(answer.status, 204);
    assert_null(answer.body);
}

static void assert_fault(const struct fixture *fixture, const char *method,
                         const char *path, const char *body, int status,
                         const char *message)
{
    struct api_answer answer = ask(fixture, method, path, body);

    assert_int_equal(answer.status, status);
    assert_int_equal(json_object_size(answer.body), 1);
    assert_string_equal(json_string_value(json_object_get(answer.body, "fault_message")),
                        message);
    json_decref(answer.body);
}

static void assert_document(const struct api_answer *answer, const char *expected)
{
    char *text = json_dumps(answer->body, JSON_COMPACT);

    assert_string_equal(text, expected);
    free(text);
}

static void identity_says_what_runs(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer;
    char expected[512];

    fixture->config.kernel = strdup("/boot/vmlinux");
    answer = ask(fixture, "GET", "/", "");
    assert_int_equal(answer.status, 200);
    assert_true(json_integer_value(json_object_get(answer.body, "uptime_ms")) >= 0);
    assert_int_equal(json_object_set_new(answer.body, "uptime_ms", json_integer(7)), 0);
    (void)snprintf(expected, sizeof(expected),
                   "{\"schema\":1,\"name\":\"web\",\"state\":\"running\",\"pid\":%ld,"
                   "\"accel\":\"kvm\",\"uptime_ms\":7,\"kernel\":\"/boot/vmlinux\","
                   "\"protocol\":\"pvh\",\"memory_bytes\":67108864,\"vcpus\":2}",
                   (long)getpid());
    assert_document(&answer, expected);
    json_decref(answer.body);
    free(fixture->config.kernel);
}

/* The sum of what the fake says of each kind: 1 + 2 + ... + 8. */
static void assert_process_memory(const json_t *process)
{
    const json_t *kinds = json_object_get(process, "kinds");

    assert_int_equal(json_integer_value(json_object_get(process, "rss_bytes")), 36000);
    assert_int_equal(json_integer_value(json_object_get(process, "pss_bytes")), 3600);
    assert_int_equal(json_integer_value(json_object_get(process, "private_bytes")), 360);
    assert_int_equal(json_object_size(kinds), VM_USAGE_KINDS);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(kinds, "code"),
                                                        "private_bytes")),
                     10 * (VM_USAGE_CODE + 1));
}

static void statistics_add_counters_plan_stages_and_memory(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer;

    fixture->vm.counters = (struct vm_counters){.accel = "kvm",
                                                .counts_instructions = true,
                                                .retired_instructions = 6,
                                                .port_exits = 1,
                                                .mmio_exits = 2,
                                                .kicks = 3,
                                                .ioeventfd_notifications = 10,
                                                .irqfd_interrupts = 11,
                                                .resets = 4,
                                                .idle_looks = 12,
                                                .idle_zero_bytes = 13,
                                                .idle_common_bytes = 14,
                                                .console_bytes_out = 5,
                                                .console_bytes_in = UINT64_MAX,
                                                .fw_cfg_port_bytes = 7,
                                                .fw_cfg_dma_bytes = 8,
                                                .fw_cfg_dma_operations = 9,
                                                .translates = true,
                                                .translations = {.blocks = 21,
                                                                 .instructions = 22,
                                                                 .code_bytes = 23,
                                                                 .nanoseconds = 28,
                                                                 .evictions = 24,
                                                                 .tlb_fills = 25,
                                                                 .interpreted = 26,
                                                                 .lookups = 27}};
    fixture->vm.pause_reason = "disk a.img: the host is full";
    fixture->vm.disk_count = 1;
    fixture->vm.disks[0] = (struct vm_disk_status){.path = "a.img",
                                                   .size_bytes = 512,
                                                   .engine = "mmap",
                                                   .engine_reason = "chosen",
                                                   .queues = 2,
                                                   .in_flight = 3,
                                                   .held = 1};
    fixture->vm.disks[0].counters.requests[DISK_WRITE] = 15;
    fixture->vm.disks[0].counters.bytes[DISK_WRITE] = 16;
    fixture->vm.disks[0].counters.errors[DISK_WRITE] = 17;
    fixture->vm.plan.bytes = (struct boot_bytes){1000, 200, 30, 4};
    atomic_store(&fixture->vm.stages.at_ns[STAGE_CONFIG], 250000);
    atomic_store(&fixture->vm.stages.at_ns[STAGE_INIT_END], 2500000);
    answer = ask(fixture, "GET", "/stat", "");
    assert_int_equal(answer.status, 200);

    assert_process_memory(json_object_get(answer.body, "process"));
    assert_int_equal(json_object_del(answer.body, "process"), 0);
    assert_int_equal(json_object_set_new(answer.body, "uptime_ms", json_integer(7)), 0);
    assert_int_equal(json_object_set_new(answer.body, "pid", json_integer(8)), 0);
    assert_document(
        &answer,
        "{\"schema\":1,\"name\":\"web\",\"state\":\"running\",\"pid\":8,"
        "\"accel\":\"kvm\",\"uptime_ms\":7,\"kernel\":null,\"protocol\":\"pvh\","
        "\"memory_bytes\":67108864,\"vcpus\":2,"
        "\"pause_reason\":\"disk a.img: the host is full\","
        "\"counters\":{\"retired_instructions\":6,\"port_exits\":1,\"mmio_exits\":2,"
        "\"kicks\":3,\"ioeventfd_notifications\":10,\"irqfd_interrupts\":11,\"resets\":4,"
        "\"idle_looks\":12,\"idle_zero_bytes\":13,\"idle_common_bytes\":14,"
        "\"console_bytes_out\":5,\"console_bytes_in\":9223372036854775807,"
        "\"fw_cfg_port_bytes\":7,\"fw_cfg_dma_bytes\":8,"
        "\"fw_cfg_dma_operations\":9},"
        "\"translator\":{\"blocks\":21,\"instructions\":22,\"code_bytes\":23,"
        "\"translate_ns\":28,\"evictions\":24,\"tlb_fills\":25,\"interpreted\":26,"
        "\"lookups\":27},"
        "\"disks\":[{\"path\":\"a.img\",\"size_bytes\":512,\"read_only\":false,"
        "\"engine\":\"mmap\",\"engine_reason\":\"chosen\",\"queues\":2,"
        "\"in_flight\":3,\"held\":1,"
        "\"reads\":{\"requests\":0,\"bytes\":0,\"errors\":0},"
        "\"writes\":{\"requests\":15,\"bytes\":16,\"errors\":17},"
        "\"flushes\":{\"requests\":0,\"bytes\":0,\"errors\":0},"
        "\"discards\":{\"requests\":0,\"bytes\":0,\"errors\":0},"
        "\"write_zeroes\":{\"requests\":0,\"bytes\":0,\"errors\":0}}],"
        "\"balloon\":null,\"plan_bytes\":{\"mapped\":1000,\"copied\":200,\"zeroed\":30,"
        "\"generated\":4},"
        "\"stages_ms\":{\"config\":0.25,\"plan\":null,\"memory\":null,\"init_end\":2.5,"
        "\"start_kernel\":null,\"start_user\":null,\"end\":null}}");
    json_decref(answer.body);
}

static void statistics_have_the_balloon(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer;
    json_t *balloon;

    fixture->vm.has_balloon = true;
    fixture->vm.balloon = (struct virtio_balloon_status){
        .target_bytes = 1,
        .actual_bytes = 2,
        .inflated_bytes = 3,
        .reported_bytes = 4,
        .kept_bytes = 5,
        .poisoned_bytes = 6,
        .statistics_known = ~(1u << VIRTIO_BALLOON_MAJOR_FAULTS),
    };
    for (unsigned i = 0; i < VIRTIO_BALLOON_STATISTICS; i++)
        fixture->vm.balloon.statistics[i] = 10 + i;
    answer = ask(fixture, "GET", "/stat", "");
    balloon = json_incref(json_object_get(answer.body, "balloon"));
    json_decref(answer.body);
    answer.body = balloon;
    assert_document(&answer,
                    "{\"target_bytes\":1,\"actual_bytes\":2,\"inflated_bytes\":3,"
                    "\"reported_bytes\":4,\"kept_bytes\":5,\"poisoned_bytes\":6,"
                    "\"guest\":{\"swap_in_bytes\":10,\"swap_out_bytes\":11,"
                    "\"major_faults\":null,\"minor_faults\":13,\"free_bytes\":14,"
                    "\"total_bytes\":15,\"available_bytes\":16,\"cache_bytes\":17,"
                    "\"huge_page_allocations\":18,\"huge_page_failures\":19}}");
    json_decref(balloon);
}

static void a_path_that_is_no_utf8_does_not_break_the_document(void **state)
{
    struct fixture *fixture = *state;
    char path[] = "/k\xff\xc3rnel";
    struct api_answer answer;

    fixture->config.firmware = path;
    answer = ask(fixture, "GET", "/", "");
    assert_int_equal(answer.status, 200);
    assert_string_equal(json_string_value(json_object_get(answer.body, "kernel")),
                        "/k??rnel");
    json_decref(answer.body);
}

static void pause_and_resume_reach_the_vm(void **state)
{
    struct fixture *fixture = *state;

    assert_done(fixture, "PATCH", "/vm", "{\"state\":\"Paused\"}");
    assert_int_equal(fixture->vm.pauses, 1);
    assert_int_equal(fixture->vm.state, VM_PAUSED);
    assert_done(fixture, "PATCH", "/vm", " { \"state\" : \"Resumed\" } \n");
    assert_int_equal(fixture->vm.resumes, 1);
    assert_int_equal(fixture->vm.state, VM_RUNNING);
}

static void actions_reach_the_vm(void **state)
{
    struct fixture *fixture = *state;

    assert_done(fixture, "PUT", "/actions", "{\"action_type\":\"SendCtrlAltDel\"}");
    assert_int_equal(fixture->vm.presses, 1);
    assert_done(fixture, "PUT", "/actions", "{\"action_type\":\"Dump\"}");
    assert_int_equal(fixture->vm.dumps, 1);
    assert_done(fixture, "PUT", "/actions", "{\"action_type\":\"UpdateDisks\"}");
    assert_int_equal(fixture->vm.disk_updates, 1);
}

static void size_of_a_terminal_reaches_the_vm(void **state)
{
    static const char *const refused[] = {"",       "80",    "80x",      "x25",  "80x25x",
                                          "80 x25", "-1x25", "65536x25", "80x-1"};
    struct fixture *fixture = *state;

    assert_done(fixture, "PUT", "/console", "{\"size\":\"132x43\"}");
    assert_int_equal(fixture->vm.columns, 132);
    assert_int_equal(fixture->vm.rows, 43);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        char body[64];

        (void)snprintf(body, sizeof(body), "{\"size\":\"%s\"}", refused[i]);
        assert_fault(fixture, "PUT", "/console", body, 400,
                     "field \"size\" must be columns and rows, such as \"80x25\"");
    }
    assert_int_equal(fixture->vm.columns, 132);
}

static void amount_in_the_balloon_reaches_the_vm(void **state)
{
    static const char *const refused[] = {"-1", "9223372036854775807"};
    struct fixture *fixture = *state;

    assert_done(fixture, "PATCH", "/balloon", "{\"amount_mib\":3}");
    assert_int_equal(fixture->vm.balloon.target_bytes, 3 * MIB);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        char body[64];

        (void)snprintf(body, sizeof(body), "{\"amount_mib\":%s}", refused[i]);
        assert_fault(fixture, "PATCH", "/balloon", body, 400,
                     "field \"amount_mib\" must be MiB that the guest has");
    }
    assert_fault(fixture, "PATCH", "/balloon", "{\"amount_mib\":\"3\"}", 400,
                 "field \"amount_mib\" must be a whole number");
    assert_fault(fixture, "PATCH", "/balloon", "{\"amount_mib\":3.5}", 400,
                 "field \"amount_mib\" must be a whole number");
    fixture->vm.balloon_refusal = -ERANGE;
    assert_fault(fixture, "PATCH", "/balloon", "{\"amount_mib\":4}", 400,
                 "the fake does not want to");
    fixture->vm.balloon_refusal = -ENODEV;
    assert_fault(fixture, "PATCH", "/balloon", "{\"amount_mib\":4}", 409,
                 "the fake does not want to");
    assert_int_equal(fixture->vm.balloon.target_bytes, 3 * MIB);
}

static void stop_is_left_to_the_sender_of_the_answer(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer =
        ask(fixture, "PUT", "/actions", "{\"action_type\":\"Stop\"}");

    assert_int_equal(answer.status, 204);
    assert_null(answer.body);
    assert_true(answer.stop);
    assert_int_equal(fixture->vm.stops, 0);
    assert_false(ask(fixture, "PUT", "/actions", "{\"action_type\":\"Dump\"}").stop);
}

static void a_deaf_guest_is_said_to_be_deaf(void **state)
{
    struct fixture *fixture = *state;

    fixture->vm.ignores_power_button = true;
    assert_fault(fixture, "PUT", "/actions", "{\"action_type\":\"SendCtrlAltDel\"}", 409,
                 "the guest does not listen to the power button");
}

static void refuses_what_the_state_forbids(void **state)
{
    static const struct {
        enum vm_state state;
        const char *method;
        const char *path;
        const char *body;
        const char *message;
    } cases[] = {
        {VM_CREATED, "PATCH", "/vm", "{\"state\":\"Paused\"}",
         "the VM has not started yet"},
        {VM_CREATED, "PATCH", "/vm", "{\"state\":\"Resumed\"}",
         "the VM has not started yet"},
        {VM_ENDED, "PATCH", "/vm", "{\"state\":\"Paused\"}", "the VM has ended"},
        {VM_ENDED, "PATCH", "/vm", "{\"state\":\"Resumed\"}", "the VM has ended"},
        {VM_ENDED, "PUT", "/actions", "{\"action_type\":\"SendCtrlAltDel\"}",
         "the VM has ended"},
        {VM_ENDED, "PATCH", "/balloon", "{\"amount_mib\":1}", "the VM has ended"},
        {VM_PAUSED, "PUT", "/actions", "{\"action_type\":\"SendCtrlAltDel\"}",
         "the VM is paused: resume it first"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        fixture->vm.state = cases[i].state;
        assert_fault(fixture, cases[i].method, cases[i].path, cases[i].body, 409,
                     cases[i].message);
    }
    assert_int_equal(fixture->vm.pauses + fixture->vm.resumes + fixture->vm.presses, 0);
}

static void refuses_bodies_that_are_not_exactly_right(void **state)
{
    static const struct {
        const char *body;
        const char *message;
    } cases[] = {
        {"", "the body is empty: it must be an object with \"state\""},
        {"{", "the body is no JSON: line 1, column 1: string or '}' expected near end of "
              "file"},
        {"{\"state\":\"Paused\"} x",
         "the body is no JSON: line 1, column 20: end of file expected near 'x'"},
        {"{\"state\":\"Paused\",\"state\":\"Resumed\"}",
         "the body is no JSON: line 1, column 25: duplicate object key near '\"state\"'"},
        {"[]", "the body must be an object with \"state\""},
        {"{}", "field \"state\" is missing"},
        {"{\"state\":1}", "field \"state\" must be a string"},
        {"{\"state\":null}", "field \"state\" must be a string"},
        {"{\"state\":\"Paused\",\"force\":true}",
         "unknown field \"force\": there is only \"state\""},
        {"{\"state\":\"paused\"}",
         "unknown state \"paused\": it must be Paused or Resumed"},
        {"{\"state\":\"0123456789012345678901234567890123456789012345678901234567890123"
         "cut\"}",
         "unknown state "
         "\"0123456789012345678901234567890123456789012345678901234567890123\": it must "
         "be Paused or Resumed"},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_fault(fixture, "PATCH", "/vm", cases[i].body, 400, cases[i].message);
    assert_int_equal(fixture->vm.pauses, 0);
}

/* The 64th byte is in the middle of a character. */
static void a_quoted_word_that_is_cut_stays_a_string(void **state)
{
    struct fixture *fixture = *state;

    assert_fault(fixture, "PUT", "/actions",
                 "{\"action_type\":\"123456789012345678901234567890123456789012345678901"
                 "234567890123\xc3\xa4\"}",
                 400,
                 "unknown action_type "
                 "\"123456789012345678901234567890123456789012345678901234567890123?\": "
                 "it must be SendCtrlAltDel, Stop, Dump or UpdateDisks");
}

static void refuses_unknown_paths_and_methods(void **state)
{
    struct fixture *fixture = *state;
    struct api_answer answer;

    assert_fault(
        fixture, "GET", "/nothing", "", 404,
        "no such path: there are /, /stat, /vm, /console, /actions and /balloon");
    assert_fault(
        fixture, "GET", "", "", 404,
        "no such path: there are /, /stat, /vm, /console, /actions and /balloon");
    assert_fault(fixture, "PUT", "/vm", "{\"state\":\"Paused\"}", 405,
                 "/vm has PATCH only");
    assert_fault(fixture, "DELETE", "/", "", 405, "/ has GET only");
    answer = ask(fixture, "GET", "/actions", "");
    assert_string_equal(answer.allow, "PUT");
    json_decref(answer.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(identity_says_what_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(statistics_add_counters_plan_stages_and_memory,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(statistics_have_the_balloon, set_up, tear_down),
        cmocka_unit_test_setup_teardown(amount_in_the_balloon_reaches_the_vm, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_path_that_is_no_utf8_does_not_break_the_document, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pause_and_resume_reach_the_vm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(actions_reach_the_vm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(size_of_a_terminal_reaches_the_vm, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(stop_is_left_to_the_sender_of_the_answer, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_deaf_guest_is_said_to_be_deaf, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refuses_what_the_state_forbids, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refuses_bodies_that_are_not_exactly_right, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_quoted_word_that_is_cut_stays_a_string, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(refuses_unknown_paths_and_methods, set_up,
                                        tear_down),
    };

    clock_mark_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
