/* A program of somebody who has only the installed library: tests/install.sh and CMakeLists.txt build
 * it. It prints the sum of 1 to 6. */
#include <stdio.h>

#include <wengert/wengert.h>

int main(void) {
    wg_tensor *x = wg_from_array(WG_F32, WG_DIMS(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    printf("%g\n", wg_item(wg_sum(x, WG_ALL, false)));
    wg_scope_clear_root();
    return wg_error_pending() != NULL;
}
