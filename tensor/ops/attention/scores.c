/* Rows of attention's scores: see attention_scores.h. */
#include "tensor/ops/attention/scores.h"

#include <string.h>

#include "tensor/simd/simd.h"

/* The first group of dropout's draw that belongs to a query, counted over all heads: each query
 * begins a new group. */
static uint64_t dropout_group(const wg__attention *at, int64_t query) {
    return (uint64_t)(query * ((at->keys + WG__RANDOM_GROUP - 1) / WG__RANDOM_GROUP));
}

static void fill_with_ones(wg_dtype dtype, int64_t n, void *row) {
    for (int64_t j = 0; j < n; j++)
        if (dtype == WG_F32)
            ((float *)row)[j] = 1;
        else
            ((double *)row)[j] = 1;
}

void wg__attention_draw(const wg__attention *at, int64_t query, int64_t n, char *factors) {
    enum { GROUPS = 8, WORDS = GROUPS * WG__RANDOM_GROUP };
    const wg_attention_options *options = &at->options;
    const wg__simd *kernels = wg__simd_for(at->dtype);
    uint32_t words[WORDS], limit = (uint32_t)(options->dropout * 0x1p32);
    uint64_t group = dropout_group(at, query);
    fill_with_ones(at->dtype, n, factors);
    for (int64_t begin = 0; begin < n; begin += WORDS, group += GROUPS) {
        int64_t count = n - begin < WORDS ? n - begin : WORDS;
        int64_t groups = (count + WG__RANDOM_GROUP - 1) / WG__RANDOM_GROUP;
        void *row = factors + begin * at->size;
        kernels->random_words(options->seed, options->offset, group, groups, words);
        kernels->drop_below(count, words, limit, 1 / (1 - options->dropout), row, row);
    }
}

int64_t wg__attention_query_number(const wg__attention *at, int64_t b, int64_t h, int64_t i) {
    return (b * at->query_heads + h) * at->queries + i;
}

const bool *wg__attention_mask_row(const wg__attention *at, int64_t b, int64_t h, int64_t i) {
    return at->mask + b * at->mask_strides[0] + h * at->mask_strides[1] + i * at->mask_strides[2];
}

int64_t wg__attention_keys_before_mask(const wg__attention *at, int64_t i) {
    if (!at->options.causal)
        return at->keys;
    const int64_t seen = i + 1 + at->keys - at->queries;
    return seen < 0 ? 0 : seen;
}

int64_t wg__attention_keys_shown(const wg__attention *at, int64_t b, int64_t h, int64_t i,
                                 int64_t least, int64_t most) {
    const bool *mask = wg__attention_mask_row(at, b, h, i);
    const int64_t step = at->mask_strides[3];
    while (most - least >= 8 && step == 1 && memcmp(mask + most - 8, (bool[8]){0}, 8) == 0)
        most -= 8;
    while (most > least && !mask[(most - 1) * step])
        most--;
    return most;
}

double wg__attention_log_sum(const wg__attention *at, int64_t query) {
    return at->dtype == WG_F32 ? ((const float *)at->log_sums)[query]
                               : ((const double *)at->log_sums)[query];
}

void wg__attention_set_log_sum(const wg__attention *at, int64_t query, double value) {
    if (!at->log_sums)
        return;
    if (at->dtype == WG_F32)
        ((float *)at->log_sums)[query] = (float)value;
    else
        ((double *)at->log_sums)[query] = value;
}
