/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way a failure travels: a negative errno as return value for the program and one
 * sentence in a caller-owned struct for the person.
 *
 * The function that knows the reason sets the text ("cannot open: Permission denied");
 * each caller on the way up may put what it knows in front ("disk a.img: cannot open:
 * ..."). Only cli/ and api/ print it.
 */
#ifndef HUSK_BASE_ERROR_H
#define HUSK_BASE_ERROR_H

#define ERROR_TEXT_BYTES 1024

struct error {
    int code; /* negative errno; 0 while nothing is set */
    char text[ERROR_TEXT_BYTES];
};

#define ERROR_NONE ((struct error){.code = 0})

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

/* Sets the sentence unless one is already set (first setter wins). `code` is an errno,
 * either sign. Returns the negative errno that `err` then holds, so `return
 * error_set(...)` works. */
int error_set(struct error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Like error_set, with ": <strerror(code)>" behind the sentence. */
int error_set_errno(struct error *err, int code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Puts "<prefix>: " in front of what is set. Returns err->code. */
int error_prefix(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
