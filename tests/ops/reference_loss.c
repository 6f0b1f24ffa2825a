/* Losses against PyTorch: tests/fixtures/ops/loss.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

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

SUITES {
    static const reference_op table[] = {
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
    add_reference_suite("reference_loss", "ops/loss.json", WG_COUNT(table), table);
}
