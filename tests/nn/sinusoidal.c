/* Sinusoidal positions against the formula of the paper (tests/fixtures/sinusoidal.py). */
#include "nn/positions.h"
#include "tests/support/testing.h"
#include "nn/internal.h"

/* Even and odd widths, another base, a later part. The angles go up to 39, and the two sides
 * compute the power in different ways. */
START_TEST(tables_are_those_of_the_paper) {
    static const struct {
        const char *name;
        int64_t width, first, count;
        wg_sinusoidal_options options;
    } cases[] = {{"even", 12, 0, 40, {0}},
                 {"even", 12, 31, 5, {0}},
                 {"odd", 7, 0, 9, {0}},
                 {"base", 8, 0, 9, {.base = 100}}};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const int64_t first = cases[i].first, count = cases[i].count;
        wg_tensor *whole = fixture_tensor("sinusoidal/%s", cases[i].name);
        assert_close(wg__sinusoidal_table(WG_F64, cases[i].width, first, count, &cases[i].options),
                     wg_slice(whole, 0, first, first + count, 1), 0, 1e-14);
    }
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
    assert_fails(wg__sinusoidal_table(WG_F32, 0, 0, 4, NULL), WG_ERROR_ARGUMENT, "width is 0");
    assert_fails(wg__sinusoidal_table(WG_F32, 8, -1, 4, NULL), WG_ERROR_ARGUMENT,
                 "position -1 is negative");
    assert_fails(wg__sinusoidal_table(WG_I64, 8, 0, 4, NULL), WG_ERROR_DTYPE,
                 "i64; wanted a floating dtype");
    assert_fails(wg__sinusoidal_table(WG_F32, 8, 0, 4, &(wg_sinusoidal_options){.base = -2}),
                 WG_ERROR_ARGUMENT, "base -2");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        tables_are_those_of_the_paper,
        other_dtypes_are_rounded_once,
        what_has_no_table_is_refused,
    };
    add_suite("sinusoidal", tests);
}
