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

/* The last note that loading gave. */
static char noted[600];

static void note(void *context, const char *line) {
    (void)context;
    snprintf(noted, sizeof noted, "%s", line);
}

static wg_dataset *load_kept(const char *const paths[2], const char *kept,
                             const wg_tokenizer *tokenizer) {
    const wg_token_storage storage = {.path = kept, .note = note};
    noted[0] = '\0';
    return wg_dataset_load(2, paths, tokenizer,
                           &(wg_dataset_options){.kind = WG_TEXT_PAIRS, .storage = &storage});
}

/* ---- Lines ---- */

START_TEST(lines_are_pairs) {
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset *pairs =
        wg_dataset_from_text("Ein Hund.\r\n  Zwei \n\u00e4", -1, "A dog.\nTwo\nae\n", tokenizer,
                             &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
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
    ck_assert_int_eq(wg__dataset_read(pairs, 28, 2, ids), -1);
    assert_error(WG_ERROR_INDEX, "tokens 28 to 30 of a text of 29");
    ck_assert_ptr_null(wg__dataset_pair_text(pairs, WG_SOURCE, 3));
    assert_error(WG_ERROR_INDEX, "pair 3 of 3");
    ck_assert_ptr_null(wg__dataset_pair_text(pairs, WG_SOURCE, -1));
    assert_error(WG_ERROR_INDEX, "pair -1 of 3");
    wg_dataset_free(pairs);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* The same tokens with other boundaries are other pairs. */
START_TEST(a_fingerprint_knows_where_sentences_end) {
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset *one = wg_dataset_from_text("ab\nc", -1, "x\ny", tokenizer,
                                           &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    wg_dataset *other = wg_dataset_from_text("a\nbc", -1, "x\ny", tokenizer,
                                             &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    ck_assert_int_ne(wg__dataset_fingerprint(one), wg__dataset_fingerprint(other));
    /* FNV-1a over 0 2 3 a b c 0 1 2 x y, 64 bits each, which runs of older versions have stored. */
    ck_assert_int_eq(wg__dataset_fingerprint(one), INT64_C(3321143014278585190));
    wg_dataset_free(one);
    wg_dataset_free(other);
    wg_tokenizer_free(tokenizer);
}
END_TEST

static void assert_refused(const char *source, const char *target, const char *why) {
    wg_tokenizer *tokenizer = wg_byte_new();
    ck_assert_ptr_null(wg_dataset_from_text(source, -1, target, tokenizer,
                                            &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_FORMAT, why);
    wg_tokenizer_free(tokenizer);
}

START_TEST(texts_that_are_no_pairs_are_refused) {
    assert_refused("a\nb\n", "a\n", "the source has 2 lines and the target has 1");
    assert_refused("a\nb\n", "a\n", "and line 2 has none");
    assert_refused("a\nb\n", "a\nb\nc\nd", "the target has 4; ");
    assert_refused("a\nb\n", "a\nb\nc\nd", "and line 3 has none");
    assert_refused("a\n\nb\n", "a\nb\nc\n", "the source: line 2 is empty");
    assert_refused("a\nb", "a\n \t\u3000", "the target: line 2 is empty");
    assert_refused("a\nb\xff", "a\nb", "the source is not UTF-8: line 2");
    assert_refused("", "a", "the source is empty");
    assert_refused("a", "", "the target is empty");
}
END_TEST

START_TEST(files_that_are_no_pairs_are_refused) {
    wg_tokenizer *tokenizer = wg_byte_new();
    const char *none[] = {"no-such.de", "no-such.en"};
    ck_assert_ptr_null(
        wg_dataset_load(2, none, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_NOT_FOUND, "no-such.de");
    ck_assert_ptr_null(
        wg_dataset_load(0, none, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT, "no file is given");
    const char *texts[] = {write_text("a", "a\n"), write_text("b", "b\n"), write_text("c", "c\n")};
    ck_assert_ptr_null(
        wg_dataset_load(1, texts, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT, "/a has no other side");
    ck_assert_ptr_null(
        wg_dataset_load(3, texts, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT, "/c has no other side");
    write_file(texts[0], "a\0b\n", 4);
    ck_assert_ptr_null(
        wg_dataset_load(2, texts, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_FORMAT, "/a: line 1 holds a NUL");
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Parts ---- */

START_TEST(parts_have_nothing_in_common) {
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset *all, *first, *rest, *second, *last;
    all = wg_dataset_from_text("a\nb\nc\nd\ne\n", -1, "A\nB\nC\nD\nE", tokenizer,
                               &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    ck_assert_int_eq(wg_dataset_split(all, 0.3, &first, &rest), 0);
    wg_dataset_free(all);
    ck_assert_int_eq(wg__dataset_documents(first), 3);
    ck_assert_int_eq(wg__dataset_documents(rest), 2);
    assert_side(first, WG_SOURCE, 2, "c");
    assert_text(rest, WG_TARGET, 0, "D");
    assert_side(rest, WG_TARGET, 1, "E");
    ck_assert_int_ne(wg__dataset_fingerprint(first), wg__dataset_fingerprint(rest));
    ck_assert_int_eq(wg_dataset_split(rest, 0.5, &second, &last), 0);
    assert_text(last, WG_SOURCE, 0, "e");
    wg_dataset_free(second);
    ck_assert_int_eq(wg_dataset_split(last, 0.5, &second, &all), -1);
    assert_error(WG_ERROR_ARGUMENT, "1 pairs are too few to hold some out");
    ck_assert(second == NULL && all == NULL);
    ck_assert_int_eq(wg_dataset_split(first, 1, &second, &all), -1);
    assert_error(WG_ERROR_ARGUMENT, "a share of 1");
    wg_dataset_free(first);
    wg_dataset_free(rest);
    wg_dataset_free(last);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* Pairs 0 to 39 of two files, 40 to 99 of two more: a quarter of each is held out. */
START_TEST(a_share_of_each_two_files_is_held_out) {
    const char *paths[4];
    write_pairs("a", 0, 40, paths);
    write_pairs("b", 40, 100, paths + 2);
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset *all = wg_dataset_load(4, paths, tokenizer,
                                      &(wg_dataset_options){.kind = WG_TEXT_PAIRS}),
               *training, *rest;
    ck_assert_int_eq(wg_dataset_weigh(all, 4, (const double[]){1, 1, 1, 1}), -1);
    assert_error(WG_ERROR_ARGUMENT, "4 weights for 2 pairs of files");
    ck_assert_int_eq(wg_dataset_weigh(all, 2, (const double[]){3, 1}), 0);
    ck_assert_int_eq(wg_dataset_split(all, 0.25, &training, &rest), 0);
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
    wg_dataset_free(training);
    wg_dataset_free(rest);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Token files ---- */

/* A token file of two pairs of files, one of one pair, and texts beside it. */
START_TEST(a_token_file_stands_in_for_its_texts) {
    const char *paths[4], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    write_pairs("b", 40, 100, paths + 2);
    wg_tokenizer *tokenizer = wg_byte_new();
    const wg_token_storage storage = {.path = kept};
    wg_dataset *texts = wg_dataset_load(
        4, paths, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS, .storage = &storage});
    wg_dataset *tokens =
        wg_dataset_load(1, &kept, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    assert_no_error();
    ck_assert_int_eq(wg__dataset_documents(tokens), 100);
    ck_assert_int_eq(wg__dataset_sources(tokens), 1);
    ck_assert_int_eq(wg__dataset_fingerprint(tokens), wg__dataset_fingerprint(texts));
    for (int i = 0; i < 100; i += 3)
        assert_pair(tokens, i, i);
    wg_dataset *parts[4];
    ck_assert_int_eq(wg_dataset_split(texts, 0.1, &parts[0], &parts[1]), 0);
    ck_assert_int_eq(wg_dataset_split(tokens, 0.1, &parts[2], &parts[3]), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(wg__dataset_fingerprint(parts[i]), wg__dataset_fingerprint(parts[2 + i]));
    for (int i = 0; i < 4; i++)
        wg_dataset_free(parts[i]);
    wg_dataset_free(texts);
    wg_dataset_free(tokens);

    const char *mixed[] = {paths[2], paths[3], kept};
    wg_dataset *both =
        wg_dataset_load(3, mixed, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    ck_assert_int_eq(wg__dataset_source_end(both, 0), 60);
    ck_assert_int_eq(wg__dataset_source_end(both, 1), 160);
    assert_pair(both, 0, 40);
    assert_pair(both, 60 + 41, 41);
    wg_dataset_free(both);
    const char *apart[] = {paths[2], kept, paths[3]};
    ck_assert_ptr_null(
        wg_dataset_load(3, apart, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT, "b.from has no other side");
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(token_files_of_other_kinds_are_refused) {
    const char *paths[2], *pairs_file = in_scratch("pairs.h5"),
                          *stream_file = in_scratch("stream.h5"),
                          *corpus_file = in_scratch("corpus.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = wg_byte_new(), *other = wg__char_train("abc", -1, NULL);
    wg_dataset_free(load_kept(paths, pairs_file, tokenizer));
    wg_dataset_free(wg_dataset_load(
        1, paths, tokenizer,
        &(wg_dataset_options){.kind = WG_TEXT_STREAM,
                              .storage = &(wg_token_storage){.path = stream_file}}));
    wg_dataset_free(wg_dataset_load(
        1, paths, tokenizer,
        &(wg_dataset_options){.storage = &(wg_token_storage){.path = corpus_file}}));
    assert_no_error();
    ck_assert_ptr_null(
        wg_dataset_load(1, &stream_file, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT,
                 "stream.h5 has tokens as one stream; tokens of pairs of sentences are wanted");
    ck_assert_ptr_null(
        wg_dataset_load(1, &corpus_file, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT,
                 "corpus.h5 has tokens of sentences; tokens of pairs of sentences are wanted");
    ck_assert_ptr_null(wg_dataset_load(1, &pairs_file, tokenizer, NULL));
    assert_error(WG_ERROR_ARGUMENT,
                 "pairs.h5 has tokens of pairs of sentences; tokens of sentences are wanted");
    ck_assert_ptr_null(
        wg_dataset_load(1, &pairs_file, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_STREAM}));
    assert_error(WG_ERROR_ARGUMENT,
                 "pairs.h5 has tokens of pairs of sentences; tokens as one stream are wanted");
    ck_assert_ptr_null(
        wg_dataset_load(1, &pairs_file, other, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_ARGUMENT, "pairs.h5 was made with another tokenizer");
    wg_tokenizer_free(tokenizer);
    wg_tokenizer_free(other);
}
END_TEST

static ino_t file_number(const char *path) {
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_ino;
}

START_TEST(a_kept_file_is_used_again_until_a_side_changes) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset_free(load_kept(paths, kept, tokenizer));
    const ino_t made = file_number(kept);
    wg_dataset *again = load_kept(paths, kept, tokenizer);
    assert_no_error();
    ck_assert_str_eq(noted, "");
    ck_assert(file_number(kept) == made);
    assert_pair(again, 39, 39);
    wg_dataset_free(again);

    /* Texts that were moved are the same, and are found at their new paths. */
    const char *moved[] = {in_scratch("moved.from"), in_scratch("moved.to")};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(rename(paths[i], moved[i]), 0);
    again = load_kept(moved, kept, tokenizer);
    ck_assert(file_number(kept) == made);
    assert_pair(again, 7, 7);
    wg_dataset_free(again);

    FILE *file = fopen(moved[1], "r+");
    fputs("X", file);
    ck_assert_int_eq(ftruncate(fileno(file), 1), 0);
    fclose(file);
    ck_assert_ptr_null(load_kept(moved, kept, tokenizer));
    ck_assert_ptr_nonnull(strstr(noted, "the texts are others, or have changed"));
    assert_error(WG_ERROR_FORMAT, "moved.from has 40 lines and");
    ck_assert(file_number(kept) == made); /* the old file stays when it cannot be replaced */
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(without_its_texts_a_token_file_has_tokens_alone) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset_free(load_kept(paths, kept, tokenizer));
    write_text("a.to", "other\n");
    wg_dataset *pairs =
        wg_dataset_load(1, &kept, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    assert_text(pairs, WG_SOURCE, 0, "a");
    ck_assert_ptr_null(wg__dataset_pair_text(pairs, WG_TARGET, 0));
    assert_error(WG_ERROR_STATE, "a.to is gone or has changed since it was tokenised");
    wg_dataset_free(pairs);
    unlink(paths[0]);
    pairs = wg_dataset_load(1, &kept, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    ck_assert_ptr_null(wg__dataset_pair_text(pairs, WG_SOURCE, 0));
    assert_error(WG_ERROR_STATE, "a.from is gone or has changed since it was tokenised");
    assert_side(pairs, WG_SOURCE, 0, "a");
    wg_dataset_free(pairs);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* A pipe can be read once; its text is there nevertheless. */
START_TEST(texts_of_pipes_are_read_again) {
    const char *paths[] = {in_scratch("from"), in_scratch("to")};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(mkfifo(paths[i], 0600), 0);
        if (fork() == 0) {
            write_file(paths[i], i == 0 ? "one\ntwo\n" : "eins\nzwei\n", i == 0 ? 8 : 10);
            _exit(0);
        }
    }
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset *pairs =
        wg_dataset_load(2, paths, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    assert_no_error();
    assert_text(pairs, WG_SOURCE, 1, "two");
    assert_text(pairs, WG_TARGET, 0, "eins");
    wg_dataset_free(pairs);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Damage ---- */

static int64_t fingerprint_of(const char *path, const void *tokenizer) {
    wg_dataset *pairs =
        wg_dataset_load(1, &path, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS});
    const int64_t found = wg__dataset_fingerprint(pairs);
    wg_dataset_free(pairs);
    return found;
}

START_TEST(damage_and_truncation_are_told) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 40, paths);
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset *pairs = load_kept(paths, kept, tokenizer);
    ck_assert_int_eq(fingerprint_of(kept, tokenizer), wg__dataset_fingerprint(pairs));
    wg_dataset_free(pairs);
    assert_damage_is_told(kept, 300, 10, fingerprint_of, tokenizer);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* A token file whose /about calls the sentences of a corpus pairs. */
START_TEST(sentences_that_are_not_two_by_two_are_no_pairs) {
    const char *text = write_text("a.txt", "One.\nTwo.\nThree.\n\nFour.\n"),
               *kept = in_scratch("corpus.h5"), *bad = in_scratch("bad.h5");
    wg_tokenizer *tokenizer = wg_byte_new();
    wg_dataset_free(
        wg_dataset_load(1, &text, tokenizer,
                        &(wg_dataset_options){.format = WG_SENTENCES_BY_LINE,
                                              .storage = &(wg_token_storage){.path = kept}}));
    assert_no_error();
    wg_checkpoint *from = wg_checkpoint_open(kept), *to = wg_checkpoint_create(bad);
    char *about = wg_checkpoint_get_text(from, "/about");
    char *no = strstr(about, "\"pairs\": false");
    ck_assert_ptr_nonnull(no);
    memcpy(no, "\"pairs\": true ", 14);
    ck_assert_int_eq(wg_checkpoint_put_text(to, "/about", about), 0);
    wg_text_free(about);
    char *json = wg_checkpoint_get_text(from, "/tokenizer");
    ck_assert_int_eq(wg_checkpoint_put_text(to, "/tokenizer", json), 0);
    wg_text_free(json);
    wg_checkpoint_close(from);
    ck_assert_int_eq(wg_checkpoint_commit(to), 0);
    ck_assert_ptr_null(
        wg_dataset_load(1, &bad, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_PAIRS}));
    assert_error(WG_ERROR_FORMAT, "bad.h5: /about lacks a field of a token file");
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Memory ---- */

START_TEST(every_failed_allocation_is_reported_and_nothing_is_left) {
    const char *paths[2], *kept = in_scratch("pairs.h5");
    write_pairs("a", 0, 20, paths);
    wg_tokenizer *tokenizer = wg_byte_new();
    const int64_t live = wg_alloc_get_stats().live_blocks;
    bool done = false;
    int failures = 0;
    for (int64_t n = 0; !done; n++) {
        wg__alloc_fail_after(n);
        wg_dataset *pairs = load_kept(paths, kept, tokenizer), *training, *held_out;
        wg_dataset_weigh(pairs, 1, &(const double){2});
        wg_dataset_split(pairs, 0.2, &training, &held_out);
        char *text = wg__dataset_pair_text(held_out, WG_TARGET, 0);
        done = wg__dataset_fingerprint(training) != 0 && text;
        wg__alloc_fail_after(-1);
        failures += !done;
        if (!done)
            assert_error(WG_ERROR_MEMORY, "");
        wg_text_free(text);
        wg_dataset_free(pairs);
        wg_dataset_free(training);
        wg_dataset_free(held_out);
        ck_assert_int_eq(wg_alloc_get_stats().live_blocks, live);
        if (n % 2 == 0) /* written, and used again */
            unlink(kept);
    }
    ck_assert_int_gt(failures, 20);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* Texts of 64 MB; batches need 16 bytes for each of their pairs. */
START_TEST(texts_are_never_whole_in_memory) {
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
    wg_tokenizer *tokenizer =
        wg__bpe_train("a", 1, &(wg_bpe_training){.vocabulary_size = 257, .min_frequency = 9});
    const int64_t process = peak_of_process();
    wg_dataset *pairs = wg_dataset_load(2, paths, tokenizer,
                                        &(wg_dataset_options){.kind = WG_TEXT_PAIRS}),
               *training, *rest;
    ck_assert_int_eq(wg_dataset_split(pairs, 0.1, &training, &rest), 0);
    ck_assert_int_eq(wg__dataset_documents(training), PAIRS / 10 * 9);
    ck_assert_int_ne(wg__dataset_fingerprint(training), 0);
    wg_batches *batches = wg__translation_batches_new(
        training, &(wg__translation_tokens){256, 256, -1},
        &(wg__translation_batch_options){.tokens = 4096, .longest = 256});
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
    wg_batches_free(batches);
    wg_dataset_free(pairs);
    wg_dataset_free(training);
    wg_dataset_free(rest);
    wg_tokenizer_free(tokenizer);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        lines_are_pairs,
        a_fingerprint_knows_where_sentences_end,
        texts_that_are_no_pairs_are_refused,
        files_that_are_no_pairs_are_refused,
        parts_have_nothing_in_common,
        a_share_of_each_two_files_is_held_out,
        a_token_file_stands_in_for_its_texts,
        token_files_of_other_kinds_are_refused,
        a_kept_file_is_used_again_until_a_side_changes,
        without_its_texts_a_token_file_has_tokens_alone,
        texts_of_pipes_are_read_again,
        damage_and_truncation_are_told,
        sentences_that_are_not_two_by_two_are_no_pairs,
        every_failed_allocation_is_reported_and_nothing_is_left,
        texts_are_never_whole_in_memory,
    };
    add_suite("sentence pairs", tests);
}
