/* Views: which ops share their operand's memory, and what strides make possible. */
#include "tensor/ops.h"
#include "tests/support/tensors.h"
#include "tensor/internal.h"

static wg_tensor *count_up(int ndim, const int64_t *shape) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    return wg_reshape(wg_arange(WG_F32, 0, (double)count, 1), ndim, shape);
}

TEST(a_reshape_of_contiguous_memory_shares_it) {
    wg_tensor *x = count_up(WG_DIMS(2, 3, 4));
    ck_assert(wg__tensor_shares_storage(x, wg_reshape(x, WG_DIMS(6, -1))));
    ck_assert(wg__tensor_shares_storage(x, wg_reshape(x, WG_DIMS(24))));
    ck_assert(wg__tensor_shares_storage(x, wg_reshape(x, WG_DIMS(2, 1, 12, 1))));
}

TEST(a_reshape_shares_strided_memory_where_strides_allow) {
    wg_tensor *x = wg_transpose(count_up(WG_DIMS(2, 3, 4)), 0, 1); /* (3, 2, 4), strides 4, 12, 1 */
    ck_assert(wg__tensor_shares_storage(x, wg_reshape(x, WG_DIMS(3, 2, 2, 2))));
    ck_assert(wg__tensor_shares_storage(x, wg_reshape(x, WG_DIMS(1, 3, 1, 2, 4))));
    wg_tensor *every_second = wg_slice(count_up(WG_DIMS(4, 6)), 1, 0, WG_END, 2);
    ck_assert(wg__tensor_shares_storage(every_second, wg_reshape(every_second, WG_DIMS(12))));
    wg_tensor *backwards = wg_slice(count_up(WG_DIMS(12)), 0, WG_END, WG_END, -1);
    ck_assert(wg__tensor_shares_storage(backwards, wg_reshape(backwards, WG_DIMS(3, 4))));
    wg_tensor *repeated = wg_expand(wg_scalar(WG_F32, 1), WG_DIMS(4, 3));
    ck_assert(wg__tensor_shares_storage(repeated, wg_reshape(repeated, WG_DIMS(2, 6))));
}

TEST(a_reshape_copies_where_no_strides_fit) {
    wg_tensor *x = wg_transpose(count_up(WG_DIMS(2, 3)), 0, 1);
    wg_tensor *y = wg_reshape(x, WG_DIMS(6));
    ck_assert(!wg__tensor_shares_storage(x, y));
    assert_close(y, wg_from_array(WG_F32, WG_DIMS(6), (float[]){0, 3, 1, 4, 2, 5}), 0, 0);
}

TEST(permuting_expanding_slicing_and_selecting_share_memory) {
    wg_tensor *x = count_up(WG_DIMS(2, 3, 1));
    ck_assert(wg__tensor_shares_storage(x, wg_permute(x, WG_DIMS(2, 0, 1))));
    ck_assert(wg__tensor_shares_storage(x, wg_transpose(x, 0, -1)));
    ck_assert(wg__tensor_shares_storage(x, wg_expand(x, WG_DIMS(5, 2, 3, 4))));
    ck_assert(wg__tensor_shares_storage(x, wg_slice(x, 1, 2, WG_END, -2)));
    ck_assert(wg__tensor_shares_storage(x, wg_select(x, 0, -1)));
    ck_assert(wg__tensor_shares_storage(x, wg_squeeze(x, -1)));
    ck_assert(wg__tensor_shares_storage(x, wg_unsqueeze(wg_transpose(x, 0, 1), 1)));
}

TEST(a_view_sees_what_is_written_to_its_base) {
    wg_tensor *x = count_up(WG_DIMS(2, 3));
    wg_tensor *row = wg_select(wg_transpose(x, 0, 1), 1, 1);
    wg_fill_(x, 7);
    assert_close(row, wg_full(WG_F32, WG_DIMS(3), 7), 0, 0);
    ck_assert_int_eq(wg__tensor_version(row), wg__tensor_version(x));
}

TEST(contiguous_aliases_and_clone_copies) {
    wg_tensor *x = count_up(WG_DIMS(2, 3));
    wg_tensor *turned = wg_transpose(x, 0, 1);
    ck_assert(wg__tensor_shares_storage(x, wg_contiguous(x)));
    ck_assert(!wg__tensor_shares_storage(x, wg_clone(x)));
    ck_assert(!wg__tensor_shares_storage(turned, wg_contiguous(turned)));
    ck_assert(wg_tensor_is_contiguous(wg_contiguous(turned)));
    ck_assert(wg_tensor_is_contiguous(wg_clone(turned)));
    ck_assert(wg__tensor_shares_storage(x, wg_cast(x, WG_F32)));
    ck_assert(!wg__tensor_shares_storage(x, wg_cast(x, WG_F64)));
}

TEST(a_split_gives_views_of_the_sizes_asked_for) {
    wg_tensor *x = count_up(WG_DIMS(2, 5));
    wg_tensor *parts[3];
    ck_assert_int_eq(wg_split(x, -1, 3, (int64_t[]){2, 0, 3}, parts), 0);
    assert_close(parts[0], wg_from_array(WG_F32, WG_DIMS(2, 2), (float[]){0, 1, 5, 6}), 0, 0);
    ck_assert_int_eq(wg_tensor_count(parts[1]), 0);
    assert_close(parts[2], wg_from_array(WG_F32, WG_DIMS(2, 3), (float[]){2, 3, 4, 7, 8, 9}), 0, 0);
    for (int i = 0; i < 3; i++)
        ck_assert(wg__tensor_shares_storage(x, parts[i]));
}

TEST(chunks_are_equal_but_for_the_last) {
    wg_tensor *x = count_up(WG_DIMS(7));
    wg_tensor *parts[5];
    const int64_t sizes[] = {3, 3, 1};
    ck_assert_int_eq(wg_chunk(x, 0, 3, parts), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(wg_tensor_count(parts[i]), sizes[i]);
    ck_assert_int_eq((int)wg_item(parts[2]), 6);
    ck_assert_int_eq(wg_chunk(x, 0, 5, parts), 0); /* of 2: the last is empty */
    ck_assert_int_eq(wg_tensor_count(parts[3]), 1);
    ck_assert_int_eq(wg_tensor_count(parts[4]), 0);
}

TEST(a_failed_split_leaves_no_parts) {
    wg_tensor *x = count_up(WG_DIMS(2, 5));
    wg_tensor *parts[2] = {x, x};
    failed(wg_split(x, 1, 2, (int64_t[]){2, 2}, parts), SHAPE,
           "split: (2, 5) f32: the sizes of the parts must sum to 5");
    ck_assert(!parts[0] && !parts[1]);
    failed(wg_split(x, 1, 2, (int64_t[]){6, -1}, parts), SHAPE, "split");
    failed(wg_split(x, 2, 2, (int64_t[]){2, 2}, parts), INDEX, "split: axis 2");
    failed(wg_chunk(x, 1, 0, NULL), ARGUMENT, "chunk: 0 parts");
    ck_assert_int_eq(wg_chunk(NULL, 1, 2, parts), -1);
    assert_no_error();
}

TEST(a_slice_may_start_and_stop_anywhere) {
    wg_tensor *x = count_up(WG_DIMS(4));
    wg_tensor *nothing = wg_zeros(WG_F32, WG_DIMS(0));
    const int64_t least = INT64_MIN, most = INT64_MAX;
    assert_close(wg_slice(x, 0, least, most, 1), x, 0, 0);
    assert_close(wg_slice(x, 0, most, least, 1), nothing, 0, 0);
    assert_close(wg_slice(x, 0, 1, most, most), wg_ones(WG_F32, WG_DIMS(1)), 0, 0);
    assert_close(wg_slice(x, 0, 1, most, least), wg_ones(WG_F32, WG_DIMS(1)), 0, 0);
    assert_close(wg_slice(x, 0, most, least, -3),
                 wg_from_array(WG_F32, WG_DIMS(2), (float[]){3, 0}), 0, 0);
    assert_close(wg_slice(nothing, 0, most, most, -1), nothing, 0, 0);
}

TEST(what_a_call_makes_in_passing_goes_with_it) {
    wg_tensor *x = count_up(WG_DIMS(2, 3)), *whole = wg_cast(x, WG_I32);
    wg_tensor *index = wg_zeros(WG_I32, WG_DIMS(2)), *spread = wg_zeros(WG_I32, WG_DIMS(2, 1));
    wg_tensor *src = wg_zeros(WG_F64, WG_DIMS(2, 1));
    int64_t alive = wg_tensors_alive();
    wg_tensor *const results[] = {
        wg_add(x, whole),
        wg_div(whole, whole),
        wg_lt(whole, x),
        wg_logical_xor(x, whole),
        wg_logical_not(x),
        wg_exp(whole),
        wg_clamp(whole, 0, 1),
        wg_pow_scalar(whole, 2),
        wg_where(wg_logical_not(whole), x, whole), /* and its condition */
        wg_select(x, 0, 1),
        wg_stack(WG_TENSORS(x, whole), 0),
        wg_cat(WG_TENSORS(x, whole), 0),
        wg_tril(x, 0),
        wg_mean(whole, WG_ALL, false),
        wg_var(whole, WG_ALL, 0, false),
        wg_sum_to(x, WG_DIMS(1, 3)),
        wg_gather(x, 1, spread),
        wg_index_select(x, 1, index),
        wg_scatter_add(x, 1, spread, src),
        wg_embedding_op(x, index, -1),
        wg_one_hot(index, 2),
    };
    assert_no_error();
    ck_assert_int_eq(wg_tensors_alive() - alive, WG_COUNT(results) + 1);
}

/* x and the copy hold the same element at every index. */
static void assert_copied(const wg_tensor *copy, const wg_tensor *x) {
    const int64_t *shape = wg_tensor_shape(x);
    int64_t index[WG_MAX_DIMS] = {0};
    ck_assert(wg_tensor_is_contiguous(copy) && !wg__tensor_shares_storage(copy, x));
    for (int64_t i = 0, count = wg_tensor_count(x); i < count; i++) {
        ck_assert_double_eq(wg_at(copy, index), wg_at(x, index));
        for (int d = wg_tensor_ndim(x) - 1; d >= 0 && ++index[d] == shape[d]; d--)
            index[d] = 0;
    }
}

/* Sizes around those of tiles, and axes shorter than a tile. */
TEST(large_tensors_are_copied_from_any_order_of_axes) {
    static const int64_t shapes[][4] = {{1, 1, 64, 16}, {1, 1, 65, 33},  {1, 1, 4, 700},
                                        {1, 1, 700, 3}, {1, 5, 17, 130}, {2, 20, 9, 6},
                                        {3, 1, 128, 8}, {1, 8, 4, 300}};
    static const int64_t orders[][4] = {{0, 1, 3, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                        {0, 2, 3, 1}, {1, 3, 0, 2}, {0, 1, 2, 3}};
    static const wg_dtype of_size[] = {WG_U8, WG_BF16, WG_F32, WG_F64};
    for (size_t s = 0; s < WG_COUNT(shapes); s++)
        for (size_t o = 0; o < WG_COUNT(orders); o++)
            for (int size = 0; size < 4; size++)
                IN_SCOPE() {
                    wg_generator generator = {.seed = 7};
                    wg_tensor *x =
                        wg_cast(wg_randint(&generator, 0, 200, 4, shapes[s]), of_size[size]);
                    wg_tensor *turned = wg_permute(x, 4, orders[o]);
                    assert_copied(wg_clone(turned), turned);
                    wg_tensor *part = wg_slice(wg_slice(turned, 2, 1, WG_END, 1), 3, 0, WG_END, 2);
                    assert_copied(wg_clone(part), part);
                    wg_tensor *place = wg_permute(wg_empty_like(x), 4, orders[o]);
                    wg_tensor *base = wg_clone(turned);
                    wg_copy_(place, base);
                    assert_close(place, turned, 0, 0);
                }
}

TEST(a_large_expanded_transpose_is_copied) {
    wg_tensor *x = wg_transpose(count_up(WG_DIMS(40, 30)), 0, 1);
    wg_tensor *repeated = wg_expand(wg_unsqueeze(x, 1), WG_DIMS(2, 30, 3, 40));
    assert_copied(wg_clone(repeated), repeated);
    wg_tensor *windows = wg_unfold(wg_transpose(x, 0, 1), 1, 20, 1);
    assert_copied(wg_clone(windows), windows);
}
