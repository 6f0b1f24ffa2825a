/* Functions that objectives share, internal to the library: members of records, evaluations over
 * the ranks of a group, texts in batches, files of predictions. */
#ifndef WG_OBJECTIVES_INTERNAL_H
#define WG_OBJECTIVES_INTERNAL_H

#include "data/internal.h"
#include "objectives/objective.h"

/* Members of records. */
#define WG__SETTING_TABLE(type, table)                                                             \
    {                                                                                              \
        .where = "settings", .size = sizeof(type), .count = sizeof(table) / sizeof *(table),       \
        .rows = table                                                                              \
    }
#define WG__BATCH_OF(type, tokens)                                                                 \
    .batch_size = sizeof(type), .batch_tokens = offsetof(type, tokens)

/* The settings of fine-tuning that differ from the usual settings. */
#define WG__HEAD_DEFAULTS                                                                          \
    "{\"lr\": 5e-5, \"epochs\": 3, \"schedule\": \"linear\", \"weight-decay\": 0.01, "             \
    "\"eval-every\": 500}"

/* [ARGUMENT if a tokenizer has more tokens than a vocabulary holds] `with` names the tokens that an
 * objective adds (" with its sentinels"), or is "". */
int wg__check_vocabulary(const char *where, int64_t tokens, const char *with, int64_t vocabulary);

/* The configuration that a checkpoint keeps, freed with wg_text_free. */
char *wg__training_config(const wg_training *training);

/* -1 with STATE for an objective whose batches wg_training_show_batch does not show. */
WG__COMMAND int wg__require_shown_batches(const wg_objective *objective);

/* A batch of pairs as inputs of an encoder. */
static inline wg_model_inputs wg__pair_inputs(const wg_pair_batch *batch) {
    return (wg_model_inputs){.ids = batch->input_ids,
                             .token_type_ids = batch->token_type_ids,
                             .keep = batch->attention_mask};
}

/* The number of parts that a sequence of this step is cut into, by ramp_examples: 4, 2 or 1. */
int64_t wg__sequence_parts(const wg_training *t);

/* (B, T) -> (B parts, T / parts), the same numbers. [scope] */
wg_tensor *wg__cut_sequences(wg_tensor *x, int64_t parts);

/* ---- Evaluations by the N ranks of setup.group: rank i mod N measures batch number i. ---- */

/* Measures `batches` batches (0: all) of the held-out text from its start, each in a scope. Adds up
 * the metrics of all ranks. If not `ends_with_text`, examples from the start of the text fill the
 * last batch. -1 if `measure` returns -1 on any rank. Collective. */
int wg__evaluate_batches(wg_training *t, int64_t batches, bool ends_with_text,
                         int (*measure)(wg_training *t, const void *batch, wg_metrics *metrics),
                         wg_metrics *metrics);

/* Calls `evaluate` for this rank's batches of `count` held-out examples, each in a scope, with the
 * `size` of the batch and the number of its first example. Then adds up the metrics of all ranks.
 * -1 if any rank failed; `status` -1: this rank failed before the call. Collective. */
typedef int wg__evaluate_part(const wg_training *t, int64_t first, int64_t size, void *context,
                              wg_metrics *metrics);
int wg__evaluate_examples(const wg_training *t, int status, int64_t count,
                          wg__evaluate_part *evaluate, void *context, wg_metrics *metrics);

/* Sends every rank all `count` results of `size` bytes each. A batch has `batch` results. */
int wg__share_results(const wg_training *t, int64_t count, int64_t batch, size_t size, void *data);

/* True if this rank writes --predictions after an evaluation of `batches` batches. */
bool wg__writes_predictions(const wg_training *t, int64_t batches);

/* Prints the sizes of a text of sentences or of a stream, before training. */
void wg__describe_text(const wg_training *training, FILE *stream);

/* Fills `losses` (N) with -log p of the labels (N) at these positions, as in wg_model_loss. -1 also
 * if *options->stop ends the scoring. */
int wg__score_losses(const wg_model *model, const wg_score_options *options,
                     const wg_model_inputs *inputs, wg_tensor *positions, wg_tensor *labels,
                     double *losses);

/* ---- Texts in batches without padding (text_batches.c) ---- */

typedef struct wg__text_job {
    const char *where; /* in messages */
    const wg_model *model;
    const wg_tokenizer *tokenizer;
    int64_t frame;        /* positions that a text takes beside its tokens */
    int64_t batch_tokens; /* about; 0: 4096 */
    /* Fills the results, zeros before, of the texts of a batch. */
    int (*run)(void *context, const wg_text_batch *batch, void *results);
    void *context;
    size_t result_size;                                           /* of a text, in bytes */
    void (*listener)(int64_t done, int64_t count, void *context); /* after each batch; or NULL */
    void *listener_context;
    const volatile sig_atomic_t *stop; /* NULL: none */
    wg_group *group;                   /* that shares out the batches; NULL: none */
} wg__text_job;

/* Runs the job over all texts, in evaluation mode and without recording; results[i] belongs to
 * texts[i] on all ranks of a group. 0; 1 if *stop ended it; -1 with an error. */
int wg__run_texts(const wg__text_job *job, int64_t count, const wg_text_source *texts,
                  void *results);

/* The vectors (B, C) of hidden states (B, T, C): the mean over the positions to keep, (B, T) bool
 * or NULL for all, or the state at `place`, -1 being the last. [scope; SHAPE] */
wg_tensor *wg__pool_texts(wg_tensor *hidden, wg_tensor *keep, wg_text_pooling pooling, int place);

/* The number of sequences of this length in a batch. */
int64_t wg__texts_in_batch(int64_t batch_tokens, int64_t length);

/* log p(x1, x2 ... xn) = sum of log p(x_t | x_1 ... x_t-1) of texts by a model that sees earlier
 * tokens only. The first token is predicted from `begin_id`; if that is -1 it is not scored. */
int wg__score_next_tokens(const wg_model *model, int32_t begin_id, const wg_score_options *options,
                          const wg_text_batch *texts, wg_score *scores);

/* The mean cross-entropy of similarities (B, B), whose diagonal is right. *right: the number of
 * rows with their largest number on the diagonal. [scope; SHAPE] */
wg_tensor *wg__contrastive_loss(wg_tensor *similarities, double *right);

/* A file for predictions. Closing it reports errors of writing. NULL, or -1, with [IO] */
FILE *wg__predictions_open(const char *path);
int wg__predictions_close(FILE *file, const char *path);

/* Writes a file of predictions: each number in a format of printf, with a decimal point. [IO] */
int wg__write_numbers(const char *path, const char *format, int64_t count, const double *numbers);

#endif
