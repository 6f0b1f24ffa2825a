/* Comparing a model with PyTorch's: see model_fixture.h. */
#include "tests/support/model_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/ops.h"
#include "tests/support/testing.h"

/* The next part of a flat file, in a parameter's shape and dtype; advances *at. */
static wg_tensor *take(wg_tensor *flat, int64_t *at, const wg_tensor *like) {
    wg_tensor *part = wg_slice(flat, 0, *at, *at + wg_tensor_count(like), 1);
    *at += wg_tensor_count(like);
    part = wg_reshape(part, wg_tensor_ndim(like), wg_tensor_shape(like));
    return wg_cast(part, wg_tensor_dtype(like));
}

wg_bert_config bert_fixture_config(void) {
    wg_bert_config config;
    wg_model_preset_config(&wg_bert_type, "bert-tiny", &config);
    config.vocab_size = 64;
    config.hidden_size = 16;
    config.num_attention_heads = 4;
    config.intermediate_size = 32;
    config.max_position_embeddings = 14;
    config.hidden_dropout_prob = 0;
    config.attention_probs_dropout_prob = 0;
    return config;
}

/* ---- Models by presets and settings ---- */

static const wg_model_type *type_of_preset(const char *name, const wg_model_preset **preset) {
    for (int i = 0; wg_model_type_at(i); i++)
        for (*preset = wg_model_type_at(i)->presets; (*preset)->name; ++*preset)
            if (strcmp((*preset)->name, name) == 0)
                return wg_model_type_at(i);
    ck_abort_msg("there is no preset %s", name);
}

json_t *settings_object(const char *settings) {
    char text[2048];
    snprintf(text, sizeof text, "{%s}", settings);
    for (char *quote = text; (quote = strchr(quote, '\''));)
        *quote = '"';
    json_t *object = json_loads(text, 0, NULL);
    ck_assert_msg(object != NULL, "%s is no JSON", text);
    return object;
}

wg_model preset_model(const char *name, const char *settings, uint64_t seed) {
    wg_model model;
    const wg_model_preset *preset;
    const wg_model_type *type = type_of_preset(name, &preset);
    char *text = wg_model_config_to_json(type, preset->config);
    json_t *config = json_loads(text, 0, NULL), *changes = settings_object(settings);
    wg_text_free(text);
    json_object_update(config, changes);
    text = json_dumps(config, 0);
    wg_model_from_json(text, seed, &model);
    assert_no_error();
    free(text);
    json_decref(changes);
    json_decref(config);
    return model;
}

void free_model(wg_model *model) {
    wg_scope_clear_root();
    wg_model_free(model);
}

/* ---- The models of the folders ---- */

#define LLAMA                                                                                      \
    "'vocab_size': 48, 'hidden_size': 16, 'intermediate_size': 24, 'num_hidden_layers': 2, "       \
    "'num_attention_heads': 4, 'num_key_value_heads': 2, 'max_position_embeddings': 16, "          \
    "'tie_word_embeddings': false"
#define MODERNBERT(biased)                                                                         \
    "'vocab_size': 48, 'hidden_size': 16, 'intermediate_size': 24, 'num_hidden_layers': 5, "       \
    "'num_attention_heads': 4, 'max_position_embeddings': 16, 'local_attention': 6, "              \
    "'pad_token_id': 0, 'bos_token_id': 0, 'eos_token_id': 0, 'cls_token_id': 0, "                 \
    "'sep_token_id': 0, 'norm_bias': " biased ", 'attention_bias': " biased                        \
    ", 'mlp_bias': " biased ", 'classifier_bias': " biased
#define T5                                                                                         \
    "'vocab_size': 40, 'd_model': 16, 'd_kv': 6, 'd_ff': 20, 'num_heads': 3, 'num_layers': 2, "    \
    "'num_decoder_layers': 2, 'relative_attention_num_buckets': 8, "                               \
    "'relative_attention_max_distance': 10, 'dropout_rate': 0"
#define TRANSFORMER                                                                                \
    ", 'decoder_vocab_size': 48, 'd_model': 16, 'encoder_layers': 2, 'decoder_layers': 2, "        \
    "'encoder_ffn_dim': 24, 'decoder_ffn_dim': 24, 'dropout': 0, 'max_position_embeddings': 16"

static const struct {
    const char *folder, *preset, *settings;
} fixtures[] = {
    {"decoders/gpt", "gpt2-tiny",
     "'vocab_size': 48, 'n_positions': 16, 'n_embd': 16, 'n_head': 4, 'n_inner': 24, "
     "'embd_pdrop': 0, 'attn_pdrop': 0, 'resid_pdrop': 0, 'bos_token_id': 0, 'eos_token_id': 0"},
    {"decoders/llama", "llama-15m", LLAMA},
    {"decoders/llama-bigrams", "llama-15m", LLAMA ", 'bigram_vocab_size': 40"},
    {"glm", "glm-tiny",
     "'vocab_size': 48, 'hidden_size': 16, 'num_layers': 2, 'num_attention_heads': 4, "
     "'max_sequence_length': 16, 'embedding_dropout_prob': 0, 'attention_dropout_prob': 0, "
     "'output_dropout_prob': 0"},
    {"modernbert/published", "modernbert-mini", MODERNBERT("false")},
    {"modernbert/biased", "modernbert-mini", MODERNBERT("true")},
    {"roberta", "roberta-mini",
     "'vocab_size': 48, 'hidden_size': 16, 'intermediate_size': 24, 'num_hidden_layers': 2, "
     "'num_attention_heads': 4, 'max_position_embeddings': 18, 'hidden_dropout_prob': 0, "
     "'attention_probs_dropout_prob': 0, 'pad_token_id': 3"},
    {"t5/1_0", "t5-small", T5},
    {"t5/1_1", "t5-v1_1-small", T5},
    {"transformer/post", "transformer-tiny",
     "'normalize_before': false, 'share_encoder_decoder_embeddings': true, "
     "'vocab_size': 48" TRANSFORMER},
    {"transformer/pre", "transformer-tiny",
     "'normalize_before': true, 'share_encoder_decoder_embeddings': false, "
     "'vocab_size': 40" TRANSFORMER},
};

const char *fixture_folder(int index) {
    return index < (int)WG_COUNT(fixtures) ? fixtures[index].folder : NULL;
}

wg_model new_fixture_model(const char *folder) {
    int index = 0;
    while (strcmp(fixtures[index].folder, folder) != 0)
        index++;
    return preset_model(fixtures[index].preset, fixtures[index].settings, 1);
}

wg_model load_fixture_model(const char *folder, wg_dtype dtype) {
    wg_model model = new_fixture_model(folder);
    load_model_fixture(folder, model.module, dtype);
    return model;
}

void load_model_fixture(const char *folder, wg_module *module, wg_dtype dtype) {
    assert_no_error();
    wg_state_dict *state = wg_module_state(module);
    wg_tensor *flat = fixture_tensor("%s/weights", folder);
    int64_t at = 0;
    bool recording = wg_set_grad_enabled(false);
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied) {
            wg_tensor *parameter = state->entries[i].slot->tensor;
            wg_copy_(parameter, take(flat, &at, parameter));
        }
    wg_set_grad_enabled(recording);
    assert_no_error();
    ck_assert_int_eq(at, wg_tensor_count(flat));
    wg_state_dict_free(state);
    ck_assert_int_eq(wg_module_to(module, dtype), 0);
}

void assert_relative(wg_tensor *x, wg_tensor *expected, double tolerance) {
    wg_tensor *wanted = wg_cast(expected, wg_tensor_dtype(x));
    assert_close(x, wanted, 0, tolerance * wg_item(wg_max(wg_abs(wanted), WG_ALL, false)));
}

static double largest(wg_tensor *x) {
    return wg_item(wg_max(wg_abs(x), WG_ALL, false));
}

/* A bias that adds the same number to all scores of a softmax changes nothing, so its gradient is 0
 * up to rounding: the tolerance is relative to the gradient of a parameter beside it. */
static double gradient_scale(wg_module *module, const char *path, wg_tensor *expected) {
    static const char *const pairs[][2] = {{"self.key.bias", "self.query.bias"},
                                           {"k_proj.bias", "q_proj.bias"},
                                           {"LayerNorm.bias", "LayerNorm.weight"},
                                           {"qa_outputs.bias", "qa_outputs.weight"}};
    const double own = largest(expected);
    if (own > 1e-12)
        return own;
    char sibling[128];
    for (size_t i = 0; i < WG_COUNT(pairs); i++) {
        const char *part = strstr(path, pairs[i][0]);
        if (!part)
            continue;
        snprintf(sibling, sizeof sibling, "%.*s%s", (int)(part - path), path, pairs[i][1]);
        return largest(wg_gradient(wg_module_find(module, sibling)->tensor));
    }
    return own;
}

void assert_model_gradients(const char *folder, wg_module *module, double tolerance) {
    wg_state_dict *state = wg_module_state(module);
    wg_tensor *flat = fixture_tensor("%s/gradients", folder);
    int64_t at = 0;
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied) {
            const wg_state_entry *entry = &state->entries[i];
            wg_tensor *expected = take(flat, &at, entry->slot->tensor);
            const double scale = gradient_scale(module, entry->path, expected);
            assert_close(wg_gradient(entry->slot->tensor), expected, 0, tolerance * scale);
        }
    ck_assert_int_eq(at, wg_tensor_count(flat));
    wg_state_dict_free(state);
}

/* Path and shape, in the form of a line of parameters.txt. */
static void describe(char *line, size_t size, const wg_state_entry *entry) {
    size_t used = (size_t)snprintf(line, size, "%s", entry->path);
    for (int i = 0; i < wg_tensor_ndim(entry->slot->tensor); i++)
        used += (size_t)snprintf(line + used, size - used, " %lld",
                                 (long long)wg_tensor_size(entry->slot->tensor, i));
    snprintf(line + used, size - used, "\n");
}

void assert_model_paths(const char *folder, wg_module *module) {
    char path[128], line[256], wanted[256];
    snprintf(path, sizeof path, "%s/parameters.txt", folder);
    FILE *file = fopen(fixture(path), "r");
    ck_assert_ptr_nonnull(file);
    wg_state_dict *state = wg_module_state(module);
    for (int64_t i = 0; i < state->count; i++)
        if (!state->entries[i].slot->tied) {
            describe(line, sizeof line, &state->entries[i]);
            ck_assert_ptr_nonnull(fgets(wanted, sizeof wanted, file));
            ck_assert_str_eq(line, wanted);
        }
    ck_assert_ptr_null(fgets(wanted, sizeof wanted, file));
    wg_state_dict_free(state);
    fclose(file);
}

void assert_model_training(const char *folder, wg_module *module, wg_optimizer *optimizer,
                           model_loss loss_of, void *context, double tolerance) {
    wg_tensor *wanted = fixture_tensor("%s/adamw_losses", folder);
    wg_optimizer_add_module(optimizer, module);
    for (int64_t step = 0; step < 10; step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *loss = loss_of(context);
        double expected = wg_at(wanted, &step);
        ck_assert_double_eq_tol(wg_item(loss), expected, tolerance * expected);
        ck_assert_int_eq(wg_backward(loss, NULL), 0);
        ck_assert_int_eq(wg_optimizer_step(optimizer, 2e-3), 0);
        wg_scope_end(&scope, NULL);
    }
    wg_optimizer_free(optimizer);
}

/* ---- Forward ---- */

wg_tensor *hidden_of_ids(const wg_model *model, wg_tensor *ids) {
    return wg_model_forward(model, &(wg_model_inputs){.ids = ids});
}

wg_tensor *logits_of_ids(const wg_model *model, wg_tensor *ids) {
    return wg_model_logits(model, hidden_of_ids(model, ids), NULL);
}

wg_tensor *loss_of_ids(const wg_model *model, wg_tensor *ids, wg_tensor *labels) {
    return wg_model_loss(model, hidden_of_ids(model, ids), NULL, labels, NULL);
}

wg_tensor *pair_loss_of(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                        wg_tensor *labels) {
    const wg_model_inputs inputs = {.ids = wg_model_shift_right(model, labels),
                                    .memory = wg_model_encode(model, source, keep),
                                    .memory_keep = keep};
    return wg_model_loss(model, wg_model_forward(model, &inputs), NULL, labels, NULL);
}
