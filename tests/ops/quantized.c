/* Quantized weights: the formats against ggml's (tests/fixtures/quants.py), products against
 * NumPy's (block_products.py) and against those with dequantized weights, and models with quantized
 * layers. */
#include <math.h>
#include <string.h>

#include "models/gpt.h"
#include "models/internal.h"
#include "models/llama.h"
#include "nn/internal.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/quantize_rows.h"
#include "tensor/simd/simd.h"
#include "tests/support/fused.h"
#include "tests/support/model_fixture.h"
#include "tests/support/tensors.h"

/* The difference between sums of a few hundred products in different orders. */
static const double rounding = 2e-6;

static wg_tensor *drawn(int ndim, const int64_t *shape) {
    static wg_generator generator = {.seed = 7};
    return wg_randn(&generator, WG_F32, ndim, shape);
}

/* ---- Formats ---- */

TEST(blocks_are_those_of_ggml) {
    wg_tensor *numbers = fixture_tensor("quants/numbers");
    for (wg_quantization quantization = WG_QUANTIZATION_Q8_0; quantization <= WG_QUANTIZATION_Q4_0;
         quantization++) {
        const wg_tensor *expected = fixture_tensor("quants/%s", wg_quantization_name(quantization));
        wg_tensor *quantized = wg_quantize(numbers, quantization);
        const int64_t bytes = wg_tensor_count(quantized);
        ck_assert_int_eq(bytes, wg_tensor_count(numbers) / wg__quantization_block(quantization) *
                                    wg__quantization_block_bytes(quantization));
        const uint8_t *ours = wg_tensor_data(quantized);
        const uint8_t *theirs = wg_tensor_data((wg_tensor *)expected);
        for (int64_t i = 0; i < bytes; i++) {
            /* The scale of subnormals is 0. ggml divides by it, so all levels mean 0. */
            const uint8_t *block = theirs + i - i % wg__quantization_block_bytes(quantization);
            if (block[0] || block[1])
                ck_assert_msg(ours[i] == theirs[i], "%s, byte %lld: %d, wanted %d",
                              wg_quantization_name(quantization), (long long)i, ours[i], theirs[i]);
        }
    }
}

TEST(bf16_rounds_as_a_cast_does) {
    wg_tensor *x = drawn(WG_DIMS(3, 17));
    assert_close(wg_dequantize(wg_quantize(x, WG_QUANTIZATION_BF16), WG_QUANTIZATION_BF16),
                 wg_cast(wg_cast(x, WG_BF16), WG_F32), 0, 0);
}

TEST(what_is_unpacked_is_packed_to_the_same_bytes) {
    wg_tensor *x = drawn(WG_DIMS(5, 96));
    for (wg_quantization quantization = 0; quantization < WG_QUANTIZATION_COUNT; quantization++) {
        wg_tensor *once = wg_quantize(x, quantization);
        assert_close(wg_quantize(wg_dequantize(once, quantization), quantization), once, 0, 0);
    }
}

/* The kernels against plain C, including rows that fill no whole number of vectors. */
TEST(unpacking_gives_the_bits_of_plain_c) {
    for (wg_quantization quantization = 0; quantization < WG_QUANTIZATION_COUNT; quantization++)
        for (int64_t blocks = 0; blocks < 70; blocks += 3) {
            const int64_t columns = blocks * wg__quantization_block(quantization);
            wg_tensor *quantized = wg_quantize(drawn(WG_DIMS(columns)), quantization);
            wg_tensor *expected = wg_empty(WG_F32, WG_DIMS(columns));
            wg__dequantize_row(wg__quantization_of_a_row(quantization), columns,
                               wg_tensor_data(quantized), wg_tensor_data(expected));
            assert_close(wg_dequantize(quantized, quantization), expected, 0, 0);
        }
}

/* Byte i of block b of each row; rows beyond the last whole group are as they were. */
TEST(rows_side_by_side_have_the_blocks_of_rows_by_themselves) {
    enum { ROWS = 37, BLOCKS = 3 };
    wg_tensor *x = drawn(WG_DIMS(ROWS, 32 * BLOCKS));
    for (wg_quantization quantization = WG_QUANTIZATION_Q8_0; quantization <= WG_QUANTIZATION_Q4_0;
         quantization++) {
        const wg_quantization together = wg__quantization_side_by_side(quantization);
        const int64_t size = wg__quantization_block_bytes(quantization), row_size = BLOCKS * size;
        wg_tensor *rows = wg_quantize(x, quantization), *groups = wg_quantize(x, together);
        const uint8_t *plain = wg_tensor_data(rows), *mixed = wg_tensor_data(groups);
        for (int64_t r = 0; r < 32; r++)
            for (int64_t b = 0; b < BLOCKS; b++) {
                const uint8_t *group = mixed + r / 16 * 16 * row_size + b * 16 * size;
                for (int64_t i = 0; i < size; i++) {
                    const int64_t at =
                        i < 2 ? r % 16 * 2 + i : 32 + (i - 2) / 4 * 64 + r % 16 * 4 + (i - 2) % 4;
                    ck_assert_int_eq(group[at], plain[r * row_size + b * size + i]);
                }
            }
        ck_assert_mem_eq(mixed + 32 * row_size, plain + 32 * row_size, 5 * row_size);
        assert_close(wg_dequantize(groups, together), wg_dequantize(rows, quantization), 0, 0);
    }
    ck_assert_int_eq(wg__quantization_side_by_side(WG_QUANTIZATION_BF16), WG_QUANTIZATION_BF16);
}

TEST(names_find_their_packing) {
    for (wg_quantization quantization = 0; quantization < WG_QUANTIZATION_COUNT; quantization++)
        ck_assert_int_eq(wg_quantization_find(wg_quantization_name(quantization)), quantization);
    ck_assert_int_eq(wg_quantization_find("q5_1"), -1);
    ck_assert_int_eq(wg_quantization_find(NULL), -1);
    ck_assert_ptr_null(wg_quantization_name(WG_QUANTIZATION_COUNT));
}

/* ---- Products ---- */

/* Rows of x, in f64, as a product with blocks of integers reads them. */
static wg_tensor *rounded_to_blocks(wg_tensor *x) {
    x = wg_contiguous(x);
    wg_tensor *rounded = wg_empty(WG_F64, WG_DIMS(wg_tensor_count(x)));
    const float *from = wg_tensor_data(x);
    double *to = wg_tensor_data(rounded);
    for (int64_t block = 0; block < wg_tensor_count(x); block += 32) {
        float largest = 0;
        for (int64_t i = block; i < block + 32; i++)
            largest = fmaxf(largest, fabsf(from[i]));
        const float scale = largest / 127, inverse = isfinite(1 / scale) ? 1 / scale : 0;
        for (int64_t i = block; i < block + 32; i++) {
            const float level = from[i] * inverse;
            to[i] = (double)scale * nearbyint((double)level);
        }
    }
    return wg_reshape(rounded, wg_tensor_ndim(x), wg_tensor_shape(x));
}

/* Above this number of rows, x is rounded to bf16 before it is multiplied by bf16 weights, on
 * processors with such instructions. */
enum { FEW_ROWS = 16 };

/* Rows of x, in f64, as a product reads them. */
static wg_tensor *met_by(wg_quantization quantization, wg_tensor *x) {
    if (quantization != WG_QUANTIZATION_BF16)
        return rounded_to_blocks(x);
    const bool rounded = wg_tensor_count(x) > FEW_ROWS * wg_tensor_size(x, -1) &&
                         wg__bf16_kernels_at(WG__BEST)->rounds_x;
    return wg_cast(rounded ? wg_cast(x, WG_BF16) : x, WG_F64);
}

static void assert_multiplies(wg_quantization quantization, wg_tensor *x, int64_t outputs,
                              bool has_bias) {
    wg_tensor *quantized =
        wg_quantize(drawn(WG_DIMS(outputs, wg_tensor_size(x, -1))), quantization);
    wg_tensor *bias = has_bias ? drawn(WG_DIMS(outputs)) : NULL;
    wg_tensor *expected =
        wg_linear_op(met_by(quantization, x), wg_dequantize(quantized, quantization), bias);
    const double scale = wg_item(wg_cast(wg_max(wg_abs(expected), WG_ALL, false), WG_F64));
    assert_close(wg_cast(wg_quantized_linear(x, quantized, quantization, bias), WG_F64), expected,
                 0, rounding * scale);
}

/* Rows that fill no whole number of vectors, and few and many of them. */
TEST(a_product_is_that_with_the_unpacked_weight) {
    for (wg_quantization quantization = 0; quantization < WG_QUANTIZATION_COUNT; quantization++) {
        for (int64_t blocks = 1; blocks <= 13; blocks += 2)
            for (int64_t rows = 1; rows <= 19; rows += 2)
                assert_multiplies(quantization, drawn(WG_DIMS(rows, 32 * blocks)), 33,
                                  rows % 4 == 1);
        assert_multiplies(quantization, drawn(WG_DIMS(250, 320)), 70, true);
    }
    for (int64_t columns = 1; columns < 140; columns += 9)
        assert_multiplies(WG_QUANTIZATION_BF16, drawn(WG_DIMS(columns)), 5, true);
    assert_multiplies(WG_QUANTIZATION_BF16, drawn(WG_DIMS(17, 139)), 5, false);
}

/* Levels of every value, including -128, and x of many magnitudes; the expected sums are
 * NumPy's. */
TEST(products_of_integers_are_numpys) {
    wg_tensor *x = fixture_tensor("block_products/x");
    for (wg_quantization quantization = WG_QUANTIZATION_Q8_0; quantization <= WG_QUANTIZATION_Q4_0;
         quantization++) {
        const char *name = wg_quantization_name(quantization);
        wg_tensor *rows = fixture_tensor("block_products/%s", name);
        wg_tensor *expected = wg_cast(fixture_tensor("block_products/product_%s", name), WG_F32);
        const double scale = wg_item(wg_max(wg_abs(expected), WG_ALL, false));
        assert_close(wg_quantized_linear(x, rows, quantization, NULL), expected, rounding,
                     1e-7 * scale);
        wg_tensor *groups = wg_clone(rows);
        const int64_t size = wg__quantization_block_bytes(quantization),
                      bytes = wg_tensor_size(rows, 1);
        for (int64_t r = 0; r < 16; r++)
            for (int64_t at = 0; at < bytes; at += size)
                wg__group_put(quantization, r, (uint8_t *)wg_tensor_data(rows) + r * bytes + at,
                              (uint8_t *)wg_tensor_data(groups) + 16 * at);
        assert_close(
            wg_quantized_linear(x, groups, wg__quantization_side_by_side(quantization), NULL),
            wg_quantized_linear(x, rows, quantization, NULL), 0, 0);
    }
}

TEST(a_row_gives_the_same_bits_alone_and_among_others) {
    wg_tensor *x = drawn(WG_DIMS(163, 96)), *w = drawn(WG_DIMS(45, 96));
    for (wg_quantization quantization = WG_QUANTIZATION_Q8_0; quantization < WG_QUANTIZATION_COUNT;
         quantization++) {
        wg_tensor *quantized = wg_quantize(w, quantization);
        wg_tensor *all = wg_quantized_linear(x, quantized, quantization, NULL);
        for (int64_t r = 0; r < 163; r += 9)
            assert_close(wg_quantized_linear(wg_select(x, 0, r), quantized, quantization, NULL),
                         wg_select(all, 0, r), 0, 0);
    }
}

/* A prompt at once against its tokens one by one. An error of bf16 is at most 2^-9 of a number, an
 * error of a sum n roundings of f32. */
TEST(many_rows_in_bf16_are_off_by_the_rounding_of_x) {
    enum { ROWS = FEW_ROWS + 1, N = 96 };
    wg_tensor *x = drawn(WG_DIMS(ROWS, N)),
              *quantized = wg_quantize(drawn(WG_DIMS(45, N)), WG_QUANTIZATION_BF16);
    wg_tensor *all = wg_quantized_linear(x, quantized, WG_QUANTIZATION_BF16, NULL);
    wg_tensor *sizes = wg_linear_op(wg_cast(wg_abs(x), WG_F64),
                                    wg_abs(wg_dequantize(quantized, WG_QUANTIZATION_BF16)), NULL);
    wg_tensor *bounds = wg_affine(sizes, 0x1p-9 + (2 * N + 2) * 0x1p-24, 0);
    for (int64_t r = 0; r < ROWS; r++) {
        wg_tensor *alone =
            wg_quantized_linear(wg_select(x, 0, r), quantized, WG_QUANTIZATION_BF16, NULL);
        wg_tensor *off = wg_cast(wg_abs(wg_sub(wg_select(all, 0, r), alone)), WG_F64);
        ck_assert(wg_item(wg_max(wg_sub(off, wg_select(bounds, 0, r)), WG_ALL, false)) <= 0);
    }
}

/* A number that is not finite reaches every output of its row, and no other row. */
TEST(what_is_not_finite_stays_so) {
    for (int j = 0; j < 2 * WG_QUANTIZATION_COUNT; j++) {
        const wg_quantization quantization = (wg_quantization)(j / 2);
        wg_tensor *x = drawn(WG_DIMS(j % 2 ? FEW_ROWS + 3 : 3, 64)),
                  *quantized = wg_quantize(drawn(WG_DIMS(20, 64)), quantization);
        float *numbers = wg_tensor_data(x);
        numbers[5] = NAN;
        numbers[2 * 64 + 40] = INFINITY;
        const float *y = wg_tensor_data(wg_quantized_linear(x, quantized, quantization, NULL));
        for (int i = 0; i < 20; i++) {
            ck_assert(isnan(y[i]));
            ck_assert(isfinite(y[20 + i]));
            ck_assert(!isfinite(y[40 + i]));
        }
    }
}

TEST(strided_operands_need_no_copy_of_the_callers) {
    wg_tensor *x = wg_transpose(drawn(WG_DIMS(64, 3)), 0, 1);
    wg_tensor *quantized =
        wg_quantize(wg_transpose(drawn(WG_DIMS(64, 9)), 0, 1), WG_QUANTIZATION_Q8_0);
    wg_tensor *every_other = wg_slice(quantized, 0, 0, 9, 2);
    wg_tensor *y = wg_quantized_linear(x, every_other, WG_QUANTIZATION_Q8_0, NULL);
    assert_close(
        wg_cast(y, WG_F64),
        wg_linear_op(rounded_to_blocks(x), wg_dequantize(every_other, WG_QUANTIZATION_Q8_0), NULL),
        rounding, 10 * rounding);
}

static wg_quantization threaded;
static wg_tensor *threaded_weight, *threaded_x[2];

static void threaded_products(int count, wg_tensor **results) {
    for (int i = 0; i < count; i++)
        results[i] = wg_quantized_linear(threaded_x[i], threaded_weight, threaded, NULL);
}

TEST(any_number_of_threads_gives_the_same_bits) {
    for (threaded = 0; threaded < WG_QUANTIZATION_COUNT; threaded++) {
        threaded_weight = wg_quantize(drawn(WG_DIMS(700, 256)), threaded);
        threaded_x[0] = drawn(WG_DIMS(2, 256));
        threaded_x[1] = drawn(WG_DIMS(40, 256));
        assert_same_bits_at_any_thread_count(2, threaded_products);
    }
}

/* Layers some of whose rows are no whole group, with and without a bias, for few and many rows of
 * x. */
TEST(several_weights_give_side_by_side_what_each_gives_alone) {
    static const int64_t outputs[] = {32, 5, 17}, x_rows[] = {1, 3, 40};
    for (wg_quantization quantization = 0; quantization < WG_QUANTIZATION_COUNT; quantization++)
        for (int i = 0; i < 9; i++) {
            const int count = 1 + i % 3;
            wg_tensor *x = drawn(WG_DIMS(x_rows[i / 3], 96)), *weights[3], *biases[3], *alone[3];
            for (int w = 0; w < count; w++) {
                weights[w] = wg_quantize(drawn(WG_DIMS(outputs[w], 96)), quantization);
                biases[w] = w == 1 ? NULL : drawn(WG_DIMS(outputs[w]));
                alone[w] = wg_quantized_linear(x, weights[w], quantization, biases[w]);
            }
            assert_close(wg__quantized_linears(x, count, weights, quantization, biases),
                         wg_cat(count, alone, -1), 0, 0);
        }
}

TEST(what_cannot_be_packed_is_refused) {
    const wg_quantization q8_0 = WG_QUANTIZATION_Q8_0, q4_0 = WG_QUANTIZATION_Q4_0;
    wg_tensor *x = drawn(WG_DIMS(2, 32)), *vector = drawn(WG_DIMS(64));
    wg_tensor *quantized = wg_quantize(drawn(WG_DIMS(2, 64)), q4_0);
    wg_tensor *weights[] = {quantized, wg_quantize(x, q4_0)};
    refused(wg_quantize(drawn(WG_DIMS(2, 33)), q8_0), SHAPE, "blocks of 32, which do not fill 33");
    refused(wg_quantize(wg_cast(x, WG_F64), q8_0), DTYPE, "wanted f32");
    refused(wg_quantize(wg_scalar(WG_F32, 1), WG_QUANTIZATION_BF16), SHAPE, "wanted rows");
    refused(wg_quantize(x, WG_QUANTIZATION_COUNT), ARGUMENT, "there is no quantization 5");
    refused(wg_dequantize(wg_zeros(WG_U8, WG_DIMS(2, 33)), q8_0), SHAPE, "blocks of q8_0, 34 each");
    refused(wg_dequantize(drawn(WG_DIMS(2, 34)), q8_0), DTYPE, "wanted u8");
    refused(wg_quantized_linear(x, quantized, q4_0, NULL), SHAPE, "32 features");
    refused(wg_quantized_linear(vector, quantized, q4_0, drawn(WG_DIMS(3))), SHAPE, "a bias of 2");
    refused(wg_quantized_linear(vector, drawn(WG_DIMS(2, 64)), q4_0, NULL), DTYPE, "not u8");
    refused(wg__quantized_linears(vector, 2, weights, q4_0, NULL), SHAPE, "weight takes 32");
    refused(wg__quantized_linears(vector, 0, weights, q4_0, NULL), ARGUMENT, "0 weights");
    refused(wg__quantized_linears(vector, 4, weights, q4_0, NULL), ARGUMENT, "4 weights");
    weights[1] = NULL;
    ck_assert_ptr_null(wg__quantized_linears(vector, 2, weights, q4_0, NULL));
    assert_no_error();
}

/* ---- Models ---- */

static void round_to(wg_tensor *weight, wg_quantization quantization) {
    wg_set_grad_enabled(false);
    const bool fits = wg_tensor_size(weight, 1) % wg__quantization_block(quantization) == 0;
    quantization = fits ? quantization : WG_QUANTIZATION_BF16;
    wg_copy_(weight,
             wg_dequantize(wg_quantize(wg_cast(weight, WG_F32), quantization), quantization));
    wg_set_grad_enabled(true);
}

/* The logits of ids, by a model of a few tens of thousands of parameters. */
static wg_tensor *sample_logits(const wg_model *model) {
    wg_tensor *ids = wg_from_array(WG_I64, WG_DIMS(1, 5), (int64_t[]){1, 5, 3, 2, 9});
    wg_set_grad_enabled(false);
    wg_tensor *hidden = wg_model_forward(model, &(wg_model_inputs){.ids = ids});
    wg_tensor *logits = wg_model_logits(model, hidden, NULL);
    wg_set_grad_enabled(true);
    return logits;
}

static wg_llama *make_llama(void) {
    /* Rows of 48 are no whole number of blocks, so they become bf16. */
    wg_llama_config config;
    wg_model_preset_config(&wg_llama_type, "llama-260k", &config);
    config.hidden_size = 64;
    config.intermediate_size = 48;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.vocab_size = 40;
    config.tie_word_embeddings = true;
    return wg__llama_new(&config, 3);
}

TEST(a_packed_llama_is_one_with_rounded_weights) {
    for (wg_quantization quantization = 0; quantization < WG_QUANTIZATION_COUNT; quantization++) {
        wg_llama *quantized = make_llama(), *rounded = make_llama();
        ck_assert_int_eq(wg_module_quantize(&quantized->module, quantization), 0);
        ck_assert_int_ge(wg__linear_quantization(quantized->head), 0);
        ck_assert_int_eq(wg_tensor_dtype(quantized->embedding->weight), WG_F32);
        ck_assert_int_eq(wg__linear_quantization(quantized->layers[0]->feed_forward->down),
                         WG_QUANTIZATION_BF16);

        wg_state_dict *state = wg_module_state(&rounded->module);
        for (int64_t i = 0; i < state->count; i++) {
            const wg_slot *slot = state->entries[i].slot;
            if (!slot->tied && wg_tensor_ndim(slot->tensor) == 2 &&
                slot->tensor != rounded->embedding->weight)
                round_to(slot->tensor, quantization);
        }
        wg_state_dict_free(state);
        /* In f64, where x is not quantized for products with blocks of integers. */
        ck_assert_int_eq(wg_module_to(&quantized->module, WG_F64), 0);
        ck_assert_int_eq(wg_module_to(&rounded->module, WG_F64), 0);
        wg_model a = (wg_model){.type = &wg_llama_type, .module = &quantized->module},
                 b = (wg_model){.type = &wg_llama_type, .module = &rounded->module};
        const wg_model_inputs inputs = {
            .ids = wg_from_array(WG_I64, WG_DIMS(1, 3), (int64_t[]){4, 1, 7})};
        wg_tensor *hidden_a = wg_model_forward(&a, &inputs);
        wg_tensor *hidden_b = wg_model_forward(&b, &inputs);
        assert_close(hidden_a, wg_detach(hidden_b), 1e-12, 1e-12);
        round_to(rounded->embedding->weight,
                 quantization); /* the head's rows; vectors were exact */
        assert_close(wg_model_logits(&a, wg_detach(hidden_a), NULL),
                     wg_detach(wg_model_logits(&b, hidden_b, NULL)), 1e-12, 1e-12);
        wg_module_free(&quantized->module);
        wg_module_free(&rounded->module);
    }
}

TEST(a_gpt_whose_layers_are_transposed_and_whose_head_is_tied_is_packed) {
    wg_gpt_config config;
    wg_model_preset_config(&wg_gpt_type, "gpt2-tiny", &config);
    config.vocab_size = 50;
    config.bos_token_id = config.eos_token_id = 0;
    wg_gpt *gpt = wg__gpt_new(&config, 2);
    wg_model model = (wg_model){.type = &wg_gpt_type, .module = &gpt->module};
    wg_module_train(&gpt->module, false);
    wg_tensor *exact = wg_clone(sample_logits(&model));
    ck_assert_int_eq(wg_module_quantize(&gpt->module, WG_QUANTIZATION_Q8_0), 0);
    wg_tensor *quantized = sample_logits(&model);
    const double size = wg_item(wg_max(wg_abs(exact), WG_ALL, false));
    assert_close(quantized, exact, 0, 0.02 * size);
    ck_assert_msg(wg_item(wg_max(wg_abs(wg_sub(quantized, exact)), WG_ALL, false)) > 1e-7 * size,
                  "nothing was rounded");
    wg_module_free(&gpt->module);
}

TEST(packing_gives_memory_back) {
    wg_llama *model = make_llama();
    const int64_t before = wg_alloc_get_stats().live_bytes;
    ck_assert_int_eq(wg_module_quantize(&model->module, WG_QUANTIZATION_Q8_0), 0);
    ck_assert_int_lt(wg_alloc_get_stats().live_bytes, before);
    wg_module_free(&model->module);
}

TEST(packing_that_finds_no_memory_leaves_nothing_behind) {
    for (int64_t n = 0;; n++) {
        wg_llama *model = make_llama();
        wg__alloc_fail_after(n);
        const int result = wg_module_quantize(&model->module, WG_QUANTIZATION_Q4_0);
        wg__alloc_fail_after(-1);
        wg_module_free(&model->module);
        if (result == 0)
            break;
        assert_error(WG_ERROR_MEMORY, "");
    }
}
