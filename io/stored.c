/* How tensor files store elements: little-endian numbers, halves, and blocks of 32 small integers
 * with one scale   (Q8_0 and Q4_0 of ggml). Whole blocks go through f32. */
#include <math.h>
#include <string.h>

#include "io/weights_file.h"
#include "tensor/convert.h"

enum { BLOCK = 32 };

static const struct {
    wg_dtype dtype;
    int64_t block, bytes;
} kinds[] = {
    [WG__STORED_F64] = {WG_F64, 1, 8},       [WG__STORED_F32] = {WG_F32, 1, 4},
    [WG__STORED_F16] = {WG_F32, 1, 2},       [WG__STORED_BF16] = {WG_BF16, 1, 2},
    [WG__STORED_I64] = {WG_I64, 1, 8},       [WG__STORED_I32] = {WG_I32, 1, 4},
    [WG__STORED_U8] = {WG_U8, 1, 1},         [WG__STORED_BOOL] = {WG_BOOL, 1, 1},
    [WG__STORED_Q8_0] = {WG_F32, BLOCK, 34}, [WG__STORED_Q4_0] = {WG_F32, BLOCK, 18},
};

wg_dtype wg__stored_dtype(wg__stored stored) {
    return kinds[stored].dtype;
}

int64_t wg__stored_block(wg__stored stored) {
    return kinds[stored].block;
}

int64_t wg__stored_block_bytes(wg__stored stored) {
    return kinds[stored].bytes;
}

int64_t wg__stored_bytes(wg__stored stored, int ndim, const int64_t *shape) {
    int64_t count = 1;
    bool is_empty = false;
    for (int i = 0; i < ndim; i++) {
        is_empty |= shape[i] == 0;
        if (shape[i] < 0 || (shape[i] > 0 && __builtin_mul_overflow(count, shape[i], &count)))
            return -1;
    }
    if (count > ((int64_t)1 << 58))
        return -1;
    const int64_t block = kinds[stored].block;
    if (block > 1 && (ndim == 0 || shape[ndim - 1] % block != 0))
        return -1;
    return is_empty ? 0 : count / block * kinds[stored].bytes;
}

/* ---- Halves: 1 sign, 5 exponent and 10 fraction bits   (IEEE 754 binary16) ---- */

static float half_to_float(uint16_t half) {
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

/* To nearest, ties to even; what is too large becomes infinite, a NaN stays one. */
static uint16_t float_to_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00;
    if (bits >= 0x477ff000) /* 65520, halfway to 2^16 */
        return sign | 0x7c00;
    if (bits < 0x38800000) /* 2^-14: subnormal halves are multiples of 2^-24 */
        return sign | (uint16_t)lrintf(ldexpf(fabsf(value), 24));
    bits += 0xfff + (bits >> 13 & 1);
    return sign | (uint16_t)((bits >> 13) - (112 << 10));
}

/* ---- Blocks ---- */

static void decode_q8_0(const uint8_t *bytes, float *out) {
    const float scale = half_to_float(wg__le16(bytes));
    for (int i = 0; i < BLOCK; i++)
        out[i] = scale * (int8_t)bytes[2 + i];
}

/* The low four bits are the first half of the block, the high ones the second. */
static void decode_q4_0(const uint8_t *bytes, float *out) {
    const float scale = half_to_float(wg__le16(bytes));
    for (int i = 0; i < BLOCK / 2; i++) {
        out[i] = scale * (float)((bytes[2 + i] & 15) - 8);
        out[i + BLOCK / 2] = scale * (float)((bytes[2 + i] >> 4) - 8);
    }
}

/* As ggml quantises: the scale is the largest magnitude / 127, kept as a half; numbers are rounded
 * by the exact scale, half away from zero. */
static void encode_q8_0(const float *in, uint8_t *bytes) {
    float largest = 0;
    for (int i = 0; i < BLOCK; i++)
        largest = fmaxf(largest, fabsf(in[i]));
    const float scale = largest / 127, inverse = isfinite(1 / scale) ? 1 / scale : 0;
    wg__put_le16(bytes, float_to_half(scale));
    for (int i = 0; i < BLOCK; i++) {
        const float level = roundf(in[i] * inverse);
        bytes[2 + i] = (uint8_t)(int8_t)(isnan(level) ? 0 : fmaxf(-127, fminf(level, 127)));
    }
}

/* ---- Runs of elements ---- */

static void decode_plain(size_t size, int64_t count, const uint8_t *bytes, void *out) {
    memcpy(out, bytes, size * (size_t)count);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint8_t *to = out;
    for (int64_t i = 0; i < count; i++)
        for (size_t j = 0; j < size; j++)
            to[(size_t)i * size + j] = bytes[(size_t)i * size + size - 1 - j];
#endif
}

void wg__stored_decode(wg__stored stored, int64_t count, const uint8_t *bytes, void *out) {
    float *numbers = out;
    switch (stored) {
    case WG__STORED_F16:
        for (int64_t i = 0; i < count; i++)
            numbers[i] = half_to_float(wg__le16(bytes + 2 * i));
        break;
    case WG__STORED_BOOL:
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = bytes[i] != 0;
        break;
    case WG__STORED_Q8_0:
        for (int64_t i = 0; i < count / BLOCK; i++)
            decode_q8_0(bytes + i * kinds[stored].bytes, numbers + i * BLOCK);
        break;
    case WG__STORED_Q4_0:
        for (int64_t i = 0; i < count / BLOCK; i++)
            decode_q4_0(bytes + i * kinds[stored].bytes, numbers + i * BLOCK);
        break;
    default:
        decode_plain((size_t)kinds[stored].bytes, count, bytes, out);
    }
}

void wg__stored_encode(wg__stored stored, int64_t count, const void *in, uint8_t *bytes) {
    const float *numbers = in;
    switch (stored) {
    case WG__STORED_F16:
        for (int64_t i = 0; i < count; i++)
            wg__put_le16(bytes + 2 * i, float_to_half(numbers[i]));
        break;
    case WG__STORED_BF16:
        for (int64_t i = 0; i < count; i++)
            wg__put_le16(bytes + 2 * i, wg__f32_to_bf16(numbers[i]));
        break;
    case WG__STORED_Q8_0:
        for (int64_t i = 0; i < count / BLOCK; i++)
            encode_q8_0(numbers + i * BLOCK, bytes + i * kinds[stored].bytes);
        break;
    default:
        decode_plain((size_t)kinds[stored].bytes, count, in, bytes);
    }
}

wg__stored wg__stored_for(wg_weights_type type, wg_dtype dtype) {
    static const wg__stored as_they_are[] = {
        [WG_F32] = WG__STORED_F32,   [WG_F64] = WG__STORED_F64, [WG_BF16] = WG__STORED_BF16,
        [WG_I32] = WG__STORED_I32,   [WG_I64] = WG__STORED_I64, [WG_U8] = WG__STORED_U8,
        [WG_BOOL] = WG__STORED_BOOL,
    };
    static const wg__stored floating[] = {
        [WG_WEIGHTS_F32] = WG__STORED_F32,
        [WG_WEIGHTS_F16] = WG__STORED_F16,
        [WG_WEIGHTS_BF16] = WG__STORED_BF16,
        [WG_WEIGHTS_Q8_0] = WG__STORED_Q8_0,
    };
    return type == WG_WEIGHTS_KEEP || !wg_dtype_is_float(dtype) ? as_they_are[dtype]
                                                                : floating[type];
}
