/* wengert generate: a text is continued, shown as it comes. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/results.h"
#include "models/decode.h"

enum {
    KEY_PROMPT = WG__KEY_OWN,
    KEY_MAX_TOKENS,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_MIN_P,
    KEY_REPETITION_PENALTY,
    KEY_SEED,
    KEY_THREADS,
};

typedef struct arguments {
    const char *run;
    const char *prompt; /* NULL: none */
    int64_t max_tokens;
    wg_sampling sampling;
    uint64_t seed;
    int threads; /* 0: as the library finds it */
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"prompt", KEY_PROMPT, "TEXT", 0, "Continue this text (default: begin one)", 0},
    {"max-tokens", KEY_MAX_TOKENS, "N", 0, "Add N tokens at most (200)", 0},
    {"temperature", KEY_TEMPERATURE, "X", 0,
     "Divide logits by X: below 1 likely tokens become likelier (1); 0 always takes the likeliest",
     0},
    {"top-k", KEY_TOP_K, "N", 0, "Choose among the N likeliest tokens only; 0: all (0)", 0},
    {"top-p", KEY_TOP_P, "X", 0,
     "Choose among the likeliest tokens that together have probability X; 0 or 1: all (1)", 0},
    {"min-p", KEY_MIN_P, "X", 0,
     "Choose among tokens with X of the likeliest one's probability or more (0)", 0},
    {"repetition-penalty", KEY_REPETITION_PENALTY, "X", 0,
     "Divide the logits of tokens that the text has already by X, multiply them if below 0 (1)", 0},
    {"seed", KEY_SEED, "N", 0, "Seed of all choices: the same one gives the same text (0)", 0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    WG__OPTION_JSON,
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_PROMPT:
        a->prompt = text;
        return 0;
    case KEY_MAX_TOKENS:
        a->max_tokens = wg__cli_integer(state, "max-tokens", text, 1, INT32_MAX);
        return 0;
    case KEY_TEMPERATURE:
        a->sampling.temperature = wg__cli_number(state, "temperature", text, 0, 1000);
        return 0;
    case KEY_TOP_K:
        a->sampling.top_k = wg__cli_integer(state, "top-k", text, 0, INT32_MAX);
        return 0;
    case KEY_TOP_P:
        a->sampling.top_p = wg__cli_number(state, "top-p", text, 0, 1);
        return 0;
    case KEY_MIN_P:
        a->sampling.min_p = wg__cli_number(state, "min-p", text, 0, 1);
        return 0;
    case KEY_REPETITION_PENALTY:
        a->sampling.repetition_penalty =
            wg__cli_number(state, "repetition-penalty", text, 0.001, 1000);
        return 0;
    case KEY_SEED:
        a->seed = (uint64_t)wg__cli_integer(state, "seed", text, 0, INT64_MAX);
        return 0;
    case KEY_THREADS:
        a->threads = (int)wg__cli_integer(state, "threads", text, 1, 4096);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->run)
            argp_error(state, "one RUN.h5 at a time; a prompt follows --prompt");
        a->run = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->run)
            argp_error(state, "RUN.h5 is missing: which model?");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Being stopped ---- */

static volatile sig_atomic_t stop_signal;

static void handle_stop(int signal) {
    stop_signal = signal;
}

static void listen_for_stop(void) {
    struct sigaction action = {.sa_handler = handle_stop, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- The text ---- */

typedef struct writer {
    wg_language_model model;
    wg_tokenizer *tokenizer;
    wg_decode_stream *stream;
    wg_generation text;
    FILE *out; /* stdout, or what becomes a text of the JSON object */
} writer;

/* The prompt begins with the token of a text's begin, where that is not also its end (GPT-2's
 * prompts have none in front); without a prompt this token is all. */
static int encode_prompt(writer *w, const char *prompt) {
    const int32_t begin = wg_tokenizer_special(w->tokenizer, WG_TOKEN_BEGIN);
    const int32_t end = wg_tokenizer_special(w->tokenizer, WG_TOKEN_END);
    wg_token_list *list = &w->text.tokens;
    if (!prompt && begin < 0)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "this model's tokenizer has no token that begins a text; give a --prompt");
    if (begin >= 0 && (!prompt || begin != end) && wg_token_list_append(list, begin) < 0)
        return -1;
    const int64_t before = list->count;
    if (prompt && wg_tokenizer_encode(w->tokenizer, prompt, -1, NULL, list) < 0)
        return -1;
    if (prompt && list->count == before)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt is empty; leave out --prompt to begin a text");
    return 0;
}

/* What comes is decoded as what follows the prompt. */
static int open_stream(writer *w) {
    w->stream = wg_decode_stream_new(w->tokenizer, &(wg_decode_options){.skip_special = true});
    for (int64_t i = 0; w->stream && i < w->text.tokens.count; i++)
        if (!wg_decode_stream_next(w->stream, w->text.tokens.ids[i], NULL))
            return -1;
    return w->stream ? 0 : -1;
}

static void write_piece(writer *w, const char *piece, int64_t length) {
    if (piece)
        fwrite(piece, 1, (size_t)length, w->out);
    fflush(w->out);
}

static void write_token(const wg_generated_token *token, void *context) {
    writer *w = context;
    int64_t length = 0;
    const char *piece = wg_decode_stream_next(w->stream, token->id, &length);
    write_piece(w, piece, length);
}

/* Generates into w->out. */
static int write_text(writer *w, const arguments *a) {
    const int32_t specials[] = {wg_tokenizer_special(w->tokenizer, WG_TOKEN_BEGIN),
                                wg_tokenizer_special(w->tokenizer, WG_TOKEN_END)};
    const int64_t known = wg_tokenizer_size(w->tokenizer);
    const wg_generation_options how = {
        .sampling = a->sampling,
        .max_tokens = a->max_tokens,
        .vocabulary = known < w->model.vocab_size ? known : 0,
        .stop_ids = specials,
        .stop_count = 2,
        .listener = write_token,
        .listener_context = w,
        .stop = &stop_signal,
    };
    if (wg_generate(&w->model, 1, &w->text, &how) < 0 || wg_error_pending())
        return -1;
    int64_t length = 0;
    const char *rest = wg_decode_stream_end(w->stream, &length);
    write_piece(w, rest, length);
    return rest ? 0 : -1;
}

/* ---- Telling it ---- */

static const char *end_name(wg_generation_end end) {
    static const char *const names[] = {"stop", "length", "positions", "cancelled"};
    return names[end];
}

static int stream_text(writer *w, const arguments *a) {
    w->out = stdout;
    if (a->prompt)
        fputs(a->prompt, stdout);
    fflush(stdout);
    int result = write_text(w, a);
    putchar('\n');
    if (result == 0 && w->text.end == WG_END_POSITIONS)
        wg__cli_note("the text is as long as the model's %lld positions",
                     (long long)w->model.max_positions);
    return result;
}

static int tell_json(writer *w, const arguments *a) {
    char *text = NULL;
    size_t size;
    w->out = open_memstream(&text, &size);
    if (!w->out)
        return wg_fail(WG_ERROR_MEMORY, "generate", "no memory for the text");
    const int64_t prompt_tokens = w->text.tokens.count;
    int result = write_text(w, a);
    fclose(w->out);
    if (result == 0)
        wg__print_json(json_pack("{s:s, s:o, s:I, s:I, s:s}", "prompt", a->prompt ? a->prompt : "",
                                 "text", json_stringn(text, size), "prompt_tokens",
                                 (json_int_t)prompt_tokens, "tokens", (json_int_t)w->text.generated,
                                 "end", end_name(w->text.end)));
    free(text);
    return result;
}

/* A prompt that cannot be continued is known before anything is written. */
static int check_length(const writer *w) {
    if (w->text.tokens.count < w->model.max_positions)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, "generate",
                   "the prompt has %lld tokens, and the model has %lld positions for prompt and "
                   "answer; shorten it",
                   (long long)w->text.tokens.count, (long long)w->model.max_positions);
}

static int generate(writer *w, const arguments *a) {
    w->text.generator = (wg_generator){.seed = a->seed};
    if (encode_prompt(w, a->prompt) < 0 || check_length(w) < 0 || open_stream(w) < 0)
        return -1;
    listen_for_stop();
    return a->json ? tell_json(w, a) : stream_text(w, a);
}

int wg__verb_generate(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --prompt TEXT",
        .doc = "Continues a text by a GPT or LLaMA, token by token.\v"
               "The prompt and what follows are written as they come. The text ends where the "
               "model ends it, after so many tokens, or when the model has no more positions; "
               "Ctrl-C ends it, too.",
    };
    arguments a = {.max_tokens = 200, .sampling.temperature = 1};
    wg__cli_parse(&parser, argc, argv, &a);
    if (a.threads)
        wg_set_threads(a.threads);
    writer w = {0};
    if (wg_language_model_load(a.run, &w.model, &w.tokenizer) < 0)
        return wg__cli_fail_pending();
    int result = generate(&w, &a);
    wg_decode_stream_free(w.stream);
    wg_token_list_free(&w.text.tokens);
    wg_tokenizer_free(w.tokenizer);
    wg_language_model_free(&w.model);
    if (result < 0)
        return wg__cli_fail_pending();
    return stop_signal ? 128 + stop_signal : 0;
}
