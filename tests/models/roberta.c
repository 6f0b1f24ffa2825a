/* RoBERTa against PyTorch (tests/fixtures/roberta.py): logits, gradients, training, a classifier;
 * positions, configurations, published names. */
#include "models/roberta.h"

#include <string.h>

#include "models/heads.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "models/internal.h"

/* The sizes of the fixture. Position 0 is row PAD + 1. */
enum { B = 3, T = 11, VOCAB = 48, ROWS = 18, PAD = 3, WIDTH = 16, LABELS = 3 };

#define FOLDER "roberta"

static wg_roberta_config fixture_config(void) {
    wg_roberta_config config;
    wg_model_preset_config(&wg_roberta_type, "roberta-mini", &config);
    config.bert.vocab_size = VOCAB;
    config.bert.hidden_size = WIDTH;
    config.bert.intermediate_size = 24;
    config.bert.num_hidden_layers = 2;
    config.bert.num_attention_heads = 4;
    config.bert.max_position_embeddings = ROWS;
    config.bert.hidden_dropout_prob = config.bert.attention_probs_dropout_prob = 0;
    config.bert.pad_token_id = PAD;
    return config;
}

static wg_model new_model(void) {
    const wg_roberta_config config = fixture_config();
    return (wg_model){.type = &wg_roberta_type,
                      .module = wg__roberta_for_masked_lm_new(&config, 1)};
}

static wg_model load_model(wg_dtype dtype) {
    wg_model model = new_model();
    load_model_fixture(FOLDER, model.module, dtype);
    return model;
}

static void free_model(wg_model *model) {
    wg_scope_clear_root();
    wg_module_free(model->module);
}

static wg_tensor *load(const char *name) {
    return fixture_tensor("%s/%s", FOLDER, name);
}

static wg_model_inputs load_inputs(void) {
    return (wg_model_inputs){.ids = load("ids"), .keep = load("keep")};
}

static wg_tensor *loss_of(const wg_model *model) {
    const wg_model_inputs inputs = load_inputs();
    return wg_model_loss(model, wg_model_forward(model, &inputs), NULL, load("labels"), NULL);
}

static void check_model(wg_dtype dtype, double tolerance) {
    wg_model model = load_model(dtype);
    const wg_model_inputs inputs = load_inputs();
    wg_tensor *logits = wg_detach(wg_model_logits(&model, wg_model_forward(&model, &inputs), NULL));
    wg_tensor *kept = wg_cast(wg_unsqueeze(inputs.keep, -1), dtype);
    assert_relative(wg_mul(logits, kept), load("logits"), tolerance);
    wg_tensor *loss = loss_of(&model);
    assert_relative(wg_detach(loss), wg_select(load("loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients(FOLDER, model.module, tolerance);
    free_model(&model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    check_model(WG_F64, 1e-10);
    check_model(WG_F32, 1e-5);
}
END_TEST

static wg_tensor *training_loss(void *context) {
    return loss_of(context);
}

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    wg_model model = load_model(WG_F32);
    const wg_adamw_options options = {.beta2 = 0.95, .weight_decay = 0.1};
    assert_model_training(FOLDER, model.module, wg_adamw_new(&options), training_loss, &model,
                          1e-4);
    free_model(&model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_model model = new_model();
    assert_model_paths(FOLDER, model.module);
    free_model(&model);
}
END_TEST

/* The fixture's head holds dense.weight, dense.bias, out_proj.weight and out_proj.bias, flat. */
static int64_t take(wg_tensor *flat, int64_t at, wg_tensor *parameter) {
    const int64_t count = wg_tensor_count(parameter);
    wg_tensor *part = wg_slice(flat, 0, at, at + count, 1);
    wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_copy_(parameter, wg_reshape(part, wg_tensor_ndim(parameter),
                                                    wg_tensor_shape(parameter))),
                     0);
    wg_set_grad_enabled(true);
    return at + count;
}

START_TEST(a_classifier_has_published_names_and_the_logits_of_pytorch) {
    const wg_roberta_config config = fixture_config();
    wg__labels labels = {0};
    for (int i = 0; i < LABELS; i++)
        wg__labels_add(&labels, (const char *[]){"no", "perhaps", "yes"}[i]);
    wg__headed_encoder *model =
        wg__headed_encoder_new(&wg_roberta_type, WG_HEAD_LABELS, &config, &labels, 1);
    wg_tensor *weights = load("weights"), *head = load("head");
    int64_t at = 0;
    static const char *const parts[] = {"classifier.dense.weight", "classifier.dense.bias",
                                        "classifier.out_proj.weight", "classifier.out_proj.bias"};
    for (size_t i = 0; i < WG_COUNT(parts); i++)
        at = take(head, at, wg_module_find(&model->module, parts[i])->tensor);
    ck_assert_int_eq(at, wg_tensor_count(head));
    at = 0;
    wg_state_dict *state = wg_module_state(&model->module);
    for (int64_t i = 0; i < state->count; i++)
        if (strncmp(state->entries[i].path, "roberta.", 8) == 0)
            at = take(weights, at, state->entries[i].slot->tensor);
    wg_state_dict_free(state);
    ck_assert_int_gt(at, 0);
    const wg_model_inputs inputs = load_inputs();
    wg_tensor *outputs[2];
    ck_assert_int_eq(wg__headed_encoder_forward(model, &inputs, outputs), 0);
    assert_relative(wg_detach(outputs[0]), load("classes"), 1e-5);
    wg_scope_clear_root();
    wg_module_free(&model->module);
    wg__labels_free(&labels);
}
END_TEST

/* 18 rows less those of positions that are none, 0 to PAD. */
START_TEST(the_longest_text_has_the_last_row_of_the_table) {
    wg_model model = new_model();
    ck_assert_int_eq(wg_model_sizes_of(&model).positions, 14);
    ck_assert_ptr_nonnull(hidden_of_ids(&model, wg_ones(WG_I64, WG_DIMS(1, 14))));
    ck_assert_ptr_null(hidden_of_ids(&model, wg_ones(WG_I64, WG_DIMS(1, 15))));
    assert_error(WG_ERROR_SHAPE, "15 positions are more than the model's 14");
    free_model(&model);
}
END_TEST

START_TEST(a_table_without_a_row_for_a_position_is_refused) {
    wg_roberta_config config = fixture_config();
    config.bert.max_position_embeddings = PAD + 1;
    ck_assert_int_lt(wg__model_config_check(&wg_roberta_type, &config), 0);
    assert_error(WG_ERROR_ARGUMENT, "max_position_embeddings 4 leaves no row for a position");
}
END_TEST

START_TEST(roberta_base_has_the_published_number_of_parameters) {
    wg_model model;
    wg_set_meta_init(true);
    ck_assert_int_eq(wg_model_new(&wg_roberta_type, "roberta-base", 1, &model), 0);
    wg_set_meta_init(false);
    ck_assert_int_eq(wg_module_parameter_count(model.module), 124697433);
    wg_model_free(&model);
}
END_TEST

/* config.json of FacebookAI/roberta-base, and what differs in that of FacebookAI/xlm-roberta-base.
 */
#define PUBLISHED(type, rest)                                                                      \
    "{\"attention_probs_dropout_prob\": 0.1, \"bos_token_id\": 0, \"eos_token_id\": 2,"            \
    "\"hidden_act\": \"gelu\", \"hidden_dropout_prob\": 0.1, \"hidden_size\": 768,"                \
    "\"initializer_range\": 0.02, \"intermediate_size\": 3072, \"layer_norm_eps\": 1e-05,"         \
    "\"max_position_embeddings\": 514, \"model_type\": \"" type "\","                              \
    "\"num_attention_heads\": 12, \"num_hidden_layers\": 12, \"pad_token_id\": 1,"                 \
    "\"type_vocab_size\": 1, " rest "}"

START_TEST(published_configurations_are_read) {
    wg_roberta_config config, wanted;
    wg_model_preset_config(&wg_roberta_type, "roberta-base", &wanted);
    ck_assert_int_eq(wg_model_config_from_json(
                         &wg_roberta_type,
                         PUBLISHED("roberta", "\"architectures\": [\"RobertaForMaskedLM\"], "
                                              "\"vocab_size\": 50265"),
                         &config),
                     0);
    char *text = wg_model_config_to_json(&wg_roberta_type, &wanted);
    char *found = wg_model_config_to_json(&wg_roberta_type, &config);
    ck_assert_str_eq(found, text);
    wg_text_free(text);
    wg_text_free(found);
    ck_assert_int_eq(wg_model_config_from_json(
                         &wg_roberta_type,
                         PUBLISHED("xlm-roberta", "\"architectures\": [\"XLMRobertaForMaskedLM\"], "
                                                  "\"output_past\": true, \"vocab_size\": 250002"),
                         &config),
                     0);
    ck_assert_int_eq(config.bert.vocab_size, 250002);
    ck_assert(wg__model_type_reads(&wg_roberta_type, "camembert"));
    ck_assert(!wg__model_type_reads(&wg_roberta_type, "bert"));
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        a_classifier_has_published_names_and_the_logits_of_pytorch,
        the_longest_text_has_the_last_row_of_the_table,
        a_table_without_a_row_for_a_position_is_refused,
        roberta_base_has_the_published_number_of_parameters,
        published_configurations_are_read,
    };
    add_suite("roberta", tests);
}
