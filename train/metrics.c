/* Named weighted means: see metrics.h. */
#include "train/metrics.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/group.h"
#include "train/internal.h"

static const wg_metric *find(const wg_metrics *metrics, const char *name) {
    for (int i = 0; i < metrics->count; i++)
        if (strcmp(metrics->metrics[i].name, name) == 0)
            return &metrics->metrics[i];
    return NULL;
}

int wg_metrics_add(wg_metrics *metrics, const char *name, double value, double weight) {
    wg_metric *metric = (wg_metric *)find(metrics, name);
    if (!metric) {
        size_t length = strlen(name);
        if (length == 0 || length >= WG_METRIC_NAME_SIZE)
            return wg_fail(WG_ERROR_ARGUMENT, "metrics",
                           "'%s' is no name for a metric; 1 to %d bytes are wanted", name,
                           WG_METRIC_NAME_SIZE - 1);
        if (metrics->count == WG_METRIC_MAX)
            return wg_fail(WG_ERROR_ARGUMENT, "metrics", "'%s' is one too many: %d are kept", name,
                           WG_METRIC_MAX);
        metric = &metrics->metrics[metrics->count++];
        *metric = (wg_metric){0};
        memcpy(metric->name, name, length + 1);
    }
    if (weight != 0) { /* so that a NaN over nothing stays out of the mean */
        metric->sum += value * weight;
        metric->weight += weight;
    }
    return 0;
}

double wg__metric_value(const wg_metric *metric) {
    return metric->weight == 0 ? NAN : metric->sum / metric->weight;
}

double wg_metrics_get(const wg_metrics *metrics, const char *name) {
    const wg_metric *metric = find(metrics, name);
    return metric ? wg__metric_value(metric) : NAN;
}

double wg_metrics_weight(const wg_metrics *metrics, const char *name) {
    const wg_metric *metric = find(metrics, name);
    return metric ? metric->weight : 0;
}

int wg__metrics_sum(wg_group *group, wg_metrics *metrics) {
    wg_metrics all = *metrics;
    if (wg_group_size(group) == 1)
        return 0;
    if (wg_group_broadcast(group, 0, sizeof all, &all) < 0)
        return -1;
    double sums[1 + 2 * WG_METRIC_MAX] = {(double)metrics->tokens};
    for (int i = 0; i < all.count; i++) {
        const wg_metric *mine = find(metrics, all.metrics[i].name);
        sums[1 + 2 * i] = mine ? mine->sum : 0;
        sums[2 + 2 * i] = mine ? mine->weight : 0;
    }
    if (wg_group_sum(group, WG_GROUP_F64, 1 + 2 * all.count, sums) < 0)
        return -1;
    for (int i = 0; i < metrics->count; i++)
        if (!find(&all, metrics->metrics[i].name))
            return wg_fail(WG_ERROR_STATE, "metrics", "only some ranks have the metric \"%s\"",
                           metrics->metrics[i].name);
    all.tokens = (int64_t)sums[0];
    for (int i = 0; i < all.count; i++) {
        all.metrics[i].sum = sums[1 + 2 * i];
        all.metrics[i].weight = sums[2 + 2 * i];
    }
    *metrics = all;
    return 0;
}
