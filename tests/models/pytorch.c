/* Models against PyTorch (the scripts of tests/fixtures): logits, losses, gradients, training,
 * names, caches, padding. A case is a folder of the fixtures. */
#include "base/alloc.h"
#include "models/internal.h"
#include "tensor/ops.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"

/* A model and the batch of its fixture. Encoder-decoders read a source. */
typedef struct batch {
    wg_model model;
    wg_model_inputs inputs;
    wg_tensor *source, *source_keep, *positions, *labels;
} batch;

static wg_tensor *load(int index, const char *name) {
    return fixture_tensor("%s/%s", fixture_folder(index), name);
}

static batch load_batch(int index, wg_dtype dtype) {
    batch b = {.model = load_fixture_model(fixture_folder(index), dtype),
               .labels = load(index, "labels")};
    const wg_model_type *type = b.model.type;
    const bool transformer = type == &wg_transformer_type;
    if (type->shape == WG_ENCODER_DECODER) {
        b.source = load(index, transformer ? "source" : "ids");
        b.source_keep = load(index, transformer ? "source_keep" : "keep");
        b.inputs.ids = load(index, transformer ? "target" : "read");
        b.inputs.keep = transformer ? load(index, "target_keep") : NULL;
    } else {
        b.inputs.ids = load(index, "ids");
        b.inputs.keep = type->shape == WG_ENCODER ? load(index, "keep") : NULL;
    }
    if (type->shape == WG_PREFIX_DECODER) {
        b.inputs.position_ids = load(index, "position_ids");
        b.inputs.block_position_ids = load(index, "block_position_ids");
        b.inputs.part_a = load(index, "part_a");
        b.positions = load(index, "targets");
    }
    return b;
}

static wg_tensor *hidden_of(const batch *b) {
    wg_model_inputs inputs = b->inputs;
    if (b->source) {
        inputs.memory = wg_model_encode(&b->model, b->source, b->source_keep);
        inputs.memory_keep = b->source_keep;
    }
    return wg_model_forward(&b->model, &inputs);
}

static wg_tensor *logits_of(const batch *b) {
    return wg_detach(wg_model_logits(&b->model, hidden_of(b), NULL));
}

static wg_tensor *loss_of(void *context) {
    const batch *b = context;
    return wg_model_loss(&b->model, hidden_of(b), b->positions, b->labels, NULL);
}

/* ---- Beside PyTorch ---- */

static void check_model(int index, wg_dtype dtype, double tolerance) {
    batch b = load_batch(index, dtype);
    wg_tensor *logits = logits_of(&b);
    if (b.model.type == &wg_t5_type) {
        assert_relative(wg_detach(wg_model_encode(&b.model, b.source, b.source_keep)),
                        load(index, "memory"), tolerance);
        assert_close(wg_model_shift_right(&b.model, b.labels), b.inputs.ids, 0, 0);
    }
    if (b.model.type->shape == WG_ENCODER) /* logits at padding are 0 in the fixture */
        logits = wg_mul(logits, wg_cast(wg_unsqueeze(b.inputs.keep, -1), dtype));
    assert_relative(logits, load(index, "logits"), tolerance);
    wg_tensor *loss = loss_of(&b);
    assert_relative(wg_detach(loss), wg_select(load(index, "loss"), 0, 0), tolerance);
    ck_assert_int_eq(wg_backward(loss, NULL), 0);
    assert_model_gradients(fixture_folder(index), b.model.module, tolerance);
    free_model(&b.model);
}

START_TEST(logits_loss_and_every_gradient_equal_pytorch) {
    const wg_model model = new_fixture_model(fixture_folder(_i));
    const bool encoder = model.type->shape == WG_ENCODER;
    wg_module_free(model.module);
    check_model(_i, WG_F64, encoder ? 1e-10 : 1e-11);
    check_model(_i, WG_F32, 1e-5);
}
END_TEST

START_TEST(ten_steps_of_adamw_lose_what_pytorch_loses) {
    batch b = load_batch(_i, WG_F32);
    const wg_model_type *type = b.model.type;
    const wg_adamw_options usual = {.beta2 = 0.95, .weight_decay = 0.1},
                           of_transformer = {.beta2 = 0.98, .eps = 1e-9, .weight_decay = 0.1};
    const wg_adamw_options *options = type == &wg_transformer_type ? &of_transformer : &usual;
    assert_model_training(fixture_folder(_i), b.model.module,
                          wg_adamw_new(type == &wg_t5_type ? NULL : options), loss_of, &b, 1e-4);
    free_model(&b.model);
}
END_TEST

START_TEST(parameters_have_the_published_paths_and_shapes) {
    wg_model model = new_fixture_model(fixture_folder(_i));
    assert_model_paths(fixture_folder(_i), model.module);
    free_model(&model);
}
END_TEST

START_TEST(logits_at_positions_are_rows_of_those_everywhere) {
    batch b = load_batch(_i, WG_F64);
    wg_tensor *hidden = wg_detach(hidden_of(&b)), *all = wg_model_logits(&b.model, hidden, NULL);
    wg_tensor *positions = wg_from_array(WG_I64, WG_DIMS(3), (int64_t[]){7, 0, 9});
    assert_relative(wg_model_logits(&b.model, hidden, positions),
                    wg_index_select(wg_flatten(all, 0, 1), 0, positions), 1e-11);
    free_model(&b.model);
}
END_TEST

/* ---- Generation ---- */

/* Of models with causal attention alone. */
START_TEST(caches_give_token_by_token_the_logits_of_all_at_once) {
    enum { MOST = 16 };
    batch b = load_batch(_i, WG_F32);
    const wg_model_type *type = b.model.type;
    const int64_t length = wg_tensor_size(b.inputs.ids, 1),
                  layers = wg_model_sizes_of(&b.model).layers,
                  memory = b.source ? wg_tensor_size(b.source, 1) : 0;
    wg_kv_cache caches[MOST] = {0}, memory_caches[MOST] = {0};
    wg_tensor *ids = b.inputs.ids, *parts[MOST];
    int count = 0;
    wg_set_grad_enabled(false);
    b.inputs.keep = NULL; /* padding follows, where causal attention does not see it */
    b.inputs.causal = true;
    if (type->shape & (WG_DECODER | WG_ENCODER_DECODER) || type->encoder.takes_causal) {
        wg_tensor *all = logits_of(&b);
        for (int64_t i = 0; i < layers; i++) {
            wg_kv_cache_init(&caches[i], length);
            wg_kv_cache_init(&memory_caches[i], memory);
        }
        b.inputs.caches = caches;
        b.inputs.memory_caches = memory_caches;
        for (int64_t begin = 0, step = 3; begin < length; begin += step, step = 1) {
            b.inputs.ids = wg_slice(ids, 1, begin, begin + step, 1);
            b.inputs.previous_ids = begin > 0 ? wg_select(ids, 1, begin - 1) : NULL;
            parts[count++] = logits_of(&b);
        }
        assert_relative(wg_cat(count, parts, 1), all, 1e-5);
        ck_assert_int_eq(caches[0].length, length);
        ck_assert_int_eq(memory_caches[0].length, memory);
        for (int64_t i = 0; i < layers; i++) {
            wg_kv_cache_clear(&caches[i]);
            wg_kv_cache_clear(&memory_caches[i]);
        }
    }
    wg_set_grad_enabled(true);
    free_model(&b.model);
}
END_TEST

/* A shorter text in a batch may begin with padding, which is masked, and has positions of its own.
 */
START_TEST(padding_in_front_changes_nothing) {
    enum { PADDING = 3 };
    batch b = load_batch(_i, WG_F32);
    const wg_model_type *type = b.model.type;
    wg_set_grad_enabled(false);
    wg_tensor *text = wg_slice(b.inputs.ids, 0, 0, 1, 1);
    const int64_t length = wg_tensor_size(text, 1);
    if (b.source) {
        b.source = wg_slice(b.source, 0, 0, 1, 1);
        b.source_keep = NULL;
    }
    wg_tensor *front = wg_zeros(WG_I64, WG_DIMS(1, PADDING));
    wg_tensor *kept = wg_ge(wg_arange(WG_I64, -PADDING, (double)length, 1), wg_scalar(WG_I64, 0));
    wg_tensor *positions = wg_relu(wg_arange(WG_I64, -PADDING, (double)length, 1));
    const bool takes_positions =
        type->shape == WG_DECODER || type == &wg_transformer_type || type == &wg_modernbert_type;
    for (int causal = 0; takes_positions && causal < 2; causal++) {
        b.inputs = (wg_model_inputs){.ids = text, .causal = causal};
        wg_tensor *wanted = logits_of(&b);
        b.inputs = (wg_model_inputs){.ids = wg_cat(2, (wg_tensor *[]){front, text}, 1),
                                     .keep = wg_unsqueeze(kept, 0),
                                     .position_ids = wg_unsqueeze(positions, 0),
                                     .causal = causal};
        assert_relative(wg_slice(logits_of(&b), 1, PADDING, WG_END, 1), wanted, 1e-5);
    }
    wg_set_grad_enabled(true);
    free_model(&b.model);
}
END_TEST

/* ---- Errors, configurations ---- */

static wg_tensor *first_states(const wg_model *model, wg_tensor *ids) {
    return model->type->shape == WG_ENCODER_DECODER ? wg_model_encode(model, ids, NULL)
                                                    : hidden_of_ids(model, ids);
}

START_TEST(ids_that_do_not_fit_are_refused) {
    wg_model model = new_fixture_model(fixture_folder(_i));
    const int64_t most = wg_model_sizes_of(&model).positions;
    assert_fails(first_states(&model, wg_zeros(WG_I64, WG_DIMS(3))), WG_ERROR_SHAPE,
                 "ids have rank 1; wanted (B, T)");
    if (model.type->shape != WG_PREFIX_DECODER && most != INT64_MAX) {
        char part[64];
        snprintf(part, sizeof part, "%d positions are more than the model's %d", (int)most + 1,
                 (int)most);
        ck_assert_ptr_nonnull(first_states(&model, wg_ones(WG_I64, WG_DIMS(1, most))));
        assert_fails(first_states(&model, wg_ones(WG_I64, WG_DIMS(1, most + 1))), WG_ERROR_SHAPE,
                     part);
    }
    free_model(&model);
}
END_TEST

START_TEST(a_configuration_goes_through_json_and_back) {
    wg_model model = new_fixture_model(fixture_folder(_i));
    char *json = wg_model_config_json(&model);
    void *config = wg__calloc(1, model.type->settings.size);
    ck_assert_int_eq(wg_model_config_from_json(model.type, json, config), 0);
    char *again = wg_model_config_to_json(model.type, config);
    ck_assert_str_eq(json, again);
    wg__free(config);
    wg_text_free(json);
    wg_text_free(again);
    free_model(&model);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        logits_loss_and_every_gradient_equal_pytorch,
        ten_steps_of_adamw_lose_what_pytorch_loses,
        parameters_have_the_published_paths_and_shapes,
        logits_at_positions_are_rows_of_those_everywhere,
        caches_give_token_by_token_the_logits_of_all_at_once,
        padding_in_front_changes_nothing,
        ids_that_do_not_fit_are_refused,
        a_configuration_goes_through_json_and_back,
    };
    int count = 0;
    while (fixture_folder(count))
        count++;
    add_suite_of_each("pytorch", of_each, count, fixture_folder);
}
