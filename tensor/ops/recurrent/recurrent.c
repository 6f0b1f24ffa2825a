/* Recurrent layers, LSTM and GRU, over whole sequences. T, B, H and G are the numbers of time
 * steps, sequences, hidden units and gate values. The caller has multiplied the inputs x by their
 * weight.
 *
 *     x (T, B, I) -- one product --> a (T, B, G)
 *                                     |
 *     h_(t-1) (B, H) -- product --> (+) --> the cell --> h_t (B, H)      step by step
 *
 * Forward saves the gates of all steps for backward. Backward needs one product per step; the
 * gradient of the weight is one product over all steps. The rows of a batch are independent: each
 * thread runs some rows through all steps, and threads wait for each other only at the end. */
#include <string.h>

#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/support.h"

/* The options are a bool, `reverse`: from the last step to the first. */

/* The sizes of a call: T, B, H and G. */
typedef struct sizes {
    int64_t t, b, h, g;
} sizes;

static sizes sizes_of(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *w = &call->input_specs[1];
    return (sizes){a->shape[0], a->shape[1], w->shape[1], a->shape[2]};
}

/* An LSTM has two results, all h and the last c; a GRU has all h. */
static bool is_lstm(const wg_call *call) {
    return call->op->output_count == 2;
}

/* The index t of step number `step`. */
static int64_t time_of(const wg_call *call, int64_t step) {
    return *(const bool *)call->options ? call->input_specs[0].shape[0] - 1 - step : step;
}

/* a (T, B, G H) x weight (G H, H) x states (B, H); for G gates. */
static int recurrent_infer(wg_call *call) {
    const int64_t gates = is_lstm(call) ? 4 : 3, states = gates - 2;
    const wg_spec *a = &call->input_specs[0], *w = &call->input_specs[1];
    const char *letters = gates == 4 ? "(T, B, 4 H) x (4 H, H) x (B, H) x (B, H)"
                                     : "(T, B, 3 H) x (3 H, H) x (B, H), and (3 H)";
    if (wg__check_kernel_dtype(call) < 0 || wg__check_same_dtypes(call, 4) < 0)
        return -1;
    if (a->ndim != 3 || w->ndim != 2 || w->shape[0] != gates * w->shape[1] ||
        a->shape[2] != w->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted %s", letters);
    const wg_spec state = {a->dtype, 2, {a->shape[1], w->shape[1]}};
    const wg_spec bias = {a->dtype, 1, {w->shape[0]}};
    for (int i = 2; i < call->input_count; i++) {
        const wg_spec *given = &call->input_specs[i];
        const bool is_state = i < 2 + states;
        if ((is_state || given->ndim >= 0) && !wg__same_shape(given, is_state ? &state : &bias))
            return wg__op_fail(call, WG_ERROR_SHAPE, "wanted %s", letters);
    }
    call->output_specs[0] = (wg_spec){a->dtype, 3, {a->shape[0], state.shape[0], state.shape[1]}};
    call->output_specs[1] = state;
    return 0;
}

/* Addresses in contiguous tensors of the same dtype. */
typedef struct job {
    const wg__simd *simd;
    wg_dtype dtype;
    sizes s;
    size_t size; /* bytes of an element */
    char *weight;
    /* For forward: the transposed weight (H, G), packed in panels, or, if panels is NULL, plain. */
    char *panels;
    wg__matrix transposed;
    /* Of the current step, (B, ...) each. LSTM and GRU use different ones. */
    const char *a, *before, *cell_before, *dy;
    char *gates, *hidden, *cell, *from_hidden, *dgates, *dhidden, *dcell;
} job;

static int begin(job *j, wg_call *call) {
    const wg_tensor *weight = wg_contiguous(call->inputs[1]);
    const wg_dtype dtype = call->input_specs[0].dtype;
    *j = (job){.simd = wg__simd_for(dtype),
               .dtype = dtype,
               .s = sizes_of(call),
               .size = wg_dtype_size(dtype),
               .weight = wg_tensor_data(weight)};
    return weight ? 0 : -1;
}

/* Step t of x (T, B, width); NULL for NULL. */
static char *at_time(const job *j, char *x, int64_t t, int64_t width) {
    return x ? x + (size_t)(t * j->s.b * width) * j->size : NULL;
}

static wg__matrix matrix(const void *data, int64_t columns) {
    return (wg__matrix){(void *)data, columns, 1};
}

/* The rows of x (B, width) from `row` on. */
static wg__matrix rows_from(const job *j, const char *x, int64_t row, int64_t width) {
    return matrix(x + (size_t)(row * width) * j->size, width);
}

/* Rows begin..end - 1 of c (B, G) = h_(t-1) W^T, plus the same rows of `plus` (B, G) or plus a bias
 * (G). `plus` and `bias` may be NULL. */
static void multiply_hidden(const job *j, int64_t begin, int64_t end, const char *plus,
                            const char *bias, char *c) {
    const wg__matrix rows = rows_from(j, c, begin, j->s.g);
    const int64_t panel = WG__PANEL_VECTORS * j->simd->lanes;
    if (j->panels) {
        j->simd->products.panel(
            &(wg__panel_product){.m = end - begin,
                                 .n = j->s.g,
                                 .k = j->s.h,
                                 .alpha = 1,
                                 .a = rows_from(j, j->before, begin, j->s.h).data,
                                 .a_row = j->s.h,
                                 .a_column = 1,
                                 .b = j->panels,
                                 .b_panel = panel * j->s.h,
                                 .b_row = panel,
                                 .d = plus ? rows_from(j, plus, begin, j->s.g).data : bias,
                                 .d_row = plus ? j->s.g : 0,
                                 .c = rows.data,
                                 .c_row = j->s.g});
        return;
    }
    if (plus)
        memcpy(rows.data, rows_from(j, plus, begin, j->s.g).data,
               (size_t)((end - begin) * j->s.g) * j->size);
    wg__product product =
        wg__product_of(j->dtype, end - begin, j->s.g, j->s.h,
                       rows_from(j, j->before, begin, j->s.h), j->transposed, rows);
    product.beta = plus ? 1 : 0;
    product.row = bias;
    wg__gemm(&product);
}

/* dW = sum over t of g_t^T h_(t-1), where h_(t-1) is a step of the outputs, or h0. */
static wg_tensor *weight_gradient(const job *j, wg_call *call, char *g) {
    const sizes *s = &j->s;
    const bool reverse = *(const bool *)call->options;
    wg_tensor *gradient = wg_zeros(j->dtype, 2, call->input_specs[1].shape);
    const wg_tensor *first = wg_contiguous(call->inputs[2]);
    const wg_tensor *hidden = wg_contiguous(call->outputs[0]);
    if (!gradient || !first || !hidden || s->t == 0)
        return gradient;
    wg__product product =
        wg__product_of(j->dtype, s->g, s->h, (s->t - 1) * s->b,
                       wg__transposed(matrix(at_time(j, g, !reverse, s->g), s->g)),
                       matrix(at_time(j, wg_tensor_data(hidden), reverse, s->h), s->h),
                       matrix(wg_tensor_data(gradient), s->h));
    if (product.k > 0)
        wg__gemm(&product);
    product.k = s->b;
    product.beta = 1;
    product.a = wg__transposed(matrix(at_time(j, g, time_of(call, 0), s->g), s->g));
    product.b = matrix(wg_tensor_data(first), s->h);
    if (product.k > 0)
        wg__gemm(&product);
    return gradient;
}

/* A thread runs ROWS rows of the batch through all steps. A weight of more than CACHED elements
 * does not stay in the cache from step to step; then all rows take each step together, and the
 * threads share each product. */
enum { ROWS = 16, CACHED = 1 << 20 };

typedef struct sequence {
    const wg_call *call;
    job job;
    wg__range_body rows; /* the cell: computes rows of a step */
    char *a, *bias, *h0, *c0, *gates, *cells, *hidden, *product, *dy, *dgates; /* of all steps */
} sequence;

/* Prepares the weight for forward. Packs it for the panel kernel if all vectors are whole and
 * enough products share the packing. Otherwise elements of the product are dot products of rows of
 * h and rows of the weight. Short dot products are slow: then the weight is transposed in memory.
 */
static int prepare_weight(job *j, wg_tensor *weight) {
    enum { FEWEST = 4 /* steps, and rows */, SHORT = 128 };
    const sizes *s = &j->s;
    if (s->t >= FEWEST && s->b >= FEWEST && s->g * s->h <= CACHED && s->g % j->simd->lanes == 0) {
        const int64_t panel = WG__PANEL_VECTORS * j->simd->lanes;
        const int64_t count = wg__ceil_divide(s->g, panel) * panel * s->h;
        j->panels = wg_tensor_data(wg_empty(j->dtype, 1, &count));
        if (!j->panels)
            return -1;
        j->simd->products.pack_columns(s->g, s->h, j->weight, s->h, 1, j->panels);
    }
    if (s->h > SHORT || j->panels) {
        j->transposed = wg__transposed(matrix(j->weight, s->h));
        return 0;
    }
    const wg_tensor *transposed = wg_contiguous(wg_transpose(weight, 0, 1));
    j->transposed = matrix(wg_tensor_data(transposed), s->g);
    return transposed ? 0 : -1;
}

static void run_sequence(sequence *w, wg__range_body body) {
    const sizes *s = &w->job.s;
    const double flops = wg__product_flops;
    if (s->b * s->h == 0)
        return;
    wg__parallel_for(s->b, s->g * s->h <= CACHED ? ROWS : s->b, body, w);
    wg__product_flops = flops + 2 * (double)s->t * (double)s->b * (double)s->g * (double)s->h;
}

/* Runs the cell on rows of a step: in parallel if this thread has all rows and they are enough. */
static void run_rows(job *j, int64_t begin, int64_t end, wg__range_body body) {
    if (end - begin == j->s.b)
        wg__parallel_for(j->s.b, WG__GRAIN / (j->s.g + 1) + 1, body, j);
    else
        body(begin, end, j);
}

static void squash(const job *j, wg_elementwise_op function, int64_t n, const void *x, void *y) {
    wg__map_values(j->simd, (wg__map){.function = function}, n, x, y);
}

/* Defines functions for both dtypes by NAME_OF(REAL, SUFFIX). */
#define FOR_BOTH(NAME_OF) NAME_OF(float, f32) NAME_OF(double, f64)

/* ---- lstm: with the gates a + h_(t-1) W^T = (i, f, g, o)   (Hochreiter & Schmidhuber 1997;
 * Gers et al. 2000, for f)
 *
 *     c_t = s(f) c_(t-1) + s(i) tanh(g)       h_t = s(o) tanh(c_t)        s(x) = 1 / (1 + e^-x)
 * ---- */

#define LSTM_ROWS(REAL, SUFFIX)                                                                    \
    static void lstm_rows_##SUFFIX(int64_t begin, int64_t end, void *context) {                    \
        const job *j = context;                                                                    \
        const int64_t n = j->s.h;                                                                  \
        for (int64_t row = begin; row < end; row++) {                                              \
            REAL *i = (REAL *)j->gates + row * 4 * n, *f = i + n, *g = f + n, *o = g + n;          \
            const REAL *before = (const REAL *)j->cell_before + row * n;                           \
            REAL *c = (REAL *)j->cell + row * n, *h = (REAL *)j->hidden + row * n;                 \
            squash(j, WG_SIGMOID, 2 * n, i, i);                                                    \
            squash(j, WG_TANH, n, g, g);                                                           \
            squash(j, WG_SIGMOID, n, o, o);                                                        \
            for (int64_t k = 0; k < n; k++)                                                        \
                c[k] = f[k] * before[k] + i[k] * g[k];                                             \
            squash(j, WG_TANH, n, c, h);                                                           \
            for (int64_t k = 0; k < n; k++)                                                        \
                h[k] *= o[k];                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void lstm_vjp_rows_##SUFFIX(int64_t begin, int64_t end, void *context) {                \
        const job *j = context;                                                                    \
        const int64_t n = j->s.h;                                                                  \
        for (int64_t row = begin; row < end; row++) {                                              \
            const REAL *i = (const REAL *)j->gates + row * 4 * n;                                  \
            const REAL *f = i + n, *g = f + n, *o = g + n;                                         \
            const REAL *before = (const REAL *)j->cell_before + row * n;                           \
            const REAL *dy = j->dy ? (const REAL *)j->dy + row * n : NULL;                         \
            REAL *di = (REAL *)j->dgates + row * 4 * n, *df = di + n, *dg = df + n;                \
            REAL *d_o = dg + n, *dh = (REAL *)j->dhidden + row * n;                                \
            REAL *dc = (REAL *)j->dcell + row * n;                                                 \
            squash(j, WG_TANH, n, (const REAL *)j->cell + row * n, d_o);                           \
            for (int64_t k = 0; k < n; k++) {                                                      \
                const REAL t = d_o[k], h = dh[k] + (dy ? dy[k] : 0);                               \
                const REAL c = dc[k] + h * o[k] * (1 - t * t);                                     \
                d_o[k] = h * t * o[k] * (1 - o[k]);                                                \
                di[k] = c * g[k] * i[k] * (1 - i[k]);                                              \
                df[k] = c * before[k] * f[k] * (1 - f[k]);                                         \
                dg[k] = c * i[k] * (1 - g[k] * g[k]);                                              \
                dc[k] = c * f[k];                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

FOR_BOTH(LSTM_ROWS)

/* ---- gru: with u = h_(t-1) W^T + bias, and a and u of three parts   (Cho et al. 2014; as in
 * PyTorch and cuDNN, r multiplies the product)
 *
 *     r = s(a_r + u_r)    z = s(a_z + u_z)    n = tanh(a_n + r u_n)    h_t = (1 - z) n + z h_(t-1)
 *
 * Saved for each step: r, z, n and u_n. ---- */

#define GRU_ROWS(REAL, SUFFIX)                                                                     \
    static void gru_rows_##SUFFIX(int64_t begin, int64_t end, void *context) {                     \
        const job *j = context;                                                                    \
        const int64_t n = j->s.h;                                                                  \
        for (int64_t row = begin; row < end; row++) {                                              \
            const REAL *a = (const REAL *)j->a + row * 3 * n;                                      \
            const REAL *u = (const REAL *)j->from_hidden + row * 3 * n;                            \
            const REAL *before = (const REAL *)j->before + row * n;                                \
            REAL *r = (REAL *)j->gates + row * 4 * n, *z = r + n, *m = z + n, *un = m + n;         \
            REAL *h = (REAL *)j->hidden + row * n;                                                 \
            for (int64_t k = 0; k < 2 * n; k++)                                                    \
                r[k] = a[k] + u[k];                                                                \
            squash(j, WG_SIGMOID, 2 * n, r, r);                                                    \
            for (int64_t k = 0; k < n; k++) {                                                      \
                un[k] = u[2 * n + k];                                                              \
                m[k] = a[2 * n + k] + r[k] * un[k];                                                \
            }                                                                                      \
            squash(j, WG_TANH, n, m, m);                                                           \
            for (int64_t k = 0; k < n; k++)                                                        \
                h[k] = (1 - z[k]) * m[k] + z[k] * before[k];                                       \
        }                                                                                          \
    }                                                                                              \
    static void gru_vjp_rows_##SUFFIX(int64_t begin, int64_t end, void *context) {                 \
        const job *j = context;                                                                    \
        const int64_t n = j->s.h;                                                                  \
        for (int64_t row = begin; row < end; row++) {                                              \
            const REAL *r = (const REAL *)j->gates + row * 4 * n;                                  \
            const REAL *z = r + n, *m = z + n, *un = m + n;                                        \
            const REAL *before = (const REAL *)j->before + row * n;                                \
            const REAL *dy = j->dy ? (const REAL *)j->dy + row * n : NULL;                         \
            REAL *da = (REAL *)j->dgates + row * 3 * n;                                            \
            REAL *du = (REAL *)j->from_hidden + row * 3 * n;                                       \
            REAL *dh = (REAL *)j->dhidden + row * n;                                               \
            for (int64_t k = 0; k < n; k++) {                                                      \
                const REAL g = dh[k] + (dy ? dy[k] : 0);                                           \
                const REAL dm = g * (1 - z[k]) * (1 - m[k] * m[k]);                                \
                da[2 * n + k] = dm;                                                                \
                du[2 * n + k] = dm * r[k];                                                         \
                da[k] = du[k] = dm * un[k] * r[k] * (1 - r[k]);                                    \
                da[n + k] = du[n + k] = g * (before[k] - m[k]) * z[k] * (1 - z[k]);                \
                dh[k] = g * z[k];                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

FOR_BOTH(GRU_ROWS)

static void forward_steps(int64_t begin, int64_t end, void *context) {
    const sequence *w = context;
    const wg_call *call = w->call;
    const bool lstm = is_lstm(call);
    job j = w->job;
    const sizes s = j.s;
    j.before = w->h0;
    j.cell_before = w->c0;
    j.from_hidden = w->product;
    for (int64_t step = 0; step < s.t; step++) {
        const int64_t t = time_of(call, step), at = call->wants ? t : 0;
        j.a = at_time(&j, w->a, t, s.g);
        j.gates = at_time(&j, w->gates, at, 4 * s.h);
        j.cell = at_time(&j, w->cells, at, s.h);
        j.hidden = at_time(&j, w->hidden, t, s.h);
        multiply_hidden(&j, begin, end, lstm ? j.a : NULL, w->bias, lstm ? j.gates : j.from_hidden);
        run_rows(&j, begin, end, w->rows);
        j.before = j.hidden;
        j.cell_before = j.cell;
    }
}

static int recurrent_forward(wg_call *call) {
    const bool lstm = is_lstm(call);
    sequence w = {.call = call};
    const wg_tensor *a = wg_contiguous(call->inputs[0]), *h0 = wg_contiguous(call->inputs[2]);
    wg_tensor *fourth = wg__input_at(call, 3); /* c0, or the bias */
    if (fourth && !(fourth = wg_contiguous(fourth)))
        return -1;
    if (begin(&w.job, call) < 0 || prepare_weight(&w.job, call->inputs[1]) < 0 || !a || !h0)
        return -1;
    const wg_dtype dtype = w.job.dtype;
    const sizes s = w.job.s;
    const int64_t kept = call->wants ? s.t : 1; /* steps whose gates and cells are saved */
    wg_tensor *gates = wg_empty(dtype, 3, (int64_t[]){kept, s.b, 4 * s.h});
    wg_tensor *cells = lstm ? wg_empty(dtype, 3, (int64_t[]){kept, s.b, s.h}) : NULL;
    wg_tensor *product = lstm ? NULL : wg_empty(dtype, 2, (int64_t[]){s.b, s.g});
    if (!gates || !(lstm ? cells : product))
        return -1;
    if (call->wants) {
        call->saved[0] = gates;
        call->saved[1] = cells;
    }
    w.a = wg_tensor_data(a);
    w.h0 = wg_tensor_data(h0);
    *(lstm ? &w.c0 : &w.bias) = wg_tensor_data(fourth);
    w.gates = wg_tensor_data(gates);
    w.cells = wg_tensor_data(cells);
    w.product = wg_tensor_data(product);
    w.hidden = wg_tensor_data(call->outputs[0]);
    w.rows = dtype == WG_F64 ? (lstm ? lstm_rows_f64 : gru_rows_f64)
                             : (lstm ? lstm_rows_f32 : gru_rows_f32);
    run_sequence(&w, forward_steps);
    const int64_t last = call->wants && s.t > 0 ? time_of(call, s.t - 1) : 0;
    if (lstm && s.b * s.h > 0)
        memcpy(wg_tensor_data(call->outputs[1]),
               s.t > 0 ? at_time(&w.job, w.cells, last, s.h) : w.c0,
               (size_t)(s.b * s.h) * w.job.size);
    return 0;
}

static void backward_steps(int64_t begin, int64_t end, void *context) {
    const sequence *w = context;
    const bool lstm = is_lstm(w->call);
    job j = w->job;
    const sizes s = j.s;
    for (int64_t step = s.t - 1; step >= 0; step--) {
        const int64_t t = time_of(w->call, step), before = time_of(w->call, step - 1);
        j.gates = at_time(&j, w->gates, t, 4 * s.h);
        j.cell = at_time(&j, w->cells, t, s.h);
        j.cell_before = step == 0 ? w->c0 : at_time(&j, w->cells, before, s.h);
        j.before = step == 0 ? w->h0 : at_time(&j, w->hidden, before, s.h);
        j.dy = at_time(&j, w->dy, t, s.h);
        j.dgates = at_time(&j, w->dgates, t, s.g);
        j.from_hidden = at_time(&j, w->product, t, s.g);
        run_rows(&j, begin, end, w->rows);
        /* dhidden = g W; a GRU adds it to the cell's dhidden */
        wg__product product =
            wg__product_of(j.dtype, end - begin, s.h, s.g,
                           rows_from(&j, lstm ? j.dgates : j.from_hidden, begin, s.g),
                           matrix(j.weight, s.h), rows_from(&j, j.dhidden, begin, s.h));
        product.beta = lstm ? 0 : 1;
        wg__gemm(&product);
    }
}

/* Backward reads the first c of an LSTM and the first h of a GRU. */
static int recurrent_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const bool lstm = is_lstm(call);
    sequence w = {.call = call};
    job *j = &w.job;
    const wg_tensor *first = wg_contiguous(call->inputs[lstm ? 3 : 2]);
    const wg_tensor *hidden = lstm ? NULL : wg_contiguous(call->outputs[0]);
    wg_tensor *dy = cotangents[0] ? wg_contiguous(cotangents[0]) : NULL, *dc = NULL;
    if (begin(j, call) < 0 || !first || !(lstm || hidden) || (cotangents[0] && !dy))
        return -1;
    const sizes s = j->s;
    const int64_t state[] = {s.b, s.h};
    wg_tensor *da = wg_empty(j->dtype, 3, (int64_t[]){s.t, s.b, s.g});
    wg_tensor *du = lstm ? da : wg_empty_like(da), *dh = wg_zeros(j->dtype, 2, state);
    if (lstm)
        dc = cotangents[1] ? wg_clone(cotangents[1]) : wg_zeros(j->dtype, 2, state);
    if (!da || !du || !dh || (lstm && !dc))
        return -1;
    j->dhidden = wg_tensor_data(dh);
    j->dcell = wg_tensor_data(dc);
    *(lstm ? &w.c0 : &w.h0) = wg_tensor_data(first);
    w.hidden = wg_tensor_data(hidden);
    w.gates = wg_tensor_data(call->saved[0]);
    w.cells = wg_tensor_data(call->saved[1]);
    w.dy = wg_tensor_data(dy);
    w.dgates = wg_tensor_data(da);
    w.product = lstm ? NULL : wg_tensor_data(du);
    w.rows = j->dtype == WG_F64 ? (lstm ? lstm_vjp_rows_f64 : gru_vjp_rows_f64)
                                : (lstm ? lstm_vjp_rows_f32 : gru_vjp_rows_f32);
    run_sequence(&w, backward_steps);
    wg_tensor *of_inputs[] = {da, NULL, dh, dc};
    if (wg__wants(call, 1))
        of_inputs[1] = weight_gradient(j, call, wg_tensor_data(du));
    if (!lstm && wg__wants(call, 3))
        of_inputs[3] = wg_sum(du, 2, (int64_t[]){0, 1}, false);
    for (int i = 0; i < 4; i++)
        if (wg__wants(call, i))
            gradients[i] = of_inputs[i];
    return wg__vjp_status();
}

/* Gate number `part`, (B, H), of the gates (B, G). */
static wg_tensor *part_of(wg_tensor *gates, int64_t part, int64_t width) {
    return wg_slice(gates, 1, part * width, (part + 1) * width, 1);
}

static int recurrent_decompose(wg_call *call) {
    const sizes s = sizes_of(call);
    const bool lstm = is_lstm(call);
    wg_tensor **hidden = wg__alloc_array(s.t + 1, sizeof *hidden);
    wg_tensor *h = call->inputs[2], *c = wg__input_at(call, 3), *bias = lstm ? NULL : c;
    if (!hidden)
        return -1;
    for (int64_t step = 0; step < s.t; step++) {
        const int64_t t = time_of(call, step);
        wg_tensor *a = wg_select(call->inputs[0], 0, t);
        wg_tensor *u = wg_linear_op(h, call->inputs[1], bias);
        if (lstm) {
            wg_tensor *gates = wg_add(a, u), *i = wg_sigmoid(part_of(gates, 0, s.h));
            wg_tensor *f = wg_sigmoid(part_of(gates, 1, s.h));
            wg_tensor *g = wg_tanh(part_of(gates, 2, s.h)), *o = wg_sigmoid(part_of(gates, 3, s.h));
            c = wg_add(wg_mul(f, c), wg_mul(i, g));
            h = wg_mul(o, wg_tanh(c));
        } else {
            wg_tensor *r = wg_sigmoid(wg_add(part_of(a, 0, s.h), part_of(u, 0, s.h)));
            wg_tensor *z = wg_sigmoid(wg_add(part_of(a, 1, s.h), part_of(u, 1, s.h)));
            wg_tensor *n = wg_tanh(wg_add(part_of(a, 2, s.h), wg_mul(r, part_of(u, 2, s.h))));
            h = wg_add(n, wg_mul(z, wg_sub(h, n)));
        }
        hidden[t] = h;
    }
    call->outputs[0] = s.t > 0 ? wg_stack((int)s.t, hidden, 0)
                               : wg_zeros(call->input_specs[0].dtype, 3, (int64_t[]){0, s.b, s.h});
    if (lstm)
        call->outputs[1] = s.t > 0 ? c : wg_alias(c);
    wg__free(hidden);
    return call->outputs[0] && (!lstm || call->outputs[1]) ? 0 : -1;
}

static double recurrent_flops(const wg_call *call) {
    const sizes s = sizes_of(call);
    return 2 * (double)s.t * (double)s.b * (double)s.h * (double)s.g;
}

static wg_tensor *large_weight(wg_generator *generator, int ndim, const int64_t *shape) {
    return wg_mul_scalar(wg_randn(generator, WG_F32, ndim, shape), 0.06);
}

#define RECURRENT(NAME)                                                                            \
    .options_size = sizeof(bool), .saves_inputs = 15, .saves_outputs = 1, .differentiable = 15,    \
    .infer = recurrent_infer, .forward = recurrent_forward, .vjp = recurrent_vjp,                  \
    .decompose = recurrent_decompose, .sample = NAME##_sample, .bench = NAME##_bench,              \
    .flops = recurrent_flops

/* One and three steps, in both directions. */
WG__EXAMPLES(lstm_op, bool, (wg__sample_normal), {false, "3 2 8, 8 2, 2 2, 2 2"},
             {true, "3 1 12, 12 3, 1 3, 1 3"}, {false, "1 3 4, 4 1, 3 1, 3 1"})
WG__LARGE_BY(lstm_op, bool, (wg__sample_normal_f32, large_weight, wg__sample_normal_f32),
             "64 32 1024, 1024 256, 32 256, 32 256", false)

static const wg_op lstm_op = {
    WG__OP_OF("lstm", 4, 4, 2,
              "(T, B, 4 H) x (4 H, H) x (B, H) x (B, H) -> (T, B, H) and (B, H): from the gates' "
              "parts that come from the inputs, the weight of the gates by h, and the first h and "
              "c, all h and the last c of an LSTM. Fused."),
    RECURRENT(lstm_op)};

int wg_lstm_op(wg_tensor *gates, wg_tensor *weight_hh, wg_tensor *h0, wg_tensor *c0, bool reverse,
               wg_tensor **hidden, wg_tensor **last_cell) {
    wg_tensor *inputs[] = {gates, weight_hh, h0, c0}, *outputs[WG_MAX_OUTPUTS] = {NULL};
    int status = -1;
    if (weight_hh && h0 && c0)
        status = wg__apply_wide(&lstm_op, 4, inputs, false, &reverse, outputs);
    return wg__give(status, outputs, hidden, last_cell);
}

WG__EXAMPLES(gru_op, bool, (wg__sample_normal), {false, "3 2 6, 6 2, 2 2, 6"},
             {true, "3 1 9, 9 3, 1 3, 9"}, {false, "1 3 3, 3 1, 3 1"})
WG__LARGE_BY(gru_op, bool, (wg__sample_normal_f32, large_weight, wg__sample_normal_f32),
             "64 32 768, 768 256, 32 256", false)

static const wg_op gru_op = {
    WG__OP_OF("gru", 3, 4, 1,
              "(T, B, 3 H) x (3 H, H) x (B, H), and a bias (3 H) -> (T, B, H): from the gates' "
              "parts that come from the inputs, the weight and bias of the gates by h, and the "
              "first h, all h of a GRU. Fused."),
    RECURRENT(gru_op)};

wg_tensor *wg_gru_op(wg_tensor *gates, wg_tensor *weight_hh, wg_tensor *bias_hh, wg_tensor *h0,
                     bool reverse) {
    wg_tensor *inputs[] = {gates, weight_hh, h0, bias_hh};
    return weight_hh && h0 ? wg__apply_wide_one(&gru_op, bias_hh ? 4 : 3, inputs, false, &reverse)
                           : NULL;
}

const wg__op_table wg__ops_recurrent = WG__OP_TABLE(&lstm_op, &gru_op);
