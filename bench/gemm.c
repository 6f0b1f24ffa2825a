/* wengert bench gemm: matrix products, square ones and those of transformers, beside the machine's
 * sgemm peak. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "cli/cli.h"
#include "cli/output.h"
#include "tensor/kernels.h"
#include "tensor/tensor.h"

enum { MAX_THREADS = 1024, MAX_SIZE = 1 << 20 };

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
    int threads;
    bool transposed;
    wg_dtype dtype;
    size_t count; /* of products that are named; 0: all of the table */
    product *named;
} arguments;

enum { KEY_THREADS = WG__KEY_OWN, KEY_TRANSPOSED, KEY_DTYPE };

static const struct argp_option options[] = {
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "f32, or bf16: operands are rounded to bf16, and sums are f32 (default: f32)", 0},
    {"threads", KEY_THREADS, "N", 0, "How many threads compute (default: all processors)", 0},
    {"transposed", KEY_TRANSPOSED, NULL, 0,
     "Of a shape that is given: the second matrix is stored as (N, K)", 0},
    {0}};

static void add_product(arguments *a, const char *text, const struct argp_state *state) {
    long long m, n, k;
    int end = 0;
    if (sscanf(text, "%7lldx%7lldx%7lld%n", &m, &n, &k, &end) != 3 || text[end] || m < 1 || n < 1 ||
        k < 1 || m > MAX_SIZE || n > MAX_SIZE || k > MAX_SIZE)
        argp_error(state, "'%s' is no shape: three sizes from 1 to %d, as 256x3072x768", text,
                   MAX_SIZE);
    product *named = reallocarray(a->named, a->count + 1, sizeof *named);
    if (!named)
        argp_failure(state, 1, 0, "no memory");
    a->named = named;
    a->named[a->count++] = (product){.use = "given", .m = m, .n = n, .k = k};
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, MAX_THREADS);
        return 0;
    case KEY_DTYPE:
        a->dtype = wg__parse_product_dtype(state, text);
        return 0;
    case KEY_TRANSPOSED:
        a->transposed = true;
        return 0;
    case ARGP_KEY_ARG:
        add_product(a, text, state);
        return 0;
    case ARGP_KEY_END:
        if (a->transposed && a->count == 0)
            argp_error(state, "--transposed goes with a shape: 256x3072x768, say");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int time_one(const product *p, bool transposed, wg_dtype dtype, double sgemm_flops) {
    const double seconds = wg__time_product(p->m, p->n, p->k, transposed, dtype);
    if (seconds < 0)
        return -1;
    const double flops = 2 * (double)p->m * (double)p->n * (double)p->k / seconds;
    wg__print_json_line(
        json_pack("{s:s, s:I, s:I, s:I, s:b, s:s, s:i, s:s, s:f, s:f, s:f, s:f}", "use", p->use,
                  "m", (json_int_t)p->m, "n", (json_int_t)p->n, "k", (json_int_t)p->k, "transposed",
                  transposed, "dtype", wg_dtype_name(dtype), "threads", wg_threads(), "kernels",
                  dtype == WG_BF16 ? wg_kernels_in_use().bf16 : wg_kernels_in_use().vectors, "ms",
                  1e3 * seconds, "gflops", 1e-9 * flops, "sgemm_peak_gflops", 1e-9 * sgemm_flops,
                  "share_of_peak", flops / sgemm_flops));
    fflush(stdout);
    return 0;
}

static int bench(const arguments *a) {
    const product *list = a->count ? a->named : products;
    const size_t count = a->count ? a->count : sizeof products / sizeof *products;
    double sgemm_flops;
    int status = a->threads ? wg_set_threads(a->threads) : 0;
    if (status == 0)
        status = wg__measure_sgemm(&sgemm_flops);
    for (size_t i = 0; status == 0 && i < count; i++)
        status = time_one(&list[i], list[i].transposed || a->transposed, a->dtype, sgemm_flops);
    return status < 0 ? wg__cli_fail_pending() : 0;
}

int wg__bench_gemm(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "[MxNxK...]",
        .doc = "Times f32 matrix products, (M, K) by (K, N): square ones and those of the models "
               "that `wengert bench train' knows, or the shapes that are given. Prints a line of "
               "JSON for each.\v"
               "ms is the median. sgemm_peak_gflops is that of large products, measured in the "
               "same run before the others, and share_of_peak is gflops beside it.",
    };
    arguments a = {0};
    wg__cli_parse(&parser, argc, argv, &a);
    const int status = bench(&a);
    free(a.named);
    return status;
}
