/* Probability distributions (distributions.h): log densities, entropies and divergences, which are
 * composites of other ops, and samples. */
#include "tensor/distributions.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tensor/easy.h"
#include "tensor/ops/support.h"

#define LOG_2PI 1.8378770664093454835606594728112
#define LOG_PI 1.1447298858494001741434273513531

static wg_tensor *sum_last(wg_tensor *x) {
    return wg_sum(x, WG_DIMS(-1), false);
}

/* log B(a, b). */
static wg_tensor *log_beta(wg_tensor *a, wg_tensor *b) {
    return wg_sub(wg_add(wg_lgamma(a), wg_lgamma(b)), wg_lgamma(wg_add(a, b)));
}

/* ---- Records: composites of up to 4 operands ---- */

/* The values of an operand in samples. */
typedef enum kind {
    ANY,
    POSITIVE,
    SHARE,   /* 0.1 to 0.9 */
    BEFORE,  /* -2 to -1 */
    BETWEEN, /* 1 to 2 */
    BEYOND,  /* 3 to 4 */
    ROWS,
    SHARE_ROWS,
    POSITIVE_ROWS,
    IDS,
    TRIANGLE
} kind;

/* Makes an operand of a kind. Rows and triangles have one and two further axes of size 3. */
static wg_tensor *make(wg_generator *generator, kind kind, int ndim, const int64_t *shape) {
    int64_t rows[4] = {0};
    for (int i = 0; i < ndim; i++)
        rows[i] = shape[i];
    rows[ndim] = rows[ndim + 1] = 3;
    wg_tensor *x;
    switch (kind) {
    case POSITIVE:
        return wg__sample_positive(generator, ndim, shape);
    case SHARE:
        return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 0.8, 0.1);
    case BEFORE:
    case BETWEEN:
    case BEYOND:
        x = wg_rand(generator, WG_F64, ndim, shape);
        return wg_add_scalar(x, kind == BEFORE ? -2 : kind == BETWEEN ? 1 : 3);
    case ROWS:
        return wg_randn(generator, WG_F64, ndim + 1, rows);
    case POSITIVE_ROWS:
        return wg__sample_positive(generator, ndim + 1, rows);
    case SHARE_ROWS:
        return wg_softmax(wg_randn(generator, WG_F64, ndim + 1, rows), -1);
    case IDS:
        return wg_randint(generator, 0, 3, ndim, shape);
    case TRIANGLE:
        x = wg_tril(wg_randn(generator, WG_F64, ndim + 2, rows), -1);
        return wg_add(x, wg_diag_embed(wg__sample_positive(generator, ndim + 1, rows), 0, -2, -1));
    default:
        return wg_randn(generator, WG_F64, ndim, shape);
    }
}

/* Operands of equal shapes, operands that broadcast, and scalars. */
static int sample_kinds(int index, wg_generator *generator, wg_sample *sample, int count,
                        const kind *kinds) {
    static const struct {
        int ndim;
        int64_t shape[2];
    } shapes[][4] = {{{2, {2, 3}}, {2, {2, 3}}, {2, {2, 3}}, {2, {2, 3}}},
                     {{1, {3}}, {2, {2, 1}}, {1, {1}}, {1, {3}}},
                     {{0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}}};
    if (index >= (int)(sizeof shapes / sizeof *shapes))
        return 0;
    for (int i = 0; i < count; i++)
        sample->inputs[i] =
            make(generator, kinds[i], shapes[index][i].ndim, shapes[index][i].shape);
    return wg__sample_status(sample, count);
}

/* Casts bf16 operands to f32, so that roundings do not add up. Returns the common dtype of the
 * operands: the result is cast back if that is bf16. */
static wg_dtype widen_operands(const wg_call *call, wg_tensor **in) {
    wg_dtype dtype = WG_BOOL;
    for (int i = 0; i < call->input_count; i++) {
        dtype = wg__dtype_promote(dtype, call->input_specs[i].dtype);
        in[i] = wg__widen(call->inputs[i]);
    }
    return dtype;
}

/* The record NAME_op, whose decomposition is the function NAME of COUNT operands. KINDS lists the
 * kinds of operands in brackets. MASK has the bits of the differentiable operands. */
#define DEFINE(COUNT, NAME, MASK, KINDS, DOC)                                                      \
    static int NAME##_decompose(wg_call *call) {                                                   \
        wg_tensor *in[4];                                                                          \
        const wg_dtype dtype = widen_operands(call, in);                                           \
        return wg__set_output(call, wg__narrow(NAME ARGUMENTS_##COUNT, dtype));                    \
    }                                                                                              \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        static const kind kinds[] = WG__IN_BRACES KINDS;                                           \
        return sample_kinds(index, generator, sample, COUNT, kinds);                               \
    }                                                                                              \
    static const wg_op NAME##_op = {WG__OP(#NAME, COUNT, DOC), .differentiable = MASK,             \
                                    .decompose = NAME##_decompose, .sample = NAME##_sample};
#define ARGUMENTS_1 (in[0])
#define ARGUMENTS_2 (in[0], in[1])
#define ARGUMENTS_3 (in[0], in[1], in[2])
#define ARGUMENTS_4 (in[0], in[1], in[2], in[3])

static wg_tensor *normal_log_prob(wg_tensor *value, wg_tensor *mean, wg_tensor *std) {
    wg_tensor *z = wg_div(wg_sub(value, mean), std);
    return wg_add_scalar(wg_sub(wg_mul_scalar(wg_square(z), -0.5), wg_log(std)), -LOG_2PI / 2);
}

DEFINE(3, normal_log_prob, 7, (ANY, ANY, POSITIVE),
       "-((value - mean) / std)^2 / 2 - log(std sqrt(2 pi)).")

static wg_tensor *normal_entropy(wg_tensor *std) {
    return wg_add_scalar(wg_log(std), 0.5 + LOG_2PI / 2);
}

DEFINE(1, normal_entropy, 1, (POSITIVE), "log(std sqrt(2 pi e)).")

static wg_tensor *normal_kl(wg_tensor *p_mean, wg_tensor *p_std, wg_tensor *q_mean,
                            wg_tensor *q_std) {
    wg_tensor *ratio = wg_square(wg_div(p_std, q_std));
    wg_tensor *distance = wg_square(wg_div(wg_sub(p_mean, q_mean), q_std));
    wg_tensor *twice = wg_add_scalar(wg_sub(wg_add(ratio, distance), wg_log(ratio)), -1);
    return wg_mul_scalar(twice, 0.5);
}

DEFINE(4, normal_kl, 15, (ANY, POSITIVE, ANY, POSITIVE),
       "The divergence of normal distributions, log(q_std / p_std) + (p_std^2 + (p_mean - "
       "q_mean)^2) / (2 q_std^2) - 1/2.")

static wg_tensor *uniform_entropy(wg_tensor *low, wg_tensor *high) {
    return wg_log(wg_sub(high, low));
}

DEFINE(2, uniform_entropy, 3, (SHARE, BEYOND), "log(high - low).")

static wg_tensor *uniform_log_prob(wg_tensor *value, wg_tensor *low, wg_tensor *high) {
    wg_tensor *inside = wg_logical_and(wg_le(low, value), wg_lt(value, high));
    wg_tensor *size = uniform_entropy(low, high);
    wg_tensor *outside = wg_scalar(wg_tensor_dtype(size), -INFINITY);
    return wg_sub(wg_where(inside, wg_zeros_like(size), outside), size);
}

DEFINE(3, uniform_log_prob, 7, (BETWEEN, SHARE, BEYOND),
       "-log(high - low) for low <= value < high, -inf elsewhere.")

static wg_tensor *uniform_kl(wg_tensor *p_low, wg_tensor *p_high, wg_tensor *q_low,
                             wg_tensor *q_high) {
    wg_tensor *covered = wg_logical_and(wg_le(q_low, p_low), wg_ge(q_high, p_high));
    wg_tensor *sizes = wg_sub(uniform_entropy(q_low, q_high), uniform_entropy(p_low, p_high));
    return wg_where(covered, sizes, wg_scalar(wg_tensor_dtype(sizes), INFINITY));
}

DEFINE(4, uniform_kl, 15, (SHARE, BETWEEN, BEFORE, BEYOND),
       "The divergence of uniform distributions, log((q_high - q_low) / (p_high - p_low)), and "
       "inf where q does not cover p.")

static wg_tensor *exponential_log_prob(wg_tensor *value, wg_tensor *rate) {
    return wg_sub(wg_log(rate), wg_mul(rate, value));
}

DEFINE(2, exponential_log_prob, 3, (POSITIVE, POSITIVE), "log rate - rate value.")

static wg_tensor *exponential_entropy(wg_tensor *rate) {
    return wg_affine(wg_log(rate), -1, 1);
}

DEFINE(1, exponential_entropy, 1, (POSITIVE), "1 - log rate.")

static wg_tensor *exponential_kl(wg_tensor *p_rate, wg_tensor *q_rate) {
    wg_tensor *ratio = wg_div(q_rate, p_rate);
    return wg_add_scalar(wg_sub(ratio, wg_log(ratio)), -1);
}

DEFINE(2, exponential_kl, 3, (POSITIVE, POSITIVE),
       "The divergence of exponential distributions, r - log r - 1 with r = q_rate / p_rate.")

static wg_tensor *laplace_log_prob(wg_tensor *value, wg_tensor *mean, wg_tensor *scale) {
    return wg_neg(
        wg_add(wg_log(wg_mul_scalar(scale, 2)), wg_div(wg_abs(wg_sub(value, mean)), scale)));
}

DEFINE(3, laplace_log_prob, 7, (BEYOND, SHARE, POSITIVE),
       "-|value - mean| / scale - log(2 scale). A kink at the mean.")

static wg_tensor *laplace_entropy(wg_tensor *scale) {
    return wg_add_scalar(wg_log(wg_mul_scalar(scale, 2)), 1);
}

DEFINE(1, laplace_entropy, 1, (POSITIVE), "1 + log(2 scale).")

static wg_tensor *laplace_kl(wg_tensor *p_mean, wg_tensor *p_scale, wg_tensor *q_mean,
                             wg_tensor *q_scale) {
    wg_tensor *ratio = wg_div(p_scale, q_scale), *distance = wg_abs(wg_sub(p_mean, q_mean));
    wg_tensor *decay = wg_mul(ratio, wg_exp(wg_neg(wg_div(distance, p_scale))));
    return wg_add_scalar(wg_sub(wg_add(decay, wg_div(distance, q_scale)), wg_log(ratio)), -1);
}

DEFINE(4, laplace_kl, 15, (SHARE, POSITIVE, BEYOND, POSITIVE),
       "The divergence of Laplace distributions, r e^(-d / p_scale) + d / q_scale - log r - 1 "
       "with r = p_scale / q_scale and d = |p_mean - q_mean|.")

static wg_tensor *gamma_log_prob(wg_tensor *value, wg_tensor *concentration, wg_tensor *rate) {
    return wg_sub(wg_sub(wg_add(wg_xlogy(concentration, rate),
                                wg_xlogy(wg_add_scalar(concentration, -1), value)),
                         wg_mul(rate, value)),
                  wg_lgamma(concentration));
}

DEFINE(3, gamma_log_prob, 7, (POSITIVE, POSITIVE, POSITIVE),
       "a log rate + (a - 1) log value - rate value - lgamma(a) with a = concentration.")

static wg_tensor *gamma_entropy(wg_tensor *concentration, wg_tensor *rate) {
    wg_tensor *slope = wg_mul(wg_affine(concentration, -1, 1), wg_digamma(concentration));
    return wg_add(wg_sub(concentration, wg_log(rate)), wg_add(wg_lgamma(concentration), slope));
}

DEFINE(2, gamma_entropy, 3, (POSITIVE, POSITIVE),
       "a - log rate + lgamma(a) + (1 - a) digamma(a) with a = concentration.")

static wg_tensor *gamma_kl(wg_tensor *p_concentration, wg_tensor *p_rate,
                           wg_tensor *q_concentration, wg_tensor *q_rate) {
    wg_tensor *rates = wg_mul(q_concentration, wg_log(wg_div(p_rate, q_rate)));
    wg_tensor *gammas = wg_sub(wg_lgamma(q_concentration), wg_lgamma(p_concentration));
    wg_tensor *slope =
        wg_mul(wg_sub(p_concentration, q_concentration), wg_digamma(p_concentration));
    wg_tensor *means = wg_mul(wg_sub(q_rate, p_rate), wg_div(p_concentration, p_rate));
    return wg_add(wg_add(wg_add(rates, gammas), slope), means);
}

DEFINE(4, gamma_kl, 15, (POSITIVE, POSITIVE, POSITIVE, POSITIVE),
       "The divergence of gamma distributions.")

static wg_tensor *beta_log_prob(wg_tensor *value, wg_tensor *a, wg_tensor *b) {
    return wg_sub(wg_add(wg_xlogy(wg_add_scalar(a, -1), value),
                         wg_xlogy(wg_add_scalar(b, -1), wg_affine(value, -1, 1))),
                  log_beta(a, b));
}

DEFINE(3, beta_log_prob, 7, (SHARE, POSITIVE, POSITIVE),
       "(a - 1) log value + (b - 1) log(1 - value) - log B(a, b).")

static wg_tensor *beta_entropy(wg_tensor *a, wg_tensor *b) {
    wg_tensor *both = wg_add(a, b), *of_both = wg_mul(wg_add_scalar(both, -2), wg_digamma(both));
    wg_tensor *of_b = wg_mul(wg_add_scalar(b, -1), wg_digamma(b));
    wg_tensor *of_a = wg_mul(wg_add_scalar(a, -1), wg_digamma(a));
    return wg_add(wg_sub(wg_sub(log_beta(a, b), of_a), of_b), of_both);
}

DEFINE(2, beta_entropy, 3, (POSITIVE, POSITIVE),
       "log B(a, b) - (a - 1) digamma(a) - (b - 1) digamma(b) + (a + b - 2) digamma(a + b).")

static wg_tensor *beta_kl(wg_tensor *p_a, wg_tensor *p_b, wg_tensor *q_a, wg_tensor *q_b) {
    wg_tensor *p = wg_add(p_a, p_b), *q = wg_add(q_a, q_b);
    return wg_add(
        wg_add(wg_sub(log_beta(q_a, q_b), log_beta(p_a, p_b)),
               wg_mul(wg_sub(p_a, q_a), wg_digamma(p_a))),
        wg_add(wg_mul(wg_sub(p_b, q_b), wg_digamma(p_b)), wg_mul(wg_sub(q, p), wg_digamma(p))));
}

DEFINE(4, beta_kl, 15, (POSITIVE, POSITIVE, POSITIVE, POSITIVE),
       "The divergence of beta distributions.")

static wg_tensor *dirichlet_log_prob(wg_tensor *value, wg_tensor *concentration) {
    return wg_add(sum_last(wg_xlogy(wg_add_scalar(concentration, -1), value)),
                  wg_sub(wg_lgamma(sum_last(concentration)), sum_last(wg_lgamma(concentration))));
}

DEFINE(2, dirichlet_log_prob, 3, (SHARE_ROWS, POSITIVE_ROWS),
       "sum (a - 1) log value - log B(a) over the last axis, with a = concentration.")

static wg_tensor *dirichlet_entropy(wg_tensor *concentration) {
    if (concentration == NULL || concentration->spec.ndim < 1)
        return sum_last(concentration); /* reports the missing axis */
    const double size = (double)concentration->spec.shape[concentration->spec.ndim - 1];
    wg_tensor *total = sum_last(concentration);
    wg_tensor *slopes = wg_mul(wg_add_scalar(concentration, -1), wg_digamma(concentration));
    wg_tensor *minus = wg_neg(sum_last(slopes));
    wg_tensor *of_total = wg_mul(wg_add_scalar(total, -size), wg_digamma(total));
    wg_tensor *log_b = wg_sub(sum_last(wg_lgamma(concentration)), wg_lgamma(total));
    return wg_add(wg_add(log_b, of_total), minus);
}

DEFINE(1, dirichlet_entropy, 1, (POSITIVE_ROWS),
       "log B(a) + (sum a - K) digamma(sum a) - sum (a - 1) digamma(a) over the last axis, of size "
       "K.")

static wg_tensor *dirichlet_kl(wg_tensor *p_concentration, wg_tensor *q_concentration) {
    wg_tensor *p = wg_sum(p_concentration, WG_DIMS(-1), true), *q = sum_last(q_concentration);
    wg_tensor *totals = wg_sub(wg_lgamma(wg_squeeze(p, -1)), wg_lgamma(q));
    wg_tensor *gammas = wg_sub(wg_lgamma(p_concentration), wg_lgamma(q_concentration));
    wg_tensor *slopes = wg_mul(wg_sub(p_concentration, q_concentration),
                               wg_sub(wg_digamma(p_concentration), wg_digamma(p)));
    return wg_add(totals, sum_last(wg_sub(slopes, gammas)));
}

DEFINE(2, dirichlet_kl, 3, (POSITIVE_ROWS, POSITIVE_ROWS),
       "The divergence of Dirichlet distributions, whose concentrations lie on the last axis.")

/* log(sqrt(df) B(1/2, df/2)). */
static wg_tensor *student_t_size(wg_tensor *df) {
    wg_tensor *gammas = wg_sub(wg_lgamma(wg_mul_scalar(df, 0.5)),
                               wg_lgamma(wg_mul_scalar(wg_add_scalar(df, 1), 0.5)));
    return wg_add_scalar(wg_add(wg_mul_scalar(wg_log(df), 0.5), gammas), LOG_PI / 2);
}

static wg_tensor *student_t_log_prob(wg_tensor *value, wg_tensor *df, wg_tensor *mean,
                                     wg_tensor *scale) {
    wg_tensor *z = wg_div(wg_sub(value, mean), scale);
    wg_tensor *tail =
        wg_mul(wg_mul_scalar(wg_add_scalar(df, 1), 0.5), wg_log1p(wg_div(wg_square(z), df)));
    return wg_neg(wg_add(wg_add(tail, wg_log(scale)), student_t_size(df)));
}

DEFINE(4, student_t_log_prob, 15, (ANY, POSITIVE, ANY, POSITIVE),
       "-(df + 1)/2 log(1 + z^2 / df) - log(scale sqrt(df) B(1/2, df/2)) with z = (value - mean) / "
       "scale.")

static wg_tensor *student_t_entropy(wg_tensor *df, wg_tensor *scale) {
    wg_tensor *above = wg_mul_scalar(wg_add_scalar(df, 1), 0.5);
    wg_tensor *slopes =
        wg_mul(above, wg_sub(wg_digamma(above), wg_digamma(wg_mul_scalar(df, 0.5))));
    return wg_add(wg_add(wg_log(scale), slopes), student_t_size(df));
}

DEFINE(2, student_t_entropy, 3, (POSITIVE, POSITIVE),
       "log scale + (df + 1)/2 (digamma((df + 1)/2) - digamma(df/2)) + log(sqrt(df) B(1/2, "
       "df/2)).")

/* ---- Bernoulli: log(1 - p) = log_sigmoid(-logits) ---- */

static wg_tensor *bernoulli_log_prob(wg_tensor *value, wg_tensor *logits) {
    return wg_add(wg_mul(value, logits), wg_log_sigmoid(wg_neg(logits)));
}

DEFINE(2, bernoulli_log_prob, 3, (SHARE, ANY),
       "value log p + (1 - value) log(1 - p) with p = sigmoid(logits).")

static wg_tensor *bernoulli_entropy(wg_tensor *logits) {
    wg_tensor *log_none = wg_log_sigmoid(wg_neg(logits));
    return wg_neg(wg_add(wg_mul(wg_sigmoid(logits), logits), log_none));
}

DEFINE(1, bernoulli_entropy, 1, (ANY), "-p log p - (1 - p) log(1 - p) with p = sigmoid(logits).")

static wg_tensor *bernoulli_kl(wg_tensor *p_logits, wg_tensor *q_logits) {
    wg_tensor *q_none = wg_log_sigmoid(wg_neg(q_logits));
    wg_tensor *p_none = wg_log_sigmoid(wg_neg(p_logits));
    wg_tensor *odds = wg_mul(wg_sigmoid(p_logits), wg_sub(p_logits, q_logits));
    return wg_sub(wg_add(odds, p_none), q_none);
}

DEFINE(2, bernoulli_kl, 3, (ANY, ANY), "The divergence of Bernoulli distributions.")

static wg_tensor *categorical_log_prob(wg_tensor *value, wg_tensor *logits) {
    wg_tensor *log_p = wg_log_softmax(logits, -1);
    wg_tensor *index = wg_unsqueeze(value, -1);
    if (log_p == NULL || index == NULL)
        return NULL;
    /* take_along_axis wants equal ranks. */
    while (log_p && index->spec.ndim > log_p->spec.ndim)
        log_p = wg_unsqueeze(log_p, 0);
    while (log_p && index && index->spec.ndim < log_p->spec.ndim)
        index = wg_unsqueeze(index, 0);
    return wg_squeeze(wg_take_along_axis(log_p, -1, index), -1);
}

DEFINE(2, categorical_log_prob, 2, (IDS, ROWS),
       "log softmax(logits)[value] over the last axis. The value has no gradient.")

/* log softmax with -DBL_MAX instead of -inf, so that 0 times an element is 0. */
static wg_tensor *finite_log_softmax(wg_tensor *logits) {
    return wg_nan_to_num(wg_log_softmax(logits, -1), NAN, DBL_MAX, -DBL_MAX);
}

static wg_tensor *categorical_entropy(wg_tensor *logits) {
    wg_tensor *log_p = finite_log_softmax(logits);
    return wg_neg(sum_last(wg_mul(wg_exp(log_p), log_p)));
}

DEFINE(1, categorical_entropy, 1, (ROWS), "-sum p log p with p = softmax(logits).")

static wg_tensor *categorical_kl(wg_tensor *p_logits, wg_tensor *q_logits) {
    return sum_last(wg_mul(wg_softmax(p_logits, -1),
                           wg_sub(finite_log_softmax(p_logits), finite_log_softmax(q_logits))));
}

DEFINE(2, categorical_kl, 3, (ROWS, ROWS),
       "The divergence of categorical distributions, sum p (log p - log q) over the last axis.")

/* |L^-1 x|^2. If there is a single L, one call solves all rows of x. */
static wg_tensor *squared_distance(wg_tensor *scale_tril, wg_tensor *x) {
    const int ndim = x == NULL ? 0 : x->spec.ndim;
    if (scale_tril != NULL && scale_tril->spec.ndim == 2 && ndim > 1) {
        wg_tensor *columns = wg_transpose(wg_flatten(x, 0, ndim - 2), 0, 1);
        wg_tensor *z = wg_solve_triangular(scale_tril, columns, false, false, false);
        return wg_reshape(wg_sum(wg_square(z), WG_DIMS(0), false), ndim - 1, x->spec.shape);
    }
    wg_tensor *z = wg_solve_triangular(scale_tril, wg_unsqueeze(x, -1), false, false, false);
    return wg_sum(wg_square(z), WG_DIMS(-2, -1), false);
}

/* log det L. */
static wg_tensor *log_volume(wg_tensor *scale_tril) {
    return sum_last(wg_log(wg_diagonal(scale_tril, 0, -2, -1)));
}

static double size_of(const wg_tensor *scale_tril) {
    return scale_tril == NULL || scale_tril->spec.ndim < 1
               ? 0
               : (double)scale_tril->spec.shape[scale_tril->spec.ndim - 1];
}

static wg_tensor *multivariate_normal_log_prob(wg_tensor *value, wg_tensor *mean,
                                               wg_tensor *scale_tril) {
    wg_tensor *distance = wg_mul_scalar(squared_distance(scale_tril, wg_sub(value, mean)), 0.5);
    return wg_add_scalar(wg_neg(wg_add(distance, log_volume(scale_tril))),
                         -size_of(scale_tril) * LOG_2PI / 2);
}

DEFINE(3, multivariate_normal_log_prob, 7, (ROWS, ROWS, TRIANGLE),
       "-|L^-1 (value - mean)|^2 / 2 - log det L - D/2 log(2 pi) with L = scale_tril: (..., D), "
       "(..., D), (..., D, D) -> (...).")

static wg_tensor *multivariate_normal_entropy(wg_tensor *scale_tril) {
    return wg_add_scalar(log_volume(scale_tril), size_of(scale_tril) * (1 + LOG_2PI) / 2);
}

DEFINE(1, multivariate_normal_entropy, 1, (TRIANGLE), "log det L + D/2 log(2 pi e).")

static wg_tensor *multivariate_normal_kl(wg_tensor *p_mean, wg_tensor *p_scale_tril,
                                         wg_tensor *q_mean, wg_tensor *q_scale_tril) {
    wg_tensor *ratio =
        wg_solve_triangular(q_scale_tril, wg_tril(p_scale_tril, 0), false, false, false);
    wg_tensor *spread = wg_sum(wg_square(ratio), WG_DIMS(-2, -1), false);
    wg_tensor *distance = squared_distance(q_scale_tril, wg_sub(q_mean, p_mean));
    wg_tensor *twice = wg_add_scalar(wg_add(spread, distance), -size_of(p_scale_tril));
    return wg_add(wg_sub(log_volume(q_scale_tril), log_volume(p_scale_tril)),
                  wg_mul_scalar(twice, 0.5));
}

DEFINE(4, multivariate_normal_kl, 15, (ROWS, TRIANGLE, ROWS, TRIANGLE),
       "The divergence of multivariate normal distributions of covariances L L^T.")

/* ==== Samples: reparameterized, functions of the parameters, where possible ==== */

/* ---- The gamma distribution of rate 1. The op is not in the registry, because finite differences
 * of a rejection sampler do not converge. gamma_slope.c has the derivative. ---- */

typedef struct gamma_options {
    uint64_t seed, offset;
} gamma_options;

typedef struct gamma_job {
    gamma_options draw;
    wg_dtype dtype;
    const char *concentration;
    char *x;
    int64_t count;
} gamma_job;

/* A range has WG__GAMMAS_AT_ONCE elements. */
static void draw_gammas(int64_t begin, int64_t end, void *context) {
    const gamma_job *job = context;
    const int64_t size = (int64_t)wg_dtype_size(job->dtype);
    const double least = job->dtype == WG_F32 ? (double)FLT_MIN : DBL_MIN;
    double a[WG__GAMMAS_AT_ONCE], x[WG__GAMMAS_AT_ONCE];
    for (int64_t range = begin; range < end; range++) {
        const int64_t first = range * WG__GAMMAS_AT_ONCE;
        const int64_t n = wg__smaller(job->count - first, WG__GAMMAS_AT_ONCE);
        for (int64_t i = 0; i < n; i++)
            a[i] = wg__element(job->dtype, job->concentration + (first + i) * size);
        wg__random_gammas(job->draw.seed, job->draw.offset, first, n, a, x);
        for (int64_t i = 0; i < n; i++)
            wg__set_element(job->dtype, job->x + (first + i) * size, x[i] < least ? least : x[i]);
    }
}

static int standard_gamma_forward(wg_call *call) {
    const wg_tensor *a = wg_contiguous(call->inputs[0]);
    if (a == NULL)
        return -1;
    gamma_job job = {*(const gamma_options *)call->options, a->spec.dtype, wg__tensor_address(a),
                     wg__tensor_address(call->outputs[0]), wg__spec_count(&a->spec)};
    wg__parallel_for(wg__ceil_divide(job.count, WG__GAMMAS_AT_ONCE), 8, draw_gammas, &job);
    return 0;
}

WG__VJP(standard_gamma, wg_mul(g, wg__gamma_slope(x, y)))

static const wg_op standard_gamma_op = {
    WG__OP("standard_gamma", 1, "A sample of the gamma distribution of rate 1."),
    .options_size = sizeof(gamma_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = wg__infer_kernel,
    .forward = standard_gamma_forward,
    .vjp = standard_gamma_vjp,
    .jvp = wg__jvp_diagonal};

/* Each call advances the generator by one draw. */
static wg_tensor *standard_gamma(wg_generator *generator, wg_tensor *concentration) {
    wg_generator *from = generator ? generator : wg_default_generator();
    wg_tensor *a = wg__widen(wg__as_float(concentration));
    if (a == NULL)
        return NULL;
    const gamma_options options = {from->seed, from->offset++};
    return wg__narrow(wg_apply_one(&standard_gamma_op, 1, &a, &options), concentration->spec.dtype);
}

/* A sample of the exponential distribution of rate 1, in the shape of x: -log(1 - u). */
static wg_tensor *standard_exponential(wg_generator *generator, const wg_tensor *x) {
    return wg_neg(wg_log1p(wg_neg(wg_rand_like(generator, x))));
}

static wg_tensor *draw(wg_distribution_kind kind, wg_generator *generator, wg_tensor **p) {
    switch (kind) {
    case WG_NORMAL:
        return wg_add(p[0], wg_mul(p[1], wg_randn_like(generator, p[0])));
    case WG_UNIFORM:
        return wg_add(p[0], wg_mul(wg_sub(p[1], p[0]), wg_rand_like(generator, p[0])));
    case WG_EXPONENTIAL:
        return wg_div(standard_exponential(generator, p[0]), p[0]);
    case WG_LAPLACE: { /* an exponential size with a random sign */
        wg_tensor *size = standard_exponential(generator, p[0]);
        wg_tensor *below = wg_lt(wg_rand_like(generator, p[0]), wg_scalar(p[0]->spec.dtype, 0.5));
        return wg_add(p[0], wg_mul(p[1], wg_where(below, wg_neg(size), size)));
    }
    case WG_GAMMA:
        return wg_div(standard_gamma(generator, p[0]), p[1]);
    case WG_BETA: {
        wg_tensor *b = standard_gamma(generator, p[1]), *a = standard_gamma(generator, p[0]);
        return wg_div(a, wg_add(a, b));
    }
    case WG_DIRICHLET: {
        wg_tensor *x = standard_gamma(generator, p[0]);
        return wg_div(x, wg_sum(x, WG_DIMS(-1), true));
    }
    case WG_STUDENT_T: { /* mean + scale z / sqrt(gamma(df / 2) / (df / 2)) */
        wg_tensor *half = wg_mul_scalar(p[0], 0.5),
                  *z = half ? wg_randn_like(generator, half) : NULL;
        wg_tensor *shrink = wg_rsqrt(wg_div(standard_gamma(generator, half), half));
        return wg_add(p[1], wg_mul(p[2], wg_mul(z, shrink)));
    }
    case WG_CATEGORICAL: { /* argmax of logits + g with Gumbel's g = -log e, e exponential */
        const bool recording = wg_set_grad_enabled(false);
        wg_tensor *x = wg_cast(p[0], WG_F64), *y = NULL;
        if (x)
            y = wg_argmax(wg_sub(x, wg_log(standard_exponential(generator, x))), -1, false);
        wg_set_grad_enabled(recording);
        return y;
    }
    case WG_MULTIVARIATE_NORMAL: { /* mean + L z */
        wg_tensor *mean = wg_unsqueeze(p[0], -1), *triangle = wg_tril(p[1], 0);
        const bool recording = wg_set_grad_enabled(false);
        /* The sum of the mean (..., D, 1) and a column of L (..., D, D) has the shape of z. */
        const wg_tensor *sum = wg_add(mean, wg_slice(triangle, -1, 0, 1, 1));
        wg_tensor *z = sum ? wg_randn_like(generator, sum) : NULL;
        wg_set_grad_enabled(recording);
        return z ? wg_squeeze(wg_add(mean, wg_matmul(triangle, z)), -1) : NULL;
    }
    default:
        return NULL;
    }
}

typedef struct distribution {
    const char *name;
    int count;           /* of parameters */
    unsigned entropy_of; /* bit i: the entropy depends on parameter i */
    bool broadcasts;     /* the parameters of a sample are expanded to a common shape */
    const wg_op *log_prob, *entropy, *kl;
} distribution;

#define OPS(NAME) &NAME##_log_prob_op, &NAME##_entropy_op, &NAME##_kl_op

static const distribution distributions[] = {
    [WG_NORMAL] = {"normal", 2, 2, true, OPS(normal)},
    [WG_UNIFORM] = {"uniform", 2, 3, true, OPS(uniform)},
    [WG_EXPONENTIAL] = {"exponential", 1, 1, true, OPS(exponential)},
    [WG_LAPLACE] = {"laplace", 2, 2, true, OPS(laplace)},
    [WG_GAMMA] = {"gamma", 2, 3, true, OPS(gamma)},
    [WG_BETA] = {"beta", 2, 3, true, OPS(beta)},
    [WG_DIRICHLET] = {"dirichlet", 1, 1, true, OPS(dirichlet)},
    [WG_STUDENT_T] = {"student_t", 3, 5, true, &student_t_log_prob_op, &student_t_entropy_op, NULL},
    [WG_BERNOULLI] = {"bernoulli", 1, 1, true, OPS(bernoulli)},
    [WG_CATEGORICAL] = {"categorical", 1, 1, true, OPS(categorical)},
    [WG_MULTIVARIATE_NORMAL] = {"multivariate_normal", 2, 2, false, OPS(multivariate_normal)},
};

const wg__op_table wg__ops_distributions =
    WG__OP_TABLE(OPS(normal), OPS(uniform), OPS(exponential), OPS(laplace), OPS(gamma), OPS(beta),
                 OPS(dirichlet), &student_t_log_prob_op, &student_t_entropy_op, OPS(bernoulli),
                 OPS(categorical), OPS(multivariate_normal));

/* NULL with ARGUMENT for an invalid kind. */
static const distribution *row_of(const wg_distribution *p) {
    if ((unsigned)p->kind < sizeof distributions / sizeof *distributions)
        return &distributions[p->kind];
    return wg__fail_null(WG_ERROR_ARGUMENT, "distribution",
                         "kind %d is none of wg_distribution_kind", (int)p->kind);
}

wg_tensor *wg_distribution_log_prob(const wg_distribution *p, wg_tensor *value) {
    const distribution *d = row_of(p);
    wg_tensor *inputs[] = {value, p->parameters[0], p->parameters[1], p->parameters[2]};
    return d ? wg_apply_one(d->log_prob, 1 + d->count, inputs, NULL) : NULL;
}

wg_tensor *wg_distribution_entropy(const wg_distribution *p) {
    const distribution *d = row_of(p);
    wg_tensor *inputs[3];
    int count = 0;
    for (int i = 0; d && i < d->count; i++)
        if (d->entropy_of >> i & 1)
            inputs[count++] = p->parameters[i];
    return d ? wg_apply_one(d->entropy, count, inputs, NULL) : NULL;
}

wg_tensor *wg_distribution_kl(const wg_distribution *p, const wg_distribution *q) {
    const distribution *d = row_of(p), *other = row_of(q);
    wg_tensor *inputs[6];
    if (!d || !other)
        return NULL;
    if (d != other || !d->kl)
        return wg__fail_null(WG_ERROR_ARGUMENT, "distribution",
                             "there is no divergence of %s and %s", d->name, other->name);
    for (int i = 0; i < d->count; i++) {
        inputs[i] = p->parameters[i];
        inputs[d->count + i] = q->parameters[i];
    }
    return wg_apply_one(d->kl, 2 * d->count, inputs, NULL);
}

/* Casts the parameters to a common floating dtype and, unless the distribution has matrices,
 * expands them to a common shape. False after an error. */
static bool broadcast_parameters(const distribution *d, wg_tensor **parameters) {
    if (!wg__promote_all(d->count, parameters))
        return false;
    wg_spec shape = parameters[0]->spec;
    for (int i = 0; i < d->count; i++) {
        parameters[i] = wg__as_float(parameters[i]);
        if (!parameters[i])
            return false;
        const wg_spec so_far = shape;
        if (d->broadcasts && !wg__broadcast(&so_far, &parameters[i]->spec, &shape)) {
            char a[128], b[128], where[64];
            snprintf(where, sizeof where, "%s_sample", d->name);
            wg_fail(WG_ERROR_SHAPE, where, "parameters of %s and %s do not broadcast",
                    wg_spec_text(a, sizeof a, &so_far),
                    wg_spec_text(b, sizeof b, &parameters[i]->spec));
            return false;
        }
    }
    for (int i = 0; d->broadcasts && i < d->count; i++)
        parameters[i] = wg_expand(parameters[i], shape.ndim, shape.shape);
    return parameters[d->count - 1] && !wg_error_pending();
}

wg_tensor *wg_distribution_sample(wg_generator *generator, const wg_distribution *p) {
    const distribution *d = row_of(p);
    wg_tensor *parameters[3], *y = NULL;
    if (d && p->kind == WG_BERNOULLI)
        wg_fail(WG_ERROR_ARGUMENT, d->name, "wg_bernoulli gives samples");
    if (!d || p->kind == WG_BERNOULLI)
        return NULL;
    for (int i = 0; i < d->count; i++)
        if (!(parameters[i] = p->parameters[i]))
            return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (broadcast_parameters(d, parameters))
        y = draw(p->kind, generator, parameters);
    return wg_scope_end(&scope, y);
}
