/* Work that Ctrl-C ends in good order. */
#ifndef WG_CLI_STOPPING_H
#define WG_CLI_STOPPING_H

#include <signal.h>

/* From now on the first signal to end the process sets what wg__stop_signal gives; a second one
 * ends the process at once. */
void wg__listen_for_stop(void);

/* The signal that came, or 0. */
const volatile sig_atomic_t *wg__stop_signal(void);

#endif
