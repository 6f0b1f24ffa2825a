/* The text of a training: corpora and streams as the settings want them. See model_kind.h. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/model_kind.h"
#include "cli/settings.h"

void wg__note_tokens(void *context, const char *line) {
    (void)context;
    wg__cli_note("%s", line);
}

/* The setting "corpus-weights"; freed by free. NULL without any. */
static double *read_weights(const json_t *settings, int *count) {
    const json_t *list = json_object_get(settings, "corpus-weights");
    *count = (int)json_array_size(list);
    double *weights = *count > 0 ? calloc((size_t)*count, sizeof *weights) : NULL;
    for (int i = 0; weights && i < *count; i++)
        weights[i] = json_number_value(json_array_get(list, (size_t)i));
    return weights;
}

static int weigh_corpus(wg_corpus *corpus, const json_t *settings) {
    int count;
    double *weights = read_weights(settings, &count);
    const int result = weights ? wg_corpus_weigh(corpus, count, weights) : 0;
    free(weights);
    return result;
}

static int weigh_stream(wg_token_stream *stream, const json_t *settings) {
    int count;
    double *weights = read_weights(settings, &count);
    const int result = weights ? wg_token_stream_weigh(stream, count, weights) : 0;
    free(weights);
    return result;
}

static int weigh_pairs(wg_sentence_pairs *pairs, const json_t *settings) {
    int count;
    double *weights = read_weights(settings, &count);
    const int result = weights ? wg_sentence_pairs_weigh(pairs, count, weights) : 0;
    free(weights);
    return result;
}

static wg_token_storage storage_of(const json_t *settings) {
    return (wg_token_storage){.path = wg__setting_text(settings, "tokens"),
                              .note = wg__note_tokens};
}

/* ---- Corpora ---- */

/* Of the documents, when no text is given to measure on. */
#define CORPUS_HELD_OUT 0.05

int wg__corpora_load(const wg__training *t, wg__corpora *corpora) {
    const char *eval = wg__setting_text(t->settings, "eval");
    const wg_token_storage storage = storage_of(t->settings);
    int count;
    const char **paths = wg__corpus_paths(t->settings, &count);
    wg_corpus *all =
        wg_corpus_load(count, paths, t->tokenizer, &(wg_corpus_options){.storage = &storage});
    free(paths);
    corpora->training = all;
    if (!all || weigh_corpus(all, t->settings) < 0)
        return -1;
    if (eval) {
        corpora->held_out = wg_corpus_load(1, &eval, t->tokenizer, NULL);
        return corpora->held_out ? 0 : -1;
    }
    const int result =
        wg_corpus_split(all, CORPUS_HELD_OUT, &corpora->training, &corpora->held_out);
    wg_corpus_free(all);
    return result;
}

void wg__corpora_clear(wg__corpora *corpora) {
    wg_corpus_free(corpora->training);
    wg_corpus_free(corpora->held_out);
}

void wg__corpora_describe(const wg__corpora *c) {
    fprintf(stderr, "text   %lld documents, %lld sentences, %lld tokens; %lld documents held out\n",
            (long long)wg_corpus_documents(c->training),
            (long long)wg_corpus_sentences(c->training), (long long)wg_corpus_tokens(c->training),
            (long long)wg_corpus_documents(c->held_out));
}

/* ---- Streams ---- */

int wg__streams_load(const wg__training *t, wg__streams *streams) {
    const char *eval = wg__setting_text(t->settings, "eval");
    const wg_token_storage storage = storage_of(t->settings);
    int count, result = 0;
    const char **paths = wg__corpus_paths(t->settings, &count);
    if (eval)
        streams->training = wg_token_stream_load(count, paths, t->tokenizer,
                                                 &(wg_token_stream_options){.storage = &storage});
    else
        result = wg_token_stream_load_split(count, paths, t->tokenizer, WG__STREAM_HELD_OUT,
                                            &storage, &streams->training, &streams->held_out);
    free(paths);
    if (result < 0 || !streams->training || weigh_stream(streams->training, t->settings) < 0)
        return -1;
    if (eval)
        streams->held_out = wg_token_stream_load(1, &eval, t->tokenizer, NULL);
    return streams->held_out ? 0 : -1;
}

void wg__streams_clear(wg__streams *streams) {
    wg_token_stream_free(streams->training);
    wg_token_stream_free(streams->held_out);
}

void wg__streams_describe(const wg__streams *s) {
    fprintf(stderr, "text   %lld documents, %lld bytes, %lld tokens; %lld tokens held out\n",
            (long long)wg_token_stream_documents(s->training),
            (long long)wg_token_stream_bytes(s->training),
            (long long)wg_token_stream_tokens(s->training),
            (long long)wg_token_stream_tokens(s->held_out));
}

/* ---- Pairs ---- */

/* Of each two files, when no pairs are given to measure on. */
#define PAIRS_HELD_OUT 0.05

/* A token file has both sides. */
static wg_sentence_pairs *load_pairs_to_measure(const wg__training *t, const char *source) {
    const char *eval[] = {source, wg__setting_text(t->settings, "eval-target")};
    const int count = wg_tokens_found(source) || !eval[1] ? 1 : 2;
    return wg_sentence_pairs_load(count, eval, t->tokenizer, NULL);
}

/* What is measured is measured whole: weights are of the training alone. */
int wg__pair_datasets_load(const wg__training *t, wg__pair_datasets *pairs) {
    const char *eval = wg__setting_text(t->settings, "eval");
    const wg_token_storage storage = storage_of(t->settings);
    int count;
    const char **paths = wg__corpus_paths(t->settings, &count);
    wg_sentence_pairs *all = wg_sentence_pairs_load(
        count, paths, t->tokenizer, &(wg_sentence_pairs_options){.storage = &storage});
    free(paths);
    pairs->training = all;
    if (!all)
        return -1;
    if (eval) {
        pairs->held_out = load_pairs_to_measure(t, eval);
    } else {
        wg_sentence_pairs_split(all, PAIRS_HELD_OUT, &pairs->training, &pairs->held_out);
        wg_sentence_pairs_free(all);
    }
    return pairs->held_out ? weigh_pairs(pairs->training, t->settings) : -1;
}

void wg__pair_datasets_clear(wg__pair_datasets *pairs) {
    wg_sentence_pairs_free(pairs->training);
    wg_sentence_pairs_free(pairs->held_out);
}
