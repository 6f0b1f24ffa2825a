/* Regions whose forward runs again in backward: the same gradients, less memory, and what the
 * second run may not change. */
#include "autograd/functional.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

/* ---- A deep network of blocks: x + dropout(gelu(x w)) v, normalised ---- */

enum { DEPTH = 6, WIDTH = 16, ROWS = 8 };

typedef struct block {
    wg_tensor *w, *v;
    wg_generator *generator; /* NULL: the default one */
    int runs;
} block;

typedef struct network {
    block blocks[DEPTH];
    wg_tensor *x, *target;
    bool recomputes;
    const wg_activation_checkpoint_options *options;
} network;

static wg_tensor *weight(wg_generator *generator) {
    wg_tensor *w =
        wg_mul_scalar(wg_randn(generator, WG_F32, WG_DIMS(WIDTH, WIDTH)), 1 / sqrt(WIDTH));
    wg_set_requires_grad(w, true);
    return w;
}

static network network_new(void) {
    wg_generator generator = {.seed = 9};
    network net = {.recomputes = true};
    for (int i = 0; i < DEPTH; i++)
        net.blocks[i] = (block){.w = weight(&generator), .v = weight(&generator)};
    net.x = wg_randn(&generator, WG_F32, WG_DIMS(ROWS, WIDTH));
    net.target = wg_zeros(WG_I64, WG_DIMS(ROWS));
    wg_set_requires_grad(net.x, true);
    return net;
}

static int block_forward(int input_count, wg_tensor *const *inputs, int output_count,
                         wg_tensor **outputs, void *context) {
    block *b = context;
    (void)input_count, (void)output_count;
    wg_generator *generator = b->generator ? b->generator : wg_default_generator();
    wg_scope scope;
    wg_scope_begin(&scope);
    b->runs++;
    wg_tensor *hidden = wg_gelu(wg_linear_op(inputs[0], b->w, NULL));
    hidden = wg_dropout_op(hidden, 0.3, generator->seed, generator->offset++);
    wg_tensor *y = wg_add(inputs[0], wg_linear_op(hidden, b->v, NULL));
    outputs[0] = wg_scope_end(&scope, wg_layer_norm_op(y, NULL, NULL, 1e-5));
    return outputs[0] ? 0 : -1;
}

static wg_tensor *network_loss(network *net) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = net->x;
    for (int i = 0; i < DEPTH; i++)
        if (net->recomputes)
            wg_activation_checkpoint(block_forward, &net->blocks[i], 1, &x, 1, &x, net->options);
        else
            block_forward(1, &x, 1, &x, &net->blocks[i]);
    return wg_scope_end(&scope, wg_cross_entropy(x, net->target, -100, NULL));
}

enum { LEAVES = 2 * DEPTH + 1 };

static void list_leaves(const network *net, wg_tensor **leaves) {
    for (int i = 0; i < DEPTH; i++) {
        leaves[2 * i] = net->blocks[i].w;
        leaves[2 * i + 1] = net->blocks[i].v;
    }
    leaves[2 * DEPTH] = net->x;
}

static void assert_same_bits(const wg_tensor *x, const wg_tensor *expected) {
    ck_assert(x && expected && wg_tensor_is_contiguous(x) && wg_tensor_is_contiguous(expected));
    ck_assert_int_eq(wg_tensor_count(x), wg_tensor_count(expected));
    ck_assert_mem_eq(wg_tensor_data(x), wg_tensor_data(expected),
                     (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x)));
}

static void assert_same_bits_of_all(wg_tensor *const *x, wg_tensor *const *expected, int count) {
    for (int i = 0; i < count; i++)
        assert_same_bits(x[i], expected[i]);
}

/* The gradients of all leaves by backward, cloned, and the state of the default generator
 * afterwards. */
static uint64_t train(network *net, wg_tensor **gradients) {
    wg_tensor *leaves[LEAVES];
    list_leaves(net, leaves);
    wg_manual_seed(5);
    backward_from(network_loss(net), NULL);
    for (int i = 0; i < LEAVES; i++) {
        gradients[i] = wg_clone(wg_gradient(leaves[i]));
        wg_zero_grad(leaves[i]);
    }
    return wg_default_generator()->offset;
}

TEST(gradients_are_the_same_bit_for_bit) {
    network net = network_new();
    wg_tensor *with[LEAVES], *without[LEAVES];
    uint64_t drawn = train(&net, with);
    for (int i = 0; i < DEPTH; i++)
        ck_assert_int_eq(net.blocks[i].runs, 2);
    net.recomputes = false;
    ck_assert_uint_eq(train(&net, without), drawn);
    assert_same_bits_of_all(with, without, LEAVES);
}

TEST(a_generator_that_is_named_is_put_back_for_the_second_run) {
    network net = network_new();
    wg_generator own = {.seed = 77, .offset = 3}, *generators[] = {&own};
    wg_activation_checkpoint_options options = {.generator_count = 1, .generators = generators};
    wg_tensor *with[LEAVES], *without[LEAVES];
    for (int i = 0; i < DEPTH; i++)
        net.blocks[i].generator = &own;
    net.options = &options;
    train(&net, with);
    ck_assert_uint_eq(own.offset, 3 + DEPTH);
    own.offset = 3;
    net.recomputes = false;
    train(&net, without);
    assert_same_bits_of_all(with, without, LEAVES);
}

/* x w, where w comes from the context. */
FUNCTION(product, wg_gelu(wg_linear_op(x, *(wg_tensor **)context, NULL)))

TEST(a_context_that_is_copied_may_be_another_for_each_call) {
    network net = network_new();
    const wg_activation_checkpoint_options copied = {.context_size = sizeof(wg_tensor *)};
    wg_tensor *gradients[2][DEPTH];
    for (int plain = 0; plain < 2; plain++) {
        wg_tensor *x = net.x,
                  *w = NULL; /* one variable is used for all calls, and is NULL at the end */
        for (int i = 0; i < DEPTH; i++) {
            w = net.blocks[i].w;
            if (plain)
                product(1, &x, 1, &x, &w);
            else
                ck_assert_int_eq(wg_activation_checkpoint(product, &w, 1, &x, 1, &x, &copied), 0);
        }
        w = NULL;
        backward_from(wg_sum(x, WG_ALL, false), NULL);
        for (int i = 0; i < DEPTH; i++) {
            gradients[plain][i] = wg_clone(wg_gradient(net.blocks[i].w));
            wg_zero_grad(net.blocks[i].w);
        }
    }
    assert_same_bits_of_all(gradients[0], gradients[1], DEPTH);
}

TEST(the_functional_form_retain_graph_and_second_derivatives_work) {
    network net = network_new();
    wg_tensor *leaves[LEAVES], *first[2][LEAVES], *second[2][LEAVES];
    list_leaves(&net, leaves);
    for (int plain = 0; plain < 2; plain++) {
        net.recomputes = !plain;
        wg_manual_seed(5);
        wg_tensor *loss = network_loss(&net);
        wg_backward_options options = {.retain_graph = true};
        for (int pass = 0; pass < 2; pass++)
            ck_assert_int_eq(wg_grad(1, &loss, NULL, LEAVES, leaves, &options, first[plain]), 0);
        options.create_graph = true;
        wg_tensor *recorded[LEAVES];
        ck_assert_int_eq(wg_grad(1, &loss, NULL, LEAVES, leaves, &options, recorded), 0);
        ck_assert_int_eq(wg_grad(1, recorded, &leaves[0], LEAVES, leaves, NULL, second[plain]), 0);
    }
    assert_same_bits_of_all(first[0], first[1], LEAVES);
    assert_same_bits_of_all(second[0], second[1], LEAVES);
}

TEST(a_graph_serves_one_backward_pass_here_too) {
    network net = network_new();
    wg_tensor *loss = network_loss(&net);
    backward_from(loss, NULL);
    failed(wg_backward(loss, NULL), GRADIENT, "retain_graph");
}

/* Each block saves about five times its input. */
TEST(the_peak_of_memory_falls) {
    network net = network_new();
    net.x = wg_detach(wg_expand(wg_slice(net.x, 0, 0, 1, 1), WG_DIMS(4096, WIDTH)));
    net.target = wg_zeros(WG_I64, WG_DIMS(4096));
    int64_t before = wg_alloc_get_stats().live_bytes, peak[2];
    for (int plain = 0; plain < 2;
         plain++) { /* the recorded peak never falls, so the smaller one is measured first */
        net.recomputes = !plain;
        backward_from(network_loss(&net), NULL);
        peak[plain] = wg_alloc_get_stats().peak_bytes - before;
    }
    ck_assert_msg(peak[0] * 5 < peak[1] * 3, "%lld bytes with, %lld without", (long long)peak[0],
                  (long long)peak[1]);
}

TEST(nothing_is_recomputed_while_recording_is_off) {
    network net = network_new();
    wg_set_grad_enabled(false);
    wg_tensor *loss = network_loss(&net);
    wg_set_grad_enabled(true);
    ck_assert(loss && !wg_requires_grad(loss));
    ck_assert_int_eq(net.blocks[0].runs, 1);
}

/* ---- Smaller functions ---- */

static int square_of_exp(int input_count, wg_tensor *const *inputs, int output_count,
                         wg_tensor **outputs, void *context) {
    (void)input_count, (void)context;
    wg_tensor *y = wg_exp(inputs[0]);
    outputs[0] = wg_mul(y, y);
    if (output_count > 1)
        outputs[1] = inputs[0];
    return outputs[0] ? 0 : -1;
}

static int twice(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                 void *context) {
    wg_tensor *middle;
    return wg_activation_checkpoint(square_of_exp, NULL, input_count, inputs, 1, &middle, NULL) < 0
               ? -1
               : square_of_exp(1, &middle, output_count, outputs, context);
}

static wg_tensor *leaf(double value) {
    wg_tensor *x = leaf_of(wg_scalar(WG_F64, value));
    return x;
}

static double slope(wg_function function, wg_tensor *x, void *context) {
    wg_tensor *y, *gradient;
    wg_activation_checkpoint(function, context, 1, &x, 1, &y, NULL);
    return wg_grad(1, &y, NULL, 1, &x, NULL, &gradient) < 0 ? NAN : wg_item(gradient);
}

TEST(a_region_in_a_region_is_part_of_it) {
    double y = exp(2 * 0.1), z = exp(2 * y);
    ck_assert_double_eq_tol(slope(twice, leaf(0.1), NULL), 4 * y * z, 1e-12);
    assert_no_error();
}

TEST(an_input_may_be_an_output_and_some_outputs_unused) {
    wg_tensor *x = leaf(0.3), *outputs[2], *gradient;
    ck_assert_int_eq(wg_activation_checkpoint(square_of_exp, NULL, 1, &x, 2, outputs, NULL), 0);
    ck_assert_int_eq(wg_grad(1, &outputs[1], NULL, 1, &x, NULL, &gradient), 0);
    ck_assert_double_eq(wg_item(gradient), 1);
    ck_assert_int_eq(wg_activation_checkpoint(square_of_exp, NULL, 1, &x, 2, outputs, NULL), 0);
    ck_assert_int_eq(wg_grad(1, &outputs[0], NULL, 1, &x, NULL, &gradient), 0);
    ck_assert_double_eq_tol(wg_item(gradient), 2 * exp(0.6), 1e-12);
}

/* A branch without a use: its node is freed after the first run and exists again in the second. */
static int with_a_loose_end(int input_count, wg_tensor *const *inputs, int output_count,
                            wg_tensor **outputs, void *context) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *loose = wg_mul(wg_exp(inputs[0]), inputs[0]);
    int status = loose ? square_of_exp(input_count, inputs, output_count, outputs, context) : -1;
    wg_scope_escape(outputs[0]);
    wg_scope_end(&scope, NULL);
    return status;
}

TEST(what_the_function_drops_is_dropped) {
    ck_assert_double_eq_tol(slope(with_a_loose_end, leaf(0.3), NULL), 2 * exp(0.6), 1e-12);
    assert_no_error();
}

TEST(forward_mode_runs_through) {
    wg_tensor *x = wg_scalar(WG_F64, 0.1), *one = wg_scalar(WG_F64, 1), *tangent;
    wg_jvp(twice, NULL, 1, &x, &one, 1, NULL, &tangent);
    double y = exp(2 * 0.1), z = exp(2 * y);
    assert_close(tangent, wg_scalar(WG_F64, 4 * y * z), 1e-12, 0);
}

static wg_tensor *count_call(wg_tensor *gradient, void *context) {
    (void)gradient;
    ++*(int *)context;
    return NULL;
}

static int hooked(int input_count, wg_tensor *const *inputs, int output_count, wg_tensor **outputs,
                  void *context) {
    (void)input_count, (void)output_count;
    wg_tensor *y = wg_exp(inputs[0]);
    wg_register_hook(y, count_call, context);
    outputs[0] = wg_mul(y, y);
    return outputs[0] ? 0 : -1;
}

TEST(a_hook_that_the_function_registers_is_called_once) {
    int calls = 0;
    ck_assert_double_eq_tol(slope(hooked, leaf(0.3), &calls), 2 * exp(0.6), 1e-12);
    ck_assert_int_eq(calls, 1);
}

/* ---- What goes wrong ---- */

typedef struct fickle {
    int runs;
    int way; /* how the second run differs */
    wg_tensor *parameter;
} fickle;

static int fickle_function(int input_count, wg_tensor *const *inputs, int output_count,
                           wg_tensor **outputs, void *context) {
    fickle *f = context;
    bool again = f->runs++ > 0;
    (void)input_count, (void)output_count;
    wg_tensor *x = inputs[0];
    switch (again ? f->way : 0) {
    case 1:
        x = wg_tanh(x);
        break;
    case 2:
        x = wg_exp(wg_reshape(x, WG_DIMS(1)));
        break;
    case 4:
        return wg_fail(WG_ERROR_STATE, "fickle", "it has changed its mind");
    default:
        x = wg_exp(x);
    }
    x = wg_mul(x, f->parameter);
    outputs[0] = again && f->way == 3 ? x : wg_sum(wg_exp(x), WG_ALL, false);
    if (again && f->way == 5)
        outputs[0] = wg_exp(outputs[0]);
    return outputs[0] ? 0 : -1;
}

TEST(another_second_run_is_an_error) {
    static const struct {
        int way;
        wg_error_code code;
        const char *part;
    } cases[] = {{1, WG_ERROR_GRADIENT, "tanh: () f64: the second run"},
                 {2, WG_ERROR_GRADIENT, "where the first had exp"},
                 {3, WG_ERROR_GRADIENT, "recorded 2 calls, the first 4"},
                 {4, WG_ERROR_STATE, "changed its mind"},
                 {5, WG_ERROR_GRADIENT, "the first one had ended"}};
    for (size_t k = 0; k < WG_COUNT(cases); k++) {
        fickle f = {.way = cases[k].way, .parameter = wg_scalar(WG_F64, 2)};
        wg_tensor *x = leaf(0.3), *y, *gradient;
        ck_assert_int_eq(wg_activation_checkpoint(fickle_function, &f, 1, &x, 1, &y, NULL), 0);
        assert_fails(wg_grad(1, &y, NULL, 1, &x, NULL, &gradient), cases[k].code, cases[k].part);
        ck_assert(wg_grad_enabled());
        f.way = 0; /* the graph is unchanged: a second run that does the same succeeds */
        ck_assert_int_eq(wg_grad(1, &y, NULL, 1, &x, NULL, &gradient), 0);
        ck_assert_double_eq_tol(wg_item(gradient), exp(2 * exp(0.3)) * 2 * exp(0.3), 1e-12);
    }
}

TEST(inputs_and_parameters_written_in_between_are_refused) {
    for (int which = 0; which < 2; which++) {
        fickle f = {.parameter = wg_scalar(WG_F64, 2)};
        wg_tensor *x = leaf(0.3), *y, *gradient;
        ck_assert_int_eq(wg_activation_checkpoint(fickle_function, &f, 1, &x, 1, &y, NULL), 0);
        wg_fill_(which ? f.parameter : wg_detach(x), 1);
        failed(wg_grad(1, &y, NULL, 1, &x, NULL, &gradient), GRADIENT,
               which ? "operand 1 was written in place" : "input 0 was written in place");
    }
}

static int differentiates(int input_count, wg_tensor *const *inputs, int output_count,
                          wg_tensor **outputs, void *context) {
    (void)input_count, (void)output_count, (void)context;
    wg_tensor *y = wg_exp(inputs[0]);
    return wg_grad(1, &y, NULL, 1, inputs, &(wg_backward_options){.create_graph = true}, outputs);
}

TEST(a_region_that_differentiates_itself_is_refused) {
    wg_tensor *x = leaf(0.3), *y = x;
    failed(wg_activation_checkpoint(differentiates, NULL, 1, &x, 1, &y, NULL), GRADIENT,
           "must not differentiate what it computes; exp");
    ck_assert_ptr_null(y);
    wg_fail(WG_ERROR_STATE, "test", "before");
    failed(wg_activation_checkpoint(twice, NULL, 1, &x, 1, &y, NULL), STATE, "before");
}

static int train_once(void *context) {
    network *net = context;
    wg_tensor *leaves[LEAVES];
    list_leaves(net, leaves);
    const uint64_t before = wg_default_generator()->offset;
    const int status = wg_backward(network_loss(net), NULL);
    ck_assert_uint_le(wg_default_generator()->offset, before + DEPTH);
    for (int i = 0; i < LEAVES; i++)
        wg_zero_grad(leaves[i]);
    return status;
}

TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    network net = network_new();
    fail_each_allocation(train_once, &net);
}
