/* SentencePiece's tokenizer.model: a message ModelProto of sentencepiece_model.proto. Fields that
 * change what text becomes are read, or refused by name; the others (of training, mostly) are
 * passed over, as Protocol Buffers ask for. */
#include <string.h>

#include "data/tokenizer/protobuf.h"
#include "data/tokenizer/sentencepiece_kind.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define WHERE "sentencepiece"

typedef struct model {
    const char *name; /* of the file */
    wg__piece_model made;
    wg__strings texts;
    double *scores;
    int64_t score_capacity;
    uint8_t *types;
    int64_t type_capacity;
    wg__text unknown_text;
    int64_t type;           /* 1 unigram, 2 BPE, 3 words, 4 characters */
    int64_t special_ids[4]; /* unknown, begin, end, pad */
    bool dummy_prefix, remove_spaces, escape_spaces, space_suffix;
    bool has_trainer, has_normalizer;
} model;

static int malformed(const model *m, const char *what) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the %s is damaged or cut short", m->name, what);
}

/* ---- Pieces ---- */

static int keep_piece(model *m, const char *text, int64_t length, float score, uint64_t type) {
    int64_t number = m->texts.count;
    if (length == 0 || memchr(text, '\0', (size_t)length))
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: piece %lld is empty or has a NUL in it",
                       m->name, (long long)number + 1);
    double *scores = wg__grow(m->scores, number, &m->score_capacity, number + 1, sizeof *scores);
    if (!scores)
        return -1;
    m->scores = scores;
    uint8_t *types = wg__grow(m->types, number, &m->type_capacity, number + 1, sizeof *types);
    if (!types)
        return -1;
    m->types = types;
    int64_t id = wg__strings_add(&m->texts, text, length);
    if (id >= 0 && id != number)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the pieces %lld and %lld are the same", m->name,
                       (long long)id + 1, (long long)number + 1);
    scores[number] = (double)score;
    types[number] = type > UINT8_MAX ? UINT8_MAX : (uint8_t)type;
    return id < 0 ? -1 : 0;
}

static int read_piece(model *m, wg__protobuf message) {
    wg__protobuf_field field;
    const char *text = NULL;
    int64_t length = 0;
    float score = 0;
    uint64_t type = WG__PIECE_NORMAL;
    int status;
    while ((status = wg__protobuf_next(&message, &field)) > 0) {
        if (field.number == 1 && field.type == WG__WIRE_BYTES) {
            text = field.bytes;
            length = field.length;
        } else if (field.number == 2 && field.type == WG__WIRE_FIXED32) {
            score = wg__protobuf_float(&field);
        } else if (field.number == 3 && field.type == WG__WIRE_VARINT) {
            type = field.value;
        }
    }
    return status < 0 ? malformed(m, "piece") : keep_piece(m, text, length, score, type);
}

/* ---- Specifications ---- */

static int read_trainer(model *m, wg__protobuf message) {
    wg__protobuf_field field;
    int status;
    while ((status = wg__protobuf_next(&message, &field)) > 0) {
        if (field.number == 44 && field.type == WG__WIRE_BYTES) {
            m->unknown_text.length = 0;
            if (wg__text_append(&m->unknown_text, field.bytes, field.length) < 0)
                return -1;
        }
        if (field.type != WG__WIRE_VARINT)
            continue;
        if (field.number == 3)
            m->type = field.value > 4 ? 0 : (int64_t)field.value;
        else if (field.number == 24)
            m->space_suffix = field.value != 0;
        else if (field.number == 35)
            m->made.settings.byte_fallback = field.value != 0;
        else if (field.number >= 40 && field.number <= 43)
            m->special_ids[field.number - 40] = (int64_t)field.value;
    }
    return status < 0 ? malformed(m, "trainer_spec") : 0;
}

static int read_normalizer(model *m, wg__protobuf message) {
    wg__protobuf_field field;
    int status;
    while ((status = wg__protobuf_next(&message, &field)) > 0) {
        if (field.number == 2 && field.type == WG__WIRE_BYTES) {
            m->made.charsmap = field.length ? field.bytes : NULL;
            m->made.charsmap_length = field.length;
        }
        if (field.type != WG__WIRE_VARINT)
            continue;
        bool *flags[] = {&m->dummy_prefix, &m->remove_spaces, &m->escape_spaces};
        if (field.number >= 3 && field.number <= 5)
            *flags[field.number - 3] = field.value != 0;
    }
    return status < 0 ? malformed(m, "normalizer_spec") : 0;
}

static int check_denormalizer(const model *m, wg__protobuf message) {
    wg__protobuf_field field;
    int status;
    while ((status = wg__protobuf_next(&message, &field)) > 0)
        if (field.number == 2 && field.length > 0)
            return wg_fail(WG_ERROR_FORMAT, WHERE,
                           "%s: rules for decoding (denormalizer_spec) are not supported", m->name);
    return status < 0 ? malformed(m, "denormalizer_spec") : 0;
}

static int read_model(model *m, wg__protobuf message) {
    wg__protobuf_field field;
    int status;
    while ((status = wg__protobuf_next(&message, &field)) > 0) {
        if (field.type != WG__WIRE_BYTES)
            continue;
        wg__protobuf part = wg__protobuf_of(&field);
        m->has_trainer |= field.number == 2;
        m->has_normalizer |= field.number == 3;
        if ((field.number == 1 && read_piece(m, part) < 0) ||
            (field.number == 2 && read_trainer(m, part) < 0) ||
            (field.number == 3 && read_normalizer(m, part) < 0) ||
            (field.number == 5 && check_denormalizer(m, part) < 0))
            return -1;
    }
    return status < 0 ? malformed(m, "file") : 0;
}

/* ---- A tokenizer ---- */

static int settle(model *m) {
    static const char *const names[] = {"an unknown kind", "unigram", "BPE", "words", "characters"};
    wg__piece_settings *s = &m->made.settings;
    if (m->type != 1 && m->type != 2)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is a model of %s; BPE and unigram are supported",
                       m->name, names[m->type]);
    if (m->unknown_text.bytes &&
        (memchr(m->unknown_text.bytes, '\0', (size_t)m->unknown_text.length) ||
         wg__utf8_invalid(m->unknown_text.bytes, m->unknown_text.length) >= 0))
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: unk_surface is no text", m->name);
    s->unigram = m->type == 1;
    s->unknown_text = m->unknown_text.bytes;
    s->prefix = m->dummy_prefix ? WG__PREFIX_ALWAYS : WG__PREFIX_NONE;
    s->space_suffix = m->space_suffix;
    s->remove_spaces = m->remove_spaces;
    s->plain_spaces = !m->escape_spaces;
    s->strip = m->remove_spaces ? WG__STRIP_ALL : m->dummy_prefix ? WG__STRIP_ONE : WG__STRIP_NONE;
    return 0;
}

/* The control pieces that have a meaning, by the ids that the trainer gave them. */
static int name_special(const model *m, wg_tokenizer *tokenizer) {
    static const wg_special_token meanings[] = {WG_TOKEN_UNKNOWN, WG_TOKEN_BEGIN, WG_TOKEN_END,
                                                WG_TOKEN_PAD};
    for (int i = 1; i < 4; i++) {
        int64_t id = m->special_ids[i];
        if (id >= 0 && id < m->texts.count && m->types[id] == WG__PIECE_CONTROL &&
            wg__tokenizer_set_special(tokenizer, meanings[i], (int32_t)id) < 0)
            return -1;
    }
    return 0;
}

static wg_tokenizer *make(model *m) {
    const char **texts = wg__alloc((size_t)(m->texts.count + 1) * sizeof *texts);
    if (!texts)
        return NULL;
    for (int64_t i = 0; i < m->texts.count; i++)
        texts[i] = wg__strings_text(&m->texts, i);
    m->made.count = m->texts.count;
    m->made.texts = texts;
    m->made.scores = m->scores;
    m->made.types = m->types;
    wg__pieces *pieces = wg__pieces_new(&m->made);
    wg__free(texts);
    if (pieces && name_special(m, &pieces->base) < 0) {
        wg_tokenizer_free(&pieces->base);
        return NULL;
    }
    return pieces ? &pieces->base : NULL;
}

wg_tokenizer *wg__sentencepiece_read(const char *bytes, int64_t length, const char *name) {
    const unsigned char *begin = (const unsigned char *)bytes;
    model m = {.name = name,
               .type = 1,
               .special_ids = {0, 1, 2, -1},
               .dummy_prefix = true,
               .remove_spaces = true,
               .escape_spaces = true};
    wg_tokenizer *tokenizer = NULL;
    if (read_model(&m, (wg__protobuf){begin, begin + length}) == 0 && settle(&m) == 0)
        tokenizer = make(&m);
    if (tokenizer && !(m.has_trainer && m.has_normalizer)) { /* they stand behind the pieces */
        wg_tokenizer_free(tokenizer);
        tokenizer = NULL;
        malformed(&m, "file");
    }
    wg__strings_clear(&m.texts);
    wg__free(m.scores);
    wg__free(m.types);
    wg__free(m.unknown_text.bytes);
    return tokenizer;
}

wg_tokenizer *wg_sentencepiece_load(const char *path) {
    int64_t length;
    char *bytes = wg__text_file_read(path, &length, "wg_sentencepiece_load");
    wg_tokenizer *tokenizer = bytes ? wg__sentencepiece_read(bytes, length, path) : NULL;
    wg__free(bytes);
    return tokenizer;
}
