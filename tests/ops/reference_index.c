/* Choosing by masks and indices against PyTorch: tests/fixtures/ops/index.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *where(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_where(in[0], in[1], in[2]);
}

static wg_tensor *masked_fill(const reference_case *c, wg_tensor *const *in) {
    return wg_masked_fill(in[0], in[1], reference_number(c, "value"));
}

static wg_tensor *gather(const reference_case *c, wg_tensor *const *in) {
    return wg_gather(in[0], (int)reference_integer(c, "axis"), in[1]);
}

static wg_tensor *scatter_add(const reference_case *c, wg_tensor *const *in) {
    return wg_scatter_add(in[0], (int)reference_integer(c, "axis"), in[1], in[2]);
}

static wg_tensor *index_select(const reference_case *c, wg_tensor *const *in) {
    return wg_index_select(in[0], (int)reference_integer(c, "axis"), in[1]);
}

static wg_tensor *embedding(const reference_case *c, wg_tensor *const *in) {
    return wg_embedding_op(in[0], in[1], reference_integer(c, "padding_index"));
}

static wg_tensor *one_hot(const reference_case *c, wg_tensor *const *in) {
    return wg_one_hot(in[0], reference_integer(c, "classes"));
}

static wg_tensor *scatter(const reference_case *c, wg_tensor *const *in) {
    return wg_scatter(in[0], (int)reference_integer(c, "axis"), in[1], in[2]);
}

static wg_tensor *index_by(const reference_case *c, wg_tensor *const *in) {
    return wg_index(in[0], c->input_count - 1, in + 1);
}

static wg_tensor *index_put(const reference_case *c, wg_tensor *const *in) {
    return wg_index_put(in[0], c->input_count - 2, in + 2, in[1], reference_flag(c, "accumulate"));
}

static wg_tensor *masked_scatter(const reference_case *c, wg_tensor *const *in) {
    (void)c;
    return wg_masked_scatter(in[0], in[1], in[2]);
}

static wg_tensor *bincount(const reference_case *c, wg_tensor *const *in) {
    return wg_bincount(in[0], in[1], reference_integer(c, "min_length"));
}

static wg_tensor *searchsorted(const reference_case *c, wg_tensor *const *in) {
    return wg_searchsorted(in[0], in[1], reference_flag(c, "right"));
}

SUITES {
    static const reference_op table[] = {
        {"where", .one = where},
        {"masked_fill", .one = masked_fill},
        {"gather", .one = gather},
        {"scatter_add", .one = scatter_add},
        {"index_select", .one = index_select},
        {"embedding_op", .one = embedding},
        {"one_hot", .one = one_hot},
        {"scatter", .one = scatter},
        {"index", .one = index_by},
        {"index_put", .one = index_put},
        {"masked_select", .binary = wg_masked_select},
        {"masked_scatter", .one = masked_scatter},
        {"nonzero", .unary = wg_nonzero},
        {"bincount", .one = bincount},
        {"searchsorted", .one = searchsorted},
    };
    add_reference_suite("reference_index", "ops/index.json", WG_COUNT(table), table);
}
