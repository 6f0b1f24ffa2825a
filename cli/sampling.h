/* How tokens are drawn, as the verbs that write text are told of it. */
#ifndef WG_CLI_SAMPLING_H
#define WG_CLI_SAMPLING_H

#include <argp.h>

#include "models/generate/decode.h"

typedef struct wg__drawing {
    wg_sampling sampling;
    wg_generator generator; /* at the seed */
    int64_t max_tokens;     /* 0: it was not said */
    bool given;             /* anything but the length was said */
} wg__drawing;

/* The options of drawing, as a child of a verb's parser; its input is a wg__drawing, which holds
 * the defaults. */
extern const struct argp wg__sampling_options;

/* "stop", "length", "positions" or "cancelled": why a text ended. */
const char *wg__generation_end_name(wg_generation_end end);

#endif
