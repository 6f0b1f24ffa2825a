/* Blank infilling: see blank_infilling.h. */
#include "objectives/blank_infilling.h"

#include <math.h>

#include "data/tokenizer/kind.h"
#include "models/generate/beam.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "nn/internal.h"
#include "models/internal.h"

#define WHERE "blank-infilling"

#define AT(member) offsetof(wg_blank_infilling_options, member)

static const wg_setting setting_rows[] = {
    {"masked-share", WG_SETTING_NUMBER, AT(masked_share), .low = 0.001, .high = 1, .fixed = true,
     .standard = "0.15", .argument = "X",
     .help = "blank-infilling: the share of a text that is blank"},
    {"span-mean", WG_SETTING_NUMBER, AT(span_mean), .low = 0.1, .high = 38, .fixed = true,
     .standard = "3.0", .argument = "X",
     .help = "blank-infilling: the mean of the Poisson distribution of the lengths of spans"},
    {"sentence-share", WG_SETTING_NUMBER, AT(sentence_share), .high = 1, .fixed = true,
     .standard = "0.25", .argument = "X",
     .help = "blank-infilling: the share of texts in which whole sentences are blank, [sMASK]"},
    {"document-share", WG_SETTING_NUMBER, AT(document_share), .high = 1, .fixed = true,
     .standard = "0.25", .argument = "X",
     .help = "blank-infilling: the share of texts whose end is one blank, [gMASK], from which the "
             "model learns to continue; the remaining texts have blank spans, [MASK]"},
};

/* ---- Training ---- */

int wg__blank_check_model(const char *where, const wg_model *model, const wg_blank_tokens *tokens) {
    return wg__check_vocabulary(where, tokens->vocab_size, " with the tokens of blanks",
                                wg_model_sizes_of(model).vocabulary);
}

/* Evaluations fill spans only, whatever mixture the training has. */
static wg_batches *make_batches(const wg_training_setup *setup, const wg_dataset *text,
                                bool measured) {
    wg__blank_batch_options o = {
        .batch = setup->batch, .sequence = setup->sequence, .seed = setup->seed};
    const wg_blank_infilling_options *options = setup->options;
    if (options) {
        o.masked_share = options->masked_share;
        o.span_mean = options->span_mean;
        o.sentence_share = measured ? 0 : options->sentence_share;
        o.document_share = measured ? 0 : options->document_share;
    }
    return wg__blank_batches_new(text, setup->tokenizer, &o);
}

static int begin(wg_training *t) {
    wg_blank_tokens tokens;
    return wg__blank_tokens_of(t->setup.tokenizer, &tokens) < 0
               ? -1
               : wg__blank_check_model(WHERE, t->setup.model, &tokens);
}

static wg_model_inputs inputs_of(const wg__blank_batch *batch) {
    return (wg_model_inputs){.ids = batch->input_ids,
                             .position_ids = batch->position_ids,
                             .block_position_ids = batch->block_position_ids,
                             .part_a = batch->part_a,
                             .output_positions = batch->target_positions};
}

static wg_tensor *loss_of(wg_training *t, const void *batch, wg_metrics *metrics) {
    const wg__blank_batch *blanks = batch;
    const wg_model_inputs inputs = inputs_of(blanks);
    (void)metrics;
    return wg_model_loss(t->setup.model, wg_model_forward(t->setup.model, &inputs), NULL,
                         blanks->labels, NULL);
}

static void weigh(const wg_training *t, const void *batch, wg_loss_part *parts) {
    (void)t;
    parts[0].count = (double)wg_tensor_count(((const wg__blank_batch *)batch)->labels);
}

static int measure(wg_training *t, const void *read, wg_metrics *metrics) {
    const wg__blank_batch *batch = read;
    const wg_model *model = t->setup.model;
    const wg_dataset *text = t->setup.training ? t->setup.training : t->setup.held_out;
    const wg_model_inputs inputs = inputs_of(batch);
    wg_blank_tokens tokens;
    if (wg__blank_tokens_of(t->setup.tokenizer, &tokens) < 0)
        return -1;
    wg_tensor *logits = wg_model_logits(model, wg_model_forward(model, &inputs), NULL);
    wg_tensor *is_word = wg_ne(batch->labels, wg_full(WG_I64, 0, NULL, tokens.end));
    wg_tensor *places = wg_reshape(wg_nonzero(is_word), 1, (int64_t[]){-1});
    wg_tensor *words = wg_index_select(batch->labels, 0, places);
    wg_tensor *word_logits = wg_index_select(logits, 0, places);
    const double loss = wg_item(wg_cross_entropy(logits, batch->labels, WG_IGNORE_INDEX, NULL));
    const double word_loss = wg_item(wg_cross_entropy(word_logits, words, WG_IGNORE_INDEX, NULL));
    const double count = (double)wg_tensor_count(batch->labels);
    const double word_count = (double)wg_tensor_count(words);
    if (wg_metrics_add(metrics, "loss", loss, count) < 0 ||
        wg_metrics_add(metrics, "word_loss", word_loss, word_count) < 0)
        return -1;
    return wg_metrics_add(metrics, "unigram_loss", wg_dataset_unigram_loss(text, words, NULL),
                          word_count);
}

/* Each text once, unless there is a limit. */
static int evaluate(wg_training *t, int64_t limit, wg_metrics *metrics) {
    return wg__evaluate_batches(t, limit, true, measure, metrics);
}

int wg__require_shown_batches(const wg_objective *objective) {
    return objective == &wg_blank_infilling
               ? 0
               : wg_fail(WG_ERROR_STATE, objective->name,
                         "the batches of %s cannot be shown; only batches of %s can",
                         objective->name, wg_blank_infilling.name);
}

int wg_training_show_batch(wg_training *t, FILE *stream) {
    if (wg__require_shown_batches(t->objective) < 0)
        return -1;
    wg__blank_batch batch;
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg_batches_next(t->batches, &batch);
    const int64_t rows = status == 0 ? wg_tensor_size(batch.input_ids, 0) : 0;
    for (int64_t row = 0; status == 0 && row < rows; row++) {
        char *table = wg__blank_batch_show(&batch, row, t->setup.tokenizer);
        if (table)
            fprintf(stream, "%ssequence %lld\n%s", row ? "\n" : "", (long long)row, table);
        status = table ? 0 : -1;
        wg_text_free(table);
    }
    wg_scope_end(&scope, NULL);
    return status;
}

static const wg_metric_row rows[] = {
    {.name = "loss"},
    {.name = "word_loss", .weight = "words"},
    {.name = "unigram_loss"},
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    const double loss = wg_metrics_get(metrics, "word_loss");
    fprintf(stream, "words in blanks  loss %.4f, perplexity %.1f; %.0f words\n", loss, exp(loss),
            wg_metrics_weight(metrics, "word_loss"));
    fprintf(stream, "by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    fprintf(stream, "with their ends  loss %.4f; %.0f blanks\n", wg_metrics_get(metrics, "loss"),
            wg_metrics_weight(metrics, "loss") - wg_metrics_weight(metrics, "word_loss"));
}

/* ---- Writing into blanks ----
 *
 * Letters: R hypotheses, 1 unless there is a search, T tokens that are new, V logits. */

typedef struct filling {
    const wg_model *model;
    wg_model_sizes sizes;
    const wg_blank_tokens *tokens;
    wg__blank_fill_options options;
    wg_kv_cache *caches; /* one a layer */
    wg_token_list text;  /* Part A and the generated tokens, for the repetition penalty */
    int64_t part_a;      /* tokens */
    int64_t most;        /* tokens of a blank */
    float *logits;       /* (V), where there is no search */
    /* The blank that is written. */
    int64_t place;   /* of its mask: the first position of all its tokens */
    int64_t written; /* tokens of the blank in the caches, with the start token */
} filling;

int64_t wg__blank_count(const wg_blank_tokens *tokens, const wg_token_list *part_a) {
    int64_t count = 0;
    for (int64_t i = 0; i < part_a->count; i++)
        count += wg__blank_is_mask(tokens, part_a->ids[i]);
    return count;
}

/* Runs the model on ids (R, T) at these positions, after the tokens in its caches. Returns the
 * hidden state of the last token, (R, C). */
static wg_tensor *see(filling *f, wg_tensor *ids, wg_tensor *positions, wg_tensor *blocks) {
    if (!ids)
        return NULL;
    const wg_model_inputs inputs = {
        .ids = ids,
        .position_ids = positions,
        .block_position_ids = blocks,
        .part_a = wg_full(WG_I64, WG_DIMS(wg_tensor_size(ids, 0)), (double)f->part_a),
        .caches = f->caches};
    wg_tensor *hidden = wg_model_forward(f->model, &inputs);
    return hidden ? wg_select(hidden, 1, wg_tensor_size(ids, 1) - 1) : NULL;
}

/* Runs the model on the next tokens (R, T) of the blank. Unless NULL, `logits` (R, V) gets the
 * logits of the token that follows. */
static int see_part_b(filling *f, int64_t rows, int64_t count, const int32_t *tokens,
                      float *logits) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t first = f->written + 1; /* the start token has 1 */
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(rows, count), tokens);
    wg_tensor *positions = wg_full(WG_I64, WG_DIMS(count), (double)f->place);
    wg_tensor *blocks = wg_arange(WG_I64, (double)first, (double)(first + count), 1);
    wg_tensor *hidden = see(f, ids, positions, blocks);
    int result = hidden ? 0 : -1;
    if (result == 0 && logits)
        result = wg_to_array(wg_cast(wg_model_logits(f->model, hidden, NULL), WG_F32), logits);
    wg_scope_end(&scope, NULL);
    f->written += count;
    return result;
}

/* Forbids tokens that are not text, and the end of an empty blank: their logits become -inf. */
static void forbid(const filling *f, float *logits) {
    const wg_blank_tokens *t = f->tokens;
    const float end = logits[t->end];
    const int32_t own[] = {t->start,         t->end,       t->mask, t->sentence_mask,
                           t->document_mask, t->beginning, t->pad};
    for (int64_t v = t->tokenizer_size; v < f->sizes.vocabulary; v++)
        logits[v] = -INFINITY;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        logits[own[i]] = -INFINITY;
    if (f->written > 1)
        logits[t->end] = end;
}

/* Draws tokens until the end token. */
static int draw(filling *f, int64_t number, wg__blank *blank) {
    const int64_t vocabulary = f->sizes.vocabulary;
    int32_t id = f->tokens->start;
    for (int64_t i = 0;; i++) {
        blank->end = (f->options.stop && *f->options.stop) ? WG_END_CANCELLED
                     : i < f->most                         ? WG_END_STOP
                     : f->most == f->options.max_tokens    ? WG_END_LENGTH
                                                           : WG_END_POSITIONS;
        const bool goes_on = blank->end == WG_END_STOP;
        if (see_part_b(f, 1, 1, &id, goes_on ? f->logits : NULL) < 0)
            return -1;
        if (!goes_on)
            return 0;
        forbid(f, f->logits);
        id = wg__sample_token(&f->options.sampling, vocabulary, f->logits, f->text.count,
                              f->text.ids, &f->options.generator);
        if (id < 0 || id == f->tokens->end)
            return id < 0 ? -1 : 0;
        if (wg_token_list_append(&blank->tokens, id) < 0 || wg_token_list_append(&f->text, id) < 0)
            return -1;
        const wg_generated_token drawn = {.text = number, .id = id, .logits = f->logits};
        if (f->options.listener)
            f->options.listener(&drawn, f->options.listener_context);
    }
}

static int search_step(void *context, int64_t rows, const int32_t *last, float *probabilities) {
    filling *f = context;
    const int64_t vocabulary = f->sizes.vocabulary;
    if (see_part_b(f, rows, 1, last, probabilities) < 0)
        return -1;
    for (int64_t r = 0; r < rows; r++) {
        forbid(f, probabilities + r * vocabulary);
        /* Logits to logarithms of probabilities, in place. */
        float *logits = probabilities + r * vocabulary;
        float most = -INFINITY;
        double sum = 0;
        for (int64_t v = 0; v < vocabulary; v++)
            most = fmaxf(most, logits[v]);
        for (int64_t v = 0; v < vocabulary; v++)
            sum += exp((double)logits[v] - (double)most);
        /* cppcheck-suppress invalidFunctionArg ; the largest logit adds 1 to the sum */
        const double total = (double)most + log(sum);
        for (int64_t v = 0; v < vocabulary; v++)
            logits[v] = (float)((double)logits[v] - total);
    }
    return 0;
}

static int search_reorder(void *context, int64_t rows, const int64_t *from) {
    filling *f = context;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(rows), from);
    int result = index ? 0 : -1;
    for (int64_t i = 0; result == 0 && i < f->sizes.layers; i++)
        result = wg__kv_cache_reorder(&f->caches[i], index);
    wg_scope_end(&scope, NULL);
    return result;
}

static int search(filling *f, wg__blank *blank) {
    const wg_beam_model model = {.context = f,
                                 .vocabulary = f->sizes.vocabulary,
                                 .step = search_step,
                                 .reorder = search_reorder};
    const wg_beam_options options = {.beam = f->options.beam,
                                     .alpha = f->options.alpha,
                                     .start_id = f->tokens->start,
                                     .end_id = f->tokens->end};
    const int64_t seen = f->caches[0].length;
    wg_beam_result found = {0};
    int result = wg__beam_search(&model, 1, &f->most, &options, &found);
    /* The caches go back to one row as before the search, and then read the tokens found. */
    if (result == 0)
        result = search_reorder(f, 1, (int64_t[]){0});
    for (int64_t i = 0; result == 0 && i < f->sizes.layers; i++)
        result = wg__kv_cache_truncate(&f->caches[i], seen);
    f->written = 0;
    if (result == 0)
        result = see_part_b(f, 1, 1, &f->tokens->start, NULL);
    if (result == 0)
        result = see_part_b(f, 1, found.tokens.count, found.tokens.ids, NULL);
    for (int64_t i = 0; result == 0 && i < found.tokens.count; i++)
        result = wg_token_list_append(&blank->tokens, found.tokens.ids[i]);
    blank->end = found.ended                        ? WG_END_STOP
                 : f->most == f->options.max_tokens ? WG_END_LENGTH
                                                    : WG_END_POSITIONS;
    wg_token_list_free(&found.tokens);
    return result;
}

/* ---- Filling and continuing texts ---- */

/* Lets the model see Part A, and writes its blanks in order. */
static int fill_all(filling *f, const wg_token_list *part_a, int64_t blanks, wg__blank *results) {
    const int64_t wanted = f->options.max_tokens;
    const int64_t room = f->sizes.positions - 1; /* 1 is the start token's */
    f->most = wanted > 0 && wanted < room ? wanted : room;
    f->caches = wg__calloc((size_t)f->sizes.layers, sizeof *f->caches);
    f->logits = wg__alloc_array(f->sizes.vocabulary, sizeof *f->logits);
    if (!f->caches || !f->logits)
        return -1;
    for (int64_t i = 0; i < f->sizes.layers; i++)
        wg_kv_cache_init(&f->caches[i], f->part_a + blanks * (1 + f->most));
    for (int64_t i = 0; i < part_a->count; i++)
        if (wg_token_list_append(&f->text, part_a->ids[i]) < 0)
            return -1;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, f->part_a), f->text.ids);
    wg_tensor *positions = wg_arange(WG_I64, 0, (double)f->part_a, 1);
    wg_tensor *hidden = see(f, ids, positions, wg_zeros(WG_I64, WG_DIMS(f->part_a)));
    wg_scope_end(&scope, NULL);
    int result = hidden ? 0 : -1;
    for (int64_t i = 0, number = 0; result == 0 && i < part_a->count; i++) {
        if (!wg__blank_is_mask(f->tokens, part_a->ids[i]))
            continue;
        f->place = i;
        f->written = 0;
        result =
            f->options.beam > 0 ? search(f, &results[number]) : draw(f, number, &results[number]);
        number++;
    }
    return result;
}

int wg__blank_fill(const wg_model *model, const wg_blank_tokens *tokens,
                   const wg_token_list *part_a, const wg__blank_fill_options *options,
                   wg__blank *blanks) {
    const int64_t longest = wg_model_sizes_of(model).positions;
    if (wg__sampling_validate(&options->sampling) < 0)
        return -1;
    if (options->beam < 0 || options->max_tokens < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "beam is %lld and max_tokens %lld; they must be 0 or more",
                       (long long)options->beam, (long long)options->max_tokens);
    const int64_t count = wg__blank_count(tokens, part_a);
    if (count == 0)
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "there is no blank in the text; write [MASK], [sMASK] or [gMASK] where "
                       "something is wanted");
    if (part_a->count > longest)
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "the text has %lld tokens, and the model has %lld positions; shorten it",
                       (long long)part_a->count, (long long)longest);
    if (wg__blank_check_model("fill", model, tokens) < 0)
        return -1;
    filling f = {.model = model,
                 .sizes = wg_model_sizes_of(model),
                 .tokens = tokens,
                 .options = *options,
                 .part_a = part_a->count};
    const bool recorded = wg_set_grad_enabled(false);
    const bool training = wg_module_is_training(model->module);
    wg_module_train(model->module, false);
    const int result = fill_all(&f, part_a, count, blanks);
    for (int64_t i = 0; f.caches && i < f.sizes.layers; i++)
        wg_kv_cache_clear(&f.caches[i]);
    wg__free(f.caches);
    wg__free(f.logits);
    wg_token_list_free(&f.text);
    wg_module_train(model->module, training);
    wg_set_grad_enabled(recorded);
    return result;
}

static wg__blank_fill_options fill_options(const wg_use_options *options) {
    return (wg__blank_fill_options){.sampling = options->generation.sampling,
                                    .beam = options->beam,
                                    .max_tokens = options->generation.max_tokens,
                                    .generator = options->generator,
                                    .listener = options->generation.listener,
                                    .listener_context = options->generation.listener_context,
                                    .stop = options->generation.stop};
}

static int fill_text(const wg_model *model, const wg_tokenizer *tokenizer,
                     const wg_use_options *options, const char *text, wg_filled *filled) {
    static const wg_decode_options skip_special = {.skip_special = true};
    const wg__blank_fill_options how = fill_options(options);
    wg_blank_tokens tokens;
    wg_token_list part_a = {0};
    if (wg__blank_tokens_of(tokenizer, &tokens) < 0 ||
        wg__blank_encode(&tokens, tokenizer, text, &part_a) < 0)
        return -1;
    const int64_t count = wg__blank_count(&tokens, &part_a);
    wg__blank *found = wg__calloc((size_t)count + 1, sizeof *found);
    int status = found ? wg__blank_fill(model, &tokens, &part_a, &how, found) : -1;
    wg_token_list *lists = wg__calloc((size_t)count + 1, sizeof *lists);
    filled->blanks = wg__calloc((size_t)count + 1, sizeof *filled->blanks);
    filled->blank_count = status == 0 && lists && filled->blanks ? count : 0;
    for (int64_t i = 0; i < filled->blank_count; i++) {
        lists[i] = found[i].tokens;
        filled->blanks[i] = (wg_filled_blank){
            .text = wg_tokenizer_decode(tokenizer, lists[i].ids, lists[i].count, &skip_special),
            .tokens = lists[i].count,
            .end = found[i].end};
    }
    if (status == 0 && lists && filled->blanks)
        filled->text = wg__blank_filled_text(tokenizer, text, lists);
    status = filled->text && !wg_error_pending() ? 0 : -1;
    wg__free(lists);
    for (int64_t i = 0; found && i < count; i++)
        wg_token_list_free(&found[i].tokens);
    wg__free(found);
    wg_token_list_free(&part_a);
    return status;
}

/* The continuation has its own positions, and the start token takes one. */
static int read_prompt(const wg_model *model, const wg_tokenizer *tokenizer, const char *prompt,
                       wg_generation *text, wg_prompt_room *room) {
    const int64_t positions = wg_model_sizes_of(model).positions;
    wg_token_list *list = &text->tokens;
    wg_blank_tokens tokens;
    *room = (wg_prompt_room){
        .positions = positions, .most_read = positions, .most_written = positions - 1};
    if (wg__blank_tokens_of(tokenizer, &tokens) < 0 ||
        wg_token_list_append(list, tokens.beginning) < 0 ||
        (prompt && wg_tokenizer_encode(tokenizer, prompt, -1, NULL, list) < 0))
        return -1;
    return wg_token_list_append(list, tokens.document_mask);
}

static int generate(const wg_model *model, const wg_tokenizer *tokenizer,
                    const wg_use_options *options, wg_generation *text) {
    wg__blank_fill_options how = fill_options(options);
    how.beam = 0;
    wg_blank_tokens tokens;
    wg__blank blank = {0};
    int status = wg__blank_tokens_of(tokenizer, &tokens);
    if (status == 0)
        status = wg__blank_fill(model, &tokens, &text->tokens, &how, &blank);
    for (int64_t i = 0; status == 0 && i < blank.tokens.count; i++)
        status = wg_token_list_append(&text->tokens, blank.tokens.ids[i]);
    text->generated = blank.tokens.count;
    text->end = blank.end;
    wg_token_list_free(&blank.tokens);
    return status;
}

/* ---- Scoring texts ----
 *
 * Each word in turn is a blank; its tokens and its end are predicted from the text around it:
 * sum over words w of log p(w_1 ... w_k [E] | the text with [MASK] in place of w). A row of a
 * forward is a text with one word blank. Part A and Part B together have n + 3 tokens for every
 * word:
 *
 *     [CLS] [MASK] on   [S] sing ##ing          [CLS] sing ##ing [MASK]   [S] on
 *     predicts          sing ##ing [E]          predicts                  on  [E]             */

static int score(const wg_model *model, const wg_tokenizer *tokenizer,
                 const wg_score_options *options, const wg_text_batch *texts, wg_score *scores) {
    const int64_t n = texts->length, most = wg__texts_in_batch(options->batch_tokens, n + 3);
    const size_t all = (size_t)wg__times(texts->count, n);
    wg_blank_tokens tokens;
    if (wg__blank_tokens_of(tokenizer, &tokens) < 0 ||
        wg__blank_check_model("score", model, &tokens) < 0)
        return -1;
    wg__blank_span *words = wg__alloc_array(all, sizeof *words); /* of their text */
    wg__blanked_text *blanks = wg__alloc_array(all, sizeof *blanks);
    double *losses = wg__alloc_array(wg__times(most, n + 1), sizeof *losses);
    int64_t count = 0;
    int status = words && blanks && losses ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < texts->count * n; i++) {
        const int64_t place = i % n;
        if (place == 0 || wg__token_begins_word(tokenizer, texts->ids[i])) {
            words[count] = (wg__blank_span){place, place + 1};
            blanks[count] =
                (wg__blanked_text){texts->ids + i - place, n, &words[count], 1, tokens.mask, false};
            count++;
        } else {
            words[count - 1].end = place + 1;
        }
    }
    for (int64_t first = 0; status == 0 && first < count; first += most) {
        const int64_t rows = wg__smaller(count - first, most);
        wg__blank_batch batch;
        wg_scope scope;
        wg_scope_begin(&scope);
        status = wg__blanked_batch(&tokens, rows, blanks + first, 1, &batch);
        if (status == 0) {
            const wg_model_inputs inputs = inputs_of(&batch);
            status = wg__score_losses(model, options, &inputs, batch.target_positions, batch.labels,
                                      losses);
        }
        wg_scope_end(&scope, NULL);
        const double *loss = losses;
        for (int64_t i = first; status == 0 && i < first + rows; i++) {
            wg_score *score = &scores[(blanks[i].text - texts->ids) / n];
            const int64_t targets = words[i].end - words[i].first + 1;
            for (int64_t k = 0; k < targets; k++)
                score->log_probability -= *loss++;
            score->tokens += targets;
        }
    }
    wg__free(words);
    wg__free(blanks);
    wg__free(losses);
    return status;
}

const wg_objective wg_blank_infilling = {
    .name = "blank-infilling",
    .title = "writes spans into blanks, token after token (Du et al. 2022)",
    .shapes = WG_PREFIX_DECODER,
    .settings = WG__SETTING_TABLE(wg_blank_infilling_options, setting_rows),
    .data = {.text = WG_TEXT_SENTENCES,
             .batches = make_batches,
             WG__BATCH_OF(wg__blank_batch, tokens),
             .describe = wg__describe_text},
    .training =
        &(const wg_objective_training){
            .begin = begin, .loss = loss_of, .weigh = weigh, .evaluate = evaluate},
    .use = {.fills = WG_FILLS_BY_BEAM | WG_FILLS_BY_DRAWING,
            .fill = fill_text,
            .prompt = read_prompt,
            .generate = generate,
            .score_frame = 1,
            .score = score},
    .metrics = rows,
    .print = print,
};
