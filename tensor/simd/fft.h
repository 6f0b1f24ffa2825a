/* Discrete Fourier transforms of LANES lines at a time: a lane is a line.
 *
 *     memory --load--> element 0: | re, a lane each | im |  element 1: | re | im | ...
 *                          | passes, one for each factor of n, alternating between two buffers
 *     memory <--store-- the same with the results
 *
 * A pass of radix r (Stockham's, which needs no reordering) turns x, of m = n / (s r) groups, into
 * y:  y[q + s (r p + j)] = w^(j p s) sum_i x[q + s (p + m i)] e^(-2 pi i i j / r). The inverse is
 * the same between exchanges of the real and imaginary parts. */

typedef struct complex_vector {
    vector re, im;
} complex_vector;

static inline complex_vector load_complex(const real *x, int64_t index) {
    return (complex_vector){load(x + 2 * index * LANES), load(x + (2 * index + 1) * LANES)};
}

static inline void store_complex(real *x, int64_t index, complex_vector v) {
    store(x + 2 * index * LANES, v.re);
    store(x + (2 * index + 1) * LANES, v.im);
}

static inline complex_vector plus(complex_vector a, complex_vector b) {
    return (complex_vector){a.re + b.re, a.im + b.im};
}

static inline complex_vector minus(complex_vector a, complex_vector b) {
    return (complex_vector){a.re - b.re, a.im - b.im};
}

/* a times the number at w. In a sum of two products every compiler fuses the first product with the
 * addition; in a difference gcc for arm64 would fuse the second. */
static inline complex_vector times(complex_vector a, const real *w) {
    return (complex_vector){a.re * w[0] + a.im * -w[1], a.re * w[1] + a.im * w[0]};
}

/* i a, and a with its parts exchanged. */
static inline complex_vector turned(complex_vector a) {
    return (complex_vector){-a.im, a.re};
}

static inline complex_vector exchanged(complex_vector a) {
    return (complex_vector){a.im, a.re};
}

/* ---- Butterflies: the r outputs of r inputs ---- */

/* For an odd r: with the sums and differences of inputs j and r - j, outputs k and r - k are
 * x0 + sum_j sums_j cos(2 pi j k / r) -+ i differences_j sin(2 pi j k / r). `w` has e^(-2 pi i j/r)
 * at every `step`-th pair. */
WG__ALWAYS_INLINE void odd_butterfly(const int r, const real *w, int64_t step,
                                     const complex_vector *x, complex_vector *y) {
    complex_vector sums[WG__FFT_MOST_RADIX / 2 + 1], differences[WG__FFT_MOST_RADIX / 2 + 1];
    y[0] = x[0];
    for (int j = 1; j <= r / 2; j++) {
        sums[j] = plus(x[j], x[r - j]);
        differences[j] = minus(x[j], x[r - j]);
        y[0] = plus(y[0], sums[j]);
    }
    for (int k = 1; k <= r / 2; k++) {
        complex_vector even = x[0], odd = {{0}, {0}};
        for (int j = 1; j <= r / 2; j++) {
            const real *at = w + 2 * step * (j * k % r);
            even.re += sums[j].re * at[0];
            even.im += sums[j].im * at[0];
            odd.re += differences[j].re * at[1];
            odd.im += differences[j].im * at[1];
        }
        y[k] = plus(even, turned(odd));
        y[r - k] = minus(even, turned(odd));
    }
}

WG__ALWAYS_INLINE void butterfly(const int r, const real *w, int64_t step, const complex_vector *x,
                                 complex_vector *y) {
    if (r == 2) {
        y[0] = plus(x[0], x[1]);
        y[1] = minus(x[0], x[1]);
    } else if (r == 4) {
        const complex_vector a = plus(x[0], x[2]), b = minus(x[0], x[2]);
        const complex_vector c = plus(x[1], x[3]), d = turned(minus(x[1], x[3]));
        y[0] = plus(a, c);
        y[1] = minus(b, d);
        y[2] = minus(a, c);
        y[3] = plus(b, d);
    } else
        odd_butterfly(r, w, step, x, y);
}

/* ---- Passes ---- */

/* `twiddle` is the distance, in pairs of `w`, from one power of w^(p s) to the next; 0 for p = 0.
 */
WG__ALWAYS_INLINE void pass_group(const int r, const real *w, int64_t step, int64_t twiddle,
                                  int64_t s, int64_t distance, const real *x, real *y) {
    complex_vector in[WG__FFT_MOST_RADIX], out[WG__FFT_MOST_RADIX];
    for (int64_t q = 0; q < s; q++) {
        in[0] = load_complex(x, q);
        for (int i = 1; i < r; i++)
            in[i] = load_complex(x, q + distance * i);
        butterfly(r, w, step, in, out);
        store_complex(y, q, out[0]);
        for (int j = 1; j < r; j++)
            store_complex(y, q + s * j, twiddle ? times(out[j], w + 2 * twiddle * j) : out[j]);
    }
}

WG__ALWAYS_INLINE void pass(const int r, const wg__fft_plan *plan, int64_t m, int64_t s,
                            const real *x, real *y) {
    const real *w = plan->twiddles;
    const int64_t step = plan->n / r * plan->step;
    pass_group(r, w, step, 0, s, s * m, x, y);
    for (int64_t p = 1; p < m; p++)
        pass_group(r, w, step, p * s * plan->step, s, s * m, x + 2 * s * p * LANES,
                   y + 2 * s * r * p * LANES);
}

/* Returns the buffer that holds the result: x or y. */
static real *run_passes(const wg__fft_plan *plan, real *x, real *y) {
    int64_t s = 1;
    for (int i = 0; i < plan->passes; i++) {
        const int r = plan->radix[i];
        const int64_t m = plan->n / (s * r);
#define OF(radix) pass(radix, plan, m, s, x, y)
        switch (r) {
        default:
            OF(r);
            break;
            WG__CASE(2, OF) WG__CASE(3, OF) WG__CASE(4, OF) WG__CASE(5, OF)
        }
#undef OF
        s *= r;
        real *const result = y;
        y = x;
        x = result;
    }
    return x;
}

/* Sizes with a large prime factor, by Bluestein's algorithm: with the chirp c_j = e^(-pi i j^2 /
 * n), X_k = c_k sum_j (x_j c_j) conj(c_(k-j)), a convolution of the chirp's size. */
static real *run_transform(const wg__fft_plan *plan, real *x, real *y) {
    const wg__fft_plan *longer = plan->convolution;
    if (!longer)
        return run_passes(plan, x, y);
    const real *chirp = plan->chirp, *spectrum = plan->spectrum;
    for (int64_t j = 0; j < plan->n; j++)
        store_complex(x, j, times(load_complex(x, j), chirp + 2 * j));
    memset(x + 2 * plan->n * LANES, 0, (size_t)(2 * (longer->n - plan->n) * LANES) * sizeof *x);
    real *found = run_passes(longer, x, y), *other = found == x ? y : x;
    for (int64_t j = 0; j < longer->n; j++)
        store_complex(found, j, exchanged(times(load_complex(found, j), spectrum + 2 * j)));
    found = run_passes(longer, found, other);
    for (int64_t j = 0; j < plan->n; j++)
        store_complex(found, j, times(exchanged(load_complex(found, j)), chirp + 2 * j));
    return found;
}

/* ---- Loading and storing lines ---- */

/* Contiguous lines are transposed, LANES reals at a time. */
static void load_lines(const wg__fft_side *side, const real *x, int64_t lines, int64_t need,
                       real *to) {
    const int64_t count = side->count < need ? side->count : need;
    int64_t j = 0;
    if (LANES > 1 && side->step == 2 && side->imaginary == 1)
        for (; j + LANES / 2 <= count; j += LANES / 2) {
            vector v[LANES];
            for (int64_t l = 0; l < LANES; l++)
                v[l] = load(x + (l < lines ? l : lines - 1) * side->line + 2 * j);
            transpose_vectors(v);
            for (int64_t l = 0; l < LANES; l++)
                store(to + (2 * j + l) * LANES, v[l]);
        }
    for (; j < count; j++) {
        const real *from = x + j * side->step;
        real *re = to + 2 * j * LANES, *im = re + LANES;
        if (lines == LANES && side->line == 2 && side->imaginary == 1)
            for (int l = 0; l < LANES; l++) {
                re[l] = from[2 * l];
                im[l] = from[2 * l + 1];
            }
        else
            for (int64_t l = 0; l < LANES; l++) {
                re[l] = l < lines ? from[l * side->line] : 0;
                im[l] = l < lines && side->imaginary ? from[l * side->line + side->imaginary] : 0;
            }
    }
    if (j < need)
        memset(to + 2 * j * LANES, 0, (size_t)(2 * (need - j) * LANES) * sizeof *to);
}

static void store_lines(const wg__fft_side *side, const real *from, int64_t lines, bool exchange,
                        real scale, real *y) {
    int64_t j = 0;
    if (LANES > 1 && side->step == 2 && side->imaginary == 1)
        for (; j + LANES / 2 <= side->count; j += LANES / 2) {
            vector v[LANES];
            for (int64_t l = 0; l < LANES; l++)
                v[l] = scale * load(from + (2 * j + (exchange ? l ^ 1 : l)) * LANES);
            transpose_vectors(v);
            for (int64_t l = 0; l < lines; l++)
                store(y + l * side->line + 2 * j, v[l]);
        }
    for (; j < side->count; j++) {
        real *to = y + j * side->step;
        const real *re = from + (2 * j + exchange) * LANES,
                   *im = from + (2 * j + !exchange) * LANES;
        if (lines == LANES && side->line == 2 && side->imaginary == 1)
            for (int l = 0; l < LANES; l++) {
                to[2 * l] = scale * re[l];
                to[2 * l + 1] = scale * im[l];
            }
        else
            for (int64_t l = 0; l < lines; l++) {
                to[l * side->line] = scale * re[l];
                if (side->imaginary)
                    to[l * side->line + side->imaginary] = scale * im[l];
            }
    }
}

/* ---- Transforms of real lines, as complex ones of half the size ---- */

/* Of z_j = x_2j + i x_(2j+1), of h elements: X_k = E_k + w^k O_k for k = 0 to h, with E and O the
 * transforms of the even and the odd elements. */
static void split_halves(int64_t h, const real *w, const real *z, real *x) {
    const real half = (real)0.5;
    for (int64_t k = 0; k <= h; k++) {
        const complex_vector a = load_complex(z, k == h ? 0 : k),
                             b = load_complex(z, k == 0 ? 0 : h - k);
        const complex_vector even = {half * (a.re + b.re), half * (a.im - b.im)};
        const complex_vector odd = {half * (a.im + b.im), half * (b.re - a.re)};
        store_complex(x, k, plus(even, times(odd, w + 2 * k)));
    }
}

/* The inverse of split_halves, for X_0 to X_h. Real and imaginary parts are exchanged for the
 * inverse transform. */
static void join_halves(int64_t h, const real *w, real *x, real *z) {
    store(x + LANES, (vector){0});
    store(x + (2 * h + 1) * LANES, (vector){0});
    for (int64_t k = 0; k < h; k++) {
        const complex_vector a = load_complex(x, k), b = load_complex(x, h - k);
        const complex_vector even = {a.re + b.re, a.im - b.im};
        /* Times the conjugate of w^k; products in the order of `times`. */
        const vector re = a.re - b.re, im = a.im + b.im;
        const real *at = w + 2 * k;
        const complex_vector odd = {re * at[0] + im * at[1], im * at[0] + re * -at[1]};
        store_complex(z, k, exchanged(plus(even, turned(odd))));
    }
}

/* For an odd n: sets the elements beyond the middle to the conjugates of the earlier elements. */
static void mirror(int64_t n, real *x) {
    store(x + LANES, (vector){0});
    store_complex(x, 0, exchanged(load_complex(x, 0)));
    for (int64_t k = 1; k <= n / 2; k++) {
        const complex_vector a = load_complex(x, k);
        store_complex(x, k, exchanged(a));
        store_complex(x, n - k, (complex_vector){-a.im, a.re});
    }
}

static void fft_groups(const wg__fft *job, int64_t begin, int64_t end, void *room) {
    const wg__fft_plan *plan = job->plan;
    const int64_t per_outer = (job->inner + LANES - 1) / LANES, n = plan->n;
    real *a = room, *b = a + 2 * LANES * job->room;
    for (int64_t group = begin; group < end; group++) {
        const int64_t outer = group / per_outer, first = group % per_outer * LANES;
        const int64_t lines = job->inner - first < LANES ? job->inner - first : LANES;
        const real *x =
            (const real *)job->from.data + outer * job->from.outer + first * job->from.line;
        real *y = (real *)job->to.data + outer * job->to.outer + first * job->to.line;
        bool exchange = job->kind != WG__FFT_FORWARD && job->kind != WG__FFT_REAL;
        real *found = a;
        load_lines(&job->from, x, lines, job->kind == WG__FFT_HERMITIAN ? plan->real / 2 + 1 : n,
                   a);
        if (job->kind == WG__FFT_HERMITIAN && plan->halves) {
            join_halves(n, plan->halves, a, b);
            found = run_transform(plan, b, a);
        } else {
            if (job->kind == WG__FFT_HERMITIAN)
                mirror(n, a);
            else if (exchange)
                for (int64_t j = 0; j < n; j++)
                    store_complex(a, j, exchanged(load_complex(a, j)));
            found = run_transform(plan, a, b);
        }
        if (job->kind == WG__FFT_REAL && plan->halves) {
            real *const split = found == a ? b : a;
            split_halves(n, plan->halves, found, split);
            found = split;
        }
        store_lines(&job->to, found, lines, exchange, (real)job->scale, y);
    }
}
