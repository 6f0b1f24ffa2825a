/* Convolution as products: see windows.h.
 *
 * A padded copy of an image holds the places that windows read, and no others. Along an axis whose
 * outputs step by s places, the places 0, s, 2 s... come first, then 1, s + 1...: so what one tap
 * reads for neighbouring outputs is contiguous for any step.
 *
 *     one channel, step 2:     place    0 1 2 3 4 5 6      copy    0 2 4 6 | 1 3 5 .
 *                              tap t of output o is element  offset[t] + o  of the copy
 *
 * Most weights are multiplied by the packed product, a block of images at a time. Weights of few
 * output channels, such as those of a depthwise convolution, would leave most of a tile empty, and
 * with one input channel packing takes as long as multiplying; both are applied to whole planes by
 * tensor/simd. The blocks depend on shapes alone. */
#include "tensor/ops/conv/windows.h"

#include <stdatomic.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/gemm/gemm.h"
#include "tensor/simd/simd.h"

/* A block has at least so many outputs and multiply-adds, unless its arrays would have more bytes,
 * or there are fewer images. */
enum { BLOCK_OUTPUTS = 2048, BLOCK_WORK = 1 << 22, BLOCK_BYTES = 4 << 20 };

/* Weights of so few output channels are applied to planes, and with one input channel somewhat
 * more. Their gradient is summed over SUMS parts of all groups' images, side by side. */
enum { FEW_OUTPUTS = 3, FEW_OF_ONE_INPUT = 16, SUMS = 32 };

/* Copies are made of chunks of so many bytes. They may be read up to ROOM bytes beyond their end.
 */
enum { CHUNK = 16, ROOM = 64 };

/* Windows are multiplied where they lie while the weight has at most so many bytes, half of an L2
 * cache: it is read once for each row of outputs. */
enum { NEAR_BYTES = 512 << 10, GRADIENT_BYTES = 256 << 10 };

/* ---- Padded copies ---- */

typedef struct windows {
    const wg__correlation *of;
    int64_t size; /* of an element, in bytes */
    int64_t images;
    int64_t low[WG__CONV_AXES], places[WG__CONV_AXES]; /* that are read: the first, and how many */
    int64_t length[WG__CONV_AXES];                     /* of an axis in the copy: places / step */
    int64_t channel, image;                            /* their distance, in elements */
    int64_t outputs;                                   /* of an image */
    int64_t vectors;                                   /* taps of all channels of a group */
    int64_t *offsets;                                  /* (vectors) */
    char *data;
} windows;

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t place_of(const windows *w, int axis, int64_t tap) {
    const wg__window_axis *a = &w->of->axes[axis];
    return a->first + tap * a->hop - w->low[axis];
}

/* Where the copy of a channel holds a place. */
static int64_t offset_of(const windows *w, const int64_t *place) {
    const wg__window_axis *axes = w->of->axes;
    int64_t phase = 0, within = 0;
    for (int i = 0; i < WG__CONV_AXES; i++) {
        phase = phase * axes[i].step + place[i] % axes[i].step;
        within = within * w->length[i] + place[i] / axes[i].step;
    }
    return phase * w->length[0] * w->length[1] * w->length[2] + within;
}

static void set_offsets(windows *w) {
    const wg__window_axis *axes = w->of->axes;
    int64_t *offset = w->offsets;
    for (int64_t c = 0; c < w->of->in_channels; c++)
        for (int64_t i = 0; i < axes[0].taps; i++)
            for (int64_t j = 0; j < axes[1].taps; j++)
                for (int64_t k = 0; k < axes[2].taps; k++) {
                    const int64_t place[] = {place_of(w, 0, i), place_of(w, 1, j),
                                             place_of(w, 2, k)};
                    *offset++ = c * w->channel + offset_of(w, place);
                }
}

/* Lays out copies of `images` images; -1 for lack of memory. */
static int lay_out(windows *w, const wg__correlation *c, int64_t images) {
    *w = (windows){
        .of = c, .size = (int64_t)wg_dtype_size(c->dtype), .images = images, .outputs = 1};
    w->channel = 1;
    w->vectors = c->in_channels;
    for (int i = 0; i < WG__CONV_AXES; i++) {
        const wg__window_axis *a = &c->axes[i];
        const int64_t reach = (a->taps - 1) * a->hop;
        w->low[i] = a->first + wg__smaller(reach, 0);
        w->places[i] = (a->count - 1) * a->step + most(reach, -reach) + 1;
        w->length[i] = wg__ceil_divide(w->places[i], a->step);
        w->channel *= w->length[i] * a->step;
        w->outputs *= a->count;
        w->vectors *= a->taps;
    }
    w->image = w->channel * c->in_channels;
    w->offsets = wg__try_alloc_array(w->vectors, sizeof *w->offsets);
    if (!w->offsets)
        return -1;
    set_offsets(w);
    return 0;
}

static int64_t copy_bytes(const windows *w) {
    return w->images * w->image * w->size;
}

/* Copies for one worker; `data` is NULL for lack of memory. */
static windows with_memory(const windows *layout) {
    windows w = *layout;
    w.data = wg__try_alloc((size_t)copy_bytes(&w) + ROOM);
    if (w.data)
        memset(w.data + copy_bytes(&w), 0, ROOM);
    return w;
}

/* y = every step-th element of x. With a step that compilers know they take vectors. */
#define TAKE(NAME, TYPE)                                                                           \
    static void NAME(int64_t n, const void *from, int64_t step, void *to) {                        \
        const TYPE *x = from;                                                                      \
        TYPE *restrict y = to;                                                                     \
        if (step == 2)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i * 2];                                                                   \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = x[i * step];                                                                \
    }
TAKE(take_f32, float)
TAKE(take_f64, double)

/* The places that an image has of an axis of the copy: from `begin` to `end`, exclusively. */
typedef struct stretch {
    int64_t begin, end;
} stretch;

static stretch inside(const windows *w, int axis) {
    return (stretch){most(0, -w->low[axis]),
                     wg__smaller(w->places[axis], w->of->axes[axis].size - w->low[axis])};
}

/* Copies `count` elements of each row of the image, every step-th from the beginning of `from` on,
 * to one phase of the rows of the copy. */
static void copy_phase(const windows *w, int64_t count, const char *from, char *to) {
    const wg__window_axis *axes = w->of->axes;
    const stretch planes = inside(w, 0), rows = inside(w, 1);
    const int64_t row = axes[2].size * w->size, length = w->length[2] * w->size;
    const int64_t phase = axes[2].step * w->length[0] * w->length[1] * length; /* of rows */
    for (int64_t i = planes.begin; i < planes.end; i++) {
        const int64_t plane = (i + w->low[0]) * axes[1].size;
        const char *x = from + (plane + rows.begin + w->low[1]) * row;
        char *y =
            to + i % axes[0].step * axes[1].step * phase + i / axes[0].step * w->length[1] * length;
        int64_t within = rows.begin % axes[1].step;
        y += rows.begin / axes[1].step * length;
        for (int64_t j = rows.begin; j < rows.end; j++, x += row) {
            if (axes[2].step == 1)
                memcpy(y + within * phase, x, (size_t)(count * w->size));
            else
                (w->of->dtype == WG_F32 ? take_f32 : take_f64)(count, x, axes[2].step,
                                                               y + within * phase);
            if (++within == axes[1].step) {
                within = 0;
                y += length;
            }
        }
    }
}

static void copy_channel(const windows *w, const char *from, char *to) {
    const int64_t step = w->of->axes[2].step;
    const int64_t apart = w->length[0] * w->length[1] * w->length[2] * w->size;
    const stretch places = inside(w, 2);
    memset(to, 0, (size_t)(w->channel * w->size));
    for (int64_t phase = 0; phase < step; phase++) {
        const int64_t first = places.begin + (phase - places.begin % step + step) % step;
        if (first < places.end)
            copy_phase(w, wg__ceil_divide(places.end - first, step),
                       from + (w->low[2] + first) * w->size,
                       to + phase * apart + first / step * w->size);
    }
}

typedef struct copy_job {
    const windows *w;
    int64_t first_image, group;
} copy_job;

static void copy_channels(int64_t begin, int64_t end, void *context) {
    const copy_job *job = context;
    const windows *w = job->w;
    const wg__correlation *c = w->of;
    const int64_t sizes = c->axes[0].size * c->axes[1].size * c->axes[2].size;
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = job->first_image + i / c->in_channels;
        const int64_t channel = (image * c->groups + job->group) * c->in_channels;
        copy_channel(w, (const char *)c->x + (channel + i % c->in_channels) * sizes * w->size,
                     w->data + i * w->channel * w->size);
    }
}

/* Copies `images` images from first_image on, in the channels of a group. */
static void copy_images(const windows *w, int64_t first_image, int64_t images, int64_t group) {
    copy_job job = {w, first_image, group};
    wg__parallel_for(images * w->of->in_channels, 1 + WG__GRAIN / w->channel, copy_channels, &job);
}

/* ---- The matrix of windows, for the packed product ---- */

/* Neighbouring outputs whose taps lie side by side: those of one row. */
typedef struct run {
    int64_t offset, bytes; /* of the first output, in elements */
} run;

/* Writes the runs of `count` outputs of all images; returns how many there are. */
static int64_t runs_of(const windows *w, int64_t first, int64_t count, run *runs) {
    const wg__window_axis *axes = w->of->axes;
    int64_t image = first / w->outputs, rest = first % w->outputs, n = 0;
    int64_t k = rest % axes[2].count, j = rest / axes[2].count % axes[1].count;
    int64_t i = rest / axes[2].count / axes[1].count;
    while (count > 0) {
        const int64_t length = wg__smaller(axes[2].count - k, count);
        runs[n++] =
            (run){image * w->image + (i * w->length[1] + j) * w->length[2] + k, length * w->size};
        count -= length;
        k = 0;
        if (++j == axes[1].count) {
            j = 0;
            if (++i == axes[0].count) {
                i = 0;
                image++;
            }
        }
    }
    return n;
}

/* Copies runs of one tap, side by side. All but the last row may write up to a chunk too far. */
static void copy_runs(const windows *w, int64_t vector, int64_t count, const run *runs, bool exact,
                      char *to) {
    const char *from = w->data + w->offsets[vector] * w->size;
    for (int64_t i = 0; i < count; i++) {
        const char *x = from + runs[i].offset * w->size;
        if (exact)
            memcpy(to, x, (size_t)runs[i].bytes);
        else
            for (int64_t at = 0; at < runs[i].bytes; at += CHUNK)
                memcpy(to + at, x + at, CHUNK);
        to += runs[i].bytes;
    }
}

/* Rows are taps, and columns outputs. */
static void read_windows(const void *context, int64_t row, int64_t rows, int64_t column,
                         int64_t columns, int64_t step, void *to) {
    const windows *w = context;
    run runs[WG__MOST_GATHERED];
    const int64_t count = runs_of(w, column, columns, runs), bytes = step * w->size;
    char *place = to;
    if (count == 1 && runs[0].bytes == 4 * CHUNK) { /* usual, and so worth a loop of its own */
        const char *from = w->data + runs[0].offset * w->size;
        for (int64_t i = 0; i < rows; i++, place += bytes)
            memcpy(place, from + w->offsets[row + i] * w->size, 4 * CHUNK);
        return;
    }
    for (int64_t i = 0; i < rows; i++, place += bytes)
        copy_runs(w, row + i, count, runs, i + 1 == rows, place);
}

/* The transposed matrix: rows are outputs, and columns, which are contiguous, taps. */
static void read_transposed(const void *context, int64_t row, int64_t rows, int64_t column,
                            int64_t columns, int64_t step, void *to) {
    const windows *w = context;
    run runs[WG__MOST_GATHERED];
    const int64_t count = runs_of(w, row, rows, runs);
    for (int64_t i = 0; i < columns; i++)
        copy_runs(w, column + i, count, runs, i + 1 == columns, (char *)to + i * step * w->size);
}

/* True if the windows of an image are the image itself: a kernel of one tap. */
static bool is_pointwise(const wg__correlation *c) {
    for (int i = 0; i < WG__CONV_AXES; i++) {
        const wg__window_axis *a = &c->axes[i];
        if (a->taps != 1 || a->step != 1 || a->first != 0 || a->count != a->size)
            return false;
    }
    return true;
}

/* ---- Outputs ---- */

#define PLACE(NAME, TYPE)                                                                          \
    static void NAME(int64_t n, const void *from, double bias, void *to, int64_t stride) {         \
        const TYPE *x = from, plus = (TYPE)bias;                                                   \
        TYPE *y = to;                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * stride] = x[i] + plus;                                                           \
    }
PLACE(place_f32, float)
PLACE(place_f64, double)

static double bias_of(const wg__correlation *c, int64_t channel) {
    if (!c->bias)
        return 0;
    return c->dtype == WG_F32 ? (double)((const float *)c->bias)[channel]
                              : ((const double *)c->bias)[channel];
}

static char *output_at(const wg__correlation *c, int64_t image, int64_t channel) {
    return (char *)c->y +
           (image * c->y_image + channel * c->y_channel) * (int64_t)wg_dtype_size(c->dtype);
}

/* Writes one channel of outputs, plus its bias, from an array whose planes and rows are that many
 * elements apart. */
static void place_outputs(const wg__correlation *c, const char *from, int64_t plane, int64_t row,
                          int64_t image, int64_t channel) {
    const int64_t size = (int64_t)wg_dtype_size(c->dtype);
    const double bias = bias_of(c, channel);
    for (int64_t i = 0; i < c->axes[0].count; i++)
        for (int64_t j = 0; j < c->axes[1].count; j++) {
            char *to = output_at(c, image, channel) + (i * c->y_axes[0] + j * c->y_axes[1]) * size;
            (c->dtype == WG_F32 ? place_f32 : place_f64)(
                c->axes[2].count, from + (i * plane + j * row) * size, bias, to, c->y_axes[2]);
        }
}

/* Fills a row of outputs with the bias of their channel. */
static void fill_row(const wg__correlation *c, char *to, int64_t n, int64_t channel) {
    enum { PART = 512 };
    static const double zeros[PART];
    const int64_t stride = c->y_axes[2], size = (int64_t)wg_dtype_size(c->dtype);
    for (int64_t i = 0; i < n; i += PART)
        (c->dtype == WG_F32 ? place_f32 : place_f64)(
            wg__smaller(PART, n - i), zeros, bias_of(c, channel), to + i * stride * size, stride);
}

/* Fills the outputs with the bias, where there is nothing to multiply. */
static void fill_outputs(const wg__correlation *c) {
    const wg__window_axis *axes = c->axes;
    for (int64_t i = 0; i < c->images; i++)
        for (int64_t m = 0; m < c->groups * c->out_channels; m++)
            for (int64_t row = 0; row < axes[0].count * axes[1].count; row++) {
                const int64_t place =
                    row / axes[1].count * c->y_axes[0] + row % axes[1].count * c->y_axes[1];
                fill_row(c, output_at(c, i, m) + place * (int64_t)wg_dtype_size(c->dtype),
                         axes[2].count, m);
            }
}

/* True if the outputs of a channel are contiguous. */
static bool has_dense_outputs(const wg__correlation *c) {
    const wg__window_axis *a = c->axes;
    return c->y_axes[2] == 1 && (c->y_axes[1] == a[2].count || a[1].count == 1) &&
           (c->y_axes[0] == a[1].count * a[2].count || a[0].count == 1);
}

/* ---- Blocks of images ---- */

typedef struct job {
    const wg__correlation *c;
    windows layout;
    int64_t block, blocks; /* images in a block */
    char *gradient;        /* of the weight */
    atomic_bool failed;    /* there was no memory */
} job;

/* Chooses the block: one image, or more where an image has few outputs or little work. */
static void set_blocks(job *job) {
    const wg__correlation *c = job->c;
    windows *w = &job->layout;
    const int64_t outputs = w->outputs, work = c->out_channels * w->vectors * outputs;
    const int64_t bytes = (w->image + c->out_channels * outputs) * w->size;
    int64_t block = most(BLOCK_OUTPUTS / outputs, BLOCK_WORK / work);
    block = most(1, wg__smaller(block, BLOCK_BYTES / bytes));
    job->block = w->images = wg__smaller(block, c->images);
    job->blocks = wg__ceil_divide(c->images, job->block);
}

/* Runs `count` parts beside each other if they are many; otherwise one after the other, so that
 * each may use all threads. */
static void run_parts(int64_t count, wg__range_body body, job *job) {
    if (count >= 4 * wg_threads())
        wg__parallel_for(count, 1, body, job);
    else
        for (int64_t i = 0; i < count; i++)
            body(i, i + 1, job);
}

/* The product of the weight and the windows of some images, into `c`. */
static wg__product product_of(const wg__correlation *c, const windows *w, int64_t images,
                              int64_t group) {
    return (wg__product){
        .dtype = c->dtype,
        .m = c->out_channels,
        .n = images * w->outputs,
        .k = w->vectors,
        .alpha = 1,
        .a = {(char *)c->weight + group * c->out_channels * w->vectors * w->size, w->vectors, 1}};
}

/* One image of one group, whose outputs are dense, is multiplied into its place. */
static void multiply_image(const wg__correlation *c, wg__product p, int64_t image, int64_t group) {
    const int64_t channel = group * c->out_channels;
    p.c = (wg__matrix){output_at(c, image, channel), c->y_channel, 1};
    p.beta = c->bias ? 1 : 0;
    for (int64_t m = channel; c->bias && m < channel + c->out_channels; m++)
        fill_row(c, output_at(c, image, m), p.n, m);
    wg__gemm(&p);
}

/* The outputs of several images, or of outputs that are not dense, are placed from a buffer. */
static bool multiply_images(const wg__correlation *c, const windows *w, wg__product p,
                            int64_t first, int64_t images, int64_t group) {
    char *buffer = wg__try_alloc_array(wg__times(p.m, p.n), w->size);
    if (!buffer)
        return false;
    p.c = (wg__matrix){buffer, p.n, 1};
    wg__gemm(&p);
    const int64_t row = c->axes[2].count, plane = c->axes[1].count * row;
    for (int64_t i = 0; i < images; i++)
        for (int64_t m = 0; m < c->out_channels; m++)
            place_outputs(c, buffer + (m * p.n + i * w->outputs) * w->size, plane, row, first + i,
                          group * c->out_channels + m);
    wg__free(buffer);
    return true;
}

/* True if rows of outputs nearly fill their vectors of AVX-512, so that they and their windows are
 * multiplied where they lie. */
static bool fills_vectors(const wg__correlation *c) {
    const int64_t lanes = wg__simd_for(c->dtype)->lanes, n = c->axes[2].count;
    return wg__simd_level_in_use() == WG__SIMD_V4 && !is_pointwise(c) &&
           4 * n >= 3 * wg__ceil_divide(n, lanes) * lanes;
}

/* Where the windows of row `row` of an image's outputs begin. */
static int64_t row_start(const windows *w, int64_t row) {
    const int64_t rows = w->of->axes[1].count;
    return (row / rows * w->length[1] + row % rows) * w->length[2];
}

/* The rows of outputs of some images, of one group. */
typedef struct rows_job {
    const windows *w;
    int64_t first_image, group;
} rows_job;

static void multiply_rows(int64_t begin, int64_t end, void *context) {
    const rows_job *job = context;
    const windows *w = job->w;
    const wg__correlation *c = w->of;
    const int64_t channel = job->group * c->out_channels, rows = c->axes[1].count;
    for (int64_t number = begin; number < end; number++) {
        const int64_t image = number / (rows * c->axes[0].count);
        const int64_t row = number % (rows * c->axes[0].count);
        const int64_t at = image * w->image + row_start(w, row);
        wg__simd_for(c->dtype)->products.windows(&(wg__window_product){
            .m = c->out_channels,
            .n = c->axes[2].count,
            .k = w->vectors,
            .a = (const char *)c->weight + channel * w->vectors * w->size,
            .a_row = w->vectors,
            .x = w->data + at * w->size,
            .offsets = w->offsets,
            .bias = c->bias ? (const char *)c->bias + channel * w->size : NULL,
            .c = output_at(c, job->first_image + image, channel) +
                 (row / rows * c->y_axes[0] + row % rows * c->y_axes[1]) * w->size,
            .c_row = c->y_channel});
    }
}

static void multiply_in_place(const wg__correlation *c, const windows *w, int64_t first,
                              int64_t images, int64_t group) {
    rows_job job = {w, first, group};
    const int64_t work = c->out_channels * w->vectors * c->axes[2].count;
    copy_images(w, first, images, group);
    wg__parallel_for(images * c->axes[0].count * c->axes[1].count, 1 + 16 * WG__GRAIN / work,
                     multiply_rows, &job);
}

static bool multiply_block(job *job, const windows *w, int64_t part) {
    const wg__correlation *c = job->c;
    const int64_t first = part / c->groups * job->block, group = part % c->groups;
    const int64_t images = wg__smaller(job->block, c->images - first);
    if (fills_vectors(c) && c->y_axes[2] == 1 &&
        c->out_channels * w->vectors * w->size <= NEAR_BYTES) {
        multiply_in_place(c, w, first, images, group);
        return true;
    }
    const wg__gather gather = {read_windows, w, false};
    wg__product p = product_of(c, w, images, group);
    const bool in_place = images == 1 && is_pointwise(c);
    if (in_place) {
        const int64_t channel = (first * c->groups + group) * c->in_channels;
        p.b = (wg__matrix){(char *)c->x + channel * w->outputs * w->size, w->outputs, 1};
    } else {
        copy_images(w, first, images, group);
        p.b = (wg__matrix){w->data, 0, 0};
        p.gather = &gather;
    }
    if (images > 1 || !has_dense_outputs(c))
        return multiply_images(c, w, p, first, images, group);
    multiply_image(c, p, first, group);
    return true;
}

static void multiply_blocks(int64_t begin, int64_t end, void *context) {
    job *job = context;
    const windows w = with_memory(&job->layout);
    for (int64_t part = begin; part < end; part++)
        if (!w.data || !multiply_block(job, &w, part))
            atomic_store(&job->failed, true);
    wg__free(w.data);
}

/* ---- Planes ---- */

static bool has_few_channels(const wg__correlation *c) {
    return c->out_channels <= (c->in_channels == 1 ? FEW_OF_ONE_INPUT : FEW_OUTPUTS);
}

/* The outputs of a channel, with as many elements between rows and planes as the copy has. */
static int64_t wide_outputs(const windows *w) {
    const wg__window_axis *axes = w->of->axes;
    return ((axes[0].count - 1) * w->length[1] + axes[1].count - 1) * w->length[2] + axes[2].count;
}

static void sum_planes(int64_t begin, int64_t end, void *context) {
    job *job = context;
    const wg__correlation *c = job->c;
    const windows w = with_memory(&job->layout);
    const int64_t n = wide_outputs(&w), row = w.length[2], plane = w.length[1] * row;
    char *wide = wg__try_alloc_array(n, w.size);
    for (int64_t part = begin; w.data && wide && part < end; part++) {
        const int64_t image = part / c->groups, group = part % c->groups;
        copy_images(&w, image, 1, group);
        for (int64_t m = group * c->out_channels; m < (group + 1) * c->out_channels; m++) {
            const char *weight = (const char *)c->weight + m * w.vectors * w.size;
            wg__simd_for(c->dtype)->products.tap_sums(n, w.vectors, w.offsets, w.data, weight, 0,
                                                      wide);
            place_outputs(c, wide, plane, row, image, m);
        }
    }
    if (!w.data || !wide)
        atomic_store(&job->failed, true);
    wg__free(w.data);
    wg__free(wide);
}

/* Copies the gradient of one channel of outputs with zeros between rows and planes. */
static void widen(const windows *w, const char *g, char *wide) {
    const wg__window_axis *axes = w->of->axes;
    const int64_t row = axes[2].count * w->size;
    memset(wide, 0, (size_t)(wide_outputs(w) * w->size));
    for (int64_t i = 0; i < axes[0].count; i++)
        for (int64_t j = 0; j < axes[1].count; j++)
            memcpy(wide + (i * w->length[1] + j) * w->length[2] * w->size,
                   g + (i * axes[1].count + j) * row, (size_t)row);
}

/* A part is some images of one group: job->blocks of them, with job->block images each. Each has
 * sums of its own, (blocks, weights). */
static void dot_planes(int64_t begin, int64_t end, void *context) {
    job *job = context;
    const wg__correlation *c = job->c;
    const windows w = with_memory(&job->layout);
    const int64_t n = wide_outputs(&w), channels = c->groups * c->out_channels;
    char *wide = wg__try_alloc_array(n, w.size);
    for (int64_t part = begin; w.data && wide && part < end; part++) {
        const int64_t group = part % c->groups, block = part / c->groups;
        const int64_t last = wg__smaller((block + 1) * job->block, c->images);
        for (int64_t image = block * job->block; image < last; image++) {
            copy_images(&w, image, 1, group);
            for (int64_t m = group * c->out_channels; m < (group + 1) * c->out_channels; m++) {
                widen(&w, (const char *)c->y + (image * channels + m) * w.outputs * w.size, wide);
                wg__simd_for(c->dtype)->products.tap_dots(n, w.vectors, w.offsets, w.data, wide,
                                                          job->gradient + (block * channels + m) *
                                                                              w.vectors * w.size);
            }
        }
    }
    if (!w.data || !wide)
        atomic_store(&job->failed, true);
    wg__free(w.data);
    wg__free(wide);
}

/* Adds the sums of all parts, in their order, to a gradient of zeros. */
static void dot_all_planes(job *job, int64_t weights) {
    const wg__correlation *c = job->c;
    char *gradient = job->gradient;
    job->block = wg__ceil_divide(c->images, wg__ceil_divide(SUMS, c->groups));
    job->blocks = wg__ceil_divide(c->images, job->block);
    job->gradient = wg__try_alloc_array(wg__times(job->blocks, weights), job->layout.size);
    if (!job->gradient) {
        atomic_store(&job->failed, true);
        return;
    }
    memset(job->gradient, 0, (size_t)(job->blocks * weights * job->layout.size));
    wg__parallel_for(job->blocks * c->groups, 1, dot_planes, job);
    wg__simd_for(c->dtype)->rows.add(job->blocks, weights, weights, job->gradient, gradient);
    wg__free(job->gradient);
}

/* ---- The gradient of the weight, by products ---- */

/* The gradient of some images' outputs as a matrix (M, outputs of all); copied, if there are
 * several, into `buffer`. */
static wg__matrix gradient_of_outputs(const wg__correlation *c, const windows *w, int64_t first,
                                      int64_t images, int64_t group, char *buffer) {
    const int64_t channels = c->groups * c->out_channels, bytes = w->outputs * w->size;
    char *g = (char *)c->y + (first * channels + group * c->out_channels) * bytes;
    if (images == 1)
        return (wg__matrix){g, w->outputs, 1};
    for (int64_t m = 0; m < c->out_channels; m++)
        for (int64_t i = 0; i < images; i++)
            memcpy(buffer + (m * images + i) * bytes, g + (i * channels + m) * bytes,
                   (size_t)bytes);
    return (wg__matrix){buffer, images * w->outputs, 1};
}

/* The gradient by dots of the outputs' rows and their windows, where both lie. */
typedef struct dots_job {
    const windows *w;
    const char *g;         /* of the outputs of the first image, and the group's first channel */
    const int64_t *starts; /* of the rows of an image */
    int64_t images, block; /* rows of outputs in a block, which stays in the L2 cache */
    char *gradient;
} dots_job;

/* Sums for windows begin to end. */
static void dot_windows(int64_t begin, int64_t end, void *context) {
    const dots_job *job = context;
    const windows *w = job->w;
    const wg__correlation *c = w->of;
    const int64_t rows = c->axes[0].count * c->axes[1].count, n = c->axes[2].count;
    for (int64_t image = 0; image < job->images; image++)
        for (int64_t row = 0; row < rows; row += job->block)
            wg__simd_for(c->dtype)->products.window_dots(&(wg__window_dots){
                .m = c->out_channels,
                .k = end - begin,
                .rows = wg__smaller(job->block, rows - row),
                .n = n,
                .g =
                    job->g + (image * c->groups * c->out_channels * w->outputs + row * n) * w->size,
                .g_row = w->outputs,
                .x = w->data + image * w->image * w->size,
                .starts = job->starts + row,
                .offsets = w->offsets + begin,
                .sums = job->gradient + begin * w->size,
                .sums_row = w->vectors});
}

/* Rows of outputs in a block of GRADIENT_BYTES of all channels. A block of few rows would have many
 * sums for its products. */
static int64_t rows_in_block(const windows *w) {
    return GRADIENT_BYTES / (w->of->out_channels * w->of->axes[2].count * w->size);
}

static bool dots_in_place(const windows *w) {
    enum { FEWEST = 1024 }; /* outputs in a block */
    return fills_vectors(w->of) && rows_in_block(w) * w->of->axes[2].count >= FEWEST;
}

static bool dot_gradient(job *job, const windows *w, int64_t group) {
    enum { WINDOWS = 24 }; /* of a chunk */
    const wg__correlation *c = job->c;
    const int64_t rows = c->axes[0].count * c->axes[1].count;
    int64_t *starts = wg__try_alloc_array(rows, sizeof *starts);
    if (!starts)
        return false;
    for (int64_t row = 0; row < rows; row++)
        starts[row] = row_start(w, row);
    for (int64_t first = 0; first < c->images; first += job->block) {
        const int64_t channel = (first * c->groups + group) * c->out_channels;
        dots_job dots = {.w = w,
                         .g = (const char *)c->y + channel * w->outputs * w->size,
                         .starts = starts,
                         .images = wg__smaller(job->block, c->images - first),
                         .block = rows_in_block(w),
                         .gradient =
                             job->gradient + group * c->out_channels * w->vectors * w->size};
        copy_images(w, first, dots.images, group);
        wg__parallel_for(w->vectors, WINDOWS, dot_windows, &dots);
    }
    wg__free(starts);
    return true;
}

static void multiply_gradient(job *job, const windows *w, int64_t group, char *buffer) {
    const wg__correlation *c = job->c;
    const wg__gather gather = {read_transposed, w, true};
    const int64_t place = group * c->out_channels * w->vectors * w->size;
    for (int64_t first = 0; first < c->images; first += job->block) {
        const int64_t images = wg__smaller(job->block, c->images - first);
        wg__product p = {.dtype = c->dtype,
                         .m = c->out_channels,
                         .n = w->vectors,
                         .k = images * w->outputs,
                         .alpha = 1,
                         .beta = first > 0,
                         .a = gradient_of_outputs(c, w, first, images, group, buffer),
                         .c = {job->gradient + place, w->vectors, 1}};
        if (images == 1 && is_pointwise(c)) {
            const int64_t channel = (first * c->groups + group) * c->in_channels;
            p.b = (wg__matrix){(char *)c->x + channel * w->outputs * w->size, 1, w->outputs};
        } else {
            copy_images(w, first, images, group);
            p.b = (wg__matrix){w->data, 0, 0};
            p.gather = &gather;
        }
        wg__gemm(&p);
    }
}

static void multiply_gradients(int64_t begin, int64_t end, void *context) {
    job *job = context;
    const windows w = with_memory(&job->layout);
    char *buffer = wg__try_alloc_array(
        wg__times(wg__times(job->block, job->c->out_channels), w.outputs), w.size);
    bool failed = !w.data || !buffer;
    for (int64_t group = begin; !failed && group < end; group++)
        if (dots_in_place(&w))
            failed = !dot_gradient(job, &w, group);
        else
            multiply_gradient(job, &w, group, buffer);
    if (failed)
        atomic_store(&job->failed, true);
    wg__free(w.data);
    wg__free(buffer);
}

/* ---- Both products ---- */

static double multiply_adds(const job *job) {
    const wg__correlation *c = job->c;
    return (double)c->images * (double)(c->groups * c->out_channels) *
           (double)(job->layout.vectors * job->layout.outputs);
}

/* Frees the layout, counts the operations on this thread, and says whether there was memory. */
static int finish(job *job, double flops_before) {
    wg__product_flops = flops_before + 2 * multiply_adds(job);
    wg__free(job->layout.offsets);
    return atomic_load(&job->failed) ? -1 : 0;
}

int wg__correlate(const wg__correlation *c) {
    job job = {.c = c};
    const double flops = wg__product_flops;
    if (c->images * c->groups * c->out_channels == 0)
        return 0;
    for (int i = 0; i < WG__CONV_AXES; i++)
        if (c->axes[i].count == 0)
            return 0;
    for (int i = 0; i < WG__CONV_AXES; i++)
        if (c->axes[i].taps == 0 || c->in_channels == 0) {
            fill_outputs(c);
            return 0;
        }
    if (lay_out(&job.layout, c, 1) < 0)
        return -1;
    if (has_few_channels(c)) {
        const int64_t work = job.layout.channel * job.layout.vectors * c->out_channels;
        wg__parallel_for(c->images * c->groups, 1 + 8 * WG__GRAIN / work, sum_planes, &job);
    } else {
        set_blocks(&job);
        run_parts(job.blocks * c->groups, multiply_blocks, &job);
    }
    return finish(&job, flops);
}

int wg__correlate_vjp(const wg__correlation *c, void *gradient) {
    job job = {.c = c, .gradient = gradient};
    const double flops = wg__product_flops;
    int64_t weights = c->groups * c->out_channels * c->in_channels, outputs = c->images;
    for (int i = 0; i < WG__CONV_AXES; i++) {
        weights *= c->axes[i].taps;
        outputs *= c->axes[i].count;
    }
    memset(gradient, 0, (size_t)weights * wg_dtype_size(c->dtype));
    if (weights == 0 || outputs == 0)
        return 0;
    if (lay_out(&job.layout, c, 1) < 0)
        return -1;
    if (has_few_channels(c)) {
        dot_all_planes(&job, weights);
    } else {
        set_blocks(&job);
        run_parts(c->groups, multiply_gradients, &job);
    }
    return finish(&job, flops);
}
