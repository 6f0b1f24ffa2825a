/* LoRA adapters in PEFT's files, and in checkpoints. */
#include "io/weights/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/checkpoint/checkpoint.h"
#include "io/weights/file.h"
#include "io/weights/weights.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tests/support/testing.h"

enum { C = 12, T = 4 };

typedef struct net {
    wg_module module;
    wg_multi_head_attention *attention;
    wg_linear *head;
} net;

static net *net_new(void) {
    net *made = wg_module_new(NULL, "", sizeof *made);
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
    set(n->attention->query->adapter.b->weight, wg_randn(&generator, WG_F32, WG_DIMS(C, 2)));
    set(n->attention->value->adapter.b->weight, wg_randn(&generator, WG_F32, WG_DIMS(C, 2)));
    set(n->head->weight, wg_randn(&generator, WG_F32, WG_DIMS(3, C)));
}

static wg_tensor *run(net *n) {
    wg_generator generator = {.seed = 3};
    wg_tensor *x = wg_randn(&generator, WG_F32, WG_DIMS(1, T, C));
    wg_attention_inputs inputs = {0};
    return wg_linear_forward(n->head, wg_multi_head_attention_forward(n->attention, x, &inputs));
}

START_TEST(a_saved_adapter_has_pefts_names_and_loads_as_it_was) {
    net *n = net_new(), *other = net_new();
    attach(n);
    move(n);
    ck_assert_int_eq(wg_lora_save(&n->module, "bert.", in_scratch("adapter")), 0);
    ck_assert_int_eq(files_in(in_scratch("adapter")), 2);
    wg_weights *file = wg__weights_open_as(in_scratch("adapter/adapter_model.safetensors"),
                                           &wg__weights_safetensors);
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
    wg_weights_close(file);
    const bytes json = read_bytes(in_scratch("adapter/adapter_config.json"));
    static const char *const parts[] = {"\"peft_type\": \"LORA\"",
                                        "\"r\": 2",
                                        "\"lora_alpha\": 6.0",
                                        "\"target_modules\": [\"query\", \"value\"]",
                                        "\"modules_to_save\": [\"classifier\"]",
                                        "\"fan_in_fan_out\": false"};
    char text[1024];
    snprintf(text, sizeof text, "%.*s", (int)json.count, (const char *)json.data);
    free(json.data);
    for (size_t i = 0; i < WG_COUNT(parts); i++)
        ck_assert_msg(strstr(text, parts[i]), "%s in %s", parts[i], text);

    ck_assert_int_eq(wg_lora_load(&other->module, "bert.", in_scratch("adapter")), 2);
    assert_close(run(other), run(n), 0, 0);
    ck_assert(wg_requires_grad(other->head->weight));
    ck_assert(!wg_requires_grad(other->attention->key->weight));
    wg_module_free(&other->module);
    wg_module_free(&n->module);
}
END_TEST

START_TEST(an_adapter_of_another_model_is_refused_and_nothing_stays) {
    net *n = net_new();
    attach(n);
    ck_assert_int_eq(wg_lora_save(&n->module, "bert.", in_scratch("adapter")), 0);
    net *other = net_new();
    ck_assert_int_eq(wg_lora_load(&other->module, NULL, in_scratch("adapter")), -1);
    assert_error(WG_ERROR_FORMAT, "the model has no \"base_model.model.bert.");
    ck_assert_int_eq(wg_lora_count(&other->module), 0);
    ck_assert(wg_requires_grad(other->attention->key->weight));
    wg_module_free(&other->module);
    wg_module_free(&n->module);
}
END_TEST

/* A checkpoint as a training writes it: /model with the adapters in it, and /lora. */
static void write_checkpoint(net *n, const char *path) {
    char *config = wg_lora_config(&n->module);
    wg_checkpoint *file = wg_checkpoint_create(path);
    ck_assert_int_eq(wg_checkpoint_put_module(file, "/model", &n->module), 0);
    ck_assert_int_eq(wg_checkpoint_put_text(file, "/lora", config), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    wg_text_free(config);
}

START_TEST(a_checkpoint_reads_as_weights_with_the_adapters_added) {
    net *n = net_new(), *merged = net_new();
    attach(n);
    move(n);
    write_checkpoint(n, in_scratch("run.h5"));
    wg_weights *file = wg__weights_open_as(in_scratch("run.h5"), &wg__weights_hdf5);
    ck_assert_int_eq(wg_weights_count(file), 10);
    ck_assert_int_eq(wg_weights_get_module(file, &merged->module), 0);
    wg_weights_close(file);
    assert_close(run(merged), run(n), 1e-5, 1e-5);

    ck_assert_int_eq(wg_lora_export(in_scratch("run.h5"), NULL, in_scratch("adapter")), 0);
    net *other = net_new();
    ck_assert_int_eq(wg_lora_load(&other->module, NULL, in_scratch("adapter")), 2);
    assert_close(run(other), run(n), 0, 0);
    wg_module_free(&other->module);
    wg_module_free(&merged->module);
    wg_module_free(&n->module);
}
END_TEST

START_TEST(configurations_of_other_kinds_are_refused) {
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
        ck_assert_int_eq(wg_lora_attach_config(&n->module, wrong[i].json, "adapter_config.json"),
                         -1);
        assert_error(WG_ERROR_FORMAT, wrong[i].part);
        ck_assert_int_eq(wg_lora_count(&n->module), 0);
    }
    const char *rslora = "{\"peft_type\": \"LORA\", \"r\": 4, \"lora_alpha\": 6, \"use_rslora\": "
                         "true, \"target_modules\": \"query\", \"use_dora\": false, "
                         "\"rank_pattern\": {}, \"bias\": \"none\"}";
    ck_assert_int_eq(wg_lora_attach_config(&n->module, rslora, "adapter_config.json"), 1);
    ck_assert_double_eq(n->attention->query->adapter.scale, 3); /* 6 / sqrt(4) */
    ck_assert_ptr_null(wg_lora_config(NULL));
    wg_module_free(&n->module);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_saved_adapter_has_pefts_names_and_loads_as_it_was,
        an_adapter_of_another_model_is_refused_and_nothing_stays,
        a_checkpoint_reads_as_weights_with_the_adapters_added,
        configurations_of_other_kinds_are_refused,
    };
    add_suite("adapter", tests);
}
