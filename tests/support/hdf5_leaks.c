/* What the leak checker asks a program for: see hdf5_leaks.h. */
#include "tests/support/hdf5_leaks.h"

#include "base/api.h"

WG_API const char *__lsan_default_suppressions(void);
WG_API const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}

/* Whoever calls it is linked with the functions above, which are all that it takes. */
void pass_over_leaks_of_hdf5(void) {
}
