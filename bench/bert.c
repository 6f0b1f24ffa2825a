/* The time of one BERT pre-training step: forward, backward, AdamW, on random tokens.
 *
 *     bench/bert LAYERS WIDTH HEADS VOCAB BATCH SEQ STEPS [DROPOUT]
 *     OMP_NUM_THREADS=2 bench/bert 4 256 4 30522 32 128 9
 *
 * 15 % of the positions are masked, and the masked language model's head runs at these alone.
 * Prints the median time of a step, tokens a second, and GFLOP/s, which count the matrix products
 * of the forward pass and twice as much for the backward pass. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <wengert/wengert.h>
#include <wengert/tensor/easy.h>

typedef struct run {
    wg_bert_config config;
    int64_t batch, length, steps;
    int64_t masked; /* a sequence */
} run;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Random tokens; the second half of a sequence is its second segment; nothing is padding. */
static wg_bert_batch make_batch(const run *run) {
    wg_generator generator = {.seed = 1};
    int64_t b = run->batch, t = run->length;
    wg_tensor *half = wg_full(WG_I64, WG_DIMS(1), (double)(t / 2));
    wg_tensor *second = wg_ge(wg_arange(WG_I64, 0, (double)t, 1), half);
    wg_tensor *ones = wg_ones(WG_BOOL, WG_DIMS(b, t)), *positions[4096];
    for (int64_t i = 0; i < b; i++) {
        wg_tensor *order = wg_randperm(&generator, t);
        positions[i] = wg_add_scalar(wg_slice(order, 0, 0, run->masked, 1), (double)(i * t));
    }
    return (wg_bert_batch){
        .input_ids = wg_randint(&generator, 1, run->config.vocab_size, WG_DIMS(b, t)),
        .token_type_ids = wg_contiguous(wg_expand(wg_cast(second, WG_I64), WG_DIMS(b, t))),
        .attention_mask = ones,
        .masked_positions = wg_cat((int)b, positions, 0),
        .masked_labels =
            wg_randint(&generator, 1, run->config.vocab_size, WG_DIMS(b * run->masked)),
        .next_sentence_labels = wg_randint(&generator, 0, 2, WG_DIMS(b)),
        .tokens = b * t,
    };
}

static wg_optimizer *make_optimizer(wg_module *module) {
    wg_optimizer *optimizer = wg_adamw_new(&(wg_adamw_options){.weight_decay = 0.01});
    wg_state_dict *state = wg_module_state(module);
    for (int64_t i = 0; state && i < state->count; i++) {
        const wg_state_entry *entry = &state->entries[i];
        if (!entry->slot->tied)
            wg_optimizer_add(optimizer, entry->path, entry->slot->tensor, entry->slot->no_decay);
    }
    wg_state_dict_free(state);
    return optimizer;
}

static double step(wg_bert_for_pretraining *model, wg_optimizer *optimizer,
                   const wg_bert_batch *batch) {
    wg_scope scope;
    wg_scope_begin(&scope);
    wg_bert_loss loss;
    wg_bert_pretraining_loss(model, batch, false, &loss);
    wg_backward(loss.total, NULL);
    wg_optimizer_step(optimizer, 1e-4);
    double value = wg_item(loss.total);
    wg_scope_end(&scope, NULL);
    return value;
}

/* Of the matrix products, forward. */
static double forward_flops(const run *run) {
    double b = (double)run->batch, t = (double)run->length, m = (double)run->masked;
    double c = (double)run->config.hidden_size, v = (double)run->config.vocab_size;
    double layers = (double)run->config.num_hidden_layers;
    return 2 * b * t * layers * (12 * c * c + 2 * t * c) + 2 * b * m * (c * c + c * v) +
           2 * b * (c * c + 2 * c);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const run *run, double *seconds, double loss, int64_t parameters) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(seconds, (size_t)run->steps, sizeof *seconds, by_value);
    double median = seconds[run->steps / 2];
    printf("wengert params=%lld ms_per_step=%.1f tok_s=%.1f gflops=%.1f loss=%.4f rss_mb=%ld "
           "min_ms=%.1f max_ms=%.1f\n",
           (long long)parameters, 1e3 * median, (double)(run->batch * run->length) / median,
           3e-9 * forward_flops(run) / median, loss, usage.ru_maxrss / 1024, 1e3 * seconds[0],
           1e3 * seconds[run->steps - 1]);
}

/* Two steps warm up; system allocations after them are told, for there should be none. */
static int measure(const run *run) {
    wg_bert_for_pretraining *model = wg_bert_for_pretraining_new(&run->config, 1);
    if (model == NULL)
        return -1;
    wg_optimizer *optimizer = make_optimizer(&model->module);
    wg_bert_batch batch = make_batch(run);
    double *seconds = malloc((size_t)run->steps * sizeof *seconds), loss = 0;
    int64_t warm = 0;
    for (int64_t i = -2; seconds && i < run->steps && !wg_error_pending(); i++) {
        double start = now();
        loss = step(model, optimizer, &batch);
        if (i >= 0)
            seconds[i] = now() - start;
        else
            warm = wg_alloc_get_stats().system_allocations;
    }
    int64_t fresh = wg_alloc_get_stats().system_allocations - warm;
    if (seconds && !wg_error_pending())
        report(run, seconds, loss, wg_module_parameter_count(&model->module));
    if (fresh > 0)
        printf("%lld system allocations after the second step\n", (long long)fresh);
    free(seconds);
    wg_optimizer_free(optimizer);
    wg_module_free(&model->module);
    return wg_error_pending() ? -1 : 0;
}

int main(int argc, char **argv) {
    if (argc < 8) {
        fprintf(stderr, "usage: %s LAYERS WIDTH HEADS VOCAB BATCH SEQ STEPS [DROPOUT]\n", argv[0]);
        return 2;
    }
    run run = {.batch = atoll(argv[5]), .length = atoll(argv[6]), .steps = atoll(argv[7])};
    wg_bert_config_preset(&run.config, "bert-base");
    run.config.num_hidden_layers = atoll(argv[1]);
    run.config.hidden_size = atoll(argv[2]);
    run.config.num_attention_heads = atoll(argv[3]);
    run.config.vocab_size = atoll(argv[4]);
    run.config.intermediate_size = 4 * run.config.hidden_size;
    run.config.max_position_embeddings = run.length;
    run.config.hidden_dropout_prob = argc > 8 ? atof(argv[8]) : 0;
    run.config.attention_probs_dropout_prob = run.config.hidden_dropout_prob;
    run.masked = (int64_t)round(0.15 * (double)run.length);
    if (run.batch < 1 || run.batch > 4096 || run.steps < 1 || run.masked < 1) {
        fprintf(stderr, "%s: needs BATCH from 1 to 4096, STEPS from 1, SEQ from 4\n", argv[0]);
        return 2;
    }
    if (measure(&run) < 0)
        fprintf(stderr, "%s: %s\n", argv[0], wg_error_pending()->message);
    return wg_error_pending() ? 1 : 0;
}
