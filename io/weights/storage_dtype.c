/* How tensor files store elements: little-endian numbers, halves, and the blocks of quantize.h.
 * Whole blocks go through f32. */
#include <string.h>

#include "io/weights/file.h"
#include "tensor/convert.h"
#include "tensor/quantize_rows.h"

static const struct {
    wg_dtype dtype;
    int64_t block, bytes;
} kinds[] = {
    [WG__STORED_F64] = {WG_F64, 1, 8},    [WG__STORED_F32] = {WG_F32, 1, 4},
    [WG__STORED_F16] = {WG_F32, 1, 2},    [WG__STORED_BF16] = {WG_BF16, 1, 2},
    [WG__STORED_I64] = {WG_I64, 1, 8},    [WG__STORED_I32] = {WG_I32, 1, 4},
    [WG__STORED_U8] = {WG_U8, 1, 1},      [WG__STORED_BOOL] = {WG_BOOL, 1, 1},
    [WG__STORED_Q8_0] = {WG_F32, 32, 34}, [WG__STORED_Q4_0] = {WG_F32, 32, 18},
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
            numbers[i] = wg__half_to_f32(wg__le16(bytes + 2 * i));
        break;
    case WG__STORED_BOOL:
        for (int64_t i = 0; i < count; i++)
            ((uint8_t *)out)[i] = bytes[i] != 0;
        break;
    case WG__STORED_Q8_0:
        wg__dequantize_row(WG_QUANTIZATION_Q8_0, count, bytes, numbers);
        break;
    case WG__STORED_Q4_0:
        wg__dequantize_row(WG_QUANTIZATION_Q4_0, count, bytes, numbers);
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
            wg__put_le16(bytes + 2 * i, wg__f32_to_half(numbers[i]));
        break;
    case WG__STORED_BF16:
        for (int64_t i = 0; i < count; i++)
            wg__put_le16(bytes + 2 * i, wg__f32_to_bf16(numbers[i]));
        break;
    case WG__STORED_Q8_0:
        wg__quantize_row(WG_QUANTIZATION_Q8_0, count, numbers, bytes);
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
