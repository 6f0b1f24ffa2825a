/* Cross-entropy fused with the linear map that makes its logits. Only a chunk of rows of the logits
 * is in memory at a time, as in Liger Kernel   (Hsu et al. 2024, arXiv:2410.10989).
 *
 *     x (N, D)    weight (V, D)
 *        |           |
 *     chunk of x  x weight^T   ->   logits   ->   losses
 *        |           |                |           and over the logits their gradient g
 *     dx = g weight  dweight += g^T x <--- g
 *
 * While recording, forward computes losses and gradients chunk by chunk, for a cotangent of 1.
 * Backward multiplies the gradients by the cotangent. The chunks depend on the shapes alone. */
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/loss/loss.h"
#include "tensor/ops/support.h"

#include <string.h>

enum { X, WEIGHT, TARGET, BIAS, CLASS_WEIGHT };
enum { LOSS, CORRECT };

/* Forward saves these gradients for backward, unless the losses are not reduced. */
enum { DX, DWEIGHT, DBIAS, GRADIENTS };

static const int input_of[GRADIENTS] = {X, WEIGHT, BIAS};

static int linear_cross_entropy_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[X], *weight = &call->input_specs[WEIGHT];
    const wg_spec *target = &call->input_specs[TARGET], *bias = &call->input_specs[BIAS];
    const bool has_bias = call->input_count > BIAS && bias->ndim >= 0;
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtype(call, X, WEIGHT) < 0 ||
        (has_bias && wg__check_same_dtype(call, X, BIAS) < 0))
        return -1;
    if (target->dtype != WG_I64)
        return wg__op_fail(call, WG_ERROR_DTYPE, "wanted targets of i64 or i32");
    if (x->ndim != 2 || weight->ndim != 2 || target->ndim != 1 || x->shape[0] != target->shape[0] ||
        x->shape[1] != weight->shape[1])
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted x (N, D), a weight (V, D), targets (N)");
    if (has_bias && (bias->ndim != 1 || bias->shape[0] != weight->shape[0]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a bias for each class, (V)");
    call->output_specs[CORRECT] = (wg_spec){.dtype = WG_I64};
    return wg__infer_losses(call, x->shape[0], weight->shape[0], CLASS_WEIGHT);
}

typedef struct job {
    wg_dtype dtype;
    wg_tensor *places; /* (K): the indices of the rows that are not ignored; NULL: all rows */
    int64_t count;     /* K */
    int64_t at_once;   /* rows of a chunk */
    wg__rows x;        /* (K, D) */
    wg__rows weight;   /* (V, D) */
    const void *bias;  /* (V), or NULL */
    wg__loss_rows rows;
    wg_tensor *gradients[GRADIENTS]; /* of x (K, D), weight and bias; NULL: not wanted */
    bool weight_begins;              /* the first chunk overwrites the gradient of the weight */
} job;

/* A chunk needs ENOUGH_ROWS rows for full speed, since each chunk reads the weight twice and its
 * gradient once. With few classes a chunk has more rows, up to CHUNK_BYTES of logits. */
enum { ENOUGH_ROWS = 512, CHUNK_BYTES = 16 << 20 };

/* The rows of x (or elements of a vector) that are not ignored. */
static wg_tensor *counted(const job *job, wg_tensor *x) {
    return job->places ? wg_index_select(x, 0, job->places) : wg_contiguous(x);
}

/* Scatters the rows that are not ignored into `all`; ignored rows get 0. */
static void scatter_rows(const job *job, const wg_tensor *rows, wg_tensor *all) {
    const size_t bytes = (size_t)wg__spec_count(&all->spec) * wg_dtype_size(job->dtype);
    const size_t row = bytes / (size_t)all->spec.shape[0];
    const int64_t *place = wg_tensor_data(job->places);
    const char *from = wg_tensor_data(rows);
    char *to = wg_tensor_data(all);
    memset(to, 0, bytes);
    for (int64_t i = 0; i < job->count; i++)
        memcpy(to + (size_t)place[i] * row, from + (size_t)i * row, row);
}

/* Fills a job, except for its gradients and losses. The chunks of a call are about equal, and
 * shorter than 2 `enough` rows. More than enough / 2 rows make two chunks, to save memory: the
 * logits exist when a training step uses the most memory. */
static int begin_job(const wg_call *call, job *job) {
    const wg__loss_options *options = call->options;
    const int64_t rows = call->input_specs[X].shape[0];
    const int64_t classes = call->input_specs[WEIGHT].shape[0];
    wg_tensor *target = wg_contiguous(call->inputs[TARGET]), *bias = wg__input_at(call, BIAS);
    wg_tensor *class_weight = wg__input_at(call, CLASS_WEIGHT), *x = call->inputs[X];
    *job = (struct job){.dtype = call->input_specs[X].dtype};
    if (!target || (bias && !(bias = wg_contiguous(bias))) ||
        (class_weight && !(class_weight = wg_contiguous(class_weight))) ||
        wg__check_targets(call, target, classes) < 0)
        return -1;
    const int64_t *class = wg_tensor_data(target);
    for (int64_t row = 0; row < rows; row++)
        job->count += class[row] != options->ignore_index;
    if (job->count < rows) {
        job->places = wg_empty(WG_I64, 1, &job->count);
        int64_t *place = wg_tensor_data(job->places);
        for (int64_t row = 0; place && row < rows; row++)
            if (class[row] != options->ignore_index)
                *place++ = row;
        if (!job->places)
            return -1;
        x = counted(job, x);
    }
    target = counted(job, target);
    if (!x || !target || wg__rows_of(x, false, &job->x) < 0 ||
        wg__rows_of(call->inputs[WEIGHT], false, &job->weight) < 0)
        return -1;
    const int64_t of_bytes = CHUNK_BYTES / ((classes + 1) * (int64_t)wg_dtype_size(job->dtype));
    const int64_t enough = wg__larger(of_bytes, ENOUGH_ROWS);
    const int64_t chunks = wg__larger(rows / enough, 2 * rows > enough ? 2 : 1);
    job->at_once = wg__larger(wg__ceil_divide(rows, chunks), 1);
    job->bias = wg_tensor_data(bias);
    job->rows = wg__loss_rows_of(options, job->dtype, classes, target, class_weight);
    job->rows.denominator = wg__loss_denominator(&job->rows, job->count);
    return 0;
}

/* Allocates the gradients. An existing gradient of the weight or bias is accumulated into. */
static int begin_gradients(const wg_call *call, job *job, wg_tensor *const *existing) {
    for (int k = 0; k < GRADIENTS; k++) {
        const int i = input_of[k];
        const wg_spec *spec = &call->input_specs[i];
        if (!wg__wants(call, i))
            continue;
        const bool zeros = k == DBIAS || job->count == 0;
        if (k == DX)
            job->gradients[k] =
                wg__tensor_new(&(wg_spec){spec->dtype, 2, {job->count, spec->shape[1]}});
        else
            job->gradients[k] = existing[i] ? existing[i]
                                : zeros     ? wg_zeros(spec->dtype, spec->ndim, spec->shape)
                                            : wg__tensor_new(spec);
        if (!job->gradients[k])
            return -1;
    }
    job->weight_begins = !existing[WEIGHT];
    return 0;
}

/* The gradient of x for all rows, also the ignored ones. NULL if out of memory. */
static wg_tensor *all_rows(const wg_call *call, const job *job, wg_tensor *dx) {
    if (!job->places)
        return dx;
    wg_tensor *all = wg__tensor_new(&call->input_specs[X]);
    if (all)
        scatter_rows(job, dx, all);
    return all;
}

static void run_losses(int64_t begin, int64_t end, void *context) {
    wg__loss_rows *rows = context;
    for (int64_t row = begin; row < end; row++) {
        wg__class_losses(row, row + 1, rows);
        if (rows->gradient)
            wg__class_gradients(row, row + 1, rows);
    }
}

static int add_gradients(job *job, int64_t begin, const wg__rows *g) {
    const wg__matrix by_row = wg__rows_matrix(g);
    wg_tensor *const *to = job->gradients;
    const int64_t classes = job->weight.rows, width = job->weight.columns;
    if (to[DX]) {
        wg__matrix dx = wg__matrix_of(to[DX]);
        dx.data = (char *)dx.data + begin * width * (int64_t)wg_dtype_size(job->dtype);
        wg__product product = wg__product_of(job->dtype, g->rows, width, classes, by_row,
                                             wg__rows_matrix(&job->weight), dx);
        product.rounds = job->rows.options.rounds;
        wg__gemm(&product);
    }
    if (to[DWEIGHT]) {
        const wg__matrix x = wg__matrix_at(job->dtype, wg__rows_matrix(&job->x), begin, 0);
        wg__product product = wg__product_of(job->dtype, classes, width, g->rows,
                                             wg__transposed(by_row), x, wg__matrix_of(to[DWEIGHT]));
        product.rounds = job->rows.options.rounds;
        product.beta = begin == 0 && job->weight_begins ? 0 : 1;
        wg__gemm(&product);
    }
    return to[DBIAS] ? wg__add_row_sums(g, to[DBIAS]) : 0;
}

/* Runs all chunks: the losses, and gradients if there is a cotangent. */
static int run(job *job) {
    const int64_t classes = job->weight.rows, shape[] = {job->at_once, classes};
    const bool each = job->rows.options.reduction == WG_REDUCTION_NONE;
    wg_tensor *logits = wg_empty(job->dtype, 2, shape);
    wg_tensor *log_sums = wg_empty(job->dtype, 1, shape);
    wg_tensor *losses = wg_empty(WG_F64, 1, &job->count);
    wg_tensor *correct = wg_empty(WG_BOOL, 1, &job->count);
    if (!logits || !log_sums || !losses || !correct)
        return -1;
    job->rows.loss = wg_tensor_data(losses);
    job->rows.correct = wg_tensor_data(correct);
    job->rows.log_sum = wg_tensor_data(log_sums);
    for (int64_t begin = 0; begin < job->count; begin += job->at_once) {
        const int64_t count = wg__smaller(job->count - begin, job->at_once);
        const wg__rows chunk = {logits, count, classes, classes, 1};
        const wg__matrix c = wg__rows_matrix(&chunk);
        wg__product product =
            wg__product_of(job->dtype, count, classes, job->weight.columns,
                           wg__matrix_at(job->dtype, wg__rows_matrix(&job->x), begin, 0),
                           wg__transposed(wg__rows_matrix(&job->weight)), c);
        product.rounds = job->rows.options.rounds;
        product.row = job->bias;
        wg__gemm(&product);
        wg__loss_rows rows = job->rows;
        rows.target += begin;
        rows.loss += begin;
        rows.correct += begin;
        if (each && rows.cotangent)
            rows.cotangent += begin * (int64_t)wg_dtype_size(job->dtype);
        rows.x = c.data;
        rows.gradient = rows.cotangent ? c.data : NULL;
        wg__parallel_for(count, 1 + WG__GRAIN / 4 / (classes + 1), run_losses, &rows);
        if (rows.cotangent && add_gradients(job, begin, &chunk) < 0)
            return -1;
    }
    return 0;
}

/* ---- linear_cross_entropy: the losses of cross_entropy for logits y = x W^T + bias. With the
 * gradient dy of the logits, dx = dy W, dW = dy^T x, dbias = the sum of dy over rows. ---- */

static int linear_cross_entropy_forward(wg_call *call) {
    const wg__loss_options *options = call->options;
    const bool reduces = options->reduction != WG_REDUCTION_NONE;
    job job;
    if (begin_job(call, &job) < 0)
        return -1;
    wg_tensor *one = wg_scalar(job.dtype, 1);
    if (!one)
        return -1;
    if (call->wants && reduces) {
        wg_tensor *const none[BIAS + 1] = {0};
        if (begin_gradients(call, &job, none) < 0)
            return -1;
        job.rows.cotangent = wg_tensor_data(one);
    }
    if (run(&job) < 0)
        return -1;
    int64_t *correct = wg_tensor_data(call->outputs[CORRECT]);
    *correct = 0;
    for (int64_t row = 0; row < job.count; row++)
        *correct += job.rows.correct[row];
    const bool scatters = job.places && !reduces;
    wg_tensor *losses = scatters ? wg_empty(job.dtype, 1, &job.count) : call->outputs[LOSS];
    if (!losses)
        return -1;
    wg__reduce_losses(&job.rows, job.count, wg_tensor_data(losses));
    if (scatters)
        scatter_rows(&job, losses, call->outputs[LOSS]);
    for (int k = 0; k < GRADIENTS; k++)
        call->saved[k] = job.gradients[k];
    if (job.gradients[DX])
        call->saved[DX] = all_rows(call, &job, job.gradients[DX]);
    return job.gradients[DX] && !call->saved[DX] ? -1 : 0;
}

/* A saved gradient times the cotangent: added to an existing gradient, or computed in place on the
 * last use of `saved`. */
static wg_tensor *scaled(const wg_call *call, wg_tensor *saved, double factor,
                         wg_tensor *existing) {
    if (existing)
        return wg_add_(existing, saved, factor) < 0 ? NULL : existing;
    if (!call->last_use || !wg__tensor_is_sole(saved))
        return wg_mul_scalar(saved, factor);
    if (factor != 1 && wg_scale_(saved, factor) < 0)
        return NULL;
    return wg__tensor_view(saved, &saved->spec, saved->strides, saved->offset);
}

/* Without reduction, forward has saved nothing, since it does not know the cotangents of the rows:
 * the gradients are computed here. */
static int linear_cross_entropy_vjp(wg_call *call, wg_tensor *const *cotangents,
                                    wg_tensor **gradients) {
    if (((const wg__loss_options *)call->options)->reduction != WG_REDUCTION_NONE) {
        const double factor = wg_item(cotangents[0]);
        for (int k = 0; k < GRADIENTS; k++) {
            wg_tensor **gradient = &gradients[input_of[k]];
            if (wg__wants(call, input_of[k]) &&
                !(*gradient = scaled(call, call->saved[k], factor, *gradient)))
                return -1;
        }
        return wg__vjp_status();
    }
    job job;
    if (begin_job(call, &job) < 0 || begin_gradients(call, &job, gradients) < 0)
        return -1;
    wg_tensor *g = counted(&job, cotangents[0]);
    if (!g)
        return -1;
    job.rows.cotangent = wg_tensor_data(g);
    if (run(&job) < 0)
        return -1;
    for (int k = 0; k < GRADIENTS; k++)
        if (job.gradients[k])
            gradients[input_of[k]] =
                k == DX ? all_rows(call, &job, job.gradients[k]) : job.gradients[k];
    return wg__vjp_status();
}

static int linear_cross_entropy_decompose(wg_call *call) {
    const wg__loss_options *options = call->options;
    const wg_cross_entropy_options again = {.reduction = options->reduction,
                                            .label_smoothing = options->smoothing,
                                            .weight = wg__input_at(call, CLASS_WEIGHT)};
    const int64_t ignored = options->ignore_index;
    wg_tensor *target = call->inputs[TARGET];
    const wg_dtype before = wg_set_matmul_dtype(options->rounds ? WG_BF16 : WG_F32);
    wg_tensor *logits =
        wg_linear_op(call->inputs[X], call->inputs[WEIGHT], wg__input_at(call, BIAS));
    wg_set_matmul_dtype(before);
    call->outputs[LOSS] = wg_cross_entropy(logits, target, ignored, &again);
    call->outputs[CORRECT] = wg__count_correct(logits, target, ignored);
    return call->outputs[LOSS] && call->outputs[CORRECT] ? 0 : -1;
}

WG__EXAMPLES(linear_cross_entropy, wg__loss_options,
             (wg__sample_normal, wg__sample_normal, wg__sample_targets, wg__sample_normal,
              wg__sample_positive),
             {{-100, 0, WG_REDUCTION_MEAN, false}, "4 3, 7 3, 4, -, -"},
             {{-100, 0.2, WG_REDUCTION_MEAN, false}, "5 3, 7 3, 5, 7, 7"},
             {{-100, 0, WG_REDUCTION_SUM, false}, "4 3, 19 3, 4, 19, -"},
             {{-100, 0.1, WG_REDUCTION_NONE, false}, "5 3, 7 3, 5, 7, 7"},
             {{-100, 0, WG_REDUCTION_NONE, false}, "4 3, 7 3, 4, -, -"},
             {{-100, 0.3, WG_REDUCTION_NONE, false}, "5 3, 19 3, 5, 19, -"},
             {{-100, 1, WG_REDUCTION_SUM, false}, "4 3, 7 3, 4, -, 7"})
/* 2^31 operations, in the sizes of a language model's head. */
WG__LARGE_BY(linear_cross_entropy, wg__loss_options,
             (wg__sample_normal_f32, wg__sample_normal_f32, wg__sample_targets),
             "256 256, 16384 256, 256", -100, 0, WG_REDUCTION_MEAN, false)

static double linear_cross_entropy_flops(const wg_call *call) {
    const wg_spec *x = &call->input_specs[X], *weight = &call->input_specs[WEIGHT];
    return (2 * (double)x->shape[1] + 4) * (double)x->shape[0] * (double)weight->shape[0];
}

static const wg_op linear_cross_entropy = {
    WG__OP_OF(
        "linear_cross_entropy", 3, 5, 2,
        "cross_entropy of the logits x W^T + bias: (N, D), (V, D), (N), and (V) if there is a "
        "bias -> () or (N), and how many rows are largest at their target. Options as there. "
        "Fused, in chunks of rows: the logits are never stored whole."),
    .options_size = sizeof(wg__loss_options),
    .saves_inputs = 31,
    .differentiable = 1 << X | 1 << WEIGHT | 1 << BIAS,
    .accumulates = 1 << WEIGHT | 1 << BIAS,
    WG__FUNCTIONS(linear_cross_entropy),
    .decompose = linear_cross_entropy_decompose,
    .flops = linear_cross_entropy_flops,
};

wg_tensor *wg_linear_cross_entropy(wg_tensor *x, wg_tensor *linear_weight, wg_tensor *target,
                                   wg_tensor *linear_bias, int64_t ignore_index,
                                   const wg_cross_entropy_options *options) {
    if (!x || !linear_weight || !target)
        return NULL;
    wg_tensor *loss = NULL, *floating[] = {x, linear_weight, linear_bias};
    wg_dtype dtype;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg_dtype_is_float(target->spec.dtype))
        loss = wg_cross_entropy(wg_linear_op(x, linear_weight, linear_bias), target, ignore_index,
                                options);
    else if (wg__widen_all(3, floating, &dtype)) {
        if (target->spec.dtype == WG_I32)
            target = wg_cast(target, WG_I64);
        wg_tensor *inputs[] = {floating[0], floating[1], target, floating[2], NULL};
        wg_tensor *outputs[2] = {NULL};
        wg__loss_options record;
        if (!wg_error_pending() &&
            wg__loss_options_make(linear_cross_entropy.name, inputs[X]->spec.dtype, ignore_index,
                                  options, &record, &inputs[CLASS_WEIGHT]) == 0) {
            record.rounds = inputs[X]->spec.dtype == WG_F32 && wg__matmul_dtype() == WG_BF16;
            wg_apply(&linear_cross_entropy, CLASS_WEIGHT + 1, inputs, &record, outputs);
        }
        loss = outputs[LOSS];
        if (loss && options && options->correct)
            *options->correct = (int64_t)wg_item(outputs[CORRECT]);
    }
    return wg_scope_end(&scope, loss);
}

const wg__op_table wg__ops_linear_loss = WG__OP_TABLE(&linear_cross_entropy);
