/* Short names for tensors, functions and samples of ops in tests. */
#ifndef WG_TESTS_TENSORS_H
#define WG_TESTS_TENSORS_H

#include "autograd/autograd.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

#include <string.h>

/* Runs the block that follows in a scope of its own, which the block does not leave early. */
#define IN_SCOPE()                                                                                 \
    for (wg_scope scope_of_block, *in = (wg_scope_begin(&scope_of_block), &scope_of_block); in;    \
         wg_scope_end(&scope_of_block, NULL), in = NULL)

/* A tensor of one axis, of f64. */
#define numbers(...)                                                                               \
    wg_from_array(WG_F64, WG_DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),               \
                  (double[]){__VA_ARGS__})

/* Numbers of a normal distribution, the same for a seed. */
static inline wg_tensor *normal(uint64_t seed, wg_dtype dtype, int ndim, const int64_t *shape) {
    wg_generator generator = {.seed = seed};
    return wg_randn(&generator, dtype, ndim, shape);
}

/* Fail unless the call returns NULL, or a status below 0, with that error: WG_ERROR_`code`, and a
 * message that contains `part`. */
#define refused(call, code, part) assert_fails(call, WG_ERROR_##code, part)
#define failed(status, code, part) assert_fails(status, WG_ERROR_##code, part)

/* x, which now requires a gradient. */
static inline wg_tensor *leaf_of(wg_tensor *x) {
    ck_assert_int_eq(wg_set_requires_grad(x, true), 0);
    return x;
}

/* Backward from y under a cotangent, or NULL for a y of one element. */
static inline void backward_from(wg_tensor *y, wg_tensor *cotangent) {
    wg_backward(y, &(wg_backward_options){.cotangent = cotangent});
    assert_no_error();
}

static inline wg_dtype dtype_named(const char *name) {
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        if (strcmp(wg_dtype_name((wg_dtype)dtype), name) == 0)
            return (wg_dtype)dtype;
    ck_abort_msg("there is no dtype %s", name);
    return WG_F32;
}

static inline wg_tensor *sum_of(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

/* A wg_function with one output, by its formula; x is the first input. */
#define FUNCTION(NAME, ...)                                                                        \
    static int NAME(int input_count, wg_tensor *const *inputs, int output_count,                   \
                    wg_tensor **outputs, void *context) {                                          \
        wg_tensor *x = inputs[0];                                                                  \
        (void)input_count, (void)output_count, (void)context, (void)x;                             \
        outputs[0] = __VA_ARGS__;                                                                  \
        return outputs[0] ? 0 : -1;                                                                \
    }

/* Runs `step` in a scope of its own with its first allocation failing and all after it, then with
 * its second, and so on, until it returns 0. Fails unless each lack of memory is an error and
 * leaves no tensors and no memory behind. */
static inline void fail_each_allocation(int (*step)(void *context), void *context) {
    const int64_t tensors = wg_tensors_alive(), blocks = wg_alloc_get_stats().live_blocks;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        ck_assert_int_lt(n, 20000);
        wg_scope scope;
        wg_scope_begin(&scope);
        wg__alloc_fail_after(n);
        done = step(context) == 0;
        wg__alloc_fail_after(-1);
        wg_scope_end(&scope, NULL);
        if (!done)
            assert_error(WG_ERROR_MEMORY, "");
        assert_no_error();
        ck_assert_msg(wg_tensors_alive() == tensors, "tensors leaked, n = %lld", (long long)n);
        ck_assert_msg(wg_alloc_get_stats().live_blocks == blocks, "memory leaked, n = %lld",
                      (long long)n);
    }
}

/* Makes a sample of an op; false behind the last. */
static inline bool next_sample(const wg_op *op, int index, wg_sample *sample) {
    wg_generator generator = {.seed = 1964, .offset = (uint64_t)index << 16};
    *sample = (wg_sample){0};
    const int more = op->sample(index, &generator, sample);
    ck_assert_msg(more >= 0, "%s, sample %d: cannot be made", op->name, index);
    return more > 0;
}

static inline const char *op_name(int index) {
    return wg_op_at(index)->name;
}

#endif
