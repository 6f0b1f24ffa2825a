/* What the library was asked for, counted: see profile.h. */
#include "tensor/profile.h"

#include "tensor/gemm.h"

double wg_product_flops(void) {
    return wg__product_flops;
}
