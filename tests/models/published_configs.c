/* Configurations: published files, older and newer ones, what is refused, numbers of parameters. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/internal.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"

/* What a config.json means, as an object for the caller to free; NULL with an error. */
static json_t *meaning_of(const char *name, const char *json) {
    const wg_model_type *type = wg_model_type_find(name);
    void *config = malloc(type->settings.size);
    char *text = wg_model_config_from_json(type, json, config) == 0
                     ? wg_model_config_to_json(type, config)
                     : NULL;
    json_t *meaning = text ? json_loads(text, 0, NULL) : NULL;
    wg_text_free(text);
    free(config);
    return meaning;
}

/* The same of an object, which is freed. */
static json_t *meaning_of_object(const char *name, json_t *object) {
    char *text = json_dumps(object, 0);
    json_t *meaning = meaning_of(name, text);
    free(text);
    json_decref(object);
    return meaning;
}

/* The smallest configuration of a type with other settings. */
static json_t *smallest_with(const char *name, const char *settings) {
    json_t *object = json_loads(wg_model_type_find(name)->smallest, 0, NULL);
    json_t *changes = settings_object(settings);
    json_object_update(object, changes);
    json_decref(changes);
    return object;
}

/* Fails unless all of these settings are in the object. */
static void assert_settings(const json_t *found, const char *settings) {
    json_t *wanted = settings_object(settings), *value;
    const char *key;
    json_object_foreach(wanted, key, value) {
        const json_t *other = json_object_get(found, key);
        ck_assert_msg(json_is_number(value) ? json_number_value(value) == json_number_value(other)
                                            : json_equal((json_t *)other, value),
                      "%s is not that of %s", key, settings);
    }
    json_decref(wanted);
}

/* ---- Published files ---- */

#define OF_ROBERTA                                                                                 \
    "'attention_probs_dropout_prob': 0.1, 'bos_token_id': 0, 'eos_token_id': 2, 'hidden_act': "    \
    "'gelu', 'hidden_dropout_prob': 0.1, 'hidden_size': 768, 'initializer_range': 0.02, "          \
    "'intermediate_size': 3072, 'layer_norm_eps': 1e-05, 'max_position_embeddings': 514, "         \
    "'num_attention_heads': 12, 'num_hidden_layers': 12, 'pad_token_id': 1, 'type_vocab_size': "   \
    "1, "

/* Each is read as the preset, or as these settings. */
static const struct {
    const char *type, *preset, *settings, *json;
} files[] = {
    {"bert", "bert-base", "",
     "'architectures': ['BertForMaskedLM'], 'attention_probs_dropout_prob': 0.1, "
     "'gradient_checkpointing': false, 'hidden_act': 'gelu', 'hidden_dropout_prob': 0.1, "
     "'hidden_size': 768, 'initializer_range': 0.02, 'intermediate_size': 3072, "
     "'layer_norm_eps': 1e-12, 'max_position_embeddings': 512, 'model_type': 'bert', "
     "'num_attention_heads': 12, 'num_hidden_layers': 12, 'pad_token_id': 0, "
     "'position_embedding_type': 'absolute', 'transformers_version': '4.6.0', 'type_vocab_size': "
     "2, 'use_cache': true, 'vocab_size': 30522"},
    {"gpt2", NULL, "'n_inner': 3072",
     "'activation_function': 'gelu_new', 'architectures': ['GPT2LMHeadModel'], 'attn_pdrop': "
     "0.1, 'bos_token_id': 50256, 'embd_pdrop': 0.1, 'eos_token_id': 50256, 'initializer_range': "
     "0.02, 'layer_norm_epsilon': 1e-05, 'model_type': 'gpt2', 'n_ctx': 1024, 'n_embd': 768, "
     "'n_head': 12, 'n_layer': 12, 'n_positions': 1024, 'resid_pdrop': 0.1, 'summary_use_proj': "
     "true, 'vocab_size': 50257"},
    {"llama", NULL, "'hidden_size': 4096",
     "'architectures': ['LlamaForCausalLM'], 'bos_token_id': 1, 'eos_token_id': 2, "
     "'hidden_act': 'silu', 'hidden_size': 4096, 'initializer_range': 0.02, 'intermediate_size': "
     "11008, 'max_position_embeddings': 4096, 'model_type': 'llama', 'num_attention_heads': 32, "
     "'num_hidden_layers': 32, 'num_key_value_heads': 32, 'pretraining_tp': 1, 'rms_norm_eps': "
     "1e-05, 'rope_scaling': null, 'tie_word_embeddings': false, 'torch_dtype': 'float16', "
     "'use_cache': true, 'vocab_size': 32000"},
    {"glm", NULL, "'num_layers': 24, 'vocab_size': 30592",
     "'architectures': ['GLMModel'], 'attention_dropout_prob': 0.1, 'attention_scale': 1.0, "
     "'block_position_encoding': true, 'checkpoint_activations': false, 'checkpoint_num_layers': "
     "1, 'embedding_dropout_prob': 0.1, 'hidden_size': 1024, 'initializer_range': 0.02, "
     "'max_sequence_length': 512, 'model_type': 'glm', 'num_attention_heads': 16, 'num_layers': "
     "24, 'output_dropout_prob': 0.1, 'output_predict': true, 'parallel_output': true, "
     "'pool_token': 'cls', 'relative_encoding': false, 'spell_func': 'lstm', 'spell_length': "
     "null, 'torch_dtype': 'float32', 'vocab_size': 30592"},
    {"modernbert", "modernbert-base", "'classifier_pooling': 'mean'",
     "'architectures': ['ModernBertForMaskedLM'], 'attention_bias': false, 'attention_dropout': "
     "0.0, 'bos_token_id': 50281, 'classifier_activation': 'gelu', 'classifier_bias': false, "
     "'classifier_dropout': 0.0, 'classifier_pooling': 'mean', 'cls_token_id': 50281, "
     "'decoder_bias': true, 'deterministic_flash_attn': false, 'embedding_dropout': 0.0, "
     "'eos_token_id': 50282, 'global_attn_every_n_layers': 3, 'global_rope_theta': 160000.0, "
     "'gradient_checkpointing': false, 'hidden_activation': 'gelu', 'hidden_size': 768, "
     "'initializer_cutoff_factor': 2.0, 'initializer_range': 0.02, 'intermediate_size': 1152, "
     "'layer_norm_eps': 1e-05, 'local_attention': 128, 'local_rope_theta': 10000.0, "
     "'max_position_embeddings': 8192, 'mlp_bias': false, 'mlp_dropout': 0.0, 'model_type': "
     "'modernbert', 'norm_bias': false, 'norm_eps': 1e-05, 'num_attention_heads': 12, "
     "'num_hidden_layers': 22, 'pad_token_id': 50283, 'position_embedding_type': 'absolute', "
     "'reference_compile': null, 'repad_logits_with_grad': false, 'sep_token_id': 50282, "
     "'sparse_pred_ignore_index': -100, 'sparse_prediction': false, 'tie_word_embeddings': true, "
     "'torch_dtype': 'float32', 'transformers_version': '4.47.0', 'vocab_size': 50368"},
    {"roberta", "roberta-base", "",
     OF_ROBERTA
     "'model_type': 'roberta', 'architectures': ['RobertaForMaskedLM'], 'vocab_size': 50265"},
    {"roberta", NULL, "'vocab_size': 250002",
     OF_ROBERTA "'model_type': 'xlm-roberta', 'output_past': true, 'architectures': "
                "['XLMRobertaForMaskedLM'], 'vocab_size': 250002"},
    {"transformer", NULL,
     "'vocab_size': 58101, 'decoder_vocab_size': 58101, 'activation_function': 'silu', "
     "'decoder_start_token_id': 58100, 'max_position_embeddings': 512, "
     "'share_encoder_decoder_embeddings': true, 'normalize_before': false",
     "'_num_labels': 3, 'activation_dropout': 0.0, 'activation_function': 'swish', "
     "'add_bias_logits': false, 'add_final_layer_norm': false, 'architectures': "
     "['MarianMTModel'], 'attention_dropout': 0.0, 'bad_words_ids': [[58100]], 'bos_token_id': "
     "0, 'classif_dropout': 0.0, 'd_model': 512, 'decoder_attention_heads': 8, "
     "'decoder_ffn_dim': 2048, 'decoder_layerdrop': 0.0, 'decoder_layers': 6, "
     "'decoder_start_token_id': 58100, 'dropout': 0.1, 'encoder_attention_heads': 8, "
     "'encoder_ffn_dim': 2048, 'encoder_layerdrop': 0.0, 'encoder_layers': 6, 'eos_token_id': 0, "
     "'id2label': {'0': 'LABEL_0'}, 'init_std': 0.02, 'is_encoder_decoder': true, 'label2id': "
     "{'LABEL_0': 0}, 'max_length': 512, 'max_position_embeddings': 512, 'model_type': 'marian', "
     "'normalize_before': false, 'normalize_embedding': false, 'num_beams': 6, "
     "'num_hidden_layers': 6, 'pad_token_id': 58100, 'scale_embedding': true, "
     "'static_position_embeddings': true, 'vocab_size': 58101"},
};

START_TEST(published_files_are_read) {
    for (size_t i = 0; i < WG_COUNT(files); i++) {
        json_t *found = meaning_of_object(files[i].type, settings_object(files[i].json));
        assert_no_error();
        assert_settings(found, files[i].settings);
        if (files[i].preset) {
            const wg_model_type *type = wg_model_type_find(files[i].type);
            char *text =
                wg_model_config_to_json(type, wg__model_preset_find(type, files[i].preset)->config);
            json_t *wanted = json_loads(text, 0, NULL),
                   *changes = settings_object(files[i].settings);
            json_object_update(wanted, changes);
            ck_assert_msg(json_equal(found, wanted), "%s is not %s", files[i].type, text);
            wg_text_free(text);
            json_decref(wanted);
            json_decref(changes);
        }
        json_decref(found);
    }
    ck_assert(wg__model_type_reads(&wg_roberta_type, "camembert"));
    ck_assert(!wg__model_type_reads(&wg_roberta_type, "bert"));
}
END_TEST

/* ---- Before and since version 5 of transformers ---- */

#define OF_BERT                                                                                    \
    "'hidden_size': 8, 'num_hidden_layers': 3, 'num_attention_heads': 2, "                         \
    "'intermediate_size': 16, 'vocab_size': 60000, "
#define OF_5 "'dtype': 'float32', 'transformers_version': '5.2.0', 'use_cache': true, "

/* The second text is that of version 5. Both lack the braces and the keys in `sizes`. */
static const struct {
    const char *type, *sizes, *older, *newer;
} published[] = {
    {"bert", OF_BERT,
     "'torch_dtype': 'float32', 'transformers_version': '4.40.0', "
     "'position_embedding_type': 'absolute', 'model_type': 'bert'",
     OF_5 "'add_cross_attention': false, 'is_decoder': false, 'bos_token_id': null, "
          "'eos_token_id': null, 'tie_word_embeddings': true, 'classifier_dropout': null, "
          "'architectures': ['BertForPreTraining'], 'model_type': 'bert'"},
    {"roberta", OF_BERT,
     "'torch_dtype': 'float32', 'bos_token_id': 0, 'eos_token_id': 2, 'pad_token_id': 1, "
     "'model_type': 'roberta'",
     OF_5 "'add_cross_attention': false, 'is_decoder': false, 'bos_token_id': 0, "
          "'eos_token_id': 2, 'pad_token_id': 1, 'tie_word_embeddings': true, "
          "'classifier_dropout': null, 'model_type': 'roberta'"},
    {"modernbert", OF_BERT,
     "'torch_dtype': 'float32', 'global_rope_theta': 80000.0, 'local_rope_theta': 5000.0, "
     "'global_attn_every_n_layers': 2, 'model_type': 'modernbert'",
     OF_5 "'layer_types': ['full_attention', 'sliding_attention', 'full_attention'], "
          "'rope_parameters': {'full_attention': {'rope_theta': 80000.0, 'rope_type': "
          "'default'}, 'sliding_attention': {'rope_theta': 5000.0, 'rope_type': "
          "'default'}}, 'tie_word_embeddings': true, 'model_type': 'modernbert'"},
    {"gpt2", "'n_embd': 8, 'n_layer': 1, 'n_head': 2, 'vocab_size': 60000, ",
     "'torch_dtype': 'float32', 'model_type': 'gpt2'",
     OF_5 "'add_cross_attention': false, 'pad_token_id': null, 'n_inner': null, "
          "'reorder_and_upcast_attn': false, 'summary_activation': null, "
          "'tie_word_embeddings': true, 'model_type': 'gpt2'"},
    {"t5",
     "'d_model': 8, 'd_kv': 4, 'd_ff': 8, 'num_layers': 1, 'num_heads': 2, "
     "'vocab_size': 60000, ",
     "'torch_dtype': 'float32', 'feed_forward_proj': 'gated-gelu', "
     "'tie_word_embeddings': false, 'is_encoder_decoder': true, 'model_type': 't5'",
     OF_5 "'feed_forward_proj': 'gated-gelu', 'scale_decoder_outputs': false, "
          "'tie_word_embeddings': true, 'is_encoder_decoder': true, 'is_decoder': false, "
          "'classifier_dropout': 0.0, 'dense_act_fn': 'gelu_new', 'is_gated_act': true, "
          "'model_type': 't5'"},
    {"llama",
     "'hidden_size': 8, 'num_hidden_layers': 1, 'num_attention_heads': 2, "
     "'intermediate_size': 16, 'vocab_size': 272, ",
     "'torch_dtype': 'float32', 'rope_theta': 500000.0, 'rope_scaling': null, "
     "'model_type': 'llama'",
     OF_5 "'rope_parameters': {'rope_theta': 500000.0, 'rope_type': 'default'}, "
          "'head_dim': 4, 'pad_token_id': null, 'pretraining_tp': 1, "
          "'model_type': 'llama'"},
    {"llama",
     "'hidden_size': 8, 'num_hidden_layers': 1, 'num_attention_heads': 2, "
     "'intermediate_size': 16, 'vocab_size': 272, ",
     "'torch_dtype': 'float32', 'rope_theta': 500000.0, 'rope_scaling': {'factor': 8.0, "
     "'low_freq_factor': 1.0, 'high_freq_factor': 4.0, 'original_max_position_embeddings': "
     "16, 'rope_type': 'llama3'}, 'model_type': 'llama'",
     OF_5 "'rope_parameters': {'rope_theta': 500000.0, 'factor': 8.0, "
          "'low_freq_factor': 1.0, 'high_freq_factor': 4.0, "
          "'original_max_position_embeddings': 16, 'rope_type': 'llama3'}, "
          "'model_type': 'llama'"},
};

static json_t *config_of(const char *sizes, const char *rest) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s", sizes, rest);
    return settings_object(text);
}

START_TEST(a_configuration_of_transformers_5_is_that_of_version_4) {
    for (size_t i = 0; i < WG_COUNT(published); i++) {
        const char *type = published[i].type, *sizes = published[i].sizes;
        json_t *older = meaning_of_object(type, config_of(sizes, published[i].older));
        json_t *newer = meaning_of_object(type, config_of(sizes, published[i].newer));
        assert_no_error();
        ck_assert_msg(json_equal(older, newer), "%s, row %d", type, (int)i);
        json_decref(older);
        json_decref(newer);
    }
}
END_TEST

/* Of the last one, LLaMA 3.1's: the angles of position 1 are the inverse frequencies. */
START_TEST(the_frequencies_are_those_of_rope_parameters) {
    const size_t last = WG_COUNT(published) - 1;
    const char *const rests[] = {published[last].older, published[last].newer};
    static const double wanted[] = {0.5760564011, 0.000176776695};
    for (int i = 0; i < 2; i++) {
        wg_model model;
        json_t *config = config_of(published[last].sizes, rests[i]);
        char *json = json_dumps(config, 0);
        json_decref(config);
        ck_assert_int_eq(wg_model_from_json(json, 1, &model), 0);
        free(json);
        for (int64_t pair = 0; pair < 2; pair++) {
            const double sine = wg_at(((wg_llama *)model.module)->sin, (int64_t[]){1, pair});
            ck_assert_double_eq_tol(asin(sine), wanted[pair], 3e-7 * wanted[pair]);
        }
        wg_model_free(&model);
    }
}
END_TEST

/* ---- Single keys ---- */

START_TEST(keys_of_other_forms_are_read_and_written) {
    static const struct {
        const char *type, *settings, *meaning;
    } cases[] = {
        /* as in the instruction models of LLaMA 3: of several ends the first is kept */
        {"llama", "'vocab_size': 300, 'eos_token_id': [101, 108, 109]", "'eos_token_id': 101"},
        {"llama", "'vocab_size': 300, 'eos_token_id': 7", "'eos_token_id': 7"},
        {"llama", "'bos_token_id': null", "'bos_token_id': null, 'eos_token_id': 2"},
        {"llama", "'rope_scaling': {'rope_type': 'default'}", ""},
        {"llama", "'rope_scaling': {'type': 'linear', 'factor': 2}",
         "'rope_scaling': {'rope_type': 'linear', 'factor': 2.0}"},
        /* of the published LLaMA 3.1 */
        {"llama",
         "'rope_scaling': {'factor': 8.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0, "
         "'original_max_position_embeddings': 8192, 'rope_type': 'llama3'}",
         "'rope_scaling': {'rope_type': 'llama3', 'factor': 8.0, 'low_freq_factor': 1.0, "
         "'high_freq_factor': 4.0, 'original_max_position_embeddings': 8192}"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        json_t *once =
            meaning_of_object(cases[i].type, smallest_with(cases[i].type, cases[i].settings));
        assert_no_error();
        assert_settings(once, cases[i].meaning);
        ck_assert(cases[i].meaning[0] || !json_object_get(once, "rope_scaling"));
        json_t *again = meaning_of_object(cases[i].type, json_incref(once));
        ck_assert(json_equal(once, again));
        json_decref(once);
        json_decref(again);
    }
}
END_TEST

#define FORMAT WG_ERROR_FORMAT
#define ARGUMENT WG_ERROR_ARGUMENT

START_TEST(what_cannot_be_is_refused_by_its_key) {
    static const struct {
        const char *type;
        wg_error_code code;
        const char *settings, *part;
    } cases[] = {
        {"bert", FORMAT, "'is_decoder': true", "\"is_decoder\" is true; wanted false"},
        {"roberta", FORMAT, "'is_decoder': true", "\"is_decoder\" is true"},
        {"bert", FORMAT, "'add_cross_attention': true", "\"add_cross_attention\" is true"},
        {"gpt2", FORMAT, "'add_cross_attention': true", "\"add_cross_attention\" is true"},
        {"bert", FORMAT, "'is_encoder_decoder': true",
         "\"is_encoder_decoder\" is true; wanted false"},
        {"t5", FORMAT, "'is_encoder_decoder': false",
         "\"is_encoder_decoder\" is false; wanted true"},
        {"t5", FORMAT, "'is_decoder': true", "\"is_decoder\" is true"},
        {"t5", FORMAT, "'tie_encoder_decoder': true", "\"tie_encoder_decoder\" is true"},
        {"t5", FORMAT, "'tie_word_embeddings': false, 'scale_decoder_outputs': true",
         "scale_decoder_outputs is true and tie_word_embeddings false"},
        {"bert", FORMAT, "'tie_word_embeddings': false", "\"tie_word_embeddings\" is false"},
        {"bert", FORMAT, "'quantization_config': {'bits': 4}",
         "unknown key \"quantization_config\""},
        {"llama", FORMAT, "'rope_parameters': {'rope_type': 'yarn', 'factor': 2.0}",
         "\"yarn\"; default, linear and llama3 are known"},
        {"llama", FORMAT, "'rope_parameters': {'partial_rotary_factor': 0.5}",
         "rope_parameters: unknown key \"partial_rotary_factor\""},
        {"llama", FORMAT, "'rope_theta': 10000.0, 'rope_parameters': {'rope_theta': 500000.0}",
         "rope_theta is 10000, and within rope_parameters 500000"},
        {"llama", FORMAT,
         "'rope_scaling': {'type': 'linear', 'factor': 2.0}, 'rope_parameters': "
         "{'rope_theta': 10000.0}",
         "both rope_scaling and rope_parameters"},
        {"modernbert", FORMAT,
         "'rope_parameters': {'full_attention': {'rope_type': 'linear', 'factor': 2.0}}",
         "rope_type of full_attention is \"linear\""},
        {"modernbert", FORMAT,
         "'global_rope_theta': 10.0, 'rope_parameters': {'full_attention': {'rope_theta': "
         "20.0}}",
         "global_rope_theta is 10, and rope_theta of full_attention 20"},
        {"modernbert", FORMAT, "'rope_parameters': {'rope_theta': 20.0}",
         "rope_parameters: unknown key \"rope_theta\""},
        {"modernbert", FORMAT,
         "'num_hidden_layers': 3, 'global_attn_every_n_layers': 1, "
         "'layer_types': ['full_attention', 'full_attention', "
         "'sliding_attention']",
         "layer_types[2] is \"sliding_attention\"; wanted \"full_attention\""},
        {"modernbert", FORMAT,
         "'num_hidden_layers': 3, 'layer_types': ['full_attention', 'sliding_attention', "
         "'full_attention'], "
         "'global_attn_every_n_layers': 3",
         "layer_types[2] is \"full_attention\"; wanted \"sliding_attention\""},
        {"modernbert", FORMAT, "'num_hidden_layers': 3, 'layer_types': ['full_attention']",
         "\"layer_types\" is an array"},
        {"bert", FORMAT, "'hiden_act': 'relu'", "hiden_act"},
        {"bert", ARGUMENT, "'hidden_act': 'gulp'", "gulp"},
        {"bert", FORMAT, "'position_embedding_type': 'relative_key'", "relative_key"},
        {"bert", ARGUMENT, "'num_attention_heads': 5", "num_attention_heads 5"},
        {"bert", ARGUMENT, "'hidden_dropout_prob': 1", "hidden_dropout_prob is 1"},
        {"bert", ARGUMENT, "'pad_token_id': 9", "pad_token_id is 9"},
        {"roberta", ARGUMENT, "'pad_token_id': 3, 'max_position_embeddings': 4",
         "max_position_embeddings 4 leaves no row"},
        {"modernbert", FORMAT, "'rope_scaling': {'factor': 2}", "rope_scaling"},
        {"modernbert", FORMAT, "'tie_word_embeddings': false", "tie_word_embeddings"},
        {"modernbert", ARGUMENT, "'hidden_size': 6", "heads of width 3"},
        {"modernbert", ARGUMENT, "'classifier_pooling': 'max'", "max"},
        {"modernbert", ARGUMENT, "'pad_token_id': 50283", "pad_token_id is 50283"},
        {"glm", ARGUMENT, "'num_attention_heads': 3", "num_attention_heads 3 does not divide"},
        {"glm", ARGUMENT, "'output_dropout_prob': 1", "output_dropout_prob is 1"},
        {"glm", FORMAT, "'relative_encoding': true", "\"relative_encoding\" is true"},
        {"gpt2", ARGUMENT, "'n_head': 3", "n_head 3 does not divide n_embd 4"},
        {"llama", ARGUMENT, "'num_key_value_heads': 3",
         "num_key_value_heads 3 does not divide num_attention_heads 4"},
        {"llama", FORMAT, "'head_dim': 0", "head_dim 0"},
        {"llama", FORMAT, "'head_dim': 4611686018427387904", "head_dim"},
        {"llama", FORMAT, "'eos_token_id': []", "\"eos_token_id\" is an array"},
        {"llama", FORMAT, "'eos_token_id': ['7']", "a list that begins with one"},
        {"llama", ARGUMENT, "'eos_token_id': [300]", "eos_token_id"},
        {"llama", FORMAT, "'rope_scaling': 4", "\"rope_scaling\" is 4; wanted an object"},
        {"llama", FORMAT, "'rope_scaling': {'rope_type': 'yarn', 'factor': 4.0}", "\"yarn\""},
        {"llama", FORMAT, "'rope_scaling': {'rope_type': 'llama3', 'factor': 4.0}",
         "rope_scaling has no \"low_freq_factor\", \"high_freq_factor\""},
        {"llama", FORMAT, "'rope_scaling': {'type': 'linear', 'factor': 2, 'beta_fast': 32}",
         "unknown key \"beta_fast\""},
        {"llama", ARGUMENT, "'rope_scaling': {'type': 'linear', 'factor': -1}",
         "rope_scaling.factor is -1"},
        {"llama", ARGUMENT, "'rope_scaling': {'rope_type': 'linear', 'factor': 0}",
         "rope_scaling.factor is 0"},
        {"llama", ARGUMENT,
         "'rope_scaling': {'rope_type': 'llama3', 'factor': 8, 'low_freq_factor': 1, "
         "'high_freq_factor': 4, 'original_max_position_embeddings': 0}",
         "original_max_position_embeddings is 0"},
        {"llama", ARGUMENT,
         "'rope_scaling': {'rope_type': 'llama3', 'factor': 8, 'low_freq_factor': 0, "
         "'high_freq_factor': 4, 'original_max_position_embeddings': 16}",
         "low_freq_factor"},
        {"transformer", ARGUMENT, "'decoder_attention_heads': 3",
         "decoder_attention_heads 3 does not divide d_model 4"},
        {"transformer", FORMAT, "'normalize_embedding': true", "\"normalize_embedding\" is true"},
        {"transformer", FORMAT, "'normalize_before': true, 'add_final_layer_norm': false",
         "add_final_layer_norm is false; wanted true"},
        {"transformer", FORMAT, "'layers': 3", "layers"},
        {"transformer", ARGUMENT, "'decoder_vocab_size': 100",
         "decoder_vocab_size is 100; it must be vocab_size"},
        {"transformer", ARGUMENT,
         "'share_encoder_decoder_embeddings': false, 'decoder_vocab_size': 99, 'eos_token_id': 100",
         "eos_token_id is 100; it must be a token of the target's"},
        {"transformer", ARGUMENT, "'label_smoothing': 1", "label_smoothing is 1"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const char *settings = cases[i].settings;
        json_t *config = smallest_with(cases[i].type, settings);
        ck_assert_msg(!meaning_of_object(cases[i].type, config), "%s is passed over", settings);
        assert_error(cases[i].code, cases[i].part);
    }
    wg_t5_config t5;
    wg_model_preset_config(&wg_t5_type, "t5-small", &t5);
    t5.relative_attention_num_buckets = 6;
    assert_fails(wg__t5_new(&t5, 1), WG_ERROR_ARGUMENT, "6 buckets up to distance 128");
    assert_fails(meaning_of("bert", "{"), WG_ERROR_FORMAT, "line 1");
    assert_fails(meaning_of("bert", "[]"), WG_ERROR_FORMAT, "object");
}
END_TEST

/* JSON that is cut short is refused, unless only blanks are cut off. */
START_TEST(a_configuration_that_is_cut_short_is_refused_wherever_it_is_cut) {
    static const char *const names[] = {"bert",    "glm",    "gpt",    "llama",  "modernbert",
                                        "roberta", "scaled", "t5_1_0", "t5_1_1", "transformer"};
    for (size_t i = 0; i < WG_COUNT(names); i++) {
        char path[1024], json[1024];
        snprintf(path, sizeof path, "%s/../fuzz/seeds/config/%s", fixture(""), names[i]);
        FILE *stream = fopen(path, "rb");
        ck_assert_ptr_nonnull(stream);
        size_t length = fread(json, 1, sizeof json - 1, stream);
        fclose(stream);
        while (length && json[length - 1] != '}')
            length--;
        json[length] = '\0';
        wg_model model;
        wg_set_meta_init(true);
        ck_assert_int_eq(wg_model_from_json(json, 0, &model), 0);
        wg_model_free(&model);
        while (length > 0) {
            json[--length] = '\0';
            assert_fails(wg_model_from_json(json, 0, &model), WG_ERROR_FORMAT, "config.json");
        }
    }
}
END_TEST

/* ---- Numbers of parameters ---- */

/* As published; those of BERT with both heads. The paper says 65 million of the Transformer. */
START_TEST(presets_have_their_numbers_of_parameters) {
    static const struct {
        const char *name;
        int64_t parameters, encoder; /* of the encoder alone; 0: not counted */
    } presets[] = {{"bert-tiny", 4433468, 4385920},
                   {"bert-mini", 11267900, 11170560},
                   {"bert-small", 29058876, 28763648},
                   {"bert-base", 110106428, 109482240},
                   {"roberta-base", 124697433, 0},
                   {"modernbert-3m", 12414784, 0},
                   {"modernbert-3m-bigrams", 12414784 + 65536 * 192, 0},
                   {"modernbert-mini", 18125504, 0},
                   {"modernbert-small", 34589632, 0},
                   {"modernbert-base", 149655232, 0},
                   {"gpt2-124m", 124439808, 0},
                   {"llama-260k", 260032, 0},
                   {"glm-base", 109338624, 0},
                   {"glm-large", 334688256, 0},
                   {"transformer-base", 63082496, 0}};
    wg_set_meta_init(true);
    for (size_t i = 0; i < WG_COUNT(presets); i++) {
        wg_model model = preset_model(presets[i].name, "", 1);
        const int64_t count = wg_module_parameter_count(model.module);
        ck_assert_msg(count == presets[i].parameters, "%s has %lld", presets[i].name,
                      (long long)count);
        if (presets[i].encoder)
            ck_assert_int_eq(wg_module_parameter_count(wg__encoder_of(model.module)),
                             presets[i].encoder);
        wg_model_free(&model);
    }
    wg_set_meta_init(false);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        published_files_are_read,
        a_configuration_of_transformers_5_is_that_of_version_4,
        the_frequencies_are_those_of_rope_parameters,
        keys_of_other_forms_are_read_and_written,
        what_cannot_be_is_refused_by_its_key,
        a_configuration_that_is_cut_short_is_refused_wherever_it_is_cut,
        presets_have_their_numbers_of_parameters,
    };
    add_suite("published configurations", tests);
}
