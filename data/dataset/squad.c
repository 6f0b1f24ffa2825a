/* Reads SQuAD's files, and divides contexts into tokens and windows. See examples.h. */
#include "data/dataset/examples.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "data/internal.h"
#include "data/tokenizer/kind.h"
#include "base/array.h"
#include "data/tokenizer/text_file.h"
#include "io/config.h"
#include "tensor/easy.h"
#include "tensor/internal.h"

#define WHERE "squad"

/* A token of a context and its byte range. If the tokenizer does not keep the bytes of a word, all
 * tokens of the word have the range of the word. */
typedef struct context_token {
    int32_t id;
    int32_t begin, end;
} context_token;

typedef struct paragraph {
    const char *context;  /* borrowed from the JSON */
    int64_t first, count; /* context tokens */
} paragraph;

typedef struct question {
    const json_t *json;
    int64_t paragraph;
    int64_t first, count; /* question tokens */
    int64_t start, end;   /* the first and last token of its first answer, in the paragraph */
    int64_t first_window, windows;
} question;

typedef struct window {
    int64_t question;
    int64_t first, count;
} window;

struct wg__squad {
    wg__examples base; /* its windows */
    wg__squad_options options;
    int doubled;  /* 1: two separators follow the question */
    json_t *root; /* owns the texts */
    context_token *tokens;
    int32_t *ids; /* ids of `tokens`, for batches */
    int64_t token_count, token_capacity;
    paragraph *paragraphs;
    int64_t paragraph_count, paragraph_capacity;
    wg_token_list question_tokens;
    question *questions;
    int64_t question_count, question_capacity;
    window *windows;
    int64_t window_capacity;
};

/* A file being read. */
typedef struct reading {
    const char *path;
    const wg_tokenizer *tokenizer;
    wg__squad *squad;
    char place[128]; /* "data[0].paragraphs[2]" */
    wg_token_list scratch;
    wg__text word;
} reading;

static WG_PRINTF(2, 3) int fail_at(const reading *r, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s: %s%s", r->path, r->place, message);
}

static const char *get_text(const reading *r, const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        fail_at(r, " has no text \"%s\"", key);
    return text;
}

/* Reads one element of a list. */
typedef int (*element_reader)(reading *r, const json_t *element);

static int read_list(reading *r, const json_t *object, const char *key, element_reader read) {
    const json_t *list = json_object_get(object, key);
    const size_t length = strlen(r->place);
    if (!json_is_array(list))
        return fail_at(r, " has no list \"%s\"", key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        snprintf(r->place + length, sizeof r->place - length, "%s%s[%zu]", length ? "." : "", key,
                 i);
        if (read(r, json_array_get(list, i)) < 0)
            return -1;
        r->place[length] = '\0';
    }
    return 0;
}

static int append_tokens(reading *r, int64_t begin, int64_t end) {
    wg__squad *squad = r->squad;
    const int64_t count = squad->token_count + r->scratch.count;
    if (wg__reserve(&squad->tokens, squad->token_count, &squad->token_capacity, count,
                    sizeof *squad->tokens) < 0)
        return -1;
    for (int64_t i = 0; i < r->scratch.count; i++)
        squad->tokens[squad->token_count++] =
            (context_token){r->scratch.ids[i], (int32_t)begin, (int32_t)end};
    return 0;
}

static int add_word(reading *r, const char *context, int64_t begin, int64_t end) {
    r->scratch.count = 0;
    if (wg_tokenizer_encode(r->tokenizer, context + begin, end - begin, NULL, &r->scratch) < 0)
        return -1;
    return append_tokens(r, begin, end);
}

/* Splits words like BERT's basic tokenizer, and tokenizes each word separately. */
static int add_words(reading *r, const char *context, int64_t length) {
    int64_t begin = 0;
    for (int64_t at = 0; at < length;) {
        int32_t c;
        const int64_t size =
            utf8proc_iterate((const utf8proc_uint8_t *)context + at, length - at, &c);
        const wg__basic_class class = wg__basic_class_of(c);
        if (class != WG__BASIC_WITHIN && at > begin && add_word(r, context, begin, at) < 0)
            return -1;
        if (class == WG__BASIC_ALONE && add_word(r, context, at, at + size) < 0)
            return -1;
        at += size;
        if (class != WG__BASIC_WITHIN)
            begin = at;
    }
    return length > begin ? add_word(r, context, begin, length) : 0;
}

/* Narrows the range of each last token from the whole word to the token's bytes, if the tokens
 * decode to the word. A token that ends within a character gets the whole character. */
static int narrow(reading *r, const char *word) {
    const int64_t count = r->scratch.count;
    context_token *tokens = r->squad->tokens + r->squad->token_count - count;
    wg_decode_stream *stream = wg_decode_stream_new(r->tokenizer, NULL);
    const int32_t first = count ? tokens[0].begin : 0;
    int32_t at = first;
    bool same = stream != NULL;
    for (int64_t i = 0; i < count && same; i++) {
        int64_t length;
        const char *text = wg_decode_stream_next(stream, tokens[i].id, &length);
        const int64_t spaces = text && at == first && length > 0 && *text == ' ';
        same = text && at + length - spaces <= tokens[i].end &&
               memcmp(text + spaces, word + (at - first), (size_t)(length - spaces)) == 0;
        tokens[i].begin = at;
        at += same ? (int32_t)(length - spaces) : 0;
    }
    wg_decode_stream_free(stream);
    same = same && count && at == tokens[count - 1].end;
    for (int64_t i = count - 1; i >= 0; i--)
        if (!same)
            tokens[i].begin = first;
        else if (i + 1 < count)
            tokens[i].end =
                tokens[i + 1].begin > tokens[i].begin ? tokens[i + 1].begin : tokens[i + 1].end;
    return wg_error_pending() ? -1 : 0;
}

/* Splits words at spaces, and tokenizes each word with the space before it, as bpe and
 * sentencepiece are trained. */
static int add_spaced_words(reading *r, const char *context, int64_t length) {
    int64_t begin = 0;
    for (int64_t at = 0; at <= length;) {
        int32_t c = ' ';
        const int64_t size = at == length ? 1
                                          : utf8proc_iterate((const utf8proc_uint8_t *)context + at,
                                                             length - at, &c);
        const bool is_space = wg__basic_class_of(c) == WG__BASIC_SPACE;
        if (is_space && at > begin) {
            r->word.length = r->scratch.count = 0;
            if ((begin > 0 && wg__text_append(&r->word, " ", 1) < 0) ||
                wg__text_append(&r->word, context + begin, at - begin) < 0 ||
                wg_tokenizer_encode(r->tokenizer, r->word.bytes, r->word.length, NULL,
                                    &r->scratch) < 0 ||
                append_tokens(r, begin, at) < 0 || narrow(r, context + begin) < 0)
                return -1;
        }
        at += size;
        if (is_space)
            begin = at;
    }
    return 0;
}

/* Checks an answer; training uses the first of a question. */
static int read_answer(reading *r, const json_t *answer) {
    wg__squad *squad = r->squad;
    question *q = &squad->questions[squad->question_count - 1];
    const char *context = squad->paragraphs[q->paragraph].context;
    const char *text = get_text(r, answer, "text");
    const json_t *start = json_object_get(answer, "answer_start");
    if (!text)
        return -1;
    if (!json_is_integer(start) || json_integer_value(start) < 0)
        return fail_at(r, " has no number \"answer_start\"");
    /* Finds the byte at which character `index` begins; -1: the context is shorter. */
    int64_t index = json_integer_value(start);
    const char *at = context;
    for (; index > 0 && *at; index--)
        for (at++; ((unsigned char)*at & 0xC0) == 0x80;)
            at++;
    const int64_t begin = index == 0 ? at - context : -1;
    const int64_t length = (int64_t)strlen(text);
    if (begin < 0 || strncmp(context + begin, text, (size_t)length) != 0)
        return fail_at(r, ".answer_start is %lld, where the context has \"%.*s\" and not \"%.60s\"",
                       (long long)json_integer_value(start),
                       begin < 0 ? 0 : (int)(length < 60 ? length : 60),
                       begin < 0 ? "" : context + begin, text);
    if (q->start >= 0)
        return 0;
    /* Finds the tokens of the answer. */
    const paragraph *p = &squad->paragraphs[q->paragraph];
    const context_token *tokens = squad->tokens + p->first;
    q->start = 0;
    while (q->start < p->count && tokens[q->start].end <= begin)
        q->start++;
    q->end = p->count - 1;
    while (q->end >= 0 && tokens[q->end].begin >= begin + length)
        q->end--;
    return q->start <= q->end ? 0 : fail_at(r, ".text has no words");
}

static int read_question(reading *r, const json_t *json) {
    wg__squad *squad = r->squad;
    const char *text = get_text(r, json, "question");
    const question new = {.json = json,
                          .paragraph = squad->paragraph_count - 1,
                          .first = squad->question_tokens.count,
                          .start = -1};
    if (!text || !get_text(r, json, "id") ||
        wg__append(&squad->questions, &squad->question_count, &squad->question_capacity, &new,
                   sizeof new) < 0)
        return -1;
    question *q = &squad->questions[squad->question_count - 1];
    if (wg_tokenizer_encode(r->tokenizer, text, -1, NULL, &squad->question_tokens) < 0)
        return -1;
    q->count = squad->question_tokens.count - q->first;
    if (q->count > squad->options.query)
        q->count = squad->options.query;
    squad->question_tokens.count = q->first + q->count;
    if (read_list(r, json, "answers", read_answer) < 0)
        return -1;
    if (q->start < 0)
        return fail_at(r, ".answers is empty; in SQuAD 1.1 every question has an answer");
    const wg__squad_options *o = &squad->options;
    const int64_t count = squad->paragraphs[q->paragraph].count;
    const int64_t room = o->sequence - q->count - 3 - squad->doubled;
    q->first_window = squad->base.count;
    for (int64_t first = 0;; first += o->stride < room ? o->stride : room) {
        const int64_t left = count - first;
        const window w = {.question = squad->question_count - 1,
                          .first = first,
                          .count = left < room ? left : room};
        if (wg__append(&squad->windows, &squad->base.count, &squad->window_capacity, &w, sizeof w) <
            0)
            return -1;
        q->windows++;
        if (left <= room)
            return 0;
    }
}

static int read_paragraph(reading *r, const json_t *json) {
    wg__squad *squad = r->squad;
    const char *context = get_text(r, json, "context");
    const size_t length = context ? strlen(context) : 0;
    const paragraph new = {.context = context, .first = squad->token_count};
    if (!context || wg__append(&squad->paragraphs, &squad->paragraph_count,
                               &squad->paragraph_capacity, &new, sizeof new) < 0)
        return -1;
    paragraph *p = &squad->paragraphs[squad->paragraph_count - 1];
    if (length > INT32_MAX)
        return fail_at(r, ".context has %zu bytes; at most 2^31 - 1 are read", length);
    const bool spaced = wg__is_among(wg_tokenizer_kind(r->tokenizer),
                                     WG_NAMES("bpe", "sentencepiece", "llama2c"));
    if ((spaced ? add_spaced_words : add_words)(r, context, (int64_t)length) < 0)
        return -1;
    p->count = squad->token_count - p->first;
    return p->count > 0 ? read_list(r, json, "qas", read_question)
                        : fail_at(r, ".context has no words");
}

static int read_article(reading *r, const json_t *json) {
    return read_list(r, json, "paragraphs", read_paragraph);
}

int64_t wg__squad_questions(const wg__squad *squad) {
    return squad ? squad->question_count : 0;
}

const char *wg__squad_id(const wg__squad *squad, int64_t index) {
    return json_string_value(json_object_get(squad->questions[index].json, "id"));
}

int64_t wg__squad_answers(const wg__squad *squad, int64_t index) {
    return (int64_t)json_array_size(json_object_get(squad->questions[index].json, "answers"));
}

const char *wg__squad_answer(const wg__squad *squad, int64_t index, int64_t answer) {
    const json_t *answers = json_object_get(squad->questions[index].json, "answers");
    return json_string_value(json_object_get(json_array_get(answers, (size_t)answer), "text"));
}

wg__squad_window wg__squad_window_at(const wg__squad *squad, int64_t index) {
    const window *w = &squad->windows[index];
    const question *q = &squad->questions[w->question];
    wg__squad_window found = {.question = w->question,
                              .first = w->first,
                              .count = w->count,
                              .offset = q->count + 2 + squad->doubled};
    if (q->start >= w->first && q->end < w->first + w->count) {
        found.start = found.offset + q->start - w->first;
        found.end = found.offset + q->end - w->first;
    }
    return found;
}

/* BERT's score of a window: the context on the shorter side, plus 0.01 times the window's length;
 * -1 if the token is outside the window. */
static double context_around(const window *w, int64_t token) {
    if (token < w->first || token >= w->first + w->count)
        return -1;
    const int64_t left = token - w->first, right = w->first + w->count - 1 - token;
    return (double)(left < right ? left : right) + 0.01 * (double)w->count;
}

bool wg__squad_is_best_window(const wg__squad *squad, int64_t index, int64_t token) {
    const question *q = &squad->questions[squad->windows[index].question];
    int64_t best = q->first_window;
    for (int64_t i = best + 1; i < q->first_window + q->windows; i++)
        if (context_around(&squad->windows[i], token) >
            context_around(&squad->windows[best], token))
            best = i;
    return best == index;
}

char *wg__squad_text(const wg__squad *squad, int64_t index, int64_t first, int64_t last) {
    const paragraph *p = &squad->paragraphs[squad->questions[index].paragraph];
    const int64_t begin = squad->tokens[p->first + first].begin;
    const int64_t length = squad->tokens[p->first + last].end - begin;
    char *text = wg__calloc((size_t)length + 1, 1);
    if (text)
        memcpy(text, p->context + begin, (size_t)length);
    return text;
}

static wg_token_pair pair_of(const wg__examples *examples, int64_t index) {
    const wg__squad *squad = (const wg__squad *)examples;
    const window *w = &squad->windows[index];
    const question *q = &squad->questions[w->question];
    return (wg_token_pair){
        .first = squad->question_tokens.ids + q->first,
        .first_count = q->count,
        .second = squad->ids + squad->paragraphs[q->paragraph].first + w->first,
        .second_count = w->count,
    };
}

static int fill_targets(const wg__examples *examples, int64_t count, const int64_t *chosen,
                        wg__example_batch *batch) {
    for (int i = 0; i < 2; i++)
        batch->targets[i] = wg_zeros(WG_I64, WG_DIMS(count));
    if (!batch->targets[0] || !batch->targets[1])
        return -1;
    int64_t *starts = wg_tensor_data(batch->targets[0]), *ends = wg_tensor_data(batch->targets[1]);
    for (int64_t i = 0; i < count; i++) {
        const wg__squad_window w = wg__squad_window_at((const wg__squad *)examples, chosen[i]);
        starts[i] = w.start;
        ends[i] = w.end;
    }
    return 0;
}

static uint64_t fingerprint(const wg__examples *examples) {
    uint64_t hash = WG__HASH_BEGIN;
    for (int64_t i = 0; i < examples->count; i++) {
        const wg_token_pair pair = pair_of(examples, i);
        const wg__squad_window w = wg__squad_window_at((const wg__squad *)examples, i);
        hash = wg__pair_fingerprint(hash, &pair);
        hash = wg__hash_step(wg__hash_step(hash, (char)w.start), (char)w.end);
    }
    return hash;
}

static void free_squad(wg__examples *examples) {
    wg__squad *squad = (wg__squad *)examples;
    json_decref(squad->root);
    wg__free(squad->tokens);
    wg__free(squad->ids);
    wg__free(squad->paragraphs);
    wg_token_list_free(&squad->question_tokens);
    wg__free(squad->questions);
    wg__free(squad->windows);
    wg__free(squad);
}

static const wg__examples_kind kind = {pair_of, fill_targets, fingerprint, free_squad};

/* Reads and parses the file, and fills the squad. */
static int read_file(reading *r) {
    wg__squad *squad = r->squad;
    const wg__squad_options *o = &squad->options;
    if (o->stride < 1 || o->query < 1)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE, "a stride of %lld, questions of %lld tokens",
                       (long long)o->stride, (long long)o->query);
    if (o->sequence < o->query + 4 || o->sequence > INT32_MAX)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "sequences of %lld tokens have no room for questions of up to %lld",
                       (long long)o->sequence, (long long)o->query);
    int64_t length;
    json_error_t error;
    char *bytes = wg__text_file_read(r->path, &length, WHERE);
    const bool valid = bytes && wg__utf8_check(bytes, length, r->path, WHERE) == 0;
    if (valid)
        squad->root = json_loadb(bytes, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    wg__free(bytes);
    if (!valid)
        return -1;
    if (!squad->root)
        return wg_fail(json_error_code(&error) == json_error_out_of_memory ? WG_ERROR_MEMORY
                                                                           : WG_ERROR_FORMAT,
                       WHERE, "%s, line %d: %s", r->path, error.line, error.text);
    if (read_list(r, squad->root, "data", read_article) < 0)
        return -1;
    if (squad->question_count == 0)
        return wg_fail(WG_ERROR_FORMAT, WHERE, "%s holds no question", r->path);
    squad->ids = wg__alloc_array(squad->token_count, sizeof *squad->ids);
    for (int64_t i = 0; squad->ids && i < squad->token_count; i++)
        squad->ids[i] = squad->tokens[i].id;
    return squad->ids ? 0 : -1;
}

wg__squad *wg__squad_load(const char *path, const wg_tokenizer *tokenizer,
                          const wg__squad_options *options) {
    wg__squad *squad = wg__calloc(1, sizeof *squad);
    if (!squad)
        return NULL;
    reading r = {.path = path, .tokenizer = tokenizer, .squad = squad};
    wg__squad_options *o = &squad->options;
    if (options)
        *o = *options;
    o->sequence = o->sequence ? o->sequence : 384;
    o->stride = o->stride ? o->stride : 128;
    o->query = o->query ? o->query : 64;
    squad->base.kind = &kind;
    squad->doubled = wg__doubles_separators(tokenizer);
    const int status = read_file(&r);
    wg_token_list_free(&r.scratch);
    wg__free(r.word.bytes);
    squad->base.predictions = squad->base.count;
    if (status == 0)
        return squad;
    free_squad(&squad->base);
    return NULL;
}
