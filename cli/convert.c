/* wengert convert: a model from one published format into another. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/options.h"
#include "cli/output.h"
#include "formats/convert.h"

typedef struct arguments {
    const char *in, *out;
    wg_convert_options options;
    int type; /* index of type_name; WG_WEIGHTS_F32 is 0 */
    bool v1, json;
} arguments;

static const char *type_name(int index) {
    static const char *const names[] = {"f32", "f16", "bf16", "q8_0", NULL};
    return names[index];
}

static const wg_setting options[] = {
    {"in", WG_SETTING_TEXT, WG__AT(in), .word = true, .missing = "missing IN and OUT",
     .argument = "FILE"},
    {"out", WG_SETTING_TEXT, WG__AT(out), .word = true, .missing = "missing OUT",
     .argument = "FILE"},
    {"tokenizer", WG_SETTING_TEXT, WG__AT(options.tokenizer), .argument = "FILE",
     .help = "The tokenizer, a file or a folder of any format, instead of the tokenizer of IN"},
    {"config", WG_SETTING_TEXT, WG__AT(options.config), .argument = "FILE",
     .help = "The configuration, a published config.json, instead of the one in IN or beside it"},
    {"prefix", WG_SETTING_TEXT, WG__AT(options.prefix), .argument = "TEXT",
     .help = "Take the tensors whose names begin with TEXT, for example \"ema.\" if a trainer's "
             "checkpoint holds several models"},
    {"adapter", WG_SETTING_TEXT, WG__AT(options.adapter), .excludes = "adapter-only",
     .argument = "FOLDER",
     .help = "Add a LoRA adapter, as the PEFT library or --adapter-only writes it, to the weights"},
    {"adapter-only", WG_SETTING_FLAG, WG__AT(options.adapter_only), .excludes = "adapter",
     .help = "Write the adapter of IN, a run with --lora, alone: the folder OUT, which PEFT reads"},
    {"dtype", WG_SETTING_CHOICE, WG__AT(type), .choice = type_name, .argument = "TYPE",
     .help = "The type of the weights: f32, bf16, f16 (safetensors, GGUF) or q8_0 (GGUF); default: "
             "unchanged, but f32 for f16"},
    {"v1", WG_SETTING_FLAG, WG__AT(v1),
     .help = "Write version 1 of llama2.c's format instead of version 0"},
    {"shard-size", WG_SETTING_BYTES, WG__AT(options.shard_bytes), .argument = "SIZE",
     .help = "Split safetensors into files of at most SIZE (5GB, 200MB, 1GiB, or bytes) of "
             "tensors: model-00001-of-0000N.safetensors and model.safetensors.index.json"},
    WG__ROW_JSON(arguments),
};

int wg__verb_convert(int argc, char **argv) {
    static arguments a;
    const wg__usage usage = {
        .lines = "IN OUT",
        .doc =
            "Converts a model (bert, modernbert, roberta, gpt2, llama, t5, glm or transformer) "
            "from one published format into another, tensor by tensor, in about the memory of the "
            "largest tensor.\v"
            "The input format is detected from the file's content: wengert's HDF5, safetensors (or "
            "the index.json of several), the zip of torch.save, llama2.c's .bin, GGUF, or the "
            "folder of a published model. No code in a file is ever run. Of a trainer's "
            "checkpoint, {\"model\": ..., \"optimizer\": ...}, the model is taken, and the names "
            "of wrappers are taken off (model., module., _orig_mod.); a note says which.\n\n"
            "The output format is detected from the suffix: .h5, .safetensors, .gguf, .bin "
            "(llama2.c's); without a suffix OUT is a folder: config.json, model.safetensors and "
            "the tokenizer's files.\n\n"
            "Of a run with --lora the adapter is added to the weights, unless --adapter-only "
            "writes it alone.",
        .parts = {WG__PART(options, a)},
    };
    wg__cli_read(&usage, argc, argv);
    a.options.note = wg__note_model;
    if (wg__cli_given(&a.type))
        a.options.type = (wg_weights_type)(a.type + WG_WEIGHTS_F32);
    a.options.version = a.v1;
    const char *const inputs[] = {a.in, a.options.tokenizer, a.options.config, a.options.adapter};
    if (wg__cli_check_distinct(a.out, 4, inputs) != 0)
        return EXIT_FAILURE;
    wg_convert_summary summary;
    if (wg_convert(a.in, a.out, &a.options, &summary) < 0)
        return wg__cli_fail_pending();
    if (a.json)
        wg__print_json(JSON_INDENT(2),
                       json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:b}", "out", a.out, "model",
                                 summary.type, "from", summary.from, "to", summary.to, "tensors",
                                 (json_int_t)summary.tensors, "numbers",
                                 (json_int_t)summary.numbers, "tokenizer", summary.tokenizer));
    else
        printf("%s: %s of %s parameters in %lld tensors, %s to %s%s\n", a.out, summary.type,
               wg__count((double)summary.numbers).text, (long long)summary.tensors, summary.from,
               summary.to, summary.tokenizer ? ", with its tokenizer" : "");
    return 0;
}
