/* wengert bench generate: reading a prompt and writing token by token, beside memory bandwidth. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/results.h"
#include "models/decode.h"
#include "models/gpt.h"
#include "models/llama.h"

enum { MAX_THREADS = 1024, MAX_TOKENS = 1 << 20 };

enum { KEY_PROMPT_TOKENS = WG__KEY_OWN, KEY_TOKENS, KEY_DTYPE, KEY_THREADS };

typedef struct arguments {
    const char *model; /* a preset, or a file */
    int64_t prompt_tokens, tokens;
    int packing; /* -1: f32 */
    int threads;
} arguments;

static const struct argp_option options[] = {
    {"prompt-tokens", KEY_PROMPT_TOKENS, "N", 0, "Read a prompt of N tokens first (128)", 0},
    {"tokens", KEY_TOKENS, "N", 0, "Write N tokens (64)", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0, "Keep the matrices as bf16, q8_0 or q4_0 (f32)", 0},
    {"threads", KEY_THREADS, "N", 0, "How many threads compute (default: all processors)", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_PROMPT_TOKENS:
        a->prompt_tokens = wg__cli_integer(state, "prompt-tokens", text, 1, MAX_TOKENS);
        return 0;
    case KEY_TOKENS:
        a->tokens = wg__cli_integer(state, "tokens", text, 2, MAX_TOKENS);
        return 0;
    case KEY_DTYPE:
        a->packing = wg__cli_packing(state, text);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, MAX_THREADS);
        return 0;
    case ARGP_KEY_ARG:
        if (a->model)
            argp_error(state, "one model at a time; '%s' is one too many", text);
        a->model = text;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "which model? llama-110m, say, or RUN.h5");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The model ---- */

static bool is_among(const char *name, const char *(*preset_name)(int)) {
    for (int i = 0; preset_name(i); i++)
        if (strcmp(name, preset_name(i)) == 0)
            return true;
    return false;
}

/* A preset's weights are drawn, and it has as many positions as are wanted. */
static int make_llama(const char *preset, int64_t positions, wg_language_model *model) {
    wg_llama_config config;
    wg_llama_config_preset(&config, preset);
    config.max_position_embeddings = positions;
    wg_llama *llama = wg_llama_new(&config, 0);
    if (llama)
        *model = wg_llama_language_model(llama);
    return llama ? 0 : -1;
}

static int make_gpt(const char *preset, int64_t positions, wg_language_model *model) {
    wg_gpt_config config;
    wg_gpt_config_preset(&config, preset);
    config.n_positions = positions;
    wg_gpt *gpt = wg_gpt_new(&config, 0);
    if (gpt)
        *model = wg_gpt_language_model(gpt);
    return gpt ? 0 : -1;
}

static int make_model(const arguments *a, wg_language_model *model) {
    const int64_t positions = a->prompt_tokens + a->tokens;
    if (is_among(a->model, wg_llama_preset_name))
        return make_llama(a->model, positions, model);
    if (is_among(a->model, wg_gpt_preset_name))
        return make_gpt(a->model, positions, model);
    struct stat file;
    if (stat(a->model, &file) < 0)
        return wg_fail(WG_ERROR_NOT_FOUND, a->model,
                       "there is no such file, nor a preset of gpt or llama");
    wg_tokenizer *tokenizer = NULL;
    const int result = wg_language_model_load(a->model, model, &tokenizer);
    wg_tokenizer_free(tokenizer);
    if (result == 0 && model->max_positions < positions)
        return wg_fail(WG_ERROR_ARGUMENT, a->model,
                       "it has %lld positions; %lld tokens of a prompt and %lld more do not fit",
                       (long long)model->max_positions, (long long)a->prompt_tokens,
                       (long long)a->tokens);
    return result;
}

/* ---- What a token must read ---- */

static double bytes_of(const wg_tensor *x) {
    return x ? (double)wg_tensor_count(x) * (double)wg_dtype_size(wg_tensor_dtype(x)) : 0;
}

/* Of all weights, whole tables of vectors are not read, but for one that is the head, too. */
static double weight_bytes(const wg_language_model *model) {
    double bytes = 0;
    wg_state_dict *state = wg_module_state(model->module);
    for (int64_t i = 0; state && i < state->count; i++)
        if (!state->entries[i].slot->tied)
            bytes += bytes_of(state->entries[i].slot->tensor);
    wg_state_dict_free(state);
    if (strcmp(model->type, "llama") == 0) {
        const wg_llama *llama = model->model;
        const bool is_head = llama->head->weight == llama->embedding->weight;
        return is_head ? bytes : bytes - bytes_of(llama->embedding->weight);
    }
    const wg_gpt *gpt = model->model;
    bytes -= bytes_of(gpt->positions->weight);
    return gpt->words->head ? bytes - bytes_of(gpt->words->weight) + bytes_of(gpt->words->head)
                            : bytes;
}

/* Keys and values that a token sees, in the middle of what is written. */
static double cache_bytes(const arguments *a, const wg_language_model *model) {
    const double seen = (double)a->prompt_tokens + (double)a->tokens / 2;
    double width;
    if (strcmp(model->type, "llama") == 0) {
        const wg_llama_config *c = &((const wg_llama *)model->model)->config;
        width = (double)c->hidden_size / (double)c->num_attention_heads *
                (double)c->num_key_value_heads;
    } else {
        width = (double)((const wg_gpt *)model->model)->config.n_embd;
    }
    return 2 * sizeof(float) * width * seen * (double)model->layers;
}

/* ---- Timing ---- */

typedef struct timing {
    double *seconds; /* at which each token came, then between two of them */
    int64_t count;
    double prefill; /* seconds up to the first token */
} timing;

static void hear(const wg_generated_token *token, void *context) {
    (void)token;
    timing *t = context;
    t->seconds[t->count++] = wg__seconds();
}

static int generate(const arguments *a, const wg_language_model *model, timing *t) {
    wg_generation text = {.generator = {.seed = 1}};
    int result = 0;
    for (int64_t i = 0; result == 0 && i < a->prompt_tokens; i++)
        result =
            wg_token_list_append(&text.tokens, (int32_t)(i * 7919 % (model->vocab_size - 1) + 1));
    const wg_generation_options options = {
        .max_tokens = a->tokens, .listener = hear, .listener_context = t};
    t->count = 0;
    const double start = wg__seconds();
    if (result == 0)
        result = wg_generate(model, 1, &text, &options);
    wg_token_list_free(&text.tokens);
    if (result < 0)
        return -1;
    t->prefill = t->seconds[0] - start;
    for (int64_t i = 0; i + 1 < t->count; i++)
        t->seconds[i] = t->seconds[i + 1] - t->seconds[i];
    t->count--;
    return 0;
}

static void report(const arguments *a, const wg_language_model *model, timing *t,
                   double bandwidth) {
    const double token = wg__median(t->count, t->seconds);
    const double bytes = weight_bytes(model) + cache_bytes(a, model);
    wg__print_json_line(json_pack(
        "{s:s, s:s, s:i, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "model", a->model, "dtype",
        a->packing < 0 ? "f32" : wg_packing_name((wg_packing)a->packing), "threads", wg_threads(),
        "prompt_tokens", (json_int_t)a->prompt_tokens, "tokens", (json_int_t)a->tokens,
        "prefill_tokens_per_s", (double)a->prompt_tokens / t->prefill, "decode_tokens_per_s",
        1 / token, "ms_per_token", 1e3 * token, "mb_per_token", bytes / 1e6, "gb_per_s",
        bytes / token / 1e9, "read_bandwidth_gb_per_s", bandwidth / 1e9, "share_of_bandwidth",
        bytes / token / bandwidth));
}

/* The first text warms up. The roof is measured before and after. */
static int measure(const arguments *a, const wg_language_model *model, timing *t) {
    double before, after;
    if (a->packing >= 0 && wg_module_pack(model->module, (wg_packing)a->packing) < 0)
        return -1;
    if (wg__measure_reading(&before) < 0 || generate(a, model, t) < 0 ||
        generate(a, model, t) < 0 || wg__measure_reading(&after) < 0)
        return -1;
    report(a, model, t, (before + after) / 2);
    return 0;
}

int wg__bench_generate(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "MODEL|RUN.h5",
        .doc = "Times a GPT or LLaMA that continues one text: a preset with random weights, as in "
               "`wengert bench generate llama-110m', or a checkpoint. Prints one line of JSON.\v"
               "Writing a token reads all weights once, and the keys and values of what came "
               "before: mb_per_token, of which tables of vectors are no part unless they are the "
               "head, too. share_of_bandwidth holds that against what the same threads read from "
               "memory at best, measured in the same run. decode_tokens_per_s is that of the "
               "median token, choosing it included.",
    };
    arguments a = {.prompt_tokens = 128, .tokens = 64, .packing = -1};
    wg__cli_parse(&parser, argc, argv, &a);
    if (a.threads)
        wg_set_threads(a.threads);
    timing t = {.seconds = calloc((size_t)a.tokens, sizeof *t.seconds)};
    if (!t.seconds)
        return wg__cli_fail("no memory");
    wg_language_model model = {0};
    int status = make_model(&a, &model);
    if (status == 0)
        status = measure(&a, &model, &t);
    wg_language_model_free(&model);
    free(t.seconds);
    return status < 0 ? wg__cli_fail_pending() : 0;
}
