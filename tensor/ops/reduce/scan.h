/* Scans: each place along an axis gets what the elements up to it come to.
 *
 *              axis -->
 *     line 0   x0  x0+x1  x0+x1+x2 ...      lines that lie beside each other in memory advance
 *     line 1   ...                          together, a block of them at a time
 *
 * A record can run from the end to the begin, too: so the gradients are scans again. Scans of f32
 * and bf16 accumulate in f64. This is what their families share; scan.c has the engine. */
#ifndef WG_TENSOR_OPS_REDUCE_SCAN_H
#define WG_TENSOR_OPS_REDUCE_SCAN_H

#include "tensor/convert.h"
#include "tensor/ops/elementwise/elementwise.h"

/* ---- Kernels ---- */

/* Lines that advance together, at most: enough for a row of them to be fetched ahead. */
#define WG__SCAN_WIDTH 1024

/* Where a block of lines begins: of two inputs and two outputs, as far as there are so many. */
typedef struct wg__scan_lines {
    const void *x[2];
    void *y[2];
    int64_t n;     /* elements of a line */
    int64_t step;  /* from one to the next; negative in reverse */
    int64_t width; /* lines, each one element beside the last */
} wg__scan_lines;

typedef void (*wg__scan_kernel)(const wg__scan_lines *lines);

/* The kernel NAME: a single line is a case of its own, for the compiler to keep in registers. */
#define WG__ONE_OR_MORE(NAME)                                                                      \
    static void NAME(const wg__scan_lines *at) {                                                   \
        if (at->width == 1)                                                                        \
            NAME##_lines(at, 1);                                                                   \
        else                                                                                       \
            NAME##_lines(at, at->width);                                                           \
    }

/* Runs kernels[dtype of input 0] over the lines of all inputs, which have one shape, into all
 * outputs. -1 for lack of memory. */
int wg__scan(wg_call *call, const wg__scan_kernel *kernels);

/* ---- Records ---- */

typedef struct wg__scan_options {
    int axis;
    bool reverse; /* from the last to the first */
} wg__scan_options;

/* What stands at the next place of the scan, or at the one before; `fill` where there is none. */
wg_tensor *wg__shifted(wg_tensor *x, const wg__scan_options *options, bool next, double fill);

/* y_i = a_i y_(i-1) + b_i, where a and b are of one floating dtype and shape (linear_scan.c). */
wg_tensor *wg__recurrence(wg_tensor *a, wg_tensor *b, int axis, bool reverse);

double wg__scan_flops(const wg_call *call);

/* Four shapes, the last with lines of one element; axes in the middle, last and first. */
int wg__sample_scan(int index, wg_generator *generator, wg_sample *sample, wg__sampler make);

/* The rows of a large matrix. */
int wg__bench_scan(wg_generator *generator, wg_sample *sample);

#endif
