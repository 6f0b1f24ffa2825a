/* Elementwise functions and their derivatives: the formulas of functions.def. */

static inline vector all(real value) {
    return value + (vector){0};
}

static inline vector magnitude(vector x) {
    return choose(x < all(0), -x, x);
}

static inline vector without_sign(vector x) {
    return (vector)((lanes)x & ~(lanes)-all(0));
}

static inline vector sign_of(vector x) {
    return choose(x > all(0), all(1), choose(x < all(0), all(-1), choose(x == x, all(0), x)));
}

static inline vector sigmoid(vector x) {
    return (real)1 / ((real)1 + vector_exp(-x));
}

#if WG__BITS == 32
typedef uint32_t words __attribute__((vector_size(WG__VECTOR_BYTES)));

/* With x = n log 2 + r, 2^n is made from its bits and e^r is a polynomial of the Cephes library.
 * Adding 1.5 2^23 rounds to an integer and leaves it in the low bits. For x below the limit the
 * exponent is meaningless; it is added in unsigned arithmetic, which may wrap around. */
typedef struct exponential {
    vector part;    /* e^r - 1 */
    words exponent; /* n, in the bits of the exponent */
} exponential;

static inline exponential reduce_exponential(vector x) {
    const real rounding = 0x1.8p23f;
    const vector shifted = x * (real)M_LOG2E + rounding, n = shifted - rounding;
    const vector r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    vector p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return (exponential){p * (r * r) + r, (words)shifted << 23};
}
#endif

/* e^x for x up to about 0, as weights and densities need it. The error is below 1.5 ulp; subnormal
 * results become 0. */
static inline vector exp_below(vector x) {
#if WG__BITS == 32
    const exponential e = reduce_exponential(x);
    const vector scaled = (vector)((words)(e.part + (real)1) + e.exponent);
    return choose(x < -87.33f + (vector){0}, (vector){0}, scaled);
#else
    return vector_exp(x);
#endif
}

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1) for x up to about 0, with an error below 1 ulp. */
static inline vector expm1_below(vector x) {
#if WG__BITS == 32
    const exponential e = reduce_exponential(x);
    const vector one = (real)1 + (vector){0}, scale = (vector)((words)one + e.exponent);
    return choose(x < -87.33f + (vector){0}, -one, scale * e.part + (scale - one));
#else
    return vector_expm1(x);
#endif
}

/* The standard normal distribution: Phi(x), and its density phi(x) = e^(-x^2 / 2) / sqrt(2 pi). */
typedef struct normal {
    vector cdf, density;
} normal;

#define INVERSE_SQRT_TWO_PI ((real)(0.5 * M_SQRT1_2 * M_2_SQRTPI))

#if WG__BITS == 32
/* e^(z^2) erfc(z) varies slowly: a polynomial in t = 1 / (1 + 0.42 z), fitted on 0 <= z <= 9.6
 * (beyond, the exponential is 0 in f32) by reweighted least squares to a relative error of 4e-8. */
static inline vector scaled_erfc(vector t) {
    static const real terms[] = {2.59417686e-05f, 0.236326731f,  0.243571847f,
                                 0.17730465f,     0.314209468f,  -0.203205817f,
                                 0.510328637f,    -0.356950778f, 0.0783893605f};
    vector scaled = terms[8] + (vector){0};
    for (int k = 7; k >= 0; k--)
        scaled = scaled * t + terms[k];
    return scaled;
}
#endif

/* In f32, SLEEF's erf would take most of the time of a GELU. With z = |x| / sqrt 2,
 *
 *     Phi(-|x|) = erfc(z) / 2 = e^(-x^2 / 2) (e^(z^2) erfc(z)) / 2
 *
 * The exponential serves the density, too. */
static inline normal standard_normal(vector x) {
#if WG__BITS == 32
    vector zero = {0};
    vector magnitude = choose(x < zero, -x, x);
    vector t = (real)1 / ((real)1 + (real)(0.42 * M_SQRT1_2) * magnitude);
    vector exponential = exp_below((real)-0.5 * x * x);
    vector tail = (real)0.5 * exponential * scaled_erfc(t);
    return (normal){choose(x > zero, (real)1 - tail, tail), INVERSE_SQRT_TWO_PI * exponential};
#else
    return (normal){(real)0.5 * ((real)1 + vector_erf(x * (real)M_SQRT1_2)),
                    INVERSE_SQRT_TWO_PI * vector_exp((real)-0.5 * x * x)};
#endif
}

/* In f32, below 1, x plus x times a polynomial in x^2 (a Chebyshev fit to a relative error of
 * 2e-9); from 1 on, 1 - erfc |x|. */
static inline vector erf_of(vector x) {
#if WG__BITS == 32
    static const real terms[] = {0.128379166f,   -0.37612626f,     0.112835787f,   -0.0268534441f,
                                 0.00518743694f, -0.000800070295f, 7.81714261e-05f};
    const vector zero = {0}, square = x * x, magnitude = choose(x < zero, -x, x);
    vector near = terms[6] + zero;
    for (int k = 5; k >= 0; k--)
        near = near * square + terms[k];
    const vector t = (real)1 / ((real)1 + (real)0.42 * magnitude);
    const vector far = (real)1 - exp_below(-square) * scaled_erfc(t);
    return choose(magnitude >= (real)1 + zero, choose(x < zero, -far, far), x + x * near);
#else
    return vector_erf(x);
#endif
}

static inline vector gelu_slope(vector x) {
    normal at = standard_normal(x);
    return at.cdf + x * at.density;
}

/* s = 1 / (1 + e^-x) and 1 - s, both to full precision for either sign of x. */
typedef struct logistic {
    vector at, rest;
} logistic;

static inline logistic logistic_of(vector x) {
    const vector zero = {0}, e = exp_below(choose(x < zero, x, -x));
    const vector large = (real)1 / ((real)1 + e), small = e * large;
    const lanes negative = x < zero;
    return (logistic){choose(negative, small, large), choose(negative, large, small)};
}

/* With u = sqrt(2/pi) (x + a x^3), a = 0.044715, and s = 1 / (1 + e^-2u), (1 + tanh u) / 2 is s. */
static inline logistic gelu_tanh_gate(vector x) {
    const real scale = (real)(2 * M_SQRT1_2 * M_2_SQRTPI), cubic = (real)0.044715;
    return logistic_of(scale * (x + cubic * x * x * x));
}

/* s + 2 x s (1 - s) sqrt(2/pi) (1 + 3 a x^2). For large |x|, where x^2 could overflow, the second
 * term is 0. */
static inline vector gelu_tanh_slope(vector x) {
    const real scale = (real)(2 * M_SQRT1_2 * M_2_SQRTPI), cubic = (real)(3 * 0.044715);
    const logistic s = gelu_tanh_gate(x);
    const vector second = x * (s.at * s.rest) * scale * ((real)1 + cubic * x * x);
    const vector flat = {0};
    return s.at + choose(x * x > (real)1e4, flat, second);
}

/* ---- Large arguments, where SLEEF's functions overflow although the result would not ---- */

/* e^|x| / 2, which is |sinh x| and cosh x for large |x|; a product of e^(|x|/2), which does not
 * overflow, with itself. */
static inline vector half_exp(vector x) {
    const vector root = vector_exp((real)0.5 * magnitude(x));
    return (real)0.5 * root * root;
}

#define FAR_EXPONENT ((real)(WG__BITS == 32 ? 88 : 709))

static inline vector sinh_anywhere(vector x) {
    const vector zero = {0}, near = vector_sinh(x);
    const lanes is_far = magnitude(x) > FAR_EXPONENT;
    if (!any(is_far))
        return near;
    const vector far = half_exp(x);
    return choose(is_far, choose(x < zero, -far, far), near);
}

static inline vector cosh_anywhere(vector x) {
    const vector near = vector_cosh(x);
    const lanes is_far = magnitude(x) > FAR_EXPONENT;
    return any(is_far) ? choose(is_far, half_exp(x), near) : near;
}

/* ln(2 |x|), which is asinh |x| and acosh x where x^2 would overflow. */
#define FAR_ROOT ((real)(WG__BITS == 32 ? 1e18 : 1e150))

static inline vector log_of_twice(vector x) {
    return vector_log(magnitude(x)) + (real)M_LN2;
}

static inline vector asinh_anywhere(vector x) {
    const vector zero = {0}, near = vector_asinh(x);
    const lanes is_far = magnitude(x) > FAR_ROOT;
    if (!any(is_far))
        return near;
    const vector far = log_of_twice(x);
    return choose(is_far, choose(x < zero, -far, far), near);
}

static inline vector acosh_anywhere(vector x) {
    const vector near = vector_acosh(x);
    const lanes is_far = x > FAR_ROOT;
    return any(is_far) ? choose(is_far, log_of_twice(x), near) : near;
}

#define FAR ((real)(WG__BITS == 32 ? 1e36 : 1e300))

static inline vector log1p_anywhere(vector x) {
    const vector near = vector_log1p(x);
    const lanes is_far = x > FAR;
    return any(is_far) ? choose(is_far, vector_log(x), near) : near;
}

/* For large x, the leading terms of Stirling's formula; its later terms are below the rounding
 * error. */
static inline vector lgamma_anywhere(vector x) {
    const vector near = vector_lgamma(x);
    const lanes is_far = x > FAR;
    return any(is_far) ? choose(is_far, x * (vector_log(x) - (real)1), near) : near;
}

/* ---- fmod and remainder ---- */

#if WG__BITS == 32
#define REAL_FMOD fmodf
#else
#define REAL_FMOD fmod
#endif

#if defined(__FMA__)
/* a - q b, rounded once. */
static inline vector minus_product(vector a, vector q, vector b) {
#if defined(__AVX512F__) && WG__BITS == 32
    return (vector)_mm512_fnmadd_ps((__m512)q, (__m512)b, (__m512)a);
#elif defined(__AVX512F__)
    return (vector)_mm512_fnmadd_pd((__m512d)q, (__m512d)b, (__m512d)a);
#elif WG__BITS == 32
    return (vector)_mm256_fnmadd_ps((__m256)q, (__m256)b, (__m256)a);
#else
    return (vector)_mm256_fnmadd_pd((__m256d)q, (__m256d)b, (__m256d)a);
#endif
}

#endif

/* Exact, as C's. With q = |a| / |b| rounded to an integer, which is the quotient or one more, r =
 * |a| - q |b| lies between -|b| and |b| and is a multiple of the last place of the smaller operand,
 * so it is representable, and so is r + |b|. C's function computes larger quotients and special
 * operands. */
static inline vector vector_fmod(vector a, vector b) {
#if defined(__FMA__)
    const real rounding = WG__BITS == 32 ? (real)0x1p23 : (real)0x1p52;
    const real limit = WG__BITS == 32 ? (real)0x1p21 : (real)0x1p50;
    const vector zero = {0}, dividend = magnitude(a), divisor = magnitude(b);
    const vector quotient = dividend / divisor;
    if (!any(~((quotient < limit) & (divisor < (real)INFINITY)))) {
        const vector rest = minus_product(dividend, (quotient + rounding) - rounding, divisor);
        const vector positive = choose(rest < zero, rest + divisor, rest);
        const lanes sign = (lanes)a & (lanes)(-zero);
        return (vector)((lanes)positive | sign);
    }
#endif
    vector remainders = {0};
    for (int i = 0; i < LANES; i++)
        remainders[i] = REAL_FMOD(a[i], b[i]);
    return remainders;
}

/* With the sign of b. */
static inline vector vector_remainder(vector a, vector b) {
    const vector zero = {0}, rest = vector_fmod(a, b);
    return choose((rest != zero) & ((rest < zero) ^ (b < zero)), rest + b, rest);
}

/* ---- digamma and polygamma, in double precision alone: rounded to f32 they are exact there ----
 */

#if WG__BITS == 64
/* For x > 0: the recurrence psi(x) = psi(x + 1) - 1/x raises x to 10 or more, from where the
 * asymptotic series in B_2k / (2k x^2k), with Bernoulli numbers B, is exact. 1/x and 1/(x + 1) are
 * one fraction. */
__attribute__((noinline)) static vector digamma_of_positive(vector x) {
    static const real terms[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                 1. / 132, -691. / 32760, 1. / 12};
    vector sum = {0}, series = sum;
    for (int k = 0; k < 10; k += 2) {
        const lanes low = x < (real)10;
        if (!any(low))
            break;
        const vector both = ((real)2 * x + (real)1) / (x * (x + (real)1));
        sum += (vector)((lanes)both & low);
        x = choose(low, x + (real)2, x);
    }
    const vector inverse = (real)1 / x, square = inverse * inverse;
    for (int k = (int)(sizeof terms / sizeof *terms) - 1; k >= 0; k--)
        series = (series + terms[k]) * square;
    return (vector_log(x) - sum) - (real)0.5 * inverse - series;
}

/* Below 0, reflection: psi(1 - x) - pi / tan(pi x). The tangent has period 1 in x, so the distance
 * to the nearest integer, which is exact, replaces x. */
static inline vector vector_digamma(vector x) {
    const vector zero = {0};
    const lanes mirrored = x <= zero;
    if (!any(mirrored))
        return digamma_of_positive(x);
    const vector y = digamma_of_positive(choose(mirrored, (real)1 - x, x));
    const vector offset = x - vector_rint(x);
    const vector below = y - (real)M_PI / vector_tan((real)M_PI * offset);
    const vector at_zero =
        (vector)((lanes)((real)INFINITY + zero) | ((lanes)(-x) & (lanes)(-zero)));
    const vector pole = choose(x == zero, at_zero, (real)NAN + zero);
    return choose(mirrored, choose(offset == zero, pole, below), y);
}

/* x^-s from 1 / x, for s from 1 on. */
static inline vector power_of_inverse(vector inverse, int s) {
    const vector square = inverse * inverse;
    return s == 1   ? inverse
           : s == 2 ? square
           : s == 3 ? square * inverse
           : s == 4 ? square * square
                    : vector_pow(inverse, all((real)s));
}

/* Hurwitz's zeta function, the sum of (x + k)^-s from k = 0, for x > 0 and s from 2 on. Terms are
 * added until the Euler-Maclaurin formula, in B_2k / (2k)! s (s + 1)...(s + 2k - 2) x^(-s - 2k +
 * 1), gives the remaining sum to double precision. */
__attribute__((noinline)) static vector zeta_of_positive(int s, vector x) {
    static const real terms[] = {1. / 12,
                                 -1. / 720,
                                 1. / 30240,
                                 -1. / 1209600,
                                 1. / 47900160,
                                 -691. / 1307674368000,
                                 1. / 74724249600.,
                                 -3617. / 10670622842880000.,
                                 43867. / 5109094217170944000.};
    enum { TERMS = sizeof terms / sizeof *terms };
    real factors[TERMS], rising = (real)s;
    for (int k = 0; k < TERMS; k++) {
        factors[k] = terms[k] * rising;
        rising *= (real)(s + 2 * k + 1) * (real)(s + 2 * k + 2);
    }
    vector sum = {0}, series = sum;
    for (int k = 0; k < 10 + s; k++) {
        const lanes low = x < (real)(10 + s);
        if (!any(low))
            break;
        const vector term = power_of_inverse((real)1 / x, s);
        sum += (vector)((lanes)term & low);
        x = choose(low, x + (real)1, x);
    }
    const vector inverse = (real)1 / x, square = inverse * inverse;
    const vector power = power_of_inverse(inverse, s);
    for (int k = TERMS - 1; k >= 0; k--)
        series = series * square + factors[k];
    sum += power_of_inverse(inverse, s - 1) / (real)(s - 1) + (real)0.5 * power;
    return sum + series * power * inverse;
}

/* For negative x the terms lie on both sides of 0. Those on the left are at x, x + 1, ..., -left,
 * where `left` is the distance from x to the next integer. */
static inline vector zeta(int s, vector x) {
    const vector zero = {0};
    const lanes negative = x <= zero;
    if (!any(negative))
        return zeta_of_positive(s, x);
    const vector one = (real)1 + zero, right = x - vector_floor(x), left = vector_ceil(x) - x;
    const lanes inside = negative & (right != zero);
    const vector mirrored = zeta_of_positive(s, choose(inside, left, one)) -
                            zeta_of_positive(s, choose(inside, one - x, one));
    const vector y = zeta_of_positive(s, choose(inside, right, choose(negative, one, x)));
    const vector both = y + (s % 2 ? -mirrored : mirrored);
    const vector pole = choose(x < (real)-INFINITY / 2, (real)NAN + zero, (real)INFINITY + zero);
    return choose(inside, both, choose(negative, pole, y));
}

/* (-1)^(n+1) n! zeta(n + 1, x), and digamma for n = 0. From n = 171 on n! is infinite, so orders
 * above 1000 are computed as 1000 or 1001. */
static inline vector polygamma_of(int n, vector x) {
    real size = n % 2 ? 1 : -1;
    n = n > 1001 ? 1000 + n % 2 : n;
    for (int k = 2; k <= n; k++)
        size *= (real)k;
    return n == 0 ? vector_digamma(x) : size * zeta(n + 1, x);
}
#endif

/* max + log(1 + e^-|a - b|). The case a = b also covers equal infinities, whose difference is
 * NaN. */
static inline vector logaddexp(vector a, vector b) {
    const vector apart = choose(a > b, a, b) + vector_log1p(vector_exp(-magnitude(a - b)));
    return choose(a == b, a + (real)M_LN2, apart);
}

static inline vector xlogy(vector a, vector b) {
    const vector zero = {0};
    return choose(b != b, b, choose(a == zero, zero, a * vector_log(b)));
}

/* ---- Activations ---- */

/* x limited to [low, high]; NaN stays. */
static inline vector limited(vector x, real low, real high) {
    return choose(x < all(low), all(low), choose(x > all(high), all(high), x));
}

/* log(1 + e^x), without overflow and, for x far below 0, without loss of precision. */
static inline vector softplus(vector x) {
    return choose(x > all(0), x, all(0)) + vector_log1p(vector_exp(-magnitude(x)));
}

/* mish(x) = x t. With e = e^x and n = e (e + 2),
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

#if WG__BITS == 64
/* Box and Muller's two normals of n pairs of uniform numbers in [0, 1), written over them:
 * sqrt(-2 log(1 - u)) times cos(2 pi v) and sin(2 pi v). Quarters of a turn are subtracted from v
 * exactly; fdlibm's polynomials give sin and cos of the remaining angle, at most an eighth of a
 * turn. */
__attribute__((noinline)) static void normal_blocks(int64_t blocks, real *u, real *v) {
    static const real sines[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                 -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                 -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    static const real cosines[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                   2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                   2.08757232129817482790e-09, -1.13596475577881948265e-11};
    const real rounding = (real)0x1.8p52;
    for (int64_t i = 0; i < blocks; i++) {
        const vector one = (real)1 + (vector){0}, turn = load(v + i * LANES) * (real)4;
        const vector radius = square_root((real)-2 * vector_log(one - load(u + i * LANES)));
        const vector shifted = turn + rounding;
        const lanes quarter = (lanes)shifted & 3;
        const vector x = (turn - (shifted - rounding)) * (real)M_PI_2, square = x * x;
        vector s = sines[5] + (vector){0}, c = cosines[5] + (vector){0};
        for (int k = 4; k >= 0; k--) {
            s = s * square + sines[k];
            c = c * square + cosines[k];
        }
        s = x + x * square * s;
        c = one - (real)0.5 * square + square * square * c;
        const lanes odd = (quarter & 1) != 0, opposite = (quarter & 2) != 0;
        const vector cosine = choose(odd, -s, c), sine = choose(odd, c, s);
        store(u + i * LANES, radius * choose(opposite, -cosine, cosine));
        store(v + i * LANES, radius * choose(opposite, -sine, sine));
    }
}

static void normal_pairs(int64_t n, void *u, void *v) {
    const int64_t blocks = n / LANES, rest = n % LANES;
    normal_blocks(blocks, u, v);
    if (rest) {
        real padded[2][LANES] = {{0}};
        memcpy(padded[0], (real *)u + blocks * LANES, (size_t)rest * sizeof(real));
        memcpy(padded[1], (real *)v + blocks * LANES, (size_t)rest * sizeof(real));
        normal_blocks(1, padded[0], padded[1]);
        memcpy((real *)u + blocks * LANES, padded[0], (size_t)rest * sizeof(real));
        memcpy((real *)v + blocks * LANES, padded[1], (size_t)rest * sizeof(real));
    }
}
#endif

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

/* ---- Cross entropy of a logit x and a target t: y = t log(1 + e^-x) + (1 - t) log(1 + e^x). Both
 * logarithms need log(1 + e^-|x|). dx = dy ((1 - t) sigmoid(x) - t sigmoid(-x)), dt = -dy x. ----
 */

static inline vector bce(vector x, vector t) {
    const vector flat = vector_log1p(vector_exp(-magnitude(x)));
    const lanes positive = x > all(0);
    return t * (choose(positive, all(0), -x) + flat) +
           ((real)1 - t) * (choose(positive, x, all(0)) + flat);
}

/* ---- The slope dx/da of gamma samples by their concentration, for tensors of f32. It is computed
 * in f64, as in ops/distributions/gamma_slope.c, but the expansions end where the result is exact
 * to 1e-8, less than half the distance of two numbers of f32. ---- */

#if WG__BITS == 64

/* Most terms of an expansion; a concentration of a takes about 7 sqrt(a). */
enum { WG__SLOPE_TERMS = 1000000 };

/* By the series S = sum_k x^k / ((a + 1) ... (a + k)). Each lane stops when its terms have become
 * small, so its bits do not depend on its neighbours. */
static inline vector slope_by_series(vector a, vector x) {
    vector term = all(1), slope = all(0), sum = term, sum_of_slopes = slope;
    for (int k = 1; k < WG__SLOPE_TERMS; k++) {
        const vector inverse = (real)1 / (a + (real)k), ratio = x * inverse;
        term = term * ratio;
        slope = slope * ratio + -term * inverse;
        sum += term;
        sum_of_slopes += slope;
        const lanes goes_on = (term > (real)1e-10 * sum) | (slope < (real)1e-10 * sum_of_slopes);
        if (!any(goes_on))
            break;
        term = choose(goes_on, term, all(0));
        slope = choose(goes_on, slope, all(0));
    }
    const vector log_ratio = digamma_of_positive(a + (real)1) - vector_log(x);
    return x / a * (log_ratio * sum - sum_of_slopes);
}

/* By the continued fraction h. Lentz's method keeps c, 1 / c and d, and their derivatives by a. */
static inline vector slope_by_fraction(vector a, vector x) {
    vector b = x + (real)1 - a, d = (real)1 / b, d_slope = d * d, h = d, h_slope = d_slope;
    vector inverse_c = all(0), inverse_c_slope = inverse_c;
    const vector least = (real)1e-3 / square_root(x);
    lanes goes_on = x == x;
    for (int k = 1; k < WG__SLOPE_TERMS && any(goes_on); k++) {
        const vector factor = (real)k * (a - (real)k);
        b += (real)2;
        const vector c = factor * inverse_c + b, e = factor * d + b;
        const vector c_slope = factor * inverse_c_slope + (real)k * inverse_c - (real)1;
        const vector e_slope = factor * d_slope + (real)k * d - (real)1;
        inverse_c = (real)1 / c;
        inverse_c_slope = -c_slope * inverse_c * inverse_c;
        d = (real)1 / e;
        d_slope = -e_slope * d * d;
        const vector step = c * d, step_slope = c * d_slope + c_slope * d;
        const vector change = h * step_slope;
        h_slope = choose(goes_on, change + h_slope * step, h_slope);
        h = choose(goes_on, h * step, h);
        goes_on &= (magnitude(step - (real)1) >= (real)1e-9) |
                   (magnitude(change) >= (real)1e-9 * (magnitude(h_slope) + least * h));
    }
    return x * ((vector_log(x) - digamma_of_positive(a)) * h + h_slope);
}

#else
/* Never called: tensors of f32 pass through the kernels of f64. */
#define vector_digamma(x) (x)
#define polygamma_of(n, x) (x)
#define slope_by_series(a, b) ((a) + (b))
#define slope_by_fraction(a, b) ((a) + (b))
#endif

/* ---- The kernels ---- */

/* A kernel of functions.def, on whole vectors. Each formula is compiled once: the compiler might
 * contract the products and sums of two copies differently. */
__attribute__((noinline, flatten)) static void map_blocks(const wg__map *map, int64_t blocks,
                                                          const real *const *from,
                                                          real *const *to) {
    const real p = (real)map->p, q = (real)map->q;
    const real *const first = from[0], *const second = from[1], *const third = from[2];
    real *const result = to[0], *const other = to[1];
#define LOOP(KIND, ENUM, A, B, Y)                                                                  \
    case WG__MAP_NUMBER(KIND, ENUM):                                                               \
        for (int64_t i = 0; i < blocks * LANES; i += LANES) {                                      \
            const vector A = load(first + i), B = load(second + i);                                \
            store(result + i, Y);                                                                  \
        }                                                                                          \
        return;
#define VALUE(ENUM, Y)                                                                             \
    case WG__MAP_NUMBER(WG__VALUES, ENUM):                                                         \
        for (int64_t i = 0; i < blocks * LANES; i += LANES) {                                      \
            const vector x = load(first + i);                                                      \
            store(result + i, Y);                                                                  \
        }                                                                                          \
        return;
#define GATE(ENUM, NAME, GATED, ...)                                                               \
    LOOP(WG__PAIRS, ENUM, x, value, value *(GATED).f)                                              \
    case WG__MAP_NUMBER(WG__GATE_SLOPES, ENUM):                                                    \
        for (int64_t i = 0; i < blocks * LANES; i += LANES) {                                      \
            const vector x = load(first + i), value = load(second + i), dy = load(third + i);      \
            const gated at = GATED;                                                                \
            store(result + i, dy * value * at.slope);                                              \
            store(other + i, dy * at.f);                                                           \
        }                                                                                          \
        return;
#define FUNCTION(ENUM, NAME, Y, ...) VALUE(ENUM, Y)
#define SLOPED(ENUM, NAME, Y, SAVES, SLOPE, ...) KERNEL(ENUM, Y, SLOPE)
#define FUSED(ENUM, NAME, Y, SLOPE, ...) KERNEL(ENUM, Y, SLOPE)
#define KERNEL(ENUM, Y, SLOPE) VALUE(ENUM, Y) LOOP(WG__SLOPES, ENUM, x, dy, SLOPE)
#define PAIR(ENUM, Y) LOOP(WG__PAIRS, ENUM, a, b, Y)
    switch (WG__MAP_NUMBER(map->kind, map->function)) {
#include "tensor/functions.def"
    case WG__MAP_NUMBER(WG__GATE_SLOPES, WG__BCE):
        for (int64_t i = 0; i < blocks * LANES; i += LANES) {
            const vector x = load(first + i), t = load(second + i), dy = load(third + i);
            const logistic s = logistic_of(x);
            store(result + i, dy * (((real)1 - t) * s.at + -t * s.rest));
            store(other + i, -dy * x);
        }
        return;
    default:
        return;
    }
#undef LOOP
}

static void map_arrays(const wg__map *map, int64_t n, const void *const *x, void *const *y) {
    const int inputs = wg__map_inputs(map->kind), outputs = map->kind == WG__GATE_SLOPES ? 2 : 1;
    const int64_t whole = n - n % LANES;
    const real *from[3] = {x[0], inputs > 1 ? x[1] : NULL, inputs > 2 ? x[2] : NULL};
    real *to[2] = {y[0], outputs > 1 ? y[1] : NULL}, padded[3][LANES];
    if (whole > 0)
        map_blocks(map, n / LANES, from, to);
    if (whole == n)
        return;
    for (int i = 0; i < inputs; i++) {
        store(padded[i], load_part(from[i] + whole, n - whole, 0));
        from[i] = padded[i];
    }
    map_blocks(map, 1, from, (real *const[]){padded[0], padded[1]});
    for (int i = 0; i < outputs; i++)
        store_part(to[i] + whole, load(padded[i]), n - whole);
}
