/* A row of numbers from and to its quantized bytes (quantize.h), on the calling thread. */
#ifndef WG_TENSOR_QUANTIZE_ROWS_H
#define WG_TENSOR_QUANTIZE_ROWS_H

#include "tensor/quantize.h"

/* Halves: 1 sign, 5 exponent and 10 fraction bits   (IEEE 754 binary16). To nearest, ties to even;
 * what is too large becomes infinite, a NaN stays one. */
float wg__half_to_f32(uint16_t half);
uint16_t wg__f32_to_half(float value);

/* Of blocks of integers: how many numbers they have; bytes of the scale, which comes first, and of
 * a block at most. */
enum { WG__BLOCK = 32, WG__BLOCK_SCALE = 2, WG__MOST_BLOCK_BYTES = WG__BLOCK_SCALE + WG__BLOCK };

/* The numbers in a block, of which a row is a multiple (1 for bf16), and the bytes of one. 0
 * outside the enum. */
int64_t wg__quantization_block(wg_quantization quantization);
int64_t wg__quantization_block_bytes(wg_quantization quantization);

/* The quantization with the same blocks, side by side: q8_0x16 of q8_0. What has none, and what is
 * outside the enum, is given back. */
wg_quantization wg__quantization_side_by_side(wg_quantization quantization);

/* The quantization of a row by itself: q8_0 of q8_0x16. */
wg_quantization wg__quantization_of_a_row(wg_quantization quantization);

/* `count` numbers, whole blocks, of a row by itself. Integers are rounded as ggml's reference has
 * it. */
void wg__quantize_row(wg_quantization quantization, int64_t count, const float *numbers,
                      uint8_t *bytes);
void wg__dequantize_row(wg_quantization quantization, int64_t count, const uint8_t *bytes,
                        float *numbers);

/* So many rows stand side by side, as quantize.h draws it. A block of one of them, as it is in a
 * row by itself, into and out of the block of a group; the quantization is that of a row. */
#define WG__GROUP 16
void wg__group_put(wg_quantization quantization, int64_t row, const uint8_t *bytes, uint8_t *group);
void wg__group_get(wg_quantization quantization, int64_t row, const uint8_t *group, uint8_t *bytes);

#endif
