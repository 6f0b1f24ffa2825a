/* Objectives: ways to train and to use a model. The record of an objective holds its options, the
 * text it reads, its batches, loss and metrics, how metrics are printed, and inference. The
 * command, the tests and the docs walk the table of objectives and know none of them by name.
 *
 *     model (models/model.h) --.
 *     tokenizer, text ---------+--> wg_training --> wg_task --> wg_trainer
 *     options -----------------'         '--> evaluation, and after it fill, generate, translate,
 *                                             score
 *
 *     objective                text                    shapes it takes
 *     masked-lm, mlm, hybrid   sentences               encoder
 *     blank-infilling          sentences               prefix decoder
 *     causal-lm                stream                  decoder
 *     span-corruption          stream                  encoder-decoder
 *     translation              pairs                   encoder-decoder
 *     classify, multi-label,   files with labels       encoder, with a head
 *     regression, tokens
 *     contrastive              files of texts          encoder, without a head
 *     squad                    files of questions      encoder, with a head
 *     cloze                    files with labels       prefix decoder, without a head
 *
 * The first seven objectives pretrain, the last seven fine-tune (`finetune --task NAME`).
 * An objective is a record in a file of objectives/, and a row in the table of
 * objectives/objective.c. It trains any model of a shape that it takes. */
#ifndef WG_OBJECTIVES_OBJECTIVE_H
#define WG_OBJECTIVES_OBJECTIVE_H

#include <signal.h>
#include <stdio.h>

#include "../data/batches/batches.h"
#include "../data/dataset/dataset.h"
#include "../models/generate/beam.h"
#include "../models/generate/decode.h"
#include "../models/model.h"
#include "../train/trainer.h"

WG_BEGIN_DECLS

typedef struct wg_objective wg_objective;

/* ---- Training ---- */

/* Options of an evaluation. */
typedef struct wg_evaluation_options {
    bool by_document;        /* measure the first sequence of each document, instead of all of the
                              * text cut into sequences */
    const char *predictions; /* the file to write predictions to; NULL: none */
    int64_t batch;           /* of translations: texts in a search; 0: 32 */
    bool lowercase;          /* BLEU without regard to case */
    int bleu_tokens;         /* of BLEU, a wg_bleu_tokens; 0: 13a */
    wg_beam_options beam;    /* of translations; zeros: the usual search */
} wg_evaluation_options;

enum { WG_EVALUATES_BY_DOCUMENT = 1, WG_EVALUATES_PREDICTIONS = 2, WG_EVALUATES_TRANSLATIONS = 4 };

/* The parts of a training. They are borrowed and must outlive the training. The struct `model` is
 * copied; its module must outlive the training. */
typedef struct wg_training_setup {
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    const wg_dataset *training;                /* NULL: an evaluation alone, or `training_path` */
    const wg_dataset *held_out;                /* NULL: no evaluation, or `held_out_path` */
    const char *training_path, *held_out_path; /* of objectives that read their own files */
    const char *checkpoint;                    /* to resume or to measure; NULL: a new run */
    const void *options; /* the struct of the objective's settings; NULL: standard values */
    int64_t batch;       /* sequences; 0: the objective's usual number */
    int64_t sequence;    /* tokens; 0: the objective's usual number, within the model's positions */
    uint64_t seed;       /* of batches and masks */
    int64_t evaluation_batches;              /* in an evaluation during training, at most; 0: all */
    const wg_evaluation_options *evaluation; /* of wg_training_evaluate; NULL: only metrics */
    wg_group *group; /* its ranks share the batches of evaluations, which are then collective, and
                      * all ranks get the metrics; NULL: this process only */
} wg_training_setup;

/* A model, its data and an objective. The struct is for objectives; users call its functions. */
typedef struct wg_training {
    const wg_objective *objective;
    wg_training_setup setup; /* with defaults of batch and sequence filled in */
    wg_model model;          /* a copy of the setup's */
    wg_batches *batches;     /* of the training data; NULL: there is none */
    wg_batches *held_out;    /* of the held-out data; NULL: no data, or `evaluate` needs none */
    void *batch;             /* the current batch */
    int64_t fingerprint;     /* of the training data: a resumed run must have the same */
    int64_t examples;        /* in an epoch, of objectives that read their own files */
    int64_t step_examples;   /* examples before this step */
    int64_t run_examples;    /* examples of the whole run, for settings that change over it; set
                              * before the first step; 0: they do not change */
    int64_t ramp_examples;   /* sequences grow: the first half of so many examples are cut into
                              * quarters, the second half into halves; batches keep their number of
                              * tokens. 0: none are cut */
    void *context;           /* private to the objective */
    void *standard_options;  /* if the setup has no options */
} wg_training;

/* Checks that the objective takes the model, and prepares its data. Freed with wg_training_free.
 * NULL with [ARGUMENT, also for a sequence beyond the model's positions or a tokenizer beyond its
 * vocabulary; NOT_FOUND, IO, FORMAT for files; MEMORY] */
WG_API wg_training *wg_training_new(const wg_objective *objective, const wg_training_setup *setup);
WG_API void wg_training_free(wg_training *training);

/* The task for a trainer. Its functions use `training`. It saves /config, /tokenizer, /objective
 * and /train/data, and refuses to resume with data other than the run's. */
WG_API wg_task wg_training_task(wg_training *training);

/* Measures the model on the whole held-out data. With a group in the setup it is collective, and
 * rank 0 writes the predictions. -1 with [STATE if there is no held-out data] */
WG_API int wg_training_evaluate(wg_training *training, wg_metrics *metrics);

/* ---- Use ---- */

/* How a text is filled or continued. */
typedef struct wg_use_options {
    int64_t top;  /* objectives that rank tokens: candidates for each blank; 0: 5 */
    int64_t beam; /* hypotheses of a beam search; 0: sampling, or greedy */
    bool draws;   /* options of sampling were given */
    wg_generation_options generation; /* sampling, max_tokens, listener, stop */
    wg_generator generator;
} wg_use_options;

/* The ways of filling that an objective supports, or'ed. */
enum { WG_FILLS_BY_RANK = 1, WG_FILLS_BY_BEAM = 2, WG_FILLS_BY_DRAWING = 4 };

/* Limits of a prompt and its continuation. */
typedef struct wg_prompt_room {
    int64_t positions;    /* of the model */
    int64_t most_read;    /* tokens that a prompt may have */
    int64_t most_written; /* tokens that the positions left after this prompt can hold */
} wg_prompt_room;

/* How sentences are translated. */
typedef struct wg_translation_use {
    int64_t batch;        /* texts that are translated at a time; 0: 32 */
    wg_beam_options beam; /* start and end are ignored: the model has them */
    int64_t first_number; /* how messages count the first text; 0: 1 */
    wg_group *group;      /* whose ranks share out the batches: collective. NULL: none */
} wg_translation_use;

typedef struct wg_candidate {
    char *text;
    double probability;
} wg_candidate;

/* The result for one blank. */
typedef struct wg_filled_blank {
    char *name;            /* "<extra_id_0>"; NULL: it has none */
    char *text;            /* the text written into the blank; NULL where candidates are ranked */
    int64_t tokens;        /* of the text */
    wg_generation_end end; /* why the text ended */
    int64_t candidate_count;
    wg_candidate *candidates; /* the likeliest first */
} wg_filled_blank;

typedef struct wg_filled {
    char *text; /* with its blanks filled; NULL: see each blank */
    int64_t blank_count;
    wg_filled_blank *blanks;
} wg_filled;

/* Frees the result of a fill, and makes it {0}. */
WG_API void wg_filled_clear(wg_filled *filled);

/* ---- Scores: how likely a model finds texts ---- */

typedef struct wg_text_source {
    const char *text; /* UTF-8 */
    const char *file; /* for messages; NULL: they name the number of the text */
    int64_t line;
} wg_text_source;

typedef struct wg_score {
    double log_probability; /* natural logarithm: the sum over `tokens` predictions */
    int64_t tokens;
} wg_score;

typedef struct wg_score_options {
    bool within_words;    /* masked-lm: mask the later tokens of a word, too, when one of its tokens
                           * is predicted */
    bool causal;          /* hybrid: predict next tokens instead of masked ones */
    int64_t batch_tokens; /* of a forward, about; 0: 4096 */
    void (*listener)(int64_t scored, int64_t count, void *context); /* after each batch; or NULL */
    void *context;
    const volatile sig_atomic_t *stop; /* not 0: score no more. NULL: none */
    wg_group *group; /* whose ranks share out the batches: collective. NULL: none */
} wg_score_options;

/* A batch of texts of equal length. */
typedef struct wg_text_batch {
    int64_t count, length; /* B, n */
    const int32_t *ids;    /* (B, n), without [CLS] and the like */
} wg_text_batch;

/* Scores texts, in evaluation mode and without recording. Texts of equal tokens are scored once,
 * and so have equal scores. `options` may be NULL. 0; 1 if *options->stop ended it, when scores may
 * be missing; -1 with [STATE for an objective that does not score; ARGUMENT for a text without
 * tokens or beyond the model's positions, or options that the objective does not take; FORMAT as
 * wg_tokenizer_encode; MEMORY] */
WG_API int wg_score_texts(const wg_objective *objective, const wg_model *model,
                          const wg_tokenizer *tokenizer, const wg_score_options *options,
                          int64_t count, const wg_text_source *texts, wg_score *scores);

/* ---- Embeddings: a vector for each text ---- */

typedef enum wg_text_pooling {
    WG_POOL_MEAN, /* the mean of the hidden states */
    WG_POOL_TOKEN /* the hidden state of [CLS], in decoders of the last token */
} wg_text_pooling;

typedef struct wg_embed_options {
    wg_text_pooling pooling;
    bool not_normalized;               /* keeps lengths; otherwise each vector has length 1 */
    int64_t batch_tokens;              /* of a forward, about; 0: 4096 */
    const volatile sig_atomic_t *stop; /* not 0: embed no more. NULL: none */
    wg_group *group; /* whose ranks share out the batches: collective. NULL: none */
} wg_embed_options;

/* Fills `vectors`, (count, C), of an encoder or a decoder. `options` may be NULL. 0; 1 if
 * *options->stop ended it; -1 with [STATE for a model of another shape; ARGUMENT for a text without
 * tokens or beyond the model's positions; FORMAT as wg_tokenizer_encode; MEMORY] */
WG_API int wg_embed_texts(const wg_model *model, const wg_tokenizer *tokenizer,
                          const wg_embed_options *options, int64_t count,
                          const wg_text_source *texts, float *vectors);

/* ---- The record ---- */

/* A member of the JSON results. */
typedef struct wg_metric_row {
    const char *name;   /* of the metric: "mlm_loss" */
    const char *weight; /* a further member with its weight: "mlm_tokens"; NULL: there is none */
    const char *of;     /* the metric with its value; NULL: `name` */
    bool optional;      /* left out if nothing was added to the metric */
    double (*value)(const wg_metrics *metrics);     /* computes the value; NULL: the mean */
    const char *(*text)(const wg_metrics *metrics); /* the member is this text; NULL: a number */
} wg_metric_row;

typedef struct wg_objective_data {
    wg_dataset_kind text;                 /* of its datasets; unused where it reads its own files */
    int64_t usual_batch, usual_sequence;  /* 0: 32 and 128, within the model's positions */
    void (*sizes)(wg_training *training); /* sets sizes that the setup leaves 0; NULL: the usual */
    bool cuts_sequences;                  /* it supports ramp_examples */

    /* Makes batches of a text of the kind `text`, to train on or (`measured`) to measure with. The
     * text must outlive them. The setup has tokenizer, batch, sequence and seed; options and model
     * may be NULL, and options then have standard values. NULL without an error: `evaluate` needs
     * no batches. The function is NULL for objectives that read their own files. [ARGUMENT for a
     * tokenizer without the tokens that the objective needs, or a text too short; MEMORY] */
    wg_batches *(*batches)(const wg_training_setup *setup, const wg_dataset *text, bool measured);
    size_t batch_size, batch_tokens; /* the size of the struct of a batch, and the offset of the
                                      * int64_t member that counts its tokens */

    void (*describe)(const wg_training *training, FILE *stream); /* the text, before training */
} wg_objective_data;

/* How it trains and measures. Functions return 0, or -1 (NULL) with an error. */
typedef struct wg_objective_training {
    /* Fine-tuning only. adapt: makes the model from the checkpoint `setup->checkpoint`, with a new
     * head if the checkpoint has none. load: reads the model as it was saved; NULL:
     * wg_model_load. */
    int (*adapt)(const wg_objective *objective, const wg_training_setup *setup,
                 void (*note)(const char *message, void *context), void *note_context,
                 wg_model *model, wg_tokenizer **tokenizer);
    int (*load)(const wg_objective *objective, const char *path, wg_model *model,
                wg_tokenizer **tokenizer);
    char *(*config)(const wg_training *training); /* kept as /config; NULL: the model's own */

    /* `begin` checks the setup and makes the context; an objective that reads its own files also
     * sets batches, fingerprint and examples; NULL: nothing is needed. `end` frees the context,
     * also after a `begin` that failed; NULL: the context is one block, or NULL. */
    int (*begin)(wg_training *training);
    void (*end)(wg_training *training);

    /* Called before the batches of each step, to change settings over the run; or NULL. */
    void (*begin_step)(wg_training *training);

    /* The loss of a batch, or its parts, as in wg_task; and their weights. `weigh` is NULL where
     * the number of examples alone decides the weight of a batch. */
    wg_tensor *(*loss)(wg_training *training, const void *batch, wg_metrics *metrics);
    void (*weigh)(const wg_training *training, const void *batch, wg_loss_part *parts);

    int (*evaluate)(wg_training *training, int64_t batches, wg_metrics *metrics); /* 0: all */
} wg_objective_training;

/* Use of a trained model in evaluation mode. A function is NULL if the objective lacks the use. */
typedef struct wg_objective_use {
    /* Fills the blanks of a text. */
    unsigned fills; /* WG_FILLS_BY_... or'ed */
    int (*fill)(const wg_model *model, const wg_tokenizer *tokenizer, const wg_use_options *options,
                const char *text, wg_filled *filled);

    /* Encodes a prompt (NULL: none) into text->tokens, and says how far it goes; continues it. */
    int (*prompt)(const wg_model *model, const wg_tokenizer *tokenizer, const char *prompt,
                  wg_generation *text, wg_prompt_room *room);
    int (*generate)(const wg_model *model, const wg_tokenizer *tokenizer,
                    const wg_use_options *options, wg_generation *text);

    /* Scores a batch of texts. It runs its forwards by wg__score_losses, and gives up where that
     * fails. */
    int64_t score_frame;      /* positions that a text takes beside its tokens */
    bool scores_within_words; /* it takes that option */
    bool scores_causally;     /* it takes that option */
    int (*score)(const wg_model *model, const wg_tokenizer *tokenizer,
                 const wg_score_options *options, const wg_text_batch *texts, wg_score *scores);
} wg_objective_use;

struct wg_objective {
    const char *name;     /* of --objective and --task: "masked-lm" */
    const char *title;    /* a line with its paper, for --help and docs */
    int shapes;           /* wg_model_shape values, or'ed: the models that it takes */
    bool finetunes;       /* reached by `finetune --task NAME`: begins from a checkpoint */
    const char *marks[2]; /* how to recognize a checkpoint that does not name its objective, for
                           * instance a converted one: a dataset ("/model/qa_outputs/weight"), a
                           * key of /config, or a key and the end of its text or of its list's
                           * first text ("problem_type=regression"); NULL: no more. The first
                           * matching row of the table wins */
    wg_setting_table settings; /* rows of its options; size 0: none */
    const char *defaults;      /* how its runs differ from usual settings, as JSON; NULL: nothing */
    unsigned evaluation;       /* which wg_evaluation_options it takes: WG_EVALUATES_... or'ed */

    wg_objective_data data;
    const wg_objective_training *training;
    wg_objective_use use;
    const struct wg__head_task *head; /* of an encoder with a head: how it differs from others */

    /* Results. Each line goes to `stream`. */
    const wg_metric_row *metrics; /* up to one without a name */
    const char *headline; /* fine-tuning only: the metric that compares models, the first that the
                           * evaluation has: "f1,accuracy" */
    void (*print)(const wg_metrics *metrics, FILE *stream);
};

/* Shows the next batch of blank-infilling as tables. [STATE for another objective] */
WG_API int wg_training_show_batch(wg_training *training, FILE *stream);

/* Translates by a model of wg_translation, in evaluation mode. translations[i] translates texts[i],
 * and is freed with wg_text_free; all are NULL after a failure. `options` may be NULL. */
WG_API int wg_translate_texts(const wg_model *model, const wg_tokenizer *tokenizer,
                              const wg_translation_use *options, int64_t count,
                              const char *const *texts, char **translations);

/* masked-lm, mlm, hybrid, blank-infilling, causal-lm, span-corruption, translation, classify,
 * multi-label, regression, tokens, contrastive, squad and cloze. */
extern WG_API const wg_objective wg_masked_lm, wg_mlm, wg_hybrid, wg_blank_infilling, wg_causal_lm,
    wg_span_corruption, wg_translation, wg_classification, wg_multi_label, wg_regression,
    wg_token_labels, wg_contrastive, wg_question_answering, wg_cloze_objective;

/* The unit of masking. */
typedef enum wg_mask_unit { WG_MASK_TOKENS, WG_MASK_WORDS, WG_MASK_SPANS } wg_mask_unit;

/* The options of wg_mlm and wg_hybrid, with their standard values. */
typedef struct wg_mlm_options {
    double masked_share;       /* of the tokens: 0.3 */
    double final_masked_share; /* at the last step, reached in a straight line: 0.15; 0: the same */
    int unit;                  /* a wg_mask_unit: WG_MASK_TOKENS */
    double span_mean;          /* words in a span: 3 */
    double causal_share;       /* hybrid: of sequences whose next tokens are predicted: 0.5 */
} wg_mlm_options;

/* The options of wg_blank_infilling, with their standard values. */
typedef struct wg_blank_infilling_options {
    double masked_share;   /* of a text, at least: 0.15 */
    double span_mean;      /* of the Poisson distribution of the lengths of spans: 3 */
    double sentence_share; /* of texts with whole sentences masked: 0.25 */
    double document_share; /* of texts with one span at the end: 0.25 */
} wg_blank_infilling_options;

/* The options of wg_classification and wg_regression: the names of columns, or of keys of JSON
 * lines, of its files. NULL or "": well-known names are looked for, else the columns are texts and
 * label in order. */
typedef struct wg_labelled_text_options {
    const char *text_column, *text_pair_column, *label_column;
} wg_labelled_text_options;

/* The options of wg_contrastive, with their standard values. */
typedef struct wg_contrastive_options {
    double temperature; /* 0.05 */
    double dropout;     /* of a model that was pretrained without: 0.1 */
    int pooling;        /* a wg_text_pooling: WG_POOL_MEAN */
} wg_contrastive_options;

/* The options of wg_token_labels: the columns of its files, as numbers from 1 on, or of CoNLL-U as
 * names ("UPOS"). NULL or "": words are in the first column and tags in the last, of CoNLL-U in
 * FORM and UPOS. */
typedef struct wg_token_labels_options {
    const char *token_column, *tag_column;
} wg_token_labels_options;

/* The options of wg_cloze_objective. A checkpoint that is resumed or measured has its own. The
 * pattern has one blank ("[MASK]", or "[sMASK]" or "[gMASK]") and a place for each text of an
 * example: "{text}" for one, "{text_a}" and "{text_b}" for two, in any order. A verbalizer is the
 * text that fills the blank for a label. */
typedef struct wg_cloze_options {
    const char *pattern;
    wg_setting_list verbalizer; /* "LABEL=TEXT" each */
} wg_cloze_options;

/* The objectives in order, up to NULL; an objective by its name; the objective of a checkpoint: as
 * /objective names it, else the first objective with a mark that the checkpoint has, else the
 * first for its model. NULL with [NOT_FOUND, listing them; IO, FORMAT] */
WG_API const wg_objective *wg_objective_at(int index);
WG_API const wg_objective *wg_objective_find(const char *name);
WG_API const wg_objective *wg_objective_of(const char *path);

WG_END_DECLS

#endif
