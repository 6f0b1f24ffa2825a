/* wengert plot: draws the histories of runs with gnuplot.
 *
 * The upper panel has the losses by step: of training, of evaluations, and the loss of predicting
 * by word frequency. The lower panel has the accuracies. With --metric there is a panel for each
 * metric that was named. With several runs, each has its colour. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "cli/options.h"
#include "cli/draw.h"

extern char **environ;

/* Points of a training curve, runs, and panels at most. */
enum { POINTS = 200, SMOOTH_POINTS = 800, MOST_RUNS = 32, MOST_METRICS = 8 };

typedef struct arguments {
    wg_setting_list runs, metrics; /* no metrics: losses and accuracies */
    int64_t smooth;                /* steps; 0: not asked for */
    int axes;                      /* of axes_name */
    const char *out;
} arguments;

/* The bits of logarithmic axes. */
enum { LOG_X = 1, LOG_Y = 2 };

static const char *axes_name(int index) {
    static const char *const names[] = {"none", "x", "y", "xy", NULL}; /* by the bits above */
    return names[index];
}

static const wg_setting options[] = {
    {"runs", WG_SETTING_TEXTS, WG__AT(runs), .word = true, .missing = "missing RUN.h5",
     .argument = "RUN.h5"},
    {"out", WG_SETTING_TEXT, WG__AT(out), .letter = 'o', .missing = "missing -o FILE",
     .argument = "FILE", .help = "The picture to write: .svg, .png or .pdf"},
    {"metric", WG_SETTING_TEXTS, WG__AT(metrics), .argument = "NAME",
     .help = "Draw this metric (loss, lr, grad_norm...; may be repeated, a panel each) instead of "
             "losses and accuracies"},
    {"smooth", WG_SETTING_INTEGER, WG__AT(smooth), .low = 1, .high = INT32_MAX, .argument = "STEPS",
     .help = "Draw training as the mean over the last STEPS steps"},
    {"log", WG_SETTING_CHOICE, WG__AT(axes), .choice = axes_name, .argument = "AXES",
     .help = "Logarithmic axes: x, y or xy"},
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

static void check(const void *values) {
    const arguments *a = values;
    if (!find_picture(a->out))
        wg__cli_misuse("--out is '%s'; it must end in .svg, .png or .pdf", a->out);
    if (a->metrics.count > MOST_METRICS)
        wg__cli_misuse("more than %d times --metric", MOST_METRICS);
    if (a->runs.count > MOST_RUNS)
        wg__cli_misuse("more than %d runs", MOST_RUNS);
}

typedef struct panel {
    const char *metric; /* one that was named; NULL: all of the kind */
    wg__panel_kind kind;
} panel;

typedef struct picture_plan {
    const arguments *arguments;
    wg__run_history *runs;
    int panel_count;
    panel panels[MOST_METRICS];
} picture_plan;

static bool shows(const panel *panel, const wg__run_history *run, const char *metric) {
    return panel->metric ? strcmp(metric, panel->metric) == 0
                         : wg__belongs(run, metric, panel->kind);
}

/* The index-th metric of a run that can be drawn, or NULL. */
static const char *metric_name(const void *context, int index) {
    const wg__run_history *run = context;
    const wg_history *histories[] = {&run->training, &run->evaluation};
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < histories[h]->column_count; i++) {
            const char *name = histories[h]->names[i];
            if (strcmp(name, "step") != 0 && strcmp(name, "count") != 0 &&
                !(h == 1 && wg_history_column(&run->training, name)) && index-- == 0)
                return name;
        }
    return NULL;
}

/* Fails for a metric that no run has. */
static int plan_panels(picture_plan *plan) {
    const arguments *a = plan->arguments;
    const wg__run_history *first = &plan->runs[0];
    bool accuracies = false;
    for (int i = 0; i < a->metrics.count; i++) {
        const char *metric = a->metrics.items[i];
        char names[512] = "", suggestion[96];
        bool has = false;
        for (int r = 0; r < a->runs.count; r++)
            for (int k = 0; metric_name(&plan->runs[r], k); k++)
                has |= strcmp(metric_name(&plan->runs[r], k), metric) == 0;
        for (int k = 0; metric_name(first, k); k++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", k ? ", " : "",
                     metric_name(first, k));
        if (!has)
            return wg__cli_fail(
                "%s has no metric '%s'; it has %s%s", first->path, metric, names,
                wg__suggestion(suggestion, sizeof suggestion, metric, metric_name, first));
        plan->panels[plan->panel_count++] = (panel){.metric = metric};
    }
    if (a->metrics.count > 0)
        return 0;
    for (int r = 0; r < a->runs.count; r++)
        accuracies = accuracies || wg__has_panel(&plan->runs[r], WG__PANEL_ACCURACIES);
    plan->panels[plan->panel_count++] = (panel){.kind = WG__PANEL_LOSSES};
    if (accuracies)
        plan->panels[plan->panel_count++] = (panel){.kind = WG__PANEL_ACCURACIES};
    return 0;
}

/* Writes gnuplot's data blocks $training_RUN_COLUMN or $evaluation_RUN_COLUMN. */
static void write_blocks(FILE *gnuplot, const char *kind, int run, const wg_history *history,
                         double smooth, int64_t most) {
    for (int column = 0; column < history->column_count; column++) {
        wg__curve curve = wg__curve_of(history, history->names[column], smooth, most);
        fprintf(gnuplot, "$%s_%d_%d << EOD\n", kind, run, column);
        for (int64_t i = 0; i < curve.count; i++)
            fprintf(gnuplot, "%.9g %.9g\n", curve.steps[i], curve.values[i]);
        fputs("EOD\n", gnuplot);
        free(curve.steps);
        free(curve.values);
    }
}

/* Control characters are replaced: gnuplot would take the text after a line break for a command. In
 * single quotes gnuplot has one escape, two quotes for a quote, and runs no backquotes. */
static void write_text(FILE *gnuplot, const char *text) {
    fputc('\'', gnuplot);
    for (const char *c = text; *c; c++) {
        if (*c == '\'')
            fputc('\'', gnuplot);
        fputc(iscntrl((unsigned char)*c) ? '?' : *c, gnuplot);
    }
    fputc('\'', gnuplot);
}

/* "mlm loss, training"; of several runs "RUN: mlm loss, training". */
static void write_title(FILE *gnuplot, const picture_plan *plan, int run, const char *metric,
                        const char *kind) {
    char name[128], title[64], text[256];
    const bool several = plan->arguments->runs.count > 1;
    wg__run_title(plan->runs[run].path, name, sizeof name);
    snprintf(text, sizeof text, "%s%s%s, %s", several ? name : "", several ? ": " : "",
             wg__metric_title(metric, title, sizeof title), kind);
    fputs(" title ", gnuplot);
    write_text(gnuplot, text);
}

/* The plot commands of a run in a panel: thin lines for training, marked lines for evaluations,
 * dashed lines for metrics that only evaluations have, which are baselines. With one run, each
 * metric has its colour; with several, each run. */
static void write_run(FILE *gnuplot, const picture_plan *plan, const panel *panel, int r,
                      const char **separator) {
    static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9",
                                         "#e69f00", "#a0522d", "#666666", "#8f3fbf", "#00a0a0"};
    enum { COLORS = sizeof colors / sizeof colors[0] };
    const bool several = plan->arguments->runs.count > 1;
    const wg__run_history *run = &plan->runs[r];
    const wg_history *training = &run->training, *evaluation = &run->evaluation;
    int drawn = 0;
    for (int i = 0; i < training->column_count; i++) {
        if (!shows(panel, run, training->names[i]))
            continue;
        const char *color = colors[(several ? r : drawn) % COLORS];
        const int dashes = several ? drawn % 4 + 1 : 1;
        fprintf(gnuplot, "%s$training_%d_%d with lines dt %d lw 1 lc rgb '%s'", *separator, r, i,
                dashes, color);
        write_title(gnuplot, plan, r, training->names[i], "training");
        *separator = ", ";
        for (int e = 0; e < evaluation->column_count; e++)
            if (strcmp(evaluation->names[e], training->names[i]) == 0) {
                fprintf(gnuplot,
                        ", $evaluation_%d_%d with linespoints dt %d lw 2 pt 7 ps 0.5 lc rgb '%s'",
                        r, e, dashes, color);
                write_title(gnuplot, plan, r, evaluation->names[e], "held out");
            }
        drawn++;
    }
    for (int e = 0; e < evaluation->column_count; e++) {
        if (!shows(panel, run, evaluation->names[e]) ||
            wg_history_column(training, evaluation->names[e]))
            continue;
        fprintf(gnuplot, "%s$evaluation_%d_%d with lines dt 2 lw 2 lc rgb '%s'", *separator, r, e,
                several ? colors[r % COLORS] : "#555555");
        write_title(gnuplot, plan, r, evaluation->names[e], "held out");
        *separator = ", ";
    }
}

static void write_script(FILE *gnuplot, const picture_plan *plan) {
    fprintf(gnuplot, "set terminal %s\n", find_picture(plan->arguments->out)->terminal);
    fputs("set grid lt 1 lc rgb '#dddddd'\nset border 3\nset tics nomirror\nset lmargin 9\n"
          "set key outside right top Left reverse samplen 2\nset xlabel 'step'\n",
          gnuplot);
    fprintf(gnuplot, "%s%s", plan->arguments->axes & LOG_X ? "set logscale x\n" : "",
            plan->arguments->axes & LOG_Y ? "set logscale y\n" : "");
    for (int r = 0; r < plan->arguments->runs.count; r++) {
        const double smooth = plan->arguments->smooth;
        write_blocks(gnuplot, "training", r, &plan->runs[r].training, smooth,
                     smooth > 0 ? SMOOTH_POINTS : POINTS);
        write_blocks(gnuplot, "evaluation", r, &plan->runs[r].evaluation, 0, INT32_MAX);
    }
    fprintf(gnuplot, "set multiplot layout %d,1\n", plan->panel_count);
    for (int i = 0; i < plan->panel_count; i++) {
        const panel *panel = &plan->panels[i];
        const char *separator = "plot ";
        const bool log_y = plan->arguments->axes & LOG_Y;
        char title[64];
        if (panel->metric) {
            fputs("set ylabel ", gnuplot);
            write_text(gnuplot, wg__metric_title(panel->metric, title, sizeof title));
            fputs("\nset yrange [*:*]\n", gnuplot);
        } else if (panel->kind == WG__PANEL_LOSSES) {
            fprintf(gnuplot, "set ylabel 'loss (nats)'\nset yrange [%s:*]\n", log_y ? "*" : "0");
        } else {
            fprintf(gnuplot, "set ylabel 'accuracy'\nset yrange [%s]\n", log_y ? "*:*" : "0:1");
        }
        for (int r = 0; r < plan->arguments->runs.count; r++)
            write_run(gnuplot, plan, panel, r, &separator);
        fputc('\n', gnuplot);
    }
    fputs("unset multiplot\n", gnuplot);
}

/* Draws into `path` by gnuplot, which reads the script from a pipe and writes to a descriptor: it
 * is given no path, since gnuplot runs a path that begins with "|" as a command. Returns the exit
 * code. */
static int draw(const char *path, const picture_plan *plan) {
    const int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output < 0)
        return wg__cli_fail("%s: %s", path, strerror(errno));
    int ends[2], status;
    if (pipe(ends) < 0) {
        close(output);
        return wg__cli_fail("gnuplot does not start: %s", strerror(errno));
    }
    char *command[] = {"gnuplot", NULL};
    pid_t process;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    const int failure = posix_spawnp(&process, command[0], &actions, NULL, command, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    close(output);
    FILE *gnuplot = failure ? NULL : fdopen(ends[1], "w");
    if (gnuplot) {
        signal(SIGPIPE, SIG_IGN); /* a failure of gnuplot shows in its exit code */
        write_script(gnuplot, plan);
        fclose(gnuplot);
    } else {
        close(ends[1]); /* gnuplot reads to the end of its script and leaves */
    }
    if (failure == ENOENT)
        return wg__cli_fail("gnuplot, which draws the picture, is not installed; on Debian: "
                            "apt-get install gnuplot-nox");
    if (failure)
        return wg__cli_fail("gnuplot does not start: %s", strerror(failure));
    waitpid(process, &status, 0);
    return status == 0 && gnuplot ? 0 : wg__cli_fail("gnuplot could not draw %s", path);
}

/* Draws beside the picture's place and renames it. */
static int read_and_plot(const arguments *a, wg__run_history *runs) {
    picture_plan plan = {.arguments = a, .runs = runs};
    char *path;
    for (int i = 0; i < a->runs.count; i++) {
        if (wg__run_history_read(&runs[i], a->runs.items[i]) < 0)
            return wg__cli_fail_pending();
        if (!wg__has_panel(&runs[i], WG__PANEL_LOSSES))
            return wg__cli_fail("%s: it has no training history", a->runs.items[i]);
    }
    int code = plan_panels(&plan);
    if (code)
        return code;
    if (asprintf(&path, "%s.%ld%s", a->out, (long)getpid(), strrchr(a->out, '.')) < 0)
        return wg__cli_fail("no memory for the name of a temporary file");
    code = draw(path, &plan);
    if (code == 0 && rename(path, a->out) < 0)
        code = wg__cli_fail("%s: %s", a->out, strerror(errno));
    if (code)
        unlink(path);
    free(path);
    return code;
}

int wg__verb_plot(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .parts = {WG__PART(options, a)},
        .check = check,
        .lines = "RUN.h5... -o FILE",
        .doc = "Draws the history of a run, or of several in one picture: losses and accuracies "
               "by step, in training and on held-out text, with gnuplot.\v"
               "    wengert plot a.h5 b.h5 --metric loss --metric lr --smooth 50 --log x -o "
               "both.png",
    };
    static wg__run_history runs[MOST_RUNS];
    wg__cli_read(&usage, argc, argv);
    const int code = read_and_plot(&a, runs);
    for (int i = 0; i < a.runs.count; i++) {
        wg_history_clear(&runs[i].training);
        wg_history_clear(&runs[i].evaluation);
    }
    return code;
}
