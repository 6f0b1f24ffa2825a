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

/* Writes the tensors to a file and reads them again. */
static void assert_come_back(size_t count, wg_tensor *const *tensors) {
    const char *path = in_scratch("t.h5");
    char name[32];
    wg_checkpoint *file = wg_checkpoint_create(path);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "/%zu", i);
        ck_assert_int_eq(wg_checkpoint_put_tensor(file, name, tensors[i]), 0);
    }
    file = reopened(file, path);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "/%zu", i);
        check_same(file, name, tensors[i]);
    }
}

TEST(every_dtype_and_rank_comes_back_the_same) {
    wg_tensor *tensors[WG_DTYPE_COUNT * 5], **x = tensors;
    wg_tensor *row = wg_arange(WG_F64, 1, 61, 1);
    for (wg_dtype dtype = 0; dtype < WG_DTYPE_COUNT; dtype++) {
        *x++ = wg_full(dtype, 0, NULL, 3);
        *x++ = wg_cast(row, dtype);
        *x++ = wg_cast(wg_reshape(row, WG_DIMS(3, 4, 5)), dtype);
        *x++ = wg_cast(wg_reshape(row, WG_DIMS(1, 2, 1, 3, 1, 2, 1, 5)), dtype);
        *x++ = wg_zeros(dtype, WG_DIMS(2, 0, 3));
    }
    assert_come_back(WG_COUNT(tensors), tensors);
}

TEST(views_of_any_strides_are_written_in_order) {
    wg_tensor *x = wg_reshape(wg_arange(WG_F32, 0, 24, 1), WG_DIMS(4, 6));
    wg_tensor *const views[] = {wg_transpose(x, 0, 1), wg_slice(x, 1, 1, 6, 2),
                                wg_slice(x, 0, WG_END, WG_END, -1), wg_select(x, 1, 3),
                                wg_expand(wg_slice(x, 0, 1, 2, 1), WG_DIMS(3, 6))};
    assert_come_back(WG_COUNT(views), views);
}

TEST(tensors_of_many_chunks_come_back_the_same) {
    wg_generator generator = {.seed = 5};
    wg_tensor *const tensors[] = {
        wg_randn(&generator, WG_F32, WG_DIMS(300007)),
        wg_randn(&generator, WG_F32, WG_DIMS(1, 300007)),
        wg_randn(&generator, WG_F64, WG_DIMS(1031, 257)),
        wg_randn(&generator, WG_F32, WG_DIMS(3, 2, 140001)),
    };
    assert_come_back(WG_COUNT(tensors), tensors);
}

TEST(texts_and_numbers_come_back_the_same) {
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
    file = reopened(file, path);
    for (size_t i = 0; i < WG_COUNT(texts); i++) {
        snprintf(name, sizeof name, "/texts/%zu", i);
        ck_assert_str_eq(owned(wg_checkpoint_get_text(file, name)), texts[i]);
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
    free(long_text);
}

TEST(the_same_contents_give_the_same_bytes) {
    const char *a = in_scratch("a.h5"), *b = in_scratch("b.h5");
    toy *model = saved_toy(a);
    sleep(1); /* a second later a stored time would differ */
    save_toy(b, model);
    assert_same_files(a, b, 0);
}

/* ---- Modules and optimizers ---- */

TEST(a_module_and_its_optimizer_come_back_bit_for_bit) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2);
    ck_assert_int_eq(load_toy(path, other), 0);
    assert_same_toys(model, other);
    ck_assert(wg_requires_grad(other->table));
}

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

static int stop_at_third(const char *name, const wg_spec *spec, void *context) {
    (void)name, (void)spec;
    return ++*(int *)context == 3 ? -7 : 0;
}

TEST(groups_mirror_the_tree_and_tied_weights_are_saved_once) {
    const char *path = in_scratch("t.h5");
    saved_toy(path);
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
    wg_checkpoint *file = owned(wg_checkpoint_open(path));
    ck_assert_int_eq(wg_checkpoint_each(file, collect, &list), 0);
    ck_assert_int_eq(list.count, (int)WG_COUNT(expected));
    for (size_t i = 0; i < WG_COUNT(expected); i++)
        ck_assert_str_eq(list.names[i], expected[i]);
    static const char *const others[] = {"/model/decoder", "/no/such/thing", "/config/below",
                                         "config", ""};
    ck_assert(wg_checkpoint_has(file, "/model/bert/layer"));
    ck_assert(wg_checkpoint_has(file, "/model/bert/table"));
    for (size_t i = 0; i < WG_COUNT(others); i++)
        ck_assert_msg(!wg_checkpoint_has(file, others[i]), "%s", others[i]);
    int calls = 0; /* a visitor can stop the walk */
    ck_assert_int_eq(wg_checkpoint_each(file, stop_at_third, &calls), -7);
    ck_assert_int_eq(calls, 3);
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
    return reopened(file, path);
}

static int count_names(const char *name, const wg_spec *spec, void *count) {
    (void)name, (void)spec;
    ++*(int *)count;
    return 0;
}

TEST(groups_nested_without_end_are_refused) {
    int count = 0;
    ck_assert_int_eq(wg_checkpoint_each(make_nested(200), count_names, &count), 0);
    ck_assert_int_eq(count, 1);
    assert_fails(wg_checkpoint_each(make_nested(300), count_names, &count), WG_ERROR_FORMAT,
                 "groups are nested more than 256 deep");
}

TEST(everything_that_differs_is_named_at_once_and_nothing_changes) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1), *narrow = toy_new(3, 2), *before = toy_new(3, 2);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_module(file, "/model", &model->module);
    wg__checkpoint_put_number(file, "/model/bert/layer/1/extra", 1);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_module_parameter(&narrow->module, "head", WG_DIMS(2));
    file = owned(wg_checkpoint_open(path));
    assert_fails(wg_checkpoint_get_module(file, "/model", &narrow->module), WG_ERROR_NOT_FOUND,
                 "1 missing (/model/head); 1 unexpected (/model/bert/layer/1/extra); 1 misshapen "
                 "(/model/bert/layer/0/weight is (4, 4) f32, wanted (3, 4) f32)");
    assert_same_toys(narrow, before);
    assert_fails(wg_checkpoint_get_optimizer(file, narrow->optimizer), WG_ERROR_NOT_FOUND,
                 "has no /optimizer/steps");
}

TEST(a_long_list_of_differences_is_counted) {
    const char *path = in_scratch("t.h5");
    toy *model = toy_new(4, 1);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_module(file, "/model", &model->module);
    char name[64];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "/model/another_tensor/of_many/%d", i);
        wg_checkpoint_put_integer(file, name, i);
    }
    file = reopened(file, path);
    ck_assert_int_eq(wg_checkpoint_get_module(file, "/model", &model->module), -1);
    ck_assert_ptr_nonnull(strstr(wg_error_pending()->message, ", ...)"));
    assert_error(WG_ERROR_FORMAT, "200 unexpected (/model/another_tensor/of_many/0, ");
}

TEST(an_f32_file_loads_into_a_module_turned_f64) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *wide = toy_new(4, 2);
    ck_assert_int_eq(wg_module_to(&wide->module, WG_F64), 0);
    wg_checkpoint *file = owned(wg_checkpoint_open(path));
    ck_assert_int_eq(wg_checkpoint_get_module(file, "/model", &wide->module), 0);
    assert_close(wide->table, wg_cast(wg_detach(model->table), WG_F64), 0, 0);
}

TEST(a_value_of_another_kind_is_refused) {
    const char *path = in_scratch("t.h5");
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_text(file, "/text", "hello");
    wg_checkpoint_put_integer(file, "/integer", 1);
    wg__checkpoint_put_number(file, "/number", 1);
    file = reopened(file, path);
    int64_t integer;
    assert_fails(wg_checkpoint_get_text(file, "/integer"), WG_ERROR_FORMAT, "/integer is no text");
    assert_fails(wg_checkpoint_get_tensor(file, "/text"), WG_ERROR_FORMAT, "/text is a text");
    assert_fails(wg_checkpoint_get_integer(file, "/number", &integer), WG_ERROR_FORMAT,
                 "/number is no integer");
    assert_fails(wg_checkpoint_get_tensor(file, "/none"), WG_ERROR_NOT_FOUND, "t.h5 has no /none");
}

/* ---- No memory ---- */

typedef struct toys {
    const char *path;
    toy *model, *other, *before;
} toys;

static bool save(const void *context) {
    const toys *t = context;
    save_toy(t->path, t->model);
    ck_assert_int_eq(files_in(scratch()), 1);
    return !wg_error_pending();
}

static bool load(const void *context) {
    const toys *t = context;
    wg_checkpoint *file = wg_checkpoint_open(t->path);
    const bool done = wg_checkpoint_get_module(file, "/model", &t->other->module) == 0;
    wg_checkpoint_close(file);
    if (!done)
        assert_same_toys(t->other, t->before);
    return done;
}

TEST(no_memory_is_an_error_and_nothing_leaks) {
    const char *path = in_scratch("t.h5");
    const toys t = {path, saved_toy(path), toy_new(4, 2), toy_new(4, 2)};
    wg_scope_clear_root();
    ck_assert_int_lt(fail_every_allocation(save, &t), 1000);
    ck_assert_int_lt(fail_every_allocation(load, &t), 1000);
}

/* ---- What others read ---- */

/* Fails unless a command prints these lines about the file. */
static void assert_prints(const char *command, const char *path, size_t count,
                          const char *const *lines) {
    static char text[65536];
    char call[1024];
    snprintf(call, sizeof call, "%s %s 2>&1", command, path);
    FILE *pipe = popen(call, "r");
    ck_assert_ptr_nonnull(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    const int status = pclose(pipe);
    if (WEXITSTATUS(status) == 127)
        printf("# cannot run: %s; skipped\n", call);
    for (size_t i = 0; i < count && WEXITSTATUS(status) != 127; i++)
        ck_assert_msg(strstr(text, lines[i]), "%s shows no %s:\n%s", command, lines[i], text);
}

TEST(programs_of_hdf5_read_what_was_written) {
    const char *sampler = in_scratch("sampler.h5"), *saved = in_scratch("t.h5");
    static const char *const values[] = {"DATASET \"config\"",
                                         "{\"hidden_size\": 128, \"vocab_size\": 8192}",
                                         "(0): 1234567",
                                         "(0): 9.5, 8.25, 7.125",
                                         "(1,0): 4, 5, 6, 7",
                                         "(0): TRUE, TRUE, TRUE, TRUE",
                                         "(0): \"bf16\""},
                             *const paths[] = {"/model/bert/layer/0/weight Dataset {4, 4}"};
    save_sampler(sampler);
    saved_toy(saved);
    assert_prints("h5dump", sampler, WG_COUNT(values), values);
    assert_prints("h5ls -r", saved, WG_COUNT(paths), paths);
}

TEST(applications_keep_their_own_printing_of_hdf5_errors) {
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
