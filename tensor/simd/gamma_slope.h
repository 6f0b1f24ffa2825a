/* The slope dx/da of gamma samples by their concentration, for tensors of f32: in f64, as
 * ops/distributions/gamma_slope.c has it for one sample, but the expansions end where the result
 * is exact to 1e-8, less than half the distance of two numbers of f32. */
#if WG__BITS == 64

/* Most terms of an expansion; a concentration of a takes about 7 sqrt(a). */
enum { WG__SLOPE_TERMS = 1000000 };

/* By the series S = sum_k x^k / ((a + 1) ... (a + k)). A lane whose terms have become small adds
 * no more, whatever the others do. */
static inline vector slope_by_series(vector a, vector x) {
    vector term = all(1), slope = all(0), sum = term, sum_of_slopes = slope;
    for (int k = 1; k < WG__SLOPE_TERMS; k++) {
        const vector inverse = (real)1 / (a + (real)k), ratio = x * inverse;
        term = term * ratio;
        slope = slope * ratio - term * inverse;
        sum += term;
        sum_of_slopes += slope;
        const lanes goes_on = (term > (real)1e-10 * sum) | (slope < (real)1e-10 * sum_of_slopes);
        if (!any(goes_on))
            break;
        term = choose(goes_on, term, all(0));
        slope = choose(goes_on, slope, all(0));
    }
    const vector log_ratio = digamma_of_positive(a + (real)1) - vector_log(x);
    return x / a * (log_ratio * sum - sum_of_slopes);
}

/* By the continued fraction h, of which Lentz's method keeps c, 1 / c and d; of each a value and
 * its derivative by a. */
static inline vector slope_by_fraction(vector a, vector x) {
    vector b = x + (real)1 - a, d = (real)1 / b, d_slope = d * d, h = d, h_slope = d_slope;
    vector inverse_c = all(0), inverse_c_slope = inverse_c;
    const vector least = (real)1e-3 / square_root(x);
    lanes goes_on = x == x;
    for (int k = 1; k < WG__SLOPE_TERMS && any(goes_on); k++) {
        const vector factor = (real)k * (a - (real)k);
        b += (real)2;
        const vector c = factor * inverse_c + b, e = factor * d + b;
        const vector c_slope = factor * inverse_c_slope + (real)k * inverse_c - (real)1;
        const vector e_slope = factor * d_slope + (real)k * d - (real)1;
        inverse_c = (real)1 / c;
        inverse_c_slope = -c_slope * inverse_c * inverse_c;
        d = (real)1 / e;
        d_slope = -e_slope * d * d;
        const vector step = c * d, step_slope = c * d_slope + c_slope * d;
        const vector change = h * step_slope;
        h_slope = choose(goes_on, change + h_slope * step, h_slope);
        h = choose(goes_on, h * step, h);
        goes_on &= (magnitude(step - (real)1) >= (real)1e-9) |
                   (magnitude(change) >= (real)1e-9 * (magnitude(h_slope) + least * h));
    }
    return x * ((vector_log(x) - digamma_of_positive(a)) * h + h_slope);
}

WG__PAIR(gamma_slope_series, slope_by_series(a, b))
WG__PAIR(gamma_slope_fraction, slope_by_fraction(a, b))
#endif
