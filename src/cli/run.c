/* SPDX-License-Identifier: Apache-2.0 */
/* husk run: boots a guest, attaches the console, turns the outcome into an exit code. */
#include <errno.h>
#include <event2/event.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "config/config.h"
#include "vm/vm.h"

/* How long a guest has to react to the power button. */
#define POWER_OFF_SECONDS 5

struct run {
    struct vm_config config;
    struct loop *loop;
    struct console *console;
    struct instance *instance;
    struct vm *vm;
    struct api_server *server;
    struct terminal *terminal;
    struct signals signals;
    struct event *power_off_timer;
    int ending_signal; /* the one that asked for the end, 0: none */
    bool has_mark;
    regex_t mark;
};

/* ---- the console's keys ---------------------------------------------------------------
 */

static void print_counters(struct run *run)
{
    struct vm_counters counters;

    vm_counters(run->vm, &counters);
    log_line(LOG_ERROR,
             "%s: %s, accelerator %s, exits: port %lu, MMIO %lu, kicks %lu; resets %lu; "
             "console bytes: out %lu, in %lu",
             instance_name(run->instance), vm_state_name(vm_state(run->vm)),
             counters.accel, (unsigned long)counters.port_exits,
             (unsigned long)counters.mmio_exits, (unsigned long)counters.kicks,
             (unsigned long)counters.resets, (unsigned long)counters.console_bytes_out,
             (unsigned long)counters.console_bytes_in);
}

static void toggle_pause(struct run *run)
{
    if (vm_state(run->vm) == VM_PAUSED) {
        log_line(LOG_ERROR, "resumed"); /* before what the guest then says */
        vm_resume(run->vm);
    } else {
        vm_pause(run->vm);
        log_line(LOG_ERROR, "paused; Ctrl-A p resumes");
    }
}

static void on_key(void *context, char letter)
{
    struct run *run = context;

    switch (letter) {
    case 'x':
        vm_stop(run->vm, VM_END_STOPPED);
        return;
    case 'p':
        toggle_pause(run);
        return;
    case 's':
        print_counters(run);
        return;
    case 'b':
        vm_console_break(run->vm);
        return;
    case 'd':
        vm_dump(run->vm);
        return;
    default:
        log_line(LOG_ERROR, "Ctrl-A then: x quit, a a literal Ctrl-A, p pause or resume, "
                            "s counters, b serial break, d registers, h this help");
        return;
    }
}

static size_t on_input(void *context, const uint8_t *bytes, size_t size)
{
    struct run *run = context;

    return console_input(run->console, bytes, size);
}

static void on_resized(void *context, uint16_t columns, uint16_t rows)
{
    struct run *run = context;

    vm_console_resize(run->vm, columns, rows);
}

static const struct terminal_ops terminal_ops = {
    .input = on_input, .key = on_key, .resized = on_resized};

/* ---- signals
 * --------------------------------------------------------------------------- */

static void stop_now(struct run *run)
{
    vm_stop(run->vm, VM_END_STOPPED);
}

static void on_power_off_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    log_warn("the guest has not switched itself off within %d s and is stopped",
             POWER_OFF_SECONDS);
    stop_now(context);
}

/* The first is the power button, the second means it. */
static void on_ending_signal(struct run *run, int number)
{
    static const struct timeval patience = {.tv_sec = POWER_OFF_SECONDS};
    bool again = run->ending_signal != 0;

    run->ending_signal = number;
    if (again || vm_state(run->vm) != VM_RUNNING || !vm_power_button(run->vm)) {
        stop_now(run);
        return;
    }
    log_info("power button pressed; %d s until the guest is stopped", POWER_OFF_SECONDS);
    (void)event_add(run->power_off_timer, &patience);
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
    struct run *run = context;

    (void)what;
    if (number == SIGQUIT)
        vm_dump(run->vm);
    else
        on_ending_signal(run, (int)number);
}

static int watch_signals(struct run *run, struct error *err)
{
    run->power_off_timer =
        evtimer_new(loop_event_base(run->loop), on_power_off_timer, run);
    if (run->power_off_timer == NULL)
        return error_set(err, -ENOMEM, "out of memory for the main loop");
    return signals_watch(&run->signals, run->loop, on_signal, run, err);
}

/* ---- the boot mark
 * --------------------------------------------------------------------- */

static void on_line(void *context, const char *text)
{
    struct run *run = context;

    if (regexec(&run->mark, text, 0, NULL, 0) == 0)
        stages_mark(vm_stages(run->vm), STAGE_START_USER);
}

static int watch_mark(struct run *run, struct error *err)
{
    if (run->config.boot_mark == NULL)
        return 0;
    if (regcomp(&run->mark, run->config.boot_mark, REG_EXTENDED | REG_NOSUB) != 0)
        return error_set(err, -EINVAL, "--boot-mark: '%s' is no regular expression",
                         run->config.boot_mark);
    run->has_mark = true;
    return console_watch_lines(run->console, on_line, run, err);
}

/* ---- start and end
 * ----------------------------------------------------------------------- */

static void on_ended(void *context)
{
    struct run *run = context;

    loop_stop(run->loop);
}

static void on_paused(void *context, const char *reason)
{
    const struct run *run = context;

    log_warn("%s; the guest is paused. Mend that, then: husk resume %s", reason,
             instance_name(run->instance));
}

static void set_log_level(const struct vm_config *config)
{
    if (config->quiet)
        log_set_level(LOG_ERROR);
    else if (config->verbosity > 0)
        log_set_level(config->verbosity > 1 ? LOG_DEBUG : LOG_INFO);
}

/* Files may be pipes that give nothing: until they are open, and nothing is there yet
 * that would have to be removed, signals end husk at once. What the guest's start does
 * not wait for comes after vm_start. */
static int start(struct run *run, struct error *err)
{
    if (loop_create(&run->loop, err) < 0 ||
        console_create(STDOUT_FILENO, run->config.log_path, &run->console, err) < 0 ||
        vm_create(&run->config, run->loop, run->console, on_ended, run, &run->vm, err) <
            0 ||
        watch_signals(run, err) < 0 ||
        instance_create(run->config.name, &run->instance, err) < 0)
        return err->code;
    vm_on_pause(run->vm, on_paused, run);
    if (watch_mark(run, err) < 0 ||
        terminal_open(run->loop, &terminal_ops, run, &run->terminal, err) < 0 ||
        vm_start(run->vm, err) < 0)
        return err->code;
    if (terminal_is_raw(run->terminal) && !run->config.quiet)
        log_line(LOG_ERROR, "%s: Ctrl-A x quits, Ctrl-A h shows the other keys",
                 instance_name(run->instance));
    return api_server_create(run->loop, run->vm, run->console, &run->config,
                             run->instance, &run->server, err);
}

static int exit_code(const struct run *run, struct error *err)
{
    const struct vm_outcome *outcome = vm_outcome(run->vm);

    switch (outcome->end) {
    case VM_END_POWER_OFF:
        return EXIT_POWER_OFF;
    case VM_END_REBOOT:
        return EXIT_GUEST_REBOOTED;
    case VM_END_CRASHED:
        error_set(err, -EIO, "the guest crashed (triple fault); its registers are above");
        return EXIT_GUEST_CRASHED;
    case VM_END_DEBUG_EXIT:
        return (int)(((outcome->debug_exit_value << 1) | 1) & 0xff);
    case VM_END_STOPPED:
        return run->ending_signal != 0 ? EXIT_SIGNAL_BASE + run->ending_signal
                                       : EXIT_STOPPED;
    case VM_END_TIMEOUT:
        error_set(err, -ETIME, "stopped after --timeout %lu s",
                  (unsigned long)run->config.timeout_seconds);
        return EXIT_TIMED_OUT;
    case VM_END_NONE:
    case VM_END_FAILED:
        error_set(err, outcome->failure.code, "%s", outcome->failure.text);
        return EXIT_HOST_FAILURE;
    }
    return EXIT_HOST_FAILURE;
}

/* One line: when each stage was reached, and what the machine has counted until its end.
 */
static void report_json(const struct run *run)
{
    struct vm_counters counters;
    char instructions[24]; /* 20 digits */

    vm_counters(run->vm, &counters);
    (void)snprintf(instructions, sizeof(instructions), "%lu",
                   (unsigned long)counters.retired_instructions);
    (void)fprintf(stderr, "{\"schema\":1,\"stages_ms\":");
    stages_print_json(vm_stages(run->vm), stderr);
    (void)fprintf(stderr,
                  ",\"counters\":{\"retired_instructions\":%s,"
                  "\"port_exits\":%lu,\"mmio_exits\":%lu,"
                  "\"ioeventfd_notifications\":%lu,\"irqfd_interrupts\":%lu,"
                  "\"fw_cfg_port_bytes\":%lu,\"fw_cfg_dma_bytes\":%lu,"
                  "\"fw_cfg_dma_operations\":%lu}}\n",
                  counters.counts_instructions ? instructions : "null",
                  (unsigned long)counters.port_exits, (unsigned long)counters.mmio_exits,
                  (unsigned long)counters.ioeventfd_notifications,
                  (unsigned long)counters.irqfd_interrupts,
                  (unsigned long)counters.fw_cfg_port_bytes,
                  (unsigned long)counters.fw_cfg_dma_bytes,
                  (unsigned long)counters.fw_cfg_dma_operations);
}

static void report_stages(const struct run *run)
{
    switch (run->config.boot_timer) {
    case BOOT_TIMER_OFF:
        return;
    case BOOT_TIMER_TABLE:
        stages_print_table(vm_stages(run->vm), stderr);
        return;
    case BOOT_TIMER_JSON:
        report_json(run);
        return;
    }
}

static void finish(struct run *run)
{
    terminal_close(run->terminal);
    api_server_destroy(run->server);
    /* Its readers may still be taking the last output, with the boot mark in it; what
     * watches for the mark writes to the machine's stages. */
    console_close(run->console);
    if (run->vm != NULL)
        report_stages(run);
    vm_destroy(run->vm);
    console_destroy(run->console);
    instance_destroy(run->instance);
    signals_finish(&run->signals);
    if (run->power_off_timer != NULL)
        event_free(run->power_off_timer);
    loop_destroy(run->loop);
    if (run->has_mark)
        regfree(&run->mark);
    config_finish(&run->config);
}

static int run_guest(struct run *run, struct error *err)
{
    if (start(run, err) < 0)
        return err->code == -EADDRNOTAVAIL ? EXIT_USAGE : EXIT_HOST_FAILURE;
    if (loop_run(run->loop, err) < 0)
        return EXIT_HOST_FAILURE;
    if (vm_only_drew(run->vm))
        log_warn("the guest has printed nothing, but has drawn on a text screen (at "
                 "0xb8000); husk's machine has no display, only a serial console");
    return exit_code(run, err);
}

int cli_run(int argc, char **argv, struct error *err)
{
    struct run run = {.ending_signal = 0};
    int code = EXIT_USAGE;

    config_init(&run.config);
    if (config_parse(&run.config, argc, argv, NULL, NULL, err) == 0) {
        set_log_level(&run.config);
        code = run.config.dry_run ? cli_plan(argc, argv, err) : run_guest(&run, err);
    }
    finish(&run);
    return code;
}
