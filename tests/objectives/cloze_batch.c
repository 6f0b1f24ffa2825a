/* Patterns and verbalizers: the batch that objectives/cloze.h draws, what texts lose, spaces of
 * BPE, JSON, and what is no pattern. */
#include "objectives/cloze.h"

#include "data/tokenizer/tokenizer.h"
#include "base/alloc.h"
#include "tests/support/testing.h"
#include "data/internal.h"

enum { PAD, UNK, CLS, SEP, MASK, SO, ODD, DOT, IT, WAS, BAD, A, GEM, BRACKET, M, CLOSE, SIZE };
enum { START = SIZE, END }; /* GLM's own, which the vocabulary lacks */

static wg_tokenizer *small(void) {
    static const char *const tokens[SIZE] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "so",
                                             "odd",   ".",     "it",    "was",   "bad",    "a",
                                             "gem",   "[",     "mask",  "]"};
    return wg__wordpiece_new(SIZE, tokens, NULL);
}

/* "yes" before "no", to be put in order. */
static const char *const a_gem_and_bad[] = {"a gem", "bad"};

static wg__cloze *make(const wg_tokenizer *tokenizer, const char *pattern,
                       const char *const verbalizers[2]) {
    wg__labels labels = {0};
    wg__labels_add(&labels, "yes");
    wg__labels_add(&labels, "no");
    wg__cloze *cloze = wg__cloze_new(tokenizer, pattern, &labels, verbalizers);
    wg__labels_free(&labels);
    return cloze;
}

static wg__labelled_text *load(const wg__cloze *cloze, const wg_tokenizer *tokenizer,
                               const char *lines) {
    return wg__cloze_text_load(cloze, write_text("text.tsv", lines), tokenizer);
}

/* A tokenizer, a cloze and a text of its pattern; NULL after an error. */
typedef struct reading {
    wg_tokenizer *tokenizer;
    wg__cloze *cloze;
    wg__labelled_text *text;
} reading;

static reading read_by(wg_tokenizer *tokenizer, const char *pattern,
                       const char *const verbalizers[2], const char *lines) {
    reading r = {.tokenizer = tokenizer, .cloze = make(tokenizer, pattern, verbalizers)};
    r.text = load(r.cloze, tokenizer, lines);
    return r;
}

static reading read_text(const char *pattern, const char *lines) {
    return read_by(small(), pattern, a_gem_and_bad, lines);
}

static void free_reading(reading *r) {
    wg__examples_free((wg__examples *)r->text);
    wg__cloze_free(r->cloze);
    wg_tokenizer_free(r->tokenizer);
}

/* The batch of these texts, in sequences of so many tokens. */
static wg__cloze_batch batch_of(const reading *r, int64_t sequence, int64_t count,
                                const int64_t *texts) {
    wg__cloze_batch batch;
    assert_no_error();
    ck_assert_int_eq(wg__cloze_batch_read(r->cloze, r->text, sequence, count, texts, &batch), 0);
    return batch;
}

static void assert_integers(const wg_tensor *x, int64_t first, int64_t count,
                            const int64_t *wanted) {
    const int64_t *found = (const int64_t *)wg_tensor_data((wg_tensor *)x) + first;
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(found[i] == wanted[i], "element %d is %d, not %d", (int)i, (int)found[i],
                      (int)wanted[i]);
}

/* ---- Batches ---- */

START_TEST(a_batch_is_as_drawn) {
    reading r = read_text("{text} It was [MASK] .", "odd\tno\nso odd .\tyes\n");
    assert_no_error();
    ck_assert_int_eq(wg__cloze_longest(r.cloze), 3);
    wg__cloze_batch batch = batch_of(&r, 16, 2, (int64_t[]){1, 0});
    ck_assert_int_eq(wg_tensor_size(batch.blanks.input_ids, 1), 16); /* 8 and 5, up to 16 */
    ck_assert_int_eq(batch.blanks.tokens, 13 + 11);
    ck_assert_int_eq(batch.label_count, 2);
    assert_integers(batch.blanks.input_ids, 0, 16,
                    (int64_t[]){CLS, SO, ODD, DOT, IT, WAS, MASK, DOT, START, BAD, START, A, GEM,
                                PAD, PAD, PAD});
    assert_integers(batch.blanks.position_ids, 0, 16,
                    (int64_t[]){0, 1, 2, 3, 4, 5, 6, 7, 6, 6, 6, 6, 6, 0, 0, 0});
    assert_integers(batch.blanks.block_position_ids, 0, 16,
                    (int64_t[]){0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 3, 0, 0, 0});
    assert_integers(batch.blanks.input_ids, 16, 11,
                    (int64_t[]){CLS, ODD, IT, WAS, MASK, DOT, START, BAD, START, A, GEM});
    assert_integers(batch.blanks.part_a, 0, 2, (int64_t[]){8, 6});
    assert_integers(batch.blanks.target_positions, 0, 10,
                    (int64_t[]){8, 9, 10, 11, 12, 22, 23, 24, 25, 26});
    assert_integers(batch.blanks.labels, 0, 5, (int64_t[]){BAD, END, A, GEM, END});
    assert_integers(batch.verbalized, 0, 10, (int64_t[]){0, 0, 1, 1, 1, 0, 0, 1, 1, 1});
    assert_integers(batch.labels, 0, 2, (int64_t[]){1, 0});
    free_reading(&r);
}
END_TEST

/* "x": row sees column. Of a Part A of 4, then of "bad", then of "a gem". */
START_TEST(verbalizers_see_part_a_and_themselves) {
    static const char *const sees[] = {"xxxx     ", "xxxx     ", "xxxx     ",
                                       "xxxx     ", "xxxxx    ", "xxxxxx   ",
                                       "xxxx  x  ", "xxxx  xx ", "xxxx  xxx"};
    reading r = read_text("{text}[MASK]", "so odd\tyes\n");
    wg__cloze_batch batch = batch_of(&r, 8, 1, (int64_t[]){0});
    for (int64_t i = 0; i < 16; i++)
        for (int64_t j = 0; j < 16; j++) {
            const bool seen = wg_at(batch.mask, (int64_t[]){0, 0, i, j}) != 0;
            const bool wanted = i < 9 ? j < 9 && sees[i][j] == 'x' : j < 4; /* padding: Part A */
            ck_assert_msg(seen == wanted, "%d sees %d", (int)i, (int)j);
        }
    free_reading(&r);
}
END_TEST

START_TEST(two_texts_stand_where_the_pattern_has_them) {
    reading r = read_text("it {text_b} [MASK] {text_a} .", "so odd\tbad .\tyes\n");
    wg__cloze_batch batch = batch_of(&r, 16, 1, (int64_t[]){0});
    assert_integers(batch.blanks.input_ids, 0, 8,
                    (int64_t[]){CLS, IT, BAD, DOT, MASK, SO, ODD, DOT});
    assert_integers(batch.blanks.position_ids, 8, 5, (int64_t[]){4, 4, 4, 4, 4});
    assert_fails(load(r.cloze, r.tokenizer, "so\tyes\n"), WG_ERROR_ARGUMENT,
                 "has one text a line; the pattern");
    free_reading(&r);
    r = read_text("{text_a} [MASK] {text_b}", "so\todd\tyes\n");
    batch = batch_of(&r, 16, 1, (int64_t[]){0});
    assert_integers(batch.blanks.input_ids, 0, 4, (int64_t[]){CLS, SO, MASK, ODD});
    free_reading(&r);
    r = read_text("{text} [MASK]", "so\tso\tyes\n");
    assert_fails(r.text, WG_ERROR_ARGUMENT, "has two texts a line; the pattern");
    free_reading(&r);
}
END_TEST

START_TEST(long_texts_lose_their_ends) {
    reading r = read_text("{text_a} it {text_b} [MASK]", "so odd so odd\tbad . bad\tyes\n");
    wg__cloze_batch batch = batch_of(&r, 7, 1, (int64_t[]){0});
    assert_integers(batch.blanks.part_a, 0, 1, (int64_t[]){7});
    assert_integers(batch.blanks.input_ids, 0, 7, (int64_t[]){CLS, SO, ODD, IT, BAD, DOT, MASK});
    ck_assert_int_eq(wg__cloze_check_sequence(r.cloze, 5), 0);
    assert_fails(wg__cloze_batch_read(r.cloze, r.text, 4, 1, (int64_t[]){0}, &batch),
                 WG_ERROR_ARGUMENT, "the pattern takes 3 of the 4 tokens");
    free_reading(&r);
}
END_TEST

START_TEST(a_mask_in_a_text_is_text) {
    reading r = read_text("[MASK] {text}", "a [MASK] {text}\tyes\n");
    wg__cloze_batch batch = batch_of(&r, 32, 1, (int64_t[]){0});
    assert_integers(batch.blanks.input_ids, 0, 6, (int64_t[]){CLS, MASK, A, BRACKET, M, CLOSE});
    assert_integers(batch.blanks.position_ids, (int64_t)wg_at(batch.blanks.part_a, (int64_t[]){0}),
                    5, (int64_t[]){1, 1, 1, 1, 1});
    free_reading(&r);
}
END_TEST

/* Words of BPE begin with their space: so do texts and verbalizers, and nothing ends with one. */
START_TEST(a_sequence_of_bpe_is_as_if_the_whole_were_tokenised) {
    static const char corpus[] = "a film was good . a film was bad . a film was good and bad .";
    wg_tokenizer *tokenizer = wg__bpe_train(corpus, -1, &(wg_bpe_training){.vocabulary_size = 300});
    assert_no_error();
    reading r = read_by(tokenizer, "a film was {text} and [MASK] .",
                        (const char *const[]){"good", "bad ."}, "bad\tyes\n");
    wg_blank_tokens tokens;
    wg__blank_tokens_of(tokenizer, &tokens);
    wg_token_list whole = {0}, blank = {0};
    ck_assert_int_eq(wg__blank_encode(&tokens, tokenizer, "a film was bad and [MASK] .", &whole),
                     0);
    ck_assert_int_eq(wg_tokenizer_encode(tokenizer, " bad .", -1, NULL, &blank), 0);
    wg__cloze_batch batch = batch_of(&r, 32, 1, (int64_t[]){0});
    ck_assert_int_eq((int64_t)wg_at(batch.blanks.part_a, (int64_t[]){0}), whole.count);
    for (int64_t i = 0; i < whole.count; i++)
        ck_assert_int_eq((int64_t)wg_at(batch.blanks.input_ids, (int64_t[]){0, i}), whole.ids[i]);
    for (int64_t i = 0; i < blank.count; i++)
        ck_assert_int_eq((int64_t)wg_at(batch.blanks.labels, (int64_t[]){i}), blank.ids[i]);
    ck_assert_int_eq((int64_t)wg_at(batch.blanks.labels, (int64_t[]){blank.count}), tokens.end);
    wg_token_list_free(&whole);
    wg_token_list_free(&blank);
    free_reading(&r);
}
END_TEST

/* ---- Refusals ---- */

START_TEST(what_is_no_pattern_is_refused) {
    static const struct {
        const char *pattern, *part;
    } cases[] = {
        {"It was [MASK] .", "must have one place for the text, {text}"},
        {"{text} {text} [MASK]", "must have one place for the text, {text}"},
        {"{text_a} [MASK]", "{text_a} and {text_b}"},
        {"{text} {text_a} {text_b} [MASK]", "{text_a} and {text_b}"},
        {"{text_a} {text_a} {text_b} [MASK]", "{text_a} and {text_b}"},
        {"{text} it was .", "has no blank; it must have one [MASK]"},
        {"{text} [MASK] [MASK]", "has more than one blank"},
        {"{text} [MASK] [gMASK]", "has more than one blank"},
        {"", "must have one place"},
    };
    wg_tokenizer *tokenizer = small();
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        assert_fails(make(tokenizer, cases[i].pattern, a_gem_and_bad), WG_ERROR_ARGUMENT,
                     cases[i].part);
    }
    assert_fails(make(tokenizer, "{text} \xff [MASK]", a_gem_and_bad), WG_ERROR_FORMAT,
                 "the pattern is not UTF-8");
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(verbalizers_that_tell_nothing_are_refused) {
    static const struct {
        const char *verbalizers[2], *part;
    } cases[] = {
        {{"bad", ""}, "the verbalizer of \"no\" is empty"},
        {{" ", "bad"}, "the verbalizer of \"yes\" is empty"},
        {{"splendid", "bad"}, "the verbalizer \"splendid\" of \"yes\" is not wholly known"},
        {{"bad", "Bad"}, "\"Bad\" of \"no\" and \"bad\" of \"yes\" are the same tokens"},
    };
    wg_tokenizer *tokenizer = small();
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        assert_fails(make(tokenizer, "{text} [MASK]", cases[i].verbalizers), WG_ERROR_ARGUMENT,
                     cases[i].part);
    }
    assert_fails(make(tokenizer, "{text} [MASK]", (const char *const[]){"bad", "\xff"}),
                 WG_ERROR_FORMAT, "a verbalizer is not UTF-8");
    wg__labels one = {0};
    wg__labels_add(&one, "yes");
    assert_fails(wg__cloze_new(tokenizer, "{text} [MASK]", &one, a_gem_and_bad), WG_ERROR_ARGUMENT,
                 "verbalizers of 1 labels; a classification has two or more");
    wg__labels_free(&one);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(labels_without_a_verbalizer_are_refused) {
    reading r = read_text("{text} [MASK]", "so\tyes\nodd\tmaybe\n");
    assert_fails(r.text, WG_ERROR_FORMAT, "line 2: the label \"maybe\" is unknown");
    free_reading(&r);
}
END_TEST

/* ---- JSON ---- */

START_TEST(a_cloze_survives_its_json) {
    wg_tokenizer *tokenizer = small();
    wg__cloze *cloze = make(tokenizer, "\"{text}\" it was [MASK] .", a_gem_and_bad);
    char *json = wg__cloze_to_json(cloze);
    wg__cloze *back = wg__cloze_from_json(json, tokenizer);
    assert_no_error();
    char *again = wg__cloze_to_json(back);
    ck_assert_str_eq(json, again);
    wg_text_free(json);
    wg_text_free(again);
    wg__cloze_free(cloze);
    wg__cloze_free(back);
    wg_tokenizer_free(tokenizer);
}
END_TEST

START_TEST(json_of_something_else_is_refused) {
    static const char *const cases[][2] = {
        {"{", "line 1"},
        {"[]", "wanted {\"pattern\""},
        {"{\"pattern\": \"{text} [MASK]\"}", "wanted {\"pattern\""},
        {"{\"pattern\": 1, \"verbalizers\": {}}", "wanted {\"pattern\""},
        {"{\"pattern\": \"{text} [MASK]\", \"verbalizers\": {\"0\": 1}}", "of \"0\" is no text"},
    };
    wg_tokenizer *tokenizer = small();
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        assert_fails(wg__cloze_from_json(cases[i][0], tokenizer), WG_ERROR_FORMAT, cases[i][1]);
    }
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Without memory ---- */

/* The n-th allocation fails. True when nothing failed any more. */
static bool all_without_memory(int64_t n, const wg_tokenizer *tokenizer, const char *json) {
    wg__alloc_fail_after(n);
    wg_scope scope;
    wg_scope_begin(&scope);
    wg__cloze *cloze = wg__cloze_from_json(json, tokenizer);
    wg__labelled_text *text = cloze ? load(cloze, tokenizer, "so\todd\tno\nodd\tso\tyes\n") : NULL;
    wg__cloze_batch batch;
    bool whole = text && wg__cloze_batch_read(cloze, text, 32, 2, (int64_t[]){0, 1}, &batch) == 0;
    char *again = whole ? wg__cloze_to_json(cloze) : NULL;
    whole = again;
    wg_scope_end(&scope, NULL);
    wg__alloc_fail_after(-1);
    wg_text_free(again);
    wg__examples_free((wg__examples *)text);
    wg__cloze_free(cloze);
    return whole;
}

START_TEST(what_finds_no_memory_says_so_and_leaves_nothing) {
    wg_tokenizer *tokenizer = small();
    int64_t n = 0;
    for (; !all_without_memory(n, tokenizer,
                               "{\"pattern\": \"{text_a} [MASK] {text_b}\", "
                               "\"verbalizers\": {\"no\": \"bad\", \"yes\": \"a gem\"}}");
         n++)
        assert_error(WG_ERROR_MEMORY, "");
    ck_assert_int_gt(n, 20);
    wg_tokenizer_free(tokenizer);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        a_batch_is_as_drawn,
        verbalizers_see_part_a_and_themselves,
        two_texts_stand_where_the_pattern_has_them,
        long_texts_lose_their_ends,
        a_mask_in_a_text_is_text,
        a_sequence_of_bpe_is_as_if_the_whole_were_tokenised,
        what_is_no_pattern_is_refused,
        verbalizers_that_tell_nothing_are_refused,
        labels_without_a_verbalizer_are_refused,
        a_cloze_survives_its_json,
        json_of_something_else_is_refused,
        what_finds_no_memory_says_so_and_leaves_nothing,
    };
    add_suite("cloze", tests);
}
