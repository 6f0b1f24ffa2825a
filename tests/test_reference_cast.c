/* Casts against PyTorch: tests/fixtures/ops/cast.py has the cases. */
#include "tensor/ops.h"

#include "tests/reference.h"

static wg_tensor *cast(const reference_case *c, wg_tensor *const *in) {
    return wg_cast(in[0], reference_dtype(c, "dtype"));
}

int main(void) {
    static const reference_op table[] = {{"cast", .one = cast}};
    return wg_run_reference("reference_cast", "ops/cast.json", WG_COUNT(table), table);
}
