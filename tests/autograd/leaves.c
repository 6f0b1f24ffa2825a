/* Tensors of two numbers: see leaves.h. */
#include "tests/autograd/leaves.h"

#include "autograd/autograd.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

wg_tensor *vector(double first, double second) {
    return numbers(first, second);
}

wg_tensor *leaf(double first, double second) {
    wg_tensor *x = leaf_of(vector(first, second));
    return x;
}

wg_tensor *sum(wg_tensor *x) {
    return wg_sum(x, WG_ALL, false);
}

void assert_values(wg_tensor *x, double first, double second) {
    ck_assert_ptr_nonnull(x);
    assert_close(wg_detach(x), vector(first, second), 1e-12, 1e-12);
}

void assert_no_leak_without_memory(int (*step)(wg_tensor *x)) {
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *x = leaf(1, 2);
        wg__alloc_fail_after(n);
        done = step(x) == 0;
        wg__alloc_fail_after(-1);
        wg_scope_end(&scope, NULL);
        if (!done)
            assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_tensors_alive(), 0);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, 0);
    }
}
