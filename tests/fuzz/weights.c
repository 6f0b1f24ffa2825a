/* Opens and reads a tensor file of any bytes. */
#include "tests/fuzz/weights.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/weights/weights.h"
#include "formats/published.h"

/* In memory, where there is a place for it; the name stays, the file is written anew. */
static const char *place(const char *name) {
    static char path[256];
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/wengert-fuzz-%ld-%s", folder, (long)getpid(), name);
    return path;
}

static char *to_remove;

static void remove_file(void) {
    unlink(to_remove);
}

static int write_file(const char *path, const uint8_t *bytes, size_t count) {
    if (!to_remove) {
        to_remove = (char *)path;
        atexit(remove_file);
    }
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int status =
        descriptor >= 0 && write(descriptor, bytes, count) == (ssize_t)count ? 0 : -1;
    close(descriptor);
    return status;
}

void wg__fuzz_weights(const char *name, const uint8_t *bytes, size_t count) {
    const char *path = place(name);
    if (write_file(path, bytes, count) < 0)
        abort();
    wg_weights *file = wg_weights_open(path);
    for (int64_t i = 0; i < wg_weights_count(file); i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        if (!wg_weights_read(file, i))
            wg_error_clear();
        wg_scope_end(&scope, NULL);
    }
    if (!file && !wg_error_pending())
        abort(); /* a failure without a reason */
    wg_error_clear();
    if (wg_weights_config(file)) {
        wg__published_free(wg__published_read(wg_weights_config(file), NULL));
        wg_error_clear();
    }
    wg_weights_close(file);
}
