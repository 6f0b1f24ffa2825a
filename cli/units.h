/* Numbers, sizes and times as people write them, and whether to write in colours. */
#ifndef WG_CLI_UNITS_H
#define WG_CLI_UNITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* A short text by value: wg__count(4385000).text is "4.39 M" until the full expression ends. */
typedef struct wg__unit_text {
    char text[32];
} wg__unit_text;

wg__unit_text wg__count(double count); /* "512", "4.39 M", "124 M", "7.24 G" */
wg__unit_text wg__bytes(double bytes); /* "512 B", "16.7 MiB", "1.5 GiB" */
wg__unit_text wg__seconds(
    double seconds); /* "820 us", "3.4 ms", "12.3 s", "4 min 10 s", "2 h 5 min" */

/* Whether a stream takes colours: it is a terminal, NO_COLOR is unset or empty
 * (https://no-color.org), and TERM is not "dumb". */
bool wg__takes_colors(FILE *stream);

/* The escape sequences of a style where the stream takes colours, else "". */
typedef struct wg__style {
    const char *bold, *dim, *accent, *plain;
} wg__style;
wg__style wg__style_of(FILE *stream);

#endif
