/* Beam search as the verbs that translate are told of it. */
#ifndef WG_CLI_BEAM_H
#define WG_CLI_BEAM_H

#include <argp.h>

#include "models/generate/beam.h"

/* The options of a search, as a child of a verb's parser; its input is a wg_beam_options of zeros.
 */
extern const struct argp wg__beam_options;

#endif
