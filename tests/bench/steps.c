/* Training steps of each kind of model (bench/bench.h): their system allocations, their
 * products, and the same bits at any number of threads. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tensor/profile.h"
#include "tests/support/testing.h"
#include "tensor/internal.h"

enum { B = 4, T = 32, V = 1000 };

/* The floating-point operations of a forward pass, from the sizes of the presets: two for each
 * multiply-add of a matrix product. */

/* Of the layers of an encoder. In the last one `read` positions of each sequence are wanted, at
 * which alone it has queries, an output projection and a feed-forward net. */
static double encoder_flops(double layers, double c, double read) {
    const double rows = (layers - 1) * T + read;
    return 2 * B * (rows * (10 * c * c + 2 * T * c) + layers * T * 2 * c * c);
}

static double bert_flops(void) {
    const double layers = 2, c = 128, masked = 5;
    return encoder_flops(layers, c, masked + 1) + 2 * B * masked * (c * c + c * V) +
           2 * B * (c * c + 2 * c);
}

static double gpt_flops(void) {
    const double layers = 2, c = 128;
    return 2 * B * T * (layers * (12 * c * c + 2 * T * c) + c * V);
}

static double llama_flops(void) {
    const double layers = 5, c = 64, inner = 172, shared = 0.5; /* of the heads have keys */
    return 2 * B * T * (layers * ((2 + 2 * shared) * c * c + 3 * c * inner + 2 * T * c) + c * V);
}

static double glm_flops(void) {
    const double layers = 2, c = 128, part_b = 3 * T / 16;
    return encoder_flops(layers, c, part_b) + 2 * B * part_b * c * V;
}

static double transformer_flops(void) {
    const double layers = 4, c = 128, inner = 256;
    return 2 * B * T * (layers * (12 * c * c + 4 * c * inner + 6 * T * c) + c * V);
}

static const struct {
    const char *preset;
    double (*flops)(void);
} models[] = {
    {"bert-tiny", bert_flops},
    {"gpt2-tiny", gpt_flops},
    {"llama-260k", llama_flops},
    {"glm-tiny", glm_flops},
    {"transformer-tiny", transformer_flops},
};

static const char *model_name(int index) {
    return models[index].preset;
}

static void begin(wg__workload *w, int index) {
    *w = (wg__workload){.model = models[index].preset, .batch = B, .sequence = T, .vocabulary = V};
    ck_assert_int_eq(wg__workload_begin(w), 0);
}

TEST_OF_EACH(steps_after_the_second_ask_the_system_for_no_memory, WG_COUNT(models), model_name) {
    wg__workload w;
    begin(&w, _i);
    wg__workload_step(&w);
    wg__workload_step(&w);
    const int64_t before = wg_alloc_get_stats().system_allocations;
    for (int i = 0; i < 3; i++)
        wg__workload_step(&w);
    ck_assert_int_eq(wg_alloc_get_stats().system_allocations, before);
    wg__workload_end(&w);
    assert_no_error();
}

TEST_OF_EACH(a_step_has_three_times_the_products_of_the_formula, WG_COUNT(models), model_name) {
    wg__workload w;
    begin(&w, _i);
    for (int threads = 1; threads <= 2; threads++) {
        wg_set_threads(threads);
        const double before = wg__counted_product_flops();
        wg__workload_step(&w);
        ck_assert_double_eq_tol((wg__counted_product_flops() - before) / (3 * models[_i].flops()),
                                1, 1e-12);
    }
    wg__workload_end(&w);
    assert_no_error();
}

/* Backward first, and then the step. */
static double whole_step(wg__workload *w) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loss = wg__workload_loss(w);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    ck_assert_int_eq(wg_optimizer_step(w->optimizer, WG__WORKLOAD_RATE), 0);
    const double value = wg_item(loss);
    wg_scope_end(&scope, NULL);
    return value;
}

typedef double (*step_function)(wg__workload *w);

/* All parameters after three steps, concatenated; freed with free. */
static char *trained_bytes(int model, int threads, step_function step, bool recompute,
                           size_t *size) {
    wg__workload w;
    char *bytes = NULL;
    *size = 0;
    wg_set_threads(threads);
    begin(&w, model);
    wg_module_checkpoint_activations(w.module, recompute);
    for (int i = 0; i < 3; i++)
        step(&w);
    wg_state_dict *state = wg_module_state(w.module);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_tensor *x = state->entries[i].slot->tensor;
        const size_t more = (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
        bytes = realloc(bytes, *size + more);
        memcpy(bytes + *size, wg_tensor_data(x), more);
        *size += more;
    }
    wg_state_dict_free(state);
    wg__workload_end(&w);
    assert_no_error();
    return bytes;
}

TEST_OF_EACH(one_two_and_three_threads_train_the_same_bits, WG_COUNT(models), model_name) {
    size_t size, other_size;
    char *one = trained_bytes(_i, 1, wg__workload_step, false, &size);
    ck_assert_int_gt(size, 0);
    for (int threads = 2; threads <= 3; threads++) {
        char *other = trained_bytes(_i, threads, wg__workload_step, false, &other_size);
        ck_assert_int_eq(size, other_size);
        ck_assert_msg(memcmp(one, other, size) == 0, "%d threads train other bits than one",
                      threads);
        free(other);
    }
    free(one);
}

TEST_OF_EACH(a_step_in_backward_has_the_bits_of_one_after_it, WG_COUNT(models), model_name) {
    size_t size, other_size;
    char *whole = trained_bytes(_i, 2, whole_step, false, &size);
    for (int recompute = 0; recompute < 2; recompute++) {
        char *other = trained_bytes(_i, 2, wg__workload_step, recompute, &other_size);
        ck_assert_int_eq(size, other_size);
        ck_assert_mem_eq(whole, other, size);
        free(other);
    }
    free(whole);
}

/* The peak of memory in the third step, above the memory before it, for a model whose gradients
 * dominate. With several threads the workspaces of products, of up to 5 MiB, are larger. */
static int64_t peak_of_step(int model, step_function step) {
    wg__workload w = {.model = models[model].preset, .batch = 1, .sequence = 8, .vocabulary = V};
    wg_set_threads(1);
    ck_assert_int_eq(wg__workload_begin(&w), 0);
    step(&w);
    step(&w);
    const int64_t before = peak_begin();
    step(&w);
    const int64_t bytes = peak_end(before);
    wg__workload_end(&w);
    return bytes;
}

TEST_OF_EACH(a_step_in_backward_takes_less_memory, WG_COUNT(models), model_name) {
    ck_assert_int_lt(peak_of_step(_i, wg__workload_step), peak_of_step(_i, whole_step));
}
