/* wengert fill: what stands behind each [MASK], says a pretrained BERT. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/model_kind.h"
#include "cli/results.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "train/bert_pretraining.h"

enum { KEY_TOP = WG__KEY_OWN };

typedef struct arguments {
    const char *run;
    char **texts; /* NULL: the lines of stdin */
    int text_count;
    int64_t top;
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"top", KEY_TOP, "N", 0, "Show the N likeliest tokens for each [MASK] (5)", 0},
    WG__OPTION_JSON,
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_TOP:
        a->top = wg__cli_integer(state, "top", text, 1, INT32_MAX);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->run)
            return ARGP_ERR_UNKNOWN; /* what follows comes as ARGP_KEY_ARGS */
        a->run = text;
        return 0;
    case ARGP_KEY_ARGS:
        a->texts = state->argv + state->next;
        a->text_count = state->argc - state->next;
        return 0;
    case ARGP_KEY_END:
        if (!a->run)
            argp_error(state, "RUN.h5 is missing: which model?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

typedef struct filler {
    wg_bert_for_pretraining *model;
    wg_tokenizer *tokenizer;
    int64_t top;
    json_t *texts; /* what was filled, for --json; NULL: it is printed */
} filler;

/* ---- The model's answer ---- */

/* [CLS] text [SEP], with [MASK] in the text read as the token. */
static int encode(const filler *f, const char *text, wg_token_list *list) {
    const wg_tokenizer *tokenizer = f->tokenizer;
    wg_encode_options read_masks = {.special_tokens = true};
    if (wg_token_list_append(list, wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS)) < 0 ||
        wg_tokenizer_encode(tokenizer, text, -1, &read_masks, list) < 0)
        return -1;
    return wg_token_list_append(list, wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR));
}

/* The places of [MASK], i64. */
static wg_tensor *find_masks(const filler *f, const wg_token_list *list) {
    int32_t mask = wg_tokenizer_special(f->tokenizer, WG_TOKEN_MASK);
    int64_t *places = malloc((size_t)list->count * sizeof *places);
    int64_t count = 0;
    for (int64_t i = 0; places && i < list->count; i++)
        if (list->ids[i] == mask)
            places[count++] = i;
    wg_tensor *positions = places ? wg_from_array(WG_I64, WG_DIMS(count), places) : NULL;
    free(places);
    return positions;
}

/* (N, V): the probabilities of every token at each of the N places. */
static wg_tensor *predict(const filler *f, const wg_token_list *list, wg_tensor *positions) {
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, list->count), list->ids);
    wg_tensor *sequence = wg_bert_forward(f->model->bert, ids, NULL, NULL);
    return wg_softmax(wg_bert_mlm_logits(f->model, sequence, positions), -1);
}

/* The likeliest token of a row that is not yet taken; its probability is set to -1. */
static int32_t take_likeliest(float *row, int64_t count, float *probability) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (row[i] > row[best])
            best = i;
    *probability = row[best];
    row[best] = -1;
    return (int32_t)best;
}

/* ---- Telling it ---- */

static void tell_mask(const filler *f, float *row, int64_t vocabulary, json_t *masks) {
    json_t *tokens = masks ? json_array() : NULL;
    int64_t known = wg_tokenizer_size(f->tokenizer);
    if (known > vocabulary)
        known = vocabulary;
    for (int64_t i = 0; i < f->top && i < known; i++) {
        float probability;
        int32_t id = take_likeliest(row, known, &probability);
        const char *token = wg_tokenizer_token(f->tokenizer, id);
        if (tokens)
            json_array_append_new(tokens, json_pack("{s:s, s:f}", "token", token, "probability",
                                                    (double)probability));
        else
            printf("%s%s %.3f", i ? "   " : "    ", token, (double)probability);
    }
    if (tokens)
        json_array_append_new(masks, tokens);
    else
        putchar('\n');
}

static int tell(const filler *f, const char *text, const wg_tensor *probabilities) {
    int64_t masks = wg_tensor_size(probabilities, 0), vocabulary = wg_tensor_size(probabilities, 1);
    float *values = malloc((size_t)(masks * vocabulary) * sizeof *values);
    if (!values || wg_to_array(probabilities, values) < 0) {
        free(values);
        return -1;
    }
    json_t *list = f->texts ? json_array() : NULL;
    if (!list)
        printf("%s\n", text);
    for (int64_t i = 0; i < masks; i++)
        tell_mask(f, values + i * vocabulary, vocabulary, list);
    if (list)
        json_array_append_new(f->texts, json_pack("{s:s, s:o}", "text", text, "masks", list));
    free(values);
    return 0;
}

static int fill(const filler *f, const char *text) {
    wg_token_list list = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    int result = encode(f, text, &list);
    if (result == 0) {
        wg_tensor *positions = find_masks(f, &list);
        if (wg_tensor_count(positions) == 0)
            result =
                wg_fail(WG_ERROR_ARGUMENT, "fill",
                        "there is no [MASK] in '%.200s'; write it where a word is wanted", text);
        else
            result = tell(f, text, predict(f, &list, positions));
    }
    wg_scope_end(&scope, NULL);
    wg_token_list_free(&list);
    return result;
}

/* ---- The texts ---- */

static int fill_lines(const filler *f) {
    char *line = NULL;
    size_t size = 0;
    ssize_t length;
    int result = 0;
    while (result == 0 && (length = getline(&line, &size, stdin)) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0])
            result = fill(f, line);
    }
    free(line);
    return result;
}

static int fill_all(const filler *f, const arguments *a) {
    wg_set_grad_enabled(false);
    wg_module_train(&f->model->module, false);
    if (!a->texts)
        return fill_lines(f);
    int result = 0;
    for (int i = 0; result == 0 && i < a->text_count; i++)
        result = fill(f, a->texts[i]);
    return result;
}

int wg__verb_fill(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 [\"A text with [MASK] in it\"...]",
        .doc = "Fills each [MASK] of a text with the tokens that a pretrained BERT holds for "
               "likeliest, and prints their probabilities.\v"
               "Without a text, every line of standard input is one.",
    };
    arguments a = {.top = 5};
    wg__cli_parse(&parser, argc, argv, &a);
    filler f = {.top = a.top};
    if (wg__model_kind_require(a.run, &wg__bert_kind, "fill") < 0 ||
        wg_bert_load(a.run, &f.model, &f.tokenizer) < 0)
        return wg__cli_fail_pending();
    f.texts = a.json ? json_array() : NULL;
    int result = fill_all(&f, &a);
    if (result == 0 && a.json)
        wg__print_json(json_pack("{s:O}", "texts", f.texts));
    json_decref(f.texts);
    wg_tokenizer_free(f.tokenizer);
    wg_module_free(&f.model->module);
    return result < 0 ? wg__cli_fail_pending() : 0;
}
