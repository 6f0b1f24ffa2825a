/* Probability distributions, by the names and parameters of torch.distributions: log densities,
 * entropies, samples and Kullback-Leibler divergences.
 *
 *     wg_tensor *x = wg_normal_sample(&generator, mean, std);
 *     wg_tensor *loss = wg_normal_log_prob(x, mean, std);
 *
 * Values and parameters broadcast, and have gradients: functions of any order but for samples.
 * Samples are of the broadcast shape of the parameters (wg_expand them for more), and are functions
 * of them where the contract says "reparameterized": gradients go through. Parameters outside their
 * range give NaN or infinities, as formulas do; a generator of NULL is the thread's own. Integers
 * are cast to f32. All return a tensor of the innermost scope. */
#ifndef WG_TENSOR_DISTRIBUTIONS_H
#define WG_TENSOR_DISTRIBUTIONS_H

#include "random.h"
#include "tensor.h"

WG_BEGIN_DECLS

/* ---- Normal: density e^(-((x - mean) / std)^2 / 2) / (std sqrt(2 pi)), std > 0 ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_normal_log_prob(wg_tensor *value, wg_tensor *mean, wg_tensor *std);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_normal_entropy(wg_tensor *std);
/* mean + std z with a standard normal z. Reparameterized. [scope; SHAPE] */
WG_API wg_tensor *wg_normal_sample(wg_generator *generator, wg_tensor *mean, wg_tensor *std);
/* KL(p || q) = log(q_std / p_std) + (p_std^2 + (p_mean - q_mean)^2) / (2 q_std^2) - 1/2. */
WG_API wg_tensor *wg_normal_kl(wg_tensor *p_mean, wg_tensor *p_std, wg_tensor *q_mean,
                               wg_tensor *q_std);

/* ---- Uniform: 1 / (high - low) on [low, high); -inf elsewhere ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_uniform_log_prob(wg_tensor *value, wg_tensor *low, wg_tensor *high);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_uniform_entropy(wg_tensor *low, wg_tensor *high);
/* Reparameterized. [scope; SHAPE] */
WG_API wg_tensor *wg_uniform_sample(wg_generator *generator, wg_tensor *low, wg_tensor *high);
/* Infinite where q does not cover p. [scope; SHAPE] */
WG_API wg_tensor *wg_uniform_kl(wg_tensor *p_low, wg_tensor *p_high, wg_tensor *q_low,
                                wg_tensor *q_high);

/* ---- Exponential: rate e^(-rate x), x >= 0 ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_exponential_log_prob(wg_tensor *value, wg_tensor *rate);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_exponential_entropy(wg_tensor *rate);
/* Reparameterized. [scope] */
WG_API wg_tensor *wg_exponential_sample(wg_generator *generator, wg_tensor *rate);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_exponential_kl(wg_tensor *p_rate, wg_tensor *q_rate);

/* ---- Laplace: e^(-|x - mean| / scale) / (2 scale) ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_laplace_log_prob(wg_tensor *value, wg_tensor *mean, wg_tensor *scale);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_laplace_entropy(wg_tensor *scale);
/* Reparameterized. [scope; SHAPE] */
WG_API wg_tensor *wg_laplace_sample(wg_generator *generator, wg_tensor *mean, wg_tensor *scale);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_laplace_kl(wg_tensor *p_mean, wg_tensor *p_scale, wg_tensor *q_mean,
                                wg_tensor *q_scale);

/* ---- Gamma: rate^a x^(a - 1) e^(-rate x) / Gamma(a) with a = concentration, x > 0 ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_gamma_log_prob(wg_tensor *value, wg_tensor *concentration, wg_tensor *rate);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_gamma_entropy(wg_tensor *concentration, wg_tensor *rate);
/* By Marsaglia and Tsang's method (2000). Reparameterized implicitly (Figurnov et al. 2018): the
 * derivative by the concentration is that of the quantile at a fixed probability, and so are the
 * second and the third. [scope; SHAPE; GRADIENT in a fourth backward] */
WG_API wg_tensor *wg_gamma_sample(wg_generator *generator, wg_tensor *concentration,
                                  wg_tensor *rate);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_gamma_kl(wg_tensor *p_concentration, wg_tensor *p_rate,
                              wg_tensor *q_concentration, wg_tensor *q_rate);

/* ---- Beta: x^(a - 1) (1 - x)^(b - 1) / B(a, b), 0 < x < 1 ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_beta_log_prob(wg_tensor *value, wg_tensor *a, wg_tensor *b);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_beta_entropy(wg_tensor *a, wg_tensor *b);
/* Of two gamma samples, the first's share. Reparameterized by them. [scope; SHAPE] */
WG_API wg_tensor *wg_beta_sample(wg_generator *generator, wg_tensor *a, wg_tensor *b);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_beta_kl(wg_tensor *p_a, wg_tensor *p_b, wg_tensor *q_a, wg_tensor *q_b);

/* ---- Dirichlet: prod_k x_k^(a_k - 1) / B(a) of shares x that sum to 1, with a = concentration.
 * value, concentration: (..., K)   ->   (...); samples (..., K) ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_dirichlet_log_prob(wg_tensor *value, wg_tensor *concentration);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_dirichlet_entropy(wg_tensor *concentration);
/* Gamma samples over their sum. Reparameterized by them. [scope; SHAPE] */
WG_API wg_tensor *wg_dirichlet_sample(wg_generator *generator, wg_tensor *concentration);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_dirichlet_kl(wg_tensor *p_concentration, wg_tensor *q_concentration);

/* ---- Student's t with df degrees of freedom, moved by mean and scale ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_student_t_log_prob(wg_tensor *value, wg_tensor *df, wg_tensor *mean,
                                        wg_tensor *scale);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_student_t_entropy(wg_tensor *df, wg_tensor *scale);
/* Reparameterized, by df through a gamma sample. [scope; SHAPE] */
WG_API wg_tensor *wg_student_t_sample(wg_generator *generator, wg_tensor *df, wg_tensor *mean,
                                      wg_tensor *scale);

/* ---- Bernoulli: 1 with probability sigmoid(logits), which are finite; wg_bernoulli samples ----
 */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_bernoulli_log_prob(wg_tensor *value, wg_tensor *logits);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_bernoulli_entropy(wg_tensor *logits);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_bernoulli_kl(wg_tensor *p_logits, wg_tensor *q_logits);

/* ---- Categorical: k with probability softmax(logits)_k.   value: (...) i64 or i32
 * logits: (..., K)   ->   (...) ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_categorical_log_prob(wg_tensor *value, wg_tensor *logits);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_categorical_entropy(wg_tensor *logits);
/* (...) i64, by the Gumbel trick. No gradient. [scope; SHAPE] */
WG_API wg_tensor *wg_categorical_sample(wg_generator *generator, wg_tensor *logits);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_categorical_kl(wg_tensor *p_logits, wg_tensor *q_logits);

/* ---- Multivariate normal of the covariance L L^T with L = scale_tril, a lower triangle.
 * value, mean: (..., D)   scale_tril: (..., D, D)   ->   (...); samples (..., D) ---- */

/* The log density at value. [scope; SHAPE] */
WG_API wg_tensor *wg_multivariate_normal_log_prob(wg_tensor *value, wg_tensor *mean,
                                                  wg_tensor *scale_tril);
/* The entropy, in nats. [scope; SHAPE] */
WG_API wg_tensor *wg_multivariate_normal_entropy(wg_tensor *scale_tril);
/* mean + L z. Reparameterized. [scope; SHAPE] */
WG_API wg_tensor *wg_multivariate_normal_sample(wg_generator *generator, wg_tensor *mean,
                                                wg_tensor *scale_tril);
/* KL(p || q). [scope; SHAPE] */
WG_API wg_tensor *wg_multivariate_normal_kl(wg_tensor *p_mean, wg_tensor *p_scale_tril,
                                            wg_tensor *q_mean, wg_tensor *q_scale_tril);

WG_END_DECLS

#endif
