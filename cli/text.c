/* The text of a training, as the settings want it. See model_kind.h. */
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

static int weigh(wg_dataset *dataset, const json_t *settings) {
    int count;
    double *weights = read_weights(settings, &count);
    const int result = weights ? wg_dataset_weigh(dataset, count, weights) : 0;
    free(weights);
    return result;
}

/* Documents of sentences, and pairs of each two files, when no text is given to measure on. */
#define HELD_OUT 0.05

/* Of pairs a source and its target, or a token file, which has both. */
static wg_dataset *load_held_out(const wg__training *t, wg_dataset_kind kind, const char *eval) {
    const char *paths[] = {eval, wg__setting_text(t->settings, "eval-target")};
    const bool two = kind == WG_TEXT_PAIRS && paths[1] && !wg_dataset_is_token_file(eval);
    return wg_dataset_load(two ? 2 : 1, paths, t->tokenizer, &(wg_dataset_options){.kind = kind});
}

static int load_texts(const wg__training *t, const wg_dataset_options *options, wg__texts *texts) {
    const char *eval = wg__setting_text(t->settings, "eval");
    const double share = options->kind == WG_TEXT_STREAM ? WG__STREAM_HELD_OUT : HELD_OUT;
    int count;
    const char **paths = wg__corpus_paths(t->settings, &count);
    if (eval)
        texts->training = wg_dataset_load(count, paths, t->tokenizer, options);
    else
        wg_dataset_load_split(count, paths, t->tokenizer, share, options, &texts->training,
                              &texts->held_out);
    free(paths);
    return texts->training ? 0 : -1;
}

int wg__texts_load(const wg__training *t, wg_dataset_kind kind, wg__texts *texts) {
    const char *eval = wg__setting_text(t->settings, "eval");
    const wg_token_storage storage = {.path = wg__setting_text(t->settings, "tokens"),
                                      .note = wg__note_tokens};
    const wg_dataset_options options = {.kind = kind, .storage = &storage};
    if (load_texts(t, &options, texts) < 0 || weigh(texts->training, t->settings) < 0)
        return -1;
    if (eval)
        texts->held_out = load_held_out(t, kind, eval);
    else if (kind == WG_TEXT_SENTENCES && weigh(texts->held_out, t->settings) < 0)
        return -1;
    return texts->held_out ? 0 : -1;
}

void wg__texts_clear(wg__texts *texts) {
    wg_dataset_free(texts->training);
    wg_dataset_free(texts->held_out);
}

void wg__sentences_describe(const wg__texts *t) {
    fprintf(stderr, "text   %lld documents, %lld sentences, %lld tokens; %lld documents held out\n",
            (long long)wg_dataset_documents(t->training),
            (long long)wg_dataset_sentences(t->training), (long long)wg_dataset_tokens(t->training),
            (long long)wg_dataset_documents(t->held_out));
}

void wg__stream_describe(const wg__texts *t) {
    fprintf(stderr, "text   %lld documents, %lld bytes, %lld tokens; %lld tokens held out\n",
            (long long)wg_dataset_documents(t->training), (long long)wg_dataset_bytes(t->training),
            (long long)wg_dataset_tokens(t->training), (long long)wg_dataset_tokens(t->held_out));
}
