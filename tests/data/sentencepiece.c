/* SentencePiece: special pieces, damaged files, memory. tokenizer_reference.c compares ids and
 * texts with the published ones. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/sentencepiece.h"
#include "data/tokenizer/text_file.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"

static wg_tokenizer *load_fixture(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "tokenizers/%s.model", name);
    wg_tokenizer *tokenizer = owned(wg_tokenizer_load(fixture(path)));
    assert_no_error();
    return tokenizer;
}

/* ---- Special pieces ---- */

TEST(control_pieces_come_of_text_only_when_asked) {
    wg_tokenizer *tokenizer = load_fixture("sp_bpe");
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN), 0);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_END), 2);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_PAD), -1);
    ck_assert(wg__tokenizer_is_special(tokenizer, 1));
    ck_assert(!wg__tokenizer_is_special(tokenizer, wg_tokenizer_id(tokenizer, "[INST]")));
    wg_encode_options options = {.special_tokens = true};
    ck_assert_ptr_null(strstr(tokens_of(tokenizer, "<s>a</s><0x41>", NULL), "<s>"));
    ck_assert_ptr_null(strstr(tokens_of(tokenizer, "<s>a</s><0x41>", &options), "<0x41>"));
    ck_assert_str_eq(tokens_of(tokenizer, "<s>a</s>", &options), "<s> \u2581a </s>");
    /* Those that are defined by users always come of text. */
    ck_assert_str_eq(tokens_of(tokenizer, "[INST][IN", NULL), "\u2581 [INST] [IN");
    tokenizer = load_fixture("sp_unigram");
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_PAD), 0);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_END), 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_UNKNOWN), 2);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), -1);
    tokenizer = load_fixture("sp_bpe_rules");
    ck_assert_str_eq(tokens_of(tokenizer, "[sep]", &options), "[sep]");
    ck_assert_str_ne(tokens_of(tokenizer, "[sep]", NULL), "[sep]");
}

/* ---- Models by hand ---- */

static const char *const texts[] = {"<unk>", "a", "b", "ab", "\u2581", "\u2581a", "<0x41>"};
static const double scores[] = {0, -1, -2, -0.5, -3, -0.25, 0};
static const uint8_t types[] = {WG__PIECE_UNKNOWN, WG__PIECE_NORMAL, WG__PIECE_NORMAL,
                                WG__PIECE_NORMAL,  WG__PIECE_NORMAL, WG__PIECE_NORMAL,
                                WG__PIECE_BYTE};

static wg_tokenizer *make(const wg__piece_settings *settings) {
    wg__piece_model model = {.settings = *settings,
                             .count = WG_COUNT(texts),
                             .texts = texts,
                             .scores = scores,
                             .types = types};
    return owned(wg__sentencepiece_new(&model));
}

TEST(the_best_score_is_joined_first) {
    wg_tokenizer *bpe = make(&(wg__piece_settings){.prefix = WG__PREFIX_ALWAYS});
    ck_assert_str_eq(tokens_of(bpe, "abab", NULL), "\u2581a b ab");
    wg_tokenizer *unigram =
        make(&(wg__piece_settings){.prefix = WG__PREFIX_ALWAYS, .unigram = true});
    ck_assert_str_eq(tokens_of(unigram, "abab", NULL), "\u2581a b ab");
    ck_assert_str_eq(tokens_of(unigram, "bcc", NULL), "\u2581 b <unk>");
    wg_tokenizer *parted = make(&(wg__piece_settings){.part_unknowns = true});
    ck_assert_str_eq(tokens_of(parted, "bcc", NULL), "b <unk> <unk>");
}

TEST(a_prefix_goes_where_the_settings_say) {
    wg_tokenizer *missing = make(&(wg__piece_settings){.prefix = WG__PREFIX_MISSING});
    ck_assert_str_eq(tokens_of(missing, "a", NULL), "\u2581a");
    ck_assert_str_eq(tokens_of(missing, " a", NULL), "\u2581a");
    wg_tokenizer *first =
        make(&(wg__piece_settings){.prefix = WG__PREFIX_ALWAYS, .prefix_first = true});
    wg_encode_options options = {.special_tokens = true};
    ck_assert_str_eq(tokens_of(first, "a<unk>a", &options), "\u2581a <unk> a");
    ck_assert_str_eq(tokens_of(first, "<unk>a", &options), "<unk> a");
    wg_tokenizer *words = make(&(wg__piece_settings){
        .prefix = WG__PREFIX_MISSING, .split_spaces = true, .split_words = true});
    ck_assert_str_eq(tokens_of(words, " \u3000a\t b\n", NULL), "\u2581a \u2581 b");
}

TEST(a_model_that_contradicts_itself_is_refused) {
    assert_fails(make(&(wg__piece_settings){.byte_fallback = true}), WG_ERROR_FORMAT, "<0x00>");
    uint8_t bad[WG_COUNT(types)];
    const struct {
        int at;
        uint8_t type;
        const char *message;
    } cases[] = {
        {0, WG__PIECE_NORMAL, "no piece is of type unknown"},
        {1, WG__PIECE_UNKNOWN, "both unknown"},
        {1, WG__PIECE_BYTE, "piece 2 is of type byte"},
        {1, WG__PIECE_UNUSED, "unused"},
        {1, 0, "of type 0"},
        {1, 7, "of type 7"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        memcpy(bad, types, sizeof bad);
        bad[cases[i].at] = cases[i].type;
        wg__piece_model model = {
            .count = WG_COUNT(texts), .texts = texts, .scores = scores, .types = bad};
        assert_fails(wg__sentencepiece_new(&model), WG_ERROR_FORMAT, cases[i].message);
    }
}

/* ---- Damaged files ---- */

/* A string of bytes, which may be NUL, and its length. */
#define BYTES(text) text, sizeof text - 1

#define UNKNOWN "\x0a\x09\x0a\x05<unk>\x18\x02"

TEST(damaged_files_are_refused_with_their_reason) {
    static const struct {
        const char *bytes;
        int64_t length;
        const char *message;
    } cases[] = {
        {BYTES(""), "no piece is of type unknown"},
        {BYTES("\x0a"), "file is damaged"},
        {BYTES("\x0a\x7f"), "file is damaged"},
        {BYTES("\x00\x01"), "file is damaged"},
        {BYTES("\x0b\x01"), "file is damaged"}, /* a group */
        {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "file is damaged"},
        {BYTES("\x0a\x01\x0a"), "piece is damaged"},
        {BYTES("\x0a\x02\x0a\x00"), "piece 1 is empty"},
        {BYTES("\x0a\x03\x0a\x01\x00"), "NUL"},
        {BYTES("\x0a\x03\x0a\x01\xff"), "not UTF-8"},
        {BYTES("\x0a\x03\x0a\x01z\x0a\x03\x0a\x01z"), "the pieces 1 and 2 are the same"},
        {BYTES(UNKNOWN "\x12\x02\x18\x03"), "a model of words"},
        {BYTES(UNKNOWN "\x12\x02\x18\x63"), "an unknown kind"},
        {BYTES(UNKNOWN "\x2a\x03\x12\x01x"), "denormalizer_spec"},
        {BYTES(UNKNOWN "\x1a\x03\x12\x01x"), "cut short"},
        {BYTES(UNKNOWN "\x1a\x0a\x12\x08\x40\x00\x00\x00zzzz"), "trie has 64 bytes"},
        {BYTES(UNKNOWN "\x1a\x0b\x12\x09\x04\x00\x00\x00zzzzx"), "closed by NUL"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(wg__sentencepiece_read(cases[i].bytes, cases[i].length, "a.model"),
                     WG_ERROR_FORMAT, cases[i].message);
    assert_fails(wg_tokenizer_load("none.model"), WG_ERROR_NOT_FOUND, "none.model");
}

TEST(files_cut_short_or_changed_never_crash) {
    int64_t length;
    char *good =
        owned(wg__text_file_read(fixture("tokenizers/sp_bpe_rules.model"), &length, "test"));
    for (int64_t n = 0; n < length; n++) {
        wg_tokenizer *tokenizer = wg__sentencepiece_read(good, n, "cut");
        /* A file cut between fields is a smaller model. */
        ck_assert((tokenizer != NULL) != (wg_error_pending() != NULL));
        wg_error_clear();
        wg_tokenizer_free(tokenizer);
    }
    wg_token_list list = {0};
    for (int64_t n = 0; n < length; n += 3) {
        char kept = good[n];
        good[n] = (char)(kept ^ (1 << n % 8));
        wg_tokenizer *tokenizer = wg__sentencepiece_read(good, length, "changed");
        if (tokenizer)
            ck_assert_int_eq(
                wg_tokenizer_encode(tokenizer, "Ａｂ ﬃ e\u0301 <n>\u00bd", -1, NULL, &list), 0);
        wg_error_clear();
        wg_tokenizer_free(tokenizer);
        good[n] = kept;
    }
    wg_token_list_free(&list);
}

/* ---- Memory ---- */

TEST(failing_allocations_leak_nothing) {
    const char *const names[] = {"sp_bpe", "sp_unigram"};
    wg_token_list list = {0};
    for (size_t i = 0; i < WG_COUNT(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "tokenizers/%s.model", names[i]);
        bool done = false;
        for (int64_t n = 0; !done; n += n < 100 ? 1 : 1 + n / 8) {
            wg__alloc_fail_after(n);
            wg_tokenizer *tokenizer = wg_tokenizer_load(fixture(path));
            char *json = wg_tokenizer_to_json(tokenizer);
            wg_tokenizer *again = wg_tokenizer_from_json(json);
            char *text = NULL;
            if (again &&
                wg_tokenizer_encode(again, "some text, \u00e9\u4e00", -1, NULL, &list) == 0)
                text = wg_tokenizer_decode(again, list.ids, list.count, NULL);
            wg__alloc_fail_after(-1);
            done = text != NULL;
            ck_assert(done || wg_error_pending());
            wg_error_clear();
            wg_token_list_free(&list);
            wg_text_free(json);
            wg_text_free(text);
            wg_tokenizer_free(again);
            wg_tokenizer_free(tokenizer);
        }
    }
}
