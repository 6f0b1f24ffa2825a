/* Fourier transforms of many sizes, and convolutions by way of them. reference.c has PyTorch's. */
#include "tensor/easy.h"
#include "tensor/ops.h"

#include "tests/support/tensors.h"

static double largest_difference(wg_tensor *a, wg_tensor *b) {
    return wg_item(wg_max(wg_abs(wg_sub(a, b)), WG_ALL, false));
}

TEST(a_convolution_by_way_of_transforms_equals_conv1d) {
    wg_tensor *x = wg_randn(NULL, WG_F64, WG_DIMS(2, 3, 50));
    wg_tensor *weight = wg_randn(NULL, WG_F64, WG_DIMS(4, 3, 11));
    wg_tensor *bias = wg_randn(NULL, WG_F64, WG_DIMS(4));
    for (int64_t padding = 0; padding <= 5; padding += 5) {
        const wg_conv_options options = {.padding = {padding}};
        ck_assert_double_lt(largest_difference(wg_fft_conv1d(x, weight, bias, padding),
                                               wg_conv_op(x, weight, bias, &options)),
                            1e-12);
    }
    wg_tensor *single = wg_cast(x, WG_F32), *kernel = wg_cast(weight, WG_F32);
    ck_assert_double_lt(largest_difference(wg_fft_conv1d(single, kernel, NULL, 0),
                                           wg_conv_op(single, kernel, NULL, NULL)),
                        1e-4);
}

/* Of sizes that fill a group of lines more than once, by passes and by convolution. */
TEST(the_inverse_of_a_transform_is_the_operand) {
    const int64_t sizes[] = {1000, 1009, 1024, 1458, 2 * 509, 4093};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        wg_tensor *x = wg_randn(NULL, WG_F64, WG_DIMS(13, sizes[i], 2));
        wg_tensor *y = wg_ifft(wg_fft(x, WG_DIMS(-1), (int64_t[]){0}, WG_FFT_ORTHO), WG_DIMS(-1),
                               NULL, WG_FFT_ORTHO);
        ck_assert_double_lt(largest_difference(x, y), 1e-12);
        wg_tensor *real = wg_select(x, -1, 0);
        y = wg_irfft(wg_rfft(real, WG_DIMS(-1), NULL, WG_FFT_FORWARD), WG_DIMS(-1),
                     (int64_t[]){sizes[i]}, WG_FFT_FORWARD);
        ck_assert_double_lt(largest_difference(real, y), 1e-12);
    }
}

/* Fails unless the transforms of lines 3 and 4 alone are those among all lines. */
static void assert_alone(wg_tensor *alone, wg_tensor *all, double close) {
    ck_assert_double_lt(largest_difference(alone, wg_narrow(all, 0, 3, 2)), close);
}

/* A line alone is transformed in four steps, one among many beside others. */
TEST(a_long_line_alone_has_the_transform_of_one_among_many) {
    const int64_t sizes[] = {4096, 8192, 3 * 4096, 7 * 31 * 64, 4 * 10007}, axis = -1;
    for (int i = 0; i < 2 * (int)WG_COUNT(sizes); i++) {
        const int64_t n = sizes[i / 2], twice = 2 * (n - 1);
        const double close = i % 2 ? 1e-10 : 2e-3;
        wg_tensor *x = wg_randn(NULL, i % 2 ? WG_F64 : WG_F32, WG_DIMS(20, n, 2));
        wg_tensor *alone = wg_narrow(x, 0, 3, 2), *real = wg_select(x, -1, 0);
        wg_tensor *half = wg_narrow(x, 1, 0, n / 2 + 1);
        assert_alone(wg_fft(alone, 1, &axis, NULL, WG_FFT_BACKWARD),
                     wg_fft(x, 1, &axis, NULL, WG_FFT_BACKWARD), close);
        assert_alone(wg_ifft(alone, 1, &axis, NULL, WG_FFT_FORWARD),
                     wg_ifft(x, 1, &axis, NULL, WG_FFT_FORWARD), close);
        assert_alone(wg_rfft(wg_narrow(real, 0, 3, 2), 1, &axis, NULL, WG_FFT_BACKWARD),
                     wg_rfft(real, 1, &axis, NULL, WG_FFT_BACKWARD), close);
        /* Of a spectrum whose ends are not real. */
        assert_alone(wg_irfft(alone, 1, &axis, NULL, WG_FFT_FORWARD),
                     wg_irfft(x, 1, &axis, &twice, WG_FFT_FORWARD), 2 * close);
        assert_alone(wg_irfft(wg_narrow(half, 0, 3, 2), 1, &axis, &n, WG_FFT_FORWARD),
                     wg_irfft(half, 1, &axis, &n, WG_FFT_FORWARD), close);
    }
}

TEST(what_cannot_be_transformed_is_refused) {
    wg_tensor *x = wg_zeros(WG_F32, WG_DIMS(2, 3));
    refused(wg_fft(x, WG_DIMS(-1), NULL, WG_FFT_BACKWARD), SHAPE,
            "fft: (2, 3) f32: wanted complex numbers");
    refused(wg_rfft(x, WG_DIMS(0), (int64_t[]){-2}, WG_FFT_BACKWARD), ARGUMENT,
            "rfft: (2, 3) f32: the size n is -2; wanted 1 or more");
    refused(wg_rfft(x, WG_DIMS(2), NULL, WG_FFT_BACKWARD), INDEX, "rfft: axis 2");
    refused(wg_irfft(wg_zeros(WG_F32, WG_DIMS(1, 2)), WG_DIMS(0), (int64_t[]){0}, WG_FFT_BACKWARD),
            ARGUMENT, "the size n is 0; wanted 1 or more");
    refused(wg_rfft(x, WG_DIMS(0), NULL, (wg_fft_norm)7), ARGUMENT,
            "norm 7 is none of wg_fft_norm");
    refused(wg_fft_conv1d(x, x, NULL, 0), SHAPE,
            "fft_conv1d: x is (2, 3) f32 and the weight (2, 3) f32; wanted");
    wg_tensor *lines = wg_zeros(WG_F32, WG_DIMS(1, 1, 4));
    refused(wg_fft_conv1d(lines, lines, NULL, INT64_C(1) << 40), ARGUMENT,
            "the padding is 1099511627776; wanted 0 to 2147483647");
}
