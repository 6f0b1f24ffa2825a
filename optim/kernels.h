/* The loops of the optimizers over contiguous elements, compiled once for each instruction set.
 *
 * Pointers to elements are to f32 or f64, as the table says that a loop is taken from. In all rates
 * the gradient that is meant is g' = gradient_scale g: clipping costs no pass of its own. */
#ifndef WG_OPTIM_KERNELS_H
#define WG_OPTIM_KERNELS_H

#include <stdint.h>

/* The numbers of one step of Adam or AdamW, in which lr and the bias corrections are folded. */
typedef struct wg__adam_rates {
    double gradient_scale;
    double coupled_decay; /* g' += coupled_decay w: Adam's */
    double beta1, beta2;  /* m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2 */
    double root_scale;    /* 1 / sqrt(1 - beta2^t) */
    double eps;
    double step_size; /* lr / (1 - beta1^t) */
    double keep;      /* 1 - lr decay: AdamW's */
} wg__adam_rates;

typedef struct wg__sgd_rates {
    double gradient_scale;
    double decay; /* g' += decay w */
    double momentum;
    double direct, along; /* the weights of g' and m in the step */
    double step_size;
} wg__sgd_rates;

typedef struct wg__lion_rates {
    double gradient_scale;
    double beta1, beta2;
    double keep, step_size;
} wg__lion_rates;

/* Sums are in double; where they are of n squares, those are of REAL numbers. */
typedef struct wg__optimizer_loops {
    /* sum x^2 */
    double (*square_sum)(int64_t n, const void *x);

    /* x = scale x */
    void (*scale)(int64_t n, double scale, void *x);

    /* w = keep w - step_size x */
    void (*apply)(int64_t n, double keep, double step_size, const void *x, void *w);

    /* w = keep w - step_size m / (root_scale sqrt(v) + eps) */
    void (*adam)(int64_t n, const wg__adam_rates *rates, const void *g, void *w, void *m, void *v);

    /* w -= step_size g'; with momentum, m = momentum m + g', w -= step_size (direct g' + along m)
     */
    void (*sgd)(int64_t n, const wg__sgd_rates *rates, const void *g, void *w);
    void (*sgd_momentum)(int64_t n, const wg__sgd_rates *rates, const void *g, void *w, void *m);

    /* w = keep w - step_size sign(beta1 m + (1 - beta1) g');  m = beta2 m + (1 - beta2) g' */
    void (*lion)(int64_t n, const wg__lion_rates *rates, const void *g, void *w, void *m);

    /* m = momentum m + (1 - momentum) g';  x = momentum m + (1 - momentum) g'; gives sum x^2 */
    double (*nesterov)(int64_t n, double gradient_scale, double momentum, const void *g, void *m,
                       void *x);

    /* columns[j] += g'[j]^2 + eps; gives the sum of what was added */
    double (*add_squares)(int64_t n, double gradient_scale, double eps, const void *g,
                          double *columns);

    /* u[j] = factor g[j] c[j]: gives sum u^2 */
    double (*factored_sum)(int64_t n, double factor, const void *g, const void *c);

    /* w[j] = keep w[j] - factor g[j] c[j] */
    void (*factored_apply)(int64_t n, double keep, double factor, const void *g, const void *c,
                           void *w);

    /* v = beta2 v + (1 - beta2) (g'^2 + eps); gives sum g'^2 / v */
    double (*second_moment)(int64_t n, double gradient_scale, double beta2, double eps,
                            const void *g, void *v);

    /* w = keep w - factor g / sqrt(v) */
    void (*second_moment_apply)(int64_t n, double keep, double factor, const void *g, const void *v,
                                void *w);
} wg__optimizer_loops;

typedef struct wg__optimizer_kernels {
    wg__optimizer_loops f32, f64;
} wg__optimizer_kernels;

/* Those of each instruction set; the base alone where the processor is no x86-64. */
extern const wg__optimizer_kernels wg__optimizer_kernels_base;
extern const wg__optimizer_kernels wg__optimizer_kernels_v3;
extern const wg__optimizer_kernels wg__optimizer_kernels_v4;

#endif
