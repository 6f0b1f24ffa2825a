/* Quantizing and dequantizing a row (quantize.h) on the calling thread. */
#ifndef WG_TENSOR_QUANTIZE_ROWS_H
#define WG_TENSOR_QUANTIZE_ROWS_H

#include "tensor/quantize.h"

/* f16: 1 sign, 5 exponent and 10 fraction bits   (IEEE 754 binary16). Rounds to nearest, ties to
 * even; a number that is too large becomes infinite, NaN stays NaN. */
float wg__half_to_f32(uint16_t half);
uint16_t wg__f32_to_half(float value);

/* Blocks of integers: the numbers in a block, the bytes of its scale, which comes first, and the
 * most bytes of a block. */
enum { WG__BLOCK = 32, WG__BLOCK_SCALE = 2, WG__MOST_BLOCK_BYTES = WG__BLOCK_SCALE + WG__BLOCK };

/* The numbers in a block (1 for bf16) and its bytes; 0 outside the enum. A row has whole blocks. */
int64_t wg__quantization_block(wg_quantization quantization);
int64_t wg__quantization_block_bytes(wg_quantization quantization);

/* The quantization with the same blocks, interleaved: q8_0x16 for q8_0. Others, and values outside
 * the enum, are returned unchanged. */
wg_quantization wg__quantization_side_by_side(wg_quantization quantization);

/* The quantization of a single row: q8_0 for q8_0x16. */
wg_quantization wg__quantization_of_a_row(wg_quantization quantization);

/* Quantize and dequantize a single row of `count` numbers, whole blocks. Integers are rounded as in
 * ggml's reference code. */
void wg__quantize_row(wg_quantization quantization, int64_t count, const float *numbers,
                      uint8_t *bytes);
void wg__dequantize_row(wg_quantization quantization, int64_t count, const uint8_t *bytes,
                        float *numbers);

/* The rows in an interleaved group (drawn in quantize.h). The functions copy a block of row `row`
 * into and out of a block of the group. `quantization` is q8_0 or q4_0, without x16. */
#define WG__GROUP 16
void wg__group_put(wg_quantization quantization, int64_t row, const uint8_t *bytes, uint8_t *group);
void wg__group_get(wg_quantization quantization, int64_t row, const uint8_t *group, uint8_t *bytes);

#endif
