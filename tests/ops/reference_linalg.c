/* Products, ops on rows, and losses against PyTorch and NumPy. The cases of a suite are in
 * tests/fixtures/ops/SUITE.json, which SUITE.py writes: linear, rows, loss. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

/* ---- Products ---- */

static wg_tensor *linear(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_linear_op(in[0], in[1], in[2]);
}

static wg_tensor *einsum(const reference_case *c, wg_tensor *const *in) {
    return wg_einsum(reference_text(c, "equation"), c->input_count, in);
}

static wg_tensor *tensordot(const reference_case *c, wg_tensor *const *in) {
    int64_t axes_a[REFERENCE_LIST], axes_b[REFERENCE_LIST];
    const int count = reference_integers(c, "axes_a", axes_a);
    reference_integers(c, "axes_b", axes_b);
    return wg_tensordot(in[0], in[1], count, axes_a, axes_b);
}

static wg_tensor *addmm(const reference_case *c, wg_tensor *const *in) {
    return wg_addmm(in[0], in[1], in[2], reference_number(c, "beta"), reference_number(c, "alpha"));
}

static wg_tensor *grouped_mm(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_grouped_mm(in[0], in[1], in[2]);
}

static wg_tensor *cdist(const reference_case *c, wg_tensor *const *in) {
    return wg_cdist(in[0], in[1], reference_number(c, "p"));
}

static const reference_op linear_ops[] = {
    {"grouped_mm", .one = grouped_mm}, {"cdist", .one = cdist},   {"matmul", .binary = wg_matmul},
    {"linear", .one = linear},         {"einsum", .one = einsum}, {"tensordot", .one = tensordot},
    {"outer", .binary = wg_outer},     {"dot", .binary = wg_dot}, {"addmm", .one = addmm},
};

/* ---- Softmax, log-softmax, and normalisation of rows and channels ---- */

static wg_tensor *softmax(const reference_case *c, wg_tensor *const *in) {
    return wg_softmax(in[0], (int)reference_integer(c, "axis"));
}

static wg_tensor *log_softmax(const reference_case *c, wg_tensor *const *in) {
    return wg_log_softmax(in[0], (int)reference_integer(c, "axis"));
}

static wg_tensor *layer_norm(const reference_case *c, wg_tensor *const *in) {
    return wg_layer_norm_op(in[0], in[1], in[2], reference_number(c, "eps"));
}

static int batch_norm(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_batch_norm_op(in[0], in[1], in[2], reference_number(c, "eps"), &outputs[0],
                            &outputs[1], &outputs[2]);
}

static wg_tensor *normalize_channels(const reference_case *c, wg_tensor *const *in) {
    return wg_normalize_channels(in[0], in[1], in[2], in[3], in[4], reference_number(c, "eps"));
}

static const reference_op rows_ops[] = {
    {"softmax", .one = softmax},
    {"log_softmax", .one = log_softmax},
    {"layer_norm", .one = layer_norm},
    {"batch_norm", .call = batch_norm},
    {"normalize_channels", .one = normalize_channels},
};

/* ---- Losses ---- */

static wg_reduction reduction(const reference_case *c) {
    return (wg_reduction)reference_integer(c, "reduction");
}

typedef wg_tensor *(*row_loss)(wg_tensor *x, wg_tensor *target, int64_t ignore_index,
                               const wg_cross_entropy_options *options);

static wg_tensor *of_rows(row_loss f, const reference_case *c, wg_tensor *const *in) {
    const wg_cross_entropy_options options = {.reduction = reduction(c),
                                              .label_smoothing =
                                                  reference_number(c, "label_smoothing"),
                                              .weight = c->input_count > 2 ? in[2] : NULL};
    return f(in[0], in[1], reference_integer(c, "ignore_index"), &options);
}

static wg_tensor *cross_entropy(const reference_case *c, wg_tensor *const *in) {
    return of_rows(wg_cross_entropy, c, in);
}

static wg_tensor *linear_cross_entropy(const reference_case *c, wg_tensor *const *in) {
    const wg_cross_entropy_options options = {.reduction = reduction(c),
                                              .label_smoothing =
                                                  reference_number(c, "label_smoothing"),
                                              .weight = in[4]};
    return wg_linear_cross_entropy(in[0], in[1], in[2], in[3], reference_integer(c, "ignore_index"),
                                   &options);
}

static wg_tensor *nll_loss(const reference_case *c, wg_tensor *const *in) {
    return of_rows(wg_nll_loss, c, in);
}

static wg_tensor *mse_loss(const reference_case *c, wg_tensor *const *in) {
    return wg_mse_loss(in[0], in[1], reduction(c));
}

static wg_tensor *l1_loss(const reference_case *c, wg_tensor *const *in) {
    return wg_l1_loss(in[0], in[1], reduction(c));
}

static wg_tensor *smooth_l1_loss(const reference_case *c, wg_tensor *const *in) {
    return wg_smooth_l1_loss(in[0], in[1], reference_number(c, "beta"), reduction(c));
}

static wg_tensor *bce_with_logits(const reference_case *c, wg_tensor *const *in) {
    return wg_bce_with_logits(in[0], in[1], in[2], in[3], reduction(c));
}

static wg_tensor *kl_div(const reference_case *c, wg_tensor *const *in) {
    return wg_kl_div(in[0], in[1], reference_flag(c, "log_target"), reduction(c));
}

static wg_tensor *cosine_similarity(const reference_case *c, wg_tensor *const *in) {
    return wg_cosine_similarity(in[0], in[1], (int)reference_integer(c, "axis"),
                                reference_number(c, "eps"));
}

static const reference_op loss_ops[] = {
    {"cross_entropy", .one = cross_entropy},
    {"linear_cross_entropy", .one = linear_cross_entropy},
    {"nll_loss", .one = nll_loss},
    {"mse_loss", .one = mse_loss},
    {"l1_loss", .one = l1_loss},
    {"smooth_l1_loss", .one = smooth_l1_loss},
    {"bce_with_logits", .one = bce_with_logits},
    {"kl_div", .one = kl_div},
    {"cosine_similarity", .one = cosine_similarity},
};

SUITES {
    add_reference_suite("linear", linear_ops);
    add_reference_suite("rows", rows_ops);
    add_reference_suite("loss", loss_ops);
}
