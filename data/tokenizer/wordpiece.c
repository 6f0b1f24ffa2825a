/* WordPiece: vocabulary files, encoding by longest match, decoding. See wordpiece.h. */
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/basic_tokenizer.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/wordpiece.h"
#include "tensor/internal.h"

#define DEFAULT_WORD_CHARACTERS 200 /* WordpieceTokenizer of google-research/bert */
#define LARGEST_WORD_CHARACTERS 1000

typedef struct wordpiece {
    wg_tokenizer base;
    wg_wordpiece_options options;
    uint64_t continuation_hash; /* of "##", from which a piece that continues a word is hashed on */
} wordpiece;

static const char *const special_names[] = {
    [WG_TOKEN_PAD] = "[PAD]",       [WG_TOKEN_UNKNOWN] = "[UNK]", [WG_TOKEN_CLASS] = "[CLS]",
    [WG_TOKEN_SEPARATOR] = "[SEP]", [WG_TOKEN_MASK] = "[MASK]",
};
#define SPECIAL_COUNT ((int)(sizeof special_names / sizeof special_names[0]))

/* ---- Making one ---- */

static int set_options(wordpiece *w, const wg_wordpiece_options *options) {
    if (options)
        w->options = *options;
    if (w->options.max_word_characters == 0)
        w->options.max_word_characters = DEFAULT_WORD_CHARACTERS;
    if (w->options.max_word_characters < 1 ||
        w->options.max_word_characters > LARGEST_WORD_CHARACTERS)
        return wg_fail(WG_ERROR_ARGUMENT, "wordpiece",
                       "max_word_characters is %d; it must be 1 to %d",
                       w->options.max_word_characters, LARGEST_WORD_CHARACTERS);
    return 0;
}

static wg_tokenizer *new_wordpiece(int64_t count, const char *const *tokens,
                                   const wg_wordpiece_options *options, const char *entry) {
    wordpiece *w = wg__tokenizer_new(&wg__wordpiece_kind, sizeof *w);
    if (!w)
        return NULL;
    w->continuation_hash = wg__hash_step(wg__hash_step(WG__HASH_EMPTY, '#'), '#');
    int status = set_options(w, options);
    if (status == 0)
        status = wg__tokenizer_set_vocabulary(&w->base, count, tokens, entry);
    for (int i = 0; status == 0 && i < SPECIAL_COUNT; i++)
        status = wg__tokenizer_name_special(&w->base, i, special_names[i]);
    if (status == 0 && w->base.special[WG_TOKEN_UNKNOWN] < 0)
        status = wg_fail(WG_ERROR_FORMAT, "wordpiece",
                         "%s 1 to %lld: none is [UNK], which stands for unknown words", entry,
                         (long long)count);
    if (status < 0) {
        wg_tokenizer_free(&w->base);
        return NULL;
    }
    return &w->base;
}

wg_tokenizer *wg_wordpiece_new(int64_t count, const char *const *tokens,
                               const wg_wordpiece_options *options) {
    return new_wordpiece(count, tokens, options, "token");
}

/* Cuts a text in place into its lines, without blanks at their ends as the published reader does.
 * An empty last line is none. Returns how many, or -1; *lines is freed with wg__free. */
static int64_t cut_lines(char *text, int64_t length, const char ***lines) {
    int64_t count = 0, capacity = 0;
    char *end = text + length;
    for (char *line = text; line < end;) {
        const char **grown = wg__grow(*lines, count, &capacity, count + 1, sizeof *grown);
        if (!grown)
            return -1;
        *lines = grown;
        char *newline = memchr(line, '\n', (size_t)(end - line));
        char *stop = newline ? newline : end;
        char *next = stop + 1;
        while (stop > line && strchr(" \t\r\v\f", stop[-1]))
            stop--;
        while (line < stop && strchr(" \t\r\v\f", *line))
            line++;
        *stop = '\0';
        grown[count++] = line;
        line = next;
    }
    return count;
}

static wg_tokenizer *parse_vocabulary(char *text, int64_t length, const char *path,
                                      const wg_wordpiece_options *options) {
    if (wg__utf8_check(text, length, path, "wg_wordpiece_load") < 0)
        return NULL;
    if (memchr(text, '\0', (size_t)length)) {
        wg_fail(WG_ERROR_FORMAT, "wg_wordpiece_load", "%s has a NUL byte: not a vocabulary", path);
        return NULL;
    }
    char entry[512];
    snprintf(entry, sizeof entry, "%s: line", path);
    const char **lines = NULL;
    int64_t count = cut_lines(text, length, &lines);
    wg_tokenizer *tokenizer = count < 0 ? NULL : new_wordpiece(count, lines, options, entry);
    wg__free(lines);
    return tokenizer;
}

wg_tokenizer *wg_wordpiece_load(const char *path, const wg_wordpiece_options *options) {
    int64_t length;
    char *text = wg__text_file_read(path, &length, "wg_wordpiece_load");
    if (!text)
        return NULL;
    wg_tokenizer *tokenizer = parse_vocabulary(text, length, path, options);
    wg__free(text);
    return tokenizer;
}

int wg_wordpiece_save(const wg_tokenizer *tokenizer, const char *path) {
    if (!tokenizer)
        return -1;
    if (tokenizer->kind != &wg__wordpiece_kind)
        return wg_fail(WG_ERROR_ARGUMENT, "wg_wordpiece_save",
                       "a %s tokenizer has no vocab.txt; wg_tokenizer_save writes any kind",
                       tokenizer->kind->name);
    wg__text text = {0};
    int status = 0;
    for (int64_t i = 0; status == 0 && i < tokenizer->vocabulary.count; i++) {
        status = wg__text_append(&text, wg__strings_text(&tokenizer->vocabulary, i),
                                 wg__strings_length(&tokenizer->vocabulary, i));
        if (status == 0)
            status = wg__text_append(&text, "\n", 1);
    }
    if (status == 0)
        status = wg__text_file_write(path, text.bytes, text.length, "wg_wordpiece_save");
    wg__free(text.bytes);
    return status;
}

/* ---- Encoding ---- */

typedef struct encoding {
    const wordpiece *tokenizer;
    wg__token_sink *sink;
} encoding;

/* The longest piece of the vocabulary that `text` begins with, which continues a word or not.
 * Returns its id and stores its length, or -1. The hashes of all beginnings are made in one walk;
 * then the longest ones are looked up first. */
static int64_t longest_piece(const wordpiece *w, bool continues, const char *text, int64_t length,
                             int64_t *matched) {
    uint64_t hashes[LARGEST_WORD_CHARACTERS * 4];
    const wg__strings *vocabulary = &w->base.vocabulary;
    int64_t head_length = continues ? 2 : 0;
    if (length > vocabulary->longest - head_length)
        length = vocabulary->longest - head_length;
    uint64_t hash = continues ? w->continuation_hash : WG__HASH_EMPTY;
    for (int64_t i = 0; i < length; i++)
        hashes[i] = hash = wg__hash_step(hash, text[i]);
    for (int64_t i = length; i > 0; i--) {
        int64_t id = wg__strings_find_joined(vocabulary, hashes[i - 1], "##", head_length, text, i);
        if (id >= 0) {
            *matched = i;
            return id;
        }
    }
    return -1;
}

/* Appends the pieces of one word, or [UNK] if it cannot be made of pieces or is too long. */
static int encode_word(void *context, const char *word, int64_t length, int64_t characters) {
    const encoding *e = context;
    wg_token_list *list = &e->sink->list;
    int64_t before = list->count, at = 0;
    bool known = characters <= e->tokenizer->options.max_word_characters;
    while (known && at < length) {
        int64_t matched = 0;
        int64_t id = longest_piece(e->tokenizer, at > 0, word + at, length - at, &matched);
        known = id >= 0;
        if (known && wg_token_list_append(list, (int32_t)id) < 0)
            return -1;
        at += matched;
    }
    if (!known) {
        list->count = before;
        if (wg_token_list_append(list, e->tokenizer->base.special[WG_TOKEN_UNKNOWN]) < 0)
            return -1;
    }
    return wg__token_sink_settle(e->sink);
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    (void)first;
    encoding e = {(const wordpiece *)tokenizer, sink};
    wg__basic_rules rules = {e.tokenizer->options.cased, e.tokenizer->options.huggingface};
    return wg__basic_tokenize(text, length, rules, encode_word, &e);
}

/* ---- Decoding ---- */

/* How a token sits in a line of English text. */
typedef struct spacing {
    bool no_space_before, no_space_after;
} spacing;

static bool is_one_of(const char *token, const char *const *list) {
    for (; *list; list++)
        if (strcmp(token, *list) == 0)
            return true;
    return false;
}

/* `open` tells whether a straight double quote has been opened; it is updated. */
static spacing spacing_of(const char *token, bool *open) {
    static const char *const closing[] = {".", ",", ";", ":",      "!",      "?", ")",
                                          "]", "}", "%", "\u201d", "\u2026", NULL};
    static const char *const opening[] = {"(", "[", "{", "\u201c", "\u2018", "$", NULL};
    static const char *const joining[] = {"'", "-", "/", "\u2019", "\u2013", "\u2014", NULL};
    if (strcmp(token, "\"") == 0) {
        *open = !*open;
        return *open ? (spacing){false, true} : (spacing){true, false};
    }
    bool joins = is_one_of(token, joining);
    return (spacing){joins || is_one_of(token, closing), joins || is_one_of(token, opening)};
}

static int decode(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text) {
    const char *token = wg__strings_text(&tokenizer->vocabulary, id);
    spacing sits = {false, false};
    if (strncmp(token, "##", 2) == 0 && token[2] != '\0') {
        token += 2;
        sits.no_space_before = true;
    } else if (!options->plain && !wg_tokenizer_is_special(tokenizer, id)) {
        sits = spacing_of(token, &state->open);
    }
    if (state->space && !sits.no_space_before && wg__text_append(text, " ", 1) < 0)
        return -1;
    state->space = !sits.no_space_after;
    return wg__text_append(text, token, (int64_t)strlen(token));
}

/* ---- JSON ---- */

static json_t *options_to_json(const wg_tokenizer *tokenizer) {
    const wordpiece *w = (const wordpiece *)tokenizer;
    return json_pack("{s:b, s:i, s:b}", "lower_case", !w->options.cased, "max_word_characters",
                     w->options.max_word_characters, "huggingface", w->options.huggingface);
}

static wg_tokenizer *from_json(const json_t *json, int64_t count, const char *const *tokens) {
    int lower_case = true, huggingface = false;
    wg_wordpiece_options options = {0};
    json_error_t error;
    if (json_unpack_ex((json_t *)json, &error, 0, "{s:b, s?i, s?b}", "lower_case", &lower_case,
                       "max_word_characters", &options.max_word_characters, "huggingface",
                       &huggingface) < 0) {
        wg_fail(WG_ERROR_FORMAT, "wordpiece", "bad options: %s", error.text);
        return NULL;
    }
    options.cased = !lower_case;
    options.huggingface = huggingface;
    return wg_wordpiece_new(count, tokens, &options);
}

const wg__tokenizer_kind wg__wordpiece_kind = {
    .name = "wordpiece",
    .encode = encode,
    .decode = decode,
    .options_to_json = options_to_json,
    .from_json = from_json,
};
