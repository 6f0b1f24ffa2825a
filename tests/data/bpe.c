/* Byte-level BPE: files, special tokens, decoding of any ids, training. tokenizer_reference.c
 * compares its ids with the published ones. */
#include <stdlib.h>
#include <string.h>

#include "data/tokenizer/kind.h"
#include "data/tokenizer/text_file.h"
#include "base/alloc.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

static wg_tokenizer *load_fixture(void) {
    wg_tokenizer *tokenizer = owned(wg_tokenizer_load(fixture("tokenizers/bpe")));
    assert_no_error();
    return tokenizer;
}

/* ---- Special tokens ---- */

TEST(the_end_of_text_is_read_only_when_asked) {
    wg_tokenizer *tokenizer = load_fixture();
    int32_t end = wg_tokenizer_special(tokenizer, WG_TOKEN_END);
    ck_assert_int_eq(end, wg_tokenizer_size(tokenizer) - 1);
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_BEGIN), end);
    ck_assert(wg__tokenizer_is_special(tokenizer, end));
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_MASK), -1);
    const char *text = "a<|endoftext|>b <|endoftext|>";
    wg_encode_options options = {.special_tokens = true};
    ck_assert_ptr_null(strstr(tokens_of(tokenizer, text, NULL), "<|endoftext|>"));
    ck_assert_str_eq(tokens_of(tokenizer, text, &options),
                     "a <|endoftext|> b \u0120 <|endoftext|>");
    char rest[256];
    snprintf(rest, sizeof rest, "<|endoftext|> %s", tokens_of(tokenizer, "<|endoftext", &options));
    ck_assert_str_eq(tokens_of(tokenizer, "<|endoftext|><|endoftext", &options), rest);
    const int32_t ids[] = {end, 64, end};
    ck_assert_str_eq(text_of_ids(tokenizer, 3, ids, NULL), "<|endoftext|>a<|endoftext|>");
    ck_assert_str_eq(text_of_ids(tokenizer, 3, ids, &(wg_decode_options){.skip_special = true}),
                     "a");
}

/* ---- Options ---- */

static wg_tokenizer *few_merges(const wg_bpe_options *options) {
    /* The 256 letters would fill a page: they come from the fixture. */
    wg_tokenizer *source = load_fixture();
    const char *tokens[260];
    for (int32_t i = 0; i < 256; i++)
        tokens[i] = wg_tokenizer_token(source, i);
    tokens[256] = "ab";
    tokens[257] = "bc";
    tokens[258] = "abc";
    tokens[259] = "\u0120ab";
    const int32_t a = wg_tokenizer_id(source, "a"), b = wg_tokenizer_id(source, "b"),
                  c = wg_tokenizer_id(source, "c"), space = wg_tokenizer_id(source, "\u0120");
    const int32_t merges[][2] = {{b, c}, {a, b}, {space, 256}};
    return owned(wg__bpe_new(260, tokens, 3, merges, options));
}

TEST(merges_go_by_their_rank_and_then_from_the_left) {
    wg_tokenizer *tokenizer = few_merges(NULL);
    ck_assert_str_eq(tokens_of(tokenizer, "ab", NULL), "ab");
    ck_assert_str_eq(tokens_of(tokenizer, "abc", NULL), "a bc");
    ck_assert_str_eq(tokens_of(tokenizer, " ab ab", NULL), "\u0120ab \u0120ab");
    ck_assert_str_eq(tokens_of(tokenizer, "ababcab", NULL), "ab a bc ab");
}

TEST(options_change_what_they_say) {
    wg_tokenizer *whole = few_merges(&(wg_bpe_options){.whole_words = true});
    ck_assert_str_eq(tokens_of(whole, "abc", NULL), "abc");
    ck_assert_str_eq(tokens_of(whole, "abca", NULL), "a bc a");
    wg_tokenizer *spaced = few_merges(&(wg_bpe_options){.prefix_space = true});
    ck_assert_str_eq(tokens_of(spaced, "ab", NULL), "\u0120ab");
    ck_assert_str_eq(tokens_of(spaced, " ab", NULL), "\u0120ab");
    ck_assert_str_eq(tokens_of(spaced, "", NULL), "");
    wg_tokenizer *pattern = few_merges(&(wg_bpe_options){.pattern = "b"});
    ck_assert_str_eq(tokens_of(pattern, "abcab", NULL), "a b c a b");
    /* Matches that are empty split nothing. */
    wg_tokenizer *empty = few_merges(&(wg_bpe_options){.pattern = "x*"});
    ck_assert_str_eq(tokens_of(empty, "ab\u00e9xxab", NULL), "ab \u00c3 \u00a9 x x ab");
}

TEST(a_bad_pattern_is_refused) {
    const char *const bad[][2] = {
        {"(", "parenthesis"},         {"", "1 to 4096"},     {"(*NO_JIT)a", "begin with (*"},
        {"[[:alpha:]\\s]", "within"}, {"[\\S]", "\\S with"}, {"[a&&b]", "&&"},
        {"[]a]", "followed by ]"},    {"\\Qa", "\\Q"},       {"\\C", "\\C"},
    };
    for (size_t i = 0; i < WG_COUNT(bad); i++)
        assert_fails(few_merges(&(wg_bpe_options){.pattern = bad[i][0]}), WG_ERROR_FORMAT,
                     bad[i][1]);
}

TEST(a_pattern_that_takes_for_ever_is_an_error) {
    wg_tokenizer *tokenizer = few_merges(&(wg_bpe_options){.pattern = "(a+)+(a+)+(a+)+(a+)+$"});
    wg_token_list list = {0};
    char text[200];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '!';
    assert_fails(wg_tokenizer_encode(tokenizer, text, sizeof text, NULL, &list), WG_ERROR_FORMAT,
                 "match limit");
}

/* A word too long for merging by a scan of all pairs: the heap gives the same tokens. */
TEST(long_words_merge_as_short_ones_do) {
    wg_tokenizer *tokenizer = few_merges(&(wg_bpe_options){.pattern = "[a-z]+"});
    char text[3 * 40 + 1];
    for (int words = 1; words <= 40; words++) {
        for (int i = 0; i < words; i++)
            memcpy(text + 3 * i, i % 3 == 0 ? "abc" : i % 3 == 1 ? "aab" : "bca", 3);
        wg_token_list list = {0};
        ck_assert_int_eq(wg_tokenizer_encode(tokenizer, text, 3 * words, NULL, &list), 0);
        /* The expected merges: (b, c) everywhere first, then (a, b) from the left. */
        int64_t at = 0, n = 3 * words;
        for (int64_t i = 0; i < n; at++) {
            const char *wanted = i + 1 < n && text[i] == 'b' && text[i + 1] == 'c' ? "bc"
                                 : i + 1 < n && text[i] == 'a' && text[i + 1] == 'b' &&
                                         !(i + 2 < n && text[i + 2] == 'c')
                                     ? "ab"
                                     : (const char[]){text[i], 0};
            ck_assert_str_eq(wg_tokenizer_token(tokenizer, list.ids[at]), wanted);
            i += (int64_t)strlen(wanted);
        }
        ck_assert_int_eq(list.count, at);
        wg_token_list_free(&list);
    }
}

/* ---- Decoding ---- */

TEST(bytes_that_are_no_text_become_replacement_characters) {
    wg_tokenizer *tokenizer = load_fixture();
    int32_t ids[256];
    for (int32_t i = 0; i < 256; i++) /* single bytes, in the order of GPT-2's letters */
        ids[i] = i;
    const char *text = text_of_ids(tokenizer, 256, ids, NULL);
    ck_assert_int_eq(wg__utf8_invalid(text, (int64_t)strlen(text)), -1);
    /* E2 82 alone; F0 9F 98 cut off by A; C0; ED A0 80 (a surrogate); E2 82 at the end. */
    const char *const letters[] = {"\u00e2", "\u0124", "A",      "\u00f0", "\u0141",
                                   "\u013a", "A",      "\u00c0", "A",      "\u00ed",
                                   "\u0142", "\u0122", "A",      "\u00e2", "\u0124"};
    for (size_t i = 0; i < WG_COUNT(letters); i++) {
        ids[i] = wg_tokenizer_id(tokenizer, letters[i]);
        ck_assert_int_ge(ids[i], 0);
    }
    ck_assert_str_eq(text_of_ids(tokenizer, WG_COUNT(letters), ids, NULL),
                     "\ufffdA\ufffdA\ufffdA\ufffd\ufffd\ufffdA\ufffd");
}

TEST(a_stream_holds_back_what_is_not_whole) {
    wg_tokenizer *tokenizer = load_fixture();
    wg_decode_stream *stream = owned(wg_decode_stream_new(tokenizer, NULL));
    int32_t e2 = wg_tokenizer_id(tokenizer, "\u00e2"), x82 = wg_tokenizer_id(tokenizer, "\u0124"),
            ac = wg_tokenizer_id(tokenizer, "\u00ac"), a = wg_tokenizer_id(tokenizer, "a");
    int64_t length = -1;
    ck_assert_str_eq(wg_decode_stream_next(stream, e2, &length), "");
    ck_assert_int_eq(length, 0);
    ck_assert_str_eq(wg_decode_stream_next(stream, x82, NULL), "");
    ck_assert_str_eq(wg_decode_stream_next(stream, ac, &length), "\u20ac");
    ck_assert_int_eq(length, 3);
    ck_assert_str_eq(wg_decode_stream_next(stream, e2, NULL), "");
    ck_assert_str_eq(wg_decode_stream_next(stream, a, NULL), "\ufffda");
    ck_assert_str_eq(wg_decode_stream_next(stream, e2, NULL), "");
    ck_assert_str_eq(wg_decode_stream_end(stream, &length), "\ufffd");
    ck_assert_str_eq(wg_decode_stream_end(stream, &length), "");
    assert_fails(wg_decode_stream_next(stream, 600, NULL), WG_ERROR_INDEX, "id 600");
    ck_assert_str_eq(wg_decode_stream_next(stream, a, NULL), "a");
    ck_assert_ptr_null(wg_decode_stream_new(NULL, NULL));
}

/* ---- Files ---- */

TEST(saved_files_are_read_back_the_same) {
    const char *vocabulary = in_scratch("vocab.json"), *merges = in_scratch("merges.txt");
    wg_tokenizer *tokenizer = load_fixture();
    ck_assert_int_eq(wg__bpe_save(tokenizer, vocabulary, merges), 0);
    const char *const ways[] = {vocabulary, merges, scratch()};
    for (size_t i = 0; i < WG_COUNT(ways); i++)
        ck_assert_str_eq(json_of(owned(wg_tokenizer_load(ways[i]))), json_of(tokenizer));
    ck_assert_int_eq(remove(merges), 0);
    assert_fails(wg_tokenizer_load(vocabulary), WG_ERROR_NOT_FOUND, "needs merges.txt beside it");
}

/* As in RoBERTa's folders, where a name that could mean anything is the class token. */
TEST(a_folder_names_the_tokens_that_begin_and_end_a_text) {
    wg_tokenizer *tokenizer = load_fixture();
    ck_assert_int_eq(wg_tokenizer_special(tokenizer, WG_TOKEN_CLASS), -1);
    ck_assert_int_eq(wg__bpe_save(tokenizer, in_scratch("vocab.json"), in_scratch("merges.txt")),
                     0);
    write_text("special_tokens_map.json", "{\"cls_token\": \"a\", \"unk_token\": \"a\", "
                                          "\"sep_token\": {\"content\": \"b\"}}");
    wg_tokenizer *named = owned(wg_tokenizer_load(scratch()));
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_special(named, WG_TOKEN_CLASS), wg_tokenizer_id(tokenizer, "a"));
    ck_assert_int_eq(wg_tokenizer_special(named, WG_TOKEN_SEPARATOR),
                     wg_tokenizer_id(tokenizer, "b"));
    ck_assert_int_eq(wg_tokenizer_special(named, WG_TOKEN_MASK), -1);
    ck_assert_int_eq(wg_tokenizer_special(named, WG_TOKEN_UNKNOWN), -1);
    write_text("special_tokens_map.json", "{\"cls_token\": ");
    assert_fails(wg_tokenizer_load(scratch()), WG_ERROR_FORMAT, "special_tokens_map.json");
}

/* A file of the fixture; its length is in *length. */
static char *text_of_fixture(const char *name, int64_t *length) {
    return owned(wg__text_file_read(fixture(name), length, "test"));
}

TEST(bad_files_are_refused_with_their_reason) {
    int64_t length;
    const char *good = text_of_fixture("tokenizers/bpe/vocab.json", &length);
    const char *const cases[][3] = {
        {"", "", "not JSON"},
        {"[]", "", "vocab.json is not an object of tokens"},
        {"{}", "", "vocab.json is not an object of tokens"},
        {"{\"a\": 0, \"b\": 0}", "", "are both 0"},
        {"{\"a\": 1}", "", "the id of \"a\" is not 0 to 0"},
        {"{\"a\": \"0\"}", "", "the id of \"a\""},
        {"{\"a\": 0, \"a\": 1}", "", "duplicate"},
        {"{\"\": 0}", "", "token 1 is empty"},
        {"{\"\\ud800\": 0}", "", "not JSON"},
        {"{\"a\\u0000\": 0}", "", "not JSON"},
        {"{\"a\": 0, \"b\": 1}", "#version: 0.2\n", "for the byte 0x"},
        {good, "#version: 0.2\na b c\n", "merges.txt: line 2 is not two"},
        {good, "#version: 0.2\n\na b\n", "merges.txt: line 2 is not two"},
        {good, "#version: 0.2\nt h\nzz a\n", "line 3: the vocabulary has no token \"zz\""},
        {good, "t h\nz q\n", "merge 2 of \"z\" and \"q\" is not a token"},
        {good, "t h\nt h\n", "occurs twice"},
        {good, "t \xff\n", "merges.txt is not UTF-8: line 1"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(wg__bpe_load(write_text("vocab.json", cases[i][0]),
                                  write_text("merges.txt", cases[i][1])),
                     WG_ERROR_FORMAT, cases[i][2]);
}

TEST(files_cut_short_give_errors_and_never_a_crash) {
    int64_t length, ignored;
    const char *good = text_of_fixture("tokenizers/bpe/vocab.json", &length);
    const char *paths[] = {
        in_scratch("vocab.json"),
        write_text("merges.txt", text_of_fixture("tokenizers/bpe/merges.txt", &ignored))};
    while (length && good[length - 1] != '}') /* blanks behind the object do not belong to it */
        length--;
    for (int64_t n = 0; n < length; n++) {
        write_file(paths[0], good, (size_t)n);
        assert_fails(wg__bpe_load(paths[0], paths[1]), WG_ERROR_FORMAT, "");
    }
}

/* Merges are lines. A file that is cut behind a whole line, or within a token that starts like
 * another one, is a valid shorter list and has to be read as that list; every other cut is
 * refused. */
TEST(merges_cut_short_are_refused_or_read_as_the_shorter_list) {
    static const char head[] = "#version: 0.2\n";
    const int64_t head_count = (int64_t)strlen(head);
    int64_t length;
    const char *merges = text_of_fixture("tokenizers/bpe/merges.txt", &length),
               *cut = in_scratch("merges.txt"), *kept = in_scratch("kept.txt"),
               *copy = in_scratch("small.json");
    int64_t read = 0, refused = 0;
    for (int64_t n = 0; n < length; n++) {
        write_file(cut, merges, (size_t)n);
        wg_tokenizer *tokenizer = wg__bpe_load(fixture("tokenizers/bpe/vocab.json"), cut);
        if (!tokenizer) {
            assert_error(WG_ERROR_FORMAT, "merge");
            refused++;
            continue;
        }
        ck_assert_int_eq(wg__bpe_save(tokenizer, copy, kept), 0);
        int64_t count;
        char *again = wg__text_file_read(kept, &count, "test");
        const int64_t rest = n > head_count ? n - head_count : 0;
        ck_assert_int_eq(memcmp(again, head, (size_t)head_count), 0);
        ck_assert_int_ge(count - head_count, rest);
        ck_assert_int_le(count - head_count, rest + 1); /* a newline at the end */
        ck_assert_int_eq(memcmp(again + head_count, merges + head_count, (size_t)rest), 0);
        wg__free(again);
        wg_tokenizer_free(tokenizer);
        read++;
    }
    ck_assert_int_gt(read, 0);
    ck_assert_int_gt(refused, read);
}

/* ---- Memory ---- */

TEST(failing_allocations_leak_nothing) {
    wg_token_list list = {0};
    bool done = false;
    for (int64_t n = 0; !done; n += n < 100 ? 1 : 1 + n / 8) {
        wg__alloc_fail_after(n);
        wg_tokenizer *tokenizer = wg_tokenizer_load(fixture("tokenizers/bpe"));
        wg_decode_stream *stream = wg_decode_stream_new(tokenizer, NULL);
        char *json = wg_tokenizer_to_json(tokenizer);
        done = tokenizer && stream && json &&
               wg_tokenizer_encode(tokenizer, "some text, not short", -1, NULL, &list) == 0 &&
               wg_decode_stream_next(stream, list.ids[0], NULL);
        wg__alloc_fail_after(-1);
        ck_assert(done || wg_error_pending());
        wg_error_clear();
        wg_token_list_free(&list);
        wg_text_free(json);
        wg_decode_stream_free(stream);
        wg_tokenizer_free(tokenizer);
    }
}

/* ---- Training ---- */

static const char training_text[] =
    "low low low low low lower lower newest newest newest newest newest newest widest widest "
    "widest aaaa aaa aa aaaaa banana bandana<|endoftext|>ananas Low, lowest! (newer) caf\u00e9 "
    "caf\u00e9 \u4e2d\u6587 \u4e2d don't can't won't abcabc abcab cabcab 1999 1998 1899";

TEST(a_trained_vocabulary_is_bytes_merges_and_the_end_of_text) {
    wg_tokenizer *tokenizer =
        owned(wg__bpe_train(training_text, -1, &(wg_bpe_training){.vocabulary_size = 280}));
    assert_no_error();
    ck_assert_int_eq(wg_tokenizer_size(tokenizer), 280);
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 0), "!");
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 220), "\u0120");
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 279), "<|endoftext|>");
    /* "aa", "es" and "st" occur ten times each. */
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 256), "aa");
    ck_assert_str_eq(wg_tokenizer_token(tokenizer, 257), "es");
    assert_comes_back(tokenizer, training_text, &(wg_encode_options){.special_tokens = true});
}

/* Joins the most frequent neighbours in a list of ids; of equally frequent ones the first in byte
 * order. */
static const char *commonest_pair(const wg_tokenizer *tokenizer, const wg_token_list *list) {
    static char joined[512];
    int64_t best = 0;
    const char *best_left = "", *best_right = "";
    for (int64_t i = 0; i + 1 < list->count; i++) {
        int64_t count = 0;
        for (int64_t j = 0; j + 1 < list->count; j++)
            count += list->ids[i] == list->ids[j] && list->ids[i + 1] == list->ids[j + 1];
        const char *left = wg_tokenizer_token(tokenizer, list->ids[i]);
        const char *right = wg_tokenizer_token(tokenizer, list->ids[i + 1]);
        int order = strcmp(left, best_left) ? strcmp(left, best_left) : strcmp(right, best_right);
        if (count > best || (count == best && order < 0)) {
            best = count;
            best_left = left;
            best_right = right;
        }
    }
    snprintf(joined, sizeof joined, "%s%s", best >= 2 ? best_left : "",
             best >= 2 ? best_right : "");
    return joined;
}

/* With a pattern that splits nothing, the pairs of a text are those of its ids. */
TEST(every_merge_is_of_the_commonest_pair) {
    const char *text =
        "low low lower newest newest newest widest widest aaaa aaa aa banana bandana "
        "abcabc abcab cabcab don't can't won't 1999 1998 1899 lower lower caf\u00e9";
    wg_bpe_training training = {.vocabulary_size = 257, .options.pattern = "[^<]+"};
    int64_t merges = 0;
    for (;; merges++, training.vocabulary_size++) {
        wg_tokenizer *before = owned(wg__bpe_train(text, -1, &training));
        training.vocabulary_size++;
        wg_tokenizer *after = owned(wg__bpe_train(text, -1, &training));
        training.vocabulary_size--;
        assert_no_error();
        wg_token_list list = {0};
        ck_assert_int_eq(wg_tokenizer_encode(before, text, -1, NULL, &list), 0);
        const char *wanted = commonest_pair(before, &list);
        bool more = wg_tokenizer_size(after) > wg_tokenizer_size(before);
        ck_assert_str_eq(more ? wg_tokenizer_token(after, (int32_t)(256 + merges)) : "", wanted);
        wg_token_list_free(&list);
        if (!more)
            break;
    }
    ck_assert_int_gt(merges, 30);
}

TEST(training_on_files_equals_training_on_their_text) {
    const char *paths[] = {write_text("second.txt", training_text + 99), in_scratch("first.txt")};
    write_file(paths[1], training_text, 99);
    wg_tokenizer *text = owned(wg__bpe_train(training_text, -1, NULL));
    wg_tokenizer *files = owned(wg_bpe_train_files(2, paths, NULL));
    ck_assert_str_eq(json_of(text), json_of(files));
}

TEST(training_refuses_what_it_cannot_learn_from) {
    assert_fails(wg__bpe_train("", -1, NULL), WG_ERROR_FORMAT, "no text to learn from");
    assert_fails(wg_bpe_train_files(1, (const char *[]){"/dev/null"}, NULL), WG_ERROR_FORMAT,
                 "/dev/null is empty");
    assert_fails(wg__bpe_train("caf\xe9", -1, NULL), WG_ERROR_FORMAT, "not UTF-8");
    assert_fails(wg__bpe_train("text", -1, &(wg_bpe_training){.vocabulary_size = 256}),
                 WG_ERROR_ARGUMENT, "257");
    assert_fails(wg__bpe_train("text", -1, &(wg_bpe_training){.min_frequency = -1}),
                 WG_ERROR_ARGUMENT, "min_frequency");
    assert_fails(wg_bpe_train_files(1, (const char *[]){"none.txt"}, NULL), WG_ERROR_NOT_FOUND,
                 "none.txt");
}
