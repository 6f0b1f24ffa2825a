/* Checks that a gradient does not depend on the order of calls, other runs, threads, or the mask of
 * wanted gradients; and variants of an op's samples in other shapes. */
#include "gradcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "autograd/internal.h"
#include "tensor/ops.h"

int64_t wg__gradcheck_unlike(const wg__gradcheck *c, int64_t count, const double *numbers,
                             const double *expected, double scale) {
    const double rounding = c->dtype == WG_F64 ? 1e-11 : 1e-4; /* of sums in another order */
    double largest = 1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(expected[i]))
            largest = fmax(largest, fabs(scale * expected[i]));
    for (int64_t i = 0; i < count; i++) {
        double wanted = scale * expected[i];
        bool same = numbers[i] == wanted || (isnan(numbers[i]) && isnan(wanted)) ||
                    fabs(numbers[i] - wanted) <= rounding * largest;
        if (!same)
            return i;
    }
    return -1;
}

static int64_t unlike_bits(int64_t count, const double *numbers, const double *expected) {
    for (int64_t i = 0; i < count; i++)
        /* NOLINTNEXTLINE: compares the bits, so that NaN equals itself and -0 differs from 0 */
        if (memcmp(&numbers[i], &expected[i], sizeof(double)) != 0)
            return i;
    return -1;
}

/* Compares c->gradient with the first gradient, bit for bit. */
static int same_bits(wg__gradcheck *c, wg_diagnosis diagnosis, const char *what) {
    int64_t at = unlike_bits(c->wanted.elements, c->gradient, c->sums.analytic);
    return at < 0 ? 0
                  : wg__gradcheck_fail_at(c, diagnosis, at, what, " is %.9g, not %.9g",
                                          c->gradient[at], c->sums.analytic[at]);
}

/* Runs the vjp of an op alone on the saved tensors of a run. So its gradients are checked before
 * backward refuses them or adds them up. */
static int run_vjp(wg__gradcheck *c, const wg_node *node, uint32_t wants, wg_tensor **gradients) {
    wg_tensor *inputs[WG_MAX_INPUTS], *cotangents[WG_MAX_OUTPUTS] = {0};
    wg_call call;
    wg__node_call(node, inputs, &call);
    call.wants = wants;
    for (int k = 0; k < c->weighted.count; k++)
        cotangents[c->weighted.index[k]] = c->weighted.tensors[k];
    memset(gradients, 0, WG_MAX_INPUTS * sizeof *gradients);
    bool recording = wg_set_grad_enabled(false);
    int status = node->op->vjp(&call, cotangents, gradients);
    wg_set_grad_enabled(recording);
    if (status == 0 && !wg_error_pending())
        return 0;
    /* Tensors that are not saved are NULL here; an op reports a NULL operand, or returns NULL. */
    char unsaved[96];
    wg__gradcheck_unsaved(unsaved, sizeof unsaved, c);
    const wg_error *error = wg_error_pending();
    bool is_null = !error || (*unsaved && strstr(error->message, "is NULL"));
    return wg__gradcheck_fail(c, is_null ? WG_DIAGNOSIS_MISSING : WG_DIAGNOSIS_BACKWARD_FAILED, -1,
                              "the vjp failed%s", is_null ? unsaved : "");
}

static int check_gradient(wg__gradcheck *c, const wg_node *node, int input,
                          const wg_tensor *gradient) {
    const wg_spec *is = &gradient->spec, *wanted = &node->input_specs[input];
    char text[128], other[128];
    wg_spec_text(text, sizeof text, is);
    wg_spec_text(other, sizeof other, wanted);
    if (is->dtype != wanted->dtype)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_WRONG_DTYPE, input,
                                  "the vjp gave input %d a gradient of %s; wanted %s", input, text,
                                  other);
    if (wg__same_shape(is, wanted))
        return 0;
    /* The first axis of the gradient that the input lacks, or has with size 1; -1 if the input does
     * not broadcast to the gradient. */
    const int missing = is->ndim - wanted->ndim;
    int axis = -1;
    bool broadcasts = missing >= 0;
    for (int d = 0; d < wanted->ndim && broadcasts; d++)
        broadcasts = wanted->shape[d] == is->shape[missing + d] || wanted->shape[d] == 1;
    for (int d = is->ndim - 1; d >= 0 && broadcasts; d--)
        if (d < missing || wanted->shape[d - missing] != is->shape[d])
            axis = d;
    c->report->axis = axis;
    if (axis >= 0)
        return wg__gradcheck_fail(
            c, WG_DIAGNOSIS_UNSUMMED, input,
            "the vjp gave input %d a gradient of %s; wanted %s, summed over axis %d", input, text,
            other, axis);
    bool reversed = is->ndim >= 2 && is->ndim == wanted->ndim;
    for (int d = 0; reversed && d < is->ndim; d++)
        reversed = is->shape[d] == wanted->shape[wanted->ndim - 1 - d];
    return wg__gradcheck_fail(c, reversed ? WG_DIAGNOSIS_TRANSPOSED : WG_DIAGNOSIS_WRONG_SHAPE,
                              input, "the vjp gave input %d a gradient of %s; wanted %s", input,
                              text, other);
}

static int check_vjp(wg__gradcheck *c) {
    const wg_node *node = NULL; /* of the op itself; composites have none */
    uint32_t wants = 0;
    wg_tensor *gradients[WG_MAX_INPUTS];
    if (wg__gradcheck_run(c) < 0)
        return -1;
    for (int k = 0; k < c->weighted.count && !node; k++) {
        node = c->outputs[c->weighted.index[k]]->node;
        node = node && node->op == c->op ? node : NULL;
    }
    for (int w = 0; node && w < c->wanted.count; w++)
        if (c->wanted.index[w] < node->input_count && node->edges[c->wanted.index[w]].node)
            wants |= (uint32_t)1 << c->wanted.index[w];
    if (!wants)
        return 0;
    if (run_vjp(c, node, wants, gradients) < 0)
        return -1;
    for (int i = 0; i < node->input_count; i++) {
        c->found.null_gradient[i] = !gradients[i];
        if (gradients[i] && wants >> i & 1 && check_gradient(c, node, i, gradients[i]) < 0)
            return -1;
    }
    for (int only = 0; only < node->input_count; only++) {
        const uint32_t alone = (uint32_t)1 << only;
        if (!(wants & alone) || wants == alone)
            continue;
        if (run_vjp(c, node, alone, gradients) < 0)
            return -1;
        for (int i = 0; i < node->input_count; i++)
            if (i != only && gradients[i])
                return wg__gradcheck_fail(
                    c, WG_DIAGNOSIS_WANTS_IGNORED, i,
                    "input %d has a gradient where input %d alone requires one", i, only);
    }
    return 0;
}

static int cotangents_unmodified(wg__gradcheck *c, const wg__snapshot *weights, const char *when) {
    for (int k = 0; k < c->weighted.count; k++)
        if (!wg__snapshot_holds(&weights[k]))
            return wg__gradcheck_fail(c, WG_DIAGNOSIS_COTANGENT_MODIFIED, -1,
                                      "%s writes to the cotangent of output %d", when,
                                      c->weighted.index[k]);
    return 0;
}

/* Runs the vjp by itself, then takes the analytic gradient, and checks that inputs and cotangents
 * are unchanged. */
static int first_backward(wg__gradcheck *c) {
    wg__snapshot *weights = wg__calloc((size_t)c->weighted.count + 1, sizeof *weights);
    int status = weights ? 0 : -1;
    for (int k = 0; k < c->weighted.count && status == 0; k++)
        status = wg__snapshot_take(&weights[k], c->weighted.tensors[k]);
    if (status < 0)
        wg__gradcheck_no_memory(c);
    if (status == 0 && c->op) {
        wg_scope scope;
        wg_scope_begin(&scope);
        status = check_vjp(c);
        wg_scope_end(&scope, NULL);
        if (status == 0)
            status = wg__gradcheck_inputs_unmodified(c, "the vjp");
    }
    if (status == 0 && (cotangents_unmodified(c, weights, "the vjp") < 0 ||
                        wg__gradcheck_evaluate(c, NULL, c->sums.analytic) < 0 ||
                        wg__gradcheck_inputs_unmodified(c, "backward") < 0 ||
                        cotangents_unmodified(c, weights, "backward") < 0))
        status = -1;
    for (int k = 0; weights && k < c->weighted.count; k++)
        wg__free(weights[k].bytes);
    wg__free(weights);
    return status;
}

/* Runs y = f(x), then z = f(x') and its backward, which may disturb the saved tensors of y, then
 * the backward of y. Errors at x' are ignored: the user never gave these inputs. */
static int backward_after_another_run(wg__gradcheck *c) {
    size_t inputs = (size_t)c->input_count, outputs = (size_t)c->output_count;
    wg_tensor **others = wg__calloc((size_t)(wg__times(3, inputs) + outputs + 1), sizeof *others);
    if (!others)
        return wg__gradcheck_no_memory(c);
    wg_scope scope, inner;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    if (status == 0) {
        wg__gradcheck again = *c;
        wg_gradcheck_report ignored = *c->report;
        wg_tensor **gradients = others + 2 * inputs;
        again.report = &ignored;
        again.inputs = others;
        again.wanted.count = 0;
        again.wanted.tensors = others + inputs;
        again.outputs = others + 3 * inputs;
        wg_scope_begin(&inner);
        memcpy(others, c->inputs, inputs * sizeof *others);
        for (int w = 0; w < c->wanted.count && c->wanted.index[w] < c->user_count; w++) {
            wg_tensor *x = wg_affine(wg_detach(c->wanted.tensors[w]), 1 - 1.0 / 128, 0);
            wg_set_requires_grad(x, true);
            others[c->wanted.index[w]] = x;
            again.wanted.tensors[again.wanted.count++] = x;
        }
        if (wg__gradcheck_run(&again) == 0)
            wg__gradcheck_pull_tensors(&again, NULL, gradients);
        wg_error_clear();
        wg_scope_end(&inner, NULL);
        status = wg__gradcheck_pull(c, false, c->gradient);
    }
    wg__free(others);
    wg_scope_end(&scope, NULL);
    return status < 0
               ? -1
               : same_bits(c, WG_DIAGNOSIS_STALE, "after the function ran on other inputs: ");
}

int wg__gradcheck_conduct_before(wg__gradcheck *c) {
    if (wg__gradcheck_inputs_unmodified(c, "the function") < 0 ||
        wg__gradcheck_evaluate(c, c->plus, NULL) < 0)
        return -1;
    if (unlike_bits(c->all_count, c->plus, c->values) >= 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_NONDETERMINISTIC, -1, "the function run twice");
    if (c->wanted.count == 0)
        return 0;
    if (first_backward(c) < 0 || wg__gradcheck_evaluate(c, NULL, c->gradient) < 0 ||
        same_bits(c, WG_DIAGNOSIS_NONDETERMINISTIC, "backward run twice: ") < 0)
        return -1;
    return c->order == 1 ? backward_after_another_run(c) : 0;
}

int wg__gradcheck_threads(wg__gradcheck *c) {
    int before = wg_threads(), status = 0;
    for (int threads = 1; threads <= 3 && status == 0; threads++) {
        wg_set_threads(threads);
        status = wg__gradcheck_evaluate(c, c->plus, NULL);
        if (status == 0 && unlike_bits(c->all_count, c->plus, c->values) >= 0)
            status = wg__gradcheck_fail(c, WG_DIAGNOSIS_THREADS, -1,
                                        "the function at %d threads and at %d", threads, before);
        if (status < 0 || c->wanted.count == 0)
            continue;
        status = wg__gradcheck_evaluate(c, NULL, c->gradient);
        if (status == 0)
            status = same_bits(c, WG_DIAGNOSIS_THREADS, "at another number of threads: ");
    }
    wg_set_threads(before);
    return status;
}

/* A check with a single wanted input. */
static wg__gradcheck only_wanted(const wg__gradcheck *c, int w) {
    wg__gradcheck one = *c;
    one.wanted.count = 1;
    one.wanted.index += w;
    one.wanted.at += w;
    one.wanted.tensors += w;
    return one;
}

static int each_gradient_alone(wg__gradcheck *c) {
    double *gradient = c->gradient;
    for (int w = 0; w < c->wanted.count && c->wanted.count > 1; w++) {
        wg__gradcheck one = only_wanted(c, w);
        const double *expected = c->sums.analytic + c->wanted.at[w];
        if (wg__gradcheck_evaluate(&one, NULL, gradient) < 0)
            return -1;
        int64_t at =
            wg__gradcheck_unlike(c, wg_tensor_count(c->wanted.tensors[w]), gradient, expected, 1);
        if (at >= 0)
            return wg__gradcheck_fail_at(c, WG_DIAGNOSIS_WANTS_IGNORED, c->wanted.at[w] + at,
                                         "wanted alone: ", " is %.9g, not %.9g", gradient[at],
                                         expected[at]);
    }
    return 0;
}

/* Compares missing cotangents with zeros: for each output k, all outputs but k have the cotangent
 * NULL, or zeros. For k = -1 all outputs have, and all gradients are 0. */
static int zero_and_missing_cotangents(wg__gradcheck *c) {
    double *missing = c->gradient, *zeros = c->other;
    wg_tensor **weights = wg__alloc_array((int64_t)c->weighted.count + 1, sizeof *weights);
    wg__gradcheck again = *c;
    again.weighted.tensors = weights;
    int status = weights ? 0 : -1;
    for (int k = -1; k < (c->weighted.count > 1 ? c->weighted.count : 0) && status == 0; k++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        for (int i = 0; i < c->weighted.count; i++)
            weights[i] = i == k ? c->weighted.tensors[k] : NULL;
        status = wg__gradcheck_evaluate(&again, NULL, missing);
        for (int i = 0; i < c->weighted.count && status == 0; i++)
            weights[i] = i == k ? weights[k] : wg_zeros_like(c->weighted.tensors[i]);
        if (status == 0)
            status = wg__gradcheck_evaluate(&again, NULL, zeros);
        wg_scope_end(&scope, NULL);
        int64_t at =
            status < 0 ? -1 : wg__gradcheck_unlike(c, c->wanted.elements, zeros, missing, 1);
        if (at >= 0)
            status = wg__gradcheck_fail_at(c, WG_DIAGNOSIS_COTANGENTS, at,
                                           "under cotangents of zeros, and under missing ones: ",
                                           " is %.9g, not %.9g", zeros[at], missing[at]);
    }
    wg__free(weights);
    return status;
}

/* Two backward passes must add up to twice the gradient. Only for leaves, whose gradients are
 * restored afterwards; other tensors accumulate none. */
static int two_passes_add_up(wg__gradcheck *c) {
    double *gradient = c->gradient;
    for (int w = 0; w < c->wanted.count; w++)
        if (c->wanted.tensors[w]->node->op)
            return 0;
    wg_tensor **before = wg__calloc((size_t)c->wanted.count + 1, sizeof *before);
    if (!before)
        return -1;
    for (int w = 0; w < c->wanted.count; w++) {
        before[w] = c->wanted.tensors[w]->node->gradients[0];
        c->wanted.tensors[w]->node->gradients[0] = NULL;
    }
    wg_scope scope;
    wg_scope_begin(&scope);
    int status = wg__gradcheck_run(c);
    for (int i = 0; i < 2 * c->weighted.count && status == 0; i++) {
        wg_tensor *y = c->outputs[c->weighted.index[i / 2]];
        wg_backward_options options = {.cotangent = c->weighted.tensors[i / 2],
                                       .retain_graph = true};
        if (wg_requires_grad(y) && wg_backward(y, &options) < 0)
            status = wg__gradcheck_fail(c, WG_DIAGNOSIS_BACKWARD_FAILED, -1, "backward failed");
    }
    memset(gradient, 0, (size_t)c->wanted.elements * sizeof *gradient);
    for (int w = 0; w < c->wanted.count && status == 0; w++) {
        wg_tensor *found = wg_gradient(c->wanted.tensors[w]);
        status = found ? wg__read_doubles(found, gradient + c->wanted.at[w]) : 0;
    }
    wg_scope_end(&scope, NULL);
    for (int w = 0; w < c->wanted.count; w++) {
        wg_zero_grad(c->wanted.tensors[w]);
        c->wanted.tensors[w]->node->gradients[0] = before[w];
    }
    wg__free(before);
    const double *once = c->sums.analytic;
    int64_t at = status < 0 ? -1 : wg__gradcheck_unlike(c, c->wanted.elements, gradient, once, 2);
    if (at < 0)
        return status;
    return wg__gradcheck_fail_at(c, WG_DIAGNOSIS_ACCUMULATION, at,
                                 "after two backward passes: ", " is %.9g, not %.9g", gradient[at],
                                 2 * once[at]);
}

int wg__gradcheck_conduct_after(wg__gradcheck *c) {
    if (wg__gradcheck_threads(c) < 0)
        return -1;
    const int64_t before = wg_tensors_alive();
    if (wg__gradcheck_evaluate(c, NULL, c->gradient) < 0)
        return -1;
    const int64_t more = wg_tensors_alive() - before;
    if (more != 0)
        return wg__gradcheck_fail(c, WG_DIAGNOSIS_ALIVE, -1,
                                  "a run and its backward leave %lld tensors alive",
                                  (long long)more);
    if (c->wanted.count == 0)
        return 0;
    return each_gradient_alone(c) < 0 || zero_and_missing_cotangents(c) < 0 ||
                   two_passes_add_up(c) < 0
               ? -1
               : 0;
}

int wg__gradcheck_leaves_alone(wg__gradcheck *c) {
    wg_tensor **inputs = wg__calloc((size_t)c->input_count + 1, sizeof *inputs);
    double *gradient = c->gradient;
    int status = inputs ? 0 : wg__gradcheck_no_memory(c);
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int w = 0; w < c->wanted.count && c->wanted.count > 1 && status == 0; w++) {
        const int input = c->wanted.index[w];
        const double *expected = c->sums.analytic + c->wanted.at[w];
        for (int i = 0; i < c->input_count; i++)
            inputs[i] = c->inputs[i] ? wg_detach(c->inputs[i]) : NULL;
        wg_set_requires_grad(inputs[input], true);
        wg__gradcheck one = only_wanted(c, w);
        one.inputs = inputs;
        one.wanted.tensors = &inputs[input];
        status = wg__gradcheck_evaluate(&one, NULL, gradient);
        int64_t at = status < 0 ? -1
                                : wg__gradcheck_unlike(c, wg_tensor_count(inputs[input]), gradient,
                                                       expected, 1);
        if (at >= 0)
            status = wg__gradcheck_fail(
                c, WG_DIAGNOSIS_WANTS_IGNORED, input,
                "where input %d alone requires a gradient, it gets %.9g instead of %.9g", input,
                gradient[at], expected[at]);
    }
    wg_scope_end(&scope, NULL);
    wg__free(inputs);
    return status;
}

enum { ALL_AXES = 99, DROPPED = -1 };

/* Changes of shapes. A change of a single input makes the op broadcast it, if the op broadcasts.
 * The rank stays if the op has options, which may name axes. */
static const struct {
    const char *name;
    int axis, least_ndim;
    int64_t size; /* DROPPED, or that axis becomes shorter */
    bool changes_rank, alone_only;
} shapes[] = {
    {"rank 0", ALL_AXES, 1, DROPPED, true, false},   {"axis 0 of size 1", 0, 1, 1, false, false},
    {"last axis of size 1", -1, 2, 1, false, false}, {"axis 0 of size 0", 0, 1, 0, false, false},
    {"last axis of size 0", -1, 2, 0, false, false}, {"without axis 0", 0, 2, DROPPED, true, true}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Applies a change to x; NULL if x has the shape already, or cannot have it. */
static wg_tensor *cut(wg_tensor *x, int kind) {
    const int axis = shapes[kind].axis, ndim = wg_tensor_ndim(x);
    if (ndim < shapes[kind].least_ndim)
        return NULL;
    if (shapes[kind].size != DROPPED)
        return wg_tensor_size(x, axis) <= shapes[kind].size
                   ? NULL
                   : wg_slice(x, axis, 0, shapes[kind].size, 1);
    if (axis == ALL_AXES ? wg_tensor_count(x) == 0 : wg_tensor_size(x, axis) < 1)
        return NULL;
    for (int d = 0; d < (axis == ALL_AXES ? ndim : 1); d++)
        x = wg_select(x, 0, 0);
    return x;
}

int wg__variant_of_shape(const wg_op *op, int number, const wg_sample *sample, bool first,
                         wg__variant *variant) {
    (void)first;
    int kind = number % SHAPES, only = number / SHAPES - 1, count = 0;
    if (only >= sample->input_count)
        return 0;
    for (int i = 0; i < sample->input_count; i++)
        count += sample->inputs[i] != NULL;
    if (only < 0 ? shapes[kind].alone_only : count < 2)
        return -1;
    if (shapes[kind].changes_rank && op->options_size > 0)
        return -1;
    bool any = false;
    variant->sample = *sample;
    for (int i = 0; i < sample->input_count; i++) {
        wg_tensor *x = sample->inputs[i];
        if (!x || (only >= 0 && i != only))
            continue;
        x = cut(x, kind);
        any |= x != NULL;
        if (x)
            variant->sample.inputs[i] = wg_clone(x);
    }
    if (only < 0)
        snprintf(variant->name, sizeof variant->name, "%s", shapes[kind].name);
    else
        snprintf(variant->name, sizeof variant->name, "input %d %s", only, shapes[kind].name);
    return any ? 1 : -1;
}
