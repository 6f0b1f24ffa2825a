/* Tokenizers: text to ids of a vocabulary and back.
 *
 * One type serves every kind: the kinds differ in how they are made, never in how they are used.
 *
 *     wordpiece       BERT's
 *     bpe             byte-level byte-pair encoding, GPT-2's
 *     char, byte      one token a character, one token a byte
 *     sentencepiece   BPE and unigram: LLaMA's, T5's, GLM's
 *     llama2c         llama2.c's tokenizer.bin; only read from files
 *
 *     wg_tokenizer *tokenizer = wg_tokenizer_load("vocab.txt");
 *     wg_token_list list = {0};
 *     if (wg_tokenizer_encode(tokenizer, "Call me Ishmael.", -1, NULL, &list) == 0)
 *         use(list.ids, list.count);
 *     wg_token_list_free(&list);
 *     wg_tokenizer_free(tokenizer);
 *
 * A tokenizer does not change after it has been made, so threads may share it. */
#ifndef WG_DATA_TOKENIZER_TOKENIZER_H
#define WG_DATA_TOKENIZER_TOKENIZER_H

#include "../../base/alloc.h"
#include "../../tensor/tensor.h"

WG_BEGIN_DECLS

typedef struct wg_tokenizer wg_tokenizer;

/* A list of ids that grows. {0} is an empty list. */
typedef struct wg_token_list {
    int32_t *ids;
    int64_t count, capacity;
} wg_token_list;

/* Appends one id. [MEMORY] */
WG_API int wg_token_list_append(wg_token_list *list, int32_t id);

/* Frees the ids and makes the list empty. */
WG_API void wg_token_list_free(wg_token_list *list);

/* Tokens with a special meaning. */
typedef enum wg_special_token {
    WG_TOKEN_PAD,
    WG_TOKEN_UNKNOWN,
    WG_TOKEN_CLASS,
    WG_TOKEN_SEPARATOR,
    WG_TOKEN_MASK,
    WG_TOKEN_BEGIN, /* of a text; GPT-2's <|endoftext|> is both BEGIN and END */
    WG_TOKEN_END,
    WG_TOKEN_SPECIAL_COUNT
} wg_special_token;

/* ---- Properties. Of NULL they are NULL, 0 or -1. ---- */

/* "wordpiece"...; borrowed. */
WG_API const char *wg_tokenizer_kind(const wg_tokenizer *tokenizer);

/* The size of the vocabulary: ids are 0 .. size - 1. */
WG_API int64_t wg_tokenizer_size(const wg_tokenizer *tokenizer);

/* The text of a token in the vocabulary ("##ing", "\u0120the", "\u2581the", "<0x0A>"); borrowed.
 * NULL for an id outside the vocabulary. */
WG_API const char *wg_tokenizer_token(const wg_tokenizer *tokenizer, int32_t id);

/* The id of a token by its text in the vocabulary, or -1. */
WG_API int32_t wg_tokenizer_id(const wg_tokenizer *tokenizer, const char *token);

/* The id of a special token, or -1 if this vocabulary has none. */
WG_API int32_t wg_tokenizer_special(const wg_tokenizer *tokenizer, wg_special_token which);

/* ---- Encoding and decoding ---- */

typedef struct wg_encode_options {
    bool special_tokens; /* "[MASK]", "<|endoftext|>" and the like in the text become special
                          * tokens; otherwise they are ordinary text */
} wg_encode_options;

/* Appends the ids of a UTF-8 text to `list`. length is in bytes; -1: up to the first NUL. No
 * special tokens are added around the text: the batch builder adds [CLS] and [SEP], begin and end.
 * On failure the list is unchanged. [FORMAT for text that is not UTF-8, with the offset, or for an
 * unknown character if the tokenizer has no unknown token; MEMORY] */
WG_API int wg_tokenizer_encode(const wg_tokenizer *tokenizer, const char *text, int64_t length,
                               const wg_encode_options *options, wg_token_list *list);

typedef struct wg_decode_options {
    bool skip_special; /* omit special tokens */
    bool plain;        /* WordPiece: one space between words, also around punctuation */
} wg_decode_options;

/* The text of ids. Lossless kinds (bpe, byte, char, sentencepiece without normalisation) restore
 * the exact text. WordPiece joins pieces to words, and spaces words and punctuation as in English,
 * and Chinese and Japanese characters not at all; case, accents and spacing are lost. The result is
 * always UTF-8: invalid bytes become U+FFFD. It may contain U+0000, which looks like its end; a
 * stream tells lengths. The caller frees it with wg_text_free. [INDEX for an id outside the
 * vocabulary] */
WG_API char *wg_tokenizer_decode(const wg_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                                 const wg_decode_options *options);

/* Incremental decoding, for showing a text while it is generated: the concatenated results equal
 * wg_tokenizer_decode of all ids.
 *
 *     wg_decode_stream *stream = wg_decode_stream_new(tokenizer, NULL);
 *     while ((id = next()) != end)
 *         fputs(wg_decode_stream_next(stream, id, NULL), stdout);
 *     puts(wg_decode_stream_end(stream, NULL));
 *     wg_decode_stream_free(stream);
 */
typedef struct wg_decode_stream wg_decode_stream;

/* A stream, which the tokenizer must outlive. Freed with wg_decode_stream_free. [MEMORY] */
WG_API wg_decode_stream *wg_decode_stream_new(const wg_tokenizer *tokenizer,
                                              const wg_decode_options *options);

/* The whole characters that one more id adds; may be empty, since the bytes of an unfinished
 * character are held back. *length, unless NULL, is the number of bytes, as the text may contain
 * U+0000. Borrowed until the next call. [INDEX, MEMORY] */
WG_API const char *wg_decode_stream_next(wg_decode_stream *stream, int32_t id, int64_t *length);

/* Ends a text: U+FFFD for an unfinished character, or "". The stream is then at the beginning of a
 * new text. Borrowed until the next call. [MEMORY] */
WG_API const char *wg_decode_stream_end(wg_decode_stream *stream, int64_t *length);

/* Frees a stream; NULL is allowed. */
WG_API void wg_decode_stream_free(wg_decode_stream *stream);

/* ---- Saving and loading ---- */

/* Everything needed to encode and decode, as one JSON text:
 * {"format": "wengert-tokenizer", "kind": "wordpiece", "options": {...}, "vocabulary": [...],
 *  "special": {"mask": 4, ...}, "added": [...]}.
 * The caller frees it with wg_text_free. */
WG_API char *wg_tokenizer_to_json(const wg_tokenizer *tokenizer);

/* The tokenizer of a text of wg_tokenizer_to_json. [FORMAT] */
WG_API wg_tokenizer *wg_tokenizer_from_json(const char *json);

/* Writes that JSON to a file, beside it first and then renamed. [IO] */
WG_API int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path);

/* Writes a tokenizer into an existing folder, in each format of other programs that can express it:
 * vocab.txt (WordPiece); vocab.json and merges.txt (bpe); Hugging Face's tokenizer.json;
 * SentencePiece's tokenizer.model; llama2.c's tokenizer.bin; also tokenizer_config.json,
 * special_tokens_map.json and the wengert.json of wg_tokenizer_save. *published: at least one of
 * the former formats was written. [IO, MEMORY] */
WG_API int wg_tokenizer_export(const wg_tokenizer *tokenizer, const char *folder, bool *published);

/* Reads a tokenizer from a file, whose format is detected from its content: a checkpoint with a
 * tokenizer; JSON of wg_tokenizer_save; Hugging Face's tokenizer.json; GPT-2's vocab.json or
 * merges.txt (encoder.json, vocab.bpe), with the other file beside it; a SentencePiece
 * tokenizer.model (BPE or unigram); llama2.c's tokenizer.bin; any other text is a vocab.txt of
 * WordPieces, lower-cased unless a tokenizer_config.json beside it has "do_lower_case": false. Of a
 * folder, the first of wengert.json, tokenizer.json, tokenizer.model, vocab.json, encoder.json,
 * vocab.txt and tokenizer.bin is read. [NOT_FOUND, IO; FORMAT for a damaged file, or an unsupported
 * feature by its name] */
WG_API wg_tokenizer *wg_tokenizer_load(const char *path);

/* Frees a tokenizer; NULL is allowed. */
WG_API void wg_tokenizer_free(wg_tokenizer *tokenizer);

/* ---- Extending a vocabulary ----
 * A tokenizer that was learnt elsewhere cuts the words of a new domain into many pieces. Byte-pair
 * merging goes on where it ended: the most frequent pair of neighbouring tokens in the words of the
 * new text becomes a token. All ids stay as they are, new ones follow.
 *
 *     peri ##card ##itis   ->   peri ##carditis   ->   pericarditis
 */

typedef struct wg_vocabulary_extension {
    wg_tokenizer *tokenizer; /* the extended one */
    int64_t count;           /* of new tokens; their ids follow those of the old tokenizer */
    int64_t *starts;         /* count + 1 of them: new token i was made of the old tokens ... */
    int32_t *pieces;         /* ... pieces[starts[i]] to pieces[starts[i + 1] - 1] */
} wg_vocabulary_extension;

/* Learns up to `most` new tokens from text files: fewer where no more pairs occur twice. WordPiece,
 * bpe and sentencepiece, whose pieces grow to 16 characters at most. Words that the tokenizer
 * cannot spell are left out. Cleared with wg_vocabulary_extension_clear; after an error there is
 * nothing to clear. -1 with [ARGUMENT for another kind or most < 1; FORMAT for text that is not
 * UTF-8 or in which no pair occurs twice; NOT_FOUND, IO, MEMORY] */
WG_API int wg_tokenizer_extend(const wg_tokenizer *tokenizer, int count, const char *const *paths,
                               int64_t most, wg_vocabulary_extension *extension);

/* Frees the tokenizer, unless the caller has taken it out and set it to NULL, and the lists. */
WG_API void wg_vocabulary_extension_clear(wg_vocabulary_extension *extension);

/* The simplest tokenizers: one token a character, as char-rnn and nanoGPT do for Shakespeare, or
 * one a byte. Any text that they encode decodes to exactly that text. */

/* The tokenizer of bytes: 256 tokens, <0x00> to <0xFF>; the id of a byte is its value. Freed with
 * wg_tokenizer_free. [MEMORY] */
WG_API wg_tokenizer *wg_byte_new(void);

typedef struct wg_char_training {
    bool unknown; /* the first token is <unk>, for characters that the text does not have; without
                   * it such characters cannot be encoded */
} wg_char_training;

/* The tokenizer of the characters of text files, in order of code points. U+0000, which a token
 * cannot hold, is written <0x00>. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, or empty] */
WG_API wg_tokenizer *wg_char_train_files(int count, const char *const *paths,
                                         const wg_char_training *training);

/* Byte-level byte-pair encoding, GPT-2's   (Sennrich et al. 2016; Radford et al. 2019,
 * section 2.2).
 *
 *     "Hello world"
 *       split by a regular expression: "Hello", " world"
 *     H e l l o   \u0120 w o r l d             bytes, each as a character that prints
 *       neighbours joined, the pairs that were learnt first before the later ones
 *     Hello   \u0120world
 *
 * Any text has ids, and they decode to exactly that text. With the published files the ids equal
 * those of openai/gpt-2's encoder.py, except for characters that only one of the two Unicode tables
 * knows. wg_tokenizer_load reads vocab.json with merges.txt, and wg_tokenizer_export writes them.
 */

typedef struct wg_bpe_options {
    const char *pattern; /* the regular expression that splits texts; NULL: GPT-2's */
    bool prefix_space;   /* put a space before a text that does not begin with one */
    bool whole_words;    /* a part that equals a token is that token, whatever the merges are */
} wg_bpe_options;

typedef struct wg_bpe_training {
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pairs to merge */
    int64_t min_frequency;   /* a pair of pieces seen less often is not merged; 0: 2 */
    wg_bpe_options options;
} wg_bpe_training;

/* Learns a vocabulary from text files, counted together: the 256 bytes, in the order of their
 * characters as in GPT-2's, then merges, then "<|endoftext|>", which vocabulary_size counts. Each
 * merge joins the most frequent pair of neighbours in the parts of the text, of equals the first in
 * order of their tokens, so the vocabulary is the same everywhere. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, or empty; ARGUMENT for a vocabulary below 257]
 */
WG_API wg_tokenizer *wg_bpe_train_files(int count, const char *const *paths,
                                        const wg_bpe_training *training);

/* WordPiece as BERT defines it   (Devlin et al. 2019; Wu et al. 2016, section 4.1).
 *
 *     "Unaffable, isn't it?"
 *       clean, lower-case, NFD without accents, split at spaces, CJK and punctuation
 *     unaffable  ,  isn  '  t  it  ?
 *       longest match from the left; pieces that continue a word begin with ##
 *     un ##aff ##able  ,  isn  '  t  it  ?
 *
 * With the published vocabularies the ids equal those of google-research/bert's tokenization.py on
 * any text, except for characters that Unicode assigned after that Python was released. */

typedef struct wg_wordpiece_options {
    bool cased;              /* keep capitals and accents, as the cased models do */
    int max_word_characters; /* longer words become [UNK]; 0: 200, as published (others use 100) */
    bool huggingface;        /* fold rare characters as huggingface/tokenizers does, not as
                              * google-research/bert; a tokenizer.json means this */
} wg_wordpiece_options;

/* What a vocabulary makes of the text that it was learnt from. */
typedef struct wg_wordpiece_report {
    int64_t tokens, unknown; /* of the whole text; `unknown` of them are [UNK] */
    int64_t alphabet;        /* characters that the vocabulary has */
    int64_t wanted_alphabet; /* characters that it was to have; more if it is too small for them */
    int64_t wanted_vocabulary; /* the size that holds these */
} wg_wordpiece_report;

typedef struct wg_wordpiece_training {
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pairs to merge */
    int64_t min_frequency;   /* a pair of pieces seen less often is not merged; 0: 2 */
    int64_t alphabet_limit;  /* only so many of the most frequent characters; 0: as many as make up
                              * 99.95 % of the text, at least 1000, as far as the vocabulary holds
                              * them */
    wg_wordpiece_options options;
    wg_wordpiece_report *report; /* is filled in; NULL: it is not wanted */
} wg_wordpiece_training;

/* Learns a vocabulary from text files, counted together: [PAD] [UNK] [CLS] [SEP] [MASK], then the
 * characters of the text (each as the beginning of a word, and with ## if it occurs within longer
 * words), then merges. Each merge joins the most frequent pair of neighbouring pieces in the words
 * of the text (byte-pair encoding, Sennrich et al. 2016), of equals the first in byte order, so the
 * vocabulary is the same everywhere. Freed with wg_tokenizer_free. [NOT_FOUND, IO; FORMAT for text
 * that is not UTF-8 or has no words; ARGUMENT for a vocabulary that cannot hold the specials and
 * the characters (of the default alphabet: 1000 of them), saying what size can] */
WG_API wg_tokenizer *wg_wordpiece_train_files(int count, const char *const *paths,
                                              const wg_wordpiece_training *training);

/* Learning a SentencePiece vocabulary: BPE (Sennrich et al. 2016) or the unigram language model
 * (Kudo 2018), as in SentencePiece (Kudo & Richardson 2018).
 *
 *     "low lower  low"
 *       each word begins with U+2581; letters, digits and other characters are counted apart
 *     \u2581low x 2   \u2581lower
 *       the most frequent pair of neighbours is joined first
 *     <unk> <s> </s>   [<0x00> ... <0xFF>]   lo \u2581lo \u2581low ...   o l w \u2581 ...
 *       special        bytes, if asked for   merges in order             characters by count
 *     <unk> <s> </s>   [<0x00> ... <0xFF>]   \u2581low \u2581lower we   e l o w \u2581 ...
 *       unigram, the same words              pieces and characters, the most probable first
 *
 * A piece has at most 16 characters, all letters, all digits or all others.
 *
 * The model has SentencePiece's normaliser "identity": characters stay as they are, white space at
 * the ends of a text is removed, several spaces become one, and each text begins with a space. */

typedef struct wg_sentencepiece_training {
    bool unigram;            /* or BPE */
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pieces to learn */
    int64_t min_frequency;   /* BPE: a pair of pieces seen less often is not merged; 0: 2 */
    int64_t alphabet_limit;  /* only the most frequent characters become pieces; 0: as many as make
                              * up 99.95 % of the text */
    bool byte_fallback;      /* other characters become their bytes, not <unk> */
} wg_sentencepiece_training;

/* Learns a vocabulary from text files, counted together. <unk>, <s> and </s> have the ids 0, 1 and
 * 2. Of equally frequent pairs the first in byte order is joined. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, or has no words; ARGUMENT for a vocabulary
 * that cannot hold the characters; MEMORY] */
WG_API wg_tokenizer *wg_sentencepiece_train_files(int count, const char *const *paths,
                                                  const wg_sentencepiece_training *training);

WG_END_DECLS

#endif
