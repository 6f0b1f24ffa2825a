/* Whole Jacobians and Hessians, a row or a column at a time. */
#include <string.h>

#include "autograd/forward.h"
#include "autograd/transform.h"
#include "tensor/ops.h"

/* A tensor as x, of zeros but for a 1 at one element. */
static wg_tensor *basis_vector(const wg_tensor *x, int64_t element) {
    int64_t count = wg_tensor_count(x);
    wg_tensor *flat = wg_zeros(x->spec.dtype, 1, &count);
    if (wg_fill_(wg_select(flat, 0, element), 1) < 0)
        return NULL;
    return wg_reshape(flat, x->spec.ndim, x->spec.shape);
}

typedef struct job {
    wg_function function;
    void *context;
    int input_count, output_count;
    wg_tensor *const *inputs;
    wg_tensor **values; /* what a run gave */
    bool create_graph;
    wg_tensor **jacobians;
} job;

static int64_t count_elements(int count, wg_tensor *const *tensors) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += wg__varies(tensors[i]) ? wg_tensor_count(tensors[i]) : 0;
    return sum;
}

static int check_rank(const wg_tensor *y, const wg_tensor *x) {
    if (y->spec.ndim + x->spec.ndim <= WG_MAX_DIMS)
        return 0;
    char output[128], input[128];
    return wg_fail(WG_ERROR_SHAPE, "jacobian",
                   "the derivative of %s by %s has %d dimensions; there are at most %d",
                   wg_spec_text(output, sizeof output, &y->spec),
                   wg_spec_text(input, sizeof input, &x->spec), y->spec.ndim + x->spec.ndim,
                   WG_MAX_DIMS);
}

static int check_ranks(const job *job) {
    for (int j = 0; j < job->output_count; j++)
        for (int i = 0; i < job->input_count; i++)
            if (wg__varies(job->values[j]) && wg__varies(job->inputs[i]) &&
                check_rank(job->values[j], job->inputs[i]) < 0)
                return -1;
    return 0;
}

/* The slices of one Jacobian, rows (axis 0) or columns (axis -1), as one tensor. */
static wg_tensor *assemble(int64_t count, wg_tensor *const *slices, int axis, const wg_tensor *y,
                           const wg_tensor *x) {
    int64_t shape[WG_MAX_DIMS];
    const int ndim = y->spec.ndim + x->spec.ndim;
    memcpy(shape, y->spec.shape, (size_t)y->spec.ndim * sizeof *shape);
    memcpy(shape + y->spec.ndim, x->spec.shape, (size_t)x->spec.ndim * sizeof *shape);
    if (count == 0)
        return wg_zeros(x->spec.dtype, ndim, shape);
    wg_tensor *all = wg_stack((int)count, slices, axis);
    return wg_reshape(wg_cast(all, x->spec.dtype), ndim, shape);
}

/* ---- Rows, by reverse mode ---- */

/* The gradients of one element of output j, into row `element` of each input's rows. */
static int make_row(const job *job, wg_tensor *const *stand_ins, int j, int64_t element,
                    wg_tensor **gradients) {
    const wg__pull pull = {.input_count = job->input_count,
                           .output_count = 1,
                           .inputs = stand_ins,
                           .outputs = &job->values[j],
                           .create_graph = job->create_graph,
                           .again = true};
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *cotangent = basis_vector(job->values[j], element);
    int status = cotangent ? wg__pull_back(&pull, &cotangent, gradients) : -1;
    wg__hand_out(status, job->input_count, gradients);
    wg_scope_end(&scope, NULL);
    return status;
}

static int make_rows(const job *job, wg_tensor *const *stand_ins, int j) {
    const int n = job->input_count;
    const int64_t count = wg_tensor_count(job->values[j]);
    wg_tensor **gradients = wg__calloc((size_t)n + 1, sizeof *gradients);
    wg_tensor **rows = wg__calloc((size_t)(n * count) + 1, sizeof *rows);
    int status = gradients && rows ? 0 : -1;
    for (int64_t e = 0; e < count && status == 0; e++) {
        status = make_row(job, stand_ins, j, e, gradients);
        for (int i = 0; i < n; i++)
            rows[i * count + e] = gradients[i];
    }
    for (int i = 0; i < n && status == 0; i++) {
        if (!wg__varies(job->inputs[i]))
            continue;
        wg_tensor *whole = assemble(count, rows + i * count, 0, job->values[j], job->inputs[i]);
        job->jacobians[j * n + i] = whole;
        status = whole ? 0 : -1;
    }
    wg__free(gradients);
    wg__free(rows);
    return status;
}

/* ---- Columns, by forward mode ---- */

static int make_column(const job *job, wg_tensor *const *inputs, int i, int64_t element,
                       wg_tensor **tangents, wg_tensor **columns) {
    wg_scope scope;
    wg_scope_begin(&scope);
    tangents[i] = basis_vector(inputs[i], element);
    int status = tangents[i] ? wg_jvp(job->function, job->context, job->input_count, inputs,
                                      tangents, job->output_count, NULL, columns)
                             : -1;
    tangents[i] = NULL;
    for (int j = 0; j < job->output_count && status == 0 && !job->create_graph; j++)
        if (columns[j])
            columns[j] = wg__without_graph(columns[j]);
    wg__hand_out(status, job->output_count, columns);
    wg_scope_end(&scope, NULL);
    return status;
}

static int make_columns(const job *job, wg_tensor *const *inputs, int i) {
    const int n = job->input_count, m = job->output_count;
    const int64_t count = wg_tensor_count(inputs[i]);
    wg_tensor **tangents = wg__calloc((size_t)(n + m), sizeof *tangents), **found = tangents + n;
    wg_tensor **columns = wg__calloc((size_t)(m * count) + 1, sizeof *columns);
    int status = tangents && columns ? 0 : -1;
    for (int64_t e = 0; e < count && status == 0; e++) {
        status = make_column(job, inputs, i, e, tangents, found);
        for (int j = 0; j < m; j++)
            columns[j * count + e] = found[j];
    }
    for (int j = 0; j < m && status == 0; j++) {
        if (!wg__varies(job->values[j]))
            continue;
        wg_tensor *whole = assemble(count, columns + j * count, -1, job->values[j], inputs[i]);
        job->jacobians[j * n + i] = whole;
        status = whole ? 0 : -1;
    }
    wg__free(tangents);
    wg__free(columns);
    return status;
}

/* ---- Either ---- */

/* A first run, which tells the sizes and serves the rows. */
static int run(job *job, wg_tensor **inputs) {
    if (wg__make_stand_ins(job->input_count, job->inputs, inputs) < 0 ||
        wg__call_function(job->function, job->context, job->input_count, inputs, job->output_count,
                          job->values, "jacobian") < 0 ||
        check_ranks(job) < 0)
        return -1;
    int status = 0;
    if (count_elements(job->input_count, inputs) >=
        count_elements(job->output_count, job->values)) {
        for (int j = 0; j < job->output_count && status == 0; j++)
            if (wg__varies(job->values[j]))
                status = make_rows(job, inputs, j);
        return status;
    }
    for (int i = 0; i < job->input_count && status == 0; i++) {
        inputs[i] = job->create_graph ? job->inputs[i] : wg__without_graph(job->inputs[i]);
        status = inputs[i] || !job->inputs[i] ? 0 : -1;
    }
    for (int i = 0; i < job->input_count && status == 0; i++)
        if (wg__varies(inputs[i]))
            status = make_columns(job, inputs, i);
    return status;
}

int wg_jacobian(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
                int output_count, const wg_transform_options *options, wg_tensor **jacobians) {
    memset(jacobians, 0, (size_t)(output_count * input_count) * sizeof *jacobians);
    if (wg_error_pending())
        return -1;
    wg_tensor **room = wg__calloc((size_t)(input_count + output_count) + 1, sizeof *room);
    if (!room)
        return -1;
    job job = {function,
               context,
               input_count,
               output_count,
               inputs,
               room + input_count,
               options && options->create_graph,
               jacobians};
    wg_scope scope;
    wg_scope_begin(&scope);
    bool was = wg_set_grad_enabled(true);
    int status = run(&job, room);
    wg_set_grad_enabled(was);
    wg__hand_out(status, output_count * input_count, jacobians);
    wg_scope_end(&scope, NULL);
    wg__free(room);
    return status;
}

/* ---- The Jacobian of the gradient ---- */

/* A function of one element, to be differentiated. */
typedef struct differentiated {
    wg_function function;
    void *context;
} differentiated;

/* (inputs) -> the gradients of those that vary. */
static int gradient_function(int input_count, wg_tensor *const *inputs, int output_count,
                             wg_tensor **outputs, void *context) {
    const differentiated *of = context;
    const wg_transform_options recorded = {.create_graph = true};
    wg_tensor **gradients = wg__calloc((size_t)input_count + 1, sizeof *gradients);
    if (!gradients)
        return -1;
    int status =
        wg_vjp(of->function, of->context, input_count, inputs, 1, NULL, &recorded, NULL, gradients);
    for (int i = 0, k = 0; i < input_count && k < output_count && status == 0; i++)
        if (gradients[i])
            outputs[k++] = gradients[i];
    wg__free(gradients);
    return status;
}

int wg_hessian(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
               const wg_transform_options *options, wg_tensor **hessians) {
    const int n = input_count;
    memset(hessians, 0, (size_t)(n * n) * sizeof *hessians);
    int varying = 0, status;
    for (int i = 0; i < n; i++)
        varying += wg__varies(inputs[i]);
    wg_tensor **found = wg__calloc((size_t)(varying * n) + 1, sizeof *found);
    if (!found)
        return -1;
    differentiated gradient = {function, context};
    status = wg_jacobian(gradient_function, &gradient, n, inputs, varying, options, found);
    for (int i = 0, row = 0; i < n && status == 0; i++)
        if (wg__varies(inputs[i]))
            memcpy(hessians + i * n, found + row++ * n, (size_t)n * sizeof *found);
    wg__free(found);
    return status;
}
