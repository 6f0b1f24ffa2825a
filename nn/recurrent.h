/* Recurrent layers: LSTM, GRU, minGRU and Mamba's selective state space.
 *
 *     wg_lstm *lstm = wg_lstm_new(&model->module, "lstm", 64, 256,
 *                                 &(wg_recurrent_options){.layers = 2, .batch_first = true});
 *     wg_tensor *y = wg_lstm_forward(lstm, x, NULL, NULL);                        (B, T, H)
 *
 * A state is a layer's memory of earlier positions. Forward starts from the given state and
 * replaces it by the state after the last position. So a text can be read in parts, as generation
 * does. */
#ifndef WG_NN_RECURRENT_H
#define WG_NN_RECURRENT_H

#include "../tensor/ops.h"
#include "conv.h"
#include "linear.h"

WG_BEGIN_DECLS

/* ---- LSTM and GRU, with the parameters of PyTorch's, of layer k, backwards with "_reverse":
 *
 *     weight_ih_l0 (G H, I)    weight_hh_l0 (G H, H)    bias_ih_l0, bias_hh_l0 (G H)
 *
 * G is 4 (i, f, g, o) or 3 (r, z, n); I of higher layers is H, or 2 H if bidirectional. All begin
 * uniform in [-1/sqrt(H), 1/sqrt(H)). Biases are left alone by weight decay. ---- */

typedef struct wg_recurrent_options {
    int64_t layers;     /* stacked; 0: 1 */
    bool bidirectional; /* each layer also runs backwards in time: outputs 2 H */
    bool no_bias;
    bool batch_first; /* x and y are (B, T, ...), not (T, B, ...) */
    double dropout;   /* between layers, in training */
} wg_recurrent_options;

/* The four parameters of a layer in one direction. */
typedef struct wg_recurrent_weights {
    wg_tensor *weight_ih, *weight_hh;
    wg_tensor *bias_ih, *bias_hh; /* or NULL */
} wg_recurrent_weights;

typedef struct wg_recurrent {
    wg_module module;
    int64_t in, hidden;
    wg_recurrent_options options;  /* with their defaults filled in */
    wg_recurrent_weights *weights; /* (layers, directions) */
} wg_recurrent;

typedef wg_recurrent wg_lstm; /* Hochreiter & Schmidhuber 1997 */
typedef wg_recurrent wg_gru;  /* Cho et al. 2014 */

/* A layer from `in` to `hidden` features. `parent` owns it; NULL makes it a root. `options` may be
 * NULL. NULL with [ARGUMENT for a size below 1 or a dropout outside [0, 1); MEMORY] */
WG_API wg_lstm *wg_lstm_new(wg_module *parent, const char *name, int64_t in, int64_t hidden,
                            const wg_recurrent_options *options);

/* A GRU; otherwise as wg_lstm_new. */
WG_API wg_gru *wg_gru_new(wg_module *parent, const char *name, int64_t in, int64_t hidden,
                          const wg_recurrent_options *options);

/* x: (T, B, I) or with batch_first (B, T, I)   ->   all h of the last layer, (T, B, H), or 2 H if
 * bidirectional, or (B, T, ...).
 * h, c: NULL, or the addresses of the first states, (layers x directions, B, H), layer by layer,
 * forwards and then backwards, where NULL means zeros; replaced by the last states. [scope; SHAPE,
 * DTYPE] */
WG_API wg_tensor *wg_lstm_forward(wg_lstm *lstm, wg_tensor *x, wg_tensor **h, wg_tensor **c);
WG_API wg_tensor *wg_gru_forward(wg_gru *gru, wg_tensor *x, wg_tensor **h);

/* ---- minGRU   (Feng et al. 2024, "Were RNNs All We Needed?", section 3.1): gates that depend on x
 * alone, so that all positions are computed at once, by wg_linear_scan
 *
 *     z_t = s(linear_z(x_t))        h_t = (1 - z_t) h_(t-1) + z_t linear_h(x_t) ---- */

typedef struct wg_min_gru {
    wg_module module;
    wg_linear *linear_z, *linear_h;
} wg_min_gru;

/* `bias`: whether the two products have one. As wg_lstm_new. */
WG_API wg_min_gru *wg_min_gru_new(wg_module *parent, const char *name, int64_t in, int64_t hidden,
                                  bool bias);

/* x: (B, T, I)   ->   (B, T, H).   h: NULL, or the address of the first state, (B, H), where
 * NULL means zeros; replaced by the last state. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_min_gru_forward(wg_min_gru *gru, wg_tensor *x, wg_tensor **h);

/* ---- Mamba's block around a selective state space, S6   (Gu & Dao 2023, algorithm 2, section 3.4,
 * figure 3). With E = expand C inner channels, N = state numbers for each, R = rank of the steps:
 *
 *     x --> in_proj --+--> causal conv1d by channel --> silu = u --> S6 --> (x) --> out_proj
 *                     '--> z ----------------------------> silu ------------'
 *
 *     (d, B, C) = x_proj(u)        D_t = softplus(dt_proj(d_t))        A = -exp(A_log)
 *     h_t = exp(D_t A) h_(t-1) + D_t B_t u_t        y_t = C_t h_t + D u_t
 *
 * The places are computed at once, by wg_linear_scan over (B, T, E, N) numbers. Parameters
 * have the published names: in_proj.weight, conv1d.weight, conv1d.bias, x_proj.weight,
 * dt_proj.weight, dt_proj.bias, A_log, D, out_proj.weight. ---- */

typedef struct wg_mamba_options {
    int64_t state;  /* N; 0: 16 */
    int64_t kernel; /* of the convolution; 0: 4 */
    int64_t expand; /* E / C; 0: 2 */
    int64_t rank;   /* R; 0: C / 16, rounded up */
} wg_mamba_options;

typedef struct wg_mamba {
    wg_module module;
    wg_linear *in_proj, *x_proj, *dt_proj, *out_proj;
    wg_conv *conv1d;
    wg_tensor *a_log; /* "A_log" (E, N) */
    wg_tensor *d;     /* "D" (E) */
    wg_mamba_options options;
} wg_mamba;

/* The state of a block between two calls; {0} at the start of a sequence. */
typedef struct wg_mamba_state {
    wg_tensor *conv; /* (B, E, kernel - 1): the last inputs of the convolution */
    wg_tensor *h;    /* (B, E, N) */
} wg_mamba_state;

/* A block from `width` to `width` features, initialized as published. As wg_lstm_new. */
WG_API wg_mamba *wg_mamba_new(wg_module *parent, const char *name, int64_t width,
                              const wg_mamba_options *options);

/* x: (B, T, C)   ->   (B, T, C).   state: NULL, or the state to start from; replaced by the
 * state after the last position. [scope; SHAPE, DTYPE] */
WG_API wg_tensor *wg_mamba_forward(wg_mamba *mamba, wg_tensor *x, wg_mamba_state *state);

WG_END_DECLS

#endif
