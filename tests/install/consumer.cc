// The same program in C++.
#include <cstring>
#include <iostream>

#include <wengert/wengert.h>

int main() {
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    wg_tensor *x = wg_from_array(WG_F32, WG_DIMS(2, 3), numbers);
    std::cout << wg_item(wg_sum(x, WG_ALL, false)) << std::endl;
    wg_scope_clear_root();
    return wg_error_pending() != nullptr || std::strcmp(wg_version(), WG_VERSION) != 0;
}
