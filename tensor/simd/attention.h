/* Rows of attention's weights and of their gradient (simd.h says what each computes). */

static inline real row_max_biased(int64_t n, const real *x, const real *bias) {
    vector largest = -(real)INFINITY + (vector){0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector v = load(x + i) + load(bias + i);
        largest = larger(v, largest);
    }
    if (i < n) {
        vector v = load_part(x + i, n - i, 0) + load_part(bias + i, n - i, -(real)INFINITY);
        largest = larger(v, largest);
    }
    return largest_lane(largest);
}

static double row_attention(int64_t n, const void *bias, const void *keep, void *scores,
                            double *log_sum_exp) {
    const real *add = bias, *times = keep;
    real *s = scores;
    real largest = row_max_biased(n, s, add);
    if (largest == (real)-INFINITY) {
        memset(s, 0, (size_t)n * sizeof(real));
        *log_sum_exp = INFINITY;
        return 0;
    }
    vector sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector v = vector_exp(load(s + i) + load(add + i) - largest);
        sum += v;
        store(s + i, v * load(times + i));
    }
    if (i < n) {
        vector masked = load_part(add + i, n - i, -INFINITY);
        vector v = vector_exp(load_part(s + i, n - i, 0) + masked - largest);
        sum += v;
        store_part(s + i, v * load_part(times + i, n - i, 0), n - i);
    }
    double total = (double)sum_lanes(sum);
    *log_sum_exp = (double)largest + log(total);
    return 1 / total;
}

static void row_attention_vjp(int64_t n, const void *bias, const void *keep, double log_sum_exp,
                              double scale, void *scores, void *gradient) {
    const real *add = bias, *times = keep;
    real *p = scores, *g = gradient;
    real shift = (real)log_sum_exp, factor = (real)scale;
    vector sum = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector v = vector_exp(load(p + i) + load(add + i) - shift);
        store(p + i, v);
        vector dv = load(g + i) * load(times + i);
        store(g + i, dv);
        sum += v * dv;
    }
    if (i < n) {
        vector masked = load_part(add + i, n - i, -INFINITY);
        vector v = vector_exp(load_part(p + i, n - i, 0) + masked - shift);
        store_part(p + i, v, n - i);
        vector dv = load_part(g + i, n - i, 0) * load_part(times + i, n - i, 0);
        store_part(g + i, dv, n - i);
        sum += v * dv;
    }
    real mean = sum_lanes(sum);
    for (i = 0; i + LANES <= n; i += LANES) {
        vector v = load(p + i);
        store(p + i, v * load(times + i));
        store(g + i, factor * v * (load(g + i) - mean));
    }
    if (i < n) {
        vector v = load_part(p + i, n - i, 0);
        store_part(p + i, v * load_part(times + i, n - i, 0), n - i);
        store_part(g + i, factor * v * (load_part(g + i, n - i, 0) - mean), n - i);
    }
}
