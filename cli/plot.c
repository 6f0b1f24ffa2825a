/* wengert plot: draws the history of a run with gnuplot.
 *
 * The upper panel has the losses by step: of training (means over stretches of steps), of
 * evaluations, and the loss of predicting by word frequency. The lower panel has the accuracies. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "train/trainer.h"

extern char **environ;

/* The largest number of points of a training curve. */
enum { POINTS = 200 };

typedef struct arguments {
    const char *run;
    const char *out;
} arguments;

static const struct argp_option options[] = {
    {"out", 'o', "FILE", 0, "The picture to write: .svg, .png or .pdf", 0},
    {0},
};

/* The picture formats, and their gnuplot terminals. */
static const struct picture {
    const char *suffix;
    const char *terminal;
} pictures[] = {
    {".svg", "svg size 800,640 dynamic noenhanced font 'sans,13' background 'white'"},
    {".png", "pngcairo size 1000,800 noenhanced font 'sans,13'"},
    {".pdf", "pdfcairo size 8,6.4 noenhanced font 'sans,13'"},
};

static const struct picture *find_picture(const char *path) {
    const char *suffix = strrchr(path, '.');
    for (size_t i = 0; suffix && i < sizeof pictures / sizeof pictures[0]; i++)
        if (strcmp(suffix, pictures[i].suffix) == 0)
            return &pictures[i];
    return NULL;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case 'o':
        if (!find_picture(text))
            argp_error(state, "--out is '%s'; it must end in .svg, .png or .pdf", text);
        a->out = text;
        return 0;
    case ARGP_KEY_ARG:
        if (a->run)
            argp_error(state, "more than one RUN.h5");
        a->run = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->run)
            argp_error(state, "missing RUN.h5");
        if (!a->out)
            argp_error(state, "missing -o FILE");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The curves: one for each metric whose name ends in loss or accuracy ---- */

typedef struct run_history {
    wg_history training, evaluation;
} run_history;

typedef enum panel { LOSSES, ACCURACIES } panel;

static int read_history(const char *path, run_history *history) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    if (!file)
        return -1;
    int result = wg_history_get(&history->training, file, WG_HISTORY_TRAINING);
    if (result == 0)
        result = wg_history_get(&history->evaluation, file, WG_HISTORY_EVALUATION);
    wg_checkpoint_close(file);
    return result;
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* The total loss is drawn only if it is not the sum of other losses. */
static bool has_part_losses(const wg_history *history) {
    for (int i = 0; i < history->column_count; i++)
        if (ends_in(history->names[i], "_loss"))
            return true;
    return false;
}

static bool belongs(const wg_history *training, const char *metric, panel which) {
    if (which == ACCURACIES)
        return ends_in(metric, "accuracy");
    return has_part_losses(training) ? ends_in(metric, "_loss") : strcmp(metric, "loss") == 0;
}

static bool has_panel(const wg_history *training, panel which) {
    for (int i = 0; i < training->column_count; i++)
        if (belongs(training, training->names[i], which))
            return true;
    return false;
}

/* Writes a gnuplot data block named by kind and metric: the means of stretches of `width` rows. */
static void write_block(FILE *gnuplot, const char *kind, const wg_history *history,
                        const char *metric, int64_t width) {
    const double *steps = wg_history_column(history, "step");
    const double *values = wg_history_column(history, metric);
    fprintf(gnuplot, "$%s_%s << EOD\n", kind, metric);
    for (int64_t row = 0; row < history->row_count; row += width) {
        double sum = 0, step = 0;
        int64_t count = 0;
        for (int64_t i = row; i < row + width && i < history->row_count; i++) {
            if (!isfinite(values[i]))
                continue;
            sum += values[i];
            step += steps[i];
            count++;
        }
        if (count > 0)
            fprintf(gnuplot, "%.9g %.9g\n", step / (double)count, sum / (double)count);
    }
    fputs("EOD\n", gnuplot);
}

static void write_data(FILE *gnuplot, const run_history *history) {
    const wg_history *training = &history->training, *evaluation = &history->evaluation;
    int64_t width = (training->row_count + POINTS - 1) / POINTS;
    for (int i = 0; i < training->column_count; i++)
        write_block(gnuplot, "training", training, training->names[i], width);
    for (int i = 0; i < evaluation->column_count; i++)
        write_block(gnuplot, "evaluation", evaluation, evaluation->names[i], 1);
}

/* Writes a curve's title, with "mlm_loss" as "mlm loss". */
static void write_title(FILE *gnuplot, const char *metric, const char *kind) {
    fputs(" title '", gnuplot);
    for (const char *c = metric; *c; c++)
        fputc(*c == '_' ? ' ' : *c, gnuplot);
    fprintf(gnuplot, ", %s'", kind);
}

/* Writes the plot command of one panel: thin lines for training, marked lines for evaluations,
 * dashed lines for metrics that only evaluations have, which are baselines. */
static void write_panel(FILE *gnuplot, const run_history *history, panel which) {
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"};
    enum { COLORS = sizeof colors / sizeof colors[0] };
    const wg_history *training = &history->training, *evaluation = &history->evaluation;
    const char *separator = "plot ";
    int color = 0;
    for (int i = 0; i < training->column_count; i++) {
        const char *metric = training->names[i];
        if (!belongs(training, metric, which))
            continue;
        fprintf(gnuplot, "%s$training_%s with lines lw 1 lc rgb '%s'", separator, metric,
                colors[color % COLORS]);
        write_title(gnuplot, metric, "training");
        separator = ", ";
        if (wg_history_column(evaluation, metric)) {
            fprintf(gnuplot, ", $evaluation_%s with linespoints lw 2 pt 7 ps 0.5 lc rgb '%s'",
                    metric, colors[color % COLORS]);
            write_title(gnuplot, metric, "held out");
        }
        color++;
    }
    for (int i = 0; i < evaluation->column_count; i++) {
        const char *metric = evaluation->names[i];
        if (!belongs(training, metric, which) || wg_history_column(training, metric))
            continue;
        fprintf(gnuplot, "%s$evaluation_%s with lines dt 2 lw 2 lc rgb '#555555'", separator,
                metric);
        write_title(gnuplot, metric, "held out");
        separator = ", ";
    }
    fputc('\n', gnuplot);
}

/* Writes a text in gnuplot's single quotes. */
static void write_quoted(FILE *gnuplot, const char *text) {
    fputc('\'', gnuplot);
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputc('\'', gnuplot);
        fputc(*c, gnuplot);
    }
    fputc('\'', gnuplot);
}

static void write_script(FILE *gnuplot, const run_history *history, const char *path,
                         const struct picture *picture) {
    bool accuracies = has_panel(&history->training, ACCURACIES);
    fprintf(gnuplot, "set terminal %s\nset output ", picture->terminal);
    write_quoted(gnuplot, path);
    fputs("\nset grid lt 1 lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset lmargin 9\n"
          "set key outside right top Left reverse samplen 2\nset xlabel 'step'\n",
          gnuplot);
    write_data(gnuplot, history);
    fprintf(gnuplot, "set multiplot layout %d,1\n", accuracies ? 2 : 1);
    fputs("set ylabel 'loss (nats)'\nset yrange [0:*]\n", gnuplot);
    write_panel(gnuplot, history, LOSSES);
    if (accuracies) {
        fputs("set ylabel 'accuracy'\nset yrange [0:1]\n", gnuplot);
        write_panel(gnuplot, history, ACCURACIES);
    }
    fputs("unset multiplot\nunset output\n", gnuplot);
}

/* ---- gnuplot ---- */

/* Starts gnuplot reading from the pipe that *input becomes. Returns 0 or an errno. */
static int start_gnuplot(pid_t *process, FILE **input) {
    int ends[2];
    if (pipe(ends) < 0)
        return errno;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    char *command[] = {"gnuplot", NULL};
    int failure = posix_spawnp(process, command[0], &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (failure) {
        close(ends[1]);
        return failure;
    }
    *input = fdopen(ends[1], "w");
    return 0;
}

/* Draws into `path`; returns the exit code. */
static int draw(const run_history *history, const char *path, const struct picture *picture) {
    pid_t process;
    FILE *gnuplot = NULL;
    int failure = start_gnuplot(&process, &gnuplot);
    if (failure == ENOENT)
        return wg__cli_fail("gnuplot, which draws the picture, is not installed; on Debian: "
                            "apt-get install gnuplot-nox");
    if (failure)
        return wg__cli_fail("gnuplot does not start: %s", strerror(failure));
    signal(SIGPIPE, SIG_IGN); /* a failure of gnuplot shows in its exit code */
    write_script(gnuplot, history, path, picture);
    fclose(gnuplot);
    int status;
    waitpid(process, &status, 0);
    return status == 0 ? 0 : wg__cli_fail("gnuplot could not draw %s", path);
}

/* Reports an unwritable path in one line; gnuplot would print many. */
static int check_writable(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        return wg__cli_fail("%s: %s", path, strerror(errno));
    fclose(file);
    return 0;
}

/* Draws into a temporary file and renames it, so that no incomplete picture is left. */
static int plot(const arguments *a, const run_history *history) {
    const struct picture *picture = find_picture(a->out);
    size_t size = strlen(a->out) + 32;
    char *path = malloc(size);
    snprintf(path, size, "%s.%ld%s", a->out, (long)getpid(), picture->suffix);
    int code = check_writable(path);
    if (code == 0)
        code = draw(history, path, picture);
    if (code == 0 && rename(path, a->out) < 0)
        code = wg__cli_fail("%s: %s", a->out, strerror(errno));
    if (code)
        unlink(path);
    free(path);
    return code;
}

int wg__verb_plot(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 -o FILE",
        .doc = "Draws the history of a run: losses and accuracies by step, in training and on "
               "held-out text, with gnuplot.",
    };
    arguments a = {0};
    wg__cli_parse(&parser, argc, argv, &a);
    run_history history = {0};
    int code;
    if (read_history(a.run, &history) < 0)
        code = wg__cli_fail_pending();
    else if (!has_panel(&history.training, LOSSES))
        code = wg__cli_fail("%s has no training history", a.run);
    else
        code = plot(&a, &history);
    wg_history_clear(&history.training);
    wg_history_clear(&history.evaluation);
    return code;
}
