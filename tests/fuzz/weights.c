/* Fuzzes the readers of tensor files: the bytes are written to a file, which is opened and read
 * whole. Errors are expected; the sanitizers find the faults. run.sh compiles this file once for
 * each format, with WG_FUZZ_NAME the name of the file; tests/formats/fuzz_seeds.c reads the seeds
 * by it.
 *
 * In a checkpoint (HDF5) every chunk has a checksum, so most of what is found there is about the
 * list of tensors; the HDF5 library is not instrumented. */
#include "tests/fuzz/weights.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "formats/weights_files.h"
#include "models/model.h"
#include "io/internal.h"

static char path[256];

static void remove_file(void) {
    unlink(path);
}

const char *wg__fuzz_file(const char *name, const uint8_t *bytes, size_t count) {
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if (!path[0])
        atexit(remove_file);
    snprintf(path, sizeof path, "%s/wengert-fuzz-%ld-%s", folder, (long)getpid(), name);
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (descriptor < 0 || write(descriptor, bytes, count) != (ssize_t)count)
        abort();
    close(descriptor);
    return path;
}

void wg__fuzz_weights(const char *name, const uint8_t *bytes, size_t count) {
    wg_weights *file = wg_weights_open(wg__fuzz_file(name, bytes, count));
    for (int64_t i = 0; i < wg_weights_count(file); i++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        if (!wg_weights_read(file, i))
            wg_error_clear();
        wg_scope_end(&scope, NULL);
    }
    if (!file && !wg_error_pending())
        abort(); /* it failed without an error */
    wg_error_clear();
    if (wg__weights_config(file)) {
        for (int i = 0; wg_model_type_at(i); i++) {
            const wg_model_type *type = wg_model_type_at(i);
            void *config = malloc(type->settings.size);
            wg_model_config_from_json(type, wg__weights_config(file), config);
            wg_error_clear();
            free(config);
        }
    }
    wg_weights_close(file);
}

#ifdef WG_FUZZ_NAME
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    wg__fuzz_weights(WG_FUZZ_NAME, bytes, count);
    return 0;
}
#endif
