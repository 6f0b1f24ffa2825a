/* Activation functions, their derivatives, and the gated units made of them (simd.h lists them). */

/* As WG__MAP and WG__VJP of functions.h, for functions of two plain numbers a and b beside x. */
#define WG__MAP_BY(name, formula)                                                                  \
    __attribute__((noinline)) static void name##_blocks(int64_t blocks, real a, real b,            \
                                                        const real *from, real *to) {              \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < blocks; i++) {                                                     \
            vector x = load(from + i * LANES);                                                     \
            store(to + i * LANES, formula);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void map_##name(int64_t n, double a, double b, const void *x, void *y) {                \
        int64_t blocks = n / LANES, rest = n % LANES;                                              \
        name##_blocks(blocks, (real)a, (real)b, x, y);                                             \
        if (rest) {                                                                                \
            real padded[LANES] = {0};                                                              \
            memcpy(padded, (const real *)x + blocks * LANES, (size_t)rest * sizeof(real));         \
            name##_blocks(1, (real)a, (real)b, padded, padded);                                    \
            memcpy((real *)y + blocks * LANES, padded, (size_t)rest * sizeof(real));               \
        }                                                                                          \
    }

#define WG__VJP_BY(name, formula)                                                                  \
    __attribute__((noinline)) static void name##_vjp_blocks(                                       \
        int64_t blocks, real a, real b, const real *from, const real *from_dy, real *to) {         \
        (void)a, (void)b;                                                                          \
        for (int64_t i = 0; i < blocks; i++) {                                                     \
            vector x = load(from + i * LANES), dy = load(from_dy + i * LANES);                     \
            store(to + i * LANES, formula);                                                        \
        }                                                                                          \
    }                                                                                              \
    static void vjp_##name(int64_t n, double a, double b, const void *x, const void *dy,           \
                           void *dx) {                                                             \
        int64_t blocks = n / LANES, rest = n % LANES;                                              \
        name##_vjp_blocks(blocks, (real)a, (real)b, x, dy, dx);                                    \
        if (rest) {                                                                                \
            real padded_x[LANES] = {0}, padded_dy[LANES] = {0};                                    \
            memcpy(padded_x, (const real *)x + blocks * LANES, (size_t)rest * sizeof(real));       \
            memcpy(padded_dy, (const real *)dy + blocks * LANES, (size_t)rest * sizeof(real));     \
            name##_vjp_blocks(1, (real)a, (real)b, padded_x, padded_dy, padded_dy);                \
            memcpy((real *)dx + blocks * LANES, padded_dy, (size_t)rest * sizeof(real));           \
        }                                                                                          \
    }

static inline vector all(real value) {
    return value + (vector){0};
}

static inline vector magnitude(vector x) {
    return choose(x < all(0), -x, x);
}

/* x limited to [low, high]; NaN stays. */
static inline vector limited(vector x, real low, real high) {
    return choose(x < all(low), all(low), choose(x > all(high), all(high), x));
}

/* log(1 + e^x), without overflow and, far below 0, without loss of digits. */
static inline vector softplus(vector x) {
    return choose(x > all(0), x, all(0)) + vector_log1p(vector_exp(-magnitude(x)));
}

/* mish = x t, where with e = e^x and n = e (e + 2)
 *
 *     t = tanh(log(1 + e)) = n / (n + 2)      t' = 4 e (1 + e) / (n + 2)^2
 *
 * Beyond 24, t is 1 and t' is 0 in either dtype. */
static inline vector mish(vector x) {
    vector e = vector_exp(choose(x > all(24), all(24), x)), n = e * (e + (real)2);
    return x * (n / (n + (real)2));
}

static inline vector mish_slope(vector x) {
    vector e = vector_exp(choose(x > all(24), all(24), x)), n = e * (e + (real)2);
    vector down = (real)1 / (n + (real)2);
    vector slope = (real)4 * (e * down) * (((real)1 + e) * down);
    return n * down + x * choose(x > all(24), all(0), slope);
}

WG__MAP(log_sigmoid, -softplus(-x))
WG__MAP(mish, mish(x))
WG__MAP(hardsigmoid, limited(x + (real)3, 0, 6) / (real)6)
WG__MAP(hardswish, x *limited(x + (real)3, 0, 6) / (real)6)

WG__VJP(log_sigmoid, (dy * logistic_of(x).rest))
WG__VJP(mish, (dy * mish_slope(x)))
WG__VJP(hardsigmoid, choose((x > all(-3)) & (x < all(3)), dy / (real)6, all(0)))
WG__VJP(hardswish,
        choose(x <= all(-3), all(0), choose(x >= all(3), dy, dy *(x / (real)3 + (real)0.5))))

/* leaky_relu: a is the slope below 0. elu: a is alpha. softplus: a is beta, b the threshold. */
WG__MAP_BY(leaky_relu, choose(x > all(0), x, a *x))
WG__MAP_BY(elu, choose(x > all(0), x, a *vector_expm1(x)))
WG__MAP_BY(softplus, choose(a *x > all(b), x, softplus(a *x) / a))

WG__VJP_BY(leaky_relu, choose(x > all(0), dy, a *dy))
WG__VJP_BY(elu, choose(x > all(0), dy, dy *a *vector_exp(x)))
WG__VJP_BY(softplus, choose(a *x > all(b), dy, dy *logistic_of(a *x).at))

/* ---- Gates: y = f(gate) value.   d gate = dy value f'(gate), d value = dy f(gate). ---- */

typedef struct gated {
    vector f, slope;
} gated;

static inline gated glu_gate(vector x) {
    logistic s = logistic_of(x);
    return (gated){s.at, s.at * s.rest};
}

static inline gated swiglu_gate(vector x) {
    logistic s = logistic_of(x);
    return (gated){x * s.at, s.at * ((real)1 + x * s.rest)};
}

static inline gated geglu_gate(vector x) {
    normal p = standard_normal(x);
    return (gated){x * p.cdf, p.cdf + x * p.density};
}

static inline gated reglu_gate(vector x) {
    return (gated){choose(x <= all(0), all(0), x), choose(x <= all(0), all(0), all(1))};
}

WG__MAP(silu, swiglu_gate(x).f)
WG__VJP(silu, (dy * swiglu_gate(x).slope))

#define WG__GATE(name)                                                                             \
    __attribute__((noinline)) static void name##_blocks(int64_t blocks, const real *gate,          \
                                                        const real *value, real *y) {              \
        for (int64_t i = 0; i < blocks * LANES; i += LANES)                                        \
            store(y + i, load(value + i) * name##_gate(load(gate + i)).f);                         \
    }                                                                                              \
    __attribute__((noinline)) static void name##_vjp_blocks(int64_t blocks, const real *gate,      \
                                                            const real *value, const real *dy,     \
                                                            real *dgate, real *dvalue) {           \
        for (int64_t i = 0; i < blocks * LANES; i += LANES) {                                      \
            gated at = name##_gate(load(gate + i));                                                \
            vector g = load(dy + i), v = load(value + i);                                          \
            store(dgate + i, g * v * at.slope);                                                    \
            store(dvalue + i, g * at.f);                                                           \
        }                                                                                          \
    }                                                                                              \
    static void gate_##name(int64_t n, const void *gate, const void *value, void *y) {             \
        run_gate(n, gate, value, y, name##_blocks);                                                \
    }                                                                                              \
    static void gate_vjp_##name(int64_t n, const void *gate, const void *value, const void *dy,    \
                                void *dgate, void *dvalue) {                                       \
        run_gate_vjp(n, gate, value, dy, dgate, dvalue, name##_vjp_blocks);                        \
    }

typedef void (*gate_blocks)(int64_t blocks, const real *gate, const real *value, real *y);
typedef void (*gate_vjp_blocks)(int64_t blocks, const real *gate, const real *value, const real *dy,
                                real *dgate, real *dvalue);

static inline void run_gate(int64_t n, const real *gate, const real *value, real *y,
                            gate_blocks run) {
    int64_t blocks = n / LANES, whole = blocks * LANES, rest = n - whole;
    run(blocks, gate, value, y);
    if (rest) {
        real padded[2][LANES] = {{0}};
        const size_t bytes = (size_t)rest * sizeof(real);
        memcpy(padded[0], gate + whole, bytes);
        memcpy(padded[1], value + whole, bytes);
        run(1, padded[0], padded[1], padded[0]);
        memcpy(y + whole, padded[0], bytes);
    }
}

static inline void run_gate_vjp(int64_t n, const real *gate, const real *value, const real *dy,
                                real *dgate, real *dvalue, gate_vjp_blocks run) {
    int64_t blocks = n / LANES, whole = blocks * LANES, rest = n - whole;
    run(blocks, gate, value, dy, dgate, dvalue);
    if (rest) {
        real padded[3][LANES] = {{0}};
        const size_t bytes = (size_t)rest * sizeof(real);
        memcpy(padded[0], gate + whole, bytes);
        memcpy(padded[1], value + whole, bytes);
        memcpy(padded[2], dy + whole, bytes);
        run(1, padded[0], padded[1], padded[2], padded[0], padded[1]);
        memcpy(dgate + whole, padded[0], bytes);
        memcpy(dvalue + whole, padded[1], bytes);
    }
}

WG__GATE(glu)
WG__GATE(swiglu)
WG__GATE(geglu)
WG__GATE(reglu)
