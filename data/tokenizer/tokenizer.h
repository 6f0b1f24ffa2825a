/* Tokenizers: text to ids of a vocabulary and back.
 *
 * All kinds of tokenizers have the same type and the same functions:
 *
 *     wordpiece       BERT's
 *     bpe             byte-level byte-pair encoding, GPT-2's
 *     char, byte      a token for each character, or for each byte
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

/* A growing list of ids. {0} is an empty list. */
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

/* ---- Properties; NULL, 0 or -1 for a NULL tokenizer ---- */

/* "wordpiece"...; borrowed. */
WG_API const char *wg_tokenizer_kind(const wg_tokenizer *tokenizer);

/* The size of the vocabulary: ids are 0 .. size - 1. */
WG_API int64_t wg_tokenizer_size(const wg_tokenizer *tokenizer);

/* The text of a token in the vocabulary ("##ing", "\u0120the", "\u2581the", "<0x0A>"); borrowed.
 * NULL for an id outside the vocabulary. */
WG_API const char *wg_tokenizer_token(const wg_tokenizer *tokenizer, int32_t id);

/* The id of a token by its text in the vocabulary, or -1. */
WG_API int32_t wg_tokenizer_id(const wg_tokenizer *tokenizer, const char *token);

/* The id of a special token, or -1 if the vocabulary lacks it. */
WG_API int32_t wg_tokenizer_special(const wg_tokenizer *tokenizer, wg_special_token which);

/* ---- Encoding and decoding ---- */

typedef struct wg_encode_options {
    bool special_tokens; /* encode "[MASK]", "<|endoftext|>"... in the text as special tokens, not
                          * as ordinary text */
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

/* The text of ids. Lossless kinds (bpe, byte, char, sentencepiece without normalization) restore
 * the exact text. WordPiece joins pieces to words, spaces words and punctuation as in English, and
 * puts no spaces between Chinese and Japanese characters; case, accents and spacing are lost. The
 * result is always UTF-8: invalid bytes become U+FFFD. It may contain U+0000, which looks like its
 * end; a wg_decode_stream gives lengths. The caller frees it with wg_text_free. [INDEX for an id
 * outside the vocabulary] */
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

/* Makes a stream; the tokenizer must outlive it. Freed with wg_decode_stream_free. [MEMORY] */
WG_API wg_decode_stream *wg_decode_stream_new(const wg_tokenizer *tokenizer,
                                              const wg_decode_options *options);

/* Decodes one more id to the characters that are complete now; may be empty, since the stream keeps
 * the bytes of an unfinished character. *length, unless NULL, is the number of bytes, as the text
 * may contain U+0000. Borrowed until the next call. [INDEX, MEMORY] */
WG_API const char *wg_decode_stream_next(wg_decode_stream *stream, int32_t id, int64_t *length);

/* Ends a text: U+FFFD for an unfinished character, or "". The stream may then begin a new text.
 * Borrowed until the next call. [MEMORY] */
WG_API const char *wg_decode_stream_end(wg_decode_stream *stream, int64_t *length);

/* Frees a stream; NULL is allowed. */
WG_API void wg_decode_stream_free(wg_decode_stream *stream);

/* ---- Saving and loading ---- */

/* The whole tokenizer as a JSON text:
 * {"format": "wengert-tokenizer", "kind": "wordpiece", "options": {...}, "vocabulary": [...],
 *  "special": {"mask": 4, ...}, "added": [...]}.
 * The caller frees it with wg_text_free. */
WG_API char *wg_tokenizer_to_json(const wg_tokenizer *tokenizer);

/* The tokenizer of a JSON text from wg_tokenizer_to_json. [FORMAT] */
WG_API wg_tokenizer *wg_tokenizer_from_json(const char *json);

/* Writes the text of wg_tokenizer_to_json: to a temporary file, which is then renamed. [IO] */
WG_API int wg_tokenizer_save(const wg_tokenizer *tokenizer, const char *path);

/* Writes a tokenizer into an existing folder, in all published formats that can express it:
 * vocab.txt (WordPiece); vocab.json and merges.txt (bpe); Hugging Face's tokenizer.json;
 * SentencePiece's tokenizer.model; llama2.c's tokenizer.bin. *published: true if at least one of
 * these was written. Always writes tokenizer_config.json, special_tokens_map.json and the
 * wengert.json of wg_tokenizer_save. [IO, MEMORY] */
WG_API int wg_tokenizer_export(const wg_tokenizer *tokenizer, const char *folder, bool *published);

/* Reads a tokenizer from a file, and detects the format from the content: a checkpoint with a
 * tokenizer; JSON of wg_tokenizer_save; Hugging Face's tokenizer.json; GPT-2's vocab.json and
 * merges.txt (encoder.json, vocab.bpe) in the same folder, by the path of either; a SentencePiece
 * tokenizer.model (BPE or unigram); llama2.c's tokenizer.bin. Any other text is a vocab.txt of
 * WordPieces, lower-cased unless a tokenizer_config.json beside it has "do_lower_case": false. In a
 * folder, reads the first of wengert.json, tokenizer.json, tokenizer.model, vocab.json,
 * encoder.json, vocab.txt and tokenizer.bin. [NOT_FOUND, IO; FORMAT for a damaged file, or with the
 * name of an unsupported feature] */
WG_API wg_tokenizer *wg_tokenizer_load(const char *path);

/* Frees a tokenizer; NULL is allowed. */
WG_API void wg_tokenizer_free(wg_tokenizer *tokenizer);

/* ---- Extending a vocabulary
 *
 * A tokenizer that was trained on other texts splits the words of a new domain into many pieces.
 * Byte-pair merging continues on the new texts: the most frequent pair of neighbouring tokens in
 * their words becomes a token. Existing ids do not change; new ids follow.
 *
 *     peri ##card ##itis   ->   peri ##carditis   ->   pericarditis
 * ---- */

typedef struct wg_vocabulary_extension {
    wg_tokenizer *tokenizer; /* the extended one */
    int64_t count;           /* the number of new tokens; their ids follow the old ids */
    int64_t *starts;         /* (count + 1): new token i was made of the old tokens ... */
    int32_t *pieces;         /* ... pieces[starts[i]] to pieces[starts[i + 1] - 1] */
} wg_vocabulary_extension;

/* Learns up to `most` new tokens from text files, fewer if no more pairs occur twice. For
 * wordpiece, bpe and sentencepiece; sentencepiece's new pieces have at most 16 characters. Words
 * that the tokenizer cannot spell are skipped. Cleared with wg_vocabulary_extension_clear; after an
 * error there is nothing to clear. -1 with [ARGUMENT for another kind or most < 1; FORMAT for text
 * that is not UTF-8 or has no pair twice; NOT_FOUND, IO, MEMORY] */
WG_API int wg_tokenizer_extend(const wg_tokenizer *tokenizer, int count, const char *const *paths,
                               int64_t most, wg_vocabulary_extension *extension);

/* Frees the lists and the tokenizer; a caller that keeps the tokenizer sets it to NULL first. */
WG_API void wg_vocabulary_extension_clear(wg_vocabulary_extension *extension);

/* ---- Characters and bytes
 *
 * The simplest tokenizers have a token for each character, as char-rnn and nanoGPT have for
 * Shakespeare, or for each byte. Decoding restores the exact text. ---- */

/* The tokenizer of bytes: 256 tokens, <0x00> to <0xFF>; the id of a byte is its value. Freed with
 * wg_tokenizer_free. [MEMORY] */
WG_API wg_tokenizer *wg_byte_new(void);

typedef struct wg_char_training {
    bool unknown; /* the first token is <unk>; without it, encoding refuses characters that the
                   * training text does not have */
} wg_char_training;

/* The tokenizer of the characters of text files, in order of code points. U+0000, which a token
 * cannot hold, is written <0x00>. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, or empty] */
WG_API wg_tokenizer *wg_char_train_files(int count, const char *const *paths,
                                         const wg_char_training *training);

/* ---- Byte-level byte-pair encoding
 *
 * GPT-2's tokenizer   (Sennrich et al. 2016; Radford et al. 2019, section 2.2).
 *
 *     "Hello world"
 *       split by a regular expression: "Hello", " world"
 *     H e l l o   \u0120 w o r l d             bytes, each as a printable character
 *       neighbours joined, in the order of training
 *     Hello   \u0120world
 *
 * Encoding accepts any text, and decoding restores it exactly. With the published files the ids
 * equal the ids of openai/gpt-2's encoder.py, except for characters that are in only one of the
 * Unicode tables. wg_tokenizer_load reads vocab.json with merges.txt, and wg_tokenizer_export
 * writes them. ---- */

typedef struct wg_bpe_options {
    const char *pattern; /* the regular expression that splits texts; NULL: GPT-2's */
    bool prefix_space;   /* put a space before a text that does not begin with a space */
    bool whole_words;    /* a part that equals a token becomes the token, without merging */
} wg_bpe_options;

typedef struct wg_bpe_training {
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pairs to merge */
    int64_t min_frequency;   /* rarer pairs of pieces are not merged; 0: 2 */
    wg_bpe_options options;
} wg_bpe_training;

/* Learns a vocabulary from all words of some text files: the 256 bytes in GPT-2's order, then
 * merges, then "<|endoftext|>", which vocabulary_size includes. Each merge joins the most frequent
 * pair of neighbours in the parts of the text; of equally frequent pairs the first by the order of
 * their tokens, so the vocabulary is the same on all machines. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, or empty; ARGUMENT for a vocabulary below 257]
 */
WG_API wg_tokenizer *wg_bpe_train_files(int count, const char *const *paths,
                                        const wg_bpe_training *training);

/* ---- WordPiece
 *
 * BERT's tokenizer   (Devlin et al. 2019; Wu et al. 2016, section 4.1).
 *
 *     "Unaffable, isn't it?"
 *       clean, lower-case, NFD without accents, split at spaces, CJK and punctuation
 *     unaffable  ,  isn  '  t  it  ?
 *       longest match from the left; pieces that continue a word begin with ##
 *     un ##aff ##able  ,  isn  '  t  it  ?
 *
 * With the published vocabularies the ids equal the ids of google-research/bert's tokenization.py,
 * except for characters that Unicode assigned after the release of that Python. ---- */

typedef struct wg_wordpiece_options {
    bool cased;              /* keep capitals and accents, as the cased models do */
    int max_word_characters; /* longer words become [UNK]; 0: 200, as published (others use 100) */
    bool huggingface;        /* fold rare characters like huggingface/tokenizers, not like
                              * google-research/bert; set for a tokenizer.json */
} wg_wordpiece_options;

/* How a vocabulary encodes its training text. */
typedef struct wg_wordpiece_report {
    int64_t tokens, unknown;   /* of the whole text; `unknown` tokens are [UNK] */
    int64_t alphabet;          /* characters in the vocabulary */
    int64_t wanted_alphabet;   /* characters that alphabet_limit asks for */
    int64_t wanted_vocabulary; /* the smallest vocabulary with all wanted characters */
} wg_wordpiece_report;

typedef struct wg_wordpiece_training {
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pairs to merge */
    int64_t min_frequency;   /* rarer pairs of pieces are not merged; 0: 2 */
    int64_t alphabet_limit;  /* keeps only this number of the most frequent characters; 0: the
                              * characters that make up 99.95 % of the text, at least 1000, fewer
                              * in a small vocabulary */
    wg_wordpiece_options options;
    wg_wordpiece_report *report; /* output; may be NULL */
} wg_wordpiece_training;

/* Learns a vocabulary from all words of some text files: [PAD] [UNK] [CLS] [SEP] [MASK], then the
 * characters (each as the beginning of a word, and with ## if it occurs in longer words), then
 * merges. Each merge joins the most frequent pair of neighbouring pieces in the words (byte-pair
 * encoding, Sennrich et al. 2016); of equally frequent pairs the first in byte order, so the
 * vocabulary is the same on all machines. Freed with wg_tokenizer_free. [NOT_FOUND, IO; FORMAT for
 * text that is not UTF-8 or has no words; ARGUMENT, with a sufficient size, for a vocabulary that
 * is too small for the special tokens and the characters (1000 of the default alphabet)] */
WG_API wg_tokenizer *wg_wordpiece_train_files(int count, const char *const *paths,
                                              const wg_wordpiece_training *training);

/* ---- Training of SentencePiece vocabularies
 *
 * BPE (Sennrich et al. 2016) or the unigram language model (Kudo 2018), as in SentencePiece (Kudo &
 * Richardson 2018).
 *
 *     "low lower  low"
 *       each word begins with U+2581; runs of letters, digits and other characters are split
 *     \u2581low x 2   \u2581lower
 *       the most frequent pair of neighbours is joined first
 *     <unk> <s> </s>   [<0x00> ... <0xFF>]   lo \u2581lo \u2581low ...   o l w \u2581 ...
 *       special        bytes, if asked for   merges in order             characters by count
 *     <unk> <s> </s>   [<0x00> ... <0xFF>]   \u2581low \u2581lower we   e l o w \u2581 ...
 *       unigram, the same words              pieces and characters, the most probable first
 *
 * A piece has at most 16 characters: only letters, only digits, or only other characters.
 *
 * The model has SentencePiece's normalizer "identity": it changes no characters, removes white
 * space at the ends of a text, replaces several spaces by one, and puts a space before the text.
 * ---- */

typedef struct wg_sentencepiece_training {
    bool unigram;            /* or BPE */
    int64_t vocabulary_size; /* 0: 4096; fewer if the text has no more pieces to learn */
    int64_t min_frequency;   /* BPE: rarer pairs of pieces are not merged; 0: 2 */
    int64_t alphabet_limit;  /* only this number of the most frequent characters become pieces; 0:
                              * the characters that make up 99.95 % of the text */
    bool byte_fallback;      /* encode other characters as bytes, not as <unk> */
} wg_sentencepiece_training;

/* Learns a vocabulary from all words of some text files. <unk>, <s> and </s> have the ids 0, 1
 * and 2. Of equally frequent pairs the first in byte order is joined. Freed with wg_tokenizer_free.
 * [NOT_FOUND, IO; FORMAT for text that is not UTF-8, or has no words; ARGUMENT for a vocabulary
 * that is too small for the characters; MEMORY] */
WG_API wg_tokenizer *wg_sentencepiece_train_files(int count, const char *const *paths,
                                                  const wg_sentencepiece_training *training);

WG_END_DECLS

#endif
