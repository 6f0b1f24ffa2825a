/* Scans against PyTorch: tests/fixtures/ops/scan.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static int axis_of(const reference_case *c) {
    return (int)reference_integer(c, "axis");
}

static wg_tensor *cumsum(const reference_case *c, wg_tensor *const *in) {
    return wg_cumsum(in[0], axis_of(c));
}

static wg_tensor *cumprod(const reference_case *c, wg_tensor *const *in) {
    return wg_cumprod(in[0], axis_of(c));
}

static wg_tensor *linear_scan(const reference_case *c, wg_tensor *const *in) {
    return wg_linear_scan(in[0], in[1], axis_of(c));
}

static int cummax(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_cummax(in[0], axis_of(c), &outputs[0], &outputs[1]);
}

static int cummin(const reference_case *c, wg_tensor *const *in, wg_tensor **outputs) {
    return wg_cummin(in[0], axis_of(c), &outputs[0], &outputs[1]);
}

SUITES {
    static const reference_op table[] = {
        {"cumsum", .one = cumsum},  {"cumprod", .one = cumprod},         {"cummax", .call = cummax},
        {"cummin", .call = cummin}, {"linear_scan", .one = linear_scan},
    };
    add_reference_suite("reference_scan", "ops/scan.json", WG_COUNT(table), table);
}
