/* What the losses share. */
#ifndef WG_TENSOR_OPS_LOSS_LOSS_H
#define WG_TENSOR_OPS_LOSS_LOSS_H

#include "tensor/ops.h"

/* -1 with ARGUMENT for a value outside the enum. */
int wg__check_reduction(wg_reduction reduction, const char *where);

#endif
