/* The options of beam search: see beam.h. */
#include "cli/beam.h"

#include "cli/cli.h"

enum { KEY_BEAM = WG__KEY_OWN + 1000, KEY_LENGTH_PENALTY, KEY_MAX_LENGTH };

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Translating:", 2},
    {"beam", KEY_BEAM, "N", 0, "Follow the N likeliest translations (4); 1 is greedy", 0},
    {"length-penalty", KEY_LENGTH_PENALTY, "X", 0,
     "Divide the log probability of a translation Y by ((5 + |Y|) / 6)^X (0.6); 0: by nothing", 0},
    {"max-length", KEY_MAX_LENGTH, "N", 0,
     "Tokens of a translation at most (those of its source and 50 more)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    wg_beam_options *beam = state->input;
    switch (key) {
    case KEY_BEAM:
        beam->beam = wg__cli_integer(state, "beam", text, 1, 1024);
        return 0;
    case KEY_LENGTH_PENALTY:
        beam->alpha = wg__cli_number(state, "length-penalty", text, 0, 100);
        beam->no_length_penalty = beam->alpha == 0;
        return 0;
    case KEY_MAX_LENGTH:
        beam->max_length = wg__cli_integer(state, "max-length", text, 1, INT32_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp wg__beam_options = {.options = options, .parser = parse};
