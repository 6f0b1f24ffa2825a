/* wengert eval: measures a checkpoint on text. */
#include <stdlib.h>

#include "cli/results.h"
#include "cli/cli.h"
#include "cli/settings.h"
#include "train/bert_pretraining.h"

enum { KEY_CORPUS = WG__KEY_OWN, KEY_BATCH, KEY_SEQ, KEY_SEED, KEY_THREADS };

typedef struct arguments {
    const char *run;
    const char **corpus; /* as many as there are arguments at most */
    int corpus_count;
    wg_bert_pretraining_options options;
    int threads; /* 0: as the library finds it */
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"corpus", KEY_CORPUS, "FILE...", 0, "Measure on these text files", 0},
    {"batch", KEY_BATCH, "N", 0, "Sequences in a batch (32)", 0},
    {"seq", KEY_SEQ, "N", 0, "Tokens in a sequence (128, or all that the model takes)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of what is masked and paired (0)", 0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    WG__OPTION_JSON,
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_CORPUS:
        a->corpus[a->corpus_count++] = text;
        return 0;
    case KEY_BATCH:
        a->options.batch = wg__cli_integer(state, "batch", text, 1, INT32_MAX);
        return 0;
    case KEY_SEQ:
        a->options.sequence = wg__cli_integer(state, "seq", text, 8, INT32_MAX);
        return 0;
    case KEY_SEED:
        a->options.seed = (uint64_t)wg__cli_integer(state, "seed", text, 0, INT64_MAX);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG: /* the checkpoint, then what a shell made of --corpus *.txt */
        if (a->run)
            a->corpus[a->corpus_count++] = text;
        else
            a->run = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->run)
            argp_error(state, "RUN.h5 is missing: what shall be measured?");
        if (a->corpus_count == 0)
            argp_error(state, "--corpus FILE is missing: on what text?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The model's positions may be fewer than the usual 128. */
static void choose_sequence(wg_bert_pretraining_options *chosen, const wg_bert_config *config) {
    if (chosen->sequence == 0 && config->max_position_embeddings < 128)
        chosen->sequence = config->max_position_embeddings;
}

static int measure(arguments *a, wg_metrics *metrics) {
    wg_bert_for_pretraining *model;
    wg_tokenizer *tokenizer;
    if (wg_bert_load(a->run, &model, &tokenizer) < 0)
        return -1;
    choose_sequence(&a->options, &model->bert->config);
    wg_corpus *corpus = wg_corpus_load(a->corpus_count, a->corpus, tokenizer, NULL);
    wg_bert_pretraining *pretraining =
        corpus ? wg_bert_pretraining_new(model, tokenizer, corpus, corpus, &a->options) : NULL;
    int result = pretraining ? wg_bert_pretraining_evaluate(pretraining, metrics) : -1;
    wg_bert_pretraining_free(pretraining);
    wg_corpus_free(corpus);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
    return result;
}

int wg__verb_eval(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --corpus FILE...",
        .doc = "Measures a pretrained model on text.\v"
               "The loss is printed beside that of predicting each masked word by its frequency in "
               "that very text.",
    };
    arguments a = {.corpus = calloc((size_t)argc, sizeof *a.corpus)};
    wg__cli_parse(&parser, argc, argv, &a);
    if (a.threads)
        wg_set_threads(a.threads);
    wg_metrics metrics = {0};
    int result = measure(&a, &metrics);
    free(a.corpus);
    if (result < 0)
        return wg__cli_fail_pending();
    if (a.json)
        wg__print_json(wg__bert_results_json(&metrics));
    else
        wg__print_bert_results(&metrics);
    return 0;
}
