/* Random numbers and tensors of them, from Philox4x32-10. Draw `offset` of seed `seed` is the
 * sequence of blocks
 *
 *     philox(counter = (block, offset), key = seed) = four words,   block = 0, 1, 2...
 *
 * Each distribution below says which words element i of the draw uses. */
#include "tensor/random.h"

#include <Random123/philox.h>
#include <math.h>
#include <string.h>

#include "tensor/internal.h"
#include "tensor/simd/simd.h"

#define TWO_PI 6.283185307179586476925286766559

static _Thread_local wg_generator default_generator;

wg_generator *wg_default_generator(void) {
    return &default_generator;
}

void wg_manual_seed(uint64_t seed) {
    default_generator = (wg_generator){.seed = seed};
}

static philox4x32_ctr_t block_of(uint64_t seed, uint64_t offset, uint64_t block) {
    philox4x32_ctr_t counter = {
        {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)offset, (uint32_t)(offset >> 32)}};
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    return philox4x32(counter, key);
}

uint32_t wg__random_bits(uint64_t seed, uint64_t offset, uint64_t index) {
    return block_of(seed, offset, index / 4).v[index % 4];
}

/* 53 bits in [0, 1). */
static double uniform(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

/* Two independent standard normals; 1 - u is in (0, 1], where the logarithm is finite. */
static void normal_pair(philox4x32_ctr_t words, double *pair) {
    double radius = sqrt(-2 * log(1 - uniform(words.v[0], words.v[1])));
    double angle = TWO_PI * uniform(words.v[2], words.v[3]);
    pair[0] = radius * cos(angle);
    pair[1] = radius * sin(angle);
}

/* The generator's next draw, which it consumes; NULL is the default generator. */
static wg_generator next_draw(wg_generator *generator) {
    wg_generator *from = generator ? generator : &default_generator;
    wg_generator draw = *from;
    from->offset++;
    return draw;
}

/* Number `index` of a draw: uniform in [0, 1) with 53 bits. */
static double draw_uniform(wg_generator draw, uint64_t index) {
    philox4x32_ctr_t words = block_of(draw.seed, draw.offset, index / 2);
    return uniform(words.v[index % 2 * 2], words.v[index % 2 * 2 + 1]);
}

double wg_random_uniform(wg_generator *generator) {
    return draw_uniform(next_draw(generator), 0);
}

/* Rejection sampling: draws 64-bit words until one is below the largest multiple of the bound. */
static uint64_t below(wg_generator draw, uint64_t block, uint64_t bound) {
    uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
    for (;; block += (uint64_t)1 << 48) {
        philox4x32_ctr_t words = block_of(draw.seed, draw.offset, block);
        for (int i = 0; i < 4; i += 2) {
            uint64_t value = (uint64_t)words.v[i] << 32 | words.v[i + 1];
            if (value < limit)
                return value % bound;
        }
    }
}

uint64_t wg_random_below(wg_generator *generator, uint64_t bound) {
    return below(next_draw(generator), 0, bound);
}

double wg_random_normal(wg_generator *generator) {
    wg_generator draw = next_draw(generator);
    double pair[2];
    normal_pair(block_of(draw.seed, draw.offset, 0), pair);
    return pair[0];
}

typedef struct fill {
    wg_generator draw;
    wg_dtype dtype;
    void *data;
    int64_t count;
    int64_t low;
    uint64_t bound;
    double mean, std;
    double low_limit, high_limit; /* of the truncated normal */
    bool is_normal, is_bernoulli; /* for fill_pairs */
} fill;

/* A group is 16 blocks, so 32 elements; a vector kernel makes the words of some groups at a time.
 */
enum { GROUP = 16, GROUPS_AT_ONCE = 16, BLOCKS_AT_ONCE = GROUP * GROUPS_AT_ONCE };

/* Sets u and v to the two numbers of each block of some groups. */
static void uniform_pairs(wg_generator draw, int64_t group, int64_t groups, double *u, double *v) {
    uint32_t words[GROUPS_AT_ONCE * WG__RANDOM_GROUP];
    wg__simd_for(WG_F32)->random.words(draw.seed, draw.offset, (uint64_t)group, groups, words);
    for (int64_t block = 0; block < groups * GROUP; block++) {
        const uint32_t *word = words + block / GROUP * WG__RANDOM_GROUP + block % GROUP;
        u[block] = uniform(word[0], word[GROUP]);
        v[block] = uniform(word[2 * GROUP], word[3 * GROUP]);
    }
}

static void store(const fill *job, int64_t i, double x) {
    if (job->dtype == WG_F64)
        ((double *)job->data)[i] = x;
    else
        ((float *)job->data)[i] = (float)x;
}

/* Element i becomes number i of the draw, uniform with 53 bits or normal, scaled by std and mean.
 * If job->is_bernoulli, element i is a probability and becomes 1 if the uniform number is below it,
 * else 0. */
static void fill_pairs(int64_t begin, int64_t end, void *context) {
    const fill *job = context;
    const bool is_bernoulli = job->is_bernoulli;
    double u[BLOCKS_AT_ONCE], v[BLOCKS_AT_ONCE];
    for (int64_t group = begin; group < end; group += GROUPS_AT_ONCE) {
        const int64_t groups = wg__smaller(end - group, GROUPS_AT_ONCE);
        const int64_t first = group * 2 * GROUP;
        const int64_t n = wg__smaller(job->count - first, groups * 2 * GROUP);
        uniform_pairs(job->draw, group, groups, u, v);
        if (job->is_normal)
            wg__simd_for(WG_F64)->random.normal_pairs(groups * GROUP, u, v);
        for (int64_t i = 0; i < n; i++) {
            const double x = (i % 2 ? v : u)[i / 2];
            store(job, first + i,
                  is_bernoulli ? x < ((double *)job->data)[first + i] : job->mean + job->std * x);
        }
    }
}

/* An f64 element uses words 2 i and 2 i + 1; an f32 element the upper 24 bits of word 2 i. */
static void fill_uniform(int64_t begin, int64_t end, void *context) {
    const fill *job = context;
    uint32_t words[GROUPS_AT_ONCE * WG__RANDOM_GROUP];
    if (job->dtype == WG_F64) {
        fill_pairs(begin, end, context);
        return;
    }
    for (int64_t group = begin; group < end; group += GROUPS_AT_ONCE) {
        const int64_t groups = wg__smaller(end - group, GROUPS_AT_ONCE);
        const int64_t first = group * 2 * GROUP;
        const int64_t n = wg__smaller(job->count - first, groups * 2 * GROUP);
        float *x = (float *)job->data + first;
        wg__simd_for(WG_F32)->random.words(job->draw.seed, job->draw.offset, (uint64_t)group,
                                           groups, words);
        for (int64_t begun = 0; begun < n; begun += 2 * GROUP) {
            const uint32_t *of = words + begun / (2 * GROUP) * WG__RANDOM_GROUP;
            float row[2 * GROUP];
            for (int i = 0; i < GROUP; i++) {
                row[2 * i] = (float)(int32_t)(of[i] >> 8) * 0x1p-24f;
                row[2 * i + 1] = (float)(int32_t)(of[2 * GROUP + i] >> 8) * 0x1p-24f;
            }
            memcpy(x + begun, row, (size_t)wg__smaller(n - begun, 2 * GROUP) * sizeof *row);
        }
    }
}

/* ---- The truncated normal, by rejection sampling   (Robert 1995, "Simulation of truncated normal
 * variables"). At worst about every second proposal is accepted. Element i uses block i of the
 * draw, and for try t block i + 2^48 t, which no other element uses. ---- */

/* Proposes x from a density proportional to e^(-x^2/2) on [from, to], 0 <= from; true if x is
 * accepted. u and v are uniform in [0, 1). */
static bool propose_in_tail(double from, double to, double u, double v, double *x) {
    double root = sqrt(from * from + 4), rate = (from + root) / 2, beyond = 2 / (from + root);
    double step;
    if ((to - from) * rate < 1) {
        step = (to - from) * u;
        *x = from + step;
        return v <= exp(-step * (*x + from) / 2);
    }
    step = -log1p(-u) / rate; /* exponential; this rate has the fewest rejections */
    *x = from + step;
    return *x <= to && v <= exp(-(step - beyond) * (step - beyond) / 2);
}

/* A number of the interval, to >= 0. */
static double truncated(wg_generator draw, uint64_t element, double from, double to) {
    if (from > 1e8) /* nearly all of the density is within a rounding error of `from` */
        return from;
    for (uint64_t block = element;; block += (uint64_t)1 << 48) {
        philox4x32_ctr_t words = block_of(draw.seed, draw.offset, block);
        const double u = uniform(words.v[0], words.v[1]), v = uniform(words.v[2], words.v[3]);
        double x = from + (to - from) * u, pair[2];
        bool is_accepted;
        if (from > 0) {
            is_accepted = propose_in_tail(from, to, u, v, &x);
        } else if (to - from < sqrt(TWO_PI)) {
            is_accepted = v <= exp(-x * x / 2);
        } else {
            normal_pair(words, pair);
            x = pair[0] >= from && pair[0] <= to ? pair[0] : pair[1];
            is_accepted = x >= from && x <= to;
        }
        if (is_accepted)
            return x;
    }
}

static void fill_truncated(int64_t begin, int64_t end, void *context) {
    const fill *job = context;
    double from = (job->low_limit - job->mean) / job->std;
    double to = (job->high_limit - job->mean) / job->std;
    const double sign = to < 0 ? -1 : 1; /* an interval below 0 is mirrored */
    const double low = to < 0 ? -to : from, high = to < 0 ? -from : to;
    for (int64_t i = begin; i < end; i++) {
        double x = job->mean + job->std * (sign * truncated(job->draw, (uint64_t)i, low, high));
        store(job, i, fmin(fmax(x, job->low_limit), job->high_limit));
    }
}

/* ---- The gamma distribution, by rejection sampling   (Marsaglia and Tsang 2000). Element i uses
 * blocks 2 i and 2 i + 1 of the draw, and for try t blocks 2 i + 2^48 t and 2 i + 1 + 2^48 t, which
 * no other element uses. At worst about every twentieth proposal is rejected. ---- */

/* Returns whether the proposal z is accepted; sets *cube to x / d. The first condition implies the
 * second, so most proposals need no logarithm. */
static bool accept_gamma(double d, double c, double z, double u, double *cube) {
    const double root = 1 + c * z, square = z * z;
    *cube = root * root * root;
    if (root <= 0)
        return false;
    return u < 1 - 0.0331 * square * square || log(u) < square / 2 + d * (1 - *cube + log(*cube));
}

void wg__random_gammas(uint64_t seed, uint64_t offset, int64_t first, int64_t n,
                       const double *concentration, double *x) {
    const wg_generator draw = {.seed = seed, .offset = offset};
    double u[BLOCKS_AT_ONCE], v[BLOCKS_AT_ONCE], normal[WG__GAMMAS_AT_ONCE],
        turn[WG__GAMMAS_AT_ONCE];
    uniform_pairs(draw, first / (GROUP / 2), GROUPS_AT_ONCE, u, v);
    for (int64_t i = 0; i < WG__GAMMAS_AT_ONCE; i++) {
        normal[i] = u[2 * i];
        turn[i] = v[2 * i];
    }
    wg__simd_for(WG_F64)->random.normal_pairs(WG__GAMMAS_AT_ONCE, normal, turn);
    for (int64_t i = 0; i < n; i++) {
        if (!(concentration[i] > 0)) {
            x[i] = NAN;
            continue;
        }
        /* For a below 1: u^(1 / a) times a sample of concentration a + 1. */
        const double a = concentration[i] < 1 ? concentration[i] + 1 : concentration[i];
        const double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
        double cube, power = 1 - v[2 * i + 1], pair[2];
        bool is_accepted = accept_gamma(d, c, normal[i], 1 - u[2 * i + 1], &cube);
        for (uint64_t block = 2 * (uint64_t)(first + i); !is_accepted;) {
            block += (uint64_t)1 << 48;
            const philox4x32_ctr_t words = block_of(seed, offset, block + 1);
            normal_pair(block_of(seed, offset, block), pair);
            power = 1 - uniform(words.v[2], words.v[3]);
            is_accepted = accept_gamma(d, c, pair[0], 1 - uniform(words.v[0], words.v[1]), &cube);
        }
        x[i] = d * cube;
        if (a != concentration[i])
            x[i] *= pow(power, 1 / concentration[i]);
    }
}

static void fill_integers(int64_t begin, int64_t end, void *context) {
    const fill *job = context;
    for (int64_t i = begin; i < end; i++)
        ((int64_t *)job->data)[i] =
            (int64_t)((uint64_t)job->low + below(job->draw, (uint64_t)i, job->bound));
}

static bool check_floating(wg_dtype dtype, const char *where) {
    if (wg_dtype_is_float(dtype))
        return true;
    wg_fail(WG_ERROR_DTYPE, where, "%s; wanted a floating dtype", wg_dtype_name(dtype));
    return false;
}

/* Makes a floating tensor that `body` fills. `how` has the parameters of the distribution; draw,
 * dtype, data and count are set here. bf16 is drawn in f32. */
static wg_tensor *random_float(wg_generator *generator, wg_dtype dtype, int ndim,
                               const int64_t *shape, const char *where, wg__range_body body,
                               int64_t elements_a_block, const fill *how) {
    if (!check_floating(dtype, where))
        return NULL;
    if (dtype == WG_BF16) {
        wg_tensor *wide =
            random_float(generator, WG_F32, ndim, shape, where, body, elements_a_block, how);
        wg_tensor *narrow = wide ? wg_empty(WG_BF16, ndim, shape) : NULL;
        return wg_copy_(narrow, wide) < 0 ? NULL : narrow;
    }
    wg_tensor *x = wg_empty(dtype, ndim, shape);
    if (!x)
        return NULL;
    fill job = *how;
    job.draw = next_draw(generator);
    job.dtype = dtype;
    job.data = wg_tensor_data(x);
    job.count = wg_tensor_count(x);
    wg__parallel_for((job.count + elements_a_block - 1) / elements_a_block,
                     1 + WG__GRAIN / 8 / elements_a_block, body, &job);
    return x;
}

wg_tensor *wg_rand(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape) {
    return random_float(generator, dtype, ndim, shape, "rand", fill_uniform, 2 * GROUP,
                        &(fill){.mean = 0, .std = 1});
}

wg_tensor *wg_randn(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape) {
    return random_float(generator, dtype, ndim, shape, "randn", fill_pairs, 2 * GROUP,
                        &(fill){.mean = 0, .std = 1, .is_normal = true});
}

wg_tensor *wg_rand_like(wg_generator *generator, const wg_tensor *x) {
    return x ? wg_rand(generator, x->spec.dtype, x->spec.ndim, x->spec.shape) : NULL;
}

wg_tensor *wg_randn_like(wg_generator *generator, const wg_tensor *x) {
    return x ? wg_randn(generator, x->spec.dtype, x->spec.ndim, x->spec.shape) : NULL;
}

wg_tensor *wg_normal(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape,
                     double mean, double std) {
    if (!isfinite(mean) || !(std >= 0) || isinf(std))
        return wg__fail_null(
            WG_ERROR_ARGUMENT, "normal",
            "mean %g, standard deviation %g; wanted finite numbers and a deviation of at least 0",
            mean, std);
    return random_float(generator, dtype, ndim, shape, "normal", fill_pairs, 2 * GROUP,
                        &(fill){.mean = mean, .std = std, .is_normal = true});
}

wg_tensor *wg_trunc_normal(wg_generator *generator, wg_dtype dtype, int ndim, const int64_t *shape,
                           double mean, double std, double low, double high) {
    if (!isfinite(mean) || !(std > 0) || isinf(std) || !(low < high))
        return wg__fail_null(
            WG_ERROR_ARGUMENT, "trunc_normal",
            "mean %g, standard deviation %g, limits [%g, %g]; wanted a finite mean, a finite "
            "deviation above 0, and low < high",
            mean, std, low, high);
    return random_float(generator, dtype, ndim, shape, "trunc_normal", fill_truncated, 1,
                        &(fill){.mean = mean, .std = std, .low_limit = low, .high_limit = high});
}

wg_tensor *wg_randint(wg_generator *generator, int64_t low, int64_t high, int ndim,
                      const int64_t *shape) {
    if (low >= high)
        return wg__fail_null(WG_ERROR_ARGUMENT, "randint",
                             "[%lld, %lld) is empty; wanted low < high", (long long)low,
                             (long long)high);
    wg_tensor *x = wg_empty(WG_I64, ndim, shape);
    if (!x)
        return NULL;
    fill job = {.draw = next_draw(generator),
                .data = wg_tensor_data(x),
                .low = low,
                .bound = (uint64_t)high - (uint64_t)low};
    wg__parallel_for(wg_tensor_count(x), WG__GRAIN / 8, fill_integers, &job);
    return x;
}

/* Fisher and Yates: element i is exchanged with an element from 0 to i, given by the first two
 * words of block i as in below(); below() computes the rare rejections. The elements of a stretch
 * are prefetched before they are exchanged. */
wg_tensor *wg_randperm(wg_generator *generator, int64_t n) {
    if (n < 0)
        return wg__fail_null(WG_ERROR_ARGUMENT, "randperm", "n is %lld; wanted at least 0",
                             (long long)n);
    wg_tensor *x = wg_arange(WG_I64, 0, (double)n, 1);
    if (!x)
        return NULL;
    int64_t *order = wg_tensor_data(x);
    const wg_generator draw = next_draw(generator);
    uint32_t words[GROUPS_AT_ONCE * WG__RANDOM_GROUP];
    int64_t with[BLOCKS_AT_ONCE];
    for (int64_t end = n; end > 1;) {
        const int64_t begin = (end - 1) / BLOCKS_AT_ONCE * BLOCKS_AT_ONCE;
        wg__simd_for(WG_F32)->random.words(draw.seed, draw.offset, (uint64_t)(begin / GROUP),
                                           wg__ceil_divide(end - begin, GROUP), words);
        for (int64_t i = end - 1; i >= begin && i > 0; i--) {
            const int64_t at = i - begin;
            const uint32_t *block = words + at / GROUP * WG__RANDOM_GROUP + at % GROUP;
            const uint64_t bound = (uint64_t)i + 1, value = (uint64_t)block[0] << 32 | block[GROUP];
            with[at] = (int64_t)(value < UINT64_MAX - bound ? value % bound
                                                            : below(draw, (uint64_t)i, bound));
            __builtin_prefetch(&order[with[i - begin]], 1);
        }
        for (int64_t i = end - 1; i >= begin && i > 0; i--) {
            const int64_t held = order[i];
            order[i] = order[with[i - begin]];
            order[with[i - begin]] = held;
        }
        end = begin;
    }
    return x;
}

/* ---- Distributions given by a tensor ---- */

/* A contiguous f64 copy of x, not recorded. */
static wg_tensor *as_f64(const wg_tensor *x) {
    wg_tensor *wide = wg_empty(WG_F64, x->spec.ndim, x->spec.shape);
    if (wide)
        wg__convert(wide, x);
    return wide;
}

wg_tensor *wg_bernoulli(wg_generator *generator, const wg_tensor *p) {
    if (!p || wg__check_memory(p, "bernoulli") < 0 || !check_floating(p->spec.dtype, "bernoulli"))
        return NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *outcome = as_f64(p);
    const double *values = outcome ? wg_tensor_data(outcome) : NULL;
    for (int64_t i = 0; outcome && i < wg_tensor_count(outcome); i++)
        if (!(values[i] >= 0 && values[i] <= 1))
            return wg_scope_end(&scope, wg__fail_null(WG_ERROR_ARGUMENT, "bernoulli",
                                                      "element %lld is %g; wanted 0 <= p <= 1",
                                                      (long long)i, values[i]));
    wg_tensor *x = outcome ? wg_empty_like(p) : NULL;
    if (x) {
        fill job = {.draw = next_draw(generator),
                    .dtype = WG_F64,
                    .data = wg_tensor_data(outcome),
                    .count = wg_tensor_count(outcome),
                    .is_bernoulli = true};
        wg__parallel_for((job.count + 2 * GROUP - 1) / (2 * GROUP), WG__GRAIN / 8 / GROUP,
                         fill_pairs, &job);
        wg__convert(x, outcome);
    }
    return wg_scope_end(&scope, x);
}

typedef struct urns {
    wg_generator draw;
    double *weights; /* (rows, categories); overwritten */
    int64_t *chosen; /* (rows, samples) */
    int64_t categories, samples;
} urns;

static void choose_with_replacement(int64_t begin, int64_t end, void *context) {
    const urns *job = context;
    for (int64_t row = begin; row < end; row++) {
        double *ends = job->weights + row * job->categories;
        int64_t last = 0, first = row * job->samples;
        for (int64_t i = 0; i < job->categories; i++) {
            last = ends[i] > 0 ? i : last;
            ends[i] += i > 0 ? ends[i - 1] : 0;
        }
        for (int64_t s = first; s < first + job->samples; s++) {
            double place = draw_uniform(job->draw, (uint64_t)s) * ends[last];
            /* The first category whose cumulative weight is above `place`. It never has weight 0,
             * as its interval would be empty. */
            int64_t low = 0, high = last;
            while (low < high) {
                int64_t middle = low + (high - low) / 2;
                if (ends[middle] > place)
                    high = middle;
                else
                    low = middle + 1;
            }
            job->chosen[s] = low;
        }
    }
}

/* Without replacement (Efraimidis & Spirakis 2006): category i arrives after an exponential time of
 * rate weight[i], and the first `samples` arrivals are the sample, in their order. This has the
 * same distribution as drawing categories one by one without putting them back. */

static bool comes_later(const double *times, int64_t a, int64_t b) {
    /* cppcheck-suppress arrayIndexThenCheck ; both are indices, a is the larger one */
    return times[a] > times[b] || (times[a] == times[b] && a > b);
}

/* Moves heap[at] down to its place in a heap whose root arrives last. */
static void sink(const double *times, int64_t *heap, int64_t count, int64_t at) {
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && comes_later(times, heap[child + 1], heap[child]))
            child++;
        if (!comes_later(times, heap[child], heap[at]))
            return;
        int64_t held = heap[at];
        heap[at] = heap[child];
        heap[child] = held;
        at = child;
    }
}

static void choose_without_replacement(int64_t begin, int64_t end, void *context) {
    const urns *job = context;
    const int64_t samples = job->samples;
    for (int64_t row = begin; row < end; row++) {
        double *times = job->weights + row * job->categories;
        int64_t *chosen = job->chosen + row * samples, count = 0;
        const uint64_t first = (uint64_t)row * (uint64_t)job->categories;
        for (int64_t i = 0; i < job->categories; i++) {
            const double u = draw_uniform(job->draw, first + (uint64_t)i);
            if (!(times[i] > 0)) /* a category of weight 0 never arrives */
                continue;
            times[i] = -log1p(-u) / times[i];
            if (count < samples) {
                chosen[count++] = i;
                for (int64_t at = samples / 2 - 1; count == samples && at >= 0; at--)
                    sink(times, chosen, samples, at);
            } else if (comes_later(times, chosen[0], i)) {
                chosen[0] = i;
                sink(times, chosen, samples, 0);
            }
        }
        for (int64_t left = samples - 1; left > 0; left--) {
            const int64_t held = chosen[0];
            chosen[0] = chosen[left];
            chosen[left] = held;
            sink(times, chosen, left, 0);
        }
    }
}

static bool check_weights(const wg_tensor *weights, int64_t needed) {
    const double *values = wg_tensor_data(weights);
    const int64_t categories = wg_tensor_size(weights, -1);
    for (int64_t row = 0, rows = wg_tensor_count(weights) / categories; row < rows; row++) {
        const double *weight = values + row * categories;
        double total = 0;
        int64_t positive = 0;
        for (int64_t i = 0; i < categories; i++) {
            if (!(weight[i] >= 0 && weight[i] < INFINITY)) {
                wg_fail(WG_ERROR_ARGUMENT, "multinomial",
                        "weight %lld of row %lld is %g; wanted finite weights >= 0", (long long)i,
                        (long long)row, weight[i]);
                return false;
            }
            total += weight[i];
            positive += weight[i] > 0;
        }
        if (positive < needed || !isfinite(total)) {
            wg_fail(WG_ERROR_ARGUMENT, "multinomial",
                    "row %lld has %lld weights above 0, their sum is %g; wanted at least %lld "
                    "positive weights and a finite sum",
                    (long long)row, (long long)positive, total, (long long)needed);
            return false;
        }
    }
    return true;
}

wg_tensor *wg_multinomial(wg_generator *generator, const wg_tensor *weights, int64_t samples,
                          bool replacement) {
    if (!weights || wg__check_memory(weights, "multinomial") < 0 ||
        !check_floating(weights->spec.dtype, "multinomial"))
        return NULL;
    char text[160];
    if (weights->spec.ndim < 1 || wg_tensor_size(weights, -1) < 1)
        return wg__fail_null(WG_ERROR_SHAPE, "multinomial",
                             "%s has no categories; wanted (..., V), V > 0",
                             wg_spec_text(text, sizeof text, &weights->spec));
    if (samples < 1)
        return wg__fail_null(WG_ERROR_ARGUMENT, "multinomial", "%lld samples; wanted at least 1",
                             (long long)samples);
    wg_scope scope;
    wg_scope_begin(&scope);
    const int ndim = weights->spec.ndim;
    wg_spec to = weights->spec;
    to.shape[ndim - 1] = samples;
    wg_tensor *wide = as_f64(weights), *chosen = NULL;
    if (wide && check_weights(wide, replacement ? 1 : samples))
        chosen = wg_empty(WG_I64, ndim, to.shape);
    if (chosen) {
        urns job = {.draw = next_draw(generator),
                    .weights = wg_tensor_data(wide),
                    .chosen = wg_tensor_data(chosen),
                    .categories = weights->spec.shape[ndim - 1],
                    .samples = samples};
        const int64_t work = job.categories + (replacement ? samples : 0);
        wg__parallel_for(wg_tensor_count(weights) / job.categories, WG__GRAIN / 8 / work + 1,
                         replacement ? choose_with_replacement : choose_without_replacement, &job);
    }
    return wg_scope_end(&scope, chosen);
}
