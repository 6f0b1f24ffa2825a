/* Tensors in several files with an index, as Hugging Face shards them. */
#include "formats/weights_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "tests/support/damage.h"
#include "io/internal.h"

/* ---- Read ---- */

static void write_one(const char *path, const char *name) {
    wg_weights_info info = {name, {.dtype = WG_F32, .ndim = 1, .shape = {2}}};
    wg_weights_writer *writer = wg_weights_create(path, "safetensors", NULL, 1, &info);
    wg_weights_put(writer, 0, wg_arange(WG_F32, 0, 2, 1));
    ck_assert_int_eq(wg_weights_commit(writer), 0);
}

TEST(shards_are_read_by_their_index_which_must_be_right) {
    const struct {
        const char *index, *message;
    } cases[] = {
        {"{\"weight_map\": {\"x\": \"1.safetensors\", \"y\": \"2.safetensors\"}}", NULL},
        {"{\"weight_map\": {\"x\": \"2.safetensors\", \"y\": \"1.safetensors\"}}", "does not say"},
        {"{\"weight_map\": {\"x\": \"1.safetensors\"}}", NULL},
        {"{\"weight_map\": {\"x\": \"1.safetensors\", \"z\": \"1.safetensors\"}}",
         "names 2 tensors"},
        {"{\"weight_map\": {\"x\": \"../1.safetensors\"}}", "no name of a file beside"},
        {"{\"weight_map\": {\"x\": 1}}", "no name of a file beside"},
        {"{\"weight_map\": {}}", "names 0 files"},
        {"{}", "no weight_map"},
        {"{", "no JSON"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        write_one(in_scratch("1.safetensors"), "x");
        write_one(in_scratch("2.safetensors"), "y");
        write_text("model.safetensors.index.json", cases[i].index);
        wg_weights *file = owned(wg_weights_open(scratch()));
        if (cases[i].message) {
            ck_assert_ptr_null(file);
            assert_error(WG_ERROR_FORMAT, cases[i].message);
            continue;
        }
        assert_no_error();
        for (int64_t j = 0; j < wg_weights_count(file); j++)
            ck_assert_double_eq(wg_at(wg_weights_read(file, j), (int64_t[]){1}), 1);
    }
}

TEST(an_index_that_is_cut_short_is_refused_wherever_it_is_cut) {
    static const char index[] = "{\"metadata\": {\"total_size\": 16}, \"weight_map\": "
                                "{\"x\": \"1.safetensors\", \"y\": \"2.safetensors\"}}";
    write_one(in_scratch("1.safetensors"), "x");
    write_one(in_scratch("2.safetensors"), "y");
    const char *path = write_text("model.safetensors.index.json", index);
    ck_assert(reads_whole(path));
    cut_everywhere(path, "index.json");
}

/* ---- Written ---- */

/* Four tensors of 8, 24, 8 and 8 bytes. */
static wg_weights_writer *begin_shards(const char *path, const char *format, int64_t bytes) {
    const wg_weights_info infos[] = {{"d", {.dtype = WG_F32, .ndim = 1, .shape = {2}}},
                                     {"c", {.dtype = WG_F32, .ndim = 1, .shape = {6}}},
                                     {"b", {.dtype = WG_F32, .ndim = 1, .shape = {2}}},
                                     {"a", {.dtype = WG_F32, .ndim = 1, .shape = {2}}}};
    return wg_weights_create(path, format, &(wg_weights_options){.shard_bytes = bytes}, 4, infos);
}

static int write_shards(const char *path, int64_t bytes) {
    wg_weights_writer *writer = begin_shards(path, "safetensors", bytes);
    for (int64_t i = 3; i >= 0; i--)
        wg_weights_put(writer, i, wg_arange(WG_F32, 0, i == 1 ? 6 : 2, 1));
    return wg_weights_commit(writer);
}

static void assert_file_is(const char *path, const char *text) {
    const bytes file = read_bytes(path);
    ck_assert_str_eq((const char *)file.data, text);
    ck_assert_uint_eq(file.count, strlen(text));
    free(file.data);
}

/* The shards of huggingface_hub's split_torch_state_dict_into_shards: a tensor that is too large
 * gets a file of its own at once, and the file before is filled further. The index is Python's
 * json.dumps(index, indent=2, sort_keys=True) and a newline. */
TEST(shards_and_their_index_are_those_of_hugging_face) {
    write_one(in_scratch("model.safetensors"), "old"); /* would be read before the index */
    ck_assert_int_eq(write_shards(in_scratch("model.safetensors"), 16), 0);
    assert_file_is(in_scratch("model.safetensors.index.json"),
                   "{\n  \"metadata\": {\n    \"total_size\": 48\n  },\n  \"weight_map\": {\n"
                   "    \"a\": \"model-00003-of-00003.safetensors\",\n"
                   "    \"b\": \"model-00002-of-00003.safetensors\",\n"
                   "    \"c\": \"model-00001-of-00003.safetensors\",\n"
                   "    \"d\": \"model-00002-of-00003.safetensors\"\n  }\n}\n");
    ck_assert_int_ne(access(in_scratch("model.safetensors"), F_OK), 0);
    wg_weights *file = owned(wg_weights_open(scratch()));
    assert_no_error();
    ck_assert_int_eq(wg_weights_count(file), 4);
    for (int64_t i = 0; i < 4; i++) {
        const int64_t last = wg__weights_spec(file, i)->shape[0] - 1;
        ck_assert_int_eq(last, strcmp(wg_weights_name(file, i), "c") == 0 ? 5 : 1);
        ck_assert_double_eq(wg_at(wg_weights_read(file, i), (int64_t[]){last}), (double)last);
    }
}

TEST(what_fits_into_one_file_is_one_without_an_index) {
    ck_assert_int_eq(write_shards(in_scratch("model.safetensors"), 48), 0);
    ck_assert_int_eq(access(in_scratch("model.safetensors"), R_OK), 0);
    ck_assert_int_ne(access(in_scratch("model.safetensors.index.json"), F_OK), 0);
    assert_fails(begin_shards(in_scratch("x.h5"), "hdf5", 16), WG_ERROR_ARGUMENT,
                 "hdf5 is written as one file");
    assert_fails(begin_shards(in_scratch("x.safetensors"), "safetensors", -1), WG_ERROR_ARGUMENT,
                 "shards of -1 bytes");
}

TEST(unfinished_shards_leave_the_old_ones) {
    ck_assert_int_eq(write_shards(in_scratch("model.safetensors"), 16), 0);
    wg_weights_writer *writer = begin_shards(in_scratch("model.safetensors"), "safetensors", 16);
    wg_weights_put(writer, 0, wg_arange(WG_F32, 5, 7, 1));
    assert_fails(wg_weights_commit(writer), WG_ERROR_STATE, "c was announced and not written");
    wg_weights *file = owned(wg_weights_open(scratch()));
    assert_no_error();
    const int64_t d = wg_weights_find(file, "d");
    ck_assert_double_eq(wg_at(wg_weights_read(file, d), (int64_t[]){1}), 1);
    ck_assert_int_eq(files_in(scratch()), 4);
}

/* Stale shards are removed, as transformers' save_pretrained does; files with similar names
 * stay. */
TEST(shards_of_an_earlier_write_are_removed) {
    static const char *const others[] = {"model2-00001-of-00002.safetensors",
                                         "model-0001-of-00002.safetensors",
                                         "model-00001-of-00002.safetensors.bak", "model.bin"};
    for (size_t i = 0; i < WG_COUNT(others); i++)
        write_file(in_scratch(others[i]), "x", 1);
    ck_assert_int_eq(write_shards(in_scratch("model.safetensors"), 16), 0);
    ck_assert_int_eq(files_in(scratch()), 3 + 1 + (int)WG_COUNT(others));
    ck_assert_int_eq(write_shards(in_scratch("model.safetensors"), 32), 0);
    ck_assert_int_eq(access(in_scratch("model-00002-of-00002.safetensors"), R_OK), 0);
    ck_assert_int_eq(files_in(scratch()), 2 + 1 + (int)WG_COUNT(others));
    ck_assert_int_eq(write_shards(in_scratch("model.safetensors"), 48), 0);
    ck_assert_int_eq(access(in_scratch("model.safetensors"), R_OK), 0);
    ck_assert_int_eq(files_in(scratch()), 1 + (int)WG_COUNT(others));
    for (size_t i = 0; i < WG_COUNT(others); i++)
        ck_assert_int_eq(access(in_scratch(others[i]), R_OK), 0);
}
