/* Tensor files: round trips, and the refusal of damaged files. */
#include "formats/weights_files.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "models/llama.h"
#include "nn/linear.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "tests/support/damage.h"
#include "io/internal.h"
#include "models/internal.h"

/* The address of an element. */
#define WG_INDEX(...) ((int64_t[]){__VA_ARGS__})

/* ---- A small model ---- */

static wg_llama *small_model(uint64_t seed, bool tied) {
    wg_llama_config config;
    wg_model_preset_config(&wg_llama_type, "llama-260k", &config);
    config.vocab_size = 7;
    config.hidden_size = 32;
    config.intermediate_size = 64;
    config.num_hidden_layers = 2;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.max_position_embeddings = 5;
    config.tie_word_embeddings = tied;
    wg_llama *model = wg__llama_new(&config, seed);
    assert_no_error();
    own(&model->module, OWN_MODULE);
    return model;
}

/* Writes every tensor of the module, tied ones once, to a file of that format. */
static int write_model(const char *path, const char *format, wg_llama *model,
                       const wg_weights_options *given) {
    wg_state_dict *state = wg_module_state(&model->module);
    wg_weights_info infos[64];
    int64_t count = 0, slots[64];
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied) {
            const wg_tensor *x = state->entries[i].slot->tensor;
            wg_spec spec = {.dtype = wg_tensor_dtype(x), .ndim = wg_tensor_ndim(x)};
            memcpy(spec.shape, wg_tensor_shape(x), (size_t)spec.ndim * sizeof(int64_t));
            slots[count] = i;
            infos[count++] = (wg_weights_info){state->entries[i].path, spec};
        }
    char *config = wg_model_config_to_json(&wg_llama_type, &model->config);
    wg_weights_options options = given ? *given : (wg_weights_options){0};
    options.config = config;
    wg_weights_writer *writer = wg_weights_create(path, format, &options, count, infos);
    for (int64_t i = count - 1; i >= 0; i--) /* any order will do */
        wg_weights_put(writer, i, state->entries[slots[i]].slot->tensor);
    const int status = wg_weights_commit(writer);
    wg_text_free(config);
    wg_state_dict_free(state);
    return status;
}

static void assert_same_model(wg_llama *a, wg_llama *b) {
    wg_state_dict *x = wg_module_state(&a->module), *y = wg_module_state(&b->module);
    for (int64_t i = 0; i < x->count; i++)
        assert_close(x->entries[i].slot->tensor, y->entries[i].slot->tensor, 0, 0);
    wg_state_dict_free(x);
    wg_state_dict_free(y);
}

static const struct {
    const char *format, *name;
    int version;
} written[] = {
    {"hdf5", "model.h5", 0},     {"safetensors", "model.safetensors", 0},
    {"llama2c", "model.bin", 0}, {"llama2c", "model1.bin", 1},
    {"gguf", "model.gguf", 0},
};

/* A model in a file of the format at that place of the list; its path. */
static const char *write_format(size_t i, wg_llama *model) {
    const char *path = in_scratch(written[i].name);
    const wg_weights_options options = {.version = written[i].version};
    ck_assert_int_eq(write_model(path, written[i].format, model, &options), 0);
    return path;
}

static wg_weights *open_weights(const char *path) {
    wg_weights *file = owned(wg_weights_open(path));
    assert_no_error();
    return file;
}

/* A file of safetensors with these tensors, given or filled with 1, 2 and so on. */
static wg_weights *write_tensors(int64_t count, const wg_weights_info *infos, wg_tensor *const *x,
                                 const wg_weights_options *options) {
    const char *path = in_scratch("tensors.safetensors");
    wg_weights_writer *writer = wg_weights_create(path, "safetensors", options, count, infos);
    for (int64_t i = 0; i < count; i++) {
        const wg_spec *spec = &infos[i].spec;
        ck_assert_int_eq(
            wg_weights_put(writer, i,
                           x ? x[i] : wg_full(spec->dtype, spec->ndim, spec->shape, (double)i + 1)),
            0);
    }
    ck_assert_int_eq(wg_weights_commit(writer), 0);
    return open_weights(path);
}

/* ---- Whole files ---- */

TEST(a_model_comes_back_bit_for_bit) {
    for (size_t i = 0; i < WG_COUNT(written); i++)
        for (int tied = 0; tied < 2; tied++) {
            wg_llama *model = small_model(1, tied), *loaded = small_model(2, tied);
            wg_weights *file = open_weights(write_format(i, model));
            ck_assert_str_eq(wg__weights_format_name(file), written[i].format);
            ck_assert_int_eq(wg_weights_get_module(file, &loaded->module), 0);
            assert_no_error();
            assert_same_model(model, loaded);
        }
}

TEST(a_file_of_another_model_is_refused_with_every_name_and_nothing_changes) {
    wg_llama *model = small_model(1, false), *other = small_model(2, true),
             *same = small_model(2, true);
    const char *path = in_scratch("model.safetensors");
    write_model(path, "safetensors", model, NULL);
    wg_weights *file = open_weights(path);
    assert_fails(wg_weights_get_module(file, &other->module), WG_ERROR_FORMAT,
                 "1 unexpected (lm_head.weight)");
    assert_same_model(other, same);
}

/* A tower with a head, to be loaded from files that have more or fewer tensors. */
typedef struct tower {
    wg_module module;
    wg_module *body;
    wg_linear *first, *second, *head;
} tower;

static tower *tower_new(int64_t labels) {
    tower *t = wg_module_new(NULL, "", sizeof *t);
    own(&t->module, OWN_MODULE);
    t->body = wg_module_new(&t->module, "body", sizeof *t->body);
    t->first = wg_linear_new(t->body, "first", 3, 4, NULL);
    t->second = wg_linear_new(t->body, "second", 4, 4, NULL);
    t->head = wg_linear_new(&t->module, "head", 4, labels, NULL);
    assert_no_error();
    return t;
}

TEST(a_part_of_a_module_is_loaded_and_what_was_left_out_is_listed) {
    const wg_weights_info infos[] = {
        {"body.first.weight", {WG_F32, 2, {4, 3}}},
        {"body.first.bias", {WG_F32, 1, {4}}},
        {"body.third.weight", {WG_F32, 2, {4, 4}}},
        {"head.weight", {WG_F32, 2, {2, 4}}},
        {"head.bias", {WG_F32, 1, {2}}},
    };
    wg_weights *file = write_tensors(WG_COUNT(infos), infos, NULL, NULL);
    tower *t = tower_new(3);
    const double second = wg_at(t->second->weight, (int64_t[]){0, 0}),
                 head = wg_at(t->head->weight, (int64_t[]){0, 0});
    wg_left_out left_out;
    ck_assert_int_eq(wg__weights_get_module_partial(file, NULL, &t->module, &left_out), 2);
    ck_assert_int_eq(left_out.missing_count, 2);
    ck_assert_str_eq(left_out.missing[0], "body.second.weight");
    ck_assert_str_eq(left_out.missing[1], "body.second.bias");
    ck_assert_int_eq(left_out.unexpected_count, 1);
    ck_assert_str_eq(left_out.unexpected[0], "body.third.weight");
    ck_assert_int_eq(left_out.misshapen_count, 2);
    ck_assert_str_eq(left_out.misshapen[0], "head.weight");
    ck_assert_double_eq(wg_at(t->first->weight, (int64_t[]){0, 0}), 1);
    ck_assert_double_eq(wg_at(t->first->bias, (int64_t[]){3}), 2);
    ck_assert_double_eq(wg_at(t->second->weight, (int64_t[]){0, 0}), second);
    ck_assert_double_eq(wg_at(t->head->weight, (int64_t[]){0, 0}), head);
    wg__left_out_free(&left_out);
    wg__left_out_free(NULL);
}

TEST(a_prefix_says_where_the_part_stands_in_the_file) {
    const wg_weights_info infos[] = {{"bert.body.first.weight", {WG_BF16, 2, {4, 3}}},
                                     {"bert.extra", {WG_F32, 1, {1}}},
                                     {"cls.bias", {WG_F32, 1, {1}}}};
    wg_weights *file = write_tensors(WG_COUNT(infos), infos, NULL, NULL);
    tower *t = tower_new(3);
    wg_left_out left_out;
    ck_assert_int_eq(wg__weights_get_module_partial(file, "bert.body.", t->body, &left_out), 1);
    ck_assert_int_eq(left_out.missing_count, 3);
    ck_assert_str_eq(left_out.missing[0], "first.bias");
    ck_assert_int_eq(left_out.unexpected_count, 0);
    wg__left_out_free(&left_out);
    ck_assert_int_eq(wg__weights_get_module_partial(file, "bert.", &t->module, &left_out), 1);
    ck_assert_int_eq(left_out.unexpected_count, 1);
    ck_assert_str_eq(left_out.unexpected[0], "bert.extra");
    wg__left_out_free(&left_out);
    ck_assert_int_eq(wg__weights_get_module_partial(file, "gpt.", &t->module, NULL), 0);
    ck_assert_double_eq(wg_at(t->first->weight, (int64_t[]){0, 0}), 1);
    ck_assert_int_eq(wg__weights_get_module_partial(NULL, "", &t->module, &left_out), -1);
}

TEST(every_dtype_of_safetensors_is_written_and_read) {
    const wg_dtype dtypes[] = {WG_F64, WG_F32, WG_BF16, WG_I64, WG_I32, WG_U8, WG_BOOL};
    const char *names[] = {"a", "b", "c", "d", "e", "f", "g"};
    wg_weights_info infos[WG_COUNT(dtypes)];
    wg_tensor *x[WG_COUNT(dtypes)];
    for (size_t i = 0; i < WG_COUNT(dtypes); i++) {
        x[i] = wg_cast(wg_reshape(wg_arange(WG_F64, 0, 6, 1), WG_DIMS(2, 3)), dtypes[i]);
        infos[i] = (wg_weights_info){names[i], {.dtype = dtypes[i], .ndim = 2, .shape = {2, 3}}};
    }
    wg_weights *file = write_tensors(WG_COUNT(dtypes), infos, x, NULL);
    ck_assert_int_eq(wg_weights_count(file), WG_COUNT(dtypes));
    for (size_t i = 0; i < WG_COUNT(dtypes); i++)
        assert_close(wg_weights_read(file, wg_weights_find(file, names[i])), x[i], 0, 0);
    ck_assert_int_eq(wg_weights_find(file, "h"), -1);
}

/* Every half, from its bits to f32 and back. */
TEST(all_halves_keep_their_bits) {
    const char *path = in_scratch("half.safetensors");
    const char *header =
        "{\"x\":{\"dtype\":\"F16\",\"shape\":[63488],\"data_offsets\":[0,126976]}}";
    uint8_t size[8] = {(uint8_t)strlen(header)};
    static uint8_t halves[126976], found[126976];
    int count = 0;
    for (int half = 0; half < 65536; half++)
        if ((half >> 10 & 31) != 31) { /* without infinities and NaN */
            halves[count++] = (uint8_t)half;
            halves[count++] = (uint8_t)(half >> 8);
        }
    FILE *stream = fopen(path, "wb");
    fwrite(size, 1, 8, stream);
    fputs(header, stream);
    fwrite(halves, 1, sizeof halves, stream);
    fclose(stream);
    wg_weights *file = open_weights(path);
    wg_tensor *x = wg_weights_read(file, 0);
    assert_no_error();
    ck_assert_double_eq(wg_at(x, WG_INDEX(1)), 0x1p-24);
    ck_assert_double_eq(wg_at(x, WG_INDEX(0x3c00)), 1);
    ck_assert_double_eq(wg_at(x, WG_INDEX(0x7bff)), 65504);
    ck_assert_double_eq(wg_at(x, WG_INDEX(0x7bff + 0x7c00)), -65504);
    wg_weights_info info = {"x", {.dtype = WG_F32, .ndim = 1, .shape = {63488}}};
    write_tensors(1, &info, &x, &(wg_weights_options){.type = WG_WEIGHTS_F16});
    stream = fopen(in_scratch("tensors.safetensors"), "rb");
    fseek(stream, -(long)sizeof found, SEEK_END);
    ck_assert_uint_eq(fread(found, 1, sizeof found, stream), sizeof found);
    fclose(stream);
    ck_assert_mem_eq(found, halves, sizeof halves);
}

TEST(floats_between_halves_go_to_the_even_one) {
    const struct {
        float value, half;
    } cases[] = {{1 + 0x1p-11f, 1},
                 {1 + 3 * 0x1p-11f, 1 + 0x1p-9f},
                 {65519, 65504},
                 {65520, INFINITY},
                 {0x1p-25f, 0},
                 {3 * 0x1p-26f, 0x1p-24f},
                 {-(1 + 0x1.1p-11f), -(1 + 0x1p-10f)},
                 {0x1.ffep-15f, 0x1p-14f}};
    float values[WG_COUNT(cases)];
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        values[i] = cases[i].value;
    wg_weights_info info = {"x", {.dtype = WG_F32, .ndim = 1, .shape = {WG_COUNT(cases)}}};
    wg_tensor *given = wg_from_array(WG_F32, WG_DIMS(WG_COUNT(cases)), values);
    wg_tensor *x = wg_weights_read(
        write_tensors(1, &info, &given, &(wg_weights_options){.type = WG_WEIGHTS_F16}), 0);
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        ck_assert_float_eq((float)wg_at(x, WG_INDEX((int64_t)i)), cases[i].half);
}

TEST(an_unfinished_file_leaves_the_old_one) {
    wg_llama *model = small_model(1, true);
    const char *path = in_scratch("model.safetensors");
    write_model(path, "safetensors", model, NULL);
    wg_weights_info info = {"x", {.dtype = WG_F32, .ndim = 1, .shape = {4}}};
    wg_weights_writer *writer = wg_weights_create(path, "safetensors", NULL, 1, &info);
    assert_fails(wg_weights_commit(writer), WG_ERROR_STATE, "x was announced and not written");
    wg_weights *file = open_weights(path);
    ck_assert_int_eq(wg_weights_count(file), 20);
}

/* ---- Damage ---- */

/* We cannot write torch.save's format: a copy of the fixture. */
static const char *copy_of_torchs(void) {
    const bytes file = read_bytes(fixture("convert/encoder/pytorch_model.bin"));
    const char *path = in_scratch("torch.pt");
    write_file(path, file.data, file.count);
    free(file.data);
    return path;
}

TEST(a_file_that_is_cut_short_is_refused_wherever_it_is_cut) {
    for (size_t i = 1; i <= WG_COUNT(written); i++) { /* HDF5 is tested in tests/io */
        const bool torchs = i == WG_COUNT(written);
        const char *path = torchs ? copy_of_torchs() : write_format(i, small_model(1, true));
        ck_assert(reads_whole(path));
        cut_everywhere(path, torchs ? "pytorch" : written[i].format);
    }
}

/* With a byte changed the file is read or refused, without a crash. */
static void change_bytes(const char *path, const char *format, uint8_t (*change)(long, uint8_t),
                         long (*next)(long at, long count)) {
    const bytes file = read_bytes(path);
    const int descriptor = open(path, O_WRONLY);
    for (long at = 0; at >= 0; at = next(at, (long)file.count)) {
        const uint8_t now = change(at, file.data[at]);
        ck_assert_int_eq(pwrite(descriptor, &now, 1, at), 1);
        if (!reads_whole(path))
            assert_file_refused(format, at);
        ck_assert_int_eq(pwrite(descriptor, &file.data[at], 1, at), 1);
    }
    close(descriptor);
    free(file.data);
}

static uint8_t one_of_two(long at, uint8_t was) {
    return at % 2 ? 0xff : was ^ 0x10;
}

static uint8_t one_of_three(long at, uint8_t was) {
    return at % 3 == 0 ? 0xff : at % 3 == 1 ? 0 : was ^ 0x10;
}

/* Fewer in the middle of the file. */
static long next_of_zip(long at, long count) {
    const long next = at + (at > 6000 && at < count - 4000 ? 97 : 1);
    return next < count ? next : -1;
}

static long next_of_header(long at, long count) {
    return at + 1 < count && at + 1 < 2500 ? at + 1 : -1;
}

TEST(a_changed_byte_is_no_disaster) {
    change_bytes(copy_of_torchs(), "pytorch", one_of_two, next_of_zip);
    for (size_t i = 1; i < WG_COUNT(written); i++)
        change_bytes(write_format(i, small_model(1, true)), written[i].format, one_of_three,
                     next_of_header);
}

/* ---- Headers of safetensors ---- */

static void refuse_header(const char *header, uint64_t length, int data, const char *message) {
    const char *path = in_scratch("bad.safetensors");
    FILE *stream = fopen(path, "wb");
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> 8 * i & 255), stream);
    fputs(header, stream);
    for (int i = 0; i < data; i++)
        fputc(0, stream);
    fclose(stream);
    ck_assert_msg(!wg_weights_open(path), "read: %s", header);
    assert_error(WG_ERROR_FORMAT, message);
}

TEST(bad_headers_of_safetensors_are_refused_with_the_reason) {
    const struct {
        const char *header;
        int data;
        const char *message;
    } cases[] = {
        {"{", 0, "no JSON"},
        {"[1]  ", 0, "does not begin with {"},
        {"{\"x\":1}", 0, "x must have dtype, shape and data_offsets"},
        {"{\"x\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype F8 is not"},
        {"{\"x\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "is no text"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, "no size"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1.5],\"data_offsets\":[0,1]}}", 1, "no size"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         "at most 8"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}", 0,
         "shape takes"},
        {"{\"x\":{\"dtype\":\"F32\",\"shape\":[4000000000,4000000000],\"data_offsets\":[0,4]}}", 4,
         "shape takes"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, "takes 2 bytes"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]}}", 1, "not within"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1, "not within"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "two numbers"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"y\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         1, "overlaps"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, "no tensor"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2,
         "1 bytes at the end"},
        {"{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "duplicate"},
        {"{\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "no name"},
        {"{\"\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "decode byte"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        refuse_header(cases[i].header, strlen(cases[i].header), cases[i].data, cases[i].message);
    refuse_header("{}", 3, 0, "cut short");
    refuse_header("{}", UINT64_MAX, 0, "cut short");
    refuse_header("{}", 100000001, 0, "cut short");
}

/* ---- Headers of GGUF ---- */

#define U32(x) (char)(x), 0, 0, 0
#define U64(x) U32(x), U32(0)

static void refuse_gguf(const char *bytes, size_t count, const char *message) {
    const char *path = in_scratch("bad.gguf");
    write_file(path, bytes, count);
    ck_assert_msg(!wg_weights_open(path), "read: %s", message);
    assert_error(WG_ERROR_FORMAT, message);
}

TEST(bad_headers_of_gguf_are_refused_with_the_reason) {
    const char version[] = {'G', 'G', 'U', 'F', U32(4), U64(0), U64(0)};
    refuse_gguf(version, sizeof version, "version 4");
    char counts[64] = {'G', 'G', 'U', 'F', U32(3), U64(0), U64(0)};
    memset(counts + 8, 0xff, 8);
    refuse_gguf(counts, sizeof counts, "no room");
    memset(counts + 8, 0, 8);
    memset(counts + 16, 0x7f, 8);
    refuse_gguf(counts, sizeof counts, "no room");
    const char type[] = {'G', 'G', 'U', 'F', U32(3), U64(0), U64(1), U64(1), 'k', U32(13), U64(0)};
    refuse_gguf(type, sizeof type, "type 13");
    const char nested[] = {'G',    'G', 'U',    'F',    U32(3), U64(0), U64(1),
                           U64(1), 'k', U32(9), U32(9), U64(1), U64(0)};
    refuse_gguf(nested, sizeof nested, "list of values of type 9");
    const char twice[] = {'G', 'G',    'U', 'F',    U32(3), U64(0), U64(2), U64(1),
                          'k', U32(0), 1,   U64(1), 'k',    U32(0), 1,      0,
                          0,   0,      0,   0,      0,      0,      0};
    refuse_gguf(twice, sizeof twice, "k stands twice");
    /* tensors: one of 4 f32 at 0 */
    const char good[128] = {'G',    'G', 'U',    'F',    U32(3), U64(1), U64(0),
                            U64(1), 'x', U32(1), U64(4), U32(0), U64(0)};
    char bad[128];
    write_file(in_scratch("good.gguf"), good, sizeof good);
    ck_assert(reads_whole(in_scratch("good.gguf")));
    memcpy(bad, good, sizeof bad);
    bad[45] = 2; /* Q4_0: blocks of 32 */
    refuse_gguf(bad, sizeof bad, "no whole blocks");
    bad[45] = 9;
    refuse_gguf(bad, sizeof bad, "ggml's type 9");
    memcpy(bad, good, sizeof bad);
    bad[49] = 1;
    refuse_gguf(bad, sizeof bad, "no multiple of 32");
    bad[49] = 64;
    refuse_gguf(bad, sizeof bad, "beyond the end");
    bad[49] = -1;
    bad[56] = -1;
    refuse_gguf(bad, sizeof bad, "begins beyond the end");
    memcpy(bad, good, sizeof bad);
    bad[33] = 9;
    refuse_gguf(bad, sizeof bad, "9 dimensions");
}

TEST(deep_nesting_is_refused) {
    assert_fails(wg_weights_open(fixture("../fuzz/seeds/pytorch/dicts-in-dicts.pt")),
                 WG_ERROR_FORMAT, "nested more than 8 deep");
    /* Lists hold no tensors, and nobody goes into them. */
    wg_weights *lists = owned(wg_weights_open(fixture("../fuzz/seeds/pytorch/lists-in-lists.pt")));
    ck_assert_int_eq(wg_weights_count(lists), 0);
    assert_no_error();
    static char header[100001];
    memset(header, '[', sizeof header - 1);
    memcpy(header, "{\"x\":", 5);
    refuse_header(header, strlen(header), 0, "depth");
}
