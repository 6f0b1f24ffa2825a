/* Keys of GGUF that change what a model computes or how a text is split: each is read, or refused
 * by its name. The files are written here, and get keys that the writer does not write. */
#include "formats/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/tokenizer/tokenizer.h"
#include "formats/convert.h"
#include "formats/weights_files.h"
#include "io/checkpoint/checkpoint.h"
#include "models/llama.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "io/internal.h"
#include "models/internal.h"

/* ---- Files ---- */

/* A LLaMA of 272 tokens, with heads of width 4 and 16 positions, in GGUF, with the tokenizer of
 * that JSON (NULL: none). */
static void write_llama(const char *path, const char *tokenizer) {
    const wg_llama_config config = {.vocab_size = 272,
                                    .hidden_size = 8,
                                    .intermediate_size = 32,
                                    .num_hidden_layers = 1,
                                    .num_attention_heads = 2,
                                    .num_key_value_heads = 1,
                                    .hidden_act = WG_GATE_SWIGLU,
                                    .max_position_embeddings = 16,
                                    .rms_norm_eps = 1e-5,
                                    .rope_theta = 10000,
                                    .initializer_range = 0.02,
                                    .tie_word_embeddings = true,
                                    .bos_token_id = 1,
                                    .eos_token_id = 2};
    wg_llama *model = wg__llama_new(&config, 1);
    own(&model->module, OWN_MODULE);
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("model.h5"));
    wg_checkpoint_put_text(file, "/config",
                           owned(wg_model_config_to_json(&wg_llama_type, &config)));
    if (tokenizer)
        wg_checkpoint_put_text(file, "/tokenizer", tokenizer);
    wg_checkpoint_put_module(file, "/model", &model->module);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    ck_assert_int_eq(wg_convert(in_scratch("model.h5"), path, NULL, NULL), 0);
}

/* Puts keys before those of the file, and a last one that fills the header up to 32 bytes. */
static void add_keys(const char *path, wg__text *keys, uint8_t count) {
    static const char spaces[] = "                                ";
    const size_t begin = 24, own = strlen("x.padding") + 20;
    char padding[40];
    snprintf(padding, sizeof padding, "%.*s", (int)(-((size_t)keys->length + own) % 32), spaces);
    wg__gguf_write_text(keys, "x.padding", padding);
    const bytes old = read_bytes(path);
    uint8_t *made = malloc(old.count + (size_t)keys->length);
    memcpy(made, old.data, begin);
    made[16] = (uint8_t)(made[16] + count + 1);
    memcpy(made + begin, keys->bytes, (size_t)keys->length);
    memcpy(made + begin + keys->length, old.data + begin, old.count - begin);
    write_file(path, made, old.count + (size_t)keys->length);
    free(made);
    free(old.data);
    wg__free(keys->bytes);
    *keys = (wg__text){0};
}

/* Changes a flag of the file. */
static void set_flag(const char *path, const char *key, bool value) {
    const bytes file = read_bytes(path);
    uint8_t *at = memmem(file.data, file.count, key, strlen(key));
    ck_assert_ptr_nonnull(at);
    at[strlen(key) + 4] = value;
    write_file(path, file.data, file.count);
    free(file.data);
}

/* ---- Positions, and other keys of the architecture ---- */

enum { NUMBER, TEXT, FLAG, INTEGER };

typedef struct key {
    int kind;
    const char *name;
    double number;
    const char *text;
} key;

static void put(wg__text *keys, const key *k) {
    if (k->kind == TEXT)
        wg__gguf_write_text(keys, k->name, k->text);
    else if (k->kind == FLAG)
        wg__gguf_write(keys, k->name, WG__GGUF_BOOL, k->number != 0);
    else if (k->kind == INTEGER) {
        wg__gguf_append_string(keys, k->name, strlen(k->name));
        wg__gguf_append(keys, WG__GGUF_U32, WG__GGUF_I64);
        wg__gguf_append(keys, WG__GGUF_U64, (uint64_t)(int64_t)k->number);
    } else
        wg__gguf_write(keys, k->name, WG__GGUF_F32, wg__gguf_f32(k->number));
}

/* The configuration of a file with up to two keys more; -1 with an error. */
static int read_with(const key *first, const key *second, wg_llama_config *config) {
    const char *path = in_scratch("a.gguf");
    wg__text keys = {0};
    write_llama(path, NULL);
    put(&keys, first);
    if (second->name)
        put(&keys, second);
    add_keys(path, &keys, second->name ? 2 : 1);
    wg_weights *file = owned(wg_weights_open(path));
    return file ? wg_model_config_from_json(&wg_llama_type, wg__weights_config(file), config) : -1;
}

TEST(scaled_positions_are_read_under_each_of_their_keys) {
    static const struct {
        key first, second;
        double factor;
    } cases[] = {
        {{NUMBER, "llama.rope.scale_linear", 4, NULL}, {0}, 4},
        {{NUMBER, "llama.rope.scaling.factor", 4, NULL}, {0}, 4},
        {{NUMBER, "llama.rope.scaling.factor", 4, NULL},
         {TEXT, "llama.rope.scaling.type", 0, "linear"},
         4},
        {{NUMBER, "llama.rope.scaling.factor", 4, NULL},
         {NUMBER, "llama.rope.scale_linear", 2, NULL},
         4},
        {{NUMBER, "llama.rope.scaling.factor", 4, NULL},
         {TEXT, "llama.rope.scaling.type", 0, "none"},
         0},
        {{TEXT, "llama.rope.scaling.type", 0, "none"}, {0}, 0},
        {{TEXT, "llama.rope.scaling.type", 0, "linear"}, {0}, 0},
        {{NUMBER, "llama.rope.scaling.factor", 1, NULL}, {0}, 0},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_llama_config config;
        ck_assert_int_eq(read_with(&cases[i].first, &cases[i].second, &config), 0);
        ck_assert_msg(config.rope_scaling.factor == cases[i].factor, "case %zu: factor %g", i,
                      config.rope_scaling.factor);
    }
}

TEST(a_key_that_changes_the_computation_is_refused_by_name) {
    static const struct {
        key first;
        const char *message;
    } cases[] = {
        {{TEXT, "llama.rope.scaling.type", 0, "yarn"}, "llama.rope.scaling.type is \"yarn\""},
        {{NUMBER, "llama.attention.sliding_window", 8, NULL},
         "llama.attention.sliding_window is 8; only 0 is read"},
        {{NUMBER, "llama.attention.scale", 1, NULL},
         "llama.attention.scale is 1; only 0.5 is read"},
        {{NUMBER, "llama.attention.key_length", 8, NULL}, "llama.attention.key_length is 8"},
        {{FLAG, "llama.attention.causal", 0, NULL}, "llama.attention.causal is 0; only 1"},
        {{FLAG, "llama.use_parallel_residual", 1, NULL}, "llama.use_parallel_residual is 1"},
        {{NUMBER, "llama.expert_count", 8, NULL}, "llama.expert_count is 8"},
        {{INTEGER, "llama.expert_count", -8, NULL}, "llama.expert_count is -8"},
        {{NUMBER, "llama.rope.scaling.attn_factor", 2, NULL}, "attn_factor is 2"},
        {{TEXT, "llama.tensor_data_layout", 0, "reference"}, "llama.tensor_data_layout"},
        {{NUMBER, "llama.something_new", 1, NULL}, "the key llama.something_new is not known"},
        {{TEXT, "general.type", 0, "adapter"}, "general.type"},
        {{NUMBER, "llama.rope.scaling.factor", -1, NULL}, "rope_scaling.factor is -1"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_llama_config config;
        ck_assert_msg(read_with(&cases[i].first, &(key){0}, &config) < 0, "%s is passed over",
                      cases[i].first.name);
        assert_error(i + 1 < WG_COUNT(cases) ? WG_ERROR_FORMAT : WG_ERROR_ARGUMENT,
                     cases[i].message);
    }
}

TEST(a_key_that_says_what_is_computed_anyway_is_read) {
    static const key cases[] = {
        {NUMBER, "llama.attention.sliding_window", 16, NULL},
        {NUMBER, "llama.attention.scale", 0.5, NULL},
        {NUMBER, "llama.attention.key_length", 4, NULL},
        {FLAG, "llama.attention.causal", 1, NULL},
        {FLAG, "llama.use_parallel_residual", 0, NULL},
        {FLAG, "llama.rope.scaling.finetuned", 0, NULL},
        {NUMBER, "llama.expert_count", 0, NULL},
        {TEXT, "llama.tensor_data_layout", 0, "Meta AI original pth"},
        {TEXT, "general.type", 0, "model"},
        {TEXT, "general.license", 0, "mit"},
        {TEXT, "somebody.note", 0, "made on a Sunday"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        wg_llama_config config;
        ck_assert_int_eq(read_with(&cases[i], &(key){0}, &config), 0);
        assert_no_error();
        ck_assert_double_eq(config.rope_scaling.factor, 0);
    }
}

/* As LLaMA 3.1 is written: the factors of the frequencies are a tensor. */
TEST(factors_of_frequencies_are_not_passed_over) {
    const char *path = in_scratch("a.gguf");
    write_llama(path, NULL);
    const bytes file = read_bytes(path);
    static const char name[] = "token_embd.weight", other[] = "rope_freqs.weight";
    uint8_t *at = memmem(file.data, file.count, name, strlen(name));
    ck_assert_ptr_nonnull(at);
    memcpy(at, other, strlen(other));
    write_file(path, file.data, file.count);
    free(file.data);
    assert_fails(wg_weights_open(path), WG_ERROR_FORMAT,
                 "rope_freqs.weight scales the positions of each frequency");
}

static void join_notes(const char *message, void *context) {
    strncat(context, message, 255);
}

TEST(an_end_of_turn_is_one_more_token_that_ends_a_text) {
    static const uint64_t tokens[] = {2, 270}; /* the end of a text itself, and another one */
    const char *path = in_scratch("a.gguf");
    for (int i = 0; i < 2; i++) {
        char notes[1024] = "";
        const wg_convert_options options = {.note = join_notes, .context = notes};
        wg__text keys = {0};
        write_llama(path, NULL);
        wg__gguf_write(&keys, "tokenizer.ggml.eot_token_id", WG__GGUF_U32, tokens[i]);
        add_keys(path, &keys, 1);
        ck_assert_int_eq(wg_convert(path, in_scratch("out.h5"), &options, NULL), 0);
        ck_assert_int_eq(strstr(notes, "eos_token_id") != NULL, i);
        if (i == 1)
            ck_assert_ptr_nonnull(strstr(notes, "several eos_token_id; the first one is kept"));
    }
}

/* ---- Tokenizers ---- */

/* LLaMA's layout with the pieces " ", "a", "b", "ab", " a" and " ab", 259 to 264. */
static char *pieces_json(void) {
    static const char *const pieces[] = {" ", "a", "b", "ab", " a", " ab"};
    static const double scores[] = {-1, -2, -3, -4, -5, -6};
    wg__text json = {0};
    char text[64];
    const char *begin =
        "{\"format\": \"wengert-tokenizer\", \"kind\": \"llama2c\", \"special\": {\"unknown\": 0, "
        "\"begin\": 1, \"end\": 2}, \"added\": [{\"id\": 0, \"text\": \"<unk>\", \"special\": "
        "true, "
        "\"strip_left\": false, \"strip_right\": false}, {\"id\": 1, \"text\": \"<s>\", "
        "\"special\": true, \"strip_left\": false, \"strip_right\": false}, {\"id\": 2, \"text\": "
        "\"</s>\", \"special\": true, \"strip_left\": false, \"strip_right\": false}], "
        "\"vocabulary\": [\"<unk>\", \"\\n<s>\\n\", \"\\n</s>\\n\"";
    wg__text_append(&json, begin, (int64_t)strlen(begin));
    for (int i = 0; i < 256; i++) {
        snprintf(text, sizeof text, ", \"<0x%02X>\"", i);
        wg__text_append(&json, text, (int64_t)strlen(text));
    }
    for (size_t i = 0; i < WG_COUNT(pieces); i++) {
        snprintf(text, sizeof text, ", \"%s\"", pieces[i]);
        wg__text_append(&json, text, (int64_t)strlen(text));
    }
    wg__text_append(&json, "], \"options\": {\"scores\": [0", 27);
    for (int i = 1; i < 259; i++)
        wg__text_append(&json, ", 0", 3);
    for (size_t i = 0; i < WG_COUNT(scores); i++) {
        snprintf(text, sizeof text, ", %g", scores[i]);
        wg__text_append(&json, text, (int64_t)strlen(text));
    }
    wg__text_append(&json, "]}}", 4);
    return json.bytes;
}

static wg_tokenizer *tokenizer_of(const char *path) {
    wg_weights *file = owned(wg_weights_open(path));
    assert_no_error();
    const char *json = wg__weights_tokenizer(file);
    wg_tokenizer *tokenizer = json ? owned(wg_tokenizer_from_json(json)) : NULL;
    assert_no_error();
    return tokenizer;
}

static void assert_encodes(const char *path, const char *text, int64_t count, const int32_t *ids) {
    wg_token_list list = {0};
    wg_tokenizer *tokenizer = tokenizer_of(path);
    ck_assert_ptr_nonnull(tokenizer);
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, -1, NULL, &list), 0);
    ck_assert_int_eq(list.count, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(list.ids[i], ids[i]);
    ck_assert_str_eq(text_of_ids(tokenizer, list.count, list.ids, NULL), text);
    wg_token_list_free(&list);
}

TEST(a_space_is_put_before_a_text_only_if_the_file_says_so) {
    char *json = owned(pieces_json());
    const char *path = in_scratch("a.gguf");
    write_llama(path, json);
    assert_encodes(path, "ab", 1, (const int32_t[]){264});
    assert_encodes(path, "ab ab", 2, (const int32_t[]){264, 264});
    set_flag(path, "tokenizer.ggml.add_space_prefix", false);
    assert_encodes(path, "ab", 1, (const int32_t[]){262});
    assert_encodes(path, "ab ab\xc3\xa9", 4, (const int32_t[]){262, 264, 3 + 0xc3, 3 + 0xa9});
    /* and again in GGUF */
    ck_assert_int_eq(wg_convert(path, in_scratch("again.gguf"), NULL, NULL), 0);
    assert_encodes(in_scratch("again.gguf"), "ab", 1, (const int32_t[]){262});
}

TEST(a_text_has_no_begin_if_the_file_says_so) {
    char *json = owned(pieces_json());
    const char *path = in_scratch("a.gguf");
    write_llama(path, json);
    for (int adds = 1; adds >= 0; adds--) {
        set_flag(path, "tokenizer.ggml.add_bos_token", adds);
        ck_assert_int_eq(wg_convert(path, in_scratch("again.gguf"), NULL, NULL), 0);
        const char *const paths[] = {path, in_scratch("again.gguf")};
        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(wg_tokenizer_special(tokenizer_of(paths[i]), WG_TOKEN_BEGIN),
                             adds ? 1 : -1);
    }
}

TEST(a_tokenizer_with_another_meaning_is_left_out_with_the_key) {
    static const key cases[] = {
        {FLAG, "tokenizer.ggml.add_eos_token", 1, NULL},
        {FLAG, "tokenizer.ggml.remove_extra_whitespaces", 1, NULL},
        {FLAG, "tokenizer.ggml.something_new", 0, NULL},
    };
    char *json = owned(pieces_json());
    const char *path = in_scratch("a.gguf");
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        char notes[1024] = "";
        const wg_convert_options options = {.note = join_notes, .context = notes};
        wg__text keys = {0};
        write_llama(path, json);
        put(&keys, &cases[i]);
        add_keys(path, &keys, 1);
        ck_assert_ptr_null(tokenizer_of(path));
        ck_assert_int_eq(wg_convert(path, in_scratch("out.h5"), &options, NULL), 0);
        ck_assert_ptr_nonnull(strstr(notes, "the tokenizer of the file is left out"));
        ck_assert_ptr_nonnull(strstr(notes, cases[i].name));
    }
    wg__text keys = {0};
    write_llama(path, json);
    wg__gguf_write(&keys, "tokenizer.ggml.add_eos_token", WG__GGUF_BOOL, false);
    wg__gguf_write_text(&keys, "tokenizer.chat_template", "{{ messages }}");
    wg__gguf_write(&keys, "tokenizer.ggml.fim_pre_token_id", WG__GGUF_U32, 5);
    add_keys(path, &keys, 3);
    wg_tokenizer *tokenizer = tokenizer_of(path);
    ck_assert_ptr_nonnull(tokenizer);
}
