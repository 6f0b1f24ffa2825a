/* Quantizing and dequantizing rows of weights (quantize_rows.h), f16, and interleaved rows. */
#include "tensor/quantize.h"

#include <math.h>
#include <string.h>

#include "tensor/internal.h"
#include "tensor/quantize_rows.h"

static const struct {
    const char *name;
    int64_t block, bytes;
} quantizations[] = {
    [WG_QUANTIZATION_BF16] = {"bf16", 1, 2},
    [WG_QUANTIZATION_Q8_0] = {"q8_0", WG__BLOCK, WG__BLOCK_SCALE + WG__BLOCK},
    [WG_QUANTIZATION_Q4_0] = {"q4_0", WG__BLOCK, WG__BLOCK_SCALE + WG__BLOCK / 2},
    [WG_QUANTIZATION_Q8_0X16] = {"q8_0x16", WG__BLOCK, WG__BLOCK_SCALE + WG__BLOCK},
    [WG_QUANTIZATION_Q4_0X16] = {"q4_0x16", WG__BLOCK, WG__BLOCK_SCALE + WG__BLOCK / 2},
};

const char *wg_quantization_name(wg_quantization quantization) {
    return (unsigned)quantization < WG_QUANTIZATION_COUNT ? quantizations[quantization].name : NULL;
}

int wg_quantization_find(const char *name) {
    for (int i = 0; name && i < WG_QUANTIZATION_COUNT; i++)
        if (strcmp(name, quantizations[i].name) == 0)
            return i;
    return -1;
}

int64_t wg__quantization_block(wg_quantization quantization) {
    return (unsigned)quantization < WG_QUANTIZATION_COUNT ? quantizations[quantization].block : 0;
}

int64_t wg__quantization_block_bytes(wg_quantization quantization) {
    return (unsigned)quantization < WG_QUANTIZATION_COUNT ? quantizations[quantization].bytes : 0;
}

wg_quantization wg__quantization_side_by_side(wg_quantization quantization) {
    return quantization == WG_QUANTIZATION_Q8_0   ? WG_QUANTIZATION_Q8_0X16
           : quantization == WG_QUANTIZATION_Q4_0 ? WG_QUANTIZATION_Q4_0X16
                                                  : quantization;
}

wg_quantization wg__quantization_of_a_row(wg_quantization quantization) {
    return quantization == WG_QUANTIZATION_Q8_0X16   ? WG_QUANTIZATION_Q8_0
           : quantization == WG_QUANTIZATION_Q4_0X16 ? WG_QUANTIZATION_Q4_0
                                                     : quantization;
}

float wg__half_to_f32(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31,
                   fraction = half & 0x3ff;
    if (exponent == 0) {
        const float value = ldexpf((float)fraction, -24);
        return sign ? -value : value;
    }
    const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t wg__f32_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00;
    if (bits >= 0x477ff000) /* 65520, which rounds to 2^16 and so to infinity */
        return sign | 0x7c00;
    if (bits < 0x38800000) /* 2^-14: subnormal halves are multiples of 2^-24 */
        return sign | (uint16_t)lrintf(ldexpf(fabsf(value), 24));
    bits += 0xfff + (bits >> 13 & 1);
    return sign | (uint16_t)((bits >> 13) - (112 << 10));
}

/* ---- Rows ---- */

/* Rounds a level from -8 to 7 to the nearest integer, and adds 8. */
static uint8_t nibble(float level) {
    const float rounded = level + 8.5f;
    return (uint8_t)(rounded > 15 ? 15 : rounded > 0 ? rounded : 0);
}

/* q8_0: the scale is the largest magnitude / 127. Numbers are divided by it before it is rounded to
 * f16, and rounded to the nearest integer, half away from zero. q4_0: the number with the largest
 * magnitude becomes -8, whatever its sign. */
void wg__quantize_row(wg_quantization quantization, int64_t count, const float *numbers,
                      uint8_t *bytes) {
    const bool is_q8 = quantization == WG_QUANTIZATION_Q8_0;
    const int64_t block = quantizations[quantization].block,
                  size = quantizations[quantization].bytes;
    for (; count >= block; count -= block, numbers += block, bytes += size) {
        uint16_t word;
        if (block == 1) {
            word = wg__f32_to_bf16(*numbers);
            memcpy(bytes, &word, sizeof word);
            continue;
        }
        float extreme = 0;
        for (int i = 0; i < WG__BLOCK; i++)
            if (fabsf(numbers[i]) > fabsf(extreme))
                extreme = numbers[i];
        const float scale = is_q8 ? fabsf(extreme) / 127 : extreme / -8;
        const float inverse = isfinite(1 / scale) ? 1 / scale : 0;
        uint8_t *levels = bytes + WG__BLOCK_SCALE;
        word = wg__f32_to_half(scale);
        memcpy(bytes, &word, sizeof word);
        for (int i = 0; is_q8 && i < WG__BLOCK; i++) {
            const float level = roundf(numbers[i] * inverse);
            levels[i] = (uint8_t)(int8_t)(isnan(level) ? 0 : fmaxf(-127, fminf(level, 127)));
        }
        for (int i = 0; !is_q8 && i < WG__BLOCK / 2; i++)
            levels[i] = (uint8_t)(nibble(numbers[i] * inverse) |
                                  nibble(numbers[i + WG__BLOCK / 2] * inverse) << 4);
    }
}

void wg__dequantize_row(wg_quantization quantization, int64_t count, const uint8_t *bytes,
                        float *numbers) {
    const bool is_q8 = quantization == WG_QUANTIZATION_Q8_0;
    const int64_t block = quantizations[quantization].block,
                  size = quantizations[quantization].bytes;
    for (; count >= block; count -= block, numbers += block, bytes += size) {
        const uint16_t word = (uint16_t)(bytes[0] | bytes[1] << 8);
        if (block == 1) {
            *numbers = wg__bf16_to_f32(word);
            continue;
        }
        const float scale = wg__half_to_f32(word);
        const uint8_t *levels = bytes + WG__BLOCK_SCALE;
        for (int i = 0; is_q8 && i < WG__BLOCK; i++)
            numbers[i] = scale * (int8_t)levels[i];
        for (int i = 0; !is_q8 && i < WG__BLOCK / 2; i++) {
            numbers[i] = scale * (float)((levels[i] & 15) - 8);
            numbers[i + WG__BLOCK / 2] = scale * (float)((levels[i] >> 4) - 8);
        }
    }
}

enum { PIECE = 4 }; /* adjacent bytes of a row in a group of interleaved rows */

void wg__group_put(wg_quantization quantization, int64_t row, const uint8_t *bytes,
                   uint8_t *group) {
    memcpy(group + row * WG__BLOCK_SCALE, bytes, WG__BLOCK_SCALE);
    group += WG__GROUP * WG__BLOCK_SCALE + row * PIECE;
    for (int64_t i = WG__BLOCK_SCALE; i < quantizations[quantization].bytes;
         i += PIECE, group += WG__GROUP * PIECE)
        memcpy(group, bytes + i, PIECE);
}

void wg__group_get(wg_quantization quantization, int64_t row, const uint8_t *group,
                   uint8_t *bytes) {
    memcpy(bytes, group + row * WG__BLOCK_SCALE, WG__BLOCK_SCALE);
    group += WG__GROUP * WG__BLOCK_SCALE + row * PIECE;
    for (int64_t i = WG__BLOCK_SCALE; i < quantizations[quantization].bytes;
         i += PIECE, group += WG__GROUP * PIECE)
        memcpy(bytes + i, group, PIECE);
}
