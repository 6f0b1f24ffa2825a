/* What the layers share. */
#include "nn/internal.h"

wg_tensor *wg__parameter(wg_module *module, const char *name, int ndim, const int64_t *shape,
                         const wg_initializer *how, const wg_initializer *otherwise) {
    wg_tensor *parameter = wg_module_parameter(module, name, ndim, shape);
    bool given = how && how->kind != WG_INIT_DEFAULT;
    if (wg_initialize(parameter, given ? how : otherwise, wg_module_generator(module)) < 0)
        return NULL;
    return parameter;
}

wg_tensor *wg__vector_parameter(wg_module *module, const char *name, int64_t n, double value) {
    wg_initializer how = {value == 0 ? WG_INIT_ZEROS : WG_INIT_ONES, 0};
    wg_tensor *parameter = wg__parameter(module, name, 1, &n, &how, NULL);
    wg_module_no_decay(module, name);
    return parameter;
}

int wg__check_size(const char *where, const char *what, int64_t size) {
    if (size >= 1)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %lld; it must be at least 1", what,
                   (long long)size);
}

int wg__check_probability(const char *where, const char *what, double p) {
    if (p >= 0 && p < 1)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, where, "%s is %g; it must be at least 0 and below 1", what,
                   p);
}
