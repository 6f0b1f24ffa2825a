/* Discrete Fourier transforms, and convolution by FFT. Complex numbers are pairs (re, im) on the
 * last axis. A plan splits a line into passes of small radices; sizes with large prime factors
 * become a convolution (Bluestein). Long single lines become matrices (Bailey).
 *
 * The kernels are in tensor/simd/fft.h. No library of Debian fits: kissfft has only f32 and
 * transforms one line at a time, pocketfft is not packaged, and FFTW is GPL. */
#include "tensor/ops/support.h"
#include "tensor/simd/simd.h"

#include <math.h>
#include <string.h>

/* A plan, the plan of its convolution if it has one, and the arrays that they refer to. */
typedef struct tables {
    wg__fft_plan plan, convolution;
    void *memory[4];
} tables;

static void store_pair(wg_dtype dtype, void *pairs, int64_t index, double re, double im) {
    if (dtype == WG_F32) {
        ((float *)pairs)[2 * index] = (float)re;
        ((float *)pairs)[2 * index + 1] = (float)im;
    } else {
        ((double *)pairs)[2 * index] = re;
        ((double *)pairs)[2 * index + 1] = im;
    }
}

/* Powers of w = e^(-2 pi i / n), or of 1 / w. Each is a product of two tabulated powers; the table
 * has about 2 sqrt(n). */
typedef struct powers {
    int64_t n, low;
    double sign;
    const double *parts; /* of w^0 to w^(low - 1), then of w^0, w^low, w^(2 low)... */
} powers;

/* Makes the parts, which the caller frees; NULL for lack of memory. */
static double *parts_of(powers *job) {
    for (job->low = 1; job->low * job->low < job->n;)
        job->low *= 2;
    const int64_t count = job->low + job->n / job->low + 1;
    double *parts = wg__alloc_array(wg__times(2, count), sizeof *parts);
    for (int64_t i = 0; parts && i < count; i++) {
        const int64_t exponent = i < job->low ? i : (i - job->low) * job->low;
        const double angle = -2 * M_PI * ((double)exponent / (double)job->n);
        parts[2 * i] = cos(angle);
        parts[2 * i + 1] = sin(angle);
    }
    job->parts = parts;
    return parts;
}

static void power(const powers *job, int64_t exponent, double *w) {
    const double *a = job->parts + 2 * (exponent % job->low);
    const double *b = job->parts + 2 * (job->low + exponent / job->low);
    w[0] = a[0] * b[0] - a[1] * b[1];
    w[1] = job->sign * (a[0] * b[1] + a[1] * b[0]);
}

/* w^0 to w^n; NULL for lack of memory. */
static void *roots_of_unity(wg_dtype dtype, int64_t n) {
    powers of_w = {.n = n, .sign = 1};
    double *parts = parts_of(&of_w), w[2];
    void *roots = parts ? wg__alloc_array(wg__times(2, n + 1), wg_dtype_size(dtype)) : NULL;
    for (int64_t k = 0; roots && k <= n; k++) {
        power(&of_w, k, w);
        store_pair(dtype, roots, k, w[0], w[1]);
    }
    wg__free(parts);
    return roots;
}

/* Factors n into radices; false if a prime factor is too large for a pass. */
static bool factor(wg__fft_plan *plan) {
    int64_t rest = plan->n;
    plan->passes = 0;
    for (int radix = 4; radix <= WG__FFT_MOST_RADIX; radix = radix == 4   ? 2
                                                             : radix == 2 ? 3
                                                                          : radix + 2)
        while (rest % radix == 0) {
            plan->radix[plan->passes++] = radix;
            rest /= radix;
        }
    return rest == 1;
}

/* The smallest size from `least` on without prime factors above 5. */
static int64_t smooth_size(int64_t least) {
    int64_t best = 1;
    while (best < least)
        best *= 2;
    for (int64_t fives = 1; fives < best; fives *= 5)
        for (int64_t threes = fives; threes < best; threes *= 3) {
            int64_t n = threes;
            while (n < least)
                n *= 2;
            best = wg__smaller(best, n);
        }
    return best;
}

/* Plans a transform as a convolution with a chirp (Bluestein 1970): computes the chirp, and its
 * spectrum by a transform. */
static int plan_convolution(wg_dtype dtype, tables *all) {
    const int64_t n = all->plan.n, m = smooth_size(2 * n - 1);
    const size_t pair = 2 * wg_dtype_size(dtype);
    const wg__simd *simd = wg__simd_for(dtype);
    all->convolution = (wg__fft_plan){.n = m, .real = m, .step = 1};
    factor(&all->convolution);
    char *roots = roots_of_unity(dtype, 2 * n), *chirp = wg__alloc_array(n, pair);
    void *conjugate = wg__calloc((size_t)m, pair);
    void *room = wg__alloc_array(wg__times(wg__times(2, m), simd->lanes), pair); /* two buffers */
    void *spectrum = wg__alloc_array(m, pair);
    all->memory[1] = roots_of_unity(dtype, m);
    all->memory[2] = chirp;
    all->memory[3] = spectrum;
    const bool ready = roots && chirp && conjugate && room && spectrum && all->memory[1];
    int64_t place = 0; /* j^2 modulo 2 n */
    for (int64_t j = 0; ready && j < n; place = (place + 2 * j + 1) % (2 * n), j++) {
        memcpy(chirp + (size_t)j * pair, roots + (size_t)place * pair, pair);
        const double re = wg__element(dtype, roots + (size_t)place * pair);
        const double im = wg__element(dtype, roots + (size_t)place * pair + pair / 2);
        store_pair(dtype, conjugate, j, re, -im);
        store_pair(dtype, conjugate, j ? m - j : 0, re, -im);
    }
    if (ready) {
        all->convolution.twiddles = all->memory[1];
        simd->matrices.fft_groups(&(wg__fft){.plan = &all->convolution,
                                             .kind = WG__FFT_FORWARD,
                                             .inner = 1,
                                             .from = {conjugate, 0, 0, 2, 1, m},
                                             .to = {spectrum, 0, 0, 2, 1, m},
                                             .scale = 1 / (double)m,
                                             .room = m},
                                  0, 1, room);
        all->plan.convolution = &all->convolution;
        all->plan.chirp = chirp;
        all->plan.spectrum = spectrum;
    }
    wg__free(roots);
    wg__free(conjugate);
    wg__free(room);
    return ready ? 0 : -1;
}

static void free_plan(tables *all) {
    for (int i = 0; i < 4; i++)
        wg__free(all->memory[i]);
}

/* A plan for complex lines of n elements; if `halved`, for real lines of 2 n elements. */
static int make_plan(wg_dtype dtype, int64_t n, bool halved, tables *all) {
    *all = (tables){.plan = {.n = n, .real = halved ? 2 * n : n, .step = halved ? 2 : 1}};
    const bool by_passes = factor(&all->plan);
    if (halved || by_passes) {
        all->memory[0] = roots_of_unity(dtype, all->plan.real);
        if (all->memory[0] == NULL)
            return -1;
    }
    all->plan.twiddles = all->memory[0];
    all->plan.halves = halved ? all->memory[0] : NULL;
    if (by_passes || plan_convolution(dtype, all) == 0)
        return 0;
    free_plan(all);
    return -1;
}

/* The strides of the lines along an axis of a contiguous tensor, of pairs or of reals. */
static wg__fft_side side_of(const wg_tensor *x, int axis, bool pairs, bool halved) {
    const int64_t inner =
        wg__shape_count(x->spec.ndim - pairs - axis - 1, x->spec.shape + axis + 1);
    const int64_t count = x->spec.shape[axis], unit = pairs ? 2 : 1;
    return (wg__fft_side){.data = wg__tensor_address(x),
                          .outer = count * inner * unit,
                          .line = inner == 1 ? count * unit : unit,
                          .step = (halved ? 2 : unit) * inner,
                          .imaginary = halved ? inner : pairs,
                          .count = halved ? count / 2 : count};
}

typedef struct task_list {
    wg__fft job;
    wg_dtype dtype;
    int64_t groups, tasks;
    char *room;
    size_t size;
} task_list;

static void run_tasks(int64_t begin, int64_t end, void *context) {
    const task_list *list = context;
    for (int64_t task = begin; task < end; task++)
        wg__simd_for(list->dtype)
            ->matrices.fft_groups(&list->job, task * list->groups / list->tasks,
                                  (task + 1) * list->groups / list->tasks,
                                  list->room + task * list->size);
}

static int run_list(task_list *list, int64_t elements) {
    const int64_t lanes = wg__simd_for(list->dtype)->lanes;
    list->tasks = wg__smaller(wg_threads(), list->groups);
    list->tasks = wg__smaller(list->tasks, list->groups * lanes * elements / 4096 + 1);
    list->size =
        (size_t)(4 * list->job.room * lanes) * wg_dtype_size(list->dtype); /* two buffers */
    list->room = wg__alloc_array(wg__times(list->tasks, list->size), 1);
    if (list->room)
        wg__parallel_for(list->tasks, 1, run_tasks, list);
    wg__free(list->room);
    return list->room ? 0 : -1;
}

/* ---- Few long lines ----
 *
 * A kernel has a line in each lane, so a single line would leave most lanes empty. With n = a b, a
 * line is a matrix (a, b) of x_(i b + j):
 *
 *     X_(k + a l) = sum_j w_b^(j l) w_n^(j k) sum_i w_a^(i k) x_(i b + j)     (Bailey's four steps)
 *
 * That is b transforms of columns, a product with powers of w_n, and a transforms of rows. */

enum { LONG_LINE = 1 << 12, STEP = 16 };

/* The rows of the matrix: the largest divisor r of n up to sqrt(n) where passes can transform lines
 * of r and n / r elements; 0: none. */
static int64_t rows_of(int64_t n) {
    for (int64_t rows = (int64_t)sqrt((double)n); rows >= 2 * STEP; rows--) {
        wg__fft_plan first = {.n = rows}, second = {.n = n / rows};
        if (n % rows == 0 && factor(&first) && factor(&second))
            return rows;
    }
    return 0;
}

typedef struct twiddle_job {
    powers powers;
    wg_dtype dtype;
    void *pairs; /* (rows, columns) */
    int64_t columns;
} twiddle_job;

#define MULTIPLY_PAIRS(NAME, TYPE)                                                                 \
    static void multiply_##NAME(TYPE *x, int64_t count, const double *base, double fine[][2]) {    \
        for (int64_t t = 0; t < count; t++) {                                                      \
            const double re = base[0] * fine[t][0] - base[1] * fine[t][1];                         \
            const double im = base[0] * fine[t][1] + base[1] * fine[t][0];                         \
            const double a = (double)x[2 * t], b = (double)x[2 * t + 1];                           \
            x[2 * t] = (TYPE)(a * re - b * im);                                                    \
            x[2 * t + 1] = (TYPE)(a * im + b * re);                                                \
        }                                                                                          \
    }

MULTIPLY_PAIRS(f32, float)
MULTIPLY_PAIRS(f64, double)

/* Multiplies rows k of the matrix by w_n^(j k): the power of every STEP-th column times a fine
 * power within the step. */
static void twiddle_rows(int64_t begin, int64_t end, void *context) {
    const twiddle_job *job = context;
    for (int64_t k = begin; k < end; k++) {
        double fine[STEP][2], base[2];
        for (int64_t t = 0; t < STEP; t++)
            power(&job->powers, k * t, fine[t]);
        for (int64_t j = 0; j < job->columns; j += STEP) {
            const int64_t count = wg__smaller(STEP, job->columns - j);
            const int64_t at = 2 * (k * job->columns + j);
            power(&job->powers, k * j, base);
            if (job->dtype == WG_F32)
                multiply_f32((float *)job->pairs + at, count, base, fine);
            else
                multiply_f64((double *)job->pairs + at, count, base, fine);
        }
    }
}

/* Transforms a line of rows * columns pairs from `x` via `middle` to `y`. */
static int transform_long(wg_dtype dtype, wg__fft_kind kind, int64_t rows, int64_t columns, void *x,
                          void *middle, void *y, double scale) {
    const int64_t n = rows * columns, lanes = wg__simd_for(dtype)->lanes;
    twiddle_job job = {.powers = {.n = n, .sign = kind == WG__FFT_INVERSE ? -1 : 1},
                       .dtype = dtype,
                       .pairs = middle,
                       .columns = columns};
    double *parts = parts_of(&job.powers);
    const wg__fft_side sides[2][2] = {
        {{x, 0, 2, 2 * columns, 1, rows}, {middle, 0, 2, 2 * columns, 1, rows}},
        {{middle, 0, 2 * columns, 2, 1, columns}, {y, 0, 2, 2 * rows, 1, columns}}};
    int status = parts ? 0 : -1;
    for (int stage = 0; stage < 2 && status == 0; stage++) {
        const int64_t size = stage ? columns : rows, inner = stage ? rows : columns;
        tables all;
        if ((status = make_plan(dtype, size, false, &all)) < 0)
            break;
        task_list list = {.dtype = dtype, .groups = wg__ceil_divide(inner, lanes)};
        list.job = (wg__fft){.plan = &all.plan,
                             .kind = kind,
                             .inner = inner,
                             .from = sides[stage][0],
                             .to = sides[stage][1],
                             .scale = stage ? scale : 1,
                             .room = size + 1};
        status = run_list(&list, size);
        free_plan(&all);
        if (stage == 0 && status == 0)
            wg__parallel_for(rows, 1 + WG__GRAIN / columns, twiddle_rows, &job);
    }
    wg__free(parts);
    return status;
}

/* split: the real transform of n = 2 h elements from the complex transform z of h pairs, as
 * split_halves of the kernels; z (h) becomes x (h + 1). join is the inverse, as join_halves. The
 * range is k from 0 to h. */
typedef struct halves_job {
    powers powers; /* of w_n */
    const void *from;
    void *to;
    int64_t h;
} halves_job;

#define HALVES(NAME, TYPE)                                                                         \
    static void split_##NAME(int64_t begin, int64_t end, void *context) {                          \
        const halves_job *job = context;                                                           \
        const TYPE *z = job->from;                                                                 \
        TYPE *x = job->to;                                                                         \
        for (int64_t k = begin; k < end; k++) {                                                    \
            const TYPE *a = z + 2 * (k == job->h ? 0 : k), *b = z + 2 * (k ? job->h - k : 0);      \
            double w[2];                                                                           \
            power(&job->powers, k, w);                                                             \
            const double re = ((double)a[1] + (double)b[1]) / 2;                                   \
            const double im = ((double)b[0] - (double)a[0]) / 2;                                   \
            x[2 * k] = (TYPE)(((double)a[0] + (double)b[0]) / 2 + re * w[0] - im * w[1]);          \
            x[2 * k + 1] = (TYPE)(((double)a[1] - (double)b[1]) / 2 + re * w[1] + im * w[0]);      \
        }                                                                                          \
    }                                                                                              \
    static void join_##NAME(int64_t begin, int64_t end, void *context) {                           \
        const halves_job *job = context;                                                           \
        const TYPE *x = job->from;                                                                 \
        TYPE *z = job->to;                                                                         \
        for (int64_t k = begin; k < end; k++) {                                                    \
            const TYPE *a = x + 2 * k, *b = x + 2 * (job->h - k);                                  \
            const double a_im = k ? (double)a[1] : 0, b_im = k ? (double)b[1] : 0;                 \
            double w[2];                                                                           \
            power(&job->powers, k, w);                                                             \
            const double re = (double)a[0] - (double)b[0], im = a_im + b_im;                       \
            z[2 * k] = (TYPE)((double)a[0] + (double)b[0] - (im * w[0] - re * w[1]));              \
            z[2 * k + 1] = (TYPE)(a_im - b_im + re * w[0] + im * w[1]);                            \
        }                                                                                          \
    }

HALVES(f32, float)
HALVES(f64, double)

/* Transforms all lines of x along its last axis, one by one. A complex line has n pairs. A real
 * transform reads 2 n reals and writes n + 1 pairs; a Hermitian one reads n + 1 pairs and writes 2
 * n reals. */
static int transform_long_lines(wg__fft_kind kind, const wg_tensor *x, int64_t n, int64_t rows,
                                int64_t lines, double scale, const wg_tensor *y) {
    const wg_dtype dtype = x->spec.dtype;
    const size_t pair = 2 * wg_dtype_size(dtype), size = (size_t)n * pair;
    const bool to_half = kind == WG__FFT_REAL, from_half = kind == WG__FFT_HERMITIAN;
    halves_job job = {.powers = {.n = 2 * n, .sign = 1}, .h = n};
    char *middle = wg__alloc(size), *spectrum = to_half || from_half ? wg__alloc(size) : NULL;
    double *parts = to_half || from_half ? parts_of(&job.powers) : NULL;
    int status = middle && (!(to_half || from_half) || (spectrum && parts)) ? 0 : -1;
    for (int64_t line = 0; status == 0 && line < lines; line++) {
        char *in = (char *)wg__tensor_address(x) + (size_t)line * (size + from_half * pair);
        char *out = (char *)wg__tensor_address(y) + (size_t)line * (size + to_half * pair);
        job.from = in;
        job.to = spectrum;
        if (from_half)
            wg__parallel_for(n, WG__GRAIN, dtype == WG_F32 ? join_f32 : join_f64, &job);
        status = transform_long(dtype,
                                from_half ? WG__FFT_INVERSE
                                : to_half ? WG__FFT_FORWARD
                                          : kind,
                                rows, n / rows, from_half ? spectrum : in, middle,
                                to_half ? spectrum : out, scale);
        job.from = spectrum;
        job.to = out;
        if (to_half && status == 0)
            wg__parallel_for(n + 1, WG__GRAIN, dtype == WG_F32 ? split_f32 : split_f64, &job);
    }
    wg__free(middle);
    wg__free(spectrum);
    wg__free(parts);
    return status;
}

typedef struct fft_options {
    int axis;  /* counted without the axis of pairs */
    int64_t n; /* the size of the transform */
    double scale;
    wg__fft_kind kind; /* fft: forward or inverse; rfft: real; irfft: Hermitian */
} fft_options;

static int fft_forward(wg_call *call) {
    const fft_options *options = call->options;
    const wg__fft_kind kind = options->kind;
    const int axis = options->axis;
    const int64_t n = options->n;
    const wg_tensor *x = wg_contiguous(call->inputs[0]), *y = call->outputs[0];
    if (!x)
        return -1;
    const wg_dtype dtype = x->spec.dtype;
    const bool real_from = kind == WG__FFT_REAL, real_to = kind == WG__FFT_HERMITIAN;
    /* An odd number of reals does not divide into pairs. */
    const bool single = real_from && x->spec.shape[axis] < n && x->spec.shape[axis] % 2;
    const bool halved = (real_from || real_to) && n % 2 == 0 && !single;
    tables all;
    if (wg__spec_count(&y->spec) == 0)
        return 0;
    const int64_t pairs = halved ? n / 2 : n, read = real_to ? n / 2 + 1 : n;
    const int64_t written = real_from ? n / 2 + 1 : n;
    const int64_t lines = wg__spec_count(&y->spec) / written / (real_to ? 1 : 2);
    const bool whole = axis == x->spec.ndim - 1 - !real_from && x->spec.shape[axis] == read &&
                       (halved || !(real_from || real_to));
    const bool few = pairs >= LONG_LINE && 2 * lines <= wg__simd_for(dtype)->lanes;
    const int64_t rows = whole && few ? rows_of(pairs) : 0;
    if (rows)
        return transform_long_lines(kind, x, pairs, rows, lines, options->scale, y);
    if (make_plan(dtype, pairs, halved, &all) < 0)
        return -1;
    task_list list = {.dtype = dtype};
    list.job = (wg__fft){.plan = &all.plan,
                         .kind = kind,
                         .from = side_of(x, axis, !real_from, real_from && halved),
                         .to = side_of(y, axis, !real_to, real_to && halved),
                         .scale = options->scale};
    int64_t outer = wg__shape_count(axis, y->spec.shape);
    int64_t inner = wg__shape_count(y->spec.ndim - !real_to - axis - 1, y->spec.shape + axis + 1);
    if (inner == 1) { /* lines are rows, and a group may have any of them */
        inner = outer;
        outer = 1;
    }
    const int64_t lanes = wg__simd_for(dtype)->lanes;
    list.job.inner = inner;
    list.job.room =
        wg__larger(n / 2, (all.plan.convolution ? all.plan.convolution : &all.plan)->n) + 1;
    list.groups = outer * wg__ceil_divide(inner, lanes);
    const int status = run_list(&list, n);
    free_plan(&all);
    return status;
}

static const wg_op fft, rfft, irfft;

static const struct {
    const wg_op *op;
    wg__fft_kind adjoint;
    bool is_inverse;
} kinds[] = {[WG__FFT_FORWARD] = {&fft, WG__FFT_INVERSE, false},
             [WG__FFT_INVERSE] = {&fft, WG__FFT_FORWARD, true},
             [WG__FFT_REAL] = {&rfft, WG__FFT_HERMITIAN, false},
             [WG__FFT_HERMITIAN] = {&irfft, WG__FFT_REAL, true}};

/* Checks the operand, pairs or, for rfft, reals, and sets the shape of output 0. */
static int fft_infer(wg_call *call) {
    const fft_options *options = call->options;
    const bool pairs = options->kind != WG__FFT_REAL, to_pairs = options->kind != WG__FFT_HERMITIAN;
    const wg_spec *x = &call->input_specs[0];
    wg_spec shape = *x;
    if (wg__check_kernel_dtype(call) < 0)
        return -1;
    if (pairs && (x->ndim < 2 || x->shape[x->ndim - 1] != 2))
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted complex numbers as pairs (re, im) on the last axis: (..., 2)");
    if (options->n < 1)
        return wg__op_fail(call, WG_ERROR_ARGUMENT, "the size n is %lld; wanted 1 or more",
                           (long long)options->n);
    shape.ndim -= pairs;
    shape.shape[options->axis] = pairs ? options->n : options->n / 2 + 1;
    if (to_pairs && shape.ndim == WG_MAX_DIMS)
        return wg__op_fail(call, WG_ERROR_SHAPE, "there is no axis left for the pairs");
    if (to_pairs)
        shape.shape[shape.ndim++] = 2;
    return wg__spec_make(&call->output_specs[0], x->dtype, shape.ndim, shape.shape, call->op->name);
}

static double fft_flops(const wg_call *call) {
    const fft_options *options = call->options;
    const double n = (double)options->n;
    const wg_spec *x = &call->input_specs[0];
    const double lines = (double)wg__spec_count(x) / (double)wg__larger(1, x->shape[options->axis]);
    return 2.5 * lines * n * log2(n + 1);
}

/* Multiplies x (..., n/2 + 1, ..., 2) by `factor`, except at frequency 0 and, for even n, n/2. */
static wg_tensor *weighted(wg_tensor *x, int axis, int64_t n, double factor) {
    if (x == NULL)
        return NULL;
    /* Both numbers of a pair have a weight: if the pairs follow the axis, one loop multiplies a
     * line. */
    int64_t shape[WG_MAX_DIMS], size = 2 * x->spec.shape[axis];
    for (int i = 0; i < x->spec.ndim; i++)
        shape[i] = i == axis ? x->spec.shape[axis] : 1;
    shape[x->spec.ndim - 1] = 2;
    wg_tensor *weights = wg_full(WG_F64, 1, &size, factor);
    if (weights == NULL)
        return NULL;
    double *weight = wg__tensor_address(weights);
    weight[0] = weight[1] = 1;
    if (n % 2 == 0)
        weight[n] = weight[n + 1] = 1;
    return wg_mul(x, wg_reshape(wg_cast(weights, x->spec.dtype), x->spec.ndim, shape));
}

/* The gradient of the operand, cut or padded to the size of the operand:
 *
 *     fft      the inverse of g, with the same scale
 *     rfft     dx_j = scale Re sum_k g_k e^(2 pi i j k / n): irfft of g, with g halved at the k
 *              that irfft counts twice
 *     irfft    rfft of g, doubled at the frequencies that irfft counts twice */
static int fft_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    fft_options options = *(const fft_options *)call->options;
    const wg__fft_kind kind = options.kind;
    const int axis = options.axis;
    const int64_t size = call->input_specs[0].shape[axis];
    wg_tensor *g = cotangents[0];
    if (kind == WG__FFT_REAL)
        g = weighted(g, axis, options.n, 0.5);
    options.kind = kinds[kind].adjoint;
    g = wg_apply_one(kinds[options.kind].op, 1, &g, &options);
    if (kind == WG__FFT_HERMITIAN)
        g = weighted(g, axis, options.n, 2);

    if (g && g->spec.shape[axis] > size) {
        g = wg_narrow(g, axis, 0, size);
    } else if (g && g->spec.shape[axis] < size) {
        wg_spec zeros = g->spec;
        zeros.shape[axis] = size - g->spec.shape[axis];
        g = wg_cat(2, (wg_tensor *[]){g, wg_zeros(zeros.dtype, zeros.ndim, zeros.shape)}, axis);
    }
    gradients[0] = g;
    return wg__vjp_status();
}

WG__EXAMPLES(fft, fft_options, (wg__sample_normal), {{0, 4, 1, WG__FFT_FORWARD}, "4 2"},
             {{0, 4, 0.25, WG__FFT_INVERSE}, "4 2"}, {{1, 5, 0.5, WG__FFT_FORWARD}, "2 3 2 2"},
             {{1, 5, 0.5, WG__FFT_INVERSE}, "2 3 2 2"}, {{0, 3, 1, WG__FFT_FORWARD}, "5 2 2"},
             {{0, 3, 1, WG__FFT_INVERSE}, "5 2 2"}, {{1, 6, 1, WG__FFT_FORWARD}, "2 4 2"},
             {{1, 6, 2, WG__FFT_INVERSE}, "2 4 2"}, {{0, 37, 1, WG__FFT_FORWARD}, "37 2"},
             {{0, 37, 1, WG__FFT_INVERSE}, "37 2"}, {{0, 1, 1, WG__FFT_FORWARD}, "1 2"},
             {{0, 1, 1, WG__FFT_INVERSE}, "1 2"})
WG__EXAMPLES(rfft, fft_options, (wg__sample_normal), {{0, 4, 1, WG__FFT_REAL}, "4"},
             {{1, 5, 0.5, WG__FFT_REAL}, "2 3 2"}, {{0, 3, 1, WG__FFT_REAL}, "5 2"},
             {{1, 6, 1, WG__FFT_REAL}, "2 4"}, {{0, 37, 1, WG__FFT_REAL}, "37"},
             {{0, 1, 1, WG__FFT_REAL}, "1"})
WG__EXAMPLES(irfft, fft_options, (wg__sample_normal), {{0, 4, 1, WG__FFT_HERMITIAN}, "4 2"},
             {{1, 5, 0.5, WG__FFT_HERMITIAN}, "2 3 2 2"}, {{0, 3, 1, WG__FFT_HERMITIAN}, "5 2 2"},
             {{1, 6, 1, WG__FFT_HERMITIAN}, "2 4 2"}, {{0, 37, 1, WG__FFT_HERMITIAN}, "37 2"},
             {{0, 1, 1, WG__FFT_HERMITIAN}, "1 2"})
WG__LARGE(fft, fft_options, "2048 1024 2", 1, 1024, 1, WG__FFT_FORWARD)
WG__LARGE(rfft, fft_options, "4096 1024", 1, 1024, 1, WG__FFT_REAL)
WG__LARGE(irfft, fft_options, "4096 513 2", 1, 1024, 1, WG__FFT_HERMITIAN)

#define FFT(NAME, DOC)                                                                             \
    {                                                                                              \
        WG__OP(#NAME, 1, DOC), .options_size = sizeof(fft_options), .differentiable = 1,           \
                               .infer = fft_infer, .forward = fft_forward, .vjp = fft_vjp,         \
                               .jvp = wg_jvp_linear, .sample = NAME##_sample,                      \
                               .bench = NAME##_bench, .flops = fft_flops, .batch = wg__batch_axis  \
    }

static const wg_op fft =
    FFT(fft,
        "y_k = scale sum_j x_j e^(-2 pi i j k / n) along an axis, or with e^(2 pi i j k / n), of n "
        "complex numbers, the pairs on the last axis: (..., 2) -> (..., 2).");
static const wg_op rfft =
    FFT(rfft, "y_k = scale sum_j x_j e^(-2 pi i j k / n) for k = 0 to n/2 along an axis, of n real "
              "numbers: (...) -> (..., 2), pairs on a new last axis.");
/* irfft ignores the imaginary parts of x_0 and x_(n/2). */
static const wg_op irfft = FFT(
    irfft, "The real numbers of which x is the first half of the spectrum: y_j = scale (x_0 + 2 "
           "sum_k Re x_k e^(2 pi i j k / n) + ...), (..., 2) -> (...).");

/* Transforms axis by axis, from the last axis to the first; irfft from the first to the last. Only
 * the last axis is real. A size of 0 means the size of x; for irfft, 2 (size - 1). */
static wg_tensor *transform_axes(wg__fft_kind kind, const char *name, wg_tensor *x, int count,
                                 const int64_t *axes, const int64_t *sizes, wg_fft_norm norm) {
    const bool inverse = kinds[kind].is_inverse;
    if (!x)
        return NULL;
    if (count < 1 || count > WG_MAX_DIMS)
        return wg__fail_null(WG_ERROR_ARGUMENT, name, "%d axes; there are 1 to %d", count,
                             WG_MAX_DIMS);
    if (norm < WG_FFT_BACKWARD || norm > WG_FFT_FORWARD)
        return wg__fail_null(WG_ERROR_ARGUMENT, name, "norm %d is none of wg_fft_norm", (int)norm);
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int k = 0; k < count && x; k++) {
        const int i = kind == WG__FFT_HERMITIAN ? k : count - 1 - k;
        const wg__fft_kind of_axis = i == count - 1 ? kind
                                     : inverse      ? WG__FFT_INVERSE
                                                    : WG__FFT_FORWARD;
        const bool pairs = of_axis != WG__FFT_REAL;
        const int axis = wg__axis(axes[i], wg__larger(0, x->spec.ndim - pairs), name);
        if (axis < 0) {
            x = NULL;
            break;
        }
        int64_t n = sizes ? sizes[i] : 0;
        if (n == 0)
            n = of_axis == WG__FFT_HERMITIAN ? 2 * (x->spec.shape[axis] - 1) : x->spec.shape[axis];
        const double scale = norm == WG_FFT_ORTHO                   ? 1 / sqrt((double)n)
                             : (norm == WG_FFT_BACKWARD) == inverse ? 1 / (double)n
                                                                    : 1;
        x = wg__apply_wide_one(kinds[of_axis].op, 1, &x, true,
                               &(fft_options){axis, n, scale, of_axis});
    }
    return wg_scope_end(&scope, x);
}

#define TRANSFORM(NAME, KIND)                                                                      \
    wg_tensor *wg_##NAME(wg_tensor *x, int axis_count, const int64_t *axes, const int64_t *sizes,  \
                         wg_fft_norm norm) {                                                       \
        return transform_axes(KIND, #NAME, x, axis_count, axes, sizes, norm);                      \
    }

TRANSFORM(fft, WG__FFT_FORWARD)
TRANSFORM(ifft, WG__FFT_INVERSE)
TRANSFORM(rfft, WG__FFT_REAL)
TRANSFORM(irfft, WG__FFT_HERMITIAN)

/* ---- Convolution by FFT: Y = sum_c X_c conj(W_c) at each frequency ---- */

wg_tensor *wg_fft_conv1d(wg_tensor *x, wg_tensor *weight, wg_tensor *bias, int64_t padding) {
    static const char where[] = "fft_conv1d";
    char a[128], b[128];
    if (x == NULL || weight == NULL || (bias == NULL && wg_error_pending() != NULL))
        return NULL;
    wg_spec_text(a, sizeof a, &x->spec);
    wg_spec_text(b, sizeof b, &weight->spec);
    if (padding < 0 || padding > INT32_MAX)
        return wg__fail_null(WG_ERROR_ARGUMENT, where, "the padding is %lld; wanted 0 to %d",
                             (long long)padding, INT32_MAX);
    if (x->spec.ndim != 3 || weight->spec.ndim != 3 || x->spec.shape[1] != weight->spec.shape[1] ||
        (bias && (bias->spec.ndim != 1 || bias->spec.shape[0] != weight->spec.shape[0])))
        return wg__fail_null(
            WG_ERROR_SHAPE, where,
            "x is %s and the weight %s; wanted (N, C, L) and (O, C, K), and a bias (O)", a, b);
    if (weight->spec.shape[2] < 1 || x->spec.shape[2] + 2 * padding < weight->spec.shape[2])
        return wg__fail_null(
            WG_ERROR_SHAPE, where,
            "x is %s and the weight %s; wanted a kernel no longer than the padded x", a, b);
    wg_scope scope;
    wg_scope_begin(&scope);
    const int64_t length = x->spec.shape[2] + 2 * padding, kernel = weight->spec.shape[2];
    const int64_t n = smooth_size(length + length % 2);
    if (padding > 0)
        x = wg_pad(x, 1, (int64_t[]){padding, padding}, WG_PAD_CONSTANT, 0);
    const int64_t last = -1;

    /* Spectra x (N, C, F, 2) and w (O, C, F, 2) give y (N, O, F, 2). */
    static const char sum[] = "ncf,ocf->nof";
    wg_tensor *w = wg_rfft(weight, 1, &last, &n, WG_FFT_BACKWARD);
    x = wg_rfft(x, 1, &last, &n, WG_FFT_BACKWARD);
    wg_tensor *xr = wg_select(x, -1, 0), *xi = wg_select(x, -1, 1);
    wg_tensor *wr = wg_select(w, -1, 0), *wi = wg_select(w, -1, 1);
    wg_tensor *re = wg_add(wg_einsum(sum, 2, (wg_tensor *[]){xr, wr}),
                           wg_einsum(sum, 2, (wg_tensor *[]){xi, wi}));
    wg_tensor *im = wg_sub(wg_einsum(sum, 2, (wg_tensor *[]){xi, wr}),
                           wg_einsum(sum, 2, (wg_tensor *[]){xr, wi}));
    wg_tensor *y = wg_stack(2, (wg_tensor *[]){re, im}, -1);
    y = wg_narrow(wg_irfft(y, 1, &last, &n, WG_FFT_BACKWARD), -1, 0, length - kernel + 1);
    if (bias != NULL)
        y = wg_add(y, wg_unsqueeze(bias, 1));
    return wg_scope_end(&scope, y);
}

const wg__op_table wg__ops_fft = WG__OP_TABLE(&fft, &rfft, &irfft);
