/* What the objectives share that predict a label of a text: shuffled examples, loss, metrics,
 * predictions. One that predicts a number shares the examples alone. */
#ifndef WG_OBJECTIVES_LABELLING_H
#define WG_OBJECTIVES_LABELLING_H

#include "data/dataset/labelled_text.h"
#include "models/heads.h"
#include "objectives/internal.h"

/* What a model says about a batch of B examples. */
typedef struct wg__scores {
    wg_tensor *logits; /* (B, K) */
    wg_tensor *labels; /* (B) i64 */
    int64_t tokens;    /* that went through the model */
} wg__scores;

/* The first member of an objective's context. `read` and `score` are set before
 * wg__labelling_begin. */
typedef struct wg__labelling {
    const wg__labels *labels; /* K of them; NULL: numbers */

    /* Reads a file of examples with these labels. */
    wg__labelled_text *(*read)(const wg_training *training, const char *path);

    /* [scope] 0 or -1 with an error. Of numbers NULL. */
    int (*score)(const wg_training *training, const wg__labelled_text *text, int64_t count,
                 const int64_t *examples, wg__scores *scores);

    wg__labelled_text *text, *held_out;
    int64_t *chosen; /* (B) the examples of a batch */
} wg__labelling;

/* wg__headed_encoder_adapt for the labels of a training text. It is tokenised as the checkpoint
 * says, whose tokenizer is read first. [as there, and as wg__labelled_text_load] */
int wg__labelling_adapt(const wg__head_origin *origin, wg__head_kind kind,
                        const char *training_path, const wg__labelled_text_options *reading,
                        wg_model *model, wg_tokenizer **tokenizer);

/* Reads the files of the setup and makes the batches; frees all of it but the context. */
int wg__labelling_begin(wg_training *training);
void wg__labelling_end(wg_training *training);

/* The columns that the options of a setup name, a wg_labelled_text_options or NULL, and the table
 * of these options. */
wg__labelled_text_options wg__labelling_reading(const wg_training_setup *setup);
extern const wg_setting wg__column_rows[];
#define WG__COLUMN_SETTINGS                                                                        \
    {                                                                                              \
        .where = "settings", .size = sizeof(wg_labelled_text_options), .count = 3,                 \
        .rows = wg__column_rows                                                                    \
    }

/* Functions and rows of the record. */
wg_tensor *wg__labelling_loss(void *training, wg_metrics *metrics);
int wg__labelling_evaluate(wg_training *training, int64_t batches, wg_metrics *metrics);
void wg__labelling_describe(const wg_training *training, FILE *stream);
void wg__labelling_print(const wg_metrics *metrics, FILE *stream);
extern const wg_metric_row wg__labelling_metrics[];

#endif
