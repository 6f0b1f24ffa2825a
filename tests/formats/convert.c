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
#include "tests/support/word_corpus.h"
#include "data/internal.h"
#include "io/internal.h"
#include "models/internal.h"

static void convert(const char *in, const char *out, const wg_convert_options *options) {
    wg_convert(in, out, options, NULL);
    assert_no_error();
}

static wg_weights *open_weights(const char *path) {
    wg_weights *file = owned(wg_weights_open(path));
    assert_no_error();
    return file;
}

static wg_tensor *read_weight(wg_weights *file, const char *name) {
    return wg_weights_read(file, wg_weights_find(file, name));
}

/* The LLaMA's configuration in a file. */
static void llama_config_of(const char *path, wg_llama_config *config) {
    ck_assert_int_eq(
        wg_model_config_from_json(&wg_llama_type, wg__weights_config(open_weights(path)), config),
        0);
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

TEST(the_lists_of_tensors_are_those_of_the_modules) {
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

TEST(the_lists_of_encoders_with_decoders_are_those_of_the_modules) {
    check_lists(false);
    check_lists(true);
}

/* ---- Beside PyTorch ---- */

/* The model of a checkpoint, for evaluation without gradients. */
static wg_model load_model(const char *path) {
    wg_model model;
    wg_weights *file = open_weights(path);
    ck_assert_int_eq(wg_model_from_json(wg__weights_config(file), 5, &model), 0);
    owned(model.module);
    ck_assert_int_eq(wg_weights_get_module(file, model.module), 0);
    wg_module_train(model.module, false);
    wg_set_grad_enabled(false);
    return model;
}

static void assert_decoder(const char *path, const char *folder) {
    const wg_model model = load_model(path);
    wg_tensor *logits = logits_of_ids(&model, fixture_tensor("%s/ids", folder));
    assert_close(logits, wg_cast(fixture_tensor("%s/logits", folder), WG_F32), 1e-5, 2e-5);
    wg_set_grad_enabled(true);
}

static void assert_logits(const wg_model *model, const wg_model_inputs *inputs,
                          const char *folder) {
    assert_relative(wg_model_logits(model, wg_model_forward(model, inputs), NULL),
                    fixture_tensor("%s/logits", folder), 1e-5);
    wg_set_grad_enabled(true);
}

static void assert_t5(const char *path, const char *folder) {
    const wg_model model = load_model(path);
    wg_tensor *keep = fixture_tensor("%s/keep", folder);
    assert_logits(&model,
                  &(wg_model_inputs){
                      .ids = fixture_tensor("%s/read", folder),
                      .memory = wg_model_encode(&model, fixture_tensor("%s/ids", folder), keep),
                      .memory_keep = keep},
                  folder);
}

static void assert_glm(const char *path, const char *folder) {
    const wg_model model = load_model(path);
    assert_logits(&model,
                  &(wg_model_inputs){.ids = fixture_tensor("glm/ids"),
                                     .position_ids = fixture_tensor("glm/position_ids"),
                                     .block_position_ids = fixture_tensor("glm/block_position_ids"),
                                     .part_a = fixture_tensor("glm/part_a")},
                  folder);
}

/* From torch.save and safetensors; as a checkpoint, and through a folder of others. */
TEST(published_models_give_pytorchs_logits) {
    static const struct {
        const char *published, *folder;
        void (*check)(const char *path, const char *folder);
    } cases[] = {{"convert/gpt", "decoders/gpt", assert_decoder},
                 {"convert/t5_1_0", "t5/1_0", assert_t5},
                 {"convert/t5_1_1", "t5/1_1", assert_t5},
                 {"convert/glm", "glm", assert_glm}};
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        char folder[16];
        snprintf(folder, sizeof folder, "folder%zu", i);
        convert(fixture(cases[i].published), in_scratch("a.h5"), NULL);
        cases[i].check(in_scratch("a.h5"), cases[i].folder);
        convert(in_scratch("a.h5"), in_scratch(folder), NULL);
        convert(in_scratch(folder), in_scratch("b.h5"), NULL);
        cases[i].check(in_scratch("b.h5"), cases[i].folder);
    }
}

TEST(llama_in_shards_gives_pytorchs_logits_through_every_format) {
    const char *const steps[] = {"a.h5", "b.gguf", "c.h5", "d.bin", "e.h5", "folder", "f.h5"};
    convert(fixture("convert/llama"), in_scratch(steps[0]), NULL);
    for (size_t i = 1; i < WG_COUNT(steps); i++)
        convert(in_scratch(steps[i - 1]), in_scratch(steps[i]), NULL);
    static const char *const checked[] = {"a.h5", "b.gguf", "d.bin", "f.h5"};
    for (size_t i = 0; i < WG_COUNT(checked); i++)
        assert_decoder(in_scratch(checked[i]), "decoders/llama");
}

static wg_bert_for_pretraining *load_bert(const char *path) {
    wg_bert_config config;
    wg_weights *file = open_weights(path);
    ck_assert_int_eq(wg_model_config_from_json(&wg_bert_type, wg__weights_config(file), &config),
                     0);
    wg_bert_for_pretraining *model = wg__bert_for_pretraining_new(&config, 5);
    own(&model->module, OWN_MODULE);
    ck_assert_int_eq(wg_weights_get_module(file, &model->module), 0);
    wg_module_train(&model->module, false);
    wg_set_grad_enabled(false);
    return model;
}

static wg_tensor *sequence_of(wg_bert_for_pretraining *model) {
    wg_tensor *ids = fixture_tensor("bert/input_ids"),
              *types = fixture_tensor("bert/token_type_ids");
    wg_tensor *mask = fixture_tensor("bert/attention_mask");
    return wg__bert_forward(&model->bert->module,
                            &(wg_model_inputs){.ids = ids, .token_type_ids = types, .keep = mask});
}

TEST(bert_of_safetensors_gives_pytorchs_logits) {
    convert(fixture("convert/bert"), in_scratch("bert.h5"), NULL);
    wg_bert_for_pretraining *model = load_bert(in_scratch("bert.h5"));
    wg_tensor *sequence = sequence_of(model);
    assert_close(sequence, wg_cast(fixture_tensor("bert/sequence"), WG_F32), 1e-5, 1e-5);
    assert_close(wg_model_logits(&(wg_model){.type = &wg_bert_type, .module = &model->module},
                                 sequence, fixture_tensor("bert/masked_positions")),
                 wg_cast(fixture_tensor("bert/mlm_logits"), WG_F32), 1e-5, 1e-5);
    assert_close(wg_linear_forward(model->next_sentence,
                                   wg__bert_pool(&model->bert->module, sequence, NULL)),
                 wg_cast(fixture_tensor("bert/nsp_logits"), WG_F32), 1e-5, 1e-5);
    wg_set_grad_enabled(true);
}

static void keep_note(const char *message, void *context) {
    if (strstr(message, "begun anew"))
        snprintf(context, 1024, "%s", message);
}

TEST(a_bare_encoder_gets_heads_and_is_said_to) {
    char said[1024] = "";
    const wg_convert_options options = {.note = keep_note, .context = said};
    convert(fixture("convert/encoder"), in_scratch("encoder.h5"), &options);
    ck_assert_ptr_nonnull(strstr(said, "begun anew: bert.pooler.dense.weight"));
    wg_bert_for_pretraining *model = load_bert(in_scratch("encoder.h5"));
    assert_close(sequence_of(model), wg_cast(fixture_tensor("bert/sequence"), WG_F32), 1e-5, 1e-5);
    assert_close(model->predictions->norm->weight, wg_ones(WG_F32, 1, (int64_t[]){16}), 0, 0);
    const double deviation = wg_item(wg_std(model->predictions->dense->weight, WG_ALL, 0, false));
    ck_assert_double_gt(deviation, 0.01);
    ck_assert_double_lt(deviation, 0.03);
    wg_set_grad_enabled(true);
}

/* ---- Tokenizers in GGUF ---- */

/* Writes a checkpoint of a LLaMA with that tokenizer, which it frees. */
static void save_llama(const char *path, wg_tokenizer *tokenizer) {
    wg_llama_config config;
    wg_model_preset_config(&wg_llama_type, "llama-260k", &config);
    config.vocab_size = 300;
    config.bos_token_id = config.eos_token_id = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    wg_llama *model = wg__llama_new(&config, 1);
    own(&model->module, OWN_MODULE);
    wg_checkpoint *file = wg_checkpoint_create(path);
    wg_checkpoint_put_text(file, "/config",
                           owned(wg_model_config_to_json(&wg_llama_type, &config)));
    wg_checkpoint_put_text(file, "/tokenizer", json_of(owned(tokenizer)));
    wg_checkpoint_put_module(file, "/model", &model->module);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
}

static const char *tokenizer_of(const char *path) {
    const char *json = wg__weights_tokenizer(open_weights(path));
    return json ? json_of(owned(wg_tokenizer_from_json(json))) : NULL;
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

TEST(gguf_keeps_byte_level_bpe_that_llama_cpp_has) {
    static const char *const patterns[] = {
        NULL, "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
              "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
    for (int i = 0; i < 2; i++) {
        const wg_bpe_training training = {
            .vocabulary_size = 290, .options = {.pattern = patterns[i], .whole_words = i == 1}};
        ck_assert(
            !is_dropped(wg__bpe_train("the lower the newer the lowest newest", -1, &training)));
        ck_assert_str_eq(tokenizer_of(in_scratch("c.h5")), tokenizer_of(in_scratch("a.h5")));
    }
}

TEST(a_tokenizer_that_gguf_does_not_have_is_dropped_with_a_note) {
    ck_assert(is_dropped(wg_byte_new()));
    ck_assert_ptr_null(tokenizer_of(in_scratch("c.h5")));
    const wg_bpe_training training = {.vocabulary_size = 290, .options = {.pattern = "\\S+|\\s+"}};
    ck_assert(is_dropped(wg__bpe_train("the lower the newer the lowest newest", -1, &training)));
}

/* ---- Several files, and several ends ---- */

static bool is_there(const char *path) {
    struct stat status;
    return stat(path, &status) == 0;
}

TEST(a_model_goes_through_shards_and_back_bit_for_bit) {
    const wg_convert_options shards = {.shard_bytes = 4000};
    convert(fixture("convert/llama"), in_scratch("a.h5"), NULL);
    convert(in_scratch("a.h5"), in_scratch("shards"), &shards);
    ck_assert(!is_there(in_scratch("shards/model.safetensors")));
    ck_assert(is_there(in_scratch("shards/model.safetensors.index.json")));
    ck_assert(is_there(in_scratch("shards/model-00001-of-00007.safetensors")));
    ck_assert(is_there(in_scratch("shards/config.json")));
    convert(in_scratch("shards"), in_scratch("b.h5"), NULL);
    assert_decoder(in_scratch("b.h5"), "decoders/llama");
    wg_weights *a = open_weights(in_scratch("a.h5")), *b = open_weights(in_scratch("b.h5"));
    ck_assert_int_eq(wg_weights_count(a), wg_weights_count(b));
    for (int64_t i = 0; i < wg_weights_count(a); i++)
        assert_close(read_weight(b, wg_weights_name(a, i)), wg_weights_read(a, i), 0, 0);
    /* whole again, because it is read first */
    convert(in_scratch("a.h5"), in_scratch("shards"), NULL);
    convert(in_scratch("shards"), in_scratch("c.h5"), NULL);
    assert_decoder(in_scratch("c.h5"), "decoders/llama");
}

static void join_notes(const char *message, void *context) {
    strncat(context, message, 255);
}

TEST(several_tokens_that_end_a_text_are_noted) {
    char notes[1024] = "", several[2048];
    wg_llama_config config;
    convert(fixture("convert/llama"), in_scratch("a.h5"), NULL);
    llama_config_of(in_scratch("a.h5"), &config);
    const char *json = owned(wg_model_config_to_json(&wg_llama_type, &config)),
               *key = strstr(json, "\"eos_token_id\": "), *rest = key + strcspn(key, ",\n}");
    snprintf(several, sizeof several, "%.*s\"eos_token_id\": [3, 4]%s", (int)(key - json), json,
             rest);
    const wg_convert_options options = {
        .config = write_text("several.json", several), .note = join_notes, .context = notes};
    convert(fixture("convert/llama"), in_scratch("b.h5"), &options);
    ck_assert_ptr_nonnull(strstr(notes, "several eos_token_id; the first one is kept"));
    llama_config_of(in_scratch("b.h5"), &config);
    ck_assert_int_eq(config.eos_token_id, 3);
}

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

TEST(an_adapter_is_added_at_its_scale_or_refused) {
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
    static const char name[] = "model.layers.0.self_attn.q_proj.weight";
    wg_tensor *before = read_weight(open_weights(fixture("convert/llama")), name);
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const wg_convert_options options = {.adapter = write_adapter(cases[i].keys)};
        const int status =
            wg_convert(fixture("convert/llama"), in_scratch("sum.h5"), &options, NULL);
        ck_assert_int_eq(status, cases[i].message ? -1 : 0);
        if (cases[i].message) {
            assert_error(WG_ERROR_FORMAT, cases[i].message);
            continue;
        }
        wg_tensor *after = read_weight(open_weights(in_scratch("sum.h5")), name);
        wg_tensor *wanted =
            wg_add(before, wg_mul_scalar(wg_matmul(wg_eye(WG_F32, 16, 2), wg_eye(WG_F32, 2, 16)),
                                         cases[i].added));
        assert_close(after, wanted, 1e-6, 1e-6);
    }
}

/* ---- What is refused ---- */

static void refuse(const char *in, const char *out, const wg_convert_options *options,
                   wg_error_code code, const char *message) {
    struct stat status;
    assert_fails(wg_convert(in, out, options, NULL), code, message);
    ck_assert_int_lt(stat(out, &status), 0);
}

TEST(what_cannot_be_converted_is_refused_with_the_reason) {
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

TEST(a_model_with_bigrams_is_written_in_no_format_of_others) {
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

TEST(a_model_that_is_not_here_or_not_of_its_configuration_is_refused) {
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

/* ---- Without memory ---- */

typedef struct conversion {
    const char *in, *out;
    wg_convert_options options;
} conversion;

static bool convert_once(const void *context) {
    const conversion *c = context;
    return wg_convert(c->in, c->out, &c->options, NULL) == 0;
}

TEST(a_conversion_without_memory_says_so_and_leaks_nothing) {
    wg_llama_config config;
    convert(fixture("convert/llama"), in_scratch("llama.bin"), NULL);
    llama_config_of(in_scratch("llama.bin"), &config);
    const char *path =
        write_text("config.json", owned(wg_model_config_to_json(&wg_llama_type, &config)));
    const conversion conversions[] = {
        {in_scratch("llama.bin"), in_scratch("a.gguf"), {0}},
        {in_scratch("a.gguf"), in_scratch("b.safetensors"), {0}},
        {in_scratch("b.safetensors"), in_scratch("c.bin"), {.config = path}},
        {fixture("convert/encoder"), in_scratch("folder"), {0}},
        {in_scratch("llama.bin"), in_scratch("shards"), {.shard_bytes = 8000}},
    };
    for (size_t i = 0; i < WG_COUNT(conversions); i++)
        ck_assert_int_gt(fail_every_allocation(convert_once, &conversions[i]), 20);
}

/* ---- A real model ---- */

/* 260,032 numbers and the header; the tables behind them are never read. */
enum { STORIES_BYTES = 28 + 4 * 260032 };

TEST(stories260k_comes_back_bit_for_bit) {
    if (!real_data("stories260K/stories260K.bin"))
        return;
    char tokenizer[512];
    snprintf(tokenizer, sizeof tokenizer, "%s", real_data("stories260K/tok512.bin"));
    const wg_convert_options with = {.tokenizer = tokenizer};
    convert(real_data("stories260K/stories260K.bin"), in_scratch("a.h5"), &with);
    convert(in_scratch("a.h5"), in_scratch("b.gguf"), NULL);
    convert(in_scratch("b.gguf"), in_scratch("c.h5"), NULL);
    convert(in_scratch("c.h5"), in_scratch("d.bin"), NULL);
    assert_same_files(in_scratch("d.bin"), real_data("stories260K/stories260K.bin"), STORIES_BYTES);
    ck_assert_str_eq(tokenizer_of(in_scratch("c.h5")), tokenizer_of(in_scratch("a.h5")));
}

/* Every number is within half a step of its block, scale / 2, and the scale's rounding. */
TEST(quantised_numbers_are_near_those_they_stand_for) {
    if (!real_data("stories260K/stories260K.bin"))
        return;
    convert(real_data("stories260K/stories260K.bin"), in_scratch("q.gguf"),
            &(wg_convert_options){.type = WG_WEIGHTS_Q8_0});
    const char *name = "model.layers.2.self_attn.q_proj.weight";
    wg_tensor *x = read_weight(open_weights(real_data("stories260K/stories260K.bin")), name),
              *y = read_weight(open_weights(in_scratch("q.gguf")), name);
    assert_no_error();
    const double largest = wg_item(wg_max(wg_abs(x), WG_ALL, false)),
                 error = wg_item(wg_max(wg_abs(wg_sub(x, y)), WG_ALL, false));
    ck_assert_double_gt(error, 0);
    ck_assert_double_lt(error, largest / 127 / 2 * 1.1);
}
