/* Named weighted means: the metrics of a step or an evaluation.
 *
 * A metric is a sum and a weight, so batches of different sizes (masked tokens, pairs) add up to
 * the right mean, over an evaluation as over the batches of a step. */
#ifndef WG_TRAIN_METRICS_H
#define WG_TRAIN_METRICS_H

#include <stdint.h>

#include "../base/group.h"

WG_BEGIN_DECLS

#define WG_METRIC_MAX 16
#define WG_METRIC_NAME_SIZE 32

typedef struct wg_metric {
    char name[WG_METRIC_NAME_SIZE]; /* "mlm_loss": lower case and underscores, as in logs */
    double sum;                     /* of value times weight */
    double weight;
} wg_metric;

/* {0} is an empty set. */
typedef struct wg_metrics {
    int count;
    wg_metric metrics[WG_METRIC_MAX]; /* the first `count`, in order of first mention */
    int64_t tokens;                   /* that went through the model */
} wg_metrics;

/* Adds a value, the mean over `weight` things, to the metric `name`. A weight of 0 adds the metric
 * without a value. [ARGUMENT for more than WG_METRIC_MAX metrics, an empty or too long name] */
WG_API int wg_metrics_add(wg_metrics *metrics, const char *name, double value, double weight);

/* The mean of the metric `name`; NaN if nothing was added to it. */
WG_API double wg_metrics_get(const wg_metrics *metrics, const char *name);

/* The weight of the metric `name`: how many things were counted. 0 for an unknown name. */
WG_API double wg_metrics_weight(const wg_metrics *metrics, const char *name);

/* Adds up the sums, weights and tokens of all ranks, in the order of rank 0's metrics, which must
 * have all names that any rank has. Collective. [STATE, IO] */
int wg__metrics_sum(wg_group *group, wg_metrics *metrics);

WG_END_DECLS

#endif
