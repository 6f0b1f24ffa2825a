/* Convolution as products: see windows.h.
 *
 * A padded copy of an image holds exactly the places that windows read. Along an axis whose outputs
 * step by s places, the places 0, s, 2 s... come first, then 1, s + 1...: so the places that a tap
 * reads for neighbouring outputs are contiguous for any step.
 *
 *     one channel, step 2:     place    0 1 2 3 4 5 6      copy    0 2 4 6 | 1 3 5 .
 *                              tap t of output o is element  offset[t] + o  of the copy
 *
 * The packed product multiplies most weights, a block of images at a time. Weights of few output
 * channels (depthwise convolutions) would leave most of a tile empty, and with one input channel
 * packing takes as long as multiplying: tensor/simd applies both to whole planes. The blocks depend
 * on shapes alone. */
#include "tensor/ops/conv/windows.h"

#include <stdatomic.h>
#include <string.h>

#include "base/internal.h"
#include "tensor/gemm/gemm.h"
#include "tensor/simd/simd.h"

/* A block has at least BLOCK_OUTPUTS outputs and BLOCK_WORK multiply-adds, unless its arrays would
 * exceed BLOCK_BYTES, or there are fewer images. */
enum { BLOCK_OUTPUTS = 2048, BLOCK_WORK = 1 << 22, BLOCK_BYTES = 4 << 20 };

/* Weights of up to FEW_OUTPUTS output channels, or FEW_OF_ONE_INPUT with one input channel, are
 * applied to planes. Their gradient is summed over SUMS parts of all groups' images in parallel. */
enum { FEW_OUTPUTS = 3, FEW_OF_ONE_INPUT = 16, SUMS = 32 };

/* Copies are made in chunks of CHUNK bytes, and may be read up to ROOM bytes beyond their end. */
enum { CHUNK = 16, ROOM = 64 };

/* ---- Padded copies ---- */

typedef struct windows {
    const wg__correlation *of;
    int64_t size; /* of an element, in bytes */
    int64_t images;
    int64_t low[WG__CONV_AXES], places[WG__CONV_AXES]; /* the first place read, and their number */
    int64_t begin[WG__CONV_AXES], end[WG__CONV_AXES];  /* the places that lie in the image */
    int64_t length[WG__CONV_AXES];                     /* of an axis in the copy: places / step */
    int64_t channel, image;                            /* strides in elements */
    int64_t outputs;                                   /* of an image */
    int64_t vectors;                                   /* taps of all channels of a group */
    int64_t *offsets;                                  /* (vectors) */
    char *data;
} windows;

/* Lays out copies of `images` images; -1 for lack of memory. */
static int lay_out(windows *w, const wg__correlation *c, int64_t images) {
    const wg__window_axis *axes = c->axes;
    *w = (windows){.of = c,
                   .size = (int64_t)wg_dtype_size(c->dtype),
                   .images = images,
                   .outputs = 1,
                   .channel = 1,
                   .vectors = c->in_channels};
    for (int i = 0; i < WG__CONV_AXES; i++) {
        const wg__window_axis *a = &axes[i];
        const int64_t reach = (a->taps - 1) * a->hop;
        w->low[i] = a->first + wg__smaller(reach, 0);
        w->places[i] = (a->count - 1) * a->step + wg__larger(reach, -reach) + 1;
        w->begin[i] = wg__larger(0, -w->low[i]);
        w->end[i] = wg__smaller(w->places[i], a->size - w->low[i]);
        w->length[i] = wg__ceil_divide(w->places[i], a->step);
        w->channel *= w->length[i] * a->step;
        w->outputs *= a->count;
        w->vectors *= a->taps;
    }
    w->image = w->channel * c->in_channels;
    w->offsets = wg__try_alloc_array(w->vectors, sizeof *w->offsets);
    if (!w->offsets)
        return -1;
    const int64_t phase_size = w->length[0] * w->length[1] * w->length[2];
    for (int64_t vector = 0; vector < w->vectors; vector++) {
        int64_t rest = vector, phase = 0, within = 0, places[WG__CONV_AXES];
        for (int i = WG__CONV_AXES - 1; i >= 0; rest /= axes[i--].taps)
            places[i] = axes[i].first + rest % axes[i].taps * axes[i].hop - w->low[i];
        for (int i = 0; i < WG__CONV_AXES; i++) {
            phase = phase * axes[i].step + places[i] % axes[i].step;
            within = within * w->length[i] + places[i] / axes[i].step;
        }
        w->offsets[vector] = rest * w->channel + phase * phase_size + within;
    }
    return 0;
}

/* y = every step-th element of x. Compilers vectorize a constant step. */
#define COPY_STEPS(NAME, TYPE)                                                                     \
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
COPY_STEPS(copy_steps_f32, float)
COPY_STEPS(copy_steps_f64, double)

/* Copies `count` elements of each row of the image, every step-th one from `from` on, to one phase
 * of the rows of the copy. */
static void copy_phase(const windows *w, int64_t count, const char *from, char *to) {
    const wg__window_axis *axes = w->of->axes;
    const int64_t row = axes[2].size * w->size, length = w->length[2] * w->size;
    const int64_t phase = axes[2].step * w->length[0] * w->length[1] * length; /* of rows */
    for (int64_t i = w->begin[0]; i < w->end[0]; i++) {
        const int64_t plane = (i + w->low[0]) * axes[1].size;
        const char *x = from + (plane + w->begin[1] + w->low[1]) * row;
        char *y =
            to + i % axes[0].step * axes[1].step * phase + i / axes[0].step * w->length[1] * length;
        int64_t within = w->begin[1] % axes[1].step;
        y += w->begin[1] / axes[1].step * length;
        for (int64_t j = w->begin[1]; j < w->end[1]; j++, x += row) {
            if (axes[2].step == 1)
                memcpy(y + within * phase, x, (size_t)(count * w->size));
            else
                (w->of->dtype == WG_F32 ? copy_steps_f32 : copy_steps_f64)(count, x, axes[2].step,
                                                                           y + within * phase);
            if (++within == axes[1].step) {
                within = 0;
                y += length;
            }
        }
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
    const int64_t step = c->axes[2].step;
    const int64_t phase_bytes = w->length[0] * w->length[1] * w->length[2] * w->size;
    const int64_t low = w->begin[2], high = w->end[2];
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = job->first_image + i / c->in_channels;
        const int64_t channel =
            (image * c->groups + job->group) * c->in_channels + i % c->in_channels;
        const char *from = (const char *)c->x + channel * sizes * w->size;
        char *to = w->data + i * w->channel * w->size;
        memset(to, 0, (size_t)(w->channel * w->size));
        for (int64_t phase = 0; phase < step; phase++) {
            const int64_t first = low + (phase - low % step + step) % step;
            if (first < high)
                copy_phase(w, wg__ceil_divide(high - first, step),
                           from + (w->low[2] + first) * w->size,
                           to + phase * phase_bytes + first / step * w->size);
        }
    }
}

/* Copies `images` images from first_image on, in the channels of a group. */
static void copy_images(const windows *w, int64_t first_image, int64_t images, int64_t group) {
    copy_job job = {w, first_image, group};
    wg__parallel_for(images * w->of->in_channels, 1 + WG__GRAIN / w->channel, copy_channels, &job);
}

/* ---- The matrix of windows, for the packed product ---- */

/* Neighbouring outputs in a row: the places that a tap reads for them are contiguous. */
typedef struct run {
    int64_t offset, bytes; /* of the first output, in elements */
} run;

/* Writes the runs of `count` outputs of all images, from `first` on; returns their number. */
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

/* Copies the runs of a tap one behind another. Unless `exact`, up to CHUNK - 1 bytes beyond the end
 * are written, too. */
static void copy_runs(const windows *w, int64_t vector, int64_t count, const run *runs, bool exact,
                      char *to) {
    const char *from = w->data + w->offsets[vector] * w->size;
    for (int64_t i = 0; i < count; i++) {
        const char *x = from + runs[i].offset * w->size;
        const int64_t bytes = runs[i].bytes;
        int64_t at = 0;
        for (; at + 4 * CHUNK <= bytes; at += 4 * CHUNK)
            memcpy(to + at, x + at, 4 * CHUNK);
        if (exact)
            memcpy(to + at, x + at, (size_t)(bytes - at));
        for (; !exact && at < bytes; at += CHUNK)
            memcpy(to + at, x + at, CHUNK);
        to += bytes;
    }
}

/* Rows are taps, and columns outputs. Bytes beyond a row's end are overwritten by the next row. */
static void read_windows(const void *context, int64_t row, int64_t rows, int64_t column,
                         int64_t columns, int64_t step, void *to) {
    const windows *w = context;
    run runs[WG__MOST_GATHERED];
    const int64_t count = runs_of(w, column, columns, runs);
    for (int64_t i = 0; i < rows; i++)
        copy_runs(w, row + i, count, runs, i + 1 == rows, (char *)to + i * step * w->size);
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

#define PLACE(NAME, TYPE)                                                                          \
    static void NAME(int64_t n, const void *from, double bias, void *to, int64_t stride) {         \
        const TYPE *x = from, plus = (TYPE)bias;                                                   \
        TYPE *y = to;                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i * stride] = x[i] + plus;                                                           \
    }
PLACE(place_f32, float)
PLACE(place_f64, double)

/* Writes a channel of outputs plus its bias. `from` has the outputs, with strides `plane` and `row`
 * in elements; if `from` is NULL, the outputs become the bias. */
static void place_outputs(const wg__correlation *c, const char *from, int64_t plane, int64_t row,
                          int64_t image, int64_t channel) {
    enum { PART = 512 };
    static const double zeros[PART];
    const int64_t size = (int64_t)wg_dtype_size(c->dtype), columns = c->axes[2].count;
    const double bias = !c->bias             ? 0
                        : c->dtype == WG_F32 ? (double)((const float *)c->bias)[channel]
                                             : ((const double *)c->bias)[channel];
    char *outputs = (char *)c->y + (image * c->y_image + channel * c->y_channel) * size;
    for (int64_t i = 0; i < c->axes[0].count; i++)
        for (int64_t j = 0; j < c->axes[1].count; j++) {
            char *to = outputs + (i * c->y_axes[0] + j * c->y_axes[1]) * size;
            for (int64_t k = 0, n; k < columns; k += n) {
                n = from ? columns : wg__smaller(PART, columns - k);
                (c->dtype == WG_F32 ? place_f32 : place_f64)(
                    n, from ? (const void *)(from + (i * plane + j * row) * size) : zeros, bias,
                    to + k * c->y_axes[2] * size, c->y_axes[2]);
            }
        }
}

/* ---- Parts of the work: blocks of images of a group ---- */

typedef struct job {
    const wg__correlation *c;
    windows layout;
    int64_t block, blocks; /* images in a block */
    int64_t room;          /* elements of a worker's buffer */
    bool dense;            /* the outputs of a channel are contiguous */
    void (*run)(struct job *job, const windows *w, char *buffer, int64_t part);
    char *gradient;     /* of the weight */
    atomic_bool failed; /* there was no memory */
} job;

/* A worker: runs parts with its own copies of images and its own buffer. */
static void run_range(int64_t begin, int64_t end, void *context) {
    job *job = context;
    windows w = job->layout;
    const int64_t bytes = w.images * w.image * w.size;
    char *buffer = wg__try_alloc_array(wg__larger(job->room, 1), w.size);
    w.data = wg__try_alloc((size_t)bytes + ROOM);
    if (w.data && buffer) {
        memset(w.data + bytes, 0, ROOM);
        for (int64_t part = begin; part < end; part++)
            job->run(job, &w, buffer, part);
    } else {
        atomic_store(&job->failed, true);
    }
    wg__free(w.data);
    wg__free(buffer);
}

/* Chooses the block: one image, or more if an image has few outputs or little work. A part is a
 * block of a group, or, for the gradient, a group. Many parts run in parallel; few run one by one,
 * and each uses all threads. */
static void run_blocks(job *job) {
    const wg__correlation *c = job->c;
    const wg__window_axis *a = c->axes;
    windows *w = &job->layout;
    const int64_t outputs = w->outputs, work = c->out_channels * w->vectors * outputs;
    const int64_t bytes = (w->image + c->out_channels * outputs) * w->size;
    int64_t block = wg__larger(BLOCK_OUTPUTS / outputs, BLOCK_WORK / work);
    block = wg__larger(1, wg__smaller(block, BLOCK_BYTES / bytes));
    job->block = w->images = wg__smaller(block, c->images);
    job->blocks = wg__ceil_divide(c->images, job->block);
    job->dense = c->y_axes[2] == 1 && (c->y_axes[1] == a[2].count || a[1].count == 1) &&
                 (c->y_axes[0] == a[1].count * a[2].count || a[0].count == 1);
    if (job->block > 1 || (!job->gradient && !job->dense))
        job->room = job->block * c->out_channels * outputs;
    const int64_t count = job->gradient ? c->groups : job->blocks * c->groups;
    if (count >= 4 * wg_threads())
        wg__parallel_for(count, 1, run_range, job);
    else
        for (int64_t i = 0; i < count; i++)
            run_range(i, i + 1, job);
}

/* Sets operand B of a product to the windows of some images of a group: gathered from copies, or,
 * for a kernel with a single tap, the image itself. */
static void set_windows(const windows *w, int64_t first, int64_t images, int64_t group,
                        const wg__gather *gather, wg__product *p) {
    const wg__correlation *c = w->of;
    const int64_t channel = (first * c->groups + group) * c->in_channels;
    bool pointwise = images == 1;
    for (int i = 0; i < WG__CONV_AXES; i++) {
        const wg__window_axis *a = &c->axes[i];
        pointwise &= a->taps == 1 && a->step == 1 && a->first == 0 && a->count == a->size;
    }
    if (pointwise) {
        p->b = (wg__matrix){(char *)c->x + channel * w->outputs * w->size, w->outputs, 1};
        if (gather->down)
            p->b = wg__transposed(p->b);
        return;
    }
    copy_images(w, first, images, group);
    p->b = (wg__matrix){w->data, 0, 0};
    p->gather = gather;
}

/* Part block * groups + group. The product of a single image is computed in place if the outputs of
 * a channel are contiguous; otherwise it is computed in the buffer, then copied. */
static void multiply_block(job *job, const windows *w, char *buffer, int64_t part) {
    const wg__correlation *c = job->c;
    const int64_t first = part / c->groups * job->block, group = part % c->groups;
    const int64_t images = wg__smaller(job->block, c->images - first);
    const int64_t channel = group * c->out_channels, row = c->axes[2].count;
    const int64_t plane = c->axes[1].count * row;
    const wg__gather gather = {read_windows, w, false};
    const bool in_place = images == 1 && job->dense;
    char *y = (char *)c->y + (first * c->y_image + channel * c->y_channel) * w->size;
    wg__product p = {.dtype = c->dtype,
                     .m = c->out_channels,
                     .n = images * w->outputs,
                     .k = w->vectors,
                     .alpha = 1,
                     .beta = in_place && c->bias ? 1 : 0,
                     .a = {(char *)c->weight + channel * w->vectors * w->size, w->vectors, 1},
                     .c = in_place ? (wg__matrix){y, c->y_channel, 1}
                                   : (wg__matrix){buffer, images * w->outputs, 1}};
    for (int64_t m = 0; in_place && c->bias && m < c->out_channels; m++)
        place_outputs(c, NULL, 0, 0, first, channel + m);
    set_windows(w, first, images, group, &gather, &p);
    wg__gemm(&p);
    for (int64_t i = 0; !in_place && i < images; i++)
        for (int64_t m = 0; m < c->out_channels; m++)
            place_outputs(c, buffer + (m * p.n + i * w->outputs) * w->size, plane, row, first + i,
                          channel + m);
}

/* Part `group`: the gradient of its weight is added up over blocks of images. */
static void multiply_gradient(job *job, const windows *w, char *buffer, int64_t group) {
    const wg__correlation *c = job->c;
    const wg__gather gather = {read_transposed, w, true};
    const int64_t channels = c->groups * c->out_channels, bytes = w->outputs * w->size;
    const int64_t place = group * c->out_channels * w->vectors * w->size;
    for (int64_t first = 0; first < c->images; first += job->block) {
        const int64_t images = wg__smaller(job->block, c->images - first);
        char *g = (char *)c->y + (first * channels + group * c->out_channels) * bytes;
        wg__product p = {.dtype = c->dtype,
                         .m = c->out_channels,
                         .n = w->vectors,
                         .k = images * w->outputs,
                         .alpha = 1,
                         .beta = first > 0,
                         .a = {images == 1 ? g : buffer, images * w->outputs, 1},
                         .c = {job->gradient + place, w->vectors, 1}};
        for (int64_t m = 0; images > 1 && m < c->out_channels; m++)
            for (int64_t i = 0; i < images; i++)
                memcpy(buffer + (m * images + i) * bytes, g + (i * channels + m) * bytes,
                       (size_t)bytes);
        set_windows(w, first, images, group, &gather, &p);
        wg__gemm(&p);
    }
}

/* ---- Planes: the buffer has the outputs of a channel, with the strides of the copy ---- */

/* Part image * groups + group. */
static void sum_planes(job *job, const windows *w, char *wide, int64_t part) {
    const wg__correlation *c = job->c;
    const int64_t image = part / c->groups, group = part % c->groups;
    copy_images(w, image, 1, group);
    for (int64_t m = group * c->out_channels; m < (group + 1) * c->out_channels; m++) {
        const char *weight = (const char *)c->weight + m * w->vectors * w->size;
        wg__simd_for(c->dtype)->products.tap_sums(job->room, w->vectors, w->offsets, w->data,
                                                  weight, 0, wide);
        place_outputs(c, wide, w->length[1] * w->length[2], w->length[2], image, m);
    }
}

/* Part block * groups + group. Each part adds to its own elements of the sums (blocks, weights).
 * The buffer has the gradient of the outputs, with zeros between rows and planes. */
static void dot_planes(job *job, const windows *w, char *wide, int64_t part) {
    const wg__correlation *c = job->c;
    const wg__window_axis *axes = c->axes;
    const int64_t channels = c->groups * c->out_channels, row = axes[2].count * w->size;
    const int64_t group = part % c->groups, block = part / c->groups;
    const int64_t last = wg__smaller((block + 1) * job->block, c->images);
    for (int64_t image = block * job->block; image < last; image++) {
        copy_images(w, image, 1, group);
        for (int64_t m = group * c->out_channels; m < (group + 1) * c->out_channels; m++) {
            const char *g = (const char *)c->y + (image * channels + m) * w->outputs * w->size;
            memset(wide, 0, (size_t)(job->room * w->size));
            for (int64_t i = 0; i < axes[0].count; i++)
                for (int64_t j = 0; j < axes[1].count; j++, g += row)
                    memcpy(wide + (i * w->length[1] + j) * w->length[2] * w->size, g, (size_t)row);
            wg__simd_for(c->dtype)->products.tap_dots(
                job->room, w->vectors, w->offsets, w->data, wide,
                job->gradient + (block * channels + m) * w->vectors * w->size);
        }
    }
}

/* Lays out copies and runs all parts; this thread counts the operations. -1 for lack of memory. */
static int run_job(job *job, int64_t weights) {
    const wg__correlation *c = job->c;
    const wg__window_axis *axes = c->axes;
    windows *w = &job->layout;
    const double flops = wg__product_flops;
    if (lay_out(w, c, 1) < 0)
        return -1;
    job->room =
        ((axes[0].count - 1) * w->length[1] + axes[1].count - 1) * w->length[2] + axes[2].count;
    if (c->out_channels > (c->in_channels == 1 ? FEW_OF_ONE_INPUT : FEW_OUTPUTS)) {
        job->room = 0;
        job->run = job->gradient ? multiply_gradient : multiply_block;
        run_blocks(job);
    } else if (job->gradient) { /* adds the sums of all parts, in order, to zeros */
        char *gradient = job->gradient;
        job->run = dot_planes;
        job->block = wg__ceil_divide(c->images, wg__ceil_divide(SUMS, c->groups));
        job->blocks = wg__ceil_divide(c->images, job->block);
        job->gradient = wg__try_alloc_array(wg__times(job->blocks, weights), w->size);
        if (job->gradient) {
            memset(job->gradient, 0, (size_t)(job->blocks * weights * w->size));
            wg__parallel_for(job->blocks * c->groups, 1, run_range, job);
            wg__simd_for(c->dtype)->rows.add(job->blocks, weights, weights, job->gradient,
                                             gradient);
        } else {
            atomic_store(&job->failed, true);
        }
        wg__free(job->gradient);
    } else {
        job->run = sum_planes;
        wg__parallel_for(c->images * c->groups,
                         1 + 8 * WG__GRAIN / (w->channel * w->vectors * c->out_channels), run_range,
                         job);
    }
    wg__product_flops = flops + 2 * (double)c->images * (double)(c->groups * c->out_channels) *
                                    (double)(w->vectors * w->outputs);
    wg__free(w->offsets);
    return atomic_load(&job->failed) ? -1 : 0;
}

int wg__correlate(const wg__correlation *c) {
    const wg__window_axis *a = c->axes;
    if (c->images * c->groups * c->out_channels * a[0].count * a[1].count * a[2].count == 0)
        return 0;
    if (c->in_channels * a[0].taps * a[1].taps * a[2].taps > 0)
        return run_job(&(job){.c = c}, 0);
    for (int64_t i = 0; i < c->images; i++)
        for (int64_t m = 0; m < c->groups * c->out_channels; m++)
            place_outputs(c, NULL, 0, 0, i, m);
    return 0;
}

int wg__correlate_vjp(const wg__correlation *c, void *gradient) {
    int64_t weights = c->groups * c->out_channels * c->in_channels, outputs = c->images;
    for (int i = 0; i < WG__CONV_AXES; i++) {
        weights *= c->axes[i].taps;
        outputs *= c->axes[i].count;
    }
    memset(gradient, 0, (size_t)weights * wg_dtype_size(c->dtype));
    return weights == 0 || outputs == 0 ? 0
                                        : run_job(&(job){.c = c, .gradient = gradient}, weights);
}
