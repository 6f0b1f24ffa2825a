/* wengert generate: a text is continued, shown as it comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/decoding.h"
#include "cli/output.h"
#include "cli/trained.h"

typedef struct arguments {
    const char *run;
    const char *prompt; /* NULL: none */
    wg__drawing drawing;
    int dtype; /* of the weights; 0: f32 */
    bool json;
} arguments;

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, offsetof(arguments, run), .word = true,
     .missing = "RUN.h5 is missing: which model?", .argument = "RUN.h5"},
    {"prompt", WG_SETTING_TEXT, offsetof(arguments, prompt), .argument = "TEXT",
     .help = "Continue this text (default: begin one)"},
    {"dtype", WG_SETTING_CHOICE, offsetof(arguments, dtype), .choice = wg__weights_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE",
     .help =
         "Keep the weights as bf16, q8_0 or q4_0 (8 and 4 bits, as GGUF has them), which writes "
         "faster and rounds them"},
    WG__ROW_JSON(arguments),
};

/* ---- The text ---- */

typedef struct writer {
    wg__trained trained;
    wg_generation text; /* what the model reads, and at last its continuation, too */
    wg_prompt_room room;
    wg_decode_stream *stream;
    int64_t prompt_tokens;
    FILE *out;     /* stdout, or a stream into `written` */
    char *written; /* for the JSON object: the continuation, of `size` bytes */
    size_t size;
} writer;

static bool can_generate(const wg_objective *objective) {
    return objective->use.generate;
}

static int read_prompt(writer *w, const char *prompt) {
    const wg__trained *t = &w->trained;
    wg_token_list list = {0};
    if (prompt && wg_tokenizer_encode(t->tokenizer, prompt, -1, NULL, &list) < 0)
        return -1;
    const bool empty = prompt && list.count == 0;
    wg_token_list_free(&list);
    if (empty)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt is empty; leave out --prompt to begin a text");
    return t->objective->use.prompt(&t->model, t->tokenizer, prompt, &w->text, &w->room);
}

/* A prompt that is too long, or leaves too little room, is refused before anything is written. */
static int check_length(const writer *w, int64_t max_tokens) {
    const wg_prompt_room *room = &w->room;
    if (w->text.tokens.count > room->most_read)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt has %lld tokens, and the model has %lld positions for prompt "
                       "and answer; shorten it",
                       (long long)w->text.tokens.count, (long long)room->positions);
    if (max_tokens > room->most_written)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "--max-tokens %lld: the model has %lld positions, enough for %lld tokens "
                       "after this prompt",
                       (long long)max_tokens, (long long)room->positions,
                       (long long)room->most_written);
    return 0;
}

/* The prompt goes through the stream first, so that its continuation is decoded as such. */
static int open_stream(writer *w) {
    const wg_tokenizer *tokenizer = w->trained.tokenizer;
    w->stream = wg_decode_stream_new(tokenizer, &(wg_decode_options){.skip_special = true});
    for (int64_t i = 0; w->stream && i < w->text.tokens.count; i++)
        if (w->text.tokens.ids[i] < wg_tokenizer_size(tokenizer) &&
            !wg_decode_stream_next(w->stream, w->text.tokens.ids[i], NULL))
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

/* Writes the prompt, or opens a stream that keeps the continuation for the JSON object. */
static int begin_output(writer *w, const arguments *a) {
    w->out = a->json ? open_memstream(&w->written, &w->size) : stdout;
    if (!w->out)
        return wg_fail(WG_ERROR_MEMORY, "generate", "no memory for the text");
    if (!a->json && a->prompt)
        fputs(a->prompt, stdout);
    fflush(stdout);
    return 0;
}

static int prepare(writer *w, arguments *a) {
    const wg_objective *objective = wg__trained_objective(a->run, "generate", can_generate);
    if (!objective || wg__drawing_take(&a->drawing, a->run) < 0 ||
        wg__trained_load(&w->trained, objective, a->run) < 0 || read_prompt(w, a->prompt) < 0 ||
        check_length(w, a->drawing.max_tokens) < 0 || open_stream(w) < 0)
        return -1;
    if (wg__trained_quantize(&w->trained.model, a->dtype) < 0)
        return -1;
    w->prompt_tokens = w->text.tokens.count;
    wg__listen_for_stop();
    return begin_output(w, a);
}

static wg_use_options use_options(writer *w, const wg__drawing *drawing) {
    enum { USUAL_MAX_TOKENS = 200 };
    const int64_t usual = drawing->usual_tokens > 0 ? drawing->usual_tokens : USUAL_MAX_TOKENS;
    return (wg_use_options){
        .draws = wg__drawing_given(drawing) || drawing->published,
        .generator = drawing->generator,
        .generation = {.sampling = drawing->sampling,
                       .max_tokens = drawing->max_tokens ? drawing->max_tokens : usual,
                       .listener = write_token,
                       .listener_context = w,
                       .stop = wg__stop_signal()}};
}

/* Writes the bytes that the stream still holds back. */
static int write_rest(writer *w) {
    int64_t length = 0;
    const char *rest = wg_decode_stream_end(w->stream, &length);
    write_piece(w, rest, length);
    return rest ? 0 : -1;
}

static void print_json(const writer *w, const char *prompt) {
    wg__print_json(json_pack("{s:s, s:o, s:I, s:I, s:s}", "prompt", prompt ? prompt : "", "text",
                             json_stringn(w->written, w->size), "prompt_tokens",
                             (json_int_t)w->prompt_tokens, "tokens", (json_int_t)w->text.generated,
                             "end", wg__generation_end_name(w->text.end)));
}

/* Ends the line, or prints the JSON object, after the rest of a text that did not fail. */
static int end_output(writer *w, const arguments *a, int status) {
    if (status == 0)
        status = write_rest(w);
    if (!a->json) {
        putchar('\n');
        if (status == 0 && w->text.end == WG_END_POSITIONS)
            wg__cli_note("the text is as long as the model's %lld positions",
                         (long long)w->room.positions);
        return status;
    }
    fclose(w->out);
    if (status == 0)
        print_json(w, a->prompt);
    free(w->written);
    return status;
}

/* ---- The verb ---- */

int wg__verb_generate(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 --prompt TEXT",
        .doc = "Continues a text by a model of causal-lm or blank-infilling, token by token.\v"
               "The prompt and its continuation are written as they come. The text ends where the "
               "model ends it, after --max-tokens tokens, or, with a note, when the model has no "
               "more positions; more --max-tokens than there are positions are refused. Ctrl-C "
               "ends it, too. Of a published model that was converted, its "
               "generation_config.json says how tokens are drawn where no option does. A model of "
               "blank-infilling reads the prompt in both directions, and "
               "writes into a [gMASK] behind it.",
        .parts = {WG__PART(options, a), {&wg__sampling_options, &a.drawing}, WG__PART_THREADS},
    };
    wg__cli_read(&usage, argc, argv);
    if (!wg__cli_given(&a.drawing.sampling.temperature))
        a.drawing.sampling.temperature = 1;
    writer w = {0};
    int status = prepare(&w, &a);
    if (status == 0) {
        const wg__trained *t = &w.trained;
        const wg_use_options how = use_options(&w, &a.drawing);
        status = t->objective->use.generate(&t->model, t->tokenizer, &how, &w.text);
        status = end_output(&w, &a, status < 0 || wg_error_pending() ? -1 : 0);
    }
    wg_decode_stream_free(w.stream);
    wg_token_list_free(&w.text.tokens);
    wg__trained_clear(&w.trained);
    if (status < 0)
        return wg__cli_fail_pending();
    return *wg__stop_signal() ? 128 + *wg__stop_signal() : 0;
}
