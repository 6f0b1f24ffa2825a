/* Writes tokenizer.json of huggingface/tokenizers; huggingface.c reads it. */
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/sentencepiece.h"

/* The parts of a file; file_of owns and frees them. NULL: no memory. */
typedef struct parts {
    json_t *normalizer, *pre_tokenizer, *post_processor, *decoder, *model;
} parts;

/* {token: id}; the tokens of the byte tokenizer become letters of GPT-2's alphabet. */
static json_t *vocabulary_json(const wg_tokenizer *tokenizer) {
    json_t *object = json_object();
    for (int64_t i = 0; i < tokenizer->vocabulary.count; i++) {
        char letter[3] = "";
        if (tokenizer->kind == &wg__byte_kind)
            wg__byte_to_letter((unsigned char)i, letter);
        wg__json_put(&object, *letter ? letter : wg__strings_text(&tokenizer->vocabulary, i),
                     json_integer(i));
    }
    return object;
}

static json_t *file_of(const wg_tokenizer *tokenizer, parts p) {
    json_t *added = json_array();
    for (int64_t id = 0; tokenizer->added_by_id && id < tokenizer->vocabulary.count; id++) {
        const int32_t number = tokenizer->added_by_id[id];
        if (number < 0)
            continue;
        const wg__added_token *token = &tokenizer->added[number];
        wg__json_append(&added,
                        json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id,
                                  "content", wg__strings_text(&tokenizer->added_texts, number),
                                  "single_word", 0, "lstrip", token->strip_left, "rstrip",
                                  token->strip_right, "normalized", token->normalized, "special",
                                  token->special));
    }
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0",
                     "truncation", "padding", "added_tokens", added, "normalizer", p.normalizer,
                     "pre_tokenizer", p.pre_tokenizer, "post_processor", p.post_processor,
                     "decoder", p.decoder, "model", p.model);
}

static json_t *merges_json(const wg__strings *vocabulary, const wg__merge_list *merges) {
    json_t *list = json_array();
    for (int64_t i = 0; i < merges->count; i++)
        wg__json_append(&list,
                        json_sprintf("%s %s", wg__strings_text(vocabulary, merges->pairs[i][0]),
                                     wg__strings_text(vocabulary, merges->pairs[i][1])));
    return list;
}

typedef struct bpe_model {
    const char *unknown; /* NULL: none */
    bool fuse_unknown, byte_fallback, ignore_merges;
    json_t *merges;
} bpe_model;

static json_t *bpe_json(const wg_tokenizer *tokenizer, const bpe_model *m) {
    json_t *model =
        json_pack("{s:s, s:n, s:s?, s:n, s:n, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout",
                  "unk_token", m->unknown, "continuing_subword_prefix", "end_of_word_suffix",
                  "fuse_unk", m->fuse_unknown, "byte_fallback", m->byte_fallback, "vocab",
                  vocabulary_json(tokenizer), "merges", m->merges);
    if (m->ignore_merges) /* older readers do not know the key */
        wg__json_put(&model, "ignore_merges", json_true());
    return model;
}

static json_t *byte_level_json(bool prefix_space, bool splits) {
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", prefix_space,
                     "trim_offsets", 1, "use_regex", splits);
}

/* `pattern` NULL: GPT-2's. */
static json_t *byte_level_file(const wg_tokenizer *tokenizer, const char *pattern,
                               bool prefix_space, json_t *model) {
    json_t *pre_tokenizer =
        pattern ? json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence",
                            "pretokenizers", "type", "Split", "pattern", "Regex", pattern,
                            "behavior", "Isolated", "invert", 0, byte_level_json(false, false))
                : byte_level_json(prefix_space, true);
    return file_of(tokenizer, (parts){json_null(), pre_tokenizer, byte_level_json(true, true),
                                      byte_level_json(true, true), model});
}

static json_t *sequence(const char *key, json_t *steps) {
    if (!steps || json_array_size(steps) > 0)
        return json_pack("{s:s, s:o}", "type", "Sequence", key, steps);
    json_decref(steps);
    return json_null();
}

static json_t *pieces_normalizer(const wg__pieces *p) {
    const wg__charsmap *map = &p->normalizer.charsmap;
    json_t *steps = json_array();
    wg__text base64 = {0};
    if (map->length > 0) {
        const int status = wg__base64_encode(map->blob, map->length, &base64);
        wg__json_append(&steps, status < 0 ? NULL
                                           : json_pack("{s:s, s:s}", "type", "Precompiled",
                                                       "precompiled_charsmap", base64.bytes));
        wg__free(base64.bytes);
    }
    if (p->settings.prefix == WG__PREFIX_ALWAYS)
        wg__json_append(&steps,
                        json_pack("{s:s, s:s}", "type", "Prepend", "prepend", WG__SPACE_SYMBOL));
    if (!p->settings.plain_spaces && p->settings.prefix != WG__PREFIX_MISSING)
        wg__json_append(&steps, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern",
                                          "String", " ", "content", WG__SPACE_SYMBOL));
    return sequence("normalizers", steps);
}

static json_t *pieces_pre_tokenizer(const wg__pieces *p) {
    const wg__piece_settings *s = &p->settings;
    json_t *steps = json_array();
    if (s->split_spaces)
        wg__json_append(&steps, json_pack("{s:s}", "type", "WhitespaceSplit"));
    if (s->prefix == WG__PREFIX_MISSING)
        wg__json_append(&steps,
                        json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement",
                                  WG__SPACE_SYMBOL, "prepend_scheme",
                                  s->prefix_first ? "first" : "always", "split", s->split_words));
    return sequence("pretokenizers", steps);
}

/* The special token of a text: <s> before it (LLaMA), or </s> after it (unigram models: T5). */
static json_t *pieces_processor(const wg__pieces *p) {
    const bool end = p->settings.unigram;
    const int32_t id = p->base.special[end ? WG_TOKEN_END : WG_TOKEN_BEGIN];
    if (id < 0)
        return json_null();
    const char *token = wg__tokenizer_added_text(&p->base, id);
    json_t *single = json_array(), *pair = json_array();
    for (int i = 0; i < 2; i++) {
        json_t *special = json_pack("{s:{s:s, s:i}}", "SpecialToken", "id", token, "type_id", i);
        json_t *text = json_pack("{s:{s:s, s:i}}", "Sequence", "id", i ? "B" : "A", "type_id", i);
        json_t *order[] = {end ? text : special, end ? special : text};
        for (int j = 0; j < 2; j++) {
            if (i == 0 && order[j])
                wg__json_append(&single, json_incref(order[j]));
            wg__json_append(&pair, order[j]);
        }
    }
    return json_pack("{s:s, s:o, s:o, s:{s:{s:s, s:[i], s:[s]}}}", "type", "TemplateProcessing",
                     "single", single, "pair", pair, "special_tokens", token, "id", token, "ids",
                     id, "tokens", token);
}

/* A list of merges for BPE by scores, the best pieces first. */
static json_t *merges_of_scores(const wg__pieces *p) {
    const int64_t count = p->base.vocabulary.count;
    int64_t *order = wg__sorted_indices(0, count, wg__largest_first, p->scores);
    json_t *list = order ? json_array() : NULL;
    for (int64_t i = 0; list && i < count; i++)
        if (p->types[order[i]] == WG__PIECE_NORMAL) {
            /* Appends "left right" for each pair of pieces that makes this piece. */
            const int64_t id = order[i];
            const wg__strings *vocabulary = &p->base.vocabulary;
            const char *text = wg__strings_text(vocabulary, id);
            const int64_t length = wg__strings_length(vocabulary, id);
            for (int64_t head = 1; head < length; head++) {
                const int64_t left = wg__strings_find(vocabulary, text, head),
                              right = wg__strings_find(vocabulary, text + head, length - head);
                if (left >= 0 && right >= 0)
                    wg__json_append(&list, json_sprintf("%.*s %s", (int)head, text, text + head));
            }
        }
    wg__free(order);
    return list;
}

static json_t *pieces_model(const wg__pieces *p) {
    const wg__piece_settings *s = &p->settings;
    const int32_t unknown = p->base.special[WG_TOKEN_UNKNOWN];
    if (s->unigram) {
        json_t *list = json_array();
        for (int64_t i = 0; i < p->base.vocabulary.count; i++)
            wg__json_append(
                &list, json_pack("[s, f]", wg__strings_text(&p->base.vocabulary, i), p->scores[i]));
        return json_pack("{s:s, s:i, s:o, s:b}", "type", "Unigram", "unk_id", unknown, "vocab",
                         list, "byte_fallback", s->byte_fallback);
    }
    const bpe_model model = {
        .unknown = wg_tokenizer_token(&p->base, unknown),
        .fuse_unknown = !s->part_unknowns,
        .byte_fallback = s->byte_fallback,
        .merges = s->by_merges ? merges_json(&p->base.vocabulary, &p->merges) : merges_of_scores(p),
    };
    return bpe_json(&p->base, &model);
}

/* False if a tokenizer.json cannot express this tokenizer. */
static bool is_expressible(const wg_tokenizer *tokenizer) {
    const wg__bpe *bpe = (const wg__bpe *)tokenizer;
    if (tokenizer->kind == &wg__bpe_kind)
        return !bpe->prefix_space || strcmp(bpe->pattern, WG__GPT2_PATTERN) == 0;
    if (tokenizer->kind == &wg__char_kind) /* the library silently drops unknown characters */
        return tokenizer->special[WG_TOKEN_UNKNOWN] >= 0;
    if (tokenizer->kind == &wg__sentencepiece_kind) {
        const wg__pieces *p = (const wg__pieces *)tokenizer;
        const wg__piece_settings *s = &p->settings;
        for (int64_t i = 0; i < p->base.vocabulary.count; i++)
            if (p->types[i] == WG__PIECE_UNUSED || p->types[i] == WG__PIECE_USER_DEFINED)
                return false;
        return !s->remove_spaces && !s->space_suffix &&
               (s->by_grapheme || p->normalizer.charsmap.length == 0) &&
               (!s->plain_spaces || s->prefix == WG__PREFIX_NONE);
    }
    return tokenizer->kind != &wg__llama2c_kind;
}

static json_t *whole_file(const wg_tokenizer *tokenizer) {
    if (tokenizer->kind == &wg__wordpiece_kind) {
        json_t *options = tokenizer->kind->options_to_json(tokenizer);
        const bool lower = json_is_true(json_object_get(options, "lower_case"));
        const json_int_t longest =
            json_integer_value(json_object_get(options, "max_word_characters"));
        json_decref(options);
        const int32_t class = tokenizer->special[WG_TOKEN_CLASS],
                      separator = tokenizer->special[WG_TOKEN_SEPARATOR];
        json_t *processor =
            class < 0 || separator < 0
                ? json_null()
                : json_pack("{s:s, s:[s, i], s:[s, i]}", "type", "BertProcessing", "sep",
                            wg_tokenizer_token(tokenizer, separator), separator, "cls",
                            wg_tokenizer_token(tokenizer, class), class);
        return file_of(
            tokenizer,
            (parts){
                json_pack("{s:s, s:b, s:b, s:n, s:b}", "type", "BertNormalizer", "clean_text", 1,
                          "handle_chinese_chars", 1, "strip_accents", "lowercase", lower),
                json_pack("{s:s}", "type", "BertPreTokenizer"),
                processor,
                json_pack("{s:s, s:s, s:b}", "type", "WordPiece", "prefix", "##", "cleanup", 1),
                json_pack("{s:s, s:s, s:s, s:I, s:o}", "type", "WordPiece", "unk_token", "[UNK]",
                          "continuing_subword_prefix", "##", "max_input_chars_per_word", longest,
                          "vocab", vocabulary_json(tokenizer)),
            });
    }
    if (tokenizer->kind == &wg__bpe_kind) {
        const wg__bpe *bpe = (const wg__bpe *)tokenizer;
        const bool is_gpt2 = strcmp(bpe->pattern, WG__GPT2_PATTERN) == 0;
        const bpe_model model = {.ignore_merges = bpe->whole_words,
                                 .merges = merges_json(&tokenizer->vocabulary, &bpe->merges)};
        return byte_level_file(tokenizer, is_gpt2 ? NULL : bpe->pattern, bpe->prefix_space,
                               bpe_json(tokenizer, &model));
    }
    if (tokenizer->kind == &wg__byte_kind) {
        const bpe_model model = {.merges = json_array()};
        return byte_level_file(tokenizer, NULL, false, bpe_json(tokenizer, &model));
    }
    if (tokenizer->kind == &wg__char_kind) {
        const int32_t unknown = tokenizer->special[WG_TOKEN_UNKNOWN];
        const bpe_model model = {.unknown = wg_tokenizer_token(tokenizer, unknown),
                                 .merges = json_array()};
        return file_of(tokenizer,
                       (parts){json_null(), json_null(), json_null(),
                               json_pack("{s:s}", "type", "Fuse"), bpe_json(tokenizer, &model)});
    }
    const wg__pieces *p = (const wg__pieces *)tokenizer;
    json_t *decoders = json_array();
    wg__json_append(&decoders, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern",
                                         "String", WG__SPACE_SYMBOL, "content", " "));
    wg__json_append(&decoders, json_pack("{s:s}", "type", "ByteFallback"));
    wg__json_append(&decoders, json_pack("{s:s}", "type", "Fuse"));
    if (p->settings.strip != WG__STRIP_NONE)
        wg__json_append(&decoders, json_pack("{s:s, s:s, s:i, s:i}", "type", "Strip", "content",
                                             " ", "start", 1, "stop", 0));
    return file_of(&p->base,
                   (parts){pieces_normalizer(p), pieces_pre_tokenizer(p), pieces_processor(p),
                           sequence("decoders", decoders), pieces_model(p)});
}

int wg__huggingface_write(const wg_tokenizer *tokenizer, wg__text *out) {
    if (!is_expressible(tokenizer))
        return 0;
    json_t *file = whole_file(tokenizer);
    const int status = wg__json_dump(file, JSON_INDENT(1), out);
    json_decref(file);
    return status < 0 || wg__text_append(out, "\n", 1) < 0 ? -1 : 1;
}
