/* Transforms of functions: wg_jvp, wg_vjp, wg_hvp, wg_jacobian, wg_hessian. */
#include "autograd/functional.h"

#include <string.h>

#include "autograd/internal.h"

/* Whether an input or output has derivatives: it is not NULL, and floating. */
static bool varies(const wg_tensor *x) {
    return x && wg_dtype_is_float(x->spec.dtype);
}

/* A handle as x, with its tangents, that requires no gradient. [scope] */
static wg_tensor *without_graph(wg_tensor *x) {
    wg_tensor *y = wg_alias(x);
    if (y && y->node) {
        wg__node_release(y->node);
        y->node = NULL;
    }
    return y;
}

/* wg__stand_in for each input that varies, else the input itself. [scope] */
static int make_stand_ins(int count, wg_tensor *const *inputs, wg_tensor **stand_ins) {
    for (int i = 0; i < count; i++) {
        stand_ins[i] = varies(inputs[i]) ? wg__stand_in(inputs[i]) : inputs[i];
        if (inputs[i] && !stand_ins[i])
            return -1;
    }
    return 0;
}

/* ---- Forward mode ---- */

static int check_tangent(const char *where, int input, const wg_tensor *x,
                         const wg_tensor *tangent) {
    char is[128], should[128];
    if (!x)
        return wg_fail(WG_ERROR_ARGUMENT, where, "a tangent for input %d, which is NULL", input);
    if (!wg_dtype_is_float(x->spec.dtype))
        return wg_fail(WG_ERROR_DTYPE, where, "input %d is %s, which has no tangent; wanted NULL",
                       input, wg_spec_text(is, sizeof is, &x->spec));
    if (wg__same_shape(&x->spec, &tangent->spec) && x->spec.dtype == tangent->spec.dtype)
        return 0;
    return wg_fail(x->spec.dtype == tangent->spec.dtype ? WG_ERROR_SHAPE : WG_ERROR_DTYPE, where,
                   "a tangent of %s for input %d of %s",
                   wg_spec_text(is, sizeof is, &tangent->spec), input,
                   wg_spec_text(should, sizeof should, &x->spec));
}

int wg_jvp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
           wg_tensor *const *tangents, int output_count, wg_tensor **outputs,
           wg_tensor **output_tangents) {
    memset(output_tangents, 0, (size_t)output_count * sizeof *output_tangents);
    if (outputs)
        memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (wg_error_pending())
        return -1;
    wg_tensor **room = wg__calloc((size_t)(input_count + output_count) + 1, sizeof *room);
    if (!room)
        return -1;
    wg_tensor **duals = room, **values = room + input_count;
    wg__level level;
    wg_scope scope;
    wg__level_begin(&level);
    wg_scope_begin(&scope);
    int status = 0;
    for (int i = 0; i < input_count && status == 0; i++) {
        duals[i] = wg_alias(inputs[i]);
        if ((inputs[i] && !duals[i]) ||
            (tangents[i] && (check_tangent("jvp", i, inputs[i], tangents[i]) < 0 ||
                             wg__tangent_push(duals[i], &level, tangents[i]) < 0)))
            status = -1;
    }
    if (status == 0)
        status =
            wg__call_function(function, context, input_count, duals, output_count, values, "jvp");
    for (int j = 0; j < output_count && status == 0; j++) {
        wg_tensor *y = values[j], *tangent = wg__tangent_of(y, &level);
        const bool is_float = wg_dtype_is_float(y->spec.dtype);
        values[j] = wg__primal(y, &level);
        if (values[j] && is_float)
            output_tangents[j] = tangent ? wg_alias(tangent) : wg_zeros_like(y);
        status = values[j] && (output_tangents[j] || !is_float) ? 0 : -1;
    }
    if (status == 0 && outputs)
        memcpy(outputs, values, (size_t)output_count * sizeof *outputs);
    wg__escape_results(status, output_count, outputs);
    wg__escape_results(status, output_count, output_tangents);
    wg_scope_end(&scope, NULL);
    wg__level_end(&level);
    wg__free(room);
    return status;
}

/* ---- Reverse mode ---- */

/* A recorded run of a function. */
typedef struct recorded_run {
    int input_count, output_count;
    wg_tensor *const *inputs; /* stand-ins */
    wg_tensor *const *outputs;
    bool create_graph;
    bool again; /* more than one backward pass follows */
} recorded_run;

/* Computes the gradients of the run's inputs, NULL where an input does not vary. The outputs may
 * depend on no input. */
static int pull_back(const recorded_run *run, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const int n = run->input_count, m = run->output_count;
    wg_tensor **room = wg__calloc((size_t)(wg__times(2, m) + wg__times(2, n)), sizeof *room);
    if (!room)
        return -1;
    wg_tensor **ys = room, **weights = ys + m, **xs = weights + m, **found = xs + n;
    int y_count = 0, x_count = 0, status = 0;
    for (int j = 0; j < m; j++)
        if (wg_requires_grad(run->outputs[j])) {
            weights[y_count] = cotangents ? cotangents[j] : NULL;
            ys[y_count++] = run->outputs[j];
        }
    for (int i = 0; i < n; i++)
        if (varies(run->inputs[i]))
            xs[x_count++] = run->inputs[i];
    const wg_backward_options options = {.retain_graph = run->again,
                                         .create_graph = run->create_graph};
    if (y_count > 0)
        status = wg_grad(y_count, ys, weights, x_count, xs, &options, found);
    for (int i = 0, k = 0; i < n; i++) {
        gradients[i] = NULL;
        if (status < 0 || !varies(run->inputs[i]))
            continue;
        gradients[i] = y_count > 0 ? found[k++] : wg_zeros_like(run->inputs[i]);
        status = gradients[i] ? 0 : -1;
    }
    wg__free(room);
    return status;
}

int wg_vjp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
           int output_count, wg_tensor *const *cotangents, const wg_transform_options *options,
           wg_tensor **outputs, wg_tensor **gradients) {
    memset(gradients, 0, (size_t)input_count * sizeof *gradients);
    if (outputs)
        memset(outputs, 0, (size_t)output_count * sizeof *outputs);
    if (wg_error_pending())
        return -1;
    wg_tensor **room = wg__calloc((size_t)(input_count + output_count) + 1, sizeof *room);
    if (!room)
        return -1;
    wg_tensor **values = room + input_count;
    recorded_run run = {.input_count = input_count,
                        .output_count = output_count,
                        .create_graph = options && options->create_graph};
    wg_scope scope;
    wg_scope_begin(&scope);
    bool was = wg_set_grad_enabled(true);
    int status = make_stand_ins(input_count, inputs, room);
    if (status == 0)
        status =
            wg__call_function(function, context, input_count, room, output_count, values, "vjp");
    run.inputs = room;
    run.outputs = values;
    if (status == 0)
        status = pull_back(&run, cotangents, gradients);
    wg_set_grad_enabled(was);
    for (int j = 0; j < output_count && status == 0 && outputs; j++) {
        outputs[j] = run.create_graph ? wg_alias(values[j]) : without_graph(values[j]);
        status = outputs[j] ? 0 : -1;
    }
    wg__escape_results(status, output_count, outputs);
    wg__escape_results(status, input_count, gradients);
    wg_scope_end(&scope, NULL);
    wg__free(room);
    return status;
}

typedef struct hessian_of {
    wg_function function;
    void *context;
    bool create_graph;
} hessian_of;

/* Reverse over reverse: the Hessian is symmetric, so that it is the gradient of <gradient, vector>.
 * A tenth cheaper than forward over reverse, which runs fused ops by their decompositions from the
 * start (256 rows through 4 layers of width 512 with tanh, on one thread: 4.1 times the gradient's
 * time against 4.6). */
static int hvp(const hessian_of *of, int count, wg_tensor *const *inputs, wg_tensor *const *vectors,
               wg_tensor **stand_ins, wg_tensor **value, wg_tensor **products) {
    wg_tensor **gradients = stand_ins + count, **weights = gradients + count;
    for (int i = 0; i < count; i++)
        if (vectors[i] && check_tangent("hvp", i, inputs[i], vectors[i]) < 0)
            return -1;
    const wg_transform_options recorded = {.create_graph = true};
    if (make_stand_ins(count, inputs, stand_ins) < 0 ||
        wg_vjp(of->function, of->context, count, stand_ins, 1, NULL, &recorded, value, gradients) <
            0)
        return -1;
    if (wg_tensor_count(*value) != 1)
        return wg_fail(WG_ERROR_SHAPE, "hvp", "the output has %lld elements; wanted one",
                       (long long)wg_tensor_count(*value));
    int wanted = 0;
    for (int i = 0; i < count; i++)
        if (vectors[i]) {
            gradients[wanted] = gradients[i];
            weights[wanted++] = vectors[i];
        }
    const recorded_run run = {.input_count = count,
                              .output_count = wanted,
                              .inputs = stand_ins,
                              .outputs = gradients,
                              .create_graph = of->create_graph};
    return pull_back(&run, weights, products);
}

int wg_hvp(wg_function function, void *context, int input_count, wg_tensor *const *inputs,
           wg_tensor *const *vectors, const wg_transform_options *options, wg_tensor **output,
           wg_tensor **products) {
    memset(products, 0, (size_t)input_count * sizeof *products);
    if (output)
        *output = NULL;
    if (wg_error_pending())
        return -1;
    wg_tensor **room = wg__calloc((size_t)(wg__times(3, input_count) + 1), sizeof *room),
              *value = NULL;
    if (!room)
        return -1;
    const hessian_of of = {function, context, options && options->create_graph};
    wg_scope scope;
    wg_scope_begin(&scope);
    bool was = wg_set_grad_enabled(true);
    int status = hvp(&of, input_count, inputs, vectors, room, &value, products);
    wg_set_grad_enabled(was);
    if (status == 0 && output) {
        *output = of.create_graph ? wg_alias(value) : without_graph(value);
        status = *output ? 0 : -1;
    }
    wg__escape_results(status, output != NULL, output);
    wg__escape_results(status, input_count, products);
    wg_scope_end(&scope, NULL);
    wg__free(room);
    return status;
}

/* ---- Whole Jacobians and Hessians, a row or a column at a time ---- */

typedef struct jacobian_job {
    wg_function function;
    void *context;
    int input_count, output_count;
    wg_tensor *const *inputs;
    wg_tensor **values; /* the outputs of a run */
    bool create_graph;
    wg_tensor **jacobians;
} jacobian_job;

static int64_t count_elements(int count, wg_tensor *const *tensors) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += varies(tensors[i]) ? wg_tensor_count(tensors[i]) : 0;
    return sum;
}

/* ---- Slices: rows by reverse mode, columns by forward mode. wg_vmap computes many slices at once;
 * if an op has no batching rule, they are computed one by one. ---- */

/* At most so many elements in the cotangents or tangents of a pass, so that they fit the cache. */
enum { ELEMENTS_OF_A_PASS = 1 << 16 };

typedef struct pass_job {
    const jacobian_job *job;
    wg_tensor *const *inputs;
    bool rows;
    int of; /* the output, or the input */
} pass_job;

/* A cotangent of an output -> gradients of all inputs, or a tangent of an input -> tangents of all
 * outputs; only where they vary. */
static int one_slice(int input_count, wg_tensor *const *inputs, int output_count,
                     wg_tensor **outputs, void *context) {
    (void)input_count;
    const pass_job *p = context;
    const jacobian_job *job = p->job;
    const int n = job->input_count, m = job->output_count;
    wg_tensor **room = wg__calloc((size_t)wg__times(n + m, 2) + 1, sizeof *room);
    if (!room)
        return -1;
    wg_tensor **tangents = room, **found = room + n;
    int status;
    if (p->rows) {
        const recorded_run run = {.input_count = n,
                                  .output_count = 1,
                                  .inputs = p->inputs,
                                  .outputs = &job->values[p->of],
                                  .create_graph = job->create_graph,
                                  .again = true};
        status = pull_back(&run, inputs, found);
    } else {
        tangents[p->of] = inputs[0];
        status = wg_jvp(job->function, job->context, n, p->inputs, tangents, m, NULL, found);
    }
    for (int o = 0, k = 0; k < output_count && status == 0; o++)
        if (found[o])
            outputs[k++] = found[o];
    wg__free(room);
    return status;
}

/* Rows first to first + count of the identity, each in the shape of x. */
static wg_tensor *basis(const wg_tensor *x, int64_t first, int64_t count) {
    int64_t shape[WG_MAX_DIMS + 1] = {count};
    memcpy(shape + 1, x->spec.shape, (size_t)x->spec.ndim * sizeof *shape);
    wg_tensor *places = wg_arange(WG_I64, (double)first, (double)(first + count), 1);
    wg_tensor *rows = wg_cast(wg_one_hot(places, wg_tensor_count(x)), x->spec.dtype);
    return wg_reshape(rows, x->spec.ndim + 1, shape);
}

/* Concatenates the slices of all passes to the Jacobian of y by x. The slices of a pass are (count,
 * sizes of x) for rows, and (count, sizes of y) for columns. */
static wg_tensor *joined(int64_t pass_count, wg_tensor *const *passes, bool rows,
                         const wg_tensor *y, const wg_tensor *x) {
    int64_t shape[WG_MAX_DIMS], from = 0, to = -1;
    const int ndim = y->spec.ndim + x->spec.ndim;
    memcpy(shape, y->spec.shape, (size_t)y->spec.ndim * sizeof *shape);
    memcpy(shape + y->spec.ndim, x->spec.shape, (size_t)x->spec.ndim * sizeof *shape);
    if (pass_count == 0)
        return wg_zeros(x->spec.dtype, ndim, shape);
    wg_tensor *all = pass_count == 1 ? passes[0] : wg_cat((int)pass_count, passes, 0);
    if (!rows && all)
        all = wg_movedim(all, 1, &from, &to);
    return wg_reshape(wg_cast(all, x->spec.dtype), ndim, shape);
}

/* Computes the slices of a single direction: 1 at one element, 0 at all others. */
static int run_one(pass_job *pass, const wg_tensor *of, int64_t element, int varying,
                   wg_tensor **slices) {
    const int64_t count = wg_tensor_count(of);
    wg_tensor *flat = wg_zeros(of->spec.dtype, 1, &count);
    if (wg_fill_(wg_select(flat, 0, element), 1) < 0)
        return -1;
    wg_tensor *direction = wg_reshape(flat, of->spec.ndim, of->spec.shape);
    int status = direction ? one_slice(1, &direction, varying, slices, pass) : -1;
    for (int v = 0; v < varying && status == 0; v++) {
        wg_tensor *own = pass->job->create_graph ? slices[v] : without_graph(slices[v]);
        slices[v] = wg_unsqueeze(own, 0);
        status = slices[v] ? 0 : -1;
    }
    return status;
}

/* By rows, the Jacobians of output `k` by all inputs; by columns, the Jacobians of all outputs by
 * input `k`. `each` slices in a pass. */
static int make_slices(const jacobian_job *job, wg_tensor *const *inputs, bool rows, int k,
                       int64_t each) {
    const int n = job->input_count, others = rows ? n : job->output_count;
    wg_tensor *const *varied = rows ? inputs : job->values;
    wg_tensor *of = rows ? job->values[k] : inputs[k];
    const int64_t count = wg_tensor_count(of), passes = (count + each - 1) / each;
    int varying = 0;
    for (int o = 0; o < others; o++)
        varying += varies(varied[o]);
    wg_tensor **found = wg__calloc((size_t)wg__times(passes + 1, varying + 1), sizeof(wg_tensor *));
    wg_tensor **slices = found ? found + passes * varying : NULL;
    pass_job pass = {job, inputs, rows, k};
    int status = found ? 0 : -1;
    for (int64_t p = 0; p < passes && status == 0; p++) {
        const int64_t first = p * each, left = count - first;
        wg_scope scope;
        wg_scope_begin(&scope);
        if (each == 1) {
            status = run_one(&pass, of, first, varying, slices);
        } else {
            wg_tensor *directions = basis(of, first, left < each ? left : each);
            status = wg_vmap(one_slice, &pass, 1, &directions, NULL, varying, slices);
        }
        wg__escape_results(status, varying, slices);
        wg_scope_end(&scope, NULL);
        for (int v = 0; v < varying && status == 0; v++)
            found[v * passes + p] = slices[v];
    }
    for (int o = 0, v = 0; o < others && status == 0; o++) {
        const int j = rows ? k : o, i = rows ? o : k;
        if (!varies(varied[o]))
            continue;
        job->jacobians[j * n + i] =
            joined(passes, found + v++ * passes, rows, job->values[j], inputs[i]);
        status = job->jacobians[j * n + i] ? 0 : -1;
    }
    wg__free(found);
    return status;
}

static int make_all_slices(const jacobian_job *job, wg_tensor *const *inputs, bool rows, int k) {
    enum { MOST_PASSES = 4096 };
    const int others = rows ? job->input_count : job->output_count;
    wg_tensor *const *varied = rows ? inputs : job->values;
    const wg_tensor *of = rows ? job->values[k] : inputs[k];
    const int64_t count = wg_tensor_count(of);
    int64_t largest = count > 0 ? count : 1;
    for (int o = 0; o < others; o++)
        if (varies(varied[o]) && wg_tensor_count(varied[o]) > largest)
            largest = wg_tensor_count(varied[o]);
    const int64_t each = ELEMENTS_OF_A_PASS / largest;
    if (count >= 2 && each >= 4 && (count + each - 1) / each <= MOST_PASSES &&
        of->spec.ndim < WG_MAX_DIMS && make_slices(job, inputs, rows, k, each) == 0)
        return 0;
    wg_error_clear();
    return make_slices(job, inputs, rows, k, 1);
}

/* Runs the function once for the sizes of its outputs. Reverse mode reuses the graph of this run.
 */
static int run_jacobian(jacobian_job *job, wg_tensor **inputs) {
    if (make_stand_ins(job->input_count, job->inputs, inputs) < 0 ||
        wg__call_function(job->function, job->context, job->input_count, inputs, job->output_count,
                          job->values, "jacobian") < 0)
        return -1;
    for (int k = 0; k < job->output_count * job->input_count; k++) {
        const wg_tensor *y = job->values[k / job->input_count],
                        *x = job->inputs[k % job->input_count];
        char output[128], input[128];
        if (varies(y) && varies(x) && y->spec.ndim + x->spec.ndim > WG_MAX_DIMS)
            return wg_fail(WG_ERROR_SHAPE, "jacobian",
                           "the derivative of %s by %s has %d dimensions; there are at most %d",
                           wg_spec_text(output, sizeof output, &y->spec),
                           wg_spec_text(input, sizeof input, &x->spec), y->spec.ndim + x->spec.ndim,
                           WG_MAX_DIMS);
    }
    int status = 0;
    if (count_elements(job->input_count, inputs) >=
        count_elements(job->output_count, job->values)) {
        for (int j = 0; j < job->output_count && status == 0; j++)
            if (varies(job->values[j]))
                status = make_all_slices(job, inputs, true, j);
        return status;
    }
    for (int i = 0; i < job->input_count && status == 0; i++) {
        inputs[i] = job->create_graph ? job->inputs[i] : without_graph(job->inputs[i]);
        status = inputs[i] || !job->inputs[i] ? 0 : -1;
    }
    for (int i = 0; i < job->input_count && status == 0; i++)
        if (varies(inputs[i]))
            status = make_all_slices(job, inputs, false, i);
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
    jacobian_job job = {function,
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
    int status = run_jacobian(&job, room);
    wg_set_grad_enabled(was);
    wg__escape_results(status, output_count * input_count, jacobians);
    wg_scope_end(&scope, NULL);
    wg__free(room);
    return status;
}

/* (inputs) -> the gradients of the varying inputs. */
static int gradient_function(int input_count, wg_tensor *const *inputs, int output_count,
                             wg_tensor **outputs, void *context) {
    const hessian_of *of = context;
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
        varying += varies(inputs[i]);
    wg_tensor **found = wg__calloc((size_t)(wg__times(varying, n) + 1), sizeof *found);
    if (!found)
        return -1;
    hessian_of gradient = {function, context, true};
    status = wg_jacobian(gradient_function, &gradient, n, inputs, varying, options, found);
    for (int i = 0, row = 0; i < n && status == 0; i++)
        if (varies(inputs[i]))
            memcpy(hessians + (int64_t)i * n, found + (int64_t)row++ * n,
                   (size_t)n * sizeof *found);
    wg__free(found);
    return status;
}
