/* Quantization of weights: the formats of a row of numbers, as in ggml and GGUF.
 *
 *     bf16     the upper half of each f32                                        16 bits a number
 *     q8_0     blocks of 32 numbers: an f16 scale and 32 signed bytes           8.5 bits
 *     q4_0     blocks of 32 numbers: an f16 scale and 32 numbers of 4 bits,     4.5 bits
 *              stored plus 8. Byte i has number i in its low bits and number
 *              i + 16 in its high bits.
 *     q8_0x16, q4_0x16   the same blocks, interleaved in groups of 16 rows, the fastest layout for
 *              products
 *
 * Quantized rows are the bytes of a u8 tensor; see wg_quantize, wg_dequantize and
 * wg_quantized_linear in ops.h. The x16 formats have the same number of bytes, but a group of 16
 * rows is laid out as below, so a row of the tensor is not a row of the weight. Rows beyond the
 * last whole group are stored last, as without x16.
 *
 *     block 0 of 16 rows: 16 scales | 4 bytes of row 0 | of row 1 ... | the next 4 of row 0 | ...
 *     block 1 ... */
#ifndef WG_TENSOR_QUANTIZE_H
#define WG_TENSOR_QUANTIZE_H

#include <stdint.h>

#include "../base/api.h"

WG_BEGIN_DECLS

typedef enum wg_quantization {
    WG_QUANTIZATION_BF16,
    WG_QUANTIZATION_Q8_0,
    WG_QUANTIZATION_Q4_0,
    WG_QUANTIZATION_Q8_0X16,
    WG_QUANTIZATION_Q4_0X16,
    WG_QUANTIZATION_COUNT
} wg_quantization;

/* "bf16", "q8_0", "q4_0", "q8_0x16", "q4_0x16"; NULL outside the enum. */
WG_API const char *wg_quantization_name(wg_quantization quantization);

/* The quantization of that name, or -1 (no error is recorded). */
WG_API int wg_quantization_find(const char *name);

WG_END_DECLS

#endif
