/* LoRA adapters in PEFT's files, and in checkpoints. */
#include "io/weights/adapter.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/checkpoint/checkpoint.h"
#include "io/weights/file.h"
#include "io/weights/weights.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"
#include "io/internal.h"

enum { C = 12, T = 4 };

typedef struct net {
    wg_module module;
    wg_multi_head_attention *attention;
    wg_linear *head;
} net;

static net *net_new(void) {
    net *made = wg_module_new(NULL, "", sizeof *made);
    own(&made->module, OWN_MODULE);
    made->module.generator = (wg_generator){.seed = 1};
    made->attention = wg_multi_head_attention_new(&made->module, "layer.0.attention", C, 3, NULL);
    made->head = wg_linear_new(&made->module, "classifier", C, 3, NULL);
    return made;
}

static const char *const targets[] = {"query", "value"}, *const whole[] = {"classifier"};

static void attach(net *n) {
    const wg_lora_options options = {.rank = 2,
                                     .alpha = 6,
                                     .target_count = 2,
                                     .targets = targets,
                                     .whole_count = 1,
                                     .whole = whole};
    ck_assert_int_eq(wg_lora_attach(&n->module, &options), 2);
}

static void set(wg_tensor *x, wg_tensor *value) {
    const bool recording = wg_set_grad_enabled(false);
    ck_assert_int_eq(wg_copy_(x, value), 0);
    wg_set_grad_enabled(recording);
}

/* As if it had been trained. */
static void move(net *n) {
    wg_generator generator = {.seed = 5};
    set(wg__lora_of(n->attention->query)->b->weight, wg_randn(&generator, WG_F32, WG_DIMS(C, 2)));
    set(wg__lora_of(n->attention->value)->b->weight, wg_randn(&generator, WG_F32, WG_DIMS(C, 2)));
    set(n->head->weight, wg_randn(&generator, WG_F32, WG_DIMS(3, C)));
}

static wg_tensor *run(net *n) {
    wg_generator generator = {.seed = 3};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(1, T, C));
    wg_attention_inputs inputs = {0};
    return wg_linear_forward(n->head, wg_multi_head_attention_forward(n->attention, x, &inputs));
}

TEST(a_saved_adapter_has_pefts_names_and_loads_as_it_was) {
    net *n = net_new(), *other = net_new();
    attach(n);
    move(n);
    ck_assert_int_eq(wg_lora_save(&n->module, "bert.", in_scratch("adapter")), 0);
    ck_assert_int_eq(files_in(in_scratch("adapter")), 2);
    wg_weights *file = owned(wg__weights_open_as(in_scratch("adapter/adapter_model.safetensors"),
                                                 &wg__weights_safetensors));
    static const char *const names[] = {
        "base_model.model.bert.layer.0.attention.query.lora_A.weight",
        "base_model.model.bert.layer.0.attention.query.lora_B.weight",
        "base_model.model.bert.layer.0.attention.value.lora_A.weight",
        "base_model.model.bert.layer.0.attention.value.lora_B.weight",
        "base_model.model.bert.classifier.weight",
        "base_model.model.bert.classifier.bias"};
    ck_assert_int_eq(wg_weights_count(file), WG_COUNT(names));
    for (size_t i = 0; i < WG_COUNT(names); i++)
        ck_assert_msg(wg_weights_find(file, names[i]) >= 0, "%s", names[i]);
    static const char *const parts[] = {"\"peft_type\": \"LORA\"",
                                        "\"r\": 2",
                                        "\"lora_alpha\": 6.0",
                                        "\"target_modules\": [\"query\", \"value\"]",
                                        "\"modules_to_save\": [\"classifier\"]",
                                        "\"fan_in_fan_out\": false"};
    const bytes json = read_bytes(in_scratch("adapter/adapter_config.json"));
    for (size_t i = 0; i < WG_COUNT(parts); i++)
        ck_assert_msg(strstr((const char *)json.data, parts[i]), "%s in %s", parts[i],
                      (const char *)json.data);
    free(json.data);

    ck_assert_int_eq(wg_lora_load(&other->module, "bert.", in_scratch("adapter")), 2);
    assert_close(run(other), run(n), 0, 0);
    ck_assert(wg_requires_grad(other->head->weight));
    ck_assert(!wg_requires_grad(other->attention->key->weight));
}

TEST(an_adapter_of_another_model_is_refused_and_nothing_stays) {
    net *n = net_new();
    attach(n);
    ck_assert_int_eq(wg_lora_save(&n->module, "bert.", in_scratch("adapter")), 0);
    net *other = net_new();
    assert_fails(wg_lora_load(&other->module, NULL, in_scratch("adapter")), WG_ERROR_FORMAT,
                 "the model has no \"base_model.model.bert.");
    ck_assert_int_eq(wg__lora_count(&other->module), 0);
    ck_assert(wg_requires_grad(other->attention->key->weight));
}

/* A checkpoint as a training writes it: /model with the adapters in it, and /lora. */
static void write_checkpoint(net *n, const char *path) {
    char *config = wg__lora_config_json(&n->module);
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_module(file, "/model", &n->module), 0);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/lora", config), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_text_free(config);
}

TEST(a_checkpoint_reads_as_weights_with_the_adapters_added) {
    net *n = net_new(), *merged = net_new();
    attach(n);
    move(n);
    write_checkpoint(n, in_scratch("run.h5"));
    wg_weights *file = owned(wg__weights_open_as(in_scratch("run.h5"), &wg__weights_hdf5));
    ck_assert_int_eq(wg_weights_count(file), 10);
    ck_assert_int_eq(wg_weights_get_module(file, &merged->module), 0);
    assert_close(run(merged), run(n), 1e-5, 1e-5);

    ck_assert_int_eq(wg_lora_export(in_scratch("run.h5"), NULL, in_scratch("adapter")), 0);
    net *other = net_new();
    ck_assert_int_eq(wg_lora_load(&other->module, NULL, in_scratch("adapter")), 2);
    assert_close(run(other), run(n), 0, 0);
}

TEST(configurations_of_other_kinds_are_refused) {
    static const struct {
        const char *json, *part;
    } wrong[] = {
        {"{\"peft_type\": \"IA3\"}", "its peft_type is \"IA3\""},
        {"[1]", "no JSON object"},
        {"{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 0}",
         "no rank \"r\" or no \"lora_alpha\""},
        {"{\"peft_type\": \"LORA\", \"r\": 2}", "no rank \"r\" or no \"lora_alpha\""},
        {"{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2, \"target_modules\": [\"query\"], "
         "\"use_dora\": true}",
         "it has \"use_dora\""},
        {"{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2, \"target_modules\": [\"query\"], "
         "\"rank_pattern\": {\"key\": 4}}",
         "it has \"rank_pattern\""},
        {"{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2, \"target_modules\": [\"query\"], "
         "\"bias\": \"all\"}",
         "it trains biases"},
        {"{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 2, \"target_modules\": [3]}",
         "its target_modules are no names"},
    };
    net *n = net_new();
    for (size_t i = 0; i < WG_COUNT(wrong); i++) {
        assert_fails(wg__lora_attach_config(&n->module, wrong[i].json, "adapter_config.json"),
                     WG_ERROR_FORMAT, wrong[i].part);
        ck_assert_int_eq(wg__lora_count(&n->module), 0);
    }
    const char *rslora = "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 6, \"use_rslora\": "
                         "true, \"target_modules\": \"query\", \"use_dora\": false, "
                         "\"rank_pattern\": {}, \"bias\": \"none\"}";
    ck_assert_int_eq(wg__lora_attach_config(&n->module, rslora, "adapter_config.json"), 1);
    ck_assert_double_eq(wg__lora_of(n->attention->query)->scale, 3); /* 6 / sqrt(4) */
    ck_assert_ptr_null(wg__lora_config_json(NULL));
}

/* All keys that PEFT 0.18 writes, with one of them changed. */
static int attach_peft(net *n, const char *key, const char *value) {
    static const char published[] =
        "{\"alpha_pattern\": {}, \"alora_invocation_tokens\": null, \"arrow_config\": null, "
        "\"auto_mapping\": null, \"base_model_name_or_path\": \"x\", \"bias\": \"none\", "
        "\"corda_config\": null, \"ensure_weight_tying\": false, \"eva_config\": null, "
        "\"exclude_modules\": null, \"fan_in_fan_out\": false, \"inference_mode\": true, "
        "\"init_lora_weights\": true, \"layer_replication\": null, \"layers_pattern\": null, "
        "\"layers_to_transform\": null, \"loftq_config\": {}, \"lora_alpha\": 4, "
        "\"lora_bias\": false, \"lora_dropout\": 0.0, \"megatron_config\": null, "
        "\"megatron_core\": \"megatron.core\", \"modules_to_save\": null, \"peft_type\": "
        "\"LORA\", \"peft_version\": \"0.18.0\", \"qalora_group_size\": 16, \"r\": 2, "
        "\"rank_pattern\": {}, \"revision\": null, \"target_modules\": [\"query\"], "
        "\"target_parameters\": null, \"task_type\": \"CAUSAL_LM\", "
        "\"trainable_token_indices\": null, \"use_dora\": false, \"use_qalora\": false, "
        "\"use_rslora\": false}";
    json_t *config = json_loads(published, 0, NULL);
    ck_assert_ptr_nonnull(config);
    json_object_set_new(config, key, json_loads(value, JSON_DECODE_ANY, NULL));
    char *text = json_dumps(config, 0);
    const int status = (int)wg__lora_attach_config(&n->module, text, "adapter_config.json");
    free(text);
    json_decref(config);
    return status;
}

TEST(every_key_of_peft_is_read_changes_nothing_or_is_refused) {
    static const char *const refused[][2] = {
        {"init_lora_weights", "\"pissa\""},
        {"init_lora_weights", "\"pissa_niter_16\""},
        {"init_lora_weights", "\"olora\""},
        {"init_lora_weights", "\"loftq\""},
        {"init_lora_weights", "\"corda\""},
        {"init_lora_weights", "\"lora_ga\""},
        {"init_lora_weights", "\"mica\""},
        {"use_qalora", "true"},
        {"use_dora", "true"},
        {"use_bdlora", "{\"nblocks\": 2}"},
        {"lora_bias", "true"},
        {"ensure_weight_tying", "true"},
        {"alora_invocation_tokens", "[5, 6]"},
        {"arrow_config", "{\"top_k\": 3}"},
        {"alpha_pattern", "{\"query\": 8}"},
        {"rank_pattern", "{\"query\": 8}"},
        {"layers_to_transform", "0"},
        {"layer_replication", "[[0, 2]]"},
        {"exclude_modules", "[\"value\"]"},
        {"target_parameters", "[\"weight\"]"},
        {"trainable_token_indices", "[1]"},
        {"megatron_config", "{\"a\": 1}"},
        {"something_new", "0.5"},
    };
    static const char *const read[][2] = {
        {"init_lora_weights", "true"},
        {"init_lora_weights", "false"},
        {"init_lora_weights", "\"gaussian\""},
        {"init_lora_weights", "\"orthogonal\""},
        {"init_lora_weights", "\"eva\""},
        {"eva_config", "{\"rho\": 1.0}"},
        {"revision", "\"main\""},
        {"something_new", "false"},
    };
    for (size_t i = 0; i < WG_COUNT(refused); i++) {
        ck_assert_msg(attach_peft(net_new(), refused[i][0], refused[i][1]) < 0,
                      "%s %s is added as plain LoRA", refused[i][0], refused[i][1]);
        assert_error(WG_ERROR_FORMAT, refused[i][0]);
    }
    for (size_t i = 0; i < WG_COUNT(read); i++) {
        net *n = net_new();
        ck_assert_int_eq(attach_peft(n, read[i][0], read[i][1]), 1);
        ck_assert_double_eq(wg__lora_of(n->attention->query)->scale, 2);
    }
}
