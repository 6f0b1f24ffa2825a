/* Masked language modelling: see masked_lm.h. */
#include "objectives/masked_lm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "data/batches/builder.h"
#include "data/tokenizer/kind.h"
#include "objectives/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "masked-lm"

/* ---- Batches ---- */

#define FRAME_TOKENS 3 /* [CLS] first [SEP] second [SEP] */

/* Sentences first .. end - 1 of the corpus. */
typedef struct segment {
    int64_t first, end;
} segment;

typedef struct example {
    segment a, b;
    bool random; /* b comes from another document */
} example;

typedef struct masking {
    const wg_dataset *corpus;
    wg__masked_batch_options options;
    int32_t pad, class, separator, mask;
    example *examples; /* of the epoch that was planned last */
    int64_t count, capacity;
    /* One sequence in the making, T entries each. */
    int32_t *tokens;
    int64_t *candidates; /* places that may be masked; the chosen ones stand first */
    /* One batch in the making. */
    example *taken;           /* B */
    int64_t *places, *labels; /* B max_predictions entries each */
} masking;

/* ---- The plan of an epoch ---- */

static int64_t segment_tokens(const wg_dataset *corpus, segment s) {
    return wg_dataset_sentence_start(corpus, s.end) - wg_dataset_sentence_start(corpus, s.first);
}

/* Sentences from `first` on until there are `target` tokens or the document ends. */
static segment gather(const wg_dataset *corpus, int64_t first, int64_t document_end,
                      int64_t target) {
    segment s = {first, first + 1};
    while (s.end < document_end && segment_tokens(corpus, s) < target)
        s.end++;
    return s;
}

/* A segment of about `target` tokens from any document but this one, each as likely. */
static segment random_segment(const wg_dataset *corpus, int64_t document, int64_t target,
                              wg_generator *g) {
    int64_t other = wg__random_between(g, 0, wg_dataset_documents(corpus) - 2);
    other += other >= document;
    int64_t begin = wg_dataset_document_start(corpus, other);
    int64_t end = wg_dataset_document_start(corpus, other + 1);
    return gather(corpus, wg__random_between(g, begin, end - 1), end, target);
}

/* The next example of a document, from sentence *at on, which moves behind what was used. */
static example next_example(const masking *batches, int64_t document, int64_t *at,
                            wg_generator *g) {
    const wg_dataset *corpus = batches->corpus;
    int64_t target = batches->options.sequence - FRAME_TOKENS;
    if (wg_random_uniform(g) < batches->options.short_share)
        target = wg__random_between(g, 2, target);
    int64_t document_end = wg_dataset_document_start(corpus, document + 1);
    segment chunk = gather(corpus, *at, document_end, target);
    if (chunk.end == chunk.first + 1 && chunk.end < document_end)
        chunk.end++; /* a long sentence needs one that follows, too, or half were no half */
    int64_t sentences = chunk.end - chunk.first;
    int64_t first_end = chunk.first + (sentences < 2 ? 1 : wg__random_between(g, 1, sentences - 1));
    example e = {.a = {chunk.first, first_end}, .b = {first_end, chunk.end}};
    e.random = sentences < 2 || wg_random_uniform(g) < 0.5;
    if (e.random)
        e.b = random_segment(corpus, document, target - segment_tokens(corpus, e.a), g);
    *at = e.random ? first_end : chunk.end;
    return e;
}

static int add_example(masking *batches, example e) {
    return wg__append(&batches->examples, &batches->count, &batches->capacity, &e, sizeof e);
}

static int plan(void *context, wg_epoch *epoch) {
    masking *batches = context;
    const wg_dataset *corpus = batches->corpus;
    int64_t source = 0;
    batches->count = 0;
    for (int64_t d = 0; d < wg_dataset_documents(corpus); d++) {
        int64_t end = wg_dataset_document_start(corpus, d + 1);
        for (int64_t at = wg_dataset_document_start(corpus, d); at < end;)
            if (add_example(batches, next_example(batches, d, &at, &epoch->generator)) < 0)
                return -1;
        wg__note_source_ends(corpus, d + 1, batches->count, &source, epoch->source_ends);
    }
    epoch->examples = batches->count;
    return wg_error_pending() ? -1 : 0; /* a disk that failed gives no places */
}

static void take(void *context, int64_t row, const wg_example *taken) {
    masking *batches = context;
    batches->taken[row] = batches->examples[taken->index];
}

/* ---- One sequence ---- */

/* What is left of two segments of tokens when they are cut to fit. */
typedef struct cut {
    int64_t first, count;
} cut;

/* Drops tokens of the longer one, at its front or back by chance, until both fit. */
static void truncate_pair(cut *a, cut *b, int64_t most, wg_generator *g) {
    while (a->count + b->count > most) {
        cut *longer = a->count > b->count ? a : b;
        longer->first += wg_random_uniform(g) < 0.5;
        longer->count--;
    }
}

static cut whole(const wg_dataset *corpus, segment s) {
    return (cut){wg_dataset_sentence_start(corpus, s.first), segment_tokens(corpus, s)};
}

/* Chooses places among the candidates, in ascending order; returns how many. */
static int64_t choose_places(masking *batches, int64_t length, wg_generator *g) {
    const wg__masked_batch_options *o = &batches->options;
    int64_t candidates = length - FRAME_TOKENS;
    int64_t wanted = (int64_t)fmax(1, rint((double)length * o->masked_share));
    wanted = wanted < o->max_predictions ? wanted : o->max_predictions;
    wanted = wanted < candidates ? wanted : candidates;
    for (int64_t i = 0; i < wanted; i++) {
        int64_t j = wg__random_between(g, i, candidates - 1);
        int64_t swapped = batches->candidates[i];
        batches->candidates[i] = batches->candidates[j];
        batches->candidates[j] = swapped;
    }
    for (int64_t i = 1; i < wanted; i++) { /* insertion sort: they are few */
        int64_t place = batches->candidates[i], j = i;
        for (; j > 0 && batches->candidates[j - 1] > place; j--)
            batches->candidates[j] = batches->candidates[j - 1];
        batches->candidates[j] = place;
    }
    return wanted;
}

/* What stands at a chosen place: [MASK] in 80 % of the cases, in 10 % what stood there, in 10 % any
 * token of the vocabulary. */
static int32_t masked_token(const masking *batches, int32_t token, wg_generator *g) {
    double chance = wg_random_uniform(g);
    if (chance < 0.8)
        return batches->mask;
    if (chance < 0.9)
        return token;
    return (int32_t)wg_random_below(g, (uint64_t)wg_dataset_vocabulary(batches->corpus));
}

/* Writes the tokens of an example between [CLS] and [SEP]s into batches->tokens, and the places of
 * the others into batches->candidates. Returns where the second segment begins; *length is set. */
static int64_t frame(masking *batches, cut a, cut b, int64_t *length) {
    int32_t *tokens = batches->tokens;
    int64_t second = a.count + 2;
    *length = a.count + b.count + FRAME_TOKENS;
    tokens[0] = batches->class;
    wg_dataset_read(batches->corpus, a.first, a.count, tokens + 1);
    tokens[second - 1] = batches->separator;
    wg_dataset_read(batches->corpus, b.first, b.count, tokens + second);
    tokens[*length - 1] = batches->separator;
    int64_t count = 0;
    for (int64_t t = 1; t < *length - 1; t++)
        if (t != second - 1)
            batches->candidates[count++] = t;
    return second;
}

/* ---- Batches ---- */

/* Where the arrays of the batch in the making are. */
typedef struct row {
    int64_t *ids, *types; /* of one sequence, filled with [PAD] and 0 */
    bool *attention;      /* filled with false */
    int64_t *next_sentence;
    int64_t offset; /* of the sequence in B * T */
} row;

/* Makes the sequence of an example; returns its length and adds to *masked. -1 with what reading
 * the corpus gives. */
static int64_t fill_row(masking *batches, example e, wg_generator g, row r, int64_t *masked) {
    cut a = whole(batches->corpus, e.a), b = whole(batches->corpus, e.b);
    if (wg_error_pending()) /* there is no telling how long they are */
        return -1;
    truncate_pair(&a, &b, batches->options.sequence - FRAME_TOKENS, &g);
    int64_t length, second = frame(batches, a, b, &length);
    for (int64_t t = 0; t < length; t++) {
        r.ids[t] = batches->tokens[t];
        r.types[t] = t >= second;
        r.attention[t] = true;
    }
    int64_t places = choose_places(batches, length, &g);
    for (int64_t i = 0; i < places; i++) {
        int64_t t = batches->candidates[i];
        batches->places[*masked] = r.offset + t;
        batches->labels[*masked] = batches->tokens[t];
        r.ids[t] = masked_token(batches, batches->tokens[t], &g);
        ++*masked;
    }
    *r.next_sentence = e.random;
    return length;
}

static int fill(masking *batches, int64_t rows, const wg_example *examples,
                wg__masked_batch *batch) {
    int64_t length = batches->options.sequence, masked = 0;
    for (int64_t b = 0; b < rows; b++) {
        row r = {.ids = (int64_t *)wg_tensor_data(batch->input_ids) + b * length,
                 .types = (int64_t *)wg_tensor_data(batch->token_type_ids) + b * length,
                 .attention = (bool *)wg_tensor_data(batch->attention_mask) + b * length,
                 .next_sentence = (int64_t *)wg_tensor_data(batch->next_sentence_labels) + b,
                 .offset = b * length};
        const int64_t tokens =
            fill_row(batches, batches->taken[b], examples[b].generator, r, &masked);
        if (tokens < 0)
            return -1;
        batch->tokens += tokens;
    }
    batch->masked_positions = wg_from_array(WG_I64, 1, &masked, batches->places);
    batch->masked_labels = wg_from_array(WG_I64, 1, &masked, batches->labels);
    return batch->masked_positions && batch->masked_labels ? 0 : -1;
}

static int build(void *context, int64_t count, const wg_example *examples, void *built) {
    masking *batches = context;
    wg__masked_batch *batch = built;
    int64_t shape[2] = {count, batches->options.sequence};
    *batch = (wg__masked_batch){
        .input_ids = wg_full(WG_I64, 2, shape, batches->pad),
        .token_type_ids = wg_zeros(WG_I64, 2, shape),
        .attention_mask = wg_zeros(WG_BOOL, 2, shape),
        .next_sentence_labels = wg_zeros(WG_I64, 1, shape),
    };
    bool made = batch->input_ids && batch->token_type_ids && batch->attention_mask &&
                batch->next_sentence_labels;
    if (made && fill(batches, count, examples, batch) == 0)
        return 0;
    *batch = (wg__masked_batch){0};
    return -1;
}

/* ---- Making them ---- */

static int set_options(masking *batches, const wg__masked_batch_options *options) {
    wg__masked_batch_options *o = &batches->options;
    if (options)
        *o = *options;
    if (wg__batch_sizes(WHERE, &o->batch, &o->sequence) < 0)
        return -1;
    if (o->masked_share == 0)
        o->masked_share = 0.15;
    if (o->short_share == 0)
        o->short_share = 0.1;
    if (o->short_share < 0)
        o->short_share = 0;
    if (!(o->masked_share > 0 && o->masked_share <= 1) || !(o->short_share <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "masked_share is %g and short_share %g; they must be shares of 1",
                       o->masked_share, o->short_share);
    if (o->max_predictions == 0)
        o->max_predictions = (int64_t)ceil(o->masked_share * (double)o->sequence);
    if (o->max_predictions < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "max_predictions is %lld; it must be 1 or more",
                       (long long)o->max_predictions);
    if (o->max_predictions > o->sequence)
        o->max_predictions = o->sequence;
    return 0;
}

static int set_tokens(masking *batches, const wg_tokenizer *tokenizer) {
    batches->pad = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD);
    batches->class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    batches->separator = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    batches->mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    if (batches->pad < 0 || batches->class < 0 || batches->separator < 0 || batches->mask < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the %s tokenizer has not all of [PAD], [CLS], [SEP] and [MASK]",
                       wg_tokenizer_kind(tokenizer));
    if (wg__batch_vocabulary(WHERE, batches->corpus, wg_tokenizer_size(tokenizer)) < 0)
        return -1;
    if (wg_dataset_documents(batches->corpus) < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the corpus has one document; two are needed, since random second segments "
                       "come from another one: blank lines between documents tell them apart");
    return 0;
}

static int allocate(masking *batches) {
    size_t sequence = (size_t)batches->options.sequence;
    size_t masked = (size_t)wg__times(batches->options.batch, batches->options.max_predictions);
    batches->tokens = wg__alloc_array(sequence, sizeof *batches->tokens);
    batches->candidates = wg__alloc_array(sequence, sizeof *batches->candidates);
    batches->taken = wg__alloc_array(batches->options.batch, sizeof *batches->taken);
    batches->places = wg__alloc_array(masked, sizeof *batches->places);
    batches->labels = wg__alloc_array(masked, sizeof *batches->labels);
    return batches->tokens && batches->candidates && batches->taken && batches->places &&
                   batches->labels
               ? 0
               : -1;
}

static void free_masking(void *context) {
    masking *batches = context;
    wg__free(batches->examples);
    wg__free(batches->tokens);
    wg__free(batches->candidates);
    wg__free(batches->taken);
    wg__free(batches->places);
    wg__free(batches->labels);
    wg__free(batches);
}

wg_batches *wg__masked_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                   const wg__masked_batch_options *options) {
    masking *batches = text && tokenizer ? wg__calloc(1, sizeof *batches) : NULL;
    if (!batches)
        return NULL;
    batches->corpus = text;
    if (set_options(batches, options) < 0 || set_tokens(batches, tokenizer) < 0 ||
        allocate(batches) < 0) {
        free_masking(batches);
        return NULL;
    }
    wg_batches_options batching = {
        .batch = batches->options.batch, .seed = batches->options.seed, .shuffle_from_last = true};
    wg__use_weights(text, &batching);
    return wg_batches_new(
        &(wg_batch_source){
            .context = batches, .build = build, .plan = plan, .take = take, .free = free_masking},
        &batching);
}

/* ---- The loss ---- */

static int64_t count_labels(wg_tensor *labels) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *counted = wg_ne(labels, wg_scalar(wg_tensor_dtype(labels), WG_IGNORE_INDEX));
    const int64_t count = (int64_t)wg_item(wg_sum(counted, WG_ALL, false));
    wg_scope_end(&scope, NULL);
    return count;
}

/* The masked positions (N), then the first of each sequence (B), which the pooled output reads. */
static wg_tensor *with_first_positions(wg_tensor *masked, wg_tensor *ids) {
    const int64_t sequences = wg_tensor_size(ids, 0), length = wg_tensor_size(ids, 1);
    wg_tensor *first = wg_arange(WG_I64, 0, (double)(sequences * length), (double)length);
    return wg_cat(2, (wg_tensor *[]){masked, first}, 0);
}

/* The cross-entropy of the head on the pooled output, for which `first` (B, C) is all that is read
 * of the hidden states. */
static wg_tensor *next_sentence_loss(const wg_model *model, wg_tensor *first,
                                     const wg__masked_batch *batch,
                                     const wg_cross_entropy_options *options) {
    const wg_model_type *type = model->type;
    wg_tensor *pooled = type->encoder.pool(type->encoder.of(model->module), wg_unsqueeze(first, 1),
                                           batch->attention_mask);
    return wg_linear_loss(type->encoder.next_sentence(model->module), pooled,
                          batch->next_sentence_labels, WG_IGNORE_INDEX, options);
}

int wg__masked_lm_loss(const wg_model *model, const wg__masked_batch *batch, bool count_correct,
                       wg__masked_loss *loss) {
    *loss = (wg__masked_loss){0};
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool pairs = batch->next_sentence_labels && model->type->encoder.next_sentence;
    wg_tensor *masked = batch->masked_positions;
    const wg_model_inputs inputs = {
        .ids = batch->input_ids,
        .token_type_ids = batch->token_type_ids,
        .keep = batch->attention_mask,
        .output_positions = pairs ? with_first_positions(masked, batch->input_ids) : masked};
    const wg_cross_entropy_options mlm_options = {.correct =
                                                      count_correct ? &loss->mlm_correct : NULL};
    const wg_cross_entropy_options nsp_options = {.correct =
                                                      count_correct ? &loss->nsp_correct : NULL};
    wg_tensor *hidden = wg_model_forward(model, &inputs), *nsp = NULL;
    if (count_correct && batch->masked_labels)
        loss->mlm_count = count_labels(batch->masked_labels);
    const int64_t words = masked ? wg_tensor_count(masked) : 0;
    wg_tensor *mlm = wg_model_loss(model, wg_slice(hidden, 0, 0, words, 1), NULL,
                                   batch->masked_labels, &mlm_options);
    if (pairs) {
        if (count_correct)
            loss->nsp_count = count_labels(batch->next_sentence_labels);
        nsp = next_sentence_loss(model, wg_slice(hidden, 0, words, WG_END, 1), batch, &nsp_options);
    }
    wg_tensor *total = pairs ? wg_add(mlm, nsp) : wg_alias(mlm);
    const bool failed = !total || wg_error_pending();
    if (!failed) {
        loss->total = wg_scope_escape(total);
        loss->mlm = wg_scope_escape(mlm);
        loss->nsp = wg_scope_escape(nsp);
    }
    wg_scope_end(&scope, NULL);
    return failed ? -1 : 0;
}

/* ---- Training ---- */

typedef struct masked {
    wg__held_out held_out;
} masked;

static wg_batches *make_batches(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                int64_t batch, int64_t sequence, uint64_t seed) {
    const wg__masked_batch_options options = {.batch = batch, .sequence = sequence, .seed = seed};
    return wg__masked_batches_new(text, tokenizer, &options);
}

static int begin(wg_training *t) {
    masked *mine = t->context = wg__calloc(1, sizeof *mine);
    return mine ? wg__begin_batches(t, &mine->held_out) : -1;
}

static void end(wg_training *t) {
    masked *mine = t->context;
    if (mine)
        wg_batches_free(mine->held_out.batches);
    wg__free(mine);
}

/* Adds the metrics of a batch, weighted by what was counted. */
static int add_metrics(const wg__masked_batch *batch, const wg__masked_loss *loss,
                       wg_metrics *metrics) {
    const double masked_count = (double)loss->mlm_count, pairs = (double)loss->nsp_count;
    metrics->tokens += batch->tokens;
    if (wg_metrics_add(metrics, "mlm_loss", wg_item(loss->mlm), masked_count) < 0 ||
        wg_metrics_add(metrics, "mlm_accuracy", (double)loss->mlm_correct / masked_count,
                       masked_count) < 0)
        return -1;
    if (loss->nsp &&
        (wg_metrics_add(metrics, "nsp_loss", wg_item(loss->nsp), pairs) < 0 ||
         wg_metrics_add(metrics, "nsp_accuracy", (double)loss->nsp_correct / pairs, pairs) < 0))
        return -1;
    return 0;
}

/* Of the words and of the sentences: their means are over other numbers. */
static wg_tensor *next_loss(void *training, wg_metrics *metrics) {
    const wg_training *t = training;
    wg__masked_batch batch;
    wg__masked_loss loss;
    if (wg_batches_next(t->batches, &batch) < 0 ||
        wg__masked_lm_loss(t->setup.model, &batch, true, &loss) < 0 ||
        add_metrics(&batch, &loss, metrics) < 0)
        return NULL;
    return loss.nsp ? wg_stack(2, (wg_tensor *[]){loss.mlm, loss.nsp}, 0) : loss.mlm;
}

static int weigh(void *training, wg_loss_part *parts) {
    const wg_training *t = training;
    wg__masked_batch batch;
    if (wg_batches_next(t->batches, &batch) < 0)
        return -1;
    parts[0].count = (double)wg_tensor_count(batch.masked_labels);
    parts[1].count = (double)wg_tensor_count(batch.next_sentence_labels);
    return 0;
}

/* ---- Evaluation ---- */

static int evaluate_batch(const wg_training *t, wg_metrics *metrics) {
    const masked *mine = t->context;
    const wg_dataset *text = t->setup.training ? t->setup.training : t->setup.held_out;
    wg__masked_batch batch;
    wg__masked_loss loss;
    if (wg_batches_next(mine->held_out.batches, &batch) < 0 ||
        wg__masked_lm_loss(t->setup.model, &batch, true, &loss) < 0 ||
        add_metrics(&batch, &loss, metrics) < 0)
        return -1;
    const double masked_count = (double)wg_tensor_count(batch.masked_labels);
    const double unigram = wg_dataset_unigram_loss(text, batch.masked_labels, NULL);
    if (wg_metrics_add(metrics, "unigram_loss", unigram, masked_count) < 0)
        return -1;
    if (!t->setup.model->type->encoder.next_sentence)
        return 0;
    const double random =
        wg_item(wg_mean(wg_cast(batch.next_sentence_labels, WG_F64), 0, NULL, false));
    return wg_metrics_add(metrics, "nsp_random", random, (double)t->setup.batch);
}

static int evaluate(wg_training *t, int64_t batches, wg_metrics *metrics) {
    const masked *mine = t->context;
    if (wg__evaluate_batches(t, &mine->held_out, batches, evaluate_batch, metrics) < 0)
        return -1;
    double loss = wg_metrics_get(metrics, "mlm_loss");
    if (t->setup.model->type->encoder.next_sentence)
        loss += wg_metrics_get(metrics, "nsp_loss");
    return wg_metrics_add(metrics, "loss", loss, wg_metrics_weight(metrics, "mlm_loss"));
}

/* ---- Results ---- */

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
    {0},
};

static void print(const wg_metrics *metrics, FILE *stream) {
    const double loss = wg_metrics_get(metrics, "mlm_loss");
    fprintf(stream, "masked words     loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n", loss,
            exp(loss), 100 * wg_metrics_get(metrics, "mlm_accuracy"),
            wg_metrics_weight(metrics, "mlm_loss"));
    fprintf(stream, "by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    if (wg_metrics_weight(metrics, "nsp_loss") == 0)
        return;
    fprintf(stream, "next sentences   loss %.4f, accuracy %.1f %% of %.0f pairs\n",
            wg_metrics_get(metrics, "nsp_loss"), 100 * wg_metrics_get(metrics, "nsp_accuracy"),
            wg_metrics_weight(metrics, "nsp_loss"));
    fprintf(stream, "by guessing           accuracy %.1f %%\n", 100 * chance(metrics));
}

/* ---- Filling [MASK] ---- */

/* [CLS] text [SEP], with "[MASK]" in the text read as the token. */
static int encode(const wg_tokenizer *tokenizer, const char *text, wg_token_list *list) {
    const wg_encode_options read_masks = {.special_tokens = true};
    if (wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS) < 0 ||
        wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR) < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "fill",
                       "the %s tokenizer has no tokens that begin and end a text; a folder of "
                       "Hugging Face's names them in special_tokens_map.json, \"cls_token\" and "
                       "\"sep_token\"",
                       wg_tokenizer_kind(tokenizer));
    if (wg_token_list_append(list, wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS)) < 0 ||
        wg_tokenizer_encode(tokenizer, text, -1, &read_masks, list) < 0)
        return -1;
    return wg_token_list_append(list, wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR));
}

/* The positions to predict each [MASK] from, (N) i64. */
static wg_tensor *find_masks(const wg_tokenizer *tokenizer, const wg_token_list *list,
                             bool from_before) {
    const int32_t mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    int64_t *places = wg__alloc_array(list->count, sizeof *places);
    int64_t count = 0;
    for (int64_t i = 0; places && i < list->count; i++)
        if (list->ids[i] == mask)
            places[count++] = i - from_before;
    wg_tensor *positions = places ? wg_from_array(WG_I64, WG_DIMS(count), places) : NULL;
    wg__free(places);
    return positions;
}

/* (N, V): the probabilities of every token at each of the N positions. */
static wg_tensor *predict(const wg_model *model, const wg_token_list *list, wg_tensor *positions) {
    wg_tensor *ids = wg_from_array(WG_I32, WG_DIMS(1, list->count), list->ids);
    const wg_model_inputs inputs = {.ids = ids, .output_positions = positions};
    return wg_softmax(wg_model_logits(model, wg_model_forward(model, &inputs), NULL), -1);
}

/* The `top` likeliest of `count` tokens; those that were taken have probability -1. */
static int rank(const wg_tokenizer *tokenizer, float *row, int64_t count, int64_t top,
                wg_filled_blank *blank) {
    blank->candidates = wg__calloc((size_t)top, sizeof *blank->candidates);
    for (int64_t n = 0; blank->candidates && n < top && n < count; n++) {
        int64_t best = 0;
        for (int64_t i = 1; i < count; i++)
            if (row[i] > row[best])
                best = i;
        wg_candidate *candidate = &blank->candidates[blank->candidate_count++];
        candidate->text = wg__strdup(wg_tokenizer_token(tokenizer, (int32_t)best));
        candidate->probability = row[best];
        row[best] = -1;
    }
    return blank->candidates && !wg_error_pending() ? 0 : -1;
}

static int rank_all(const wg_tokenizer *tokenizer, const wg_use_options *options,
                    const wg_tensor *probabilities, wg_filled *filled) {
    enum { USUAL_TOP = 5 };
    const int64_t masks = wg_tensor_size(probabilities, 0);
    const int64_t vocabulary = wg_tensor_size(probabilities, 1);
    const int64_t known = wg_tokenizer_size(tokenizer);
    float *values = wg__alloc_array(wg__times(masks, vocabulary), sizeof *values);
    int status = values ? wg_to_array(probabilities, values) : -1;
    filled->blanks = status == 0 ? wg__calloc((size_t)masks, sizeof *filled->blanks) : NULL;
    filled->blank_count = filled->blanks ? masks : 0;
    for (int64_t i = 0; i < filled->blank_count && status == 0; i++)
        status = rank(tokenizer, values + i * vocabulary, known < vocabulary ? known : vocabulary,
                      options->top ? options->top : USUAL_TOP, &filled->blanks[i]);
    wg__free(values);
    return filled->blanks ? status : -1;
}

int wg__fill_masks(const wg_model *model, const wg_tokenizer *tokenizer,
                   const wg_use_options *options, const char *text, bool from_before,
                   wg_filled *filled) {
    wg_token_list list = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = encode(tokenizer, text, &list);
    wg_tensor *positions = status == 0 ? find_masks(tokenizer, &list, from_before) : NULL;
    if (positions && wg_tensor_count(positions) == 0)
        status = wg_fail(WG_ERROR_ARGUMENT, "fill",
                         "there is no [MASK] in '%.200s'; write it where a word is wanted", text);
    wg_tensor *probabilities = positions && status == 0 ? predict(model, &list, positions) : NULL;
    status = probabilities ? rank_all(tokenizer, options, probabilities, filled) : -1;
    wg_scope_end(&scope, NULL);
    wg_token_list_free(&list);
    return status;
}

static int fill_text(const wg_model *model, const wg_tokenizer *tokenizer,
                     const wg_use_options *options, const char *text, wg_filled *filled) {
    return wg__fill_masks(model, tokenizer, options, text, false, filled);
}

/* ---- Scoring texts ----
 *
 * The pseudo-log-likelihood (Salazar et al. 2020, arXiv:1910.14659, eq. 1): the sum over the tokens
 * of log p(token | the others). A row of a forward is a text with one token masked:
 *
 *     [CLS] [MASK] ##ing on [SEP]    [CLS] sing [MASK] on [SEP]    [CLS] sing ##ing [MASK] [SEP]
 *
 * Within words the later tokens of the same word are masked with it (Kauf & Ivanova 2023,
 * arXiv:2305.10588, PLL-word-l2r), since they tell what a rare word is:
 *
 *     [CLS] [MASK] [MASK] on [SEP]   [CLS] sing [MASK] on [SEP]    [CLS] sing ##ing [MASK] [SEP] */

typedef struct scoring {
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    const wg_score_options *options;
    const wg_text_batch *texts;
    bool from_before; /* a token is predicted from the hidden state one before it */
    int32_t class, separator, mask;
    int32_t *ids, *labels; /* (R, n + 2), (R) */
    int64_t *positions;    /* (R) flat */
    double *losses;        /* (R) */
} scoring;

static int begin_scoring(scoring *s, int64_t rows) {
    const size_t size = (size_t)wg__times(rows, s->texts->length + 2);
    s->class = wg_tokenizer_special(s->tokenizer, WG_TOKEN_CLASS);
    s->separator = wg_tokenizer_special(s->tokenizer, WG_TOKEN_SEPARATOR);
    s->mask = wg_tokenizer_special(s->tokenizer, WG_TOKEN_MASK);
    if (s->class < 0 || s->separator < 0 || s->mask < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the vocabulary lacks [CLS], [SEP] or [MASK], with which texts are scored");
    s->ids = wg__alloc_array(size, sizeof *s->ids);
    s->labels = wg__alloc_array(rows, sizeof *s->labels);
    s->positions = wg__alloc_array(rows, sizeof *s->positions);
    s->losses = wg__alloc_array(rows, sizeof *s->losses);
    return s->ids && s->labels && s->positions && s->losses ? 0 : -1;
}

static void end_scoring(scoring *s) {
    wg__free(s->ids);
    wg__free(s->labels);
    wg__free(s->positions);
    wg__free(s->losses);
}

/* Row `row` of a forward: the text with its token number `place` masked. */
static void mask_token(scoring *s, int64_t row, const int32_t *text, int64_t place) {
    const int64_t n = s->texts->length;
    int32_t *ids = s->ids + row * (n + 2);
    ids[0] = s->class;
    memcpy(ids + 1, text, (size_t)n * sizeof *ids);
    ids[n + 1] = s->separator;
    ids[1 + place] = s->mask;
    if (s->options->within_words)
        for (int64_t i = place + 1; i < n && !wg__token_begins_word(s->tokenizer, text[i]); i++)
            ids[1 + i] = s->mask;
    s->labels[row] = text[place];
    s->positions[row] = row * (n + 2) + 1 + place - s->from_before;
}

/* Predicts the masked tokens first ... first + rows - 1 of all texts. */
static int score_masked(scoring *s, int64_t first, int64_t rows, wg_score *scores) {
    const int64_t n = s->texts->length;
    for (int64_t i = 0; i < rows; i++)
        mask_token(s, i, s->texts->ids + (first + i) / n * n, (first + i) % n);
    wg_scope scope;
    wg_scope_begin(&scope);
    const wg_model_inputs inputs = {.ids = wg_from_array(WG_I32, WG_DIMS(rows, n + 2), s->ids)};
    const int status = wg__score_losses(s->model, s->options, &inputs,
                                        wg_from_array(WG_I64, WG_DIMS(rows), s->positions),
                                        wg_from_array(WG_I32, WG_DIMS(rows), s->labels), s->losses);
    wg_scope_end(&scope, NULL);
    for (int64_t i = 0; status == 0 && i < rows; i++) {
        scores[(first + i) / n].log_probability -= s->losses[i];
        scores[(first + i) / n].tokens++;
    }
    return status;
}

int wg__score_masks(const wg_model *model, const wg_tokenizer *tokenizer,
                    const wg_score_options *options, const wg_text_batch *texts, bool from_before,
                    wg_score *scores) {
    scoring s = {.model = model,
                 .tokenizer = tokenizer,
                 .options = options,
                 .texts = texts,
                 .from_before = from_before};
    const int64_t all = texts->count * texts->length;
    const int64_t most = wg__score_rows(options, texts->length + 2);
    int status = begin_scoring(&s, most);
    for (int64_t first = 0; status == 0 && first < all; first += most)
        status = score_masked(&s, first, all - first < most ? all - first : most, scores);
    end_scoring(&s);
    return status;
}

static int score(const wg_model *model, const wg_tokenizer *tokenizer,
                 const wg_score_options *options, const wg_text_batch *texts, wg_score *scores) {
    return wg__score_masks(model, tokenizer, options, texts, false, scores);
}

const wg_objective wg_masked_lm = {
    .name = "masked-lm",
    .title = "predicts masked words, and next sentences (Devlin et al. 2019)",
    .shapes = WG_ENCODER,
    .text = WG_TEXT_SENTENCES,
    .batches = make_batches,
    .batch_size = sizeof(wg__masked_batch),
    .batch_tokens = offsetof(wg__masked_batch, tokens),
    .begin = begin,
    .end = end,
    .loss = next_loss,
    .weigh = weigh,
    .evaluate = evaluate,
    .describe = wg__describe_sentences,
    .metrics = rows,
    .print = print,
    .fills = WG_FILLS_BY_RANK,
    .fill = fill_text,
    .score_frame = 2,
    .scores_within_words = true,
    .score = score,
};
