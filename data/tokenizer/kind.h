/* What the kinds of tokenizers share: the struct that each begins with, and the record of functions
 * by which tokenizer.c runs it. A new kind is one file with one such record, listed in
 * tokenizer_json.c.
 *
 *     text  "see <|endoftext|>it"        what stands between the tokens that are read whole ...
 *             |         |       |
 *           kind     added    kind       ... is encoded by the kind, stretch by stretch
 */
#ifndef WG_DATA_TOKENIZER_KIND_H
#define WG_DATA_TOKENIZER_KIND_H

#include <jansson.h>

#include "base/array.h"
#include "base/string_table.h"
#include "data/tokenizer/tokenizer.h"

/* What decoding one id needs to know of those before it; {0} at the beginning. */
typedef struct wg__decode_state {
    bool begun; /* an id that is not special was decoded */
    bool space; /* a space is due before the next word */
    bool open;  /* a straight double quote was opened */
} wg__decode_state;

/* What a text is encoded into: a list, which is emptied on the way when there are many ids, so that
 * encoding a text of any size takes little memory. */
typedef struct wg__token_sink {
    wg_token_list list;
    int (*drain)(void *context); /* empties the list; NULL: it keeps all */
    void *context;
} wg__token_sink;

/* Kinds call this, after words or the like, where none of the list's ids will be looked at or taken
 * back any more. */
int wg__token_sink_settle(wg__token_sink *sink);

/* wg_tokenizer_encode into a sink, of a text that was found to be UTF-8 before. */
int wg__tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                         const wg_encode_options *options, wg__token_sink *sink);

typedef struct wg__tokenizer_kind {
    const char *name;

    /* Appends the ids of a stretch of UTF-8 text, not empty, that has no added tokens in it;
     * `first` tells that the whole text begins with it. tokenizer.c takes back what was appended
     * before a failure. */
    int (*encode)(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink);

    /* Appends the bytes that an id of the vocabulary stands for after those that `state` tells of;
     * they need not be whole characters. */
    int (*decode)(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text);

    /* The options as a new JSON object; NULL without memory. */
    json_t *(*options_to_json)(const wg_tokenizer *tokenizer);

    /* A tokenizer from such an object and a vocabulary. */
    wg_tokenizer *(*from_json)(const json_t *options, int64_t count, const char *const *tokens);

    /* Frees what the kind holds beside the struct itself; NULL: nothing. */
    void (*clear)(wg_tokenizer *tokenizer);
} wg__tokenizer_kind;

/* A token that stands whole in a text, before the kind sees what is around it. */
typedef struct wg__added_token {
    int32_t id;
    bool special;     /* only read when the caller asks for special tokens */
    bool strip_left;  /* white space before it goes, too */
    bool strip_right; /* and after it */
} wg__added_token;

extern const wg__tokenizer_kind wg__byte_kind;
extern const wg__tokenizer_kind wg__char_kind;
extern const wg__tokenizer_kind wg__llama2c_kind;
extern const wg__tokenizer_kind wg__wordpiece_kind;

struct wg_tokenizer {
    const wg__tokenizer_kind *kind;
    wg__strings vocabulary;
    int32_t special[WG_TOKEN_SPECIAL_COUNT]; /* ids; -1 where there is none */
    wg__strings added_texts;                 /* as they stand in a text */
    wg__added_token *added;                  /* by number in added_texts */
    int64_t added_capacity;
    int32_t *added_by_id; /* the number in added_texts of each id, or -1; NULL: none was added */
};

/* A zeroed struct of `size` bytes that begins with a tokenizer of that kind, without special tokens
 * yet. NULL with MEMORY. */
void *wg__tokenizer_new(const wg__tokenizer_kind *kind, size_t size);

/* Fills the vocabulary. `entry` is how messages call a token, before its number counted from 1
 * ("vocab.txt: line"). [FORMAT for an empty, repeated or non-UTF-8 token] */
int wg__tokenizer_set_vocabulary(wg_tokenizer *tokenizer, int64_t count, const char *const *tokens,
                                 const char *entry);

/* Makes an id be read whole wherever `text` stands; NULL: its text in the vocabulary. A second call
 * for the same text changes what the first one said. [FORMAT for an id outside the vocabulary, or
 * another one of the same text; MEMORY] */
int wg__tokenizer_add(wg_tokenizer *tokenizer, const char *text, const wg__added_token *token);

/* Gives a special token its meaning, and adds it. */
int wg__tokenizer_set_special(wg_tokenizer *tokenizer, wg_special_token which, int32_t id);

/* The same for the token of that name, if the vocabulary has it. */
int wg__tokenizer_name_special(wg_tokenizer *tokenizer, wg_special_token which, const char *name);

/* Finds every special token that has none yet by the names that published vocabularies use. */
int wg__tokenizer_find_special(wg_tokenizer *tokenizer);

/* Forgets all added and special tokens. */
void wg__tokenizer_clear_added(wg_tokenizer *tokenizer);

/* ---- JSON ---- */

/* Numbers as a JSON list; NULL without memory. */
json_t *wg__numbers_to_json(int64_t count, const double *numbers);

/* The numbers of a JSON list that must have so many, freed with wg__free. `key` is how messages
 * call it. NULL with FORMAT or MEMORY. */
double *wg__numbers_of_json(const json_t *json, int64_t count, const char *key, const char *where);

/* ---- Reading files: each of these makes a tokenizer of what was found to be its format. `name` is
 * how messages call it. ---- */

/* Our own JSON, once it is parsed. */
wg_tokenizer *wg__tokenizer_from_json_root(const json_t *root);

/* llama2.c's tokenizer.bin, from memory. NULL with FORMAT or MEMORY. */
wg_tokenizer *wg__llama2c_read(const char *bytes, int64_t length, const char *name);

/* Parses JSON, checked to be of no more than 2^31 - 1 bytes. NULL with FORMAT or MEMORY. */
json_t *wg__tokenizer_parse_json(const char *json, int64_t length, const char *name);

#endif
