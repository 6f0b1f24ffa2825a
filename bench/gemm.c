/* wengert bench gemm: square matrix products and products of transformers, beside the machine's
 * sgemm peak. */
#include <stdio.h>

#include "bench/bench.h"
#include "cli/output.h"
#include "tensor/tensor.h"
#include "tensor/internal.h"

enum { MAX_SIZE = 1 << 20 };

typedef struct product {
    const char *use;
    int64_t m, n, k;
    bool transposed; /* (M, K) x (N, K)^T, as a linear layer has its weight */
} product;

/* M is batch times tokens, as `wengert bench train' has them. */
static const product products[] = {
    {"square", 128, 128, 128, false},
    {"square", 256, 256, 256, false},
    {"square", 512, 512, 512, false},
    {"square", 1024, 1024, 1024, false},
    {"square", 2048, 2048, 2048, false},
    {"gpt2-124m, attention in", 256, 2304, 768, false},
    {"gpt2-124m, feed-forward up", 256, 3072, 768, false},
    {"gpt2-124m, feed-forward down", 256, 768, 3072, false},
    {"gpt2-124m, head", 256, 50257, 768, true},
    {"bert-mini, attention", 4096, 256, 256, true},
    {"bert-mini, feed-forward up", 4096, 1024, 256, true},
    {"bert-mini, feed-forward down", 4096, 256, 1024, true},
    {"bert-mini, head", 608, 30522, 256, true},
    {"bert-base, attention", 512, 768, 768, true},
    {"bert-base, feed-forward up", 512, 3072, 768, true},
    {"bert-base, feed-forward down", 512, 768, 3072, true},
    {"llama-15m, attention", 2048, 288, 288, true},
    {"llama-15m, feed-forward up", 2048, 768, 288, true},
    {"llama-15m, feed-forward down", 2048, 288, 768, true},
    {"llama-15m, head", 2048, 32000, 288, true},
    {"transformer-base, attention", 512, 512, 512, true},
    {"transformer-base, feed-forward up", 512, 2048, 512, true},
    {"transformer-base, feed-forward down", 512, 512, 2048, true},
    {"glm-small, attention", 2048, 384, 384, true},
    {"glm-small, feed-forward up", 2048, 1536, 384, true},
    {"glm-small, feed-forward down", 2048, 384, 1536, true},
};

typedef struct arguments {
    bool transposed;
    int bf16;               /* of wg__product_dtype_name */
    wg_setting_list shapes; /* none: all of the table */
} arguments;

static const wg_setting options[] = {
    {"shapes", WG_SETTING_TEXTS, WG__AT(shapes), .word = true},
    {"dtype", WG_SETTING_CHOICE, WG__AT(bf16), .choice = wg__product_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE",
     .help = "f32, or bf16: operands are rounded to bf16, and sums are f32"},
    {"transposed", WG_SETTING_FLAG, WG__AT(transposed),
     .help = "Of a shape that is given: the second matrix is stored as (N, K)"},
};

static bool read_shape(const char *text, double *sizes) {
    bool good = wg__settings_numbers(text, "x", 1, MAX_SIZE, 3, sizes) == 3;
    for (int i = 0; i < 3 && good; i++)
        good = sizes[i] == (double)(int64_t)sizes[i];
    return good;
}

static void check(const void *values) {
    const arguments *a = values;
    double sizes[3];
    for (int64_t i = 0; i < a->shapes.count; i++)
        if (!read_shape(a->shapes.items[i], sizes))
            wg__cli_misuse("'%s' is no shape: three sizes from 1 to %d, as 256x3072x768",
                           a->shapes.items[i], MAX_SIZE);
    if (a->transposed && a->shapes.count == 0)
        wg__cli_misuse("--transposed goes with a shape: 256x3072x768, say");
}

int wg__bench_gemm(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "[MxNxK...]",
        .doc = "Times f32 matrix products, (M, K) by (K, N): square ones and the products of the "
               "models of `wengert bench train', or the given shapes. Prints a line of JSON for "
               "each.\v"
               "ms is the median. sgemm_peak_gflops is measured first, with large products, and "
               "share_of_peak is gflops divided by it.",
        .parts = {WG__PART(options, a), WG__PART_THREADS},
        .check = check,
    };
    wg__cli_read(&usage, argc, argv);
    const int64_t count =
        a.shapes.count ? a.shapes.count : (int64_t)(sizeof products / sizeof *products);
    const wg_dtype dtype = a.bf16 ? WG_BF16 : WG_F32;
    const char *kernels = a.bf16 ? wg__kernels_in_use().bf16 : wg__kernels_in_use().vectors;
    double peak, sizes[3];
    int status = wg__measure_sgemm(&peak);
    for (int64_t i = 0; status == 0 && i < count; i++) {
        product p = products[a.shapes.count ? 0 : i];
        if (a.shapes.count && read_shape(a.shapes.items[i], sizes))
            p = (product){"given", (int64_t)sizes[0], (int64_t)sizes[1], (int64_t)sizes[2],
                          a.transposed};
        const double seconds = wg__time_product(p.m, p.n, p.k, p.transposed, dtype);
        const double flops = 2 * (double)p.m * (double)p.n * (double)p.k / seconds;
        status = seconds < 0 ? -1 : 0;
        if (status == 0)
            wg__print_json(
                0, json_pack("{s:s, s:I, s:I, s:I, s:b, s:s, s:i, s:s, s:f, s:f, s:f, s:f}", "use",
                             p.use, "m", (json_int_t)p.m, "n", (json_int_t)p.n, "k",
                             (json_int_t)p.k, "transposed", p.transposed, "dtype",
                             wg_dtype_name(dtype), "threads", wg_threads(), "kernels", kernels,
                             "ms", 1e3 * seconds, "gflops", 1e-9 * flops, "sgemm_peak_gflops",
                             1e-9 * peak, "share_of_peak", flops / peak));
        fflush(stdout);
    }
    return status < 0 ? wg__cli_fail_pending() : 0;
}
