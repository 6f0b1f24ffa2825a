/* Counter-based random numbers: equal to Philox's, well distributed, the same on every machine. */
#include "tensor/random.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "tensor/ops.h"
#include "tests/support/tensors.h"
#include "tensor/internal.h"

/* ---- Philox, plainly   (Salmon et al. 2011, section 3.3) ---- */

static void philox_reference(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t x[4] = {counter[0], counter[1], counter[2], counter[3]}, k[2] = {key[0], key[1]};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53 * x[0], b = (uint64_t)0xCD9E8D57 * x[2];
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ k[0], (uint32_t)b,
                            (uint32_t)(a >> 32) ^ x[3] ^ k[1], (uint32_t)a};
        for (int i = 0; i < 4; i++)
            x[i] = next[i];
        k[0] += 0x9E3779B9;
        k[1] += 0xBB67AE85;
    }
    for (int i = 0; i < 4; i++)
        out[i] = x[i];
}

/* The published vectors (kat_vectors of Random123) check the plain implementation that the kernels
 * are compared with. */
TEST(the_reference_gives_the_published_vectors) {
    const struct {
        uint32_t counter[4], key[2], expected[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t v = 0; v < WG_COUNT(vectors); v++) {
        uint32_t out[4];
        philox_reference(vectors[v].counter, vectors[v].key, out);
        ck_assert_mem_eq(out, vectors[v].expected, sizeof(out));
    }
}

TEST(bits_are_those_of_philox) {
    const uint64_t seeds[] = {0, 1, 0x123456789abcdef0}, offsets[] = {0, 7, (uint64_t)5 << 40};
    const uint64_t indices[] = {0, 1, 2, 3, 4, 1001, ((uint64_t)9 << 50) + 2};
    for (size_t s = 0; s < WG_COUNT(seeds); s++)
        for (size_t o = 0; o < WG_COUNT(offsets); o++)
            for (size_t i = 0; i < WG_COUNT(indices); i++) {
                uint64_t block = indices[i] / 4;
                const uint32_t counter[] = {(uint32_t)block, (uint32_t)(block >> 32),
                                            (uint32_t)offsets[o], (uint32_t)(offsets[o] >> 32)};
                const uint32_t key[] = {(uint32_t)seeds[s], (uint32_t)(seeds[s] >> 32)};
                uint32_t out[4];
                philox_reference(counter, key, out);
                ck_assert_uint_eq(wg__random_bits(seeds[s], offsets[o], indices[i]),
                                  out[indices[i] % 4]);
            }
}

/* ---- Draws ---- */

TEST(every_draw_takes_one_offset) {
    wg_generator generator = {.seed = 5};
    wg_rand(&generator, WG_F32, WG_DIMS(100));
    ck_assert_uint_eq(generator.offset, 1);
    wg_randn(&generator, WG_BF16, WG_DIMS(0));
    wg_randint(&generator, 0, 10, WG_DIMS(3));
    wg_randperm(&generator, 4);
    wg_random_uniform(&generator);
    wg_random_below(&generator, 3);
    wg_random_normal(&generator);
    ck_assert_uint_eq(generator.offset, 7);
    ck_assert_uint_eq(generator.seed, 5);
}

TEST(a_refused_draw_takes_none) {
    wg_generator generator = {.seed = 5};
    refused(wg_rand(&generator, WG_I32, WG_DIMS(2)), DTYPE, "rand: i32");
    refused(wg_randn(&generator, WG_BOOL, WG_DIMS(2)), DTYPE, "randn: bool");
    refused(wg_randn(&generator, WG_F32, WG_DIMS(-2)), SHAPE, "negative");
    refused(wg_randint(&generator, 3, 3, WG_DIMS(2)), ARGUMENT, "[3, 3)");
    refused(wg_randperm(&generator, -1), ARGUMENT, "randperm");
    ck_assert_uint_eq(generator.offset, 0);
}

TEST(the_same_state_gives_the_same_numbers) {
    wg_generator a = {.seed = 5, .offset = 9}, b = a;
    assert_close(wg_randn(&a, WG_F64, WG_DIMS(50)), wg_randn(&b, WG_F64, WG_DIMS(50)), 0, 0);
    wg_tensor *next = wg_randn(&a, WG_F64, WG_DIMS(1));
    ck_assert_double_ne(wg_item(next), wg_random_normal(&(wg_generator){.seed = 5, .offset = 9}));
}

TEST(a_number_depends_on_its_index_alone) {
    wg_generator a = {.seed = 5}, b = a;
    wg_tensor *few = wg_rand(&a, WG_F32, WG_DIMS(1001)),
              *many = wg_rand(&b, WG_F32, WG_DIMS(40000));
    assert_close(few, wg_slice(many, 0, 0, 1001, 1), 0, 0);
}

TEST(the_default_generator_can_be_seeded) {
    wg_manual_seed(42);
    wg_tensor *first = wg_rand(NULL, WG_F64, WG_DIMS(10));
    wg_tensor *second = wg_rand(NULL, WG_F64, WG_DIMS(10));
    ck_assert_uint_eq(wg_default_generator()->offset, 2);
    wg_manual_seed(42);
    assert_close(wg_rand(NULL, WG_F64, WG_DIMS(10)), first, 0, 0);
    ck_assert_double_ne(wg_at(first, (int64_t[]){0}), wg_at(second, (int64_t[]){0}));
    wg_manual_seed(43);
    ck_assert_double_ne(wg_random_uniform(NULL), wg_at(first, (int64_t[]){0}));
}

static void *default_offset(void *offset) {
    *(uint64_t *)offset = wg_default_generator()->offset;
    wg_manual_seed(99);
    return NULL;
}

TEST(each_thread_has_its_own_default_generator) {
    pthread_t thread;
    uint64_t offset = 77;
    wg_manual_seed(42);
    wg_random_uniform(NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, default_offset, &offset), 0);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(offset, 0);
    ck_assert_uint_eq(wg_default_generator()->seed, 42);
}

TEST(any_number_of_threads_draws_the_same_bits) {
    int before = wg_threads();
    wg_tensor *expected[4];
    for (int threads = 1; threads <= 3; threads++) {
        wg_set_threads(threads);
        wg_generator generator = {.seed = 11};
        wg_tensor *const drawn[] = {wg_rand(&generator, WG_F32, WG_DIMS(100001)),
                                    wg_randn(&generator, WG_F64, WG_DIMS(100001)),
                                    wg_randint(&generator, -5, 1000, WG_DIMS(100001)),
                                    wg_randperm(&generator, 10001)};
        for (int i = 0; i < 4; i++) {
            if (threads > 1)
                assert_close(drawn[i], expected[i], 0, 0);
            expected[i] = drawn[i];
        }
    }
    wg_set_threads(before);
}

/* ---- Distributions ---- */

#define DRAWS 200000

typedef struct moments {
    double mean, variance, kurtosis, smallest, largest;
} moments;

static moments moments_of(const wg_tensor *x) {
    int64_t n = wg_tensor_count(x);
    moments m = {.smallest = INFINITY, .largest = -INFINITY};
    for (int64_t i = 0; i < n; i++) {
        double value = wg_at(x, &i);
        m.mean += value / (double)n;
        m.smallest = fmin(m.smallest, value);
        m.largest = fmax(m.largest, value);
    }
    double fourth = 0;
    for (int64_t i = 0; i < n; i++) {
        double square = pow(wg_at(x, &i) - m.mean, 2);
        m.variance += square / (double)n;
        fourth += square * square / (double)n;
    }
    m.kurtosis = fourth / (m.variance * m.variance);
    return m;
}

/* Bounds are five standard errors. */
TEST(uniform_numbers_are_uniform) {
    for (wg_dtype dtype = WG_F32; dtype <= WG_F64; dtype++) {
        wg_generator generator = {.seed = 3};
        moments m = moments_of(wg_rand(&generator, dtype, WG_DIMS(DRAWS)));
        ck_assert_double_eq_tol(m.mean, 0.5, 5 * sqrt(1 / 12.0 / DRAWS));
        ck_assert_double_eq_tol(m.variance, 1 / 12.0, 5 * sqrt(1 / 180.0 / DRAWS));
        ck_assert(m.smallest >= 0 && m.smallest < 1e-4 && m.largest < 1 && m.largest > 1 - 1e-4);
    }
}

TEST(normal_numbers_are_normal) {
    for (wg_dtype dtype = WG_F32; dtype <= WG_F64; dtype++) {
        wg_generator generator = {.seed = 4};
        moments m = moments_of(wg_randn(&generator, dtype, WG_DIMS(DRAWS)));
        ck_assert_double_eq_tol(m.mean, 0, 5 / sqrt(DRAWS));
        ck_assert_double_eq_tol(m.variance, 1, 5 * sqrt(2.0 / DRAWS));
        ck_assert_double_eq_tol(m.kurtosis, 3, 5 * sqrt(24.0 / DRAWS));
        ck_assert(m.smallest < -3.5 && m.largest > 3.5);
    }
}

TEST(neighbours_are_uncorrelated) {
    wg_generator generator = {.seed = 4};
    wg_tensor *x = wg_randn(&generator, WG_F64, WG_DIMS(DRAWS));
    wg_tensor *product = wg_mul(wg_slice(x, 0, 0, DRAWS - 1, 1), wg_slice(x, 0, 1, WG_END, 1));
    ck_assert_double_eq_tol(wg_item(wg_mean(product, WG_ALL, false)), 0, 5 / sqrt(DRAWS));
}

TEST(integers_fall_evenly_in_their_range) {
    wg_generator generator = {.seed = 6};
    wg_tensor *x = wg_randint(&generator, -2, 5, WG_DIMS(DRAWS));
    const int64_t *values = wg_tensor_data(x);
    int64_t counts[7] = {0};
    for (int i = 0; i < DRAWS; i++) {
        ck_assert(-2 <= values[i] && values[i] < 5);
        counts[values[i] + 2]++;
    }
    for (int i = 0; i < 7; i++)
        ck_assert_double_eq_tol((double)counts[i] / DRAWS, 1 / 7.0, 5 * sqrt(6 / 49.0 / DRAWS));
}

TEST(integers_of_the_widest_range_have_both_signs) {
    wg_generator generator = {.seed = 6};
    wg_tensor *x = wg_randint(&generator, INT64_MIN, INT64_MAX, WG_DIMS(1000));
    int negative = 0;
    for (int64_t i = 0; i < 1000; i++)
        negative += wg_at(x, &i) < 0;
    ck_assert(400 < negative && negative < 600);
}

/* Taking the remainder of 64 bits would favour the first third twice over. */
TEST(integers_below_a_bound_are_unbiased) {
    wg_generator generator = {.seed = 8};
    const uint64_t bound = (uint64_t)3 << 62;
    int low = 0;
    for (int i = 0; i < 30000; i++) {
        uint64_t value = wg_random_below(&generator, bound);
        ck_assert(value < bound);
        low += value < bound / 3;
    }
    ck_assert_double_eq_tol(low / 30000.0, 1 / 3.0, 5 * sqrt(2 / 9.0 / 30000));
    ck_assert_uint_eq(wg_random_below(&generator, 1), 0);
}

TEST(permutations_hold_every_number_once) {
    wg_generator generator = {.seed = 9};
    wg_tensor *x = wg_randperm(&generator, 1000);
    const int64_t *order = wg_tensor_data(x);
    bool seen[1000] = {false};
    int fixed = 0;
    for (int i = 0; i < 1000; i++) {
        ck_assert(0 <= order[i] && order[i] < 1000 && !seen[order[i]]);
        seen[order[i]] = true;
        fixed += order[i] == i;
    }
    ck_assert_int_lt(fixed, 10);
    ck_assert_int_eq(wg_tensor_count(wg_randperm(&generator, 0)), 0);
}

TEST(all_permutations_are_as_likely) {
    wg_generator generator = {.seed = 10};
    int counts[27] = {0}, kinds = 0;
    for (int i = 0; i < 12000; i++)
        IN_SCOPE() {
            const int64_t *order = wg_tensor_data(wg_randperm(&generator, 3));
            counts[order[0] * 9 + order[1] * 3 + order[2]]++;
        }
    for (int i = 0; i < 27; i++) {
        kinds += counts[i] > 0;
        ck_assert(!counts[i] || abs(counts[i] - 2000) < 5 * 41);
    }
    ck_assert_int_eq(kinds, 6);
}

TEST(bf16_draws_are_rounded_f32_draws) {
    wg_generator a = {.seed = 12}, b = a;
    wg_tensor *x = wg_randn(&a, WG_BF16, WG_DIMS(100)), *y = wg_randn(&b, WG_F32, WG_DIMS(100));
    ck_assert_int_eq(wg_tensor_dtype(x), WG_BF16);
    assert_close(wg_cast(x, WG_F32), y, 0x1p-8, 0);
}
