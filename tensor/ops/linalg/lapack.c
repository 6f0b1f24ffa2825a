/* Calls of LAPACKE: see lapack.h. */
#include "tensor/ops/linalg/lapack.h"

#include <dlfcn.h>
#include <lapacke.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/simd/simd.h"

/* ---- The LAPACK library, chosen by the loader when the program starts ----
 *
 * Several threads call LAPACK at once only if the library is known to be thread-safe: the reference
 * LAPACK on BLIS or on the reference BLAS. Debian compiles LAPACK with -frecursive, so that its
 * routines share no variables (its .bss has 176 bytes), and BLIS locks its buffers.
 *
 * OpenBLAS without threads, as Debian builds it, computes wrong numbers if several threads call it;
 * its FAQ asks for USE_LOCKING=1. OpenBLAS with threads competes with our threads: batches of eigh
 * took more than ten times as long. Setting OpenBLAS to one thread, as its FAQ advises, would also
 * change it for NumPy in the same process. */

static wg__lapack_library library;

static bool find_file(void *symbol, char file[PATH_MAX]) {
    Dl_info found;
    return symbol && dladdr(symbol, &found) && realpath(found.dli_fname, file);
}

/* ATLAS has the same file names, in a folder named atlas. */
static bool is_known_file(const char *file, const char *name) {
    return strstr(file, name) && !strstr(file, "/atlas");
}

/* A multithreaded BLIS (OMP_NUM_THREADS or BLIS_NUM_THREADS above 1) does not count as known:
 * called by several threads at once, it took 5.6 s for a batch of svd instead of 0.02 s. */
static bool is_known_blas(void *handle) {
    char file[PATH_MAX];
    union {
        void *object;
        int64_t (*function)(void);
    } threads = {dlsym(handle, "bli_thread_get_num_threads")};
    return (!threads.object || threads.function() <= 1) &&
           find_file(dlsym(handle, "dgemm_"), file) &&
           (is_known_file(file, "/libblis.so.") || is_known_file(file, "/libblas.so."));
}

/* LAPACK calls the first dgemm_ in the program's library order. If another library, NumPy for
 * instance, has loaded LAPACK before us, LAPACK calls the first dgemm_ of LAPACK's dependencies.
 * This checks both. OpenBLAS is recognised by its function openblas_get_config, BLIS and the
 * reference BLAS by their file names. */
static void find_library(void) {
    static char name[256] = "unknown", file[PATH_MAX];
    union {
        void *object;
        char *(*function)(void);
    } config = {dlsym(RTLD_DEFAULT, "openblas_get_config")};
    const bool found = find_file(dlsym(RTLD_DEFAULT, "dpotrf_"), file);
    void *lapack = found ? dlopen(file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (lapack && !config.object)
        config.object = dlsym(lapack, "openblas_get_config");
    if (config.object)
        snprintf(name, sizeof name, "%s", config.function());
    else
        library.at_once = lapack && is_known_file(file, "/liblapack.so.") &&
                          is_known_blas(RTLD_DEFAULT) && is_known_blas(lapack);
    if (library.at_once)
        snprintf(name, sizeof name, "the reference LAPACK");
    if (lapack)
        dlclose(lapack);
    library.name = name;
    library.file = found ? file : "unknown";
}

const wg__lapack_library *wg__lapack_in_use(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_library);
    return &library;
}

static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;

static void begin_call(void) {
    if (!wg__lapack_in_use()->at_once)
        pthread_mutex_lock(&call_lock);
}

static lapack_int end_call(lapack_int info) {
    if (!library.at_once)
        pthread_mutex_unlock(&call_lock);
    return info;
}

/* LAPACK's routine for the dtype, in column-major order, by the _work functions of LAPACKE: they
 * allocate nothing and do not check for NaN. QUERY calls it without the lock, to ask for the size
 * of the working memory. */
#define QUERY(DTYPE, ROUTINE, ...)                                                                 \
    ((DTYPE) == WG_F32 ? LAPACKE_s##ROUTINE##_work(LAPACK_COL_MAJOR, __VA_ARGS__)                  \
                       : LAPACKE_d##ROUTINE##_work(LAPACK_COL_MAJOR, __VA_ARGS__))
#define LAPACK(...) (begin_call(), end_call(QUERY(__VA_ARGS__)))

typedef struct space {
    int64_t reals, integers; /* sizes */
    void *real;
    lapack_int *integer;
} space;

/* Processes one matrix; the arrays of `job` belong to that matrix. Returns LAPACK's INFO. */
typedef lapack_int (*routine)(const wg__lapack *job, const space *space);

/* An array from element `i` on; NULL for NULL. */
static void *at(const wg__lapack *job, void *array, int64_t i) {
    return array ? (char *)array + i * (int64_t)wg_dtype_size(job->dtype) : NULL;
}

/* LAPACK wants a leading dimension of at least 1. */
static lapack_int leading(int64_t rows) {
    return rows < 1 ? 1 : (lapack_int)rows;
}

/* The working memory that a routine asks for. LAPACK returns the size as a real number, which in
 * f32 may be rounded down. */
static int64_t answered(wg_dtype dtype, const double *answer) {
    if (dtype == WG_F64)
        return (int64_t)*answer + 1;
    float single;
    memcpy(&single, answer, sizeof single);
    return (int64_t)(nextafterf(single, INFINITY)) + 1;
}

enum { CHUNKS = 32 }; /* chunks of a batch, each with separate working memory */

typedef struct batch {
    const wg__lapack *job;
    routine routine;
    space space;   /* sizes for one chunk, addresses of the first chunk */
    int64_t chunk; /* matrices in a chunk */
    int64_t matrix[CHUNKS], info[CHUNKS];
} batch;

static void run_chunks(int64_t begin, int64_t end, void *context) {
    batch *batch = context;
    const wg__lapack *job = batch->job;
    const int64_t q = wg__smaller(job->m, job->n);
    const int64_t u_columns = job->full ? job->m : q, vt_rows = job->full ? job->n : q;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const space space = {
            batch->space.reals, batch->space.integers,
            at(job, batch->space.real, chunk * batch->space.reals),
            batch->space.integer ? batch->space.integer + chunk * batch->space.integers : NULL};
        const int64_t stop = wg__smaller((chunk + 1) * batch->chunk, job->count);
        for (int64_t matrix = chunk * batch->chunk; matrix < stop; matrix++) {
            wg__lapack one = *job;
            one.a = at(job, job->a, matrix * job->m * job->n);
            one.b = at(job, job->b, matrix * job->n * job->k);
            one.u = at(job, job->u, matrix * job->m * u_columns);
            one.s = at(job, job->s, matrix * q);
            one.vt = at(job, job->vt, matrix * vt_rows * job->n);
            one.pivots = job->pivots ? job->pivots + matrix * job->n : NULL;
            const lapack_int info = batch->routine(&one, &space);
            if (info != 0 && batch->info[chunk] == 0) {
                batch->info[chunk] = info;
                batch->matrix[chunk] = matrix;
            }
        }
    }
}

/* Up to this size our kernels are faster than LAPACK. */
enum { SMALL = 384 };

static lapack_int lu(const wg__lapack *job, const space *space) {
    const lapack_int n = (lapack_int)job->n;
    (void)space;
    if (n <= SMALL)
        return (lapack_int)wg__simd_for(job->dtype)->matrices.lu_factors(n, job->a, job->pivots);
    return LAPACK(job->dtype, getrf, n, n, job->a, leading(n), job->pivots);
}

static lapack_int solve(const wg__lapack *job, const space *space) {
    const lapack_int n = (lapack_int)job->n, k = (lapack_int)job->k;
    const lapack_int info = lu(job, space);
    if (info != 0)
        return info;
    if (n > SMALL)
        return LAPACK(job->dtype, getrs, 'N', n, k, job->a, leading(n), job->pivots, job->b,
                      leading(n));
    wg__simd_for(job->dtype)->matrices.lu_solve(n, k, job->a, job->pivots, job->b);
    return 0;
}

static lapack_int inverse(const wg__lapack *job, const space *space) {
    const lapack_int n = (lapack_int)job->n;
    const lapack_int info = lu(job, space);
    if (info != 0)
        return info;
    if (n == 0 || n > SMALL)
        return LAPACK(job->dtype, getri, n, job->a, leading(n), job->pivots, space->real,
                      (lapack_int)space->reals);
    const size_t size = (size_t)(job->n * job->n) * wg_dtype_size(job->dtype);
    memset(space->real, 0, size);
    for (int64_t i = 0; i < job->n; i++)
        wg__set_element(job->dtype, at(job, space->real, i * (job->n + 1)), 1);
    wg__simd_for(job->dtype)->matrices.lu_solve(n, n, job->a, job->pivots, space->real);
    memcpy(job->a, space->real, size);
    return 0;
}

static void ask_inverse(const wg__lapack *job, space *space) {
    const lapack_int n = (lapack_int)job->n;
    double answer = 0;
    space->reals = job->n * job->n + 1;
    if (n <= SMALL)
        return;
    QUERY(job->dtype, getri, n, job->a, leading(n), job->pivots, (void *)&answer, -1);
    space->reals = answered(job->dtype, &answer);
}

enum { TINY = 64 }; /* up to this size our kernel is faster than BLAS */

static lapack_int solve_triangular(const wg__lapack *job, const space *space) {
    const lapack_int n = (lapack_int)job->n, k = (lapack_int)job->k;
    (void)space;
    for (int64_t i = 0; i < job->n && !job->unit; i++)
        if (wg__element(job->dtype, at(job, job->a, i * (job->n + 1))) == 0)
            return (lapack_int)i + 1;
    if (n > TINY)
        return LAPACK(job->dtype, trtrs, job->upper ? 'U' : 'L', 'N', job->unit ? 'U' : 'N', n, k,
                      job->a, leading(n), job->b, leading(n));
    wg__simd_for(job->dtype)
        ->matrices.triangular_solve(n, k, job->upper, job->unit, job->a, job->b);
    return 0;
}

static lapack_int cholesky(const wg__lapack *job, const space *space) {
    const lapack_int n = (lapack_int)job->n;
    (void)space;
    const lapack_int info =
        n <= SMALL ? (lapack_int)wg__simd_for(job->dtype)->matrices.cholesky_factor(n, job->a)
                   : LAPACK(job->dtype, potrf, 'L', n, job->a, leading(n));
    for (int64_t j = 1; j < job->n; j++)
        memset(at(job, job->a, j * job->n), 0, (size_t)j * wg_dtype_size(job->dtype));
    return info;
}

/* ---- QR: geqrf computes R and, below it, reflections; orgqr multiplies the reflections to Q. The
 * working memory begins with the factors of the reflections. ---- */

static lapack_int qr(const wg__lapack *job, const space *space) {
    const lapack_int m = (lapack_int)job->m, n = (lapack_int)job->n;
    const lapack_int q = m < n ? m : n, columns = job->full ? m : q;
    void *rest = at(job, space->real, q);
    const lapack_int rest_count = (lapack_int)(space->reals - q);
    const lapack_int info =
        LAPACK(job->dtype, geqrf, m, n, job->a, leading(m), space->real, rest, rest_count);
    if (info != 0)
        return info;
    memcpy(job->u, job->a, (size_t)(job->m * q) * wg_dtype_size(job->dtype));
    return LAPACK(job->dtype, orgqr, m, columns, q, job->u, leading(m), space->real, rest,
                  rest_count);
}

static void ask_qr(const wg__lapack *job, space *space) {
    const lapack_int m = (lapack_int)job->m, n = (lapack_int)job->n;
    const lapack_int q = m < n ? m : n, columns = job->full ? m : q;
    double first = 0, second = 0;
    QUERY(job->dtype, geqrf, m, n, job->a, leading(m), NULL, (void *)&first, -1);
    QUERY(job->dtype, orgqr, m, columns, q, job->u, leading(m), NULL, (void *)&second, -1);
    space->reals = q + wg__larger(answered(job->dtype, &first), answered(job->dtype, &second));
}

static lapack_int eigh(const wg__lapack *job, const space *space) {
    const lapack_int n = (lapack_int)job->n;
    return LAPACK(job->dtype, syevd, 'V', 'L', n, job->a, leading(n), job->s, space->real,
                  (lapack_int)space->reals, space->integer, (lapack_int)space->integers);
}

static void ask_eigh(const wg__lapack *job, space *space) {
    const lapack_int n = (lapack_int)job->n;
    double answer = 0;
    lapack_int integers = 0;
    QUERY(job->dtype, syevd, 'V', 'L', n, job->a, leading(n), job->s, (void *)&answer, -1,
          &integers, -1);
    space->reals = answered(job->dtype, &answer);
    space->integers = integers < 1 ? 1 : integers;
}

/* Runs gesdd; without `space` only asks for the size of its working memory. */
static lapack_int run_svd(const wg__lapack *job, double *answer, const space *space) {
    const lapack_int m = (lapack_int)job->m, n = (lapack_int)job->n;
    const lapack_int rows = job->full || n < m ? n : m;
    const char vectors = !job->u ? 'N' : job->full ? 'A' : 'S';
    return space ? LAPACK(job->dtype, gesdd, vectors, m, n, job->a, leading(m), job->s, job->u,
                          leading(m), job->vt, leading(rows), space->real, (lapack_int)space->reals,
                          space->integer)
                 : QUERY(job->dtype, gesdd, vectors, m, n, job->a, leading(m), job->s, job->u,
                         leading(m), job->vt, leading(rows), (void *)answer, -1, NULL);
}

static lapack_int svd(const wg__lapack *job, const space *space) {
    return run_svd(job, NULL, space);
}

static void ask_svd(const wg__lapack *job, space *space) {
    double answer = 0;
    run_svd(job, &answer, NULL);
    space->reals = answered(job->dtype, &answer);
    space->integers = 8 * wg__smaller(job->m, job->n) + 1;
}

typedef struct driver {
    routine routine;
    void (*ask)(const wg__lapack *job, space *space); /* sets the sizes; NULL: no working memory */
    bool pivots;
} driver;

static const driver drivers[] = {[WG__LU] = {lu, NULL, true},
                                 [WG__SOLVE] = {solve, NULL, true},
                                 [WG__INVERSE] = {inverse, ask_inverse, true},
                                 [WG__TRIANGULAR] = {solve_triangular, NULL, false},
                                 [WG__CHOLESKY] = {cholesky, NULL, false},
                                 [WG__QR] = {qr, ask_qr, false},
                                 [WG__EIGH] = {eigh, ask_eigh, false},
                                 [WG__SVD] = {svd, ask_svd, false}};

int wg__lapack_run(wg__lapack *job, wg__lapack_routine routine, wg_tensor *a) {
    const driver *driver = &drivers[routine];
    batch batch = {.job = job, .routine = driver->routine};
    wg_tensor *pivots =
        driver->pivots ? wg_empty(WG_I32, 1, (int64_t[]){job->count * job->n}) : NULL;
    if (!a || (driver->pivots && !pivots))
        return -1;
    job->a = wg__tensor_address(a);
    job->pivots = pivots ? wg__tensor_address(pivots) : NULL;
    job->info = 0;
    if (driver->ask)
        driver->ask(job, &batch.space);
    if (job->count == 0)
        return 0;
    const int64_t reals = batch.space.reals, integers = batch.space.integers;
    batch.chunk = wg__ceil_divide(job->count, CHUNKS);
    const int64_t chunks = wg__ceil_divide(job->count, batch.chunk);
    const int64_t size = (int64_t)wg_dtype_size(job->dtype);
    if (reals > INT32_MAX || integers > INT32_MAX)
        return wg_fail(WG_ERROR_MEMORY, "lapack",
                       "a matrix of %lld x %lld needs more working memory than LAPACK can address",
                       (long long)job->m, (long long)job->n);
    batch.space.real = wg__alloc_array(wg__times(wg__times(chunks, reals), size) + 1, 1);
    batch.space.integer =
        integers ? wg__alloc_array(wg__times(chunks, integers), sizeof(lapack_int)) : NULL;
    const bool ready = batch.space.real && (integers == 0 || batch.space.integer);
    if (ready)
        wg__parallel_for(chunks, 1, run_chunks, &batch);
    wg__free(batch.space.real);
    wg__free(batch.space.integer);
    for (int64_t chunk = 0; chunk < chunks && job->info == 0; chunk++) {
        job->info = batch.info[chunk];
        job->matrix = batch.matrix[chunk];
    }
    return ready ? 0 : -1;
}
