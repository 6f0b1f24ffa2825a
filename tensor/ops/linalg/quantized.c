/* Weights kept small: packing rows and unpacking them. */
#include "tensor/ops/linalg/quantized.h"

#include "tensor/iter.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"
#include "tensor/quantize_rows.h"
#include "tensor/simd/simd.h"

wg_packing wg__packing_of(const wg_call *call) {
    return ((const wg__packed_options *)call->options)->packing;
}

int wg__check_packing(const wg_call *call) {
    if (wg_packing_block(wg__packing_of(call)) > 0)
        return 0;
    return wg__op_fail(call, WG_ERROR_ARGUMENT, "there is no packing %d",
                       (int)wg__packing_of(call));
}

int64_t wg__unpacked_columns(const wg_call *call, int64_t bytes) {
    const int64_t size = wg_packing_block_bytes(wg__packing_of(call));
    if (bytes % size == 0)
        return bytes / size * wg_packing_block(wg__packing_of(call));
    return wg__op_fail(call, WG_ERROR_SHAPE,
                       "a row of %lld bytes is no whole blocks of %s, %lld each", (long long)bytes,
                       wg_packing_name(wg__packing_of(call)), (long long)size);
}

wg_tensor *wg__dense_bytes(const wg_call *call, int input) {
    const wg_packing packing = wg__packing_of(call);
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
    if (wg__check_packing(call) < 0)
        return -1;
    if (x->dtype != WG_F32)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted f32; cast it");
    if (x->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., I)");
    const int64_t block = wg_packing_block(wg__packing_of(call)), columns = x->shape[x->ndim - 1];
    if (columns % block != 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "%s packs blocks of %lld, which do not fill %lld",
                           wg_packing_name(wg__packing_of(call)), (long long)block,
                           (long long)columns);
    call->output_specs[0] = *x;
    call->output_specs[0].dtype = WG_U8;
    call->output_specs[0].shape[x->ndim - 1] =
        columns / block * wg_packing_block_bytes(wg__packing_of(call));
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
    run_rows(&job, wg__packing_of(call), pack_rows);
    return 0;
}

const wg__packed_options wg__packed_samples[WG_PACKING_COUNT] = {{WG_PACKING_BF16},
                                                                 {WG_PACKING_Q8_0},
                                                                 {WG_PACKING_Q4_0},
                                                                 {WG_PACKING_Q8_0X16},
                                                                 {WG_PACKING_Q4_0X16}};

wg_tensor *wg__sample_rows(wg_generator *generator, int64_t rows, int64_t columns) {
    return wg_cast(wg__sample_normal(generator, 2, (int64_t[]){rows, columns}), WG_F32);
}

static int pack_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= WG_PACKING_COUNT)
        return 0;
    sample->options = &wg__packed_samples[index];
    sample->inputs[0] = wg__sample_rows(generator, 3, 64);
    return wg__sample_status(sample, 1);
}

static int pack_bench(wg_generator *generator, wg_sample *sample) {
    sample->options = &wg__packed_samples[WG_PACKING_Q8_0];
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 2048});
    return wg__sample_status(sample, 1);
}

static const wg_op pack = {
    .name = "pack",
    .doc = "The rows of x in fewer bytes, as a packing has it: (..., I) -> (..., bytes) u8.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(wg__packed_options),
    .no_gradient = "bytes have no gradient",
    .infer = pack_infer,
    .forward = pack_forward,
    .sample = pack_sample,
    .bench = pack_bench,
};

wg_tensor *wg_pack(wg_tensor *x, wg_packing packing) {
    return wg_apply_one(&pack, 1, &x, &(wg__packed_options){packing});
}

/* ---- unpack ---- */

static int unpack_infer(wg_call *call) {
    const wg_spec *bytes = &call->input_specs[0];
    if (wg__check_packing(call) < 0)
        return -1;
    if (bytes->dtype != WG_U8)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted u8, packed rows");
    if (bytes->ndim < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted rows, (..., bytes)");
    const int64_t columns = wg__unpacked_columns(call, bytes->shape[bytes->ndim - 1]);
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
    wg_tensor *packed = wg__dense_bytes(call, 0);
    if (!packed || wg__rows_of(packed, true, &job.bytes) < 0 ||
        wg__rows_of(call->outputs[0], true, &job.numbers) < 0)
        return -1;
    run_rows(&job, wg__packing_of(call), unpack_rows);
    return 0;
}

static int unpack_sample(int index, wg_generator *generator, wg_sample *sample) {
    if (index >= WG_PACKING_COUNT)
        return 0;
    sample->options = &wg__packed_samples[index];
    sample->inputs[0] =
        wg_pack(wg__sample_rows(generator, 3, 64), wg__packed_samples[index].packing);
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
    .options_size = sizeof(wg__packed_options),
    .no_gradient = "bytes have no gradient",
    .infer = unpack_infer,
    .forward = unpack_forward,
    .sample = unpack_sample,
    .bench = unpack_bench,
};

wg_tensor *wg_unpack(wg_tensor *packed, wg_packing packing) {
    return wg_apply_one(&unpack, 1, &packed, &(wg__packed_options){packing});
}

static const wg_op *const ops[] = {&pack, &unpack};

const wg__op_family wg__family_packed = {ops, sizeof ops / sizeof *ops};
