/* wengert embed: a vector for each line of a text, to be written to a file, or compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/trained.h"
#include "io/checkpoint/checkpoint.h"
#include "tensor/npy.h"

enum {
    KEY_TEXT = WG__KEY_OWN,
    KEY_OUT,
    KEY_SIMILAR,
    KEY_TOP,
    KEY_POOLING,
    KEY_NOT_NORMALIZED,
    KEY_LIMIT,
    KEY_THREADS
};

typedef struct arguments {
    const char *run, *text, *out, *similar;
    int64_t top, limit;
    wg_embed_options how;
    int threads; /* 0: as the library finds it */
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"text", KEY_TEXT, "FILE", 0, "Embed each line of this file that is not blank", 0},
    {"out", KEY_OUT, "FILE", 0,
     "Write the vectors (lines, width) to this file: NAME.npy, or NAME.h5 with the dataset "
     "/embeddings",
     0},
    {"similar", KEY_SIMILAR, "TEXT", 0,
     "Print the lines by their cosine similarity to this text, the most similar first", 0},
    {"top", KEY_TOP, "N", 0, "Print N of them (10)", 0},
    {"pooling", KEY_POOLING, "NAME", 0,
     "mean, of the hidden states of all tokens, or cls, that of [CLS] (of decoders: of the last "
     "token) (mean)",
     0},
    {"not-normalized", KEY_NOT_NORMALIZED, NULL, 0,
     "Keep the length of each vector, instead of making it 1", 0},
    {"limit", KEY_LIMIT, "N", 0, "Take the first N lines (all)", 0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    WG__OPTION_JSON,
    {0},
};

static bool ends_with(const char *text, const char *ending) {
    const size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

static void parse_end(const struct argp_state *state, const arguments *a) {
    if (!a->run)
        argp_error(state, "RUN.h5 is missing: which model?");
    if (!a->text)
        argp_error(state, "--text FILE is missing: which lines?");
    if (!a->out && !a->similar)
        argp_error(state, "--out FILE or --similar TEXT is missing: what are the vectors for?");
    if (a->out && !ends_with(a->out, ".npy") && !ends_with(a->out, ".h5"))
        argp_error(state, "--out %s: the name must end in .npy or .h5", a->out);
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_TEXT:
        a->text = text;
        return 0;
    case KEY_OUT:
        a->out = text;
        return 0;
    case KEY_SIMILAR:
        a->similar = text;
        return 0;
    case KEY_TOP:
        a->top = wg__cli_integer(state, "top", text, 1, INT32_MAX);
        return 0;
    case KEY_POOLING:
        if (strcmp(text, "cls") == 0)
            a->how.pooling = WG_POOL_TOKEN;
        else if (strcmp(text, "mean") != 0)
            argp_error(state, "--pooling: there is no '%s'; mean and cls are there", text);
        return 0;
    case KEY_NOT_NORMALIZED:
        a->how.not_normalized = true;
        return 0;
    case KEY_LIMIT:
        a->limit = wg__cli_integer(state, "limit", text, 1, INT64_MAX);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->run)
            argp_error(state, "one RUN.h5 at a time");
        a->run = text;
        return 0;
    case ARGP_KEY_END:
        parse_end(state, a);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The lines ---- */

typedef struct job {
    const arguments *arguments;
    wg__trained trained;
    wg_text_source *texts; /* their texts are owned; with --similar its text is the last one */
    int64_t count, capacity;
    int64_t width;
    float *vectors; /* (count, width) */
} job;

static int fail_memory(void) {
    return wg_fail(WG_ERROR_MEMORY, "embed", "there is no memory for the texts");
}

static int add_text(void *context, const char *file, int64_t line, const char *text) {
    job *j = context;
    if (j->count == j->capacity) {
        const int64_t capacity = 2 * j->capacity + 64;
        wg_text_source *texts = reallocarray(j->texts, (size_t)capacity, sizeof *texts);
        if (!texts)
            return fail_memory();
        j->texts = texts;
        j->capacity = capacity;
    }
    char *copy = strdup(text);
    if (!copy)
        return fail_memory();
    j->texts[j->count++] = (wg_text_source){copy, file, line};
    /* cppcheck-suppress memleak ; the text owns its copy */
    return 0;
}

/* How many of the texts are lines. */
static int64_t line_count(const job *j) {
    return j->count - (j->arguments->similar != NULL);
}

/* ---- What is done with the vectors ---- */

static int write_vectors(const job *j, const char *path) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t shape[] = {line_count(j), j->width};
    wg_tensor *x = wg_from_array(WG_F32, 2, shape, j->vectors);
    int status = x ? 0 : -1;
    if (status == 0 && ends_with(path, ".npy")) {
        status = wg_npy_save(x, path);
    } else if (status == 0) {
        wg_checkpoint *file = wg_checkpoint_create(path);
        status = file ? wg_checkpoint_put_tensor(file, "/embeddings", x) : -1;
        if (file && status < 0)
            wg_checkpoint_abort(file);
        else if (file)
            status = wg_checkpoint_commit(file);
    }
    wg_scope_end(&scope, NULL);
    return status;
}

typedef struct ranked {
    double similarity;
    int64_t number;
} ranked;

static int compare(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

static double cosine(int64_t width, const float *x, const float *y) {
    double dot = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < width; i++) {
        dot += (double)x[i] * y[i];
        xx += (double)x[i] * x[i];
        yy += (double)y[i] * y[i];
    }
    return xx > 0 && yy > 0 ? dot / sqrt(xx * yy) : 0;
}

static json_t *ranked_json(const job *j, const ranked *list, int64_t count) {
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++) {
        const wg_text_source *text = &j->texts[list[i].number];
        json_array_append_new(array, json_pack("{s:f, s:I, s:s}", "similarity", list[i].similarity,
                                               "line", (json_int_t)text->line, "text", text->text));
    }
    return json_pack("{s:s, s:o}", "text", j->arguments->similar, "similar", array);
}

static int print_similar(const job *j) {
    enum { USUAL_TOP = 10 };
    const int64_t lines = line_count(j), wanted = j->arguments->top ? j->arguments->top : USUAL_TOP;
    ranked *list = calloc((size_t)lines, sizeof *list);
    if (!list)
        return fail_memory();
    for (int64_t i = 0; i < lines; i++)
        list[i] =
            (ranked){cosine(j->width, j->vectors + i * j->width, j->vectors + lines * j->width), i};
    qsort(list, (size_t)lines, sizeof *list, compare);
    const int64_t count = wanted < lines ? wanted : lines;
    if (j->arguments->json)
        wg__print_json(ranked_json(j, list, count));
    for (int64_t i = 0; !j->arguments->json && i < count; i++)
        printf("%.4f\t%s\n", list[i].similarity, j->texts[list[i].number].text);
    free(list);
    return 0;
}

/* ---- The verb ---- */

static bool gives_vectors(const wg_objective *objective) {
    return !objective->finetunes || objective == &wg_contrastive;
}

/* Model and texts. */
static int prepare(job *j) {
    const arguments *a = j->arguments;
    const wg_objective *objective = wg__trained_objective(a->run, "embed", gives_vectors);
    if (!objective || wg__cli_read_lines("embed", a->text, a->limit, add_text, j) < 0 ||
        (a->similar && add_text(j, "--similar", 1, a->similar) < 0) ||
        wg__trained_load(&j->trained, objective, a->run) < 0)
        return -1;
    j->width = wg_model_sizes_of(&j->trained.model).width;
    const size_t row = (size_t)j->width * sizeof *j->vectors; /* of a model that is loaded */
    j->vectors = reallocarray(NULL, (size_t)j->count, row);
    return j->vectors ? 0 : fail_memory();
}

/* 0, 1 if a signal ended it, -1. */
static int run(job *j) {
    const arguments *a = j->arguments;
    if (wg_group_check(wg__cli_group(), prepare(j)) < 0 || wg__cli_agree_on_file(a->run) < 0 ||
        wg__cli_agree_on_file(a->text) < 0)
        return -1;
    wg__listen_for_stop();
    const int status = wg_embed_texts(&j->trained.model, j->trained.tokenizer, &a->how, j->count,
                                      j->texts, j->vectors);
    if (status || !wg__cli_leads())
        return status;
    if (a->out && write_vectors(j, a->out) < 0)
        return -1;
    if (a->out)
        wg__cli_note("%lld vectors of %lld numbers are in %s", (long long)line_count(j),
                     (long long)j->width, a->out);
    return a->similar ? print_similar(j) : 0;
}

int wg__verb_embed(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --text FILE --out FILE.npy\nRUN.h5 --text FILE --similar TEXT",
        .doc = "Turns each line of a text into a vector by a pretrained encoder or decoder, and "
               "writes the vectors to a file or ranks the lines by their similarity to a text.",
    };
    arguments a = {.how.stop = wg__stop_signal()};
    wg__cli_parse(&parser, argc, argv, &a);
    if (wg__cli_check_apart(a.out, 2, (const char *const[]){a.run, a.text}) != 0)
        return EXIT_FAILURE;
    wg__cli_use_threads(a.threads);
    a.how.group = wg__cli_group();
    job j = {.arguments = &a};
    const int status = wg__cli_agree(argc, argv) < 0 ? -1 : run(&j);
    for (int64_t i = 0; i < j.count; i++)
        free((char *)j.texts[i].text);
    free(j.texts);
    free(j.vectors);
    wg__trained_clear(&j.trained);
    if (status < 0)
        return wg__cli_fail_pending();
    return status > 0 ? 128 + *wg__stop_signal() : 0;
}
