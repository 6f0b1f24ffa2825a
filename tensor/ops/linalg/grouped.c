/* Matrix products of groups of rows, as in layers of several experts (Shazeer et al. 2017): the
 * rows are sorted by expert, and offsets say where those of each begin.
 *
 *     rows     a (T, K), b (E, K, N)  ->  (T, N)     rows offsets[e] to offsets[e + 1] times b[e]
 *     inner    a (K, T), b (T, N)     ->  (E, K, N)  columns and rows offsets[e] to offsets[e + 1]
 *
 * Each form's gradients are products of these two forms. */
#include "tensor/gemm/gemm.h"
#include "tensor/internal.h"
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/registry.h"
#include "tensor/ops/support.h"

static bool has_experts(const wg_call *call) {
    return call->input_specs[1].ndim == 3;
}

static int grouped_mm_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    const wg_spec *offsets = &call->input_specs[2];
    if (wg__check_same_dtype(call, 0, 1) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    if (a->ndim != 2 || (b->ndim != 3 && b->ndim != 2) || offsets->ndim != 1 ||
        offsets->shape[0] < 1)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted (T, K) x (E, K, N) or (K, T) x (T, N), and (E + 1) offsets");
    const int64_t inner = b->shape[b->ndim - 2], experts = offsets->shape[0] - 1;
    if (a->shape[1] != inner)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "inner sizes differ (%lld, %lld); transpose an operand?",
                           (long long)a->shape[1], (long long)inner);
    if (b->ndim == 3 && b->shape[0] != experts)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "%lld matrices and %lld offsets; wanted an offset for each, and the end",
                           (long long)b->shape[0], (long long)offsets->shape[0]);
    const int64_t n = b->shape[b->ndim - 1];
    return b->ndim == 3 ? wg__spec_make(&call->output_specs[0], a->dtype, 2,
                                        (int64_t[]){a->shape[0], n}, call->op->name)
                        : wg__spec_make(&call->output_specs[0], a->dtype, 3,
                                        (int64_t[]){experts, a->shape[0], n}, call->op->name);
}

typedef struct groups {
    wg__product whole; /* of which group e takes a part */
    const int64_t *offsets;
    bool experts;
    int64_t b_step, c_step; /* elements from a matrix to the next */
} groups;

static void multiply_groups(int64_t begin, int64_t end, void *context) {
    const groups *all = context;
    for (int64_t e = begin; e < end; e++) {
        wg__product p = all->whole;
        const int64_t first = all->offsets[e], size = all->offsets[e + 1] - first;
        const wg_dtype dtype = p.dtype;
        if (all->experts) {
            p.m = size;
            p.a = wg__matrix_at(dtype, p.a, first, 0);
            p.c = wg__matrix_at(dtype, p.c, first, 0);
            p.b.data = (char *)p.b.data + e * all->b_step * (int64_t)wg_dtype_size(dtype);
        } else {
            p.k = size;
            p.a = wg__matrix_at(dtype, p.a, 0, first);
            p.b = wg__matrix_at(dtype, p.b, first, 0);
            p.c.data = (char *)p.c.data + e * all->c_step * (int64_t)wg_dtype_size(dtype);
        }
        wg__gemm(&p);
    }
}

static int grouped_mm_forward(wg_call *call) {
    const bool experts = has_experts(call);
    wg_tensor *a = wg__gemm_operand(call->inputs[0]), *b = wg__gemm_operand(call->inputs[1]);
    wg_tensor *offsets = wg_contiguous(call->inputs[2]), *y = call->outputs[0];
    if (a == NULL || b == NULL || offsets == NULL ||
        wg__check_offsets(call->op->name, offsets, a->spec.shape[!experts]) < 0)
        return -1;
    if (wg__spec_count(&y->spec) == 0)
        return 0;
    const int64_t count = offsets->spec.shape[0] - 1;
    groups all = {.whole = {.dtype = y->spec.dtype,
                            .m = a->spec.shape[0],
                            .n = b->spec.shape[b->spec.ndim - 1],
                            .k = a->spec.shape[1],
                            .alpha = 1,
                            .a = wg__matrix_of(a),
                            .b = wg__matrix_of(b),
                            .c = wg__matrix_of(y)},
                  .offsets = wg__tensor_address(offsets),
                  .experts = experts,
                  .b_step = experts ? b->strides[0] : 0,
                  .c_step = experts ? 0 : y->strides[0]};
    /* Large products run in parallel within; small ones run beside each other. */
    const wg__product *p = &all.whole;
    const double work = (double)p->m * (double)p->n * (double)p->k, before = wg__product_flops;
    if (wg__gemm_threads(work / (double)count) > 1)
        multiply_groups(0, count, &all);
    else
        wg__parallel_for(count, 1 + (int64_t)(WG__GRAIN * 16 * (double)count / (work + 1)),
                         multiply_groups, &all);
    wg__product_flops = before + 2 * work;
    return 0;
}

static wg_tensor *grouped_mm_of(wg_tensor *a, wg_tensor *b, wg_tensor *offsets);

static wg_tensor *transposed(wg_tensor *x) {
    return wg_transpose(x, -1, -2);
}

/* rows: dA = G B^T by rows, dB_e = A_e^T G_e.   inner: dA_e = G_e B_e^T, dB = A^T G by rows. */
static int grouped_mm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1], *offsets = call->inputs[2];
    wg_tensor *g = cotangents[0];
    const bool experts = has_experts(call);
    if (wg__wants(call, 0))
        gradients[0] = experts ? grouped_mm_of(g, transposed(b), offsets)
                               : transposed(grouped_mm_of(b, transposed(g), offsets));
    if (wg__wants(call, 1))
        gradients[1] = grouped_mm_of(transposed(a), g, offsets);
    return wg__vjp_status();
}

static int grouped_mm_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    wg_tensor *offsets = call->inputs[2];
    wg_tensor *of_a = tangents[0] ? grouped_mm_of(tangents[0], call->inputs[1], offsets) : NULL;
    wg_tensor *of_b = tangents[1] ? grouped_mm_of(call->inputs[0], tangents[1], offsets) : NULL;
    output_tangents[0] = wg__plus(of_a, of_b);
    return wg__vjp_status();
}

static double grouped_mm_flops(const wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    return 2 * (double)a->shape[0] * (double)a->shape[1] * (double)b->shape[b->ndim - 1];
}

/* Both forms, with groups of no rows. */
static int grouped_mm_sample(int index, wg_generator *generator, wg_sample *sample) {
    static const int64_t offsets[] = {0, 2, 2, 5, 6};
    if (index >= 2)
        return 0;
    sample->inputs[0] = index ? wg_randn(generator, WG_F64, 2, (int64_t[]){3, 6})
                              : wg_randn(generator, WG_F64, 2, (int64_t[]){6, 3});
    sample->inputs[1] = index ? wg_randn(generator, WG_F64, 2, (int64_t[]){6, 2})
                              : wg_randn(generator, WG_F64, 3, (int64_t[]){4, 3, 2});
    sample->inputs[2] = wg_from_array(WG_I64, 1, (int64_t[]){5}, offsets);
    return wg__sample_status(sample, 3);
}

/* 2^31 operations: 8 experts, 2048 rows. */
static int grouped_mm_bench(wg_generator *generator, wg_sample *sample) {
    static const int64_t offsets[] = {0, 300, 500, 756, 1000, 1300, 1500, 1800, 2048};
    sample->inputs[0] = wg_rand(generator, WG_F32, 2, (int64_t[]){2048, 512});
    sample->inputs[1] = wg_rand(generator, WG_F32, 3, (int64_t[]){8, 512, 1024});
    sample->inputs[2] = wg_from_array(WG_I64, 1, (int64_t[]){9}, offsets);
    return wg__sample_status(sample, 3);
}

static const wg_op grouped_mm = {
    WG__OP("grouped_mm", 3,
           "(T, K) x (E, K, N), offsets (E + 1) i64 -> (T, N): rows offsets[e] to offsets[e + 1] "
           "times matrix e; or (K, T) x (T, N) -> (E, K, N): the products over those rows alone."),
    .saves_inputs = 7,
    .differentiable = 3,
    .infer = grouped_mm_infer,
    .forward = grouped_mm_forward,
    .vjp = grouped_mm_vjp,
    .jvp = grouped_mm_jvp,
    .sample = grouped_mm_sample,
    .bench = grouped_mm_bench,
    .flops = grouped_mm_flops,
};

static wg_tensor *grouped_mm_of(wg_tensor *a, wg_tensor *b, wg_tensor *offsets) {
    return wg_apply_one(&grouped_mm, 3, (wg_tensor *[]){a, b, offsets}, NULL);
}

wg_tensor *wg_grouped_mm(wg_tensor *a, wg_tensor *b, wg_tensor *offsets) {
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (offsets != NULL && wg__promote(&a, &b)) {
        const wg_dtype dtype = a->spec.dtype;
        if (offsets->spec.dtype == WG_I32)
            offsets = wg_cast(offsets, WG_I64);
        y = wg__narrow(grouped_mm_of(wg__widen(a), wg__widen(b), offsets), dtype);
    }
    return wg_scope_end(&scope, y);
}

static const wg_op *const ops[] = {&grouped_mm};

const wg__op_table wg__ops_grouped = {ops, sizeof ops / sizeof *ops};
