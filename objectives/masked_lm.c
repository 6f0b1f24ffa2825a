/* Masked language modelling: losses, evaluation, filling and scoring. See masked_lm.h. */
#include "objectives/masked_lm.h"

#include <math.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define AT(member) offsetof(wg_mlm_options, member)

const char *wg__mask_unit_name(int unit) {
    static const char *const names[] = {"token", "word", "span"};
    return unit >= 0 && unit <= WG_MASK_SPANS ? names[unit] : NULL;
}

/* The settings of mlm, then the setting that only hybrid has. */
static const wg_setting setting_rows[] = {
    {"masked-share", WG_SETTING_NUMBER, AT(masked_share), .low = 0.001, .high = 1, .fixed = true,
     .standard = "0.3", .argument = "X",
     .help = "mlm, hybrid: the share of tokens that are masked"},
    {"final-masked-share", WG_SETTING_NUMBER, AT(final_masked_share), .high = 1, .fixed = true,
     .standard = "0.15", .argument = "X",
     .help = "mlm, hybrid: the share at the last step, which --masked-share reaches in a straight "
             "line; 0: it does not change"},
    {"mask-unit", WG_SETTING_CHOICE, AT(unit), .fixed = true, .standard = "\"token\"",
     .choice = wg__mask_unit_name, .argument = "NAME",
     .help = "mlm, hybrid: what is masked together: token, word, or span (of words)"},
    {"span-mean", WG_SETTING_NUMBER, AT(span_mean), .low = 1, .high = 10, .fixed = true,
     .standard = "3.0", .argument = "X",
     .help = "mlm, hybrid: the mean of the geometric distribution of the lengths of spans"},
    {"causal-share", WG_SETTING_NUMBER, AT(causal_share), .high = 1, .above = true, .below = true,
     .fixed = true, .standard = "0.5", .argument = "X",
     .help = "hybrid: the share of sequences whose next tokens are predicted"},
};
enum { MLM_ROWS = sizeof setting_rows / sizeof *setting_rows - 1 };

static wg_batches *pair_batches(const wg_training_setup *setup, const wg_dataset *text,
                                bool measured) {
    (void)measured;
    return wg__pair_batches_new(text, setup->tokenizer,
                                &(wg__pair_batch_options){.batch = setup->batch,
                                                          .sequence = setup->sequence,
                                                          .seed = setup->seed});
}

/* Evaluations always mask the same share, so that their losses compare. */
static wg_batches *packed_batches_of(const wg_training_setup *setup, const wg_dataset *text,
                                     bool measured, bool from_before) {
    const wg_mlm_options *options = setup->options;
    wg__packed_batch_options o = {.batch = setup->batch,
                                  .sequence = setup->sequence,
                                  .seed = setup->seed,
                                  .masking =
                                      options ? *options : (wg_mlm_options){.masked_share = 0.3},
                                  .predicts_from_before = from_before};
    if (measured)
        o.masking.masked_share = 0.15;
    return wg__packed_batches_new(text, setup->tokenizer, &o);
}

static wg_batches *packed_batches(const wg_training_setup *setup, const wg_dataset *text,
                                  bool measured) {
    return packed_batches_of(setup, text, measured, false);
}

static wg_batches *hybrid_batches(const wg_training_setup *setup, const wg_dataset *text,
                                  bool measured) {
    return packed_batches_of(setup, text, measured, true);
}

static int64_t count_labels(wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *counted = wg_ne(labels, wg_scalar(wg_tensor_dtype(labels), WG_IGNORE_INDEX));
    const int64_t count = (int64_t)wg_item(wg_sum(counted, WG_ALL, false));
    wg_scope_end(&scope, NULL);
    return count;
}

/* The losses of masked words; of next sentences, if the model has a head for them: it reads the
 * pooled first position of each sequence; and of next tokens. */
int wg__masked_loss_of(const wg_model *model, const wg__masked_batch *batch, int64_t sequence_parts,
                       wg__masked_loss *loss) {
    const wg_model_type *type = model->type;
    const bool pairs = batch->next_sentence_labels && type->encoder.next_sentence;
    wg_tensor *positions = batch->positions;
    *loss = (wg__masked_loss){0};
    if (batch->ids || !batch->causal_ids) {
        const int64_t words = positions ? wg_tensor_count(positions) : 0;
        if (pairs) { /* the masked positions (N), then the first ones (B) */
            const int64_t rows = wg_tensor_size(batch->ids, 0);
            const int64_t length = wg_tensor_size(batch->ids, 1);
            wg_tensor *first = wg_arange(WG_I64, 0, (double)(rows * length), (double)length);
            positions = wg_cat(WG_TENSORS(positions, first), 0);
        }
        const wg_model_inputs inputs = {
            .ids = wg__cut_sequences(batch->ids, sequence_parts), /* flat positions stay the same */
            .token_type_ids = batch->token_type_ids,
            .keep = batch->keep,
            .output_positions = positions};
        wg_tensor *hidden = wg_model_forward(model, &inputs);
        loss->count[0] = batch->labels ? count_labels(batch->labels) : 0;
        loss->parts[0] =
            wg_model_loss(model, pairs ? wg_slice(hidden, 0, 0, words, 1) : hidden, NULL,
                          batch->labels, &(wg_cross_entropy_options){.correct = &loss->correct[0]});
        if (pairs) {
            wg_tensor *first = wg_unsqueeze(wg_slice(hidden, 0, words, WG_END, 1), 1);
            wg_tensor *pooled =
                type->encoder.pool(type->encoder.of(model->module), first, batch->keep);
            loss->count[1] = count_labels(batch->next_sentence_labels);
            loss->parts[1] = wg_linear_loss(
                type->encoder.next_sentence(model->module), pooled, batch->next_sentence_labels,
                WG_IGNORE_INDEX, &(wg_cross_entropy_options){.correct = &loss->correct[1]});
        }
    }
    if (batch->causal_ids) {
        wg_tensor *ids = wg__cut_sequences(batch->causal_ids, sequence_parts);
        wg_tensor *hidden = wg_model_forward(model, &(wg_model_inputs){.ids = ids, .causal = true});
        loss->count[1] = wg_tensor_count(batch->causal_labels);
        loss->parts[1] = wg_model_loss(
            model, hidden, NULL, wg__cut_sequences(batch->causal_labels, sequence_parts), NULL);
    }
    if (!wg_error_pending())
        return 0;
    *loss = (wg__masked_loss){0};
    return -1;
}

static int begin(wg_training *t) {
    const wg_model_type *type = t->setup.model->type;
    if (t->objective != &wg_hybrid || type->encoder.takes_causal)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, "hybrid",
                   "a %s model has no causal attention, with which next tokens are predicted; "
                   "--objective mlm trains it on masked tokens alone",
                   type->name);
}

/* Sets the share of masked tokens of this step of the run. */
static void begin_step(wg_training *t) {
    const wg_mlm_options *o = t->setup.options;
    if (t->objective == &wg_masked_lm || o->final_masked_share == 0 || t->run_examples == 0)
        return;
    const double done = fmin((double)t->step_examples / (double)t->run_examples, 1);
    wg__packed_batches_set_share(t->batches, o->masked_share +
                                                 done * (o->final_masked_share - o->masked_share));
}

/* The share of the sequences of a batch that are masked, not causal. */
static double masked_rows(const wg__masked_batch *batch) {
    return batch->ids ? (double)wg_tensor_count(batch->ids) / (double)batch->tokens : 0;
}

/* Adds the metrics of the losses of a batch. All ranks name all metrics of hybrid, even if a batch
 * has only masked or only causal sequences. */
static int add_metrics(const wg_training *t, const wg__masked_loss *loss, wg_metrics *metrics) {
    const bool hybrid = t->objective == &wg_hybrid;
    const char *const names[2][2] = {
        {"mlm_loss", "mlm_accuracy"},
        {hybrid ? "causal_loss" : "nsp_loss", hybrid ? NULL : "nsp_accuracy"}};
    for (int i = 0; i < 2; i++) {
        const double count = loss->parts[i] ? (double)loss->count[i] : 0;
        const double mean = loss->parts[i] ? wg_item(loss->parts[i]) : NAN;
        if (!loss->parts[i] && !hybrid)
            continue;
        if (wg_metrics_add(metrics, names[i][0], mean, count) < 0 ||
            (names[i][1] &&
             wg_metrics_add(metrics, names[i][1], (double)loss->correct[i] / count, count) < 0))
            return -1;
    }
    return 0;
}

/* In hybrid each part is weighted by the share of its sequences. */
static wg_tensor *loss_of(wg_training *t, const void *read, wg_metrics *metrics) {
    const wg__masked_batch *batch = read;
    wg__masked_loss loss;
    if (wg__masked_loss_of(t->setup.model, batch, wg__sequence_parts(t), &loss) < 0 ||
        add_metrics(t, &loss, metrics) < 0)
        return NULL;
    wg_tensor **parts = loss.parts;
    if (t->objective == &wg_hybrid) {
        const double share = masked_rows(batch);
        parts[0] = parts[0] ? wg_mul_scalar(parts[0], share) : wg_zeros_like(parts[1]);
        parts[1] = parts[1] ? wg_mul_scalar(parts[1], 1 - share) : wg_zeros_like(parts[0]);
    }
    return parts[1] ? wg_stack(2, parts, 0) : parts[0];
}

static void weigh(const wg_training *t, const void *read, wg_loss_part *parts) {
    const wg__masked_batch *batch = read;
    wg_tensor *others =
        batch->next_sentence_labels ? batch->next_sentence_labels : batch->causal_labels;
    parts[0].count = batch->labels ? (double)wg_tensor_count(batch->labels) : 0;
    parts[1].count = others ? (double)wg_tensor_count(others) : 0;
    if (t->objective != &wg_masked_lm) {
        parts[0].share = masked_rows(batch);
        parts[1].share = 1 - parts[0].share;
    }
}

static int measure(wg_training *t, const void *read, wg_metrics *metrics) {
    const wg__masked_batch *batch = read;
    const wg_dataset *text = t->setup.training ? t->setup.training : t->setup.held_out;
    wg__masked_loss loss;
    if (wg__masked_loss_of(t->setup.model, batch, 1, &loss) < 0 ||
        add_metrics(t, &loss, metrics) < 0)
        return -1;
    if (batch->labels &&
        wg_metrics_add(metrics, "unigram_loss", wg_dataset_unigram_loss(text, batch->labels, NULL),
                       (double)wg_tensor_count(batch->labels)) < 0)
        return -1;
    if (!batch->next_sentence_labels || !t->setup.model->type->encoder.next_sentence)
        return 0;
    wg_tensor *random = wg_cast(batch->next_sentence_labels, WG_F64);
    return wg_metrics_add(metrics, "nsp_random", wg_item(wg_mean(random, 0, NULL, false)),
                          (double)t->setup.batch);
}

/* The loss of all sequences as one batch: of pairs a sum, of packed text a mean over tokens. */
static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    if (wg__evaluate_batches(t, batches, false, measure, metrics) < 0)
        return -1;
    const double masked = wg_metrics_get(metrics, "mlm_loss");
    if (t->objective == &wg_masked_lm) {
        const double next =
            t->setup.model->type->encoder.next_sentence ? wg_metrics_get(metrics, "nsp_loss") : 0;
        return wg_metrics_add(metrics, "loss", masked + next,
                              wg_metrics_weight(metrics, "mlm_loss"));
    }
    const double tokens = (double)metrics->tokens;
    const double share = wg_metrics_weight(metrics, "causal_loss") / tokens;
    const double causal = share > 0 ? share * wg_metrics_get(metrics, "causal_loss") : 0;
    return wg_metrics_add(metrics, "loss", (share < 1 ? (1 - share) * masked : 0) + causal, tokens);
}

/* How often always guessing the commoner answer is right. */
static double chance(const wg_metrics *metrics) {
    const double random = wg_metrics_get(metrics, "nsp_random");
    return fmax(random, 1 - random);
}

static const wg_metric_row rows[] = {
    {.name = "mlm_loss", .weight = "mlm_tokens"},
    {.name = "unigram_loss"},
    {.name = "mlm_accuracy"},
    {.name = "nsp_loss", .weight = "nsp_pairs", .optional = true},
    {.name = "nsp_accuracy", .optional = true},
    {.name = "nsp_chance", .value = chance, .of = "nsp_random", .optional = true},
    {.name = "causal_loss", .weight = "causal_tokens", .optional = true},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    const double loss = wg_metrics_get(metrics, "mlm_loss");
    fprintf(stream, "masked words     loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n", loss,
            exp(loss), 100 * wg_metrics_get(metrics, "mlm_accuracy"),
            wg_metrics_weight(metrics, "mlm_loss"));
    fprintf(stream, "by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    if (wg_metrics_weight(metrics, "nsp_loss") > 0) {
        fprintf(stream, "next sentences   loss %.4f, accuracy %.1f %% of %.0f pairs\n",
                wg_metrics_get(metrics, "nsp_loss"), 100 * wg_metrics_get(metrics, "nsp_accuracy"),
                wg_metrics_weight(metrics, "nsp_loss"));
        fprintf(stream, "by guessing           accuracy %.1f %%\n", 100 * chance(metrics));
    }
    if (wg_metrics_weight(metrics, "causal_loss") > 0)
        fprintf(stream, "next tokens      loss %.4f, perplexity %.1f; %.0f tokens\n",
                wg_metrics_get(metrics, "causal_loss"), exp(wg_metrics_get(metrics, "causal_loss")),
                wg_metrics_weight(metrics, "causal_loss"));
}

/* Encodes [CLS] text [SEP], with "[MASK]" in the text read as the token. */
static int encode(const wg_tokenizer *tokenizer, const char *text, wg_token_list *list) {
    const int32_t class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    const int32_t separator = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    if (class < 0 || separator < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "the %s tokenizer has no tokens that begin and end a text; a folder of "
                       "Hugging Face's names them in special_tokens_map.json, \"cls_token\" and "
                       "\"sep_token\"",
                       wg_tokenizer_kind(tokenizer));
    if (wg_token_list_append(list, class) < 0 ||
        wg_tokenizer_encode(tokenizer, text, -1, &(wg_encode_options){.special_tokens = true},
                            list) < 0)
        return -1;
    return wg_token_list_append(list, separator);
}

/* Ranks the tokens for each [MASK] of a text. */
static int fill_masks(const wg_model *model, const wg_tokenizer *tokenizer,
                      const wg_use_options *options, const char *text, bool from_before,
                      wg_filled *filled) {
    enum { USUAL_TOP = 5 };
    const int32_t mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    wg_token_list list = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = encode(tokenizer, text, &list);
    int64_t *places = wg__alloc_array(list.count + 1, sizeof *places), masks = 0;
    for (int64_t i = 0; places && i < list.count; i++)
        if (list.ids[i] == mask)
            places[masks++] = i - from_before;
    if (status == 0 && places && masks == 0)
        status = wg_fail(WG_ERROR_ARGUMENT, "fill",
                         "there is no [MASK] in '%.200s'; write it where a word is wanted", text);
    wg_tensor *probabilities = NULL; /* (masks, V) */
    if (status == 0 && places) {
        const wg_model_inputs inputs = {
            .ids = wg_from_array(WG_I32, WG_DIMS(1, list.count), list.ids),
            .output_positions = wg_from_array(WG_I64, WG_DIMS(masks), places)};
        probabilities =
            wg_softmax(wg_model_logits(model, wg_model_forward(model, &inputs), NULL), -1);
    }
    wg__free(places);
    const int64_t vocabulary = probabilities ? wg_tensor_size(probabilities, 1) : 0;
    const int64_t known = wg__smaller(wg_tokenizer_size(tokenizer), vocabulary);
    float *values = wg__alloc_array(wg__times(masks, vocabulary), sizeof *values);
    status = probabilities && values ? wg_to_array(probabilities, values) : -1;
    filled->blanks = status == 0 ? wg__calloc((size_t)masks, sizeof *filled->blanks) : NULL;
    filled->blank_count = filled->blanks ? masks : 0;
    for (int64_t i = 0; i < filled->blank_count && status == 0; i++) {
        /* The `top` likeliest of the known tokens; a chosen token gets probability -1. */
        float *row = values + i * vocabulary;
        const int64_t top = options->top ? options->top : USUAL_TOP;
        wg_filled_blank *blank = &filled->blanks[i];
        blank->candidates = wg__calloc((size_t)top, sizeof *blank->candidates);
        for (int64_t n = 0; blank->candidates && n < top && n < known; n++) {
            int64_t best = 0;
            for (int64_t v = 1; v < known; v++)
                if (row[v] > row[best])
                    best = v;
            wg_candidate *candidate = &blank->candidates[blank->candidate_count++];
            candidate->text = wg__strdup(wg_tokenizer_token(tokenizer, (int32_t)best));
            candidate->probability = row[best];
            row[best] = -1;
        }
        status = blank->candidates && !wg_error_pending() ? 0 : -1;
    }
    wg__free(values);
    wg_scope_end(&scope, NULL);
    wg_token_list_free(&list);
    return filled->blanks ? status : -1;
}

static int fill(const wg_model *model, const wg_tokenizer *tokenizer, const wg_use_options *options,
                const char *text, wg_filled *filled) {
    return fill_masks(model, tokenizer, options, text, false, filled);
}

static int fill_hybrid(const wg_model *model, const wg_tokenizer *tokenizer,
                       const wg_use_options *options, const char *text, wg_filled *filled) {
    return fill_masks(model, tokenizer, options, text, true, filled);
}

/* Texts are scored by the pseudo-log-likelihood (Salazar et al. 2020, arXiv:1910.14659, eq. 1): the
 * sum over the tokens of log p(token | all remaining tokens). A row of a forward is a text with one
 * token masked:
 *
 *     [CLS] [MASK] ##ing on [SEP]    [CLS] sing [MASK] on [SEP]    [CLS] sing ##ing [MASK] [SEP]
 *
 * With `within_words` the later tokens of the same word are masked too (Kauf & Ivanova 2023,
 * arXiv:2305.10588, PLL-word-l2r), since they would reveal a rare word:
 *
 *     [CLS] [MASK] [MASK] on [SEP]   [CLS] sing [MASK] on [SEP]    [CLS] sing ##ing [MASK] [SEP]
 *
 * from_before: the model predicts a token from the hidden state one before it. */
static int score_masks(const wg_model *model, const wg_tokenizer *tokenizer,
                       const wg_score_options *options, const wg_text_batch *texts,
                       bool from_before, wg_score *scores) {
    const int32_t class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    const int32_t separator = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    const int32_t mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    if (class < 0 || separator < 0 || mask < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "masked-lm",
                       "the vocabulary lacks [CLS], [SEP] or [MASK], with which texts are scored");
    const int64_t n = texts->length, length = n + 2, all = texts->count * n;
    const int64_t most =
        wg__texts_in_batch(options->batch_tokens, length); /* rows of a forward: R */
    int32_t *ids = wg__alloc_array(wg__times(most, length), sizeof *ids);
    int32_t *labels = wg__alloc_array(most, sizeof *labels);
    int64_t *positions = wg__alloc_array(most, sizeof *positions); /* flat */
    double *losses = wg__alloc_array(most, sizeof *losses);
    int status = ids && labels && positions && losses ? 0 : -1;
    for (int64_t first = 0; status == 0 && first < all; first += most) {
        const int64_t rows = wg__smaller(all - first, most);
        for (int64_t row = 0; row < rows; row++) {
            const int32_t *text = texts->ids + (first + row) / n * n;
            const int64_t place = (first + row) % n;
            int32_t *masked = ids + row * length;
            masked[0] = class;
            memcpy(masked + 1, text, (size_t)n * sizeof *masked);
            masked[n + 1] = separator;
            masked[1 + place] = mask;
            if (options->within_words)
                for (int64_t i = place + 1; i < n && !wg__token_begins_word(tokenizer, text[i]);
                     i++)
                    masked[1 + i] = mask;
            labels[row] = text[place];
            positions[row] = row * length + 1 + place - from_before;
        }
        wg_scope scope;
        wg_scope_begin(&scope);
        const wg_model_inputs inputs = {.ids = wg_from_array(WG_I32, WG_DIMS(rows, length), ids)};
        status = wg__score_losses(model, options, &inputs,
                                  wg_from_array(WG_I64, WG_DIMS(rows), positions),
                                  wg_from_array(WG_I32, WG_DIMS(rows), labels), losses);
        wg_scope_end(&scope, NULL);
        for (int64_t i = 0; status == 0 && i < rows; i++) {
            scores[(first + i) / n].log_probability -= losses[i];
            scores[(first + i) / n].tokens++;
        }
    }
    wg__free(ids);
    wg__free(labels);
    wg__free(positions);
    wg__free(losses);
    return status;
}

static int score(const wg_model *model, const wg_tokenizer *tokenizer,
                 const wg_score_options *options, const wg_text_batch *texts, wg_score *scores) {
    return score_masks(model, tokenizer, options, texts, false, scores);
}

static int score_hybrid(const wg_model *model, const wg_tokenizer *tokenizer,
                        const wg_score_options *options, const wg_text_batch *texts,
                        wg_score *scores) {
    if (options->causal)
        return wg__score_next_tokens(model, wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS),
                                     options, texts, scores);
    return score_masks(model, tokenizer, options, texts, true, scores);
}

static const wg_objective_training training = {.begin = begin,
                                               .begin_step = begin_step,
                                               .loss = loss_of,
                                               .weigh = weigh,
                                               .evaluate = evaluate};

/* Members of all three records. */
#define DATA_BY(function)                                                                          \
    .text = WG_TEXT_SENTENCES, .batches = function, WG__BATCH_OF(wg__masked_batch, tokens),        \
    .describe = wg__describe_text
#define USE_BY(filler, scorer)                                                                     \
    .fills = WG_FILLS_BY_RANK, .fill = filler, .score_frame = 2, .scores_within_words = true,      \
    .score = scorer

const wg_objective wg_masked_lm = {
    .name = "masked-lm",
    .title = "predicts masked words, and next sentences (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .data = {DATA_BY(pair_batches)},
    .training = &training,
    .use = {USE_BY(fill, score)},
    .metrics = rows,
    .print = print,
};

const wg_objective wg_mlm = {
    .name = "mlm",
    .title = "predicts masked words of packed text (Liu et al. 2019)",
    .shapes = WG_ENCODER,
    .settings = {.where = "settings",
                 .size = sizeof(wg_mlm_options),
                 .count = MLM_ROWS,
                 .rows = setting_rows},
    .data = {DATA_BY(packed_batches), .cuts_sequences = true},
    .training = &training,
    .use = {USE_BY(fill, score)},
    .metrics = rows,
    .print = print,
};

const wg_objective wg_hybrid = {
    .name = "hybrid",
    .title = "predicts masked and next words in turn (GPT-BERT, Charpentier & Samuel 2024)",
    .shapes = WG_ENCODER,
    .settings = WG__SETTING_TABLE(wg_mlm_options, setting_rows),
    .data = {DATA_BY(hybrid_batches), .cuts_sequences = true},
    .training = &training,
    .use = {USE_BY(fill_hybrid, score_hybrid), .scores_causally = true},
    .metrics = rows,
    .print = print,
};
