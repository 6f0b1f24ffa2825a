/* Kernels on rows: softmax, logsumexp and cross entropy, normalization, sums, taps of convolutions
 * and max pooling. The last, partial vector of a row is padded with a neutral element. */

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

/* Sums accumulate in f32 over this many elements, then in f64. */
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

/* Each exponential is computed once: as row_exp of the sum of row_sum_exp, bit for bit. */
static void row_softmax(int64_t n, const void *x, void *y) {
    const real *from = x;
    real *to = y;
    const double most = row_max(n, x);
    /* With a shift of 0, the exponentials of a row of -inf are all 0, and so is their sum. */
    const real down = most == -INFINITY ? 0 : (real)most;
    double total = 0;
    int64_t i = 0;
    while (i + LANES <= n) {
        const int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector sum = {0};
        for (; i + LANES <= end; i += LANES) {
            const vector e = vector_exp(load(from + i) - down);
            store(to + i, e);
            sum += e;
        }
        total += (double)sum_lanes(sum);
    }
    vector last = {0};
    if (i < n) {
        last = vector_exp(load_part(from + i, n - i, -(real)INFINITY) - down);
        total += (double)sum_lanes(last);
    }
    const real factor = (real)(total == 0 ? 0 : 1 / total);
    for (i = 0; i + LANES <= n; i += LANES)
        store(to + i, factor * load(to + i));
    if (i < n)
        store_part(to + i, factor * last, n - i);
}

/* The products of elements i, i + 1... of a and b, where a NULL operand means ones: LANES products,
 * or n < LANES and zeros beyond. */
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

/* ---- Normalization of a row, for layer_norm and, with a mean of 0, rms_norm ----
 *
 * The last, partial vector is padded with zeros, or with the mean where differences from it are
 * squared. */

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

/* ---- Gradients of normalization. With h = (x - mean) scale and u = dy weight:
 *
 *     dweight += dy h      dx = scale (u - mean(u) - share h mean(u h))   if centered
 *     dbias += dy          dx = scale (u - share h mean(u h))             if not          ---- */

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

/* ---- Normalization of channels, with statistics over several rows ---- */

typedef struct affine_coefficients {
    vector center, scale, shift, g_center, share;
} affine_coefficients;

/* Coefficients i to i + count - 1 if each element has its own, else the common one. */
WG__ALWAYS_INLINE vector coefficient(const bool each, const void *of, int64_t i, int64_t count) {
    const real *from = of;
    if (!from)
        return (vector){0};
    if (!each)
        return from[0] + (vector){0};
    return count == LANES ? load(from + i) : load_part(from + i, count, 0);
}

WG__ALWAYS_INLINE affine_coefficients coefficients_at(const bool each, const wg__affine_row *row,
                                                      int64_t i, int64_t count) {
    return (affine_coefficients){
        coefficient(each, row->center, i, count), coefficient(each, row->scale, i, count),
        coefficient(each, row->shift, i, count), coefficient(each, row->g_center, i, count),
        coefficient(each, row->share, i, count)};
}

WG__ALWAYS_INLINE void affine_elements(const bool each, const bool has_g, int64_t n,
                                       const wg__affine_row *row) {
    const real *x = row->x, *g = row->g;
    real *y = row->y;
    affine_coefficients k = coefficients_at(each, row, 0, n < LANES ? n : LANES);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (each)
            k = coefficients_at(each, row, i, LANES);
        const vector v = (load(x + i) - k.center) * k.scale + k.shift;
        store(y + i, has_g ? v + (load(g + i) - k.g_center) * k.share : v);
    }
    if (i == n)
        return;
    if (each)
        k = coefficients_at(each, row, i, n - i);
    const vector v = (load_part(x + i, n - i, 0) - k.center) * k.scale + k.shift;
    store_part(y + i, has_g ? v + (load_part(g + i, n - i, 0) - k.g_center) * k.share : v, n - i);
}

static void row_affine(int64_t n, bool each, const wg__affine_row *row) {
    if (each && row->g)
        affine_elements(true, true, n, row);
    else if (each)
        affine_elements(true, false, n, row);
    else if (row->g)
        affine_elements(false, true, n, row);
    else
        affine_elements(false, false, n, row);
}

static void row_centered_sums(int64_t n, const void *x, double center, const void *g, double *sum,
                              double *sum_x) {
    const real *from = x, *by = g, middle = (real)center;
    *sum = *sum_x = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t end = n - i < SUM_BLOCK ? n : i + SUM_BLOCK;
        vector part = {0}, part_x = {0};
        for (; i + LANES <= end; i += LANES) {
            const vector v = load(by + i);
            part += v;
            part_x += v * (load(from + i) - middle);
        }
        if (i < end) {
            const vector v = load_part(by + i, end - i, 0);
            part += v;
            part_x += v * (load_part(from + i, end - i, middle) - middle);
            i = end;
        }
        *sum += (double)sum_lanes(part);
        *sum_x += (double)sum_lanes(part_x);
    }
}

static void add_centered_row(int64_t n, const void *x, const void *center, const void *g, void *sum,
                             void *sum_x) {
    const real *from = x, *middle = center, *by = g;
    real *to = sum, *to_x = sum_x;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vector d = load(from + i) - load(middle + i), v = by ? load(by + i) : d;
        store(to + i, load(to + i) + v);
        store(to_x + i, load(to_x + i) + v * d);
    }
    for (; i < n; i++) {
        const real d = from[i] - middle[i], v = by ? by[i] : d;
        to[i] += v;
        to_x[i] += v * d;
    }
}

#if WG__BITS == 32
/* ---- Sums of f32 in f64, and numbers of bf16 ---- */

static double row_sum(int64_t n, const void *x) {
    const real *from = x;
    int64_t i = 0;
    double total = 0;
#if WG__LANES >= 8
    typedef float half __attribute__((vector_size(WG__VECTOR_BYTES / 2)));
    typedef double wide __attribute__((vector_size(WG__VECTOR_BYTES)));
    enum { SUMS = 8, HALF = LANES / 2 };
    wide sums[SUMS] = {{0}};
    for (; i + SUMS * HALF <= n; i += SUMS * HALF)
        WG__UNROLL for (int s = 0; s < SUMS; s++) {
            half v;
            memcpy(&v, from + i + s * HALF, sizeof v);
            sums[s] += __builtin_convertvector(v, wide);
        }
    for (int s = 1; s < SUMS; s++)
        sums[0] += sums[s];
    for (int l = 0; l < HALF; l++)
        total += sums[0][l];
#endif
    for (; i < n; i++)
        total += (double)from[i];
    return total;
}

typedef uint16_t row_halves __attribute__((vector_size(2 * LANES)));

static inline row_halves halves_of(vector v) {
    return __builtin_convertvector((lane_bits)rounded_to_bf16(v) >> 16, row_halves);
}

static void round_to_bf16(int64_t n, const void *x, uint16_t *y) {
    const real *from = x;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const row_halves halves = halves_of(load(from + i));
        memcpy(y + i, &halves, sizeof halves);
    }
    if (i < n) {
        const row_halves halves = halves_of(load_part(from + i, n - i, 0));
        memcpy(y + i, &halves, (size_t)(n - i) * sizeof *y);
    }
}

static inline vector numbers_of_halves(row_halves halves) {
    return (vector)(__builtin_convertvector(halves, lane_bits) << 16);
}

static void widen_bf16(int64_t n, const uint16_t *x, void *y) {
    real *to = y;
    int64_t i = 0;
    row_halves halves = {0};
    for (; i + LANES <= n; i += LANES) {
        memcpy(&halves, x + i, sizeof halves);
        store(to + i, numbers_of_halves(halves));
    }
    if (i < n) {
        memcpy(&halves, x + i, (size_t)(n - i) * sizeof *x);
        store_part(to + i, numbers_of_halves(halves), n - i);
    }
}
#endif

/* ---- Sums over rows ----
 *
 * UNROLLED rows are added at a time, so that the sums are loaded and stored less often. */

enum { UNROLLED = 4 };

static inline void add_few_rows(int64_t rows, int64_t columns, int64_t row_stride, const real *x,
                                real *sums) {
    int64_t j = 0;
    for (; j + LANES <= columns; j += LANES) {
        vector part = load(x + j);
        for (int64_t row = 1; row < rows; row++)
            part += load(x + row * row_stride + j);
        store(sums + j, load(sums + j) + part);
    }
    if (j == columns)
        return;
    vector part = load_part(x + j, columns - j, 0);
    for (int64_t row = 1; row < rows; row++)
        part += load_part(x + row * row_stride + j, columns - j, 0);
    store_part(sums + j, load_part(sums + j, columns - j, 0) + part, columns - j);
}

static void add_rows(int64_t rows, int64_t columns, int64_t row_stride, const void *x, void *sums) {
    const real *from = x;
    int64_t row = 0;
    for (; row + UNROLLED <= rows; row += UNROLLED)
        add_few_rows(UNROLLED, columns, row_stride, from + row * row_stride, sums);
    for (; row < rows; row++)
        add_few_rows(1, columns, row_stride, from + row * row_stride, sums);
}

/* ---- Convolution of planes ----
 *
 * TAP_VECTORS vectors of outputs, or of sums, stay in registers. An output adds its taps in their
 * order, also where it is in the remainder. */

enum { TAP_VECTORS = 4 };

WG__ALWAYS_INLINE void few_tap_sums(const int vectors, int64_t taps, const int64_t *offsets,
                                    const real *x, const real *weights, real start, real *y) {
    vector sums[TAP_VECTORS];
    for (int v = 0; v < vectors; v++)
        sums[v] = start + (vector){0};
    for (int64_t t = 0; t < taps; t++)
        for (int v = 0; v < vectors; v++)
            sums[v] += weights[t] * load(x + offsets[t] + v * LANES);
    for (int v = 0; v < vectors; v++)
        store(y + v * LANES, sums[v]);
}

static void tap_sums(int64_t n, int64_t taps, const int64_t *offsets, const void *x,
                     const void *weights, double start, void *y) {
    const real *from = x, *by = weights, first = (real)start;
    real *to = y;
    int64_t i = 0;
    for (; i + TAP_VECTORS * LANES <= n; i += TAP_VECTORS * LANES)
        few_tap_sums(TAP_VECTORS, taps, offsets, from + i, by, first, to + i);
    for (; i + LANES <= n; i += LANES)
        few_tap_sums(1, taps, offsets, from + i, by, first, to + i);
    if (i == n)
        return;
    vector sum = first + (vector){0};
    for (int64_t t = 0; t < taps; t++)
        sum += by[t] * load_part(from + offsets[t] + i, n - i, 0);
    store_part(to + i, sum, n - i);
}

static void tap_dots(int64_t n, int64_t taps, const int64_t *offsets, const void *x, const void *g,
                     void *sums) {
    const real *by = g;
    for (int64_t t = 0; t < taps; t++) {
        const real *from = (const real *)x + offsets[t];
        vector part[TAP_VECTORS] = {{0}};
        int64_t i = 0;
        for (; i + TAP_VECTORS * LANES <= n; i += TAP_VECTORS * LANES)
            for (int v = 0; v < TAP_VECTORS; v++)
                part[v] += load(by + i + v * LANES) * load(from + i + v * LANES);
        for (; i + LANES <= n; i += LANES)
            part[0] += load(by + i) * load(from + i);
        if (i < n)
            part[1] += load_part(by + i, n - i, 0) * load_part(from + i, n - i, 0);
        ((real *)sums)[t] += sum_lanes((part[0] + part[1]) + (part[2] + part[3]));
    }
}

/* ---- Pooling ---- */

#if WG__BITS == 32
/* The first `count` of elements 0, stride, 2 stride... */
static inline vector load_steps(const real *from, int64_t stride, int64_t count) {
    vector v = {0};
    for (int64_t i = 0; i < count; i++)
        v[i] = from[i * stride];
    return v;
}

/* Every second element of 2 LANES - 1, or the first `count` of them. */
WG__ALWAYS_INLINE vector load_pairs(const bool whole, const real *from, int64_t count) {
#if WG__LANES == 16 || WG__LANES == 8
    const int64_t beyond = 2 * count - LANES; /* of the first LANES - 1 */
    const vector low = whole || beyond > 0 ? load(from) : load_part(from, 2 * count - 1, 0);
    const vector high = whole        ? load(from + LANES - 1)
                        : beyond > 0 ? load_part(from + LANES - 1, beyond, 0)
                                     : low;
#if WG__LANES == 16
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29,
                                   31);
#else
    return __builtin_shufflevector(low, high, 0, 2, 4, 6, 9, 11, 13, 15);
#endif
#else
    return load_steps(from, 2, whole ? LANES : count);
#endif
}

/* Updates a vector of outputs, or `count` of them; steps[j] is j stride. */
WG__ALWAYS_INLINE void max_pool_lanes(const bool whole, int64_t count, int64_t stride,
                                      const real *x, lanes steps, lane at, real *y,
                                      int32_t *place) {
    const vector v = stride == 2   ? load_pairs(whole, x, count)
                     : stride != 1 ? load_steps(x, stride, count)
                     : whole       ? load(x)
                                   : load_part(x, count, 0);
    const vector most = whole ? load(y) : load_part(y, count, 0);
    lanes best;
    memcpy(&best, place, sizeof best);
    const lanes better = (v > most) | (v != v);
    best = (better & (steps + at)) | (~better & best);
    memcpy(place, &best, sizeof best);
    if (whole)
        store(y, choose(better, v, most));
    else
        store_part(y, choose(better, v, most), count);
}

static void max_pool_step(int64_t n, int64_t stride, const void *from, int32_t at, void *to,
                          int32_t *place) {
    const real *x = from;
    real *y = to;
    lanes steps = {0};
    int64_t i = 0;
    for (int k = 0; k < LANES; k++)
        steps[k] = (lane)(k * stride);
    for (; i + LANES <= n; i += LANES)
        max_pool_lanes(true, LANES, stride, x + i * stride, steps, (lane)(at + i * stride), y + i,
                       place + i);
    if (i < n)
        max_pool_lanes(false, n - i, stride, x + i * stride, steps, (lane)(at + i * stride), y + i,
                       place + i);
}
#endif
