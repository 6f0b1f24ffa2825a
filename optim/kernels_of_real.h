/* The kernels on one floating type: kernels.c includes this once for each. No guard. */

/* 0 for what is smaller than the smallest normal number: the moments of rows that are seldom used
 * fade into subnormal numbers, on which some processors take a hundred cycles. NaN stays. */
static inline REAL NAME(flushed)(REAL x) {
    return ABS(x) < SMALLEST ? 0 : x;
}

static void NAME(adamw)(int64_t n, const wg__adamw_rates *rates, const REAL *restrict g,
                        REAL *restrict w, REAL *restrict m, REAL *restrict v) {
    const REAL scale = (REAL)rates->gradient_scale;
    const REAL beta1 = (REAL)rates->beta1, rest1 = (REAL)(1 - rates->beta1);
    const REAL beta2 = (REAL)rates->beta2, rest2 = (REAL)(1 - rates->beta2);
    const REAL root_scale = (REAL)rates->root_scale, eps = (REAL)rates->eps;
    const REAL step_size = (REAL)rates->step_size, keep = (REAL)rates->keep;
    for (int64_t i = 0; i < n; i++) {
        REAL gradient = scale * g[i];
        REAL mean = beta1 * m[i] + rest1 * gradient;
        REAL square = beta2 * v[i] + rest2 * (gradient * gradient);
        m[i] = NAME(flushed)(mean);
        v[i] = NAME(flushed)(square);
        w[i] = keep * w[i] - step_size * (mean / (root_scale * SQRT(square) + eps));
    }
}

/* Sums in LANES columns, which is an order that vector units can keep. */
static double NAME(square_sum)(int64_t n, const REAL *x) {
    double lanes[LANES] = {0};
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)x[i + lane] * (double)x[i + lane];
    double sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    for (int64_t i = whole; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}
