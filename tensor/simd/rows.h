/* Kernels on one row: what softmax and its kin are made of. The last, partial vector of a row is
 * loaded with a neutral element in its rest. */

static double row_max(int64_t n, const void *x) {
    const real *from = x;
    vector most = -(real)INFINITY + (vector){0}, last = most;
    lanes undefined = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vector v = load(from + i);
        most = larger(v, most);
        undefined |= v != v;
    }
    if (i < n)
        last = load_part(from + i, n - i, -(real)INFINITY);
    most = larger(last, most);
    undefined |= last != last;
    vector one = (real)1 + (vector){0}, zero = {0};
    return sum_lanes(choose(undefined, one, zero)) > 0 ? NAN : largest_lane(most);
}

/* Sums run in f32 over this many elements, and go on in f64. */
enum { SUM_BLOCK = 2048 };

static double row_sum_exp(int64_t n, const void *x, double shift) {
    const real *from = x;
    const real down = (real)shift;
    double total = 0;
    int64_t i = 0;
    while (i + LANES <= n) {
        int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector sum = {0};
        for (; i + LANES <= end; i += LANES)
            sum += vector_exp(load(from + i) - down);
        total += (double)sum_lanes(sum);
    }
    if (i < n)
        total += (double)sum_lanes(vector_exp(load_part(from + i, n - i, -(real)INFINITY) - down));
    return total;
}

static void row_exp(int64_t n, const void *x, double shift, double scale, void *y) {
    const real *from = x;
    const real down = (real)shift, factor = (real)scale;
    real *to = y;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(to + i, factor * vector_exp(load(from + i) - down));
    if (i < n)
        store_part(to + i, factor * vector_exp(load_part(from + i, n - i, 0) - down), n - i);
}

/* Elements i.. of the products of a and b, each of which may be NULL for ones: all LANES of them,
 * or n of them and 0 beyond. */
static inline vector products(const real *a, const real *b, int64_t i, int64_t n) {
    real padded[LANES];
    if (n >= LANES) {
        vector weight = a ? load(a + i) : (real)1 + (vector){0};
        return b ? weight * load(b + i) : weight;
    }
    for (int64_t j = 0; j < LANES; j++)
        padded[j] = j >= n ? 0 : (a ? a[i + j] : 1) * (b ? b[i + j] : 1);
    return load(padded);
}

static double row_excess(int64_t n, const void *x, double shift, const void *a, const void *b,
                         double *total) {
    const real *from = x;
    const real up = (real)shift;
    double excess = 0, weights = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector sum = {0}, weight = {0};
        for (; i + LANES <= end; i += LANES) {
            vector w = products(a, b, i, LANES);
            sum += w * (up - load(from + i));
            weight += w;
        }
        if (i < end) {
            vector w = products(a, b, i, end - i);
            sum += w * (up - load_part(from + i, end - i, up));
            weight += w;
            i = end;
        }
        excess += (double)sum_lanes(sum);
        weights += (double)sum_lanes(weight);
    }
    *total = weights;
    return excess;
}

static void row_subtract(int64_t n, double scale, const void *a, const void *b, void *y) {
    const real factor = (real)scale;
    real *to = y;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(to + i, load(to + i) - factor * products(a, b, i, LANES));
    if (i < n)
        store_part(to + i, load_part(to + i, n - i, 0) - factor * products(a, b, i, n - i), n - i);
}
