/* What stands behind each [MASK], says a pretrained BERT. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/filling.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "objectives/bert_pretraining.h"

enum { USUAL_TOP = 5 };

typedef struct bert {
    wg_bert_for_pretraining *model;
    wg_tokenizer *tokenizer;
} bert;

static void *begin(const char *run) {
    bert *b = calloc(1, sizeof *b);
    if (b && wg_bert_load(run, &b->model, &b->tokenizer) == 0) {
        wg_set_grad_enabled(false);
        wg_module_train(&b->model->module, false);
        return b;
    }
    free(b);
    return NULL;
}

static void end(void *model) {
    bert *b = model;
    wg_tokenizer_free(b->tokenizer);
    wg_module_free(&b->model->module);
    free(b);
}

/* ---- The model's answer ---- */

/* [CLS] text [SEP], with [MASK] in the text read as the token. */
static int encode(const bert *b, const char *text, wg_token_list *list) {
    const wg_tokenizer *tokenizer = b->tokenizer;
    wg_encode_options read_masks = {.special_tokens = true};
    if (wg_token_list_append(list, wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS)) < 0 ||
        wg_tokenizer_encode(tokenizer, text, -1, &read_masks, list) < 0)
        return -1;
    return wg_token_list_append(list, wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR));
}

/* The places of [MASK], i64. */
static wg_tensor *find_masks(const bert *b, const wg_token_list *list) {
    int32_t mask = wg_tokenizer_special(b->tokenizer, WG_TOKEN_MASK);
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
static wg_tensor *predict(const bert *b, const wg_token_list *list, wg_tensor *positions) {
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, list->count), list->ids);
    wg_tensor *sequence = wg_bert_forward(b->model->bert, ids, NULL, NULL);
    return wg_softmax(wg_bert_mlm_logits(b->model, sequence, positions), -1);
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

static void tell_mask(const bert *b, int64_t top, float *row, int64_t vocabulary, json_t *masks) {
    json_t *tokens = masks ? json_array() : NULL;
    int64_t known = wg_tokenizer_size(b->tokenizer);
    if (known > vocabulary)
        known = vocabulary;
    for (int64_t i = 0; i < top && i < known; i++) {
        float probability;
        int32_t id = take_likeliest(row, known, &probability);
        const char *token = wg_tokenizer_token(b->tokenizer, id);
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

static int tell(const bert *b, const wg__filling *how, const char *text,
                const wg_tensor *probabilities) {
    int64_t masks = wg_tensor_size(probabilities, 0), vocabulary = wg_tensor_size(probabilities, 1);
    float *values = malloc((size_t)(masks * vocabulary) * sizeof *values);
    if (!values || wg_to_array(probabilities, values) < 0) {
        free(values);
        return -1;
    }
    json_t *list = how->texts ? json_array() : NULL;
    if (!list)
        printf("%s\n", text);
    for (int64_t i = 0; i < masks; i++)
        tell_mask(b, how->top ? how->top : USUAL_TOP, values + i * vocabulary, vocabulary, list);
    if (list)
        json_array_append_new(how->texts, json_pack("{s:s, s:o}", "text", text, "masks", list));
    free(values);
    return 0;
}

static int fill(void *model, const wg__filling *how, const char *text) {
    const bert *b = model;
    wg_token_list list = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    int result = encode(b, text, &list);
    if (result == 0) {
        wg_tensor *positions = find_masks(b, &list);
        if (wg_tensor_count(positions) == 0)
            result =
                wg_fail(WG_ERROR_ARGUMENT, "fill",
                        "there is no [MASK] in '%.200s'; write it where a word is wanted", text);
        else
            result = tell(b, how, text, predict(b, &list, positions));
    }
    wg_scope_end(&scope, NULL);
    wg_token_list_free(&list);
    return result;
}

const wg__filler wg__bert_filler = {
    .kind = &wg__bert_kind, .begin = begin, .end = end, .fill = fill};
