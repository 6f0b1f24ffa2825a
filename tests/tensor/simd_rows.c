/* The vector kernels on rows: softmax, normalisation, attention, sums and random words, against
 * plain C in f64. */
#include "tests/tensor/simd_tables.h"
#include "tensor/internal.h"

TEST_OF_TABLES(rows_of_softmax_are_those_of_plain_c) {
    array x = normal(dtype, 4), y = {.dtype = dtype};
    for (size_t l = 0; l < WG_COUNT(lengths); l++) {
        int64_t n = lengths[l];
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < n; i++) {
            most = fmax(most, get(&x, i));
            sum += exp(get(&x, i) - 1);
        }
        assert_near(simd, "row_max", dtype, simd->rows.max(n, place(&x, 0)), most, 0);
        assert_near(simd, "row_sum_exp", dtype, simd->rows.sum_exp(n, place(&x, 0), 1), sum, 0);
        set(&y, n, 42);
        simd->rows.exp(n, place(&x, 0), 1, 3, place(&y, 0));
        for (int64_t i = 0; i < n; i++)
            assert_near(simd, "row_exp", dtype, get(&y, i), 3 * exp(get(&x, i) - 1), 0);
        ck_assert_double_eq(get(&y, n), 42);
        array softmax = {.dtype = dtype};
        const double shift = simd->rows.max(n, place(&x, 0));
        const double scale = 1 / simd->rows.sum_exp(n, place(&x, 0), shift);
        simd->rows.exp(n, place(&x, 0), shift, scale, place(&y, 0));
        simd->rows.softmax(n, place(&x, 0), place(&softmax, 0));
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(get(&softmax, i), get(&y, i));
    }
    set(&x, 150, NAN);
    ck_assert(isnan(simd->rows.max(LENGTH, place(&x, 0))));
    ck_assert(!isnan(simd->rows.max(150, place(&x, 0))));
}

/* Rows of y against softmax, or its logarithm, of rows of x in f64; and dx against its gradient. */
static void check_short_row(const wg__simd *simd, wg_dtype dtype, bool logarithm, int64_t n,
                            const array *x, const array *y, const array *dy, const array *dx,
                            int64_t at) {
    /* gcc 12 for arm64 fails at the maximum of a row that fmax finds. */
    double most = -INFINITY, sum = 0, of_dy = 0;
    for (int64_t i = at; i < at + n; i++)
        most = get(x, i) > most ? get(x, i) : most;
    for (int64_t i = at; i < at + n; i++) {
        sum += exp(get(x, i) - most);
        of_dy += get(dy, i) * (logarithm ? 1 : get(y, i));
    }
    for (int64_t i = at; i < at + n; i++) {
        const double e = get(x, i) - most, value = get(y, i), g = get(dy, i);
        assert_near(simd, "a short row of softmax", dtype, value,
                    logarithm ? e - log(sum) : exp(e) / sum, logarithm ? 4 : exp(e) / sum);
        assert_near(simd, "the gradient of a short row", dtype, get(dx, i),
                    logarithm ? g - exp(value) * of_dy : value * (g - of_dy), (double)n);
    }
}

/* From one row to more than two vectors of them. */
TEST_OF_TABLES(short_rows_of_softmax_are_those_of_plain_c) {
    static const int64_t counts[] = {1, 3, 16, 23}, widths[] = {1, 3, 16, 17, WG__SHORT_LINE};
    array x = normal(dtype, 50), dy = normal(dtype, 51);
    for (size_t l = 0; l < 2 * WG_COUNT(counts) * WG_COUNT(widths); l++) {
        const bool logarithm = l % 2;
        const int64_t rows = counts[l / 2 % WG_COUNT(counts)];
        const int64_t n = widths[l / 2 / WG_COUNT(counts)];
        array y = {.dtype = dtype}, dx = {.dtype = dtype};
        set(&y, rows * n, 42);
        set(&dx, rows * n, 42);
        simd->rows.softmax_short(logarithm, rows, n, place(&x, 0), NULL, place(&y, 0));
        simd->rows.softmax_short(logarithm, rows, n, place(&y, 0), place(&dy, 0), place(&dx, 0));
        for (int64_t row = 0; row < rows; row++)
            check_short_row(simd, dtype, logarithm, n, &x, &y, &dy, &dx, row * n);
        ck_assert_double_eq(get(&y, rows * n), 42);
        ck_assert_double_eq(get(&dx, rows * n), 42);
    }
}

/* With no vector of weights, with one and with two. */
TEST_OF_TABLES(weighted_rows_are_those_of_plain_c) {
    const array x = normal(dtype, 30), a = normal(dtype, 31), b = normal(dtype, 32);
    for (size_t l = 0; l < 3 * WG_COUNT(lengths); l++) {
        const int64_t n = lengths[l / 3];
        array y = x, from = x, left = a, right = b;
        const void *first = l % 3 > 0 ? place(&left, 0) : NULL;
        const void *second = l % 3 > 1 ? place(&right, 0) : NULL;
        double excess = 0, total = 0, found;
        for (int64_t i = 0; i < n; i++) {
            const double weight = (first ? get(&a, i) : 1) * (second ? get(&b, i) : 1);
            excess += weight * (4 - get(&x, i));
            total += weight;
        }
        assert_near(simd, "row_excess", dtype,
                    simd->rows.excess(n, place(&from, 0), 4, first, second, &found), excess,
                    (double)n);
        assert_near(simd, "a sum of weights", dtype, found, total, (double)n);
        simd->rows.subtract(n, 0.5, first, second, place(&y, 0));
        for (int64_t i = 0; i < n; i++) {
            const double weight = (first ? get(&a, i) : 1) * (second ? get(&b, i) : 1);
            assert_near(simd, "row_subtract", dtype, get(&y, i), get(&x, i) - 0.5 * weight, 4);
        }
        ck_assert_double_eq(get(&y, n), get(&x, n));
    }
}

TEST_OF_TABLES(rows_of_layer_norm_are_those_of_plain_c) {
    array x = normal(dtype, 5), weight = normal(dtype, 6), bias = normal(dtype, 7);
    array dy = normal(dtype, 8), y = {.dtype = dtype}, dx = y, dweight = y, dbias = y;
    for (size_t l = 1; l < WG_COUNT(lengths); l++) {
        int64_t n = lengths[l];
        double mean = 0, variance = 0, u = 0, uh = 0, found_mean, found_variance;
        for (int64_t i = 0; i < n; i++)
            mean += get(&x, i) / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += (get(&x, i) - mean) * (get(&x, i) - mean) / (double)n;
        simd->rows.moments(n, place(&x, 0), &found_mean, &found_variance);
        assert_near(simd, "a mean", dtype, found_mean, mean, 1);
        assert_near(simd, "a variance", dtype, found_variance, variance, 1);
        double scale = 1 / sqrt(variance + 0.1);
        simd->rows.normalize(n, place(&x, 0), mean, scale, place(&weight, 0), place(&bias, 0),
                             place(&y, 0));
        for (int64_t i = 0; i < n; i++) {
            double h = (get(&x, i) - mean) * scale;
            assert_near(simd, "row_normalize", dtype, get(&y, i),
                        h * get(&weight, i) + get(&bias, i), 8);
            u += get(&dy, i) * get(&weight, i) / (double)n;
            uh += get(&dy, i) * get(&weight, i) * h / (double)n;
            set(&dweight, i, 1);
            set(&dbias, i, 2);
        }
        simd->rows.normalize_vjp(n, place(&x, 0), mean, scale, place(&weight, 0), place(&dy, 0),
                                 true, 1, place(&dx, 0), place(&dweight, 0), place(&dbias, 0));
        for (int64_t i = 0; i < n; i++) {
            double h = (get(&x, i) - mean) * scale, g = get(&dy, i);
            assert_near(simd, "dx", dtype, get(&dx, i), scale * (g * get(&weight, i) - u - h * uh),
                        20);
            assert_near(simd, "dweight", dtype, get(&dweight, i), 1 + g * h, 8);
            assert_near(simd, "dbias", dtype, get(&dbias, i), 2 + g, 8);
        }
    }
}

/* With a coefficient for each element and with one for all, with and without g. */
static void check_affine_rows(const wg__simd *simd, wg_dtype dtype) {
    array x = normal(dtype, 40), g = normal(dtype, 41), center = normal(dtype, 42);
    array scale = normal(dtype, 43), shift = normal(dtype, 44), share = normal(dtype, 45);
    array g_center = normal(dtype, 51);
    for (size_t l = 0; l < 4 * WG_COUNT(lengths); l++) {
        const int64_t n = lengths[l / 4];
        const bool each = l % 2 != 0, has_g = l % 4 > 1;
        array y = {.dtype = dtype};
        const wg__affine_row row = {.x = place(&x, 0),
                                    .g = has_g ? place(&g, 0) : NULL,
                                    .center = has_g ? place(&center, 0) : NULL,
                                    .scale = place(&scale, 0),
                                    .shift = has_g ? place(&shift, 0) : NULL,
                                    .g_center = place(&g_center, 0),
                                    .share = place(&share, 0),
                                    .y = place(&y, 0)};
        set(&y, n, 42);
        simd->rows.affine(n, each, &row);
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = each ? i : 0;
            double wanted = (get(&x, i) - (has_g ? get(&center, k) : 0)) * get(&scale, k);
            if (has_g)
                wanted += get(&shift, k) + (get(&g, i) - get(&g_center, k)) * get(&share, k);
            assert_near(simd, "row_affine", dtype, get(&y, i), wanted, 10);
        }
        ck_assert_double_eq(get(&y, n), 42);
    }
}

static void check_centered_sums(const wg__simd *simd, wg_dtype dtype) {
    array x = normal(dtype, 46), g = normal(dtype, 47), center = normal(dtype, 48);
    for (size_t l = 0; l < 2 * WG_COUNT(lengths); l++) {
        const int64_t n = lengths[l / 2];
        const bool has_g = l % 2 != 0;
        array sums = {.dtype = dtype}, sums_x = sums;
        double sum = 0, sum_x = 0, found, found_x;
        for (int64_t i = 0; i < n; i++) {
            set(&sums, i, 1);
            set(&sums_x, i, 2);
            sum += get(&g, i);
            sum_x += get(&g, i) * (get(&x, i) - 0.5);
        }
        simd->rows.centered_sums(n, place(&x, 0), 0.5, place(&g, 0), &found, &found_x);
        assert_near(simd, "a sum of g", dtype, found, sum, (double)n);
        assert_near(simd, "a sum of x g", dtype, found_x, sum_x, (double)n);
        set(&sums, n, 42);
        simd->rows.add_centered(n, place(&x, 0), place(&center, 0), has_g ? place(&g, 0) : NULL,
                                place(&sums, 0), place(&sums_x, 0));
        for (int64_t i = 0; i < n; i++) {
            const double d = get(&x, i) - get(&center, i), v = has_g ? get(&g, i) : d;
            assert_near(simd, "g added", dtype, get(&sums, i), 1 + v, 4);
            assert_near(simd, "x g added", dtype, get(&sums_x, i), 2 + v * d, 20);
        }
        ck_assert_double_eq(get(&sums, n), 42);
    }
}

TEST(rows_of_batch_norm_are_those_of_plain_c) {
    for_each_table(check_affine_rows);
    for_each_table(check_centered_sums);
}

static void check_attention_rows(const wg__simd *simd, wg_dtype dtype) {
    array x = normal(dtype, 9), bias = {.dtype = dtype}, keep = bias, g = normal(dtype, 10);
    for (int64_t i = 0; i < LENGTH; i++) {
        set(&bias, i, i % 5 == 1 ? -INFINITY : 0);
        set(&keep, i, i % 3 == 2 ? 0 : 1.5);
    }
    for (size_t l = 1; l < WG_COUNT(lengths); l++) {
        int64_t n = lengths[l];
        array s = x, dw = g;
        double sum = 0, mean = 0, log_sum;
        for (int64_t i = 0; i < n; i++)
            sum += exp(get(&x, i) + get(&bias, i));
        double inverse =
            simd->rows.attention(n, place(&bias, 0), place(&keep, 0), place(&s, 0), &log_sum);
        assert_near(simd, "log_sum", dtype, log_sum, log(sum), 1);
        for (int64_t i = 0; i < n; i++) {
            double p = exp(get(&x, i) + get(&bias, i)) / sum;
            assert_near(simd, "a weight", dtype, get(&s, i) * inverse, p * get(&keep, i), 1);
            mean += p * get(&keep, i) * get(&g, i);
        }
        s = x;
        simd->rows.attention_vjp(n, place(&bias, 0), place(&keep, 0), log(sum), 0.5, place(&s, 0),
                                 place(&dw, 0));
        for (int64_t i = 0; i < n; i++) {
            double p = exp(get(&x, i) + get(&bias, i)) / sum;
            assert_near(simd, "a weight", dtype, get(&s, i), p * get(&keep, i), 1);
            assert_near(simd, "a score's gradient", dtype, get(&dw, i),
                        0.5 * p * (get(&g, i) * get(&keep, i) - mean), 4);
        }
    }
}

/* Without bias and factors the results are those of zeros and ones. */
static void check_plain_attention_rows(const wg__simd *simd, wg_dtype dtype) {
    const size_t size = wg_dtype_size(dtype);
    array zeros = {.dtype = dtype}, ones = zeros, x = normal(dtype, 9), g = normal(dtype, 10);
    for (int64_t i = 0; i < LENGTH; i++)
        set(&ones, i, 1);
    for (size_t l = 1; l < WG_COUNT(lengths); l++)
        for (int form = 0; form < 3; form++) {
            const int64_t n = lengths[l];
            array s = x, s_by = x, dw = g, dw_by = g;
            void *bias = form & 1 ? place(&zeros, 0) : NULL;
            void *keep = form & 2 ? place(&ones, 0) : NULL;
            double log_sum, log_sum_by;
            ck_assert_double_eq(simd->rows.attention(n, bias, keep, place(&s, 0), &log_sum),
                                simd->rows.attention(n, place(&zeros, 0), place(&ones, 0),
                                                     place(&s_by, 0), &log_sum_by));
            ck_assert_double_eq(log_sum, log_sum_by);
            ck_assert_mem_eq(place(&s, 0), place(&s_by, 0), (size_t)n * size);
            s = s_by = x;
            simd->rows.attention_vjp(n, bias, keep, log_sum, 0.5, place(&s, 0), place(&dw, 0));
            simd->rows.attention_vjp(n, place(&zeros, 0), place(&ones, 0), log_sum, 0.5,
                                     place(&s_by, 0), place(&dw_by, 0));
            ck_assert_mem_eq(place(&s, 0), place(&s_by, 0), (size_t)n * size);
            ck_assert_mem_eq(place(&dw, 0), place(&dw_by, 0), (size_t)n * size);
        }
}

/* Every third position is masked, and with a stride of 2 every other one. */
TEST_OF_TABLES(masks_hide_by_minus_infinity) {
    bool mask[LENGTH];
    array bias = {.dtype = dtype};
    for (int64_t i = 0; i < LENGTH; i++)
        mask[i] = i % 3 != 0;
    for (int64_t step = 1; step <= 2; step++) {
        const int64_t n = LENGTH / step;
        set(&bias, n, 7);
        simd->rows.mask_to_bias(n, mask, step, place(&bias, 0));
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_eq(get(&bias, i), mask[i * step] ? 0 : -INFINITY);
        ck_assert_double_eq(get(&bias, n), 7);
    }
}

TEST(rows_of_attention_are_those_of_plain_c) {
    for_each_table(check_plain_attention_rows);
    for_each_table(check_attention_rows);
}

TEST_OF_TABLES(sums_of_rows_are_added_onto_what_is_there) {
    enum { ROWS = 7, WIDTH = 21, STRIDE = 27 };
    array x = normal(dtype, 11), sums = {.dtype = dtype};
    for (int64_t j = 0; j < WIDTH + 1; j++)
        set(&sums, j, 10);
    simd->rows.add(ROWS, WIDTH, STRIDE, place(&x, 0), place(&sums, 0));
    for (int64_t j = 0; j < WIDTH; j++) {
        double sum = 10;
        for (int64_t i = 0; i < ROWS; i++)
            sum += get(&x, i * STRIDE + j);
        assert_near(simd, "a sum", dtype, get(&sums, j), sum, 20);
    }
    ck_assert_double_eq(get(&sums, WIDTH), 10);
}

/* ---- Random words ---- */

TEST_OF_TABLES(random_words_are_those_of_random123) {
    (void)dtype;
    enum { GROUPS = 3 };
    /* The last counter carries into the upper word of the block number. */
    static const uint64_t firsts[] = {0, 5, ((uint64_t)1 << 28) - 1};
    const uint64_t seed = 0x123456789abcdef, offset = 0xfedcba987654321;
    for (size_t f = 0; f < WG_COUNT(firsts); f++) {
        uint32_t words[GROUPS * WG__RANDOM_GROUP + 1];
        words[GROUPS * WG__RANDOM_GROUP] = 42;
        simd->random.words(seed, offset, firsts[f], GROUPS, words);
        for (uint64_t i = 0; i < GROUPS * WG__RANDOM_GROUP; i++) {
            uint64_t block = 16 * (firsts[f] + i / 64) + i % 16, word = i % 64 / 16;
            ck_assert_msg(words[i] == wg__random_bits(seed, offset, 4 * block + word),
                          "%s: word %d of groups from %llu", simd->name, (int)i,
                          (unsigned long long)firsts[f]);
        }
        ck_assert_uint_eq(words[GROUPS * WG__RANDOM_GROUP], 42);
    }
}

/* Taps that overlap, in any order. */
TEST_OF_TABLES(taps_of_planes_are_those_of_plain_c) {
    static const int64_t offsets[] = {5, 0, 1, 17, 2};
    enum { TAPS = WG_COUNT(offsets) };
    const array x = normal(dtype, 40), weights = normal(dtype, 41), g = normal(dtype, 42);
    for (size_t l = 0; l < WG_COUNT(lengths); l++) {
        const int64_t n = lengths[l];
        array from = x, by = weights, dy = g, y = {.dtype = dtype}, sums = y;
        set(&y, n, 42);
        for (int t = 0; t < TAPS; t++)
            set(&sums, t, t);
        simd->products.tap_sums(n, TAPS, offsets, place(&from, 0), place(&by, 0), 0.5,
                                place(&y, 0));
        simd->products.tap_dots(n, TAPS, offsets, place(&from, 0), place(&dy, 0), place(&sums, 0));
        for (int64_t i = 0; i < n; i++) {
            double wanted = 0.5;
            for (int t = 0; t < TAPS; t++)
                wanted += get(&weights, t) * get(&x, offsets[t] + i);
            assert_near(simd, "tap_sums", dtype, get(&y, i), wanted, 8);
        }
        ck_assert_double_eq(get(&y, n), 42);
        for (int t = 0; t < TAPS; t++) {
            double wanted = t;
            for (int64_t i = 0; i < n; i++)
                wanted += get(&g, i) * get(&x, offsets[t] + i);
            assert_near(simd, "tap_dots", dtype, get(&sums, t), wanted, 8 + (double)n);
        }
    }
}

/* Places count from 5 at the first element; a NaN is kept. */
TEST_OF_TABLES(larger_elements_are_kept_with_their_places) {
    array x = normal(dtype, 50);
    static int32_t place_of[LENGTH + 64]; /* whole vectors */
    if (dtype != WG_F32)
        return;
    set(&x, 9, NAN);
    for (size_t l = 0; l < 3 * WG_COUNT(lengths); l++) {
        const int64_t n = lengths[l / 3], stride = 1 + (int64_t)l % 3;
        array y = {.dtype = dtype};
        for (int64_t i = 0; i < LENGTH; i++)
            place_of[i] = -1;
        simd->rows.max_pool_step(n, stride, place(&x, 0), 5, place(&y, 0), place_of);
        for (int64_t i = 0; i < n; i++) {
            const double element = get(&x, i * stride);
            const bool kept = element > 0 || isnan(element);
            assert_near(simd, "max_pool_step", dtype, get(&y, i), kept ? element : 0, 0);
            ck_assert_int_eq(place_of[i], kept ? 5 + i * stride : -1);
        }
        ck_assert_double_eq(get(&y, n), 0);
    }
}

/* Rows of every length up to a few vectors, with ties, the largest numbers, infinities and NaN. */
TEST_OF_TABLES(rows_of_bf16_are_rounded_and_widened_as_numbers_are) {
    enum { MOST = 70 };
    static const uint32_t corners[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0x7f800000,
                                       0xff800000, 0x7f800001, 0xffc00001, 0x80000001, 0};
    array numbers = normal(dtype, 33);
    float x[MOST];
    if (dtype != WG_F32)
        return;
    for (int i = 0; i < MOST; i++) {
        x[i] = (float)get(&numbers, i);
        if (i % 3 == 0)
            memcpy(&x[i], &corners[i / 3 % WG_COUNT(corners)], sizeof x[i]);
    }
    for (int64_t n = 0; n < MOST; n++) {
        uint16_t halves[MOST];
        float wide[MOST];
        double sum = 0;
        memset(halves, 42, sizeof halves);
        wide[n] = 42;
        simd->rows.round_to_bf16(n, x, halves);
        simd->rows.widen_bf16(n, halves, wide);
        for (int64_t i = 0; i < n; i++) {
            ck_assert_uint_eq(halves[i], wg__f32_to_bf16(x[i]));
            const float expected = wg__bf16_to_f32(halves[i]);
            ck_assert_mem_eq(&wide[i], &expected, sizeof expected);
            sum += get(&numbers, i);
        }
        ck_assert_uint_eq(halves[n], 42 * 0x101);
        ck_assert_float_eq(wide[n], 42);
        assert_near(simd, "row_sum", dtype, simd->rows.sum(n, place(&numbers, 0)), sum, 0);
    }
}
