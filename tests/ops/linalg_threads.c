/* Decompositions and solvers on several threads give the bits of one thread: in batches that the
 * library shares out among its threads, and where two threads of the program call at once. LAPACK
 * libraries that must not be called from several threads have been seen to be wrong in a few calls
 * of a hundred, so each function is called often: LINALG_ROUNDS times (4) at each number of
 * threads. tests/blas_alternatives.sh runs 20 rounds with each library of Debian's. With 0 rounds
 * the suite is left out: under emulation it takes an hour. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/support/testing.h"

/* ---- Functions of a batch: a, any matrices; b, positive definite ones. Each returns how many
 * outputs it has, 0 after an error. ---- */

enum { MOST_OUTPUTS = 3 };

typedef int (*function)(wg_tensor *a, wg_tensor *b, wg_tensor **y);

#define OUTPUTS(count, name, status)                                                               \
    static int name(wg_tensor *a, wg_tensor *b, wg_tensor **y) {                                   \
        (void)a, (void)b;                                                                          \
        return (status) == 0 ? count : 0;                                                          \
    }
#define OUTPUT(name, call) OUTPUTS(1, name, (y[0] = (call)) ? 0 : -1)

OUTPUTS(2, eigh, wg_eigh(a, &y[0], &y[1]))
OUTPUT(eigvalsh, wg_eigvalsh(a))
OUTPUTS(3, svd, wg_svd(a, false, &y[0], &y[1], &y[2]))
OUTPUTS(3, full_svd, wg_svd(wg_narrow(a, -1, 0, 40), true, &y[0], &y[1], &y[2]))
OUTPUT(svdvals, wg_svdvals(a))
OUTPUTS(2, qr, wg_qr(a, false, &y[0], &y[1]))
OUTPUTS(2, complete_qr, wg_qr(wg_narrow(a, -1, 0, 40), true, &y[0], &y[1]))
OUTPUT(cholesky, wg_cholesky(b, false))
OUTPUT(lstsq, wg_lstsq(wg_narrow(a, -1, 0, 40), b))
OUTPUT(pinv, wg_pinv(a, 0))
OUTPUT(inv, wg_inv(b))
OUTPUT(solve, wg_solve(b, a, false))
OUTPUT(solve_triangular, wg_solve_triangular(b, a, true, false, false))
/* One right side: LAPACK's trtrs. */
OUTPUT(solve_triangular_vector, wg_solve_triangular(b, wg_narrow(a, -1, 0, 1), true, false, false))
OUTPUT(det, wg_det(wg_mul_scalar(a, 0.1)))
OUTPUTS(2, slogdet, wg_slogdet(a, &y[0], &y[1]))
OUTPUT(matrix_norm, wg_matrix_norm(a, WG_MATRIX_NORM_NUC, false))
OUTPUT(matrix_power, wg_matrix_power(b, -2))
OUTPUT(matrix_exp, wg_matrix_exp(wg_mul_scalar(a, 0.01)))

#define ROW(name)                                                                                  \
    { #name, name }
#define FUNCTIONS                                                                                  \
    ROW(eigh), ROW(eigvalsh), ROW(svd), ROW(full_svd), ROW(svdvals), ROW(qr), ROW(complete_qr),    \
        ROW(cholesky), ROW(lstsq), ROW(pinv), ROW(inv), ROW(solve), ROW(solve_triangular),         \
        ROW(solve_triangular_vector), ROW(det), ROW(slogdet), ROW(matrix_norm), ROW(matrix_power), \
        ROW(matrix_exp)

static const struct {
    const char *name;
    function function;
} functions[] = {FUNCTIONS};

static const char *name_of(int function) {
    return functions[function].name;
}

/* ---- A function on a batch, compared with what it gave first ---- */

typedef struct job {
    int function, calls, wrong;
    double error; /* the largest difference */
    wg_tensor *a, *b, *first[MOST_OUTPUTS];
} job;

static job new_job(int function, wg_dtype dtype, int64_t count, int64_t n) {
    wg_generator generator = {.seed = 36};
    wg_tensor *a = wg_randn(&generator, dtype, WG_DIMS(count, n, n));
    wg_tensor *squares = wg_matmul(a, wg_transpose(a, -2, -1));
    job j = {
        .function = function, .a = a, .b = wg_add(squares, wg_mul_scalar(wg_eye(dtype, n, n), 9))};
    ck_assert_int_eq(wg_set_threads(1), 0);
    ck_assert_int_gt(functions[function].function(j.a, j.b, j.first), 0);
    return j;
}

static void compare(job *j, wg_tensor *y, wg_tensor *first) {
    const double error = wg_item(wg_max(wg_abs(wg_sub(y, first)), WG_ALL, false));
    if (!(error <= j->error))
        j->error = error;
}

/* Calls the function `rounds` times; its outputs must equal the first ones. */
static void call(job *j, int rounds) {
    for (int round = 0; round < rounds; round++) {
        wg_scope scope;
        wg_tensor *y[MOST_OUTPUTS] = {0};
        bool equal = true;
        wg_scope_begin(&scope);
        const int outputs = functions[j->function].function(j->a, j->b, y);
        if (outputs == 0)
            wg_error_clear();
        for (int i = 0; i < outputs; i++) {
            wg_tensor *same = wg_all(wg_eq(y[i], j->first[i]), WG_ALL, false);
            if (wg_item(same) != 1) {
                equal = false;
                compare(j, y[i], j->first[i]);
            }
        }
        j->calls++;
        j->wrong += outputs == 0 || !equal;
        wg_scope_end(&scope, NULL);
    }
}

static void check(const job *j) {
    ck_assert_msg(j->wrong == 0, "%s, %s: %d of %d calls differ from one thread's, by up to %g",
                  functions[j->function].name, wg_dtype_name(wg_tensor_dtype(j->a)), j->wrong,
                  j->calls, j->error);
}

static void compare_threads(int function, int64_t count, int64_t n, int rounds) {
    for (int i = 0; i < 2; i++) {
        job j = new_job(function, i ? WG_F64 : WG_F32, count, n);
        for (int threads = 2; threads <= 8; threads *= 2) {
            ck_assert_int_eq(wg_set_threads(threads), 0);
            call(&j, rounds);
        }
        check(&j);
    }
}

static int rounds(void) {
    const char *wanted = getenv("LINALG_ROUNDS");
    return wanted ? atoi(wanted) : 4;
}

START_TEST(a_batch_has_the_bits_of_one_thread) {
    compare_threads(_i, 64, 96, rounds());
}
END_TEST

/* Larger than the matrices that the library's own kernels factor. */
START_TEST(large_matrices_have_the_bits_of_one_thread) {
    compare_threads(_i, 6, 400, 1);
}
END_TEST

static void *call_alone(void *context) {
    call(context, 20);
    return NULL;
}

START_TEST(two_callers_at_once_get_the_bits_of_one) {
    job jobs[] = {new_job(_i, WG_F32, 4, 96), new_job(_i, WG_F64, 4, 96)};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_alone, &jobs[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        check(&jobs[i]);
}
END_TEST

SUITES {
    const TTest *const tests[] = {a_batch_has_the_bits_of_one_thread,
                                  large_matrices_have_the_bits_of_one_thread,
                                  two_callers_at_once_get_the_bits_of_one};
    if (rounds() > 0)
        add_suite_of_each("linalg_threads", tests, WG_COUNT(functions), name_of);
}
