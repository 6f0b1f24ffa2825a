/* Calls of BLIS: see blis.h. */
#include "config.h"

#include "tensor/gemm/blis.h"

#ifdef WG_BLIS

#include <blis.h>
#include <stdatomic.h>
#include <string.h>

#include "base/internal.h"

/* BLIS refuses a stride of 0 and strides that make rows overlap, even along an axis of size 1,
 * where the stride is never used. So such an axis gets a stride as long as the whole matrix. */
static wg__matrix with_valid_strides(wg__matrix a, int64_t rows, int64_t columns) {
    if (rows == 1 && columns == 1)
        a.row_stride = a.column_stride = 1;
    else if (rows == 1)
        a.row_stride = columns * a.column_stride;
    else if (columns == 1)
        a.column_stride = rows * a.row_stride;
    return a;
}

/* If `packs`, both operands are packed whatever the shape. */
static void multiply(const wg__product *p, bool packs) {
    const wg__matrix a = with_valid_strides(p->a, p->m, p->k);
    const wg__matrix b = with_valid_strides(p->b, p->k, p->n);
    const wg__matrix c = with_valid_strides(p->c, p->m, p->n);
    rntm_t runtime = BLIS_RNTM_INITIALIZER;
    bli_rntm_set_num_threads(1, &runtime);
    if (packs)
        bli_rntm_disable_l3_sup(&runtime);
    if (p->dtype == WG_F32) {
        float alpha = (float)p->alpha, beta = (float)p->beta;
        bli_sgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, p->m, p->n, p->k, &alpha, a.data,
                     a.row_stride, a.column_stride, b.data, b.row_stride, b.column_stride, &beta,
                     c.data, c.row_stride, c.column_stride, NULL, &runtime);
    } else {
        double alpha = p->alpha, beta = p->beta;
        bli_dgemm_ex(BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, p->m, p->n, p->k, &alpha, a.data,
                     a.row_stride, a.column_stride, b.data, b.row_stride, b.column_stride, &beta,
                     c.data, c.row_stride, c.column_stride, NULL, &runtime);
    }
}

/* ---- Memory for buffers ----
 *
 * BLIS ends the program where it has no memory for its buffers: a block of A and a panel of B for
 * each call that packs. It keeps the buffers that it has made. So before the first call their
 * memory is tried, and BLIS makes the first ones in a small product that packs. The bytes that are
 * tried do not depend on the number of threads, because BLIS and our panels give other bits. */

enum { CALL_BYTES = 24 << 20 };

static void make_buffers(void) {
    enum { SIDE = 4 };
    double x[SIDE * SIDE] = {0}, y[SIDE * SIDE] = {0};
    const wg__matrix a = {.data = x, .row_stride = SIDE, .column_stride = 1};
    multiply(&(wg__product){.dtype = WG_F64,
                            .m = SIDE,
                            .n = SIDE,
                            .k = SIDE,
                            .alpha = 1,
                            .a = a,
                            .b = a,
                            .c = {.data = y, .row_stride = SIDE, .column_stride = 1}},
             true);
}

bool wg__blis_is_ready(void) {
    static atomic_bool is_ready;
    if (!atomic_load(&is_ready) && wg__malloc_has(CALL_BYTES)) {
        make_buffers();
        atomic_store(&is_ready, true);
    }
    return atomic_load(&is_ready);
}

/* ---- Products ---- */

const char *wg__blis_version(void) {
    return bli_info_get_version_str();
}

/* Where BLIS_ARCH_TYPE is set, BLIS can be asked only once it is initialised, and else ends the
 * program. */
const char *wg__blis_family(void) {
    if (!wg__malloc_has(CALL_BYTES))
        return "unknown";
    bli_init();
    return bli_arch_string(bli_arch_query_id());
}

/* BLIS 0.9 has only portable kernels for processors that it does not know, those after Zen 4. */
static bool has_kernels(void) {
    enum { UNASKED, NO, YES };
    static atomic_int found;
    int known = atomic_load_explicit(&found, memory_order_relaxed);
    if (known == UNASKED) {
        const char *family = wg__blis_family();
        if (strcmp(family, "unknown") == 0)
            return false;
        known = strcmp(family, "generic") == 0 ? NO : YES;
        atomic_store_explicit(&found, known, memory_order_relaxed);
    }
    return known == YES;
}

bool wg__blis_gemm(const wg__product *product) {
    if (!has_kernels() || !wg__blis_is_ready())
        return false;
    multiply(product, false);
    return true;
}

#else

bool wg__blis_gemm(const wg__product *product) {
    (void)product;
    return false;
}

bool wg__blis_is_ready(void) {
    return true;
}

const char *wg__blis_version(void) {
    return "none";
}

const char *wg__blis_family(void) {
    return "none";
}

#endif
