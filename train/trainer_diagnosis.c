/* What a run knows of itself: which evaluation was best, and why it may have diverged. */
#include "train/trainer_state.h"

#include <math.h>
#include <stdio.h>

#include "tensor/internal.h"
#include "tensor/ops.h"

int64_t wg__best_evaluation(const wg_history *evaluations) {
    const double *losses = wg_history_column(evaluations, "loss");
    int64_t best = -1;
    for (int64_t row = 0; losses && row < evaluations->row_count; row++)
        if (isfinite(losses[row]) && (best < 0 || losses[row] < losses[best]))
            best = row;
    return best;
}

bool wg_trainer_best(const wg_trainer *trainer, int64_t *step, double *loss) {
    int64_t best = wg__best_evaluation(&trainer->evaluations);
    if (best < 0)
        return false;
    *step = (int64_t)wg_history_column(&trainer->evaluations, "step")[best];
    *loss = wg_history_column(&trainer->evaluations, "loss")[best];
    return true;
}

/* ---- Divergence ---- */

/* Steps that the last one is held against, and how much more than usual is suspicious. */
enum { USUAL_STEPS = 50, SUSPICIOUS = 5 };

/* The path of a parameter that is no longer finite; "" if all are. */
static void find_bad_weight(wg_module *module, char *path, size_t size) {
    wg_state_dict *state = wg_module_state(module);
    bool recorded = wg_set_grad_enabled(false);
    for (int64_t i = 0; state && i < state->count; i++) {
        wg_tensor *x = state->entries[i].slot->tensor;
        if (wg_dtype_is_float(wg_tensor_dtype(x)) && !wg__is_finite(x)) {
            snprintf(path, size, "%s", state->entries[i].path);
            break;
        }
    }
    wg_set_grad_enabled(recorded);
    wg_state_dict_free(state);
}

/* How many times the usual the gradient norm of the last step was; 0 if too few steps are known. */
static double last_excess(const wg_history *training) {
    const double *norms = wg_history_column(training, "grad_norm");
    int64_t last = training->row_count - 1;
    int64_t first = last > USUAL_STEPS ? last - USUAL_STEPS : 0;
    double sum = 0;
    for (int64_t row = first; row < last; row++)
        sum += norms[row];
    return sum > 0 ? norms[last] * (double)(last - first) / sum : 0;
}

void wg__trainer_diagnose(const wg_trainer *trainer, char *hint, size_t size) {
    char path[200] = "";
    if (!trainer->is_torn) /* the weights are those before the step */
        find_bad_weight(trainer->task.module, path, sizeof path);
    double excess = last_excess(&trainer->training);
    if (*path)
        snprintf(hint, size, "%s was not finite before this step; lower the learning rate", path);
    else if (excess > SUSPICIOUS)
        snprintf(hint, size,
                 "in step %lld the gradient had %.2g times the norm of those before; lower the "
                 "learning rate or the clipping norm, or warm up longer",
                 (long long)trainer->step, excess);
    else
        snprintf(hint, size,
                 "the weights are finite and the last gradients were as usual, so look at this "
                 "batch: anomaly mode (wg_set_anomaly_mode) names the op; or lower the learning "
                 "rate");
}
