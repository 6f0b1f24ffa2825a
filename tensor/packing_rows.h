/* A row of numbers from and to its packed bytes (packing.h), on the calling thread. */
#ifndef WG_TENSOR_PACKING_ROWS_H
#define WG_TENSOR_PACKING_ROWS_H

#include "tensor/packing.h"

/* Halves: 1 sign, 5 exponent and 10 fraction bits   (IEEE 754 binary16). To nearest, ties to even;
 * what is too large becomes infinite, a NaN stays one. */
float wg__half_to_f32(uint16_t half);
uint16_t wg__f32_to_half(float value);

/* `count` numbers, whole blocks. Integers are rounded as ggml's reference has it. */
void wg__pack_row(wg_packing packing, int64_t count, const float *numbers, uint8_t *bytes);
void wg__unpack_row(wg_packing packing, int64_t count, const uint8_t *bytes, float *numbers);

#endif
