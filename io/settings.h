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
 * verbs, benches and objectives and the settings of a training run are such tables. Nothing else
 * looks a value up by its name, or parses a number of the command line.
 *
 * A value has an origin. Of two origins the stronger one rules, in whatever order they come:
 *
 *     standard  <  model  <  checkpoint  <  file  <  command
 *
 * Whether a value was given is asked of its origin, so that a given 0 is 0. */
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
    WG_SETTING_BYTES,   /* int64_t, on the command line "5GB" or "200MiB" */
    WG_SETTING_TEXT,    /* const char *; NULL: none */
    WG_SETTING_FILE,    /* const char *, an absolute path; NULL: none */
    WG_SETTING_TEXTS,   /* wg_setting_list; on the command line one more each time */
    WG_SETTING_FILES,   /* the same of absolute paths */
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
    int role;          /* by which the table's owner treats rows of several tables alike; 0: none */
    bool list;         /* JSON may have a list of integers, of which the first one is taken */
    bool optional;     /* a number of a library's struct, in which 0 is not given: a given 0 is
                        * stored as WG_ZERO */
    bool word;         /* takes a word of the line that is no option; a list takes all others */
    char letter;       /* of the option: "-o" */
    const char *standard; /* the value when nothing is said, as JSON ("0.1", "\"gelu\"", "true");
                           * NULL: none, and the member is 0 or NULL */
    const char *derived;  /* instead: where the value comes from when nothing is said, as the docs
                           * say it ("4 `n_embd`"); the table's owner computes it */
    const char *missing;  /* says what is wrong with a line without this row */
    const char *(*choice)(int value); /* the names of a WG_SETTING_CHOICE, from 0; NULL beyond. Of
                                       * a text those that shells offer */
    const char *const *aliases;       /* other names that are read: each followed by the one that it
                                       * stands for, up to NULL; or NULL */
    const char *excludes;             /* the row that this one replaces */
    const char *heading;              /* of --help, above this row and those that follow it */
    const char *argument;             /* of the option in --help: "N", "FILE"; NULL: "VALUE" */
    const char *help; /* a line of --help and of docs/configurations.md; NULL: it is no option */
} wg_setting;

/* A table of rows for one struct. */
typedef struct wg_setting_table {
    const char *where; /* its name in messages: "bert_config"; NULL: rows of the command line alone,
                        * which files and notes do not have */
    size_t size;       /* of the struct */
    int count;
    const wg_setting *rows;
} wg_setting_table;

/* The row of that name, or NULL. */
WG__COMMAND const wg_setting *wg__settings_find(const wg_setting_table *table, const char *name);

/* ---- A whole struct at once. Structs begin as zeros; texts and lists in them belong to them. ----
 */

/* Fills a struct with the standard value of each row; members without one become 0. The previous
 * members are not freed. -1 with [MEMORY] */
int wg__settings_standard(const wg_setting_table *table, void *values);

/* Makes all members 0 or NULL, and frees texts and lists. */
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

/* ---- Several structs, and where each value is from ---- */

typedef enum wg_setting_origin {
    WG_SETTING_UNSET, /* no standard, and nobody said anything */
    WG_SETTING_STANDARD,
    WG_SETTING_RECORD, /* of a model or an objective, or decided by the run itself */
    WG_SETTING_CHECKPOINT,
    WG_SETTING_OF_FILE,
    WG_SETTING_COMMAND
} wg_setting_origin;

enum { WG__MOST_PARTS = 32, WG__MOST_ROWS = 64 };

typedef struct wg_setting_part {
    const wg_setting_table *table;
    void *values; /* NULL: the table waits for its struct, as those of objectives do */
    unsigned char origins[WG__MOST_ROWS];
} wg_setting_part;

/* {0} is none. Of rows with one name in several tables that of the first one with a struct is
 * taken. */
typedef struct wg_settings {
    int count;
    wg_setting_part parts[WG__MOST_PARTS];
    const char *user; /* what rows of tables that wait are not for: "classify"; for messages */
} wg_settings;

/* Adds a table, or gives a table that waits its struct, which begins as zeros and gets its standard
 * values. -1 with [MEMORY] */
WG__COMMAND int wg__settings_add(wg_settings *settings, const wg_setting_table *table,
                                 void *values);

/* Clears the structs. */
WG__COMMAND void wg__settings_end(wg_settings *settings);

/* Takes what an option of the command line says; `text` of a flag is NULL. -1 with [ARGUMENT:
 * "--NAME: what is wrong" behind the place "options"; MEMORY] */
WG__COMMAND int wg__settings_take_text(wg_settings *settings, const char *name, const char *text);

/* Takes the keys of an object that rows have; wg_config_check names the others. -1 with [as
 * wg__settings_read; FORMAT for null; ARGUMENT for a row that waits] */
WG__COMMAND int wg__settings_take_object(wg_settings *settings, wg_config *json,
                                         wg_setting_origin origin);

/* Where a member's value is from, and whether it is from more than a record. `member` points into
 * one of the structs. */
WG__COMMAND wg_setting_origin wg__settings_origin(const wg_settings *settings, const void *member);
WG__COMMAND bool wg__settings_given(const wg_settings *settings, const void *member);

/* Marks a member as set by the run itself, so that the note has it. */
WG__COMMAND void wg__settings_decide(wg_settings *settings, const void *member);

/* All values that are set. Freed with wg_config_free. NULL with [MEMORY] */
WG__COMMAND wg_config *wg__settings_to_json(const wg_settings *settings);

/* -1 with [STATE] if a row that is fixed was given another value than that of the note of `path`.
 */
WG__COMMAND int wg__settings_check_fixed(const wg_settings *settings, wg_config *note,
                                         const char *path);

/* ---- For tables' owners ---- */

/* Refuses a value: "KEY is VALUE; it must be RULE". Returns -1 with [ARGUMENT] */
int wg__settings_refuse(const char *where, const char *key, double value, const char *rule);

/* The numbers of a text, as "256x3072" has them; how many there are, or -1 (no error) if the text
 * is something else, one is not within low and high, or there are more than `most`. */
WG__COMMAND int64_t wg__settings_numbers(const char *text, const char *separators, double low,
                                         double high, int64_t most, double *numbers);

/* The rows as the table of docs/configurations.md: key, value when left out, help. Freed with
 * wg_text_free. NULL with [MEMORY] */
char *wg__settings_page(const wg_setting_table *table);

#endif
