/* Batches over the rows of tensors. */
#include "data/batches/batches.h"

#include "autograd/autograd.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { ROWS = 10, BATCH = 4 };

/* Row i of the images is 10 i, 10 i + 1; its label is i. */
static wg_batches *make(uint64_t seed) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *images = wg_arange(WG_F32, 0, 10 * ROWS, 1);
    images = wg_slice(wg_reshape(images, WG_DIMS(ROWS, 10)), 1, 0, 2, 1); /* a strided view */
    wg_tensor *labels = wg_arange(WG_I64, 0, ROWS, 1);
    wg_batches *batches = wg_tensor_batches_new(
        WG_TENSORS(images, labels), &(wg_batches_options){.batch = BATCH, .seed = seed});
    wg_scope_end(&scope, NULL); /* the handles are gone, the rows are not */
    return batches;
}

TEST(an_epoch_has_every_row_once_and_rows_stay_together) {
    wg_batches *batches = owned(make(3));
    ck_assert_int_eq(wg__batches_examples(batches), ROWS);
    int seen[ROWS] = {0}, in_place = 0;
    for (int64_t at = 0; at < ROWS;) {
        wg_tensor *batch[2];
        ck_assert_int_eq(wg__batches_advance(batches, true, batch), 0);
        ck_assert_int_eq(wg_tensor_ndim(batch[0]), 2);
        ck_assert_int_eq(wg_tensor_size(batch[0], 1), 2);
        for (int64_t row = 0; row < wg_tensor_size(batch[1], 0); row++, at++) {
            const int label = (int)wg_at(batch[1], (int64_t[]){row});
            ck_assert_double_eq(wg_at(batch[0], (int64_t[]){row, 1}), 10 * label + 1);
            seen[label]++;
            in_place += label == at;
        }
    }
    for (int i = 0; i < ROWS; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert_int_lt(in_place, ROWS); /* shuffled */
}

TEST(batches_go_on_from_a_position_with_the_same_rows) {
    wg_batches *whole = make(5), *resumed = make(6);
    wg_tensor *batch[2], *again[2];
    for (int i = 0; i < 4; i++) /* into the second epoch */
        wg_batches_next(whole, batch);
    const wg_data_position position = wg__batches_position(whole);
    ck_assert_int_eq(position.epoch, 1);
    ck_assert_int_eq(wg__batches_seek(resumed, &position), 0);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(wg_batches_next(whole, batch), 0);
        ck_assert_int_eq(wg_batches_next(resumed, again), 0);
        assert_close(batch[0], again[0], 0, 0);
        assert_close(batch[1], again[1], 0, 0);
    }
    wg_batches_free(whole);
    wg_batches_free(resumed);
}

TEST(batches_want_no_gradient_of_the_rows) {
    wg_tensor *x = wg_ones(WG_F32, WG_DIMS(4, 2)), *batch[1];
    wg_set_requires_grad(x, true);
    wg_batches *batches = owned(wg_tensor_batches_new(WG_TENSORS(x), NULL));
    ck_assert_int_eq(wg_batches_next(batches, batch), 0);
    ck_assert(!wg_requires_grad(batch[0]));
    ck_assert_int_eq(wg_tensor_size(batch[0], 0), 32); /* several epochs */
}

TEST(tensors_that_do_not_belong_together_are_refused) {
    wg_tensor *a = wg_zeros(WG_F32, WG_DIMS(4, 2)), *b = wg_zeros(WG_I64, WG_DIMS(5));
    assert_fails(wg_tensor_batches_new(WG_TENSORS(a, b), NULL), WG_ERROR_SHAPE,
                 "tensor 1 has 5 rows, and tensor 0 has 4");
    assert_fails(wg_tensor_batches_new(WG_TENSORS(wg_scalar(WG_F32, 1)), NULL), WG_ERROR_SHAPE,
                 "no rows");
    assert_fails(wg_tensor_batches_new(WG_TENSORS(wg_zeros(WG_F32, WG_DIMS(0, 2))), NULL),
                 WG_ERROR_ARGUMENT, "no example");
    assert_fails(wg_tensor_batches_new(0, NULL, NULL), WG_ERROR_ARGUMENT, "0 tensors");
    assert_fails(wg_tensor_batches_new(WG_TENSORS(a, NULL), NULL), WG_ERROR_ARGUMENT,
                 "tensor 1 is NULL");
}

TEST(a_fingerprint_tells_dtype_shape_and_elements_apart) {
    wg_tensor *a = wg_arange(WG_F32, 0, 6, 1), *b = wg_arange(WG_F32, 0, 6, 1);
    wg_tensor *grid = wg_reshape(a, WG_DIMS(2, 3));
    const int64_t one = wg_tensors_fingerprint(WG_TENSORS(a));
    ck_assert_int_ne(one, 0);
    ck_assert_int_eq(one, wg_tensors_fingerprint(WG_TENSORS(b)));
    ck_assert_int_ne(one, wg_tensors_fingerprint(WG_TENSORS(grid)));
    ck_assert_int_ne(one, wg_tensors_fingerprint(WG_TENSORS(wg_cast(a, WG_I32))));
    ck_assert_int_ne(one, wg_tensors_fingerprint(WG_TENSORS(a, b)));
    wg_fill_(wg_slice(b, 0, 5, 6, 1), 7);
    ck_assert_int_ne(one, wg_tensors_fingerprint(WG_TENSORS(b)));
}
