/* Activation checkpointing in every model: the same gradients, bit for bit, with less memory. A
 * case is a model. */
#include "nn/stack.h"

#include <string.h>

#include "models/bert.h"
#include "models/glm.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/modernbert.h"
#include "models/t5.h"
#include "models/transformer.h"
#include "objectives/masked_lm.h"
#include "base/alloc.h"
#include "tensor/ops.h"
#include "tensor/profile.h"
#include "tests/support/model_fixture.h"
#include "tests/support/testing.h"
#include "nn/internal.h"
#include "models/internal.h"
#include "tensor/internal.h"

enum { B = 4, T = 24, VOCAB = 48, WIDTH = 32, SEED = 3 };
static int layers = 4;

/* Every kind of dropout that a model has. */
#define DROPOUT 0.2

/* ---- The models, with dropout everywhere, and what they lose on a batch ---- */

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

static void *gpt_new(void) {
    wg_gpt_config config;
    wg_model_preset_config(&wg_gpt_type, "gpt2-tiny", &config);
    config.vocab_size = VOCAB;
    config.n_positions = T;
    config.n_embd = WIDTH;
    config.n_head = 4;
    config.n_inner = 4 * WIDTH;
    config.n_layer = layers;
    config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = DROPOUT;
    config.bos_token_id = config.eos_token_id = -1;
    return wg__gpt_new(&config, SEED);
}

static wg_tensor *gpt_loss(void *model) {
    return loss_of_ids(&(wg_model){.type = &wg_gpt_type, .module = model}, ids(1), ids(2));
}

static void *llama_new(void) {
    wg_llama_config config;
    wg_model_preset_config(&wg_llama_type, "llama-15m", &config);
    config.vocab_size = VOCAB;
    config.hidden_size = WIDTH;
    config.intermediate_size = 3 * WIDTH;
    config.num_hidden_layers = layers;
    config.num_attention_heads = 4;
    config.num_key_value_heads = 2;
    config.max_position_embeddings = T;
    return wg__llama_new(&config, SEED);
}

static wg_tensor *llama_loss(void *model) {
    return loss_of_ids(&(wg_model){.type = &wg_llama_type, .module = model}, ids(1), ids(2));
}

static void *bert_new(void) {
    wg_bert_config config;
    wg_model_preset_config(&wg_bert_type, "bert-tiny", &config);
    config.vocab_size = VOCAB;
    config.hidden_size = WIDTH;
    config.intermediate_size = 4 * WIDTH;
    config.num_hidden_layers = layers;
    config.num_attention_heads = 4;
    config.max_position_embeddings = T;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = DROPOUT;
    return wg__bert_for_pretraining_new(&config, SEED);
}

static wg_tensor *bert_loss(void *model) {
    const wg__masked_batch batch = {
        .ids = ids(1),
        .keep = keep(),
        .positions = wg_arange(WG_I64, 0, (double)(B * T), 5),
        .labels = wg_full(WG_I64, WG_DIMS((B * T + 4) / 5), 7),
        .next_sentence_labels = wg_zeros(WG_I64, WG_DIMS(B)),
    };
    wg__masked_loss loss;
    const wg_model bert = {.type = &wg_bert_type, .module = model};
    return wg__masked_loss_of(&bert, &batch, 1, &loss) < 0 ? NULL
                                                           : wg_add(loss.parts[0], loss.parts[1]);
}

/* A window of T / 2, so that local layers have a mask of their own. */
static void *modernbert_new(void) {
    wg_modernbert_config config;
    wg_model_preset_config(&wg_modernbert_type, "modernbert-mini", &config);
    wg_model_config_resize(&wg_modernbert_type, &config, VOCAB, T);
    config.hidden_size = WIDTH;
    config.intermediate_size = 3 * WIDTH;
    config.num_hidden_layers = layers;
    config.num_attention_heads = 4;
    config.local_attention = T / 2;
    config.embedding_dropout = config.attention_dropout = config.mlp_dropout = DROPOUT;
    return wg__modernbert_for_masked_lm_new(&config, SEED);
}

static wg_tensor *modernbert_loss(void *model) {
    const wg_model modernbert = {.type = &wg_modernbert_type, .module = model};
    const wg_model_inputs inputs = {.ids = ids(1), .keep = keep()};
    return wg_model_loss(&modernbert, wg_model_forward(&modernbert, &inputs), NULL, ids(2), NULL);
}

static void *glm_new(void) {
    wg_glm_config config;
    wg_model_preset_config(&wg_glm_type, "glm-tiny", &config);
    config.vocab_size = VOCAB;
    config.hidden_size = WIDTH;
    config.num_layers = layers;
    config.num_attention_heads = 4;
    config.max_sequence_length = T;
    config.embedding_dropout_prob = config.attention_dropout_prob = DROPOUT;
    config.output_dropout_prob = DROPOUT;
    return wg__glm_new(&config, SEED);
}

static wg_tensor *glm_loss(void *model) {
    const wg_model glm = {.type = &wg_glm_type, .module = model};
    const wg_model_inputs inputs = {.ids = ids(1), .part_a = wg_full(WG_I64, WG_DIMS(B), T / 2)};
    return wg_model_loss(&glm, wg_model_forward(&glm, &inputs), NULL, ids(2), NULL);
}

static void *transformer_new(void) {
    wg_transformer_config config;
    wg_model_preset_config(&wg_transformer_type, "transformer-tiny", &config);
    config.vocab_size = config.decoder_vocab_size = VOCAB;
    config.d_model = WIDTH;
    config.encoder_layers = config.decoder_layers = layers;
    config.encoder_ffn_dim = config.decoder_ffn_dim = 4 * WIDTH;
    config.max_position_embeddings = T;
    config.dropout = config.attention_dropout = config.activation_dropout = DROPOUT;
    return wg__transformer_new(&config, SEED);
}

static wg_tensor *transformer_loss(void *model) {
    const wg_model transformer = {.type = &wg_transformer_type, .module = model};
    const wg_model_inputs inputs = {.ids = ids(2),
                                    .keep = keep(),
                                    .memory = wg_model_encode(&transformer, ids(1), keep()),
                                    .memory_keep = keep()};
    return wg_model_loss(&transformer, wg_model_forward(&transformer, &inputs), NULL, ids(3), NULL);
}

static void *t5_new(void) {
    wg_t5_config config;
    wg_model_preset_config(&wg_t5_type, "t5-v1_1-tiny", &config);
    config.vocab_size = VOCAB;
    config.d_model = WIDTH;
    config.d_kv = WIDTH / 4;
    config.d_ff = 3 * WIDTH;
    config.num_layers = config.num_decoder_layers = layers;
    config.dropout_rate = DROPOUT;
    return wg__t5_new(&config, SEED);
}

static wg_tensor *t5_loss(void *model) {
    return pair_loss_of(&(wg_model){.type = &wg_t5_type, .module = model}, ids(1), keep(), ids(2));
}

/* A model begins with its module. */
static const struct {
    const char *name;
    void *(*make)(void);
    wg_tensor *(*loss)(void *model);
} models[] = {
    {"gpt", gpt_new, gpt_loss},    {"llama", llama_new, llama_loss},
    {"bert", bert_new, bert_loss}, {"modernbert", modernbert_new, modernbert_loss},
    {"glm", glm_new, glm_loss},    {"transformer", transformer_new, transformer_loss},
    {"t5", t5_new, t5_loss},
};

static const char *model_name(int index) {
    return models[index].name;
}

/* ---- Backward, twice into the same gradients, by a new model ---- */

typedef struct outcome {
    wg_module *model;
    wg_state_dict *state; /* with the gradients */
    double losses[2];
    uint64_t drawn; /* the state of the generator */
    int64_t peak;   /* of memory, above that in use before */
} outcome;

static outcome run(int index, bool recompute) {
    outcome found = {.model = models[index].make()};
    assert_no_error();
    wg_module_checkpoint_activations(found.model, recompute);
    ck_assert_int_eq(wg__module_root(found.model)->checkpoints_activations, recompute);
    const int64_t before = peak_begin();
    for (int pass = 0; pass < 2; pass++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *loss = models[index].loss(found.model);
        found.losses[pass] = wg_item(loss);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        wg_scope_end(&scope, NULL);
    }
    assert_no_error();
    found.peak = peak_end(before);
    found.drawn = wg_module_generator(found.model)->offset;
    found.state = wg_module_state(found.model);
    return found;
}

static void free_outcome(outcome *found) {
    wg_state_dict_free(found->state);
    wg_module_free(found->model);
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
    outcome twice = run(_i, true), once = run(_i, false);
    for (int pass = 0; pass < 2; pass++)
        ck_assert_double_eq(twice.losses[pass], once.losses[pass]);
    ck_assert_msg(models[_i].make == llama_new || once.losses[0] != once.losses[1],
                  "dropout does not draw");
    ck_assert_uint_eq(twice.drawn, once.drawn);
    for (int64_t i = 0; i < once.state->count; i++)
        assert_same_gradient(&twice.state->entries[i], &once.state->entries[i]);
    free_outcome(&twice);
    free_outcome(&once);
}
END_TEST

static int64_t peak_of(int index, bool recompute, int with_layers) {
    layers = with_layers;
    outcome found = run(index, recompute);
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

START_TEST(lack_of_memory_anywhere_is_an_error_and_no_leak) {
    wg_module *model = models[_i].make();
    wg_module_checkpoint_activations(model, true);
    const int64_t tensors = wg_tensors_alive();
    bool done = false;
    for (int64_t n = 0; !done; n += 1 + n / 8) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg__alloc_fail_after(n);
        wg_tensor *loss = models[_i].loss(model);
        wg__alloc_fail_after(-1);
        done = loss;
        wg_scope_end(&scope, NULL);
        if (!done)
            assert_error(WG_ERROR_MEMORY, "");
        ck_assert_int_eq(wg_tensors_alive(), tensors);
    }
    wg_module_free(model);
}
END_TEST

/* ---- Hidden states at some positions alone ---- */

/* Positions that repeat, and that leave out all of some sequence. */
static wg_tensor *some_positions(void) {
    const int64_t places[] = {2, 5, 5, T, 2 * T + 1, 3 * T - 1};
    return wg_from_array(WG_I64, WG_DIMS(WG_COUNT(places)), places);
}

static wg_tensor *hidden_of(int index, void *module, wg_tensor *output_positions) {
    static const wg_model_type *const types[] = {
        &wg_gpt_type, &wg_llama_type,       &wg_bert_type, &wg_modernbert_type,
        &wg_glm_type, &wg_transformer_type, &wg_t5_type};
    const wg_model model = {.type = types[index], .module = module};
    wg_model_inputs inputs = {.ids = ids(1), .output_positions = output_positions};
    if (types[index]->shape == WG_ENCODER)
        inputs.keep = keep();
    if (types[index]->shape == WG_PREFIX_DECODER)
        inputs.part_a = wg_full(WG_I64, WG_DIMS(B), T / 2);
    if (types[index]->shape == WG_ENCODER_DECODER)
        inputs.memory = wg_model_encode(&model, ids(2), NULL);
    return wg_model_forward(&model, &inputs);
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
    wg_module *model = models[index].make();
    wg_module_train(model, false);
    wg_module_checkpoint_activations(model, recompute);
    wg_state_dict *state = wg_module_state(model);
    wg_tensor *all = hidden_of(index, model, NULL);
    wg_tensor *expected = wg_index_select(wg_flatten(all, 0, -2), 0, some_positions());
    wg_tensor *found = hidden_of(index, model, some_positions());
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
    wg_module_free(model);
}

START_TEST(hidden_states_at_output_positions_are_those_of_the_whole_forward) {
    assert_same_at_output_positions(_i, false);
}
END_TEST

START_TEST(hidden_states_at_output_positions_are_the_same_with_checkpointing) {
    assert_same_at_output_positions(_i, true);
}
END_TEST

/* Of an encoder's last layer all products but those of keys and values are of fewer rows. */
START_TEST(output_positions_make_the_last_layer_cheaper) {
    static const int pruned[] = {2, 3, 4};
    for (size_t i = 0; i < WG_COUNT(pruned); i++) {
        wg_module *model = models[pruned[i]].make();
        double flops = wg__counted_product_flops();
        hidden_of(pruned[i], model, NULL);
        const double whole = wg__counted_product_flops() - flops;
        flops = wg__counted_product_flops();
        hidden_of(pruned[i], model, some_positions());
        const double at_positions = wg__counted_product_flops() - flops;
        const double saved = whole - at_positions, layer = whole / layers;
        ck_assert_msg(saved > 0.7 * layer, "%s: %g of a layer's %g", model_name(pruned[i]), saved,
                      layer);
        wg_module_free(model);
    }
}
END_TEST

START_TEST(output_positions_beyond_the_batch_are_an_error) {
    wg_module *model = models[_i].make();
    const int64_t beyond = B * T;
    ck_assert_ptr_null(hidden_of(_i, model, wg_from_array(WG_I64, WG_DIMS(1), &beyond)));
    assert_error(WG_ERROR_INDEX, "");
    wg_module_free(model);
}
END_TEST

SUITES {
    const TTest *const of_each[] = {
        hidden_states_at_output_positions_are_those_of_the_whole_forward,
        hidden_states_at_output_positions_are_the_same_with_checkpointing,
        output_positions_beyond_the_batch_are_an_error,
        losses_gradients_and_draws_are_the_same_bits,
        the_peak_of_memory_falls,
        lack_of_memory_anywhere_is_an_error_and_no_leak,
    };
    add_suite_of_each("stack", of_each, WG_COUNT(models), model_name);
    const TTest *const of_all[] = {output_positions_make_the_last_layer_cheaper};
    add_suite("stack_positions", of_all);
}
