/* Settings: one typed table whose rows fill the members of a struct.
 *
 *     row       {"batch", WG_SETTING_INTEGER, offsetof(run, batch), .low = 1, .standard = "32",
 *                .help = "Sequences in a batch"}
 *
 *     struct    run.batch = 32
 *     JSON      {"batch": 32}             config.json, --settings FILE, /config of a checkpoint
 *     command   --batch 32                and its line of --help, of the man pages and of docs/
 *
 * Model configurations (their rows are the keys of published config.json files), the options of
 * objectives and the settings of a training run are such tables. Nothing else looks a value up by
 * its name.
 *
 * A value has an origin. Of two origins the stronger one rules, in whatever order they come:
 *
 *     standard  <  model  <  checkpoint  <  file  <  command                                  */
#ifndef WG_IO_SETTINGS_H
#define WG_IO_SETTINGS_H

#include <stddef.h>

#include "config.h"

/* The type of a member, and how its value is written. */
typedef enum wg_setting_kind {
    WG_SETTING_INTEGER, /* int64_t, low to high */
    WG_SETTING_NUMBER,  /* double, low to high */
    WG_SETTING_FLAG,    /* bool */
    WG_SETTING_CHOICE,  /* int of an enumeration, in text by the names that `choice` gives */
    WG_SETTING_TOKEN,   /* int64_t, an id of the vocabulary; with low -1 also -1, for none, which
                         * is null in JSON */
    WG_SETTING_TEXT,    /* const char *; NULL: none */
    WG_SETTING_FILE,    /* const char *, an absolute path; NULL: none */
    WG_SETTING_FILES,   /* wg_setting_list of paths; on the command line one more each time */
    WG_SETTING_NUMBERS, /* wg_setting_numbers; on the command line "3,1" */
    WG_SETTING_PAIRS,   /* wg_setting_list of "label=text"; in JSON {"label": "text"} */
    WG_SETTING_ONLY     /* no member: a published key whose `standard` is the one value that is
                         * known. Without one, the table's owner reads the key, and the row is there
                         * for the docs */
} wg_setting_kind;

typedef struct wg_setting_list {
    int64_t count;
    const char **items; /* owned by the struct, as texts are: wg__settings_clear */
} wg_setting_list;

typedef struct wg_setting_numbers {
    int64_t count;
    double *items; /* likewise */
} wg_setting_numbers;

typedef struct wg_setting {
    const char *name; /* "hidden_size", "masked-share" */
    wg_setting_kind kind;
    size_t offset;     /* of the member in the struct */
    double low, high;  /* both 0: any value of the type; infinite where only one side is bounded */
    bool above, below; /* the value must be above low, below high, and not equal to it */
    bool fixed;        /* cannot change when a run is resumed */
    bool unless_zero;  /* of an integer: written unless it is 0 */
    bool list;         /* JSON may have a list of integers, of which the first one is taken */
    const char *standard; /* the value when nothing is said, as JSON ("0.1", "\"gelu\"", "true");
                           * NULL: none, and the member is 0 or NULL */
    const char *derived;  /* instead: where the value comes from when nothing is said, as the docs
                           * say it ("4 `n_embd`"); the table's owner computes it */
    const char *(*choice)(int value); /* the names of a WG_SETTING_CHOICE, from 0; NULL beyond */
    const char *const *aliases;       /* other names that are read: each followed by the one that it
                                       * stands for, up to NULL; or NULL */
    const char *excludes;             /* the row of the same table that this one replaces */
    const char *heading;              /* of --help, above this row and those that follow it */
    const char *argument;             /* of the option in --help: "N", "FILE"; NULL: "VALUE" */
    const char *help;                 /* a line of --help and of docs/configurations.md */
} wg_setting;

/* A table of rows for one struct. */
typedef struct wg_setting_table {
    const char *where; /* its name in messages: "bert_config", "settings" */
    size_t size;       /* of the struct */
    int count;
    const wg_setting *rows;
} wg_setting_table;

/* The row of that name, or NULL. */
const wg_setting *wg__settings_find(const wg_setting_table *table, const char *name);

/* ---- A whole struct at once. Structs begin as zeros; texts and lists in them belong to them. ----
 */

/* Fills a struct with the standard value of each row; members without one become 0. The previous
 * members are not freed. -1 with [MEMORY] */
int wg__settings_standard(const wg_setting_table *table, void *values);

/* Frees the texts and lists of a struct, and makes them NULL. */
void wg__settings_clear(const wg_setting_table *table, void *values);

/* -1 with [FORMAT, listing them] unless the object has a key for each row that has neither a
 * standard value nor one that follows from other keys. */
int wg__settings_require(const wg_setting_table *table, wg_config *json);

/* Reads keys of a JSON object into a struct; a key that is not there, or null, leaves its member
 * alone, except that null makes a token that may be none none. -1 with [FORMAT for a value of
 * another type, ARGUMENT for a choice that there is not, and for a number out of its row's range;
 * MEMORY] */
int wg__settings_read(const wg_setting_table *table, wg_config *json, void *values);

/* Writes every row that has a member into a JSON object; texts and lists that are NULL are left
 * out. -1 with [MEMORY, FORMAT] */
int wg__settings_write(const wg_setting_table *table, const void *values, wg_config *json);

/* Checks each value against its row; `vocabulary` bounds the tokens. -1 with [ARGUMENT, naming the
 * key, its value and the rule] */
int wg__settings_check(const wg_setting_table *table, const void *values, int64_t vocabulary);

/* ---- For tables' owners ---- */

/* Refuses a value: "KEY is VALUE; it must be RULE". Returns -1 with [ARGUMENT] */
int wg__settings_refuse(const char *where, const char *key, double value, const char *rule);

/* The rows as the table of docs/configurations.md: key, value when left out, help. Freed with
 * wg_text_free. NULL with [MEMORY] */
char *wg__settings_page(const wg_setting_table *table);

#endif
