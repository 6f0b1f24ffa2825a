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

static wg_token_storage storage_of(const json_t *settings) {
    return (wg_token_storage){.path = wg__setting_text(settings, "tokens"),
                              .note = wg__note_tokens};
}

int wg__load_corpora(const json_t *settings, const wg_tokenizer *tokenizer, double held_out_share,
                     wg_corpus **corpus, wg_corpus **held_out) {
    const char *eval = wg__setting_text(settings, "eval");
    const wg_token_storage storage = storage_of(settings);
    int count;
    const char **paths = wg__corpus_paths(settings, &count);
    *corpus = wg_corpus_load(count, paths, tokenizer, &(wg_corpus_options){.storage = &storage});
    *held_out = NULL;
    free(paths);
    if (!*corpus || weigh_corpus(*corpus, settings) < 0)
        return -1;
    if (eval) {
        *held_out = wg_corpus_load(1, &eval, tokenizer, NULL);
        return *held_out ? 0 : -1;
    }
    wg_corpus *all = *corpus;
    const int result = wg_corpus_split(all, held_out_share, corpus, held_out);
    wg_corpus_free(all);
    return result;
}

void wg__describe_corpora(const wg_corpus *corpus, const wg_corpus *held_out) {
    fprintf(stderr, "text   %lld documents, %lld sentences, %lld tokens; %lld documents held out\n",
            (long long)wg_corpus_documents(corpus), (long long)wg_corpus_sentences(corpus),
            (long long)wg_corpus_tokens(corpus), (long long)wg_corpus_documents(held_out));
}

void wg__describe_streams(const wg_token_stream *training, const wg_token_stream *held_out) {
    fprintf(stderr, "text   %lld documents, %lld bytes, %lld tokens; %lld tokens held out\n",
            (long long)wg_token_stream_documents(training),
            (long long)wg_token_stream_bytes(training), (long long)wg_token_stream_tokens(training),
            (long long)wg_token_stream_tokens(held_out));
}

int wg__load_streams(const json_t *settings, const wg_tokenizer *tokenizer, double held_out_share,
                     wg_token_stream **training, wg_token_stream **held_out) {
    const char *eval = wg__setting_text(settings, "eval");
    const wg_token_storage storage = storage_of(settings);
    int count, result = 0;
    const char **paths = wg__corpus_paths(settings, &count);
    *training = *held_out = NULL;
    if (eval)
        *training = wg_token_stream_load(count, paths, tokenizer,
                                         &(wg_token_stream_options){.storage = &storage});
    else
        result = wg_token_stream_load_split(count, paths, tokenizer, held_out_share, &storage,
                                            training, held_out);
    free(paths);
    if (result < 0 || !*training || weigh_stream(*training, settings) < 0)
        return -1;
    if (eval)
        *held_out = wg_token_stream_load(1, &eval, tokenizer, NULL);
    return *held_out ? 0 : -1;
}
