/* Labels of words, such as parts of speech and named entities, by an encoder with a head on every
 * token (Devlin et al. 2019, section 5.3).
 *
 *     sentences of tagged words --> windows, shuffled --> encoder, dropout, classifier -->
 *     cross-entropy of the first piece of each word
 *
 * The labels are the tags of the training file, in the order of wg__labels_sort. Metric of a step,
 * beside its loss: accuracy. Of an evaluation: `loss`, `accuracy` and `majority` (the accuracy of
 * always predicting the commonest tag) of words, and, where all tags are those of spans ("O",
 * "B-person", "I-person"), `precision`, `recall` and `f1` of spans, as seqeval and conlleval count
 * them. */
#include "data/dataset/tagged_words.h"
#include "data/score/score.h"
#include "models/heads.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "tokens"

/* [CLS] and [SEP] */
enum { FRAME = 2 };

typedef struct tagging {
    wg__tagged_words *training, *held_out;
    wg_pair_frame frame;
    int64_t *chosen; /* (B) the windows of a batch */
} tagging;

/* ---- The model ---- */

static wg__headed_encoder *tagger_of(const wg_model *model) {
    return (wg__headed_encoder *)model->module;
}

static wg__tagged_words *read_words(const wg_training_setup *setup, const char *path,
                                    const wg_tokenizer *tokenizer, wg__labels *labels) {
    const wg_token_labels_options *options = setup->options;
    wg__tagged_words_options reading = {.room =
                                            setup->sequence > FRAME ? setup->sequence - FRAME : 0};
    if (options) {
        reading.token_column = options->token_column;
        reading.tag_column = options->tag_column;
    }
    return wg__tagged_words_load(path, tokenizer, labels, &reading);
}

/* The labels of a new model are the tags of its training text, which is tokenised as the checkpoint
 * says: so the tokenizer is read first. */
static int adapt(const wg_training_setup *setup, void (*note)(const char *message, void *context),
                 void *note_context, wg_model *model, wg_tokenizer **tokenizer) {
    const wg__head_origin origin = {
        .path = setup->checkpoint, .seed = setup->seed, .note = note, .context = note_context};
    wg__labels labels = {0};
    wg_tokenizer *own = wg_tokenizer_load(setup->checkpoint);
    wg__tagged_words *words = own ? read_words(setup, setup->training_path, own, &labels) : NULL;
    const int status =
        words ? wg__headed_encoder_adapt(&origin, WG_HEAD_WORDS, &labels, model, tokenizer) : -1;
    wg__tagged_words_free(words);
    wg_tokenizer_free(own);
    wg__labels_free(&labels);
    return status;
}

static int load(const char *path, wg_model *model, wg_tokenizer **tokenizer) {
    return wg__headed_encoder_load(path, WG_HEAD_WORDS, model, tokenizer);
}

static char *config(const wg_training *t) {
    return wg__headed_encoder_config(tagger_of(t->setup.model));
}

/* ---- Training ---- */

static int begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    wg__labels *labels = &tagger_of(setup->model)->labels;
    tagging *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine || wg_pair_frame_of(setup->tokenizer, setup->sequence, &mine->frame) < 0)
        return -1;
    mine->chosen = wg__alloc_array(setup->batch, sizeof *mine->chosen);
    if (setup->training_path)
        mine->training = read_words(setup, setup->training_path, setup->tokenizer, labels);
    if (setup->held_out_path && (mine->training || !setup->training_path))
        mine->held_out = read_words(setup, setup->held_out_path, setup->tokenizer, labels);
    if (wg_error_pending())
        return -1;
    if (!mine->training)
        return 0;
    t->fingerprint = (int64_t)wg__tagged_words_fingerprint(mine->training);
    t->examples = wg__tagged_words_windows(mine->training);
    return wg__begin_numbered_batches(t);
}

static void end(wg_training *t) {
    tagging *mine = t->context;
    if (!mine)
        return;
    wg__tagged_words_free(mine->training);
    wg__tagged_words_free(mine->held_out);
    wg__free(mine->chosen);
    wg__free(mine);
}

/* Logits of the tags at all places of the chosen windows, (B T, K), and the wanted tags, (B T). */
static wg_tensor *predict(const wg_training *t, const wg__tagged_words *words, int64_t count,
                          wg__tagged_batch *batch, wg_tensor **wanted) {
    const tagging *mine = t->context;
    if (wg__tagged_batch_read(words, &mine->frame, count, mine->chosen, batch) < 0)
        return NULL;
    const wg_model_inputs inputs = wg__pair_inputs(&batch->inputs);
    const wg__headed_encoder *model = tagger_of(t->setup.model);
    *wanted = wg_reshape(batch->labels, WG_DIMS(-1));
    return wg_reshape(wg__headed_encoder_words(tagger_of(t->setup.model), &inputs),
                      WG_DIMS(-1, model->labels.count));
}

static wg_tensor *next_loss(void *training, wg_metrics *metrics) {
    wg_training *t = training;
    const tagging *mine = t->context;
    wg__tagged_batch batch;
    wg_tensor *wanted, *logits;
    if (wg_batches_next(t->batches, mine->chosen) < 0 ||
        !(logits = predict(t, mine->training, t->setup.batch, &batch, &wanted)))
        return NULL;
    wg_tensor *right = wg_eq(wg_argmax(logits, 1, false), wanted);
    const double count = wg_item(wg_sum(wg_cast(right, WG_F64), WG_ALL, false));
    metrics->tokens += batch.inputs.tokens;
    if (wg_metrics_add(metrics, "accuracy", count / (double)batch.words, (double)batch.words) < 0)
        return NULL;
    return wg_cross_entropy(logits, wanted, WG_IGNORE_INDEX, NULL);
}

static int weigh(void *training, wg_loss_part *parts) {
    const wg_training *t = training;
    const tagging *mine = t->context;
    wg__tagged_batch batch;
    if (wg_batches_next(t->batches, mine->chosen) < 0 ||
        wg__tagged_batch_read(mine->training, &mine->frame, t->setup.batch, mine->chosen, &batch) <
            0)
        return -1;
    parts[0].count = (double)batch.words;
    return 0;
}

/* ---- Evaluation ---- */

/* Fills the predicted tags of the words of these windows; adds their loss. */
static int predict_batch(const wg_training *t, int64_t first, int64_t count, void *context,
                         wg_metrics *metrics) {
    int64_t *predicted = context;
    const tagging *mine = t->context;
    wg__tagged_batch batch;
    wg_tensor *wanted;
    for (int64_t i = 0; i < count; i++)
        mine->chosen[i] = first + i;
    wg_tensor *logits = predict(t, mine->held_out, count, &batch, &wanted);
    wg_tensor *best = wg_argmax(logits, 1, false);
    const double loss = wg_item(wg_cross_entropy(logits, wanted, WG_IGNORE_INDEX, NULL));
    if (!best || wg_error_pending())
        return -1;
    const int64_t *tags = wg_tensor_data(wanted);
    int64_t word = wg__tagged_words_window(mine->held_out, first);
    for (int64_t i = 0; i < wg_tensor_size(wanted, 0); i++)
        if (tags[i] != WG_IGNORE_INDEX)
            predicted[word++] = (int64_t)wg_at(best, &i);
    metrics->tokens += batch.inputs.tokens;
    return wg_metrics_add(metrics, "loss", loss, (double)batch.words);
}

static bool has_spans(const wg__labels *labels) {
    bool outside_alone = true;
    for (int64_t i = 0; i < labels->count; i++) {
        if (!wg__is_span_tag(labels->names[i]))
            return false;
        outside_alone &= labels->names[i][1] == '\0';
    }
    return !outside_alone;
}

/* `tags` has room for the wanted and the predicted names of the words of a sentence. */
static void count_spans(const tagging *mine, const wg__labels *labels, const int64_t *predicted,
                        const char **tags, wg__span_counts *counts) {
    const wg__tagged_words *words = mine->held_out;
    for (int64_t s = 0; s < wg__tagged_words_sentences(words); s++) {
        const int64_t first = wg__tagged_words_sentence(words, s);
        const int64_t count = wg__tagged_words_sentence(words, s + 1) - first;
        for (int64_t i = 0; i < count; i++) {
            tags[i] = labels->names[wg__tagged_words_tag(words, first + i)];
            tags[count + i] = labels->names[predicted[first + i]];
        }
        wg__spans_count(count, tags, tags + count, counts);
    }
}

static int add_spans(const tagging *mine, const wg__labels *labels, const int64_t *predicted,
                     wg_metrics *metrics) {
    wg__span_counts counts = {0};
    const char **tags =
        wg__alloc_array(wg__times(wg__tagged_words_count(mine->held_out), 2), sizeof *tags);
    if (!tags)
        return -1;
    count_spans(mine, labels, predicted, tags, &counts);
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

/* The shares of words whose tag is right, and of the commonest tag. */
static int add_accuracy(const tagging *mine, const wg__labels *labels, const int64_t *predicted,
                        wg_metrics *metrics) {
    const int64_t words = wg__tagged_words_count(mine->held_out);
    int64_t *counts = wg__calloc((size_t)labels->count, sizeof *counts), right = 0, most = 0;
    if (!counts)
        return -1;
    for (int64_t i = 0; i < words; i++) {
        const int64_t tag = wg__tagged_words_tag(mine->held_out, i), count = ++counts[tag];
        right += predicted[i] == tag;
        most = count > most ? count : most;
    }
    wg__free(counts);
    const double weight = (double)words;
    if (wg_metrics_add(metrics, "accuracy", (double)right / weight, weight) < 0)
        return -1;
    return wg_metrics_add(metrics, "majority", (double)most / weight, weight);
}

/* Word, tag and predicted tag a line, as conlleval reads them, an empty line behind a sentence. */
static int write_predictions(const char *path, const tagging *mine, const wg__labels *labels,
                             const int64_t *predicted) {
    const wg__tagged_words *words = mine->held_out;
    FILE *file = wg__predictions_open(path);
    for (int64_t s = 0; file && s < wg__tagged_words_sentences(words); s++) {
        const int64_t end = wg__tagged_words_sentence(words, s + 1);
        for (int64_t i = wg__tagged_words_sentence(words, s); i < end; i++)
            fprintf(file, "%s\t%s\t%s\n", wg__tagged_words_text(words, i),
                    labels->names[wg__tagged_words_tag(words, i)], labels->names[predicted[i]]);
        fputc('\n', file);
    }
    return file ? wg__predictions_close(file, path) : -1;
}

/* All of the held-out words, also during training. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const tagging *mine = t->context;
    const wg__labels *labels = &tagger_of(t->setup.model)->labels;
    const int64_t windows = wg__tagged_words_windows(mine->held_out);
    const int64_t words = wg__tagged_words_count(mine->held_out);
    int64_t *predicted = wg__calloc((size_t)words, sizeof *predicted);
    int status =
        wg__evaluate_examples(t, predicted ? 0 : -1, windows, predict_batch, predicted, metrics);
    if (status == 0) /* each word is in one window */
        status = wg_group_sum(t->setup.group, WG_GROUP_I64, words, predicted);
    if (status == 0)
        status = add_accuracy(mine, labels, predicted, metrics);
    if (status == 0 && has_spans(labels))
        status = add_spans(mine, labels, predicted, metrics);
    if (status == 0 && wg__writes_predictions(t, batches))
        status = write_predictions(t->setup.evaluation->predictions, mine, labels, predicted);
    wg__free(predicted);
    return status;
}

/* ---- Results ---- */

static void describe(const wg_training *t, FILE *stream) {
    const tagging *mine = t->context;
    fprintf(stream,
            "text   %lld sentences of %lld words with %lld tags, in %lld windows; %lld sentences "
            "to measure on\n",
            (long long)wg__tagged_words_sentences(mine->training),
            (long long)wg__tagged_words_count(mine->training),
            (long long)tagger_of(t->setup.model)->labels.count,
            (long long)wg__tagged_words_windows(mine->training),
            (long long)wg__tagged_words_sentences(mine->held_out));
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

const wg_objective wg_token_labels = {
    .name = "tokens",
    .title = "labels words, by parts of speech or as named entities (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .finetunes = true,
    .marks = {"architectures=ForTokenClassification"},
    .settings = {.where = "settings",
                 .size = sizeof(wg_token_labels_options),
                 .count = sizeof setting_rows / sizeof setting_rows[0],
                 .rows = setting_rows},
    .training = "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "
                "\"eval-every\": 500}",
    .evaluation = WG_EVALUATES_PREDICTIONS,
    .adapt = adapt,
    .load = load,
    .config = config,
    .begin = begin,
    .end = end,
    .loss = next_loss,
    .weigh = weigh,
    .evaluate = evaluate,
    .describe = describe,
    .metrics = rows,
    .headline = "f1,accuracy",
    .print = print,
};
