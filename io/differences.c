/* Differences of names and shapes, gathered for one message. */
#include "io/differences.h"

#include <string.h>

#include "tensor/internal.h"

/* Keeps room for the dots that stand for the names that do not fit. */
void wg__note_difference(wg__difference *difference, const char *name) {
    size_t used = strlen(difference->names), room = sizeof difference->names - used;
    const char *separator = difference->count++ ? ", " : "";
    difference->biases += wg__ends_with(name, "bias");
    if (difference->is_full)
        return;
    difference->is_full = strlen(separator) + strlen(name) + sizeof ", ..." > room;
    snprintf(difference->names + used, room, "%s%s", separator, difference->is_full ? "..." : name);
}

static bool is_transposed(const wg_spec *found, const wg_spec *wanted) {
    return found->ndim == 2 && wanted->ndim == 2 && found->shape[0] == wanted->shape[1] &&
           found->shape[1] == wanted->shape[0];
}

bool wg__note_spec(wg__differences *differences, const char *name, const wg_spec *found,
                   const wg_spec *wanted) {
    bool floats = wg_dtype_is_float(found->dtype) && wg_dtype_is_float(wanted->dtype);
    if (wg__same_shape(found, wanted) && (floats || found->dtype == wanted->dtype))
        return false;
    char text[1184], has[64], wants[64];
    snprintf(text, sizeof text, "%.1023s is %s, wanted %s", name,
             wg_spec_text(has, sizeof has, found), wg_spec_text(wants, sizeof wants, wanted));
    wg__note_difference(floats && is_transposed(found, wanted) ? &differences->transposed
                                                               : &differences->misshapen,
                        text);
    return true;
}

int wg__check_differences(const wg__differences *differences, const char *path, const char *where) {
    const wg__difference *missing = &differences->missing;
    const struct {
        const char *kind;
        const wg__difference *of;
        const char *advice;
    } kinds[] = {{"missing", missing,
                  missing->biases == missing->count
                      ? ": a model that was trained without biases is completed with zeros"
                      : ""},
                 {"unexpected", &differences->unexpected, ""},
                 {"transposed", &differences->transposed,
                  ": transpose them before you save, and square ones of the same kind, too"},
                 {"misshapen", &differences->misshapen, ""}};
    char text[1024] = "";
    for (int i = 0; i < 4; i++)
        if (kinds[i].of->count)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld %s (%s)%s",
                     *text ? "; " : "", (long long)kinds[i].of->count, kinds[i].kind,
                     kinds[i].of->names, kinds[i].advice);
    if (!*text)
        return 0;
    return wg_fail(missing->count ? WG_ERROR_NOT_FOUND : WG_ERROR_FORMAT, where, "%s: %s", path,
                   text);
}
