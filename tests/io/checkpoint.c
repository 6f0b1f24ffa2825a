/* Checkpoints: round trips, strict reading, lack of memory, and other programs that read them. */
#include "io/checkpoint/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hdf5.h>

#include "base/alloc.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "tests/io/toy.h"
#include "io/internal.h"

/* ---- Round trips ---- */

static void check_same(wg_checkpoint *file, const char *name, const wg_tensor *x) {
    wg_tensor *read = wg_checkpoint_get_tensor(file, name);
    assert_no_error();
    ck_assert_ptr_nonnull(read);
    ck_assert_int_eq(wg_tensor_dtype(read), wg_tensor_dtype(x));
    ck_assert_int_eq(wg_tensor_ndim(read), wg_tensor_ndim(x));
    ck_assert_mem_eq(wg_tensor_shape(read), wg_tensor_shape(x),
                     (size_t)wg_tensor_ndim(x) * sizeof(int64_t));
    size_t size = (size_t)wg_tensor_count(x) * wg_dtype_size(wg_tensor_dtype(x));
    uint8_t *ours = malloc(size + 1), *theirs = malloc(size + 1);
    wg_to_array(x, ours);
    wg_to_array(read, theirs);
    ck_assert_msg(memcmp(ours, theirs, size) == 0, "%s came back otherwise", name);
    free(ours);
    free(theirs);
}

START_TEST(every_dtype_and_rank_comes_back_the_same) {
    const char *path = in_scratch("t.h5");
    wg_tensor *tensors[WG_DTYPE_COUNT][5];
    char name[64];
    wg_checkpoint *file = wg_checkpoint_create(path);
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        wg_tensor *row = wg_slice(wg_arange(WG_F64, 1, 61, 1), 0, 0, WG_END, 1);
        tensors[dtype][0] = wg_full((wg_dtype)dtype, 0, NULL, 3);
        tensors[dtype][1] = wg_cast(row, (wg_dtype)dtype);
        tensors[dtype][2] = wg_cast(wg_reshape(row, WG_DIMS(3, 4, 5)), (wg_dtype)dtype);
        tensors[dtype][3] =
            wg_cast(wg_reshape(row, WG_DIMS(1, 2, 1, 3, 1, 2, 1, 5)), (wg_dtype)dtype);
        tensors[dtype][4] = wg_zeros((wg_dtype)dtype, WG_DIMS(2, 0, 3));
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "/%s/%d", wg_dtype_name((wg_dtype)dtype), i);
            ck_assert_int_eq(wg_checkpoint_put_tensor(file, name, tensors[dtype][i]), 0);
        }
    }
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    file = wg_checkpoint_open(path);
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof name, "/%s/%d", wg_dtype_name((wg_dtype)dtype), i);
            check_same(file, name, tensors[dtype][i]);
        }
    }
    wg_checkpoint_close(file);
}
END_TEST

/* Writes the tensors to a file and reads them again. */
static void assert_come_back(size_t count, wg_tensor *const *tensors) {
    const char *path = in_scratch("t.h5");
    char name[32];
    wg_checkpoint *file = wg_checkpoint_create(path);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "/%zu", i);
        ck_assert_int_eq(wg_checkpoint_put_tensor(file, name, tensors[i]), 0);
    }
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    file = wg_checkpoint_open(path);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "/%zu", i);
        check_same(file, name, tensors[i]);
    }
    wg_checkpoint_close(file);
}

START_TEST(views_of_any_strides_are_written_in_order) {
    wg_tensor *x = wg_reshape(wg_arange(WG_F32, 0, 24, 1), WG_DIMS(4, 6));
    wg_tensor *const views[] = {wg_transpose(x, 0, 1), wg_slice(x, 1, 1, 6, 2),
                                wg_slice(x, 0, WG_END, WG_END, -1), wg_select(x, 1, 3),
                                wg_expand(wg_slice(x, 0, 1, 2, 1), WG_DIMS(3, 6))};
    assert_come_back(WG_COUNT(views), views);
}
END_TEST

START_TEST(tensors_of_many_chunks_come_back_the_same) {
    wg_generator generator = {.seed = 5};
    wg_tensor *const tensors[] = {
        wg_randn(&generator, WG_F32, WG_DIMS(300007)),
        wg_randn(&generator, WG_F32, WG_DIMS(1, 300007)),
        wg_randn(&generator, WG_F64, WG_DIMS(1031, 257)),
        wg_randn(&generator, WG_F32, WG_DIMS(3, 2, 140001)),
    };
    assert_come_back(WG_COUNT(tensors), tensors);
}
END_TEST

START_TEST(texts_and_numbers_come_back_the_same) {
    const char *path = in_scratch("t.h5");
    char *long_text = malloc(300001);
    for (int i = 0; i < 300000; i++)
        long_text[i] = (char)('a' + i * 7 % 26);
    long_text[300000] = '\0';
    const char *const texts[] = {"", "{\"a\": \"caf\xc3\xa9 \xf0\x9f\x90\xb3\"}\n", long_text};
    const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN};
    const double numbers[] = {0.1, -0.0, 5e-324, INFINITY};
    char name[32];
    wg_checkpoint *file = wg_checkpoint_create(path);
    for (size_t i = 0; i < WG_COUNT(texts); i++) {
        snprintf(name, sizeof name, "/texts/%zu", i);
        ck_assert_int_eq(wg_checkpoint_put_text(file, name, texts[i]), 0);
    }
    for (size_t i = 0; i < WG_COUNT(integers); i++) {
        snprintf(name, sizeof name, "/integers/%zu", i);
        ck_assert_int_eq(wg_checkpoint_put_integer(file, name, integers[i]), 0);
        snprintf(name, sizeof name, "/numbers/%zu", i);
        ck_assert_int_eq(wg__checkpoint_put_number(file, name, numbers[i]), 0);
    }
    wg_tensor *list = wg_from_array(WG_F64, WG_DIMS(4), numbers);
    ck_assert_int_eq(wg_checkpoint_put_tensor(file, "/list", list), 0);
    ck_assert_int_eq(wg_checkpoint_put_tensor(file, "/empty", wg_zeros(WG_F64, WG_DIMS(0))), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    file = wg_checkpoint_open(path);
    for (size_t i = 0; i < WG_COUNT(texts); i++) {
        snprintf(name, sizeof name, "/texts/%zu", i);
        char *text = wg_checkpoint_get_text(file, name);
        ck_assert_ptr_nonnull(text);
        ck_assert_str_eq(text, texts[i]);
        wg_text_free(text);
    }
    for (size_t i = 0; i < WG_COUNT(integers); i++) {
        int64_t integer = 7;
        double number = 7;
        snprintf(name, sizeof name, "/integers/%zu", i);
        ck_assert_int_eq(wg_checkpoint_get_integer(file, name, &integer), 0);
        ck_assert_int_eq(integer, integers[i]);
        snprintf(name, sizeof name, "/numbers/%zu", i);
        number = wg_item(wg_checkpoint_get_tensor(file, name));
        ck_assert_mem_eq(&number, &numbers[i], sizeof number);
    }
    ck_assert_int_eq(wg_tensor_count(wg_checkpoint_get_tensor(file, "/list")), 4);
    ck_assert_int_eq(wg_tensor_count(wg_checkpoint_get_tensor(file, "/empty")), 0);
    wg_checkpoint_close(file);
    free(long_text);
}
END_TEST

START_TEST(the_same_contents_give_the_same_bytes) {
    const char *a = in_scratch("a.h5"), *b = in_scratch("b.h5");
    toy *model = toy_new(4, 1);
    save_toy(a, model);
    sleep(1); /* a second later a stored time would differ */
    save_toy(b, model);
    bytes first = read_bytes(a), second = read_bytes(b);
    ck_assert_uint_eq(first.count, second.count);
    ck_assert_mem_eq(first.data, second.data, first.count);
    free(first.data);
    free(second.data);
    toy_free(model);
}
END_TEST

/* ---- Modules and optimizers ---- */

START_TEST(a_module_and_its_optimizer_come_back_bit_for_bit) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1), *other = toy_new(4, 2);
    save_toy(path, model);
    ck_assert_int_eq(load_toy(path, other), 0);
    assert_same_toys(model, other);
    ck_assert(wg_requires_grad(other->table));
    toy_free(model);
    toy_free(other);
}
END_TEST

typedef struct names {
    int count;
    char names[32][64];
} names;

static int collect(const char *name, const wg_spec *spec, void *context) {
    names *list = context;
    (void)spec;
    snprintf(list->names[list->count++], 64, "%s", name);
    return 0;
}

START_TEST(groups_mirror_the_tree_and_tied_weights_are_saved_once) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1);
    save_toy(path, model);
    const char *const expected[] = {
        "/config",
        "/model/bert/ids",
        "/model/bert/layer/0/bias",
        "/model/bert/layer/0/weight",
        "/model/bert/table",
        "/optimizer/exp_avg/bert/layer/0/bias",
        "/optimizer/exp_avg/bert/table",
        "/optimizer/exp_avg_sq/bert/layer/0/bias",
        "/optimizer/exp_avg_sq/bert/table",
        "/optimizer/steps",
        "/train/step",
    };
    names list = {0};
    wg_checkpoint *file = wg_checkpoint_open(path);
    ck_assert_int_eq(wg_checkpoint_each(file, collect, &list), 0);
    ck_assert_int_eq(list.count, (int)WG_COUNT(expected));
    for (size_t i = 0; i < WG_COUNT(expected); i++)
        ck_assert_str_eq(list.names[i], expected[i]);
    ck_assert(wg_checkpoint_has(file, "/model/bert/layer"));
    ck_assert(wg_checkpoint_has(file, "/model/bert/table"));
    ck_assert(!wg_checkpoint_has(file, "/model/decoder"));
    ck_assert(!wg_checkpoint_has(file, "/no/such/thing"));
    ck_assert(!wg_checkpoint_has(file, "/config/below"));
    ck_assert(!wg_checkpoint_has(file, "config"));
    ck_assert(!wg_checkpoint_has(file, ""));
    wg_checkpoint_close(file);
    toy_free(model);
}
END_TEST

static int stop_at_third(const char *name, const wg_spec *spec, void *context) {
    (void)name, (void)spec;
    return ++*(int *)context == 3 ? -7 : 0;
}

/* A file with an integer below so many groups, one in the other. */
static wg_checkpoint *make_nested(int groups) {
    const char *path = in_scratch("nested.h5");
    char name[4096] = "";
    for (int i = 0; i < groups; i++)
        strcat(name, "/a");
    strcat(name, "/x");
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_integer(file, name, 1), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    return wg_checkpoint_open(path);
}

static int count_names(const char *name, const wg_spec *spec, void *count) {
    (void)name, (void)spec;
    ++*(int *)count;
    return 0;
}

START_TEST(groups_nested_without_end_are_refused) {
    int count = 0;
    wg_checkpoint *file = make_nested(200);
    ck_assert_int_eq(wg_checkpoint_each(file, count_names, &count), 0);
    ck_assert_int_eq(count, 1);
    wg_checkpoint_close(file);
    file = make_nested(300);
    ck_assert_int_eq(wg_checkpoint_each(file, count_names, &count), -1);
    assert_error(WG_ERROR_FORMAT, "groups are nested more than 256 deep");
    wg_checkpoint_close(file);
}
END_TEST

START_TEST(a_visitor_can_stop_the_walk) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1);
    save_toy(path, model);
    wg_checkpoint *file = wg_checkpoint_open(path);
    int calls = 0;
    ck_assert_int_eq(wg_checkpoint_each(file, stop_at_third, &calls), -7);
    ck_assert_int_eq(calls, 3);
    wg_checkpoint_close(file);
    toy_free(model);
}
END_TEST

START_TEST(everything_that_differs_is_named_at_once_and_nothing_changes) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1), *narrow = toy_new(3, 2), *before = toy_new(3, 2);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_module(file, "/model", &model->module);
    wg__checkpoint_put_number(file, "/model/bert/layer/1/extra", 1);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_module_parameter(&narrow->module, "head", WG_DIMS(2));
    file = wg_checkpoint_open(path);
    ck_assert_int_eq(wg_checkpoint_get_module(file, "/model", &narrow->module), -1);
    assert_error(WG_ERROR_NOT_FOUND,
                 "1 missing (/model/head); 1 unexpected (/model/bert/layer/1/extra); 1 misshapen "
                 "(/model/bert/layer/0/weight is (4, 4) f32, wanted (3, 4) f32)");
    assert_same_toys(narrow, before);
    ck_assert_int_eq(wg_checkpoint_get_optimizer(file, narrow->optimizer), -1);
    assert_error(WG_ERROR_NOT_FOUND, "has no /optimizer/steps");
    wg_checkpoint_close(file);
    toy_free(model);
    toy_free(narrow);
    toy_free(before);
}
END_TEST

START_TEST(a_long_list_of_differences_is_counted) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_module(file, "/model", &model->module);
    char name[64];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "/model/another_tensor/of_many/%d", i);
        wg_checkpoint_put_integer(file, name, i);
    }
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    file = wg_checkpoint_open(path);
    ck_assert_int_eq(wg_checkpoint_get_module(file, "/model", &model->module), -1);
    ck_assert_ptr_nonnull(strstr(wg_error_pending()->message, ", ...)"));
    assert_error(WG_ERROR_FORMAT, "200 unexpected (/model/another_tensor/of_many/0, ");
    wg_checkpoint_close(file);
    toy_free(model);
}
END_TEST

START_TEST(an_f32_file_loads_into_a_module_turned_f64) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1), *wide = toy_new(4, 2);
    save_toy(path, model);
    ck_assert_int_eq(wg_module_to(&wide->module, WG_F64), 0);
    wg_checkpoint *file = wg_checkpoint_open(path);
    ck_assert_int_eq(wg_checkpoint_get_module(file, "/model", &wide->module), 0);
    assert_close(wide->table, wg_cast(wg_detach(model->table), WG_F64), 0, 0);
    wg_checkpoint_close(file);
    toy_free(model);
    toy_free(wide);
}
END_TEST

START_TEST(a_value_of_another_kind_is_refused) {
    const char *path = in_scratch("t.h5");
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_text(file, "/text", "hello");
    wg_checkpoint_put_integer(file, "/integer", 1);
    wg__checkpoint_put_number(file, "/number", 1);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    file = wg_checkpoint_open(path);
    int64_t integer;
    ck_assert_ptr_null(wg_checkpoint_get_text(file, "/integer"));
    assert_error(WG_ERROR_FORMAT, "/integer is no text");
    ck_assert_ptr_null(wg_checkpoint_get_tensor(file, "/text"));
    assert_error(WG_ERROR_FORMAT, "/text is a text");
    ck_assert_int_eq(wg_checkpoint_get_integer(file, "/number", &integer), -1);
    assert_error(WG_ERROR_FORMAT, "/number is no integer");
    ck_assert_ptr_null(wg_checkpoint_get_tensor(file, "/none"));
    assert_error(WG_ERROR_NOT_FOUND, "t.h5 has no /none");
    wg_checkpoint_close(file);
}
END_TEST

/* ---- No memory ---- */

START_TEST(no_memory_is_an_error_and_nothing_leaks) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1), *other = toy_new(4, 2), *before = toy_new(4, 2);
    save_toy(path, model);
    wg_scope_clear_root();
    int64_t blocks = wg_alloc_get_stats().live_blocks;
    int status = -1;
    for (int64_t n = 0; status < 0; n++) {
        wg__alloc_fail_after(n);
        save_toy(path, model);
        status = wg_error_pending() ? -1 : 0;
        wg__alloc_fail_after(-1);
        if (status < 0)
            assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
        ck_assert_int_eq(files_in(scratch()), 1);
        ck_assert_int_lt(n, 1000);
    }
    status = -1;
    for (int64_t n = 0; status < 0; n++) {
        wg__alloc_fail_after(n);
        wg_checkpoint *file = wg_checkpoint_open(path);
        status = wg_checkpoint_get_module(file, "/model", &other->module);
        wg_checkpoint_close(file);
        wg__alloc_fail_after(-1);
        if (status < 0) {
            assert_error(WG_ERROR_MEMORY, "");
            assert_same_toys(other, before);
        }
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, blocks);
        ck_assert_int_lt(n, 1000);
    }
    toy_free(model);
    toy_free(other);
    toy_free(before);
}
END_TEST

/* ---- What others read ---- */

/* The output of a command, or NULL if the program is missing; a static buffer. */
static const char *output_of(const char *command) {
    static char text[65536];
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    int status = pclose(pipe);
    if (WEXITSTATUS(status) != 127)
        return text;
    printf("# cannot run: %s; skipped\n", command);
    return NULL;
}

START_TEST(h5dump_reads_what_was_written) {
    const char *path = in_scratch("t.h5");
    char command[1024];
    save_sampler(path);
    snprintf(command, sizeof command, "h5dump %s 2>&1", path);
    const char *text = output_of(command);
    if (!text)
        return;
    const char *const lines[] = {
        "DATASET \"config\"", "{\"hidden_size\": 128, \"vocab_size\": 8192}",
        "(0): 1234567",       "(0): 9.5, 8.25, 7.125",
        "(1,0): 4, 5, 6, 7",  "(0): TRUE, TRUE, TRUE, TRUE",
        "(0): \"bf16\""};
    for (size_t i = 0; i < WG_COUNT(lines); i++)
        ck_assert_msg(strstr(text, lines[i]), "h5dump shows no %s:\n%s", lines[i], text);
}
END_TEST

START_TEST(h5ls_shows_the_published_paths) {
    const char *path = in_scratch("t.h5");
    char command[1024];
    toy *model = toy_new(4, 1);
    save_toy(path, model);
    snprintf(command, sizeof command, "h5ls -r %s 2>&1", path);
    const char *text = output_of(command);
    if (text)
        ck_assert_msg(strstr(text, "/model/bert/layer/0/weight Dataset {4, 4}"), "%s", text);
    toy_free(model);
}
END_TEST

START_TEST(applications_keep_their_own_printing_of_hdf5_errors) {
    H5E_auto2_t before, after;
    void *context;
    H5Eget_auto2(H5E_DEFAULT, &before, &context);
    ck_assert_ptr_null(wg_checkpoint_open("no/such.h5"));
    wg_error_clear();
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("t.h5"));
    wg_checkpoint_abort(file);
    H5Eget_auto2(H5E_DEFAULT, &after, &context);
    ck_assert(before == after);
    ck_assert(before != NULL);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        every_dtype_and_rank_comes_back_the_same,
        views_of_any_strides_are_written_in_order,
        tensors_of_many_chunks_come_back_the_same,
        texts_and_numbers_come_back_the_same,
        the_same_contents_give_the_same_bytes,
        a_module_and_its_optimizer_come_back_bit_for_bit,
        groups_mirror_the_tree_and_tied_weights_are_saved_once,
        a_visitor_can_stop_the_walk,
        groups_nested_without_end_are_refused,
        everything_that_differs_is_named_at_once_and_nothing_changes,
        a_long_list_of_differences_is_counted,
        an_f32_file_loads_into_a_module_turned_f64,
        a_value_of_another_kind_is_refused,
        no_memory_is_an_error_and_nothing_leaks,
        h5dump_reads_what_was_written,
        h5ls_shows_the_published_paths,
        applications_keep_their_own_printing_of_hdf5_errors,
    };
    add_suite("checkpoint", tests);
}
