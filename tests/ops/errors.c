/* The errors of ops: the name of the public function, the operands, the rule that was broken. */
#include "tensor/ops.h"

#include <math.h>
#include <string.h>

#include "tests/support/testing.h"

/* Fails unless the call returned NULL with that error. */
#define refused(call, code, part)                                                                  \
    do {                                                                                           \
        ck_assert_ptr_null(call);                                                                  \
        assert_error(code, part);                                                                  \
    } while (0)

static wg_tensor *zeros(wg_dtype dtype, int ndim, const int64_t *shape) {
    return wg_zeros(dtype, ndim, shape);
}

TEST(shapes_that_do_not_broadcast_are_named) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *y = zeros(WG_F32, WG_DIMS(4));
    refused(wg_add(x, y), WG_ERROR_SHAPE,
            "add: (2, 3) f32 x (4) f32: sizes 3 and 4 of axis -1 do not broadcast; make them "
            "equal, or one of them 1");
    refused(wg_sub(x, zeros(WG_F32, WG_DIMS(5, 3))), WG_ERROR_SHAPE, "sizes 2 and 5 of axis -2");
    refused(wg_maximum(x, y), WG_ERROR_SHAPE, "maximum");
    refused(wg_pow(x, y), WG_ERROR_SHAPE, "pow");
    refused(wg_atan2(x, y), WG_ERROR_SHAPE, "atan2: (2, 3) f32 x (4) f32");
    refused(wg_remainder(x, y), WG_ERROR_SHAPE, "remainder");
    refused(wg_lerp(x, x, y), WG_ERROR_SHAPE, "lerp: (2, 3) f32 x (2, 3) f32 x (4) f32");
    refused(wg_addcmul(y, x, x, 1), WG_ERROR_SHAPE, "addcmul");
    refused(wg_addcdiv(x, y, x, 1), WG_ERROR_SHAPE, "addcdiv");
    refused(wg_le(x, y), WG_ERROR_SHAPE, "le: (2, 3) f32 x (4) f32");
    refused(wg_logical_or(x, y), WG_ERROR_SHAPE, "logical_or: (2, 3) bool x (4) bool");
    wg_tensor *truth = zeros(WG_BOOL, WG_DIMS(3, 1));
    refused(wg_where(truth, x, zeros(WG_F32, WG_DIMS(3))), WG_ERROR_SHAPE, "where");
    refused(wg_masked_fill(x, truth, 0), WG_ERROR_SHAPE, "masked_fill");
    refused(wg_masked_fill(zeros(WG_F32, WG_DIMS(3)), truth, 0), WG_ERROR_SHAPE,
            "the mask must broadcast to x");
}

TEST(views_refuse_shapes_that_do_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3));
    refused(wg_reshape(x, WG_DIMS(4, 2)), WG_ERROR_SHAPE,
            "reshape: (2, 3) f32: 6 elements do not fit (4, 2) f32, which has 8");
    refused(wg_reshape(x, WG_DIMS(-1, 4)), WG_ERROR_SHAPE, "6 elements cannot be divided");
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

TEST(axes_and_positions_out_of_range_are_refused) {
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

TEST(reshaping_and_moving_axes_refuse_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 6));
    const int64_t nine[9] = {0};
    refused(wg_flatten(x, 0, 2), WG_ERROR_INDEX, "flatten: axis 2");
    refused(wg_flatten(x, 1, 0), WG_ERROR_ARGUMENT, "flatten: (2, 6) f32: axis 1 comes after");
    refused(wg_unflatten(x, 2, WG_DIMS(2, 3)), WG_ERROR_INDEX, "unflatten: axis 2");
    refused(wg_unflatten(x, 1, WG_DIMS(2, 2)), WG_ERROR_SHAPE,
            "unflatten: (2, 6) f32: axis 1, of size 6, is not cut into 2 axes whose sizes multiply "
            "to 4");
    refused(wg_unflatten(x, 1, WG_DIMS(4, -1)), WG_ERROR_SHAPE, "6 elements cannot be divided");
    refused(wg_unflatten(x, 1, WG_DIMS(-1, -1)), WG_ERROR_SHAPE, "two sizes are -1");
    refused(wg_unflatten(x, 0, 0, NULL), WG_ERROR_SHAPE, "into 0 axes");
    refused(wg_unflatten(x, 1, WG_DIMS(1, 1, 1, 1, 1, 1, 2, 3)), WG_ERROR_SHAPE, "ranks go to 8");
    refused(wg_unflatten(x, 1, 9, nine), WG_ERROR_SHAPE, "unflatten: rank 9");
    refused(wg_movedim(x, 1, (int64_t[]){2}, (int64_t[]){0}), WG_ERROR_INDEX, "movedim: axis 2");
    refused(wg_movedim(x, 1, (int64_t[]){0}, (int64_t[]){-3}), WG_ERROR_INDEX, "movedim: axis -3");
    refused(wg_movedim(x, 2, (int64_t[]){0, -2}, (int64_t[]){0, 1}), WG_ERROR_INDEX, "given twice");
    refused(wg_movedim(x, 9, nine, nine), WG_ERROR_ARGUMENT, "movedim: 9 axes");
    refused(wg_narrow(x, 2, 0, 1), WG_ERROR_INDEX, "narrow: axis 2");
    refused(wg_narrow(x, 1, 4, 3), WG_ERROR_INDEX,
            "narrow: (2, 6) f32: 3 elements from 4 on reach beyond axis 1, of size 6");
    refused(wg_narrow(x, 1, -7, 1), WG_ERROR_INDEX, "from -7 on");
    refused(wg_narrow(x, 1, 0, -1), WG_ERROR_INDEX, "-1 elements");
}

TEST(arranging_refuses_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3));
    const int64_t nine[9] = {0}, huge = (int64_t)1 << 62;
    refused(wg_flip(x, WG_DIMS(0, -2)), WG_ERROR_INDEX, "flip: axis -2 is given twice");
    refused(wg_flip(x, 9, nine), WG_ERROR_ARGUMENT, "flip: 9 axes");
    refused(wg_roll(x, 1, (int64_t[]){1}, (int64_t[]){2}), WG_ERROR_INDEX, "roll: axis 2");
    refused(wg_roll(x, 2, (int64_t[]){1, 1}, NULL), WG_ERROR_ARGUMENT,
            "roll: 2 shifts without axes");
    refused(wg_tile(x, WG_DIMS(2, -1)), WG_ERROR_ARGUMENT, "tile: (2, 3) f32: -1 repeats");
    refused(wg_tile(x, 1, &huge), WG_ERROR_SHAPE, "tile: (2, 3) f32: size 3 times");
    refused(wg_tile(x, 9, nine), WG_ERROR_ARGUMENT, "tile: 9");
    refused(wg_repeat_interleave(x, 2, 2), WG_ERROR_INDEX, "repeat_interleave: axis 2");
    refused(wg_repeat_interleave(x, -1, 0), WG_ERROR_ARGUMENT, "-1 repeats");
    refused(wg_repeat_interleave(x, huge, 0), WG_ERROR_SHAPE, "size 2 times");
    wg_tensor *outputs[9], *inputs[9] = {x, x, x, x, x, x, x, x, x};
    assert_fails(wg_meshgrid(1, inputs, outputs), WG_ERROR_SHAPE,
                 "meshgrid: (2, 3) f32: operand 0 is no vector");
    assert_fails(wg_meshgrid(9, inputs, outputs), WG_ERROR_ARGUMENT, "meshgrid: 9 vectors");
    assert_fails(wg_meshgrid(0, NULL, NULL), WG_ERROR_ARGUMENT, "meshgrid: 0 vectors");
}

TEST(diagonals_and_windows_refuse_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)),
              *deep = zeros(WG_F32, WG_DIMS(1, 1, 1, 1, 1, 1, 1, 1));
    refused(wg_diagonal(x, 0, 0, 2), WG_ERROR_INDEX, "diagonal: axis 2");
    refused(wg_diagonal(x, 0, 1, -1), WG_ERROR_INDEX, "diagonal: axis 1 is given twice");
    refused(wg_diagonal(zeros(WG_F32, WG_DIMS(3)), 0, 0, 1), WG_ERROR_INDEX, "diagonal: axis 1");
    refused(wg_diag_embed(x, 0, 0, 3), WG_ERROR_INDEX, "diag_embed: axis 3");
    refused(wg_diag_embed(x, 0, 2, -1), WG_ERROR_INDEX, "given twice");
    refused(wg_diag_embed(wg_scalar(WG_F32, 1), 0, 0, 1), WG_ERROR_SHAPE, "diag_embed: () f32");
    refused(wg_diag_embed(deep, 0, 0, 1), WG_ERROR_SHAPE, "beyond 8");
    refused(wg_diag_embed(x, INT64_MIN, 0, 1), WG_ERROR_SHAPE, "diag_embed");
    refused(wg_unfold(x, 2, 1, 1), WG_ERROR_INDEX, "unfold: axis 2");
    refused(wg_unfold(x, 1, 4, 1), WG_ERROR_SHAPE, "unfold: (2, 3) f32: a window of 4 is larger");
    refused(wg_unfold(x, 1, 0, 1), WG_ERROR_ARGUMENT, "windows of 0 at steps of 1");
    refused(wg_unfold(x, 1, 2, 0), WG_ERROR_ARGUMENT, "windows of 2 at steps of 0");
    refused(wg_unfold(deep, 0, 1, 1), WG_ERROR_SHAPE, "rank 8 takes no further axis");
}

TEST(padding_refuses_what_an_axis_has_no_elements_for) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *none = zeros(WG_F32, WG_DIMS(0));
    const int64_t nine[18] = {0};
    refused(wg_pad(x, 1, (int64_t[]){0, 3}, WG_PAD_REFLECT, 0), WG_ERROR_SHAPE,
            "pad: (2, 3) f32: widths 0 and 3 at axis 1, where this mode has elements for 2");
    refused(wg_pad(x, 1, (int64_t[]){4, 0}, WG_PAD_CIRCULAR, 0), WG_ERROR_SHAPE, "elements for 3");
    refused(wg_pad(x, 1, (int64_t[]){2, -1}, WG_PAD_REFLECT, 0), WG_ERROR_SHAPE, "elements for 1");
    refused(wg_pad(none, 1, (int64_t[]){1, 0}, WG_PAD_REPLICATE, 0), WG_ERROR_SHAPE, "for 0");
    refused(wg_pad(x, 1, (int64_t[]){-2, -2}, WG_PAD_CONSTANT, 0), WG_ERROR_SHAPE,
            "-2 and -2 crop more than axis 1 has");
    refused(wg_pad(x, 1, (int64_t[]){INT64_MIN, 1}, WG_PAD_CONSTANT, 0), WG_ERROR_SHAPE, "crop");
    refused(wg_pad(x, 1, (int64_t[]){0, INT64_MAX}, WG_PAD_CONSTANT, 0), WG_ERROR_SHAPE, "memory");
    refused(wg_pad(x, 3, nine, WG_PAD_CONSTANT, 0), WG_ERROR_SHAPE, "widths for 3 axes");
    refused(wg_pad(x, 9, nine, WG_PAD_CONSTANT, 0), WG_ERROR_ARGUMENT, "pad: 9 axes");
    refused(wg_pad(x, 1, nine, (wg_pad_mode)7, 0), WG_ERROR_ARGUMENT, "mode 7");
}

TEST(taking_refuses_what_is_not_there) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(3, 2)), *index = zeros(WG_I64, WG_DIMS(1, 2));
    refused(wg_take_along_axis(x, 2, index), WG_ERROR_INDEX, "take_along_axis: axis 2");
    refused(wg_take_along_axis(x, 0, x), WG_ERROR_DTYPE, "indices are i64 or i32, not f32");
    refused(wg_take_along_axis(x, 0, zeros(WG_I64, WG_DIMS(2))), WG_ERROR_SHAPE,
            "take_along_axis: (3, 2) f32 x (2) i64: ranks 2 and 1 differ");
    refused(wg_take_along_axis(x, 0, zeros(WG_I32, WG_DIMS(1, 3))), WG_ERROR_SHAPE,
            "sizes 2 and 3 of axis 1 do not broadcast");
    refused(
        wg_take_along_axis(x, 0, wg_full(WG_I32, WG_DIMS(1, 2), 3)), WG_ERROR_INDEX,
        "take_along_axis: (3, 2) f32 x (1, 2) i32: index 3 is out of range of axis 0; wanted -3 "
        "to 2");
    refused(wg_take_along_axis(x, 0, wg_full(WG_I64, WG_DIMS(1, 2), -4)), WG_ERROR_INDEX,
            "index -4 is out of range");
    refused(wg_take(x, x), WG_ERROR_DTYPE, "take: (3, 2) f32 x (3, 2) f32: indices are");
    refused(wg_take(x, wg_full(WG_I64, WG_DIMS(2), 6)), WG_ERROR_INDEX, "index 6");
}

TEST(joining_refuses_what_does_not_fit) {
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

TEST(dtypes_that_an_op_does_not_take_are_refused) {
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

TEST(numbers_that_a_function_does_not_take_are_refused) {
    wg_tensor *truth = zeros(WG_BOOL, WG_DIMS(2)), *x = zeros(WG_F32, WG_DIMS(2));
    wg_tensor *whole = wg_full(WG_I32, WG_DIMS(2), 7), *byte = wg_full(WG_U8, WG_DIMS(2), 7);
    wg_tensor *none = zeros(WG_I32, WG_DIMS(2));
    refused(wg_remainder(truth, truth), WG_ERROR_DTYPE, "remainder: (2) bool x (2) bool");
    refused(wg_fmod(truth, truth), WG_ERROR_DTYPE, "fmod: (2) bool x (2) bool");
    refused(wg_remainder(whole, none), WG_ERROR_ARGUMENT,
            "remainder: (2) i32 x (2) i32: an integer is divided by 0; cast to a float to get NaN");
    refused(wg_fmod(byte, zeros(WG_U8, WG_DIMS(1))), WG_ERROR_ARGUMENT, "fmod");
    refused(wg_fmod(wg_cast(whole, WG_I64), none), WG_ERROR_ARGUMENT, "fmod: (2) i64 x (2) i64");
    refused(wg_addcmul(truth, truth, truth, 1), WG_ERROR_DTYPE, "addcmul");
    refused(wg_addcmul(whole, whole, whole, 0.5), WG_ERROR_ARGUMENT,
            "addcmul: (2) i32 x (2) i32 x (2) i32: value 0.5 is no integer");
    refused(wg_addcmul(whole, whole, whole, 3e9), WG_ERROR_ARGUMENT, "addcmul");
    refused(wg_addcmul(byte, byte, byte, -1), WG_ERROR_ARGUMENT, "addcmul");
    refused(wg_addcmul(whole, whole, whole, NAN), WG_ERROR_ARGUMENT, "addcmul");
    refused(wg_polygamma(-1, x), WG_ERROR_ARGUMENT, "polygamma: (2) f32: n is -1");
}

TEST(records_run_by_hand_check_their_dtypes_too) {
    wg_tensor *single = zeros(WG_F32, WG_DIMS(2)), *wide = zeros(WG_F64, WG_DIMS(2));
    wg_tensor *whole = zeros(WG_I64, WG_DIMS(2));
    refused(wg_apply_one(wg_op_find("add"), WG_TENSORS(single, wide), NULL), WG_ERROR_DTYPE,
            "add: (2) f32 x (2) f64: dtypes f32 and f64 differ");
    refused(wg_apply_one(wg_op_find("div"), WG_TENSORS(whole, whole), NULL), WG_ERROR_DTYPE,
            "takes a floating dtype, not i64");
    refused(wg_apply_one(wg_op_find("exp"), WG_TENSORS(whole), NULL), WG_ERROR_DTYPE, "exp");
    refused(wg_apply_one(wg_op_find("hypot"), WG_TENSORS(whole, whole), NULL), WG_ERROR_DTYPE,
            "hypot");
    refused(wg_apply_one(wg_op_find("square"), WG_TENSORS(zeros(WG_BOOL, WG_DIMS(2))), NULL),
            WG_ERROR_DTYPE, "square: (2) bool: takes numbers");
    refused(wg_apply_one(wg_op_find("lerp"), WG_TENSORS(single, single, wide), NULL),
            WG_ERROR_DTYPE, "dtypes f32 and f64 differ");
    refused(wg_apply_one(wg_op_find("eq"), WG_TENSORS(whole, wide), NULL), WG_ERROR_DTYPE, "eq");
    refused(wg_apply_one(wg_op_find("logical_and"), WG_TENSORS(whole, whole), NULL), WG_ERROR_DTYPE,
            "takes bools");
}

TEST(indices_out_of_range_are_named) {
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

TEST(indices_of_a_wrong_shape_are_refused) {
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

static wg_tensor *einsum_of(const char *equation, wg_tensor *x, wg_tensor *y) {
    wg_tensor *operands[] = {x, y};
    return wg_einsum(equation, y ? 2 : 1, operands);
}

TEST(an_equation_that_is_none_is_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3));
    refused(einsum_of("i1", x, NULL), WG_ERROR_ARGUMENT,
            "einsum: it takes letters, ',', '->' and '...'; see character 2 of \"i1\"");
    refused(einsum_of("i..j", x, NULL), WG_ERROR_ARGUMENT, "character 2 of \"i..j\"");
    refused(einsum_of("ij- >ij", x, NULL), WG_ERROR_ARGUMENT, "character 3 of");
    refused(einsum_of("ij->i->j", x, NULL), WG_ERROR_ARGUMENT, "there is one result");
    refused(einsum_of("ij->i,j", x, NULL), WG_ERROR_ARGUMENT, "there is one result");
    refused(einsum_of("...i...", x, NULL), WG_ERROR_ARGUMENT, "at most one '...'");
    refused(einsum_of("i->i... ...", x, NULL), WG_ERROR_ARGUMENT, "at most one '...'");
    refused(einsum_of(NULL, x, NULL), WG_ERROR_ARGUMENT, "the equation is NULL");
    char longest[1000] = "";
    memset(longest, 'i', sizeof longest - 1);
    refused(einsum_of(longest, x, NULL), WG_ERROR_ARGUMENT, "longer than any");
}

TEST(an_equation_that_does_not_fit_its_operands_is_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *y = zeros(WG_F32, WG_DIMS(4, 3));
    refused(einsum_of("ij,jk", x, NULL), WG_ERROR_ARGUMENT,
            "einsum: (2, 3) f32: the equation has terms for 2 operands, not 1");
    refused(einsum_of("ij", x, x), WG_ERROR_ARGUMENT, "terms for 1 operands, not 2");
    refused(einsum_of("i->i", x, NULL), WG_ERROR_SHAPE,
            "operand 0 has 2 axes, its term has 1 labels; '...' stands for the rest");
    refused(einsum_of("ij,ijk", x, y), WG_ERROR_SHAPE, "operand 1 has 2 axes, its term has 3");
    refused(einsum_of("...ijk", x, NULL), WG_ERROR_SHAPE, "operand 0 has 2 axes");
    refused(einsum_of("ij,jk->ik", x, y), WG_ERROR_SHAPE,
            "einsum: (2, 3) f32 x (4, 3) f32: 'j' stands for size 4 in operand 1, and for 3 "
            "before; make them equal, or one of them 1");
    refused(einsum_of("...,...", x, y), WG_ERROR_SHAPE, "'...' stands for size 4 in operand 1");
    refused(einsum_of("ii->i", x, NULL), WG_ERROR_SHAPE,
            "'i' stands for sizes 2 and 3 in operand 0, which has no such diagonal");
    refused(einsum_of("ii", zeros(WG_F32, WG_DIMS(1, 3)), NULL), WG_ERROR_SHAPE, "sizes 1 and 3");
    refused(einsum_of("ij->ik", x, NULL), WG_ERROR_ARGUMENT,
            "the result has 'k', which no operand has");
    refused(einsum_of("ij->ii", x, NULL), WG_ERROR_ARGUMENT, "the result has 'i' twice");
    refused(einsum_of("...j->j", x, NULL), WG_ERROR_ARGUMENT,
            "'...' stands for 1 axes, which the result lacks");
    refused(einsum_of("abcde,fghij->abcdefghij", zeros(WG_F32, WG_DIMS(1, 1, 1, 1, 1)),
                      zeros(WG_F32, WG_DIMS(1, 1, 1, 1, 1))),
            WG_ERROR_SHAPE, "the result has 10 axes; there are at most 8");
    wg_tensor *truth = zeros(WG_BOOL, WG_DIMS(2, 2));
    refused(einsum_of("ij,jk", truth, truth), WG_ERROR_DTYPE, "bools do not add up");
    wg_tensor *eight = zeros(WG_F32, WG_DIMS(2, 2, 2, 2, 2, 2, 2, 2));
    refused(wg_einsum("abcdefgh,ijcdeklm,nofghklm->abijno", WG_TENSORS(eight, eight, eight)),
            WG_ERROR_SHAPE,
            "in any order, a product on the way to the result has more than 8 axes");
    refused(wg_einsum("i", 0, NULL), WG_ERROR_ARGUMENT, "einsum: 0 operands");
}

TEST(products_that_do_not_fit_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *v = zeros(WG_F32, WG_DIMS(3));
    const int64_t first[] = {0, 0}, both[] = {0, 1}, beyond[] = {2};
    refused(wg_tensordot(x, x, 1, first, both + 1), WG_ERROR_SHAPE,
            "tensordot: (2, 3) f32 x (2, 3) f32: axis 0 of a has size 2, axis 1 of b has 3; they "
            "are to be summed over together");
    refused(wg_tensordot(x, x, 2, first, both), WG_ERROR_INDEX, "tensordot: axis 0 is given twice");
    refused(wg_tensordot(x, x, 1, first, beyond), WG_ERROR_INDEX, "tensordot: axis 2");
    refused(wg_tensordot(x, x, 9, first, both), WG_ERROR_ARGUMENT, "9 pairs of axes");
    wg_tensor *five = zeros(WG_F32, WG_DIMS(1, 1, 1, 1, 1));
    refused(wg_tensordot(five, five, 0, NULL, NULL), WG_ERROR_SHAPE, "the result has 10 axes");
    refused(wg_dot(x, v), WG_ERROR_SHAPE, "dot: (2, 3) f32 x (3) f32: wanted two vectors");
    refused(wg_dot(v, zeros(WG_F32, WG_DIMS(1))), WG_ERROR_SHAPE, "sizes 3 and 1 differ");
    wg_tensor *truth = zeros(WG_BOOL, WG_DIMS(2, 2)), *whole = zeros(WG_I64, WG_DIMS(2, 2));
    refused(wg_matmul(truth, truth), WG_ERROR_DTYPE, "bool is not multiplied");
    refused(wg_addmm(truth, truth, truth, 1, 1), WG_ERROR_DTYPE, "bool is not multiplied");
    refused(wg_addmm(whole, whole, whole, 1, 0.5), WG_ERROR_ARGUMENT,
            "factors of integers are whole numbers, not 1 and 0.5");
    refused(wg_addmm(v, x, x, 1, 1), WG_ERROR_SHAPE, "wanted C + A B of matrices");
    refused(wg_addmm(v, x, v, 1, 1), WG_ERROR_SHAPE, "addmm: (3) f32 x (2, 3) f32 x (3) f32");
    refused(wg_addmm(x, x, zeros(WG_F32, WG_DIMS(3, 2)), 1, 1), WG_ERROR_SHAPE,
            "C does not broadcast to (2, 2)");
    refused(wg_addmm(zeros(WG_F32, WG_DIMS(1, 2, 2)), x, zeros(WG_F32, WG_DIMS(3, 2)), 1, 1),
            WG_ERROR_SHAPE, "C does not broadcast");
}

TEST(the_largest_of_nothing_is_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(0, 3));
    refused(wg_max(x, WG_ALL, false), WG_ERROR_SHAPE, "max: (0, 3) f32: there are no elements");
    refused(wg_min(x, WG_DIMS(0), false), WG_ERROR_SHAPE, "min: (0, 3) f32");
    refused(wg_argmax(x, 0, false), WG_ERROR_SHAPE, "argmax: (0, 3) f32");
    ck_assert_int_eq(wg_tensor_count(wg_max(x, WG_DIMS(1), false)), 0);
    refused(wg_sum_to(x, WG_DIMS(2)), WG_ERROR_SHAPE, "sum_to: (0, 3) f32 to (2) f32");
    refused(wg_sum_to(x, WG_DIMS(1, 1, 3)), WG_ERROR_SHAPE, "sum_to");
}

TEST(reductions_and_scans_refuse_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *scalar = wg_scalar(WG_F32, 1), *out;
    refused(wg_std(x, WG_DIMS(2), 1, false), WG_ERROR_INDEX, "std: axis 2");
    refused(wg_prod(x, WG_DIMS(0, -2), false), WG_ERROR_INDEX, "prod: axis -2 is given twice");
    refused(wg_logsumexp(x, WG_DIMS(-3), false), WG_ERROR_INDEX, "logsumexp: axis -3");
    refused(wg_any(x, WG_DIMS(2), false), WG_ERROR_INDEX, "any: axis 2");
    refused(wg_all(x, WG_DIMS(2), false), WG_ERROR_INDEX, "all: axis 2");
    refused(wg_count_nonzero(x, WG_DIMS(2), false), WG_ERROR_INDEX, "count_nonzero: axis 2");
    refused(wg_argmin(x, -3, false), WG_ERROR_INDEX, "argmin: axis -3");
    refused(wg_argmin(zeros(WG_F32, WG_DIMS(0)), 0, false), WG_ERROR_SHAPE,
            "argmin: (0) f32: there are no elements");
    refused(wg_norm(x, 2, WG_DIMS(2), false), WG_ERROR_INDEX, "norm: axis 2");
    refused(wg_norm(x, NAN, WG_ALL, false), WG_ERROR_ARGUMENT, "norm: (2, 3) f32: p is NaN");
    refused(wg_norm(zeros(WG_F32, WG_DIMS(2, 0)), -INFINITY, WG_DIMS(1), false), WG_ERROR_SHAPE,
            "norm: (2, 0) f32: no elements have no norm of order -inf");
    refused(wg_cumsum(x, 2), WG_ERROR_INDEX, "cumsum: axis 2");
    refused(wg_cumprod(scalar, 0), WG_ERROR_INDEX, "cumprod: axis 0");
    refused(wg_linear_scan(x, x, 2, NULL), WG_ERROR_INDEX, "linear_scan: axis 2");
    refused(wg_linear_scan(x, zeros(WG_F32, WG_DIMS(2)), 0, NULL), WG_ERROR_SHAPE,
            "linear_scan: (2, 3) f32 x (2) f32: sizes 3 and 2 of axis -1 do not broadcast");
    refused(wg_linear_scan(x, x, 0, x), WG_ERROR_SHAPE,
            "linear_scan: the initial state is (2, 3) f32; wanted one that broadcasts to (3) f32, "
            "the shape of a and b without axis 0");
    refused(wg_logcumsumexp(x, -3), WG_ERROR_INDEX, "logcumsumexp: axis -3");
    refused(wg_quantile(x, wg_scalar(WG_F32, 1.5), 0, false, WG_QUANTILE_LINEAR), WG_ERROR_ARGUMENT,
            "quantile: (2, 3) f32 x () f32: q is 1.5; wanted 0 to 1");
    refused(wg_quantile(x, x, 0, false, WG_QUANTILE_LINEAR), WG_ERROR_SHAPE,
            "quantile: (2, 3) f32 x (2, 3) f32: wanted x of rank 1 or more, and q of rank 0 or 1");
    refused(wg_histc(x, 0, 0, 1), WG_ERROR_ARGUMENT, "histc: (2, 3) f32: 0 bins");
    refused(wg_histc(x, 3, 1, 0), WG_ERROR_ARGUMENT, "histc: (2, 3) f32: the range is 1 to 0");
    refused(wg_histogram(x, wg_arange(WG_F32, 3, 0, -1), NULL, false), WG_ERROR_ARGUMENT,
            "edge 0 is 3 and the next is 2; wanted them in ascending order");
    refused(wg_segment_reduce(x, wg_arange(WG_I64, 0, 2, 1), WG_SEGMENT_SUM, 0), WG_ERROR_INDEX,
            "segment_reduce: the offsets go from 0 to 1; wanted 0 to 2, the number of rows");
    refused(wg_unsorted_segment_reduce(x, wg_arange(WG_I64, 0, 2, 1), 1, WG_SEGMENT_MAX, 0),
            WG_ERROR_INDEX, "segment_max: (2, 3) f32 x (2) i64: index 1 is out of range");
    refused(wg_cdist(x, x, -1), WG_ERROR_ARGUMENT, "cdist: (2, 3) f32 x (2, 3) f32: p is -1");
    refused(wg_cdist(x, zeros(WG_F32, WG_DIMS(2, 2)), 2), WG_ERROR_SHAPE,
            "wanted points with as many coordinates");
    refused(wg_grouped_mm(x, zeros(WG_F32, WG_DIMS(1, 3, 4)), wg_arange(WG_I64, 1, 3, 1)),
            WG_ERROR_INDEX, "grouped_mm: the offsets go from 1 to 2; wanted 0 to 2");
    ck_assert_int_eq(wg_cummax(x, 2, &out, NULL), -1);
    assert_null(out, WG_ERROR_INDEX, "cummax: axis 2");
    ck_assert_int_eq(wg_cummin(scalar, -1, NULL, &out), -1);
    assert_null(out, WG_ERROR_INDEX, "cummin: axis -1");
}

TEST(sorting_refuses_axes_and_counts_that_are_not_there) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *values = x, *indices = x;
    ck_assert_int_eq(wg_sort(x, 2, false, &values, &indices), -1);
    ck_assert(values == NULL && indices == NULL);
    assert_error(WG_ERROR_INDEX, "sort: axis 2");
    refused(wg_argsort(wg_scalar(WG_F32, 1), 0, false), WG_ERROR_INDEX, "argsort: axis 0");
    assert_fails(wg_topk(x, 4, 1, true, &values, &indices), WG_ERROR_ARGUMENT,
                 "topk: (2, 3) f32: k is 4; wanted 0 to 3, the size of axis 1");
    assert_fails(wg_topk(x, -1, 0, true, NULL, NULL), WG_ERROR_ARGUMENT, "k is -1");
    refused(wg_median(x, -3, false), WG_ERROR_INDEX, "median: axis -3");
    refused(wg_median(zeros(WG_F32, WG_DIMS(2, 0)), 1, false), WG_ERROR_SHAPE,
            "median: (2, 0) f32: there are no elements");
}

TEST(null_gives_null_and_leaves_the_first_error_alone) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *y = zeros(WG_F32, WG_DIMS(4));
    wg_tensor *lost = wg_add(x, y), *parts[2];
    ck_assert_ptr_null(wg_add(lost, x));
    ck_assert_ptr_null(wg_div(x, lost));
    ck_assert_ptr_null(wg_exp(lost));
    ck_assert_ptr_null(wg_clamp(lost, 1, 0));
    ck_assert_ptr_null(wg_square(lost));
    ck_assert_ptr_null(wg_floor(lost));
    ck_assert_ptr_null(wg_isnan(lost));
    ck_assert_ptr_null(wg_nan_to_num(lost, 0, 0, 0));
    ck_assert_ptr_null(wg_polygamma(-1, lost));
    ck_assert_ptr_null(wg_hypot(x, lost));
    ck_assert_ptr_null(wg_fmod(lost, x));
    ck_assert_ptr_null(wg_lerp(x, y, lost));
    ck_assert_ptr_null(wg_addcmul(x, lost, y, 1));
    ck_assert_ptr_null(wg_addcdiv(lost, x, y, 1));
    ck_assert_ptr_null(wg_cast(lost, WG_F64));
    ck_assert_ptr_null(wg_contiguous(lost));
    ck_assert_ptr_null(wg_reshape(lost, WG_DIMS(3)));
    ck_assert_ptr_null(wg_slice(lost, 7, 0, 1, 0));
    ck_assert_ptr_null(wg_select(lost, 7, 0));
    ck_assert_int_eq(wg_split(lost, 0, 2, (int64_t[]){1, 1}, parts), -1);
    ck_assert_ptr_null(wg_cat(WG_TENSORS(x, lost), 9));
    ck_assert_ptr_null(wg_stack(WG_TENSORS(lost, x), 9));
    ck_assert_ptr_null(wg_tril(lost, 0));
    ck_assert_ptr_null(wg_roll(lost, 2, (int64_t[]){1, 1}, NULL));
    ck_assert_ptr_null(wg_diagonal(lost, 0, 9, 9));
    ck_assert_ptr_null(wg_pad(lost, 9, NULL, WG_PAD_CONSTANT, 0));
    ck_assert_ptr_null(wg_take(x, lost));
    ck_assert_int_eq(wg_meshgrid(1, &lost, parts), -1);
    ck_assert_ptr_null(wg_where(lost, x, x));
    ck_assert_ptr_null(wg_masked_fill(x, lost, 0));
    ck_assert_ptr_null(wg_eq(lost, lost));
    ck_assert_ptr_null(wg_logical_not(lost));
    ck_assert_ptr_null(wg_sum(lost, WG_DIMS(9), false));
    ck_assert_ptr_null(wg_mean(lost, WG_ALL, false));
    ck_assert_ptr_null(wg_var(lost, WG_ALL, 0, false));
    ck_assert_ptr_null(wg_argmax(lost, 9, false));
    ck_assert_ptr_null(wg_norm(lost, NAN, WG_ALL, false));
    ck_assert_ptr_null(wg_logsumexp(lost, WG_DIMS(9), false));
    ck_assert_ptr_null(wg_cumsum(lost, 9));
    ck_assert_ptr_null(wg_linear_scan(x, lost, 9, NULL));
    ck_assert_int_eq(wg_cummax(lost, 9, NULL, NULL), -1);
    ck_assert_int_eq(wg_sort(lost, 9, false, NULL, NULL), -1);
    ck_assert_int_eq(wg_topk(lost, 9, 9, false, NULL, NULL), -1);
    ck_assert_ptr_null(wg_median(lost, 9, false));
    ck_assert_int_eq(wg_unique(lost, NULL, NULL, NULL), -1);
    ck_assert_ptr_null(wg_sum_to(lost, WG_DIMS(1)));
    ck_assert_ptr_null(wg_gather(x, 0, lost));
    ck_assert_ptr_null(wg_index_select(lost, 0, lost));
    ck_assert_ptr_null(wg_scatter_add(x, 0, lost, x));
    ck_assert_ptr_null(wg_embedding_op(x, lost, -1));
    ck_assert_ptr_null(wg_one_hot(lost, 3));
    ck_assert_ptr_null(wg_einsum("ij,jk", WG_TENSORS(x, lost)));
    ck_assert_ptr_null(wg_tensordot(lost, x, 0, NULL, NULL));
    ck_assert_ptr_null(wg_outer(x, lost));
    ck_assert_ptr_null(wg_dot(lost, x));
    assert_null(wg_addmm(x, lost, x, 1, 1), WG_ERROR_SHAPE, "add: (2, 3) f32 x (4) f32");
}

TEST(activations_refuse_what_they_are_not_defined_for) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3));
    refused(wg_glu(x, zeros(WG_F32, WG_DIMS(3))), WG_ERROR_SHAPE,
            "glu: (2, 3) f32 x (3) f32: the shapes of gate and value differ");
    refused(wg_reglu(zeros(WG_F32, WG_DIMS(3, 2)), x), WG_ERROR_SHAPE, "reglu");
    refused(wg_softplus(x, INFINITY, 20), WG_ERROR_ARGUMENT, "softplus: (2, 3) f32: beta inf");
    refused(wg_softplus(x, NAN, 20), WG_ERROR_ARGUMENT, "beta nan");
    refused(wg_softplus(x, 1, NAN), WG_ERROR_ARGUMENT, "threshold nan");
}

TEST(indices_of_several_axes_that_do_not_fit_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(3, 4)), *mask = zeros(WG_BOOL, WG_DIMS(3));
    wg_tensor *two = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){0, 1});
    wg_tensor *three = zeros(WG_I64, WG_DIMS(3));
    refused(wg_index(x, WG_TENSORS(wg_scalar(WG_I64, 3))), WG_ERROR_INDEX,
            "index 3 is out of range of axis 0; wanted -3 to 2");
    refused(wg_index(x, WG_TENSORS(NULL, wg_scalar(WG_I64, -5))), WG_ERROR_INDEX,
            "index -5 is out of range of axis 1; wanted -4 to 3");
    refused(wg_index(x, WG_TENSORS(two, three)), WG_ERROR_SHAPE,
            "indices of (2) i64 and (3) i64 do not broadcast");
    refused(wg_index(x, WG_TENSORS(two, two, two)), WG_ERROR_SHAPE, "more axes than x has");
    refused(wg_index(x, WG_TENSORS(NULL, mask)), WG_ERROR_SHAPE,
            "a mask has size 3 where axis 1 of x has 4");
    refused(wg_index(x, WG_TENSORS(wg_scalar(WG_BOOL, 1))), WG_ERROR_SHAPE, "a mask of rank 0");
    refused(wg_index(x, WG_TENSORS(x)), WG_ERROR_DTYPE, "indices are i64, i32 or bool, not f32");
    refused(wg_index(x, 7, (wg_tensor *[7]){NULL}), WG_ERROR_ARGUMENT, "7 indices; at most 6");
    refused(wg_index(x, WG_TENSORS(zeros(WG_I64, WG_DIMS(1, 1, 1, 1, 1, 1, 1, 1)))), WG_ERROR_SHAPE,
            "rank 9");
    refused(wg_index_put(x, 1, (wg_tensor *[]){NULL}, x, false), WG_ERROR_ARGUMENT,
            "no index is there");
    refused(wg_index_put(x, WG_TENSORS(two), zeros(WG_F32, WG_DIMS(3)), false), WG_ERROR_SHAPE,
            "size 3 of axis 0 is not 4");
    wg_fail(WG_ERROR_STATE, "test", "the first error");
    refused(wg_index(x, WG_TENSORS(NULL)), WG_ERROR_STATE, "the first error");
}

TEST(masks_and_sources_that_do_not_fit_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(3, 4)), *mask = wg_ones(WG_BOOL, WG_DIMS(3, 1));
    refused(wg_masked_select(x, x), WG_ERROR_DTYPE, "a mask is bool, not f32");
    refused(wg_masked_select(x, zeros(WG_BOOL, WG_DIMS(3))), WG_ERROR_SHAPE,
            "x and the mask do not broadcast");
    refused(wg_masked_scatter(zeros(WG_F32, WG_DIMS(4)), mask, x), WG_ERROR_SHAPE,
            "the mask must broadcast to x");
    refused(wg_masked_scatter(x, mask, zeros(WG_F32, WG_DIMS(11))), WG_ERROR_SHAPE,
            "the source has 11 elements; the mask wants 12");
}

TEST(places_and_counts_that_make_no_sense_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(3, 4)), *index = wg_full(WG_I64, WG_DIMS(3, 2), 4);
    refused(wg_scatter(x, 1, index, zeros(WG_F32, WG_DIMS(3, 2))), WG_ERROR_INDEX,
            "index 4 is out of range; wanted 0 to 3");
    refused(wg_scatter(x, 1, index, x), WG_ERROR_SHAPE, "index and src must have one shape");
    refused(wg_scatter(x, 2, index, x), WG_ERROR_INDEX, "scatter: axis 2");
    wg_tensor *numbers = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){2, -1});
    refused(wg_bincount(numbers, NULL, 0), WG_ERROR_INDEX, "-1 is negative");
    refused(wg_bincount(index, NULL, 0), WG_ERROR_SHAPE, "wanted x of rank 1");
    refused(wg_bincount(wg_abs(numbers), zeros(WG_F32, WG_DIMS(3)), 0), WG_ERROR_SHAPE,
            "x and its weights must have one shape");
    refused(wg_bincount(wg_abs(numbers), NULL, -1), WG_ERROR_ARGUMENT, "min_length is negative");
    refused(wg_bincount(zeros(WG_F32, WG_DIMS(2)), NULL, 0), WG_ERROR_DTYPE, "indices are i64");
    refused(wg_searchsorted(wg_scalar(WG_F32, 1), x, false), WG_ERROR_SHAPE, "rank 1 or more");
    refused(wg_searchsorted(zeros(WG_F32, WG_DIMS(2, 5)), x, false), WG_ERROR_SHAPE,
            "all axes but the last as those of the values");
    refused(wg_searchsorted(zeros(WG_BOOL, WG_DIMS(2)), zeros(WG_BOOL, WG_DIMS(2)), false),
            WG_ERROR_DTYPE, "bool is not searched");
}

TEST(cross_entropy_says_which_option_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *ids = zeros(WG_I64, WG_DIMS(2));
    const wg_cross_entropy_options too_smooth = {.label_smoothing = 1.5},
                                   no_reduction = {.reduction = (wg_reduction)3},
                                   narrow = {.weight = zeros(WG_F32, WG_DIMS(2))},
                                   smooth = {.label_smoothing = 0.1};
    refused(wg_cross_entropy(x, ids, -100, &too_smooth), WG_ERROR_ARGUMENT,
            "cross_entropy: label_smoothing 1.5; wanted 0 to 1");
    refused(wg_cross_entropy(x, ids, -100, &no_reduction), WG_ERROR_ARGUMENT,
            "3 is none of wg_reduction");
    refused(wg_cross_entropy(x, ids, -100, &narrow), WG_ERROR_SHAPE,
            "cross_entropy: (2, 3) f32 x (2) i64 x (2) f32: wanted a weight for each class, (V)");
    refused(wg_cross_entropy(x, x, 0, NULL), WG_ERROR_ARGUMENT, "ignore_index 0 says nothing");
    refused(wg_cross_entropy(x, zeros(WG_F32, WG_DIMS(2, 2)), -100, NULL), WG_ERROR_SHAPE,
            "targets (N, V)");
    refused(wg_cross_entropy(zeros(WG_I64, WG_DIMS(2, 3)), ids, -100, NULL), WG_ERROR_DTYPE,
            "wanted f32 or f64");
    refused(wg_nll_loss(x, ids, -100, &smooth), WG_ERROR_ARGUMENT, "nll_loss: label_smoothing 0.1");
    refused(wg_nll_loss(x, wg_full(WG_I64, WG_DIMS(2), 3), -100, NULL), WG_ERROR_INDEX,
            "nll_loss: (2, 3) f32 x (2) i64: target 3 of row 0 is outside the 3 classes");
    refused(wg_nll_loss(ids, ids, -100, NULL), WG_ERROR_DTYPE, "wanted log probabilities");
}

TEST(losses_refuse_targets_and_weights_that_do_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 3)), *row = zeros(WG_F32, WG_DIMS(3));
    wg_tensor *column = zeros(WG_F32, WG_DIMS(2));
    const wg_reduction mean = WG_REDUCTION_MEAN;
    refused(wg_mse_loss(x, row, mean), WG_ERROR_SHAPE,
            "mse_loss: (2, 3) f32 x (3) f32: the shapes of x and target differ");
    refused(wg_l1_loss(x, row, mean), WG_ERROR_SHAPE, "l1_loss");
    refused(wg_mse_loss(x, x, (wg_reduction)-1), WG_ERROR_ARGUMENT, "-1 is none of wg_reduction");
    refused(wg_smooth_l1_loss(x, x, -1, mean), WG_ERROR_ARGUMENT, "beta -1; wanted 0 or more");
    refused(wg_smooth_l1_loss(x, x, NAN, mean), WG_ERROR_ARGUMENT, "beta nan");
    refused(wg_kl_div(x, row, false, mean), WG_ERROR_SHAPE, "kl_div");
    refused(wg_bce_with_logits(x, row, NULL, NULL, mean), WG_ERROR_SHAPE, "bce_with_logits");
    refused(wg_bce_with_logits(x, x, column, NULL, mean), WG_ERROR_SHAPE,
            "weight does not broadcast to the logits");
    refused(wg_bce_with_logits(x, x, NULL, zeros(WG_F32, WG_DIMS(1, 2, 3)), mean), WG_ERROR_SHAPE,
            "pos_weight does not broadcast to the logits");
    refused(wg_cosine_similarity(x, column, 0, 1e-8), WG_ERROR_SHAPE, "cosine_similarity");
    refused(wg_cosine_similarity(x, x, 2, 1e-8), WG_ERROR_INDEX, "cosine_similarity: axis 2");
}

TEST(convolutions_refuse_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 4, 5, 6)), *w = zeros(WG_F32, WG_DIMS(6, 4, 3, 3));
    refused(wg_conv_op(x, zeros(WG_F32, WG_DIMS(6, 3, 3, 3)), NULL, NULL), WG_ERROR_SHAPE,
            "conv2d: (2, 4, 5, 6) f32 x (6, 3, 3, 3) f32: x has 4 channels; a weight (6, 3, ...) "
            "with groups 1 takes 3");
    refused(wg_conv_op(x, w, zeros(WG_F32, WG_DIMS(4)), NULL), WG_ERROR_SHAPE,
            "wanted a bias of 6, a value for each output channel");
    refused(wg_conv_op(x, zeros(WG_F32, WG_DIMS(6, 4, 3)), NULL, NULL), WG_ERROR_SHAPE,
            "conv1d: (2, 4, 5, 6) f32 x (6, 4, 3) f32: wanted images (N, C, L) or (C, L), and a "
            "weight (O, I, K)");
    refused(wg_conv_op(x, zeros(WG_F32, WG_DIMS(6, 4)), NULL, NULL), WG_ERROR_SHAPE,
            "conv: the weight is (6, 4) f32; wanted (O, I, K), (O, I, K, K) or (O, I, K, K, K)");
    refused(wg_conv_op(x, zeros(WG_F32, WG_DIMS(6, 4, 3, 3, 3)), NULL, NULL), WG_ERROR_SHAPE,
            "conv3d: (1, 2, 4, 5, 6) f32 x (6, 4, 3, 3, 3) f32: x has 2 channels");
    refused(wg_conv_op(x, zeros(WG_F32, WG_DIMS(6, 4, 3, 7)), NULL, NULL), WG_ERROR_SHAPE,
            "a kernel of 7, which reaches over 7 places, does not fit into spatial axis 1, of size "
            "6 with its padding");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.dilation = {3, 1}, .padding = {0, 4}}),
            WG_ERROR_SHAPE,
            "a kernel of 3, which reaches over 7 places, does not fit into spatial "
            "axis 0, of size 5");
    refused(wg_conv_op(x, zeros(WG_F32, WG_DIMS(6, 4, 0, 3)), NULL, NULL), WG_ERROR_SHAPE,
            "a kernel of 0");
    refused(
        wg_conv_op(x, zeros(WG_F32, WG_DIMS(5, 2, 3, 3)), NULL, &(wg_conv_options){.groups = 2}),
        WG_ERROR_SHAPE, "2 groups do not divide 5 output channels");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.groups = -1}), WG_ERROR_ARGUMENT,
            "groups is -1; it must be at least 1");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.stride = {1, -2}}), WG_ERROR_ARGUMENT,
            "stride -2, padding 0 and dilation 1 of spatial axis 1; stride and dilation are at "
            "least 1, padding at least 0");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.padding = {-1}}), WG_ERROR_ARGUMENT,
            "padding -1");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.padding = {INT64_MAX, 1}}),
            WG_ERROR_ARGUMENT, "padding 9223372036854775807");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.padding = {INT32_MAX, INT32_MAX}}),
            WG_ERROR_SHAPE, "beyond all memory");
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.stride = {2, 1}, .same_padding = true}),
            WG_ERROR_ARGUMENT, "same_padding goes with a stride of 1");
    refused(wg_conv_op(zeros(WG_I64, WG_DIMS(1, 1, 3, 3)), zeros(WG_I64, WG_DIMS(1, 1, 2, 2)), NULL,
                       NULL),
            WG_ERROR_DTYPE, "conv2d");
    refused(
        wg_conv_op(x, w, NULL,
                   &(wg_conv_options){.stride = {1 << 30, INT32_MAX}, .padding = {0, INT32_MAX}}),
        WG_ERROR_SHAPE, "beyond all memory");
}

TEST(transposed_convolutions_refuse_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 4, 5)), *w = zeros(WG_F32, WG_DIMS(4, 3, 2));
    refused(wg_conv_transpose_op(x, zeros(WG_F32, WG_DIMS(3, 4, 2)), NULL, NULL), WG_ERROR_SHAPE,
            "conv_transpose1d: (2, 4, 5) f32 x (3, 4, 2) f32: x has 4 channels, the weight (3, 4, "
            "...) takes 3");
    refused(wg_conv_transpose_op(x, w, zeros(WG_F32, WG_DIMS(4)), NULL), WG_ERROR_SHAPE,
            "wanted a bias of 3");
    refused(wg_conv_transpose_op(x, w, NULL, &(wg_conv_options){.padding = {3}}), WG_ERROR_SHAPE,
            "nothing is left of spatial axis 0 when a padding of 3 is cut off both ends");
    refused(wg_conv_transpose_op(x, w, NULL, &(wg_conv_options){.groups = 3}), WG_ERROR_SHAPE,
            "3 groups do not divide 4 channels");
    refused(wg_conv_transpose_op(x, w, NULL, &(wg_conv_options){.output_padding = {1}}),
            WG_ERROR_ARGUMENT,
            "output_padding is 1 along spatial axis 0; it must be at least 0, and below the stride "
            "(1) or the dilation (1)");
    refused(wg_conv_transpose_op(x, w, NULL, &(wg_conv_options){.output_padding = {-1}}),
            WG_ERROR_ARGUMENT, "output_padding is -1");
}

TEST(pooling_refuses_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 4, 5, 6));
    refused(wg_max_pool(x, NULL, NULL), WG_ERROR_ARGUMENT,
            "max_pool: there is no kernel; wanted the size of a window along 1 to 3 axes");
    refused(wg_max_pool(x, &(wg_pool_options){.kernel = {0, 2}}, NULL), WG_ERROR_ARGUMENT,
            "max_pool2d: (2, 4, 5, 6) f32: kernel 0, stride 0 and dilation 1 of spatial axis 0; "
            "all are at least 1");
    refused(wg_avg_pool(x, &(wg_pool_options){.kernel = {2, 2}, .padding = {0, 2}}),
            WG_ERROR_ARGUMENT,
            "avg_pool2d: (2, 4, 5, 6) f32: padding 2 along spatial axis 1; it is at least 0, and "
            "at most half of the 2 places that the kernel reaches over");
    refused(wg_avg_pool(x, &(wg_pool_options){.kernel = {6, 1}}), WG_ERROR_SHAPE,
            "spatial axis 0, of size 5, has no window");
    refused(wg_max_pool(x,
                        &(wg_pool_options){.kernel = {INT64_MAX, INT64_MAX},
                                           .dilation = {INT64_MAX, INT64_MAX}},
                        NULL),
            WG_ERROR_ARGUMENT, "max_pool2d: (2, 4, 5, 6) f32: kernel 9223372036854775807, stride");
    refused(wg_max_pool(x, &(wg_pool_options){.kernel = {2}}, NULL), WG_ERROR_SHAPE,
            "max_pool1d: (2, 4, 5, 6) f32: wanted (N, C, L) or (C, L)");
    refused(wg_max_pool(x, &(wg_pool_options){.kernel = {2, 2}, .stride = {-1, 1}}, NULL),
            WG_ERROR_ARGUMENT, "stride -1");
    refused(wg_adaptive_avg_pool(x, 2, (int64_t[]){3, 0}), WG_ERROR_SHAPE,
            "spatial axis 1, of size 6, has no window");
    refused(wg_avg_pool(zeros(WG_I64, WG_DIMS(1, 4, 4)), &(wg_pool_options){.kernel = {2, 2}}),
            WG_ERROR_DTYPE, "avg_pool2d");
}

TEST(options_of_another_op_are_refused) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(1, 2, 5)), *w = zeros(WG_F32, WG_DIMS(2, 2, 3));
    refused(wg_conv_op(x, w, NULL, &(wg_conv_options){.output_padding = {1}}), WG_ERROR_ARGUMENT,
            "conv1d: output_padding goes with a transposed convolution; it is 1 along spatial axis "
            "0");
    refused(wg_conv_transpose_op(x, w, NULL, &(wg_conv_options){.same_padding = true}),
            WG_ERROR_ARGUMENT,
            "conv_transpose1d: same_padding goes with a convolution that is not transposed");
    refused(wg_avg_pool(x, &(wg_pool_options){.kernel = {2}, .dilation = {2}}), WG_ERROR_ARGUMENT,
            "avg_pool1d: dilation goes with max_pool1d alone");
    refused(wg_max_pool(x, &(wg_pool_options){.kernel = {2}, .divisor_override = 2}, NULL),
            WG_ERROR_ARGUMENT,
            "max_pool1d: exclude_padding and divisor_override go with avg_pool1d alone");
}

TEST(interpolation_refuses_what_does_not_fit) {
    wg_tensor *x = zeros(WG_F32, WG_DIMS(2, 4, 5, 6));
    refused(wg_interpolate(x, WG_DIMS(3), WG_INTERPOLATE_LINEAR, false), WG_ERROR_SHAPE,
            "interpolate: (2, 4, 5, 6) f32: wanted images (N, C, ...) with 1 spatial axes");
    refused(wg_interpolate(x, WG_DIMS(3, 0), WG_INTERPOLATE_LINEAR, false), WG_ERROR_SHAPE,
            "spatial axis 1 goes from size 6 to 0; both are at least 1");
    refused(wg_interpolate(x, WG_DIMS(3, 3), WG_INTERPOLATE_NEAREST, true), WG_ERROR_ARGUMENT,
            "align_corners goes with WG_INTERPOLATE_LINEAR alone");
    refused(wg_interpolate(x, WG_DIMS(3, 3), (wg_interpolation)7, false), WG_ERROR_ARGUMENT,
            "mode 7 is none of wg_interpolation");
    refused(wg_interpolate(x, WG_DIMS(1, 1, 1, 1), WG_INTERPOLATE_LINEAR, false), WG_ERROR_ARGUMENT,
            "interpolate: 4 sizes; wanted 1 to 3");
    refused(
        wg_interpolate(zeros(WG_I64, WG_DIMS(1, 1, 2)), WG_DIMS(3), WG_INTERPOLATE_NEAREST, false),
        WG_ERROR_DTYPE, "wanted floats");
}
