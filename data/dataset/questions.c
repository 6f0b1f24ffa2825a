/* Questions out of plain text. See questions.h.
 *
 *     files -> paragraphs -> contexts -> sentence -> words -> answer -> question -> JSON
 *              all files first           one context after the other, in random order */
#include "data/dataset/questions.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/array.h"
#include "base/json.h"
#include "base/replacement.h"
#include "data/batches/builder.h"
#include "data/dataset/mmap.h"
#include "data/dataset/read_text.h"
#include "data/tokenizer/text_file.h"
#include "tensor/internal.h"

#define WHERE "corpus_questions"

enum {
    SHORTEST_PARAGRAPH = 300, /* characters */
    LONGEST_PARAGRAPH = 2500,
    SHORTEST_CONTEXT = 250,
    LONGEST_CONTEXT = 950,
    FEWEST_WORDS = 6, /* of a sentence */
    MOST_WORDS = 60,
    MOST_ANSWER_WORDS = 7,
    MOST_OCCURRENCES = 2, /* of an answer in its context */
    MOST_SIDE = 20,       /* words and marks on a side of the answer that the question is made of */
    MOST_PIECES = 2 * MOST_SIDE + 2,
    MOST_TOKENS = LONGEST_CONTEXT, /* each has a character at least */
    FLUSH_BYTES = 1 << 16,
};

/* Sentences of a file: a context. */
typedef struct context {
    int32_t file, length;
    int64_t begin;
} context;

/* A word, or a mark that belongs to none. */
typedef struct token {
    const char *text;
    int32_t length;
    bool word, function;
    bool capital; /* begins with a capital letter or a digit */
    bool number;  /* begins with a digit */
} token;

/* Tokens first .. last of the sentence. */
typedef struct range {
    int first, last;
} range;

typedef struct piece {
    const char *text;
    int32_t length;
} piece;

typedef struct sentence {
    const char *text;
    int64_t length;
} sentence;

typedef struct maker {
    wg_generator generator;
    int64_t limit; /* of questions */
    int file_count;
    wg__text_map *texts;
    context *contexts;
    int64_t context_count, context_capacity;

    /* Of the context at hand. */
    const char *text;
    int64_t length;
    sentence sentences[LONGEST_CONTEXT];
    int sentence_count;

    /* Of its sentence. */
    token tokens[MOST_TOKENS];
    int token_count;
    range candidates[2 * MOST_TOKENS]; /* answers */
    int candidate_count;
    piece pieces[MOST_PIECES]; /* of the question */
    int piece_count;
    int content; /* pieces that are words of the sentence and no function words */
    wg__text question;

    wg__replacement file;
    wg__text json; /* not written yet */
    int64_t written;
    wg_corpus_questions_report report;
} maker;

static bool chance(maker *m, uint64_t percent) {
    return wg_random_below(&m->generator, 100) < percent;
}

/* ---- Contexts ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static int64_t skip_blanks(const char *text, int64_t at, int64_t length) {
    while (at < length && is_blank(text[at]))
        at++;
    return at;
}

static int64_t count_characters(const char *text, int64_t length) {
    int64_t count = 0;
    for (int64_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* True if a text cannot be a context. U+FFFD marks a character that could not be decoded, and JSON
 * cannot hold a NUL. */
static bool is_damaged(const char *text, int64_t length) {
    return memchr(text, '\0', (size_t)length) || memmem(text, (size_t)length, "\xef\xbf\xbd", 3);
}

/* Cuts a paragraph into contexts of random lengths. The latter part may be left out, so that long
 * articles do not prevail. */
static int cut_paragraph(maker *m, int file, const char *text, int64_t length) {
    const char *whole = m->texts[file].bytes;
    for (int64_t at = 0; at < length;) {
        const int64_t begin = skip_blanks(text, at, length);
        const int64_t most = wg__random_between(&m->generator, 450, LONGEST_CONTEXT);
        int64_t end = wg__sentence_end(text, begin, length), sentences = 1;
        for (; end < length; sentences++) {
            const int64_t next = wg__sentence_end(text, end, length);
            if (count_characters(text + begin, next - begin) > most)
                break;
            end = next;
        }
        const context found = {
            .file = file, .length = (int32_t)(end - begin), .begin = text + begin - whole};
        if (sentences >= 2 && count_characters(text + begin, end - begin) >= SHORTEST_CONTEXT &&
            wg__append(&m->contexts, &m->context_count, &m->context_capacity, &found,
                       sizeof found) < 0)
            return -1;
        if (chance(m, 30))
            return 0;
        at = end;
    }
    return 0;
}

static int find_contexts(maker *m, int file) {
    wg__text_map *map = &m->texts[file];
    for (int64_t at = 0, next; at < map->length; at = next) {
        wg__text_map_pass(map, at);
        int64_t length = wg__text_line(map, at, &next);
        const int64_t skipped = skip_blanks(map->bytes + at, 0, length);
        const char *text = map->bytes + at + skipped;
        length -= skipped;
        while (length > 0 && is_blank(text[length - 1]))
            length--;
        const int64_t characters = count_characters(text, length);
        if (characters >= SHORTEST_PARAGRAPH && characters <= LONGEST_PARAGRAPH &&
            !is_damaged(text, length) && cut_paragraph(m, file, text, length) < 0)
            return -1;
    }
    return 0;
}

/* ---- Words ---- */

enum { LONGEST_LISTED = 16 };

static const char *const function_words[] = {
    "a",     "about",    "above",   "across",  "after",  "again",  "against", "all",     "along",
    "also",  "among",    "an",      "and",     "any",    "are",    "around",  "as",      "at",
    "be",    "because",  "been",    "before",  "behind", "being",  "between", "both",    "but",
    "by",    "can",      "could",   "did",     "do",     "does",   "down",    "during",  "each",
    "first", "for",      "from",    "had",     "has",    "have",   "he",      "her",     "here",
    "him",   "his",      "how",     "however", "i",      "if",     "in",      "into",    "is",
    "it",    "its",      "may",     "me",      "might",  "more",   "most",    "must",    "my",
    "no",    "nor",      "not",     "of",      "off",    "on",     "one",     "only",    "or",
    "other", "our",      "out",     "over",    "own",    "same",   "shall",   "she",     "should",
    "since", "so",       "some",    "such",    "than",   "that",   "the",     "their",   "them",
    "then",  "there",    "these",   "they",    "this",   "those",  "though",  "through", "to",
    "too",   "toward",   "towards", "under",   "until",  "up",     "upon",    "us",      "very",
    "was",   "we",       "were",    "what",    "when",   "where",  "which",   "while",   "who",
    "whom",  "whose",    "why",     "will",    "with",   "within", "without", "would",   "you",
    "your",  "although", NULL};
static const char *const months[] = {"january",  "february", "march",  "april",     "may",
                                     "june",     "july",     "august", "september", "october",
                                     "november", "december", NULL};
/* Between words of a name, and before what belongs to a noun. */
static const char *const joining[] = {"of", "and", "the", "de", NULL};
static const char *const prepositions[] = {"of", "in", "and", "for", NULL};

/* Whether a list of small letters has the word. */
static bool is_in(const token *t, const char *const *list) {
    char small[LONGEST_LISTED];
    if (t->length >= LONGEST_LISTED)
        return false;
    for (int32_t i = 0; i < t->length; i++)
        small[i] = (char)(t->text[i] >= 'A' && t->text[i] <= 'Z' ? t->text[i] | 0x20 : t->text[i]);
    small[t->length] = '\0';
    for (; *list; list++)
        if (strcmp(small, *list) == 0)
            return true;
    return false;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The bytes of the character that begins at `at`, and the character: 0 at the end. */
static int64_t character_at(const sentence *s, int64_t at, int32_t *character) {
    *character = 0;
    if (at >= s->length)
        return 0;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)s->text + at;
    const int64_t size = utf8proc_iterate(bytes, s->length - at, character);
    return size > 0 ? size : 1; /* somebody may write to the file */
}

/* Letters, marks above them, digits. */
static bool is_of_word(int32_t character) {
    const int category = utf8proc_category(character);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ND;
}

/* Whether the mark at `at` stands within a word: Parkinson's, south-east, U.S, 4,000. */
static bool is_within_word(const sentence *s, int64_t at, int32_t mark, int64_t size) {
    int32_t next;
    character_at(s, at + size, &next);
    if (mark == ',')
        return is_digit(s->text[at - 1]) && next < 0x80 && is_digit((char)next);
    return (mark == '\'' || mark == 0x2019 || mark == '-' || mark == '.') && is_of_word(next);
}

/* The word or mark that begins at `at`, where no space is. */
static token token_at(const sentence *s, int64_t at) {
    int32_t character, first;
    const int64_t first_size = character_at(s, at, &first);
    token t = {.text = s->text + at, .word = is_of_word(first)};
    int64_t end = at + first_size;
    for (int64_t size; t.word && (size = character_at(s, end, &character)) > 0; end += size)
        if (!is_of_word(character) && !is_within_word(s, end, character, size))
            break;
    t.length = (int32_t)(end - at);
    t.number = t.word && is_digit(*t.text);
    t.capital = t.number || utf8proc_category(first) == UTF8PROC_CATEGORY_LU;
    t.function = t.word && is_in(&t, function_words);
    return t;
}

/* Returns the number of words. */
static int read_tokens(maker *m, const sentence *s) {
    int words = 0;
    m->token_count = 0;
    for (int64_t at = 0; at < s->length && m->token_count < MOST_TOKENS;) {
        const int64_t space = wg__space_length(s->text + at, s->length - at);
        if (space > 0) {
            at += space;
            continue;
        }
        const token t = token_at(s, at);
        m->tokens[m->token_count++] = t;
        words += t.word;
        at += t.length;
    }
    return words;
}

/* ---- Answers ---- */

static bool is_content(const maker *m, int i) {
    return i < m->token_count && m->tokens[i].word && !m->tokens[i].function;
}

/* The last token of the run that begins at `i`: words with capitals and numbers, or others. */
static int run_end(const maker *m, int i) {
    while (is_content(m, i + 1) && m->tokens[i + 1].capital == m->tokens[i].capital)
        i++;
    return i;
}

/* The text of tokens, without the 's at its end. */
static sentence text_of(const maker *m, range r) {
    const token *last = &m->tokens[r.last];
    sentence s = {m->tokens[r.first].text, last->text + last->length - m->tokens[r.first].text};
    static const char *const possessive[] = {"'s", "\u2019s"};
    for (int i = 0; i < 2; i++) {
        const int32_t size = (int32_t)strlen(possessive[i]);
        if (last->length > size &&
            memcmp(s.text + s.length - size, possessive[i], (size_t)size) == 0)
            s.length -= size;
    }
    return s;
}

static bool is_rare(const maker *m, const sentence *answer) {
    int count = 0;
    const char *at = m->text, *end = m->text + m->length;
    while ((at = memmem(at, (size_t)(end - at), answer->text, (size_t)answer->length))) {
        at += answer->length;
        count++;
    }
    return count <= MOST_OCCURRENCES;
}

/* A capital alone at the begin of a sentence does not make a name. */
static void add_candidate(maker *m, int first, int last) {
    const range tokens = {first, last};
    const sentence answer = text_of(m, tokens);
    if (first == 0 && last == 0 && !m->tokens[0].number)
        return;
    if (last - first < MOST_ANSWER_WORDS && is_rare(m, &answer))
        m->candidates[m->candidate_count++] = tokens;
}

/* Names and numbers. */
static void find_candidates(maker *m) {
    m->candidate_count = 0;
    for (int first = 0, last; first < m->token_count; first = last + 1) {
        last = first;
        if (!is_content(m, first) || !m->tokens[first].capital)
            continue;
        last = run_end(m, first);
        if (is_content(m, last + 2) && m->tokens[last + 2].capital &&
            is_in(&m->tokens[last + 1], joining) && chance(m, 50))
            last = run_end(m, last + 2);
        add_candidate(m, first, last);
        if (!chance(m, 20) || last + 1 >= m->token_count ||
            !is_in(&m->tokens[last + 1], prepositions))
            continue;
        int noun = last + 2;
        while (noun < m->token_count && m->tokens[noun].function)
            noun++;
        if (is_content(m, noun))
            add_candidate(m, first, run_end(m, noun));
    }
}

/* ---- Questions ---- */

static const char *pick(maker *m, int count, const char *const *list) {
    return list[wg_random_below(&m->generator, (uint64_t)count)];
}

/* "1128", "2026" */
static bool is_year(const token *t) {
    if (t->length != 4)
        return false;
    for (int i = 0; i < 4; i++)
        if (!is_digit(t->text[i]))
            return false;
    return t->text[0] == '1' || (t->text[0] == '2' && t->text[1] == '0');
}

/* A question word; *in_place: it stands where the answer stood. */
static const char *question_word(maker *m, range answer, bool *in_place) {
    static const char *const times[] = {"when", "what year", "in what year"};
    static const char *const numbers[] = {"how many", "how much", "what number of"};
    static const char *const names[] = {"who", "who", "where", "what", "what", "which"};
    static const char *const others[] = {"what", "what", "what", "which", "what is", "what was"};
    bool month = false, capitals = true;
    for (int i = answer.first; i <= answer.last; i++) {
        const token *t = &m->tokens[i];
        month |= t->capital && is_in(t, months);
        capitals &= t->capital || t->function;
    }
    *in_place = false;
    if (month || (answer.first == answer.last && is_year(&m->tokens[answer.first])))
        return pick(m, 3, times);
    *in_place = m->tokens[answer.first].number;
    if (*in_place)
        return pick(m, 3, numbers);
    const char *found = pick(m, 6, capitals ? names : others);
    *in_place = strcmp(found, "which") == 0;
    return found;
}

/* Marks at which a clause ends. */
static bool ends_clause(const token *t) {
    if (t->word)
        return false;
    return (t->length == 1 && strchr(",;:()", *t->text)) ||
           (t->length == 3 &&
            (memcmp(t->text, "\u2013", 3) == 0 || memcmp(t->text, "\u2014", 3) == 0));
}

/* The tokens from `from` on, forwards (step 1) or backwards (-1), that the question is made of. */
static range clause(maker *m, int from, int step) {
    const int near = (int)wg__random_between(&m->generator, 4, 12);
    const int most = chance(m, 60) ? near : MOST_SIDE;
    int count = 0;
    for (int i = from; i >= 0 && i < m->token_count && count < most; i += step, count++)
        if (count >= 3 && ends_clause(&m->tokens[i]) && chance(m, 70))
            break;
    return step > 0 ? (range){from, from + count - 1} : (range){from - count + 1, from};
}

static void add_piece(maker *m, const char *text, int32_t length) {
    m->pieces[m->piece_count++] = (piece){text, length};
}

static void add_text(maker *m, const char *text) {
    add_piece(m, text, (int32_t)strlen(text));
}

/* Words of the sentence, of which some are left out. */
static void add_words(maker *m, range r) {
    for (int i = r.first; i <= r.last; i++) {
        const token *t = &m->tokens[i];
        if (!t->word || (t->function && chance(m, 30)) || chance(m, 18))
            continue;
        add_piece(m, t->text, t->length);
        m->content += !t->function;
    }
}

/* Chooses the question's words. False: there are too few. */
static bool compose(maker *m, range answer) {
    static const char *const verbs[] = {"did", "was", "is", "does", "were", "are"};
    bool in_place;
    const char *asks = question_word(m, answer, &in_place);
    const range left = clause(m, answer.first - 1, -1), right = clause(m, answer.last + 1, 1);
    const uint64_t order = wg_random_below(&m->generator, 40);
    m->piece_count = m->content = 0;
    if (in_place || order < 6) {
        add_words(m, left);
        add_text(m, asks);
        add_words(m, right);
    } else {
        const bool reversed = order >= 33;
        add_text(m, asks);
        if (order >= 26 && !reversed)
            add_text(m, pick(m, 6, verbs));
        add_words(m, reversed ? right : left);
        add_words(m, reversed ? left : right);
    }
    for (int i = 1; i + 1 < m->piece_count; i++)
        if (chance(m, 10)) {
            const piece moved = m->pieces[i];
            m->pieces[i] = m->pieces[i + 1];
            m->pieces[i + 1] = moved;
        }
    return m->content >= 3;
}

/* Appends a piece whose first letter becomes a capital. */
static int append_capitalised(wg__text *text, const piece *p) {
    utf8proc_uint8_t capital[4];
    int32_t first;
    const int64_t size = utf8proc_iterate((const utf8proc_uint8_t *)p->text, p->length, &first);
    const int64_t capital_size = utf8proc_encode_char(utf8proc_toupper(first), capital);
    return wg__text_append(text, capital, capital_size) < 0
               ? -1
               : wg__text_append(text, p->text + size, p->length - size);
}

static int write_question(maker *m) {
    wg__text *text = &m->question;
    text->length = 0;
    for (int i = 0; i < m->piece_count; i++) {
        const piece *p = &m->pieces[i];
        if (i == 0 ? append_capitalised(text, p) < 0
                   : wg__text_append(text, " ", 1) < 0 ||
                         wg__text_append(text, p->text, p->length) < 0)
            return -1;
    }
    return wg__text_append(text, "?", 1);
}

/* ---- The file ---- */

static int flush(maker *m) {
    if (wg__write_at(m->file.descriptor, m->json.bytes, m->json.length, m->written) < 0)
        return wg__fail_with_errno(m->file.path, WHERE);
    m->written += m->json.length;
    m->json.length = 0;
    return 0;
}

static int write_bytes(const char *bytes, size_t count, void *context) {
    maker *m = context;
    if (wg__text_append(&m->json, bytes, (int64_t)count) < 0)
        return -1;
    return m->json.length >= FLUSH_BYTES ? flush(m) : 0;
}

static int write_string(maker *m, const char *text) {
    return write_bytes(text, strlen(text), m);
}

/* A context and its questions, which are freed. */
static int write_paragraph(maker *m, json_t *questions) {
    json_t *paragraph =
        json_pack("{s:s%, s:o}", "context", m->text, (size_t)m->length, "qas", questions);
    if (!paragraph)
        return wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for a context");
    int status = write_string(m, m->report.contexts++ > 0 ? ",\n" : "\n");
    if (status == 0)
        status = json_dump_callback(paragraph, write_bytes, m, 0);
    json_decref(paragraph);
    if (status < 0 && !wg_error_pending())
        wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for a context's JSON");
    return status;
}

/* ---- From a context to its questions ---- */

static void split_sentences(maker *m) {
    m->sentence_count = 0;
    for (int64_t at = 0; at < m->length && m->sentence_count < LONGEST_CONTEXT;) {
        const int64_t end = wg__sentence_end(m->text, at, m->length);
        m->sentences[m->sentence_count++] = (sentence){m->text + at, end - at};
        at = end;
    }
}

/* Asks about a random sentence, if it has something to ask about. */
static int ask(maker *m, json_t **questions) {
    const uint64_t chosen = wg_random_below(&m->generator, (uint64_t)m->sentence_count);
    const int words = read_tokens(m, &m->sentences[chosen]);
    if (words < FEWEST_WORDS || words > MOST_WORDS)
        return 0;
    find_candidates(m);
    if (m->candidate_count == 0)
        return 0;
    const range tokens =
        m->candidates[wg_random_below(&m->generator, (uint64_t)m->candidate_count)];
    if (!compose(m, tokens))
        return 0;
    if (write_question(m) < 0)
        return -1;
    const sentence answer = text_of(m, tokens);
    char id[24];
    snprintf(id, sizeof id, "%lld", (long long)m->report.questions++);
    wg__json_append(
        questions, json_pack("{s:s, s:s, s:[{s:s%, s:I}]}", "id", id, "question", m->question.bytes,
                             "answers", "text", answer.text, (size_t)answer.length, "answer_start",
                             (json_int_t)count_characters(m->text, answer.text - m->text)));
    return *questions ? 0 : -1;
}

static int ask_about(maker *m, const context *c) {
    m->text = m->texts[c->file].bytes + c->begin;
    m->length = c->length;
    split_sentences(m);
    const int tries = 1 + (int)wg_random_below(&m->generator, 2);
    json_t *questions = json_array();
    int status = questions ? 0 : wg_fail(WG_ERROR_MEMORY, WHERE, "no memory for questions");
    for (int i = 0; status == 0 && i < tries && m->report.questions < m->limit; i++)
        status = ask(m, &questions);
    if (status == 0 && json_array_size(questions) > 0)
        return write_paragraph(m, questions);
    json_decref(questions);
    return status;
}

/* Swaps contexts as it goes, so that their order is random. */
static int ask_about_all(maker *m) {
    int status = write_string(
        m, "{\"version\": \"1.1\", \"data\": [{\"title\": \"corpus\", \"paragraphs\": [");
    for (int64_t i = 0; status == 0 && i < m->context_count && m->report.questions < m->limit;
         i++) {
        const int64_t other = wg__random_between(&m->generator, i, m->context_count - 1);
        const context chosen = m->contexts[other];
        m->contexts[other] = m->contexts[i];
        status = ask_about(m, &chosen);
    }
    return status < 0 ? -1 : write_string(m, "\n]}]}\n");
}

static int make_questions(maker *m, const char *const *paths) {
    for (int i = 0; i < m->file_count; i++)
        if (wg__text_map_open(&m->texts[i], paths[i], WHERE) < 0 ||
            wg__text_map_check(&m->texts[i], paths[i], WHERE) < 0 || find_contexts(m, i) < 0)
            return -1;
    if (ask_about_all(m) < 0)
        return -1;
    if (m->report.questions == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE,
                       "%s has no paragraphs to ask about, lines of %d to %d characters with "
                       "sentences of %d to %d words",
                       m->file_count == 1 ? paths[0] : "none of the files", SHORTEST_PARAGRAPH,
                       LONGEST_PARAGRAPH, FEWEST_WORDS, MOST_WORDS);
    return flush(m) < 0 ? -1 : wg__replacement_finish(&m->file, WHERE);
}

int wg_corpus_questions(int count, const char *const *paths, const char *out,
                        const wg_corpus_questions_options *options,
                        wg_corpus_questions_report *report) {
    static const wg_corpus_questions_options defaults = {0};
    if (!options)
        options = &defaults;
    if (report)
        *report = (wg_corpus_questions_report){0};
    if (options->count < 0)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "%lld questions", (long long)options->count);
    maker *m = wg__calloc(1, sizeof *m);
    if (!m)
        return -1;
    m->limit = options->count ? options->count : WG_CORPUS_QUESTIONS_USUAL;
    m->generator.seed = options->seed;
    m->file_count = count;
    m->texts = wg__calloc((size_t)count + 1, sizeof *m->texts);
    int status = m->texts ? wg__replacement_begin(&m->file, out, WHERE) : -1;
    if (status == 0) {
        status = make_questions(m, paths);
        wg__replacement_end(&m->file);
    }
    if (status == 0 && report)
        *report = m->report;
    for (int i = 0; m->texts && i < count; i++)
        wg__text_map_close(&m->texts[i]);
    wg__free(m->texts);
    wg__free(m->contexts);
    wg__free(m->question.bytes);
    wg__free(m->json.bytes);
    wg__free(m);
    return status;
}
