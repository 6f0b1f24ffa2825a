/* Recurrent layers: see recurrent.h. */
#include "nn/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/internal.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

static wg_tensor *parameter(wg_recurrent *layer, const char *kind, int64_t k, bool reverse,
                            int ndim, const int64_t *shape) {
    char name[64];
    snprintf(name, sizeof name, "%s_l%lld%s", kind, (long long)k, reverse ? "_reverse" : "");
    const wg_initializer uniform = {WG_INIT_UNIFORM, 1 / sqrt((double)layer->hidden)};
    wg_tensor *x = wg__parameter(&layer->module, name, ndim, shape, NULL, &uniform);
    if (x && ndim == 1)
        wg_module_no_decay(&layer->module, name);
    return x;
}

static void free_weights(wg_module *module) {
    wg__free(((wg_recurrent *)module)->weights);
}

static wg_recurrent *recurrent_new(const char *kind, int64_t gates, wg_module *parent,
                                   const char *name, int64_t in, int64_t hidden,
                                   const wg_recurrent_options *options) {
    wg_recurrent_options chosen = options ? *options : (wg_recurrent_options){0};
    if (chosen.layers == 0)
        chosen.layers = 1;
    if (wg__check_size(kind, "in", in) < 0 || wg__check_size(kind, "hidden", hidden) < 0 ||
        wg__check_size(kind, "layers", chosen.layers) < 0 ||
        wg__check_probability(kind, "dropout", chosen.dropout) < 0)
        return NULL;
    wg_recurrent *layer = wg_module_new(parent, name, sizeof *layer);
    if (!layer)
        return NULL;
    layer->in = in;
    layer->hidden = hidden;
    layer->options = chosen;
    layer->module.destroy = free_weights;
    const int directions = chosen.bidirectional ? 2 : 1;
    layer->weights =
        wg__calloc((size_t)wg__times(chosen.layers, directions), sizeof *layer->weights);
    const int64_t rows = wg__times(gates, hidden);
    for (int64_t i = 0; layer->weights && i < chosen.layers * directions; i++) {
        const int64_t k = i / directions, width = k == 0 ? in : wg__times(hidden, directions);
        const bool reverse = i % directions;
        wg_recurrent_weights *w = &layer->weights[i];
        w->weight_ih = parameter(layer, "weight_ih", k, reverse, WG_DIMS(rows, width));
        w->weight_hh = parameter(layer, "weight_hh", k, reverse, WG_DIMS(rows, hidden));
        if (chosen.no_bias)
            continue;
        w->bias_ih = parameter(layer, "bias_ih", k, reverse, 1, &rows);
        w->bias_hh = parameter(layer, "bias_hh", k, reverse, 1, &rows);
    }
    return wg_module_finish(&layer->module);
}

wg_lstm *wg_lstm_new(wg_module *parent, const char *name, int64_t in, int64_t hidden,
                     const wg_recurrent_options *options) {
    return recurrent_new("lstm", 4, parent, name, in, hidden, options);
}

wg_gru *wg_gru_new(wg_module *parent, const char *name, int64_t in, int64_t hidden,
                   const wg_recurrent_options *options) {
    return recurrent_new("gru", 3, parent, name, in, hidden, options);
}

/* States of all layers and directions: at the beginning and at the end of a sequence. */
typedef struct states {
    wg_tensor *first; /* (layers x directions, B, H), or NULL */
    wg_tensor **last; /* (layers x directions) of (B, H) */
} states;

static wg_tensor *first_state(const wg_recurrent *layer, const states *s, int64_t i,
                              const wg_tensor *x) {
    if (s->first)
        return wg_select(s->first, 0, i);
    return wg_zeros(x->spec.dtype, WG_DIMS(wg_tensor_size(x, 1), layer->hidden));
}

static int check_input(const wg_recurrent *layer, const char *kind, const wg_tensor *x) {
    char text[160];
    if (!x)
        return -1;
    if (x->spec.ndim == 3 && x->spec.shape[2] == layer->in)
        return 0;
    return wg_fail(WG_ERROR_SHAPE, kind, "x is %s; wanted %s with I = %lld",
                   wg_spec_text(text, sizeof text, &x->spec),
                   layer->options.batch_first ? "(B, T, I)" : "(T, B, I)", (long long)layer->in);
}

static int check_states(const wg_recurrent *layer, const char *kind, const wg_tensor *x,
                        const wg_tensor *first) {
    const int directions = layer->options.bidirectional ? 2 : 1;
    const int64_t shape[] = {layer->options.layers * directions, wg_tensor_size(x, 1),
                             layer->hidden};
    char text[160];
    if (!first || (first->spec.ndim == 3 && memcmp(first->spec.shape, shape, sizeof shape) == 0))
        return 0;
    return wg_fail(WG_ERROR_SHAPE, kind, "a first state is %s; wanted (%lld, %lld, %lld)",
                   wg_spec_text(text, sizeof text, &first->spec), (long long)shape[0],
                   (long long)shape[1], (long long)shape[2]);
}

/* Number i of layers and directions of an LSTM: x (T, B, I) -> (T, B, H). */
static wg_tensor *run_lstm(const wg_recurrent *layer, int64_t i, wg_tensor *x, states *h,
                           states *c) {
    const wg_recurrent_weights *w = &layer->weights[i];
    const bool reverse = layer->options.bidirectional && i % 2;
    wg_tensor *bias = w->bias_ih ? wg_add(w->bias_ih, w->bias_hh) : NULL, *y;
    wg_lstm_op(wg_linear_op(x, w->weight_ih, bias), w->weight_hh, first_state(layer, h, i, x),
               first_state(layer, c, i, x), reverse, &y, &c->last[i]);
    return y;
}

static wg_tensor *run_gru(const wg_recurrent *layer, int64_t i, wg_tensor *x, states *h,
                          states *c) {
    const wg_recurrent_weights *w = &layer->weights[i];
    const bool reverse = layer->options.bidirectional && i % 2;
    (void)c;
    return wg_gru_op(wg_linear_op(x, w->weight_ih, w->bias_ih), w->weight_hh, w->bias_hh,
                     first_state(layer, h, i, x), reverse);
}

typedef wg_tensor *(*run_direction)(const wg_recurrent *layer, int64_t i, wg_tensor *x, states *h,
                                    states *c);

/* All layers: x (T, B, I) -> (T, B, H directions). */
static wg_tensor *run_layers(wg_recurrent *layer, run_direction run, wg_tensor *x, states *h,
                             states *c) {
    const int directions = layer->options.bidirectional ? 2 : 1;
    const int64_t length = wg_tensor_size(x, 0);
    for (int64_t k = 0; x && k < layer->options.layers; k++) {
        wg_tensor *y[2] = {NULL};
        for (int d = 0; d < directions; d++) {
            const int64_t i = k * directions + d;
            y[d] = run(layer, i, x, h, c);
            h->last[i] =
                length > 0 ? wg_select(y[d], 0, d == 0 ? -1 : 0) : first_state(layer, h, i, x);
        }
        x = directions == 2 ? wg_cat(2, y, 2) : y[0];
        if (layer->options.dropout > 0 && k + 1 < layer->options.layers)
            x = wg_dropout(&layer->module, x, layer->options.dropout);
    }
    return x;
}

static wg_tensor *forward(wg_recurrent *layer, const char *kind, run_direction run, wg_tensor *x,
                          wg_tensor **h, wg_tensor **c) {
    const size_t count = (size_t)layer->options.layers * (layer->options.bidirectional ? 2 : 1);
    wg_error_place place;
    wg_module_enter(&layer->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    states hidden = {.first = h ? *h : NULL}, cells = {.first = c ? *c : NULL};
    hidden.last = wg__calloc((size_t)wg__times(count, 2), sizeof *hidden.last);
    cells.last = hidden.last ? hidden.last + count : NULL;
    wg_tensor *y = NULL;
    if (hidden.last && check_input(layer, kind, x) == 0) {
        x = layer->options.batch_first ? wg_transpose(x, 0, 1) : x;
        if (check_states(layer, kind, x, hidden.first) == 0 &&
            check_states(layer, kind, x, cells.first) == 0)
            y = run_layers(layer, run, x, &hidden, &cells);
        if (y && layer->options.batch_first)
            y = wg_transpose(y, 0, 1);
    }
    if (h)
        *h = NULL;
    if (c)
        *c = NULL;
    if (y && h)
        *h = wg_scope_escape(wg_stack((int)count, hidden.last, 0));
    if (y && c)
        *c = wg_scope_escape(wg_stack((int)count, cells.last, 0));
    wg__free(hidden.last);
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}

wg_tensor *wg_lstm_forward(wg_lstm *lstm, wg_tensor *x, wg_tensor **h, wg_tensor **c) {
    return forward(lstm, "lstm", run_lstm, x, h, c);
}

wg_tensor *wg_gru_forward(wg_gru *gru, wg_tensor *x, wg_tensor **h) {
    return forward(gru, "gru", run_gru, x, h, NULL);
}

wg_min_gru *wg_min_gru_new(wg_module *parent, const char *name, int64_t in, int64_t hidden,
                           bool bias) {
    wg_min_gru *gru = wg_module_new(parent, name, sizeof *gru);
    if (!gru)
        return NULL;
    const wg_linear_options options = {.no_bias = !bias};
    gru->linear_z = wg_linear_new(&gru->module, "linear_z", in, hidden, &options);
    gru->linear_h = wg_linear_new(&gru->module, "linear_h", in, hidden, &options);
    return wg_module_finish(&gru->module);
}

wg_tensor *wg_min_gru_forward(wg_min_gru *gru, wg_tensor *x, wg_tensor **h) {
    wg_error_place place;
    wg_module_enter(&gru->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *gate = wg_linear_forward(gru->linear_z, x);
    wg_tensor *new = wg_mul(wg_sigmoid(gate), wg_linear_forward(gru->linear_h, x));
    wg_tensor *y = wg_linear_scan(wg_sigmoid(wg_neg(gate)), new, 1, h ? *h : NULL);
    if (h)
        *h = y && wg_tensor_size(y, 1) > 0 ? wg_scope_escape(wg_select(y, 1, -1)) : *h;
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}

/* Log A begins as log 1 ... log N (S4D-real), D as ones; the bias of the steps spreads them from
 * 0.001 to 0.1, evenly in their logarithms. */
static void initialize(wg_mamba *mamba, int64_t inner) {
    const double least = log(0.001), most = log(0.1);
    wg_generator *random = wg_module_generator(&mamba->module);
    const bool recorded = wg_set_grad_enabled(false);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *rows = wg_arange(WG_F32, 1, (double)mamba->options.state + 1, 1);
    wg_copy_(mamba->a_log, wg_expand(wg_log(rows), WG_DIMS(inner, mamba->options.state)));
    wg_fill_(mamba->d, 1);
    wg_tensor *share = wg_rand(random, WG_F32, 1, &inner);
    wg_tensor *step = wg_exp(wg_add_scalar(wg_mul_scalar(share, most - least), least));
    /* The inverse of softplus. */
    wg_copy_(mamba->dt_proj->bias, wg_add(step, wg_log(wg_neg(wg_expm1(wg_neg(step))))));
    wg_scope_end(&scope, NULL);
    wg_set_grad_enabled(recorded);
}

wg_mamba *wg_mamba_new(wg_module *parent, const char *name, int64_t width,
                       const wg_mamba_options *options) {
    wg_mamba_options chosen = options ? *options : (wg_mamba_options){0};
    if (wg__check_size("mamba", "width", width) < 0)
        return NULL;
    chosen.state = chosen.state ? chosen.state : 16;
    chosen.kernel = chosen.kernel ? chosen.kernel : 4;
    chosen.expand = chosen.expand ? chosen.expand : 2;
    chosen.rank = chosen.rank ? chosen.rank : (width + 15) / 16;
    if (wg__check_size("mamba", "state", chosen.state) < 0 ||
        wg__check_size("mamba", "kernel", chosen.kernel) < 0 ||
        wg__check_size("mamba", "expand", chosen.expand) < 0 ||
        wg__check_size("mamba", "rank", chosen.rank) < 0)
        return NULL;
    wg_mamba *mamba = wg_module_new(parent, name, sizeof *mamba);
    if (!mamba)
        return NULL;
    const int64_t inner = wg__times(chosen.expand, width);
    const wg_linear_options plain = {.no_bias = true};
    /* Uniform in [-R^-1/2, R^-1/2). */
    const wg_linear_options steps = {.init = {WG_INIT_UNIFORM, 1 / sqrt((double)chosen.rank)}};
    mamba->options = chosen;
    mamba->in_proj = wg_linear_new(&mamba->module, "in_proj", width, wg__times(2, inner), &plain);
    mamba->conv1d = wg_conv_new(&mamba->module, "conv1d", 1, inner, inner, &chosen.kernel,
                                &(wg_conv_layer_options){.conv = {.groups = inner}});
    mamba->x_proj =
        wg_linear_new(&mamba->module, "x_proj", inner, chosen.rank + 2 * chosen.state, &plain);
    mamba->dt_proj = wg_linear_new(&mamba->module, "dt_proj", chosen.rank, inner, &steps);
    mamba->a_log = wg_module_parameter(&mamba->module, "A_log", WG_DIMS(inner, chosen.state));
    mamba->d = wg_module_parameter(&mamba->module, "D", WG_DIMS(inner));
    mamba->out_proj = wg_linear_new(&mamba->module, "out_proj", inner, width, &plain);
    if (!wg_error_pending()) {
        wg_module_no_decay(&mamba->module, "A_log");
        wg_module_no_decay(&mamba->module, "D");
        initialize(mamba, inner);
    }
    return wg_module_finish(&mamba->module);
}

wg_tensor *wg__selective_scan(wg_tensor *u, wg_tensor *delta, wg_tensor *a, wg_tensor *b,
                              wg_tensor *c, wg_tensor *d, wg_tensor **h) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *step = wg_unsqueeze(delta, 3);   /* (B, T, E, 1) */
    wg_tensor *decay = wg_exp(wg_mul(step, a)); /* (B, T, E, N) */
    wg_tensor *into = wg_mul(wg_unsqueeze(wg_mul(delta, u), 3), wg_unsqueeze(b, 2));
    wg_tensor *states = wg_linear_scan(decay, into, 1, h ? *h : NULL);
    /* (B, T, E, N) x (B, T, N, 1) */
    wg_tensor *y = wg_squeeze(wg_matmul(states, wg_unsqueeze(c, 3)), 3);
    if (d)
        y = wg_add(y, wg_mul(u, d));
    if (h)
        *h = y && wg_tensor_size(y, 1) > 0 ? wg_scope_escape(wg_select(states, 1, -1)) : *h;
    return wg_scope_end(&scope, y);
}

wg_tensor *wg_mamba_forward(wg_mamba *mamba, wg_tensor *x, wg_mamba_state *state) {
    const int64_t n = mamba->options.state, rank = mamba->options.rank;
    wg_error_place place;
    wg_module_enter(&mamba->module, &place);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_tensor *both = wg_linear_forward(mamba->in_proj, x);
    const int64_t inner = both ? wg_tensor_size(both, 2) / 2 : 0;
    wg_mamba_state after = state ? *state : (wg_mamba_state){0};
    wg_tensor *u = wg_slice(both, 2, 0, inner, 1), *z = wg_slice(both, 2, inner, WG_END, 1);
    if (u) {
        /* The causal convolution, each channel alone, after the state's earlier u. */
        wg_tensor *first =
            after.conv ? after.conv
                       : wg_zeros(wg_tensor_dtype(u),
                                  WG_DIMS(wg_tensor_size(u, 0), inner, mamba->options.kernel - 1));
        wg_tensor *whole = wg_cat(WG_TENSORS(first, wg_transpose(u, 1, 2)), 2); /* (B, E, T) */
        after.conv = wg_clone(wg_slice(whole, 2, wg_tensor_size(u, 1), WG_END, 1));
        u = wg_silu(wg_transpose(wg_conv_forward(mamba->conv1d, whole), 1, 2));
    }
    wg_tensor *parts = wg_linear_forward(mamba->x_proj, u);
    wg_tensor *delta = wg_linear_forward(mamba->dt_proj, wg_slice(parts, 2, 0, rank, 1));
    wg_tensor *y = wg__selective_scan(u, wg_softplus(delta, 1, 20), wg_neg(wg_exp(mamba->a_log)),
                                      wg_slice(parts, 2, rank, rank + n, 1),
                                      wg_slice(parts, 2, rank + n, WG_END, 1), mamba->d, &after.h);
    y = wg_linear_forward(mamba->out_proj, wg_mul(y, wg_silu(z)));
    if (state)
        *state = (wg_mamba_state){wg_scope_escape(after.conv), wg_scope_escape(after.h)};
    return wg_module_leave(&place, wg_scope_end(&scope, y));
}
