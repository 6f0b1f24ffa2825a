/* wengert tokenizer pack: texts are tokenised into a token file ahead of time. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/model_kind.h"
#include "cli/results.h"
#include "cli/tokenizer.h"

enum { KEY_OUT = WG__KEY_OWN, KEY_SENTENCES, KEY_PAIRS, KEY_HOLD_OUT };

typedef struct packing {
    const char *tokenizer, *out;
    const char **texts; /* as many as there are arguments at most */
    int text_count;
    bool sentences, pairs, json;
    double hold_out; /* negative: not said */
} packing;

static error_t parse_pack(int key, char *text, struct argp_state *state) {
    packing *p = state->input;
    switch (key) {
    case KEY_OUT:
        p->out = text;
        return 0;
    case KEY_SENTENCES:
        p->sentences = true;
        return 0;
    case KEY_PAIRS:
        p->pairs = true;
        return 0;
    case KEY_HOLD_OUT:
        p->hold_out = wg__cli_number(state, "hold-out", text, 0, 0.99);
        return 0;
    case WG__KEY_JSON:
        p->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (p->tokenizer)
            p->texts[p->text_count++] = text;
        else
            p->tokenizer = text;
        return 0;
    case ARGP_KEY_END:
        if (!p->tokenizer || p->text_count == 0)
            argp_error(state, "TOKENIZER and TEXT are missing: what shall be packed?");
        if (!p->out)
            argp_error(state, "--out FILE.h5 is missing: where shall the tokens go?");
        if (p->sentences && p->pairs)
            argp_error(state, "--sentences and --pairs exclude each other");
        if ((p->sentences || p->pairs) && p->hold_out >= 0)
            argp_error(state,
                       "--hold-out is nothing to --%s: %s are held out of these when they are used",
                       p->sentences ? "sentences" : "pairs", p->sentences ? "documents" : "pairs");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int print_packing(const packing *p, const wg_dataset *training, const wg_dataset *held_out) {
    const long long documents = wg_dataset_documents(training) + wg_dataset_documents(held_out),
                    tokens = wg_dataset_tokens(training) + wg_dataset_tokens(held_out);
    if (p->json)
        wg__print_json(json_pack("{s:s, s:I, s:I}", "out", p->out, "documents",
                                 (json_int_t)documents, "tokens", (json_int_t)tokens));
    else
        printf("%s: %lld documents, %lld tokens\n", p->out, documents, tokens);
    return 0;
}

static int pack_texts(const packing *p, const wg_tokenizer *tokenizer,
                      const wg_dataset_options *options) {
    const double share = options->kind != WG_TEXT_STREAM ? 0
                         : p->hold_out < 0               ? WG__STREAM_HELD_OUT
                                                         : p->hold_out;
    wg_dataset *training = NULL, *held_out = NULL;
    if (share > 0)
        wg_dataset_load_split(p->text_count, p->texts, tokenizer, share, options, &training,
                              &held_out);
    else
        training = wg_dataset_load(p->text_count, p->texts, tokenizer, options);
    const int result = training ? print_packing(p, training, held_out) : -1;
    wg_dataset_free(training);
    wg_dataset_free(held_out);
    return result;
}

static int pack(const packing *p) {
    const wg_token_storage storage = {.path = p->out, .note = wg__note_tokens};
    wg_tokenizer *tokenizer = wg_tokenizer_load(p->tokenizer);
    const wg_dataset_options options = {.kind = p->sentences ? WG_TEXT_SENTENCES
                                                : p->pairs   ? WG_TEXT_PAIRS
                                                             : WG_TEXT_STREAM,
                                        .storage = &storage};
    const int result = tokenizer ? pack_texts(p, tokenizer, &options) : -1;
    wg_tokenizer_free(tokenizer);
    return result < 0 ? wg__cli_fail_pending() : 0;
}

int wg__tokenizer_pack(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"out", KEY_OUT, "FILE.h5", 0, "The token file to write, or to bring up to date", 0},
        {"sentences", KEY_SENTENCES, NULL, 0,
         "Cut the text into documents of sentences, for BERT and GLM (default: one stream, for "
         "GPT, "
         "LLaMA and T5)",
         0},
        {"pairs", KEY_PAIRS, NULL, 0,
         "Texts are sources and their targets, line by line, SOURCE TARGET and so on, for the "
         "Transformer",
         0},
        {"hold-out", KEY_HOLD_OUT, "X", 0,
         "Hold this share of each file's end out of training (0.1); 0: nothing, pretrain needs "
         "--eval then",
         0},
        WG__OPTION_JSON,
        {0},
    };
    static const struct argp parser = {
        .options = options,
        .parser = parse_pack,
        .args_doc = "TOKENIZER TEXT... --out FILE.h5",
        .doc = "Tokenises texts of any size once, into a file to be given as "
               "--corpus.\v" WG__TOKENIZER_DOC " The token file holds the tokenizer, too.",
    };
    packing p = {.hold_out = -1};
    p.texts = calloc((size_t)argc + 1, sizeof *p.texts);
    if (!p.texts)
        return wg__cli_fail("no memory");
    wg__cli_parse(&parser, argc, argv, &p);
    const int code = pack(&p);
    free(p.texts);
    return code;
}
