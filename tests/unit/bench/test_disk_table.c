/* SPDX-License-Identifier: Apache-2.0 */
/* The table of `husk bench disk`: who is compared with whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "bench/benches_private.h"

static double sample[][1] = {{100}, {50}, {40}, {80}, {20}, {10}, {40}, {0.5}};

#define ROW(what, of, who, how, peer, more)                                              \
    {                                                                                    \
        .group = (what), .unit = (of), .program = (who), .way = (how), .accel = "a",     \
        .beside = "soft", .is_peer = (peer), .more_is_better = (more)                    \
    }

static struct bench_row rows[] = {
    ROW("read", "MiB/s", "host", BENCH_NATIVE_WAY, true, true),
    ROW("read", "MiB/s", "husk", "mmap", false, true),
    ROW("read", "MiB/s", "qemu", "threads", true, true),
    ROW("read", "MiB/s", "qemu", "aio", true, true),
    ROW("CPU", "us", "host", BENCH_NATIVE_WAY, true, false),
    ROW("CPU", "us", "husk", "mmap", false, false),
    ROW("CPU", "us", "qemu", "threads", true, false),
    ROW("exits", "each", "husk", "mmap", false, false),
};

static char *table_of(const struct bench_report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    assert_non_null(stream);
    bench_print_disk_table(report, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static struct bench_report make_report(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        rows[i].samples = sample[i];
        rows[i].sample_count = 1;
    }
    return (struct bench_report){.bench = "disk",
                                 .measure = "this and that",
                                 .runs = 1,
                                 .rows = rows,
                                 .row_count = ARRAY_SIZE(rows)};
}

static void husk_is_compared_with_the_peers_best_and_with_the_host(void **state)
{
    const struct bench_report report = make_report();
    char *text = table_of(&report);

    (void)state;
    assert_string_equal(
        text,
        "disk: this and that, medians of 1 runs\n"
        "\n"
        "accelerator soft\n"
        "\n"
        "                                         host       husk    qemu              \n"
        "                                       native       mmap    threads        aio\n"
        "read, MiB/s                             100.0       50.0       40.0       80.0\n"
        "CPU, us                                  20.0       10.0       40.0          -\n"
        "exits, each                                 -       0.50          -          -\n"
        "\n"
        "times as good as the peer's best         husk\n"
        "                                         mmap\n"
        "read, MiB/s                             0.62x\n"
        "CPU, us                                 4.00x\n"
        "\n"
        "times as good as on the host             husk\n"
        "                                         mmap\n"
        "read, MiB/s                             0.50x\n"
        "CPU, us                                 2.00x\n");
    free(text);
}

static void without_a_peer_it_is_compared_with_the_host_alone(void **state)
{
    struct bench_report report = make_report();
    char *text;

    (void)state;
    report.row_count = 2;
    text = table_of(&report);
    assert_null(strstr(text, "the peer's best"));
    assert_non_null(strstr(text, "times as good as on the host             husk\n"));
    free(text);
}

static void who_failed_says_why_and_an_interrupted_run_says_so(void **state)
{
    struct bench_report report = make_report();
    char *text;

    (void)state;
    rows[1].sample_count = rows[5].sample_count = rows[7].sample_count = 0;
    (void)snprintf(rows[1].failure, sizeof(rows[1].failure), "no kernel");
    report.interrupted = true;
    text = table_of(&report);
    rows[1].failure[0] = '\0';
    assert_non_null(strstr(text,
                           "read, MiB/s                             100.0          -"
                           "       40.0       80.0\n"));
    assert_non_null(strstr(text, "\nhusk mmap: no kernel\n"
                                 "interrupted before all of 1 runs\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(husk_is_compared_with_the_peers_best_and_with_the_host),
        cmocka_unit_test(without_a_peer_it_is_compared_with_the_host_alone),
        cmocka_unit_test(who_failed_says_why_and_an_interrupted_run_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
