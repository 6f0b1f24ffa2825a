/* Kernels on one row: what softmax and its kin are made of. Sums run in LANES partial sums, in the
 * order of the row. */

/* The row in whole vectors, the last one padded with `padding`; `i` counts vectors. */
static inline vector row_vector(int64_t n, const real *row, int64_t i, real padding) {
    if ((i + 1) * LANES <= n)
        return load(row + i * LANES);
    real padded[LANES];
    for (int k = 0; k < LANES; k++)
        padded[k] = padding;
    memcpy(padded, row + i * LANES, (size_t)(n - i * LANES) * sizeof(real));
    return load(padded);
}

static inline void store_row_vector(int64_t n, real *row, int64_t i, vector v) {
    if ((i + 1) * LANES <= n) {
        store(row + i * LANES, v);
        return;
    }
    real padded[LANES];
    store(padded, v);
    memcpy(row + i * LANES, padded, (size_t)(n - i * LANES) * sizeof(real));
}

static inline double sum_of_lanes(vector v) {
    real each[LANES];
    double sum = 0;
    store(each, v);
    for (int k = 0; k < LANES; k++)
        sum += each[k];
    return sum;
}

static double row_max(int64_t n, const void *x) {
    vector most = -(real)INFINITY + (vector){0};
    lanes undefined = {0};
    for (int64_t i = 0; i * LANES < n; i++) {
        vector v = row_vector(n, x, i, -(real)INFINITY);
        most = choose(v > most, v, most);
        undefined |= v != v;
    }
    real each[LANES];
    lane is_nan[LANES];
    store(each, most);
    memcpy(is_nan, &undefined, sizeof is_nan);
    real result = -(real)INFINITY;
    for (int k = 0; k < LANES; k++) {
        if (is_nan[k])
            return NAN;
        result = each[k] > result ? each[k] : result;
    }
    return result;
}

static double row_sum_exp(int64_t n, const void *x, double shift) {
    vector sum = {0};
    for (int64_t i = 0; i * LANES < n; i++)
        sum += vector_exp(row_vector(n, x, i, -(real)INFINITY) - (real)shift);
    return sum_of_lanes(sum);
}

static void row_exp(int64_t n, const void *x, double shift, double scale, void *y) {
    for (int64_t i = 0; i * LANES < n; i++)
        store_row_vector(n, y, i, (real)scale * vector_exp(row_vector(n, x, i, 0) - (real)shift));
}
