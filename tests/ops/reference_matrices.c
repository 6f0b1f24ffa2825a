/* Linear algebra against PyTorch. The cases are in tests/fixtures/ops/matrices.json, which
 * matrices.py writes: what has either sign is squared there and here. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *solve(const reference_case *c, wg_tensor *const *in) {
    return wg_solve(in[0], in[1], reference_flag(c, "from_right"));
}

static wg_tensor *solve_triangular(const reference_case *c, wg_tensor *const *in) {
    return wg_solve_triangular(in[0], in[1], reference_flag(c, "upper"), reference_flag(c, "unit"),
                               reference_flag(c, "from_right"));
}

static int slogdet(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    (void)c;
    return wg_slogdet(in[0], &outputs[0], &outputs[1]);
}

static wg_tensor *cholesky(const reference_case *c, wg_tensor *const *in) {
    return wg_cholesky(in[0], reference_flag(c, "upper"));
}

static int eigh(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    (void)c;
    wg_tensor *vectors = NULL;
    if (wg_eigh(in[0], &outputs[0], &vectors) < 0)
        return -1;
    return (outputs[1] = wg_square(vectors)) ? 0 : -1;
}

static int qr(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    wg_tensor *q = NULL, *r = NULL;
    if (wg_qr(in[0], reference_flag(c, "complete"), &q, &r) < 0)
        return -1;
    outputs[0] = wg_square(q);
    outputs[1] = wg_square(r);
    return outputs[0] && outputs[1] ? 0 : -1;
}

static int svd(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    (void)c;
    wg_tensor *u = NULL, *vt = NULL;
    if (wg_svd(in[0], false, &u, &outputs[1], &vt) < 0)
        return -1;
    outputs[0] = wg_square(u);
    outputs[2] = wg_square(vt);
    return outputs[0] && outputs[2] ? 0 : -1;
}

static wg_tensor *pinv(const reference_case *c, wg_tensor *const *in) {
    return wg_pinv(in[0], reference_number(c, "rtol"));
}

static wg_tensor *matrix_power(const reference_case *c, wg_tensor *const *in) {
    return wg_matrix_power(in[0], reference_integer(c, "n"));
}

static wg_tensor *matrix_norm(const reference_case *c, wg_tensor *const *in) {
    return wg_matrix_norm(in[0], (wg_matrix_norm_order)reference_integer(c, "order"),
                          reference_flag(c, "keepdim"));
}

static const reference_op matrices_ops[] = {
    {"solve", .one = solve},
    {"solve_triangular", .one = solve_triangular},
    {"inv", .unary = wg_inv},
    {"det", .unary = wg_det},
    {"slogdet", .call = slogdet},
    {"cholesky", .one = cholesky},
    {"eigh", .call = eigh},
    {"eigvalsh", .unary = wg_eigvalsh},
    {"qr", .call = qr},
    {"svd", .call = svd},
    {"svdvals", .unary = wg_svdvals},
    {"lstsq", .binary = wg_lstsq},
    {"pinv", .one = pinv},
    {"matrix_power", .one = matrix_power},
    {"matrix_exp", .unary = wg_matrix_exp},
    {"matrix_norm", .one = matrix_norm},
};

SUITES {
    add_reference_suite("matrices", matrices_ops);
}
