/* wengert embed: a vector for each line of a text, to be written to a file, or compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"
#include "cli/output.h"
#include "cli/decoding.h"
#include "io/checkpoint/checkpoint.h"
#include "tensor/npy.h"

typedef struct arguments {
    const char *run, *text, *out, *similar;
    int64_t top, limit;
    wg_embed_options how;
    bool json;
} arguments;

/* Of wg_text_pooling. */
static const char *pooling_name(int index) {
    static const char *const names[] = {"mean", "cls", NULL};
    return names[index];
}

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true,
     .missing = "RUN.h5 is missing: which model?", .argument = "RUN.h5"},
    {"text", WG_SETTING_TEXT, WG__AT(text), .missing = "--text FILE is missing: which lines?",
     .argument = "FILE", .help = "Embed each line of this file that is not blank"},
    {"out", WG_SETTING_TEXT, WG__AT(out), .argument = "FILE",
     .help = "Write the vectors (lines, width) to this file: NAME.npy, or NAME.h5 with the dataset "
             "/embeddings"},
    {"similar", WG_SETTING_TEXT, WG__AT(similar), .argument = "TEXT",
     .help = "Print the lines by their cosine similarity to this text, the most similar first"},
    {"top", WG_SETTING_INTEGER, WG__AT(top), .low = 1, .high = INT32_MAX, .standard = "10",
     .argument = "N", .help = "Print N of them"},
    {"pooling", WG_SETTING_CHOICE, WG__AT(how.pooling), .choice = pooling_name,
     .standard = "\"mean\"", .argument = "NAME",
     .help = "mean of the hidden states of all tokens, or cls, the hidden state of [CLS] "
             "(decoders: of the last token)"},
    {"not-normalized", WG_SETTING_FLAG, WG__AT(how.not_normalized),
     .help = "Keep the length of each vector, instead of making it 1"},
    {"limit", WG_SETTING_INTEGER, WG__AT(limit), .low = 1, .high = INFINITY, .argument = "N",
     .help = "Take the first N lines (all)"},
    WG__ROW_JSON(arguments),
};

static void check(const void *values) {
    const arguments *a = values;
    if (!a->out && !a->similar)
        wg__cli_misuse("--out FILE or --similar TEXT is missing: what are the vectors for?");
    if (a->out && !wg__ends_with(a->out, ".npy") && !wg__ends_with(a->out, ".h5"))
        wg__cli_misuse("--out %s: the name must end in .npy or .h5", a->out);
}

typedef struct job {
    const arguments *arguments;
    wg__trained trained;
    wg__text_list texts; /* owned; the lines of --text, then the text of --similar */
    int64_t lines;       /* texts from --text */
    int64_t width;
    float *vectors; /* (count, width) */
} job;

static int add_text(void *context, const char *file, int64_t line, const char *text) {
    job *j = context;
    char *copy = strdup(text);
    if (copy && wg__text_list_append(&j->texts, copy, file, line) == 0)
        return 0;
    free(copy);
    return wg_fail(WG_ERROR_MEMORY, "embed", "there is no memory for the texts");
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

static int print_similar(const job *j) {
    const int64_t lines = j->lines, wanted = j->arguments->top;
    const float *y = j->vectors + lines * j->width;
    ranked *list = wg__cli_calloc((size_t)lines, sizeof *list);
    for (int64_t i = 0; i < lines; i++) {
        const float *x = j->vectors + i * j->width;
        double dot = 0, xx = 0, yy = 0;
        for (int64_t k = 0; k < j->width; k++) {
            dot += (double)x[k] * y[k];
            xx += (double)x[k] * x[k];
            yy += (double)y[k] * y[k];
        }
        list[i] = (ranked){xx > 0 && yy > 0 ? dot / sqrt(xx * yy) : 0, i};
    }
    qsort(list, (size_t)lines, sizeof *list, compare);
    json_t *similar = json_array();
    for (int64_t i = 0; i < (wanted < lines ? wanted : lines); i++) {
        const wg_text_source *text = &j->texts.items[list[i].number];
        if (j->arguments->json)
            json_array_append_new(similar,
                                  json_pack("{s:f, s:I, s:s}", "similarity", list[i].similarity,
                                            "line", (json_int_t)text->line, "text", text->text));
        else
            printf("%.4f\t%s\n", list[i].similarity, text->text);
    }
    if (j->arguments->json)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:s, s:O}", "text", j->arguments->similar, "similar", similar));
    json_decref(similar);
    free(list);
    return 0;
}

/* 0, 1 if a signal ended it, -1. */
static int run(job *j) {
    const arguments *a = j->arguments;
    const wg_objective *objective = wg__trained_objective(a->run, WG__USE_EMBED);
    int ready = !objective || wg__cli_read_lines("embed", a->text, a->limit, add_text, j) < 0 ||
                        (a->similar && add_text(j, "--similar", 1, a->similar) < 0) ||
                        wg__trained_load(&j->trained, objective, a->run) < 0
                    ? -1
                    : 0;
    j->lines = j->texts.count - (a->similar != NULL);
    if (ready == 0) {
        j->width = wg_model_sizes_of(&j->trained.model).width;
        const size_t row = (size_t)j->width * sizeof *j->vectors; /* of a model that is loaded */
        j->vectors = reallocarray(NULL, (size_t)j->texts.count, row);
        if (!j->vectors)
            ready = wg_fail(WG_ERROR_MEMORY, "embed", "there is no memory for the vectors");
    }
    if (wg_group_check(wg__cli_group, ready) < 0 || wg__cli_agree_on_file(a->run) < 0 ||
        wg__cli_agree_on_file(a->text) < 0)
        return -1;
    wg__listen_for_stop();
    const int status = wg_embed_texts(&j->trained.model, j->trained.tokenizer, &a->how,
                                      j->texts.count, j->texts.items, j->vectors);
    if (status || !wg__cli_leads())
        return status;
    const int64_t shape[] = {j->lines, j->width};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = a->out ? wg_from_array(WG_F32, 2, shape, j->vectors) : NULL;
    wg_checkpoint *file = NULL;
    if (x && wg__ends_with(a->out, ".npy")) {
        wg_npy_save(x, a->out);
    } else if (x && (file = wg_checkpoint_create(a->out))) {
        if (wg_checkpoint_put_tensor(file, "/embeddings", x) < 0)
            wg_checkpoint_abort(file);
        else
            wg_checkpoint_commit(file);
    }
    wg_scope_end(&scope, NULL);
    if (wg_error_pending())
        return -1;
    if (a->out)
        wg__cli_note("%lld vectors of %lld numbers are in %s", (long long)j->lines,
                     (long long)j->width, a->out);
    return a->similar ? print_similar(j) : 0;
}

int wg__verb_embed(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 --text FILE --out FILE.npy\nRUN.h5 --text FILE --similar TEXT",
        .doc = "Turns each line of a text into a vector by a pretrained encoder or decoder, and "
               "writes the vectors to a file or ranks the lines by their similarity to a text.",
        .parts = {WG__PART(options, a), WG__PART_THREADS},
        .check = check,
    };
    wg__cli_read(&usage, argc, argv);
    if (wg__cli_check_distinct(a.out, 2, (const char *const[]){a.run, a.text}) != 0)
        return EXIT_FAILURE;
    a.how.stop = &wg__stop_signal;
    a.how.group = wg__cli_group;
    job j = {.arguments = &a};
    const int status = wg__cli_agree(argc, argv) < 0 ? -1 : run(&j);
    for (int64_t i = 0; i < j.texts.count; i++)
        free((char *)j.texts.items[i].text);
    free(j.texts.items);
    free(j.vectors);
    wg__trained_clear(&j.trained);
    if (status < 0)
        return wg__cli_fail_pending();
    return status > 0 ? 128 + wg__stop_signal : 0;
}
