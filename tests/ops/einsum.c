/* What the fixtures of einsum do not show: the order of its products, and which operands are never
 * copied. */
#include "tensor/ops/linalg/einsum.h"

#include "autograd/autograd.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"
#include "tensor/internal.h"

#include <math.h>

/* ---- The order ---- */

/* "ab,bc,..." as masks: operand i has the labels i and i + 1. */
static double chain_order(int count, const int64_t *sizes, wg__contraction_step *steps) {
    wg__index_set operands[WG_MAX_INPUTS];
    for (int i = 0; i < count; i++)
        operands[i] = (wg__index_set)3 << i;
    return wg__contraction_order(count, operands, 1 | (wg__index_set)1 << count, sizes, steps);
}

TEST(a_chain_is_multiplied_from_its_cheap_end) {
    wg__contraction_step steps[WG_MAX_INPUTS];
    const int64_t left[] = {10, 1000, 10, 1000}, right[] = {1000, 10, 1000, 10};
    ck_assert_double_eq(chain_order(3, left, steps), 200000);
    ck_assert_int_eq(steps[0].left, 0);
    ck_assert_int_eq(steps[0].right, 1);
    ck_assert_double_eq(chain_order(3, right, steps), 200000);
    ck_assert_int_eq(steps[0].left, 1);
    ck_assert_int_eq(steps[0].right, 2);
    ck_assert_int_eq(steps[1].left, 0);
    ck_assert_int_eq(steps[1].right, 1);
}

/* The six matrices of Cormen et al., Introduction to Algorithms, section 15.2. */
TEST(the_textbook_chain_costs_what_the_textbook_says) {
    wg__contraction_step steps[WG_MAX_INPUTS];
    const int64_t sizes[] = {30, 35, 15, 5, 10, 20, 25};
    ck_assert_double_eq(chain_order(6, sizes, steps), 15125);
}

/* Every operand but the first is merged into another one, once, and not used afterwards. */
TEST(every_operand_is_multiplied_once) {
    for (int count = 1; count <= WG_MAX_INPUTS; count++) {
        wg__contraction_step steps[WG_MAX_INPUTS];
        int64_t sizes[WG_MAX_INPUTS + 1];
        bool gone[WG_MAX_INPUTS] = {false};
        for (int i = 0; i <= count; i++)
            sizes[i] = 2 + i * 7 % 5;
        ck_assert(isfinite(chain_order(count, sizes, steps)));
        for (int i = 0; i < count - 1; i++) {
            ck_assert(steps[i].left != steps[i].right);
            ck_assert(!gone[steps[i].left] && !gone[steps[i].right]);
            gone[steps[i].right] = true;
        }
    }
}

/* Two outer products of rank 8 would have 16 axes, so two inner products come first. */
TEST(an_order_within_the_ranks_of_tensors_is_found) {
    wg_tensor *a = normal(1, WG_F64, WG_DIMS(2, 2, 2, 2, 2, 2, 2, 2)),
              *b = normal(2, WG_F64, 8, a->spec.shape);
    wg_tensor *operands[] = {a, b, a, b};
    wg_tensor *y = wg_einsum("abcdefgh,ijklmnop,abcdefgh,ijklmnop", 4, operands);
    double expected =
        wg_item(wg_sum(wg_mul(a, a), WG_ALL, false)) * wg_item(wg_sum(wg_mul(b, b), WG_ALL, false));
    ck_assert_double_eq_tol(wg_item(y), expected, 1e-9 * expected);
}

TEST(thirty_two_operands_are_multiplied) {
    wg_tensor *operands[WG_MAX_INPUTS];
    wg_tensor *expected = normal(3, WG_F64, WG_DIMS(2));
    char equation[3 * WG_MAX_INPUTS + 4] = "";
    operands[0] = expected;
    equation[0] = 'A';
    for (int i = 1; i < WG_MAX_INPUTS; i++) {
        operands[i] = normal((uint64_t)i, WG_F64, WG_DIMS(2, 2));
        expected = wg_matmul(expected, operands[i]);
        equation[3 * i - 2] = ',';
        equation[3 * i - 1] = (char)('A' + i - 1);
        equation[3 * i] = (char)('A' + i);
        if (i >= 26) { /* the letters wrap around: b follows Z */
            equation[3 * i - 1] = (char)(i == 26 ? 'Z' : 'a' + i - 27);
            equation[3 * i] = (char)('a' + i - 26);
        }
    }
    wg_tensor *y = wg_einsum(equation, WG_MAX_INPUTS, operands);
    ck_assert_int_eq(wg_tensor_ndim(y), 1);
    assert_close(y, expected, 1e-9, 1e-9);
}

/* ---- What is never copied ---- */

TEST(an_equation_without_arithmetic_is_a_view) {
    wg_tensor *x = normal(4, WG_F64, WG_DIMS(3, 3, 2));
    static const char *const equations[] = {"ijk->kij", "ijk", "iij->ji", "...->...", "i...->...i"};
    for (size_t i = 0; i < WG_COUNT(equations); i++)
        ck_assert_msg(wg__tensor_shares_storage(wg_einsum(equations[i], 1, &x), x), "%s",
                      equations[i]);
}

/* Heads interleaved with positions, as projections leave them, go to GEMM by their strides. */
TEST(scores_and_context_of_attention_copy_no_operand) {
    wg_tensor *q = normal(5, WG_F64, WG_DIMS(2, 16, 4, 8)),
              *k = normal(6, WG_F64, WG_DIMS(2, 16, 4, 8));
    wg_tensor *scores = NULL, *context = NULL;
    const int64_t elements = 2 * 4 * 16 * 16 + 2 * 4 * 16 * 8; /* of the two results */
    const size_t before = wg_alloc_get_stats().live_bytes;
    scores = wg_einsum("bqhd,bkhd->bhqk", WG_TENSORS(q, k));
    context = wg_einsum("bhqk,bkhd->bqhd", WG_TENSORS(scores, k));
    const size_t used = wg_alloc_get_stats().live_bytes - before;
    ck_assert_ptr_nonnull(context);
    ck_assert_uint_lt(used, (size_t)elements * sizeof(double) * 5 / 4);
}

TEST(the_result_keeps_the_graph_where_it_is_the_operand) {
    wg_tensor *x = leaf_of(normal(7, WG_F64, WG_DIMS(2, 3)));
    wg_tensor *y = wg_einsum("ij", 1, &x);
    ck_assert(wg_requires_grad(y));
    wg_tensor *g = normal(8, WG_F64, WG_DIMS(2, 3));
    backward_from(y, g);
    assert_close(wg_gradient(x), g, 0, 0);
}
