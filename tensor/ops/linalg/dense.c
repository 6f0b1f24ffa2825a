/* Views of tensors as matrices and rows: see dense.h. */
#include "tensor/ops/linalg/dense.h"

wg_tensor *wg__gemm_operand(wg_tensor *x) {
    for (int axis = x->spec.ndim - 2; axis < x->spec.ndim; axis++)
        if (x->spec.shape[axis] > 1 && x->strides[axis] < 1)
            return wg__copy_of(x);
    return x;
}

wg__matrix wg__matrix_of(const wg_tensor *x) {
    int last = x->spec.ndim - 1;
    return (wg__matrix){wg__tensor_address(x), x->strides[last - 1], x->strides[last]};
}

/* row_stride becomes 0 if no single stride walks all leading axes, or if rows are repeated. */
int wg__rows_of(wg_tensor *x, bool dense, wg__rows *rows) {
    const int last = x->spec.ndim - 1;
    const int64_t columns = x->spec.shape[last];
    int64_t row_stride = columns, column_stride = columns > 1 ? x->strides[last] : 1, count = 1;
    for (int axis = last - 1; axis >= 0; axis--) {
        const int64_t size = x->spec.shape[axis], stride = x->strides[axis];
        if (size != 1)
            row_stride = count == 1 ? stride : stride == row_stride * count ? row_stride : 0;
        count *= size;
    }
    if (count <= 1)
        row_stride = columns;
    const bool overlap = row_stride < 1 || column_stride < 1;
    if ((overlap || (dense && column_stride != 1)) && count * columns > 0) {
        x = wg__copy_of(x);
        row_stride = columns;
        column_stride = 1;
    }
    *rows = (wg__rows){x, count, columns, row_stride, column_stride};
    return x ? 0 : -1;
}

void *wg__row(const wg__rows *rows, int64_t row) {
    int64_t size = (int64_t)wg_dtype_size(rows->tensor->spec.dtype);
    return (char *)wg__tensor_address(rows->tensor) + row * rows->row_stride * size;
}

wg__matrix wg__rows_matrix(const wg__rows *rows) {
    return (wg__matrix){wg__tensor_address(rows->tensor), rows->row_stride, rows->column_stride};
}

double wg__matmul_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0];
    return 2 * (double)wg__spec_count(&call->output_specs[0]) * (double)a->shape[a->ndim - 1];
}

/* Each chunk of rows is summed into a row of `partial`. The size of a chunk depends on the shape
 * alone, so that the number of threads does not change the bits. */
typedef struct sum_job {
    const wg__rows *rows;
    wg_tensor *partial; /* (chunks, O), zeros at first */
    int64_t chunk;
} sum_job;

static void sum_chunk(int64_t begin, int64_t end, void *context) {
    const sum_job *job = context;
    wg__rows sums = {.tensor = job->partial, .row_stride = job->rows->columns};
    wg__simd_for(job->partial->spec.dtype)
        ->rows.add(end - begin, job->rows->columns, job->rows->row_stride,
                   wg__row(job->rows, begin), wg__row(&sums, begin / job->chunk));
}

int wg__add_row_sums(const wg__rows *rows, wg_tensor *sums) {
    enum { CHUNKS = 32, LEAST_ROWS = 32 };
    if (rows->rows == 0)
        return 0;
    sum_job job = {.rows = rows,
                   .chunk = wg__larger(wg__ceil_divide(rows->rows, CHUNKS), LEAST_ROWS)};
    const int64_t chunks = wg__ceil_divide(rows->rows, job.chunk);
    const wg_dtype dtype = sums->spec.dtype;
    job.partial = wg_zeros(dtype, 2, (int64_t[]){chunks, rows->columns});
    if (!job.partial)
        return -1;
    wg__parallel_for(rows->rows, job.chunk, sum_chunk, &job);
    wg__simd_for(dtype)->rows.add(chunks, rows->columns, rows->columns,
                                  wg__tensor_address(job.partial), wg__tensor_address(sums));
    return 0;
}
