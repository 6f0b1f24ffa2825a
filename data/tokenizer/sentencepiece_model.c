/* Reads and writes SentencePiece's tokenizer.model: a message ModelProto of
 * sentencepiece_model.proto, in Protocol Buffers' wire format. Fields that change the ids of a text
 * are read, or refused by name. All other fields, mostly of training, are skipped, as Protocol
 * Buffers require. */
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/text_file.h"
#include "io/weights/binary_file.h"

#define WHERE "sentencepiece"
#define LARGEST_FIELD ((1 << 29) - 1) /* field number */

enum { UNIGRAM = 1, BPE = 2 };

/* The special tokens of trainer_spec: fields 40 to 43 are their ids, 45 to 48 their texts. */
static const wg_special_token meanings[] = {WG_TOKEN_UNKNOWN, WG_TOKEN_BEGIN, WG_TOKEN_END,
                                            WG_TOKEN_PAD};

/* ---- Protocol Buffers: reading ----
 * Strict and without copies. Groups, which are obsolete, are malformed. */

/* The unread bytes of a message. */
typedef struct message {
    const unsigned char *at, *end;
} message;

typedef enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_BYTES = 2,
    WIRE_FIXED32 = 5
} wire_type;

typedef struct field {
    int32_t number;
    wire_type type;
    uint64_t value;    /* a number of any type, as bits */
    const char *bytes; /* a string, bytes or a message; borrowed */
    int64_t length;
} field;

static int read_varint(message *m, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (m->at == m->end)
            return -1;
        unsigned char byte = *m->at++;
        if (shift == 63 && byte > 1)
            return -1;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return 0;
    }
    return -1;
}

/* Reads the next field: 1; 0 at the end of the message; -1 if it is malformed. */
static int next_field(message *m, field *f) {
    *f = (field){0};
    if (m->at == m->end)
        return 0;
    uint64_t tag;
    if (read_varint(m, &tag) < 0 || tag >> 3 == 0 || tag >> 3 > LARGEST_FIELD)
        return -1;
    f->number = (int32_t)(tag >> 3);
    f->type = (wire_type)(tag & 7);
    const int bytes = f->type == WIRE_FIXED64 ? 8 : f->type == WIRE_FIXED32 ? 4 : 0;
    if (bytes > 0) {
        if (m->end - m->at < bytes)
            return -1;
        for (int i = 0; i < bytes; i++) /* little-endian on every machine */
            f->value |= (uint64_t)*m->at++ << (8 * i);
        return 1;
    }
    if ((f->type != WIRE_VARINT && f->type != WIRE_BYTES) || read_varint(m, &f->value) < 0)
        return -1;
    if (f->type == WIRE_VARINT)
        return 1;
    if (f->value > (uint64_t)(m->end - m->at))
        return -1;
    f->bytes = (const char *)m->at;
    f->length = (int64_t)f->value;
    m->at += f->length;
    return 1;
}

typedef struct model {
    const char *name; /* of the file */
    wg__piece_model made;
    wg__strings texts;
    double *scores; /* room for length / 5 pieces: a piece has at least 5 bytes */
    uint8_t *types;
    wg__text unknown_text;
    int64_t type;           /* 1 unigram, 2 BPE, 3 words, 4 characters */
    int64_t special_ids[4]; /* unknown, begin, end, pad */
    bool dummy_prefix, remove_spaces, escape_spaces, space_suffix;
    bool has_trainer, has_normalizer;
} model;

static int malformed(const model *m, const char *what) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the %s is damaged or cut short", m->name, what);
}

static int read_piece(model *m, message rest) {
    field f;
    const char *text = NULL;
    int64_t length = 0;
    float score = 0;
    uint64_t type = WG__PIECE_NORMAL;
    int status;
    while ((status = next_field(&rest, &f)) > 0) {
        if (f.number == 1 && f.type == WIRE_BYTES) {
            text = f.bytes;
            length = f.length;
        } else if (f.number == 2 && f.type == WIRE_FIXED32) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&score, &bits, sizeof score);
        } else if (f.number == 3 && f.type == WIRE_VARINT) {
            type = f.value;
        }
    }
    if (status < 0)
        return malformed(m, "piece");
    const int64_t number = m->texts.count;
    if (length == 0 || memchr(text, '\0', (size_t)length))
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: piece %lld is empty or has a NUL in it",
                       m->name, (long long)number + 1);
    const int64_t id = wg__strings_add(&m->texts, text, length);
    if (id >= 0 && id != number)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: the pieces %lld and %lld are the same", m->name,
                       (long long)id + 1, (long long)number + 1);
    m->scores[number] = (double)score;
    m->types[number] = type > UINT8_MAX ? UINT8_MAX : (uint8_t)type;
    return id < 0 ? -1 : 0;
}

/* ---- Reading ---- */

static int read_trainer(model *m, message rest) {
    field f;
    int status;
    while ((status = next_field(&rest, &f)) > 0) {
        if (f.number == 44 && f.type == WIRE_BYTES) {
            m->unknown_text.length = 0;
            if (wg__text_append(&m->unknown_text, f.bytes, f.length) < 0)
                return -1;
        }
        if (f.type != WIRE_VARINT)
            continue;
        if (f.number == 3)
            m->type = f.value > 4 ? 0 : (int64_t)f.value;
        else if (f.number == 24)
            m->space_suffix = f.value != 0;
        else if (f.number == 35)
            m->made.settings.byte_fallback = f.value != 0;
        else if (f.number >= 40 && f.number <= 43)
            m->special_ids[f.number - 40] = (int64_t)f.value;
    }
    return status < 0 ? malformed(m, "trainer_spec") : 0;
}

static int read_normalizer(model *m, message rest) {
    field f;
    int status;
    while ((status = next_field(&rest, &f)) > 0) {
        if (f.number == 2 && f.type == WIRE_BYTES) {
            m->made.charsmap = f.length ? f.bytes : NULL;
            m->made.charsmap_length = f.length;
        }
        if (f.type != WIRE_VARINT)
            continue;
        bool *flags[] = {&m->dummy_prefix, &m->remove_spaces, &m->escape_spaces};
        if (f.number >= 3 && f.number <= 5)
            *flags[f.number - 3] = f.value != 0;
    }
    return status < 0 ? malformed(m, "normalizer_spec") : 0;
}

static int read_model(model *m, message rest) {
    field f;
    int status;
    while ((status = next_field(&rest, &f)) > 0) {
        if (f.type != WIRE_BYTES)
            continue;
        const unsigned char *begin = (const unsigned char *)f.bytes;
        message part = (message){begin, begin + f.length};
        m->has_trainer |= f.number == 2;
        m->has_normalizer |= f.number == 3;
        if ((f.number == 1 && read_piece(m, part) < 0) ||
            (f.number == 2 && read_trainer(m, part) < 0) ||
            (f.number == 3 && read_normalizer(m, part) < 0))
            return -1;
        int found = f.number == 5;
        for (field rule; found > 0 && (found = next_field(&part, &rule)) > 0;)
            if (rule.number == 2 && rule.length > 0)
                return wg_fail(WG_ERROR_FORMAT, WHERE,
                               "%s: rules for decoding (denormalizer_spec) are not supported",
                               m->name);
        if (found < 0)
            return malformed(m, "denormalizer_spec");
    }
    return status < 0 ? malformed(m, "file") : 0;
}

static wg_tokenizer *make_tokenizer(model *m) {
    static const char *const names[] = {"an unknown kind", "unigram", "BPE", "words", "characters"};
    if (m->type != UNIGRAM && m->type != BPE)
        return wg__fail_null(WG_ERROR_FORMAT, WHERE,
                             "%s is a model of %s; BPE and unigram are supported", m->name,
                             names[m->type]);
    if (m->unknown_text.bytes &&
        (memchr(m->unknown_text.bytes, '\0', (size_t)m->unknown_text.length) ||
         wg__utf8_invalid(m->unknown_text.bytes, m->unknown_text.length) >= 0))
        return wg__fail_null(WG_ERROR_FORMAT, WHERE, "%s: unk_surface is not a text", m->name);
    wg__piece_settings *s = &m->made.settings;
    s->unigram = m->type == UNIGRAM;
    s->unknown_text = m->unknown_text.bytes;
    s->prefix = m->dummy_prefix ? WG__PREFIX_ALWAYS : WG__PREFIX_NONE;
    s->space_suffix = m->space_suffix;
    s->remove_spaces = m->remove_spaces;
    s->plain_spaces = !m->escape_spaces;
    s->strip = m->remove_spaces ? WG__STRIP_ALL : m->dummy_prefix ? WG__STRIP_ONE : WG__STRIP_NONE;

    const char **texts = wg__alloc_array(m->texts.count + 1, sizeof *texts);
    if (!texts)
        return NULL;
    for (int64_t i = 0; i < m->texts.count; i++)
        texts[i] = wg__strings_text(&m->texts, i);
    m->made.count = m->texts.count;
    m->made.texts = texts;
    m->made.scores = m->scores;
    m->made.types = m->types;
    wg_tokenizer *tokenizer = wg__sentencepiece_new(&m->made);
    wg__free(texts);

    /* The begin, end and padding pieces of trainer_spec, if they are control pieces. */
    int status = tokenizer ? 0 : -1;
    for (int i = 1; status == 0 && i < 4; i++) {
        const int64_t id = m->special_ids[i];
        if (id >= 0 && id < m->texts.count && m->types[id] == WG__PIECE_CONTROL)
            status = wg__tokenizer_set_special(tokenizer, meanings[i], (int32_t)id);
    }
    return tokenizer ? wg__tokenizer_checked(tokenizer, status) : NULL;
}

wg_tokenizer *wg__sentencepiece_read(const char *bytes, int64_t length, const char *name) {
    const unsigned char *begin = (const unsigned char *)bytes;
    model m = {.name = name,
               .scores = wg__alloc_array(length / 5 + 1, sizeof *m.scores),
               .types = wg__alloc((size_t)length / 5 + 1),
               .type = UNIGRAM,
               .special_ids = {0, 1, 2, -1},
               .dummy_prefix = true,
               .remove_spaces = true,
               .escape_spaces = true};
    wg_tokenizer *tokenizer = NULL;
    if (m.scores && m.types && read_model(&m, (message){begin, begin + length}) == 0)
        tokenizer = make_tokenizer(&m);
    if (tokenizer && !(m.has_trainer && m.has_normalizer)) /* they follow the pieces */
        tokenizer = wg__tokenizer_checked(tokenizer, malformed(&m, "file"));
    wg__strings_clear(&m.texts);
    wg__free(m.scores);
    wg__free(m.types);
    wg__free(m.unknown_text.bytes);
    return tokenizer;
}

/* ---- Writing ---- */

static int put_number(wg__text *message, int32_t number, int64_t value) {
    const int status = wg__append_varint(message, (uint64_t)number << 3 | WIRE_VARINT);
    return status < 0 ? -1 : wg__append_varint(message, (uint64_t)value);
}

/* Appends a message as a field, and empties it. */
static int put_message(wg__text *out, int32_t number, wg__text *message) {
    const int status = wg__append_field(out, number, message->bytes, message->length);
    message->length = 0;
    return status;
}

static int put_pieces(const wg__pieces *p, wg__text *message, wg__text *out) {
    const wg__strings *vocabulary = &p->base.vocabulary;
    int status = 0;
    for (int64_t i = 0; status == 0 && i < vocabulary->count; i++) {
        status = wg__append_field(message, 1, wg__strings_text(vocabulary, i),
                                  wg__strings_length(vocabulary, i));
        if (status == 0) {
            float value = (float)p->scores[i];
            uint8_t bytes[4];
            wg__storage_encode(WG__STORAGE_F32, 1, &value, bytes);
            status = wg__append_varint(message, 2 << 3 | WIRE_FIXED32) < 0
                         ? -1
                         : wg__text_append(message, bytes, 4);
        }
        if (status == 0 && p->types[i] != WG__PIECE_NORMAL)
            status = put_number(message, 3, p->types[i]);
        if (status == 0)
            status = put_message(out, 1, message);
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
        status = put_number(message, values[i].number, values[i].value);
    if (status == 0)
        status = wg__append_field(message, 44, s->unknown_text, (int64_t)strlen(s->unknown_text));
    /* The special pieces by id and by name; id -1: none. */
    for (int i = 0; status == 0 && i < 4; i++) {
        const int32_t id = p->base.special[meanings[i]];
        const char *text = wg_tokenizer_token(&p->base, id);
        status = put_number(message, 40 + i, id);
        if (status == 0 && text)
            status = wg__append_field(message, 45 + i, text, (int64_t)strlen(text));
    }
    return status < 0 ? -1 : put_message(out, 2, message);
}

static int put_normalizer(const wg__pieces *p, wg__text *message, wg__text *out) {
    const wg__piece_settings *s = &p->settings;
    const wg__charsmap *map = &p->normalizer.charsmap;
    const char *name = map->length ? "user_defined" : "identity";
    const bool flags[] = {s->prefix == WG__PREFIX_ALWAYS, s->remove_spaces, !s->plain_spaces};
    int status = wg__append_field(message, 1, name, (int64_t)strlen(name));
    if (status == 0 && map->length)
        status = wg__append_field(message, 2, map->blob, map->length);
    for (int i = 0; status == 0 && i < 3; i++)
        status = put_number(message, 3 + i, flags[i]);
    return status < 0 ? -1 : put_message(out, 3, message);
}

int wg__sentencepiece_write(const wg_tokenizer *tokenizer, wg__text *out) {
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    if (tokenizer->kind != &wg__sentencepiece_kind)
        return 0;
    const wg__piece_settings *s = &p->settings;
    if (s->by_merges || s->exact_sums || s->by_grapheme || s->split_spaces || s->split_words ||
        s->part_unknowns || s->prefix_first || s->prefix == WG__PREFIX_MISSING)
        return 0;
    wg__text message = {0};
    const int status = put_pieces(p, &message, out) < 0 || put_trainer(p, &message, out) < 0 ||
                               put_normalizer(p, &message, out) < 0
                           ? -1
                           : 1;
    wg__free(message.bytes);
    return status;
}
