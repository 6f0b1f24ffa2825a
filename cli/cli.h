/* Functions that the verbs share: listing, arguments and failures.
 *
 * A verb is one file cli/NAME.c with `int wg__verb_NAME(int argc, char **argv)`, a line below and a
 * line in the table of main.c. Results go to stdout, progress and notes to stderr; a verb returns
 * 0, or 1 after one clear line; wrong usage leaves with 2 (options.h). */
#ifndef WG_CLI_CLI_H
#define WG_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/api.h"
#include "base/group.h"
#include "io/config.h"

typedef struct wg__verb {
    const char *name;
    const char *purpose;               /* a line for `wengert --help`: lower case, no full stop */
    int (*run)(int argc, char **argv); /* argv[0] is "wengert NAME"; returns the exit code */
    bool shares; /* the ranks of mpirun share its work; otherwise rank 0 runs alone */
} wg__verb;

/* A command whose first argument names a verb. */
typedef struct wg__verb_table {
    const char *prefix;    /* of the verbs' argv[0]: "wengert" */
    const char *noun;      /* the kind of entry: "verb" */
    const char *title;     /* "Verbs" */
    const char *args_doc;  /* "VERB [ARGUMENT...]" */
    const char *doc;       /* the purpose of the command, for --help */
    const wg__verb *verbs; /* up to one without a name, in the order of --help */
} wg__verb_table;

/* The verb that (*argv)[1] names. Sets argc and argv to the arguments of its `run`. Does not return
 * on wrong usage, nor on --help. */
const wg__verb *wg__cli_verb(int *argc, char ***argv, const wg__verb_table *table);

enum { WG__EXIT_USAGE = 2 };

/* wg__suggestion of names by index alone: "; did you mean 'NAME'?" or "". */
const char *wg__cli_suggestion(char *text, size_t size, const char *typed,
                               const char *(*name)(int index));

/* All names by index, "bert, glm, t5", as far as they fit. */
const char *wg__cli_names(char *list, size_t size, const char *(*name)(int index));

/* Writes PATH.tmp and renames it, so that PATH is never incomplete. A PATH.tmp that a killed
 * process left is overwritten. Returns the exit code, 1 after a message. */
int wg__cli_write_file(const char *path, const void *bytes, size_t size);

/* Refuses an output that is the same file as one of the inputs, and would replace it. Names that
 * are NULL are skipped. Returns the exit code, 1 after a message. */
int wg__cli_check_distinct(const char *out, int64_t count, const char *const *inputs);

/* From now on a line `wengert --complete WORD...' is not run: see options.c. */
void wg__cli_begin_completion(int *argc, char ***argv);

/* While the arguments are read, a failed allocation of JSON ends the process with one line, since a
 * setting may be missing (main.c). Once wg__cli_read has set wg__cli_work_begun, there may be files
 * to remove: a failed allocation then only sets wg__cli_memory_lacked, and the verb fails at its
 * end. */
extern bool wg__cli_work_begun, wg__cli_memory_lacked;

/* Calls `take` for each line of a text file that is not blank, up to `limit` of them (0: all),
 * until it fails. -1 with [what `take` gives; NOT_FOUND, IO; FORMAT for a NUL, or a file without
 * lines], named by the verb, file and line. */
int wg__cli_read_lines(const char *verb, const char *path, int64_t limit,
                       int (*take)(void *context, const char *path, int64_t line, const char *text),
                       void *context);

/* Zeros; ends the process with one line if there is no memory. Freed with free. */
void *wg__cli_calloc(size_t count, size_t size);

/* Replaces each control character (ASCII, and U+0080 to U+009F) by `?'. A foreign file may have
 * control characters in its names, and a terminal would obey them. */
void wg__replace_controls(char *text);

/* Prints "wengert: MESSAGE" to stderr, without control characters, and returns 1, the exit code of
 * a failure. */
int wg__cli_fail(const char *format, ...) WG_PRINTF(1, 2);

/* The same with the message of the library's pending error, which it clears. */
int wg__cli_fail_pending(void);

/* ---- Several processes: only rank 0 prints. Notes of other ranks are dropped; failures are held
 * back until wg__cli_check. ---- */

/* Joins the processes that mpirun started. 0, or 1 after one clear line. */
int wg__cli_join(void);

/* The group; NULL before wg__cli_join. */
extern wg_group *wg__cli_group;

/* Sets the number of threads; 0: this rank's share of the machine's cores. */
void wg__cli_use_threads(int threads);

/* Whether this process prints: rank 0, or the only process. */
bool wg__cli_leads(void);

/* Begin and end of parsing. In between a rank may exit after --help or a usage message, which rank
 * 0 prints once; then all ranks exit. Collective. */
void wg__cli_begin_reading(void);
void wg__cli_end_reading(void);

/* Compares the command line among the ranks, and the contents of a file. Collective. -1 with
 * [STATE: names the rank that differs; NOT_FOUND, IO] */
int wg__cli_agree(int argc, char **argv);
int wg__cli_agree_on_file(const char *path);
int wg__cli_agree_on_files(const char *first, const wg_setting_list *others);

/* Combines the exit codes of the ranks. If none is 1, each rank keeps its code. Otherwise rank 0
 * prints the message of the lowest rank that failed, and all return a code above 0. Collective. */
int wg__cli_check(int code);

/* Leaves the group. */
void wg__cli_leave(void);

/* Prints "wengert: note: MESSAGE" to stderr. */
void wg__cli_note(const char *format, ...) WG_PRINTF(1, 2);

/* Warns of harmful faults in a training text and in a held-out text (NULL: none). Texts above
 * 1 GiB, token files and files that cannot be read twice are not checked. */
void wg__corpus_warn(int count, const char *const *paths, const char *held_out);

/* ---- The verbs ---- */

int wg__verb_average(int argc, char **argv);
int wg__verb_bench(int argc, char **argv);
int wg__verb_convert(int argc, char **argv);
int wg__verb_doctor(int argc, char **argv);
int wg__verb_embed(int argc, char **argv);
int wg__verb_corpus(int argc, char **argv);
int wg__verb_eval(int argc, char **argv);
int wg__verb_fill(int argc, char **argv);
int wg__verb_generate(int argc, char **argv);
int wg__verb_gradcheck(int argc, char **argv);
int wg__verb_info(int argc, char **argv);
int wg__verb_plan(int argc, char **argv);
int wg__verb_plot(int argc, char **argv);
int wg__verb_report(int argc, char **argv);
int wg__verb_score(int argc, char **argv);
int wg__verb_tokenizer(int argc, char **argv);
int wg__verb_train(int argc, char **argv); /* pretrain and finetune */
int wg__verb_translate(int argc, char **argv);

/* ---- A suite of tasks: what `wengert eval --suite' runs ---- */

typedef struct wg__suite_options {
    const char *run;    /* the pretrained checkpoint, an absolute path */
    const char *folder; /* of the tasks, a folder each */
    int threads;        /* 0: as the library finds it */
    int64_t seed;       /* of fine-tuning; -1: as each task says */
    bool json;
} wg__suite_options;

/* Runs all tasks and prints their results and the mean, on stdout. 0; 1 if a signal stopped it; -1
 * with [NOT_FOUND, IO for a folder that cannot be read; FORMAT for one that holds no task, or a
 * task.json that is none; ARGUMENT for a task that fails, with its message; MEMORY] */
int wg__suite_run(const wg__suite_options *options);

#endif
