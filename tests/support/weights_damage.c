/* Damaged tensor files: see weights_damage.h. */
#include "tests/support/weights_damage.h"

#include <stdlib.h>
#include <unistd.h>

#include "io/weights/weights.h"
#include "tests/support/files.h"

bool reads_whole(const char *path) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_weights *file = wg_weights_open(path);
    bool good = file;
    for (int64_t i = 0; good && i < wg_weights_count(file); i++)
        good = wg_weights_read(file, i);
    wg_weights_close(file);
    wg_scope_end(&scope, NULL);
    return good;
}

void assert_refused(const char *format, long at) {
    const wg_error *error = wg_error_pending();
    ck_assert_msg(error && error->code == WG_ERROR_FORMAT, "%s cut at %ld: %s", format, at,
                  error ? error->message : "no error");
    wg_error_clear();
}

void cut_everywhere(const char *path, const char *format) {
    const bytes file = read_bytes(path);
    const long count = (long)file.count;
    free(file.data);
    for (long at = count - 1; at >= 0; at -= at < 6000 || count - at < 600 ? 1 : 997) {
        ck_assert_int_eq(truncate(path, at), 0);
        ck_assert_msg(!reads_whole(path), "%s cut at %ld is read", format, at);
        assert_refused(format, at);
    }
}
