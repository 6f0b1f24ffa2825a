/* Numbers kept small: how a row of f32 is quantized into fewer bytes, as ggml and GGUF keep
 * weights.
 *
 *     bf16     the upper half of each f32                                16 bits a number
 *     q8_0     blocks of 32: a half, the scale, and 32 signed bytes       8.5
 *     q4_0     blocks of 32: a half, the scale, and 32 numbers of 4 bits, less 8; those of the
 *              block's first half in the low bits of 16 bytes             4.5
 *     q8_0x16, q4_0x16   the same blocks, but of 16 rows side by side: what products read fastest
 *
 * Quantized rows are the bytes of a u8 tensor: wg_quantize, wg_dequantize and wg_quantized_linear
 * of ops.h. Those side by side have the same number of bytes, and rows that are left over stand at
 * the end, as without x16; but a row is no more a row of the tensor:
 *
 *     block 0 of 16 rows: 16 halves | 4 bytes of row 0 | of row 1 ... | the next 4 of row 0 | ...
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
