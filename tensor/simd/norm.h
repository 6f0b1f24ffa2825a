/* Layer normalisation of one row. */

static void row_moments(int64_t n, const void *x, double *mean, double *variance) {
    vector sum = {0}, squares = {0};
    for (int64_t i = 0; i * LANES < n; i++)
        sum += row_vector(n, x, i, 0);
    *mean = sum_of_lanes(sum) / (double)n;
    for (int64_t i = 0; i * LANES < n; i++) {
        vector d = row_vector(n, x, i, (real)*mean) - (real)*mean;
        squares += d * d;
    }
    *variance = sum_of_lanes(squares) / (double)n;
}

static void row_normalize(int64_t n, const void *x, double mean, double scale, const void *weight,
                          const void *bias, void *y) {
    for (int64_t i = 0; i * LANES < n; i++) {
        vector v = (row_vector(n, x, i, 0) - (real)mean) * (real)scale;
        if (weight)
            v *= row_vector(n, weight, i, 0);
        if (bias)
            v += row_vector(n, bias, i, 0);
        store_row_vector(n, y, i, v);
    }
}

/* With h = (x - mean) scale and u = dy weight:
 * dx = scale (u - mean(u) - h mean(u h)), dweight += dy h, dbias += dy. */
static void row_normalize_vjp(int64_t n, const void *x, double mean, double scale,
                              const void *weight, const void *dy, void *dx, void *dweight,
                              void *dbias) {
    vector sum_u = {0}, sum_uh = {0};
    for (int64_t i = 0; i * LANES < n; i++) {
        vector h = (row_vector(n, x, i, (real)mean) - (real)mean) * (real)scale;
        vector g = row_vector(n, dy, i, 0);
        vector u = weight ? g * row_vector(n, weight, i, 0) : g;
        sum_u += u;
        sum_uh += u * h;
        if (dweight)
            store_row_vector(n, dweight, i, row_vector(n, dweight, i, 0) + g * h);
        if (dbias)
            store_row_vector(n, dbias, i, row_vector(n, dbias, i, 0) + g);
    }
    if (!dx)
        return;
    real mean_u = (real)(sum_of_lanes(sum_u) / (double)n);
    real mean_uh = (real)(sum_of_lanes(sum_uh) / (double)n);
    for (int64_t i = 0; i * LANES < n; i++) {
        vector h = (row_vector(n, x, i, 0) - (real)mean) * (real)scale;
        vector u = row_vector(n, dy, i, 0);
        if (weight)
            u *= row_vector(n, weight, i, 0);
        store_row_vector(n, dx, i, (real)scale * (u - mean_u - h * mean_uh));
    }
}
