/* Translation: see translation.h. */
#include "objectives/translation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/replacement.h"
#include "data/internal.h"
#include "data/score/score.h"
#include "data/tokenizer/text_file.h"
#include "models/generate/beam.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "base/internal.h"
#include "models/internal.h"

#define WHERE "translation"

static int begin(wg_training *t) {
    const wg_model_sizes sizes = wg_model_sizes_of(t->setup.model);
    wg__translation_tokens tokens;
    if (wg__check_vocabulary(WHERE, wg_tokenizer_size(t->setup.tokenizer), "",
                             wg__smaller(sizes.source_vocabulary, sizes.vocabulary)) < 0 ||
        wg__translation_tokens_of(t->setup.tokenizer, &tokens) < 0)
        return -1;
    if (tokens.end != sizes.end_id)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "eos_token_id of the model is %lld; the tokenizer ends a sentence by %ld",
                       (long long)sizes.end_id, (long)tokens.end);
    return 0;
}

static wg__translation_tokens model_tokens(const wg_model *model) {
    const wg_model_sizes sizes = wg_model_sizes_of(model);
    return (wg__translation_tokens){.start = (int32_t)sizes.start_id,
                                    .end = (int32_t)sizes.end_id,
                                    .pad = (int32_t)sizes.pad_id};
}

/* Evaluation leaves no pair out. */
static wg_batches *make_batches(const wg_training_setup *setup, const wg_dataset *pairs,
                                bool measured) {
    wg__translation_tokens tokens;
    wg__translation_batch_options options = {
        .tokens = setup->batch, .longest = setup->sequence, .seed = setup->seed};
    if (setup->model)
        tokens = model_tokens(setup->model);
    else if (wg__translation_tokens_of(setup->tokenizer, &tokens) < 0)
        return NULL;
    if (measured) {
        const int64_t positions = wg_model_sizes_of(setup->model).positions;
        options.longest = positions;
        if (positions >= INT32_MAX) /* no limit: the longest sentence with its end */
            options.longest = 1;
        for (int64_t i = 0; positions >= INT32_MAX && i < wg__dataset_sentences(pairs); i++) {
            const int64_t first = wg__dataset_sentence_start(pairs, i);
            options.longest =
                wg__larger(options.longest, wg__dataset_sentence_start(pairs, i + 1) - first + 1);
        }
        options.tokens = wg__larger(options.tokens, options.longest);
    }
    wg_batches *batches = wg__translation_batches_new(pairs, &tokens, &options);
    const int64_t left_out = wg__translation_batches_left_out(batches);
    if (!measured || left_out == 0)
        return batches;
    wg_batches_free(batches);
    return wg__fail_null(
        WG_ERROR_ARGUMENT, WHERE,
        "%lld of the pairs to measure on are longer than the model's %lld positions; leave them "
        "out",
        (long long)left_out, (long long)options.longest);
}

/* Without training, --batch is the batch of the search (wg_translation_use); the loss uses 4096. */
static void choose_sizes(wg_training *t) {
    if (!t->setup.training)
        t->setup.batch = 4096;
}

static wg_tensor *loss_of(wg_training *t, const void *batch, wg_metrics *metrics) {
    const wg__translation_batch *pairs = batch;
    const wg_model *model = t->setup.model;
    const wg_model_inputs inputs = {
        .ids = pairs->target,
        .memory = wg_model_encode(model, pairs->source, pairs->source_keep),
        .memory_keep = pairs->source_keep,
    };
    (void)metrics;
    return wg_model_loss(model, wg_model_forward(model, &inputs), NULL, pairs->labels, NULL);
}

static void weigh(const wg_training *t, const void *batch, wg_loss_part *parts) {
    (void)t;
    parts[0].count = (double)((const wg__translation_batch *)batch)->tokens;
}

static int measure(wg_training *t, const void *batch, wg_metrics *metrics) {
    return wg_metrics_add(metrics, "loss", wg_item(loss_of(t, batch, metrics)),
                          (double)((const wg__translation_batch *)batch)->tokens);
}

/* How much longer than its source a translation may be (Vaswani et al. 2017, section 6.1). */
enum { LONGER = 50 };

int wg__translate_batch(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                        const wg_beam_options *options, wg_beam_result *results) {
    if (!source)
        return -1;
    if (wg_tensor_ndim(source) != 2)
        return wg_fail(WG_ERROR_SHAPE, "translate", "the source has rank %d; wanted (B, S)",
                       wg_tensor_ndim(source));
    const int64_t rows = wg_tensor_size(source, 0), most = wg_model_sizes_of(model).positions;
    int64_t *lengths = wg__alloc_array(rows, sizeof *lengths);
    int result = lengths ? 0 : -1;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (result == 0 && keep)
        result = wg_to_array(wg_sum(wg_cast(keep, WG_I64), WG_DIMS(1), false), lengths);
    wg_scope_end(&scope, NULL);
    for (int64_t i = 0; i < rows; i++)
        results[i] = (wg_beam_result){0};
    for (int64_t i = 0; result == 0 && i < rows; i++)
        lengths[i] = wg__smaller((keep ? lengths[i] : wg_tensor_size(source, 1)) + LONGER, most);
    if (result == 0)
        result = wg__model_search(model, source, keep, lengths, options, results);
    wg__free(lengths);
    return result;
}

/* A text with its place among those given. */
typedef struct sentence {
    wg_token_list tokens; /* without the end */
    int64_t index;
} sentence;

typedef struct translator {
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    wg_translation_use options;
    wg__translation_tokens tokens;
    int64_t count;
    sentence *sentences;     /* (count) the shortest first */
    wg_token_list *rows;     /* (batch) borrowed from `sentences` */
    wg_beam_result *results; /* (batch) */
    int *owners;             /* (count) the rank that translates each text */
    char **translations;
} translator;

/* Blank texts have no tokens. */
static int encode(translator *t, const char *const *texts) {
    const int64_t most = wg_model_sizes_of(t->model).positions - 1;
    for (int64_t i = 0; i < t->count; i++) {
        const int64_t number = i + (t->options.first_number ? t->options.first_number : 1);
        const int64_t length = (int64_t)strlen(texts[i]);
        sentence *s = &t->sentences[i];
        s->index = i;
        char name[32];
        snprintf(name, sizeof name, "text %lld", (long long)number);
        if (wg__utf8_check(texts[i], length, name, "translate") < 0)
            return -1;
        int64_t at = 0;
        for (int64_t space; (space = wg__space_length(texts[i] + at, length - at)) > 0;)
            at += space;
        if (at < length && wg_tokenizer_encode(t->tokenizer, texts[i], -1, NULL, &s->tokens) < 0)
            return -1;
        if (s->tokens.count > most)
            return wg_fail(
                WG_ERROR_ARGUMENT, "translate",
                "text %lld has %lld tokens; the model takes %lld, so part it into sentences",
                (long long)number, (long long)s->tokens.count, (long long)most);
    }
    return 0;
}

static int compare_lengths(const void *left, const void *right) {
    const sentence *a = left, *b = right;
    if (a->tokens.count != b->tokens.count)
        return a->tokens.count < b->tokens.count ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

/* Leaves out ids that the tokenizer does not know: the model may have a larger vocabulary. */
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

/* Each rank translates blank sentences itself; batches of all other sentences are split. */
static int translate_all(translator *t) {
    const int64_t batch = t->options.batch;
    const int rank = wg_group_rank(t->options.group), ranks = wg_group_size(t->options.group);
    int64_t first = 0;
    int result = 0;
    for (; result == 0 && first < t->count && t->sentences[first].tokens.count == 0; first++) {
        t->translations[t->sentences[first].index] = decode(t, &t->sentences[first].tokens);
        t->owners[t->sentences[first].index] = rank;
        result = wg_error_pending() ? -1 : 0;
    }
    for (int64_t i = 0; result == 0 && first < t->count; first += batch, i++) {
        const int64_t count = wg__smaller(t->count - first, batch);
        for (int64_t k = first; k < first + count; k++)
            t->owners[t->sentences[k].index] = (int)(i % ranks);
        if (i % ranks != rank)
            continue;
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *source, *keep;
        for (int64_t k = 0; k < count; k++)
            t->rows[k] = t->sentences[first + k].tokens;
        result = wg__translation_sources(count, t->rows, &t->tokens, &source, &keep);
        if (result == 0)
            result = wg__translate_batch(t->model, source, keep, &t->options.beam, t->results);
        for (int64_t k = 0; k < count; k++) {
            char *text = result < 0 ? NULL : decode(t, &t->results[k].tokens);
            t->translations[t->sentences[first + k].index] = text;
            result = text ? result : -1;
            wg_token_list_free(&t->results[k].tokens);
        }
        wg_scope_end(&scope, NULL);
    }
    return result;
}

int wg_translate_texts(const wg_model *model, const wg_tokenizer *tokenizer,
                       const wg_translation_use *options, int64_t count, const char *const *texts,
                       char **translations) {
    for (int64_t i = 0; i < count; i++)
        translations[i] = NULL;
    if (!model || !tokenizer)
        return -1;
    translator t = {.model = model,
                    .tokenizer = tokenizer,
                    .options = options ? *options : (wg_translation_use){0},
                    .count = count,
                    .translations = translations};
    t.tokens = model_tokens(model);
    int result = wg__batch_sizes("translate", &t.options.batch, NULL);
    if (result == 0) {
        t.sentences = wg__calloc((size_t)count + 1, sizeof *t.sentences);
        t.rows = wg__alloc_array(t.options.batch, sizeof *t.rows);
        t.results = wg__calloc((size_t)t.options.batch, sizeof *t.results);
        t.owners = wg__alloc_array(count + 1, sizeof *t.owners);
        result = t.sentences && t.rows && t.results && t.owners ? encode(&t, texts) : -1;
    }
    if (result == 0 && count > 0) {
        qsort(t.sentences, (size_t)count, sizeof *t.sentences, compare_lengths);
        result = translate_all(&t);
    }
    result = wg_group_check(t.options.group, result);
    if (result == 0)
        result = wg__group_collect_texts(t.options.group, count, t.owners, translations);
    for (int64_t i = 0; t.sentences && i < t.count; i++)
        wg_token_list_free(&t.sentences[i].tokens);
    wg__free(t.sentences);
    wg__free(t.rows);
    wg__free(t.results);
    wg__free(t.owners);
    for (int64_t i = 0; result < 0 && i < count; i++) {
        wg_text_free(translations[i]);
        translations[i] = NULL;
    }
    return result;
}

static void free_lines(int64_t count, char **lines) {
    for (int64_t i = 0; lines && i < count; i++)
        wg_text_free(lines[i]);
    wg__free(lines);
}

/* One side of all held-out pairs; NULL with an error. */
static char **read_texts(const wg_dataset *pairs, wg_side side) {
    const int64_t count = wg__dataset_documents(pairs);
    char **texts = wg__calloc((size_t)count, sizeof *texts);
    for (int64_t i = 0; texts && i < count; i++)
        if (!(texts[i] = wg__dataset_pair_text(pairs, side, i))) {
            free_lines(count, texts);
            return NULL;
        }
    return texts;
}

static int score_translations(const wg_training *t, char *const *translations,
                              char *const *references, wg_metrics *metrics) {
    const wg_evaluation_options *how = t->setup.evaluation;
    const int64_t count = wg__dataset_documents(t->setup.held_out);
    const wg_bleu_rules rules = {(wg_bleu_tokens)how->bleu_tokens, how->lowercase};
    wg__bleu bleu = {0};
    if (wg__writes_predictions(t, 0)) {
        wg__text text = {0};
        bool written = true;
        for (int64_t i = 0; written && i < count; i++)
            written =
                wg__text_append(&text, translations[i], (int64_t)strlen(translations[i])) == 0 &&
                wg__text_append(&text, "\n", 1) == 0;
        written =
            written && wg__replace_file(how->predictions, text.bytes, text.length, WHERE) == 0;
        wg__free(text.bytes);
        if (!written)
            return -1;
    }
    for (int64_t i = 0; i < count; i++)
        if (wg__bleu_add(&bleu, translations[i], references[i], rules) < 0)
            return -1;
    const double pairs = (double)count;
    const wg__bleu_score score = wg__bleu_measure(&bleu);
    if (wg_metrics_add(metrics, rules.lowercase ? "bleu_lc" : "bleu", score.score, pairs) < 0 ||
        wg_metrics_add(metrics, "bleu_tokens", rules.tokens, pairs) < 0)
        return -1;
    for (int n = 0; n < WG_BLEU_ORDER; n++) {
        char name[WG_METRIC_NAME_SIZE];
        snprintf(name, sizeof name, "bleu_precision_%d", n + 1);
        if (wg_metrics_add(metrics, name, score.precisions[n], pairs) < 0)
            return -1;
    }
    if (wg_metrics_add(metrics, "brevity_penalty", score.brevity_penalty, pairs) < 0 ||
        wg_metrics_add(metrics, "hypothesis_tokens", (double)bleu.hypothesis_tokens, pairs) < 0)
        return -1;
    return wg_metrics_add(metrics, "reference_tokens", (double)bleu.reference_tokens, pairs);
}

/* Translates all held-out sources and scores them. */
static int score(const wg_training *t, wg_metrics *metrics) {
    const wg_training_setup *setup = &t->setup;
    const int64_t count = wg__dataset_documents(setup->held_out);
    const wg_translation_use use = {
        .batch = setup->evaluation->batch, .beam = setup->evaluation->beam, .group = setup->group};
    char **sources = read_texts(setup->held_out, WG_SOURCE);
    char **references = sources ? read_texts(setup->held_out, WG_TARGET) : NULL;
    char **translations = references ? wg__calloc((size_t)count, sizeof *translations) : NULL;
    const bool scored = wg_group_check(setup->group, translations ? 0 : -1) == 0 &&
                        wg_translate_texts(setup->model, setup->tokenizer, &use, count,
                                           (const char *const *)sources, translations) == 0 &&
                        score_translations(t, translations, references, metrics) == 0;
    free_lines(count, sources);
    free_lines(count, references);
    free_lines(count, translations);
    return scored ? 0 : -1;
}

static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    if (wg__evaluate_batches(t, batches, true, measure, metrics) < 0 ||
        wg_metrics_add(metrics, "perplexity", exp(wg_metrics_get(metrics, "loss")),
                       wg_metrics_weight(metrics, "loss")) < 0)
        return -1;
    return batches == 0 && t->setup.evaluation ? score(t, metrics) : 0;
}

/* The number of tokens on one side of all pairs. */
static int64_t count_tokens(const wg_dataset *pairs, wg_side side) {
    int64_t count = 0;
    for (int64_t i = 0; i < wg__dataset_documents(pairs); i++)
        count += wg__dataset_sentence_start(pairs, 2 * i + side + 1) -
                 wg__dataset_sentence_start(pairs, 2 * i + side);
    return count;
}

static void describe(const wg_training *t, FILE *stream) {
    const wg_dataset *pairs = t->setup.training;
    const long long left_out = wg__translation_batches_left_out(t->batches);
    fprintf(stream,
            "text   %lld pairs, %lld and %lld tokens, in %lld batches; %lld pairs held out\n",
            (long long)wg__dataset_documents(pairs) - left_out,
            (long long)count_tokens(pairs, WG_SOURCE), (long long)count_tokens(pairs, WG_TARGET),
            (long long)wg__batches_examples(t->batches),
            (long long)wg__dataset_documents(t->setup.held_out));
    if (left_out > 0)
        fprintf(stream, "       %lld pairs left out, as they have more than %lld tokens\n",
                left_out, (long long)t->setup.sequence);
}

static const char *signature(const wg_metrics *metrics) {
    const wg_bleu_rules rules = {(wg_bleu_tokens)wg_metrics_get(metrics, "bleu_tokens"),
                                 wg_metrics_weight(metrics, "bleu_lc") > 0};
    return wg__bleu_signature(rules);
}

static const wg_metric_row metric_rows[] = {
    {.name = "loss", .weight = "tokens"},
    {.name = "perplexity"},
    {.name = "bleu", .optional = true},
    {.name = "bleu_lc", .optional = true},
    {.name = "bleu_precision_1", .optional = true},
    {.name = "bleu_precision_2", .optional = true},
    {.name = "bleu_precision_3", .optional = true},
    {.name = "bleu_precision_4", .optional = true},
    {.name = "brevity_penalty", .optional = true},
    {.name = "hypothesis_tokens", .optional = true},
    {.name = "reference_tokens", .optional = true},
    {.name = "bleu_signature", .of = "reference_tokens", .optional = true, .text = signature},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    fprintf(stream, "translations     loss %.4f, perplexity %.2f; %.0f tokens\n",
            wg_metrics_get(metrics, "loss"), wg_metrics_get(metrics, "perplexity"),
            wg_metrics_weight(metrics, "loss"));
    if (wg_metrics_weight(metrics, "reference_tokens") > 0) {
        const bool lowercase = wg_metrics_weight(metrics, "bleu_lc") > 0;
        const double ours = wg_metrics_get(metrics, "hypothesis_tokens");
        const double theirs = wg_metrics_get(metrics, "reference_tokens");
        fprintf(
            stream,
            "BLEU|%s = %.1f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %.0f ref_len = "
            "%.0f)\n",
            signature(metrics), wg_metrics_get(metrics, lowercase ? "bleu_lc" : "bleu"),
            wg_metrics_get(metrics, "bleu_precision_1"),
            wg_metrics_get(metrics, "bleu_precision_2"),
            wg_metrics_get(metrics, "bleu_precision_3"),
            wg_metrics_get(metrics, "bleu_precision_4"), wg_metrics_get(metrics, "brevity_penalty"),
            theirs > 0 ? ours / theirs : 0, ours, theirs);
    }
}

const wg_objective wg_translation = {
    .name = "translation",
    .title = "translates sentences (Vaswani et al. 2017)",
    .shapes = WG_ENCODER_DECODER,
    .evaluation = WG_EVALUATES_PREDICTIONS | WG_EVALUATES_TRANSLATIONS,
    .data = {.text = WG_TEXT_PAIRS,
             .usual_batch = 4096,
             .sizes = choose_sizes,
             .batches = make_batches,
             WG__BATCH_OF(wg__translation_batch, tokens),
             .describe = describe},
    .training =
        &(const wg_objective_training){
            .begin = begin, .loss = loss_of, .weigh = weigh, .evaluate = evaluate},
    .metrics = metric_rows,
    .print = print,
};
