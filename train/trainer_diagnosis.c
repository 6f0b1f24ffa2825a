/* The best evaluation of a run, and the probable reason why a run has diverged. */
#include "train/internal.h"

#include <stdio.h>

#include "autograd/internal.h"
#include "data/internal.h"

bool wg_trainer_best(const wg_trainer *trainer, int64_t *step, double *loss) {
    int64_t best = wg__history_best(&trainer->evaluations);
    if (best < 0)
        return false;
    *step = (int64_t)wg_history_column(&trainer->evaluations, "step")[best];
    *loss = wg_history_column(&trainer->evaluations, "loss")[best];
    return true;
}

/* A gradient norm is suspicious if it is SUSPICIOUS times the mean of the last USUAL_STEPS steps.
 */
enum { USUAL_STEPS = 50, SUSPICIOUS = 5 };

void wg__find_not_finite(wg_module *module, char *path, size_t size) {
    wg_state_dict *state = wg_module_state(module);
    const bool recorded = wg_set_grad_enabled(false);
    *path = '\0';
    for (int64_t i = 0; state && i < state->count && !*path; i++) {
        wg_tensor *x = state->entries[i].slot->tensor;
        wg_scope scope;
        wg_scope_begin(&scope);
        /* 0 x is 0 for a finite x, and NaN otherwise. */
        if (wg_dtype_is_float(wg_tensor_dtype(x)) &&
            wg_item(wg_sum(wg_mul_scalar(x, 0), 0, NULL, false)) != 0)
            snprintf(path, size, "%s", state->entries[i].path);
        wg_scope_end(&scope, NULL);
    }
    wg_set_grad_enabled(recorded);
    wg_state_dict_free(state);
}

wg__trainer_place wg__trainer_here(const wg_trainer *trainer) {
    wg__trainer_place place = {.module = *wg_module_generator(trainer->task.module),
                               .own = *wg_default_generator()};
    if (trainer->task.batches)
        place.data = wg__batches_position(trainer->task.batches);
    return place;
}

int wg__trainer_go_to(const wg_trainer *trainer, const wg__trainer_place *place) {
    *wg_module_generator(trainer->task.module) = place->module;
    *wg_default_generator() = place->own;
    return wg__batches_seek(trainer->task.batches, &place->data);
}

/* Runs the step again, from the same place and with the same weights, and names the first op that
 * made an infinity or a NaN of finite operands. "" if no op did, or if the step cannot run again:
 * the task does not name its batches, or there are several ranks. */
static void find_bad_op(wg_trainer *trainer, char *text, size_t size) {
    const wg_trainer_options *options = &trainer->options;
    if (!trainer->task.batches || trainer->exchange)
        return;
    const wg__trainer_place after = wg__trainer_here(trainer);
    const int64_t batches =
        wg__trainer_batches(options->accumulate, options->accumulate_ramp, trainer->step);
    wg_optimizer_zero_grad(trainer->optimizer);
    int status = wg__trainer_go_to(trainer, &trainer->begun_step);
    const bool was = wg__set_nonfinite_mode(true);
    const wg_dtype before = wg_set_matmul_dtype(options->matmul_dtype);
    for (int64_t i = 0; status == 0 && i < batches; i++) {
        wg_metrics metrics = {0};
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *loss = trainer->task.loss(trainer->task.context, &metrics);
        status = loss ? wg_backward(wg_sum(loss, 0, NULL, false), NULL) : -1;
        wg_scope_end(&scope, NULL);
    }
    wg_set_matmul_dtype(before);
    wg__set_nonfinite_mode(was);
    if (status < 0 && wg_error_pending() && wg_error_pending()->code == WG_ERROR_ANOMALY)
        snprintf(text, size, "%.*s", (int)size - 1, wg_error_pending()->message);
    wg_error_clear();
    wg_optimizer_zero_grad(trainer->optimizer);
    wg__trainer_go_to(trainer, &after);
}

void wg__trainer_diagnose(wg_trainer *trainer, char *hint, size_t size) {
    char path[200] = "", op[500] = "";
    if (!trainer->half_stepped) { /* the weights are as before the step */
        wg__find_not_finite(trainer->task.module, path, sizeof path);
        if (!*path)
            find_bad_op(trainer, op, sizeof op);
    }
    const double *norms = wg_history_column(&trainer->training, "grad_norm");
    int64_t last = trainer->training.row_count - 1;
    int64_t first = last > USUAL_STEPS ? last - USUAL_STEPS : 0;
    double sum = 0;
    for (int64_t row = first; row < last; row++)
        sum += norms[row];
    double excess = sum > 0 ? norms[last] * (double)(last - first) / sum : 0;
    /* Before the first step no weight has moved, so the learning rate is not the reason. */
    if (trainer->step == 0 && *path)
        snprintf(hint, size, "%s was not finite before this step; look at its initial value", path);
    else if (trainer->step == 0)
        snprintf(hint, size,
                 "%s%s; no weight has been stepped yet, so look at the data and the loss",
                 *op ? "the first that is not finite: " : "the weights are finite", op);
    else if (*op)
        snprintf(hint, size, "the first that is not finite: %s; lower the learning rate", op);
    else if (*path)
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
