/* Tensors without ops: creation, elements, scopes, errors, in-place writes, memory. */
#include "tensor/tensor.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

/* ---- dtypes ---- */

TEST(dtypes_have_names_and_sizes) {
    const char *const names[] = {"f32", "f64", "bf16", "i32", "i64", "u8", "bool"};
    const size_t sizes[] = {4, 8, 2, 4, 8, 1, 1};
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        ck_assert_str_eq(wg_dtype_name(dtype), names[dtype]);
        ck_assert_uint_eq(wg_dtype_size(dtype), sizes[dtype]);
        ck_assert_int_eq(wg_dtype_is_float(dtype), dtype <= WG_BF16);
    }
    ck_assert_str_eq(wg_dtype_name(WG_DTYPE_COUNT), "?");
    ck_assert_str_eq(wg_dtype_name((wg_dtype)-1), "?");
    ck_assert_uint_eq(wg_dtype_size((wg_dtype)99), 0);
}

TEST(dtypes_promote_to_the_higher) {
    const wg_dtype order[] = {WG_BOOL, WG_U8, WG_I32, WG_I64, WG_BF16, WG_F32, WG_F64};
    for (size_t i = 0; i < WG_COUNT(order); i++)
        for (size_t j = 0; j < WG_COUNT(order); j++)
            ck_assert_int_eq(wg__dtype_promote(order[i], order[j]), order[i > j ? i : j]);
}

/* ---- Creation ---- */

TEST(a_new_tensor_is_what_was_asked_for) {
    wg_tensor *x = wg_empty(WG_I32, WG_DIMS(2, 3, 4));
    ck_assert_int_eq(wg_tensor_dtype(x), WG_I32);
    ck_assert_int_eq(wg_tensor_ndim(x), 3);
    ck_assert_int_eq(wg_tensor_count(x), 24);
    const int64_t shape[] = {2, 3, 4}, strides[] = {12, 4, 1};
    ck_assert_mem_eq(wg_tensor_shape(x), shape, sizeof(shape));
    ck_assert_mem_eq(wg_tensor_strides(x), strides, sizeof(strides));
    ck_assert_int_eq(wg_tensor_size(x, 1), 3);
    ck_assert_int_eq(wg_tensor_size(x, -1), 4);
    ck_assert(wg_tensor_is_contiguous(x));
    ck_assert_uint_eq((uintptr_t)wg_tensor_data(x) % 64, 0);
}

TEST(values_fill_every_dtype) {
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        wg_tensor *const tensors[] = {
            wg_zeros(dtype, WG_DIMS(2, 2)),     wg_ones(dtype, WG_DIMS(2, 2)),
            wg_full(dtype, WG_DIMS(2, 2), 3),   wg_scalar(dtype, 2),
            wg_zeros_like(wg_scalar(dtype, 2)), wg_ones_like(wg_scalar(dtype, 5)),
            wg_empty_like(wg_scalar(dtype, 2))};
        const double values[] = {0, 1, dtype == WG_BOOL ? 1 : 3, dtype == WG_BOOL ? 1 : 2, 0, 1};
        for (int i = 0; i < 6; i++) {
            int64_t index[2] = {1, 1};
            ck_assert_int_eq(wg_tensor_dtype(tensors[i]), dtype);
            ck_assert_double_eq(wg_at(tensors[i], wg_tensor_ndim(tensors[i]) ? index : NULL),
                                values[i]);
        }
        ck_assert_int_eq(wg_tensor_ndim(tensors[6]), 0);
    }
}

TEST(fill_values_clamp_to_the_range_of_integers) {
    ck_assert_double_eq(wg_item(wg_scalar(WG_U8, 300)), 255);
    ck_assert_double_eq(wg_item(wg_scalar(WG_U8, -3)), 0);
    ck_assert_double_eq(wg_item(wg_scalar(WG_I32, 1e300)), INT32_MAX);
    ck_assert_double_eq(wg_item(wg_scalar(WG_I32, -INFINITY)), INT32_MIN);
    ck_assert_double_eq(wg_item(wg_scalar(WG_I64, -2.9)), -2);
    ck_assert_double_eq(wg_item(wg_scalar(WG_I64, NAN)), 0);
    ck_assert_double_eq(wg_item(wg_scalar(WG_BOOL, 0.25)), 1);
}

TEST(arrays_are_copied_in_and_out) {
    const int64_t values[] = {INT64_MAX, -2, 3, INT64_MIN, 5, 6};
    int64_t out[6];
    wg_tensor *x = wg_from_array(WG_I64, WG_DIMS(2, 3), values);
    ck_assert_int_eq(wg_to_array(x, out), 0);
    ck_assert_mem_eq(out, values, sizeof(values));
    ck_assert_int_eq(wg_to_array(wg_transpose(x, 0, 1), out), 0);
    const int64_t turned[] = {INT64_MAX, INT64_MIN, -2, 5, 3, 6};
    ck_assert_mem_eq(out, turned, sizeof(turned));
    ck_assert_int_eq(wg_to_array(NULL, out), -1);
}

TEST(an_array_of_nothing_may_be_null) {
    ck_assert_int_eq(wg_tensor_count(wg_from_array(WG_F32, WG_DIMS(2, 0), NULL)), 0);
    refused(wg_from_array(WG_F32, WG_DIMS(2, 1), NULL), ARGUMENT, "from_array");
}

TEST(arange_counts_up_and_down) {
    assert_close(wg_arange(WG_I64, 2, 8, 3), wg_from_array(WG_I64, WG_DIMS(2), (int64_t[]){2, 5}),
                 0, 0);
    assert_close(wg_arange(WG_F64, 1, 0, -0.25), numbers(1, 0.75, 0.5, 0.25), 0, 0);
    ck_assert_int_eq(wg_tensor_count(wg_arange(WG_F32, 0, 1, 0.1)), 10);
    ck_assert_int_eq(wg_tensor_count(wg_arange(WG_F32, 3, 3, 1)), 0);
}

TEST(arange_refuses_steps_that_lead_nowhere) {
    const double ranges[][3] = {{0, 1, 0},   {0, 0, 0},        {0, 5, -1},   {5, 0, 1},
                                {0, NAN, 1}, {0, INFINITY, 1}, {0, 1e300, 1}};
    for (size_t i = 0; i < WG_COUNT(ranges); i++) {
        refused(wg_arange(WG_F64, ranges[i][0], ranges[i][1], ranges[i][2]), ARGUMENT, "arange");
    }
}

TEST(impossible_shapes_are_refused) {
    refused(wg_zeros(WG_F32, WG_DIMS(2, -1)), SHAPE, "negative");
    refused(wg_zeros(WG_F32, WG_DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1)), SHAPE, "9 dimensions");
    refused(wg_zeros(WG_F64, WG_DIMS((int64_t)1 << 31, (int64_t)1 << 31)), SHAPE, "2^62");
    refused(wg_zeros(WG_F64, WG_DIMS(0, INT64_MAX, INT64_MAX)), SHAPE, "2^62");
    refused(wg_zeros(WG_F32, 2, NULL), ARGUMENT, "NULL");
    refused(wg_zeros(WG_F32, -1, NULL), SHAPE, "dimensions");
    refused(wg_zeros((wg_dtype)99, WG_DIMS(2)), ARGUMENT, "no dtype");
    const wg_spec wraps = {WG_F32, 2, {(int64_t)1 << 62, 4}}, negative = {WG_F32, 1, {-1}};
    refused(wg__tensor_new(&wraps), SHAPE, "2^62");
    refused(wg__tensor_make(&wraps, true), SHAPE, "2^62");
    refused(wg__tensor_new(&negative), SHAPE, "negative");
}

TEST(more_memory_than_there_is_is_an_error) {
    refused(wg_empty(WG_F64, WG_DIMS((int64_t)1 << 58)), MEMORY, "no memory");
}

TEST(eight_dimensions_work) {
    wg_tensor *x = wg_arange(WG_F32, 0, 256, 1);
    x = wg_reshape(x, WG_DIMS(2, 2, 2, 2, 2, 2, 2, 2));
    ck_assert_double_eq(wg_at(x, (int64_t[]){1, 0, 1, 0, 1, 0, 1, 0}), 0xaa);
    wg_tensor *sum = wg_add(x, wg_permute(x, WG_DIMS(7, 6, 5, 4, 3, 2, 1, 0)));
    ck_assert_double_eq(wg_at(sum, (int64_t[]){1, 0, 1, 0, 1, 0, 1, 0}), 0xaa + 0x55);
}

/* ---- Elements ---- */

TEST(elements_are_found_by_their_index) {
    wg_tensor *x = wg_reshape(wg_arange(WG_F32, 0, 6, 1), WG_DIMS(2, 3));
    ck_assert_double_eq(wg_at(x, (int64_t[]){1, 0}), 3);
    ck_assert_double_eq(wg_at(x, (int64_t[]){-1, -1}), 5);
    ck_assert_double_eq(wg_at(wg_transpose(x, 0, 1), (int64_t[]){2, 0}), 2);
    ck_assert(isnan(wg_at(x, (int64_t[]){0, 3})));
    assert_error(WG_ERROR_INDEX, "index 3");
    ck_assert(isnan(wg_at(x, (int64_t[]){-3, 0})));
    assert_error(WG_ERROR_INDEX, "index -3");
}

TEST(item_wants_one_element) {
    ck_assert_double_eq(wg_item(wg_full(WG_F64, WG_DIMS(1, 1), 2.5)), 2.5);
    ck_assert(isnan(wg_item(wg_zeros(WG_F64, WG_DIMS(2)))));
    assert_error(WG_ERROR_SHAPE, "2 elements");
    ck_assert(isnan(wg_item(wg_zeros(WG_F64, WG_DIMS(0)))));
    assert_error(WG_ERROR_SHAPE, "0 elements");
}

TEST(a_size_that_is_not_there_is_an_error) {
    failed(wg_tensor_size(wg_zeros(WG_F32, WG_DIMS(2)), 1), INDEX, "axis 1");
    failed(wg_tensor_size(wg_scalar(WG_F32, 2), 0), INDEX, "axis 0");
}

TEST(null_is_answered_quietly) {
    ck_assert_int_eq(wg_tensor_ndim(NULL), 0);
    ck_assert_ptr_null(wg_tensor_shape(NULL));
    ck_assert_ptr_null(wg_tensor_strides(NULL));
    ck_assert_ptr_null(wg_tensor_data(NULL));
    ck_assert_int_eq(wg_tensor_count(NULL), 0);
    ck_assert(!wg_tensor_is_contiguous(NULL) && !wg__tensor_shares_storage(NULL, NULL));
    ck_assert(isnan(wg_item(NULL)) && isnan(wg_at(NULL, NULL)));
    ck_assert(!wg_zeros_like(NULL) && !wg_ones_like(NULL) && !wg_empty_like(NULL));
    ck_assert(!wg_alias(NULL) && !wg_keep(NULL) && !wg_scope_escape(NULL));
    ck_assert(wg_fill_(NULL, 1) < 0 && wg_copy_(NULL, NULL) < 0 && wg_scale_(NULL, 1) < 0);
    ck_assert(wg_add_(NULL, NULL, 1) < 0);
    wg_tensor_touch(NULL);
    wg_release(NULL);
}

TEST(specs_are_told_in_messages) {
    char text[64];
    wg_spec spec = {WG_F32, 2, {2, 3}};
    ck_assert_str_eq(wg_spec_text(text, sizeof(text), &spec), "(2, 3) f32");
    spec.ndim = 0;
    ck_assert_str_eq(wg_spec_text(text, sizeof(text), &spec), "() f32");
    spec.ndim = 1;
    ck_assert_str_eq(wg_spec_text(text, 6, &spec), "(2) f");
}

/* ---- Writing in place ---- */

TEST(copies_broadcast_and_cast) {
    wg_tensor *x = wg_zeros(WG_I32, WG_DIMS(2, 3));
    uint64_t version = wg__tensor_version(x);
    ck_assert_int_eq(wg_copy_(x, numbers(1.5, -2.5, 3)), 0);
    assert_close(x, wg_from_array(WG_I32, WG_DIMS(2, 3), (int32_t[]){1, -2, 3, 1, -2, 3}), 0, 0);
    ck_assert_uint_gt(wg__tensor_version(x), version);
    failed(wg_copy_(x, wg_zeros(WG_I32, WG_DIMS(2))), SHAPE,
           "(2) i32 does not broadcast to (2, 3) i32");
}

/* Windows of a line, each element repeated, and rows apart; of every size of an element. */
TEST(short_rows_are_copied_element_by_element) {
    enum { ROWS = 3000, LONGEST = 66 };
    const wg_dtype dtypes[] = {WG_U8, WG_BF16, WG_F32, WG_F64};
    double *got = malloc(sizeof *got * ROWS * LONGEST);
    for (size_t d = 0; d < WG_COUNT(dtypes); d++)
        for (int64_t n = 1; n <= LONGEST; n += n < 18 ? 1 : 15)
            IN_SCOPE() {
                wg_tensor *line =
                    wg_remainder(wg_arange(WG_F64, 0, ROWS + LONGEST, 1), wg_scalar(WG_F64, 101));
                line = wg_cast(line, dtypes[d]);
                wg_tensor *windows = wg_slice(wg_unfold(line, 0, n, 1), 0, 0, ROWS, 1);
                wg_tensor *repeats = wg_expand(
                    wg_reshape(wg_slice(line, 0, 0, ROWS, 1), WG_DIMS(ROWS, 1)), WG_DIMS(ROWS, n));
                wg_tensor *apart = wg_zeros(dtypes[d], WG_DIMS(ROWS, n + 1));
                ck_assert_int_eq(wg_copy_(wg_slice(apart, 1, 0, n, 1), windows), 0);
                wg_tensor *const all[] = {wg_clone(windows), wg_clone(repeats),
                                          wg_slice(apart, 1, 0, n, 1)};
                for (int k = 0; k < 3; k++) {
                    ck_assert_int_eq(wg_to_array(wg_cast(all[k], WG_F64), got), 0);
                    for (int64_t i = 0; i < ROWS; i++)
                        for (int64_t j = 0; j < n; j++)
                            ck_assert(got[i * n + j] == (double)((k == 1 ? i : i + j) % 101));
                }
                ck_assert_double_eq(wg_item(wg_sum(wg_slice(apart, 1, n, n + 1, 1), WG_ALL, false)),
                                    0);
            }
    free(got);
}

TEST(writes_go_through_views) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2, 4));
    wg_tensor *part = wg_slice(wg_transpose(x, 0, 1), 0, WG_END, WG_END, -2); /* columns 3, 1 */
    wg_copy_(part, wg_reshape(wg_arange(WG_F32, 1, 5, 1), WG_DIMS(2, 2)));
    assert_close(x, wg_from_array(WG_F32, WG_DIMS(2, 4), (float[]){0, 3, 0, 1, 0, 4, 0, 2}), 0, 0);
    ck_assert_uint_eq(wg__tensor_version(x), wg__tensor_version(part));
    wg_fill_(wg_select(x, 1, 0), 9);
    assert_close(x, wg_from_array(WG_F32, WG_DIMS(2, 4), (float[]){9, 3, 0, 1, 9, 4, 0, 2}), 0, 0);
}

TEST(sums_and_scales_are_written_in_place) {
    const wg_dtype dtypes[] = {WG_F32, WG_F64, WG_BF16};
    for (size_t i = 0; i < WG_COUNT(dtypes); i++) {
        wg_tensor *x = wg_cast(wg_arange(WG_F64, 0, 5, 1), dtypes[i]);
        wg_tensor *y = wg_slice(wg_cast(wg_arange(WG_F64, 0, 10, 1), dtypes[i]), 0, 0, WG_END, 2);
        ck_assert_int_eq(wg_add_(x, y, 2), 0); /* i + 2 (2 i) */
        ck_assert_int_eq(wg_scale_(x, 0.5), 0);
        assert_close(wg_cast(x, WG_F64), wg_arange(WG_F64, 0, 12.5, 2.5), 0, 0);
    }
    wg_tensor *n = wg_ones(WG_I64, WG_DIMS(2));
    ck_assert_int_eq(wg_add_(n, n, 3), 0);
    ck_assert_double_eq(wg_at(n, (int64_t[]){1}), 4);
}

TEST(writes_that_do_not_fit_are_refused) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2, 3));
    failed(wg_add_(x, wg_zeros(WG_F32, WG_DIMS(3)), 1), SHAPE, "(2, 3) f32 += (3) f32");
    failed(wg_add_(x, wg_zeros(WG_F64, WG_DIMS(2, 3)), 1), DTYPE, "f64");
    failed(wg_scale_(wg_zeros(WG_I32, WG_DIMS(2)), 2), DTYPE, "i32");
}

TEST(touching_counts_as_a_write) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2)), *view = wg_alias(x);
    uint64_t version = wg__tensor_version(x);
    wg_tensor_touch(view);
    ck_assert_uint_eq(wg__tensor_version(x), version + 1);
}

/* ---- Scopes ---- */

TEST(a_scope_frees_what_it_owns) {
    wg_tensor *outer = wg_zeros(WG_F32, WG_DIMS(2));
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < 10; i++)
        wg_ones(WG_F32, WG_DIMS(3));
    ck_assert_int_eq(wg_tensors_alive(), 11);
    ck_assert_ptr_null(wg_scope_end(&scope, NULL));
    ck_assert_int_eq(wg_tensors_alive(), 1);
    ck_assert_double_eq(wg_at(outer, (int64_t[]){1}), 0);
}

TEST(the_result_of_a_scope_moves_one_out) {
    wg_scope outer, inner;
    wg_scope_begin(&outer);
    wg_scope_begin(&inner);
    wg_ones(WG_F32, WG_DIMS(2));
    wg_tensor *x = wg_full(WG_F32, WG_DIMS(2), 7);
    ck_assert_ptr_eq(wg_scope_end(&inner, x), x);
    ck_assert_int_eq(wg_tensors_alive(), 1);
    ck_assert_double_eq(wg_at(x, (int64_t[]){0}), 7);
    wg_scope_end(&outer, NULL);
    ck_assert_int_eq(wg_tensors_alive(), 0);
}

TEST(a_result_that_others_own_stays_theirs) {
    wg_tensor *outer = wg_scalar(WG_F32, 1), *kept = wg_keep(wg_scalar(WG_F32, 2));
    wg_scope scope;
    wg_scope_begin(&scope);
    ck_assert_ptr_eq(wg_scope_end(&scope, outer), outer);
    wg_scope_begin(&scope);
    ck_assert_ptr_eq(wg_scope_end(&scope, kept), kept);
    ck_assert_int_eq(wg_scope_clear_root(), 1);
    ck_assert_double_eq(wg_item(kept), 2);
    wg_release(kept);
}

TEST(several_results_escape) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *a = wg_scope_escape(wg_scalar(WG_F32, 1));
    wg_tensor *b = wg_scope_escape(wg_scalar(WG_F32, 2));
    wg_scalar(WG_F32, 3);
    ck_assert_ptr_eq(wg_scope_escape(a),
                     a); /* it has left the scope already, and stays where it is */
    wg_scope_end(&scope, NULL);
    ck_assert_int_eq(wg_tensors_alive(), 2);
    ck_assert_double_eq(wg_item(a) + wg_item(b), 3);
}

TEST(a_kept_tensor_lives_until_it_is_released) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = wg_keep(wg_scalar(WG_F32, 4));
    ck_assert_ptr_eq(wg_keep(x), x);
    wg_scope_end(&scope, NULL);
    ck_assert_double_eq(wg_item(x), 4);
    ck_assert_int_eq(wg_tensors_alive(), 1);
    wg_release(x);
    ck_assert_int_eq(wg_tensors_alive(), 0);
}

TEST(releasing_a_tensor_of_a_scope_takes_it_out) {
    wg_tensor *x = wg_scalar(WG_F32, 1);
    wg_scalar(WG_F32, 2);
    wg_release(x);
    ck_assert_int_eq(wg_scope_clear_root(), 1);
}

TEST(a_view_outlives_its_base) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *base = wg_arange(WG_F32, 0, 10, 1);
    wg_tensor *view = wg_scope_end(&scope, wg_slice(base, 0, 2, 8, 3));
    assert_close(view, wg_from_array(WG_F32, WG_DIMS(2), (float[]){2, 5}), 0, 0);
}

static void *leave_tensors_in_the_root_scope(void *kept) {
    wg_zeros(WG_F32, WG_DIMS(100));
    IN_SCOPE() {
        *(wg_tensor **)kept = wg_keep(wg_scalar(WG_F32, 5));
    }
    return NULL;
}

/* ---- Memory of a caller's ---- */

static void count_release(void *context) {
    ++*(int *)context;
}

TEST(a_blob_is_shared_until_its_last_user_is_gone) {
    float numbers[] = {1, 2, 3, 4, 5, 6};
    int released = 0;
    wg_scope outer, inner;
    wg_scope_begin(&outer);
    wg_scope_begin(&inner);
    wg_tensor *x = wg_from_blob(WG_F32, WG_DIMS(2, 3), NULL, numbers, count_release, &released);
    ck_assert_ptr_eq(wg_tensor_data(x), numbers);
    ck_assert_int_eq(wg_fill_(wg_select(x, 0, 1), 9), 0);
    ck_assert_float_eq(numbers[4], 9);
    numbers[0] = 7;
    ck_assert_double_eq(wg_item(wg_sum(x, WG_ALL, false)), 7 + 2 + 3 + 3 * 9);
    wg_tensor *row = wg_scope_end(&inner, wg_select(x, 0, 0));
    ck_assert_int_eq(released, 0);
    ck_assert_double_eq(wg_at(row, (int64_t[]){2}), 3);
    wg_scope_end(&outer, NULL);
    ck_assert_int_eq(released, 1);
}

TEST(a_blob_has_the_strides_that_are_given) {
    double numbers[] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[] = {2, 3, 2}, strides[] = {-3, 1, 0};
    wg_tensor *x = wg_from_blob(WG_F64, 3, shape, strides, numbers + 3, NULL, NULL);
    double found[12];
    const double expected[] = {3, 3, 4, 4, 5, 5, 0, 0, 1, 1, 2, 2};
    ck_assert_int_eq(wg_to_array(x, found), 0);
    ck_assert_mem_eq(found, expected, sizeof expected);
}

/* Backward reuses the memory of a saved tensor that nobody else can see; here the caller can. */
TEST(backward_leaves_the_memory_of_a_blob_alone) {
    float numbers[] = {-1, 2, -3, 4}, expected[] = {-1, 2, -3, 4};
    wg_scope scope, inner;
    wg_scope_begin(&scope);
    wg_tensor *w = leaf_of(wg_ones(WG_F32, WG_DIMS(4)));
    wg_scope_begin(&inner);
    wg_tensor *x = leaf_of(wg_from_blob(WG_F32, WG_DIMS(4), NULL, numbers, NULL, NULL));
    wg_tensor *y = wg_sum(wg_exp(wg_tanh(wg_mul(x, w))), WG_ALL, false);
    y = wg_scope_end(&inner, y);
    ck_assert_int_eq(wg_backward(y, NULL), 0);
    ck_assert_mem_eq(numbers, expected, sizeof expected);
    ck_assert_double_ne(wg_at(wg_gradient(w), (int64_t[]){0}), 0);
    wg_scope_end(&scope, NULL);
}

TEST(a_blob_that_cannot_be_is_refused_and_not_released) {
    char bytes[64];
    int released = 0;
    const int64_t negative[] = {-1};
    refused(wg_from_blob(WG_F32, 1, negative, NULL, bytes, count_release, &released), SHAPE,
            "negative");
    refused(wg_from_blob(WG_F32, WG_DIMS(2), NULL, NULL, count_release, &released), ARGUMENT,
            "NULL");
    char *odd = bytes + ((uintptr_t)bytes % 4 == 1 ? 1 : 1 + (4 - (uintptr_t)bytes % 4) % 4);
    refused(wg_from_blob(WG_F32, WG_DIMS(2), NULL, odd, count_release, &released), ARGUMENT,
            "multiple of 4");
    ck_assert_int_eq(released, 0);
}

TEST(a_thread_frees_its_root_scope_at_its_end) {
    pthread_t thread;
    wg_tensor *kept = NULL;
    ck_assert_int_eq(pthread_create(&thread, NULL, leave_tensors_in_the_root_scope, &kept), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(wg_tensors_alive(), 1);
    ck_assert_double_eq(wg_item(kept), 5);
    wg_release(kept); /* a thread other than its own */
}

/* ---- Errors ---- */

TEST(the_first_error_stays) {
    ck_assert_int_eq(wg_fail(WG_ERROR_SHAPE, "first", "%d is wrong", 1), -1);
    ck_assert_int_eq(wg_fail(WG_ERROR_DTYPE, "second", "%d is wrong", 2), -1);
    const wg_error *error = wg_error_pending();
    ck_assert_int_eq(error->code, WG_ERROR_SHAPE);
    ck_assert_str_eq(error->where, "first");
    ck_assert_str_eq(error->message, "first: 1 is wrong");
    wg_error_clear();
    ck_assert_ptr_null(wg_error_pending());
}

TEST(a_long_message_is_cut) {
    char text[3000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    wg_fail(WG_ERROR_IO, text, "%s", text);
    ck_assert_uint_lt(strlen(wg_error_pending()->message), sizeof(wg_error_pending()->message));
    wg_error_clear();
}

TEST(codes_have_names) {
    ck_assert_str_eq(wg_error_name(WG_ERROR_NONE), "NONE");
#define CHECK_NAME(name, meaning) ck_assert_str_eq(wg_error_name(WG_ERROR_##name), #name);
    WG_ERROR_CODES(CHECK_NAME)
    ck_assert_ptr_nonnull(wg_error_name((wg_error_code)99));
}

static void count_errors(const wg_error *error, void *context) {
    ck_assert_ptr_eq(error, wg_error_pending());
    ++*(int *)context;
}

TEST(a_handler_is_told_of_each_error_that_becomes_pending) {
    int count = 0;
    wg_error_set_handler(count_errors, &count);
    wg_fail(WG_ERROR_SHAPE, "test", "one");
    wg_fail(WG_ERROR_SHAPE, "test", "hidden by the first");
    wg_error_clear();
    wg_fail(WG_ERROR_SHAPE, "test", "two");
    wg_error_clear();
    wg_error_set_handler(NULL, NULL);
    wg_fail(WG_ERROR_SHAPE, "test", "unheard");
    wg_error_clear();
    ck_assert_int_eq(count, 2);
}

static void *fail_alone(void *unused) {
    ck_assert_ptr_null(wg_error_pending());
    wg_fail(WG_ERROR_STATE, "thread", "an error of its own");
    return unused;
}

TEST(errors_belong_to_their_thread) {
    pthread_t thread;
    wg_fail(WG_ERROR_SHAPE, "test", "ours");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_alone, NULL), 0);
    pthread_join(thread, NULL);
    assert_error(WG_ERROR_SHAPE, "ours");
}

/* ---- Threads ---- */

TEST(the_number_of_threads_can_be_set) {
    int before = wg_threads();
    ck_assert_int_ge(before, 1);
    ck_assert_int_eq(wg_set_threads(3), 0);
    ck_assert_int_eq(wg_threads(), 3);
    failed(wg_set_threads(0), ARGUMENT, "set_threads");
    ck_assert_int_eq(wg_threads(), 3);
    wg_set_threads(before);
}
