/* The fused step of attention that appends to the caches, against the ops that it replaces. */
#include "nn/attention.h"
#include "nn/positions.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/ops/attention/attention.h"
#include "tests/support/tensors.h"

enum { D = 6, CAPACITY = 150 };

typedef enum tables { NONE, OF_ALL, OF_EACH } tables;

typedef struct form {
    wg_dtype dtype;
    int64_t b, t, heads, key_heads, seen;
    tables tables;
    wg_rotary_pairing pairing;
    bool masked;
    wg_attention_options options;
} form;

static const form forms[] = {
    {WG_F32, 1, 1, 4, 4, 0, NONE, WG_ROTARY_HALVES, false, {.dropout = 0}},
    {WG_F32, 1, 1, 4, 2, 7, OF_ALL, WG_ROTARY_HALVES, false, {.causal = true}},
    {WG_F32, 2, 3, 4, 1, 5, OF_ALL, WG_ROTARY_ADJACENT, false, {.causal = true}},
    {WG_F32, 3, 1, 2, 2, 9, OF_EACH, WG_ROTARY_HALVES, true, {.causal = true}},
    {WG_F64, 2, 2, 4, 2, 4, OF_EACH, WG_ROTARY_ADJACENT, true, {.scale = 0.3}},
    {WG_F32, 2, 1, 2, 1, 6, NONE, WG_ROTARY_HALVES, true, {.dropout = 0.4, .seed = 3, .offset = 1}},
    {WG_F32, 1, 90, 2, 2, 60, OF_ALL, WG_ROTARY_HALVES, false, {.causal = true}},
};

/* ---- What goes in ---- */

typedef struct operands {
    wg__attention_step step;
    wg_tensor *keys,
        *values; /* (B, Hkv, CAPACITY, D), random at positions that are not filled yet */
} operands;

static wg_tensor *drawn(const form *f, uint64_t seed, int ndim, const int64_t *shape) {
    wg_generator generator = {.seed = seed};
    return wg_cast(wg_randn(&generator, WG_F64, ndim, shape), f->dtype);
}

/* Tables (T, P), or (B, 1, T, P) that differ between sequences; P leaves two elements of each head
 * unrotated. */
static void set_tables(const form *f, wg__attention_step *step) {
    const int64_t pairs = D / 2 - 1;
    wg_tensor *angles = f->tables == OF_EACH ? drawn(f, 9, WG_DIMS(f->b, 1, f->t, pairs))
                                             : drawn(f, 9, WG_DIMS(f->t, pairs));
    step->cos = wg_cos(angles);
    step->sin = wg_sin(angles);
}

/* Queries, keys and values are slices of one projection, as in layers. */
static operands operands_of(const form *f) {
    const int64_t queries = f->heads * D, shared = f->key_heads * D;
    wg_tensor *joint = drawn(f, 1, WG_DIMS(f->b, f->t, queries + 2 * shared)), *parts[3];
    ck_assert_int_eq(wg_split(joint, -1, 3, (int64_t[]){queries, shared, shared}, parts), 0);
    operands o = {.step = {.q = parts[0],
                           .k = parts[1],
                           .v = parts[2],
                           .heads = f->heads,
                           .key_heads = f->key_heads,
                           .pairing = f->pairing,
                           .options = f->options},
                  .keys = drawn(f, 2, WG_DIMS(f->b, f->key_heads, CAPACITY, D)),
                  .values = drawn(f, 3, WG_DIMS(f->b, f->key_heads, CAPACITY, D))};
    if (f->tables != NONE)
        set_tables(f, &o.step);
    if (f->masked) {
        wg_generator generator = {.seed = 4};
        wg_tensor *noise = wg_rand(&generator, WG_F32, WG_DIMS(f->b, 1, 1, f->seen + f->t));
        o.step.mask = wg_gt(noise, wg_scalar(WG_F32, 0.3));
    }
    return o;
}

/* ---- The ops that it stands for ---- */

static wg_tensor *split_heads(wg_tensor *x, int64_t heads) {
    return wg_transpose(
        wg_reshape(x, WG_DIMS(wg_tensor_size(x, 0), wg_tensor_size(x, 1), heads, D)), 1, 2);
}

static wg_tensor *turned(const form *f, const operands *o, wg_tensor *x) {
    return f->tables == NONE ? x : wg_rotary(x, o->step.cos, o->step.sin, f->pairing);
}

static wg_tensor *by_ops(const form *f, const operands *o) {
    const int64_t end = f->seen + f->t;
    wg_tensor *q = turned(f, o, split_heads(o->step.q, f->heads)),
              *k = turned(f, o, split_heads(o->step.k, f->key_heads)),
              *v = split_heads(o->step.v, f->key_heads);
    wg_copy_(wg_slice(o->keys, 2, f->seen, end, 1), k);
    wg_copy_(wg_slice(o->values, 2, f->seen, end, 1), v);
    wg_tensor *y = wg_attention(q, wg_slice(o->keys, 2, 0, end, 1),
                                wg_slice(o->values, 2, 0, end, 1), o->step.mask, &f->options);
    return wg_reshape(wg_transpose(y, 1, 2), WG_DIMS(f->b, f->t, f->heads * D));
}

/* ---- Tests ---- */

TEST(a_step_gives_what_its_ops_give_and_keeps_what_they_keep) {
    for (size_t i = 0; i < WG_COUNT(forms); i++) {
        const form *f = &forms[i];
        operands a = operands_of(f), b = operands_of(f);
        ck_assert_msg(wg__attention_step_suits(&a.step, f->seen), "form %zu does not suit", i);
        wg_tensor *y = wg__attention_step_run(&a.step, a.keys, a.values, f->seen);
        assert_close(y, by_ops(f, &b), 0, 0);
        assert_close(a.keys, b.keys, 0, 0);
        assert_close(a.values, b.values, 0, 0);
    }
}

TEST(a_step_has_the_same_bits_at_any_thread_count) {
    const form *f = &forms[WG_COUNT(forms) - 1];
    wg_tensor *expected = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        ck_assert_int_eq(wg_set_threads(threads), 0);
        operands o = operands_of(f);
        wg_tensor *y = wg__attention_step_run(&o.step, o.keys, o.values, f->seen);
        if (expected)
            assert_close(y, expected, 0, 0);
        expected = y;
    }
}

TEST(a_step_counts_as_a_write_to_what_is_kept) {
    const form *f = &forms[1];
    operands o = operands_of(f);
    const uint64_t before = wg__tensor_version(o.keys);
    ck_assert_ptr_nonnull(wg__attention_step_run(&o.step, o.keys, o.values, f->seen));
    ck_assert_uint_gt(wg__tensor_version(o.keys), before);
    ck_assert_uint_gt(wg__tensor_version(o.values), 0);
}

static void assert_unsuited(const char *what, const wg__attention_step *step, int64_t seen) {
    ck_assert_msg(!wg__attention_step_suits(step, seen), "%s suits", what);
}

TEST(what_needs_the_ops_does_not_suit) {
    const form *f = &forms[3];
    const operands o = operands_of(f);
    wg__attention_step step = o.step;
    step.q = wg_cast(o.step.q, WG_BF16);
    assert_unsuited("bf16", &step, f->seen);
    step = o.step;
    step.k = wg_clone(o.step.k);
    wg_set_requires_grad(step.k, true);
    assert_unsuited("a leaf", &step, f->seen);
    step = o.step;
    step.v = wg_cast(o.step.v, WG_F64);
    assert_unsuited("another dtype", &step, f->seen);
    step = o.step;
    step.sin = NULL;
    assert_unsuited("a table of two", &step, f->seen);
    step = o.step;
    step.cos = wg_slice(o.step.cos, 0, 0, 1, 1);
    assert_unsuited("tables of two shapes", &step, f->seen);
    step = o.step;
    step.mask = wg_cast(o.step.mask, WG_F32);
    assert_unsuited("a mask of numbers", &step, f->seen);
    assert_unsuited("a mask of other keys", &o.step, f->seen + 1);
    step = o.step;
    step.q = NULL;
    assert_unsuited("nothing", &step, f->seen);
}

/* ---- In the layer ---- */

static wg_multi_head_attention *layer_new(void) {
    const wg_multi_head_attention_options options = {.key_value_heads = 1, .causal = true};
    return wg_multi_head_attention_new(NULL, "", 2 * D, 2, &options);
}

static wg_tensor *positions(int64_t batch, int64_t count) {
    return drawn(&forms[0], 5, WG_DIMS(batch, count, 2 * D));
}

TEST(a_layer_without_memory_leaves_its_cache_as_it_was) {
    wg_multi_head_attention *layer = layer_new();
    wg_set_grad_enabled(false);
    wg_tensor *x = positions(2, 1), *y = NULL;
    wg_kv_cache cache;
    wg_kv_cache_init(&cache, 3);
    for (int64_t n = 0; !y; n++) {
        ck_assert_int_lt(n, 200);
        wg__alloc_fail_after(n);
        y = wg_multi_head_attention_forward(layer, x, &(wg_attention_inputs){.cache = &cache});
        wg__alloc_fail_after(-1);
        if (!y)
            assert_error(WG_ERROR_MEMORY, "");
    }
    ck_assert_int_eq(cache.length, 1);
    wg_kv_cache_clear(&cache);
    wg_set_grad_enabled(true);
    wg_module_free(&layer->module);
}

TEST(a_layer_refuses_a_cache_that_does_not_fit) {
    wg_multi_head_attention *layer = layer_new();
    wg_set_grad_enabled(false);
    wg_kv_cache cache;
    wg_kv_cache_init(&cache, 3);
    const wg_attention_inputs inputs = {.cache = &cache};
    ck_assert_ptr_nonnull(wg_multi_head_attention_forward(layer, positions(2, 2), &inputs));
    refused(wg_multi_head_attention_forward(layer, positions(2, 2), &inputs), ARGUMENT,
            "2 positions after 2 are more than the cache has room for, 3");
    refused(wg_multi_head_attention_forward(layer, positions(1, 1), &inputs), SHAPE,
            "the cache holds 2 sequences of 1 heads of 6");
    ck_assert_int_eq(cache.length, 2);
    wg_kv_cache_clear(&cache);
    wg_set_grad_enabled(true);
    refused(wg_multi_head_attention_forward(layer, positions(2, 1), &inputs), GRADIENT,
            "turn recording off");
    wg_module_free(&layer->module);
}
