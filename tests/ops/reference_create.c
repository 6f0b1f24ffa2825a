/* Tensors out of numbers against NumPy: tests/fixtures/ops/create.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *arange(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_arange(reference_dtype(c, "dtype"), reference_number(c, "start"),
                     reference_number(c, "stop"), reference_number(c, "step"));
}

static wg_tensor *linspace(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_linspace(reference_dtype(c, "dtype"), reference_number(c, "start"),
                       reference_number(c, "stop"), reference_integer(c, "count"));
}

static wg_tensor *logspace(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_logspace(reference_dtype(c, "dtype"), reference_number(c, "start"),
                       reference_number(c, "stop"), reference_integer(c, "count"),
                       reference_number(c, "base"));
}

static wg_tensor *eye(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_eye(reference_dtype(c, "dtype"), reference_integer(c, "rows"),
                  reference_integer(c, "columns"));
}

static wg_tensor *tri(const reference_case *c, wg_tensor *const *in) {
    (void)in;
    return wg_tri(reference_dtype(c, "dtype"), reference_integer(c, "rows"),
                  reference_integer(c, "columns"), reference_integer(c, "diagonal"));
}

SUITES {
    static const reference_op table[] = {
        {"arange", .one = arange}, {"linspace", .one = linspace}, {"logspace", .one = logspace},
        {"eye", .one = eye},       {"tri", .one = tri},
    };
    add_reference_suite("reference_create", "ops/create.json", WG_COUNT(table), table);
}
