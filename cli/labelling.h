/* What the tasks that tell labels of texts share in the command. */
#ifndef WG_CLI_LABELLING_H
#define WG_CLI_LABELLING_H

#include "cli/model_kind.h"
#include "objectives/classification.h"

/* The first member of a task's parts. */
typedef struct wg__labelling {
    const wg_labels *labels; /* of the model */
    wg_labelled_text *training, *held_out;
    wg_classification *classification;
} wg__labelling;

/* What differs between them. */
typedef struct wg__labelling_kind {
    wg_labelled_text *(*read)(const wg__training *training, const char *path);
    wg_classification *(*classification)(const wg__training *training,
                                         const wg_classification_options *options);
} wg__labelling_kind;

/* Of parts that have a model and its labels: text and task, of a training (whose training text may
 * be there already) and of a run that is measured, whose model has so many positions. 0, or -1 with
 * an error. */
int wg__labelling_pose(wg__training *training, const wg__labelling_kind *kind);
int wg__labelling_pose_measuring(wg__training *training, const wg__measuring *measuring,
                                 const wg__labelling_kind *kind, int64_t positions);
void wg__labelling_clear(wg__labelling *labelling);

/* Functions of a wg__model_kind. */
void wg__labelling_describe(const wg__training *training);
int wg__labelling_evaluate(const wg__training *training, wg_metrics *metrics);
int wg__labelling_measure(const wg__training *training, const wg__measuring *measuring,
                          wg_metrics *metrics);
void wg__labelling_print(const wg_metrics *metrics);
json_t *wg__labelling_results(const wg_metrics *metrics);

#endif
