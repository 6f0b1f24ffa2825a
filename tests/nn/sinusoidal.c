/* Sinusoidal positions against the formula of the paper (tests/fixtures/sinusoidal.py). */
#include "nn/positions.h"
#include "tests/support/testing.h"
#include "nn/internal.h"

/* The angles go up to 39, and the two sides compute the power in different ways. */
static const double rounding = 1e-14;

START_TEST(the_table_is_that_of_the_paper) {
    assert_close(wg__sinusoidal_table(WG_F64, 12, 0, 40, NULL), fixture_tensor("sinusoidal/even"),
                 0, rounding);
}
END_TEST

START_TEST(an_odd_width_ends_with_a_sine) {
    assert_close(wg__sinusoidal_table(WG_F64, 7, 0, 9, NULL), fixture_tensor("sinusoidal/odd"), 0,
                 rounding);
}
END_TEST

START_TEST(another_base_gives_other_wavelengths) {
    assert_close(wg__sinusoidal_table(WG_F64, 8, 0, 9, &(wg_sinusoidal_options){.base = 100}),
                 fixture_tensor("sinusoidal/base"), 0, rounding);
}
END_TEST

START_TEST(a_later_part_of_the_table_is_the_same_as_in_the_whole) {
    wg_tensor *whole = fixture_tensor("sinusoidal/even");
    assert_close(wg__sinusoidal_table(WG_F64, 12, 31, 5, NULL), wg_slice(whole, 0, 31, 36, 1), 0,
                 rounding);
}
END_TEST

START_TEST(other_dtypes_are_rounded_once) {
    wg_tensor *exact = fixture_tensor("sinusoidal/even");
    wg_tensor *table = wg__sinusoidal_table(WG_F32, 12, 0, 40, NULL);
    ck_assert_int_eq(wg_tensor_dtype(table), WG_F32);
    assert_close(wg_cast(table, WG_F64), exact, 6e-8, 1e-15);
}
END_TEST

START_TEST(what_has_no_table_is_refused) {
    ck_assert_ptr_null(wg__sinusoidal_table(WG_F32, 0, 0, 4, NULL));
    assert_error(WG_ERROR_ARGUMENT, "width is 0");
    ck_assert_ptr_null(wg__sinusoidal_table(WG_F32, 8, -1, 4, NULL));
    assert_error(WG_ERROR_ARGUMENT, "position -1 is negative");
    ck_assert_ptr_null(wg__sinusoidal_table(WG_I64, 8, 0, 4, NULL));
    assert_error(WG_ERROR_DTYPE, "i64; wanted a floating dtype");
    ck_assert_ptr_null(wg__sinusoidal_table(WG_F32, 8, 0, 4, &(wg_sinusoidal_options){.base = -2}));
    assert_error(WG_ERROR_ARGUMENT, "base -2");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        the_table_is_that_of_the_paper,       an_odd_width_ends_with_a_sine,
        another_base_gives_other_wavelengths, a_later_part_of_the_table_is_the_same_as_in_the_whole,
        other_dtypes_are_rounded_once,        what_has_no_table_is_refused,
    };
    add_suite("sinusoidal", tests);
}
