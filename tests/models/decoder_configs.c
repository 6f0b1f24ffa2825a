/* The configurations of GPT-2 and LLaMA: published files, presets, what is refused. */
#include <stdio.h>

#include "base/alloc.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "tests/support/testing.h"
#include "models/internal.h"

START_TEST(a_published_configuration_is_read) {
    wg_gpt_config gpt;
    ck_assert_int_eq(
        wg_model_config_from_json(
            &wg_gpt_type,
            "{\"activation_function\": \"gelu_new\", \"architectures\": [\"GPT2LMHeadModel\"],"
            "\"attn_pdrop\": 0.1, \"bos_token_id\": 50256, \"embd_pdrop\": 0.1,"
            "\"eos_token_id\": 50256, \"initializer_range\": 0.02,"
            "\"layer_norm_epsilon\": 1e-05, \"model_type\": \"gpt2\", \"n_ctx\": 1024,"
            "\"n_embd\": 768, \"n_head\": 12, \"n_layer\": 12, \"n_positions\": 1024,"
            "\"resid_pdrop\": 0.1, \"summary_use_proj\": true, \"vocab_size\": 50257}",
            &gpt),
        0);
    ck_assert_int_eq(gpt.n_inner, 3072);
    wg_llama_config llama;
    ck_assert_int_eq(
        wg_model_config_from_json(
            &wg_llama_type,
            "{\"architectures\": [\"LlamaForCausalLM\"], \"bos_token_id\": 1,"
            "\"eos_token_id\": 2, \"hidden_act\": \"silu\", \"hidden_size\": 4096,"
            "\"initializer_range\": 0.02, \"intermediate_size\": 11008,"
            "\"max_position_embeddings\": 4096, \"model_type\": \"llama\","
            "\"num_attention_heads\": 32, \"num_hidden_layers\": 32,"
            "\"num_key_value_heads\": 32, \"pretraining_tp\": 1, \"rms_norm_eps\": 1e-05,"
            "\"rope_scaling\": null, \"tie_word_embeddings\": false,"
            "\"torch_dtype\": \"float16\", \"use_cache\": true, \"vocab_size\": 32000}",
            &llama),
        0);
    ck_assert_int_eq(llama.hidden_size, 4096);
}
END_TEST

/* A LLaMA with this part of a rope_scaling. */
static int read_scaled(wg_llama_config *llama, const char *scaling) {
    char json[512];
    snprintf(json, sizeof json,
             "{\"hidden_size\": 64, \"intermediate_size\": 96, \"num_attention_heads\": 4,"
             "\"num_hidden_layers\": 1, \"vocab_size\": 40, \"rope_scaling\": %s}",
             scaling);
    return wg_model_config_from_json(&wg_llama_type, json, llama);
}

static void assert_scaling(const wg_llama_config *llama, double factor, double low, double high,
                           int64_t original) {
    ck_assert_double_eq(llama->rope_scaling.factor, factor);
    ck_assert_double_eq(llama->rope_scaling.low_frequency_factor, low);
    ck_assert_double_eq(llama->rope_scaling.high_frequency_factor, high);
    ck_assert_int_eq(llama->rope_scaling.original_positions, original);
}

START_TEST(stretched_positions_are_read_and_written) {
    wg_llama_config llama, again;
    ck_assert_int_eq(read_scaled(&llama, "{\"type\": \"linear\", \"factor\": 2}"), 0);
    assert_scaling(&llama, 2, 0, 0, 0);
    ck_assert_int_eq(read_scaled(&llama, "{\"rope_type\": \"default\"}"), 0);
    assert_scaling(&llama, 0, 0, 0, 0);
    /* of the published LLaMA 3.1 */
    ck_assert_int_eq(
        read_scaled(&llama, "{\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": "
                            "4.0, \"original_max_position_embeddings\": 8192, \"rope_type\": "
                            "\"llama3\"}"),
        0);
    assert_scaling(&llama, 8, 1, 4, 8192);
    char *json = wg_model_config_to_json(&wg_llama_type, &llama);
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, json, &again), 0);
    assert_scaling(&again, 8, 1, 4, 8192);
    wg_text_free(json);
}
END_TEST

START_TEST(what_stretches_positions_otherwise_is_refused) {
    wg_llama_config llama;
    ck_assert_int_lt(read_scaled(&llama, "{\"rope_type\": \"yarn\", \"factor\": 4.0}"), 0);
    assert_error(WG_ERROR_FORMAT, "\"yarn\"; default, linear and llama3 are known");
    ck_assert_int_lt(read_scaled(&llama, "{\"rope_type\": \"llama3\", \"factor\": 4.0}"), 0);
    assert_error(WG_ERROR_FORMAT, "rope_scaling has no \"low_freq_factor\", \"high_freq_factor\"");
    ck_assert_int_lt(read_scaled(&llama, "{\"type\": \"linear\", \"factor\": -1}"), 0);
    assert_error(WG_ERROR_ARGUMENT, "rope_scaling.factor is -1");
    ck_assert_int_lt(
        read_scaled(&llama, "{\"type\": \"linear\", \"factor\": 2, \"beta_fast\": 32}"), 0);
    assert_error(WG_ERROR_FORMAT, "unknown key \"beta_fast\"");
    ck_assert_int_lt(read_scaled(&llama, "4"), 0);
    assert_error(WG_ERROR_FORMAT, "\"rope_scaling\" is 4; wanted an object");
}
END_TEST

static int read_ends(wg_llama_config *llama, const char *ends) {
    char json[512];
    snprintf(json, sizeof json,
             "{\"vocab_size\": 300, \"hidden_size\": 8, \"intermediate_size\": 8, "
             "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"eos_token_id\": %s}",
             ends);
    return wg_model_config_from_json(&wg_llama_type, json, llama);
}

/* As in the instruction models of LLaMA 3. */
START_TEST(of_several_tokens_that_end_a_text_the_first_is_kept) {
    wg_llama_config llama, again;
    ck_assert_int_eq(read_ends(&llama, "[101, 108, 109]"), 0);
    ck_assert_int_eq(llama.eos_token_id, 101);
    char *json = wg_model_config_to_json(&wg_llama_type, &llama);
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, json, &again), 0);
    ck_assert_int_eq(again.eos_token_id, 101);
    wg_text_free(json);
    ck_assert_int_eq(read_ends(&llama, "7"), 0);
    ck_assert_int_eq(llama.eos_token_id, 7);
    ck_assert_int_eq(read_ends(&llama, "[]"), -1);
    assert_error(WG_ERROR_FORMAT, "\"eos_token_id\" is an array; wanted an integer, or a list");
    ck_assert_int_eq(read_ends(&llama, "[\"7\"]"), -1);
    assert_error(WG_ERROR_FORMAT, "wanted an integer, or a list that begins with one");
    ck_assert_int_eq(read_ends(&llama, "[300]"), -1);
    assert_error(WG_ERROR_ARGUMENT, "eos_token_id");
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
            ck_assert_int_eq(wg_model_from_json(json, 0, &model), -1);
            assert_error(WG_ERROR_FORMAT, "config.json");
        }
    }
}
END_TEST

START_TEST(a_configuration_that_cannot_be_is_refused_by_its_key) {
    wg_gpt_config gpt;
    wg_model_preset_config(&wg_gpt_type, "gpt2-tiny", &gpt);
    gpt.n_head = 3;
    ck_assert_ptr_null(wg__gpt_new(&gpt, 1));
    assert_error(WG_ERROR_ARGUMENT, "n_head 3 does not divide n_embd 128");
    ck_assert_int_eq(wg_model_preset_config(&wg_gpt_type, "gpt3", &gpt), -1);
    assert_error(WG_ERROR_ARGUMENT, "there is no preset \"gpt3\"; there are gpt2-tiny");
    wg_llama_config llama;
    wg_model_preset_config(&wg_llama_type, "llama-15m", &llama);
    llama.num_key_value_heads = 4;
    ck_assert_ptr_null(wg__llama_new(&llama, 1));
    assert_error(WG_ERROR_ARGUMENT, "num_key_value_heads 4 does not divide num_attention_heads 6");
    ck_assert_int_eq(wg_model_config_from_json(&wg_llama_type, "{\"hidden_size\": 8}", &llama), -1);
    assert_error(WG_ERROR_FORMAT, "vocab_size");
}
END_TEST

START_TEST(presets_have_their_published_numbers_of_parameters) {
    wg_gpt_config gpt;
    wg_model_preset_config(&wg_gpt_type, "gpt2-124m", &gpt);
    wg_gpt *model = wg__gpt_new(&gpt, 1);
    ck_assert_int_eq(wg_module_parameter_count(&model->module), 124439808);
    wg_module_free(&model->module);
    wg_llama_config llama;
    wg_model_preset_config(&wg_llama_type, "llama-260k", &llama);
    wg_llama *small = wg__llama_new(&llama, 1);
    ck_assert_int_eq(wg_module_parameter_count(&small->module), 260032);
    wg_module_free(&small->module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_published_configuration_is_read,
        stretched_positions_are_read_and_written,
        what_stretches_positions_otherwise_is_refused,
        of_several_tokens_that_end_a_text_the_first_is_kept,
        a_configuration_that_is_cut_short_is_refused_wherever_it_is_cut,
        a_configuration_that_cannot_be_is_refused_by_its_key,
        presets_have_their_published_numbers_of_parameters,
    };
    add_suite("decoder_configs", tests);
}
