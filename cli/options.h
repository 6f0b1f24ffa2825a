/* The command line of a verb: rows of settings (io/settings.h) that its words fill.
 *
 *     --batch 32, --batch=32     a row by its name, or by an unambiguous prefix of it
 *     -o FILE, -oFILE            by its letter
 *     RUN.h5                     the next row with `word`
 *
 * --help, completion by shells and the man pages show the same rows. A wrong line ends the process
 * with one message, a hint at --help and exit code 2. */
#ifndef WG_CLI_OPTIONS_H
#define WG_CLI_OPTIONS_H

#include <stdio.h>

#include "cli/cli.h"

/* The arguments of a command. */
typedef struct wg__usage {
    const char *lines; /* the arguments, one usage a line: "IN OUT\n..."; NULL: only options */
    const char *doc;   /* above the options and, behind "\v", below them */
    struct {
        const wg_setting_table *table;
        void *values;
    } parts[6];                        /* the verb's own first, up to one without a table */
    void (*check)(const void *values); /* looks at the first part; leaves by wg__cli_misuse */
    void (*list)(void);                /* printed below --help */
    /* Writes further defaults of a setting of a run, after " (DEFAULT"; `any`: one was written. */
    void (*print_more)(const wg_setting *row, FILE *stream, bool *any);
} wg__usage;

/* A member of the struct that a verb calls `arguments`. */
#define WG__AT(member) offsetof(arguments, member)

/* A table without a name in messages and notes, and its struct; `rows` is an array. */
#define WG__OPTIONS(rows, type)                                                                    \
    { NULL, sizeof(type), sizeof(rows) / sizeof(rows)[0], rows }
#define WG__PART(rows, struct_of_values)                                                           \
    { &(const wg_setting_table)WG__OPTIONS(rows, struct_of_values), &(struct_of_values) }

/* Rows that several verbs have. --threads is set when the line is read. */
#define WG__ROW_JSON(type)                                                                         \
    {                                                                                              \
        "json", WG_SETTING_FLAG, offsetof(type, json),                                             \
            .help = "Print the results as one JSON object"                                         \
    }
extern const wg_setting_table wg__threads_options;
extern int64_t wg__threads_given; /* 0: not given */
#define WG__PART_THREADS                                                                           \
    { &wg__threads_options, &wg__threads_given }

/* The names of --dtype by index. In training: f32, bf16. For a trained model: f32, then the names
 * of wg_quantization in its order. */
const char *wg__product_dtype_name(int index);
const char *wg__weights_dtype_name(int index);

/* Reads a line into the structs, which begin as zeros, and sets the threads. Does not return on
 * wrong usage (exit 2), nor on --help. */
void wg__cli_read(const wg__usage *usage, int argc, char **argv);

/* Whether a member of a struct was given to wg__cli_read. */
bool wg__cli_given(const void *member);

/* Leaves with "PROGRAM: MESSAGE" and a hint at --help. */
_Noreturn void wg__cli_misuse(const char *format, ...) WG_PRINTF(1, 2);

/* ---- The same in two steps, for verbs whose tables depend on their line ---- */

typedef struct wg__line {
    int count;
    struct {
        const wg_setting *row; /* NULL: a word that is no option */
        const char *text;
    } * items; /* in their order; freed by free */
} wg__line;

/* Splits a line by the rows of all tables, also of tables without values yet. */
wg__line wg__cli_split(const wg__usage *usage, wg_settings *settings, int argc, char **argv);

/* Assigns the items to the settings and frees them. Fails if a row with `missing` is not set. */
void wg__cli_assign(wg__line *line, wg_settings *settings);

/* Leaves with the pending error, which is wrong usage if it is one of an option. */
_Noreturn void wg__cli_leave_reading(void);

#endif
