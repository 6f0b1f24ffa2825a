/* What is held beside values: that a gradient is the same however one comes to it. */
#include <math.h>
#include <string.h>

#include "gradcheck/check.h"
#include "autograd/internal.h"
#include "tensor/ops.h"

/* Sums in another order may differ by rounding. */
static double rounding(const wg__gradcheck *c) {
    return c->dtype == WG_F64 ? 1e-11 : 1e-4;
}

int64_t wg__gradcheck_unlike(const wg__gradcheck *c, int64_t count, const double *numbers,
                             const double *expected, double scale) {
    double largest = 1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i]))
            largest = fmax(largest, fabs(scale * expected[i]));
    for (int64_t i = 0; i < count; i++) {
        double wanted = scale * expected[i];
        bool same = numbers[i] == wanted || (isnan(numbers[i]) && isnan(wanted)) ||
                    fabs(numbers[i] - wanted) <= rounding(c) * largest;
        if (!same)
            return i;
    }
    return -1;
}

static int64_t unlike_bits(int64_t count, const double *numbers, const double *expected) {
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&numbers[i], &expected[i], sizeof(double)) != 0)
            return i;
    return -1;
}

/* A verdict on one coordinate of the gradients. */
static int tell(wg__gradcheck *c, wg_diagnosis diagnosis, int64_t at, double value, double expected,
                const char *what) {
    wg_gradcheck_report *r = c->report;
    int w = wg__gradcheck_input_of(c, at);
    const wg_tensor *x = c->wanted_inputs[w];
    char name[160], index[128];
    r->ndim = wg_tensor_ndim(x);
    wg__unravel(at - c->wanted_at[w], r->ndim, wg_tensor_shape(x), r->coordinate);
    return wg__gradcheck_fail(
        c, diagnosis, c->wanted[w], "%s: the gradient of %s at %s is %.9g, not %.9g", what,
        wg__gradcheck_input_text(name, sizeof name, c, c->wanted[w]),
        wg__index_text(index, sizeof index, r->ndim, r->coordinate), value, expected);
}

/* ---- Before anything is compared ---- */

static int forward_twice(wg__gradcheck *c) {
    if (wg__gradcheck_inputs_unmodified(c, "the function") < 0 ||
        wg__gradcheck_evaluate(c, c->plus) < 0)
        return -1;
    if (unlike_bits(c->all_count, c->plus, c->values) >= 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_NONDETERMINISTIC, -1, "the function run twice");
    return 0;
}

static int cotangents_unmodified(wg__gradcheck *c, const wg__snapshot *weights, const char *when) {
    for (int k = 0; k < c->weighted_count; k++)
        if (!wg__snapshot_holds(&weights[k]))
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_COTANGENT_MODIFIED, -1,
                                      "%s writes to the cotangent of output %d", when,
                                      c->weighted[k]);
    return 0;
}

/* The vjp by itself, and then the analytic gradient, with what they are made of left as it was. */
static int first_backward(wg__gradcheck *c) {
    wg__snapshot *weights = wg__calloc((size_t)c->weighted_count + 1, sizeof *weights);
    int status = weights ? 0 : -1;
    for (int k = 0; k < c->weighted_count && status == 0; k++)
        status = wg__snapshot_take(&weights[k], c->weights[k]);
    if (status < 0)
        wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    if (status == 0 && c->op)
        status = wg__gradcheck_vjp(c);
    if (status == 0)
        status = cotangents_unmodified(c, weights, "the vjp");
    if (status == 0)
        status = wg__gradcheck_gradient(c, &(wg__pull_options){0}, c->analytic);
    if (status == 0)
        status = wg__gradcheck_inputs_unmodified(c, "backward");
    if (status == 0)
        status = cotangents_unmodified(c, weights, "backward");
    for (int k = 0; weights && k < c->weighted_count; k++)
        wg__snapshot_free(&weights[k]);
    wg__free(weights);
    return status;
}

static int backward_twice(wg__gradcheck *c, double *gradient) {
    if (wg__gradcheck_gradient(c, &(wg__pull_options){0}, gradient) < 0)
        return -1;
    int64_t at = unlike_bits(c->coordinate_count, gradient, c->analytic);
    return at < 0 ? 0
                  : tell(c, WG_DIAGNOSIS_NONDETERMINISTIC, at, gradient[at], c->analytic[at],
                         "backward run twice");
}

/* Runs the function and its backward on other inputs, for what that leaves behind. Errors are of no
 * interest: those inputs are nobody's. */
static void run_on(wg__gradcheck *c, wg_tensor **others, wg_tensor **outputs) {
    wg__gradcheck again = *c;
    wg_gradcheck_report ignored = *c->report;
    int wanted = 0;
    again.report = &ignored;
    again.inputs = others;
    again.outputs = outputs;
    for (int i = 0; i < c->input_count; i++) {
        others[i] = c->inputs[i];
        if (i >= c->argument_count || wanted == c->wanted_count || c->wanted[wanted] != i)
            continue;
        others[i] = wg_affine(wg_detach(c->inputs[i]), 1 - 1.0 / 128, 0);
        wg_set_requires_grad(others[i], true);
        wanted++;
    }
    again.wanted_inputs = others + c->input_count;
    again.wanted_count = 0;
    for (int k = 0; k < wanted; k++)
        again.wanted_inputs[again.wanted_count++] = others[c->wanted[k]];
    wg_tensor **gradients = again.wanted_inputs + c->wanted_count;
    if (wg__gradcheck_run(&again) == 0)
        wg__gradcheck_pull_tensors(&again, &(wg__pull_options){0}, gradients);
    wg_error_clear();
}

static void run_on_others(wg__gradcheck *c) {
    size_t inputs = (size_t)c->input_count, outputs = (size_t)c->output_count;
    wg_tensor **space = wg__calloc(3 * inputs + outputs + 1, sizeof *space);
    wg_scope scope;
    wg_scope_begin(&scope);
    if (space)
        run_on(c, space, space + 3 * inputs);
    wg_scope_end(&scope, NULL);
    wg__free(space);
}

/* y = f(x), z = f(other x), and then the gradient of y. */
static int backward_after_another_run(wg__gradcheck *c, double *gradient) {
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    if (status == 0)
        run_on_others(c);
    if (status == 0)
        status = wg__gradcheck_pull(c, &(wg__pull_options){0}, gradient);
    wg_scope_end(&scope, NULL);
    if (status < 0)
        return -1;
    int64_t at = unlike_bits(c->coordinate_count, gradient, c->analytic);
    return at < 0 ? 0
                  : tell(c, WG_DIAGNOSIS_STALE, at, gradient[at], c->analytic[at],
                         "after the function ran on other inputs");
}

int wg__gradcheck_conduct_before(wg__gradcheck *c) {
    if (forward_twice(c) < 0)
        return -1;
    if (c->wanted_count == 0)
        return 0;
    if (first_backward(c) < 0)
        return -1;
    double *gradient = wg__alloc((size_t)c->coordinate_count * sizeof *gradient + 1);
    if (!gradient)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    int status = backward_twice(c, gradient);
    if (status == 0 && c->order == 1)
        status = backward_after_another_run(c, gradient);
    wg__free(gradient);
    return status;
}

/* ---- Threads ---- */

int wg__gradcheck_threads(wg__gradcheck *c) {
    double *gradient = wg__alloc((size_t)c->coordinate_count * sizeof *gradient + 1);
    int before = wg_threads(), status = gradient ? 0 : -1;
    for (int threads = 1; threads <= 3 && status == 0; threads++) {
        wg_set_threads(threads);
        status = wg__gradcheck_evaluate(c, c->plus);
        if (status == 0 && unlike_bits(c->all_count, c->plus, c->values) >= 0)
            status = wg__gradcheck_fail(c, WG_DIAGNOSIS_THREADS, -1,
                                        "the function at %d threads and at %d", threads, before);
        if (status < 0 || c->wanted_count == 0)
            continue;
        status = wg__gradcheck_gradient(c, &(wg__pull_options){0}, gradient);
        int64_t at = status < 0 ? -1 : unlike_bits(c->coordinate_count, gradient, c->analytic);
        if (at >= 0)
            status = tell(c, WG_DIAGNOSIS_THREADS, at, gradient[at], c->analytic[at],
                          "at another number of threads");
    }
    wg_set_threads(before);
    wg__free(gradient);
    return status;
}

/* ---- After the values agree ---- */

static int each_gradient_alone(wg__gradcheck *c, double *gradient) {
    for (int w = 0; w < c->wanted_count && c->wanted_count > 1; w++) {
        if (wg__gradcheck_gradient(c, &(wg__pull_options){.only = w + 1}, gradient) < 0)
            return -1;
        int64_t at = wg__gradcheck_unlike(c, wg_tensor_count(c->wanted_inputs[w]), gradient,
                                          c->analytic + c->wanted_at[w], 1);
        if (at >= 0)
            return tell(c, WG_DIAGNOSIS_WANTS_IGNORED, c->wanted_at[w] + at, gradient[at],
                        c->analytic[c->wanted_at[w] + at], "wanted alone");
    }
    return 0;
}

/* Of several outputs, the gradient of one: the others' cotangents missing, or zeros. */
static int one_output_alone(wg__gradcheck *c, int k, double *missing, double *zeros) {
    wg_tensor **weights = wg__calloc((size_t)c->weighted_count + 1, sizeof *weights);
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = weights ? 0 : -1;
    if (status == 0 && k >= 0)
        weights[k] = c->weights[k];
    if (status == 0)
        status = wg__gradcheck_gradient(c, &(wg__pull_options){.weights = weights}, missing);
    for (int i = 0; i < c->weighted_count && status == 0; i++)
        weights[i] = i == k ? c->weights[k] : wg_zeros_like(c->weights[i]);
    if (status == 0)
        status = wg__gradcheck_gradient(c, &(wg__pull_options){.weights = weights}, zeros);
    wg_scope_end(&scope, NULL);
    wg__free(weights);
    return status;
}

/* Asked of no output (k = -1) too: then all gradients are 0. */
static int zero_and_missing_cotangents(wg__gradcheck *c, double *missing) {
    double *zeros = wg__alloc((size_t)c->coordinate_count * sizeof *zeros + 1);
    int status = zeros ? 0 : -1;
    for (int k = -1; k < (c->weighted_count > 1 ? c->weighted_count : 0) && status == 0; k++) {
        status = one_output_alone(c, k, missing, zeros);
        int64_t at =
            status < 0 ? -1 : wg__gradcheck_unlike(c, c->coordinate_count, zeros, missing, 1);
        if (at >= 0)
            status = tell(c, WG_DIAGNOSIS_COTANGENTS, at, zeros[at], missing[at],
                          "under cotangents of zeros, and under missing ones");
    }
    wg__free(zeros);
    return status;
}

/* Backward of all outputs, one after the other, as often as is said. */
static int add_up(wg__gradcheck *c, int times) {
    for (int t = 0; t < times; t++)
        for (int k = 0; k < c->weighted_count; k++) {
            wg_tensor *y = c->outputs[c->weighted[k]];
            wg_backward_options options = {.cotangent = c->weights[k], .retain_graph = true};
            if (wg_requires_grad(y) && wg_backward(y, &options) < 0)
                return wg__gradcheck_fail(c, WG_DIAGNOSIS_BACKWARD_FAILED, -1, "backward failed");
        }
    return 0;
}

static int read_gradients(wg__gradcheck *c, double *gradient) {
    memset(gradient, 0, (size_t)c->coordinate_count * sizeof *gradient);
    for (int w = 0; w < c->wanted_count; w++) {
        wg_tensor *found = wg_gradient(c->wanted_inputs[w]);
        if (found && wg__read_doubles(found, gradient + c->wanted_at[w]) < 0)
            return -1;
    }
    return 0;
}

/* Leaves keep the gradients that they had before. */
static int two_passes_on_leaves(wg__gradcheck *c, double *gradient) {
    wg_tensor **before = wg__calloc((size_t)c->wanted_count + 1, sizeof *before);
    if (!before)
        return -1;
    for (int w = 0; w < c->wanted_count; w++) {
        before[w] = c->wanted_inputs[w]->node->gradients[0];
        c->wanted_inputs[w]->node->gradients[0] = NULL;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    if (status == 0)
        status = add_up(c, 2);
    if (status == 0)
        status = read_gradients(c, gradient);
    wg_scope_end(&scope, NULL);
    for (int w = 0; w < c->wanted_count; w++) {
        wg_zero_grad(c->wanted_inputs[w]);
        c->wanted_inputs[w]->node->gradients[0] = before[w];
    }
    wg__free(before);
    return status;
}

static int two_passes_add_up(wg__gradcheck *c, double *gradient) {
    for (int w = 0; w < c->wanted_count; w++)
        if (c->wanted_inputs[w]->node->op) /* no leaf: it gathers nothing */
            return 0;
    if (two_passes_on_leaves(c, gradient) < 0)
        return -1;
    int64_t at = wg__gradcheck_unlike(c, c->coordinate_count, gradient, c->analytic, 2);
    return at < 0 ? 0
                  : tell(c, WG_DIAGNOSIS_ACCUMULATION, at, gradient[at], 2 * c->analytic[at],
                         "after two backward passes");
}

static int no_tensor_stays(wg__gradcheck *c, double *gradient) {
    int64_t before = wg_tensors_alive();
    if (wg__gradcheck_gradient(c, &(wg__pull_options){0}, gradient) < 0)
        return -1;
    int64_t more = wg_tensors_alive() - before;
    return more == 0 ? 0
                     : wg__gradcheck_fail(c, WG_DIAGNOSIS_ALIVE, -1,
                                          "a run and its backward leave %lld tensors alive",
                                          (long long)more);
}

int wg__gradcheck_conduct_after(wg__gradcheck *c) {
    if (wg__gradcheck_threads(c) < 0)
        return -1;
    double *gradient = wg__alloc((size_t)c->coordinate_count * sizeof *gradient + 1);
    if (!gradient)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_FAILED, -1, "the check itself");
    int status = no_tensor_stays(c, gradient);
    if (status == 0 && c->wanted_count > 0) {
        status = each_gradient_alone(c, gradient);
        if (status == 0)
            status = zero_and_missing_cotangents(c, gradient);
        if (status == 0)
            status = two_passes_add_up(c, gradient);
    }
    wg__free(gradient);
    return status;
}
