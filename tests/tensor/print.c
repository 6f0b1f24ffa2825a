/* Tensors print as NumPy's arrays do: tests/fixtures/print.txt is NumPy's output. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/support/tensors.h"

#define LINE 65536
#define TEXT 65536

typedef struct print_case {
    char name[64];
    wg_tensor *tensor;
    char text[TEXT]; /* with no line end */
} print_case;

static wg_tensor *tensor_of(const wg_spec *spec, char *elements) {
    const bool is_float = wg_dtype_is_float(spec->dtype);
    wg_tensor *x = wg_empty(is_float ? WG_F64 : WG_I64, spec->ndim, spec->shape);
    const bool arange = strcmp(elements, "arange\n") == 0;
    char number[32], *state = NULL;
    for (int64_t i = 0; i < wg_tensor_count(x); i++) {
        snprintf(number, sizeof(number), "%" PRId64, i);
        const char *text = arange ? number : strtok_r(i ? NULL : elements, " \n", &state);
        ck_assert_ptr_nonnull(text);
        if (is_float)
            ((double *)wg_tensor_data(x))[i] = strtod(text, NULL);
        else
            ((int64_t *)wg_tensor_data(x))[i] = strtoll(text, NULL, 10);
    }
    return wg_cast(x, spec->dtype);
}

static void read_line(FILE *file, char *line) {
    ck_assert_ptr_nonnull(fgets(line, LINE, file));
    ck_assert(strchr(line, '\n'));
}

static void read_spec(char *line, print_case *found, wg_spec *spec) {
    char *state = NULL;
    snprintf(found->name, sizeof(found->name), "%s", strtok_r(line, " \n", &state));
    spec->dtype = dtype_named(strtok_r(NULL, " \n", &state));
    spec->ndim = atoi(strtok_r(NULL, " \n", &state));
    for (int d = 0; d < spec->ndim; d++)
        spec->shape[d] = atoll(strtok_r(NULL, " \n", &state));
}

static bool next_case(FILE *file, print_case *found) {
    static char line[LINE];
    if (!fgets(line, LINE, file))
        return false;
    wg_spec spec;
    read_spec(line, found, &spec);
    read_line(file, line);
    found->tensor = tensor_of(&spec, line);
    read_line(file, line);
    found->text[0] = '\0';
    for (int lines = atoi(line); lines > 0; lines--) {
        read_line(file, line);
        ck_assert_uint_lt(strlen(found->text) + strlen(line), TEXT);
        strcat(found->text, line);
    }
    found->text[strlen(found->text) - 1] = '\0';
    return true;
}

static void assert_prints(const char *name, const wg_tensor *x, const char *expected) {
    static char text[TEXT];
    int64_t length = wg_format(text, sizeof(text), x);
    ck_assert_msg(strcmp(text, expected) == 0, "%s %s prints as\n%s\nand NumPy's is\n%s",
                  wg_dtype_name(wg_tensor_dtype(x)), name, text, expected);
    ck_assert_int_eq(length, (int64_t)strlen(expected));
}

TEST(every_fixture_prints_as_numpy_prints_it) {
    static print_case found;
    FILE *file = fopen(fixture("print.txt"), "r");
    ck_assert_ptr_nonnull(file);
    int count = 0;
    for (; next_case(file, &found); count++)
        assert_prints(found.name, found.tensor, found.text);
    fclose(file);
    ck_assert_int_gt(count, 150);
}

TEST(views_print_the_elements_that_they_show) {
    wg_tensor *x = wg_reshape(wg_arange(WG_I64, 0, 12, 1), WG_DIMS(3, 4));
    assert_prints("transposed", wg_transpose(x, 0, 1),
                  "[[ 0  4  8]\n [ 1  5  9]\n [ 2  6 10]\n [ 3  7 11]]");
    assert_prints("reversed", wg_slice(wg_select(x, 0, 1), 0, WG_END, WG_END, -1), "[7 6 5 4]");
    assert_prints("expanded", wg_expand(wg_scalar(WG_F32, 1.5), WG_DIMS(2, 2)),
                  "[[1.5 1.5]\n [1.5 1.5]]");
}

TEST(bf16_prints_as_the_f32_that_it_is) {
    const float values[] = {1.0f, -0.1f, 3.0f};
    wg_tensor *x = wg_cast(wg_from_array(WG_F32, WG_DIMS(3), values), WG_BF16);
    assert_prints("bf16", x, "[ 1.         -0.10009766  3.        ]");
}

TEST(a_short_buffer_gets_the_beginning_and_the_whole_length) {
    wg_tensor *x = wg_arange(WG_I32, 0, 5, 1);
    char text[8] = "unused?";
    ck_assert_int_eq(wg_format(text, 5, x), 11);
    ck_assert_str_eq(text, "[0 1");
    ck_assert_str_eq(text + 5, "d?");
    ck_assert_int_eq(wg_format(NULL, 0, x), 11);
}

TEST(print_writes_the_text_and_ends_the_line) {
    char text[64] = "";
    FILE *stream = fmemopen(text, sizeof(text), "w");
    ck_assert_int_eq(wg_print(stream, wg_ones(WG_F32, WG_DIMS(2, 1))), 0);
    fclose(stream);
    ck_assert_str_eq(text, "[[1.]\n [1.]]\n");
}

TEST(print_says_that_a_stream_refuses) {
    FILE *stream = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(stream);
    setvbuf(stream, NULL, _IONBF, 0);
    failed(wg_print(stream, wg_ones(WG_F32, WG_DIMS(3))), IO, "print");
    fclose(stream);
}

TEST(nothing_is_printed_of_null) {
    char text[4] = "abc";
    ck_assert_int_eq(wg_format(text, sizeof(text), NULL), -1);
    ck_assert_str_eq(text, "abc");
    ck_assert_int_eq(wg_print(stderr, NULL), -1);
}
