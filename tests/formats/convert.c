/* Published models are imported and exported: against PyTorch's logits (tests/fixtures/convert.py),
 * the modules' own names, and stories260K. */
#include "formats/convert.h"
#include "formats/weights_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/tokenizer/tokenizer.h"
#include "io/checkpoint/checkpoint.h"
#include "base/alloc.h"
#include "models/bert.h"
#include "models/glm.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/t5.h"
#include "models/transformer.h"
#include "tensor/internal.h"
#include "tensor/npy.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "data/internal.h"
#include "io/internal.h"
#include "models/internal.h"

static void convert(const char *in, const char *out, const wg_convert_options *options) {
    wg_convert(in, out, options, NULL);
    assert_no_error();
}

/* ---- The lists ---- */

/* What conversion asks for names and shapes, the tree without memory that a configuration
 * describes, is that of the module. */
static void assert_lists_module(wg_module *module, char *json) {
    wg_model model;
    wg_set_meta_init(true);
    ck_assert_int_eq(wg_model_from_json(json, 0, &model), 0);
    wg_set_meta_init(false);
    wg_state_dict *listed = wg_module_state(model.module), *state = wg_module_state(module);
    ck_assert_int_eq(listed->count, state->count);
    for (int64_t i = 0; i < state->count; i++) {
        const wg_slot *slot = state->entries[i].slot, *other = listed->entries[i].slot;
        ck_assert_str_eq(listed->entries[i].path, state->entries[i].path);
        ck_assert(other->tied == slot->tied);
        ck_assert(wg__same_shape(&other->tensor->spec, &slot->tensor->spec));
    }
    wg_state_dict_free(state);
    wg_state_dict_free(listed);
    wg_model_free(&model);
    wg_text_free(json);
    wg_module_free(module);
}

START_TEST(the_lists_of_tensors_are_those_of_the_modules) {
    wg_bert_config bert;
    wg_model_preset_config(&wg_bert_type, "bert-tiny", &bert);
    bert.vocab_size = 40;
    bert.intermediate_size = 96;
    assert_lists_module(wg__bert_for_pretraining_new(&bert, 1),
                        wg_model_config_to_json(&wg_bert_type, &bert));
    wg_gpt_config gpt;
    wg_model_preset_config(&wg_gpt_type, "gpt2-tiny", &gpt);
    gpt.vocab_size = 40;
    gpt.bos_token_id = gpt.eos_token_id = 0;
    assert_lists_module(wg__gpt_new(&gpt, 1), wg_model_config_to_json(&wg_gpt_type, &gpt));
    for (int tied = 0; tied < 2; tied++) {
        wg_llama_config llama;
        wg_model_preset_config(&wg_llama_type, "llama-260k", &llama);
        llama.tie_word_embeddings = tied;
        assert_lists_module(wg__llama_new(&llama, 1),
                            wg_model_config_to_json(&wg_llama_type, &llama));
    }
}
END_TEST

static void check_lists(bool second) {
    wg_t5_config t5;
    wg_model_preset_config(&wg_t5_type, second ? "t5-v1_1-small" : "t5-small", &t5);
    t5.vocab_size = 40;
    t5.d_model = 16;
    t5.num_layers = 2;
    t5.num_decoder_layers = 3;
    assert_lists_module(wg__t5_new(&t5, 1), wg_model_config_to_json(&wg_t5_type, &t5));
    wg_glm_config glm;
    wg_model_preset_config(&wg_glm_type, "glm-tiny", &glm);
    glm.vocab_size = 40;
    glm.max_sequence_length = 20;
    assert_lists_module(wg__glm_new(&glm, 1), wg_model_config_to_json(&wg_glm_type, &glm));
    wg_transformer_config transformer;
    wg_model_preset_config(&wg_transformer_type, "transformer-tiny", &transformer);
    transformer.vocab_size = transformer.decoder_vocab_size = 40;
    transformer.share_encoder_decoder_embeddings = second;
    transformer.normalize_before = second;
    transformer.decoder_layers = 1;
    transformer.decoder_ffn_dim = 24;
    transformer.eos_token_id = transformer.decoder_start_token_id = 0;
    assert_lists_module(wg__transformer_new(&transformer, 1),
                        wg_model_config_to_json(&wg_transformer_type, &transformer));
}

START_TEST(the_lists_of_encoders_with_decoders_are_those_of_the_modules) {
    check_lists(false);
    check_lists(true);
}
END_TEST

/* ---- Beside PyTorch ---- */

static void assert_decoder(const char *path, const char *folder) {
    wg_model model;
    wg_weights *file = wg_weights_open(path);
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_model_from_json(wg__weights_config(file), 5, &model), 0);
    ck_assert_int_eq(wg_weights_get_module(file, model.module), 0);
    wg_weights_close(file);
    wg_module_train(model.module, false);
    wg_tensor *ids = fixture_tensor("decoders/%s/ids", folder);
    wg_tensor *logits = logits_of_ids(&model, ids);
    assert_close(logits, wg_cast(fixture_tensor("decoders/%s/logits", folder), WG_F32), 1e-5, 2e-5);
    wg_set_grad_enabled(true);
    wg_scope_clear_root();
    wg_model_free(&model);
}

START_TEST(gpt2_of_torch_save_gives_pytorchs_logits) {
    convert(fixture("convert/gpt"), in_scratch("gpt.h5"), NULL);
    assert_decoder(in_scratch("gpt.h5"), "gpt");
    convert(in_scratch("gpt.h5"), in_scratch("folder"), NULL);
    convert(in_scratch("folder"), in_scratch("again.h5"), NULL);
    assert_decoder(in_scratch("again.h5"), "gpt");
}
END_TEST

START_TEST(llama_in_shards_gives_pytorchs_logits_through_every_format) {
    const char *const steps[] = {"a.h5", "b.gguf", "c.h5", "d.bin", "e.h5", "folder", "f.h5"};
    convert(fixture("convert/llama"), in_scratch(steps[0]), NULL);
    for (size_t i = 1; i < WG_COUNT(steps); i++)
        convert(in_scratch(steps[i - 1]), in_scratch(steps[i]), NULL);
    assert_decoder(in_scratch("a.h5"), "llama");
    assert_decoder(in_scratch("b.gguf"), "llama");
    assert_decoder(in_scratch("d.bin"), "llama");
    assert_decoder(in_scratch("f.h5"), "llama");
}
END_TEST

static wg_bert_for_pretraining *load_bert(const char *path) {
    wg_bert_config config;
    wg_weights *file = wg_weights_open(path);
    ck_assert_int_eq(wg_model_config_from_json(&wg_bert_type, wg__weights_config(file), &config),
                     0);
    wg_bert_for_pretraining *model = wg__bert_for_pretraining_new(&config, 5);
    ck_assert_int_eq(wg_weights_get_module(file, &model->module), 0);
    wg_weights_close(file);
    wg_module_train(&model->module, false);
    return model;
}

static wg_tensor *sequence_of(wg_bert_for_pretraining *model) {
    wg_tensor *ids = fixture_tensor("bert/input_ids"),
              *types = fixture_tensor("bert/token_type_ids");
    wg_tensor *mask = fixture_tensor("bert/attention_mask");
    return wg__bert_forward(&model->bert->module,
                            &(wg_model_inputs){.ids = ids, .token_type_ids = types, .keep = mask});
}

START_TEST(bert_of_safetensors_gives_pytorchs_logits) {
    convert(fixture("convert/bert"), in_scratch("bert.h5"), NULL);
    wg_bert_for_pretraining *model = load_bert(in_scratch("bert.h5"));
    wg_set_grad_enabled(false);
    wg_tensor *sequence = sequence_of(model);
    assert_close(sequence, wg_cast(fixture_tensor("bert/sequence"), WG_F32), 1e-5, 1e-5);
    assert_close(wg_model_logits(&(wg_model){.type = &wg_bert_type, .module = &model->module},
                                 sequence, fixture_tensor("bert/masked_positions")),
                 wg_cast(fixture_tensor("bert/mlm_logits"), WG_F32), 1e-5, 1e-5);
    assert_close(wg_linear_forward(model->next_sentence,
                                   wg__bert_pool(&model->bert->module, sequence, NULL)),
                 wg_cast(fixture_tensor("bert/nsp_logits"), WG_F32), 1e-5, 1e-5);
    wg_set_grad_enabled(true);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

static void keep_note(const char *message, void *context) {
    if (strstr(message, "begun anew"))
        snprintf(context, 1024, "%s", message);
}

START_TEST(a_bare_encoder_gets_heads_and_is_said_to) {
    char said[1024] = "";
    const wg_convert_options options = {.note = keep_note, .context = said};
    convert(fixture("convert/encoder"), in_scratch("encoder.h5"), &options);
    ck_assert_ptr_nonnull(strstr(said, "begun anew: bert.pooler.dense.weight"));
    wg_bert_for_pretraining *model = load_bert(in_scratch("encoder.h5"));
    wg_set_grad_enabled(false);
    assert_close(sequence_of(model), wg_cast(fixture_tensor("bert/sequence"), WG_F32), 1e-5, 1e-5);
    assert_close(model->predictions->norm->weight, wg_ones(WG_F32, 1, (int64_t[]){16}), 0, 0);
    const double deviation = wg_item(wg_std(model->predictions->dense->weight, WG_ALL, 0, false));
    ck_assert_double_gt(deviation, 0.01);
    ck_assert_double_lt(deviation, 0.03);
    wg_set_grad_enabled(true);
    wg_scope_clear_root();
    wg_module_free(&model->module);
}
END_TEST

/* Builds the model of a checkpoint's configuration and loads the checkpoint's weights. */
static void fill(wg_weights *file, wg_module *module) {
    ck_assert_int_eq(wg_weights_get_module(file, module), 0);
    wg_weights_close(file);
    wg_module_train(module, false);
    wg_set_grad_enabled(false);
}

static void done_with(wg_module *module) {
    wg_set_grad_enabled(true);
    wg_scope_clear_root();
    wg_module_free(module);
}

static void assert_t5(const char *path, const char *folder) {
    wg_model model;
    wg_weights *file = wg_weights_open(path);
    ck_assert_int_eq(wg_model_from_json(wg__weights_config(file), 5, &model), 0);
    fill(file, model.module);
    wg_tensor *keep = fixture_tensor("%s/keep", folder);
    const wg_model_inputs inputs = {
        .ids = fixture_tensor("%s/read", folder),
        .memory = wg_model_encode(&model, fixture_tensor("%s/ids", folder), keep),
        .memory_keep = keep};
    wg_tensor *hidden = wg_model_forward(&model, &inputs);
    assert_relative(wg_model_logits(&model, hidden, NULL), fixture_tensor("%s/logits", folder),
                    1e-5);
    done_with(model.module);
}

/* Converts to a checkpoint; and to a folder and back. */
static void check_t5(const char *in, const char *folder) {
    convert(in, in_scratch("t5.h5"), NULL);
    assert_t5(in_scratch("t5.h5"), folder);
    convert(in_scratch("t5.h5"), in_scratch(folder + 3), NULL);
    convert(in_scratch(folder + 3), in_scratch("again.h5"), NULL);
    assert_t5(in_scratch("again.h5"), folder);
}

START_TEST(t5_of_torch_save_and_of_safetensors_gives_pytorchs_logits) {
    check_t5(fixture("convert/t5_1_0"), "t5/1_0");
    check_t5(fixture("convert/t5_1_1"), "t5/1_1");
}
END_TEST

static void assert_glm(const char *path) {
    wg_model model;
    wg_weights *file = wg_weights_open(path);
    ck_assert_int_eq(wg_model_from_json(wg__weights_config(file), 5, &model), 0);
    fill(file, model.module);
    const wg_model_inputs inputs = {.ids = fixture_tensor("glm/ids"),
                                    .position_ids = fixture_tensor("glm/position_ids"),
                                    .block_position_ids = fixture_tensor("glm/block_position_ids"),
                                    .part_a = fixture_tensor("glm/part_a")};
    wg_tensor *hidden = wg_model_forward(&model, &inputs);
    assert_relative(wg_model_logits(&model, hidden, NULL), fixture_tensor("glm/logits"), 1e-5);
    done_with(model.module);
}

START_TEST(glm_of_torch_save_gives_pytorchs_logits) {
    convert(fixture("convert/glm"), in_scratch("glm.h5"), NULL);
    assert_glm(in_scratch("glm.h5"));
    convert(in_scratch("glm.h5"), in_scratch("folder"), NULL);
    convert(in_scratch("folder"), in_scratch("again.h5"), NULL);
    assert_glm(in_scratch("again.h5"));
}
END_TEST

/* ---- Tokenizers in GGUF ---- */

/* Writes a checkpoint of a LLaMA with that tokenizer, which it frees. */
static void save_llama(const char *path, wg_tokenizer *tokenizer) {
    wg_llama_config config;
    wg_model_preset_config(&wg_llama_type, "llama-260k", &config);
    config.vocab_size = 300;
    config.bos_token_id = config.eos_token_id = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    wg_llama *model = wg__llama_new(&config, 1);
    char *json = wg_model_config_to_json(&wg_llama_type, &config),
         *text = wg_tokenizer_to_json(tokenizer);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_text(file, "/config", json);
    wg_checkpoint_put_text(file, "/tokenizer", text);
    wg_checkpoint_put_module(file, "/model", &model->module);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_text_free(json);
    wg_text_free(text);
    wg_tokenizer_free(tokenizer);
    wg_module_free(&model->module);
}

static char *tokenizer_of(const char *path) {
    wg_weights *file = wg_weights_open(path);
    const char *json = wg__weights_tokenizer(file);
    wg_tokenizer *tokenizer = json ? wg_tokenizer_from_json(json) : NULL;
    char *copy = wg_tokenizer_to_json(tokenizer);
    wg_tokenizer_free(tokenizer);
    wg_weights_close(file);
    return copy;
}

static void keep_dropped(const char *message, void *context) {
    if (strstr(message, "it is dropped"))
        *(bool *)context = true;
}

static bool is_dropped(wg_tokenizer *tokenizer) {
    bool dropped = false;
    const wg_convert_options options = {.note = keep_dropped, .context = &dropped};
    save_llama(in_scratch("a.h5"), tokenizer);
    convert(in_scratch("a.h5"), in_scratch("b.gguf"), &options);
    convert(in_scratch("b.gguf"), in_scratch("c.h5"), NULL);
    return dropped;
}

START_TEST(gguf_keeps_byte_level_bpe_that_llama_cpp_has) {
    static const char *const patterns[] = {
        NULL, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
              "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
    for (int i = 0; i < 2; i++) {
        const wg_bpe_training training = {
            .vocabulary_size = 290, .options = {.pattern = patterns[i], .whole_words = i == 1}};
        ck_assert(
            !is_dropped(wg__bpe_train("the lower the newer the lowest newest", -1, &training)));
        char *before = tokenizer_of(in_scratch("a.h5")), *after = tokenizer_of(in_scratch("c.h5"));
        ck_assert_ptr_nonnull(after);
        ck_assert_str_eq(before, after);
        wg_text_free(before);
        wg_text_free(after);
    }
}
END_TEST

START_TEST(a_tokenizer_that_gguf_does_not_have_is_dropped_with_a_note) {
    ck_assert(is_dropped(wg_byte_new()));
    wg_weights *file = wg_weights_open(in_scratch("c.h5"));
    ck_assert_ptr_null(wg__weights_tokenizer(file));
    wg_weights_close(file);
    const wg_bpe_training training = {.vocabulary_size = 290, .options = {.pattern = "\\S+|\\s+"}};
    ck_assert(is_dropped(wg__bpe_train("the lower the newer the lowest newest", -1, &training)));
}
END_TEST

/* ---- Several files, and several ends ---- */

static bool is_there(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

START_TEST(a_model_goes_through_shards_and_back_bit_for_bit) {
    const wg_convert_options shards = {.shard_bytes = 4000};
    convert(fixture("convert/llama"), in_scratch("a.h5"), NULL);
    convert(in_scratch("a.h5"), in_scratch("shards"), &shards);
    ck_assert(!is_there(in_scratch("shards/model.safetensors")));
    ck_assert(is_there(in_scratch("shards/model.safetensors.index.json")));
    ck_assert(is_there(in_scratch("shards/model-00001-of-00007.safetensors")));
    ck_assert(is_there(in_scratch("shards/config.json")));
    convert(in_scratch("shards"), in_scratch("b.h5"), NULL);
    assert_decoder(in_scratch("b.h5"), "llama");
    wg_weights *a = wg_weights_open(in_scratch("a.h5")), *b = wg_weights_open(in_scratch("b.h5"));
    ck_assert_int_eq(wg_weights_count(a), wg_weights_count(b));
    for (int64_t i = 0; i < wg_weights_count(a); i++)
        assert_close(wg_weights_read(b, wg_weights_find(b, wg_weights_name(a, i))),
                     wg_weights_read(a, i), 0, 0);
    wg_weights_close(a);
    wg_weights_close(b);
    convert(in_scratch("a.h5"), in_scratch("shards"),
            NULL); /* whole again, because it is read first */
    convert(in_scratch("shards"), in_scratch("c.h5"), NULL);
    assert_decoder(in_scratch("c.h5"), "llama");
}
END_TEST

static void join_notes(const char *message, void *context) {
    strncat(context, message, 255);
}

START_TEST(several_tokens_that_end_a_text_are_noted) {
    char notes[1024] = "";
    char *json = NULL;
    wg_llama_config config;
    convert(fixture("convert/llama"), in_scratch("a.h5"), NULL);
    wg_weights *file = wg_weights_open(in_scratch("a.h5"));
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, wg__weights_config(file), &config),
                     0);
    wg_weights_close(file);
    json = wg_model_config_to_json(&wg_llama_type, &config);
    char several[2048];
    const char *key = strstr(json, "\"eos_token_id\": "), *rest = key + strcspn(key, ",\n}");
    snprintf(several, sizeof several, "%.*s\"eos_token_id\": [3, 4]%s", (int)(key - json), json,
             rest);
    wg_text_free(json);
    const wg_convert_options options = {
        .config = write_text("several.json", several), .note = join_notes, .context = notes};
    convert(fixture("convert/llama"), in_scratch("b.h5"), &options);
    ck_assert_ptr_nonnull(strstr(notes, "several eos_token_id; the first one is kept"));
    file = wg_weights_open(in_scratch("b.h5"));
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, wg__weights_config(file), &config),
                     0);
    ck_assert_int_eq(config.eos_token_id, 3);
    wg_weights_close(file);
}
END_TEST

/* ---- LoRA adapters ---- */

/* An adapter of rank 2 whose product is 1 at [0, 0] and [1, 1], for the queries of the first layer,
 * with that configuration. */
static const char *write_adapter(const char *keys) {
    const char *folder = in_scratch("adapter");
    char json[512];
    const wg_weights_info infos[] = {
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", {WG_F32, 2, {2, 16}}},
        {"base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight", {WG_F32, 2, {16, 2}}}};
    mkdir(folder, 0777);
    snprintf(json, sizeof json,
             "{\"peft_type\": \"LORA\", \"lora_alpha\": 4, \"target_modules\": [\"q_proj\"], %s}",
             keys);
    write_text("adapter/adapter_config.json", json);
    wg_weights_writer *writer = wg_weights_create(in_scratch("adapter/adapter_model.safetensors"),
                                                  "safetensors", NULL, 2, infos);
    wg_weights_put(writer, 0, wg_eye(WG_F32, 2, 16));
    wg_weights_put(writer, 1, wg_eye(WG_F32, 16, 2));
    ck_assert_int_eq(wg_weights_commit(writer), 0);
    return folder;
}

START_TEST(an_adapter_is_added_at_its_scale_or_refused) {
    static const struct {
        const char *keys, *message;
        double added;
    } cases[] = {
        {"\"r\": 2", NULL, 2},
        {"\"r\": 2, \"use_rslora\": true", NULL, 2.82842712},
        {"\"r\": 2, \"init_lora_weights\": \"pissa\"", "init_lora_weights is \"pissa\"", 0},
        {"\"r\": 2, \"use_qalora\": true", "it has \"use_qalora\"", 0},
        {"\"r\": 4", "lora_A.weight", 0}, /* the tensors are of rank 2 */
    };
    wg_weights *base = wg_weights_open(fixture("convert/llama"));
    wg_tensor *before =
        wg_weights_read(base, wg_weights_find(base, "model.layers.0.self_attn.q_proj.weight"));
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const wg_convert_options options = {.adapter = write_adapter(cases[i].keys)};
        const int status =
            wg_convert(fixture("convert/llama"), in_scratch("sum.h5"), &options, NULL);
        ck_assert_int_eq(status, cases[i].message ? -1 : 0);
        if (cases[i].message) {
            assert_error(WG_ERROR_FORMAT, cases[i].message);
            continue;
        }
        wg_weights *sum = wg_weights_open(in_scratch("sum.h5"));
        wg_tensor *after =
            wg_weights_read(sum, wg_weights_find(sum, "model.layers.0.self_attn.q_proj.weight"));
        wg_tensor *wanted =
            wg_add(before, wg_mul_scalar(wg_matmul(wg_eye(WG_F32, 16, 2), wg_eye(WG_F32, 2, 16)),
                                         cases[i].added));
        assert_close(after, wanted, 1e-6, 1e-6);
        wg_weights_close(sum);
    }
    wg_weights_close(base);
}
END_TEST

/* ---- What is refused ---- */

static void refuse(const char *in, const char *out, const wg_convert_options *options,
                   wg_error_code code, const char *message) {
    struct stat status;
    ck_assert_int_lt(wg_convert(in, out, options, NULL), 0);
    assert_error(code, message);
    ck_assert_int_lt(stat(out, &status), 0);
}

START_TEST(what_cannot_be_converted_is_refused_with_the_reason) {
    const char *out = in_scratch("out.h5");
    refuse(fixture("convert/gpt/pytorch_model.bin"), in_scratch("out.xyz"), NULL, WG_ERROR_ARGUMENT,
           "none of the suffixes");
    refuse(fixture("convert/hostile.pt"), out, NULL, WG_ERROR_FORMAT, "it wants posix.system");
    refuse(in_scratch("nothing.gguf"), out, NULL, WG_ERROR_NOT_FOUND, "nothing.gguf");
    refuse(write_text("text.gguf", "hello"), out, NULL, WG_ERROR_FORMAT, "is no file of GGUF");
    refuse(write_text("text.txt", "hello"), out, NULL, WG_ERROR_FORMAT, "is none of HDF5");
    refuse(fixture("convert/bert"), in_scratch("out.gguf"), NULL, WG_ERROR_ARGUMENT,
           "holds a llama only; this model is bert");
    refuse(fixture("convert/llama"), in_scratch("out.bin"),
           &(wg_convert_options){.type = WG_WEIGHTS_F16}, WG_ERROR_ARGUMENT, "f32 only");
    refuse(fixture("convert/llama"), out, &(wg_convert_options){.type = WG_WEIGHTS_Q8_0},
           WG_ERROR_ARGUMENT, "f32 or bf16");
}
END_TEST

START_TEST(a_model_with_bigrams_is_written_in_no_format_of_others) {
    const wg_convert_options options = {
        .config = write_text("bigrams.json",
                             "{\"model_type\": \"llama\", \"vocab_size\": 9, \"hidden_size\": 8, "
                             "\"intermediate_size\": 5, \"num_hidden_layers\": 1, "
                             "\"num_attention_heads\": 2, \"bigram_vocab_size\": 16}")};
    static const char *const outs[] = {"out", "out.safetensors", "out.gguf", "out.bin"};
    for (size_t i = 0; i < WG_COUNT(outs); i++)
        refuse(fixture("convert/llama"), in_scratch(outs[i]), &options, WG_ERROR_ARGUMENT,
               "a table of bigrams (bigram_vocab_size), which no other program reads");
}
END_TEST

START_TEST(a_model_that_is_not_here_or_not_of_its_configuration_is_refused) {
    const char *out = in_scratch("out.h5");
    const wg_convert_options marian = {
        .config = write_text("marian.json", "{\"model_type\": \"marian\"}")};
    refuse(fixture("convert/gpt"), out, &marian, WG_ERROR_FORMAT,
           "\"marian\" is not converted; these are: bert, ");
    const wg_convert_options wide = {
        .config = write_text("wide.json",
                             "{\"model_type\": \"gpt2\", \"vocab_size\": 48, \"n_positions\": 16, "
                             "\"n_embd\": 16, \"n_layer\": 3, \"n_head\": 4, \"n_inner\": 32, "
                             "\"bos_token_id\": 0, \"eos_token_id\": 0}")};
    refuse(fixture("convert/gpt"), out, &wide, WG_ERROR_NOT_FOUND,
           "12 missing (transformer.h.2.ln_1.weight");
    refuse(fixture("convert/gpt"), out, &wide, WG_ERROR_NOT_FOUND,
           "6 misshapen (h.0.mlp.c_fc.weight is (16, 24) f32, wanted (16, 32) f32");
    const wg_convert_options deep = {
        .config = write_text("deep.json",
                             "{\"model_type\": \"gpt2\", \"vocab_size\": 48, \"n_embd\": 16, "
                             "\"n_layer\": 2000000000, \"n_head\": 4, \"bos_token_id\": 0, "
                             "\"eos_token_id\": 0}")};
    refuse(fixture("convert/gpt"), out, &deep, WG_ERROR_FORMAT, "2000000000 layers");
    const wg_convert_options bert = {.config = write_text("bert.json", "{}")};
    refuse(fixture("convert/bert"), out, &bert, WG_ERROR_FORMAT, "vocab_size");
}
END_TEST

/* ---- Without memory ---- */

/* Fails every allocation from the n-th on, for every n, until the conversion succeeds. */
static void convert_without_memory(const char *in, const char *out,
                                   const wg_convert_options *options) {
    int64_t n = 0;
    for (;; n++) {
        wg__alloc_fail_after(n);
        const int status = wg_convert(in, out, options, NULL);
        wg__alloc_fail_after(-1);
        if (status == 0)
            break;
        assert_error(WG_ERROR_MEMORY, "");
    }
    assert_no_error();
    ck_assert_int_gt(n, 20);
}

START_TEST(a_conversion_without_memory_says_so_and_leaks_nothing) {
    const wg_convert_options configured = {.config = in_scratch("config.json")};
    char *json = NULL;
    wg_llama_config config;
    convert(fixture("convert/llama"), in_scratch("llama.bin"), NULL);
    wg_weights *file = wg_weights_open(in_scratch("llama.bin"));
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, wg__weights_config(file), &config),
                     0);
    wg_weights_close(file);
    write_text("config.json", json = wg_model_config_to_json(&wg_llama_type, &config));
    wg_text_free(json);
    convert_without_memory(in_scratch("llama.bin"), in_scratch("a.gguf"), NULL);
    convert_without_memory(in_scratch("a.gguf"), in_scratch("b.safetensors"), NULL);
    convert_without_memory(in_scratch("b.safetensors"), in_scratch("c.bin"), &configured);
    convert_without_memory(fixture("convert/encoder"), in_scratch("folder"), NULL);
    convert_without_memory(in_scratch("llama.bin"), in_scratch("shards"),
                           &(wg_convert_options){.shard_bytes = 8000});
}
END_TEST

/* ---- A real model ---- */

static void assert_same_file(const char *a, const char *b, long count) {
    char *bytes[2];
    const char *const paths[] = {a, b};
    for (int i = 0; i < 2; i++) {
        FILE *stream = fopen(paths[i], "rb");
        bytes[i] = malloc((size_t)count);
        ck_assert_uint_eq(fread(bytes[i], 1, (size_t)count, stream), (size_t)count);
        fclose(stream);
    }
    ck_assert_int_eq(memcmp(bytes[0], bytes[1], (size_t)count), 0);
    free(bytes[0]);
    free(bytes[1]);
}

/* 260,032 numbers and the header; the tables behind them are never read. */
enum { STORIES_BYTES = 28 + 4 * 260032 };

START_TEST(stories260k_comes_back_bit_for_bit) {
    if (!real_data("stories260K/stories260K.bin"))
        return;
    char tokenizer[512];
    snprintf(tokenizer, sizeof tokenizer, "%s", real_data("stories260K/tok512.bin"));
    const wg_convert_options with = {.tokenizer = tokenizer};
    convert(real_data("stories260K/stories260K.bin"), in_scratch("a.h5"), &with);
    convert(in_scratch("a.h5"), in_scratch("b.gguf"), NULL);
    convert(in_scratch("b.gguf"), in_scratch("c.h5"), NULL);
    convert(in_scratch("c.h5"), in_scratch("d.bin"), NULL);
    assert_same_file(in_scratch("d.bin"), real_data("stories260K/stories260K.bin"), STORIES_BYTES);
    wg_weights *before = wg_weights_open(in_scratch("a.h5")),
               *after = wg_weights_open(in_scratch("c.h5"));
    wg_tokenizer *x = wg_tokenizer_from_json(wg__weights_tokenizer(before)),
                 *y = wg_tokenizer_from_json(wg__weights_tokenizer(after));
    char *first = wg_tokenizer_to_json(x), *second = wg_tokenizer_to_json(y);
    assert_no_error();
    ck_assert_str_eq(first, second);
    wg_text_free(first);
    wg_text_free(second);
    wg_tokenizer_free(x);
    wg_tokenizer_free(y);
    wg_weights_close(before);
    wg_weights_close(after);
}
END_TEST

/* Every number is within half a step of its block, scale / 2, and the scale's rounding. */
START_TEST(quantised_numbers_are_near_those_they_stand_for) {
    if (!real_data("stories260K/stories260K.bin"))
        return;
    convert(real_data("stories260K/stories260K.bin"), in_scratch("q.gguf"),
            &(wg_convert_options){.type = WG_WEIGHTS_Q8_0});
    wg_weights *exact = wg_weights_open(real_data("stories260K/stories260K.bin")),
               *near = wg_weights_open(in_scratch("q.gguf"));
    const char *name = "model.layers.2.self_attn.q_proj.weight";
    wg_tensor *x = wg_weights_read(exact, wg_weights_find(exact, name)),
              *y = wg_weights_read(near, wg_weights_find(near, name));
    assert_no_error();
    const double largest = wg_item(wg_max(wg_abs(x), WG_ALL, false)),
                 error = wg_item(wg_max(wg_abs(wg_sub(x, y)), WG_ALL, false));
    ck_assert_double_gt(error, 0);
    ck_assert_double_lt(error, largest / 127 / 2 * 1.1);
    wg_weights_close(exact);
    wg_weights_close(near);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        the_lists_of_tensors_are_those_of_the_modules,
        the_lists_of_encoders_with_decoders_are_those_of_the_modules,
        gpt2_of_torch_save_gives_pytorchs_logits,
        llama_in_shards_gives_pytorchs_logits_through_every_format,
        bert_of_safetensors_gives_pytorchs_logits,
        a_bare_encoder_gets_heads_and_is_said_to,
        t5_of_torch_save_and_of_safetensors_gives_pytorchs_logits,
        glm_of_torch_save_gives_pytorchs_logits,
        gguf_keeps_byte_level_bpe_that_llama_cpp_has,
        a_tokenizer_that_gguf_does_not_have_is_dropped_with_a_note,
        a_model_goes_through_shards_and_back_bit_for_bit,
        several_tokens_that_end_a_text_are_noted,
        an_adapter_is_added_at_its_scale_or_refused,
        what_cannot_be_converted_is_refused_with_the_reason,
        a_model_with_bigrams_is_written_in_no_format_of_others,
        a_model_that_is_not_here_or_not_of_its_configuration_is_refused,
        a_conversion_without_memory_says_so_and_leaks_nothing,
        stories260k_comes_back_bit_for_bit,
        quantised_numbers_are_near_those_they_stand_for,
    };
    add_suite("convert", tests);
}
