/* Spans of tags. The cases follow seqeval's get_entities (its default mode, which are the rules of
 * conlleval.pl); the spans of each are worked out by hand. */
#include <string.h>

#include "data/score/score.h"
#include "tests/support/testing.h"

enum { MOST = 16 };

/* Cuts "O B-a I-a" at its spaces. */
static int64_t cut(const char *text, char *copy, const char *tags[MOST]) {
    int64_t count = 0;
    strcpy(copy, text);
    for (char *tag = strtok(copy, " "); tag; tag = strtok(NULL, " "))
        tags[count++] = tag;
    return count;
}

static wg__span_counts count_spans(const char *wanted, const char *predicted) {
    char left[200], right[200];
    const char *a[MOST], *b[MOST];
    wg__span_counts counts = {0};
    const int64_t count = cut(wanted, left, a);
    ck_assert_int_eq(cut(predicted, right, b), count);
    wg__spans_count(count, a, b, &counts);
    return counts;
}

TEST(spans_are_those_of_conlleval) {
    static const struct {
        const char *wanted, *predicted;
        int64_t in_wanted, in_predicted, right;
    } cases[] = {
        {"O O", "O O", 0, 0, 0},
        {"B-a I-a O B-b", "B-a I-a O B-b", 2, 2, 2},
        {"O I-a I-a O", "O B-a I-a O", 1, 1, 1}, /* I- after O begins a span */
        {"B-a I-b I-b", "B-a B-b I-b", 2, 2, 2}, /* so does another type */
        {"B-a B-a", "B-a I-a", 2, 1, 0},         /* B- ends the span before */
        {"I-a B-a", "B-a B-a", 2, 2, 2},
        {"B-a I-a I-a", "B-a I-a O", 1, 1, 0}, /* the ends differ */
        {"O B-a I-a", "B-a I-a I-a", 1, 1, 0}, /* the beginnings differ */
        {"B-a I-a", "B-b I-b", 1, 1, 0},       /* the types differ */
        {"B-a O B-b O B-c", "O B-x B-b B-x B-c", 3, 4, 2},
        {"B-a I-a I-a I-a", "B-a B-a I-a B-a", 1, 3, 0},
        {"O O B-a", "B-a O B-a", 1, 2, 1},
        {"B-creative-work I-creative-work", "B-creative-work I-creative-work", 1, 1, 1},
        {"B-a-x I-a-y", "B-a-x B-a-y", 2, 2, 2},             /* the type is all behind B- */
        {"S-a B-a I-a E-a O", "B-a B-a I-a I-a O", 2, 2, 2}, /* IOBES */
        {"B-a E-a I-a", "B-a I-a B-a", 2, 2, 2},             /* I- after E- begins a span */
    };
    for (size_t i = 0; i < WG_COUNT(cases); i++) {
        const wg__span_counts c = count_spans(cases[i].wanted, cases[i].predicted);
        ck_assert_msg(c.wanted == cases[i].in_wanted && c.predicted == cases[i].in_predicted &&
                          c.right == cases[i].right,
                      "case %zu: %lld, %lld, %lld", i, (long long)c.wanted, (long long)c.predicted,
                      (long long)c.right);
    }
}

TEST(span_tags_are_told_from_others) {
    static const char *const are[] = {"O", "B-a", "I-a", "E-a", "S-creative-work"};
    static const char *const are_not[] = {"", "B", "B-", "NOUN", "I", "o", "X-a", "BB-a"};
    for (size_t i = 0; i < WG_COUNT(are); i++)
        ck_assert_msg(wg__is_span_tag(are[i]), "%s", are[i]);
    for (size_t i = 0; i < WG_COUNT(are_not); i++)
        ck_assert_msg(!wg__is_span_tag(are_not[i]), "%s", are_not[i]);
}
