/* Shared by the files of models/: rows of configurations, checks, and parts of a forward. */
#ifndef WG_MODELS_INTERNAL_H
#define WG_MODELS_INTERNAL_H

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/internal.h"
#include "io/config.h"
#include "io/checkpoint/checkpoint.h"
#include "models/heads.h"
#include "nn/internal.h"
#include "nn/positions.h"
#include "models/bert.h"
#include "models/generate/beam.h"
#include "models/generate/decode.h"
#include "models/glm.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/model.h"
#include "models/modernbert.h"
#include "models/roberta.h"
#include "models/t5.h"
#include "models/transformer.h"

/* ---- Rows of a configuration: the members after AT(key) ---- */

/* A size is at most 2^31 - 1, so that the product of two sizes fits in 64 bits. */
#define WG__SIZE .kind = WG_SETTING_INTEGER, .low = 1, .high = INT32_MAX
#define WG__INTEGER .kind = WG_SETTING_INTEGER
#define WG__TOKEN .kind = WG_SETTING_TOKEN
#define WG__MAYBE_TOKEN .kind = WG_SETTING_TOKEN, .low = -1
#define WG__PROBABILITY .kind = WG_SETTING_NUMBER, .high = 1, .below = true
#define WG__POSITIVE .kind = WG_SETTING_NUMBER, .high = INFINITY, .above = true
#define WG__FLAG .kind = WG_SETTING_FLAG
#define WG__ACTIVATION                                                                             \
    .kind = WG_SETTING_CHOICE, .choice = wg__activation_choice, .aliases = wg__activation_aliases
#define WG__GATE .kind = WG_SETTING_CHOICE, .choice = wg__gate_name, .aliases = wg__gate_aliases

/* A key without a member; and a whole row of a key with one value that is known here. */
#define WG__NO_MEMBER(key) .name = key, .kind = WG_SETTING_ONLY
#define WG__ONLY(key, value)                                                                       \
    { WG__NO_MEMBER(key), .standard = value, .help = "no other value is known" }

/* A list of keys up to NULL. */
#define WG__KEYS(...)                                                                              \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

/* The role of a row, so that functions can treat all models alike: which rows are sizes, which
 * values a new model takes from its tokenizer and its run, and which keys a user's file may leave
 * out. */
enum {
    WG__VOCABULARY = 1,    /* may be left out */
    WG__OWN_VOCABULARY,    /* a file has it; a preset takes the tokenizer's */
    WG__SOURCE_VOCABULARY, /* of encoder-decoders; may be left out */
    WG__BEGIN,             /* tokens of the tokenizer, which may be left out */
    WG__END,
    WG__PAD,
    WG__CLASS,
    WG__SEPARATOR,
    WG__POSITIONS,            /* a preset's number stays */
    WG__POSITIONS_OF_RUN,     /* a preset takes the length of the run's sequences */
    WG__POSITIONS_RAISED,     /* a preset's number is raised to the length of the run's sequences */
    WG__POSITIONS_BEHIND_PAD, /* a preset's number stays, beyond the rows of the padding */
    WG__WIDTH,
    WG__LAYERS,         /* of the decoder, or of the encoder if there is none */
    WG__ENCODER_LAYERS, /* of encoder-decoders */
    WG__HEADS,          /* must divide the width */
    WG__ROLES
};

/* Whole rows that several models have. */
#define WG__VOCABULARY_ROW                                                                         \
    { AT(vocab_size), WG__SIZE, .role = WG__VOCABULARY, .help = "tokens; `pretrain` fills it in" }
#define WG__WIDTH_ROW(key)                                                                         \
    { AT(key), WG__SIZE, .role = WG__WIDTH, .help = "the width of the model" }
#define WG__LAYERS_ROW(key)                                                                        \
    { AT(key), WG__SIZE, .role = WG__LAYERS, .help = "layers" }
#define WG__POSITIONS_ROW(key, value, how)                                                         \
    { AT(key), WG__SIZE, .role = how, .standard = value, .help = "the longest sequence" }
#define WG__RANGE_ROW                                                                              \
    {                                                                                              \
        AT(initializer_range), WG__POSITIVE,                                                       \
            .standard = "0.02", .help = "the standard deviation that weights begin with"           \
    }

/* The rows of BERT's layers. */
#define WG__BERT_ROWS(dropout)                                                                     \
    WG__WIDTH_ROW(hidden_size), WG__LAYERS_ROW(num_hidden_layers),                                 \
        {AT(num_attention_heads), WG__SIZE, .role = WG__HEADS,                                     \
         .help = "heads, a divisor of the width"},                                                 \
        {AT(intermediate_size), WG__SIZE, .help = "the inner width of the feed-forward net"},      \
        {AT(hidden_act), WG__ACTIVATION, .standard = "\"gelu\"", .help = "its activation"},        \
        {AT(hidden_dropout_prob), WG__PROBABILITY, .standard = "0.1", .help = dropout}, {          \
        AT(attention_probs_dropout_prob), WG__PROBABILITY, .standard = "0.1",                      \
                                                           .help = "dropout of attention weights"  \
    }

const char *wg__activation_choice(int value);
extern const char *const wg__activation_aliases[], *const wg__gate_aliases[];

/* -1 with ARGUMENT unless `parts` divides `whole`. */
int wg__check_divides(const char *where, const char *parts_key, int64_t parts,
                      const char *whole_key, int64_t whole);

/* ---- Presets and configurations ---- */

/* The name of preset `index` of all types in their order; NULL beyond the last. */
WG__COMMAND const char *wg__model_preset_name(int index);

/* The preset of that name (NULL: the first one), borrowed. NULL with [ARGUMENT, listing the
 * presets] */
WG__COMMAND const wg_model_preset *wg__model_preset_find(const wg_model_type *type,
                                                         const char *name);

/* Reads a user's configuration file for a new model. It may leave out the keys that
 * wg_model_config_fit sets; a complete file is checked. -1 with [FORMAT, MEMORY; ARGUMENT,
 * also for another model_type] */
WG__COMMAND int wg__model_config_open(const wg_model_type *type, wg_config *file, void *config);

/* 0 if a model can be made of it; -1 with [ARGUMENT, naming the key, its value and the rule] */
int wg__model_config_check(const wg_model_type *type, const void *config);

/* Costs of the model, or encoder with a head, that a published config.json describes, without
 * making it. -1 with [STATE for a model_type that is not known; FORMAT, ARGUMENT, MEMORY] */
WG__COMMAND int wg__model_costs_of_config(const char *json, wg_model_costs *costs);

/* Sets *value to `fitted`, a value of the tokenizer or the run, unless the user's file has the key.
 */
void wg__fit(const wg_model_fit *fit, const char *key, int64_t *value, int64_t fitted);

/* How decoders are trained, as in Touvron et al. 2023, section 2.2: AdamW (0.9, 0.95), cosine to a
 * tenth, decay 0.1, clip 1, warm-up 2000 or a tenth of a short run. Radford et al. 2019 differ in
 * the decays. */
#define WG__DECODER_TRAINING                                                                       \
    "{\"tokenizer\": \"bpe\", \"optimizer\": \"adamw\", \"beta1\": 0.9, \"beta2\": 0.95, "         \
    "\"weight-decay\": 0.1, \"clip\": 1.0, \"schedule\": \"cosine\", \"final\": 0.1, "             \
    "\"longest-warmup\": 2000}"

/* The recipe of docs/small-corpora.md, for models that a few hours of a CPU are to train. */
#define WG__SMALL_TRAINING                                                                         \
    "{\"optimizer\": \"muon\", \"lr\": 0.006, \"weight-decay\": 0.05, \"schedule\": \"linear\", "  \
    "\"final\": 0, \"longest-warmup\": 60, \"batch\": 16}"

/* The row of a model's table of bigrams. Published files lack the key, so 0 is not written. */
#define WG__BIGRAM_ROW                                                                             \
    {                                                                                              \
        AT(bigram_vocab_size),                                                                     \
            .kind = WG_SETTING_INTEGER, .high = INT32_MAX, .standard = "0", .unless_zero = true,   \
            .help = "rows of a hashed table of vectors for bigrams, which are added to the token " \
                    "vectors; 0: no table; a key of Wengert alone"                                 \
    }

/* ---- Construction ---- */

/* A root whose first two members are the module and a copy of the configuration. NULL
 * with [ARGUMENT for the configuration; MEMORY] */
void *wg__model_root(const wg_model_type *type, const void *config, size_t size, uint64_t seed);

/* Each makes the root of a model, a wg_bert_for_pretraining... from a wg_bert_config..., freed with
 * wg_module_free; its generator, for initial values and dropout, begins at `seed`. GPT, GLM and
 * LLaMA begin with weights from a normal distribution with standard deviation initializer_range,
 * projections back onto the residual stream with 1/sqrt(2 N) of it (Radford et al. 2019); T5 as
 * Mesh TensorFlow does; the Transformer with vectors of variance 1/C and other weights Xavier
 * uniform; all with biases 0 and norms 1. NULL with [ARGUMENT, MEMORY] */
void *wg__bert_for_pretraining_new(const void *config, uint64_t seed);
void *wg__roberta_for_masked_lm_new(const void *config, uint64_t seed);
void *wg__modernbert_for_masked_lm_new(const void *config, uint64_t seed);
void *wg__gpt_new(const void *config, uint64_t seed);
void *wg__glm_new(const void *config, uint64_t seed);
void *wg__llama_new(const void *config, uint64_t seed);
void *wg__t5_new(const void *config, uint64_t seed);
void *wg__transformer_new(const void *config, uint64_t seed);

/* The configuration of a root that wg__model_root made. */
const void *wg__root_config(const wg_module *root);

/* The encoder of a pretrained encoder, its first child; and the encoder's configuration, its first
 * member after the module. */
wg_module *wg__encoder_of(wg_module *model);
const void *wg__encoder_config(const wg_module *model);

/* Rotary tables of all positions for heads of that width, kept. [ARGUMENT, MEMORY] */
int wg__keep_rotary(int64_t width, int64_t positions, const wg_rotary_options *options,
                    wg_tensor **cos, wg_tensor **sin);

/* ---- Forward ---- */

/* The rows of a rotary table at the positions of inputs, which begin at `first`: (T, D/2),
 * or (B, 1, T, D/2) at position_ids. [scope] */
wg_tensor *wg__rotary_rows(wg_tensor *table, const wg_model_inputs *inputs, int64_t first,
                           wg_dtype dtype);

/* The positions of the ids, without position_ids from `first` on. [scope] */
wg_tensor *wg__position_ids(const wg_model_inputs *inputs, int64_t first);

/* The table of bigrams of a model, of vectors that begin at 0. `rows` 0: none, NULL. */
wg_embedding *wg__bigrams_new(wg_module *parent, const char *name, int64_t rows, int64_t width);

/* words, (B, T, C), plus the bigrams of the ids; `table` may be NULL. [scope; ARGUMENT for
 * embeddings in place of ids] */
wg_tensor *wg__add_bigrams(wg_embedding *table, wg_tensor *words, const wg_model_inputs *inputs);

/* The position of the first of inputs->ids, (B, T), or of inputs->embeddings, (B, T, C): the number
 * of cached positions. -1 with SHAPE for ids of another rank, or if they reach beyond `longest`
 * without position_ids; -1 without ids. */
int64_t wg__first_position(const char *where, const wg_model_inputs *inputs, int64_t longest);

/* -1 with ARGUMENT unless there are states of an encoder in inputs->memory. */
int wg__check_memory_states(const char *where, const wg_model_inputs *inputs);

/* wg__model_bytes estimates the bytes of an untrained model; negative with an error (SHAPE for a
 * tensor that no memory holds). wg__model_check_memory fails with MEMORY unless so much is free,
 * except under wg_set_meta_init. */
double wg__model_bytes(const wg_model_type *type, const void *config);
int wg__model_check_memory(const wg_model_type *type, const void *config);

/* The bytes of all tensors below a module, tied ones once; the bytes of a tensor. */
double wg__state_bytes(const wg_module *module);
double wg__tensor_bytes(const wg_tensor *x);

/* ---- Checkpoints ---- */

/* Makes a model by `make`, from the checkpoint's configuration and `context`, and reads its weights
 * and, unless `tokenizer` is NULL, the tokenizer. Returns the model's root; NULL after an error,
 * with *tokenizer NULL. [NOT_FOUND, IO, FORMAT; errors of `make`] */
wg_module *wg__model_load(const char *path, wg_module *(*make)(const char *config, void *context),
                          void *context, wg_tokenizer **tokenizer);

/* The type that the model_type of a checkpoint's configuration names. NULL with [FORMAT; STATE for
 * one that is not known] */
const wg_model_type *wg__model_type_of_config(const char *path, const char *json);

/* ---- Heads ---- */

/* The wg__head_kind that "architectures" names first; -1: another one. */
int wg__head_of_config(const wg_model_type *type, wg_config *config);

/* The model with a head of that kind that a configuration describes. NULL with [FORMAT, ARGUMENT,
 * MEMORY] */
wg__headed_encoder *wg__headed_encoder_of(const wg_model_type *type, wg__head_kind kind,
                                          const char *json);

/* Whether a file may lack the tensor of that name: an encoder's pooler or new head, or a name of
 * names.optional. */
bool wg__model_may_lack(const wg_model_type *type, const char *name);

/* Fills the module from /model of a checkpoint; LoRA adapters are added to the weights that they
 * adapt. [as wg_checkpoint_get_module and wg__lora_attach_config] */
int wg__model_read_weights(wg_checkpoint *file, wg_module *module);

/* ---- Decoding (generate/) ---- */

/* 0 if it can be used; -1 with [ARGUMENT, naming the member, its value and the rule] */
WG__COMMAND int wg__sampling_validate(const wg_sampling *sampling);

/* The probabilities (count) of the next token after the tokens `seen`, given all logits (count). Of
 * equal logits the first counts as likelier. -inf is probability 0. [ARGUMENT as above, also for
 * logits with NaN or inf, or all of them -inf; INDEX for a token seen that has no logit] */
int wg__sampling_probabilities(const wg_sampling *sampling, int64_t count, const float *logits,
                               int64_t seen_count, const int32_t *seen, double *probabilities);

/* Draws a token by these probabilities, with one draw of the generator; with temperature 0 without
 * any. -1 with the errors above or MEMORY. */
int32_t wg__sample_token(const wg_sampling *sampling, int64_t count, const float *logits,
                         int64_t seen_count, const int32_t *seen, wg_generator *generator);

/* Fills in results[0 .. sentences-1]; hypotheses of sentence i have up to max_lengths[i] tokens,
 * the end included. Of equally likely tokens the first counts as likelier. The caller frees
 * results[i].tokens, also after a failure. Returns 0 or -1.
 * [ARGUMENT for bad options or lengths, probabilities that are no numbers, or a sentence that no
 * token may continue; MEMORY; errors of the model's functions] */
int wg__beam_search(const wg_beam_model *model, int64_t sentences, const int64_t *max_lengths,
                    const wg_beam_options *options, wg_beam_result *results);

/* Searches for the likeliest targets of B sources by an encoder-decoder, (B, S) i64 or i32 with
 * their `keep` (B, S), or NULL, in evaluation mode and without recording: the source is encoded
 * once, and each step gives the decoder one token a hypothesis, with caches. start_id and end_id
 * of the options are ignored: the model's are used. `options` may be NULL. Otherwise as
 * wg__beam_search. [also SHAPE, INDEX, DTYPE; STATE for a model of another shape] */
int wg__model_search(const wg_model *model, wg_tensor *source, wg_tensor *keep,
                     const int64_t *max_lengths, const wg_beam_options *options,
                     wg_beam_result *results);

#endif
