/* The models of the workload, each with a batch of random tokens: shapes are those of the peers
 * that bench/README.md names, position for position. */
#include <stdlib.h>

#include "bench/workload.h"
#include "models/bert.h"
#include "models/glm.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/t5.h"
#include "models/transformer.h"
#include "nn/linear.h"
#include "tensor/easy.h"
#include "tensor/ops.h"

/* What a batch is made of; a kind uses what it needs. */
typedef struct parts {
    wg_language_model language_model;
    wg_bert_for_pretraining *bert;
    wg_glm *glm;
    wg_transformer *transformer;
    wg_t5 *t5;
    wg_linear *hidden, *output;
    wg_bert_batch bert_batch;
    wg_transformer_batch pairs;
    wg_tensor *ids, *labels, *positions, *features;
    wg_glm_inputs glm_inputs;
} parts;

static parts *new_parts(wg__workload *w) {
    w->parts = calloc(1, sizeof(parts));
    if (!w->parts)
        wg_fail(WG_ERROR_MEMORY, "bench", "no memory");
    return w->parts;
}

/* (B, T) i64, none of them 0, which is padding in some vocabularies. */
static wg_tensor *random_ids(const wg__workload *w, wg_generator *generator) {
    return wg_randint(generator, 1, w->vocabulary, WG_DIMS(w->batch, w->sequence));
}

static wg_tensor *keep_all(const wg__workload *w) {
    return wg_ones(WG_BOOL, WG_DIMS(w->batch, w->sequence));
}

/* ---- Models that predict the next token ---- */

static int begin_causal(wg__workload *w, parts *mine) {
    wg_generator generator = {.seed = 1};
    w->module = mine->language_model.module;
    mine->ids = random_ids(w, &generator);
    mine->labels = random_ids(w, &generator);
    w->tokens = w->batch * w->sequence;
    return 0;
}

static int begin_gpt(wg__workload *w) {
    parts *mine = new_parts(w);
    wg_gpt_config config;
    if (!mine || wg_gpt_config_preset(&config, w->preset) < 0)
        return -1;
    config.vocab_size = w->vocabulary;
    config.n_positions = w->sequence;
    config.bos_token_id = config.eos_token_id = -1;
    config.embd_pdrop = config.attn_pdrop = config.resid_pdrop = 0;
    wg_gpt *model = wg_gpt_new(&config, 1);
    if (!model)
        return -1;
    mine->language_model = wg_gpt_language_model(model);
    return begin_causal(w, mine);
}

static int begin_llama(wg__workload *w) {
    parts *mine = new_parts(w);
    wg_llama_config config;
    if (!mine || wg_llama_config_preset(&config, w->preset) < 0)
        return -1;
    config.vocab_size = w->vocabulary;
    config.max_position_embeddings = w->sequence;
    config.bos_token_id = config.eos_token_id = -1;
    wg_llama *model = wg_llama_new(&config, 1);
    if (!model)
        return -1;
    mine->language_model = wg_llama_language_model(model);
    return begin_causal(w, mine);
}

static wg_tensor *causal_loss(wg__workload *w) {
    const parts *mine = w->parts;
    return wg_language_model_loss(&mine->language_model, mine->ids, mine->labels);
}

/* ---- BERT: 15 % of the positions are masked, and the head runs at these alone. The second half of
 * a sequence is its second segment; nothing is padding. ---- */

/* So many of each sequence, flat: b T + t. */
static wg_tensor *masked_positions(const wg__workload *w, int64_t masked, wg_generator *generator) {
    wg_tensor *positions = wg_empty(WG_I64, WG_DIMS(w->batch * masked));
    int64_t *place = wg_tensor_data(positions);
    for (int64_t b = 0; place && b < w->batch; b++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t *order = wg_tensor_data(wg_randperm(generator, w->sequence));
        for (int64_t i = 0; order && i < masked; i++)
            *place++ = b * w->sequence + order[i];
        wg_scope_end(&scope, NULL);
    }
    return positions;
}

static void make_bert_batch(const wg__workload *w, wg_bert_batch *batch) {
    wg_generator generator = {.seed = 1};
    const int64_t t = w->sequence, masked = (15 * t + 50) / 100;
    wg_tensor *half = wg_full(WG_I64, WG_DIMS(1), (double)(t / 2));
    wg_tensor *second = wg_ge(wg_arange(WG_I64, 0, (double)t, 1), half);
    *batch = (wg_bert_batch){
        .input_ids = random_ids(w, &generator),
        .token_type_ids = wg_contiguous(wg_expand(wg_cast(second, WG_I64), WG_DIMS(w->batch, t))),
        .attention_mask = keep_all(w),
        .masked_positions = masked_positions(w, masked, &generator),
        .masked_labels = wg_randint(&generator, 1, w->vocabulary, WG_DIMS(w->batch * masked)),
        .next_sentence_labels = wg_randint(&generator, 0, 2, WG_DIMS(w->batch)),
        .tokens = w->batch * t,
    };
}

static int begin_bert(wg__workload *w) {
    parts *mine = new_parts(w);
    wg_bert_config config;
    if (!mine || wg_bert_config_preset(&config, w->preset) < 0)
        return -1;
    if (w->sequence < 4)
        return wg_fail(WG_ERROR_ARGUMENT, "bench",
                       "sequences of %lld tokens; of fewer than 4 none "
                       "is masked",
                       (long long)w->sequence);
    config.vocab_size = w->vocabulary;
    config.max_position_embeddings = w->sequence;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0;
    mine->bert = wg_bert_for_pretraining_new(&config, 1);
    if (!mine->bert)
        return -1;
    w->module = &mine->bert->module;
    make_bert_batch(w, &mine->bert_batch);
    w->tokens = w->batch * w->sequence;
    return 0;
}

static wg_tensor *bert_loss(wg__workload *w) {
    const parts *mine = w->parts;
    wg_bert_loss loss;
    return wg_bert_pretraining_loss(mine->bert, &mine->bert_batch, false, &loss) < 0 ? NULL
                                                                                     : loss.total;
}

/* ---- GLM: 3/16 of a sequence is Part B, in spans of four tokens, at all of which the head runs
 * ---- */

enum { SPAN = 4 };

static void make_glm_batch(const wg__workload *w, parts *mine) {
    wg_generator generator = {.seed = 1};
    const int64_t t = w->sequence, part_b = 3 * t / 16, part_a = t - part_b;
    wg_tensor *positions = wg_empty(WG_I64, WG_DIMS(w->batch, t));
    wg_tensor *blocks = wg_zeros(WG_I64, WG_DIMS(w->batch, t));
    wg_tensor *targets = wg_empty(WG_I64, WG_DIMS(w->batch * part_b));
    int64_t *position = wg_tensor_data(positions), *block = wg_tensor_data(blocks),
            *target = wg_tensor_data(targets);
    for (int64_t b = 0; target && b < w->batch; b++, position += t, block += t, target += part_b) {
        wg_scope scope;
        wg_scope_begin(&scope);
        const int64_t *masks = wg_tensor_data(wg_randperm(&generator, part_a));
        for (int64_t i = 0; i < part_a; i++)
            position[i] = i;
        for (int64_t i = 0; masks && i < part_b; i++) {
            position[part_a + i] = masks[i / SPAN];
            block[part_a + i] = i % SPAN + 1;
            target[i] = b * t + part_a + i;
        }
        wg_scope_end(&scope, NULL);
    }
    mine->ids = random_ids(w, &generator);
    mine->positions = targets;
    mine->labels = wg_randint(&generator, 1, w->vocabulary, WG_DIMS(w->batch * part_b));
    mine->glm_inputs = (wg_glm_inputs){
        .position_ids = positions,
        .block_position_ids = blocks,
        .part_a = wg_full(WG_I64, WG_DIMS(w->batch), (double)part_a),
    };
}

static int begin_glm(wg__workload *w) {
    parts *mine = new_parts(w);
    wg_glm_config config;
    if (!mine || wg_glm_config_preset(&config, w->preset) < 0)
        return -1;
    if (w->sequence < 6)
        return wg_fail(WG_ERROR_ARGUMENT, "bench",
                       "sequences of %lld tokens; of fewer than 6 none "
                       "is masked",
                       (long long)w->sequence);
    config.vocab_size = w->vocabulary;
    config.max_sequence_length = w->sequence;
    config.embedding_dropout_prob = config.attention_dropout_prob = 0;
    config.output_dropout_prob = 0;
    mine->glm = wg_glm_new(&config, 1);
    if (!mine->glm)
        return -1;
    w->module = &mine->glm->module;
    make_glm_batch(w, mine);
    w->tokens = w->batch * w->sequence;
    return 0;
}

static wg_tensor *glm_loss(wg__workload *w) {
    const parts *mine = w->parts;
    return wg_glm_loss(mine->glm, mine->ids, &mine->glm_inputs, mine->positions, mine->labels);
}

/* ---- Encoder-decoders: a source and a target of T tokens each ---- */

static int begin_transformer(wg__workload *w) {
    parts *mine = new_parts(w);
    wg_transformer_config config;
    if (!mine || wg_transformer_config_preset(&config, w->preset) < 0)
        return -1;
    config.vocab_size = config.decoder_vocab_size = w->vocabulary;
    config.max_position_embeddings = w->sequence;
    config.dropout = 0;
    mine->transformer = wg_transformer_new(&config, 1);
    if (!mine->transformer)
        return -1;
    wg_generator generator = {.seed = 1};
    w->module = &mine->transformer->module;
    mine->pairs = (wg_transformer_batch){
        .source = random_ids(w, &generator),
        .source_keep = keep_all(w),
        .target = random_ids(w, &generator),
        .target_keep = keep_all(w),
        .labels = random_ids(w, &generator),
    };
    w->tokens = w->batch * w->sequence;
    return 0;
}

static wg_tensor *transformer_loss(wg__workload *w) {
    const parts *mine = w->parts;
    return wg_transformer_loss(mine->transformer, &mine->pairs);
}

static int begin_t5(wg__workload *w) {
    parts *mine = new_parts(w);
    wg_t5_config config;
    if (!mine || wg_t5_config_preset(&config, w->preset) < 0)
        return -1;
    config.vocab_size = w->vocabulary;
    config.dropout_rate = 0;
    mine->t5 = wg_t5_new(&config, 1);
    if (!mine->t5)
        return -1;
    wg_generator generator = {.seed = 1};
    w->module = &mine->t5->module;
    mine->ids = random_ids(w, &generator);
    mine->pairs.source_keep = keep_all(w);
    mine->labels = random_ids(w, &generator);
    w->tokens = w->batch * w->sequence;
    return 0;
}

static wg_tensor *t5_loss(wg__workload *w) {
    const parts *mine = w->parts;
    return wg_t5_loss(mine->t5, mine->ids, mine->pairs.source_keep, mine->labels);
}

/* ---- Two layers of width 32, so small that what is timed is all but the arithmetic: random
 * features into as many classes as the vocabulary has words ---- */

enum { WIDTH = 32 };

static const char *mlp_preset_name(int index) {
    return index == 0 ? "mlp-32" : NULL;
}

static int begin_mlp(wg__workload *w) {
    if (w->recompute)
        return wg_fail(WG_ERROR_ARGUMENT, "bench", "mlp is no stack of layers to be recomputed");
    parts *mine = new_parts(w);
    w->module = mine ? wg_module_new(NULL, NULL, sizeof *w->module) : NULL;
    if (!w->module)
        return -1;
    w->module->generator = (wg_generator){.seed = 1};
    mine->hidden = wg_linear_new(w->module, "hidden", WIDTH, WIDTH, NULL);
    mine->output = wg_linear_new(w->module, "output", WIDTH, w->vocabulary, NULL);
    wg_generator generator = {.seed = 1};
    w->tokens = w->batch * w->sequence;
    mine->features = wg_rand(&generator, WG_F32, WG_DIMS(w->tokens, WIDTH));
    mine->labels = wg_randint(&generator, 0, w->vocabulary, WG_DIMS(w->tokens));
    return 0;
}

static wg_tensor *mlp_loss(wg__workload *w) {
    const parts *mine = w->parts;
    wg_tensor *hidden = wg_relu(wg_linear_forward(mine->hidden, mine->features));
    return wg_cross_entropy(wg_linear_forward(mine->output, hidden), mine->labels, WG_IGNORE_INDEX,
                            NULL);
}

const wg__workload_kind wg__workload_kinds[] = {
    {"gpt", "gpt2-124m", wg_gpt_preset_name, begin_gpt, causal_loss},
    {"llama", "llama-15m", wg_llama_preset_name, begin_llama, causal_loss},
    {"bert", "bert-mini", wg_bert_preset_name, begin_bert, bert_loss},
    {"glm", "glm-small", wg_glm_preset_name, begin_glm, glm_loss},
    {"transformer", "transformer-base", wg_transformer_preset_name, begin_transformer,
     transformer_loss},
    {"t5", "t5-small", wg_t5_preset_name, begin_t5, t5_loss},
    {"mlp", "mlp-32", mlp_preset_name, begin_mlp, mlp_loss},
    {0},
};
