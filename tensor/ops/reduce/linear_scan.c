/* The linear recurrence, of which running products take their gradients. */
#include "tensor/ops/registry.h"
#include "tensor/ops/reduce/scan.h"

/* ---- linear_scan: y_i = a_i y_(i-1) + b_i, y_0 = b_0.   With s_i = g_i + a_(i+1) s_(i+1), which
 * is one from the other end: da_i = s_i y_(i-1), db = s. ---- */

#define LINEAR_SCAN(NAME, TYPE, READ, WRITE)                                                       \
    static inline void NAME##_lines(const wg__scan_lines *at, int64_t width) {                     \
        const TYPE *a = at->x[0], *b = at->x[1];                                                   \
        TYPE *y = at->y[0];                                                                        \
        double last[WG__SCAN_WIDTH];                                                               \
        for (int64_t l = 0; l < width; l++) {                                                      \
            last[l] = (double)READ(b[l]);                                                          \
            y[l] = (TYPE)WRITE(last[l]);                                                           \
        }                                                                                          \
        for (int64_t i = 1; i < at->n; i++)                                                        \
            for (int64_t l = 0; l < width; l++) {                                                  \
                const int64_t k = i * at->step + l;                                                \
                last[l] = (double)READ(a[k]) * last[l] + (double)READ(b[k]);                       \
                y[k] = (TYPE)WRITE(last[l]);                                                       \
            }                                                                                      \
    }                                                                                              \
    WG__ONE_OR_MORE(NAME)

LINEAR_SCAN(linear_scan_f32, float, , )
LINEAR_SCAN(linear_scan_f64, double, , )
LINEAR_SCAN(linear_scan_bf16, uint16_t, wg__bf16_to_f32, wg__f64_to_bf16)

static int linear_scan_infer(wg_call *call) {
    if (wg__infer_float(call) < 0 || wg__check_same_dtype(call, 0, 1) < 0)
        return -1;
    if (!wg__same_shape(&call->input_specs[0], &call->input_specs[1]))
        return wg__op_fail(call, WG_ERROR_SHAPE, "wanted a and b of one shape; expand one of them");
    return 0;
}

static int linear_scan_forward(wg_call *call) {
    static const wg__scan_kernel kernels[WG_DTYPE_COUNT] = {
        [WG_F32] = linear_scan_f32, [WG_F64] = linear_scan_f64, [WG_BF16] = linear_scan_bf16};
    return wg__scan(call, kernels);
}

static const wg_op linear_scan;

wg_tensor *wg__recurrence(wg_tensor *a, wg_tensor *b, int axis, bool reverse) {
    return wg_apply_one(&linear_scan, 2, (wg_tensor *[]){a, b}, &(wg__scan_options){axis, reverse});
}

static int linear_scan_vjp(wg_call *call, wg_tensor *const *cotangents, wg_tensor **gradients) {
    const wg__scan_options *options = call->options;
    wg_tensor *next = wg__shifted(call->inputs[0], options, true, 0);
    wg_tensor *s = wg__recurrence(next, cotangents[0], options->axis, !options->reverse);
    if (wg__wants(call, 0))
        gradients[0] = wg_mul(s, wg__shifted(call->outputs[0], options, false, 0));
    if (wg__wants(call, 1))
        gradients[1] = s;
    return wg__vjp_status();
}

static int linear_scan_jvp(wg_call *call, wg_tensor *const *tangents, wg_tensor **output_tangents) {
    const wg__scan_options *options = call->options;
    wg_tensor *change = tangents[1];
    if (tangents[0] != NULL) {
        wg_tensor *product = wg_mul(tangents[0], wg__shifted(call->outputs[0], options, false, 0));
        change = change == NULL ? product : wg_add(change, product);
    }
    output_tangents[0] = wg__recurrence(call->inputs[0], change, options->axis, options->reverse);
    return wg__vjp_status();
}

static int linear_scan_sample(int index, wg_generator *generator, wg_sample *sample) {
    const int status = wg__sample_scan(index, generator, sample, wg__sample_normal);
    if (status <= 0)
        return status;
    sample->inputs[1] = wg_randn(generator, WG_F64, wg_tensor_ndim(sample->inputs[0]),
                                 wg_tensor_shape(sample->inputs[0]));
    return wg__sample_status(sample, 2);
}

static int linear_scan_bench(wg_generator *generator, wg_sample *sample) {
    if (wg__bench_scan(generator, sample) < 0)
        return -1;
    sample->inputs[1] = sample->inputs[0];
    return wg__sample_status(sample, 2);
}

static double linear_scan_flops(const wg_call *call) {
    return 2 * wg__scan_flops(call);
}

static const wg_op linear_scan = {
    .name = "linear_scan",
    .doc = "y_i = a_i y_(i-1) + b_i along one axis, from y_0 = b_0.",
    .min_inputs = 2,
    .max_inputs = 2,
    .output_count = 1,
    .options_size = sizeof(wg__scan_options),
    .saves_inputs = 1,
    .saves_outputs = 1,
    .differentiable = 3,
    .infer = linear_scan_infer,
    .forward = linear_scan_forward,
    .vjp = linear_scan_vjp,
    .jvp = linear_scan_jvp,
    .sample = linear_scan_sample,
    .bench = linear_scan_bench,
    .flops = linear_scan_flops,
};

/* The operands in one floating dtype and one shape; false after an error. */
static bool meet(wg_tensor **a, wg_tensor **b) {
    wg_spec spec;
    if (!wg__promote(a, b))
        return false;
    if (!wg_dtype_is_float((*a)->spec.dtype)) {
        *a = wg_cast(*a, WG_F32);
        *b = wg_cast(*b, WG_F32);
    }
    if (*a == NULL || *b == NULL)
        return false;
    if (wg__broadcast(&(*a)->spec, &(*b)->spec, &spec)) { /* else the record says what is wrong */
        *a = wg_expand(*a, spec.ndim, spec.shape);
        *b = wg_expand(*b, spec.ndim, spec.shape);
    }
    return *a != NULL && *b != NULL;
}

wg_tensor *wg_linear_scan(wg_tensor *a, wg_tensor *b, int axis) {
    wg_tensor *y = NULL;
    wg_scope scope;
    wg_scope_begin(&scope);
    if (meet(&a, &b)) {
        const int along = wg__axis(axis, a->spec.ndim, linear_scan.name);
        y = along < 0 ? NULL : wg__recurrence(a, b, along, false);
    }
    return wg_scope_end(&scope, y);
}

static const wg_op *const ops[] = {&linear_scan};

const wg__op_family wg__family_linear_scan = {ops, sizeof ops / sizeof *ops};
