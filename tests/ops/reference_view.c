/* Views, joins and copies against PyTorch: tests/fixtures/ops/view.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *reshape(const reference_case *c, wg_tensor *const *in) {
    int64_t shape[REFERENCE_LIST];
    const int ndim = reference_integers(c, "shape", shape);
    return wg_reshape(in[0], ndim, shape);
}

static wg_tensor *permute(const reference_case *c, wg_tensor *const *in) {
    int64_t order[REFERENCE_LIST];
    const int count = reference_integers(c, "order", order);
    return wg_permute(in[0], count, order);
}

static wg_tensor *transpose(const reference_case *c, wg_tensor *const *in) {
    return wg_transpose(in[0], (int)reference_integer(c, "axis_a"),
                        (int)reference_integer(c, "axis_b"));
}

static wg_tensor *expand(const reference_case *c, wg_tensor *const *in) {
    int64_t shape[REFERENCE_LIST];
    const int ndim = reference_integers(c, "shape", shape);
    return wg_expand(in[0], ndim, shape);
}

static wg_tensor *slice(const reference_case *c, wg_tensor *const *in) {
    return wg_slice(in[0], (int)reference_integer(c, "axis"), reference_integer(c, "start"),
                    reference_integer(c, "stop"), reference_integer(c, "step"));
}

static wg_tensor *select_index(const reference_case *c, wg_tensor *const *in) {
    return wg_select(in[0], (int)reference_integer(c, "axis"), reference_integer(c, "index"));
}

static wg_tensor *squeeze(const reference_case *c, wg_tensor *const *in) {
    return wg_squeeze(in[0], (int)reference_integer(c, "axis"));
}

static wg_tensor *unsqueeze(const reference_case *c, wg_tensor *const *in) {
    return wg_unsqueeze(in[0], (int)reference_integer(c, "axis"));
}

static int split(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    int64_t sizes[REFERENCE_LIST];
    const int count = reference_integers(c, "sizes", sizes);
    return wg_split(in[0], (int)reference_integer(c, "axis"), count, sizes, outputs);
}

static int chunk(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_chunk(in[0], (int)reference_integer(c, "axis"), (int)reference_integer(c, "count"),
                    outputs);
}

static wg_tensor *cat(const reference_case *c, wg_tensor *const *in) {
    return wg_cat(c->input_count, in, (int)reference_integer(c, "axis"));
}

static wg_tensor *stack(const reference_case *c, wg_tensor *const *in) {
    return wg_stack(c->input_count, in, (int)reference_integer(c, "axis"));
}

static wg_tensor *tril(const reference_case *c, wg_tensor *const *in) {
    return wg_tril(in[0], reference_integer(c, "diagonal"));
}

static wg_tensor *triu(const reference_case *c, wg_tensor *const *in) {
    return wg_triu(in[0], reference_integer(c, "diagonal"));
}

SUITES {
    static const reference_op table[] = {
        {"reshape", .one = reshape},
        {"permute", .one = permute},
        {"transpose", .one = transpose},
        {"expand", .one = expand},
        {"slice", .one = slice},
        {"select", .one = select_index},
        {"squeeze", .one = squeeze},
        {"unsqueeze", .one = unsqueeze},
        {"split", .call = split},
        {"chunk", .call = chunk},
        {"cat", .one = cat},
        {"stack", .one = stack},
        {"tril", .one = tril},
        {"triu", .one = triu},
        {"clone", .unary = wg_clone},
        {"contiguous", .unary = wg_contiguous},
    };
    add_reference_suite("reference_view", "ops/view.json", WG_COUNT(table), table);
}
