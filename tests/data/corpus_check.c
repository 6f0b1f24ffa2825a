/* Checks of a training text: what is counted, where it is first, and lack of memory. */
#include "data/internal.h"

#include "base/alloc.h"
#include "data/tokenizer/tokenizer.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"
#include "base/internal.h"

static wg_corpus_report report_on(const char *text, const wg_corpus_check_options *options) {
    wg_corpus_report report;
    ck_assert_int_eq(wg__corpus_check(1, (const char *[]){write_text("text.txt", text)},
                                      options ? options : &(wg_corpus_check_options){0}, &report),
                     0);
    return report;
}

TEST(documents_end_as_the_file_marks_them) {
    ck_assert_int_eq(report_on("a\n\nb\n\n\nc\n", NULL).documents.count, 3);
    ck_assert_int_eq(report_on("a\n\nb\n\n\n\nc\n", NULL).documents.count, 2);
    ck_assert_int_eq(report_on("a\n\n\n\nb\n<|endoftext|>\nc", NULL).documents.count, 2);
    ck_assert_int_eq(report_on("\n\na\n\n\n\n\n", NULL).documents.count, 1);
}

TEST(documents_are_equal_by_their_lines) {
    const wg_corpus_report report = report_on("ab\nc\n\na\nbc\n\nab \n\tc\n", NULL);
    ck_assert_int_eq(report.repeated_documents.count, 1);
    ck_assert_int_eq(report.repeated_documents.line, 7);
    ck_assert_int_eq(report.repeated_lines.count, 2);
    ck_assert_int_eq(report.repeated_lines.line, 7);
    ck_assert_int_eq(report.repeated_characters, 5); /* with blanks at the ends */
}

TEST(lengths_are_in_characters) {
    static char text[20000];
    int length = 0;
    for (int i = 1; i <= 100; i++) {
        for (int n = 0; n < i; n++)
            length += snprintf(text + length, sizeof text - (size_t)length, "\u4e2d");
        length += snprintf(text + length, sizeof text - (size_t)length, "\n");
    }
    const wg_corpus_report report = report_on(text, NULL);
    ck_assert_int_eq(report.lines.count, 100);
    ck_assert_int_eq(report.lines.median, 50);
    ck_assert_int_eq(report.lines.most, 95);
    ck_assert_int_eq(report.lines.longest, 100);
    ck_assert_int_eq(report.lines.line, 100);
    ck_assert_int_eq(report.documents.longest, 5050);
    ck_assert_int_eq(report.documents.median / 5, 5050 / 5 - 1); /* 5048, a step below */
    ck_assert_int_eq(report.words, 5050);
}

TEST(tokens_are_counted_by_line_and_not_of_bytes_that_are_no_text) {
    static const char *const tokens[] = {"[UNK]", "a", "##b", "\u4e2d"};
    wg_tokenizer *tokenizer = owned(wg__wordpiece_new(WG_COUNT(tokens), tokens, NULL));
    const wg_corpus_report report = report_on("ab a\n\u4e2d\u6587\na\xff\n",
                                              &(wg_corpus_check_options){.tokenizer = tokenizer});
    ck_assert_int_eq(report.tokens, 5);
    ck_assert_int_eq(report.unknown, 1);
    ck_assert_int_eq(report.faults[WG_CORPUS_INVALID].count, 1);
    ck_assert_int_eq(report.faults[WG_CORPUS_INVALID].line, 3);
}

TEST(many_lines_are_told_apart) {
    static char text[1000000];
    int length = 0;
    for (int i = 0; i < 60000; i++)
        length += snprintf(text + length, sizeof text - (size_t)length, "line %d\n", i % 50000);
    const wg_corpus_report report = report_on(text, NULL);
    ck_assert_int_eq(report.lines.count, 60000);
    ck_assert_int_eq(report.repeated_lines.count, 10000);
    ck_assert_int_eq(report.repeated_lines.line, 50001);
}

static bool check(const void *path) {
    wg_corpus_report report;
    wg__alloc_trim();
    return wg__corpus_check(1, &(const char *){path}, &(wg_corpus_check_options){0}, &report) == 0;
}

TEST(a_check_that_finds_no_memory_says_so) {
    ck_assert_int_lt(fail_every_allocation(check, write_text("text.txt", "a\nb\n\nc\n")), 100);
}
