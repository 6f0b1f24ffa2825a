/* Leaves for the tests of optimizers: see leaves.h. */
#include "tests/optim/leaves.h"

#include "autograd/internal.h"
#include "optim/internal.h"
#include "tensor/ops.h"

const char *const optimizer_names[OPTIMIZERS] = {"sgd",       "adam", "adamw",
                                                 "adafactor", "lion", "muon"};

wg_tensor *leaf_of(wg_tensor *x) {
    ck_assert_int_eq(wg_set_requires_grad(x, true), 0);
    return x;
}

wg_tensor *added(wg_optimizer *optimizer, const char *name, wg_tensor *leaf) {
    ck_assert_int_eq(wg_optimizer_add(optimizer, name, leaf_of(leaf), false), 0);
    return leaf;
}

void set_gradient(wg_tensor *leaf, wg_tensor *gradient) {
    wg_zero_grad(leaf);
    leaf->node->gradients[0] = wg_keep(gradient);
}

void set_full_gradient(wg_tensor *leaf, double value) {
    set_gradient(
        leaf, wg_full(wg_tensor_dtype(leaf), wg_tensor_ndim(leaf), wg_tensor_shape(leaf), value));
}

wg_tensor *tensor_of_list(const json_t *list, wg_dtype dtype, int ndim, const int64_t *shape) {
    double values[64];
    ck_assert_uint_gt(json_array_size(list), 0);
    for (size_t i = 0; i < json_array_size(list); i++)
        values[i] = json_number_value(json_array_get(list, i));
    wg_tensor *wide = wg_from_array(WG_F64, ndim, shape, values), *x = wg_empty(dtype, ndim, shape);
    ck_assert_int_eq(wg_tensor_count(wide), (int64_t)json_array_size(list));
    wg_copy_(x, wide);
    return x;
}

wg_tensor *state_of(const wg_optimizer *optimizer, int64_t index) {
    const char *slot, *name;
    wg_tensor *state;
    ck_assert_int_eq(wg__optimizer_state(optimizer, index, &slot, &name, &state), 1);
    return state;
}

double first_of(const wg_tensor *x) {
    const int64_t origin[WG_MAX_DIMS] = {0};
    return wg_at(x, origin);
}

void assert_none(const wg_optimizer *optimizer, const char *part) {
    ck_assert_ptr_null(optimizer);
    assert_error(WG_ERROR_ARGUMENT, part);
}
