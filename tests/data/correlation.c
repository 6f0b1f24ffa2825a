/* Correlations of numbers. The wanted values are those of Python's statistics.correlation, for
 * Spearman's of the ranks that stand beside them, as scipy.stats.rankdata gives them. */
#include <math.h>

#include "data/score/score.h"
#include "tests/support/testing.h"

static const double x[] = {1, 2, 2, 3, 5, 5, 5, 8}, /* ranks 1 2.5 2.5 4 6 6 6 8 */
    y[] = {2.5, 0, 1, 1, 4, -1, 4, 9};              /* ranks 5 2 3.5 3.5 6.5 1 6.5 8 */

static double spearman(int64_t count, const double *left, const double *right) {
    double correlation = 2;
    ck_assert_int_eq(wg__spearman(count, left, right, &correlation), 0);
    return correlation;
}

TEST(pearson_is_that_of_python) {
    ck_assert_double_eq_tol(wg__pearson(8, x, y), 0.691515737345648, 1e-14);
}

TEST(equal_numbers_share_the_mean_of_their_ranks) {
    ck_assert_double_eq_tol(spearman(8, x, y), 0.4659194020035246, 1e-14);
}

TEST(spearman_sees_only_the_order) {
    static const double rising[] = {-2, -1, 0, 1}, cubed[] = {-8, -1, 0, 1},
                        falling[] = {9, 3, 2, 1};
    ck_assert_double_eq_tol(spearman(4, rising, cubed), 1, 1e-15);
    ck_assert_double_eq_tol(spearman(4, rising, falling), -1, 1e-15);
}

TEST(a_list_of_one_value_has_no_correlation) {
    static const double same[] = {3, 3, 3, 3};
    ck_assert(wg__pearson(4, x, same) == 0);
    ck_assert(spearman(4, x, same) == 0);
    ck_assert(spearman(1, x, y) == 0);
}
