/* The folder by which other programs know a tokenizer: the files of its kind, and the two small
 * ones that tell them which class it is and which tokens are special. See tokenizer_export.h. */
#include "data/tokenizer/export.h"

#include <stdio.h>
#include <string.h>

#include "data/tokenizer/bpe.h"
#include "data/tokenizer/bpe_kind.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/wordpiece.h"
#include "tensor/internal.h"

#define WHERE "wg_tokenizer_export"

/* ---- Parts ---- */

const char *wg__tokenizer_added_text(const wg_tokenizer *tokenizer, int32_t id) {
    const int32_t number = tokenizer->added_by_id ? tokenizer->added_by_id[id] : -1;
    return number < 0 ? wg_tokenizer_token(tokenizer, id)
                      : wg__strings_text(&tokenizer->added_texts, number);
}

static int append_dump(const char *bytes, size_t size, void *context) {
    return wg__text_append(context, bytes, (int64_t)size);
}

int wg__dump_json(const json_t *json, size_t flags, wg__text *out) {
    if (json && json_dump_callback(json, append_dump, out, flags) == 0)
        return wg__text_append(out, "\n", 1);
    return wg_error_pending() ? -1 : wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for JSON");
}

/* folder/name, freed with wg__free. */
static char *path_in(const char *folder, const char *name) {
    wg__text path = {0};
    if (wg__text_append(&path, folder, (int64_t)strlen(folder)) == 0 &&
        wg__text_append(&path, "/", 1) == 0 &&
        wg__text_append(&path, name, (int64_t)strlen(name)) == 0)
        return path.bytes;
    wg__free(path.bytes);
    return NULL;
}

static int write_file(const char *folder, const char *name, const wg__text *text) {
    char *path = path_in(folder, name);
    const int status = path ? wg__text_file_write(path, text->bytes, text->length, WHERE) : -1;
    wg__free(path);
    return status;
}

/* ---- Special tokens ---- */

static const char *const special_keys[WG_TOKEN_SPECIAL_COUNT] = {
    [WG_TOKEN_PAD] = "pad_token",   [WG_TOKEN_UNKNOWN] = "unk_token",
    [WG_TOKEN_CLASS] = "cls_token", [WG_TOKEN_SEPARATOR] = "sep_token",
    [WG_TOKEN_MASK] = "mask_token", [WG_TOKEN_BEGIN] = "bos_token",
    [WG_TOKEN_END] = "eos_token",
};

static int set_special(const wg_tokenizer *tokenizer, json_t *object) {
    int status = object ? 0 : -1;
    for (int i = 0; status == 0 && i < WG_TOKEN_SPECIAL_COUNT; i++) {
        const int32_t id = tokenizer->special[i];
        if (id >= 0)
            status = json_object_set_new(object, special_keys[i],
                                         json_string(wg__tokenizer_added_text(tokenizer, id)));
    }
    return status;
}

/* True for BPE that splits as GPT-2 does. */
static bool is_gpt2(const wg_tokenizer *tokenizer) {
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    return tokenizer->kind == &wg__bpe_kind && !bpe->whole_words &&
           strcmp(bpe->pattern, WG__GPT2_PATTERN) == 0;
}

/* The class of huggingface/transformers, with what it has to be told; `model`: there is a
 * tokenizer.model. */
static json_t *class_json(const wg_tokenizer *tokenizer, bool model) {
    if (tokenizer->kind == &wg__wordpiece_kind) {
        json_t *options = tokenizer->kind->options_to_json(tokenizer);
        const bool lower = json_is_true(json_object_get(options, "lower_case"));
        json_decref(options);
        return json_pack("{s:s, s:b, s:b, s:n}", "tokenizer_class", "BertTokenizer",
                         "do_lower_case", lower, "tokenize_chinese_chars", 1, "strip_accents");
    }
    if (is_gpt2(tokenizer))
        return json_pack("{s:s, s:b}", "tokenizer_class", "GPT2Tokenizer", "add_prefix_space",
                         ((const wg__bpe *)tokenizer)->prefix_space);
    if (!model)
        return json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast");
    if (tokenizer->kind == &wg__sentencepiece_kind &&
        ((const wg__pieces *)tokenizer)->settings.unigram)
        return json_pack("{s:s, s:i}", "tokenizer_class", "T5Tokenizer", "extra_ids", 0);
    return json_pack("{s:s, s:b, s:b}", "tokenizer_class", "LlamaTokenizer", "add_bos_token", 1,
                     "add_eos_token", 0);
}

static int write_json(const wg_tokenizer *tokenizer, const char *folder, const char *name,
                      json_t *object) {
    wg__text text = {0};
    const bool whole = set_special(tokenizer, object) == 0;
    int status = wg__dump_json(whole ? object : NULL, JSON_INDENT(2), &text);
    if (status == 0)
        status = write_file(folder, name, &text);
    json_decref(object);
    wg__free(text.bytes);
    return status;
}

/* ---- The files of the kinds ---- */

typedef int (*writer)(const wg_tokenizer *tokenizer, wg__text *out);

/* Writes a file if its format can say this tokenizer: 1, 0 or -1. */
static int write_with(writer write, const wg_tokenizer *tokenizer, const char *folder,
                      const char *name) {
    wg__text text = {0};
    int status = write(tokenizer, &text);
    if (status > 0 && write_file(folder, name, &text) < 0)
        status = -1;
    wg__free(text.bytes);
    return status;
}

static int write_vocabulary(const wg_tokenizer *tokenizer, const char *folder) {
    const bool is_bpe = is_gpt2(tokenizer);
    if (!is_bpe && tokenizer->kind != &wg__wordpiece_kind)
        return 0;
    char *vocabulary = path_in(folder, is_bpe ? "vocab.json" : "vocab.txt");
    char *merges = path_in(folder, "merges.txt");
    int status = -1;
    if (vocabulary && merges)
        status = is_bpe ? wg_bpe_save(tokenizer, vocabulary, merges)
                        : wg_wordpiece_save(tokenizer, vocabulary);
    wg__free(vocabulary);
    wg__free(merges);
    return status < 0 ? -1 : 1;
}

static int write_own(const wg_tokenizer *tokenizer, const char *folder) {
    char *path = path_in(folder, "wengert.json");
    const int status = path ? wg_tokenizer_save(tokenizer, path) : -1;
    wg__free(path);
    return status;
}

int wg_tokenizer_export(const wg_tokenizer *tokenizer, const char *folder, bool *published) {
    if (!tokenizer || !folder || wg_error_pending())
        return -1;
    int wrote[4] = {write_vocabulary(tokenizer, folder)};
    if (wrote[0] >= 0)
        wrote[1] = write_with(wg__huggingface_write, tokenizer, folder, "tokenizer.json");
    if (wrote[1] >= 0)
        wrote[2] = write_with(wg__sentencepiece_write, tokenizer, folder, "tokenizer.model");
    if (wrote[2] >= 0)
        wrote[3] = write_with(wg__llama2c_write, tokenizer, folder, "tokenizer.bin");
    if (wg_error_pending() ||
        write_json(tokenizer, folder, "special_tokens_map.json", json_object()) < 0 ||
        write_json(tokenizer, folder, "tokenizer_config.json",
                   class_json(tokenizer, wrote[2] > 0)) < 0)
        return -1;
    *published = wrote[0] || wrote[1] || wrote[2] || wrote[3];
    return write_own(tokenizer, folder);
}
