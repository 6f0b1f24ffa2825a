/* The tokenizer.bin of karpathy/llama2.c: LLaMA's SentencePiece BPE, written by llama2.c's
 * export.py. wg_tokenizer_load reads it, wg_tokenizer_export writes it.
 *
 *     int32       the length of the longest token
 *     per token   float32 score, int32 length, bytes       little-endian, up to the end of the file
 *
 * Tokens 0 to 2 are <unk>, <s> and </s>; 3 to 258 are the bytes. Spaces are spaces, not U+2581.
 * Encoding puts a space before the text, replaces characters that are no tokens by their bytes, and
 * joins neighbours, first the pair that makes the token with the best score. The ids equal the ids
 * of run.c, except that <s> and </s> in a text are found only with the option special_tokens. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/merges.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/text_file.h"
#include "io/weights/binary_file.h"

#define WHERE "llama2c"
#define FIRST_BYTE 3        /* the token of byte 0 */
#define FIRST_PIECE 259     /* after the bytes */
#define WORST_SCORE (-1e10) /* run.c joins only to tokens with a better score */

typedef struct llama2c {
    wg_tokenizer base;
    double *scores;
    wg__pair_table merges;
    int32_t space; /* the token " " */
    int32_t ascii[128];
} llama2c;

/* Adds each pair of tokens that makes this token. */
static int add_pairs(llama2c *l, int32_t id, int32_t rank) {
    const wg__strings *vocabulary = &l->base.vocabulary;
    const char *text = wg__strings_text(vocabulary, id);
    int64_t length = wg__strings_length(vocabulary, id);
    for (int64_t head = 1; head < length; head++) {
        int64_t left = wg__strings_find(vocabulary, text, head);
        int64_t right = left < 0 ? -1 : wg__strings_find(vocabulary, text + head, length - head);
        if (right < 0)
            continue;
        wg__pair *pair = wg__pair_table_add(&l->merges, (int32_t)left, (int32_t)right);
        if (!pair)
            return -1;
        pair->first = rank;
        pair->second = id;
    }
    return 0;
}

static int fill(llama2c *l, int64_t count, const char *const *tokens, const double *scores) {
    static const struct {
        wg_special_token which;
        const char *text;
    } special[] = {{WG_TOKEN_UNKNOWN, "<unk>"}, {WG_TOKEN_BEGIN, "<s>"}, {WG_TOKEN_END, "</s>"}};
    l->scores = wg__alloc_array(count + 1, sizeof *l->scores);
    if (!l->scores)
        return -1;
    for (int64_t i = 0; i < count; i++) {
        l->scores[i] = scores[i];
        if (!isfinite(scores[i]))
            return wg_fail(WG_ERROR_FORMAT, WHERE, "the score of token %lld is not a finite number",
                           (long long)i);
    }
    if (wg__tokenizer_set_vocabulary(&l->base, count, tokens, "token") < 0)
        return -1;
    if (count < FIRST_PIECE)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%lld tokens; <unk>, <s>, </s> and the bytes alone are %d", (long long)count,
                       FIRST_PIECE);
    l->space = wg_tokenizer_id(&l->base, " ");
    if (l->space < 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "the token \" \" is missing");
    for (int byte = 0; byte < 256; byte++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", byte);
        if (wg_tokenizer_id(&l->base, text) != FIRST_BYTE + byte)
            return wg_fail(WG_ERROR_FORMAT, WHERE, "token %d is not %s", FIRST_BYTE + byte, text);
    }
    for (int32_t i = 0; i < FIRST_BYTE; i++) {
        wg__added_token token = {.id = i, .special = true};
        if (wg__tokenizer_add(&l->base, special[i].text, &token) < 0 ||
            wg__tokenizer_set_special(&l->base, special[i].which, i) < 0)
            return -1;
    }
    for (int c = 0; c < 128; c++)
        l->ascii[c] = (int32_t)wg__strings_find(&l->base.vocabulary, &(char){(char)c}, 1);
    int32_t *ranks = wg__alloc_array(count + 1, sizeof *ranks);
    int status = ranks ? wg__rank_scores(count, l->scores, ranks) : -1;
    for (int64_t i = FIRST_BYTE; status == 0 && i < count; i++)
        if (l->scores[i] > WORST_SCORE)
            status = add_pairs(l, (int32_t)i, ranks[i]);
    wg__free(ranks);
    return status;
}

static wg_tokenizer *new_llama2c(int64_t count, const char *const *tokens, const double *scores) {
    llama2c *l = wg__tokenizer_new(&wg__llama2c_kind, sizeof *l);
    return l ? wg__tokenizer_checked(&l->base, fill(l, count, tokens, scores)) : NULL;
}

static void clear(wg_tokenizer *tokenizer) {
    llama2c *l = (llama2c *)tokenizer;
    wg__free(l->scores);
    wg__pair_table_clear(&l->merges);
}

wg_tokenizer *wg__llama2c_read(const char *bytes, int64_t length, const char *name) {
    if (length < 4)
        return wg__fail_null(WG_ERROR_FORMAT, WHERE, "%s is cut short", name);
    const size_t most = (size_t)length / 9 + 1; /* a token has at least 9 bytes in the file */
    const char *at = bytes + 4, *end = bytes + length; /* skips the length of the longest token */
    char *texts = wg__alloc((size_t)length), *text = texts;
    const char **tokens = wg__alloc_array(most, sizeof *tokens);
    double *scores = wg__alloc_array(most, sizeof *scores);
    int64_t count = 0;
    int status = texts && tokens && scores ? 0 : -1;
    while (status == 0 && at < end) {
        if (end - at < 8) {
            status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s is cut short at token %lld", name,
                             (long long)count);
            break;
        }
        const uint32_t bits = wg__le32(at), size = wg__le32(at + 4);
        float score;
        memcpy(&score, &bits, sizeof score);
        at += 8;
        if (size == 0 || size > INT32_MAX || (int64_t)size > end - at)
            status =
                wg_fail(WG_ERROR_FORMAT, WHERE, "%s: token %lld has %u bytes, and %lld are left",
                        name, (long long)count, size, (long long)(end - at));
        else if (memchr(at, '\0', size))
            status = wg_fail(WG_ERROR_FORMAT, WHERE, "%s: token %lld has a NUL in it", name,
                             (long long)count);
        if (status < 0)
            break;
        tokens[count] = memcpy(text, at, size);
        scores[count++] = (double)score;
        text[size] = '\0';
        text += size + 1;
        at += size;
    }
    wg_tokenizer *tokenizer = status == 0 ? new_llama2c(count, tokens, scores) : NULL;
    wg__free(texts);
    wg__free(tokens);
    wg__free(scores);
    return tokenizer;
}

/* Copies a vocabulary to `texts` with every `from` in its pieces replaced by `to`, and with the
 * texts `special` for the special tokens. tokens[i] points into `texts`. */
static int replace_spaces(const wg__strings *vocabulary, const char *from, const char *to,
                          const char *const special[FIRST_BYTE], wg__text *texts,
                          const char **tokens) {
    int64_t *starts = wg__alloc_array(vocabulary->count + 1, sizeof *starts);
    int status = starts ? 0 : -1;
    for (int64_t i = 0; status == 0 && i < vocabulary->count; i++) {
        const char *text = i < FIRST_BYTE ? special[i] : wg__strings_text(vocabulary, i);
        starts[i] = texts->length;
        status = wg__append_replaced(texts, text, i < FIRST_PIECE ? NULL : from, to);
        if (status == 0)
            status = wg__text_append(texts, "", 1);
    }
    for (int64_t i = 0; status == 0 && i < vocabulary->count; i++)
        tokens[i] = texts->bytes + starts[i];
    wg__free(starts);
    return status;
}

static uint8_t type_of_token(int64_t id) {
    return (uint8_t)(id == 0            ? WG__PIECE_UNKNOWN
                     : id < FIRST_BYTE  ? WG__PIECE_CONTROL
                     : id < FIRST_PIECE ? WG__PIECE_BYTE
                                        : WG__PIECE_NORMAL);
}

wg_tokenizer *wg__llama2c_to_sentencepiece(const wg_tokenizer *tokenizer) {
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    const llama2c *l = (const llama2c *)tokenizer;
    const int64_t count = tokenizer->vocabulary.count;
    const char **tokens = wg__alloc_array(count + 1, sizeof *tokens);
    uint8_t *types = wg__alloc((size_t)count + 1);
    wg__text texts = {0};
    wg_tokenizer *pieces = NULL;
    for (int64_t i = 0; types && i < count; i++)
        types[i] = type_of_token(i);
    if (tokens && types &&
        replace_spaces(&tokenizer->vocabulary, " ", WG__SPACE_SYMBOL, special, &texts, tokens) == 0)
        pieces = wg__sentencepiece_new(&(wg__piece_model){
            .settings = {.byte_fallback = true,
                         .prefix = WG__PREFIX_ALWAYS,
                         .strip = WG__STRIP_ONE},
            .count = count,
            .texts = tokens,
            .scores = l->scores,
            .types = types,
        });
    wg__free(tokens);
    wg__free(types);
    wg__free(texts.bytes);
    int status = pieces ? wg__tokenizer_set_special(pieces, WG_TOKEN_BEGIN, 1) : -1;
    if (status == 0)
        status = wg__tokenizer_set_special(pieces, WG_TOKEN_END, 2);
    return wg__tokenizer_checked(pieces, status);
}

/* True for the layout of the tokenizers of wg__llama2c_to_sentencepiece. */
static bool has_llama_layout(const wg__pieces *p) {
    const wg__piece_settings *s = &p->settings;
    const int64_t count = p->base.vocabulary.count;
    if (s->unigram || s->by_merges || !s->byte_fallback || s->prefix != WG__PREFIX_ALWAYS ||
        s->remove_spaces || s->space_suffix || s->plain_spaces || p->normalizer.charsmap.length ||
        count < FIRST_PIECE)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (p->types[i] != type_of_token(i) ||
            (i >= FIRST_BYTE && i < FIRST_PIECE && p->bytes[i - FIRST_BYTE] != i))
            return false;
    return p->base.special[WG_TOKEN_BEGIN] == 1 && p->base.special[WG_TOKEN_END] == 2;
}

int wg__llama2c_write(const wg_tokenizer *tokenizer, wg__text *out) {
    static const char *const special[] = {"<unk>", "\n<s>\n", "\n</s>\n"};
    const bool is_llama2c = tokenizer->kind == &wg__llama2c_kind;
    const wg__pieces *pieces =
        tokenizer->kind == &wg__sentencepiece_kind ? (const wg__pieces *)tokenizer : NULL;
    if (!is_llama2c && (!pieces || !has_llama_layout(pieces)))
        return 0;
    const int64_t count = tokenizer->vocabulary.count;
    const char **tokens = wg__alloc_array(count + 1, sizeof *tokens);
    wg__text texts = {0};
    const double *scores = is_llama2c ? ((const llama2c *)tokenizer)->scores : pieces->scores;
    int status = tokens
                     ? replace_spaces(&tokenizer->vocabulary, WG__SPACE_SYMBOL,
                                      is_llama2c ? WG__SPACE_SYMBOL : " ", special, &texts, tokens)
                     : -1;
    uint8_t bytes[8];
    int64_t longest = 0;
    for (int64_t i = 0; status == 0 && i < count; i++)
        longest = wg__larger(longest, (int64_t)strlen(tokens[i]));
    wg__put_le(bytes, (uint32_t)longest, 4);
    if (status == 0)
        status = wg__text_append(out, bytes, 4);
    for (int64_t i = 0; status == 0 && i < count; i++) {
        const float score = (float)scores[i];
        const int64_t length = (int64_t)strlen(tokens[i]);
        wg__storage_encode(WG__STORAGE_F32, 1, &score, bytes);
        wg__put_le(bytes + 4, (uint32_t)length, 4);
        status = wg__text_append(out, bytes, 8) < 0 ? -1 : wg__text_append(out, tokens[i], length);
    }
    wg__free(tokens);
    wg__free(texts.bytes);
    return status < 0 ? -1 : 1;
}

static int encode(const wg_tokenizer *tokenizer, const char *text, int64_t length, bool first,
                  wg__token_sink *sink) {
    (void)first;
    wg_token_list *list = &sink->list;
    const llama2c *l = (const llama2c *)tokenizer;
    if (wg__reserve(&list->ids, list->count, &list->capacity, list->count + length + 1,
                    sizeof *list->ids) < 0)
        return -1;
    int32_t *ids = list->ids + list->count;
    int64_t count = 0, size;
    ids[count++] = l->space;
    for (int64_t at = 0; at < length; at += size) {
        unsigned char byte = (unsigned char)text[at];
        size = wg__utf8_length(text + at);
        int32_t id = byte < 128 ? l->ascii[byte]
                                : (int32_t)wg__strings_find(&l->base.vocabulary, text + at, size);
        if (id >= 0)
            ids[count++] = id;
        for (int64_t i = 0; id < 0 && i < size; i++)
            ids[count++] = FIRST_BYTE + (unsigned char)text[at + i];
    }
    wg__merge_buffer buffer = {0};
    count = wg__merge(&l->merges, ids, count, &buffer);
    wg__free(buffer.block);
    if (count < 0)
        return -1;
    list->count += count;
    return 0;
}

static int decode(const wg_tokenizer *tokenizer, int32_t id, const wg_decode_options *options,
                  wg__decode_state *state, wg__text *text) {
    (void)options;
    const char *token = wg__strings_text(&tokenizer->vocabulary, id);
    if (id < FIRST_BYTE) {
        state->begun = false; /* also removes the space after <s> */
        const char *name = wg__strings_text(&tokenizer->added_texts, tokenizer->added_by_id[id]);
        return wg__text_append(text, name, (int64_t)strlen(name));
    }
    if (id < FIRST_PIECE)
        token = NULL;
    else if (!state->begun && *token == ' ')
        token++;
    state->begun = true;
    return token ? wg__text_append(text, token, (int64_t)strlen(token))
                 : wg__text_append(text, &(char){(char)(id - FIRST_BYTE)}, 1);
}

static json_t *options_to_json(const wg_tokenizer *tokenizer) {
    const llama2c *l = (const llama2c *)tokenizer;
    return json_pack("{s:o}", "scores", wg__numbers_to_json(l->base.vocabulary.count, l->scores));
}

static wg_tokenizer *from_json(const json_t *json, int64_t count, const char *const *tokens) {
    double *scores = wg__numbers_of_json(json_object_get(json, "scores"), count, "scores", WHERE);
    wg_tokenizer *tokenizer = scores ? new_llama2c(count, tokens, scores) : NULL;
    wg__free(scores);
    return tokenizer;
}

const wg__tokenizer_kind wg__llama2c_kind = {
    .name = "llama2c",
    .encode = encode,
    .decode = decode,
    .options_to_json = options_to_json,
    .from_json = from_json,
    .clear = clear,
};
