/* Relative positions in buckets. */
#include "nn/relative_position.h"

#include <math.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

wg_relative_position *wg_relative_position_new(wg_module *parent, const char *name, int64_t heads,
                                               const wg_relative_position_options *options) {
    static const wg_relative_position_options defaults;
    if (!options)
        options = &defaults;
    const int64_t buckets = options->buckets ? options->buckets : 32;
    const int64_t farthest = options->max_distance ? options->max_distance : 128;
    if (wg__check_size("relative_position", "heads", heads) < 0)
        return NULL;
    if (buckets < 4 || buckets % 4 != 0 || farthest <= buckets / 2) {
        wg_fail(WG_ERROR_ARGUMENT, "relative_position",
                "%lld buckets up to distance %lld; wanted a multiple of 4, and a distance above "
                "half of it",
                (long long)buckets, (long long)farthest);
        return NULL;
    }
    wg_relative_position *positions = wg_module_new(parent, name, sizeof *positions);
    if (!positions)
        return NULL;
    positions->max_distance = farthest;
    positions->bidirectional = options->bidirectional;
    const wg_initializer normal = {WG_INIT_NORMAL, 1};
    positions->weight = wg__parameter(&positions->module, "weight", 2, (int64_t[]){buckets, heads},
                                      &options->init, &normal);
    return wg_module_finish(&positions->module);
}

/* The bucket of a distance, key - query. */
static int64_t bucket_of(const wg_relative_position *positions, int64_t distance) {
    int64_t buckets = wg_tensor_size(positions->weight, 0), first = 0;
    int64_t far = distance < 0 ? -distance : 0;
    if (positions->bidirectional) {
        buckets /= 2;
        first = distance > 0 ? buckets : 0;
        far = distance < 0 ? -distance : distance;
    }
    const int64_t exact = buckets / 2;
    if (far < exact)
        return first + far;
    const double share =
        log((double)far / (double)exact) / log((double)positions->max_distance / (double)exact);
    const int64_t wide = exact + (int64_t)(share * (double)(buckets - exact));
    return first + (wide < buckets - 1 ? wide : buckets - 1);
}

wg_tensor *wg_relative_position_forward(wg_relative_position *positions, int64_t first,
                                        int64_t queries, int64_t keys) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *buckets = wg_empty(WG_I64, WG_DIMS(queries, keys)), *bias = NULL;
    if (buckets) {
        int64_t *bucket = wg_tensor_data(buckets);
        for (int64_t i = 0; i < queries; i++)
            for (int64_t j = 0; j < keys; j++)
                *bucket++ = bucket_of(positions, j - (first + i));
        bias = wg_embedding_op(positions->weight, buckets, -1);
        bias = wg_unsqueeze(wg_permute(bias, WG_DIMS(2, 0, 1)), 0);
    }
    return wg_scope_end(&scope, bias);
}
