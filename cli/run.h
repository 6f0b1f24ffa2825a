/* A training run of the command: begun or resumed, trained, measured and told of. The verbs that
 * train differ in their arguments, and in what their kind of model makes of them. */
#ifndef WG_CLI_RUN_H
#define WG_CLI_RUN_H

#include "cli/settings.h"

/* Runs it to its end; returns the exit code. */
int wg__run(const wg__run_arguments *arguments);

#endif
