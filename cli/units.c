/* Numbers, sizes and times as people write them: see units.h. */
#include "cli/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Three digits of a number from 1 to 1024: "1.23", "12.3", "123". */
static void print_digits(char *text, size_t size, double value, const char *unit) {
    const int decimals = value >= 99.95 || value == floor(value) ? 0 : value >= 9.995 ? 1 : 2;
    snprintf(text, size, "%.*f%s%s", decimals, value, *unit ? " " : "", unit);
}

static wg__unit_text scaled(double value, double base, int count, const char *const *units) {
    wg__unit_text out = {{0}};
    int unit = 0;
    /* 999.6 k would be printed as 1000 k */
    while (unit < count - 1 && value >= (base == 1000 ? 999.5 : 1023.5)) {
        value /= base;
        unit++;
    }
    print_digits(out.text, sizeof out.text, value, units[unit]);
    return out;
}

wg__unit_text wg__count(double count) {
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    return scaled(count, 1000, sizeof units / sizeof *units, units);
}

wg__unit_text wg__bytes(double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return scaled(bytes, 1024, sizeof units / sizeof *units, units);
}

wg__unit_text wg__seconds(double seconds) {
    wg__unit_text out = {{0}};
    const int64_t whole = (int64_t)(seconds + 0.5);
    if (seconds < 0.9995e-3)
        print_digits(out.text, sizeof out.text, 1e6 * seconds, "us");
    else if (seconds < 0.9995)
        print_digits(out.text, sizeof out.text, 1e3 * seconds, "ms");
    else if (seconds < 99.95)
        print_digits(out.text, sizeof out.text, seconds, "s");
    else if (whole < 3600)
        snprintf(out.text, sizeof out.text, "%d min %d s", (int)(whole / 60), (int)(whole % 60));
    else if (whole < 86400)
        snprintf(out.text, sizeof out.text, "%d h %d min", (int)(whole / 3600),
                 (int)(whole / 60 % 60));
    else
        snprintf(out.text, sizeof out.text, "%lld days %d h", (long long)(whole / 86400),
                 (int)(whole / 3600 % 24));
    return out;
}

bool wg__takes_colors(FILE *stream) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(stream)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

wg__style wg__style_of(FILE *stream) {
    static const wg__style none = {"", "", "", ""},
                           colors = {"\033[1m", "\033[2m", "\033[36m", "\033[0m"};
    return wg__takes_colors(stream) ? colors : none;
}
