/* Dropout as layers use it. */
#include "nn/dropout.h"

#include "nn/internal.h"
#include "tensor/ops.h"

wg_tensor *wg_dropout(wg_module *module, wg_tensor *x, double p) {
    if (wg__check_probability("dropout", "p", p) < 0)
        return NULL;
    if (!x || p == 0 || !wg_module_is_training(module))
        return x;
    wg_generator *generator = wg_module_generator(module);
    return wg_dropout_op(x, p, generator->seed, generator->offset++);
}
