/* Activation checkpointing in every model: the same gradients, bit for bit, with less memory. A
 * case is a model. */
#include "nn/stack.h"

#include <string.h>

#include "objectives/masked_lm.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tensor/profile.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "nn/internal.h"
#include "models/internal.h"
#include "tensor/internal.h"

enum { B = 4, T = 24, VOCAB = 48, LAYERS = 4, SEED = 3 };

/* ---- The models, and their loss of a batch ---- */

static wg_tensor *ids(uint64_t seed) {
    wg_generator generator = {.seed = seed};
    return wg_randint(&generator, 1, VOCAB, WG_DIMS(B, T));
}

/* The last three of each sequence are padding. */
static wg_tensor *keep(void) {
    return wg_expand(
        wg_lt(wg_arange(WG_I64, 0, T, 1), wg_full(WG_I64, WG_DIMS(1), (double)(T - 3))),
        WG_DIMS(B, T));
}

/* Each with all kinds of dropout that it has, and a number of layers. */
static const struct {
    const char *name, *preset, *settings;
} models[] = {
    {"gpt", "gpt2-tiny",
     "'vocab_size': 48, 'n_positions': 24, 'n_embd': 32, 'n_head': 4, 'n_inner': 128, "
     "'n_layer': %1$d, 'embd_pdrop': 0.2, 'attn_pdrop': 0.2, 'resid_pdrop': 0.2, "
     "'bos_token_id': null, 'eos_token_id': null"},
    {"llama", "llama-15m",
     "'vocab_size': 48, 'hidden_size': 32, 'intermediate_size': 96, 'num_hidden_layers': %1$d, "
     "'num_attention_heads': 4, 'num_key_value_heads': 2, 'max_position_embeddings': 24"},
    {"bert", "bert-tiny",
     "'vocab_size': 48, 'hidden_size': 32, 'intermediate_size': 128, 'num_hidden_layers': %1$d, "
     "'num_attention_heads': 4, 'max_position_embeddings': 24, 'hidden_dropout_prob': 0.2, "
     "'attention_probs_dropout_prob': 0.2"},
    /* a window of half the text, so that local layers have a mask of their own */
    {"modernbert", "modernbert-mini",
     "'vocab_size': 48, 'hidden_size': 32, 'intermediate_size': 96, 'num_hidden_layers': %1$d, "
     "'num_attention_heads': 4, 'max_position_embeddings': 24, 'local_attention': 12, "
     "'embedding_dropout': 0.2, 'attention_dropout': 0.2, 'mlp_dropout': 0.2, "
     "'pad_token_id': 0, 'bos_token_id': 0, 'eos_token_id': 0, 'cls_token_id': 0, "
     "'sep_token_id': 0"},
    {"glm", "glm-tiny",
     "'vocab_size': 48, 'hidden_size': 32, 'num_layers': %1$d, 'num_attention_heads': 4, "
     "'max_sequence_length': 24, 'embedding_dropout_prob': 0.2, 'attention_dropout_prob': 0.2, "
     "'output_dropout_prob': 0.2"},
    {"transformer", "transformer-tiny",
     "'vocab_size': 48, 'decoder_vocab_size': 48, 'd_model': 32, 'encoder_layers': %1$d, "
     "'decoder_layers': %1$d, 'encoder_ffn_dim': 128, 'decoder_ffn_dim': 128, "
     "'max_position_embeddings': 24, 'dropout': 0.2, 'attention_dropout': 0.2, "
     "'activation_dropout': 0.2"},
    {"t5", "t5-v1_1-tiny",
     "'vocab_size': 48, 'd_model': 32, 'd_kv': 8, 'd_ff': 96, 'num_layers': %1$d, "
     "'num_decoder_layers': %1$d, 'dropout_rate': 0.2"},
};

static wg_model make(int index, int layers) {
    char settings[1024];
    snprintf(settings, sizeof settings, models[index].settings, layers);
    return preset_model(models[index].preset, settings, SEED);
}

static wg_model_inputs inputs_of(const wg_model *model) {
    const wg_model_type *type = model->type;
    wg_model_inputs inputs = {.ids = ids(1)};
    if (type->shape == WG_ENCODER || type == &wg_transformer_type)
        inputs.keep = keep();
    if (type->shape == WG_PREFIX_DECODER)
        inputs.part_a = wg_full(WG_I64, WG_DIMS(B), T / 2);
    if (type->shape == WG_ENCODER_DECODER) {
        inputs.memory = wg_model_encode(model, ids(2), keep());
        inputs.memory_keep = keep();
    }
    return inputs;
}

static wg_tensor *loss_of(const wg_model *model) {
    const wg_model_inputs inputs = inputs_of(model);
    if (model->type != &wg_bert_type)
        return wg_model_loss(model, wg_model_forward(model, &inputs), NULL, ids(3), NULL);
    const wg__masked_batch batch = {
        .ids = inputs.ids,
        .keep = inputs.keep,
        .positions = wg_arange(WG_I64, 0, (double)(B * T), 5),
        .labels = wg_full(WG_I64, WG_DIMS((B * T + 4) / 5), 7),
        .next_sentence_labels = wg_zeros(WG_I64, WG_DIMS(B)),
    };
    wg__masked_loss loss;
    return wg__masked_loss_of(model, &batch, 1, &loss) < 0 ? NULL
                                                           : wg_add(loss.parts[0], loss.parts[1]);
}

static const char *model_name(int index) {
    return models[index].name;
}

/* ---- Backward, twice into the same gradients, by a new model ---- */

typedef struct outcome {
    wg_model model;
    wg_state_dict *state; /* with the gradients */
    double losses[2];
    uint64_t drawn; /* the state of the generator */
    int64_t peak;   /* of memory, above that in use before */
} outcome;

static outcome run(int index, bool recompute, int layers) {
    outcome found = {.model = make(index, layers)};
    wg_module_checkpoint_activations(found.model.module, recompute);
    ck_assert_int_eq(wg__module_root(found.model.module)->checkpoints_activations, recompute);
    const int64_t before = peak_begin();
    for (int pass = 0; pass < 2; pass++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *loss = loss_of(&found.model);
        found.losses[pass] = wg_item(loss);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        wg_scope_end(&scope, NULL);
    }
    assert_no_error();
    found.peak = peak_end(before);
    found.drawn = wg_module_generator(found.model.module)->offset;
    found.state = wg_module_state(found.model.module);
    return found;
}

static void free_outcome(outcome *found) {
    wg_state_dict_free(found->state);
    wg_model_free(&found->model);
}

static void assert_same_gradient(const wg_state_entry *a, const wg_state_entry *b) {
    if (a->slot->kind != WG_SLOT_PARAMETER)
        return;
    wg_tensor *x = wg_gradient(a->slot->tensor), *y = wg_gradient(b->slot->tensor);
    ck_assert_msg(!x == !y, "%s has a gradient in one of the two", a->path);
    if (x)
        ck_assert_msg(memcmp(wg_tensor_data(x), wg_tensor_data(y),
                             (size_t)wg_tensor_count(x) * sizeof(float)) == 0,
                      "%s has another gradient", a->path);
}

START_TEST(losses_gradients_and_draws_are_the_same_bits) {
    outcome twice = run(_i, true, LAYERS), once = run(_i, false, LAYERS);
    for (int pass = 0; pass < 2; pass++)
        ck_assert_double_eq(twice.losses[pass], once.losses[pass]);
    ck_assert_msg(once.model.type == &wg_llama_type || once.losses[0] != once.losses[1],
                  "dropout does not draw");
    ck_assert_uint_eq(twice.drawn, once.drawn);
    for (int64_t i = 0; i < once.state->count; i++)
        assert_same_gradient(&twice.state->entries[i], &once.state->entries[i]);
    free_outcome(&twice);
    free_outcome(&once);
}
END_TEST

static int64_t peak_of(int index, bool recompute, int layers) {
    outcome found = run(index, recompute, layers);
    free_outcome(&found);
    return found.peak;
}

/* Of four more layers: the workspace of products, which is larger with more threads, and the head
 * are as large in a model of fewer layers. */
START_TEST(the_peak_of_memory_falls) {
    const int64_t twice = peak_of(_i, true, 8) - peak_of(_i, true, 4),
                  once = peak_of(_i, false, 8) - peak_of(_i, false, 4);
    ck_assert_msg(twice * 5 < once * 2, "%lld bytes with, %lld without", (long long)twice,
                  (long long)once);
}
END_TEST

/* Makes a model and takes a step, with the n-th allocation failing; false: one failed. */
static bool step_without_memory(const wg_model_type *type, const void *config, int64_t n) {
    wg_model model;
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__alloc_fail_after(n);
    bool whole = wg_model_from_config(type, config, SEED, &model) == 0;
    if (whole) {
        wg_module_checkpoint_activations(model.module, n % 2);
        wg_tensor *loss = loss_of(&model);
        whole = loss && wg_backward(loss, NULL) == 0;
    }
    wg__alloc_fail_after(-1);
    wg_scope_end(&scope, NULL);
    wg_model_free(&model);
    return whole;
}

START_TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    wg_model model = make(_i, 1);
    const void *config = model.type->config(model.module);
    const int64_t alive = wg_tensors_alive();
    int64_t n = 0;
    for (; !step_without_memory(model.type, config, n); n += 1 + n / 50) {
        assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_tensors_alive(), alive);
    }
    assert_no_error();
    ck_assert_int_gt(n, 300);
    wg_model_free(&model);
}
END_TEST

/* ---- Hidden states at some positions alone ---- */

/* Positions that repeat, and that leave out all of some sequence. */
static wg_tensor *some_positions(void) {
    const int64_t places[] = {2, 5, 5, T, 2 * T + 1, 3 * T - 1};
    return wg_from_array(WG_I64, WG_DIMS(WG_COUNT(places)), places);
}

static wg_tensor *hidden_of(const wg_model *model, wg_tensor *output_positions) {
    wg_model_inputs inputs = inputs_of(model);
    inputs.output_positions = output_positions;
    return wg_model_forward(model, &inputs);
}

/* A copy of the gradient, which is zeroed then; NULL: it has none. */
static wg_tensor *take_gradient(const wg_state_entry *entry) {
    wg_tensor *gradient =
        entry->slot->kind == WG_SLOT_PARAMETER ? wg_gradient(entry->slot->tensor) : NULL;
    wg_tensor *copy = gradient ? wg_clone(gradient) : NULL;
    if (gradient)
        wg_zero_grad(entry->slot->tensor);
    return copy;
}

/* Hidden states there and the gradients of a function of them are those of the whole forward, of
 * which these rows are selected afterwards; also where the last layer runs twice. */
static void assert_same_at_output_positions(int index, bool recompute) {
    wg_model model = make(index, LAYERS);
    wg_module_train(model.module, false);
    wg_module_checkpoint_activations(model.module, recompute);
    wg_state_dict *state = wg_module_state(model.module);
    wg_tensor *all = hidden_of(&model, NULL);
    wg_tensor *expected = wg_index_select(wg_flatten(all, 0, -2), 0, some_positions());
    wg_tensor *found = hidden_of(&model, some_positions());
    assert_close(found, expected, 1e-5, 1e-5);
    ck_assert_int_eq(wg_backward(wg_sum(wg_square(expected), WG_ALL, false), NULL), 0);
    wg_tensor **gradients = calloc((size_t)state->count, sizeof(wg_tensor *));
    for (int64_t i = 0; i < state->count; i++)
        gradients[i] = take_gradient(&state->entries[i]);
    ck_assert_int_eq(wg_backward(wg_sum(wg_square(found), WG_ALL, false), NULL), 0);
    for (int64_t i = 0; i < state->count; i++) {
        wg_tensor *gradient = take_gradient(&state->entries[i]);
        ck_assert_msg(!gradient == !gradients[i], "%s has a gradient in one of the two",
                      state->entries[i].path);
        if (gradient)
            assert_close(gradient, gradients[i], 1e-4, 1e-4);
    }
    free(gradients);
    wg_state_dict_free(state);
    free_model(&model);
}

START_TEST(hidden_states_at_output_positions_are_those_of_the_whole_forward) {
    assert_same_at_output_positions(_i, false);
    assert_same_at_output_positions(_i, true);
}
END_TEST

/* Of an encoder's last layer all products but those of keys and values are of fewer rows. */
START_TEST(output_positions_make_the_last_layer_cheaper) {
    static const int pruned[] = {2, 3, 4};
    for (size_t i = 0; i < WG_COUNT(pruned); i++) {
        wg_model model = make(pruned[i], LAYERS);
        double flops = wg__counted_product_flops();
        hidden_of(&model, NULL);
        const double whole = wg__counted_product_flops() - flops;
        flops = wg__counted_product_flops();
        hidden_of(&model, some_positions());
        const double at_positions = wg__counted_product_flops() - flops;
        const double saved = whole - at_positions, layer = whole / LAYERS;
        ck_assert_msg(saved > 0.7 * layer, "%s: %g of a layer's %g", model_name(pruned[i]), saved,
                      layer);
        wg_model_free(&model);
    }
}
END_TEST

START_TEST(output_positions_beyond_the_batch_are_an_error) {
    wg_model model = make(_i, LAYERS);
    const int64_t beyond = B * T;
    assert_fails(hidden_of(&model, wg_from_array(WG_I64, WG_DIMS(1), &beyond)), WG_ERROR_INDEX, "");
    wg_model_free(&model);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        hidden_states_at_output_positions_are_those_of_the_whole_forward,
        output_positions_beyond_the_batch_are_an_error,
        losses_gradients_and_draws_are_the_same_bits,
        the_peak_of_memory_falls,
        lack_of_memory_anywhere_is_an_error_and_no_leak,
    };
    add_suite_of_each("stack", of_each, WG_COUNT(models), model_name);
    const TTest *const of_all[] = {output_positions_make_the_last_layer_cheaper};
    add_suite("stack_positions", of_all);
}
