/* Masked language modelling on pairs of segments: see masked_lm.h. */
#include "objectives/masked_lm.h"

#include <math.h>

#include "base/array.h"
#include "data/internal.h"

#define WHERE "masked-lm"

#define FRAME_TOKENS 3 /* [CLS] first [SEP] second [SEP] */
#define MASKED_SHARE 0.15

/* Sentences first .. end - 1 of the corpus. */
typedef struct segment {
    int64_t first, end;
} segment;

typedef struct example {
    segment a, b;
    bool random; /* b comes from another document */
} example;

typedef struct pairing {
    const wg_dataset *corpus;
    wg__pair_batch_options options;
    int32_t pad, class, separator, mask;
    example *examples; /* of the epoch that was planned last */
    int64_t count, capacity;
    /* The current sequence, T entries each. */
    int32_t *tokens;
    int64_t *candidates; /* places that may be masked; the chosen ones come first */
    /* The current batch. */
    example *taken;           /* B */
    int64_t *places, *labels; /* of all masked tokens; one block */
} pairing;

static int64_t segment_tokens(const wg_dataset *corpus, segment s) {
    return wg__dataset_sentence_start(corpus, s.end) - wg__dataset_sentence_start(corpus, s.first);
}

/* Sentences from `first` on until there are `target` tokens or the document ends. */
static segment gather(const wg_dataset *corpus, int64_t first, int64_t document_end,
                      int64_t target) {
    segment s = {first, first + 1};
    while (s.end < document_end && segment_tokens(corpus, s) < target)
        s.end++;
    return s;
}

/* The next example of a document, from sentence *at on; *at moves behind the sentences used. */
static example next_example(const pairing *p, int64_t document, int64_t *at, wg_generator *g) {
    const wg_dataset *corpus = p->corpus;
    int64_t target = p->options.sequence - FRAME_TOKENS;
    if (wg_random_uniform(g) < p->options.short_share)
        target = wg__random_between(g, 2, target);
    const int64_t document_end = wg__dataset_document_start(corpus, document + 1);
    segment chunk = gather(corpus, *at, document_end, target);
    /* Take the next sentence as well; otherwise this example could only become a random pair. */
    if (chunk.end == chunk.first + 1 && chunk.end < document_end)
        chunk.end++;
    const int64_t sentences = chunk.end - chunk.first;
    const int64_t first_end =
        chunk.first + (sentences < 2 ? 1 : wg__random_between(g, 1, sentences - 1));
    example e = {.a = {chunk.first, first_end}, .b = {first_end, chunk.end}};
    e.random = sentences < 2 || wg_random_uniform(g) < 0.5;
    if (e.random) { /* about the remaining tokens, from a document drawn among all others */
        int64_t other = wg__random_between(g, 0, wg__dataset_documents(corpus) - 2);
        other += other >= document;
        const int64_t begin = wg__dataset_document_start(corpus, other);
        const int64_t end = wg__dataset_document_start(corpus, other + 1);
        const int64_t left = target - segment_tokens(corpus, e.a);
        e.b = gather(corpus, wg__random_between(g, begin, end - 1), end, left);
    }
    *at = e.random ? first_end : chunk.end;
    return e;
}

static int plan(void *context, wg_epoch *epoch) {
    pairing *p = context;
    int64_t source = 0;
    p->count = 0;
    for (int64_t d = 0; d < wg__dataset_documents(p->corpus); d++) {
        const int64_t end = wg__dataset_document_start(p->corpus, d + 1);
        for (int64_t at = wg__dataset_document_start(p->corpus, d); at < end;) {
            const example e = next_example(p, d, &at, &epoch->generator);
            if (wg__append(&p->examples, &p->count, &p->capacity, &e, sizeof e) < 0)
                return -1;
        }
        wg__note_source_ends(p->corpus, d + 1, p->count, &source, epoch->source_ends);
    }
    epoch->examples = p->count;
    return wg_error_pending() ? -1 : 0; /* a read error leaves lengths undefined */
}

static void take(void *context, int64_t row, const wg_example *taken) {
    pairing *p = context;
    p->taken[row] = p->examples[taken->index];
}

/* Moves `wanted` of the candidates to the front, in ascending order. */
static void choose(int64_t *candidates, int64_t count, int64_t wanted, wg_generator *g) {
    for (int64_t i = 0; i < wanted; i++) {
        const int64_t j = wg__random_between(g, i, count - 1);
        const int64_t swapped = candidates[i];
        candidates[i] = candidates[j];
        candidates[j] = swapped;
    }
    for (int64_t i = 1; i < wanted; i++) { /* insertion sort: they are few */
        const int64_t place = candidates[i];
        int64_t j = i;
        for (; j > 0 && candidates[j - 1] > place; j--)
            candidates[j] = candidates[j - 1];
        candidates[j] = place;
    }
}

/* Makes sequence `row` of an example, and adds its masked tokens to *masked. -1 with the error of
 * reading the corpus. */
static int fill_row(pairing *p, int64_t row, example e, wg_generator g, wg__masked_batch *batch,
                    int64_t *masked) {
    const int64_t offset = row * p->options.sequence, room = p->options.sequence - FRAME_TOKENS;
    int64_t *ids = (int64_t *)wg_tensor_data(batch->ids) + offset;
    int64_t *types = (int64_t *)wg_tensor_data(batch->token_type_ids) + offset;
    bool *keep = (bool *)wg_tensor_data(batch->keep) + offset;
    int32_t *tokens = p->tokens;
    struct {
        int64_t first, count; /* tokens of the corpus that remain of a segment */
    } a = {wg__dataset_sentence_start(p->corpus, e.a.first), segment_tokens(p->corpus, e.a)},
      b = {wg__dataset_sentence_start(p->corpus, e.b.first), segment_tokens(p->corpus, e.b)};
    if (wg_error_pending()) /* the lengths are undefined */
        return -1;
    while (a.count + b.count > room) { /* the longer one loses a token, at its front or back */
        const bool front = wg_random_uniform(&g) < 0.5;
        if (a.count > b.count) {
            a.first += front;
            a.count--;
        } else {
            b.first += front;
            b.count--;
        }
    }
    const int64_t second = a.count + 2, length = a.count + b.count + FRAME_TOKENS;
    tokens[0] = p->class;
    wg__dataset_read(p->corpus, a.first, a.count, tokens + 1);
    tokens[second - 1] = p->separator;
    wg__dataset_read(p->corpus, b.first, b.count, tokens + second);
    tokens[length - 1] = p->separator;
    for (int64_t t = 1, count = 0; t < length - 1; t++)
        if (t != second - 1)
            p->candidates[count++] = t;
    for (int64_t t = 0; t < length; t++) {
        ids[t] = tokens[t];
        types[t] = t >= second;
        keep[t] = true;
    }
    const int64_t candidates = length - FRAME_TOKENS;
    const int64_t wanted =
        wg__smaller((int64_t)fmax(1, rint((double)length * MASKED_SHARE)), candidates);
    choose(p->candidates, candidates, wanted, &g);
    for (int64_t i = 0; i < wanted; i++) { /* 80 % [MASK], 10 % as they are, 10 % any token */
        const int64_t t = p->candidates[i];
        p->places[*masked] = offset + t;
        p->labels[(*masked)++] = tokens[t];
        const double chance = wg_random_uniform(&g);
        if (chance < 0.8)
            ids[t] = p->mask;
        else if (chance >= 0.9)
            ids[t] = (int32_t)wg_random_below(&g, (uint64_t)wg_dataset_vocabulary(p->corpus));
    }
    ((int64_t *)wg_tensor_data(batch->next_sentence_labels))[row] = e.random;
    batch->tokens += length;
    return 0;
}

static int build(void *context, int64_t count, const wg_example *examples, void *built) {
    pairing *p = context;
    wg__masked_batch *batch = built;
    const int64_t shape[2] = {count, p->options.sequence};
    *batch = (wg__masked_batch){
        .ids = wg_full(WG_I64, 2, shape, p->pad),
        .token_type_ids = wg_zeros(WG_I64, 2, shape),
        .keep = wg_zeros(WG_BOOL, 2, shape),
        .next_sentence_labels = wg_zeros(WG_I64, 1, shape),
    };
    int64_t masked = 0;
    int status =
        batch->ids && batch->token_type_ids && batch->keep && batch->next_sentence_labels ? 0 : -1;
    for (int64_t b = 0; status == 0 && b < count; b++)
        status = fill_row(p, b, p->taken[b], examples[b].generator, batch, &masked);
    if (status == 0) {
        batch->positions = wg_from_array(WG_I64, 1, &masked, p->places);
        batch->labels = wg_from_array(WG_I64, 1, &masked, p->labels);
    }
    if (batch->positions && batch->labels)
        return 0;
    *batch = (wg__masked_batch){0};
    return -1;
}

static void free_pairing(void *context) {
    pairing *p = context;
    wg__free(p->examples);
    wg__free(p->tokens);
    wg__free(p->candidates);
    wg__free(p->taken);
    wg__free(p->places);
    wg__free(p);
}

static int prepare(pairing *p, const wg_tokenizer *tokenizer) {
    wg__pair_batch_options *o = &p->options;
    if (wg__batch_sizes(WHERE, &o->batch, &o->sequence) < 0)
        return -1;
    if (o->short_share == 0)
        o->short_share = 0.1;
    if (o->short_share < 0)
        o->short_share = 0;
    p->pad = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD);
    p->class = wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS);
    p->separator = wg_tokenizer_special(tokenizer, WG_TOKEN_SEPARATOR);
    p->mask = wg_tokenizer_special(tokenizer, WG_TOKEN_MASK);
    if (p->pad < 0 || p->class < 0 || p->separator < 0 || p->mask < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the %s tokenizer has not all of [PAD], [CLS], [SEP] and [MASK]",
                       wg_tokenizer_kind(tokenizer));
    if (wg__batch_vocabulary(WHERE, p->corpus, wg_tokenizer_size(tokenizer)) < 0)
        return -1;
    if (wg__dataset_documents(p->corpus) < 2)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "the corpus has one document; two are needed, since random second segments "
                       "come from another one: blank lines between documents tell them apart");
    const int64_t masked = wg__times(o->batch, (int64_t)ceil(MASKED_SHARE * (double)o->sequence));
    p->tokens = wg__alloc_array(o->sequence, sizeof *p->tokens);
    p->candidates = wg__alloc_array(o->sequence, sizeof *p->candidates);
    p->taken = wg__alloc_array(o->batch, sizeof *p->taken);
    p->places = wg__alloc_array(wg__times(2, masked), sizeof *p->places);
    p->labels = p->places ? p->places + masked : NULL;
    return wg_error_pending() ? -1 : 0;
}

wg_batches *wg__pair_batches_new(const wg_dataset *text, const wg_tokenizer *tokenizer,
                                 const wg__pair_batch_options *options) {
    pairing *p = text && tokenizer ? wg__calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->corpus = text;
    p->options = *options;
    if (prepare(p, tokenizer) < 0) {
        free_pairing(p);
        return NULL;
    }
    wg_batches_options batching = {
        .batch = p->options.batch, .seed = p->options.seed, .shuffle_from_last = true};
    wg__use_weights(text, &batching);
    return wg_batches_new(
        &(wg_batch_source){
            .context = p, .build = build, .plan = plan, .take = take, .free = free_pairing},
        &batching);
}
