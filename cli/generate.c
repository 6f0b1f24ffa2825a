/* wengert generate: a text is continued, shown as it comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/generating.h"
#include "cli/results.h"
#include "cli/stopping.h"

static const wg__continuer *const continuers[] = {&wg__gpt_continuer, &wg__llama_continuer,
                                                  &wg__glm_continuer, NULL};

enum { KEY_PROMPT = WG__KEY_OWN, KEY_DTYPE, KEY_THREADS };

enum { USUAL_MAX_TOKENS = 200 };

typedef struct arguments {
    const char *run;
    const char *prompt; /* NULL: none */
    wg__drawing drawing;
    int quantization; /* of the weights; -1: none */
    int threads;      /* 0: as the library finds it */
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"prompt", KEY_PROMPT, "TEXT", 0, "Continue this text (default: begin one)", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "Keep the weights as bf16, q8_0 or q4_0 (8 and 4 bits, as GGUF has them), which writes faster "
     "and rounds them (f32)",
     0},
    {"threads", KEY_THREADS, "N", 0, "Use N threads (all processors)", 0},
    WG__OPTION_JSON,
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->drawing;
        return 0;
    case KEY_PROMPT:
        a->prompt = text;
        return 0;
    case KEY_DTYPE:
        a->quantization = wg__cli_quantization(state, text);
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

/* ---- The text ---- */

typedef struct writer {
    const wg__continuer *continuer;
    wg__continuing continuing;
    wg_decode_stream *stream;
    FILE *out; /* stdout, or what becomes a text of the JSON object */
} writer;

static int read_prompt(writer *w, const char *prompt) {
    wg_token_list of_none = {0};
    if (prompt && wg_tokenizer_encode(w->continuing.tokenizer, prompt, -1, NULL, &of_none) < 0)
        return -1;
    const bool empty = prompt && of_none.count == 0;
    wg_token_list_free(&of_none);
    if (empty)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt is empty; leave out --prompt to begin a text");
    return w->continuer->read_prompt(&w->continuing, prompt);
}

/* What comes is decoded as what follows the prompt. */
static int open_stream(writer *w) {
    const wg__continuing *c = &w->continuing;
    w->stream = wg_decode_stream_new(c->tokenizer, &(wg_decode_options){.skip_special = true});
    for (int64_t i = 0; w->stream && i < c->text.tokens.count; i++)
        if (c->text.tokens.ids[i] < wg_tokenizer_size(c->tokenizer) &&
            !wg_decode_stream_next(w->stream, c->text.tokens.ids[i], NULL))
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
    w->continuing.listener = write_token;
    w->continuing.listener_context = w;
    if (w->continuer->write_text(&w->continuing, &a->drawing) < 0 || wg_error_pending())
        return -1;
    int64_t length = 0;
    const char *rest = wg_decode_stream_end(w->stream, &length);
    write_piece(w, rest, length);
    return rest ? 0 : -1;
}

/* ---- Telling it ---- */

static int stream_text(writer *w, const arguments *a) {
    w->out = stdout;
    if (a->prompt)
        fputs(a->prompt, stdout);
    fflush(stdout);
    int result = write_text(w, a);
    putchar('\n');
    if (result == 0 && w->continuing.text.end == WG_END_POSITIONS)
        wg__cli_note("the text is as long as the model's %lld positions",
                     (long long)w->continuing.max_positions);
    return result;
}

static int tell_json(writer *w, const arguments *a) {
    char *text = NULL;
    size_t size;
    w->out = open_memstream(&text, &size);
    if (!w->out)
        return wg_fail(WG_ERROR_MEMORY, "generate", "no memory for the text");
    const wg_generation *g = &w->continuing.text;
    const int64_t prompt_tokens = g->tokens.count;
    int result = write_text(w, a);
    fclose(w->out);
    if (result == 0)
        wg__print_json(json_pack("{s:s, s:o, s:I, s:I, s:s}", "prompt", a->prompt ? a->prompt : "",
                                 "text", json_stringn(text, size), "prompt_tokens",
                                 (json_int_t)prompt_tokens, "tokens", (json_int_t)g->generated,
                                 "end", wg__generation_end_name(g->end)));
    free(text);
    return result;
}

/* A prompt that cannot be continued, or not so far, is known before anything is written. */
static int check_length(const wg__continuing *c, int64_t max_tokens) {
    if (c->text.tokens.count > c->most_read)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt has %lld tokens, and the model has %lld positions for prompt "
                       "and answer; shorten it",
                       (long long)c->text.tokens.count, (long long)c->max_positions);
    if (max_tokens > c->most_written)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "--max-tokens %lld: the model has %lld positions, enough for %lld tokens "
                       "after this prompt",
                       (long long)max_tokens, (long long)c->max_positions,
                       (long long)c->most_written);
    return 0;
}

static int generate(writer *w, arguments *a) {
    if (w->continuer->begin(&w->continuing, a->run) < 0 || read_prompt(w, a->prompt) < 0 ||
        check_length(&w->continuing, a->drawing.max_tokens) < 0 || open_stream(w) < 0)
        return -1;
    if (a->drawing.max_tokens == 0)
        a->drawing.max_tokens = USUAL_MAX_TOKENS;
    if (a->quantization >= 0 &&
        wg_module_quantize(w->continuing.module, (wg_quantization)a->quantization) < 0)
        return -1;
    wg__listen_for_stop();
    return a->json ? tell_json(w, a) : stream_text(w, a);
}

static const wg__continuer *find_continuer(const char *run) {
    const wg__model_kind *kind = wg__model_kind_of(run);
    for (const wg__continuer *const *c = continuers; kind && *c; c++)
        if ((*c)->kind == kind)
            return *c;
    if (kind)
        wg__model_kind_refuse(run, kind, "generate", "gpt, llama and glm");
    return NULL;
}

int wg__verb_generate(int argc, char **argv) {
    static const struct argp_child children[] = {{&wg__sampling_options, 0, "Drawing:", 1}, {0}};
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "RUN.h5 --prompt TEXT",
        .doc = "Continues a text by a GPT, LLaMA or GLM, token by token.\v"
               "The prompt and what follows are written as they come. The text ends where the "
               "model ends it, after so many tokens, or when the model has no more positions, "
               "which is told; more --max-tokens than there are positions are refused. Ctrl-C ends "
               "it, too. A GLM reads the prompt in both directions, and writes into a "
               "[gMASK] behind it.",
        .children = children,
    };
    arguments a = {.quantization = -1, .drawing.sampling.temperature = 1};
    wg__cli_parse(&parser, argc, argv, &a);
    if (a.threads)
        wg_set_threads(a.threads);
    writer w = {.continuer = find_continuer(a.run)};
    if (!w.continuer)
        return wg__cli_fail_pending();
    int result = generate(&w, &a);
    wg_decode_stream_free(w.stream);
    w.continuer->end(&w.continuing);
    if (result < 0)
        return wg__cli_fail_pending();
    return *wg__stop_signal() ? 128 + *wg__stop_signal() : 0;
}
