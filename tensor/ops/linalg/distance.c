/* Distances between the rows of two matrices.
 *
 * Distances of order 2 between many rows use a matrix product, |a|^2 + |b|^2 - 2 a b. Vector
 * kernels sum the differences of all other orders, and of pairs so near that the product loses
 * digits. */
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

/* ---- cdist: y_ij = (sum_k |a_ik - b_jk|^p)^(1/p).
 * da_i = sum_j g_ij y_ij^(1-p) sign(a_i - b_j) |a_i - b_j|^(p-1), 0 where y is. ---- */

static int cdist_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const double p = *(const double *)call->options;
    if (wg__check_same_dtype(call, 0, 1) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    if (!(p >= 0))
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "p is %g; wanted 0 or more", p);
    if (a->ndim < 2 || b->ndim < 2 || a->shape[a->ndim - 1] != b->shape[b->ndim - 1])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted points with as many coordinates, (..., P, M) and (..., R, M)");
    wg_spec batch_a = *a, batch_b = *b, *out = &call->output_specs[0];
    batch_a.ndim -= 2;
    batch_b.ndim -= 2;
    if (!wg__broadcast(&batch_a, &batch_b, out))
        return wg__op_fail(call, WG_ERROR_SHAPE, "the leading axes do not broadcast");
    out->dtype = a->dtype;
    out->shape[out->ndim++] = a->shape[a->ndim - 2];
    out->shape[out->ndim++] = b->shape[b->ndim - 2];
    return 0;
}

/* A pair is near if |a - b|^2 is below this share of |a|^2 + |b|^2; its differences are summed. */
#define NEAR 0.05

/* Up to this number of rows, a product is not faster. */
enum { FEW = 25 };

typedef struct pairs {
    const wg__simd *simd;
    wg_dtype dtype;
    wg__distance kind;
    double p;
    bool by_product;                   /* the distances come from a matrix product */
    int64_t m, n, k;                   /* points of a, points of b, coordinates */
    const char *a, *b, *down;          /* (m, k), (n, k) and (k, n) */
    char *y;                           /* (m, n) */
    const double *square_a, *square_b; /* for a product: |a_i|^2 and |b_j|^2 */
    const char *g;                     /* backward: the cotangent (m, n) */
    char *weights;                     /* (m, n), or (n, m) for the gradient of b */
    char *da;
} pairs;

static char *row_of(const pairs *job, const void *matrix, int64_t row, int64_t columns) {
    return (char *)matrix + row * columns * (int64_t)wg_dtype_size(job->dtype);
}

static void sum_differences(int64_t begin, int64_t end, void *context) {
    const pairs *job = context;
    for (int64_t i = begin; i < end; i++) {
        char *y = row_of(job, job->y, i, job->n);
        job->simd->matrices.distances(job->kind, job->p, job->n, job->k,
                                      row_of(job, job->a, i, job->k), job->down, job->n, y);
        for (int64_t j = 0; j < job->n; j++) {
            if (job->kind == WG__DISTANCE_SQUARES && job->dtype == WG_F32)
                ((float *)y)[j] = sqrtf(((float *)y)[j]);
            else if (job->kind == WG__DISTANCE_SQUARES)
                ((double *)y)[j] = sqrt(((double *)y)[j]);
            else if (job->kind == WG__DISTANCE_POWERS && job->dtype == WG_F32)
                ((float *)y)[j] = powf(((float *)y)[j], (float)(1 / job->p));
            else if (job->kind == WG__DISTANCE_POWERS)
                ((double *)y)[j] = pow(((double *)y)[j], 1 / job->p);
        }
    }
}

static void square_points(wg_dtype dtype, int64_t rows, int64_t k, const void *x, double *squares) {
    for (int64_t i = 0; i < rows; i++) {
        squares[i] = 0;
        for (int64_t c = 0; c < k; c++) {
            const double value = dtype == WG_F32 ? (double)((const float *)x)[i * k + c]
                                                 : ((const double *)x)[i * k + c];
            squares[i] += value * value;
        }
    }
}

/* y holds -2 a b: adds the squares, and takes the root. */
#define PRODUCT_ROWS(SUFFIX, TYPE, ROOT)                                                           \
    static bool is_near_##SUFFIX(const pairs *job, int64_t i, int64_t j, TYPE square) {            \
        return !(square > (TYPE)NEAR * (TYPE)(job->square_a[i] + job->square_b[j]));               \
    }                                                                                              \
    static TYPE exact_##SUFFIX(const pairs *job, int64_t i, int64_t j) {                           \
        const TYPE *a = (const TYPE *)job->a + i * job->k;                                         \
        const TYPE *b = (const TYPE *)job->b + j * job->k;                                         \
        double sum = 0;                                                                            \
        for (int64_t c = 0; c < job->k; c++)                                                       \
            sum += ((double)a[c] - (double)b[c]) * ((double)a[c] - (double)b[c]);                  \
        return (TYPE)sum;                                                                          \
    }                                                                                              \
    static void finish_product_##SUFFIX(int64_t begin, int64_t end, void *context) {               \
        const pairs *job = context;                                                                \
        for (int64_t i = begin; i < end; i++) {                                                    \
            TYPE *y = (TYPE *)job->y + i * job->n;                                                 \
            bool near = false;                                                                     \
            for (int64_t j = 0; j < job->n; j++) {                                                 \
                y[j] += (TYPE)(job->square_a[i] + job->square_b[j]);                               \
                near |= is_near_##SUFFIX(job, i, j, y[j]);                                         \
            }                                                                                      \
            for (int64_t j = 0; near && j < job->n; j++)                                           \
                if (is_near_##SUFFIX(job, i, j, y[j]))                                             \
                    y[j] = exact_##SUFFIX(job, i, j);                                              \
            for (int64_t j = 0; j < job->n; j++)                                                   \
                y[j] = ROOT(y[j]);                                                                 \
        }                                                                                          \
    }

PRODUCT_ROWS(f32, float, sqrtf)
PRODUCT_ROWS(f64, double, sqrt)

/* x with the leading axes of the output. */
static wg_tensor *batched(const wg_call *call, wg_tensor *x) {
    wg_spec spec = call->output_specs[0];
    spec.shape[spec.ndim - 2] = x->spec.shape[x->spec.ndim - 2];
    spec.shape[spec.ndim - 1] = x->spec.shape[x->spec.ndim - 1];
    return wg_contiguous(wg_expand(x, spec.ndim, spec.shape));
}

/* The operands and the squared norms of their points, dense, in the innermost scope. */
typedef struct operands {
    wg_tensor *a, *b, *down, *squares;
    int64_t count; /* matrices of distances */
} operands;

static int set_up(const wg_call *call, operands *all, pairs *job) {
    const wg_spec *y = &call->output_specs[0];
    all->a = batched(call, call->inputs[0]);
    all->b = batched(call, call->inputs[1]);
    if (all->a == NULL || all->b == NULL)
        return -1;
    const double p = *(const double *)call->options;
    *job = (pairs){.simd = wg__simd_for(y->dtype),
                   .dtype = y->dtype,
                   .kind = p == 0          ? WG__DISTANCE_COUNT
                           : p == 1        ? WG__DISTANCE_SUM
                           : p == 2        ? WG__DISTANCE_SQUARES
                           : p == INFINITY ? WG__DISTANCE_MAX
                                           : WG__DISTANCE_POWERS,
                   .p = p,
                   .m = y->shape[y->ndim - 2],
                   .n = y->shape[y->ndim - 1],
                   .k = all->a->spec.shape[y->ndim - 1]};
    job->by_product = p == 2 && job->k >= 8 && job->m > FEW && job->n > FEW;
    all->down = all->squares = NULL;
    if (job->by_product)
        all->squares = wg_empty(WG_F64, 1, (int64_t[]){job->m + job->n});
    else
        all->down = wg_contiguous(wg_transpose(all->b, -1, -2));
    if (all->squares == NULL && all->down == NULL)
        return -1;
    all->count = wg__shape_count(y->ndim - 2, y->shape);
    return 0;
}

/* Points the job at matrix `index` of the batch. */
static void select_matrix(const operands *all, int64_t index, pairs *job) {
    job->a = row_of(job, wg__tensor_address(all->a), index * job->m, job->k);
    job->b = row_of(job, wg__tensor_address(all->b), index * job->n, job->k);
    if (all->down)
        job->down = row_of(job, wg__tensor_address(all->down), index * job->n, job->k);
    if (all->squares) {
        double *squares = wg__tensor_address(all->squares);
        square_points(job->dtype, job->m, job->k, job->a, squares);
        square_points(job->dtype, job->n, job->k, job->b, squares + job->m);
        job->square_a = squares;
        job->square_b = squares + job->m;
    }
}

static int cdist_forward(wg_call *call) {
    operands all;
    pairs job;
    if (set_up(call, &all, &job) < 0)
        return -1;
    char *y = wg__tensor_address(call->outputs[0]);
    for (int64_t i = 0; i < all.count; i++) {
        select_matrix(&all, i, &job);
        job.y = row_of(&job, y, i * job.m, job.n);
        if (!job.by_product) {
            const int64_t grain = 1 + WG__GRAIN / (job.n * (job.k + 1) + 1);
            wg__parallel_for(job.m, grain, sum_differences, &job);
            continue;
        }
        wg__product product =
            wg__product_of(job.dtype, job.m, job.n, job.k, (wg__matrix){(void *)job.a, job.k, 1},
                           (wg__matrix){(void *)job.b, 1, job.k}, (wg__matrix){job.y, job.n, 1});
        product.alpha = -2;
        wg__gemm(&product);
        wg__parallel_for(job.m, 1 + WG__GRAIN / (job.n + 1),
                         job.dtype == WG_F32 ? finish_product_f32 : finish_product_f64, &job);
    }
    return 0;
}

/* pair_weights: the weight w of each pair, g y^(1-p), shared among the ties of a maximum; 0 where y
 * is 0. near_and_sums: da_i = (sum_j w_ij) a_i; a product then subtracts sum_j w_ij b_j. It adds
 * near pairs itself, and sets their w to 0. */
#define PAIR_WEIGHTS(SUFFIX, TYPE, POW)                                                            \
    static TYPE ties_##SUFFIX(const pairs *job, int64_t i, int64_t j, TYPE y) {                    \
        const TYPE *a = (const TYPE *)job->a + i * job->k;                                         \
        const TYPE *b = (const TYPE *)job->b + j * job->k;                                         \
        TYPE count = 0;                                                                            \
        for (int64_t c = 0; c < job->k; c++)                                                       \
            count += a[c] - b[c] == y || b[c] - a[c] == y;                                         \
        return count;                                                                              \
    }                                                                                              \
    static void pair_weights_##SUFFIX(int64_t begin, int64_t end, void *context) {                 \
        const pairs *job = context;                                                                \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const TYPE *y = (const TYPE *)job->y + i * job->n;                                     \
            const TYPE *g = (const TYPE *)job->g + i * job->n;                                     \
            TYPE *weight = (TYPE *)job->weights + i * job->n;                                      \
            for (int64_t j = 0; j < job->n; j++) {                                                 \
                const TYPE size = job->kind == WG__DISTANCE_SUM       ? 1                          \
                                  : job->kind == WG__DISTANCE_SQUARES ? y[j]                       \
                                  : job->kind == WG__DISTANCE_MAX ? ties_##SUFFIX(job, i, j, y[j]) \
                                                                  : POW(y[j], (TYPE)(job->p - 1)); \
                weight[j] = y[j] == 0 ? 0 : g[j] / size;                                           \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void add_differences_##SUFFIX(int64_t begin, int64_t end, void *context) {              \
        const pairs *job = context;                                                                \
        for (int64_t i = begin; i < end; i++)                                                      \
            job->simd->matrices.distances_vjp(                                                     \
                job->kind, job->p, job->n, job->k, (const TYPE *)job->a + i * job->k, job->b,      \
                (const TYPE *)job->weights + i * job->n, (const TYPE *)job->y + i * job->n,        \
                (TYPE *)job->da + i * job->k);                                                     \
    }                                                                                              \
    static void near_and_sums_##SUFFIX(int64_t begin, int64_t end, void *context) {                \
        const pairs *job = context;                                                                \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const TYPE *y = (const TYPE *)job->y + i * job->n;                                     \
            const TYPE *a = (const TYPE *)job->a + i * job->k;                                     \
            TYPE *weight = (TYPE *)job->weights + i * job->n, *da = (TYPE *)job->da + i * job->k;  \
            double sum = 0;                                                                        \
            for (int64_t c = 0; c < job->k; c++)                                                   \
                da[c] = 0;                                                                         \
            for (int64_t j = 0; j < job->n; j++)                                                   \
                if (is_near_##SUFFIX(job, i, j, y[j] * y[j])) {                                    \
                    const TYPE *b = (const TYPE *)job->b + j * job->k;                             \
                    for (int64_t c = 0; weight[j] != 0 && c < job->k; c++)                         \
                        da[c] += weight[j] * (a[c] - b[c]);                                        \
                    weight[j] = 0;                                                                 \
                } else                                                                             \
                    sum += (double)weight[j];                                                      \
            for (int64_t c = 0; c < job->k; c++)                                                   \
                da[c] += (TYPE)sum * a[c];                                                         \
        }                                                                                          \
    }

PAIR_WEIGHTS(f32, float, powf)
PAIR_WEIGHTS(f64, double, pow)

/* The gradient of a, from distances and weights of (m, n). */
static void gradient_of_points(pairs *job) {
    const bool single = job->dtype == WG_F32;
    const int64_t grain = 1 + WG__GRAIN / (job->n * (job->k + 1) + 1);
    if (!job->by_product) {
        memset(job->da, 0, (size_t)(job->m * job->k) * wg_dtype_size(job->dtype));
        wg__parallel_for(job->m, grain, single ? add_differences_f32 : add_differences_f64, job);
        return;
    }
    wg__parallel_for(job->m, grain, single ? near_and_sums_f32 : near_and_sums_f64, job);
    wg__product product =
        wg__product_of(job->dtype, job->m, job->k, job->n, (wg__matrix){job->weights, job->n, 1},
                       (wg__matrix){(void *)job->b, job->k, 1}, (wg__matrix){job->da, job->k, 1});
    product.alpha = -1;
    product.beta = 1;
    wg__gemm(&product);
}

/* The job with a and b exchanged; y and the weights are transposed copies. */
static pairs exchange_sides(const pairs *job, char *y, char *weights) {
    pairs exchanged = *job;
    exchanged.m = job->n;
    exchanged.n = job->m;
    exchanged.a = job->b;
    exchanged.b = job->a;
    exchanged.square_a = job->square_b;
    exchanged.square_b = job->square_a;
    exchanged.y = y;
    exchanged.weights = weights;
    return exchanged;
}

static int cdist_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    operands all;
    pairs job;
    if (set_up(call, &all, &job) < 0)
        return -1;
    wg_tensor *g = wg_contiguous(cotangents[0]), *y = wg_contiguous(call->outputs[0]);
    wg_tensor *weights = wg_empty_like(y), *wanted[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        if (wg__wants(call, i)) {
            const wg_tensor *x = i ? all.b : all.a;
            wanted[i] = job.kind == WG__DISTANCE_COUNT ? wg_zeros_like(x) : wg_empty_like(x);
            if (wanted[i] == NULL)
                return -1;
        }
    if (g == NULL || weights == NULL)
        return -1;
    job.y = wg__tensor_address(y);
    job.g = wg__tensor_address(g);
    job.weights = wg__tensor_address(weights);
    const int64_t step = job.m * job.n * (int64_t)wg_dtype_size(job.dtype);
    const wg__range_body weigh = job.dtype == WG_F32 ? pair_weights_f32 : pair_weights_f64;
    for (int64_t i = 0; i < all.count && job.kind != WG__DISTANCE_COUNT; i++) {
        select_matrix(&all, i, &job);
        job.y = (char *)wg__tensor_address(y) + i * step;
        job.g = (char *)wg__tensor_address(g) + i * step;
        job.weights = (char *)wg__tensor_address(weights) + i * step;
        wg__parallel_for(job.m, 1 + WG__GRAIN / (job.n + 1), weigh, &job);
    }
    /* Copies first, since the gradient of a changes the weights of near pairs. */
    wg_tensor *y_down = NULL, *weights_down = NULL;
    if (wanted[1] != NULL) {
        y_down = wg_contiguous(wg_transpose(y, -1, -2));
        weights_down = wg_contiguous(wg_transpose(weights, -1, -2));
        if (weights_down == weights)
            weights_down = wg_clone(weights);
        if (y_down == NULL || weights_down == NULL)
            return -1;
    }
    for (int64_t i = 0; i < all.count && job.kind != WG__DISTANCE_COUNT; i++) {
        select_matrix(&all, i, &job);
        job.y = (char *)wg__tensor_address(y) + i * step;
        job.weights = (char *)wg__tensor_address(weights) + i * step;
        if (wanted[0] != NULL) {
            job.da = row_of(&job, wg__tensor_address(wanted[0]), i * job.m, job.k);
            gradient_of_points(&job);
        }
        if (wanted[1] != NULL) {
            pairs of_b = exchange_sides(&job, (char *)wg__tensor_address(y_down) + i * step,
                                        (char *)wg__tensor_address(weights_down) + i * step);
            of_b.da = row_of(&job, wg__tensor_address(wanted[1]), i * job.n, job.k);
            gradient_of_points(&of_b);
        }
    }
    for (int i = 0; i < 2; i++)
        if (wanted[i] != NULL)
            gradients[i] = wg__sum_like(wanted[i], call, i);
    return wg__vjp_status();
}

static int cdist_decompose(wg_call *call) {
    const double p = *(const double *)call->options;
    wg_tensor *difference =
        wg_sub(wg_unsqueeze(call->inputs[0], -2), wg_unsqueeze(call->inputs[1], -3));
    return wg__set_output(call, wg_norm(difference, p, 1, (int64_t[]){-1}, false));
}

/* Few points, and enough for a product; batches that broadcast. */
WG__EXAMPLES(cdist, double, (wg__sample_normal), {2, "3 2, 4 2"}, {1, "2 2 3, 3 3"},
             {3, "2 5, 3 5"}, {INFINITY, "3 3, 2 3"}, {1.5, "2 2 2, 1 3 2"}, {2, "26 8, 26 8"},
             {0, "2 2, 3 2"})
/* 2^31 operations of the product. */
WG__LARGE(cdist, double, "2048 256, 2048 256", 2)

static const wg_op cdist = {
    WG__OP("cdist", 2,
           "The p-norms of the differences of points, (..., P, M) and (..., R, M) -> (..., P, R). "
           "Kinks where two coordinates are equal, and for p = inf at ties. Fused."),
    .options_size = sizeof(double),
    .saves_inputs = 3,
    .saves_outputs = 1,
    .differentiable = 3,
    WG__FUNCTIONS(cdist),
    .decompose = cdist_decompose,
    .flops = wg__matmul_flops};

wg_tensor *wg_cdist(wg_tensor *a, wg_tensor *b, double p) {
    return b ? wg__apply_wide_one(&cdist, 2, (wg_tensor *[]){a, b}, true, &p) : NULL;
}

const wg__op_table wg__ops_distance = WG__OP_TABLE(&cdist);
