/* Dropout as layers use it: active in training, drawing from the generator of the module's root. */
#ifndef WG_NN_DROPOUT_H
#define WG_NN_DROPOUT_H

#include "module.h"

WG_BEGIN_DECLS

/* In training each element of x is zeroed with probability p and the rest scaled by 1 / (1 - p)
 * (Srivastava et al. 2014); in evaluation, or with p = 0, x itself comes back and nothing is drawn.
 * [scope; ARGUMENT outside 0 <= p < 1, DTYPE] */
WG_API wg_tensor *wg_dropout(wg_module *module, wg_tensor *x, double p);

WG_END_DECLS

#endif
