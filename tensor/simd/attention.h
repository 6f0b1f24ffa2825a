/* Rows of attention's weights and of their gradient (contracts in simd.h). A row has room for whole
 * vectors: elements of the last vector beyond n are read, ignored, and set to 0. */

static const lane lane_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* v in the first n lanes, `rest` in the lanes beyond. */
static inline vector first_lanes(vector v, int64_t n, real rest) {
    lanes numbers;
    memcpy(&numbers, lane_numbers, sizeof numbers);
    return choose(numbers < (lane)(n < LANES ? n : LANES), v, rest + (vector){0});
}

/* A vector of scores with their bias; -inf for lanes from `left` on, which are beyond the row. */
WG__ALWAYS_INLINE vector biased(const bool has_bias, const real *s, const real *bias,
                                int64_t left) {
    const vector v = has_bias ? load(s) + load(bias) : load(s);
    return left < LANES ? first_lanes(v, left, -(real)INFINITY) : v;
}

WG__ALWAYS_INLINE double weigh(const bool has_bias, const bool has_keep, int64_t n,
                               const real *bias, const real *keep, real *s, double *log_sum_exp) {
    vector most = -(real)INFINITY + (vector){0};
    for (int64_t i = 0; i < n; i += LANES)
        most = larger(biased(has_bias, s + i, bias + i, n - i), most);
    const real largest = largest_lane(most);
    if (largest == (real)-INFINITY) {
        memset(s, 0, (size_t)n * sizeof(real));
        *log_sum_exp = INFINITY;
        return 0;
    }
    vector sum = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        const vector v = exp_below(biased(has_bias, s + i, bias + i, n - i) - largest);
        sum += v;
        store(s + i, has_keep ? v * load(keep + i) : v);
    }
    const double total = (double)sum_lanes(sum);
    *log_sum_exp = (double)largest + log(total);
    return 1 / total;
}

static double row_attention(int64_t n, const void *bias, const void *keep, void *scores,
                            double *log_sum_exp) {
    const real none = 0; /* in place of NULL; never read */
    if (!bias && !keep)
        return weigh(false, false, n, &none, &none, scores, log_sum_exp);
    if (!keep)
        return weigh(true, false, n, bias, &none, scores, log_sum_exp);
    if (!bias)
        return weigh(false, true, n, &none, keep, scores, log_sum_exp);
    return weigh(true, true, n, bias, keep, scores, log_sum_exp);
}

WG__ALWAYS_INLINE void weigh_vjp(const bool has_bias, const bool has_keep, int64_t n,
                                 const real *bias, const real *keep, real shift, real factor,
                                 real *p, real *g) {
    vector sum = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        const vector v = exp_below(biased(has_bias, p + i, bias + i, n - i) - shift);
        store(p + i, v);
        vector dv = has_keep ? load(g + i) * load(keep + i) : load(g + i);
        if (n - i < LANES)
            dv = first_lanes(dv, n - i, 0);
        if (has_keep || n - i < LANES)
            store(g + i, dv);
        sum += v * dv;
    }
    const real mean = sum_lanes(sum);
    for (int64_t i = 0; i < n; i += LANES) {
        const vector v = load(p + i);
        if (has_keep)
            store(p + i, v * load(keep + i));
        store(g + i, factor * v * (load(g + i) - mean));
    }
}

static void row_attention_vjp(int64_t n, const void *bias, const void *keep, double log_sum_exp,
                              double scale, void *scores, void *gradient) {
    const real none = 0; /* in place of NULL; never read */
    const real shift = (real)log_sum_exp, factor = (real)scale;
    if (!bias && !keep)
        weigh_vjp(false, false, n, &none, &none, shift, factor, scores, gradient);
    else if (!keep)
        weigh_vjp(true, false, n, bias, &none, shift, factor, scores, gradient);
    else if (!bias)
        weigh_vjp(false, true, n, &none, keep, shift, factor, scores, gradient);
    else
        weigh_vjp(true, true, n, bias, keep, shift, factor, scores, gradient);
}

static void mask_to_bias(int64_t n, const bool *mask, int64_t step, void *bias) {
    real *to = bias;
    int64_t j = 0;
#ifndef WG__SCALAR
    typedef int8_t bytes __attribute__((vector_size(LANES)));
    for (; step == 1 && j + LANES <= n; j += LANES) {
        bytes seen;
        memcpy(&seen, mask + j, sizeof seen);
        const vector zero = {0}, hidden = -(real)INFINITY + zero;
        store(to + j, choose(__builtin_convertvector(seen, lanes) != (lanes){0}, zero, hidden));
    }
#endif
    for (; j < n; j++)
        to[j] = mask[j * step] ? 0 : -(real)INFINITY;
}

/* ---- Products of several heads ----
 *
 * Products of rows of several heads at once (contracts in simd.h). The processor prefetches the
 * matrices of all heads at the same time, so the latency at the start of a short matrix is paid
 * once and not once a head. Three heads of 160 keys of width 64 are read at 37 GB/s together and at
 * 22 GB/s one by one. */

WG__ALWAYS_INLINE void dots_of_heads(const int heads, const wg__head_products *p) {
    const int64_t n = p->width, whole = n / LANES * LANES;
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t row = r * p->row_stride;
        vector sums[WG__HEADS_AT_ONCE] = {{0}};
        for (int64_t i = 0; i < whole; i += LANES) {
            WG__UNROLL
            for (int h = 0; h < heads; h++)
                sums[h] += load_stream((const real *)p->a[h] + row + i) *
                           load((const real *)p->vector[h] + i);
        }
        for (int h = 0; whole < n && h < heads; h++)
            sums[h] += load_part((const real *)p->a[h] + row + whole, n - whole, 0) *
                       load_part((const real *)p->vector[h] + whole, n - whole, 0);
        WG__UNROLL
        for (int h = 0; h < heads; h++)
            ((real *)p->y[h])[r] = (real)(p->scale * (double)sum_lanes(sums[h]));
    }
}

static void head_dots(int heads, const wg__head_products *p) {
#define OF(n) dots_of_heads(n, p)
    switch (heads) { WG__CASES(4, OF) }
#undef OF
}

/* The vectors of a head whose sums stay in registers from the first row to the last. */
enum { HEAD_VECTORS = WG__VECTOR_BYTES == 64 ? 4 : 2 };

WG__ALWAYS_INLINE void add_head_rows(const int heads, const int vectors, const wg__head_products *p,
                                     int64_t column) {
    vector sums[WG__HEADS_AT_ONCE][HEAD_VECTORS] = {{{0}}};
    for (int64_t r = 0; r < p->rows; r++) {
        const int64_t place = r * p->row_stride + column;
        WG__UNROLL
        for (int h = 0; h < heads; h++) {
            const real factor = ((const real *)p->vector[h])[r];
            WG__UNROLL
            for (int v = 0; v < vectors; v++)
                sums[h][v] += factor * load_stream((const real *)p->a[h] + place + v * LANES);
        }
    }
    WG__UNROLL
    for (int h = 0; h < heads; h++) {
        WG__UNROLL
        for (int v = 0; v < vectors; v++)
            store((real *)p->y[h] + column + v * LANES, (real)p->scale * sums[h][v]);
    }
}

WG__ALWAYS_INLINE void sums_of_heads(const int heads, const wg__head_products *p) {
    const int64_t n = p->width;
    int64_t column = 0;
    for (; column + HEAD_VECTORS * LANES <= n; column += HEAD_VECTORS * LANES)
        add_head_rows(heads, HEAD_VECTORS, p, column);
    for (; column + LANES <= n; column += LANES)
        add_head_rows(heads, 1, p, column);
    for (int h = 0; column < n && h < heads; h++) {
        vector sum = {0};
        for (int64_t r = 0; r < p->rows; r++)
            sum += ((const real *)p->vector[h])[r] *
                   load_part((const real *)p->a[h] + r * p->row_stride + column, n - column, 0);
        store_part((real *)p->y[h] + column, (real)p->scale * sum, n - column);
    }
}

static void head_sums(int heads, const wg__head_products *p) {
#define OF(n) sums_of_heads(n, p)
    switch (heads) { WG__CASES(4, OF) }
#undef OF
}
