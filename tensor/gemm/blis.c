/* Matrix products by BLIS. Only this file includes BLIS, and only its public typed interface, of
 * BLIS 0.9 to 2.x. BLIS's docs/Multithreading.md says of calls with a rntm_t, as used here: "This
 * method has the benefit of being thread-safe [...] your application can spawn two threads at the
 * application level, with each thread requesting different degrees of parallelism". BLIS ends the
 * program if it has no memory for its buffers, some 20 MB for each thread. */
#include "config.h"

#include "tensor/gemm/gemm.h"

#ifdef WG_BLIS
#include <blis.h>
#endif

const char *wg__blis_version(void) {
#ifdef WG_BLIS
    return bli_info_get_version_str();
#else
    return "none";
#endif
}

const char *wg__blis_family(void) {
#ifdef WG_BLIS
    bli_init(); /* the query needs it where BLIS_ARCH_TYPE is set */
    return bli_arch_string(bli_arch_query_id());
#else
    return "none";
#endif
}

#ifdef WG_BLIS
/* BLIS refuses a stride of 0 and strides that make rows overlap, even along an axis of size 1,
 * where the stride is never used. So these axes get a stride as long as the whole matrix. */
static wg__matrix with_valid_strides(wg__matrix a, int64_t rows, int64_t columns) {
    if (rows == 1 && columns == 1)
        a.row_stride = a.column_stride = 1;
    else if (rows == 1)
        a.row_stride = columns * a.column_stride;
    else if (columns == 1)
        a.column_stride = rows * a.row_stride;
    return a;
}

/* BLIS 0.9 has only portable kernels, "generic", for processors after Zen 4. */
bool wg__blis_gemm(const wg__product *p) {
    if (wg__blis_family()[0] == 'g')
        return false;
    const wg__matrix a = with_valid_strides(p->a, p->m, p->k);
    const wg__matrix b = with_valid_strides(p->b, p->k, p->n);
    const wg__matrix c = with_valid_strides(p->c, p->m, p->n);
    rntm_t runtime = BLIS_RNTM_INITIALIZER;
    bli_rntm_set_num_threads(1, &runtime);
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
    return true;
}

#else
bool wg__blis_gemm(const wg__product *p) {
    (void)p;
    return false;
}
#endif
