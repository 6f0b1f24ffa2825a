/* Classifies pictures of clothes, Fashion-MNIST (Xiao et al. 2017, arXiv:1708.07747; MIT licence):
 * 60000 of 28 x 28 points in ten classes, and 10000 to test on. By a small convolutional network,
 * or by a small vision transformer (Dosovitskiy et al. 2021, arXiv:2010.11929). The files are in
 * Debian's package dataset-fashion-mnist and at https://github.com/zalandoresearch/fashion-mnist:
 *
 *     cp -r /usr/share/datasets/fashion-mnist data && gunzip -r data
 *     cc fashion.c $(pkg-config --cflags --libs wengert) -lm -o fashion
 *     ./fashion cnn data 3 && ./fashion vit data 3
 *
 * bench/torch_fashion.py is the same in PyTorch; bench/README.md compares accuracy and time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <wengert/tensor/easy.h>
#include <wengert/wengert.h>

enum { SIDE = 28, POINTS = SIDE * SIDE, CLASSES = 10, BATCH = 64 };

/* ---- IDX files: a magic number, sizes, and bytes; numbers are big-endian ---- */

typedef struct pictures {
    int64_t count;
    unsigned char *points, *labels; /* (count, SIDE, SIDE), (count) */
} pictures;

/* The bytes of FOLDER/NAME behind its head of `head` bytes, `each` bytes for each example. */
static unsigned char *read_idx(const char *folder, const char *name, int head, int64_t each,
                               int64_t *count) {
    char path[4096];
    unsigned char begin[16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fread(begin, 1, (size_t)head, file) != (size_t)head) {
        fprintf(stderr, "fashion: cannot read %s (wanted: the IDX file, not compressed)\n", path);
        exit(1);
    }
    *count = (int64_t)begin[4] << 24 | begin[5] << 16 | begin[6] << 8 | begin[7];
    unsigned char *bytes = malloc((size_t)(*count * each) + 1);
    if (!bytes || fread(bytes, (size_t)each, (size_t)*count, file) != (size_t)*count) {
        fprintf(stderr, "fashion: %s ends early\n", path);
        exit(1);
    }
    fclose(file);
    return bytes;
}

static pictures read_pictures(const char *folder, const char *which) {
    char images[64], labels[64];
    int64_t count;
    pictures p;
    snprintf(images, sizeof images, "%s-images-idx3-ubyte", which);
    snprintf(labels, sizeof labels, "%s-labels-idx1-ubyte", which);
    p.points = read_idx(folder, images, 16, POINTS, &p.count);
    p.labels = read_idx(folder, labels, 8, 1, &count);
    return p;
}

/* Pictures number order[0], order[1]...: (count, 1, SIDE, SIDE) in [-1, 1], and labels (count). */
static void make_batch(const pictures *p, const int64_t *order, int64_t count, wg_tensor **images,
                       wg_tensor **labels) {
    static float points[BATCH][POINTS];
    static int64_t classes[BATCH];
    for (int64_t i = 0; i < count; i++) {
        for (int k = 0; k < POINTS; k++)
            points[i][k] = (float)p->points[order[i] * POINTS + k] / 127.5F - 1;
        classes[i] = p->labels[order[i]];
    }
    *images = wg_from_array(WG_F32, WG_DIMS(count, 1, SIDE, SIDE), points);
    *labels = wg_from_array(WG_I64, WG_DIMS(count), classes);
}

/* ---- The convolutional network: two blocks of convolution, batch norm, ReLU and pooling ---- */

typedef struct cnn {
    wg_module module;
    wg_conv *conv[2];
    wg_batch_norm *norm[2];
    wg_linear *hidden, *out;
} cnn;

static void *cnn_new(void) {
    const wg_conv_layer_options same = {.conv = {.same_padding = true}, .no_bias = true};
    const int64_t kernel[] = {3, 3};
    cnn *net = wg_module_new(NULL, "", sizeof *net);
    if (!net)
        return NULL;
    net->conv[0] = wg_conv_new(&net->module, "conv1", 2, 1, 16, kernel, &same);
    net->norm[0] = wg_batch_norm_new(&net->module, "norm1", 16, NULL);
    net->conv[1] = wg_conv_new(&net->module, "conv2", 2, 16, 32, kernel, &same);
    net->norm[1] = wg_batch_norm_new(&net->module, "norm2", 32, NULL);
    net->hidden = wg_linear_new(&net->module, "hidden", 32 * 7 * 7, 128, NULL);
    net->out = wg_linear_new(&net->module, "out", 128, CLASSES, NULL);
    return wg_module_finish(&net->module);
}

/* x: (B, 1, SIDE, SIDE)   ->   logits (B, CLASSES) */
static wg_tensor *cnn_forward(void *network, wg_tensor *x) {
    cnn *net = network;
    for (int i = 0; i < 2; i++) {
        x = wg_batch_norm_forward(net->norm[i], wg_conv_forward(net->conv[i], x));
        x = wg_max_pool(wg_relu(x), &(wg_pool_options){.kernel = {2, 2}}, NULL);
    }
    x = wg_relu(wg_linear_forward(net->hidden, wg_flatten(x, 1, -1)));
    return wg_linear_forward(net->out, wg_dropout(&net->module, x, 0.25));
}

/* ---- The vision transformer: 49 patches of 4 x 4 points, and pre-norm layers ---- */

enum { PATCH = 4, PATCHES = (SIDE / PATCH) * (SIDE / PATCH), WIDTH = 64, HEADS = 4, LAYERS = 4 };

typedef struct vit {
    wg_module module;
    wg_conv *patches;
    wg_tensor *positions; /* (PATCHES, WIDTH) */
    struct layer {
        wg_layer_norm *norm[2];
        wg_multi_head_attention *attention;
        wg_feed_forward *net;
    } layers[LAYERS];
    wg_layer_norm *norm;
    wg_linear *out;
} vit;

static void *vit_new(void) {
    const wg_conv_layer_options steps = {.conv = {.stride = {PATCH, PATCH}}};
    vit *net = wg_module_new(NULL, "", sizeof *net);
    if (!net)
        return NULL;
    net->patches =
        wg_conv_new(&net->module, "patches", 2, 1, WIDTH, (int64_t[]){PATCH, PATCH}, &steps);
    net->positions = wg_module_parameter(&net->module, "positions", WG_DIMS(PATCHES, WIDTH));
    wg_initialize(net->positions, &(wg_initializer){WG_INIT_NORMAL, 0.02},
                  wg_module_generator(&net->module));
    for (int i = 0; i < LAYERS; i++) {
        struct layer *layer = &net->layers[i];
        char name[32];
        snprintf(name, sizeof name, "layers.%d.norm1", i);
        layer->norm[0] = wg_layer_norm_new(&net->module, name, WIDTH, NULL);
        snprintf(name, sizeof name, "layers.%d.attention", i);
        layer->attention = wg_multi_head_attention_new(&net->module, name, WIDTH, HEADS, NULL);
        snprintf(name, sizeof name, "layers.%d.norm2", i);
        layer->norm[1] = wg_layer_norm_new(&net->module, name, WIDTH, NULL);
        snprintf(name, sizeof name, "layers.%d.net", i);
        layer->net = wg_feed_forward_new(&net->module, name, WIDTH, 2 * WIDTH, NULL);
    }
    net->norm = wg_layer_norm_new(&net->module, "norm", WIDTH, NULL);
    net->out = wg_linear_new(&net->module, "out", WIDTH, CLASSES, NULL);
    return wg_module_finish(&net->module);
}

static wg_tensor *vit_forward(void *network, wg_tensor *x) {
    vit *net = network;
    /* (B, WIDTH, 7, 7) -> (B, PATCHES, WIDTH) */
    x = wg_transpose(wg_flatten(wg_conv_forward(net->patches, x), 2, -1), 1, 2);
    x = wg_add(x, net->positions);
    for (int i = 0; i < LAYERS; i++) {
        const struct layer *layer = &net->layers[i];
        x = wg_add(x, wg_multi_head_attention_forward(
                          layer->attention, wg_layer_norm_forward(layer->norm[0], x), NULL));
        x = wg_add(x,
                   wg_feed_forward_forward(layer->net, wg_layer_norm_forward(layer->norm[1], x)));
    }
    x = wg_mean(wg_layer_norm_forward(net->norm, x), WG_DIMS(1), false);
    return wg_linear_forward(net->out, x);
}

/* ---- Training and evaluation ---- */

typedef wg_tensor *(*network_forward)(void *network, wg_tensor *x);

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void shuffle(int64_t count, int64_t *order, wg_generator *random) {
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t other = (int64_t)wg_random_below(random, (uint64_t)i + 1);
        const int64_t held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
}

static double train_step(void *net, network_forward forward, wg_optimizer *optimizer, double rate,
                         const pictures *data, const int64_t *order, int64_t count) {
    wg_tensor *images, *labels;
    wg_scope step;
    wg_scope_begin(&step);
    make_batch(data, order, count, &images, &labels);
    wg_tensor *loss = wg_cross_entropy(forward(net, images), labels, WG_IGNORE_INDEX, NULL);
    wg_backward(loss, NULL);
    wg_optimizer_step(optimizer, rate);
    const double value = wg_item(loss);
    wg_scope_end(&step, NULL);
    return value;
}

/* The share of right answers, with the running statistics of norms and without dropout. */
static double accuracy(void *net, network_forward forward, const pictures *data,
                       const int64_t *order) {
    double right = 0;
    const bool recording = wg_set_grad_enabled(false);
    wg_module_train(net, false);
    for (int64_t at = 0; at < data->count; at += BATCH) {
        const int64_t count = data->count - at < BATCH ? data->count - at : BATCH;
        wg_tensor *images, *labels;
        wg_scope scope;
        wg_scope_begin(&scope);
        make_batch(data, order + at, count, &images, &labels);
        wg_tensor *equal = wg_eq(wg_argmax(forward(net, images), 1, false), labels);
        right += wg_item(wg_sum(wg_cast(equal, WG_F32), WG_ALL, false));
        wg_scope_end(&scope, NULL);
    }
    wg_module_train(net, true);
    wg_set_grad_enabled(recording);
    return right / (double)data->count;
}

int main(int argc, char **argv) {
    const bool is_vit = argc > 1 && strcmp(argv[1], "vit") == 0;
    if (argc < 3 || (!is_vit && strcmp(argv[1], "cnn") != 0)) {
        fprintf(stderr, "usage: fashion cnn|vit FOLDER [EPOCHS [SECONDS]]\n");
        return 2;
    }
    const int epochs = argc > 3 ? atoi(argv[3]) : 3;
    const double most = argc > 4 ? atof(argv[4]) : INFINITY; /* of the clock, to time steps */
    const pictures training = read_pictures(argv[2], "train"),
                   test = read_pictures(argv[2], "t10k");
    const network_forward forward = is_vit ? vit_forward : cnn_forward;
    const double peak = is_vit ? 0.001 : 0.002;
    wg_manual_seed(1);
    void *net = is_vit ? vit_new() : cnn_new();
    wg_optimizer *optimizer = wg_adamw_new(NULL);
    const int64_t longest = training.count > test.count ? training.count : test.count;
    int64_t *order = malloc((size_t)longest * sizeof *order);
    if (!net || !optimizer || !order || wg_optimizer_add_module(optimizer, net) < 0)
        return 1;
    wg_generator random = {.seed = 2};
    const int64_t steps = (training.count + BATCH - 1) / BATCH;
    const double begun = seconds();
    int64_t done = 0;
    for (int epoch = 0; epoch < epochs && !wg_error_pending(); epoch++) {
        double loss = 0;
        for (int64_t i = 0; i < training.count; i++)
            order[i] = i;
        shuffle(training.count, order, &random);
        for (int64_t at = 0; at < training.count && seconds() - begun < most; at += BATCH, done++) {
            const int64_t left = training.count - at;
            /* The rate falls along a line to 0. */
            const double rate = peak * (1 - (double)done / (double)(epochs * steps));
            loss += train_step(net, forward, optimizer, rate, &training, order + at,
                               left < BATCH ? left : BATCH);
        }
        printf("epoch %d   loss %.4f   %.0f s\n", epoch + 1, loss / (double)steps,
               seconds() - begun);
        fflush(stdout);
    }
    printf("%.2f ms a step\n", 1e3 * (seconds() - begun) / (double)done);
    for (int64_t i = 0; i < test.count; i++)
        order[i] = i;
    printf("right on new pictures: %.1f %%\n", 100 * accuracy(net, forward, &test, order));
    if (wg_error_pending())
        fprintf(stderr, "fashion: %s\n", wg_error_pending()->message);
    free(order);
    free(training.points), free(training.labels), free(test.points), free(test.labels);
    wg_optimizer_free(optimizer);
    wg_module_free(net);
    return wg_error_pending() ? 1 : 0;
}
