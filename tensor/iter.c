/* Strided loops, and the one OpenMP policy. */
#include "tensor/iter.h"

#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "tensor/counts.h"

static atomic_int thread_count; /* 0: not yet set */

int wg_threads(void) {
    int threads = atomic_load(&thread_count);
    return threads > 0 ? threads : omp_get_max_threads();
}

int wg_set_threads(int threads) {
    if (threads < 1)
        return wg_fail(WG_ERROR_ARGUMENT, "set_threads", "%d threads; there is at least 1",
                       threads);
    atomic_store(&thread_count, threads);
    return 0;
}

/* ---- Chunks to threads ----
 *
 *     thread 0            thread 1
 *     0 1 2 3 . . . .     8 9 . . . . . .       each begins with a run of its own
 *         ^ next              ^ next      ^ end
 *
 * so that neighbours in memory are read one after the other. Who has done its own takes over the
 * latter half of what another has left: threads are seldom equally quick, when they share memory
 * least of all, and chunks at the run's end are those that its owner does not yet read ahead. */

enum { MOST_THREADS = 256, CACHE_LINE = 64 };

/* The chunks of a run that nobody has begun, in one word, for two may take from it at once. */
typedef struct run {
    _Alignas(CACHE_LINE) _Atomic uint64_t left; /* the first, and in the upper half the end */
} run;

typedef struct chunks {
    wg__range_body body;
    void *context;
    int64_t count, grain; /* elements, in all and of a chunk */
    int64_t step;         /* chunks that are taken together: their numbers fill half a word */
} chunks;

static uint64_t first_of(uint64_t left) {
    return (uint32_t)left;
}

static uint64_t end_of(uint64_t left) {
    return left >> 32;
}

static uint64_t from_to(uint64_t first, uint64_t end) {
    return first | end << 32;
}

/* The owner's: the next of its run, or false. */
static bool take_next(run *own, uint64_t *next) {
    uint64_t left = atomic_load_explicit(&own->left, memory_order_relaxed);
    do {
        *next = first_of(left);
        if (*next >= end_of(left))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&own->left, &left, left + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static bool take_half(run *other, run *own) {
    uint64_t left = atomic_load_explicit(&other->left, memory_order_relaxed), middle;
    do {
        if (first_of(left) >= end_of(left))
            return false;
        middle = (first_of(left) + end_of(left)) / 2;
    } while (!atomic_compare_exchange_weak_explicit(&other->left, &left,
                                                    from_to(first_of(left), middle),
                                                    memory_order_relaxed, memory_order_relaxed));
    atomic_store_explicit(&own->left, from_to(middle, end_of(left)), memory_order_relaxed);
    return true;
}

static bool help(run *runs, int count, int me) {
    for (int i = 1; i < count; i++)
        if (take_half(&runs[(me + i) % count], &runs[me]))
            return true;
    return false;
}

static void run_chunks(const chunks *c, int64_t first, int64_t end) {
    for (int64_t begin = first * c->grain; first < end && begin < c->count; begin += c->grain) {
        c->body(begin, wg__smaller(begin + c->grain, c->count), c->context);
        first++;
    }
}

static void finish(run *runs, int count, int me, const chunks *c) {
    uint64_t next;
    do {
        while (take_next(&runs[me], &next))
            run_chunks(c, (int64_t)next * c->step, (int64_t)(next + 1) * c->step);
    } while (help(runs, count, me));
}

void wg__parallel_for(int64_t count, int64_t grain, wg__range_body body, void *context) {
    const int64_t chunk_count = wg__ceil_divide(count, grain);
    const int threads = (int)wg__smaller(wg__smaller(chunk_count, wg_threads()), MOST_THREADS);
    const chunks all = {body, context, count, grain, 1 + chunk_count / UINT32_MAX};
    if (threads <= 1 || omp_in_parallel()) {
        run_chunks(&all, 0, chunk_count);
        return;
    }
    const int64_t takes = wg__ceil_divide(chunk_count, all.step);
    run runs[MOST_THREADS];
    for (int i = 0; i < threads; i++)
        atomic_init(&runs[i].left, from_to((uint64_t)(takes * i / threads),
                                           (uint64_t)(takes * (i + 1) / threads)));
#pragma omp parallel num_threads(threads)
    finish(runs, threads, omp_get_thread_num(), &all);
}

int wg__gemm_threads(double multiply_adds) {
    /* Below about 64^3 the threads' meeting costs more than they save. */
    return multiply_adds < 262144 || omp_in_parallel() ? 1 : wg_threads();
}

/* ---- Loops ---- */

typedef struct loop_plan {
    int operand_count;
    int ndim; /* after merging; the last axis is the inner loop */
    int64_t shape[WG_MAX_DIMS];
    int64_t strides[WG__MAX_OPERANDS][WG_MAX_DIMS]; /* in bytes */
    char *data[WG__MAX_OPERANDS];
    wg__loop loop;
    const void *context;
} loop_plan;

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* Drops axes of size 1 and sorts the rest, the output's smallest stride last. */
static void order_axes(loop_plan *plan, const wg_spec *out) {
    int ndim = 0;
    for (int axis = 0; axis < out->ndim; axis++) {
        if (out->shape[axis] == 1)
            continue;
        int place = ndim++;
        while (place > 0 &&
               magnitude(plan->strides[0][place - 1]) < magnitude(plan->strides[0][axis]))
            place--;
        /* Axes place..ndim-2 move up by one; `axis` is at or beyond ndim-1. */
        int64_t size = out->shape[axis], strides[WG__MAX_OPERANDS];
        for (int i = 0; i < plan->operand_count; i++)
            strides[i] = plan->strides[i][axis];
        for (int to = ndim - 1; to > place; to--) {
            plan->shape[to] = plan->shape[to - 1];
            for (int i = 0; i < plan->operand_count; i++)
                plan->strides[i][to] = plan->strides[i][to - 1];
        }
        plan->shape[place] = size;
        for (int i = 0; i < plan->operand_count; i++)
            plan->strides[i][place] = strides[i];
    }
    plan->ndim = ndim;
}

/* Joins neighbouring axes that every operand walks as one. */
static void merge_axes(loop_plan *plan) {
    int kept = 0;
    for (int axis = 1; axis < plan->ndim; axis++) {
        bool joins = true;
        for (int i = 0; i < plan->operand_count && joins; i++)
            joins = plan->strides[i][kept] == plan->strides[i][axis] * plan->shape[axis];
        if (!joins)
            kept++;
        plan->shape[kept] = joins ? plan->shape[kept] * plan->shape[axis] : plan->shape[axis];
        for (int i = 0; i < plan->operand_count; i++)
            plan->strides[i][kept] = plan->strides[i][axis];
    }
    if (plan->ndim > 0)
        plan->ndim = kept + 1;
}

/* Elements [begin, end) of the whole, in the plan's order. */
static void run_range(int64_t begin, int64_t end, void *context) {
    const loop_plan *plan = context;
    int last = plan->ndim - 1;
    int64_t index[WG_MAX_DIMS], inner_strides[WG__MAX_OPERANDS];
    char *data[WG__MAX_OPERANDS];
    memcpy(data, plan->data, sizeof data);
    int64_t rest = begin;
    for (int axis = last; axis >= 0; axis--) {
        index[axis] = rest % plan->shape[axis];
        rest /= plan->shape[axis];
        for (int i = 0; i < plan->operand_count; i++)
            data[i] += index[axis] * plan->strides[i][axis];
    }
    for (int i = 0; i < plan->operand_count; i++)
        inner_strides[i] = plan->strides[i][last];
    for (int64_t done = begin; done < end;) {
        int64_t n = plan->shape[last] - index[last];
        if (n > end - done)
            n = end - done;
        plan->loop(n, data, inner_strides, plan->context);
        done += n;
        if (done >= end)
            return;
        /* The row is through: back to its begin, and on by one in the axes above. */
        for (int i = 0; i < plan->operand_count; i++)
            data[i] -= index[last] * inner_strides[i];
        index[last] = 0;
        for (int axis = last - 1; axis >= 0; axis--) {
            bool carries = ++index[axis] == plan->shape[axis];
            for (int i = 0; i < plan->operand_count; i++)
                data[i] += carries ? -(plan->shape[axis] - 1) * plan->strides[i][axis]
                                   : plan->strides[i][axis];
            if (!carries)
                break;
            index[axis] = 0;
        }
    }
}

/* True of few elements that all operands have in the same order, one after the other: there is
 * nothing to plan, and the loop is called as it would be at the end. */
static bool is_plain(int operand_count, wg_tensor *const *operands, int64_t count) {
    const wg_spec *out = &operands[0]->spec;
    for (int i = 0; i < operand_count; i++)
        if (!wg__same_shape(&operands[i]->spec, out) || !wg_tensor_is_contiguous(operands[i]))
            return false;
    return count <= WG__GRAIN;
}

static void run_plain(int operand_count, wg_tensor *const *operands, wg__loop loop,
                      const void *context, int64_t count) {
    char *data[WG__MAX_OPERANDS];
    int64_t strides[WG__MAX_OPERANDS];
    for (int i = 0; i < operand_count; i++) {
        data[i] = wg__tensor_address(operands[i]);
        strides[i] = (int64_t)wg_dtype_size(operands[i]->spec.dtype);
    }
    loop(count, data, strides, context);
}

void wg__iterate(int operand_count, wg_tensor *const *operands, wg__loop loop,
                 const void *context) {
    const wg_spec *out = &operands[0]->spec;
    int64_t count = wg__spec_count(out);
    if (count == 0)
        return;
    if (is_plain(operand_count, operands, count)) {
        run_plain(operand_count, operands, loop, context, count);
        return;
    }
    loop_plan plan = {.operand_count = operand_count, .loop = loop, .context = context};
    for (int i = 0; i < operand_count; i++) {
        int64_t size = (int64_t)wg_dtype_size(operands[i]->spec.dtype);
        wg__broadcast_strides(operands[i], out, plan.strides[i]);
        for (int axis = 0; axis < out->ndim; axis++)
            plan.strides[i][axis] *= size;
        plan.data[i] = wg__tensor_address(operands[i]);
    }
    order_axes(&plan, out);
    merge_axes(&plan);
    if (plan.ndim == 0) { /* one element */
        int64_t strides[WG__MAX_OPERANDS] = {0};
        loop(1, plan.data, strides, context);
        return;
    }
    wg__parallel_for(count, WG__GRAIN, run_range, &plan);
}
