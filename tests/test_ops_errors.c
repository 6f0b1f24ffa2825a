/* What ops refuse, and how they say it: the name that was called, the operands, the rule broken. */
#include "tensor/ops.h"

#include <math.h>

#include "tests/testing.h"

/* A call is to give NULL and that error. */
#define refused(call, code, part)                                                                  \
    do {                                                                                           \
        ck_assert_ptr_null(call);                                                                  \
        assert_error(code, part);                                                                  \
    } while (0)

static wg_tensor *zeros(wg_dtype dtype, int ndim, const int64_t *shape) {
    return wg_zeros(dtype, ndim, shape);
}

START_TEST(shapes_that_do_not_broadcast_are_named) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *y = zeros(WG_F32, WG_DIMS(4));
    refused(wg_add(x, y), WG_ERROR_SHAPE,
            "add: (2, 3) f32 x (4) f32: sizes 3 and 4 of axis -1 do not broadcast; make them "
            "equal, or one of them 1");
    refused(wg_sub(x, zeros(WG_F32, WG_DIMS(5, 3))), WG_ERROR_SHAPE, "sizes 2 and 5 of axis -2");
    refused(wg_maximum(x, y), WG_ERROR_SHAPE, "maximum");
    refused(wg_pow(x, y), WG_ERROR_SHAPE, "pow");
    refused(wg_le(x, y), WG_ERROR_SHAPE, "le: (2, 3) f32 x (4) f32");
    refused(wg_logical_or(x, y), WG_ERROR_SHAPE, "logical_or: (2, 3) bool x (4) bool");
    wg_tensor *truth = zeros(WG_BOOL, WG_DIMS(3, 1));
    refused(wg_where(truth, x, zeros(WG_F32, WG_DIMS(3))), WG_ERROR_SHAPE, "where");
    refused(wg_masked_fill(x, truth, 0), WG_ERROR_SHAPE, "masked_fill");
    refused(wg_masked_fill(zeros(WG_F32, WG_DIMS(3)), truth, 0), WG_ERROR_SHAPE,
            "the mask must broadcast to x");
}
END_TEST

START_TEST(views_refuse_shapes_that_do_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3));
    refused(wg_reshape(x, WG_DIMS(4, 2)), WG_ERROR_SHAPE,
            "reshape: (2, 3) f32: 6 elements do not fit (4, 2) f32, which has 8");
    refused(wg_reshape(x, WG_DIMS(-1, 4)), WG_ERROR_SHAPE, "6 elements cannot be cut");
    refused(wg_reshape(x, WG_DIMS(-1, -1)), WG_ERROR_SHAPE, "two sizes are -1");
    refused(wg_reshape(x, WG_DIMS(-2, 3)), WG_ERROR_SHAPE, "negative");
    refused(wg_reshape(zeros(WG_F32, WG_DIMS(0, 3)), WG_DIMS(-1, 0)), WG_ERROR_SHAPE, "cannot");
    refused(wg_reshape(x, 9, (int64_t[9]){0}), WG_ERROR_SHAPE, "reshape: rank 9");
    refused(wg_reshape(x, -1, NULL), WG_ERROR_SHAPE, "rank -1");
    refused(wg_expand(x, WG_DIMS(2, 4)), WG_ERROR_SHAPE,
            "expand: (2, 3) f32: size 3 of axis 1 is not 4; only a size of 1 is repeated");
    refused(wg_expand(x, WG_DIMS(3)), WG_ERROR_SHAPE, "expanding drops no axis");
    refused(wg_expand(x, WG_DIMS(-1, 2, 3)), WG_ERROR_SHAPE, "expand");
    refused(wg_squeeze(x, 0), WG_ERROR_SHAPE, "squeeze: (2, 3) f32: axis 0 has size 2");
    refused(wg_permute(x, WG_DIMS(0)), WG_ERROR_SHAPE, "permute: (2, 3) f32");
    refused(wg_unsqueeze(zeros(WG_F32, WG_DIMS(1, 1, 1, 1, 1, 1, 1, 1)), 0), WG_ERROR_SHAPE,
            "unsqueeze");
}
END_TEST

START_TEST(axes_and_positions_out_of_range_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3));
    refused(wg_transpose(x, 0, 2), WG_ERROR_INDEX, "transpose: axis 2");
    refused(wg_permute(x, WG_DIMS(0, 2)), WG_ERROR_INDEX, "permute: axis 2");
    refused(wg_permute(x, WG_DIMS(1, -1)), WG_ERROR_INDEX, "comes twice");
    refused(wg_slice(x, -3, 0, 1, 1), WG_ERROR_INDEX, "slice: axis -3");
    refused(wg_slice(x, 0, 0, 1, 0), WG_ERROR_ARGUMENT, "slice: a step of 0");
    refused(wg_select(x, 1, 3), WG_ERROR_INDEX,
            "select: (2, 3) f32: index 3 is out of range of axis 1, of size 3");
    refused(wg_select(x, 1, -4), WG_ERROR_INDEX, "index -4");
    refused(wg_select(x, 2, 0), WG_ERROR_INDEX, "select: axis 2");
    refused(wg_squeeze(x, 2), WG_ERROR_INDEX, "squeeze: axis 2");
    refused(wg_unsqueeze(x, 3), WG_ERROR_INDEX, "unsqueeze: axis 3");
    refused(wg_sum(x, WG_DIMS(0, 2), false), WG_ERROR_INDEX, "sum: axis 2");
    refused(wg_mean(x, WG_DIMS(-3), false), WG_ERROR_INDEX, "mean: axis -3");
    refused(wg_var(x, WG_DIMS(1, 1), 0, false), WG_ERROR_INDEX, "var: axis 1 is given twice");
    refused(wg_max(x, WG_DIMS(2), true), WG_ERROR_INDEX, "max: axis 2");
    refused(wg_min(x, WG_DIMS(2), true), WG_ERROR_INDEX, "min: axis 2");
    refused(wg_argmax(x, 2, false), WG_ERROR_INDEX, "argmax: axis 2");
    refused(wg_argmax(wg_scalar(WG_F32, 1), 0, false), WG_ERROR_INDEX, "argmax");
}
END_TEST

START_TEST(joining_refuses_what_does_not_fit) {
    wg_tensor *a = zeros(WG_F32, WG_DIMS(2, 3)), *b = zeros(WG_F32, WG_DIMS(3, 3));
    refused(wg_cat(WG_TENSORS(a, b), 1), WG_ERROR_SHAPE,
            "cat: (2, 3) f32 x (3, 3) f32: operand 1 does not fit operand 0");
    refused(wg_cat(WG_TENSORS(a, zeros(WG_F32, WG_DIMS(2))), 0), WG_ERROR_SHAPE, "cat");
    refused(wg_cat(WG_TENSORS(a, b), 2), WG_ERROR_INDEX, "cat: axis 2");
    refused(wg_cat(WG_TENSORS(wg_scalar(WG_F32, 1)), 0), WG_ERROR_INDEX, "cat");
    refused(wg_cat(0, NULL, 0), WG_ERROR_SHAPE, "cat: 0 tensors");
    refused(wg_stack(WG_TENSORS(a, b), 0), WG_ERROR_SHAPE,
            "stack: (2, 3) f32 x (3, 3) f32: tensors 0 and 1 differ in shape");
    refused(wg_stack(WG_TENSORS(a, a), 3), WG_ERROR_INDEX, "stack: axis 3");
    refused(wg_stack(0, NULL, 0), WG_ERROR_SHAPE, "stack: 0 tensors");
    refused(wg_tril(zeros(WG_F32, WG_DIMS(3)), 0), WG_ERROR_SHAPE, "tril: (3) f32");
    refused(wg_triu(zeros(WG_F32, WG_DIMS(3)), 0), WG_ERROR_SHAPE, "triu: (3) f32");
}
END_TEST

START_TEST(dtypes_that_an_op_does_not_take_are_refused) {
    wg_tensor *truth = zeros(WG_BOOL, WG_DIMS(2)), *x = zeros(WG_F32, WG_DIMS(2));
    wg_tensor *whole = zeros(WG_I64, WG_DIMS(2));
    refused(wg_sub(truth, truth), WG_ERROR_DTYPE, "sub: (2) bool x (2) bool");
    refused(wg_neg(truth), WG_ERROR_DTYPE, "neg: (2) bool");
    refused(wg_where(x, x, x), WG_ERROR_DTYPE, "where: (2) f32 x (2) f32 x (2) f32: operand 0");
    refused(wg_masked_fill(x, whole, 0), WG_ERROR_DTYPE, "masked_fill");
    refused(wg_gather(x, 0, x), WG_ERROR_DTYPE,
            "gather: (2) f32 x (2) f32: indices are i64 or i32, not f32; cast operand 1");
    refused(wg_index_select(x, 0, x), WG_ERROR_DTYPE, "index_select: (2) f32 x (2) f32");
    refused(wg_scatter_add(x, 0, truth, x), WG_ERROR_DTYPE, "scatter_add");
    refused(wg_scatter_add(truth, 0, whole, truth), WG_ERROR_DTYPE, "bool does not add up");
    refused(wg_embedding_op(zeros(WG_F32, WG_DIMS(2, 2)), x, -1), WG_ERROR_DTYPE, "embedding");
    refused(wg_one_hot(x, 3), WG_ERROR_DTYPE, "one_hot");
    refused(wg_cast(x, (wg_dtype)99), WG_ERROR_ARGUMENT, "cast: (2) f32: there is no dtype 99");
    refused(wg_clamp(x, 1, 0), WG_ERROR_ARGUMENT, "clamp: (2) f32: low 1 is above high 0");
    refused(wg_clamp(x, NAN, 0), WG_ERROR_ARGUMENT, "clamp");
}
END_TEST

START_TEST(records_run_by_hand_check_their_dtypes_too) {
    wg_tensor *single = zeros(WG_F32, WG_DIMS(2)), *wide = zeros(WG_F64, WG_DIMS(2));
    wg_tensor *whole = zeros(WG_I64, WG_DIMS(2));
    refused(wg_apply_one(wg_op_find("add"), WG_TENSORS(single, wide), NULL), WG_ERROR_DTYPE,
            "add: (2) f32 x (2) f64: dtypes f32 and f64 differ");
    refused(wg_apply_one(wg_op_find("div"), WG_TENSORS(whole, whole), NULL), WG_ERROR_DTYPE,
            "takes a floating dtype, not i64");
    refused(wg_apply_one(wg_op_find("exp"), WG_TENSORS(whole), NULL), WG_ERROR_DTYPE, "exp");
    refused(wg_apply_one(wg_op_find("eq"), WG_TENSORS(whole, wide), NULL), WG_ERROR_DTYPE, "eq");
    refused(wg_apply_one(wg_op_find("logical_and"), WG_TENSORS(whole, whole), NULL), WG_ERROR_DTYPE,
            "takes bools");
}
END_TEST

START_TEST(indices_out_of_range_are_named) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(3, 2));
    wg_tensor *five = wg_full(WG_I32, WG_DIMS(1, 2), 5), *minus = wg_full(WG_I64, WG_DIMS(1), -1);
    refused(wg_gather(x, 0, five), WG_ERROR_INDEX,
            "gather: (3, 2) f32 x (1, 2) i64: index 5 is out of range; wanted 0 to 2");
    refused(wg_index_select(x, 1, minus), WG_ERROR_INDEX,
            "index_select: (3, 2) f32 x (1) i64: index -1 is out of range; wanted 0 to 1");
    refused(wg_scatter_add(x, 0, five, zeros(WG_F32, WG_DIMS(1, 2))), WG_ERROR_INDEX,
            "scatter_add");
    refused(wg_embedding_op(x, five, -1), WG_ERROR_INDEX, "embedding");
    refused(wg_one_hot(five, 5), WG_ERROR_INDEX, "one_hot: (1, 2) i64: index 5");
    refused(wg_one_hot(five, 0), WG_ERROR_ARGUMENT, "0 classes");
}
END_TEST

START_TEST(indices_of_a_wrong_shape_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(3, 2));
    refused(wg_gather(x, 0, zeros(WG_I64, WG_DIMS(2))), WG_ERROR_SHAPE, "ranks 2 and 1 differ");
    refused(wg_gather(x, 0, zeros(WG_I64, WG_DIMS(1, 3))), WG_ERROR_SHAPE,
            "size 3 of axis 1 of index is beyond that of x, 2");
    refused(wg_index_select(x, 0, zeros(WG_I64, WG_DIMS(1, 1))), WG_ERROR_SHAPE,
            "index_select: (3, 2) f32 x (1, 1) i64: wanted an index of rank 1");
    refused(wg_scatter_add(x, 0, zeros(WG_I64, WG_DIMS(1, 2)), x), WG_ERROR_SHAPE,
            "index and src must have one shape");
    refused(wg_embedding_op(zeros(WG_F32, WG_DIMS(3)), zeros(WG_I64, WG_DIMS(3)), -1),
            WG_ERROR_SHAPE, "embedding");
}
END_TEST

START_TEST(the_largest_of_nothing_is_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(0, 3));
    refused(wg_max(x, WG_ALL, false), WG_ERROR_SHAPE, "max: (0, 3) f32: there are no elements");
    refused(wg_min(x, WG_DIMS(0), false), WG_ERROR_SHAPE, "min: (0, 3) f32");
    refused(wg_argmax(x, 0, false), WG_ERROR_SHAPE, "argmax: (0, 3) f32");
    ck_assert_int_eq(wg_tensor_count(wg_max(x, WG_DIMS(1), false)), 0);
    refused(wg_sum_to(x, WG_DIMS(2)), WG_ERROR_SHAPE, "sum_to: (0, 3) f32 to (2) f32");
    refused(wg_sum_to(x, WG_DIMS(1, 1, 3)), WG_ERROR_SHAPE, "sum_to");
}
END_TEST

START_TEST(null_gives_null_and_leaves_the_first_error_alone) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *y = zeros(WG_F32, WG_DIMS(4));
    wg_tensor *lost = wg_add(x, y), *parts[2];
    ck_assert_ptr_null(wg_add(lost, x));
    ck_assert_ptr_null(wg_div(x, lost));
    ck_assert_ptr_null(wg_exp(lost));
    ck_assert_ptr_null(wg_clamp(lost, 1, 0));
    ck_assert_ptr_null(wg_cast(lost, WG_F64));
    ck_assert_ptr_null(wg_contiguous(lost));
    ck_assert_ptr_null(wg_reshape(lost, WG_DIMS(3)));
    ck_assert_ptr_null(wg_slice(lost, 7, 0, 1, 0));
    ck_assert_ptr_null(wg_select(lost, 7, 0));
    ck_assert_int_eq(wg_split(lost, 0, 2, (int64_t[]){1, 1}, parts), -1);
    ck_assert_ptr_null(wg_cat(WG_TENSORS(x, lost), 9));
    ck_assert_ptr_null(wg_stack(WG_TENSORS(lost, x), 9));
    ck_assert_ptr_null(wg_tril(lost, 0));
    ck_assert_ptr_null(wg_where(lost, x, x));
    ck_assert_ptr_null(wg_masked_fill(x, lost, 0));
    ck_assert_ptr_null(wg_eq(lost, lost));
    ck_assert_ptr_null(wg_logical_not(lost));
    ck_assert_ptr_null(wg_sum(lost, WG_DIMS(9), false));
    ck_assert_ptr_null(wg_mean(lost, WG_ALL, false));
    ck_assert_ptr_null(wg_var(lost, WG_ALL, 0, false));
    ck_assert_ptr_null(wg_argmax(lost, 9, false));
    ck_assert_ptr_null(wg_sum_to(lost, WG_DIMS(1)));
    ck_assert_ptr_null(wg_gather(x, 0, lost));
    ck_assert_ptr_null(wg_index_select(lost, 0, lost));
    ck_assert_ptr_null(wg_scatter_add(x, 0, lost, x));
    ck_assert_ptr_null(wg_embedding_op(x, lost, -1));
    ck_assert_ptr_null(wg_one_hot(lost, 3));
    assert_error(WG_ERROR_SHAPE, "add: (2, 3) f32 x (4) f32");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        shapes_that_do_not_broadcast_are_named,
        views_refuse_shapes_that_do_not_fit,
        axes_and_positions_out_of_range_are_refused,
        joining_refuses_what_does_not_fit,
        dtypes_that_an_op_does_not_take_are_refused,
        records_run_by_hand_check_their_dtypes_too,
        indices_out_of_range_are_named,
        indices_of_a_wrong_shape_are_refused,
        the_largest_of_nothing_is_refused,
        null_gives_null_and_leaves_the_first_error_alone,
    };
    return wg_run_tests("ops_errors", WG_COUNT(tests), tests);
}
