/* Checks derivatives against central differences: see gradcheck.h for the mathematics.
 *
 *     function --> outputs --weights w--> s = sum w y
 *     analytic: wg_grad(outputs, w, inputs)         numeric: sum w (y+ - y-) / (x+ - x-)
 *
 * Order 2 is order 1 of another function: (inputs, w) -> analytic gradients. */
#include "autograd/gradcheck.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "tensor/internal.h"
#include "tensor/ops.h"

/* The function under check, with what is known of it. */
typedef struct check {
    wg_gradcheck_function function;
    void *context;
    int input_count;
    wg_tensor *const *inputs;
    int output_count;
    int order;
    wg_gradcheck_options options;
    wg_gradcheck_report *report;

    int wanted_count; /* inputs that are checked, */
    int *wanted;      /* and which they are */
    wg_tensor **wanted_inputs;
    wg_tensor **gradients; /* of those: the analytic ones */

    wg_tensor **outputs; /* of one run; gone with its scope */
    int weighted_count;  /* outputs that want a gradient, */
    int *weighted;       /* which they are, */
    wg_tensor **weights; /* and the cotangent of each */

    int64_t value_count; /* elements of all weighted outputs */
    double *weight_values, *values, *plus, *minus;
} check;

/* ---- Verdicts ---- */

static int refuse(wg_gradcheck_report *report, const char *format, ...) WG_PRINTF(2, 3);

/* Fails with GRADIENT, naming the error that was its reason if one is pending. */
static int refuse(wg_gradcheck_report *report, const char *format, ...) {
    char what[sizeof(report->message)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    const wg_error *reason = wg_error_pending();
    report->passed = false;
    snprintf(report->message, sizeof(report->message), "%.300s%s%.200s", what, reason ? ": " : "",
             reason ? reason->message : "");
    wg_error_clear();
    return wg_fail(WG_ERROR_GRADIENT, "gradcheck", "%s", report->message);
}

static const char *coordinate_text(char *buffer, size_t size, const wg_gradcheck_report *report) {
    size_t used = (size_t)snprintf(buffer, size, "(");
    for (int d = 0; d < report->ndim; d++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld", d ? ", " : "",
                                 (long long)report->coordinate[d]);
    snprintf(buffer + used, size - used, ")");
    return buffer;
}

/* Says what the report found, in one line. */
static int judge(wg_gradcheck_report *report) {
    if (report->compared == 0)
        return refuse(report, "nothing was compared: no element of an f64 input wants a gradient");
    if (report->passed) {
        snprintf(report->message, sizeof(report->message),
                 "%lld coordinates agree, the worst to %.2g of the tolerance",
                 (long long)report->compared, report->largest_error);
        return 0;
    }
    char coordinate[256];
    return refuse(report, "order %d, input %d at %s: numeric %.9g, analytic %.9g", report->order,
                  report->input, coordinate_text(coordinate, sizeof(coordinate), report),
                  report->numeric, report->analytic);
}

/* ---- Running the function ---- */

static int run(check *c) {
    memset(c->outputs, 0, (size_t)c->output_count * sizeof(c->outputs[0]));
    if (c->function(c->input_count, c->inputs, c->output_count, c->outputs, c->context) < 0)
        return refuse(c->report, "order %d: the function failed", c->order);
    for (int i = 0; i < c->output_count; i++)
        if (!c->outputs[i])
            return refuse(c->report, "order %d: the function gave no output %d", c->order, i);
    return 0;
}

/* The weighted outputs of the run that was just made, one after the other in f64. */
static int read_outputs(check *c, double *values) {
    int64_t used = 0;
    for (int i = 0; i < c->weighted_count; i++) {
        wg_tensor *output = wg_cast(c->outputs[c->weighted[i]], WG_F64);
        int64_t count = wg_tensor_count(output);
        if (output && used + count <= c->value_count)
            wg_to_array(output, values + used);
        used += count;
    }
    if (wg_error_pending() || used != c->value_count)
        return refuse(c->report, "order %d: the outputs change their shape", c->order);
    return 0;
}

static int evaluate(check *c, double *values) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int result = run(c);
    if (result == 0)
        result = read_outputs(c, values);
    wg_scope_end(&scope, NULL);
    return result;
}

/* ---- The analytic side ---- */

/* Standard normal weights for every floating output. Outputs that want no gradient are weighted
 * too: their gradient is claimed to be 0. */
static int make_weights(check *c) {
    wg_generator generator = {.seed = c->options.seed, .offset = (uint64_t)c->order << 32};
    for (int i = 0; i < c->output_count; i++) {
        wg_tensor *output = c->outputs[i];
        if (!wg_dtype_is_float(wg_tensor_dtype(output)))
            continue;
        wg_tensor *weights =
            wg_randn(&generator, WG_F64, wg_tensor_ndim(output), wg_tensor_shape(output));
        c->weighted[c->weighted_count] = i;
        c->weights[c->weighted_count++] = wg_cast(weights, wg_tensor_dtype(output));
        c->value_count += wg_tensor_count(output);
    }
    if (wg_error_pending())
        return refuse(c->report, "order %d: no weights", c->order);
    return 0;
}

/* The gradients of the wanted inputs through those outputs that want one; zeros if none does. */
static int differentiate(check *c, bool create_graph) {
    int count = 0;
    wg_tensor **outputs = wg__calloc((size_t)c->weighted_count * 2 + 1, sizeof(outputs[0]));
    if (!outputs)
        return -1;
    wg_tensor **weights = outputs + c->weighted_count;
    for (int i = 0; i < c->weighted_count; i++)
        if (wg_requires_grad(c->outputs[c->weighted[i]])) {
            outputs[count] = c->outputs[c->weighted[i]];
            weights[count++] = c->weights[i];
        }
    int result = 0;
    if (count > 0)
        result = wg_grad(count, outputs, weights, c->wanted_count, c->wanted_inputs,
                         &(wg_backward_options){.create_graph = create_graph}, c->gradients);
    else
        for (int i = 0; i < c->wanted_count; i++)
            c->gradients[i] = wg_zeros_like(c->wanted_inputs[i]);
    wg__free(outputs);
    return result < 0 || wg_error_pending() ? -1 : 0;
}

/* ---- The numeric side ---- */

static double *element(const wg_tensor *x, const int64_t *index) {
    double *data = wg_tensor_data(x);
    for (int d = 0; d < wg_tensor_ndim(x); d++)
        data += index[d] * wg_tensor_strides(x)[d];
    return data;
}

static int evaluate_at(check *c, wg_tensor *x, double *coordinate, double value, double *values) {
    double before = *coordinate;
    *coordinate = value;
    wg_tensor_touch(x);
    int result = evaluate(c, values);
    *coordinate = before;
    wg_tensor_touch(x);
    return result;
}

/* Differences are taken element by element, before they are summed, and divided by the step that
 * was really made: both keep digits. */
static int central_difference(check *c, wg_tensor *x, double *coordinate, double *numeric) {
    double high = *coordinate + c->options.eps, low = *coordinate - c->options.eps;
    if (evaluate_at(c, x, coordinate, high, c->plus) < 0 ||
        evaluate_at(c, x, coordinate, low, c->minus) < 0)
        return -1;
    double sum = 0;
    for (int64_t i = 0; i < c->value_count; i++)
        sum += c->weight_values[i] * (c->plus[i] - c->minus[i]);
    *numeric = sum / (high - low);
    return 0;
}

/* ---- Comparing ---- */

static void note(check *c, int input, const int64_t *index, double numeric, double analytic) {
    wg_gradcheck_report *report = c->report;
    double absolute = fabs(numeric - analytic);
    double error = absolute / (c->options.atol + c->options.rtol * fabs(analytic));
    bool agrees = error <= 1; /* false for NaN */
    if (isnan(error))
        error = INFINITY;
    report->compared++;
    report->passed &= agrees;
    report->largest_absolute_error =
        fmax(report->largest_absolute_error, isnan(absolute) ? INFINITY : absolute);
    if (report->compared > 1 && error <= report->largest_error)
        return;
    report->largest_error = error;
    report->order = c->order;
    report->input = input;
    report->ndim = wg_tensor_ndim(c->inputs[input]);
    memcpy(report->coordinate, index, sizeof(report->coordinate));
    report->numeric = numeric;
    report->analytic = analytic;
}

static bool next_index(const wg_tensor *x, int64_t *index) {
    for (int d = wg_tensor_ndim(x) - 1; d >= 0; d--) {
        if (++index[d] < wg_tensor_shape(x)[d])
            return true;
        index[d] = 0;
    }
    return false;
}

static int compare_input(check *c, int i) {
    wg_tensor *x = c->wanted_inputs[i];
    if (wg_tensor_count(x) == 0)
        return 0;
    int64_t index[WG_MAX_DIMS] = {0};
    do {
        double numeric;
        if (central_difference(c, x, element(x, index), &numeric) < 0)
            return -1;
        note(c, c->wanted[i], index, numeric, wg_at(c->gradients[i], index));
    } while (next_index(x, index));
    return 0;
}

static int compare_all(check *c) {
    if (evaluate(c, c->plus) < 0)
        return -1;
    if (memcmp(c->plus, c->values, (size_t)c->value_count * sizeof(double)) != 0)
        return refuse(c->report, "order %d: the same inputs gave two results", c->order);
    for (int i = 0; i < c->wanted_count; i++)
        if (compare_input(c, i) < 0)
            return -1;
    return 0;
}

/* ---- One order ---- */

static void free_check(check *c) {
    wg__free(c->wanted);
    wg__free(c->wanted_inputs);
    wg__free(c->outputs);
    wg__free(c->weight_values);
}

/* Space for pointers by inputs, by outputs, and the list of what is wanted. */
static int prepare(check *c) {
    size_t inputs = (size_t)c->input_count, outputs = (size_t)c->output_count;
    c->wanted = wg__calloc(inputs + outputs + 1, sizeof(int));
    c->wanted_inputs = wg__calloc(2 * inputs + 1, sizeof(wg_tensor *));
    c->outputs = wg__calloc(2 * outputs + 1, sizeof(wg_tensor *));
    if (!c->wanted || !c->wanted_inputs || !c->outputs)
        return refuse(c->report, "no memory");
    c->gradients = c->wanted_inputs + inputs;
    c->weights = c->outputs + outputs;
    c->weighted = c->wanted + inputs;
    for (int i = 0; i < c->input_count; i++)
        if (wg_requires_grad(c->inputs[i]) && wg_tensor_dtype(c->inputs[i]) == WG_F64) {
            c->wanted[c->wanted_count] = i;
            c->wanted_inputs[c->wanted_count++] = c->inputs[i];
        }
    return 0;
}

/* Two elements at one address cannot be moved apart. */
static int check_overlap(check *c) {
    for (int i = 0; i < c->wanted_count; i++) {
        const wg_tensor *x = c->wanted_inputs[i];
        for (int d = 0; d < wg_tensor_ndim(x); d++)
            if (wg_tensor_strides(x)[d] == 0 && wg_tensor_shape(x)[d] > 1)
                return refuse(c->report, "input %d is an expanded view: clone it", c->wanted[i]);
    }
    return 0;
}

static int read_weights(check *c) {
    size_t count = (size_t)c->value_count;
    c->weight_values = wg__calloc(4 * count + 1, sizeof(double));
    if (!c->weight_values)
        return refuse(c->report, "no memory");
    c->values = c->weight_values + count;
    c->plus = c->values + count;
    c->minus = c->plus + count;
    int64_t used = 0;
    for (int i = 0; i < c->weighted_count; i++) {
        wg_tensor *weights = wg_cast(c->weights[i], WG_F64);
        wg_to_array(weights, c->weight_values + used);
        used += wg_tensor_count(weights);
    }
    return wg_error_pending() ? refuse(c->report, "no memory") : 0;
}

static int check_second_order(const check *first);

/* Everything that happens in the scope of one order: the outputs and gradients live in it. */
static int check_in_scope(check *c) {
    if (prepare(c) < 0 || check_overlap(c) < 0 || run(c) < 0 || make_weights(c) < 0 ||
        read_weights(c) < 0 || read_outputs(c, c->values) < 0)
        return -1;
    if (differentiate(c, false) < 0)
        return refuse(c->report, "order %d: backward failed", c->order);
    if (compare_all(c) < 0)
        return -1;
    bool again = c->order < c->options.order && c->report->passed && c->report->compared > 0;
    return again ? check_second_order(c) : 0;
}

static int check_order(check *c) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int result = check_in_scope(c);
    free_check(c);
    wg_scope_end(&scope, NULL);
    return result;
}

/* (inputs, weights) -> gradients of the wanted inputs. */
static int gradient_function(int input_count, wg_tensor *const *inputs, int output_count,
                             wg_tensor **outputs, void *context) {
    (void)input_count, (void)inputs, (void)output_count;
    const check *first = context;
    wg_gradcheck_report ignored = {0};
    wg_tensor **first_outputs = wg__calloc((size_t)first->output_count + 1, sizeof(outputs[0]));
    if (!first_outputs)
        return -1;
    check again = *first;
    again.outputs = first_outputs;
    again.gradients = outputs;
    again.report = &ignored;
    int result = run(&again);
    if (result == 0)
        result = differentiate(&again, true);
    wg__free(first_outputs);
    return result;
}

static int check_second_order(const check *first) {
    int inputs = first->input_count, weights = first->weighted_count;
    wg_tensor **all = wg__calloc((size_t)(inputs + weights) + 1, sizeof(all[0]));
    if (!all)
        return refuse(first->report, "no memory");
    for (int i = 0; i < inputs; i++)
        all[i] = first->inputs[i];
    for (int i = 0; i < weights; i++) {
        wg_set_requires_grad(first->weights[i], true);
        all[inputs + i] = first->weights[i];
    }
    check second = {.function = gradient_function,
                    .context = (void *)first,
                    .input_count = inputs + weights,
                    .inputs = all,
                    .output_count = first->wanted_count,
                    .order = 2,
                    .options = first->options,
                    .report = first->report};
    int result = check_order(&second);
    wg__free(all);
    return result;
}

/* ---- The public functions ---- */

static wg_gradcheck_options with_defaults(const wg_gradcheck_options *options) {
    wg_gradcheck_options o = options ? *options : (wg_gradcheck_options){0};
    o.eps = o.eps > 0 ? o.eps : 1e-6;
    o.atol = o.atol > 0 ? o.atol : 1e-5;
    o.rtol = o.rtol > 0 ? o.rtol : 1e-3;
    o.order = o.order > 0 ? o.order : 1;
    return o;
}

int wg_gradcheck(wg_gradcheck_function function, void *context, int input_count,
                 wg_tensor *const *inputs, int output_count, const wg_gradcheck_options *options,
                 wg_gradcheck_report *report) {
    wg_gradcheck_report own;
    report = report ? report : &own;
    *report = (wg_gradcheck_report){0};
    if (wg_error_pending()) {
        snprintf(report->message, sizeof(report->message), "refused: an error is pending");
        return -1;
    }
    report->passed = true;
    check c = {.function = function,
               .context = context,
               .input_count = input_count,
               .inputs = inputs,
               .output_count = output_count,
               .order = 1,
               .options = with_defaults(options),
               .report = report};
    if (c.options.order > 2)
        return refuse(report, "order %d; wanted 1 or 2", c.options.order);
    bool recording = wg_set_grad_enabled(true);
    int result = check_order(&c);
    wg_set_grad_enabled(recording);
    return result < 0 ? -1 : judge(report);
}

typedef struct sampled_op {
    const wg_op *op;
    const void *options;
} sampled_op;

static int apply_sample(int input_count, wg_tensor *const *inputs, int output_count,
                        wg_tensor **outputs, void *context) {
    (void)output_count;
    const sampled_op *sampled = context;
    return wg_apply(sampled->op, input_count, inputs, sampled->options, outputs);
}

static bool is_checked(const wg_op *op, int input, const wg_tensor *x) {
    return x && wg_tensor_dtype(x) == WG_F64 && op->differentiable >> input & 1;
}

/* Checks one sample, or only runs it when it has nothing to differentiate. */
static int check_sample(const wg_op *op, wg_sample *sample, const wg_gradcheck_options *options,
                        wg_gradcheck_report *report) {
    sampled_op sampled = {op, sample->options};
    bool any = false;
    for (int i = 0; i < sample->input_count; i++)
        if (is_checked(op, i, sample->inputs[i])) {
            wg_set_requires_grad(sample->inputs[i], true);
            any |= wg_tensor_count(sample->inputs[i]) > 0;
        }
    if (any)
        return wg_gradcheck(apply_sample, &sampled, sample->input_count, sample->inputs,
                            op->output_count, options, report);
    wg_tensor *outputs[WG_MAX_OUTPUTS];
    *report = (wg_gradcheck_report){.passed = true};
    if (wg_apply(op, sample->input_count, sample->inputs, sample->options, outputs) < 0)
        return refuse(report, "the forward pass failed");
    return 0;
}

/* Keeps the worse of two reports, and the sum of what they compared. */
static void merge(wg_gradcheck_report *worst, const wg_gradcheck_report *other) {
    int64_t compared = worst->compared + other->compared;
    double absolute = fmax(worst->largest_absolute_error, other->largest_absolute_error);
    bool worse = worst->compared == 0 || other->largest_error > worst->largest_error;
    if (!other->passed || worse)
        *worst = *other;
    worst->compared = compared;
    worst->largest_absolute_error = absolute;
}

/* Puts the op's name and the sample before what was found. */
static int refuse_sample(const wg_op *op, int sample, wg_gradcheck_report *report) {
    char message[sizeof(report->message)];
    memcpy(message, report->message, sizeof(message));
    wg_error_clear();
    return refuse(report, "%.64s, sample %d: %s", op->name, sample, message);
}

/* Returns as op->sample does: 1, 0 after the last sample, -1. */
static int check_next_sample(const wg_op *op, int index, wg_generator *generator,
                             const wg_gradcheck_options *options, wg_gradcheck_report *worst) {
    wg_sample sample = {0};
    wg_gradcheck_report report = {0};
    wg_scope scope;
    wg_scope_begin(&scope);
    int more = op->sample(index, generator, &sample);
    if (more > 0 && !wg_error_pending()) {
        if (check_sample(op, &sample, options, &report) < 0)
            more = refuse_sample(op, index, &report);
        merge(worst, &report);
    } else if (more < 0 || wg_error_pending()) {
        more = refuse(worst, "%.64s, sample %d: cannot be made", op->name, index);
    }
    wg_scope_end(&scope, NULL);
    return more;
}

static int judge_op(const wg_op *op, int samples, wg_gradcheck_report *report) {
    if (samples == 0)
        return refuse(report, "%.64s: has no samples", op->name);
    if (op->differentiable && report->compared == 0)
        return refuse(report,
                      "%.64s: nothing was compared: no sample has an f64 input that is "
                      "differentiable",
                      op->name);
    if (op->differentiable)
        snprintf(report->message, sizeof(report->message),
                 "%d samples, %lld coordinates agree, the worst to %.2g of the tolerance", samples,
                 (long long)report->compared, report->largest_error);
    else
        snprintf(report->message, sizeof(report->message), "no gradient: %.400s", op->no_gradient);
    return 0;
}

int wg_gradcheck_op(const wg_op *op, const wg_gradcheck_options *options,
                    wg_gradcheck_report *report) {
    wg_gradcheck_report own;
    report = report ? report : &own;
    *report = (wg_gradcheck_report){.passed = true};
    if (wg_error_pending()) {
        *report = (wg_gradcheck_report){.message = "refused: an error is pending"};
        return -1;
    }
    if (!op->sample)
        return refuse(report, "%.64s: has no samples", op->name);
    if (op->differentiable ? !op->vjp && !wg_op_is_composite(op) : !op->no_gradient)
        return refuse(report, "%.64s: has neither vjp nor a reason for having none", op->name);
    wg_generator generator = {.seed = options ? options->seed : 0};
    int samples = 0, more;
    while ((more = check_next_sample(op, samples, &generator, options, report)) > 0)
        samples++;
    report->samples = samples + (more < 0);
    return more < 0 ? -1 : judge_op(op, samples, report);
}
