/* How tokens are drawn and searched for, as the options of the verbs that write texts say it. */
#ifndef WG_CLI_DECODING_H
#define WG_CLI_DECODING_H

#include "cli/options.h"
#include "models/generate/beam.h"
#include "models/generate/decode.h"

typedef struct wg__drawing {
    wg_sampling sampling;
    wg_generator generator; /* at the seed */
    int64_t max_tokens;     /* 0: not given */
    int64_t usual_tokens;   /* where it is not; 0: as the verb has it */
    bool published;         /* the model's publisher says how tokens are drawn */
} wg__drawing;

/* The options of drawing; their struct is a wg__drawing. */
extern const wg_setting_table wg__sampling_options;

/* Whether any of them but the length was given. */
bool wg__drawing_given(const wg__drawing *drawing);

/* Sets the options that the command line left out from the generation_config.json that `convert`
 * stored in the checkpoint. -1 with [FORMAT for a value that is none, IO] */
int wg__drawing_take(wg__drawing *drawing, const char *path);

/* "stop", "length", "positions" or "cancelled": why a text ended. */
const char *wg__generation_end_name(wg_generation_end end);

/* The options of a beam search; their struct is a wg_beam_options. */
extern const wg_setting_table wg__beam_options;

#endif
