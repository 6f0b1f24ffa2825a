/* The batches of blank infilling: texts with masks, spans, tables. See blank_infilling.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "data/internal.h"
#include "data/tokenizer/text_file.h"
#include "objectives/blank_infilling.h"
#include "tensor/easy.h"

#define WHERE "blank_batches"

/* ---- Texts with masks: read as Part A, and written with the blanks filled ----
 *
 *     It was [MASK] . The end [gMASK]         pieces: "It was ", mask, " . The end ", mask, "" */

/* A stretch of text, and the mask behind it; the last stretch has no mask. */
typedef struct piece {
    int64_t length;
    int mask;         /* -1: none */
    const char *next; /* behind the mask; NULL: none */
} piece;

static const char *const masks[] = {"[MASK]", "[sMASK]", "[gMASK]"};
enum { MASK, SENTENCE_MASK, DOCUMENT_MASK, MASKS };

/* The first stretch of a text. */
static piece next_piece(const char *text) {
    for (const char *c = strchr(text, '['); c; c = strchr(c + 1, '['))
        for (int i = 0; i < MASKS; i++)
            if (strncmp(c, masks[i], strlen(masks[i])) == 0)
                return (piece){c - text, i, c + strlen(masks[i])};
    return (piece){(int64_t)strlen(text), -1, NULL};
}

bool wg__spaces_begin_words(const wg_tokenizer *tokenizer) {
    const char *kind = wg_tokenizer_kind(tokenizer);
    return strcmp(kind, "bpe") == 0 || strcmp(kind, "sentencepiece") == 0;
}

const char *wg__blank_find_mask(const char *text) {
    const piece p = next_piece(text);
    return p.next ? text + p.length : NULL;
}

int wg__blank_encode_stretch(const wg_blank_tokens *tokens, const wg_tokenizer *tokenizer,
                             const char *text, wg_token_list *list) {
    const int32_t ids[MASKS] = {tokens->mask, tokens->sentence_mask, tokens->document_mask};
    while (text) {
        const piece p = next_piece(text);
        int64_t length = p.length;
        if (p.mask >= 0 && length > 0 && text[length - 1] == ' ' &&
            wg__spaces_begin_words(tokenizer))
            length--;
        if (length > 0 && wg_tokenizer_encode(tokenizer, text, length, NULL, list) < 0)
            return -1;
        if (p.mask >= 0 && wg_token_list_append(list, ids[p.mask]) < 0)
            return -1;
        text = p.next;
    }
    return 0;
}

int wg__blank_encode(const wg_blank_tokens *tokens, const wg_tokenizer *tokenizer, const char *text,
                     wg_token_list *list) {
    const int64_t before = list->count;
    if (wg__utf8_check(text, (int64_t)strlen(text), "the text", "glm_encode") == 0 &&
        wg_token_list_append(list, tokens->beginning) == 0 &&
        wg__blank_encode_stretch(tokens, tokenizer, text, list) == 0)
        return 0;
    list->count = before;
    return -1;
}

char *wg__blank_filled_text(const wg_tokenizer *tokenizer, const char *text,
                            const wg_token_list *blanks) {
    static const wg_decode_options options = {.skip_special = true};
    wg__text out = {0};
    int result = 0;
    while (result == 0 && text) {
        const piece p = next_piece(text);
        result = wg__text_append(&out, text, p.length);
        text = p.next;
        if (result < 0 || !text)
            break;
        /* The words of the blank, without their space if the text before them ends with one. */
        char *words = wg_tokenizer_decode(tokenizer, blanks->ids, blanks->count, &options);
        const bool spaced = out.length == 0 || strchr(" \t\n\r", out.bytes[out.length - 1]);
        const char *first = words && spaced && words[0] == ' ' ? words + 1 : words;
        result = words ? wg__text_append(&out, first, (int64_t)strlen(first)) : -1;
        wg_text_free(words);
        blanks++;
    }
    if (result == 0)
        return out.bytes;
    wg__free(out.bytes);
    return NULL;
}

void wg__blank_row_append(wg__blank_row *row, int64_t id, int64_t position, int64_t block) {
    row->ids[row->length] = id;
    row->positions[row->length] = position;
    row->blocks[row->length++] = block;
}

void wg__blank_row_append_span(wg__blank_row *row, const wg_blank_tokens *tokens, int64_t place,
                               const int32_t *ids, int64_t count, bool ends) {
    for (int64_t i = 0; i <= count; i++) {
        wg__blank_row_append(row, i == 0 ? tokens->start : ids[i - 1], place, i + 1);
        if (i == count && !ends)
            break;
        *row->target_positions++ = row->offset + row->length - 1;
        *row->labels++ = i < count ? ids[i] : tokens->end;
    }
}

int wg__blank_batch_allocate(const wg_blank_tokens *tokens, int64_t rows, int64_t length,
                             int64_t targets, wg__blank_batch *batch) {
    *batch = (wg__blank_batch){
        .input_ids = wg_full(WG_I64, WG_DIMS(rows, length), (double)tokens->pad),
        .position_ids = wg_zeros(WG_I64, WG_DIMS(rows, length)),
        .block_position_ids = wg_zeros(WG_I64, WG_DIMS(rows, length)),
        .part_a = wg_zeros(WG_I64, WG_DIMS(rows)),
        .target_positions = wg_zeros(WG_I64, WG_DIMS(targets)),
        .labels = wg_zeros(WG_I64, WG_DIMS(targets)),
    };
    if (batch->input_ids && batch->position_ids && batch->block_position_ids && batch->part_a &&
        batch->target_positions && batch->labels)
        return 0;
    *batch = (wg__blank_batch){0};
    return -1;
}

wg__blank_row wg__blank_row_first(const wg__blank_batch *batch) {
    return (wg__blank_row){.ids = wg_tensor_data(batch->input_ids),
                           .positions = wg_tensor_data(batch->position_ids),
                           .blocks = wg_tensor_data(batch->block_position_ids),
                           .target_positions = wg_tensor_data(batch->target_positions),
                           .labels = wg_tensor_data(batch->labels)};
}

void wg__blank_row_next(wg__blank_row *row, const wg__blank_batch *batch) {
    const int64_t longest = wg_tensor_size(batch->input_ids, 1);
    row->ids += longest;
    row->positions += longest;
    row->blocks += longest;
    row->offset += longest;
    row->length = 0;
}

int wg__blanked_batch(const wg_blank_tokens *tokens, int64_t rows, const wg__blanked_text *blanks,
                      int64_t multiple, wg__blank_batch *batch) {
    int64_t longest = 0, targets = 0;
    for (int64_t i = 0; i < rows; i++) {
        const wg__blanked_text *b = &blanks[i];
        longest = wg__larger(longest, 1 + b->count + 2 * b->span_count);
        for (int64_t s = 0; s < b->span_count; s++) {
            const bool ends = !b->goes_on || b->spans[s].end < b->count;
            targets += b->spans[s].end - b->spans[s].first + ends;
        }
    }
    longest = (longest + multiple - 1) / multiple * multiple;
    if (wg__blank_batch_allocate(tokens, rows, longest, targets, batch) < 0)
        return -1;
    wg__blank_row row = wg__blank_row_first(batch);
    for (int64_t i = 0; i < rows; i++, wg__blank_row_next(&row, batch)) {
        const wg__blanked_text *b = &blanks[i];
        wg__blank_row_append(&row, tokens->beginning, 0, 0);
        for (int64_t t = 0; t < b->count;) {
            const wg__blank_span *span = NULL; /* the span that begins here; spans are few */
            for (int64_t s = 0; s < b->span_count && !span; s++)
                span = b->spans[s].first == t ? &b->spans[s] : NULL;
            wg__blank_row_append(&row, span ? b->mask : b->text[t], row.length, 0);
            t = span ? span->end : t + 1;
        }
        ((int64_t *)wg_tensor_data(batch->part_a))[i] = row.length;
        for (int64_t s = 0; s < b->span_count; s++) {
            const wg__blank_span *span = &b->spans[s];
            int64_t place = 1 + span->first; /* of its mask: each span before it is one token */
            for (int64_t k = 0; k < b->span_count; k++)
                if (b->spans[k].first < span->first)
                    place -= b->spans[k].end - b->spans[k].first - 1;
            wg__blank_row_append_span(&row, tokens, place, b->text + span->first,
                                      span->end - span->first, !b->goes_on || span->end < b->count);
        }
        batch->tokens += row.length;
    }
    return 0;
}

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
    wg__blank_batch_options options;
    wg_blank_tokens tokens;
    double span_chances[LONGEST_SPAN + 1]; /* of a span of at most i tokens */
    text *texts;
    int64_t count, capacity;
    int64_t *source_ends; /* in texts; NULL without weights */
    /* The current batch. */
    wg__blanked_text *blanks; /* B */
    int32_t *ids;             /* B rows of a text each */
    wg__blank_span *spans;    /* B rows of `sequence` spans */
    int64_t *lengths;         /* (sequence) of the spans of a text */
} blanking;

/* Divides each document into texts of whole sentences, as long as possible. Cuts sentences that are
 * longer than a text. */
static int cut_texts(blanking *batches) {
    const wg_dataset *corpus = batches->corpus;
    const int64_t room = batches->options.sequence - 1;
    for (int64_t d = 0, sentence = 0, source = 0; d < wg__dataset_documents(corpus); d++) {
        const int64_t document_end =
            wg__dataset_sentence_start(corpus, wg__dataset_document_start(corpus, d + 1));
        for (int64_t at = wg__dataset_sentence_start(corpus, sentence); at < document_end;) {
            int64_t end = at, next = sentence; /* `sentence` is the first from `at` on */
            if (wg__dataset_sentence_start(corpus, next) == at)
                next++;
            while (end < document_end && wg__dataset_sentence_start(corpus, next) - at <= room)
                end = wg__dataset_sentence_start(corpus, next++);
            if (end == at)
                end = at + room;
            const text t = {.first = at,
                            .count = end - at,
                            .sentence = sentence,
                            .goes_on = end < document_end};
            if (wg__append(&batches->texts, &batches->count, &batches->capacity, &t, sizeof t) < 0)
                return -1;
            at = end;
            while (sentence < wg__dataset_sentences(corpus) &&
                   wg__dataset_sentence_start(corpus, sentence) < at)
                sentence++;
        }
        wg__note_source_ends(corpus, d + 1, batches->count, &source, batches->source_ends);
    }
    return 0;
}

/* ---- Spans ---- */

static void shuffle(wg_generator *g, int64_t count, wg__blank_span *spans) {
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = wg__random_between(g, 0, i);
        const wg__blank_span swapped = spans[i];
        spans[i] = spans[j];
        spans[j] = swapped;
    }
}

/* Draws lengths of spans until enough is masked; between two spans there is room for a token. */
static int64_t draw_lengths(const blanking *batches, int64_t count, wg_generator *g,
                            int64_t *masked) {
    const double wanted = batches->options.masked_share * (double)count;
    int64_t spans = 0, room = count;
    *masked = 0;
    do {
        const double chance = wg_random_uniform(g);
        int64_t length = 1;
        while (length < LONGEST_SPAN && chance >= batches->span_chances[length])
            length++;
        length = wg__smaller(length, room);
        batches->lengths[spans++] = length;
        *masked += length;
        room -= length + 1;
    } while ((double)*masked < wanted && room > 0);
    return spans;
}

/* Whole sentences until enough is masked; 0 if the text has one sentence or less. */
static int64_t choose_sentences(const blanking *batches, const text *t, wg_generator *g,
                                wg__blank_span *spans) {
    int64_t count = 0;
    for (int64_t s = t->sentence; s < wg__dataset_sentences(batches->corpus); s++) {
        const int64_t first = wg__dataset_sentence_start(batches->corpus, s) - t->first;
        const int64_t end = wg__dataset_sentence_start(batches->corpus, s + 1) - t->first;
        if (end > t->count)
            break;
        spans[count++] = (wg__blank_span){first, end};
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
                          wg__blanked_text *blanks) {
    const wg__blank_batch_options *o = &batches->options;
    const text *t = &batches->texts[example->index];
    int32_t *ids = batches->ids + row * o->sequence;
    wg__blank_span *spans = batches->spans + row * o->sequence;
    wg_generator g = example->generator;
    wg__dataset_read(batches->corpus, t->first, t->count, ids);
    *blanks = (wg__blanked_text){.text = ids, .count = t->count, .spans = spans};
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
        int64_t masked, *lengths = batches->lengths;
        const int64_t count = draw_lengths(batches, t->count, &g, &masked);
        /* The last length drawn reached the share, so it tends to be long: move it anywhere. */
        const int64_t swapped = lengths[count - 1], other = wg__random_between(&g, 0, count - 1);
        lengths[count - 1] = lengths[other];
        lengths[other] = swapped;
        /* Places the spans at random, in the order of the text: sorted draws over the unmasked
         * tokens, without one token between two spans. */
        const int64_t free = t->count - masked - (count - 1);
        for (int64_t i = 0; i < count; i++) { /* insertion sort: they are few */
            const int64_t place = wg__random_between(&g, 0, free);
            int64_t j = i;
            for (; j > 0 && spans[j - 1].first > place; j--)
                spans[j] = spans[j - 1];
            spans[j].first = place;
        }
        for (int64_t i = 0, before = 0; i < count; i++) {
            spans[i].first += before;
            spans[i].end = spans[i].first + lengths[i];
            before += lengths[i] + 1;
        }
        shuffle(&g, count, spans);
        blanks->span_count = count;
    }
}

static int build(void *context, int64_t rows, const wg_example *examples, void *batch) {
    blanking *batches = context;
    for (int64_t b = 0; b < rows; b++)
        choose_blanks(batches, b, &examples[b], &batches->blanks[b]);
    return wg__blanked_batch(&batches->tokens, rows, batches->blanks, LENGTH_MULTIPLE, batch);
}

static int prepare(blanking *batches, const wg_tokenizer *tokenizer,
                   const wg__blank_batch_options *options, wg_batches_options *batching) {
    wg__blank_batch_options *o = &batches->options;
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
    if (wg__batch_vocabulary(WHERE, batches->corpus, wg_tokenizer_size(tokenizer)) < 0 ||
        wg__blank_tokens_of(tokenizer, &batches->tokens) < 0)
        return -1;
    batching->batch = batches->options.batch;
    batching->seed = batches->options.seed;
    wg__use_weights(batches->corpus, batching);
    if (batching->sources > 0 &&
        !(batches->source_ends = wg__calloc((size_t)batching->sources, sizeof(int64_t))))
        return -1;
    batching->source_ends = batches->source_ends;
    if (cut_texts(batches) < 0)
        return -1;
    batching->examples = batches->count;
    const size_t rows = (size_t)o->batch, room = (size_t)o->sequence;
    batches->blanks = wg__alloc_array(rows, sizeof *batches->blanks);
    batches->ids = wg__alloc_array(wg__times(rows, room), sizeof *batches->ids);
    batches->spans = wg__alloc_array(wg__times(rows, room), sizeof *batches->spans);
    batches->lengths = wg__alloc_array(room, sizeof *batches->lengths);
    if (!batches->blanks || !batches->ids || !batches->spans || !batches->lengths)
        return -1;
    /* The Poisson distribution without its 0, summed up: p(k) = m^k / k! / (e^m - 1). */
    const double mean = batches->options.span_mean;
    double chance = 1 / expm1(mean);
    for (int k = 1; k <= LONGEST_SPAN; k++) {
        chance *= mean / k;
        batches->span_chances[k] = batches->span_chances[k - 1] + chance;
    }
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

wg_batches *wg__blank_batches_new(const wg_dataset *corpus, const wg_tokenizer *tokenizer,
                                  const wg__blank_batch_options *options) {
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

/* ---- A batch as a table ---- */

typedef struct table {
    const wg_tokenizer *tokenizer;
    wg_blank_tokens tokens;
    const int64_t *target_positions, *labels; /* of the batch */
    int64_t targets, offset;                  /* of the row in B * T */
    wg__text text;
} table;

static const char *token_text(const table *t, int64_t id) {
    const struct {
        int32_t id;
        const char *text;
    } added[] = {{t->tokens.start, "<|startofpiece|>"},
                 {t->tokens.end, "<|endofpiece|>"},
                 {t->tokens.mask, "[MASK]"},
                 {t->tokens.sentence_mask, "[sMASK]"},
                 {t->tokens.document_mask, "[gMASK]"},
                 {t->tokens.beginning, "[CLS]"}};
    if (id < t->tokens.tokenizer_size)
        return wg_tokenizer_token(t->tokenizer, (int32_t)id);
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        if (added[i].id == id)
            return added[i].text;
    return "?";
}

/* Appends a token with its control characters escaped; returns the number of characters. */
static int append_token(wg__text *text, const char *token) {
    int characters = 0;
    for (const unsigned char *c = (const unsigned char *)token; *c; c++) {
        char bytes[8];
        int length = snprintf(bytes, sizeof bytes, *c < ' ' ? "<0x%02X>" : "%c", *c);
        wg__text_append(text, bytes, length);
        characters += (*c & 0xC0) == 0x80 ? 0 : length;
    }
    return characters;
}

static void append(wg__text *text, const char *bytes) {
    wg__text_append(text, bytes, (int64_t)strlen(bytes));
}

static void append_column(wg__text *text, const char *token, int width) {
    for (int written = append_token(text, token); written < width; written++)
        append(text, " ");
}

/* The label of the token at a place, or "". */
static const char *label_text(const table *t, int64_t place) {
    for (int64_t i = 0; i < t->targets; i++)
        if (t->target_positions[i] == t->offset + place)
            return token_text(t, t->labels[i]);
    return "";
}

char *wg__blank_batch_show(const wg__blank_batch *batch, int64_t row,
                           const wg_tokenizer *tokenizer) {
    if (row < 0 || row >= wg_tensor_size(batch->input_ids, 0))
        return wg__fail_null(WG_ERROR_INDEX, "glm_batch_show", "sequence %lld of a batch of %lld",
                             (long long)row, (long long)wg_tensor_size(batch->input_ids, 0));
    const int64_t longest = wg_tensor_size(batch->input_ids, 1);
    table t = {.tokenizer = tokenizer,
               .offset = row * longest,
               .target_positions = wg_tensor_data(batch->target_positions),
               .labels = wg_tensor_data(batch->labels),
               .targets = wg_tensor_count(batch->labels)};
    const int64_t *ids = (const int64_t *)wg_tensor_data(batch->input_ids) + t.offset;
    const int64_t *positions = (const int64_t *)wg_tensor_data(batch->position_ids) + t.offset;
    const int64_t *blocks = (const int64_t *)wg_tensor_data(batch->block_position_ids) + t.offset;
    const int64_t part_a = ((const int64_t *)wg_tensor_data(batch->part_a))[row];
    int64_t length = part_a;
    while (length < longest && blocks[length] > 0)
        length++;
    wg__blank_tokens_of(tokenizer, &t.tokens);
    /* Columns are as wide as the longest token; it is measured in a text that is discarded. */
    int width = (int)strlen("predicts");
    for (int64_t i = 0; i < length; i++) {
        const int token = append_token(&t.text, token_text(&t, ids[i]));
        const int label = append_token(&t.text, label_text(&t, i));
        width = token > width ? token : width;
        width = label > width ? label : width;
        t.text.length = 0;
    }
    append(&t.text, "part  ");
    append_column(&t.text, "token", width);
    append(&t.text, "  position  block  ");
    append_column(&t.text, "predicts", width);
    append(&t.text, "  sees\n");
    for (int64_t i = 0; i < length; i++) {
        char numbers[64];
        snprintf(numbers, sizeof numbers, "  %8" PRId64 "  %5" PRId64 "  ", positions[i],
                 blocks[i]);
        append(&t.text, i < part_a ? "A     " : "B     ");
        append_column(&t.text, token_text(&t, ids[i]), width);
        append(&t.text, numbers);
        append_column(&t.text, label_text(&t, i), width);
        append(&t.text, "  ");
        for (int64_t j = 0; j < length; j++)
            append(&t.text, j < part_a || j <= i ? "#" : ".");
        append(&t.text, "\n");
    }
    if (!wg_error_pending())
        return t.text.bytes;
    wg__free(t.text.bytes);
    return NULL;
}
