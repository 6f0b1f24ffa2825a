/* Settings: one typed table whose rows fill the members of a struct.
 *
 *     row       {"batch", WG_SETTING_INTEGER, offsetof(run, batch), .low = 1, .standard = "32",
 *                .help = "Sequences in a batch"}
 *
 *     struct    run.batch = 32
 *     JSON      {"batch": 32}             config.json, --settings FILE, /config of a checkpoint
 *     command   --batch 32                and its line of --help, of the man pages and of docs/
 *
 * There are tables for model configurations (their rows are the keys of published config.json
 * files), for the options of verbs, benches and objectives, and for the settings of a training run.
 * No other code looks up a value by its name, or parses a number of the command line.
 *
 * A value has an origin. The value of the strongest origin wins, in whatever order values are read:
 *
 *     standard  <  model  <  checkpoint  <  file  <  command
 *
 * The origin also says whether a value was given, so a given 0 is 0. */
#ifndef WG_IO_SETTINGS_H
#define WG_IO_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    WG_SETTING_ONLY     /* no member: a published key that must have the value `standard`. Without
                         * a standard, the table's owner reads the key, and the row is for the
                         * docs */
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
    int role;      /* for the table's owner: rows of several tables with the same role; 0: none */
    bool list;     /* JSON may have a list of integers; the first one is used */
    bool optional; /* 0 in the struct means not given: a given 0 is stored as WG_ZERO */
    bool word;     /* set by a word of the command line that is no option; a list gets all words
                    * that remain */
    char letter;   /* of the option: "-o" */
    const char *standard; /* the default, as JSON ("0.1", "\"gelu\"", "true"); NULL: none, and the
                           * member is 0 or NULL */
    const char *derived;  /* instead: how the table's owner computes the default, for the docs ("4
                           * `n_embd`") */
    const char *missing;  /* the message when a command line lacks this row */
    const char *(*choice)(int value); /* the names of a WG_SETTING_CHOICE, from 0; NULL beyond. For
                                       * a text: the names that shells complete */
    const char *const *aliases;       /* pairs of another name and the choice that it means, up to
                                       * NULL; or NULL */
    const char *excludes;             /* the row that this one replaces */
    const char *heading;              /* of --help, above this row */
    const char *argument;             /* of the option in --help: "N", "FILE"; NULL: "VALUE" */
    const char *help; /* a line of --help and of docs/configurations.md; NULL: it is no option */
} wg_setting;

/* A table of rows for one struct. */
typedef struct wg_setting_table {
    const char *where; /* its name in messages: "bert_config"; NULL: rows of the command line only,
                        * without keys in files and notes */
    size_t size;       /* of the struct */
    int count;
    const wg_setting *rows;
} wg_setting_table;

#endif
