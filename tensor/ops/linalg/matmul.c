/* Matrix products: matmul, a primitive; linear, the layer's product, fused; outer, dot, addmm; and
 * products of groups of rows. */
#include "tensor/ops/linalg/dense.h"
#include "tensor/ops/support.h"

#include <math.h>
#include <string.h>

/* ---- The dtype of the multiplications in products of f32. The op of a call records it, for
 * backward. ---- */

static WG__THREAD_LOCAL wg_dtype matmul_dtype; /* f32 or bf16 */

wg_dtype wg_set_matmul_dtype(wg_dtype dtype) {
    const wg_dtype before = matmul_dtype;
    if (dtype == WG_F32 || dtype == WG_BF16)
        matmul_dtype = dtype;
    else
        wg_fail(WG_ERROR_DTYPE, "set_matmul_dtype", "%s; wanted f32 or bf16", wg_dtype_name(dtype));
    return before;
}

wg_dtype wg__matmul_dtype(void) {
    return matmul_dtype;
}

/* Separate ops for products that round f32 operands to bf16, so that backward rounds as forward
 * did. */
static const wg_op matmul_bf16, linear_bf16;

static bool rounds(const wg_call *call) {
    return call->op == &matmul_bf16 || call->op == &linear_bf16;
}

/* ---- matmul: C = A B for each matrix of the broadcast batch.
 * dA = G B^T, dB = A^T G, summed over the batch axes that were broadcast. ---- */

static int matmul_infer(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    wg_spec *out = &call->output_specs[0];
    if (wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (a->dtype == WG_BOOL || a->dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s is not multiplied; cast the operands",
                           wg_dtype_name(a->dtype));
    if (a->ndim < 2 || b->ndim < 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "a scalar is no matrix; use mul");
    const int64_t columns = a->shape[a->ndim - 1], rows = b->shape[b->ndim - 2];
    if (columns != rows)
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "inner sizes differ (%lld, %lld); transpose an operand?",
                           (long long)columns, (long long)rows);
    wg_spec batch_a = *a, batch_b = *b;
    batch_a.ndim -= 2;
    batch_b.ndim -= 2;
    if (!wg__broadcast(&batch_a, &batch_b, out))
        return wg__op_fail(call, WG_ERROR_SHAPE, "the leading axes do not broadcast");
    out->dtype = a->dtype;
    out->shape[out->ndim++] = a->shape[a->ndim - 2];
    out->shape[out->ndim++] = b->shape[b->ndim - 1];
    return 0;
}

/* A batch of products. Strides between the matrices are in bytes. */
typedef struct batch {
    wg__product first;
    int ndim;
    int64_t count;
    int64_t shape[WG_MAX_DIMS], a_strides[WG_MAX_DIMS], b_strides[WG_MAX_DIMS];
} batch;

/* Merges trailing batch axes into the rows, if B is constant along the axis and the rows of A
 * continue with one stride: (B, T, K) x (K, N) becomes one product of B T rows. */
static void merge_batch_into_rows(batch *all) {
    wg__product *p = &all->first;
    int64_t size = (int64_t)wg_dtype_size(p->dtype);
    while (all->ndim > 0) {
        int axis = all->ndim - 1;
        int64_t count = all->shape[axis], step = all->a_strides[axis];
        if (count != 1) {
            if (all->b_strides[axis] != 0 || step < size)
                return;
            if (p->m == 1)
                p->a.row_stride = step / size;
            else if (step != p->m * p->a.row_stride * size)
                return;
        }
        if (p->m == 1)
            p->c.row_stride = p->n;
        p->m *= count;
        all->count /= count;
        all->ndim--;
    }
}

static void run_batch(int64_t begin, int64_t end, void *context) {
    const batch *all = context;
    for (int64_t i = begin; i < end; i++) {
        wg__product p = all->first;
        p.c.data = (char *)p.c.data + i * p.m * p.n * (int64_t)wg_dtype_size(p.dtype);
        for (int64_t axis = all->ndim - 1, rest = i; axis >= 0; rest /= all->shape[axis--]) {
            int64_t index = rest % all->shape[axis];
            p.a.data = (char *)p.a.data + index * all->a_strides[axis];
            p.b.data = (char *)p.b.data + index * all->b_strides[axis];
        }
        wg__gemm(&p);
    }
}

static int matmul_forward(wg_call *call) {
    wg_tensor *inputs[2], *out = call->outputs[0];
    for (int i = 0; i < 2; i++) {
        inputs[i] = wg__gemm_operand(call->inputs[i]);
        if (!inputs[i])
            return -1;
    }
    if (wg__spec_count(&out->spec) == 0)
        return 0;
    wg_spec to = out->spec;
    to.ndim -= 2;
    const int64_t *shape = out->spec.shape + to.ndim;
    const int64_t k = inputs[0]->spec.shape[inputs[0]->spec.ndim - 1];
    batch all = {.first = wg__product_of(to.dtype, shape[0], shape[1], k, wg__matrix_of(inputs[0]),
                                         wg__matrix_of(inputs[1]), wg__matrix_of(out)),
                 .ndim = to.ndim,
                 .count = wg__spec_count(&to)};
    all.first.rounds = rounds(call);
    memcpy(all.shape, to.shape, sizeof to.shape);
    for (int i = 0; i < 2 && to.ndim > 0; i++) {
        int64_t *strides = i == 0 ? all.a_strides : all.b_strides;
        wg_tensor x = *inputs[i];
        x.spec.ndim -= 2;
        wg__broadcast_strides(&x, &to, strides);
        for (int axis = 0; axis < to.ndim; axis++)
            strides[axis] *= (int64_t)wg_dtype_size(to.dtype);
    }
    merge_batch_into_rows(&all);
    const wg__product *p = &all.first;
    if (all.count == 1) {
        wg__gemm(p);
        return 0;
    }
    /* Few large products run one after another, each on all threads; otherwise threads share the
     * products. */
    double work = (double)p->m * (double)p->n * (double)(p->k + 1), before = wg__product_flops;
    if (all.count < wg_threads() && wg__gemm_threads(work) > 1)
        run_batch(0, all.count, &all);
    else
        wg__parallel_for(all.count, 1 + (int64_t)(WG__GRAIN * 16 / (work + 1)), run_batch, &all);
    if (wg_dtype_is_float(p->dtype))
        wg__product_flops =
            before + 2 * (double)all.count * (double)p->m * (double)p->n * (double)p->k;
    return 0;
}

/* x (..., N) as one matrix (rows, N). */
static wg_tensor *flat(wg_tensor *x) {
    const int last = x->spec.ndim - 1;
    const int64_t *sizes = x->spec.shape;
    return wg_reshape(x, 2, (int64_t[]){wg__shape_count(last, sizes), sizes[last]});
}

static int matmul_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *g = cotangents[0];
    const wg_dtype before = wg_set_matmul_dtype(rounds(call) ? WG_BF16 : WG_F32);
    if (wg__wants(call, 0))
        gradients[0] = wg__sum_like(wg_matmul(g, wg_transpose(call->inputs[1], -2, -1)), call, 0);
    if (wg__wants(call, 1)) {
        /* The gradient of a matrix B, broadcast to the batch, is the sum of A^T G over the batch:
         * one product of the flattened A and G. */
        wg_tensor *a = call->inputs[0];
        if (call->input_specs[1].ndim == 2 && a->spec.ndim > 2) {
            a = flat(a);
            g = flat(g);
        }
        gradients[1] = wg__sum_like(wg_matmul(wg_transpose(a, -2, -1), g), call, 1);
    }
    wg_set_matmul_dtype(before);
    return wg__vjp_status();
}

static int matmul_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg_dtype before = wg_set_matmul_dtype(rounds(call) ? WG_BF16 : WG_F32);
    wg_tensor *of_a = tangents[0] ? wg_matmul(tangents[0], call->inputs[1]) : NULL;
    wg_tensor *of_b = tangents[1] ? wg_matmul(call->inputs[0], tangents[1]) : NULL;
    wg_set_matmul_dtype(before);
    output_tangents[0] = wg__plus(of_a, of_b);
    return wg__vjp_status();
}

WG__SHAPES(matmul, (wg__sample_normal), "2 3, 3 4", "2 3 2, 2 4", "2 1 2 3, 2 3 1", "2 3, 2 3 2")
/* 2^31 operations. */
WG__LARGE(matmul, int, "1024 1024, 1024 1024", 0)

#define MATMUL(NAME)                                                                               \
    WG__OP(NAME, 2,                                                                                \
           "C = A B: (..., M, K) x (..., K, N) -> (..., M, N), the leading axes broadcast."),      \
        .saves_inputs = 3, .differentiable = 3, .infer = matmul_infer, .forward = matmul_forward,  \
        .vjp = matmul_vjp, .jvp = matmul_jvp, .sample = matmul_sample, .bench = matmul_bench,      \
        .flops = wg__matmul_flops, .batch = wg_batch_aligned

static const wg_op matmul = {MATMUL("matmul")}, matmul_bf16 = {MATMUL("matmul_bf16")};

wg_tensor *wg_matmul(wg_tensor *a, wg_tensor *b) {
    if (!wg__promote(&a, &b))
        return NULL;
    wg_dtype dtype = a->spec.dtype;
    bool row = a->spec.ndim == 1, column = b->spec.ndim == 1;
    a = wg__widen(row ? wg_unsqueeze(a, 0) : a);
    b = wg__widen(column ? wg_unsqueeze(b, 1) : b);
    const bool rounded = a && a->spec.dtype == WG_F32 && matmul_dtype == WG_BF16;
    const wg_op *op = rounded ? &matmul_bf16 : &matmul;
    wg_tensor *c = wg_apply_one(op, 2, (wg_tensor *[]){a, b}, NULL);
    if (column)
        c = wg_squeeze(c, -1);
    if (row)
        c = wg_squeeze(c, column ? -1 : -2);
    return wg__narrow(c, dtype);
}

/* ---- linear: y = x W^T + bias.   dx = g W, dW = g^T x, dbias = the sum of g over rows. ---- */

static int linear_infer(wg_call *call) {
    const wg_spec *x = &call->input_specs[0], *weight = &call->input_specs[1];
    if (wg__check_same_dtypes(call, 3) < 0 || wg__check_kernel_dtype(call) < 0)
        return -1;
    if (x->ndim < 1 || weight->ndim != 2)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted (..., I) x (O, I)");
    const int64_t features = x->shape[x->ndim - 1], outputs = weight->shape[0];
    if (features != weight->shape[1])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "x has %lld features, the weight takes %lld; wanted (..., I) x (O, I)",
                           (long long)features, (long long)weight->shape[1]);
    if (call->input_count > 2 && call->input_specs[2].ndim >= 0 &&
        (call->input_specs[2].ndim != 1 || call->input_specs[2].shape[0] != outputs))
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a bias of %lld, a value for each output",
                           (long long)outputs);
    call->output_specs[0] = *x;
    call->output_specs[0].shape[x->ndim - 1] = outputs;
    return 0;
}

static int linear_forward(wg_call *call) {
    wg_tensor *bias = call->input_count > 2 ? call->inputs[2] : NULL;
    wg__rows x, weight, y, row;
    if (wg__rows_of(call->inputs[0], false, &x) < 0 ||
        wg__rows_of(call->inputs[1], false, &weight) < 0 ||
        wg__rows_of(call->outputs[0], false, &y) < 0 || (bias && wg__rows_of(bias, true, &row) < 0))
        return -1;
    wg__product product =
        wg__product_of(y.tensor->spec.dtype, y.rows, y.columns, x.columns, wg__rows_matrix(&x),
                       wg__transposed(wg__rows_matrix(&weight)), wg__rows_matrix(&y));
    product.rounds = rounds(call);
    product.row = bias ? wg__row(&row, 0) : NULL;
    wg__gemm(&product);
    return 0;
}

/* Adds to an existing gradient with beta 1, or writes a new one with beta 0. A new gradient has the
 * memory layout of the weight: the gradient of a transposed view is then transposed back without a
 * copy. */
static int add_weight_gradient(wg_call *call, const wg__rows *g, wg_tensor **gradient) {
    const wg_spec *spec = &call->input_specs[1];
    const int64_t *strides = call->inputs[1]->strides;
    wg__rows x;
    if (wg__rows_of(call->inputs[0], false, &x) < 0)
        return -1;
    double beta = *gradient ? 1 : 0;
    if (!*gradient) {
        const bool transposed = strides[0] == 1 && strides[1] == spec->shape[0];
        wg_spec memory = *spec;
        memory.shape[0] = spec->shape[transposed];
        memory.shape[1] = spec->shape[!transposed];
        *gradient = wg__tensor_new(&memory);
        if (*gradient && transposed)
            *gradient = wg__tensor_view(*gradient, spec, strides, 0);
    }
    if (!*gradient)
        return -1;
    wg__product product = wg__product_of((*gradient)->spec.dtype, g->columns, x.columns, g->rows,
                                         wg__transposed(wg__rows_matrix(g)), wg__rows_matrix(&x),
                                         wg__matrix_of(*gradient));
    product.rounds = rounds(call);
    product.b_is_bf16 = x.tensor->spec.dtype == WG_BF16;
    product.beta = beta;
    wg__gemm(&product);
    return 0;
}

static int linear_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg__rows g, weight, dx;
    if (wg__rows_of(cotangents[0], true, &g) < 0)
        return -1;
    if (wg__wants(call, 0)) {
        gradients[0] = wg__tensor_new(&call->input_specs[0]);
        if (!gradients[0] || wg__rows_of(call->inputs[1], false, &weight) < 0 ||
            wg__rows_of(gradients[0], false, &dx) < 0)
            return -1;
        wg__product product =
            wg__product_of(dx.tensor->spec.dtype, g.rows, dx.columns, g.columns,
                           wg__rows_matrix(&g), wg__rows_matrix(&weight), wg__rows_matrix(&dx));
        product.rounds = rounds(call);
        wg__gemm(&product);
    }
    if (wg__wants(call, 1) && add_weight_gradient(call, &g, &gradients[1]) < 0)
        return -1;
    if (!wg__wants(call, 2))
        return 0;
    if (!gradients[2])
        gradients[2] = wg_zeros(g.tensor->spec.dtype, 1, &g.columns);
    return gradients[2] ? wg__add_row_sums(&g, gradients[2]) : -1;
}

static int linear_decompose(wg_call *call) {
    wg_tensor *bias = call->input_count > 2 ? call->inputs[2] : NULL;
    const wg_dtype before = wg_set_matmul_dtype(rounds(call) ? WG_BF16 : WG_F32);
    wg_tensor *y = wg_matmul(call->inputs[0], wg_transpose(call->inputs[1], 0, 1));
    wg_set_matmul_dtype(before);
    return wg__set_output(call, bias ? wg_add(y, bias) : y);
}

WG__SHAPES(linear, (wg__sample_normal), "3 4, 5 4, 5", "2 3 4, 5 4", "4, 5 4, 5")
/* 2^31 operations, in the sizes of a transformer's feed-forward. */
WG__LARGE(linear, int, "512 1024, 2048 1024, 2048", 0)

#define LINEAR(NAME)                                                                               \
    WG__OP_OF(NAME, 2, 3, 1,                                                                       \
              "y = x W^T + bias: (..., I) x (O, I), and (O) if there is a bias -> (..., O). "      \
              "Fused; the gradients of weight and bias are added in place."),                      \
        .saves_inputs = 7, .differentiable = 7, .accumulates = 6, .infer = linear_infer,           \
        .forward = linear_forward, .vjp = linear_vjp, .decompose = linear_decompose,               \
        .sample = linear_sample, .bench = linear_bench, .flops = wg__matmul_flops,                 \
        .batch = wg__batch_first_alone

static const wg_op linear = {LINEAR("linear")};
static const wg_op linear_bf16 = {LINEAR("linear_bf16"), .saves_rounded = 1, .reads_rounded = 1};

wg_tensor *wg_linear_op(wg_tensor *x, wg_tensor *weight, wg_tensor *bias) {
    wg_tensor *inputs[] = {x, weight, bias};
    wg_dtype dtype;
    if (!weight || !wg__widen_all(3, inputs, &dtype))
        return NULL;
    const bool rounded = inputs[0]->spec.dtype == WG_F32 && matmul_dtype == WG_BF16;
    const wg_op *op = rounded ? &linear_bf16 : &linear;
    wg_tensor *y;
    wg_apply(op, bias ? 3 : 2, inputs, NULL, &y);
    return wg__narrow(y, dtype);
}

static int outer_decompose(wg_call *call) {
    wg_tensor *column = wg_reshape(call->inputs[0], 2, (int64_t[]){-1, 1});
    wg_tensor *row = wg_reshape(call->inputs[1], 2, (int64_t[]){1, -1});
    return wg__set_output(call, wg_mul(column, row));
}

WG__SHAPES(outer, (wg__sample_normal), "3, 4", "2 3,")
WG__LARGE(outer, int, "2048, 2048", 0)

static const wg_op outer = {
    WG__OP("outer", 2, "y[i, j] = a[i] b[j], for all elements of a and of b in row-major order."),
    .differentiable = 3, WG__COMPOSED(outer), .bench = outer_bench};

wg_tensor *wg_outer(wg_tensor *a, wg_tensor *b) {
    return wg_apply_one(&outer, 2, (wg_tensor *[]){a, b}, NULL);
}

static int dot_decompose(wg_call *call) {
    const wg_spec *a = &call->input_specs[0], *b = &call->input_specs[1];
    if (a->ndim != 1 || b->ndim != 1)
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted two vectors; matmul takes other ranks");
    if (a->shape[0] != b->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE, "sizes %lld and %lld differ",
                           (long long)a->shape[0], (long long)b->shape[0]);
    return wg__set_output(call, wg_matmul(call->inputs[0], call->inputs[1]));
}

static double dot_flops(const wg_call *call) {
    return 2 * (double)wg__spec_count(&call->input_specs[0]);
}

WG__SHAPES(dot, (wg__sample_normal), "5, 5")
WG__LARGE(dot, int, "4194304, 4194304", 0)

static const wg_op dot = {WG__OP("dot", 2, "y = the sum of a[i] b[i], of two vectors."),
                          .differentiable = 3, WG__COMPOSED(dot), .bench = dot_bench,
                          .flops = dot_flops};

wg_tensor *wg_dot(wg_tensor *a, wg_tensor *b) {
    return wg_apply_one(&dot, 2, (wg_tensor *[]){a, b}, NULL);
}

/* ---- addmm: y = beta c + alpha A B.   dc = beta g, dA = alpha g B^T, dB = alpha A^T g. ---- */

typedef struct addmm_options {
    double beta, alpha;
} addmm_options;

static int addmm_infer(wg_call *call) {
    const wg_spec *c = &call->input_specs[0], *a = &call->input_specs[1],
                  *b = &call->input_specs[2];
    const addmm_options *options = call->options;
    if (wg__check_same_dtypes(call, 3) < 0)
        return -1;
    if (c->dtype == WG_BOOL || c->dtype == WG_BF16)
        return wg__op_fail(call, WG_ERROR_DTYPE, "%s is not multiplied; cast the operands",
                           wg_dtype_name(c->dtype));
    if (!wg_dtype_is_float(c->dtype) &&
        (options->alpha != trunc(options->alpha) || options->beta != trunc(options->beta)))
        return wg__op_fail(call, WG_ERROR_ARGUMENT,
                           "factors of integers are whole numbers, not %g and %g", options->beta,
                           options->alpha);
    if (a->ndim != 2 || b->ndim != 2 || a->shape[1] != b->shape[0])
        return wg__op_fail(call, WG_ERROR_SHAPE,
                           "wanted C + A B of matrices A (M, K) and B (K, N)");
    wg_spec *out = &call->output_specs[0], broadcast;
    *out = (wg_spec){c->dtype, 2, {a->shape[0], b->shape[1]}};
    if (!wg__broadcast(c, out, &broadcast) || !wg__same_shape(&broadcast, out))
        return wg__op_fail(call, WG_ERROR_SHAPE, "C does not broadcast to (%lld, %lld)",
                           (long long)out->shape[0], (long long)out->shape[1]);
    return 0;
}

/* Copies c to the result and adds the product in place; with beta 0, c is not read. */
static int addmm_forward(wg_call *call) {
    const addmm_options *options = call->options;
    wg_tensor *y = call->outputs[0], *a = wg__gemm_operand(call->inputs[1]);
    wg_tensor *b = wg__gemm_operand(call->inputs[2]);
    if (!a || !b || (options->beta != 0 && wg_copy_(y, call->inputs[0]) < 0))
        return -1;
    wg__product product =
        wg__product_of(y->spec.dtype, y->spec.shape[0], y->spec.shape[1], a->spec.shape[1],
                       wg__matrix_of(a), wg__matrix_of(b), wg__matrix_of(y));
    product.alpha = options->alpha;
    product.beta = options->beta;
    wg__gemm(&product);
    return 0;
}

/* alpha A B is one GEMM: addmm with beta 0. */
static int addmm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const addmm_options *options = call->options;
    wg_tensor *g = cotangents[0], *zero = wg_scalar(g->spec.dtype, 0);
    if (wg__wants(call, 0) && options->beta != 0)
        gradients[0] =
            wg__sum_like(options->beta == 1 ? g : wg_mul_scalar(g, options->beta), call, 0);
    if (wg__wants(call, 1))
        gradients[1] = wg_addmm(zero, g, wg_transpose(call->inputs[2], 0, 1), 0, options->alpha);
    if (wg__wants(call, 2))
        gradients[2] = wg_addmm(zero, wg_transpose(call->inputs[1], 0, 1), g, 0, options->alpha);
    return wg__vjp_status();
}

static int addmm_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const addmm_options *options = call->options;
    wg_tensor *c = tangents[0] ? tangents[0] : wg_scalar(call->input_specs[0].dtype, 0);
    wg_tensor *y = wg_expand(wg_mul_scalar(c, options->beta), 2, call->output_specs[0].shape);
    if (tangents[1])
        y = wg_addmm(y, tangents[1], call->inputs[2], 1, options->alpha);
    if (tangents[2])
        y = wg_addmm(y, call->inputs[1], tangents[2], 1, options->alpha);
    output_tangents[0] = y;
    return wg__vjp_status();
}

static double addmm_flops(const wg_call *call) {
    return 2 * (double)wg__spec_count(&call->output_specs[0]) *
           ((double)call->input_specs[1].shape[1] + 1);
}

WG__EXAMPLES(addmm, addmm_options, (wg__sample_normal), {{1, 1}, "3 2, 3 4, 4 2"},
             {{-0.5, 2}, "2, 3 4, 4 2"}, {{2, 0.5}, "3 1, 3 4, 4 2"}, {{0, 1.5}, ", 3 4, 4 2"})
WG__LARGE(addmm, addmm_options, "1024 1024, 1024 1024, 1024 1024", 1, 1)

static int addmm_batch(wg_call *call, uint32_t batched, int64_t samples) {
    const addmm_options *options = call->options;
    wg_tensor *c = wg__batch_input(call, batched, 0, 2, samples);
    wg_tensor *product = wg_matmul(call->inputs[1], call->inputs[2]);
    return wg__set_output(
        call, wg_add(wg_mul_scalar(c, options->beta), wg_mul_scalar(product, options->alpha)));
}

static const wg_op addmm = {
    WG__OP("addmm", 3,
           "y = beta C + alpha A B: C, which broadcasts to (M, N), and (M, K) x (K, N)."),
    .options_size = sizeof(addmm_options),
    .saves_inputs = 6,
    .differentiable = 7,
    WG__PRIMITIVE(addmm),
    .flops = addmm_flops,
    .batch = addmm_batch};

wg_tensor *wg_addmm(wg_tensor *c, wg_tensor *a, wg_tensor *b, double beta, double alpha) {
    return a && b ? wg__apply_wide_one(&addmm, 3, (wg_tensor *[]){c, a, b}, false,
                                       &(addmm_options){beta, alpha})
                  : NULL;
}

/* ---- grouped_mm: products of groups of rows, for mixtures of experts (Shazeer et al. 2017). The
 * rows are sorted by expert; the rows of expert e begin at offsets[e].
 *
 *     rows     a (T, K), b (E, K, N)  ->  (T, N)     rows offsets[e] to offsets[e + 1] times b[e]
 *     inner    a (K, T), b (T, N)     ->  (E, K, N)  columns and rows offsets[e] to offsets[e + 1]
 *
 * Each form's gradients are products of these two forms. ---- */

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
    wg__product whole; /* the product without groups */
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
    const bool experts = call->input_specs[1].ndim == 3;
    wg_tensor *a = wg__gemm_operand(call->inputs[0]), *b = wg__gemm_operand(call->inputs[1]);
    wg_tensor *offsets = wg_contiguous(call->inputs[2]), *y = call->outputs[0];
    if (a == NULL || b == NULL || offsets == NULL ||
        wg__check_offsets(call->op->name, offsets, a->spec.shape[!experts]) < 0)
        return -1;
    if (wg__spec_count(&y->spec) == 0)
        return 0;
    const int64_t count = offsets->spec.shape[0] - 1;
    groups all = {.whole = wg__product_of(y->spec.dtype, a->spec.shape[0],
                                          b->spec.shape[b->spec.ndim - 1], a->spec.shape[1],
                                          wg__matrix_of(a), wg__matrix_of(b), wg__matrix_of(y)),
                  .offsets = wg__tensor_address(offsets),
                  .experts = experts,
                  .b_step = experts ? b->strides[0] : 0,
                  .c_step = experts ? 0 : y->strides[0]};
    /* Large products run one after another, each on all threads; threads share small ones. */
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

static const wg_op grouped_mm;

static wg_tensor *grouped_mm_of(wg_tensor *a, wg_tensor *b, wg_tensor *offsets) {
    return wg_apply_one(&grouped_mm, 3, (wg_tensor *[]){a, b, offsets}, NULL);
}

/* rows: dA = G B^T by rows, dB_e = A_e^T G_e.   inner: dA_e = G_e B_e^T, dB = A^T G by rows. */
static int grouped_mm_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    wg_tensor *a = call->inputs[0], *b = call->inputs[1], *offsets = call->inputs[2];
    wg_tensor *g = cotangents[0];
    const bool experts = call->input_specs[1].ndim == 3;
    if (wg__wants(call, 0) && experts)
        gradients[0] = grouped_mm_of(g, wg_transpose(b, -1, -2), offsets);
    else if (wg__wants(call, 0))
        gradients[0] = wg_transpose(grouped_mm_of(b, wg_transpose(g, -1, -2), offsets), -1, -2);
    if (wg__wants(call, 1))
        gradients[1] = grouped_mm_of(wg_transpose(a, -1, -2), g, offsets);
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

/* Of 4 experts, one without rows, or of 8. */
static wg_tensor *sample_offsets(wg_generator *generator, int ndim, const int64_t *shape) {
    static const int64_t four[] = {0, 2, 2, 5, 6};
    static const int64_t eight[] = {0, 300, 500, 756, 1000, 1300, 1500, 1800, 2048};
    (void)generator;
    return wg_from_array(WG_I64, ndim, shape, shape[0] == 5 ? four : eight);
}

/* Both forms; and 2^31 operations. */
WG__SHAPES(grouped_mm, (wg__sample_normal, wg__sample_normal, sample_offsets), "6 3, 4 3 2, 5",
           "3 6, 6 2, 5")
WG__LARGE_BY(grouped_mm, int, (wg__sample_f32, wg__sample_f32, sample_offsets),
             "2048 512, 8 512 1024, 9", 0)

static const wg_op grouped_mm = {
    WG__OP("grouped_mm", 3,
           "(T, K) x (E, K, N), offsets (E + 1) i64 -> (T, N): rows offsets[e] to offsets[e + 1] "
           "times matrix e; or (K, T) x (T, N) -> (E, K, N): the products over those rows alone."),
    .saves_inputs = 7, .differentiable = 3, WG__PRIMITIVE(grouped_mm), .flops = grouped_mm_flops};

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

const wg__op_table wg__ops_matmul =
    WG__OP_TABLE(&matmul, &linear, &outer, &dot, &addmm, &grouped_mm);
