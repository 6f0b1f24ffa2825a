/* The families of built-in ops, in the order of ops.h. Each table stands at the foot of its file. */
#ifndef WG_TENSOR_OPS_FAMILIES_H
#define WG_TENSOR_OPS_FAMILIES_H

#include "tensor/internal.h"

#endif
