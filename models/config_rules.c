/* The rules that configurations of models share. */
#include "models/config_rules.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

int wg__config_refuse(const char *where, const char *key, double value, const char *rule) {
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %.15g; it must be %s", key, value, rule);
}

int wg__config_check_size(const char *where, const char *key, int64_t size) {
    return size >= 1 ? 0 : wg__config_refuse(where, key, (double)size, "at least 1");
}

int wg__config_check_divides(const char *where, wg__config_size parts, wg__config_size whole) {
    if (whole.value % parts.value == 0)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s %lld does not divide %s %lld into equal parts",
                   parts.key, (long long)parts.value, whole.key, (long long)whole.value);
}

int wg__config_check_token(const char *where, const char *key, int64_t token, int64_t vocab_size) {
    return token >= 0 && token < vocab_size
               ? 0
               : wg__config_refuse(where, key, (double)token, "a token of the vocabulary");
}

int wg__config_check_maybe_token(const char *where, const char *key, int64_t token,
                                 int64_t vocab_size) {
    return token >= -1 && token < vocab_size
               ? 0
               : wg__config_refuse(where, key, (double)token,
                                   "a token of the vocabulary, or -1 for none");
}

int wg__config_check_probability(const char *where, const char *key, double p) {
    return p >= 0 && p < 1 ? 0 : wg__config_refuse(where, key, p, "at least 0 and below 1");
}

int wg__config_check_positive(const char *where, const char *key, double value) {
    return value > 0 && isfinite(value) ? 0 : wg__config_refuse(where, key, value, "above 0");
}

int wg__config_find_preset(const char *where, const char *(*name_of)(int index), const char *name) {
    char names[256] = "";
    for (int i = 0; name_of(i); i++) {
        if (strcmp(name, name_of(i)) == 0)
            return i;
        strcat(strcat(names, i ? ", " : ""), name_of(i));
    }
    return wg_fail(WG_ERROR_ARGUMENT, where, "there is no preset \"%s\"; there are %s", name,
                   names);
}
