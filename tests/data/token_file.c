/* Token files: the tokens of texts on disk, which are kept, checked for damage, and never wholly in
 * memory. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/tokenizer/tokenizer.h"
#include "data/dataset/dataset.h"
#include "io/checkpoint/checkpoint.h"
#include "base/alloc.h"
#include "tensor/random.h"
#include "tests/support/damage.h"
#include "tests/support/testing.h"
#include "tests/support/word_corpus.h"
#include "data/internal.h"

/* ---- Helpers ---- */

static uint64_t step(uint64_t hash, int64_t value) {
    return (hash ^ (uint64_t)value) * UINT64_C(1099511628211);
}

/* A hash of everything in a corpus. */
static int64_t hash_of_corpus(const wg_dataset *corpus) {
    uint64_t hash = (uint64_t)wg__dataset_fingerprint(corpus);
    for (int64_t i = 0; i <= wg__dataset_sentences(corpus); i++)
        hash = step(hash, wg__dataset_sentence_start(corpus, i));
    for (int64_t i = 0; i <= wg__dataset_documents(corpus); i++)
        hash = step(hash, wg__dataset_document_start(corpus, i));
    return (int64_t)hash;
}

static int64_t hash_of_stream(const wg_dataset *stream) {
    uint64_t hash = (uint64_t)wg__dataset_fingerprint(stream);
    for (int64_t i = 0; i <= wg__dataset_documents(stream); i++)
        hash = step(hash, wg__dataset_document_start(stream, i));
    return (int64_t)step(hash, wg__dataset_bytes(stream));
}

static wg_tokenizer *byte_tokenizer(void) {
    return owned(wg_byte_new());
}

/* A dataset of one file. */
static wg_dataset *load(const char *path, const wg_tokenizer *tokenizer,
                        const wg_dataset_options *options) {
    return owned(wg_dataset_load(1, &path, tokenizer, options));
}

/* A stream of texts whose last part is held out. */
static void load_parts(int count, const char *const *paths, double share, wg_dataset **training,
                       wg_dataset **held_out) {
    ck_assert_int_eq(wg_dataset_load_split(count, paths, byte_tokenizer(), share,
                                           &(wg_dataset_options){.kind = WG_TEXT_STREAM}, training,
                                           held_out),
                     0);
    owned(*training);
    owned(*held_out);
}

static const char three[] = "One two. Three!\n\n\n\nFour five.\n\nSix.\n\n\n\nSeven.\n";

/* ---- The same tokens ---- */

TEST(tokens_are_those_of_the_reader_that_held_texts_whole) {
    const char *path = fixture("../../corpus/heldout.txt");
    wg_tokenizer *tokenizer = byte_tokenizer();
    static const int64_t corpora[3] = {INT64_C(-1278529751639818489), INT64_C(-1278529751639818489),
                                       INT64_C(-230686717947167436)};
    for (int format = 0; format < 3; format++) {
        const wg_dataset_options options = {.format = (wg_sentence_format)format};
        ck_assert_int_eq(hash_of_corpus(load(path, tokenizer, &options)), corpora[format]);
    }
    static const int64_t streams[3] = {INT64_C(-5447775472728997527), INT64_C(9206953364323883815),
                                       INT64_C(-4396082233613229999)};
    static const wg_dataset_options parts[3] = {{.kind = WG_TEXT_STREAM},
                                                {.kind = WG_TEXT_STREAM, .end = 0.7},
                                                {.kind = WG_TEXT_STREAM, .begin = 0.7}};
    for (int part = 0; part < 3; part++)
        ck_assert_int_eq(hash_of_stream(load(path, tokenizer, &parts[part])), streams[part]);
    assert_no_error();
}

TEST(both_parts_of_a_split_are_those_of_two_readings) {
    const char *paths[] = {
        write_text("a.txt", "aaaaabbbbb"),
        write_text("b.txt", "One.\n<|endoftext|>\nTwo.\n<|endoftext|>\nThree.\n")};
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *training, *held_out;
    load_parts(2, paths, 0.5, &training, &held_out);
    wg_dataset *first = owned(wg_dataset_load(
        2, paths, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_STREAM, .end = 0.5}));
    wg_dataset *rest = owned(wg_dataset_load(
        2, paths, tokenizer, &(wg_dataset_options){.kind = WG_TEXT_STREAM, .begin = 0.5}));
    ck_assert_int_eq(hash_of_stream(training), hash_of_stream(first));
    ck_assert_int_eq(hash_of_stream(held_out), hash_of_stream(rest));
    ck_assert_int_eq(wg__dataset_sources(training), 2);
    ck_assert_int_eq(wg__dataset_document_start(training, wg__dataset_source_end(training, 0)), 5);
    ck_assert_int_eq(wg__dataset_source_end(training, 1), wg__dataset_documents(training));
    ck_assert_int_eq(wg__dataset_source_end(training, 2), -1);
}

/* Writes a text of `count` bytes in which byte i is known. */
static char letter(int64_t i) {
    return i % 61 == 60 ? '\n' : (char)('a' + (i * 7 + i / 61 + (i >> 14)) % 26);
}

static const char *write_letters(const char *name, int64_t count) {
    const char *path = in_scratch(name);
    char *text = malloc((size_t)count);
    for (int64_t i = 0; i < count; i++)
        text[i] = letter(i);
    write_file(path, text, (size_t)count);
    free(text);
    return path;
}

/* More chunks than are cached, so that cache entries are reused. */
TEST(any_range_of_a_large_stream_is_read_as_it_was_written) {
    enum { COUNT = 9 << 20, RANGE = 40000 };
    const char *path = write_letters("large.txt", COUNT);
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *stream = load_as(WG_TEXT_STREAM, 1, &path, tokenizer);
    assert_no_error();
    ck_assert_int_eq(wg_dataset_tokens(stream), COUNT);
    int32_t *ids = malloc(RANGE * sizeof *ids);
    wg_generator generator = {.seed = 1};
    for (int i = 0; i < 300; i++) {
        const int64_t first = (int64_t)wg_random_below(&generator, COUNT - RANGE);
        const int64_t count = (int64_t)wg_random_below(&generator, RANGE);
        ck_assert_int_eq(wg__dataset_read(stream, first, count, ids), 0);
        for (int64_t j = 0; j < count; j++)
            ck_assert_int_eq(ids[j], letter(first + j));
    }
    assert_fails(wg__dataset_read(stream, COUNT - 1, 2, ids), WG_ERROR_INDEX,
                 "of a text of 9437184");
    free(ids);
}

TEST(a_pipe_is_read_as_a_file_is) {
    const char *pipe = in_scratch("pipe");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    if (fork() == 0) {
        write_file(pipe, three, sizeof three - 1);
        _exit(0);
    }
    /* Recognising a pipe takes nothing from its writer, which waits for a reader by now. */
    const struct timespec moment = {.tv_nsec = 50000000};
    nanosleep(&moment, NULL);
    ck_assert(!wg__dataset_is_token_file(pipe));
    nanosleep(&moment, NULL);
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *corpus = load(pipe, tokenizer, NULL);
    wg_dataset *expected = owned(wg_dataset_from_text(three, -1, NULL, tokenizer, NULL));
    assert_no_error();
    ck_assert_int_eq(hash_of_corpus(corpus), hash_of_corpus(expected));
}

/* ---- Views ---- */

/* A corpus of `documents` documents of 1 to 3 sentences, from two files; fails unless each part of
 * its split has the sentences of a naive one. */
TEST(a_split_of_a_split_deals_documents_of_all_files) {
    char texts[2][4000] = {"", ""};
    for (int d = 0; d < 60; d++)
        for (int s = 0; s <= d % 3; s++) {
            char *text = texts[d >= 25];
            sprintf(text + strlen(text), "d%d s%d.\n%s", d, s, s == d % 3 ? "\n" : "");
        }
    const char *paths[] = {write_text("a.txt", texts[0]), write_text("b.txt", texts[1])};
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *all =
        wg_dataset_load(2, paths, tokenizer, &(wg_dataset_options){.format = WG_SENTENCES_BY_LINE});
    assert_no_error();
    ck_assert_int_eq(wg__dataset_documents(all), 60);
    ck_assert_int_eq(wg_dataset_weigh(all, 2, (const double[]){3, 1}), 0);
    wg_dataset *part, *rest, *training, *held_out;
    split_dataset(all, 0.2, &part, &rest);
    split_dataset(part, 0.34, &training, &held_out);
    wg_dataset_free(all);
    ck_assert_int_eq(wg__dataset_sources(training), 2);
    ck_assert(wg__dataset_weights(training)[0] == 3);
    int64_t document = 0, sentence = 0;
    int64_t left = 0; /* its number among those that the first split leaves */
    for (int d = 0; d < 60; d++) {
        if (d % 5 == 4 || left++ % 3 == 2)
            continue;
        if (d == 25) /* the first of the second file that stays */
            ck_assert_int_eq(wg__dataset_source_end(training, 0), document);
        ck_assert_int_eq(wg__dataset_document_start(training, document++), sentence);
        for (int s = 0; s <= d % 3; s++, sentence++) {
            char wanted[32];
            int32_t ids[32];
            const int count = sprintf(wanted, "d%d s%d.", d, s);
            const int64_t first = wg__dataset_sentence_start(training, sentence);
            ck_assert_int_eq(wg__dataset_sentence_start(training, sentence + 1) - first, count);
            ck_assert_int_eq(wg__dataset_read(training, first, count, ids), 0);
            for (int i = 0; i < count; i++)
                ck_assert_int_eq(ids[i], wanted[i]);
        }
    }
    ck_assert_int_eq(wg__dataset_documents(training), document);
    ck_assert_int_eq(wg__dataset_sentences(training), sentence);
    ck_assert_int_eq(wg__dataset_document_start(training, document), sentence);
    ck_assert_int_eq(wg__dataset_documents(held_out), 16);
}

TEST(weights_must_be_one_for_each_file_and_above_zero) {
    wg_tokenizer *tokenizer = byte_tokenizer();
    wg_dataset *corpus = owned(wg_dataset_from_text(three, -1, NULL, tokenizer, NULL));
    ck_assert_ptr_null(wg__dataset_weights(corpus));
    assert_fails(wg_dataset_weigh(corpus, 2, (const double[]){1, 1}), WG_ERROR_ARGUMENT,
                 "2 weights for 1 file");
    assert_fails(wg_dataset_weigh(corpus, 1, (const double[]){0}), WG_ERROR_ARGUMENT,
                 "a weight of 0; it must be above 0");
    assert_fails(wg_dataset_weigh(corpus, 1, (const double[]){NAN}), WG_ERROR_ARGUMENT,
                 "a weight of");
}

/* ---- Kept files ---- */

TEST(a_kept_file_is_used_again_until_text_or_tokenizer_change) {
    const char *text = write_text("a.txt", three), *kept = in_scratch("tokens.h5");
    wg_tokenizer *bytes = byte_tokenizer(), *characters = owned(wg__char_train(three, -1, NULL));
    load_kept(WG_TEXT_STREAM, 1, &text, kept, bytes);
    assert_no_error();
    ck_assert_str_eq(noted, "");
    const uint64_t made = file_number(kept);
    wg_dataset *again = load_kept(WG_TEXT_STREAM, 1, &text, kept, bytes);
    assert_no_error();
    ck_assert_str_eq(noted, "");
    ck_assert(file_number(kept) == made);
    ck_assert_int_eq(wg_dataset_tokens(again), sizeof three - 1);

    load_kept(WG_TEXT_STREAM, 1, &text, kept, characters);
    assert_no_error();
    ck_assert_ptr_nonnull(strstr(noted, "tokens.h5 is made anew: the tokenizer is another one"));
    int32_t id;
    ck_assert_int_eq(wg__dataset_read(again, 0, 1, &id), 0); /* of the intact file */
    ck_assert_int_eq(id, 'O');

    write_text("a.txt", "Shorter.");
    load_kept(WG_TEXT_STREAM, 1, &text, kept, bytes);
    write_text("a.txt", "Longer now.");
    load_kept(WG_TEXT_STREAM, 1, &text, kept, bytes);
    assert_no_error();
    ck_assert_ptr_nonnull(strstr(noted, "the texts are others, or have changed"));
}

TEST(a_file_that_is_no_token_file_is_never_written_over) {
    const char *text = write_text("a.txt", three), *kept = write_text("b.txt", "precious");
    wg_tokenizer *tokenizer = byte_tokenizer();
    assert_fails(load_kept(WG_TEXT_STREAM, 1, &text, kept, tokenizer), WG_ERROR_FORMAT,
                 "b.txt exists and is no token file");
    wg_checkpoint *file = wg_checkpoint_create(in_scratch("run.h5"));
    ck_assert_int_eq(wg_checkpoint_put_integer(file, "/train/step", 1), 0);
    ck_assert_int_eq(wg_checkpoint_commit(file), 0);
    assert_fails(load_kept(WG_TEXT_STREAM, 1, &text, in_scratch("run.h5"), tokenizer),
                 WG_ERROR_FORMAT, "run.h5: it is an HDF5 file, but no token file");
}

TEST(a_token_file_stands_in_for_its_text) {
    const char *text = write_text("a.txt", three), *kept = in_scratch("tokens.h5"),
               *other = write_text("b.txt", "And more.");
    wg_tokenizer *bytes = byte_tokenizer(), *characters = owned(wg__char_train(three, -1, NULL));
    load_kept(WG_TEXT_STREAM, 1, &text, kept, bytes);
    wg_dataset *mixed = load_as(WG_TEXT_STREAM, 2, (const char *[]){kept, other}, bytes);
    wg_dataset *plain = load_as(WG_TEXT_STREAM, 2, (const char *[]){text, other}, bytes);
    assert_no_error();
    ck_assert_int_eq(hash_of_stream(mixed), hash_of_stream(plain));
    ck_assert_int_eq(wg__dataset_sources(mixed), 2);
    ck_assert_ptr_nonnull(load_as(WG_TEXT_STREAM, 1, &kept, owned(wg_tokenizer_load(kept))));

    assert_fails(load_as(WG_TEXT_STREAM, 1, &kept, characters), WG_ERROR_ARGUMENT,
                 "tokens.h5 was made with another tokenizer");
    assert_fails(load(kept, bytes, NULL), WG_ERROR_ARGUMENT, "tokens of sentences are wanted");
    wg_dataset *a, *b;
    assert_fails(wg_dataset_load_split(1, &kept, bytes, 0.1,
                                       &(wg_dataset_options){.kind = WG_TEXT_STREAM}, &a, &b),
                 WG_ERROR_ARGUMENT, "tokens.h5 has no part that is held out");
    assert_fails(load(kept, bytes, &(wg_dataset_options){.kind = WG_TEXT_STREAM, .end = 0.5}),
                 WG_ERROR_ARGUMENT, "which is read whole");
    assert_fails(load_kept(WG_TEXT_STREAM, 1, &kept, in_scratch("c.h5"), bytes), WG_ERROR_ARGUMENT,
                 "c.h5 is not made");
}

/* ---- Damage ---- */

static int64_t fingerprint_of(const char *path, const void *tokenizer) {
    wg_dataset *corpus = wg_dataset_load(1, &path, tokenizer, NULL);
    const int64_t found = corpus ? hash_of_corpus(corpus) : 0;
    wg_dataset_free(corpus);
    return found;
}

TEST(damage_and_truncation_are_told) {
    const char *text = write_text("a.txt", three), *kept = in_scratch("tokens.h5");
    wg_tokenizer *tokenizer = owned(wg__char_train(three, -1, NULL));
    wg_dataset *corpus = load_kept(WG_TEXT_SENTENCES, 1, &text, kept, tokenizer);
    assert_no_error();
    ck_assert_int_eq(fingerprint_of(kept, tokenizer), hash_of_corpus(corpus));
    assert_damage_is_told(kept, 700, 20, fingerprint_of, tokenizer);
}

TEST(a_full_disk_is_one_error_and_leaves_nothing) {
    char folder[700];
    snprintf(folder, sizeof folder, "%s/disk", scratch());
    const char *text = write_letters("large.txt", 600000);
    wg_tokenizer *tokenizer = byte_tokenizer();
    mkdir(folder, 0777);
    if (mount("tmpfs", folder, "tmpfs", 0, "size=256k") < 0) {
        printf("# no small disk can be mounted here (%s); skipped\n", strerror(errno));
        return;
    }
    char *before = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    wg_dataset *kept = load_kept(WG_TEXT_STREAM, 1, &text, in_scratch("disk/tokens.h5"), tokenizer);
    const wg_error *error = wg_error_pending();
    const bool clear = error && error->code == WG_ERROR_IO &&
                       strstr(error->message, "disk/tokens.h5: No space left on device");
    wg_error_clear();
    setenv("TMPDIR", folder, 1);
    wg_dataset *unnamed = load_as(WG_TEXT_STREAM, 1, &text, tokenizer);
    error = wg_error_pending();
    const bool clear_unnamed = error && error->code == WG_ERROR_IO &&
                               strstr(error->message, "disk: No space left on device");
    wg_error_clear();
    const int left = files_in(folder);
    umount(folder); /* before any assertion: a failure would leave it mounted */
    setenv("TMPDIR", before ? before : "/tmp", 1);
    free(before);
    ck_assert_ptr_null(kept);
    ck_assert_ptr_null(unnamed);
    ck_assert(clear);
    ck_assert(clear_unnamed);
    ck_assert_int_eq(left, 0);
}

typedef struct kept_text {
    const char *text, *folder, *kept;
    const wg_tokenizer *tokenizer;
} kept_text;

static bool load_and_hash(const void *context) {
    const kept_text *k = context;
    const wg_token_storage storage = {.path = k->kept};
    wg_dataset *a, *b;
    if (wg_dataset_load_split(1, &k->text, k->tokenizer, 0.3,
                              &(wg_dataset_options){.kind = WG_TEXT_STREAM, .storage = &storage},
                              &a, &b) == 0)
        hash_of_stream(a);
    wg_dataset_free(a);
    wg_dataset_free(b);
    ck_assert_int_le(files_in(k->folder), 1);
    unlink(k->kept);
    ck_assert_int_eq(files_in(k->folder), 0);
    return !wg_error_pending();
}

TEST(every_failed_allocation_is_reported_and_nothing_is_left) {
    const kept_text k = {write_text("a.txt", three), in_scratch("kept"),
                         in_scratch("kept/tokens.h5"), byte_tokenizer()};
    mkdir(k.folder, 0777);
    ck_assert_int_gt(fail_every_allocation(load_and_hash, &k), 10);
}

/* ---- Memory ---- */

TEST(a_text_is_never_whole_in_memory) {
    enum { SIZE = 64 << 20, ROOM = 28 << 20 };
    const char *path = in_scratch("large.txt");
    FILE *file = fopen(path, "wb");
    for (int64_t i = 0; ftell(file) < SIZE; i++)
        fprintf(file, "It was day %lld of the journey, and nobody had seen land.%s", (long long)i,
                i % 7 ? " " : "\n");
    ck_assert_int_eq(fclose(file), 0);
    wg_tokenizer *tokenizer = byte_tokenizer();
    const int64_t process = peak_of_process();
    wg_dataset *training, *held_out;
    load_parts(1, &path, 0.1, &training, &held_out);
    ck_assert_int_gt(wg_dataset_tokens(training), SIZE / 10 * 8);
    ck_assert_double_lt(wg_dataset_unigram_loss(training, NULL, held_out), 4);
    wg_dataset *corpus = load(path, tokenizer, NULL);
    ck_assert_int_gt(wg_dataset_tokens(corpus), SIZE / 10 * 9);
    ck_assert_int_ne(wg__dataset_fingerprint(corpus), 0);
    ck_assert_int_lt(wg_alloc_get_stats().peak_bytes, ROOM);
    ck_assert_int_lt(peak_of_process() - process, ROOM);
}
