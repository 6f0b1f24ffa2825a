/* What the checker says: diagnoses in words, and the paragraph that tells of a failure. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gradcheck/check.h"

static const struct {
    const char *name, *words, *advice;
} diagnoses[] = {
#define WG_DIAGNOSIS(name, words, advice) {#name, words, advice},
    WG_DIAGNOSES(WG_DIAGNOSIS)
#undef WG_DIAGNOSIS
};

static size_t known(wg_diagnosis diagnosis) {
    size_t count = sizeof diagnoses / sizeof *diagnoses;
    return (size_t)diagnosis < count ? (size_t)diagnosis : (size_t)WG_DIAGNOSIS_WRONG;
}

const char *wg_diagnosis_name(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].name;
}

const char *wg_diagnosis_words(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].words;
}

const char *wg_diagnosis_advice(wg_diagnosis diagnosis) {
    return diagnoses[known(diagnosis)].advice;
}

/* ---- Text that grows in a buffer ---- */

typedef struct text {
    char *buffer;
    size_t size, used;
} text;

static void say(text *t, const char *format, ...) WG_PRINTF(2, 3);

static void say(text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(t->buffer + t->used, t->size - t->used, format, arguments);
    va_end(arguments);
    t->used += length > 0 ? (size_t)length : 0;
    t->used = t->used < t->size ? t->used : t->size - 1;
}

const char *wg__index_text(char *buffer, size_t size, int ndim, const int64_t *index) {
    text t = {buffer, size, 0};
    say(&t, "(");
    for (int d = 0; d < ndim; d++)
        say(&t, "%s%lld", d ? ", " : "", (long long)index[d]);
    say(&t, ndim == 1 ? ",)" : ")");
    return buffer;
}

const char *wg__gradcheck_input_text(char *buffer, size_t size, const wg__gradcheck *c, int input) {
    const wg_gradcheck_options *o = &c->options;
    int parameter = input - c->user_count;
    if (parameter < 0)
        snprintf(buffer, size, "input %d", input);
    else if (parameter < o->parameter_count && o->parameter_names)
        snprintf(buffer, size, "parameter %s", o->parameter_names[parameter]);
    else if (parameter < o->parameter_count)
        snprintf(buffer, size, "parameter %d", parameter);
    else
        snprintf(buffer, size, "the cotangent of output %d", parameter - o->parameter_count);
    return buffer;
}

/* ---- Verdicts ---- */

/* "softmax, sample 2, stepped: order 1: " as far as there is something to say. */
static void say_where(text *t, const wg__gradcheck *c) {
    const wg_gradcheck_report *r = c->report;
    if (c->op)
        say(t, "%.64s, ", c->op->name);
    if (r->sample >= 0)
        say(t, "sample %d%s%s: ", r->sample, r->variant[0] ? ", " : "", r->variant);
    if (c->order > 1)
        say(t, "order %d: ", c->order);
}

int wg__gradcheck_fail(wg__gradcheck *c, wg_diagnosis diagnosis, int input, const char *format,
                       ...) {
    wg_gradcheck_report *r = c->report;
    text t = {r->message, sizeof r->message, 0};
    say_where(&t, c);
    char finding[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding, sizeof finding, format, arguments);
    va_end(arguments);
    say(&t, "%s", finding);
    const wg_error *reason = wg_error_pending();
    if (reason)
        say(&t, ": %.400s", reason->message);
    wg_error_clear();
    const char *advice = wg_diagnosis_advice(diagnosis);
    if (diagnosis != WG_DIAGNOSIS_FAILED)
        say(&t, ". Diagnosis: %s", wg_diagnosis_words(diagnosis));
    if (*advice)
        say(&t, ". Look at: %s", advice);
    say(&t, ". Replay with seed %llu", (unsigned long long)r->seed);
    r->passed = false;
    r->diagnosis = diagnosis;
    r->at_order = c->order;
    r->input = input;
    int parameter = input - c->user_count;
    bool named = parameter >= 0 && parameter < c->options.parameter_count;
    snprintf(r->name, sizeof r->name, "%s",
             named && c->options.parameter_names ? c->options.parameter_names[parameter] : "");
    return -1;
}
