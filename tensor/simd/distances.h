/* Distances of a point a from many points b, and their gradients.
 *
 * Distances: a lane is a point of b. Coordinate c of all points is contiguous,
 *
 *     b_row 0:  b0[0]  b1[0]  b2[0] ...        coordinate 0 of all
 *     b_row 1:  b0[1]  b1[1]  b2[1] ...
 *
 * so that nothing is summed across lanes. Gradients: a lane is a coordinate. */

enum { DISTANCE_VECTORS = 4 }; /* that stay in registers */

/* Adds the difference of a coordinate to the sum, or updates the maximum with it. */
WG__ALWAYS_INLINE vector joined(const wg__distance kind, vector sum, vector difference, vector p) {
    switch (kind) {
    case WG__DISTANCE_SUM:
        return sum + magnitude(difference);
    case WG__DISTANCE_SQUARES:
        return sum + difference * difference;
    case WG__DISTANCE_MAX: { /* a NaN stays */
        const vector size = magnitude(difference);
        return choose((size > sum) | (size != size), size, sum);
    }
    case WG__DISTANCE_COUNT:
        return sum + choose(difference != 0, (real)1 + (vector){0}, (vector){0});
    default:
        return sum + vector_pow(magnitude(difference), p);
    }
}

WG__ALWAYS_INLINE void few_distances(const wg__distance kind, const int vectors, vector p,
                                     int64_t k, const real *a, const real *b, int64_t b_row,
                                     vector *sums) {
    for (int v = 0; v < vectors; v++)
        sums[v] = (vector){0};
    for (int64_t i = 0; i < k; i++)
        for (int v = 0; v < vectors; v++)
            sums[v] = joined(kind, sums[v], a[i] - load(b + i * b_row + v * LANES), p);
}

WG__ALWAYS_INLINE void distances_of(const wg__distance kind, double p, int64_t n, int64_t k,
                                    const real *a, const real *b, int64_t b_row, real *y) {
    const vector power = (real)p + (vector){0};
    vector sums[DISTANCE_VECTORS];
    int64_t j = 0;
    for (; j + DISTANCE_VECTORS * LANES <= n; j += DISTANCE_VECTORS * LANES) {
        few_distances(kind, DISTANCE_VECTORS, power, k, a, b + j, b_row, sums);
        for (int v = 0; v < DISTANCE_VECTORS; v++)
            store(y + j + v * LANES, sums[v]);
    }
    for (; j + LANES <= n; j += LANES) {
        few_distances(kind, 1, power, k, a, b + j, b_row, sums);
        store(y + j, sums[0]);
    }
    if (j == n)
        return;
    vector sum = {0};
    for (int64_t i = 0; i < k; i++)
        sum = joined(kind, sum, a[i] - load_part(b + i * b_row + j, n - j, 0), power);
    store_part(y + j, sum, n - j);
}

static void row_distances(wg__distance kind, double p, int64_t n, int64_t k, const void *a,
                          const void *b, int64_t b_row, void *y) {
#define OF(KIND) distances_of(KIND, p, n, k, a, b, b_row, y)
    switch (kind) {
        WG__CASE(WG__DISTANCE_SUM, OF)
        WG__CASE(WG__DISTANCE_SQUARES, OF)
        WG__CASE(WG__DISTANCE_POWERS, OF)
        WG__CASE(WG__DISTANCE_MAX, OF)
        WG__CASE(WG__DISTANCE_COUNT, OF)
    }
#undef OF
}

/* The derivative by a coordinate, but for the weight of the pair; 0 where the difference is 0. */
WG__ALWAYS_INLINE vector slope(const wg__distance kind, vector difference, vector p,
                               vector distance) {
    const vector one = (real)1 + (vector){0}, zero = {0};
    const vector sign = choose(difference > 0, one, choose(difference < 0, -one, difference));
    switch (kind) {
    case WG__DISTANCE_SUM:
        return sign;
    case WG__DISTANCE_SQUARES:
        return difference;
    case WG__DISTANCE_MAX:
        return choose(magnitude(difference) == distance, sign, zero);
    default:
        return choose(difference == 0, zero, sign * vector_pow(magnitude(difference), p - 1));
    }
}

WG__ALWAYS_INLINE void gradient_of(const wg__distance kind, double p, int64_t n, int64_t k,
                                   const real *a, const real *b, const real *weights,
                                   const real *distance, real *da) {
    const vector power = (real)p + (vector){0};
    for (int64_t j = 0; j < n; j++) {
        const real *other = b + j * k;
        const vector weight = weights[j] + (vector){0};
        const vector far = (distance ? distance[j] : 0) + (vector){0};
        int64_t i = 0;
        if (weights[j] == 0)
            continue;
        for (; i + LANES <= k; i += LANES)
            store(da + i,
                  load(da + i) + weight * slope(kind, load(a + i) - load(other + i), power, far));
        if (i < k) {
            const vector difference = load_part(a + i, k - i, 0) - load_part(other + i, k - i, 0);
            store_part(da + i,
                       load_part(da + i, k - i, 0) + weight * slope(kind, difference, power, far),
                       k - i);
        }
    }
}

static void row_distances_vjp(wg__distance kind, double p, int64_t n, int64_t k, const void *a,
                              const void *b, const void *weights, const void *distance, void *da) {
#define OF(KIND) gradient_of(KIND, p, n, k, a, b, weights, distance, da)
    switch (kind) {
        WG__CASE(WG__DISTANCE_SUM, OF)
        WG__CASE(WG__DISTANCE_SQUARES, OF)
        WG__CASE(WG__DISTANCE_MAX, OF)
    default:
        OF(WG__DISTANCE_POWERS);
    }
#undef OF
}
