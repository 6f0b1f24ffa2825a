/* The configurations of the Transformer: published files, presets, what is refused. */
#include "models/transformer.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The published configuration of Marian's models for pairs of languages. */
static const char published[] =
    "{\"_num_labels\": 3, \"activation_dropout\": 0.0, \"activation_function\": \"swish\","
    "\"add_bias_logits\": false, \"add_final_layer_norm\": false,"
    "\"architectures\": [\"MarianMTModel\"], \"attention_dropout\": 0.0,"
    "\"bad_words_ids\": [[58100]], \"bos_token_id\": 0, \"classif_dropout\": 0.0,"
    "\"d_model\": 512, \"decoder_attention_heads\": 8, \"decoder_ffn_dim\": 2048,"
    "\"decoder_layerdrop\": 0.0, \"decoder_layers\": 6, \"decoder_start_token_id\": 58100,"
    "\"dropout\": 0.1, \"encoder_attention_heads\": 8, \"encoder_ffn_dim\": 2048,"
    "\"encoder_layerdrop\": 0.0, \"encoder_layers\": 6, \"eos_token_id\": 0,"
    "\"id2label\": {\"0\": \"LABEL_0\"}, \"init_std\": 0.02, \"is_encoder_decoder\": true,"
    "\"label2id\": {\"LABEL_0\": 0}, \"max_length\": 512, \"max_position_embeddings\": 512,"
    "\"model_type\": \"marian\", \"normalize_before\": false, \"normalize_embedding\": false,"
    "\"num_beams\": 6, \"num_hidden_layers\": 6, \"pad_token_id\": 58100,"
    "\"scale_embedding\": true, \"static_position_embeddings\": true, \"vocab_size\": 58101}";

START_TEST(a_published_configuration_is_read) {
    wg_transformer_config config;
    wg_model_config_from_json(&wg_transformer_type, published, &config);
    assert_no_error();
    ck_assert_int_eq(config.vocab_size, 58101);
    ck_assert_int_eq(config.decoder_vocab_size, 58101);
    ck_assert_int_eq(config.activation_function, WG_ACTIVATION_SILU);
    ck_assert_int_eq(config.decoder_start_token_id, 58100);
    ck_assert_int_eq(config.max_position_embeddings, 512);
    ck_assert(config.share_encoder_decoder_embeddings && !config.normalize_before);
}
END_TEST

static void assert_refused(const char *json, wg_error_code code, const char *part) {
    wg_transformer_config config;
    ck_assert_int_eq(wg_model_config_from_json(&wg_transformer_type, json, &config), -1);
    assert_error(code, part);
}

#define SIZES                                                                                      \
    "\"vocab_size\": 9, \"d_model\": 8, \"encoder_layers\": 1, \"decoder_layers\": 1,"             \
    "\"encoder_ffn_dim\": 8, \"decoder_ffn_dim\": 8, \"encoder_attention_heads\": 2"

START_TEST(a_file_that_cannot_be_is_refused_by_its_key) {
    assert_refused("{" SIZES "}", WG_ERROR_FORMAT, "decoder_attention_heads");
    assert_refused("{" SIZES ", \"decoder_attention_heads\": 3}", WG_ERROR_ARGUMENT,
                   "decoder_attention_heads 3 does not divide d_model 8 into equal parts");
    assert_refused("{" SIZES ", \"decoder_attention_heads\": 2, \"normalize_embedding\": true}",
                   WG_ERROR_FORMAT, "\"normalize_embedding\" is true; wanted false");
    assert_refused("{" SIZES ", \"decoder_attention_heads\": 2, \"normalize_before\": true,"
                   "\"add_final_layer_norm\": false}",
                   WG_ERROR_FORMAT, "add_final_layer_norm is false; wanted true");
    assert_refused("{" SIZES ", \"decoder_attention_heads\": 2, \"layers\": 3}", WG_ERROR_FORMAT,
                   "layers");
}
END_TEST

START_TEST(a_configuration_that_cannot_be_is_refused_by_its_key) {
    wg_transformer_config config;
    ck_assert_int_eq(wg_model_preset_config(&wg_transformer_type, "transformer", &config), -1);
    assert_error(WG_ERROR_ARGUMENT, "there is no preset \"transformer\"; there are "
                                    "transformer-tiny, transformer-mini, transformer-base, "
                                    "transformer-big");
    wg_model_preset_config(&wg_transformer_type, "transformer-tiny", &config);
    config.decoder_vocab_size = 100;
    ck_assert_ptr_null(wg__transformer_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "decoder_vocab_size is 100; it must be vocab_size");
    config.share_encoder_decoder_embeddings = false;
    config.eos_token_id = 100;
    ck_assert_ptr_null(wg__transformer_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "eos_token_id is 100; it must be a token of the target's");
    config.eos_token_id = 2;
    config.label_smoothing = 1;
    ck_assert_ptr_null(wg__transformer_new(&config, 1));
    assert_error(WG_ERROR_ARGUMENT, "label_smoothing is 1; it must be at least 0 and below 1");
}
END_TEST

START_TEST(the_preset_of_the_paper_has_its_number_of_parameters) {
    wg_transformer_config config;
    ck_assert_int_eq(wg_model_preset_config(&wg_transformer_type, "transformer-base", &config), 0);
    wg_transformer *model = wg__transformer_new(&config, 1);
    /* Embeddings; then weights, biases and norms of an encoder layer; then what a decoder layer has
     * beyond that. */
    const int64_t c = 512, attention = 4 * (c * c + c), norm = 2 * c;
    const int64_t encoder = attention + 2 * c * 2048 + 2048 + c + 2 * norm;
    const int64_t wanted = 37000 * c + 6 * (2 * encoder + attention + norm);
    ck_assert_int_eq(wg_module_parameter_count(&model->module), wanted);
    ck_assert_int_eq(wanted, 63082496); /* the paper's 65 million */
    wg_module_free(&model->module);
}
END_TEST

START_TEST(every_preset_makes_a_valid_configuration) {
    for (int i = 0; wg_transformer_type.presets[i].name; i++) {
        wg_transformer_config config;
        ck_assert_int_eq(wg_model_preset_config(&wg_transformer_type,
                                                wg_transformer_type.presets[i].name, &config),
                         0);
        ck_assert_int_eq(wg__model_config_check(&wg_transformer_type, &config), 0);
    }
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_published_configuration_is_read,
        a_file_that_cannot_be_is_refused_by_its_key,
        a_configuration_that_cannot_be_is_refused_by_its_key,
        the_preset_of_the_paper_has_its_number_of_parameters,
        every_preset_makes_a_valid_configuration,
    };
    add_suite("transformer_config", tests);
}
