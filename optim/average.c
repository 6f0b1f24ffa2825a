/* Averages of weights: see internal.h. */
#include "optim/internal.h"

#include <string.h>

#include "base/array.h"
#include "tensor/internal.h"

typedef struct wg__average_entry {
    wg_tensor *tensor;  /* borrowed */
    wg_tensor *average; /* kept */
} entry;

wg_average *wg__average_new(double decay) {
    if (!(decay >= 0 && decay < 1))
        return wg__fail_null(WG_ERROR_ARGUMENT, "average_new",
                             "decay is %g; wanted 0 or more, and below 1", decay);
    wg_average *average = wg__calloc(1, sizeof *average);
    if (!average)
        return NULL;
    average->decay = decay;
    return average;
}

void wg__average_free(wg_average *average) {
    if (!average)
        return;
    for (int64_t i = 0; i < average->count; i++)
        wg_release(average->entries[i].average);
    wg__free(average->entries);
    wg__free(average);
}

int wg__average_add(wg_average *average, wg_tensor *tensor) {
    if (!average || !tensor)
        return -1;
    wg_dtype dtype = wg_tensor_dtype(tensor);
    if (wg__check_memory(tensor, "average_add") < 0)
        return -1;
    if (average->updates > 0)
        return wg_fail(WG_ERROR_STATE, "average_add",
                       "%lld updates were made; add every tensor before the first",
                       (long long)average->updates);
    if (dtype != WG_F32 && dtype != WG_F64)
        return wg_fail(WG_ERROR_DTYPE, "average_add", "a tensor is %s; f32 and f64 are averaged",
                       wg_dtype_name(dtype));
    if (!wg_tensor_is_contiguous(tensor))
        return wg_fail(WG_ERROR_ARGUMENT, "average_add",
                       "a tensor is a strided view; add a contiguous one");
    for (int64_t i = 0; i < average->count; i++)
        if (wg__overlap_of(tensor, average->entries[i].tensor) != WG__OVERLAP_NONE)
            return wg_fail(WG_ERROR_ARGUMENT, "average_add",
                           "the tensor shares memory with tensor %lld, and a swap would write it "
                           "twice; add one tensor that has the elements of both",
                           (long long)i);
    wg_tensor *zeros =
        wg_keep(wg_zeros(wg_tensor_dtype(tensor), wg_tensor_ndim(tensor), wg_tensor_shape(tensor)));
    const entry added = {tensor, zeros};
    if (zeros && wg__append(&average->entries, &average->count, &average->capacity, &added,
                            sizeof added) == 0)
        return 0;
    wg_release(zeros);
    return -1;
}

typedef struct pass {
    const wg__optimizer_loops *loops;
    char *tensor, *average;
    size_t size;    /* of an element */
    double towards; /* a = (1 - towards) a + towards w */
} pass;

static void update_range(int64_t begin, int64_t end, void *context) {
    const pass *p = context;
    size_t at = (size_t)begin * p->size;
    p->loops->apply(end - begin, 1 - p->towards, -p->towards, p->tensor + at, p->average + at);
}

static void swap_range(int64_t begin, int64_t end, void *context) {
    const pass *p = context;
    char block[4096];
    size_t last = (size_t)end * p->size;
    for (size_t at = (size_t)begin * p->size; at < last; at += sizeof block) {
        size_t size = last - at < sizeof block ? last - at : sizeof block;
        memcpy(block, p->tensor + at, size);
        memcpy(p->tensor + at, p->average + at, size);
        memcpy(p->average + at, block, size);
    }
}

static void run_pass(wg_average *average, wg__range_body body, double towards) {
    const wg__optimizer_kernels *kernels = wg__optimizer_kernels_for_cpu();
    for (int64_t i = 0; i < average->count; i++) {
        const entry *e = &average->entries[i];
        wg_dtype dtype = wg_tensor_dtype(e->tensor);
        pass pass = {.loops = dtype == WG_F64 ? &kernels->f64 : &kernels->f32,
                     .tensor = wg_tensor_data(e->tensor),
                     .average = wg_tensor_data(e->average),
                     .size = wg_dtype_size(dtype),
                     .towards = towards};
        wg__parallel_for(wg_tensor_count(e->tensor), WG__GRAIN, body, &pass);
    }
}

void wg__average_update(wg_average *average) {
    double count = (double)average->updates + 1;
    bool is_mean = average->decay == 0 || average->updates == 0;
    run_pass(average, update_range, is_mean ? 1 / count : 1 - average->decay);
    average->updates++;
}

void wg__average_swap(wg_average *average) {
    run_pass(average, swap_range, 0);
    for (int64_t i = 0; i < average->count; i++)
        wg_tensor_touch(average->entries[i].tensor);
}
