/* Sentence pairs from texts and token files: parts, weights, damage, and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/tokenizer/tokenizer.h"
#include "data/dataset/dataset.h"
#include "objectives/translation.h"
#include "io/checkpoint/checkpoint.h"
#include "base/alloc.h"
#include "tests/support/damage.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- Helpers ---- */

/* Line i of one side: 1 to 12 letters; all lines differ. */
static void make_line(wg_side side, int i, char *line) {
    const int count = 1 + i * (side == WG_SOURCE ? 7 : 5) % 12;
    for (int k = 0; k < count; k++)
        line[k] = (char)((side == WG_SOURCE ? 'a' : 'A') + (i + i / 12 * k) % 26);
    line[count] = '\0';
}

/* Writes lines first .. end - 1 of both sides to NAME.from and NAME.to. */
static void write_pairs(const char *name, int first, int end, const char *paths[2]) {
    static const char *const endings[] = {"from", "to"};
    char line[16], file_name[32];
    for (int side = 0; side < 2; side++) {
        snprintf(file_name, sizeof file_name, "%s.%s", name, endings[side]);
        paths[side] = in_scratch(file_name);
        FILE *file = fopen(paths[side], "w");
        for (int i = first; i < end; i++) {
            make_line((wg_side)side, i, line);
            fprintf(file, "%s\n", line);
        }
        fclose(file);
    }
}

static void assert_side(const wg_dataset *pairs, wg_side side, int64_t index, const char *wanted) {
    int32_t ids[64];
    const int64_t count = side_of_pair(pairs, side, index, ids);
    ck_assert_int_eq(count, (int64_t)strlen(wanted));
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(ids[i], (unsigned char)wanted[i]);
}

static void assert_text(const wg_dataset *pairs, wg_side side, int64_t index, const char *wanted) {
    char *text = wg__dataset_pair_text(pairs, side, index);
    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(text, wanted);
    wg_text_free(text);
}

/* Fails unless pair `index` has the lines of that number. */
static void assert_pair(const wg_dataset *pairs, int64_t index, int number) {
    char line[16];
    for (int side = 0; side < 2; side++) {
        make_line((wg_side)side, number, line);
        assert_side(pairs, (wg_side)side, index, line);
        assert_text(pairs, (wg_side)side, index, line);
    }
}

static wg_dataset *pairs_of(const char *source, const char *target) {
    return owned(wg_dataset_from_text(source, -1, target, owned(wg_byte_new()),
                                      &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
}

/* Pairs 0 to 39 in a.from and a.to, 40 to 99 in b.from and b.to. */
static void write_files(const char *paths[4]) {
    write_pairs("a", 0, 40, paths);
    write_pairs("b", 40, 100, paths + 2);
}

/* ---- Lines ---- */

TEST(lines_are_pairs) {
    wg_dataset *pairs = pairs_of("Ein Hund.\r\n  Zwei \n\u00e4", "A dog.\nTwo\nae\n");
    ck_assert_int_eq(wg__dataset_documents(pairs), 3);
    ck_assert_int_eq(wg_dataset_vocabulary(pairs), 256);
    static const char *const wanted[3][2] = {
        {"Ein Hund.", "A dog."}, {"  Zwei ", "Two"}, {"\u00e4", "ae"}};
    for (int i = 2; i >= 0; i--) /* in reverse order, unlike that of a text */
        for (int side = 0; side < 2; side++) {
            assert_side(pairs, (wg_side)side, i, wanted[i][side]);
            assert_text(pairs, (wg_side)side, i, wanted[i][side]);
        }
    ck_assert_int_eq(wg_dataset_tokens(pairs), 18 + 11);
    ck_assert_int_eq(wg__dataset_sentence_start(pairs, 7), -1);
    ck_assert_int_eq(wg__dataset_sentence_start(pairs, -1), -1);
    assert_no_error();
    int32_t ids[16];
    assert_fails(wg__dataset_read(pairs, 28, 2, ids), WG_ERROR_INDEX, "tokens 28 to 30");
    assert_fails(wg__dataset_pair_text(pairs, WG_SOURCE, 3), WG_ERROR_INDEX, "pair 3 of 3");
    assert_fails(wg__dataset_pair_text(pairs, WG_SOURCE, -1), WG_ERROR_INDEX, "pair -1 of 3");
}

/* The same tokens with other boundaries are other pairs. */
TEST(a_fingerprint_knows_where_sentences_end) {
    wg_dataset *one = pairs_of("ab\nc", "x\ny"), *other = pairs_of("a\nbc", "x\ny");
    ck_assert_int_ne(wg__dataset_fingerprint(one), wg__dataset_fingerprint(other));
    /* FNV-1a over 0 2 3 a b c 0 1 2 x y, 64 bits each, which runs of older versions have stored. */
    ck_assert_int_eq(wg__dataset_fingerprint(one), INT64_C(3321143014278585190));
}

TEST(texts_that_are_no_pairs_are_refused) {
    static const char *const cases[][3] = {
        {"a\nb\n", "a\n", "the source has 2 lines and the target has 1"},
        {"a\nb\n", "a\n", "line 2 has none"},
        {"a\nb\n", "a\nb\nc\nd", "the target has 4; "},
        {"a\nb\n", "a\nb\nc\nd", "line 3 has none"},
        {"a\n\nb\n", "a\nb\nc\n", "the source: line 2 is empty"},
        {"a\nb", "a\n \t\u3000", "the target: line 2 is empty"},
        {"a\nb\xff", "a\nb", "the source is not UTF-8: line 2"},
        {"", "a", "the source is empty"},
        {"a", "", "the target is empty"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(pairs_of(cases[i][0], cases[i][1]), WG_ERROR_FORMAT, cases[i][2]);
}

TEST(files_that_are_no_pairs_are_refused) {
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    const char *none[] = {"no-such.de", "no-such.en"};
    const char *texts[] = {write_text("a", "a\n"), write_text("b", "b\n"), write_text("c", "c\n")};
    const struct {
        int count;
        const char **paths;
        wg_error_code code;
        const char *message;
    } cases[] = {
        {2, none, WG_ERROR_NOT_FOUND, "no-such.de"},
        {0, none, WG_ERROR_ARGUMENT, "no file"},
        {1, texts, WG_ERROR_ARGUMENT, "/a has no other side"},
        {3, texts, WG_ERROR_ARGUMENT, "/c has no other side"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(load_as(WG_TEXT_PAIRS, cases[i].count, cases[i].paths, tokenizer),
                     cases[i].code, cases[i].message);
    write_file(texts[0], "a\0b\n", 4);
    assert_fails(load_as(WG_TEXT_PAIRS, 2, texts, tokenizer), WG_ERROR_FORMAT,
                 "/a: line 1 holds a NUL");
}

/* ---- Parts ---- */

TEST(parts_have_nothing_in_common) {
    wg_dataset *all = pairs_of("a\nb\nc\nd\ne\n", "A\nB\nC\nD\nE"), *first, *rest, *second, *last;
    split_dataset(all, 0.3, &first, &rest);
    ck_assert_int_eq(wg__dataset_documents(first), 3);
    ck_assert_int_eq(wg__dataset_documents(rest), 2);
    assert_side(first, WG_SOURCE, 2, "c");
    assert_text(rest, WG_TARGET, 0, "D");
    assert_side(rest, WG_TARGET, 1, "E");
    ck_assert_int_ne(wg__dataset_fingerprint(first), wg__dataset_fingerprint(rest));
    split_dataset(rest, 0.5, &second, &last);
    assert_text(last, WG_SOURCE, 0, "e");
    assert_fails(wg_dataset_split(last, 0.5, &second, &all), WG_ERROR_ARGUMENT, "1 pairs");
    ck_assert(second == NULL && all == NULL);
    assert_fails(wg_dataset_split(first, 1, &second, &all), WG_ERROR_ARGUMENT, "a share of 1");
}

/* Of two files with their other sides a quarter each. The parts outlive the whole. */
TEST(a_share_of_each_two_files_is_held_out) {
    const char *paths[4];
    write_files(paths);
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    wg_dataset *all = wg_dataset_load(4, paths, tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_PAIRS}),
               *training, *rest;
    assert_fails(wg_dataset_weigh(all, 4, (const double[]){1, 1, 1, 1}), WG_ERROR_ARGUMENT,
                 "4 weights for 2 pairs of files");
    ck_assert_int_eq(wg_dataset_weigh(all, 2, (const double[]){3, 1}), 0);
    split_dataset(all, 0.25, &training, &rest);
    wg_dataset_free(all);
    ck_assert_int_eq(wg__dataset_sources(training), 2);
    ck_assert_int_eq(wg__dataset_source_end(training, 0), 30);
    ck_assert_int_eq(wg__dataset_source_end(training, 1), 75);
    ck_assert_int_eq(wg__dataset_source_end(training, 2), -1);
    ck_assert(wg__dataset_weights(training)[0] == 3);
    for (int i = 0; i < 75; i++)
        assert_pair(training, i, i < 30 ? i : i + 10);
    for (int i = 0; i < 25; i++)
        assert_pair(rest, i, i < 10 ? 30 + i : 75 + i);
}

/* ---- Token files ---- */

/* A token file of two pairs of files, one of one pair, and texts beside it. */
TEST(a_token_file_stands_in_for_its_texts) {
    const char *paths[4], *kept = in_scratch("pairs.h5");
    write_files(paths);
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    wg_dataset *texts = load_kept(WG_TEXT_PAIRS, 4, paths, kept, tokenizer),
               *tokens = load_as(WG_TEXT_PAIRS, 1, &kept, tokenizer), *parts[4];
    assert_no_error();
    ck_assert_int_eq(wg__dataset_documents(tokens), 100);
    ck_assert_int_eq(wg__dataset_sources(tokens), 1);
    ck_assert_int_eq(wg__dataset_fingerprint(tokens), wg__dataset_fingerprint(texts));
    for (int i = 0; i < 100; i += 3)
        assert_pair(tokens, i, i);
    split_dataset(texts, 0.1, &parts[0], &parts[1]);
    split_dataset(tokens, 0.1, &parts[2], &parts[3]);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(wg__dataset_fingerprint(parts[i]), wg__dataset_fingerprint(parts[2 + i]));

    const char *mixed[] = {paths[2], paths[3], kept}, *apart[] = {paths[2], kept, paths[3]};
    wg_dataset *both = load_as(WG_TEXT_PAIRS, 3, mixed, tokenizer);
    ck_assert_int_eq(wg__dataset_source_end(both, 0), 60);
    ck_assert_int_eq(wg__dataset_source_end(both, 1), 160);
    assert_pair(both, 0, 40);
    assert_pair(both, 60 + 41, 41);
    assert_fails(load_as(WG_TEXT_PAIRS, 3, apart, tokenizer), WG_ERROR_ARGUMENT,
                 "b.from has no other side");
}

TEST(token_files_of_other_kinds_are_refused) {
    const char *paths[2], *pairs = in_scratch("pairs.h5"), *stream = in_scratch("stream.h5"),
                          *corpus = in_scratch("corpus.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    load_kept(WG_TEXT_PAIRS, 2, paths, pairs, tokenizer);
    load_kept(WG_TEXT_STREAM, 1, paths, stream, tokenizer);
    load_kept(WG_TEXT_SENTENCES, 1, paths, corpus, tokenizer);
    assert_no_error();
    const struct {
        const char *path;
        wg_dataset_kind kind;
        const char *message;
    } cases[] = {
        {stream, WG_TEXT_PAIRS, "stream.h5 has tokens as one stream; tokens of pairs"},
        {corpus, WG_TEXT_PAIRS, "corpus.h5 has tokens of sentences; tokens of pairs"},
        {pairs, WG_TEXT_SENTENCES,
         "pairs.h5 has tokens of pairs of sentences; tokens of sentences"},
        {pairs, WG_TEXT_STREAM, "pairs.h5 has tokens of pairs of sentences; tokens as one stream"},
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++)
        assert_fails(load_as(cases[i].kind, 1, &cases[i].path, tokenizer), WG_ERROR_ARGUMENT,
                     cases[i].message);
    assert_fails(load_as(WG_TEXT_PAIRS, 1, &pairs, owned(wg__char_train("abc", -1, NULL))),
                 WG_ERROR_ARGUMENT, "pairs.h5 was made with another tokenizer");
}

TEST(a_kept_file_is_used_again_until_a_side_changes) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    load_kept(WG_TEXT_PAIRS, 2, paths, kept, tokenizer);
    const uint64_t made = file_number(kept);
    wg_dataset *again = load_kept(WG_TEXT_PAIRS, 2, paths, kept, tokenizer);
    assert_no_error();
    ck_assert_str_eq(noted, "");
    ck_assert(file_number(kept) == made);
    assert_pair(again, 39, 39);

    /* Texts that were moved are the same, and are found at their new paths. */
    const char *moved[] = {in_scratch("moved.from"), in_scratch("moved.to")};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(rename(paths[i], moved[i]), 0);
    again = load_kept(WG_TEXT_PAIRS, 2, moved, kept, tokenizer);
    ck_assert(file_number(kept) == made);
    assert_pair(again, 7, 7);

    write_text("moved.to", "X");
    assert_fails(load_kept(WG_TEXT_PAIRS, 2, moved, kept, tokenizer), WG_ERROR_FORMAT,
                 "moved.from has 40 lines and");
    ck_assert_ptr_nonnull(strstr(noted, "the texts are others, or have changed"));
    ck_assert(file_number(kept) == made); /* the old file stays when it cannot be replaced */
}

TEST(without_its_texts_a_token_file_has_tokens_alone) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    load_kept(WG_TEXT_PAIRS, 2, paths, kept, tokenizer);
    write_text("a.to", "other\n");
    wg_dataset *pairs = load_as(WG_TEXT_PAIRS, 1, &kept, tokenizer);
    assert_text(pairs, WG_SOURCE, 0, "a");
    assert_fails(wg__dataset_pair_text(pairs, WG_TARGET, 0), WG_ERROR_STATE, "a.to is gone or has");
    unlink(paths[0]);
    pairs = load_as(WG_TEXT_PAIRS, 1, &kept, tokenizer);
    assert_fails(wg__dataset_pair_text(pairs, WG_SOURCE, 0), WG_ERROR_STATE,
                 "a.from is gone or has");
    assert_side(pairs, WG_SOURCE, 0, "a");
}

/* A pipe can be read once; its text is there nevertheless. */
TEST(texts_of_pipes_are_read_again) {
    const char *paths[] = {in_scratch("from"), in_scratch("to")};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mkfifo(paths[i], 0600), 0);
        if (fork() == 0) {
            write_file(paths[i], i == 0 ? "one\ntwo\n" : "eins\nzwei\n", i == 0 ? 8 : 10);
            _exit(0);
        }
    }
    wg_dataset *pairs = load_as(WG_TEXT_PAIRS, 2, paths, owned(wg_byte_new()));
    assert_no_error();
    assert_text(pairs, WG_SOURCE, 1, "two");
    assert_text(pairs, WG_TARGET, 0, "eins");
}

/* ---- Damage ---- */

static int64_t fingerprint_of(const char *path, const void *tokenizer) {
    wg_dataset *pairs =
        wg_dataset_load(1, &path, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    const int64_t found = wg__dataset_fingerprint(pairs);
    wg_dataset_free(pairs);
    return found;
}

TEST(damage_and_truncation_are_told) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    wg_dataset *pairs = load_kept(WG_TEXT_PAIRS, 2, paths, kept, tokenizer);
    ck_assert_int_eq(fingerprint_of(kept, tokenizer), wg__dataset_fingerprint(pairs));
    assert_damage_is_told(kept, 300, 10, fingerprint_of, tokenizer);
}

/* A token file whose /about calls the sentences of a corpus pairs. */
TEST(sentences_that_are_not_two_by_two_are_no_pairs) {
    const char *text = write_text("a.txt", "One.\nTwo.\nThree.\n\nFour.\n"),
               *kept = in_scratch("corpus.h5"), *bad = in_scratch("bad.h5");
    wg_tokenizer *tokenizer = owned(wg_byte_new());
    load_kept(WG_TEXT_SENTENCES, 1, &text, kept, tokenizer);
    assert_no_error();
    wg_checkpoint *from = owned(wg_checkpoint_open(kept)), *to = wg_checkpoint_create(bad);
    char *about = owned(wg_checkpoint_get_text(from, "/about"));
    char *no = strstr(about, "\"pairs\": false");
    ck_assert_ptr_nonnull(no);
    memcpy(no, "\"pairs\": true ", 14);
    ck_assert_int_eq(wg_checkpoint_put_text(to, "/about", about), 0);
    char *json = owned(wg_checkpoint_get_text(from, "/tokenizer"));
    ck_assert_int_eq(wg_checkpoint_put_text(to, "/tokenizer", json), 0);
    ck_assert_int_eq(wg_checkpoint_commit(to), 0);
    assert_fails(load_as(WG_TEXT_PAIRS, 1, &bad, tokenizer), WG_ERROR_FORMAT,
                 "bad.h5: /about lacks");
}

/* ---- Memory ---- */

typedef struct files {
    const char *paths[2], *kept;
    const wg_tokenizer *tokenizer;
} files;

/* Loads, weighs, splits and reads pairs: first from texts, then from their tokens. */
static bool use_pairs(const void *context) {
    const files *f = context;
    const wg_token_storage storage = {.path = f->kept};
    const bool is_there = access(f->kept, R_OK) == 0;
    wg_dataset *pairs = wg_dataset_load(
                   2, f->paths, f->tokenizer,
                   &(wg_dataset_options){.kind = WG_TEXT_PAIRS, .storage = &storage}),
               *training, *held_out;
    wg_dataset_weigh(pairs, 1, &(const double){2});
    wg_dataset_split(pairs, 0.2, &training, &held_out);
    char *text = wg__dataset_pair_text(held_out, WG_TARGET, 0);
    const bool done = wg__dataset_fingerprint(training) != 0 && text;
    wg_text_free(text);
    wg_dataset_free(pairs);
    wg_dataset_free(training);
    wg_dataset_free(held_out);
    if (is_there)
        unlink(f->kept);
    return done;
}

TEST(every_failed_allocation_is_reported_and_nothing_is_left) {
    files f = {.kept = in_scratch("pairs.h5"), .tokenizer = owned(wg_byte_new())};
    write_pairs("a", 0, 20, f.paths);
    ck_assert_int_gt(fail_every_allocation(use_pairs, &f), 20);
}

/* Texts of 64 MB; batches need 16 bytes for each of their pairs. */
TEST(texts_are_never_whole_in_memory) {
    enum { PAIRS = 200000, ROOM = 32 << 20 };
    const char *paths[] = {in_scratch("large.from"), in_scratch("large.to")};
    for (int side = 0; side < 2; side++) {
        FILE *file = fopen(paths[side], "wb");
        for (int i = 0; i < PAIRS; i++)
            fprintf(file,
                    "%s %d of the journey, and nobody had seen land, nor a bird, nor a sail, nor "
                    "any sign of what they had come for; so they prayed%.*s.\n",
                    side == WG_SOURCE ? "It was day" : "Es war Tag", i, i % 40,
                    " and sang, and prayed and sang, and wept");
        ck_assert_int_eq(fclose(file), 0);
    }
    wg_tokenizer *tokenizer = owned(
        wg__bpe_train("a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9}));
    const int64_t process = peak_of_process();
    wg_dataset *training, *rest;
    split_dataset(load_as(WG_TEXT_PAIRS, 2, paths, tokenizer), 0.1, &training, &rest);
    ck_assert_int_eq(wg__dataset_documents(training), PAIRS / 10 * 9);
    ck_assert_int_ne(wg__dataset_fingerprint(training), 0);
    wg_batches *batches = owned(wg__translation_batches_new(
        training, &(wg__translation_tokens){256, 256, -1},
        &(wg__translation_batch_options){.tokens = 4096, .longest = 256}));
    for (int i = 0; i < 100; i++) {
        wg_scope scope;
        wg__translation_batch batch;
        wg_scope_begin(&scope);
        ck_assert_int_eq(wg_batches_next(batches, &batch), 0);
        wg_scope_end(&scope, NULL);
    }
    for (int64_t i = 0; i < wg__dataset_documents(rest); i += 100)
        wg_text_free(wg__dataset_pair_text(rest, WG_TARGET, i));
    assert_no_error();
    ck_assert_int_lt(wg_alloc_get_stats().peak_bytes, ROOM);
    ck_assert_int_lt(peak_of_process() - process, ROOM);
}
