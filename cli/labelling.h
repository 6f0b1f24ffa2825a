/* What the tasks that tell labels of texts share in the command. */
#ifndef WG_CLI_LABELLING_H
#define WG_CLI_LABELLING_H

#include "cli/model_kind.h"
#include "train/classification.h"

/* The first member of a task's parts. */
typedef struct wg__labelling {
    const wg_labels *labels; /* of the model */
    wg_labelled_text *training, *held_out;
    wg_classification *classification;
} wg__labelling;

/* What --batch, --seq and --seed say. */
wg_classification_options wg__labelling_options(const json_t *settings);

/* The run as the trainer knows it, of parts that are complete. */
void wg__labelling_begun(wg__training *training);
void wg__labelling_clear(wg__labelling *labelling);

/* Functions of a wg__model_kind. */
void wg__labelling_describe(const wg__training *training);
int wg__labelling_evaluate(const wg__training *training, wg_metrics *metrics);
void wg__labelling_print(const wg_metrics *metrics);
json_t *wg__labelling_results(const wg_metrics *metrics);

/* Measures on `held_out`, and writes --predictions. */
int wg__labelling_measure(const wg__measuring *measuring, const wg__labelling *labelling,
                          wg_metrics *metrics);

#endif
