/* Probability distributions, by the names and parameters of torch.distributions: log densities,
 * entropies, samples and Kullback-Leibler divergences.
 *
 *     const wg_distribution p = {WG_NORMAL, {mean, std}};
 *     wg_tensor *x = wg_distribution_sample(&generator, &p);
 *     wg_tensor *loss = wg_distribution_log_prob(&p, x);
 *
 * Values and parameters broadcast, and have gradients of any order. Samples have the broadcast
 * shape of the parameters (wg_expand the parameters for more samples), and gradients where the
 * contract says "reparameterized". Parameters outside their range give NaN or infinities, as the
 * formulas do. A NULL generator means the thread's default generator. Integers are cast to f32. */
#ifndef WG_TENSOR_DISTRIBUTIONS_H
#define WG_TENSOR_DISTRIBUTIONS_H

#include "random.h"
#include "tensor.h"

WG_BEGIN_DECLS

/* The distributions, with their parameters. */
typedef enum wg_distribution_kind {
    /* mean, std > 0: density e^(-((x - mean) / std)^2 / 2) / (std sqrt(2 pi)). Samples mean + std z
     * are reparameterized. KL: log(q_std / p_std) + (p_std^2 + (p_mean - q_mean)^2) / (2 q_std^2) -
     * 1/2. */
    WG_NORMAL,
    /* low, high: 1 / (high - low) on [low, high); -inf as a logarithm elsewhere. Reparameterized.
     * KL: infinite where q does not cover p. */
    WG_UNIFORM,
    /* rate: rate e^(-rate x), x >= 0. Reparameterized. */
    WG_EXPONENTIAL,
    /* mean, scale: e^(-|x - mean| / scale) / (2 scale). Reparameterized. */
    WG_LAPLACE,
    /* concentration a, rate: rate^a x^(a - 1) e^(-rate x) / Gamma(a), x > 0. Samples by Marsaglia
     * and Tsang's method (2000), reparameterized implicitly (Figurnov et al. 2018): the first three
     * derivatives by the concentration are the derivatives of the quantile at a fixed probability.
     * [GRADIENT in a fourth backward] */
    WG_GAMMA,
    /* a, b: x^(a - 1) (1 - x)^(b - 1) / B(a, b), 0 < x < 1. Samples are g1 / (g1 + g2) of two
     * gamma samples, and reparameterized through them. */
    WG_BETA,
    /* concentration a (..., K): prod_k x_k^(a_k - 1) / B(a) of shares x (..., K) that sum to 1 ->
     * (...). Samples (..., K) are gamma samples over their sum, and reparameterized by them. */
    WG_DIRICHLET,
    /* df, mean, scale: Student's t with df degrees of freedom, moved by mean and scale.
     * Reparameterized, by df through a gamma sample. No KL. */
    WG_STUDENT_T,
    /* logits, finite: 1 with probability sigmoid(logits). wg_bernoulli samples. */
    WG_BERNOULLI,
    /* logits (..., K): k with probability softmax(logits)_k, of values (...) i64 or i32 -> (...).
     * Samples (...) i64 by the Gumbel trick, without gradient. */
    WG_CATEGORICAL,
    /* mean (..., D), scale_tril (..., D, D), a lower triangle L: of the covariance L L^T, of values
     * (..., D) -> (...). Samples (..., D), mean + L z, are reparameterized. */
    WG_MULTIVARIATE_NORMAL
} wg_distribution_kind;

typedef struct wg_distribution {
    wg_distribution_kind kind;
    wg_tensor *parameters[3];
} wg_distribution;

/* The log density at value. [scope; SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_distribution_log_prob(const wg_distribution *p, wg_tensor *value);

/* The entropy, in nats; mean is not read. [scope; SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_distribution_entropy(const wg_distribution *p);

/* A sample. [scope; SHAPE, ARGUMENT] */
WG_API wg_tensor *wg_distribution_sample(wg_generator *generator, const wg_distribution *p);

/* KL(p || q), both of the same kind. [scope; SHAPE, ARGUMENT if the kind has none] */
WG_API wg_tensor *wg_distribution_kl(const wg_distribution *p, const wg_distribution *q);

WG_END_DECLS

#endif
