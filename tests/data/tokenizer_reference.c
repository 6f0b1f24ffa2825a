/* Every tokenizer against the published program of its kind: hostile texts, and the real texts on
 * this machine. tests/fixtures/tokenizers.py made the ids. And exported to the formats of other
 * programs: read again here they give the same ids. A test runs once for each tokenizer;
 * CK_RUN_CASE=gpt2 picks one. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replacement.h"
#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

typedef struct thing {
    const char *name;
    const char *path;  /* its fixture; NULL: it is in the real data, or trained */
    const char *data;  /* in the real data */
    const char *files; /* the files that its kind has; NULL: it is not exported */
    bool lossless;     /* decoding restores the text exactly */
    bool special;      /* special tokens are read in texts */
    int64_t lines;     /* longest line of real text in bytes; 0: a file is one text */
} thing;

static const thing things[] = {
    {"bpe", "tokenizers/bpe", NULL, "vocab.json tokenizer.json", true, false, 0},
    {"glm", NULL, "tokenizers/glm_chinese/cog-pretrain.model", "tokenizer.model", false, false, 0},
    {"gpt2", NULL, "tokenizers/gpt2", "vocab.json tokenizer.json", true, false, 0},
    {"hf_bert", "tokenizers/hf_bert.tokenizer.json", NULL, NULL, false, true, 0},
    {"hf_bert_cased", "tokenizers/hf_bert_cased.tokenizer.json", NULL, "vocab.txt tokenizer.json",
     false, true, 0},
    {"hf_gpt2", "tokenizers/hf_gpt2.tokenizer.json", NULL, "vocab.json tokenizer.json", true, true,
     0},
    {"hf_llama", "tokenizers/hf_llama.tokenizer.json", NULL, "tokenizer.json", false, true, 0},
    {"hf_llama3", "tokenizers/hf_llama3.tokenizer.json", NULL, "tokenizer.json", false, true, 0},
    {"hf_llama_first", "tokenizers/hf_llama_first.tokenizer.json", NULL, "tokenizer.json", false,
     true, 0},
    {"hf_t5", "tokenizers/hf_t5.tokenizer.json", NULL, "tokenizer.json", false, true, 0},
    {"llama2c", NULL, "stories260K/tok512.bin", "tokenizer.bin tokenizer.model tokenizer.json",
     false, false, 400},
    {"sp_across", "tokenizers/sp_across.model", NULL, "tokenizer.model", false, false, 0},
    {"sp_bpe", "tokenizers/sp_bpe.model", NULL, "tokenizer.model", false, false, 0},
    {"sp_bpe_rules", "tokenizers/sp_bpe_rules.model", NULL, "tokenizer.model", false, false, 0},
    {"sp_suffix", "tokenizers/sp_suffix.model", NULL, "tokenizer.model", false, false, 0},
    {"sp_unigram", "tokenizers/sp_unigram.model", NULL, "tokenizer.model", false, false, 0},
    {"byte", NULL, NULL, "tokenizer.json", false, false, 0},
    {"char", NULL, NULL, "tokenizer.json", false, false, 0},
    {"wordpiece", NULL, NULL, "vocab.txt tokenizer.json", false, false, 0},
};

static const char *name_of(int i) {
    return things[i].name;
}

/* The words of these tests; at the end no two merges are equally frequent. */
static const char corpus[] =
    "<unk> the lower, the newer, the wider; the lowest \xC3\xA9t\xC3\xA9 was newest. The <s> "
    "wider tower of flowers? \xE4\xB8\xAD\xE6\x96\x87 towers the flower 2024, 1234 (low) [new]!\n";

/* NULL if it is not on this machine. */
static wg_tokenizer *load(const thing *thing) {
    if (strcmp(thing->name, "byte") == 0)
        return owned(wg_byte_new());
    if (strcmp(thing->name, "char") == 0)
        return owned(wg__char_train(corpus, -1, &(wg_char_training){.unknown = true}));
    if (strcmp(thing->name, "wordpiece") == 0)
        return owned(
            wg__wordpiece_train(corpus, -1, &(wg_wordpiece_training){.vocabulary_size = 90}));
    const char *path = thing->path ? fixture(thing->path) : real_data(thing->data);
    wg_tokenizer *tokenizer = path ? owned(wg_tokenizer_load(path)) : NULL;
    assert_no_error();
    return tokenizer;
}

/* NULL if it is not there. */
static json_t *load_json(const char *format, const char *name) {
    char path[256];
    snprintf(path, sizeof path, format, name);
    json_t *root = json_load_file(fixture(path), JSON_ALLOW_NUL, NULL);
    return root ? owned(root) : NULL;
}

static json_t *load_texts(void) {
    json_t *texts = load_json("tokenizers/texts.json", "");
    ck_assert_uint_gt(json_array_size(texts), 40);
    return texts;
}

static void encode(const thing *thing, const wg_tokenizer *tokenizer, const char *text,
                   int64_t length, wg_token_list *list) {
    wg_encode_options options = {.special_tokens = thing->special};
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, &options, list), 0);
}

static void assert_ids(const wg_tokenizer *tokenizer, size_t text, const wg_token_list *list,
                       const json_t *ids) {
    for (size_t i = 0; i < json_array_size(ids) && (int64_t)i < list->count; i++) {
        int32_t wanted = (int32_t)json_integer_value(json_array_get(ids, i));
        ck_assert_msg(list->ids[i] == wanted, "text %zu, token %zu: %d \"%s\", wanted %d \"%s\"",
                      text, i, list->ids[i], wg_tokenizer_token(tokenizer, list->ids[i]), wanted,
                      wg_tokenizer_token(tokenizer, wanted));
    }
    ck_assert_msg(list->count == (int64_t)json_array_size(ids), "text %zu: %d tokens, wanted %d",
                  text, (int)list->count, (int)json_array_size(ids));
}

/* The output of decoding by a stream, concatenated. */
static char *decode_by_stream(const wg_tokenizer *tokenizer, const wg_token_list *list,
                              int64_t *total) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    wg_decode_stream *stream = wg_decode_stream_new(tokenizer, NULL);
    for (int64_t i = 0; i <= list->count; i++) {
        int64_t length;
        const char *part = i < list->count ? wg_decode_stream_next(stream, list->ids[i], &length)
                                           : wg_decode_stream_end(stream, &length);
        ck_assert_ptr_nonnull(part);
        ck_assert_int_eq(wg__utf8_invalid(part, length), -1);
        fwrite(part, 1, (size_t)length, out);
    }
    wg_decode_stream_free(stream);
    fclose(out);
    *total = (int64_t)size;
    return text;
}

/* And the published text of the ids: where the reference's decoding differs from the text, ours has
 * to equal it. A stream decodes as decoding at once does. */
TEST_OF_EACH(hostile_texts_give_the_published_ids, WG_COUNT(things), name_of) {
    const thing *thing = &things[_i];
    const json_t *ids = load_json("tokenizers/%s.json", thing->name),
                 *published = load_json("tokenizers/%s_decoded.json", thing->name);
    wg_tokenizer *tokenizer = ids ? load(thing) : NULL;
    if (!tokenizer)
        return;
    json_t *texts = load_texts(), *text;
    ck_assert_uint_eq(json_array_size(ids), json_array_size(texts));
    size_t i;
    json_array_foreach(texts, i, text) {
        const char *bytes = json_string_value(text);
        const int64_t length = (int64_t)json_string_length(text);
        wg_token_list list = {0};
        encode(thing, tokenizer, bytes, length, &list);
        if (!json_is_null(json_array_get(ids, i))) /* the reference cannot read this text */
            assert_ids(tokenizer, i, &list, json_array_get(ids, i));
        int64_t streamed_length;
        char *streamed = decode_by_stream(tokenizer, &list, &streamed_length);
        char *decoded = wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL);
        ck_assert_str_eq(decoded, streamed);
        if (published) /* up to the first NUL, if there is one */
            ck_assert_str_eq(decoded, json_string_value(json_array_get(published, i)));
        if (thing->lossless)
            ck_assert_msg(streamed_length == length && memcmp(streamed, bytes, (size_t)length) == 0,
                          "text %zu: \"%s\" came back as \"%s\"", i, bytes, streamed);
        free(streamed);
        wg_text_free(decoded);
        wg_token_list_free(&list);
    }
}

/* ---- Real text ---- */

static uint64_t hash_ids(const wg_token_list *list) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < list->count; i++)
        hash = (hash ^ (uint32_t)list->ids[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Each line alone, without its end, if it is at most `limit` bytes. */
static void encode_lines(const thing *thing, const wg_tokenizer *tokenizer, const char *text,
                         int64_t length, wg_token_list *list) {
    const char *end = text + length;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline ? newline : end;
        if (stop - text <= thing->lines)
            encode(thing, tokenizer, text, stop - text, list);
        text = stop + 1;
    }
}

static void assert_file(const thing *thing, const wg_tokenizer *tokenizer, const char *path,
                        int64_t count, uint64_t hash) {
    const char *full = real_data(path);
    if (!full)
        return;
    int64_t length;
    char *text = wg__text_file_read(full, &length, "test");
    wg_token_list list = {0};
    if (thing->lines)
        encode_lines(thing, tokenizer, text, length, &list);
    else
        encode(thing, tokenizer, text, length, &list);
    ck_assert_msg(list.count == count && hash_ids(&list) == hash,
                  "%s: %" PRId64 " tokens, hash %016" PRIx64 "; wanted %" PRId64 ", %016" PRIx64,
                  path, list.count, hash_ids(&list), count, hash);
    if (thing->lossless && !thing->lines) {
        char *decoded = wg_tokenizer_decode(tokenizer, list.ids, list.count, NULL);
        ck_assert_msg(strcmp(decoded, text) == 0, "%s does not come back", path);
        wg_text_free(decoded);
    }
    wg_token_list_free(&list);
    wg__free(text);
}

TEST_OF_EACH(real_text_gives_the_published_ids, WG_COUNT(things), name_of) {
    const thing *thing = &things[_i];
    char path[256];
    snprintf(path, sizeof path, "tokenizers/corpora_%s.txt", thing->name);
    FILE *list = fopen(fixture(path), "r");
    wg_tokenizer *tokenizer = list && real_data("tinyshakespeare/input.txt") ? load(thing) : NULL;
    int64_t count;
    uint64_t hash;
    int files = 0;
    while (tokenizer && fscanf(list, "%" SCNd64 " %" SCNx64 " %255s", &count, &hash, path) == 3) {
        files++;
        assert_file(thing, tokenizer, path, count, hash);
    }
    ck_assert(!tokenizer || files > 10);
    if (list)
        fclose(list);
}

/* ---- Exported files ---- */

static const char *const published[] = {"vocab.txt", "vocab.json", "tokenizer.json",
                                        "tokenizer.model", "tokenizer.bin"};

/* Only llama2c has U+2581 as a character; others read it as a space. */
static bool is_comparable(const wg_tokenizer *a, const char *text) {
    return strcmp(wg_tokenizer_kind(a), "llama2c") != 0 || !strstr(text, "\xE2\x96\x81");
}

static void assert_same_ids(const wg_tokenizer *a, const wg_tokenizer *b, const json_t *texts,
                            bool special, const char *file) {
    size_t i;
    json_t *text;
    const wg_encode_options options = {.special_tokens = special};
    json_array_foreach((json_t *)texts, i, text) {
        wg_token_list x = {0}, y = {0};
        const char *bytes = json_string_value(text);
        const int64_t length = (int64_t)json_string_length(text);
        if (!is_comparable(a, bytes))
            continue;
        ck_assert_int_eq(wg_tokenizer_encode(a, bytes, length, &options, &x), 0);
        ck_assert_int_eq(wg_tokenizer_encode(b, bytes, length, &options, &y), 0);
        ck_assert_msg(x.count == y.count, "%s, text %zu: %lld ids, then %lld", file, i,
                      (long long)x.count, (long long)y.count);
        for (int64_t k = 0; k < x.count; k++)
            ck_assert_msg(x.ids[k] == y.ids[k], "%s, text %zu: id %lld differs", file, i,
                          (long long)k);
        wg_token_list_free(&x);
        wg_token_list_free(&y);
    }
}

/* A vocab.txt is read by BERT's rules, a tokenizer.json by those of the library, which differ in
 * rare characters. */
static bool has_other_rules(const thing *thing, const char *file) {
    return (strcmp(thing->name, "wordpiece") == 0 && strcmp(file, "tokenizer.json") == 0) ||
           (strcmp(thing->name, "hf_bert_cased") == 0 && strcmp(file, "vocab.txt") == 0);
}

static void assert_reads(const thing *thing, const wg_tokenizer *tokenizer, const char *file,
                         const json_t *texts) {
    wg_tokenizer *again = owned(wg_tokenizer_load(in_scratch(file)));
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(again), wg_tokenizer_size(tokenizer));
    if (!has_other_rules(thing, file)) {
        assert_same_ids(tokenizer, again, texts, false, file);
        assert_same_ids(tokenizer, again, texts, true, file);
    }
    if (strcmp(file, "wengert.json") == 0) {
        ck_assert_str_eq(json_of(again), json_of(tokenizer));
        ck_assert_str_eq(wg_tokenizer_kind(again), wg_tokenizer_kind(tokenizer));
    }
}

TEST_OF_EACH(every_file_gives_the_same_ids, WG_COUNT(things), name_of) {
    const thing *thing = &things[_i];
    wg_tokenizer *tokenizer = load(thing);
    assert_no_error();
    if (!tokenizer)
        return;
    json_t *texts = load_texts();
    if (!thing->files)
        ck_assert_int_eq(wg_tokenizer_save(tokenizer, in_scratch("wengert.json")), 0);
    bool other = false;
    ck_assert_int_eq(thing->files ? wg_tokenizer_export(tokenizer, scratch(), &other) : 0, 0);
    ck_assert(other == (thing->files != NULL));
    struct stat status;
    for (size_t i = 0; i < WG_COUNT(published); i++) {
        const bool wanted = thing->files && strstr(thing->files, published[i]);
        ck_assert_msg((stat(in_scratch(published[i]), &status) == 0) == wanted, "%s", published[i]);
        if (wanted)
            assert_reads(thing, tokenizer, published[i], texts);
    }
    assert_reads(thing, tokenizer, "wengert.json", texts);
}

TEST_OF_EACH(special_tokens_come_of_text_only_if_asked_for, WG_COUNT(things), name_of) {
    wg_tokenizer *tokenizer = load(&things[_i]);
    if (!tokenizer)
        return;
    for (int32_t id = 0; id < wg_tokenizer_size(tokenizer); id++) {
        if (!wg__tokenizer_is_special(tokenizer, id))
            continue;
        char text[256];
        const int length =
            snprintf(text, sizeof text, "the %s the", wg__tokenizer_added_text(tokenizer, id));
        wg_token_list plain = {0}, asked = {0};
        const wg_encode_options options = {.special_tokens = true};
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, NULL, &plain), 0);
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, length, &options, &asked), 0);
        bool found = false;
        for (int64_t i = 0; i < plain.count; i++)
            ck_assert_msg(!wg__tokenizer_is_special(tokenizer, plain.ids[i]) ||
                              plain.ids[i] == wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN),
                          "\"%s\" gives the special token %d", text, plain.ids[i]);
        for (int64_t i = 0; i < asked.count; i++)
            found |= asked.ids[i] == id;
        ck_assert_msg(found, "\"%s\" does not give %d", text, id);
        wg_token_list_free(&plain);
        wg_token_list_free(&asked);
    }
}

/* A file whose format has an end is refused when it is cut at any byte. */
TEST_OF_EACH(a_file_cut_short_is_refused, WG_COUNT(things), name_of) {
    const thing *thing = &things[_i];
    if (thing->path || (thing->data && strcmp(thing->name, "llama2c") != 0))
        return;
    wg_tokenizer *tokenizer = load(thing);
    bool other;
    if (!tokenizer)
        return;
    ck_assert_int_eq(wg_tokenizer_export(tokenizer, scratch(), &other), 0);
    static const char *const files[] = {"vocab.json", "tokenizer.json", "tokenizer.model",
                                        "wengert.json"};
    for (size_t i = 0; i < WG_COUNT(files); i++) {
        int64_t length;
        char *bytes = wg__text_file_read(in_scratch(files[i]), &length, "test");
        wg_error_clear();
        if (!bytes)
            continue;
        const int64_t step = length < 2000 ? 1 : length / 499;
        ck_assert_int_eq(wg__replace_file(in_scratch("cut"), bytes, length, "test"), 0);
        for (int64_t cut = length - 3; cut >= 0; cut -= step) {
            ck_assert_int_eq(truncate(in_scratch("cut"), cut), 0);
            ck_assert_msg(!wg_tokenizer_load(in_scratch("cut")),
                          "%s of %lld bytes is read up to %lld", files[i], (long long)length,
                          (long long)cut);
            assert_error(WG_ERROR_FORMAT, "cut");
        }
        wg__free(bytes);
    }
}

static bool export_to_scratch(const void *tokenizer) {
    bool other;
    return wg_tokenizer_export(tokenizer, scratch(), &other) == 0;
}

/* Published vocabularies would take too long. */
TEST_OF_EACH(an_export_without_memory_says_so_and_leaks_nothing, WG_COUNT(things), name_of) {
    const thing *thing = &things[_i];
    if (thing->path || (thing->data && strcmp(thing->name, "llama2c") != 0))
        return;
    wg_tokenizer *tokenizer = load(thing);
    if (tokenizer)
        ck_assert_int_ge(fail_every_allocation(export_to_scratch, tokenizer), 5);
}
