/* Attention against PyTorch and against its decomposition: several tiles, masks of any layout, and
 * dropout that backward replays. */
#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"
#include "tensor/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* True with probability p. */
static wg_tensor *coin(uint64_t seed, double p, int ndim, const int64_t *shape) {
    wg_generator generator = {.seed = seed};
    return wg_lt(wg_rand(&generator, WG_F32, ndim, shape), wg_scalar(WG_F32, p));
}

/* Attention by primitives, with the mask and without dropout. */
static wg_tensor *reference(wg_tensor *q, wg_tensor *k, wg_tensor *v, wg_tensor *mask) {
    double scale = 1 / sqrt((double)wg_tensor_size(q, -1));
    wg_tensor *scores = wg_mul_scalar(wg_matmul(q, wg_transpose(k, -2, -1)), scale);
    if (mask)
        scores = wg_masked_fill(scores, wg_logical_not(mask), -INFINITY);
    return wg_matmul(wg_softmax(scores, -1), v);
}

/* ---- Against PyTorch ---- */

static wg_tensor *stored(const char *name, const char *array) {
    return fixture_tensor("kernels/attention_%s_%s", name, array);
}

static void assert_like_pytorch(const char *name, bool masked,
                                const wg_attention_options *options) {
    static const char *const names[] = {"q", "k", "v"}, *const gradients[] = {"dq", "dk", "dv"};
    wg_tensor *inputs[3];
    for (int i = 0; i < 3; i++) {
        inputs[i] = stored(name, names[i]);
        ck_assert_int_eq(wg_set_requires_grad(inputs[i], true), 0);
    }
    wg_tensor *mask = masked ? stored(name, "mask") : NULL;
    wg_tensor *y = wg_attention(inputs[0], inputs[1], inputs[2], mask, options);
    assert_close(wg_detach(y), stored(name, "y"), 1e-5, 1e-6);
    backward_from(y, stored(name, "dy"));
    for (int i = 0; i < 3; i++)
        assert_close(wg_gradient(inputs[i]), stored(name, gradients[i]), 1e-5, 2e-6);
}

TEST(attention_with_a_padding_mask_is_that_of_pytorch) {
    assert_like_pytorch("padded", true, NULL);
}

TEST(causal_attention_of_grouped_heads_is_that_of_pytorch) {
    assert_like_pytorch("causal", false, &(wg_attention_options){.causal = true});
    assert_like_pytorch("causal", true, NULL);
}

TEST(attention_in_a_window_is_that_of_pytorch_with_its_mask) {
    assert_like_pytorch("window", false, &(wg_attention_options){.window = 2});
    assert_like_pytorch("window", true, NULL);
}

/* ---- Against the decomposition ---- */

/* Where query and key belong to the same of documents of 90 positions: (Tq, Tk). */
static wg_tensor *same_document(int64_t queries, int64_t keys) {
    wg_tensor *document[2];
    for (int i = 0; i < 2; i++)
        document[i] = wg_floor(
            wg_mul_scalar(wg_arange(WG_F64, 0, (double)(i ? keys : queries), 1), 1.0 / 90));
    return wg_eq(wg_unsqueeze(document[0], 1), document[1]);
}

typedef enum mask_kind { NONE, RANDOM, DOCUMENTS } mask_kind;

static wg_tensor *mask_of(mask_kind kind, int64_t queries, int64_t keys) {
    return kind == NONE     ? NULL
           : kind == RANDOM ? coin(4, 0.7, WG_DIMS(1, 4, queries, keys))
                            : same_document(queries, keys);
}

static void attention_and_gradients(wg_dtype dtype, int64_t queries, int64_t keys, mask_kind kind,
                                    const wg_attention_options *options, bool by_primitives,
                                    wg_tensor **results) {
    wg_tensor *inputs[] = {normal(1, dtype, WG_DIMS(1, 4, queries, 8)),
                           normal(2, dtype, WG_DIMS(1, 2, keys, 8)),
                           normal(3, dtype, WG_DIMS(1, 2, keys, 8)), mask_of(kind, queries, keys)};
    for (int i = 0; i < 3; i++)
        wg_set_requires_grad(inputs[i], true);
    wg_tensor *y = wg_attention(inputs[0], inputs[1], inputs[2], inputs[3], options);
    wg_tensor *g = normal(5, dtype, WG_DIMS(1, 4, queries, 8));
    wg_backward_options how = {.create_graph = by_primitives};
    wg_grad(1, &y, &g, 3, inputs, &how, results + 1);
    results[0] = wg_detach(y);
}

static void assert_decomposes(int64_t queries, int64_t keys, mask_kind kind,
                              const wg_attention_options *options) {
    wg_tensor *by_kernels[4], *by_primitives[4];
    attention_and_gradients(WG_F64, queries, keys, kind, options, false, by_kernels);
    attention_and_gradients(WG_F64, queries, keys, kind, options, true, by_primitives);
    for (int i = 1; i < 4; i++)
        assert_close(by_kernels[i], wg_detach(by_primitives[i]), 1e-10, 1e-10);
}

/* 300 queries are several tiles; 700 keys make the tiles low. */
TEST(attention_over_several_tiles_is_its_decomposition) {
    static const wg_attention_options options[] = {
        {.causal = false},
        {.causal = true, .dropout = 0.3, .seed = 9, .offset = 2},
        {.window = 1},
        {.window = 50},
        {.causal = true, .window = 70, .dropout = 0.3, .seed = 9, .offset = 2},
        {.window = 1000}};
    for (size_t o = 0; o < WG_COUNT(options); o++)
        for (mask_kind kind = NONE; kind <= DOCUMENTS; kind++)
            assert_decomposes(300, 700, kind, &options[o]);
}

/* The first 200 queries, and with causality the first 300, stand before the first key. */
TEST(queries_before_all_keys_see_those_in_their_window) {
    for (mask_kind kind = NONE; kind <= DOCUMENTS; kind++)
        for (int causal = 0; causal < 2; causal++)
            assert_decomposes(700, 400, kind,
                              &(wg_attention_options){.causal = causal, .window = 100});
}

/* A window and its mask give the same weights, so the same outputs but for rounding. */
static void assert_window_is_its_mask(int64_t queries, int64_t keys, int64_t window, bool causal) {
    const wg_attention_options options = {.causal = causal, .window = window};
    wg_tensor *q = normal(1, WG_F32, WG_DIMS(2, 4, queries, 8)),
              *k = normal(2, WG_F32, WG_DIMS(2, 2, keys, 8)),
              *v = normal(3, WG_F32, WG_DIMS(2, 2, keys, 8));
    wg_tensor *own = wg_arange(WG_I64, (double)(keys - queries), (double)keys, 1);
    wg_tensor *distance = wg_sub(wg_unsqueeze(own, 1), wg_arange(WG_I64, 0, (double)keys, 1));
    wg_tensor *mask = wg_le(wg_abs(distance), wg_scalar(WG_I64, (double)window));
    if (causal)
        mask = wg_logical_and(mask, wg_ge(distance, wg_scalar(WG_I64, 0)));
    assert_close(wg_attention(q, k, v, NULL, &options), wg_attention(q, k, v, mask, NULL), 1e-5,
                 1e-6);
}

TEST(a_window_is_the_mask_of_its_distances_for_any_number_of_queries) {
    static const int64_t queries[] = {1, 3, 7, 8, 64, 65, 200}, windows[] = {1, 16, 63, 199, 500};
    for (size_t i = 0; i < WG_COUNT(queries); i++)
        for (size_t w = 0; w < WG_COUNT(windows); w++)
            for (int causal = 0; causal < 2; causal++)
                assert_window_is_its_mask(queries[i], 200, windows[w], causal);
}

static void dropped_attention(int count, wg_tensor **results) {
    (void)count;
    static const wg_attention_options options = {
        .causal = true, .dropout = 0.2, .seed = 1, .window = 200};
    attention_and_gradients(WG_F32, 300, 700, RANDOM, &options, false, results);
}

TEST(attention_has_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(4, dropped_attention);
}

/* Threads divide the heads among them, and take several heads at once where there are few
 * queries. */
static void few_queries(int count, wg_tensor **results) {
    for (int i = 0; i < count; i++) {
        const int64_t heads = 1 + 2 * i, shared = i % 2 ? 1 : heads, queries = 1 + i % 3;
        wg_tensor *q = normal(30, WG_F32, WG_DIMS(2, heads, queries, 7)),
                  *k = normal(31, WG_F32, WG_DIMS(2, shared, 11, 7)),
                  *v = normal(32, WG_F32, WG_DIMS(2, shared, 11, 7));
        wg_tensor *mask = coin(33, 0.7, WG_DIMS(2, heads, queries, 11));
        results[i] = wg_attention(q, k, v, mask, NULL);
        assert_close(results[i],
                     reference(q, wg_expand(k, WG_DIMS(2, heads, 11, 7)),
                               wg_expand(v, WG_DIMS(2, heads, 11, 7)), mask),
                     1e-5, 1e-6);
    }
}

TEST(few_queries_of_any_number_of_heads_have_the_same_bits_at_any_thread_count) {
    assert_same_bits_at_any_thread_count(6, few_queries);
}

/* ---- Layouts ---- */

TEST(attention_reads_and_writes_heads_as_the_layers_have_them) {
    wg_tensor *inputs[3];
    for (int i = 0; i < 3; i++) /* (B, T, H, D) seen as (B, H, T, D) */
        inputs[i] = wg_transpose(normal(6 + (uint64_t)i, WG_F32, WG_DIMS(2, 9, 3, 4)), 1, 2);
    wg_tensor *y = wg_attention(inputs[0], inputs[1], inputs[2], NULL, NULL);
    ck_assert(wg_tensor_is_contiguous(wg_transpose(y, 1, 2)));
    ck_assert(wg__tensor_shares_storage(y, wg_reshape(wg_transpose(y, 1, 2), WG_DIMS(2, 9, 12))));
    assert_close(y, reference(inputs[0], inputs[1], inputs[2], NULL), 1e-5, 1e-6);
    wg_tensor *backwards = wg_slice(inputs[1], 2, WG_END, WG_END, -1);
    wg_tensor *one = wg_expand(wg_slice(inputs[2], 2, 0, 1, 1), WG_DIMS(2, 3, 9, 4));
    assert_close(wg_attention(inputs[0], backwards, one, NULL, NULL),
                 reference(inputs[0], backwards, one, NULL), 1e-5, 1e-6);
}

TEST(attention_takes_masks_of_any_shape_and_strides) {
    wg_tensor *q = normal(10, WG_F32, WG_DIMS(2, 3, 4, 5)),
              *k = normal(11, WG_F32, WG_DIMS(2, 3, 6, 5));
    wg_tensor *v = normal(12, WG_F32, WG_DIMS(2, 3, 6, 5));
    wg_tensor *masks[] = {coin(13, 0.6, WG_DIMS(6)),
                          coin(14, 0.6, WG_DIMS(2, 1, 1, 6)),
                          coin(15, 0.6, WG_DIMS(4, 1)),
                          coin(16, 0.6, WG_DIMS(2, 3, 4, 6)),
                          wg_transpose(coin(17, 0.6, WG_DIMS(6, 4)), 0, 1),
                          wg_slice(coin(18, 0.6, WG_DIMS(3, 4, 12)), 2, 0, WG_END, 2),
                          wg_slice(coin(19, 0.6, WG_DIMS(4, 6)), 1, WG_END, WG_END, -1)};
    for (size_t i = 0; i < WG_COUNT(masks); i++)
        assert_close(wg_attention(q, k, v, masks[i], NULL), reference(q, k, v, masks[i]), 1e-5,
                     1e-6);
}

/* ---- Corners ---- */

TEST(rows_that_may_attend_to_nothing_are_zero_and_pass_no_gradient) {
    wg_tensor *inputs[] = {normal(20, WG_F32, WG_DIMS(1, 1, 3, 4)),
                           normal(21, WG_F32, WG_DIMS(1, 1, 5, 4)),
                           normal(22, WG_F32, WG_DIMS(1, 1, 5, 4))};
    wg_tensor *mask = wg_zeros(WG_BOOL, WG_DIMS(5)), *zeros = wg_zeros(WG_F32, WG_DIMS(1, 1, 3, 4));
    for (int i = 0; i < 3; i++)
        wg_set_requires_grad(inputs[i], true);
    wg_tensor *y = wg_attention(inputs[0], inputs[1], inputs[2], mask, NULL);
    assert_close(wg_detach(y), zeros, 0, 0);
    backward_from(y, wg_ones(WG_F32, WG_DIMS(1, 1, 3, 4)));
    for (int i = 0; i < 3; i++)
        assert_close(wg_gradient(inputs[i]), wg_zeros_like(inputs[i]), 0, 0);
}

TEST(large_scores_do_not_overflow) {
    wg_tensor *q = wg_full(WG_F32, WG_DIMS(1, 1, 2, 4), 300),
              *k = normal(23, WG_F32, WG_DIMS(1, 1, 6, 4));
    wg_tensor *v = normal(24, WG_F32, WG_DIMS(1, 1, 6, 4));
    k = wg_mul_scalar(k, 300);
    assert_close(wg_attention(q, k, v, NULL, NULL), reference(q, k, v, NULL), 1e-5, 1e-5);
}

TEST(attention_of_no_elements_is_empty_or_zero) {
    wg_tensor *q = normal(25, WG_F32, WG_DIMS(1, 2, 3, 4)),
              *none = wg_zeros(WG_F32, WG_DIMS(1, 2, 0, 4));
    assert_close(wg_attention(q, none, none, NULL, NULL), wg_zeros(WG_F32, WG_DIMS(1, 2, 3, 4)), 0,
                 0);
    ck_assert_int_eq(wg_tensor_count(wg_attention(none, q, q, NULL, NULL)), 0);
    wg_set_requires_grad(q, true);
    wg_tensor *gradient, *y = wg_attention(none, q, q, NULL, NULL), *g = wg_zeros_like(y);
    ck_assert_int_eq(wg_grad(1, &y, &g, 1, &q, NULL, &gradient), 0);
    assert_close(gradient, wg_zeros_like(q), 0, 0);
}

TEST(attention_of_bf16_rounds_that_of_f32) {
    wg_tensor *x = wg_cast(normal(26, WG_F32, WG_DIMS(1, 2, 5, 4)), WG_BF16),
              *wide = wg_cast(x, WG_F32);
    assert_close(wg_attention(x, x, x, NULL, NULL),
                 wg_cast(wg_attention(wide, wide, wide, NULL, NULL), WG_BF16), 0, 0);
}

/* ---- Dropout ---- */

TEST(dropout_of_the_weights_keeps_their_mean_and_replays) {
    wg_tensor *q = wg_zeros(WG_F32, WG_DIMS(2, 2, 100, 4)),
              *k = wg_zeros(WG_F32, WG_DIMS(2, 2, 250, 4));
    wg_tensor *v = wg_ones(WG_F32, WG_DIMS(2, 2, 250, 4));
    wg_attention_options options = {.dropout = 0.25, .seed = 3, .offset = 7};
    wg_tensor *y = wg_attention(q, k, v, NULL, &options);
    /* With values of 1, a row sums 250 weights of 1/250, of which 3/4 are kept and scaled by 4/3:
     * its mean is 1, its variance p / (1 - p) / 250. The mean over 400 rows is checked to four
     * standard deviations. */
    ck_assert_double_eq_tol(wg_item(wg_mean(y, WG_ALL, false)), 1, 4 * sqrt(1 / 3.0 / 250 / 400));
    double spread = wg_item(wg_var(wg_select(y, 3, 0), WG_ALL, 1, false));
    ck_assert_double_eq_tol(spread, 1 / 3.0 / 250, 0.3 / 3 / 250);
    assert_close(wg_attention(q, k, v, NULL, &options), y, 0, 0);
    options.offset++;
    wg_tensor *other = wg_attention(q, k, v, NULL, &options);
    ck_assert_double_gt(wg_item(wg_max(wg_abs(wg_sub(other, y)), WG_ALL, false)), 0.01);
}

/* ---- Errors ---- */

TEST(attention_refuses_operands_that_do_not_fit) {
    wg_tensor *q = wg_ones(WG_F32, WG_DIMS(1, 4, 3, 8)), *k = wg_ones(WG_F32, WG_DIMS(1, 3, 5, 8));
    refused(wg_attention(q, k, k, NULL, NULL), SHAPE,
            "4 query heads are not a multiple of 3 key heads");
    wg_tensor *narrow = wg_ones(WG_F32, WG_DIMS(1, 4, 5, 7));
    refused(wg_attention(q, narrow, narrow, NULL, NULL), SHAPE, "differ in B or D");
    refused(wg_attention(q, q, k, NULL, NULL), SHAPE, "(B, H, Tq, D)");
    refused(wg_attention(q, q, q, wg_ones(WG_BOOL, WG_DIMS(4, 4)), NULL), SHAPE,
            "the mask does not broadcast to the scores (1, 4, 3, 3)");
    refused(wg_attention(q, q, q, wg_ones(WG_F32, WG_DIMS(3, 3)), NULL), DTYPE, "bool");
    refused(wg_attention(q, q, q, NULL, &(wg_attention_options){.dropout = 1}), ARGUMENT,
            "dropout 1");
    refused(wg_attention(q, q, q, NULL, &(wg_attention_options){.window = -1}), ARGUMENT,
            "a window of -1 positions; wanted 1 or more");
    ck_assert_ptr_null(wg_attention(q, NULL, q, NULL, NULL));
    assert_no_error();
}
