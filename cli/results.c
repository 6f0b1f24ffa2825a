/* Results on stdout: see results.h. */
#include "cli/results.h"

#include <math.h>
#include <stdio.h>

/* How often always guessing the commoner answer is right. */
static double chance(const wg_metrics *metrics) {
    double random = wg_metrics_get(metrics, "nsp_random");
    return fmax(random, 1 - random);
}

void wg__print_bert_results(const wg_metrics *metrics) {
    double loss = wg_metrics_get(metrics, "mlm_loss");
    printf("masked words     loss %.4f, perplexity %.1f, accuracy %.1f %% of %.0f\n", loss,
           exp(loss), 100 * wg_metrics_get(metrics, "mlm_accuracy"),
           wg_metrics_weight(metrics, "mlm_loss"));
    printf("by word frequency     %.4f\n", wg_metrics_get(metrics, "unigram_loss"));
    printf("next sentences   loss %.4f, accuracy %.1f %% of %.0f pairs\n",
           wg_metrics_get(metrics, "nsp_loss"), 100 * wg_metrics_get(metrics, "nsp_accuracy"),
           wg_metrics_weight(metrics, "nsp_loss"));
    printf("by guessing           accuracy %.1f %%\n", 100 * chance(metrics));
}

json_t *wg__json_number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *wg__bert_results_json(const wg_metrics *metrics) {
    static const char *const means[] = {"mlm_loss", "unigram_loss", "mlm_accuracy", "nsp_loss",
                                        "nsp_accuracy"};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        json_object_set_new(object, means[i], wg__json_number(wg_metrics_get(metrics, means[i])));
    json_object_set_new(object, "nsp_chance", wg__json_number(chance(metrics)));
    json_object_set_new(object, "mlm_tokens",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "mlm_loss")));
    json_object_set_new(object, "nsp_pairs",
                        json_integer((json_int_t)wg_metrics_weight(metrics, "nsp_loss")));
    return object;
}

void wg__print_json(json_t *object) {
    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(object);
}
