/* Work that Ctrl-C ends: see stopping.h. */
#include "cli/stopping.h"

#include <stddef.h>

static volatile sig_atomic_t stop_signal;

static void handle_stop(int signal) {
    stop_signal = signal;
}

void wg__listen_for_stop(void) {
    struct sigaction action = {.sa_handler = handle_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

const volatile sig_atomic_t *wg__stop_signal(void) {
    return &stop_signal;
}
