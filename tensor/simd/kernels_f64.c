/* The table of f64 kernels for the instruction set that this file is compiled for. */
#define WG__BITS 64
#define WG__TABLE WG__JOIN(wg__simd_f64_, WG_SIMD)
#include "tensor/simd/table.h"
