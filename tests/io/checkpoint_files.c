/* Checkpoints as files: what cannot be written, what a failure leaves behind, and files of other
 * kinds. */
#include "io/checkpoint/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/testing.h"
#include "tests/io/toy.h"

/* Fails unless the folder has one file, which holds `model`. */
static void assert_alone_and_holds(const char *path, toy *model, toy *other) {
    ck_assert_int_eq(files_in(scratch()), 1);
    ck_assert_int_eq(load_toy(path, other), 0);
    assert_same_toys(model, other);
}

TEST(a_name_is_written_once_and_must_be_a_path) {
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("t.h5"));
    ck_assert_int_eq(wg_checkpoint_put_integer(file, "/a/b", 1), 0);
    const char *const taken[] = {"/a/b", "/a"};
    for (size_t i = 0; i < WG_COUNT(taken); i++)
        assert_fails(wg_checkpoint_put_integer(file, taken[i], 1), WG_ERROR_ARGUMENT, "already");
    const char *const bad[] = {"", "a", "/", "/a//c", "/a/c/", "/a/./c"};
    for (size_t i = 0; i < WG_COUNT(bad); i++)
        assert_fails(wg_checkpoint_put_integer(file, bad[i], 1), WG_ERROR_ARGUMENT, "is no name");
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
}

TEST(nothing_can_be_put_below_a_value) {
    const char *path = in_scratch("t.h5");
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_integer(file, "/a", 1), 0);
    assert_fails(wg_checkpoint_put_integer(file, "/a/b", 1), WG_ERROR_IO, "/a/b");
    assert_fails(wg_checkpoint_put_integer(file, "/c", 1), WG_ERROR_STATE,
                 "an earlier part failed");
    assert_fails(wg_checkpoint_commit(file), WG_ERROR_STATE, "nothing is kept");
    ck_assert_int_eq(files_in(scratch()), 0);
}

TEST(a_pending_error_keeps_the_old_file) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_module(file, "/model", &other->module);
    wg_fail(WG_ERROR_SHAPE, "forward", "failed");
    ck_assert_int_eq(wg_checkpoint_put_optimizer(file, other->optimizer), -1);
    ck_assert_int_eq(wg_checkpoint_commit(file), -1);
    ck_assert_ptr_null(wg_checkpoint_create(path));
    assert_fails(wg_checkpoint_open(path), WG_ERROR_SHAPE, "forward: failed");
    assert_alone_and_holds(path, model, other);
}

TEST(giving_up_leaves_the_old_file_alone) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_module(file, "/model", &other->module);
    wg_checkpoint_abort(file);
    wg_checkpoint_abort(NULL);
    assert_alone_and_holds(path, model, other);
}

TEST(an_old_file_is_replaced_while_it_is_read) {
    const char *path = in_scratch("t.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2), *read = toy_new(4, 3);
    wg_checkpoint *old = owned(wg_checkpoint_open(path));
    save_toy(path, other);
    ck_assert_int_eq(wg_checkpoint_get_module(old, "/model", &read->module), 0);
    ck_assert_int_eq(wg_checkpoint_get_optimizer(old, read->optimizer), 0);
    assert_same_toys(model, read);
    ck_assert_int_eq(load_toy(path, read), 0);
    assert_same_toys(other, read);
}

TEST(two_writers_of_one_file_do_not_meet) {
    const char *path = in_scratch("t.h5");
    wg_checkpoint *first = wg_checkpoint_create(path);
    assert_fails(wg_checkpoint_create(path), WG_ERROR_IO,
                 "t.h5 is being written by another process");
    ck_assert_int_eq(wg_checkpoint_put_integer(first, "/a", 1), 0);
    ck_assert_int_eq(wg_checkpoint_commit(first), 0);
    wg_checkpoint *second = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_commit(second), 0);
}

TEST(what_a_dead_process_left_is_taken_over) {
    const char *path = in_scratch("t.h5"), *left = in_scratch("t.h5.tmp");
    toy *model = toy_new(4, 1), *other = toy_new(4, 2);
    uint8_t rubbish[100000] = {1, 2, 3};
    write_file(left, rubbish, sizeof rubbish);
    save_toy(path, model);
    assert_no_error();
    assert_alone_and_holds(path, model, other);
}

TEST(a_symbolic_link_and_the_mode_of_the_old_file_stay) {
    const char *path = in_scratch("real.h5"), *name = in_scratch("link.h5");
    toy *model = saved_toy(path), *other = toy_new(4, 2);
    chmod(path, 0640);
    ck_assert_int_eq(symlink("real.h5", name), 0);
    save_toy(name, other);
    assert_no_error();
    struct stat status;
    lstat(name, &status);
    ck_assert(S_ISLNK(status.st_mode));
    stat(path, &status);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
    ck_assert_int_eq(load_toy(path, model), 0);
    assert_same_toys(model, other);
}

TEST(a_place_that_cannot_be_written_is_named) {
    assert_fails(wg_checkpoint_create("no/such/folder/t.h5"), WG_ERROR_NOT_FOUND,
                 "no/such/folder/t.h5: No such file");
    assert_fails(wg_checkpoint_create(scratch()), WG_ERROR_IO, "is not a regular file");
    assert_fails(wg_checkpoint_create("/dev/null"), WG_ERROR_IO, "/dev/null is not a regular file");
}

TEST(what_is_no_checkpoint_is_named) {
    const char *path = in_scratch("t.h5");
    assert_fails(wg_checkpoint_open(path), WG_ERROR_NOT_FOUND, "t.h5: No such file");
    write_file(path, (const uint8_t *)"\x89HDF\r\n\x1a\n\x03", 9);
    assert_fails(wg_checkpoint_open(path), WG_ERROR_FORMAT, "t.h5 is damaged or no checkpoint");
}

TEST(a_file_of_another_kind_is_told_with_what_to_do) {
    static const struct {
        const char *bytes;
        size_t count;
        const char *told;
    } cases[] = {
        {"", 0, "x.bin is an empty file"},
        {"GGUF\x03\0\0\0", 8, "x.bin is a file of GGUF, no checkpoint; `wengert convert "},
        {"PK\x03\x04....", 8, "x.bin is a zip, as torch.save writes, no checkpoint; `wengert conv"},
        {"\x02\0\0\0\0\0\0\0{}", 10, "x.bin is a file of safetensors, no checkpoint; `wengert c"},
        {"\xff\0\0\0\0\0\0\0{}", 10, "x.bin is no checkpoint; if it holds tensors of llama2.c"},
        {"{\"weight_map\": {}}", 18, "x.bin is the index of several files of tensors"},
        {" {\"model_type\": \"bert\"}", 23, "x.bin is the configuration of a model, without w"},
        {"{\"json\": 1}", 11, "x.bin is a file of JSON, no checkpoint"},
        {"Once upon a time\n", 17, "x.bin is plain text, no checkpoint; `wengert pretrain MODEL "},
        {"\x1f\x8b\x08\0", 4, "x.bin is compressed by gzip; unpack it first"},
    };
    const char *path = in_scratch("x.bin");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(path, (const uint8_t *)cases[i].bytes, (int64_t)cases[i].count);
        assert_fails(wg_checkpoint_open(path), WG_ERROR_FORMAT, cases[i].told);
    }
    assert_fails(wg_checkpoint_open("/dev/null"), WG_ERROR_IO, "/dev/null is not a regular file");
}

TEST(a_folder_is_told_with_what_is_in_it) {
    const char *folder = in_scratch("folder");
    char path[512];
    ck_assert_int_eq(mkdir(folder, 0777), 0);
    assert_fails(wg_checkpoint_open(folder), WG_ERROR_IO,
                 "folder is a folder; a checkpoint is one file, and none is in it");
    snprintf(path, sizeof path, "%s/b.h5", folder);
    write_file(path, (const uint8_t *)"", 0);
    snprintf(path, sizeof path, "%s/a.h5", folder);
    write_file(path, (const uint8_t *)"", 0);
    assert_fails(wg_checkpoint_open(folder), WG_ERROR_IO, "folder/a.h5?");
    snprintf(path, sizeof path, "%s/pytorch_model.bin", folder);
    write_file(path, (const uint8_t *)"", 0);
    assert_fails(wg_checkpoint_open(folder), WG_ERROR_IO,
                 "is the folder of a published model, no checkpoint; `wengert conv");
}
