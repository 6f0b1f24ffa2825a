/* What wg_set_lifetime_checks finds: tensors that are used after their end, scopes out of turn, and
 * what is freed twice. */
#include <pthread.h>

#include "autograd/autograd.h"
#include "nn/linear.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

static wg_tensor *gone_with_its_scope(void) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(2, 3));
    wg_scope_end(&scope, NULL);
    return x;
}

static void on(void) {
    wg_set_lifetime_checks(true);
}

static void off(void) {
    wg_set_lifetime_checks(false);
}

TEST(an_op_on_a_tensor_whose_scope_has_ended_says_so) {
    on();
    wg_tensor *x = gone_with_its_scope();
    refused(wg_add(wg_ones(WG_F32, WG_DIMS(2, 3)), x), STATE,
            "add: (2, 3) f32 is gone: its scope has ended");
    refused(wg_transpose(x, 0, 1), STATE, "its scope has ended");
    refused(wg_tensor_data(x), STATE, "its scope has ended");
    failed(wg_fill_(x, 1), STATE, "its scope has ended");
    refused(wg_keep(x), STATE, "keep: (2, 3) f32 is gone");
    wg_scope scope;
    wg_scope_begin(&scope);
    refused(wg_scope_end(&scope, x), STATE, "scope_end: (2, 3) f32 is gone");
    off();
}

TEST(a_view_outlives_what_it_was_made_of) {
    on();
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_full(WG_F32, WG_DIMS(2, 3), 7);
    wg_tensor *row = wg_scope_end(&scope, wg_select(x, 0, 1));
    float values[3];
    ck_assert_int_eq(wg_to_array(row, values), 0);
    ck_assert(values[2] == 7);
    off();
}

TEST(what_is_released_twice_or_belongs_to_a_scope_is_told) {
    on();
    wg_tensor *kept = wg_keep(wg_ones(WG_F32, WG_DIMS(4)));
    wg_release(kept);
    assert_no_error();
    wg_release(kept);
    assert_error(WG_ERROR_STATE, "release: (4) f32 is gone: wg_release or its module freed it");
    wg_tensor *owned = wg_ones(WG_F32, WG_DIMS(4));
    wg_release(owned);
    assert_error(WG_ERROR_STATE, "release: (4) f32 belongs to a scope");
    ck_assert_ptr_nonnull(wg_neg(owned));
    assert_no_error();
    off();
}

static wg_scope left_open;

static void leaves_a_scope_open(void) {
    wg_scope_begin(&left_open);
}

TEST(a_scope_that_does_not_end_in_its_turn_is_told) {
    on();
    wg_scope outer, inner;
    wg_scope_begin(&outer);
    leaves_a_scope_open();
    wg_scope_end(&outer, NULL);
    assert_error(WG_ERROR_STATE, "scope_end: 1 scope inside of this one is still open");
    wg_scope_begin(&outer);
    wg_scope_begin(&inner);
    wg_scope_end(&inner, NULL);
    wg_scope_end(&inner, NULL);
    assert_error(WG_ERROR_STATE, "scope_end: this scope is not open");
    wg_tensor *x = wg_scope_end(&outer, wg_ones(WG_F32, WG_DIMS(1)));
    assert_no_error();
    ck_assert(wg_item(x) == 1);
    off();
}

TEST(a_module_that_is_freed_twice_is_told) {
    on();
    wg_module *root = wg_module_new(NULL, "", sizeof *root);
    wg_linear *layer = wg_linear_new(root, "layer", 2, 2, NULL);
    wg_tensor *weight = layer->weight;
    wg_module_free(root);
    assert_no_error();
    wg_module_free(root);
    assert_error(WG_ERROR_STATE, "module_free: this module was freed already");
    wg_module_free(&layer->module);
    assert_error(WG_ERROR_STATE, "module_free: this module was freed already");
    refused(wg_neg(weight), STATE, "wg_release or its module freed it");
    off();
}

static void *work(void *unused) {
    for (int i = 0; i < 2000; i++)
        IN_SCOPE() {
            wg_neg(wg_ones(WG_F32, WG_DIMS(8)));
        }
    return unused;
}

TEST(threads_are_checked_each_for_itself) {
    on();
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_no_error();
    off();
}

TEST(a_step_of_training_is_as_it_was) {
    on();
    wg_linear *layer = wg_linear_new(NULL, "", 3, 3, NULL);
    for (int i = 0; i < 3; i++)
        IN_SCOPE() {
            wg_tensor *y = wg_linear_forward(layer, wg_ones(WG_F32, WG_DIMS(2, 3)));
            ck_assert_int_eq(wg_backward(wg_sum(wg_mul(y, y), WG_ALL, false), NULL), 0);
            wg_zero_grad(layer->weight);
            wg_zero_grad(layer->bias);
        }
    assert_no_error();
    wg_module_free(&layer->module);
    off();
}
