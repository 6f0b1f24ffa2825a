/* The layer's product with weights kept small.
 *
 * packed_linear: y = x dequantize(W)^T + bias.   dx = g dequantize(W), dbias = the sum of g.
 *
 * Inputs are x, then a weight and a bias in turns, absent ones NULL; y has the outputs of each
 * weight side by side. */
#include <math.h>

#include "tensor/gemm/bf16_product.h"
#include "tensor/gemm/block_product.h"
#include "base/counts.h"
#include "tensor/iter.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/linalg/quantized.h"
#include "tensor/quantize_rows.h"
#include "tensor/simd/simd.h"

static int weight_count(const wg_call *call) {
    return call->input_count / 2;
}

static int weight_input(int i) {
    return 1 + 2 * i;
}

static int bias_input(int i) {
    return 2 + 2 * i;
}

static bool has_bias(const wg_call *call, int i) {
    return bias_input(i) < call->input_count && call->input_specs[bias_input(i)].ndim >= 0;
}

static int64_t outputs_of(const wg_call *call, int i) {
    return call->input_specs[weight_input(i)].shape[0];
}

static int check_weight(const wg_call *call, int i) {
    const wg_spec *x = &call->input_specs[0], *weight = &call->input_specs[weight_input(i)];
    if (weight->dtype != WG_U8)
        return wg__op_fail(call, WG_ERROR_DTYPE, "the weight is not u8, quantized rows");
    if (x->ndim < 1 || weight->ndim != 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted (..., I) x (O, bytes)");
    const int64_t columns = wg__dequantized_columns(call, weight->shape[1]);
    if (columns < 0)
        return -1;
    if (columns != x->shape[x->ndim - 1])
        return wg__op_fail(call, WG_ERROR_SHAPE, "x has %lld features, the weight takes %lld",
                           (long long)x->shape[x->ndim - 1], (long long)columns);
    if (!has_bias(call, i))
        return 0;
    const wg_spec *bias = &call->input_specs[bias_input(i)];
    if (wg__check_same_dtype(call, 0, bias_input(i)) < 0)
        return -1;
    if (bias->ndim != 1 || bias->shape[0] != weight->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a bias of %lld, a value for each output",
                           (long long)weight->shape[0]);
    return 0;
}

static int quantized_linear_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (wg__check_quantization(call) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    int64_t outputs = 0;
    for (int i = 0; i < weight_count(call); i++) {
        if (check_weight(call, i) < 0)
            return -1;
        outputs += outputs_of(call, i);
    }
    call->output_specs[0] = *x;
    call->output_specs[0].shape[x->ndim - 1] = outputs;
    return 0;
}

/* Rows of x up to which rows in bf16 are read for each; above, they are laid in panels first. */
enum { FEW_ROWS = 16 };

/* Numbers of the weight that are worth a chunk. */
enum { CHUNK = 16384 };

typedef struct products {
    int count;
    wg__quantized_product of[WG_MAX_QUANTIZED_WEIGHTS];
} products;

/* Rows begin..end of all weights, one below the other. */
static void multiply_rows(int64_t begin, int64_t end, void *context) {
    const products *p = context;
    for (int i = 0; i < p->count; i++) {
        const int64_t rows = p->of[i].outputs;
        if (begin < rows && end > 0)
            wg__simd_for(WG_F32)->bf16_product(&p->of[i], begin < 0 ? 0 : begin,
                                               wg__smaller(end, rows));
        begin -= rows;
        end -= rows;
    }
}

static int multiply_bf16(const products *p, int64_t outputs) {
    if (p->of->x_rows <= FEW_ROWS) {
        wg__parallel_for(outputs, 1 + CHUNK / (p->of->n + 1), multiply_rows, (void *)p);
        return 0;
    }
    return wg__bf16_product(wg__bf16_kernels_for_cpu(), p->count, p->of);
}

/* Of one weight; `column` is where its outputs begin. */
static int set_product(const wg_call *call, int i, const wg__rows *x, const wg__rows *y,
                       int64_t column, wg__quantized_product *product) {
    wg__rows weight, bias = {0};
    wg_tensor *quantized = wg__dense_bytes(call, weight_input(i));
    if (!quantized || wg__rows_of(quantized, true, &weight) < 0 ||
        (has_bias(call, i) && wg__rows_of(call->inputs[bias_input(i)], true, &bias) < 0))
        return -1;
    *product = (wg__quantized_product){.weight = wg__row(&weight, 0),
                                       .weight_stride = weight.row_stride,
                                       .outputs = weight.rows,
                                       .n = x->columns,
                                       .x = wg__row(x, 0),
                                       .bias = bias.tensor ? wg__row(&bias, 0) : NULL,
                                       .x_rows = x->rows,
                                       .x_stride = x->row_stride,
                                       .y = (float *)wg__row(y, 0) + column,
                                       .y_stride = y->row_stride};
    return 0;
}

static int multiply_packed(wg_call *call) {
    wg__rows x, y;
    if (wg__rows_of(call->inputs[0], true, &x) < 0 || wg__rows_of(call->outputs[0], true, &y) < 0)
        return -1;
    products p = {.count = weight_count(call)};
    int64_t column = 0;
    for (int i = 0; i < p.count; i++) {
        if (set_product(call, i, &x, &y, column, &p.of[i]) < 0)
            return -1;
        column += p.of[i].outputs;
    }
    if (wg__quantization_of(call) != WG_QUANTIZATION_BF16)
        return wg__block_product(wg__quantization_of(call), p.count, p.of);
    return multiply_bf16(&p, column);
}

/* W of input i in the dtype of x. */
static wg_tensor *unpacked_weight(const wg_call *call, int i) {
    return wg_cast(wg_dequantize(call->inputs[weight_input(i)], wg__quantization_of(call)),
                   call->input_specs[0].dtype);
}

/* The part of y, or of what belongs to it, that weight i makes. */
static wg_tensor *part_of(const wg_call *call, wg_tensor *y, int i) {
    int64_t begin = 0;
    for (int before = 0; before < i; before++)
        begin += outputs_of(call, before);
    return wg_slice(y, -1, begin, begin + outputs_of(call, i), 1);
}

static int multiply_unpacked(wg_call *call) {
    int status = 0;
    for (int i = 0; status == 0 && i < weight_count(call); i++) {
        wg_tensor *bias = has_bias(call, i) ? call->inputs[bias_input(i)] : NULL,
                  *y = wg_linear_op(call->inputs[0], unpacked_weight(call, i), bias),
                  *to = part_of(call, call->outputs[0], i);
        status = y && to ? wg_copy_(to, y) : -1;
    }
    return status;
}

static int quantized_linear_forward(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    const bool is_empty = wg__spec_count(&call->output_specs[0]) == 0 || x->shape[x->ndim - 1] == 0;
    return x->dtype == WG_F32 && !is_empty ? multiply_packed(call) : multiply_unpacked(call);
}

static int quantized_linear_vjp(wg_call *call, wg_tensor *const *cotangents,
                                wg_tensor **gradients) {
    for (int i = 0; i < weight_count(call); i++) {
        wg_tensor *g = part_of(call, cotangents[0], i);
        if (wg__wants(call, 0)) {
            wg_tensor *dx = wg_matmul(g, unpacked_weight(call, i));
            gradients[0] = i == 0 ? dx : wg_add(gradients[0], dx);
        }
        if (wg__wants(call, bias_input(i)))
            gradients[bias_input(i)] = wg_sum_to(g, 1, call->input_specs[bias_input(i)].shape);
    }
    return wg__vjp_status();
}

/* Of x as it is, not rounded. */
static int quantized_linear_jvp(wg_call *call, wg_tensor *const *tangents,
                                wg_tensor **output_tangents) {
    wg_tensor *x = tangents[0] ? tangents[0] : wg_zeros_like(call->inputs[0]);
    wg_tensor *parts[WG_MAX_QUANTIZED_WEIGHTS];
    for (int i = 0; i < weight_count(call); i++)
        parts[i] = wg_linear_op(x, unpacked_weight(call, i),
                                has_bias(call, i) ? tangents[bias_input(i)] : NULL);
    output_tangents[0] = wg_cat(weight_count(call), parts, -1);
    return output_tangents[0] ? 0 : -1;
}

static double quantized_linear_flops(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    return 2 * (double)wg__spec_count(&call->output_specs[0]) * (double)x->shape[x->ndim - 1];
}

/* Rows of 32 that blocks of 8 bits hold as they are, so that f32 gives what f64 gives. */
static wg_tensor *sample_levels(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg__sample_normal(generator, ndim, shape);
    double *numbers = x ? wg_tensor_data(x) : NULL;
    for (int64_t i = 0; x && i < wg_tensor_count(x); i++)
        numbers[i] =
            i % WG__BLOCK == 0 ? 127.0 / 64 : fmax(-127, fmin(rint(48 * numbers[i]), 127)) / 64;
    return x;
}

/* Three weights, of which the second has no bias. */
static int sample_weights(wg_generator *generator, wg_sample *sample) {
    sample->options = &wg__quantized_samples[WG_QUANTIZATION_Q8_0X16];
    sample->inputs[0] = sample_levels(generator, 2, (int64_t[]){3, 32});
    for (int i = 0; i < WG_MAX_QUANTIZED_WEIGHTS; i++) {
        const int64_t outputs = 16 + i;
        sample->inputs[weight_input(i)] =
            wg_quantize(wg__sample_rows(generator, outputs, 32), WG_QUANTIZATION_Q8_0X16);
        sample->inputs[bias_input(i)] = wg__sample_normal(generator, 1, &outputs);
    }
    const int status = wg__sample_status(sample, 1 + 2 * WG_MAX_QUANTIZED_WEIGHTS);
    sample->inputs[bias_input(1)] = NULL;
    return status;
}

static int quantized_linear_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index == 2 * WG_QUANTIZATION_COUNT)
        return sample_weights(generator, sample);
    if (index > 2 * WG_QUANTIZATION_COUNT)
        return 0;
    const int64_t x[] = {2, 3, 32};
    sample->options = &wg__quantized_samples[index / 2];
    sample->inputs[0] =
        index % 2 ? sample_levels(generator, 3, x) : sample_levels(generator, 1, &x[2]);
    sample->inputs[1] = wg_quantize(wg__sample_rows(generator, 5, 32),
                                    wg__quantized_samples[index / 2].quantization);
    if (index % 2)
        return wg__sample_status(sample, 2);
    sample->inputs[2] = wg__sample_normal(generator, 1, (int64_t[]){5});
    return wg__sample_status(sample, 3);
}

static int quantized_linear_bench(wg_generator *generator, wg_sample *sample) {
    sample->options = &wg__quantized_samples[WG_QUANTIZATION_Q8_0];
    sample->inputs[0] = wg_rand(generator, WG_F32, 1, (int64_t[]){2048});
    sample->inputs[1] =
        wg_quantize(wg_rand(generator, WG_F32, 2, (int64_t[]){8192, 2048}), WG_QUANTIZATION_Q8_0);
    return wg__sample_status(sample, 2);
}

static const wg_op packed_linear = {
    .name = "quantized_linear",
    .doc =
        "y = x dequantize(W)^T + bias: (..., I) x (O, bytes) u8, and (O) if there is a bias -> "
        "(..., O); of up to three weights and biases in turns side by side. "
        "In f32, blocks of integers meet x in blocks of 8 bits, and bf16 meets more than 16 rows "
        "of x rounded to bf16 where the processor multiplies such numbers.",
    .min_inputs = 2,
    .max_inputs = 1 + 2 * WG_MAX_QUANTIZED_WEIGHTS,
    .output_count = 1,
    .options_size = sizeof(wg__quantized_options),
    .saves_inputs = 2 | 8 | 32, /* the weights */
    .differentiable = 1 | 4 | 16 | 64,
    .infer = quantized_linear_infer,
    .forward = quantized_linear_forward,
    .vjp = quantized_linear_vjp,
    .jvp = quantized_linear_jvp,
    .sample = quantized_linear_sample,
    .bench = quantized_linear_bench,
    .flops = quantized_linear_flops,
};

wg_tensor *wg_quantized_linears(wg_tensor *x, int count, wg_tensor *const *weights,
                                wg_quantization quantization, wg_tensor *const *biases) {
    if (count < 1 || count > WG_MAX_QUANTIZED_WEIGHTS) {
        wg_fail(WG_ERROR_ARGUMENT, "quantized_linear", "%d weights; wanted 1 to %d", count,
                WG_MAX_QUANTIZED_WEIGHTS);
        return NULL;
    }
    if (!x)
        return NULL;
    const wg_dtype dtype = x->spec.dtype;
    wg_tensor *inputs[1 + 2 * WG_MAX_QUANTIZED_WEIGHTS] = {wg__widen(x)};
    if (!inputs[0])
        return NULL;
    int input_count = 0;
    for (int i = 0; i < count; i++) {
        wg_tensor *bias = biases ? biases[i] : NULL;
        if (!weights[i])
            return NULL;
        inputs[weight_input(i)] = weights[i];
        inputs[bias_input(i)] = bias ? wg_cast(bias, inputs[0]->spec.dtype) : NULL;
        if (bias && !inputs[bias_input(i)])
            return NULL;
        input_count = bias ? 1 + bias_input(i) : 1 + weight_input(i);
    }
    return wg__narrow(
        wg_apply_one(&packed_linear, input_count, inputs, &(wg__quantized_options){quantization}),
        dtype);
}

wg_tensor *wg_quantized_linear(wg_tensor *x, wg_tensor *weight, wg_quantization quantization,
                               wg_tensor *bias) {
    return wg_quantized_linears(x, 1, &weight, quantization, &bias);
}

static const wg_op *const ops[] = {&packed_linear};

const wg__op_family wg__family_quantized_linear = {ops, sizeof ops / sizeof *ops};
