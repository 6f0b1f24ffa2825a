/* Sorting against PyTorch and NumPy: tests/fixtures/ops/sort.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static int axis_of(const reference_case *c) {
    return (int)reference_integer(c, "axis");
}

static int sort(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_sort(in[0], axis_of(c), reference_flag(c, "descending"), &outputs[0], &outputs[1]);
}

static wg_tensor *argsort(const reference_case *c, wg_tensor *const *in) {
    return wg_argsort(in[0], axis_of(c), reference_flag(c, "descending"));
}

static int topk(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_topk(in[0], reference_integer(c, "k"), axis_of(c), reference_flag(c, "largest"),
                   &outputs[0], &outputs[1]);
}

static wg_tensor *median(const reference_case *c, wg_tensor *const *in) {
    return wg_median(in[0], axis_of(c), reference_flag(c, "keepdim"));
}

static int unique(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    (void)c;
    return wg_unique(in[0], &outputs[0], &outputs[1], &outputs[2]);
}

SUITES {
    static const reference_op table[] = {
        {"sort", .call = sort},    {"argsort", .one = argsort}, {"topk", .call = topk},
        {"median", .one = median}, {"unique", .call = unique},
    };
    add_reference_suite("reference_sort", "ops/sort.json", WG_COUNT(table), table);
}
