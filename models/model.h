/* Model types: one record describes a kind of model. Presets and configurations, construction,
 * loading and saving, conversion of published files, training objectives and the command all read
 * this record.
 *
 *     wg_model model;
 *     wg_model_new(wg_model_type_find("bert"), "bert-mini", 1, &model);
 *     wg_tensor *hidden = wg_model_forward(&model, &(wg_model_inputs){.ids = ids});    (B, T, C)
 *     wg_tensor *logits = wg_model_logits(&model, hidden, NULL);                       (B, T, V)
 *     wg_model_free(&model);
 *
 * A model is a file pair models/NAME.{h,c} with its struct, its forward and its record, and a row
 * in the table of models/model.c. The structs (wg_bert...) are public, for programs that know the
 * type of their model; the constructors (wg__bert_new...) are internal.
 *
 *     shape               forward is                     examples
 *     encoder             ids -> hidden                  BERT, ModernBERT
 *     decoder             ids -> hidden, causal          GPT, LLaMA
 *     prefix decoder      two-dimensional positions      GLM
 *     encoder-decoder     encode, then decode            Transformer, T5                       */
#ifndef WG_MODELS_MODEL_H
#define WG_MODELS_MODEL_H

#include "../data/tokenizer/tokenizer.h"
#include "../gradcheck/gradcheck.h"
#include "../io/settings.h"
#include "../nn/attention.h"
#include "../nn/linear.h"
#include "../nn/lora.h"

WG_BEGIN_DECLS

typedef struct wg_config wg_config; /* an open configuration file */

typedef enum wg_model_shape {
    WG_ENCODER = 1,
    WG_DECODER = 2,
    WG_PREFIX_DECODER = 4,
    WG_ENCODER_DECODER = 8
} wg_model_shape;

/* The inputs of a forward. A model ignores the members of other shapes; all but ids (or embeddings)
 * may be NULL. */
typedef struct wg_model_inputs {
    wg_tensor *ids;        /* (B, T) i64 or i32 */
    wg_tensor *embeddings; /* encoders: (B, T, C), word embeddings instead of ids */
    wg_tensor *keep;       /* (B, T) bool, false for padding; with caches (B, Tk), Tk all that is
                            * seen. NULL: no padding */
    wg_tensor *token_type_ids;     /* encoders with segments: (B, T); NULL: all 0 */
    wg_tensor *position_ids;       /* models that rotate by position, decoders: (B, T) below
                                    * max_positions; NULL: 0, 1, ... after the cached positions */
    wg_tensor *block_position_ids; /* prefix decoders: (B, T), 0 in Part A, 1, 2... in a span */
    wg_tensor *part_a;             /* prefix decoders: (B), tokens of Part A; NULL: all of it */
    wg_tensor *mask; /* prefix decoders, instead of part_a: bool, broadcastable to (B, H, T, Tk) */
    wg_tensor *memory;      /* encoder-decoders: (B, S, C), from wg_model_encode */
    wg_tensor *memory_keep; /* (B, S) bool */
    wg_kv_cache *caches;    /* of generation, one a layer: the ids follow the cached positions */
    wg_kv_cache *memory_caches; /* encoder-decoders: one a layer, filled at the first call */
    wg_tensor *previous_ids;    /* models with bigrams: (B), the last tokens that the caches hold,
                                 * -1 for none; NULL: none */
    bool causal; /* encoders that can: a position sees itself and earlier ones only */
    wg_tensor *output_positions; /* (N) flat b T + t: only these hidden states are computed in the
                                  * last layer and returned; NULL: all */
} wg_model_inputs;

/* The sizes of a model. Each type of configuration has other names for them. */
typedef struct wg_model_sizes {
    int64_t vocabulary;        /* V; of encoder-decoders the target's */
    int64_t source_vocabulary; /* of encoder-decoders; else 0 */
    int64_t positions;         /* the longest sequence; INT64_MAX: any */
    int64_t width;             /* C */
    int64_t layers;         /* of the decoder, or of the encoder if there is none: a cache each */
    int64_t encoder_layers; /* of encoder-decoders; else 0 */
    int64_t cache_width;    /* numbers that a layer's cache keeps of a position, keys and values */
    int64_t start_id, end_id, pad_id; /* tokens: a decoder begins with start_id; -1: none */
    int64_t segments;                 /* encoders: how many segments a sequence may have; else 0 */
    double head_dropout;              /* encoders: of a new head's input */
    bool pools_first;         /* encoders: the pooled output reads the first position alone */
    wg_initializer head_init; /* encoders: of a new head's weights */
} wg_model_sizes;

/* The sources of values that a new model's configuration leaves open: its tokenizer and its run. */
typedef struct wg_model_fit {
    const wg_tokenizer *tokenizer; /* NULL: not made yet; only `learnt` is set */
    int64_t sequence;              /* tokens of a training sequence; 0: unknown */
    wg_config *file;               /* the user's configuration file, for the keys that it has; NULL:
                                    * the configuration is a preset */
    int64_t learnt; /* set: tokens that a tokenizer has to learn, so that with the type's added
                     * tokens the configured vocabulary is full; 0: any number */
} wg_model_fit;

typedef struct wg_model_preset {
    const char *name;     /* "bert-mini" */
    const void *config;   /* the type's configuration struct */
    const char *training; /* how `pretrain` of this preset differs from the type's settings, as
                           * JSON; NULL: nothing */
    struct {
        int64_t batch, sequence, vocabulary;
    } bench; /* of a step of `wengert bench train`; zeros: its usual ones */
} wg_model_preset;

/* A tensor that files may hold and the model does not have, since it equals another one. */
typedef struct wg_model_copy {
    const char *end; /* of its name: "lm_head.weight" */
    const char *of;  /* the path of the equal tensor: "transformer.wte.weight" */
} wg_model_copy;

/* How published files name the tensors of this type: see formats/convert.c. */
typedef struct wg_model_names {
    const char *architecture; /* of config.json ("BertForPreTraining"), or NULL */
    const char *classifier; /* architectures of encoders with a head (models/heads.h): for labels of
                               texts, */
    const char *answerer;   /* for answers, */
    const char *word_classifier; /* for labels of words */
    const char *pooled_head;     /* encoders: the module of a head on the pooled output; NULL:
                                  * "classifier" */
    const char *answers;     /* encoders: the module of a head for answers; NULL: "qa_outputs" */
    const char *marker;      /* a part of a name that only files of this type have; or NULL */
    const char *prefix;      /* left out of names in files of the bare model; NULL: nothing */
    const char *heads[4];    /* beginnings of names that never have the prefix; NULL: no more */
    const char *outer;       /* an optional prefix of all names; NULL: none */
    const char *ignored[5];  /* ends of names of tensors that are ignored: masks */
    wg_model_copy copies[3]; /* up to one without `end` */
    const char *optional[5]; /* beginnings of names of tensors that a file may lack; an encoder's
                              * pooler and new heads may always be missing */
    const char *kept[2];     /* keys of config.json that objectives read, and conversion keeps */
    const char *adapted[3];  /* ends of names of the linear layers that LoRA adapts by default, as
                              * PEFT  does for the type; NULL: no more */
} wg_model_names;

/* The functions of an encoder, also below another head. `make` makes the encoder's module. `pool`
 * computes the pooled output (B, C), `states` the input of a head on every position, (B, T, C). */
typedef struct wg_encoder_type {
    const char *name; /* "bert"; "" if the paths of its parameters begin differently */
    void *(*make)(wg_module *parent, const char *name, const void *config, bool pooler);
    wg_tensor *(*forward)(wg_module *encoder, const wg_model_inputs *inputs);
    bool takes_causal; /* its forward takes inputs->causal */
    wg_tensor *(*pool)(wg_module *encoder, wg_tensor *hidden, wg_tensor *keep);
    wg_tensor *(*states)(wg_module *encoder, wg_tensor *hidden); /* NULL: hidden itself */
    wg_module *(*of)(wg_module *model);            /* the encoder of a model of the type */
    wg_linear *(*next_sentence)(wg_module *model); /* the head on the pooled output; NULL: none */
} wg_encoder_type;

/* The head that computes logits, a layer or a table of words, and its input `hidden`, (..., C). */
typedef struct wg_model_head {
    wg_linear *linear; /* NULL: the table */
    wg_embedding *table;
    wg_tensor *hidden;
    double label_smoothing; /* of the loss in training */
} wg_model_head;

typedef struct wg_model_type wg_model_type;
struct wg_model_type {
    const char *name;       /* of the command: "gpt" */
    const char *model_type; /* of config.json: "gpt2" */
    const char *published;  /* another model_type whose files have the same keys; NULL: none */
    const char *aliases[3]; /* other model_types whose files are read as this type's, up to NULL */
    const char *title;      /* "GPT-2 (Radford et al. 2019)" */
    wg_model_shape shape;

    /* ---- Configuration ---- */
    wg_setting_table settings;
    const char *const *ignored;     /* published keys that change nothing here, up to NULL; keys
                                     * of every type (architectures, torch_dtype...) are ignored
                                     * anyway; NULL: none */
    const wg_model_preset *presets; /* the first is the usual one; up to one without a name */
    const char *bench_preset;       /* the preset of `wengert bench` */
    const char *training;           /* how `pretrain` differs from its usual settings, as JSON:
                                     * {"schedule": "cosine", "weight-decay": 0.1} */
    const char *smallest;           /* config.json of a model so small that wg_gradcheck_model
                                     * moves each of its parameters */
    const char *objectives;         /* that pretrain it, the usual one first: "masked-lm" */
    int (*read_more)(wg_config *json, void *config); /* keys without a row; NULL: none */
    int (*write_more)(wg_config *json, const void *config);
    int (*check)(const void *config); /* beyond the rows; -1 with [ARGUMENT]; NULL: nothing */
    int (*fit)(void *config, wg_model_fit *fit); /* NULL: as the roles of the rows say */
    void (*sizes)(const void *config, wg_model_sizes *sizes); /* sizes without a row; NULL:
                                                               * none */
    const void *(*config)(const wg_module *model);            /* of a model that was made */

    /* ---- The module tree ---- */
    wg_model_names names;
    void *(*create)(const void *config, uint64_t seed); /* a root */

    /* ---- Forward, by role; NULL for roles that the shape does not have ---- */
    wg_tensor *(*encode)(wg_module *model, wg_tensor *ids, wg_tensor *keep); /* encoder-decoders */
    wg_tensor *(*forward)(wg_module *model, const wg_model_inputs *inputs);  /* -> (B, T, C), or
                                                                              * (N, C) at output
                                                                              * positions; of
                                                                              * encoders NULL */
    wg_model_head (*head)(wg_module *model, wg_tensor *hidden);
    wg_encoder_type encoder; /* of encoders */
};

/* ---- The table ---- */

/* True if files of this model_type are the type's. */
bool wg__model_type_reads(const wg_model_type *type, const char *model_type);

/* The types in order, up to NULL; and the one of that name or model_type. NULL with [NOT_FOUND,
 * listing them]. */
WG_API const wg_model_type *wg_model_type_at(int index);
WG_API const wg_model_type *wg_model_type_find(const char *name);

/* The type of the model that a checkpoint holds. NULL with [NOT_FOUND, IO, FORMAT; STATE for a
 * model_type that is not known] */
WG_API const wg_model_type *wg_model_type_of(const char *path);

/* ---- Configurations: structs of the type (wg_bert_config...) ---- */

/* The sizes of a configuration. */
wg_model_sizes wg__model_config_sizes(const wg_model_type *type, const void *config);

/* Sets the numbers of tokens and positions, each unless it is 0. Optional token ids outside the new
 * vocabulary become -1, none. */
WG_API void wg_model_config_resize(const wg_model_type *type, void *config, int64_t vocabulary,
                                   int64_t positions);

/* Copies a preset's configuration. [as wg__model_preset_find] */
WG_API int wg_model_preset_config(const wg_model_type *type, const char *name, void *config);

/* Reads a published config.json. A missing key takes its standard value; known keys that change
 * nothing are ignored; other keys are refused. After an error *config has not changed. -1 with
 * [FORMAT, ARGUMENT, MEMORY] */
WG_API int wg_model_config_from_json(const wg_model_type *type, const char *json, void *config);

/* Sets the values that the tokenizer and the run decide, and checks the configuration; without a
 * tokenizer, only sets fit->learnt. -1 with [ARGUMENT] */
WG_API int wg_model_config_fit(const wg_model_type *type, void *config, wg_model_fit *fit);

/* The configuration as JSON text; the caller frees it with wg_text_free. NULL with [MEMORY] */
WG_API char *wg_model_config_to_json(const wg_model_type *type, const void *config);

/* ---- Models ---- */

/* A model of any type. {0} is none. */
typedef struct wg_model {
    const wg_model_type *type;
    wg_module *module;  /* its root; a wg_bert_for_pretraining, wg_gpt... */
    const void *config; /* of an encoder with a head, whose root is no model of the type;
                         * NULL: type->config(module) */
} wg_model;

/* Makes the model of a preset (NULL: the first one). Its generator begins at `seed`. Freed with
 * wg_model_free; after an error there is nothing to free. -1 with [ARGUMENT; MEMORY: a
 * model that does not fit into the free memory is refused before it is made, naming both sizes] */
WG_API int wg_model_new(const wg_model_type *type, const char *preset, uint64_t seed,
                        wg_model *model);

/* Makes the model of a configuration struct of the type; otherwise as wg_model_new. */
WG_API int wg_model_from_config(const wg_model_type *type, const void *config, uint64_t seed,
                                wg_model *model);

/* Makes the model that a published config.json describes, by its model_type. As above.
 * [STATE for a model_type that is not known; FORMAT, ARGUMENT, MEMORY] */
WG_API int wg_model_from_json(const char *json, uint64_t seed, wg_model *model);

/* Reads the model and the tokenizer of a checkpoint; `tokenizer` may be NULL. After an error there
 * is nothing to free. [NOT_FOUND, IO, FORMAT; STATE for a checkpoint of something else] */
WG_API int wg_model_load(const char *path, wg_model *model, wg_tokenizer **tokenizer);

/* Frees the module tree and makes it {0}, which is allowed, too. */
WG_API void wg_model_free(wg_model *model);

/* Makes *model, a model of this tokenizer, one of the extended tokenizer. The vector of each new
 * token in tables and heads is the mean of its pieces' vectors. Tokens that an objective adds move
 * behind the new ones, and all else stays. After an error the model is as it was. -1 with [STATE
 * for an encoder with a head, or if the model and the tokenizer have different vocabularies;
 * MEMORY] */
WG_API int wg_model_extend_vocabulary(wg_model *model, const wg_tokenizer *tokenizer,
                                      const wg_vocabulary_extension *extension);

/* wg_lora_attach with defaults of the type: no targets means names.adapted, usually query and
 * value; WG_LORA_ALL_LINEAR leaves out the layers that compute logits; a fine-tuning head and other
 * new modules are trained whole. Returns the number of layers adapted.
 * [as wg_lora_attach] */
WG_API int64_t wg_model_attach_lora(const wg_model *model, const wg_lora_options *options);

/* Checks the gradients of a model of this type as wg_gradcheck_module does: of its loss, and of the
 * pooled output where the type has one, by every parameter. `config` is a configuration struct
 * (NULL: type->smallest). Weights are random, dropout is on and drops the same in each run, one
 * position is padding. [as wg_gradcheck_module, wg_model_from_config] */
WG_API int wg_gradcheck_model(const wg_model_type *type, const void *config,
                              const wg_gradcheck_options *options, wg_gradcheck_report *report);

/* Its configuration as JSON text, freed with wg_text_free; its sizes. */
WG_API char *wg_model_config_json(const wg_model *model);
WG_API wg_model_sizes wg_model_sizes_of(const wg_model *model);

/* The costs of a model: memory, and floating-point operations of a forward pass for each token, two
 * a multiply-add. A training step costs three forward passes. */
typedef struct wg_model_costs {
    const wg_model_type *type;
    int64_t parameters;   /* numbers in its weights */
    int64_t weight_bytes; /* with buffers, as wengert holds them */
    int64_t token_bytes;  /* of weights that predicting a token reads: all but tables of vectors
                           * that are no head */
    int64_t positions;    /* the longest sequence; INT64_MAX: any */
    double token_flops;   /* of products with weights. Of encoder-decoders for a token of the source
                           * and one of the target; layers that run once a sequence count as if
                           * they ran for each token */
    double position_flops; /* of attention: times the number of tokens that a token may read */
} wg_model_costs;

/* Costs of a model, whose weights may be without memory (wg_set_meta_init). */
WG_API wg_model_costs wg_model_costs_of(const wg_model *model);

/* The ids (B, T) that a decoder reads to predict `labels` (B, T): its begin token, then the labels
 * shifted right by one. Padding replaces WG_IGNORE_INDEX. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_model_shift_right(const wg_model *model, wg_tensor *labels);

/* Source ids (B, S) -> memory (B, S, C). [scope; SHAPE, INDEX, DTYPE; STATE] */
WG_API wg_tensor *wg_model_encode(const wg_model *model, wg_tensor *ids, wg_tensor *keep);

/* -> (B, T, C), or (N, C) at inputs->output_positions. [scope; SHAPE, also beyond the model's
 * positions; INDEX, DTYPE, ARGUMENT] */
WG_API wg_tensor *wg_model_forward(const wg_model *model, const wg_model_inputs *inputs);

/* hidden (B, T, C), positions (N) flat b T + t  ->  (N, V); NULL: everywhere  ->  (B, T, V).
 * [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_model_logits(const wg_model *model, wg_tensor *hidden, wg_tensor *positions);

/* The mean cross-entropy of these logits, which are never stored whole, and labels; labels of
 * WG_IGNORE_INDEX are left out. Rank 0. `options` (label smoothing, counting right
 * predictions) may be NULL. [scope; SHAPE, INDEX, DTYPE] */
WG_API wg_tensor *wg_model_loss(const wg_model *model, wg_tensor *hidden, wg_tensor *positions,
                                wg_tensor *labels, const wg_cross_entropy_options *options);

WG_END_DECLS

#endif
