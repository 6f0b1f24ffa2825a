/* wengert eval --suite: a pretrained model on a folder of tasks, one table of results.
 *
 *     suite/grammar/A.jsonl     pairs of sentences, for `wengert score --pairs'
 *     suite/rte/task.json       {"task": "classify", "train": "train.tsv", "eval": "dev.tsv",
 *                                "epochs": 3, "lr": 0.0001}
 *
 * Each task runs in a separate process, in its folder: `wengert score', or `wengert finetune'
 * with the settings of task.json and a checkpoint that is removed afterwards. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system.h"
#include "cli/cli.h"
#include "cli/output.h"

#define WHERE "suite"

typedef struct task {
    char *name, *folder;
    glob_t pairs;           /* of a task without settings */
    json_t *settings;       /* of finetune; NULL: pairs */
    const char *kind;       /* "classify", or "pairs" */
    const char *metrics;    /* the first one that the results have is reported */
    char metric[32];        /* the one that they had */
    double value, majority; /* of always guessing the commonest label; NaN: not known */
} task;

typedef struct suite {
    const wg__suite_options *options;
    task *tasks;
    int count;
    char scratch[4096]; /* a folder for the files of a run */
} suite;

static int fail_memory(void) {
    return wg_fail(WG_ERROR_MEMORY, WHERE, "there is no memory for the tasks");
}

static const char *objective_name(int index) {
    const wg_objective *objective = wg_objective_at(index);
    return objective ? objective->name : NULL;
}

/* Reads the task of a folder: its settings, or else its pairs. */
static int read_task(task *t) {
    char path[4096], suggestion[96];
    json_error_t error;
    snprintf(path, sizeof path, "%s/task.json", t->folder);
    if (access(path, F_OK) != 0) {
        snprintf(path, sizeof path, "%s/*.jsonl", t->folder);
        t->kind = "pairs";
        t->metrics = "accuracy";
        const int status = glob(path, 0, NULL, &t->pairs);
        if (status == GLOB_NOSPACE)
            return fail_memory();
        return status == 0 ? 0
                           : wg_fail(WG_ERROR_FORMAT, WHERE,
                                     "%s holds no task: neither task.json, which has the settings "
                                     "of `wengert finetune', nor pairs of sentences in *.jsonl",
                                     t->folder);
    }
    t->settings = json_load_file(path, 0, &error);
    const char *kind = json_string_value(json_object_get(t->settings, "task"));
    if (!t->settings)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s, line %d: %s", path, error.line, error.text);
    const wg_objective *objective = kind ? wg_objective_find(kind) : NULL;
    wg_error_clear();
    if (!objective || !objective->finetunes)
        return wg_fail(
            WG_ERROR_FORMAT, WHERE,
            "%s: \"task\" is %s%s%s; `wengert finetune --help' lists the tasks%s", path,
            kind ? "'" : "missing", kind ? kind : "", kind ? "'" : "",
            wg__cli_suggestion(suggestion, sizeof suggestion, kind ? kind : "", objective_name));
    const json_t *metric = json_object_get(t->settings, "metric");
    if (metric && !json_is_string(metric))
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: \"metric\" must be a text", path);
    t->kind = objective->name;
    t->metrics = metric ? json_string_value(metric) : objective->headline;
    return 0;
}

static int add_task(suite *s, const char *name) {
    struct stat file;
    char *folder;
    task *tasks = reallocarray(s->tasks, (size_t)s->count + 1, sizeof *tasks);
    if (!tasks || asprintf(&folder, "%s/%s", s->options->folder, name) < 0) {
        s->tasks = tasks ? tasks : s->tasks;
        return fail_memory();
    }
    s->tasks = tasks;
    if (stat(folder, &file) == 0 && !S_ISDIR(file.st_mode)) {
        free(folder);
        return 0;
    }
    task *t = &tasks[s->count++];
    *t = (task){.name = strdup(name), .folder = folder};
    return t->name ? read_task(t) : fail_memory();
}

/* The folders of the suite, in the order of their names. */
static int read_tasks(suite *s) {
    const char *path = s->options->folder;
    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0)
        return wg_fail(errno == ENOENT ? WG_ERROR_NOT_FOUND : WG_ERROR_IO, WHERE,
                       "cannot read %s: %s", path, strerror(errno));
    int status = 0;
    for (int i = 0; i < count; i++) {
        if (status == 0 && entries[i]->d_name[0] != '.')
            status = add_task(s, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (status == 0 && s->count == 0)
        status = wg_fail(WG_ERROR_FORMAT, WHERE,
                         "%s holds no tasks; each is a folder with task.json, or with pairs of "
                         "sentences in *.jsonl",
                         path);
    return status;
}

typedef char path_text[4096 + 258];

static const char *scratch_path(const suite *s, const char *name, path_text path) {
    snprintf(path, sizeof(path_text), "%s/%s", s->scratch, name);
    return path;
}

static void empty_scratch(const suite *s) {
    DIR *folder = opendir(s->scratch);
    path_text path;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(scratch_path(s, entry->d_name, path));
    if (folder)
        closedir(folder);
}

/* Words of a command, closed by NULL. */
typedef struct command {
    const char **words;
    int count;
    char threads[32], seed[32];
} command;

static void add_words(command *c, const char *first, const char *second) {
    c->words[c->count++] = first;
    if (second)
        c->words[c->count++] = second;
}

/* Runs the command in the task's folder, with its output in files, and parses the JSON that it
 * prints into *results. 1 if a signal stopped the suite; the process receives the same signal. */
static int run_command(const suite *s, const task *t, const command *c, json_t **results) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    path_text out, err;
    pid_t process;
    int status = 0;
    scratch_path(s, "out", out);
    scratch_path(s, "err", err);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, flags, S_IRUSR | S_IWUSR);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err, flags, S_IRUSR | S_IWUSR);
    posix_spawn_file_actions_addchdir_np(&actions, t->folder);
    int failure =
        posix_spawnp(&process, wg__own_path(), &actions, NULL, (char **)c->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    while (!failure && waitpid(process, &status, 0) < 0) {
        failure = errno == EINTR ? 0 : errno;
        if (!failure && wg__stop_signal)
            kill(process, wg__stop_signal);
    }
    if (failure)
        return wg_fail(WG_ERROR_IO, WHERE, "%s: its process does not run: %s", t->name,
                       strerror(failure));
    if (wg__stop_signal)
        return 1;
    *results = status == 0 ? json_load_file(out, 0, NULL) : NULL;
    if (*results)
        return 0;
    char line[2048], last[1024] = "no message"; /* the last error that the process wrote */
    FILE *file = fopen(err, "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "wengert", 7) == 0 && !strstr(line, ": note: "))
            snprintf(last, sizeof last, "%.*s", (int)strcspn(line, "\n"), line);
    if (file)
        fclose(file);
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s: %s", t->name, last);
}

/* Takes the first of t->metrics ("f1,accuracy") that the results have. */
static int choose_metric(task *t, const json_t *results) {
    for (const char *name = t->metrics; *name; name += strspn(name, ",")) {
        const size_t length = strcspn(name, ",");
        snprintf(t->metric, sizeof t->metric, "%.*s", (int)length, name);
        name += length;
        const json_t *value = json_object_get(results, t->metric);
        if (!json_is_number(value))
            continue;
        const json_t *majority = json_object_get(results, "majority");
        const bool known = json_is_number(majority) && strcmp(t->metric, "accuracy") == 0;
        t->value = json_number_value(value);
        t->majority = known ? json_number_value(majority) : NAN;
        return 0;
    }
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s: its results have no %s", t->name, t->metrics);
}

static int run_task(const suite *s, task *t) {
    enum { MOST_OPTIONS = 16 };
    path_text settings, checkpoint;
    json_t *results = NULL;
    command c = {.words = calloc(t->pairs.gl_pathc + MOST_OPTIONS, sizeof *c.words)};
    if (!c.words)
        return fail_memory();
    add_words(&c, "wengert", t->settings ? "finetune" : "score");
    add_words(&c, s->options->run, "--json");
    snprintf(c.threads, sizeof c.threads, "%d", s->options->threads);
    snprintf(c.seed, sizeof c.seed, "%lld", (long long)s->options->seed);
    if (s->options->threads)
        add_words(&c, "--threads", c.threads);
    if (t->settings && s->options->seed >= 0)
        add_words(&c, "--seed", c.seed);
    int status = 0;
    if (t->settings) {
        json_t *own = json_copy(t->settings); /* without the keys that only the suite reads */
        json_object_del(own, "task");
        json_object_del(own, "metric");
        scratch_path(s, "settings.json", settings);
        if (!own || json_dump_file(own, settings, 0) < 0)
            status = wg_fail(WG_ERROR_IO, WHERE, "cannot write %s: %s", settings, strerror(errno));
        json_decref(own);
        add_words(&c, "--task", t->kind);
        add_words(&c, "--settings", settings);
        add_words(&c, "--out", scratch_path(s, "run.h5", checkpoint));
    } else {
        add_words(&c, "--pairs", NULL);
        for (size_t i = 0; i < t->pairs.gl_pathc; i++)
            add_words(&c, strrchr(t->pairs.gl_pathv[i], '/') + 1, NULL);
    }
    if (status == 0)
        status = run_command(s, t, &c, &results);
    if (status == 0)
        status = choose_metric(t, results);
    json_decref(results);
    free(c.words);
    empty_scratch(s);
    return status;
}

/* Runs the tasks and prints their results and the mean of these. */
static int run_tasks(suite *s) {
    const bool json = s->options->json;
    json_t *tasks = json_array();
    int width = (int)strlen("mean"), status = 0;
    double sum = 0;
    for (int i = 0; i < s->count; i++)
        width = (int)strlen(s->tasks[i].name) > width ? (int)strlen(s->tasks[i].name) : width;
    if (!json)
        printf("%-*s  %-10s  %7s  commonest label\n", width, "task", "by", "result");
    for (int i = 0; i < s->count && (status = run_task(s, &s->tasks[i])) == 0; i++) {
        const task *t = &s->tasks[i];
        sum += t->value;
        json_array_append_new(tasks, json_pack("{s:s, s:s, s:s, s:f, s:o}", "name", t->name, "kind",
                                               t->kind, "metric", t->metric, "value", t->value,
                                               "majority", wg__json_number(t->majority)));
        if (json)
            continue;
        printf("%-*s  %-10s  %7.2f", width, t->name, t->metric, 100 * t->value);
        if (isfinite(t->majority))
            printf("  %7.2f", 100 * t->majority);
        putchar('\n');
        fflush(stdout);
    }
    if (status == 0 && json)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:f, s:O}", "mean", sum / s->count, "tasks", tasks));
    else if (status == 0)
        printf("%-*s  %-10s  %7.2f\n", width, "mean", "", 100 * sum / s->count);
    json_decref(tasks);
    return status;
}

int wg__suite_run(const wg__suite_options *options) {
    suite s = {.options = options};
    wg__listen_for_stop(); /* a task that runs is waited for, so that its files are removed */
    int status = read_tasks(&s);
    const char *temporary = getenv("TMPDIR");
    snprintf(s.scratch, sizeof s.scratch, "%s/wengert-suite.XXXXXX",
             temporary ? temporary : "/tmp");
    if (status == 0 && !mkdtemp(s.scratch)) {
        status = wg_fail(WG_ERROR_IO, WHERE, "cannot make %s: %s", s.scratch, strerror(errno));
        s.scratch[0] = '\0';
    } else if (status == 0) {
        status = run_tasks(&s);
        empty_scratch(&s);
        rmdir(s.scratch);
    }
    for (int i = 0; i < s.count; i++) {
        free(s.tasks[i].name);
        free(s.tasks[i].folder);
        json_decref(s.tasks[i].settings);
        globfree(&s.tasks[i].pairs);
    }
    free(s.tasks);
    return status;
}
