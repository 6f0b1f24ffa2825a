/* Named weighted means: see metrics.h. */
#include "train/metrics.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

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

double wg_metric_value(const wg_metric *metric) {
    return metric->weight == 0 ? NAN : metric->sum / metric->weight;
}

double wg_metrics_get(const wg_metrics *metrics, const char *name) {
    const wg_metric *metric = find(metrics, name);
    return metric ? wg_metric_value(metric) : NAN;
}

double wg_metrics_weight(const wg_metrics *metrics, const char *name) {
    const wg_metric *metric = find(metrics, name);
    return metric ? metric->weight : 0;
}
