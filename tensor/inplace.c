/* Writes in place: each one counts as a version of the storage. */
#include "tensor/convert.h"
#include "tensor/iter.h"

/* A tensor with memory takes elements only from one that has them. */
static int check_source(const wg_tensor *x, const wg_tensor *source, const char *where) {
    return wg__tensor_is_meta(x) ? 0 : wg__check_memory(source, where);
}

static void fill_bytes_1(int64_t n, char *const *data, const int64_t *strides, const void *value) {
    for (int64_t i = 0; i < n; i++)
        data[0][i * strides[0]] = *(const char *)value;
}

static void fill_bytes_2(int64_t n, char *const *data, const int64_t *strides, const void *value) {
    uint16_t word = *(const uint16_t *)value;
    for (int64_t i = 0; i < n; i++)
        *(uint16_t *)(data[0] + i * strides[0]) = word;
}

static void fill_bytes_4(int64_t n, char *const *data, const int64_t *strides, const void *value) {
    uint32_t word = *(const uint32_t *)value, *out = (uint32_t *)data[0];
    if (strides[0] == sizeof word)
        for (int64_t i = 0; i < n; i++)
            out[i] = word;
    else
        for (int64_t i = 0; i < n; i++)
            *(uint32_t *)(data[0] + i * strides[0]) = word;
}

static void fill_bytes_8(int64_t n, char *const *data, const int64_t *strides, const void *value) {
    uint64_t word = *(const uint64_t *)value;
    for (int64_t i = 0; i < n; i++)
        *(uint64_t *)(data[0] + i * strides[0]) = word;
}

int wg_fill_(wg_tensor *x, double value) {
    if (!x || wg__check_writable(x, "fill_") < 0)
        return -1;
    if (wg__tensor_is_meta(x))
        return 0;
    uint64_t bits = 0;
    wg__set_element(x->spec.dtype, &bits, value);
    size_t size = wg_dtype_size(x->spec.dtype);
    wg__loop loop = size == 1   ? fill_bytes_1
                    : size == 2 ? fill_bytes_2
                    : size == 4 ? fill_bytes_4
                                : fill_bytes_8;
    wg__iterate(1, &x, loop, &bits);
    wg_tensor_touch(x);
    return 0;
}

int wg_copy_(wg_tensor *x, const wg_tensor *src) {
    if (!x || !src || wg__check_writable(x, "copy_") < 0 || check_source(x, src, "copy_") < 0)
        return -1;
    int64_t strides[WG_MAX_DIMS];
    if (!wg__broadcast_strides(src, &x->spec, strides)) {
        char to[128], from[128];
        return wg_fail(WG_ERROR_SHAPE, "copy_", "%s does not broadcast to %s",
                       wg_spec_text(from, sizeof from, &src->spec),
                       wg_spec_text(to, sizeof to, &x->spec));
    }
    if (wg__tensor_is_meta(x))
        return 0;
    wg__convert(x, src);
    wg_tensor_touch(x);
    return 0;
}

static void add_f32(int64_t n, char *const *data, const int64_t *strides, const void *alpha) {
    float scale = (float)*(const double *)alpha;
    if (strides[0] == sizeof(float) && strides[1] == sizeof(float)) {
        float *x = (float *)data[0];
        const float *y = (const float *)data[1];
        for (int64_t i = 0; i < n; i++)
            x[i] += scale * y[i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        *(float *)(data[0] + i * strides[0]) += scale * *(const float *)(data[1] + i * strides[1]);
}

static void add_f64(int64_t n, char *const *data, const int64_t *strides, const void *alpha) {
    double scale = *(const double *)alpha;
    for (int64_t i = 0; i < n; i++)
        *(double *)(data[0] + i * strides[0]) +=
            scale * *(const double *)(data[1] + i * strides[1]);
}

typedef struct any_add {
    wg_dtype dtype;
    double alpha;
} any_add;

static void add_any(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    const any_add *add = context;
    for (int64_t i = 0; i < n; i++) {
        char *x = data[0] + i * strides[0];
        wg__set_element(add->dtype, x,
                        wg__element(add->dtype, x) +
                            add->alpha * wg__element(add->dtype, data[1] + i * strides[1]));
    }
}

int wg_add_(wg_tensor *x, const wg_tensor *y, double alpha) {
    if (!x || !y || wg__check_writable(x, "add_") < 0 || check_source(x, y, "add_") < 0)
        return -1;
    if (!wg__same_shape(&x->spec, &y->spec) || x->spec.dtype != y->spec.dtype) {
        char to[128], from[128];
        return wg_fail(x->spec.dtype == y->spec.dtype ? WG_ERROR_SHAPE : WG_ERROR_DTYPE, "add_",
                       "%s += %s; wanted the same shape and dtype",
                       wg_spec_text(to, sizeof to, &x->spec),
                       wg_spec_text(from, sizeof from, &y->spec));
    }
    if (wg__tensor_is_meta(x))
        return 0;
    wg_tensor *operands[] = {x, (wg_tensor *)y};
    any_add any = {x->spec.dtype, alpha};
    if (x->spec.dtype == WG_F32)
        wg__iterate(2, operands, add_f32, &alpha);
    else if (x->spec.dtype == WG_F64)
        wg__iterate(2, operands, add_f64, &alpha);
    else
        wg__iterate(2, operands, add_any, &any);
    wg_tensor_touch(x);
    return 0;
}

static void scale_any(int64_t n, char *const *data, const int64_t *strides, const void *context) {
    const any_add *scale = context;
    for (int64_t i = 0; i < n; i++) {
        char *x = data[0] + i * strides[0];
        wg__set_element(scale->dtype, x, scale->alpha * wg__element(scale->dtype, x));
    }
}

int wg_scale_(wg_tensor *x, double alpha) {
    if (!x || wg__check_writable(x, "scale_") < 0)
        return -1;
    if (!wg_dtype_is_float(x->spec.dtype))
        return wg_fail(WG_ERROR_DTYPE, "scale_", "%s; wanted a floating dtype",
                       wg_dtype_name(x->spec.dtype));
    if (wg__tensor_is_meta(x))
        return 0;
    any_add scale = {x->spec.dtype, alpha};
    wg__iterate(1, &x, scale_any, &scale);
    wg_tensor_touch(x);
    return 0;
}
