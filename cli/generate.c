/* wengert generate: continues a text, and prints each token as soon as it is sampled. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/decoding.h"
#include "cli/output.h"

typedef struct arguments {
    const char *run;
    const char *prompt; /* NULL: none */
    wg__drawing drawing;
    int dtype; /* of the weights; 0: f32 */
    bool json;
} arguments;

static const wg_setting options[] = {
    {"run", WG_SETTING_TEXT, WG__AT(run), .word = true,
     .missing = "RUN.h5 is missing: which model?", .argument = "RUN.h5"},
    {"prompt", WG_SETTING_TEXT, WG__AT(prompt), .argument = "TEXT",
     .help = "Continue this text (default: begin one)"},
    {"dtype", WG_SETTING_CHOICE, WG__AT(dtype), .choice = wg__weights_dtype_name,
     .standard = "\"f32\"", .argument = "TYPE",
     .help = "Keep the weights as bf16, q8_0 or q4_0 (8 and 4 bits, as GGUF has them), which "
             "writes faster and rounds them"},
    WG__ROW_JSON(arguments),
};

typedef struct writer {
    wg__trained trained;
    wg_generation text; /* the prompt, and in the end its continuation, too */
    wg_prompt_room room;
    wg_decode_stream *stream;
    int64_t prompt_tokens;
    FILE *out;     /* stdout, or a stream into `written` */
    char *written; /* for the JSON object: the continuation, of `size` bytes */
    size_t size;
} writer;

static void write_token(const wg_generated_token *token, void *context) {
    writer *w = context;
    int64_t length = 0;
    const char *piece = wg_decode_stream_next(w->stream, token->id, &length);
    if (piece)
        fwrite(piece, 1, (size_t)length, w->out);
    fflush(w->out);
}

/* Model and prompt. A prompt that does not fit is refused before anything is written. The stream
 * decodes the prompt first, so that the tokens after it are decoded as its continuation. */
static int prepare(writer *w, arguments *a) {
    wg__trained *t = &w->trained;
    const wg_prompt_room *room = &w->room;
    const wg_objective *objective = wg__trained_objective(a->run, WG__USE_GENERATE);
    wg_token_list list = {0};
    if (!objective || wg__drawing_read_published(&a->drawing, a->run) < 0 ||
        wg__trained_load(t, objective, a->run) < 0 ||
        (a->prompt && wg_tokenizer_encode(t->tokenizer, a->prompt, -1, NULL, &list) < 0))
        return -1;
    const bool empty = a->prompt && list.count == 0;
    wg_token_list_free(&list);
    if (empty)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt is empty; leave out --prompt to begin a text");
    if (objective->use.prompt(&t->model, t->tokenizer, a->prompt, &w->text, &w->room) < 0)
        return -1;
    const wg_token_list *tokens = &w->text.tokens;
    w->prompt_tokens = tokens->count;
    if (tokens->count > room->most_read)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "the prompt has %lld tokens, and the model has %lld positions for prompt "
                       "and answer; shorten it",
                       (long long)tokens->count, (long long)room->positions);
    if (a->drawing.max_tokens > room->most_written)
        return wg_fail(WG_ERROR_ARGUMENT, "generate",
                       "--max-tokens %lld: the model has %lld positions, enough for %lld tokens "
                       "after this prompt",
                       (long long)a->drawing.max_tokens, (long long)room->positions,
                       (long long)room->most_written);
    w->stream = wg_decode_stream_new(t->tokenizer, &(wg_decode_options){.skip_special = true});
    for (int64_t i = 0; w->stream && i < tokens->count; i++)
        if (tokens->ids[i] < wg_tokenizer_size(t->tokenizer) &&
            !wg_decode_stream_next(w->stream, tokens->ids[i], NULL))
            return -1;
    if (!w->stream || wg__trained_quantize(&t->model, a->dtype) < 0)
        return -1;
    wg__listen_for_stop();
    w->out = a->json ? open_memstream(&w->written, &w->size) : stdout;
    if (!w->out)
        return wg_fail(WG_ERROR_MEMORY, "generate", "no memory for the text");
    if (!a->json && a->prompt)
        fputs(a->prompt, stdout);
    fflush(stdout);
    return 0;
}

/* Ends the line, or prints the JSON object, after the bytes that the stream still holds back of a
 * text that did not fail. */
static int end_output(writer *w, const arguments *a, int status) {
    if (status == 0) {
        int64_t length = 0;
        const char *rest = wg_decode_stream_end(w->stream, &length);
        if (rest)
            fwrite(rest, 1, (size_t)length, w->out);
        fflush(w->out);
        status = rest ? 0 : -1;
    }
    if (!a->json) {
        putchar('\n');
        if (status == 0 && w->text.end == WG_END_POSITIONS)
            wg__cli_note("the text is as long as the model's %lld positions",
                         (long long)w->room.positions);
        return status;
    }
    fclose(w->out);
    if (status == 0)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:s, s:o, s:I, s:I, s:s}", "prompt", a->prompt ? a->prompt : "",
                                 "text", json_stringn(w->written, w->size), "prompt_tokens",
                                 (json_int_t)w->prompt_tokens, "tokens",
                                 (json_int_t)w->text.generated, "end",
                                 wg__generation_ends[w->text.end]));
    free(w->written);
    return status;
}

int wg__verb_generate(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "RUN.h5 --prompt TEXT",
        .doc = "Continues a text by a model of causal-lm or blank-infilling, token by token.\v"
               "The prompt and its continuation are written as they come. The text ends where the "
               "model ends it, after --max-tokens tokens, or, with a note, when the model has no "
               "more positions; more --max-tokens than there are positions are refused. Ctrl-C "
               "ends it, too. Of a published model that was converted, its generation_config.json "
               "says how tokens are drawn where no option does. A model of blank-infilling reads "
               "the prompt in both directions, and writes into a [gMASK] behind it.",
        .parts = {WG__PART(options, a), {&wg__sampling_options, &a.drawing}, WG__PART_THREADS},
    };
    wg__cli_read(&usage, argc, argv);
    if (!wg__cli_given(&a.drawing.sampling.temperature))
        a.drawing.sampling.temperature = 1;
    writer w = {0};
    int status = prepare(&w, &a);
    if (status == 0) {
        const wg__trained *t = &w.trained;
        const wg__drawing *d = &a.drawing;
        const int64_t usual = d->usual_tokens > 0 ? d->usual_tokens : 200;
        const wg_use_options how = {
            .draws = wg__drawing_given(d) || d->published,
            .generator = d->generator,
            .generation = {.sampling = d->sampling,
                           .max_tokens = d->max_tokens ? d->max_tokens : usual,
                           .listener = write_token,
                           .listener_context = &w,
                           .stop = &wg__stop_signal}};
        status = t->objective->use.generate(&t->model, t->tokenizer, &how, &w.text);
        status = end_output(&w, &a, status < 0 || wg_error_pending() ? -1 : 0);
    }
    wg_decode_stream_free(w.stream);
    wg_token_list_free(&w.text.tokens);
    wg__trained_clear(&w.trained);
    return wg__cli_end(status);
}
