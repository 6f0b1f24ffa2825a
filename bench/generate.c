/* wengert bench generate: reading a prompt and writing token by token, beside memory bandwidth. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"
#include "cli/output.h"
#include "cli/decoding.h"
#include "models/internal.h"

enum { MAX_TOKENS = 1 << 20, MAX_BATCH = 1 << 10 };

/* Steps between two measurements of the memory's bandwidth. */
enum { STEPS_BETWEEN_READINGS = 4 };

typedef struct arguments {
    const char *model; /* a preset, or a file */
    int64_t prompt_tokens, tokens, batch;
    int dtype; /* of the weights; 0: f32 */
} arguments;

static const wg_setting options[] = {
    {"model", WG_SETTING_TEXT, WG__AT(model), .word = true, .choice = wg__model_preset_name,
     .missing = "which model? llama-110m, say, or RUN.h5", .argument = "RUN.h5"},
    {"prompt-tokens", WG_SETTING_INTEGER, WG__AT(prompt_tokens), .low = 1, .high = MAX_TOKENS,
     .standard = "128", .argument = "N", .help = "Read a prompt of N tokens first"},
    {"tokens", WG_SETTING_INTEGER, WG__AT(tokens), .low = 2, .high = MAX_TOKENS, .standard = "64",
     .argument = "N", .help = "Write N tokens"},
    {"batch", WG_SETTING_INTEGER, WG__AT(batch), .low = 1, .high = MAX_BATCH, .standard = "1",
     .argument = "N", .help = "Continue N texts at once"},
    {"dtype", WG_SETTING_CHOICE, WG__AT(dtype), .choice = wg__weights_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE", .help = "Keep the matrices as bf16, q8_0 or q4_0"},
};

/* A preset gets random weights and the positions that the texts need. */
static int make_model(const arguments *a, wg_model *model) {
    const int64_t positions = a->prompt_tokens + a->tokens;
    const wg_model_type *type;
    struct stat file;
    for (int i = 0; (type = wg_model_type_at(i)); i++)
        for (const wg_model_preset *preset = type->presets; preset->name; preset++) {
            if (type->shape != WG_DECODER || strcmp(a->model, preset->name) != 0)
                continue;
            void *config = wg__cli_calloc(1, type->settings.size);
            int result = wg_model_preset_config(type, preset->name, config);
            if (result == 0) {
                wg_model_config_resize(type, config, 0, positions);
                result = wg_model_from_config(type, config, 0, model);
            }
            free(config);
            return result;
        }
    if (stat(a->model, &file) < 0)
        return wg_fail(
            WG_ERROR_NOT_FOUND, a->model,
            "there is no such file, nor a preset of a model that predicts the next token");
    if (wg_model_load(a->model, model, NULL) < 0)
        return -1;
    if (model->type->shape != WG_DECODER)
        return wg_fail(WG_ERROR_STATE, a->model, "it holds a %s, which is no decoder",
                       model->type->name);
    if (wg_model_sizes_of(model).positions < positions)
        return wg_fail(WG_ERROR_ARGUMENT, a->model,
                       "it has %lld positions; %lld tokens of a prompt and %lld more do not fit",
                       (long long)wg_model_sizes_of(model).positions, (long long)a->prompt_tokens,
                       (long long)a->tokens);
    return 0;
}

typedef struct timing {
    wg__reader *reader;
    double *seconds;  /* of each step, from the second on */
    double *readings; /* bytes a second that memory gave in between */
    int64_t steps, reading_count;
    double prefill; /* seconds up to the first token */
    double last;    /* when the step began that runs */
} timing;

static void record_step(const wg_generated_token *token, void *context) {
    timing *t = context;
    if (token->text != 0)
        return;
    const double took = wg__now() - t->last;
    if (t->steps < 0)
        t->prefill = took;
    else
        t->seconds[t->steps] = took;
    if (++t->steps % STEPS_BETWEEN_READINGS == 1)
        t->readings[t->reading_count++] = wg__reader_rate(t->reader);
    t->last = wg__now();
}

static int generate(const arguments *a, const wg_model *model, timing *t) {
    wg_generation *texts = wg__cli_calloc((size_t)a->batch, sizeof *texts);
    const int64_t ids = wg_model_sizes_of(model).vocabulary - 1;
    int result = 0;
    for (int64_t i = 0; i < a->batch; i++) {
        texts[i].generator.seed = 1;
        for (int64_t j = 0; result == 0 && j < a->prompt_tokens; j++)
            result = wg_token_list_append(&texts[i].tokens,
                                          (int32_t)((j * 7919 + i * 104729) % ids + 1));
    }
    const wg_generation_options options = {
        .max_tokens = a->tokens, .listener = record_step, .listener_context = t};
    t->steps = -1;
    t->reading_count = 0;
    t->last = wg__now();
    if (result == 0)
        result = wg_generate(model, a->batch, texts, &options);
    for (int64_t i = 0; i < a->batch; i++)
        wg_token_list_free(&texts[i].tokens);
    free(texts);
    return result;
}

int wg__bench_generate(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "MODEL|RUN.h5",
        .doc = "Times a GPT or LLaMA that continues a text: a preset with random weights, as in "
               "`wengert bench generate llama-110m', or a checkpoint. Prints one line of JSON.\v"
               "A step writes one token of each text. It reads all weights once, and the keys and "
               "values of earlier positions. mb_per_token is this amount divided by the number of "
               "texts; tables of vectors count only if they are the head, too. share_of_bandwidth "
               "compares the rate with the same number of threads reading a large buffer, measured "
               "between steps. Both are medians; decode_tokens_per_s includes choosing the tokens.",
        .parts = {WG__PART(options, a), WG__PART_THREADS},
    };
    wg__cli_read(&usage, argc, argv);
    wg_model model = {0};
    timing t = {.seconds = wg__cli_calloc((size_t)a.tokens, sizeof *t.seconds),
                .readings = wg__cli_calloc((size_t)a.tokens, sizeof *t.readings)};
    int status = make_model(&a, &model) < 0 || wg__trained_quantize(&model, a.dtype) < 0 ||
                         !(t.reader = wg__reader_new())
                     ? -1
                     : 0;
    for (int run = 0; run < 2 && status == 0; run++) /* the first one warms up */
        status = generate(&a, &model, &t);
    if (status == 0) {
        const double step = wg__median(t.steps, t.seconds), batch = (double)a.batch;
        const double bandwidth = wg__median(t.reading_count, t.readings);
        /* All weights, and the key-value cache at the middle of the generated text. */
        const wg_model_sizes sizes = wg_model_sizes_of(&model);
        const double seen = (double)a.prompt_tokens + (double)a.tokens / 2,
                     cache = (double)sizes.cache_width * seen * (double)(sizes.layers * a.batch),
                     bytes = (double)wg_model_costs_of(&model).token_bytes + sizeof(float) * cache;
        wg__print_json(
            0, json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                         "model", a.model, "dtype", wg__weights_dtype_name(a.dtype), "threads",
                         wg_threads(), "batch", (json_int_t)a.batch, "prompt_tokens",
                         (json_int_t)a.prompt_tokens, "tokens", (json_int_t)a.tokens,
                         "prefill_tokens_per_s", batch * (double)a.prompt_tokens / t.prefill,
                         "decode_tokens_per_s", batch / step, "ms_per_token", 1e3 * step / batch,
                         "mb_per_token", bytes / batch / 1e6, "gb_per_s", bytes / step / 1e9,
                         "read_bandwidth_gb_per_s", bandwidth / 1e9, "share_of_bandwidth",
                         bytes / step / bandwidth));
    }
    wg__reader_free(t.reader);
    free(t.seconds);
    free(t.readings);
    wg_model_free(&model);
    return status < 0 ? wg__cli_fail_pending() : 0;
}
