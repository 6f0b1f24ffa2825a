/* Fused normalization: layer_norm and rms_norm over the last axis, batch_norm and
 * normalize_channels over channels. */
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

typedef struct norm_options {
    double eps;
    bool outside; /* rms_norm: eps is added to the root, not under it */
} norm_options;

enum { X, WEIGHT, BIAS };

/* centered / sqrt(variance + eps) weight + bias, where weight and bias may be NULL. They belong to
 * the channels of x, or to the last axis if x is NULL. */
static wg_tensor *normalized(double eps, wg_tensor *centered, wg_tensor *variance,
                             wg_tensor *weight, wg_tensor *bias, const wg_tensor *x) {
    wg_tensor *y = wg_mul(centered, wg_rsqrt(wg_add_scalar(variance, eps)));
    if (weight)
        y = wg_mul(y, x ? wg__as_channels(weight, x) : weight);
    if (bias)
        y = wg_add(y, x ? wg__as_channels(bias, x) : bias);
    return y;
}

static double norm_flops(const wg_call *call) {
    return 8 * (double)wg__spec_count(&call->input_specs[X]);
}

/* ==== The last axis. Backward needs x, and a mean and a scale for each row. ==== */

/* ---- layer_norm: h = (x - mean) / sqrt(var + eps),  y = h weight + bias.
 * With u = g weight: dx = (u - mean(u) - h mean(u h)) / sqrt(var + eps),
 * dweight = sum g h, dbias = sum g over the rows.
 *
 * rms_norm: h = x / sqrt(mean(x^2) + eps), or x / (sqrt(mean(x^2)) + eps),  y = h weight.
 * With r = sqrt(mean(x^2)): dx = (u - h mean(u h)) / sqrt(r^2 + eps), or
 * (u - h mean(u h) (r + eps) / r) / (r + eps). ---- */

typedef struct norm_job {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t rows, width;
    double eps;
    bool centered, outside;
    const char *x, *weight, *bias;
    char *mean, *scale; /* (rows) */
    char *y;
    const char *dy;
    char *dx;
    char *partial; /* backward: a dweight and a dbias for each chunk of rows */
    bool wants_weight, wants_bias;
    int64_t rows_a_chunk;
} norm_job;

static void normalize_rows(int64_t begin, int64_t end, void *context) {
    const norm_job *job = context;
    int64_t size = (int64_t)wg_dtype_size(job->dtype), stride = job->width * size;
    for (int64_t row = begin; row < end; row++) {
        double mean, variance;
        job->simd->rows.moments(job->width, job->x + row * stride, &mean, &variance);
        if (!job->centered) {
            variance += mean * mean;
            mean = 0;
        }
        double scale = 1 / (job->outside ? sqrt(variance) + job->eps : sqrt(variance + job->eps));
        job->simd->rows.normalize(job->width, job->x + row * stride, mean, scale, job->weight,
                                  job->bias, job->y + row * stride);
        wg__set_element(job->dtype, job->mean + row * size, mean);
        wg__set_element(job->dtype, job->scale + row * size, scale);
    }
}

static void gradient_chunks(int64_t begin, int64_t end, void *context) {
    const norm_job *job = context;
    int64_t size = (int64_t)wg_dtype_size(job->dtype), stride = job->width * size;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        char *dweight = job->partial ? job->partial + chunk * 2 * stride : NULL;
        char *dbias = dweight ? dweight + stride : NULL;
        if (dweight)
            memset(dweight, 0, (size_t)(2 * stride));
        int64_t last = (chunk + 1) * job->rows_a_chunk;
        for (int64_t row = chunk * job->rows_a_chunk; row < last && row < job->rows; row++) {
            double scale = wg__element(job->dtype, job->scale + row * size);
            /* (r + eps) / r; a row of zeros has h = 0, so that any share is right. */
            double inner = 1 - job->eps * scale;
            double share = job->outside && inner > 0 ? 1 / inner : 1;
            job->simd->rows.normalize_vjp(
                job->width, job->x + row * stride, wg__element(job->dtype, job->mean + row * size),
                scale, job->weight, job->dy + row * stride, job->centered, share,
                job->dx ? job->dx + row * stride : NULL, job->wants_weight ? dweight : NULL,
                job->wants_bias ? dbias : NULL);
        }
    }
}

static int norm_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[X];
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (x->ndim == 0 || x->shape[x->ndim - 1] == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "the last axis has no elements to normalize");
    for (int i = WEIGHT; i < call->input_count; i++) {
        const wg_spec *p = &call->input_specs[i];
        if (p->ndim < 0)
            continue;
        if (p->ndim != 1 || p->shape[0] != x->shape[x->ndim - 1])
            return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a %s of shape (%lld)",
                               i == WEIGHT ? "weight" : "bias", (long long)x->shape[x->ndim - 1]);
        if (p->dtype != x->dtype)
            return wg__op_fail(call, WG_ERROR_DTYPE, "wanted one dtype; cast the %s",
                               i == WEIGHT ? "weight" : "bias");
    }
    call->output_specs[0] = *x;
    return 0;
}

/* Fills the members that both forward and backward need. Contiguous copies of operands live as long
 * as the scope of the call. */
static int begin_rows(const wg_call *call, norm_job *job) {
    wg_tensor *dense[3] = {NULL};
    for (int i = X; i < call->input_count; i++)
        if (call->inputs[i] && !(dense[i] = wg_contiguous(call->inputs[i])))
            return -1;
    const norm_options *options = call->options;
    wg_dtype dtype = dense[X]->spec.dtype;
    int64_t width = wg_tensor_size(dense[X], -1);
    *job = (norm_job){.simd = wg__simd_for(dtype),
                      .dtype = dtype,
                      .rows = wg_tensor_count(dense[X]) / width,
                      .width = width,
                      .eps = options->eps,
                      .centered = call->op->max_inputs > BIAS,
                      .outside = options->outside,
                      .x = wg_tensor_data(dense[X]),
                      .weight = wg_tensor_data(dense[WEIGHT]),
                      .bias = wg_tensor_data(dense[BIAS])};
    return 0;
}

static int norm_forward(wg_call *call) {
    norm_job job;
    if (begin_rows(call, &job) < 0)
        return -1;
    for (int k = 0; k < 2; k++) {
        call->saved[k] = wg_empty(job.dtype, 1, &job.rows);
        if (!call->saved[k])
            return -1;
    }
    job.mean = wg_tensor_data(call->saved[0]);
    job.scale = wg_tensor_data(call->saved[1]);
    job.y = wg_tensor_data(call->outputs[0]);
    wg__parallel_for(job.rows, 1 + WG__GRAIN / 2 / job.width, normalize_rows, &job);
    return 0;
}

/* Adds the chunks to the gradient, in an order that does not depend on the threads. */
static wg_tensor *sum_chunks(const norm_job *job, const char *first, int64_t chunks,
                             wg_tensor *onto) {
    wg_tensor *sum = onto ? onto : wg_zeros(job->dtype, 1, &job->width);
    if (!sum)
        return NULL;
    char *out = wg_tensor_data(sum);
    int64_t stride = 2 * job->width;
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        for (int64_t i = 0; i < job->width; i++)
            if (job->dtype == WG_F32)
                ((float *)out)[i] += ((const float *)first)[chunk * stride + i];
            else
                ((double *)out)[i] += ((const double *)first)[chunk * stride + i];
    wg_tensor_touch(sum);
    return sum;
}

static int norm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    norm_job job;
    wg_tensor *dy = wg_contiguous(cotangents[0]);
    if (!dy || begin_rows(call, &job) < 0)
        return -1;
    job.dy = wg_tensor_data(dy);
    job.mean = wg_tensor_data(call->saved[0]);
    job.scale = wg_tensor_data(call->saved[1]);
    job.wants_weight = wg__wants(call, WEIGHT);
    job.wants_bias = wg__wants(call, BIAS);
    /* Enough rows in a chunk to make adding up its partial sums cheap. */
    job.rows_a_chunk = wg__larger(1 + WG__GRAIN / 2 / job.width, 16);
    int64_t chunks = (job.rows + job.rows_a_chunk - 1) / job.rows_a_chunk;
    wg_tensor *partial = NULL;
    if (job.wants_weight || job.wants_bias) {
        partial = wg_empty(job.dtype, 2, (int64_t[]){chunks, 2 * job.width});
        if (!partial)
            return -1;
        job.partial = wg_tensor_data(partial);
    }
    if (wg__wants(call, X)) {
        gradients[X] = wg__tensor_new(&call->input_specs[X]);
        if (!gradients[X])
            return -1;
        job.dx = wg_tensor_data(gradients[X]);
    }
    wg__parallel_for(chunks, 1, gradient_chunks, &job);
    for (int i = WEIGHT; i <= BIAS; i++)
        if (wg__wants(call, i))
            gradients[i] = sum_chunks(
                &job, job.partial + (i - WEIGHT) * job.width * (int64_t)wg_dtype_size(job.dtype),
                chunks, gradients[i]);
    return wg_error_pending() ? -1 : 0;
}

static int norm_decompose(wg_call *call) {
    const norm_options *options = call->options;
    const int64_t last = -1;
    wg_tensor *x = call->inputs[X], *weight = wg__input_at(call, WEIGHT),
              *bias = wg__input_at(call, BIAS);
    wg_tensor *centered = call->op->max_inputs > BIAS ? wg_sub(x, wg_mean(x, 1, &last, true)) : x;
    wg_tensor *variance = wg_mean(wg_mul(centered, centered), 1, &last, true);
    if (!options->outside)
        return wg__set_output(call,
                              normalized(options->eps, centered, variance, weight, bias, NULL));
    wg_tensor *y = wg_div(x, wg_add_scalar(wg_sqrt(variance), options->eps));
    return wg__set_output(call, weight ? wg_mul(y, weight) : y);
}

WG__EXAMPLES(layer_norm, norm_options, (wg__sample_normal), {{1e-5, false}, "2 3 5, 5, 5"},
             {{1e-5, false}, "1 2 17, 17, 17"}, {{1e-5, false}, "3 1 4, -, -"},
             {{1e-5, false}, "2 2 6, 6, -"})
WG__LARGE_BY(layer_norm, norm_options, (wg__sample_normal_f32), "4096 1024, 1024, 1024", 1e-5,
             false)

WG__EXAMPLES(rms_norm, norm_options, (wg__sample_normal), {{1e-5, false}, "2 3 5, 5"},
             {{0.125, true}, "2 3 5, 5"}, {{1e-5, false}, "1 2 17, 17"},
             {{0.125, true}, "1 2 17, 17"}, {{1e-5, false}, "3 1 4, -"},
             {{0.125, true}, "3 1 4, -"}, {{1e-5, false}, "2 2 6, 6"}, {{0.125, true}, "2 2 6, 6"})
WG__LARGE_BY(rms_norm, norm_options, (wg__sample_normal_f32), "4096 1024, 1024", 1e-5, false)

/* The common members of the records. The functions are RULES_infer and so on. */
#define NORM(NAME, RULES, MIN_INPUTS, INPUTS, OUTPUTS, DOC)                                        \
    WG__OP_OF(#NAME, MIN_INPUTS, INPUTS, OUTPUTS, DOC),                                            \
        .options_size = sizeof(norm_options), .saves_inputs = (1 << (INPUTS)) - 1,                 \
        .differentiable = (1 << (INPUTS)) - 1, .accumulates = (1 << (INPUTS)) - 2,                 \
        .infer = RULES##_infer, .forward = RULES##_forward, .vjp = RULES##_vjp,                    \
        .decompose = RULES##_decompose, .sample = NAME##_sample, .bench = NAME##_bench,            \
        .flops = norm_flops

static const wg_op layer_norm = {
    NORM(layer_norm, norm, 1, 3, 1,
         "y = (x - mean) / sqrt(var + eps) weight + bias over the last axis; weight and bias (C) "
         "are optional"),
    .saves_rounded = 1, .batch = wg__batch_first_alone};

static const wg_op rms_norm = {
    NORM(rms_norm, norm, 1, 2, 1,
         "y = x / sqrt(mean(x^2) + eps) weight over the last axis, or x / (sqrt(mean(x^2)) + "
         "eps) weight; weight (C) is optional"),
    .saves_rounded = 1, .batch = wg__batch_first_alone};

/* bf16 is computed in f32. */
static wg_tensor *apply_norm(const wg_op *op, wg_tensor *x, wg_tensor *weight, wg_tensor *bias,
                             norm_options options) {
    if (!x)
        return NULL;
    const wg_dtype dtype = wg_tensor_dtype(x);
    if (dtype == WG_BF16) {
        x = wg_cast(x, WG_F32);
        weight = weight ? wg_cast(weight, WG_F32) : NULL;
        bias = bias ? wg_cast(bias, WG_F32) : NULL;
    }
    wg_tensor *inputs[] = {x, weight, bias};
    return wg__narrow(wg_apply_one(op, op->max_inputs, inputs, &options), dtype);
}

wg_tensor *wg_layer_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps) {
    return apply_norm(&layer_norm, x, weight, bias, (norm_options){.eps = eps});
}

wg_tensor *wg_rms_norm_op(wg_tensor *x, wg_tensor *weight, double eps, bool eps_outside) {
    return apply_norm(&rms_norm, x, weight, NULL, (norm_options){eps, eps_outside});
}

/* ==== Channels, axis 1: by the statistics of the batch, or by given statistics.
 *
 *     x (B, C, ...) is B C rows of S places. All passes over a block run before the next block, so
 *     that the block stays in the cache:
 *
 *     many places: a channel, in B rows of S           few: channels side by side, S columns each
 *
 *         image 0   | ....c.... |                          image 0   | c c c d d d e e e |
 *         image 1   | ....c.... |                          image 1   | c c c d d d e e e |
 *
 * Blocks do not depend on the number of threads, and each block adds its images in their order.
 * Sums of up to SUM_ROWS rows or PIECE elements are in the dtype of x, longer sums in f64. ==== */

enum {
    COLUMNS = 128, /* the maximum width of a block of channels side by side */
    MANY_PLACES = 64,
    SUM_ROWS = 64,
    PIECE = 2048
};

/* A row of coefficients: one for each column of a block, or a single number. */
typedef union column_row {
    float f32[COLUMNS];
    double f64[COLUMNS];
} column_row;

typedef struct channel_job channel_job;

/* Channels first, first + 1... of a job. */
typedef struct block {
    const channel_job *job;
    int64_t first, count;
} block;

struct channel_job {
    const wg__simd *simd;
    wg_dtype dtype;
    int64_t size;                     /* of an element */
    int64_t images, channels, places; /* B, C and S */
    int64_t block_channels;           /* of each block but the last */
    bool by_columns;                  /* few places: channels side by side */
    double eps;
    const char *x, *weight, *bias, *mean, *variance; /* (B, C, S) and four of (C), or NULL */
    char *y, *new_mean, *new_variance;               /* results */
    const char *dy, *dmean, *dvariance;              /* cotangents, or NULL */
    char *dx;                                        /* NULL: not wanted */
    char *gradients[4];              /* of the inputs after x, accumulated; NULL: not wanted */
    void (*run)(const block *block); /* the work on each block */
};

/* The offset in bytes of the block's row of an image, in an array like x. */
static int64_t row_of(const block *b, int64_t image) {
    return (image * b->job->channels + b->first) * b->job->places * b->job->size;
}

/* Element `channel` of the block in an array (C); `otherwise` if the array is NULL. */
static double number(const block *b, const char *array, int64_t channel, double otherwise) {
    const wg_dtype dtype = b->job->dtype;
    return array ? wg__element(dtype, array + (b->first + channel) * b->job->size) : otherwise;
}

static void set_number(const block *b, char *array, int64_t channel, double value) {
    wg__set_element(b->job->dtype, array + (b->first + channel) * b->job->size, value);
}

/* Writes a channel's coefficient to all its columns. */
static void set_columns(const block *b, column_row *row, int64_t channel, double value) {
    const int64_t places = b->job->by_columns ? b->job->places : 1;
    for (int64_t i = channel * places; i < (channel + 1) * places; i++)
        if (b->job->dtype == WG_F32)
            row->f32[i] = (float)value;
        else
            row->f64[i] = value;
}

/* Adds a row, summed over the columns of each channel, to `totals`, and clears the row. */
static void flush_sums(const block *b, column_row *row, double *totals) {
    for (int64_t channel = 0; channel < b->count; channel++)
        for (int64_t i = 0; i < b->job->places; i++) {
            const int64_t column = channel * b->job->places + i;
            totals[channel] += b->job->dtype == WG_F32 ? row->f32[column] : row->f64[column];
        }
    memset(row, 0, sizeof *row);
}

/* Joins the moments of pieces: their counts, means, and sums of squared distances from the mean
 * (Chan et al. 1979, eq. 2.1). */
static void moments_of_rows(const block *b, double *mean, double *variance) {
    const channel_job *job = b->job;
    double count = 0, squares = 0;
    for (int64_t image = 0; image < job->images; image++)
        for (int64_t i = 0; i < job->places; i += PIECE) {
            const int64_t n = wg__smaller(job->places - i, PIECE);
            double piece_mean, piece_variance;
            job->simd->rows.moments(n, job->x + row_of(b, image) + i * job->size, &piece_mean,
                                    &piece_variance);
            const double added = (double)n, total = count + added, delta = piece_mean - *mean;
            squares = squares + piece_variance * added + delta * delta * count * added / total;
            *mean += delta * added / total;
            count = total;
        }
    *variance = squares / count;
}

/* Adds g and (x - center) g over all images and places to the totals of the block's channels. If
 * g is NULL, g is x - center. */
static void add_centered_columns(const block *b, const column_row *center, const char *g,
                                 double *sum, double *sum_x) {
    const channel_job *job = b->job;
    column_row part = {{0}}, part_x = {{0}};
    for (int64_t image = 0; image < job->images; image++) {
        const int64_t row = row_of(b, image);
        job->simd->rows.add_centered(b->count * job->places, job->x + row, center,
                                     g ? g + row : NULL, &part, &part_x);
        if ((image + 1) % SUM_ROWS == 0 || image + 1 == job->images) {
            flush_sums(b, &part, sum);
            flush_sums(b, &part_x, sum_x);
        }
    }
}

/* Two passes: first the mean, then the variance from the differences from the mean. */
static void moments_of_columns(const block *b, double *mean, double *variance) {
    const channel_job *job = b->job;
    const double count = (double)(job->images * job->places);
    double deviations[COLUMNS] = {0};
    column_row center = {{0}};
    for (int64_t image = 0; image < job->images; image += SUM_ROWS) {
        const int64_t rows = wg__smaller(job->images - image, SUM_ROWS);
        job->simd->rows.add(rows, b->count * job->places, job->channels * job->places,
                            job->x + row_of(b, image), &center);
        flush_sums(b, &center, mean);
    }
    for (int64_t channel = 0; channel < b->count; channel++) {
        mean[channel] /= count;
        set_columns(b, &center, channel, mean[channel]);
    }
    add_centered_columns(b, &center, NULL, deviations, variance);
    /* The sum of the differences is not 0, since the mean was rounded to the dtype. */
    for (int64_t channel = 0; channel < b->count; channel++) {
        const double off = deviations[channel] / count;
        variance[channel] = variance[channel] / count - off * off;
    }
}

/* Sets sum and sum_x of each channel to the sums of the cotangent g and of (x - mean) g. `mean`
 * receives the means of the job. */
static void gradient_sums(const block *b, double *mean, double *sum, double *sum_x) {
    const channel_job *job = b->job;
    const char *g = job->dy;
    for (int64_t channel = 0; channel < b->count; channel++)
        mean[channel] = number(b, job->mean, channel, 0);
    memset(sum, 0, (size_t)b->count * sizeof *sum);
    memset(sum_x, 0, (size_t)b->count * sizeof *sum_x);
    if (!g)
        return;
    if (job->by_columns) {
        column_row center;
        for (int64_t channel = 0; channel < b->count; channel++)
            set_columns(b, &center, channel, mean[channel]);
        add_centered_columns(b, &center, g, sum, sum_x);
        return;
    }
    for (int64_t image = 0; image < job->images; image++) {
        const int64_t row = row_of(b, image);
        double part, part_x;
        job->simd->rows.centered_sums(job->places, job->x + row, mean[0], g + row, &part, &part_x);
        sum[0] += part;
        sum_x[0] += part_x;
    }
}

typedef struct columns {
    column_row center, scale, shift, g_center, share;
} columns;

/* Writes (x - center) scale + shift + (g - g_center) share to the rows of images [begin, end) of a
 * block, without the last term if g is NULL. */
static void write_rows(const block *b, const columns *k, int64_t begin, int64_t end, const char *x,
                       const char *g, char *y) {
    for (int64_t image = begin; image < end; image++) {
        const int64_t row = row_of(b, image);
        const wg__affine_row affine = {.x = x + row,
                                       .g = g ? g + row : NULL,
                                       .center = &k->center,
                                       .scale = &k->scale,
                                       .shift = &k->shift,
                                       .g_center = &k->g_center,
                                       .share = &k->share,
                                       .y = y + row};
        b->job->simd->rows.affine(b->count * b->job->places, b->job->by_columns, &affine);
    }
}

static void run_blocks(int64_t begin, int64_t end, void *context) {
    const channel_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * job->block_channels, left = job->channels - first;
        job->run(&(block){job, first, wg__smaller(left, job->block_channels)});
    }
}

static void run_job(channel_job *job, void (*run)(const block *block)) {
    const int64_t elements = job->images * job->block_channels * job->places;
    job->run = run;
    if (elements > 0)
        wg__parallel_for(wg__ceil_divide(job->channels, job->block_channels),
                         1 + WG__GRAIN / 4 / elements, run_blocks, job);
}

/* The elements of a tensor, or of a contiguous copy that lives as long as the scope of the call.
 * NULL stays NULL. False if out of memory. */
static bool read_elements(wg_tensor *x, const char **elements) {
    wg_tensor *dense = x ? wg_contiguous(x) : NULL;
    *elements = wg_tensor_data(dense);
    return dense || !x;
}

static channel_job channels_of(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    channel_job job = {.simd = wg__simd_for(x->dtype),
                       .dtype = x->dtype,
                       .size = (int64_t)wg_dtype_size(x->dtype),
                       .images = x->shape[0],
                       .channels = x->shape[1],
                       .places = wg__shape_count(x->ndim - 2, x->shape + 2),
                       .eps = ((const norm_options *)call->options)->eps};
    job.by_columns = job.places < MANY_PLACES;
    job.block_channels = job.by_columns && job.places > 0 ? COLUMNS / job.places : 1;
    return job;
}

static int check_channels(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (x->ndim < 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted x of (B, C, ...)");
    for (int i = 1; i < call->input_count; i++) {
        const wg_spec *p = &call->input_specs[i];
        if (p->ndim < 0)
            continue;
        if (wg__check_same_dtype(call, 0, i) < 0)
            return -1;
        if (p->ndim != 1 || p->shape[0] != x->shape[1])
            return wg__op_fail(call, WG_ERROR_SHAPE,
                               "wanted vectors of %lld, a value for each channel",
                               (long long)x->shape[1]);
    }
    return 0;
}

/* Allocates the gradient of x, which is overwritten, and makes the gradients of all later inputs
 * zeros, unless they exist. */
static int begin_gradients(const wg_call *call, channel_job *job, wg_tensor **gradients) {
    if (wg__wants(call, X)) {
        gradients[X] = wg__tensor_new(&call->input_specs[X]);
        job->dx = wg_tensor_data(gradients[X]);
    }
    for (int i = 1; i < call->input_count; i++) {
        if (!wg__wants(call, i))
            continue;
        if (!gradients[i])
            gradients[i] = wg_zeros(job->dtype, 1, &job->channels);
        job->gradients[i - 1] = wg_tensor_data(gradients[i]);
        wg_tensor_touch(gradients[i]);
    }
    return wg__vjp_status();
}

static void add_gradient(const block *b, int input, int64_t channel, double value) {
    char *gradient = b->job->gradients[input - 1];
    if (gradient)
        set_number(b, gradient, channel, number(b, gradient, channel, 0) + value);
}

wg_tensor *wg__as_channels(wg_tensor *vector, const wg_tensor *x) {
    const int64_t shape[WG_MAX_DIMS] = {1, x->spec.shape[1], 1, 1, 1, 1, 1, 1};
    return wg_reshape(vector, x->spec.ndim, shape);
}

/* ---- batch_norm: with n values of a channel, s = 1 / sqrt(variance + eps) and h = (x - mean) s,
 *
 *     y = h weight + bias,   dbias = sum g,   dweight = sum g h,
 *     dx = s weight (g - sum(g) / n - h sum(g h) / n)
 *          + dmean / n + 2 (x - mean) dvariance / n ---- */

enum { Y, MEAN, VARIANCE };

static int batch_norm_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[X];
    if (check_channels(call) < 0)
        return -1;
    if (x->shape[1] > 0 && wg__spec_count(x) == 0)
        return wg__op_fail(call, WG_ERROR_SHAPE, "a channel has no values to normalise");
    call->output_specs[Y] = *x;
    for (int i = MEAN; i <= VARIANCE; i++)
        if (wg__spec_make(&call->output_specs[i], x->dtype, 1, &x->shape[1], call->op->name) < 0)
            return -1;
    return 0;
}

static void normalize_block(const block *b) {
    const channel_job *job = b->job;
    double mean[COLUMNS] = {0}, variance[COLUMNS] = {0};
    columns k;
    if (job->by_columns)
        moments_of_columns(b, mean, variance);
    else
        moments_of_rows(b, mean, variance);
    for (int64_t channel = 0; channel < b->count; channel++) {
        const double scale =
            number(b, job->weight, channel, 1) / sqrt(variance[channel] + job->eps);
        set_number(b, job->new_mean, channel, mean[channel]);
        set_number(b, job->new_variance, channel, variance[channel]);
        set_columns(b, &k.center, channel, mean[channel]);
        set_columns(b, &k.scale, channel, scale);
        set_columns(b, &k.shift, channel, number(b, job->bias, channel, 0));
    }
    write_rows(b, &k, 0, job->images, job->x, NULL, job->y);
}

static int batch_norm_forward(wg_call *call) {
    channel_job job = channels_of(call);
    if (!read_elements(wg__input_at(call, X), &job.x) ||
        !read_elements(wg__input_at(call, WEIGHT), &job.weight) ||
        !read_elements(wg__input_at(call, BIAS), &job.bias))
        return -1;
    job.y = wg_tensor_data(call->outputs[Y]);
    job.new_mean = wg_tensor_data(call->outputs[MEAN]);
    job.new_variance = wg_tensor_data(call->outputs[VARIANCE]);
    run_job(&job, normalize_block);
    return 0;
}

static void batch_norm_gradients(const block *b) {
    const channel_job *job = b->job;
    const double n = (double)(job->images * job->places);
    double mean[COLUMNS], sum[COLUMNS], sum_x[COLUMNS];
    columns k;
    gradient_sums(b, mean, sum, sum_x);
    for (int64_t channel = 0; channel < b->count; channel++) {
        const double s = 1 / sqrt(number(b, job->variance, channel, 0) + job->eps);
        const double share = s * number(b, job->weight, channel, 1);
        const double dmean = number(b, job->dmean, channel, 0);
        const double dvariance = number(b, job->dvariance, channel, 0);
        add_gradient(b, WEIGHT, channel, s * sum_x[channel]);
        add_gradient(b, BIAS, channel, sum[channel]);
        set_columns(b, &k.center, channel, mean[channel]);
        set_columns(b, &k.share, channel, share);
        set_columns(b, &k.scale, channel, (2 * dvariance - share * s * s * sum_x[channel]) / n);
        set_columns(b, &k.g_center, channel, sum[channel] / n);
        set_columns(b, &k.shift, channel, dmean / n);
    }
    if (job->dx)
        write_rows(b, &k, 0, job->images, job->x, job->dy, job->dx);
}

static int batch_norm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    channel_job job = channels_of(call);
    if (!read_elements(wg__input_at(call, X), &job.x) ||
        !read_elements(wg__input_at(call, WEIGHT), &job.weight) ||
        !read_elements(cotangents[Y], &job.dy) || !read_elements(cotangents[MEAN], &job.dmean) ||
        !read_elements(cotangents[VARIANCE], &job.dvariance) ||
        begin_gradients(call, &job, gradients) < 0)
        return -1;
    job.mean = wg_tensor_data(call->outputs[MEAN]);
    job.variance = wg_tensor_data(call->outputs[VARIANCE]);
    run_job(&job, batch_norm_gradients);
    return 0;
}

static int batch_norm_decompose(wg_call *call) {
    static const int64_t axes[WG_MAX_DIMS] = {0, 2, 3, 4, 5, 6, 7};
    wg_tensor *x = call->inputs[X];
    const int count = wg_tensor_ndim(x) - 1;
    wg_tensor *mean = wg_mean(x, count, axes, true), *centered = wg_sub(x, mean);
    wg_tensor *variance = wg_mean(wg_mul(centered, centered), count, axes, true);
    call->outputs[Y] = normalized(((const norm_options *)call->options)->eps, centered, variance,
                                  wg__input_at(call, WEIGHT), wg__input_at(call, BIAS), x);
    call->outputs[MEAN] = wg_reshape(mean, 1, &x->spec.shape[1]);
    call->outputs[VARIANCE] = wg_reshape(variance, 1, &x->spec.shape[1]);
    return call->outputs[Y] && call->outputs[MEAN] && call->outputs[VARIANCE] ? 0 : -1;
}

/* Few and many places, a single place and more than the lanes of a vector, and more channels than a
 * block. */
WG__EXAMPLES(batch_norm, norm_options, (wg__sample_normal), {{.eps = 1e-5}, "4 3, 3, 3"},
             {{.eps = 1e-2}, "2 3 5, -, 3"}, {{.eps = 1e-5}, "2 2 9 8, 2, -"},
             {{.eps = 1e-2}, "3 260, 260, 260"})
WG__LARGE_BY(batch_norm, norm_options, (wg__sample_normal_f32), "64 64 32 32, 64, 64", 1e-5, false)

static const wg_op batch_norm = {
    NORM(batch_norm, batch_norm, 1, 3, 3,
         "y = (x - mean) / sqrt(variance + eps) weight + bias by channel: (B, C, ...), where mean "
         "and variance, also results, are over all axes but C; weight and bias (C) are optional"),
    .saves_outputs = 1 << MEAN | 1 << VARIANCE};

int wg_batch_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps, wg_tensor **y,
                     wg_tensor **mean, wg_tensor **variance) {
    wg_tensor *inputs[] = {x, weight, bias}, *outputs[3] = {NULL};
    const norm_options options = {.eps = eps};
    wg_dtype dtype;
    if (wg__widen_all(3, inputs, &dtype) &&
        wg_apply(&batch_norm, 3, inputs, &options, outputs) == 0)
        outputs[Y] = wg__narrow(outputs[Y], wg_tensor_dtype(x));
    *y = outputs[Y];
    return wg__give(outputs[Y] ? 0 : -1, outputs + MEAN, mean, variance);
}

/* ---- normalize_channels: with s = 1 / sqrt(variance + eps),
 *
 *     y = (x - mean) s weight + bias,   dx = g s weight,   dmean = -s weight sum g,
 *     dvariance = -s^3 weight sum g (x - mean) / 2,
 *     dweight = s sum g (x - mean), dbias = sum g ---- */

enum { GIVEN_MEAN = 1, GIVEN_VARIANCE, GIVEN_WEIGHT, GIVEN_BIAS };

static int normalize_channels_infer(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return check_channels(call);
}

/* Sets the scale of y and of dx; dx has no center and no shift. */
static void set_scale(const block *b, columns *k) {
    const channel_job *job = b->job;
    for (int64_t channel = 0; channel < b->count; channel++) {
        const double variance = number(b, job->variance, channel, 0);
        set_columns(b, &k->scale, channel,
                    number(b, job->weight, channel, 1) / sqrt(variance + job->eps));
    }
}

/* Normalizes the rows of images [begin, end) of a block. */
static void write_given(const block *b, int64_t begin, int64_t end) {
    columns k;
    set_scale(b, &k);
    for (int64_t channel = 0; channel < b->count; channel++) {
        set_columns(b, &k.center, channel, number(b, b->job->mean, channel, 0));
        set_columns(b, &k.shift, channel, number(b, b->job->bias, channel, 0));
    }
    write_rows(b, &k, begin, end, b->job->x, NULL, b->job->y);
}

static void normalize_given_block(const block *b) {
    write_given(b, 0, b->job->images);
}

/* Rows of many places, in the order of memory: forward by given statistics needs no sums. */
static void normalize_given_rows(int64_t begin, int64_t end, void *context) {
    const channel_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        const int64_t image = row / job->channels;
        write_given(&(block){job, row % job->channels, 1}, image, image + 1);
    }
}

static int begin_given(const wg_call *call, channel_job *job) {
    *job = channels_of(call);
    return read_elements(call->inputs[X], &job->x) &&
                   read_elements(wg__input_at(call, GIVEN_MEAN), &job->mean) &&
                   read_elements(wg__input_at(call, GIVEN_VARIANCE), &job->variance) &&
                   read_elements(wg__input_at(call, GIVEN_WEIGHT), &job->weight)
               ? 0
               : -1;
}

static int normalize_channels_forward(wg_call *call) {
    channel_job job;
    if (begin_given(call, &job) < 0 || !read_elements(wg__input_at(call, GIVEN_BIAS), &job.bias))
        return -1;
    job.y = wg_tensor_data(call->outputs[0]);
    if (job.by_columns)
        run_job(&job, normalize_given_block);
    else
        wg__parallel_for(job.images * job.channels, 1 + WG__GRAIN / 4 / job.places,
                         normalize_given_rows, &job);
    return 0;
}

static void given_gradients(const block *b) {
    const channel_job *job = b->job;
    double mean[COLUMNS], sum[COLUMNS], sum_x[COLUMNS];
    char *const *to = job->gradients;
    if (to[0] || to[1] || to[2] || to[3]) {
        gradient_sums(b, mean, sum, sum_x);
        for (int64_t channel = 0; channel < b->count; channel++) {
            const double s = 1 / sqrt(number(b, job->variance, channel, 0) + job->eps);
            const double scale = s * number(b, job->weight, channel, 1);
            add_gradient(b, GIVEN_MEAN, channel, -scale * sum[channel]);
            add_gradient(b, GIVEN_VARIANCE, channel, -scale * s * s * sum_x[channel] / 2);
            add_gradient(b, GIVEN_WEIGHT, channel, s * sum_x[channel]);
            add_gradient(b, GIVEN_BIAS, channel, sum[channel]);
        }
    }
    if (job->dx) {
        columns k = {0};
        set_scale(b, &k);
        write_rows(b, &k, 0, job->images, job->dy, NULL, job->dx);
    }
}

static int normalize_channels_vjp(wg_call *call, wg_tensor *const *cotangents,
                                  wg_tensor **gradients) {
    channel_job job;
    if (begin_given(call, &job) < 0 || !read_elements(cotangents[0], &job.dy) ||
        begin_gradients(call, &job, gradients) < 0)
        return -1;
    run_job(&job, given_gradients);
    return 0;
}

static int normalize_channels_decompose(wg_call *call) {
    wg_tensor *const *in = call->inputs;
    wg_tensor *centered = wg_sub(in[X], wg__as_channels(in[GIVEN_MEAN], in[X]));
    wg_tensor *variance = wg__as_channels(in[GIVEN_VARIANCE], in[X]);
    return wg__set_output(call, normalized(((const norm_options *)call->options)->eps, centered,
                                           variance, wg__input_at(call, GIVEN_WEIGHT),
                                           wg__input_at(call, GIVEN_BIAS), in[X]));
}

WG__EXAMPLES(normalize_channels, norm_options,
             (wg__sample_normal, wg__sample_normal, wg__sample_positive, wg__sample_normal),
             {{.eps = 1e-5}, "4 3, 3, 3, 3, 3"}, {{.eps = 1e-2}, "2 3 5, 3, 3, -, 3"},
             {{.eps = 1e-5}, "2 2 9 8, 2, 2, 2, -"}, {{.eps = 1e-2}, "3 260, 260, 260, 260, 260"})
WG__LARGE_BY(normalize_channels, norm_options,
             (wg__sample_normal_f32, wg__sample_normal_f32, wg__sample_f32, wg__sample_normal_f32),
             "64 64 32 32, 64, 64, 64, 64", 1e-5, false)

static const wg_op normalize_channels = {
    NORM(normalize_channels, normalize_channels, 3, 5, 1,
         "y = (x - mean) / sqrt(variance + eps) weight + bias by channel: (B, C, ...) with mean, "
         "variance, weight and bias (C); weight and bias are optional")};

wg_tensor *wg_normalize_channels(wg_tensor *x, wg_tensor *mean, wg_tensor *variance,
                                 wg_tensor *weight, wg_tensor *bias, double eps) {
    wg_tensor *inputs[] = {x, mean, variance, weight, bias};
    const norm_options options = {.eps = eps};
    wg_dtype dtype;
    if (!mean || !variance || !wg__widen_all(5, inputs, &dtype))
        return NULL;
    return wg__narrow(wg_apply_one(&normalize_channels, 5, inputs, &options), wg_tensor_dtype(x));
}

const wg__op_table wg__ops_norm =
    WG__OP_TABLE(&layer_norm, &rms_norm, &batch_norm, &normalize_channels);
