/* Tokenizers as SentencePiece's tokenizer.model; what sentencepiece_model.c reads. */
#include <string.h>

#include "data/tokenizer/protobuf.h"
#include "data/tokenizer/export.h"
#include "tensor/internal.h"

enum { UNIGRAM = 1, BPE = 2 };

static bool can(const wg__pieces *p) {
    const wg__piece_settings *s = &p->settings;
    return !s->by_merges && !s->exact_sums && !s->by_grapheme && !s->split_spaces &&
           !s->split_words && !s->part_unknowns && !s->prefix_first &&
           s->prefix != WG__PREFIX_MISSING;
}

/* Appends what was gathered as a message under that number, and empties it. */
static int put_message(wg__text *out, int32_t number, wg__text *message) {
    const int status = wg__protobuf_put_bytes(out, number, message->bytes, message->length);
    message->length = 0;
    return status;
}

static int put_pieces(const wg__pieces *p, wg__text *message, wg__text *out) {
    const wg__strings *vocabulary = &p->base.vocabulary;
    int status = 0;
    for (int64_t i = 0; status == 0 && i < vocabulary->count; i++) {
        status = wg__protobuf_put_bytes(message, 1, wg__strings_text(vocabulary, i),
                                        wg__strings_length(vocabulary, i));
        if (status == 0)
            status = wg__protobuf_put_float(message, 2, (float)p->scores[i]);
        if (status == 0 && p->types[i] != WG__PIECE_NORMAL)
            status = wg__protobuf_put_number(message, 3, p->types[i]);
        if (status == 0)
            status = put_message(out, 1, message);
    }
    return status;
}

/* The special pieces by id and by name; -1 where there is none. */
static int put_special(const wg__pieces *p, wg__text *message) {
    static const wg_special_token meanings[] = {WG_TOKEN_UNKNOWN, WG_TOKEN_BEGIN, WG_TOKEN_END,
                                                WG_TOKEN_PAD};
    int status = 0;
    for (int i = 0; status == 0 && i < 4; i++) {
        const int32_t id = p->base.special[meanings[i]];
        const char *text = wg_tokenizer_token(&p->base, id);
        status = wg__protobuf_put_number(message, 40 + i, id);
        if (status == 0 && text)
            status = wg__protobuf_put_bytes(message, 45 + i, text, (int64_t)strlen(text));
    }
    return status;
}

static int put_trainer(const wg__pieces *p, wg__text *message, wg__text *out) {
    const wg__piece_settings *s = &p->settings;
    const struct {
        int32_t number;
        int64_t value;
    } values[] = {{3, s->unigram ? UNIGRAM : BPE},
                  {4, p->base.vocabulary.count},
                  {24, s->space_suffix},
                  {35, s->byte_fallback}};
    int status = 0;
    for (size_t i = 0; status == 0 && i < sizeof values / sizeof values[0]; i++)
        status = wg__protobuf_put_number(message, values[i].number, values[i].value);
    if (status == 0)
        status =
            wg__protobuf_put_bytes(message, 44, s->unknown_text, (int64_t)strlen(s->unknown_text));
    return status < 0 || put_special(p, message) < 0 ? -1 : put_message(out, 2, message);
}

static int put_normalizer(const wg__pieces *p, wg__text *message, wg__text *out) {
    const wg__piece_settings *s = &p->settings;
    const wg__charsmap *map = &p->normalizer.charsmap;
    const char *name = map->length ? "user_defined" : "identity";
    const bool flags[] = {s->prefix == WG__PREFIX_ALWAYS, s->remove_spaces, !s->plain_spaces};
    int status = wg__protobuf_put_bytes(message, 1, name, (int64_t)strlen(name));
    if (status == 0 && map->length)
        status = wg__protobuf_put_bytes(message, 2, map->blob, map->length);
    for (int i = 0; status == 0 && i < 3; i++)
        status = wg__protobuf_put_number(message, 3 + i, flags[i]);
    return status < 0 ? -1 : put_message(out, 3, message);
}

static int write_pieces(const wg__pieces *p, wg__text *out) {
    if (!can(p))
        return 0;
    wg__text message = {0};
    const int status = put_pieces(p, &message, out) < 0 || put_trainer(p, &message, out) < 0 ||
                               put_normalizer(p, &message, out) < 0
                           ? -1
                           : 1;
    wg__free(message.bytes);
    return status;
}

int wg__sentencepiece_write(const wg_tokenizer *tokenizer, wg__text *out) {
    if (tokenizer->kind == &wg__sentencepiece_kind)
        return write_pieces((const wg__pieces *)tokenizer, out);
    if (tokenizer->kind != &wg__llama2c_kind)
        return 0;
    wg__pieces *pieces = wg__llama2c_pieces(tokenizer);
    const int status = pieces ? write_pieces(pieces, out) : -1;
    wg_tokenizer_free(pieces ? &pieces->base : NULL);
    return status;
}
