/* Texts in, translations out: see translator.h. */
#include "objectives/translator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/text_file.h"
#include "data/batches/translation_batch.h"
#include "tensor/internal.h"

#define WHERE "translate"

/* A text with its place among those given. */
typedef struct sentence {
    wg_token_list tokens; /* without the end */
    int64_t index;
} sentence;

typedef struct translator {
    wg_transformer *model;
    const wg_tokenizer *tokenizer;
    wg_translator_options options;
    wg_translation_tokens tokens;
    int64_t count;
    sentence *sentences;     /* (count) the shortest first */
    wg_token_list *rows;     /* (batch) borrowed from these */
    wg_beam_result *results; /* (batch) */
    char **translations;
} translator;

/* ---- In ---- */

static bool is_blank(const char *text) {
    for (int64_t space; *text; text += space)
        if ((space = wg__space_length(text, (int64_t)strlen(text))) == 0)
            return false;
    return true;
}

static int encode(const translator *t, const char *text, sentence *s) {
    const int64_t number = s->index + (t->options.first_number ? t->options.first_number : 1);
    const int64_t most = t->model->config.max_position_embeddings - 1;
    char name[32];
    snprintf(name, sizeof name, "text %lld", (long long)number);
    if (wg__utf8_check(text, (int64_t)strlen(text), name, WHERE) < 0)
        return -1;
    if (is_blank(text))
        return 0;
    if (wg_tokenizer_encode(t->tokenizer, text, -1, NULL, &s->tokens) < 0)
        return -1;
    if (s->tokens.count > most)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "text %lld has %lld tokens; the model takes %lld, so part it into sentences",
                       (long long)number, (long long)s->tokens.count, (long long)most);
    return 0;
}

static int compare(const void *left, const void *right) {
    const sentence *a = left, *b = right;
    if (a->tokens.count != b->tokens.count)
        return a->tokens.count < b->tokens.count ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static int encode_all(translator *t, const char *const *texts) {
    for (int64_t i = 0; i < t->count; i++) {
        t->sentences[i].index = i;
        if (encode(t, texts[i], &t->sentences[i]) < 0)
            return -1;
    }
    if (t->count > 0)
        qsort(t->sentences, (size_t)t->count, sizeof *t->sentences, compare);
    return 0;
}

/* ---- Out ---- */

/* Of a vocabulary that the model has larger, only what the tokenizer knows. */
static char *decode(const translator *t, wg_token_list *list) {
    const int64_t known = wg_tokenizer_size(t->tokenizer);
    int64_t count = 0;
    for (int64_t i = 0; i < list->count; i++)
        if (list->ids[i] < known)
            list->ids[count++] = list->ids[i];
    char *text = wg_tokenizer_decode(t->tokenizer, list->ids, count,
                                     &(wg_decode_options){.skip_special = true});
    for (char *c = text; c && *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    return text;
}

/* Translates the sentences `first` to `first` + `count` - 1. */
static int translate_batch(translator *t, int64_t first, int64_t count) {
    wg_tensor *source, *keep;
    for (int64_t i = 0; i < count; i++)
        t->rows[i] = t->sentences[first + i].tokens;
    if (wg_translation_sources(count, t->rows, &t->tokens, &source, &keep) < 0)
        return -1;
    int result = wg_transformer_translate(t->model, source, keep, &t->options.beam, t->results);
    for (int64_t i = 0; i < count; i++) {
        char *text = result < 0 ? NULL : decode(t, &t->results[i].tokens);
        t->translations[t->sentences[first + i].index] = text;
        result = text ? result : -1;
        wg_token_list_free(&t->results[i].tokens);
    }
    return result;
}

static int translate_all(translator *t) {
    const int64_t batch = t->options.batch;
    int64_t first = 0;
    int result = 0;
    for (; result == 0 && first < t->count && t->sentences[first].tokens.count == 0; first++) {
        t->translations[t->sentences[first].index] = decode(t, &t->sentences[first].tokens);
        result = wg_error_pending() ? -1 : 0;
    }
    for (; result == 0 && first < t->count; first += batch) {
        const int64_t left = t->count - first;
        wg_scope scope;
        wg_scope_begin(&scope);
        result = translate_batch(t, first, left < batch ? left : batch);
        wg_scope_end(&scope, NULL);
    }
    return result;
}

/* ---- All of it ---- */

static int begin(translator *t) {
    if (t->options.batch == 0)
        t->options.batch = 32;
    if (t->options.batch < 1 || t->options.batch > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "batches of %lld texts; wanted 1 or more",
                       (long long)t->options.batch);
    t->tokens = (wg_translation_tokens){
        .start = (int32_t)t->model->config.decoder_start_token_id,
        .end = (int32_t)t->model->config.eos_token_id,
        .pad = (int32_t)t->model->config.pad_token_id,
    };
    t->sentences = wg__calloc((size_t)t->count + 1, sizeof *t->sentences);
    t->rows = wg__alloc((size_t)t->options.batch * sizeof *t->rows);
    t->results = wg__alloc((size_t)t->options.batch * sizeof *t->results);
    return t->sentences && t->rows && t->results ? 0 : -1;
}

static void end(translator *t) {
    for (int64_t i = 0; t->sentences && i < t->count; i++)
        wg_token_list_free(&t->sentences[i].tokens);
    wg__free(t->sentences);
    wg__free(t->rows);
    wg__free(t->results);
}

int wg_translate_texts(wg_transformer *model, const wg_tokenizer *tokenizer, int64_t count,
                       const char *const *texts, const wg_translator_options *options,
                       char **translations) {
    for (int64_t i = 0; i < count; i++)
        translations[i] = NULL;
    if (!model || !tokenizer)
        return -1;
    translator t = {.model = model,
                    .tokenizer = tokenizer,
                    .options = options ? *options : (wg_translator_options){0},
                    .count = count,
                    .translations = translations};
    const int result = begin(&t) == 0 && encode_all(&t, texts) == 0 ? translate_all(&t) : -1;
    end(&t);
    for (int64_t i = 0; result < 0 && i < count; i++) {
        wg_text_free(translations[i]);
        translations[i] = NULL;
    }
    return result;
}
