/* Reading, writing and converting elements. */
#ifndef WG_TENSOR_CONVERT_H
#define WG_TENSOR_CONVERT_H

#include "tensor/internal.h"

#include <string.h>

static inline float wg__bf16_to_f32(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest, ties to even; a NaN stays one. */
static inline uint16_t wg__f32_to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* By way of f32, as wg_cast. */
static inline uint16_t wg__f64_to_bf16(double value) {
    return wg__f32_to_bf16((float)value);
}

/* The element at that address as a double. */
double wg__element(wg_dtype dtype, const void *address);

/* Writes a double there, by the rules of wg_cast. */
void wg__set_element(wg_dtype dtype, void *address, double value);

/* Copies every element of src, broadcast to the shape of dst and cast to its dtype by the rules of
 * wg_cast. The caller has checked the shapes. */
void wg__convert(wg_tensor *dst, const wg_tensor *src);

#endif
