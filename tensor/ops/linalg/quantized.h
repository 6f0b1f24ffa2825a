/* What the ops on quantized rows share (quantized.c). */
#ifndef WG_TENSOR_OPS_LINALG_QUANTIZED_H
#define WG_TENSOR_OPS_LINALG_QUANTIZED_H

#include "tensor/internal.h"
#include "tensor/quantize.h"

typedef struct wg__quantized_options {
    wg_quantization quantization;
} wg__quantized_options;

wg_quantization wg__quantization_of(const wg_call *call);

/* -1 with ARGUMENT for a quantization outside the enum. */
int wg__check_quantization(const wg_call *call);

/* The numbers in a row of so many bytes, or -1 with SHAPE. */
int64_t wg__dequantized_columns(const wg_call *call, int64_t bytes);

/* The quantized rows of an input as kernels take them: those side by side next to each other. NULL
 * for lack of memory. */
wg_tensor *wg__dense_bytes(const wg_call *call, int input);

/* For samples: options for each quantization, and normally distributed rows (rows, columns), f32.
 */
extern const wg__quantized_options wg__quantized_samples[WG_QUANTIZATION_COUNT];
wg_tensor *wg__sample_rows(wg_generator *generator, int64_t rows, int64_t columns);

#endif
