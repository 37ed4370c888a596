/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of the API: a table of method, path and handler, and the words that each
 * body may contain. What comes in is checked to the last field, so that a misspelt
 * request is refused rather than half understood.
 */
#include "api/routes_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

/* A word a client sent is repeated up to this length. */
#define QUOTE_LIMIT 64

/* A word that a body may contain, and what it does. */
struct word {
    const char *name;
    struct api_answer (*act)(const struct api_machine *machine);
};

typedef struct api_answer route_handler(const struct api_machine *machine,
                                        const struct api_question *question);

struct route {
    const char *method;
    const char *path;
    route_handler *handle;
};

static const struct api_answer no_content = {.status = 204};

/* ---- answers ---- */

static struct api_answer fault(int status, const char *format, ...) PRINTF_LIKE(2, 3);

static struct api_answer fault(int status, const char *format, ...)
{
    char message[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return (struct api_answer){
        .status = status,
        .body = json_pack("{s:o}", "fault_message", document_text(message))};
}

static struct api_answer document(json_t *body)
{
    return (struct api_answer){.status = body == NULL ? 500 : 200, .body = body};
}

/* ---- actions ---- */

/* True if the VM has vCPUs to act on; else the fault is in *answer. */
static bool is_started(const struct api_machine *machine, struct api_answer *answer)
{
    enum vm_state state = vm_state(machine->vm);

    *answer = no_content;
    if (state == VM_CREATED)
        *answer = fault(409, "the VM has not started yet");
    else if (state == VM_ENDED)
        *answer = fault(409, "the VM has ended");
    return answer->status == no_content.status;
}

static struct api_answer pause_vm(const struct api_machine *machine)
{
    struct api_answer answer;

    if (is_started(machine, &answer))
        vm_pause(machine->vm);
    return answer;
}

static struct api_answer resume_vm(const struct api_machine *machine)
{
    struct api_answer answer;

    if (is_started(machine, &answer))
        vm_resume(machine->vm);
    return answer;
}

static struct api_answer press_power_button(const struct api_machine *machine)
{
    struct api_answer answer;

    if (!is_started(machine, &answer))
        return answer;
    if (vm_state(machine->vm) == VM_PAUSED)
        return fault(409, "the VM is paused: resume it first");
    if (!vm_power_button(machine->vm))
        return fault(409, "the guest does not listen to the power button");
    return answer;
}

/* Ends the process soon after, so whoever sends the answer has to be first. */
static struct api_answer stop_vm(const struct api_machine *machine)
{
    (void)machine;
    return (struct api_answer){.status = no_content.status, .stop = true};
}

static struct api_answer dump_vm(const struct api_machine *machine)
{
    vm_dump(machine->vm);
    return no_content;
}

static struct api_answer update_disks(const struct api_machine *machine)
{
    struct api_answer answer;

    if (is_started(machine, &answer))
        vm_update_disks(machine->vm);
    return answer;
}

/* ---- bodies ---- */

/* Parses a body {"FIELD": VALUE} and nothing else, with a value of that type, a string or
 * an integer. On failure returns NULL, and the fault in *answer; else the caller releases
 * what is returned. */
static json_t *parse_body(const struct api_question *question, const char *field,
                          json_type type, struct api_answer *answer)
{
    json_error_t error;
    json_t *body;
    const char *key;
    json_t *value;

    if (question->body_bytes == 0) {
        *answer =
            fault(400, "the body is empty: it must be an object with \"%s\"", field);
        return NULL;
    }
    body =
        json_loadb(question->body, question->body_bytes, JSON_REJECT_DUPLICATES, &error);
    if (body == NULL) {
        *answer = fault(400, "the body is no JSON: line %d, column %d: %s", error.line,
                        error.column, error.text);
        return NULL;
    }
    if (!json_is_object(body)) {
        *answer = fault(400, "the body must be an object with \"%s\"", field);
        goto fail;
    }
    json_object_foreach(body, key, value)
    {
        if (strcmp(key, field) != 0) {
            *answer = fault(400, "unknown field \"%.*s\": there is only \"%s\"",
                            QUOTE_LIMIT, key, field);
            goto fail;
        }
    }
    value = json_object_get(body, field);
    if (value != NULL && json_typeof(value) == type)
        return body;
    if (value == NULL)
        *answer = fault(400, "field \"%s\" is missing", field);
    else
        *answer = fault(400, "field \"%s\" must be %s", field,
                        type == JSON_STRING ? "a string" : "a whole number");
fail:
    json_decref(body);
    return NULL;
}

/* "a, b or c" of the table's names. */
static void list_words(const struct word *words, size_t count, char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < count && used < size; i++) {
        const char *glue = i == 0 ? "" : i + 1 == count ? " or " : ", ";

        used += (size_t)snprintf(text + used, size - used, "%s%s", glue, words[i].name);
    }
}

static struct api_answer act_on_word(const struct api_machine *machine,
                                     const struct api_question *question,
                                     const char *field, const struct word *words,
                                     size_t count)
{
    struct api_answer answer;
    json_t *body = parse_body(question, field, JSON_STRING, &answer);
    const char *given;
    char known[128];

    if (body == NULL)
        return answer;
    given = json_string_value(json_object_get(body, field));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(given, words[i].name) == 0) {
            json_decref(body);
            return words[i].act(machine);
        }
    }
    list_words(words, count, known, sizeof(known));
    answer = fault(400, "unknown %s \"%.*s\": it must be %s", field, QUOTE_LIMIT, given,
                   known);
    json_decref(body);
    return answer;
}

/* ---- routes ---- */

static struct api_answer get_identity(const struct api_machine *machine,
                                      const struct api_question *question)
{
    (void)question;
    return document(document_identity(machine));
}

static struct api_answer get_statistics(const struct api_machine *machine,
                                        const struct api_question *question)
{
    (void)question;
    return document(document_statistics(machine));
}

static struct api_answer patch_vm(const struct api_machine *machine,
                                  const struct api_question *question)
{
    static const struct word states[] = {
        {"Paused", pause_vm},
        {"Resumed", resume_vm},
    };

    return act_on_word(machine, question, "state", states, ARRAY_SIZE(states));
}

static struct api_answer put_actions(const struct api_machine *machine,
                                     const struct api_question *question)
{
    static const struct word actions[] = {
        {"SendCtrlAltDel", press_power_button},
        {"Stop", stop_vm},
        {"Dump", dump_vm},
        {"UpdateDisks", update_disks},
    };

    return act_on_word(machine, question, "action_type", actions, ARRAY_SIZE(actions));
}

/* A number up to the end of the digits. False: there are none, or it is too large. */
static bool parse_length(const char *text, char **end, uint16_t *length)
{
    unsigned long value = strtoul(text, end, 10);

    *length = (uint16_t)value;
    return isdigit((unsigned char)text[0]) && value <= UINT16_MAX;
}

static bool parse_size(const char *text, uint16_t *columns, uint16_t *rows)
{
    char *end;

    return parse_length(text, &end, columns) && *end == 'x' &&
           parse_length(end + 1, &end, rows) && *end == '\0';
}

/* The terminal of somebody who looks at the console: {"size": "COLUMNSxROWS"}. */
static struct api_answer put_console(const struct api_machine *machine,
                                     const struct api_question *question)
{
    struct api_answer answer = no_content;
    json_t *body = parse_body(question, "size", JSON_STRING, &answer);
    uint16_t columns, rows;

    if (body == NULL)
        return answer;
    if (!parse_size(json_string_value(json_object_get(body, "size")), &columns, &rows))
        answer = fault(400, "field \"size\" must be columns and rows, such as \"80x25\"");
    else
        vm_console_resize(machine->vm, columns, rows);
    json_decref(body);
    return answer;
}

static struct api_answer set_balloon(struct vm *vm, json_int_t amount_mib)
{
    struct error err = ERROR_NONE;

    if (amount_mib < 0 || (uint64_t)amount_mib > UINT64_MAX / MIB)
        return fault(400, "field \"amount_mib\" must be MiB that the guest has");
    if (vm_set_balloon(vm, (uint64_t)amount_mib * MIB, &err) < 0)
        return fault(err.code == -ERANGE ? 400 : 409, "%s", err.text);
    return no_content;
}

/* How much memory the guest shall do without: {"amount_mib": NUMBER}. */
static struct api_answer patch_balloon(const struct api_machine *machine,
                                       const struct api_question *question)
{
    struct api_answer answer;
    json_t *body = parse_body(question, "amount_mib", JSON_INTEGER, &answer);

    if (body == NULL)
        return answer;
    if (is_started(machine, &answer))
        answer = set_balloon(machine->vm,
                             json_integer_value(json_object_get(body, "amount_mib")));
    json_decref(body);
    return answer;
}

/* One method a path so far, so `Allow` is that method. */
static const struct route routes[] = {
    {"GET", "/", get_identity},       {"GET", "/stat", get_statistics},
    {"PATCH", "/vm", patch_vm},       {"PUT", "/console", put_console},
    {"PUT", "/actions", put_actions}, {"PATCH", "/balloon", patch_balloon},
};

struct api_answer api_answer(const struct api_machine *machine,
                             const struct api_question *question)
{
    for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
        const struct route *route = &routes[i];
        struct api_answer answer;

        if (strcmp(question->path, route->path) != 0)
            continue;
        if (strcmp(question->method, route->method) == 0)
            return route->handle(machine, question);
        answer = fault(405, "%s has %s only", route->path, route->method);
        answer.allow = route->method;
        return answer;
    }
    return fault(
        404, "no such path: there are /, /stat, /vm, /console, /actions and /balloon");
}
