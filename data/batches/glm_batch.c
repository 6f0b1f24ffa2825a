/* GLM's batches: which texts, and which spans of them. See glm_batch.h. The texts are the same in
 * every epoch. */
#include "data/batches/glm_batch.h"

#include <math.h>
#include <string.h>

#include "base/array.h"
#include "data/batches/builder.h"
#include "data/batches/glm_blanks.h"
#include "tensor/internal.h"

#define WHERE "glm_batches"
#define LENGTH_MULTIPLE 8 /* of T, so that few shapes of batches occur */
#define LONGEST_SPAN 39   /* as in the published code */

/* Tokens first .. first + count - 1 of the corpus. */
typedef struct text {
    int64_t first, count;
    int64_t sentence; /* the first that begins here or later */
    bool goes_on;     /* the document does, after it */
} text;

typedef struct blanking {
    const wg_dataset *corpus;
    wg_glm_batch_options options;
    wg_glm_tokens tokens;
    double span_chances[LONGEST_SPAN + 1]; /* of a span of at most so many tokens */
    text *texts;
    int64_t count, capacity;
    int64_t *source_ends; /* in texts; NULL without weights */
    /* One batch in the making. */
    wg__glm_blanks *blanks; /* B */
    int32_t *ids;           /* B rows of a text each */
    wg_glm_span *spans;     /* B rows of as many spans as a text can hold */
    int64_t *lengths;       /* the same for one */
} blanking;

/* ---- Texts ---- */

static int64_t sentence_start(const blanking *batches, int64_t sentence) {
    return wg_dataset_sentence_start(batches->corpus, sentence);
}

/* The next text of a document from token `at` on: whole sentences, as many as there is room for, or
 * a part of one that is too long. `sentence` is the first that begins there or later. */
static text next_text(const blanking *batches, int64_t at, int64_t sentence, int64_t document_end) {
    const int64_t room = batches->options.sequence - 1;
    int64_t end = at, next = sentence;
    if (sentence_start(batches, next) == at)
        next++;
    while (end < document_end && sentence_start(batches, next) - at <= room)
        end = sentence_start(batches, next++);
    if (end == at)
        end = at + room;
    return (text){
        .first = at, .count = end - at, .sentence = sentence, .goes_on = end < document_end};
}

static int add_text(blanking *batches, text t) {
    text *texts = wg__grow(batches->texts, batches->count, &batches->capacity, batches->count + 1,
                           sizeof *texts);
    if (!texts)
        return -1;
    batches->texts = texts;
    texts[batches->count++] = t;
    return 0;
}

static int find_texts(blanking *batches) {
    const wg_dataset *corpus = batches->corpus;
    for (int64_t d = 0, sentence = 0, source = 0; d < wg_dataset_documents(corpus); d++) {
        const int64_t end = sentence_start(batches, wg_dataset_document_start(corpus, d + 1));
        for (int64_t at = sentence_start(batches, sentence); at < end;) {
            const text t = next_text(batches, at, sentence, end);
            if (add_text(batches, t) < 0)
                return -1;
            at += t.count;
            while (sentence < wg_dataset_sentences(corpus) &&
                   sentence_start(batches, sentence) < at)
                sentence++;
        }
        wg__note_source_ends(corpus, d + 1, batches->count, &source, batches->source_ends);
    }
    return 0;
}

/* ---- Spans ---- */

static void shuffle(wg_generator *g, int64_t count, wg_glm_span *spans) {
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = wg__random_between(g, 0, i);
        const wg_glm_span swapped = spans[i];
        spans[i] = spans[j];
        spans[j] = swapped;
    }
}

static int64_t draw_length(const blanking *batches, wg_generator *g) {
    const double chance = wg_random_uniform(g);
    int64_t length = 1;
    while (length < LONGEST_SPAN && chance >= batches->span_chances[length])
        length++;
    return length;
}

/* Lengths until enough is masked; between two spans there is room for a token. */
static int64_t draw_lengths(const blanking *batches, int64_t count, wg_generator *g,
                            int64_t *masked) {
    const double wanted = batches->options.masked_share * (double)count;
    int64_t spans = 0, room = count;
    *masked = 0;
    do {
        int64_t length = draw_length(batches, g);
        length = length < room ? length : room;
        batches->lengths[spans++] = length;
        *masked += length;
        room -= length + 1;
    } while ((double)*masked < wanted && room > 0);
    return spans;
}

/* Spans of these lengths at places of chance, in the order of the text: each is where a draw of the
 * tokens that stay, less one between two spans, has it. */
static void place_spans(int64_t count, int64_t masked, int64_t spans, const int64_t *lengths,
                        wg_generator *g, wg_glm_span *placed) {
    const int64_t free = count - masked - (spans - 1);
    for (int64_t i = 0; i < spans; i++) { /* insertion sort: they are few */
        const int64_t place = wg__random_between(g, 0, free);
        int64_t j = i;
        for (; j > 0 && placed[j - 1].first > place; j--)
            placed[j] = placed[j - 1];
        placed[j].first = place;
    }
    for (int64_t i = 0, before = 0; i < spans; i++) {
        placed[i].first += before;
        placed[i].end = placed[i].first + lengths[i];
        before += lengths[i] + 1;
    }
}

static int64_t choose_spans(const blanking *batches, const text *t, wg_generator *g,
                            wg_glm_span *spans) {
    int64_t masked, *lengths = batches->lengths;
    const int64_t count = draw_lengths(batches, t->count, g, &masked);
    /* The last one drawn tends to be long, as it is what reached the share. */
    const int64_t swapped = lengths[count - 1], other = wg__random_between(g, 0, count - 1);
    lengths[count - 1] = lengths[other];
    lengths[other] = swapped;
    place_spans(t->count, masked, count, lengths, g, spans);
    shuffle(g, count, spans);
    return count;
}

/* Whole sentences until enough is masked; 0 if the text is one sentence, or a part of one. */
static int64_t choose_sentences(const blanking *batches, const text *t, wg_generator *g,
                                wg_glm_span *spans) {
    int64_t count = 0;
    for (int64_t s = t->sentence; s < wg_dataset_sentences(batches->corpus); s++) {
        const int64_t first = sentence_start(batches, s) - t->first;
        const int64_t end = sentence_start(batches, s + 1) - t->first;
        if (end > t->count)
            break;
        spans[count++] = (wg_glm_span){first, end};
    }
    if (count == 0 || (count == 1 && spans[0].end - spans[0].first == t->count))
        return 0;
    shuffle(g, count, spans);
    const double wanted = batches->options.masked_share * (double)t->count;
    int64_t chosen = 0;
    for (int64_t masked = 0; chosen == 0 || (double)masked < wanted; chosen++)
        masked += spans[chosen].end - spans[chosen].first;
    return chosen;
}

/* Makes a text with blanks of an example. */
static void choose_blanks(const blanking *batches, int64_t row, const wg_example *example,
                          wg__glm_blanks *blanks) {
    const wg_glm_batch_options *o = &batches->options;
    const text *t = &batches->texts[example->index];
    int32_t *ids = batches->ids + row * o->sequence;
    wg_glm_span *spans = batches->spans + row * o->sequence;
    wg_generator g = example->generator;
    wg_dataset_read(batches->corpus, t->first, t->count, ids);
    *blanks = (wg__glm_blanks){.text = ids, .count = t->count, .spans = spans};
    const double chance = wg_random_uniform(&g);
    if (chance < o->document_share) {
        spans[0].first = wg__random_between(&g, 0, t->count / 2);
        spans[0].end = t->count;
        blanks->span_count = 1;
        blanks->mask = batches->tokens.document_mask;
        blanks->goes_on = t->goes_on;
        return;
    }
    blanks->mask = batches->tokens.sentence_mask;
    if (chance < o->document_share + o->sentence_share)
        blanks->span_count = choose_sentences(batches, t, &g, spans);
    if (blanks->span_count == 0) {
        blanks->mask = batches->tokens.mask;
        blanks->span_count = choose_spans(batches, t, &g, spans);
    }
}

/* ---- Batches ---- */

static int build(void *context, int64_t rows, const wg_example *examples, void *batch) {
    blanking *batches = context;
    for (int64_t b = 0; b < rows; b++)
        choose_blanks(batches, b, &examples[b], &batches->blanks[b]);
    return wg__glm_blanks_batch(&batches->tokens, rows, batches->blanks, LENGTH_MULTIPLE, batch);
}

/* ---- Making them ---- */

static int set_options(blanking *batches, const wg_glm_batch_options *options) {
    wg_glm_batch_options *o = &batches->options;
    if (options)
        *o = *options;
    if (wg__batch_sizes(WHERE, &o->batch, &o->sequence) < 0)
        return -1;
    if (o->masked_share == 0)
        o->masked_share = 0.15;
    if (o->span_mean == 0)
        o->span_mean = 3;
    if (!(o->masked_share > 0 && o->masked_share <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "masked_share is %g; it must be a share of 1",
                       o->masked_share);
    if (!(o->span_mean > 0 && o->span_mean < LONGEST_SPAN))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "span_mean is %g; it must be above 0 and below %d",
                       o->span_mean, LONGEST_SPAN);
    if (!(o->sentence_share >= 0 && o->document_share >= 0 &&
          o->sentence_share + o->document_share <= 1))
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "sentence_share is %g and document_share %g; they must be shares of 1",
                       o->sentence_share, o->document_share);
    return 0;
}

static int set_tokens(blanking *batches, const wg_tokenizer *tokenizer) {
    if (wg__batch_vocabulary(WHERE, batches->corpus, wg_tokenizer_size(tokenizer)) < 0)
        return -1;
    return wg_glm_tokens_of(tokenizer, &batches->tokens);
}

/* The Poisson distribution without its 0, summed up: p(k) = m^k / k! / (e^m - 1). */
static void set_span_chances(blanking *batches) {
    const double mean = batches->options.span_mean;
    double chance = 1 / expm1(mean);
    for (int k = 1; k <= LONGEST_SPAN; k++) {
        chance *= mean / k;
        batches->span_chances[k] = batches->span_chances[k - 1] + chance;
    }
}

static int allocate(blanking *batches) {
    const size_t rows = (size_t)batches->options.batch, room = (size_t)batches->options.sequence;
    batches->blanks = wg__alloc(rows * sizeof *batches->blanks);
    batches->ids = wg__alloc(rows * room * sizeof *batches->ids);
    batches->spans = wg__alloc(rows * room * sizeof *batches->spans);
    batches->lengths = wg__alloc(room * sizeof *batches->lengths);
    return batches->blanks && batches->ids && batches->spans && batches->lengths ? 0 : -1;
}

static int prepare(blanking *batches, const wg_tokenizer *tokenizer,
                   const wg_glm_batch_options *options, wg_batches_options *batching) {
    if (set_options(batches, options) < 0 || set_tokens(batches, tokenizer) < 0)
        return -1;
    batching->batch = batches->options.batch;
    batching->seed = batches->options.seed;
    wg__use_weights(batches->corpus, batching);
    if (batching->sources > 0 &&
        !(batches->source_ends = wg__calloc((size_t)batching->sources, sizeof(int64_t))))
        return -1;
    batching->source_ends = batches->source_ends;
    if (find_texts(batches) < 0 || allocate(batches) < 0)
        return -1;
    batching->examples = batches->count;
    set_span_chances(batches);
    return 0;
}

static void free_blanking(void *context) {
    blanking *batches = context;
    wg__free(batches->texts);
    wg__free(batches->source_ends);
    wg__free(batches->blanks);
    wg__free(batches->ids);
    wg__free(batches->spans);
    wg__free(batches->lengths);
    wg__free(batches);
}

wg_batches *wg_glm_batches_new(const wg_dataset *corpus, const wg_tokenizer *tokenizer,
                               const wg_glm_batch_options *options) {
    wg_batches_options batching = {0};
    blanking *batches = corpus && tokenizer ? wg__calloc(1, sizeof *batches) : NULL;
    if (!batches)
        return NULL;
    batches->corpus = corpus;
    if (prepare(batches, tokenizer, options, &batching) < 0) {
        free_blanking(batches);
        return NULL;
    }
    return wg_batches_new(
        &(wg_batch_source){.context = batches, .build = build, .free = free_blanking}, &batching);
}
