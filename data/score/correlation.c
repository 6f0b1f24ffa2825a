/* Correlations of two lists of numbers: see score.h. */
#include <math.h>

#include "base/array.h"
#include "base/internal.h"
#include "data/score/score.h"

double wg__pearson(int64_t count, const double *x, const double *y) {
    double mean_x = 0, mean_y = 0, xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < count; i++) {
        mean_x += x[i] / (double)count;
        mean_y += y[i] / (double)count;
    }
    for (int64_t i = 0; i < count; i++) {
        const double a = x[i] - mean_x, b = y[i] - mean_y;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xx > 0 && yy > 0 ? xy / (sqrt(xx) * sqrt(yy)) : 0;
}

/* Fills ranks: the largest number has rank 1, and equal numbers share the mean of their ranks.
 * [MEMORY] */
static int rank(int64_t count, const double *values, double *ranks) {
    int64_t *order = wg__sorted_indices(0, count, wg__largest_first, values);
    for (int64_t first = 0, end; order && first < count; first = end) {
        for (end = first + 1; end < count && values[order[end]] == values[order[first]]; end++)
            ;
        for (int64_t i = first; i < end; i++)
            ranks[order[i]] = (double)(first + 1 + end) / 2;
    }
    const int status = order ? 0 : -1;
    wg__free(order);
    return status;
}

int wg__spearman(int64_t count, const double *x, const double *y, double *correlation) {
    double *ranks = wg__alloc_array(wg__times(count, 2), sizeof *ranks);
    const int status =
        ranks && rank(count, x, ranks) == 0 && rank(count, y, ranks + count) == 0 ? 0 : -1;
    if (status == 0)
        *correlation = wg__pearson(count, ranks, ranks + count);
    wg__free(ranks);
    return status;
}
