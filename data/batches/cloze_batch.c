/* Texts in a pattern, with every verbalizer in its blank: see the drawing of cloze.h. */
#include "data/batches/cloze_parts.h"
#include "data/batches/glm_blanks.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "cloze"

enum { MULTIPLE = 8 };

/* ---- Texts ---- */

wg_labelled_text *wg_cloze_text_load(const wg_cloze *cloze, const char *path,
                                     const wg_tokenizer *tokenizer) {
    wg_labels labels;
    if (wg_labels_copy(&labels, &cloze->labels) < 0)
        return NULL;
    wg_labelled_text *text = wg_labelled_text_load(path, tokenizer, &labels, &cloze->reading);
    wg_labels_free(&labels);
    if (!text || (wg_labelled_text_pair(text, 0).second != NULL) == cloze->pairs)
        return text;
    wg_labelled_text_free(text);
    wg_fail(WG_ERROR_ARGUMENT, WHERE, "%s has %s a line; the pattern \"%.200s\" takes %s", path,
            cloze->pairs ? "one text" : "two texts", cloze->pattern, cloze->pairs ? "two" : "one");
    return NULL;
}

/* ---- Sizes ---- */

static int64_t pattern_tokens(const wg_cloze *cloze) {
    return cloze->stretches[0].count + cloze->stretches[1].count + cloze->stretches[2].count;
}

/* S: the targets of an example, which are as many as its tokens of Part B. */
static int64_t target_count(const wg_cloze *cloze) {
    return cloze->spans.count + cloze->labels.count;
}

int wg_cloze_check_sequence(const wg_cloze *cloze, int64_t sequence) {
    const int64_t taken = pattern_tokens(cloze);
    if (taken + (cloze->pairs ? 2 : 1) <= sequence)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                   "the pattern takes %lld of the %lld tokens of a sequence: there is no room for "
                   "a text",
                   (long long)taken, (long long)sequence);
}

static wg_token_pair cut_pair(const wg_cloze *cloze, const wg_labelled_text *text, int64_t sequence,
                              int64_t example) {
    const wg_token_pair whole = wg_labelled_text_pair(text, example);
    return wg_token_pair_cut(&whole, sequence - pattern_tokens(cloze));
}

static int64_t row_length(const wg_cloze *cloze, const wg_token_pair *pair) {
    return pattern_tokens(cloze) + pair->first_count + (pair->second ? pair->second_count : 0) +
           target_count(cloze);
}

/* ---- Sequences ---- */

static void put_all(wg__glm_row *row, const int32_t *ids, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        wg__glm_row_put(row, ids[i]);
}

/* Returns where the mask stands, which is the pattern's and not one that a text may hold. */
static int64_t put_stretch(wg__glm_row *row, const wg_cloze *cloze, int i, int64_t place) {
    const wg_token_list *stretch = &cloze->stretches[i];
    for (int64_t k = 0; k < stretch->count; k++)
        if (wg_glm_is_mask(&cloze->tokens, stretch->ids[k]))
            place = row->length + k;
    put_all(row, stretch->ids, stretch->count);
    return place;
}

static int64_t put_part_a(wg__glm_row *row, const wg_cloze *cloze, const wg_token_pair *pair) {
    int64_t place = put_stretch(row, cloze, 0, 0);
    if (cloze->turned)
        put_all(row, pair->second, pair->second_count);
    else
        put_all(row, pair->first, pair->first_count);
    place = put_stretch(row, cloze, 1, place);
    if (cloze->turned)
        put_all(row, pair->first, pair->first_count);
    else if (cloze->pairs)
        put_all(row, pair->second, pair->second_count);
    return put_stretch(row, cloze, 2, place);
}

/* A token sees Part A; one of Part B what is in its span up to itself; padding nothing more. */
static void fill_mask(const wg_cloze *cloze, int64_t part_a, int64_t length, bool *mask) {
    for (int64_t i = 0; i < length; i++)
        for (int64_t j = 0; j < part_a; j++)
            mask[i * length + j] = true;
    int64_t first = part_a;
    for (int64_t label = 0; label < cloze->labels.count; label++) {
        const int64_t end = first + wg__cloze_count(cloze, label) + 1;
        for (int64_t i = first; i < end; i++)
            for (int64_t j = first; j <= i; j++)
                mask[i * length + j] = true;
        first = end;
    }
}

static void fill_verbalized(const wg_cloze *cloze, int64_t *verbalized) {
    for (int64_t label = 0; label < cloze->labels.count; label++)
        for (int64_t i = 0; i <= wg__cloze_count(cloze, label); i++)
            *verbalized++ = label;
}

/* ---- Batches ---- */

static int allocate(const wg_cloze *cloze, int64_t rows, int64_t longest, wg_cloze_batch *batch) {
    const int64_t length = (longest + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    const int64_t targets = target_count(cloze);
    batch->label_count = cloze->labels.count;
    batch->mask = wg_zeros(WG_BOOL, WG_DIMS(rows, 1, length, length));
    batch->verbalized = wg_zeros(WG_I64, WG_DIMS(rows, targets));
    batch->labels = wg_zeros(WG_I64, WG_DIMS(rows));
    if (!batch->mask || !batch->verbalized || !batch->labels)
        return -1;
    return wg__glm_batch_allocate(&cloze->tokens, rows, length, rows * targets, &batch->blanks);
}

static void fill_row(const wg_cloze *cloze, const wg_token_pair *pair, int64_t b, wg__glm_row *row,
                     wg_cloze_batch *batch) {
    const int64_t length = wg_tensor_size(batch->mask, 3), place = put_part_a(row, cloze, pair);
    ((int64_t *)wg_tensor_data(batch->blanks.part_a))[b] = row->length;
    fill_mask(cloze, row->length, length,
              (bool *)wg_tensor_data(batch->mask) + b * length * length);
    fill_verbalized(cloze, (int64_t *)wg_tensor_data(batch->verbalized) + b * target_count(cloze));
    for (int64_t label = 0; label < cloze->labels.count; label++)
        wg__glm_row_put_span(row, &cloze->tokens, place, wg__cloze_ids(cloze, label),
                             wg__cloze_count(cloze, label), true);
    batch->blanks.tokens += row->length;
}

int wg_cloze_batch_read(const wg_cloze *cloze, const wg_labelled_text *text, int64_t sequence,
                        int64_t count, const int64_t *examples, wg_cloze_batch *batch) {
    *batch = (wg_cloze_batch){0};
    if (wg_cloze_check_sequence(cloze, sequence) < 0)
        return -1;
    int64_t longest = 0;
    for (int64_t b = 0; b < count; b++) {
        const wg_token_pair pair = cut_pair(cloze, text, sequence, examples[b]);
        const int64_t length = row_length(cloze, &pair);
        longest = length > longest ? length : longest;
    }
    if (allocate(cloze, count, longest, batch) < 0)
        return -1;
    wg__glm_row row = wg__glm_row_first(&batch->blanks);
    for (int64_t b = 0; b < count; b++, wg__glm_row_next(&row, &batch->blanks)) {
        const wg_token_pair pair = cut_pair(cloze, text, sequence, examples[b]);
        fill_row(cloze, &pair, b, &row, batch);
        ((int64_t *)wg_tensor_data(batch->labels))[b] = wg_labelled_text_label(text, examples[b]);
    }
    return 0;
}
