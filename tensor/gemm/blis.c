/* Calls of BLIS: see blis.h. */
#include "tensor/gemm/blis.h"

#include <blis.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

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

static void multiply(const wg__product *p, bool packs) {
    const wg__matrix a = with_valid_strides(p->a, p->m, p->k);
    const wg__matrix b = with_valid_strides(p->b, p->k, p->n);
    const wg__matrix c = with_valid_strides(p->c, p->m, p->n);
    rntm_t runtime;
    bli_rntm_init(&runtime);
    bli_rntm_set_num_threads(1, &runtime);
    bli_rntm_set_l3_sup(!packs, &runtime);
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
 * BLIS ends the program where it has no memory for its buffers. It keeps those that it has made. A
 * call takes one of each kind at most, so there must be as many as calls at once; where there are
 * fewer, their memory is tried, and then BLIS makes them in a small product that packs. */

enum { KINDS = 3, OTHER_BYTES = 1 << 20 }; /* a block of A, a panel of B, a panel of C */

static bool has_buffers(int calls) {
    pba_t *pools = bli_pba_query();
    return (int)bli_pool_num_blocks(bli_pba_pool(0, pools)) >= calls &&
           (int)bli_pool_num_blocks(bli_pba_pool(1, pools)) >= calls;
}

static size_t buffer_bytes(void) {
    size_t bytes = OTHER_BYTES;
    for (int i = 0; i < KINDS; i++)
        bytes += (size_t)bli_pool_block_size(bli_pba_pool(i, bli_pba_query()));
    return bytes;
}

static bool can_allocate(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) {
        wg_alloc_trim();
        block = malloc(bytes);
    }
    free(block);
    return block != NULL;
}

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

static atomic_int running;

bool wg__blis_begin_call(void) {
    static atomic_bool begun;
    const int calls = atomic_fetch_add(&running, 1) + 1;
    bool can = atomic_load(&begun) || can_allocate(OTHER_BYTES); /* for BLIS itself */
    if (can)
        bli_init(); /* which finds out how large buffers are */
    if (can && !has_buffers(calls)) {
        can = can_allocate(buffer_bytes());
        if (can)
            make_buffers();
    }
    if (can)
        atomic_store(&begun, true);
    else
        atomic_fetch_sub(&running, 1);
    return can;
}

void wg__blis_end_call(void) {
    atomic_fetch_sub(&running, 1);
}

bool wg__blis_gemm(const wg__product *product, bool packs) {
    if (!wg__blis_begin_call())
        return false;
    multiply(product, packs);
    wg__blis_end_call();
    return true;
}

bool wg__blis_solve(wg_dtype dtype, bool upper, bool unit, int64_t n, int64_t k, void *triangle,
                    void *right) {
    const uplo_t half = upper ? BLIS_UPPER : BLIS_LOWER;
    const diag_t diagonal = unit ? BLIS_UNIT_DIAG : BLIS_NONUNIT_DIAG;
    if (!wg__blis_begin_call())
        return false;
    rntm_t runtime;
    bli_rntm_init(&runtime);
    bli_rntm_set_num_threads(1, &runtime);
    if (dtype == WG_F32) {
        float one = 1;
        bli_strsm_ex(BLIS_LEFT, half, BLIS_NO_TRANSPOSE, diagonal, n, k, &one, triangle, 1, n,
                     right, 1, n, NULL, &runtime);
    } else {
        double one = 1;
        bli_dtrsm_ex(BLIS_LEFT, half, BLIS_NO_TRANSPOSE, diagonal, n, k, &one, triangle, 1, n,
                     right, 1, n, NULL, &runtime);
    }
    wg__blis_end_call();
    return true;
}

/* ---- Kernels ---- */

/* BLIS returns function pointers as void pointers. */
typedef union function {
    void_fp object;
    void (*code)(void);
} function;

static num_t type_of(wg_dtype dtype) {
    return dtype == WG_F32 ? BLIS_FLOAT : BLIS_DOUBLE;
}

static wg__blis_side side_of(num_t type, bszid_t size, cntx_t *context) {
    const int64_t width = bli_cntx_get_blksz_def_dt(type, size, context);
    const int64_t step = bli_cntx_get_blksz_max_dt(type, size, context);
    const function pack = {.object = bli_cntx_get_packm_ker_dt(type, (l1mkr_t)width, context)};
    return (wg__blis_side){.width = width, .step = step, .pack = pack.object ? pack.code : NULL};
}

wg__blis_kernel wg__blis_kernel_for(wg_dtype dtype) {
    const num_t type = type_of(dtype);
    cntx_t *context = bli_gks_query_cntx();
    const function multiply = {.object = bli_cntx_get_l3_nat_ukr_dt(type, BLIS_GEMM_UKR, context)};
    return (wg__blis_kernel){
        .dtype = dtype,
        .a = side_of(type, BLIS_MR, context),
        .b = side_of(type, BLIS_NR, context),
        .by_rows = bli_cntx_l3_nat_ukr_prefers_rows_dt(type, BLIS_GEMM_UKR, context),
        .multiply = multiply.code,
        .context = context,
    };
}

static void pack_by_elements(size_t size, int64_t step, int64_t count, int64_t k, const char *x,
                             int64_t stride, int64_t k_stride, char *to) {
    memset(to, 0, (size_t)(k * step) * size);
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)(l * step + i) * size,
                   x + (i * stride + l * k_stride) * (int64_t)size, size);
}

void wg__blis_pack(const wg__blis_kernel *kernel, const wg__blis_side *side, int64_t count,
                   int64_t k, const void *x, int64_t stride, int64_t k_stride, void *to) {
    if (!side->pack) {
        pack_by_elements(wg_dtype_size(kernel->dtype), side->step, count, k, x, stride, k_stride,
                         to);
    } else if (kernel->dtype == WG_F32) {
        float one = 1;
        ((spackm_cxk_ker_ft)side->pack)(BLIS_NO_CONJUGATE, BLIS_PACKED_ROW_PANELS, count, k, k,
                                        &one, (float *)x, stride, k_stride, to, side->step,
                                        kernel->context);
    } else {
        double one = 1;
        ((dpackm_cxk_ker_ft)side->pack)(BLIS_NO_CONJUGATE, BLIS_PACKED_ROW_PANELS, count, k, k,
                                        &one, (double *)x, stride, k_stride, to, side->step,
                                        kernel->context);
    }
}

void wg__blis_multiply(const wg__blis_kernel *kernel, const wg__product *p) {
    auxinfo_t next = {0};
    bli_auxinfo_set_next_ab(p->a.data, p->b.data, &next);
    if (kernel->dtype == WG_F32) {
        float alpha = (float)p->alpha, beta = (float)p->beta;
        ((sgemm_ukr_ft)kernel->multiply)(p->m, p->n, p->k, &alpha, p->a.data, p->b.data, &beta,
                                         p->c.data, p->c.row_stride, p->c.column_stride, &next,
                                         kernel->context);
    } else {
        double alpha = p->alpha, beta = p->beta;
        ((dgemm_ukr_ft)kernel->multiply)(p->m, p->n, p->k, &alpha, p->a.data, p->b.data, &beta,
                                         p->c.data, p->c.row_stride, p->c.column_stride, &next,
                                         kernel->context);
    }
}

const char *wg__blis_version(void) {
    return bli_info_get_version_str();
}

/* Where BLIS_ARCH_TYPE is set, BLIS can be asked only once it has its contexts, and else ends the
 * program. */
const char *wg__blis_family(void) {
    if (!can_allocate(OTHER_BYTES))
        return "unknown";
    bli_init();
    return bli_arch_string(bli_arch_query_id());
}

bool wg__blis_is_generic(void) {
    enum { UNASKED, NO, YES };
    static atomic_int found;
    const int known = atomic_load_explicit(&found, memory_order_relaxed);
    if (known != UNASKED)
        return known == YES;
    const char *family = wg__blis_family();
    const bool is_generic = strcmp(family, "generic") == 0;
    if (is_generic || strcmp(family, "unknown") != 0)
        atomic_store_explicit(&found, is_generic ? YES : NO, memory_order_relaxed);
    return is_generic;
}
