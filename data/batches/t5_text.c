/* Texts with blanks, as people write them: see t5_batch.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/batches/t5_batch.h"
#include "tensor/internal.h"

#define WHERE "t5_text"

/* The next blank from `text` on: where it begins, how long it is, and the number in it, or -1 for
 * "[MASK]". */
typedef struct blank {
    const char *text; /* NULL: there is none */
    size_t length;
    long number;
} blank;

static blank read_blank(const char *text) {
    static const char mask[] = "[MASK]", sentinel[] = "<extra_id_";
    if (strncmp(text, mask, sizeof mask - 1) == 0)
        return (blank){text, sizeof mask - 1, -1};
    if (strncmp(text, sentinel, sizeof sentinel - 1) != 0)
        return (blank){0};
    const char *digits = text + sizeof sentinel - 1;
    const size_t count = strspn(digits, "0123456789");
    if (count < 1 || count > 8 || digits[count] != '>')
        return (blank){0};
    return (blank){text, sizeof sentinel + count, strtol(digits, NULL, 10)};
}

static blank find_blank(const char *text) {
    for (; *text; text++) {
        const blank found = read_blank(text);
        if (found.text)
            return found;
    }
    return (blank){0};
}

static int check_blank(const wg_t5_tokens *tokens, const blank *found, int expected) {
    if (found->number >= 0 && found->number != expected)
        return wg_fail(WG_ERROR_ARGUMENT, WHERE,
                       "<extra_id_%ld> stands where <extra_id_%d> is due: blanks are numbered in "
                       "the order of the text, from 0 on",
                       found->number, expected);
    if (expected + 1 < tokens->sentinel_count)
        return 0;
    return wg_fail(WG_ERROR_ARGUMENT, WHERE, "the text has more than %d blanks",
                   tokens->sentinel_count - 1);
}

/* The bytes of a text without the white space at its end. */
static int64_t stripped(const char *text, const char *end) {
    while (end > text && strchr(" \t\r\n", end[-1]))
        end--;
    return end - text;
}

static int encode(const wg_tokenizer *tokenizer, const wg_t5_tokens *tokens, const char *text,
                  wg_token_list *list) {
    int blanks = 0;
    for (blank next; (next = find_blank(text)).text; text = next.text + next.length) {
        if (check_blank(tokens, &next, blanks) < 0 ||
            wg_tokenizer_encode(tokenizer, text, stripped(text, next.text), NULL, list) < 0 ||
            wg_token_list_append(list, tokens->sentinels[blanks]) < 0)
            return -1;
        blanks++;
    }
    if (wg_tokenizer_encode(tokenizer, text, -1, NULL, list) < 0)
        return -1;
    return wg_token_list_append(list, tokens->end) < 0 ? -1 : blanks;
}

int wg_t5_encode_blanks(const wg_tokenizer *tokenizer, const wg_t5_tokens *tokens, const char *text,
                        wg_token_list *list) {
    if (!tokenizer || !tokens || !text)
        return -1;
    const int64_t before = list->count;
    const int blanks = encode(tokenizer, tokens, text, list);
    if (blanks < 0)
        list->count = before;
    return blanks;
}

wg_token_window wg_t5_answer(const wg_t5_tokens *tokens, const wg_token_list *target, int blank) {
    int64_t start = 0;
    while (start < target->count && wg_t5_sentinel_number(tokens, target->ids[start]) != blank)
        start++;
    if (start < target->count)
        start++;
    int64_t end = start;
    while (end < target->count && wg_t5_sentinel_number(tokens, target->ids[end]) < 0)
        end++;
    return (wg_token_window){start, end};
}
