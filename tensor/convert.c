/* Elements from one dtype to another: one loop for each pair of dtypes. */
#include "tensor/convert.h"

#include <math.h>

#include "tensor/iter.h"

/* Truncates and clamps to the range of the integer, NaN to 0: what a C cast leaves undefined. The
 * upper bounds are compared as the next power of two, which a double holds. */
static int64_t to_i64(double value) {
    if (!(value >= -0x1p63))
        return isnan(value) ? 0 : INT64_MIN;
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static int32_t to_i32(double value) {
    if (!(value >= -0x1p31))
        return isnan(value) ? 0 : INT32_MIN;
    return value < 0x1p31 ? (int32_t)value : INT32_MAX;
}

static uint8_t to_u8(double value) {
    if (!(value >= 0))
        return 0;
    return value < 256 ? (uint8_t)value : 255;
}

static int32_t i64_to_i32(int64_t value) {
    return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static uint8_t i64_to_u8(int64_t value) {
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

double wg__element(wg_dtype dtype, const void *address) {
    switch (dtype) {
    case WG_F32:
        return *(const float *)address;
    case WG_F64:
        return *(const double *)address;
    case WG_BF16:
        return wg__bf16_to_f32(*(const uint16_t *)address);
    case WG_I32:
        return *(const int32_t *)address;
    case WG_I64:
        return (double)*(const int64_t *)address;
    case WG_U8:
    case WG_BOOL:
        return *(const uint8_t *)address;
    case WG_DTYPE_COUNT:
        break;
    }
    return NAN;
}

void wg__set_element(wg_dtype dtype, void *address, double value) {
    switch (dtype) {
    case WG_F32:
        *(float *)address = (float)value;
        break;
    case WG_F64:
        *(double *)address = value;
        break;
    case WG_BF16:
        *(uint16_t *)address = wg__f64_to_bf16(value);
        break;
    case WG_I32:
        *(int32_t *)address = to_i32(value);
        break;
    case WG_I64:
        *(int64_t *)address = to_i64(value);
        break;
    case WG_U8:
        *(uint8_t *)address = to_u8(value);
        break;
    case WG_BOOL:
        *(uint8_t *)address = value != 0;
        break;
    case WG_DTYPE_COUNT:
        break;
    }
}

/* One loop: TO is the stored type of dst, FROM of src, `x` the loaded element. The contiguous case
 * stands apart so that the compiler can vectorise it. */
#define LOOP(name, TO, FROM, expression)                                                           \
    static void name(int64_t n, char *const *data, const int64_t *strides, const void *context) {  \
        (void)context;                                                                             \
        if (strides[0] == sizeof(TO) && strides[1] == sizeof(FROM)) {                              \
            TO *restrict out = (TO *)data[0];                                                      \
            const FROM *restrict in = (const FROM *)data[1];                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                FROM x = in[i];                                                                    \
                out[i] = (expression);                                                             \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            FROM x = *(const FROM *)(data[1] + i * strides[1]);                                    \
            *(TO *)(data[0] + i * strides[0]) = (expression);                                      \
        }                                                                                          \
    }

LOOP(f32_f32, float, float, x)
LOOP(f32_f64, float, double, (float)x)
LOOP(f32_bf16, float, uint16_t, wg__bf16_to_f32(x))
LOOP(f32_i32, float, int32_t, (float)x)
LOOP(f32_i64, float, int64_t, (float)x)
LOOP(f32_u8, float, uint8_t, (float)x)

LOOP(f64_f32, double, float, x)
LOOP(f64_f64, double, double, x)
LOOP(f64_bf16, double, uint16_t, wg__bf16_to_f32(x))
LOOP(f64_i32, double, int32_t, x)
LOOP(f64_i64, double, int64_t, (double)x)
LOOP(f64_u8, double, uint8_t, x)

LOOP(bf16_f32, uint16_t, float, wg__f32_to_bf16(x))
LOOP(bf16_f64, uint16_t, double, wg__f64_to_bf16(x))
LOOP(bf16_bf16, uint16_t, uint16_t, x)
LOOP(bf16_i32, uint16_t, int32_t, wg__f32_to_bf16((float)x))
LOOP(bf16_i64, uint16_t, int64_t, wg__f32_to_bf16((float)x))
LOOP(bf16_u8, uint16_t, uint8_t, wg__f32_to_bf16((float)x))

LOOP(i32_f32, int32_t, float, to_i32(x))
LOOP(i32_f64, int32_t, double, to_i32(x))
LOOP(i32_bf16, int32_t, uint16_t, to_i32(wg__bf16_to_f32(x)))
LOOP(i32_i32, int32_t, int32_t, x)
LOOP(i32_i64, int32_t, int64_t, i64_to_i32(x))
LOOP(i32_u8, int32_t, uint8_t, x)

LOOP(i64_f32, int64_t, float, to_i64(x))
LOOP(i64_f64, int64_t, double, to_i64(x))
LOOP(i64_bf16, int64_t, uint16_t, to_i64(wg__bf16_to_f32(x)))
LOOP(i64_i32, int64_t, int32_t, x)
LOOP(i64_i64, int64_t, int64_t, x)
LOOP(i64_u8, int64_t, uint8_t, x)

LOOP(u8_f32, uint8_t, float, to_u8(x))
LOOP(u8_f64, uint8_t, double, to_u8(x))
LOOP(u8_bf16, uint8_t, uint16_t, to_u8(wg__bf16_to_f32(x)))
LOOP(u8_i32, uint8_t, int32_t, i64_to_u8(x))
LOOP(u8_i64, uint8_t, int64_t, i64_to_u8(x))
LOOP(u8_u8, uint8_t, uint8_t, x)

LOOP(bool_f32, uint8_t, float, x != 0)
LOOP(bool_f64, uint8_t, double, x != 0)
LOOP(bool_bf16, uint8_t, uint16_t, (x & 0x7fff) != 0)
LOOP(bool_i32, uint8_t, int32_t, x != 0)
LOOP(bool_i64, uint8_t, int64_t, x != 0)
LOOP(bool_u8, uint8_t, uint8_t, x != 0)

static const wg__loop loops[WG_DTYPE_COUNT][WG_DTYPE_COUNT] = {
    [WG_F32] = {f32_f32, f32_f64, f32_bf16, f32_i32, f32_i64, f32_u8, f32_u8},
    [WG_F64] = {f64_f32, f64_f64, f64_bf16, f64_i32, f64_i64, f64_u8, f64_u8},
    [WG_BF16] = {bf16_f32, bf16_f64, bf16_bf16, bf16_i32, bf16_i64, bf16_u8, bf16_u8},
    [WG_I32] = {i32_f32, i32_f64, i32_bf16, i32_i32, i32_i64, i32_u8, i32_u8},
    [WG_I64] = {i64_f32, i64_f64, i64_bf16, i64_i32, i64_i64, i64_u8, i64_u8},
    [WG_U8] = {u8_f32, u8_f64, u8_bf16, u8_i32, u8_i64, u8_u8, u8_u8},
    [WG_BOOL] = {bool_f32, bool_f64, bool_bf16, bool_i32, bool_i64, bool_u8, bool_u8},
};

void wg__convert(wg_tensor *dst, const wg_tensor *src) {
    wg_tensor *operands[] = {dst, (wg_tensor *)src};
    if (!wg__copy_transposed(dst, src))
        wg__iterate(2, operands, loops[dst->spec.dtype][src->spec.dtype], NULL);
}
