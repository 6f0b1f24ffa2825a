/* .npy files: NumPy's are read, ours have NumPy's bytes, and hostile ones are refused. */
#include "tensor/npy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/tensors.h"

static const char *numpy_file(const char *name) {
    char path[128];
    snprintf(path, sizeof(path), "npy/%s.npy", name);
    return fixture(path);
}

/* numbers * scale + shift, of shape (2, 3, 4): what tests/fixtures/npy.py saves. */
static wg_tensor *values_of(wg_dtype dtype, int64_t scale, int64_t shift) {
    wg_tensor *x = wg_reshape(wg_arange(WG_I64, 0, 24, 1), WG_DIMS(2, 3, 4));
    return wg_cast(wg_affine(x, (double)scale, (double)shift), dtype);
}

static void assert_equal(const wg_tensor *x, const wg_tensor *expected) {
    assert_close(x, expected, 0, 0);
}

/* Writes a version 1.0 file of this header and so many zero bytes of elements. */
static const char *made_file(const char *header, size_t element_bytes) {
    char bytes[1024] = "\x93NUMPY\x01";
    size_t length = strlen(header);
    bytes[8] = (char)(length & 0xff);
    bytes[9] = (char)(length >> 8);
    memcpy(bytes + 10, header, length);
    const char *path = in_scratch("made.npy");
    write_file(path, bytes, 10 + length + element_bytes);
    return path;
}

static void assert_refused(const char *header, size_t element_bytes, const char *why) {
    refused(wg_npy_load(made_file(header, element_bytes)), FORMAT, why);
}

TEST(files_of_numpy_are_read) {
    assert_equal(wg_npy_load(numpy_file("f32")), values_of(WG_F32, 3, -5));
    assert_equal(wg_npy_load(numpy_file("f64")), values_of(WG_F64, 3, -5));
    assert_equal(wg_npy_load(numpy_file("i32")), values_of(WG_I32, 3, -5));
    assert_equal(wg_npy_load(numpy_file("i64")), values_of(WG_I64, 3, -5));
    assert_equal(wg_npy_load(numpy_file("u8")), values_of(WG_U8, 3, 0));
    assert_equal(wg_npy_load(numpy_file("scalar")), wg_scalar(WG_F64, 2.5));
    assert_equal(wg_npy_load(numpy_file("vector")),
                 wg_from_array(WG_F32, WG_DIMS(2), (float[]){1.5f, -2.0f}));
    assert_equal(wg_npy_load(numpy_file("empty")), wg_zeros(WG_F32, WG_DIMS(0, 3)));
}

TEST(bools_are_read) {
    wg_tensor *x = wg_npy_load(numpy_file("bool"));
    ck_assert_int_eq(wg_tensor_dtype(x), WG_BOOL);
    ck_assert(wg_at(x, (int64_t[]){0, 0, 3}) == 1 && wg_at(x, (int64_t[]){0, 1, 0}) == 0);
}

TEST(a_bool_of_another_byte_is_true) {
    const char *path = made_file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n", 2);
    FILE *file = fopen(path, "r+b");
    fseek(file, -1, SEEK_END);
    fputc(7, file);
    fclose(file);
    const uint8_t *data = wg_tensor_data(wg_npy_load(path));
    ck_assert(data[0] == 0 && data[1] == 1);
}

TEST(fortran_order_is_read) {
    wg_tensor *x = wg_npy_load(numpy_file("fortran"));
    assert_equal(x, values_of(WG_F32, 1, 0));
    ck_assert(wg_tensor_is_contiguous(x));
}

TEST(formats_2_and_3_are_read) {
    assert_equal(wg_npy_load(numpy_file("format2")), values_of(WG_F32, 1, 0));
    assert_equal(wg_npy_load(numpy_file("format3")), values_of(WG_F32, 1, 0));
}

TEST(foreign_dtypes_are_refused_by_name) {
    const char *const files[] = {"big_endian", "complex", "half", "structured"};
    const char *const dtypes[] = {"'>f4'", "'<c8'", "'<f2'", "[('a'"};
    for (size_t i = 0; i < WG_COUNT(files); i++) {
        refused(wg_npy_load(numpy_file(files[i])), FORMAT, dtypes[i]);
    }
}

TEST(what_is_saved_is_the_file_that_numpy_writes) {
    const char *const names[] = {"f32",  "f64",    "i32",    "i64",  "u8",
                                 "bool", "scalar", "vector", "empty"};
    for (size_t i = 0; i < WG_COUNT(names); i++) {
        const bytes theirs = read_bytes(numpy_file(names[i]));
        const char *path = in_scratch("saved.npy");
        ck_assert_int_eq(wg_npy_save(wg_npy_load(numpy_file(names[i])), path), 0);
        const bytes ours = read_bytes(path);
        ck_assert_uint_eq(ours.count, theirs.count);
        ck_assert_msg(memcmp(ours.data, theirs.data, ours.count) == 0, "%s.npy differs", names[i]);
        free(ours.data);
        free(theirs.data);
    }
}

TEST(a_view_is_saved_in_row_major_order) {
    wg_tensor *x = wg_slice(wg_transpose(values_of(WG_F32, 1, 0), 0, 2), 1, WG_END, WG_END, -1);
    const char *path = in_scratch("view.npy");
    ck_assert_int_eq(wg_npy_save(x, path), 0);
    assert_equal(wg_npy_load(path), x);
}

TEST(bf16_is_refused) {
    const char *path = in_scratch("bf16.npy");
    failed(wg_npy_save(wg_zeros(WG_BF16, WG_DIMS(2)), path), DTYPE, "bf16");
    ck_assert_int_ne(access(path, F_OK), 0);
}

TEST(a_save_that_fails_leaves_the_old_file_and_no_other) {
    const char *path = in_scratch("old");
    ck_assert_int_eq(mkdir(path, 0777), 0);
    failed(wg_npy_save(wg_zeros(WG_F32, WG_DIMS(2)), path), IO, path);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(rmdir(scratch()), 0);
}

TEST(a_folder_that_is_missing_is_named) {
    failed(wg_npy_save(wg_zeros(WG_F32, WG_DIMS(2)), "no/such/folder.npy"), NOT_FOUND,
           "no/such/folder.npy: ");
    refused(wg_npy_load("no/such/file.npy"), NOT_FOUND, "no/such/file.npy");
    refused(wg_npy_load(scratch()), IO, "not a regular file");
}

TEST(a_file_cut_short_anywhere_is_refused) {
    const bytes file = read_bytes(numpy_file("f32"));
    const char *path = in_scratch("cut.npy");
    for (size_t kept = 0; kept < file.count; kept++) {
        write_file(path, file.data, kept);
        ck_assert_msg(!wg_npy_load(path), "%zu bytes of %zu were accepted", kept, file.count);
        assert_error(WG_ERROR_FORMAT, path);
    }
    free(file.data);
}

TEST(headers_that_lie_are_refused) {
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8, "12 bytes");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 8, "4 bytes");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }", 8,
                   "tuple of sizes");
    assert_refused(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }", 8,
        "tuple of sizes");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8,
                   "tuple of sizes");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2), }", 8,
                   "more than 8");
}

TEST(a_shape_whose_product_overflows_is_refused) {
    const char *header =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }";
    refused(wg_npy_load(made_file(header, 0)), SHAPE, "npy");
}

TEST(headers_that_are_no_dictionary_are_refused) {
    const char *const headers[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2], }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } + 1",
        "{'descr': <f4, 'fortran_order': False, 'shape': (2,), }",
        "{'descr' '<f4' 'fortran_order': False, 'shape': (2,), }",
    };
    for (size_t i = 0; i < WG_COUNT(headers); i++)
        assert_refused(headers[i], 8, "npy");
}

TEST(other_formats_and_lengths_are_refused) {
    char bytes[128] = "\x93NUMPY\x04";
    const char *path = in_scratch("made.npy");
    write_file(path, bytes, sizeof(bytes));
    refused(wg_npy_load(path), FORMAT, "format 4.0");
    memcpy(bytes + 6, "\x02\x00\xff\xff\xff\xff", 6);
    write_file(path, bytes, sizeof(bytes));
    refused(wg_npy_load(path), FORMAT, "4294967295");
    write_file(path, "PK\x03\x04 an archive", 16);
    refused(wg_npy_load(path), FORMAT, "NUMPY");
}

TEST(spaces_and_order_of_the_keys_do_not_matter) {
    assert_equal(wg_npy_load(made_file("{'shape':(2,1),'fortran_order':False,'descr':'<i4'}", 8)),
                 wg_zeros(WG_I32, WG_DIMS(2, 1)));
}

static int load_fortran(void *context) {
    return wg_npy_load(context) ? 0 : -1;
}

TEST(lack_of_memory_is_survived) {
    fail_each_allocation(load_fortran, (void *)numpy_file("fortran"));
}
