/* A small convolutional network reads digits. The images are rendered by the program: a font of 5
 * by 7 points, drawn at a random place and size, leaning to a side, under noise.
 *
 *     cc digits.c $(pkg-config --cflags --libs wengert) -o digits && ./digits */
#include <stdio.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

enum { SIDE = 20, DIGITS = 10, BATCH = 32, STEPS = 300, NEW = 1000 };

/* ---- The network: two blocks of convolution, batch norm, ReLU and pooling, then a linear layer.
 * ---- */

typedef struct network {
    wg_module module;
    wg_conv *conv[2];
    wg_batch_norm *norm[2];
    wg_linear *out;
} network;

static network *network_new(void) {
    const wg_conv_layer_options same = {.conv = {.same_padding = true}, .no_bias = true};
    network *net = wg_module_new(NULL, "", sizeof *net);
    if (net == NULL)
        return NULL;
    net->conv[0] = wg_conv_new(&net->module, "conv1", 2, 1, 16, (int64_t[]){3, 3}, &same);
    net->norm[0] = wg_batch_norm_new(&net->module, "norm1", 16, NULL);
    net->conv[1] = wg_conv_new(&net->module, "conv2", 2, 16, 32, (int64_t[]){3, 3}, &same);
    net->norm[1] = wg_batch_norm_new(&net->module, "norm2", 32, NULL);
    net->out = wg_linear_new(&net->module, "out", 32 * SIDE / 4 * SIDE / 4, DIGITS, NULL);
    return wg_module_finish(&net->module);
}

/* images: (N, 1, SIDE, SIDE)   ->   logits: (N, DIGITS) */
static wg_tensor *network_forward(network *net, wg_tensor *x) {
    wg_scope scope;
    wg_scope_begin(&scope);
    for (int i = 0; i < 2; i++) {
        x = wg_batch_norm_forward(net->norm[i], wg_conv_forward(net->conv[i], x));
        x = wg_max_pool(wg_relu(x), &(wg_pool_options){.kernel = {2, 2}}, NULL);
    }
    return wg_scope_end(&scope, wg_linear_forward(net->out, wg_flatten(x, 1, -1)));
}

/* ---- The data ---- */

static const char *const font[DIGITS] = {
    " ### #   ##  ### # ###  ##   # ### ", "  #   ##    #    #    #    #   ### ",
    " ### #   #    #   #   #   #   #####", "#####   #   #     #     ##   # ### ",
    "   #   ## # # #  # #####   #    #  ", "######    ####     #    ##   # ### ",
    "  ##  #   #    #### #   ##   # ### ", "#####    #   #   #   #    #    #   ",
    " ### #   ##   # ### #   ##   # ### ", " ### #   ##   # ####    #   #  ##  "};

static void render(int digit, wg_generator *random, float *pixels) {
    const double size = 1.5 + wg_random_uniform(random),
                 lean = 0.5 * wg_random_uniform(random) - 0.25;
    const double left = (SIDE - 5 * size) * wg_random_uniform(random);
    const double top = (SIDE - 7 * size) * wg_random_uniform(random);
    for (int i = 0; i < SIDE * SIDE; i++) {
        const double row = (i / SIDE - top) / size;
        const double column = (i % SIDE - left) / size + lean * (row - 3.5);
        const bool inside = row >= 0 && row < 7 && column >= 0 && column < 5;
        const bool ink = inside && font[digit][5 * (int)row + (int)column] == '#';
        pixels[i] = (float)(ink + 0.2 * wg_random_normal(random));
    }
}

/* `count` images, (N, 1, SIDE, SIDE), and their digits, (N). */
static void make_data(int count, wg_generator *random, wg_tensor **images, wg_tensor **labels) {
    static float pixels[NEW][SIDE * SIDE];
    static int64_t digits[NEW];
    for (int i = 0; i < count; i++) {
        digits[i] = (int64_t)wg_random_below(random, DIGITS);
        render((int)digits[i], random, pixels[i]);
    }
    *images = wg_from_array(WG_F32, WG_DIMS(count, 1, SIDE, SIDE), pixels);
    *labels = wg_from_array(WG_I64, WG_DIMS(count), digits);
}

/* ---- Training and evaluation ---- */

static double train_step(network *net, wg_optimizer *optimizer, wg_generator *random) {
    wg_tensor *images, *labels;
    wg_scope step;
    wg_scope_begin(&step);
    make_data(BATCH, random, &images, &labels);
    wg_tensor *loss = wg_cross_entropy(network_forward(net, images), labels, WG_IGNORE_INDEX, NULL);
    wg_backward(loss, NULL);
    wg_optimizer_step(optimizer, 0.003);
    const double value = wg_item(loss);
    wg_scope_end(&step, NULL);
    return value;
}

/* On new images, with the running statistics of the norms. */
static double accuracy(network *net, wg_generator *random) {
    wg_tensor *images, *labels;
    wg_scope scope;
    wg_scope_begin(&scope);
    const bool recording = wg_set_grad_enabled(false);
    wg_module_train(&net->module, false);
    make_data(NEW, random, &images, &labels);
    wg_tensor *predicted = wg_argmax(network_forward(net, images), 1, false);
    const double share = wg_item(wg_mean(wg_cast(wg_eq(predicted, labels), WG_F32), WG_ALL, false));
    wg_set_grad_enabled(recording);
    wg_scope_end(&scope, NULL);
    return share;
}

int main(void) {
    wg_manual_seed(1);
    wg_generator random = {.seed = 2};
    network *net = network_new();
    if (net == NULL)
        return 1;
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    wg_optimizer_add_module(optimizer, &net->module);
    for (int step = 1; step <= STEPS && !wg_error_pending(); step++) {
        const double loss = train_step(net, optimizer, &random);
        if (step % 50 == 0)
            printf("step %3d   loss %.4f\n", step, loss);
    }
    printf("right on new images: %.1f %%\n", 100 * accuracy(net, &random));
    if (wg_error_pending())
        fprintf(stderr, "digits: %s\n", wg_error_pending()->message);
    wg_optimizer_free(optimizer);
    wg_module_free(&net->module);
    return wg_error_pending() ? 1 : 0;
}
