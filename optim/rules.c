/* The rules of SGD, Adam, AdamW, Lion, Muon and of the caller, and all optimizers by name. */
#include "optim/internal.h"

#include <math.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/internal.h"
#include "tensor/ops.h"

/* ---- Stochastic gradient descent, with momentum as PyTorch has it: the learning rate is not in
 * the momentum, so that a change of it acts at once   (Sutskever et al. 2013, for Nesterov's) ----
 */

static const char *const momentum_state[] = {"momentum_buffer", NULL};

static int prepare_sgd(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    return optimizer->options.sgd.momentum == 0 ? 0
                                                : wg__optimizer_add_states(entry, momentum_state);
}

static void update_sgd_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const wg__optimizer_entry *entry = chunk->entry;
    wg__sgd_rates rates = *(const wg__sgd_rates *)context;
    rates.decay = wg__entry_decay(entry, rates.decay);
    rates.step_size *= entry->rate;
    int64_t count = chunk->end - chunk->begin;
    const void *gradient = wg__entry_gradient(entry, chunk->begin);
    void *weight = wg__entry_weight(entry, chunk->begin);
    if (entry->state_count)
        entry->loops->sgd_momentum(count, &rates, gradient, weight,
                                   wg__entry_state(entry, 0, chunk->begin));
    else
        entry->loops->sgd(count, &rates, gradient, weight);
}

static int step_sgd(wg_optimizer *optimizer, double learning_rate) {
    const wg_sgd_options *options = &optimizer->options.sgd;
    wg__sgd_rates rates = {.gradient_scale = optimizer->gradient_scale,
                           .decay = options->weight_decay,
                           .momentum = options->momentum,
                           .direct = options->nesterov ? 1 : 0,
                           .along = options->nesterov ? options->momentum : 1,
                           .step_size = learning_rate};
    wg__optimizer_walk(optimizer, update_sgd_chunk, &rates);
    return 0;
}

static const wg__optimizer_rule sgd = {.prepare = prepare_sgd, .step = step_sgd};

wg_optimizer *wg_sgd_new(const wg_sgd_options *options) {
    static const char where[] = "sgd_new";
    wg_sgd_options chosen = options ? *options : (wg_sgd_options){0};
    chosen.momentum = wg__option(chosen.momentum, 0);
    if (wg__check_option(where, "momentum", chosen.momentum, WG__RANGE_FRACTION) < 0 ||
        wg__check_option(where, "weight_decay", chosen.weight_decay, WG__RANGE_NOT_NEGATIVE) < 0)
        return NULL;
    if (chosen.nesterov && chosen.momentum == 0)
        return wg__fail_null(WG_ERROR_ARGUMENT, where, "Nesterov's step wants a momentum");
    return wg__optimizer_new(&sgd, &chosen, sizeof chosen);
}

/* ---- Adam   (Kingma & Ba 2015, algorithm 1) and AdamW   (Loshchilov & Hutter 2019, algorithm 2):
 * they differ in where the weight decay enters ---- */

typedef struct adam_update {
    double learning_rate;
    double decay;         /* of parameters whose group has no decay */
    bool is_coupled;      /* the decay is a part of the gradient: Adam's */
    wg__adam_rates rates; /* of a parameter without decay */
} adam_update;

static void update_adam_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const adam_update *step = context;
    const wg__optimizer_entry *entry = chunk->entry;
    const double decay = wg__entry_decay(entry, step->decay);
    wg__adam_rates rates = step->rates;
    rates.step_size *= entry->rate;
    rates.keep = step->is_coupled ? 1 : 1 - step->learning_rate * entry->rate * decay;
    rates.coupled_decay = step->is_coupled ? decay : 0;
    entry->loops->adam(chunk->end - chunk->begin, &rates, wg__entry_gradient(entry, chunk->begin),
                       wg__entry_weight(entry, chunk->begin),
                       wg__entry_state(entry, 0, chunk->begin),
                       wg__entry_state(entry, 1, chunk->begin));
}

/* `options` are the optimizer's, or Muon's for AdamW. */
static adam_update adam_update_of(const wg_optimizer *optimizer, const wg_adamw_options *options,
                                  double learning_rate, bool is_coupled) {
    const double t = (double)optimizer->steps;
    return (adam_update){learning_rate,
                         options->weight_decay,
                         is_coupled,
                         {.gradient_scale = optimizer->gradient_scale,
                          .beta1 = options->beta1,
                          .beta2 = options->beta2,
                          .root_scale = 1 / sqrt(1 - pow(options->beta2, t)),
                          .eps = options->eps,
                          .step_size = learning_rate / (1 - pow(options->beta1, t))}};
}

static int step_adam(wg_optimizer *optimizer, double learning_rate) {
    adam_update step = adam_update_of(optimizer, &optimizer->options.adam, learning_rate,
                                      optimizer->rule->couples_decay);
    wg__optimizer_walk(optimizer, update_adam_chunk, &step);
    return 0;
}

static const wg__optimizer_rule adamw = {.states = {"exp_avg", "exp_avg_sq"}, .step = step_adam};
static const wg__optimizer_rule adam = {
    .states = {"exp_avg", "exp_avg_sq"}, .step = step_adam, .couples_decay = true};

static int fill_adamw_options(const char *where, wg_adamw_options *options) {
    options->beta1 = wg__option(options->beta1, 0.9);
    options->beta2 = wg__option(options->beta2, 0.999);
    options->eps = wg__option(options->eps, 1e-8);
    if (wg__check_option(where, "beta1", options->beta1, WG__RANGE_FRACTION) < 0 ||
        wg__check_option(where, "beta2", options->beta2, WG__RANGE_FRACTION) < 0 ||
        wg__check_option(where, "eps", options->eps, WG__RANGE_POSITIVE) < 0)
        return -1;
    return wg__check_option(where, "weight_decay", options->weight_decay, WG__RANGE_NOT_NEGATIVE);
}

static wg_optimizer *make_adam(const char *where, const wg__optimizer_rule *rule,
                               const wg_adamw_options *options) {
    wg_adamw_options chosen = options ? *options : (wg_adamw_options){0};
    if (fill_adamw_options(where, &chosen) < 0)
        return NULL;
    return wg__optimizer_new(rule, &chosen, sizeof chosen);
}

wg_optimizer *wg_adamw_new(const wg_adamw_options *options) {
    return make_adam("adamw_new", &adamw, options);
}

wg_optimizer *wg_adam_new(const wg_adam_options *options) {
    return make_adam("adam_new", &adam, options);
}

/* ---- Lion   (Chen et al. 2023, algorithm 2) ---- */

typedef struct lion_update {
    double decay; /* of parameters whose group has no decay */
    wg__lion_rates rates;
} lion_update;

static void update_lion_chunk(const wg__optimizer_chunk *chunk, void *context) {
    const lion_update *step = context;
    const wg__optimizer_entry *entry = chunk->entry;
    wg__lion_rates rates = step->rates;
    rates.step_size *= entry->rate;
    rates.keep = 1 - rates.step_size * wg__entry_decay(entry, step->decay);
    entry->loops->lion(chunk->end - chunk->begin, &rates, wg__entry_gradient(entry, chunk->begin),
                       wg__entry_weight(entry, chunk->begin),
                       wg__entry_state(entry, 0, chunk->begin));
}

static int step_lion(wg_optimizer *optimizer, double learning_rate) {
    const wg_lion_options *options = &optimizer->options.lion;
    lion_update step = {options->weight_decay,
                        {.gradient_scale = optimizer->gradient_scale,
                         .beta1 = options->beta1,
                         .beta2 = options->beta2,
                         .step_size = learning_rate}};
    wg__optimizer_walk(optimizer, update_lion_chunk, &step);
    return 0;
}

static const wg__optimizer_rule lion = {.states = {"exp_avg"}, .step = step_lion};

wg_optimizer *wg_lion_new(const wg_lion_options *options) {
    static const char where[] = "lion_new";
    wg_lion_options chosen = options ? *options : (wg_lion_options){0};
    chosen.beta1 = wg__option(chosen.beta1, 0.9);
    chosen.beta2 = wg__option(chosen.beta2, 0.99);
    if (wg__check_option(where, "beta1", chosen.beta1, WG__RANGE_FRACTION) < 0 ||
        wg__check_option(where, "beta2", chosen.beta2, WG__RANGE_FRACTION) < 0 ||
        wg__check_option(where, "weight_decay", chosen.weight_decay, WG__RANGE_NOT_NEGATIVE) < 0)
        return NULL;
    return wg__optimizer_new(&lion, &chosen, sizeof chosen);
}

/* ---- Muon   (Jordan et al. 2024): a matrix moves along the orthogonal factor of its momentum,
 * which the Newton-Schulz iteration
 *
 *     X = X / |X|;   five times: A = X X^T,  X = a X + (b A + c A^2) X
 *
 * approximates: a, b and c bring the singular values near 1 quickly, not exactly. X has its shorter
 * side first, so that X X^T is small. AdamW updates all parameters that are no hidden matrices.
 * ---- */

enum { ITERATIONS = 5 };
static const double coefficients[] = {3.4445, -4.7750, 2.0315};

/* Added to the norm, so that a matrix of zeros is not divided by 0. */
#define NORM_EPS 1e-7

/* ---- Muon: Parameters ---- */

/* Embeddings and output layers are matrices by their shape alone. */
static const char *const default_adamw_names[] = {"embed", "wte",  "wpe", "shared",
                                                  "head",  "cls.", NULL};

/* The sides of a matrix, and its strides when it is read with the shorter side first. */
typedef struct sides {
    int64_t shorter, longer;
    int64_t row_stride, column_stride;
} sides;

static sides sides_of(const wg_tensor *parameter) {
    const int64_t *shape = wg_tensor_shape(parameter);
    if (shape[0] <= shape[1])
        return (sides){shape[0], shape[1], shape[1], 1};
    return (sides){shape[1], shape[0], 1, shape[1]};
}

static bool is_matrix(const wg_optimizer *optimizer, const wg__optimizer_entry *entry) {
    bool is_named = false;
    for (const char *const *part = optimizer->options.muon.adamw_names; *part; part++)
        is_named = is_named || strstr(entry->name, *part);
    return wg_tensor_ndim(entry->parameter) == 2 && !is_named;
}

static int prepare_muon(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    entry->as_matrix = is_matrix(optimizer, entry);
    if (wg__optimizer_add_states(entry, entry->as_matrix ? momentum_state : adamw.states) < 0)
        return -1;
    if (!entry->as_matrix || entry->end == entry->begin) /* another rank's */
        return 0;
    /* Sums of the chunks, X and the next X, A and b A + c A^2. */
    const int64_t count = wg_tensor_count(entry->parameter),
                  shorter = sides_of(entry->parameter).shorter;
    const size_t numbers = 2 * (size_t)count + 2 * (size_t)(shorter * shorter);
    return wg__optimizer_reserve_scratch(optimizer, (size_t)wg__ceil_divide(count, WG__GRAIN) *
                                                            sizeof(double) +
                                                        numbers * wg_dtype_size(entry->dtype));
}

/* ---- Muon: One matrix ---- */

typedef struct matrix_step {
    const wg_optimizer *optimizer;
    const wg__optimizer_entry *entry;
    int64_t count;
    double *sums;
    char *x, *next, *a, *b;
    double factor; /* the factor of X before the iteration */
    double keep, step_size;
    char *from, *to; /* of apply */
} matrix_step;

static void *element(const matrix_step *step, char *numbers, int64_t at) {
    return numbers + (size_t)at * wg_dtype_size(step->entry->dtype);
}

static void update_momentum(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    step->sums[begin / WG__GRAIN] = step->entry->loops->nesterov(
        end - begin, step->optimizer->gradient_scale, step->optimizer->options.muon.momentum,
        wg__entry_gradient(step->entry, begin), wg__entry_state(step->entry, 0, begin),
        element(step, step->x, begin));
}

static void scale(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    step->entry->loops->scale(end - begin, step->factor, element(step, step->x, begin));
}

/* to = keep to - step_size from */
static void apply(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    step->entry->loops->apply(end - begin, step->keep, step->step_size,
                              element(step, step->from, begin), element(step, step->to, begin));
}

static void scale_to_next(int64_t begin, int64_t end, void *context) {
    const matrix_step *step = context;
    char *next = element(step, step->next, begin);
    memcpy(next, element(step, step->x, begin),
           (size_t)(end - begin) * wg_dtype_size(step->entry->dtype));
    step->entry->loops->scale(end - begin, coefficients[0], next);
}

/* X = a X + (b A + c A^2) X. Under wg_set_matmul_dtype(WG_BF16) the products round to bf16. */
static void orthogonalise(matrix_step *step) {
    const sides sides = sides_of(step->entry->parameter);
    const int64_t m = sides.shorter, n = sides.longer;
    wg__product product = {.dtype = step->entry->dtype,
                           .rounds = step->entry->dtype == WG_F32 && wg__matmul_dtype() == WG_BF16,
                           .m = m,
                           .alpha = 1};
    const wg__matrix a = {step->a, m, 1}, b = {step->b, m, 1};
    step->from = step->a; /* apply: B = c B + b A */
    step->to = step->b;
    step->keep = coefficients[2];
    step->step_size = -coefficients[1];
    for (int i = 0; i < ITERATIONS; i++) {
        const wg__matrix x = {step->x, sides.row_stride, sides.column_stride};
        const wg__matrix next = {step->next, sides.row_stride, sides.column_stride};
        product.n = m, product.k = n, product.beta = 0;
        product.a = x, product.b = wg__transposed(x), product.c = a;
        wg__gemm(&product);
        product.k = m;
        product.a = a, product.b = a, product.c = b;
        wg__gemm(&product);
        wg__parallel_for(m * m, WG__GRAIN, apply, step);
        wg__parallel_for(step->count, WG__GRAIN, scale_to_next, step);
        product.n = n, product.beta = 1;
        product.a = b, product.b = x, product.c = next;
        wg__gemm(&product);
        char *spare = step->x;
        step->x = step->next;
        step->next = spare;
    }
}

/* The update is scaled by Jordan's sqrt(max(1, rows / columns)), or by 0.2 sqrt(max(rows,
 * columns)), which gives it about the root mean square of an AdamW update (Liu et al. 2025). */
static void step_matrix(const wg_optimizer *optimizer, const wg__optimizer_entry *entry,
                        double learning_rate) {
    const wg_muon_options *options = &optimizer->options.muon;
    const double decay = wg__entry_decay(entry, options->weight_decay);
    const double rows = (double)wg_tensor_shape(entry->parameter)[0],
                 columns = (double)wg_tensor_shape(entry->parameter)[1];
    learning_rate *= entry->rate;
    matrix_step step = {
        .optimizer = optimizer,
        .entry = entry,
        .count = wg_tensor_count(entry->parameter),
    };
    const size_t size = wg_dtype_size(entry->dtype), all = (size_t)step.count * size;
    const int64_t chunks = wg__ceil_divide(step.count, WG__GRAIN);
    const int64_t shorter = sides_of(entry->parameter).shorter;
    step.sums = optimizer->scratch;
    step.x = (char *)(step.sums + chunks);
    step.next = step.x + all;
    step.a = step.next + all;
    step.b = step.a + (size_t)(shorter * shorter) * size;
    wg__parallel_for(step.count, WG__GRAIN, update_momentum, &step);
    double sum = 0;
    for (int64_t chunk = 0; chunk < chunks; chunk++)
        sum += step.sums[chunk];
    step.factor = 1 / (sqrt(sum) + NORM_EPS);
    wg__parallel_for(step.count, WG__GRAIN, scale, &step);
    orthogonalise(&step);
    step.from = step.x; /* apply: w = keep w - step_size X */
    step.to = wg_tensor_data(entry->parameter);
    step.keep = 1 - learning_rate * decay;
    step.step_size = learning_rate * (options->match_adamw ? 0.2 * sqrt(fmax(rows, columns))
                                                           : sqrt(fmax(1, rows / columns)));
    wg__parallel_for(step.count, WG__GRAIN, apply, &step);
}

/* ---- Muon: All of them ---- */

static void update_rest(const wg__optimizer_chunk *chunk, void *context) {
    if (!chunk->entry->as_matrix)
        update_adam_chunk(chunk, context);
}

static int step_muon(wg_optimizer *optimizer, double learning_rate) {
    const wg_muon_options *options = &optimizer->options.muon;
    double rest_rate = learning_rate * options->adamw_rate;
    adam_update rest = adam_update_of(optimizer, &options->adamw, rest_rate, false);
    wg__optimizer_walk(optimizer, update_rest, &rest);
    for (int64_t i = optimizer->first; i < optimizer->last; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        if (entry->as_matrix && entry->gradient && wg_tensor_count(entry->parameter) > 0)
            step_matrix(optimizer, entry, learning_rate);
    }
    return 0;
}

static const wg__optimizer_rule muon = {
    .prepare = prepare_muon, .step = step_muon, .is_whole = is_matrix};

wg_optimizer *wg_muon_new(const wg_muon_options *options) {
    static const char where[] = "muon_new";
    wg_muon_options chosen = options ? *options : (wg_muon_options){0};
    chosen.momentum = wg__option(chosen.momentum, 0.95);
    chosen.adamw_rate = wg__option(chosen.adamw_rate, 1);
    if (!chosen.adamw_names)
        chosen.adamw_names = default_adamw_names;
    if (wg__check_option(where, "momentum", chosen.momentum, WG__RANGE_FRACTION) < 0 ||
        wg__check_option(where, "weight_decay", chosen.weight_decay, WG__RANGE_NOT_NEGATIVE) < 0 ||
        wg__check_option(where, "adamw_rate", chosen.adamw_rate, WG__RANGE_POSITIVE) < 0 ||
        fill_adamw_options(where, &chosen.adamw) < 0)
        return NULL;
    return wg__optimizer_new(&muon, &chosen, sizeof chosen);
}

/* ---- A rule of the caller's: see wg_update_rule. Its parameters are not sharded. ---- */

static int prepare_user_rule(wg_optimizer *optimizer, wg__optimizer_entry *entry) {
    return wg__optimizer_add_states(entry, optimizer->options.user.rule.states);
}

static int step_user_rule(wg_optimizer *optimizer, double learning_rate) {
    const wg_update_rule *rule = &optimizer->options.user.rule;
    const bool recorded = wg_set_grad_enabled(false);
    int status = 0;
    for (int64_t i = optimizer->first; status == 0 && i < optimizer->last; i++) {
        const wg__optimizer_entry *entry = &optimizer->entries[i];
        const wg_tensor *parameter = entry->parameter;
        if (!entry->gradient || entry->end <= entry->begin)
            continue;
        wg_scope scope;
        wg_scope_begin(&scope);
        /* entry->gradient, not wg_gradient: a sharded optimizer has sums over ranks there. */
        wg_tensor *gradient =
            wg_from_blob(entry->dtype, wg_tensor_ndim(parameter), wg_tensor_shape(parameter), NULL,
                         (void *)entry->gradient, NULL, NULL);
        if (optimizer->gradient_scale != 1)
            gradient = wg_mul_scalar(gradient, optimizer->gradient_scale);
        const wg_parameter_step step = {.name = entry->name,
                                        .parameter = entry->parameter,
                                        .gradient = gradient,
                                        .states = entry->states,
                                        .learning_rate = learning_rate * entry->rate,
                                        .weight_decay = wg__entry_decay(entry, rule->weight_decay),
                                        .step = optimizer->steps};
        status = gradient ? rule->step(optimizer->options.user.context, &step) : -1;
        wg_scope_end(&scope, NULL);
        if (status < 0 && !wg_error_pending())
            wg_fail(WG_ERROR_STATE, "optimizer_step", "the update rule failed at \"%s\"",
                    entry->name);
        status = wg_error_pending() ? -1 : 0;
    }
    wg_set_grad_enabled(recorded);
    return status;
}

static const wg__optimizer_rule user_rule = {
    .prepare = prepare_user_rule, .step = step_user_rule, .steps_whole = true};

wg_optimizer *wg_optimizer_from_rule(const wg_update_rule *rule, void *context) {
    static const char where[] = "optimizer_from_rule";
    if (!rule || !rule->step)
        return wg__fail_null(WG_ERROR_ARGUMENT, where, "the rule has no function `step'");
    int status =
        wg__check_option(where, "weight_decay", rule->weight_decay, WG__RANGE_NOT_NEGATIVE);
    /* Names become parts of paths in checkpoints, so they must differ and have no separators. */
    for (int i = 0; i < WG_RULE_STATES && rule->states[i]; i++) {
        const char *name = rule->states[i];
        if (!*name || strpbrk(name, "/."))
            status = wg_fail(WG_ERROR_ARGUMENT, where,
                             "a state is called \"%s\"; wanted a name without / and .", name);
        for (int k = 0; k < i; k++)
            if (strcmp(name, rule->states[k]) == 0)
                status = wg_fail(WG_ERROR_ARGUMENT, where, "two states are called \"%s\"", name);
    }
    const wg__user_rule chosen = {*rule, context};
    return status < 0 ? NULL : wg__optimizer_new(&user_rule, &chosen, sizeof chosen);
}

/* ---- By name ---- */

static const char *const names[] = {"sgd", "adam", "adamw", "adafactor", "lion", "muon"};

const char *wg__optimizer_name(int index) {
    return index >= 0 && index < (int)(sizeof names / sizeof names[0]) ? names[index] : NULL;
}

wg_optimizer *wg_optimizer_new(const wg_optimizer_choice *choice) {
    const char *name = choice->name ? choice->name : "";
    const double momentum = wg__option(choice->momentum, 0.9), decay = choice->weight_decay;
    const wg_adamw_options adam_options = {choice->beta1, choice->beta2, choice->eps, decay};
    if (strcmp(name, "sgd") == 0)
        return wg_sgd_new(&(wg_sgd_options){
            .momentum = momentum, .weight_decay = decay, .nesterov = momentum > 0});
    if (strcmp(name, "adam") == 0)
        return wg_adam_new(&adam_options);
    if (strcmp(name, "adamw") == 0)
        return wg_adamw_new(&adam_options);
    if (strcmp(name, "adafactor") == 0)
        return wg_adafactor_new(&(wg_adafactor_options){.weight_decay = decay});
    if (strcmp(name, "lion") == 0)
        return wg_lion_new(&(wg_lion_options){choice->beta1, choice->beta2, decay});
    if (strcmp(name, "muon") == 0)
        return wg_muon_new(&(wg_muon_options){.momentum = choice->momentum,
                                              .weight_decay = decay,
                                              .match_adamw = true,
                                              .adamw = adam_options});
    return wg__fail_null(WG_ERROR_NOT_FOUND, "optimizer",
                         "there is no '%s'; sgd, adam, adamw, adafactor, lion and muon are there",
                         name);
}
