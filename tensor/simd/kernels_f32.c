/* The table of f32 kernels for the instruction set that this file is compiled for. */
#define WG__BITS 32
#define WG__TABLE WG__JOIN(wg__simd_f32_, WG_SIMD)
#include "tensor/simd/table.h"
