/* The errors of ops: the name of the public function, the operands, the rule that was broken. */
#include "tensor/ops.h"

#include <math.h>
#include <string.h>

#include "tests/support/tensors.h"

#define CONV(...) (&(wg_conv_options){__VA_ARGS__})
#define POOL(...) (&(wg_pool_options){__VA_ARGS__})

/* Zeros of that shape. */
#define f32(...) wg_zeros(WG_F32, WG_DIMS(__VA_ARGS__))
#define i64(...) wg_zeros(WG_I64, WG_DIMS(__VA_ARGS__))
#define bools(...) wg_zeros(WG_BOOL, WG_DIMS(__VA_ARGS__))

TEST(shapes_that_do_not_broadcast_are_named) {
    wg_tensor *x = f32(2, 3), *y = f32(4);
    refused(wg_add(x, y), SHAPE, "add: (2, 3) f32 x (4) f32: sizes 3 and 4 of axis -1");
    refused(wg_sub(x, f32(5, 3)), SHAPE, "sizes 2 and 5 of axis -2");
    refused(wg_maximum(x, y), SHAPE, "maximum");
    refused(wg_pow(x, y), SHAPE, "pow");
    refused(wg_atan2(x, y), SHAPE, "atan2: (2, 3) f32 x (4) f32");
    refused(wg_remainder(x, y), SHAPE, "remainder");
    refused(wg_lerp(x, x, y), SHAPE, "lerp: (2, 3) f32 x (2, 3) f32 x (4) f32");
    refused(wg_addcmul(y, x, x, 1), SHAPE, "addcmul");
    refused(wg_addcdiv(x, y, x, 1), SHAPE, "addcdiv");
    refused(wg_le(x, y), SHAPE, "le: (2, 3) f32 x (4) f32");
    refused(wg_logical_or(x, y), SHAPE, "logical_or: (2, 3) bool x (4) bool");
    wg_tensor *truth = bools(3, 1);
    refused(wg_where(truth, x, f32(3)), SHAPE, "where");
    refused(wg_masked_fill(x, truth, 0), SHAPE, "masked_fill");
    refused(wg_masked_fill(f32(3), truth, 0), SHAPE, "the mask must broadcast to x");
}

TEST(views_refuse_shapes_that_do_not_fit) {
    wg_tensor *x = f32(2, 3);
    refused(wg_reshape(x, WG_DIMS(4, 2)), SHAPE, "reshape: (2, 3) f32: 6 elements");
    refused(wg_reshape(x, WG_DIMS(-1, 4)), SHAPE, "6 elements cannot");
    refused(wg_reshape(x, WG_DIMS(-1, -1)), SHAPE, "two sizes are -1");
    refused(wg_reshape(x, WG_DIMS(-2, 3)), SHAPE, "negative");
    refused(wg_reshape(f32(0, 3), WG_DIMS(-1, 0)), SHAPE, "cannot");
    refused(wg_reshape(x, 9, (int64_t[9]){0}), SHAPE, "reshape: rank 9");
    refused(wg_reshape(x, -1, NULL), SHAPE, "rank -1");
    refused(wg_expand(x, WG_DIMS(2, 4)), SHAPE, "expand: (2, 3) f32: size 3 of axis 1 is not 4");
    refused(wg_expand(x, WG_DIMS(3)), SHAPE, "expanding drops no axis");
    refused(wg_expand(x, WG_DIMS(-1, 2, 3)), SHAPE, "expand");
    refused(wg_squeeze(x, 0), SHAPE, "squeeze: (2, 3) f32: axis 0 has size 2");
    refused(wg_permute(x, WG_DIMS(0)), SHAPE, "permute: (2, 3) f32");
    refused(wg_unsqueeze(f32(1, 1, 1, 1, 1, 1, 1, 1), 0), SHAPE, "unsqueeze");
}

TEST(axes_and_positions_out_of_range_are_refused) {
    wg_tensor *x = f32(2, 3);
    refused(wg_transpose(x, 0, 2), INDEX, "transpose: axis 2");
    refused(wg_permute(x, WG_DIMS(0, 2)), INDEX, "permute: axis 2");
    refused(wg_permute(x, WG_DIMS(1, -1)), INDEX, "comes twice");
    refused(wg_slice(x, -3, 0, 1, 1), INDEX, "slice: axis -3");
    refused(wg_slice(x, 0, 0, 1, 0), ARGUMENT, "slice: a step of 0");
    refused(wg_select(x, 1, 3), INDEX, "select: (2, 3) f32: index 3");
    refused(wg_select(x, 1, -4), INDEX, "index -4");
    refused(wg_select(x, 2, 0), INDEX, "select: axis 2");
    refused(wg_squeeze(x, 2), INDEX, "squeeze: axis 2");
    refused(wg_unsqueeze(x, 3), INDEX, "unsqueeze: axis 3");
    refused(wg_sum(x, WG_DIMS(0, 2), false), INDEX, "sum: axis 2");
    refused(wg_mean(x, WG_DIMS(-3), false), INDEX, "mean: axis -3");
    refused(wg_var(x, WG_DIMS(1, 1), 0, false), INDEX, "var: axis 1 is given twice");
    refused(wg_max(x, WG_DIMS(2), true), INDEX, "max: axis 2");
    refused(wg_min(x, WG_DIMS(2), true), INDEX, "min: axis 2");
    refused(wg_argmax(x, 2, false), INDEX, "argmax: axis 2");
    refused(wg_argmax(wg_scalar(WG_F32, 1), 0, false), INDEX, "argmax");
}

TEST(reshaping_and_moving_axes_refuse_what_does_not_fit) {
    wg_tensor *x = f32(2, 6);
    const int64_t nine[9] = {0};
    refused(wg_flatten(x, 0, 2), INDEX, "flatten: axis 2");
    refused(wg_flatten(x, 1, 0), ARGUMENT, "flatten: (2, 6) f32: axis 1 comes after");
    refused(wg_unflatten(x, 2, WG_DIMS(2, 3)), INDEX, "unflatten: axis 2");
    refused(wg_unflatten(x, 1, WG_DIMS(2, 2)), SHAPE, "unflatten: (2, 6) f32: axis 1, of size 6");
    refused(wg_unflatten(x, 1, WG_DIMS(4, -1)), SHAPE, "6 elements cannot");
    refused(wg_unflatten(x, 1, WG_DIMS(-1, -1)), SHAPE, "two sizes are -1");
    refused(wg_unflatten(x, 0, 0, NULL), SHAPE, "into 0 axes");
    refused(wg_unflatten(x, 1, WG_DIMS(1, 1, 1, 1, 1, 1, 2, 3)), SHAPE, "ranks go to 8");
    refused(wg_unflatten(x, 1, 9, nine), SHAPE, "unflatten: rank 9");
    refused(wg_movedim(x, 1, (int64_t[]){2}, (int64_t[]){0}), INDEX, "movedim: axis 2");
    refused(wg_movedim(x, 1, (int64_t[]){0}, (int64_t[]){-3}), INDEX, "movedim: axis -3");
    refused(wg_movedim(x, 2, (int64_t[]){0, -2}, (int64_t[]){0, 1}), INDEX, "given twice");
    refused(wg_movedim(x, 9, nine, nine), ARGUMENT, "movedim: 9 axes");
    refused(wg_narrow(x, 2, 0, 1), INDEX, "narrow: axis 2");
    refused(wg_narrow(x, 1, 4, 3), INDEX, "narrow: (2, 6) f32: 3 elements from 4 on");
    refused(wg_narrow(x, 1, -7, 1), INDEX, "from -7 on");
    refused(wg_narrow(x, 1, 0, -1), INDEX, "-1 elements");
}

TEST(arranging_refuses_what_does_not_fit) {
    wg_tensor *x = f32(2, 3);
    const int64_t nine[9] = {0}, huge = (int64_t)1 << 62;
    refused(wg_flip(x, WG_DIMS(0, -2)), INDEX, "flip: axis -2 is given twice");
    refused(wg_flip(x, 9, nine), ARGUMENT, "flip: 9 axes");
    refused(wg_roll(x, 1, (int64_t[]){1}, (int64_t[]){2}), INDEX, "roll: axis 2");
    refused(wg_roll(x, 2, (int64_t[]){1, 1}, NULL), ARGUMENT, "roll: 2 shifts without axes");
    refused(wg_tile(x, WG_DIMS(2, -1)), ARGUMENT, "tile: (2, 3) f32: -1 repeats");
    refused(wg_tile(x, 1, &huge), SHAPE, "tile: (2, 3) f32: size 3 times");
    refused(wg_tile(x, 9, nine), ARGUMENT, "tile: 9");
    refused(wg_repeat_interleave(x, 2, 2), INDEX, "repeat_interleave: axis 2");
    refused(wg_repeat_interleave(x, -1, 0), ARGUMENT, "-1 repeats");
    refused(wg_repeat_interleave(x, huge, 0), SHAPE, "size 2 times");
    wg_tensor *outputs[9], *inputs[9] = {x, x, x, x, x, x, x, x, x};
    failed(wg_meshgrid(1, inputs, outputs), SHAPE, "meshgrid: (2, 3) f32: operand 0 is no vector");
    failed(wg_meshgrid(9, inputs, outputs), ARGUMENT, "meshgrid: 9 vectors");
    failed(wg_meshgrid(0, NULL, NULL), ARGUMENT, "meshgrid: 0 vectors");
}

TEST(diagonals_and_windows_refuse_what_does_not_fit) {
    wg_tensor *x = f32(2, 3), *deep = f32(1, 1, 1, 1, 1, 1, 1, 1);
    refused(wg_diagonal(x, 0, 0, 2), INDEX, "diagonal: axis 2");
    refused(wg_diagonal(x, 0, 1, -1), INDEX, "diagonal: axis 1 is given twice");
    refused(wg_diagonal(f32(3), 0, 0, 1), INDEX, "diagonal: axis 1");
    refused(wg_diag_embed(x, 0, 0, 3), INDEX, "diag_embed: axis 3");
    refused(wg_diag_embed(x, 0, 2, -1), INDEX, "given twice");
    refused(wg_diag_embed(wg_scalar(WG_F32, 1), 0, 0, 1), SHAPE, "diag_embed: () f32");
    refused(wg_diag_embed(deep, 0, 0, 1), SHAPE, "beyond 8");
    refused(wg_diag_embed(x, INT64_MIN, 0, 1), SHAPE, "diag_embed");
    refused(wg_unfold(x, 2, 1, 1), INDEX, "unfold: axis 2");
    refused(wg_unfold(x, 1, 4, 1), SHAPE, "unfold: (2, 3) f32: a window of 4 is larger");
    refused(wg_unfold(x, 1, 0, 1), ARGUMENT, "windows of 0 at steps of 1");
    refused(wg_unfold(x, 1, 2, 0), ARGUMENT, "windows of 2 at steps of 0");
    refused(wg_unfold(deep, 0, 1, 1), SHAPE, "rank 8 takes no further axis");
}

TEST(padding_refuses_what_an_axis_has_no_elements_for) {
    wg_tensor *x = f32(2, 3), *none = f32(0);
    const int64_t nine[18] = {0};
    refused(wg_pad(x, 1, (int64_t[]){0, 3}, WG_PAD_REFLECT, 0), SHAPE,
            "pad: (2, 3) f32: widths 0 and 3 at axis 1");
    refused(wg_pad(x, 1, (int64_t[]){4, 0}, WG_PAD_CIRCULAR, 0), SHAPE, "elements for 3");
    refused(wg_pad(x, 1, (int64_t[]){2, -1}, WG_PAD_REFLECT, 0), SHAPE, "elements for 1");
    refused(wg_pad(none, 1, (int64_t[]){1, 0}, WG_PAD_REPLICATE, 0), SHAPE, "for 0");
    refused(wg_pad(x, 1, (int64_t[]){-2, -2}, WG_PAD_CONSTANT, 0), SHAPE, "-2 and -2 crop more");
    refused(wg_pad(x, 1, (int64_t[]){INT64_MIN, 1}, WG_PAD_CONSTANT, 0), SHAPE, "crop");
    refused(wg_pad(x, 1, (int64_t[]){0, INT64_MAX}, WG_PAD_CONSTANT, 0), SHAPE, "memory");
    refused(wg_pad(x, 3, nine, WG_PAD_CONSTANT, 0), SHAPE, "widths for 3 axes");
    refused(wg_pad(x, 9, nine, WG_PAD_CONSTANT, 0), ARGUMENT, "pad: 9 axes");
    refused(wg_pad(x, 1, nine, (wg_pad_mode)7, 0), ARGUMENT, "mode 7");
}

TEST(taking_refuses_what_is_not_there) {
    wg_tensor *x = f32(3, 2), *index = i64(1, 2);
    refused(wg_take_along_axis(x, 2, index), INDEX, "take_along_axis: axis 2");
    refused(wg_take_along_axis(x, 0, x), DTYPE, "indices are i64 or i32, not f32");
    refused(wg_take_along_axis(x, 0, i64(2)), SHAPE,
            "take_along_axis: (3, 2) f32 x (2) i64: ranks");
    refused(wg_take_along_axis(x, 0, wg_zeros(WG_I32, WG_DIMS(1, 3))), SHAPE,
            "sizes 2 and 3 of axis 1");
    refused(wg_take_along_axis(x, 0, wg_full(WG_I32, WG_DIMS(1, 2), 3)), INDEX,
            "take_along_axis: (3, 2) f32 x (1, 2) i32: index 3");
    refused(wg_take_along_axis(x, 0, wg_full(WG_I64, WG_DIMS(1, 2), -4)), INDEX, "index -4");
    refused(wg_take(x, x), DTYPE, "take: (3, 2) f32 x (3, 2) f32: indices are");
    refused(wg_take(x, wg_full(WG_I64, WG_DIMS(2), 6)), INDEX, "index 6");
}

TEST(joining_refuses_what_does_not_fit) {
    wg_tensor *a = f32(2, 3), *b = f32(3, 3);
    refused(wg_cat(WG_TENSORS(a, b), 1), SHAPE, "cat: (2, 3) f32 x (3, 3) f32: operand 1");
    refused(wg_cat(WG_TENSORS(a, f32(2)), 0), SHAPE, "cat");
    refused(wg_cat(WG_TENSORS(a, b), 2), INDEX, "cat: axis 2");
    refused(wg_cat(WG_TENSORS(wg_scalar(WG_F32, 1)), 0), INDEX, "cat");
    refused(wg_cat(0, NULL, 0), SHAPE, "cat: 0 tensors");
    refused(wg_stack(WG_TENSORS(a, b), 0), SHAPE, "stack: (2, 3) f32 x (3, 3) f32");
    refused(wg_stack(WG_TENSORS(a, a), 3), INDEX, "stack: axis 3");
    refused(wg_stack(0, NULL, 0), SHAPE, "stack: 0 tensors");
    refused(wg_tril(f32(3), 0), SHAPE, "tril: (3) f32");
    refused(wg_triu(f32(3), 0), SHAPE, "triu: (3) f32");
}

TEST(dtypes_that_an_op_does_not_take_are_refused) {
    wg_tensor *truth = bools(2), *x = f32(2);
    wg_tensor *whole = i64(2);
    refused(wg_sub(truth, truth), DTYPE, "sub: (2) bool x (2) bool");
    refused(wg_neg(truth), DTYPE, "neg: (2) bool");
    refused(wg_where(x, x, x), DTYPE, "where: (2) f32 x (2) f32 x (2) f32: operand 0");
    refused(wg_masked_fill(x, whole, 0), DTYPE, "masked_fill");
    refused(wg_gather(x, 0, x), DTYPE,
            "gather: (2) f32 x (2) f32: indices are i64 or i32, not f32");
    refused(wg_index_select(x, 0, x), DTYPE, "index_select: (2) f32 x (2) f32");
    refused(wg_scatter_add(x, 0, truth, x), DTYPE, "scatter_add");
    refused(wg_scatter_add(truth, 0, whole, truth), DTYPE, "bool does not add up");
    refused(wg_embedding_op(f32(2, 2), x, -1), DTYPE, "embedding");
    refused(wg_one_hot(x, 3), DTYPE, "one_hot");
    refused(wg_cast(x, (wg_dtype)99), ARGUMENT, "cast: (2) f32: there is no dtype 99");
    refused(wg_clamp(x, 1, 0), ARGUMENT, "clamp: (2) f32: low 1 is above high 0");
    refused(wg_clamp(x, NAN, 0), ARGUMENT, "clamp");
}

TEST(numbers_that_a_function_does_not_take_are_refused) {
    wg_tensor *truth = bools(2), *x = f32(2);
    wg_tensor *whole = wg_full(WG_I32, WG_DIMS(2), 7), *byte = wg_full(WG_U8, WG_DIMS(2), 7);
    wg_tensor *none = wg_zeros(WG_I32, WG_DIMS(2));
    refused(wg_remainder(truth, truth), DTYPE, "remainder: (2) bool x (2) bool");
    refused(wg_fmod(truth, truth), DTYPE, "fmod: (2) bool x (2) bool");
    refused(wg_remainder(whole, none), ARGUMENT,
            "remainder: (2) i32 x (2) i32: an integer is divided by 0");
    refused(wg_fmod(byte, wg_zeros(WG_U8, WG_DIMS(1))), ARGUMENT, "fmod");
    refused(wg_fmod(wg_cast(whole, WG_I64), none), ARGUMENT, "fmod: (2) i64 x (2) i64");
    refused(wg_addcmul(truth, truth, truth, 1), DTYPE, "addcmul");
    refused(wg_addcmul(whole, whole, whole, 0.5), ARGUMENT,
            "addcmul: (2) i32 x (2) i32 x (2) i32: value 0.5");
    refused(wg_addcmul(whole, whole, whole, 3e9), ARGUMENT, "addcmul");
    refused(wg_addcmul(byte, byte, byte, -1), ARGUMENT, "addcmul");
    refused(wg_addcmul(whole, whole, whole, NAN), ARGUMENT, "addcmul");
    refused(wg_polygamma(-1, x), ARGUMENT, "polygamma: (2) f32: n is -1");
}

TEST(records_run_by_hand_check_their_dtypes_too) {
    wg_tensor *single = f32(2), *wide = wg_zeros(WG_F64, WG_DIMS(2));
    wg_tensor *whole = i64(2);
    refused(wg_apply_one(wg_op_find("add"), WG_TENSORS(single, wide), NULL), DTYPE,
            "add: (2) f32 x (2) f64: dtypes f32 and f64 differ");
    refused(wg_apply_one(wg_op_find("div"), WG_TENSORS(whole, whole), NULL), DTYPE,
            "takes a floating dtype, not i64");
    refused(wg_apply_one(wg_op_find("exp"), WG_TENSORS(whole), NULL), DTYPE, "exp");
    refused(wg_apply_one(wg_op_find("hypot"), WG_TENSORS(whole, whole), NULL), DTYPE, "hypot");
    refused(wg_apply_one(wg_op_find("square"), WG_TENSORS(bools(2)), NULL), DTYPE,
            "square: (2) bool: takes numbers");
    refused(wg_apply_one(wg_op_find("lerp"), WG_TENSORS(single, single, wide), NULL), DTYPE,
            "dtypes f32 and f64 differ");
    refused(wg_apply_one(wg_op_find("eq"), WG_TENSORS(whole, wide), NULL), DTYPE, "eq");
    refused(wg_apply_one(wg_op_find("logical_and"), WG_TENSORS(whole, whole), NULL), DTYPE,
            "takes bools");
}

TEST(indices_out_of_range_are_named) {
    wg_tensor *x = f32(3, 2);
    wg_tensor *five = wg_full(WG_I32, WG_DIMS(1, 2), 5), *minus = wg_full(WG_I64, WG_DIMS(1), -1);
    refused(wg_gather(x, 0, five), INDEX, "gather: (3, 2) f32 x (1, 2) i64: index 5");
    refused(wg_index_select(x, 1, minus), INDEX, "index_select: (3, 2) f32 x (1) i64: index -1");
    refused(wg_scatter_add(x, 0, five, f32(1, 2)), INDEX, "scatter_add");
    refused(wg_embedding_op(x, five, -1), INDEX, "embedding");
    refused(wg_one_hot(five, 5), INDEX, "one_hot: (1, 2) i64: index 5");
    refused(wg_one_hot(five, 0), ARGUMENT, "0 classes");
}

TEST(indices_of_a_wrong_shape_are_refused) {
    wg_tensor *x = f32(3, 2);
    refused(wg_gather(x, 0, i64(2)), SHAPE, "ranks 2 and 1 differ");
    refused(wg_gather(x, 0, i64(1, 3)), SHAPE, "size 3 of axis 1 of index is beyond that of x, 2");
    refused(wg_index_select(x, 0, i64(1, 1)), SHAPE, "index_select: (3, 2) f32 x (1, 1) i64");
    refused(wg_scatter_add(x, 0, i64(1, 2), x), SHAPE, "index and src must have one shape");
    refused(wg_embedding_op(f32(3), i64(3), -1), SHAPE, "embedding");
}

static wg_tensor *einsum_of(const char *equation, wg_tensor *x, wg_tensor *y) {
    wg_tensor *operands[] = {x, y};
    return wg_einsum(equation, y ? 2 : 1, operands);
}

TEST(an_equation_that_is_none_is_refused) {
    wg_tensor *x = f32(2, 3);
    refused(einsum_of("i1", x, NULL), ARGUMENT, "see character 2 of \"i1\"");
    refused(einsum_of("i..j", x, NULL), ARGUMENT, "character 2 of \"i..j\"");
    refused(einsum_of("ij- >ij", x, NULL), ARGUMENT, "character 3 of");
    refused(einsum_of("ij->i->j", x, NULL), ARGUMENT, "there is one result");
    refused(einsum_of("ij->i,j", x, NULL), ARGUMENT, "there is one result");
    refused(einsum_of("...i...", x, NULL), ARGUMENT, "at most one '...'");
    refused(einsum_of("i->i... ...", x, NULL), ARGUMENT, "at most one '...'");
    refused(einsum_of(NULL, x, NULL), ARGUMENT, "the equation is NULL");
    char longest[1000] = "";
    memset(longest, 'i', sizeof longest - 1);
    refused(einsum_of(longest, x, NULL), ARGUMENT, "longer than any");
}

TEST(an_equation_that_does_not_fit_its_operands_is_refused) {
    wg_tensor *x = f32(2, 3), *y = f32(4, 3);
    refused(einsum_of("ij,jk", x, NULL), ARGUMENT,
            "einsum: (2, 3) f32: the equation has terms for 2 operands");
    refused(einsum_of("ij", x, x), ARGUMENT, "terms for 1 operands, not 2");
    refused(einsum_of("i->i", x, NULL), SHAPE, "operand 0 has 2 axes, its term has 1 labels");
    refused(einsum_of("ij,ijk", x, y), SHAPE, "operand 1 has 2 axes, its term has 3");
    refused(einsum_of("...ijk", x, NULL), SHAPE, "operand 0 has 2 axes");
    refused(einsum_of("ij,jk->ik", x, y), SHAPE,
            "einsum: (2, 3) f32 x (4, 3) f32: 'j' stands for size 4 in operand 1");
    refused(einsum_of("...,...", x, y), SHAPE, "'...' stands for size 4 in operand 1");
    refused(einsum_of("ii->i", x, NULL), SHAPE, "'i' stands for sizes 2 and 3 in operand 0");
    refused(einsum_of("ii", f32(1, 3), NULL), SHAPE, "sizes 1 and 3");
    refused(einsum_of("ij->ik", x, NULL), ARGUMENT, "the result has 'k', which no operand has");
    refused(einsum_of("ij->ii", x, NULL), ARGUMENT, "the result has 'i' twice");
    refused(einsum_of("...j->j", x, NULL), ARGUMENT, "'...' stands for 1 axes");
    refused(einsum_of("abcde,fghij->abcdefghij", f32(1, 1, 1, 1, 1), f32(1, 1, 1, 1, 1)), SHAPE,
            "the result has 10 axes");
    wg_tensor *truth = bools(2, 2);
    refused(einsum_of("ij,jk", truth, truth), DTYPE, "bools do not add up");
    wg_tensor *eight = f32(2, 2, 2, 2, 2, 2, 2, 2);
    refused(wg_einsum("abcdefgh,ijcdeklm,nofghklm->abijno", WG_TENSORS(eight, eight, eight)), SHAPE,
            "in any order, a product on the way");
    refused(wg_einsum("i", 0, NULL), ARGUMENT, "einsum: 0 operands");
}

TEST(products_that_do_not_fit_are_refused) {
    wg_tensor *x = f32(2, 3), *v = f32(3);
    const int64_t first[] = {0, 0}, both[] = {0, 1}, beyond[] = {2};
    refused(wg_tensordot(x, x, 1, first, both + 1), SHAPE,
            "tensordot: (2, 3) f32 x (2, 3) f32: axis 0 of a has size 2, axis 1 of b has 3");
    refused(wg_tensordot(x, x, 2, first, both), INDEX, "tensordot: axis 0 is given twice");
    refused(wg_tensordot(x, x, 1, first, beyond), INDEX, "tensordot: axis 2");
    refused(wg_tensordot(x, x, 9, first, both), ARGUMENT, "9 pairs of axes");
    wg_tensor *five = f32(1, 1, 1, 1, 1);
    refused(wg_tensordot(five, five, 0, NULL, NULL), SHAPE, "the result has 10 axes");
    refused(wg_dot(x, v), SHAPE, "dot: (2, 3) f32 x (3) f32: wanted two vectors");
    refused(wg_dot(v, f32(1)), SHAPE, "sizes 3 and 1 differ");
    wg_tensor *truth = bools(2, 2), *whole = i64(2, 2);
    refused(wg_matmul(truth, truth), DTYPE, "bool is not multiplied");
    refused(wg_addmm(truth, truth, truth, 1, 1), DTYPE, "bool is not multiplied");
    refused(wg_addmm(whole, whole, whole, 1, 0.5), ARGUMENT,
            "factors of integers are whole numbers");
    refused(wg_addmm(v, x, x, 1, 1), SHAPE, "wanted C + A B of matrices");
    refused(wg_addmm(v, x, v, 1, 1), SHAPE, "addmm: (3) f32 x (2, 3) f32 x (3) f32");
    refused(wg_addmm(x, x, f32(3, 2), 1, 1), SHAPE, "C does not broadcast to (2, 2)");
    refused(wg_addmm(f32(1, 2, 2), x, f32(3, 2), 1, 1), SHAPE, "C does not broadcast");
}

TEST(the_largest_of_nothing_is_refused) {
    wg_tensor *x = f32(0, 3);
    refused(wg_max(x, WG_ALL, false), SHAPE, "max: (0, 3) f32: there are no elements");
    refused(wg_min(x, WG_DIMS(0), false), SHAPE, "min: (0, 3) f32");
    refused(wg_argmax(x, 0, false), SHAPE, "argmax: (0, 3) f32");
    ck_assert_int_eq(wg_tensor_count(wg_max(x, WG_DIMS(1), false)), 0);
    refused(wg_sum_to(x, WG_DIMS(2)), SHAPE, "sum_to: (0, 3) f32 to (2) f32");
    refused(wg_sum_to(x, WG_DIMS(1, 1, 3)), SHAPE, "sum_to");
}

TEST(reductions_and_scans_refuse_what_does_not_fit) {
    wg_tensor *x = f32(2, 3), *scalar = wg_scalar(WG_F32, 1), *out;
    refused(wg_std(x, WG_DIMS(2), 1, false), INDEX, "std: axis 2");
    refused(wg_prod(x, WG_DIMS(0, -2), false), INDEX, "prod: axis -2 is given twice");
    refused(wg_logsumexp(x, WG_DIMS(-3), false), INDEX, "logsumexp: axis -3");
    refused(wg_any(x, WG_DIMS(2), false), INDEX, "any: axis 2");
    refused(wg_all(x, WG_DIMS(2), false), INDEX, "all: axis 2");
    refused(wg_count_nonzero(x, WG_DIMS(2), false), INDEX, "count_nonzero: axis 2");
    refused(wg_argmin(x, -3, false), INDEX, "argmin: axis -3");
    refused(wg_argmin(f32(0), 0, false), SHAPE, "argmin: (0) f32: there are no elements");
    refused(wg_norm(x, 2, WG_DIMS(2), false), INDEX, "norm: axis 2");
    refused(wg_norm(x, NAN, WG_ALL, false), ARGUMENT, "norm: (2, 3) f32: p is NaN");
    refused(wg_norm(f32(2, 0), -INFINITY, WG_DIMS(1), false), SHAPE, "norm: (2, 0) f32");
    refused(wg_cumsum(x, 2), INDEX, "cumsum: axis 2");
    refused(wg_cumprod(scalar, 0), INDEX, "cumprod: axis 0");
    refused(wg_linear_scan(x, x, 2, NULL), INDEX, "linear_scan: axis 2");
    refused(wg_linear_scan(x, f32(2), 0, NULL), SHAPE,
            "linear_scan: (2, 3) f32 x (2) f32: sizes 3 and 2");
    refused(wg_linear_scan(x, x, 0, x), SHAPE, "linear_scan: the initial state is (2, 3) f32");
    refused(wg_logcumsumexp(x, -3), INDEX, "logcumsumexp: axis -3");
    refused(wg_quantile(x, wg_scalar(WG_F32, 1.5), 0, false, WG_QUANTILE_LINEAR), ARGUMENT,
            "quantile: (2, 3) f32 x () f32: q is 1.5; wanted 0 to 1");
    refused(wg_quantile(x, x, 0, false, WG_QUANTILE_LINEAR), SHAPE,
            "quantile: (2, 3) f32 x (2, 3) f32");
    refused(wg_histc(x, 0, 0, 1), ARGUMENT, "histc: (2, 3) f32: 0 bins");
    refused(wg_histc(x, 3, 1, 0), ARGUMENT, "histc: (2, 3) f32: the range is 1 to 0");
    refused(wg_histogram(x, wg_arange(WG_F32, 3, 0, -1), NULL, false), ARGUMENT, "edge 0 is 3");
    refused(wg_segment_reduce(x, wg_arange(WG_I64, 0, 2, 1), WG_SEGMENT_SUM, 0), INDEX,
            "segment_reduce: the offsets go from 0 to 1");
    refused(wg_unsorted_segment_reduce(x, wg_arange(WG_I64, 0, 2, 1), 1, WG_SEGMENT_MAX, 0), INDEX,
            "segment_max: (2, 3) f32 x (2) i64: index 1");
    refused(wg_cdist(x, x, -1), ARGUMENT, "cdist: (2, 3) f32 x (2, 3) f32: p is -1");
    refused(wg_cdist(x, f32(2, 2), 2), SHAPE, "wanted points with as many coordinates");
    refused(wg_grouped_mm(x, f32(1, 3, 4), wg_arange(WG_I64, 1, 3, 1)), INDEX,
            "grouped_mm: the offsets go from 1 to 2; wanted 0 to 2");
    ck_assert_int_eq(wg_cummax(x, 2, &out, NULL), -1);
    refused(out, INDEX, "cummax: axis 2");
    ck_assert_int_eq(wg_cummin(scalar, -1, NULL, &out), -1);
    refused(out, INDEX, "cummin: axis -1");
}

TEST(sorting_refuses_axes_and_counts_that_are_not_there) {
    wg_tensor *x = f32(2, 3), *values = x, *indices = x;
    ck_assert_int_eq(wg_sort(x, 2, false, &values, &indices), -1);
    ck_assert(values == NULL && indices == NULL);
    assert_error(WG_ERROR_INDEX, "sort: axis 2");
    refused(wg_argsort(wg_scalar(WG_F32, 1), 0, false), INDEX, "argsort: axis 0");
    failed(wg_topk(x, 4, 1, true, &values, &indices), ARGUMENT,
           "topk: (2, 3) f32: k is 4; wanted 0 to 3");
    failed(wg_topk(x, -1, 0, true, NULL, NULL), ARGUMENT, "k is -1");
    refused(wg_median(x, -3, false), INDEX, "median: axis -3");
    refused(wg_median(f32(2, 0), 1, false), SHAPE, "median: (2, 0) f32: there are no elements");
}

TEST(null_gives_null_and_leaves_the_first_error_alone) {
    wg_tensor *x = f32(2, 3), *y = f32(4);
    wg_tensor *lost = wg_add(x, y), *parts[2];
    wg_tensor *const results[] = {wg_add(lost, x),
                                  wg_div(x, lost),
                                  wg_exp(lost),
                                  wg_clamp(lost, 1, 0),
                                  wg_square(lost),
                                  wg_floor(lost),
                                  wg_isnan(lost),
                                  wg_nan_to_num(lost, 0, 0, 0),
                                  wg_polygamma(-1, lost),
                                  wg_hypot(x, lost),
                                  wg_fmod(lost, x),
                                  wg_lerp(x, y, lost),
                                  wg_addcmul(x, lost, y, 1),
                                  wg_addcdiv(lost, x, y, 1),
                                  wg_cast(lost, WG_F64),
                                  wg_contiguous(lost),
                                  wg_reshape(lost, WG_DIMS(3)),
                                  wg_slice(lost, 7, 0, 1, 0),
                                  wg_select(lost, 7, 0),
                                  wg_cat(WG_TENSORS(x, lost), 9),
                                  wg_stack(WG_TENSORS(lost, x), 9),
                                  wg_tril(lost, 0),
                                  wg_roll(lost, 2, (int64_t[]){1, 1}, NULL),
                                  wg_diagonal(lost, 0, 9, 9),
                                  wg_pad(lost, 9, NULL, WG_PAD_CONSTANT, 0),
                                  wg_take(x, lost),
                                  wg_where(lost, x, x),
                                  wg_masked_fill(x, lost, 0),
                                  wg_eq(lost, lost),
                                  wg_logical_not(lost),
                                  wg_sum(lost, WG_DIMS(9), false),
                                  wg_mean(lost, WG_ALL, false),
                                  wg_var(lost, WG_ALL, 0, false),
                                  wg_argmax(lost, 9, false),
                                  wg_norm(lost, NAN, WG_ALL, false),
                                  wg_logsumexp(lost, WG_DIMS(9), false),
                                  wg_cumsum(lost, 9),
                                  wg_linear_scan(x, lost, 9, NULL),
                                  wg_median(lost, 9, false),
                                  wg_sum_to(lost, WG_DIMS(1)),
                                  wg_gather(x, 0, lost),
                                  wg_index_select(lost, 0, lost),
                                  wg_scatter_add(x, 0, lost, x),
                                  wg_embedding_op(x, lost, -1),
                                  wg_one_hot(lost, 3),
                                  wg_einsum("ij,jk", WG_TENSORS(x, lost)),
                                  wg_tensordot(lost, x, 0, NULL, NULL),
                                  wg_outer(x, lost),
                                  wg_dot(lost, x)};
    const int statuses[] = {wg_split(lost, 0, 2, (int64_t[]){1, 1}, parts),
                            wg_meshgrid(1, &lost, parts),
                            wg_cummax(lost, 9, NULL, NULL),
                            wg_sort(lost, 9, false, NULL, NULL),
                            wg_topk(lost, 9, 9, false, NULL, NULL),
                            wg_unique(lost, NULL, NULL, NULL)};
    for (size_t i = 0; i < WG_COUNT(results); i++)
        ck_assert_msg(!results[i], "result %zu", i);
    for (size_t i = 0; i < WG_COUNT(statuses); i++)
        ck_assert_msg(statuses[i] == -1, "status %zu", i);
    assert_error(WG_ERROR_SHAPE, "add: (2, 3) f32 x (4) f32");
}

TEST(activations_refuse_what_they_are_not_defined_for) {
    wg_tensor *x = f32(2, 3);
    refused(wg_glu(x, f32(3)), SHAPE, "glu: (2, 3) f32 x (3) f32");
    refused(wg_reglu(f32(3, 2), x), SHAPE, "reglu");
    refused(wg_softplus(x, INFINITY, 20), ARGUMENT, "softplus: (2, 3) f32: beta inf");
    refused(wg_softplus(x, NAN, 20), ARGUMENT, "beta nan");
    refused(wg_softplus(x, 1, NAN), ARGUMENT, "threshold nan");
}

TEST(indices_of_several_axes_that_do_not_fit_are_refused) {
    wg_tensor *x = f32(3, 4), *mask = bools(3);
    wg_tensor *two = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){0, 1});
    wg_tensor *three = i64(3);
    refused(wg_index(x, WG_TENSORS(wg_scalar(WG_I64, 3))), INDEX,
            "index 3 is out of range of axis 0");
    refused(wg_index(x, WG_TENSORS(NULL, wg_scalar(WG_I64, -5))), INDEX,
            "index -5 is out of range of axis 1");
    refused(wg_index(x, WG_TENSORS(two, three)), SHAPE, "indices of (2) i64 and (3) i64");
    refused(wg_index(x, WG_TENSORS(two, two, two)), SHAPE, "more axes than x has");
    refused(wg_index(x, WG_TENSORS(NULL, mask)), SHAPE, "a mask has size 3 where axis 1");
    refused(wg_index(x, WG_TENSORS(wg_scalar(WG_BOOL, 1))), SHAPE, "a mask of rank 0");
    refused(wg_index(x, WG_TENSORS(x)), DTYPE, "indices are i64, i32 or bool, not f32");
    refused(wg_index(x, 7, (wg_tensor *[7]){NULL}), ARGUMENT, "7 indices; at most 6");
    refused(wg_index(x, WG_TENSORS(i64(1, 1, 1, 1, 1, 1, 1, 1))), SHAPE, "rank 9");
    refused(wg_index_put(x, 1, (wg_tensor *[]){NULL}, x, false), ARGUMENT, "no index is there");
    refused(wg_index_put(x, WG_TENSORS(two), f32(3), false), SHAPE, "size 3 of axis 0 is not 4");
    wg_fail(WG_ERROR_STATE, "test", "the first error");
    refused(wg_index(x, WG_TENSORS(NULL)), STATE, "the first error");
}

TEST(masks_and_sources_that_do_not_fit_are_refused) {
    wg_tensor *x = f32(3, 4), *mask = wg_ones(WG_BOOL, WG_DIMS(3, 1));
    refused(wg_masked_select(x, x), DTYPE, "a mask is bool, not f32");
    refused(wg_masked_select(x, bools(3)), SHAPE, "x and the mask do not broadcast");
    refused(wg_masked_scatter(f32(4), mask, x), SHAPE, "the mask must broadcast to x");
    refused(wg_masked_scatter(x, mask, f32(11)), SHAPE, "the source has 11 elements");
}

TEST(places_and_counts_that_make_no_sense_are_refused) {
    wg_tensor *x = f32(3, 4), *index = wg_full(WG_I64, WG_DIMS(3, 2), 4);
    refused(wg_scatter(x, 1, index, f32(3, 2)), INDEX, "index 4 is out of range; wanted 0 to 3");
    refused(wg_scatter(x, 1, index, x), SHAPE, "index and src must have one shape");
    refused(wg_scatter(x, 2, index, x), INDEX, "scatter: axis 2");
    wg_tensor *numbers = wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){2, -1});
    refused(wg_bincount(numbers, NULL, 0), INDEX, "-1 is negative");
    refused(wg_bincount(index, NULL, 0), SHAPE, "wanted x of rank 1");
    refused(wg_bincount(wg_abs(numbers), f32(3), 0), SHAPE, "x and its weights");
    refused(wg_bincount(wg_abs(numbers), NULL, -1), ARGUMENT, "min_length is negative");
    refused(wg_bincount(f32(2), NULL, 0), DTYPE, "indices are i64");
    refused(wg_searchsorted(wg_scalar(WG_F32, 1), x, false), SHAPE, "rank 1 or more");
    refused(wg_searchsorted(f32(2, 5), x, false), SHAPE, "all axes but the last");
    refused(wg_searchsorted(bools(2), bools(2), false), DTYPE, "bool is not searched");
}

TEST(cross_entropy_says_which_option_does_not_fit) {
    wg_tensor *x = f32(2, 3), *ids = i64(2);
    const wg_cross_entropy_options too_smooth = {.label_smoothing = 1.5},
                                   no_reduction = {.reduction = (wg_reduction)3},
                                   narrow = {.weight = f32(2)}, smooth = {.label_smoothing = 0.1};
    refused(wg_cross_entropy(x, ids, -100, &too_smooth), ARGUMENT,
            "cross_entropy: label_smoothing 1.5");
    refused(wg_cross_entropy(x, ids, -100, &no_reduction), ARGUMENT, "3 is none of wg_reduction");
    refused(wg_cross_entropy(x, ids, -100, &narrow), SHAPE,
            "cross_entropy: (2, 3) f32 x (2) i64 x (2) f32");
    refused(wg_cross_entropy(x, x, 0, NULL), ARGUMENT, "ignore_index 0 says nothing");
    refused(wg_cross_entropy(x, f32(2, 2), -100, NULL), SHAPE, "targets (N, V)");
    refused(wg_cross_entropy(i64(2, 3), ids, -100, NULL), DTYPE, "wanted f32 or f64");
    refused(wg_nll_loss(x, ids, -100, &smooth), ARGUMENT, "nll_loss: label_smoothing 0.1");
    refused(wg_nll_loss(x, wg_full(WG_I64, WG_DIMS(2), 3), -100, NULL), INDEX,
            "nll_loss: (2, 3) f32 x (2) i64: target 3 of row 0");
    refused(wg_nll_loss(ids, ids, -100, NULL), DTYPE, "wanted log probabilities");
}

TEST(losses_refuse_targets_and_weights_that_do_not_fit) {
    wg_tensor *x = f32(2, 3), *row = f32(3);
    wg_tensor *column = f32(2);
    const wg_reduction mean = WG_REDUCTION_MEAN;
    refused(wg_mse_loss(x, row, mean), SHAPE, "mse_loss: (2, 3) f32 x (3) f32");
    refused(wg_l1_loss(x, row, mean), SHAPE, "l1_loss");
    refused(wg_mse_loss(x, x, (wg_reduction)-1), ARGUMENT, "-1 is none of wg_reduction");
    refused(wg_smooth_l1_loss(x, x, -1, mean), ARGUMENT, "beta -1; wanted 0 or more");
    refused(wg_smooth_l1_loss(x, x, NAN, mean), ARGUMENT, "beta nan");
    refused(wg_kl_div(x, row, false, mean), SHAPE, "kl_div");
    refused(wg_bce_with_logits(x, row, NULL, NULL, mean), SHAPE, "bce_with_logits");
    refused(wg_bce_with_logits(x, x, column, NULL, mean), SHAPE, "weight does not broadcast");
    refused(wg_bce_with_logits(x, x, NULL, f32(1, 2, 3), mean), SHAPE,
            "pos_weight does not broadcast");
    refused(wg_cosine_similarity(x, column, 0, 1e-8), SHAPE, "cosine_similarity");
    refused(wg_cosine_similarity(x, x, 2, 1e-8), INDEX, "cosine_similarity: axis 2");
}

TEST(convolutions_refuse_what_does_not_fit) {
    wg_tensor *x = f32(2, 4, 5, 6), *w = f32(6, 4, 3, 3);
    refused(wg_conv_op(x, f32(6, 3, 3, 3), NULL, NULL), SHAPE,
            "conv2d: (2, 4, 5, 6) f32 x (6, 3, 3, 3) f32: x has 4 channels");
    refused(wg_conv_op(x, w, f32(4), NULL), SHAPE, "wanted a bias of 6");
    refused(wg_conv_op(x, f32(6, 4, 3), NULL, NULL), SHAPE,
            "conv1d: (2, 4, 5, 6) f32 x (6, 4, 3) f32");
    refused(wg_conv_op(x, f32(6, 4), NULL, NULL), SHAPE, "conv: the weight is (6, 4) f32");
    refused(wg_conv_op(x, f32(6, 4, 3, 3, 3), NULL, NULL), SHAPE,
            "conv3d: (1, 2, 4, 5, 6) f32 x (6, 4, 3, 3, 3) f32: x has 2 channels");
    refused(wg_conv_op(x, f32(6, 4, 3, 7), NULL, NULL), SHAPE,
            "does not fit into spatial axis 1, of size 6");
    refused(wg_conv_op(x, w, NULL, CONV(.dilation = {3, 1}, .padding = {0, 4})), SHAPE,
            "a kernel of 3, which reaches over 7 places");
    refused(wg_conv_op(x, f32(6, 4, 0, 3), NULL, NULL), SHAPE, "a kernel of 0");
    refused(wg_conv_op(x, f32(5, 2, 3, 3), NULL, CONV(.groups = 2)), SHAPE,
            "2 groups do not divide 5 output channels");
    refused(wg_conv_op(x, w, NULL, CONV(.groups = -1)), ARGUMENT, "groups is -1");
    refused(wg_conv_op(x, w, NULL, CONV(.stride = {1, -2})), ARGUMENT,
            "stride -2, padding 0 and dilation 1 of spatial axis 1");
    refused(wg_conv_op(x, w, NULL, CONV(.padding = {-1})), ARGUMENT, "padding -1");
    refused(wg_conv_op(x, w, NULL, CONV(.padding = {INT64_MAX, 1})), ARGUMENT,
            "padding 9223372036854775807");
    refused(wg_conv_op(x, w, NULL, CONV(.padding = {INT32_MAX, INT32_MAX})), SHAPE,
            "beyond all memory");
    refused(wg_conv_op(x, w, NULL, CONV(.stride = {2, 1}, .same_padding = true)), ARGUMENT,
            "same_padding goes with a stride of 1");
    refused(wg_conv_op(i64(1, 1, 3, 3), i64(1, 1, 2, 2), NULL, NULL), DTYPE, "conv2d");
    refused(wg_conv_op(x, w, NULL, CONV(.stride = {1 << 30, INT32_MAX}, .padding = {0, INT32_MAX})),
            SHAPE, "beyond all memory");
}

TEST(transposed_convolutions_refuse_what_does_not_fit) {
    wg_tensor *x = f32(2, 4, 5), *w = f32(4, 3, 2);
    refused(wg_conv_transpose_op(x, f32(3, 4, 2), NULL, NULL), SHAPE,
            "conv_transpose1d: (2, 4, 5) f32 x (3, 4, 2) f32: x has 4 channels");
    refused(wg_conv_transpose_op(x, w, f32(4), NULL), SHAPE, "wanted a bias of 3");
    refused(wg_conv_transpose_op(x, w, NULL, CONV(.padding = {3})), SHAPE,
            "nothing is left of spatial axis 0");
    refused(wg_conv_transpose_op(x, w, NULL, CONV(.groups = 3)), SHAPE,
            "3 groups do not divide 4 channels");
    refused(wg_conv_transpose_op(x, w, NULL, CONV(.output_padding = {1})), ARGUMENT,
            "output_padding is 1 along spatial axis 0");
    refused(wg_conv_transpose_op(x, w, NULL, CONV(.output_padding = {-1})), ARGUMENT,
            "output_padding is -1");
}

TEST(pooling_refuses_what_does_not_fit) {
    wg_tensor *x = f32(2, 4, 5, 6);
    refused(wg_max_pool(x, NULL, NULL), ARGUMENT, "max_pool: there is no kernel");
    refused(wg_max_pool(x, POOL(.kernel = {0, 2}), NULL), ARGUMENT,
            "max_pool2d: (2, 4, 5, 6) f32: kernel 0, stride 0 and dilation 1 of spatial axis 0");
    refused(wg_avg_pool(x, POOL(.kernel = {2, 2}, .padding = {0, 2})), ARGUMENT,
            "avg_pool2d: (2, 4, 5, 6) f32: padding 2 along spatial axis 1");
    refused(wg_avg_pool(x, POOL(.kernel = {6, 1})), SHAPE, "spatial axis 0, of size 5");
    refused(wg_max_pool(x,
                        POOL(.kernel = {INT64_MAX, INT64_MAX}, .dilation = {INT64_MAX, INT64_MAX}),
                        NULL),
            ARGUMENT, "max_pool2d: (2, 4, 5, 6) f32: kernel 9223372036854775807");
    refused(wg_max_pool(x, POOL(.kernel = {2}), NULL), SHAPE,
            "max_pool1d: (2, 4, 5, 6) f32: wanted (N, C, L)");
    refused(wg_max_pool(x, POOL(.kernel = {2, 2}, .stride = {-1, 1}), NULL), ARGUMENT, "stride -1");
    refused(wg_adaptive_avg_pool(x, 2, (int64_t[]){3, 0}), SHAPE,
            "spatial axis 1, of size 6, has no window");
    refused(wg_avg_pool(i64(1, 4, 4), POOL(.kernel = {2, 2})), DTYPE, "avg_pool2d");
}

TEST(options_of_another_op_are_refused) {
    wg_tensor *x = f32(1, 2, 5), *w = f32(2, 2, 3);
    refused(wg_conv_op(x, w, NULL, CONV(.output_padding = {1})), ARGUMENT,
            "conv1d: output_padding goes with a transposed convolution");
    refused(wg_conv_transpose_op(x, w, NULL, CONV(.same_padding = true)), ARGUMENT,
            "conv_transpose1d: same_padding");
    refused(wg_avg_pool(x, POOL(.kernel = {2}, .dilation = {2})), ARGUMENT,
            "avg_pool1d: dilation goes with max_pool1d");
    refused(wg_max_pool(x, POOL(.kernel = {2}, .divisor_override = 2), NULL), ARGUMENT,
            "max_pool1d: exclude_padding and divisor_override");
}

TEST(interpolation_refuses_what_does_not_fit) {
    wg_tensor *x = f32(2, 4, 5, 6);
    refused(wg_interpolate(x, WG_DIMS(3), WG_INTERPOLATE_LINEAR, false), SHAPE,
            "interpolate: (2, 4, 5, 6) f32");
    refused(wg_interpolate(x, WG_DIMS(3, 0), WG_INTERPOLATE_LINEAR, false), SHAPE,
            "spatial axis 1 goes from size 6 to 0");
    refused(wg_interpolate(x, WG_DIMS(3, 3), WG_INTERPOLATE_NEAREST, true), ARGUMENT,
            "align_corners goes with WG_INTERPOLATE_LINEAR");
    refused(wg_interpolate(x, WG_DIMS(3, 3), (wg_interpolation)7, false), ARGUMENT, "mode 7");
    refused(wg_interpolate(x, WG_DIMS(1, 1, 1, 1), WG_INTERPOLATE_LINEAR, false), ARGUMENT,
            "interpolate: 4 sizes");
    refused(wg_interpolate(i64(1, 1, 2), WG_DIMS(3), WG_INTERPOLATE_NEAREST, false), DTYPE,
            "wanted floats");
}
