/* The options by which texts are written: see decoding.h. */
#include "cli/decoding.h"

#include "base/internal.h"
#include "cli/cli.h"
#include "io/checkpoint/checkpoint.h"
#include "io/config.h"
#include "io/weights/weights.h"

/* ---- Drawing ---- */

enum {
    KEY_MAX_TOKENS = WG__KEY_OWN + 1000,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_MIN_P,
    KEY_REPETITION_PENALTY,
    KEY_SEED,
};

static const struct argp_option sampling_options[] = {
    {"max-tokens", KEY_MAX_TOKENS, "N", 0,
     "Write N tokens at most (200, as far as there are positions; into each blank 64)", 0},
    {"temperature", KEY_TEMPERATURE, "X", 0,
     "Divide logits by X: below 1 likely tokens become likelier (generate 1); 0 always takes the "
     "likeliest (fill)",
     0},
    {"top-k", KEY_TOP_K, "N", 0, "Choose among the N likeliest tokens only; 0: all (0)", 0},
    {"top-p", KEY_TOP_P, "X", 0,
     "Choose among the likeliest tokens that together have probability X; 0: the likeliest alone; "
     "1: all (1)",
     0},
    {"min-p", KEY_MIN_P, "X", 0,
     "Choose among tokens with X of the likeliest one's probability or more; 0: all (0)", 0},
    {"repetition-penalty", KEY_REPETITION_PENALTY, "X", 0,
     "Divide the logits of tokens that the text has already by X, multiply them if below 0 (1)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of all choices: the same one gives the same text (0)", 0},
    {0},
};

static int set_sampling(wg__drawing *d, struct argp_state *state, int key, const char *text) {
    switch (key) {
    case KEY_TEMPERATURE:
        d->sampling.temperature = wg__cli_number(state, "temperature", text, 0, 1000);
        return 0;
    case KEY_TOP_K:
        d->sampling.top_k = wg__cli_integer(state, "top-k", text, 0, INT32_MAX);
        return 0;
    case KEY_TOP_P:
        d->sampling.top_p = wg__given(wg__cli_number(state, "top-p", text, 0, 1));
        return 0;
    case KEY_MIN_P:
        d->sampling.min_p = wg__cli_number(state, "min-p", text, 0, 1);
        return 0;
    case KEY_REPETITION_PENALTY:
        d->sampling.repetition_penalty =
            wg__cli_number(state, "repetition-penalty", text, 0.001, 1000);
        return 0;
    case KEY_SEED:
        d->generator.seed = (uint64_t)wg__cli_integer(state, "seed", text, 0, INT64_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_sampling(int key, char *text, struct argp_state *state) {
    wg__drawing *d = state->input;
    if (key == KEY_MAX_TOKENS) {
        d->max_tokens = wg__cli_integer(state, "max-tokens", text, 1, INT32_MAX);
        return 0;
    }
    const error_t result = set_sampling(d, state, key, text);
    d->given = d->given || result == 0;
    if (result == 0)
        d->set |= 1u << (key - KEY_MAX_TOKENS);
    return result;
}

const struct argp wg__sampling_options = {.options = sampling_options, .parser = parse_sampling};

/* ---- What the model's publisher wrote ---- */

static int take_number(wg__drawing *d, wg_config *config, const char *name, int key,
                       double *value) {
    if ((d->set & 1u << (key - KEY_MAX_TOKENS)) || !wg_config_has(config, name))
        return 0;
    d->given = true;
    return wg_config_number(config, name, value);
}

/* Refuses a setting of the file that is 0 or less, as Hugging Face's `generate` does. Without this
 * check a 0 would count as not given. */
static int check_above_zero(wg_config *config, const char *name) {
    double value = 1;
    if (wg_config_number(config, name, &value) < 0)
        return -1;
    return value > 0 ? 0
                     : wg_fail(WG_ERROR_ARGUMENT, "generation_config.json",
                               "%s is %g; it must be above 0", name, value);
}

/* A model that is to take the likeliest token has a temperature of 0 here; its other members then
 * say nothing. */
static int take_config(wg__drawing *d, wg_config *config) {
    wg_sampling *s = &d->sampling;
    bool samples = true;
    double top_k = (double)s->top_k;
    if (check_above_zero(config, "repetition_penalty") < 0 ||
        check_above_zero(config, "max_new_tokens") < 0 ||
        wg_config_boolean(config, "do_sample", &samples) < 0 ||
        take_number(d, config, "repetition_penalty", KEY_REPETITION_PENALTY,
                    &s->repetition_penalty) < 0 ||
        wg_config_integer(config, "max_new_tokens", &d->usual_tokens) < 0)
        return -1;
    if (!samples) {
        d->given = true;
        if (!(d->set & 1u << (KEY_TEMPERATURE - KEY_MAX_TOKENS)))
            s->temperature = 0;
        return 0;
    }
    if (take_number(d, config, "temperature", KEY_TEMPERATURE, &s->temperature) < 0 ||
        take_number(d, config, "top_k", KEY_TOP_K, &top_k) < 0 ||
        take_number(d, config, "top_p", KEY_TOP_P, &s->top_p) < 0 ||
        take_number(d, config, "min_p", KEY_MIN_P, &s->min_p) < 0)
        return -1;
    if (s->top_p == 0 && wg_config_has(config, "top_p"))
        s->top_p = WG_ZERO;
    s->top_k = top_k >= 0 && top_k <= INT32_MAX ? (int64_t)top_k : 0;
    return wg_sampling_validate(s);
}

int wg__drawing_take(wg__drawing *drawing, const char *path) {
    wg_checkpoint *file = wg_checkpoint_open(path);
    char *text = file && wg_checkpoint_has(file, WG_GENERATION_CONFIG)
                     ? wg_checkpoint_get_text(file, WG_GENERATION_CONFIG)
                     : NULL;
    wg_checkpoint_close(file);
    wg_config *config = text ? wg_config_parse(text, "generation_config.json") : NULL;
    const int status = config ? take_config(drawing, config) : wg_error_pending() ? -1 : 0;
    wg_config_free(config);
    wg_text_free(text);
    return status;
}

const char *wg__generation_end_name(wg_generation_end end) {
    static const char *const names[] = {"stop", "length", "positions", "cancelled"};
    return names[end];
}

/* ---- Beam search ---- */

enum { KEY_BEAM = WG__KEY_OWN + 1100, KEY_LENGTH_PENALTY, KEY_MAX_LENGTH };

static const struct argp_option beam_options[] = {
    {NULL, 0, NULL, 0, "Translating:", 2},
    {"beam", KEY_BEAM, "N", 0, "Follow the N likeliest translations (4); 1 is greedy", 0},
    {"length-penalty", KEY_LENGTH_PENALTY, "X", 0,
     "Divide the log probability of a translation Y by ((5 + |Y|) / 6)^X (0.6); 0: by nothing", 0},
    {"max-length", KEY_MAX_LENGTH, "N", 0,
     "Tokens of a translation at most (those of its source and 50 more)", 0},
    {0},
};

static error_t parse_beam(int key, char *text, struct argp_state *state) {
    wg_beam_options *beam = state->input;
    switch (key) {
    case KEY_BEAM:
        beam->beam = wg__cli_integer(state, "beam", text, 1, 1024);
        return 0;
    case KEY_LENGTH_PENALTY:
        beam->alpha = wg__given(wg__cli_number(state, "length-penalty", text, 0, 100));
        return 0;
    case KEY_MAX_LENGTH:
        beam->max_length = wg__cli_integer(state, "max-length", text, 1, INT32_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp wg__beam_options = {.options = beam_options, .parser = parse_beam};
