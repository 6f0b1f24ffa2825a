/* LoRA adapters: against PyTorch, what is trained and what stays, and which layers get one. */
#include "nn/lora.h"

#include <stdio.h>
#include <string.h>

#include "autograd/autograd.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/linear.h"
#include "nn/internal.h"
#include "optim/optimizer.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "base/internal.h"
#include "tests/nn/layer_case.h"
#include "tests/support/testing.h"

/* The sizes of tests/fixtures/lora.py. */
enum { N = 2, T = 5, IN = 12, OUT = 7, RANK = 3 };
static const double ALPHA = 6;

static const char *const all_linear[] = {WG_LORA_ALL_LINEAR};

/* ---- Beside PyTorch ---- */

static void set(wg_tensor *x, wg_tensor *value) {
    const bool recording = wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_copy_(x, value), 0);
    wg_set_grad_enabled(recording);
}

static void hold_against_file(const char *name, bool transposed, wg_dtype dtype, double tolerance) {
    layer_file file = {fixture_tensor("lora/%s", name), 0};
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_linear *layer =
        wg_linear_new(root, "layer", IN, OUT, &(wg_linear_options){.transposed = transposed});
    const wg_lora_options options = {
        .rank = RANK, .alpha = ALPHA, .target_count = 1, .targets = all_linear};
    ck_assert_int_eq(wg_lora_attach(root, &options), 1);
    ck_assert_int_eq(wg_module_to(root, dtype), 0);
    wg_tensor *x = wg_clone(take(&file, dtype, WG_DIMS(N, T, IN)));
    wg_set_requires_grad(x, true);
    wg_tensor *a = wg__lora_of(layer)->a->weight, *b = wg__lora_of(layer)->b->weight;
    set(layer->weight, take_like(&file, layer->weight));
    set(layer->bias, take_like(&file, layer->bias));
    set(a, take_like(&file, a));
    set(b, take_like(&file, b));
    wg_tensor *y = wg_linear_forward(layer, x), *cotangent = take_like(&file, y);
    wg_tensor *wanted = take_like(&file, y);
    assert_close(y, wanted, tolerance, tolerance);
    ck_assert_int_eq(wg_backward(y, &(wg_backward_options){.cotangent = cotangent}), 0);
    assert_close(wg_gradient(x), take_like(&file, x), tolerance, tolerance);
    assert_close(wg_gradient(a), take_like(&file, a), tolerance, tolerance);
    assert_close(wg_gradient(b), take_like(&file, b), tolerance, tolerance);
    ck_assert_ptr_null(wg_gradient(layer->weight));
    ck_assert_ptr_null(wg_gradient(layer->bias));

    ck_assert_int_eq(wg_lora_merge(root), 1);
    assert_close(layer->weight, take_like(&file, layer->weight), tolerance, tolerance);
    ck_assert_int_eq(file.at, wg_tensor_count(file.flat));
    assert_close(wg_linear_forward(layer, x), wanted, 10 * tolerance, 10 * tolerance);
    ck_assert_int_eq(wg_module_parameter_count(root), IN * OUT + OUT);
    ck_assert(wg_requires_grad(layer->weight) && wg_requires_grad(layer->bias));
    wg_module_free(root);
}

START_TEST(values_gradients_and_merged_weights_are_pytorchs) {
    hold_against_file("linear", false, WG_F64, 1e-12);
    hold_against_file("linear", false, WG_F32, 2e-5);
    hold_against_file("conv1d", true, WG_F64, 1e-12);
    hold_against_file("conv1d", true, WG_F32, 2e-5);
}
END_TEST

/* ---- A small model: x -> up -> gelu -> down, and a head whose weight is a table's ---- */

typedef struct net {
    wg_module module;
    wg_feed_forward *block;
    wg_embedding *table;
    wg_linear *head;
} net;

static net *net_new(void) {
    net *made = wg_module_new(NULL, "", sizeof *made);
    made->module.generator = (wg_generator){.seed = 7};
    made->block = wg_feed_forward_new(&made->module, "block", IN, 20, NULL);
    made->table = wg_embedding_new(&made->module, "table", OUT, IN, NULL);
    made->head = wg_linear_new(&made->module, "head", IN, OUT,
                               &(wg_linear_options){.tied_weight = made->table->weight});
    return made;
}

static wg_tensor *run(net *n, wg_tensor *x) {
    return wg_linear_forward(n->head, wg_feed_forward_forward(n->block, x));
}

static wg_tensor *input(void) {
    wg_generator generator = {.seed = 3};
    return wg_randn(&generator, WG_F32, WG_DIMS(T, IN));
}

static int64_t attach(net *n, int count, const char *const *targets) {
    const wg_lora_options options = {.rank = RANK, .target_count = count, .targets = targets};
    return wg_lora_attach(&n->module, &options);
}

START_TEST(a_new_adapter_changes_no_bit) {
    net *n = net_new();
    wg_tensor *x = input(), *before = run(n, x);
    ck_assert_int_eq(attach(n, 1, all_linear), 2);
    assert_close(run(n, x), before, 0, 0);
    wg_module_free(&n->module);
}
END_TEST

static void step(net *n, wg_optimizer *optimizer) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *y = run(n, input());
    ck_assert_int_eq(wg_backward(wg_mean(wg_mul(y, y), WG_ALL, false), NULL), 0);
    ck_assert_int_eq(wg_optimizer_step(optimizer, 0.01), 0);
    wg_optimizer_zero_grad(optimizer);
    wg_scope_end(&scope, NULL);
}

START_TEST(adapters_learn_and_the_frozen_weights_keep_their_bits) {
    net *n = net_new();
    const char *const whole[] = {"head"}, *const targets[] = {"up", "down"};
    const wg_lora_options options = {
        .rank = RANK, .target_count = 2, .targets = targets, .whole_count = 0, .whole = whole};
    wg_state_dict *state = wg_module_state(&n->module);
    wg_tensor *before[8];
    for (int64_t i = 0; i < state->count; i++)
        before[i] = wg_clone(wg_detach(state->entries[i].slot->tensor));
    ck_assert_int_eq(wg_lora_attach(&n->module, &options), 2);
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.1});
    ck_assert_int_eq(wg_optimizer_add_module(optimizer, &n->module), 0);
    wg_tensor *x = input(), *y = run(n, x);
    for (int i = 0; i < 5; i++)
        step(n, optimizer);
    for (int64_t i = 0; i < state->count; i++)
        assert_close(state->entries[i].slot->tensor, before[i], 0, 0);
    const wg_tensor *b = wg__lora_of(n->block->down)->b->weight;
    ck_assert(wg_item(wg_max(wg_abs(wg_alias((wg_tensor *)b)), WG_ALL, false)) > 0.01);
    ck_assert(wg_item(wg_max(wg_abs(wg_sub(run(n, x), y)), WG_ALL, false)) > 0.01);
    wg_optimizer_free(optimizer);
    wg_state_dict_free(state);
    wg_module_free(&n->module);
}
END_TEST

START_TEST(what_is_named_whole_is_trained_beside_the_adapters) {
    net *n = net_new();
    const char *const whole[] = {"head", "block.up"};
    const wg_lora_options options = {
        .rank = RANK, .target_count = 1, .targets = all_linear, .whole_count = 2, .whole = whole};
    ck_assert_int_eq(wg_lora_attach(&n->module, &options), 1); /* up is trained itself */
    ck_assert(wg_requires_grad(n->head->bias) && wg_requires_grad(n->block->up->weight));
    ck_assert(!wg_requires_grad(n->block->down->weight));
    ck_assert_ptr_null(wg__lora_of(n->block->up));
    ck_assert_ptr_nonnull(wg__lora_of(n->block->down));
    wg_module_free(&n->module);
}
END_TEST

START_TEST(the_loss_of_a_head_with_an_adapter_is_that_of_its_logits) {
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_linear *head = wg_linear_new(root, "head", IN, OUT, NULL);
    const wg_lora_options options = {.rank = RANK, .target_count = 1, .targets = all_linear};
    ck_assert_int_eq(wg_lora_attach(root, &options), 1);
    wg_generator generator = {.seed = 5};
    set(wg__lora_of(head)->b->weight, wg_randn(&generator, WG_F32, WG_DIMS(OUT, RANK)));
    wg_tensor *x = input(),
              *classes = wg_from_array(WG_I64, WG_DIMS(T), (int64_t[]){0, 3, 6, 2, 1});
    assert_close(wg_linear_loss(head, x, classes, -100, NULL),
                 wg_cross_entropy(wg_linear_forward(head, x), classes, -100, NULL), 1e-6, 1e-6);
    wg_module_free(root);
}
END_TEST

START_TEST(dropout_is_of_training_alone) {
    net *n = net_new();
    const wg_lora_options options = {
        .rank = RANK, .dropout = 0.5, .target_count = 1, .targets = all_linear};
    ck_assert_int_eq(wg_lora_attach(&n->module, &options), 2);
    wg_generator generator = {.seed = 5};
    set(wg__lora_of(n->block->up)->b->weight, wg_randn(&generator, WG_F32, WG_DIMS(20, RANK)));
    wg_tensor *x = input(), *first = run(n, x);
    ck_assert(wg_item(wg_max(wg_abs(wg_sub(run(n, x), first)), WG_ALL, false)) > 1e-3);
    wg_module_train(&n->module, false);
    assert_close(run(n, x), run(n, x), 0, 0);
    wg_module_free(&n->module);
}
END_TEST

/* ---- Refusals ---- */

START_TEST(a_target_that_is_not_there_is_named_with_those_that_are) {
    net *n = net_new();
    const char *const targets[] = {"up", "query"};
    assert_fails(attach(n, 2, targets), WG_ERROR_NOT_FOUND,
                 "no linear layer is \"query\"; their names end in up, down, head");
    ck_assert_int_eq(wg__lora_count(&n->module), 0);
    ck_assert_int_eq(wg_module_parameter_count(&n->module), 2 * 12 * 20 + 20 + 12 + 7 * 12 + 7);
    ck_assert(wg_requires_grad(n->block->up->weight));
    wg_module_free(&n->module);
}
END_TEST

START_TEST(options_out_of_range_and_second_adapters_are_refused) {
    net *n = net_new();
    const struct {
        wg_lora_options options;
        const char *part;
    } wrong[] = {
        {{.rank = 0, .target_count = 1, .targets = all_linear}, "rank is 0"},
        {{.rank = 2, .alpha = -1, .target_count = 1, .targets = all_linear}, "alpha is -1"},
        {{.rank = 2, .dropout = 1, .target_count = 1, .targets = all_linear}, "dropout is 1"},
        {{.rank = 2}, "no targets"},
    };
    for (size_t i = 0; i < WG_COUNT(wrong); i++) {
        assert_fails(wg_lora_attach(&n->module, &wrong[i].options), WG_ERROR_ARGUMENT,
                     wrong[i].part);
    }
    ck_assert_int_eq(attach(n, 1, all_linear), 2);
    assert_fails(attach(n, 1, all_linear), WG_ERROR_ARGUMENT, "has adapters already");
    ck_assert_int_eq(wg__lora_count(&n->module), 2);
    ck_assert_int_eq(wg_module_quantize(&n->module, WG_QUANTIZATION_BF16), 0);
    assert_fails(wg_lora_merge(&n->module), WG_ERROR_STATE, "quantized");
    wg_module_free(&n->module);
}
END_TEST

START_TEST(a_failing_allocation_leaves_no_adapter) {
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        net *made = net_new();
        wg__alloc_fail_after(n);
        done = attach(made, 1, all_linear) == 2;
        wg__alloc_fail_after(-1);
        if (!done) {
            assert_error(WG_ERROR_MEMORY, "");
            ck_assert_int_eq(wg__lora_count(&made->module), 0);
            ck_assert(wg_requires_grad(made->block->up->weight));
        }
        wg_module_free(&made->module);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        values_gradients_and_merged_weights_are_pytorchs,
        a_new_adapter_changes_no_bit,
        adapters_learn_and_the_frozen_weights_keep_their_bits,
        what_is_named_whole_is_trained_beside_the_adapters,
        the_loss_of_a_head_with_an_adapter_is_that_of_its_logits,
        dropout_is_of_training_alone,
        a_target_that_is_not_there_is_named_with_those_that_are,
        options_out_of_range_and_second_adapters_are_refused,
        a_failing_allocation_leaves_no_adapter,
    };
    add_suite("lora", tests);
}
