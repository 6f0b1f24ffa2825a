/* Binary floating point numbers as decimal digits.
 *
 * printf rounds the exact value correctly at any number of digits; the fewest that read back as the
 * same number are found by asking for one more until they do. */
#include "tensor/decimal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "-1.2345e-05" into its parts. The point may be any character: that is the locale's choice. */
static wg__decimal parse_scientific(const char *text) {
    wg__decimal decimal = {.negative = *text == '-'};
    for (; *text != 'e'; text++)
        if (*text >= '0' && *text <= '9')
            decimal.digits[decimal.count++] = *text;
    decimal.exponent = atoi(text + 1);
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
        decimal.count--;
    return decimal;
}

static bool reads_back(const char *text, double value, wg_dtype dtype) {
    return dtype == WG_F64 ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value;
}

/* Below a power of two neighbours are half as far as above, so that of the decimals of some length
 * the nearest, if it lies below, may miss what the next one up hits. */
static bool next_up_reads_back(char *text, double value, wg_dtype dtype) {
    char *last = strchr(text, 'e') - 1;
    if (*last < '0' || *last > '8')
        return false;
    ++*last;
    return reads_back(text, value, dtype);
}

wg__decimal wg__decimal_shortest(double value, wg_dtype dtype) {
    char text[32];
    int count = 0;
    do
        snprintf(text, sizeof(text), "%.*e", count++, value);
    while (count < WG__DECIMAL_DIGITS && !reads_back(text, value, dtype) &&
           !next_up_reads_back(text, value, dtype));
    return parse_scientific(text);
}

wg__decimal wg__decimal_between(double value, wg_dtype dtype, int least, int most) {
    wg__decimal decimal = wg__decimal_shortest(value, dtype);
    if (least <= decimal.count && decimal.count <= most)
        return decimal;
    char text[32];
    snprintf(text, sizeof(text), "%.*e", (decimal.count < least ? least : most) - 1, value);
    return parse_scientific(text);
}
