/* Number formats of files: the bits of ggml's own code and of NumPy (tests/fixtures/quants.py). */
#include <string.h>

#include "io/weights/binary_file.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"

enum { BLOCK = 32, MOST_BYTES = 65536 };

static const void *data(const char *name) {
    return wg_tensor_data(fixture_tensor("quants/%s", name));
}

static int64_t numbers_count(void) {
    return wg_tensor_count(fixture_tensor("quants/numbers"));
}

/* Every bit agrees, also of zeros and of numbers that are not finite. */
static void assert_decodes(wg__storage_dtype storage, const char *blocks, const char *numbers) {
    static float out[MOST_BYTES / sizeof(float)];
    const int64_t count = numbers_count();
    ck_assert_int_le(count, WG_COUNT(out));
    wg__storage_decode(storage, count, data(blocks), out);
    const float *expected = data(numbers);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(memcmp(&out[i], &expected[i], sizeof(float)) == 0,
                      "%s, number %lld: %a, wanted %a", blocks, (long long)i, (double)out[i],
                      (double)expected[i]);
}

TEST(blocks_of_8_and_of_4_bits_stand_for_ggmls_numbers) {
    assert_decodes(WG__STORAGE_Q8_0, "q8_0", "q8_0_back");
    assert_decodes(WG__STORAGE_Q4_0, "q4_0", "q4_0_back");
}

TEST(blocks_of_8_bits_are_written_as_ggml_writes_them) {
    static uint8_t out[MOST_BYTES];
    const int64_t count = numbers_count(),
                  bytes = count / BLOCK * wg__storage_kinds[WG__STORAGE_Q8_0].block_bytes;
    ck_assert_int_le(bytes, MOST_BYTES);
    wg__storage_encode(WG__STORAGE_Q8_0, count, data("numbers"), out);
    const uint8_t *expected = data("q8_0");
    for (int64_t i = 0; i < bytes; i++)
        ck_assert_msg(out[i] == expected[i], "block %lld, byte %lld: %d, wanted %d",
                      (long long)(i / 34), (long long)(i % 34), out[i], expected[i]);
}

TEST(halves_are_numpys) {
    static uint8_t out[MOST_BYTES];
    const int64_t count = numbers_count();
    wg__storage_encode(WG__STORAGE_F16, count, data("numbers"), out);
    const int32_t *expected = data("f16");
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(out[2 * i] | out[2 * i + 1] << 8, expected[i]);
}
