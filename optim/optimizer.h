/* Optimizers: they update tensors that require gradients, added one by one or by module.
 *
 *     wg_optimizer *opt = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01});
 *     wg_optimizer_add_module(opt, &model->module);
 *     ... wg_backward(loss, NULL) ...
 *     wg_optimizer_clip(opt, 1.0, &norm);
 *     wg_optimizer_step(opt, learning_rate);        also drops the gradients
 *
 * or, in less memory and without clipping, between wg_optimizer_step_begin and _end.
 */
#ifndef WG_OPTIM_OPTIMIZER_H
#define WG_OPTIM_OPTIMIZER_H

#include "../nn/module.h"

WG_BEGIN_DECLS

typedef struct wg_optimizer wg_optimizer;

/* ---- Kinds. Options that are NULL or 0 mean the defaults; a momentum or beta of WG_ZERO is 0.
 * Freed with wg_optimizer_free. All give NULL with MEMORY, ARGUMENT. In the formulas lr is the
 * learning rate of the step and t its number, from 1; the decay does not reach parameters added
 * with no_decay. ---- */

typedef struct wg_adamw_options {
    double beta1;        /* 0: 0.9 */
    double beta2;        /* 0: 0.999 */
    double eps;          /* 0: 1e-8 */
    double weight_decay; /* 0: none (PyTorch's default of 0.01 must be asked for) */
} wg_adamw_options;

typedef wg_adamw_options wg_adam_options;

/* AdamW   (Loshchilov & Hutter 2019, algorithm 2):
 *     m = b1 m + (1 - b1) g;   v = b2 v + (1 - b2) g^2
 *     w = w - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay w)
 * State: "exp_avg", "exp_avg_sq". */
WG_API wg_optimizer *wg_adamw_new(const wg_adamw_options *options);

/* Adam   (Kingma & Ba 2015): the same, with the decay in the gradient, g = g + decay w. */
WG_API wg_optimizer *wg_adam_new(const wg_adam_options *options);

typedef struct wg_sgd_options {
    double momentum; /* 0: none */
    double weight_decay;
    bool nesterov;
} wg_sgd_options;

/* Stochastic gradient descent, as PyTorch's:
 *     g = g + decay w;   m = momentum m + g
 *     w = w - lr m;   with nesterov w = w - lr (g + momentum m);   without momentum w = w - lr g
 * State: "momentum_buffer", if there is a momentum. */
WG_API wg_optimizer *wg_sgd_new(const wg_sgd_options *options);

typedef struct wg_adafactor_options {
    double eps1;           /* 0: 1e-30 */
    double eps2;           /* 0: 1e-3 */
    double clip_threshold; /* d; 0: 1 */
    double decay_rate;     /* 0: 0.8 */
    double weight_decay;
    bool absolute_rate; /* the step size is lr itself, not relative to the weights */
} wg_adafactor_options;

/* Adafactor   (Shazeer & Stern 2018, algorithms 4 and 5, without momentum, as T5 was trained):
 *     b2 = 1 - t^-decay_rate;   V = b2 V + (1 - b2) (g^2 + eps1), of matrices by rows and columns
 *     u = g / sqrt(V);   alpha = lr max(eps2, RMS(w))
 *     w = w - alpha (u / max(1, RMS(u) / d) + decay w)
 * The paper's lr is min(1e-2, 1 / sqrt(t)); WG_SCHEDULE_INVERSE_SQRT with the peak 1e-2 and a
 * warm-up of 10^4 gives the same. State: "exp_avg_sq_row" and "exp_avg_sq_col" over the last two
 * axes of parameters with two axes or more, "exp_avg_sq" for vectors and numbers. */
WG_API wg_optimizer *wg_adafactor_new(const wg_adafactor_options *options);

typedef struct wg_lion_options {
    double beta1; /* 0: 0.9 */
    double beta2; /* 0: 0.99 */
    double weight_decay;
} wg_lion_options;

/* Lion   (Chen et al. 2023, algorithm 2), which wants a third to a tenth of AdamW's lr:
 *     w = w - lr (sign(b1 m + (1 - b1) g) + decay w);   m = b2 m + (1 - b2) g
 * State: "exp_avg". */
WG_API wg_optimizer *wg_lion_new(const wg_lion_options *options);

typedef struct wg_muon_options {
    double momentum;     /* 0: 0.95 */
    double weight_decay; /* of the matrices */
    bool match_adamw;    /* scale = 0.2 sqrt(max(rows, columns)) (Liu et al. 2025), so that lr and
                            decay of AdamW serve; else sqrt(max(1, rows / columns)) (Jordan) */
    const char *const
        *adamw_names;       /* parts of names, ended by NULL: matrices that AdamW steps.
                               Borrowed. NULL: "embed", "wte", "wpe", "shared", "head", "cls." */
    wg_adamw_options adamw; /* of parameters that are no matrices, and of those named */
    double adamw_rate;      /* its learning rate, as a multiple of lr; 0: 1 */
} wg_muon_options;

/* Muon   (Jordan et al. 2024), of parameters with two axes:
 *     m = momentum m + (1 - momentum) g;   x = momentum m + (1 - momentum) g      (Nesterov)
 *     w = w - lr (scale NewtonSchulz5(x) + decay w)
 * and AdamW for all other parameters. Under wg_set_matmul_dtype(WG_BF16) the products of the
 * Newton-Schulz iteration round to bf16, as Jordan's do. State: "momentum_buffer"; AdamW's. */
WG_API wg_optimizer *wg_muon_new(const wg_muon_options *options);

/* An optimizer by its name on a command line; 0 leaves an option at its default, WG_ZERO is 0. */
typedef struct wg_optimizer_choice {
    const char *name;         /* "sgd", "adam", "adamw", "adafactor", "lion", "muon" */
    double weight_decay;      /* of all */
    double momentum;          /* of sgd (0: 0.9; Nesterov's, unless it is WG_ZERO) and muon */
    double beta1, beta2, eps; /* of adam, adamw, lion (but eps) and the AdamW in muon */
} wg_optimizer_choice;

/* Makes an optimizer by name; Muon has match_adamw. NULL with ARGUMENT, MEMORY; NOT_FOUND for an
 * unknown name, which lists the known names. */
WG_API wg_optimizer *wg_optimizer_new(const wg_optimizer_choice *choice);

/* ---- User-defined optimizers ---- */

#define WG_RULE_STATES 4

/* One parameter in one step. */
typedef struct wg_parameter_step {
    const char *name;
    wg_tensor *parameter;     /* to be written in place: wg_copy_, wg_add_, wg_tensor_data */
    wg_tensor *gradient;      /* of the parameter's shape and dtype, clipped; not to be written */
    wg_tensor *const *states; /* as the rule names them, to be written in place */
    double learning_rate;     /* of this step and the parameter's group */
    double weight_decay;      /* of the parameter's group; 0 for one without decay */
    int64_t step;             /* its number, from 1 */
} wg_parameter_step;

/* An update rule. It sees a single parameter at a time, and runs with recording off, in a new
 * scope. It keeps all that it needs for later steps in its states, so that runs can be resumed. */
typedef struct wg_update_rule {
    const char *states[WG_RULE_STATES]; /* names of tensors of the parameter's shape, zeros at
                                         * first, which checkpoints keep; up to NULL. Borrowed */
    int (*step)(void *context, const wg_parameter_step *step); /* 0, or -1 with an error */
    double weight_decay; /* of parameters whose group has no decay */
} wg_update_rule;

/* An optimizer by a rule of the caller's. It works with the trainer, clipping, groups, steps in
 * backward, checkpoints and ZeRO, as the built-in optimizers do. After an error of the rule some
 * parameters are stepped and others are not. The rule is copied, `context` is borrowed.
 *
 *     static int sign_descent(void *context, const wg_parameter_step *s) {
 *         return wg_add_(s->parameter, wg_sign(s->gradient), -s->learning_rate);
 *     }
 *     wg_optimizer *opt = wg_optimizer_from_rule(&(wg_update_rule){.step = sign_descent}, NULL); */
WG_API wg_optimizer *wg_optimizer_from_rule(const wg_update_rule *rule, void *context);

/* ---- Parameter groups: a separate learning rate or decay for parameters, by their names ---- */

typedef struct wg_parameter_group {
    const char *names; /* a pattern of names, as of files in a shell: "*.bias", "encoder.layer.0.*";
                        * `*` is any text, `?` any character, [abc] one of these */
    double rate;       /* the learning rate, as a multiple of the step's; 0: 1; WG_ZERO: 0 */
    double weight_decay; /* of the group's parameters added without no_decay; 0: the optimizer's */
    bool no_decay;       /* the group's parameters have no decay */
} wg_parameter_group;

/* Adds a group: parameters added later belong to it if their names match. If several groups
 * match, only the last added one applies. A step refuses a group without parameters, because its
 * pattern is probably misspelt. For a trainer, which adds the parameters itself, add the groups
 * before. Checkpoints do not store groups: a program that resumes a run adds them again.
 * [ARGUMENT, also if there are parameters already; MEMORY] */
WG_API int wg_optimizer_add_group(wg_optimizer *optimizer, const wg_parameter_group *group);

/* Groups for layer-wise decay of the learning rate   (Clark et al. 2020, "ELECTRA", for
 * fine-tuning): layer i of `count` has the rate decay^(count - i), the parameters that match the
 * pattern `below` (NULL: none) have decay^(count + 1), and all others, the head, have 1.
 *
 *     wg_optimizer_layer_decay(opt, "bert.encoder.layer", 12, "bert.embeddings.*", 0.8);
 *
 * The layers are "LAYERS.0.*", "LAYERS.1.*"... [as wg_optimizer_add_group] */
WG_API int wg_optimizer_layer_decay(wg_optimizer *optimizer, const char *layers, int64_t count,
                                    const char *below, double decay);

/* ---- Use ---- */

/* Frees the optimizer and its state, not the parameters; NULL is allowed. */
WG_API void wg_optimizer_free(wg_optimizer *optimizer);

/* Adds a leaf that every step updates. Its state is made now, as zeros, and the name is copied; the
 * tensor is borrowed and must outlive the optimizer. no_decay: for biases and norms. [ARGUMENT for
 * a name given twice, and for a tensor that shares memory with an added one; GRADIENT for a tensor
 * that requires no gradient; MEMORY] */
WG_API int wg_optimizer_add(wg_optimizer *optimizer, const char *name, wg_tensor *parameter,
                            bool no_decay);

/* Adds every parameter of `module` that requires a gradient by wg_optimizer_add, under its path.
 * Tied parameters are added once; buffers and frozen parameters (wg_module_requires_grad) are left
 * out. Biases and norms (wg_module_no_decay) are added with no_decay. After an error some
 * parameters may have been added. [as wg_optimizer_add; GRADIENT if all parameters are frozen] */
WG_API int wg_optimizer_add_module(wg_optimizer *optimizer, wg_module *module);

/* The global norm of all gradients, sqrt(sum g^2), into *norm; if it exceeds max_norm (> 0; 0 only
 * measures) the next step scales every gradient by max_norm / norm, without an extra pass over
 * memory. A norm that is not finite is an error, and steps are refused. [GRADIENT] */
WG_API int wg_optimizer_clip(wg_optimizer *optimizer, double max_norm, double *norm);

/* Updates every parameter that has a gradient, and drops the gradients. One pass over memory, in
 * parallel. Refuses while an error is pending. Does not check whether gradients are finite: call
 * wg_optimizer_clip before (max_norm 0 clips nothing), or NaN and infinities reach the weights.
 * [GRADIENT; ARGUMENT for a group without parameters] */
WG_API int wg_optimizer_step(wg_optimizer *optimizer, double learning_rate);

/* A step in backward: the same bits in less memory. Each parameter is stepped as soon as its
 * gradient is complete, and the gradient is dropped, while backward goes on   (Lv et al. 2023,
 * "LOMO"; for PyTorch's users, the optimizer step fused into the backward pass):
 *
 *     wg_optimizer_step_begin(opt, learning_rate, &norm);
 *     wg_backward(loss, NULL);
 *     wg_optimizer_step_end(opt);
 *
 * So at most a few gradients are in memory at any time, and gradients cannot be clipped. Where
 * backward passes are accumulated, begin and end enclose the last one.
 *
 * norm: NULL, or where wg_optimizer_step_end puts the norm that wg_optimizer_clip would; a gradient
 * that is not finite is then an error of backward. [ARGUMENT; STATE: a step is under way, or the
 * gradients were clipped; GRADIENT, MEMORY] */
WG_API int wg_optimizer_step_begin(wg_optimizer *optimizer, double learning_rate, double *norm);

/* Updates the parameters whose gradient comes from earlier backward passes only, and ends the step.
 * Must be called after wg_optimizer_step_begin in every case. After an error, also of backward,
 * some parameters may be stepped and others not, which cannot be undone; wg_optimizer_steps counts
 * the step if any parameter is stepped. Gradients of parameters without a step stay until
 * wg_optimizer_zero_grad. [STATE: no step was begun; GRADIENT] */
WG_API int wg_optimizer_step_end(wg_optimizer *optimizer);

/* Drops all gradients without a step. */
WG_API void wg_optimizer_zero_grad(wg_optimizer *optimizer);

/* The number of steps taken so far. */
WG_API int64_t wg_optimizer_steps(const wg_optimizer *optimizer);

/* ---- Learning-rate schedules: a rate from a step number, without state.
 *
 *     linear     cosine      constant    noam         inverse-sqrt   wsd
 *      /\         /-.         /-----      /\           --.            /----\
 *     /  \       /   \       /           /  `-.           `-.        /      \
 *    /    \     /     `-    /           /      `---          `---   /        \ ---- */

/* With t = step + 1, W = warmup_steps and T = total_steps. All but inverse-sqrt rise to their peak
 * by peak t / W while t <= W. Afterwards, with p = min((t - W) / (T - W), 1), or p = 0 if T is 1
 * (the single step of a run has the peak rate): */
typedef enum wg_schedule_kind {
    WG_SCHEDULE_LINEAR,   /* peak (1 - (1 - final) p): down to `final` at the last step (BERT's) */
    WG_SCHEDULE_CONSTANT, /* peak */
    WG_SCHEDULE_COSINE,   /* peak (final + (1 - final) (1 + cos(pi p)) / 2)
                             (Loshchilov & Hutter 2017, one cycle) */
    WG_SCHEDULE_WSD,      /* warm-up, stable, decay: peak, then linearly down to `final` over the
                             last D = decay_steps (Hu et al. 2024; Haegele et al. 2024) */
    WG_SCHEDULE_NOAM,     /* peak width^-1/2 min(t^-1/2, t W^-3/2)   (Vaswani et al. 2017, eq. 3;
                             `peak` is a factor, 1 in the paper); without a width the rate is
                             `peak` at the end of the warm-up */
    WG_SCHEDULE_INVERSE_SQRT, /* peak sqrt(W / max(t, W)): no rise (Raffel et al. 2020, whose
                                 1 / sqrt(max(t, W)) has the peak 1 / sqrt(W)) */
    WG_SCHEDULE_OWN           /* what `rate` returns, and nothing else */
} wg_schedule_kind;

typedef struct wg_schedule {
    wg_schedule_kind kind;
    double peak;          /* the rate at the end of the warm-up */
    double final;         /* the rate at the end, as a fraction of the peak */
    int64_t warmup_steps; /* 0: none; noam and inverse-sqrt take it as 1 */
    int64_t total_steps;
    int64_t decay_steps; /* of wsd; 0: a tenth of all, at least 1 */
    int64_t width;       /* of noam: d_model; 0: see there */
    /* For WG_SCHEDULE_OWN: the rate of step `step`, from 0 */
    double (*rate)(const struct wg_schedule *schedule, int64_t step);
    void *context; /* for `rate`, borrowed */
} wg_schedule;

/* The rate for step `step`, counted from 0; NaN for WG_SCHEDULE_OWN without a `rate`. */
WG_API double wg_schedule_rate(const wg_schedule *schedule, int64_t step);

/* The kind of that name ("linear", "constant", "cosine", "wsd", "noam", "inverse-sqrt"), or -1 (no
 * error is recorded). WG_SCHEDULE_OWN has no name. */
WG_API int wg_schedule_find(const char *name);

WG_END_DECLS

#endif
