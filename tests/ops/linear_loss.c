/* Cross-entropy fused with the linear map that makes its logits: the results of the two ops, chunk
 * by chunk, without all logits in memory. */
#include "autograd/autograd.h"
#include "nn/internal.h"
#include "nn/linear.h"
#include "tensor/gemm/gemm.h"
#include "tensor/ops.h"
#include "tests/support/fused.h"
#include "tests/support/tensors.h"

#include <math.h>

/* With so many classes a chunk has 512 rows at least, so these are three chunks of about that. */
enum { ROWS = 1537, WIDTH = 12, CLASSES = 8209, IGNORED = -100 };

typedef struct operands {
    wg_tensor *x, *weight, *bias, *target;
} operands;

/* Every `ignored`-th target is ignored; 0: none is. */
static operands make(wg_dtype dtype, int64_t ignored) {
    wg_generator generator = {.seed = 4};
    operands o = {.x = leaf_of(normal(1, dtype, WG_DIMS(ROWS, WIDTH))),
                  .weight = leaf_of(normal(2, dtype, WG_DIMS(CLASSES, WIDTH))),
                  .bias = leaf_of(normal(3, dtype, WG_DIMS(CLASSES))),
                  .target = wg_randint(&generator, 0, CLASSES, WG_DIMS(ROWS))};
    int64_t *target = wg_tensor_data(o.target);
    for (int64_t row = 0; ignored && row < ROWS; row += ignored)
        target[row] = IGNORED;
    return o;
}

static wg_tensor *fused(const operands *o, const wg_cross_entropy_options *options) {
    return wg_linear_cross_entropy(o->x, o->weight, o->target, o->bias, IGNORED, options);
}

static wg_tensor *apart(const operands *o, const wg_cross_entropy_options *options) {
    return wg_cross_entropy(wg_linear_op(o->x, o->weight, o->bias), o->target, IGNORED, options);
}

/* Backward of a loss, weighted unevenly where it has one value for each row. */
static void gradients(const operands *o, wg_tensor *loss, wg_tensor **found) {
    wg_tensor *g = normal(5, wg_tensor_dtype(loss), wg_tensor_ndim(loss), wg_tensor_shape(loss));
    wg_tensor *const inputs[] = {o->x, o->weight, o->bias};
    ck_assert_int_eq(wg_grad(1, &loss, &g, 3, inputs, NULL, found), 0);
}

static void assert_same(const operands *o, const wg_cross_entropy_options *options, double rtol) {
    wg_tensor *one = fused(o, options), *two = apart(o, options), *of_one[3], *of_two[3];
    assert_close(wg_detach(one), wg_detach(two), rtol, rtol);
    gradients(o, one, of_one);
    gradients(o, two, of_two);
    for (int i = 0; i < 3; i++)
        assert_close(of_one[i], of_two[i], rtol, rtol);
}

TEST(chunks_give_what_all_logits_at_once_give) {
    const wg_reduction reductions[] = {WG_REDUCTION_MEAN, WG_REDUCTION_SUM, WG_REDUCTION_NONE};
    for (size_t i = 0; i < WG_COUNT(reductions); i++)
        for (int64_t ignored = 0; ignored <= 3; ignored += 3)
            IN_SCOPE() {
                operands o = make(WG_F32, ignored);
                assert_same(&o, &(wg_cross_entropy_options){.reduction = reductions[i]}, 1e-4);
            }
}

TEST(smoothed_and_weighted_chunks_too) {
    operands o = make(WG_F64, 7);
    wg_generator generator = {.seed = 6};
    const wg_cross_entropy_options options = {
        .label_smoothing = 0.1, .weight = wg_rand(&generator, WG_F64, WG_DIMS(CLASSES))};
    assert_same(&o, &options, 1e-10);
}

TEST(operands_may_be_views) {
    operands o = make(WG_F32, 5);
    o.x = wg_transpose(wg_contiguous(wg_transpose(o.x, 0, 1)), 0, 1);
    o.weight = wg_transpose(wg_contiguous(wg_transpose(o.weight, 0, 1)), 0, 1);
    assert_same(&o, NULL, 1e-4);
}

TEST(logits_are_never_in_memory_whole) {
    operands o = make(WG_F32, 0);
    const int64_t logits = (int64_t)sizeof(float) * ROWS * CLASSES;
    int64_t before = peak_begin();
    ck_assert_int_eq(wg_backward(fused(&o, NULL), NULL), 0);
    ck_assert_int_lt(peak_end(before), 3 * logits / 4);
    before = peak_begin();
    ck_assert_int_eq(wg_backward(apart(&o, NULL), NULL), 0);
    ck_assert_int_ge(peak_end(before), logits);
}

TEST(no_recording_gives_the_same_loss) {
    operands o = make(WG_F32, 3);
    const double recorded = wg_item(fused(&o, NULL));
    wg_set_grad_enabled(false);
    const double plain = wg_item(fused(&o, NULL));
    wg_set_grad_enabled(true);
    ck_assert_double_eq(recorded, plain);
}

static void loss_and_gradients(int count, wg_tensor **results) {
    (void)count;
    operands o = make(WG_F32, 3);
    results[0] = fused(&o, NULL);
    gradients(&o, results[0], results + 1);
}

TEST(any_thread_count_gives_the_same_bits) {
    assert_same_bits_at_any_thread_count(4, loss_and_gradients);
}

/* A tied head: its table is also looked up, so its gradient has two parts, over two micro-batches
 * of weight one half each. */
static void accumulate(const operands *o,
                       wg_tensor *(*loss)(const operands *, const wg_cross_entropy_options *)) {
    for (int batch = 0; batch < 2; batch++)
        IN_SCOPE() {
            wg_generator generator = {.seed = 7 + (uint64_t)batch};
            operands tied = *o;
            tied.x =
                wg_embedding_op(o->weight, wg_randint(&generator, 0, CLASSES, WG_DIMS(ROWS)), -1);
            wg_backward_options options = {.cotangent = wg_scalar(WG_F32, 0.5)};
            ck_assert_int_eq(wg_backward(loss(&tied, NULL), &options), 0);
        }
}

TEST(gradients_of_tied_weights_and_of_micro_batches_add_up) {
    operands one = make(WG_F32, 3), two = make(WG_F32, 3);
    accumulate(&one, fused);
    accumulate(&two, apart);
    assert_close(wg_gradient(one.weight), wg_gradient(two.weight), 1e-4, 1e-6);
    assert_close(wg_gradient(one.bias), wg_gradient(two.bias), 1e-4, 1e-6);
}

TEST(backward_may_run_again) {
    operands o = make(WG_F32, 3);
    wg_tensor *loss = fused(&o, NULL);
    ck_assert_int_eq(wg_backward(loss, &(wg_backward_options){.retain_graph = true}), 0);
    wg_tensor *once = wg_clone(wg_gradient(o.weight));
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_close(wg_gradient(o.weight), wg_mul_scalar(once, 2), 0, 0);
}

/* The products of both ops are counted: 2 N V D forward and 4 N V D backward. */
TEST(products_are_counted_once) {
    operands o = make(WG_F32, 0);
    const double before = wg__product_flops;
    ck_assert_int_eq(wg_backward(fused(&o, NULL), NULL), 0);
    ck_assert_double_eq(wg__product_flops - before, 6.0 * ROWS * WIDTH * CLASSES);
}

TEST(correct_rows_are_those_of_argmax) {
    operands o = make(WG_F32, 0);
    int64_t *target = wg_tensor_data(o.target), right = 0, found = -1, apart_found = -1;
    const int64_t *largest =
        wg_tensor_data(wg_argmax(wg_linear_op(o.x, o.weight, o.bias), 1, false));
    for (int64_t row = 0; row < ROWS; row++) {
        if (row % 3 == 0)
            target[row] = largest[row];
        if (row % 6 == 0 && row % 4 == 0)
            target[row] = IGNORED;
        right += target[row] == largest[row];
    }
    ck_assert_ptr_nonnull(fused(&o, &(wg_cross_entropy_options){.correct = &found}));
    ck_assert_ptr_nonnull(apart(&o, &(wg_cross_entropy_options){.correct = &apart_found}));
    ck_assert_int_eq(found, right);
    ck_assert_int_eq(apart_found, right);
}

TEST(of_equal_logits_the_first_is_the_largest) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(3, 2)), *weight = wg_zeros(WG_F32, WG_DIMS(4, 2));
    wg_tensor *target = wg_from_array(WG_I64, WG_DIMS(3), (int64_t[]){0, 1, 0});
    int64_t found = -1;
    const wg_cross_entropy_options options = {.correct = &found};
    ck_assert_ptr_nonnull(wg_linear_cross_entropy(x, weight, target, NULL, IGNORED, &options));
    ck_assert_int_eq(found, 2);
}

TEST(nothing_but_ignored_targets_gives_nan_and_gradients_of_zero) {
    operands o = make(WG_F32, 1);
    wg_tensor *loss = fused(&o, NULL);
    ck_assert(isnan(wg_item(loss)));
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_close(wg_gradient(o.x), wg_zeros(WG_F32, WG_DIMS(ROWS, WIDTH)), 0, 0);
    assert_close(wg_gradient(o.weight), wg_zeros(WG_F32, WG_DIMS(CLASSES, WIDTH)), 0, 0);
}

TEST(what_does_not_fit_is_refused) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2, 3)), *weight = wg_zeros(WG_F32, WG_DIMS(5, 3));
    wg_tensor *target = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){1, 5});
    refused(wg_linear_cross_entropy(x, weight, target, NULL, IGNORED, NULL), INDEX,
            "target 5 of row 1 is outside the 5 classes");
    refused(wg_linear_cross_entropy(x, x, wg_zeros(WG_I64, WG_DIMS(3)), NULL, IGNORED, NULL), SHAPE,
            "wanted x (N, D), a weight (V, D), targets (N)");
    refused(wg_linear_cross_entropy(x, weight, wg_zeros(WG_I64, WG_DIMS(2)),
                                    wg_zeros(WG_F32, WG_DIMS(3)), IGNORED, NULL),
            SHAPE, "wanted a bias for each class, (V)");
    refused(wg_linear_cross_entropy(x, weight, wg_zeros(WG_U8, WG_DIMS(2)), NULL, IGNORED, NULL),
            DTYPE, "i64 or i32");
    ck_assert_ptr_null(wg_linear_cross_entropy(NULL, weight, target, NULL, IGNORED, NULL));
    assert_no_error();
}

/* ---- The layers ---- */

static wg_tensor *of_layer(wg_linear *linear, wg_tensor *x, wg_tensor *target) {
    wg_tensor *logits = wg_flatten(wg_linear_forward(linear, x), 0, -2);
    return wg_cross_entropy(logits, wg_flatten(target, 0, -1), IGNORED, NULL);
}

TEST(a_layer_gives_the_loss_of_its_logits) {
    wg_generator generator = {.seed = 8};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(2, 3, 32));
    wg_tensor *target = wg_cast(wg_randint(&generator, 0, 9, WG_DIMS(2, 3)), WG_I32);
    for (int transposed = 0; transposed < 2; transposed++)
        for (int quantized = 0; quantized < 2; quantized++) {
            wg_linear *linear =
                wg_linear_new(NULL, NULL, 32, 9, &(wg_linear_options){.transposed = transposed});
            wg_embedding *words = wg_embedding_new(NULL, NULL, 9, 32, NULL);
            if (quantized) {
                ck_assert_int_eq(wg_module_quantize(&linear->module, WG_QUANTIZATION_Q8_0), 0);
                ck_assert_int_eq(wg_module_quantize(&words->module, WG_QUANTIZATION_Q8_0), 0);
            }
            assert_close(wg_detach(wg_linear_loss(linear, x, target, IGNORED, NULL)),
                         wg_detach(of_layer(linear, x, target)), 1e-6, 0);
            wg_tensor *logits = wg_flatten(wg_embedding_logits(words, x), 0, -2);
            wg_tensor *loss = wg_cross_entropy(logits, wg_flatten(target, 0, -1), IGNORED, NULL);
            assert_close(wg_detach(wg__embedding_loss(words, x, target, IGNORED, NULL)),
                         wg_detach(loss), 1e-6, 0);
            wg_module_free(&linear->module);
            wg_module_free(&words->module);
        }
}
