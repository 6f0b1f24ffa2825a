/* config.json as transformers writes it, before 4.56 (torch_dtype), since then (dtype), and in
 * version 5 (rope_parameters, keys of a class with their standard values): all mean one model. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/llama.h"
#include "models/modernbert.h"
#include "models/t5.h"
#include "tests/support/testing.h"

#define OF_BERT                                                                                    \
    "\"hidden_size\": 8, \"num_hidden_layers\": 3, \"num_attention_heads\": 2, "                   \
    "\"intermediate_size\": 16, \"vocab_size\": 60000, "
#define OF_5 "\"dtype\": \"float32\", \"transformers_version\": \"5.2.0\", \"use_cache\": true, "

/* The second text is that of version 5. Both lack the braces and the keys in `sizes`. */
static const struct {
    const char *type, *sizes, *older, *newer;
} published[] = {
    {"bert", OF_BERT,
     "\"torch_dtype\": \"float32\", \"transformers_version\": \"4.40.0\", "
     "\"position_embedding_type\": \"absolute\", \"model_type\": \"bert\"",
     OF_5 "\"add_cross_attention\": false, \"is_decoder\": false, \"bos_token_id\": null, "
          "\"eos_token_id\": null, \"tie_word_embeddings\": true, \"classifier_dropout\": null, "
          "\"architectures\": [\"BertForPreTraining\"], \"model_type\": \"bert\""},
    {"roberta", OF_BERT,
     "\"torch_dtype\": \"float32\", \"bos_token_id\": 0, \"eos_token_id\": 2, \"pad_token_id\": 1, "
     "\"model_type\": \"roberta\"",
     OF_5 "\"add_cross_attention\": false, \"is_decoder\": false, \"bos_token_id\": 0, "
          "\"eos_token_id\": 2, \"pad_token_id\": 1, \"tie_word_embeddings\": true, "
          "\"classifier_dropout\": null, \"model_type\": \"roberta\""},
    {"modernbert", OF_BERT,
     "\"torch_dtype\": \"float32\", \"global_rope_theta\": 80000.0, \"local_rope_theta\": 5000.0, "
     "\"global_attn_every_n_layers\": 2, \"model_type\": \"modernbert\"",
     OF_5 "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"], "
          "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 80000.0, \"rope_type\": "
          "\"default\"}, \"sliding_attention\": {\"rope_theta\": 5000.0, \"rope_type\": "
          "\"default\"}}, \"tie_word_embeddings\": true, \"model_type\": \"modernbert\""},
    {"gpt2", "\"n_embd\": 8, \"n_layer\": 1, \"n_head\": 2, \"vocab_size\": 60000, ",
     "\"torch_dtype\": \"float32\", \"model_type\": \"gpt2\"",
     OF_5 "\"add_cross_attention\": false, \"pad_token_id\": null, \"n_inner\": null, "
          "\"reorder_and_upcast_attn\": false, \"summary_activation\": null, "
          "\"tie_word_embeddings\": true, \"model_type\": \"gpt2\""},
    {"t5",
     "\"d_model\": 8, \"d_kv\": 4, \"d_ff\": 8, \"num_layers\": 1, \"num_heads\": 2, "
     "\"vocab_size\": 60000, ",
     "\"torch_dtype\": \"float32\", \"feed_forward_proj\": \"gated-gelu\", "
     "\"tie_word_embeddings\": false, \"is_encoder_decoder\": true, \"model_type\": \"t5\"",
     OF_5 "\"feed_forward_proj\": \"gated-gelu\", \"scale_decoder_outputs\": false, "
          "\"tie_word_embeddings\": true, \"is_encoder_decoder\": true, \"is_decoder\": false, "
          "\"classifier_dropout\": 0.0, \"dense_act_fn\": \"gelu_new\", \"is_gated_act\": true, "
          "\"model_type\": \"t5\""},
    {"llama",
     "\"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
     "\"intermediate_size\": 16, \"vocab_size\": 272, ",
     "\"torch_dtype\": \"float32\", \"rope_theta\": 500000.0, \"rope_scaling\": null, "
     "\"model_type\": \"llama\"",
     OF_5 "\"rope_parameters\": {\"rope_theta\": 500000.0, \"rope_type\": \"default\"}, "
          "\"head_dim\": 4, \"pad_token_id\": null, \"pretraining_tp\": 1, "
          "\"model_type\": \"llama\""},
    {"llama",
     "\"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
     "\"intermediate_size\": 16, \"vocab_size\": 272, ",
     "\"torch_dtype\": \"float32\", \"rope_theta\": 500000.0, \"rope_scaling\": {\"factor\": 8.0, "
     "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": "
     "16, \"rope_type\": \"llama3\"}, \"model_type\": \"llama\"",
     OF_5 "\"rope_parameters\": {\"rope_theta\": 500000.0, \"factor\": 8.0, "
          "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
          "\"original_max_position_embeddings\": 16, \"rope_type\": \"llama3\"}, "
          "\"model_type\": \"llama\""},
};

/* What a configuration means, freed with wg_text_free; NULL with an error. */
static char *meaning_of(const char *name, const char *sizes, const char *rest) {
    const wg_model_type *type = wg_model_type_find(name);
    char json[2048];
    void *config = malloc(type->settings.size);
    snprintf(json, sizeof json, "{%s%s}", sizes, rest);
    char *text = wg_model_config_from_json(type, json, config) == 0
                     ? wg_model_config_to_json(type, config)
                     : NULL;
    free(config);
    return text;
}

START_TEST(a_configuration_of_transformers_5_is_that_of_version_4) {
    for (size_t i = 0; i < WG_COUNT(published); i++) {
        char *older = meaning_of(published[i].type, published[i].sizes, published[i].older);
        assert_no_error();
        char *newer = meaning_of(published[i].type, published[i].sizes, published[i].newer);
        assert_no_error();
        ck_assert_str_eq(older, newer);
        wg_text_free(older);
        wg_text_free(newer);
    }
}
END_TEST

/* Of the last one, LLaMA 3.1's: the angles of position 1 are the inverse frequencies. */
START_TEST(the_frequencies_are_those_of_rope_parameters) {
    const size_t last = WG_COUNT(published) - 1;
    const char *const rests[] = {published[last].older, published[last].newer};
    static const double wanted[] = {0.5760564011, 0.000176776695};
    for (int i = 0; i < 2; i++) {
        char json[2048];
        wg_model model;
        snprintf(json, sizeof json, "{%s%s}", published[last].sizes, rests[i]);
        ck_assert_int_eq(wg_model_from_json(json, 1, &model), 0);
        for (int64_t pair = 0; pair < 2; pair++) {
            const double sine = wg_at(((wg_llama *)model.module)->sin, (int64_t[]){1, pair});
            ck_assert_double_eq_tol(asin(sine), wanted[pair], 3e-7 * wanted[pair]);
        }
        wg_model_free(&model);
    }
}
END_TEST

/* Each key with a meaning that is not read. */
START_TEST(a_configuration_of_another_use_is_refused_by_its_key) {
    static const struct {
        const char *type, *rest, *message;
    } cases[] = {
        {"bert", "\"is_decoder\": true", "\"is_decoder\" is true; wanted false"},
        {"roberta", "\"is_decoder\": true", "\"is_decoder\" is true"},
        {"bert", "\"add_cross_attention\": true", "\"add_cross_attention\" is true"},
        {"gpt2", "\"add_cross_attention\": true", "\"add_cross_attention\" is true"},
        {"bert", "\"is_encoder_decoder\": true", "\"is_encoder_decoder\" is true; wanted false"},
        {"t5", "\"is_encoder_decoder\": false", "\"is_encoder_decoder\" is false; wanted true"},
        {"t5", "\"is_decoder\": true", "\"is_decoder\" is true"},
        {"t5", "\"tie_encoder_decoder\": true", "\"tie_encoder_decoder\" is true"},
        {"t5", "\"tie_word_embeddings\": false, \"scale_decoder_outputs\": true",
         "scale_decoder_outputs is true and tie_word_embeddings false"},
        {"bert", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\" is false"},
        {"bert", "\"quantization_config\": {\"bits\": 4}", "unknown key \"quantization_config\""},
        {"llama", "\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 2.0}",
         "\"yarn\"; default, linear and llama3 are known"},
        {"llama", "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}",
         "rope_parameters: unknown key \"partial_rotary_factor\""},
        {"llama", "\"rope_theta\": 10000.0, \"rope_parameters\": {\"rope_theta\": 500000.0}",
         "rope_theta is 10000, and within rope_parameters 500000"},
        {"llama",
         "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}, \"rope_parameters\": "
         "{\"rope_theta\": 10000.0}",
         "both rope_scaling and rope_parameters"},
        {"modernbert",
         "\"rope_parameters\": {\"full_attention\": {\"rope_type\": \"linear\", \"factor\": 2.0}}",
         "rope_type of full_attention is \"linear\""},
        {"modernbert",
         "\"global_rope_theta\": 10.0, \"rope_parameters\": {\"full_attention\": {\"rope_theta\": "
         "20.0}}",
         "global_rope_theta is 10, and rope_theta of full_attention 20"},
        {"modernbert", "\"rope_parameters\": {\"rope_theta\": 20.0}",
         "rope_parameters: unknown key \"rope_theta\""},
        {"modernbert",
         "\"layer_types\": [\"full_attention\", \"full_attention\", \"sliding_attention\"]",
         "layer_types[2] is \"sliding_attention\"; wanted \"full_attention\""},
        {"modernbert",
         "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"full_attention\"], "
         "\"global_attn_every_n_layers\": 3",
         "layer_types[2] is \"full_attention\"; wanted \"sliding_attention\""},
        {"modernbert", "\"layer_types\": [\"full_attention\"]", "\"layer_types\" is an array"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const char *sizes = NULL;
        for (size_t j = 0; !sizes; j++)
            sizes = strcmp(published[j].type, cases[i].type) == 0 ? published[j].sizes : NULL;
        ck_assert_msg(!meaning_of(cases[i].type, sizes, cases[i].rest), "%s: %s is passed over",
                      cases[i].type, cases[i].rest);
        assert_error(WG_ERROR_FORMAT, cases[i].message);
    }
}
END_TEST

START_TEST(a_token_that_is_null_is_none) {
    static const char json[] = "{\"hidden_size\": 8, \"num_hidden_layers\": 1, "
                               "\"num_attention_heads\": 2, \"intermediate_size\": 16, "
                               "\"vocab_size\": 272, \"bos_token_id\": null}";
    wg_llama_config config, again;
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, json, &config), 0);
    ck_assert_int_eq(config.bos_token_id, -1);
    ck_assert_int_eq(config.eos_token_id, 2); /* left out */
    char *text = wg_model_config_to_json(&wg_llama_type, &config);
    ck_assert_ptr_nonnull(strstr(text, "\"bos_token_id\": null"));
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, text, &again), 0);
    ck_assert_int_eq(again.bos_token_id, -1);
    wg_text_free(text);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_configuration_of_transformers_5_is_that_of_version_4,
        the_frequencies_are_those_of_rope_parameters,
        a_configuration_of_another_use_is_refused_by_its_key,
        a_token_that_is_null_is_none,
    };
    add_suite("published configurations", tests);
}
