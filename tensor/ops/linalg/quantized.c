/* Weights kept small: quantization rows and unpacking them. */
#include "tensor/ops/linalg/quantized.h"

#include "tensor/iter.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/quantize_rows.h"
#include "tensor/simd/simd.h"

wg_quantization wg__quantization_of(const wg_call *call) {
    return ((const wg__quantized_options *)call->options)->quantization;
}

int wg__check_quantization(const wg_call *call) {
    if (wg_quantization_block(wg__quantization_of(call)) > 0)
        return 0;
    return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no quantization %d",
                       (int)wg__quantization_of(call));
}

int64_t wg__dequantized_columns(const wg_call *call, int64_t bytes) {
    const int64_t size = wg_quantization_block_bytes(wg__quantization_of(call));
    if (bytes % size == 0)
        return bytes / size * wg_quantization_block(wg__quantization_of(call));
    return wg__op_fail(call, WG_ERROR_SHAPE,
                       "a row of %lld bytes is no whole blocks of %s, %lld each", (long long)bytes,
                       wg_quantization_name(wg__quantization_of(call)), (long long)size);
}

wg_tensor *wg__dense_bytes(const wg_call *call, int input) {
    const wg_quantization quantization = wg__quantization_of(call);
    const bool side_by_side = wg__quantization_of_a_row(quantization) != quantization;
    return side_by_side ? wg_contiguous(call->inputs[input]) : call->inputs[input];
}

/* ---- Rows, one after the other, in parallel ---- */

enum { ROW_WORK = 4 }; /* a number quantized or dequantized, beside an element of light work */

typedef struct rows_job {
    wg_quantization quantization; /* of a row by itself */
    int64_t grouped;              /* so many of them stand side by side, the others behind them */
    wg__rows numbers, bytes;
} rows_job;

static void run_rows(rows_job *job, wg_quantization quantization, wg__range_body body) {
    job->quantization = wg__quantization_of_a_row(quantization);
    if (quantization != job->quantization)
        job->grouped = job->numbers.rows / WG__GROUP * WG__GROUP;
    const int64_t grain = 1 + WG__GRAIN / (ROW_WORK * (job->numbers.columns + 1));
    wg__parallel_for(job->numbers.rows, grain, body, job);
}

static int64_t blocks_of_row(const rows_job *job) {
    return job->numbers.columns / wg_quantization_block(job->quantization);
}

/* A block of a row that stands side by side with others, whose bytes are then dense. */
static uint8_t *group_block(const rows_job *job, int64_t row, int64_t block) {
    uint8_t *group = wg__row(&job->bytes, row / WG__GROUP * WG__GROUP);
    return group + block * WG__GROUP * wg_quantization_block_bytes(job->quantization);
}

/* ---- quantize ---- */

static int quantize_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (wg__check_quantization(call) < 0)
        return -1;
    if (x->dtype != WG_F32)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32; cast it");
    if (x->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., I)");
    const int64_t block = wg_quantization_block(wg__quantization_of(call)),
                  columns = x->shape[x->ndim - 1];
    if (columns % block != 0)
        return wg__op_fail(
            call, WG_ERROR_SHAPE, "%s quantizes blocks of %lld, which do not fill %lld",
            wg_quantization_name(wg__quantization_of(call)), (long long)block, (long long)columns);
    call->output_specs[0] = *x;
    call->output_specs[0].dtype = WG_U8;
    call->output_specs[0].shape[x->ndim - 1] =
        columns / block * wg_quantization_block_bytes(wg__quantization_of(call));
    return 0;
}

static void quantize_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const float *numbers = wg__row(&job->numbers, i);
        if (i >= job->grouped) {
            wg__quantize_row(job->quantization, job->numbers.columns, numbers,
                             wg__row(&job->bytes, i));
            continue;
        }
        for (int64_t b = 0; b < blocks_of_row(job); b++) {
            uint8_t block[WG__MOST_BLOCK_BYTES];
            wg__quantize_row(job->quantization, WG__BLOCK, numbers + b * WG__BLOCK, block);
            wg__group_put(job->quantization, i % WG__GROUP, block, group_block(job, i, b));
        }
    }
}

static int quantize_forward(wg_call *call) {
    rows_job job = {0};
    if (wg__rows_of(call->inputs[0], true, &job.numbers) < 0 ||
        wg__rows_of(call->outputs[0], true, &job.bytes) < 0)
        return -1;
    run_rows(&job, wg__quantization_of(call), quantize_rows);
    return 0;
}

const wg__quantized_options wg__quantized_samples[WG_QUANTIZATION_COUNT] = {
    {WG_QUANTIZATION_BF16},
    {WG_QUANTIZATION_Q8_0},
    {WG_QUANTIZATION_Q4_0},
    {WG_QUANTIZATION_Q8_0X16},
    {WG_QUANTIZATION_Q4_0X16}};

wg_tensor *wg__sample_rows(wg_generator *generator, int64_t rows, int64_t columns) {
    return wg_cast(wg__sample_normal(generator, 2, (int64_t[]){rows, columns}), WG_F32);
}

static int quantize_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= WG_QUANTIZATION_COUNT)
        return 0;
    sample->options = &wg__quantized_samples[index];
    sample->inputs[0] = wg__sample_rows(generator, 3, 64);
    return wg__sample_status(sample, 1);
}

static int quantize_bench(wg_generator *generator, wg_sample *sample) {
    sample->options = &wg__quantized_samples[WG_QUANTIZATION_Q8_0];
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 2048});
    return wg__sample_status(sample, 1);
}

static const wg_op quantize = {
    .name = "quantize",
    .doc = "The rows of x in fewer bytes, as a quantization has it: (..., I) -> (..., bytes) u8.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__quantized_options),
    .no_gradient = "bytes have no gradient",
    .infer = quantize_infer,
    .forward = quantize_forward,
    .sample = quantize_sample,
    .bench = quantize_bench,
};

wg_tensor *wg_quantize(wg_tensor *x, wg_quantization quantization) {
    return wg_apply_one(&quantize, 1, &x, &(wg__quantized_options){quantization});
}

/* ---- dequantize ---- */

static int dequantize_infer(wg_call *call) {
    const wg_spec *bytes = &call->input_specs[0];
    if (wg__check_quantization(call) < 0)
        return -1;
    if (bytes->dtype != WG_U8)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted u8, quantized rows");
    if (bytes->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., bytes)");
    const int64_t columns = wg__dequantized_columns(call, bytes->shape[bytes->ndim - 1]);
    call->output_specs[0] = *bytes;
    call->output_specs[0].dtype = WG_F32;
    call->output_specs[0].shape[bytes->ndim - 1] = columns;
    return columns < 0 ? -1 : 0;
}

static void dequantize_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    void (*const dequantize)(int64_t, const void *, void *) =
        wg__simd_for(WG_F32)->dequantize[job->quantization];
    for (int64_t i = begin; i < end; i++) {
        float *numbers = wg__row(&job->numbers, i);
        if (i >= job->grouped) {
            dequantize(job->numbers.columns, wg__row(&job->bytes, i), numbers);
            continue;
        }
        for (int64_t b = 0; b < blocks_of_row(job); b++) {
            uint8_t block[WG__MOST_BLOCK_BYTES];
            wg__group_get(job->quantization, i % WG__GROUP, group_block(job, i, b), block);
            dequantize(WG__BLOCK, block, numbers + b * WG__BLOCK);
        }
    }
}

static int dequantize_forward(wg_call *call) {
    rows_job job = {0};
    wg_tensor *quantized = wg__dense_bytes(call, 0);
    if (!quantized || wg__rows_of(quantized, true, &job.bytes) < 0 ||
        wg__rows_of(call->outputs[0], true, &job.numbers) < 0)
        return -1;
    run_rows(&job, wg__quantization_of(call), dequantize_rows);
    return 0;
}

static int dequantize_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= WG_QUANTIZATION_COUNT)
        return 0;
    sample->options = &wg__quantized_samples[index];
    sample->inputs[0] =
        wg_quantize(wg__sample_rows(generator, 3, 64), wg__quantized_samples[index].quantization);
    return wg__sample_status(sample, 1);
}

static int dequantize_bench(wg_generator *generator, wg_sample *sample) {
    if (quantize_bench(generator, sample) < 0)
        return -1;
    sample->inputs[0] = wg_quantize(sample->inputs[0], WG_QUANTIZATION_Q8_0);
    return wg__sample_status(sample, 1);
}

static const wg_op dequantize = {
    .name = "dequantize",
    .doc = "The numbers of quantized rows: (..., bytes) u8 -> (..., I) f32.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__quantized_options),
    .no_gradient = "bytes have no gradient",
    .infer = dequantize_infer,
    .forward = dequantize_forward,
    .sample = dequantize_sample,
    .bench = dequantize_bench,
};

wg_tensor *wg_dequantize(wg_tensor *quantized, wg_quantization quantization) {
    return wg_apply_one(&dequantize, 1, &quantized, &(wg__quantized_options){quantization});
}

static const wg_op *const ops[] = {&quantize, &dequantize};

const wg__op_family wg__family_quantized = {ops, sizeof ops / sizeof *ops};
