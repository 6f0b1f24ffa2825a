/* wg_vmap: every op on many samples at once, and its composition with gradients, forward mode and
 * itself. */
#include "autograd/functional.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

enum { SAMPLES = 3 };

/* ---- Every op of the registry ---- */

/* Ops that have neither batching rule nor decomposition, or whose decomposition looks at values,
 * and so are refused. Sizes of results that depend on values (nonzero, unique) can have no rule. */
static const char *const without_rule[] = {
    "bincount",       "dequantize",    "grouped_mm",  "histc",    "histogram",
    "masked_scatter", "masked_select", "nonzero",     "quantize", "quantized_linear",
    "searchsorted",   "segment_max",   "segment_sum", "unique"};

/* Ops that are refused for some inputs: tables of angles that differ, and bool masks. */
static const char *const partly[] = {"rotary", "index", "index_put"};

static bool is_among(const char *const *names, size_t count, const wg_op *op) {
    while (count > 0 && strcmp(names[count - 1], op->name) != 0)
        count--;
    return count > 0;
}

#define IS_AMONG(names, op) is_among(names, WG_COUNT(names), op)

static const char *error_text(void) {
    return wg_error_pending() ? wg_error_pending()->message : "no error";
}

typedef struct sampled {
    const wg_op *op;
    const void *options;
    uint32_t batched;
} sampled;

static int run_op(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    (void)output_count;
    const sampled *s = context;
    return wg_apply(s->op, input_count, inputs, s->options, outputs);
}

/* (inputs, cotangents) -> the gradients of all inputs. */
static int run_gradient(int input_count, wg_tensor *const *inputs, int output_count,
                        wg_tensor **outputs, void *context) {
    const sampled *s = context;
    const int n = input_count - s->op->output_count;
    wg_tensor *gradients[8];
    (void)output_count;
    if (wg_vjp(run_op, context, n, inputs, s->op->output_count, inputs + n, NULL, NULL, gradients) <
        0)
        return -1;
    for (int i = 0; i < n; i++)
        outputs[i] = gradients[i] ? gradients[i] : wg_scalar(WG_F64, 0);
    return 0;
}

/* Draws the same sample of an op from other random numbers. False if there is none. */
static bool draw(const wg_op *op, int index, int seed, wg_sample *sample) {
    wg_generator generator = {.seed = (uint64_t)seed + 1, .offset = (uint64_t)index << 16};
    *sample = (wg_sample){0};
    return op->sample(index, &generator, sample) == 1;
}

static bool same_shapes(const wg_sample *a, const wg_sample *b) {
    for (int i = 0; i < a->input_count; i++)
        if (!a->inputs[i] != !b->inputs[i] ||
            (a->inputs[i] && (wg_tensor_ndim(a->inputs[i]) != wg_tensor_ndim(b->inputs[i]) ||
                              memcmp(wg_tensor_shape(a->inputs[i]), wg_tensor_shape(b->inputs[i]),
                                     (size_t)wg_tensor_ndim(a->inputs[i]) * sizeof(int64_t)) != 0)))
            return false;
    return a->input_count == b->input_count;
}

/* The function on each sample alone, stacked. */
static void stack_alone(wg_function function, void *context, uint32_t batched, int input_count,
                        wg_tensor *samples[SAMPLES][16], int output_count, wg_tensor **stacked) {
    wg_tensor *all[8][SAMPLES];
    for (int b = 0; b < SAMPLES; b++) {
        wg_tensor *inputs[16], *outputs[8] = {NULL};
        for (int i = 0; i < input_count; i++)
            inputs[i] = samples[batched >> i & 1 ? b : 0][i];
        ck_assert_int_eq(function(input_count, inputs, output_count, outputs, context), 0);
        for (int j = 0; j < output_count; j++)
            all[j][b] = outputs[j];
    }
    for (int j = 0; j < output_count; j++)
        stacked[j] = wg_stack(SAMPLES, all[j], 0);
    assert_no_error();
}

/* The inputs, stacked where they are batched, and their axes. */
static void stack_batched(uint32_t batched, int count, wg_tensor *samples[SAMPLES][16],
                          wg_tensor **inputs, int *axes) {
    for (int i = 0; i < count; i++) {
        const bool has = batched >> i & 1 && samples[0][i];
        wg_tensor *each[SAMPLES];
        for (int b = 0; b < SAMPLES; b++)
            each[b] = samples[b][i];
        axes[i] = has ? 0 : WG_UNBATCHED;
        inputs[i] = has ? wg_stack(SAMPLES, each, 0) : samples[0][i];
    }
}

static void hold_against_each_alone(wg_function function, void *context, uint32_t batched,
                                    int input_count, wg_tensor *samples[SAMPLES][16],
                                    int output_count, const char *what) {
    wg_tensor *inputs[16], *expected[8], *found[8];
    int axes[16];
    stack_batched(batched, input_count, samples, inputs, axes);
    int status = wg_vmap(function, context, input_count, inputs, axes, output_count, found);
    const bool may_fail = IS_AMONG(partly, ((const sampled *)context)->op);
    if (status < 0 && may_fail && strstr(wg_error_pending()->message, "no batching rule")) {
        wg_error_clear();
        return;
    }
    ck_assert_msg(status == 0, "%s, inputs %x: %s", what, batched, error_text());
    stack_alone(function, context, batched, input_count, samples, output_count, expected);
    for (int j = 0; j < output_count; j++) {
        ck_assert_int_eq(wg_tensor_dtype(found[j]), wg_tensor_dtype(expected[j]));
        ck_assert_msg(wg_tensor_ndim(found[j]) == wg_tensor_ndim(expected[j]), "%s: rank", what);
        assert_close(wg_cast(found[j], WG_F64), wg_cast(expected[j], WG_F64), 1e-10, 1e-10);
    }
}

/* The op on all samples, as a function to be differentiated. */
typedef struct on_all {
    sampled *op;
    const int *axes;
} on_all;

static int run_on_all(int input_count, wg_tensor *const *inputs, int output_count,
                      wg_tensor **outputs, void *context) {
    const on_all *all = context;
    return wg_vmap(run_op, all->op, input_count, inputs, all->axes, output_count, outputs);
}

/* The gradient of vmap is the vmap of the gradient, which hold_against_each_alone compares with
 * each sample's; of an input that is the same for all samples it is the sum over them. */
static void hold_gradient_of_vmap(sampled *s, uint32_t batched, int n,
                                  wg_tensor *samples[SAMPLES][16]) {
    const wg_op *op = s->op;
    const int all = n + op->output_count;
    wg_tensor *inputs[16], *of_vmap[16], *inside[16];
    int axes[16];
    stack_batched(batched, all, samples, inputs, axes);
    int status = wg_vjp(run_on_all, &(on_all){s, axes}, n, inputs, op->output_count, inputs + n,
                        NULL, NULL, of_vmap);
    if (status == 0)
        status = wg_vmap(run_gradient, s, all, inputs, axes, n, inside);
    if (status < 0 && IS_AMONG(partly, op)) {
        wg_error_clear();
        return;
    }
    ck_assert_msg(status == 0, "inputs %x: %s", batched, error_text());
    for (int i = 0; i < n; i++) {
        if (!of_vmap[i])
            continue;
        wg_tensor *expected = axes[i] == 0 ? inside[i] : wg_sum(inside[i], WG_DIMS(0), false);
        assert_close(wg_cast(of_vmap[i], WG_F64), wg_cast(expected, WG_F64), 1e-10, 1e-10);
    }
}

/* The op, and its gradients inside of the function, with those inputs batched. */
static void check_pattern(sampled *s, uint32_t batched, int n, wg_tensor *samples[SAMPLES][16]) {
    const wg_op *op = s->op;
    wg_tensor *with_cotangents[SAMPLES][16], *outputs[WG_MAX_OUTPUTS];
    hold_against_each_alone(run_op, s, batched, n, samples, op->output_count, "the op");
    if (!op->differentiable)
        return;
    wg_generator generator = {.seed = 5};
    ck_assert_int_eq(wg_apply(op, n, samples[0], s->options, outputs), 0);
    uint32_t cotangents = 0;
    memcpy(with_cotangents, samples, sizeof with_cotangents);
    for (int j = 0; j < op->output_count; j++) {
        const bool floats = wg_dtype_is_float(wg_tensor_dtype(outputs[j]));
        cotangents |= (uint32_t)floats << (n + j);
        for (int b = 0; b < SAMPLES; b++)
            with_cotangents[b][n + j] =
                floats ? wg_cast(wg_randn(&generator, WG_F64, wg_tensor_ndim(outputs[j]),
                                          wg_tensor_shape(outputs[j])),
                                 wg_tensor_dtype(outputs[j]))
                       : NULL;
    }
    hold_against_each_alone(run_gradient, s, batched | cotangents, n + op->output_count,
                            with_cotangents, n, "gradients inside");
    hold_against_each_alone(run_gradient, s, cotangents, n + op->output_count, with_cotangents, n,
                            "gradients of batched cotangents");
    hold_gradient_of_vmap(s, batched | cotangents, n, with_cotangents);
}

START_TEST(an_op_on_all_samples_is_the_op_on_each) {
    const wg_op *op = wg_op_at(_i);
    if (IS_AMONG(without_rule, op) ||
        strcmp(op->name, "dropout") == 0) /* which drops others in each */
        return;
    for (int index = 0;; index++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_sample drawn[SAMPLES];
        wg_tensor *samples[SAMPLES][16] = {{NULL}};
        bool more = draw(op, index, 0, &drawn[0]);
        for (int b = 1; b < SAMPLES && more; b++)
            if (!draw(op, index, b, &drawn[b]) || !same_shapes(&drawn[0], &drawn[b]))
                drawn[b] = drawn[0];
        const int n = more ? drawn[0].input_count : 0;
        for (int b = 0; b < SAMPLES; b++)
            for (int i = 0; i < n; i++)
                samples[b][i] = drawn[b].inputs[i];
        sampled s = {op, drawn[0].options, 0};
        const uint32_t whole = ((uint32_t)1 << n) - 1;
        if (more)
            check_pattern(&s, whole, n, samples);
        for (int i = 0; more && n > 1 && i < n; i++)
            if (samples[0][i])
                check_pattern(&s, (uint32_t)1 << i, n, samples);
        wg_scope_end(&scope, NULL);
        if (!more)
            return;
    }
}
END_TEST

START_TEST(an_op_without_rule_is_refused_by_name) {
    const wg_op *op = wg_op_at(_i);
    wg_sample sample;
    if (!IS_AMONG(without_rule, op) || !draw(op, 0, 0, &sample))
        return;
    ck_assert_msg(!op->batch, "%s has a rule: take it out of the list", op->name);
    wg_tensor *inputs[8], *outputs[WG_MAX_OUTPUTS];
    for (int i = 0; i < sample.input_count; i++) {
        wg_tensor *each[] = {sample.inputs[i], sample.inputs[i]};
        inputs[i] = sample.inputs[i] ? wg_stack(2, each, 0) : NULL;
    }
    sampled s = {op, sample.options, 0};
    ck_assert_int_eq(
        wg_vmap(run_op, &s, sample.input_count, inputs, NULL, op->output_count, outputs), -1);
    ck_assert_ptr_null(outputs[0]);
    const char *message = wg_error_pending()->message;
    ck_assert_msg(strstr(message, "has no batching rule and no decomposition") ||
                      strstr(message, "stands for one sample of wg_vmap"),
                  "%s", message);
    wg_error_clear();
}
END_TEST

/* ---- Composition ---- */

/* A net of two layers: x (3), u (4, 3), v (4) -> a number. */
static int net(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
               void *context) {
    (void)input_count, (void)output_count, (void)context;
    wg_tensor *x = wg_reshape(inputs[0], WG_DIMS(3, 1));
    wg_tensor *hidden = wg_tanh(wg_matmul(inputs[1], x)); /* (4, 1) */
    outputs[0] = wg_sum(wg_mul(wg_reshape(hidden, WG_DIMS(4)), inputs[2]), WG_ALL, false);
    return outputs[0] ? 0 : -1;
}

static int gradients_of_net(int input_count, wg_tensor *const *inputs, int output_count,
                            wg_tensor **outputs, void *context) {
    (void)output_count;
    const wg_transform_options *options = context;
    return wg_vjp(net, NULL, input_count, inputs, 1, NULL, options, NULL, outputs);
}

typedef struct case_of_net {
    wg_tensor *x, *u, *v; /* (5, 3), (4, 3), (4) */
} case_of_net;

static case_of_net new_case(void) {
    wg_generator g = {.seed = 11};
    return (case_of_net){wg_randn(&g, WG_F64, WG_DIMS(5, 3)), wg_randn(&g, WG_F64, WG_DIMS(4, 3)),
                         wg_randn(&g, WG_F64, WG_DIMS(4))};
}

static const int x_alone[] = {0, WG_UNBATCHED, WG_UNBATCHED};

TEST(gradients_of_each_sample_are_one_pass) {
    const case_of_net c = new_case();
    wg_tensor *inputs[] = {c.x, c.u, c.v}, *found[3];
    ck_assert_int_eq(wg_vmap(gradients_of_net, NULL, 3, inputs, x_alone, 3, found), 0);
    ck_assert_int_eq(wg_tensor_ndim(found[1]), 3);
    for (int b = 0; b < 5; b++) {
        wg_tensor *one[] = {wg_select(c.x, 0, b), c.u, c.v}, *expected[3];
        ck_assert_int_eq(wg_vjp(net, NULL, 3, one, 1, NULL, NULL, NULL, expected), 0);
        for (int i = 0; i < 3; i++)
            assert_close(wg_select(found[i], 0, b), expected[i], 1e-12, 1e-12);
    }
}

/* The sum over samples of the squares of their gradients by u, as a function of u. */
static wg_tensor *squares_of_gradients(wg_tensor *x, wg_tensor *u, wg_tensor *v, bool by_vmap) {
    const wg_transform_options recorded = {.create_graph = true};
    if (by_vmap) {
        wg_tensor *inputs[] = {x, u, v}, *found[3];
        wg_vmap(gradients_of_net, (void *)&recorded, 3, inputs, x_alone, 3, found);
        return wg_sum(wg_square(found[1]), WG_ALL, false);
    }
    wg_tensor *sum = wg_scalar(WG_F64, 0);
    for (int b = 0; b < 5; b++) {
        wg_tensor *one[] = {wg_select(x, 0, b), u, v}, *found[3];
        wg_vjp(net, NULL, 3, one, 1, NULL, &recorded, NULL, found);
        sum = wg_add(sum, wg_sum(wg_square(found[1]), WG_ALL, false));
    }
    return sum;
}

TEST(a_gradient_goes_through_gradients_of_samples) {
    const case_of_net c = new_case();
    wg_tensor *gradients[2];
    for (int by_vmap = 0; by_vmap < 2; by_vmap++) {
        wg_tensor *u = leaf_of(wg_clone(c.u));
        wg_tensor *loss = squares_of_gradients(c.x, u, c.v, by_vmap);
        ck_assert_int_eq(wg_grad(1, &loss, NULL, 1, &u, NULL, &gradients[by_vmap]), 0);
    }
    assert_close(gradients[1], gradients[0], 1e-12, 1e-12);
}

typedef struct directional {
    wg_tensor *const *inputs; /* of net */
} directional;

/* A direction of x -> the derivative of net. */
static int along(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                 void *context) {
    (void)input_count, (void)output_count;
    const directional *d = context;
    wg_tensor *tangents[] = {inputs[0], NULL, NULL};
    return wg_jvp(net, NULL, 3, d->inputs, tangents, 1, NULL, outputs);
}

TEST(forward_mode_over_directions_is_a_gradient) {
    const case_of_net c = new_case();
    wg_tensor *one[] = {wg_select(c.x, 0, 1), c.u, c.v}, *expected[3], *found;
    ck_assert_int_eq(wg_vjp(net, NULL, 3, one, 1, NULL, NULL, NULL, expected), 0);
    wg_tensor *basis = wg_eye(WG_F64, 3, 3);
    ck_assert_int_eq(wg_vmap(along, &(directional){one}, 1, &basis, NULL, 1, &found), 0);
    assert_close(found, expected[0], 1e-12, 1e-12);
}

/* net over the samples of x, as a function to be differentiated; or, under vmap, an ensemble: for
 * each net (u and v), all x. */
static int batched_net(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    return wg_vmap(net, context, input_count, inputs, x_alone, output_count, outputs);
}

TEST(forward_mode_goes_through_vmap) {
    const case_of_net c = new_case();
    wg_generator g = {.seed = 12};
    wg_tensor *inputs[] = {c.x, c.u, c.v};
    wg_tensor *tangents[] = {wg_randn(&g, WG_F64, WG_DIMS(5, 3)),
                             wg_randn(&g, WG_F64, WG_DIMS(4, 3)), NULL};
    wg_tensor *found;
    ck_assert_int_eq(wg_jvp(batched_net, NULL, 3, inputs, tangents, 1, NULL, &found), 0);
    for (int b = 0; b < 5; b++) {
        wg_tensor *one[] = {wg_select(c.x, 0, b), c.u, c.v}, *expected;
        wg_tensor *direction[] = {wg_select(tangents[0], 0, b), tangents[1], NULL};
        ck_assert_int_eq(wg_jvp(net, NULL, 3, one, direction, 1, NULL, &expected), 0);
        assert_close(wg_select(found, 0, b), expected, 1e-12, 1e-12);
    }
}

/* x x, where the second x is a constant. */
FUNCTION(half_constant, wg_mul(x, wg_detach(x)))

TEST(what_a_function_detaches_is_constant_around_vmap) {
    const case_of_net c = new_case();
    wg_tensor *x = wg_clone(c.x), *y, *gradient;
    wg_set_requires_grad(x, true);
    ck_assert_int_eq(wg_vmap(half_constant, NULL, 1, &x, NULL, 1, &y), 0);
    y = wg_sum(y, WG_ALL, false);
    ck_assert_int_eq(wg_grad(1, &y, NULL, 1, &x, NULL, &gradient), 0);
    assert_close(gradient, c.x, 0, 0);
}

TEST(vmap_stands_in_vmap) {
    const case_of_net c = new_case();
    wg_generator g = {.seed = 13};
    wg_tensor *u = wg_randn(&g, WG_F64, WG_DIMS(4, 3, 2)), *v = wg_randn(&g, WG_F64, WG_DIMS(2, 4));
    wg_tensor *inputs[] = {c.x, u, v}, *found;
    const int axes[] = {WG_UNBATCHED, -1, 0};
    ck_assert_int_eq(wg_vmap(batched_net, NULL, 3, inputs, axes, 1, &found), 0);
    ck_assert_int_eq(wg_tensor_ndim(found), 2);
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < 5; b++) {
            wg_tensor *one[] = {wg_select(c.x, 0, b), wg_select(u, -1, k), wg_select(v, 0, k)};
            wg_tensor *expected;
            ck_assert_int_eq(net(3, one, 1, &expected, NULL), 0);
            assert_close(wg_select(wg_select(found, 0, k), 0, b), expected, 1e-12, 1e-12);
        }
}

/* ---- Outputs and errors ---- */

static int constant(int input_count, wg_tensor *const *inputs, int output_count,
                    wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    outputs[0] = wg_full(WG_F64, WG_DIMS(2), 7);
    outputs[1] = inputs[0];
    return 0;
}

TEST(an_output_that_is_the_same_for_all_is_repeated) {
    wg_tensor *x = wg_arange(WG_I64, 0, 4, 1), *found[2];
    ck_assert_int_eq(wg_vmap(constant, NULL, 1, &x, NULL, 2, found), 0);
    assert_close(found[0], wg_full(WG_F64, WG_DIMS(4, 2), 7), 0, 0);
    ck_assert_int_eq(wg_tensor_dtype(found[1]), WG_I64);
    assert_close(wg_cast(found[1], WG_F64), wg_cast(x, WG_F64), 0, 0);
}

static wg_tensor *escaped;

static int reads(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                 void *context) {
    (void)input_count, (void)output_count;
    if (context)
        escaped = wg_alias(inputs[0]);
    else
        wg_item(inputs[0]);
    outputs[0] = inputs[0];
    return wg_error_pending() ? -1 : 0;
}

TEST(elements_of_one_sample_cannot_be_read) {
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(4)), *y;
    ck_assert_int_eq(wg_vmap(reads, NULL, 1, &x, NULL, 1, &y), -1);
    refused(y, STATE, "stands for one sample of wg_vmap");
}

TEST(inputs_that_do_not_fit_are_refused) {
    wg_tensor *inputs[] = {wg_ones(WG_F64, WG_DIMS(4)), wg_ones(WG_F64, WG_DIMS(5))}, *y;
    failed(wg_vmap(reads, NULL, 2, inputs, NULL, 1, &y), SHAPE,
           "axis 0 of input 1 has 5 samples; an earlier input has 4");
    failed(wg_vmap(reads, NULL, 2, inputs, (int[]){0, 1}, 1, &y), INDEX, "vmap");
    failed(wg_vmap(reads, NULL, 2, inputs, (int[]){WG_UNBATCHED, WG_UNBATCHED}, 1, &y), ARGUMENT,
           "no input is batched");
}

FUNCTION(wrong_shapes, wg_add(x, wg_ones(WG_F64, WG_DIMS(3))))

TEST(errors_show_the_shapes_of_one_sample) {
    wg_tensor *x = wg_ones(WG_F64, WG_DIMS(4, 2)), *y;
    failed(wg_vmap(wrong_shapes, NULL, 1, &x, NULL, 1, &y), SHAPE, "add: (2) f64 x (3) f64");
}

/* ---- Against torch.func: vmap of a function, of its Jacobian and of a Hessian. The functions are
 * those of tests/fixtures/vmap.py. ---- */

#define OF_X(NAME, ...)                                                                            \
    static wg_tensor *NAME(wg_tensor *x) {                                                         \
        return __VA_ARGS__;                                                                        \
    }
OF_X(square3, wg_reshape(x, WG_DIMS(3, 3)))
OF_X(shifted, wg_add(square3(x), wg_mul_scalar(wg_eye(WG_F64, 3, 3), 4)))
OF_X(of_softmax, wg_softmax(square3(x), 1))
OF_X(of_logsumexp, wg_logsumexp(square3(x), WG_DIMS(0), false))
OF_X(of_layer_norm, wg_layer_norm_op(square3(x), NULL, NULL, 1e-5))
OF_X(of_matmul, wg_tanh(wg_matmul(square3(x), wg_transpose(square3(x), 0, 1))))
OF_X(of_cumsum, wg_cumsum(wg_sin(x), 0))
OF_X(of_prod, wg_prod(square3(x), WG_DIMS(1), false))
OF_X(of_norm, wg_norm(square3(x), 2, WG_DIMS(1), false))

static wg_tensor *of_sort(wg_tensor *x) {
    wg_tensor *values = NULL;
    wg_sort(x, 0, false, &values, NULL);
    return wg_pow_scalar(values, 3);
}

static wg_tensor *of_gather(wg_tensor *x) {
    static const int64_t index[] = {0, 2, 1, 1, 2, 0};
    return wg_square(
        wg_take_along_axis(square3(x), 1, wg_from_array(WG_I64, WG_DIMS(3, 2), index)));
}

static wg_tensor *of_solve(wg_tensor *x) {
    wg_tensor *b = wg_slice(square3(x), 1, 0, 2, 1);
    return wg_solve(shifted(x), wg_mul(b, b), false);
}

static wg_tensor *of_cholesky(wg_tensor *x) {
    wg_tensor *product = wg_matmul(square3(x), wg_transpose(square3(x), 0, 1));
    return wg_cholesky(wg_add(product, wg_eye(WG_F64, 3, 3)), false);
}

static wg_tensor *of_slogdet(wg_tensor *x) {
    wg_tensor *sign = NULL, *logarithm = NULL;
    wg_slogdet(shifted(x), &sign, &logarithm);
    return logarithm;
}

static wg_tensor *of_conv2d(wg_tensor *x) {
    wg_tensor *image = wg_reshape(wg_slice(x, 0, 0, 16, 1), WG_DIMS(1, 1, 4, 4));
    wg_tensor *weight = wg_reshape(wg_slice(x, 0, 16, 24, 1), WG_DIMS(2, 1, 2, 2));
    return wg_tanh(wg_conv_op(image, weight, NULL, &(wg_conv_options){.stride = {2, 2}}));
}

OF_X(of_max_pool2d, wg_square(wg_max_pool(wg_reshape(x, WG_DIMS(1, 1, 4, 4)),
                                          &(wg_pool_options){.kernel = {2, 2}}, NULL)))

static wg_tensor *of_attention(wg_tensor *x) {
    wg_tensor *all = wg_reshape(x, WG_DIMS(3, 1, 1, 3, 2));
    return wg_attention(wg_select(all, 0, 0), wg_select(all, 0, 1), wg_select(all, 0, 2), NULL,
                        NULL);
}

typedef struct of_torch {
    const char *name;
    wg_tensor *(*function)(wg_tensor *x);
} of_torch;

static const of_torch functions[] = {
    {"softmax", of_softmax},     {"logsumexp", of_logsumexp}, {"layer_norm", of_layer_norm},
    {"matmul", of_matmul},       {"cumsum", of_cumsum},       {"prod", of_prod},
    {"norm", of_norm},           {"sort", of_sort},           {"gather", of_gather},
    {"gelu", wg_gelu},           {"solve", of_solve},         {"cholesky", of_cholesky},
    {"slogdet", of_slogdet},     {"conv2d", of_conv2d},       {"max_pool2d", of_max_pool2d},
    {"attention", of_attention},
};

static const char *function_name(int index) {
    return functions[index].name;
}

FUNCTION(value_of, ((const of_torch *)context)->function(x))

static int squares_of(int input_count, wg_tensor *const *inputs, int output_count,
                      wg_tensor **outputs, void *context) {
    if (value_of(input_count, inputs, output_count, outputs, context) < 0)
        return -1;
    outputs[0] = wg_sum(wg_square(outputs[0]), WG_ALL, false);
    return outputs[0] ? 0 : -1;
}

static int jacobian_of(int input_count, wg_tensor *const *inputs, int output_count,
                       wg_tensor **outputs, void *context) {
    return wg_jacobian(value_of, context, input_count, inputs, output_count, NULL, outputs);
}

static int hessian_of(int input_count, wg_tensor *const *inputs, int output_count,
                      wg_tensor **outputs, void *context) {
    (void)output_count;
    return wg_hessian(squares_of, context, input_count, inputs, NULL, outputs);
}

START_TEST(values_jacobians_and_hessians_of_samples_are_those_of_torch_func) {
    static const struct {
        const char *name;
        wg_function function;
    } transforms[] = {{"vmap", value_of}, {"jacrev", jacobian_of}, {"hessian", hessian_of}};
    json_t *fixtures = json_load_file(fixture("vmap.json"), 0, NULL);
    const json_t *wanted = json_object_get(fixtures, functions[_i].name);
    ck_assert_ptr_nonnull(wanted);
    wg_tensor *x = tensor_from_json(json_object_get(wanted, "x"));
    for (size_t t = 0; t < WG_COUNT(transforms); t++) {
        wg_tensor *found = NULL;
        const int status =
            wg_vmap(transforms[t].function, (void *)&functions[_i], 1, &x, NULL, 1, &found);
        ck_assert_msg(status == 0, "%s: %s", transforms[t].name, error_text());
        assert_close(found, tensor_from_json(json_object_get(wanted, transforms[t].name)), 1e-10,
                     1e-10);
    }
    json_decref(fixtures);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {an_op_on_all_samples_is_the_op_on_each,
                                    an_op_without_rule_is_refused_by_name};
    add_suite_of_range("vmap_ops", WG_COUNT(of_each), of_each, 0, wg_op_count(), op_name);
    const TTest *const of_functions[] = {
        values_jacobians_and_hessians_of_samples_are_those_of_torch_func};
    add_suite_of_range("vmap_torch", WG_COUNT(of_functions), of_functions, 0,
                       (int)WG_COUNT(functions), function_name);
}
