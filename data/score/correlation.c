/* Correlations of two lists of numbers: see score.h. */
#include <math.h>
#include <stdlib.h>

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

/* A number and where it stands in its list. */
typedef struct placed {
    double value;
    int64_t place;
} placed;

static int compare(const void *a, const void *b) {
    const double left = ((const placed *)a)->value, right = ((const placed *)b)->value;
    return (left > right) - (left < right);
}

/* Fills ranks from 1; equal numbers share the mean of theirs. */
static void rank(int64_t count, const double *values, placed *sorted, double *ranks) {
    for (int64_t i = 0; i < count; i++)
        sorted[i] = (placed){values[i], i};
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    for (int64_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && sorted[end].value == sorted[first].value; end++)
            ;
        for (int64_t i = first; i < end; i++)
            ranks[sorted[i].place] = (double)(first + 1 + end) / 2;
    }
}

int wg__spearman(int64_t count, const double *x, const double *y, double *correlation) {
    placed *sorted = wg__alloc_array(count, sizeof *sorted);
    double *ranks = wg__alloc_array(wg__times(count, 2), sizeof *ranks);
    if (sorted && ranks) {
        rank(count, x, sorted, ranks);
        rank(count, y, sorted, ranks + count);
        *correlation = wg__pearson(count, ranks, ranks + count);
    }
    const int status = sorted && ranks ? 0 : -1;
    wg__free(sorted);
    wg__free(ranks);
    return status;
}
