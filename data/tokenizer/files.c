/* Tokenizer files: Wengert's JSON, loading a file of any format, and exporting to the formats of
 * other programs. See tokenizer.h. */
#include <stdlib.h>
#include <string.h>

#include "base/replacement.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/tokenizer.h"
#include "io/checkpoint/checkpoint.h"
#include "io/internal.h"
#include "io/weights/binary_file.h"
#include "data/internal.h"
#include "tensor/easy.h"

#define FORMAT_NAME "wengert-tokenizer"

static const wg__tokenizer_kind *const kinds[] = {
    &wg__bpe_kind,     &wg__byte_kind,          &wg__char_kind,
    &wg__llama2c_kind, &wg__sentencepiece_kind, &wg__wordpiece_kind,
};

static const char *const json_names[WG_TOKEN_SPECIAL_COUNT] = {
    [WG_TOKEN_PAD] = "pad",     [WG_TOKEN_UNKNOWN] = "unknown",
    [WG_TOKEN_CLASS] = "class", [WG_TOKEN_SEPARATOR] = "separator",
    [WG_TOKEN_MASK] = "mask",   [WG_TOKEN_BEGIN] = "begin",
    [WG_TOKEN_END] = "end",
};

char *wg_tokenizer_to_json(const wg_tokenizer *tokenizer) {
    if (!tokenizer)
        return NULL;
    json_t *special = json_object(), *list = json_array(), *vocabulary = json_array();
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++)
        if (tokenizer->special[i] >= 0)
            wg__json_put(&special, json_names[i], json_integer(tokenizer->special[i]));
    for (int64_t i = 0; i < tokenizer->added_texts.count; i++) {
        const wg__added_token *token = &tokenizer->added[i];
        json_t *entry =
            json_pack("{s:i, s:s, s:b, s:b, s:b}", "id", token->id, "text",
                      wg__strings_text(&tokenizer->added_texts, i), "special", token->special,
                      "strip_left", token->strip_left, "strip_right", token->strip_right);
        if (token->normalized)
            wg__json_put(&entry, "normalized", json_true());
        wg__json_append(&list, entry);
    }
    for (int64_t i = 0; i < tokenizer->vocabulary.count; i++)
        wg__json_append(&vocabulary, json_string(wg__strings_text(&tokenizer->vocabulary, i)));
    const wg__tokenizer_kind *kind = tokenizer->kind;
    json_t *options = kind->options_to_json ? kind->options_to_json(tokenizer) : json_object();
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "format", FORMAT_NAME, "kind", kind->name,
                  "options", options, "special", special, "added", list, "vocabulary", vocabulary);
    wg__text text = {0};
    const int status = wg__json_dump(root, JSON_COMPACT, &text);
    json_decref(root);
    if (status == 0)
        return text.bytes;
    wg__free(text.bytes);
    return NULL;
}

int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path) {
    char *json = wg_tokenizer_to_json(tokenizer);
    if (!json)
        return -1;
    int status = wg__replace_file(path, json, (int64_t)strlen(json), "wg_tokenizer_save");
    wg__free(json);
    return status;
}

static int read_added(wg_tokenizer *tokenizer, const json_t *added) {
    size_t i;
    json_t *entry;
    json_array_foreach((json_t *)added, i, entry) {
        const char *text;
        int id, special, strip_left, strip_right, normalized = false;
        json_error_t error;
        if (json_unpack_ex(entry, &error, 0, "{s:i, s:s, s:b, s:b, s:b, s?b}", "id", &id, "text",
                           &text, "special", &special, "strip_left", &strip_left, "strip_right",
                           &strip_right, "normalized", &normalized) < 0)
            return wg_fail(WG_ERROR_FORMAT, "tokenizer", "added token %zu: %s", i + 1, error.text);
        wg__added_token token = {id, special, strip_left, strip_right, normalized};
        if (wg__tokenizer_add(tokenizer, text, &token) < 0)
            return -1;
    }
    return 0;
}

wg_tokenizer *wg__tokenizer_of_json(const json_t *root) {
    const char *format, *name;
    json_t *options, *vocabulary, *special = NULL, *added = NULL;
    json_error_t error;
    if (json_unpack_ex((json_t *)root, &error, 0, "{s:s, s:s, s:o, s:o, s?o, s?o}", "format",
                       &format, "kind", &name, "options", &options, "vocabulary", &vocabulary,
                       "special", &special, "added", &added) < 0)
        return wg__fail_null(WG_ERROR_FORMAT, "tokenizer", "not a tokenizer: %s", error.text);
    const wg__tokenizer_kind *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        kind = strcmp(kinds[i]->name, name) == 0 ? kinds[i] : kind;
    if (strcmp(format, FORMAT_NAME) != 0)
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "\"format\" is \"%.100s\", not \"" FORMAT_NAME "\"",
                format);
    else if (!kind)
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "no tokenizer is of kind \"%.100s\" here", name);
    else if (!json_is_array(vocabulary))
        wg_fail(WG_ERROR_FORMAT, "tokenizer", "\"vocabulary\" is not a list");
    const size_t count = json_array_size(vocabulary);
    const char **tokens = wg_error_pending() ? NULL : wg__alloc_array(count + 1, sizeof *tokens);
    for (size_t i = 0; tokens && i < count; i++) {
        tokens[i] = json_string_value(json_array_get(vocabulary, i));
        if (!tokens[i])
            wg_fail(WG_ERROR_FORMAT, "tokenizer", "entry %zu of the vocabulary is not a string", i);
    }
    wg_tokenizer *tokenizer =
        wg_error_pending() ? NULL : kind->from_json(options, (int64_t)count, tokens);
    wg__free(tokens);
    /* Old files of WordPiece have neither `special` nor `added`: wg__wordpiece_new found the
     * special tokens by name. */
    if (!tokenizer || (!special && !added))
        return tokenizer;
    wg__tokenizer_clear_added(tokenizer);
    int status = read_added(tokenizer, added);
    for (int i = 0; status == 0 && i < WG_TOKEN_SPECIAL_COUNT; i++) {
        const json_t *json = json_object_get(special, json_names[i]);
        const json_int_t id = json_integer_value(json);
        if (json && (!json_is_integer(json) || id < 0 || id >= wg_tokenizer_size(tokenizer)))
            status = wg_fail(WG_ERROR_FORMAT, "tokenizer",
                             "the special token \"%s\" is no id of the vocabulary", json_names[i]);
        else if (json)
            status = wg__tokenizer_set_special(tokenizer, i, (int32_t)id);
    }
    return wg__tokenizer_checked(tokenizer, status);
}

wg_tokenizer *wg_tokenizer_from_json(const char *json) {
    json_t *root = json ? wg__json_parse(json, (int64_t)strlen(json), "the text") : NULL;
    wg_tokenizer *tokenizer = root ? wg__tokenizer_of_json(root) : NULL;
    json_decref(root);
    return tokenizer;
}

#define LOAD "wg_tokenizer_load"

/* Keys of special_tokens_map.json and tokenizer_config.json. */
static const char *const special_keys[WG_TOKEN_SPECIAL_COUNT] = {
    [WG_TOKEN_PAD] = "pad_token",   [WG_TOKEN_UNKNOWN] = "unk_token",
    [WG_TOKEN_CLASS] = "cls_token", [WG_TOKEN_SEPARATOR] = "sep_token",
    [WG_TOKEN_MASK] = "mask_token", [WG_TOKEN_BEGIN] = "bos_token",
    [WG_TOKEN_END] = "eos_token",
};

/* Loads vocab.json and merges.txt (encoder.json and vocab.bpe) by the path of either; both are in
 * the same folder. */
static wg_tokenizer *load_bpe(const char *path, bool is_merges) {
    const char *const names[] = {is_merges ? "vocab.json" : "merges.txt",
                                 is_merges ? "encoder.json" : "vocab.bpe"};
    for (int i = 0; i < 2; i++) {
        char *other = wg__path_beside(path, names[i]);
        if (!other)
            return NULL;
        if (wg__is_file(other)) {
            wg_tokenizer *tokenizer =
                wg__bpe_load(is_merges ? other : path, is_merges ? path : other);
            wg__free(other);
            return tokenizer;
        }
        wg__free(other);
    }
    return wg__fail_null(WG_ERROR_NOT_FOUND, LOAD, "%s needs %s beside it", path, names[0]);
}

/* Parses a JSON file in the folder of `path`. NULL without the file, or with an error. */
static json_t *load_beside(const char *path, const char *name) {
    char *beside = wg__path_beside(path, name);
    int64_t length;
    char *bytes = beside && wg__is_file(beside) ? wg__text_file_read(beside, &length, LOAD) : NULL;
    json_t *root = bytes ? wg__json_parse(bytes, length, beside) : NULL;
    wg__free(bytes);
    wg__free(beside);
    return root;
}

/* ---- tokenizer_config.json: settings of huggingface/transformers ---- */

#define SETTINGS_FILE "tokenizer_config.json"

/* Refuses a setting that changes the tokens. Returns -1 with FORMAT. */
static int refuse_setting(const char *key, const json_t *value, const char *wanted) {
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    wg_fail(WG_ERROR_FORMAT, SETTINGS_FILE, "\"%s\" is %.100s; only %s is supported here", key,
            text ? text : "?", wanted);
    free(text);
    return -1;
}

/* True if the WordPiece tokenizer lower-cases texts. */
static bool is_lower_case(const wg_tokenizer *tokenizer) {
    json_t *options = tokenizer->kind->options_to_json(tokenizer);
    const bool lower = json_is_true(json_object_get(options, "lower_case"));
    json_decref(options);
    return lower;
}

/* Checks that a flag is null, missing, or equal to the tokenizer's. */
static int check_flag(const json_t *settings, const char *key, bool wanted) {
    const json_t *value = json_object_get(settings, key);
    return !value || json_is_null(value) ||
                   (json_is_boolean(value) && json_is_true(value) == wanted)
               ? 0
               : refuse_setting(key, value, wanted ? "true" : "false");
}

/* Checks that a list or object is empty or missing. */
static int check_empty(const json_t *settings, const char *key) {
    const json_t *value = json_object_get(settings, key);
    return json_array_size(value) + json_object_size(value) == 0
               ? 0
               : refuse_setting(key, value, "an empty list or object");
}

/* Refuses settings that change the tokens of a text. All other keys do not: names of special
 * tokens, truncation, padding, decoding, templates of chats. */
static int check_settings(wg_tokenizer *tokenizer, const json_t *settings) {
    const wg__tokenizer_kind *kind = tokenizer->kind;
    int32_t *special = tokenizer->special;
    int status = check_flag(settings, "add_eos_token", false);
    if (status == 0 && kind == &wg__wordpiece_kind) {
        /* Wengert drops accents if it lower-cases letters, and makes every ideograph a word. */
        const bool lower = is_lower_case(tokenizer);
        const struct {
            const char *key;
            bool wanted;
        } flags[] = {{"do_lower_case", lower},
                     {"strip_accents", lower},
                     {"tokenize_chinese_chars", true},
                     {"do_basic_tokenize", true}};
        for (int i = 0; status == 0 && i < 4; i++)
            status = check_flag(settings, flags[i].key, flags[i].wanted);
        if (status == 0)
            status = check_empty(settings, "never_split");
    }
    if (status == 0 && kind == &wg__bpe_kind)
        status =
            check_flag(settings, "add_prefix_space", ((const wg__bpe *)tokenizer)->prefix_space);
    if (status == 0 && kind == &wg__sentencepiece_kind)
        status = check_flag(settings, "add_prefix_space",
                            ((const wg__pieces *)tokenizer)->settings.prefix != WG__PREFIX_NONE);
    if (status == 0)
        status = check_empty(settings, "sp_model_kwargs");

    /* Ordinary added tokens that the tokenizer lacks: {"30522": {"content": "COVID-19", "special":
     * false}}. Hugging Face's library finds them in a text before it splits the text. */
    const char *key;
    json_t *token;
    json_object_foreach(json_object_get(settings, "added_tokens_decoder"), key, token) {
        const char *text = json_string_value(json_object_get(token, "content"));
        if (status == 0 && text && !json_is_true(json_object_get(token, "special")) &&
            wg__strings_find(&tokenizer->added_texts, text, (int64_t)strlen(text)) < 0)
            status = wg_fail(
                WG_ERROR_FORMAT, SETTINGS_FILE,
                "added_tokens_decoder has the token \"%.64s\" (%.20s), which the tokenizer's "
                "own file lacks; a tokenizer.json with it is read",
                text, key);
    }

    if (json_is_false(json_object_get(settings, "add_bos_token")) &&
        special[WG_TOKEN_BEGIN] != special[WG_TOKEN_END])
        special[WG_TOKEN_BEGIN] = -1;
    return status;
}

/* ---- Loading ---- */

static wg_tokenizer *load_bytes(const char *path, const char *bytes, int64_t length) {
    if (bytes[strspn(bytes, " \t\r\n")] == '{') {
        json_t *root = wg__json_parse(bytes, length, path);
        /* GPT-2's vocabulary may have a token "format", with a number as its value. */
        const bool is_gpt2 = !json_is_string(json_object_get(root, "format")) &&
                             json_is_integer(json_object_iter_value(json_object_iter(root)));
        wg_tokenizer *tokenizer = !root     ? NULL
                                  : is_gpt2 ? load_bpe(path, false)
                                  : json_is_object(json_object_get(root, "model"))
                                      ? wg__huggingface_read(root, path)
                                      : wg__tokenizer_of_json(root);
        json_decref(root);
        return tokenizer;
    }
    /* A SentencePiece model begins with a piece (tag '\n'), and the piece with its text (tag '\n').
     * A vocab.txt cannot have these bytes, since an empty line is no token; nor can llama2.c's
     * file, since no token is that long. */
    if (length > 3 && bytes[0] == '\n' && bytes[1] > 0 && bytes[2] == '\n')
        return wg__sentencepiece_read(bytes, length, path);
    /* llama2.c's file begins with the length of the longest token, 32 bits with a zero upper half.
     * A text has no NUL. */
    if (length >= 12 && bytes[2] == '\0' && bytes[3] == '\0')
        return wg__llama2c_read(bytes, length, path);
    if (strncmp(bytes, "#version", 8) == 0)
        return load_bpe(path, true);
    json_t *settings = load_beside(path, SETTINGS_FILE);
    const wg_wordpiece_options options = {
        .cased = json_is_false(json_object_get(settings, "do_lower_case"))};
    wg_tokenizer *tokenizer = wg_error_pending() ? NULL : wg__wordpiece_load(path, &options);
    if (tokenizer)
        tokenizer = wg__tokenizer_checked(tokenizer, check_settings(tokenizer, settings));
    json_decref(settings);
    return tokenizer;
}

/* Sets missing special tokens of encoders by the keys of a JSON file: {"cls_token": "<s>"}, or
 * {"cls_token": {"content": "<s>"}}. RoBERTa's <s> is known as the begin token only. */
static int name_missing(wg_tokenizer *tokenizer, const json_t *names) {
    static const wg_special_token which[] = {WG_TOKEN_CLASS, WG_TOKEN_SEPARATOR, WG_TOKEN_MASK};
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        const json_t *value = json_object_get(names, special_keys[which[i]]);
        const char *name =
            json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
        if (name && tokenizer->special[which[i]] < 0 &&
            wg__tokenizer_name_special(tokenizer, which[i], name) < 0)
            return -1;
    }
    return 0;
}

static wg_tokenizer *load_file(const char *path) {
    wg_tokenizer *tokenizer = NULL;
    if (wg__is_hdf5_file(path)) {
        wg_checkpoint *file = wg_checkpoint_open(path);
        char *json = file ? wg_checkpoint_get_text(file, "/tokenizer") : NULL;
        tokenizer = wg_tokenizer_from_json(json);
        wg_text_free(json);
        wg_checkpoint_close(file);
        return tokenizer;
    }
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, LOAD);
    if (bytes)
        tokenizer = load_bytes(path, bytes, length);
    wg__free(bytes);
    return tokenizer;
}

/* The path of the tokenizer file in a folder; NULL without a file, or with MEMORY. */
static char *find_in_folder(const char *folder) {
    return wg__find_in_folder(folder,
                              WG_NAMES("wengert.json", "tokenizer.json", "tokenizer.model",
                                       "vocab.json", "encoder.json", "vocab.txt", "tokenizer.bin"));
}

bool wg__tokenizer_is_in(const char *folder) {
    char *path = find_in_folder(folder);
    const bool found = path;
    wg__free(path);
    return found;
}

wg_tokenizer *wg_tokenizer_load(const char *path) {
    if (!wg__is_folder(path))
        return load_file(path);
    char *file = find_in_folder(path);
    wg_tokenizer *tokenizer = file ? load_file(file) : NULL;
    if (tokenizer && !wg__ends_with(file, "wengert.json")) {
        json_t *names = load_beside(file, "special_tokens_map.json"),
               *settings = load_beside(file, SETTINGS_FILE);
        const bool read = !wg_error_pending() && name_missing(tokenizer, names) == 0 &&
                          name_missing(tokenizer, settings) == 0 &&
                          check_settings(tokenizer, settings) == 0;
        json_decref(names);
        json_decref(settings);
        tokenizer = wg__tokenizer_checked(tokenizer, read ? 0 : -1);
    }
    if (!file && !wg_error_pending())
        wg_fail(WG_ERROR_NOT_FOUND, LOAD,
                "%s has none of wengert.json, tokenizer.json, tokenizer.model, vocab.json, "
                "vocab.txt and tokenizer.bin",
                path);
    wg__free(file);
    return tokenizer;
}

/* ---- Exporting ---- */

static int write_file(const char *folder, const char *name, const wg__text *text) {
    char *path = wg__path_in(folder, name);
    const int status =
        path ? wg__replace_file(path, text->bytes, text->length, "wg_tokenizer_export") : -1;
    wg__free(path);
    return status;
}

/* True for BPE that splits texts like GPT-2. */
static bool is_gpt2(const wg_tokenizer *tokenizer) {
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    return tokenizer->kind == &wg__bpe_kind && !bpe->whole_words &&
           strcmp(bpe->pattern, WG__GPT2_PATTERN) == 0;
}

/* The class of huggingface/transformers with its options. `model`: a tokenizer.model exists. */
static json_t *class_json(const wg_tokenizer *tokenizer, bool model) {
    if (tokenizer->kind == &wg__wordpiece_kind)
        return json_pack("{s:s, s:b, s:b, s:n}", "tokenizer_class", "BertTokenizer",
                         "do_lower_case", is_lower_case(tokenizer), "tokenize_chinese_chars", 1,
                         "strip_accents");
    if (is_gpt2(tokenizer))
        return json_pack("{s:s, s:b}", "tokenizer_class", "GPT2Tokenizer", "add_prefix_space",
                         ((const wg__bpe *)tokenizer)->prefix_space);
    if (!model)
        return json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast");
    if (tokenizer->kind == &wg__sentencepiece_kind &&
        ((const wg__pieces *)tokenizer)->settings.unigram)
        return json_pack("{s:s, s:i}", "tokenizer_class", "T5Tokenizer", "extra_ids", 0);
    return json_pack("{s:s, s:b, s:b}", "tokenizer_class", "LlamaTokenizer", "add_bos_token",
                     tokenizer->special[WG_TOKEN_BEGIN] >= 0, "add_eos_token", 0);
}

static int write_json(const wg_tokenizer *tokenizer, const char *folder, const char *name,
                      json_t *object) {
    wg__text text = {0};
    for (int i = 0; i < WG_TOKEN_SPECIAL_COUNT; i++)
        if (tokenizer->special[i] >= 0)
            wg__json_put(&object, special_keys[i],
                         json_string(wg__tokenizer_added_text(tokenizer, tokenizer->special[i])));
    const bool written = wg__json_dump(object, JSON_INDENT(2), &text) == 0 &&
                         wg__text_append(&text, "\n", 1) == 0 &&
                         write_file(folder, name, &text) == 0;
    json_decref(object);
    wg__free(text.bytes);
    return written ? 0 : -1;
}

/* Writes vocab.json and merges.txt, or vocab.txt: 1, 0 or -1. */
static int write_vocabulary(const wg_tokenizer *tokenizer, const char *folder) {
    const bool is_bpe = is_gpt2(tokenizer);
    if (!is_bpe && tokenizer->kind != &wg__wordpiece_kind)
        return 0;
    char *vocabulary = wg__path_in(folder, is_bpe ? "vocab.json" : "vocab.txt");
    char *merges = wg__path_in(folder, "merges.txt");
    const bool saved = vocabulary && merges &&
                       (is_bpe ? wg__bpe_save(tokenizer, vocabulary, merges)
                               : wg__wordpiece_save(tokenizer, vocabulary)) == 0;
    wg__free(vocabulary);
    wg__free(merges);
    return saved ? 1 : -1;
}

int wg_tokenizer_export(const wg_tokenizer *tokenizer, const char *folder, bool *published) {
    if (!tokenizer || !folder || wg_error_pending())
        return -1;
    /* In all formats except tokenizer.bin, llama2.c's tokenizer is a SentencePiece model. */
    const bool is_llama2c = tokenizer->kind == &wg__llama2c_kind;
    wg_tokenizer *pieces = is_llama2c ? wg__llama2c_to_sentencepiece(tokenizer) : NULL;
    const wg_tokenizer *other = is_llama2c ? pieces : tokenizer;
    const struct {
        int (*write)(const wg_tokenizer *tokenizer, wg__text *out);
        const wg_tokenizer *tokenizer;
        const char *name;
    } files[] = {{wg__huggingface_write, other, "tokenizer.json"},
                 {wg__sentencepiece_write, other, "tokenizer.model"},
                 {wg__llama2c_write, tokenizer, "tokenizer.bin"}};
    int wrote[4] = {other ? write_vocabulary(tokenizer, folder) : 0};
    for (int i = 0; i < 3 && !wg_error_pending(); i++) {
        wg__text text = {0};
        wrote[i + 1] = files[i].write(files[i].tokenizer, &text);
        if (wrote[i + 1] > 0)
            write_file(folder, files[i].name, &text);
        wg__free(text.bytes);
    }
    wg_tokenizer_free(pieces);
    if (wg_error_pending() ||
        write_json(tokenizer, folder, "special_tokens_map.json", json_object()) < 0 ||
        write_json(tokenizer, folder, "tokenizer_config.json",
                   class_json(tokenizer, wrote[2] > 0)) < 0)
        return -1;
    *published = wrote[0] || wrote[1] || wrote[2] || wrote[3];
    char *path = wg__path_in(folder, "wengert.json");
    const int status = path ? wg_tokenizer_save(tokenizer, path) : -1;
    wg__free(path);
    return status;
}
