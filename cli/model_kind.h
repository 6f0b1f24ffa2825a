/* What the command knows of each kind of model that it trains: its text, its task, its results.
 *
 *     models of `wengert pretrain'              bert, gpt, llama...
 *     tasks of `wengert finetune --task ...'    classify, squad...: a model with a head of its own,
 *                                               or cloze: one that fills its pattern
 *
 * A new kind is a file that defines its wg__model_kind, and a line in one of the two tables of
 * model_kind.c. */
#ifndef WG_CLI_MODEL_KIND_H
#define WG_CLI_MODEL_KIND_H

#include <jansson.h>

#include "data/dataset/dataset.h"
#include "models/generate/beam.h"
#include "train/trainer.h"

typedef struct wg__model_kind wg__model_kind;

/* Batches in an evaluation on the way; the one at the end takes the whole held-out text. */
enum { WG__EVALUATION_BATCHES = 16 };

/* A model with its text, ready to be trained: by `pretrain', or by `finetune' from the checkpoint
 * that the setting "model" names; or to be measured. Who begins it fills in the first part. */
typedef struct wg__training {
    const wg__model_kind *kind;
    const json_t *settings; /* settings.h; NULL: it is measured only */
    const char *resumed; /* the checkpoint that has model and tokenizer: of a run that goes on, or
                          * of --init; NULL: they are new */

    wg_tokenizer *tokenizer;
    wg_task task;
    int64_t vocabulary; /* of the model */
    int64_t examples;   /* of an epoch, for runs whose length is said in epochs; 0: it is not */
    void *parts;        /* the kind's own: its model, its text, its objective */
} wg__training;

/* What `wengert eval' is asked for. */
typedef struct wg__measuring {
    const char *run;
    int corpus_count;
    const char *const *corpus;
    int64_t batch, sequence; /* 0: as the kind finds it */
    uint64_t seed;
    bool by_document;        /* of models that predict the next token: see language_modeling.h */
    int quantization;        /* that the weights are kept in; -1: f32 */
    const char *predictions; /* where a task's answers or the translations go; NULL: nowhere */
    wg_beam_options beam;    /* of models that translate, as the rest */
    bool lowercase;          /* of BLEU */
} wg__measuring;

struct wg__model_kind {
    const char *name;     /* "gpt", as the command line says it */
    const char *type;     /* "gpt2", the published model_type; of a task, that of its model */
    const char *mark;     /* what only checkpoints of this task hold: "/model/classifier/weight", or
                           * a key of their configuration; NULL: it is a model of `pretrain' */
    const char *defaults; /* settings that differ from those of other kinds, as JSON */

    bool takes_pairs; /* its text is a source and a target, line by line */

    size_t parts_size; /* of its parts, which are zeros at first */

    /* Steps of beginning: a new model and its tokenizer, or those of a checkpoint; then the text
     * that is trained on, with the task, or the text that a checkpoint is measured on. 0, or -1
     * with an error; `clear` frees the parts even then. */
    int (*create)(wg__training *training);
    int (*load)(wg__training *training, const char *path);
    int (*pose)(wg__training *training);
    int (*pose_measuring)(wg__training *training, const wg__measuring *measuring);
    void (*clear)(void *parts);

    /* The model of parts that were created or loaded. */
    wg_module *(*module)(void *parts);

    /* A line on stderr about the text. */
    void (*describe)(const wg__training *training);

    /* Prints the first batch as tables; NULL: this kind has none. */
    int (*show_batch)(const wg__training *training);

    /* Measures on the whole held-out text; of a run that is measured, with all that was asked for
     * (NULL: there is no more than to evaluate). */
    int (*evaluate)(const wg__training *training, wg_metrics *metrics);
    int (*measure)(const wg__training *training, const wg__measuring *measuring,
                   wg_metrics *metrics);

    /* What an evaluation found, on stdout, and as a JSON object for the caller to free. */
    void (*print)(const wg_metrics *metrics);
    json_t *(*results)(const wg_metrics *metrics);
};

extern const wg__model_kind wg__classify_task, wg__squad_task, wg__cloze_task;
extern const wg__model_kind wg__bert_kind, wg__glm_kind, wg__gpt_kind, wg__llama_kind, wg__t5_kind,
    wg__transformer_kind;

/* The model or the task of that name, or NULL; the name of each, or NULL beyond the last. */
const wg__model_kind *wg__model_kind_find(const char *name);
const char *wg__model_kind_name(int index);
const wg__model_kind *wg__task_kind_find(const char *name);
const char *wg__task_kind_name(int index);

/* What trains it, for messages: "pretrain bert", "finetune --task squad". */
void wg__model_kind_command(const wg__model_kind *kind, char *text, size_t size);

/* The task that a checkpoint was fine-tuned for, or else the kind of model that it holds. NULL with
 * an error. */
const wg__model_kind *wg__model_kind_of(const char *path);

/* -1 with an error unless a checkpoint holds a model of this kind; `verb` is what wants it. */
int wg__model_kind_require(const char *path, const wg__model_kind *kind, const char *verb);

/* -1, with the error that it holds `found`, and `verb` takes something else. */
int wg__model_kind_refuse(const char *path, const wg__model_kind *found, const char *verb,
                          const char *takes);

/* ---- Of all kinds ---- */

/* Makes model, text and task. wg__training_end is called even after a failure. 0, or -1 with an
 * error. */
int wg__training_begin(wg__training *training);
void wg__training_end(wg__training *training);

/* Measures a checkpoint of this kind. 0, or -1 with an error. */
int wg__measure(const wg__model_kind *kind, const wg__measuring *measuring, wg_metrics *metrics);

/* The configuration file of the setting "config" as JSON, freed by wg_text_free; NULL with an
 * error. And such a text as an object, to be freed; the text is freed. */
char *wg__config_text(const json_t *settings);
json_t *wg__config_object(char *text);

/* ---- Text, for all kinds ---- */

/* The files of --corpus; freed by free. */
const char **wg__corpus_paths(const json_t *settings, int *count);

/* Of each file of a stream, its end, when no text is given to measure on. */
#define WG__STREAM_HELD_OUT 0.1

/* The text to train on, and the one to measure on: the setting "eval", or else a share that is held
 * out of the corpus, of its documents or of the end of each file or each two. {0} at first. 0, or
 * -1 with an error. */
typedef struct wg__texts {
    wg_dataset *training, *held_out;
} wg__texts;

int wg__texts_load(const wg__training *training, wg_dataset_kind kind, wg__texts *texts);
void wg__texts_clear(wg__texts *texts);

/* A line on stderr about them. */
void wg__sentences_describe(const wg__texts *texts);
void wg__stream_describe(const wg__texts *texts);

/* Notes on token files, on stderr. */
void wg__note_tokens(void *context, const char *line);

/* What --tokenizer says: read from a file, or learnt from the corpus with so many tokens; that of a
 * corpus of token files is theirs. */
wg_tokenizer *wg__make_tokenizer(const json_t *settings, int64_t vocabulary_size);

/* Tokens in a sequence that is measured: as many as were asked for; else `usual`, or all positions
 * that the model has. */
int64_t wg__sequence_of(int64_t asked, int64_t usual, int64_t positions);

/* The tokens that are learnt: as --vocab-size says, else `configured`, unless that is 0. */
int64_t wg__vocabulary_size(const json_t *settings, int64_t configured);

#endif
