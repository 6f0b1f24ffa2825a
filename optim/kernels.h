/* The loops of the optimizers over contiguous elements, compiled once for each instruction set. */
#ifndef WG_OPTIM_KERNELS_H
#define WG_OPTIM_KERNELS_H

#include <stdint.h>

/* The numbers of one AdamW step, in which lr, the bias corrections and the clipping are folded. */
typedef struct wg__adamw_rates {
    double gradient_scale; /* g' = gradient_scale g */
    double beta1, beta2;   /* m = beta1 m + (1 - beta1) g';  v = beta2 v + (1 - beta2) g'^2 */
    double root_scale;     /* 1 / sqrt(1 - beta2^t) */
    double eps;
    double step_size; /* lr / (1 - beta1^t) */
    double keep;      /* 1 - lr decay */
} wg__adamw_rates;

typedef struct wg__optimizer_kernels {
    /* w = keep w - step_size m / (root_scale sqrt(v) + eps), n elements. */
    void (*adamw_f32)(int64_t n, const wg__adamw_rates *rates, const float *g, float *w, float *m,
                      float *v);
    void (*adamw_f64)(int64_t n, const wg__adamw_rates *rates, const double *g, double *w,
                      double *m, double *v);

    /* sum x^2, in double. */
    double (*square_sum_f32)(int64_t n, const float *x);
    double (*square_sum_f64)(int64_t n, const double *x);
} wg__optimizer_kernels;

/* Those of each instruction set; the base alone where the processor is no x86-64. */
extern const wg__optimizer_kernels wg__optimizer_kernels_base;
extern const wg__optimizer_kernels wg__optimizer_kernels_v3;
extern const wg__optimizer_kernels wg__optimizer_kernels_v4;

#endif
