/* Text with masks in it: read as Part A, and written with its blanks filled.
 *
 *     It was [MASK] . The end [gMASK]         pieces: "It was ", mask, " . The end ", mask, ""
 */
#include <string.h>

#include "data/batches/glm_text.h"
#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

/* A stretch of text, and the mask behind it; the last has none. */
typedef struct piece {
    const char *text;
    int64_t length;
    const char *mask; /* "[MASK]"... */
} piece;

static const char *const masks[] = {"[MASK]", "[sMASK]", "[gMASK]"};
enum { MASK, SENTENCE_MASK, DOCUMENT_MASK, MASKS };

/* The stretch with which a text begins. */
static piece next_piece(const char *text) {
    for (const char *c = strchr(text, '['); c; c = strchr(c + 1, '['))
        for (int i = 0; i < MASKS; i++)
            if (strncmp(c, masks[i], strlen(masks[i])) == 0)
                return (piece){text, c - text, masks[i]};
    return (piece){text, (int64_t)strlen(text), NULL};
}

static const char *behind(const piece *p) {
    return p->text + p->length + strlen(p->mask);
}

bool wg_glm_is_mask(const wg_glm_tokens *tokens, int32_t id) {
    return id == tokens->mask || id == tokens->sentence_mask || id == tokens->document_mask;
}

/* ---- Reading ---- */

static int32_t mask_id(const wg_glm_tokens *tokens, const char *mask) {
    if (mask == masks[MASK])
        return tokens->mask;
    return mask == masks[SENTENCE_MASK] ? tokens->sentence_mask : tokens->document_mask;
}

bool wg__spaces_begin_words(const wg_tokenizer *tokenizer) {
    const char *kind = wg_tokenizer_kind(tokenizer);
    return strcmp(kind, "bpe") == 0 || strcmp(kind, "sentencepiece") == 0;
}

static int encode_piece(const wg_glm_tokens *tokens, const wg_tokenizer *tokenizer, const piece *p,
                        wg_token_list *list) {
    int64_t length = p->length;
    if (p->mask && length > 0 && p->text[length - 1] == ' ' && wg__spaces_begin_words(tokenizer))
        length--;
    if (length > 0 && wg_tokenizer_encode(tokenizer, p->text, length, NULL, list) < 0)
        return -1;
    return p->mask ? wg_token_list_append(list, mask_id(tokens, p->mask)) : 0;
}

const char *wg__glm_find_mask(const char *text) {
    const piece p = next_piece(text);
    return p.mask ? p.text + p.length : NULL;
}

int wg__glm_encode_stretch(const wg_glm_tokens *tokens, const wg_tokenizer *tokenizer,
                           const char *text, wg_token_list *list) {
    int result = 0;
    while (result == 0 && text) {
        const piece p = next_piece(text);
        result = encode_piece(tokens, tokenizer, &p, list);
        text = p.mask ? behind(&p) : NULL;
    }
    return result;
}

int wg_glm_encode(const wg_glm_tokens *tokens, const wg_tokenizer *tokenizer, const char *text,
                  wg_token_list *list) {
    if (!tokens || !tokenizer || !text)
        return -1;
    const int64_t before = list->count;
    int result = wg__utf8_check(text, (int64_t)strlen(text), "the text", "glm_encode");
    if (result == 0)
        result = wg_token_list_append(list, tokens->beginning);
    if (result == 0)
        result = wg__glm_encode_stretch(tokens, tokenizer, text, list);
    if (result < 0)
        list->count = before;
    return result;
}

/* ---- Writing ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What was written into a blank, without the space that the text before it has already. */
static int append_blank(const wg_tokenizer *tokenizer, const wg_token_list *blank, wg__text *out) {
    static const wg_decode_options options = {.skip_special = true};
    char *words = wg_tokenizer_decode(tokenizer, blank->ids, blank->count, &options);
    if (!words)
        return -1;
    const bool spaced = out->length == 0 || is_space(out->bytes[out->length - 1]);
    const char *first = words + (spaced && words[0] == ' ');
    const int result = wg__text_append(out, first, (int64_t)strlen(first));
    wg_text_free(words);
    return result;
}

char *wg_glm_filled_text(const wg_tokenizer *tokenizer, const char *text,
                         const wg_token_list *blanks) {
    wg__text out = {0};
    int result = tokenizer && text ? 0 : -1;
    while (result == 0 && text) {
        const piece p = next_piece(text);
        result = wg__text_append(&out, p.text, p.length);
        if (result == 0 && p.mask)
            result = append_blank(tokenizer, blanks++, &out);
        text = p.mask ? behind(&p) : NULL;
    }
    if (result == 0)
        return out.bytes;
    wg__free(out.bytes);
    return NULL;
}
