/* Common parts of the losses: the check of wg_reduction, and the cross-entropies' options and rows.
 * A row of logits gives its loss; its gradient then overwrites the logits.
 *
 *     logits x (N, V)   -->   loss (N), log sum e^x (N)   -->   gradient (N, V)
 *
 * Label smoothing e scales the target by 1 - e and adds e / V to each of the V classes (Szegedy et
 * al. 2016, section 7). */
#ifndef WG_TENSOR_OPS_LOSS_LOSS_H
#define WG_TENSOR_OPS_LOSS_LOSS_H

#include "tensor/ops.h"
#include "tensor/simd/simd.h"

/* -1 with ARGUMENT for a value outside the enum. */
int wg__check_reduction(wg_reduction reduction, const char *where);

typedef struct wg__loss_options {
    int64_t ignore_index;
    double smoothing;
    wg_reduction reduction;
    bool rounds; /* linear_cross_entropy in f32: products round their operands to bf16 */
} wg__loss_options;

/* Checks the options of a public function, and fills `record` and the weight of the classes (or
 * NULL), cast to the dtype of the logits. `options` may be NULL. -1 after wg_fail. */
int wg__loss_options_make(const char *where, wg_dtype dtype, int64_t ignore_index,
                          const wg_cross_entropy_options *options, wg__loss_options *record,
                          wg_tensor **weight);

/* The number of rows that are not ignored and whose largest logit is at the target: rank 0, i64. */
wg_tensor *wg__count_correct(wg_tensor *logits, wg_tensor *target, int64_t ignore_index);

/* Infers output 0: (), or (N) without reduction. -1 unless input number `weight`, if present, has
 * the shape (V). */
int wg__infer_losses(wg_call *call, int64_t rows, int64_t classes, int weight);

/* -1 with INDEX for a target that is neither a class nor ignored. Call this before the rows run:
 * worker threads cannot record errors. */
int wg__check_targets(const wg_call *call, const wg_tensor *target, int64_t classes);

typedef struct wg__loss_rows {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t width;
    wg__loss_options options;
    const char *x;         /* (N, V) */
    const int64_t *target; /* (N): classes; NULL: soft targets */
    const char *soft;      /* (N, V); NULL: class targets */
    const char *weight;    /* (V), or NULL */
    double weight_sum;     /* of all classes */
    char *log_sum;         /* (N): log sum e^x */
    char *target_sum;      /* (N): the sum of a row's soft targets, smoothed and weighted */
    double *loss;          /* (N) */
    bool *correct;         /* (N): whether the target has the largest logit; NULL: not wanted */
    double denominator;    /* for gradients: the divisor of the sum of losses */
    const char *cotangent; /* for gradients: (), or (N) */
    char *gradient;        /* (N, V), may be x */
} wg__loss_rows;

/* A job from options, targets (i64, or soft) and weight (may be NULL), all contiguous. */
wg__loss_rows wg__loss_rows_of(const wg__loss_options *options, wg_dtype dtype, int64_t width,
                               const wg_tensor *target, const wg_tensor *weight);

/* The divisor of the sum of the losses: 1, N, or for class targets the sum of their weights. */
double wg__loss_denominator(const wg__loss_rows *job, int64_t rows);

/* Writes the output of the op: the losses of the rows, reduced or not, as the logits' dtype. */
void wg__reduce_losses(const wg__loss_rows *job, int64_t rows, char *out);

/* Bodies of parallel loops over rows with class targets. The gradients need the log sums that the
 * losses stored. An ignored row gives 0. cross_entropy.c has the formulas. */
void wg__class_losses(int64_t begin, int64_t end, void *job);
void wg__class_gradients(int64_t begin, int64_t end, void *job);

/* Class targets for samples of 3, 4 or 5 rows, some of them ignored; for more rows, random classes
 * below 2^13. */
wg_tensor *wg__sample_targets(wg_generator *generator, int ndim, const int64_t *shape);

#endif
