/* Fits y = w x + b to three points. */
#include <stdio.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

int main(void) {
    wg_tensor *x = wg_from_array(WG_F32, WG_DIMS(3, 1), (float[]){0, 1, 2});
    wg_tensor *y = wg_from_array(WG_F32, WG_DIMS(3, 1), (float[]){1, 3, 5});
    wg_linear *line = wg_linear_new(NULL, "", 1, 1, NULL);
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_optimizer_add_module(optimizer, &line->module);

    for (int step = 0; step < 500; step++) {
        wg_scope scope;
        wg_scope_begin(&scope);
        wg_tensor *error = wg_sub(wg_linear_forward(line, x), y);
        wg_backward(wg_mean(wg_mul(error, error), WG_ALL, false), NULL);
        wg_optimizer_step(optimizer, 0.05);
        wg_scope_end(&scope, NULL);
    }
    if (wg_error_pending()) {
        fprintf(stderr, "%s\n", wg_error_pending()->message);
        return 1;
    }
    printf("y = %.3f x + %.3f\n", wg_item(line->weight), wg_item(line->bias));
    wg_optimizer_free(optimizer);
    wg_module_free(&line->module);
    return 0;
}
