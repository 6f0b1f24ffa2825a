/* Files that hold a tensor which the model has only as another one, since the configuration ties
 * the two: equal ones are one tensor, others are refused. For every type of model. */
#include "formats/convert.h"
#include "formats/weights_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/config.h"
#include "models/model.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"

/* The smallest model of a type, with the head tied where the type can have one of its own. */
static void make_model(const wg_model_type *type, char *json, size_t size, wg_model *model) {
    const wg_setting *row = wg__settings_find(&type->settings, "tie_word_embeddings");
    char smallest[1024];
    snprintf(smallest, sizeof smallest, "%s", type->smallest);
    char *other = strstr(smallest, ", \"tie_word_embeddings\": false");
    if (other)
        memmove(other, other + strlen(", \"tie_word_embeddings\": false"),
                strlen(other + strlen(", \"tie_word_embeddings\": false")) + 1);
    snprintf(json, size, "{\"model_type\": \"%s\", %s%s", type->model_type,
             row ? "\"tie_word_embeddings\": true, " : "", smallest + 1);
    ck_assert_int_eq(wg_model_from_json(json, 1, model), 0);
}

/* Writes all tensors of the model, and one more: that of another name, with something added to its
 * last number. */
static void write_with_copy(const char *path, const char *format, const char *json,
                            const wg_model *model, const char *copy, const wg_tensor *of,
                            double change) {
    wg_state_dict *state = wg_module_state(model->module);
    wg_weights_info *infos = calloc((size_t)state->count + 1, sizeof *infos);
    const wg_tensor **tensors = calloc((size_t)state->count + 1, sizeof *tensors);
    int64_t count = 0;
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied) {
            tensors[count] = state->entries[i].slot->tensor;
            infos[count++] =
                (wg_weights_info){state->entries[i].path, state->entries[i].slot->tensor->spec};
        }
    wg_tensor *other = wg_clone((wg_tensor *)(uintptr_t)of);
    float *numbers = wg_tensor_data(other);
    numbers[wg_tensor_count(other) - 1] += (float)change;
    tensors[count] = other;
    infos[count++] = (wg_weights_info){copy, of->spec};
    const wg_weights_options options = {.config = json};
    wg_weights_writer *writer = wg_weights_create(path, format, &options, count, infos);
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(wg_weights_put(writer, i, tensors[i]), 0);
    ck_assert_int_eq(wg_weights_commit(writer), 0);
    wg_state_dict_free(state);
    free(infos);
    free(tensors);
}

static void assert_copy_is_compared(const wg_model *model, const char *json, const char *copy,
                                    const char *original, const wg_tensor *of) {
    static const char *const formats[][2] = {{"safetensors", "a.safetensors"}, {"hdf5", "a.h5"}};
    const wg_convert_options options = {.config = write_text("config.json", json)};
    const char *out = in_scratch("out.h5");
    for (size_t i = 0; i < WG_COUNT(formats); i++) {
        const char *in = in_scratch(formats[i][1]);
        write_with_copy(in, formats[i][0], json, model, copy, of, 0);
        ck_assert_int_eq(wg_convert(in, out, &options, NULL), 0);
        write_with_copy(in, formats[i][0], json, model, copy, of, 0.5);
        ck_assert_msg(wg_convert(in, out, &options, NULL) < 0, "%s of %s is dropped", copy,
                      model->type->name);
        char message[320];
        snprintf(message, sizeof message, "%s differs from %s", copy, original);
        assert_error(WG_ERROR_FORMAT, message);
    }
}

static const wg_tensor *tensor_at(const wg_model *model, const char *path) {
    const wg_tensor *x = NULL;
    wg_state_dict *state = wg_module_state(model->module);
    for (int64_t i = 0; i < state->count; i++)
        if (strcmp(state->entries[i].path, path) == 0)
            x = state->entries[i].slot->tensor;
    wg_state_dict_free(state);
    ck_assert_ptr_nonnull(x);
    return x;
}

/* The path under which the model has the tensor itself. */
static void path_of(const wg_model *model, const wg_tensor *x, char *path, size_t size) {
    wg_state_dict *state = wg_module_state(model->module);
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied && state->entries[i].slot->tensor == x)
            snprintf(path, size, "%s", state->entries[i].path);
    wg_state_dict_free(state);
}

static int model_count(void) {
    int count = 0;
    while (wg_model_type_at(count))
        count++;
    return count;
}

static const char *model_name(int index) {
    return wg_model_type_at(index)->name;
}

TEST_OF_EACH(a_tied_tensor_that_differs_in_the_file_is_refused, model_count(), model_name) {
    const wg_model_type *type = wg_model_type_at(_i);
    char json[2048], original[160];
    wg_model model;
    make_model(type, json, sizeof json, &model);
    wg_state_dict *state = wg_module_state(model.module);
    for (int64_t i = 0; i < state->count; i++)
        if (state->entries[i].slot->tied) {
            path_of(&model, state->entries[i].slot->tensor, original, sizeof original);
            assert_copy_is_compared(&model, json, state->entries[i].path, original,
                                    state->entries[i].slot->tensor);
        }
    wg_state_dict_free(state);
    for (int i = 0; type->names.copies[i].end; i++) {
        const char *end = type->names.copies[i].end;
        char copy[160];
        snprintf(copy, sizeof copy, "%s%s", wg__starts_with(end, "coder.") ? "de" : "", end);
        assert_copy_is_compared(&model, json, copy, type->names.copies[i].of,
                                tensor_at(&model, type->names.copies[i].of));
    }
    wg_model_free(&model);
}

/* What says that the head is one of its own, and what a file must have then. */
TEST(a_head_of_a_llama_is_kept_if_the_configuration_unties_it) {
    static const char sizes[] = "{\"model_type\": \"llama\", \"vocab_size\": 48, \"hidden_size\": "
                                "16, \"intermediate_size\": 24, \"num_hidden_layers\": 2, "
                                "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                                "\"max_position_embeddings\": 16, \"rms_norm_eps\": 1e-5, "
                                "\"tie_word_embeddings\": %s}";
    char json[512];
    const char *out = in_scratch("out.h5");
    snprintf(json, sizeof json, sizes, "true");
    const wg_convert_options tied = {.config = write_text("tied.json", json)};
    assert_fails(wg_convert(fixture("convert/llama"), out, &tied, NULL), WG_ERROR_FORMAT,
                 "lm_head.weight differs from model.embed_tokens.weight, though the configuration "
                 "ties them: set \"tie_word_embeddings\": false in config.json");
    snprintf(json, sizeof json, sizes, "false");
    const wg_convert_options untied = {.config = write_text("untied.json", json)};
    ck_assert_int_eq(wg_convert(fixture("convert/llama"), out, &untied, NULL), 0);
    wg_weights *file = owned(wg_weights_open(out));
    ck_assert_int_ge(wg_weights_find(file, "lm_head.weight"), 0);
}

TEST(a_head_of_its_own_that_is_not_in_the_file_is_missing) {
    char json[2048];
    wg_model model;
    make_model(wg_model_type_find("llama"), json, sizeof json, &model);
    char *text = owned(wg_model_config_json(&model)), *tied = strstr(text, "true");
    memcpy(tied, "null", 4); /* left out: a head of its own */
    write_with_copy(in_scratch("a.safetensors"), "safetensors", json, &model,
                    "model.layers.0.self_attn.rotary_emb.inv_freq",
                    tensor_at(&model, "model.norm.weight"), 0);
    const wg_convert_options options = {.config = write_text("untied.json", text)};
    assert_fails(wg_convert(in_scratch("a.safetensors"), in_scratch("out.h5"), &options, NULL),
                 WG_ERROR_NOT_FOUND, "lm_head.weight");
    wg_model_free(&model);
}
