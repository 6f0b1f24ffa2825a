/* Masked language modelling on packed text, and the hybrid with causal language modelling: see
 * mlm.h. */
#include "objectives/mlm.h"

#include <math.h>
#include <string.h>

#include "data/batches/builder.h"
#include "data/tokenizer/kind.h"
#include "objectives/internal.h"
#include "objectives/masked_lm.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "mlm"

/* ---- Options ---- */

#define AT(member) offsetof(wg_mlm_options, member)

static const char *unit_name(int unit) {
    static const char *const names[] = {"token", "word", "span"};
    return unit >= 0 && unit <= WG_MASK_SPANS ? names[unit] : NULL;
}

#define MASKING_ROWS                                                                               \
    {.name = "masked-share",                                                                       \
     .kind = WG_SETTING_NUMBER,                                                                    \
     .offset = AT(masked_share),                                                                   \
     .low = 0.001,                                                                                 \
     .high = 1,                                                                                    \
     .fixed = true,                                                                                \
     .standard = "0.3",                                                                            \
     .argument = "X",                                                                              \
     .help = "mlm, hybrid: the share of tokens that are masked"},                                  \
        {.name = "final-masked-share",                                                             \
         .kind = WG_SETTING_NUMBER,                                                                \
         .offset = AT(final_masked_share),                                                         \
         .high = 1,                                                                                \
         .fixed = true,                                                                            \
         .standard = "0.15",                                                                       \
         .argument = "X",                                                                          \
         .help = "mlm, hybrid: the share at the last step, which --masked-share reaches in a "     \
                 "straight line; 0: it does not change"},                                          \
        {.name = "mask-unit",                                                                      \
         .kind = WG_SETTING_CHOICE,                                                                \
         .offset = AT(unit),                                                                       \
         .fixed = true,                                                                            \
         .standard = "\"token\"",                                                                  \
         .choice = unit_name,                                                                      \
         .argument = "NAME",                                                                       \
         .help = "mlm, hybrid: what is masked together: token, word, or span (of words)"},         \
    {                                                                                              \
        .name = "span-mean", .kind = WG_SETTING_NUMBER, .offset = AT(span_mean), .low = 1,         \
        .high = 10, .fixed = true, .standard = "3.0", .argument = "X",                             \
        .help = "mlm, hybrid: the mean of the geometric distribution of the lengths of spans"      \
    }

static const wg_setting mlm_setting_rows[] = {MASKING_ROWS};

static const wg_setting hybrid_setting_rows[] = {
    MASKING_ROWS,
    {.name = "causal-share",
     .kind = WG_SETTING_NUMBER,
     .offset = AT(causal_share),
     .high = 1,
     .above = true,
     .below = true,
     .fixed = true,
     .standard = "0.5",
     .argument = "X",
     .help = "hybrid: the share of sequences whose next tokens are predicted"},
};

/* ---- Batches ---- */

typedef struct packing {
    wg__mlm_batch_options options;
    double share; /* of tokens that are masked, now */
    const wg_dataset *text;
    int32_t class, separator, mask;
    wg__windows windows;
    int64_t *document_ends; /* (documents) the token behind each */
    bool *begins_word;      /* (V) */
    /* One sequence in the making; T + 1 entries each. */
    int32_t *read, *tokens;
    int64_t *units; /* where units begin that may be masked, closed by where the last one ends */
    bool *masked;
    /* One batch in the making; B T entries each. */
    int64_t *ids, *positions, *labels;
} packing;

/* Writes T + 1 tokens from `start` on, between [CLS] and, where documents end, [SEP]. */
static int read_sequence(packing *p, int64_t start) {
    const int64_t length = p->options.sequence + 1, documents = wg_dataset_documents(p->text);
    if (wg_dataset_read(p->text, start, length - 1, p->read) < 0)
        return -1;
    int64_t low = 0, high = documents - 1; /* the document of `start` */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (p->document_ends[middle] > start)
            high = middle;
        else
            low = middle + 1;
    }
    p->tokens[0] = p->class;
    for (int64_t t = 1, i = 0; t < length; t++)
        if (start + i == p->document_ends[low] && i > 0 && low < documents - 1) {
            p->tokens[t] = p->separator;
            low++;
        } else {
            p->tokens[t] = p->read[i++];
        }
    return 0;
}

/* Finds the units that may be masked; returns how many. A unit is a token, or else a word; the last
 * one ends with the sequence. */
static int64_t find_units(packing *p, int64_t *candidates) {
    const bool words = p->options.masking.unit != WG_MASK_TOKENS;
    int64_t count = 0;
    *candidates = 0;
    bool apart = true;
    for (int64_t t = 1; t < p->options.sequence; t++) {
        const int32_t token = p->tokens[t];
        if (token == p->separator) {
            apart = true;
            continue;
        }
        if (apart || !words || p->begins_word[token])
            p->units[count++] = t;
        apart = false;
        ++*candidates;
    }
    return count;
}

/* The end of the unit that begins at `start`. */
static int64_t unit_end(const packing *p, int64_t start) {
    int64_t end = start + 1;
    while (p->options.masking.unit != WG_MASK_TOKENS && end < p->options.sequence &&
           p->tokens[end] != p->separator && !p->begins_word[p->tokens[end]])
        end++;
    return end;
}

/* Replaces the tokens of `ids` from `first` to `end`, which are predicted: by [MASK] in 80 % of the
 * cases, in 10 % by random tokens, and in 10 % not at all. */
static void replace(packing *p, int64_t first, int64_t end, wg_generator *g, int64_t *ids) {
    const double chance = wg_random_uniform(g);
    const uint64_t vocabulary = (uint64_t)wg_dataset_vocabulary(p->text);
    for (int64_t t = first; t < end; t++) {
        p->masked[t] = true;
        if (chance < 0.8)
            ids[t] = p->mask;
        else if (chance < 0.9)
            ids[t] = (int64_t)wg_random_below(g, vocabulary);
    }
}

/* Masks units in random order; one that is longer than what is still wanted is passed over. */
static void mask_units(packing *p, int64_t count, int64_t wanted, wg_generator *g, int64_t *ids) {
    for (int64_t i = 0; i < count && wanted > 0; i++) {
        const int64_t j = wg__random_between(g, i, count - 1), start = p->units[j];
        p->units[j] = p->units[i];
        p->units[i] = start;
        const int64_t end = unit_end(p, start);
        if (end - start > wanted)
            continue;
        replace(p, start, end, g, ids);
        wanted -= end - start;
    }
}

/* Masks spans of words, which do not overlap. */
static void mask_spans(packing *p, int64_t count, int64_t wanted, wg_generator *g, int64_t *ids) {
    enum { LONGEST = 10, TRIES = 8 };
    const double stay = 1 - 1 / p->options.masking.span_mean;
    for (int64_t tries = TRIES * count; wanted > 0 && tries > 0; tries--) {
        int64_t words = 1;
        while (words < LONGEST && wg_random_uniform(g) < stay)
            words++;
        const int64_t first = wg__random_between(g, 0, count - 1);
        const int64_t start = p->units[first];
        int64_t end = start;
        for (int64_t w = first; w < count && w < first + words; w++) {
            if (p->units[w] != end && w > first) /* a [SEP] stands between them */
                break;
            const int64_t next = unit_end(p, p->units[w]);
            if (next - start > wanted || p->masked[p->units[w]])
                break;
            end = next;
        }
        if (end == start)
            continue;
        replace(p, start, end, g, ids);
        wanted -= end - start;
    }
}

/* Makes row `row` of the masked sequences; adds to *count what is predicted. */
static void mask_sequence(packing *p, int64_t row, wg_generator g, int64_t *count) {
    const int64_t length = p->options.sequence;
    int64_t *ids = p->ids + row * length, candidates;
    for (int64_t t = 0; t < length; t++)
        ids[t] = p->tokens[t];
    memset(p->masked, 0, (size_t)length * sizeof *p->masked);
    const int64_t units = find_units(p, &candidates);
    const int64_t wanted = (int64_t)fmax(1, rint(p->share * (double)candidates));
    if (units > 0 && p->options.masking.unit == WG_MASK_SPANS)
        mask_spans(p, units, wanted, &g, ids);
    else
        mask_units(p, units, wanted, &g, ids);
    for (int64_t t = 0; t < length; t++)
        if (p->masked[t]) {
            p->positions[*count] = row * length + t - p->options.predicts_from_before;
            p->labels[(*count)++] = p->tokens[t];
        }
}

/* Whether a sequence is causal: that share of each stretch of an epoch is, however the stretch is
 * cut into batches. */
static bool is_causal(const packing *p, const wg_example *example) {
    const double share = p->options.masking.causal_share, place = (double)example->place;
    return floor((place + 1) * share) > floor(place * share);
}

static int build_masked(packing *p, int64_t all, const wg_example *examples, wg__mlm_batch *batch) {
    int64_t rows = 0, count = 0;
    for (int64_t i = 0; i < all; i++) {
        if (is_causal(p, &examples[i]))
            continue;
        if (read_sequence(p, p->windows.starts[i]) < 0)
            return -1;
        mask_sequence(p, rows++, examples[i].generator, &count);
    }
    if (rows == 0)
        return 0;
    batch->ids = wg_from_array(WG_I64, WG_DIMS(rows, p->options.sequence), p->ids);
    batch->positions = wg_from_array(WG_I64, WG_DIMS(count), p->positions);
    batch->labels = wg_from_array(WG_I64, WG_DIMS(count), p->labels);
    return batch->ids && batch->positions && batch->labels ? 0 : -1;
}

static int build_causal(packing *p, int64_t all, const wg_example *examples, wg__mlm_batch *batch) {
    const int64_t length = p->options.sequence;
    int64_t rows = 0;
    for (int64_t i = 0; i < all; i++) {
        if (!is_causal(p, &examples[i]))
            continue;
        if (read_sequence(p, p->windows.starts[i]) < 0)
            return -1;
        for (int64_t t = 0; t < length; t++) {
            p->ids[rows * length + t] = p->tokens[t];
            p->labels[rows * length + t] = p->tokens[t + 1];
        }
        rows++;
    }
    if (rows == 0)
        return 0;
    batch->causal_ids = wg_from_array(WG_I64, WG_DIMS(rows, length), p->ids);
    batch->causal_labels = wg_from_array(WG_I64, WG_DIMS(rows, length), p->labels);
    return batch->causal_ids && batch->causal_labels ? 0 : -1;
}

static int build(void *context, int64_t count, const wg_example *examples, void *built) {
    packing *p = context;
    wg__mlm_batch *batch = built;
    *batch = (wg__mlm_batch){.tokens = count * p->options.sequence};
    if (build_masked(p, count, examples, batch) < 0 ||
        build_causal(p, count, examples, batch) < 0) {
        *batch = (wg__mlm_batch){0};
        return -1;
    }
    return 0;
}

static int plan(void *context, wg_epoch *epoch) {
    return wg__windows_plan(&((packing *)context)->windows, epoch);
}

static void take(void *context, int64_t row, const wg_example *example) {
    wg__windows_take(&((packing *)context)->windows, row, example);
}

/* ---- Making them ---- */

static int check_masking(const wg_mlm_options *o) {
    if (!(o->masked_share > 0 && o->masked_share <= 1) ||
        !(o->final_masked_share >= 0 && o->final_masked_share <= 1) ||
        !(o->causal_share >= 0 && o->causal_share < 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "masked_share is %g, final_masked_share %g and causal_share %g; they must "
                       "be shares of 1",
                       o->masked_share, o->final_masked_share, o->causal_share);
    if (!unit_name(o->unit))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "there is no unit %d to mask", o->unit);
    if (o->unit == WG_MASK_SPANS && !(o->span_mean >= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "span_mean is %g; it must be 1 or more",
                       o->span_mean);
    return 0;
}

static int set_tokens(packing *p, const wg_tokenizer *tokenizer) {
    p->class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    p->separator = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    p->mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    if (p->class < 0 || p->separator < 0 || p->mask < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the %s tokenizer has not all of [CLS], [SEP] and [MASK]; --tokenizer "
                       "wordpiece learns one that has",
                       wg_tokenizer_kind(tokenizer));
    const int64_t size = wg_tokenizer_size(tokenizer);
    if (wg__batch_vocabulary(WHERE, p->text, size) < 0)
        return -1;
    p->begins_word = wg__alloc_array(size, sizeof *p->begins_word);
    for (int32_t id = 0; p->begins_word && id < size; id++)
        p->begins_word[id] = wg__token_begins_word(tokenizer, id);
    return p->begins_word ? 0 : -1;
}

static int find_documents(packing *p) {
    const int64_t count = wg_dataset_documents(p->text);
    p->document_ends = wg__alloc_array(count, sizeof *p->document_ends);
    for (int64_t d = 0; p->document_ends && d < count; d++)
        p->document_ends[d] = wg__document_token(p->text, d + 1);
    return p->document_ends && !wg_error_pending() ? 0 : -1;
}

static int allocate(packing *p) {
    const size_t length = (size_t)p->options.sequence + 1;
    const size_t all = (size_t)wg__times(p->options.batch, p->options.sequence);
    p->read = wg__alloc_array(length, sizeof *p->read);
    p->tokens = wg__alloc_array(length, sizeof *p->tokens);
    p->units = wg__alloc_array(length, sizeof *p->units);
    p->masked = wg__alloc_array(length, sizeof *p->masked);
    p->ids = wg__alloc_array(all, sizeof *p->ids);
    p->positions = wg__alloc_array(all, sizeof *p->positions);
    p->labels = wg__alloc_array(all, sizeof *p->labels);
    return p->read && p->tokens && p->units && p->masked && p->ids && p->positions && p->labels
               ? 0
               : -1;
}

static void free_packing(void *context) {
    packing *p = context;
    wg__free(p->windows.starts);
    wg__free(p->document_ends);
    wg__free(p->begins_word);
    wg__free(p->read);
    wg__free(p->tokens);
    wg__free(p->units);
    wg__free(p->masked);
    wg__free(p->ids);
    wg__free(p->positions);
    wg__free(p->labels);
    wg__free(p);
}

static int begin_packing(packing *p, const wg_tokenizer *tokenizer) {
    wg__mlm_batch_options *o = &p->options;
    return wg__batch_sizes(WHERE, &o->batch, &o->sequence) < 0 || check_masking(&o->masking) < 0 ||
                   wg__windows_begin(&p->windows, WHERE, p->text, o->sequence - 1, o->batch) < 0 ||
                   set_tokens(p, tokenizer) < 0 || find_documents(p) < 0
               ? -1
               : allocate(p);
}

wg_batches *wg__mlm_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                const wg__mlm_batch_options *options) {
    packing *p = text && tokenizer ? wg__calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    *p = (packing){.options = *options, .share = options->masking.masked_share, .text = text};
    if (begin_packing(p, tokenizer) < 0) {
        free_packing(p);
        return NULL;
    }
    wg_batches_options batching = {.batch = p->options.batch, .seed = p->options.seed};
    wg__use_weights(text, &batching);
    return wg_batches_new(
        &(wg_batch_source){
            .context = p, .build = build, .plan = plan, .take = take, .free = free_packing},
        &batching);
}

void wg__mlm_batches_set_share(wg_batches *batches, double masked_share) {
    ((packing *)wg__batches_context(batches))->share = masked_share;
}

/* ---- Training ---- */

typedef struct mlm {
    wg_mlm_options options;
    wg__held_out held_out;
} mlm;

/* The share that evaluations mask, whatever training does, so that their losses compare. */
static const double evaluated_share = 0.15;

static bool is_hybrid(const wg_training *t) {
    return t->objective == &wg_hybrid;
}

static wg_batches *make_batches_of(const wg_training_setup *setup, const wg_dataset *text,
                                   const wg_mlm_options *masking, bool hybrid) {
    return wg__mlm_batches_new(text, setup->tokenizer,
                               &(wg__mlm_batch_options){.batch = setup->batch,
                                                        .sequence = setup->sequence,
                                                        .seed = setup->seed,
                                                        .masking = *masking,
                                                        .predicts_from_before = hybrid});
}

static int begin(wg_training *t) {
    const wg_training_setup *setup = &t->setup;
    mlm *mine = t->context = wg__calloc(1, sizeof *mine);
    if (!mine)
        return -1;
    if (is_hybrid(t) && !setup->model->type->encoder.takes_causal)
        return wg_fail(WG_ERROR_ARGUMENT, "hybrid",
                       "a %s model has no causal attention, with which next tokens are predicted; "
                       "--objective mlm trains it on masked tokens alone",
                       setup->model->type->name);
    mine->options = *(const wg_mlm_options *)setup->options;
    if (setup->training) {
        t->fingerprint = wg_dataset_fingerprint(setup->training);
        t->batches = make_batches_of(setup, setup->training, &mine->options, is_hybrid(t));
        if (!t->batches)
            return -1;
    }
    if (setup->held_out) {
        wg_mlm_options measured = mine->options;
        measured.masked_share = evaluated_share;
        mine->held_out.batches = make_batches_of(setup, setup->held_out, &measured, is_hybrid(t));
        if (!mine->held_out.batches)
            return -1;
        mine->held_out.start = wg_batches_position(mine->held_out.batches);
    }
    return 0;
}

static void end(wg_training *t) {
    mlm *mine = t->context;
    if (mine)
        wg_batches_free(mine->held_out.batches);
    wg__free(mine);
}

/* The share of masked tokens in this step of the run. */
static double share_now(const wg_training *t) {
    const wg_mlm_options *o = &((const mlm *)t->context)->options;
    if (o->final_masked_share == 0 || t->run_examples == 0)
        return o->masked_share;
    const double done = (double)t->step_examples / (double)t->run_examples;
    return o->masked_share + fmin(done, 1) * (o->final_masked_share - o->masked_share);
}

/* How many of the sequences of a batch are masked, as a share. */
static double masked_rows(const wg__mlm_batch *batch) {
    const double masked = batch->ids ? (double)wg_tensor_count(batch->ids) : 0;
    return masked / (double)batch->tokens;
}

/* The loss of a batch; and its metrics. That of hybrid has two parts, the mean losses of masked and
 * of next tokens, each times the share of its sequences. */
static wg_tensor *batch_loss(const wg_training *t, const wg__mlm_batch *batch, int64_t parts,
                             wg_metrics *metrics) {
    const wg_model *model = t->setup.model;
    wg_tensor *masked = NULL, *causal = NULL;
    metrics->tokens += batch->tokens;
    /* All ranks name all metrics, also one whose batch has sequences of one kind only. */
    if (is_hybrid(t) && (wg_metrics_add(metrics, "mlm_loss", NAN, 0) < 0 ||
                         wg_metrics_add(metrics, "mlm_accuracy", NAN, 0) < 0 ||
                         wg_metrics_add(metrics, "causal_loss", NAN, 0) < 0))
        return NULL;
    if (batch->ids) {
        int64_t correct = 0;
        wg_tensor *ids = wg__cut_sequences(batch->ids, parts); /* flat positions stay the same */
        wg_tensor *hidden = wg_model_forward(
            model, &(wg_model_inputs){.ids = ids, .output_positions = batch->positions});
        masked = wg_model_loss(model, hidden, NULL, batch->labels,
                               &(wg_cross_entropy_options){.correct = &correct});
        const double count = (double)wg_tensor_count(batch->labels);
        if (!masked || wg_metrics_add(metrics, "mlm_loss", wg_item(masked), count) < 0 ||
            wg_metrics_add(metrics, "mlm_accuracy", (double)correct / count, count) < 0)
            return NULL;
    }
    if (batch->causal_ids) {
        wg_tensor *ids = wg__cut_sequences(batch->causal_ids, parts);
        wg_tensor *hidden = wg_model_forward(model, &(wg_model_inputs){.ids = ids, .causal = true});
        causal = wg_model_loss(model, hidden, NULL, wg__cut_sequences(batch->causal_labels, parts),
                               NULL);
        const double count = (double)wg_tensor_count(batch->causal_labels);
        if (!causal || wg_metrics_add(metrics, "causal_loss", wg_item(causal), count) < 0)
            return NULL;
    }
    if (!is_hybrid(t))
        return masked;
    const double share = masked_rows(batch);
    masked = masked ? wg_mul_scalar(masked, share) : wg_zeros_like(causal);
    causal = causal ? wg_mul_scalar(causal, 1 - share) : wg_zeros_like(masked);
    return wg_stack(2, (wg_tensor *[]){masked, causal}, 0);
}

static int next_batch(const wg_training *t, wg__mlm_batch *batch) {
    wg__mlm_batches_set_share(t->batches, share_now(t));
    return wg_batches_next(t->batches, batch);
}

static wg_tensor *next_loss(void *training, wg_metrics *metrics) {
    const wg_training *t = training;
    wg__mlm_batch batch;
    return next_batch(t, &batch) < 0 ? NULL : batch_loss(t, &batch, wg__sequence_parts(t), metrics);
}

static int weigh(void *training, wg_loss_part *parts) {
    wg__mlm_batch batch;
    if (next_batch(training, &batch) < 0)
        return -1;
    const double share = masked_rows(&batch);
    if (batch.labels)
        parts[0].count = (double)wg_tensor_count(batch.labels);
    if (batch.causal_labels)
        parts[1].count = (double)wg_tensor_count(batch.causal_labels);
    parts[0].share = share;
    parts[1].share = 1 - share;
    return 0;
}

/* ---- Evaluation ---- */

static int evaluate_batch(const wg_training *t, wg_metrics *metrics) {
    const mlm *mine = t->context;
    const wg_dataset *text = t->setup.training ? t->setup.training : t->setup.held_out;
    wg__mlm_batch batch;
    if (wg_batches_next(mine->held_out.batches, &batch) < 0)
        return -1;
    if (!batch_loss(t, &batch, 1, metrics))
        return -1;
    return !batch.labels ? 0
                         : wg_metrics_add(metrics, "unigram_loss",
                                          wg_dataset_unigram_loss(text, batch.labels, NULL),
                                          (double)wg_tensor_count(batch.labels));
}

/* The loss of all sequences as one batch. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const wg__held_out *held_out = &((const mlm *)t->context)->held_out;
    if (wg__evaluate_batches(t, held_out, batches, evaluate_batch, metrics) < 0)
        return -1;
    const double tokens = (double)metrics->tokens;
    const double share = wg_metrics_weight(metrics, "causal_loss") / tokens;
    const double masked = share < 1 ? (1 - share) * wg_metrics_get(metrics, "mlm_loss") : 0;
    const double causal = share > 0 ? share * wg_metrics_get(metrics, "causal_loss") : 0;
    return wg_metrics_add(metrics, "loss", masked + causal, tokens);
}

/* ---- Results ---- */

static const wg_metric_row rows[] = {
    {.name = "mlm_loss", .weight = "mlm_tokens"},
    {.name = "unigram_loss"},
    {.name = "mlm_accuracy"},
    {.name = "causal_loss", .weight = "causal_tokens", .optional = true},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    const double loss = wg_metrics_get(metrics, "mlm_loss");
    fprintf(stream, "masked words     loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n", loss,
            exp(loss), 100 * wg_metrics_get(metrics, "mlm_accuracy"),
            wg_metrics_weight(metrics, "mlm_loss"));
    fprintf(stream, "by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    if (wg_metrics_weight(metrics, "causal_loss") > 0)
        fprintf(stream, "next tokens      loss %.4f, perplexity %.1f; %.0f tokens\n",
                wg_metrics_get(metrics, "causal_loss"), exp(wg_metrics_get(metrics, "causal_loss")),
                wg_metrics_weight(metrics, "causal_loss"));
}

/* ---- The records ---- */

static wg_batches *make_batches(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                int64_t batch, int64_t sequence, uint64_t seed) {
    const wg_training_setup setup = {
        .tokenizer = tokenizer, .batch = batch, .sequence = sequence, .seed = seed};
    return make_batches_of(&setup, text, &(wg_mlm_options){.masked_share = 0.3}, false);
}

static int fill(const wg_model *model, const wg_tokenizer *tokenizer, const wg_use_options *options,
                const char *text, wg_filled *filled) {
    return wg__fill_masks(model, tokenizer, options, text, false, filled);
}

static int fill_from_before(const wg_model *model, const wg_tokenizer *tokenizer,
                            const wg_use_options *options, const char *text, wg_filled *filled) {
    return wg__fill_masks(model, tokenizer, options, text, true, filled);
}

static int score(const wg_model *model, const wg_tokenizer *tokenizer,
                 const wg_score_options *options, const wg_text_batch *texts, wg_score *scores) {
    return wg__score_masks(model, tokenizer, options, texts, false, scores);
}

static int score_hybrid(const wg_model *model, const wg_tokenizer *tokenizer,
                        const wg_score_options *options, const wg_text_batch *texts,
                        wg_score *scores) {
    if (options->causal)
        return wg__score_next_tokens(model, wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS),
                                     options, texts, scores);
    return wg__score_masks(model, tokenizer, options, texts, true, scores);
}

#define SETTINGS(setting_rows)                                                                     \
    {                                                                                              \
        .where = "settings", .size = sizeof(wg_mlm_options),                                       \
        .count = sizeof(setting_rows) / sizeof(setting_rows)[0], .rows = setting_rows              \
    }

const wg_objective wg_mlm = {
    .name = "mlm",
    .title = "predicts masked words of packed text (Liu et al. 2019)",
    .shapes = WG_ENCODER,
    .text = WG_TEXT_SENTENCES,
    .settings = SETTINGS(mlm_setting_rows),
    .cuts_sequences = true,
    .batches = make_batches,
    .batch_size = sizeof(wg__mlm_batch),
    .batch_tokens = offsetof(wg__mlm_batch, tokens),
    .begin = begin,
    .end = end,
    .loss = next_loss,
    .weigh = weigh,
    .evaluate = evaluate,
    .describe = wg__describe_sentences,
    .metrics = rows,
    .print = print,
    .fills = WG_FILLS_BY_RANK,
    .fill = fill,
    .score_frame = 2,
    .scores_within_words = true,
    .score = score,
};

const wg_objective wg_hybrid = {
    .name = "hybrid",
    .title = "predicts masked and next words in turn (GPT-BERT, Charpentier & Samuel 2024)",
    .shapes = WG_ENCODER,
    .text = WG_TEXT_SENTENCES,
    .settings = SETTINGS(hybrid_setting_rows),
    .cuts_sequences = true,
    .batches = make_batches,
    .batch_size = sizeof(wg__mlm_batch),
    .batch_tokens = offsetof(wg__mlm_batch, tokens),
    .begin = begin,
    .end = end,
    .loss = next_loss,
    .weigh = weigh,
    .evaluate = evaluate,
    .describe = wg__describe_sentences,
    .metrics = rows,
    .print = print,
    .fills = WG_FILLS_BY_RANK,
    .fill = fill_from_before,
    .score_frame = 2,
    .scores_within_words = true,
    .scores_causally = true,
    .score = score_hybrid,
};
