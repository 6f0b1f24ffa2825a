/* wengert convert: a model from one published format into another. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "cli/output.h"
#include "cli/units.h"
#include "formats/convert.h"

enum {
    KEY_TOKENIZER = WG__KEY_OWN,
    KEY_CONFIG,
    KEY_PREFIX,
    KEY_ADAPTER,
    KEY_ADAPTER_ONLY,
    KEY_DTYPE,
    KEY_VERSION_1,
    KEY_SHARD_SIZE
};

typedef struct arguments {
    const char *in, *out;
    wg_convert_options options;
    bool json;
} arguments;

static const struct argp_option options[] = {
    {"tokenizer", KEY_TOKENIZER, "FILE", 0,
     "The tokenizer, a file or a folder of any format, instead of the tokenizer of IN", 0},
    {"config", KEY_CONFIG, "FILE", 0,
     "The configuration, a published config.json, instead of the one in IN or beside it", 0},
    {"prefix", KEY_PREFIX, "TEXT", 0,
     "Take the tensors whose names begin with TEXT, such as \"ema.\" in the checkpoint of a "
     "trainer "
     "that holds several models",
     0},
    {"adapter", KEY_ADAPTER, "FOLDER", 0,
     "Add a LoRA adapter, as the PEFT library or --adapter-only writes it, to the weights", 0},
    {"adapter-only", KEY_ADAPTER_ONLY, NULL, 0,
     "Write the adapter of IN, a run with --lora, alone: the folder OUT, which PEFT reads", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "The type of the weights: f32, bf16, f16 (safetensors, GGUF) or q8_0 (GGUF); default: "
     "unchanged, "
     "but f32 for f16",
     0},
    {"v1", KEY_VERSION_1, NULL, 0, "Write version 1 of llama2.c's format instead of version 0", 0},
    {"shard-size", KEY_SHARD_SIZE, "SIZE", 0,
     "Split safetensors into files of at most SIZE (5GB, 200MB, 1GiB, or bytes) of tensors: "
     "model-00001-of-0000N.safetensors and model.safetensors.index.json",
     0},
    WG__OPTION_JSON,
    {0}};

static wg_weights_type type_of(const struct argp_state *state, const char *text) {
    static const char *const names[] = {"keep", "f32", "f16", "bf16", "q8_0"};
    for (int i = WG_WEIGHTS_F32; i <= WG_WEIGHTS_Q8_0; i++)
        if (strcmp(text, names[i]) == 0)
            return (wg_weights_type)i;
    argp_error(state, "--dtype is '%s'; it must be f32, bf16, f16 or q8_0", text);
    return WG_WEIGHTS_KEEP;
}

/* A size in bytes, as Hugging Face writes it: GB are 10^9, GiB 2^30. */
static int64_t size_of(const struct argp_state *state, const char *text) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},        {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    char *unit;
    const double number = isdigit((unsigned char)*text) ? strtod(text, &unit) : 0;
    for (size_t i = 0; number > 0 && i < sizeof units / sizeof units[0]; i++) {
        const double bytes = number * units[i].bytes;
        if (strcasecmp(unit, units[i].unit) == 0 && bytes >= 1 && bytes < 0x1p62)
            return (int64_t)bytes;
    }
    argp_error(state, "--shard-size is '%s'; it must be a size such as 5GB, 200MB or 1GiB", text);
    return 0;
}

static error_t parse(int key, char *text, struct argp_state *state) {
    arguments *a = state->input;
    switch (key) {
    case KEY_TOKENIZER:
        a->options.tokenizer = text;
        return 0;
    case KEY_CONFIG:
        a->options.config = text;
        return 0;
    case KEY_PREFIX:
        a->options.prefix = text;
        return 0;
    case KEY_ADAPTER:
        a->options.adapter = text;
        return 0;
    case KEY_ADAPTER_ONLY:
        a->options.adapter_only = true;
        return 0;
    case KEY_DTYPE:
        a->options.type = type_of(state, text);
        return 0;
    case KEY_VERSION_1:
        a->options.version = 1;
        return 0;
    case KEY_SHARD_SIZE:
        a->options.shard_bytes = size_of(state, text);
        return 0;
    case WG__KEY_JSON:
        a->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (a->out)
            argp_error(state, "more than IN and OUT");
        *(a->in ? &a->out : &a->in) = text;
        return 0;
    case ARGP_KEY_END:
        if (!a->out)
            argp_error(state, a->in ? "missing OUT" : "missing IN and OUT");
        if (a->options.adapter && a->options.adapter_only)
            argp_error(state, "--adapter and --adapter-only exclude each other");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_note(const char *message, void *context) {
    (void)context;
    wg__cli_note("%s", message);
}

static void print_summary(const arguments *a, const wg_convert_summary *s) {
    if (a->json)
        wg__print_json(json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b}", "out", a->out, "model",
                                 s->type, "from", s->from, "to", s->to, "tensors",
                                 (json_int_t)s->tensors, "numbers", (json_int_t)s->numbers,
                                 "tokenizer", s->tokenizer));
    else
        printf("%s: %s of %s parameters in %lld tensors, %s to %s%s\n", a->out, s->type,
               wg__count((double)s->numbers).text, (long long)s->tensors, s->from, s->to,
               s->tokenizer ? ", with its tokenizer" : "");
}

int wg__verb_convert(int argc, char **argv) {
    static const struct argp parser = {
        .options = options,
        .parser = parse,
        .args_doc = "IN OUT",
        .doc =
            "Converts a model (bert, modernbert, roberta, gpt2, llama, t5, glm or transformer) "
            "from one "
            "published "
            "format into another, tensor by tensor, in about the memory of the largest tensor.\v"
            "The input format is detected from the file's content: wengert's HDF5, safetensors "
            "(or the index.json of several), the zip of torch.save, llama2.c's .bin, GGUF, or the "
            "folder of a published model. No code in a file is ever run. Of a trainer's "
            "checkpoint, "
            "{\"model\": ..., \"optimizer\": ...}, the model is taken, and the names of wrappers "
            "are "
            "taken off (model., module., _orig_mod.); a note says which.\n\n"
            "The output format is detected from the suffix: .h5, .safetensors, .gguf, .bin "
            "(llama2.c's); without a suffix OUT is a folder: config.json, model.safetensors and "
            "the tokenizer's files.\n\n"
            "Of a run with --lora the adapter is added to the weights, unless --adapter-only "
            "writes it alone.",
    };
    arguments a = {.options.note = print_note};
    wg__cli_parse(&parser, argc, argv, &a);
    const char *const inputs[] = {a.in, a.options.tokenizer, a.options.config, a.options.adapter};
    if (wg__cli_check_apart(a.out, 4, inputs) != 0)
        return EXIT_FAILURE;
    wg_convert_summary summary;
    if (wg_convert(a.in, a.out, &a.options, &summary) < 0)
        return wg__cli_fail_pending();
    print_summary(&a, &summary);
    return 0;
}
