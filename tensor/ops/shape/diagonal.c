/* Diagonals of matrices, and the triangles that they bound.
 *
 *     offset -1   0   1           columns - rows
 *              \   \   \
 *             [ .   .   . ]
 *             [ .   .   . ]    */
#include "tensor/convert.h"
#include "tensor/iter.h"
#include "tensor/ops/elementwise/elementwise.h"
#include "tensor/ops/registry.h"

#include <string.h>

/* ---- diagonal: y[..., i] = x[.. i .. i + offset ..].   dx = diag_embed of g. diag_embed: y =
 * zeros with x on a diagonal.   dx = diagonal of g. Each is the other's adjoint. ---- */

typedef struct diagonal_options {
    int axis_a, axis_b; /* of rows and columns, as resolved: not negative, and not the same */
    int64_t offset;
    int64_t rows, columns; /* diag_embed: the sizes of the two axes */
} diagonal_options;

static int64_t diagonal_length(int64_t rows, int64_t columns, int64_t offset) {
    if (offset > 0)
        columns = offset < columns ? columns - offset : 0;
    else
        rows = offset > -rows ? rows + offset : 0;
    return rows < columns ? rows : columns;
}

/* The shape of x with its two axes replaced by one of the diagonal, the last. */
static void diagonal_spec(const wg_spec *x, const diagonal_options *options, wg_spec *y) {
    const int a = options->axis_a, b = options->axis_b;
    *y = (wg_spec){.dtype = x->dtype};
    for (int i = 0; i < x->ndim; i++)
        if (i != a && i != b)
            y->shape[y->ndim++] = x->shape[i];
    y->shape[y->ndim++] = diagonal_length(x->shape[a], x->shape[b], options->offset);
}

static wg_tensor *diagonal_view(const wg_tensor *x, const diagonal_options *options) {
    const int a = options->axis_a, b = options->axis_b;
    wg_spec spec;
    int64_t strides[WG_MAX_DIMS], offset = x->offset;
    int ndim = 0;
    diagonal_spec(&x->spec, options, &spec);
    for (int i = 0; i < x->spec.ndim; i++)
        if (i != a && i != b)
            strides[ndim++] = x->strides[i];
    strides[ndim] = x->strides[a] + x->strides[b];
    if (spec.shape[ndim] > 0)
        offset += options->offset > 0 ? options->offset * x->strides[b]
                                      : -options->offset * x->strides[a];
    return wg__tensor_view(x, &spec, strides, offset);
}

static int diagonal_infer(wg_call *call) {
    const diagonal_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    if (options->axis_a >= x->ndim || options->axis_b >= x->ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there are no axes %d and %d", options->axis_a,
                           options->axis_b);
    diagonal_spec(x, options, &call->output_specs[0]);
    return 0;
}

static int diagonal_forward(wg_call *call) {
    call->outputs[0] = diagonal_view(call->inputs[0], call->options);
    return call->outputs[0] == NULL ? -1 : 0;
}

static const wg_op diag_embed;

static int diagonal_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    diagonal_options options = *(const diagonal_options *)call->options;
    options.rows = call->input_specs[0].shape[options.axis_a];
    options.columns = call->input_specs[0].shape[options.axis_b];
    gradients[0] = wg_apply_one(&diag_embed, 1, cotangents, &options);
    return wg__vjp_status();
}

/* Matrices of all forms, and where their axes are; x is the operand of diagonal. */
static const struct {
    int ndim;
    int64_t shape[3];
    diagonal_options options;
} sample_matrices[] = {
    {2, {3, 3}, {0, 1, 0, 3, 3}},     {2, {2, 4}, {0, 1, 1, 2, 4}},
    {3, {3, 2, 4}, {2, 0, -1, 4, 3}}, {3, {2, 3, 2}, {1, 2, -2, 3, 2}},
    {2, {2, 2}, {1, 0, 5, 2, 2}},
};

static int sample_matrix(int index, wg_generator *generator, wg_sample *sample, bool whole) {
    wg_spec spec = {.dtype = WG_F64}, on_diagonal;
    if (index >= (int)(sizeof sample_matrices / sizeof *sample_matrices))
        return 0;
    spec.ndim = sample_matrices[index].ndim;
    memcpy(spec.shape, sample_matrices[index].shape, sizeof sample_matrices[index].shape);
    sample->options = &sample_matrices[index].options;
    diagonal_spec(&spec, sample->options, &on_diagonal);
    const wg_spec *of = whole ? &spec : &on_diagonal;
    sample->inputs[0] = wg__sample_normal(generator, of->ndim, of->shape);
    return wg__sample_status(sample, 1);
}

static int diagonal_sample(int index, wg_generator *generator, wg_sample *sample) {
    return sample_matrix(index, generator, sample, true);
}

static const wg_op diagonal = {
    .name = "diagonal",
    .doc = "y[..., i] = x at i of one axis and i + offset of another; these two axes go, and the "
           "diagonal is the last. A view.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(diagonal_options),
    .differentiable = 1,
    .is_view = true,
    .infer = diagonal_infer,
    .forward = diagonal_forward,
    .vjp = diagonal_vjp,
    .jvp = wg_jvp_linear,
    .sample = diagonal_sample,
};

/* Resolves the axes of a tensor of `ndim`; false with an error. */
static bool resolve_axes(diagonal_options *options, int ndim, int axis_a, int axis_b,
                         const char *where) {
    options->axis_a = wg__axis(axis_a, ndim, where);
    options->axis_b = options->axis_a < 0 ? -1 : wg__axis(axis_b, ndim, where);
    if (options->axis_b < 0)
        return false;
    if (options->axis_a == options->axis_b)
        wg_fail(WG_ERROR_INDEX, where, "axis %d is given twice; a diagonal lies in two", axis_a);
    return options->axis_a != options->axis_b;
}

wg_tensor *wg_diagonal(wg_tensor *x, int64_t offset, int axis_a, int axis_b) {
    diagonal_options options = {.offset = offset};
    if (x == NULL || !resolve_axes(&options, x->spec.ndim, axis_a, axis_b, "diagonal"))
        return NULL;
    return wg_apply_one(&diagonal, 1, &x, &options);
}

static int diag_embed_infer(wg_call *call) {
    const diagonal_options *options = call->options;
    const wg_spec *x = &call->input_specs[0];
    const int64_t length = diagonal_length(options->rows, options->columns, options->offset);
    const int ndim = x->ndim + 1;
    int64_t shape[WG_MAX_DIMS];
    if (ndim > WG_MAX_DIMS || options->axis_a >= ndim || options->axis_b >= ndim)
        return wg__op_fail(call, WG_ERROR_SHAPE, "one axis more than %d is beyond %d", x->ndim,
                           WG_MAX_DIMS);
    if (x->ndim < 1 || x->shape[x->ndim - 1] != length)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the last axis must have size %lld",
                           (long long)length);
    for (int i = 0, from = 0; i < ndim; i++)
        shape[i] = i == options->axis_a   ? options->rows
                   : i == options->axis_b ? options->columns
                                          : x->shape[from++];
    return wg__spec_make(&call->output_specs[0], x->dtype, ndim, shape, call->op->name);
}

static int diag_embed_forward(wg_call *call) {
    wg_tensor *y = call->outputs[0];
    wg_tensor *on_diagonal = diagonal_view(y, call->options);
    if (on_diagonal == NULL || wg_fill_(y, 0) < 0)
        return -1;
    wg__convert(on_diagonal, call->inputs[0]);
    return 0;
}

static int diag_embed_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_apply_one(&diagonal, 1, cotangents, call->options);
    return wg__vjp_status();
}

static int diag_embed_sample(int index, wg_generator *generator, wg_sample *sample) {
    return sample_matrix(index, generator, sample, false);
}

static int diag_embed_bench(wg_generator *generator, wg_sample *sample) {
    static const diagonal_options options = {1, 2, 0, 256, 256};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){64, 256});
    return wg__sample_status(sample, 1);
}

static const wg_op diag_embed = {
    .name = "diag_embed",
    .doc = "y = zeros with the last axis of x on the diagonal of two new axes: the adjoint of "
           "diagonal.",
    .min_inputs = 1,
    .max_inputs = 1,
    .output_count = 1,
    .options_size = sizeof(diagonal_options),
    .differentiable = 1,
    .infer = diag_embed_infer,
    .forward = diag_embed_forward,
    .vjp = diag_embed_vjp,
    .jvp = wg_jvp_linear,
    .sample = diag_embed_sample,
    .bench = diag_embed_bench,
};

wg_tensor *wg_diag_embed(wg_tensor *x, int64_t offset, int axis_a, int axis_b) {
    diagonal_options options = {.offset = offset};
    char text[160];
    if (x == NULL)
        return NULL;
    if (x->spec.ndim < 1 || offset > INT32_MAX || offset < -INT32_MAX) {
        wg_fail(WG_ERROR_SHAPE, "diag_embed",
                "%s at offset %lld; wanted a rank of 1 or more, and an offset of 31 bits",
                wg_spec_text(text, sizeof text, &x->spec), (long long)offset);
        return NULL;
    }
    if (!resolve_axes(&options, x->spec.ndim + 1, axis_a, axis_b, "diag_embed"))
        return NULL;
    options.rows = options.columns =
        x->spec.shape[x->spec.ndim - 1] + (offset > 0 ? offset : -offset);
    return wg_apply_one(&diag_embed, 1, &x, &options);
}

/* ---- tril, triu: y = x on one side of a diagonal of the last two axes, 0 on the other.   dx = the
 * same of g. ---- */

typedef struct triangle_options {
    int64_t diagonal;
} triangle_options;

static const wg_op tril, triu;

typedef struct triangle_job {
    const char *x;
    char *y;
    int64_t rows, columns, size; /* size: bytes of an element */
    int64_t diagonal;
    bool lower;
} triangle_job;

static int64_t limited(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static void copy_triangles(int64_t begin, int64_t end, void *context) {
    const triangle_job *job = context;
    const int64_t size = job->size, bytes = job->columns * size;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % job->rows;
        /* The column where the diagonal begins to lie behind, in tril, or is reached, in triu. */
        const int64_t bend = limited(row + job->diagonal + job->lower, 0, job->columns) * size;
        const char *x = job->x + i * bytes;
        char *y = job->y + i * bytes;
        const int64_t kept = job->lower ? 0 : bend, zero = job->lower ? bend : 0;
        const int64_t kept_bytes = job->lower ? bend : bytes - bend;
        memcpy(y + kept, x + kept, (size_t)kept_bytes);
        memset(y + zero, 0, (size_t)(bytes - kept_bytes));
    }
}

static int triangle_infer(wg_call *call) {
    if (call->input_specs[0].ndim < 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there is no matrix; wanted a rank of 2 or more");
    return wg__infer_like(call);
}

static int triangle_forward(wg_call *call) {
    const wg_tensor *x = wg_contiguous(call->inputs[0]);
    if (x == NULL)
        return -1;
    const int ndim = x->spec.ndim;
    const triangle_options *options = call->options;
    triangle_job job = {.x = wg__tensor_address(x),
                        .y = wg__tensor_address(call->outputs[0]),
                        .rows = x->spec.shape[ndim - 2],
                        .columns = x->spec.shape[ndim - 1],
                        .size = (int64_t)wg_dtype_size(x->spec.dtype),
                        .lower = call->op == &tril};
    job.diagonal = limited(options->diagonal, -job.rows - 1, job.columns + 1);
    if (wg_tensor_count(x) > 0)
        wg__parallel_for(wg_tensor_count(x) / job.columns, WG__GRAIN / job.columns + 1,
                         copy_triangles, &job);
    return 0;
}

static int triangle_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_apply_one(call->op, 1, cotangents, call->options);
    return wg__vjp_status();
}

static int triangle_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const triangle_options options[] = {{0}, {-1}, {2}, {-9}};
    static const int64_t shapes[][3] = {{1, 3, 3}, {2, 4, 2}, {1, 2, 5}, {2, 2, 2}};
    if (index >= (int)(sizeof options / sizeof *options))
        return 0;
    sample->options = &options[index];
    sample->inputs[0] = wg__sample_normal(generator, 3, shapes[index]);
    return wg__sample_status(sample, 1);
}

static int triangle_bench(wg_generator *generator, wg_sample *sample) {
    static const triangle_options options = {0};
    sample->options = &options;
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 2048});
    return wg__sample_status(sample, 1);
}

#define TRIANGLE(NAME, DOC)                                                                        \
    .name = NAME, .doc = DOC, .min_inputs = 1, .max_inputs = 1, .output_count = 1,                 \
    .options_size = sizeof(triangle_options), .differentiable = 1, .infer = triangle_infer,        \
    .forward = triangle_forward, .vjp = triangle_vjp, .jvp = wg_jvp_linear,                        \
    .sample = triangle_sample, .bench = triangle_bench

static const wg_op tril = {
    TRIANGLE("tril", "y = x on and below a diagonal of the last two axes, 0 above it.")};
static const wg_op triu = {
    TRIANGLE("triu", "y = x on and above a diagonal of the last two axes, 0 below it.")};

wg_tensor *wg_tril(wg_tensor *x, int64_t diagonal) {
    return wg_apply_one(&tril, 1, &x, &(triangle_options){diagonal});
}

wg_tensor *wg_triu(wg_tensor *x, int64_t diagonal) {
    return wg_apply_one(&triu, 1, &x, &(triangle_options){diagonal});
}

static const wg_op *const ops[] = {&diagonal, &diag_embed, &tril, &triu};

const wg__op_family wg__family_diagonal = {ops, sizeof ops / sizeof *ops};
