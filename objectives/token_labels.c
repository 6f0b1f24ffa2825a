/* Labels of words, for instance parts of speech and named entities, by an encoder with a head on
 * every token (Devlin et al. 2019, section 5.3).
 *
 *     sentences of tagged words --> windows, shuffled --> encoder, dropout, classifier -->
 *     cross-entropy of the first piece of each word
 *
 * The labels are the tags of the training file, in the order of wg__labels_sort. Metric of a step,
 * beside its loss: accuracy. Of an evaluation: `loss`, `accuracy` and `majority` (the accuracy of
 * always predicting the commonest tag) of words. If all tags mark spans ("O", "B-person",
 * "I-person"), also `precision`, `recall` and `f1` of spans, as seqeval and conlleval count them.
 */
#include "data/dataset/examples.h"
#include "data/score/score.h"
#include "objectives/head.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

static wg__examples *read_words(wg__head_kind kind, const wg_training_setup *setup, const void *own,
                                const char *path, const wg_tokenizer *tokenizer,
                                wg__labels *labels) {
    enum { FRAME = 2 }; /* [CLS] and [SEP] */
    const wg_token_labels_options *options = setup->options;
    wg__tagged_words_options reading = {.room = wg__larger(setup->sequence - FRAME, 0)};
    (void)kind, (void)own;
    if (options) {
        reading.token_column = options->token_column;
        reading.tag_column = options->tag_column;
    }
    return (wg__examples *)wg__tagged_words_load(path, tokenizer, labels, &reading);
}

/* Logits of the tags at all places, (B T, K). */
static int outputs(const wg_training *t, const wg__example_batch *batch, wg_tensor *logits[2]) {
    if (wg__head_outputs(t, batch, logits) < 0)
        return -1;
    const wg__head_run *run = t->context;
    logits[0] = wg_reshape(logits[0], WG_DIMS(-1, run->labels->count));
    return logits[0] ? 0 : -1;
}

static wg_tensor *loss(wg_tensor *const logits[2], const wg__example_batch *batch) {
    wg_tensor *wanted = wg_reshape(batch->targets[0], WG_DIMS(-1));
    return wg_cross_entropy(logits[0], wanted, WG_IGNORE_INDEX, NULL);
}

static int measure_step(wg_tensor *const logits[2], const wg__example_batch *batch,
                        wg_metrics *metrics) {
    wg_tensor *wanted = wg_reshape(batch->targets[0], WG_DIMS(-1));
    wg_tensor *right = wg_eq(wg_argmax(logits[0], 1, false), wanted);
    const double count = wg_item(wg_sum(wg_cast(right, WG_F64), WG_ALL, false));
    return wg_metrics_add(metrics, "accuracy", count / (double)batch->words, (double)batch->words);
}

static void weigh(const wg_training *t, const void *batch, wg_loss_part *parts) {
    (void)t;
    parts[0].count = (double)((const wg__example_batch *)batch)->words;
}

static int predict(const wg_training *t, int64_t first, int64_t count, wg_tensor *const logits[2],
                   const wg__example_batch *batch, wg_metrics *metrics) {
    const wg__head_run *run = t->context;
    const wg__tagged_words *words = (const wg__tagged_words *)run->held_out;
    int64_t *predicted = (int64_t *)run->predictions + words->windows[first];
    (void)count;
    wg_tensor *wanted = wg_reshape(batch->targets[0], WG_DIMS(-1));
    wg_tensor *best = wg_argmax(logits[0], 1, false);
    const double mean = wg_item(loss(logits, batch));
    if (!best || wg_error_pending())
        return -1;
    const int64_t *tags = wg_tensor_data(wanted);
    for (int64_t i = 0; i < wg_tensor_size(wanted, 0); i++)
        if (tags[i] != WG_IGNORE_INDEX)
            *predicted++ = (int64_t)wg_at(best, &i);
    metrics->tokens += batch->inputs.tokens;
    return wg_metrics_add(metrics, "loss", mean, (double)batch->words);
}

static int measure_spans(const wg__head_run *run, wg_metrics *metrics) {
    const wg__tagged_words *words = (const wg__tagged_words *)run->held_out;
    const int64_t *predicted = run->predictions;
    char *const *names = run->labels->names;
    wg__span_counts counts = {0};
    const char **tags = wg__alloc_array(wg__times(words->count, 2), sizeof *tags);
    if (!tags)
        return -1;
    for (int64_t s = 0; s < words->sentence_count; s++) { /* the wanted tags, then the predicted */
        const int64_t first = words->sentences[s], count = words->sentences[s + 1] - first;
        for (int64_t i = 0; i < count; i++) {
            tags[i] = names[words->words[first + i].tag];
            tags[count + i] = names[predicted[first + i]];
        }
        wg__spans_count(count, tags, tags + count, &counts);
    }
    wg__free(tags);
    const double right = (double)counts.right, found = (double)counts.predicted,
                 wanted = (double)counts.wanted;
    /* Without spans a mean has no weight, and would be left out. */
    const double weight = wanted > 0 ? wanted : 1;
    if (wg_metrics_add(metrics, "precision", found > 0 ? right / found : 0, weight) < 0 ||
        wg_metrics_add(metrics, "recall", wanted > 0 ? right / wanted : 0, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "f1", found + wanted > 0 ? 2 * right / (found + wanted) : 0,
                          weight);
}

/* The shares of words with the right tag and with the commonest tag; then the metrics of spans. */
static int measure(const wg__head_run *run, wg_metrics *metrics) {
    const wg__tagged_words *words = (const wg__tagged_words *)run->held_out;
    const int64_t *predicted = run->predictions;
    int64_t *counts = wg__calloc((size_t)run->labels->count, sizeof *counts), right = 0, most = 0;
    for (int64_t i = 0; counts && i < words->count; i++) {
        const int64_t tag = words->words[i].tag;
        right += predicted[i] == tag;
        most = wg__larger(most, ++counts[tag]);
    }
    wg__free(counts);
    const double weight = (double)words->count;
    if (!counts || wg_metrics_add(metrics, "accuracy", (double)right / weight, weight) < 0 ||
        wg_metrics_add(metrics, "majority", (double)most / weight, weight) < 0)
        return -1;
    bool spans = true, any = false;
    for (int64_t i = 0; i < run->labels->count; i++) {
        const char *name = run->labels->names[i];
        spans &= wg__is_span_tag(name);
        any |= spans && name[1] != '\0';
    }
    return spans && any ? measure_spans(run, metrics) : 0;
}

/* Word, tag and predicted tag a line, as conlleval reads them, an empty line behind a sentence. */
static int write_words(const wg__head_run *run, const char *path) {
    const wg__tagged_words *words = (const wg__tagged_words *)run->held_out;
    const int64_t *predicted = run->predictions;
    char *const *names = run->labels->names;
    FILE *file = wg__predictions_open(path);
    for (int64_t s = 0; file && s < words->sentence_count; s++) {
        for (int64_t i = words->sentences[s]; i < words->sentences[s + 1]; i++)
            fprintf(file, "%s\t%s\t%s\n", words->texts.bytes + words->words[i].text,
                    names[words->words[i].tag], names[predicted[i]]);
        fputc('\n', file);
    }
    return file ? wg__predictions_close(file, path) : -1;
}

static void describe(const wg_training *t, FILE *stream) {
    const wg__head_run *run = t->context;
    const wg__tagged_words *words = (const wg__tagged_words *)run->training;
    const wg__tagged_words *held_out = (const wg__tagged_words *)run->held_out;
    fprintf(stream,
            "text   %lld sentences of %lld words with %lld tags, in %lld windows; %lld sentences "
            "to measure on\n",
            (long long)words->sentence_count, (long long)words->count,
            (long long)run->labels->count, (long long)words->base.count,
            (long long)(held_out ? held_out->sentence_count : 0));
}

static const wg_metric_row rows[] = {
    {.name = "loss"},
    {.name = "accuracy", .weight = "words"},
    {.name = "majority"},
    {.name = "precision", .optional = true},
    {.name = "recall", .optional = true},
    {.name = "f1", .weight = "spans", .optional = true},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    fprintf(stream, "words            loss %.4f, accuracy %.2f %% of %.0f\n",
            wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "accuracy"),
            wg_metrics_weight(metrics, "accuracy"));
    fprintf(stream, "commonest tag         accuracy %.2f %%\n",
            100 * wg_metrics_get(metrics, "majority"));
    if (wg_metrics_weight(metrics, "f1") > 0)
        fprintf(stream, "spans            precision %.2f %%, recall %.2f %%, F1 %.2f %% of %.0f\n",
                100 * wg_metrics_get(metrics, "precision"), 100 * wg_metrics_get(metrics, "recall"),
                100 * wg_metrics_get(metrics, "f1"), wg_metrics_weight(metrics, "f1"));
}

#define OPTION(member) offsetof(wg_token_labels_options, member)

static const wg_setting setting_rows[] = {
    {"token-column", WG_SETTING_TEXT, OPTION(token_column), .fixed = true, .standard = "\"\"",
     .argument = "N",
     .help =
         "tokens: the column of FILE that holds words, from 1 on, or of CoNLL-U its name (1; of "
         "CoNLL-U FORM)"},
    {"tag-column", WG_SETTING_TEXT, OPTION(tag_column), .fixed = true, .standard = "\"\"",
     .argument = "N",
     .help = "tokens: the column that holds their tags (the last one; of CoNLL-U UPOS)"},
};

static const wg_objective_training training = {.adapt = wg__head_adapt,
                                               .load = wg__head_load,
                                               .config = wg__head_config,
                                               .begin = wg__head_begin,
                                               .end = wg__head_end,
                                               .loss = wg__head_loss,
                                               .weigh = weigh,
                                               .evaluate = wg__head_evaluate};

const wg_objective wg_token_labels = {
    .name = "tokens",
    .title = "labels words, by parts of speech or as named entities (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"architectures=ForTokenClassification"},
    .settings = WG__SETTING_TABLE(wg_token_labels_options, setting_rows),
    .defaults = WG__HEAD_DEFAULTS,
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .data = {WG__BATCH_OF(wg__example_batch, inputs.tokens), .describe = describe},
    .training = &training,
    .head = &(const wg__head_task){.kind = WG_HEAD_WORDS,
                                   .learns_labels = true,
                                   .prediction = sizeof(int64_t),
                                   .read = read_words,
                                   .outputs = outputs,
                                   .loss = loss,
                                   .measure_step = measure_step,
                                   .predict = predict,
                                   .measure = measure,
                                   .write = write_words},
    .metrics = rows,
    .headline = "f1,accuracy",
    .print = print,
};
