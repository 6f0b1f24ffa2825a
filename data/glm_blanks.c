/* Texts with blanks: Part A, Part B, positions, labels. See glm_batch.h for the drawing. */
#include "data/glm_blanks.h"

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* ---- The tokens ---- */

static int32_t special_or_new(const wg_tokenizer *tokenizer, wg_special_token which,
                              wg_glm_tokens *tokens) {
    int32_t id = wg_tokenizer_special(tokenizer, which);
    return id >= 0 ? id : (int32_t)tokens->vocab_size++;
}

static int32_t named_or_new(const wg_tokenizer *tokenizer, const char *name,
                            wg_glm_tokens *tokens) {
    int32_t id = wg_tokenizer_id(tokenizer, name);
    return id >= 0 ? id : (int32_t)tokens->vocab_size++;
}

int wg_glm_tokens_of(const wg_tokenizer *tokenizer, wg_glm_tokens *tokens) {
    if (!tokenizer)
        return -1;
    const int64_t size = wg_tokenizer_size(tokenizer);
    *tokens = (wg_glm_tokens){.tokenizer_size = size, .vocab_size = size};
    tokens->start = named_or_new(tokenizer, "<|startofpiece|>", tokens);
    tokens->end = named_or_new(tokenizer, "<|endofpiece|>", tokens);
    tokens->document_mask = named_or_new(tokenizer, "[gMASK]", tokens);
    tokens->sentence_mask = named_or_new(tokenizer, "[sMASK]", tokens);
    tokens->beginning = special_or_new(tokenizer, WG_TOKEN_CLASS, tokens);
    tokens->mask = special_or_new(tokenizer, WG_TOKEN_MASK, tokens);
    tokens->pad = wg_tokenizer_special(tokenizer, WG_TOKEN_PAD);
    if (tokens->pad < 0)
        tokens->pad = tokens->end;
    return 0;
}

/* ---- One sequence ---- */

/* [CLS], the text, and for each span a mask and a start token more. */
static int64_t sequence_length(const wg__glm_blanks *b) {
    return 1 + b->count + 2 * b->span_count;
}

static bool ends_untold(const wg__glm_blanks *b, const wg_glm_span *span) {
    return b->goes_on && span->end == b->count;
}

static int64_t target_count(const wg__glm_blanks *b) {
    int64_t targets = 0;
    for (int64_t i = 0; i < b->span_count; i++)
        targets += b->spans[i].end - b->spans[i].first + !ends_untold(b, &b->spans[i]);
    return targets;
}

/* The span that begins at a token of the text, or NULL: they are few. */
static const wg_glm_span *span_at(const wg__glm_blanks *b, int64_t token) {
    for (int64_t i = 0; i < b->span_count; i++)
        if (b->spans[i].first == token)
            return &b->spans[i];
    return NULL;
}

/* Where a span's mask stands in Part A: each span before it is one token there. */
static int64_t mask_place(const wg__glm_blanks *b, const wg_glm_span *span) {
    int64_t place = 1 + span->first;
    for (int64_t i = 0; i < b->span_count; i++)
        if (b->spans[i].first < span->first)
            place -= b->spans[i].end - b->spans[i].first - 1;
    return place;
}

/* A sequence in the making. */
typedef struct row {
    int64_t *ids, *positions, *blocks; /* filled with padding */
    int64_t length;
    int64_t *target_positions, *labels; /* of the next target of the batch */
    int64_t targets, offset;            /* of the sequence in B * T */
} row;

static void put(row *r, int64_t id, int64_t position, int64_t block) {
    r->ids[r->length] = id;
    r->positions[r->length] = position;
    r->blocks[r->length++] = block;
}

/* What the token that was put last has to predict. */
static void put_label(row *r, int64_t label) {
    r->target_positions[r->targets] = r->offset + r->length - 1;
    r->labels[r->targets++] = label;
}

static void put_part_a(row *r, const wg_glm_tokens *tokens, const wg__glm_blanks *b) {
    put(r, tokens->beginning, 0, 0);
    for (int64_t i = 0; i < b->count;) {
        const wg_glm_span *span = span_at(b, i);
        put(r, span ? b->mask : b->text[i], r->length, 0);
        i = span ? span->end : i + 1;
    }
}

static void put_span(row *r, const wg_glm_tokens *tokens, const wg__glm_blanks *b,
                     const wg_glm_span *span) {
    const int64_t place = mask_place(b, span), count = span->end - span->first;
    put(r, tokens->start, place, 1);
    for (int64_t i = 0; i < count; i++) {
        put_label(r, b->text[span->first + i]);
        put(r, b->text[span->first + i], place, i + 2);
    }
    if (!ends_untold(b, span))
        put_label(r, tokens->end);
}

/* ---- A batch ---- */

static int allocate(int64_t pad, int64_t rows, int64_t length, int64_t targets,
                    wg_glm_batch *batch) {
    batch->input_ids = wg_full(WG_I64, WG_DIMS(rows, length), (double)pad);
    batch->position_ids = wg_zeros(WG_I64, WG_DIMS(rows, length));
    batch->block_position_ids = wg_zeros(WG_I64, WG_DIMS(rows, length));
    batch->part_a = wg_zeros(WG_I64, WG_DIMS(rows));
    batch->target_positions = wg_zeros(WG_I64, WG_DIMS(targets));
    batch->labels = wg_zeros(WG_I64, WG_DIMS(targets));
    return batch->input_ids && batch->position_ids && batch->block_position_ids && batch->part_a &&
                   batch->target_positions && batch->labels
               ? 0
               : -1;
}

int wg__glm_blanks_batch(const wg_glm_tokens *tokens, int64_t rows, const wg__glm_blanks *blanks,
                         int64_t multiple, wg_glm_batch *batch) {
    int64_t longest = 0, targets = 0;
    *batch = (wg_glm_batch){0};
    for (int64_t i = 0; i < rows; i++) {
        const int64_t length = sequence_length(&blanks[i]);
        longest = length > longest ? length : longest;
        targets += target_count(&blanks[i]);
    }
    longest = (longest + multiple - 1) / multiple * multiple;
    if (allocate(tokens->pad, rows, longest, targets, batch) < 0) {
        *batch = (wg_glm_batch){0};
        return -1;
    }
    row r = {.target_positions = wg_tensor_data(batch->target_positions),
             .labels = wg_tensor_data(batch->labels)};
    for (int64_t i = 0; i < rows; i++) {
        const wg__glm_blanks *b = &blanks[i];
        r.length = 0;
        r.offset = i * longest;
        r.ids = (int64_t *)wg_tensor_data(batch->input_ids) + r.offset;
        r.positions = (int64_t *)wg_tensor_data(batch->position_ids) + r.offset;
        r.blocks = (int64_t *)wg_tensor_data(batch->block_position_ids) + r.offset;
        put_part_a(&r, tokens, b);
        ((int64_t *)wg_tensor_data(batch->part_a))[i] = r.length;
        for (int64_t s = 0; s < b->span_count; s++)
            put_span(&r, tokens, b, &b->spans[s]);
        batch->tokens += r.length;
    }
    return 0;
}

static int check_spans(int64_t count, const wg_glm_span *spans, int64_t span_count) {
    const char *where = "glm_batch";
    if (span_count < 1)
        return wg_fail(WG_ERROR_ARGUMENT, where, "no span is given; at least one is wanted");
    for (int64_t i = 0; i < span_count; i++) {
        if (spans[i].first < 0 || spans[i].first >= spans[i].end || spans[i].end > count)
            return wg_fail(WG_ERROR_ARGUMENT, where,
                           "a span of tokens %lld to %lld, the end not included, of a text of %lld",
                           (long long)spans[i].first, (long long)spans[i].end, (long long)count);
        for (int64_t j = 0; j < i; j++)
            if (spans[i].first < spans[j].end && spans[j].first < spans[i].end)
                return wg_fail(WG_ERROR_ARGUMENT, where,
                               "the spans that begin at tokens %lld and %lld overlap",
                               (long long)spans[j].first, (long long)spans[i].first);
    }
    return 0;
}

int wg_glm_batch_of_spans(const wg_glm_tokens *tokens, const int32_t *text, int64_t count,
                          const wg_glm_span *spans, int64_t span_count, int32_t mask,
                          wg_glm_batch *batch) {
    *batch = (wg_glm_batch){0};
    if (!tokens || !text || check_spans(count, spans, span_count) < 0)
        return -1;
    const wg__glm_blanks blanks = {text, count, spans, span_count, mask, false};
    return wg__glm_blanks_batch(tokens, 1, &blanks, 1, batch);
}
