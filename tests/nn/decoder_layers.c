/* The layers of decoders: attention weights, masks, generation with a cache, options.
 * attention_forms.c and layer_forms.c compare their results with PyTorch's. */
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/positions.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "nn/internal.h"

enum { B = 2, T = 5, C = 12, H = 3, HEADS = 6, SHARED = 2, D = 4 };

/* ---- Attention weights ---- */

static wg_tensor *normal(uint64_t seed, int ndim, const int64_t *shape) {
    wg_generator generator = {.seed = seed};
    return wg_randn(&generator, WG_F32, ndim, shape);
}

START_TEST(asking_for_the_weights_gives_them_and_the_same_output) {
    const wg_multi_head_attention_options options = {.causal = true, .key_value_heads = 1};
    wg_multi_head_attention *layer = wg_multi_head_attention_new(NULL, "", C, H, &options);
    wg_tensor *x = normal(1, WG_DIMS(B, T, C)), *weights = NULL;
    wg_tensor *keep = wg_ones(WG_BOOL, WG_DIMS(B, T));
    wg_copy_(wg_slice(keep, 1, 0, 1, 1), wg_zeros(WG_BOOL, WG_DIMS(1)));
    wg_attention_inputs inputs = {.mask = wg_padding_mask(keep)};
    wg_tensor *fused = wg_multi_head_attention_forward(layer, x, &inputs);
    inputs.weights = &weights;
    assert_close(wg_detach(wg_multi_head_attention_forward(layer, x, &inputs)), wg_detach(fused),
                 1e-5, 1e-6);
    wg_tensor *sums = wg_sum(weights, WG_DIMS(-1), false);
    wg_tensor *seen = wg_slice(wg_ones(WG_F32, WG_DIMS(B, H, T)), 2, 1, WG_END, 1);
    assert_close(wg_detach(wg_slice(sums, 2, 1, WG_END, 1)), seen, 1e-6, 0);
    ck_assert_double_eq(wg_item(wg_sum(wg_slice(sums, 2, 0, 1, 1), WG_ALL, false)), 0);
    wg_module_free(&layer->module);
}
END_TEST

/* ---- Masks ---- */

START_TEST(all_see_the_prefix_and_each_what_is_before_it) {
    static const int64_t lengths[2] = {1, 3};
    static const bool wanted[2][3][5] = {
        {{1, 1, 1, 0, 0},
         {1, 1, 1, 1, 0},
         {1, 1, 1, 1, 1}}, /* 2 positions came before: the prefix has ended */
        {{1, 1, 1, 0, 0}, {1, 1, 1, 1, 0}, {1, 1, 1, 1, 1}}};
    wg_tensor *prefix = wg_from_array(WG_I64, WG_DIMS(2), lengths);
    assert_close(wg__prefix_mask(prefix, 2, 3), wg_from_array(WG_BOOL, WG_DIMS(2, 1, 3, 5), wanted),
                 0, 0);
    static const bool at_once[2][4][4] = {{{1, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}},
                                          {{1, 1, 1, 0}, {1, 1, 1, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}}};
    assert_close(wg__prefix_mask(wg_cast(prefix, WG_I32), 0, 4),
                 wg_from_array(WG_BOOL, WG_DIMS(2, 1, 4, 4), at_once), 0, 0);
    ck_assert_ptr_null(wg__prefix_mask(NULL, 0, 4));
    assert_fails(wg__prefix_mask(wg_unsqueeze(prefix, 0), 0, 4), WG_ERROR_SHAPE,
                 "prefix has rank 2; wanted (B)");
    assert_fails(wg__prefix_mask(wg_cast(prefix, WG_F32), 0, 4), WG_ERROR_DTYPE,
                 "f32; wanted i64 or i32");
}
END_TEST

/* ---- Generation ---- */

static wg_multi_head_attention *grouped_attention(void) {
    const wg_multi_head_attention_options options = {
        .key_value_heads = SHARED, .head_width = D, .causal = true, .no_bias = true};
    return wg_multi_head_attention_new(NULL, "", C, HEADS, &options);
}

/* The layer on x, a few positions at a time. */
static wg_tensor *in_parts(wg_multi_head_attention *layer, wg_tensor *x, wg_tensor *memory,
                           const int64_t *parts, wg_kv_cache *cache) {
    wg_tensor *outputs[T];
    int count = 0;
    for (int64_t begin = 0; begin < wg_tensor_size(x, 1); begin += parts[count++]) {
        wg_attention_inputs inputs = {.memory = memory, .cache = cache};
        if (!memory)
            wg__rotary_tables(D, begin, parts[count], NULL, &inputs.cos, &inputs.sin);
        wg_tensor *part = wg_slice(x, 1, begin, begin + parts[count], 1);
        outputs[count] = wg_multi_head_attention_forward(layer, part, &inputs);
    }
    return wg_cat(count, outputs, 1);
}

START_TEST(a_cache_gives_in_parts_what_attention_gives_at_once) {
    static const int64_t parts[][T] = {{1, 1, 1, 1, 1}, {3, 1, 1}, {2, 3}};
    wg_multi_head_attention *layer = grouped_attention();
    wg_set_grad_enabled(false);
    wg_tensor *x = normal(2, WG_DIMS(B, T, C));
    wg_attention_inputs all = {0};
    wg__rotary_tables(D, 0, T, NULL, &all.cos, &all.sin);
    wg_tensor *expected = wg_multi_head_attention_forward(layer, x, &all);
    for (size_t i = 0; i < WG_COUNT(parts); i++) {
        wg_kv_cache cache;
        wg_kv_cache_init(&cache, T);
        assert_close(in_parts(layer, x, NULL, parts[i], &cache), expected, 1e-5, 1e-6);
        ck_assert_int_eq(cache.length, T);
        wg_kv_cache_clear(&cache);
    }
    wg_set_grad_enabled(true);
    wg_module_free(&layer->module);
}
END_TEST

START_TEST(a_cache_of_cross_attention_looks_at_the_memory_once) {
    static const int64_t parts[] = {2, 1, 1, 1};
    wg_multi_head_attention *layer = wg_multi_head_attention_new(NULL, "", C, H, NULL);
    wg_set_grad_enabled(false);
    wg_tensor *x = normal(3, WG_DIMS(B, T, C)), *memory = normal(4, WG_DIMS(B, 7, C));
    wg_tensor *expected =
        wg_multi_head_attention_forward(layer, x, &(wg_attention_inputs){.memory = memory});
    wg_kv_cache cache;
    wg_kv_cache_init(&cache, 7);
    assert_close(in_parts(layer, x, memory, parts, &cache), expected, 1e-5, 1e-6);
    ck_assert_int_eq(cache.length, 7);
    wg_kv_cache_clear(&cache);
    wg_set_grad_enabled(true);
    wg_module_free(&layer->module);
}
END_TEST

START_TEST(a_cache_is_cut_and_reordered) {
    wg_kv_cache cache;
    wg_kv_cache_init(&cache, 4);
    wg_tensor *x = normal(5, WG_DIMS(3, 1, 3, 2)), *keys, *values;
    ck_assert_int_eq(wg__kv_cache_append(&cache, x, wg_neg(x), &keys, &values), 0);
    ck_assert_int_eq(wg__kv_cache_truncate(&cache, 1), 0);
    wg_tensor *index = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){2, 0});
    ck_assert_int_eq(wg__kv_cache_reorder(&cache, index), 0);
    wg_tensor *more = normal(6, WG_DIMS(2, 1, 1, 2));
    ck_assert_int_eq(wg__kv_cache_append(&cache, more, more, &keys, &values), 0);
    wg_tensor *first = wg_index_select(wg_slice(x, 2, 0, 1, 1), 0, index);
    assert_close(keys, wg_cat(2, (wg_tensor *[]){first, more}, 2), 0, 0);
    assert_close(values, wg_cat(2, (wg_tensor *[]){wg_neg(first), more}, 2), 0, 0);
    wg_kv_cache_clear(&cache);
}
END_TEST

START_TEST(a_cache_refuses_what_does_not_fit) {
    wg_kv_cache cache;
    wg_kv_cache_init(&cache, 2);
    wg_tensor *x = normal(7, WG_DIMS(1, 1, 2, 2)), *keys, *values;
    ck_assert_int_eq(wg__kv_cache_append(&cache, x, x, &keys, &values), 0);
    assert_fails(wg__kv_cache_append(&cache, x, x, &keys, &values), WG_ERROR_ARGUMENT,
                 "2 positions after 2 are more than the cache has room for, 2");
    assert_fails(wg__kv_cache_truncate(&cache, 3), WG_ERROR_ARGUMENT,
                 "length 3; 2 positions are filled");
    wg__kv_cache_truncate(&cache, 0);
    wg_tensor *leaf = wg_clone(x);
    wg_set_requires_grad(leaf, true);
    assert_fails(wg__kv_cache_append(&cache, leaf, x, &keys, &values), WG_ERROR_GRADIENT,
                 "turn recording off");
    wg_kv_cache_clear(&cache);
}
END_TEST

/* ---- Rotary tables, options ---- */

START_TEST(rotary_tables_stretch_as_published) {
    wg_tensor *cosines, *sines, *plain, *unused;
    const wg_rotary_options linear = {.factor = 4};
    wg__rotary_tables(8, 0, 9, NULL, &plain, &unused);
    wg__rotary_tables(8, 0, 33, &linear, &cosines, &sines);
    assert_close(wg_slice(cosines, 0, 0, WG_END, 4), plain, 1e-6, 1e-6);
    /* LLaMA 3.1: the wavelengths are 2 pi 500000^(i / 64); those beyond 8192 become 8 times as
     * long. */
    const wg_rotary_options llama = {.base = 500000,
                                     .factor = 8,
                                     .low_frequency_factor = 1,
                                     .high_frequency_factor = 4,
                                     .original_positions = 8192};
    wg__rotary_tables(128, 0, 2, &llama, &cosines, &sines);
    ck_assert_double_eq_tol(wg_at(sines, (int64_t[]){1, 0}), 0.8414709848, 1e-7);
    ck_assert_double_eq_tol(wg_at(sines, (int64_t[]){1, 63}), 3.06898e-7, 1e-11);
}
END_TEST

/* 2^62 positions of 8 f32 are 2^67 bytes, which wrap to none. */
START_TEST(tables_of_more_positions_than_fit_are_refused) {
    wg_tensor *cosines, *sines;
    static const int64_t counts[] = {1LL << 62, 1LL << 61, INT64_MAX};
    for (size_t i = 0; i < WG_COUNT(counts); i++) {
        assert_fails(wg__rotary_tables(16, 0, counts[i], NULL, &cosines, &sines), WG_ERROR_SHAPE,
                     "2^62");
        ck_assert_ptr_null(cosines);
        assert_fails(wg__sinusoidal_table(WG_F32, 16, 0, counts[i], NULL), WG_ERROR_SHAPE, "2^62");
    }
    assert_fails(wg__rotary_tables(16, INT64_MAX, 2, NULL, &cosines, &sines), WG_ERROR_ARGUMENT,
                 "2 positions from");
    assert_fails(wg__rotary_tables(16, 0, 1LL << 50, NULL, &cosines, &sines), WG_ERROR_MEMORY,
                 "positions wants");
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name) {
    wg_tensor *cosines, *sines;
    assert_fails(wg__rotary_tables(7, 0, 4, NULL, &cosines, &sines), WG_ERROR_ARGUMENT,
                 "width 7; wanted an even one");
    const wg_multi_head_attention_options shared = {.key_value_heads = 2};
    assert_fails(wg_multi_head_attention_new(NULL, "", C, H, &shared), WG_ERROR_ARGUMENT,
                 "2 key_value_heads do not divide 3 heads");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        asking_for_the_weights_gives_them_and_the_same_output,
        all_see_the_prefix_and_each_what_is_before_it,
        a_cache_gives_in_parts_what_attention_gives_at_once,
        a_cache_of_cross_attention_looks_at_the_memory_once,
        a_cache_is_cut_and_reordered,
        a_cache_refuses_what_does_not_fit,
        rotary_tables_stretch_as_published,
        tables_of_more_positions_than_fit_are_refused,
        what_cannot_be_is_refused_by_name,
    };
    add_suite("decoder_layers", tests);
}
