/* Weights kept small: packing rows, unpacking them, and the layer's product with what is packed. */
#include <math.h>

#include "tensor/bf16_product.h"
#include "tensor/block_product.h"
#include "tensor/iter.h"
#include "tensor/ops/dense.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/families.h"
#include "tensor/packing_rows.h"
#include "tensor/simd/simd.h"

typedef struct packed_options {
    wg_packing packing;
} packed_options;

static wg_packing packing_of(const wg_call *call) {
    return ((const packed_options *)call->options)->packing;
}

static int check_packing(const wg_call *call) {
    if (wg_packing_block(packing_of(call)) > 0)
        return 0;
    return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no packing %d", (int)packing_of(call));
}

/* The numbers in a row of so many bytes, or -1 with an error. */
static int64_t unpacked_columns(const wg_call *call, int64_t bytes) {
    const int64_t size = wg_packing_block_bytes(packing_of(call));
    if (bytes % size == 0)
        return bytes / size * wg_packing_block(packing_of(call));
    return wg__op_fail(call, WG_ERROR_SHAPE,
                       "a row of %lld bytes is no whole blocks of %s, %lld each", (long long)bytes,
                       wg_packing_name(packing_of(call)), (long long)size);
}

/* Packed rows as kernels take them: those side by side next to each other. NULL for lack of memory.
 */
static wg_tensor *dense_bytes(const wg_call *call, int input) {
    const wg_packing packing = packing_of(call);
    const bool side_by_side = wg__packing_of_a_row(packing) != packing;
    return side_by_side ? wg_contiguous(call->inputs[input]) : call->inputs[input];
}

/* ---- Rows, one after the other, in parallel ---- */

enum { ROW_WORK = 4 }; /* a number packed or unpacked, beside an element of light work */

typedef struct rows_job {
    wg_packing packing; /* of a row by itself */
    int64_t grouped;    /* so many of them stand side by side, the others behind them */
    wg__rows numbers, bytes;
} rows_job;

static void run_rows(rows_job *job, wg_packing packing, wg__range_body body) {
    job->packing = wg__packing_of_a_row(packing);
    if (packing != job->packing)
        job->grouped = job->numbers.rows / WG__GROUP * WG__GROUP;
    const int64_t grain = 1 + WG__GRAIN / (ROW_WORK * (job->numbers.columns + 1));
    wg__parallel_for(job->numbers.rows, grain, body, job);
}

static int64_t blocks_of_row(const rows_job *job) {
    return job->numbers.columns / wg_packing_block(job->packing);
}

/* A block of a row that stands side by side with others, whose bytes are then dense. */
static uint8_t *group_block(const rows_job *job, int64_t row, int64_t block) {
    uint8_t *group = wg__row(&job->bytes, row / WG__GROUP * WG__GROUP);
    return group + block * WG__GROUP * wg_packing_block_bytes(job->packing);
}

/* ---- pack ---- */

static int pack_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (check_packing(call) < 0)
        return -1;
    if (x->dtype != WG_F32)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32; cast it");
    if (x->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., I)");
    const int64_t block = wg_packing_block(packing_of(call)), columns = x->shape[x->ndim - 1];
    if (columns % block != 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "%s packs blocks of %lld, which do not fill %lld",
                           wg_packing_name(packing_of(call)), (long long)block, (long long)columns);
    call->output_specs[0] = *x;
    call->output_specs[0].dtype = WG_U8;
    call->output_specs[0].shape[x->ndim - 1] =
        columns / block * wg_packing_block_bytes(packing_of(call));
    return 0;
}

static void pack_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const float *numbers = wg__row(&job->numbers, i);
        if (i >= job->grouped) {
            wg__pack_row(job->packing, job->numbers.columns, numbers, wg__row(&job->bytes, i));
            continue;
        }
        for (int64_t b = 0; b < blocks_of_row(job); b++) {
            uint8_t block[WG__MOST_BLOCK_BYTES];
            wg__pack_row(job->packing, WG__BLOCK, numbers + b * WG__BLOCK, block);
            wg__group_put(job->packing, i % WG__GROUP, block, group_block(job, i, b));
        }
    }
}

static int pack_forward(wg_call *call) {
    rows_job job = {0};
    if (wg__rows_of(call->inputs[0], true, &job.numbers) < 0 ||
        wg__rows_of(call->outputs[0], true, &job.bytes) < 0)
        return -1;
    run_rows(&job, packing_of(call), pack_rows);
    return 0;
}

static const packed_options as[] = {{WG_PACKING_BF16},
                                    {WG_PACKING_Q8_0},
                                    {WG_PACKING_Q4_0},
                                    {WG_PACKING_Q8_0X16},
                                    {WG_PACKING_Q4_0X16}};

enum { PACKINGS = sizeof as / sizeof *as };

static wg_tensor *sample_rows(wg_generator *generator, int64_t rows, int64_t columns) {
    return wg_cast(wg__sample_normal(generator, 2, (int64_t[]){rows, columns}), WG_F32);
}

static int pack_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= PACKINGS)
        return 0;
    sample->options = &as[index];
    sample->inputs[0] = sample_rows(generator, 3, 64);
    return wg__sample_status(sample, 1);
}

static int pack_bench(wg_generator *generator, wg_sample *sample) {
    sample->options = &as[WG_PACKING_Q8_0];
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 2048});
    return wg__sample_status(sample, 1);
}

static const wg_op pack = {
    .name = "pack",
    .doc = "The rows of x in fewer bytes, as a packing has it: (..., I) -> (..., bytes) u8.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(packed_options),
    .no_gradient = "bytes have no gradient",
    .infer = pack_infer,
    .forward = pack_forward,
    .sample = pack_sample,
    .bench = pack_bench,
};

wg_tensor *wg_pack(wg_tensor *x, wg_packing packing) {
    return wg_apply_one(&pack, 1, &x, &(packed_options){packing});
}

/* ---- unpack ---- */

static int unpack_infer(wg_call *call) {
    const wg_spec *bytes = &call->input_specs[0];
    if (check_packing(call) < 0)
        return -1;
    if (bytes->dtype != WG_U8)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted u8, packed rows");
    if (bytes->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., bytes)");
    const int64_t columns = unpacked_columns(call, bytes->shape[bytes->ndim - 1]);
    call->output_specs[0] = *bytes;
    call->output_specs[0].dtype = WG_F32;
    call->output_specs[0].shape[bytes->ndim - 1] = columns;
    return columns < 0 ? -1 : 0;
}

static void unpack_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    void (*const unpack)(int64_t, const void *, void *) =
        wg__simd_for(WG_F32)->unpack[job->packing];
    for (int64_t i = begin; i < end; i++) {
        float *numbers = wg__row(&job->numbers, i);
        if (i >= job->grouped) {
            unpack(job->numbers.columns, wg__row(&job->bytes, i), numbers);
            continue;
        }
        for (int64_t b = 0; b < blocks_of_row(job); b++) {
            uint8_t block[WG__MOST_BLOCK_BYTES];
            wg__group_get(job->packing, i % WG__GROUP, group_block(job, i, b), block);
            unpack(WG__BLOCK, block, numbers + b * WG__BLOCK);
        }
    }
}

static int unpack_forward(wg_call *call) {
    rows_job job = {0};
    wg_tensor *packed = dense_bytes(call, 0);
    if (!packed || wg__rows_of(packed, true, &job.bytes) < 0 ||
        wg__rows_of(call->outputs[0], true, &job.numbers) < 0)
        return -1;
    run_rows(&job, packing_of(call), unpack_rows);
    return 0;
}

static int unpack_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= PACKINGS)
        return 0;
    sample->options = &as[index];
    sample->inputs[0] = wg_pack(sample_rows(generator, 3, 64), as[index].packing);
    return wg__sample_status(sample, 1);
}

static int unpack_bench(wg_generator *generator, wg_sample *sample) {
    if (pack_bench(generator, sample) < 0)
        return -1;
    sample->inputs[0] = wg_pack(sample->inputs[0], WG_PACKING_Q8_0);
    return wg__sample_status(sample, 1);
}

static const wg_op unpack = {
    .name = "unpack",
    .doc = "The numbers of packed rows: (..., bytes) u8 -> (..., I) f32.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(packed_options),
    .no_gradient = "bytes have no gradient",
    .infer = unpack_infer,
    .forward = unpack_forward,
    .sample = unpack_sample,
    .bench = unpack_bench,
};

wg_tensor *wg_unpack(wg_tensor *packed, wg_packing packing) {
    return wg_apply_one(&unpack, 1, &packed, &(packed_options){packing});
}

/* ---- packed_linear: y = x unpack(W)^T + bias.   dx = g unpack(W), dbias = the sum of g. ---- */

static int packed_linear_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *weight = &call->input_specs[1];
    const bool has_bias = call->input_count > 2 && call->input_specs[2].ndim >= 0;
    if (check_packing(call) < 0 || wg__check_kernel_dtype(call) < 0 ||
        (has_bias && wg__check_same_dtype(call, 0, 2) < 0))
        return -1;
    if (weight->dtype != WG_U8)
        return wg__op_fail(call, WG_ERROR_DTYPE, "the weight is not u8, packed rows");
    if (x->ndim < 1 || weight->ndim != 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted (..., I) x (O, bytes)");
    const int64_t columns = unpacked_columns(call, weight->shape[1]);
    if (columns < 0)
        return -1;
    if (columns != x->shape[x->ndim - 1])
        return wg__op_fail(call, WG_ERROR_SHAPE, "x has %lld features, the weight takes %lld",
                           (long long)x->shape[x->ndim - 1], (long long)columns);
    if (has_bias &&
        (call->input_specs[2].ndim != 1 || call->input_specs[2].shape[0] != weight->shape[0]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a bias of %lld, a value for each output",
                           (long long)weight->shape[0]);
    call->output_specs[0] = *x;
    call->output_specs[0].shape[x->ndim - 1] = weight->shape[0];
    return 0;
}

/* Rows of x up to which rows in bf16 are read for each; above, they become f32 a panel at a time.
 */
enum { FEW_ROWS = 16 };

/* Numbers of the weight that are worth a chunk. */
enum { CHUNK = 16384 };

static void multiply_rows(int64_t begin, int64_t end, void *context) {
    wg__simd_for(WG_F32)->bf16_product(context, begin, end);
}

static int multiply_packed(wg_call *call) {
    const wg_packing packing = packing_of(call);
    wg__rows x, weight, y, bias = {0};
    wg_tensor *packed = dense_bytes(call, 1);
    if (!packed || wg__rows_of(packed, true, &weight) < 0 ||
        wg__rows_of(call->inputs[0], true, &x) < 0 || wg__rows_of(call->outputs[0], true, &y) < 0)
        return -1;
    const bool has_bias = call->input_count > 2 && call->inputs[2];
    if (has_bias && wg__rows_of(call->inputs[2], true, &bias) < 0)
        return -1;
    wg__packed_product product = {.weight = wg__row(&weight, 0),
                                  .weight_stride = weight.row_stride,
                                  .n = x.columns,
                                  .x = wg__row(&x, 0),
                                  .bias = has_bias ? wg__row(&bias, 0) : NULL,
                                  .x_rows = x.rows,
                                  .x_stride = x.row_stride,
                                  .y = wg__row(&y, 0),
                                  .y_stride = y.row_stride};
    if (packing != WG_PACKING_BF16)
        return wg__block_product(packing, weight.rows, &product);
    if (x.rows <= FEW_ROWS)
        wg__parallel_for(weight.rows, 1 + CHUNK / (x.columns + 1), multiply_rows, &product);
    else
        wg__bf16_product(weight.rows, &product);
    return 0;
}

static int multiply_unpacked(wg_call *call) {
    wg_tensor *weight =
        wg_cast(wg_unpack(call->inputs[1], packing_of(call)), call->input_specs[0].dtype);
    wg_tensor *y =
        wg_linear_op(call->inputs[0], weight, call->input_count > 2 ? call->inputs[2] : NULL);
    return y ? wg_copy_(call->outputs[0], y) : -1;
}

static int packed_linear_forward(wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    const bool is_empty = wg__spec_count(&call->output_specs[0]) == 0 || x->shape[x->ndim - 1] == 0;
    return x->dtype == WG_F32 && !is_empty ? multiply_packed(call) : multiply_unpacked(call);
}

static int packed_linear_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    if (wg__wants(call, 0))
        gradients[0] =
            wg_matmul(cotangents[0], wg_cast(wg_unpack(call->inputs[1], packing_of(call)),
                                             call->input_specs[0].dtype));
    if (wg__wants(call, 2))
        gradients[2] = wg_sum_to(cotangents[0], 1, call->input_specs[2].shape);
    return wg__vjp_status();
}

/* Of x as it is, not in blocks. */
static int packed_linear_jvp(wg_call *call, wg_tensor *const *tangents,
                             wg_tensor **output_tangents) {
    wg_tensor *x = tangents[0] ? tangents[0] : wg_zeros_like(call->inputs[0]);
    wg_tensor *weight =
        wg_cast(wg_unpack(call->inputs[1], packing_of(call)), call->input_specs[0].dtype);
    output_tangents[0] = wg_linear_op(x, weight, call->input_count > 2 ? tangents[2] : NULL);
    return output_tangents[0] ? 0 : -1;
}

static double packed_linear_flops(const wg_call *call) {
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

static int packed_linear_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= 2 * PACKINGS)
        return 0;
    const int64_t x[] = {2, 3, 32};
    sample->options = &as[index / 2];
    sample->inputs[0] =
        index % 2 ? sample_levels(generator, 3, x) : sample_levels(generator, 1, &x[2]);
    sample->inputs[1] = wg_pack(sample_rows(generator, 5, 32), as[index / 2].packing);
    if (index % 2)
        return wg__sample_status(sample, 2);
    sample->inputs[2] = wg__sample_normal(generator, 1, (int64_t[]){5});
    return wg__sample_status(sample, 3);
}

static int packed_linear_bench(wg_generator *generator, wg_sample *sample) {
    sample->options = &as[WG_PACKING_Q8_0];
    sample->inputs[0] = wg_rand(generator, WG_F32, 1, (int64_t[]){2048});
    sample->inputs[1] =
        wg_pack(wg_rand(generator, WG_F32, 2, (int64_t[]){8192, 2048}), WG_PACKING_Q8_0);
    return wg__sample_status(sample, 2);
}

static const wg_op packed_linear = {
    .name = "packed_linear",
    .doc = "y = x unpack(W)^T + bias: (..., I) x (O, bytes) u8, and (O) if there is a bias -> "
           "(..., O). "
           "In f32, blocks of integers meet x in blocks of 8 bits.",
    .min_inputs = 2,
    .max_inputs = 3,
    .output_count = 1,
    .options_size = sizeof(packed_options),
    .saves_inputs = 2,
    .differentiable = 5,
    .infer = packed_linear_infer,
    .forward = packed_linear_forward,
    .vjp = packed_linear_vjp,
    .jvp = packed_linear_jvp,
    .sample = packed_linear_sample,
    .bench = packed_linear_bench,
    .flops = packed_linear_flops,
};

wg_tensor *wg_packed_linear(wg_tensor *x, wg_tensor *weight, wg_packing packing, wg_tensor *bias) {
    if (!x)
        return NULL;
    const wg_dtype dtype = x->spec.dtype;
    x = wg__widen(x);
    wg_tensor *inputs[] = {x, weight, bias && x ? wg_cast(bias, x->spec.dtype) : NULL};
    return wg__narrow(
        wg_apply_one(&packed_linear, bias ? 3 : 2, inputs, &(packed_options){packing}), dtype);
}

static const wg_op *const ops[] = {&pack, &unpack, &packed_linear};

const wg__op_family wg__family_packed = {ops, sizeof ops / sizeof *ops};
