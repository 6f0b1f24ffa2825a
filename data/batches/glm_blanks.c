/* Texts with blanks: Part A, Part B, positions, labels. See glm_batch.h for the drawing. */
#include "data/batches/glm_blanks.h"

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

/* ---- Putting it together ---- */

static void put(wg__glm_row *row, int64_t id, int64_t position, int64_t block) {
    row->ids[row->length] = id;
    row->positions[row->length] = position;
    row->blocks[row->length++] = block;
}

/* What the token that was put last has to predict. */
static void put_label(wg__glm_row *row, int64_t label) {
    *row->target_positions++ = row->offset + row->length - 1;
    *row->labels++ = label;
}

void wg__glm_row_put(wg__glm_row *row, int64_t id) {
    put(row, id, row->length, 0);
}

void wg__glm_row_put_span(wg__glm_row *row, const wg_glm_tokens *tokens, int64_t place,
                          const int32_t *ids, int64_t count, bool ends) {
    put(row, tokens->start, place, 1);
    for (int64_t i = 0; i < count; i++) {
        put_label(row, ids[i]);
        put(row, ids[i], place, i + 2);
    }
    if (ends)
        put_label(row, tokens->end);
}

static void put_part_a(wg__glm_row *row, const wg_glm_tokens *tokens, const wg__glm_blanks *b) {
    wg__glm_row_put(row, tokens->beginning);
    for (int64_t i = 0; i < b->count;) {
        const wg_glm_span *span = span_at(b, i);
        wg__glm_row_put(row, span ? b->mask : b->text[i]);
        i = span ? span->end : i + 1;
    }
}

/* ---- A batch ---- */

int wg__glm_batch_allocate(const wg_glm_tokens *tokens, int64_t rows, int64_t length,
                           int64_t targets, wg_glm_batch *batch) {
    *batch = (wg_glm_batch){
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
    *batch = (wg_glm_batch){0};
    return -1;
}

wg__glm_row wg__glm_row_first(const wg_glm_batch *batch) {
    return (wg__glm_row){.ids = wg_tensor_data(batch->input_ids),
                         .positions = wg_tensor_data(batch->position_ids),
                         .blocks = wg_tensor_data(batch->block_position_ids),
                         .target_positions = wg_tensor_data(batch->target_positions),
                         .labels = wg_tensor_data(batch->labels)};
}

void wg__glm_row_next(wg__glm_row *row, const wg_glm_batch *batch) {
    const int64_t longest = wg_tensor_size(batch->input_ids, 1);
    row->ids += longest;
    row->positions += longest;
    row->blocks += longest;
    row->offset += longest;
    row->length = 0;
}

int wg__glm_blanks_batch(const wg_glm_tokens *tokens, int64_t rows, const wg__glm_blanks *blanks,
                         int64_t multiple, wg_glm_batch *batch) {
    int64_t longest = 0, targets = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t length = sequence_length(&blanks[i]);
        longest = length > longest ? length : longest;
        targets += target_count(&blanks[i]);
    }
    longest = (longest + multiple - 1) / multiple * multiple;
    if (wg__glm_batch_allocate(tokens, rows, longest, targets, batch) < 0)
        return -1;
    wg__glm_row row = wg__glm_row_first(batch);
    for (int64_t i = 0; i < rows; i++, wg__glm_row_next(&row, batch)) {
        const wg__glm_blanks *b = &blanks[i];
        put_part_a(&row, tokens, b);
        ((int64_t *)wg_tensor_data(batch->part_a))[i] = row.length;
        for (int64_t s = 0; s < b->span_count; s++)
            wg__glm_row_put_span(&row, tokens, mask_place(b, &b->spans[s]),
                                 b->text + b->spans[s].first, b->spans[s].end - b->spans[s].first,
                                 !ends_untold(b, &b->spans[s]));
        batch->tokens += row.length;
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
