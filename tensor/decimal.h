/* Binary floating point numbers as decimal digits. */
#ifndef WG_TENSOR_DECIMAL_H
#define WG_TENSOR_DECIMAL_H

#include "tensor/dtype.h"

#define WG__DECIMAL_DIGITS 17 /* enough to tell any two doubles apart */

/* value = +-d.ddd x 10^exponent, with no zeros at the end; zero is the one digit 0. */
typedef struct wg__decimal {
    bool negative;
    int exponent;
    int count; /* of digits, 1 to 17 */
    char digits[WG__DECIMAL_DIGITS];
} wg__decimal;

/* The fewest digits that read back as this finite value of that dtype (f64, or f32 for others). */
wg__decimal wg__decimal_shortest(double value, wg_dtype dtype);

/* Those digits where they are from `least` to `most` (1 to 17); else the exact value rounded to the
 * nearer of the two numbers of digits, ties to even. */
wg__decimal wg__decimal_between(double value, wg_dtype dtype, int least, int most);

#endif
