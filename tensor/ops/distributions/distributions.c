/* Probability distributions: log densities, entropies and divergences, composites of other ops; and
 * samples (distributions.h). */
#include "tensor/distributions.h"

#include <float.h>
#include <math.h>

#include "tensor/easy.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"

#define LOG_2PI 1.8378770664093454835606594728112
#define LOG_PI 1.1447298858494001741434273513531

static wg_tensor *half(wg_tensor *x) {
    return wg_mul_scalar(x, 0.5);
}

static wg_tensor *sum_last(wg_tensor *x) {
    return wg_sum(x, WG_DIMS(-1), false);
}

/* a + b + c, and a - b - c. */
static wg_tensor *add3(wg_tensor *a, wg_tensor *b, wg_tensor *c) {
    return wg_add(wg_add(a, b), c);
}

static wg_tensor *sub3(wg_tensor *a, wg_tensor *b, wg_tensor *c) {
    return wg_sub(wg_sub(a, b), c);
}

/* log B(a, b). */
static wg_tensor *log_beta(wg_tensor *a, wg_tensor *b) {
    return wg_sub(wg_add(wg_lgamma(a), wg_lgamma(b)), wg_lgamma(wg_add(a, b)));
}

/* ---- Records: a composite of up to 4 operands, from a function that is its decomposition ---- */

/* Which numbers a sample takes; and the class of each operand. */
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
        return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 1, -2);
    case BETWEEN:
        return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 1, 1);
    case BEYOND:
        return wg_affine(wg_rand(generator, WG_F64, ndim, shape), 1, 3);
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

/* Operands of one shape, of shapes that broadcast, and scalars. */
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

/* bf16 is computed in f32, so that its roundings do not add up. Returns the dtype of the result, as
 * far as it is bf16. */
static wg_dtype widen_operands(const wg_call *call, wg_tensor **in) {
    wg_dtype dtype = WG_BOOL;
    for (int i = 0; i < call->input_count; i++) {
        dtype = wg__dtype_promote(dtype, call->input_specs[i].dtype);
        in[i] = wg__widen(call->inputs[i]);
    }
    return dtype;
}

/* The record NAME_op of the function NAME, with the kinds of its operands in brackets, and
 * differentiable in those of the mask. */
#define COMPOSITE(NAME, COUNT, ARGUMENTS, MASK, KINDS, DOC)                                        \
    static int NAME##_decompose(wg_call *call) {                                                   \
        wg_tensor *in[4];                                                                          \
        const wg_dtype dtype = widen_operands(call, in);                                           \
        return wg__set_output(call, wg__narrow(NAME ARGUMENTS, dtype));                            \
    }                                                                                              \
    static int NAME##_sample(int index, wg_generator *generator, wg_sample *sample) {              \
        static const kind kinds[] = WG__IN_BRACES KINDS;                                           \
        return sample_kinds(index, generator, sample, COUNT, kinds);                               \
    }                                                                                              \
    static const wg_op NAME##_op = {WG__OP(#NAME, COUNT, DOC), .differentiable = MASK,             \
                                    .decompose = NAME##_decompose, .sample = NAME##_sample};

#define LISTED(...)                                                                                \
    (wg_tensor *[]) {                                                                              \
        __VA_ARGS__                                                                                \
    }
#define DEFINE_1(NAME, A, KINDS, DOC)                                                              \
    COMPOSITE(NAME, 1, (in[0]), 1, KINDS, DOC)                                                     \
    wg_tensor *wg_##NAME(wg_tensor *A) {                                                           \
        return wg_apply_one(&NAME##_op, 1, &A, NULL);                                              \
    }
#define DEFINE_2(NAME, A, B, MASK, KINDS, DOC)                                                     \
    COMPOSITE(NAME, 2, (in[0], in[1]), MASK, KINDS, DOC)                                           \
    wg_tensor *wg_##NAME(wg_tensor *A, wg_tensor *B) {                                             \
        return wg_apply_one(&NAME##_op, 2, LISTED(A, B), NULL);                                    \
    }
#define DEFINE_3(NAME, A, B, C, KINDS, DOC)                                                        \
    COMPOSITE(NAME, 3, (in[0], in[1], in[2]), 7, KINDS, DOC)                                       \
    wg_tensor *wg_##NAME(wg_tensor *A, wg_tensor *B, wg_tensor *C) {                               \
        return wg_apply_one(&NAME##_op, 3, LISTED(A, B, C), NULL);                                 \
    }
#define DEFINE_4(NAME, A, B, C, D, KINDS, DOC)                                                     \
    COMPOSITE(NAME, 4, (in[0], in[1], in[2], in[3]), 15, KINDS, DOC)                               \
    wg_tensor *wg_##NAME(wg_tensor *A, wg_tensor *B, wg_tensor *C, wg_tensor *D) {                 \
        return wg_apply_one(&NAME##_op, 4, LISTED(A, B, C, D), NULL);                              \
    }
/* ---- Normal ---- */

static wg_tensor *normal_log_prob(wg_tensor *value, wg_tensor *mean, wg_tensor *std) {
    wg_tensor *z = wg_div(wg_sub(value, mean), std);
    return wg_add_scalar(wg_sub(wg_mul_scalar(wg_square(z), -0.5), wg_log(std)), -LOG_2PI / 2);
}

DEFINE_3(normal_log_prob, value, mean, std, (ANY, ANY, POSITIVE),
         "-((value - mean) / std)^2 / 2 - log(std sqrt(2 pi)).")

static wg_tensor *normal_entropy(wg_tensor *std) {
    return wg_add_scalar(wg_log(std), 0.5 + LOG_2PI / 2);
}

DEFINE_1(normal_entropy, std, (POSITIVE), "log(std sqrt(2 pi e)).")

static wg_tensor *normal_kl(wg_tensor *p_mean, wg_tensor *p_std, wg_tensor *q_mean,
                            wg_tensor *q_std) {
    wg_tensor *ratio = wg_square(wg_div(p_std, q_std));
    wg_tensor *distance = wg_square(wg_div(wg_sub(p_mean, q_mean), q_std));
    return half(wg_add_scalar(wg_sub(wg_add(ratio, distance), wg_log(ratio)), -1));
}

DEFINE_4(normal_kl, p_mean, p_std, q_mean, q_std, (ANY, POSITIVE, ANY, POSITIVE),
         "The divergence of normal distributions, log(q_std / p_std) + (p_std^2 + (p_mean - "
         "q_mean)^2) / (2 q_std^2) - 1/2.")

/* ---- Uniform ---- */

/* x where the condition holds, the number elsewhere. */
static wg_tensor *where_else(wg_tensor *condition, wg_tensor *x, double number) {
    return x == NULL ? NULL : wg_where(condition, x, wg_scalar(wg_tensor_dtype(x), number));
}

static wg_tensor *uniform_entropy(wg_tensor *low, wg_tensor *high) {
    return wg_log(wg_sub(high, low));
}

DEFINE_2(uniform_entropy, low, high, 3, (SHARE, BEYOND), "log(high - low).")

static wg_tensor *uniform_log_prob(wg_tensor *value, wg_tensor *low, wg_tensor *high) {
    wg_tensor *inside = wg_logical_and(wg_le(low, value), wg_lt(value, high));
    wg_tensor *size = uniform_entropy(low, high);
    return wg_sub(where_else(inside, wg_zeros_like(size), -INFINITY), size);
}

DEFINE_3(uniform_log_prob, value, low, high, (BETWEEN, SHARE, BEYOND),
         "-log(high - low) for low <= value < high, -inf elsewhere.")

static wg_tensor *uniform_kl(wg_tensor *p_low, wg_tensor *p_high, wg_tensor *q_low,
                             wg_tensor *q_high) {
    wg_tensor *covered = wg_logical_and(wg_le(q_low, p_low), wg_ge(q_high, p_high));
    return where_else(
        covered, wg_sub(uniform_entropy(q_low, q_high), uniform_entropy(p_low, p_high)), INFINITY);
}

DEFINE_4(uniform_kl, p_low, p_high, q_low, q_high, (SHARE, BETWEEN, BEFORE, BEYOND),
         "The divergence of uniform distributions, log((q_high - q_low) / (p_high - p_low)), and "
         "inf where q does not cover p.")

/* ---- Exponential ---- */

static wg_tensor *exponential_log_prob(wg_tensor *value, wg_tensor *rate) {
    return wg_sub(wg_log(rate), wg_mul(rate, value));
}

DEFINE_2(exponential_log_prob, value, rate, 3, (POSITIVE, POSITIVE), "log rate - rate value.")

static wg_tensor *exponential_entropy(wg_tensor *rate) {
    return wg_affine(wg_log(rate), -1, 1);
}

DEFINE_1(exponential_entropy, rate, (POSITIVE), "1 - log rate.")

static wg_tensor *exponential_kl(wg_tensor *p_rate, wg_tensor *q_rate) {
    wg_tensor *ratio = wg_div(q_rate, p_rate);
    return wg_add_scalar(wg_sub(ratio, wg_log(ratio)), -1);
}

DEFINE_2(exponential_kl, p_rate, q_rate, 3, (POSITIVE, POSITIVE),
         "The divergence of exponential distributions, r - log r - 1 with r = q_rate / p_rate.")

/* ---- Laplace ---- */

static wg_tensor *laplace_log_prob(wg_tensor *value, wg_tensor *mean, wg_tensor *scale) {
    return wg_neg(
        wg_add(wg_log(wg_mul_scalar(scale, 2)), wg_div(wg_abs(wg_sub(value, mean)), scale)));
}

DEFINE_3(laplace_log_prob, value, mean, scale, (BEYOND, SHARE, POSITIVE),
         "-|value - mean| / scale - log(2 scale). A kink at the mean.")

static wg_tensor *laplace_entropy(wg_tensor *scale) {
    return wg_add_scalar(wg_log(wg_mul_scalar(scale, 2)), 1);
}

DEFINE_1(laplace_entropy, scale, (POSITIVE), "1 + log(2 scale).")

static wg_tensor *laplace_kl(wg_tensor *p_mean, wg_tensor *p_scale, wg_tensor *q_mean,
                             wg_tensor *q_scale) {
    wg_tensor *ratio = wg_div(p_scale, q_scale), *distance = wg_abs(wg_sub(p_mean, q_mean));
    wg_tensor *decay = wg_mul(ratio, wg_exp(wg_neg(wg_div(distance, p_scale))));
    return wg_add_scalar(wg_sub(wg_add(decay, wg_div(distance, q_scale)), wg_log(ratio)), -1);
}

DEFINE_4(laplace_kl, p_mean, p_scale, q_mean, q_scale, (SHARE, POSITIVE, BEYOND, POSITIVE),
         "The divergence of Laplace distributions, r e^(-d / p_scale) + d / q_scale - log r - 1 "
         "with r = p_scale / q_scale and d = |p_mean - q_mean|.")

/* ---- Gamma ---- */

static wg_tensor *gamma_log_prob(wg_tensor *value, wg_tensor *concentration, wg_tensor *rate) {
    return sub3(
        wg_add(wg_xlogy(concentration, rate), wg_xlogy(wg_add_scalar(concentration, -1), value)),
        wg_mul(rate, value), wg_lgamma(concentration));
}

DEFINE_3(gamma_log_prob, value, concentration, rate, (POSITIVE, POSITIVE, POSITIVE),
         "a log rate + (a - 1) log value - rate value - lgamma(a) with a = concentration.")

static wg_tensor *gamma_entropy(wg_tensor *concentration, wg_tensor *rate) {
    wg_tensor *slope = wg_mul(wg_affine(concentration, -1, 1), wg_digamma(concentration));
    return wg_add(wg_sub(concentration, wg_log(rate)), wg_add(wg_lgamma(concentration), slope));
}

DEFINE_2(gamma_entropy, concentration, rate, 3, (POSITIVE, POSITIVE),
         "a - log rate + lgamma(a) + (1 - a) digamma(a) with a = concentration.")

static wg_tensor *gamma_kl(wg_tensor *p_concentration, wg_tensor *p_rate,
                           wg_tensor *q_concentration, wg_tensor *q_rate) {
    wg_tensor *rates = wg_mul(q_concentration, wg_log(wg_div(p_rate, q_rate)));
    wg_tensor *gammas = wg_sub(wg_lgamma(q_concentration), wg_lgamma(p_concentration));
    wg_tensor *slope =
        wg_mul(wg_sub(p_concentration, q_concentration), wg_digamma(p_concentration));
    return add3(wg_add(rates, gammas), slope,
                wg_mul(wg_sub(q_rate, p_rate), wg_div(p_concentration, p_rate)));
}

DEFINE_4(gamma_kl, p_concentration, p_rate, q_concentration, q_rate,
         (POSITIVE, POSITIVE, POSITIVE, POSITIVE), "The divergence of gamma distributions.")

/* ---- Beta ---- */

static wg_tensor *beta_log_prob(wg_tensor *value, wg_tensor *a, wg_tensor *b) {
    return wg_sub(wg_add(wg_xlogy(wg_add_scalar(a, -1), value),
                         wg_xlogy(wg_add_scalar(b, -1), wg_affine(value, -1, 1))),
                  log_beta(a, b));
}

DEFINE_3(beta_log_prob, value, a, b, (SHARE, POSITIVE, POSITIVE),
         "(a - 1) log value + (b - 1) log(1 - value) - log B(a, b).")

static wg_tensor *beta_entropy(wg_tensor *a, wg_tensor *b) {
    wg_tensor *both = wg_add(a, b);
    return wg_add(sub3(log_beta(a, b), wg_mul(wg_add_scalar(a, -1), wg_digamma(a)),
                       wg_mul(wg_add_scalar(b, -1), wg_digamma(b))),
                  wg_mul(wg_add_scalar(both, -2), wg_digamma(both)));
}

DEFINE_2(beta_entropy, a, b, 3, (POSITIVE, POSITIVE),
         "log B(a, b) - (a - 1) digamma(a) - (b - 1) digamma(b) + (a + b - 2) digamma(a + b).")

static wg_tensor *beta_kl(wg_tensor *p_a, wg_tensor *p_b, wg_tensor *q_a, wg_tensor *q_b) {
    wg_tensor *p = wg_add(p_a, p_b), *q = wg_add(q_a, q_b);
    return wg_add(
        wg_add(wg_sub(log_beta(q_a, q_b), log_beta(p_a, p_b)),
               wg_mul(wg_sub(p_a, q_a), wg_digamma(p_a))),
        wg_add(wg_mul(wg_sub(p_b, q_b), wg_digamma(p_b)), wg_mul(wg_sub(q, p), wg_digamma(p))));
}

DEFINE_4(beta_kl, p_a, p_b, q_a, q_b, (POSITIVE, POSITIVE, POSITIVE, POSITIVE),
         "The divergence of beta distributions.")

/* ---- Dirichlet ---- */

static wg_tensor *dirichlet_log_prob(wg_tensor *value, wg_tensor *concentration) {
    return wg_add(sum_last(wg_xlogy(wg_add_scalar(concentration, -1), value)),
                  wg_sub(wg_lgamma(sum_last(concentration)), sum_last(wg_lgamma(concentration))));
}

DEFINE_2(dirichlet_log_prob, value, concentration, 3, (SHARE_ROWS, POSITIVE_ROWS),
         "sum (a - 1) log value - log B(a) over the last axis, with a = concentration.")

static wg_tensor *dirichlet_entropy(wg_tensor *concentration) {
    if (concentration == NULL || concentration->spec.ndim < 1)
        return wg_sum(concentration, WG_DIMS(-1), false); /* reports that there is no axis */
    const double size = (double)concentration->spec.shape[concentration->spec.ndim - 1];
    wg_tensor *total = sum_last(concentration);
    return add3(
        wg_sub(sum_last(wg_lgamma(concentration)), wg_lgamma(total)),
        wg_mul(wg_add_scalar(total, -size), wg_digamma(total)),
        wg_neg(sum_last(wg_mul(wg_add_scalar(concentration, -1), wg_digamma(concentration)))));
}

DEFINE_1(
    dirichlet_entropy, concentration, (POSITIVE_ROWS),
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

DEFINE_2(dirichlet_kl, p_concentration, q_concentration, 3, (POSITIVE_ROWS, POSITIVE_ROWS),
         "The divergence of Dirichlet distributions, whose concentrations lie on the last axis.")

/* ---- Student's t ---- */

/* log(sqrt(df) B(1/2, df/2)). */
static wg_tensor *student_t_size(wg_tensor *df) {
    wg_tensor *gammas = wg_sub(wg_lgamma(half(df)), wg_lgamma(half(wg_add_scalar(df, 1))));
    return wg_add_scalar(wg_add(half(wg_log(df)), gammas), LOG_PI / 2);
}

static wg_tensor *student_t_log_prob(wg_tensor *value, wg_tensor *df, wg_tensor *mean,
                                     wg_tensor *scale) {
    wg_tensor *z = wg_div(wg_sub(value, mean), scale);
    wg_tensor *tail = wg_mul(half(wg_add_scalar(df, 1)), wg_log1p(wg_div(wg_square(z), df)));
    return wg_neg(add3(tail, wg_log(scale), student_t_size(df)));
}

DEFINE_4(
    student_t_log_prob, value, df, mean, scale, (ANY, POSITIVE, ANY, POSITIVE),
    "-(df + 1)/2 log(1 + z^2 / df) - log(scale sqrt(df) B(1/2, df/2)) with z = (value - mean) / "
    "scale.")

static wg_tensor *student_t_entropy(wg_tensor *df, wg_tensor *scale) {
    wg_tensor *above = half(wg_add_scalar(df, 1));
    wg_tensor *slopes = wg_mul(above, wg_sub(wg_digamma(above), wg_digamma(half(df))));
    return add3(wg_log(scale), slopes, student_t_size(df));
}

DEFINE_2(student_t_entropy, df, scale, 3, (POSITIVE, POSITIVE),
         "log scale + (df + 1)/2 (digamma((df + 1)/2) - digamma(df/2)) + log(sqrt(df) B(1/2, "
         "df/2)).")

/* ---- Bernoulli ---- */

/* log(1 - p) = -log(1 + e^logits). */
static wg_tensor *log_none(wg_tensor *logits) {
    return wg_log_sigmoid(wg_neg(logits));
}

static wg_tensor *bernoulli_log_prob(wg_tensor *value, wg_tensor *logits) {
    return wg_add(wg_mul(value, logits), log_none(logits));
}

DEFINE_2(bernoulli_log_prob, value, logits, 3, (SHARE, ANY),
         "value log p + (1 - value) log(1 - p) with p = sigmoid(logits).")

static wg_tensor *bernoulli_entropy(wg_tensor *logits) {
    return wg_neg(wg_add(wg_mul(wg_sigmoid(logits), logits), log_none(logits)));
}

DEFINE_1(bernoulli_entropy, logits, (ANY),
         "-p log p - (1 - p) log(1 - p) with p = sigmoid(logits).")

static wg_tensor *bernoulli_kl(wg_tensor *p_logits, wg_tensor *q_logits) {
    return wg_sub(
        wg_add(wg_mul(wg_sigmoid(p_logits), wg_sub(p_logits, q_logits)), log_none(p_logits)),
        log_none(q_logits));
}

DEFINE_2(bernoulli_kl, p_logits, q_logits, 3, (ANY, ANY),
         "The divergence of Bernoulli distributions.")

/* ---- Categorical ---- */

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

DEFINE_2(categorical_log_prob, value, logits, 2, (IDS, ROWS),
         "log softmax(logits)[value] over the last axis. The value has no gradient.")

/* log softmax, with the lowest number in the place of -inf, so that 0 times it is 0. */
static wg_tensor *finite_log_softmax(wg_tensor *logits) {
    return wg_nan_to_num(wg_log_softmax(logits, -1), NAN, DBL_MAX, -DBL_MAX);
}

static wg_tensor *categorical_entropy(wg_tensor *logits) {
    wg_tensor *log_p = finite_log_softmax(logits);
    return wg_neg(sum_last(wg_mul(wg_exp(log_p), log_p)));
}

DEFINE_1(categorical_entropy, logits, (ROWS), "-sum p log p with p = softmax(logits).")

static wg_tensor *categorical_kl(wg_tensor *p_logits, wg_tensor *q_logits) {
    return sum_last(wg_mul(wg_softmax(p_logits, -1),
                           wg_sub(finite_log_softmax(p_logits), finite_log_softmax(q_logits))));
}

DEFINE_2(categorical_kl, p_logits, q_logits, 3, (ROWS, ROWS),
         "The divergence of categorical distributions, sum p (log p - log q) over the last axis.")

/* ---- Multivariate normal ---- */

/* |L^-1 x|^2. All rows of x are solved at once where they share one factor. */
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
    wg_tensor *distance = half(squared_distance(scale_tril, wg_sub(value, mean)));
    return wg_add_scalar(wg_neg(wg_add(distance, log_volume(scale_tril))),
                         -size_of(scale_tril) * LOG_2PI / 2);
}

DEFINE_3(multivariate_normal_log_prob, value, mean, scale_tril, (ROWS, ROWS, TRIANGLE),
         "-|L^-1 (value - mean)|^2 / 2 - log det L - D/2 log(2 pi) with L = scale_tril: (..., D), "
         "(..., D), (..., D, D) -> (...).")

static wg_tensor *multivariate_normal_entropy(wg_tensor *scale_tril) {
    return wg_add_scalar(log_volume(scale_tril), size_of(scale_tril) * (1 + LOG_2PI) / 2);
}

DEFINE_1(multivariate_normal_entropy, scale_tril, (TRIANGLE), "log det L + D/2 log(2 pi e).")

static wg_tensor *multivariate_normal_kl(wg_tensor *p_mean, wg_tensor *p_scale_tril,
                                         wg_tensor *q_mean, wg_tensor *q_scale_tril) {
    wg_tensor *ratio =
        wg_solve_triangular(q_scale_tril, wg_tril(p_scale_tril, 0), false, false, false);
    wg_tensor *spread = wg_sum(wg_square(ratio), WG_DIMS(-2, -1), false);
    wg_tensor *distance = squared_distance(q_scale_tril, wg_sub(q_mean, p_mean));
    return wg_add(wg_sub(log_volume(q_scale_tril), log_volume(p_scale_tril)),
                  half(wg_add_scalar(wg_add(spread, distance), -size_of(p_scale_tril))));
}

DEFINE_4(multivariate_normal_kl, p_mean, p_scale_tril, q_mean, q_scale_tril,
         (ROWS, TRIANGLE, ROWS, TRIANGLE),
         "The divergence of multivariate normal distributions of covariances L L^T.")

static const wg_op *const ops[] = {&normal_log_prob_op,
                                   &normal_entropy_op,
                                   &normal_kl_op,
                                   &uniform_log_prob_op,
                                   &uniform_entropy_op,
                                   &uniform_kl_op,
                                   &exponential_log_prob_op,
                                   &exponential_entropy_op,
                                   &exponential_kl_op,
                                   &laplace_log_prob_op,
                                   &laplace_entropy_op,
                                   &laplace_kl_op,
                                   &gamma_log_prob_op,
                                   &gamma_entropy_op,
                                   &gamma_kl_op,
                                   &beta_log_prob_op,
                                   &beta_entropy_op,
                                   &beta_kl_op,
                                   &dirichlet_log_prob_op,
                                   &dirichlet_entropy_op,
                                   &dirichlet_kl_op,
                                   &student_t_log_prob_op,
                                   &student_t_entropy_op,
                                   &bernoulli_log_prob_op,
                                   &bernoulli_entropy_op,
                                   &bernoulli_kl_op,
                                   &categorical_log_prob_op,
                                   &categorical_entropy_op,
                                   &categorical_kl_op,
                                   &multivariate_normal_log_prob_op,
                                   &multivariate_normal_entropy_op,
                                   &multivariate_normal_kl_op};

const wg__op_table wg__ops_distributions = {ops, sizeof ops / sizeof *ops};
