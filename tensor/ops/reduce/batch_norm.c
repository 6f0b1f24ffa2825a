/* Normalisation of channels, axis 1, fused: by the statistics of the batch, or by given ones.
 *
 *     x (B, C, ...) is B C rows of S places. A block is worked on from the first sum to the last
 *     result while it is in the cache:
 *
 *     many places: a channel, in B rows of S           few: channels side by side, S columns each
 *
 *         image 0   | ....c.... |                          image 0   | c c c d d d e e e |
 *         image 1   | ....c.... |                          image 1   | c c c d d d e e e |
 *
 * Blocks do not depend on the number of threads, and each adds its images in their order. Sums are
 * of at most SUM_ROWS rows or PIECE elements in the dtype of x, and in f64 beyond. */
#include "tensor/internal.h"
#include "tensor/ops.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = 128, /* of a block of channels side by side, at most */
    MANY_PLACES = 64,
    SUM_ROWS = 64,
    PIECE = 2048
};

typedef struct channel_options {
    double eps;
} channel_options;

/* A row of coefficients: of a block's columns, or one number. */
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
    int64_t images, channels, places; /* B, C and S */
    int64_t block_channels;           /* of each block but the last */
    bool by_columns;                  /* few places: channels side by side */
    double eps;
    const char *x, *weight, *bias, *mean, *variance; /* (B, C, S) and four of (C), or NULL */
    char *y, *new_mean, *new_variance;               /* results */
    const char *dy, *dmean, *dvariance;              /* cotangents, or NULL */
    char *dx;                                        /* NULL if it is not wanted */
    char *gradients[4];                              /* of the inputs after x, or NULL; added to */
    void (*run)(const block *block);                 /* what is done to each block */
};

/* ---- A block's rows ---- */

static int64_t size_of(const channel_job *job) {
    return (int64_t)wg_dtype_size(job->dtype);
}

/* How many elements of the block stand side by side. */
static int64_t width_of(const block *b) {
    return b->count * b->job->places;
}

/* The bytes from the beginning of an array like x to the block's row of an image. */
static int64_t row_of(const block *b, int64_t image) {
    return (image * b->job->channels + b->first) * b->job->places * size_of(b->job);
}

/* Number `channel` of the block in an array of (channels); `otherwise` where that is NULL. */
static double number(const block *b, const char *array, int64_t channel, double otherwise) {
    const wg_dtype dtype = b->job->dtype;
    return array ? wg__element(dtype, array + (b->first + channel) * size_of(b->job)) : otherwise;
}

static void set_number(const block *b, char *array, int64_t channel, double value) {
    wg__set_element(b->job->dtype, array + (b->first + channel) * size_of(b->job), value);
}

/* Writes a channel's coefficient for all its columns. */
static void set_columns(const block *b, column_row *row, int64_t channel, double value) {
    const int64_t places = b->job->by_columns ? b->job->places : 1;
    for (int64_t i = channel * places; i < (channel + 1) * places; i++)
        if (b->job->dtype == WG_F32)
            row->f32[i] = (float)value;
        else
            row->f64[i] = value;
}

/* totals += the sums of a row, those of a channel's columns together; the row becomes zeros. */
static void take_sums(const block *b, column_row *row, double *totals) {
    for (int64_t channel = 0; channel < b->count; channel++)
        for (int64_t i = 0; i < b->job->places; i++) {
            const int64_t column = channel * b->job->places + i;
            totals[channel] += b->job->dtype == WG_F32 ? row->f32[column] : row->f64[column];
        }
    memset(row, 0, sizeof *row);
}

/* ---- Sums of a block ---- */

/* A count of values, their mean, and the sum of their squared distances from it. */
typedef struct moments {
    double count, mean, squares;
} moments;

/* Joins two sets of values   (Chan et al. 1979, eq. 2.1). */
static moments join(moments a, moments b) {
    const double count = a.count + b.count, apart = b.mean - a.mean;
    return (moments){count, a.mean + apart * b.count / count,
                     a.squares + b.squares + apart * apart * a.count * b.count / count};
}

static void moments_of_rows(const block *b, double *mean, double *variance) {
    const channel_job *job = b->job;
    moments all = {0};
    for (int64_t image = 0; image < job->images; image++)
        for (int64_t i = 0; i < job->places; i += PIECE) {
            const int64_t n = job->places - i < PIECE ? job->places - i : PIECE;
            moments piece = {.count = (double)n};
            job->simd->rows.moments(n, job->x + row_of(b, image) + i * size_of(job), &piece.mean,
                                    &piece.squares);
            piece.squares *= piece.count;
            all = join(all, piece);
        }
    mean[0] = all.mean;
    variance[0] = all.squares / all.count;
}

/* Adds g and (x - center) g over all images and places to the totals of the block's channels, where
 * a NULL g means x - center. */
static void add_centered_columns(const block *b, const column_row *center, const char *g,
                                 double *sum, double *sum_x) {
    const channel_job *job = b->job;
    column_row part = {{0}}, part_x = {{0}};
    for (int64_t image = 0; image < job->images; image++) {
        const int64_t row = row_of(b, image);
        job->simd->rows.add_centered(width_of(b), job->x + row, center, g ? g + row : NULL, &part,
                                     &part_x);
        if ((image + 1) % SUM_ROWS == 0 || image + 1 == job->images) {
            take_sums(b, &part, sum);
            take_sums(b, &part_x, sum_x);
        }
    }
}

/* In two passes: the variance is computed from differences from the mean. */
static void moments_of_columns(const block *b, double *mean, double *variance) {
    const channel_job *job = b->job;
    const double count = (double)(job->images * job->places);
    double apart[COLUMNS] = {0};
    column_row center = {{0}};
    for (int64_t image = 0; image < job->images; image += SUM_ROWS) {
        const int64_t rows = job->images - image < SUM_ROWS ? job->images - image : SUM_ROWS;
        job->simd->rows.add(rows, width_of(b), job->channels * job->places,
                            job->x + row_of(b, image), &center);
        take_sums(b, &center, mean);
    }
    for (int64_t channel = 0; channel < b->count; channel++) {
        mean[channel] /= count;
        set_columns(b, &center, channel, mean[channel]);
    }
    add_centered_columns(b, &center, NULL, apart, variance);
    /* The sum of the differences is not 0: they are from the mean that the dtype holds. */
    for (int64_t channel = 0; channel < b->count; channel++) {
        const double off = apart[channel] / count;
        variance[channel] = variance[channel] / count - off * off;
    }
}

/* Sets sum and sum_x of each channel to the sums of g and (x - mean) g. */
static void gradient_sums(const block *b, const double *mean, const char *g, double *sum,
                          double *sum_x) {
    const channel_job *job = b->job;
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

/* Writes (x - center) scale + shift + (g - g_center) share to the block's row of an image, without
 * the last term where g is NULL. */
typedef struct columns {
    column_row center, scale, shift, g_center, share;
} columns;

static void write_row(const block *b, const columns *k, int64_t image, const char *x, const char *g,
                      char *y) {
    const int64_t row = row_of(b, image);
    const wg__affine_row affine = {.x = x + row,
                                   .g = g ? g + row : NULL,
                                   .center = &k->center,
                                   .scale = &k->scale,
                                   .shift = &k->shift,
                                   .g_center = &k->g_center,
                                   .share = &k->share,
                                   .y = y + row};
    b->job->simd->rows.affine(width_of(b), b->job->by_columns, &affine);
}

static void write_block(const block *b, const columns *k, const char *x, const char *g, char *y) {
    for (int64_t image = 0; image < b->job->images; image++)
        write_row(b, k, image, x, g, y);
}

/* ---- Jobs ---- */

static void run_blocks(int64_t begin, int64_t end, void *context) {
    const channel_job *job = context;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * job->block_channels, left = job->channels - first;
        job->run(&(block){job, first, left < job->block_channels ? left : job->block_channels});
    }
}

static void run_job(channel_job *job, void (*run)(const block *block)) {
    const int64_t elements = job->images * job->block_channels * job->places;
    job->run = run;
    if (elements > 0)
        wg__parallel_for((job->channels + job->block_channels - 1) / job->block_channels,
                         1 + WG__GRAIN / 4 / elements, run_blocks, job);
}

/* Finds the elements of a tensor, or of a contiguous copy, which lives as long as the scope of the
 * call. NULL stays NULL. False for lack of memory. */
static bool read_elements(wg_tensor *x, const char **elements) {
    wg_tensor *dense = x ? wg_contiguous(x) : NULL;
    *elements = wg_tensor_data(dense);
    return dense || !x;
}

static bool read_input(const wg_call *call, int i, const char **elements) {
    return read_elements(i < call->input_count ? call->inputs[i] : NULL, elements);
}

static channel_job begin_job(const wg_call *call) {
    const wg_spec *x = &call->input_specs[0];
    channel_job job = {.simd = wg__simd_for(x->dtype),
                       .dtype = x->dtype,
                       .images = x->shape[0],
                       .channels = x->shape[1],
                       .places = 1,
                       .eps = ((const channel_options *)call->options)->eps};
    for (int axis = 2; axis < x->ndim; axis++)
        job.places *= x->shape[axis];
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

/* Makes the gradients: that of x to be written, the others zeros, where they are not there. */
static int begin_gradients(const wg_call *call, channel_job *job, wg_tensor **gradients) {
    if (wg__wants(call, 0)) {
        gradients[0] = wg__tensor_new(&call->input_specs[0]);
        if (!gradients[0])
            return -1;
        job->dx = wg_tensor_data(gradients[0]);
    }
    for (int i = 1; i < call->input_count; i++) {
        if (!wg__wants(call, i))
            continue;
        if (!gradients[i])
            gradients[i] = wg_zeros(job->dtype, 1, &job->channels);
        if (!gradients[i])
            return -1;
        job->gradients[i - 1] = wg_tensor_data(gradients[i]);
        wg_tensor_touch(gradients[i]);
    }
    return 0;
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

/* (x - mean) / sqrt(variance + eps) weight + bias, of operands like x. */
static wg_tensor *normalized(const wg_call *call, wg_tensor *centered, wg_tensor *variance,
                             wg_tensor *weight, wg_tensor *bias) {
    const channel_options *options = call->options;
    const wg_tensor *x = call->inputs[0];
    wg_tensor *y = wg_mul(centered, wg_rsqrt(wg_add_scalar(variance, options->eps)));
    if (weight)
        y = wg_mul(y, wg__as_channels(weight, x));
    return bias ? wg_add(y, wg__as_channels(bias, x)) : y;
}

/* ---- batch_norm: with n values of a channel, s = 1 / sqrt(variance + eps) and h = (x - mean) s,
 *
 *     y = h weight + bias,   dbias = sum g,   dweight = sum g h,
 *     dx = s weight (g - sum(g) / n - h sum(g h) / n) + dmean / n + 2 (x - mean) dvariance / n ----
 */

enum { X, WEIGHT, BIAS };
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
    write_block(b, &k, job->x, NULL, job->y);
}

static int batch_norm_forward(wg_call *call) {
    channel_job job = begin_job(call);
    if (!read_input(call, X, &job.x) || !read_input(call, WEIGHT, &job.weight) ||
        !read_input(call, BIAS, &job.bias))
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
    for (int64_t channel = 0; channel < b->count; channel++)
        mean[channel] = number(b, job->mean, channel, 0);
    gradient_sums(b, mean, job->dy, sum, sum_x);
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
        write_block(b, &k, job->x, job->dy, job->dx);
}

static int batch_norm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    channel_job job = begin_job(call);
    if (!read_input(call, X, &job.x) || !read_input(call, WEIGHT, &job.weight) ||
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
    call->outputs[Y] =
        normalized(call, centered, variance, call->inputs[WEIGHT], call->inputs[BIAS]);
    call->outputs[MEAN] = wg_reshape(mean, 1, &x->spec.shape[1]);
    call->outputs[VARIANCE] = wg_reshape(variance, 1, &x->spec.shape[1]);
    return call->outputs[Y] && call->outputs[MEAN] && call->outputs[VARIANCE] ? 0 : -1;
}

/* Few places and many, one and more than a vector has lanes, and more channels than a block. */
static const struct {
    int ndim;
    int64_t shape[4];
} sample_shapes[] = {{2, {4, 3}}, {3, {2, 3, 5}}, {4, {2, 2, 9, 8}}, {2, {3, 260}}};

enum { SAMPLES = sizeof sample_shapes / sizeof *sample_shapes };

static int batch_norm_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const channel_options options[] = {{1e-5}, {1e-2}};
    if (index >= SAMPLES)
        return 0;
    const int64_t *shape = sample_shapes[index].shape;
    sample->input_count = 3;
    sample->inputs[X] = wg_randn(generator, WG_F64, sample_shapes[index].ndim, shape);
    if (index != 1)
        sample->inputs[WEIGHT] = wg_randn(generator, WG_F64, 1, shape + 1);
    if (index != 2)
        sample->inputs[BIAS] = wg_randn(generator, WG_F64, 1, shape + 1);
    sample->options = &options[index % 2];
    return wg_error_pending() ? -1 : 1;
}

static int batch_norm_bench(wg_generator *generator, wg_sample *sample) {
    static const channel_options options = {1e-5};
    const int64_t shape[] = {64, 64, 32, 32};
    sample->input_count = 3;
    sample->inputs[X] = wg_randn(generator, WG_F32, 4, shape);
    sample->inputs[WEIGHT] = wg_randn(generator, WG_F32, 1, shape + 1);
    sample->inputs[BIAS] = wg_randn(generator, WG_F32, 1, shape + 1);
    sample->options = &options;
    return wg_error_pending() ? -1 : 1;
}

static double channel_flops(const wg_call *call) {
    return 8 * (double)wg__spec_count(&call->input_specs[0]);
}

static const wg_op batch_norm = {
    WG__OP_OF("batch_norm", 1, 3, 3,
              "y = (x - mean) / sqrt(variance + eps) weight + bias by channel: (B, C, ...), where "
              "mean and variance, also results, are over all axes but that of C; weight and bias "
              "(C) are optional"),
    .options_size = sizeof(channel_options),
    .saves_inputs = 7,
    .saves_outputs = 1 << MEAN | 1 << VARIANCE,
    .differentiable = 7,
    .accumulates = 6,
    .infer = batch_norm_infer,
    .forward = batch_norm_forward,
    .vjp = batch_norm_vjp,
    .decompose = batch_norm_decompose,
    .sample = batch_norm_sample,
    .bench = batch_norm_bench,
    .flops = channel_flops};

/* Casts operands to their common dtype, and bf16 to f32. False if the first is NULL or a cast
 * fails. */
static bool widen_all(int count, wg_tensor **tensors) {
    bool all = wg__promote_all(count, tensors);
    for (int i = 0; i < count && all; i++)
        if (tensors[i]) {
            tensors[i] = wg__widen(tensors[i]);
            all = tensors[i] != NULL;
        }
    return all;
}

int wg_batch_norm_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, double eps, wg_tensor **y,
                     wg_tensor **mean, wg_tensor **variance) {
    wg_tensor *inputs[] = {x, weight, bias}, *outputs[3] = {NULL};
    const channel_options options = {eps};
    if (widen_all(3, inputs) && wg_apply(&batch_norm, 3, inputs, &options, outputs) == 0)
        outputs[Y] = wg__narrow(outputs[Y], wg_tensor_dtype(x));
    *y = outputs[Y];
    if (mean)
        *mean = outputs[MEAN];
    if (variance)
        *variance = outputs[VARIANCE];
    return outputs[Y] ? 0 : -1;
}

/* ---- normalize_channels: with s = 1 / sqrt(variance + eps),
 *
 *     y = (x - mean) s weight + bias,   dx = g s weight,   dmean = -s weight sum g,
 *     dvariance = -s^3 weight sum g (x - mean) / 2, dweight = s sum g (x - mean), dbias = sum g
 * ----
 */

enum { GIVEN_MEAN = 1, GIVEN_VARIANCE, GIVEN_WEIGHT, GIVEN_BIAS };

static int normalize_channels_infer(wg_call *call) {
    call->output_specs[0] = call->input_specs[0];
    return check_channels(call);
}

/* Sets the coefficients of y, and of dx, which has no center and no shift. */
static void set_scale(const block *b, columns *k) {
    const channel_job *job = b->job;
    for (int64_t channel = 0; channel < b->count; channel++) {
        const double variance = number(b, job->variance, channel, 0);
        set_columns(b, &k->scale, channel,
                    number(b, job->weight, channel, 1) / sqrt(variance + job->eps));
    }
}

static void set_given(const block *b, columns *k) {
    set_scale(b, k);
    for (int64_t channel = 0; channel < b->count; channel++) {
        set_columns(b, &k->center, channel, number(b, b->job->mean, channel, 0));
        set_columns(b, &k->shift, channel, number(b, b->job->bias, channel, 0));
    }
}

static void normalize_given_block(const block *b) {
    columns k;
    set_given(b, &k);
    write_block(b, &k, b->job->x, NULL, b->job->y);
}

/* Rows of many places, in the order of memory: there is no sum that wants a channel's together. */
static void normalize_given_rows(int64_t begin, int64_t end, void *context) {
    const channel_job *job = context;
    for (int64_t row = begin; row < end; row++) {
        const block b = {job, row % job->channels, 1};
        columns k;
        set_given(&b, &k);
        write_row(&b, &k, row / job->channels, job->x, NULL, job->y);
    }
}

static int begin_given(const wg_call *call, channel_job *job) {
    *job = begin_job(call);
    return read_input(call, 0, &job->x) && read_input(call, GIVEN_MEAN, &job->mean) &&
                   read_input(call, GIVEN_VARIANCE, &job->variance) &&
                   read_input(call, GIVEN_WEIGHT, &job->weight)
               ? 0
               : -1;
}

static int normalize_channels_forward(wg_call *call) {
    channel_job job;
    if (begin_given(call, &job) < 0 || !read_input(call, GIVEN_BIAS, &job.bias))
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
    bool sums = false;
    for (int i = 0; i < 4; i++)
        sums |= job->gradients[i] != NULL;
    for (int64_t channel = 0; channel < b->count && sums; channel++)
        mean[channel] = number(b, job->mean, channel, 0);
    if (sums)
        gradient_sums(b, mean, job->dy, sum, sum_x);
    for (int64_t channel = 0; channel < b->count && sums; channel++) {
        const double s = 1 / sqrt(number(b, job->variance, channel, 0) + job->eps);
        const double scale = s * number(b, job->weight, channel, 1);
        add_gradient(b, GIVEN_MEAN, channel, -scale * sum[channel]);
        add_gradient(b, GIVEN_VARIANCE, channel, -scale * s * s * sum_x[channel] / 2);
        add_gradient(b, GIVEN_WEIGHT, channel, s * sum_x[channel]);
        add_gradient(b, GIVEN_BIAS, channel, sum[channel]);
    }
    if (job->dx) {
        columns k = {0};
        set_scale(b, &k);
        write_block(b, &k, job->dy, NULL, job->dx);
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
    wg_tensor *centered = wg_sub(in[0], wg__as_channels(in[GIVEN_MEAN], in[0]));
    wg_tensor *bias = call->input_count > GIVEN_BIAS ? in[GIVEN_BIAS] : NULL;
    wg_tensor *weight = call->input_count > GIVEN_WEIGHT ? in[GIVEN_WEIGHT] : NULL;
    return wg__set_output(
        call, normalized(call, centered, wg__as_channels(in[GIVEN_VARIANCE], in[0]), weight, bias));
}

static int normalize_channels_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const channel_options options[] = {{1e-5}, {1e-2}};
    if (index >= SAMPLES)
        return 0;
    const int64_t *shape = sample_shapes[index].shape;
    sample->input_count = 5;
    sample->inputs[0] = wg_randn(generator, WG_F64, sample_shapes[index].ndim, shape);
    sample->inputs[GIVEN_MEAN] = wg_randn(generator, WG_F64, 1, shape + 1);
    sample->inputs[GIVEN_VARIANCE] = wg__sample_positive(generator, 1, shape + 1);
    if (index != 1)
        sample->inputs[GIVEN_WEIGHT] = wg_randn(generator, WG_F64, 1, shape + 1);
    if (index != 2)
        sample->inputs[GIVEN_BIAS] = wg_randn(generator, WG_F64, 1, shape + 1);
    sample->options = &options[index % 2];
    return wg_error_pending() ? -1 : 1;
}

static int normalize_channels_bench(wg_generator *generator, wg_sample *sample) {
    if (batch_norm_bench(generator, sample) < 0)
        return -1;
    sample->input_count = 5;
    sample->inputs[GIVEN_WEIGHT] = sample->inputs[WEIGHT];
    sample->inputs[GIVEN_BIAS] = sample->inputs[BIAS];
    sample->inputs[GIVEN_MEAN] = wg_zeros(WG_F32, 1, (int64_t[]){64});
    sample->inputs[GIVEN_VARIANCE] = wg_ones(WG_F32, 1, (int64_t[]){64});
    return wg_error_pending() ? -1 : 1;
}

static const wg_op normalize_channels = {
    WG__OP_OF("normalize_channels", 3, 5, 1,
              "y = (x - mean) / sqrt(variance + eps) weight + bias by channel: (B, C, ...) with "
              "mean, variance, weight and bias (C), of which the last two are optional"),
    .options_size = sizeof(channel_options),
    .saves_inputs = 31,
    .differentiable = 31,
    .accumulates = 30,
    .infer = normalize_channels_infer,
    .forward = normalize_channels_forward,
    .vjp = normalize_channels_vjp,
    .decompose = normalize_channels_decompose,
    .sample = normalize_channels_sample,
    .bench = normalize_channels_bench,
    .flops = channel_flops};

wg_tensor *wg_normalize_channels(wg_tensor *x, wg_tensor *mean, wg_tensor *variance,
                                 wg_tensor *weight, wg_tensor *bias, double eps) {
    wg_tensor *inputs[] = {x, mean, variance, weight, bias};
    const channel_options options = {eps};
    if (!mean || !variance || !widen_all(5, inputs))
        return NULL;
    return wg__narrow(wg_apply_one(&normalize_channels, 5, inputs, &options), wg_tensor_dtype(x));
}

static const wg_op *const ops[] = {&batch_norm, &normalize_channels};

const wg__op_table wg__ops_batch_norm = {ops, sizeof ops / sizeof *ops};
