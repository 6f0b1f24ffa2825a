/* Internal interface of the tokenizers: the struct that each kind begins with, the record of
 * functions through which tokenizer.c calls a kind, and the readers and writers of file formats. A
 * new kind is one file with one such record, which files.c lists.
 *
 *     text  "see <|endoftext|>it"        the kind encodes the stretches ...
 *             |         |       |
 *           kind      added    kind      ... between the added tokens, which are found first
 */
#ifndef WG_DATA_TOKENIZER_KIND_H
#define WG_DATA_TOKENIZER_KIND_H

#include <jansson.h>

#include "base/array.h"
#include "base/json.h"
#include "base/string_table.h"
#include "data/tokenizer/tokenizer.h"

/* What decoding one id must know of the ids before it; {0} at the beginning. */
typedef struct wg__decode_state {
    bool begun; /* an id that is not special has been decoded */
    bool space; /* the next word needs a space before it */
    bool open;  /* a straight double quote is open */
    int script; /* of the last character, as the kind tells scripts apart */
} wg__decode_state;

/* Receives the ids of a text. `drain` empties the list from time to time, so that encoding a text
 * of any size takes little memory. */
typedef struct wg__token_sink {
    wg_token_list list;
    int (*drain)(void *context); /* empties the list; NULL: the list keeps all ids */
    void *context;
} wg__token_sink;

/* Drains the list if it is long. A kind calls this after a word or the like, when it will not read
 * or take back any id of the list. */
int wg__token_sink_flush(wg__token_sink *sink);

/* wg_tokenizer_encode into a sink; the text must be valid UTF-8. */
int wg__tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                         const wg_encode_options *options, wg__token_sink *sink);

struct wg__merge_training;

typedef struct wg__tokenizer_kind {
    const char *name;

    /* Appends the ids of a stretch of UTF-8 text, not empty, that contains no added token. `first`:
     * the stretch begins the text. After a failure tokenizer.c removes the ids appended so far. */
    int (*encode)(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink);

    /* Appends the bytes of an id of the vocabulary; they need not be whole characters. */
    int (*decode)(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text);

    /* The options as a new JSON object; NULL without memory. */
    json_t *(*options_to_json)(const wg_tokenizer *tokenizer);

    /* A tokenizer from such an object and a vocabulary. */
    wg_tokenizer *(*from_json)(const json_t *options, int64_t count, const char *const *tokens);

    /* Counts the words of a text, between which no merge joins pieces. NULL: the vocabulary cannot
     * be extended. merges.h */
    int (*count_words)(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                       struct wg__merge_training *words);

    /* Appends the ids of such a word, none if a piece of it cannot be joined to others. NULL:
     * `encode` does. */
    int (*encode_word)(const wg_tokenizer *tokenizer, const char *word, int64_t length,
                       wg__token_sink *sink);

    /* Adds what the options say of each learnt piece. NULL: they say nothing, or only the merges.
     */
    int (*extend_options)(const wg_tokenizer *tokenizer, const struct wg__merge_training *words,
                          json_t *options);

    /* Frees what the kind's struct owns, but not the struct; NULL: nothing. */
    void (*clear)(wg_tokenizer *tokenizer);
} wg__tokenizer_kind;

/* A token that is found in a text as a whole, before the kind encodes what is around it. */
typedef struct wg__added_token {
    int32_t id;
    bool special;     /* only found if the caller asks for special tokens */
    bool strip_left;  /* it includes the white space before it */
    bool strip_right; /* and after it */
    bool normalized;  /* it would have to be found in the normalized text, which is refused */
} wg__added_token;

extern const wg__tokenizer_kind wg__bpe_kind;
extern const wg__tokenizer_kind wg__byte_kind;
extern const wg__tokenizer_kind wg__char_kind;
extern const wg__tokenizer_kind wg__llama2c_kind;
extern const wg__tokenizer_kind wg__sentencepiece_kind;
extern const wg__tokenizer_kind wg__wordpiece_kind;

struct wg_tokenizer {
    const wg__tokenizer_kind *kind;
    wg__strings vocabulary;
    int32_t special[WG_TOKEN_SPECIAL_COUNT]; /* ids; -1: none */
    wg__strings added_texts;                 /* of the added tokens, as they stand in a text */
    wg__added_token *added;                  /* by number in added_texts */
    int64_t added_capacity;
    int32_t *added_by_id; /* each id's number in added_texts, or -1; NULL: no token was added */
};

/* A zeroed struct of `size` bytes that begins with a tokenizer of that kind, without special
 * tokens. NULL with MEMORY. */
void *wg__tokenizer_new(const wg__tokenizer_kind *kind, size_t size);

/* The tokenizer if status is 0; else frees it and returns NULL. */
wg_tokenizer *wg__tokenizer_checked(wg_tokenizer *tokenizer, int status);

/* Fills the vocabulary. `entry` names a token in messages, followed by its number from 1 on
 * ("vocab.txt: line"). [FORMAT for an empty, repeated or non-UTF-8 token] */
int wg__tokenizer_set_vocabulary(wg_tokenizer *tokenizer, int64_t count, const char *const *tokens,
                                 const char *entry);

/* Adds a token: its id stands for every occurrence of `text` (NULL: its text in the vocabulary). A
 * second call for the same text replaces the first. [FORMAT for an id outside the vocabulary, or
 * two ids of one text; MEMORY] */
int wg__tokenizer_add(wg_tokenizer *tokenizer, const char *text, const wg__added_token *token);

/* How an added token stands in a text; of any other token the text in the vocabulary. */
const char *wg__tokenizer_added_text(const wg_tokenizer *tokenizer, int32_t id);

/* Makes `id` the special token `which`, and adds it. */
int wg__tokenizer_set_special(wg_tokenizer *tokenizer, wg_special_token which, int32_t id);

/* The same for the token `name`, if the vocabulary has it. */
int wg__tokenizer_name_special(wg_tokenizer *tokenizer, wg_special_token which, const char *name);

/* Sets each special token that is not set yet by the names that published vocabularies use. */
int wg__tokenizer_find_special(wg_tokenizer *tokenizer);

/* True for the id of any special token, also of one that wg_special_token does not name. */
bool wg__tokenizer_is_special(const wg_tokenizer *tokenizer, int32_t id);

/* True if a word begins with this token, wherever it stands: one of WordPiece without "##", one of
 * another kind that begins with white space. The first token of a text begins a word in any case.
 */
bool wg__token_begins_word(const wg_tokenizer *tokenizer, int32_t id);

/* Removes all added and special tokens. */
void wg__tokenizer_clear_added(wg_tokenizer *tokenizer);

/* What is learnt from: a text (a negative length: up to its NUL), or the files of these paths. */
typedef struct wg__texts {
    const char *text; /* NULL: files */
    int64_t length;
    int count;
    const char *const *paths;
} wg__texts;

/* Calls `add` with each text and its name, a path or "the text". [NOT_FOUND, IO, or what `add`
 * fails with] */
int wg__each_text(const wg__texts *texts, const char *where,
                  int (*add)(void *context, const char *text, int64_t length, const char *name),
                  void *context);

/* Records that the texts are empty. -1 with FORMAT. */
int wg__fail_without_text(const wg__texts *texts, const char *where);

/* ---- JSON ---- */

/* Appends JSON as text. [MEMORY] */
int wg__json_dump(const json_t *json, size_t flags, wg__text *out);

/* Parses JSON. NULL with FORMAT. `name` names it in messages. */
json_t *wg__json_parse(const char *json, int64_t length, const char *name);

/* Numbers as a JSON list; NULL without memory. */
json_t *wg__numbers_to_json(int64_t count, const double *numbers);

/* The numbers of a JSON list of exactly `count`, freed with wg__free. `key` names it in messages.
 * NULL with FORMAT or MEMORY. */
double *wg__numbers_of_json(const json_t *json, int64_t count, const char *key, const char *where);

/* ---- Readers: a tokenizer from a file of a known format. `name` names the file in messages. NULL
 * with FORMAT or MEMORY. ---- */

/* True if a folder has a file that wg_tokenizer_load reads. files.c */
bool wg__tokenizer_is_in(const char *folder);

/* The JSON of wg_tokenizer_save. files.c */
wg_tokenizer *wg__tokenizer_of_json(const json_t *root);

/* llama2.c's tokenizer.bin. llama2c.c */
wg_tokenizer *wg__llama2c_read(const char *bytes, int64_t length, const char *name);

/* SentencePiece's tokenizer.model. sentencepiece_model.c */
wg_tokenizer *wg__sentencepiece_read(const char *bytes, int64_t length, const char *name);

/* Hugging Face's tokenizer.json. huggingface.c */
wg_tokenizer *wg__huggingface_read(const json_t *root, const char *name);

/* ---- Writers: each appends a file to `out` and returns 1; 0, without an error, if the format
 * cannot express this tokenizer; -1 with MEMORY. ---- */

/* llama2.c's tokenizer.bin, also of a SentencePiece BPE with LLaMA's layout. llama2c.c */
int wg__llama2c_write(const wg_tokenizer *tokenizer, wg__text *out);

/* SentencePiece's tokenizer.model. sentencepiece_model.c */
int wg__sentencepiece_write(const wg_tokenizer *tokenizer, wg__text *out);

/* Hugging Face's tokenizer.json, of any kind but llama2c. For WordPiece it names that library's
 * folding of rare characters. huggingface_write.c */
int wg__huggingface_write(const wg_tokenizer *tokenizer, wg__text *out);

/* llama2.c's tokenizer as the SentencePiece BPE from which it was made: spaces are U+2581, and each
 * text begins with one. Freed with wg_tokenizer_free. [MEMORY; FORMAT if it has two names for a
 * space] */
wg_tokenizer *wg__llama2c_to_sentencepiece(const wg_tokenizer *tokenizer);

#endif
