/* Splits a text by a regular expression: see kind.h. This is the only file that uses PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/array.h"
#include "data/tokenizer/kind.h"

#define WHERE "pattern"
#define LONGEST_PATTERN 4096
#define DEEPEST_NESTING 50

/* A limit on the steps of a match: some patterns take exponential time. */
#define MOST_STEPS 10000000

struct wg__splitter {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *code;
    bool jit;
};

/* Unicode's White_Space. PCRE2's \s also matches U+180E. */
#define SPACES "\\t-\\r\\x{85}\\p{Z}"

static int unsupported(const char *what, const char *pattern) {
    return wg_fail(WG_ERROR_FORMAT, WHERE, "%s is not supported: %.200s", what, pattern);
}

/* Writes the pattern for PCRE2, with \s and \S spelt out. Refuses constructs with another meaning
 * in the regular expressions of Python and Rust. */
static int translate(const char *pattern, wg__text *text) {
    bool in_class = false;
    for (const char *at = pattern; *at; at++) {
        const char *part = at;
        int64_t length = 1;
        if (*at == '\\' && at[1]) {
            if (at[1] == 'Q' || (at[1] == 'S' && in_class))
                return unsupported(at[1] == 'Q' ? "\\Q" : "\\S within []", pattern);
            part = at[1] == 'S'               ? "[^" SPACES "]"
                   : at[1] == 's' && in_class ? SPACES
                   : at[1] == 's'             ? "[" SPACES "]"
                                              : at;
            length = part == at ? 2 : (int64_t)strlen(part);
            at++;
        } else if (*at == '[' && (in_class || at[1] == ']' || (at[1] == '^' && at[2] == ']'))) {
            return unsupported(in_class ? "[ within []" : "[ followed by ]", pattern);
        } else if (*at == '&' && at[1] == '&' && in_class) {
            return unsupported("&& within []", pattern);
        } else if (*at == '[' || *at == ']') {
            in_class = *at == '[';
        }
        if (wg__text_append(text, part, length) < 0)
            return -1;
    }
    return 0;
}

static void *allocate(size_t size, void *context) {
    (void)context;
    return wg__alloc(size);
}

static void release(void *block, void *context) {
    (void)context;
    wg__free(block);
}

static int compile(wg__splitter *splitter, const char *pattern, const wg__text *text) {
    pcre2_compile_context *context = pcre2_compile_context_create(splitter->memory);
    if (!context)
        return wg_fail(WG_ERROR_MEMORY, WHERE, "no memory");
    pcre2_set_parens_nest_limit(context, DEEPEST_NESTING);
    int error;
    PCRE2_SIZE offset;
    splitter->code =
        pcre2_compile((PCRE2_SPTR)text->bytes, (PCRE2_SIZE)text->length,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context);
    pcre2_compile_context_free(context);
    if (splitter->code) {
        splitter->jit = pcre2_jit_compile(splitter->code, PCRE2_JIT_COMPLETE) == 0;
        return 0;
    }
    char message[200] = "";
    pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
    return wg_fail(error == PCRE2_ERROR_HEAPLIMIT ? WG_ERROR_MEMORY : WG_ERROR_FORMAT, WHERE,
                   "%s, in %.200s", message, pattern);
}

wg__splitter *wg__splitter_new(const char *pattern) {
    /* A pattern could lift the limits by "(*LIMIT_MATCH=...)" at its beginning. */
    if (strlen(pattern) > LONGEST_PATTERN || *pattern == '\0' || strncmp(pattern, "(*", 2) == 0)
        return wg__fail_null(WG_ERROR_FORMAT, WHERE,
                             "a pattern has 1 to %d bytes and does not begin with (*",
                             LONGEST_PATTERN);
    wg__splitter *splitter = wg__calloc(1, sizeof *splitter);
    if (!splitter)
        return NULL;
    wg__text text = {0};
    splitter->memory = pcre2_general_context_create(allocate, release, NULL);
    if (splitter->memory)
        splitter->limits = pcre2_match_context_create(splitter->memory);
    if (splitter->limits)
        pcre2_set_match_limit(splitter->limits, MOST_STEPS);
    else
        wg_fail(WG_ERROR_MEMORY, WHERE, "no memory");
    const bool made = splitter->limits && translate(pattern, &text) == 0 &&
                      compile(splitter, pattern, &text) == 0;
    wg__free(text.bytes);
    if (made)
        return splitter;
    wg__splitter_free(splitter);
    return NULL;
}

void wg__splitter_free(wg__splitter *splitter) {
    if (!splitter)
        return;
    pcre2_code_free(splitter->code);
    pcre2_match_context_free(splitter->limits);
    pcre2_general_context_free(splitter->memory);
    wg__free(splitter);
}

static int64_t character_end(const char *text, int64_t length, int64_t at) {
    do
        at++;
    while (at < length && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

static int split(const wg__splitter *splitter, const char *text, int64_t length,
                 pcre2_match_data *data, wg__part_visitor visit, void *context) {
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(data);
    int64_t at = 0, done = 0; /* where to search next; the end of the visited text */
    int status = 0;
    while (status >= 0 && at < length) {
        /* pcre2_jit_match skips pcre2_match's checks, which take longer than matching a word. If
         * its stack is too small, pcre2_match takes over. */
        int found = PCRE2_ERROR_JIT_STACKLIMIT;
        if (splitter->jit)
            found = pcre2_jit_match(splitter->code, (PCRE2_SPTR)text, (PCRE2_SIZE)length,
                                    (PCRE2_SIZE)at, 0, data, splitter->limits);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT)
            found =
                pcre2_match(splitter->code, (PCRE2_SPTR)text, (PCRE2_SIZE)length, (PCRE2_SIZE)at,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, splitter->limits);
        if (found == PCRE2_ERROR_NOMATCH)
            break;
        if (found < 0) {
            char message[200] = "";
            pcre2_get_error_message(found, (PCRE2_UCHAR *)message, sizeof message);
            return wg_fail(found == PCRE2_ERROR_NOMEMORY ? WG_ERROR_MEMORY : WG_ERROR_FORMAT, WHERE,
                           "splitting at byte %lld: %s", (long long)at, message);
        }
        int64_t start = (int64_t)bounds[0], end = (int64_t)bounds[1];
        if (end <= start) { /* an empty match; with \K, end < start is possible */
            at = character_end(text, length, start > at ? start : at);
            continue;
        }
        if (start < done)
            start = done;
        if (start > done)
            status = visit(context, text + done, start - done);
        if (status >= 0 && end > start)
            status = visit(context, text + start, end - start);
        done = at = end > at ? end : character_end(text, length, at);
        if (done > length)
            done = at = length;
    }
    if (status >= 0 && done < length)
        status = visit(context, text + done, length - done);
    return status < 0 ? -1 : 0;
}

int wg__split(const wg__splitter *splitter, const char *text, int64_t length,
              wg__part_visitor visit, void *context) {
    pcre2_match_data *data = pcre2_match_data_create(1, splitter->memory);
    if (!data)
        return wg_fail(WG_ERROR_MEMORY, WHERE, "no memory");
    int status = split(splitter, text, length, data, visit, context);
    pcre2_match_data_free(data);
    return status;
}
