/* Attention from some positions alone: see internal.h. */
#include <string.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/attention/attention.h"

/* True for a table (Tq, X) or (1 or B, 1, 1 or Tq, X), whose rows wg__query_rows_of finds; NULL is
 * one. */
static bool has_rows(const wg_tensor *table, int64_t batch, int64_t queries) {
    if (!table)
        return true;
    const int ndim = wg_tensor_ndim(table);
    if (ndim != 2 && ndim != 4)
        return false;
    const int64_t *shape = wg_tensor_shape(table), count = shape[ndim - 2];
    return (count == 1 || count == queries) &&
           (ndim == 2 || (shape[1] == 1 && (shape[0] == 1 || shape[0] == batch)));
}

/* The largest number of output positions of a sequence; -1 if one of them is beyond the batch. */
static int64_t most_of_a_sequence(const int64_t *positions, int64_t count, int64_t batch,
                                  int64_t queries, int64_t *counts) {
    int64_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        if (positions[i] < 0 || positions[i] >= batch * queries)
            return -1;
        const int64_t found = ++counts[positions[i] / queries];
        most = found > most ? found : most;
    }
    return most;
}

static int fill_queries(wg__query_rows *some, const int64_t *positions, int64_t count,
                        int64_t batch, int64_t queries, int64_t *counts) {
    const int64_t most = some->most, total = batch * most;
    some->rows = wg_empty(WG_I64, WG_DIMS(total));
    some->times = wg_zeros(WG_I64, WG_DIMS(total));
    some->places = wg_empty(WG_I64, WG_DIMS(count));
    if (!some->rows || !some->times || !some->places)
        return -1;
    int64_t *rows = wg_tensor_data(some->rows), *times = wg_tensor_data(some->times),
            *places = wg_tensor_data(some->places);
    for (int64_t i = 0; i < total; i++)
        rows[i] = i / most * queries;
    memset(counts, 0, (size_t)batch * sizeof *counts);
    for (int64_t i = 0; i < count; i++) {
        const int64_t sequence = positions[i] / queries;
        const int64_t place = sequence * most + counts[sequence]++;
        rows[place] = positions[i];
        times[place] = positions[i] % queries;
        places[i] = place;
    }
    return 0;
}

int wg__query_rows_choose(const wg_tensor *x, const wg_attention_inputs *inputs,
                          wg__query_rows *some) {
    *some = (wg__query_rows){0};
    wg_tensor *wanted = inputs->output_positions;
    const int64_t batch = wg_tensor_size(x, 0), queries = wg_tensor_size(x, 1);
    if (!wanted || wg_tensor_ndim(wanted) != 1 || wg_tensor_dtype(wanted) != WG_I64 ||
        wg_tensor_count(wanted) == 0 || batch == 0 || inputs->memory || inputs->bias ||
        inputs->cache || inputs->weights || !has_rows(inputs->mask, batch, queries) ||
        !has_rows(inputs->cos, batch, queries) || !has_rows(inputs->sin, batch, queries))
        return 0;
    int64_t *counts = wg__calloc((size_t)batch, sizeof *counts);
    wanted = wg_contiguous(wanted);
    int status = counts && wanted ? 0 : -1;
    if (status == 0) {
        const int64_t *positions = wg_tensor_data(wanted), count = wg_tensor_count(wanted);
        const int64_t most = most_of_a_sequence(positions, count, batch, queries, counts);
        some->most = most > 0 && most <= queries / 2 ? most : 0;
        if (some->most)
            status = fill_queries(some, positions, count, batch, queries, counts);
    }
    wg__free(counts);
    return status;
}

wg_tensor *wg__query_rows_of(const wg__query_rows *some, wg_tensor *table) {
    if (!table || wg_tensor_size(table, -2) == 1)
        return table;
    const bool each = wg_tensor_ndim(table) == 4 && wg_tensor_size(table, 0) > 1;
    wg_tensor *rows = wg_index_select(wg_flatten(table, 0, -2), 0, each ? some->rows : some->times);
    return wg_reshape(rows, WG_DIMS(-1, 1, some->most, wg_tensor_size(table, -1)));
}

wg_tensor *wg__query_rows_of_x(const wg__query_rows *some, wg_tensor *x) {
    return wg_reshape(wg_index_select(wg_flatten(x, 0, 1), 0, some->rows),
                      WG_DIMS(-1, some->most, wg_tensor_size(x, 2)));
}

wg_tensor *wg__query_rows_mask(const wg__query_rows *some, wg_tensor *mask, int64_t queries,
                               wg_attention_options *options) {
    wg_tensor *rows = wg__query_rows_of(some, mask), *seen = NULL;
    if (options->causal || options->window > 0)
        seen = wg__query_rows_of(some, wg__attention_visible(options, queries, queries));
    options->causal = false;
    options->window = 0;
    return !seen ? rows : mask ? wg_logical_and(rows, seen) : seen;
}
