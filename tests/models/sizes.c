/* Configurations that no memory holds are refused before any is taken. A case is a model. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/system.h"
#include "models/internal.h"
#include "tensor/easy.h"
#include "tensor/ops.h"
#include "tensor/profile.h"
#include "tests/support/testing.h"
#include "base/internal.h"
#include "tensor/internal.h"

static const char *model_name(int index) {
    return wg_model_type_at(index) ? wg_model_type_at(index)->name : NULL;
}

/* The first preset with this value for every one of these keys that it has; the configuration is
 * for the caller to free. */
static void *with(const wg_model_type *type, const char *const *keys, int64_t value) {
    char *text = wg_model_config_to_json(type, type->presets[0].config);
    json_t *json = json_loads(text, 0, NULL);
    for (; *keys; keys++)
        if (json_object_get(json, *keys))
            json_object_set_new(json, *keys, json_integer(value));
    wg_text_free(text);
    text = json_dumps(json, 0);
    void *config = malloc(type->settings.size);
    ck_assert_int_eq(wg_model_config_from_json(type, text, config), 0);
    free(text);
    json_decref(json);
    return config;
}

static const char *const widths[] = {"n_embd", "hidden_size", "d_model", NULL};
static const char *const layers[] = {
    "n_layer",        "num_hidden_layers", "num_layers", "num_decoder_layers",
    "encoder_layers", "decoder_layers",    NULL};
static const char *const vocabularies[] = {"vocab_size", "decoder_vocab_size", NULL};

START_TEST(sizes_beyond_memory_are_refused_before_any_is_taken) {
    static const struct {
        const char *const *keys;
        int64_t value;
    } cases[] = {{widths, (int64_t)15 << 27}, /* 2, 3, 5 and 6 heads divide it */
                 {layers, INT32_MAX},
                 {vocabularies, INT32_MAX}};
    const wg_model_type *type = wg_model_type_at(_i);
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        void *config = with(type, cases[i].keys, cases[i].value);
        const int64_t before = wg_alloc_get_stats().peak_bytes;
        wg_model made;
        assert_fails(wg_model_from_config(type, config, 1, &made), WG_ERROR_MEMORY, "are there");
        ck_assert_int_lt(wg_alloc_get_stats().peak_bytes - before, 1 << 20);
        free(config);
    }
}
END_TEST

/* The estimate is that of weights, which are exact, and a thousand bytes a tensor. */
START_TEST(the_bytes_of_a_model_are_known_before_it_is_made) {
    const wg_model_type *type = wg_model_type_at(_i);
    void *config = with(type, layers, 9);
    const double estimate = wg__model_bytes(type, config);
    wg_model model;
    const int64_t before = wg_alloc_get_stats().live_bytes;
    ck_assert_int_eq(wg_model_from_config(type, config, 1, &model), 0);
    const double bytes = (double)(wg_alloc_get_stats().live_bytes - before);
    wg_state_dict *state = wg_module_state(model.module);
    const double slots = 1024.0 * (double)state->count;
    ck_assert_double_eq(estimate - slots, wg__state_bytes(model.module));
    ck_assert_double_le(bytes, 1.1 * estimate);
    ck_assert_double_ge(bytes, 0.9 * estimate - slots);
    wg_state_dict_free(state);
    wg_model_free(&model);
    free(config);
}
END_TEST

START_TEST(the_system_says_how_much_memory_there_is) {
    const int64_t there = wg__memory_available();
    ck_assert_int_gt(there, 1 << 20);
    ck_assert_int_lt(there, (int64_t)1 << 50);
}
END_TEST

START_TEST(a_limit_of_addresses_counts_all_that_is_mapped) {
    const int64_t more = 256 << 20;
    struct rlimit before;
    wg__alloc_trim();
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit limit = {(rlim_t)(wg__mapped_bytes() + more), before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    const int64_t there = wg__memory_available();
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_le(there, more + wg_alloc_get_stats().cached_bytes);
    ck_assert_int_ge(there, more / 2);
}
END_TEST

/* ---- Operations: wg_model_costs beside what products count when the model runs ---- */

enum { LENGTH = 8, VOCABULARY = 300 };

static double counted_flops(const wg_model *model) {
    wg_tensor *ids = wg_ones(WG_I64, WG_DIMS(1, LENGTH));
    const double before = wg__counted_product_flops();
    wg_model_inputs inputs = {.ids = ids};
    if (model->type->shape == WG_ENCODER_DECODER)
        inputs.memory = wg_model_encode(model, ids, NULL);
    if (model->type->shape == WG_PREFIX_DECODER) {
        inputs.position_ids = inputs.block_position_ids = wg_zeros(WG_I64, WG_DIMS(1, LENGTH));
        inputs.part_a = wg_full(WG_I64, WG_DIMS(1), LENGTH);
    }
    assert_no_error();
    wg_model_logits(model, wg_model_forward(model, &inputs), NULL);
    assert_no_error();
    return wg__counted_product_flops() - before;
}

/* BERT's pooler and its head for sentences count, and do not run here: C (C + 2) multiply-adds for
 * each token. */
static double left_out(const wg_model *model) {
    const double width = (double)wg_model_sizes_of(model).width;
    return model->type->encoder.next_sentence ? 2 * width * (width + 2) * LENGTH : 0;
}

START_TEST(costs_are_the_operations_of_a_forward) {
    const wg_model_type *type = wg_model_type_at(_i);
    void *config = malloc(type->settings.size);
    wg_model model;
    wg_model_preset_config(type, type->bench_preset, config);
    wg_model_config_resize(type, config, VOCABULARY, 64);
    ck_assert_int_eq(wg_model_from_config(type, config, 1, &model), 0);
    wg_module_train(model.module, false);
    const wg_model_costs costs = wg_model_costs_of(&model);
    wg_scope scope;
    wg_scope_begin(&scope);
    const double told = LENGTH * (costs.token_flops + LENGTH * costs.position_flops),
                 counted = counted_flops(&model) + left_out(&model);
    ck_assert_msg(fabs(told / counted - 1) < 1e-9, "%s: %.0f told, %.0f counted", type->name, told,
                  counted);
    wg_scope_end(&scope, NULL);
    ck_assert_int_eq(costs.parameters, wg_module_parameter_count(model.module));
    wg_model_free(&model);
    free(config);
}
END_TEST

START_TEST(costs_of_a_configuration_are_those_of_its_model) {
    wg_model model;
    ck_assert_int_eq(wg_model_new(wg_model_type_find("bert"), "bert-tiny", 1, &model), 0);
    char *json = wg_model_config_json(&model);
    wg_model_costs costs = {0}, of_model = wg_model_costs_of(&model);
    ck_assert_int_eq(wg__model_costs_of_config(json, &costs), 0);
    ck_assert_int_eq(costs.weight_bytes, of_model.weight_bytes);
    ck_assert(costs.token_flops == of_model.token_flops);
    ck_assert(costs.type == model.type);
    wg_text_free(json);
    wg_model_free(&model);
    assert_fails(wg__model_costs_of_config("{\"model_type\": \"none\"}", &costs), WG_ERROR_STATE,
                 "none");
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        sizes_beyond_memory_are_refused_before_any_is_taken,
        the_bytes_of_a_model_are_known_before_it_is_made,
        costs_are_the_operations_of_a_forward,
    };
    int count = 0;
    while (model_name(count))
        count++;
    add_suite_of_each("sizes", tests, count, model_name);
    const TTest *const once[] = {the_system_says_how_much_memory_there_is,
                                 a_limit_of_addresses_counts_all_that_is_mapped,
                                 costs_of_a_configuration_are_those_of_its_model};
    add_suite("memory_available", once);
}
