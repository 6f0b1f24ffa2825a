/* A sequence of GLM as a table, to be held against figure 2 of the paper:
 *
 *     part  token             position  block  predicts          sees
 *     A     [CLS]                    0      0                    ######.....
 *     B     <|startofpiece|>         5      1  x5                #######.... */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "data/batches/glm_batch.h"
#include "base/array.h"
#include "tensor/internal.h"

typedef struct table {
    const wg_tokenizer *tokenizer;
    wg_glm_tokens tokens;
    const int64_t *ids, *positions, *blocks; /* of the row */
    int64_t part_a, length;
    const int64_t *target_positions, *labels; /* of the batch */
    int64_t targets, offset;                  /* of the row in B * T */
    int width;                                /* of the column of tokens */
    wg__text text;
} table;

/* ---- Tokens ---- */

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

/* Appends a token, so that a line of the table stays one; returns how many characters. */
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

/* ---- Lines ---- */

/* What the token at a place has to predict, or "". */
static const char *label_text(const table *t, int64_t place) {
    for (int64_t i = 0; i < t->targets; i++)
        if (t->target_positions[i] == t->offset + place)
            return token_text(t, t->labels[i]);
    return "";
}

static void append_line(table *t, int64_t place) {
    char numbers[64];
    snprintf(numbers, sizeof numbers, "  %8" PRId64 "  %5" PRId64 "  ", t->positions[place],
             t->blocks[place]);
    append(&t->text, place < t->part_a ? "A     " : "B     ");
    append_column(&t->text, token_text(t, t->ids[place]), t->width);
    append(&t->text, numbers);
    append_column(&t->text, label_text(t, place), t->width);
    append(&t->text, "  ");
    for (int64_t j = 0; j < t->length; j++)
        append(&t->text, j < t->part_a || j <= place ? "#" : ".");
    append(&t->text, "\n");
}

/* As wide as the longest token; measured in a text that is thrown away. */
static void measure(table *t) {
    t->width = (int)strlen("predicts");
    for (int64_t i = 0; i < t->length; i++) {
        int width = append_token(&t->text, token_text(t, t->ids[i]));
        t->width = width > t->width ? width : t->width;
        width = append_token(&t->text, label_text(t, i));
        t->width = width > t->width ? width : t->width;
        t->text.length = 0;
    }
}

static table table_of(const wg_glm_batch *batch, int64_t row, const wg_tokenizer *tokenizer) {
    const int64_t longest = wg_tensor_size(batch->input_ids, 1);
    table t = {.tokenizer = tokenizer,
               .offset = row * longest,
               .target_positions = wg_tensor_data(batch->target_positions),
               .labels = wg_tensor_data(batch->labels),
               .targets = wg_tensor_count(batch->labels)};
    t.ids = (const int64_t *)wg_tensor_data(batch->input_ids) + t.offset;
    t.positions = (const int64_t *)wg_tensor_data(batch->position_ids) + t.offset;
    t.blocks = (const int64_t *)wg_tensor_data(batch->block_position_ids) + t.offset;
    t.part_a = ((const int64_t *)wg_tensor_data(batch->part_a))[row];
    t.length = t.part_a;
    while (t.length < longest && t.blocks[t.length] > 0)
        t.length++;
    wg_glm_tokens_of(tokenizer, &t.tokens);
    return t;
}

char *wg_glm_batch_show(const wg_glm_batch *batch, int64_t row, const wg_tokenizer *tokenizer) {
    if (!batch || !batch->input_ids || !tokenizer)
        return NULL;
    if (row < 0 || row >= wg_tensor_size(batch->input_ids, 0)) {
        wg_fail(WG_ERROR_INDEX, "glm_batch_show", "sequence %lld of a batch of %lld",
                (long long)row, (long long)wg_tensor_size(batch->input_ids, 0));
        return NULL;
    }
    table t = table_of(batch, row, tokenizer);
    measure(&t);
    append(&t.text, "part  ");
    append_column(&t.text, "token", t.width);
    append(&t.text, "  position  block  ");
    append_column(&t.text, "predicts", t.width);
    append(&t.text, "  sees\n");
    for (int64_t i = 0; i < t.length; i++)
        append_line(&t, i);
    if (!wg_error_pending())
        return t.text.bytes;
    wg__free(t.text.bytes);
    return NULL;
}
