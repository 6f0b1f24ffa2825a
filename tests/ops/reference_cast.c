/* Casts against PyTorch: tests/fixtures/ops/cast.py has the cases. */
#include "tensor/ops.h"

#include "tests/ops/reference.h"

static wg_tensor *cast(const reference_case *c, wg_tensor *const *in) {
    return wg_cast(in[0], reference_dtype(c, "dtype"));
}

SUITES {
    static const reference_op table[] = {{"cast", .one = cast}};
    add_reference_suite("reference_cast", "ops/cast.json", WG_COUNT(table), table);
}
