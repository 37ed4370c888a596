/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings as a table, and what the readers of arguments, environment and file share.
 *
 * A row gives a setting all its names: flag "memory" is --memory, the variable
 * HUSK_MEMORY and the key "memory" in the file's section "husk". Whatever lists settings
 * (help, completion, the tests of the man pages) walks the table.
 */
#ifndef HUSK_CONFIG_SCHEMA_PRIVATE_H
#define HUSK_CONFIG_SCHEMA_PRIVATE_H

#include "config/config.h"

/* The kind says how a text becomes a value, and the type of the field that holds it. */
enum config_kind {
    CONFIG_FLAG,     /* bool: yes or no */
    CONFIG_COUNT,    /* uint64_t: each further mention adds one, up to the maximum */
    CONFIG_NUMBER,   /* uint64_t */
    CONFIG_SIZE,     /* uint64_t in bytes; a plain number is MiB */
    CONFIG_DURATION, /* uint64_t in seconds */
    CONFIG_CHOICE,   /* char *, one of `choices` */
    CONFIG_ORDINAL,  /* an enum whose values are the positions in `choices` */
    CONFIG_STRING,   /* char * */
    CONFIG_WORDS,    /* char *: each further mention is joined with a blank */
    CONFIG_LIST,     /* char *[maximum] and a size_t */
    CONFIG_FILES, /* struct config_file[`maximum`] and a size_t; its words: `choices` */
    CONFIG_FILE,  /* no field: names the configuration file */
};

enum config_group {
    CONFIG_GROUP_BOOT,
    CONFIG_GROUP_MACHINE,
    CONFIG_GROUP_CONSOLE,
    CONFIG_GROUP_CONTROL,
    CONFIG_GROUP_COUNT,
};
extern const char *const config_group_names[CONFIG_GROUP_COUNT];

/* A word of Firecracker's file format and what it is called here. */
struct config_word {
    const char *word;
    const char *value;
};

struct config_setting {
    const char *flag; /* without dashes */
    char letter;      /* 'm' for -m; 0: none */
    enum config_kind kind;
    enum config_group group;
    const char *placeholder;    /* the value in help; NULL: takes none */
    const char *bare;           /* what the flag alone means; NULL: it needs a value */
    const char *default_text;   /* NULL: false, 0, or nothing */
    size_t offset;              /* of the field in struct vm_config */
    size_t count_offset;        /* CONFIG_LIST, CONFIG_FILES: of their size_t */
    uint64_t minimum;           /* numbers, both inclusive */
    uint64_t maximum;           /* CONFIG_LIST: how many strings there may be */
    uint64_t multiple_of;       /* 0: anything */
    const char *const *choices; /* NULL-terminated */
    const char *file_key;       /* "section.key" of Firecracker; NULL: none */
    const struct config_word *file_words; /* for file_key; ends with {NULL} */
    int (*check)(const char *text, struct error *err); /* each string; NULL: anything */
    const char *help; /* one sentence without capital and full stop */
};

/* Ends with a row whose flag is NULL. */
extern const struct config_setting config_settings[];

/* More than there are rows, for arrays of names. */
#define CONFIG_MAX_SETTINGS 64

/* Spellings that users of QEMU and kvmtool have in their fingers. */
struct config_alias {
    const char *spelling; /* with its dashes */
    const char *flag;     /* the setting; NULL: accepted without effect */
    const char *argument; /* the only word it takes here; NULL: any, if it takes one */
    const char *value;    /* what it means; NULL: its argument */
};

/* Ends with a row whose spelling is NULL. */
extern const struct config_alias config_aliases[];

/* NULL if there is none. `length` without a terminating NUL. */
const struct config_setting *config_setting_find(const char *flag, size_t length);

/* ---- value.c: one value ---- */

/* What a second value of the same source does to lists, words and counts. */
enum config_mention { CONFIG_FIRST_MENTION, CONFIG_FURTHER_MENTION };

/* Parses `text`, stores and checks it. The sentence does not name the setting. */
int config_setting_apply(struct vm_config *config, const struct config_setting *setting,
                         const char *text, enum config_mention mention,
                         struct error *err) MUST_CHECK;

/* Checks what the field holds now: range, choice, form. */
int config_setting_check(const struct vm_config *config,
                         const struct config_setting *setting,
                         struct error *err) MUST_CHECK;

void config_setting_free(struct vm_config *config, const struct config_setting *setting);

/* Foreign text for a message: one short line without control characters. */
struct config_quoted {
    char text[64];
};
struct config_quoted config_quote(const char *text, size_t length);
struct config_quoted config_quote_string(const char *text);

/* "auto, map or copy" into `text`. */
void config_join_choices(const char *const *choices, char *text, size_t capacity);

/* ---- files.c: values of CONFIG_FILES ---- */

int config_files_add(struct config_file *files, size_t *count,
                     const struct config_setting *setting, const char *text,
                     struct error *err) MUST_CHECK;
void config_files_clear(struct config_file *files, size_t *count);

/* ---- validate.c: checks of strings, for the table ---- */

int config_check_path(const char *text, struct error *err);
int config_check_name(const char *text, struct error *err);
int config_check_regex(const char *text, struct error *err);
int config_check_disk(const char *text, struct error *err); /* disk.c */

/* ---- args.c ---- */

/* One mention of a setting; all strings are borrowed from argv or static. */
struct config_argument {
    const struct config_setting *setting;
    const char *spelling; /* as the user wrote it */
    size_t spelling_length;
    const char *value;
};

struct config_arguments {
    struct config_argument *items; /* owned */
    size_t count;
    const char *image;  /* the positional argument; NULL: none */
    char *const *guest; /* behind "--"; borrowed */
    size_t guest_count;
    uint32_t extra_seen;
};

/* Finds out what argv says. `arguments` is to be finished, also after a failure. */
int config_arguments_read(struct config_arguments *arguments, int argc, char *const *argv,
                          const char *const *extra, struct error *err) MUST_CHECK;
int config_arguments_apply(struct vm_config *config,
                           const struct config_arguments *arguments,
                           struct error *err) MUST_CHECK;
void config_arguments_finish(struct config_arguments *arguments);

/* The last --config; NULL if there is none. */
const char *config_arguments_file(const struct config_arguments *arguments);

/* ---- environment.c ---- */

#define CONFIG_VARIABLE_BYTES 48

/* "HUSK_NO_CACHE" for "no-cache". */
void config_variable_name(const struct config_setting *setting,
                          char name[CONFIG_VARIABLE_BYTES]);
int config_environment_apply(struct vm_config *config, struct error *err) MUST_CHECK;

/* ---- file.c ---- */

/* Largest configuration file; what is longer is surely something else. */
#define CONFIG_FILE_LIMIT_BYTES (UINT64_C(1) << 20)

int config_file_load(struct vm_config *config, const char *path,
                     struct error *err) MUST_CHECK;

/* The same from memory. Sentences do not name the file. */
int config_file_parse(struct vm_config *config, const char *text, size_t size_bytes,
                      struct error *err) MUST_CHECK;

#endif
