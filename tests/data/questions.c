/* Questions out of plain text: that answers are where the file says, what questions are made of,
 * seeds, counts, texts that give none, and lack of memory. */
#include "data/dataset/questions.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/dataset/squad.h"
#include "data/tokenizer/wordpiece.h"
#include "tensor/internal.h"
#include "tests/support/testing.h"

/* No word of a sentence is in it twice. */
static int write_sentence(char *text, size_t size, int n) {
    static const char *const forms[] = {
        "The \u00e9lan of Marrow%d Bridge brought many painters towards \u00c5lesund%d Harbour, "
        "because northern winters seemed dark. ",
        "In 1%03d the council paid 4,%03d shillings for Gorse%d Hall, which stood beside an "
        "ancient mill. ",
        "A small Pier\u2019s lantern guided Captain Wren%d and the fleet past %d hidden rocks "
        "during autumn storms. ",
    };
    return snprintf(text, size, forms[n % 3], n, n + 1, n + 2);
}

/* Paragraphs of five sentences each. */
static char *text_of(int paragraphs) {
    static char text[200000];
    int length = 0, sentence = 100;
    for (int p = 0; p < paragraphs; p++) {
        for (int s = 0; s < 5; s++)
            length += write_sentence(text + length, sizeof text - (size_t)length, sentence++);
        text[length - 1] = '\n';
    }
    return text;
}

/* Questions about these paragraphs, in the scratch folder's file of that name. */
static wg_corpus_questions_report make(int paragraphs, const char *name, int64_t count,
                                       uint64_t seed) {
    const char *path = write_text("text.txt", text_of(paragraphs));
    wg_corpus_questions_report report;
    ck_assert_int_eq(wg_corpus_questions(1, &path, in_scratch(name),
                                         &(wg_corpus_questions_options){count, seed}, &report),
                     0);
    assert_no_error();
    return report;
}

static void assert_refused(const char *text, wg_error_code code, const char *part) {
    const char *path = write_text("text.txt", text), *out = in_scratch("out.json");
    wg_corpus_questions_report report = {.questions = 1};
    ck_assert_int_eq(wg_corpus_questions(1, &path, out, NULL, &report), -1);
    assert_error(code, part);
    ck_assert_int_eq(report.questions, 0);
    ck_assert_int_eq(files_in(scratch()), 1);
}

/* ---- The questions of a file, one after the other ---- */

typedef struct asked {
    const char *context, *question, *answer, *id;
    int64_t start; /* of the answer, in code points */
} asked;

static int64_t for_each(const char *name, void (*look)(const asked *)) {
    json_t *root = json_load_file(in_scratch(name), JSON_REJECT_DUPLICATES, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(root, "version")), "1.1");
    const json_t *articles = json_object_get(root, "data");
    const json_t *paragraphs = json_object_get(json_array_get(articles, 0), "paragraphs");
    ck_assert_int_eq(json_array_size(articles), 1);
    int64_t count = 0;
    size_t p, q;
    json_t *paragraph, *qa;
    json_array_foreach(paragraphs, p, paragraph) {
        const json_t *list = json_object_get(paragraph, "qas");
        ck_assert_int_ge(json_array_size(list), 1);
        ck_assert_int_le(json_array_size(list), 2);
        json_array_foreach(list, q, qa) {
            const json_t *answers = json_object_get(qa, "answers");
            const json_t *answer = json_array_get(answers, 0);
            ck_assert_int_eq(json_array_size(answers), 1);
            const asked found = {
                .context = json_string_value(json_object_get(paragraph, "context")),
                .question = json_string_value(json_object_get(qa, "question")),
                .answer = json_string_value(json_object_get(answer, "text")),
                .id = json_string_value(json_object_get(qa, "id")),
                .start = json_integer_value(json_object_get(answer, "answer_start")),
            };
            char id[24];
            snprintf(id, sizeof id, "%lld", (long long)count++);
            ck_assert_str_eq(found.id, id);
            look(&found);
        }
    }
    json_decref(root);
    return count;
}

static int64_t characters(const char *text, const char *end) {
    int64_t count = 0;
    for (; text < end; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static const char *skip_characters(const char *text, int64_t count) {
    for (; count > 0; count--)
        for (text++; ((unsigned char)*text & 0xC0) == 0x80;)
            text++;
    return text;
}

static int occurrences(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static int behind_bytes; /* answers before which bytes and characters differ in number */

static void is_where_it_says(const asked *a) {
    const char *at = skip_characters(a->context, a->start);
    ck_assert_int_eq(strncmp(at, a->answer, strlen(a->answer)), 0);
    behind_bytes += at - a->context > a->start;
}

START_TEST(answers_are_where_the_file_says_in_code_points) {
    make(100, "out.json", 100, 0);
    behind_bytes = 0;
    ck_assert_int_eq(for_each("out.json", is_where_it_says), 100);
    ck_assert_int_ge(behind_bytes, 50);
}
END_TEST

static void has_limits(const asked *a) {
    const size_t length = strlen(a->question);
    const int64_t whole = characters(a->context, a->context + strlen(a->context));
    ck_assert_int_ge(whole, 250);
    ck_assert_int_le(whole, 950);
    ck_assert_int_ge(occurrences(a->context, ". "), 1);
    ck_assert_int_eq(a->context[strlen(a->context) - 1], '.');
    ck_assert_int_le(occurrences(a->answer, " ") + 1, 7);
    ck_assert_int_le(occurrences(a->context, a->answer), 2);
    ck_assert_int_eq(a->question[length - 1], '?');
    ck_assert_int_ge(occurrences(a->question, " ") + 1, 4);
    ck_assert(!strstr(a->question, "  "));
    ck_assert((a->question[0] >= 'A' && a->question[0] <= 'Z') || a->question[0] == '4' ||
              a->question[0] == '1' || strncmp(a->question, "\u00c5", 2) == 0 ||
              strncmp(a->question, "\u00c9", 2) == 0);
}

START_TEST(contexts_answers_and_questions_are_within_their_limits) {
    make(100, "out.json", 100, 1);
    ck_assert_int_eq(for_each("out.json", has_limits), 100);
}
END_TEST

/* Of the answer's words, only those that are in many sentences may be in the question. */
static void lacks_the_answer(const asked *a) {
    static const char common[] = " the of and in for an a during past ";
    char answer[256], question[1024], word[300];
    snprintf(question, sizeof question, " %s ", a->question);
    strchr(question, '?')[0] = ' ';
    snprintf(answer, sizeof answer, "%s", a->answer);
    for (char *rest = NULL, *part = strtok_r(answer, " ", &rest); part;
         part = strtok_r(NULL, " ", &rest)) {
        snprintf(word, sizeof word, " %s ", part);
        if (!strstr(common, word))
            ck_assert_msg(!strstr(question, word), "%s -> %s", a->question, a->answer);
    }
}

START_TEST(a_question_holds_no_word_of_its_answer) {
    make(100, "out.json", 100, 2);
    ck_assert_int_eq(for_each("out.json", lacks_the_answer), 100);
}
END_TEST

static bool has_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (strcasestr(text, *list))
            return true;
    return false;
}

static int years, numbers, names;

static void asks_by_the_form(const asked *a) {
    static const char *const of_times[] = {"when", "what year", NULL};
    static const char *const of_numbers[] = {"how many", "how much", "what number of", NULL};
    static const char *const of_names[] = {"who", "where", "what", "which", NULL};
    const bool digit = a->answer[0] >= '0' && a->answer[0] <= '9';
    const bool year = digit && strlen(a->answer) == 4 && a->answer[0] == '1';
    const bool name = (a->answer[0] >= 'A' && a->answer[0] <= 'Z') || a->answer[0] == '\xc3';
    const char *const *wanted = year ? of_times : digit ? of_numbers : of_names;
    ck_assert_msg(digit || name, "'%s' is no name and no number", a->answer);
    ck_assert_msg(has_one_of(a->question, wanted), "%s -> %s", a->question, a->answer);
    years += year;
    numbers += digit && !year;
    names += name;
}

START_TEST(answers_are_names_and_numbers_and_the_question_word_follows) {
    make(100, "out.json", 100, 3);
    years = numbers = names = 0;
    for_each("out.json", asks_by_the_form);
    ck_assert_int_ge(years, 3);
    ck_assert_int_ge(numbers, 3);
    ck_assert_int_ge(names, 20);
}
END_TEST

static int possessives;

static void counts_possessives(const asked *a) {
    ck_assert(!strstr(a->answer, "\u2019s") || strstr(a->answer, "\u2019s "));
    possessives += strstr(a->answer, "Pier") != NULL;
}

START_TEST(an_answer_ends_before_the_s_of_a_possessive) {
    make(200, "out.json", 500, 3);
    possessives = 0;
    for_each("out.json", counts_possessives);
    ck_assert_int_ge(possessives, 1);
}
END_TEST

/* ---- Files ---- */

static void assert_same_bytes(const char *one, const char *other, bool same) {
    bytes a = read_bytes(in_scratch(one)), b = read_bytes(in_scratch(other));
    ck_assert_int_eq(a.count == b.count && memcmp(a.data, b.data, a.count) == 0, same);
    free(a.data);
    free(b.data);
}

START_TEST(a_seed_gives_the_same_bytes_and_another_one_others) {
    make(60, "a.json", 50, 7);
    make(60, "b.json", 50, 7);
    make(60, "c.json", 50, 8);
    assert_same_bytes("a.json", "b.json", true);
    assert_same_bytes("a.json", "c.json", false);
}
END_TEST

START_TEST(the_text_may_have_fewer_questions_than_are_wanted) {
    ck_assert_int_eq(make(60, "out.json", 1, 0).questions, 1);
    ck_assert_int_eq(make(60, "out.json", 1, 0).contexts, 1);
    const wg_corpus_questions_report few = make(6, "out.json", 0, 0);
    ck_assert_int_ge(few.questions, 6);
    ck_assert_int_le(few.questions, 12);
    ck_assert_int_le(few.contexts, 6);
    ck_assert_int_eq(for_each("out.json", is_where_it_says), few.questions);
}
END_TEST

START_TEST(contexts_are_of_all_files) {
    const char *paths[3];
    char names_of_files[3][16];
    for (int i = 0; i < 3; i++) {
        char text[2000];
        int length = 0;
        for (int s = 0; s < 4; s++)
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "Miller%d%d sold seven brown horses from a farm beside deep green "
                               "forests to Baker%d%d. ",
                               i, s, i, s);
        text[length - 1] = '\r';
        snprintf(names_of_files[i], sizeof names_of_files[i], "%d.txt", i);
        paths[i] = write_text(names_of_files[i], text);
    }
    wg_corpus_questions_report report;
    ck_assert_int_eq(wg_corpus_questions(3, paths, in_scratch("out.json"), NULL, &report), 0);
    ck_assert_int_eq(report.contexts, 3);
    bytes file = read_bytes(in_scratch("out.json"));
    ck_assert(strstr((char *)file.data, "Miller00"));
    ck_assert(strstr((char *)file.data, "Miller10"));
    ck_assert(strstr((char *)file.data, "Miller20"));
    free(file.data);
}
END_TEST

START_TEST(the_file_is_read_by_the_task_that_learns_from_it) {
    static const char *const tokens[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"};
    const wg_corpus_questions_report report = make(100, "out.json", 100, 4);
    wg_tokenizer *tokenizer = wg_wordpiece_new(WG_COUNT(tokens), tokens, NULL);
    wg__squad *squad = wg__squad_load(in_scratch("out.json"), tokenizer, NULL);
    assert_no_error();
    ck_assert_int_eq(wg__squad_questions(squad), report.questions);
    for (int64_t w = 0; w < wg__squad_windows(squad); w++) {
        const wg__squad_window window = wg__squad_window_at(squad, w);
        const int64_t shift = window.first - window.offset;
        ck_assert_int_gt(window.start, 0);
        char *text =
            wg__squad_text(squad, window.question, window.start + shift, window.end + shift);
        const char *answer = wg__squad_answer(squad, window.question, 0);
        ck_assert_int_eq(strncmp(text, answer, strlen(answer)), 0);
        wg_text_free(text);
    }
    wg__squad_free(squad);
    wg_tokenizer_free(tokenizer);
}
END_TEST

/* ---- Texts and files that do not do ---- */

START_TEST(bad_texts_are_refused_and_leave_no_file) {
    assert_refused("fine\nbad \xff\n", WG_ERROR_FORMAT, "text.txt is not UTF-8: line 2");
    assert_refused("", WG_ERROR_FORMAT, "text.txt has no paragraphs");
    assert_refused("Short lines.\nAlice saw Bob. Bob saw Alice.\n", WG_ERROR_FORMAT,
                   "300 to 2500 characters");
    ck_assert_int_eq(wg_corpus_questions(0, NULL, in_scratch("out.json"), NULL, NULL), -1);
    assert_error(WG_ERROR_FORMAT, "none of the files");
}
END_TEST

static char *replace(char *text, char from, char to) {
    for (char *c = text; *c; c++)
        *c = *c == from ? to : *c;
    return text;
}

/* Lines of more than 2500 characters, without ends of sentences, and with U+FFFD. */
START_TEST(lines_that_are_no_paragraphs_are_passed_over) {
    assert_refused(replace(text_of(6), '\n', ' '), WG_ERROR_FORMAT, "has no paragraphs");
    assert_refused(replace(text_of(1), '.', ','), WG_ERROR_FORMAT, "has no paragraphs");
    assert_refused(memcpy(text_of(1), "\xef\xbf\xbd", 3), WG_ERROR_FORMAT, "has no paragraphs");
}
END_TEST

START_TEST(files_that_cannot_be_used_are_named) {
    const char *path = write_text("text.txt", text_of(2)), *missing = in_scratch("none.txt");
    ck_assert_int_eq(wg_corpus_questions(1, &missing, in_scratch("out.json"), NULL, NULL), -1);
    assert_error(WG_ERROR_NOT_FOUND, "none.txt");
    ck_assert_int_eq(wg_corpus_questions(1, &path, in_scratch("none/out.json"), NULL, NULL), -1);
    assert_error(WG_ERROR_NOT_FOUND, "there is no folder");
    ck_assert_int_eq(wg_corpus_questions(1, &path, in_scratch("out.json"),
                                         &(wg_corpus_questions_options){.count = -1}, NULL),
                     -1);
    assert_error(WG_ERROR_ARGUMENT, "-1 questions");
    ck_assert_int_eq(files_in(scratch()), 1);
}
END_TEST

START_TEST(a_file_is_replaced_whole_or_not_at_all) {
    const char *empty = write_text("text.txt", ""), *out = write_text("out.json", "old");
    ck_assert_int_eq(wg_corpus_questions(1, &empty, out, NULL, NULL), -1);
    assert_error(WG_ERROR_FORMAT, "");
    bytes file = read_bytes(out);
    ck_assert_str_eq((char *)file.data, "old");
    free(file.data);
    make(2, "out.json", 0, 0);
    file = read_bytes(out);
    ck_assert_int_eq(file.data[0], '{');
    free(file.data);
    ck_assert_int_eq(files_in(scratch()), 2);
}
END_TEST

/* A failure behind the rename leaves the new file. */
static void assert_whole_or_none(const char *path) {
    char temporary[800];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    ck_assert_int_eq(access(temporary, F_OK), -1);
    if (access(path, F_OK) == 0)
        for_each("out.json", is_where_it_says);
}

START_TEST(questions_without_memory_leave_no_part_of_a_file) {
    const char *path = write_text("text.txt", text_of(40)), *out = in_scratch("out.json");
    int status = -1;
    int64_t n = 0;
    for (; status < 0; n++) {
        wg_alloc_trim();
        wg__alloc_fail_after(n);
        status = wg_corpus_questions(1, &path, out, NULL, NULL);
        wg__alloc_fail_after(-1);
        if (status < 0)
            assert_error(WG_ERROR_MEMORY, "");
        assert_whole_or_none(out);
        ck_assert_int_lt(n, 200);
    }
    ck_assert_int_ge(n, 8);
}
END_TEST

SUITES {
    const TTest *const tests[] = {
        answers_are_where_the_file_says_in_code_points,
        contexts_answers_and_questions_are_within_their_limits,
        a_question_holds_no_word_of_its_answer,
        answers_are_names_and_numbers_and_the_question_word_follows,
        an_answer_ends_before_the_s_of_a_possessive,
        a_seed_gives_the_same_bytes_and_another_one_others,
        the_text_may_have_fewer_questions_than_are_wanted,
        contexts_are_of_all_files,
        the_file_is_read_by_the_task_that_learns_from_it,
        bad_texts_are_refused_and_leave_no_file,
        lines_that_are_no_paragraphs_are_passed_over,
        files_that_cannot_be_used_are_named,
        a_file_is_replaced_whole_or_not_at_all,
        questions_without_memory_leave_no_part_of_a_file,
    };
    add_suite("questions", tests);
}
