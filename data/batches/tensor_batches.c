/* Batches of the rows of tensors: see wg_tensor_batches_new. */
#include "data/batches/batches.h"

#include "base/internal.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

#define WHERE "tensor_batches"

typedef struct rows {
    int count;
    wg_tensor *tensors[WG_MAX_BATCH_TENSORS]; /* kept */
} rows;

static void free_rows(void *context) {
    rows *own = context;
    for (int i = 0; i < own->count; i++)
        wg_release(own->tensors[i]);
    wg__free(own);
}

static int build(void *context, int64_t count, const wg_example *examples, void *batch) {
    const rows *own = context;
    wg_tensor **built = batch;
    wg_scope scope;
    for (int i = 0; i < own->count; i++)
        built[i] = NULL;
    int64_t *numbers = wg__alloc_array(count, sizeof *numbers);
    if (!numbers)
        return -1;
    for (int64_t row = 0; row < count; row++)
        numbers[row] = examples[row].index;
    wg_scope_begin(&scope);
    wg_tensor *index = wg_from_array(WG_I64, 1, &count, numbers);
    wg__free(numbers);
    int status = 0;
    for (int i = 0; status == 0 && i < own->count; i++) {
        built[i] = wg_scope_escape(wg_index_select(own->tensors[i], 0, index));
        status = built[i] ? 0 : -1;
    }
    wg_scope_end(&scope, NULL);
    return status;
}

static int check(int count, wg_tensor *const *tensors) {
    if (count < 1 || count > WG_MAX_BATCH_TENSORS)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%d tensors; wanted 1 to %d", count,
                       WG_MAX_BATCH_TENSORS);
    for (int i = 0; i < count; i++) {
        if (!tensors[i])
            return wg_error_pending() ? -1
                                      : wg_fail(WG_ERROR_ARGUMENT, WHERE, "tensor %d is NULL", i);
        if (tensors[i]->spec.ndim == 0)
            return wg_fail(WG_ERROR_SHAPE, WHERE, "tensor %d has no rows: it is a single number",
                           i);
        if (tensors[i]->spec.shape[0] != tensors[0]->spec.shape[0])
            return wg_fail(WG_ERROR_SHAPE, WHERE, "tensor %d has %lld rows, and tensor 0 has %lld",
                           i, (long long)tensors[i]->spec.shape[0],
                           (long long)tensors[0]->spec.shape[0]);
    }
    return 0;
}

wg_batches *wg_tensor_batches_new(int count, wg_tensor *const *tensors,
                                  const wg_batches_options *options) {
    if (check(count, tensors) < 0)
        return NULL;
    rows *own = wg__calloc(1, sizeof *own);
    if (!own)
        return NULL;
    for (; own->count < count; own->count++) {
        own->tensors[own->count] = wg_keep(wg_detach(tensors[own->count]));
        if (!own->tensors[own->count]) {
            free_rows(own);
            return NULL;
        }
    }
    const wg_batch_source source = {.context = own, .build = build, .free = free_rows};
    wg_batches_options chosen = options ? *options : (wg_batches_options){0};
    chosen.examples = tensors[0]->spec.shape[0];
    return wg_batches_new(&source, &chosen);
}

int64_t wg_tensors_fingerprint(int count, wg_tensor *const *tensors) {
    uint64_t hash = WG__HASH_BEGIN;
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < count; i++) {
        const wg_tensor *x = wg_contiguous(tensors[i]);
        if (!x) {
            wg_scope_end(&scope, NULL);
            return 0;
        }
        const int64_t head[] = {x->spec.dtype, x->spec.ndim};
        hash = wg__hash(hash, head, sizeof head);
        hash = wg__hash(hash, x->spec.shape, (size_t)x->spec.ndim * sizeof *x->spec.shape);
        hash = wg__hash(hash, wg_tensor_data(x),
                        (size_t)wg_tensor_count(x) * wg_dtype_size(x->spec.dtype));
    }
    wg_scope_end(&scope, NULL);
    return (int64_t)(hash ? hash : 1);
}
