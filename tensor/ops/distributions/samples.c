/* Samples of probability distributions, as functions of their parameters where that is possible. */
#include "tensor/distributions.h"

#include <float.h>
#include <math.h>

#include "tensor/easy.h"
#include "tensor/internal.h"
#include "tensor/op.h"
#include "tensor/ops/support.h"

/* ---- The gamma distribution of rate 1. Internal, as its derivative is (gamma_slope.c): finite
 * differences of a sampler that rejects do not converge ---- */

typedef struct gamma_options {
    uint64_t seed, offset;
} gamma_options;

typedef struct gamma_job {
    gamma_options draw;
    const void *concentration;
    void *x;
    int64_t count;
} gamma_job;

/* Ranges of WG__GAMMAS_AT_ONCE elements. */
#define GAMMAS(NAME, TYPE, LEAST)                                                                  \
    static void NAME(int64_t begin, int64_t end, void *context) {                                  \
        const gamma_job *job = context;                                                            \
        double a[WG__GAMMAS_AT_ONCE], x[WG__GAMMAS_AT_ONCE];                                       \
        for (int64_t range = begin; range < end; range++) {                                        \
            const int64_t first = range * WG__GAMMAS_AT_ONCE;                                      \
            const int64_t n = wg__smaller(job->count - first, WG__GAMMAS_AT_ONCE);                 \
            for (int64_t i = 0; i < n; i++)                                                        \
                a[i] = (double)((const TYPE *)job->concentration)[first + i];                      \
            wg__random_gammas(job->draw.seed, job->draw.offset, first, n, a, x);                   \
            for (int64_t i = 0; i < n; i++)                                                        \
                ((TYPE *)job->x)[first + i] = x[i] < (double)LEAST ? LEAST : (TYPE)x[i];           \
        }                                                                                          \
    }

GAMMAS(gammas_f32, float, FLT_MIN)
GAMMAS(gammas_f64, double, DBL_MIN)

static int standard_gamma_infer(wg_call *call) {
    return wg__check_kernel_dtype(call) < 0 ? -1 : wg__infer_like(call);
}

static int standard_gamma_forward(wg_call *call) {
    const wg_tensor *a = wg_contiguous(call->inputs[0]);
    if (a == NULL)
        return -1;
    gamma_job job = {*(const gamma_options *)call->options, wg__tensor_address(a),
                     wg__tensor_address(call->outputs[0]), wg__spec_count(&a->spec)};
    wg__parallel_for(wg__ceil_divide(job.count, WG__GAMMAS_AT_ONCE), 8,
                     a->spec.dtype == WG_F32 ? gammas_f32 : gammas_f64, &job);
    return 0;
}

static int standard_gamma_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    gradients[0] = wg_mul(cotangents[0], wg__gamma_slope(call->inputs[0], call->outputs[0]));
    return wg__vjp_status();
}

static int standard_gamma_jvp(wg_call *call, wg_tensor *const *tangents,
                              wg_tensor **output_tangents) {
    output_tangents[0] = wg_mul(tangents[0], wg__gamma_slope(call->inputs[0], call->outputs[0]));
    return wg__vjp_status();
}

static const wg_op standard_gamma_op = {
    WG__OP("standard_gamma", 1, "A sample of the gamma distribution of rate 1."),
    .options_size = sizeof(gamma_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 1,
    .infer = standard_gamma_infer,
    .forward = standard_gamma_forward,
    .vjp = standard_gamma_vjp,
    .jvp = standard_gamma_jvp,
};

/* A draw of the generator for each call. */
static wg_tensor *standard_gamma(wg_generator *generator, wg_tensor *concentration) {
    wg_generator *from = generator ? generator : wg_default_generator();
    wg_tensor *a = wg__widen(wg__as_float(concentration));
    if (a == NULL)
        return NULL;
    const gamma_options options = {from->seed, from->offset++};
    return wg__narrow(wg_apply_one(&standard_gamma_op, 1, &a, &options), concentration->spec.dtype);
}

/* ---- What the functions share ---- */

/* Casts the parameters to one floating dtype and expands them to one shape; false after an error.
 */
static bool meet(const char *where, int count, wg_tensor **parameters) {
    if (!wg__promote_all(count, parameters))
        return false;
    wg_spec shape = parameters[0]->spec;
    for (int i = 0; i < count; i++) {
        parameters[i] = wg__as_float(parameters[i]);
        if (parameters[i] == NULL)
            return false;
        const wg_spec so_far = shape;
        if (!wg__broadcast(&so_far, &parameters[i]->spec, &shape)) {
            char a[128], b[128];
            wg_fail(WG_ERROR_SHAPE, where, "parameters of %s and %s do not broadcast",
                    wg_spec_text(a, sizeof a, &so_far),
                    wg_spec_text(b, sizeof b, &parameters[i]->spec));
            return false;
        }
    }
    for (int i = 0; i < count; i++)
        parameters[i] = wg_expand(parameters[i], shape.ndim, shape.shape);
    return parameters[count - 1] != NULL && wg_error_pending() == NULL;
}

/* From the exponential distribution of rate 1, in the shape of x: -log(1 - u). */
static wg_tensor *standard_exponential(wg_generator *generator, const wg_tensor *x) {
    return wg_neg(wg_log1p(wg_neg(wg_rand_like(generator, x))));
}

/* The function wg_NAME_sample of two parameters that broadcast; EXPRESSION is its sample. */
#define SAMPLE_2(NAME, A, B, EXPRESSION)                                                           \
    wg_tensor *wg_##NAME##_sample(wg_generator *generator, wg_tensor *A, wg_tensor *B) {           \
        wg_tensor *parameters[] = {A, B}, *y = NULL;                                               \
        if (A == NULL || B == NULL)                                                                \
            return NULL;                                                                           \
        wg_scope scope;                                                                            \
        wg_scope_begin(&scope);                                                                    \
        if (meet(#NAME "_sample", 2, parameters)) {                                                \
            A = parameters[0];                                                                     \
            B = parameters[1];                                                                     \
            y = EXPRESSION;                                                                        \
        }                                                                                          \
        return wg_scope_end(&scope, y);                                                            \
    }

SAMPLE_2(normal, mean, std, wg_add(mean, wg_mul(std, wg_randn_like(generator, mean))))

SAMPLE_2(uniform, low, high, wg_add(low, wg_mul(wg_sub(high, low), wg_rand_like(generator, low))))

SAMPLE_2(gamma, concentration, rate, wg_div(standard_gamma(generator, concentration), rate))

/* Exponential sizes of either sign. */
static wg_tensor *standard_laplace(wg_generator *generator, const wg_tensor *x) {
    wg_tensor *size = standard_exponential(generator, x);
    wg_tensor *below = wg_lt(wg_rand_like(generator, x), wg_scalar(x->spec.dtype, 0.5));
    return wg_where(below, wg_neg(size), size);
}

SAMPLE_2(laplace, mean, scale, wg_add(mean, wg_mul(scale, standard_laplace(generator, mean))))

static wg_tensor *share(wg_tensor *a, wg_tensor *b) {
    return wg_div(a, wg_add(a, b));
}

SAMPLE_2(beta, a, b, share(standard_gamma(generator, a), standard_gamma(generator, b)))

wg_tensor *wg_exponential_sample(wg_generator *generator, wg_tensor *rate) {
    wg_scope scope;
    wg_scope_begin(&scope);
    rate = wg__as_float(rate);
    return wg_scope_end(&scope,
                        rate == NULL ? NULL : wg_div(standard_exponential(generator, rate), rate));
}

wg_tensor *wg_dirichlet_sample(wg_generator *generator, wg_tensor *concentration) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *x = standard_gamma(generator, concentration);
    return wg_scope_end(&scope, wg_div(x, wg_sum(x, WG_DIMS(-1), true)));
}

wg_tensor *wg_student_t_sample(wg_generator *generator, wg_tensor *df, wg_tensor *mean,
                               wg_tensor *scale) {
    wg_tensor *parameters[] = {df, mean, scale}, *y = NULL;
    if (df == NULL || mean == NULL || scale == NULL)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (meet("student_t_sample", 3, parameters)) {
        wg_tensor *half = wg_mul_scalar(parameters[0], 0.5);
        wg_tensor *z = wg_randn_like(generator, half);
        wg_tensor *shrink = wg_rsqrt(wg_div(standard_gamma(generator, half), half));
        y = wg_add(parameters[1], wg_mul(parameters[2], wg_mul(z, shrink)));
    }
    return wg_scope_end(&scope, y);
}

/* The largest of logits + g with Gumbel's g = -log e, e exponential. */
wg_tensor *wg_categorical_sample(wg_generator *generator, wg_tensor *logits) {
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool was = wg_set_grad_enabled(false);
    wg_tensor *wide = wg_cast(logits, WG_F64), *y = NULL;
    if (wide != NULL)
        y = wg_argmax(wg_sub(wide, wg_log(standard_exponential(generator, wide))), -1, false);
    wg_set_grad_enabled(was);
    return wg_scope_end(&scope, y);
}

/* Standard normal columns for a mean (..., D, 1) and a triangle (..., D, D): the sum of the mean
 * and a column has their shape, and checks that they fit. */
static wg_tensor *normal_columns(wg_generator *generator, wg_tensor *mean, wg_tensor *triangle) {
    const bool was = wg_set_grad_enabled(false);
    const wg_tensor *sum = wg_add(mean, wg_slice(triangle, -1, 0, 1, 1));
    wg_tensor *z = sum == NULL ? NULL : wg_randn_like(generator, sum);
    wg_set_grad_enabled(was);
    return z;
}

wg_tensor *wg_multivariate_normal_sample(wg_generator *generator, wg_tensor *mean,
                                         wg_tensor *scale_tril) {
    wg_tensor *tensors[] = {mean, scale_tril}, *y = NULL;
    if (mean == NULL || scale_tril == NULL)
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (wg__promote_all(2, tensors)) {
        mean = wg_unsqueeze(wg__as_float(tensors[0]), -1);
        wg_tensor *triangle = wg_tril(wg__as_float(tensors[1]), 0);
        wg_tensor *z = normal_columns(generator, mean, triangle);
        y = z == NULL ? NULL : wg_squeeze(wg_add(mean, wg_matmul(triangle, z)), -1);
    }
    return wg_scope_end(&scope, y);
}
