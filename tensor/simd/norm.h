/* Normalisation of one row: layer_norm's, or with a mean of 0 rms_norm's. The last, partial vector
 * is loaded with zeros in its rest, or with the mean where a difference from it is squared. */

static void row_moments(int64_t n, const void *x, double *mean, double *variance) {
    const real *from = x;
    vector sum = {0}, squares = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        sum += load(from + i);
    if (i < n)
        sum += load_part(from + i, n - i, 0);
    *mean = (double)sum_lanes(sum) / (double)n;
    const real center = (real)*mean;
    for (i = 0; i + LANES <= n; i += LANES) {
        vector d = load(from + i) - center;
        squares += d * d;
    }
    if (i < n) {
        vector d = load_part(from + i, n - i, center) - center;
        squares += d * d;
    }
    *variance = (double)sum_lanes(squares) / (double)n;
}

static void row_normalize(int64_t n, const void *x, double mean, double scale, const void *weight,
                          const void *bias, void *y) {
    const real *from = x, *times = weight, *plus = bias;
    const real center = (real)mean, factor = (real)scale;
    real *to = y;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector v = (load(from + i) - center) * factor;
        if (times)
            v *= load(times + i);
        if (plus)
            v += load(plus + i);
        store(to + i, v);
    }
    if (i == n)
        return;
    vector v = (load_part(from + i, n - i, 0) - center) * factor;
    if (times)
        v *= load_part(times + i, n - i, 0);
    if (plus)
        v += load_part(plus + i, n - i, 0);
    store_part(to + i, v, n - i);
}

/* ---- With h = (x - mean) scale and u = dy weight: dweight += dy h, dbias += dy,
 * dx = scale (u - mean(u) - h mean(u h)), or, of a row that was not centered,
 * dx = scale (u - share h mean(u h)). ---- */

typedef struct norm_sums {
    vector u, uh;
} norm_sums;

/* Adds a row's dy h and dy to dweight and dbias, and sums u and u h. */
static inline norm_sums add_norm_gradients(int64_t n, const real *x, real center, real factor,
                                           const real *weight, const real *dy, real *dweight,
                                           real *dbias) {
    norm_sums sums = {{0}, {0}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector h = (load(x + i) - center) * factor, g = load(dy + i);
        vector u = weight ? g * load(weight + i) : g;
        sums.u += u;
        sums.uh += u * h;
        if (dweight)
            store(dweight + i, load(dweight + i) + g * h);
        if (dbias)
            store(dbias + i, load(dbias + i) + g);
    }
    if (i == n)
        return sums;
    vector h = (load_part(x + i, n - i, center) - center) * factor;
    vector g = load_part(dy + i, n - i, 0);
    vector u = weight ? g * load_part(weight + i, n - i, 0) : g;
    sums.u += u;
    sums.uh += u * h;
    if (dweight)
        store_part(dweight + i, load_part(dweight + i, n - i, 0) + g * h, n - i);
    if (dbias)
        store_part(dbias + i, load_part(dbias + i, n - i, 0) + g, n - i);
    return sums;
}

static void row_normalize_vjp(int64_t n, const void *x, double mean, double scale,
                              const void *weight, const void *dy, bool centered, double share,
                              void *dx, void *dweight, void *dbias) {
    const real *from = x, *times = weight, *from_dy = dy;
    const real center = (real)mean, factor = (real)scale;
    norm_sums sums = add_norm_gradients(n, from, center, factor, times, from_dy, dweight, dbias);
    if (!dx)
        return;
    const real mean_u = centered ? sum_lanes(sums.u) / (real)n : 0;
    const real mean_uh = (real)share * sum_lanes(sums.uh) / (real)n;
    real *to = dx;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector h = (load(from + i) - center) * factor, u = load(from_dy + i);
        if (times)
            u *= load(times + i);
        store(to + i, factor * (u - mean_u - h * mean_uh));
    }
    if (i == n)
        return;
    vector h = (load_part(from + i, n - i, 0) - center) * factor;
    vector u = load_part(from_dy + i, n - i, 0);
    if (times)
        u *= load_part(times + i, n - i, 0);
    store_part(to + i, factor * (u - mean_u - h * mean_uh), n - i);
}
