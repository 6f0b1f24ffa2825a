/* Quantized weights: quantize, dequantize, and the linear map by quantized weights. */
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/support.h"
#include "tensor/quantize.h"
#include "tensor/quantize_rows.h"

#include <math.h>

/* -1 with ARGUMENT for a quantization outside the enum. */
static int check_quantization(const wg_call *call) {
    const wg_quantization q = *(const wg_quantization *)call->options;
    if (wg__quantization_block(q) > 0)
        return 0;
    return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no quantization %d", (int)q);
}

/* The number of columns of a quantized row of `bytes` bytes, or -1 with SHAPE. */
static int64_t dequantized_columns(const wg_call *call, int64_t bytes) {
    const wg_quantization q = *(const wg_quantization *)call->options;
    const int64_t size = wg__quantization_block_bytes(q);
    if (bytes % size == 0)
        return bytes / size * wg__quantization_block(q);
    return wg__op_fail(call, WG_ERROR_SHAPE,
                       "a row of %lld bytes is no whole blocks of %s, %lld each", (long long)bytes,
                       wg_quantization_name(q), (long long)size);
}

/* The quantized rows of an input for the kernels: contiguous if the quantization interleaves rows.
 * NULL if out of memory. */
static wg_tensor *dense_bytes(const wg_call *call, int input) {
    const wg_quantization q = *(const wg_quantization *)call->options;
    const bool interleaves = wg__quantization_of_a_row(q) != q;
    return interleaves ? wg_contiguous(call->inputs[input]) : call->inputs[input];
}

enum { ROW_WORK = 4 }; /* work of a number, in units of a light elementwise operation */

typedef struct rows_job {
    wg_quantization quantization; /* of a row by itself */
    bool quantizes;               /* true: quantize; false: dequantize */
    int64_t grouped;              /* the number of rows interleaved in groups; they come first */
    wg__rows numbers, bytes;
} rows_job;

/* Rows in a group are interleaved block by block: `block` is a buffer for one block. The bytes of a
 * group are contiguous. */
static void convert_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    const wg_quantization q = job->quantization;
    const int64_t columns = job->numbers.columns, size = wg__quantization_block_bytes(q);
    for (int64_t i = begin; i < end; i++) {
        const bool grouped = i < job->grouped;
        const int64_t blocks = grouped ? columns / wg__quantization_block(q) : 1;
        const int64_t count = grouped ? WG__BLOCK : columns, place = i % WG__GROUP;
        uint8_t *row = wg__row(&job->bytes, grouped ? i - place : i);
        for (int64_t b = 0; b < blocks; b++) {
            float *numbers = (float *)wg__row(&job->numbers, i) + b * WG__BLOCK;
            uint8_t block[WG__MOST_BLOCK_BYTES], *bytes = grouped ? block : row;
            uint8_t *group = row + b * WG__GROUP * size;
            if (grouped && !job->quantizes)
                wg__group_get(q, place, group, block);
            if (job->quantizes)
                wg__quantize_row(q, count, numbers, bytes);
            else
                wg__simd_for(WG_F32)->products.dequantize(q, count, bytes, numbers);
            if (grouped && job->quantizes)
                wg__group_put(q, place, block, group);
        }
    }
}

static int convert_forward(wg_call *call) {
    const bool quantizes = call->output_specs[0].dtype == WG_U8;
    const wg_quantization q = *(const wg_quantization *)call->options;
    rows_job job = {.quantization = wg__quantization_of_a_row(q), .quantizes = quantizes};
    wg_tensor *from = quantizes ? call->inputs[0] : dense_bytes(call, 0);
    if (!from || wg__rows_of(from, true, quantizes ? &job.numbers : &job.bytes) < 0 ||
        wg__rows_of(call->outputs[0], true, quantizes ? &job.bytes : &job.numbers) < 0)
        return -1;
    if (q != job.quantization)
        job.grouped = job.numbers.rows / WG__GROUP * WG__GROUP;
    wg__parallel_for(job.numbers.rows, 1 + WG__GRAIN / (ROW_WORK * (job.numbers.columns + 1)),
                     convert_rows, &job);
    return 0;
}

static int quantize_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (check_quantization(call) < 0)
        return -1;
    if (x->dtype != WG_F32)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32; cast it");
    if (x->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., I)");
    const wg_quantization q = *(const wg_quantization *)call->options;
    const int64_t block = wg__quantization_block(q), columns = x->shape[x->ndim - 1];
    if (columns % block != 0)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "%s quantizes blocks of %lld, which do not fill %lld",
                           wg_quantization_name(q), (long long)block, (long long)columns);
    call->output_specs[0] = *x;
    call->output_specs[0].dtype = WG_U8;
    call->output_specs[0].shape[x->ndim - 1] = columns / block * wg__quantization_block_bytes(q);
    return 0;
}

static const wg_quantization quantized_samples[WG_QUANTIZATION_COUNT] = {
    WG_QUANTIZATION_BF16, WG_QUANTIZATION_Q8_0, WG_QUANTIZATION_Q4_0, WG_QUANTIZATION_Q8_0X16,
    WG_QUANTIZATION_Q4_0X16};

static int quantize_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= WG_QUANTIZATION_COUNT)
        return 0;
    sample->options = &quantized_samples[index];
    sample->inputs[0] = wg_cast(wg__sample_normal(generator, 2, (int64_t[]){3, 64}), WG_F32);
    return wg__sample_status(sample, 1);
}

WG__LARGE(quantize, wg_quantization, "2048 2048", WG_QUANTIZATION_Q8_0)

static const wg_op quantize = {
    WG__OP("quantize", 1,
           "The rows of x in fewer bytes, as a quantization has it: (..., I) -> (..., bytes) u8."),
    .options_size = sizeof(wg_quantization),
    .no_gradient = "bytes have no gradient",
    .infer = quantize_infer,
    .forward = convert_forward,
    .sample = quantize_sample,
    .bench = quantize_bench};

wg_tensor *wg_quantize(wg_tensor *x, wg_quantization quantization) {
    return wg_apply_one(&quantize, 1, &x, &quantization);
}

static int dequantize_infer(wg_call *call) {
    const wg_spec *bytes = &call->input_specs[0];
    if (check_quantization(call) < 0)
        return -1;
    if (bytes->dtype != WG_U8)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted u8, quantized rows");
    if (bytes->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., bytes)");
    const int64_t columns = dequantized_columns(call, bytes->shape[bytes->ndim - 1]);
    call->output_specs[0] = *bytes;
    call->output_specs[0].dtype = WG_F32;
    call->output_specs[0].shape[bytes->ndim - 1] = columns;
    return columns < 0 ? -1 : 0;
}

static int dequantize_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = quantize_sample(index, generator, sample);
    if (status <= 0)
        return status;
    sample->inputs[0] = wg_quantize(sample->inputs[0], quantized_samples[index]);
    return wg__sample_status(sample, 1);
}

static int dequantize_bench(wg_generator *generator, wg_sample *sample) {
    if (quantize_bench(generator, sample) < 0)
        return -1;
    sample->inputs[0] = wg_quantize(sample->inputs[0], WG_QUANTIZATION_Q8_0);
    return wg__sample_status(sample, 1);
}

static const wg_op dequantize = {
    WG__OP("dequantize", 1, "The numbers of quantized rows: (..., bytes) u8 -> (..., I) f32."),
    .options_size = sizeof(wg_quantization),
    .no_gradient = "bytes have no gradient",
    .infer = dequantize_infer,
    .forward = convert_forward,
    .sample = dequantize_sample,
    .bench = dequantize_bench};

wg_tensor *wg_dequantize(wg_tensor *quantized, wg_quantization quantization) {
    return wg_apply_one(&dequantize, 1, &quantized, &quantization);
}

/* ==== quantized_linear: y = x dequantize(W)^T + bias.   dx = g dequantize(W), dbias = the sum of
 * g.
 *
 * Inputs are x, then alternately a weight and a bias; an absent bias is NULL. The bias of the
 * weight in input i is input i + 1. y has the outputs of all weights side by side. ==== */

static int quantized_linear_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (check_quantization(call) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    int64_t outputs = 0;
    for (int i = 1; i < call->input_count; i += 2) {
        const wg_spec *weight = &call->input_specs[i];
        if (weight->dtype != WG_U8)
            return wg__op_fail(call, WG_ERROR_DTYPE, "the weight is not u8, quantized rows");
        if (x->ndim < 1 || weight->ndim != 2)
            return wg__op_fail(call, WG_ERROR_SHAPE, "wanted (..., I) x (O, bytes)");
        const int64_t columns = dequantized_columns(call, weight->shape[1]);
        if (columns < 0)
            return -1;
        if (columns != x->shape[x->ndim - 1])
            return wg__op_fail(call, WG_ERROR_SHAPE, "x has %lld features, the weight takes %lld",
                               (long long)x->shape[x->ndim - 1], (long long)columns);
        outputs += weight->shape[0];
        if (i + 1 >= call->input_count || call->input_specs[i + 1].ndim < 0)
            continue;
        const wg_spec *bias = &call->input_specs[i + 1];
        if (wg__check_same_dtype(call, 0, i + 1) < 0)
            return -1;
        if (bias->ndim != 1 || bias->shape[0] != weight->shape[0])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "wanted a bias of %lld, a value for each output",
                               (long long)weight->shape[0]);
    }
    call->output_specs[0] = *x;
    call->output_specs[0].shape[x->ndim - 1] = outputs;
    return 0;
}

/* Up to this number of rows of x, bf16 weights are read again for each row; for more rows, they are
 * packed into panels. */
enum { FEW_ROWS = 16 };

/* The approximate number of elements of the weight in a chunk. */
enum { CHUNK = 16384 };

typedef struct products {
    int count;
    wg__quantized_product of[WG_MAX_QUANTIZED_WEIGHTS];
} products;

/* Rows [begin, end) of the concatenation of all weights. */
static void multiply_rows(int64_t begin, int64_t end, void *context) {
    const products *p = context;
    for (int i = 0; i < p->count; i++) {
        const int64_t rows = p->of[i].outputs;
        if (begin < rows && end > 0)
            wg__simd_for(WG_F32)->products.bf16(&p->of[i], begin < 0 ? 0 : begin,
                                                wg__smaller(end, rows));
        begin -= rows;
        end -= rows;
    }
}

static int multiply_packed(wg_call *call) {
    wg__rows x, y;
    if (wg__rows_of(call->inputs[0], true, &x) < 0 || wg__rows_of(call->outputs[0], true, &y) < 0)
        return -1;
    products p = {.count = call->input_count / 2};
    int64_t column = 0; /* the first output of the weight in y */
    for (int i = 0; i < p.count; i++) {
        const int input = 1 + 2 * i;
        wg__rows weight, row = {0};
        wg_tensor *quantized = dense_bytes(call, input), *bias = wg__input_at(call, input + 1);
        if (!quantized || wg__rows_of(quantized, true, &weight) < 0 ||
            (bias && wg__rows_of(bias, true, &row) < 0))
            return -1;
        p.of[i] = (wg__quantized_product){.weight = wg__row(&weight, 0),
                                          .weight_stride = weight.row_stride,
                                          .outputs = weight.rows,
                                          .n = x.columns,
                                          .x = wg__row(&x, 0),
                                          .bias = bias ? wg__row(&row, 0) : NULL,
                                          .x_rows = x.rows,
                                          .x_stride = x.row_stride,
                                          .y = (float *)wg__row(&y, 0) + column,
                                          .y_stride = y.row_stride};
        column += weight.rows;
    }
    const wg_quantization q = *(const wg_quantization *)call->options;
    if (q != WG_QUANTIZATION_BF16)
        return wg__block_product(q, p.count, p.of);
    if (x.rows > FEW_ROWS)
        return wg__bf16_product(wg__bf16_kernels_at(WG__BEST), p.count, p.of);
    wg__parallel_for(column, 1 + CHUNK / (x.columns + 1), multiply_rows, &p);
    return 0;
}

static wg_tensor *dequantized_weight(const wg_call *call, int i) {
    const wg_quantization q = *(const wg_quantization *)call->options;
    return wg_cast(wg_dequantize(call->inputs[i], q), call->input_specs[0].dtype);
}

/* The columns of y, or of its cotangent, that the weight in input i computes. */
static wg_tensor *part_of(const wg_call *call, wg_tensor *y, int i) {
    int64_t begin = 0;
    for (int before = 1; before < i; before += 2)
        begin += call->input_specs[before].shape[0];
    return wg_slice(y, -1, begin, begin + call->input_specs[i].shape[0], 1);
}

static int quantized_linear_forward(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    const bool is_empty = wg__spec_count(&call->output_specs[0]) == 0 || x->shape[x->ndim - 1] == 0;
    if (x->dtype == WG_F32 && !is_empty)
        return multiply_packed(call);
    for (int i = 1; i < call->input_count; i += 2) {
        wg_tensor *bias = wg__input_at(call, i + 1);
        wg_tensor *y = wg_linear_op(call->inputs[0], dequantized_weight(call, i), bias);
        wg_tensor *to = part_of(call, call->outputs[0], i);
        if (!y || !to || wg_copy_(to, y) < 0)
            return -1;
    }
    return 0;
}

static int quantized_linear_vjp(wg_call *call, wg_tensor *const *cotangents,
                                wg_tensor **gradients) {
    for (int i = 1; i < call->input_count; i += 2) {
        wg_tensor *g = part_of(call, cotangents[0], i);
        if (wg__wants(call, 0)) {
            wg_tensor *dx = wg_matmul(g, dequantized_weight(call, i));
            gradients[0] = i == 1 ? dx : wg_add(gradients[0], dx);
        }
        if (wg__wants(call, i + 1))
            gradients[i + 1] = wg_sum_to(g, 1, call->input_specs[i + 1].shape);
    }
    return wg__vjp_status();
}

/* Unlike forward, does not round x to blocks of integers. */
static int quantized_linear_jvp(wg_call *call, wg_tensor *const *tangents,
                                wg_tensor **output_tangents) {
    wg_tensor *x = tangents[0] ? tangents[0] : wg_zeros_like(call->inputs[0]);
    wg_tensor *parts[WG_MAX_QUANTIZED_WEIGHTS];
    for (int i = 1; i < call->input_count; i += 2)
        parts[i / 2] = wg_linear_op(x, dequantized_weight(call, i),
                                    wg__input_at(call, i + 1) ? tangents[i + 1] : NULL);
    output_tangents[0] = wg_cat(call->input_count / 2, parts, -1);
    return output_tangents[0] ? 0 : -1;
}

/* Rows of 32 that blocks of 8 bits represent exactly, so that f32 gives the same results as f64. */
static wg_tensor *sample_levels(wg_generator *generator, int ndim, const int64_t *shape) {
    wg_tensor *x = wg__sample_normal(generator, ndim, shape);
    double *numbers = x ? wg_tensor_data(x) : NULL;
    for (int64_t i = 0; x && i < wg_tensor_count(x); i++)
        numbers[i] =
            i % WG__BLOCK == 0 ? 127.0 / 64 : fmax(-127, fmin(rint(48 * numbers[i]), 127)) / 64;
    return x;
}

/* A weight of each quantization with and without a bias; then three weights, the second without a
 * bias. */
static int quantized_linear_sample(int index, wg_generator *generator, wg_sample *sample) {
    const bool three = index == 2 * WG_QUANTIZATION_COUNT;
    if (index > 2 * WG_QUANTIZATION_COUNT)
        return 0;
    sample->options = &quantized_samples[three ? WG_QUANTIZATION_Q8_0X16 : index / 2];
    const wg_quantization q = *(const wg_quantization *)sample->options;
    const int64_t x[] = {2, 3, 32};
    const int ndim = three ? 2 : index % 2 ? 3 : 1;
    sample->inputs[0] = sample_levels(generator, ndim, x + 3 - ndim);
    const int count = three ? WG_MAX_QUANTIZED_WEIGHTS : 1;
    for (int i = 0; i < count; i++) {
        const int64_t outputs = three ? 16 + i : 5;
        wg_tensor *weight = wg__sample_normal(generator, 2, (int64_t[]){outputs, 32});
        sample->inputs[1 + 2 * i] = wg_quantize(wg_cast(weight, WG_F32), q);
        sample->inputs[2 + 2 * i] = wg__sample_normal(generator, 1, &outputs);
    }
    const int status = wg__sample_status(sample, 1 + 2 * count);
    if (three)
        sample->inputs[4] = NULL;
    else if (index % 2)
        sample->input_count = 2;
    return status;
}

static int quantized_linear_bench(wg_generator *generator, wg_sample *sample) {
    sample->options = &quantized_samples[WG_QUANTIZATION_Q8_0];
    sample->inputs[0] = wg_rand(generator, WG_F32, 1, (int64_t[]){2048});
    sample->inputs[1] =
        wg_quantize(wg_rand(generator, WG_F32, 2, (int64_t[]){8192, 2048}), WG_QUANTIZATION_Q8_0);
    return wg__sample_status(sample, 2);
}

static const wg_op packed_linear = {
    WG__OP_OF("quantized_linear", 2, 1 + 2 * WG_MAX_QUANTIZED_WEIGHTS, 1,
              "y = x dequantize(W)^T + bias: (..., I) x (O, bytes) u8, and (O) if there is a bias "
              "-> (..., O); of up to three weights and biases, side by side. In f32, x is "
              "quantized to 8 bits for blocks of integers; for bf16 weights and more than 16 rows, "
              "x is rounded to bf16 if the processor multiplies bf16."),
    .options_size = sizeof(wg_quantization),
    .saves_inputs = 2 | 8 | 32, /* the weights */
    .differentiable = 1 | 4 | 16 | 64,
    .exceptions = &(const wg_op_exceptions){.f32_approximates = true},
    WG__PRIMITIVE(quantized_linear),
    .flops = wg__matmul_flops};

wg_tensor *wg__quantized_linears(wg_tensor *x, int count, wg_tensor *const *weights,
                                 wg_quantization quantization, wg_tensor *const *biases) {
    if (count < 1 || count > WG_MAX_QUANTIZED_WEIGHTS)
        return wg__fail_null(WG_ERROR_ARGUMENT, "quantized_linear", "%d weights; wanted 1 to %d",
                             count, WG_MAX_QUANTIZED_WEIGHTS);
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
        inputs[1 + 2 * i] = weights[i];
        inputs[2 + 2 * i] = bias ? wg_cast(bias, inputs[0]->spec.dtype) : NULL;
        if (bias && !inputs[2 + 2 * i])
            return NULL;
        input_count = bias ? 3 + 2 * i : 2 + 2 * i;
    }
    return wg__narrow(wg_apply_one(&packed_linear, input_count, inputs, &quantization), dtype);
}

wg_tensor *wg_quantized_linear(wg_tensor *x, wg_tensor *weight, wg_quantization quantization,
                               wg_tensor *bias) {
    return wg__quantized_linears(x, 1, &weight, quantization, &bias);
}

const wg__op_table wg__ops_quantized = WG__OP_TABLE(&quantize, &dequantize, &packed_linear);
