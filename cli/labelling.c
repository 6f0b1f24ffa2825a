/* What the tasks that tell labels of texts share: see labelling.h. */
#include "cli/labelling.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/finetuning.h"
#include "cli/results.h"
#include "cli/settings.h"

/* ---- Fine-tuning ---- */

int wg__labelling_pose(wg__training *t, const wg__labelling_kind *kind) {
    wg__labelling *mine = t->parts;
    const wg_classification_options options = {
        .batch = wg__setting_integer(t->settings, "batch"),
        .sequence = wg__setting_integer(t->settings, "seq"),
        .seed = (uint64_t)wg__setting_integer(t->settings, "seed"),
    };
    if (!mine->training)
        mine->training = kind->read(t, wg__setting_text(t->settings, "train"));
    if (mine->training)
        mine->held_out = kind->read(t, wg__setting_text(t->settings, "eval"));
    if (mine->held_out)
        mine->classification = kind->classification(t, &options);
    if (!mine->classification)
        return -1;
    t->task = wg_classification_task(mine->classification);
    t->examples = wg_labelled_text_examples(mine->training);
    return 0;
}

int wg__labelling_pose_measuring(wg__training *t, const wg__measuring *m,
                                 const wg__labelling_kind *kind, int64_t positions) {
    wg__labelling *mine = t->parts;
    const wg_classification_options options = {
        .batch = m->batch, .sequence = wg__sequence_of(m->sequence, 128, positions)};
    const char *path = wg__finetuning_file(m);
    mine->held_out = path ? kind->read(t, path) : NULL;
    if (mine->held_out)
        mine->classification = kind->classification(t, &options);
    return mine->classification ? 0 : -1;
}

void wg__labelling_clear(wg__labelling *labelling) {
    wg_classification_free(labelling->classification);
    wg_labelled_text_free(labelling->training);
    wg_labelled_text_free(labelling->held_out);
}

void wg__labelling_describe(const wg__training *t) {
    const wg__labelling *mine = t->parts;
    fprintf(stderr,
            "text   %lld examples of %lld labels, %lld tokens; %lld examples to measure on\n",
            (long long)wg_labelled_text_examples(mine->training), (long long)mine->labels->count,
            (long long)wg_labelled_text_tokens(mine->training),
            (long long)wg_labelled_text_examples(mine->held_out));
}

int wg__labelling_evaluate(const wg__training *t, wg_metrics *metrics) {
    return wg_classification_evaluate(((wg__labelling *)t->parts)->classification, metrics, NULL);
}

/* ---- Measuring ---- */

/* One label a line, in the order of the examples. */
static int write_predictions(const char *path, const wg_labels *labels, int64_t count,
                             const int64_t *predictions) {
    FILE *file = wg__results_open(path);
    for (int64_t i = 0; file && i < count; i++)
        fprintf(file, "%s\n", labels->names[predictions[i]]);
    return file ? wg__results_close(file, path) : -1;
}

int wg__labelling_measure(const wg__training *t, const wg__measuring *m, wg_metrics *metrics) {
    const wg__labelling *mine = t->parts;
    const int64_t count = wg_labelled_text_examples(mine->held_out);
    int64_t *predictions = calloc((size_t)count, sizeof *predictions);
    int status = predictions
                     ? wg_classification_evaluate(mine->classification, metrics, predictions)
                     : wg_fail(WG_ERROR_MEMORY, "eval", "no memory for predictions");
    if (status == 0 && m->predictions)
        status = write_predictions(m->predictions, mine->labels, count, predictions);
    free(predictions);
    return status;
}

/* ---- Results ---- */

void wg__labelling_print(const wg_metrics *metrics) {
    printf("labels           loss %.4f, accuracy %.2f %% of %.0f\n",
           wg_metrics_get(metrics, "loss"), 100 * wg_metrics_get(metrics, "accuracy"),
           wg_metrics_weight(metrics, "accuracy"));
    if (wg_metrics_weight(metrics, "f1") > 0)
        printf("of two labels    F1 %.2f %%, Matthews' correlation %.4f\n",
               100 * wg_metrics_get(metrics, "f1"), wg_metrics_get(metrics, "mcc"));
    printf("commonest label       accuracy %.2f %%\n", 100 * wg_metrics_get(metrics, "majority"));
}

json_t *wg__labelling_results(const wg_metrics *metrics) {
    static const char *const means[] = {"loss", "accuracy", "majority", "f1", "mcc"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        if (wg_metrics_weight(metrics, means[i]) > 0)
            json_object_set_new(object, means[i],
                                wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "examples",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "accuracy")));
    return object;
}
