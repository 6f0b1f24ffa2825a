/* The kernels on one floating type: kernels.c includes this once for each. No guard. */

/* 0 for a number below the smallest normal one. The moments of rarely used rows decay into
 * subnormal numbers, and some processors take a hundred cycles to add or multiply these. NaN stays.
 */
static inline REAL NAME(flushed)(REAL x) {
    return ABS(x) < SMALLEST ? 0 : x;
}

/* NaN stays. */
static inline REAL NAME(sign)(REAL x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* Weights become keep w + rate x with a rate below 0, so that results have the same bits on all
 * machines: compilers fuse the first product of a sum with the addition, but gcc for arm64 fuses
 * the second product of a difference. */

/* The total of LANES partial sums. Long sums use LANES of them, as vector units do. */
static inline double NAME(sum_lanes)(const double *lanes) {
    double sum = 0;
    for (int lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static double NAME(square_sum)(int64_t n, const void *numbers) {
    const REAL *x = numbers;
    double lanes[LANES] = {0};
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += (double)x[i + lane] * (double)x[i + lane];
    double sum = NAME(sum_lanes)(lanes);
    for (int64_t i = whole; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static void NAME(scale)(int64_t n, double factor, void *numbers) {
    REAL *x = numbers;
    for (int64_t i = 0; i < n; i++)
        x[i] *= (REAL)factor;
}

static void NAME(apply)(int64_t n, double keep, double step_size, const void *direction,
                        void *weights) {
    const REAL *restrict x = direction;
    REAL *restrict w = weights;
    const REAL kept = (REAL)keep, rate = -(REAL)step_size;
    for (int64_t i = 0; i < n; i++)
        w[i] = kept * w[i] + rate * x[i];
}

/* ---- Adam, AdamW ---- */

static void NAME(adam)(int64_t n, const wg__adam_rates *rates, const void *gradients, void *weights,
                       void *means, void *squares) {
    const REAL *restrict g = gradients;
    REAL *restrict w = weights, *restrict m = means, *restrict v = squares;
    const REAL scale = (REAL)rates->gradient_scale, decay = (REAL)rates->coupled_decay;
    const REAL beta1 = (REAL)rates->beta1, rest1 = (REAL)(1 - rates->beta1);
    const REAL beta2 = (REAL)rates->beta2, rest2 = (REAL)(1 - rates->beta2);
    const REAL root_scale = (REAL)rates->root_scale, eps = (REAL)rates->eps;
    const REAL rate = -(REAL)rates->step_size, keep = (REAL)rates->keep;
    for (int64_t i = 0; i < n; i++) {
        REAL gradient = scale * g[i] + decay * w[i];
        REAL mean = beta1 * m[i] + rest1 * gradient;
        REAL square = beta2 * v[i] + rest2 * (gradient * gradient);
        m[i] = NAME(flushed)(mean);
        v[i] = NAME(flushed)(square);
        w[i] = keep * w[i] + rate * (mean / (root_scale * SQRT(square) + eps));
    }
}

/* ---- SGD ---- */

static void NAME(sgd)(int64_t n, const wg__sgd_rates *rates, const void *gradients, void *weights) {
    const REAL *restrict g = gradients;
    REAL *restrict w = weights;
    const REAL scale = (REAL)rates->gradient_scale, decay = (REAL)rates->decay;
    const REAL step_size = (REAL)rates->step_size;
    for (int64_t i = 0; i < n; i++)
        w[i] -= step_size * (scale * g[i] + decay * w[i]);
}

static void NAME(sgd_momentum)(int64_t n, const wg__sgd_rates *rates, const void *gradients,
                               void *weights, void *momenta) {
    const REAL *restrict g = gradients;
    REAL *restrict w = weights, *restrict m = momenta;
    const REAL scale = (REAL)rates->gradient_scale, decay = (REAL)rates->decay;
    const REAL momentum = (REAL)rates->momentum, step_size = (REAL)rates->step_size;
    const REAL direct = (REAL)rates->direct, along = (REAL)rates->along;
    for (int64_t i = 0; i < n; i++) {
        REAL gradient = scale * g[i] + decay * w[i];
        REAL moved = momentum * m[i] + gradient;
        m[i] = NAME(flushed)(moved);
        w[i] -= step_size * (direct * gradient + along * moved);
    }
}

/* ---- Lion ---- */

static void NAME(lion)(int64_t n, const wg__lion_rates *rates, const void *gradients, void *weights,
                       void *momenta) {
    const REAL *restrict g = gradients;
    REAL *restrict w = weights, *restrict m = momenta;
    const REAL scale = (REAL)rates->gradient_scale;
    const REAL beta1 = (REAL)rates->beta1, rest1 = (REAL)(1 - rates->beta1);
    const REAL beta2 = (REAL)rates->beta2, rest2 = (REAL)(1 - rates->beta2);
    const REAL rate = -(REAL)rates->step_size, keep = (REAL)rates->keep;
    for (int64_t i = 0; i < n; i++) {
        REAL gradient = scale * g[i];
        w[i] = keep * w[i] + rate * NAME(sign)(beta1 * m[i] + rest1 * gradient);
        m[i] = NAME(flushed)(beta2 * m[i] + rest2 * gradient);
    }
}

/* ---- Muon ---- */

static double NAME(nesterov)(int64_t n, double gradient_scale, double momentum,
                             const void *gradients, void *momenta, void *directions) {
    const REAL *restrict g = gradients;
    REAL *restrict m = momenta, *restrict x = directions;
    const REAL scale = (REAL)gradient_scale;
    const REAL mu = (REAL)momentum, rest = (REAL)(1 - momentum);
    for (int64_t i = 0; i < n; i++) {
        REAL gradient = scale * g[i];
        m[i] = NAME(flushed)(mu * m[i] + rest * gradient);
        x[i] = mu * m[i] + rest * gradient;
    }
    return NAME(square_sum)(n, directions);
}

/* ---- Adafactor ---- */

static double NAME(add_squares)(int64_t n, double gradient_scale, double eps, const void *gradients,
                                double *restrict columns) {
    const REAL *restrict g = gradients;
    double lanes[LANES] = {0};
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            double gradient = gradient_scale * (double)g[i + lane];
            double square = gradient * gradient + eps;
            columns[i + lane] += square;
            lanes[lane] += square;
        }
    double sum = NAME(sum_lanes)(lanes);
    for (int64_t i = whole; i < n; i++) {
        double gradient = gradient_scale * (double)g[i];
        double square = gradient * gradient + eps;
        columns[i] += square;
        sum += square;
    }
    return sum;
}

static double NAME(factored_sum)(int64_t n, double factor, const void *gradients,
                                 const void *column_factors) {
    const REAL *restrict g = gradients, *restrict c = column_factors;
    double lanes[LANES] = {0};
    int64_t whole = n - n % LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            double u = (double)g[i + lane] * (double)c[i + lane];
            lanes[lane] += u * u;
        }
    double sum = NAME(sum_lanes)(lanes);
    for (int64_t i = whole; i < n; i++) {
        double u = (double)g[i] * (double)c[i];
        sum += u * u;
    }
    return factor * factor * sum;
}

static void NAME(factored_apply)(int64_t n, double keep, double factor, const void *gradients,
                                 const void *column_factors, void *weights) {
    const REAL *restrict g = gradients, *restrict c = column_factors;
    REAL *restrict w = weights;
    const REAL kept = (REAL)keep, rate = -(REAL)factor;
    for (int64_t i = 0; i < n; i++)
        w[i] = kept * w[i] + rate * (g[i] * c[i]);
}

static double NAME(second_moment)(int64_t n, double gradient_scale, double beta2, double eps,
                                  const void *gradients, void *squares) {
    const REAL *restrict g = gradients;
    REAL *restrict v = squares;
    double lanes[LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        double gradient = gradient_scale * (double)g[i];
        v[i] = (REAL)(beta2 * (double)v[i] + (1 - beta2) * (gradient * gradient + eps));
        lanes[i % LANES] += gradient * gradient / (double)v[i];
    }
    return NAME(sum_lanes)(lanes);
}

static void NAME(second_moment_apply)(int64_t n, double keep, double factor, const void *gradients,
                                      const void *squares, void *weights) {
    const REAL *restrict g = gradients, *restrict v = squares;
    REAL *restrict w = weights;
    const REAL kept = (REAL)keep, rate = -(REAL)factor;
    for (int64_t i = 0; i < n; i++)
        w[i] = kept * w[i] + rate * (g[i] / SQRT(v[i]));
}
