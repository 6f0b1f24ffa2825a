/* wengert score: how likely a pretrained model finds texts, and which of two it prefers. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "cli/output.h"
#include "cli/decoding.h"

typedef struct arguments {
    const char *run;
    wg_setting_list files; /* of pairs, or one text */
    const char *text;      /* NULL: pairs */
    int64_t limit;         /* 0: all */
    wg_score_options how;
    bool json;
} arguments;

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true,
     .missing = "RUN.h5 is missing: which model?", .argument = "RUN.h5"},
    {"pairs", WG_SETTING_TEXTS, WG__AT(files), .word = true, .excludes = "text",
     .argument = "FILE...",
     .help = "Compare the sentences of each pair: JSON lines with \"sentence_good\" and "
             "\"sentence_bad\", as BLiMP's files"},
    {"text", WG_SETTING_TEXT, WG__AT(text), .excludes = "pairs", .argument = "FILE",
     .help = "Score each line of this file"},
    {"limit", WG_SETTING_INTEGER, WG__AT(limit), .low = 1, .high = INFINITY, .argument = "N",
     .help = "Take the first N pairs or lines of a file (all)"},
    {"within-words", WG_SETTING_FLAG, WG__AT(how.within_words),
     .help = "masked-lm, mlm, hybrid: mask the later tokens of a word, too, when one of its tokens "
             "is predicted"},
    {"causal", WG_SETTING_FLAG, WG__AT(how.causal),
     .help =
         "hybrid: predict each token from the tokens before it, instead of masking each in turn"},
    {"batch-tokens", WG_SETTING_INTEGER, WG__AT(how.batch_tokens), .low = 1, .high = INT32_MAX,
     .argument = "N", .help = "Tokens in a batch, about (4096)"},
    WG__ROW_JSON(arguments),
};

static void check(const void *values) {
    const arguments *a = values;
    if (a->files.count == 0 && !a->text)
        wg__cli_misuse("--pairs FILE or --text FILE is missing: what shall be scored?");
}

/* The counts of a file, or of a phenomenon. A pair is right if its good sentence is strictly
 * likelier. */
typedef struct tally {
    int64_t pairs, right, ties;
} tally;

typedef struct job {
    const arguments *arguments;
    wg__trained trained;
    json_t *lines;       /* objects of --pairs, strings of --text: they own the texts */
    wg__text_list texts; /* pair i has texts 2 i and 2 i + 1 */
    int64_t *ends;       /* of each file, in lines */
    wg_score *scores;
    wg__progress progress;
} job;

static int fail_memory(void) {
    return wg_fail(WG_ERROR_MEMORY, "score", "there is no memory for the texts");
}

static int read_pair(void *context, const char *file, int64_t line, const char *text) {
    static const char *const keys[] = {"sentence_good", "sentence_bad"};
    job *j = context;
    json_error_t error;
    json_t *pair = json_loads(text, 0, &error);
    if (!json_is_object(pair)) {
        const char *why = pair ? "it is another JSON value" : error.text;
        wg_fail(WG_ERROR_FORMAT, "score", "%s, line %lld: it is no JSON object: %s", file,
                (long long)line, why);
        json_decref(pair);
        return -1;
    }
    int status = json_array_append_new(j->lines, pair) < 0 ? fail_memory() : 0;
    for (int i = 0; i < 2 && status == 0; i++) {
        const json_t *sentence = json_object_get(pair, keys[i]);
        status = json_is_string(sentence)
                     ? wg__text_list_append(&j->texts, json_string_value(sentence), file, line)
                     : wg_fail(WG_ERROR_FORMAT, "score", "%s, line %lld: it has no text \"%s\"",
                               file, (long long)line, keys[i]);
    }
    return status;
}

static int read_text(void *context, const char *file, int64_t line, const char *text) {
    job *j = context;
    json_t *string = json_string(text);
    if (!string)
        return wg_fail(WG_ERROR_FORMAT, "score", "%s, line %lld: it is not UTF-8", file,
                       (long long)line);
    if (json_array_append_new(j->lines, string) < 0)
        return fail_memory();
    return wg__text_list_append(&j->texts, json_string_value(string), file, line);
}

static void print_tally(const char *name, const tally *t) {
    printf("%-56s %5.1f %% of %lld pairs", name, 100 * ((double)t->right / (double)t->pairs),
           (long long)t->pairs);
    if (t->ties)
        printf(", %lld tie%s", (long long)t->ties, t->ties == 1 ? "" : "s");
    putchar('\n');
}

/* A text member of a pair: "UID"; NULL: the pair does not have it. */
static const char *member(const job *j, int64_t pair, const char *key) {
    return json_string_value(json_object_get(json_array_get(j->lines, (size_t)pair), key));
}

/* The pairs of a file, or of a phenomenon. */
typedef struct group {
    char name[256];
    const char *path, *field; /* of files; the field of the first pair, or NULL */
    tally tally;
} group;

typedef struct results {
    group *files, *phenomena; /* room for a phenomenon a pair */
    int64_t phenomenon_count;
    tally all;
    double mean; /* of the accuracies of the files */
} results;

/* The name of a file is the UID of its pairs if all have the same, else "adjunct_island" of
 * data/adjunct_island.jsonl. */
static void count_file(const job *j, results *r, int64_t number) {
    const int64_t first = number ? j->ends[number - 1] : 0, end = j->ends[number];
    group *file = &r->files[number];
    file->path = j->arguments->files.items[number];
    file->field = member(j, first, "field");
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    const char *uid = member(j, first, "UID");
    for (int64_t i = first + 1; uid && i < end; i++) {
        const char *other = member(j, i, "UID");
        if (!other || strcmp(other, uid) != 0)
            uid = NULL;
    }
    const int length = (int)strlen(name) - (wg__ends_with(name, ".jsonl") ? 6 : 0);
    snprintf(file->name, sizeof file->name, "%.*s", uid ? INT_MAX : length, uid ? uid : name);
    for (int64_t i = first; i < end; i++) {
        const double good = j->scores[2 * i].log_probability;
        const double bad = j->scores[2 * i + 1].log_probability;
        const char *phenomenon = member(j, i, "linguistics_term");
        group *of = r->phenomena, *end_of = of + r->phenomenon_count;
        while (phenomenon && of < end_of && strncmp(of->name, phenomenon, sizeof of->name - 1) != 0)
            of++;
        if (phenomenon && of == end_of) { /* a new one */
            snprintf(of->name, sizeof of->name, "%s", phenomenon);
            r->phenomenon_count++;
        }
        tally *const tallies[] = {&file->tally, &r->all, phenomenon ? &of->tally : NULL};
        for (int k = 0; k < 3 && tallies[k]; k++) {
            tallies[k]->pairs++;
            tallies[k]->right += good > bad;
            tallies[k]->ties += good == bad;
        }
    }
    r->mean +=
        (double)file->tally.right / (double)file->tally.pairs / (double)j->arguments->files.count;
}

static json_t *groups_json(const group *groups, int64_t count) {
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        const tally *t = &groups[i].tally;
        json_t *object = json_pack("{s:s, s:f, s:I, s:I}", "name", groups[i].name, "accuracy",
                                   (double)t->right / (double)t->pairs, "pairs",
                                   (json_int_t)t->pairs, "ties", (json_int_t)t->ties);
        if (groups[i].path)
            json_object_set_new(object, "file", json_string(groups[i].path));
        if (groups[i].field)
            json_object_set_new(object, "field", json_string(groups[i].field));
        json_array_append_new(list, object);
    }
    return list;
}

static void conclude_pairs(const job *j) {
    const int64_t files = j->arguments->files.count;
    results r = {.files = wg__cli_calloc((size_t)files, sizeof *r.files),
                 .phenomena = wg__cli_calloc(json_array_size(j->lines), sizeof *r.phenomena)};
    for (int64_t i = 0; i < files; i++)
        count_file(j, &r, i);
    if (j->arguments->json) {
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:f, s:I, s:I, s:o, s:o}", "accuracy", r.mean, "pairs",
                                 (json_int_t)r.all.pairs, "ties", (json_int_t)r.all.ties,
                                 "phenomena", groups_json(r.phenomena, r.phenomenon_count), "files",
                                 groups_json(r.files, files)));
    } else {
        for (int64_t i = 0; i < files; i++)
            print_tally(r.files[i].name, &r.files[i].tally);
        if (r.phenomenon_count > 0)
            printf("\nby phenomenon\n");
        for (int64_t i = 0; i < r.phenomenon_count; i++)
            print_tally(r.phenomena[i].name, &r.phenomena[i].tally);
        printf("\nmean over %lld file%s: %.2f %%; %lld pairs, %lld ties, which count as wrong\n",
               (long long)files, files == 1 ? "" : "s", 100 * r.mean, (long long)r.all.pairs,
               (long long)r.all.ties);
    }
    free(r.files);
    free(r.phenomena);
}

static void conclude_text(const job *j) {
    json_t *list = j->arguments->json ? json_array() : NULL;
    wg_score all = {0};
    for (int64_t i = 0; i < j->texts.count; i++) {
        const wg_score *score = &j->scores[i];
        all.log_probability += score->log_probability;
        all.tokens += score->tokens;
        if (list)
            json_array_append_new(
                list,
                json_pack("{s:I, s:o, s:I, s:s}", "line", (json_int_t)j->texts.items[i].line,
                          "log_probability", wg__json_number(score->log_probability), "tokens",
                          (json_int_t)score->tokens, "text", j->texts.items[i].text));
        else
            printf("%.4f\t%lld\t%s\n", score->log_probability, (long long)score->tokens,
                   j->texts.items[i].text);
    }
    const double perplexity = exp(-all.log_probability / (double)all.tokens);
    if (list)
        wg__print_json(JSON_INDENT(2), json_pack("{s:o, s:I, s:o, s:o}", "log_probability",
                                                 wg__json_number(all.log_probability), "tokens",
                                                 (json_int_t)all.tokens, "perplexity",
                                                 wg__json_number(perplexity), "texts", list));
    else
        wg__cli_note("%lld lines, %lld tokens: log-probability %.4f, perplexity %.4f per token",
                     (long long)j->texts.count, (long long)all.tokens, all.log_probability,
                     perplexity);
}

static void report(int64_t scored, int64_t count, void *context) {
    wg__progress *progress = context;
    const double now = wg__now(), pause = progress->is_terminal ? 0.1 : 10;
    if (now - progress->last_shown < pause)
        return;
    progress->last_shown = now;
    progress->line_open = progress->is_terminal;
    fprintf(stderr, "%sscored %lld of %lld texts%s", progress->is_terminal ? "\r" : "",
            (long long)scored, (long long)count, progress->is_terminal ? "" : "\n");
}

/* Model and texts. */
static int prepare(job *j) {
    const arguments *a = j->arguments;
    const wg_objective *objective = wg__trained_objective(a->run, WG__USE_SCORE);
    if (!objective)
        return -1;
    if (a->how.within_words && !objective->use.scores_within_words)
        return wg_fail(WG_ERROR_ARGUMENT, a->run,
                       "--within-words is for a model that predicts masked tokens; this is one of "
                       "%s",
                       objective->name);
    if (a->how.causal && !objective->use.scores_causally)
        return wg_fail(WG_ERROR_ARGUMENT, a->run,
                       "--causal is for a model of hybrid, which predicts masked and next tokens; "
                       "this is one of %s",
                       objective->name);
    j->lines = json_array();
    j->ends = wg__cli_calloc((size_t)a->files.count, sizeof *j->ends);
    int status = j->lines ? 0 : fail_memory();
    for (int64_t i = 0; status == 0 && i < a->files.count; i++) {
        status = wg__cli_read_lines("score", a->files.items[i], a->limit,
                                    a->text ? read_text : read_pair, j);
        j->ends[i] = (int64_t)json_array_size(j->lines);
    }
    if (status < 0 || wg__trained_load(&j->trained, objective, a->run) < 0)
        return -1;
    j->scores = calloc((size_t)j->texts.count, sizeof *j->scores);
    return j->scores ? 0 : fail_memory();
}

/* 0, 1 if a signal ended it, -1. */
static int run(job *j) {
    const arguments *a = j->arguments;
    if (wg_group_check(wg__cli_group, prepare(j)) < 0 ||
        wg__cli_agree_on_files(a->run, &a->files) < 0)
        return -1;
    wg_score_options how = a->how;
    j->progress = (wg__progress){.is_terminal = isatty(STDERR_FILENO), .last_shown = wg__now()};
    how.listener = wg__cli_leads() ? report : NULL;
    how.context = &j->progress;
    how.stop = &wg__stop_signal;
    how.group = wg__cli_group;
    wg__listen_for_stop();
    const wg__trained *t = &j->trained;
    const int status = wg_score_texts(t->objective, &t->model, t->tokenizer, &how, j->texts.count,
                                      j->texts.items, j->scores);
    wg__progress_end(&j->progress);
    if (status || !wg__cli_leads())
        return status;
    (a->text ? conclude_text : conclude_pairs)(j);
    return 0;
}

int wg__verb_score(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 --pairs FILE...\nRUN.h5 --text FILE",
        .doc = "Measures how likely a pretrained model finds texts: which of two sentences it "
               "prefers, or the log-probability of each line.\v"
               "The log-probability of a text is the sum over its tokens: of causal-lm given the "
               "tokens before; of masked-lm given all others, each token masked in turn "
               "(pseudo-log-likelihood); of blank-infilling each word in turn is a blank, and its "
               "tokens and its end are predicted from all remaining words. It is not divided by "
               "the length. A pair is right if its good sentence has the higher log-probability; "
               "ties are wrong. With --text, each line is printed after its log-probability and "
               "its number of predictions, separated by tabs.",
        .parts = {WG__PART(options, a), WG__PART_THREADS},
        .check = check,
    };
    wg__cli_read(&usage, argc, argv);
    if (a.text)
        a.files = (wg_setting_list){1, &a.text};
    job j = {.arguments = &a};
    const int status = wg__cli_agree(argc, argv) < 0 ? -1 : run(&j);
    json_decref(j.lines);
    free(j.texts.items);
    free(j.ends);
    free(j.scores);
    wg__trained_clear(&j.trained);
    if (status < 0)
        return wg__cli_fail_pending();
    return status > 0 ? 128 + wg__stop_signal : 0;
}
